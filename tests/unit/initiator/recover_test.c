/* SPDX-License-Identifier: BSD-2-Clause */
/* recover_test.c: connection recovery at ErrorRecoveryLevel 2 (RFC 7143 §7.1.4.3):
 * Logout for recovery, commands that are sent again, TASK REASSIGN. */
#include "initiator/internal.h"
#include "mcs_fixture.h"

/* The Logout for recovery of CID `lost`, which w has sent. */
static const struct iscsi_pdu *expect_logout(const struct wire *w,
					     uint16_t lost)
{
	const struct iscsi_pdu *p = &w->sent[0];

	assert_int_equal(w->nsent, 1);
	assert_int_equal(p->op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(p->logout.reason, ISCSI_LOGOUT_RECOVERY);
	assert_int_equal(p->logout.cid, lost);
	return p;
}

/* The TASK REASSIGN of t, which w has sent at place `at` of several. */
static uint32_t reassign_at(const struct wire *w, unsigned at,
			    const struct ini_task *t, uint32_t sn)
{
	const struct iscsi_pdu *p = &w->sent[at];

	assert_true(at < w->nsent);
	assert_int_equal(p->op, ISCSI_TMF_REQUEST);
	assert_true(p->immediate); /* §11.5.1 */
	assert_int_equal(p->tmf.function, ISCSI_TMF_TASK_REASSIGN);
	assert_int_equal(p->tmf.rtt, t->dm.itt);
	assert_int_equal(p->tmf.exp_datasn, sn);
	return p->itt;
}

static uint32_t expect_reassign_from(const struct wire *w,
				     const struct ini_task *t, uint32_t sn)
{
	assert_int_equal(w->nsent, 1);
	return reassign_at(w, 0, t, sn);
}

/* Those of tasks 0 and 2, at once. */
static void expect_both(const struct wire *w, uint32_t itt[2])
{
	assert_int_equal(w->nsent, 2);
	itt[0] = reassign_at(w, 0, &tasks[0], 0);
	itt[1] = reassign_at(w, 1, &tasks[2], 0);
}

/* The same for a task of which nothing is acknowledged. */
static uint32_t expect_reassign(const struct wire *w, const struct ini_task *t)
{
	return expect_reassign_from(w, t, 0);
}

static void expire(xtime at)
{
	now = at;
	assert_true(ini_deadline(s) <= at);
	ini_expire(s, now);
	take_all();
}

/* Tasks 0 and 2 are on wire 0, task 1 is on wire 1; wire 0 breaks. The target has
 * acknowledged `acked` of them. */
static void lose_wire_0(unsigned acked, bool is_write)
{
	begin(2, 2);
	for (unsigned i = 0; i < 3; i++)
		submit(i, is_write);
	expcmdsn = 1 + acked;
	cut(&wires[0]);
	assert_false(is_closed);
	assert_int_equal(ended, 0);
}

/* [RFC 7145: 3.3 #5, 7.3.3 #9] */
/* [RFC 7143: 7.1.4.3 #1-2, 7.1.5 #1, 7.2.1 #3, 7.2.2 #1, 11.5.1 #18,
 * 11.5.6 #3, 11.14 #6] */
static void test_the_commands_go_on_elsewhere_rfc7143_7_2_2(void **state)
{
	struct wire *w = &wires[1];
	uint32_t itt[2];

	(void)state;
	lose_wire_0(3, false);
	logout_response(w, expect_logout(w, 0)->itt, 0, 2);
	assert_int_equal(w->nsent, 0); /* Time2Wait */
	expire(XTIME_S);	       /* the session learns the time */
	assert_int_equal(ini_deadline(s), 3 * XTIME_S);
	ini_expire(s, 3 * XTIME_S - 1);
	take_all();
	assert_int_equal(w->nsent, 0);
	expire(3 * XTIME_S);
	expect_both(w, itt);
	tmf_response(w, itt[0], ISCSI_TMF_COMPLETE);
	tmf_response(w, itt[1], ISCSI_TMF_COMPLETE);
	for (unsigned i = 0; i < 3; i++) {
		data_in(w, tasks[i].dm.itt, 0, 0, LEN, (uint8_t)(0xa0 + i));
		status(w, tasks[i].dm.itt);
		assert_int_equal(tasks[i].err, 0);
		assert_int_equal(tasks[i].moved, LEN);
		assert_int_equal(bytes_of[i][LEN - 1], 0xa0 + i);
	}
	assert_int_equal(ended, 3);
	submit(3, false);
	assert_int_equal(w->nsent, 1);
	end();
}

/* §11.5.6: the initiator discards the data that it did not acknowledge. */
/* [RFC 7143: 7.2.2 #2, 11.5.6 #1] */
static void test_data_of_the_lost_connection_come_again(void **state)
{
	struct wire *w = &wires[1];

	(void)state;
	begin(2, 2);
	submit(0, false);
	expcmdsn = 2;
	data_in(&wires[0], tasks[0].dm.itt, 0, 0, LEN / 2, 0x11);
	cut(&wires[0]);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	tmf_response(w, expect_reassign(w, &tasks[0]), ISCSI_TMF_COMPLETE);
	data_in(w, tasks[0].dm.itt, 0, 0, LEN / 2, 0x22);
	data_in(w, tasks[0].dm.itt, 1, LEN / 2, LEN / 2, 0x33);
	status(w, tasks[0].dm.itt);
	assert_int_equal(tasks[0].err, 0);
	assert_int_equal(bytes_of[0][0], 0x22);
	assert_int_equal(bytes_of[0][LEN - 1], 0x33);
	end();
}

/* The data of a moved WRITE are taken as far as the target asks for them. */
static void
test_a_write_goes_on_where_the_target_was_rfc7143_7_2_2(void **state)
{
	struct iscsi_pdu r2t = { .op = ISCSI_R2T, .ttt = 9 };
	struct wire *w = &wires[1];

	(void)state;
	begin(2, 2);
	submit(0, true);
	expcmdsn = 2;
	r2t.itt = tasks[0].dm.itt;
	r2t.r2t.ddtl = LEN / 2;
	reply(&wires[0], &r2t, NULL);
	assert_int_equal(wires[0].nsent, 1);
	cut(&wires[0]);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	tmf_response(w, expect_reassign_from(w, &tasks[0], 1),
		     ISCSI_TMF_COMPLETE);
	r2t.r2t.r2tsn = 1; /* the first half has arrived */
	r2t.r2t.offset = LEN / 2;
	reply(w, &r2t, NULL);
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_DATA_OUT);
	assert_int_equal(w->sent[0].data.offset, LEN / 2);
	assert_int_equal(w->sent[0].dsl, LEN / 2);
	status(w, tasks[0].dm.itt);
	assert_int_equal(tasks[0].err, 0);
	assert_int_equal(tasks[0].moved, LEN);
	end();
}

