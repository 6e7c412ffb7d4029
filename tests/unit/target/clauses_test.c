/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clauses_test.c: clauses of RFC 7143 and RFC 7144 that concern single commands and
 * requests at a target.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "env.h"
#include "scsi/cdb.h"
#include "target/task.h"

static void expect_reject(struct peer *p, enum iscsi_reject_reason reason)
{
	assert_int_equal(peer_expect(p, ISCSI_REJECT)->pdu.reject.reason,
			 reason);
}

static struct sent *expect_sense(struct peer *p, uint8_t key, uint8_t asc)
{
	struct sent *s = peer_expect(p, ISCSI_SCSI_RESPONSE);

	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_true(s->len >= 16);
	assert_int_equal(s->data[4] & 0x0f, key);
	assert_int_equal(s->data[14], asc);
	return s;
}

/* ---- SCSI Command ---- */

/* [RFC 7143: 11 #3] */
static void test_reserved_ahs_code_rfc7143_11(void **state)
{
	static const uint8_t reserved[] = { 0, 1, 0x3f, 0 };
	struct env *e = *state;
	const uint8_t tur[16] = { 0 };

	e->p->ahs = reserved;
	e->p->ahs_len = sizeof(reserved);
	peer_command(e->p, tur, false, false, 0);
	expect_reject(e->p, ISCSI_REJECT_PROTOCOL);
	e->p->cmdsn--; /* not received (§7.3) */
	e->p->ahs_len = 0;
	peer_tur(e->p);
	fixture_settle(e->r);
	peer_expect_status(e->p, SCSI_GOOD);
}

/* [RFC 7143: 11.2.1.8 #2] */
static void test_reserved_tag_rejected_rfc7143_11_2_1_8(void **state)
{
	static const uint8_t ops[] = { ISCSI_SCSI_COMMAND, ISCSI_TMF_REQUEST,
				       ISCSI_TEXT_REQUEST,
				       ISCSI_LOGOUT_REQUEST };
	struct env *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct iscsi_pdu pdu = { .op = ops[i],
					 .immediate = true,
					 .final = true,
					 .itt = ISCSI_RESERVED_TAG,
					 .ttt = ISCSI_RESERVED_TAG,
					 .cmdsn = e->p->cmdsn };

		peer_rx(e->p, &pdu, NULL);
		expect_reject(e->p, ISCSI_REJECT_INVALID_PDU_FIELD);
	}
	assert_false(e->p->terminated);
}

/* A WRITE beyond the unit: the response comes after the data that the initiator
 * sends without being asked. */
/* [RFC 7143: 11.4.2 #1] */
static void test_error_waits_for_the_data_rfc7143_11_4_2(void **state)
{
	struct env *e = *state;

	peer_write(e->p, FIXTURE_BLOCKS, 1);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	peer_unsolicited(e->p, e->p->last_task, 0x11, 512, 0);
	fixture_settle(e->r);
	expect_sense(e->p, 0x05, 0x21);
}

static void report_luns(struct env *e, uint32_t allocation, uint32_t edtl,
			uint8_t flags, uint32_t resid)
{
	uint8_t cdb[16] = { 0xa0 };
	struct sent *s;

	put_be32(cdb + 6, allocation);
	peer_command(e->p, cdb, true, false, edtl);
	fixture_settle(e->r);
	s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.rsp.status, SCSI_GOOD);
	assert_int_equal(s->pdu.rsp.resid_flags, flags);
	assert_int_equal(s->pdu.rsp.resid, resid);
}

/* The list of one unit has 16 bytes. */
/* [RFC 7143: 11.4.5.3 #1-3] */
static void test_residual_of_report_luns_rfc7143_11_4_5_3(void **state)
{
	struct env *e = *state;

	report_luns(e, 16, 16, 0, 0);
	report_luns(e, 12, 12, 0, 0); /* cut by the allocation length */
	report_luns(e, 12, 100, ISCSI_RESID_UNDERFLOW, 88);
	report_luns(e, 64, 64, ISCSI_RESID_UNDERFLOW, 48);
	report_luns(e, 16, 12, ISCSI_RESID_OVERFLOW, 4);
}

/* ---- task management ---- */

