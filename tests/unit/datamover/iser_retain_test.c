/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_retain_test.c: ErrorRecoveryLevel 2 over iSER: responses that wait for ExpStatSN,
 * tasks that go on over another connection (RFC 7145 §7.3.3, §10.2.2). */
#include "iscsi/keys.h"
#include "iser_fixture.h"

#define NEW_READ_STAG  0x01010101u
#define NEW_WRITE_STAG 0x02020202u

static struct fixture r;   /* the connection */
static struct fixture old; /* the lost connection */
static uint8_t lent[FIXTURE_BUF];
static struct iovec lent_iov;

static struct bufv data_of(uint32_t len)
{
	for (size_t i = 0; i < sizeof(lent); i++)
		lent[i] = fixture_byte(i + 3);
	lent_iov = (struct iovec){ lent, len };
	return bufv_of(&lent_iov, 1);
}

static struct iscsi_params params(uint8_t level)
{
	struct iscsi_params p = fixture_params();

	p.error_recovery_level = level;
	return p;
}

static void begin(struct fixture *f, uint8_t level)
{
	const struct iscsi_params p = params(level);

	fixture_target(f, DMISER_LINUX, &p);
	f->numbers.statsn = 101; /* the response of each test has 100 */
}

static void acknowledge(uint32_t expstatsn)
{
	const struct iscsi_pdu p = { .op = ISCSI_NOP_OUT,
				     .immediate = true,
				     .final = true,
				     .itt = ISCSI_RESERVED_TAG,
				     .ttt = ISCSI_RESERVED_TAG,
				     .cmdsn = 7,
				     .expstatsn = expstatsn };

	fixture_plain_pdu(&r, &p, NULL);
}

/* ---- responses ---- */

