/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * groups_test.c: the daemon sets up and changes target port groups and ports:
 * limits, identifiers in use, and the answer to REPORT TARGET PORT GROUPS
 * (SPC-4 §§5.11, 5.16.2, 6.37).
 */
#include "dev_case.h"
#include "device/unit/condition.h"
#include "device/unit/ports.h"

static int result;
static unsigned results;

static void done(void *arg, int err)
{
	(void)arg;
	result = err;
	results++;
}

static struct dev_group group(uint16_t id, uint16_t port)
{
	return (struct dev_group){ .id = id, .nports = 1, .ports = { port } };
}

static void two_groups(struct dev_server *s)
{
	const struct dev_group ours = group(1, 1), theirs = {
		.id = 65535,
		.state = DEV_ACCESS_STANDBY,
		.nports = 16,
		.ports = { 101, 102, 103, 104, 105, 106, 107, 108, 109, 110,
			   111, 112, 113, 114, 115, 116 },
	};
	const struct dev_group more = group(65534, 200);
	uint16_t rtpi;

	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &rtpi), 0);
	assert_int_equal(rtpi, 1);
	assert_int_equal(dev_group_add(s, &ours), 0);
	assert_int_equal(dev_group_add(s, &theirs), 0);
	assert_int_equal(dev_group_add(s, &more), 0);
}

static int open_groups(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	R->two_initiators = true;
	R->set_up = two_groups;
	fx_open(R, fx_ram(R), false);
	fx_take_attentions(R);
	results = 0;
	return 0;
}

/* ---- before the first nexus ---- */

static struct dev_server *server(void)
{
	static const struct dev_env env = { .nworkers = 1, .post = fx_post };
	struct dev_server *s = dev_server_new(&env, 4096);

	assert_non_null(s);
	return s;
}

static void test_groups_differ(void **state)
{
	struct dev_server *s = server();
	struct dev_group out[DEV_MAX_GROUPS], g;

	(void)state;
	assert_int_equal(dev_groups(s, out), 0);
	for (uint16_t i = 1; i <= DEV_MAX_GROUPS; i++) {
		assert_false(s->has_groups && i == 1);
		g = group(i, (uint16_t)(100 + i));
		assert_int_equal(dev_group_add(s, &g), 0);
		assert_true(s->has_groups);
	}
	g = group(3, 999);
	assert_int_equal(dev_group_add(s, &g), ERR_BUSY);
	g = group(999, 103);
	assert_int_equal(dev_group_add(s, &g), ERR_BUSY);
	g = (struct dev_group){ .id = 999, .nports = 2, .ports = { 998, 104 } };
	assert_int_equal(dev_group_add(s, &g), ERR_BUSY);
	g = (struct dev_group){ .id = 999, .nports = 2, .ports = { 998, 998 } };
	assert_int_equal(dev_group_add(s, &g), ERR_BUSY);
	g = group(999, 999);
	assert_int_equal(dev_group_add(s, &g), ERR_LIMIT);
	assert_int_equal(dev_groups(s, out), DEV_MAX_GROUPS);
	for (uint16_t i = 0; i < DEV_MAX_GROUPS; i++) {
		assert_int_equal(out[i].id, i + 1);
		assert_int_equal(out[i].ports[0], 101 + i);
	}
	dev_server_free(s);
}

