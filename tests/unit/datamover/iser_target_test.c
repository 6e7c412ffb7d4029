/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_target_test.c: the target's end: commands, Put_Data by RDMA Write,
 * Get_Data by RDMA Read, unsolicited data, responses (RFC 7145 §7.3, §8.2). */
#include "datamover/iser/internal.h"
#include "iscsi/keys.h"
#include "iser_fixture.h"

static struct fixture r;
static uint8_t lent[FIXTURE_BUF];
static struct iovec lent_iov[2];

/* Read data of len bytes, in two pieces. */
static struct bufv data_of(uint32_t len)
{
	for (size_t i = 0; i < sizeof(lent); i++)
		lent[i] = fixture_byte(i + 3);
	lent_iov[0] = (struct iovec){ lent, len / 3 };
	lent_iov[1] = (struct iovec){ lent + len / 3, len - len / 3 };
	return bufv_of(lent_iov, 2);
}

static void begin(unsigned rules)
{
	const struct iscsi_params p = fixture_params();

	fixture_target(&r, rules, &p);
}

static void assert_got(const struct fixture_task *t, uint32_t off, uint32_t len)
{
	for (uint32_t i = off; i < off + len; i++)
		assert_int_equal(t->buf[i], fixture_byte(i));
}

/* ---- reads ---- */

/* [RFC 7145: 3.3 #6-7, 7.1 #2-3, 7.3.2 #2-3, 7.3.5 #3-5 #7 #10-11 #18-20,
 * 9.5.2 #4 #6] [RFC 5047: 9.3 #2] */
static void test_put_data_with_response_rfc7145_7_3_5(void **state)
{
	struct bufv data = data_of(4096);
	struct iscsi_pdu rsp;
	struct fixture_task *t;
	struct rcap_wr *wr;
	struct fixture_sent *s;

	(void)state;
	begin(DMISER_LINUX);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	assert_non_null(t);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	/* one post: the RDMA Write, then the Send */
	assert_int_equal(r.f.nposted, 2);
	assert_int_equal(r.f.chains, 1);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->op, RCAP_WRITE);
	assert_int_equal(wr->stag, FIXTURE_READ_STAG);
	assert_true(wr->to == FIXTURE_READ_BASE);
	assert_int_equal(wr->data.len, 4096);
	s = fixture_sent_at(&r, 1);
	assert_int_equal(s->pdu.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.itt, 5);
	assert_int_equal(s->pdu.statsn, 100);
	assert_int_equal(s->pdu.expcmdsn, 7);
	assert_int_equal(s->pdu.maxcmdsn, 15);
	assert_false(s->h.wsv || s->h.rsv);
	fake_rcap_complete(&r.f, 1);
	assert_memory_equal(r.peer_in, lent, 4096);
	assert_int_equal(t->seen[DM_PUT], 0); /* no completion was requested */
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	fake_rcap_complete(&r.f, 1);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	assert_int_equal(dmiser_stats(r.conn)->rdma_writes, 1);
	assert_int_equal(dmiser_stats(r.conn)->write_bytes, 4096);
	fixture_fini(&r);
}

/* [RFC 7145: 7.1 #1, 7.3.2 #1, 7.3.5 #6 #8-9] [RFC 5047: 9.3 #1] */
static void test_put_data_apart_rfc7145_7_3_5(void **state)
{
	struct bufv data = data_of(1000);
	struct fixture_task *t;
	struct fixture_sent *s;

	(void)state;
	begin(DMISER_LINUX);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 2000, NULL), 0);
	assert_int_equal(r.f.nposted, 1);
	/* the Buffer Offset counts from the Base Offset */
	assert_true(fake_rcap_wr(&r.f, 0)->to == FIXTURE_READ_BASE + 2000);
	/* one at a time */
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 3000, NULL),
			 ERR_BUSY);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_PUT], 1);
	assert_memory_equal(r.peer_in + 2000, lent, 1000);
	/* a second time, and then the response with sense data */
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, NULL), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_PUT], 2);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	s = fixture_sent_at(&r, 0);
	assert_int_equal(s->pdu.dsl, 20);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

