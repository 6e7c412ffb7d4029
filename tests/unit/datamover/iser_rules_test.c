/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_rules_test.c: each compatibility rule of dmiser.h on and off, and the
 * limits on unexpected PDUs (RFC 7145 §8.1). */
#include "iscsi/keys.h"
#include "iser_fixture.h"

static struct fixture r;

static void test_rule_table_is_whole(void **state)
{
	unsigned all = 0, n = 0;

	(void)state;
#define ROW(name, bit, text)                      \
 assert_int_equal(DMISER_##name, bit);            \
 assert_int_equal(all &bit, 0);                   \
 all |= bit;                                      \
 assert_string_equal(dmiser_rule_name(n), #name); \
 assert_string_equal(dmiser_rule_text(n), text);  \
 n++;
	DMISER_RULES(ROW)
#undef ROW
	assert_int_equal(all, DMISER_LINUX);
	assert_null(dmiser_rule_name(n));
	assert_null(dmiser_rule_text(n));
}

/* ---- CM_HEADER, ASK_INVALIDATE ---- */

struct cm_row {
	unsigned rules;
	int private; /* first byte; -1: no bytes at all */
	int answer;  /* the same, of ours */
	bool invalidates;
};

static void run_cm(const struct cm_row *row)
{
	const struct iscsi_params p = fixture_params();

	fixture_raw(&r, ISCSI_TARGET, row->rules, &p);
	fixture_up_with(&r, row->private);
	if (row->answer < 0) {
		assert_int_equal(r.f.private_len, 0);
	} else {
		assert_int_equal(r.f.private_len, 4);
		assert_int_equal(r.f.private_data[0], row->answer);
		assert_int_equal(r.f.private_data[1], 0);
		assert_int_equal(r.f.private_data[2], 0);
		assert_int_equal(r.f.private_data[3], 0);
	}
	fixture_login(&r);
	fixture_read(&r, 5, 512);
	assert_int_equal(fixture_respond(&r, fixture_find(&r, 5), 0), 0);
	assert_int_equal(!!(fake_rcap_wr(&r.f, 0)->flags & RCAP_INVALIDATE),
			 row->invalidates);
	fixture_fini(&r);
}

/* Flags in the peer's four bytes of private data, and missing private data. */
static void test_cm_private_data(void **state)
{
	static const struct cm_row rows[] = {
		/* as other implementations: 0x40 is "no Send with Invalidate" */
		{ DMISER_LINUX, 0x80, 0x80, true },
		{ DMISER_LINUX, 0x00, 0x80, true },
		{ DMISER_LINUX, 0xc0, 0xc0, false },
		{ DMISER_LINUX, 0x40, 0xc0, false },
		{ DMISER_LINUX, -1, 0xc0, false },
		/* strict: no private data are exchanged */
		{ DMISER_STRICT, 0xc0, -1, true },
		{ DMISER_STRICT, -1, -1, true },
		/* one rule without the other */
		{ DMISER_CM_HEADER, 0xc0, 0xc0, true },
		{ DMISER_ASK_INVALIDATE, 0x80, -1, false },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		run_cm(&rows[i]);
}

/* A provider without Send with Invalidate never gets one. */
static void test_provider_without_send_with_invalidate(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		fixture_raw(&r, ISCSI_TARGET, i ? DMISER_LINUX : DMISER_STRICT,
			    &p);
		r.f.qp.send_inv = false;
		fixture_up(&r);
		fixture_login(&r);
		fixture_read(&r, 5, 512);
		fixture_respond(&r, fixture_find(&r, 5), 0);
		assert_false(fake_rcap_wr(&r.f, 0)->flags & RCAP_INVALIDATE);
		fixture_fini(&r);
	}
}

/* ---- SMALL_PDUS ---- */

static void assert_sense_cut(unsigned rules, uint32_t want)
{
	const struct iscsi_params p = fixture_params();
	struct fixture_sent *s;

	fixture_target(&r, rules, &p);
	fixture_read(&r, 5, 512);
	assert_int_equal(fixture_respond(&r, fixture_find(&r, 5), 254), 0);
	s = fixture_sent_at(&r, 0);
	assert_int_equal(s->pdu.dsl, want);
	/* RFC 7143 §11.4.7.1: SenseLength agrees */
	assert_int_equal(get_be16(s->data), want - 2);
	for (uint32_t i = 2; i < want; i++)
		assert_int_equal(s->data[i], fixture_byte(i));
	fixture_fini(&r);
}

static void test_small_pdus(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	assert_sense_cut(DMISER_LINUX, 128);
	assert_sense_cut(DMISER_STRICT, 254);
	assert_sense_cut(DMISER_SMALL_PDUS, 128);
	assert_sense_cut(DMISER_LINUX & ~(unsigned)DMISER_SMALL_PDUS, 254);
	/* text and ping data: the role knows the limit, and exceeding it is an
	 * error */
	fixture_target(&r, DMISER_LINUX, &p);
	assert_int_equal(r.dm->max_control_data, 128);
	assert_int_equal(fixture_send(&r, ISCSI_NOP_IN, 5, 129), ERR_TOO_LONG);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_RESPONSE, 5, 129),
			 ERR_TOO_LONG);
	assert_int_equal(fixture_send(&r, ISCSI_NOP_IN, 5, 128), 0);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_RESPONSE, 5, 128), 0);
	fixture_fini(&r);
}

