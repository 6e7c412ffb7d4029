/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * map_test.c: LUN maps of targets: who sees which unit by which LUN, and that task
 * management reaches units by whatever LUN, but no unit that the initiator cannot
 * access.
 *
 *   target  initiators  LUNs (unit)
 *   first   host*       0 (0)
 *   first   admin       0 (0), 300 (1)
 *   first   others      none
 *   second  all         1 (0), 7 (1)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "target/internal.h"

#define OURS "iqn.2026-01.org.example:"

struct env {
	struct fixture *r;
	struct dev_lu *units[2];
};

static struct dev_map *map_of(struct env *e, unsigned n,
			      const uint16_t luns[][2])
{
	struct dev_map_entry entries[4] = { 0 };
	struct dev_map *m;

	for (unsigned i = 0; i < n; i++)
		entries[i] =
			(struct dev_map_entry){ .lun = luns[i][0],
						.lu = e->units[luns[i][1]] };
	assert_int_equal(dev_map_new(e->r->server, entries, n, &m), 0);
	return m;
}

static struct tgt_directory *build(struct env *e)
{
	static const char *const hosts[] = { OURS "guest", OURS "host*" };
	static const char *const admin[] = { OURS "admin" };
	const struct tgt_portal_group_config portals = { .tag = FIXTURE_TAG };
	struct tgt_target_config t = { .name = FIXTURE_TARGET };
	struct tgt_directory *d = tgt_directory_new();
	struct dev_map *maps[] = {
		map_of(e, 0, NULL),
		map_of(e, 1, (const uint16_t[][2]){ { 0, 0 } }),
		map_of(e, 2, (const uint16_t[][2]){ { 300, 1 }, { 0, 0 } }),
		map_of(e, 2, (const uint16_t[][2]){ { 1, 0 }, { 7, 1 } }),
	};

	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	t.map = maps[0];
	assert_int_equal(tgt_target_add(d, &t), 0);
	assert_int_equal(
		tgt_target_map(d, 0,
			       &(struct tgt_map_config){ .initiators = hosts,
							 .ninitiators = 2,
							 .map = maps[1] }),
		0);
	assert_int_equal(
		tgt_target_map(d, 0,
			       &(struct tgt_map_config){ .initiators = admin,
							 .ninitiators = 1,
							 .map = maps[2] }),
		0);
	t = (struct tgt_target_config){ .name = FIXTURE_SECOND,
					.map = maps[3] };
	assert_int_equal(tgt_target_add(d, &t), 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(tgt_target_portal_group(d, i, 0), 0);
	for (unsigned i = 0; i < 4; i++)
		dev_map_put(maps[i]); /* d counts them */
	return d;
}

static int setup(void **state)
{
	const struct dev_lu_config lu = { .lun = 1 };
	static struct env e;
	uint8_t *memory = calloc(64, 512);

	e = (struct env){ .r = fixture_new(2, NULL) };
	assert_int_equal(dev_lu_add(e.r->server, &lu,
				    bs_ram_new("ram:32K", memory, 64 * 512, 512,
					       free, memory)),
			 0);
	for (uint16_t i = 0; i < 2; i++)
		e.units[i] = dev_lu_get(e.r->server, i);
	fixture_apply(e.r, build(&e));
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	fixture_free(e->r);
	return 0;
}

static struct peer *login(struct env *e, unsigned worker, const char *initiator,
			  const char *target)
{
	static const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 5 };
	struct peer *p = peer_new(e->r, worker);
	char keys[600];
	int n = snprintf(keys, sizeof(keys),
			 "InitiatorName=" OURS "%s%cSessionType=Normal%c"
			 "TargetName=%s",
			 initiator, 0, 0, target);

	assert_int_equal(peer_login(p, keys, (size_t)n + 1, isid, 0), 0);
	return p;
}

static struct dev_nexus *nexus_of(struct peer *p)
{
	return ((struct tgt_conn *)p->dm.user)->session->nexus;
}

/* ---- commands to any LUN ---- */

