/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keyfile_test.c: the key of an encrypted store in its file: what is taken for
 * one, what is not, and what a change leaves behind, whenever it was cut off.
 */
#include "daemon/luns/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

#define LEN BS_CRYPT_KEY

/* A folder of the test's own. */
static char folder[64], path[128], temp[160];

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/keyfile.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	snprintf(temp, sizeof(temp), "%s.iserd-new", path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(temp);
	unlink(path);
	return rmdir(folder);
}

static void put(const char *name, const void *bytes, size_t n, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void get(const char *name, uint8_t bytes[LEN])
{
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, LEN), LEN);
	close(fd);
}

static void count(uint8_t bytes[LEN + 1])
{
	for (unsigned i = 0; i <= LEN; i++)
		bytes[i] = (uint8_t)i;
}

static struct keyfile *open_with(enum keyfile_wish wish, bool read_only,
				 uint8_t key[LEN])
{
	const struct keyfile_config cfg = { .path = path,
					    .wish = wish,
					    .read_only = read_only };

	memset(key, 0, LEN);
	return keyfile_open(&cfg, key);
}

/* ---- what is a key ---- */

static void test_sizes(void **state)
{
	static const size_t wrong[] = { 0, 1, 32, LEN - 1, LEN + 1 };
	uint8_t bytes[LEN + 1], key[LEN];
	struct keyfile *k;

	(void)state;
	count(bytes);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		put(path, bytes, wrong[i], 0600);
		assert_null(open_with(KEY_MUST_EXIST, false, key));
		assert_null(open_with(KEY_IF_MISSING, false, key));
	}
	put(path, bytes, LEN, 0600);
	k = open_with(KEY_MUST_EXIST, false, key);
	assert_non_null(k);
	assert_memory_equal(key, bytes, LEN);
	/* another unit wants it as well */
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	assert_null(open_with(KEY_MUST_EXIST, true, key));
	keyfile_close(k);
}

static void test_damaged(void **state)
{
	uint8_t bytes[LEN] = { 0 }, key[LEN];

	(void)state;
	put(path, bytes, LEN, 0600); /* e.g. lost in a crash: halves alike */
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	memset(bytes, 0x5a, LEN);
	put(path, bytes, LEN, 0600);
	assert_null(open_with(KEY_MUST_EXIST, true, key));
}

static void test_modes(void **state)
{
	static const mode_t wrong[] = { 0640, 0604, 0620, 0602, 0610, 0644 };
	uint8_t bytes[LEN + 1], key[LEN];
	struct keyfile *k;

	(void)state;
	count(bytes);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		put(path, bytes, LEN, wrong[i]);
		assert_null(open_with(KEY_MUST_EXIST, false, key));
	}
	assert_int_equal(chmod(path, 0400), 0);
	k = open_with(KEY_MUST_EXIST, true, key);
	assert_non_null(k);
	keyfile_close(k);
}

static void test_other_things(void **state)
{
	uint8_t bytes[LEN + 1], key[LEN];
	char real[160];

	(void)state;
	count(bytes);
	snprintf(real, sizeof(real), "%s/real", folder);
	put(real, bytes, LEN, 0600);
	assert_int_equal(symlink(real, path), 0);
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	assert_null(open_with(KEY_NEW, false, key));
	unlink(path);
	assert_int_equal(link(real, path), 0); /* a second name */
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	unlink(path);
	unlink(real);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_null(open_with(KEY_MUST_EXIST, true, key));
	rmdir(path);
	/* opening a pipe without a writer does not block */
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10);
	assert_null(open_with(KEY_MUST_EXIST, true, key));
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	alarm(0);
}

static void test_names(void **state)
{
	static const char *const wrong[] = { "", "/tmp/", "/nowhere/key",
					     "/dev/null/key", "/tmp/." };
	uint8_t key[LEN];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		const struct keyfile_config cfg = { .path = wrong[i],
						    .wish = KEY_MUST_EXIST };

		assert_null(keyfile_open(&cfg, key));
	}
	assert_false(keyfile_usable("/nowhere/key"));
	assert_true(keyfile_usable(path));
	assert_false(keyfile_exists(path));
	assert_true(keyfile_exists(folder));
}

/* ---- making one ---- */

static void test_made(void **state)
{
	uint8_t key[LEN], again[LEN];
	struct keyfile *k;
	struct stat st;

	(void)state;
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	k = open_with(KEY_NEW, false, key);
	assert_non_null(k);
	keyfile_close(k);
	get(path, again);
	assert_memory_equal(key, again, LEN);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_false(keyfile_exists(temp));
	assert_null(open_with(KEY_NEW, false, key)); /* never in its place */
	k = open_with(KEY_IF_MISSING, false, key);
	assert_non_null(k);
	assert_memory_equal(key, again, LEN);
	keyfile_close(k);
}