/* [RFC 7143: 4.2.2.2 #3] */
static void
test_a_response_is_kept_until_acknowledged_rfc7143_4_2_2_2(void **state)
{
	struct bufv data = data_of(4096);
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	assert_true(r.dm->retains);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(100);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(102); /* was not sent */
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	acknowledge(101);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* The buffer is in use until the Send is completed, whatever the initiator says. */
static void test_acknowledged_before_the_completion(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* The ExpStatSN of a Logout is that of the connection to be closed. */
static void test_a_logout_of_another_connection_rfc7143_11_14_4(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGOUT_REQUEST,
			       .immediate = true,
			       .final = true,
			       .itt = 9,
			       .cmdsn = 7,
			       .expstatsn = 101 };
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	assert_int_equal(fixture_respond(&r, t, 0), 0);
	fixture_flush(&r);
	p.logout.reason = ISCSI_LOGOUT_RECOVERY;
	p.logout.cid = 1;
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	p.logout.reason = ISCSI_LOGOUT_SESSION;
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* §10.2.1: nothing is sent again below level 2. */
static void test_lower_levels_keep_nothing_rfc7145_10_2_1(void **state)
{
	(void)state;
	for (uint8_t level = 0; level < 2; level++) {
		struct fixture_task *t;

		begin(&r, level);
		assert_false(r.dm->retains);
		fixture_read(&r, 5, 4096);
		t = fixture_find(&r, 5);
		assert_int_equal(fixture_respond(&r, t, 0), 0);
		fixture_flush(&r);
		assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
		fixture_fini(&r);
	}
}

/* A connection that was a byte stream during the login. */
static void test_level_2_after_a_login_over_a_stream(void **state)
{
	struct iscsi_params p = params(2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	assert_true(r.dm->retains);
	fixture_up(&r);
	fixture_fini(&r);
	p.error_recovery_level = 1;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	assert_false(r.dm->retains);
	fixture_up(&r);
	fixture_fini(&r);
}

/* ---- read data that the initiator's RDMA layer acknowledges (the A bit) ---- */

#define BURST 16384u /* MaxBurstLength of fixture_params */

/* A read of len bytes with the data in one Put_Data, with or without its response. */
static struct fixture_task *put(struct fixture *f, uint32_t len, bool respond)
{
	struct bufv data = data_of(len);
	struct fixture_task *t;
	struct iscsi_pdu rsp;

	fixture_read(f, 5, len);
	t = fixture_find(f, 5);
	rsp = fixture_response(t);
	assert_int_equal(
		dm_put_data(f->dm, &t->dm, &data, 0, respond ? &rsp : NULL), 0);
	return t;
}

static void assert_write(unsigned i, uint64_t to, uint32_t len)
{
	const struct rcap_wr *wr = fake_rcap_wr(&r.f, i);

	assert_non_null(wr);
	assert_int_equal(wr->op, RCAP_WRITE);
	assert_true(wr->to == to);
	assert_int_equal(wr->data.len, len);
}

static void assert_ack(unsigned i)
{
	const struct rcap_wr *wr = fake_rcap_wr(&r.f, i);

	assert_non_null(wr);
	assert_int_equal(wr->op, RCAP_READ);
	assert_int_equal(wr->stag, FIXTURE_READ_STAG);
	assert_int_equal(wr->data.len, 0);
}

/* RFC 7143 §11.7.2: once every MaxBurstLength bytes. The response acknowledges the
 * rest. */
/* [RFC 7145: 7.3.5 #12-14] */
static void test_long_reads_are_acknowledged_rfc7145_7_3_5(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	t = put(&r, 2 * BURST + 1000, true);
	assert_int_equal(r.f.nposted, 6);
	assert_write(0, FIXTURE_READ_BASE, BURST);
	assert_ack(1);
	assert_write(2, FIXTURE_READ_BASE + BURST, BURST);
	assert_ack(3);
	assert_write(4, FIXTURE_READ_BASE + 2 * BURST, 1000);
	assert_int_equal(fixture_sent_at(&r, 5)->pdu.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(fake_rcap_complete(&r.f, 1), 1);
	assert_int_equal(r.acks, 0); /* the initiator may not have them yet */
	assert_int_equal(fake_rcap_complete(&r.f, 1), 1);
	assert_int_equal(r.acks, 1);
	assert_int_equal(r.acked_sn, 1);
	assert_int_equal(fake_rcap_complete(&r.f, 2), 2);
	assert_int_equal(r.acks, 2);
	assert_int_equal(r.acked_sn, 2);
	fixture_flush(&r);
	assert_int_equal(r.acks, 2);
	assert_memory_equal(r.peer_in, lent, 2 * BURST + 1000);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	assert_int_equal(t->seen[DM_PUT], 0);
	fixture_fini(&r);
}

/* One burst needs no A bit; nor does any read below level 2, where nothing is kept
 * (§10.2.1). */
/* [RFC 5047: 10.2.3 #1] */
static void test_reads_without_the_a_bit(void **state)
{
	(void)state;
	begin(&r, 2);
	put(&r, BURST, true);
	assert_int_equal(r.f.nposted, 2);
	fixture_fini(&r);
	for (uint8_t level = 0; level < 2; level++) {
		begin(&r, level);
		put(&r, 3 * BURST, true);
		assert_int_equal(r.f.nposted, 2);
		fixture_flush(&r);
		assert_int_equal(r.acks, 0);
		fixture_fini(&r);
	}
}

/* The data without the response: DM_PUT follows the last RDMA Write. */
static void test_acknowledged_data_before_the_response(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	t = put(&r, 2 * BURST, false);
	assert_int_equal(r.f.nposted, 3);
	assert_int_equal(fake_rcap_complete(&r.f, 2), 2);
	assert_int_equal(r.acks, 1);
	assert_int_equal(t->seen[DM_PUT], 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_PUT], 1);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	fixture_flush(&r);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* Data in more pieces than one request has room for: further RDMA Writes, and an A bit at
 * the end of the burst only. */
static void test_acknowledged_data_in_many_pieces(void **state)
{
	static struct iovec iov[64];
	struct bufv data;
	struct fixture_task *t;
	struct iscsi_pdu rsp;
	unsigned acks = 0, writes = 0;

	(void)state;
	data_of(FIXTURE_BUF);
	for (unsigned i = 0; i < 64; i++)
		iov[i] = (struct iovec){ lent + 513 * i, 513 };
	data = bufv_of(iov, 64); /* 32832 bytes */
	begin(&r, 2);
	fixture_read(&r, 5, 40000);
	t = fixture_find(&r, 5);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	for (unsigned i = 0; i < r.f.nposted; i++) {
		acks += fake_rcap_wr(&r.f, i)->op == RCAP_READ;
		writes += fake_rcap_wr(&r.f, i)->op == RCAP_WRITE;
	}
	assert_int_equal(acks, 2);
	assert_true(writes > 3);
	fixture_flush(&r);
	assert_int_equal(r.acks, 2);
	assert_int_equal(r.acked_sn, writes - 1);
	assert_memory_equal(r.peer_in, lent, 64 * 513);
	fixture_fini(&r);
}

/* §7.3.6: the A bit needs an RDMA Read, too, and iSER-ORD limits them all; the Reads of
 * write data go on when it is acknowledged. */
static void test_the_a_bit_within_iser_ord_rfc7145_7_3_6(void **state)
{
	struct bufv data = data_of(2 * BURST);
	struct fixture_task *t, *second;
	struct iscsi_pdu rsp;

	(void)state;
	begin(&r, 2);
	t = put(&r, 4 * BURST, true); /* three of the four RDMA Reads */
	assert_int_equal(r.f.nposted, 8);
	fixture_write(&r, 6, 3 * BURST, 0, true);
	t = fixture_find(&r, 6);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 3 * BURST), 0);
	assert_int_equal(r.f.nposted, 9);
	/* none is left: without an A bit */
	fixture_read(&r, 7, 2 * BURST);
	second = fixture_find(&r, 7);
	rsp = fixture_response(second);
	rsp.statsn = r.numbers.statsn++;
	assert_int_equal(dm_put_data(r.dm, &second->dm, &data, 0, &rsp), 0);
	assert_int_equal(r.f.nposted, 12);
	for (unsigned i = 9; i < 12; i++)
		assert_int_not_equal(fake_rcap_wr(&r.f, i)->op, RCAP_READ);
	fixture_flush(&r);
	assert_int_equal(r.acks, 3);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_int_equal(r.f.most_reads, 4);
	fixture_fini(&r);
}

/* An initiator whose iSER-IRD is 0 answers no RDMA Read. */
static void test_no_a_bit_without_iser_ord(void **state)
{
	const struct iscsi_params p = params(2);

	(void)state;
	fixture_raw(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	r.f.qp.ord = 0;
	fixture_up(&r);
	fixture_login(&r);
	fake_rcap_remote(&r.f, FIXTURE_READ_STAG, FIXTURE_READ_BASE, r.peer_in,
			 FIXTURE_BUF);
	r.numbers.statsn = 101;
	put(&r, 3 * BURST, true);
	assert_int_equal(r.f.nposted, 4);
	fixture_flush(&r);
	assert_int_equal(r.acks, 0);
	fixture_fini(&r);
}

/* An abort waits for the RDMA Writes and Reads of the task, and reports no data. */
static void test_abort_with_an_a_bit_in_progress(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	t = put(&r, 2 * BURST, false);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	assert_int_equal(fake_rcap_complete(&r.f, 2), 2);
	assert_int_equal(r.acks, 0);
	assert_int_equal(t->seen[DM_RELEASED], 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	assert_int_equal(t->seen[DM_PUT], 0);
	fixture_fini(&r);
}

/* ---- the task goes on: target ---- */

/* The old connection is lost, and its task becomes one of r. */
static struct fixture_task *move(uint32_t itt)
{
	struct fixture_task *from = fixture_find(&old, itt);
	struct fixture_task *t = &r.task[0];

	fake_rcap_close(&old.f, ERR_RESET, "lost");
	*t = *from;
	t->dm.out = bufv_of(t->iov, from->dm.out.n);
	t->iov[0].iov_base = t->buf;
	memset(t->seen, 0, sizeof(t->seen));
	fixture_fini(&old);
	return t;
}

/* Delivers a TASK REASSIGN with these STags. */
static void reassign(uint32_t itt, bool write, bool read)
{
	struct iscsi_pdu p = { .op = ISCSI_TMF_REQUEST,
			       .immediate = true,
			       .final = true,
			       .itt = 77,
			       .cmdsn = 7,
			       .expstatsn = 100 };
	struct iser_header h = fixture_plain();

	p.tmf.function = ISCSI_TMF_TASK_REASSIGN;
	p.tmf.rtt = itt;
	h.wsv = write;
	h.rsv = read;
	h.write_stag = write ? NEW_WRITE_STAG : 0;
	h.read_stag = read ? NEW_READ_STAG : 0;
	h.write_base = write ? 0x7000 : 0;
	h.read_base = read ? 0x9000 : 0;
	fake_rcap_remote(&r.f, NEW_READ_STAG, 0x9000, r.peer_in, FIXTURE_BUF);
	fake_rcap_remote(&r.f, NEW_WRITE_STAG, 0x7000, r.peer_out, FIXTURE_BUF);
	fixture_deliver(&r, &h, &p, NULL);
	assert_true(r.has_remote);
}

/* [RFC 7145: 7.3.3 #11-13, 10.2.2 #2] */
static void test_a_read_with_new_stags_rfc7145_7_3_3(void **state)
{
	struct bufv data = data_of(4096);
	struct iscsi_pdu rsp;
	struct fixture_task *t;
	struct rcap_wr *wr;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	fixture_read(&old, 5, 4096);
	t = fixture_find(&old, 5);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(old.dm, &t->dm, &data, 0, &rsp), 0);
	fixture_flush(&old);
	t = move(5);
	reassign(5, false, true);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	assert_int_equal(r.f.nposted, 2);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->op, RCAP_WRITE);
	assert_int_equal(wr->stag, NEW_READ_STAG);
	assert_true(wr->to == 0x9000);
	fixture_flush(&r);
	assert_memory_equal(r.peer_in, lent, 4096);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* A read of three bursts, of which the initiator has acknowledged `acked`, goes on. */
static void go_on_with_a_read(unsigned acked)
{
	struct bufv data = data_of(3 * BURST);
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	begin(&old, 2);
	begin(&r, 2);
	put(&old, 3 * BURST, true);
	assert_int_equal(fake_rcap_complete(&old.f, 2 * acked), 2 * acked);
	/* written, but not acknowledged */
	assert_int_equal(fake_rcap_complete(&old.f, 1), 1);
	t = move(5);
	memset(r.peer_in, 0xee, sizeof(r.peer_in));
	reassign(5, false, true);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	assert_write(0, 0x9000 + acked * BURST, BURST);
	assert_int_equal(r.f.nposted, 2 * (3 - acked));
	fixture_flush(&r);
	assert_int_equal(r.acks, 2 - acked);
	assert_int_equal(r.acked_sn, acked < 2 ? 2 : 0);
	for (uint32_t i = 0; i < acked * BURST; i++)
		assert_int_equal(r.peer_in[i], 0xee);
	assert_memory_equal(r.peer_in + acked * BURST, lent + acked * BURST,
			    (3 - acked) * BURST);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* §10.2.2: all data that are not acknowledged are sent again, and no others. */
/* [RFC 7145: 10.2.2 #2] */
static void
test_acknowledged_data_are_not_sent_again_rfc7145_10_2_2(void **state)
{
	(void)state;
	for (unsigned acked = 0; acked < 3; acked++)
		go_on_with_a_read(acked);
}

/* Lost a second time: what was acknowledged over either connection counts. */
static void test_acknowledged_over_two_connections(void **state)
{
	struct bufv data = data_of(3 * BURST);
	struct fixture_task *t;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	put(&old, 3 * BURST, false);
	assert_int_equal(fake_rcap_complete(&old.f, 2), 2);
	t = move(5);
	reassign(5, false, true);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, NULL), 0);
	assert_int_equal(fake_rcap_complete(&r.f, 2), 2);
	assert_int_equal(r.acked_sn, 2);
	old = r; /* only its task is used */
	fake_rcap_close(&r.f, ERR_RESET, "lost");
	fixture_fini(&r);
	begin(&r, 2);
	t = &r.task[0];
	t->dm = old.task[0].dm;
	t->used = true;
	reassign(5, false, true);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, NULL), 0);
	assert_int_equal(r.f.nposted, 1);
	assert_write(0, 0x9000 + 2 * BURST, BURST);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_PUT], 1);
	fixture_fini(&r);
}

