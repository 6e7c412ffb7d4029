/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_initiator_test.c: the initiator's end: commands with their STags,
 * unsolicited data, responses, and when an STag becomes invalid (RFC 7145
 * §7.3.1, §7.3.2, §7.3.4, §8.3). */
#include "iscsi/keys.h"
#include "iser_fixture.h"

static struct fixture r;

static void begin(unsigned rules)
{
	const struct iscsi_params p = fixture_params();

	fixture_initiator(&r, rules, &p);
}

static struct fixture_task *start(uint32_t itt, bool write, uint32_t len)
{
	int err;
	struct fixture_task *t = fixture_start(&r, itt, write, len, 3, &err);

	assert_int_equal(err, 0);
	return t;
}

/* A SCSI Response from the peer; stag 0: a plain Send. */
static int respond(uint32_t itt, uint32_t stag, uint32_t resid)
{
	const struct iser_header h = fixture_plain();
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
			       .final = true,
			       .itt = itt,
			       .statsn = 55,
			       .expcmdsn = 8,
			       .maxcmdsn = 20,
			       .dsl = 5 };
	uint8_t bytes[ISER_PDU + 8];

	p.rsp.resid_flags = resid ? ISCSI_RESID_UNDERFLOW : 0;
	p.rsp.resid = resid;
	return fake_rcap_deliver(&r.f, bytes,
				 fixture_message(bytes, &h, &p, "hello"), stag);
}

/* ---- reads ---- */

/* [RFC 7145: 7.3.1 #1 #10-12 #14, 7.3.2 #13-14, 9.5.2 #1-3 #7] */
static void test_read_advertises_rfc7145_7_3_1(void **state)
{
	struct fixture_task *t;
	struct fixture_sent *s;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, false, 5000);
	assert_int_equal(r.f.nposted, 1);
	s = fixture_sent_at(&r, 0);
	assert_int_equal(s->pdu.op, ISCSI_SCSI_COMMAND);
	assert_int_equal(s->pdu.expstatsn, 55);
	assert_true(s->pdu.final && s->h.rsv && !s->h.wsv);
	assert_int_equal(s->pdu.dsl, 0);
	assert_int_equal(fake_rcap_valid(&r.f), 1);
	/* the STag permits writing to all of the buffer, and nothing else */
	assert_int_equal(fake_rcap_peer_write(&r.f, s->h.read_stag,
					      s->h.read_base, "abcde", 5),
			 0);
	assert_int_equal(fake_rcap_peer_write(&r.f, s->h.read_stag,
					      s->h.read_base + 4997, "xyz", 3),
			 0);
	assert_int_equal(fake_rcap_peer_write(&r.f, s->h.read_stag,
					      s->h.read_base + 4998, "xyz", 3),
			 ERR_ACCESS);
	assert_int_equal(fake_rcap_peer_read(&r.f, s->h.read_stag,
					     s->h.read_base, r.in_data, 1),
			 ERR_ACCESS);
	fixture_flush(&r);
	assert_int_equal(respond(5, 0, 0), 0);
	assert_int_equal(r.ended, 1);
	/* invalid before the role got the response */
	assert_int_equal(t->stags_left, 0);
	assert_int_equal(t->dm.in_done, 5000);
	assert_memory_equal(t->buf, "abcde", 5);
	assert_memory_equal(t->buf + 4997, "xyz", 3);
	assert_memory_equal(t->sense, "hello", 5);
	assert_int_equal(dmiser_stats(r.conn)->invalidated, 1);
	fixture_fini(&r);
}

static void test_read_residual(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, false, 5000);
	fixture_flush(&r);
	respond(5, 0, 4000);
	assert_int_equal(t->dm.in_done, 1000);
	t = start(6, false, 5000);
	fixture_flush(&r);
	respond(6, 0, 0xffffffff); /* a residual larger than the buffer */
	assert_int_equal(t->dm.in_done, 0);
	fixture_fini(&r);
}

static void test_command_of_nothing(void **state)
{
	struct fixture_sent *s;

	(void)state;
	begin(DMISER_LINUX);
	start(5, false, 0);
	start(6, true, 0);
	for (unsigned i = 0; i < 2; i++) {
		s = fixture_sent_at(&r, i);
		assert_true(s->pdu.final);
		assert_false(s->h.rsv || s->h.wsv);
		assert_int_equal(s->len, ISER_PDU);
	}
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	fixture_fini(&r);
}

/* ---- writes ---- */

/* The Write Base Offset, with and without TaggedBufferForSolicitedDataOnly, and
 * as other initiators send it. */
