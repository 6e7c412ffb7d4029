/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.c: the loop of iser bench. Without --rate the loop is closed: each job submits its
 * next operation when the last one has completed. With --rate it is open: operations
 * begin when they are due, and their latency counts from then, also if all jobs were
 * busy.
 */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "tools/bench/bench.h"

#define DRAIN_NS 2000000000u /* for operations in progress at a signal */
#define POLL_MS	 100	     /* how often the loop looks at the signals */

/* ---- operations ---- */

static void rest(struct bench_job *j)
{
	j->next = j->b->pace.idle;
	j->b->pace.idle = j;
}

/* Submits the next operation of j, or makes j idle if it finds no place for it. */
static bool submit_job(struct bench_job *j, uint64_t start)
{
	struct bench *b = j->b;

	if (!bench_place(j)) {
		rest(j);
		return false;
	}
	if (b->places.written && j->write)
		bench_fill(j);
	j->iov.iov_len = (size_t)j->blocks * b->cap.block_size;
	iser_prep_rw(&j->io, b->url.lun, j->write, j->lba, j->blocks);
	j->start = start;
	b->begun += j->iov.iov_len;
	b->in_progress++;
	iser_submit(j->s, &j->io);
	return true;
}

static void fail_job(struct bench_job *j)
{
	if (!j->b->code && !j->b->given_up)
		j->b->code = say_command(&j->io, "bench");
	j->b->stopping = true;
}

static void count(struct bench_figures *f, const struct bench_job *j,
		  uint64_t took)
{
	hist_add(&f->latency[j->write], took);
	f->bytes[j->write] += j->iov.iov_len;
}

/* Counts the operation that has succeeded. */
static void count_job(struct bench_job *j, uint64_t now)
{
	struct bench *b = j->b;
	uint64_t took = now > j->start ? now - j->start : 0;

	b->last = now;
	if (now < b->measure_from)
		return;
	count(b->all, j, took);
	if (b->record.now)
		count(b->record.now, j, took);
}

static void job_completed(struct iser_io *io)
{
	struct bench_job *j = io->arg;
	struct bench *b = j->b;
	uint64_t now = now_ns();

	b->in_progress--;
	b->ended++;
	bench_place_done(j);
	if (io->err) {
		fail_job(j);
		return;
	}
	count_job(j, now);
	if (b->places.written && !j->write && !bench_check(j)) {
		b->code = b->code ? b->code : EXIT_DIFFERS;
		b->stopping = true;
	}
	if (now >= b->stop_at || (b->o.amount && b->begun >= b->o.amount))
		b->stopping = true;
	if (b->stopping)
		return;
	if (b->pace.gap > 0)
		rest(j);
	else
		submit_job(j, now);
}

/* ---- the open loop ---- */

static void next_due(struct bench *b)
{
	double gap = b->pace.gap;

	if (b->o.arrivals == BENCH_RANDOM)
		gap *= -log(1 - (double)(bench_random(b) >> 11) /
					9007199254740992.0);
	b->pace.due += gap;
}

/* Gives jobs without an operation the next ones: those that are due, and in a closed
 * loop any. */
static void feed(struct bench *b, uint64_t now)
{
	while (b->pace.idle && !b->stopping &&
	       (b->pace.gap == 0 || b->pace.due <= (double)now)) {
		struct bench_job *j = b->pace.idle;

		b->pace.idle = j->next;
		if (!submit_job(j,
				b->pace.gap > 0 ? (uint64_t)b->pace.due : now))
			return;
		if (b->pace.gap > 0)
			next_due(b);
	}
}

/* Stops an open loop at its end, and counts the operations that were due by then and
 * have not begun. */
static void stop_pace(struct bench *b, uint64_t now)
{
	if (b->pace.gap == 0 || b->stopping || now < b->stop_at)
		return;
	b->stopping = true;
	for (; b->pace.due < (double)b->stop_at; next_due(b))
		b->pace.late++;
}

/* Waits until the next operation is due, or for an event. iser_service counts
 * milliseconds, which is too coarse for that. */
