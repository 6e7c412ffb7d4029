/* SPDX-License-Identifier: BSD-2-Clause */
/* orwrite_test.c: ORWRITE(32) and the generations of ORWRITE (SBC-4 §§4.27,
 * 5.11). */
#include "base/pi.h"
#include "dev_case.h"
#include "device/unit/unit.h"

#define SET    0
#define CHANGE 1
#define WIRE   (FX_BLOCK + PI_LEN)
#define LBA    5u
#define OTHERS 99 /* not a generation */

static uint8_t data[3 * WIRE];
static struct bs *hold;

/* open_strict opens a unit that has ORWRITE(32) for every protection type. */
static void open_strict(struct bs *store)
{
	static const struct dev_lu_config strict = { .strict = true };

	R->lu = &strict;
	fx_open(R, store, false);
	CMD(0, 0, NULL, 0);
}

static int open_plain(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	open_strict(fx_ram(R));
	return 0;
}

static int open_protected(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	open_strict(fx_protected(R, fx_ram(R), 1));
	return 0;
}

static int open_on_hold(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	hold = bs_hold_new(fx_ram(R));
	open_strict(hold);
	return 0;
}

static void make_cdb(uint8_t cdb[32], unsigned bmop, uint8_t policy,
		     uint32_t expected, uint32_t next, uint32_t blocks)
{
	memset(cdb, 0, 32);
	cdb[0] = SCSI_VARIABLE_LENGTH;
	cdb[2] = (uint8_t)bmop;
	cdb[3] = policy;
	cdb[7] = 24;
	put_be16(cdb + 8, SCSI_VL_ORWRITE_32);
	put_be64(cdb + 12, LBA);
	put_be32(cdb + 20, expected);
	put_be32(cdb + 24, next);
	put_be32(cdb + 28, blocks);
}

/* An ORWRITE of one block whose bytes all have the same value. */
static int orwrite(unsigned bmop, uint8_t policy, uint32_t expected,
		   uint32_t next, uint8_t byte)
{
	uint8_t cdb[32];

	make_cdb(cdb, bmop, policy, expected, next, 1);
	memset(data, byte, FX_BLOCK);
	return fx_run(R, cdb, 32, data, FX_BLOCK, 0);
}

static int orwrite_16(uint8_t byte)
{
	memset(data, byte, FX_BLOCK);
	return CMD(FX_BLOCK, 0, data, SCSI_ORWRITE_16, [9] = LBA, [13] = 1);
}

static void expect_mismatch(void)
{
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_ORWRITE_GENERATION);
	assert_int_equal(ASC_ORWRITE_GENERATION, 0x2c0c);
}

static void expect_byte(uint8_t byte)
{
	for (unsigned i = 0; i < FX_BLOCK; i++)
		assert_int_equal(R->medium[LBA * FX_BLOCK + i], byte);
	assert_int_equal(R->medium[LBA * FX_BLOCK - 1], 0);
	assert_int_equal(R->medium[(LBA + 1) * FX_BLOCK], 0);
}

/* The state after power on: generations 0 and 0; no stale generation is
 * accepted. */
static void expect_first(void)
{
	uint8_t byte = R->medium[LBA * FX_BLOCK];

	assert_int_equal(orwrite(SET, 0, 0, 0, byte), SCSI_GOOD);
	orwrite(SET, 0, 1, 0, 0xff);
	expect_mismatch();
	assert_int_equal(orwrite_16(byte), SCSI_GOOD);
	expect_byte(byte);
}

/* ---- the two operations ---- */

static void test_set_and_change_sbc4_4_27(void **state)
{
	(void)state;
	expect_first();
	assert_int_equal(orwrite(SET, 0, 0, 0, 0x0f), SCSI_GOOD);
	expect_byte(0x0f);
	assert_int_equal(orwrite(SET, 0, 0, 0, 0x30), SCSI_GOOD);
	expect_byte(0x3f);
	assert_int_equal(orwrite(CHANGE, 7, 0, 8, 0x1c), SCSI_GOOD);
	expect_byte(0x1c);
	assert_int_equal(orwrite(SET, 0, 8, 0, 0x01), SCSI_GOOD);
	expect_byte(0x1d);
	/* §4.27.3: a change with another expected generation changes
	 * nothing. */
	orwrite(CHANGE, 3, 0, 9, 0);
	expect_mismatch();
	expect_byte(0x1d);
	orwrite(SET, 0, 9, 0, 0xff);
	expect_mismatch();
	assert_int_equal(orwrite(CHANGE, 7, 8, 0, 0xff), SCSI_GOOD);
	expect_byte(0x1d);
	expect_first();
}