/* ---- leftovers ---- */

static void test_leftover(void **state)
{
	uint8_t bytes[LEN + 1], key[LEN], kept[LEN];
	struct keyfile *k;
	int old;

	(void)state;
	count(bytes);
	put(path, bytes, LEN, 0600);
	memset(kept, 0x77, LEN);
	put(temp, kept, LEN, 0600);
	/* who only reads leaves it alone */
	k = open_with(KEY_MUST_EXIST, true, key);
	assert_non_null(k);
	keyfile_close(k);
	old = open(temp, O_RDONLY);
	assert_true(old >= 0);
	k = open_with(KEY_MUST_EXIST, false, key);
	assert_non_null(k);
	keyfile_close(k);
	assert_false(keyfile_exists(temp));
	/* nor are its bytes left under no name */
	assert_int_equal(pread(old, key, LEN, 0), LEN);
	assert_memory_not_equal(key, kept, LEN);
	close(old);
	put(temp, kept, 10, 0600); /* cut off in the middle */
	unlink(path);
	k = open_with(KEY_NEW, false, key);
	assert_non_null(k);
	keyfile_close(k);
	assert_false(keyfile_exists(temp));
}

/* A file that has the name of the temporary file, but was not left by a change of
 * the key, is not overwritten. */
static void test_no_leftover(void **state)
{
	uint8_t bytes[LEN + 1], long_one[200], key[LEN];
	char other[160];

	(void)state;
	count(bytes);
	put(path, bytes, LEN, 0600);
	memset(long_one, 0x33, sizeof(long_one));
	put(temp, long_one, sizeof(long_one), 0600);
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	get(temp, key);
	assert_memory_equal(key, long_one, LEN);
	unlink(temp);
	snprintf(other, sizeof(other), "%s/other", folder);
	put(other, long_one, LEN, 0600);
	assert_int_equal(link(other, temp), 0);
	assert_null(open_with(KEY_MUST_EXIST, false, key));
	get(other, key);
	assert_memory_equal(key, long_one, LEN);
	unlink(other);
	unlink(temp);
	unlink(path);
	assert_int_equal(symlink("/nowhere", temp), 0);
	assert_null(open_with(KEY_NEW, false, key));
	assert_false(keyfile_exists(path));
}

/* ---- another key ---- */

struct change {
	struct bs_key_change c;
	bool over;
};

static void change_over(struct bs_key_change *c)
{
	container_of(c, struct change, c)->over = true;
}

static void change_key(struct io_loop *l, struct keyfile *k, struct change *c,
		       const uint8_t *key)
{
	*c = (struct change){ .c = { .key = key, .done = change_over } };
	keyfile_keep(k, &c->c);
	while (!c->over)
		assert_true(io_loop_turn(l, XTIME_S) >= 0);
}

static void test_changed(void **state)
{
	uint8_t bytes[LEN + 1], key[LEN], now[LEN];
	struct io_loop *l;
	struct keyfile_config cfg = { .path = path, .wish = KEY_NEW };
	struct change c;
	struct keyfile *k;
	int err, old;

	(void)state;
	l = io_loop_new(IO_EPOLL, &err);
	assert_non_null(l);
	cfg.loops = &l;
	count(bytes);
	k = keyfile_open(&cfg, key);
	assert_non_null(k);
	old = open(path, O_RDONLY);
	assert_true(old >= 0);
	change_key(l, k, &c, bytes);
	assert_int_equal(c.c.result, 0);
	assert_true(c.c.in_force);
	get(path, now);
	assert_memory_equal(now, bytes, LEN);
	assert_false(keyfile_exists(temp));
	assert_int_equal(pread(old, now, LEN, 0), LEN);
	assert_memory_not_equal(now, key, LEN); /* the old one is no more */
	close(old);
	/* the new file is locked as the old one was */
	assert_null(open_with(KEY_MUST_EXIST, false, now));
	/* another file has the temporary name: the old key stays in force */
	put(temp, bytes, 5, 0600);
	change_key(l, k, &c, key);
	assert_int_equal(c.c.result, ERR_MEDIUM);
	assert_false(c.c.in_force);
	get(path, now);
	assert_memory_equal(now, bytes, LEN);
	keyfile_close(k);
	io_loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sizes, begin, end),
		cmocka_unit_test_setup_teardown(test_damaged, begin, end),
		cmocka_unit_test_setup_teardown(test_modes, begin, end),
		cmocka_unit_test_setup_teardown(test_other_things, begin, end),
		cmocka_unit_test_setup_teardown(test_names, begin, end),
		cmocka_unit_test_setup_teardown(test_made, begin, end),
		cmocka_unit_test_setup_teardown(test_leftover, begin, end),
		cmocka_unit_test_setup_teardown(test_no_leftover, begin, end),
		cmocka_unit_test_setup_teardown(test_changed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
