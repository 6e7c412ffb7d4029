/* SPDX-License-Identifier: BSD-2-Clause */
/* loglimit_test.c: a flood of one address does not hide the lines of others. */
#include "daemon/log/loglimit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

struct fixture {
	struct loglimit l;
	xtime now;
	unsigned dropped;
	struct loglimit_summary s;
};

static struct fixture *setup(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->now = 100 * XTIME_S;
	return f;
}

static bool line(struct fixture *f, enum trace_event e, const char *text)
{
	return loglimit_admit(&f->l, e, text, f->now, &f->dropped, &f->s);
}

static void test_flood_of_one_address(void **state)
{
	struct fixture *f = setup();
	unsigned flood = 0;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		char text[64];

		snprintf(text, sizeof(text), "10.0.0.1:%u login refused", i);
		flood += line(f, TRACE_LOGIN_FAILED, text);
		if (i % 1000 == 0)
			assert_true(line(f, TRACE_LOGIN_FAILED,
					 "10.0.0.2:9 login refused"));
		f->now += XTIME_MS;
	}
	assert_in_range(flood, LOGLIMIT_WARN_BURST, LOGLIMIT_WARN_BURST + 11);
	/* logins from that address are still logged */
	assert_true(line(f, TRACE_LOGIN, "10.0.0.1:7 session 1"));
	free(f);
}

/* As in admission: the addresses of an IPv6 /64 belong to one peer. */
static void test_flood_of_one_ipv6_prefix(void **state)
{
	struct fixture *f = setup();
	unsigned flood = 0;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		char text[64];

		snprintf(text, sizeof(text), "[2001:db8:0:7:%x::%x]:9 refused",
			 i % 7, i);
		flood += line(f, TRACE_LOGIN_FAILED, text);
	}
	assert_int_equal(flood, LOGLIMIT_WARN_BURST);
	assert_true(line(f, TRACE_LOGIN_FAILED, "[2001:db8:0:8::1]:9 refused"));
	assert_true(line(f, TRACE_LOGIN_FAILED, "[fe80::1%eth0]:9 refused"));
	assert_true(line(f, TRACE_LOGIN_FAILED, "[::ffff:1.2.3.4]:9 refused"));
	free(f);
}

static void test_summary_with_the_next_line(void **state)
{
	struct fixture *f = setup();

	(void)state;
	for (unsigned i = 0; i < LOGLIMIT_WARN_BURST; i++)
		assert_true(line(f, TRACE_PROTOCOL, "[2001:db8::1]:5 x"));
	for (unsigned i = 0; i < 7; i++)
		assert_false(line(f, TRACE_PROTOCOL, "[2001:db8::1]:6 x"));
	assert_int_equal(f->s.n, 0);
	f->now += XTIME_S;
	assert_true(line(f, TRACE_PROTOCOL, "[2001:db8::1]:7 x"));
	assert_int_equal(f->s.n, 7);
	assert_int_equal(f->s.event, TRACE_PROTOCOL);
	assert_string_equal(f->s.name, "[2001:db8::/64]");
	assert_false(loglimit_due(&f->l, f->now + LOGLIMIT_SUMMARY, &f->s));
	free(f);
}

static void test_summary_without_a_next_line(void **state)
{
	struct fixture *f = setup();

	(void)state;
	for (unsigned i = 0; i < LOGLIMIT_WARN_BURST + 3; i++)
		line(f, TRACE_PROTOCOL, "10.0.0.1:5 x");
	assert_false(loglimit_due(&f->l, f->now + LOGLIMIT_SUMMARY - 1, &f->s));
	assert_true(loglimit_due(&f->l, f->now + LOGLIMIT_SUMMARY, &f->s));
	assert_int_equal(f->s.n, 3);
	assert_false(loglimit_due(&f->l, f->now + LOGLIMIT_SUMMARY, &f->s));
	free(f);
}

/* A summary has the event of its lines, if they have one. */
static void test_summary_of_events(void **state)
{
	struct fixture *f = setup();

	(void)state;
	for (unsigned i = 0; i < LOGLIMIT_WARN_BURST + 3; i++)
		line(f, TRACE_SLOW, "10.0.0.1:5 x");
	assert_true(loglimit_due(&f->l, f->now + LOGLIMIT_SUMMARY, &f->s));
	assert_int_equal(f->s.event, TRACE_SLOW);
	assert_false(line(f, TRACE_SLOW, "10.0.0.1:5 x"));
	assert_false(line(f, TRACE_PROTOCOL, "10.0.0.1:5 x"));
	assert_false(line(f, TRACE_SLOW, "10.0.0.1:5 x"));
	assert_true(loglimit_due(&f->l, f->now + LOGLIMIT_SUMMARY, &f->s));
	assert_int_equal(f->s.n, 3);
	assert_int_equal(f->s.event, TRACE_CONN_LIMIT);
	free(f);
}

/* As many addresses as there are places for, and more; the one that is put out
 * has its summary written. */
static void test_many_addresses(void **state)
{
	struct fixture *f = setup();
	unsigned told = 0, summaries = 0;
	char text[64];

	(void)state;
	for (unsigned i = 0; i < LOGLIMIT_WARN_BURST + 5; i++)
		line(f, TRACE_PROTOCOL, "10.9.9.9:5 x");
	for (unsigned i = 0; i < 2 * LOGLIMIT_PEERS; i++) {
		f->now += 10 * XTIME_MS;
		snprintf(text, sizeof(text), "10.0.%u.%u:1 x", i / 256,
			 i % 256);
		told += line(f, TRACE_PROTOCOL, text);
		if (f->s.n) {
			assert_int_equal(f->s.n, 5);
			assert_string_equal(f->s.name, "10.9.9.9");
			summaries++;
		}
	}
	assert_int_equal(told, 2 * LOGLIMIT_PEERS); /* the first of each */
	assert_int_equal(summaries, 1);
	free(f);
}

static void test_limit_of_one_event(void **state)
{
	struct fixture *f = setup();
	unsigned told = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		told += line(f, TRACE_MEDIUM, "disk.img: read failed");
	assert_int_equal(told, LOGLIMIT_EVENT);
	f->now += XTIME_S;
	assert_true(line(f, TRACE_MEDIUM, "disk.img: read failed"));
	assert_int_equal(f->dropped, 1000 - LOGLIMIT_EVENT);
	free(f);
}

static void test_lines_without_an_address(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"10",
		"[",
		"[]:",
		"10.0.0.1 x",
		"x 10.0.0.1:5",
		":5 x",
		"1:",
		("[1111:2222:3333:4444:5555:6666:7777:8888%averylongname"
		 "ofaninterface]:1 x"),
	};
	struct fixture *f = setup();

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_true(line(f, TRACE_PROTOCOL, texts[i]));
	for (unsigned i = 0; i < LOGLIMIT_PEERS; i++)
		assert_string_equal(f->l.peers[i].name, "");
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood_of_one_address),
		cmocka_unit_test(test_flood_of_one_ipv6_prefix),
		cmocka_unit_test(test_summary_with_the_next_line),
		cmocka_unit_test(test_summary_without_a_next_line),
		cmocka_unit_test(test_summary_of_events),
		cmocka_unit_test(test_many_addresses),
		cmocka_unit_test(test_limit_of_one_event),
		cmocka_unit_test(test_lines_without_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
