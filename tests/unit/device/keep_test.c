/* SPDX-License-Identifier: BSD-2-Clause */
/* keep_test.c: data that a unit persists: saved mode pages (SPC-4 §6.9),
 * identifying information (§5.6); and the format of the record. */
#include "base/crc32c.h"
#include "device/keep/keep.h"
#include "device/primary/mode.h"
#include "three.h"

#define SP	0x01
#define PF	0x10
#define CURRENT 0
#define SAVED	3
#define SWP	0x08
#define TAS	0x40

/* MODE SELECT(6) of the control page: software write protect. */
static void send_swp(unsigned who, uint8_t flags, uint8_t swp)
{
	static const uint8_t cdb[16] = { 0x15, PF, 0, 0, 16 };
	const uint8_t list[16] = { 0,	0,   0, 0, 0x0a, 10,   0x02, 0x10,
				   swp, TAS, 0, 0, 0xff, 0xff, 0,    0 };
	uint8_t with[16];

	memcpy(with, cdb, 16);
	with[1] |= flags;
	three_send(who, with, list, 16, 0);
}

static int select_swp(unsigned who, uint8_t flags, uint8_t swp)
{
	send_swp(who, flags, swp);
	three_settle();
	return three_finish(who);
}

/* swp_of returns SWP of the control page. */
static uint8_t swp_of(unsigned who, uint8_t pc)
{
	assert_int_equal(RUN(who, 255, 0x1a, 8, (uint8_t)(pc << 6 | 0x0a), 0,
			     255),
			 SCSI_GOOD);
	return three.i[who].in[4 + 4];
}

/* SPC-4 §7.5.8: SWP inhibits writing from the end of the MODE SELECT on, so a
 * WRITE whose data arrive later is refused. */
static void test_swp_while_data_came_in_spc4_7_5_8(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	struct dev_task *t = three_announce(B, cdb, 512, 0);

	(void)state;
	assert_int_equal(t->out_len, 512);
	assert_int_equal(select_swp(A, 0, SWP), SCSI_GOOD);
	memset(t->own.mem.buf, 0, 512);
	dev_task_execute(t);
	assert_int_equal(three_finish(B), SCSI_CHECK_CONDITION);
	assert_int_equal(three.i[B].sense.asc, ASC_SOFTWARE_WRITE_PROTECTED);
}

static void reset(void)
{
	three_reset(A);
	all_sense_taken();
}

static void test_what_is_saved_stays_spc4_6_9(void **state)
{
	(void)state;
	assert_int_equal(select_swp(A, SP, SWP), SCSI_GOOD);
	expect_attention(B, ASC_MODE_PARAMETERS_CHANGED);
	assert_int_equal(swp_of(B, SAVED), SWP);
	assert_int_equal(three.i[B].in[4] & 0x80, 0x80); /* PS */
	no_sense_left(C);
	/* Current values differ from saved values, and end with a reset. */
	assert_int_equal(select_swp(C, 0, 0), SCSI_GOOD);
	no_sense_left(A);
	assert_int_equal(swp_of(A, CURRENT), 0);
	assert_int_equal(swp_of(A, SAVED), SWP);
	reset();
	assert_int_equal(swp_of(A, CURRENT), SWP);
	assert_int_equal(select_swp(C, 0, 0), SCSI_GOOD);
	three_restart();
	assert_int_equal(swp_of(A, CURRENT), SWP);
	assert_int_equal(swp_of(A, SAVED), SWP);
	/* All values are the defaults again: the record is empty. */
	assert_int_equal(select_swp(A, SP, 0), SCSI_GOOD);
	assert_int_equal(three.unit_len, 0);
}

/* TAS = 0 is not the default, so it is kept. */
static void test_saved_tas_stays_spc4_7_5_8(void **state)
{
	static const uint8_t cdb[16] = { 0x15, PF | SP, 0, 0, 16 };
	static const uint8_t list[16] = { 0, 0, 0, 0, 0x0a, 10,	  0x02, 0x10,
					  0, 0, 0, 0, 0xff, 0xff, 0,	0 };

	(void)state;
	swp_of(A, CURRENT);
	assert_int_equal(three.i[A].in[4 + 5] & TAS, TAS);
	three_send(A, cdb, list, 16, 0);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	three_restart();
	swp_of(A, CURRENT);
	assert_int_equal(three.i[A].in[4 + 5] & TAS, 0);
	swp_of(A, SAVED);
	assert_int_equal(three.i[A].in[4 + 5] & TAS, 0);
}