static uint32_t command(struct peer *p, uint16_t lun, uint8_t op)
{
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .final = true,
				 .itt = p->itt++,
				 .lun = dev_lun_encode(lun),
				 .cmdsn = p->cmdsn++ };

	pdu.cmd.attr = ISCSI_ATTR_SIMPLE;
	pdu.cmd.cdb[0] = op;
	if (op == 0x28) { /* READ(10) of one block */
		pdu.cmd.cdb[8] = 1;
		pdu.cmd.read = true;
		pdu.cmd.edtl = 512;
	}
	assert_int_equal(peer_rx(p, &pdu, NULL), 0);
	return pdu.itt;
}

/* Returns the additional sense code of TEST UNIT READY; 0: GOOD. */
static unsigned test_ready(struct env *e, struct peer *p, uint16_t lun)
{
	const struct sent *s;

	command(p, lun, 0x00);
	fixture_settle(e->r);
	s = peer_expect(p, ISCSI_SCSI_RESPONSE);
	if (s->pdu.rsp.status == SCSI_GOOD)
		return 0;
	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	return (unsigned)s->data[2 + 12] << 8 | s->data[2 + 13];
}

static void make_ready(struct env *e, struct peer *p, uint16_t lun)
{
	while (test_ready(e, p, lun))
		;
}

/* ---- tests ---- */

static void test_who_sees_which_unit(void **state)
{
	static const struct {
		const char *initiator, *target;
		int units[5]; /* by LUN 0, 1, 7, 300, 301; -1: none */
	} rows[] = {
		{ "host1", FIXTURE_TARGET, { 0, -1, -1, -1, -1 } },
		{ "host", FIXTURE_TARGET, { 0, -1, -1, -1, -1 } },
		{ "admin", FIXTURE_TARGET, { 0, -1, -1, 1, -1 } },
		{ "eve", FIXTURE_TARGET, { -1, -1, -1, -1, -1 } },
		{ "host1", FIXTURE_SECOND, { -1, 0, 1, -1, -1 } },
		{ "eve", FIXTURE_SECOND, { -1, 0, 1, -1, -1 } },
	};
	static const uint16_t luns[] = { 0, 1, 7, 300, 301 };
	struct env *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct peer *p =
			login(e, i % 2, rows[i].initiator, rows[i].target);

		for (size_t k = 0; k < ARRAY_LEN(luns); k++) {
			const int unit = rows[i].units[k];

			assert_ptr_equal(
				dev_nexus_unit(nexus_of(p),
					       dev_lun_encode(luns[k])),
				unit < 0 ? NULL : e->units[unit]);
			/* LOGICAL UNIT NOT SUPPORTED; POWER ON, RESET, OR ... */
			assert_int_equal(test_ready(e, p, luns[k]),
					 unit < 0 ? 0x2500 : 0x2900);
		}
	}
}

/* The sessions of other initiators of a target with LUN maps are not dropped; a
 * target without maps resets. */
static void test_cold_reset_with_maps_rfc7143_11_6_1(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "host1", FIXTURE_TARGET);
	struct peer *b = login(e, 1, "admin", FIXTURE_TARGET);
	struct peer *c = login(e, 0, "host1", FIXTURE_SECOND);
	uint32_t reset = peer_tmf(a, ISCSI_TMF_TARGET_COLD_RESET, 0, 0, 0);

	fixture_settle(e->r);
	peer_expect_tmf(a, reset, ISCSI_TMF_AUTH_FAILED);
	assert_false(a->terminated || b->terminated);
	reset = peer_tmf(c, ISCSI_TMF_TARGET_COLD_RESET, 0, 0, 0);
	fixture_settle(e->r);
	peer_expect_tmf(c, reset, ISCSI_TMF_COMPLETE);
	assert_true(c->terminated);
	assert_false(a->terminated || b->terminated);
}

/* A unit reset by one LUN of one target aborts the tasks of all sessions at that
 * unit, by another LUN of another target, too (SAM-5 §7.7). */
/* [RFC 7143: 11.5.1 #11] */
static void test_unit_reset_in_two_targets(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "host1", FIXTURE_TARGET);
	struct peer *b = login(e, 1, "host2", FIXTURE_SECOND);
	uint32_t reset;

	make_ready(e, a, 0);
	make_ready(e, b, 1);
	make_ready(e, b, 7);
	e->r->holding = true;
	command(b, 1, 0x28);
	reset = peer_tmf(a, ISCSI_TMF_LU_RESET, dev_lun_encode(0), 0, 0);
	fixture_settle(e->r);
	assert_true(peer_quiet(a)); /* until the aborted read has ended */
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(a, reset, ISCSI_TMF_COMPLETE);
	peer_expect_status(b, SCSI_TASK_ABORTED);
	assert_true(peer_quiet(b));
	assert_int_equal(test_ready(e, b, 1), 0x2903); /* by a reset */
	assert_int_equal(test_ready(e, b, 7), 0);
}

