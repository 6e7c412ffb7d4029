/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_test.c: the text formats of Prometheus, and requests to the HTTP
 * endpoint. */
#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/metrics/expo.h"
#include "daemon/metrics/head.h"
#include "daemon/metrics/http_conns.h"

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
					    "[fe80::1]",  "localhost:" };
	static const char *const bad[] = { "evil.example",
					   "",
					   "127.0.0.1.evil.example",
					   "localhost.evil.example",
					   "1",
					   "0x7f000001",
					   "[evil.example]",
					   "[::1]evil",
					   "[::1].evil.example",
					   "[::1",
					   "[::1]:80.evil.example",
					   "localhost:80.evil.example",
					   "127.0.0.1:evil",
					   "[localhost]",
					   "[127.0.0.1]",
					   "::1" };

	(void)state;
	assert_true(head_is_local(NULL));
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(head_is_local(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(head_is_local(bad[i]));
}

/* ---- connections ---- */

#define CONNS 60u

static struct http_conns conns;
static struct http_conn conn[CONNS];

static void begin_conns(void)
{
	memset(&conns, 0, sizeof(conns));
	memset(conn, 0, sizeof(conn));
	list_init(&conns.all);
}

static struct http_conn *add(unsigned i, unsigned peer)
{
	conn[i].peer = (struct http_peer){ .kind = AF_INET, .bits = peer };
	return http_conns_add(&conns, &conn[i], i * XTIME_MS);
}

/* The connections of one peer end for each other, not for those of another. */
static void test_share(void **state)
{
	(void)state;
	begin_conns();
	assert_null(add(0, 2));
	for (unsigned i = 1; i <= HTTP_SHARE; i++)
		assert_null(add(i, 1));
	assert_ptr_equal(add(HTTP_SHARE + 1, 1), &conn[1]);
	http_conns_renew(&conns, &conn[2], XTIME_S);
	assert_ptr_equal(add(HTTP_SHARE + 2, 1), &conn[3]);
	assert_null(add(HTTP_SHARE + 3, 2));
	assert_false(conn[0].has_ended);
}

static void test_connections_of_many_peers(void **state)
{
	(void)state;
	begin_conns();
	for (unsigned i = 0; i < HTTP_BUSY; i++)
		assert_null(add(i, i));
	conn[0].is_waiting = true; /* for its answer */
	for (unsigned i = HTTP_BUSY; i < CONNS; i++)
		assert_ptr_equal(add(i, i), &conn[i + 1 - HTTP_BUSY]);
	http_conns_remove(&conns, &conn[1]);
	assert_int_equal(conns.n, CONNS - 1);
}

static void test_all_wait_for_their_answers(void **state)
{
	(void)state;
	begin_conns();
	for (unsigned i = 0; i < HTTP_SHARE; i++) {
		assert_null(add(i, 1));
		conn[i].is_waiting = true;
	}
	assert_ptr_equal(add(HTTP_SHARE, 1), &conn[0]);
}

static void test_slow_requests(void **state)
{
	(void)state;
	begin_conns();
	for (unsigned i = 0; i < 3; i++)
		assert_null(add(i, i));
	assert_null(http_conns_expired(&conns, -1));
	assert_ptr_equal(http_conns_expired(&conns, 1 * XTIME_MS), &conn[0]);
	assert_ptr_equal(http_conns_expired(&conns, 1 * XTIME_MS), &conn[1]);
	assert_null(http_conns_expired(&conns, 1 * XTIME_MS));
}

/* An address without its port; of IPv6 its /64. */
static void test_peers(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "2001:db8::1", "2001:db8::2", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.1", true },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.2", false },
		{ "::ffff:0.0.0.1", "::", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sockaddr_in6 a = { .sin6_family = AF_INET6 }, b = a;
		struct http_peer p, q;

		a.sin6_port = 1;
		inet_pton(AF_INET6, rows[i].a, &a.sin6_addr);
		inet_pton(AF_INET6, rows[i].b, &b.sin6_addr);
		p = http_peer_of(-1, (const void *)&a);
		q = http_peer_of(-1, (const void *)&b);
		assert_int_equal(p.kind == q.kind && p.bits == q.bits,
				 rows[i].same);
	}
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
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_connections_of_many_peers),
		cmocka_unit_test(test_all_wait_for_their_answers),
		cmocka_unit_test(test_slow_requests),
		cmocka_unit_test(test_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