/* The rules for Linux are for an initiator that declares none of the keys that
 * Linux does not know. */
static void test_declared_keys_overrule_the_rules(void **state)
{
	static const enum iscsi_key_id keys[] = {
		ISCSI_K_MAX_OUTSTANDING_UNEXPECTED_PDUS,
		ISCSI_K_MAX_AHS_LENGTH,
		ISCSI_K_TAGGED_BUFFER,
		ISCSI_K_HELLO_REQUIRED,
	};
	struct iscsi_params p;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(keys); i++) {
		p = fixture_params();
		p.declared = 1ull << keys[i];
		fixture_target(&r, DMISER_LINUX, &p);
		assert_int_equal(r.dm->max_control_data, 0);
		/* QUIET_START: an initiator that declares the number has the
		 * buffers */
		assert_int_equal(fixture_send(&r, ISCSI_ASYNC_MESSAGE,
					      ISCSI_RESERVED_TAG, 0),
				 i == 0 ? 0 : ERR_BUSY);
		fixture_fini(&r);
	}
	/* RDMAExtensions and the data lengths: Linux knows these keys */
	p = fixture_params();
	p.declared = 1ull << ISCSI_K_RDMA_EXTENSIONS |
		     1ull << ISCSI_K_INITIATOR_RECV_DSL |
		     1ull << ISCSI_K_TARGET_RECV_DSL;
	fixture_target(&r, DMISER_LINUX, &p);
	assert_int_equal(r.dm->max_control_data, 128);
	fixture_fini(&r);
}

/* A discovery session has no RDMAExtensions, and its initiator has the receives
 * of the login. The rule never limits an initiator. */
static void test_small_pdus_only_to_initiators(void **state)
{
	struct iscsi_params p = fixture_params();

	(void)state;
	p.rdma_extensions = false;
	fixture_target(&r, DMISER_LINUX, &p);
	assert_int_equal(r.dm->max_control_data, 0);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_RESPONSE, 5, 4000), 0);
	fixture_fini(&r);
	p.rdma_extensions = true;
	fixture_initiator(&r, DMISER_LINUX, &p);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_REQUEST, 5, 4000), 0);
	fixture_fini(&r);
}

/* Less than 128, if the initiator declares less: InitiatorRecvDataSegmentLength
 * is the limit (RFC 7145 §6.5). */
