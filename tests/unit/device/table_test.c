/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_test.c: bad input, generated from the command table: each row with
 * every CDB length, each reserved bit, each used bit, allocation lengths of 0
 * and 1, parameter lists cut at each byte and damaged at each byte, service
 * actions 0 to 31 of all 256 operation codes, LBAs and lengths at the limits. A
 * new row is tested without a change here; a command that refuses a CDB of
 * zeros may need a template (table_lists.h), so that the tests reach more of
 * the command.
 */
#include <stdio.h>

#include "device/unit/command.h"
#include "table_fixture.h"

/* ---- the rows ---- */

/* The reservation column of the standards says which commands change a unit. Those
 * that a nexus with a read-only unit may use nevertheless are named here. */
static void test_rows_that_change_the_unit(void **state)
{
	static const uint8_t harmless[] = {
		SCSI_SYNCHRONIZE_CACHE_10, SCSI_SYNCHRONIZE_CACHE_16,
		SCSI_PREVENT_ALLOW, /* a reader keeps its medium */
		SCSI_EXTENDED_COPY, /* checks each destination */
	};

	(void)state;
	for_rows(c)
	{
		bool marked = c->flags & (CMD_WRITES | CMD_CHANGES);
		bool named = memchr(harmless, c->op, sizeof(harmless));

		if ((c->flags & RSV_WRITE) == RSV_WRITE && !marked && !named)
			fail_msg("%s: CMD_WRITES or CMD_CHANGES?", c->name);
	}
}

static void test_rows_are_whole_and_all_are_reported_spc4_6_35(void **state)
{
	unsigned shown = 0;
	const uint8_t *end;

	(void)state;
	for_rows(c)
	{
		assert_non_null(c->name);
		assert_true(c->len == 6 || c->len == 10 || c->len == 12 ||
			    c->len == 16 || c->len == 32);
		assert_int_equal(c->usage[0], c->op);
		assert_true(c->flags & RSV_KNOWN);
		if (c->op == SCSI_VARIABLE_LENGTH)
			assert_int_equal(get_be16(c->usage + 8), 0xffff);
		else if (c->flags & CMD_SA)
			assert_int_equal(c->usage[1] & 0x1f, 0x1f);
		if (scsi_cdb_len(c->op))
			assert_int_equal(scsi_cdb_len(c->op), c->len);
		shown += dev_command_has(dev_lu_get(R->server, 0), c);
	}
	assert_int_equal(CMD(0, 8192, NULL, 0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0x20,
			     0),
			 SCSI_GOOD);
	end = R->in + R->in_len;
	assert_int_equal(end - R->in, get_be32(R->in) + 4);
	assert_int_equal(get_be32(R->in) / 8, shown);
}

/* ---- lengths of CDBs ---- */

static void test_cdb_of_every_length(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_rows(c)
	{
		const struct template *m = template_of(c);
		unsigned n = good(c, m, cdb);

		for (uint16_t len = 0; len < c->len; len++) {
			run(cdb, len, list, n, 64);
			CHECK_THAT(refused(ASC_INVALID_FIELD_IN_IU));
		}
		for (uint16_t len = c->len; len <= CDB_MAX; len++) {
			run(cdb, len, list, n, 64);
			CHECK_THAT(!refused(ASC_INVALID_FIELD_IN_IU) || n == 0);
		}
	}
}

/* Bytes after the CDB are ignored. */
static void test_bytes_behind_a_cdb(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_rows(c)
	{
		unsigned n = good(c, template_of(c), cdb);
		struct scsi_sense s;
		uint8_t status;

		run(cdb, CDB_MAX, list, n, 64);
		s = R->sense;
		status = R->task.status;
		memset(cdb + c->len, 0xff, CDB_MAX - c->len);
		run(cdb, CDB_MAX, list, n, 64);
		CHECK_THAT(R->task.status == status && R->sense.asc == s.asc &&
			   R->sense.field == s.field);
	}
}

/* ---- reserved bits ---- */

