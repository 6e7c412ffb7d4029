/* SPDX-License-Identifier: BSD-2-Clause */
/* command_test.c: SCSI Commands from header to response, their order,
 * residuals. */
#include <string.h>

#include "base/err.h"
#include "env.h"

static void test_read(void **state)
{
	struct env *e = *state;
	struct sent *s;
	uint32_t itt;

	memset(e->r->memory + 512, 0x5a, 1024);
	itt = peer_read(e->p, 1, 2);
	fixture_settle(e->r);
	s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_true(s->put);
	assert_int_equal(s->pdu.itt, itt);
	assert_int_equal(s->pdu.rsp.status, SCSI_GOOD);
	assert_int_equal(s->pdu.rsp.resid_flags, 0);
	assert_int_equal(s->len, 1024);
	assert_memory_equal(s->data, e->r->memory + 512, 1024);
	assert_true(peer_quiet(e->p));
}

/* [RFC 7143: 4.2.2.2 #3] */
static void test_statsn_counts_responses_rfc7143_4_2_2_2(void **state)
{
	struct env *e = *state;
	uint32_t first;

	peer_read(e->p, 0, 1);
	fixture_settle(e->r);
	first = peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.statsn;
	for (uint32_t i = 1; i < 7; i++) {
		if (i % 2) /* its response has no data */
			peer_tur(e->p);
		else
			peer_read(e->p, 0, 1);
		fixture_settle(e->r);
		assert_int_equal(
			peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.statsn,
			first + i);
	}
}

static void test_write_immediate(void **state)
{
	struct env *e = *state;
	struct sent *s;

	peer_write(e->p, 3, 1);
	assert_non_null(e->p->last_task);
	assert_int_equal(e->p->last_task->out.len, 512);
	assert_true(peer_quiet(e->p)); /* nothing before its data */
	peer_unsolicited(e->p, e->p->last_task, 0x11, 512, 0);
	fixture_settle(e->r);
	s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.rsp.status, SCSI_GOOD);
	assert_int_equal(e->r->memory[3 * 512], 0x11);
	assert_int_equal(e->r->memory[4 * 512 - 1], 0x11);
	assert_int_equal(e->r->memory[4 * 512], 0);
}

static void test_write_rest_is_asked_for(void **state)
{
	struct env *e = *state;

	peer_write(e->p, 0, 8);
	peer_unsolicited(e->p, e->p->last_task, 0x22, 1024, 0);
	assert_ptr_equal(e->p->get_task, e->p->last_task);
	assert_int_equal(e->p->get_offset, 1024);
	assert_int_equal(e->p->get_len, 3072);
	assert_int_equal(e->r->memory[0], 0); /* nothing written yet */
	peer_solicited(e->p, 0x33, 0);
	fixture_settle(e->r);
	peer_expect_status(e->p, SCSI_GOOD);
	assert_int_equal(e->r->memory[0], 0x22);
	assert_int_equal(e->r->memory[1024], 0x33);
}

