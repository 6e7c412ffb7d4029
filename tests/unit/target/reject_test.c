/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reject_test.c: the CmdSN of a rejected request counts as not received (RFC
 * 7143 §7.3): later requests wait until the initiator fills the gap, by
 * another request with that CmdSN or by an abort.
 */
#include <string.h>

#include "base/err.h"
#include "env.h"

struct row {
	const char *name;
	uint8_t reason;
	void (*make)(struct iscsi_pdu *p);
	const char *text;   /* data segment */
	const uint8_t *ahs; /* 4 bytes, or NULL */
};

static void tag_in_use(struct iscsi_pdu *p)
{
	p->op = ISCSI_SCSI_COMMAND; /* of the READ that is held */
	p->itt = 70;
}

static void reserved_tag(struct iscsi_pdu *p)
{
	p->op = ISCSI_SCSI_COMMAND;
	p->itt = ISCSI_RESERVED_TAG;
}

static void a_command(struct iscsi_pdu *p)
{
	p->op = ISCSI_SCSI_COMMAND;
	p->ahs_len = 4;
}

static void nop_without_tag(struct iscsi_pdu *p)
{
	p->op = ISCSI_NOP_OUT;
	p->itt = ISCSI_RESERVED_TAG;
}

static void tmf_without_tag(struct iscsi_pdu *p)
{
	p->op = ISCSI_TMF_REQUEST;
	p->itt = ISCSI_RESERVED_TAG;
}

static void stale_text(struct iscsi_pdu *p)
{
	p->op = ISCSI_TEXT_REQUEST;
	p->ttt = 4711;
}

static void a_text(struct iscsi_pdu *p)
{
	p->op = ISCSI_TEXT_REQUEST;
}

static void logout_for_nothing(struct iscsi_pdu *p)
{
	p->op = ISCSI_LOGOUT_REQUEST;
	p->logout.reason = 77;
}

static const uint8_t reserved_ahs[4] = { 0, 1, 0x3f, 0 };
static const uint8_t empty_ext_cdb[4] = { 0, 1, 1, 0 };

#define PARKED 6 /* from this row on the target parks what comes early */

static const struct row rows[] = {
	{ "tag in use", ISCSI_REJECT_TASK_IN_PROGRESS, tag_in_use, NULL, NULL },
	{ "command, reserved tag", ISCSI_REJECT_INVALID_PDU_FIELD, reserved_tag,
	  NULL, NULL },
	{ "command, reserved AHS code", ISCSI_REJECT_PROTOCOL, a_command, NULL,
	  reserved_ahs },
	{ "command, empty Extended CDB", ISCSI_REJECT_INVALID_PDU_FIELD,
	  a_command, NULL, empty_ext_cdb },
	{ "NOP-Out, reserved tag", ISCSI_REJECT_PROTOCOL, nop_without_tag, NULL,
	  NULL },
	{ "TMF, reserved tag", ISCSI_REJECT_INVALID_PDU_FIELD, tmf_without_tag,
	  NULL, NULL },
	{ "text, stale tag", ISCSI_REJECT_INVALID_PDU_FIELD, stale_text, NULL,
	  NULL },
	{ "text, no key=value", ISCSI_REJECT_PROTOCOL, a_text, "nonsense",
	  NULL },
	{ "text, key for login", ISCSI_REJECT_PROTOCOL, a_text,
	  "MaxConnections=4", NULL },
	{ "text, TargetName", ISCSI_REJECT_PROTOCOL, a_text,
	  "TargetName=" FIXTURE_TARGET, NULL },
	{ "logout, reserved reason", ISCSI_REJECT_INVALID_PDU_FIELD,
	  logout_for_nothing, NULL, NULL },
};

static void send_bad(struct peer *p, const struct row *row, uint32_t cmdsn)
{
	struct iscsi_pdu pdu = { .final = true,
				 .itt = 900,
				 .ttt = ISCSI_RESERVED_TAG,
				 .cmdsn = cmdsn };

	row->make(&pdu);
	p->ahs = row->ahs;
	if (row->text)
		pdu.dsl = (uint32_t)strlen(row->text) + 1;
	peer_rx(p, &pdu, row->text);
}

