/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_hello_test.c: the way from a login over a stream to RDMA mode, and the
 * Hello exchange: RFC 7145 §5.1, §9.3, §9.4, §10.1.3.2, §10.1.3.4. */
#include "iser_rig.h"

static struct rig r;

static struct iscsi_params hello_params(void)
{
	struct iscsi_params p = rig_params();

	p.iser_hello_required = true;
	return p;
}

static struct iser_header hello(uint8_t opcode, uint16_t depth)
{
	return (struct iser_header){
		.opcode = opcode, .max_ver = 10, .min_ver = 10, .depth = depth
	};
}

static void say(const struct iser_header *h, size_t len)
{
	uint8_t bytes[2 * ISER_HEADER_LEN] = { 0 };

	iser_header_encode(h, bytes);
	fake_rcap_deliver(&r.f, bytes, len, 0);
}

/* What the end said: its i-th message is a Hello or HelloReply. */
static struct iser_header said(unsigned i)
{
	uint8_t bytes[ISER_PDU];
	struct iser_header h;
	struct rcap_wr *wr = fake_rcap_wr(&r.f, i);

	assert_non_null(wr);
	/* Only the header */
	assert_int_equal(fake_rcap_bytes(wr, bytes, sizeof(bytes)),
			 ISER_HEADER_LEN);
	assert_int_equal(iser_header_decode(&h, bytes, ISER_HEADER_LEN), 0);
	return h;
}

static void a_nop(uint8_t op)
{
	const struct iscsi_pdu p = { .op = op,
				     .final = true,
				     .itt = ISCSI_RESERVED_TAG,
				     .ttt = ISCSI_RESERVED_TAG,
				     .expstatsn = 100 };

	rig_plain_pdu(&r, &p, NULL);
}

/* ---- without Hello ---- */

/* [RFC 7145: 5.1.1 #5, 5.1.3 #2, 6.10 #2] */
static void test_switch_without_hello_rfc7145_5_1(void **state)
{
	const struct iscsi_params p = rig_params();
	struct rig_task *t;
	int err;

	(void)state;
	rig_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	assert_string_equal(r.dm->transport, "iser");
	/* the role may speak at once; it goes out when the queue pair is up */
	t = rig_start(&r, 5, false, 4096, 1, &err);
	assert_int_equal(err, 0);
	assert_int_equal(r.f.nposted, 0);
	rig_up(&r);
	assert_int_equal(r.f.nposted, 1);
	assert_int_equal(rig_sent_at(&r, 0)->pdu.itt, t->dm.itt);
	rig_fini(&r);
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	assert_int_equal(r.f.nposted, 0);
	rig_read(&r, 5, 0);
	assert_int_equal(r.controls, 1);
	rig_fini(&r);
}

/* The receives stand ready before the queue pair is up; no login receive. */
static void test_switch_receives_stand_ready(void **state)
{
	const struct iscsi_params p = rig_params();

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	assert_true(r.f.nrecvs >= RIG_TASKS + 2);
	rig_up(&r);
	rig_fini(&r);
}

/* The stream went before the queue pair was up. */
/* [RFC 7145: 10.1.1.1 #1] */
static void test_switch_fails_before_the_queue_pair_is_up(void **state)
{
	const struct iscsi_params p = hello_params();
	struct rig_task *t;
	int err;

	(void)state;
	rig_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	t = rig_start(&r, 5, true, 8192, 1, &err);
	assert_int_equal(err, 0);
	assert_true(t->used);
	rig_send(&r, ISCSI_NOP_OUT, 6, 0);
	fake_rcap_close(&r.f, ERR_RESET, "cut");
	assert_int_equal(r.terminate_err, ERR_RESET);
	rig_fini(&r);
}

/* Messages that overtake the word that the queue pair is up: they wait, none is
 * lost, and none is answered too early. */