/* §6.9.1: with SP the unit saves the current values, with those of the list. */
static void test_an_empty_list_saves_too(void **state)
{
	(void)state;
	assert_int_equal(select_swp(A, 0, SWP), SCSI_GOOD);
	assert_int_equal(three.saves, 0);
	assert_int_equal(RUN(A, 0, 0x55, PF | SP), SCSI_GOOD);
	assert_int_equal(three.saves, 1);
	three_restart();
	assert_int_equal(swp_of(A, CURRENT), SWP);
}

static void test_good_follows_the_flush(void **state)
{
	(void)state;
	three.save_later = true;
	send_swp(B, SP, SWP);
	three_settle();
	assert_false(three.i[B].done);
	assert_int_equal(swp_of(A, CURRENT), 0);
	three_saved();
	three_settle();
	assert_int_equal(three_finish(B), SCSI_GOOD);
	no_sense_left(A);
	assert_int_equal(swp_of(A, CURRENT), SWP);
	/* The save fails: the values stay unchanged. */
	three.save_result = ERR_MEDIUM;
	three.save_later = false;
	assert_int_equal(select_swp(B, SP, 0), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	assert_int_equal(swp_of(A, CURRENT), SWP);
	assert_int_equal(swp_of(A, SAVED), SWP);
}

/* The initiator logs out while its command waits for the save. */
static void test_abort_while_it_is_saved(void **state)
{
	(void)state;
	three.save_later = true;
	send_swp(B, SP, SWP);
	three_settle();
	assert_int_equal(dev_task_abort(&three.i[B].task, three_released), 0);
	assert_false(three.i[B].released);
	three_saved();
	three_settle();
	assert_true(three.i[B].released);
	assert_false(three.i[B].done);
	dev_task_end(&three.i[B].task);
	/* The unit serves the next command. */
	three.save_later = false;
	no_sense_left(A);
	assert_int_equal(select_swp(A, SP, 0), SCSI_GOOD);
}

static void test_two_changes_one_after_the_other(void **state)
{
	static const uint8_t name[16] = { 0xa4, 0x06, [9] = 3 };

	(void)state;
	three.save_later = true;
	send_swp(A, SP, SWP);
	three_send(B, name, "abc", 3, 0);
	three_settle();
	assert_int_equal(three.saves, 1);
	three_saved();
	three_settle();
	assert_int_equal(three.saves, 2);
	assert_true(three.i[A].done != three.i[B].done);
	three_saved();
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_int_equal(three_finish(B), SCSI_GOOD);
	three.save_later = false;
	three_restart();
	assert_int_equal(swp_of(A, CURRENT), SWP);
	assert_int_equal(RUN(A, 99, 0xa3, 0x05, [9] = 99), SCSI_GOOD);
	assert_int_equal(three.i[A].in_len, 7);
}

static void test_where_nothing_can_be_kept(void **state)
{
	(void)state;
	assert_int_equal(select_swp(A, SP, SWP), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(three.i[A].sense.field, 1);
	assert_int_equal(three.i[A].sense.bit, 0);
	assert_int_equal(swp_of(A, CURRENT), 0);
	assert_int_equal(three.i[A].in[4] & 0x80, 0); /* PS */
	RUN(A, 255, 0x1a, 8, SAVED << 6 | 0x0a, 0, 255);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_SAVING_NOT_SUPPORTED);
	RUN(A, 0, 0xa4,
	    0x06); /* of this operation code the unit has SET PRIORITY only */
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(three.i[A].sense.field, 1);
	/* The list of identifying information types is empty. */
	assert_int_equal(RUN(A, 99, 0xa3, 0x05, [9] = 99), SCSI_GOOD);
	assert_int_equal(three.i[A].in_len, 4);
	assert_int_equal(get_be16(three.i[A].in + 2), 0);
}

/* ---- identifying information ---- */

static int set_info(unsigned who, uint8_t type, const void *info, uint32_t len)
{
	uint8_t cdb[16] = { 0xa4, 0x06, [10] = (uint8_t)(type << 1) };

	put_be32(cdb + 6, len);
	return three_run(who, cdb, info, len, 0);
}

static void expect_info(unsigned who, uint8_t type, const void *info,
			size_t len)
{
	uint8_t cdb[16] = { 0xa3, 0x05, [10] = (uint8_t)(type << 1) };

	put_be32(cdb + 6, 1024);
	assert_int_equal(three_run(who, cdb, NULL, 0, 1024), SCSI_GOOD);
	assert_int_equal(three.i[who].in_len, 4 + len);
	assert_int_equal(get_be16(three.i[who].in + 2), len);
	assert_memory_equal(three.i[who].in + 4, info, len);
}

static void test_identifying_information_spc4_6_43(void **state)
{
	static const char text[] = "Kasse 3, B\xc3\xbcro";
	uint8_t most[513];

	(void)state;
	memset(most, 0xee, sizeof(most));
	assert_int_equal(set_info(B, 0, most, 512), SCSI_GOOD);
	expect_attention(A, ASC_DEVICE_IDENTIFIER_CHANGED);
	expect_attention(C, ASC_DEVICE_IDENTIFIER_CHANGED);
	assert_int_equal(tur(B), SCSI_GOOD);
	assert_int_equal(set_info(B, 2, text, sizeof(text)), SCSI_GOOD);
	no_sense_left(A);
	no_sense_left(C);
	expect_info(A, 0, most, 512);
	expect_info(C, 2, text, sizeof(text));
	reset();
	three_restart();
	expect_info(A, 0, most, 512);
	expect_info(A, 2, text, sizeof(text));
	/* An empty list deletes the information. */
	assert_int_equal(set_info(A, 0, NULL, 0), SCSI_GOOD);
	assert_int_equal(set_info(A, 2, NULL, 0), SCSI_GOOD);
	expect_info(A, 0, NULL, 0);
	assert_int_equal(three.unit_len, 0);
}

static void test_identifying_information_refused(void **state)
{
	static const uint8_t over[513];

	(void)state;
	set_info(A, 0, over, 513);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(three.i[A].sense.field, 6);
	set_info(A, 2, over, 257);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	set_info(A, 1, over, 4); /* restricted by SCC-2 */
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(three.i[A].sense.field, 10);
	for (size_t i = 0; i < 6; i++) {
		static const char *const bad[] = { "a\0b",	   "ab\xff",
						   "a\xc3(",	   "\xe2\x82",
						   "\xc0\xaf\x00", "abcd" };
		static const uint8_t len[] = { 4, 4, 4, 3, 3, 4 };

		set_info(A, 2, bad[i], len[i]);
		expect_sense(A, SENSE_ILLEGAL_REQUEST,
			     ASC_INVALID_FIELD_IN_PARAMETERS);
	}
	assert_int_equal(three.saves, 0);
	/* the supported types and their maximum lengths (table 228) */
	assert_int_equal(RUN(A, 99, 0xa3, 0x05, [9] = 99, [10] = 0xfe),
			 SCSI_GOOD);
	assert_int_equal(three.i[A].in_len, 12);
	assert_int_equal(get_be32(three.i[A].in + 4), 0x00000200);
	assert_int_equal(get_be32(three.i[A].in + 8), 0x04000100);
}

/* ---- the record ---- */

static void fill(void)
{
	assert_int_equal(select_swp(A, SP, SWP), SCSI_GOOD);
	assert_int_equal(set_info(A, 0, "x", 1), SCSI_GOOD);
	assert_int_equal(set_info(A, 2, "text", 5), SCSI_GOOD);
}

static void sign(uint8_t *p, size_t len)
{
	put_be32(p + 8,
		 crc32c_wire(crc32c_update(CRC32C_SEED, p + 12, len - 12)));
}

static struct dev_control modes;

/* decode reads a record as dev_lu_restore does, and its mode values into
 * `modes`. */
static int decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		  struct dev_record *r)
{
	int err = keep_decode(lu, p, len, r);

	return err ? err : dev_mode_from_record(lu, r, &modes);
}