/* The function waits for the data of an R2T. */
/* [RFC 7143: 4.2.3.3 #5 #10, 11.5.1 #5] */
static void test_abort_task_set_waits_for_data_rfc7143_11_5_1(void **state)
{
	static const enum iscsi_tmf functions[] = { ISCSI_TMF_ABORT_TASK_SET,
						    ISCSI_TMF_CLEAR_TASK_SET };
	struct env *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		uint32_t tmf;

		peer_write(e->p, 0, 8);
		peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
		tmf = peer_tmf(e->p, functions[i], 0, ISCSI_RESERVED_TAG, 0);
		fixture_settle(e->r);
		assert_true(peer_quiet(e->p));
		peer_solicited(e->p, 1, 0);
		fixture_settle(e->r);
		peer_expect_tmf(e->p, tmf, ISCSI_TMF_COMPLETE);
		assert_true(peer_quiet(e->p));
		assert_int_equal(e->r->memory[0], 0);
	}
}

/* A function that waits for a missing command is not a task. */
/* [RFC 7144: 6.3 #8-9] */
static void test_query_of_a_function_rfc7144_6_3(void **state)
{
	struct env *e = *state;
	uint32_t lost = e->p->cmdsn, waiting, query;

	e->p->cmdsn = lost + 1;
	waiting = peer_tmf(e->p, ISCSI_TMF_ABORT_TASK_SET, 0,
			   ISCSI_RESERVED_TAG, 0);
	assert_true(peer_quiet(e->p));
	query = peer_tmf(e->p, ISCSI_TMF_QUERY_TASK, 0, waiting, lost + 1);
	peer_expect_tmf(e->p, query, ISCSI_TMF_REJECTED);
	e->p->cmdsn = lost;
	peer_tur(e->p);
	fixture_settle(e->r);
	peer_expect_status(e->p, SCSI_GOOD);
	peer_expect_tmf(e->p, waiting, ISCSI_TMF_COMPLETE);
}

/* ---- iSCSIProtocolLevel ---- */

/* A session at level 1, or at 2. */
static struct peer *at_level(struct env *e, uint8_t last, bool two)
{
	static const char one[] = "InitiatorName=" FIXTURE_INI "\0"
				  "SessionType=Normal\0"
				  "TargetName=" FIXTURE_TARGET;
	const uint8_t isid[6] = { 0x80, 9, 9, 9, 9, last };
	struct peer *p;

	if (two) {
		p = peer_session(e->r, 0, last);
	} else {
		p = peer_new(e->r, 0);
		assert_int_equal(peer_login(p, one, sizeof(one), isid, 0), 0);
	}
	peer_ready(p);
	return p;
}

/* [RFC 7144: 5.1.1 #2] */
static void test_priority_needs_level_2_rfc7144_5_1_1(void **state)
{
	struct env *e = *state;

	for (unsigned two = 0; two < 2; two++) {
		struct peer *p = at_level(e, (uint8_t)(7 + two), two);
		const struct tgt_task *t;

		p->priority = 5;
		e->r->holding = true;
		peer_read(p, 0, 1);
		t = container_of(p->last_task, struct tgt_task, dm);
		assert_int_equal(t->dev.priority, two ? 5 : 0);
		e->r->holding = false;
		fixture_release(e->r);
	}
}

/* [RFC 7144: 5.2.1 #1] */
static void test_qualifier_needs_level_2_rfc7144_5_2_1(void **state)
{
	struct env *e = *state;

	for (unsigned two = 0; two < 2; two++) {
		struct peer *p = at_level(e, (uint8_t)(7 + two), two);
		struct sent *s;

		e->r->no_buffers = true;
		peer_write(p, 0, 1);
		peer_unsolicited(p, p->last_task, 0x66, 0, 0);
		fixture_settle(e->r);
		s = peer_expect(p, ISCSI_SCSI_RESPONSE);
		assert_int_equal(s->pdu.rsp.status, SCSI_BUSY);
		assert_int_equal(s->pdu.rsp.status_qualifier, two);
		e->r->no_buffers = false;
	}
}

/* ---- names ---- */