static int wait_for_due(struct bench *b)
{
	struct pollfd p = { .fd = iser_get_fd(b->ctx),
			    .events = (short)iser_which_events(b->ctx) };
	double ns = b->pace.due - (double)now_ns();
	int timeout = iser_next_timeout(b->ctx);
	struct timespec t;

	if (timeout >= 0)
		ns = fmin(ns, timeout * 1e6);
	ns = fmax(0, fmin(ns, POLL_MS * 1e6));
	t = (struct timespec){ .tv_nsec = (long)ns };
	if (!b->o.spin)
		ppoll(&p, 1, &t, NULL);
	return iser_service(b->ctx, 0);
}

/* ---- the loop ---- */

static int turn(struct bench *b)
{
	uint64_t now = now_ns();

	bench_record_turn(b, now);
	stop_pace(b, now);
	feed(b, now);
	if (b->pace.gap > 0 && b->pace.idle && !b->stopping)
		return wait_for_due(b);
	return iser_service(b->ctx, POLL_MS);
}

/* Runs until no operation is in progress. After a failure or a signal nothing is
 * submitted, and the operations in progress have DRAIN_NS; a second signal ends
 * the wait. */
static void run_loop(struct bench *b)
{
	uint64_t drain_until = UINT64_MAX;

	while ((b->in_progress || (!b->stopping && b->pace.gap > 0)) &&
	       !turn(b)) {
		b->given_up = now_ns() >= drain_until || caught_signals() > 1;
		if (b->given_up)
			break;
		if ((caught_signals() || b->code) &&
		    drain_until == UINT64_MAX) {
			b->stopping = true;
			drain_until = now_ns() + DRAIN_NS;
		}
	}
	b->interrupted = caught_signals() > 0;
}

