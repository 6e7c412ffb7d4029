/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_bad_test.c: messages that a peer must not send, for each role: the
 * action that §10 prescribes, a line in the log with peer and clause, and no
 * resource left in use (RFC 7145 §10.1). */
#include "iser_fixture.h"

static struct fixture r;

static void target(void)
{
	const struct iscsi_params p = fixture_params();

	fixture_target(&r, DMISER_LINUX, &p);
}

static void initiator(void)
{
	const struct iscsi_params p = fixture_params();

	fixture_initiator(&r, DMISER_LINUX, &p);
}

static struct iscsi_pdu nop(uint8_t op)
{
	return (struct iscsi_pdu){ .op = op,
				   .final = true,
				   .itt = ISCSI_RESERVED_TAG,
				   .ttt = ISCSI_RESERVED_TAG,
				   .expstatsn = 100 };
}

/* ---- lengths ---- */

/* A Send with a Login PDU that is shorter than the two headers: every length,
 * in a receive that still contains an earlier message. Linux had a hole of this
 * kind. */
static void test_login_shorter_than_its_headers(void **state)
{
	const struct iscsi_params p = fixture_params();
	const struct iser_header h = fixture_plain();
	const struct iscsi_pdu login = { .op = ISCSI_LOGIN_REQUEST,
					 .immediate = true,
					 .final = true };
	uint8_t bytes[ISER_PDU];

	(void)state;
	fixture_message(bytes, &h, &login, NULL);
	for (size_t n = 0; n < ISER_PDU; n++) {
		fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
		assert_int_equal(fake_rcap_deliver(&r.f, bytes, n, 0), 0);
		assert_int_equal(r.controls, 0);
		fixture_expect_ended(&r, ERR_TRUNCATED, "RFC 7145 §9");
		fixture_fini(&r);
	}
	for (size_t n = 0; n < ISER_PDU; n++) {
		fixture_init(&r, ISCSI_INITIATOR, DMISER_LINUX, &p);
		assert_int_equal(fake_rcap_deliver(&r.f, bytes, n, 0), 0);
		fixture_expect_ended(&r, ERR_TRUNCATED, "RFC 7145 §9");
		fixture_fini(&r);
	}
}

/* The DataSegmentLength differs from the length of the message. */
static void deliver_cut(struct iscsi_pdu pdu, size_t len)
{
	const struct iser_header h = fixture_plain();
	static uint8_t bytes[20000];

	fixture_message(bytes, &h, &pdu, NULL);
	fake_rcap_deliver(&r.f, bytes, len, 0);
}

/* [RFC 7145: 10.1.3.3 #4-5] */
static void test_length_is_not_what_the_pdu_says(void **state)
{
	struct iscsi_pdu p = nop(ISCSI_NOP_OUT);
	struct iscsi_pdu in = nop(ISCSI_NOP_IN);

	(void)state;
	p.dsl = in.dsl = 1001;
	for (size_t n = ISER_PDU; n < ISER_PDU + 1010; n++) {
		/* not padded, or padded to a word */
		bool ok = n >= ISER_PDU + 1001 && n <= ISER_PDU + 1004;

		if (n > ISER_PDU + 3 && n < ISER_PDU + 995)
			continue;
		target();
		deliver_cut(p, n);
		assert_int_equal(r.controls, ok);
		if (!ok)
			fixture_expect_ended(&r, ERR_TRUNCATED,
					     "RFC 7145 §9.2");
		fixture_fini(&r);
		initiator();
		deliver_cut(in, n);
		assert_int_equal(r.controls, ok);
		if (!ok)
			fixture_expect_ended(&r, ERR_TRUNCATED,
					     "RFC 7145 §9.2");
		fixture_fini(&r);
	}
}

