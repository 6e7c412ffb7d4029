/* SPDX-License-Identifier: BSD-2-Clause */
/* tmf_test.c: task management functions and their responses. */
#include <string.h>

#include "base/err.h"
#include "device/unit/attention.h"
#include "device/unit/itl.h"
#include "env.h"

/* The response follows the end of the task, and nothing of the task follows
 * it. */
/* [RFC 7143: 11.5.1 #1 #3, 11.6.2 #1] */
static void test_abort_task_rfc7143_11_6_1_a(void **state)
{
	struct env *e = *state;
	uint32_t itt, tmf, cmdsn = e->p->cmdsn;

	e->r->holding = true;
	itt = peer_read(e->p, 0, 1);
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, itt, cmdsn);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p)); /* its I/O is still in progress */
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p));
	peer_ready(e->p);
}

static void test_abort_task_waiting_for_data(void **state)
{
	struct env *e = *state;
	uint32_t itt, tmf, cmdsn = e->p->cmdsn;

	itt = peer_write(e->p, 0, 8);
	peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
	assert_non_null(e->p->get_task);
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, itt, cmdsn);
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_null(e->p->get_task);
	assert_int_equal(e->r->memory[0], 0);
	assert_int_equal(e->r->buffers, 0);
}

/* The datamover may need time to release the task. */
/* [RFC 7145: 8.3.2 #4] [RFC 5047: 8.9 #1] */
static void test_abort_task_released_later(void **state)
{
	struct env *e = *state;
	uint32_t itt, tmf, cmdsn = e->p->cmdsn;

	itt = peer_write(e->p, 0, 8);
	peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
	e->p->release_later = true;
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, itt, cmdsn);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	assert_int_equal(e->r->buffers, 1); /* it may still write there */
	e->p->dm.up->data_completion_notify(&e->p->dm, e->p->releasing,
					    DM_RELEASED, 0);
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_int_equal(e->r->buffers, 0);
	e->p->release_later = false;
}

/* A missing command in the window counts as received. */
/* [RFC 7143: 7.11 #2] */
static void test_abort_task_not_received_rfc7143_11_6_1_b(void **state)
{
	struct env *e = *state;
	uint32_t lost = e->p->cmdsn, tmf;

	e->p->cmdsn++; /* a missing command */
	peer_tur(e->p);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p)); /* waits for the missing command */
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, 4711, lost);
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE); /* the command after it */
	e->p->cmdsn = lost;
	peer_tur(e->p); /* ignored, should it come after all */
	assert_null(e->p->last_task);
	e->p->cmdsn = lost + 2;
}

/* [RFC 7143: 7.11 #3] */
static void test_abort_task_unknown_rfc7143_11_6_1_c(void **state)
{
	struct env *e = *state;
	uint32_t tmf =
		peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, 4711, e->p->cmdsn - 1);

	peer_expect_tmf(e->p, tmf, ISCSI_TMF_NO_TASK);
}

/* [RFC 7143: 11.5.1 #9-10] */
static void test_abort_of_tmf_rejected_rfc7143_11_5_1(void **state)
{
	struct env *e = *state;
	uint32_t first, second;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	first = peer_tmf(e->p, ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(e->r);
	second = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, first, 0);
	peer_expect_tmf(e->p, second, ISCSI_TMF_REJECTED);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, first, ISCSI_TMF_COMPLETE);
}

/* Responses that were queued earlier are sent first. */
/* [RFC 5047: 8.9 #2] */
static void test_abort_after_response_queued(void **state)
{
	struct env *e = *state;
	uint32_t itt, tmf, cmdsn = e->p->cmdsn;

	itt = peer_read(e->p, 0, 1);
	fixture_release(e->r); /* queued, not yet sent */
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, itt, cmdsn);
	assert_int_equal(peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.itt, itt);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_NO_TASK);
}

static void test_abort_task_set_own_session_only(void **state)
{
	struct env *e = *state;
	uint32_t tmf;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	peer_read(e->p, 0, 1);
	peer_read(e->other, 0, 1);
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p));
	peer_expect(e->other, ISCSI_SCSI_RESPONSE);
}