static void hold_a_read(struct env *e)
{
	e->r->holding = true;
	e->p->itt = 70;
	peer_read(e->p, 0, 1);
	e->p->itt = 100;
}

static void release_the_read(struct env *e)
{
	e->r->holding = false;
	fixture_settle(e->r);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
	assert_true(peer_quiet(e->p));
}

static void assert_rejected(struct peer *p, const struct row *row, uint32_t exp)
{
	struct sent *s = peer_expect(p, ISCSI_REJECT);

	if (s->pdu.reject.reason != row->reason || s->pdu.expcmdsn != exp)
		fail_msg("%s: reason %02x, ExpCmdSN %u", row->name,
			 s->pdu.reject.reason, s->pdu.expcmdsn - exp);
}

/* Another request may use the CmdSN. */
/* [RFC 7143: 7.3 #2] */
static void test_gap_filled_by_a_request_rfc7143_7_3(void **state)
{
	struct env *e = *state;
	struct peer *p = e->p;

	hold_a_read(e);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t gap = p->cmdsn;
		struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
					 .final = true,
					 .itt = 800,
					 .ttt = ISCSI_RESERVED_TAG,
					 .cmdsn = gap };
		uint32_t itt;

		send_bad(p, &rows[i], gap);
		assert_rejected(p, &rows[i], gap);
		p->cmdsn = gap + 1;
		itt = peer_tur(p);
		assert_true(peer_quiet(p));
		peer_rx(p, &nop, NULL);
		assert_int_equal(peer_expect(p, ISCSI_NOP_IN)->pdu.expcmdsn,
				 gap + 1);
		assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.itt,
				 itt);
		assert_int_equal(p->sent[p->next - 1].pdu.expcmdsn, gap + 2);
		peer_flush(p);
	}
	release_the_read(e);
}

/* An abort fills the gap (§7.11). */
static void test_gap_filled_by_an_abort_rfc7143_7_3(void **state)
{
	struct env *e = *state;
	struct peer *p = e->p;

	hold_a_read(e);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t gap = p->cmdsn, itt, abort;

		send_bad(p, &rows[i], gap);
		assert_rejected(p, &rows[i], gap);
		p->cmdsn = gap + 1;
		itt = peer_tur(p);
		assert_true(peer_quiet(p));
		abort = peer_tmf(p, ISCSI_TMF_ABORT_TASK, 0, 900, gap);
		fixture_settle(e->r);
		assert_int_equal(peer_next(p)->pdu.itt, abort);
		assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.itt,
				 itt);
		peer_flush(p);
	}
	release_the_read(e);
}

/* A request that waits after a gap and is rejected in its turn leaves a
 * gap, too. */
static void test_rejected_in_its_turn_rfc7143_7_3(void **state)
{
	struct env *e = *state;
	struct peer *p = e->p;

	hold_a_read(e);
	for (size_t i = PARKED; i < ARRAY_LEN(rows); i++) {
		uint32_t gap = p->cmdsn;

		send_bad(p, &rows[i], gap + 1);
		assert_true(peer_quiet(p));
		p->cmdsn = gap + 2;
		peer_tur(p);
		assert_true(peer_quiet(p));
		p->cmdsn = gap;
		peer_tur(p);
		peer_expect(p, ISCSI_SCSI_RESPONSE);
		assert_rejected(p, &rows[i], gap + 1);
		assert_true(peer_quiet(p));
		peer_tur(p); /* gap + 1 */
		peer_expect(p, ISCSI_SCSI_RESPONSE);
		peer_expect(p, ISCSI_SCSI_RESPONSE);
		p->cmdsn = gap + 3;
		peer_flush(p);
	}
	release_the_read(e);
}

/* An immediate request has no CmdSN of its own, so that its Reject leaves no
 * gap. */