static void expect_sense(struct sent *s, uint8_t key, uint8_t asc, uint8_t ascq)
{
	assert_int_equal(s->pdu.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_true(s->len >= 2 + 14);
	assert_int_equal(get_be16(s->data), s->len - 2);
	assert_int_equal(s->data[2] & 0x7f, 0x70);
	assert_int_equal(s->data[4] & 0x0f, key);
	assert_int_equal(s->data[14], asc);
	assert_int_equal(s->data[15], ascq);
}

/* [RFC 7143: 7.8 #4] */
static void test_write_digest_error_rfc7143_11_4_7_2(void **state)
{
	struct env *e = *state;

	peer_write(e->p, 0, 1);
	peer_unsolicited(e->p, e->p->last_task, 0x44, 512, ERR_DATA_DIGEST);
	fixture_settle(e->r);
	expect_sense(peer_next(e->p), 0x0b, 0x47, 0x05);
	assert_int_equal(e->r->memory[0], 0); /* never reached the medium */
}

static void test_write_data_missing_rfc7143_11_4_7_2(void **state)
{
	struct env *e = *state;

	peer_write(e->p, 0, 2);
	peer_unsolicited(e->p, e->p->last_task, 0x44, 512, 0);
	peer_solicited(e->p, 0x44, ERR_SEQUENCE);
	fixture_settle(e->r);
	expect_sense(peer_next(e->p), 0x0b, 0x0c, 0x0d);
	assert_int_equal(e->r->memory[0], 0);
}

static void test_unexpected_unsolicited_data_rfc7143_11_4_7_2(void **state)
{
	struct env *e = *state;

	peer_write(e->p, 0, 2);
	peer_unsolicited(e->p, e->p->last_task, 0x44, 512, ERR_PROTOCOL);
	fixture_settle(e->r);
	expect_sense(peer_next(e->p), 0x0b, 0x0c, 0x0c);
	assert_int_equal(e->r->memory[0], 0);
}

static void test_bidirectional_refused(void **state)
{
	struct env *e = *state;
	const uint8_t cdb[16] = { 0x2a, 0, 0, 0, 0, 0, 0, 0, 1 };

	peer_command(e->p, cdb, true, true, 512);
	peer_unsolicited(e->p, e->p->last_task, 0x55, 0, 0);
	fixture_settle(e->r);
	expect_sense(peer_next(e->p), 0x05, 0x0e, 0x03);
}

/* Each direction has a residual of all expected bytes. */
/* [RFC 7143: 11.4.6 #1] */
static void test_bidirectional_residuals_rfc7143_11_4_5_1(void **state)
{
	struct env *e = *state;
	const uint8_t cdb[16] = { 0x28, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct iscsi_ahs ahs = { .has_bidi = true, .bidi_read_edtl = 1000 };
	uint8_t bytes[16];
	struct sent *s;

	e->p->ahs = bytes;
	e->p->ahs_len = (uint8_t)iscsi_ahs_encode(&ahs, bytes, sizeof(bytes));
	peer_command(e->p, cdb, true, true, 512);
	peer_unsolicited(e->p, e->p->last_task, 0x55, 0, 0);
	fixture_settle(e->r);
	s = peer_next(e->p);
	assert_int_equal(s->pdu.rsp.resid_flags,
			 ISCSI_RESID_UNDERFLOW | ISCSI_RESID_BIDI_UNDERFLOW);
	assert_int_equal(s->pdu.rsp.resid, 512);
	assert_int_equal(s->pdu.rsp.bidi_resid, 1000);
	expect_sense(s, 0x05, 0x0e, 0x03);
}

/* A WRITE marked as a read, a READ as a write: nothing moves. */
static void test_wrong_direction_is_refused(void **state)
{
	struct env *e = *state;
	const uint8_t read10[16] = { 0x28, 0, 0, 0, 0, 0, 0, 0, 1 };
	const uint8_t write10[16] = { 0x2a, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct sent *s;

	peer_command(e->p, write10, true, false, 512);
	fixture_settle(e->r);
	s = peer_next(e->p);
	assert_int_equal(s->pdu.rsp.resid_flags, ISCSI_RESID_UNDERFLOW);
	assert_int_equal(s->pdu.rsp.resid, 512);
	expect_sense(s, 0x05, 0x0e, 0x03);
	peer_command(e->p, read10, false, true, 512);
	peer_unsolicited(e->p, e->p->last_task, 0x55, 512, 0);
	fixture_settle(e->r);
	s = peer_next(e->p);
	assert_int_equal(s->pdu.rsp.resid_flags, ISCSI_RESID_UNDERFLOW);
	assert_int_equal(s->pdu.rsp.resid, 512);
	expect_sense(s, 0x05, 0x0e, 0x03);
}

/* An EDTL inside a block: no data are requested, none written. */
static void test_part_of_a_block_rfc7143_11_4_5_1(void **state)
{
	struct env *e = *state;
	const uint8_t write10[16] = { 0x2a, 0, 0, 0, 0, 0, 0, 0, 2 };
	struct sent *s;

	peer_command(e->p, write10, false, true, 700);
	peer_unsolicited(e->p, e->p->last_task, 0x55, 0, 0);
	fixture_settle(e->r);
	s = peer_next(e->p);
	assert_int_equal(s->pdu.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.rsp.resid_flags, ISCSI_RESID_OVERFLOW);
	assert_int_equal(s->pdu.rsp.resid, 1024 - 700);
	expect_sense(s, 0x05, 0x0e, 0x03);
	assert_int_equal(e->r->memory[0], 0);
}

/* [RFC 7143: 4.6.1.2 #1, 10.2 #1, 11.4.7 #1-2] */
/* [RFC 7144: 5.2.2 #1-2] */
static void test_out_of_range_has_sense(void **state)
{
	struct env *e = *state;

	peer_read(e->p, FIXTURE_BLOCKS, 1);
	fixture_settle(e->r);
	expect_sense(peer_next(e->p), 0x05, 0x21, 0x00);
}

/* [RFC 7143: 11.4.5.1 #1, 11.4.5.2 #3-4] */
static void test_residual_underflow_rfc7143_11_4_5_2(void **state)
{
	struct env *e = *state;
	const uint8_t read10[16] = { 0x28, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct sent *s;

	peer_command(e->p, read10, true, false, 2048);
	fixture_settle(e->r);
	s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->len, 512);
	assert_int_equal(s->pdu.rsp.resid_flags, ISCSI_RESID_UNDERFLOW);
	assert_int_equal(s->pdu.rsp.resid, 1536);
}

/* [RFC 7143: 11.4.5.1 #1, 11.4.5.2 #1-2] */
static void test_residual_overflow_rfc7143_11_4_5_2(void **state)
{
	struct env *e = *state;
	const uint8_t read10[16] = { 0x28, 0, 0, 0, 0, 0, 0, 0, 4 };
	struct sent *s;

	peer_command(e->p, read10, true, false, 512);
	fixture_settle(e->r);
	s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->len, 512);
	assert_int_equal(s->pdu.rsp.resid_flags, ISCSI_RESID_OVERFLOW);
	assert_int_equal(s->pdu.rsp.resid, 1536);
}

/* The status qualifier has a retry delay: 100 ms (SAM-5 §5.3.2, RFC 7144
 * §5.2.1). */
static void expect_come_again(struct peer *p, uint8_t status)
{
	struct sent *s = peer_expect(p, ISCSI_SCSI_RESPONSE);

	assert_int_equal(s->pdu.rsp.status, status);
	assert_int_equal(s->pdu.rsp.status_qualifier, 1);
}

static void test_no_buffer_is_busy(void **state)
{
	struct env *e = *state;

	e->r->no_buffers = true;
	peer_write(e->p, 0, 1);
	peer_unsolicited(e->p, e->p->last_task, 0x66, 0, 0);
	fixture_settle(e->r);
	expect_come_again(e->p, SCSI_BUSY);
	e->r->no_buffers = false;
}

static void test_no_buffer_with_others_is_task_set_full(void **state)
{
	struct env *e = *state;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	e->r->no_buffers = true;
	peer_write(e->p, 0, 1);
	peer_unsolicited(e->p, e->p->last_task, 0x66, 0, 0);
	fixture_settle(e->r);
	expect_come_again(e->p, SCSI_TASK_SET_FULL);
	e->r->no_buffers = false;
}

/* ---- the window ---- */

/* [RFC 7143: 4.2.2.1 #11] */
static void test_window_ignores_outside_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;

	e->p->cmdsn += e->r->cfg.depth; /* a CmdSN beyond MaxCmdSN */
	peer_read(e->p, 0, 1);
	assert_null(e->p->last_task);
	e->p->cmdsn -= e->r->cfg.depth + 2; /* a CmdSN already received */
	peer_read(e->p, 0, 1);
	assert_null(e->p->last_task);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	peer_read(e->p, 0, 1); /* the expected CmdSN */
	fixture_settle(e->r);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
}

/* [RFC 7143: 4.2.2.1 #6 #8 #12 #15] */
static void test_commands_run_in_order_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;
	uint32_t first = e->p->cmdsn, late, early;

	e->p->cmdsn = first + 1;
	early = peer_write(e->p, 0, 1);
	peer_unsolicited(e->p, e->p->last_task, 0x77, 512, 0);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	assert_int_equal(e->r->memory[0], 0);
	e->p->cmdsn = first;
	late = peer_read(e->p, 0, 1);
	fixture_settle(e->r);
	/* the read came second but has the lower CmdSN: it reads zeros */
	struct sent *s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.itt, late);
	assert_int_equal(s->data[0], 0);
	assert_int_equal(peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.itt,
			 early);
	assert_int_equal(e->r->memory[0], 0x77);
	assert_int_equal(e->p->sent[e->p->nsent - 1].pdu.expcmdsn, first + 2);
}

