/* SPDX-License-Identifier: BSD-2-Clause */
/* options_test.c: the command line of iserd. */
#include "daemon/options.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

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

static void test_size_parse_good(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} rows[] = {
		{ "0", 0 },
		{ "512", 512 },
		{ "1k", 1024 },
		{ "64M", 64ull << 20 },
		{ "3G", 3ull << 30 },
		{ "2TiB", 2ull << 40 },
		{ "1PB", 1ull << 50 },
		{ "9223372036854775807", INT64_MAX },
	};
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(size_parse(rows[i].text, &size));
		assert_true(size == rows[i].size);
	}
}

static void test_size_parse_bad(void **state)
{
	static const char *const bad[] = { "",
					   "M",
					   "-1",
					   "1X",
					   "1MM",
					   "0x10",
					   " 1",
					   "1 M",
					   "9223372036854775808",
					   "99999999999999999999999",
					   "9999999P" };
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(size_parse(bad[i], &size));
}

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
	assert_false(o.read_only);
	assert_int_equal(o.log, TRACE_LEVEL_NOTICE);
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
	assert_true(o.read_only);
	assert_int_equal(o.io, IO_EPOLL);
	assert_int_equal(o.block_size, 4096);
	assert_int_equal(o.spin_us, 20);
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
	assert_string_equal(o.chap_mutual_user, "t");
	assert_string_equal(o.chap_mutual_secret_file, "g");
	assert_true(o.discovery_auth);
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
	assert_int_equal(o.protection, 0);
	assert_true(PARSE(&o, &code, "serve", "--protection", "2", "ram:1M"));
	assert_int_equal(o.protection, 2);
	assert_false(PARSE(&o, &code, "serve", "--protection", "0", "ram:1M"));
	assert_int_equal(code, EXIT_USAGE);
	assert_false(PARSE(&o, &code, "serve", "--protection", "4", "ram:1M"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protection),
		cmocka_unit_test(test_size_parse_good),
		cmocka_unit_test(test_size_parse_bad),
		cmocka_unit_test(test_options_chap_goes_together),
		cmocka_unit_test(test_options_defaults),
		cmocka_unit_test(test_options_all),
		cmocka_unit_test(test_options_refused),
		cmocka_unit_test(test_options_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
