/* SPDX-License-Identifier: BSD-2-Clause */
/* state_record_test.c: a record of the state directory: whatever part of its file is
 * damaged, iserd does not take it; the form without a header is read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "daemon/log/say.h"
#include "daemon/luns/state.h"

static const struct state_record record = {
	.name = "r",
	.type = "ISERTST1",
	.older = "older 1\n",
	.max = 4096,
	.without = "then the test is lost",
};

static char folder[64], path[80], said[1024];
static struct state *s;

static void hear(void *arg, const char *text)
{
	(void)arg;
	snprintf(said, sizeof(said), "%s", text);
}

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/state.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/r", folder);
	s = state_open(folder, NULL, false, geteuid(), getegid());
	said[0] = '\0';
	return s ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	state_close(s);
	unlink(path);
	return rmdir(folder);
}

static void put(const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static size_t get(char *bytes, size_t max)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, bytes, max);

	assert_true(fd >= 0 && n >= 0);
	close(fd);
	return (size_t)n;
}

static void expect(const char *want)
{
	char *text;

	assert_true(state_record_read(s, &record, &text));
	assert_string_equal(text, want);
	assert_string_equal(said, "");
	free(text);
}

static void expect_refused(const char *why)
{
	char *text;

	said[0] = '\0';
	assert_false(state_record_read(s, &record, &text));
	assert_null(text);
	assert_non_null(strstr(said, why));
	assert_non_null(strstr(said, record.without));
}

static void expect_damaged(void)
{
	expect_refused("/r: damaged: ");
}

static void test_round_trip(void **state)
{
	char *text;

	(void)state;
	assert_true(state_record_read(s, &record, &text));
	assert_null(text); /* there is no file */
	assert_true(state_record_save(s, &record, "one\ntwo\n"));
	expect("one\ntwo\n");
	assert_true(state_record_save(s, &record, ""));
	expect("");
}

/* An unchanged text leaves the file as it is. */
static void test_saved_once(void **state)
{
	struct stat a, b;

	(void)state;
	assert_true(state_record_save(s, &record, "text"));
	assert_int_equal(stat(path, &a), 0);
	assert_true(state_record_save(s, &record, "text"));
	assert_int_equal(stat(path, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
}

/* It says what the next start loses. */
static void test_cannot_be_saved(void **state)
{
	char obstacle[80];

	(void)state;
	snprintf(obstacle, sizeof(obstacle), "%s/new", folder);
	assert_int_equal(mkdir(obstacle, 0700), 0);
	assert_false(state_record_save(s, &record, "text"));
	assert_non_null(strstr(said, "/r: cannot save it: "));
	assert_non_null(strstr(said, record.without));
	assert_int_equal(rmdir(obstacle), 0);
}

static void test_every_damage_is_found(void **state)
{
	char good[128], bad[128];
	size_t n;

	(void)state;
	assert_true(state_record_save(s, &record, "1 a name\nend\n"));
	n = get(good, sizeof(good) - 1);
	for (size_t i = 0; i < 8 * n; i++) {
		memcpy(bad, good, n);
		bad[i / 8] ^= (char)(1 << i % 8);
		put(bad, n);
		if (bad[7] > record.type[7]) /* looks like a later version */
			expect_refused("/r: was written by a later version");
		else
			expect_damaged();
	}
	for (size_t i = 0; i < n; i++) {
		put(good, i);
		expect_damaged();
	}
	good[n] = '\0';
	put(good, n + 1);
	expect_damaged();
}

static void test_older_form(void **state)
{
	char file[128];

	(void)state;
	put("older 1\nbody\n", 13);
	expect("body\n");
	put("older 1\nbo\0y\n", 13);
	expect_damaged();
	put("older 1\nbody\n", 13);
	said[0] = '\0';
	assert_true(state_record_save(s, &record, "body\n"));
	assert_int_equal(get(file, sizeof(file)), 28 + 5);
	assert_memory_equal(file, record.type, 8);
	expect("body\n");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_round_trip),	 T(test_saved_once),
		T(test_cannot_be_saved), T(test_every_damage_is_found),
		T(test_older_form),
	};

	say_through(hear, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