static void test_sense_is_cut_to_what_was_negotiated(void **state)
{
	struct iscsi_params p = fixture_params();
	struct fixture_sent *s;

	(void)state;
	p.max_send_dsl = 100;
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_read(&r, 5, 512);
	assert_int_equal(fixture_respond(&r, fixture_find(&r, 5), 254), 0);
	s = fixture_sent_at(&r, 0);
	assert_int_equal(s->pdu.dsl, 100);
	assert_int_equal(get_be16(s->data), 98);
	fixture_fini(&r);
}

/* ---- PLAIN_SEND ---- */

static void assert_flags(unsigned rules, enum iscsi_role role, bool solicited)
{
	const struct iscsi_params p = fixture_params();
	struct rcap_wr *wr;

	if (role == ISCSI_TARGET)
		fixture_target(&r, rules, &p);
	else
		fixture_initiator(&r, rules, &p);
	fixture_send(&r,
		     role == ISCSI_TARGET ? ISCSI_TEXT_RESPONSE
					  : ISCSI_TEXT_REQUEST,
		     1, 0);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(!!(wr->flags & RCAP_SOLICITED), solicited);
	if (role == ISCSI_TARGET) {
		fixture_read(&r, 5, 512);
		fixture_respond(&r, fixture_find(&r, 5), 0);
		wr = fake_rcap_wr(&r.f, 1);
		/* SendInvSE, §9.5.2 */
		assert_int_equal(wr->flags & RCAP_INVALIDATE, RCAP_INVALIDATE);
		assert_int_equal(!!(wr->flags & RCAP_SOLICITED), solicited);
	}
	fixture_fini(&r);
}

static void test_plain_send(void **state)
{
	(void)state;
	assert_flags(DMISER_LINUX, ISCSI_TARGET, false);
	assert_flags(DMISER_LINUX, ISCSI_INITIATOR, false);
	assert_flags(DMISER_STRICT, ISCSI_TARGET, true);
	assert_flags(DMISER_STRICT, ISCSI_INITIATOR, true);
}

/* ---- QUIET_START, and §8.1.2 ---- */

static int unexpected(uint8_t op)
{
	return fixture_send(&r, op, ISCSI_RESERVED_TAG, 0);
}

static void nop_out(uint32_t expstatsn, uint32_t ttt)
{
	const struct iscsi_pdu p = { .op = ISCSI_NOP_OUT,
				     .final = true,
				     .immediate = true,
				     .itt = ISCSI_RESERVED_TAG,
				     .ttt = ttt,
				     .expstatsn = expstatsn };

	fixture_plain_pdu(&r, &p, NULL);
}

static void test_quiet_start(void **state)
{
	static const uint8_t ops[] = { ISCSI_NOP_IN, ISCSI_ASYNC_MESSAGE,
				       ISCSI_REJECT };
	const struct iscsi_params p = fixture_params();

	(void)state;
	fixture_target(&r, DMISER_LINUX, &p);
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
		assert_int_equal(unexpected(ops[i]), ERR_BUSY);
	assert_int_equal(r.f.nposted, 0);
	nop_out(100, ISCSI_RESERVED_TAG);
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
		assert_int_equal(unexpected(ops[i]), 0);
	fixture_fini(&r);
	fixture_target(&r, DMISER_STRICT, &p);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), 0);
	fixture_fini(&r);
}

/* At most the declared number, even for a Reject; each PDU is retired as its
 * clause prescribes. */