/* TargetRecvDataSegmentLength is exceeded, but the receive has room. */
static void test_more_data_than_negotiated_rfc7145_6_4(void **state)
{
	struct iscsi_params p = fixture_params();
	struct iscsi_pdu pdu = nop(ISCSI_NOP_OUT);

	(void)state;
	p.max_recv_dsl = 512;
	pdu.dsl = 600; /* the receive has room for an AHS */
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_plain_pdu(&r, &pdu, NULL);
	assert_int_equal(r.controls, 0);
	fixture_expect_ended(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	fixture_fini(&r);
}

/* RFC 7143 §11.2.2; RFC 7145 §6.8. */
static void test_ahs_where_none_belongs(void **state)
{
	struct iscsi_pdu p = nop(ISCSI_NOP_OUT);
	struct iscsi_pdu cmd = fixture_command(5, 0, false);
	const struct iscsi_params params = fixture_params();

	(void)state;
	p.ahs_len = 4;
	target();
	fixture_plain_pdu(&r, &p, NULL);
	fixture_expect_ended(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	fixture_fini(&r);
	/* longer than the declared length of 256 */
	cmd.ahs_len = 260;
	target();
	fixture_plain_pdu(&r, &cmd, NULL);
	assert_int_equal(r.controls, 0);
	fixture_expect_ended(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	fixture_fini(&r);
	cmd.ahs_len = 256;
	target();
	fixture_plain_pdu(&r, &cmd, NULL);
	assert_int_equal(r.controls, 1);
	fixture_fini(&r);
	/* in a login, and at the initiator */
	p.op = ISCSI_LOGIN_REQUEST;
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &params);
	fixture_plain_pdu(&r, &p, NULL);
	fixture_expect_ended(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	fixture_fini(&r);
	p.op = ISCSI_NOP_IN;
	initiator();
	fixture_plain_pdu(&r, &p, NULL);
	fixture_expect_ended(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	fixture_fini(&r);
}

/* ---- opcodes ---- */

/* [RFC 7145: 10.1.3.3 #2-3] */
static void test_unknown_iser_opcodes_rfc7145_10_1_3_3(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 16; op++) {
		uint8_t bytes[ISER_PDU] = { (uint8_t)(op << 4) };

		if (op >= ISER_CONTROL && op <= ISER_HELLO_REPLY)
			continue;
		target();
		fake_rcap_deliver(&r.f, bytes, sizeof(bytes), 0);
		fixture_expect_ended(&r, ERR_OPCODE, "RFC 7145 §9.1");
		fixture_fini(&r);
		initiator();
		fake_rcap_deliver(&r.f, bytes, sizeof(bytes), 0);
		fixture_expect_ended(&r, ERR_OPCODE, "RFC 7145 §9.1");
		fixture_fini(&r);
	}
}

/* An opcode that iSCSI does not define: the iSCSI layer rejects it. */
static void test_unknown_iscsi_opcode(void **state)
{
	struct iscsi_pdu p = nop(0x1c);

	(void)state;
	target();
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(r.errors, 1);
	assert_int_equal(r.last_err, ERR_OPCODE);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* PDUs of the other role. */
static void test_pdus_from_the_wrong_side(void **state)
{
	static const uint8_t to_target[] = { ISCSI_NOP_IN, ISCSI_SCSI_RESPONSE,
					     ISCSI_REJECT, ISCSI_DATA_IN,
					     ISCSI_R2T };
	static const uint8_t to_initiator[] = { ISCSI_NOP_OUT, ISCSI_DATA_OUT,
						ISCSI_SCSI_COMMAND,
						ISCSI_LOGIN_REQUEST };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(to_target); i++) {
		struct iscsi_pdu p = nop(to_target[i]);

		target();
		fixture_plain_pdu(&r, &p, NULL);
		assert_int_equal(r.controls, 0);
		assert_int_equal(r.errors, 1);
		assert_int_equal(r.last_err, ERR_PROTOCOL);
		fixture_fini(&r);
	}
	for (unsigned i = 0; i < ARRAY_LEN(to_initiator); i++) {
		struct iscsi_pdu p = nop(to_initiator[i]);

		initiator();
		fixture_plain_pdu(&r, &p, NULL);
		assert_int_equal(r.controls, 0);
		assert_int_equal(r.errors, 1);
		fixture_fini(&r);
	}
}

/* Data-type PDUs are not allowed in Sends. */
static void test_data_type_pdus_in_a_send_rfc7145_7_1(void **state)
{
	static const uint8_t ops[] = { ISCSI_DATA_IN, ISCSI_R2T };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct iscsi_pdu p = nop(ops[i]);

		initiator();
		fixture_plain_pdu(&r, &p, NULL);
		fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §7");
		fixture_fini(&r);
	}
}

static void test_solicited_data_out_rfc7145_7_3_4(void **state)
{
	struct iscsi_pdu p = nop(ISCSI_DATA_OUT);

	(void)state;
	target();
	fixture_write(&r, 5, 4096, 0, true);
	p.itt = 5;
	p.ttt = 1;
	p.dsl = 100;
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(fixture_find(&r, 5)->dm.out_done, 0);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §7.3.4");
	fixture_fini(&r);
}

/* ---- during login ---- */

/* Only Login PDUs are allowed: the target's role answers others, an initiator
 * drops the connection. */
static void test_other_pdus_during_login(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct iscsi_pdu in = nop(ISCSI_NOP_IN);
	struct iscsi_pdu cmd = fixture_command(5, 4096, true);

	(void)state;
	fixture_init(&r, ISCSI_INITIATOR, DMISER_LINUX, &p);
	fixture_plain_pdu(&r, &in, NULL);
	assert_int_equal(r.controls, 0);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7143 §11");
	fixture_fini(&r);
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	r.no_task = true;
	r.answer = ERR_PROTOCOL;
	fixture_plain_pdu(&r, &cmd, NULL);
	assert_int_equal(r.controls, 1);
	fixture_expect_ended(&r, ERR_PROTOCOL, FIXTURE_PEER);
	fixture_fini(&r);
}

/* A second Login Request before the answer to the first one. */
static void test_login_request_too_many(void **state)
{
	const struct iscsi_params p = fixture_params();
	const struct iscsi_pdu login = { .op = ISCSI_LOGIN_REQUEST,
					 .immediate = true };

	(void)state;
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	r.no_enable = true;
	for (int i = 0; i < 20; i++) /* one at a time, any number of them */
		assert_int_equal(fixture_plain_pdu(&r, &login, NULL), 0);
	assert_int_equal(r.controls, 20);
	fixture_fini(&r);
}

/* [RFC 7145: 10.1.2.1 #1-2] */
static void test_login_longer_than_a_login_pdu(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct iscsi_pdu login = { .op = ISCSI_LOGIN_REQUEST,
				   .immediate = true,
				   .dsl = 8193 };

	(void)state;
	fixture_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	assert_int_equal(fixture_plain_pdu(&r, &login, NULL), ERR_TOO_LONG);
	assert_int_equal(r.controls, 0);
	assert_int_equal(r.terminate_err, ERR_TOO_LONG);
	fixture_fini(&r);
}

/* ---- STags ---- */

/* Inconsistent fields: a READ without the STag of its buffer. */
static void test_read_without_read_stag_rfc7145_10_1_3_3(void **state)
{
	struct iscsi_pdu p = fixture_command(5, 4096, false);
	struct iser_header h = fixture_plain();

	(void)state;
	target();
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(r.controls, 0);
	fixture_expect_ended(&r, ERR_FORMAT, "RFC 7145 §7.3.1");
	fixture_fini(&r);
	/* a Write STag is not a Read STag */
	h.wsv = true;
	h.write_stag = FIXTURE_WRITE_STAG;
	target();
	fixture_deliver(&r, &h, &p, NULL);
	fixture_expect_ended(&r, ERR_FORMAT, "RFC 7145 §7.3.1");
	fixture_fini(&r);
}

static void test_write_without_write_stag_rfc7145_9_2(void **state)
{
	struct iscsi_pdu p = fixture_command(5, 4096, true);
	struct fixture_task *t;

	(void)state;
	target();
	fixture_plain_pdu(&r, &p, NULL);
	t = fixture_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	dm_get_data(r.dm, &t->dm, 0, 4096);
	assert_int_equal(r.f.nposted, 0);
	fixture_expect_ended(&r, ERR_FORMAT, "RFC 7145 §9.2");
	fixture_fini(&r);
}

/* Unknown STags, and offsets and lengths outside of a region: the peer's RCaP
 * refuses them, and this end only reports the end of the connection. */
/* [RFC 7145: 10.1.2.2 #1-2] */
static void test_impossible_stags_and_offsets(void **state)
{
	static const struct {
		uint32_t stag;
		uint64_t base;
	} rows[] = {
		{ 0xdeadbeef, 0 },
		{ 0, 0 },
		{ FIXTURE_WRITE_STAG, FIXTURE_WRITE_BASE + FIXTURE_BUF },
		{ FIXTURE_WRITE_STAG, FIXTURE_WRITE_BASE - 1 },
		{ FIXTURE_WRITE_STAG, 0xfffffffffffffff0ull },
	};
	static uint8_t data[512];
	static struct iovec iov = { data, sizeof(data) };
	const struct bufv v = { &iov, 1, sizeof(data) };

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		bool write = i & 1;
		struct iscsi_pdu p = fixture_command(5, 512, write);
		struct iser_header h = fixture_plain();
		struct fixture_task *t;

		target();
		r.f.lax = true;
		h.wsv = write;
		h.rsv = !write;
		h.write_stag = h.read_stag = rows[i / 2].stag;
		h.write_base = h.read_base = rows[i / 2].base;
		fixture_deliver(&r, &h, &p, NULL);
		t = fixture_find(&r, 5);
		if (write)
			assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 512), 0);
		else
			assert_int_equal(dm_put_data(r.dm, &t->dm, &v, 0, NULL),
					 0);
		fixture_flush(&r);
		assert_int_equal(r.terminated, 1);
		assert_int_equal(r.terminate_err, ERR_ACCESS);
		fixture_fini(&r);
	}
}