/* RDMA Reads that came before the loss are not repeated. */
/* [RFC 7145: 7.3.3 #11-13, 10.2.2 #3-4] */
static void test_a_write_goes_on_where_it_was_rfc7145_10_2_2(void **state)
{
	struct fixture_task *t;
	struct rcap_wr *wr;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	fixture_write(&old, 5, 40000, 0, true);
	t = fixture_find(&old, 5);
	assert_int_equal(dm_get_data(old.dm, &t->dm, 0, 40000), 0);
	assert_true(fake_rcap_complete(&old.f, 1)); /* MaxBurstLength: 16384 */
	assert_int_equal(t->dm.out_done, 16384);
	t = move(5);
	assert_int_equal(t->dm.out_done, 16384);
	reassign(5, true, false);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(r.f.nposted, 0); /* the role asks for the rest */
	assert_int_equal(t->dm.out_done, 16384);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 16384, 40000 - 16384), 0);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->stag, NEW_WRITE_STAG);
	assert_true(wr->to == 0x7000 + 16384);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	for (uint32_t i = 0; i < 40000; i++)
		assert_int_equal(t->buf[i], fixture_byte(i));
	fixture_fini(&r);
}

/* §9.2: the Write STag of a TASK REASSIGN names the data that the command did not carry;
 * the key says whether its Base Offset counts from those or from the first byte. */