/* The target had all data of the WRITE and only its status was lost. */
static void test_a_write_whose_status_was_lost(void **state)
{
	struct iscsi_pdu r2t = { .op = ISCSI_R2T, .ttt = 9 };
	struct wire *w = &wires[1];

	(void)state;
	begin(2, 2);
	submit(0, true);
	expcmdsn = 2;
	r2t.itt = tasks[0].dm.itt;
	r2t.r2t.ddtl = LEN;
	reply(&wires[0], &r2t, NULL);
	cut(&wires[0]);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	tmf_response(w, expect_reassign_from(w, &tasks[0], 1),
		     ISCSI_TMF_COMPLETE);
	status(w, tasks[0].dm.itt);
	assert_int_equal(tasks[0].err, 0);
	assert_int_equal(tasks[0].moved, LEN);
	end();
}

/* §11.14: the target has discarded what it did not acknowledge. */
static void
test_unacknowledged_commands_are_sent_again_rfc7143_7_2_1(void **state)
{
	struct wire *w = &wires[1];
	uint32_t itts[3];

	(void)state;
	lose_wire_0(0, false);
	for (unsigned i = 0; i < 3; i++)
		itts[i] = tasks[i].dm.itt;
	logout_response(w, expect_logout(w, 0)->itt, 0, 2);
	assert_int_equal(w->nsent, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(w->sent[i].op, ISCSI_SCSI_COMMAND);
		assert_int_equal(w->sent[i].itt, itts[2 * i]);
		assert_int_equal(w->sent[i].cmdsn, 1 + 2 * i);
	}
	expcmdsn = 4;
	for (unsigned i = 0; i < 3; i++) {
		data_in(w, itts[i], 0, 0, LEN, 0x77);
		status(w, itts[i]);
		assert_int_equal(tasks[i].err, 0);
	}
	expire(2 * XTIME_S);
	assert_int_equal(w->nsent, 0); /* nothing is left to reassign */
	submit(3, false);
	assert_int_equal(w->sent[0].cmdsn, 4);
	end();
}