/* [RFC 7145: 7.3.1 #6-7 #9, 7.3.6 #14, 9.5.1 #1-3] */
static void test_write_base_in_each_reading_rfc7145_6_9(void **state)
{
	enum {
		SILENT,
		NO,
		YES
	};
	static const struct {
		unsigned rules;
		int declared;
		bool advanced;
	} rows[] = {
		{ DMISER_LINUX, SILENT, true },
		{ DMISER_LINUX, YES, true },
		{ DMISER_LINUX, NO, false },
		{ DMISER_STRICT, SILENT, false },
		{ DMISER_STRICT, YES, true },
		{ DMISER_STRICT, NO, false },
		{ DMISER_LINUX & ~(unsigned)DMISER_SOLICITED_VA, SILENT,
		  false },
		{ DMISER_STRICT | DMISER_SOLICITED_VA, SILENT, true },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_params p = fixture_params();
		uint32_t unasked = rows[i].advanced ? 8192 : 0;
		struct fixture_sent *s;
		uint8_t b[16];

		p.tagged_buffer_for_solicited_data_only =
			rows[i].declared == YES;
		if (rows[i].declared != SILENT)
			p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
		p.initial_r2t = true;
		fixture_initiator(&r, rows[i].rules, &p);
		start(5, true, 20000);
		assert_int_equal(r.f.nposted, 1);
		s = fixture_sent_at(&r, 0);
		assert_true(s->h.wsv && !s->h.rsv && s->pdu.final);
		assert_int_equal(s->pdu.dsl, 8192);
		for (uint32_t k = 0; k < 8192; k++)
			assert_int_equal(s->data[k], fixture_byte(k));
		assert_int_equal(fake_rcap_peer_read(&r.f, s->h.write_stag,
						     s->h.write_base, b, 16),
				 0);
		for (uint32_t k = 0; k < 16; k++)
			assert_int_equal(b[k], fixture_byte(unasked + k));
		assert_int_equal(fake_rcap_peer_write(&r.f, s->h.write_stag,
						      s->h.write_base, b, 1),
				 ERR_ACCESS);
		fixture_fini(&r);
	}
}

/* A target that does not support the key may use either reading. Under strict
 * rules a command with solicited data then sends no unsolicited data; Linux'
 * reading needs no such care. */
static void test_write_base_where_the_key_is_refused_rfc7145_6_9(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct iscsi_params p = fixture_params();
		struct fixture_sent *s;

		p.refused = 1ull << ISCSI_K_TAGGED_BUFFER;
		p.initial_r2t = true;
		fixture_initiator(&r, i ? DMISER_LINUX : DMISER_STRICT, &p);
		start(5, true, 20000);
		s = fixture_sent_at(&r, 0);
		assert_true(s->h.wsv && s->pdu.final);
		assert_int_equal(s->pdu.dsl, i ? 8192 : 0);
		fixture_fini(&r);
		/* all data are unsolicited: there is nothing to read */
		fixture_initiator(&r, i ? DMISER_LINUX : DMISER_STRICT, &p);
		start(5, true, 4096);
		s = fixture_sent_at(&r, 0);
		assert_false(s->h.wsv);
		assert_int_equal(s->pdu.dsl, 4096);
		fixture_fini(&r);
	}
}

/* [RFC 7145: 7.3.1 #2-5 #15, 7.3.4 #1-2 #4, 9.5.1 #5] */
static void test_unsolicited_data_outs_rfc7145_7_3_4(void **state)
{
	struct iscsi_params p = fixture_params();
	static const uint32_t offs[] = { 1000, 2000, 3000 };
	struct fixture_sent *s;

	(void)state;
	p.max_send_dsl = 1000;
	p.first_burst_length = 3500;
	fixture_initiator(&r, DMISER_STRICT, &p);
	start(5, true, 20000);
	assert_int_equal(r.f.nposted, 4);
	s = fixture_sent_at(&r, 0);
	assert_false(s->pdu.final);
	assert_true(s->h.wsv);
	assert_int_equal(s->pdu.dsl, 1000);
	for (unsigned i = 0; i < 3; i++) {
		s = fixture_sent_at(&r, 1 + i);
		assert_int_equal(s->pdu.op, ISCSI_DATA_OUT);
		assert_int_equal(s->pdu.itt, 5);
		assert_int_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
		assert_int_equal(s->pdu.data.datasn, i);
		assert_int_equal(s->pdu.data.offset, offs[i]);
		assert_int_equal(s->pdu.dsl, i < 2 ? 1000 : 500);
		assert_int_equal(s->pdu.final, i == 2);
		assert_false(s->h.wsv || s->h.rsv);
		for (uint32_t k = 0; k < s->pdu.dsl; k++)
			assert_int_equal(s->data[k], fixture_byte(offs[i] + k));
	}
	fixture_fini(&r);
}

