/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.c: iser bench URL: reads and writes of some sizes at one depth over some
 * connections, for a time or an amount.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"

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
	struct bench_options *o = into;

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		if (strcmp(arg, patterns[i].name) != 0)
			continue;
		o->random = patterns[i].random;
		o->write_percent = patterns[i].write_percent;
		return OPT_OK;
	}
	snprintf(why, OPT_WHY,
		 "must be one of read, write, randread, randwrite, rw, randrw");
	return OPT_BAD;
}

/* One "SIZE" or "SIZE:PERCENT" of --bs, n characters at text. */
static bool add_size(struct bench_options *o, const char *text, size_t n)
{
	char word[32], *colon, *end;
	unsigned long percent = 100;

	if (n == 0 || n >= sizeof(word) || o->nsizes == BENCH_SIZES)
		return false;
	memcpy(word, text, n);
	word[n] = '\0';
	colon = strchr(word, ':');
	if (colon) {
		*colon = '\0';
		percent = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end || percent > 100)
			return false;
	}
	o->size[o->nsizes].percent = (unsigned)percent;
	if (!opt_size(word, &o->size[o->nsizes].bytes) ||
	    o->size[o->nsizes].bytes > BENCH_SIZE_MAX)
		return false;
	return o->size[o->nsizes++].bytes > 0;
}

static enum opt_end set_sizes(void *into, const char *arg, char why[OPT_WHY])
{
	struct bench_options *o = into;
	unsigned sum = 0;
	bool good = true;

	o->nsizes = 0;
	for (const char *s = arg; good && s; s = strchr(s, ',')) {
		s += *s == ',';
		good = add_size(o, s, strcspn(s, ","));
	}
	for (unsigned i = 0; i < o->nsizes; i++)
		sum += o->size[i].percent;
	if (good && sum == 100)
		return OPT_OK;
	snprintf(why, OPT_WHY,
		 "must be a size of at most 64M, or up to %d sizes with "
		 "percentages whose sum is 100, such as 4k:70,64k:30",
		 BENCH_SIZES);
	return OPT_BAD;
}

static enum opt_end set_seed(void *into, const char *arg, char why[OPT_WHY])
{
	struct bench_options *o = into;
	char *end;

	o->seed = strtoull(arg, &end, 0);
	if (end != arg && !*end)
		return OPT_OK;
	snprintf(why, OPT_WHY, "must be a number");
	return OPT_BAD;
}

static const char *const arrivals[] = { "steady", "random", NULL };

static const struct opt_row rows[] = {
	{ .name = "rw",
	  .arg = "HOW",
	  .initial = "randread",
	  OPT_CALL(set_pattern),
	  .help = "what to do: read, write, randread, randwrite, rw or "
		  "randrw" },
	{ .name = "write-percent",
	  .arg = "N",
	  OPT_NUMBER(struct bench_options, write_percent, 0, 100),
	  .help = "share of writes in rw and randrw; without it 50" },
	{ .name = "bs",
	  .arg = "SIZE[:PERCENT][,SIZE:PERCENT]",
	  .initial = "4k",
	  OPT_CALL(set_sizes),
	  .help = "bytes per operation; several sizes: each for its "
		  "percentage of the operations" },
	{ .name = "depth",
	  .arg = "N",
	  .initial = "32",
	  OPT_NUMBER(struct bench_options, depth, 1, BENCH_DEPTH),
	  .help = "operations in progress per connection" },
	{ .name = "connections",
	  .arg = "N",
	  .initial = "1",
	  OPT_NUMBER(struct bench_options, connections, 1, BENCH_CONNECTIONS),
	  .help = "sessions at once" },
	{ .name = "time",
	  .arg = "SECONDS",
	  .initial = "5",
	  OPT_SECONDS(struct bench_options, seconds, 1, OPT_MS_MAX),
	  .help = "how long to measure" },
	{ .name = "ramp",
	  .arg = "SECONDS",
	  .initial = "0.2",
	  OPT_SECONDS(struct bench_options, ramp, 0, OPT_MS_MAX),
	  .help = "time before the measurement, which does not count" },
	{ .name = "amount",
	  .arg = "SIZE",
	  OPT_SIZE(struct bench_options, amount, 1, OPT_SIZE_MAX),
	  .help = "end after this many bytes in place of a time" },
	{ .name = "rate",
	  .arg = "N",
	  OPT_COUNTER(struct bench_options, rate, 1, 100000000),
	  .help = "begin N operations per second in all; latencies count "
		  "from when an operation was due" },
	{ .name = "arrivals",
	  .arg = "steady|random",
	  .initial = "steady",
	  OPT_WORD(struct bench_options, arrivals, arrivals),
	  .help = "distances of the operations of --rate: equal, or random "
		  "(a Poisson process)" },
	{ .name = "spin",
	  .arg = "US",
	  .initial = "0",
	  OPT_NUMBER(struct bench_options, spin, 0, 10000),
	  .help = "poll so many microseconds before sleeping" },
	{ .name = "verify",
	  OPT_FLAG(struct bench_options, verify),
	  .help = "write a pattern, and compare what is read with it" },
	{ .name = "series",
	  .arg = "FILE",
	  OPT_TEXT(struct bench_options, series),
	  .help = "write a line per --interval to FILE, as CSV" },
	{ .name = "histogram",
	  .arg = "FILE",
	  OPT_TEXT(struct bench_options, histogram),
	  .help = "write the latencies of each --interval to FILE, as a log "
		  "of HdrHistogram" },
	{ .name = "interval",
	  .arg = "SECONDS",
	  .initial = "1",
	  OPT_SECONDS(struct bench_options, interval, 10, OPT_MS_MAX),
	  .help = "time of a line of --series and --histogram" },
	{ .name = "seed",
	  .arg = "N",
	  .initial = "1",
	  OPT_CALL(set_seed),
	  .help = "seed of the random places and of the pattern" },
	{ .name = "yes-overwrite",
	  OPT_FLAG(struct bench_options, may_write),
	  .help = "allow writes, which destroy the data of the unit" },
};

static int run_bench_command(const struct call *call)
{
	struct bench b = { .o = *(const struct bench_options *)call->args };
	int code;

	b.o.common = call->common;
	b.o.url_text = call->operands[0];
	b.ctx = open_context(b.o.common);
	code = b.ctx ? bench_run(&b) : EXIT_NOMEM;
	iser_context_free(b.ctx);
	return code;
}

const struct command command_bench = {
	.name = "bench",
	.synopsis = "[OPTION]... URL",
	.summary = "measure IOPS, bandwidth, latency and CPU of a unit",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.args_size = sizeof(struct bench_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_bench_command,
};