/* NACA, of CONTROL (SAM-5 §5.2). */
static bool is_naca(const struct dev_command *c, unsigned bit)
{
	return bit == (unsigned)dev_control_at(&c->op) * 8 + 2;
}

static void test_each_reserved_bit_spc4_4_5_2_4_2(void **state)
{
	uint8_t cdb[CDB_MAX];
	unsigned tried = 0;

	(void)state;
	for_rows(c) for (unsigned i = 8; i < c->len * 8u; i++)
	{
		unsigned n = good(c, template_of(c), cdb);

		if ((c->usage[i / 8] & BIT(i % 8)) || is_naca(c, i))
			continue;
		cdb[i / 8] |= (uint8_t)BIT(i % 8);
		run(cdb, CDB_MAX, list, n, 64);
		CHECK_THAT(refused(ASC_INVALID_FIELD_IN_CDB));
		CHECK_THAT(R->sense.field == i / 8 && R->sense.has_bit &&
			   R->sense.bit == i % 8);
		CHECK_THAT(R->task.out_len == 0);
		tried++;
	}
	assert_true(tried > of_type(500, 200));
}

/* ---- one used bit ---- */

/* The field pointer names the byte of the bit, or the begin of its field. */
static bool points_near(const struct dev_command *c, unsigned byte)
{
	unsigned at = R->sense.field;

	if (at > byte)
		return false;
	for (unsigned i = at; i <= byte; i++)
		if (!c->usage[i])
			return false;
	return true;
}

/* A bit of the service action, which selects another command. */
static bool is_of_sa(const struct dev_command *c, unsigned byte, unsigned bit)
{
	if (c->op == SCSI_VARIABLE_LENGTH)
		return byte == 8 || byte == 9;
	return (c->flags & CMD_SA) && byte == 1 && bit < 5;
}

static unsigned good_with_room(const struct dev_command *c,
			       uint8_t cdb[CDB_MAX])
{
	const struct template *m = template_of(c);
	unsigned n = good(c, m, cdb);

	if (m && !m->list && m->len_bytes)
		put_number(cdb, m->len_at, m->len_bytes, 255);
	return n;
}

static void test_each_bit_that_counts(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_rows(c) for (unsigned i = 8; i < c->len * 8u; i++)
	{
		unsigned n = good_with_room(c, cdb);

		run(cdb, CDB_MAX, list, n, 64);
		if (refused(ASC_INVALID_FIELD_IN_CDB) ||
		    !(c->usage[i / 8] & BIT(i % 8)) ||
		    is_of_sa(c, i / 8, i % 8))
			continue;
		n = good_with_room(c, cdb);
		cdb[i / 8] ^= (uint8_t)BIT(i % 8);
		run(cdb, CDB_MAX, list, n, 64);
		if (refused(ASC_INVALID_FIELD_IN_CDB))
			CHECK_THAT(points_near(c, i / 8));
	}
}

/* ---- NACA (SAM-5 §§5.2, 5.10.2) ---- */

static void nothing_left(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
}

/* NACA is valid for each command: the command ends in the same way, and a CHECK
 * CONDITION establishes an ACA. */
static void test_naca_of_each_command_sam5_5_2(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_rows(c)
	{
		unsigned n = good(c, template_of(c), cdb);
		uint8_t status;

		fresh();
		run(cdb, CDB_MAX, list, n, 64);
		status = R->task.status;
		fresh();
		cdb[dev_control_at(&c->op)] |= CONTROL_NACA;
		run(cdb, CDB_MAX, list, n, 64);
		CHECK_THAT(R->task.status == status);
		assert_int_equal(CMD(0, 0, NULL, 0),
				 status == SCSI_CHECK_CONDITION
					 ? SCSI_ACA_ACTIVE
					 : SCSI_GOOD);
		dev_nexus_clear_aca(R->nexus, 0, nothing_left, NULL);
		assert_int_equal(CMD(0, 8192, NULL, 0xa3, 0x0c,
				     c->flags & CMD_SA ? 2 : 1, c->op, 0,
				     (uint8_t)c->sa, 0, 0, 0x20, 0),
				 SCSI_GOOD);
		if (!c->has || c->has(dev_lu_get(R->server, 0)))
			/* READ TOC uses the vendor specific bits */
			assert_int_equal(R->in[4 + dev_control_at(&c->op)] &
						 0x3f,
					 CONTROL_NACA);
	}
	fresh();
}

