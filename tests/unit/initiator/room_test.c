/* SPDX-License-Identifier: BSD-2-Clause */
/* room_test.c: connection recovery at a target that has no room for its requests:
 * MaxOutstandingUnexpectedPDUs (RFC 7145 §8.1.1.3), a closed command window. */
#include "initiator/internal.h"
#include "mcs_fixture.h"

/* ---- a datamover with the limit of iSER ---- */

#define LIMIT 2

static const struct dm_ops *real_ops;
static uint32_t outstanding[LIMIT]; /* CmdSNs of immediate requests */
static unsigned noutstanding;

static int send_limited(struct dm_conn *dm, struct dm_task *t,
			const struct dm_control *ctl)
{
	unsigned left = 0;

	for (unsigned i = 0; i < noutstanding; i++)
		if (!sn_lt(outstanding[i], s->window.expcmdsn))
			outstanding[left++] = outstanding[i];
	noutstanding = left;
	if (ctl->pdu.immediate && noutstanding == LIMIT)
		return ERR_BUSY;
	if (ctl->pdu.immediate)
		outstanding[noutstanding++] = ctl->pdu.cmdsn;
	return real_ops->send_control(dm, t, ctl);
}

static void limit(struct wire *w)
{
	static struct dm_ops limited;
	struct dm_conn *dm = dmtcp_dm(w->dm);

	real_ops = dm->ops;
	limited = *real_ops;
	limited.send_control = send_limited;
	dm->ops = &limited;
}

/* ---- steps ---- */

/* Commands 1 to 3 are acknowledged and on the wires 0, 1 and 0; only wire 1 has the limit,
 * with `used` immediate requests already. The window is closed. Wire 0 breaks. */
static struct wire *lose_wire_0(unsigned used)
{
	struct wire *w = &wires[1];

	begin(2, 2);
	for (unsigned i = 0; i < 3; i++)
		submit(i, false);
	s->window.maxcmdsn = 3;
	expcmdsn = 4;
	window = 0;
	limit(w);
	noutstanding = used;
	for (unsigned i = 0; i < used; i++)
		outstanding[i] = 4;
	data_in(w, tasks[1].dm.itt, 0, 0, LEN / 2, 0x11);
	status(w, tasks[1].dm.itt);
	assert_int_equal(s->window.expcmdsn, 4);
	cut(&wires[0]);
	assert_false(is_closed);
	return w;
}

static void expire(xtime at)
{
	now = at;
	ini_expire(s, now);
	take_all();
}

static uint32_t expect_logout(const struct wire *w, bool immediate)
{
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(w->sent[0].logout.reason, ISCSI_LOGOUT_RECOVERY);
	assert_int_equal(w->sent[0].immediate, immediate);
	return w->sent[0].itt;
}

static uint32_t expect_reassign(const struct wire *w, unsigned i)
{
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_TMF_REQUEST);
	assert_int_equal(w->sent[0].tmf.function, ISCSI_TMF_TASK_REASSIGN);
	assert_true(w->sent[0].immediate); /* RFC 7143 §11.5.1 */
	assert_int_equal(w->sent[0].tmf.rtt, tasks[i].dm.itt);
	return w->sent[0].itt;
}

/* A ping that has a CmdSN. */
static uint32_t expect_ping(const struct wire *w, uint32_t cmdsn)
{
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_NOP_OUT);
	assert_false(w->sent[0].immediate);
	assert_int_equal(w->sent[0].cmdsn, cmdsn);
	return w->sent[0].itt;
}

static void pong(struct wire *w, uint32_t itt)
{
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG };

	reply(w, &p, NULL);
}

static void finish(struct wire *w, unsigned i)
{
	data_in(w, tasks[i].dm.itt, 0, 0, LEN, 0x77);
	status(w, tasks[i].dm.itt);
	assert_int_equal(tasks[i].err, 0);
	assert_int_equal(bytes_of[i][LEN - 1], 0x77);
}

/* The Logout and the first TASK REASSIGN are two requests; the second TASK REASSIGN has to
 * wait until the target acknowledges a request with a CmdSN. Returns the tag of that ping. */
static uint32_t use_the_room(struct wire *w)
{
	window = 32;
	logout_response(w, expect_logout(w, true), 0, 0);
	tmf_response(w, expect_reassign(w, 0), ISCSI_TMF_COMPLETE);
	return expect_ping(w, 4);
}

/* ---- tests ---- */