/* SAM-5 §4.7: the same LUN in the form of flat space addressing. */
static void test_function_names_the_lun_in_another_form(void **state)
{
	const uint64_t flat = (uint64_t)0x4000 << 48;
	struct env *e = *state;
	uint32_t read, tmf;

	e->r->holding = true;
	read = peer_read(e->p, 0, 1);
	tmf = peer_tmf(e->p, ISCSI_TMF_QUERY_TASK_SET, flat, ISCSI_RESERVED_TAG,
		       0);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_SUCCEEDED);
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, flat, read, 0);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p)); /* the command was aborted */
}

/* The function waits for missing commands before it. */
/* [RFC 7143: 4.2.2.1 #4, 4.2.3.3 #1 #6, 4.2.3.4 #6, 13.23 #6] */
static void test_abort_task_set_waits_for_commands_rfc7143_4_2_3_3(void **state)
{
	struct env *e = *state;
	uint32_t lost = e->p->cmdsn, tmf;

	e->p->cmdsn = lost + 1;
	tmf = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	e->r->holding = true;
	e->p->cmdsn = lost;
	peer_read(e->p, 0, 1);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p)); /* the late command was aborted */
}

/* The function waits a limited time for data of valid TTTs. */
/* [RFC 7143: 4.2.3.3 #1 #5] */
static void test_lu_reset_waits_for_data_rfc7143_4_2_3_3_a(void **state)
{
	struct env *e = *state;
	uint32_t tmf;

	peer_write(e->p, 0, 8);
	peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
	tmf = peer_tmf(e->p, ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	peer_solicited(e->p, 1, 0);
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p));
	assert_int_equal(e->r->memory[0], 0);
}

static void test_lu_reset_data_never_come(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	xtime now = 100 * XTIME_S;
	uint32_t tmf;

	peer_write(e->p, 0, 8);
	peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
	e->r->rearmed = false;
	tmf = peer_tmf(e->p, ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(e->r);
	assert_true(e->r->rearmed);
	assert_true(tgt_worker_deadline(w) <= now);
	tgt_worker_expire(w, now);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	tgt_worker_expire(w, now + e->r->cfg.abort_time);
	fixture_settle(e->r);
	/* the session was idle: a ping was sent before */
	while (e->p->sent[e->p->next].pdu.op == ISCSI_NOP_IN)
		peer_next(e->p);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_int_equal(e->r->buffers, 0);
}

/* All sessions on all workers. */
static void all_sessions(struct env *e, enum iscsi_tmf function)
{
	uint32_t tmf;

	control_page(e)->tas = false;
	e->r->holding = true;
	peer_read(e->p, 0, 1);
	peer_read(e->other, 0, 1);
	peer_write(e->other, 0, 8);
	peer_unsolicited(e->other, e->other->last_task, 1, 512, 0);
	tmf = peer_tmf(e->p, function, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p));
	assert_true(peer_quiet(e->other));
	assert_int_equal(e->r->buffers, 0);
}

static void expect_attention(struct peer *p, uint8_t asc)
{
	struct sent *s;

	peer_tur(p);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_int_equal(s->data[4] & 0x0f, 0x06);
	assert_int_equal(s->data[14], asc);
}

/* TAS = 0: a unit attention reports cleared commands to their initiator. */
/* [RFC 7143: 4.2.3.3 #7, 4.2.3.4 #7, 4.2.3.6 #1] */
static void test_clear_task_set_other_workers(void **state)
{
	struct env *e = *state;
	struct peer *idle = peer_session(e->r, 1, 3);

	peer_ready(idle);
	all_sessions(e, ISCSI_TMF_CLEAR_TASK_SET);
	expect_attention(e->other, 0x2f);
	peer_ready(e->p);
	peer_tur(idle); /* it had no command in the task set */
	fixture_settle(e->r);
	peer_expect_status(idle, SCSI_GOOD);
}

/* ---- the control mode page: TAS, TST ---- */