/* ---- allocation lengths ---- */

static void test_allocation_length_cuts_spc4_4_2_5_6(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 7, 8, 255 };
	uint8_t cdb[CDB_MAX];
	unsigned tried = 0;

	(void)state;
	for_rows(c) for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
	{
		const struct template *m = template_of(c);
		uint32_t n = lengths[i];

		good(c, m, cdb);
		if (!m || m->list || !m->len_bytes)
			continue;
		put_number(cdb, m->len_at, m->len_bytes, n);
		run(cdb, CDB_MAX, NULL, 0, 255);
		CHECK_THAT(R->in_len <= n);
		CHECK_THAT(R->task.total.in <= n);
		/* REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS needs more (SPC-4
		 * §6.36); other commands may report that the requested data do
		 * not exist. */
		if (refused(ASC_INVALID_FIELD_IN_CDB) &&
		    c->op == SCSI_MAINTENANCE_IN &&
		    c->sa == SCSI_MI_REPORT_SUPPORTED_TMFS)
			CHECK_THAT(R->sense.field == m->len_at && n < 4);
		tried++;
	}
	assert_true(tried > of_type(100, 20));
}

static void test_data_in_needs_no_reader(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_rows(c)
	{
		const struct template *m = template_of(c);

		if (c->dir != DIR_IN)
			continue;
		for (uint32_t in = 0; in < 20; in++) {
			good(c, m, cdb);
			if (m && m->len_bytes)
				put_number(cdb, m->len_at, m->len_bytes, 255);
			run(cdb, CDB_MAX, NULL, 0, in);
			CHECK_THAT(R->task.status != SCSI_GOOD ||
				   R->in_len ==
					   MIN((uint64_t)in, R->task.total.in));
		}
	}
}

/* ---- parameter lists ---- */

/* A template for any service action applies to rows without a template of their
 * own. */
static bool has_list(const struct template *m, const struct dev_command *c)
{
	return m->list && is_of(m, c) && (m->sa != 0xff || template_of(c) == m);
}

#define for_lists(m, c) for_templates(m) for_rows(c) if (has_list(m, c))

/* A copy of exactly that many bytes, so that a sanitizer reports each read
 * after its end. */
static void run_list(const uint8_t *cdb, unsigned sent)
{
	uint8_t *exact = malloc(sent ? sent : 1);

	assert_non_null(exact);
	memcpy(exact, list, sent);
	run(cdb, CDB_MAX, exact, sent, 0);
	free(exact);
}

static void test_parameter_list_is_good_as_it_is(void **state)
{
	uint8_t cdb[CDB_MAX];
	unsigned seen = 0;

	(void)state;
	for_lists(m, c)
	{
		run_list(cdb, good(c, m, cdb));
		/* Except for actions that need a registration ... */
		CHECK_THAT(R->task.status == SCSI_GOOD ||
			   R->task.status == SCSI_RESERVATION_CONFLICT ||
			   /* ... and the action that needs lost
			    * reservations. */
			   (c->sa == SCSI_PROUT_REPLACE_LOST &&
			    R->sense.asc == ASC_INVALID_RELEASE));
		seen++;
	}
	assert_true(seen >= of_type(20, 0));
}

static bool is_enough(const struct template *m, unsigned n)
{
	return m->any || (m->least && n == m->least);
}

/* First the initiator sends less than the CDB says, then the CDB says the same
 * length. */
