/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access_test.c: who may see and use what: one directory, and a table of
 * initiators with what each of them gets by login, by SendTargets and by CHAP.
 */
#include "target/access.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "device/device.h"

#define OURS  "iqn.2026-01.com.example:"
#define ALICE OURS "alice"
#define BOB   OURS "bob"
#define EVE   "iqn.1991-05.com.microsoft:eve"

/* ---- the directory ---- */

enum auth {
	ANY,
	NONE,
	NAMED,
	NEAR,
	BOTH,
	SECRET
};

enum portals {
	FRONT,
	BACK,
	STORE,
	HIDDEN
}; /* tag: index + 1 */

static const struct {
	const char *name;
	enum auth auth;
	unsigned portals; /* bits */
} targets[] = {
	{ OURS "open", ANY, BIT(FRONT) | BIT(BACK) | BIT(STORE) | BIT(HIDDEN) },
	{ OURS "closed", NONE, BIT(FRONT) | BIT(BACK) | BIT(STORE) },
	{ OURS "named", NAMED, BIT(FRONT) | BIT(BACK) },
	{ OURS "near", NEAR, BIT(FRONT) | BIT(BACK) },
	{ OURS "both", BOTH, BIT(FRONT) },
	{ OURS "secret", SECRET, BIT(FRONT) | BIT(STORE) },
	{ OURS "nowhere", ANY, 0 },
};

#define NTARGETS ARRAY_LEN(targets)

static const struct iscsi_chap_secret carol = { .name = "carol",
						.secret = "secret of carol",
						.secret_len = 15 };
static const struct iscsi_chap_secret dave = { .name = "dave",
					       .secret = "secret of dave",
					       .secret_len = 14 };
static const struct iscsi_chap_secret own = { .name = "target",
					      .secret = "secret of target",
					      .secret_len = 16 };

