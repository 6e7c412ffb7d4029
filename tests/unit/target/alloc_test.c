/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc_test.c: the n-th allocation fails, for every n, over whole sessions:
 * nothing crashes, nothing leaks, the target is idle afterwards.
 */
#include <stdio.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocation_fails_in_session),
		cmocka_unit_test(test_allocation_fails_in_task_management),
		cmocka_unit_test(test_allocation_fails_in_discovery),
		cmocka_unit_test(test_allocation_fails_out_of_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
