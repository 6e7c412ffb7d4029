/* SPDX-License-Identifier: BSD-2-Clause */
/* apptag_test.c: the Application Tag mode page (SBC-4 §6.5.3), and the checks
 * that ATMPE and ATO select (SPC-4 §7.5.8). */
#include "base/pi.h"
#include "dev_case.h"
#include "device/block/protect.h"
#include "device/keep/keep.h"
#include "device/primary/mode.h"

#define WIRE   (FX_BLOCK + PI_LEN)
#define HEADER 8u  /* the header of MODE SELECT(10) */
#define RANGE  24u /* a descriptor */
#define LAST   0x80
#define LBAS   FX_BLOCKS

static uint8_t wire[16 * WIRE];
static uint8_t list[HEADER + DEV_TAGS_PAGE_LEN];

/* ---- the mode page ---- */

static void begin_list(void)
{
	memset(list, 0, sizeof(list));
	list[HEADER] = 0x4a;
	list[HEADER + 1] = 2;
	put_be16(list + HEADER + 2, DEV_TAGS_PAGE_LEN - 4);
}

static uint8_t *range(unsigned i)
{
	return list + HEADER + 16 + i * RANGE;
}

static void put_range(unsigned i, uint64_t lba, uint64_t n, uint16_t tag,
		      bool last)
{
	range(i)[0] = last ? LAST : 0;
	put_be16(range(i) + 6, tag);
	put_be64(range(i) + 8, lba);
	put_be64(range(i) + 16, n);
}

static int send_list(void)
{
	return CMD(sizeof(list), 0, list, SCSI_MODE_SELECT_10, 0x10, 0, 0, 0, 0,
		   0, 0, sizeof(list));
}

/* expect_bad expects that the byte at `at` of the page is refused. */
static void expect_bad(unsigned at)
{
	send_list();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, HEADER + at);
}

#define FIELD(i, at) (16 + (i)*RANGE + (at))

static const uint8_t *sense_page(uint8_t pc)
{
	assert_int_equal(CMD(0, 512, NULL, SCSI_MODE_SENSE_10, 8,
			     (uint8_t)(pc << 6 | 0x0a), 2, 0, 0, 0, 2, 0),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(list));
	return R->in + HEADER;
}

static void set_control(bool ato, bool atmpe, bool dpicz)
{
	const uint8_t page[4 + 12] = {
		[4] = 0x0a,
		[5] = 10,
		[6] = (uint8_t)(0x02 | (dpicz ? 0x08 : 0)),
		[7] = 0x10,
		[9] = (uint8_t)((ato ? 0x80 : 0) | (atmpe ? 0x20 : 0)),
		[12] = 0xff,
		[13] = 0xff,
	};

	assert_int_equal(CMD(16, 0, page, SCSI_MODE_SELECT_6, 0x10, 0, 0, 16),
			 SCSI_GOOD);
}

/* Blocks 0 to 9 must have 1111h, all other blocks 2222h. */
static void two_ranges(void)
{
	begin_list();
	put_range(0, 0, 10, 0x1111, false);
	put_range(1, 10, LBAS - 1 - 10, 0x2222, true);
	assert_int_equal(send_list(), SCSI_GOOD);
}

static void test_the_page_sbc4_6_5_3(void **state)
{
	uint8_t none[DEV_TAGS_PAGE_LEN] = { 0x4a, 2, 0, 204 };

	(void)state;
	assert_memory_equal(sense_page(0), none, sizeof(none));
	two_ranges();
	assert_memory_equal(sense_page(0), list + HEADER, DEV_TAGS_PAGE_LEN);
	assert_memory_equal(sense_page(2), none,
			    sizeof(none)); /* default values */
	begin_list();
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++)
		put_range(i, UINT64_MAX, UINT64_MAX, UINT16_MAX, true);
	assert_memory_equal(sense_page(1), list + HEADER, DEV_TAGS_PAGE_LEN);
	/* MODE SENSE(6) returns the page alone, but not after all other
	 * pages. */
	assert_int_equal(CMD(0, 255, NULL, SCSI_MODE_SENSE_6, 8, 0x0a, 2, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in[0], 4 + DEV_TAGS_PAGE_LEN - 1);
	CMD(0, 255, NULL, SCSI_MODE_SENSE_6, 8, 0x3f, 0xff, 255);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 3);
	assert_int_equal(CMD(0, 255, NULL, SCSI_MODE_SENSE_6, 8, 0x3f, 0, 255),
			 SCSI_GOOD);
}

