/* SPDX-License-Identifier: BSD-2-Clause */
/* fence_test.c: the Response Fence (RFC 7143 §4.2.2.3) over the connections of a session,
 * and FastAbort (§4.2.3.4). */
#include <string.h>

#include "base/err.h"
#include "multi.h"

static int open_fence(void **state)
{
	return open_multi_with(state, "ResponseFence,RFC3720");
}

static int open_fast(void **state)
{
	return open_multi_with(state, "FastAbort,ResponseFence,RFC3720");
}

static uint32_t function(struct multi *m, unsigned i, enum iscsi_tmf what)
{
	uint32_t itt;

	m->p[i]->cmdsn = m->cmdsn;
	itt = peer_tmf(m->p[i], what, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(m->r);
	return itt;
}

static void expect_attention(struct peer *p)
{
	struct sent *s = peer_expect(p, ISCSI_SCSI_RESPONSE);

	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_int_equal(s->data[2 + 2] & 0x0f, 6);
}

/* A reset whose response was sent on 0 and is not acknowledged. */
static void reset(struct multi *m)
{
	uint32_t itt;

	acknowledge_all(m);
	itt = function(m, 0, ISCSI_TMF_LU_RESET);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
}

/* [RFC 7143: 4.2.2.3.2 #1-3, 4.2.2.3.3 #2-4, 4.2.3.3 #8-9, 13.23 #3 #5] */
static void test_fence_of_a_reset_rfc7143_4_2_2_3_3(void **state)
{
	struct multi *m = *state;
	uint32_t itt;

	acknowledge_all(m);
	tur(m, 1);
	tur(m, 2);
	peer_expect_status(m->p[1], SCSI_GOOD);
	peer_expect_status(m->p[2], SCSI_GOOD);
	itt = function(m, 0, ISCSI_TMF_LU_RESET);
	tur(m, 2); /* after the fence */
	acknowledge(m, m->p[2]);
	assert_true(peer_quiet(m->p[0]) && peer_quiet(m->p[2]));
	acknowledge(m, m->p[1]);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(m->p[2]));
	/* the first response with the unit attention is fenced, too */
	acknowledge(m, m->p[0]);
	expect_attention(m->p[2]);
	tur(m, 1);
	assert_true(peer_quiet(m->p[1]));
	acknowledge(m, m->p[2]);
	peer_expect_status(m->p[1], SCSI_GOOD);
	tur(m, 2);
	peer_expect_status(m->p[2], SCSI_GOOD);
}

/* The initiator answers a ping before the last response came. */
static void test_ping_is_repeated_rfc7143_4_2_2_3_3(void **state)
{
	struct multi *m = *state;
	struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
				 .immediate = true,
				 .final = true,
				 .itt = ISCSI_RESERVED_TAG };
	uint32_t itt;

	acknowledge_all(m);
	tur(m, 1);
	peer_expect_status(m->p[1], SCSI_GOOD);
	itt = function(m, 0, ISCSI_TMF_LU_RESET);
	nop.cmdsn = m->cmdsn;
	nop.ttt = peer_expect(m->p[1], ISCSI_NOP_IN)->pdu.ttt;
	nop.expstatsn = m->p[1]->dm.numbers->statsn - 1;
	peer_rx(m->p[1], &nop, NULL);
	fixture_settle(m->r);
	assert_true(peer_quiet(m->p[0]));
	acknowledge(m, m->p[1]);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
}

/* With RFC3720 nothing is held back after the response. */
static void test_no_fence_without_the_key_rfc7143_13_23(void **state)
{
	struct multi *m = *state;
	uint32_t itt;

	acknowledge_all(m);
	tur(m, 1);
	peer_expect_status(m->p[1], SCSI_GOOD);
	itt = function(m, 0, ISCSI_TMF_LU_RESET);
	tur(m, 2);
	expect_attention(m->p[2]);
	acknowledge(m, m->p[1]);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
	tur(m, 2);
	peer_expect_status(m->p[2], SCSI_GOOD);
}