/* The target of Linux answers TASK REASSIGN with 255 and has moved the task. */
static void test_a_rejected_reassign_may_have_moved_the_task(void **state)
{
	static const uint8_t answers[] = { ISCSI_TMF_REJECTED,
					   ISCSI_TMF_TASK_ALLEGIANT };
	struct wire *w = &wires[1];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		ended = 0;
		begin(2, 2);
		submit(0, false);
		expcmdsn = 2;
		cut(&wires[0]);
		logout_response(w, expect_logout(w, 0)->itt, 0, 0);
		tmf_response(w, expect_reassign(w, &tasks[0]), answers[i]);
		assert_int_equal(ended, 0);
		data_in(w, tasks[0].dm.itt, 0, 0, LEN, 0x44);
		status(w, tasks[0].dm.itt);
		assert_int_equal(tasks[0].err, 0);
		end();
	}
}

/* It compares the LUN as well, which is reserved (RFC 7143 §11.5.3): once more with it. */
static void test_a_rejected_reassign_is_sent_with_the_lun(void **state)
{
	const uint64_t lun = UINT64_C(1) << 48;
	struct wire *w = &wires[1];
	uint32_t itt[2];

	(void)state;
	ended = 0;
	begin(2, 2);
	for (unsigned i = 0; i < 4; i += 2) { /* wire 0 */
		submit(i, false);
		submit(i + 1, false); /* wire 1 */
	}
	tasks[0].lun = lun;
	expcmdsn = 5;
	cut(&wires[0]);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	expect_both(w, itt);
	assert_true(w->sent[0].lun == 0);
	tmf_response(w, itt[0], ISCSI_TMF_REJECTED);
	itt[0] = expect_reassign(w, &tasks[0]);
	assert_true(w->sent[0].lun == lun);
	tmf_response(w, itt[0], ISCSI_TMF_REJECTED); /* moved */
	/* LUN 0 */
	tmf_response(w, itt[1], ISCSI_TMF_REJECTED);
	assert_int_equal(w->nsent, 0);
	for (unsigned i = 0; i < 4; i++) {
		data_in(w, tasks[i].dm.itt, 0, 0, LEN, 0x44);
		status(w, tasks[i].dm.itt);
		assert_int_equal(tasks[i].err, 0);
	}
	end();
}

static void test_a_task_that_the_target_lost_is_aborted(void **state)
{
	struct wire *w = &wires[1];
	uint32_t itt[2];

	(void)state;
	lose_wire_0(3, false);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	expect_both(w, itt);
	tmf_response(w, itt[0], ISCSI_TMF_NO_TASK);
	assert_int_equal(ended, 1);
	assert_int_equal(tasks[0].err, ERR_ABORTED);
	tmf_response(w, itt[1], ISCSI_TMF_COMPLETE);
	assert_int_equal(ended, 1);
	end();
}

static void test_a_target_that_does_not_recover_ends_the_session(void **state)
{
	struct wire *w = &wires[1];

	(void)state;
	for (uint8_t response = 1; response <= 3; response++) {
		ended = 0;
		lose_wire_0(3, false);
		logout_response(w, expect_logout(w, 0)->itt, response, 0);
		take_all();
		assert_true(is_closed);
		assert_int_equal(ended, 3);
		end();
	}
	ended = 0;
	lose_wire_0(3, false);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	tmf_response(w, reassign_at(w, 0, &tasks[0], 0), ISCSI_TMF_NO_REASSIGN);
	take_all();
	assert_true(is_closed);
	assert_int_equal(ended, 3);
	end();
}