/* TAS = 1: a command that another initiator aborts ends with TASK ABORTED. */
static void told_functions(struct env *e, enum iscsi_tmf function)
{
	uint32_t tmf, read, write;

	control_page(e)->tas = true;
	e->r->holding = true;
	peer_read(e->p, 0, 1);
	read = peer_read(e->other, 0, 1);
	write = peer_write(e->other, 0, 8);
	tmf = peer_tmf(e->p, function, 0, ISCSI_RESERVED_TAG, 0);
	fixture_settle(e->r);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(
		peer_quiet(e->p)); /* commands of the issuer have no response */
	for (int i = 0; i < 2; i++) {
		struct sent *s = peer_expect(e->other, ISCSI_SCSI_RESPONSE);

		assert_int_equal(s->pdu.rsp.status, SCSI_TASK_ABORTED);
		assert_int_equal(s->pdu.rsp.response, 0);
		assert_true(s->pdu.itt == read || s->pdu.itt == write);
		assert_int_equal(s->len, 0);
	}
	assert_true(peer_quiet(e->other));
	assert_int_equal(e->r->buffers, 0);
}

static void test_clear_task_set_with_tas_spc4_7_5_8(void **state)
{
	told_functions(*state, ISCSI_TMF_CLEAR_TASK_SET);
	peer_ready(((struct env *)*state)->p);
	/* status instead of an attention */
	peer_tur(((struct env *)*state)->other);
	fixture_settle(((struct env *)*state)->r);
	assert_int_equal(peer_expect(((struct env *)*state)->other,
				     ISCSI_SCSI_RESPONSE)
				 ->pdu.rsp.status,
			 SCSI_GOOD);
}

static void test_resets_with_tas_spc4_7_5_8(void **state)
{
	struct env *e = *state;

	told_functions(e, ISCSI_TMF_LU_RESET);
	expect_attention(e->other, 0x29);
	expect_attention(e->p, 0x29); /* SAM-5 §6.3.3: the issuer, too */
	told_functions(e, ISCSI_TMF_TARGET_WARM_RESET);
	expect_attention(e->other, 0x29);
	expect_attention(e->p, 0x29);
}

static void test_clear_task_set_of_its_own_spc4_7_5_8(void **state)
{
	struct env *e = *state;
	uint32_t tmf;

	control_page(e)->tst = 1;
	e->r->holding = true;
	peer_read(e->p, 0, 1);
	peer_read(e->other, 0, 1);
	tmf = peer_tmf(e->p, ISCSI_TMF_CLEAR_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	fixture_settle(e->r);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(e->p));
	peer_expect_status(e->other, SCSI_GOOD);
}

/* ---- PREEMPT AND ABORT (SPC-4 §5.13.11.2.6) ---- */

static void pr_out(struct peer *p, uint8_t action, uint8_t type, uint64_t key,
		   uint64_t sa_key)
{
	const uint8_t cdb[16] = { 0x5f, action, type, [8] = 24 };
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	peer_command(p, cdb, false, true, 24);
	bufv_copy_in(&p->last_task->out, 0, list, 24);
	p->last_task->out_done = 24;
	p->dm.up->data_completion_notify(&p->dm, p->last_task, DM_UNSOLICITED,
					 0);
	fixture_settle(p->fixture);
}

static void preempt_and_abort(struct env *e, bool tas)
{
	control_page(e)->tas = tas;
	pr_out(e->p, 0, 0, 0, 1);
	peer_expect_status(e->p, SCSI_GOOD);
	pr_out(e->other, 0, 0, 0, 2);
	peer_expect_status(e->other, SCSI_GOOD);
	e->r->holding = true;
	peer_read(e->p, 0, 1); /* stays */
	peer_read(e->other, 0, 1);
	peer_write(e->other, 0, 8); /* its data never come */
	pr_out(e->p, 5, 1, 1, 2);
	assert_true(peer_quiet(e->p)); /* waits for the held read */
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_status(e->p, SCSI_GOOD); /* the read */
	peer_expect_status(e->p, SCSI_GOOD);
	for (int i = 0; tas && i < 2; i++)
		peer_expect_status(e->other, SCSI_TASK_ABORTED);
	assert_true(peer_quiet(e->other));
	if (!tas)
		expect_attention(e->other, 0x2f);
	expect_attention(e->other, 0x2a);
	assert_int_equal(e->r->buffers, 0);
}

