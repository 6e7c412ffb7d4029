/* SPDX-License-Identifier: BSD-2-Clause */
/* options_test.c: the command line of iserd. */
#include "daemon/config/options.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/config/schema.h"
#include "net/conn.h"

static bool parse(struct options *o, int *code, const char *const *args)
{
	static char copy[16][64];
	char *argv[17] = { NULL };
	int argc = 0;

	for (; args[argc]; argc++) {
		snprintf(copy[argc], sizeof(copy[argc]), "%s", args[argc]);
		argv[argc] = copy[argc];
	}
	return options_parse(o, argc, argv, code);
}

#define PARSE(o, code, ...) \
 parse(o, code, (const char *const[]){ "iserd", __VA_ARGS__, NULL })

static void test_options_defaults(void **state)
{
	struct options o;
	int code;

	(void)state;
	assert_true(PARSE(&o, &code, "serve", "disk.img"));
	assert_int_equal(o.nluns, 1);
	assert_string_equal(o.luns[0], "disk.img");
	assert_int_equal(o.nlisten, 1);
	assert_string_equal(o.listen[0], "127.0.0.1:3260"); /* loopback */
	assert_int_equal(strncmp(o.name, "iqn.", 4), 0);
	assert_false(o.lun.read_only);
	assert_int_equal(o.log.level, TRACE_LEVEL_NOTICE);
}

static void test_options_all(void **state)
{
	struct options o;
	int code;

	(void)state;
	assert_true(PARSE(&o, &code, "serve", "-l", "[::1]:0", "--listen",
			  "10.0.0.1", "--name=iqn.2026-01.x:y", "-r",
			  "--io=epoll", "--block-size=4096", "--spin=20",
			  "ram:1G", "null:1T"));
	assert_int_equal(o.nlisten, 2);
	assert_string_equal(o.listen[1], "10.0.0.1");
	assert_string_equal(o.name, "iqn.2026-01.x:y");
	assert_true(o.lun.read_only);
	assert_int_equal(o.io, IO_EPOLL);
	assert_int_equal(o.lun.block_size, 4096);
	assert_int_equal(o.threads.spin_us, 20);
	assert_int_equal(o.nluns, 2);
}

static void test_options_refused(void **state)
{
	struct options o;
	int code;

	(void)state;
	assert_false(PARSE(&o, &code, "serve"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "server", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--io=fast", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--block-size=100", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--workers=0", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--nonsense", "x"));
	assert_int_equal(code, EXIT_USAGE);
}

static void test_options_given_twice(void **state)
{
	static const struct {
		const char *a, *b, *c, *d;
		bool good;
	} rows[] = {
		{ "--workers", "2", "--workers", "2", false },
		{ "--workers", "2", "-w", "3", false },
		{ "--name", "iqn.2026-01.a:x", "-n", "iqn.2026-01.a:y", false },
		{ "-b", "512", "--block-size", "4096", false },
		{ "--log", "info", "--log", "debug", false },
		{ "--control", "/a", "--control", "/b", false },
		{ "--state", "/a", "--state", "/b", false },
		{ "--user", "a", "--user", "b", false },
		{ "--max-sessions", "4", "--max-sessions", "5", false },
		{ "--transport", "tcp", "--transport", "iser", false },
		{ "-l", "1", "--listen", "2", true },
		{ "--verbs-listen", "1", "--verbs-listen", "2", true },
		{ "-r", "-r", "--pin", "--pin", true },
	};
	struct options o;
	int code;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(PARSE(&o, &code, "serve", rows[i].a, rows[i].b,
				       rows[i].c, rows[i].d, "ram:1M"),
				 rows[i].good);
}