static void test_the_last_loss_ends_the_session(void **state)
{
	(void)state;
	lose_wire_0(3, false);
	expect_logout(&wires[1], 0);
	cut(&wires[1]);
	assert_true(is_closed);
	assert_int_equal(ended, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_true(tasks[i].err < 0);
	end();
}

/* The connection of the Logout is lost, too: both are recovered by the third. */
static void test_two_losses_are_recovered_by_the_third_connection(void **state)
{
	struct wire *w = &wires[2];
	unsigned reassigns = 0;
	uint32_t itt[2];

	(void)state;
	begin(3, 2);
	for (unsigned i = 0; i < 3; i++)
		submit(i, false);
	expcmdsn = 4;
	cut(&wires[0]);
	if (wires[1].nsent) { /* the Logout of CID 0 went there */
		expect_logout(&wires[1], 0);
		cut(&wires[1]);
		assert_int_equal(w->nsent, 2);
		itt[0] = w->sent[0].itt;
		itt[1] = w->sent[1].itt;
	} else {
		itt[0] = expect_logout(w, 0)->itt;
		cut(&wires[1]);
		itt[1] = expect_logout(w, 1)->itt;
	}
	logout_response(w, itt[0], 0, 1);
	logout_response(w, itt[1], 0, 1);
	expire(1 * XTIME_S);
	expire(2 * XTIME_S);
	/* one request for each lost connection */
	assert_int_equal(w->nsent, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(w->sent[i].tmf.function,
				 ISCSI_TMF_TASK_REASSIGN);
		itt[i] = w->sent[i].itt;
		reassigns++;
	}
	tmf_response(w, itt[0], ISCSI_TMF_COMPLETE);
	tmf_response(w, itt[1], ISCSI_TMF_COMPLETE);
	assert_int_equal(reassigns, 2);
	for (unsigned i = 0; i < 3; i++) {
		data_in(w, tasks[i].dm.itt, 0, 0, LEN, 0x66);
		status(w, tasks[i].dm.itt);
		assert_int_equal(tasks[i].err, 0);
	}
	end();
}

/* The new connection is lost while the task moves to it. */
static void test_a_task_moves_twice(void **state)
{
	struct wire *w = &wires[1], *last = &wires[2];

	(void)state;
	begin(3, 2);
	submit(0, false);
	expcmdsn = 2;
	cut(&wires[0]);
	if (!w->nsent) {
		w = &wires[2];
		last = &wires[1];
	}
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	if (!w->nsent) { /* TASK REASSIGN went to the other one */
		struct wire *other = w;

		w = last;
		last = other;
	}
	expect_reassign(w, &tasks[0]);
	cut(w);
	assert_int_equal(ended, 0);
	logout_response(last, expect_logout(last, (uint16_t)(w - wires))->itt,
			0, 0);
	tmf_response(last, expect_reassign(last, &tasks[0]),
		     ISCSI_TMF_COMPLETE);
	data_in(last, tasks[0].dm.itt, 0, 0, LEN, 0x66);
	status(last, tasks[0].dm.itt);
	assert_int_equal(tasks[0].err, 0);
	end();
}

/* §11.9.1: event 2 names the connection that the target has dropped. */
/* [RFC 7143: 7.1.4.3 #3] */
static void test_async_message_drops_one_connection(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_ASYNC_MESSAGE,
			       .itt = ISCSI_RESERVED_TAG };

	(void)state;
	begin(2, 2);
	submit(0, false);
	expcmdsn = 2;
	p.async.event = ISCSI_ASYNC_DROP_CONNECTION;
	p.async.param1 = 0;
	reply(&wires[1], &p, NULL);
	take_all();
	assert_true(wires[0].is_over);
	assert_false(is_closed);
	end();
}

/* A target that violates the protocol is not trusted with a recovery. */
/* [RFC 7143: 7.7 #1] */
static void test_a_lie_ends_the_session_at_level_2(void **state)
{
	(void)state;
	begin(2, 2);
	submit(0, false);
	status(&wires[1], tasks[0].dm.itt);
	take_all();
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_PROTOCOL);
	end();
}

static struct ini_request reset;
static unsigned resets;

static void reset_done(struct ini_request *r, int err,
		       const struct dm_control *rsp)
{
	(void)r;
	(void)rsp;
	assert_int_equal(err, 0);
	resets++;
}