static void test_preempt_and_abort(void **state)
{
	preempt_and_abort(*state, false);
}

static void test_preempt_and_abort_with_tas(void **state)
{
	preempt_and_abort(*state, true);
}

/* The preempted session ends while the preempting command waits for its
 * tasks. */
static void test_preempt_and_abort_of_a_lost_session(void **state)
{
	struct env *e = *state;

	pr_out(e->p, 0, 0, 0, 1);
	peer_expect_status(e->p, SCSI_GOOD);
	pr_out(e->other, 0, 0, 0, 2);
	peer_expect_status(e->other, SCSI_GOOD);
	e->r->holding = true;
	peer_read(e->other, 0, 1);
	pr_out(e->p, 5, 1, 1, 2);
	assert_true(peer_quiet(e->p));
	peer_cut(e->other, ERR_RESET);
	fixture_settle(e->r);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_status(e->p, SCSI_GOOD);
}

/* A reservation of RESERVE ends before the response to the logout. */
static void test_logout_gives_a_reservation_back(void **state)
{
	struct env *e = *state;
	const uint8_t cdb[16] = { 0x16 };
	struct iscsi_pdu out = { .op = ISCSI_LOGOUT_REQUEST,
				 .immediate = true,
				 .final = true };

	peer_command(e->other, cdb, false, false, 0);
	fixture_settle(e->r);
	peer_expect_status(e->other, SCSI_GOOD);
	peer_tur(e->p);
	fixture_settle(e->r);
	peer_expect_status(e->p, SCSI_RESERVATION_CONFLICT);
	out.itt = 4711;
	out.cmdsn = e->other->cmdsn;
	peer_rx(e->other, &out, NULL);
	while (peer_quiet(e->other))
		assert_true(fixture_message_one(e->r));
	peer_expect(e->other, ISCSI_LOGOUT_RESPONSE);
	peer_tur(e->p);
	assert_false(peer_quiet(e->p)); /* at once, before any other message */
	peer_expect_status(e->p, SCSI_GOOD);
	fixture_settle(e->r);
}

/* SAM-5 §7.9: depth and sense key, additional sense code and qualifier. */
static void expect_info(struct peer *p, uint32_t itt, uint8_t depth_key,
			uint16_t asc)
{
	struct sent *s = peer_expect(p, ISCSI_TMF_RESPONSE);

	assert_int_equal(s->pdu.itt, itt);
	assert_int_equal(s->pdu.tmf_response, ISCSI_TMF_SUCCEEDED);
	assert_int_equal(s->pdu.tmf_info[0], depth_key);
	assert_int_equal(get_be16(s->pdu.tmf_info + 1), asc);
}

/* [RFC 7144: 4.1 #2] */
static void test_query_async_event_rfc7144_6_3(void **state)
{
	struct env *e = *state;
	struct peer *fresh = peer_session(e->r, 0, 4);
	uint32_t tmf;

	tmf = peer_tmf(fresh, ISCSI_TMF_QUERY_ASYNC_EVENT, 0,
		       ISCSI_RESERVED_TAG, 0);
	/* only POWER ON is pending */
	expect_info(fresh, tmf, 0x16, 0x2900);
	dev_attention_set(dev_itl_find(list_entry(e->r->server->nexuses[0].prev,
						  struct dev_nexus, link),
				       0),
			  UA_MODE_CHANGED);
	tmf = peer_tmf(fresh, ISCSI_TMF_QUERY_ASYNC_EVENT, 0,
		       ISCSI_RESERVED_TAG, 0);
	expect_info(fresh, tmf, 0x26, 0x2900); /* and more */
	peer_ready(fresh);
	tmf = peer_tmf(fresh, ISCSI_TMF_QUERY_ASYNC_EVENT, 0,
		       ISCSI_RESERVED_TAG, 0);
	peer_expect_tmf(fresh, tmf, ISCSI_TMF_COMPLETE);
}