static void test_messages_before_the_queue_pair_is_up(void **state)
{
	const struct iscsi_params p = rig_params();

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	r.f.qp.state = RCAP_REQUESTED;
	rig_read(&r, 5, 512);
	rig_write(&r, 6, 512, 0, true);
	assert_int_equal(r.controls, 0);
	rig_up(&r);
	assert_int_equal(r.controls, 2);
	assert_non_null(rig_find(&r, 5));
	assert_int_equal(rig_find(&r, 6)->seen[DM_UNSOLICITED], 1);
	rig_fini(&r);
	/* or the end comes first */
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_read(&r, 5, 512);
	fake_rcap_close(&r.f, ERR_RESET, "cut");
	assert_int_equal(r.controls, 0);
	rig_fini(&r);
}

/* A task that was given up while its command still waited. */
static void test_abort_before_the_queue_pair_is_up(void **state)
{
	const struct iscsi_params p = rig_params();
	struct rig_task *t;
	int err;

	(void)state;
	rig_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	t = rig_start(&r, 5, true, 8192, 1, &err);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	rig_up(&r);
	rig_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	rig_fini(&r);
}

/* ---- with it ---- */

/* [RFC 7145: 5.1.1 #1-2, 5.1.3 #1, 9.3 #1] */
static void test_initiator_says_hello_first_rfc7145_5_1_3(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h;
	int err;

	(void)state;
	rig_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	rig_start(&r, 5, true, 8192, 1, &err);
	assert_int_equal(err, 0);
	rig_up(&r);
	/* only the Hello goes out before its reply is in */
	assert_int_equal(r.f.nposted, 1);
	h = said(0);
	assert_int_equal(h.opcode, ISER_HELLO);
	assert_int_equal(h.max_ver, 10);
	assert_int_equal(h.min_ver, 10);
	assert_int_equal(h.depth, 4); /* what the queue pair answers at once */
	rig_flush(&r);
	assert_int_equal(r.f.nposted, 0);
	h = hello(ISER_HELLO_REPLY, 4);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(r.f.nposted, 1);
	assert_int_equal(rig_sent_at(&r, 0)->pdu.itt, 5);
	a_nop(ISCSI_NOP_IN);
	assert_int_equal(r.controls, 1);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* [RFC 7145: 5.1.2 #9, 5.1.3 #3, 9.4 #1] */
static void test_target_answers_hello_rfc7145_5_1_3(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	/* what the role says meanwhile waits behind the HelloReply */
	assert_int_equal(rig_send(&r, ISCSI_ASYNC_MESSAGE, 1, 0), 0);
	assert_int_equal(r.f.nposted, 0);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(r.f.nposted, 2);
	h = said(0);
	assert_int_equal(h.opcode, ISER_HELLO_REPLY);
	assert_false(h.reject);
	assert_int_equal(h.max_ver, 10);
	assert_int_equal(h.min_ver, 10);
	assert_int_equal(h.depth, 2); /* the lesser one */
	assert_int_equal(rig_sent_at(&r, 1)->pdu.op, ISCSI_ASYNC_MESSAGE);
	rig_flush(&r);
	/* and is kept to */
	fake_rcap_remote(&r.f, RIG_WRITE_STAG, RIG_WRITE_BASE, r.peer_out,
			 RIG_BUF);
	rig_write(&r, 5, 65536, 0, true);
	assert_int_equal(dm_get_data(r.dm, &rig_find(&r, 5)->dm, 0, 65536), 0);
	rig_flush(&r);
	assert_int_equal(r.f.most_reads, 2);
	rig_fini(&r);
}

/* [RFC 7145: 5.1.3 #5] */
static void test_target_has_less_ord_than_offered(void **state)
{
	const struct iscsi_params p = hello_params();
	const struct iser_header h = hello(ISER_HELLO, 1000);

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).depth, 4);
	assert_false(said(0).reject);
	rig_fini(&r);
}

