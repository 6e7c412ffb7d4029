/* SPDX-License-Identifier: BSD-2-Clause */
/* secret_file_test.c: which files iserd takes a CHAP secret from, and which bytes: the
 * mounts of Kubernetes, links that another user could change, other encodings. */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "daemon/apply/secrets.h"

#define SECRET "secret-of-alice"

static char folder[64], why[256];
static struct iscsi_chap_secret secret;

static const char *in_folder(const char *name)
{
	static char path[4][160];
	static unsigned i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", folder, name);
	return path[i];
}

static void put(const char *name, const void *bytes, size_t n, mode_t mode)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/secret.XXXXXX");
	*why = '\0';
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char command[100];

	(void)state;
	unsetenv("CREDENTIALS_DIRECTORY");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static bool take(const char *path)
{
	memset(&secret, 0, sizeof(secret));
	return chap_secret_read(&secret, "alice", path, why, sizeof(why));
}

static void expect_taken(const char *path)
{
	if (!take(path))
		fail_msg("%s", why);
	assert_int_equal(secret.secret_len, strlen(SECRET));
	assert_memory_equal(secret.secret, SECRET, strlen(SECRET));
}

static void expect_refused(const char *path, const char *reason)
{
	assert_false(take(path));
	if (!strstr(why, reason))
		fail_msg("%s, not: %s", why, reason);
}

/* ---- links ---- */

/* What kubelet mounts: a folder in which all users may make files (sticky), a folder for
 * each version of the secret, and links. */
static void mount_secret(void)
{
	assert_int_equal(mkdir(in_folder("m"), 0700), 0);
	assert_int_equal(chmod(in_folder("m"), 01777), 0);
	assert_int_equal(mkdir(in_folder("m/..2026"), 0755), 0);
	put("m/..2026/alice", SECRET "\n", sizeof(SECRET), 0400);
	assert_int_equal(symlink("..2026", in_folder("m/..data")), 0);
	assert_int_equal(symlink("..data/alice", in_folder("m/alice")), 0);
}

static void test_kubernetes(void **state)
{
	(void)state;
	mount_secret();
	expect_taken(in_folder("m/alice"));
	setenv("CREDENTIALS_DIRECTORY", in_folder("m"), 1);
	expect_taken("credential:alice");
	expect_refused("credential:bob", "No such file");
	expect_refused("credential:..2026/alice", "Invalid argument");
	/* the file that is opened counts */
	assert_int_equal(chmod(in_folder("m/..2026/alice"), 0444), 0);
	expect_refused(in_folder("m/alice"), "others may read or change it");
	expect_refused("credential:alice", "others may read or change it");
}

/* fsGroup: the group of the pod may read the secret. */
static void test_group_of_the_pod(void **state)
{
	gid_t group = 3260;

	(void)state;
	if (geteuid() != 0 || setgroups(1, &group))
		skip();
	mount_secret();
	assert_int_equal(chmod(in_folder("m/..2026/alice"), 0440), 0);
	expect_refused(in_folder("m/alice"), "others may read or change it");
	assert_int_equal(chown(in_folder("m/..2026/alice"), 0, group), 0);
	expect_taken(in_folder("m/alice"));
	assert_int_equal(chmod(in_folder("m/..2026/alice"), 0460), 0);
	expect_refused(in_folder("m/alice"), "others may read or change it");
	assert_int_equal(setgroups(0, NULL), 0);
	assert_int_equal(chmod(in_folder("m/..2026/alice"), 0440), 0);
	expect_refused(in_folder("m/alice"), "others may read or change it");
}

static void test_directories_of_links(void **state)
{
	static const char *const way[] = { "m", "m/..2026" };

	(void)state;
	mount_secret();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(chmod(in_folder(way[i]), 0777), 0);
		expect_refused(in_folder("m/alice"),
			       "a symbolic link that another user could");
		assert_int_equal(chmod(in_folder(way[i]), 0770), 0);
		expect_refused(in_folder("m/alice"),
			       "a symbolic link that another user could");
		assert_int_equal(chmod(in_folder(way[i]), 0755), 0);
		expect_taken(in_folder("m/alice"));
	}
}

static void test_links_of_others(void **state)
{
	static const char *const links[] = { "m/alice", "m/..data" };

	(void)state;
	if (geteuid() != 0)
		skip();
	mount_secret();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(lchown(in_folder(links[i]), 3260, 3260), 0);
		expect_refused(in_folder("m/alice"),
			       "a symbolic link that another user could");
		assert_int_equal(lchown(in_folder(links[i]), 0, 0), 0);
		expect_taken(in_folder("m/alice"));
	}
	assert_int_equal(chown(in_folder("m/..2026/alice"), 3260, 3260), 0);
	expect_refused(in_folder("m/alice"), "belongs to another user");
}

static void test_where_links_lead(void **state)
{
	(void)state;
	put("file", SECRET, strlen(SECRET), 0600);
	assert_int_equal(symlink(in_folder("file"), in_folder("absolute")), 0);
	expect_taken(in_folder("absolute"));
	assert_int_equal(symlink("loop", in_folder("loop")), 0);
	expect_refused(in_folder("loop"), "symbolic link");
	assert_int_equal(symlink(".", in_folder("folder")), 0);
	expect_refused(in_folder("folder"), "not a regular file");
	assert_int_equal(symlink("nothing", in_folder("broken")), 0);
	expect_refused(in_folder("broken"), "No such file");
	assert_int_equal(symlink("file/x", in_folder("below")), 0);
	assert_false(take(in_folder("below")));
	assert_int_equal(symlink("../../..//", in_folder("root")), 0);
	expect_refused(in_folder("root"), "not a regular file");
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_int_equal(symlink("fifo", in_folder("pipe")), 0);
	expect_refused(in_folder("pipe"), "not a regular file");
}