/* [RFC 7143: 4.2.3.3 #7, 4.2.3.4 #7, 4.2.3.6 #1, 11.5.1 #11] */
static void test_lu_reset_other_workers(void **state)
{
	struct env *e = *state;

	all_sessions(e, ISCSI_TMF_LU_RESET);
	expect_attention(e->other, 0x29);
}

static void test_warm_reset_other_workers(void **state)
{
	struct env *e = *state;

	all_sessions(e, ISCSI_TMF_TARGET_WARM_RESET);
	expect_attention(e->other, 0x29);
}

/* A power-on event: the response, if it can still be sent, then all
 * connections end. */
/* [RFC 7143: 11.5.1 #13, 11.6.1 #1] */
static void test_cold_reset_drops_all_rfc7143_11_5_1(void **state)
{
	struct env *e = *state;
	uint32_t tmf = peer_tmf(e->p, ISCSI_TMF_TARGET_COLD_RESET, 0,
				ISCSI_RESERVED_TAG, 0);

	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(e->p->gone);
	assert_true(e->other->gone);
}

static void test_target_reset_plugs_holes_rfc7143_4_2_3_3_b(void **state)
{
	struct env *e = *state;
	uint32_t tmf;

	e->p->cmdsn += 3; /* three missing commands */
	tmf = peer_tmf(e->p, ISCSI_TMF_TARGET_WARM_RESET, 0, ISCSI_RESERVED_TAG,
		       0);
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_int_equal(e->p->sent[e->p->nsent - 1].pdu.expcmdsn, e->p->cmdsn);
}

static void test_no_such_lun_rfc7143_11_6_1(void **state)
{
	struct env *e = *state;
	uint32_t tmf = peer_tmf(e->p, ISCSI_TMF_LU_RESET, (uint64_t)5 << 48,
				ISCSI_RESERVED_TAG, 0);

	peer_expect_tmf(e->p, tmf, ISCSI_TMF_NO_LUN);
}

/* [RFC 7143: 11.5.1 #1] */
static void test_functions_refused(void **state)
{
	struct env *e = *state;
	uint32_t tmf;

	tmf = peer_tmf(e->p, ISCSI_TMF_TASK_REASSIGN, 0, 5, 0);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_NO_REASSIGN);
	tmf = peer_tmf(e->p, (enum iscsi_tmf)99, 0, ISCSI_RESERVED_TAG, 0);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_NOT_SUPPORTED);
}

/* [RFC 7144: 4.1 #2, 6.3 #3] */
static void test_query_task_rfc7144_6_4_2(void **state)
{
	struct env *e = *state;
	uint32_t itt, tmf;

	e->r->holding = true;
	itt = peer_read(e->p, 0, 1);
	tmf = peer_tmf(e->p, ISCSI_TMF_QUERY_TASK, 0, itt, e->p->cmdsn - 1);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_SUCCEEDED);
	tmf = peer_tmf(e->p, ISCSI_TMF_QUERY_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_SUCCEEDED);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	tmf = peer_tmf(e->p, ISCSI_TMF_QUERY_TASK, 0, itt, e->p->cmdsn - 1);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	tmf = peer_tmf(e->p, ISCSI_TMF_QUERY_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
}

/* [RFC 7144: 6.3 #4 #10-13, 6.5 #1] */
static void test_nexus_reset_rfc7144_6_3(void **state)
{
	struct env *e = *state;
	uint32_t tmf;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	tmf = peer_tmf(e->p, ISCSI_TMF_I_T_NEXUS_RESET, 0, ISCSI_RESERVED_TAG,
		       0);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
	assert_true(e->p->gone);
	assert_false(e->other->gone);
}

