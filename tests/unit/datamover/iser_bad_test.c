/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_bad_test.c: what a peer may not send, at each end: §10's answer, a line
 * that names peer and clause, and nothing left behind (RFC 7145 §10.1). */
#include "iser_rig.h"

static struct rig r;

static void target(void)
{
	const struct iscsi_params p = rig_params();

	rig_target(&r, DMISER_LINUX, &p);
}

static void initiator(void)
{
	const struct iscsi_params p = rig_params();

	rig_initiator(&r, DMISER_LINUX, &p);
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

/* A login Send that is shorter than the two headers: every length, in a receive
 * that still holds what was there before. The class of a real kernel's hole. */
static void test_login_shorter_than_its_headers(void **state)
{
	const struct iscsi_params p = rig_params();
	const struct iser_header h = rig_plain();
	const struct iscsi_pdu login = { .op = ISCSI_LOGIN_REQUEST,
					 .immediate = true,
					 .final = true };
	uint8_t bytes[ISER_PDU];

	(void)state;
	rig_message(bytes, &h, &login, NULL);
	for (size_t n = 0; n < ISER_PDU; n++) {
		rig_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
		assert_int_equal(fake_rcap_deliver(&r.f, bytes, n, 0), 0);
		assert_int_equal(r.controls, 0);
		rig_expect_dead(&r, ERR_TRUNCATED, "RFC 7145 §9");
		rig_fini(&r);
	}
	for (size_t n = 0; n < ISER_PDU; n++) {
		rig_init(&r, ISCSI_INITIATOR, DMISER_LINUX, &p);
		assert_int_equal(fake_rcap_deliver(&r.f, bytes, n, 0), 0);
		rig_expect_dead(&r, ERR_TRUNCATED, "RFC 7145 §9");
		rig_fini(&r);
	}
}

/* The DataSegmentLength says one thing, the message another. */
static void deliver_cut(struct iscsi_pdu pdu, size_t len)
{
	const struct iser_header h = rig_plain();
	static uint8_t bytes[20000];

	rig_message(bytes, &h, &pdu, NULL);
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
		/* as it is, or padded to a word */
		bool ok = n >= ISER_PDU + 1001 && n <= ISER_PDU + 1004;

		if (n > ISER_PDU + 3 && n < ISER_PDU + 995)
			continue;
		target();
		deliver_cut(p, n);
		assert_int_equal(r.controls, ok);
		if (!ok)
			rig_expect_dead(&r, ERR_TRUNCATED, "RFC 7145 §9.2");
		rig_fini(&r);
		initiator();
		deliver_cut(in, n);
		assert_int_equal(r.controls, ok);
		if (!ok)
			rig_expect_dead(&r, ERR_TRUNCATED, "RFC 7145 §9.2");
		rig_fini(&r);
	}
}