/* A target's memory has no STag that the peer could use. */
static void test_target_invalidated_rfc7145_7_3_2(void **state)
{
	const struct iser_header h = fixture_plain();
	const struct iscsi_pdu p = nop(ISCSI_NOP_OUT);
	uint8_t bytes[ISER_PDU];

	(void)state;
	target();
	r.f.local[0].valid = true; /* an STag that does not exist */
	r.f.local[0].stag = 9;
	fake_rcap_deliver(&r.f, bytes, fixture_message(bytes, &h, &p, NULL), 9);
	fixture_expect_ended(&r, ERR_PROTOCOL, "RFC 7145 §7.3.2");
	fixture_fini(&r);
}

/* ---- too many ---- */

/* More unexpected PDUs than receives, while none of them is processed: the RCaP
 * ends the connection (§8.1). */
static void test_more_pdus_than_receives(void **state)
{
	const struct iscsi_params p = fixture_params();
	struct iscsi_pdu in = nop(ISCSI_SCSI_RESPONSE);
	unsigned n = 0;
	int err;

	(void)state;
	fixture_initiator(&r, DMISER_LINUX, &p);
	/* responses that wait for our own Sends keep their receives */
	for (uint32_t i = 0; i < FIXTURE_TASKS; i++)
		fixture_start(&r, i, false, 512, 1, &err);
	n = r.f.nrecvs;
	for (uint32_t i = 0; i < FIXTURE_TASKS; i++) {
		in.itt = i;
		assert_int_equal(fixture_plain_pdu(&r, &in, NULL), 0);
	}
	assert_int_equal(r.f.nrecvs, n - FIXTURE_TASKS);
	assert_true(r.f.nrecvs >= 2); /* and other messages can be received */
	fixture_flush(&r);
	assert_int_equal(r.f.nrecvs, n);
	assert_int_equal(r.ended, FIXTURE_TASKS);
	fixture_fini(&r);
}

