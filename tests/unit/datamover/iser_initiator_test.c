/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_initiator_test.c: the initiator's end: STags out with their commands,
 * unsolicited data, responses in, and when an STag is gone (RFC 7145 §7.3.1,
 * §7.3.2, §7.3.4, §8.3). */
#include "iser_rig.h"

static struct rig r;

static void begin(unsigned rules)
{
	const struct iscsi_params p = rig_params();

	rig_initiator(&r, rules, &p);
}

static struct rig_task *start(uint32_t itt, bool write, uint32_t len)
{
	int err;
	struct rig_task *t = rig_start(&r, itt, write, len, 3, &err);

	assert_int_equal(err, 0);
	return t;
}

/* A SCSI Response from the peer; stag 0: a plain Send. */
static int respond(uint32_t itt, uint32_t stag, uint32_t resid)
{
	const struct iser_header h = rig_plain();
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
				 rig_message(bytes, &h, &p, "hello"), stag);
}

/* ---- reads ---- */

/* [RFC 7145: 7.3.1 #1 #10-12 #14, 7.3.2 #13-14, 9.5.2 #1-3 #7] */
static void test_read_advertises_rfc7145_7_3_1(void **state)
{
	struct rig_task *t;
	struct rig_sent *s;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, false, 5000);
	assert_int_equal(r.f.nposted, 1);
	s = rig_sent_at(&r, 0);
	assert_int_equal(s->pdu.op, ISCSI_SCSI_COMMAND);
	assert_int_equal(s->pdu.expstatsn, 55);
	assert_true(s->pdu.final && s->h.rsv && !s->h.wsv);
	assert_int_equal(s->pdu.dsl, 0);
	assert_int_equal(fake_rcap_valid(&r.f), 1);
	/* it is for writing, all of it, and no more than it */
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
	rig_flush(&r);
	assert_int_equal(respond(5, 0, 0), 0);
	assert_int_equal(r.ended, 1);
	/* gone before anybody heard of the response */
	assert_int_equal(t->stags_left, 0);
	assert_int_equal(t->dm.in_done, 5000);
	assert_memory_equal(t->buf, "abcde", 5);
	assert_memory_equal(t->buf + 4997, "xyz", 3);
	assert_memory_equal(t->sense, "hello", 5);
	assert_int_equal(dmiser_stats(r.conn)->invalidated, 1);
	rig_fini(&r);
}

static void test_read_residual(void **state)
{
	struct rig_task *t;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, false, 5000);
	rig_flush(&r);
	respond(5, 0, 4000);
	assert_int_equal(t->dm.in_done, 1000);
	t = start(6, false, 5000);
	rig_flush(&r);
	respond(6, 0, 0xffffffff); /* more than there was */
	assert_int_equal(t->dm.in_done, 0);
	rig_fini(&r);
}

static void test_command_of_nothing(void **state)
{
	struct rig_sent *s;

	(void)state;
	begin(DMISER_LINUX);
	start(5, false, 0);
	start(6, true, 0);
	for (unsigned i = 0; i < 2; i++) {
		s = rig_sent_at(&r, i);
		assert_true(s->pdu.final);
		assert_false(s->h.rsv || s->h.wsv);
		assert_int_equal(s->len, ISER_PDU);
	}
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	rig_fini(&r);
}

/* ---- writes ---- */

/* What was solicited is where the header says: all real initiators' way,
 * and the RFC's two. */
/* [RFC 7145: 7.3.1 #6-7 #9, 7.3.6 #14, 9.5.1 #1-3] */
static void test_write_base_in_each_reading_rfc7145_6_9(void **state)
{
	static const struct {
		unsigned rules;
		bool tagged, advanced;
	} rows[] = {
		{ DMISER_LINUX, false, true },
		{ DMISER_LINUX, true, true },
		{ DMISER_STRICT, false, false },
		{ DMISER_STRICT, true, true },
		{ DMISER_LINUX & ~(unsigned)DMISER_SOLICITED_VA, false, false },
		{ DMISER_STRICT | DMISER_SOLICITED_VA, false, true },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_params p = rig_params();
		uint32_t unasked = rows[i].advanced ? 8192 : 0;
		struct rig_sent *s;
		uint8_t b[16];

		p.tagged_buffer_for_solicited_data_only = rows[i].tagged;
		p.initial_r2t = true;
		rig_initiator(&r, rows[i].rules, &p);
		start(5, true, 20000);
		assert_int_equal(r.f.nposted, 1);
		s = rig_sent_at(&r, 0);
		assert_true(s->h.wsv && !s->h.rsv && s->pdu.final);
		assert_int_equal(s->pdu.dsl, 8192);
		for (uint32_t k = 0; k < 8192; k++)
			assert_int_equal(s->data[k], rig_byte(k));
		assert_int_equal(fake_rcap_peer_read(&r.f, s->h.write_stag,
						     s->h.write_base, b, 16),
				 0);
		for (uint32_t k = 0; k < 16; k++)
			assert_int_equal(b[k], rig_byte(unasked + k));
		assert_int_equal(fake_rcap_peer_write(&r.f, s->h.write_stag,
						      s->h.write_base, b, 1),
				 ERR_ACCESS);
		rig_fini(&r);
	}
}