/* An immediate command has the CmdSN of a numbered one that came before its
 * turn. */
static void test_end_of_an_immediate_command_leaves_the_order(void **state)
{
	struct env *e = *state;
	uint32_t first = e->p->cmdsn, early, late;
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .immediate = true,
				 .final = true,
				 .itt = e->p->itt++,
				 .cmdsn = first + 1 };

	e->p->cmdsn = first + 1;
	early = peer_tur(e->p);
	peer_rx(e->p, &pdu, NULL);
	fixture_settle(e->r);
	assert_int_equal(peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.itt,
			 pdu.itt);
	assert_true(peer_quiet(e->p));
	e->p->cmdsn = first;
	late = peer_tur(e->p);
	fixture_settle(e->r);
	assert_int_equal(peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.itt, late);
	assert_int_equal(peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.itt,
			 early);
}

/* [RFC 7143: 4.2.2.1 #11] */
static void test_duplicate_inside_window_ignored_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;
	uint32_t first = e->p->cmdsn;

	e->p->cmdsn = first + 1;
	peer_tur(e->p);
	e->p->cmdsn = first + 1;
	peer_tur(e->p);
	assert_null(e->p->last_task);
	e->p->cmdsn = first;
	peer_tur(e->p);
	fixture_settle(e->r);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_true(peer_quiet(e->p));
}