static const uint8_t v4_near[16] = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 };
static const uint8_t v4_far[16] = { [10] = 0xff, [11] = 0xff, 192, 0, 2, 1 };
static const uint8_t v6_near[16] = { 0xfd, 0x12, [15] = 1 };
static const uint8_t v6_far[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

static void add_near(struct tgt_directory *d, unsigned group)
{
	static const uint8_t ten[16] = { [10] = 0xff, [11] = 0xff, 10 };
	static const uint8_t ula[16] = { 0xfd };

	assert_int_equal(tgt_auth_group_address(d, group, ten, 96 + 8), 0);
	assert_int_equal(tgt_auth_group_address(d, group, ula, 8), 0);
}

static void add_auth_groups(struct tgt_directory *d)
{
	for (unsigned i = NAMED; i <= SECRET; i++)
		assert_int_equal(tgt_auth_group_add(d), i);
	assert_int_equal(tgt_auth_group_initiator(d, NAMED, ALICE), 0);
	assert_int_equal(tgt_auth_group_initiator(d, NAMED, OURS "b?b"), 0);
	add_near(d, NEAR);
	assert_int_equal(tgt_auth_group_initiator(d, BOTH, OURS "*"), 0);
	add_near(d, BOTH);
	assert_int_equal(tgt_auth_group_account(d, SECRET, &carol), 0);
	assert_int_equal(tgt_auth_group_account(d, SECRET, &dave), 0);
	assert_int_equal(tgt_auth_group_mutual(d, SECRET, &own), 0);
}

static const struct tgt_portal_group_config portals[] = {
	[FRONT] = { FRONT + 1, TGT_DISCOVERY_PERMITTED, ANY },
	[BACK] = { BACK + 1, TGT_DISCOVERY_ALL, NAMED },
	[STORE] = { STORE + 1, TGT_DISCOVERY_PERMITTED, SECRET },
	[HIDDEN] = { HIDDEN + 1, TGT_DISCOVERY_NONE, ANY },
};

static struct tgt_directory *build(void)
{
	struct tgt_directory *d = tgt_directory_new();

	assert_non_null(d);
	add_auth_groups(d);
	for (unsigned i = 0; i < ARRAY_LEN(portals); i++)
		assert_int_equal(tgt_portal_group_add(d, &portals[i]), i);
	for (unsigned i = 0; i < NTARGETS; i++) {
		const struct tgt_target_config t = {
			.name = targets[i].name,
			.auth_group = targets[i].auth,
		};

		assert_int_equal(tgt_target_add(d, &t), i);
		for (unsigned p = 0; p < ARRAY_LEN(portals); p++)
			if (targets[i].portals & BIT(p))
				assert_int_equal(
					tgt_target_portal_group(d, i, p), 0);
	}
	return d;
}

/* ---- the table ---- */

/* What a target is to an initiator: its login succeeds; the auth group refuses
 * it (0202h); the target is not there, or looks so (0203h). */
#define YES '+'
#define NO  '-'
#define NIL '.'

/* The columns of login and of shown are the rows of targets[]: open, closed,
 * named, near, both, secret, nowhere. */
static const struct {
	const char *initiator;
	const uint8_t *address;
	enum portals portals;
	const char *login, *shown;
	char discovery;
} table[] = {
	{ ALICE, v4_near, FRONT, "+.++++.", "+.++++.", YES },
	{ ALICE, v4_far, FRONT, "+.+..+.", "+.+..+.", YES },
	{ ALICE, v6_near, FRONT, "+.++++.", "+.++++.", YES },
	{ ALICE, v6_far, FRONT, "+.+..+.", "+.+..+.", YES },
	{ BOB, v4_near, FRONT, "+.++++.", "+.++++.", YES },
	{ BOB, v4_far, FRONT, "+.+..+.", "+.+..+.", YES },
	{ OURS "bobb", v4_near, FRONT, "+..+++.", "+..+++.", YES },
	{ OURS, v4_near, FRONT, "+..+++.", "+..+++.", YES },
	{ EVE, v4_near, FRONT, "+..+.+.", "+..+.+.", YES },
	{ EVE, v4_far, FRONT, "+....+.", "+....+.", YES },
	/* all targets of the portal group are reported, to admitted names */
	{ ALICE, v4_near, BACK, "+-++...", "++++...", YES },
	{ ALICE, v4_far, BACK, "+-+-...", "++++...", YES },
	{ EVE, v6_near, BACK, "+--+...", "++++...", NO },
	{ EVE, v6_far, BACK, "+---...", "++++...", NO },
	/* a discovery session needs CHAP */
	{ ALICE, v4_near, STORE, "+....+.", "+....+.", YES },
	{ EVE, v4_far, STORE, "+....+.", "+....+.", YES },
	/* none is reported */
	{ ALICE, v4_near, HIDDEN, "+......", ".......", YES },
	{ EVE, v6_far, HIDDEN, "+......", ".......", YES },
};

static char letter(uint16_t status)
{
	switch (status) {
	case ISCSI_LOGIN_SUCCESS:
		return YES;
	case ISCSI_LOGIN_FORBIDDEN:
		return NO;
	case ISCSI_LOGIN_NOT_FOUND:
		return NIL;
	default:
		fail_msg("status %04x", status);
		return 0;
	}
}

static void test_who_may_see_what_rfc7143_11_13_5(void **state)
{
	struct tgt_directory *d = build();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct tgt_visitor v = {
			.initiator = table[i].initiator,
			.account = "",
			.address = table[i].address,
			.portal_group = table[i].portals + 1,
		};
		char login[NTARGETS + 1] = "", shown[NTARGETS + 1] = "";
		const char *why = NULL;

		for (size_t k = 0; k < NTARGETS; k++) {
			const struct tgt_target *t =
				tgt_directory_target(d, targets[k].name);
			uint16_t status = tgt_access_login(d, &v, t, &why);

			assert_true(status == ISCSI_LOGIN_SUCCESS || why);
			login[k] = letter(status);
			shown[k] = tgt_access_shows(d, &v, t) ? YES : NIL;
		}
		if (strcmp(login, table[i].login) ||
		    strcmp(shown, table[i].shown))
			fail_msg("row %zu: login %s, not %s; shown %s, not %s",
				 i, login, table[i].login, shown,
				 table[i].shown);
		assert_int_equal(letter(tgt_access_discovery(d, &v, &why)),
				 table[i].discovery);
		assert_int_equal(letter(tgt_access_login(d, &v, NULL, &why)),
				 NIL);
	}
	tgt_directory_free(d);
}

