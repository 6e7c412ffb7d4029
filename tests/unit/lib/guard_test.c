/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard_test.c: which commands wait until their unit is identified (lib/guard.h), and what
 * becomes of them. The test takes the place of the initiator role (--wrap): it sees
 * each task that would be sent, and ends it as a target would.
 */
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "lib/internal.h"
#include "scsi/cdb.h"

#define TASKS 16

static struct {
	struct iser_context *ctx;
	struct iser_session *s;
	struct ini_task
		*sent[TASKS]; /* in progress, in the order of submission */
	unsigned nsent, killed, nclosed;
	struct iscsi_params params;
	/* the unit that answers */
	uint8_t name;
	uint64_t blocks;
	uint32_t block_size;
	bool not_ready;
	uint64_t forms[2]; /* of its LUN; none: each LUN has a unit */
} f;

static struct iser_io io[TASKS];
static unsigned done[TASKS]; /* calls of done of io[i] */

/* ---- the role ---- */

void __wrap_ini_submit(struct ini_session *s, struct ini_task *t, xtime now);
bool __wrap_ini_is_up(const struct ini_session *s);
void __wrap_ini_kill(struct ini_session *s, int err);
const struct iscsi_params *__wrap_ini_params(const struct ini_session *s);
int __wrap_ini_tpgt(const struct ini_session *s);

void __wrap_ini_submit(struct ini_session *s, struct ini_task *t, xtime now)
{
	(void)s;
	(void)now;
	assert_true(f.nsent < TASKS);
	t->err = 0;
	t->status = 0;
	t->sense_len = 0;
	t->moved = 0;
	if (!f.killed) {
		f.sent[f.nsent++] = t;
		return;
	}
	assert_true(f.nclosed++ < 100); /* else without end */
	t->err = ERR_CLOSED;
	t->done(t);
}

bool __wrap_ini_is_up(const struct ini_session *s)
{
	return s != NULL && !f.killed;
}

void __wrap_ini_kill(struct ini_session *s, int err)
{
	(void)s;
	(void)err;
	f.killed++;
}

const struct iscsi_params *__wrap_ini_params(const struct ini_session *s)
{
	(void)s;
	return &f.params;
}

int __wrap_ini_tpgt(const struct ini_session *s)
{
	(void)s;
	return 1;
}

/* ---- the target ---- */

static struct ini_task *take(unsigned i)
{
	struct ini_task *t = f.sent[i];

	memmove(f.sent + i, f.sent + i + 1,
		(f.nsent - i - 1) * sizeof(f.sent[0]));
	f.nsent--;
	return t;
}

static void end_good(struct ini_task *t)
{
	t->moved = (uint32_t)(t->write ? t->out.len : t->in.len);
	t->done(t);
}

static void end_sense(struct ini_task *t, uint8_t key, uint16_t asc)
{
	const struct scsi_sense s = { .key = key, .asc = asc };

	t->status = 0x02;
	t->sense_len = (uint16_t)scsi_sense_build(&s, true, t->sense);
	t->done(t);
}

static void give(struct ini_task *t, const uint8_t *b, size_t len)
{
	t->moved = (uint32_t)bufv_copy_in(&t->in, 0, b, MIN(len, t->in.len));
	t->done(t);
}

static bool has_unit(uint64_t wire)
{
	return !f.forms[0] || wire == f.forms[0] || wire == f.forms[1];
}

/* Answers a query of lib_ask. */
static void answer(struct ini_task *t)
{
	uint8_t b[36] = { 0 };

	if (t->cdb[0] == SCSI_REPORT_LUNS) {
		put_be32(b, f.forms[1] ? 16 : 8);
		put_be64(b + 8, f.forms[0]);
		put_be64(b + 16, f.forms[1]);
		give(t, b, f.forms[1] ? 24 : 16);
	} else if (!has_unit(t->lun)) {
		b[0] = 0x7f; /* 011b, 1Fh */
		give(t, b, 36);
	} else if (t->cdb[0] == SCSI_SERVICE_ACTION_IN_16 && f.not_ready) {
		end_sense(t, SENSE_NOT_READY, ASC_MEDIUM_NOT_PRESENT);
	} else if (t->cdb[0] == SCSI_SERVICE_ACTION_IN_16) {
		put_be64(b, f.blocks - 1);
		put_be32(b + 8, f.block_size);
		give(t, b, 32);
	} else if (t->cdb[1]) { /* VPD page 83h: an NAA of type 5 */
		const uint8_t page[] = {
			0,    0x83, 0,	  12,	1, 3, 0, 8,
			0x50, 0x01, 0x40, 0x5f, 0, 0, 0, f.name
		};

		assert_int_equal(t->cdb[2], 0x83);
		give(t, page, sizeof(page));
	} else {
		give(t, b, 36);
	}
}