/* The functions of RFC 7144 need iSCSIProtocolLevel 2. */
/* [RFC 7144: 4.1 #1] */
static void test_level_2_functions_rfc7144_6_3(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	const uint8_t isid[6] = { 0x80, 9 };
	struct env *e = *state;
	struct peer *old = peer_new(e->r, 0);
	uint32_t tmf;

	assert_int_equal(peer_login(old, keys, sizeof(keys), isid, 0), 0);
	tmf = peer_tmf(old, ISCSI_TMF_QUERY_TASK_SET, 0, ISCSI_RESERVED_TAG, 0);
	peer_expect_tmf(old, tmf, ISCSI_TMF_NOT_SUPPORTED);
}

/* The issuer's connection ends: the reset continues, and no response is
 * sent. */
static void test_session_lost_during_reset(void **state)
{
	struct env *e = *state;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	peer_read(e->other, 0, 1);
	peer_tmf(e->p, ISCSI_TMF_LU_RESET, 0, ISCSI_RESERVED_TAG, 0);
	fixture_messages(e->r);
	peer_cut(e->p, ERR_RESET);
	e->r->holding = false;
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(tgt_worker(e->r->tgt, 0)));
	peer_expect_status(e->other, SCSI_TASK_ABORTED);
	expect_attention(e->other, 0x29);
}

static void test_session_lost_during_abort(void **state)
{
	struct env *e = *state;
	uint32_t itt, cmdsn = e->p->cmdsn;

	e->r->holding = true;
	itt = peer_read(e->p, 0, 1);
	peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, itt, cmdsn);
	peer_cut(e->p, ERR_RESET);
	e->r->holding = false;
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(tgt_worker(e->r->tgt, 0)));
}

static void test_cmdsn_beyond_window(void **state)
{
	struct env *e = *state;

	e->p->cmdsn += 10000;
	peer_tmf(e->p, ISCSI_TMF_TARGET_WARM_RESET, 0, ISCSI_RESERVED_TAG, 0);
	assert_int_equal(peer_expect(e->p, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_INVALID_PDU_FIELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWO(test_abort_task_rfc7143_11_6_1_a),
		TWO(test_abort_task_waiting_for_data),
		TWO(test_abort_task_released_later),
		TWO(test_abort_task_not_received_rfc7143_11_6_1_b),
		TWO(test_abort_task_unknown_rfc7143_11_6_1_c),
		TWO(test_abort_of_tmf_rejected_rfc7143_11_5_1),
		TWO(test_abort_after_response_queued),
		TWO(test_abort_task_set_own_session_only),
		TWO(test_function_names_the_lun_in_another_form),
		TWO(test_abort_task_set_waits_for_commands_rfc7143_4_2_3_3),
		TWO(test_lu_reset_waits_for_data_rfc7143_4_2_3_3_a),
		TWO(test_lu_reset_data_never_come),
		TWO(test_clear_task_set_other_workers),
		TWO(test_lu_reset_other_workers),
		TWO(test_warm_reset_other_workers),
		TWO(test_cold_reset_drops_all_rfc7143_11_5_1),
		TWO(test_target_reset_plugs_holes_rfc7143_4_2_3_3_b),
		TWO(test_no_such_lun_rfc7143_11_6_1),
		TWO(test_functions_refused),
		TWO(test_query_task_rfc7144_6_4_2),
		TWO(test_clear_task_set_with_tas_spc4_7_5_8),
		TWO(test_resets_with_tas_spc4_7_5_8),
		TWO(test_clear_task_set_of_its_own_spc4_7_5_8),
		TWO(test_preempt_and_abort),
		TWO(test_preempt_and_abort_with_tas),
		TWO(test_preempt_and_abort_of_a_lost_session),
		TWO(test_logout_gives_a_reservation_back),
		TWO(test_query_async_event_rfc7144_6_3),
		TWO(test_nexus_reset_rfc7144_6_3),
		TWO(test_level_2_functions_rfc7144_6_3),
		TWO(test_session_lost_during_reset),
		TWO(test_session_lost_during_abort),
		TWO(test_cmdsn_beyond_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