/* All data are unsolicited: no STag is needed. ImmediateData=No: Data-Outs
 * only. */
static void test_small_write_needs_no_stag(void **state)
{
	struct iscsi_params p = fixture_params();

	(void)state;
	fixture_initiator(&r, DMISER_LINUX, &p);
	start(5, true, 8192);
	assert_int_equal(r.f.nposted, 1);
	assert_false(fixture_sent_at(&r, 0)->h.wsv);
	assert_true(fixture_sent_at(&r, 0)->pdu.final);
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	fixture_fini(&r);

	p.immediate_data = false;
	fixture_initiator(&r, DMISER_LINUX, &p);
	start(5, true, 8192);
	assert_int_equal(r.f.nposted, 2);
	assert_false(fixture_sent_at(&r, 0)->pdu.final);
	assert_int_equal(fixture_sent_at(&r, 0)->pdu.dsl, 0);
	assert_int_equal(fixture_sent_at(&r, 1)->pdu.dsl, 8192);
	fixture_fini(&r);

	p.initial_r2t = true; /* neither: all data are solicited */
	fixture_initiator(&r, DMISER_LINUX, &p);
	start(5, true, 8192);
	assert_int_equal(r.f.nposted, 1);
	assert_true(fixture_sent_at(&r, 0)->pdu.final);
	assert_true(fixture_sent_at(&r, 0)->h.wsv);
	assert_int_equal(fixture_sent_at(&r, 0)->pdu.dsl, 0);
	fixture_fini(&r);
}

/* More pieces than a message has: all PDUs but the last one are full
 * nevertheless. */
/* [RFC 7145: 6.4 #1] */
static void test_data_outs_of_many_pieces_rfc7145_7_3_1(void **state)
{
	struct iscsi_params p = fixture_params();
	struct fixture_sent *s;
	int err;

	(void)state;
	p.immediate_data = false;
	fixture_initiator(&r, DMISER_STRICT, &p);
	fixture_start(&r, 5, true, 16384, 40, &err);
	assert_int_equal(err, 0);
	assert_int_equal(r.f.nposted, 3);
	for (unsigned i = 1; i < 3; i++) {
		s = fixture_sent_at(&r, i);
		assert_int_equal(s->pdu.dsl, 8192);
		for (uint32_t k = 0; k < 8192; k++)
			assert_int_equal(s->data[k],
					 fixture_byte((i - 1) * 8192 + k));
	}
	fixture_fini(&r);
	/* immediate data: as much as fits, and then no unsolicited data */
	p.immediate_data = true;
	fixture_initiator(&r, DMISER_STRICT, &p);
	fixture_start(&r, 5, true, 16384, 40, &err);
	assert_int_equal(err, 0);
	assert_int_equal(r.f.nposted, 1);
	s = fixture_sent_at(&r, 0);
	assert_true(s->pdu.final && s->h.wsv);
	assert_in_range(s->pdu.dsl, 1, 8191);
	fixture_fini(&r);
}

/* ---- invalidation of STags ---- */