/* ---- the role ends the connection ---- */

/* [RFC 7145: 10.1.4.1 #1] */
static void test_role_gives_up(void **state)
{
	(void)state;
	target();
	r.answer = ERR_FORMAT;
	fixture_read(&r, 5, 512);
	fixture_expect_ended(&r, ERR_FORMAT, FIXTURE_PEER);
	fixture_fini(&r);
	target();
	r.answer = ERR_FORMAT;
	fixture_plain_pdu(&r, &(struct iscsi_pdu){ .op = ISCSI_TEXT_REQUEST },
			  NULL);
	fixture_expect_ended(&r, ERR_FORMAT, FIXTURE_PEER);
	fixture_fini(&r);
	initiator();
	r.answer = ERR_FORMAT;
	fixture_plain_pdu(&r, &(struct iscsi_pdu){ .op = ISCSI_SCSI_RESPONSE },
			  NULL);
	fixture_expect_ended(&r, ERR_FORMAT, FIXTURE_PEER);
	fixture_fini(&r);
}

/* After Connection_Terminate no message is delivered, and messages that are
 * received do no harm. */
/* [RFC 7145: 5.2.2 #4, 5.2.3.1 #1-3] */
static void test_pdus_after_the_end_was_asked_for(void **state)
{
	static const enum dm_terminate hows[] = { DM_TERMINATE_AFTER_SENT,
						  DM_TERMINATE_NOW };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		int err = i & 2 ? ERR_TIMEOUT : 0;

		target();
		fixture_send(&r, ISCSI_LOGOUT_RESPONSE, 3, 0);
		dm_connection_terminate(r.dm, hows[i & 1], err);
		assert_int_equal(r.terminated, 0); /* not within it */
		assert_int_equal(r.f.disconnected,
				 !(hows[i & 1] == DM_TERMINATE_NOW && err));
		fixture_read(&r, 5, 512);
		fixture_data_out(&r, 6, 0, 0, 100, true);
		assert_int_equal(r.controls, 0);
		fixture_flush(&r);
		fake_rcap_close(&r.f, 0, "done");
		assert_int_equal(r.terminate_err, err);
		fixture_fini(&r);
	}
}