static void test_immediate_leaves_no_gap_rfc7143_7_3(void **state)
{
	struct env *e = *state;
	struct iscsi_pdu pdu = { .op = ISCSI_TEXT_REQUEST,
				 .immediate = true,
				 .final = true,
				 .itt = 900,
				 .ttt = 4711,
				 .cmdsn = e->p->cmdsn };

	peer_rx(e->p, &pdu, NULL);
	assert_int_equal(peer_expect(e->p, ISCSI_REJECT)->pdu.expcmdsn,
			 e->p->cmdsn);
	peer_tur(e->p);
	peer_expect(e->p, ISCSI_SCSI_RESPONSE);
}

/* The window does not shrink: MaxCmdSN never decreases. */
static void test_rejects_leave_the_window_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;
	struct peer *p = e->p;
	uint32_t depth = e->r->cfg.depth, gap = p->cmdsn, max = 0;

	for (unsigned i = 0; i < 2 * depth; i++) {
		struct sent *s;

		send_bad(p, &rows[PARKED], gap);
		s = peer_expect(p, ISCSI_REJECT);
		assert_int_equal(s->pdu.expcmdsn, gap);
		assert_true(i == 0 || s->pdu.maxcmdsn == max);
		max = s->pdu.maxcmdsn;
	}
	assert_int_equal(max, gap + depth - 1);
}

/* ---- immediate data with a data digest ---- */

static struct peer *session_with_digest(struct env *e)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET "\0"
				   "DataDigest=CRC32C\0"
				   "InitialR2T=No\0"
				   "ImmediateData=Yes";
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 9 };
	struct peer *p = peer_new(e->r, 0);

	assert_int_equal(peer_login(p, keys, sizeof(keys), isid, 0), 0);
	assert_true(p->params.data_digest);
	peer_ready(p);
	peer_flush(p);
	return p;
}

/* A WRITE of one block with immediate data; not final: unsolicited data
 * follow. */
static struct iscsi_pdu write_pdu(const struct peer *p, bool immediate,
				  bool final)
{
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .immediate = immediate,
				 .final = final,
				 .itt = 900,
				 .cmdsn = p->cmdsn,
				 .dsl = final ? 512 : 256 };

	pdu.cmd.write = true;
	pdu.cmd.attr = ISCSI_ATTR_SIMPLE;
	pdu.cmd.edtl = 512;
	pdu.cmd.cdb[0] = 0x2a;
	pdu.cmd.cdb[8] = 1;
	return pdu;
}

static void digest_is_wrong(struct peer *p, const struct iscsi_pdu *pdu)
{
	uint8_t bhs[ISCSI_BHS_LEN];

	iscsi_bhs_encode(pdu, bhs);
	p->dm.up->error_notify(&p->dm, pdu, bhs, ERR_DATA_DIGEST);
}

/* The command is rejected, has no response and leaves its CmdSN free:
 * immediate data are a part of the command PDU. */
static void test_bad_digest_of_immediate_data_rfc7143_7_8(void **state)
{
	struct env *e = *state;
	struct peer *p = session_with_digest(e);
	const uint32_t gap = p->cmdsn;
	unsigned buffers = e->r->buffers;

	for (unsigned immediate = 0; immediate < 2; immediate++) {
		struct iscsi_pdu pdu = write_pdu(p, immediate, true);
		struct sent *s;

		peer_rx(p, &pdu, NULL);
		assert_non_null(p->last_task);
		digest_is_wrong(p, &pdu);
		s = peer_expect(p, ISCSI_REJECT);
		assert_int_equal(s->pdu.reject.reason,
				 ISCSI_REJECT_DATA_DIGEST);
		assert_int_equal(s->pdu.expcmdsn, gap);
		fixture_settle(e->r);
		assert_true(peer_quiet(p));
		assert_int_equal(e->r->buffers, buffers);
		assert_null(p->dm.up->find_task(&p->dm, pdu.itt));
	}
	peer_tur(p); /* with the same CmdSN */
	assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.expcmdsn,
			 gap + 1);
}

/* The command counts as received once its data are in or another PDU
 * follows. */