static void test_ports_by_name(void **state)
{
	struct dev_server *s = server();
	char name[300];
	uint16_t rtpi;

	(void)state;
	dev_server_first_port(s, 65534);
	assert_int_equal(dev_port_add(s, "a", &rtpi), 0);
	assert_int_equal(rtpi, 65534);
	assert_int_equal(dev_port_add(s, "b", &rtpi), 0);
	assert_int_equal(rtpi, 65535);
	assert_int_equal(dev_port_add(s, "a", &rtpi), 0);
	assert_int_equal(rtpi, 65534);
	assert_int_equal(dev_port_add(s, "b", &rtpi), 0);
	assert_int_equal(rtpi, 65535);
	assert_int_equal(dev_port_add(s, "c", &rtpi), ERR_LIMIT);
	dev_server_free(s);
	s = server();
	memset(name, 'x', sizeof(name));
	name[DEV_PORT_NAME] = '\0';
	assert_int_equal(dev_port_add(s, name, &rtpi), ERR_TOO_LONG);
	name[DEV_PORT_NAME - 1] = '\0';
	assert_int_equal(dev_port_add(s, name, &rtpi), 0);
	assert_int_equal(rtpi, 1);
	assert_string_equal(s->ports->first->name, name);
	dev_server_free(s);
}

static void test_without_groups_nothing_changes(void **state)
{
	const struct dev_group_change c = { .id = 1 };
	struct dev_server *s = server();
	uint16_t out[DEV_MAX_OFFLINE];

	(void)state;
	assert_int_equal(dev_group_set(s, &c, done, NULL), ERR_NOT_FOUND);
	assert_int_equal(dev_port_set(s, 1, true, done, NULL), ERR_NOT_FOUND);
	assert_int_equal(dev_offline_ports(s, out), 0);
	dev_server_free(s);
}

/* ---- changes ---- */

static int set_port(uint16_t port, bool offline)
{
	unsigned before = results;

	assert_int_equal(dev_port_set(R->server, port, offline, done, NULL), 0);
	assert_int_equal(results, before + 1);
	return result;
}

static int set_group(uint16_t id, enum dev_access to, bool set, bool preferred)
{
	const struct dev_group_change c = { .id = id,
					    .state = to,
					    .set_preferred = set,
					    .preferred = preferred };
	unsigned before = results;

	assert_int_equal(dev_group_set(R->server, &c, done, NULL), 0);
	assert_int_equal(results, before + 1);
	return result;
}

/* is_notified returns whether both nexuses got the unit attention of a change,
 * and clears it. */
static bool is_notified(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (fx_test(R) == SCSI_CHECK_CONDITION &&
		    R->sense.asc == ASC_ACCESS_STATE_CHANGED)
			n++;
		fx_swap(R);
	}
	assert_int_not_equal(n, 1);
	return n;
}

static const uint8_t *report(void)
{
	assert_int_equal(CMD(0, 512, NULL, SCSI_MAINTENANCE_IN, 0x0a, 0, 0, 0,
			     0, 0, 0, 2, 0),
			 SCSI_GOOD);
	assert_int_equal(get_be32(R->in) + 4, R->in_len);
	return R->in + 4;
}

static void test_ports_that_are_offline_spc4_5_16_2(void **state)
{
	uint16_t out[DEV_MAX_OFFLINE];
	size_t whole;

	(void)state;
	report();
	whole = R->in_len;
	assert_int_equal(set_port(1, true),
			 ERR_UNSUPPORTED); /* a port of this gateway */
	assert_int_equal(set_port(99, true), ERR_NOT_FOUND);
	assert_int_equal(set_port(102, false), 0);
	assert_false(is_notified());
	assert_int_equal(set_port(102, true), 0);
	assert_true(is_notified());
	assert_int_equal(set_port(102, true), 0);
	assert_false(is_notified());
	assert_int_equal(dev_offline_ports(R->server, out), 1);
	assert_int_equal(out[0], 102);
	report();
	assert_int_equal(R->in_len, whole + 12);
	assert_int_equal(R->in[whole], DEV_ACCESS_OFFLINE);
	/* the highest identifier that no group has */
	assert_int_equal(get_be16(R->in + whole + 2), 65533);
	assert_int_equal(R->in[whole + 5], 2);
	assert_int_equal(R->in[whole + 7], 1);
	assert_int_equal(get_be16(R->in + whole + 10), 102);
	assert_int_equal(set_port(102, false), 0);
	assert_true(is_notified());
	report();
	assert_int_equal(R->in_len, whole);
}

