/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * secrets_test.c: no freed memory has a CHAP secret: of directories, also while
 * the n-th allocation fails, for every n, and of logins.
 */
#include <malloc.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fail_alloc.h"
#include "fixture.h"

#define SECRET "secret-of-both-accounts"

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	bool found =
		p && memmem(p, malloc_usable_size(p), SECRET, strlen(SECRET));

	__real_free(p);
	assert_false(found);
}

static void make_account(struct iscsi_chap_secret *s, const char *name,
			 char last)
{
	memset(s, 0, sizeof(*s));
	strcpy(s->name, name);
	memcpy(s->secret, SECRET, strlen(SECRET));
	s->secret[strlen(SECRET)] = (uint8_t)last;
	s->secret_len = strlen(SECRET) + 1;
}

/* Returns 0 or the error of the step that failed. */
static int fill(struct tgt_directory *d)
{
	const struct tgt_portal_group_config portals = { .tag = FIXTURE_TAG,
							 .discovery_auth = 2 };
	const struct tgt_target_config target = { .name = FIXTURE_TARGET,
						  .alias = "disk",
						  .auth_group = 2 };
	static const uint8_t address[16];
	struct iscsi_chap_secret s;
	int err = tgt_auth_group_add(d);

	for (unsigned i = 0; i < 3 && err >= 0; i++) {
		char name[] = "carol0";

		name[5] = (char)(name[5] + i);
		make_account(&s, name, (char)('a' + i));
		err = tgt_auth_group_account(d, 2, &s);
	}
	make_account(&s, "target", 'z');
	err = err < 0 ? err : tgt_auth_group_mutual(d, 2, &s);
	err = err < 0 ? err : tgt_auth_group_initiator(d, 2, "iqn.*");
	err = err < 0 ? err : tgt_auth_group_address(d, 2, address, 0);
	err = err < 0 ? err : tgt_portal_group_add(d, &portals);
	err = err < 0 ? err : tgt_portal_group_address(d, 0, "10.0.0.1:3260");
	err = err < 0 ? err : tgt_target_add(d, &target);
	return err < 0 ? err : tgt_target_portal_group(d, 0, 0);
}

/* Each is all or nothing: after an error the caller frees d. */
static void bring(struct fixture *r, bool first)
{
	const struct tgt_apply_events none = { .done = NULL };
	const bool before = failed;
	struct tgt_directory *d = tgt_directory_new();
	int err = d ? fill(d) : ERR_NOMEM;

	if (!err)
		err = first ? tgt_begin(r->tgt, d)
			    : tgt_apply(r->tgt, d, &none);
	assert_int_equal(err, failed != before ? ERR_NOMEM : 0);
	if (err)
		tgt_directory_free(d);
}

static bool run_failing(unsigned long nth)
{
	struct fixture *r = fixture_new(2, NULL);

	failed = false;
	countdown = nth;
	bring(r, true);
	bring(r, false);
	countdown = 0;
	fixture_messages(r);
	fixture_free(r);
	return failed;
}

static void test_directories(void **state)
{
	unsigned long n = 1;

	(void)state;
	while (run_failing(n))
		n++;
	assert_true(n > 10);
}

/* A login ends before it proves anything. */
static void test_logins_rfc7143_9_2_1(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "AuthMethod=CHAP\0"
				   "TargetName=" FIXTURE_TARGET;
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .dsl = sizeof(keys) };
	struct tgt_directory *d = tgt_directory_new();
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(fill(d), 0);
	fixture_apply(r, d);
	peer_rx(p, &pdu, keys);
	assert_int_equal(
		peer_expect(p, ISCSI_LOGIN_RESPONSE)->pdu.login.status_class,
		0);
	peer_cut(p, ERR_RESET);
	fixture_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_logins_rfc7143_9_2_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