static void cut_at(const struct dev_command *c, const struct template *m,
		   unsigned cut)
{
	uint8_t cdb[CDB_MAX];

	good(c, m, cdb);
	run_list(cdb, cut);
	if (!is_enough(m, cut))
		CHECK_THAT(R->task.status != SCSI_GOOD);
	if (!m->len_bytes)
		return;
	put_number(cdb, m->len_at, m->len_bytes, cut);
	run_list(cdb, cut);
	if (cut && !is_enough(m, cut))
		CHECK_THAT(R->task.status != SCSI_GOOD);
	CHECK_THAT(R->task.status != SCSI_CHECK_CONDITION ||
		   R->sense.key == SENSE_ILLEGAL_REQUEST);
}

static void test_parameter_list_cut_at_each_byte(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_lists(m, c)
	{
		unsigned n = good(c, m, cdb);

		for (unsigned cut = 0; cut < n; cut++)
			cut_at(c, m, cut);
	}
}

static void test_parameter_list_damaged_at_each_bit(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_lists(m, c)
	{
		unsigned n = good(c, m, cdb);

		for (unsigned bit = 0; bit < n * 8; bit++) {
			good(c, m, cdb);
			list[bit / 8] ^= (uint8_t)BIT(bit % 8);
			run_list(cdb, n);
		}
	}
}

static void test_parameter_list_of_ones(void **state)
{
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_lists(m, c)
	{
		unsigned n = good(c, m, cdb);

		for (unsigned at = 0; at < n; at++) {
			good(c, m, cdb);
			memset(list + at, 0xff, MIN(8u, n - at));
			run_list(cdb, n);
		}
	}
}

/* ---- service actions and operation codes ---- */

static void test_every_opcode_and_service_action(void **state)
{
	static const uint8_t zeros[65536];

	(void)state;
	for (unsigned op = 0; op < 256; op++)
		for (unsigned sa = 0; sa < 32; sa++) {
			const uint8_t cdb[CDB_MAX] = { (uint8_t)op,
						       (uint8_t)sa, [7] = 24, 0,
						       (uint8_t)sa };
			bool known, ours;
			const struct dev_command *c =
				dev_command_find(R->server, type, cdb, &known);

			ours = c &&
			       dev_command_has(dev_lu_get(R->server, 0), c);
			known = (known || c) &&
				dev_command_any(R->server,
						dev_lu_get(R->server, 0),
						(uint8_t)op);
			run(cdb, CDB_MAX, zeros, sizeof(zeros), 64);
			/* 7Fh has CONTROL with NACA in this byte. */
			dev_nexus_clear_aca(R->nexus, 0, nothing_left, NULL);
			if (!ours && known && c && c->flags & CMD_TAGS)
				CHECK_THAT(refused(ASC_INVALID_OPCODE));
			else if (!ours && known)
				CHECK_THAT(refused(ASC_INVALID_FIELD_IN_CDB) &&
					   R->sense.field ==
						   (op == 0x7f ? 8 : 1));
			else if (!ours)
				CHECK_THAT(refused(ASC_INVALID_OPCODE));
			else
				CHECK_THAT(!refused(ASC_INVALID_OPCODE));
		}
}

/* ---- LBA and length ---- */

/* taken returns how the unit reads n blocks in a field of that width. */
static uint64_t taken(const struct dev_command *c, unsigned at, unsigned bytes,
		      uint64_t n)
{
	uint8_t cdb[CDB_MAX];

	good(c, template_of(c), cdb);
	put_number(cdb, at, bytes, n);
	fx_begin(R, cdb, CDB_MAX, 0, 0);
	dev_task_end(&R->task);
	return R->task.own.blocks;
}

/* blocks_at returns the offset of the number of blocks; 0: the row has none. */
static unsigned blocks_at(const struct dev_command *c, unsigned *bytes)
{
	static const struct {
		uint8_t cdb_len, at, bytes;
	} places[] = { { 6, 4, 1 },   { 12, 6, 3 },  { 10, 7, 2 }, { 12, 6, 4 },
		       { 16, 10, 4 }, { 16, 12, 2 }, { 16, 13, 1 } };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		uint64_t n = 3 + (1ull << (8 * places[i].bytes - 7));

		*bytes = places[i].bytes;
		if (places[i].cdb_len == c->len &&
		    taken(c, places[i].at, *bytes, 3) == 3 &&
		    taken(c, places[i].at, *bytes, n) == n &&
		    c->usage[places[i].at])
			return places[i].at;
	}
	return 0;
}