/* [RFC 7143: 4.4.2 #1-3] */
static void test_port_names_rfc7143_4_4_2(void **state)
{
	const uint8_t page_83[16] = { 0x12, 1, 0x83, 1, 0 };
	static const char port[] = FIXTURE_TARGET ",t,0x0001";
	struct env *e = *state;
	const struct list *all = &e->r->server->nexuses[0];
	const struct dev_nexus *n =
		list_entry(all->next, struct dev_nexus, link);
	struct sent *s;

	assert_string_equal(n->cfg.target_port, port);
	assert_string_equal(n->cfg.target_name, FIXTURE_TARGET);
	assert_string_equal(n->cfg.initiator_port,
			    FIXTURE_INI ",i,0x800102030401");
	peer_command(e->p, page_83, true, false, 256);
	fixture_settle(e->r);
	s = peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_non_null(memmem(s->data, s->len, port, sizeof(port)));
	assert_non_null(memmem(s->data, s->len, FIXTURE_TARGET,
			       sizeof(FIXTURE_TARGET)));
}

/* ---- text ---- */

static struct iscsi_pdu text_request(const struct peer *p, uint32_t len)
{
	return (struct iscsi_pdu){ .op = ISCSI_TEXT_REQUEST,
				   .immediate = true,
				   .final = true,
				   .itt = 9,
				   .ttt = ISCSI_RESERVED_TAG,
				   .cmdsn = p->cmdsn,
				   .dsl = len };
}

/* [RFC 7143: 11.10.2 #1] */
static void test_final_and_continue_rfc7143_11_10_2(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = text_request(e->p, 8);

	pdu.cont = true;
	peer_rx(e->p, &pdu, "SendTarg");
	expect_reject(e->p, ISCSI_REJECT_PROTOCOL);
}

/* 8,192 bytes of keys in one negotiation, in two PDUs. */
/* [RFC 7143: 6.1 #4] */
static void test_text_of_8192_bytes_rfc7143_6_1(void **state)
{
	static const char key[] = "X-org.example.k%03u=";
	static char text[8192];
	struct env *e = *state;
	struct iscsi_pdu pdu;
	struct sent *s;

	memset(text, 'v', sizeof(text));
	for (unsigned i = 0; i < 64; i++) {
		char name[32];
		int n = snprintf(name, sizeof(name), key, i);

		memcpy(text + 128 * i, name, (size_t)n);
		text[128 * i + 127] = '\0';
	}
	pdu = text_request(e->p, 4096);
	pdu.final = false;
	pdu.cont = true;
	peer_rx(e->p, &pdu, text);
	s = peer_expect(e->p, ISCSI_TEXT_RESPONSE);
	assert_int_equal(s->len, 0);
	pdu = text_request(e->p, 4096);
	pdu.ttt = s->pdu.ttt;
	peer_rx(e->p, &pdu, text + 4096);
	s = peer_expect(e->p, ISCSI_TEXT_RESPONSE);
	assert_true(s->pdu.final);
	assert_true(s->len >= 64 * 32);
}

/* §6.4: one request declares a key twice. */
/* [RFC 7143: 6.2 #15, 6.4 #4, 7.12 #3-5] */
static void test_key_declared_twice_rfc7143_6_4(void **state)
{
	static const char text[] = "MaxRecvDataSegmentLength=1024\0"
				   "MaxRecvDataSegmentLength=2048";
	struct env *e = *state;
	struct iscsi_pdu pdu = text_request(e->p, sizeof(text));

	peer_rx(e->p, &pdu, text);
	expect_reject(e->p, ISCSI_REJECT_PROTOCOL);
	/* §7.12: neither value is in force */
	assert_int_equal(e->p->params.max_send_dsl, 65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(test_reserved_ahs_code_rfc7143_11),
		ONE(test_reserved_tag_rejected_rfc7143_11_2_1_8),
		ONE(test_error_waits_for_the_data_rfc7143_11_4_2),
		ONE(test_residual_of_report_luns_rfc7143_11_4_5_3),
		ONE(test_abort_task_set_waits_for_data_rfc7143_11_5_1),
		ONE(test_query_of_a_function_rfc7144_6_3),
		ONE(test_priority_needs_level_2_rfc7144_5_1_1),
		ONE(test_qualifier_needs_level_2_rfc7144_5_2_1),
		ONE(test_port_names_rfc7143_4_4_2),
		ONE(test_final_and_continue_rfc7143_11_10_2),
		ONE(test_text_of_8192_bytes_rfc7143_6_1),
		ONE(test_key_declared_twice_rfc7143_6_4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
