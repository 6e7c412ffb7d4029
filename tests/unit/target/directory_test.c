/* SPDX-License-Identifier: BSD-2-Clause */
/* directory_test.c: building a directory: errors with their reasons, limits. */
#include "target/directory.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "target/entries.h"

#define NAME "iqn.2026-01.com.example:disk"

static void expect(const struct tgt_directory *d, int got, int err,
		   const char *reason)
{
	assert_int_equal(got, err);
	if (!strstr(tgt_directory_why(d), reason))
		fail_msg("%s, not %s", tgt_directory_why(d), reason);
}

static struct iscsi_chap_secret account(const char *name, const char *secret)
{
	struct iscsi_chap_secret s = { .secret_len = strlen(secret) };

	snprintf(s.name, sizeof(s.name), "%s", name);
	memcpy(s.secret, secret, s.secret_len);
	return s;
}

/* [RFC 7143: 9.2.1 #5-7 #9] */
static void test_errors_of_auth_groups(void **state)
{
	const struct iscsi_chap_secret a = account("a", "first secret"),
				       b = account("b", "other secret"),
				       c = account("c", "first secret"),
				       nameless = account("", "first secret"),
				       open = account("d", "");
	struct tgt_directory *d = tgt_directory_new();
	const uint8_t address[16] = { 0 };
	const unsigned g = (unsigned)tgt_auth_group_add(d);

	(void)state;
	assert_int_equal(g, TGT_AUTH_NONE + 1);
	for (unsigned built_in = 0; built_in < g; built_in++) {
		expect(d, tgt_auth_group_account(d, built_in, &a),
		       ERR_NOT_FOUND, "cannot be changed");
		expect(d, tgt_auth_group_mutual(d, built_in, &a), ERR_NOT_FOUND,
		       "cannot be changed");
		expect(d, tgt_auth_group_initiator(d, built_in, NAME),
		       ERR_NOT_FOUND, "cannot be changed");
		expect(d, tgt_auth_group_address(d, built_in, address, 0),
		       ERR_NOT_FOUND, "cannot be changed");
	}
	expect(d, tgt_auth_group_account(d, g + 1, &a), ERR_NOT_FOUND,
	       "no auth group 3");
	assert_int_equal(tgt_auth_group_account(d, g, &a), 0);
	expect(d, tgt_auth_group_account(d, g, &a), ERR_BUSY,
	       "account a is given twice");
	expect(d, tgt_auth_group_account(d, g, &nameless), ERR_FORMAT,
	       "without a name");
	expect(d, tgt_auth_group_account(d, g, &open), ERR_FORMAT,
	       "without a secret");
	expect(d, tgt_auth_group_mutual(d, g, &c), ERR_FORMAT,
	       "must differ (RFC 7143 §9.2.1)");
	assert_int_equal(tgt_auth_group_mutual(d, g, &b), 0);
	expect(d, tgt_auth_group_mutual(d, g, &b), ERR_BUSY, "twice");
	expect(d, tgt_auth_group_account(d, g, &b), ERR_FORMAT,
	       "must differ (RFC 7143 §9.2.1)");
	expect(d, tgt_auth_group_initiator(d, g, "disk*"), ERR_FORMAT,
	       "disk*: begins with none of");
	expect(d, tgt_auth_group_address(d, g, address, 129), ERR_RANGE,
	       "129 bits");
	tgt_directory_free(d);
}

static void test_errors_of_portal_groups(void **state)
{
	struct tgt_portal_group_config cfg = { .tag = 7 };
	struct tgt_directory *d = tgt_directory_new();
	char address[65];

	(void)state;
	assert_int_equal(tgt_portal_group_add(d, &cfg), 0);
	expect(d, tgt_portal_group_add(d, &cfg), ERR_BUSY, "the tag 7");
	cfg = (struct tgt_portal_group_config){ .tag = 8, .discovery_auth = 2 };
	expect(d, tgt_portal_group_add(d, &cfg), ERR_NOT_FOUND,
	       "no auth group 2");
	memset(address, '1', 64);
	address[64] = '\0';
	expect(d, tgt_portal_group_address(d, 0, address), ERR_TOO_LONG,
	       "longer than 63 bytes");
	assert_int_equal(tgt_portal_group_address(d, 0, address + 1), 0);
	expect(d, tgt_portal_group_address(d, 1, "x"), ERR_NOT_FOUND,
	       "no portal group 1");
	tgt_directory_free(d);
}

