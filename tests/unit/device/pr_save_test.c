/* SPDX-License-Identifier: BSD-2-Clause */
/* pr_save_test.c: persistent reservations after a power loss (APTPL, SPC-4
 * §5.13.5), and in a process that takes the unit over. */
#include "base/crc32c.h"
#include "device/reserve/reserve.h"
#include "pr_fixture.h"

/* APTPL is refused if the unit cannot persist registrations. */
static void test_aptpl_is_refused_where_nothing_is_kept(void **state)
{
	(void)state;
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, 0, KA, 0x01),
			 SCSI_CHECK_CONDITION);
	expect_bad_list(A, 20);
}

/* ---- APTPL: SPC-4 §5.13.5 ---- */

static int reg_aptpl(unsigned who)
{
	return out(who, SCSI_PROUT_REGISTER, 0, 0, key_of[who], 0x01);
}

static void test_aptpl_is_kept_before_good(void **state)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, [8] = 24 };
	uint8_t list[24] = { [8] = 1, [20] = 0x01 };

	(void)state;
	assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[2] & 1, 1);
	assert_int_equal(three.i[A].in[3], 0x80);
	three.save_later = true;
	three_send(B, cdb, list, 24, 0);
	three_settle();
	assert_non_null(three.saving);
	assert_false(three.i[B].done);
	expect_keys(0, NULL); /* not in force before the save */
	/* Other changes wait. */
	three_send(A, cdb, list, 24, 0);
	three_settle();
	assert_false(three.i[A].done);
	three_saved();
	three_settle();
	assert_int_equal(three_finish(B), SCSI_GOOD);
	three_saved();
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_int_equal(three.saves, 2);
	assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[3], 0x81);
}

static void test_aptpl_that_cannot_be_kept(void **state)
{
	(void)state;
	assert_int_equal(reg_aptpl(A), SCSI_GOOD);
	three.save_result = ERR_NO_SPACE;
	assert_int_equal(reserve(A, 3), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	expect_reservation(0, 0);
	three.save_result = 0;
	assert_int_equal(reserve(A, 3), SCSI_GOOD);
	expect_reservation(3, KA);
}

static void test_aptpl_outlives_the_power(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(reg_aptpl(A), SCSI_GOOD);
		assert_int_equal(reg_aptpl(B), SCSI_GOOD);
		assert_int_equal(reserve(B, types[i]), SCSI_GOOD);
		three_restart();
		assert_int_equal(generation(), 0); /* §6.15.2 */
		EXPECT_KEYS(KA, KB);
		expect_reservation(types[i], types[i] >= 7 ? 0 : KB);
		assert_int_equal(write_block(C), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(write_block(B), SCSI_GOOD);
		assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[3], 0x81);
		assert_int_equal(clear(A), SCSI_GOOD);
		assert_int_equal(three.saved_len, 0);
		three_restart();
		expect_keys(0, NULL);
	}
}

/* APTPL of the last REGISTER is decisive (§5.13.5). */
static void test_aptpl_switched_off(void **state)
{
	(void)state;
	assert_int_equal(reg_aptpl(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 1), SCSI_GOOD);
	assert_true(three.saved_len > 0);
	assert_int_equal(reg(B), SCSI_GOOD);
	assert_int_equal(three.saved_len, 0);
	three_restart();
	expect_keys(0, NULL);
	expect_reservation(0, 0);
	/* Registrations without APTPL are never saved. */
	three.saves = 0;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 1), SCSI_GOOD);
	assert_int_equal(three.saves, 0);
}

static void test_restore_of_damaged_state(void **state)
{
	const uint8_t *uuid =
		dev_lu_backstore(dev_lu_get(three.server, 0))->uuid;
	uint8_t other[16], bad[THREE_MAX];
	struct rsv_state *s = NULL;

	(void)state;
	reg_aptpl(A);
	reg_aptpl(B);
	reserve(B, 6);
	for (size_t n = 0; n < three.saved_len; n++)
		assert_int_not_equal(rsv_decode(three.saved, n, uuid, &s), 0);
	for (size_t bit = 0; bit < 8 * three.saved_len; bit++) {
		memcpy(bad, three.saved, three.saved_len);
		bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(rsv_decode(bad, three.saved_len, uuid, &s),
				     0);
	}
	memcpy(other, uuid, 16);
	other[0] ^= 1;
	assert_int_equal(rsv_decode(three.saved, three.saved_len, other, &s),
			 ERR_NOT_FOUND);
	assert_null(s);
	assert_int_equal(rsv_decode(three.saved, three.saved_len, uuid, &s), 0);
	rsv_free(s);
}

