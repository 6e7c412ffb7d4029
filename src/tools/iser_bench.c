/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_bench.c: iser bench URL: reads and writes of one size at one depth
 * over some connections, for a time or an amount. One thread, one loop: the
 * figures are those of one core of initiator.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "iser.h"

#define MAX_CONNECTIONS 64
#define MAX_DEPTH	1024

struct bench {
	struct common common;
	const char *url_text;
	/* what to do */
	bool random;
	unsigned write_percent;
	uint64_t size, amount;
	unsigned depth, connections;
	double seconds, ramp;
	bool may_write;
	/* state */
	struct iser_context *ctx;
	struct iser_url url;
	struct iser_capacity cap;
	uint64_t slots, next, seed; /* places of `size` bytes */
	uint64_t begun, start, measure_from, stop_at;
	bool stopping;
	unsigned in_flight;
	int code;
	struct histogram latency[2]; /* read, write */
	uint64_t bytes[2];
	uint64_t ended; /* operations, the ramp's too */
};

struct job {
	struct bench *b;
	struct iser_session *s;
	struct iser_io io;
	struct iovec iov;
	uint64_t start;
	bool write;
};

/* ---- the loop ---- */

static uint64_t chance(struct bench *b) /* splitmix64 */
{
	uint64_t z = (b->seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void submit(struct job *j, uint64_t now)
{
	struct bench *b = j->b;
	uint32_t blocks = (uint32_t)(b->size / b->cap.block_size);
	uint64_t slot = b->random ? chance(b) % b->slots : b->next++ % b->slots;

	j->write = b->write_percent == 100 ||
		   (b->write_percent && chance(b) % 100 < b->write_percent);
	iser_prep_rw(&j->io, b->url.lun, j->write, slot * blocks, blocks);
	j->start = now;
	b->begun += b->size;
	b->in_flight++;
	iser_submit(j->s, &j->io);
}

static void fail(struct job *j)
{
	char text[200];

	if (!j->b->code) {
		iser_io_describe(&j->io, text, sizeof(text));
		say("%s", text);
		j->b->code = exit_of(j->io.err);
	}
	j->b->stopping = true;
}

static void done(struct iser_io *io)
{
	struct job *j = io->arg;
	struct bench *b = j->b;
	uint64_t now = now_ns();

	b->in_flight--;
	b->ended++;
	if (io->err) {
		fail(j);
		return;
	}
	if (now >= b->measure_from) {
		hist_add(&b->latency[j->write], now - j->start);
		b->bytes[j->write] += b->size;
	}
	if (now >= b->stop_at || (b->amount && b->begun >= b->amount))
		b->stopping = true;
	if (!b->stopping)
		submit(j, now);
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
	struct iser_counters calls; /* of all operations */
	struct iser_params params;
};

static double per_operation(const struct bench *b, double what)
{
	return b->ended ? what / (double)b->ended : 0;
}

static double calls_per_operation(const struct bench *b, const struct result *r)
{
	return per_operation(b,
			     (double)(r->calls.rx_calls + r->calls.tx_calls));
}

/* What an operation costs, on average. */
static json_t *costs(const struct bench *b, const struct result *r)
{
	return json_pack("{s:f,s:f,s:f}", "system_calls",
			 calls_per_operation(b, r), "copied_bytes",
			 per_operation(b, (double)r->calls.copied_bytes),
			 "cpu_us",
			 per_operation(b, (r->user + r->system) * 1e6));
}

static json_t *one_way(const struct bench *b, int w, double s)
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

static void report_json(const struct bench *b, const struct result *r)
{
	json_t *j = json_pack(
		"{s:s,s:I,s:i,s:i,s:i,s:b,s:f,s:{s:f,s:f},s:{s:I,s:I},s:I}",
		"url", b->url_text, "size", (json_int_t)b->size, "depth",
		(int)b->depth, "connections", (int)b->connections,
		"write_percent", (int)b->write_percent, "random", b->random,
		"seconds", r->seconds, "cpu_seconds", "user", r->user, "system",
		r->system, "system_calls", "receive",
		(json_int_t)r->calls.rx_calls, "send",
		(json_int_t)r->calls.tx_calls, "reconnects",
		(json_int_t)r->calls.reconnects);

	json_object_set_new(j, "transport", json_string(r->params.transport));
	json_object_set_new(j, "kind", json_string(r->params.kind));
	json_object_set_new(j, "per_operation", costs(b, r));
	if (b->latency[0].count)
		json_object_set_new(j, "read", one_way(b, 0, r->seconds));
	if (b->latency[1].count)
		json_object_set_new(j, "write", one_way(b, 1, r->seconds));
	print_json(j);
}

static void print_way(const struct bench *b, int w, double s)
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

static void report(const struct bench *b, const struct result *r)
{
	if (b->common.json) {
		report_json(b, r);
		return;
	}
	print_way(b, 0, r->seconds);
	print_way(b, 1, r->seconds);
	printf("%.1f s over %s, CPU %.2f s user %.2f s system\n", r->seconds,
	       r->params.kind, r->user, r->system);
	printf("per operation: CPU %.2f us, %.3f system calls, %.0f bytes "
	       "copied in user space\n",
	       per_operation(b, (r->user + r->system) * 1e6),
	       calls_per_operation(b, r),
	       per_operation(b, (double)r->calls.copied_bytes));
}

/* ---- set-up ---- */

static int check(struct bench *b)
{
	char cap[32];

	if (b->size == 0 || b->size % b->cap.block_size) {
		say("--bs must be a multiple of the unit's block of %u bytes",
		    b->cap.block_size);
		return EXIT_INVALID;
	}
	b->slots = b->cap.blocks * b->cap.block_size / b->size;
	if (b->slots == 0) {
		say("the unit is smaller than --bs: %s",
		    human(b->cap.blocks * b->cap.block_size, cap));
		return EXIT_INVALID;
	}
	if (b->write_percent && !b->may_write) {
		say("this would destroy the data of %s; say "
		    "--yes-overwrite if that is meant",
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
		/* the first command meets the power-on attention */
		err = i ? iser_test_unit_ready(s[i], b->url.lun)
			: iser_read_capacity(s[0], b->url.lun, &b->cap);
		if (err)
			return failed(b->ctx, err);
	}
	if (b->write_percent && is_read_only_cd(s[0], b->url.lun)) {
		say("%s is a CD/DVD drive, what is in it can't be written",
		    b->url_text);
		return EXIT_INVALID;
	}
	return check(b);
}

static int make_jobs(struct bench *b, struct iser_session **s, struct job *jobs,
		     unsigned n, uint8_t *memory)
{
	for (unsigned i = 0; i < n; i++) {
		struct job *j = &jobs[i];

		*j = (struct job){ .b = b, .s = s[i % b->connections] };
		j->iov.iov_base = memory + i * b->size;
		j->iov.iov_len = b->size;
		j->io.iov = &j->iov;
		j->io.niov = 1;
		j->io.done = done;
		j->io.arg = j;
	}
	return 0;
}

/* Adds what the sessions counted so far; sign -1 takes it away. */
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

static void measure(struct bench *b, struct iser_session **s, struct job *jobs,
		    unsigned n, struct result *r)
{
	uint64_t now = now_ns();

	b->start = now;
	b->measure_from = now + (uint64_t)(b->ramp * 1e9);
	b->stop_at = b->amount ? UINT64_MAX
			       : b->measure_from + (uint64_t)(b->seconds * 1e9);
	r->user = cpu_seconds(false);
	r->system = cpu_seconds(true);
	iser_get_params(s[0], &r->params);
	add_counters(b, s, -1, &r->calls);
	for (unsigned i = 0; i < n; i++)
		submit(&jobs[i], now);
	while (b->in_flight && !iser_service(b->ctx, -1))
		;
	now = now_ns();
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
			b->code = EXIT_NOMEM;
	}
	if (!b->code) {
		memset(memory, 0xa5, n * b->size);
		make_jobs(b, s, jobs, n, memory);
		measure(b, s, jobs, n, &r);
	}
	if (!b->code)
		report(b, &r);
	for (unsigned i = 0; i < b->connections; i++)
		iser_disconnect(s[i]);
	free(jobs);
	free(memory);
	return b->code;
}

/* ---- the command line ---- */

static bool set_rw(struct bench *b, const char *how)
{
	static const struct {
		const char *name;
		bool random;
		unsigned write;
	} ways[] = {
		{ "read", false, 0 },	 { "write", false, 100 },
		{ "randread", true, 0 }, { "randwrite", true, 100 },
		{ "randrw", true, 50 },	 { "rw", false, 50 },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(how, ways[i].name))
			continue;
		b->random = ways[i].random;
		b->write_percent = ways[i].write;
		return true;
	}
	say("--rw is read, write, randread, randwrite, rw or randrw");
	return false;
}

static bool set_number(const char *text, unsigned lo, unsigned hi,
		       unsigned *out, const char *what)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (end == text || *end || v < lo || v > hi) {
		say("%s is %u to %u", what, lo, hi);
		return false;
	}
	*out = (unsigned)v;
	return true;
}