/* [RFC 7143: 4.2.7.1 #1] */
static void test_errors_of_targets_rfc7143_4_2_7_2(void **state)
{
	static const char *const patterns[] = { "iqn.*", "disk" };
	const struct tgt_portal_group_config portals = { .tag = 7 };
	struct tgt_target_config cfg = { .name = NAME, .auth_group = 2 };
	struct tgt_directory *d = tgt_directory_new();
	char alias[ISCSI_NAME_MAX + 2];

	(void)state;
	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	expect(d, tgt_target_add(d, &cfg), ERR_NOT_FOUND, "no auth group 2");
	cfg.auth_group = TGT_AUTH_ANY;
	cfg.name = "disk";
	expect(d, tgt_target_add(d, &cfg), ERR_FORMAT,
	       "disk: begins with none of iqn.");
	cfg.name = "IQN.2026-01.com.example:DISK_1";
	cfg.strict_names = true;
	expect(d, tgt_target_add(d, &cfg), ERR_FORMAT, "U+005F");
	cfg.strict_names = false;
	assert_int_equal(tgt_target_add(d, &cfg), 0);
	assert_non_null(
		tgt_directory_target(d, "iqn.2026-01.com.example:disk_1"));
	expect(d, tgt_target_add(d, &cfg), ERR_BUSY,
	       "two targets have the name iqn.2026-01.com.example:disk_1");
	cfg.name = NAME;
	memset(alias, 'a', sizeof(alias) - 1);
	alias[sizeof(alias) - 1] = '\0';
	cfg.alias = alias;
	expect(d, tgt_target_add(d, &cfg), ERR_FORMAT, "alias");
	cfg.alias = alias + 1;
	assert_int_equal(tgt_target_add(d, &cfg), 1);
	expect(d, tgt_target_portal_group(d, 2, 0), ERR_NOT_FOUND,
	       "no target 2");
	expect(d, tgt_target_portal_group(d, 1, 1), ERR_NOT_FOUND,
	       "no portal group 1");
	assert_int_equal(tgt_target_portal_group(d, 1, 0), 0);
	expect(d, tgt_target_portal_group(d, 1, 0), ERR_BUSY, "tag 7 twice");
	expect(d,
	       tgt_target_map(d, 1,
			      &(struct tgt_map_config){ .initiators = patterns,
							.ninitiators = 2,
							.map = NULL }),
	       ERR_FORMAT, "disk: begins with none of iqn.");
	expect(d,
	       tgt_target_map(d, 2,
			      &(struct tgt_map_config){ .initiators = patterns,
							.ninitiators = 1,
							.map = NULL }),
	       ERR_NOT_FOUND, "no target 2");
	assert_int_equal(
		tgt_target_map(d, 1,
			       &(struct tgt_map_config){ .initiators = patterns,
							 .ninitiators = 1,
							 .map = NULL }),
		0);
	assert_int_equal(d->targets[1]->nmasks, 1);
	tgt_directory_free(d);
}

/* Each of 4,096 targets is found by its name; no chain is long. */
static void test_many_targets(void **state)
{
	struct tgt_directory *d = tgt_directory_new();
	struct tgt_target_config cfg = { .auth_group = TGT_AUTH_ANY };
	unsigned longest = 0;
	char name[64];

	(void)state;
	for (int i = 0; i < 4096; i++) {
		snprintf(name, sizeof(name), NAME "%d", i);
		cfg.name = name;
		assert_int_equal(tgt_target_add(d, &cfg), i);
	}
	for (int i = 0; i < 4096; i++) {
		snprintf(name, sizeof(name), NAME "%d", i);
		assert_ptr_equal(tgt_directory_target(d, name), d->targets[i]);
	}
	assert_null(tgt_directory_target(d, NAME));
	for (unsigned i = 0; i < d->names.nchains; i++) {
		unsigned n = 0;

		for (struct tgt_named *e = d->names.chains[i]; e; e = e->next)
			n++;
		longest = MAX(longest, n);
	}
	assert_true(longest < 16);
	tgt_directory_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_of_auth_groups),
		cmocka_unit_test(test_errors_of_portal_groups),
		cmocka_unit_test(test_errors_of_targets_rfc7143_4_2_7_2),
		cmocka_unit_test(test_many_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
