/* SPDX-License-Identifier: BSD-2-Clause */
/* aca_test.c: auto contingent allegiance over iSCSI: NACA, the ACA attribute,
 * CLEAR ACA (SAM-5 §§5.10, 7.4; RFC 7143 §§10.2, 11.5.1). */
#include <string.h>

#include "base/err.h"
#include "env.h"

static void expect_status(struct peer *p, uint8_t status)
{
	fixture_settle(p->fixture);
	peer_expect_status(p, status);
}

static void expect_response(struct peer *p, uint32_t itt, uint8_t status)
{
	struct sent *s;

	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.itt, itt);
	assert_int_equal(s->pdu.rsp.status, status);
}

static void expect_tmf(struct peer *p, uint32_t itt, uint8_t response)
{
	fixture_settle(p->fixture);
	peer_expect_tmf(p, itt, response);
}

static uint32_t tmf(struct peer *p, enum iscsi_tmf function)
{
	return peer_tmf(p, function, 0, ISCSI_RESERVED_TAG, 0);
}

static void clear_aca(struct peer *p)
{
	expect_tmf(p, tmf(p, ISCSI_TMF_CLEAR_ACA), ISCSI_TMF_COMPLETE);
}

static void tur_ends(struct peer *p, uint8_t attr, uint8_t status)
{
	p->attr = attr;
	peer_tur(p);
	p->attr = 0;
	expect_status(p, status);
}

/* READ(10) of a block beyond the end, NACA = 1. */
static void fault(struct peer *p)
{
	const uint8_t cdb[16] = { 0x28, 0, 0xff, [8] = 1, [9] = 0x04 };

	peer_command(p, cdb, true, false, 512);
}

static void establish(struct peer *p)
{
	struct sent *s;

	fault(p);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_SCSI_RESPONSE);
	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_true(s->len > 2); /* §10.2: autosense with NACA, too */
}

static void expect_none(struct env *e)
{
	tur_ends(e->p, 0, SCSI_GOOD);
	tur_ends(e->other, 0, SCSI_GOOD);
}

static void test_clear_aca_rfc7143_11_5_1(void **state)
{
	struct env *e = *state;

	clear_aca(e->p); /* no ACA: nothing happens */
	establish(e->p);
	tur_ends(e->p, 0, SCSI_ACA_ACTIVE);
	tur_ends(e->other, 0, SCSI_BUSY);
	clear_aca(e->other); /* only the faulted nexus clears it */
	tur_ends(e->p, ISCSI_ATTR_ORDERED, SCSI_ACA_ACTIVE);
	tur_ends(e->p, ISCSI_ATTR_ACA, SCSI_GOOD);
	clear_aca(e->p);
	expect_none(e);
	expect_tmf(e->p,
		   peer_tmf(e->p, ISCSI_TMF_CLEAR_ACA, (uint64_t)5 << 48,
			    ISCSI_RESERVED_TAG, 0),
		   ISCSI_TMF_NO_LUN);
}

/* On both workers: one command in the store, one whose data are in progress,
 * one dormant. */
static void test_blocked_until_cleared_sam5_5_10_2(void **state)
{
	struct env *e = *state;
	uint32_t reads[2], write;

	e->r->holding = true;
	reads[0] = peer_read(e->p, 0, 1);
	reads[1] = peer_read(e->other, 0, 1);
	write = peer_write(e->p, 8, 8);
	peer_unsolicited(e->p, e->p->last_task, 1, 512, 0);
	establish(e->p);
	e->r->holding = false;
	fixture_settle(e->r);
	peer_solicited(e->p, 1, 0);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p));
	assert_true(peer_quiet(e->other));
	assert_int_equal(e->r->memory[8 * 512], 0);
	/* the response to the function precedes those of blocked commands */
	clear_aca(e->p);
	expect_response(e->p, reads[0], SCSI_GOOD);
	expect_response(e->p, write, SCSI_GOOD);
	expect_response(e->other, reads[1], SCSI_GOOD);
	assert_int_equal(e->r->memory[8 * 512], 1);
}

/* SAM-5 §7.4: CLEAR ACA aborts the task with the ACA attribute. */
static void test_clear_aca_aborts_the_aca_task(void **state)
{
	struct env *e = *state;
	uint32_t itt, function, blocked;

	e->r->holding = true;
	blocked = peer_read(e->p, 1, 1);
	establish(e->p);
	e->p->attr = ISCSI_ATTR_ACA;
	itt = peer_read(e->p, 0, 1);
	e->p->attr = 0;
	function =
		peer_tmf(e->p, ISCSI_TMF_QUERY_TASK, 0, itt, e->p->cmdsn - 1);
	expect_tmf(e->p, function, ISCSI_TMF_SUCCEEDED);
	function = tmf(e->p, ISCSI_TMF_CLEAR_ACA);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p)); /* its I/O is in progress */
	e->r->holding = false;
	expect_tmf(e->p, function, ISCSI_TMF_COMPLETE);
	expect_response(e->p, blocked, SCSI_GOOD);
	assert_true(peer_quiet(e->p)); /* nothing of the aborted one */
	expect_none(e);
}