static void test_put_data_of_nothing(void **state)
{
	struct bufv none = { .n = 0 };
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &none, 0, &rsp), 0);
	assert_int_equal(r.f.nposted, 1);
	assert_int_equal(fixture_sent_at(&r, 0)->pdu.op, ISCSI_SCSI_RESPONSE);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* A read of no data needs no STag; Put_Data with data for it fails. */
static void test_put_data_without_read_stag(void **state)
{
	struct iscsi_pdu p = fixture_command(9, 0, false);
	struct bufv none = { .n = 0 };
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_plain_pdu(&r, &p, NULL);
	fixture_expect_alive(&r);
	t = fixture_find(&r, 9);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &none, 0, &rsp), 0);
	assert_false(fake_rcap_wr(&r.f, 0)->flags & RCAP_INVALIDATE);
	fixture_fini(&r);
}

static void respond_now(struct fixture *g, struct fixture_task *t)
{
	struct bufv data = data_of(t->dm.edtl);
	const struct iscsi_pdu rsp = fixture_response(t);

	assert_int_equal(dm_put_data(g->dm, &t->dm, &data, 0, &rsp), 0);
}

/* The Remote Mapping exists when the role gets the command. */
/* [RFC 7145: 7.3.1 #16] */
static void test_answer_from_within_control_notify(void **state)
{
	(void)state;
	begin(DMISER_LINUX);
	r.on_command = respond_now;
	fixture_read(&r, 5, 2048);
	assert_int_equal(r.f.nposted, 2);
	assert_int_equal(fake_rcap_wr(&r.f, 0)->stag, FIXTURE_READ_STAG);
	fixture_flush(&r);
	assert_memory_equal(r.peer_in, lent, 2048);
	fixture_fini(&r);
}

/* ---- responses ---- */

/* [RFC 7145: 7.3.2 #4-9] */
static void test_response_names_the_stag_rfc7145_7_3_2(void **state)
{
	struct iscsi_pdu both = fixture_command(7, 512, true);
	struct iscsi_pdu none = fixture_command(8, 0, true);
	struct iser_header h = fixture_plain();
	struct bufv data = data_of(100);

	(void)state;
	begin(DMISER_LINUX);
	fixture_read(&r, 5, 4096);
	fixture_write(&r, 6, 4096, 0, true);
	h.wsv = h.rsv = both.cmd.read = true;
	h.read_stag = FIXTURE_READ_STAG;
	h.write_stag = FIXTURE_WRITE_STAG;
	fixture_deliver(&r, &h, &both, NULL);
	fixture_plain_pdu(&r, &none, NULL);
	for (uint32_t itt = 5; itt <= 8; itt++)
		assert_int_equal(fixture_respond(&r, fixture_find(&r, itt), 0),
				 0);
	/* Read STag; only a Write STag; both: the Read STag; none */
	assert_int_equal(fake_rcap_wr(&r.f, 0)->stag, FIXTURE_READ_STAG);
	assert_int_equal(fake_rcap_wr(&r.f, 1)->stag, FIXTURE_WRITE_STAG);
	assert_int_equal(fake_rcap_wr(&r.f, 2)->stag, FIXTURE_READ_STAG);
	for (unsigned i = 0; i < 3; i++)
		assert_true(fake_rcap_wr(&r.f, i)->flags & RCAP_INVALIDATE);
	assert_false(fake_rcap_wr(&r.f, 3)->flags & RCAP_INVALIDATE);
	/* the response ended the Remote Mapping */
	assert_int_equal(dm_put_data(r.dm, &fixture_find(&r, 5)->dm, &data, 0,
				     NULL),
			 ERR_PROTOCOL);
	fixture_fini(&r);
}

