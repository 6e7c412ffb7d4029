/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_bench.c: iser bench URL: reads and writes of one size at one depth
 * over some connections, for a time or an amount. One thread, one loop: the
 * figures are those of one core of initiator.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/iser.h"

#define MAX_CONNECTIONS 64
#define MAX_DEPTH	1024

struct bench {
	/* the command line */
	const struct common *common;
	const char *url_text;
	bool random, may_write;
	unsigned write_percent, depth, connections;
	uint64_t size;	      /* bytes of an operation */
	uint64_t amount;      /* bytes in all; 0: the time decides */
	double seconds, ramp; /* ramp: not measured, at the start */
	uint64_t seed;
	/* state; times are ns */
	struct iser_context *ctx;
	struct iser_url url;
	struct iser_capacity cap;
	uint64_t slots, next; /* places of `size` bytes, and the next one */
	uint64_t begun;	      /* bytes of all operations so far */
	uint64_t start, measure_from, stop_at;
	bool stopping;	      /* submit no more */
	bool given_up;	      /* operations that end now are not counted */
	uint64_t last;	      /* when the last operation succeeded */
	unsigned in_progress; /* operations */
	int code;	      /* exit code of the first failure */
	struct histogram latency[2]; /* read, write */
	uint64_t bytes[2];	     /* measured */
	uint64_t ended;		     /* operations, with those of the ramp */
};

/* One operation at a time, on the memory of its own. */
struct job {
	struct bench *b;
	struct iser_session *s;
	struct iser_io io;
	struct iovec iov;
	uint64_t start;
	bool write;
};

/* ---- SIGINT, SIGTERM ---- */

#define DRAIN_NS 2000000000u /* for operations in progress at a signal */
#define POLL_MS	 100	     /* how often the loop looks at the signals */

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

static void catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

/* ---- the loop ---- */