static bool is_query(const struct ini_task *t)
{
	return t->cdb[0] == SCSI_INQUIRY || t->cdb[0] == SCSI_REPORT_LUNS ||
	       t->cdb[0] == SCSI_SERVICE_ACTION_IN_16;
}

static void run_loop(void)
{
	for (int i = 0; i < 3; i++)
		assert_int_equal(iser_service(f.ctx, 0), 0);
}

/* Answers all queries. */
static void identify(void)
{
	unsigned left = 100;

	run_loop();
	while (f.nsent && is_query(f.sent[f.nsent - 1])) {
		assert_true(left-- > 0);
		answer(take(f.nsent - 1));
		run_loop();
	}
}

/* ---- the caller ---- */

static void on_done(struct iser_io *one)
{
	done[one - io]++;
}

static void submit_to(unsigned i, int lun, uint8_t opcode)
{
	static uint8_t block[512];
	static struct iovec iov = { block, sizeof(block) };

	io[i] = (struct iser_io){ .lun = lun,
				  .cdb = { opcode },
				  .cdb_len = 10,
				  .direction = ISER_WRITE,
				  .iov = &iov,
				  .niov = 1,
				  .done = on_done };
	done[i] = 0;
	lib_io_submit(f.s, &io[i]);
}

static void submit(unsigned i)
{
	submit_to(i, 0, SCSI_WRITE_10);
}

static bool is_sent(unsigned i)
{
	for (unsigned k = 0; k < f.nsent; k++)
		if (container_of(f.sent[k], struct lib_task, task)->io ==
		    &io[i])
			return true;
	return false;
}

static struct ini_task *take_io(unsigned i)
{
	for (unsigned k = 0; k < f.nsent; k++)
		if (container_of(f.sent[k], struct lib_task, task)->io ==
		    &io[i])
			return take(k);
	fail();
	return NULL;
}

static void assert_ended(unsigned i, int err)
{
	run_loop();
	assert_int_equal(done[i], 1);
	assert_int_equal(io[i].err, err);
}