/* A set operation ignores the other fields (table 70). */
static void test_set_takes_no_new_generation(void **state)
{
	(void)state;
	assert_int_equal(orwrite(SET, 1, 0, 77, 1), SCSI_GOOD);
	assert_int_equal(orwrite(SET, 0xf, 0, 77, 2), SCSI_GOOD);
	expect_byte(3);
	expect_first();
}

static void test_reserved_codes_sbc4_5_11(void **state)
{
	static const uint8_t good[] = { 0, 2, 3, 5, 7 };
	uint32_t now = 0;

	(void)state;
	for (unsigned bmop = 2; bmop < 8; bmop++) {
		orwrite(bmop, 7, 0, 1, 0xff);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		assert_int_equal(R->sense.field, 2);
		assert_int_equal(R->sense.bit, 2);
	}
	for (uint8_t policy = 0; policy < 16; policy++) {
		if (memchr(good, policy, sizeof(good))) {
			assert_int_equal(orwrite(CHANGE, policy, now, now + 1,
						 0xff),
					 SCSI_GOOD);
			now++;
			continue;
		}
		orwrite(CHANGE, policy, now, now + 1, 0xff);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		assert_int_equal(R->sense.field, 3);
		assert_int_equal(R->sense.bit, 3);
	}
	expect_byte(0);
}

enum want {
	PA,  /* the unit performs the operation */
	DN,  /* the unit does nothing */
	CCG, /* the command fails */
};

static void set_ends(uint32_t generation, enum want want)
{
	uint8_t before = R->medium[LBA * FX_BLOCK];

	orwrite(SET, 0, generation, 0, (uint8_t)(before + 1));
	if (want == CCG)
		expect_mismatch();
	else
		assert_int_equal(R->task.status, SCSI_GOOD);
	expect_byte(want == PA ? before | (uint8_t)(before + 1) : before);
}

/* Table 29: the current generation, the previous one, any other. */
static void test_stale_generations_by_policy_sbc4_4_27_4(void **state)
{
	static const struct {
		uint8_t policy;
		enum want before, other;
	} table[] = {
		{ 0, PA, CCG }, { 2, DN, CCG },	 { 3, PA, PA },
		{ 5, DN, DN },	{ 7, CCG, CCG },
	};
	uint32_t now = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		assert_int_equal(orwrite(CHANGE, table[i].policy, now, now + 10,
					 0),
				 SCSI_GOOD);
		set_ends(now + 10, PA);
		set_ends(now, table[i].before);
		set_ends(OTHERS, table[i].other);
		if (now)
			set_ends(0, table[i].other);
		now += 10;
		/* ORWRITE(16) uses generation 0 (§4.27.2.2). */
		orwrite_16(0xff);
		if ((i ? table[i].other : table[i].before) == CCG)
			expect_mismatch();
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
	}
}

/* ---- fewer data than the CDB says ---- */

static void test_no_blocks_at_all(void **state)
{
	uint8_t cdb[32];

	(void)state;
	make_cdb(cdb, CHANGE, 7, 0, 4, 0);
	assert_int_equal(fx_run(R, cdb, 32, NULL, 0, 0), SCSI_GOOD);
	make_cdb(cdb, SET, 7, 0, 4, 0);
	fx_run(R, cdb, 32, NULL, 0, 0);
	expect_mismatch();
	make_cdb(cdb, SET, 7, 4, 4, 0);
	assert_int_equal(fx_run(R, cdb, 32, NULL, 0, 0), SCSI_GOOD);
}

/* The unit refuses a change with fewer blocks, and performs a set operation on
 * the blocks that arrived. */