/* A record with a correct CRC and contents that are not valid. */
static void test_restore_of_nonsense(void **state)
{
	static const struct {
		uint8_t at, value;
	} change[] = {
		{ 28, 2 }, { 28, 9 }, { 29, 1 },  { 31, 2 }, { 31, 0xff },
		{ 33, 1 }, { 33, 3 }, { 32, 1 },  { 28, 0 }, { 28, 7 },
		{ 43, 0 }, { 45, 0 }, { 45, 22 }, { 46, 0 }, { 45, 0xff },
	};
	const uint8_t *uuid =
		dev_lu_backstore(dev_lu_get(three.server, 0))->uuid;
	struct rsv_state *s = NULL;
	uint8_t bad[THREE_MAX];

	(void)state;
	reg_aptpl(A);
	reg_aptpl(B);
	reserve(B, 6);
	for (size_t i = 0; i < ARRAY_LEN(change); i++) {
		memcpy(bad, three.saved, three.saved_len);
		bad[change[i].at] = change[i].value;
		put_be32(bad + 8,
			 crc32c_wire(crc32c_update(CRC32C_SEED, bad + 12,
						   three.saved_len - 12)));
		assert_int_not_equal(rsv_decode(bad, three.saved_len, uuid, &s),
				     0);
	}
}

/* ---- another process takes the unit over ---- */

static struct {
	uint8_t *bytes;
	size_t len;
} handed;

static void take_over(struct dev_server *s)
{
	if (handed.bytes)
		assert_int_equal(dev_lu_take_over(dev_lu_get(s, 0),
						  handed.bytes, handed.len),
				 0);
}

/* Ends the first process and starts the second one. */
static void hand_over(void)
{
	assert_int_equal(dev_lu_hand_over(dev_lu_get(three.server, 0),
					  &handed.bytes, &handed.len),
			 0);
	three.set_up = take_over;
	three_restart();
	three.set_up = NULL;
	free(handed.bytes);
	handed.bytes = NULL;
}

static void test_reservations_are_handed_over(void **state)
{
	(void)state;
	for (unsigned aptpl = 0; aptpl < 2; aptpl++) {
		uint32_t g;

		assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, 0, KA,
				     (uint8_t)aptpl),
				 SCSI_GOOD);
		assert_int_equal(out(B, SCSI_PROUT_REGISTER, 0, 0, KB,
				     (uint8_t)aptpl),
				 SCSI_GOOD);
		assert_int_equal(reserve(B, 6), SCSI_GOOD);
		g = generation();
		hand_over();
		assert_int_equal(generation(), g);
		EXPECT_KEYS(KA, KB);
		expect_reservation(6, KB);
		assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[3],
				 0x80 | aptpl);
		assert_int_equal(write_block(C), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(write_block(A), SCSI_GOOD);
		assert_int_equal(clear(A), SCSI_GOOD);
		all_sense_taken();
	}
	/* without registrations, too (SPC-4 §6.15.2: only a power loss resets
	 * PRGENERATION) */
	assert_true(generation() > 0);
	hand_over();
	assert_true(generation() > 0);
}

static void test_bad_reservations_are_not_taken_over(void **state)
{
	struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	assert_int_equal(dev_lu_hand_over(lu, &handed.bytes, &handed.len), 0);
	assert_null(handed.bytes); /* there are none */
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(dev_lu_hand_over(lu, &handed.bytes, &handed.len), 0);
	for (size_t n = 0; n < handed.len; n++)
		assert_int_not_equal(dev_lu_take_over(lu, handed.bytes, n), 0);
	handed.bytes[4] = 2;
	assert_int_equal(dev_lu_take_over(lu, handed.bytes, handed.len),
			 ERR_FORMAT);
	free(handed.bytes);
	handed.bytes = NULL;
	EXPECT_KEYS(KA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_aptpl_is_refused_where_nothing_is_kept),
		TK(test_aptpl_is_kept_before_good),
		TK(test_aptpl_that_cannot_be_kept),
		TK(test_aptpl_outlives_the_power),
		TK(test_aptpl_switched_off),
		TK(test_restore_of_damaged_state),
		TK(test_restore_of_nonsense),
		TK(test_reservations_are_handed_over),
		TK(test_bad_reservations_are_not_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