/* A reset ends the commands that have no connection, too (§4.2.3.3). */
static void test_a_reset_during_the_recovery(void **state)
{
	struct wire *w = &wires[1];
	uint32_t logout;

	(void)state;
	lose_wire_0(3, false);
	logout = expect_logout(w, 0)->itt;
	resets = 0;
	reset = (struct ini_request){ .done = reset_done };
	assert_int_equal(ini_task_management(s, &reset, ISCSI_TMF_LU_RESET, 0,
					     NULL, XTIME_NEVER),
			 0);
	take_all();
	tmf_response(w, w->sent[0].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(resets, 1);
	assert_int_equal(ended, 3);
	logout_response(w, logout, 0, 0);
	assert_int_equal(w->nsent, 0); /* no task is left */
	assert_false(is_closed);
	end();
}

/* The Logout, and then a TASK REASSIGN, get no answer: each is repeated. The answer to
 * the second Logout may say that the first one was carried out. */
static void test_lost_requests_are_repeated_rfc7143_7_1_4_3(void **state)
{
	struct wire *w = &wires[1];
	uint32_t itt[2];

	(void)state;
	lose_wire_0(3, false);
	expect_logout(w, 0);
	expire(10 * XTIME_S); /* the session had no clock before */
	assert_int_equal(w->nsent, 0);
	assert_int_equal(ini_deadline(s), 15 * XTIME_S);
	expire(15 * XTIME_S);
	logout_response(w, expect_logout(w, 0)->itt, 1, 0);
	expect_both(w, itt);
	expire(16 * XTIME_S);
	expire(21 * XTIME_S);
	expect_both(w, itt);
	tmf_response(w, itt[0], ISCSI_TMF_TASK_ALLEGIANT); /* the first came */
	tmf_response(w, itt[1], ISCSI_TMF_COMPLETE);
	assert_false(is_closed);
	end();
}

/* The TASK REASSIGNs of many tasks are sent in one go. A target that has no room for so many
 * rejects some: they are sent one after the other then. */
/* [RFC 7143: 4.2.2.1 #5] */
static void test_many_tasks_move_in_one_round_trip(void **state)
{
	struct iscsi_pdu reject = { .op = ISCSI_REJECT,
				    .itt = ISCSI_RESERVED_TAG,
				    .dsl = ISCSI_BHS_LEN };
	struct wire *w = &wires[1];
	struct iscsi_pdu sent[4];
	uint8_t bhs[ISCSI_BHS_LEN];

	(void)state;
	ended = 0;
	begin(2, 2);
	for (unsigned i = 0; i < 4; i++)
		submit(i, false);
	for (unsigned i = 1; i < 4; i += 2)
		ini_task_move(&tasks[i], tasks[0].sent.conn);
	expcmdsn = 5;
	cut(&wires[0]);
	logout_response(w, expect_logout(w, 0)->itt, 0, 0);
	assert_int_equal(w->nsent, 4);
	for (unsigned i = 0; i < 4; i++) {
		reassign_at(w, i, &tasks[i], 0);
		sent[i] = w->sent[i];
	}
	reject.reject.reason = ISCSI_REJECT_TOO_MANY_IMMEDIATE;
	for (unsigned i = 2; i < 4; i++) {
		iscsi_bhs_encode(&sent[i], bhs);
		reply(w, &reject, bhs);
		assert_int_equal(w->nsent, 0);
	}
	tmf_response(w, sent[0].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(w->nsent, 1);
	sent[2].itt = w->sent[0].itt;
	assert_true(w->sent[0].tmf.rtt == tasks[2].dm.itt ||
		    w->sent[0].tmf.rtt == tasks[3].dm.itt);
	tmf_response(w, sent[1].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(w->nsent, 1);
	sent[3].itt = w->sent[0].itt;
	tmf_response(w, sent[2].itt, ISCSI_TMF_COMPLETE);
	tmf_response(w, sent[3].itt, ISCSI_TMF_COMPLETE);
	assert_int_equal(w->nsent, 0);
	for (unsigned i = 0; i < 4; i++) {
		data_in(w, tasks[i].dm.itt, 0, 0, LEN, 0x66);
		status(w, tasks[i].dm.itt);
		assert_int_equal(tasks[i].err, 0);
	}
	end();
}

static void test_requests_are_not_repeated_for_ever(void **state)
{
	struct wire *w = &wires[1];
	unsigned n = 1;

	(void)state;
	lose_wire_0(3, false);
	expect_logout(w, 0);
	for (xtime t = 1; !w->is_over && t < 100; t++) {
		now = t * XTIME_S;
		ini_expire(s, now);
		take_all();
		n += w->nsent;
	}
	assert_true(is_closed);
	assert_int_equal(n, 4);
	end();
}

/* Over iSER a request without an answer shows that its connection does not work: it is not
 * repeated there, and both connections are recovered over the third one. */
static void test_no_request_is_repeated_over_iser_rfc7145_10_2_1(void **state)
{
	struct wire *w = &wires[1], *other = &wires[2];

	(void)state;
	begin(3, 2);
	s->params.rdma_extensions = true;
	for (unsigned i = 0; i < 3; i++)
		submit(i, false);
	expcmdsn = 4;
	cut(&wires[0]);
	expect_logout(w, 0);
	expire(10 * XTIME_S);
	assert_int_equal(ini_deadline(s), 30 * XTIME_S);
	expire(30 * XTIME_S);
	assert_true(w->is_over);
	assert_false(is_closed || other->is_over);
	assert_int_equal(other->nsent, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(other->sent[i].op, ISCSI_LOGOUT_REQUEST);
		assert_int_equal(other->sent[i].logout.cid, i);
	}
	end();
}

/* Two connections get no answer to their pings at the same time: the Logout goes over
 * the third one, not over the one that is about to end. */
static void pings(struct ini_config *cfg)
{
	cfg->idle_time = cfg->ping_time = 4 * XTIME_S;
}

static void test_two_connections_hang_at_once(void **state)
{
	unsigned n = 0;

	(void)state;
	change_config = pings;
	begin(3, 2);
	change_config = NULL;
	now = 4 * XTIME_S;
	ini_expire(s, now);
	take_all();
	for (unsigned t = 5; t <= 8; t++) {
		struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
				       .itt = wires[2].sent[0].itt,
				       .ttt = ISCSI_RESERVED_TAG };

		if (wires[2].nsent)
			reply(&wires[2], &p, NULL);
		now = t * XTIME_S;
		ini_expire(s, now);
		if (t < 8)
			take_all();
	}
	take(&wires[0]); /* ends now */
	take(&wires[1]);
	take(&wires[2]);
	assert_true(wires[0].is_over && wires[1].is_over);
	assert_false(wires[2].is_over || is_closed);
	for (unsigned i = 0; i < wires[2].nsent; i++)
		n += wires[2].sent[i].op == ISCSI_LOGOUT_REQUEST;
	assert_int_equal(n, 2);
	end();
}

static int setup(void **state)
{
	(void)state;
	ended = 0;
	memset(tasks, 0, sizeof(tasks));
	return 0;
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_the_commands_go_on_elsewhere_rfc7143_7_2_2),
		T(test_data_of_the_lost_connection_come_again),
		T(test_a_write_goes_on_where_the_target_was_rfc7143_7_2_2),
		T(test_a_write_whose_status_was_lost),
		T(test_unacknowledged_commands_are_sent_again_rfc7143_7_2_1),
		T(test_a_rejected_reassign_may_have_moved_the_task),
		T(test_a_rejected_reassign_is_sent_with_the_lun),
		T(test_a_task_that_the_target_lost_is_aborted),
		T(test_a_target_that_does_not_recover_ends_the_session),
		T(test_the_last_loss_ends_the_session),
		T(test_two_losses_are_recovered_by_the_third_connection),
		T(test_a_task_moves_twice),
		T(test_async_message_drops_one_connection),
		T(test_a_lie_ends_the_session_at_level_2),
		T(test_a_reset_during_the_recovery),
		T(test_lost_requests_are_repeated_rfc7143_7_1_4_3),
		T(test_many_tasks_move_in_one_round_trip),
		T(test_requests_are_not_repeated_for_ever),
		T(test_no_request_is_repeated_over_iser_rfc7145_10_2_1),
		T(test_two_connections_hang_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