/* [RFC 7145: 7.3.1 #2-5 #15, 7.3.4 #1-2 #4, 9.5.1 #5] */
static void test_unsolicited_data_outs_rfc7145_7_3_4(void **state)
{
	struct iscsi_params p = rig_params();
	static const uint32_t offs[] = { 1000, 2000, 3000 };
	struct rig_sent *s;

	(void)state;
	p.max_send_dsl = 1000;
	p.first_burst_length = 3500;
	rig_initiator(&r, DMISER_STRICT, &p);
	start(5, true, 20000);
	assert_int_equal(r.f.nposted, 4);
	s = rig_sent_at(&r, 0);
	assert_false(s->pdu.final);
	assert_true(s->h.wsv);
	assert_int_equal(s->pdu.dsl, 1000);
	for (unsigned i = 0; i < 3; i++) {
		s = rig_sent_at(&r, 1 + i);
		assert_int_equal(s->pdu.op, ISCSI_DATA_OUT);
		assert_int_equal(s->pdu.itt, 5);
		assert_int_equal(s->pdu.ttt, ISCSI_RESERVED_TAG);
		assert_int_equal(s->pdu.data.datasn, i);
		assert_int_equal(s->pdu.data.offset, offs[i]);
		assert_int_equal(s->pdu.dsl, i < 2 ? 1000 : 500);
		assert_int_equal(s->pdu.final, i == 2);
		assert_false(s->h.wsv || s->h.rsv);
		for (uint32_t k = 0; k < s->pdu.dsl; k++)
			assert_int_equal(s->data[k], rig_byte(offs[i] + k));
	}
	rig_fini(&r);
}

/* All of it goes unasked: no STag is needed. ImmediateData=No: Data-Outs
 * only. */
static void test_small_write_needs_no_stag(void **state)
{
	struct iscsi_params p = rig_params();

	(void)state;
	rig_initiator(&r, DMISER_LINUX, &p);
	start(5, true, 8192);
	assert_int_equal(r.f.nposted, 1);
	assert_false(rig_sent_at(&r, 0)->h.wsv);
	assert_true(rig_sent_at(&r, 0)->pdu.final);
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	rig_fini(&r);

	p.immediate_data = false;
	rig_initiator(&r, DMISER_LINUX, &p);
	start(5, true, 8192);
	assert_int_equal(r.f.nposted, 2);
	assert_false(rig_sent_at(&r, 0)->pdu.final);
	assert_int_equal(rig_sent_at(&r, 0)->pdu.dsl, 0);
	assert_int_equal(rig_sent_at(&r, 1)->pdu.dsl, 8192);
	rig_fini(&r);

	p.initial_r2t = true; /* neither: all of it is solicited */
	rig_initiator(&r, DMISER_LINUX, &p);
	start(5, true, 8192);
	assert_int_equal(r.f.nposted, 1);
	assert_true(rig_sent_at(&r, 0)->pdu.final);
	assert_true(rig_sent_at(&r, 0)->h.wsv);
	assert_int_equal(rig_sent_at(&r, 0)->pdu.dsl, 0);
	rig_fini(&r);
}

/* More pieces than a message carries: what isn't the last PDU is full all the
 * same. */
/* [RFC 7145: 6.4 #1] */
static void test_data_outs_of_many_pieces_rfc7145_7_3_1(void **state)
{
	struct iscsi_params p = rig_params();
	struct rig_sent *s;
	int err;

	(void)state;
	p.immediate_data = false;
	rig_initiator(&r, DMISER_STRICT, &p);
	rig_start(&r, 5, true, 16384, 40, &err);
	assert_int_equal(err, 0);
	assert_int_equal(r.f.nposted, 3);
	for (unsigned i = 1; i < 3; i++) {
		s = rig_sent_at(&r, i);
		assert_int_equal(s->pdu.dsl, 8192);
		for (uint32_t k = 0; k < 8192; k++)
			assert_int_equal(s->data[k],
					 rig_byte((i - 1) * 8192 + k));
	}
	rig_fini(&r);
	/* as immediate data: as much as fits, and then nothing unasked */
	p.immediate_data = true;
	rig_initiator(&r, DMISER_STRICT, &p);
	rig_start(&r, 5, true, 16384, 40, &err);
	assert_int_equal(err, 0);
	assert_int_equal(r.f.nposted, 1);
	s = rig_sent_at(&r, 0);
	assert_true(s->pdu.final && s->h.wsv);
	assert_in_range(s->pdu.dsl, 1, 8191);
	rig_fini(&r);
}

