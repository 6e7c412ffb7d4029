/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c: one row per command. The row serves dispatch, the check of
 * reserved bits, and REPORT SUPPORTED OPERATION CODES (SPC-4 §6.35).
 */
#include <string.h>

#include "device/handlers.h"
#include "device/table.h"

/* clang-format off */
static const struct dev_command commands[] = {
	{ "TEST UNIT READY", SCSI_TEST_UNIT_READY, 0, 6, DIR_NONE, FOR_ANY_TYPE | CMD_MEDIUM | RSV_UNIT, NULL, dev_test_unit_ready,
	  { 0x00, 0, 0, 0, 0, 0 } },
	{ "REQUEST SENSE", SCSI_REQUEST_SENSE, 0, 6, DIR_IN, FOR_ANY_TYPE | CMD_ANY_LUN | RSV_NEVER, NULL, dev_request_sense,
	  { 0x03, 0x01, 0, 0, 0xff, 0 } },
	{ "READ(6)", SCSI_READ_6, 0, 6, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x08, 0x1f, 0xff, 0xff, 0xff, 0 } },
	{ "WRITE(6)", SCSI_WRITE_6, 0, 6, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0x0a, 0x1f, 0xff, 0xff, 0xff, 0 } },
	{ "INQUIRY", SCSI_INQUIRY, 0, 6, DIR_IN, FOR_ANY_TYPE | CMD_ANY_LUN | RSV_NEVER, NULL, dev_inquiry,
	  { 0x12, 0x01, 0xff, 0xff, 0xff, 0 } },
	{ "MODE SENSE(6)", SCSI_MODE_SENSE_6, 0, 6, DIR_IN, RSV_READ | ACC_STANDBY, NULL, dev_mode_sense_6,
	  { 0x1a, 0x08, 0xff, 0xff, 0xff, 0 } },
	{ "MODE SELECT(6)", SCSI_MODE_SELECT_6, 0, 6, DIR_OUT, CMD_ALONE | RSV_WRITE | ACC_STANDBY, dev_prepare_mode_select, dev_mode_select,
	  { 0x15, 0x11, 0, 0, 0xff, 0 } },
	{ "START STOP UNIT", SCSI_START_STOP_UNIT, 0, 6, DIR_NONE, RSV_WRITE, NULL, dev_start_stop,
	  { 0x1b, 0x01, 0, 0x0f, 0xf7, 0 } },
	/* the default self-test, or nothing to test (SPC-4 §6.42) */
	{ "SEND DIAGNOSTIC", SCSI_SEND_DIAGNOSTIC, 0, 6, DIR_NONE, CMD_MEDIUM | RSV_WRITE, NULL, dev_test_unit_ready,
	  { 0x1d, 0x17, 0, 0, 0, 0 } },
	{ "PREVENT ALLOW MEDIUM REMOVAL", SCSI_PREVENT_ALLOW, 0, 6, DIR_NONE, RSV_WRITE, NULL, dev_prevent_allow,
	  { 0x1e, 0, 0, 0, 0x03, 0 } },
	{ "READ CAPACITY(10)", SCSI_READ_CAPACITY_10, 0, 10, DIR_IN, CMD_MEDIUM | CMD_ALONE | RSV_NEVER, dev_prepare_capacity, dev_read_capacity_10,
	  { 0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01, 0 } },
	{ "READ(10)", SCSI_READ_10, 0, 10, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x28, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "WRITE(10)", SCSI_WRITE_10, 0, 10, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0x2a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "WRITE AND VERIFY(10)", SCSI_WRITE_AND_VERIFY_10, 0, 10, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  { 0x2e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "VERIFY(10)", SCSI_VERIFY_10, 0, 10, DIR_OUT, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  { 0x2f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "PRE-FETCH(10)", SCSI_PRE_FETCH_10, 0, 10, DIR_NONE, CMD_MEDIUM | RSV_READ, dev_prepare_range, dev_test_unit_ready,
	  { 0x34, 0x02, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "SYNCHRONIZE CACHE(10)", SCSI_SYNCHRONIZE_CACHE_10, 0, 10, DIR_NONE, CMD_MEDIUM | RSV_WRITE, dev_prepare_range, dev_synchronize_cache,
	  { 0x35, 0x06, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "WRITE SAME(10)", SCSI_WRITE_SAME_10, 0, 10, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_same, dev_write_same,
	  { 0x41, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0 } },
	{ "UNMAP", SCSI_UNMAP, 0, 10, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_unmap, dev_unmap,
	  { 0x42, 0x01, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0 }, dev_has_unmap },
	{ "MODE SELECT(10)", SCSI_MODE_SELECT_10, 0, 10, DIR_OUT, CMD_ALONE | RSV_WRITE | ACC_STANDBY, dev_prepare_mode_select, dev_mode_select,
	  { 0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "MODE SENSE(10)", SCSI_MODE_SENSE_10, 0, 10, DIR_IN, RSV_READ | ACC_STANDBY, NULL, dev_mode_sense_10,
	  { 0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0 } },
	{ "READ(16)", SCSI_READ_16, 0, 16, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE(16)", SCSI_WRITE_16, 0, 16, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0x8a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE AND VERIFY(16)", SCSI_WRITE_AND_VERIFY_16, 0, 16, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  { 0x8e, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "VERIFY(16)", SCSI_VERIFY_16, 0, 16, DIR_OUT, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  { 0x8f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "PRE-FETCH(16)", SCSI_PRE_FETCH_16, 0, 16, DIR_NONE, CMD_MEDIUM | RSV_READ, dev_prepare_range, dev_test_unit_ready,
	  { 0x90, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "SYNCHRONIZE CACHE(16)", SCSI_SYNCHRONIZE_CACHE_16, 0, 16, DIR_NONE, CMD_MEDIUM | RSV_WRITE, dev_prepare_range, dev_synchronize_cache,
	  { 0x91, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE SAME(16)", SCSI_WRITE_SAME_16, 0, 16, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_same, dev_write_same,
	  { 0x93, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "READ CAPACITY(16)", SCSI_SERVICE_ACTION_IN_16, SCSI_SAI_READ_CAPACITY_16, 16, DIR_IN, CMD_MEDIUM | CMD_SA | CMD_ALONE | RSV_NEVER, dev_prepare_capacity, dev_read_capacity_16,
	  { 0x9e, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0 } },
	{ "GET LBA STATUS", SCSI_SERVICE_ACTION_IN_16, SCSI_SAI_GET_LBA_STATUS, 16, DIR_IN, CMD_MEDIUM | CMD_SA | RSV_READ, dev_prepare_lba_status, dev_lba_status,
	  { 0x9e, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "REPORT LUNS", SCSI_REPORT_LUNS, 0, 12, DIR_IN, FOR_ANY_TYPE | CMD_ANY_LUN | RSV_NEVER, NULL, dev_report_luns,
	  { 0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "REPORT SUPPORTED OPERATION CODES", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_SUPPORTED_OPCODES, 12, DIR_IN, FOR_ANY_TYPE | CMD_ALWAYS | CMD_SA | RSV_READ, NULL, dev_report_opcodes,
	  { 0xa3, 0x1f, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", SCSI_MAINTENANCE_IN, SCSI_MI_REPORT_SUPPORTED_TMFS, 12, DIR_IN, FOR_ANY_TYPE | CMD_ALWAYS | CMD_SA | RSV_READ, NULL, dev_report_tmfs,
	  { 0xa3, 0x1f, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0 } },
	{ "READ(12)", SCSI_READ_12, 0, 12, DIR_IN, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_read, dev_read,
	  { 0xa8, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE(12)", SCSI_WRITE_12, 0, 12, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write, dev_write,
	  { 0xaa, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "WRITE AND VERIFY(12)", SCSI_WRITE_AND_VERIFY_12, 0, 12, DIR_OUT, CMD_MEDIUM | CMD_WRITES | CMD_TOUCHES | RSV_WRITE, dev_prepare_write_verify, dev_write_verify,
	  { 0xae, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
	{ "VERIFY(12)", SCSI_VERIFY_12, 0, 12, DIR_OUT, CMD_MEDIUM | CMD_TOUCHES | RSV_READ, dev_prepare_verify, dev_verify,
	  { 0xaf, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0 } },
};
/* clang-format on */

static const struct dev_rows rows_here = { commands, ARRAY_LEN(commands) };

/* One entry per file that has rows. */
static const struct dev_rows *const tables[] = {
	&rows_here,	&dev_rows_block, &dev_rows_reserve,
	&dev_rows_alua, &dev_rows_cd,	 &dev_rows_protect,
};

#define for_each_row(c) \
 for (const struct dev_command *c = tables[0]->rows; c; c = next_row(c))

static const struct dev_command *next_row(const struct dev_command *c)
{
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		const struct dev_command *end = tables[i]->rows + tables[i]->n;

		if (c < tables[i]->rows || c >= end)
			continue;
		if (c + 1 < end)
			return c + 1;
		return i + 1 < ARRAY_LEN(tables) ? tables[i + 1]->rows : NULL;
	}
	return NULL;
}

void dev_command_index(struct dev_server *s)
{
	for (unsigned type = 0; type < DEV_NTYPES; type++)
		for_each_row(c) if (!(c->flags & CMD_SA) &&
				    dev_command_is_for(c, (enum dev_type)type))
			s->row_of[type][c->op] = c;
}

bool dev_command_is_for(const struct dev_command *c, enum dev_type type)
{
	unsigned types = c->flags & FOR_ANY_TYPE;

	return (types ? types : FOR_DISK) & FOR(type);
}

bool dev_command_has(const struct dev_lu *lu, const struct dev_command *c)
{
	return dev_command_is_for(c, dev_lu_type(lu)) &&
	       (!c->has || c->has(lu)) &&
	       (!lu || !lu->pass || dev_pass_owns(lu, c));
}

const struct dev_command *dev_command_find(const struct dev_server *s,
					   enum dev_type type,
					   const uint8_t *cdb, bool *known)
{
	*known = false;
	if (s->row_of[type][cdb[0]])
		return s->row_of[type][cdb[0]];
	for_each_row(c)
	{
		if (!(c->flags & CMD_SA) || c->op != cdb[0] ||
		    !dev_command_is_for(c, type))
			continue;
		if (c->sa == scsi_cdb_sa(cdb))
			return c;
		*known = true;
	}
	return NULL;
}

bool dev_command_any(const struct dev_lu *lu, uint8_t op)
{
	for_each_row(c) if (c->op == op && dev_command_has(lu, c)) return true;
	return false;
}

/* SPC-4 §4.2.5: the group code tells the length, and so where it ends. */
int dev_control_at(const uint8_t *cdb)
{
	static const int8_t at[8] = { 5, 9, 9, -1, 15, 11, -1, -1 };

	if (cdb[0] == 0x7f) /* variable length: it comes first */
		return 1;
	return at[cdb[0] >> 5];
}

static uint8_t usage(const struct dev_command *row, unsigned byte)
{
	uint8_t naca = (int)byte == dev_control_at(&row->op) ? CONTROL_NACA : 0;

	return row->usage[byte] | naca;
}

int dev_command_check(const struct dev_command *row, const uint8_t *cdb)
{
	for (unsigned i = 1; i < row->len; i++) {
		unsigned bad = cdb[i] & ~row->usage[i] & 0xffu;

		if (bad)
			bad = cdb[i] & ~usage(row, i) & 0xffu;

		if (bad)
			return (int)(i << 3 |
				     (31u - (unsigned)__builtin_clz(bad)));
	}
	return -1;
}

/* ---- REPORT SUPPORTED OPERATION CODES ---- */

#define TIMEOUTS_LEN 12 /* SPC-4 table 249 */

static size_t put_timeouts(uint8_t *p)
{
	put_be16(p, TIMEOUTS_LEN - 2);
	return TIMEOUTS_LEN;
}

size_t dev_put_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts)
{
	size_t at = 0;

	for_each_row(c)
	{
		if (!dev_command_has(lu, c))
			continue;
		p[at] = c->op;
		if (c->flags & CMD_SA) {
			put_be16(p + at + 2, c->sa);
			p[at + 5] |= 0x01; /* SERVACTV */
		}
		p[at + 5] |= timeouts ? 0x02 : 0; /* CTDP */
		put_be16(p + at + 6, c->len);
		at += 8;
		if (timeouts)
			at += put_timeouts(p + at);
	}
	return at;
}

static size_t all_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts)
{
	size_t len = dev_put_opcodes(lu, p + 4, timeouts);

	put_be32(p, (uint32_t)len);
	return 4 + len;
}

static size_t one_opcode(uint8_t *p, const struct dev_command *c, bool timeouts)
{
	size_t at = 4;

	p[1] = c ? 0x03 : 0x01; /* SUPPORT: by the standard / not at all */
	if (!c)
		return at;
	put_be16(p + 2, c->len);
	for (unsigned i = 0; i < c->len; i++)
		p[4 + i] = usage(c, i);
	if (c->op == SCSI_VARIABLE_LENGTH)
		put_be16(p + 4 + 8, c->sa);
	else if (c->flags & CMD_SA)
		p[5] = (uint8_t)((c->usage[1] & ~0x1f) | c->sa);
	at += c->len;
	if (timeouts) {
		p[1] |= 0x80; /* CTDP */
		at += put_timeouts(p + at);
	}
	return at;
}

/* Reporting options 1 (no service action), 2 (with), 3 (either). Returns
 * whether the request fits the operation code. */
static bool pick(const struct dev_task *t, const struct dev_command **row)
{
	const uint8_t *cdb = t->cdb;
	/* the service action where either kind of CDB has it */
	uint8_t probe[16] = { cdb[3], cdb[5] & 0x1f, [8] = cdb[4], cdb[5] };
	uint16_t sa = get_be16(cdb + 4);
	bool known;
	const struct dev_command *c = dev_command_find(
		t->nexus->server, dev_lu_type(t->lu), probe, &known);
	bool has_sa = known || (c && (c->flags & CMD_SA));

	*row = NULL;
	if (!dev_command_any(t->lu, cdb[3])) /* on this unit */
		return (cdb[2] & 7) != 0;
	*row = c && has_sa && sa != c->sa ? NULL : c;
	if (*row && c->has && !c->has(t->lu))
		*row = NULL;
	switch (cdb[2] & 7) {
	case 1:
		return !has_sa;
	case 2:
		return has_sa || (!c && !known);
	default:
		if (c && !has_sa && sa != 0)
			*row = NULL;
		return true;
	}
}

void dev_report_opcodes(struct dev_task *t)
{
	const struct dev_command *row = NULL;
	bool timeouts = t->cdb[2] & 0x80; /* RCTD */
	unsigned options = t->cdb[2] & 7;
	uint8_t *p;

	if (options > 3 || (options && !pick(t, &row))) {
		dev_bad_field(t, 2, 2);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	dev_return(t,
		   options ? one_opcode(p, row, timeouts)
			   : all_opcodes(t->lu, p, timeouts),
		   get_be32(t->cdb + 6));
}
