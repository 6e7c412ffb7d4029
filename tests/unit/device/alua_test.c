/* SPDX-License-Identifier: BSD-2-Clause */
/* alua_test.c: target port groups (SPC-4 §5.11, §6.37, §6.45). A and B use port
 * 5 of group 10, C uses port 6 of group 20; group 30 belongs to another
 * gateway. */
#include "device/unit/unit.h"
#include "three.h"

#define AO DEV_ACCESS_OPTIMIZED
#define AN DEV_ACCESS_NON_OPTIMIZED
#define SB DEV_ACCESS_STANDBY
#define UA DEV_ACCESS_UNAVAILABLE

static void set_up(struct dev_server *s)
{
	static const struct dev_group groups[] = {
		{ .id = 10,
		  .state = AO,
		  .preferred = true,
		  .nports = 1,
		  .ports = { 5 } },
		{ .id = 20, .state = AN, .nports = 1, .ports = { 6 } },
		{ .id = 30, .state = SB, .nports = 2, .ports = { 7, 8 } },
	};
	uint16_t rtpi;

	dev_server_first_port(s, 5);
	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &rtpi), 0);
	assert_int_equal(rtpi, 5);
	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0002", &rtpi), 0);
	assert_int_equal(rtpi, 6);
	for (unsigned i = 0; i < ARRAY_LEN(groups); i++)
		assert_int_equal(dev_group_add(s, &groups[i]), 0);
}

static int alua_open(void **state)
{
	(void)state;
	three_on_hold();
	three.set_up = set_up;
	three.port[A] = three.port[B] = 5;
	three.port[C] = 6;
	three_start();
	return 0;
}

static int report(unsigned who, uint8_t format)
{
	return RUN(who, 512, SCSI_MAINTENANCE_IN, (uint8_t)(0x0a | format), 0,
		   0, 0, 0, 0, 0, 2, 0);
}

static int set_groups(unsigned who, const uint8_t *list, uint32_t len)
{
	uint8_t cdb[16] = { SCSI_MAINTENANCE_OUT, 0x0a };

	put_be32(cdb + 6, len);
	return three_run(who, cdb, list, len, 0);
}

static int set_one(unsigned who, uint16_t group, uint8_t state)
{
	uint8_t list[8] = { [4] = state };

	put_be16(list + 6, group);
	return set_groups(who, list, 8);
}

static void expect_states(unsigned who, uint8_t ten, uint8_t twenty,
			  uint8_t thirty)
{
	const uint8_t *p = three.i[who].in;

	assert_int_equal(report(who, 0), SCSI_GOOD);
	assert_int_equal(p[4], ten);
	assert_int_equal(p[16], twenty);
	assert_int_equal(p[28], thirty);
}

static int read_block(unsigned who)
{
	static const uint8_t cdb[16] = { SCSI_READ_10, [8] = 1 };

	three_send(who, cdb, NULL, 0, 512);
	three_settle();
	release_held(1);
	return three_finish(who);
}