static unsigned lba_at(const struct dev_command *c)
{
	return c->len == 32 ? 12 : 2;
}

/* lba_bytes returns the width of the LBA; 0: the row has none. */
static unsigned lba_bytes(const struct dev_command *c)
{
	unsigned bytes = c->len >= 16 ? 8 : c->len == 6 ? 2 : 4;
	uint8_t cdb[CDB_MAX];

	good(c, template_of(c), cdb);
	put_number(cdb, lba_at(c), bytes, 5);
	fx_begin(R, cdb, CDB_MAX, 0, 0);
	dev_task_end(&R->task);
	return R->task.lba == 5 ? bytes : 0;
}

/* wants returns the data-out that the command needs, at most all data. */
static uint32_t wants(const uint8_t *cdb)
{
	fx_begin(R, cdb, CDB_MAX, FX_MAX, 0);
	dev_task_end(&R->task);
	return (uint32_t)MIN(R->task.total.out, (uint64_t)FX_MAX);
}

static void one_edge(const struct dev_command *c, uint64_t lba, uint64_t blocks)
{
	static uint8_t data[FX_MAX];
	unsigned bytes = lba_bytes(c), n, at = blocks_at(c, &n);
	uint64_t mask = n == 4 ? UINT32_MAX : BIT(8 * n) - 1;
	uint8_t cdb[CDB_MAX];

	if (bytes < 8)
		lba &= bytes == 2 ? UINT16_MAX : UINT32_MAX;
	good(c, template_of(c), cdb);
	put_number(cdb, lba_at(c), bytes, lba);
	if (at)
		put_number(cdb, at, n, blocks);
	blocks = at ? blocks & mask : 0;
	if (c->len == 6 && blocks == 0)
		blocks = 256;
	run(cdb, CDB_MAX, data, wants(cdb), FX_MAX);
	if (refused(ASC_INVALID_FIELD_IN_CDB))
		CHECK_THAT(R->sense.field == at);
	else if (refused(ASC_LBA_OUT_OF_RANGE))
		CHECK_THAT(
			R->sense.has_info ==
				(descriptors || lba <= UINT32_MAX) &&
			R->sense.info ==
				(R->sense.has_info ? MAX(lba, nblocks()) : 0) &&
			(lba >= nblocks() || blocks > nblocks() - lba));
	else if (R->task.status == SCSI_GOOD)
		CHECK_THAT(lba <= nblocks() && blocks <= nblocks() - lba);
	else
		CHECK_THAT(refused(ASC_INVALID_FIELD_IN_IU) ||
			   R->sense.key == SENSE_MISCOMPARE);
}

static void all_edges(void)
{
	const uint64_t lbas[] = { 0,
				  1,
				  nblocks() - 1,
				  nblocks(),
				  nblocks() + 1,
				  0x1fffff,
				  INT32_MAX,
				  UINT32_MAX,
				  1ull << 32,
				  INT64_MAX,
				  1ull << 63,
				  (1ull << 63) + nblocks(),
				  UINT64_MAX >> 9,
				  UINT64_MAX - 1,
				  UINT64_MAX };
	const uint64_t blocks[] = {
		0,	    1,	       2,	 nblocks(),	 nblocks() + 1,
		UINT16_MAX, INT32_MAX, 1u << 31, UINT32_MAX - 1, UINT32_MAX
	};
	unsigned tried = 0;

	for_rows(c)
	{
		if (!lba_bytes(c))
			continue;
		tried++;
		for (size_t i = 0; i < ARRAY_LEN(lbas); i++)
			for (size_t j = 0; j < ARRAY_LEN(blocks); j++)
				one_edge(c, lbas[i], blocks[j]);
	}
	assert_true(tried >= of_type(24, 2));
}

static void test_lba_and_length_at_the_edges_sbc3_4_5(void **state)
{
	(void)state;
	all_edges();
}