/* [RFC 7143: 7.3 #2, 11.2.1.8 #1] */
static void test_tag_in_use_rejected_rfc7143_11_17_1(void **state)
{
	struct env *e = *state;
	struct sent *s;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	e->p->itt--;
	peer_read(e->p, 0, 1);
	s = peer_expect(e->p, ISCSI_REJECT);
	assert_int_equal(s->pdu.reject.reason, ISCSI_REJECT_TASK_IN_PROGRESS);
	assert_int_equal(s->len, ISCSI_BHS_LEN); /* §11.17.4 */
	assert_int_equal(s->data[0], ISCSI_SCSI_COMMAND);
	e->r->holding = false;
	e->p->cmdsn--;	       /* its CmdSN was not received (§7.3) */
	peer_read(e->p, 0, 1); /* ExpCmdSN advances */
	fixture_settle(e->r);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
}

/* Every command that the announced window allows finds a slot. */
/* [RFC 7143: 11.4.11 #1, 11.19.1 #1] */
static void test_window_full(void **state)
{
	struct env *e = *state;
	unsigned depth = e->r->cfg.depth;

	e->r->holding = true;
	for (unsigned i = 0; i < depth; i++) {
		peer_read(e->p, 0, 1);
		assert_non_null(e->p->last_task);
	}
	e->r->holding = false;
	fixture_release(e->r); /* all responses are queued, none is sent */
	for (unsigned i = 0; i < depth; i++) {
		peer_read(e->p, 0, 1);
		assert_non_null(e->p->last_task);
	}
	fixture_release(e->r);
	peer_read(e->p, 0,
		  1); /* twice the depth is unsent: the window is closed */
	assert_null(e->p->last_task);
	e->p->cmdsn--;
	peer_flush(e->p);
	for (unsigned i = 0; i < 2 * depth; i++)
		peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	/* no response would announce the open window */
	struct sent *s = peer_expect(e->p, ISCSI_NOP_IN);
	assert_int_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(s->pdu.maxcmdsn - s->pdu.expcmdsn, depth - 1);
	peer_read(e->p, 0, 1);
	assert_non_null(e->p->last_task);
}

/* [RFC 7143: 4.2.2.1 #2] */
static void test_immediate_command(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .immediate = true,
				 .final = true,
				 .itt = 5,
				 .cmdsn = e->p->cmdsn };
	uint32_t exp;

	assert_int_equal(peer_rx(e->p, &pdu, NULL), 0);
	fixture_settle(e->r);
	exp = peer_expect(e->p, ISCSI_SCSI_RESPONSE)->pdu.expcmdsn;
	assert_int_equal(exp, e->p->cmdsn); /* unchanged */
}