static void test_no_protection_no_page(void **state)
{
	(void)state;
	CMD(0, 512, NULL, SCSI_MODE_SENSE_10, 8, 0x0a, 2, 0, 0, 0, 2, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_ranges_that_can_not_be_sbc4_6_5_3_2(void **state)
{
	(void)state;
	begin_list();
	put_range(0, 1, 10, 0, false); /* the first range does not begin at 0 */
	expect_bad(FIELD(0, 8));
	put_range(0, 0, 10, 0, false); /* no range has LAST */
	expect_bad(FIELD(DEV_TAG_RANGES - 1, 0));
	put_range(1, 11, LBAS - 12, 0, true); /* a gap */
	expect_bad(FIELD(1, 8));
	put_range(1, 9, LBAS - 10, 0, true); /* an overlap */
	expect_bad(FIELD(1, 8));
	put_range(1, 10, LBAS - 9, 0, true); /* after the last block */
	expect_bad(FIELD(1, 16));
	put_range(1, 10, LBAS - 12, 0, true); /* before the last block */
	expect_bad(FIELD(1, 16));
	put_range(1, 10, UINT64_MAX, 0, true);
	expect_bad(FIELD(1, 16));
	put_range(1, 10, 0, 0, true); /* LAST in an empty range */
	expect_bad(FIELD(1, 16));
	list[HEADER + 7] = 1; /* reserved */
	expect_bad(7);
	list[HEADER + 7] = 0;
	put_range(1, 10, LBAS - 11, 0, true);
	assert_int_equal(send_list(), SCSI_GOOD);
	put_range(1, 10, LBAS - 10, 0, true); /* all blocks */
	assert_int_equal(send_list(), SCSI_GOOD);
	/* Empty descriptors, and those after LAST, are ignored. */
	put_range(0, 7, 0, 5, false);
	put_range(1, 0, 10, 6, false);
	put_range(2, 0, 0, 7, false);
	put_range(3, 10, LBAS - 11, 8, true);
	put_range(4, 3, 3, 9, true);
	assert_int_equal(send_list(), SCSI_GOOD);
	/* A refused list has changed nothing. */
	begin_list();
	put_range(0, 0, 1, 0, true);
	expect_bad(FIELD(0, 16));
	assert_int_equal(get_be16(sense_page(0) + FIELD(3, 6)), 8);
}

/* ---- the checks ---- */

static void fill(unsigned n, uint16_t app, uint32_t ref)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *p = wire + i * WIRE;

		memset(p, (int)(ref + i), FX_BLOCK);
		pi_put(p + FX_BLOCK, pi_guard(p, FX_BLOCK), app, ref + i);
	}
}

static int rw10(uint8_t op, uint8_t field, uint8_t lba, uint8_t n, bool out)
{
	uint32_t len = n * (field ? WIRE : FX_BLOCK);

	return CMD(out ? len : 0, out ? 0 : len, wire, op,
		   (uint8_t)(field << 5), 0, 0, 0, lba, 0, 0, n);
}

static void expect_tag(uint64_t lba)
{
	assert_check(SENSE_ABORTED_COMMAND, ASC_APP_TAG_CHECK_FAILED);
	assert_true(R->sense.has_info);
	assert_int_equal(R->sense.info, lba);
}

/* GUARD and TAGS: the values of RDPROTECT and WRPROTECT that check the field,
 * as bits. */
#define TAGS 0x27u

static void test_what_reading_checks_sbc4_5_16(void **state)
{
	(void)state;
	fill(4, 0x1111,
	     8); /* blocks 8 to 11: the last two have the wrong tag */
	assert_int_equal(rw10(SCSI_WRITE_10, 3, 8, 4, true), SCSI_GOOD);
	two_ranges();
	for (unsigned on = 0; on < 4; on++) {
		set_control(on & 1, on & 2, false);
		for (uint8_t field = 0; field < 6; field++) {
			bool checked = on == 3 && TAGS >> field & 1;

			rw10(SCSI_READ_10, field, 8, 4, false);
			if (checked)
				expect_tag(10);
			else
				assert_int_equal(R->task.status, SCSI_GOOD);
			assert_int_equal(rw10(SCSI_READ_10, field, 8, 2, false),
					 SCSI_GOOD);
			rw10(SCSI_VERIFY_10, field, 8, 4, false);
			if (checked)
				expect_tag(10);
			else
				assert_int_equal(R->task.status, SCSI_GOOD);
		}
	}
	CMD(0, FX_BLOCK, NULL, SCSI_READ_6, 0, 0, 10, 1);
	expect_tag(10);
	/* SPC-4 §7.5.8: DPICZ disables the checks of 000b */
	set_control(true, true, true);
	assert_int_equal(rw10(SCSI_READ_10, 0, 8, 4, false), SCSI_GOOD);
	rw10(SCSI_READ_10, 1, 8, 4, false);
	expect_tag(10);
	/* Every value checks the guard. */
	set_control(true, true, false);
	R->medium[9 * FX_BLOCK] ^= 1;
	rw10(SCSI_READ_10, 0, 9, 1, false);
	assert_check(SENSE_ABORTED_COMMAND, ASC_GUARD_CHECK_FAILED);
}