static void test_as_many_ports_as_there_is_room_for(void **state)
{
	uint16_t out[DEV_MAX_OFFLINE];

	(void)state;
	for (uint16_t i = 0; i < DEV_MAX_OFFLINE; i++)
		assert_int_equal(set_port((uint16_t)(101 + i), true), 0);
	assert_int_equal(set_port(200, true), ERR_LIMIT);
	assert_int_equal(set_port(116, true),
			 0); /* the port is offline already */
	assert_int_equal(dev_offline_ports(R->server, out), DEV_MAX_OFFLINE);
	/* The last entry takes the place of the removed port. */
	assert_int_equal(set_port(103, false), 0);
	assert_int_equal(dev_offline_ports(R->server, out),
			 DEV_MAX_OFFLINE - 1);
	for (uint16_t i = 0; i < DEV_MAX_OFFLINE - 1; i++)
		assert_int_equal(out[i], i == 2 ? 116 : 101 + i);
	assert_int_equal(set_port(200, true), 0);
	assert_int_equal(dev_offline_ports(R->server, out), DEV_MAX_OFFLINE);
	assert_int_equal(out[DEV_MAX_OFFLINE - 1], 200);
}

static void test_states_of_groups_spc4_6_37(void **state)
{
	const uint8_t *p;

	(void)state;
	assert_int_equal(set_group(7, DEV_ACCESS_OPTIMIZED, false, false),
			 ERR_NOT_FOUND);
	/* A change to the current state sets no attention, and the status code
	 * stays. */
	assert_int_equal(set_group(65535, DEV_ACCESS_STANDBY, false, true), 0);
	assert_false(is_notified());
	assert_int_equal(report()[17], 0);
	assert_int_equal(set_group(65535, DEV_ACCESS_STANDBY, true, true), 0);
	assert_true(is_notified());
	p = report();
	assert_int_equal(p[12], 0x80 | DEV_ACCESS_STANDBY);
	assert_int_equal(p[17], 0);
	assert_int_equal(set_group(65535, DEV_ACCESS_UNAVAILABLE, false, false),
			 0);
	assert_true(is_notified());
	p = report();
	assert_int_equal(p[12], 0x80 | DEV_ACCESS_UNAVAILABLE);
	assert_int_equal(p[17], 2); /* implicitly (table 308) */
	assert_int_equal(set_group(65535, DEV_ACCESS_UNAVAILABLE, true, false),
			 0);
	assert_true(is_notified());
	assert_int_equal(report()[12], DEV_ACCESS_UNAVAILABLE);
}