static void test_tmf_of_a_lun_that_is_not_mapped_rfc7143_11_6_1(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "host1", FIXTURE_TARGET);
	const uint32_t reset =
		peer_tmf(a, ISCSI_TMF_LU_RESET, dev_lun_encode(300), 0, 0);

	fixture_settle(e->r);
	peer_expect_tmf(a, reset, ISCSI_TMF_NO_LUN);
}

/* "The TARGET WARM RESET is also subject to SCSI access controls" (RFC 7143
 * §11.5.1): an initiator that has unit 0 only does not reset unit 1. */
/* [RFC 7143: 11.5.1 #12] */
static void test_warm_reset_reaches_own_units_rfc7143_11_5_1(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "host1", FIXTURE_TARGET);
	struct peer *b = login(e, 1, "admin", FIXTURE_TARGET);
	struct peer *c = login(e, 1, "host2", FIXTURE_SECOND);
	uint32_t reset;

	make_ready(e, a, 0);
	make_ready(e, b, 0);
	make_ready(e, b, 300);
	make_ready(e, c, 1);
	make_ready(e, c, 7);
	e->r->holding = true; /* unit 0 only */
	command(b, 0, 0x28);
	reset = peer_tmf(a, ISCSI_TMF_TARGET_WARM_RESET, 0, 0, 0);
	fixture_settle(e->r);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(a, reset, ISCSI_TMF_COMPLETE);
	peer_expect_status(b, SCSI_TASK_ABORTED);
	assert_true(peer_quiet(b));
	assert_int_equal(test_ready(e, a, 0), 0x2903);
	assert_int_equal(test_ready(e, b, 0), 0x2903);
	assert_int_equal(test_ready(e, c, 1), 0x2903);
	assert_int_equal(test_ready(e, b, 300), 0);
	assert_int_equal(test_ready(e, c, 7), 0);
}

static void settled(void *arg)
{
	*(bool *)arg = true;
}

/* A new directory is not settled before a function that began earlier has ended:
 * the function may use a unit of its session's map, even if the session ends. */
static void test_function_delays_settled(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "host1", FIXTURE_TARGET);
	struct peer *b = login(e, 1, "host2", FIXTURE_SECOND);
	bool is_settled = false;
	const struct tgt_apply_events events = { .settled = settled,
						 .arg = &is_settled };

	make_ready(e, b, 1);
	e->r->holding = true;
	command(b, 1, 0x28);
	peer_tmf(a, ISCSI_TMF_LU_RESET, dev_lun_encode(0), 0, 0);
	fixture_settle(e->r);
	peer_cut(a, ERR_RESET);
	fixture_settle(e->r);
	assert_int_equal(tgt_apply(e->r->tgt, build(e), &events), 0);
	fixture_settle(e->r);
	assert_false(is_settled);
	e->r->holding = false;
	fixture_settle(e->r);
	assert_true(is_settled);
}

/* ---- a change of the map of a session ---- */

/* One target with this map for all initiators, and the second one as before. */
static struct tgt_directory *build_with(struct env *e, unsigned n,
					const uint16_t luns[][2])
{
	const struct tgt_portal_group_config portals = { .tag = FIXTURE_TAG };
	struct tgt_target_config t = { .name = FIXTURE_TARGET };
	struct tgt_directory *d = tgt_directory_new();
	struct dev_map *maps[] = {
		map_of(e, n, luns),
		map_of(e, 2, (const uint16_t[][2]){ { 7, 1 }, { 1, 0 } }),
	};

	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	for (unsigned i = 0; i < 2; i++) {
		t.map = maps[i];
		t.name = i ? FIXTURE_SECOND : FIXTURE_TARGET;
		assert_int_equal(tgt_target_add(d, &t), i);
		assert_int_equal(tgt_target_portal_group(d, i, 0), 0);
		dev_map_put(maps[i]);
	}
	return d;
}