/* A session that has written to LUN 0, whose unit is known. */
static int begin(void **state)
{
	struct iser_url url;

	(void)state;
	memset(&f, 0, sizeof(f));
	f.name = 1;
	f.blocks = 100;
	f.block_size = 512;
	f.ctx = iser_context_new("iqn.2026-01.org.a:b");
	lib_default_url(&url);
	strcpy(url.target, "iqn.t");
	f.s = lib_session_new(f.ctx, &url, 8);
	assert_non_null(f.s);
	f.s->state = SESSION_UP;
	f.s->ini = (struct ini_session *)(void *)&f;
	submit(0);
	identify();
	assert_true(is_sent(0));
	end_good(take_io(0));
	assert_ended(0, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	f.s->ini = NULL;
	f.s->state = SESSION_DOWN;
	f.s->err = ISER_E_CLOSED;
	iser_disconnect(f.s);
	iser_context_free(f.ctx);
	return 0;
}

/* ---- tests ---- */

/* begin has one command, which waited: here only that it waits. */
static void test_first_command_of_a_lun(void **state)
{
	(void)state;
	submit_to(1, 7, SCSI_WRITE_10);
	submit_to(2, 7, SCSI_TEST_UNIT_READY);
	run_loop();
	assert_false(is_sent(1));
	assert_true(is_sent(2));
	end_good(take_io(2));
	identify();
	assert_true(is_sent(1));
	end_good(take_io(1));
	assert_ended(1, 0);
}

/* SAM-5 §4.7.2: a unit has the eight bytes that REPORT LUNS returns. */
static void test_form_of_a_lun_sam5_4_7(void **state)
{
	static const struct {
		int lun;
		uint64_t forms[2], sent;
	} cases[] = {
		/* flat addressing below 256, a bus number above */
		{ 7, { 0x4007ull << 48 }, 0x4007ull << 48 },
		{ 300, { 0x012cull << 48 }, 0x012cull << 48 },
		{ 301, { 0x412dull << 48 }, 0x412dull << 48 },
		/* both */
		{ 8, { 0x4008ull << 48, 0x0008ull << 48 }, 0x0008ull << 48 },
		{ 302, { 0x412eull << 48, 0x012eull << 48 }, 0x412eull << 48 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		memcpy(f.forms, cases[i].forms, sizeof(f.forms));
		submit_to(1, cases[i].lun, SCSI_WRITE_10);
		identify();
		assert_true(is_sent(1));
		assert_true(f.sent[0]->lun == cases[i].sent);
		end_good(take_io(1));
		assert_ended(1, 0);
	}
}

/* Another level, and another unit. */
static void test_no_form_of_a_lun(void **state)
{
	static const uint64_t others[] = { 0xc107ull << 48,
					   0x0007000100000000ull,
					   0x4008ull << 48 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		f.forms[0] = others[i];
		submit_to(1, 7, SCSI_WRITE_10);
		identify();
		assert_ended(1, ISER_E_SCSI);
		assert_int_equal(f.nsent, 0);
	}
}

/* W1 meets the attention, W2 was in progress, W3 is new. */
static void meet(uint16_t asc)
{
	submit(1);
	submit(2);
	end_sense(take_io(1), SENSE_UNIT_ATTENTION, asc);
	submit(3);
	end_good(take_io(2));
	run_loop();
}

static const uint16_t doubts[] = { 0x2900, 0x2901, 0x2903, 0x2907,
				   0x2a09, 0x3f03, 0x3f05, 0x3f0e };

static void test_same_unit_goes_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(doubts); i++) {
		meet(doubts[i]);
		assert_int_equal(f.nsent, 1);
		assert_true(is_query(f.sent[0]));
		assert_int_equal(done[1] + done[2] + done[3], 0);
		identify();
		assert_ended(2, 0);
		assert_true(is_sent(1) && is_sent(3));
		end_good(take_io(1));
		end_good(take_io(3));
		assert_ended(1, 0);
		assert_ended(3, 0);
	}
}

/* No WRITE of the three is reported as done, none is sent any more. */
static void assert_refused(const char *why)
{
	identify();
	assert_int_equal(f.nsent, 0);
	for (unsigned i = 1; i <= 3; i++)
		assert_ended(i, ISER_E_CHANGED);
	submit(4);
	assert_ended(4, ISER_E_CHANGED);
	assert_non_null(strstr(iser_message(f.ctx), why));
	assert_int_equal(f.nsent, 0);
}

static void test_other_unit(void **state)
{
	(void)state;
	meet(ASC_INQUIRY_CHANGED);
	f.name = 2;
	assert_refused("is naa.5001405f00000002, not naa.5001405f00000001");
	/* what asks the unit about itself passes */
	submit_to(5, 0, SCSI_TEST_UNIT_READY);
	assert_true(is_sent(5));
	end_good(take_io(5));
}

static void test_other_block_size(void **state)
{
	(void)state;
	meet(ASC_CAPACITY_CHANGED);
	f.block_size = 4096;
	assert_refused("has 100 blocks of 4096 bytes, not 100 of 512");
}

static void test_smaller_unit(void **state)
{
	(void)state;
	meet(ASC_CAPACITY_CHANGED);
	f.blocks = 99;
	assert_refused("has 99 blocks of 512 bytes, not 100 of 512");
}

/* A unit that was extended is the same one. */
static void test_larger_unit(void **state)
{
	(void)state;
	meet(ASC_CAPACITY_CHANGED);
	f.blocks = 200;
	identify();
	assert_ended(2, 0);
	end_good(take_io(1));
	end_good(take_io(3));
	meet(ASC_CAPACITY_CHANGED);
	f.blocks = 100;
	assert_refused("has 100 blocks");
}

