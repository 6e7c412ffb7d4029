/* SPDX-License-Identifier: BSD-2-Clause */
/* shares_test.c: one initiator cannot take all registrations of a unit, however
 * many ports it has or names. Other shares: priority_test.c, token_test.c. */
#include "device/reserve/reserve.h"
#include "three.h"

#define KEY 0xa0a0a0a0a0a0a0a0ull

/* become gives the nexus of that worker another initiator name and port. */
static void rename_initiator(unsigned who, unsigned initiator, unsigned port)
{
	struct dev_nexus_config cfg = { .worker = who,
					.target_port = "iqn.t,t,0x0001",
					.target_name = "iqn.t",
					.relative_target_port = 1,
					.abort_tasks = three_abort,
					.arg = &three.i[who] };

	three_logout(who);
	snprintf(cfg.initiator_port, sizeof(cfg.initiator_port),
		 "iqn.x%u,i,0x8000%08x", initiator, port);
	three.i[who].nexus = dev_nexus_open(three.server, &cfg);
	assert_non_null(three.i[who].nexus);
	no_sense_left(who);
}

static int out(unsigned who, const uint8_t *list, uint32_t len)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT };

	put_be32(cdb + 5, len);
	return three_run(who, cdb, list, len, 0);
}

static int reg_key(unsigned who, uint64_t key, uint64_t sa_key)
{
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	return out(who, list, sizeof(list));
}

static int reg(unsigned who)
{
	return reg_key(who, 0, KEY);
}

/* REGISTER with SPEC_I_PT for n names that no initiator has. */
static int reg_with(unsigned who, unsigned from, unsigned n)
{
	uint8_t list[8192] = { 0 };
	size_t at = 28;

	put_be64(list + 8, KEY);
	list[20] = 0x08;
	for (unsigned i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "iqn.y%u,i,0x1", from + i);
		at += scsi_transportid_put(name, list + at);
	}
	put_be32(list + 24, (uint32_t)(at - 28));
	return out(who, list, (uint32_t)at);
}

static unsigned nkeys(unsigned who)
{
	assert_int_equal(RUN(who, 8192, SCSI_PERSISTENT_RESERVE_IN, 0, 0, 0, 0,
			     0, 0, 0x20, 0),
			 SCSI_GOOD);
	return get_be32(three.i[who].in + 4) / 8;
}

static void expect_no_room(unsigned who)
{
	expect_sense(who, SENSE_ILLEGAL_REQUEST,
		     ASC_INSUFFICIENT_REGISTRATIONS);
}

/* SPC-4 §5.13.7: one initiator registers all of its ports. */
static void test_ports_of_one_initiator(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RSV_SHARE; i++) {
		rename_initiator(A, 1, i);
		assert_int_equal(reg(A), SCSI_GOOD);
	}
	rename_initiator(A, 1, RSV_SHARE);
	assert_int_equal(reg(A), SCSI_CHECK_CONDITION);
	expect_no_room(A);
	assert_int_equal(reg_with(A, 0, 3), SCSI_CHECK_CONDITION);
	expect_no_room(A);
	/* Other initiators can still register. */
	assert_int_equal(reg(B), SCSI_GOOD);
	rename_initiator(C, 2, 0);
	assert_int_equal(reg_with(C, 0, 20), SCSI_GOOD);
	assert_int_equal(nkeys(B), RSV_SHARE + 1 + 21);
	/* The last one can change its key and unregister, which makes room. */
	rename_initiator(A, 1, 3);
	assert_int_equal(reg_key(A, KEY, KEY + 1), SCSI_GOOD);
	assert_int_equal(reg_key(A, KEY + 1, 0), SCSI_GOOD);
	rename_initiator(A, 1, RSV_SHARE);
	assert_int_equal(reg(A), SCSI_GOOD);
}

/* Registrations of other ports count against the share of the registrant. */
static void test_registrations_of_other_ports_spc4_5_13_7_3(void **state)
{
	(void)state;
	assert_int_equal(reg_with(A, 0, RSV_SHARE), SCSI_CHECK_CONDITION);
	expect_no_room(A);
	assert_int_equal(nkeys(B), 0);
	assert_int_equal(reg_with(A, 0, RSV_SHARE - 1), SCSI_GOOD);
	assert_int_equal(reg_key(A, KEY, 0), SCSI_GOOD);
	assert_int_equal(reg_with(A, 100, 1), SCSI_CHECK_CONDITION);
	expect_no_room(A);
	assert_int_equal(reg_with(A, 0, 1),
			 SCSI_GOOD); /* the name is registered already */
	assert_int_equal(reg_with(B, 0, RSV_SHARE), SCSI_GOOD);
	assert_int_equal(nkeys(C), RSV_SHARE + 2);
}

/* READ FULL STATUS with a short allocation length: a part of the data, and the
 * full length. */
static void full_status_is_cut(unsigned who)
{
	static uint8_t all[65535];
	uint32_t room = sizeof(all);

	for (; room > 0; room = room * 3 / 4) {
		uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_IN,
				    SCSI_PRIN_READ_FULL_STATUS };

		put_be16(cdb + 7, (uint16_t)room);
		assert_int_equal(three_run(who, cdb, NULL, 0, 65535),
				 SCSI_GOOD);
		if (room == sizeof(all))
			memcpy(all, three.i[who].in, sizeof(all));
		assert_true(get_be32(all + 4) > RSV_MAX * 44);
		assert_int_equal(three.i[who].in_len,
				 MIN(room, get_be32(all + 4) + 8));
		assert_memory_equal(three.i[who].in, all, three.i[who].in_len);
	}
}

/* All registrations are in use only after many initiators have used their
 * shares. */
static void test_all_registrations_of_a_unit(void **state)
{
	const unsigned n = RSV_MAX / RSV_SHARE;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		rename_initiator(A, i, 0);
		assert_int_equal(reg_with(A, 100 * i, RSV_SHARE - 1),
				 SCSI_GOOD);
	}
	assert_int_equal(nkeys(A), RSV_MAX);
	assert_int_equal(reg(B), SCSI_CHECK_CONDITION);
	expect_no_room(B);
	full_status_is_cut(B);
	assert_int_equal(reg_key(A, KEY, 0), SCSI_GOOD);
	assert_int_equal(reg(B), SCSI_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ports_of_one_initiator),
		T(test_registrations_of_other_ports_spc4_5_13_7_3),
		T(test_all_registrations_of_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