static void apply(struct env *e, struct tgt_directory *d, bool *is_settled)
{
	const struct tgt_apply_events events = { .settled = settled,
						 .arg = is_settled };

	*is_settled = false;
	assert_int_equal(tgt_apply(e->r->tgt, d, &events), 0);
	fixture_messages(e->r);
}

/* REPORTED LUNS DATA HAS CHANGED at one of the units that stay, POWER ON at new ones, what
 * differs at a LUN with another unit; a session whose map is the same notices nothing. */
static void test_new_map_attentions_sam5_5_14(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "admin", FIXTURE_TARGET);
	struct peer *b = login(e, 1, "admin", FIXTURE_SECOND);
	bool is_settled;

	make_ready(e, a, 0);
	make_ready(e, a, 300);
	make_ready(e, b, 1);
	make_ready(e, b, 7);
	apply(e, build_with(e, 1, (const uint16_t[][2]){ { 0, 0 } }),
	      &is_settled);
	assert_true(is_settled);
	assert_true(peer_quiet(a));
	assert_int_equal(test_ready(e, a, 0), 0x3f0e);
	assert_int_equal(test_ready(e, a, 0), 0);
	assert_int_equal(test_ready(e, a, 300), 0x2500);
	apply(e,
	      build_with(e, 2, (const uint16_t[][2]){ { 0, 0 }, { 16383, 1 } }),
	      &is_settled);
	assert_int_equal(test_ready(e, a, 0), 0x3f0e);
	assert_int_equal(test_ready(e, a, 16383), 0x2900);
	make_ready(e, a, 16383);
	/* the same units by other LUNs; LUN 0 has another one, of another size */
	apply(e, build_with(e, 2, (const uint16_t[][2]){ { 1, 0 }, { 0, 1 } }),
	      &is_settled);
	assert_int_equal(test_ready(e, a, 16383), 0x2500);
	assert_int_equal(test_ready(e, a, 0), 0x2a09);
	assert_int_equal(test_ready(e, a, 0), 0x3f0e);
	assert_int_equal(test_ready(e, a, 0), 0x3f03);
	assert_int_equal(test_ready(e, a, 1), 0);
	apply(e, build_with(e, 2, (const uint16_t[][2]){ { 0, 1 }, { 1, 0 } }),
	      &is_settled);
	assert_int_equal(test_ready(e, a, 0), 0);
	assert_int_equal(test_ready(e, b, 1), 0);
	assert_int_equal(test_ready(e, b, 7), 0);
}

/* Commands at a unit that leaves end with TASK ABORTED; new ones get BUSY until it
 * has left. Commands at a unit that stays go on. */
static void test_lost_unit_with_commands_sam5_5_3_1(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "admin", FIXTURE_TARGET);
	struct peer *b = login(e, 1, "admin", FIXTURE_SECOND);
	bool is_settled;
	uint32_t itt;

	make_ready(e, a, 0);
	make_ready(e, a, 300);
	make_ready(e, b, 1);
	e->r->holding = true; /* unit 0 only */
	itt = command(a, 0, 0x28);
	command(b, 1, 0x28);
	apply(e, build_with(e, 1, (const uint16_t[][2]){ { 300, 1 } }),
	      &is_settled);
	assert_true(peer_quiet(a));
	command(a, 0, 0x00);
	fixture_settle(e->r);
	peer_expect_status(a, SCSI_BUSY);
	assert_int_equal(test_ready(e, a, 300), 0);
	assert_false(is_settled);
	e->r->holding = false;
	fixture_release(e->r);
	fixture_settle(e->r);
	assert_int_equal(a->sent[a->next].pdu.itt, itt);
	peer_expect_status(a, SCSI_TASK_ABORTED);
	peer_expect_status(b, SCSI_GOOD); /* its map has the unit */
	assert_true(is_settled);
	assert_int_equal(test_ready(e, a, 300), 0x3f0e);
	assert_int_equal(test_ready(e, a, 0), 0x2500);
}

/* The session ends while its tasks are aborted for the new map: by a logout, by the
 * loss of its connection, or because its target is removed, too. */