static void test_damage_is_seen(void **state)
{
	static struct dev_record r;
	const struct dev_lu *lu = dev_lu_get(three.server, 0);
	uint8_t *p = three.unit, bad[4096];

	(void)state;
	fill();
	assert_int_equal(decode(lu, p, three.unit_len, &r), 0);
	assert_true(modes.swp);
	for (size_t n = 0; n < three.unit_len; n++) {
		memcpy(bad, p, n);
		assert_int_not_equal(decode(lu, bad, n, &r), 0);
	}
	for (size_t bit = 0; bit < 8 * three.unit_len; bit++) {
		memcpy(bad, p, three.unit_len);
		bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(decode(lu, bad, three.unit_len, &r), 0);
	}
	memcpy(bad, p, three.unit_len);
	bad[12] ^= 1; /* the UUID */
	sign(bad, three.unit_len);
	assert_int_equal(decode(lu, bad, three.unit_len, &r), ERR_NOT_FOUND);
	/* a repeated item, an unknown item, QERR 10b */
	memcpy(bad, p, three.unit_len);
	put_be16(bad + 28, 9);
	sign(bad, three.unit_len);
	assert_int_equal(decode(lu, bad, three.unit_len, &r), ERR_FORMAT);
	memcpy(bad, p, three.unit_len);
	memcpy(bad + three.unit_len, p + 28, three.unit_len - 28);
	sign(bad, 2 * three.unit_len - 28);
	assert_int_equal(decode(lu, bad, 2 * three.unit_len - 28, &r),
			 ERR_FORMAT);
	memcpy(bad, p, three.unit_len);
	for (size_t at = 32; at < three.unit_len; at += 2u + bad[at + 1])
		if ((bad[at] & 0x3f) == 0x0a) {
			bad[at + 3] |= 0x04;
			break;
		}
	sign(bad, three.unit_len);
	assert_int_equal(decode(lu, bad, three.unit_len, &r), ERR_FORMAT);
}