/* A group of this gateway loses access and gets access again. */
static void test_own_group_loses_access(void **state)
{
	static const enum dev_access states[] = {
		DEV_ACCESS_NON_OPTIMIZED, DEV_ACCESS_STANDBY,
		DEV_ACCESS_UNAVAILABLE,	  DEV_ACCESS_STANDBY,
		DEV_ACCESS_OPTIMIZED,	  DEV_ACCESS_UNAVAILABLE,
		DEV_ACCESS_NON_OPTIMIZED,
	};
	static const uint16_t ascs[] = {
		[DEV_ACCESS_STANDBY] = ASC_PORT_IN_STANDBY,
		[DEV_ACCESS_UNAVAILABLE] = ASC_PORT_UNAVAILABLE,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		bool serves = states[i] <= DEV_ACCESS_NON_OPTIMIZED;

		assert_int_equal(set_group(1, states[i], false, false), 0);
		assert_true(is_notified());
		assert_int_equal(report()[0], states[i]);
		CMD(0, 512, NULL, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
		if (serves)
			assert_int_equal(R->task.status, SCSI_GOOD);
		else
			assert_check(SENSE_NOT_READY, ascs[states[i]]);
	}
}

/* ---- other groups while nexuses exist ---- */

static int open_plain(void **state)
{
	uint16_t rtpi;

	(void)state;
	memset(R, 0, sizeof(*R));
	R->two_initiators = true;
	fx_open(R, fx_ram(R), false);
	fx_take_attentions(R);
	assert_int_equal(dev_port_add(R->server, "iqn.t,t,0x0001", &rtpi), 0);
	results = 0;
	return 0;
}

static int replace(const struct dev_group_wish *w, unsigned n)
{
	unsigned before = results;

	assert_int_equal(dev_groups_replace(R->server, w, n, done, NULL), 0);
	assert_int_equal(results, before + 1);
	return result;
}

static void expect_asc(uint16_t asc)
{
	assert_int_equal(fx_test(R), SCSI_CHECK_CONDITION);
	assert_int_equal(R->sense.key, SENSE_UNIT_ATTENTION);
	assert_int_equal(R->sense.asc, asc);
}

/* Both nexuses report these attentions, up to the first 0, and no other. */
static void expect_attentions(const uint16_t ascs[4])
{
	for (unsigned who = 0; who < 2; who++) {
		for (unsigned i = 0; i < 4 && ascs[i]; i++)
			expect_asc(ascs[i]);
		if (fx_test(R) == SCSI_CHECK_CONDITION)
			assert_int_not_equal(R->sense.key,
					     SENSE_UNIT_ATTENTION);
		fx_swap(R);
	}
}

static uint8_t tpgs(void)
{
	assert_int_equal(CMD(0, 96, NULL, SCSI_INQUIRY, 0, 0, 0, 96, 0),
			 SCSI_GOOD);
	return R->in[5] >> 4 & 3;
}

/* SPC-4 §7.8.6.8: the target port group designator; 0: there is none. */
static uint16_t designated_group(void)
{
	size_t at = 4;

	assert_int_equal(CMD(0, 255, NULL, SCSI_INQUIRY, 1, 0x83, 0, 255, 0),
			 SCSI_GOOD);
	for (; at < R->in_len; at += 4u + R->in[at + 3])
		if ((R->in[at + 1] & 0x0f) == 5)
			return get_be16(R->in + at + 6);
	return 0;
}

#define CHANGED_STATE ASC_ACCESS_STATE_CHANGED

/* The first group brings ALUA, the last one takes it away: TPGS (SPC-4 §6.6.2), the
 * designator and mode page 1Ch differ then. */
static void test_groups_come_and_go_spc4_6_6_1(void **state)
{
	struct dev_group_wish w = { .group = group(7, 1) };
	static const uint16_t all[4] = { ASC_MODE_PARAMETERS_CHANGED,
					 CHANGED_STATE, ASC_INQUIRY_CHANGED };

	(void)state;
	assert_int_equal(tpgs(), 0);
	assert_int_equal(designated_group(), 0);
	assert_int_equal(replace(&w, 1), 0);
	expect_attentions(all);
	assert_int_equal(tpgs(), 3);
	assert_int_equal(designated_group(), 7);
	assert_int_equal(get_be16(report() + 2), 7);
	assert_int_equal(replace(NULL, 0), 0);
	expect_attentions(all);
	assert_int_equal(tpgs(), 0);
	assert_int_equal(designated_group(), 0);
	CMD(0, 512, NULL, SCSI_MAINTENANCE_IN, 0x0a, 0, 0, 0, 0, 0, 0, 2, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(replace(NULL, 0), 0);
	expect_attentions((const uint16_t[4]){ 0 });
}

/* A port that gets a group without access, and its nexuses. */
static void test_new_group_in_standby_spc4_5_16_2_4_4(void **state)
{
	struct dev_group_wish w = { .group = group(7, 1) };

	(void)state;
	w.group.state = DEV_ACCESS_STANDBY;
	assert_int_equal(replace(&w, 1), 0);
	expect_attentions((const uint16_t[4]){ ASC_MODE_PARAMETERS_CHANGED,
					       CHANGED_STATE,
					       ASC_INQUIRY_CHANGED });
	CMD(0, 512, NULL, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
	/* without a group the port serves again */
	w.group = group(7, 2);
	assert_int_equal(replace(&w, 1), 0);
	expect_attentions(
		(const uint16_t[4]){ CHANGED_STATE, ASC_INQUIRY_CHANGED });
	assert_int_equal(CMD(0, 512, NULL, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0,
			     1),
			 SCSI_GOOD);
}

/* A group keeps the state that it has, unless the configuration sets another one; ports
 * of other gateways stay offline while they are in a group. */
static void test_replaced_groups_keep_their_state(void **state)
{
	struct dev_group_wish w[2] = { { .group = group(1, 1) },
				       { .group = group(65535, 101) } };
	uint16_t out[DEV_MAX_OFFLINE];

	(void)state;
	assert_int_equal(set_group(65535, DEV_ACCESS_UNAVAILABLE, true, true),
			 0);
	assert_int_equal(set_port(101, true), 0);
	assert_int_equal(set_port(102, true), 0);
	assert_true(is_notified());
	assert_int_equal(replace(w, 2), 0);
	expect_attentions((const uint16_t[4]){ CHANGED_STATE });
	assert_int_equal(report()[8 + 4], 0x80 | DEV_ACCESS_UNAVAILABLE);
	assert_int_equal(dev_offline_ports(R->server, out), 1);
	assert_int_equal(out[0], 101);
	/* the same once more */
	assert_int_equal(replace(w, 2), 0);
	expect_attentions((const uint16_t[4]){ 0 });
	w[1].set_state = w[1].set_preferred = true;
	assert_int_equal(replace(w, 2), 0);
	expect_attentions((const uint16_t[4]){ CHANGED_STATE });
	assert_int_equal(report()[8 + 4], DEV_ACCESS_OPTIMIZED);
	assert_int_equal(report()[8 + 4 + 5], 2); /* implicitly (table 308) */
	/* the port moves to the other group */
	w[0].group.ports[0] = 101;
	w[1].group.ports[0] = 1;
	assert_int_equal(replace(w, 2), 0);
	expect_attentions(
		(const uint16_t[4]){ CHANGED_STATE, ASC_INQUIRY_CHANGED });
	assert_int_equal(designated_group(), 65535);
}

/* §5.16.2.5: while SANITIZE writes, a port cannot lose access. */
static void test_replace_while_sanitizing(void **state)
{
	struct dev_group_wish w = { .group = group(7, 1) };
	struct dev_lu *lu = dev_lu_get(R->server, 0);

	(void)state;
	w.group.state = DEV_ACCESS_STANDBY;
	assert_true(dev_condition_go(lu, LU_READY, LU_SANITIZING));
	assert_int_equal(dev_groups_check(R->server, &w, 1), ERR_BUSY);
	assert_int_equal(replace(&w, 1), ERR_BUSY);
	assert_int_equal(tpgs(), 0);
	assert_true(dev_condition_go(lu, LU_SANITIZING, LU_READY));
	expect_asc(ASC_MODE_PARAMETERS_CHANGED);
	w.group.state = DEV_ACCESS_NON_OPTIMIZED;
	assert_int_equal(dev_groups_check(R->server, &w, 1), 0);
	assert_int_equal(replace(&w, 1), 0);
	assert_int_equal(tpgs(), 3);
}

#define G(name) \
 cmocka_unit_test_setup_teardown(name, open_groups, close_fixture)

#define P(name) cmocka_unit_test_setup_teardown(name, open_plain, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_differ),
		cmocka_unit_test(test_ports_by_name),
		cmocka_unit_test(test_without_groups_nothing_changes),
		G(test_ports_that_are_offline_spc4_5_16_2),
		G(test_as_many_ports_as_there_is_room_for),
		G(test_states_of_groups_spc4_6_37),
		G(test_own_group_loses_access),
		P(test_groups_come_and_go_spc4_6_6_1),
		P(test_new_group_in_standby_spc4_5_16_2_4_4),
		G(test_replaced_groups_keep_their_state),
		P(test_replace_while_sanitizing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