/* [RFC 7143: 4.2.2.1 #5] */
static void test_too_many_immediate_rejected_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .immediate = true,
				 .final = true,
				 .itt = 5,
				 .cmdsn = e->p->cmdsn };
	bool rejected = false;

	pdu.cmd.read = true;
	pdu.cmd.edtl = 512;
	pdu.cmd.cdb[0] = 0x28;
	pdu.cmd.cdb[8] = 1;
	e->r->holding = true;
	for (int i = 0; i < 64 && !rejected; i++) {
		pdu.itt++;
		assert_int_equal(peer_rx(e->p, &pdu, NULL), 0);
		rejected = !peer_quiet(e->p);
	}
	assert_int_equal(peer_expect(e->p, ISCSI_REJECT)->pdu.reject.reason,
			 ISCSI_REJECT_TOO_MANY_IMMEDIATE);
	/* a function and a request other than a SCSI Command have room */
	peer_expect_tmf(e->p, peer_tmf(e->p, ISCSI_TMF_ABORT_TASK, 0, 1, 0),
			ISCSI_TMF_NO_TASK);
	pdu = (struct iscsi_pdu){ .op = ISCSI_NOP_OUT,
				  .immediate = true,
				  .final = true,
				  .itt = 4,
				  .ttt = ISCSI_RESERVED_TAG,
				  .cmdsn = e->p->cmdsn };
	peer_rx(e->p, &pdu, NULL);
	peer_expect(e->p, ISCSI_NOP_IN);
	e->r->holding = false;
}

/* ---- lost connections ---- */

/* [RFC 7143: 7.1.4.3 #4] */
static void test_connection_lost_with_io_in_flight(void **state)
{
	struct env *e = *state;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	peer_write(e->p, 0, 8);
	peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
	peer_write(e->p, 0, 1); /* its data never come */
	peer_cut(e->p, ERR_RESET);
	assert_false(tgt_worker_idle(tgt_worker(e->r->tgt, 0)));
	e->r->holding = false;
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(tgt_worker(e->r->tgt, 0)));
	assert_int_equal(e->r->buffers, 0);
}

static void test_send_failure_drops_connection(void **state)
{
	struct env *e = *state;

	e->p->send_error = ERR_NOMEM;
	peer_tur(e->p);
	assert_true(e->p->terminated);
	assert_int_equal(e->p->how, DM_TERMINATE_NOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(test_read),
		ONE(test_statsn_counts_responses_rfc7143_4_2_2_2),
		ONE(test_write_immediate),
		ONE(test_write_rest_is_asked_for),
		ONE(test_write_digest_error_rfc7143_11_4_7_2),
		ONE(test_write_data_missing_rfc7143_11_4_7_2),
		ONE(test_unexpected_unsolicited_data_rfc7143_11_4_7_2),
		ONE(test_bidirectional_refused),
		ONE(test_bidirectional_residuals_rfc7143_11_4_5_1),
		ONE(test_wrong_direction_is_refused),
		ONE(test_part_of_a_block_rfc7143_11_4_5_1),
		ONE(test_out_of_range_has_sense),
		ONE(test_residual_underflow_rfc7143_11_4_5_2),
		ONE(test_residual_overflow_rfc7143_11_4_5_2),
		ONE(test_no_buffer_is_busy),
		ONE(test_no_buffer_with_others_is_task_set_full),
		ONE(test_window_ignores_outside_rfc7143_4_2_2_1),
		ONE(test_commands_run_in_order_rfc7143_4_2_2_1),
		ONE(test_end_of_an_immediate_command_leaves_the_order),
		ONE(test_duplicate_inside_window_ignored_rfc7143_4_2_2_1),
		ONE(test_tag_in_use_rejected_rfc7143_11_17_1),
		ONE(test_window_full),
		ONE(test_immediate_command),
		ONE(test_too_many_immediate_rejected_rfc7143_4_2_2_1),
		ONE(test_connection_lost_with_io_in_flight),
		ONE(test_send_failure_drops_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