/* Read data do not wait, their status does. */
static void test_data_pass_the_fence_rfc7143_4_2_2_3_3(void **state)
{
	struct multi *m = *state;
	struct sent *s;
	uint32_t itt;

	reset(m);
	acknowledge_all(m);
	tur(m, 1);
	expect_attention(m->p[1]);
	m->p[2]->cmdsn = m->cmdsn++;
	itt = peer_read(m->p[2], 0, 1);
	fixture_settle(m->r);
	s = peer_next(m->p[2]);
	assert_true(s->put);
	assert_int_equal(s->len, 512);
	assert_int_equal(s->pdu.op,
			 ISCSI_DATA_IN); /* no response with the data */
	assert_true(peer_quiet(m->p[2]));
	acknowledge(m, m->p[1]);
	s = peer_expect(m->p[2], ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.itt, itt);
	assert_int_equal(s->pdu.rsp.status, SCSI_GOOD);
}

/* §4.2.2.3.4 c, d, e */
/* [RFC 7143: 4.2.2.3.4 #2] */
static void test_fences_of_aca_rfc7143_4_2_2_3_4(void **state)
{
	const uint8_t beyond[16] = { 0x28, 0, 0xff, [8] = 1, [9] = 0x04 };
	struct multi *m = *state;
	uint32_t itt;

	acknowledge_all(m);
	tur(m, 2);
	peer_expect_status(m->p[2], SCSI_GOOD);
	m->p[1]->cmdsn = m->cmdsn++;
	peer_command(m->p[1], beyond, true, false, 512);
	fixture_settle(m->r);
	assert_true(peer_quiet(m->p[1]));
	acknowledge(m, m->p[2]);
	peer_expect_status(m->p[1], SCSI_CHECK_CONDITION);
	tur(m, 2);
	tur(m, 0);
	acknowledge(m, m->p[1]);
	peer_expect_status(m->p[2], SCSI_ACA_ACTIVE);
	assert_true(peer_quiet(m->p[0]));
	acknowledge(m, m->p[2]);
	peer_expect_status(m->p[0], SCSI_ACA_ACTIVE);
	itt = function(m, 1, ISCSI_TMF_CLEAR_ACA);
	assert_true(peer_quiet(m->p[1]));
	acknowledge(m, m->p[0]);
	peer_expect_tmf(m->p[1], itt, ISCSI_TMF_COMPLETE);
}

/* §4.2.2.3.4 f; and a status without a fence waits for none. */
/* [RFC 7143: 4.2.2.3.4 #2] */
static void test_fence_of_preempt_and_abort_rfc7143_4_2_2_3_4(void **state)
{
	const uint8_t cdb[16] = { 0x5f, 0x05, 0x01, [8] = 24 };
	struct multi *m = *state;

	acknowledge_all(m);
	tur(m, 2);
	peer_expect_status(m->p[2], SCSI_GOOD);
	m->p[1]->cmdsn = m->cmdsn++;
	peer_command(m->p[1], cdb, false, true, 24);
	peer_unsolicited(m->p[1], m->p[1]->last_task, 0, 24, 0);
	fixture_settle(m->r);
	assert_true(peer_quiet(m->p[1]));
	acknowledge(m, m->p[2]);
	assert_int_equal(peer_next(m->p[1])->pdu.op, ISCSI_SCSI_RESPONSE);
}

/* ABORT TASK for a command whose status waits: the status comes first. */
static void test_abort_of_a_held_status_rfc7143_11_5_1(void **state)
{
	struct multi *m = *state;
	uint32_t itt, tmf;

	reset(m);
	m->p[1]->cmdsn = m->cmdsn++;
	itt = peer_tur(m->p[1]);
	m->p[1]->cmdsn = m->cmdsn;
	tmf = peer_tmf(m->p[1], ISCSI_TMF_ABORT_TASK, 0, itt, m->cmdsn - 1);
	fixture_settle(m->r);
	assert_true(peer_quiet(m->p[1]));
	acknowledge(m, m->p[0]);
	expect_attention(m->p[1]);
	acknowledge(m, m->p[1]);
	peer_expect_tmf(m->p[1], tmf, ISCSI_TMF_NO_TASK);
}

