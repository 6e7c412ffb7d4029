/* SPDX-License-Identifier: BSD-2-Clause */
/* priority_test.c: command priorities (SAM-5 §8.7, SPC-4 §§6.34, 6.44, 7.5.9):
 * the priority of each nexus, the attentions of a change, and the order of
 * waiting commands. */
#include "cmds.h"
#include "device/unit/attention.h"
#include "device/unit/itl.h"

#define THIS  0x00
#define OTHER 0x40
#define EVERY 0x80

static int set(unsigned who, uint8_t which, uint8_t priority, int of)
{
	uint8_t cdb[16] = { 0xa4, 0x0e, which };
	uint8_t list[8 + SCSI_TRANSPORTID_MAX] = { priority };
	uint32_t len = 8;

	if (of >= 0) {
		size_t id = scsi_transportid_put(three.i[of].name, list + 8);

		put_be16(list + 2, 1);
		put_be16(list + 6, (uint16_t)id);
		len += (uint32_t)id;
	}
	put_be32(cdb + 6, len);
	return three_run(who, cdb, list, len, 0);
}

/* own returns the priority that REPORT PRIORITY gives; 0: the initial
 * priority. */
static unsigned own(unsigned who)
{
	const struct three_ini *i = &three.i[who];
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
	for (size_t at = 4; at < three.i[who].in_len; n++)
		at += 8u + get_be16(three.i[who].in + at + 6);
	return n;
}