/* [RFC 7145: 8.1.2 #1-3] */
static void test_unexpected_pdus_rfc7145_8_1_2(void **state)
{
	struct iscsi_params p = fixture_params();

	(void)state;
	p.max_outstanding_unexpected_pdus = 3;
	fixture_target(&r, DMISER_STRICT, &p);
	r.numbers.statsn = 0xffffffff; /* the StatSN wraps */
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), 0);
	r.numbers.statsn = 0;
	assert_int_equal(unexpected(ISCSI_REJECT), 0);
	r.numbers.statsn = 1;
	assert_int_equal(unexpected(ISCSI_NOP_IN), 0);
	assert_int_equal(unexpected(ISCSI_REJECT), ERR_BUSY);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), ERR_BUSY);
	assert_int_equal(unexpected(ISCSI_NOP_IN), ERR_BUSY);
	/* an answer is not counted */
	assert_int_equal(fixture_send(&r, ISCSI_NOP_IN, 7, 0), 0);
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_RESPONSE, 8, 0), 0);
	/* a: the Asynchronous Message (StatSN = -1) by ExpStatSN 0 */
	nop_out(0xffffffff, ISCSI_RESERVED_TAG);
	assert_int_equal(unexpected(ISCSI_REJECT), ERR_BUSY);
	nop_out(0, ISCSI_RESERVED_TAG);
	assert_int_equal(unexpected(ISCSI_REJECT), 0);
	assert_int_equal(unexpected(ISCSI_REJECT), ERR_BUSY);
	/* b, c: all of them by ExpStatSN 2 */
	nop_out(2, ISCSI_RESERVED_TAG);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(unexpected(ISCSI_NOP_IN), 0);
	assert_int_equal(unexpected(ISCSI_NOP_IN), ERR_BUSY);
	fixture_fini(&r);
}

/* c: the answer to a ping retires only that ping. */
static void test_ping_is_retired_by_its_tag_rfc7145_8_1_2(void **state)
{
	struct iscsi_params p = fixture_params();
	struct dm_control ping = { .pdu = { .op = ISCSI_NOP_IN,
					    .final = true,
					    .itt = ISCSI_RESERVED_TAG,
					    .ttt = 42,
					    .statsn = 100 } };

	(void)state;
	p.max_outstanding_unexpected_pdus = 2;
	fixture_target(&r, DMISER_STRICT, &p);
	assert_int_equal(dm_send_control(r.dm, NULL, &ping), 0);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), 0);
	nop_out(100, 41);
	nop_out(100, ISCSI_RESERVED_TAG);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), ERR_BUSY);
	nop_out(100, 42);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), 0);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), ERR_BUSY);
	nop_out(100, 42); /* the ping is retired already */
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), ERR_BUSY);
	fixture_fini(&r);
}

/* 0: the peer declares no limit. Our own limit holds nevertheless. */
static void test_unexpected_pdus_without_limit(void **state)
{
	const struct iscsi_params p = fixture_params();
	unsigned n = 0;

	(void)state;
	fixture_target(&r, DMISER_STRICT, &p);
	while (n < 1000 && !unexpected(ISCSI_ASYNC_MESSAGE))
		n++;
	assert_in_range(n, 2, 64);
	nop_out(101, ISCSI_RESERVED_TAG);
	assert_int_equal(unexpected(ISCSI_ASYNC_MESSAGE), 0);
	fixture_fini(&r);
}

/* ---- §8.1.1.3: immediate requests ---- */

static int immediate(uint8_t op, uint32_t cmdsn, uint32_t ttt)
{
	const struct dm_control ctl = { .pdu = { .op = op,
						 .immediate = true,
						 .final = true,
						 .itt = 3,
						 .ttt = ttt,
						 .cmdsn = cmdsn } };

	return dm_send_control(r.dm, NULL, &ctl);
}

static void say_expcmdsn(uint32_t expcmdsn)
{
	const struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
				     .final = true,
				     .itt = ISCSI_RESERVED_TAG,
				     .ttt = ISCSI_RESERVED_TAG,
				     .expcmdsn = expcmdsn,
				     .maxcmdsn = expcmdsn + 8 };

	fixture_plain_pdu(&r, &p, NULL);
}