/* [RFC 7145: 7.3.2 #10, 9.5.1 #9] */
static void test_remote_invalidation_rfc7145_7_3_2(void **state)
{
	struct fixture_task *t;
	uint32_t stag;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, false, 4096);
	stag = fixture_sent_at(&r, 0)->h.read_stag;
	fixture_flush(&r);
	assert_int_equal(respond(5, stag, 0), 0);
	assert_int_equal(r.ended, 1);
	assert_int_equal(t->stags_left, 0);
	assert_int_equal(dmiser_stats(r.conn)->remote_invalidated, 1);
	fixture_expect_alive(&r);
	/* the STag of a write, too */
	t = start(6, true, 40000);
	stag = fixture_sent_at(&r, 0)->h.write_stag;
	fixture_flush(&r);
	assert_int_equal(respond(6, stag, 0), 0);
	assert_int_equal(r.ended, 2);
	assert_int_equal(t->stags_left, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* Both STags, one of them invalidated by the peer. */
/* [RFC 7145: 7.3.2 #12] */
static void test_both_stags_go_rfc7145_7_3_2(void **state)
{
	struct dm_control ctl = { .pdu = fixture_command(5, 20000, true) };
	struct fixture_task *t;
	struct fixture_sent *s;
	uint32_t stag;

	(void)state;
	begin(DMISER_LINUX);
	/* a bidirectional command, which the interface allows */
	t = &r.task[0];
	t->used = true;
	dm_task_init(&t->dm);
	t->dm.itt = 5;
	t->dm.edtl = 20000;
	t->iov[0] = (struct iovec){ t->buf, 20000 };
	t->iov[1] = (struct iovec){ t->buf + 20000, 20000 };
	t->dm.out = bufv_of(t->iov, 1);
	t->dm.in = bufv_of(t->iov + 1, 1);
	ctl.pdu.cmd.read = true;
	assert_int_equal(dm_send_control(r.dm, &t->dm, &ctl), 0);
	s = fixture_sent_at(&r, 0);
	assert_true(s->h.rsv && s->h.wsv);
	stag = s->h.read_stag;
	assert_int_equal(fake_rcap_valid(&r.f), 2);
	fixture_flush(&r);
	assert_int_equal(respond(5, stag, 0), 0);
	assert_int_equal(r.ended, 1);
	assert_int_equal(t->stags_left, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* [RFC 7145: 7.3.2 #11] */
static void test_response_invalidates_another_commands_stag(void **state)
{
	uint32_t other;

	(void)state;
	begin(DMISER_LINUX);
	start(5, false, 4096);
	start(6, false, 4096);
	other = fixture_sent_at(&r, 1)->h.read_stag;
	fixture_flush(&r);
	respond(5, other, 0);
	assert_int_equal(r.ended, 0);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §7.3.2");
	fixture_fini(&r);
}

/* A PDU that is not a SCSI Response must not invalidate an STag, nor must a
 * response with an unknown tag. */
static void test_invalidation_by_other_pdus(void **state)
{
	const struct iscsi_pdu nop = { .op = ISCSI_NOP_IN,
				       .final = true,
				       .itt = ISCSI_RESERVED_TAG,
				       .ttt = ISCSI_RESERVED_TAG };
	const struct iser_header h = fixture_plain();
	uint8_t bytes[ISER_PDU];
	uint32_t stag;

	(void)state;
	for (int unknown = 0; unknown < 2; unknown++) {
		begin(DMISER_LINUX);
		start(5, false, 4096);
		stag = fixture_sent_at(&r, 0)->h.read_stag;
		fixture_flush(&r);
		if (unknown)
			respond(77, stag, 0);
		else
			fake_rcap_deliver(
				&r.f, bytes,
				fixture_message(bytes, &h, &nop, NULL), stag);
		fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §7.3.2");
		fixture_fini(&r);
	}
}

/* ---- responses that wait ---- */

static void test_two_responses_rfc7143_11_4(void **state)
{
	(void)state;
	begin(DMISER_LINUX);
	start(5, true, 8192); /* immediate data */
	assert_int_equal(respond(5, 0, 0), 0);
	assert_int_equal(respond(5, 0, 0), 0);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7143 §11.4");
	fixture_fini(&r);
}

/* The response is received before the completion of our Send: the role gets the
 * buffers back after both. */
static void test_response_before_our_send_is_out(void **state)
{
	struct fixture_task *t;
	uint32_t stag;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, true, 8192); /* immediate data */
	assert_int_equal(respond(5, 0, 0), 0);
	assert_int_equal(r.ended, 0);
	fixture_flush(&r);
	assert_int_equal(r.ended, 1);
	assert_memory_equal(t->sense, "hello", 5);
	t = start(6, false, 4096);
	stag = fixture_sent_at(&r, 0)->h.read_stag;
	assert_int_equal(respond(6, stag, 0), 0);
	assert_int_equal(r.ended, 1);
	fixture_flush(&r);
	assert_int_equal(r.ended, 2);
	assert_int_equal(t->stags_left, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

static void test_receives_come_back(void **state)
{
	unsigned before;

	(void)state;
	begin(DMISER_LINUX);
	before = r.f.nrecvs;
	assert_true(before >= FIXTURE_TASKS + 2);
	for (uint32_t i = 0; i < 100; i++) {
		start(i, i & 1, 100 + i);
		if (i & 2)
			fixture_flush(&r);
		respond(i, 0, 0);
		fixture_flush(&r);
		assert_int_equal(r.f.nrecvs, before);
	}
	assert_int_equal(r.ended, 100);
	fixture_fini(&r);
}

/* The status of an aborted task still advances StatSN. */
static void test_response_for_nobody(void **state)
{
	(void)state;
	begin(DMISER_LINUX);
	assert_int_equal(respond(99, 0, 0), 0);
	assert_int_equal(r.controls, 1);
	assert_int_equal(r.in.itt, 99);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* ---- resources that are missing ---- */

static void test_no_region_is_free(void **state)
{
	struct fixture_task *t;
	int err;

	(void)state;
	begin(DMISER_LINUX);
	r.f.fail_regs = 2;
	t = fixture_start(&r, 5, false, 4096, 1, &err);
	assert_int_equal(err, ERR_BUSY);
	t->used = false;
	t = fixture_start(&r, 6, true, 40000, 1, &err);
	assert_int_equal(err, ERR_BUSY);
	t->used = false;
	assert_int_equal(r.f.nposted, 0);
	start(7, false, 4096);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* The queue pair ends: nothing is sent, and no STag stays valid. */
static void test_command_on_a_dying_queue_pair(void **state)
{
	struct fixture_task *t;
	int err;

	(void)state;
	begin(DMISER_LINUX);
	r.f.qp.state = RCAP_CLOSING;
	t = fixture_start(&r, 5, true, 40000, 1, &err);
	assert_true(err < 0);
	t->used = false;
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	fixture_fini(&r);
}

/* The limit for the AHS of a command. */
/* [RFC 7145: 7.3 #2] */
static void test_ahs_beyond_what_the_target_takes_rfc7145_6_8(void **state)
{
	struct iscsi_params p = fixture_params();
	uint8_t ahs[300] = { 0 };
	struct dm_control ctl = { .pdu = fixture_command(5, 0, false),
				  .ahs = ahs };
	struct dm_task t = { .itt = 5 };

	(void)state;
	dm_task_init(&t);
	ctl.pdu.ahs_len = 260;
	fixture_initiator(&r, DMISER_LINUX, &p);
	assert_int_equal(dm_send_control(r.dm, &t, &ctl), ERR_TOO_LONG);
	ctl.pdu.ahs_len = 256;
	assert_int_equal(dm_send_control(r.dm, &t, &ctl), 0);
	assert_int_equal(fixture_sent_at(&r, 0)->pdu.ahs_len, 256);
	fixture_fini(&r);
	p.max_ahs_length = 0; /* no limit */
	ctl.pdu.ahs_len = 300;
	dm_task_init(&t);
	fixture_initiator(&r, DMISER_LINUX, &p);
	assert_int_equal(dm_send_control(r.dm, &t, &ctl), 0);
	fixture_fini(&r);
}

/* [RFC 7145: 5.2.1 #1, 7.3.3 #1, 7.3.8 #1-2, 7.3.10 #1, 7.3.13 #1-2] */
static void test_other_requests_go_as_sends(void **state)
{
	static const uint8_t ops[] = { ISCSI_NOP_OUT, ISCSI_TMF_REQUEST,
				       ISCSI_TEXT_REQUEST,
				       ISCSI_LOGOUT_REQUEST };

	(void)state;
	begin(DMISER_STRICT);
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		assert_int_equal(fixture_send(&r, ops[i], 1, 33), 0);
		assert_int_equal(fixture_sent_at(&r, 0)->pdu.op, ops[i]);
		assert_int_equal(fixture_sent_at(&r, 0)->pdu.dsl, 33);
		assert_int_equal(fixture_sent_at(&r, 0)->pdu.expstatsn, 55);
		fixture_flush(&r);
	}
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_advertises_rfc7145_7_3_1),
		cmocka_unit_test(test_read_residual),
		cmocka_unit_test(test_command_of_nothing),
		cmocka_unit_test(test_write_base_in_each_reading_rfc7145_6_9),
		cmocka_unit_test(
			test_write_base_where_the_key_is_refused_rfc7145_6_9),
		cmocka_unit_test(test_unsolicited_data_outs_rfc7145_7_3_4),
		cmocka_unit_test(test_small_write_needs_no_stag),
		cmocka_unit_test(test_data_outs_of_many_pieces_rfc7145_7_3_1),
		cmocka_unit_test(test_remote_invalidation_rfc7145_7_3_2),
		cmocka_unit_test(test_both_stags_go_rfc7145_7_3_2),
		cmocka_unit_test(
			test_response_invalidates_another_commands_stag),
		cmocka_unit_test(test_invalidation_by_other_pdus),
		cmocka_unit_test(test_two_responses_rfc7143_11_4),
		cmocka_unit_test(test_response_before_our_send_is_out),
		cmocka_unit_test(test_receives_come_back),
		cmocka_unit_test(test_response_for_nobody),
		cmocka_unit_test(test_no_region_is_free),
		cmocka_unit_test(test_command_on_a_dying_queue_pair),
		cmocka_unit_test(
			test_ahs_beyond_what_the_target_takes_rfc7145_6_8),
		cmocka_unit_test(test_other_requests_go_as_sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
