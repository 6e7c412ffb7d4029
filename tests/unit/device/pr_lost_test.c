/* SPDX-License-Identifier: BSD-2-Clause */
/* pr_lost_test.c: lost persistent reservations (SPC-4 §§5.13.5.3, 5.13.11.3),
 * and registrations of all ports of a device (§7.6.4.6). */
#include "device/reserve/reserve.h"
#include "three.h"

static void lose(struct dev_server *s)
{
	dev_lu_lose_reservations(dev_lu_get(s, 0));
}

static int open_lost(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three.env.save = three_save;
	three.set_up = lose;
	three_begin(false);
	return 0;
}

static int replace(unsigned who, uint64_t key, uint64_t sa_key, uint8_t type,
		   uint8_t aptpl)
{
	const uint8_t cdb[16] = { 0x5f, 0x08, type, [8] = 24 };
	uint8_t list[24] = { [20] = aptpl };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	return three_run(who, cdb, list, 24, 0);
}

static int read_one(unsigned who)
{
	return RUN(who, 512, 0x28, [8] = 1);
}

static void expect_lost(unsigned who)
{
	expect_sense(who, SENSE_DATA_PROTECT, ASC_RESERVATION_LOST);
}

static void test_commands_served_while_reservations_are_lost(void **state)
{
	(void)state;
	tur(A);
	expect_lost(A);
	read_one(B);
	expect_lost(B);
	RUN(A, 255, 0x5e, 0, [8] = 255); /* READ KEYS */
	expect_lost(A);
	RUN(A, 255, 0x1a, 8, 0x3f, 0, 255); /* MODE SENSE */
	expect_lost(A);
	RUN(A, 0, 0x1b, 0, 0, 0, 0); /* STOP */
	expect_lost(A);
	RUN(A, 0, 0x16); /* RESERVE(6) */
	expect_lost(A);
	/* the list of §5.13.5.2 */
	assert_int_equal(RUN(A, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(RUN(A, 18, 0x03, 0, 0, 0, 18), SCSI_GOOD);
	assert_int_equal(RUN(A, 16, 0xa0, [9] = 16), SCSI_GOOD);
	assert_int_equal(RUN(A, 64, 0x4d, 0, 0x40, [8] = 64), SCSI_GOOD);
	assert_int_equal(RUN(A, 4, 0x3c, 0x0b, [8] = 4), SCSI_GOOD);
	assert_int_equal(RUN(A, 0, 0x1b, 0, 0, 0, 1), SCSI_GOOD); /* START */
}

/* A record that cannot be read stays in the state file for the next process:
 * only REPLACE LOST RESERVATION replaces the record (§5.13.5.3.2). */
static void test_a_reset_keeps_the_loss(void **state)
{
	(void)state;
	three_reset(A);
	assert_int_equal(three.saves, 0);
	tur(B); /* the attention of the reset */
	tur(B);
	expect_lost(B);
	assert_int_equal(replace(A, 0, 1, 1, 0), SCSI_CHECK_CONDITION);
	assert_int_equal(replace(A, 0, 1, 1, 0), SCSI_GOOD);
	assert_int_equal(three.saves, 1);
}

static void test_replace_lost_reservation_spc4_5_13_11_3(void **state)
{
	const uint8_t *p = three.i[A].in;

	(void)state;
	/* Every other service action is refused, with any key. */
	RUN(A, 0, 0x5f, 0x03, [8] = 24);
	expect_lost(A);
	replace(A, 1, 2, RSV_TYPE_EA, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(three.i[A].sense.field, 0);
	replace(A, 0, 0, RSV_TYPE_EA, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(three.i[A].sense.field, 8);
	replace(A, 0, 2, 4, 0); /* a reservation without a type */
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	read_one(A);
	expect_lost(A);
	/* The loss persists until a REPLACE LOST RESERVATION: then the record
	 * is removed or replaced. */
	three.saved_len = 7;
	assert_int_equal(replace(A, 0, 0xabc, RSV_TYPE_EA, 0), SCSI_GOOD);
	assert_int_equal(three.saved_len, 0);
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(tur(B), SCSI_GOOD); /* no unit attention */
	assert_int_equal(read_one(B), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(RUN(A, 255, 0x5e, 1, [8] = 255), SCSI_GOOD);
	assert_int_equal(get_be32(p), 0); /* PRGENERATION */
	assert_int_equal(get_be64(p + 8), 0xabc);
	assert_int_equal(p[21], RSV_TYPE_EA);
	/* After the replacement nothing is lost. */
	replace(A, 0, 1, RSV_TYPE_WE, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_RELEASE);
	assert_int_equal(RUN(A, 8, 0x5e, 2, [8] = 8), SCSI_GOOD);
	assert_int_equal(p[2] & 0x80, 0x80); /* RLR_C */
}

static void test_replace_with_aptpl_is_kept(void **state)
{
	(void)state;
	three.save_result = ERR_MEDIUM;
	replace(B, 0, 5, RSV_TYPE_WE_AR, 1);
	expect_sense(B, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	tur(B);
	expect_lost(B);
	three.save_result = 0;
	assert_int_equal(replace(B, 0, 5, RSV_TYPE_WE_AR, 1), SCSI_GOOD);
	three.set_up = NULL;
	three_restart();
	assert_int_equal(RUN(A, 255, 0x5e, 1, [8] = 255), SCSI_GOOD);
	assert_int_equal(three.i[A].in[21], RSV_TYPE_WE_AR);
}

/* ---- TPID FORMAT 00b ---- */

static size_t put_device(uint8_t *p, const char *name)
{
	size_t n = MAX(round_up4(strlen(name) + 1), (size_t)20);

	memset(p, 0, 4 + n);
	p[0] = 0x05;
	put_be16(p + 2, (uint16_t)n);
	memcpy(p + 4, name, strlen(name));
	return 4 + n;
}

static int register_device(unsigned who, const char *name, uint64_t key)
{
	uint8_t cdb[16] = { 0x5f }, list[300] = { [20] = 0x08 };
	size_t n = put_device(list + 28, name);

	put_be64(list + 8, key);
	put_be32(list + 24, (uint32_t)n);
	put_be32(cdb + 5, (uint32_t)(28 + n));
	return three_run(who, cdb, list, (uint32_t)(28 + n), 0);
}

static unsigned keys_of(unsigned who)
{
	assert_int_equal(RUN(who, 2048, 0x5e, 0, [7] = 8), SCSI_GOOD);
	return get_be32(three.i[who].in + 4) / 8;
}

static void test_all_known_ports_of_a_device_spc4_7_6_4_6(void **state)
{
	struct dev_nexus_config cfg = { .worker = 2,
					.initiator_port =
						"iqn.i1,i,0x800000000099",
					.target_port = "iqn.t,t,0x0001",
					.relative_target_port = 1 };
	struct dev_nexus *more = dev_nexus_open(three.server, &cfg);

	(void)state;
	/* B is iqn.i1, and so is a nexus on the worker of C; iqn.i10 is another
	 * initiator. */
	strcpy(cfg.initiator_port, "iqn.i10,i,0x800000000099");
	cfg.worker = 1;
	dev_nexus_close(dev_nexus_open(three.server, &cfg));
	assert_int_equal(register_device(A, "iqn.i1", 7), SCSI_GOOD);
	assert_int_equal(keys_of(A), 3);
	assert_int_equal(RUN(B, 255, 0x5e, 3, [8] = 255), SCSI_GOOD);
	assert_int_equal(
		RUN(A, 0, 0x5f, 0x01, RSV_TYPE_WE_RO, [8] = 24),
		SCSI_CHECK_CONDITION); /* the parameter list is missing */
	dev_nexus_close(more);
	three_settle();
	/* The name is unknown: only the requester is registered. */
	assert_int_equal(register_device(C, "iqn.unknown", 9), SCSI_GOOD);
	assert_int_equal(keys_of(C), 4);
}

static void test_bad_device_names(void **state)
{
	uint8_t cdb[16] = { 0x5f, 0x07, [8] = 48 }, move[48] = { [19] = 1 };

	(void)state;
	register_device(A, "iqn.i1,i,0x1", 7);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	register_device(A, "", 7);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	/* REGISTER AND MOVE needs the name of one port. */
	put_be32(move + 20, (uint32_t)put_device(move + 24, "iqn.i1"));
	three_run(A, cdb, move, 48, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(keys_of(A), 0);
}

#define L(name) cmocka_unit_test_setup_teardown(name, open_lost, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		L(test_commands_served_while_reservations_are_lost),
		L(test_a_reset_keeps_the_loss),
		L(test_replace_lost_reservation_spc4_5_13_11_3),
		L(test_replace_with_aptpl_is_kept),
		T(test_all_known_ports_of_a_device_spc4_7_6_4_6),
		T(test_bad_device_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