/* A connection whose portal group has been removed gets nothing. */
static void test_removed_portal_group(void **state)
{
	struct tgt_directory *d = build();
	const struct tgt_visitor v = { .initiator = ALICE,
				       .account = "",
				       .address = v4_near,
				       .portal_group = 77 };
	const char *why;

	(void)state;
	assert_int_equal(tgt_access_discovery(d, &v, &why),
			 ISCSI_LOGIN_NOT_FOUND);
	for (size_t k = 0; k < NTARGETS; k++) {
		const struct tgt_target *t = d->targets[k];

		assert_int_equal(tgt_access_login(d, &v, t, &why),
				 ISCSI_LOGIN_NOT_FOUND);
		assert_false(tgt_access_shows(d, &v, t));
	}
	tgt_directory_free(d);
}

static void test_accounts_rfc7143_12_1_3(void **state)
{
	struct tgt_directory *d = build();
	struct tgt_visitor v = { .initiator = ALICE,
				 .account = "",
				 .address = v4_near,
				 .portal_group = FRONT + 1 };
	const struct tgt_auth_group *g;

	(void)state;
	for (size_t k = 0; k < NTARGETS; k++)
		assert_int_equal(tgt_access_needs_chap(
					 tgt_access_auth(d, &v, d->targets[k])),
				 targets[k].auth == SECRET);
	assert_false(tgt_access_needs_chap(tgt_access_auth(d, &v, NULL)));
	v.portal_group = STORE + 1;
	g = tgt_access_auth(d, &v, NULL);
	assert_true(tgt_access_needs_chap(g));
	assert_memory_equal(tgt_access_account(g, "carol", ALICE), &carol,
			    sizeof(carol));
	assert_memory_equal(tgt_access_account(g, "dave", ALICE), &dave,
			    sizeof(dave));
	assert_null(tgt_access_account(g, "Carol", ALICE));
	assert_null(tgt_access_account(g, "target", ALICE));
	assert_null(tgt_access_account(g, "", ALICE));
	tgt_directory_free(d);
}

/* ---- accounts of certain initiators, maps of certain accounts ---- */

static struct dev_map *new_map(void)
{
	struct dev_map *m;

	assert_int_equal(dev_map_new(NULL, NULL, 0, &m), 0);
	return m;
}

enum {
	DEFAULT,
	OF_CAROL,
	OF_ALL,
	MAPS
};

/* An auth group whose accounts are bound: carol to ALICE, dave to names with b, anyone's
 * target with maps: of carol, and of every account. */
static struct tgt_directory *build_bound(struct dev_map *maps[MAPS])
{
	static const char *const ours[] = { OURS "*" };
	struct tgt_map_config cfg = { ours, 1, "carol", maps[OF_CAROL] };
	const struct tgt_target_config t = { .name = OURS "t",
					     .auth_group = 2,
					     .map = maps[DEFAULT] };
	struct tgt_directory *d = tgt_directory_new();

	assert_int_equal(tgt_auth_group_add(d), 2);
	assert_int_equal(tgt_auth_group_account_initiator(d, 2, ALICE),
			 ERR_NOT_FOUND);
	assert_int_equal(tgt_auth_group_account(d, 2, &carol), 0);
	assert_int_equal(tgt_auth_group_account_initiator(
				 d, 2, "IQN.2026-01.com.Example:Alice"),
			 0);
	assert_int_equal(tgt_auth_group_account(d, 2, &dave), 0);
	assert_int_equal(tgt_auth_group_account_initiator(d, 2, "x"),
			 ERR_FORMAT);
	assert_int_equal(tgt_auth_group_account_initiator(d, 2, OURS "b*"), 0);
	assert_int_equal(tgt_auth_group_account_initiator(d, 2, OURS "alic?"),
			 0);
	assert_int_equal(tgt_portal_group_add(d, &portals[FRONT]), 0);
	assert_int_equal(tgt_target_add(d, &t), 0);
	assert_int_equal(tgt_target_portal_group(d, 0, 0), 0);
	assert_int_equal(tgt_target_map(d, 0, &cfg), 0);
	cfg = (struct tgt_map_config){ .initiators = ours,
				       .ninitiators = 1,
				       .map = maps[OF_ALL] };
	cfg.initiators = (const char *const[]){ BOB };
	assert_int_equal(tgt_target_map(d, 0, &cfg), 0);
	return d;
}