/* [RFC 7145: 5.2.2 #2, 7.3.7 #1-2, 7.3.12 #1-2] */
static void test_other_pdus_go_as_sends(void **state)
{
	static const uint8_t ops[] = {
		ISCSI_NOP_IN, ISCSI_TMF_RESPONSE,    ISCSI_TEXT_RESPONSE,
		ISCSI_REJECT, ISCSI_LOGOUT_RESPONSE, ISCSI_ASYNC_MESSAGE
	};

	(void)state;
	begin(DMISER_STRICT);
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		struct fixture_sent *s;

		assert_int_equal(fixture_send(&r, ops[i], 1, 50), 0);
		s = fixture_sent_at(&r, 0);
		assert_int_equal(s->pdu.op, ops[i]);
		assert_int_equal(s->pdu.dsl, 50);
		assert_int_equal(s->len, ISER_PDU + 52);
		fixture_flush(&r);
	}
	fixture_fini(&r);
}

/* RFC 7143 §13.12: no PDU is longer than the peer declared. */
static void test_too_much_data_for_a_pdu(void **state)
{
	(void)state;
	begin(DMISER_STRICT);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_RESPONSE, 1, 8193),
			 ERR_TOO_LONG);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_RESPONSE, 1, 8192), 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* ---- writes ---- */

/* [RFC 7145: 7.3.6 #4 #7 #12-13 #15-16, 9.5.1 #4] */
static void test_get_data_rfc7145_7_3_6(void **state)
{
	struct fixture_task *t;
	struct rcap_wr *wr;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 8000, 0, true);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->err, 0);
	assert_int_equal(t->dm.out_done, 0);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 8000), 0);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 8000), ERR_BUSY);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->op, RCAP_READ);
	assert_int_equal(wr->stag, FIXTURE_WRITE_STAG);
	assert_true(wr->to == FIXTURE_WRITE_BASE);
	assert_int_equal(wr->data.len, 8000);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_int_equal(t->dm.out_done, 8000);
	assert_got(t, 0, 8000);
	assert_int_equal(dmiser_stats(r.conn)->rdma_reads, 1);
	fixture_fini(&r);
}

/* The task has less memory than the initiator announced data for: the target
 * requests no data beyond its end. */
/* A connection has RDMA Reads from its first WRITE on, until it rests; not while one is
 * posted. */
static void test_reads_go_at_rest(void **state)
{
	(void)state;
	begin(DMISER_LINUX);
	for (uint32_t itt = 5; itt < 7; itt++) {
		struct fixture_task *t;

		assert_null(r.conn->free_reads.all);
		fixture_write(&r, itt, 5000, 0, true);
		t = fixture_find(&r, itt);
		assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 5000), 0);
		dm_rest(r.dm);
		assert_non_null(r.conn->free_reads.all);
		fixture_flush(&r);
		assert_int_equal(t->seen[DM_GET], 1);
		assert_got(t, 0, 5000);
		dm_rest(r.dm);
	}
	assert_null(r.conn->free_reads.all);
	fixture_fini(&r);
}

static void test_get_data_beyond_the_memory(void **state)
{
	static const struct {
		uint32_t off, len;
		int err;
	} rows[] = {
		{ 0, 8000, ERR_RANGE }, { 0, 4001, ERR_RANGE },
		{ 3999, 2, ERR_RANGE }, { 4000, 1, ERR_RANGE },
		{ 7999, 1, ERR_RANGE }, { 3999, 1, 0 },
	};
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 8000, 0, true);
	t = fixture_find(&r, 5);
	t->dm.out.len = 4000;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(dm_get_data(r.dm, &t->dm, rows[i].off,
					     rows[i].len),
				 rows[i].err);
	fixture_flush(&r);
	assert_int_equal(dmiser_stats(r.conn)->rdma_reads, 1);
	assert_int_equal(t->seen[DM_GET], 1);
	fixture_fini(&r);
}

