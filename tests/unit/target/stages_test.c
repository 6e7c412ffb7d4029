/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stages_test.c: each task management function (RFC 7143 §11.5, RFC 7144
 * §6.3) on a command in each of its stages, of the issuing session and of
 * another one, with TAS = 0 and 1 (SPC-4 §7.5.8). In every case: no response
 * of an affected command follows that of the function (§11.5.1), every
 * buffer comes back, nothing is written later, and the session still works.
 */
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "device/unit/command.h"
#include "fixture.h"

#define LBA 64u

enum stage {
	BEHIND_A_HOLE, /* a command before it is missing */
	DORMANT,       /* waits for an ORDERED command in the store */
	BLOCKED,       /* blocked by an ACA at its end */
	READING,       /* in the store */
	WANTS_DATA,    /* an R2T was sent */
	WRITING,       /* all data are in; in the store */
	ANSWERED,      /* its response is queued, not sent */
	STAGES,
};

static const char *const stage_names[] = { "after a gap", "dormant",
					   "blocked",	  "reading",
					   "wants data",  "writing",
					   "answered" };

static struct fixture *r;
static struct peer *asker, *other;
static struct {
	struct peer *peer;
	enum stage stage;
	uint32_t itt, cmdsn, hole;
	unsigned n;    /* affected commands */
	uint16_t news; /* the status of the missing command */
} victim;

static void open_both(void)
{
	r = fixture_new(2, NULL);
	asker = peer_session(r, 0, 1);
	other = peer_session(r, 1, 2);
	peer_ready(asker);
	peer_ready(other);
	r->memory[LBA * 512] = 0x11;
}

static struct dev_lu *unit(void)
{
	return dev_lu_get(r->server, 0);
}

static uint32_t a_write(struct peer *p)
{
	uint32_t itt = peer_write(p, LBA, 8);

	peer_unsolicited(p, p->last_task, 0x77, 512, 0);
	return itt;
}

static void blocked(struct peer *p)
{
	const uint8_t fault[16] = { 0x28, 0,
				    0xff, [8] = 1, [9] = CONTROL_NACA };

	victim.itt = peer_read(p, 0, 1);
	peer_command(p, fault, true, false, 512);
	fixture_settle(r);
	peer_expect(p, ISCSI_SCSI_RESPONSE);
	r->holding = false;
	fixture_settle(r);
	victim.cmdsn = p->cmdsn - 2;
}

/* Brings a command of p to this stage. */
static void bring(struct peer *p, enum stage stage)
{
	victim.peer = p;
	victim.stage = stage;
	victim.n = 1;
	victim.news = 0;
	victim.hole = p->cmdsn;
	r->holding = true;
	p->cmdsn += stage == BEHIND_A_HOLE;
	if (stage == DORMANT) {
		p->attr = ISCSI_ATTR_ORDERED;
		peer_read(p, 0, 1);
		victim.n = 2;
	}
	if (stage == BLOCKED) {
		blocked(p);
		return;
	}
	victim.cmdsn = p->cmdsn;
	victim.itt = stage == WANTS_DATA || stage == WRITING
			     ? a_write(p)
			     : peer_read(p, 0, 1);
	p->attr = 0;
	fixture_messages(r);
	if (stage == WRITING)
		peer_solicited(p, 0x77, 0);
	if (stage == ANSWERED)
		fixture_release(r);
}

static uint16_t asc_of(const struct sent *s)
{
	if (s->pdu.rsp.status == SCSI_GOOD)
		return 0;
	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_int_equal(s->data[4] & 0x0f, SENSE_UNIT_ATTENTION);
	return get_be16(s->data + 14);
}

/* It ends at once. */
static void fill_the_hole(void)
{
	uint32_t cmdsn = victim.peer->cmdsn;

	if (victim.stage != BEHIND_A_HOLE)
		return;
	victim.peer->cmdsn = victim.hole;
	peer_tur(victim.peer);
	victim.peer->cmdsn = cmdsn;
	victim.news = asc_of(peer_expect(victim.peer, ISCSI_SCSI_RESPONSE));
}

/* The responses of the affected commands. */
static unsigned responses(struct peer *p, uint8_t status)
{
	unsigned n = 0;

	while (!peer_quiet(p) &&
	       p->sent[p->next].pdu.op == ISCSI_SCSI_RESPONSE) {
		assert_int_equal(p->sent[p->next].pdu.rsp.status, status);
		peer_next(p);
		n++;
	}
	return n;
}

static bool is_reset(enum iscsi_tmf f)
{
	return f == ISCSI_TMF_LU_RESET || f == ISCSI_TMF_TARGET_WARM_RESET;
}

/* The next TEST UNIT READY; 0: GOOD. */
static uint16_t attention(struct peer *p)
{
	uint16_t news = victim.news;

	if (p == victim.peer && news) {
		victim.news = 0;
		return news;
	}
	peer_tur(p);
	fixture_settle(r);
	return asc_of(peer_expect(p, ISCSI_SCSI_RESPONSE));
}