/* TargetRecvDataSegmentLength is exceeded, in a receive that has the room. */
static void test_more_data_than_negotiated_rfc7145_6_4(void **state)
{
	struct iscsi_params p = rig_params();
	struct iscsi_pdu pdu = nop(ISCSI_NOP_OUT);

	(void)state;
	p.max_recv_dsl = 512;
	pdu.dsl = 600; /* the AHS' room is there */
	rig_target(&r, DMISER_LINUX, &p);
	rig_plain_pdu(&r, &pdu, NULL);
	assert_int_equal(r.controls, 0);
	rig_expect_dead(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	rig_fini(&r);
}

/* RFC 7143 §11.2.2; RFC 7145 §6.8. */
static void test_ahs_where_none_belongs(void **state)
{
	struct iscsi_pdu p = nop(ISCSI_NOP_OUT);
	struct iscsi_pdu cmd = rig_command(5, 0, false);
	const struct iscsi_params params = rig_params();

	(void)state;
	p.ahs_len = 4;
	target();
	rig_plain_pdu(&r, &p, NULL);
	rig_expect_dead(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	rig_fini(&r);
	/* longer than what we declared, i.e. 256 */
	cmd.ahs_len = 260;
	target();
	rig_plain_pdu(&r, &cmd, NULL);
	assert_int_equal(r.controls, 0);
	rig_expect_dead(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	rig_fini(&r);
	cmd.ahs_len = 256;
	target();
	rig_plain_pdu(&r, &cmd, NULL);
	assert_int_equal(r.controls, 1);
	rig_fini(&r);
	/* in a login, and at the initiator */
	p.op = ISCSI_LOGIN_REQUEST;
	rig_init(&r, ISCSI_TARGET, DMISER_LINUX, &params);
	rig_plain_pdu(&r, &p, NULL);
	rig_expect_dead(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	rig_fini(&r);
	p.op = ISCSI_NOP_IN;
	initiator();
	rig_plain_pdu(&r, &p, NULL);
	rig_expect_dead(&r, ERR_TOO_LONG, "RFC 7145 §9.2");
	rig_fini(&r);
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
		rig_expect_dead(&r, ERR_OPCODE, "RFC 7145 §9.1");
		rig_fini(&r);
		initiator();
		fake_rcap_deliver(&r.f, bytes, sizeof(bytes), 0);
		rig_expect_dead(&r, ERR_OPCODE, "RFC 7145 §9.1");
		rig_fini(&r);
	}
}

/* An opcode that iSCSI does not have: the iSCSI layer's to reject. */
static void test_unknown_iscsi_opcode(void **state)
{
	struct iscsi_pdu p = nop(0x1c);

	(void)state;
	target();
	rig_plain_pdu(&r, &p, NULL);
	assert_int_equal(r.errors, 1);
	assert_int_equal(r.last_err, ERR_OPCODE);
	rig_expect_well(&r);
	rig_fini(&r);
}

/* PDUs of the other direction. */
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
		rig_plain_pdu(&r, &p, NULL);
		assert_int_equal(r.controls, 0);
		assert_int_equal(r.errors, 1);
		assert_int_equal(r.last_err, ERR_PROTOCOL);
		rig_fini(&r);
	}
	for (unsigned i = 0; i < ARRAY_LEN(to_initiator); i++) {
		struct iscsi_pdu p = nop(to_initiator[i]);

		initiator();
		rig_plain_pdu(&r, &p, NULL);
		assert_int_equal(r.controls, 0);
		assert_int_equal(r.errors, 1);
		rig_fini(&r);
	}
}

/* Data-type PDUs never come as such. */
static void test_data_type_pdus_in_a_send_rfc7145_7_1(void **state)
{
	static const uint8_t ops[] = { ISCSI_DATA_IN, ISCSI_R2T };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct iscsi_pdu p = nop(ops[i]);

		initiator();
		rig_plain_pdu(&r, &p, NULL);
		rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §7");
		rig_fini(&r);
	}
}

static void test_solicited_data_out_rfc7145_7_3_4(void **state)
{
	struct iscsi_pdu p = nop(ISCSI_DATA_OUT);

	(void)state;
	target();
	rig_write(&r, 5, 4096, 0, true);
	p.itt = 5;
	p.ttt = 1;
	p.dsl = 100;
	rig_plain_pdu(&r, &p, NULL);
	assert_int_equal(rig_find(&r, 5)->dm.out_done, 0);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §7.3.4");
	rig_fini(&r);
}

/* ---- during login ---- */

/* Only Login PDUs: a target's role answers others, an initiator is done. */
static void test_other_pdus_during_login(void **state)
{
	const struct iscsi_params p = rig_params();
	struct iscsi_pdu in = nop(ISCSI_NOP_IN);
	struct iscsi_pdu cmd = rig_command(5, 4096, true);

	(void)state;
	rig_init(&r, ISCSI_INITIATOR, DMISER_LINUX, &p);
	rig_plain_pdu(&r, &in, NULL);
	assert_int_equal(r.controls, 0);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7143 §11");
	rig_fini(&r);
	rig_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	r.no_task = true;
	r.answer = ERR_PROTOCOL;
	rig_plain_pdu(&r, &cmd, NULL);
	assert_int_equal(r.controls, 1);
	rig_expect_dead(&r, ERR_PROTOCOL, RIG_PEER);
	rig_fini(&r);
}

/* A second Login Request behind the first, unanswered one. */
static void test_login_request_too_many(void **state)
{
	const struct iscsi_params p = rig_params();
	const struct iscsi_pdu login = { .op = ISCSI_LOGIN_REQUEST,
					 .immediate = true };

	(void)state;
	rig_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	r.no_enable = true;
	for (int i = 0; i < 20; i++) /* one at a time: as long as it likes */
		assert_int_equal(rig_plain_pdu(&r, &login, NULL), 0);
	assert_int_equal(r.controls, 20);
	rig_fini(&r);
}