static void log_out(struct multi *m, unsigned by, unsigned cid)
{
	struct iscsi_pdu logout = { .op = ISCSI_LOGOUT_REQUEST,
				    .immediate = true,
				    .final = true,
				    .itt = 5,
				    .cmdsn = m->cmdsn };

	logout.logout.reason = ISCSI_LOGOUT_CONNECTION;
	logout.logout.cid = (uint16_t)cid;
	peer_rx(m->p[by], &logout, NULL);
	fixture_settle(m->r);
	peer_expect(m->p[by], ISCSI_LOGOUT_RESPONSE);
}

static void reset_alone(struct multi *m)
{
	uint32_t itt = function(m, 2, ISCSI_TMF_LU_RESET);

	peer_expect_tmf(m->p[2], itt, ISCSI_TMF_COMPLETE);
	tur(m, 2);
	expect_attention(m->p[2]);
	tur(m, 2);
	peer_expect_status(m->p[2], SCSI_GOOD);
}

/* The connection of the fenced response ends, then one with a status that waits. With
 * one connection there is no fence. */
/* [RFC 7143: 4.2.2.3.3 #1] */
static void test_connections_that_end_rfc7143_4_2_2_3_3(void **state)
{
	struct multi *m = *state;

	reset(m);
	tur(m, 1);
	tur(m, 2);
	assert_true(peer_quiet(m->p[1]) && peer_quiet(m->p[2]));
	log_out(m, 2, 0);
	acknowledge(m, m->p[2]);
	expect_attention(m->p[1]);
	assert_true(peer_quiet(m->p[2]));
	log_out(m, 2, 1);
	peer_expect_status(m->p[2], SCSI_GOOD);
	reset_alone(m);
}

static void test_session_ends_behind_a_fence(void **state)
{
	struct multi *m = *state;

	reset(m);
	tur(m, 1);
	function(m, 1, ISCSI_TMF_LU_RESET);
	function(m, 2, ISCSI_TMF_TARGET_COLD_RESET);
	peer_cut(m->p[1], ERR_RESET);
	fixture_settle(m->r);
	for (unsigned i = 0; i < CONNS; i++)
		assert_true(m->p[i]->gone);
	assert_int_equal(add(m, 1), ISCSI_LOGIN_NO_SESSION);
}

static void test_cold_reset_is_fenced_rfc7143_4_2_2_3_4(void **state)
{
	struct multi *m = *state;
	uint32_t itt;

	acknowledge_all(m);
	tur(m, 1);
	peer_expect_status(m->p[1], SCSI_GOOD);
	itt = function(m, 0, ISCSI_TMF_TARGET_COLD_RESET);
	assert_true(peer_quiet(m->p[0]));
	acknowledge(m, m->p[1]);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
	fixture_settle(m->r);
	for (unsigned i = 0; i < CONNS; i++)
		assert_true(m->p[i]->gone);
}

/* ---- FastAbort ---- */

static void write_without_data(struct multi *m, unsigned i)
{
	m->p[i]->cmdsn = m->cmdsn++;
	peer_write(m->p[i], 0, 1);
	peer_unsolicited(m->p[i], m->p[i]->last_task, 7, 0, 0);
}

static void expect_termination(struct peer *p)
{
	struct sent *s = peer_expect(p, ISCSI_ASYNC_MESSAGE);

	assert_int_equal(s->pdu.async.event, ISCSI_ASYNC_TASK_TERMINATION);
	assert_int_equal(s->pdu.lun, 0);
}

/* Two tasks of a connection: one message. The response does not wait for their data, but
 * for the acknowledgement of the messages. */
/* [RFC 7143: 4.2.3.4 #1 #9-12 #15, 11.9.1 #6, 13.23 #4-5] */
static void test_fast_abort_rfc7143_4_2_3_4(void **state)
{
	struct multi *m = *state;
	uint32_t itt;

	acknowledge_all(m);
	write_without_data(m, 0);
	write_without_data(m, 1);
	write_without_data(m, 1);
	write_without_data(m, 2);
	itt = function(m, 0, ISCSI_TMF_ABORT_TASK_SET);
	assert_true(peer_quiet(m->p[0]));
	expect_termination(m->p[1]);
	expect_termination(m->p[2]);
	acknowledge(m, m->p[1]);
	assert_true(peer_quiet(m->p[0]));
	acknowledge(m, m->p[2]);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
}

