/* SPDX-License-Identifier: BSD-2-Clause */
/* report.c: prints the results of iser bench as text or as JSON. */
#include "tools/bench/bench.h"

static double per_operation(const struct bench *b, double total)
{
	return b->ended ? total / (double)b->ended : 0;
}

static double calls_per_operation(const struct bench *b,
				  const struct bench_result *r)
{
	return per_operation(b,
			     (double)(r->calls.rx_calls + r->calls.tx_calls));
}

/* The average cost of an operation. */
static json_t *costs_json(const struct bench *b, const struct bench_result *r)
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
	const struct histogram *h = &b->all->latency[w];

	return json_pack("{s:I,s:f,s:f,s:{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}}",
			 "operations", (json_int_t)h->count, "iops",
			 (double)h->count / s, "bytes_per_second",
			 (double)b->all->bytes[w] / s, "latency_us", "min",
			 (double)h->min / 1e3, "mean",
			 h->count ? h->sum / (double)h->count / 1e3 : 0.0,
			 "p50", (double)hist_percentile(h, 0.50) / 1e3, "p90",
			 (double)hist_percentile(h, 0.90) / 1e3, "p99",
			 (double)hist_percentile(h, 0.99) / 1e3, "p99.9",
			 (double)hist_percentile(h, 0.999) / 1e3, "p99.99",
			 (double)hist_percentile(h, 0.9999) / 1e3, "max",
			 (double)h->max / 1e3);
}

/* The sizes of --bs with their percentages. */
static json_t *sizes_json(const struct bench *b)
{
	json_t *sizes = json_array();

	for (unsigned i = 0; i < b->o.nsizes; i++)
		json_array_append_new(
			sizes, json_pack("{s:I,s:i}", "bytes",
					 (json_int_t)b->o.size[i].bytes,
					 "percent", (int)b->o.size[i].percent));
	return sizes;
}

/* Adds what only some options give. */
static void add_options(const struct bench *b, json_t *j)
{
	if (b->o.nsizes > 1)
		json_object_set_new(j, "sizes", sizes_json(b));
	else
		json_object_set_new(
			j, "size",
			json_integer((json_int_t)b->o.size[0].bytes));
	if (b->o.rate) {
		json_object_set_new(j, "rate",
				    json_integer((json_int_t)b->o.rate));
		json_object_set_new(j, "not_begun",
				    json_integer((json_int_t)b->pace.late));
	}
	if (b->o.verify)
		json_object_set_new(
			j, "verify",
			json_pack("{s:I,s:I,s:I}", "checked_bytes",
				  (json_int_t)b->verify.checked,
				  "unknown_bytes",
				  (json_int_t)b->verify.unknown, "mismatches",
				  (json_int_t)b->verify.mismatches));
}

static void print_json_result(const struct bench *b,
			      const struct bench_result *r)
{
	json_t *j = json_pack(
		"{s:o,s:i,s:i,s:i,s:b,s:i,s:f,s:{s:f,s:f},s:{s:I,s:I},s:I}",
		"url", json_text(b->o.url_text), "depth", (int)b->o.depth,
		"connections", (int)b->o.connections, "write_percent",
		(int)b->o.write_percent, "random", b->o.random, "spin",
		(int)b->o.spin, "seconds", r->seconds, "cpu_seconds", "user",
		r->user, "system", r->system, "system_calls", "receive",
		(json_int_t)r->calls.rx_calls, "send",
		(json_int_t)r->calls.tx_calls, "reconnects",
		(json_int_t)r->calls.reconnects);

	add_options(b, j);
	json_object_set_new(j, "complete",
			    json_boolean(!b->code && !b->interrupted));
	json_object_set_new(j, "transport", json_string(r->params.transport));
	json_object_set_new(j, "kind", json_string(r->params.kind));
	json_object_set_new(j, "per_operation", costs_json(b, r));
	if (b->all->latency[0].count)
		json_object_set_new(j, "read",
				    direction_json(b, 0, r->seconds));
	if (b->all->latency[1].count)
		json_object_set_new(j, "write",
				    direction_json(b, 1, r->seconds));
	print_json(j);
}

static void print_direction(const struct bench *b, int w, double s)
{
	const struct histogram *h = &b->all->latency[w];
	char rate[32];

	if (!h->count)
		return;
	printf("%-6s %9.0f IOPS  %10s/s   us: mean %.1f  p50 %.1f  p90 %.1f  "
	       "p99 %.1f  p99.9 %.1f  p99.99 %.1f  max %.1f\n",
	       w ? "write" : "read", (double)h->count / s,
	       human((uint64_t)((double)b->all->bytes[w] / s), rate),
	       h->sum / (double)h->count / 1e3,
	       (double)hist_percentile(h, 0.50) / 1e3,
	       (double)hist_percentile(h, 0.90) / 1e3,
	       (double)hist_percentile(h, 0.99) / 1e3,
	       (double)hist_percentile(h, 0.999) / 1e3,
	       (double)hist_percentile(h, 0.9999) / 1e3, (double)h->max / 1e3);
}

static void print_options(const struct bench *b)
{
	char checked[32], unknown[32];

	if (b->pace.late)
		printf("%llu operations were due but did not begin: the rate "
		       "is too high\n",
		       (unsigned long long)b->pace.late);
	if (b->o.verify)
		printf("verified: %s match, %s were not written by this run, "
		       "%llu mismatches\n",
		       human(b->verify.checked, checked),
		       human(b->verify.unknown, unknown),
		       (unsigned long long)b->verify.mismatches);
}

void bench_report(const struct bench *b, const struct bench_result *r)
{
	if (b->o.common->json) {
		print_json_result(b, r);
		return;
	}
	print_direction(b, 0, r->seconds);
	print_direction(b, 1, r->seconds);
	if (b->code || b->interrupted)
		printf("(not complete)\n");
	print_options(b);
	printf("%.1f s over %s, CPU %.2f s user %.2f s system\n", r->seconds,
	       r->params.kind, r->user, r->system);
	printf("per operation: CPU %.2f us, %.3f system calls, %.0f bytes "
	       "copied in user space\n",
	       per_operation(b, (r->user + r->system) * 1e6),
	       calls_per_operation(b, r),
	       per_operation(b, (double)r->calls.copied_bytes));
}