/* The second call has no effect. */
static void test_two_reasons_to_end(void **state)
{
	uint8_t bytes[ISER_PDU] = { 0xf0 };

	(void)state;
	target();
	fake_rcap_deliver(&r.f, bytes, sizeof(bytes), 0);
	fake_rcap_deliver(&r.f, bytes, 3, 0);
	dm_connection_terminate(r.dm, DM_TERMINATE_NOW, ERR_TIMEOUT);
	fixture_expect_ended(&r, ERR_OPCODE, "RFC 7145 §9.1");
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_login_shorter_than_its_headers),
		cmocka_unit_test(test_length_is_not_what_the_pdu_says),
		cmocka_unit_test(test_more_data_than_negotiated_rfc7145_6_4),
		cmocka_unit_test(test_ahs_where_none_belongs),
		cmocka_unit_test(test_unknown_iser_opcodes_rfc7145_10_1_3_3),
		cmocka_unit_test(test_unknown_iscsi_opcode),
		cmocka_unit_test(test_pdus_from_the_wrong_side),
		cmocka_unit_test(test_data_type_pdus_in_a_send_rfc7145_7_1),
		cmocka_unit_test(test_solicited_data_out_rfc7145_7_3_4),
		cmocka_unit_test(test_other_pdus_during_login),
		cmocka_unit_test(test_login_request_too_many),
		cmocka_unit_test(test_login_longer_than_a_login_pdu),
		cmocka_unit_test(test_read_without_read_stag_rfc7145_10_1_3_3),
		cmocka_unit_test(test_write_without_write_stag_rfc7145_9_2),
		cmocka_unit_test(test_impossible_stags_and_offsets),
		cmocka_unit_test(test_target_invalidated_rfc7145_7_3_2),
		cmocka_unit_test(test_more_pdus_than_receives),
		cmocka_unit_test(test_role_gives_up),
		cmocka_unit_test(test_pdus_after_the_end_was_asked_for),
		cmocka_unit_test(test_two_reasons_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