static void
test_immediate_data_are_not_asked_for_again_rfc7145_9_2(void **state)
{
	(void)state;
	for (unsigned yes = 0; yes < 2; yes++) {
		struct iscsi_params p = params(2);
		struct fixture_task *t;

		p.tagged_buffer_for_solicited_data_only = yes;
		p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
		fixture_target(&old, DMISER_LINUX, &p);
		fixture_target(&r, DMISER_LINUX, &p);
		/* 1000 bytes at once and some unsolicited ones, which are late */
		fixture_write(&old, 5, 6000, 1000, false);
		fixture_data_out(&old, 5, 0, 1000, 500, false);
		t = move(5);
		assert_int_equal(t->dm.out_done, 1500);
		reassign(5, true, false);
		dm_adopt(r.dm, &t->dm, 0, &r.remote);
		assert_int_equal(t->dm.out_done, 1500);
		assert_int_equal(dm_get_data(r.dm, &t->dm, 1500, 4500), 0);
		assert_true(fake_rcap_wr(&r.f, 0)->to ==
			    0x7000u + (yes ? 500 : 1500));
		fixture_fini(&r);
	}
}

/* Data that were not permitted stay an error of the command. */
static void test_an_error_of_the_data_stays(void **state)
{
	struct iscsi_params p = params(2);
	struct fixture_task *t;

	(void)state;
	p.immediate_data = false;
	p.tagged_buffer_for_solicited_data_only = true;
	p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
	fixture_target(&old, DMISER_LINUX, &p);
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_write(&old, 5, 6000, 1000, false);
	t = move(5);
	reassign(5, true, false);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(t->dm.out_done, 1000);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 1000, 5000), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_int_equal(t->err, ERR_PROTOCOL);
	fixture_fini(&r);
}