/* SPC-4 §5.5.2, SAM-5 §6.3.3: which initiators get a unit attention. */
static void expect_news(enum iscsi_tmf f, bool told)
{
	bool cleared = f == ISCSI_TMF_CLEAR_TASK_SET && !told &&
		       victim.peer == other && victim.stage != ANSWERED;

	if (victim.stage == BLOCKED && !is_reset(f)) {
		/* the ACA stays (SAM-5 §§7.2, 7.3, 7.5): it is cleared */
		peer_tmf(victim.peer, ISCSI_TMF_CLEAR_ACA, 0,
			 ISCSI_RESERVED_TAG, 0);
		fixture_settle(r);
		peer_expect(victim.peer, ISCSI_TMF_RESPONSE);
	}
	if (is_reset(f)) {
		assert_int_equal(attention(asker), 0x2903);
		assert_int_equal(attention(other), 0x2903);
	} else if (cleared) {
		assert_int_equal(attention(other), 0x2f00);
	}
}

static uint32_t ask(enum iscsi_tmf f)
{
	bool one = f == ISCSI_TMF_ABORT_TASK;

	return peer_tmf(asker, f, 0, one ? victim.itt : ISCSI_RESERVED_TAG,
			one ? victim.cmdsn : 0);
}

/* Some functions wait for data that the initiator still has to send
 * (§4.2.3.3). */
static void help_on(enum iscsi_tmf f)
{
	bool own = victim.peer == asker;
	bool waits = own && f != ISCSI_TMF_ABORT_TASK &&
		     f != ISCSI_TMF_I_T_NEXUS_RESET;

	fixture_messages(r);
	if (waits && victim.stage == WANTS_DATA)
		peer_solicited(asker, 0x77, 0);
	if (waits && f != ISCSI_TMF_TARGET_WARM_RESET)
		fill_the_hole();
	r->holding = false;
	fixture_settle(r);
}

static void one(enum iscsi_tmf f, enum stage stage, bool own, bool tas)
{
	unsigned told;
	uint32_t itt;

	print_message("function %u, %s, %s, TAS %d\n", f, stage_names[stage],
		      own ? "own" : "another's", tas);
	open_both();
	unit()->ctl.tas = tas;
	bring(own ? asker : other, stage);
	itt = ask(f);
	help_on(f);
	/* earlier responses come first; the aborted commands have none */
	told = responses(victim.peer,
			 stage == ANSWERED ? SCSI_GOOD : SCSI_TASK_ABORTED);
	if (stage == ANSWERED)
		assert_int_equal(told, 1);
	else
		assert_int_equal(told, tas && !own ? victim.n : 0);
	peer_expect_tmf(asker, itt,
			f == ISCSI_TMF_ABORT_TASK && stage == ANSWERED
				? ISCSI_TMF_NO_TASK
				: ISCSI_TMF_COMPLETE);
	if (!own || f == ISCSI_TMF_ABORT_TASK)
		fill_the_hole();
	fixture_settle(r);
	assert_true(peer_quiet(victim.peer));
	if (f == ISCSI_TMF_I_T_NEXUS_RESET) {
		assert_true(asker->gone);
	} else {
		expect_news(f, tas);
		while (attention(asker))
			;
	}
	while (attention(other))
		;
	assert_int_equal(r->buffers, 0);
	if (stage == WANTS_DATA) /* nothing is written later */
		assert_int_equal(r->memory[LBA * 512], 0x11);
	fixture_free(r);
}

static void test_own_commands(void **state)
{
	static const enum iscsi_tmf functions[] = {
		ISCSI_TMF_ABORT_TASK,	     ISCSI_TMF_ABORT_TASK_SET,
		ISCSI_TMF_CLEAR_TASK_SET,    ISCSI_TMF_LU_RESET,
		ISCSI_TMF_TARGET_WARM_RESET, ISCSI_TMF_I_T_NEXUS_RESET,
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(functions); i++)
		for (unsigned s = 0; s < STAGES; s++) {
			bool one_of_two =
				functions[i] == ISCSI_TMF_ABORT_TASK &&
				s == DORMANT;

			for (unsigned tas = 0; tas < 2 && !one_of_two; tas++)
				one(functions[i], (enum stage)s, true, tas);
		}
}

static void test_commands_of_another_session(void **state)
{
	static const enum iscsi_tmf functions[] = {
		ISCSI_TMF_CLEAR_TASK_SET,
		ISCSI_TMF_LU_RESET,
		ISCSI_TMF_TARGET_WARM_RESET,
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(functions); i++)
		for (unsigned s = 0; s < STAGES; s++)
			for (unsigned tas = 0; tas < 2; tas++)
				one(functions[i], (enum stage)s, false, tas);
}

