/* SPDX-License-Identifier: BSD-2-Clause */
/* stats_test.c: the counters of a worker. */
#include "target/stats.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "env.h"
#include "target/internal.h"

/* ---- latencies ---- */

static void test_buckets(void **state)
{
	unsigned last = 0;

	(void)state;
	assert_int_equal(tgt_latency_bucket(-1), 0);
	assert_int_equal(tgt_latency_bucket(0), 0);
	assert_int_equal(tgt_latency_bucket((1 << TGT_LATENCY_FIRST) - 1), 0);
	assert_int_equal(tgt_latency_bucket(1 << TGT_LATENCY_FIRST), 1);
	assert_int_equal(tgt_latency_bucket(XTIME_NEVER),
			 TGT_LATENCY_BUCKETS - 1);
	assert_int_equal(tgt_latency_limit(TGT_LATENCY_BUCKETS - 1),
			 XTIME_NEVER);
	/* the limit of each bucket is the first latency of the next one */
	for (unsigned b = 0; b < TGT_LATENCY_BUCKETS - 1; b++) {
		xtime limit = tgt_latency_limit(b);

		assert_int_equal(tgt_latency_bucket(limit - 1), b);
		assert_int_equal(tgt_latency_bucket(limit), b + 1);
	}
	for (xtime v = 1; v < XTIME_S * 30; v += 1 + v / 7) {
		unsigned b = tgt_latency_bucket(v);

		assert_true(b >= last && v < tgt_latency_limit(b));
		last = b;
	}
}

static void test_sums(void **state)
{
	struct tgt_latency a = { .sum = 5 }, b = { .sum = 7 };

	(void)state;
	a.count[0] = 1;
	b.count[0] = 2;
	b.count[TGT_LATENCY_BUCKETS - 1] = 3;
	tgt_latency_add(&a, &b);
	assert_int_equal(tgt_latency_total(&a), 6);
	assert_int_equal(a.sum, 12);
}

/* ---- a worker ---- */

/* The time of the turn is 1 ms; each command ends 3 ms later. */
static xtime test_clock(void *arg, unsigned worker, bool exact)
{
	(void)arg;
	(void)worker;
	return exact ? 4 * XTIME_MS : XTIME_MS;
}

static unsigned asked; /* calls of count_later */

static void count_later(void *arg, unsigned worker)
{
	(void)arg;
	(void)worker;
	asked++;
}

static xtime slow_time = XTIME_NEVER;

static void count(struct tgt_config *cfg)
{
	cfg->clock = test_clock;
	cfg->count_later = count_later;
	cfg->slow_time = slow_time;
}

static int count_env(void **state)
{
	static struct env e;

	asked = 0;
	e = (struct env){ .r = fixture_new(1, count) };
	e.p = peer_session(e.r, 0, 1);
	peer_ready(e.p);
	*state = &e;
	return 0;
}

static int slow_env(void **state)
{
	slow_time = 3 * XTIME_MS;
	count_env(state);
	slow_time = XTIME_NEVER;
	return 0;
}

struct seen {
	unsigned n;
	struct tgt_unit_stats unit;
};

static void see_unit(void *arg, const struct tgt_unit_stats *u)
{
	struct seen *s = arg;

	s->n++;
	s->unit = *u;
}

static struct seen see(const struct env *e)
{
	struct seen s = { .n = 0 };

	tgt_worker_units(tgt_worker(e->r->tgt, 0), see_unit, &s);
	return s;
}

static uint64_t total(const struct seen *s, enum tgt_op op)
{
	return tgt_latency_total(&s->unit.op[op].latency);
}

/* Executes commands: two READs of 4 blocks and a WRITE of one. */
static void execute(const struct env *e)
{
	peer_read(e->p, 0, 4);
	peer_read(e->p, 0, 4);
	peer_write(e->p, 0, 1);
	peer_unsolicited(e->p, e->p->last_task, 0x11, 512, 0);
	fixture_settle(e->r);
}