/* ABORT TASK, and a TASK REASSIGN that names no buffer: no data can be transferred. */
static void test_without_stags(void **state)
{
	struct bufv data = data_of(512);
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	fixture_read(&old, 5, 512);
	t = move(5);
	dm_adopt(r.dm, &t->dm, 0, NULL);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp),
			 ERR_PROTOCOL);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	assert_int_equal(r.f.nposted, 1);
	fixture_fini(&r);
	begin(&old, 2);
	begin(&r, 2);
	fixture_write(&old, 5, 512, 0, true);
	t = move(5);
	reassign(5, false, false);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 512), 0);
	fixture_expect_ended(&r, ERR_FORMAT, "9.2");
	fixture_fini(&r);
}

/* Only task management functions bring such a mapping. */
static void test_other_pdus_bring_no_mapping(void **state)
{
	(void)state;
	begin(&r, 2);
	acknowledge(100);
	assert_false(r.has_remote);
	fixture_fini(&r);
}

/* ---- the task goes on: initiator ---- */

/* A command of the old connection, which is lost, goes on over r. */
static struct fixture_task *move_command(bool write, uint32_t len, bool yes)
{
	struct iscsi_params p = params(2);
	struct fixture_task *t;
	uint32_t immediate;
	int err;

	p.initial_r2t = true;
	p.tagged_buffer_for_solicited_data_only = yes;
	p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
	fixture_initiator(&old, DMISER_LINUX, &p);
	fixture_initiator(&r, DMISER_LINUX, &p);
	t = fixture_start(&old, 5, write, len, 1, &err);
	assert_int_equal(err, 0);
	fixture_flush(&old);
	immediate = t->dm.immediate;
	t = &r.task[0];
	*t = *fixture_find(&old, 5);
	t->iov[0].iov_base = t->buf;
	if (write)
		t->dm.out = bufv_of(t->iov, 1);
	else
		t->dm.in = bufv_of(t->iov, 1);
	fake_rcap_close(&old.f, ERR_RESET, "lost");
	fixture_fini(&old); /* checks that no STag is valid any more */
	dm_task_init(&t->dm);
	t->dm.immediate = immediate;
	t->dm.moved = true;
	return t;
}