/* [RFC 7145: 10.1.2.1 #1-2] */
static void test_login_longer_than_a_login_pdu(void **state)
{
	const struct iscsi_params p = rig_params();
	struct iscsi_pdu login = { .op = ISCSI_LOGIN_REQUEST,
				   .immediate = true,
				   .dsl = 8193 };

	(void)state;
	rig_init(&r, ISCSI_TARGET, DMISER_LINUX, &p);
	assert_int_equal(rig_plain_pdu(&r, &login, NULL), ERR_TOO_LONG);
	assert_int_equal(r.controls, 0);
	assert_int_equal(r.terminate_err, ERR_TOO_LONG);
	rig_fini(&r);
}

/* ---- STags ---- */

/* Inconsistent fields: a READ that says nothing of where to. */
static void test_read_without_read_stag_rfc7145_10_1_3_3(void **state)
{
	struct iscsi_pdu p = rig_command(5, 4096, false);
	struct iser_header h = rig_plain();

	(void)state;
	target();
	rig_plain_pdu(&r, &p, NULL);
	assert_int_equal(r.controls, 0);
	rig_expect_dead(&r, ERR_FORMAT, "RFC 7145 §7.3.1");
	rig_fini(&r);
	/* a Write STag is no Read STag */
	h.wsv = true;
	h.write_stag = RIG_WRITE_STAG;
	target();
	rig_deliver(&r, &h, &p, NULL);
	rig_expect_dead(&r, ERR_FORMAT, "RFC 7145 §7.3.1");
	rig_fini(&r);
}

static void test_write_without_write_stag_rfc7145_9_2(void **state)
{
	struct iscsi_pdu p = rig_command(5, 4096, true);
	struct rig_task *t;

	(void)state;
	target();
	rig_plain_pdu(&r, &p, NULL);
	t = rig_find(&r, 5);
	assert_int_equal(t->seen[DM_UNSOLICITED], 1);
	dm_get_data(r.dm, &t->dm, 0, 4096);
	assert_int_equal(r.f.nposted, 0);
	rig_expect_dead(&r, ERR_FORMAT, "RFC 7145 §9.2");
	rig_fini(&r);
}

/* STags that name nothing, offsets and lengths outside of them: the RCaP at the
 * peer refuses, and the connection's end is all that happens here. */
/* [RFC 7145: 10.1.2.2 #1-2] */
static void test_impossible_stags_and_offsets(void **state)
{
	static const struct {
		uint32_t stag;
		uint64_t base;
	} rows[] = {
		{ 0xdeadbeef, 0 },
		{ 0, 0 },
		{ RIG_WRITE_STAG, RIG_WRITE_BASE + RIG_BUF },
		{ RIG_WRITE_STAG, RIG_WRITE_BASE - 1 },
		{ RIG_WRITE_STAG, 0xfffffffffffffff0ull },
	};
	static uint8_t data[512];
	static struct iovec iov = { data, sizeof(data) };
	const struct bufv v = { &iov, 1, sizeof(data) };

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		bool write = i & 1;
		struct iscsi_pdu p = rig_command(5, 512, write);
		struct iser_header h = rig_plain();
		struct rig_task *t;

		target();
		r.f.lax = true;
		h.wsv = write;
		h.rsv = !write;
		h.write_stag = h.read_stag = rows[i / 2].stag;
		h.write_base = h.read_base = rows[i / 2].base;
		rig_deliver(&r, &h, &p, NULL);
		t = rig_find(&r, 5);
		if (write)
			assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 512), 0);
		else
			assert_int_equal(dm_put_data(r.dm, &t->dm, &v, 0, NULL),
					 0);
		rig_flush(&r);
		assert_int_equal(r.terminated, 1);
		assert_int_equal(r.terminate_err, ERR_ACCESS);
		rig_fini(&r);
	}
}