static void test_report_spc4_6_37(void **state)
{
	/* clang-format off */
	static const uint8_t want[] = {
		0, 0, 0, 40,
		/* group 10: preferred, active/optimized; port 5 */
		0x80, 0xcf, 0, 10, 0, 0, 0, 1, 0, 0, 0, 5,
		/* group 20: active/non-optimized; port 6 */
		0x01, 0xcf, 0, 20, 0, 0, 0, 1, 0, 0, 0, 6,
		/* group 30: standby; ports 7, 8 */
		0x02, 0xcf, 0, 30, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 8,
	};
	/* clang-format on */

	(void)state;
	assert_int_equal(report(A, 0), SCSI_GOOD);
	assert_int_equal(three.i[A].in_len, sizeof(want));
	assert_memory_equal(three.i[A].in, want, sizeof(want));
	/* with the extended header */
	assert_int_equal(report(C, 0x20), SCSI_GOOD);
	assert_int_equal(three.i[C].in_len, sizeof(want) + 4);
	assert_int_equal(get_be32(three.i[C].in), 44);
	assert_int_equal(three.i[C].in[4], 0x10);
	assert_int_equal(three.i[C].in[5], 60); /* IMPLICIT TRANSITION TIME */
	assert_memory_equal(three.i[C].in + 8, want + 4, sizeof(want) - 4);
	assert_int_equal(report(A, 0x40), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static bool has_group(unsigned who, uint16_t group)
{
	const uint8_t *p = three.i[who].in;

	assert_int_equal(RUN(who, 512, 0x12, 1, 0x83, 2, 0), SCSI_GOOD);
	for (size_t at = 4; at < three.i[who].in_len; at += 4u + p[at + 3])
		if ((p[at + 1] & 0x3f) == 0x15)
			return p[at + 1] == 0x95 && p[at] == 0x51 &&
			       get_be16(p + at + 6) == group;
	return false;
}

/* SPC-4 §7.8.14, and MULTIP of §6.6.2 */
static void test_ports_of_the_device(void **state)
{
	const uint8_t *p = three.i[A].in;

	(void)state;
	assert_int_equal(RUN(A, 255, 0x12, 1, 0x88, 0, 255), SCSI_GOOD);
	assert_int_equal(three.i[A].in_len, 4 + 2 * 32);
	assert_int_equal(get_be32(p) & 0xffffff, 0x880040);
	assert_int_equal(get_be16(p + 6), 5);
	assert_int_equal(get_be16(p + 14), 20);
	assert_int_equal(get_be32(p + 16), 0x53980010);
	assert_string_equal((const char *)p + 20, "iqn.t,t,0x0001");
	assert_int_equal(get_be16(p + 38), 6);
	assert_string_equal((const char *)p + 52, "iqn.t,t,0x0002");
	assert_int_equal(RUN(A, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(p[6] & 0x10, 0x10);
}

static void test_inquiry_reports_groups(void **state)
{
	(void)state;
	assert_int_equal(RUN(A, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(three.i[A].in[5] & 0x30, 0x30);
	assert_true(has_group(A, 10));
	assert_true(has_group(C, 20));
}

static void test_without_groups(void **state)
{
	uint16_t rtpi;

	(void)state;
	assert_int_equal(RUN(A, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(three.i[A].in[5] & 0x30, 0);
	assert_int_equal(three.i[A].in[6], 0); /* one port */
	assert_int_equal(report(A, 0), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(RUN(A, 512, 0x12, 1, 0x83, 2, 0), SCSI_GOOD);
	assert_int_equal(dev_group_set(three.server,
				       &(struct dev_group_change){ .id = 1 },
				       NULL, NULL),
			 ERR_NOT_FOUND);
	assert_int_equal(dev_port_add(three.server, "x", &rtpi), 0);
	assert_int_equal(rtpi, 1);
}

/* ---- changes by an initiator ---- */

static void test_explicit_spc4_5_11_2_9(void **state)
{
	(void)state;
	assert_int_equal(set_one(A, 20, SB), SCSI_GOOD);
	/* Every nexus except the requester gets a unit attention, on all
	 * workers. */
	expect_attention(B, ASC_ACCESS_STATE_CHANGED);
	expect_attention(C, ASC_ACCESS_STATE_CHANGED);
	expect_states(A, 0x80, 0x02, 0x02);
	assert_int_equal(three.i[A].in[21], 1); /* by command */
	assert_int_equal(read_block(A), SCSI_GOOD);
	assert_int_equal(tur(C), SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
	/* A port that is in standby can change its own state, too. */
	assert_int_equal(set_one(C, 20, AO), SCSI_GOOD);
	assert_int_equal(read_block(C), SCSI_GOOD);
	expect_attention(A, ASC_ACCESS_STATE_CHANGED);
	/* A change to the current state sets no attention. */
	expect_attention(B, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(set_one(C, 20, AO), SCSI_GOOD);
	assert_int_equal(tur(A), SCSI_GOOD);
}

static void test_several_at_once_or_none(void **state)
{
	uint8_t list[12] = { [4] = SB, [7] = 10, [8] = AO, [11] = 20 };

	(void)state;
	assert_int_equal(set_groups(C, list, 12), SCSI_GOOD);
	expect_states(C, 0x82, 0x00, 0x02);
	/* One unknown group: no group changes. */
	list[4] = AO;
	list[11] = 21;
	assert_int_equal(set_groups(C, list, 12), SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	expect_states(C, 0x82, 0x00, 0x02);
	/* The state of a group of another gateway can only be set to its
	 * current value. */
	list[11] = 30;
	assert_int_equal(set_groups(C, list, 12), SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_HARDWARE_ERROR, ASC_SET_GROUPS_FAILED);
	expect_states(C, 0x82, 0x00, 0x02);
	list[8] = SB;
	assert_int_equal(set_groups(C, list, 12), SCSI_GOOD);
	expect_states(C, 0x80, 0x00, 0x02);
	assert_int_equal(set_groups(C, list, 0), SCSI_GOOD);
}

static void test_bad_lists(void **state)
{
	uint8_t list[80] = { 0 };

	(void)state;
	for (uint32_t len = 1; len < 80; len++) {
		if (len % 4 == 0 && len <= 68)
			continue;
		set_groups(A, list, len);
		expect_sense(A, SENSE_ILLEGAL_REQUEST,
			     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	for (unsigned s = 4; s < 256; s++) {
		set_one(A, 10, (uint8_t)s);
		expect_sense(A, SENSE_ILLEGAL_REQUEST,
			     ASC_INVALID_FIELD_IN_PARAMETERS);
		assert_int_equal(three.i[A].sense.field, 4);
	}
	/* The initiator sends fewer bytes than the CDB says. */
	assert_int_equal(three_run(A, (const uint8_t[16]){ 0xa4, 0xa, [9] = 8 },
				   list, 4, 0),
			 SCSI_CHECK_CONDITION);
	expect_states(A, 0x80, 0x01, 0x02);
}

/* ---- which commands are served (§5.11.2.6, §5.11.2.7) ---- */

static void test_what_is_served_in_which_state(void **state)
{
	static const struct {
		uint8_t cdb[16];
		uint32_t in;
		bool standby, unavailable;
	} cases[] = {
		{ { 0x12, 0, 0, 0, 96 }, 96, true, true },
		{ { 0xa0, [9] = 16 }, 16, true, true },
		{ { 0x03, 0, 0, 0, 18 }, 18, true, true },
		{ { 0xa3, 0x0a, [9] = 255 }, 255, true, true },
		{ { 0x3c, 0x0b, [8] = 4 }, 4, true, true },
		{ { 0x1a, 0, 0x3f, 0, 255 }, 255, true, false },
		{ { 0x5e, 0, [8] = 255 }, 255, true, false },
		{ { 0x4d, 0, 0x40, [8] = 255 }, 255, true, false },
		{ { 0x00 }, 0, false, false },
		{ { 0x28, [8] = 1 }, 512, false, false },
		/* permitted, not required; Linux needs them on each path */
		{ { 0x25 }, 8, true, false },
		{ { 0x9e, 0x10, [13] = 32 }, 32, true, false },
		{ { 0xa3, 0x0c, [9] = 255 }, 255, true, false },
		{ { 0xa3, 0x0d, [9] = 4 }, 4, true, false },
		{ { 0x35 }, 0, false, false },
		{ { 0x16 }, 0, false, false },
	};

	(void)state;
	for (unsigned s = SB; s <= UA; s++) {
		assert_int_equal(set_one(A, 20, (uint8_t)s), SCSI_GOOD);
		expect_attention(C, ASC_ACCESS_STATE_CHANGED);
		/* the peripheral qualifier (§5.16.2.4.5) */
		assert_int_equal(RUN(C, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
		assert_int_equal(three.i[C].in[0], s == SB ? 0 : 0x20);
		assert_int_equal(RUN(C, 96, 0x12, 1, 0x80, 0, 96), SCSI_GOOD);
		assert_int_equal(three.i[C].in[0], s == SB ? 0 : 0x20);
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			bool ok = s == SB ? cases[i].standby
					  : cases[i].unavailable;

			three_run(C, cases[i].cdb, NULL, 0, cases[i].in);
			if (ok) {
				assert_int_equal(three.i[C].task.status,
						 SCSI_GOOD);
				continue;
			}
			expect_sense(C, SENSE_NOT_READY,
				     s == SB ? ASC_PORT_IN_STANDBY
					     : ASC_PORT_UNAVAILABLE);
		}
	}
}

/* A new nexus takes the current state of its port. */
static void test_new_nexus(void **state)
{
	(void)state;
	assert_int_equal(set_one(A, 20, SB), SCSI_GOOD);
	three_logout(C);
	three_login(C);
	expect_attention(C, ASC_POWER_ON);
	assert_int_equal(tur(C), SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
}

/* ---- changes by the administrator ---- */

struct answer {
	unsigned n;
	int err;
};

static void answered(void *arg, int err)
{
	struct answer *a = arg;

	a->n++;
	a->err = err;
}

static void test_implicit(void **state)
{
	const struct dev_group_change change = {
		.id = 30, .state = AO, .set_preferred = true, .preferred = true
	};
	struct dev_group all[DEV_MAX_GROUPS];
	struct answer a = { 0 };

	(void)state;
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	assert_int_equal(a.n, 1);
	assert_int_equal(a.err, 0);
	for (unsigned who = A; who <= C; who++)
		expect_attention(who, ASC_ACCESS_STATE_CHANGED);
	expect_states(B, 0x80, 0x01, 0x80);
	assert_int_equal(three.i[B].in[33], 2); /* implicitly */
	assert_int_equal(dev_groups(three.server, all), 3);
	assert_int_equal(all[2].state, AO);
	assert_int_equal(dev_group_set(three.server,
				       &(struct dev_group_change){ .id = 31 },
				       answered, &a),
			 0);
	three_settle();
	assert_int_equal(a.n, 2);
	assert_int_equal(a.err, ERR_NOT_FOUND);
}

/* When a change that removes access ends, every command that began before the
 * change has ended. */
static void test_standby_waits_for_commands_in_progress(void **state)
{
	const struct dev_group_change change = { .id = 10, .state = SB };
	static const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	static const uint8_t block[512];
	struct answer a = { 0 };

	(void)state;
	three_send(A, cdb, block, 512, 0);
	expect_held(1);
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	assert_int_equal(a.n, 0);
	/* New commands are refused meanwhile (§5.16.2.5), also those of B. */
	assert_int_equal(tur(B), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	assert_int_equal(report(B, 0), SCSI_GOOD);
	assert_int_equal(three.i[B].in[4], 0x8f);
	assert_int_equal(RUN(B, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(RUN(B, 4, 0x3c, 0x0b, [8] = 4), SCSI_GOOD);
	RUN(B, 255, 0x1a, 0, 0x3f, 0, 255);
	expect_sense(B, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	release_held(1);
	assert_int_equal(a.n, 1);
	assert_int_equal(three_finish(A), SCSI_GOOD);
	expect_attention(B, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(tur(B), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
	assert_int_equal(report(B, 0), SCSI_GOOD);
	assert_int_equal(three.i[B].in[4], 0x82);
	assert_int_equal(three.i[B].in[9], 2);
}

/* SANITIZE writes after its command has ended, and cannot be stopped: the group
 * keeps its state. */
static void test_no_standby_while_sanitizing(void **state)
{
	static const uint8_t cdb[16] = { 0x48, 0x81, [8] = 6 };
	static const uint8_t pattern[6] = { 1, 0, 0, 2, 0x12, 0x34 };
	const struct dev_group_change change = { .id = 10, .state = SB };
	struct answer a = { 0 };

	(void)state;
	three_send(A, cdb, pattern, 6, 0);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	assert_int_equal(a.n, 1);
	assert_int_equal(a.err, ERR_BUSY);
	for (unsigned who = A; who <= C; who++)
		expect_attention(who, ASC_ACCESS_TRANSITION_FAILED);
	expect_held(1); /* the erasure goes on */
	while (bs_hold_waiting(three.hold))
		release_held(1);
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	assert_int_equal(a.err, 0);
}

/* A second change waits for the first one and starts from its result. */
static void test_changes_take_turns(void **state)
{
	static const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	static const uint8_t block[512], list[8] = { [4] = AN, [7] = 10 };
	const struct dev_group_change change = { .id = 10, .state = SB };
	static const uint8_t set[16] = { 0xa4, 0x0a, [9] = 8 };
	struct answer a = { 0 };

	(void)state;
	three_send(A, cdb, block, 512, 0);
	three_settle();
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	three_send(B, set, list, 8, 0);
	three_settle();
	assert_int_equal(a.n, 0);
	assert_false(three.i[B].done);
	release_held(1);
	assert_int_equal(a.n, 1);
	assert_int_equal(three_finish(B), SCSI_GOOD);
	assert_int_equal(three_finish(A), SCSI_GOOD);
	expect_attention(A, ASC_ACCESS_STATE_CHANGED);
	expect_states(A, 0x81, 0x01, 0x02);
	assert_int_equal(three.i[A].in[9], 1);
}

/* An administrator may set the transitioning state: initiators wait. */
static void test_transitioning_as_long_as_it_takes(void **state)
{
	struct dev_group_change change = { .id = 20,
					   .state = DEV_ACCESS_TRANSITIONING };
	struct answer a = { 0 };

	(void)state;
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	expect_attention(C, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(tur(C), SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	no_sense_left(A);
	expect_states(A, 0x80, 0x0f, 0x02);
	change.state = AO;
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	expect_attention(C, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(read_block(C), SCSI_GOOD);
	assert_int_equal(a.n, 2);
}

/* SPC-4 §5.16.2.4.6: another port reports that a port is offline. */
static void test_offline_ports(void **state)
{
	uint16_t ports[DEV_MAX_OFFLINE];
	const uint8_t *p = three.i[A].in;
	struct answer a = { 0 };

	(void)state;
	assert_int_equal(dev_port_set(three.server, 8, true, answered, &a), 0);
	three_settle();
	assert_int_equal(a.err, 0);
	for (unsigned who = A; who <= C; who++)
		expect_attention(who, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(report(A, 0), SCSI_GOOD);
	assert_int_equal(get_be32(p), 52);
	assert_int_equal(p[44], 0x0e);
	assert_int_equal(get_be16(p + 46), 0xffff);
	assert_int_equal(p[49], 2);
	assert_int_equal(p[51], 1);
	assert_int_equal(get_be16(p + 54), 8);
	/* its primary group still lists the port */
	assert_int_equal(p[28], SB);
	assert_int_equal(p[35], 2);
	assert_int_equal(dev_offline_ports(three.server, ports), 1);
	/* no change; a port of this gateway; an unknown port */
	assert_int_equal(dev_port_set(three.server, 8, true, answered, &a), 0);
	three_settle();
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(dev_port_set(three.server, 6, true, answered, &a), 0);
	three_settle();
	assert_int_equal(a.err, ERR_UNSUPPORTED);
	assert_int_equal(dev_port_set(three.server, 9, true, answered, &a), 0);
	three_settle();
	assert_int_equal(a.err, ERR_NOT_FOUND);
	assert_int_equal(dev_port_set(three.server, 8, false, answered, &a), 0);
	three_settle();
	assert_int_equal(a.err, 0);
	expect_attention(A, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(report(A, 0), SCSI_GOOD);
	assert_int_equal(get_be32(p), 40);
	assert_int_equal(a.n, 5);
}

/* A WRITE whose data arrive after the change to standby is refused. */
static void test_standby_before_the_data_came(void **state)
{
	const struct dev_group_change change = { .id = 10, .state = SB };
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	struct dev_task *t = three_announce(B, cdb, 512, 0);
	struct answer a = { 0 };

	(void)state;
	assert_int_equal(dev_group_set(three.server, &change, answered, &a), 0);
	three_settle();
	assert_int_equal(a.n, 1);
	memset(t->own.mem.buf, 0, 512);
	dev_task_execute(t);
	expect_held(0);
	assert_int_equal(three_finish(B), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
}

static void test_group_add_refuses(void **state)
{
	struct dev_group g = { .id = 10 };

	(void)state;
	assert_int_equal(dev_group_add(three.server, &g), ERR_BUSY);
	g = (struct dev_group){ .id = 40, .nports = 1, .ports = { 7 } };
	assert_int_equal(dev_group_add(three.server, &g), ERR_BUSY);
	g.nports = 0;
	for (unsigned i = 3; i < DEV_MAX_GROUPS; i++, g.id++)
		assert_int_equal(dev_group_add(three.server, &g), 0);
	assert_int_equal(dev_group_add(three.server, &g), ERR_LIMIT);
}

#define TA(name) cmocka_unit_test_setup_teardown(name, alua_open, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TA(test_report_spc4_6_37),
		TA(test_ports_of_the_device),
		TA(test_inquiry_reports_groups),
		T(test_without_groups),
		TA(test_explicit_spc4_5_11_2_9),
		TA(test_several_at_once_or_none),
		TA(test_bad_lists),
		TA(test_what_is_served_in_which_state),
		TA(test_new_nexus),
		TA(test_implicit),
		TA(test_standby_waits_for_commands_in_progress),
		TA(test_standby_before_the_data_came),
		TA(test_changes_take_turns),
		TA(test_no_standby_while_sanitizing),
		TA(test_transitioning_as_long_as_it_takes),
		TA(test_offline_ports),
		TA(test_group_add_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