/* [RFC 7145: 8.1.1.3 #1] */
static void test_immediate_requests_rfc7145_8_1_1_3(void **state)
{
	struct iscsi_params p = fixture_params();
	int err;

	(void)state;
	p.max_outstanding_unexpected_pdus = 2;
	fixture_initiator(&r, DMISER_LINUX, &p);
	assert_int_equal(immediate(ISCSI_NOP_OUT, 7, ISCSI_RESERVED_TAG), 0);
	assert_int_equal(immediate(ISCSI_TMF_REQUEST, 8, 0), 0);
	assert_int_equal(immediate(ISCSI_TMF_REQUEST, 8, 0), ERR_BUSY);
	/* a numbered request, and a command; the answer to a ping */
	assert_int_equal(fixture_send(&r, ISCSI_TEXT_REQUEST, 5, 0), 0);
	fixture_start(&r, 6, false, 512, 1, &err);
	assert_int_equal(err, 0);
	assert_int_equal(immediate(ISCSI_NOP_OUT, 8, 99), 0);
	/* the one with CmdSN 7 is retired when ExpCmdSN is 8 */
	say_expcmdsn(7);
	assert_int_equal(immediate(ISCSI_TMF_REQUEST, 8, 0), ERR_BUSY);
	say_expcmdsn(8);
	assert_int_equal(immediate(ISCSI_TMF_REQUEST, 8, 0), 0);
	assert_int_equal(immediate(ISCSI_TMF_REQUEST, 8, 0), ERR_BUSY);
	say_expcmdsn(9);
	assert_int_equal(immediate(ISCSI_TMF_REQUEST, 9, 0), 0);
	fixture_fini(&r);
}

static void test_immediate_requests_without_limit(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	fixture_initiator(&r, DMISER_LINUX, &p);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(
			immediate(ISCSI_NOP_OUT, 7, ISCSI_RESERVED_TAG), 0);
	fixture_fini(&r);
}

/* ---- receives, §8.1 ---- */

/* As many receives are posted as the command window allows, and some more. */
/* [RFC 7145: 8.1.1.1 #1, 8.1.1.3 #2] */
static void test_receives_stand_ready_rfc7145_8_1(void **state)
{
	struct iscsi_params p = fixture_params();

	(void)state;
	p.initial_r2t = true;
	fixture_initiator(&r, DMISER_LINUX, &p);
	assert_true(r.f.nrecvs >= FIXTURE_TASKS + 2);
	fixture_fini(&r);
	fixture_target(&r, DMISER_LINUX, &p);
	assert_true(r.f.nrecvs >= FIXTURE_TASKS + 2);
	fixture_fini(&r);
	/* unsolicited Data-Outs: FirstBurstLength by the longest PDU */
	p.initial_r2t = false;
	p.first_burst_length = 65536;
	fixture_target(&r, DMISER_LINUX, &p);
	assert_true(r.f.nrecvs >= FIXTURE_TASKS * (1 + 8) + 2);
	fixture_fini(&r);
}

/* During the login there is one receive, as long as a Login PDU (the attack of
 * §5.1.2). */
/* [RFC 7145: 5.1.2 #2-3] [RFC 5047: 11.1 #2] */
static void test_little_is_held_before_the_login_rfc7145_5_1_2(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct rcap_recv *recv;

	(void)state;
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	assert_int_equal(r.f.nrecvs, 1);
	recv = list_entry(r.f.recvs.next, struct rcap_recv, link);
	assert_int_equal(recv->cap, ISER_PDU + 8192);
	fixture_fini(&r);
}

/* ---- PEER_CLOSES ---- */

static void log_out(unsigned rules)
{
	const struct iscsi_params p = fixture_params();

	fixture_target(&r, rules, &p);
	fixture_send(&r, ISCSI_LOGOUT_RESPONSE, 3, 0);
	dm_connection_terminate(r.dm, DM_TERMINATE_LOGGED_OUT, 0);
	assert_true(r.f.disconnected);
	assert_int_equal(r.terminated, 0);
}

/* The role is free as soon as the response is sent; the queue pair waits for the
 * initiator, and what comes from it is not processed. */
