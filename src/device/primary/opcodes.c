/* SPDX-License-Identifier: BSD-2-Clause */
/* opcodes.c: REPORT SUPPORTED OPERATION CODES (SPC-4 §6.35), from the rows
 * of the commands (table.c). */
#include "device/primary/primary.h"
#include "device/unit/command.h"

#define TIMEOUTS_LEN 12 /* SPC-4 table 249 */

static size_t put_timeouts(uint8_t *p)
{
	put_be16(p, TIMEOUTS_LEN - 2);
	return TIMEOUTS_LEN;
}

size_t dev_put_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts)
{
	size_t at = 0;

	for (struct dev_row_at r = dev_row_first(lu->server); r.row;
	     dev_row_next(&r)) {
		const struct dev_command *c = r.row;

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
		p[4 + i] = dev_command_usage(c, i);
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

/* Finds the row for REPORTING OPTIONS 1 (no service action), 2 (with service
 * action) or 3 (either); *row NULL: the command is not supported. False: the
 * option does not fit the operation code. */
static bool pick(const struct dev_task *t, const struct dev_command **row)
{
	const uint8_t *cdb = t->cdb;
	/* the service action at its place in a short CDB and in a 32-byte
	 * CDB */
	uint8_t probe[16] = { cdb[3], cdb[5] & 0x1f, [8] = cdb[4], cdb[5] };
	uint16_t sa = get_be16(cdb + 4);
	bool known;
	const struct dev_command *c = dev_command_find(
		t->nexus->server, dev_lu_type(t->lu), probe, &known);
	bool has_sa = known || (c && (c->flags & CMD_SA));

	*row = NULL;
	if (!dev_command_any(t->nexus->server, t->lu,
			     cdb[3])) /* no row of this unit */
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
