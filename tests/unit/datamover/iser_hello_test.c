/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_hello_test.c: the change from a login over a stream to RDMA mode, and
 * the Hello exchange: RFC 7145 §5.1, §9.3, §9.4, §10.1.3.2, §10.1.3.4. */
#include "iscsi/keys.h"
#include "iser_fixture.h"

static struct fixture r;

static struct iscsi_params hello_params(void)
{
	struct iscsi_params p = fixture_params();

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

/* The i-th message that the end sent is a Hello or HelloReply. */
static struct iser_header said(unsigned i)
{
	uint8_t bytes[ISER_PDU];
	struct iser_header h;
	struct rcap_wr *wr = fake_rcap_wr(&r.f, i);

	assert_non_null(wr);
	/* no data follow the header */
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

	fixture_plain_pdu(&r, &p, NULL);
}

/* ---- without Hello ---- */

/* [RFC 7145: 5.1.1 #5, 5.1.3 #2, 6.10 #2] */
static void test_switch_without_hello_rfc7145_5_1(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct fixture_task *t;
	int err;

	(void)state;
	fixture_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	assert_string_equal(r.dm->transport, "iser");
	/* the role may send now; the message goes when the queue pair is up */
	t = fixture_start(&r, 5, false, 4096, 1, &err);
	assert_int_equal(err, 0);
	assert_int_equal(r.f.nposted, 0);
	fixture_up(&r);
	assert_int_equal(r.f.nposted, 1);
	assert_int_equal(fixture_sent_at(&r, 0)->pdu.itt, t->dm.itt);
	fixture_fini(&r);
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	assert_int_equal(r.f.nposted, 0);
	fixture_read(&r, 5, 0);
	assert_int_equal(r.controls, 1);
	fixture_fini(&r);
}

/* The receives are posted before the queue pair is up; no receive of the login
 * is. */
static void test_switch_receives_stand_ready(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	assert_true(r.f.nrecvs >= FIXTURE_TASKS + 2);
	fixture_up(&r);
	fixture_fini(&r);
}

/* The stream was closed before the queue pair was up. */
/* [RFC 7145: 10.1.1.1 #1] */
static void test_switch_fails_before_the_queue_pair_is_up(void **state)
{
	const struct iscsi_params p = hello_params();
	struct fixture_task *t;
	int err;

	(void)state;
	fixture_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	t = fixture_start(&r, 5, true, 8192, 1, &err);
	assert_int_equal(err, 0);
	assert_true(t->used);
	fixture_send(&r, ISCSI_NOP_OUT, 6, 0);
	fake_rcap_close(&r.f, ERR_RESET, "cut");
	assert_int_equal(r.terminate_err, ERR_RESET);
	fixture_fini(&r);
}

/* Messages that come before `established` wait: none is lost, and none is
 * answered too early. */
static void test_messages_before_the_queue_pair_is_up(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	r.f.qp.state = RCAP_REQUESTED;
	fixture_read(&r, 5, 512);
	fixture_write(&r, 6, 512, 0, true);
	assert_int_equal(r.controls, 0);
	fixture_up(&r);
	assert_int_equal(r.controls, 2);
	assert_non_null(fixture_find(&r, 5));
	assert_int_equal(fixture_find(&r, 6)->seen[DM_UNSOLICITED], 1);
	fixture_fini(&r);
	/* or the connection ends first */
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_read(&r, 5, 512);
	fake_rcap_close(&r.f, ERR_RESET, "cut");
	assert_int_equal(r.controls, 0);
	fixture_fini(&r);
}

/* A task that was aborted while its command waited. */
static void test_abort_before_the_queue_pair_is_up(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct fixture_task *t;
	int err;

	(void)state;
	fixture_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	t = fixture_start(&r, 5, true, 8192, 1, &err);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	fixture_up(&r);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	fixture_fini(&r);
}

/* ---- with Hello ---- */

/* [RFC 7145: 5.1.1 #1-2, 5.1.3 #1, 9.3 #1] */
static void test_initiator_says_hello_first_rfc7145_5_1_3(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h;
	int err;

	(void)state;
	fixture_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	fixture_start(&r, 5, true, 8192, 1, &err);
	assert_int_equal(err, 0);
	fixture_up(&r);
	/* only the Hello is sent before its reply is received */
	assert_int_equal(r.f.nposted, 1);
	h = said(0);
	assert_int_equal(h.opcode, ISER_HELLO);
	assert_int_equal(h.max_ver, 10);
	assert_int_equal(h.min_ver, 10);
	assert_int_equal(h.depth, 4); /* RDMA Reads at once */
	fixture_flush(&r);
	assert_int_equal(r.f.nposted, 0);
	h = hello(ISER_HELLO_REPLY, 4);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(r.f.nposted, 1);
	assert_int_equal(fixture_sent_at(&r, 0)->pdu.itt, 5);
	a_nop(ISCSI_NOP_IN);
	assert_int_equal(r.controls, 1);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* [RFC 7145: 5.1.2 #9, 5.1.3 #3, 9.4 #1] */
static void test_target_answers_hello_rfc7145_5_1_3(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	/* messages that the role sends meanwhile wait for the HelloReply */
	assert_int_equal(fixture_send(&r, ISCSI_ASYNC_MESSAGE, 1, 0), 0);
	assert_int_equal(r.f.nposted, 0);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(r.f.nposted, 2);
	h = said(0);
	assert_int_equal(h.opcode, ISER_HELLO_REPLY);
	assert_false(h.reject);
	assert_int_equal(h.max_ver, 10);
	assert_int_equal(h.min_ver, 10);
	assert_int_equal(h.depth, 2); /* the smaller one */
	assert_int_equal(fixture_sent_at(&r, 1)->pdu.op, ISCSI_ASYNC_MESSAGE);
	fixture_flush(&r);
	/* and is obeyed */
	fake_rcap_remote(&r.f, FIXTURE_WRITE_STAG, FIXTURE_WRITE_BASE,
			 r.peer_out, FIXTURE_BUF);
	fixture_write(&r, 5, 65536, 0, true);
	assert_int_equal(dm_get_data(r.dm, &fixture_find(&r, 5)->dm, 0, 65536),
			 0);
	fixture_flush(&r);
	assert_int_equal(r.f.most_reads, 2);
	fixture_fini(&r);
}

/* [RFC 7145: 5.1.3 #5] */
static void test_target_has_less_ord_than_offered(void **state)
{
	const struct iscsi_params p = hello_params();
	const struct iser_header h = hello(ISER_HELLO, 1000);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).depth, 4);
	assert_false(said(0).reject);
	fixture_fini(&r);
}

/* An initiator of RFC 5046 sends a Hello that was not negotiated: it is
 * answered, also in RDMA mode from the first byte, if it is the first message. */
/* [RFC 7145: 5.1.3 #6] */
static void test_hello_that_was_not_agreed_on_rfc7145_5_1_3(void **state)
{
	const struct iscsi_params p = fixture_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	fixture_expect_alive(&r);
	fixture_fini(&r);
	fixture_target(&r, DMISER_LINUX, &p);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* iSERHelloRequired=No, but the initiator sends a Hello. */
/* [RFC 7145: 5.1.2 #10, 5.1.3 #4] */
static void test_hello_that_was_declared_away_rfc7145_6_10(void **state)
{
	struct iscsi_params p = fixture_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	p.declared = 1ull << ISCSI_K_HELLO_REQUIRED;
	for (unsigned i = 0; i < 2; i++) {
		fixture_target(&r, i ? DMISER_LINUX : DMISER_STRICT, &p);
		say(&h, ISER_HEADER_LEN);
		fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
		fixture_fini(&r);
	}
}

/* Negotiated in RDMA mode from the first byte: the exchange follows the login,
 * for both roles. */
/* [RFC 7145: 6.10 #1] */
static void test_hello_over_rdma_from_the_start(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_target(&r, DMISER_STRICT, &p);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	fixture_fini(&r);
	r.no_enable = false;
	fixture_raw(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	fixture_up(&r);
	fixture_login(&r); /* sends the Hello, too */
	assert_int_equal(dmiser_stats(r.conn)->tx_pdus, 1);
	h = hello(ISER_HELLO_REPLY, 2);
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(fixture_send(&r, ISCSI_NOP_OUT, 3, 0), 0);
	assert_int_equal(r.f.nposted, 1);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* ---- refused ---- */

/* With REJ in a HelloReply that is sent before the end. */
static void assert_rejected(const struct iser_header *h, uint16_t ord)
{
	const struct iscsi_params p = hello_params();

	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	r.f.qp.ord = ord;
	fixture_up(&r);
	say(h, ISER_HEADER_LEN);
	assert_int_equal(said(0).opcode, ISER_HELLO_REPLY);
	assert_true(said(0).reject);
	assert_true(r.f.disconnected);
	assert_false(r.f.terminated);
	assert_int_equal(r.dm->state, DM_TERMINATING);
	assert_non_null(strstr(r.log, "RFC 7145 §10.1.3.2"));
	assert_non_null(strstr(r.log, FIXTURE_PEER));
	fixture_flush(&r);
	fake_rcap_close(&r.f, 0, "drained");
	assert_int_equal(r.terminate_err, ERR_NEGOTIATION);
	fixture_fini(&r);
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
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	r.f.qp.ord = 0; /* iSER-IRD 0, iSER-ORD 0: no R2T will be used */
	fixture_up(&r);
	say(&h, ISER_HEADER_LEN);
	assert_false(said(0).reject);
	assert_int_equal(said(0).depth, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

static void initiator_waits(void)
{
	const struct iscsi_params p = hello_params();

	fixture_switched(&r, ISCSI_INITIATOR, DMISER_STRICT, &p);
	fixture_up(&r);
	fixture_flush(&r);
}

static void test_reply_that_refuses_rfc7145_10_1_3_2(void **state)
{
	struct iser_header h = hello(ISER_HELLO_REPLY, 0);

	(void)state;
	h.reject = true;
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_NEGOTIATION, "RFC 7145 §10.1.3.2");
	fixture_fini(&r);
	h = hello(ISER_HELLO_REPLY, 2);
	h.min_ver = 9; /* CurVer */
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_NEGOTIATION, "RFC 7145 §10.1.3.2");
	fixture_fini(&r);
	h = hello(ISER_HELLO_REPLY, 5); /* more than we declared */
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_FORMAT, "RFC 7145 §5.1.3");
	fixture_fini(&r);
}

/* ---- unexpected or malformed ---- */

/* [RFC 7145: 10.1.3.4 #1-2] */
static void test_hello_is_missing_rfc7145_10_1_3_4(void **state)
{
	const struct iscsi_params p = hello_params();

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	a_nop(ISCSI_NOP_OUT);
	assert_int_equal(r.controls, 0);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	fixture_fini(&r);
	initiator_waits();
	a_nop(ISCSI_NOP_IN);
	assert_int_equal(r.controls, 0);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	fixture_fini(&r);
}

static void test_hello_twice(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	say(&h, ISER_HEADER_LEN);
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	fixture_fini(&r);
	h = hello(ISER_HELLO_REPLY, 2);
	initiator_waits();
	say(&h, ISER_HEADER_LEN);
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	fixture_fini(&r);
}

static void test_hello_in_the_middle(void **state)
{
	const struct iscsi_params p = fixture_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_target(&r, DMISER_LINUX, &p);
	a_nop(ISCSI_NOP_OUT);
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	fixture_fini(&r);
}

static void test_hello_during_login(void **state)
{
	const struct iscsi_params p = fixture_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	say(&h, ISER_HEADER_LEN);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §10.1.3.4");
	fixture_fini(&r);
}

/* A Hello to the initiator, a HelloReply to the target, or a HelloReply without
 * a Hello. */
static void test_hello_from_the_wrong_side(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const struct iser_header h =
			hello(i & 1 ? ISER_HELLO_REPLY : ISER_HELLO, 1);

		if (i & 2)
			fixture_target(&r, DMISER_LINUX, &p);
		else
			fixture_initiator(&r, DMISER_LINUX, &p);
		say(&h, ISER_HEADER_LEN);
		if (i == 2) /* the only one that is allowed */
			fixture_expect_alive(&r);
		else
			fixture_expect_ended(&r, ERR_PROTOCOL,
					     "RFC 7145 §10.1.3.4");
		fixture_fini(&r);
	}
}

static void test_hello_of_the_wrong_length_rfc7145_10_1_3_3(void **state)
{
	const struct iscsi_params p = hello_params();
	struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	say(&h, ISER_HEADER_LEN + 1);
	fixture_expect_ended(&r, ERR_FORMAT, "RFC 7145 §10.1.3.3");
	fixture_fini(&r);
	h = hello(ISER_HELLO_REPLY, 2);
	initiator_waits();
	say(&h, ISER_HEADER_LEN + 20);
	fixture_expect_ended(&r, ERR_FORMAT, "RFC 7145 §10.1.3.3");
	fixture_fini(&r);
	initiator_waits();
	say(&h, ISER_HEADER_LEN - 1);
	fixture_expect_ended(&r, ERR_TRUNCATED, "RFC 7145 §9.1");
	fixture_fini(&r);
}

/* The queue pair is closing when the Hello is received: the HelloReply cannot be
 * posted, and the connection ends instead of waiting for a login phase that
 * never comes. */
static void test_hello_reply_cannot_be_posted(void **state)
{
	const struct iscsi_params p = hello_params();
	const struct iser_header h = hello(ISER_HELLO, 2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	fixture_up(&r);
	r.f.qp.state = RCAP_CLOSING;
	say(&h, ISER_HEADER_LEN);
	assert_int_equal(r.f.nposted, 0);
	assert_int_equal(r.dm->state, DM_TERMINATING);
	assert_int_equal(r.nlog, 1);
	assert_non_null(strstr(r.log, "iSER HelloReply"));
	fixture_fini(&r);
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
		cmocka_unit_test(
			test_hello_that_was_declared_away_rfc7145_6_10),
		cmocka_unit_test(test_hello_over_rdma_from_the_start),
		cmocka_unit_test(test_hello_is_rejected_rfc7145_10_1_3_2),
		cmocka_unit_test(test_hello_versions_that_overlap),
		cmocka_unit_test(test_reply_that_refuses_rfc7145_10_1_3_2),
		cmocka_unit_test(test_hello_is_missing_rfc7145_10_1_3_4),
		cmocka_unit_test(test_hello_reply_cannot_be_posted),
		cmocka_unit_test(test_hello_twice),
		cmocka_unit_test(test_hello_in_the_middle),
		cmocka_unit_test(test_hello_during_login),
		cmocka_unit_test(test_hello_from_the_wrong_side),
		cmocka_unit_test(
			test_hello_of_the_wrong_length_rfc7145_10_1_3_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
