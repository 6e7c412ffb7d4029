/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stall_test.c: connections whose peer holds memory without progress. The clock
 * is the test; each check is a quarter of data_time after the one before.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "target/internal.h"

#define DATA_TIME (8 * XTIME_S)
#define CHECK	  (DATA_TIME / 4)
#define ENOUGH	  (64u << 10) /* bytes that are progress */

static void change(struct tgt_config *cfg)
{
	cfg->data_time = DATA_TIME;
	cfg->idle_time = XTIME_NEVER;
}

static struct fixture *r;
static struct peer *p;
static xtime now;
static char reason[256]; /* of the last timeout */

static void keep_reason(struct trace *t, enum trace_event e,
			const struct trace_about *about, const char *text)
{
	(void)t;
	(void)about;
	if (e == TRACE_CONN_TIMEOUT)
		snprintf(reason, sizeof(reason), "%s", text);
}

static int open_session(void **state)
{
	(void)state;
	r = fixture_new(1, change);
	r->trace.emit = keep_reason;
	reason[0] = '\0';
	p = peer_session(r, 0, 1);
	peer_ready(p);
	now = XTIME_S;
	return 0;
}

static int close_session(void **state)
{
	(void)state;
	fixture_free(r);
	return 0;
}

/* n checks; returns whether the connection still exists. */
static bool checks(unsigned n)
{
	while (n-- && !p->terminated) {
		now += CHECK;
		tgt_worker_expire(tgt_worker(r->tgt, 0), now);
	}
	return !p->terminated;
}

static void expect_dropped(const char *why)
{
	char expected[128];

	assert_true(p->terminated);
	assert_int_equal(p->how, DM_TERMINATE_NOW);
	assert_int_equal(p->terminate_err, ERR_TIMEOUT);
	snprintf(expected, sizeof(expected), "%s for 8 s; connection dropped",
		 why);
	assert_non_null(strstr(reason, expected));
}

/* ---- tests ---- */

static void test_when_it_is_checked(void **state)
{
	const struct tgt_worker *w = tgt_worker(r->tgt, 0);

	(void)state;
	assert_true(tgt_worker_deadline(w) == XTIME_S + CHECK);
	r->rearmed = false;
	peer_session(r, 0, 2);
	assert_true(r->rearmed);
	assert_true(checks(3));
	assert_true(tgt_worker_deadline(w) == now + CHECK);
	tgt_worker_expire(tgt_worker(r->tgt, 0), now + CHECK - 1);
	assert_true(tgt_worker_deadline(w) == now + CHECK);
}

/* A process that stood still, or whose virtual machine did, begins all times anew: the initiator
 * could not move anything meanwhile. */
static void test_process_that_stood_still(void **state)
{
	(void)state;
	peer_write(p, 0, 8); /* its data do not come */
	assert_true(checks(4));
	now += 600 * XTIME_S;
	tgt_worker_expire(tgt_worker(r->tgt, 0), now);
	assert_true(checks(3));
	assert_false(checks(1));
	expect_dropped("no data came for a WRITE");
}

static void never(struct tgt_config *cfg)
{
	change(cfg);
	cfg->data_time = XTIME_NEVER;
}

static void test_sessions_without_a_limit(void **state)
{
	struct fixture *f = fixture_new(1, never);
	const struct tgt_worker *w = tgt_worker(f->tgt, 0);

	(void)state;
	peer_session(f, 0, 1);
	/* only the first check of the clock */
	assert_true(tgt_worker_deadline(w) == XTIME_S + f->cfg.login_time);
	fixture_free(f);
	f = fixture_new(1, change);
	peer_discovery(f);
	assert_true(tgt_worker_deadline(tgt_worker(f->tgt, 0)) ==
		    XTIME_S + f->cfg.discovery_time);
	fixture_free(f);
}

static void test_idle_connection_stays(void **state)
{
	(void)state;
	assert_true(checks(40));
}