static void test_good_digest_takes_the_cmdsn_rfc7143_7_3(void **state)
{
	struct env *e = *state;
	struct peer *p = session_with_digest(e);
	struct iscsi_pdu pdu = write_pdu(p, false, true);
	uint32_t gap = p->cmdsn++;
	struct dm_task *t;

	peer_rx(p, &pdu, NULL);
	assert_int_equal(p->dm.numbers->expcmdsn, gap);
	peer_unsolicited(p, p->last_task, 0x55, 512, 0);
	fixture_settle(e->r);
	assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.expcmdsn,
			 gap + 1);
	peer_flush(p);

	pdu = write_pdu(p, false, false);
	peer_rx(p, &pdu, NULL);
	t = p->last_task;
	assert_int_equal(p->dm.numbers->expcmdsn, gap + 1);
	p->cmdsn++;
	peer_tur(p);
	assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.expcmdsn,
			 gap + 3);
	peer_unsolicited(p, t, 0x66, 512, 0);
	fixture_settle(e->r);
	assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.itt, 900);
	assert_int_equal(e->r->memory[0], 0x66);
}

/* The retried command fills the gap that the bad digest left, after a later
 * command. */
static void test_bad_digest_with_others_behind_it_rfc7143_7_3(void **state)
{
	struct env *e = *state;
	struct peer *p = session_with_digest(e);
	struct iscsi_pdu pdu = write_pdu(p, false, true);
	uint32_t gap = p->cmdsn++;
	uint32_t itt;

	peer_rx(p, &pdu, NULL);
	digest_is_wrong(p, &pdu);
	peer_expect(p, ISCSI_REJECT);
	itt = peer_tur(p);
	assert_true(peer_quiet(p));
	peer_rx(p, &pdu, NULL);
	assert_int_equal(p->dm.numbers->expcmdsn, gap);
	peer_unsolicited(p, p->last_task, 0x55, 512, 0);
	fixture_settle(e->r);
	assert_int_equal(peer_next(p)->pdu.itt, itt);
	assert_int_equal(peer_next(p)->pdu.itt, pdu.itt);
	assert_int_equal(e->r->memory[0], 0x55);
}

/* An ABORT TASK that came before the command that it names: the command ends
 * within Control_Notify, or with a digest when its data are in. */
static void abort_waits_for_its_command(struct env *e, struct peer *p,
					bool digest)
{
	struct iscsi_pdu pdu = write_pdu(p, false, true);
	struct iscsi_pdu tmf = { .op = ISCSI_TMF_REQUEST,
				 .final = true,
				 .itt = 901,
				 .cmdsn = p->cmdsn + 1 };

	tmf.tmf.function = ISCSI_TMF_ABORT_TASK;
	tmf.tmf.rtt = pdu.itt;
	tmf.tmf.ref_cmdsn = p->cmdsn;
	peer_rx(p, &tmf, NULL);
	assert_true(peer_quiet(p));
	peer_rx(p, &pdu, NULL);
	if (digest)
		peer_unsolicited(p, p->last_task, 0x55, 512, 0);
	else
		assert_null(p->last_task);
	fixture_settle(e->r);
	peer_expect_tmf(p, 901, ISCSI_TMF_COMPLETE);
	assert_true(peer_quiet(p));
	assert_int_equal(e->r->memory[0], 0);
	p->cmdsn += 2;
	peer_tur(p);
	peer_expect_status(p, SCSI_GOOD);
}

static void test_abort_waits_for_its_command_rfc7143_4_2_2_1(void **state)
{
	struct env *e = *state;

	abort_waits_for_its_command(e, e->p, false);
	abort_waits_for_its_command(e, session_with_digest(e), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(test_gap_filled_by_a_request_rfc7143_7_3),
		ONE(test_gap_filled_by_an_abort_rfc7143_7_3),
		ONE(test_rejected_in_its_turn_rfc7143_7_3),
		ONE(test_immediate_leaves_no_gap_rfc7143_7_3),
		ONE(test_rejects_leave_the_window_rfc7143_4_2_2_1),
		ONE(test_bad_digest_of_immediate_data_rfc7143_7_8),
		ONE(test_good_digest_takes_the_cmdsn_rfc7143_7_3),
		ONE(test_bad_digest_with_others_behind_it_rfc7143_7_3),
		ONE(test_abort_waits_for_its_command_rfc7143_4_2_2_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
