/* SPDX-License-Identifier: BSD-2-Clause */
/* leave_test.c: the logout of one connection of several (RFC 7143 §11.14, reason 1). */
#include "mcs_fixture.h"

static struct ini_request request;
static int request_err;
static bool request_over;

static void request_done(struct ini_request *r, int err,
			 const struct dm_control *rsp)
{
	assert_ptr_equal(r, &request);
	assert_null(rsp);
	request_err = err;
	request_over = true;
}

static int leave(uint16_t cid, xtime deadline)
{
	int err;

	request.done = request_done;
	request_over = false;
	err = ini_conn_leave(s, cid, &request, deadline);
	take_all();
	return err;
}

/* Expects the Logout of w on w itself; returns its tag. */
static uint32_t expect_logout(const struct wire *w, uint16_t cid)
{
	assert_int_equal(w->nsent, 1);
	assert_int_equal(w->sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_true(w->sent[0].immediate);
	assert_int_equal(w->sent[0].logout.reason, ISCSI_LOGOUT_CONNECTION);
	assert_int_equal(w->sent[0].logout.cid, cid);
	return w->sent[0].itt;
}

static void expire(xtime at)
{
	now = at;
	ini_expire(s, now);
	take_all();
}

static void ask_logout(struct wire *w)
{
	struct iscsi_pdu p = { .op = ISCSI_ASYNC_MESSAGE,
			       .itt = ISCSI_RESERVED_TAG };

	p.async.event = ISCSI_ASYNC_LOGOUT;
	p.async.param3 = 3;
	reply(w, &p, NULL);
}

static void test_idle_connection(void **state)
{
	(void)state;
	begin(2, 0);
	assert_int_equal(leave(1, XTIME_NEVER), 0);
	assert_false(request_over);
	logout_response(&wires[1], expect_logout(&wires[1], 1), 0, 2);
	assert_true(request_over);
	assert_int_equal(request_err, 0);
	assert_true(wires[1].is_over);
	assert_false(is_closed);
	submit(0, false);
	assert_int_equal(wires[0].nsent, 1);
	/* another connection takes its place */
	dmtcp_free(wires[1].dm);
	wires[1] = (struct wire){ .host = { 0 } };
	start_joining(1);
	GRANT(&wires[1], TSIH, "MaxRecvDataSegmentLength=8192");
	assert_int_equal(joined_err, 0);
	end();
}

/* The command keeps its connection; new commands go to the other one. */
static void test_command_in_progress(void **state)
{
	uint32_t itt;

	(void)state;
	begin(2, 0);
	submit(0, false);
	submit(1, false);
	assert_int_equal(wires[1].nsent, 1);
	itt = wires[1].sent[0].itt;
	assert_int_equal(leave(1, XTIME_NEVER), 0);
	assert_int_equal(wires[1].nsent, 0);
	for (unsigned i = 2; i < 4; i++) {
		submit(i, false);
		assert_int_equal(wires[0].nsent, 1);
		assert_int_equal(wires[1].nsent, 0);
	}
	data_in(&wires[1], itt, 0, 0, LEN, 7);
	assert_int_equal(wires[1].nsent, 0);
	expcmdsn = 5;
	status(&wires[1], itt);
	assert_int_equal(tasks[1].err, 0);
	assert_false(request_over);
	logout_response(&wires[1], expect_logout(&wires[1], 1), 0, 0);
	assert_int_equal(request_err, 0);
	assert_true(request_over);
	end();
}

static void test_deadline(void **state)
{
	uint32_t itt;

	(void)state;
	begin(2, 0);
	submit(0, false);
	submit(1, false);
	itt = wires[1].sent[0].itt;
	assert_int_equal(leave(1, 5 * XTIME_S), 0);
	assert_true(ini_deadline(s) <= 5 * XTIME_S);
	expire(5 * XTIME_S);
	assert_true(request_over);
	assert_int_equal(request_err, ERR_TIMEOUT);
	/* the connection stays: its command ends, no Logout follows */
	data_in(&wires[1], itt, 0, 0, LEN, 7);
	status(&wires[1], itt);
	assert_int_equal(tasks[1].err, 0);
	assert_int_equal(wires[1].nsent, 0);
	assert_int_equal(leave(1, XTIME_NEVER), 0);
	expect_logout(&wires[1], 1);
	end();
}

static void test_refusals(void **state)
{
	struct ini_request other = { .done = request_done };

	(void)state;
	begin(2, 0);
	submit(0, false);
	submit(1, false);
	assert_int_equal(leave(9, XTIME_NEVER), ERR_NOT_FOUND);
	assert_int_equal(leave(0, XTIME_NEVER), 0);
	assert_int_equal(ini_conn_leave(s, 0, &other, XTIME_NEVER), ERR_BUSY);
	assert_int_equal(ini_conn_leave(s, 1, &other, XTIME_NEVER),
			 ERR_UNSUPPORTED);
	end();
	assert_true(request_over);
}

/* The answer says no, does not come, or the connection breaks before it. */
static void test_logout_fails(void **state)
{
	(void)state;
	begin(2, 0);
	leave(1, XTIME_NEVER);
	logout_response(&wires[1], expect_logout(&wires[1], 1), 3, 0);
	assert_int_equal(request_err, ERR_UNSUPPORTED);
	assert_false(is_closed);
	end();

	begin(2, 0);
	leave(1, XTIME_NEVER);
	expire(60 * XTIME_S);
	assert_true(request_over);
	assert_int_equal(request_err, ERR_TIMEOUT);
	assert_true(wires[1].is_over);
	assert_false(is_closed);
	end();

	begin(2, 0);
	leave(1, XTIME_NEVER);
	cut(&wires[1]);
	assert_true(request_over);
	assert_int_not_equal(request_err, 0);
	/* nothing of it was in progress */
	assert_false(is_closed);
	end();
}

/* A loss while commands are in progress. Level 2: they go on over the other one. */
static void test_loss_while_commands_end(void **state)
{
	(void)state;
	for (uint8_t level = 0; level <= 2; level += 2) {
		begin(2, level);
		submit(0, false);
		submit(1, false);
		leave(1, XTIME_NEVER);
		cut(&wires[1]);
		assert_true(request_over);
		assert_int_not_equal(request_err, 0);
		assert_int_equal(is_closed, level == 0);
		end();
	}
}

/* The connection that leaves is the only one left: it carries commands still. */
static void test_other_connection_is_lost(void **state)
{
	(void)state;
	begin(2, 2);
	submit(0, false);
	submit(1, false);
	leave(1, XTIME_NEVER);
	cut(&wires[0]);
	assert_false(is_closed);
	assert_int_equal(wires[1].nsent, 1);
	assert_int_equal(wires[1].sent[0].op, ISCSI_LOGOUT_REQUEST);
	assert_int_equal(wires[1].sent[0].logout.reason, ISCSI_LOGOUT_RECOVERY);
	end();
}

/* [RFC 7143: 11.9.1 #2] */
static void test_target_asks_rfc7143_11_9_1(void **state)
{
	(void)state;
	begin(2, 0);
	ask_logout(&wires[1]);
	logout_response(&wires[1], expect_logout(&wires[1], 1), 0, 0);
	assert_false(is_closed);
	/* the last one: the session's user decides */
	ask_logout(&wires[0]);
	assert_int_equal(wires[0].nsent, 0);
	submit(0, false);
	assert_int_equal(wires[0].nsent, 1);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_connection),
		cmocka_unit_test(test_command_in_progress),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_logout_fails),
		cmocka_unit_test(test_loss_while_commands_end),
		cmocka_unit_test(test_other_connection_is_lost),
		cmocka_unit_test(test_target_asks_rfc7143_11_9_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