static double cpu_seconds(bool system)
{
	struct rusage u;
	const struct timeval *t = system ? &u.ru_stime : &u.ru_utime;

	getrusage(RUSAGE_SELF, &u);
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Adds the counters of all sessions to sum; with sign -1, subtracts them. */
static void add_counters(struct bench *b, int sign, struct iser_counters *sum)
{
	for (unsigned i = 0; i < b->o.connections; i++) {
		struct iser_counters c;

		iser_get_counters(b->session[i], &c);
		sum->rx_calls += (uint64_t)sign * c.rx_calls;
		sum->tx_calls += (uint64_t)sign * c.tx_calls;
		sum->copied_bytes += (uint64_t)sign * c.copied_bytes;
		sum->reconnects += (uint64_t)sign * c.reconnects;
	}
}

static void set_times(struct bench *b, uint64_t now)
{
	const struct bench_options *o = &b->o;

	b->start = now;
	/* with --amount there is no ramp */
	b->measure_from = now + (o->amount ? 0 : (uint64_t)(o->ramp * 1e9));
	b->stop_at = o->amount ? UINT64_MAX
			       : b->measure_from + (uint64_t)(o->seconds * 1e9);
	if (o->rate) {
		prctl(PR_SET_TIMERSLACK, 1); /* ns */
		b->pace.gap = 1e9 / (double)o->rate;
		b->pace.due = (double)now;
	}
	b->record.from = b->measure_from;
	b->record.until = b->measure_from + (uint64_t)(o->interval * 1e9);
}

static void measure(struct bench *b, struct bench_job *jobs, unsigned n,
		    struct bench_result *r)
{
	uint64_t now;

	iser_set_spin(b->ctx, b->o.spin);
	iser_get_params(b->session[0], &r->params);
	r->user = cpu_seconds(false);
	r->system = cpu_seconds(true);
	add_counters(b, -1, &r->calls);
	catch_signals();
	now = now_ns();
	set_times(b, now);
	for (unsigned i = 0; i < n; i++) {
		if (b->pace.gap > 0)
			rest(&jobs[n - 1 - i]);
		else if (!b->o.amount || b->begun < b->o.amount)
			submit_job(&jobs[i], now);
	}
	run_loop(b);
	now = b->code || b->interrupted ? b->last : now_ns();
	r->seconds = now > b->measure_from
			     ? (double)(now - b->measure_from) / 1e9
			     : 1e-9;
	r->user = cpu_seconds(false) - r->user;
	r->system = cpu_seconds(true) - r->system;
	add_counters(b, 1, &r->calls);
}

/* ---- set-up ---- */

/* Refuses writes that were not permitted, and a unit that takes none. */
static int check_writes(struct bench *b)
{
	struct iser_unit *u;
	const char *why;
	int err;

	if (!b->o.write_percent)
		return 0;
	u = iser_unit_open(b->session[0], b->url.lun, &err);
	if (!u)
		return say_failed(b->ctx, err);
	why = read_only_reason(u);
	iser_unit_close(u);
	if (why) {
		say("%s: %s; use --rw read or randread", b->o.url_text, why);
		return EXIT_INVALID;
	}
	if (b->o.may_write)
		return 0;
	say("%s: writes destroy the data of the unit; give "
	    "--yes-overwrite to allow them",
	    b->o.url_text);
	return EXIT_INVALID;
}

static int connect_all(struct bench *b)
{
	int code = 0, err;

	for (unsigned i = 0; i < b->o.connections; i++) {
		struct iser_session *s =
			open_url(b->ctx, b->o.url_text, &b->url, &code);

		b->session[i] = s;
		if (s && i == 0)
			code = check_unit_exists(s, &b->url);
		if (!s || code)
			return code;
		/* this command gets the power-on attention, if there is one */
		err = i ? iser_test_unit_ready(s, b->url.lun)
			: iser_read_capacity(s, b->url.lun, &b->cap);
		if (err)
			return say_failed(b->ctx, err);
	}
	code = bench_places_init(b);
	return code ? code : check_writes(b);
}

static void fill_jobs(struct bench *b, struct bench_job *jobs, unsigned n,
		      uint8_t *memory)
{
	size_t size = (size_t)b->places.max_blocks * b->cap.block_size;

	for (unsigned i = 0; i < n; i++) {
		struct bench_job *j = &jobs[i];

		*j = (struct bench_job){ .b = b };
		j->s = b->session[i % b->o.connections];
		j->memory = memory + i * size;
		j->iov.iov_base = j->memory;
		j->io.iov = &j->iov;
		j->io.niov = 1;
		j->io.done = job_completed;
		j->io.arg = j;
	}
}

/* Returns whether there is a figure to print; if not, prints the reason. */
static bool check_measured(const struct bench *b)
{
	if (b->all->latency[0].count || b->all->latency[1].count)
		return true;
	if (!b->code)
		say("bench: nothing was measured: the run ended within its "
		    "ramp; give a shorter --ramp");
	return false;
}

static void measure_and_report(struct bench *b, struct bench_job *jobs,
			       unsigned n)
{
	struct bench_result r = { 0 };
	int code;

	measure(b, jobs, n, &r);
	b->given_up = true; /* failures from here on are not reported */
	code = bench_record_close(b);
	if (check_measured(b))
		bench_report(b, &r);
	b->code = b->code ? b->code : code;
	fflush(stdout);
}

int bench_run(struct bench *b)
{
	unsigned n = b->o.depth * b->o.connections;
	struct bench_job *jobs = NULL;
	uint8_t *memory = NULL;
	size_t size;

	b->code = connect_all(b);
	size = n * (size_t)b->places.max_blocks * b->cap.block_size;
	if (!b->code) {
		jobs = calloc(n, sizeof(*jobs));
		memory = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
		b->all = calloc(1, sizeof(*b->all));
		b->code = jobs && memory && b->all ? bench_record_open(b)
						   : say_no_memory();
	}
	if (!b->code) {
		memset(memory, 0xa5, size);
		fill_jobs(b, jobs, n, memory);
		measure_and_report(b, jobs, n);
	}
	bench_record_close(b);
	for (unsigned i = 0; i < b->o.connections; i++)
		iser_disconnect(b->session[i]);
	free(jobs);
	free(memory);
	free(b->all);
	free(b->places.written);
	return b->code;
}