/* A record cut between two items is valid; a record cut elsewhere is
 * truncated. */
static void test_a_signed_record_cut_at_each_byte(void **state)
{
	static struct dev_record r;
	const struct dev_lu *lu = dev_lu_get(three.server, 0);
	uint8_t cut[4096];
	size_t whole = 28; /* the end of the last item */

	(void)state;
	fill();
	for (size_t n = 28; n <= three.unit_len; n++) {
		if (n >= whole + 4 &&
		    n == whole + 4 + get_be16(three.unit + whole + 2))
			whole = n;
		memcpy(cut, three.unit, n);
		sign(cut, n);
		assert_int_equal(decode(lu, cut, n, &r),
				 n == whole ? 0 : ERR_TRUNCATED);
	}
	assert_int_equal(whole, three.unit_len);
}

/* Kinds of items ascend, each occurs at most once, and each has its length. */
static void test_items_in_a_signed_record(void **state)
{
	static const struct {
		uint16_t kind[2], len[2];
		int err;
	} rows[] = {
		{ { 2, 3 }, { 1, 1 }, 0 },
		{ { 2, 3 }, { 512, 256 }, 0 },
		{ { 2, 3 }, { 513, 256 }, ERR_FORMAT },
		{ { 2, 3 }, { 512, 257 }, ERR_FORMAT },
		{ { 2, 3 }, { 0, 1 }, ERR_FORMAT },
		{ { 2, 3 }, { 1, 0 }, ERR_FORMAT },
		{ { 3, 2 }, { 1, 1 }, ERR_FORMAT },
		{ { 2, 2 }, { 1, 1 }, ERR_FORMAT },
		{ { 0, 2 }, { 1, 1 }, ERR_FORMAT },
		{ { 2, 5 }, { 1, 1 }, ERR_FORMAT },
	};
	static struct dev_record r;
	const struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	fill();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t p[2048] = { 0 };
		size_t at = 28;

		memcpy(p, three.unit, 28);
		for (unsigned k = 0; k < 2; k++) {
			put_be16(p + at, rows[i].kind[k]);
			put_be16(p + at + 2, rows[i].len[k]);
			memset(p + at + 4, 'x', rows[i].len[k]);
			at += 4u + rows[i].len[k];
		}
		sign(p, at);
		assert_int_equal(decode(lu, p, at, &r), rows[i].err);
	}
}