static void test_clear_aca_is_for_one_unit_sam5_7_4(void **state)
{
	static const struct dev_lu_config second = { .lun = 1 };
	struct bs *hold = bs_hold_new(bs_null_new("null:1M", 1u << 20, 512));
	struct env *e = *state;
	uint32_t itt;

	assert_int_equal(dev_lu_add(e->r->server, &second, hold), 0);
	peer_ready(e->p);
	e->p->lun = dev_lun_encode(1);
	peer_ready(e->p);
	establish(e->p);
	e->p->attr = ISCSI_ATTR_ACA;
	itt = peer_read(e->p, 0, 1);
	clear_aca(e->p); /* of unit 0, which has no ACA */
	bs_hold_release(hold, 1);
	expect_response(e->p, itt, SCSI_GOOD);
}

/* QERR = 01b: commands that 00b blocks are aborted, and a unit attention
 * reports that to their initiators. */
static void qerr(struct env *e, bool tas)
{
	uint32_t itt;

	control_page(e)->qerr = 1;
	control_page(e)->tas = tas;
	e->r->holding = true;
	itt = peer_read(e->other, 0, 1);
	fault(e->p);
	fixture_settle(e->r);
	assert_true(peer_quiet(e->p)); /* the status follows their end */
	e->r->holding = false;
	expect_status(e->p, SCSI_CHECK_CONDITION);
	assert_true(peer_quiet(e->p));
	if (tas)
		expect_response(e->other, itt, SCSI_TASK_ABORTED);
	assert_true(peer_quiet(e->other));
	tur_ends(e->other, 0, SCSI_BUSY);
	clear_aca(e->p);
	if (!tas) /* COMMANDS CLEARED BY ANOTHER INITIATOR */
		tur_ends(e->other, 0, SCSI_CHECK_CONDITION);
	expect_none(e);
	assert_int_equal(e->r->buffers, 0);
}

static void test_qerr_takes_others_sam5_5_10_2(void **state)
{
	qerr(*state, false);
	qerr(*state, true);
}

/* Functions that abort tasks leave the ACA (SAM-5 §7.2, §7.5), resets end
 * it. */
static void test_functions_meanwhile_sam5_7(void **state)
{
	static const enum iscsi_tmf stays[] = { ISCSI_TMF_ABORT_TASK_SET,
						ISCSI_TMF_CLEAR_TASK_SET };
	static const enum iscsi_tmf ends[] = { ISCSI_TMF_LU_RESET,
					       ISCSI_TMF_TARGET_WARM_RESET };
	struct env *e = *state;

	for (unsigned i = 0; i < 2; i++) {
		e->r->holding = true;
		peer_read(e->p, 0, 1);
		establish(e->p);
		e->r->holding = false;
		fixture_settle(e->r); /* it is blocked at its end */
		assert_true(peer_quiet(e->p));
		expect_tmf(e->p, tmf(e->p, stays[i]), ISCSI_TMF_COMPLETE);
		assert_true(peer_quiet(e->p));
		tur_ends(e->p, 0, SCSI_ACA_ACTIVE);
		clear_aca(e->p);
		expect_none(e);
	}
	for (unsigned i = 0; i < 2; i++) {
		establish(e->p);
		expect_tmf(e->other, tmf(e->other, ends[i]),
			   ISCSI_TMF_COMPLETE);
		tur_ends(e->p, 0, SCSI_CHECK_CONDITION); /* BUS DEVICE RESET */
		tur_ends(e->other, 0, SCSI_CHECK_CONDITION);
		expect_none(e);
	}
}

static void test_session_loss_ends_it_sam5_5_10_5(void **state)
{
	struct env *e = *state;
	uint32_t itt;

	e->r->holding = true;
	itt = peer_read(e->other, 0, 1);
	establish(e->p);
	e->r->holding = false;
	fixture_settle(e->r);
	assert_true(peer_quiet(e->other));
	peer_cut(e->p, ERR_RESET);
	expect_response(e->other, itt, SCSI_GOOD);
	tur_ends(e->other, 0, SCSI_GOOD);
}

/* The connection ends before the response. */
static void test_session_lost_during_clear_aca(void **state)
{
	struct env *e = *state;

	establish(e->other);
	tmf(e->other, ISCSI_TMF_CLEAR_ACA);
	peer_cut(e->other, ERR_RESET);
	fixture_settle(e->r);
	assert_true(tgt_worker_idle(tgt_worker(e->r->tgt, 1)));
	tur_ends(e->p, 0, SCSI_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWO(test_clear_aca_rfc7143_11_5_1),
		TWO(test_blocked_until_cleared_sam5_5_10_2),
		TWO(test_clear_aca_aborts_the_aca_task),
		TWO(test_clear_aca_is_for_one_unit_sam5_7_4),
		TWO(test_qerr_takes_others_sam5_5_10_2),
		TWO(test_functions_meanwhile_sam5_7),
		TWO(test_session_loss_ends_it_sam5_5_10_5),
		TWO(test_session_lost_during_clear_aca),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