static int ask(struct fixture_task *t)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TMF_REQUEST,
					   .immediate = true,
					   .final = true,
					   .itt = 99 },
				  .reassigned = &t->dm };

	ctl.pdu.tmf.function = ISCSI_TMF_TASK_REASSIGN;
	ctl.pdu.tmf.rtt = t->dm.itt;
	return dm_send_control(r.dm, NULL, &ctl);
}

/* [RFC 7145: 7.3.3 #3-8, 8.3.1 #1] */
static void test_a_read_is_advertised_again_rfc7145_7_3_3(void **state)
{
	struct fixture_task *t;
	struct fixture_sent *s;
	struct iscsi_pdu rsp;
	uint32_t first;
	uint8_t b[4] = { 1, 2, 3, 4 };

	(void)state;
	t = move_command(false, 5000, true);
	assert_int_equal(ask(t), 0);
	s = fixture_sent_at(&r, 0);
	assert_int_equal(s->pdu.op, ISCSI_TMF_REQUEST);
	assert_int_equal(s->pdu.tmf.rtt, 5);
	assert_int_equal(s->pdu.expstatsn, 55);
	assert_true(s->h.rsv && !s->h.wsv);
	first = s->h.read_stag;
	fixture_flush(&r);
	/* a second one replaces its STag */
	assert_int_equal(ask(t), 0);
	s = fixture_sent_at(&r, 0);
	assert_true(s->h.rsv);
	assert_int_equal(fake_rcap_valid(&r.f), 1);
	/* what the target does not send again must stay */
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		if (r.f.local[i].valid)
			assert_int_equal(r.f.local[i].rights,
					 RCAP_REMOTE_WRITE);
	assert_int_equal(fake_rcap_peer_write(&r.f, first, s->h.read_base, b,
					      4),
			 ERR_ACCESS);
	assert_int_equal(fake_rcap_peer_write(&r.f, s->h.read_stag,
					      s->h.read_base, b, 4),
			 0);
	assert_memory_equal(t->buf, b, 4);
	fixture_flush(&r);
	rsp = fixture_response(t);
	fixture_plain_pdu(&r, &rsp, NULL);
	assert_int_equal(r.ended, 1);
	assert_int_equal(t->stags_left, 0);
	assert_int_equal(t->dm.in_done, 5000);
	fixture_fini(&r);
}