static int select_initial(unsigned who, uint8_t priority)
{
	uint8_t list[4 + 32] = { 0, 0, 0, 0, 0x4a, 1, 0, 28 };

	list[4 + 5] = priority;
	return three_run(who, (const uint8_t[16]){ 0x15, 0x10, [4] = 36 }, list,
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
	assert_int_equal(tur(A),
			 SCSI_GOOD); /* no attention for the requester */
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
	/* The priority survives a logout and a login of the nexus. */
	three_logout(B);
	three_login(B);
	no_sense_left(B);
	assert_int_equal(own(B), 1);
	/* A nexus that is logged out gets a priority. */
	three_logout(C);
	assert_int_equal(set(A, OTHER, 2, C), SCSI_GOOD);
	three_login(C);
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
	three_reset(B);
	all_sense_taken();
	assert_int_equal(own(A), 0);
	assert_int_equal(nset(C), 0);
}

static void test_refused(void **state)
{
	const uint8_t none[16] = { 0xa4, 0x0e };
	const uint8_t reserved[16] = { 0xa4, 0x0e, 0xc0, [9] = 8 };

	(void)state;
	three_run(A, none, NULL, 0, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
	three_run(A, reserved, NULL, 0, 0);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	set(A, OTHER, 1, -1); /* no TransportID */
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
	RUN(A, 512, 0xa3, 0x0e, 0x80, [8] = 2);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* set_one sets the priority of a nexus with a name of its own that does not
 * exist. */
static int set_one(unsigned who, unsigned i)
{
	char name[SCSI_PORT_NAME_MAX + 1];
	int status;

	strcpy(name, three.i[who].name);
	snprintf(three.i[who].name, sizeof(three.i[who].name),
		 "iqn.x%u,i,0x80000000000%u", i, who);
	status = set(who, OTHER, 1, (int)who);
	strcpy(three.i[who].name, name);
	return status;
}

/* The unit has a limit, and each initiator has its share of the limit. */
static void test_shares(void **state)
{
	(void)state;
	for (unsigned who = 0; who < INITIATORS; who++) {
		unsigned share = who < C ? 24 : 64 - 2 * 24;

		for (unsigned i = 0; i < share; i++)
			assert_int_equal(set_one(who, i), SCSI_GOOD);
		set_one(who, share);
		expect_sense(who, SENSE_ILLEGAL_REQUEST,
			     ASC_INSUFFICIENT_RESOURCES);
		assert_int_equal(set_one(who, 0),
				 SCSI_GOOD); /* an existing entry */
	}
	assert_int_equal(nset(C), 64);
}

/* The limit also holds for concurrent commands on several workers. */
static void test_too_many_at_once(void **state)
{
	const uint8_t cdb[16] = { 0xa4, 0x0e, THIS, [9] = 8 };
	const uint8_t list[8] = { 1 };
	unsigned good = 0;

	(void)state;
	for (unsigned i = 0; i < 63; i++)
		assert_int_equal(set_one(i % 3, i), SCSI_GOOD);
	for (unsigned who = 0; who < INITIATORS; who++)
		three_send(who, cdb, list, 8, 0);
	three_settle();
	for (unsigned who = 0; who < INITIATORS; who++)
		if (three_finish(who) == SCSI_GOOD)
			good++;
		else
			expect_sense(who, SENSE_ILLEGAL_REQUEST,
				     ASC_INSUFFICIENT_RESOURCES);
	assert_int_equal(good, 1);
	for (unsigned who = 0; who < INITIATORS; who++)
		assert_int_equal(nset(who), 64);
}

static void test_initial_priority_spc4_7_5_9(void **state)
{
	(void)state;
	assert_int_equal(select_initial(A, 4), SCSI_GOOD);
	expect_attention(B, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention(B, ASC_PRIORITY_CHANGED);
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(own(A), 0); /* the initial priority */
	assert_int_equal(RUN(A, 255, 0x1a, 8, 0x0a, 1, 255), SCSI_GOOD);
	assert_int_equal(three.i[A].in[4 + 5], 4);
}

/* ---- waiting commands ---- */

#define N 6

static void comes(unsigned i, enum dev_attr attr, uint8_t priority)
{
	const uint8_t cdb[16] = { SCSI_READ_10, [5] = (uint8_t)i, [8] = 1 };
	struct dev_task *t = cmd_new(i, A, attr, cdb);

	t->priority = priority;
	assert_int_equal(dev_task_begin(t), 0);
	cmd_run(i);
}

/* Five commands wait for an ORDERED one, with the priorities 15, none, 1, none,
 * 5. places: the order in which they execute. */
static void expect_order(const unsigned places[N])
{
	static const uint8_t priority[N] = { 0, 15, 0, 1, 0, 5 };

	for (unsigned i = 0; i < N; i++)
		comes(i, i ? DEV_ATTR_SIMPLE : DEV_ATTR_ORDERED, priority[i]);
	expect_held(1);
	for (unsigned i = 0; i < N; i++)
		release_held(1);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(cmds[i].place, places[i]);
		dev_task_end(&cmds[i].task);
	}
}

static void test_highest_first_sam5_8_7(void **state)
{
	static const unsigned places[N] = { 1, 6, 4, 2, 5, 3 };

	(void)state;
	expect_order(places);
}

/* Commands without a priority use the priority of the nexus, or of the unit. */
static void test_priority_of_the_nexus(void **state)
{
	static const unsigned places[N] = { 1, 6, 3, 2, 4, 5 };

	(void)state;
	assert_int_equal(set(A, THIS, 2, -1), SCSI_GOOD);
	expect_order(places);
}

static void test_initial_priority_of_the_unit(void **state)
{
	static const unsigned places[N] = { 1, 6, 3, 2, 4, 5 };
	struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	lu->ctl.initial_priority = 3;
	expect_order(places);
}

/* ---- precedence of unit attentions (SAM-5 §5.14) ---- */

/* Power on, then resets, then all others. A power on replaces all attentions
 * before it. */
static void test_attentions_by_precedence_sam5_5_14(void **state)
{
	struct dev_itl *i;

	(void)state;
	i = dev_itl_find(three.i[A].nexus, 0);
	for (unsigned ua = UA_COUNT - 2; ua > UA_POWER_ON; ua--)
		dev_attention_set(i, (enum dev_ua)ua);
	expect_attention(A, ASC_BUS_DEVICE_RESET);
	expect_attention(A, ASC_COMMANDS_CLEARED);
	dev_attention_set(i, UA_BUS_DEVICE_RESET);
	expect_attention(A, ASC_BUS_DEVICE_RESET);
	dev_attention_set(i, UA_POWER_ON);
	expect_attention(A, ASC_POWER_ON);
	assert_int_equal(tur(A), SCSI_GOOD);
}

#define TH(name) cmocka_unit_test_setup_teardown(name, cmds_open, three_close)

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
		TH(test_priority_of_the_nexus),
		TH(test_initial_priority_of_the_unit),
		T(test_attentions_by_precedence_sam5_5_14),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
