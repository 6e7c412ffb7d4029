/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_test.c: the text formats of Prometheus, and requests to the HTTP
 * endpoint. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/metrics/expo.h"
#include "daemon/metrics/head.h"

static void assert_text(struct expo *x, const char *want)
{
	char *text;

	assert_true(expo_end(x));
	text = strndup(x->out, x->len);
	assert_string_equal(text, want);
	free(text);
	free(x->out);
}

static void write_families(struct expo *x)
{
	expo_family(x, "reads", EXPO_COUNTER, "Reads.");
	expo_count(x, 7);
	EXPO_LABELS(x, "lun", "0", "op", "read");
	expo_count(x, UINT64_MAX);
	expo_family(x, "depth", EXPO_GAUGE, "Depth.");
	expo_number(x, 0.25); /* without the labels of the family before */
	expo_family(x, "time_seconds", EXPO_HISTOGRAM, "Time.");
	EXPO_LABELS(x, "lun", "1");
	expo_bucket(x, 0.001, 2);
	expo_bucket(x, HUGE_VAL, 3);
	expo_histogram(x, 1.5, 3);
}

static void test_text(void **state)
{
	struct expo x = { 0 };

	(void)state;
	write_families(&x);
	assert_text(&x, "# HELP reads_total Reads.\n"
			"# TYPE reads_total counter\n"
			"reads_total 7\n"
			"reads_total{lun=\"0\",op=\"read\"} "
			"18446744073709551615\n"
			"# HELP depth Depth.\n"
			"# TYPE depth gauge\n"
			"depth 0.25\n"
			"# HELP time_seconds Time.\n"
			"# TYPE time_seconds histogram\n"
			"time_seconds_bucket{lun=\"1\",le=\"0.001\"} 2\n"
			"time_seconds_bucket{lun=\"1\",le=\"+Inf\"} 3\n"
			"time_seconds_sum{lun=\"1\"} 1.5\n"
			"time_seconds_count{lun=\"1\"} 3\n");
}

static void test_open_text(void **state)
{
	struct expo x = { .open = true };

	(void)state;
	expo_family(&x, "reads", EXPO_COUNTER, "Reads.");
	expo_count(&x, 7);
	assert_text(&x, "# HELP reads Reads.\n# TYPE reads counter\n"
			"reads_total 7\n# EOF\n");
}

/* Names of peers: a quote, a backslash, a line feed, and bytes that are not
 * UTF-8. */
static void test_labels(void **state)
{
	struct expo x = { 0 };

	(void)state;
	expo_family(&x, "n", EXPO_GAUGE, "N.");
	EXPO_LABELS(&x, "name", "a\"b\\c\nd\xff", "other", "e");
	expo_count(&x, 1);
	assert_text(&x, "# HELP n N.\n# TYPE n gauge\n"
			"n{name=\"a\\\"b\\\\c\\\\x0ad\\\\xff\",other=\"e\"} "
			"1\n");
}

/* Labels that do not fit are left out as a whole. */
static void test_long_labels(void **state)
{
	char name[900];
	struct expo x = { 0 };

	(void)state;
	memset(name, '"', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	expo_family(&x, "n", EXPO_GAUGE, "N.");
	for (unsigned i = 0; i < 100; i++) {
		EXPO_LABELS(&x, "a", name, "b", name);
		expo_count(&x, i);
	}
	assert_true(expo_end(&x));
	assert_null(memmem(x.out, x.len, "b=", 2));
	free(x.out);
}

static void test_paths(void **state)
{
	static const char *const none[] = {
		"",	     "metrics", "/metrics/",   "//metrics",
		"/metricsx", "/metric", "/../metrics", "/status.json?"
	};

	(void)state;
	assert_int_equal(head_kind("/metrics"), ANSWER_METRICS);
	assert_int_equal(head_kind("/healthz"), ANSWER_HEALTH);
	assert_int_equal(head_kind("/readyz"), ANSWER_READY);
	assert_int_equal(head_kind("/status.json"), ANSWER_STATUS);
	assert_int_equal(head_kind("/"), ANSWER_PAGE);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(head_kind(none[i]), ANSWER_NOTHING);
}

static void test_accept(void **state)
{
	(void)state;
	/* what Prometheus sends */
	assert_true(head_wants_open(
		"application/openmetrics-text; version=1.0.0,application/"
		"openmetrics-text;version=0.0.1;q=0.75,text/"
		"plain;version=0.0.4;q=0.5,*/*;q=0.1"));
	assert_true(head_wants_open("text/plain , "
				    "Application/OpenMetrics-Text;q=0.001"));
	assert_false(head_wants_open(NULL));
	assert_false(head_wants_open(""));
	assert_false(head_wants_open("*/*"));
	assert_false(head_wants_open("application/openmetrics"));
	assert_false(head_wants_open("application/openmetrics-text;q=0"));
	assert_false(head_wants_open("application/openmetrics-text;q=0.00 "
				     "; a=b, text/plain"));
	assert_false(head_wants_open(",,,, ,"));
}

static void test_host(void **state)
{
	static const char *const good[] = { "localhost",  "LOCALHOST:9860",
					    "127.0.0.1",  "127.0.0.1:9860",
					    "10.1.2.3:1", "[::1]:9860",
					    "[fe80::1]" };
	static const char *const bad[] = {
		"evil.example",		  "",  "127.0.0.1.evil.example",
		"localhost.evil.example", "1", "0x7f000001",
		"[evil.example]"
	};

	(void)state;
	assert_true(head_is_local(NULL));
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(head_is_local(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(head_is_local(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_open_text),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_long_labels),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