/* ---- bytes ---- */

static void test_bytes(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *reason; /* NULL: taken */
	} rows[] = {
#define ROW(text, reason) { text, sizeof(text) - 1, reason }
		ROW(SECRET, NULL),
		ROW(SECRET "\n", NULL),
		ROW(SECRET "\r\n", NULL),
		ROW("\xef\xbb\xbf" SECRET "\n", "byte order mark"),
		ROW("\xff\xfes\0e\0c\0r\0e\0t\0-\0o\0f\0-\0a\0", "UTF-16"),
		ROW("\xfe\xff\0s\0e\0c\0r\0e\0t\0-\0o\0f\0-\0a", "UTF-16"),
		ROW("s\0e\0c\0r\0e\0t\0-\0o\0f\0-\0a\0", "zero byte"),
		ROW(SECRET "\0", "zero byte"),
		ROW(SECRET "\nsecond line", "more than one line"),
		ROW("", "has 0 bytes"),
		ROW("\n\n\n\n\n\n\n\n\n\n\n\n\n", "has 0 bytes"),
		ROW("eleven byte", "has 11 bytes"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put("s", rows[i].bytes, rows[i].n, 0600);
		if (rows[i].reason)
			expect_refused(in_folder("s"), rows[i].reason);
		else
			expect_taken(in_folder("s"));
	}
}

/* A secret is taken whole, or not (RFC 7143 §9.2.1). */
static void test_lengths(void **state)
{
	char bytes[256];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t n = 126; n < 140; n++) {
		put("s", bytes, n, 0600);
		assert_int_equal(take(in_folder("s")), n <= 128);
		if (n <= 128)
			assert_int_equal(secret.secret_len, n);
		else
			assert_non_null(strstr(why, "to 128 bytes"));
	}
	/* 128 bytes, the end of a line, and more */
	memcpy(bytes + 128, "\r\n", 2);
	put("s", bytes, 130, 0600);
	assert_true(take(in_folder("s")));
	put("s", bytes, 131, 0600);
	assert_false(take(in_folder("s")));
	put("s", bytes, 200, 0600);
	assert_false(take(in_folder("s")));
}

/* ---- all secrets of a configuration ---- */

/* A target of each of the groups a and b, and discovery with the group d. */
static void expect_checked(const char *groups, const char *error)
{
	static struct cfg_errors errors;
	struct cfg_model *m;
	char text[2000];
	bool good;
	int n = snprintf(
		text, sizeof(text),
		"version: 1\n"
		"auth-groups:\n%s"
		"portal-groups: {p: {discovery-auth: d, listen: 3260}}\n"
		"targets:\n"
		"  iqn.2026-01.com.example:a: {auth-group: a, "
		"portal-groups: p, luns: {}}\n"
		"  iqn.2026-01.com.example:b: {auth-group: b, "
		"portal-groups: p, luns: {}}\n",
		groups);

	memset(&errors, 0, sizeof(errors));
	m = cfg_model_read(text, (size_t)n, &errors);
	if (!m)
		fail_msg("%s", errors.all[0].text);
	good = chap_secrets_check(m, &errors, true);
	cfg_model_free(m);
	assert_int_equal(errors.n, error != NULL);
	assert_int_equal(good, !error);
	if (error && !strstr(errors.all[0].text, error))
		fail_msg("%s, not: %s", errors.all[0].text, error);
	if (error)
		assert_int_not_equal(errors.all[0].at.line, 0);
}

/* An initiator of one target could have it answer the challenge of another one.
 * [RFC 7143: 9.2.1 #6-7] */
static void test_one_secret_in_both_directions_rfc7143_9_2_1(void **state)
{
	static const char a[] = "  a: {accounts: [{user: u, secret-file: %s}]}"
				"\n  b: {accounts: [{user: v, secret-file: "
				"%s}], mutual: {user: m, secret-file: %s}}\n"
				"  d: {accounts: [{user: w, secret-file: "
				"%s}]}\n  list: {accounts: [{user: m, "
				"secret-file: %s}, {user: x, secret-file: "
				"%s}]}\n";
	const char *s[4];
	char text[1500];

#define CHECK(u, v, m, w, error)                                       \
 do {                                                                  \
  snprintf(text, sizeof(text), a, s[u], s[v], s[m], s[w], s[m], s[u]); \
  expect_checked(text, error);                                         \
 } while (0)
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		char name[] = "0", bytes[] = SECRET "0";

		name[0] = bytes[sizeof(bytes) - 2] = (char)('0' + i);
		put(name, bytes, strlen(bytes), 0600);
		s[i] = strdup(in_folder(name));
	}
	CHECK(0, 1, 2, 3, NULL);
	CHECK(0, 0, 2, 0, NULL); /* initiators may have one secret */
	CHECK(2, 1, 2, 3,
	      "auth group b: mutual: has the secret of account u of auth group a; the two must differ");
	CHECK(0, 1, 2, 2, "account w of auth group d");
	CHECK(0, 2, 2, 3, "account v of auth group b");
#undef CHECK
	for (unsigned i = 0; i < 4; i++)
		free((void *)(uintptr_t)s[i]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_kubernetes),
		T(test_group_of_the_pod),
		T(test_directories_of_links),
		T(test_links_of_others),
		T(test_where_links_lead),
		T(test_bytes),
		T(test_lengths),
		T(test_one_secret_in_both_directions_rfc7143_9_2_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