/* An initiator of RFC 5046 says Hello unasked: answered, also over RDMA
 * from the start, if it is the first message. */
/* [RFC 7145: 5.1.3 #6] */
static void test_hello_that_was_not_agreed_on_rfc7145_5_1_3(void **state)
{
	const struct iscsi_params p = rig_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	rig_expect_well(&r);
	rig_fini(&r);
	rig_target(&r, DMISER_LINUX, &p);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* Agreed on over RDMA from the start: behind the login, both ways. */
/* [RFC 7145: 6.10 #1] */
static void test_hello_over_rdma_from_the_start(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_target(&r, DMISER_STRICT, &p);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	rig_fini(&r);
	r.no_enable = false;
	rig_raw(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	rig_up(&r);
	rig_login(&r); /* it took the Hello away with the rest */
	assert_int_equal(dmiser_stats(r.conn)->tx_pdus, 1);
	h = hello(ISER_HELLO_REPLY, 2);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(rig_send(&r, ISCSI_NOP_OUT, 3, 0), 0);
	assert_int_equal(r.f.nposted, 1);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* ---- refused ---- */

/* With REJ, which still goes out before the end. */
static void assert_rejected(const struct iser_header *h, uint16_t ord)
{
	const struct iscsi_params p = hello_params();

	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	r.f.qp.ord = ord;
	rig_up(&r);
	say(h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	assert_true(said(0).reject);
	assert_true(r.f.disconnected);
	assert_false(r.f.terminated);
	assert_int_equal(r.dm->state, DM_TERMINATING);
	assert_non_null(strstr(r.log, "RFC 7145 §10.1.3.2"));
	assert_non_null(strstr(r.log, RIG_PEER));
	rig_flush(&r);
	fake_rcap_close(&r.f, 0, "drained");
	assert_int_equal(r.terminate_err, ERR_NEGOTIATION);
	rig_fini(&r);
}

/* [RFC 7145: 10.1.3.2 #1-2] */
static void test_hello_is_rejected_rfc7145_10_1_3_2(void **state)
{
	struct iser_header h = hello(ISER_HELLO, 4);

	(void)state;
	h.max_ver = 9;
	h.min_ver = 1;
	assert_rejected(&h, 4);
	h.max_ver = 15;
	h.min_ver = 11;
	assert_rejected(&h, 4);
	h = hello(ISER_HELLO, 4);
	assert_rejected(&h, 0); /* iSER-IRD > 0, and our iSER-ORD is 0 */
}

static void test_hello_versions_that_overlap(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 0);

	(void)state;
	h.max_ver = 12;
	h.min_ver = 9;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	r.f.qp.ord = 0; /* iSER-IRD 0, iSER-ORD 0: no R2T will be used */
	rig_up(&r);
	say(&h, ISER_HEADER_LEN);
	assert_false(said(0).reject);
	assert_int_equal(said(0).depth, 0);
	rig_expect_well(&r);
	rig_fini(&r);
}

static void initiator_waits(void)
{
	const struct iscsi_params p = hello_params();

	rig_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	rig_up(&r);
	rig_flush(&r);
}

static void test_reply_that_refuses_rfc7145_10_1_3_2(void **state)
{
	struct iser_header h = hello(ISER_HELLO_REPLY, 0);

	(void)state;
	h.reject = true;
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_NEGOTIATION, "RFC 7145 §10.1.3.2");
	rig_fini(&r);
	h = hello(ISER_HELLO_REPLY, 2);
	h.min_ver = 9; /* CurVer */
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_NEGOTIATION, "RFC 7145 §10.1.3.2");
	rig_fini(&r);
	h = hello(ISER_HELLO_REPLY, 5); /* more than we declared */
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_FORMAT, "RFC 7145 §5.1.3");
	rig_fini(&r);
}

/* ---- at the wrong time, of the wrong form ---- */