static void test_less_data_than_blocks(void **state)
{
	uint8_t cdb[32];

	(void)state;
	memset(data, 0x11, sizeof(data));
	make_cdb(cdb, SET, 0, 0, 0, 2);
	assert_int_equal(fx_run(R, cdb, 32, data, FX_BLOCK, 0), SCSI_GOOD);
	expect_byte(0x11);
	memset(data, 0, sizeof(data));
	make_cdb(cdb, CHANGE, 7, 0, 1, 2);
	fx_run(R, cdb, 32, data, FX_BLOCK, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	expect_byte(0x11);
	expect_first();
}

static void test_out_of_range(void **state)
{
	uint8_t cdb[32];

	(void)state;
	make_cdb(cdb, CHANGE, 7, 0, 1, 1);
	put_be64(cdb + 12, FX_BLOCKS);
	fx_run(R, cdb, 32, data, FX_BLOCK, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	expect_first();
}

/* A change whose write fails has no effect. */
static void test_a_change_that_fails(void **state)
{
	(void)state;
	close_fixture(state);
	for (unsigned nth = 1; nth <= 2; nth++) {
		memset(R, 0, sizeof(*R));
		open_strict(bs_fault_new(fx_ram(R),
					 BIT(BS_READ) | BIT(BS_WRITE), nth, 0,
					 ERR_MEDIUM));
		orwrite(CHANGE, 7, 0, 1, 0);
		assert_check(SENSE_MEDIUM_ERROR,
			     nth == 1 ? ASC_UNRECOVERED_READ_ERROR
				      : ASC_WRITE_ERROR);
		expect_first();
		if (nth == 1)
			fx_close(R);
	}
}

/* ---- resets ---- */

static void test_resets_sbc4_4_27_3(void **state)
{
	(void)state;
	assert_int_equal(orwrite(CHANGE, 3, 0, 6, 0), SCSI_GOOD);
	fx_reset(dev_lu_get(R->server, 0));
	CMD(0, 0, NULL, 0); /* takes the attention */
	set_ends(6, PA);
	set_ends(OTHERS, PA);
	dev_lu_hard_reset(dev_lu_get(R->server, 0));
	expect_first();
}

/* ---- protection information ---- */

static void fill(uint8_t byte, uint16_t app)
{
	memset(data, byte, FX_BLOCK);
	pi_put(data + FX_BLOCK, pi_guard(data, FX_BLOCK), app, LBA);
}

static void expect_kept(uint8_t byte, uint16_t app)
{
	assert_int_equal(CMD(0, WIRE, NULL, SCSI_READ_10,
			     0x20, [5] = LBA, [8] = 1),
			 SCSI_GOOD);
	fill(byte, app);
	assert_memory_equal(R->in, data, WIRE);
}

static void test_protection_sbc4_4_27_1(void **state)
{
	uint8_t cdb[32];

	(void)state;
	make_cdb(cdb, SET, 0, 0, 0, 1);
	cdb[10] = 0x20;
	fill(0x0f, 0x1111);
	assert_int_equal(fx_run(R, cdb, 32, data, WIRE, 0), SCSI_GOOD);
	expect_kept(0x0f, 0x1111);
	fill(0x30, 0x2222);
	assert_int_equal(fx_run(R, cdb, 32, data, WIRE, 0), SCSI_GOOD);
	expect_kept(0x3f, 0x2222);
	make_cdb(cdb, CHANGE, 7, 0, 1, 1);
	cdb[10] = 0x20;
	fill(0x1c, 0x3333);
	data[0] ^= 1;
	fx_run(R, cdb, 32, data, WIRE, 0);
	assert_check(SENSE_ABORTED_COMMAND, ASC_GUARD_CHECK_FAILED);
	fill(0x1c, 0x3333);
	assert_int_equal(fx_run(R, cdb, 32, data, WIRE, 0), SCSI_GOOD);
	expect_kept(0x1c, 0x3333);
	/* Without protection information on the wire the unit computes it. */
	assert_int_equal(orwrite(SET, 0, 1, 0, 0x01), SCSI_GOOD);
	expect_kept(0x1d, 0);
}

/* §4.21.2.4: with type 2 only without protection information. */
static void test_type_2(void **state)
{
	uint8_t cdb[32];

	(void)state;
	assert_int_equal(orwrite(SET, 0, 0, 0, 0x0f), SCSI_GOOD);
	expect_byte(0x0f);
	assert_int_equal(orwrite(CHANGE, 7, 0, 1, 0x03), SCSI_GOOD);
	expect_byte(0x03);
	make_cdb(cdb, SET, 0, 1, 0, 1);
	cdb[10] = 0x20;
	fx_run(R, cdb, 32, data, WIRE, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
}

static void test_no_protection_no_field(void **state)
{
	uint8_t cdb[32];

	(void)state;
	make_cdb(cdb, SET, 0, 0, 0, 1);
	cdb[10] = 0x20;
	fx_run(R, cdb, 32, data, WIRE, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 10);
}

/* An initiator without 32-byte CDBs sees the unit as if there were no
 * generations. */
static void test_without_32_byte_cdbs(void **state)
{
	struct dev_lu *lu = dev_lu_get(R->server, 0);

	(void)state;
	assert_int_equal(orwrite(CHANGE, 7, 0, 8, 0), SCSI_GOOD);
	orwrite_16(1);
	expect_mismatch();
	lu->cfg.strict = false;
	assert_int_equal(orwrite_16(1), SCSI_GOOD);
	expect_byte(1);
	orwrite(SET, 0, 8, 0, 2);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
}

/* ---- concurrent operations ---- */

static struct dev_task set, change, late;
static unsigned nended;

static void ended(struct dev_task *t)
{
	(void)t;
	nended++;
}

static void send(struct dev_task *t, const uint8_t cdb[32])
{
	memset(t, 0, sizeof(*t));
	t->nexus = R->nexus;
	memcpy(t->cdb, cdb, 32);
	t->cdb_len = 32;
	t->edtl.out = FX_BLOCK;
	t->done = ended;
	assert_int_equal(dev_task_begin(t), 0);
	memset(t->own.mem.buf, 0x0f, FX_BLOCK);
	dev_task_execute(t);
}

/* A change waits for set operations on any blocks, and later operations wait
 * for the change: each operation belongs to one generation. */
static void test_a_change_separates_generations(void **state)
{
	uint8_t cdb[32];

	(void)state;
	nended = 0;
	make_cdb(cdb, SET, 0, 0, 0, 1);
	put_be64(cdb + 12, 100);
	send(&set, cdb);
	assert_int_equal(bs_hold_waiting(hold), 1);
	make_cdb(cdb, CHANGE, 7, 0, 1, 1);
	send(&change, cdb);
	make_cdb(cdb, SET, 0, 0, 0, 1);
	put_be64(cdb + 12, 200);
	send(&late, cdb);
	assert_int_equal(bs_hold_waiting(hold), 1);
	while (bs_hold_waiting(hold))
		bs_hold_release(hold, 1);
	assert_int_equal(nended, 3);
	assert_int_equal(set.status, SCSI_GOOD);
	assert_int_equal(change.status, SCSI_GOOD);
	assert_int_equal(late.status, SCSI_CHECK_CONDITION);
	assert_int_equal(R->medium[100 * FX_BLOCK], 0x0f);
	assert_int_equal(R->medium[200 * FX_BLOCK], 0);
	dev_task_end(&set);
	dev_task_end(&change);
	dev_task_end(&late);
}

#define S(name) cmocka_unit_test_setup_teardown(name, open_plain, close_fixture)
#define P1(name) \
 cmocka_unit_test_setup_teardown(name, open_protected, close_fixture)
#define P2(name) \
 cmocka_unit_test_setup_teardown(name, open_type_2, close_fixture)
#define H(name) \
 cmocka_unit_test_setup_teardown(name, open_on_hold, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(test_set_and_change_sbc4_4_27),
		S(test_set_takes_no_new_generation),
		S(test_reserved_codes_sbc4_5_11),
		S(test_stale_generations_by_policy_sbc4_4_27_4),
		S(test_no_blocks_at_all),
		S(test_less_data_than_blocks),
		S(test_out_of_range),
		S(test_a_change_that_fails),
		S(test_resets_sbc4_4_27_3),
		P1(test_protection_sbc4_4_27_1),
		P2(test_type_2),
		S(test_no_protection_no_field),
		S(test_without_32_byte_cdbs),
		H(test_a_change_separates_generations),
	};

	return cmocka_run_group_tests_name("device orwrite", tests, NULL, NULL);
}