/* The length that the queue pair prefers is a limit, too. */
static void test_get_data_as_the_queue_pair_likes(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	r.f.qp.read_best = 3000;
	fixture_write(&r, 5, 8000, 0, true);
	t = fixture_find(&r, 5);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 8000), 0);
	assert_int_equal(fake_rcap_wr(&r.f, 0)->data.len, 3000);
	assert_int_equal(fake_rcap_wr(&r.f, 2)->data.len, 2000);
	assert_true(fake_rcap_wr(&r.f, 2)->to == FIXTURE_WRITE_BASE + 6000);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_got(t, 0, 8000);
	assert_int_equal(dmiser_stats(r.conn)->rdma_reads, 3);
	fixture_fini(&r);
}

/* MaxBurstLength limits the length, iSER-ORD the number. */
/* [RFC 7145: 7.3.6 #8, 8.2 #1] [RFC 5047: 8.8 #1] */
static void test_get_data_by_burst_and_ord_rfc7145_8_2(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	r.params.max_burst_length = 4096;
	dm_notice_key_values(r.dm, &r.params);
	fixture_write(&r, 5, 40000, 0, true);
	t = fixture_find(&r, 5);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 40000), 0);
	assert_int_equal(r.f.nposted, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(fake_rcap_wr(&r.f, i)->data.len, 4096);
		assert_true(fake_rcap_wr(&r.f, i)->to ==
			    FIXTURE_WRITE_BASE + i * 4096u);
	}
	fake_rcap_complete(&r.f, 1);
	assert_int_equal(r.f.nposted, 4); /* the next one */
	assert_int_equal(t->seen[DM_GET], 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_int_equal(r.f.most_reads, 4);
	assert_int_equal(dmiser_stats(r.conn)->rdma_reads, 10);
	assert_got(t, 0, 40000);
	fixture_fini(&r);
}

/* Several commands share the Reads, one after the other. */
static void test_get_data_in_turn(void **state)
{
	struct fixture_task *a, *b;
	unsigned of_b = 0;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 65536, 0, true);
	fixture_write(&r, 6, 65536, 0, true);
	a = fixture_find(&r, 5);
	b = fixture_find(&r, 6);
	assert_int_equal(dm_get_data(r.dm, &a->dm, 0, 65536), 0);
	assert_int_equal(dm_get_data(r.dm, &b->dm, 0, 65536), 0);
	fake_rcap_complete(&r.f, 3);
	for (unsigned i = 0; i < r.f.nposted; i++)
		of_b += fake_rcap_wr(&r.f, i)->data.iov[0].iov_base >=
				(void *)b->buf &&
			fake_rcap_wr(&r.f, i)->data.iov[0].iov_base <
				(void *)(b->buf + FIXTURE_BUF);
	assert_true(of_b >= 1 && of_b < 4);
	fixture_flush(&r);
	assert_int_equal(a->seen[DM_GET], 1);
	assert_int_equal(b->seen[DM_GET], 1);
	assert_got(a, 0, 65536);
	assert_got(b, 0, 65536);
	fixture_fini(&r);
}

/* More pieces than one RDMA Read carries. */
static void test_get_data_many_pieces(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 4000, 0, true);
	t = fixture_find(&r, 5);
	for (unsigned i = 0; i < 40; i++)
		t->iov[i] = (struct iovec){ t->buf + 100 * i, 100 };
	t->dm.out = bufv_of(t->iov, 40);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 4000), 0);
	assert_int_equal(r.f.nposted, 3);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_got(t, 0, 4000);
	fixture_fini(&r);
}

/* [RFC 7145: 7.3.6 #5-6] */
static void test_get_data_with_ord_0_rfc7145_7_3_6(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct fixture_task *t;

	(void)state;
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	r.f.qp.ord = 0;
	fake_rcap_establish(&r.f, NULL, 0);
	fixture_login(&r);
	fixture_write(&r, 5, 4096, 0, true);
	t = fixture_find(&r, 5);
	dm_get_data(r.dm, &t->dm, 0, 4096);
	fixture_expect_ended(&r, ERR_LIMIT, "RFC 7145 §7.3.6");
	fixture_fini(&r);
}