/* The values that an erasure in progress cannot have. */
static void test_an_erasure_in_a_signed_record(void **state)
{
	static const struct {
		uint8_t state, flags, passes, pass, pi_type, zero;
		uint8_t at, size; /* the low byte */
		uint16_t pattern;
		bool ok;
	} rows[] = {
		{ 1, 0, 0, 0, 0, 0, 0, 9, 0, true },
		{ 2, 0, 0, 0, 0, 0, 9, 9, 0, true },
		{ 1, 0x07, 31, 30, 3, 0, 1, 9, 4, true },
		{ 1, 0x08, 0, 0, 0, 0, 1, 9, 0, true },
		{ 1, 0, 1, 0, 0, 0, 1, 9, KEEP_PATTERN_MAX, true },
		{ 0, 0, 0, 0, 0, 0, 0, 9, 0, false },
		{ 3, 0, 0, 0, 0, 0, 0, 9, 0, false },
		{ 1, 0x10, 0, 0, 0, 0, 0, 9, 0, false },
		{ 1, 0x09, 0, 0, 0, 0, 0, 9, 0, false },
		{ 1, 0x08, 1, 0, 0, 0, 0, 9, 4, false },
		{ 1, 0, 32, 0, 0, 0, 0, 9, 4, false },
		{ 1, 0, 2, 2, 0, 0, 0, 9, 4, false },
		{ 1, 0, 0, 1, 0, 0, 0, 9, 0, false },
		{ 1, 0, 0, 0, 4, 0, 0, 9, 0, false },
		{ 1, 0, 0, 0, 0, 1, 0, 9, 0, false },
		{ 1, 0, 0, 0, 0, 0, 10, 9, 0, false },
		{ 1, 0, 1, 0, 0, 0, 0, 9, 0, false },
		{ 1, 0, 0, 0, 0, 0, 0, 9, 4, false },
		{ 1, 0, 1, 0, 0, 0, 1, 9, KEEP_PATTERN_MAX + 1, false },
	};
	static struct dev_record r;
	const struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	fill();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static uint8_t p[KEEP_PATTERN_MAX + 128];
		size_t len = 24 + rows[i].pattern;
		uint8_t *e = p + 32;

		memset(p, 0, sizeof(p));
		memcpy(p, three.unit, 28);
		put_be16(p + 28, 4);
		put_be16(p + 30, (uint16_t)len);
		e[0] = rows[i].state;
		e[1] = rows[i].flags;
		e[2] = rows[i].passes;
		e[3] = rows[i].pass;
		e[4] = rows[i].pi_type;
		e[7] = rows[i].zero;
		e[15] = rows[i].at;
		e[23] = rows[i].size;
		memset(e + 24, 0x5a, rows[i].pattern);
		sign(p, 32 + len);
		assert_int_equal(decode(lu, p, 32 + len, &r),
				 rows[i].ok ? 0 : ERR_FORMAT);
		if (!rows[i].ok)
			continue;
		assert_int_equal(r.erase.state, rows[i].state);
		assert_int_equal(r.erase.formats, rows[i].flags & 1);
		assert_int_equal(r.erase.unrestricted, rows[i].flags >> 1 & 1);
		assert_int_equal(r.erase.invert, rows[i].flags >> 2 & 1);
		assert_int_equal(r.erase.rekey, rows[i].flags >> 3 & 1);
		assert_int_equal(r.erase.passes, rows[i].passes);
		assert_int_equal(r.erase.pass, rows[i].pass);
		assert_int_equal(r.erase.pi_type, rows[i].pi_type);
		assert_int_equal(r.erase.at, rows[i].at);
		assert_int_equal(r.erase.size, rows[i].size);
		assert_int_equal(r.erase.pattern_len, rows[i].pattern);
	}
}

/* A record with a page that the unit does not have, or a bit that cannot
 * change: the record of another version, or of other options. The unit ignores
 * both. */
static void test_what_is_unknown_is_left_out(void **state)
{
	static struct dev_record r;
	const struct dev_lu *lu = dev_lu_get(three.server, 0);
	uint8_t p[256] = { 0 };

	(void)state;
	assert_int_equal(select_swp(A, SP, SWP), SCSI_GOOD);
	memcpy(p, three.unit, 28);
	put_be16(p + 28, 1);
	put_be16(p + 30, 4 + 12);
	p[32] = 0x3e;
	p[33] = 2;
	p[36] = 0x0a;
	p[37] = 10;
	p[38] = 0xff & ~0xe0;
	p[40] = 0xff;
	sign(p, 48);
	assert_int_equal(decode(lu, p, 48, &r), 0);
	assert_true(modes.swp && modes.d_sense);
	assert_int_equal(modes.tst, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TK(test_swp_while_data_came_in_spc4_7_5_8),
		TK(test_what_is_saved_stays_spc4_6_9),
		TK(test_saved_tas_stays_spc4_7_5_8),
		TK(test_an_empty_list_saves_too),
		TK(test_good_follows_the_flush),
		TK(test_abort_while_it_is_saved),
		TK(test_two_changes_one_after_the_other),
		T(test_where_nothing_can_be_kept),
		TK(test_identifying_information_spc4_6_43),
		TK(test_identifying_information_refused),
		TK(test_damage_is_seen),
		TK(test_a_signed_record_cut_at_each_byte),
		TK(test_items_in_a_signed_record),
		TK(test_an_erasure_in_a_signed_record),
		TK(test_what_is_unknown_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
