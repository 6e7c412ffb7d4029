/* SPDX-License-Identifier: BSD-2-Clause */
/* priority_test.c: command priorities (SAM-5 §8.7, SPC-4 §§6.34, 6.44, 7.5.9):
 * who has which, who hears of it, and what it does to commands that wait. */
#include "device/unit/attention.h"
#include "ones.h"

#define THIS  0x00
#define OTHER 0x40
#define EVERY 0x80

static int set(unsigned who, uint8_t which, uint8_t priority, int of)
{
	uint8_t cdb[16] = { 0xa4, 0x0e, which };
	uint8_t list[8 + SCSI_TRANSPORTID_MAX] = { priority };
	uint32_t len = 8;

	if (of >= 0) {
		size_t id = scsi_transportid_put(trio.i[of].name, list + 8);

		put_be16(list + 2, 1);
		put_be16(list + 6, (uint16_t)id);
		len += (uint32_t)id;
	}
	put_be32(cdb + 6, len);
	return trio_run(who, cdb, list, len, 0);
}

/* Its own, as it is reported: 0 is the initial one. */
static unsigned own(unsigned who)
{
	const struct trio_ini *i = &trio.i[who];
	char name[SCSI_PORT_NAME_MAX + 1];
	size_t used;

	assert_int_equal(RUN(who, 512, 0xa3, 0x0e, [8] = 2), SCSI_GOOD);
	assert_int_equal(get_be32(i->in) + 4, i->in_len);
	assert_int_equal(get_be16(i->in + 6), 1);
	assert_int_equal(get_be16(i->in + 10) + 12, i->in_len);
	assert_int_equal(scsi_transportid_get(i->in + 12, i->in_len - 12, name,
					      &used),
			 0);
	assert_string_equal(name, i->name);
	return i->in[4];
}

static unsigned nset(unsigned who)
{
	unsigned n = 0;

	assert_int_equal(RUN(who, 8192, 0xa3, 0x0e, 0x40, [8] = 32), SCSI_GOOD);
	for (size_t at = 4; at < trio.i[who].in_len; n++)
		at += 8u + get_be16(trio.i[who].in + at + 6);
	return n;
}

static int select_initial(unsigned who, uint8_t priority)
{
	uint8_t list[4 + 32] = { 0, 0, 0, 0, 0x4a, 1, 0, 28 };

	list[4 + 5] = priority;
	return trio_run(who, (const uint8_t[16]){ 0x15, 0x10, [4] = 36 }, list,
			sizeof(list), 0);
}

static void test_of_its_own_spc4_6_44(void **state)
{
	(void)state;
	assert_int_equal(own(A), 0);
	assert_int_equal(nset(A), 0);
	assert_int_equal(set(A, THIS, 3, -1), SCSI_GOOD);
	assert_int_equal(own(A), 3);
	assert_int_equal(own(B), 0);
	assert_int_equal(nset(B), 1);
	assert_int_equal(tur(A), SCSI_GOOD); /* who asked is not told */
	assert_int_equal(tur(B), SCSI_GOOD);
	assert_int_equal(set(A, THIS, 0, -1), SCSI_GOOD);
	assert_int_equal(own(A), 0);
	assert_int_equal(nset(A), 0);
}

static void test_of_another_spc4_6_44(void **state)
{
	(void)state;
	assert_int_equal(set(A, OTHER, 1, B), SCSI_GOOD);
	expect_attention(B, ASC_PRIORITY_CHANGED);
	assert_int_equal(own(B), 1);
	assert_int_equal(tur(C), SCSI_GOOD);
	/* the nexus goes and comes: it is what it was */
	trio_logout(B);
	trio_login(B);
	no_sense_left(B);
	assert_int_equal(own(B), 1);
	/* one that is not there now */
	trio_logout(C);
	assert_int_equal(set(A, OTHER, 2, C), SCSI_GOOD);
	trio_login(C);
	no_sense_left(C);
	assert_int_equal(own(C), 2);
	assert_int_equal(nset(A), 2);
}

static void test_of_all_spc4_6_44(void **state)
{
	(void)state;
	assert_int_equal(set(A, THIS, 1, -1), SCSI_GOOD);
	assert_int_equal(set(B, THIS, 2, -1), SCSI_GOOD);
	assert_int_equal(set(C, EVERY, 7, -1), SCSI_GOOD);
	expect_attention(A, ASC_PRIORITY_CHANGED);
	expect_attention(B, ASC_PRIORITY_CHANGED);
	assert_int_equal(tur(C), SCSI_GOOD);
	assert_int_equal(nset(A), 0);
	assert_int_equal(own(A), 0);
}

static void test_a_reset_forgets_spc4_6_44(void **state)
{
	(void)state;
	assert_int_equal(set(A, THIS, 1, -1), SCSI_GOOD);
	trio_reset(B);
	all_sense_taken();
	assert_int_equal(own(A), 0);
	assert_int_equal(nset(C), 0);
}

