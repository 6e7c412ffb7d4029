/* SPDX-License-Identifier: BSD-2-Clause */
/* turn_test.c: functions that end the commands of all initiators wait for their turns
 * (dev_lu_reset_turn): another initiator's commands end between them. */
#include "base/err.h"
#include "env.h"

#define IN_A_ROW 4u /* turns without a wait */
#define STORM	 6u

/* The time of the turn, and the messages that come later. */
static struct {
	xtime now;
	struct {
		struct dev_msg *msg;
		xtime at;
	} later[8];
	unsigned n;
} vclock;

static xtime time_now(void *arg, unsigned worker, bool exact)
{
	(void)arg;
	(void)worker;
	(void)exact;
	return vclock.now;
}

static void later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	assert_true(vclock.n < ARRAY_LEN(vclock.later));
	vclock.later[vclock.n].msg = m;
	vclock.later[vclock.n++].at = vclock.now + ms * XTIME_MS;
}

static void advance(struct env *e, xtime by)
{
	vclock.now += by;
	for (unsigned i = 0; i < vclock.n;) {
		struct dev_msg *m = vclock.later[i].msg;

		if (vclock.later[i].at > vclock.now) {
			i++;
			continue;
		}
		vclock.later[i] = vclock.later[--vclock.n];
		m->run(m);
	}
	fixture_settle(e->r);
}

static void with_time(struct tgt_config *cfg)
{
	cfg->env.time = time_now;
	cfg->env.later = later;
}

static int open_two(void **state)
{
	static struct env e;

	memset(&vclock, 0, sizeof(vclock));
	vclock.now = XTIME_S;
	e = (struct env){ .r = fixture_new(2, with_time) };
	e.p = peer_session(e.r, 0, 1);
	e.other = peer_session(e.r, 1, 2);
	peer_ready(e.p);
	peer_ready(e.other);
	*state = &e;
	return 0;
}

static int close_two(void **state)
{
	struct env *e = *state;

	advance(e, XTIME_S);
	assert_int_equal(vclock.n, 0);
	return env_close(state);
}

static uint32_t ask(struct env *e, uint8_t function)
{
	return peer_tmf(e->p, function, 0, ISCSI_RESERVED_TAG, 0);
}

/* Asks for more functions than have their turn at once. itt: those that wait. */
static void storm(struct env *e, uint8_t function, uint32_t itt[STORM])
{
	for (unsigned i = 0; i < IN_A_ROW; i++) {
		uint32_t first = ask(e, function);

		fixture_settle(e->r);
		peer_expect_tmf(e->p, first, ISCSI_TMF_COMPLETE);
	}
	for (unsigned i = 0; i < STORM; i++)
		itt[i] = ask(e, function);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
}

static void expect_all(struct env *e, const uint32_t itt[STORM],
		       uint8_t response)
{
	for (unsigned i = 0; i < STORM; i++) {
		const struct sent *s = peer_expect(e->p, ISCSI_TMF_RESPONSE);
		unsigned k = 0;

		while (k < STORM && itt[k] != s->pdu.itt)
			k++;
		assert_true(k < STORM);
		assert_int_equal(s->pdu.tmf_response, response);
	}
	assert_true(peer_quiet(e->p));
}

/* One reset answers all that came before it, and the commands of another initiator end in the
 * meantime. */
static void expect_turns(struct env *e, uint8_t function)
{
	uint32_t itt[STORM];

	storm(e, function, itt);
	peer_ready(e->other);
	peer_read(e->other, 0, 1);
	fixture_settle(e->r);
	peer_expect_status(e->other, SCSI_GOOD);
	assert_int_equal(vclock.n, 1);
	e->r->holding = true;
	peer_read(e->other, 0, 1);
	advance(e, XTIME_S / 4);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_status(e->other, SCSI_TASK_ABORTED);
	expect_all(e, itt, ISCSI_TMF_COMPLETE);
}

/* SAM-5 §7.7 */
static void test_lu_resets_have_turns(void **state)
{
	expect_turns(*state, ISCSI_TMF_LU_RESET);
}

static void test_target_resets_have_turns(void **state)
{
	expect_turns(*state, ISCSI_TMF_TARGET_WARM_RESET);
}

/* SAM-5 §7.5 */
static void test_clear_task_sets_have_turns(void **state)
{
	expect_turns(*state, ISCSI_TMF_CLEAR_TASK_SET);
}

/* TST = 001b (SPC-4 §7.5.8) since the function waits: only its own tasks are aborted. */
static void test_task_set_is_its_own_by_then(void **state)
{
	struct env *e = *state;
	uint32_t itt[STORM];

	storm(e, ISCSI_TMF_CLEAR_TASK_SET, itt);
	control_page(e)->tst = 1;
	e->r->holding = true;
	peer_ready(e->other);
	peer_read(e->other, 0, 1);
	advance(e, XTIME_S / 4);
	expect_all(e, itt, ISCSI_TMF_COMPLETE);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_status(e->other, SCSI_GOOD);
}

/* Resets of one initiator leave a single turn to wait for to another one. */
static void test_others_wait_one_turn(void **state)
{
	struct env *e = *state;
	uint32_t itt[STORM], other;

	storm(e, ISCSI_TMF_LU_RESET, itt);
	other = peer_tmf(e->other, ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG,
			 0);
	advance(e, XTIME_S / 4);
	expect_all(e, itt, ISCSI_TMF_COMPLETE);
	for (unsigned i = 0; i < STORM; i++)
		itt[i] = ask(e, ISCSI_TMF_LU_RESET);
	advance(e, XTIME_S / 4);
	peer_expect_tmf(e->other, other, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p));
	advance(e, XTIME_S / 4);
	expect_all(e, itt, ISCSI_TMF_COMPLETE);
}

/* A session that has ended resets nothing any more. */
static void test_session_lost_before_its_turn(void **state)
{
	struct env *e = *state;
	uint32_t itt[STORM];

	storm(e, ISCSI_TMF_LU_RESET, itt);
	peer_cut(e->p, ERR_RESET);
	fixture_settle(e->r);
	peer_ready(e->other);
	e->r->holding = true;
	peer_read(e->other, 0, 1);
	advance(e, XTIME_S / 4);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_status(e->other, SCSI_GOOD);
	assert_true(tgt_worker_idle(tgt_worker(e->r->tgt, 0)));
}

#define TURN(f) cmocka_unit_test_setup_teardown(f, open_two, close_two)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN(test_lu_resets_have_turns),
		TURN(test_target_resets_have_turns),
		TURN(test_clear_task_sets_have_turns),
		TURN(test_task_set_is_its_own_by_then),
		TURN(test_others_wait_one_turn),
		TURN(test_session_lost_before_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