/* [RFC 7143: 4.2.3.3 #5] */
static void test_no_fast_abort_without_the_key_rfc7143_13_23(void **state)
{
	struct multi *m = *state;

	acknowledge_all(m);
	write_without_data(m, 0);
	write_without_data(m, 1);
	function(m, 0, ISCSI_TMF_ABORT_TASK_SET);
	assert_true(peer_quiet(m->p[0]));
	assert_true(peer_quiet(m->p[1]));
}

static struct peer *third_party(struct multi *m, const char *reporting,
				uint8_t isid)
{
	static const char common[] = "InitiatorName=" FIXTURE_INI "\0"
				     "SessionType=Normal\0"
				     "TargetName=" FIXTURE_TARGET "\0"
				     "ImmediateData=Yes\0"
				     "TaskReporting=";
	const uint8_t id[6] = { 0x80, 1, 2, 3, 4, isid };
	struct peer *p = peer_new(m->r, 0);
	char keys[256];
	size_t len = sizeof(common) - 1;

	memcpy(keys, common, len);
	memcpy(keys + len, reporting, strlen(reporting) + 1);
	assert_int_equal(
		peer_login(p, keys, len + strlen(reporting) + 1, id, 0), 0);
	peer_ready(p);
	p->next = p->nsent;
	return p;
}

/* Other sessions get the message if they have FastAbort, whatever the session of the
 * function has. */
/* [RFC 7143: 4.2.3.4 #9 #13, 4.2.3.5 #1-2] */
static void test_messages_to_other_sessions_rfc7143_4_2_3_5(void **state)
{
	struct multi *m = *state;
	struct peer *fast =
		third_party(m, "FastAbort,ResponseFence,RFC3720", 7);
	struct peer *slow = third_party(m, "ResponseFence,RFC3720", 8);
	uint32_t itt;

	acknowledge_all(m);
	peer_write(fast, 0, 1);
	peer_write(slow, 0, 1);
	peer_unsolicited(fast, fast->last_task, 7, 0, 0);
	peer_unsolicited(slow, slow->last_task, 7, 0, 0);
	itt = function(m, 0, ISCSI_TMF_LU_RESET);
	peer_expect_tmf(m->p[0], itt, ISCSI_TMF_COMPLETE);
	expect_termination(fast);
	peer_expect_status(fast, SCSI_TASK_ABORTED); /* TAS = 1 */
	peer_expect_status(slow, SCSI_TASK_ABORTED);
	assert_true(peer_quiet(slow));
	peer_tur(fast);
	expect_attention(fast);
}

#define WITH(f, open) cmocka_unit_test_setup_teardown(f, open, close_multi)
#define FENCE(f)      WITH(f, open_fence)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FENCE(test_fence_of_a_reset_rfc7143_4_2_2_3_3),
		FENCE(test_ping_is_repeated_rfc7143_4_2_2_3_3),
		MULTI(test_no_fence_without_the_key_rfc7143_13_23),
		FENCE(test_data_pass_the_fence_rfc7143_4_2_2_3_3),
		FENCE(test_fences_of_aca_rfc7143_4_2_2_3_4),
		FENCE(test_fence_of_preempt_and_abort_rfc7143_4_2_2_3_4),
		FENCE(test_abort_of_a_held_status_rfc7143_11_5_1),
		FENCE(test_connections_that_end_rfc7143_4_2_2_3_3),
		FENCE(test_session_ends_behind_a_fence),
		FENCE(test_cold_reset_is_fenced_rfc7143_4_2_2_3_4),
		WITH(test_fast_abort_rfc7143_4_2_3_4, open_fast),
		FENCE(test_no_fast_abort_without_the_key_rfc7143_13_23),
		WITH(test_messages_to_other_sessions_rfc7143_4_2_3_5,
		     open_fast),
		FENCE(test_messages_to_other_sessions_rfc7143_4_2_3_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