static void test_refused(void **state)
{
	const uint8_t none[16] = { 0xa4, 0x0e };
	const uint8_t reserved[16] = { 0xa4, 0x0e, 0xc0, [9] = 8 };

	(void)state;
	trio_run(A, none, NULL, 0, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
	trio_run(A, reserved, NULL, 0, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	set(A, OTHER, 1, -1); /* no TransportID */
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
	RUN(A, 512, 0xa3, 0x0e, 0x80, [8] = 2);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* A nexus that is not there, of a name of its own. */
static int set_one(unsigned who, unsigned i)
{
	char name[SCSI_PORT_NAME_MAX + 1];
	int status;

	strcpy(name, trio.i[who].name);
	snprintf(trio.i[who].name, sizeof(trio.i[who].name),
		 "iqn.x%u,i,0x80000000000%u", i, who);
	status = set(who, OTHER, 1, (int)who);
	strcpy(trio.i[who].name, name);
	return status;
}

/* As many as there is room for, of which each initiator has its share. */
static void test_shares(void **state)
{
	(void)state;
	for (unsigned who = 0; who < TRIO_N; who++) {
		unsigned share = who < C ? 24 : 64 - 2 * 24;

		for (unsigned i = 0; i < share; i++)
			assert_int_equal(set_one(who, i), SCSI_GOOD);
		set_one(who, share);
		expect_sense(who, SENSE_ILLEGAL_REQUEST,
			     ASC_INSUFFICIENT_RESOURCES);
		assert_int_equal(set_one(who, 0), SCSI_GOOD); /* as before */
	}
	assert_int_equal(nset(C), 64);
}

/* Those under way at once have that limit, too, whichever their workers. */
static void test_too_many_at_once(void **state)
{
	const uint8_t cdb[16] = { 0xa4, 0x0e, THIS, [9] = 8 };
	const uint8_t list[8] = { 1 };
	unsigned good = 0;

	(void)state;
	for (unsigned i = 0; i < 63; i++)
		assert_int_equal(set_one(i % 3, i), SCSI_GOOD);
	for (unsigned who = 0; who < TRIO_N; who++)
		trio_send(who, cdb, list, 8, 0);
	trio_settle();
	for (unsigned who = 0; who < TRIO_N; who++)
		if (trio_finish(who) == SCSI_GOOD)
			good++;
		else
			expect_sense(who, SENSE_ILLEGAL_REQUEST,
				     ASC_INSUFFICIENT_RESOURCES);
	assert_int_equal(good, 1);
	for (unsigned who = 0; who < TRIO_N; who++)
		assert_int_equal(nset(who), 64);
}

static void test_initial_priority_spc4_7_5_9(void **state)
{
	(void)state;
	assert_int_equal(select_initial(A, 4), SCSI_GOOD);
	expect_attention(B, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention(B, ASC_PRIORITY_CHANGED);
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(own(A), 0); /* it is the initial one */
	assert_int_equal(RUN(A, 255, 0x1a, 8, 0x0a, 1, 255), SCSI_GOOD);
	assert_int_equal(trio.i[A].in[4 + 5], 4);
}

/* ---- commands that wait ---- */

#define N 6

static void comes(unsigned i, enum dev_attr attr, uint8_t priority)
{
	const uint8_t cdb[16] = { SCSI_READ_10, [5] = (uint8_t)i, [8] = 1 };
	struct dev_task *t = one_new(i, A, attr, cdb);

	t->priority = priority;
	assert_int_equal(dev_task_begin(t), 0);
	one_run(i);
}

/* Behind an ORDERED one wait: 15, none, 1, none, 5. They go on as they are
 * placed here. */
static void expect_order(const unsigned places[N])
{
	static const uint8_t priority[N] = { 0, 15, 0, 1, 0, 5 };

	for (unsigned i = 0; i < N; i++)
		comes(i, i ? DEV_ATTR_SIMPLE : DEV_ATTR_ORDERED, priority[i]);
	expect_held(1);
	for (unsigned i = 0; i < N; i++)
		let_go(1);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(ones[i].place, places[i]);
		dev_task_end(&ones[i].task);
	}
}

static void test_highest_first_sam5_8_7(void **state)
{
	static const unsigned places[N] = { 1, 6, 4, 2, 5, 3 };

	(void)state;
	expect_order(places);
}

/* Those without one have that of the nexus, or the unit's. */
static void test_that_of_the_nexus_counts(void **state)
{
	static const unsigned places[N] = { 1, 6, 3, 2, 4, 5 };

	(void)state;
	assert_int_equal(set(A, THIS, 2, -1), SCSI_GOOD);
	expect_order(places);
}

static void test_that_of_the_unit_counts(void **state)
{
	static const unsigned places[N] = { 1, 6, 3, 2, 4, 5 };
	struct dev_lu *lu = dev_lu_get(trio.server, 0);

	(void)state;
	lu->ctl.initial_priority = 3;
	expect_order(places);
}

/* ---- unit attentions: which comes first (SAM-5 §5.14) ---- */

/* Power on, then resets, then all others. A power on says what they could. */
static void test_attentions_by_precedence_sam5_5_14(void **state)
{
	struct dev_nexus *n;

	(void)state;
	n = trio.i[A].nexus;
	for (unsigned ua = UA_COUNT - 2; ua > UA_POWER_ON; ua--)
		dev_attention_set(n, 0, (enum dev_ua)ua);
	expect_attention(A, ASC_BUS_DEVICE_RESET);
	expect_attention(A, ASC_COMMANDS_CLEARED);
	dev_attention_set(n, 0, UA_BUS_DEVICE_RESET);
	expect_attention(A, ASC_BUS_DEVICE_RESET);
	dev_attention_set(n, 0, UA_POWER_ON);
	expect_attention(A, ASC_POWER_ON);
	assert_int_equal(tur(A), SCSI_GOOD);
}

#define TH(name) cmocka_unit_test_setup_teardown(name, ones_open, trio_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_of_its_own_spc4_6_44),
		T(test_of_another_spc4_6_44),
		T(test_of_all_spc4_6_44),
		T(test_a_reset_forgets_spc4_6_44),
		T(test_refused),
		T(test_shares),
		T(test_too_many_at_once),
		T(test_initial_priority_spc4_7_5_9),
		TH(test_highest_first_sam5_8_7),
		TH(test_that_of_the_nexus_counts),
		TH(test_that_of_the_unit_counts),
		T(test_attentions_by_precedence_sam5_5_14),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
