/* SPDX-License-Identifier: BSD-2-Clause */
/* isns_view_test.c: what iser-isns makes of iserd's targets. */
#include <arpa/inet.h>
#include <string.h>

#include "cmocka_all.h"
#include "tools/isns/view.h"

/* 192.0.2.1, 192.0.2.2 and 2001:db8::1 */
static struct in6_addr local[3];

static int setup(void **state)
{
	(void)state;
	assert_true(isns_portal_ip("192.0.2.1", &local[0]));
	assert_true(isns_portal_ip("192.0.2.2", &local[1]));
	assert_true(isns_portal_ip("2001:db8::1", &local[2]));
	return 0;
}

static const char *make(struct isns_view *v, const char *text)
{
	json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);
	const char *why = isns_view_make(v, j, local, 3);

	assert_non_null(j);
	json_decref(j);
	return why;
}

#define TARGET(name, portals) \
 "{\"name\":\"" name "\",\"alias\":null,\"portals\":[" portals "]}"
#define PORTAL(address, tag) "{\"address\":\"" address "\",\"tag\":" tag "}"

static void expect_portal(const struct isns_view *v, unsigned i, const char *ip,
			  uint16_t port)
{
	struct in6_addr want;

	assert_true(isns_portal_ip(ip, &want));
	assert_memory_equal(&v->portals[i].ip, &want, sizeof(want));
	assert_int_equal(v->portals[i].port, port);
}

/* RFC 4171 §3.4: a portal is known once, its tag depends on the target. RFC 4007 §11.2: an
 * address with a zone is of no use elsewhere. */
static void test_portals_are_shared(void **state)
{
	struct isns_view v;

	(void)state;
	assert_null(make(
		&v,
		"[" TARGET(
			"a",
			PORTAL("192.0.2.9:3260", "1") "," PORTAL(
				"[fe80::1%eth0]:3260",
				"1")) "," TARGET("b",
						 PORTAL("192.0.2.9:3260", "7") "," PORTAL(
							 "[2001:db8::9]:860",
							 "2")) "]"));
	assert_int_equal(v.nportals, 2);
	expect_portal(&v, 0, "192.0.2.9", 3260);
	expect_portal(&v, 1, "2001:db8::9", 860);
	assert_int_equal(v.ntargets, 2);
	assert_int_equal(v.targets[0].members[0].tag, 1);
	assert_int_equal(v.targets[1].nmembers, 2);
	assert_int_equal(v.targets[1].members[0].portal, 0);
	assert_int_equal(v.targets[1].members[0].tag, 7);
	assert_int_equal(v.targets[1].members[1].portal, 1);
	isns_view_free(&v);
}

static void test_wildcards(void **state)
{
	struct isns_view v;

	(void)state;
	assert_null(make(&v, "[" TARGET("a", PORTAL("0.0.0.0:3260", "1")) "]"));
	assert_int_equal(v.nportals, 2);
	expect_portal(&v, 0, "192.0.2.1", 3260);
	expect_portal(&v, 1, "192.0.2.2", 3260);
	isns_view_free(&v);
	assert_null(make(&v, "[" TARGET("a", PORTAL("[::]:3260", "1")) "]"));
	assert_int_equal(v.nportals, 3);
	expect_portal(&v, 2, "2001:db8::1", 3260);
	isns_view_free(&v);
}

/* A target that discovery shows nowhere is not registered. */
static void test_hidden_target(void **state)
{
	struct isns_view v;

	(void)state;
	assert_null(make(&v, "[" TARGET("a", "") "]"));
	assert_int_equal(v.ntargets, 0);
	isns_view_free(&v);
}

static void test_equal(void **state)
{
	static const char *const different[] = {
		"[]",
		"[" TARGET("b", PORTAL("192.0.2.9:3260", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:3260", "2")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:3261", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.8:3260", "1")) "]",
		"[{\"name\":\"a\",\"alias\":\"x\",\"portals\":[" PORTAL(
			"192.0.2.9:3260", "1") "]}]",
	};
	struct isns_view a, b;

	(void)state;
	assert_null(
		make(&a, "[" TARGET("a", PORTAL("192.0.2.9:3260", "1")) "]"));
	assert_null(
		make(&b, "[" TARGET("a", PORTAL("192.0.2.9:3260", "1")) "]"));
	assert_true(isns_view_equal(&a, &b));
	isns_view_free(&b);
	for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++) {
		assert_null(make(&b, different[i]));
		assert_false(isns_view_equal(&a, &b));
		assert_false(isns_view_equal(&b, &a));
		isns_view_free(&b);
	}
	isns_view_free(&a);
}

static void test_bad_responses(void **state)
{
	static const char *const bad[] = {
		"{}",
		"3",
		"[{}]",
		"[{\"name\":3,\"portals\":[]}]",
		"[{\"name\":\"a\"}]",
		"[" TARGET("a", "3") "]",
		"[" TARGET("a", PORTAL("192.0.2.9", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:0", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:65536", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:3260x", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.999:3260", "1")) "]",
		"[" TARGET("a", PORTAL("[192.0.2.9]:3260", "1")) "]",
		"[" TARGET("a", PORTAL("2001:db8::1:3260", "1")) "]",
		"[" TARGET("a", PORTAL("[]:3260", "1")) "]",
		"[" TARGET("a", PORTAL("[:3260", "1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:3260", "-1")) "]",
		"[" TARGET("a", PORTAL("192.0.2.9:3260", "65536")) "]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct isns_view v;

		assert_non_null(make(&v, bad[i]));
		assert_int_equal(v.ntargets + v.nportals, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_portals_are_shared),
		cmocka_unit_test(test_wildcards),
		cmocka_unit_test(test_hidden_target),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_bad_responses),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