static void test_what_writing_checks_sbc4_5_40(void **state)
{
	(void)state;
	two_ranges();
	set_control(true, true, false);
	for (uint8_t field = 1; field < 6; field++) {
		fill(4, 0x1111, 8);
		rw10(SCSI_WRITE_10, field, 8, 4, true);
		if (TAGS >> field & 1)
			expect_tag(10);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
		fill(2, 0x2222, 10);
		assert_int_equal(rw10(SCSI_WRITE_10, field, 10, 2, true),
				 SCSI_GOOD);
	}
	fill(1, 0x2222, 9);
	rw10(SCSI_WRITE_SAME_10, 1, 9, 1, true);
	expect_tag(9);
	fill(1, 0x1111, 9);
	assert_int_equal(rw10(SCSI_WRITE_SAME_10, 1, 9, 1, true), SCSI_GOOD);
}

/* A tag of FFFFh is never checked (§4.21.3), and the unit writes this tag if
 * the page gives none (§5.40, table 133). */
static void test_tags_without_a_range(void **state)
{
	const uint8_t *pi = R->pi + 10 * PI_LEN;

	(void)state;
	two_ranges();
	set_control(true, true, false);
	memset(wire, 0x5a, sizeof(wire));
	assert_int_equal(rw10(SCSI_WRITE_10, 0, 8, 4, true), SCSI_GOOD);
	assert_int_equal(get_be16(pi + 2),
			 0); /* the filter stores tags inverted */
	assert_int_equal(rw10(SCSI_READ_10, 0, 8, 4, false), SCSI_GOOD);
	assert_memory_equal(R->in, wire, 4 * FX_BLOCK);
	assert_int_equal(rw10(SCSI_READ_10, 1, 8, 4, false), SCSI_GOOD);
	fill(2, 0xffff, 9);
	assert_int_equal(rw10(SCSI_WRITE_10, 1, 9, 2, true), SCSI_GOOD);
	/* A block that was never written has no tag, so the unit does not check
	 * it. */
	assert_int_equal(rw10(SCSI_READ_10, 0, 20, 4, false), SCSI_GOOD);
}

/* Commands that read before they write check the tags of both. */
static void test_compare_and_write_and_orwrite(void **state)
{
	static const uint8_t at[16] = { [9] = 10, [13] = 1 };
	uint8_t cdb[16];

	(void)state;
	fill(1, 0x1111, 10);
	assert_int_equal(rw10(SCSI_WRITE_10, 3, 10, 1, true), SCSI_GOOD);
	two_ranges();
	set_control(true, true, false);
	memset(wire, 10, 2 * FX_BLOCK);
	memcpy(cdb, at, 16);
	cdb[0] = SCSI_COMPARE_AND_WRITE;
	fx_run(R, cdb, 16, wire, 2 * FX_BLOCK, 0);
	expect_tag(10);
	cdb[0] = SCSI_ORWRITE_16;
	fx_run(R, cdb, 16, wire, FX_BLOCK, 0);
	expect_tag(10);
	fill(1, 0x2222, 10);
	assert_int_equal(rw10(SCSI_WRITE_10, 1, 10, 1, true), SCSI_GOOD);
	memset(wire, 10, FX_BLOCK);
	memset(wire + FX_BLOCK, 0x0c, FX_BLOCK);
	cdb[0] = SCSI_COMPARE_AND_WRITE;
	assert_int_equal(fx_run(R, cdb, 16, wire, 2 * FX_BLOCK, 0), SCSI_GOOD);
	memset(wire, 1, FX_BLOCK);
	cdb[0] = SCSI_ORWRITE_16;
	assert_int_equal(fx_run(R, cdb, 16, wire, FX_BLOCK, 0), SCSI_GOOD);
	assert_int_equal(rw10(SCSI_READ_10, 1, 10, 1, false), SCSI_GOOD);
	assert_int_equal(R->in[0], 0x0d);
	assert_int_equal(get_be16(R->in + FX_BLOCK), pi_guard(R->in, FX_BLOCK));
	assert_int_equal(get_be16(R->in + FX_BLOCK + 2), 0xffff);
}

/* With type 2 the 32-byte commands bring their own tags; other commands give no
 * reference tags. */