/* ---- immediate and unsolicited data ---- */

static void test_immediate_data(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 4096, 4096, true);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->err, 0);
	assert_int_equal(t->dm.out_done, 4096);
	assert_got(t, 0, 4096);
	assert_int_equal(dmiser_stats(r.conn)->copied, 4096);
	fixture_fini(&r);
}

static void allow_peek(struct fixture *f, struct fixture_task *t)
{
	(void)f;
	t->dm.may_peek = true;
}

/* The data stay in the receive if they are all data of the command, and no Data-Out
 * follows. */
static void test_immediate_data_in_place(void **state)
{
	static const struct {
		uint32_t edtl, dsl;
		bool final;
		uint32_t copied;
	} cases[] = {
		{ 4096, 4096, true, 0 },
		{ 8000, 4096, true, 4096 },
		{ 4096, 4096, false, 4096 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture_task *t;

		begin(DMISER_LINUX);
		r.on_command = allow_peek;
		fixture_write(&r, 5, cases[i].edtl, cases[i].dsl,
			      cases[i].final);
		t = fixture_find(&r, 5);
		assert_int_equal(t->seen[DM_UNSOLICITED], cases[i].final);
		assert_int_equal(t->dm.out_done, 4096);
		assert_got(t, 0, 4096);
		assert_int_equal(dmiser_stats(r.conn)->copied, cases[i].copied);
		fixture_fini(&r);
	}
}

/* [RFC 7145: 7.3.4 #3, 9.5.1 #6] */
static void test_unsolicited_data_rfc7145_7_3_4(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 30000, 1000, false);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 0);
	fixture_data_out(&r, 5, 0, 1000, 8192, false);
	assert_int_equal(t->seen[DM_UNSOLICITED], 0);
	fixture_data_out(&r, 5, 1, 9192, 7192, true);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->err, 0);
	assert_int_equal(t->dm.out_done, 16384);
	assert_got(t, 0, 16384);
	assert_int_equal(r.errors, 0);
	/* Data-Outs after the F bit belong to no sequence */
	fixture_data_out(&r, 5, 2, 16384, 100, true);
	assert_int_equal(r.errors, 1);
	assert_int_equal(r.last_err, ERR_NOT_FOUND);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->dm.out_done, 16384);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* The Write Base Offset: TaggedBufferForSolicitedDataOnly, and the reading of
 * other implementations. */
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
		uint64_t to;
	} rows[] = {
		{ DMISER_LINUX, SILENT, FIXTURE_WRITE_BASE },
		{ DMISER_LINUX, YES, FIXTURE_WRITE_BASE },
		{ DMISER_LINUX, NO, FIXTURE_WRITE_BASE + 1000 },
		{ DMISER_STRICT, SILENT, FIXTURE_WRITE_BASE + 1000 },
		{ DMISER_STRICT, YES, FIXTURE_WRITE_BASE },
		{ DMISER_STRICT, NO, FIXTURE_WRITE_BASE + 1000 },
		{ DMISER_LINUX & ~(unsigned)DMISER_SOLICITED_VA, SILENT,
		  FIXTURE_WRITE_BASE + 1000 },
		{ DMISER_STRICT | DMISER_SOLICITED_VA, SILENT,
		  FIXTURE_WRITE_BASE },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_params p = fixture_params();
		struct fixture_task *t;

		p.tagged_buffer_for_solicited_data_only =
			rows[i].declared == YES;
		if (rows[i].declared != SILENT)
			p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
		fixture_target(&r, rows[i].rules, &p);
		fixture_write(&r, 5, 5000, 1000, true);
		t = fixture_find(&r, 5);
		assert_int_equal(dm_get_data(r.dm, &t->dm, 1000, 4000), 0);
		assert_true(fake_rcap_wr(&r.f, 0)->to == rows[i].to);
		assert_int_equal(fake_rcap_wr(&r.f, 0)->data.len, 4000);
		fixture_fini(&r);
	}
}