/* A target's memory has no STag that the peer could name. */
static void test_target_invalidated_rfc7145_7_3_2(void **state)
{
	const struct iser_header h = rig_plain();
	const struct iscsi_pdu p = nop(ISCSI_NOP_OUT);
	uint8_t bytes[ISER_PDU];

	(void)state;
	target();
	r.f.local[0].valid = true; /* as if there were one */
	r.f.local[0].stag = 9;
	fake_rcap_deliver(&r.f, bytes, rig_message(bytes, &h, &p, NULL), 9);
	rig_expect_dead(&r, ERR_PROTOCOL, "RFC 7145 §7.3.2");
	rig_fini(&r);
}

/* ---- too many ---- */

/* More unexpected PDUs than there are receives for, while nothing of them is
 * taken: the RCaP ends it (§8.1). */
static void test_more_pdus_than_receives(void **state)
{
	const struct iscsi_params p = rig_params();
	struct iscsi_pdu in = nop(ISCSI_SCSI_RESPONSE);
	unsigned n = 0;
	int err;

	(void)state;
	rig_initiator(&r, DMISER_LINUX, &p);
	/* responses that have to wait for our own Sends hold their receives */
	for (uint32_t i = 0; i < RIG_TASKS; i++)
		rig_start(&r, i, false, 512, 1, &err);
	n = r.f.nrecvs;
	for (uint32_t i = 0; i < RIG_TASKS; i++) {
		in.itt = i;
		assert_int_equal(rig_plain_pdu(&r, &in, NULL), 0);
	}
	assert_int_equal(r.f.nrecvs, n - RIG_TASKS);
	assert_true(r.f.nrecvs >= 2); /* and there is room for others */
	rig_flush(&r);
	assert_int_equal(r.f.nrecvs, n);
	assert_int_equal(r.ended, RIG_TASKS);
	rig_fini(&r);
}

/* ---- the role gives up; the end is under way ---- */

/* [RFC 7145: 10.1.4.1 #1] */
static void test_role_gives_up(void **state)
{
	(void)state;
	target();
	r.answer = ERR_FORMAT;
	rig_read(&r, 5, 512);
	rig_expect_dead(&r, ERR_FORMAT, RIG_PEER);
	rig_fini(&r);
	target();
	r.answer = ERR_FORMAT;
	rig_plain_pdu(&r, &(struct iscsi_pdu){ .op = ISCSI_TEXT_REQUEST },
		      NULL);
	rig_expect_dead(&r, ERR_FORMAT, RIG_PEER);
	rig_fini(&r);
	initiator();
	r.answer = ERR_FORMAT;
	rig_plain_pdu(&r, &(struct iscsi_pdu){ .op = ISCSI_SCSI_RESPONSE },
		      NULL);
	rig_expect_dead(&r, ERR_FORMAT, RIG_PEER);
	rig_fini(&r);
}

/* Nothing is handed up once the end was asked for, and what comes
 * meanwhile does no harm. */
/* [RFC 7145: 5.2.2 #4, 5.2.3.1 #1-3] */
static void test_pdus_after_the_end_was_asked_for(void **state)
{
	static const enum dm_terminate hows[] = { DM_TERMINATE_AFTER_SENT,
						  DM_TERMINATE_NOW };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		int err = i & 2 ? ERR_TIMEOUT : 0;

		target();
		rig_send(&r, ISCSI_LOGOUT_RESPONSE, 3, 0);
		dm_connection_terminate(r.dm, hows[i & 1], err);
		assert_int_equal(r.terminated, 0); /* not from within */
		assert_int_equal(r.f.disconnected,
				 !(hows[i & 1] == DM_TERMINATE_NOW && err));
		rig_read(&r, 5, 512);
		rig_data_out(&r, 6, 0, 0, 100, true);
		assert_int_equal(r.controls, 0);
		rig_flush(&r);
		fake_rcap_close(&r.f, 0, "done");
		assert_int_equal(r.terminate_err, err);
		rig_fini(&r);
	}
}

/* Twice is as good as once. */
static void test_two_reasons_to_end(void **state)
{
	uint8_t bytes[ISER_PDU] = { 0xf0 };

	(void)state;
	target();
	fake_rcap_deliver(&r.f, bytes, sizeof(bytes), 0);
	fake_rcap_deliver(&r.f, bytes, 3, 0);
	dm_connection_terminate(r.dm, DM_TERMINATE_NOW, ERR_TIMEOUT);
	rig_expect_dead(&r, ERR_OPCODE, "RFC 7145 §9.1");
	rig_fini(&r);
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