static void test_type_2(void **state)
{
	uint8_t cdb[32] = {
		SCSI_VARIABLE_LENGTH, [7] = 24, [10] = 0x20, [19] = 10, [31] = 1
	};

	(void)state;
	fill(1, 0x1111, 5000);
	put_be16(cdb + 8, SCSI_VL_WRITE_32);
	put_be32(cdb + 20, 5000);
	two_ranges();
	set_control(true, true, false);
	assert_int_equal(fx_run(R, cdb, 32, wire, WIRE, 0), SCSI_GOOD);
	rw10(SCSI_READ_10, 0, 10, 1, false);
	expect_tag(10);
	put_be16(cdb + 8, SCSI_VL_READ_32);
	assert_int_equal(fx_run(R, cdb, 32, NULL, 0, WIRE), SCSI_GOOD);
	put_be16(cdb + 8, SCSI_VL_WRITE_32);
	fill(1, 0x2222, 5000);
	assert_int_equal(fx_run(R, cdb, 32, wire, WIRE, 0), SCSI_GOOD);
	assert_int_equal(rw10(SCSI_READ_10, 0, 10, 1, false), SCSI_GOOD);
}

static void test_type_3(void **state)
{
	(void)state;
	two_ranges();
	set_control(true, true, false);
	fill(1, 0x1111, 77);
	rw10(SCSI_WRITE_10, 1, 10, 1, true);
	expect_tag(10);
	fill(1, 0x2222, 77);
	assert_int_equal(rw10(SCSI_WRITE_10, 1, 10, 1, true), SCSI_GOOD);
	assert_int_equal(rw10(SCSI_READ_10, 0, 10, 1, false), SCSI_GOOD);
}

/* The last range extends to the last block, also after the unit grew; the
 * current page stays valid. */
static void test_the_end_of_the_unit(void **state)
{
	struct dev_lu *lu = dev_lu_get(R->server, 0);
	uint16_t tag = 0;

	(void)state;
	two_ranges();
	assert_true(dev_tag_of(lu, 9, &tag));
	assert_int_equal(tag, 0x1111);
	assert_true(dev_tag_of(lu, LBAS - 1, &tag));
	assert_int_equal(tag, 0x2222);
	assert_true(dev_tag_of(lu, LBAS, &tag));
	lu->blocks = LBAS * 2;
	assert_int_equal(send_list(), SCSI_GOOD);
	range(1)[7] ^= 1;
	expect_bad(FIELD(1, 16));
	lu->blocks = LBAS;
	begin_list();
	assert_int_equal(send_list(), SCSI_GOOD);
	assert_false(dev_tag_of(lu, 9, &tag));
}

/* A FORMAT UNIT while data of a WRITE arrive: a WRITE without protection
 * information is refused as well. */
static void test_formatted_meanwhile(void **state)
{
	static const uint8_t cdb[16] = { SCSI_WRITE_10, [5] = 3, [8] = 1 };

	(void)state;
	two_ranges();
	set_control(true, true, false);
	memset(wire, 0x33, FX_BLOCK);
	assert_int_equal(fx_begin(R, cdb, 16, FX_BLOCK, 0), 0);
	dev_lu_get(R->server, 0)->protection = 0;
	assert_int_equal(fx_execute(R, wire), SCSI_GOOD);
	fx_finish(R);
	assert_int_equal(R->medium[3 * FX_BLOCK], 0x33);
}

/* The saved form: a record that does not fit is an error, a different capacity
 * is not. */
static void test_saved_record(void **state)
{
	struct dev_lu *lu = dev_lu_get(R->server, 0);
	struct dev_control c = { 0 };
	uint8_t p[DEV_MODES_MAX];
	size_t len;

	(void)state;
	two_ranges();
	len = dev_mode_encode(lu, &lu->ctl, p);
	assert_int_equal(dev_mode_decode(lu, p, len, &c), 0);
	assert_true(dev_mode_same(lu, &lu->ctl, &c));
	lu->blocks = LBAS * 2;
	assert_int_equal(dev_mode_decode(lu, p, len, &c), 0);
	lu->blocks = LBAS;
	put_range(1, 11, LBAS - 12, 0, true);
	assert_int_equal(dev_mode_decode(lu, list + HEADER, DEV_TAGS_PAGE_LEN,
					 &c),
			 ERR_FORMAT);
}

#define C1(name) \
 cmocka_unit_test_setup_teardown(name, open_type_1, close_fixture)
#define C2(name) \
 cmocka_unit_test_setup_teardown(name, open_type_2, close_fixture)
#define C3(name) \
 cmocka_unit_test_setup_teardown(name, open_type_3, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C1(test_the_page_sbc4_6_5_3),
		T(test_no_protection_no_page),
		C1(test_ranges_that_can_not_be_sbc4_6_5_3_2),
		C1(test_what_reading_checks_sbc4_5_16),
		C1(test_what_writing_checks_sbc4_5_40),
		C1(test_tags_without_a_range),
		C1(test_compare_and_write_and_orwrite),
		C2(test_type_2),
		C3(test_type_3),
		C1(test_the_end_of_the_unit),
		C1(test_formatted_meanwhile),
		C1(test_saved_record),
	};

	return cmocka_run_group_tests_name("device apptag", tests, NULL, NULL);
}