static void test_session_ends_during_the_change(void **state)
{
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 99 };

	(void)state;
	for (unsigned way = 0; way < 3; way++) {
		bool first, second;
		struct peer *a;
		struct env *e;

		setup((void **)&e);
		a = login(e, 0, "admin", FIXTURE_TARGET);
		make_ready(e, a, 0);
		e->r->holding = true;
		command(a, 0, 0x28);
		apply(e, build_with(e, 0, NULL), &first);
		logout.cmdsn = a->cmdsn;
		if (way == 0)
			peer_rx(a, &logout, NULL);
		else if (way == 1)
			peer_cut(a, ERR_RESET);
		apply(e, fixture_directory(FIXTURE_SECOND), &second);
		if (way == 2) {
			tgt_worker_expire(tgt_worker(e->r->tgt, 0), XTIME_S);
			peer_expect(a, ISCSI_ASYNC_MESSAGE);
			peer_cut(a, ERR_RESET);
		}
		assert_false(first);
		assert_false(second);
		e->r->holding = false;
		fixture_settle(e->r);
		assert_true(first);
		assert_true(second);
		assert_true(a->gone);
		teardown((void **)&e);
	}
}

/* The session ends while the device releases what it has reserved at a unit that it
 * loses: by a logout, or by the loss of its connection. */
static void test_session_ends_during_the_release(void **state)
{
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 99 };

	(void)state;
	for (unsigned way = 0; way < 2; way++) {
		const struct tgt_session *s;
		struct peer *a, *b;
		bool is_settled = false;
		const struct tgt_apply_events events = { .settled = settled,
							 .arg = &is_settled };
		struct env *e;

		setup((void **)&e);
		a = login(e, 0, "admin", FIXTURE_TARGET);
		b = login(e, 1, "admin", FIXTURE_SECOND);
		make_ready(e, a, 0);
		make_ready(e, b, 1);
		command(a, 0, 0x16); /* RESERVE(6) */
		fixture_settle(e->r);
		peer_expect_status(a, SCSI_GOOD);
		s = ((struct tgt_conn *)a->dm.user)->session;
		assert_int_equal(tgt_apply(e->r->tgt, build_with(e, 0, NULL),
					   &events),
				 0);
		while (s->luns.step != TGT_REMAP_SETTING)
			assert_true(fixture_message_one(e->r));
		logout.cmdsn = a->cmdsn;
		if (way)
			peer_cut(a, ERR_RESET);
		else
			peer_rx(a, &logout, NULL);
		assert_true(peer_quiet(a)); /* until the device is done */
		fixture_settle(e->r);
		assert_true(a->gone);
		assert_true(is_settled);
		if (!way)
			peer_expect(a, ISCSI_LOGOUT_RESPONSE);
		assert_int_equal(test_ready(e, b, 1), 0); /* released */
		teardown((void **)&e);
	}
}

/* Of two new maps during one change the last one is in force in the end. */
static void test_two_maps(void **state)
{
	struct env *e = *state;
	struct peer *a = login(e, 0, "admin", FIXTURE_TARGET);
	bool first, second;

	make_ready(e, a, 0);
	e->r->holding = true;
	command(a, 0, 0x28);
	apply(e, build_with(e, 0, NULL), &first);
	apply(e, build_with(e, 1, (const uint16_t[][2]){ { 5, 1 } }), &second);
	assert_false(first);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_status(a, SCSI_TASK_ABORTED);
	assert_true(first);
	assert_true(second);
	assert_int_equal(test_ready(e, a, 0), 0x2500);
	assert_int_equal(test_ready(e, a, 5), 0x2900);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_who_sees_which_unit),
		CASE(test_unit_reset_in_two_targets),
		CASE(test_tmf_of_a_lun_that_is_not_mapped_rfc7143_11_6_1),
		CASE(test_cold_reset_with_maps_rfc7143_11_6_1),
		CASE(test_warm_reset_reaches_own_units_rfc7143_11_5_1),
		CASE(test_function_delays_settled),
		CASE(test_new_map_attentions_sam5_5_14),
		CASE(test_lost_unit_with_commands_sam5_5_3_1),
		cmocka_unit_test(test_session_ends_during_the_change),
		cmocka_unit_test(test_session_ends_during_the_release),
		CASE(test_two_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