/* [RFC 7145: 8.1.1.3 #3] */
/* [RFC 7143: 11.5.1 #18] */
static void test_a_ping_makes_room_rfc7145_8_1_1_3(void **state)
{
	struct wire *w = lose_wire_0(0);
	uint32_t itt = use_the_room(w);

	(void)state;
	expcmdsn = 5;
	pong(w, itt);
	tmf_response(w, expect_reassign(w, 2), ISCSI_TMF_COMPLETE);
	finish(w, 0);
	finish(w, 2);
	submit(3, false);
	assert_int_equal(w->sent[0].cmdsn, 5);
	end();
}

/* The window is closed, too: no request at all can be sent. */
static void test_a_closed_window_as_well(void **state)
{
	struct wire *w = lose_wire_0(0);

	(void)state;
	logout_response(w, expect_logout(w, true), 0, 0);
	tmf_response(w, expect_reassign(w, 0), ISCSI_TMF_COMPLETE);
	assert_int_equal(w->nsent, 0);
	expire(XTIME_S); /* the session learns the time */
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(ini_deadline(s) > now);
		expire(XTIME_S + i * XTIME_S / 5);
		assert_int_equal(w->nsent, 0);
		expire(now);
	}
	assert_false(is_closed);
	window = 32;
	finish(w, 0); /* opens it */
	expire(2 * XTIME_S);
	expcmdsn = 5;
	pong(w, expect_ping(w, 4));
	tmf_response(w, expect_reassign(w, 2), ISCSI_TMF_COMPLETE);
	finish(w, 2);
	end();
}

static void test_no_room_for_the_logout(void **state)
{
	struct wire *w = lose_wire_0(LIMIT);
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
			       .itt = ISCSI_RESERVED_TAG,
			       .ttt = ISCSI_RESERVED_TAG };
	uint32_t itt;

	(void)state;
	assert_int_equal(w->nsent, 0);
	expire(XTIME_S);
	expire(2 * XTIME_S);
	assert_int_equal(w->nsent, 0);
	assert_false(is_closed);
	window = 32;
	reply(w, &p, NULL);
	w->statsn--; /* RFC 7143 §11.19: such a NOP-In does not advance it */
	expire(now);
	expire(3 * XTIME_S);
	expcmdsn = 5;
	logout_response(w, expect_logout(w, false), 0, 0);
	assert_int_equal(w->nsent, 2);
	itt = w->sent[1].itt;
	assert_int_equal(w->sent[1].tmf.rtt, tasks[2].dm.itt);
	w->nsent = 1;
	tmf_response(w, expect_reassign(w, 0), ISCSI_TMF_COMPLETE);
	tmf_response(w, itt, ISCSI_TMF_COMPLETE);
	finish(w, 0);
	finish(w, 2);
	end();
}

/* The target answers each ping, and acknowledges none. */
static void test_answers_that_make_no_room(void **state)
{
	struct wire *w = lose_wire_0(0);
	uint32_t itt = use_the_room(w);
	unsigned n = 0;

	(void)state;
	while (n < 10) {
		pong(w, itt);
		n++;
		if (is_closed)
			break;
		itt = expect_ping(w, 4 + n);
	}
	assert_true(is_closed);
	assert_int_equal(close_err, ERR_TIMEOUT);
	assert_int_equal(n, 4);
	assert_int_equal(ended, 3);
	end();
}

static void waits(struct ini_config *cfg)
{
	cfg->continues = true;
}

/* The connection of the ping is lost, and it was the last one. */
static void test_the_connection_of_the_ping_is_lost(void **state)
{
	struct wire *w, *next = &wires[2];
	struct ini_conn *c;

	(void)state;
	change_config = waits;
	w = lose_wire_0(0);
	change_config = NULL;
	use_the_room(w);
	cut(w);
	assert_true(ini_is_waiting(s));
	c = ini_conn_new(s, wire_dm(next), 1);
	assert_non_null(c);
	ini_conn_start(c, now);
	take(next);
	GRANT(next, TSIH, "MaxRecvDataSegmentLength=8192");
	/* one lost connection has task 2, the other one task 0 */
	assert_int_equal(next->nsent, 2);
	{
		uint32_t itt[2] = { next->sent[0].itt, next->sent[1].itt };

		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(next->sent[i].tmf.function,
					 ISCSI_TMF_TASK_REASSIGN);
		tmf_response(next, itt[0], ISCSI_TMF_COMPLETE);
		tmf_response(next, itt[1], ISCSI_TMF_COMPLETE);
	}
	finish(next, 0);
	finish(next, 2);
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
		T(test_a_ping_makes_room_rfc7145_8_1_1_3),
		T(test_a_closed_window_as_well),
		T(test_no_room_for_the_logout),
		T(test_answers_that_make_no_room),
		T(test_the_connection_of_the_ping_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