/* A session has tasks from its first command on, until it rests. */
static void test_idle_session_rests(void **state)
{
	const struct tgt_session *s = list_entry(
		r->tgt->workers[0].sessions.next, struct tgt_session, link);

	(void)state;
	r->holding = true;
	for (unsigned i = 0; i < 8; i++)
		peer_read(p, i, 1);
	fixture_settle(r);
	assert_true(checks(3)); /* its commands are in progress */
	assert_true(s->tasks.fresh >= 8);
	fixture_release(r);
	r->holding = false;
	fixture_settle(r);
	assert_true(checks(2));
	assert_int_equal(s->tasks.used, 0);
	assert_null(s->tasks.all);
	peer_ready(p);
	assert_non_null(s->tasks.all);
	assert_true(checks(3));
	assert_null(s->tasks.all);
}

static void test_no_data_for_a_write(void **state)
{
	(void)state;
	assert_true(checks(3));
	peer_write(p, 0, 8);
	assert_true(checks(4)); /* the first one begins to wait */
	assert_false(checks(1));
	expect_dropped("no data came for a WRITE");
}

static void test_data_of_a_write_are_progress(void **state)
{
	(void)state;
	peer_write(p, 0, 2048);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(checks(4));
		p->progress.in += ENOUGH;
	}
	assert_true(checks(4));
	p->progress.in += ENOUGH - 1; /* too few */
	p->progress.out += ENOUGH;    /* another direction */
	assert_false(checks(1));
	expect_dropped("no data came for a WRITE");
}

/* Another WRITE is the oldest one. */
static void test_end_of_a_write_is_progress(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		peer_write(p, 0, 1);
		assert_true(checks(4));
		peer_unsolicited(p, p->last_task, 1, 512, 0);
		fixture_settle(r);
		peer_expect_status(p, SCSI_GOOD);
	}
	assert_true(checks(10));
}

static void test_response_that_is_not_taken(void **state)
{
	(void)state;
	peer_read(p, 0, 1);
	fixture_messages(r);
	fixture_release(r);
	fixture_messages(r); /* the response is on its way */
	for (unsigned i = 0; i < 10; i++) {
		assert_true(checks(4));
		p->progress.out += ENOUGH;
	}
	assert_true(checks(4));
	p->progress.out += ENOUGH - 1;
	p->progress.in += ENOUGH;
	assert_false(checks(1));
	expect_dropped("nothing of what was sent was taken");
}

static void test_missing_cmdsn(void **state)
{
	uint32_t first = p->cmdsn;

	(void)state;
	p->cmdsn = first + 2;
	peer_tur(p);
	assert_true(checks(4));
	p->cmdsn = first; /* another one is still missing */
	peer_tur(p);
	fixture_settle(r);
	peer_expect_status(p, SCSI_GOOD);
	assert_true(checks(4));
	p->progress.in += ENOUGH;
	p->progress.out += ENOUGH;
	assert_false(checks(1));
	expect_dropped("a CmdSN before those received is missing");
}

static void test_cmdsn_that_comes_late(void **state)
{
	uint32_t first = p->cmdsn;

	(void)state;
	p->cmdsn = first + 1;
	peer_tur(p);
	assert_true(checks(4));
	p->cmdsn = first;
	peer_tur(p);
	fixture_settle(r);
	assert_true(checks(10));
}

#define S(name) \
 cmocka_unit_test_setup_teardown(name, open_session, close_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(test_when_it_is_checked),
		S(test_process_that_stood_still),
		cmocka_unit_test(test_sessions_without_a_limit),
		S(test_idle_connection_stays),
		S(test_idle_session_rests),
		S(test_no_data_for_a_write),
		S(test_data_of_a_write_are_progress),
		S(test_end_of_a_write_is_progress),
		S(test_response_that_is_not_taken),
		S(test_missing_cmdsn),
		S(test_cmdsn_that_comes_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