/* Sense data in descriptor format, which can hold each LBA. */
static int open_with_descriptors(void **state)
{
	descriptors = true;
	return open_all(state);
}

static int close_with_descriptors(void **state)
{
	descriptors = false;
	return close_fixture(state);
}

static void test_lba_and_length_with_descriptor_sense_spc4_4_5_2(void **state)
{
	(void)state;
	all_edges();
}

/* ---- a read-only unit ---- */

static int open_protected(void **state)
{
	protected = true;
	return open_all(state);
}

static int close_protected(void **state)
{
	protected = false;
	return close_fixture(state);
}

static void test_nothing_is_written_where_nothing_may_be(void **state)
{
	static uint8_t data[FX_MAX];
	uint8_t cdb[CDB_MAX];
	unsigned tried = 0;

	(void)state;
	for_rows(c)
	{
		unsigned n = good(c, template_of(c), cdb);

		memcpy(data, list, n);
		run(cdb, CDB_MAX, data, MAX(n, FX_BLOCK), 64);
		CHECK_THAT(changes == 0);
		if (!(c->flags & CMD_WRITES))
			continue;
		CHECK_THAT(R->task.status == SCSI_CHECK_CONDITION &&
			   R->sense.key == SENSE_DATA_PROTECT &&
			   R->sense.asc == ASC_WRITE_PROTECTED);
		tried++;
	}
	assert_true(tried >= of_type(15, 0));
}

/* ---- random input ---- */

static uint32_t dice(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return (uint32_t)(s >> 16);
}

static void test_anything_within_the_usage_mask(void **state)
{
	static uint8_t data[8192];
	uint8_t cdb[CDB_MAX];

	(void)state;
	for_rows(c) for (unsigned i = 0; i < 100; i++)
	{
		good(c, template_of(c), cdb);
		memcpy(data, list, sizeof(list));
		for (unsigned k = dice() % 4; k; k--) {
			unsigned at = 1 + dice() % (c->len - 1u);

			cdb[at] = (uint8_t)dice() & c->usage[at];
		}
		if (c->op == SCSI_VARIABLE_LENGTH)
			put_be16(cdb + 8, c->sa);
		else if (c->flags & CMD_SA)
			cdb[1] = (uint8_t)((cdb[1] & ~0x1f) | c->sa);
		for (unsigned k = dice() % 4; k; k--)
			data[dice() % 64] = (uint8_t)dice();
		run(cdb, CDB_MAX, data, dice() % sizeof(data),
		    dice() % sizeof(data));
	}
}

#define A(name) cmocka_unit_test_setup_teardown(name, open_all, close_fixture)

#define D(name)                                               \
 cmocka_unit_test_setup_teardown(name, open_with_descriptors, \
				 close_with_descriptors)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A(test_rows_are_whole_and_all_are_reported_spc4_6_35),
		A(test_rows_that_change_the_unit),
		A(test_cdb_of_every_length),
		A(test_bytes_behind_a_cdb),
		A(test_each_reserved_bit_spc4_4_5_2_4_2),
		A(test_each_bit_that_counts),
		A(test_naca_of_each_command_sam5_5_2),
		A(test_allocation_length_cuts_spc4_4_2_5_6),
		A(test_data_in_needs_no_reader),
		A(test_parameter_list_is_good_as_it_is),
		A(test_parameter_list_cut_at_each_byte),
		A(test_parameter_list_damaged_at_each_bit),
		A(test_parameter_list_of_ones),
		A(test_every_opcode_and_service_action),
		A(test_lba_and_length_at_the_edges_sbc3_4_5),
		A(test_anything_within_the_usage_mask),
		cmocka_unit_test_setup_teardown(
			test_nothing_is_written_where_nothing_may_be,
			open_protected, close_protected),
		D(test_lba_and_length_with_descriptor_sense_spc4_4_5_2),
		D(test_parameter_list_damaged_at_each_bit),
		D(test_parameter_list_cut_at_each_byte),
	};

	return run_for_each_type(tests);
}
