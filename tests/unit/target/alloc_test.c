/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc_test.c: the n-th allocation fails, for every n, over whole sessions:
 * nothing crashes, nothing leaks, the target is idle afterwards.
 */
#include <stdio.h>

#include "base/err.h"
#include "cmocka_all.h"
/* the fixture of the fuzz target, and its corpus as scenarios */
#include "fail_alloc.h"
#include "fuzz/target/target_fuzz.c"

static size_t read_corpus(const char *name, uint8_t *buf, size_t max)
{
	char path[512];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", TARGET_CORPUS, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	n = fread(buf, 1, max, f);
	fclose(f);
	return n;
}

/* Runs a scenario from its first byte with the nth allocation failing. */
static bool run_failing(unsigned long nth, const uint8_t *data, size_t size)
{
	struct stream s = { .seen = 0 };

	failed = false;
	open_stream(&s);
	countdown = nth;
	run_stream(&s, data[0], data + 1, size - 1);
	countdown = 0;
	close_stream(&s, false);
	return failed;
}

static void every_allocation(const char *name)
{
	static uint8_t data[65536];
	size_t size = read_corpus(name, data, sizeof(data));
	unsigned long n = 1;

	assert_true(size > 1);
	while (run_failing(n, data, size))
		n++;
	assert_true(n > 5); /* the scenarios do allocate */
}

static void test_allocation_fails_in_session(void **state)
{
	(void)state;
	every_allocation("session");
}

static void test_allocation_fails_in_task_management(void **state)
{
	(void)state;
	every_allocation("tmf");
}

static void test_allocation_fails_in_discovery(void **state)
{
	(void)state;
	every_allocation("discovery");
}

static void test_allocation_fails_out_of_order(void **state)
{
	(void)state;
	every_allocation("order");
}

/* ---- the set-up ---- */

static struct stream made;
static struct tgt_directory *directory;
static unsigned auth, portal_group, target;

/* Where a function returns the number of a new object. */
static int keep_number(int result, unsigned *number)
{
	if (result >= 0)
		*number = (unsigned)result;
	return MIN(result, 0);
}

static int new_target(void)
{
	struct tgt_config cfg;
	struct tgt *t;

	tgt_config_default(&cfg);
	cfg.env.nworkers = 2;
	t = tgt_new(&cfg);
	if (!t)
		return ERR_NOMEM;
	/* no line of the cache in common */
	assert_int_equal((uintptr_t)tgt_worker(t, 0) % 64, 0);
	assert_int_equal((uintptr_t)tgt_worker(t, 1) % 64, 0);
	tgt_free(t);
	return 0;
}

static int new_directory(void)
{
	directory = tgt_directory_new();
	return directory ? 0 : ERR_NOMEM;
}

static int add_auth_group(void)
{
	return keep_number(tgt_auth_group_add(directory), &auth);
}

static const struct iscsi_chap_secret joe = { .name = "joe",
					      .secret = "twelve-bytes",
					      .secret_len = 12 };

static int add_account(void)
{
	return tgt_auth_group_account(directory, auth, &joe);
}

static int set_mutual(void)
{
	static const struct iscsi_chap_secret own = {
		.name = "target", .secret = "another-secret", .secret_len = 14
	};

	return tgt_auth_group_mutual(directory, auth, &own);
}

static int add_initiator(void)
{
	return tgt_auth_group_initiator(directory, auth, "iqn.*");
}

static int add_address(void)
{
	static const uint8_t any[16];

	return tgt_auth_group_address(directory, auth, any, 0);
}

static int add_portal_group(void)
{
	static const struct tgt_portal_group_config cfg = { .tag = 7 };

	return keep_number(tgt_portal_group_add(directory, &cfg),
			   &portal_group);
}

static int add_portal(void)
{
	return tgt_portal_group_address(directory, portal_group,
					"192.0.2.1:3260");
}

static int add_target(void)
{
	const struct tgt_target_config cfg = { .name = "iqn.2026-01.t:t",
					       .alias = "a disk",
					       .auth_group = auth };

	return keep_number(tgt_target_add(directory, &cfg), &target);
}

static int join_portal_group(void)
{
	return tgt_target_portal_group(directory, target, portal_group);
}

static int apply(void)
{
	int err = tgt_apply(made.fixture.tgt, directory,
			    &(struct tgt_apply_events){ .done = NULL });

	countdown = 0;
	fixture_deliver_messages(&made.fixture);
	return err;
}

static int accept_conn(void)
{
	const struct tgt_conn_info info = { .peer = "192.0.2.9:1",
					    .portal_group = 7 };

	return tgt_conn_accept(tgt_worker(made.fixture.tgt, 0),
			       dmtcp_dm(made.dm), &info, made.fixture.now);
}

/* Each allocation of the step fails once; then the step succeeds. */
static unsigned long each_fails(int (*step)(void))
{
	for (unsigned long n = 1;; n++) {
		int err;

		failed = false;
		countdown = n;
		err = step();
		countdown = 0;
		if (!failed) {
			assert_int_equal(err, 0);
			return n - 1;
		}
		assert_int_equal(err, ERR_NOMEM);
	}
}

static void test_allocation_fails_in_set_up(void **state)
{
	static int (*const steps[])(void) = {
		new_target,  new_directory, add_auth_group,    add_account,
		set_mutual,  add_initiator, add_address,       add_portal_group,
		add_portal,  add_target,    join_portal_group, apply,
		accept_conn,
	};
	struct dmtcp_config cfg;
	unsigned long n = 0;

	(void)state;
	fixture_open(&made.fixture);
	made.host.kick = kick;
	dmtcp_config_default(&cfg, ISCSI_TARGET);
	made.dm = dmtcp_new(&cfg, &made.host);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		n += each_fails(steps[i]);
	assert_true(n > 12);
	close_stream(&made, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocation_fails_in_session),
		cmocka_unit_test(test_allocation_fails_in_task_management),
		cmocka_unit_test(test_allocation_fails_in_discovery),
		cmocka_unit_test(test_allocation_fails_out_of_order),
		cmocka_unit_test(test_allocation_fails_in_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