static void test_bound_accounts_and_maps(void **state)
{
	static const struct {
		const char *initiator, *account;
		char login; /* before CHAP */
		bool has;   /* the account is the initiator's */
		unsigned map;
	} rows[] = {
		{ ALICE, "carol", YES, true, OF_CAROL },
		{ ALICE, "dave", YES, true, DEFAULT },
		{ ALICE, "", YES, false, DEFAULT },
		{ BOB, "dave", YES, true, OF_ALL },
		{ BOB, "carol", YES, false, OF_CAROL },
		{ OURS "bill", "dave", YES, true, DEFAULT },
		/* no account is for these names: refused before CHAP */
		{ OURS "carol", "carol", NIL, false, DEFAULT },
		{ EVE, "carol", NIL, false, DEFAULT },
		{ EVE, "dave", NIL, false, DEFAULT },
	};
	struct dev_map *maps[MAPS] = { new_map(), new_map(), new_map() };
	struct tgt_directory *d = build_bound(maps);
	const struct tgt_target *t = d->targets[0];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct tgt_visitor v = { rows[i].initiator,
					       rows[i].account, v4_far,
					       FRONT + 1 };
		const struct tgt_auth_group *g = tgt_access_auth(d, &v, t);
		const struct tgt_ruling r = tgt_access_ask(d, &v, OURS "t");

		assert_int_equal(letter(r.status), rows[i].login);
		assert_int_equal(tgt_access_shows(d, &v, t),
				 rows[i].login == YES);
		assert_int_equal(!!tgt_access_account(g, rows[i].account,
						      rows[i].initiator),
				 rows[i].has);
		assert_int_equal(tgt_access_proven(g, &v), rows[i].has);
		if (rows[i].login == YES)
			assert_ptr_equal(r.map, maps[rows[i].map]);
	}
	tgt_directory_free(d);
	for (unsigned i = 0; i < MAPS; i++)
		dev_map_put(maps[i]);
}

/* ---- prefixes ---- */

static bool admits(const uint8_t prefix[16], unsigned bits,
		   const uint8_t address[16])
{
	static const struct tgt_portal_group_config portal = { .tag = 1 };
	struct tgt_target_config target = { .name = OURS "t" };
	const struct tgt_visitor v = { ALICE, "", address, 1 };
	struct tgt_directory *d = tgt_directory_new();
	const char *why;
	bool admitted;

	target.auth_group = (unsigned)tgt_auth_group_add(d);
	assert_int_equal(
		tgt_auth_group_address(d, target.auth_group, prefix, bits), 0);
	assert_int_equal(tgt_portal_group_add(d, &portal), 0);
	assert_int_equal(tgt_target_add(d, &target), 0);
	assert_int_equal(tgt_target_portal_group(d, 0, 0), 0);
	admitted = !tgt_access_login(d, &v, d->targets[0], &why);
	tgt_directory_free(d);
	return admitted;
}

/* One bit of an address differs from the prefix: it is admitted exactly if that
 * bit comes after the prefix. */
static void test_every_bit_of_a_prefix(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits <= 128; bits++) {
		for (unsigned bit = 0; bit < 128; bit++) {
			uint8_t address[16];

			memcpy(address, v6_far, 16);
			address[bit / 8] ^= (uint8_t)(0x80u >> bit % 8);
			assert_int_equal(admits(v6_far, bits, address),
					 bit >= bits);
		}
		assert_true(admits(v6_far, bits, v6_far));
	}
}