/* ---- the STags' end ---- */

/* [RFC 7145: 7.3.2 #10, 9.5.1 #9] */
static void test_remote_invalidation_rfc7145_7_3_2(void **state)
{
	struct rig_task *t;
	uint32_t stag;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, false, 4096);
	stag = rig_sent_at(&r, 0)->h.read_stag;
	rig_flush(&r);
	assert_int_equal(respond(5, stag, 0), 0);
	assert_int_equal(r.ended, 1);
	assert_int_equal(t->stags_left, 0);
	assert_int_equal(dmiser_stats(r.conn)->remote_invalidated, 1);
	rig_expect_well(&r);
	/* a write's, too */
	t = start(6, true, 40000);
	stag = rig_sent_at(&r, 0)->h.write_stag;
	rig_flush(&r);
	assert_int_equal(respond(6, stag, 0), 0);
	assert_int_equal(r.ended, 2);
	assert_int_equal(t->stags_left, 0);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* Both STags, one of them invalidated by the peer. */
/* [RFC 7145: 7.3.2 #12] */
static void test_both_stags_go_rfc7145_7_3_2(void **state)
{
	struct dm_control ctl = { .pdu = rig_command(5, 20000, true) };
	struct rig_task *t;
	struct rig_sent *s;
	uint32_t stag;

	(void)state;
	begin(DMISER_LINUX);
	/* a bidirectional command, as the interface would take it */
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
	s = rig_sent_at(&r, 0);
	assert_true(s->h.rsv && s->h.wsv);
	stag = s->h.read_stag;
	assert_int_equal(fake_rcap_valid(&r.f), 2);
	rig_flush(&r);
	assert_int_equal(respond(5, stag, 0), 0);
	assert_int_equal(r.ended, 1);
	assert_int_equal(t->stags_left, 0);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* [RFC 7145: 7.3.2 #11] */
static void test_response_invalidates_another_commands_stag(void **state)
{
	uint32_t other;

	(void)state;
	begin(DMISER_LINUX);
	start(5, false, 4096);
	start(6, false, 4096);
	other = rig_sent_at(&r, 1)->h.read_stag;
	rig_flush(&r);
	respond(5, other, 0);
	assert_int_equal(r.ended, 0);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §7.3.2");
	rig_fini(&r);
}

/* A PDU that is no SCSI Response has no STag to end, nor has one for a tag
 * that nobody knows. */
static void test_invalidation_by_other_pdus(void **state)
{
	const struct iscsi_pdu nop = { .op = ISCSI_NOP_IN,
				       .final = true,
				       .itt = ISCSI_RESERVED_TAG,
				       .ttt = ISCSI_RESERVED_TAG };
	const struct iser_header h = rig_plain();
	uint8_t bytes[ISER_PDU];
	uint32_t stag;

	(void)state;
	for (int unknown = 0; unknown < 2; unknown++) {
		begin(DMISER_LINUX);
		start(5, false, 4096);
		stag = rig_sent_at(&r, 0)->h.read_stag;
		rig_flush(&r);
		if (unknown)
			respond(77, stag, 0);
		else
			fake_rcap_deliver(&r.f, bytes,
					  rig_message(bytes, &h, &nop, NULL),
					  stag);
		rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §7.3.2");
		rig_fini(&r);
	}
}

/* ---- late ---- */

/* The response overtakes the completion of our own Send: the buffers are not
 * handed back before both. */
static void test_response_before_our_send_is_out(void **state)
{
	struct rig_task *t;
	uint32_t stag;

	(void)state;
	begin(DMISER_LINUX);
	t = start(5, true, 8192); /* immediate data */
	assert_int_equal(respond(5, 0, 0), 0);
	assert_int_equal(r.ended, 0);
	assert_int_equal(respond(5, 0, 0), 0); /* and once more: ignored */
	rig_flush(&r);
	assert_int_equal(r.ended, 1);
	assert_memory_equal(t->sense, "hello", 5);
	t = start(6, false, 4096);
	stag = rig_sent_at(&r, 0)->h.read_stag;
	assert_int_equal(respond(6, stag, 0), 0);
	assert_int_equal(r.ended, 1);
	rig_flush(&r);
	assert_int_equal(r.ended, 2);
	assert_int_equal(t->stags_left, 0);
	rig_expect_well(&r);
	rig_fini(&r);
}

static void test_receives_come_back(void **state)
{
	unsigned before;

	(void)state;
	begin(DMISER_LINUX);
	before = r.f.nrecvs;
	assert_true(before >= RIG_TASKS + 2);
	for (uint32_t i = 0; i < 100; i++) {
		start(i, i & 1, 100 + i);
		if (i & 2)
			rig_flush(&r);
		respond(i, 0, 0);
		rig_flush(&r);
		assert_int_equal(r.f.nrecvs, before);
	}
	assert_int_equal(r.ended, 100);
	rig_fini(&r);
}

/* Status of a task that was given up still takes its StatSN. */
static void test_response_for_nobody(void **state)
{
	(void)state;
	begin(DMISER_LINUX);
	assert_int_equal(respond(99, 0, 0), 0);
	assert_int_equal(r.controls, 1);
	assert_int_equal(r.in.itt, 99);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* ---- what can't be had ---- */

static void test_no_region_is_free(void **state)
{
	struct rig_task *t;
	int err;

	(void)state;
	begin(DMISER_LINUX);
	r.f.fail_regs = 2;
	t = rig_start(&r, 5, false, 4096, 1, &err);
	assert_int_equal(err, ERR_BUSY);
	t->used = false;
	t = rig_start(&r, 6, true, 40000, 1, &err);
	assert_int_equal(err, ERR_BUSY);
	t->used = false;
	assert_int_equal(r.f.nposted, 0);
	start(7, false, 4096);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* The queue pair is going: nothing is sent, and no STag stays behind. */
static void test_command_on_a_dying_queue_pair(void **state)
{
	struct rig_task *t;
	int err;

	(void)state;
	begin(DMISER_LINUX);
	r.f.qp.state = RCAP_CLOSING;
	t = rig_start(&r, 5, true, 40000, 1, &err);
	assert_true(err < 0);
	t->used = false;
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	rig_fini(&r);
}

/* Of what we send */
/* [RFC 7145: 7.3 #2] */
static void test_ahs_beyond_what_the_target_takes_rfc7145_6_8(void **state)
{
	struct iscsi_params p = rig_params();
	uint8_t ahs[300] = { 0 };
	struct dm_control ctl = { .pdu = rig_command(5, 0, false), .ahs = ahs };
	struct dm_task t = { .itt = 5 };

	(void)state;
	dm_task_init(&t);
	ctl.pdu.ahs_len = 260;
	rig_initiator(&r, DMISER_LINUX, &p);
	assert_int_equal(dm_send_control(r.dm, &t, &ctl), ERR_TOO_LONG);
	ctl.pdu.ahs_len = 256;
	assert_int_equal(dm_send_control(r.dm, &t, &ctl), 0);
	assert_int_equal(rig_sent_at(&r, 0)->pdu.ahs_len, 256);
	rig_fini(&r);
	p.max_ahs_length = 0; /* no limit */
	ctl.pdu.ahs_len = 300;
	dm_task_init(&t);
	rig_initiator(&r, DMISER_LINUX, &p);
	assert_int_equal(dm_send_control(r.dm, &t, &ctl), 0);
	rig_fini(&r);
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
		assert_int_equal(rig_send(&r, ops[i], 1, 33), 0);
		assert_int_equal(rig_sent_at(&r, 0)->pdu.op, ops[i]);
		assert_int_equal(rig_sent_at(&r, 0)->pdu.dsl, 33);
		assert_int_equal(rig_sent_at(&r, 0)->pdu.expstatsn, 55);
		rig_flush(&r);
	}
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_advertises_rfc7145_7_3_1),
		cmocka_unit_test(test_read_residual),
		cmocka_unit_test(test_command_of_nothing),
		cmocka_unit_test(test_write_base_in_each_reading_rfc7145_6_9),
		cmocka_unit_test(test_unsolicited_data_outs_rfc7145_7_3_4),
		cmocka_unit_test(test_small_write_needs_no_stag),
		cmocka_unit_test(test_data_outs_of_many_pieces_rfc7145_7_3_1),
		cmocka_unit_test(test_remote_invalidation_rfc7145_7_3_2),
		cmocka_unit_test(test_both_stags_go_rfc7145_7_3_2),
		cmocka_unit_test(
			test_response_invalidates_another_commands_stag),
		cmocka_unit_test(test_invalidation_by_other_pdus),
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