/* libiscsi 1.19 counts data that it leaves to RDMA Read in DataSegmentLength: a
 * WRITE with an STag whose Send ends after its headers has no immediate data.
 * Every other missing byte is an error. */
static void test_write_that_counts_absent_data(void **state)
{
	static const struct {
		bool write_stag;
		size_t len;
		bool ok;
	} rows[] = {
		{ true, ISER_PDU, true },
		{ true, ISER_PDU + 1, false },
		{ true, ISER_PDU + 999, false },
		{ true, ISER_PDU + 1000, true },
		{ false, ISER_PDU, false },
	};
	static uint8_t message[ISER_PDU + 1000], data[1000];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct iscsi_params params = fixture_params();
		struct iscsi_pdu p = fixture_command(5, 5000, true);
		struct iser_header h = fixture_plain();
		struct fixture_task *t;

		fixture_target(&r, DMISER_LINUX, &params);
		p.dsl = 1000;
		h.wsv = rows[i].write_stag;
		h.write_stag = FIXTURE_WRITE_STAG;
		h.write_base = FIXTURE_WRITE_BASE;
		fixture_message(message, &h, &p, data);
		assert_int_equal(
			fake_rcap_deliver(&r.f, message, rows[i].len, 0), 0);
		t = fixture_find(&r, 5);
		assert_int_equal(t != NULL, rows[i].ok);
		if (t)
			assert_int_equal(t->dm.out_done,
					 rows[i].len - ISER_PDU);
		else
			fixture_expect_ended(&r, ERR_TRUNCATED,
					     "RFC 7145 §9.2");
		fixture_fini(&r);
	}
}

struct bad_out {
	uint32_t datasn, off, len;
};

/* RFC 7143 §11.7.5, §11.7.6, §13.14: order and offset of unsolicited data. */
static void test_unsolicited_data_out_of_place(void **state)
{
	static const struct bad_out rows[] = {
		{ 1, 1000, 100 },	   /* DataSN */
		{ 0, 0, 100 },		   /* Buffer Offset: again */
		{ 0, 1100, 100 },	   /* Buffer Offset: a hole */
		{ 0, 1000, 7193 },	   /* beyond FirstBurstLength */
		{ 0, 0xffffff00u, 0x200 }, /* wraps around */
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_params p = fixture_params();
		struct fixture_task *t;

		p.first_burst_length = 8192;
		fixture_target(&r, DMISER_LINUX, &p);
		fixture_write(&r, 5, 30000, 1000, false);
		t = fixture_find(&r, 5);
		fixture_data_out(&r, 5, rows[i].datasn, rows[i].off,
				 rows[i].len, true);
		assert_int_equal(t->seen[DM_UNSOLICITED], 1);
		assert_int_equal(t->err, ERR_SEQUENCE);
		assert_int_equal(t->dm.out_done, 1000);
		assert_int_equal(r.errors, 1);
		assert_int_equal(r.last_err, ERR_RANGE);
		fixture_expect_alive(&r);
		fixture_fini(&r);
	}
}

/* No RDMA Read goes beyond the buffer of the task. */
static void test_get_data_beyond_the_buffer(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	r.out_len = 600;
	fixture_write(&r, 5, 4096, 0, true);
	t = fixture_find(&r, 5);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 601), ERR_RANGE);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 600, 1), ERR_RANGE);
	assert_int_equal(r.f.nposted, 0);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 599, 1), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	fixture_fini(&r);
}

