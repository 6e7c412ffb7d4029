/* SPDX-License-Identifier: BSD-2-Clause */
/* addr_test.c: addresses as text. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "net/net.h"

static void test_addr_parse_accepts(void **state)
{
	static const struct {
		const char *text, *str;
	} cases[] = {
		{ "127.0.0.1", "127.0.0.1:3260" },
		{ "127.0.0.1:0", "127.0.0.1:0" },
		{ "10.1.2.3:65535", "10.1.2.3:65535" },
		{ ":860", "0.0.0.0:860" },
		{ "::1", "[::1]:3260" },
		{ "::", "[::]:3260" },
		{ "[::1]", "[::1]:3260" },
		{ "[2001:db8::7]:860", "[2001:db8::7]:860" },
		{ "2001:db8::7", "[2001:db8::7]:3260" },
		{ "fe80::1%lo", "[fe80::1%lo]:3260" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct net_addr a;
		char str[NET_ADDR_STR];

		assert_int_equal(net_addr_parse(&a, cases[i].text, 3260), 0);
		net_addr_str(&a, str);
		assert_string_equal(str, cases[i].str);
	}
}

static void test_addr_parse_refuses(void **state)
{
	static const char *const cases[] = {
		"",
		"localhost",
		"127.0.0.1:",
		"127.0.0.1:12a",
		"127.0.0.1:99999a",
		"127.0.0.1:-1",
		"127.0.0.1: 1",
		"256.0.0.1",
		"4262",
		"127.1",
		"0x7f.0.0.1",
		"[::1",
		"[]",
		"[]:1",
		"[::1]x",
		"[::1]:",
		"[127.0.0.1]:1",
		":::::1",
		"a.very.long.name.that.goes.on.and.on.and.on.and.on.and.on.and.on.and.on.and.on",
	};
	struct net_addr a;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(net_addr_parse(&a, cases[i], 3260), -EINVAL);
	assert_int_equal(net_addr_parse(&a, "127.0.0.1:65536", 0), -ERANGE);
	assert_int_equal(net_addr_parse(&a, "[::1]:99999999999999999999", 0),
			 -ERANGE);
	assert_int_equal(net_addr_parse_listen(&a, "65536", 0), -ERANGE);
	assert_int_equal(net_addr_parse_listen(&a, ":65536", 0), -ERANGE);
}

static void test_addr_parse_listen(void **state)
{
	static const struct {
		const char *text, *str;
		bool loopback;
	} cases[] = {
		{ "4262", "127.0.0.1:4262", true },
		{ ":4262", "127.0.0.1:4262", true },
		{ ":0", "127.0.0.1:0", true },
		{ "127.9.9.9", "127.9.9.9:3260", true },
		{ "::1", "[::1]:3260", true },
		{ "[fd00::1:80]", "[fd00::1:80]:3260", false },
		{ "2001:db8::80", "[2001:db8::80]:3260", false },
		{ "fe80::1:80f", "[fe80::1:80f]:3260", false },
		{ "[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true },
		{ "0.0.0.0", "0.0.0.0:3260", false },
		{ "0.0.0.0:4262", "0.0.0.0:4262", false },
		{ "::", "[::]:3260", false },
		{ "[::]:4262", "[::]:4262", false },
		{ "10.1.2.3", "10.1.2.3:3260", false },
		{ "[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1", false },
	};
	static const char *const bad[] = { "",	    ":",     ":x",
					   "::1:x", "4262x", "127.1",
					   "host",  "*",     ":1:" };
	/* each is an address, and another one with a port */
	static const char *const unclear[] = { "::1:3260", "fe80::1:2:80",
					       "2001:db8::1:3260" };
	struct net_addr a;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char str[NET_ADDR_STR];

		assert_int_equal(net_addr_parse_listen(&a, cases[i].text, 3260),
				 0);
		net_addr_str(&a, str);
		assert_string_equal(str, cases[i].str);
		assert_int_equal(net_addr_is_loopback(&a), cases[i].loopback);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(net_addr_parse_listen(&a, bad[i], 3260),
				 -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(unclear); i++) {
		assert_int_equal(net_addr_parse_listen(&a, unclear[i], 3260),
				 -EDOM);
		assert_int_equal(net_addr_parse(&a, unclear[i], 3260), 0);
	}
}

static void test_addr_str_longest_fits(void **state)
{
	struct net_addr a;
	char str[NET_ADDR_STR];

	(void)state;
	assert_int_equal(
		net_addr_parse(
			&a, "[1111:2222:3333:4444:5555:6666:7777:8888]:65535",
			0),
		0);
	net_addr_str(&a, str);
	assert_string_equal(str,
			    "[1111:2222:3333:4444:5555:6666:7777:8888]:65535");
	assert_int_equal(net_addr_port(&a), 65535);
}

static void test_addr_str_of_no_address(void **state)
{
	struct net_addr a = { .sa.ss_family = AF_UNIX };
	char str[NET_ADDR_STR];

	(void)state;
	net_addr_str(&a, str);
	assert_string_equal(str, "local");
	assert_int_equal(net_addr_port(&a), 0);
}

static void test_host_name_is_ended_in_any_size(void **state)
{
	char whole[256], part[256];

	(void)state;
	net_host_name(whole, sizeof(whole));
	for (size_t size = 1; size < sizeof(part); size++) {
		memset(part, 'x', sizeof(part));
		net_host_name(part, size);
		assert_true(strlen(part) < size);
		assert_int_equal(part[size], 'x');
		if (size > strlen(whole))
			assert_string_equal(part, whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addr_parse_accepts),
		cmocka_unit_test(test_addr_parse_refuses),
		cmocka_unit_test(test_addr_parse_listen),
		cmocka_unit_test(test_addr_str_longest_fits),
		cmocka_unit_test(test_addr_str_of_no_address),
		cmocka_unit_test(test_host_name_is_ended_in_any_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