/* The unit that was refused is back: its attention says so. */
static void test_unit_returns(void **state)
{
	(void)state;
	meet(ASC_INQUIRY_CHANGED);
	f.name = 2;
	assert_refused("not naa.5001405f00000001");
	submit_to(5, 0, SCSI_TEST_UNIT_READY);
	end_sense(take_io(5), SENSE_UNIT_ATTENTION, ASC_INQUIRY_CHANGED);
	f.name = 1;
	identify();
	submit(6);
	assert_true(is_sent(6));
	end_good(take_io(6));
	while (f.nsent)
		end_good(take(0));
}

/* Other attentions concern no identity: the command is issued again at once. */
static void test_other_attentions(void **state)
{
	static const uint16_t ascs[] = { 0x2a01, 0x2a06, 0x2f00, 0x3807 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ascs); i++) {
		submit(1);
		end_sense(take_io(1), SENSE_UNIT_ATTENTION, ascs[i]);
		run_loop();
		assert_int_equal(f.nsent, 1);
		end_good(take_io(1));
		assert_ended(1, 0);
	}
}

/* Commands that the target has dropped, with a status and without: the LUN may have
 * another unit now. */
static void test_dropped_commands(void **state)
{
	(void)state;
	f.s->url.reconnect = 9;
	for (unsigned how = 0; how < 3; how++) {
		struct ini_task *t;

		submit(1);
		t = take_io(1);
		f.s->url.reconnect = how == 2 ? 0 : 9;
		t->err = how == 1 ? ERR_ABORTED : 0;
		t->status = how == 1 ? 0 : 0x40; /* TASK ABORTED */
		t->done(t);
		submit(2);
		run_loop();
		assert_false(is_sent(1) || is_sent(2));
		identify();
		if (how < 2)
			end_good(take_io(1));
		assert_ended(1, how == 2 ? ISER_E_SCSI : 0);
		end_good(take_io(2));
		assert_ended(2, 0);
	}
}

static void end_dropped(struct ini_task *t)
{
	t->status = 0x40; /* TASK ABORTED */
	t->done(t);
}

/* The target ends the commands that were in progress one after the other: the unit is
 * identified meanwhile. */
static void test_dropped_one_by_one(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 8; i++)
		submit(i);
	for (unsigned i = 1; i <= 8; i++) {
		end_dropped(take_io(i));
		run_loop();
		assert_int_equal(done[i], 0);
		if (i % 3 == 1) { /* INQUIRY, READ CAPACITY */
			answer(take(f.nsent - 1));
			run_loop();
		}
	}
	submit(9);
	identify();
	for (unsigned i = 1; i <= 8; i++) {
		assert_ended(i, ISER_E_SCSI);
		assert_int_equal(io[i].status, 0x40);
	}
	end_good(take_io(9));
	assert_ended(9, 0);
}

/* SPC-4 §6.33: one LUN reports the attention that is about all of them. */
static void test_reported_luns(void **state)
{
	(void)state;
	submit_to(5, 1, SCSI_WRITE_10);
	identify();
	end_good(take_io(5));
	submit(1);
	end_sense(take_io(1), SENSE_UNIT_ATTENTION, ASC_REPORTED_LUNS_CHANGED);
	submit_to(6, 1, SCSI_WRITE_10);
	run_loop();
	assert_false(is_sent(6));
	identify();
	assert_true(is_sent(1) && is_sent(6));
	end_good(take_io(1));
	end_good(take_io(6));
}

/* The caller has the status, and the other commands go their way. */
static void test_no_retry(void **state)
{
	(void)state;
	submit(1);
	io[2] = io[1];
	io[2].no_retry = true;
	done[2] = 0;
	lib_io_submit(f.s, &io[2]);
	end_sense(take_io(2), SENSE_UNIT_ATTENTION, ASC_INQUIRY_CHANGED);
	assert_ended(2, ISER_E_SCSI);
	end_good(take_io(1));
	run_loop();
	assert_int_equal(done[1], 0);
	identify();
	assert_ended(1, 0);
}