/* [RFC 7145: 10.1.3.4 #1-2] */
static void test_hello_is_missing_rfc7145_10_1_3_4(void **state)
{
	const struct iscsi_params p = hello_params();

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	a_nop(ISCSI_NOP_OUT);
	assert_int_equal(r.controls, 0);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	rig_fini(&r);
	initiator_waits();
	a_nop(ISCSI_NOP_IN);
	assert_int_equal(r.controls, 0);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	rig_fini(&r);
}

static void test_hello_twice(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	say(&h, ISER_HEADER_LEN);
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	rig_fini(&r);
	h = hello(ISER_HELLO_REPLY, 2);
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	rig_fini(&r);
}

static void test_hello_in_the_middle(void **state)
{
	const struct iscsi_params p = rig_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_target(&r, DMISER_LINUX, &p);
	a_nop(ISCSI_NOP_OUT);
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	rig_fini(&r);
}

static void test_hello_during_login(void **state)
{
	const struct iscsi_params p = rig_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	say(&h, ISER_HEADER_LEN);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	rig_fini(&r);
}

/* A Hello to the initiator, a HelloReply to the target, or one unasked. */
static void test_hello_from_the_wrong_side(void **state)
{
	const struct iscsi_params p = rig_params();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const struct iser_header h =
			hello(i & 1 ? ISER_HELLO_REPLY : ISER_HELLO, 1);

		if (i & 2)
			rig_target(&r, DMISER_LINUX, &p);
		else
			rig_initiator(&r, DMISER_LINUX, &p);
		say(&h, ISER_HEADER_LEN);
		if (i == 2) /* the one that is allowed */
			rig_expect_well(&r);
		else
			rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
		rig_fini(&r);
	}
}

static void test_hello_of_the_wrong_length_rfc7145_10_1_3_3(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	rig_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	rig_up(&r);
	say(&h, ISER_HEADER_LEN + 1);
	rig_expect_dead(&r, ERR_FORMAT, "RFC 7145 §10.1.3.3");
	rig_fini(&r);
	h = hello(ISER_HELLO_REPLY, 2);
	initiator_waits();
	say(&h, ISER_HEADER_LEN + 20);
	rig_expect_dead(&r, ERR_FORMAT, "RFC 7145 §10.1.3.3");
	rig_fini(&r);
	initiator_waits();
	say(&h, ISER_HEADER_LEN - 1);
	rig_expect_dead(&r, ERR_TRUNCATED, "RFC 7145 §9.1");
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch_without_hello_rfc7145_5_1),
		cmocka_unit_test(test_switch_receives_stand_ready),
		cmocka_unit_test(test_switch_fails_before_the_queue_pair_is_up),
		cmocka_unit_test(test_messages_before_the_queue_pair_is_up),
		cmocka_unit_test(test_abort_before_the_queue_pair_is_up),
		cmocka_unit_test(test_initiator_says_hello_first_rfc7145_5_1_3),
		cmocka_unit_test(test_target_answers_hello_rfc7145_5_1_3),
		cmocka_unit_test(test_target_has_less_ord_than_offered),
		cmocka_unit_test(
			test_hello_that_was_not_agreed_on_rfc7145_5_1_3),
		cmocka_unit_test(test_hello_over_rdma_from_the_start),
		cmocka_unit_test(test_hello_is_rejected_rfc7145_10_1_3_2),
		cmocka_unit_test(test_hello_versions_that_overlap),
		cmocka_unit_test(test_reply_that_refuses_rfc7145_10_1_3_2),
		cmocka_unit_test(test_hello_is_missing_rfc7145_10_1_3_4),
		cmocka_unit_test(test_hello_twice),
		cmocka_unit_test(test_hello_in_the_middle),
		cmocka_unit_test(test_hello_during_login),
		cmocka_unit_test(test_hello_from_the_wrong_side),
		cmocka_unit_test(
			test_hello_of_the_wrong_length_rfc7145_10_1_3_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