/* [RFC 7145: 7.3.3 #3-8, 10.2.2 #1] */
static void test_a_write_is_advertised_again_rfc7145_10_2_2(void **state)
{
	(void)state;
	for (unsigned yes = 0; yes < 2; yes++) {
		struct fixture_task *t = move_command(true, 20000, yes);
		struct fixture_sent *s;
		uint8_t b[16];

		assert_int_equal(t->dm.immediate, 8192);
		assert_int_equal(ask(t), 0);
		s = fixture_sent_at(&r, 0);
		assert_int_equal(s->pdu.dsl, 0);
		assert_true(s->h.wsv && !s->h.rsv);
		assert_int_equal(fake_rcap_peer_read(&r.f, s->h.write_stag,
						     s->h.write_base, b, 16),
				 0);
		for (uint32_t k = 0; k < 16; k++)
			assert_int_equal(b[k],
					 fixture_byte((yes ? 8192 : 0) + k));
		/* the role gives the task up: the STags go with it */
		fixture_flush(&r);
		assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), 0);
		assert_int_equal(fake_rcap_valid(&r.f), 0);
		fixture_fini(&r);
	}
}

/* All data went with the command: there is nothing to advertise. */
static void test_a_write_of_immediate_data_needs_no_stag(void **state)
{
	struct fixture_task *t = move_command(true, 4096, true);
	struct fixture_sent *s;

	(void)state;
	assert_int_equal(ask(t), 0);
	s = fixture_sent_at(&r, 0);
	assert_false(s->h.wsv || s->h.rsv);
	fixture_fini(&r);
}

static void test_no_region_for_a_reassignment(void **state)
{
	struct fixture_task *t = move_command(false, 4096, true);

	(void)state;
	r.f.fail_regs = 1;
	assert_int_equal(ask(t), ERR_BUSY);
	assert_int_equal(r.f.nposted, 0);
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_response_is_kept_until_acknowledged_rfc7143_4_2_2_2),
		cmocka_unit_test(test_acknowledged_before_the_completion),
		cmocka_unit_test(
			test_a_logout_of_another_connection_rfc7143_11_14_4),
		cmocka_unit_test(test_lower_levels_keep_nothing_rfc7145_10_2_1),
		cmocka_unit_test(test_level_2_after_a_login_over_a_stream),
		cmocka_unit_test(
			test_long_reads_are_acknowledged_rfc7145_7_3_5),
		cmocka_unit_test(test_reads_without_the_a_bit),
		cmocka_unit_test(test_acknowledged_data_before_the_response),
		cmocka_unit_test(test_acknowledged_data_in_many_pieces),
		cmocka_unit_test(test_the_a_bit_within_iser_ord_rfc7145_7_3_6),
		cmocka_unit_test(test_no_a_bit_without_iser_ord),
		cmocka_unit_test(test_abort_with_an_a_bit_in_progress),
		cmocka_unit_test(test_a_read_with_new_stags_rfc7145_7_3_3),
		cmocka_unit_test(
			test_acknowledged_data_are_not_sent_again_rfc7145_10_2_2),
		cmocka_unit_test(test_acknowledged_over_two_connections),
		cmocka_unit_test(
			test_a_write_goes_on_where_it_was_rfc7145_10_2_2),
		cmocka_unit_test(
			test_immediate_data_are_not_asked_for_again_rfc7145_9_2),
		cmocka_unit_test(test_an_error_of_the_data_stays),
		cmocka_unit_test(test_without_stags),
		cmocka_unit_test(test_other_pdus_bring_no_mapping),
		cmocka_unit_test(test_a_read_is_advertised_again_rfc7145_7_3_3),
		cmocka_unit_test(
			test_a_write_is_advertised_again_rfc7145_10_2_2),
		cmocka_unit_test(test_a_write_of_immediate_data_needs_no_stag),
		cmocka_unit_test(test_no_region_for_a_reassignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