static bool set_option(struct bench *b, int o, const char *arg)
{
	switch (o) {
	case 'r':
		return set_rw(b, arg);
	case 'm':
		return set_number(arg, 0, 100, &b->write_percent,
				  "--write-percent");
	case 'q':
		return set_number(arg, 1, MAX_DEPTH, &b->depth, "--depth");
	case 'c':
		return set_number(arg, 1, MAX_CONNECTIONS, &b->connections,
				  "--connections");
	case 't':
		b->seconds = strtod(arg, NULL);
		return b->seconds > 0;
	case 'w':
		b->ramp = strtod(arg, NULL);
		return b->ramp >= 0;
	case 'b':
		return parse_size(arg, &b->size) && b->size <= (64u << 20);
	case 'a':
		return parse_size(arg, &b->amount) && b->amount > 0;
	case 's':
		b->seed = strtoull(arg, NULL, 0);
		return true;
	case 'y':
		b->may_write = true;
		return true;
	default:
		return common_option(&b->common, o, arg);
	}
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS,
		{ "rw", required_argument, NULL, 'r' },
		{ "write-percent", required_argument, NULL, 'm' },
		{ "bs", required_argument, NULL, 'b' },
		{ "depth", required_argument, NULL, 'q' },
		{ "connections", required_argument, NULL, 'c' },
		{ "time", required_argument, NULL, 't' },
		{ "ramp", required_argument, NULL, 'w' },
		{ "amount", required_argument, NULL, 'a' },
		{ "seed", required_argument, NULL, 's' },
		{ "yes-overwrite", no_argument, NULL, 'y' },
		{ 0 },
	};
	struct bench *b = calloc(1, sizeof(*b));
	int o, code = EXIT_INVALID;

	if (!b)
		return EXIT_NOMEM;
	*b = (struct bench){ .random = true,
			     .size = 4096,
			     .depth = 32,
			     .connections = 1,
			     .seconds = 5,
			     .ramp = 0.2,
			     .seed = 1 };
	optind = 1;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!set_option(b, o, optarg)) {
			say("iser bench --help tells the options");
			goto out;
		}
	if (optind + 1 != argc) {
		say("bench takes one URL; iser bench --help");
		goto out;
	}
	b->url_text = argv[optind];
	b->ctx = open_context(&b->common);
	code = b->ctx ? run_bench(b) : EXIT_NOMEM;
	iser_context_free(b->ctx);
out:
	free(b);
	return code;
}

const struct command command_bench = {
	.name = "bench",
	.synopsis = "[OPTIONS] URL",
	.summary = "IOPS, bandwidth, latency and CPU of a unit",
	.help = "  --rw HOW             randread (default), read, write, "
		"randwrite, rw, randrw\n"
		"  --write-percent N    share of writes in rw and randrw (50)\n"
		"  --bs SIZE            bytes per operation (4k)\n"
		"  --depth N            operations in flight per connection "
		"(32)\n"
		"  --connections N      sessions at once (1)\n"
		"  --time SECONDS       how long (5), after a ramp of\n"
		"  --ramp SECONDS       (0.2) that does not count\n"
		"  --amount SIZE        this much instead of a time\n"
		"  --seed N             of the random places (1)\n"
		"  --yes-overwrite      writes destroy data: needed for them\n",
	.run = run,
};