/* An attention between two queries: what was asked before counts no more. */
static void test_attention_in_between(void **state)
{
	(void)state;
	submit(1);
	submit_to(2, 0, SCSI_TEST_UNIT_READY);
	end_sense(take_io(1), SENSE_UNIT_ATTENTION, ASC_INQUIRY_CHANGED);
	run_loop();
	answer(take(f.nsent - 1)); /* INQUIRY */
	run_loop();
	answer(take(f.nsent - 1)); /* READ CAPACITY */
	run_loop();
	f.block_size = 4096;
	end_sense(take_io(2), SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
	run_loop();
	assert_true(is_sent(2)); /* issued again */
	end_good(take_io(2));
	identify();
	assert_ended(1, ISER_E_CHANGED);
}

/* A unit that cannot be asked: the commands end as the query, the next one asks. */
static void test_not_ready(void **state)
{
	struct scsi_sense sense;

	(void)state;
	f.s->url.retry = 0;
	f.not_ready = true;
	meet(ASC_POWER_ON);
	identify();
	for (unsigned i = 1; i <= 3; i++) {
		assert_ended(i, ISER_E_SCSI);
		assert_int_equal(scsi_sense_parse(&sense, io[i].sense,
						  io[i].sense_len),
				 0);
		assert_int_equal(sense.asc, ASC_MEDIUM_NOT_PRESENT);
	}
	f.not_ready = false;
	submit(4);
	identify();
	assert_true(is_sent(4));
	end_good(take_io(4));
}

static void test_attentions_without_end(void **state)
{
	unsigned tries = 0;

	(void)state;
	submit(1);
	while (!done[1]) {
		assert_true(tries++ < 20);
		end_sense(take_io(1), SENSE_UNIT_ATTENTION, ASC_POWER_ON);
		identify();
	}
	assert_ended(1, ISER_E_SCSI);
	assert_int_equal(tries, LIB_ATTENTIONS_MAX + 1);
}

static void test_abort(void **state)
{
	(void)state;
	meet(ASC_INQUIRY_CHANGED);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(iser_abort(&io[i]), 0);
		assert_ended(i, ISER_E_ABORTED);
	}
	identify();
	assert_int_equal(f.nsent, 0);
}

/* As many commands wait as the session has tasks: the queries have one of their own. */
static void test_all_tasks_wait(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++)
		submit(i);
	for (unsigned i = 0; i < 8; i++)
		end_sense(take_io(i), SENSE_UNIT_ATTENTION, ASC_POWER_ON);
	identify();
	for (unsigned i = 0; i < 8; i++)
		end_good(take_io(i));
	for (unsigned i = 0; i < 8; i++)
		assert_ended(i, 0);
}

/* ---- RFC 7143 §6.3.5: the next login is a new I_T nexus ---- */

static void lose_session(void)
{
	f.killed = 1;
	while (f.nsent) {
		struct ini_task *t = take(0);

		t->err = ERR_CLOSED;
		t->done(t);
	}
	lib_hold_lost(f.s, lib_reconnect_takes);
	f.s->ini = NULL;
}

/* What lib_reconnect_logged_in does. */
static void log_in(void)
{
	struct lib_task *lt, *redo = f.s->reconnect.redo;

	f.killed = 0;
	f.s->ini = (struct ini_session *)(void *)&f;
	f.s->state = SESSION_UP;
	f.s->reconnect.redo = NULL;
	f.s->reconnect.redo_tail = &f.s->reconnect.redo;
	while ((lt = redo)) {
		redo = lt->next;
		lib_hold_issue(f.s, lt);
	}
	lib_hold_resume(f.s);
	lib_io_pump(f.s);
}

static void test_reconnect(void **state)
{
	(void)state;
	f.s->url.reconnect = 3;
	for (uint8_t name = 1; name <= 2; name++) {
		submit(1);
		lose_session();
		submit(2);
		log_in();
		assert_int_equal(f.nsent, 0);
		f.name = name;
		identify();
		if (name == 1) {
			end_good(take_io(1));
			end_good(take_io(2));
		}
		assert_ended(1, name == 1 ? 0 : ISER_E_CHANGED);
		assert_ended(2, name == 1 ? 0 : ISER_E_CHANGED);
		assert_int_equal(f.nsent, 0);
	}
}

/* Results that waited are not reported after the loss: the commands are issued again,
 * and the query begins anew. */
static void test_loss_in_doubt(void **state)
{
	(void)state;
	f.s->url.reconnect = 3;
	meet(ASC_POWER_ON);
	answer(take(0));
	f.killed = 1; /* the role has ended */
	lose_session();
	assert_int_equal(done[1] + done[2] + done[3], 0);
	log_in();
	for (unsigned i = 1; i <= 3; i++)
		assert_false(is_sent(i));
	identify();
	for (unsigned i = 1; i <= 3; i++)
		end_good(take_io(i));
	for (unsigned i = 1; i <= 3; i++)
		assert_ended(i, 0);
}