static void test_unit(void **state)
{
	struct env *e = *state;
	struct seen before = see(e), s;

	assert_int_equal(before.n, 1); /* peer_ready */
	assert_int_equal(total(&before, TGT_OP_READ), 0);
	asked = 0;
	execute(e);
	assert_int_equal(asked, 1); /* once in a turn */
	s = see(e);
	assert_int_equal(s.n, 1);
	assert_ptr_equal(s.unit.lu, dev_lu_get(e->r->server, 0));
	assert_int_equal(total(&s, TGT_OP_READ), 2);
	assert_int_equal(total(&s, TGT_OP_WRITE), 1);
	assert_int_equal(total(&s, TGT_OP_OTHER), total(&before, TGT_OP_OTHER));
	assert_int_equal(s.unit.op[TGT_OP_READ].bytes, 2 * 4 * 512);
	assert_int_equal(s.unit.op[TGT_OP_WRITE].bytes, 512);
	assert_int_equal(s.unit.op[TGT_OP_READ].latency.sum, 6 * XTIME_MS);
	assert_int_equal(
		s.unit.op[TGT_OP_READ]
			.latency.count[tgt_latency_bucket(3 * XTIME_MS)],
		2);
	assert_int_equal(s.unit.depth, 0);
}

/* More commands in a turn than wait for its end. */
static void test_many(void **state)
{
	struct env *e = *state;
	struct seen s;

	for (unsigned i = 0; i < 100; i++)
		peer_read(e->p, 0, 1);
	fixture_settle(e->r);
	s = see(e);
	assert_int_equal(total(&s, TGT_OP_READ), 100);
}

static void test_operations(void **state)
{
	static const struct {
		uint8_t code, action;
		enum tgt_op op;
	} rows[] = {
		{ 0x08, 0, TGT_OP_READ },   { 0x28, 0, TGT_OP_READ },
		{ 0xa8, 0, TGT_OP_READ },   { 0x88, 0, TGT_OP_READ },
		{ 0x7f, 9, TGT_OP_READ },   { 0x0a, 0, TGT_OP_WRITE },
		{ 0x2a, 0, TGT_OP_WRITE },  { 0xaa, 0, TGT_OP_WRITE },
		{ 0x8a, 0, TGT_OP_WRITE },  { 0x2e, 0, TGT_OP_WRITE },
		{ 0xae, 0, TGT_OP_WRITE },  { 0x8e, 0, TGT_OP_WRITE },
		{ 0x7f, 11, TGT_OP_WRITE }, { 0x7f, 12, TGT_OP_WRITE },
		{ 0x7f, 10, TGT_OP_OTHER }, { 0x12, 0, TGT_OP_OTHER },
		{ 0x35, 0, TGT_OP_OTHER },  { 0x25, 0, TGT_OP_OTHER },
	};
	struct env *e = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t cdb[16] = { rows[i].code };
		struct seen before = see(e), s;

		cdb[9] = rows[i].action;
		peer_command(e->p, cdb, false, false, 0);
		fixture_settle(e->r);
		s = see(e);
		for (enum tgt_op o = 0; o < TGT_OPS; o++)
			assert_int_equal(total(&s, o) - total(&before, o),
					 o == rows[i].op);
	}
}

static void test_errors(void **state)
{
	struct env *e = *state;
	struct seen s;

	assert_int_equal(see(e).unit.errors[TGT_ERROR_ATTENTION], 1);
	peer_read(e->p, FIXTURE_BLOCKS, 1); /* LBA OUT OF RANGE */
	fixture_settle(e->r);
	s = see(e);
	assert_int_equal(s.unit.errors[TGT_ERROR_CHECK], 1);
	assert_int_equal(total(&s, TGT_OP_READ), 1);
	dev_lu_get(e->r->server, 0)->ctl.d_sense = true;
	peer_read(e->p, FIXTURE_BLOCKS, 1);
	fixture_settle(e->r);
	assert_int_equal(see(e).unit.errors[TGT_ERROR_CHECK], 2);
}