/* RFC 7143 §11.4.7.2: unsolicited data while the solicited data are read. */
static void test_unexpected_unsolicited_data_over_iser(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	fixture_write(&r, 5, 4096, 0, true);
	t = fixture_find(&r, 5);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 4096), 0);
	fixture_data_out(&r, 5, 0, 0, 100, true);
	assert_int_equal(r.errors, 1);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_int_equal(t->err, ERR_PROTOCOL);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* RFC 7143 §13.10, §13.11: data that were not negotiated. */
static void test_data_not_agreed_on(void **state)
{
	struct iscsi_params p = fixture_params();
	struct fixture_task *t;

	(void)state;
	p.immediate_data = false;
	p.initial_r2t = true;
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_write(&r, 5, 4096, 512, true);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->err, ERR_PROTOCOL);
	fixture_write(&r, 6, 4096, 0,
		      false); /* no F bit under InitialR2T=Yes */
	t = fixture_find(&r, 6);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->err, ERR_PROTOCOL);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

static void test_immediate_data_beyond_limits(void **state)
{
	struct iscsi_params p = fixture_params();

	(void)state;
	p.first_burst_length = 512;
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_write(&r, 5, 4096, 513, true);
	assert_int_equal(fixture_find(&r, 5)->err, ERR_SEQUENCE);
	fixture_write(&r, 6, 100, 101,
		      true); /* more than the command transfers */
	assert_int_equal(fixture_find(&r, 6)->err, ERR_SEQUENCE);
	assert_int_equal(fixture_find(&r, 6)->dm.out_done, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* A role that returns no task, a buffer smaller than the data, an unknown tag. */
static void test_data_for_nobody(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	r.no_task = true;
	fixture_write(&r, 4, 3000, 1000, false);
	fixture_data_out(&r, 4, 0, 1000, 2000, true);
	r.no_task = false;
	r.out_len = 600;
	fixture_write(&r, 5, 3000, 1000, false);
	fixture_data_out(&r, 5, 0, 1000, 2000, true);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(t->err, 0);
	assert_int_equal(t->dm.out_done, 3000);
	assert_got(t, 0, 600);
	assert_int_equal(t->buf[600], 0); /* the rest was discarded */
	fixture_data_out(&r, 77, 0, 0, 100, true);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* Bidirectional: the role refuses the command; both STags exist until then. */
static void test_bidirectional_is_handed_up(void **state)
{
	struct iscsi_pdu p = fixture_command(5, 512, true);
	struct iser_header h = fixture_plain();
	struct fixture_task *t;

	(void)state;
	begin(DMISER_LINUX);
	p.cmd.read = true;
	h.rsv = h.wsv = true;
	h.read_stag = FIXTURE_READ_STAG;
	h.write_stag = FIXTURE_WRITE_STAG;
	fixture_deliver(&r, &h, &p, NULL);
	assert_true(r.in.cmd.read && r.in.cmd.write);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* ---- control-type PDUs in ---- */

/* [RFC 7145: 3.2 #1, 5.2.2 #1, 7.2 #1] */
static void test_control_pdus_are_handed_up_rfc7145_7_2(void **state)
{
	static const uint8_t ops[] = {
		ISCSI_NOP_OUT,	      ISCSI_TMF_REQUEST,   ISCSI_TEXT_REQUEST,
		ISCSI_LOGOUT_REQUEST, ISCSI_SNACK_REQUEST, ISCSI_LOGIN_REQUEST
	};
	uint8_t data[64];

	(void)state;
	begin(DMISER_LINUX);
	memset(data, 0x5a, sizeof(data));
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		const struct iscsi_pdu p = {
			.op = ops[i], .final = true, .itt = 3, .dsl = 50
		};

		fixture_plain_pdu(&r, &p, data);
		assert_int_equal(r.controls, i + 1);
		assert_int_equal(r.in.op, ops[i]);
		assert_memory_equal(r.in_data, data, 50);
	}
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* A long CDB: the role gets the AHS with the command, beside 8192 bytes of
 * data, also in the first message after the login. */
static void test_ahs_of_a_command(void **state)
{
	struct iscsi_pdu p = fixture_command(5, 8192, true);

	(void)state;
	begin(DMISER_LINUX);
	p.ahs_len = 244;
	p.dsl = 8192;
	for (uint32_t i = 0; i < 3; i++) {
		p.itt = 5 + i;
		assert_int_equal(fixture_plain_pdu(&r, &p, NULL), 0);
		assert_int_equal(r.in_ahs, 244);
		assert_int_equal(fixture_find(&r, 5 + i)->dm.out_done, 8192);
	}
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

static void get_data_of_first(struct fixture *f, struct fixture_task *t)
{
	if (t->dm.itt == 6)
		assert_int_equal(dm_get_data(f->dm, &fixture_find(f, 5)->dm, 0,
					     4096),
				 0);
}

/* The role asks for the data of a WRITE while it processes another command: the
 * STag is that of the WRITE (RFC 7145 §7.3.1). */
/* [RFC 7145: 7.3.1 #16] */
static void test_get_data_within_another_command_rfc7145_7_3_1(void **state)
{
	struct rcap_wr *wr;

	(void)state;
	begin(DMISER_LINUX);
	r.on_command = get_data_of_first;
	fixture_write(&r, 5, 4096, 0, true);
	fixture_read(&r, 6, 4096);
	assert_int_equal(r.f.nposted, 1);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->op, RCAP_READ);
	assert_int_equal(wr->stag, FIXTURE_WRITE_STAG);
	assert_true(wr->to == FIXTURE_WRITE_BASE);
	fixture_flush(&r);
	assert_int_equal(fixture_find(&r, 5)->seen[DM_GET], 1);
	assert_got(fixture_find(&r, 5), 0, 4096);
	r.on_command = NULL;
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_data_with_response_rfc7145_7_3_5),
		cmocka_unit_test(test_put_data_apart_rfc7145_7_3_5),
		cmocka_unit_test(test_put_data_of_nothing),
		cmocka_unit_test(test_put_data_without_read_stag),
		cmocka_unit_test(test_answer_from_within_control_notify),
		cmocka_unit_test(test_response_names_the_stag_rfc7145_7_3_2),
		cmocka_unit_test(test_other_pdus_go_as_sends),
		cmocka_unit_test(test_too_much_data_for_a_pdu),
		cmocka_unit_test(test_get_data_rfc7145_7_3_6),
		cmocka_unit_test(test_reads_go_at_rest),
		cmocka_unit_test(test_get_data_beyond_the_memory),
		cmocka_unit_test(test_get_data_as_the_queue_pair_likes),
		cmocka_unit_test(test_get_data_by_burst_and_ord_rfc7145_8_2),
		cmocka_unit_test(test_get_data_in_turn),
		cmocka_unit_test(
			test_get_data_within_another_command_rfc7145_7_3_1),
		cmocka_unit_test(test_get_data_many_pieces),
		cmocka_unit_test(test_get_data_with_ord_0_rfc7145_7_3_6),
		cmocka_unit_test(test_immediate_data),
		cmocka_unit_test(test_immediate_data_in_place),
		cmocka_unit_test(test_unsolicited_data_rfc7145_7_3_4),
		cmocka_unit_test(test_write_base_in_each_reading_rfc7145_6_9),
		cmocka_unit_test(test_write_that_counts_absent_data),
		cmocka_unit_test(test_unsolicited_data_out_of_place),
		cmocka_unit_test(test_unexpected_unsolicited_data_over_iser),
		cmocka_unit_test(test_get_data_beyond_the_buffer),
		cmocka_unit_test(test_data_not_agreed_on),
		cmocka_unit_test(test_immediate_data_beyond_limits),
		cmocka_unit_test(test_data_for_nobody),
		cmocka_unit_test(test_bidirectional_is_handed_up),
		cmocka_unit_test(test_control_pdus_are_handed_up_rfc7145_7_2),
		cmocka_unit_test(test_ahs_of_a_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