static void test_options_limits(void **state)
{
	struct options o;
	int code;

	(void)state;
	assert_true(PARSE(&o, &code, "serve", "ram:1M"));
	assert_int_equal(o.limits.sessions, 1024);
	assert_int_equal(o.limits.v6_bits, 64);
	assert_true(PARSE(&o, &code, "serve", "--max-sessions", "10",
			  "--max-startups", "4:50:8:2", "--max-discovery",
			  "7:3", "--login-rate", "0", "--penalty", "0:0",
			  "ram:1M"));
	assert_int_equal(o.limits.sessions, 10);
	assert_int_equal(o.limits.source_sessions, 10);
	assert_int_equal(o.limits.start, 4);
	assert_int_equal(o.limits.rate, 50);
	assert_int_equal(o.limits.full, 8);
	assert_int_equal(o.limits.source_startups, 2);
	assert_int_equal(o.limits.discovery, 7);
	assert_int_equal(o.limits.source_discovery, 3);
	assert_int_equal(o.limits.per_second, 0);
	assert_int_equal(o.limits.penalty_max, 0);
	assert_true(PARSE(&o, &code, "serve", "--max-startups", "4:50:8",
			  "--address-block", "24:48", "--penalty", "2:30",
			  "--discovery-time", "9", "ram:1M"));
	assert_int_equal(o.limits.source_startups, 8);
	assert_int_equal(o.limits.v4_bits, 24);
	assert_int_equal(o.limits.v6_bits, 48);
	assert_int_equal(o.limits.penalty_first, 2);
	assert_int_equal(o.session.discovery_time, 9);
}

static void test_options_limits_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "--max-sessions", "0" },
		{ "--max-sessions", "x" },
		{ "--max-sessions", "5:" },
		{ "--max-sessions", "5:0" },
		{ "--max-sessions", "5:1:1" },
		{ "--max-sessions", "-1" },
		{ "--max-startups", "5" },
		{ "--max-startups", "5:30" },
		{ "--max-startups", "5:101:9" },
		{ "--max-startups", "9:30:5" },
		{ "--max-startups", "5:30:9:1:1" },
		{ "--max-discovery", "" },
		{ "--penalty", "5" },
		{ "--penalty", "5:4" },
		{ "--address-block", "33:64" },
		{ "--address-block", "32:129" },
		{ "--login-rate", "fast" },
		{ "--discovery-time", "0" },
		{ "--listen", "no.such.name" },
		{ "--listen", "1.2.3.4:x" },
		{ "--verbs-listen", "[::1" },
		{ "--alua", "1:dozing:1" },
		{ "--alua", "1:standby" },
	};
	struct options o;
	int code;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(PARSE(&o, &code, "serve", bad[i][0], bad[i][1],
				   "ram:1M"));
		assert_int_equal(code, EXIT_USAGE);
	}
}