static void test_prefixes_of_both_protocols(void **state)
{
	static const uint8_t zero[16];
	static const uint8_t all_v4[16] = { [10] = 0xff, [11] = 0xff };

	(void)state;
	assert_true(admits(zero, 0, v6_near));
	assert_false(admits(zero, 0, v4_near));
	assert_false(admits(all_v4, 95, v4_near));
	assert_true(admits(all_v4, 96, v4_near));
	assert_true(admits(all_v4, 96, v4_far));
	assert_false(admits(all_v4, 96, v6_near));
	assert_false(admits(all_v4, 96, zero)); /* not known */
}

/* ---- redirections ---- */

/* Which addresses an initiator is sent to; NULL: to none. */
static void expect_redirect(const struct tgt_directory *d,
			    const char *initiator, const uint8_t *address,
			    const char *to, bool permanent)
{
	const struct tgt_visitor v = { initiator, "", address, FRONT + 1 };
	const struct tgt_ruling r = tgt_access_ask(d, &v, OURS "both");

	assert_int_equal(r.permanent, permanent);
	if (to)
		assert_string_equal(r.redirect, to);
	else
		assert_null(r.redirect);
}

/* The first redirection that fits counts; a name that is not admitted learns no
 * address. */
/* [RFC 7143: 13.8 #1] */
static void test_redirections_rfc7143_11_13_5(void **state)
{
	static const char *const alice[] = { ALICE }, *const first[] = { "a:1" };
	static const char *const bad[] = { "disk" }, *const both[] = { "b",
								       "c" };
	struct tgt_redirect_config cfg = { alice, 1, first, 1, true };
	struct tgt_directory *d = build();
	char address[ISCSI_REDIRECT_STR + 1];
	const char *const longest[] = { address };

	(void)state;
	expect_redirect(d, ALICE, v4_near, NULL, false);
	assert_int_equal(tgt_target_redirect(d, 4, &cfg), 0);
	expect_redirect(d, ALICE, v4_near, "a:1", true);
	expect_redirect(d, BOB, v4_near, NULL, false);
	cfg = (struct tgt_redirect_config){ NULL, 0, both, 2, false };
	assert_int_equal(tgt_target_redirect(d, 4, &cfg), 0);
	expect_redirect(d, ALICE, v4_near, "a:1", true);
	/* its own one of the two addresses, at each login */
	expect_redirect(d, BOB, v4_near, "c", false);
	expect_redirect(d, BOB, v4_near, "c", false);
	expect_redirect(d, OURS "boc", v4_near, "b", false);
	expect_redirect(d, EVE, v4_near, NULL, false);
	expect_redirect(d, ALICE, v4_far, NULL, false);
	cfg.naddresses = 0;
	assert_int_equal(tgt_target_redirect(d, 4, &cfg), ERR_NOT_FOUND);
	cfg = (struct tgt_redirect_config){ bad, 1, first, 1, false };
	assert_int_equal(tgt_target_redirect(d, 4, &cfg), ERR_FORMAT);
	memset(address, 'a', sizeof(address) - 1);
	address[sizeof(address) - 1] = '\0';
	cfg = (struct tgt_redirect_config){ NULL, 0, longest, 1, false };
	assert_int_equal(tgt_target_redirect(d, 4, &cfg), ERR_TOO_LONG);
	strcpy(address, "b:1,1"); /* §13.8: no portal group tag */
	assert_int_equal(tgt_target_redirect(d, 4, &cfg), ERR_FORMAT);
	tgt_directory_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_may_see_what_rfc7143_11_13_5),
		cmocka_unit_test(test_removed_portal_group),
		cmocka_unit_test(test_accounts_rfc7143_12_1_3),
		cmocka_unit_test(test_bound_accounts_and_maps),
		cmocka_unit_test(test_every_bit_of_a_prefix),
		cmocka_unit_test(test_prefixes_of_both_protocols),
		cmocka_unit_test(test_redirections_rfc7143_11_13_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