/* [RFC 7145: 5.2.2 #3-5] */
static void test_peer_closes_first_rfc7145_5_2_2(void **state)
{
	(void)state;
	log_out(DMISER_PEER_CLOSES);
	assert_int_equal(r.f.grace, 15 * XTIME_S);
	fixture_flush(&r);
	assert_int_equal(r.terminated, 1);
	assert_int_equal(r.terminate_err, 0);
	dm_deallocate_connection_resources(r.dm);
	fixture_read(&r, 5, 512);
	nop_out(100, ISCSI_RESERVED_TAG);
	assert_int_equal(r.controls, 0);
	fake_rcap_close(&r.f, ERR_RESET, "reset");
	assert_int_equal(r.terminated, 1);
	fixture_fini(&r);
}

/* By the letter of the RFC the target closes, and in these cases, too. */
static void test_target_closes_first(void **state)
{
	const struct iscsi_params p = fixture_params();

	(void)state;
	log_out(DMISER_STRICT);
	assert_int_equal(r.f.grace, 0);
	fixture_flush(&r);
	assert_int_equal(r.terminated, 0);
	fixture_fini(&r);
	/* no response to send: the Logout came on another connection */
	fixture_target(&r, DMISER_LINUX, &p);
	dm_connection_terminate(r.dm, DM_TERMINATE_LOGGED_OUT, 0);
	assert_int_equal(r.f.grace, 0);
	fixture_fini(&r);
	/* the worker ends */
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_send(&r, ISCSI_LOGOUT_RESPONSE, 3, 0);
	dm_connection_terminate(r.dm, DM_TERMINATE_AFTER_SENT, 0);
	assert_int_equal(r.f.grace, 0);
	fixture_fini(&r);
}

/* The response is not sent in time, or the connection is lost: as any other end. */
static void test_peer_that_takes_no_response(void **state)
{
	(void)state;
	log_out(DMISER_LINUX);
	dm_connection_terminate(r.dm, DM_TERMINATE_NOW, ERR_TIMEOUT);
	assert_true(r.f.terminated);
	fixture_flush(&r);
	fake_rcap_close(&r.f, 0, "over");
	assert_int_equal(r.terminated, 1);
	assert_int_equal(r.terminate_err, ERR_TIMEOUT);
	fixture_fini(&r);
	log_out(DMISER_LINUX);
	fake_rcap_close(&r.f, ERR_RESET, "reset");
	assert_int_equal(r.terminated, 1);
	assert_int_equal(r.terminate_err, ERR_RESET);
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule_table_is_whole),
		cmocka_unit_test(test_cm_private_data),
		cmocka_unit_test(test_provider_without_send_with_invalidate),
		cmocka_unit_test(test_small_pdus),
		cmocka_unit_test(test_declared_keys_overrule_the_rules),
		cmocka_unit_test(test_small_pdus_only_to_initiators),
		cmocka_unit_test(test_sense_is_cut_to_what_was_negotiated),
		cmocka_unit_test(test_plain_send),
		cmocka_unit_test(test_peer_closes_first_rfc7145_5_2_2),
		cmocka_unit_test(test_target_closes_first),
		cmocka_unit_test(test_peer_that_takes_no_response),
		cmocka_unit_test(test_quiet_start),
		cmocka_unit_test(test_unexpected_pdus_rfc7145_8_1_2),
		cmocka_unit_test(test_ping_is_retired_by_its_tag_rfc7145_8_1_2),
		cmocka_unit_test(test_unexpected_pdus_without_limit),
		cmocka_unit_test(test_immediate_requests_rfc7145_8_1_1_3),
		cmocka_unit_test(test_immediate_requests_without_limit),
		cmocka_unit_test(test_receives_stand_ready_rfc7145_8_1),
		cmocka_unit_test(
			test_little_is_held_before_the_login_rfc7145_5_1_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