/* A dormant command is aborted; the command that it waited for is not. */
static void test_abort_of_a_dormant_task(void **state)
{
	uint32_t itt;

	(void)state;
	open_both();
	bring(asker, DORMANT);
	itt = ask(ISCSI_TMF_ABORT_TASK);
	fixture_messages(r);
	peer_expect_tmf(asker, itt, ISCSI_TMF_COMPLETE);
	r->holding = false;
	fixture_settle(r);
	assert_int_equal(responses(asker, SCSI_GOOD), 1);
	assert_int_equal(attention(asker), 0);
	fixture_free(r);
}

/* A cold reset: each connection ends, in whatever stage. */
static void test_cold_reset_in_each_stage(void **state)
{
	(void)state;
	for (unsigned s = 0; s < STAGES; s++) {
		open_both();
		bring(other, (enum stage)s);
		ask(ISCSI_TMF_TARGET_COLD_RESET);
		r->holding = false;
		fixture_settle(r);
		fixture_settle(r); /* the function has ended the connections */
		assert_true(asker->gone && other->gone);
		assert_int_equal(r->buffers, 0);
		assert_true(tgt_worker_idle(tgt_worker(r->tgt, 0)));
		assert_true(tgt_worker_idle(tgt_worker(r->tgt, 1)));
		fixture_free(r);
	}
}

/* ---- queries ---- */

/* [RFC 7144: 6.3 #3] */
static void test_queries_in_each_stage_rfc7144_6_3(void **state)
{
	(void)state;
	for (unsigned s = 0; s < STAGES; s++) {
		uint8_t want = s == ANSWERED ? ISCSI_TMF_COMPLETE
					     : ISCSI_TMF_SUCCEEDED;
		uint32_t itt;

		open_both();
		bring(asker, (enum stage)s);
		itt = ask(ISCSI_TMF_QUERY_TASK_SET);
		responses(asker, SCSI_GOOD);
		peer_expect_tmf(asker, itt, want);
		itt = peer_tmf(asker, ISCSI_TMF_QUERY_TASK, 0, victim.itt,
			       victim.cmdsn);
		peer_expect_tmf(asker, itt, want);
		/* the query is for this unit only */
		itt = peer_tmf(asker, ISCSI_TMF_QUERY_TASK, (uint64_t)5 << 48,
			       victim.itt, victim.cmdsn);
		peer_expect_tmf(asker, itt, ISCSI_TMF_NO_LUN);
		/* commands of another session do not count */
		itt = peer_tmf(other, ISCSI_TMF_QUERY_TASK_SET, 0,
			       ISCSI_RESERVED_TAG, 0);
		peer_expect_tmf(other, itt, ISCSI_TMF_COMPLETE);
		if (s == WANTS_DATA)
			peer_solicited(asker, 0x77, 0);
		fill_the_hole();
		r->holding = false;
		fixture_settle(r);
		fixture_free(r);
	}
}

/* RFC 7144 §6.3.3: a missing command counts as received, as for ABORT TASK
 * (RFC 7143 §11.6.1 b). */
static void test_query_of_what_has_not_come(void **state)
{
	uint32_t lost, itt;

	(void)state;
	open_both();
	lost = asker->cmdsn++;
	peer_tur(asker);
	fixture_settle(r);
	assert_true(peer_quiet(asker));
	itt = peer_tmf(asker, ISCSI_TMF_QUERY_TASK, 0, 4711, lost);
	fixture_settle(r);
	peer_expect_tmf(asker, itt, ISCSI_TMF_COMPLETE);
	peer_expect(asker, ISCSI_SCSI_RESPONSE); /* the command after it */
	fixture_free(r);
}

/* ---- affected commands of the issuing session ---- */

/* §11.5.1: commands with a lower CmdSN. A later command is not affected,
 * although it is in the task set when the function starts. */
/* [RFC 7143: 4.2.2.1 #4] */
static void test_clear_task_set_leaves_later_ones(void **state)
{
	uint32_t itt, later;

	(void)state;
	open_both();
	r->holding = true;
	peer_read(asker, 0, 1);
	itt = peer_tmf(asker, ISCSI_TMF_CLEAR_TASK_SET, 0, ISCSI_RESERVED_TAG,
		       0);
	later = peer_read(asker, 0, 1);
	r->holding = false;
	fixture_settle(r);
	while (!peer_quiet(asker)) {
		struct sent *s = peer_next(asker);

		if (s->pdu.op == ISCSI_TMF_RESPONSE) {
			assert_int_equal(s->pdu.itt, itt);
			itt = 0;
		} else {
			assert_int_equal(s->pdu.itt, later);
			later = 0;
		}
	}
	assert_true(!itt && !later);
	fixture_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_commands),
		cmocka_unit_test(test_commands_of_another_session),
		cmocka_unit_test(test_abort_of_a_dormant_task),
		cmocka_unit_test(test_cold_reset_in_each_stage),
		cmocka_unit_test(test_queries_in_each_stage_rfc7144_6_3),
		cmocka_unit_test(test_query_of_what_has_not_come),
		cmocka_unit_test(test_clear_task_set_leaves_later_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