/* splitmix64 */
static uint64_t next_random(struct bench *b)
{
	uint64_t z = (b->seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void submit_job(struct job *j, uint64_t now)
{
	struct bench *b = j->b;
	uint32_t blocks = (uint32_t)(b->size / b->cap.block_size);
	uint64_t slot =
		b->random ? next_random(b) % b->slots : b->next++ % b->slots;

	j->write =
		b->write_percent == 100 ||
		(b->write_percent && next_random(b) % 100 < b->write_percent);
	iser_prep_rw(&j->io, b->url.lun, j->write, slot * blocks, blocks);
	j->start = now;
	b->begun += b->size;
	b->in_progress++;
	iser_submit(j->s, &j->io);
}

static void fail_job(struct job *j)
{
	if (!j->b->code && !j->b->given_up)
		j->b->code = say_command(&j->io, "bench");
	j->b->stopping = true;
}

static void job_completed(struct iser_io *io)
{
	struct job *j = io->arg;
	struct bench *b = j->b;
	uint64_t now = now_ns();

	b->in_progress--;
	b->ended++;
	if (io->err) {
		fail_job(j);
		return;
	}
	b->last = now;
	if (now >= b->measure_from) {
		hist_add(&b->latency[j->write], now - j->start);
		b->bytes[j->write] += b->size;
	}
	if (now >= b->stop_at || (b->amount && b->begun >= b->amount))
		b->stopping = true;
	if (!b->stopping)
		submit_job(j, now);
}

static double cpu_seconds(bool system)
{
	struct rusage u;
	const struct timeval *t = system ? &u.ru_stime : &u.ru_utime;

	getrusage(RUSAGE_SELF, &u);
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* ---- results ---- */

struct result {
	double seconds, user, system;
	struct iser_counters calls; /* of all operations, in the ramp too */
	struct iser_params params;
};

static double per_operation(const struct bench *b, double total)
{
	return b->ended ? total / (double)b->ended : 0;
}

static double calls_per_operation(const struct bench *b, const struct result *r)
{
	return per_operation(b,
			     (double)(r->calls.rx_calls + r->calls.tx_calls));
}

/* The average cost of an operation. */
static json_t *costs_json(const struct bench *b, const struct result *r)
{
	return json_pack("{s:f,s:f,s:f}", "system_calls",
			 calls_per_operation(b, r), "copied_bytes",
			 per_operation(b, (double)r->calls.copied_bytes),
			 "cpu_us",
			 per_operation(b, (r->user + r->system) * 1e6));
}

/* The figures of the reads (w = 0) or the writes (w = 1). */
static json_t *direction_json(const struct bench *b, int w, double s)
{
	const struct histogram *h = &b->latency[w];

	return json_pack("{s:I,s:f,s:f,s:{s:f,s:f,s:f,s:f,s:f,s:f,s:f}}",
			 "operations", (json_int_t)h->count, "iops",
			 (double)h->count / s, "bytes_per_second",
			 (double)b->bytes[w] / s, "latency_us", "min",
			 (double)h->min / 1e3, "mean",
			 h->count ? h->sum / (double)h->count / 1e3 : 0.0,
			 "p50", (double)hist_percentile(h, 0.50) / 1e3, "p90",
			 (double)hist_percentile(h, 0.90) / 1e3, "p99",
			 (double)hist_percentile(h, 0.99) / 1e3, "p99.9",
			 (double)hist_percentile(h, 0.999) / 1e3, "max",
			 (double)h->max / 1e3);
}

static void print_json_result(const struct bench *b, const struct result *r)
{
	json_t *j = json_pack(
		"{s:o,s:I,s:i,s:i,s:i,s:b,s:f,s:{s:f,s:f},s:{s:I,s:I},s:I}",
		"url", json_text(b->url_text), "size", (json_int_t)b->size,
		"depth", (int)b->depth, "connections", (int)b->connections,
		"write_percent", (int)b->write_percent, "random", b->random,
		"seconds", r->seconds, "cpu_seconds", "user", r->user, "system",
		r->system, "system_calls", "receive",
		(json_int_t)r->calls.rx_calls, "send",
		(json_int_t)r->calls.tx_calls, "reconnects",
		(json_int_t)r->calls.reconnects);

	json_object_set_new(j, "complete", json_boolean(!b->code && !signals));
	json_object_set_new(j, "transport", json_string(r->params.transport));
	json_object_set_new(j, "kind", json_string(r->params.kind));
	json_object_set_new(j, "per_operation", costs_json(b, r));
	if (b->latency[0].count)
		json_object_set_new(j, "read",
				    direction_json(b, 0, r->seconds));
	if (b->latency[1].count)
		json_object_set_new(j, "write",
				    direction_json(b, 1, r->seconds));
	print_json(j);
}

static void print_direction(const struct bench *b, int w, double s)
{
	const struct histogram *h = &b->latency[w];
	char rate[32];

	if (!h->count)
		return;
	printf("%-6s %9.0f IOPS  %10s/s   us: mean %.1f  p50 %.1f  p90 %.1f  "
	       "p99 %.1f  p99.9 %.1f  max %.1f\n",
	       w ? "write" : "read", (double)h->count / s,
	       human((uint64_t)((double)b->bytes[w] / s), rate),
	       h->sum / (double)h->count / 1e3,
	       (double)hist_percentile(h, 0.50) / 1e3,
	       (double)hist_percentile(h, 0.90) / 1e3,
	       (double)hist_percentile(h, 0.99) / 1e3,
	       (double)hist_percentile(h, 0.999) / 1e3, (double)h->max / 1e3);
}

static void print_result(const struct bench *b, const struct result *r)
{
	if (b->common->json) {
		print_json_result(b, r);
		return;
	}
	print_direction(b, 0, r->seconds);
	print_direction(b, 1, r->seconds);
	if (b->code || signals)
		printf("(not complete)\n");
	printf("%.1f s over %s, CPU %.2f s user %.2f s system\n", r->seconds,
	       r->params.kind, r->user, r->system);
	printf("per operation: CPU %.2f us, %.3f system calls, %.0f bytes "
	       "copied in user space\n",
	       per_operation(b, (r->user + r->system) * 1e6),
	       calls_per_operation(b, r),
	       per_operation(b, (double)r->calls.copied_bytes));
}

/* ---- set-up ---- */

static int check_sizes(struct bench *b)
{
	char cap[32];

	if (b->size == 0 || b->size % b->cap.block_size) {
		say("bench: --bs: must be a multiple of the block size of the "
		    "unit, %u bytes",
		    b->cap.block_size);
		return EXIT_INVALID;
	}
	b->slots = b->cap.bytes / b->size;
	if (b->slots == 0) {
		say("bench: --bs: the unit has only %s; give a smaller size",
		    human(b->cap.bytes, cap));
		return EXIT_INVALID;
	}
	if (b->write_percent && !b->may_write) {
		say("%s: writes destroy the data of the unit; give "
		    "--yes-overwrite to allow them",
		    b->url_text);
		return EXIT_INVALID;
	}
	return 0;
}

static int connect_all(struct bench *b, struct iser_session **s)
{
	int code = 0, err;

	for (unsigned i = 0; i < b->connections; i++) {
		s[i] = open_url(b->ctx, b->url_text, &b->url, &code);
		if (!s[i])
			return code;
		if (i == 0)
			code = check_unit_exists(s[i], &b->url);
		if (code)
			return code;
		/* this command gets the power-on attention, if there is one */
		err = i ? iser_test_unit_ready(s[i], b->url.lun)
			: iser_read_capacity(s[0], b->url.lun, &b->cap);
		if (err)
			return say_failed(b->ctx, err);
	}
	if (b->write_percent && is_read_only_cd(s[0], b->url.lun)) {
		say("%s: is a CD/DVD drive with a medium that cannot be "
		    "written; use --rw read or randread",
		    b->url_text);
		return EXIT_INVALID;
	}
	return check_sizes(b);
}

static void fill_jobs(struct bench *b, struct iser_session **s,
		      struct job *jobs, unsigned n, uint8_t *memory)
{
	for (unsigned i = 0; i < n; i++) {
		struct job *j = &jobs[i];

		*j = (struct job){ .b = b, .s = s[i % b->connections] };
		j->iov.iov_base = memory + i * b->size;
		j->iov.iov_len = b->size;
		j->io.iov = &j->iov;
		j->io.niov = 1;
		j->io.done = job_completed;
		j->io.arg = j;
	}
}

/* Adds the counters of all sessions to sum; with sign -1, subtracts them. */
static void add_counters(struct bench *b, struct iser_session **s, int sign,
			 struct iser_counters *sum)
{
	for (unsigned i = 0; i < b->connections; i++) {
		struct iser_counters c;

		iser_get_counters(s[i], &c);
		sum->rx_calls += (uint64_t)sign * c.rx_calls;
		sum->tx_calls += (uint64_t)sign * c.tx_calls;
		sum->copied_bytes += (uint64_t)sign * c.copied_bytes;
		sum->reconnects += (uint64_t)sign * c.reconnects;
	}
}

/* Runs until no operation is in progress. After a failure or a signal nothing is
 * submitted, and the operations in progress have DRAIN_NS; a second signal ends
 * the wait. */
static void run_loop(struct bench *b)
{
	uint64_t drain_until = UINT64_MAX;

	while (b->in_progress && !iser_service(b->ctx, POLL_MS)) {
		b->given_up = now_ns() >= drain_until || signals > 1;
		if (b->given_up)
			return;
		if ((signals || b->code) && drain_until == UINT64_MAX) {
			b->stopping = true;
			drain_until = now_ns() + DRAIN_NS;
		}
	}
}

/* Returns whether there is a figure to print; if not, prints the reason. */
static bool check_measured(const struct bench *b)
{
	if (b->latency[0].count || b->latency[1].count)
		return true;
	if (!b->code)
		say("bench: nothing was measured: the run ended within its "
		    "ramp; give a shorter --ramp");
	return false;
}

static void measure(struct bench *b, struct iser_session **s, struct job *jobs,
		    unsigned n, struct result *r)
{
	uint64_t now = now_ns();

	b->start = now;
	/* with --amount there is no ramp */
	b->measure_from = now + (b->amount ? 0 : (uint64_t)(b->ramp * 1e9));
	b->stop_at = b->amount ? UINT64_MAX
			       : b->measure_from + (uint64_t)(b->seconds * 1e9);
	r->user = cpu_seconds(false);
	r->system = cpu_seconds(true);
	iser_get_params(s[0], &r->params);
	add_counters(b, s, -1, &r->calls);
	catch_signals();
	for (unsigned i = 0; i < n && (!b->amount || b->begun < b->amount); i++)
		submit_job(&jobs[i], now);
	run_loop(b);
	now = b->code || signals ? b->last : now_ns();
	r->seconds = now > b->measure_from
			     ? (double)(now - b->measure_from) / 1e9
			     : 1e-9;
	r->user = cpu_seconds(false) - r->user;
	r->system = cpu_seconds(true) - r->system;
	add_counters(b, s, 1, &r->calls);
}

static int run_bench(struct bench *b)
{
	struct iser_session *s[MAX_CONNECTIONS] = { NULL };
	unsigned n = b->depth * b->connections;
	struct job *jobs = NULL;
	struct result r = { 0 };
	uint8_t *memory = NULL;

	b->code = connect_all(b, s);
	if (!b->code) {
		jobs = calloc(n, sizeof(*jobs));
		memory = aligned_alloc(4096, (n * b->size + 4095) & ~4095ull);
		if (!jobs || !memory)
			b->code = say_no_memory();
	}
	if (!b->code) {
		memset(memory, 0xa5, n * b->size);
		fill_jobs(b, s, jobs, n, memory);
		measure(b, s, jobs, n, &r);
		b->given_up = true; /* failures from here on are not reported */
		if (check_measured(b))
			print_result(b, &r);
		fflush(stdout);
	}
	for (unsigned i = 0; i < b->connections; i++)
		iser_disconnect(s[i]);
	free(jobs);
	free(memory);
	return b->code;
}

/* ---- the command line ---- */

static const struct {
	const char *name;
	bool random;
	unsigned write_percent;
} patterns[] = {
	{ "read", false, 0 },	 { "write", false, 100 },
	{ "randread", true, 0 }, { "randwrite", true, 100 },
	{ "randrw", true, 50 },	 { "rw", false, 50 },
};

static enum opt_end set_pattern(void *into, const char *arg, char why[OPT_WHY])
{
	struct bench *b = into;

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		if (strcmp(arg, patterns[i].name) != 0)
			continue;
		b->random = patterns[i].random;
		b->write_percent = patterns[i].write_percent;
		return OPT_OK;
	}
	snprintf(why, OPT_WHY,
		 "must be one of read, write, randread, randwrite, rw, randrw");
	return OPT_BAD;
}

static enum opt_end set_seed(void *into, const char *arg, char why[OPT_WHY])
{
	struct bench *b = into;
	char *end;

	b->seed = strtoull(arg, &end, 0);
	if (end != arg && !*end)
		return OPT_OK;
	snprintf(why, OPT_WHY, "must be a number");
	return OPT_BAD;
}

#define SIZE_MAX_BS (64u << 20)

static const struct opt_row rows[] = {
	{ .name = "rw",
	  .arg = "HOW",
	  .initial = "randread",
	  OPT_CALL(set_pattern),
	  .help = "what to do: read, write, randread, randwrite, rw or "
		  "randrw" },
	{ .name = "write-percent",
	  .arg = "N",
	  OPT_NUMBER(struct bench, write_percent, 0, 100),
	  .help = "share of writes in rw and randrw; without it 50" },
	{ .name = "bs",
	  .arg = "SIZE",
	  .initial = "4k",
	  OPT_SIZE(struct bench, size, 1, SIZE_MAX_BS),
	  .help = "bytes per operation" },
	{ .name = "depth",
	  .arg = "N",
	  .initial = "32",
	  OPT_NUMBER(struct bench, depth, 1, MAX_DEPTH),
	  .help = "operations in progress per connection" },
	{ .name = "connections",
	  .arg = "N",
	  .initial = "1",
	  OPT_NUMBER(struct bench, connections, 1, MAX_CONNECTIONS),
	  .help = "sessions at once" },
	{ .name = "time",
	  .arg = "SECONDS",
	  .initial = "5",
	  OPT_SECONDS(struct bench, seconds, 1, OPT_MS_MAX),
	  .help = "how long to measure" },
	{ .name = "ramp",
	  .arg = "SECONDS",
	  .initial = "0.2",
	  OPT_SECONDS(struct bench, ramp, 0, OPT_MS_MAX),
	  .help = "time before the measurement, which does not count" },
	{ .name = "amount",
	  .arg = "SIZE",
	  OPT_SIZE(struct bench, amount, 1, OPT_SIZE_MAX),
	  .help = "end after this many bytes in place of a time" },
	{ .name = "seed",
	  .arg = "N",
	  .initial = "1",
	  OPT_CALL(set_seed),
	  .help = "seed of the random places" },
	{ .name = "yes-overwrite",
	  OPT_FLAG(struct bench, may_write),
	  .help = "allow writes, which destroy the data of the unit" },
};

static int run_bench_command(const struct call *call)
{
	struct bench *b = call->args;
	int code;

	b->common = call->common;
	b->url_text = call->operands[0];
	b->ctx = open_context(b->common);
	code = b->ctx ? run_bench(b) : EXIT_NOMEM;
	iser_context_free(b->ctx);
	return code;
}

const struct command command_bench = {
	.name = "bench",
	.synopsis = "[OPTION]... URL",
	.summary = "measure IOPS, bandwidth, latency and CPU of a unit",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.args_size = sizeof(struct bench),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_bench_command,
};