static void test_options_chap_goes_together(void **state)
{
	struct options o;
	int code = -1;

	(void)state;
	assert_false(PARSE(&o, &code, "serve", "--chap-user=me", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--chap-user=me",
			   "--chap-secret-file=f", "--chap-mutual-user=t",
			   "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--chap-mutual-user=t",
			   "--chap-mutual-secret-file=g", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--discovery-auth", "x"));
	assert_int_equal(code, EXIT_USAGE);
	assert_true(PARSE(&o, &code, "serve", "--chap-user=me",
			  "--chap-secret-file=f", "--chap-mutual-user=t",
			  "--chap-mutual-secret-file=g", "--discovery-auth",
			  "x"));
	assert_string_equal(o.chap.mutual_user, "t");
	assert_string_equal(o.chap.mutual_secret_file, "g");
	assert_true(o.chap.discovery);
}

/* A document has one group of a name, so the second one would replace the first. */
static void test_options_group_given_twice(void **state)
{
	struct options o;
	int code;

	(void)state;
	assert_true(PARSE(&o, &code, "serve", "--alua=1:standby:1",
			  "--alua=2:standby:2", "x"));
	assert_int_equal(o.ngroups, 2);
	assert_false(PARSE(&o, &code, "serve", "--alua=1:standby:1",
			   "--alua=1:optimized:2", "x"));
	assert_int_equal(code, EXIT_USAGE);
}

static void test_options_help(void **state)
{
	struct options o;
	int code = -1;

	(void)state;
	assert_false(PARSE(&o, &code, "--help"));
	assert_int_equal(code, EXIT_OK);
	code = -1;
	assert_false(PARSE(&o, &code, "serve", "--version"));
	assert_int_equal(code, EXIT_OK);
}

static void test_protection(void **state)
{
	struct options o;
	int code;

	(void)state;
	assert_true(PARSE(&o, &code, "serve", "ram:1M"));
	assert_int_equal(o.lun.protection, 0);
	assert_true(PARSE(&o, &code, "serve", "--protection", "2", "ram:1M"));
	assert_int_equal(o.lun.protection, 2);
	assert_false(PARSE(&o, &code, "serve", "--protection", "0", "ram:1M"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--protection", "4", "ram:1M"));
}

/* Each row says enough for a configuration file: its default, and the values
 * that are allowed. */
static void test_schema_rows_are_complete(void **state)
{
	const struct cfg_row *rows;
	size_t n;

	(void)state;
	rows = cfg_rows(&n);
	for (size_t i = 0; i < n; i++) {
		const struct cfg_row *r = &rows[i];
		bool has_value = r->type != CFG_BOOL && r->type != CFG_ACTION;
		bool has_range =
			r->type == CFG_NUMBER || r->type == CFG_DURATION;

		assert_true(r->opt.help && *r->opt.help);
		assert_true((r->opt.arg != NULL) == has_value);
		assert_true(!has_range || r->opt.max > r->opt.min);
		assert_true(r->type != CFG_DURATION || r->unit);
		assert_true(!(r->opt.initial && r->otherwise));
		assert_true((r->opt.words != NULL) ==
			    (r->type == CFG_ENUM || r->type == CFG_LIST));
		assert_true((r->parts != NULL) == (r->type == CFG_NUMBERS));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rows[j].opt.name, r->opt.name);
	}
}

/* The words of an enum are those that the setter takes. */
static void test_schema_words_are_taken(void **state)
{
	const struct cfg_row *rows;
	char why[OPT_WHY];
	struct options o;
	size_t n;

	(void)state;
	rows = cfg_rows(&n);
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; rows[i].opt.words && rows[i].opt.words[w];
		     w++)
			assert_int_equal(opt_set(&rows[i].opt, &o, "x",
						 rows[i].opt.words[w], why),
					 OPT_OK);
}

/* Words that are stored as enums of other rooms have the order of the enums. */
static void test_schema_words_are_those_of_the_enums(void **state)
{
	struct options o;
	int code;

	(void)state;
	for (int i = TRACE_LEVEL_ERROR; i <= TRACE_LEVEL_DEBUG; i++) {
		const char *name = trace_level_name((enum trace_level)i);

		assert_true(PARSE(&o, &code, "serve", "--log", name, "x"));
		assert_int_equal(o.log.level, i);
	}
	assert_true(PARSE(&o, &code, "serve", "--io", "uring", "x"));
	assert_int_equal(o.io, IO_URING);
	assert_true(PARSE(&o, &code, "serve", "--io", "epoll", "x"));
	assert_int_equal(o.io, IO_EPOLL);
	assert_true(PARSE(&o, &code, "serve", "--transport", "iser,tcp", "x"));
	assert_int_equal(o.transports, NET_ALLOW_TCP | NET_ALLOW_RDMA);
	assert_true(PARSE(&o, &code, "serve", "--verbs", "on", "x"));
	assert_int_equal(o.verbs, VERBS_ON);
	assert_true(PARSE(&o, &code, "serve", "--digests", "prefer", "x"));
	assert_int_equal(o.digests, DIGESTS_PREFER);
	assert_true(PARSE(&o, &code, "serve", "--compat", "strict", "x"));
	assert_true(o.strict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protection),
		cmocka_unit_test(test_options_given_twice),
		cmocka_unit_test(test_options_limits),
		cmocka_unit_test(test_options_limits_refused),
		cmocka_unit_test(test_options_chap_goes_together),
		cmocka_unit_test(test_options_defaults),
		cmocka_unit_test(test_options_all),
		cmocka_unit_test(test_options_refused),
		cmocka_unit_test(test_options_group_given_twice),
		cmocka_unit_test(test_options_help),
		cmocka_unit_test(test_schema_rows_are_complete),
		cmocka_unit_test(test_schema_words_are_taken),
		cmocka_unit_test(test_schema_words_are_those_of_the_enums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