/* A unit that does not answer the queries: the connection is given up. */
static void test_no_answer(void **state)
{
	struct ini_task *t;

	(void)state;
	meet(ASC_POWER_ON);
	t = take(0);
	t->err = ERR_TIMEOUT;
	t->done(t);
	run_loop();
	assert_int_equal(f.killed, 1);
	assert_int_equal(done[1] + done[2] + done[3], 0);
	f.s->err = ISER_E_TIMEOUT;
	lib_hold_lost(f.s, lib_reconnect_takes);
	lib_hold_end(f.s, ISER_E_TIMEOUT);
	lib_io_fail_queue(f.s, ISER_E_TIMEOUT);
	assert_ended(1, ISER_E_TIMEOUT);
	assert_ended(2, ISER_E_CLOSED);
	assert_ended(3, ISER_E_TIMEOUT);
}

/* The session has ended, which libiser hears later in the loop: until then it asks
 * nothing, or the loop would not get so far. */
static void test_end_that_is_not_known_yet(void **state)
{
	(void)state;
	submit_to(1, 7, SCSI_WRITE_10);
	f.killed = 1;
	run_loop();
	submit_to(2, 7, SCSI_WRITE_10);
	run_loop();
	assert_int_equal(done[1] + done[2], 0);
	f.s->err = ISER_E_CLOSED;
	lib_hold_lost(f.s, lib_reconnect_takes);
	lib_io_fail_queue(f.s, ISER_E_CLOSED);
	assert_ended(1, ISER_E_CLOSED);
	assert_ended(2, ISER_E_CLOSED);
}

/* What READ CAPACITY has reported before the first command counts. */
static void test_capacity_that_the_caller_knows(void **state)
{
	const struct iser_capacity c = { .blocks = 100, .block_size = 512 };

	(void)state;
	lib_guard_note(f.s, 5, &c);
	f.block_size = 4096;
	submit_to(1, 5, SCSI_WRITE_10);
	identify();
	assert_ended(1, ISER_E_CHANGED);
	assert_int_equal(f.nsent, 0);
}

static void test_covers(void **state)
{
	static const uint8_t pass[] = { 0x00, 0x03, 0x12, 0x1a, 0x25, 0x4d,
					0x5a, 0x5e, 0x5f, 0xa0, 0xa3 };
	struct iser_io one = { .cdb_len = 16 };

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		one.cdb[0] = (uint8_t)op;
		if (lib_reconnect_changes_data(one.cdb[0]))
			assert_true(lib_guard_covers(&one));
		if (memchr(pass, (int)op, sizeof(pass)))
			assert_false(lib_guard_covers(&one));
	}
	one.cdb[0] = SCSI_SERVICE_ACTION_IN_16;
	one.cdb[1] = SCSI_SAI_GET_LBA_STATUS;
	assert_true(lib_guard_covers(&one));
	one.cdb[1] = SCSI_SAI_READ_CAPACITY_16;
	assert_false(lib_guard_covers(&one));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_command_of_a_lun),
		TEST(test_form_of_a_lun_sam5_4_7),
		TEST(test_no_form_of_a_lun),
		TEST(test_same_unit_goes_on),
		TEST(test_other_unit),
		TEST(test_other_block_size),
		TEST(test_smaller_unit),
		TEST(test_larger_unit),
		TEST(test_unit_returns),
		TEST(test_other_attentions),
		TEST(test_dropped_commands),
		TEST(test_dropped_one_by_one),
		TEST(test_reported_luns),
		TEST(test_no_retry),
		TEST(test_attention_in_between),
		TEST(test_not_ready),
		TEST(test_attentions_without_end),
		TEST(test_abort),
		TEST(test_all_tasks_wait),
		TEST(test_reconnect),
		TEST(test_loss_in_doubt),
		TEST(test_no_answer),
		TEST(test_end_that_is_not_known_yet),
		TEST(test_capacity_that_the_caller_knows),
		cmocka_unit_test(test_covers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