static void test_medium_error(void **state)
{
	struct env e = { .r = fixture_new_faulty(1, count, 1, ERR_MEDIUM) };

	(void)state;
	e.p = peer_session(e.r, 0, 1);
	peer_ready(e.p);
	peer_read(e.p, 0, 1);
	fixture_settle(e.r);
	assert_int_equal(see(&e).unit.errors[TGT_ERROR_MEDIUM], 1);
	fixture_free(e.r);
}

/* A command in progress counts for the queue depth, by what it waits for. */
static void test_depth(void **state)
{
	struct env *e = *state;
	struct tgt_worker_stats w;

	struct dm_task *written;

	peer_write(e->p, 0, 1); /* its data do not arrive */
	written = e->p->last_task;
	e->r->holding = true;
	peer_read(e->p, 0, 1);
	assert_int_equal(see(e).unit.depth, 2);
	tgt_worker_stats(tgt_worker(e->r->tgt, 0), &w);
	assert_int_equal(w.data, 1);
	assert_int_equal(w.device, 1);
	e->r->holding = false;
	fixture_release(e->r);
	peer_unsolicited(e->p, written, 0, 512, 0);
	fixture_settle(e->r);
	assert_int_equal(see(e).unit.depth, 0);
}

static void add_ended(void *arg, const struct tgt_ended *n)
{
	struct tgt_ended *sum = arg;

	tgt_counters_add(&sum->count, &n->count);
	snprintf(sum->target, sizeof(sum->target), "%s", n->target);
}

/* The counters of sessions that have ended are added up. */
static void test_ended(void **state)
{
	struct env *e = *state;
	struct tgt_ended sum = { .transport = NULL };
	struct peer *p = peer_session(e->r, 0, 2);

	peer_ready(p);
	tgt_worker_ended(tgt_worker(e->r->tgt, 0), add_ended, &sum);
	assert_int_equal(sum.count.commands, 0);
	peer_read(p, 0, 2);
	fixture_settle(e->r);
	peer_cut(p, ERR_CLOSED);
	fixture_settle(e->r);
	tgt_worker_ended(tgt_worker(e->r->tgt, 0), add_ended, &sum);
	assert_string_equal(sum.target, FIXTURE_TARGET);
	assert_int_equal(sum.count.bytes_read, 1024);
	assert_true(sum.count.commands >= 2);
	assert_int_equal(sum.count.errors, 1); /* POWER ON */
}

static void test_slow(void **state)
{
	struct env *e = *state;
	struct tgt_worker_stats w;

	peer_read(e->p, 7, 4);
	fixture_settle(e->r);
	tgt_worker_stats(tgt_worker(e->r->tgt, 0), &w);
	assert_true(w.slow >= 1);
	assert_non_null(
		strstr(e->r->last_trace,
		       "backstore disk: command 28, LBA 7, 2048 bytes took 3 "
		       "ms and ended with status 00"));
}

/* Refused logins by status; those beyond the table are not counted. */
static void test_refused(void **state)
{
	struct env *e = *state;
	struct tgt_worker *w = tgt_worker(e->r->tgt, 0);
	struct tgt_worker_stats s;

	tgt_stats_refused(w, 0x0201);
	tgt_stats_refused(w, 0x0302);
	tgt_stats_refused(w, 0x0101);
	tgt_stats_refused(w, 0x02ff);
	tgt_stats_refused(w, 0xffff);
	tgt_worker_stats(w, &s);
	for (unsigned i = 0; i < TGT_LOGIN_STATUSES; i++)
		assert_int_equal(s.refused[i], i == 1 || i == 18);
}

#define COUNTED(f) cmocka_unit_test_setup_teardown(f, count_env, env_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_sums),
		COUNTED(test_unit),
		COUNTED(test_many),
		COUNTED(test_operations),
		COUNTED(test_errors),
		cmocka_unit_test(test_medium_error),
		COUNTED(test_depth),
		COUNTED(test_ended),
		cmocka_unit_test_setup_teardown(test_slow, slow_env, env_close),
		COUNTED(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
