/* SPDX-License-Identifier: BSD-2-Clause */
/* portal_text_test.c: portals in the records of gateways. */
#include "daemon/cluster/portal_text.h"

#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

#define NAME "iqn.2026-01.com.example:disk"

static void test_round(void **state)
{
	static const char *const addresses[] = {
		"10.0.0.2:3260",
		"[2001:db8::1]:3260",
		"[1111:2222:3333:4444:5555:6666:7777:8888]:65535",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		char text[CLUSTER_PORTAL_MAX];
		struct remote_portal p;

		assert_true(portal_write(text, addresses[i], 65535, NAME));
		assert_true(portal_read(text, &p));
		assert_string_equal(p.address, addresses[i]);
		assert_int_equal(p.tag, 65535);
		assert_int_equal(p.target, portal_hash(NAME));
	}
	assert_int_not_equal(portal_hash(NAME), portal_hash(NAME "2"));
}

static void test_too_long(void **state)
{
	char address[CLUSTER_PORTAL_MAX], text[CLUSTER_PORTAL_MAX];

	(void)state;
	memset(address, '1', sizeof(address));
	address[sizeof(address) - 1] = '\0';
	assert_false(portal_write(text, address, 1, NAME));
}

/* Other gateways write the record, maybe of another version. */
static void test_bad(void **state)
{
	static const char *const texts[] = {
		"",
		"10.0.0.2:3260",
		"10.0.0.2:3260,1",
		"10.0.0.2:3260,1;",
		"10.0.0.2:3260,0;12345678",
		"10.0.0.2:3260,65536;12345678",
		"10.0.0.2:3260,-1;12345678",
		"10.0.0.2:3260, 1;12345678",
		"10.0.0.2:3260,1;123456789",
		"10.0.0.2:3260,1;1234567g",
		"10.0.0.2:3260,1;-2345678",
		"10.0.0.2:3260,1 ;2345678",
		"10.0.0.2:3260,1,2;12345678",
		",1;12345678",
		"10.0.0.2,1;12345678",
		":3260,1;12345678",
		"10.0.0.2:,1;12345678",
		"host.example:3260,1;12345678",
		"10.0.0.2:3260\n,1;12345678",
		"[fe80::1%eth0]:3260,1;12345678",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct remote_portal p;

		if (portal_read(texts[i], &p))
			fail_msg("accepted: %s", texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
