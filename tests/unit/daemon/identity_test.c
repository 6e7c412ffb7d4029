/* SPDX-License-Identifier: BSD-2-Clause */
/* identity_test.c: the identities of files and of what the state directory keeps, on a
 * real file system. */
#include "daemon/luns/identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/log/say.h"
#include "daemon/luns/identities.h"
#include "daemon/luns/state.h"

#define ATTRIBUTE "user.openiser.identity"

static char dir[] = "identity_test.XXXXXX";
static char state_dir[PATH_MAX];

static struct fixture {
	struct state *state;
	struct identities *all;
	struct identity_query q;
	struct lun_spec spec;
	struct identity id;
} F;

static const char *path(const char *name)
{
	static char text[2][PATH_MAX];
	static unsigned n;

	n ^= 1;
	snprintf(text[n], PATH_MAX, "%s/%s", dir, name);
	return text[n];
}

static void make(const char *name)
{
	int fd = open(path(name), O_CREAT | O_EXCL | O_RDWR, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	close(fd);
}

static void begin(bool has_state)
{
	memset(&F, 0, sizeof(F));
	if (has_state) {
		F.state = state_open(state_dir, NULL, false, geteuid(),
				     getegid());
		assert_non_null(F.state);
	}
	F.all = identities_new(F.state);
	assert_non_null(F.all);
}

static void end(void)
{
	if (F.state)
		identities_save(F.all);
	identities_free(F.all);
	state_close(F.state);
}

/* Finds the identity of a file, or of another store. */
static bool find(enum lun_kind kind, const char *store, bool read_only)
{
	bool good;

	F.spec.kind = kind;
	F.spec.store = store;
	F.q.spec = &F.spec;
	F.q.backstore = "disk";
	F.q.read_only = read_only;
	F.q.fd = -1;
	if (kind == LUN_FILE)
		F.q.fd = open(store, read_only ? O_RDONLY : O_RDWR);
	memset(&F.id, 0, sizeof(F.id));
	good = identity_find(F.all, &F.q, &F.id);
	if (F.q.fd >= 0)
		close(F.q.fd);
	return good;
}

static struct identity found(const char *name)
{
	assert_true(find(LUN_FILE, path(name), false));
	return F.id;
}

static void expect(const char *name, const struct identity *want,
		   enum identity_source source)
{
	struct identity id = found(name);

	assert_memory_equal(id.uuid, want->uuid, 16);
	assert_int_equal(id.source, source);
}

static void copy_attribute(const char *from, const char *to)
{
	char text[1024];
	ssize_t n = getxattr(path(from), ATTRIBUTE, text, sizeof(text));

	assert_true(n > 0);
	assert_int_equal(setxattr(path(to), ATTRIBUTE, text, (size_t)n, 0), 0);
}

/* ---- checks ---- */

static char noted[2048];

static void note(void *arg, const char *text)
{
	(void)arg;
	snprintf(noted, sizeof(noted), "%s", text);
}

static const char *owned_by_b(void *arg, const uint8_t uuid[16])
{
	return memcmp(arg, uuid, 16) ? NULL : "b";
}

/* A check gives the warning and writes nothing; the line is not offered if another backstore
 * has the identity. */
static void test_check_of_a_copy(void **state)
{
	struct say_tap tap = { .take = note, .is_only = true };
	char before[1024], after[1024];
	struct identity a;
	ssize_t n;

	(void)state;
	make("checked");
	make("copied");
	make("unseen");
	begin(true);
	a = found("checked");
	copy_attribute("checked", "copied");
	n = getxattr(path("copied"), ATTRIBUTE, before, sizeof(before));
	say_tap(&tap);
	F.q.is_check = true;
	for (int i = 0; i < 2; i++) {
		(void)found("copied");
		assert_non_null(strstr(noted, "without the persistent "
					      "reservations and saved mode "
					      "pages of the old one; "));
		assert_int_equal(strstr(noted, "keeps the old one") != NULL,
				 i == 0);
		assert_int_equal(strstr(noted, "backstore b has") != NULL,
				 i == 1);
		assert_int_equal(getxattr(path("copied"), ATTRIBUTE, after,
					  sizeof(after)),
				 n);
		assert_memory_equal(before, after, (size_t)n);
		F.q.owner = owned_by_b;
		F.q.arg = a.uuid;
	}
	(void)found("unseen");
	assert_true(getxattr(path("unseen"), ATTRIBUTE, after, 1) < 0);
	say_untap(&tap);
	end();
}

/* ---- files ---- */

static void test_file_keeps_its_own(void **state)
{
	struct identity a, b;

	(void)state;
	make("a");
	make("b");
	begin(false);
	a = found("a");
	b = found("b");
	assert_int_equal(a.source, IDENTITY_ATTRIBUTE);
	assert_memory_not_equal(a.uuid, b.uuid, 16);
	assert_int_equal(a.uuid[6] >> 4, 4); /* RFC 9562 §5.4: random */
	assert_int_equal(rename(path("a"), path("renamed")), 0);
	expect("renamed", &a, IDENTITY_ATTRIBUTE);
	assert_true(find(LUN_FILE, path("renamed"), true));
	assert_memory_equal(F.id.uuid, a.uuid, 16);
	end();
}

static void test_copy_gets_a_new_one(void **state)
{
	struct identity a, b;

	(void)state;
	make("original");
	make("copy");
	begin(false);
	a = found("original");
	copy_attribute("original", "copy");
	b = found("copy");
	assert_memory_not_equal(a.uuid, b.uuid, 16);
	expect("copy", &b, IDENTITY_ATTRIBUTE);
	expect("original", &a, IDENTITY_ATTRIBUTE);
	/* the line of the warning */
	F.q.given = a.uuid;
	assert_true(find(LUN_FILE, path("copy"), false));
	assert_memory_equal(F.id.uuid, a.uuid, 16);
	assert_int_equal(F.id.source, IDENTITY_FIELD);
	F.q.given = NULL;
	expect("copy", &b, IDENTITY_ATTRIBUTE); /* the field leaves it alone */
	end();
}

static void test_other_attributes(void **state)
{
	static char text[5000];
	struct identity id;

	(void)state;
	make("hostile");
	begin(false);
	memset(text, 0xff, sizeof(text));
	for (size_t n = 0; n < 3000; n += 999) {
		assert_int_equal(
			setxattr(path("hostile"), ATTRIBUTE, text, n, 0), 0);
		id = found("hostile");
		expect("hostile", &id, IDENTITY_ATTRIBUTE);
	}
	/* without a place it would agree with each copy */
	strcpy(text, "1 f81d4fae-7dec-41d0-a765-00a0c91e6bf6");
	assert_int_equal(
		setxattr(path("hostile"), ATTRIBUTE, text, strlen(text), 0), 0);
	assert_int_not_equal(found("hostile").uuid[0], 0xf8);
	/* a later version: neither served nor changed */
	strcpy(text, "2 what a later version says");
	assert_int_equal(
		setxattr(path("hostile"), ATTRIBUTE, text, strlen(text), 0), 0);
	assert_false(find(LUN_FILE, path("hostile"), false));
	assert_int_equal(getxattr(path("hostile"), ATTRIBUTE, text, 5000),
			 strlen("2 what a later version says"));
	F.q.given = id.uuid;
	assert_true(find(LUN_FILE, path("hostile"), false));
	end();
}

/* Another process replaces the attribute at this moment, or has locked the file. */
static void test_lock(void **state)
{
	struct identity id;
	int fd;

	(void)state;
	make("locked");
	assert_int_equal(setxattr(path("locked"), ATTRIBUTE, "x", 1, 0), 0);
	begin(false);
	fd = open(path("locked"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_false(find(LUN_FILE, path("locked"), false));
	assert_int_equal(getxattr(path("locked"), ATTRIBUTE, NULL, 0), 1);
	close(fd);
	id = found("locked");
	fd = open(path("locked"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	expect("locked", &id, IDENTITY_ATTRIBUTE); /* nothing to write */
	close(fd);
	end();
}

/* A part of the place that becomes known is added. */
static void test_place_is_learned(void **state)
{
	static const char poor[] = "1 f81d4fae-7dec-41d0-a765-00a0c91e6bf6 "
				   "inode=";
	char text[256];
	struct stat st;
	ssize_t n;

	(void)state;
	make("poor");
	assert_int_equal(stat(path("poor"), &st), 0);
	snprintf(text, sizeof(text), "%s%llu", poor,
		 (unsigned long long)st.st_ino);
	assert_int_equal(
		setxattr(path("poor"), ATTRIBUTE, text, strlen(text), 0), 0);
	begin(false);
	assert_int_equal(found("poor").uuid[0], 0xf8);
	n = getxattr(path("poor"), ATTRIBUTE, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_memory_equal(text, poor, strlen(poor));
	assert_non_null(strstr(text, " born="));
	end();
}

/* ---- the state directory ---- */

static void test_attribute_removed(void **state)
{
	struct identity a;

	(void)state;
	make("removed");
	begin(true);
	a = found("removed");
	end();
	assert_int_equal(removexattr(path("removed"), ATTRIBUTE), 0);
	begin(true);
	expect("removed", &a, IDENTITY_ATTRIBUTE);
	/* another file at the path */
	assert_int_equal(rename(path("removed"), path("moved")), 0);
	make("removed");
	assert_memory_not_equal(found("removed").uuid, a.uuid, 16);
	expect("moved", &a, IDENTITY_ATTRIBUTE);
	end();
}

/* /proc has files, but no attributes. */
static void test_without_attributes(void **state)
{
	struct identity a;

	(void)state;
	begin(false);
	assert_true(find(LUN_FILE, "/proc/version", true));
	a = F.id;
	assert_int_equal(a.source, IDENTITY_PROCESS);
	assert_true(find(LUN_FILE, "/proc/version", true));
	assert_memory_not_equal(F.id.uuid, a.uuid, 16);
	F.q.inherited = a.uuid; /* another iserd has handed over */
	assert_true(find(LUN_FILE, "/proc/version", true));
	assert_memory_equal(F.id.uuid, a.uuid, 16);
	end();
	begin(true);
	assert_true(find(LUN_FILE, "/proc/version", true));
	a = F.id;
	assert_int_equal(a.source, IDENTITY_STATE);
	end();
	begin(true);
	assert_true(find(LUN_FILE, "/proc/version", true));
	assert_memory_equal(F.id.uuid, a.uuid, 16);
	/* the inode alone does not show that it is this file: the path decides */
	assert_true(find(LUN_FILE, "/proc//version", true));
	assert_memory_not_equal(F.id.uuid, a.uuid, 16);
	/* other iserd have other directories */
	F.q.is_shared = true;
	assert_true(find(LUN_FILE, "/proc/version", true));
	F.q.read_only = false;
	end();
}

static void test_shared(void **state)
{
	struct identity a;

	(void)state;
	make("shared");
	begin(false);
	F.q.is_shared = true;
	a = found("shared");
	expect("shared", &a, IDENTITY_ATTRIBUTE);
	assert_false(find(LUN_NBD, "nbd://host/x", false));
	F.q.given = a.uuid;
	assert_true(find(LUN_NBD, "nbd://host/x", false));
	end();
}

static void test_kept_by_name(void **state)
{
	struct identity nbd, other, drive;

	(void)state;
	begin(true);
	assert_true(find(LUN_NBD, "nbd://host/x", false));
	nbd = F.id;
	assert_int_equal(nbd.source, IDENTITY_STATE);
	assert_true(find(LUN_NBD, "nbd://host/y\n", false));
	other = F.id;
	assert_memory_not_equal(nbd.uuid, other.uuid, 16);
	assert_true(find(LUN_CD, "cd:x.iso", false));
	drive = F.id;
	end();
	begin(true);
	assert_true(find(LUN_NBD, "nbd://host/x", false));
	assert_memory_equal(F.id.uuid, nbd.uuid, 16);
	assert_true(find(LUN_NBD, "nbd://host/y\n", false));
	assert_memory_equal(F.id.uuid, other.uuid, 16);
	assert_true(find(LUN_CD, "cd:y.iso", false)); /* another medium */
	assert_memory_equal(F.id.uuid, drive.uuid, 16);
	end();
	/* the directory of a machine that was cloned */
	begin(true);
	strcpy(((struct machine *)(uintptr_t)identities_machine(F.all))->product,
	       "0123456789abcdef");
	assert_true(find(LUN_NBD, "nbd://host/x", false));
	nbd = F.id;
	end();
	begin(true);
	strcpy(((struct machine *)(uintptr_t)identities_machine(F.all))->product,
	       "1123456789abcdef");
	assert_true(find(LUN_NBD, "nbd://host/x", false));
	assert_memory_not_equal(F.id.uuid, nbd.uuid, 16);
	end();
}

static void test_own(void **state)
{
	static const uint8_t own[16] = { 7 }, none[16];

	(void)state;
	begin(false);
	F.q.own = own;
	assert_true(find(LUN_RBD, "rbd:p/i", false));
	assert_memory_equal(F.id.uuid, own, 16);
	assert_int_equal(F.id.source, IDENTITY_IMAGE);
	assert_true(find(LUN_SCSI, "scsi:/dev/sg1", false));
	assert_int_equal(F.id.source, IDENTITY_DEVICE);
	assert_true(find(LUN_RAM, "ram:1M", false));
	assert_int_equal(F.id.source, IDENTITY_PROCESS);
	F.q.own = none; /* a device without a name */
	assert_true(find(LUN_SCSI, "scsi:/dev/sg1", false));
	assert_int_equal(F.id.source, IDENTITY_PROCESS);
	assert_memory_not_equal(F.id.uuid, none, 16);
	end();
}

/* ---- an upgrade ---- */

static void name_machine(const char *id)
{
	struct machine *m =
		(struct machine *)(uintptr_t)identities_machine(F.all);

	m->id_len = strlen(id);
	memcpy(m->id, id, m->id_len);
}

static void old_identity(const char *name, uint8_t uuid[16])
{
	char real[PATH_MAX], key[PATH_MAX + 8];

	assert_non_null(realpath(path(name), real));
	snprintf(key, sizeof(key), "m1\n%s", real);
	bs_uuid_derive(uuid, key, strlen(key));
}

/* Writes a file of the state directory. */
static void write_file(const char *name, const char *data, size_t len)
{
	char text[PATH_MAX + 64];
	int fd;

	snprintf(text, sizeof(text), "%s/%s", state_dir, name);
	fd = open(text, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static void put_old_state(const uint8_t uuid[16])
{
	char name[STATE_NAME];

	for (int i = 0; i < 16; i++)
		snprintf(name + 2 * i, 3, "%02x", uuid[i]);
	strcat(name, ".unit");
	write_file(name, "x", 1);
	assert_true(state_has_unit(F.state, uuid, name));
}

static void test_upgrade(void **state)
{
	struct identity id;
	uint8_t old[16];

	(void)state;
	make("served");
	make("other");
	make("taken");
	old_identity("served", old);
	begin(true);
	name_machine("m1\n");
	put_old_state(old);
	id = found("served");
	assert_memory_equal(id.uuid, old, 16);
	assert_true(id.is_old);
	assert_int_equal(id.source, IDENTITY_ATTRIBUTE);
	assert_false(found("served").is_old); /* once */
	/* its next file is another one, although the saved state is still there */
	assert_int_equal(rename(path("served"), path("went on")), 0);
	make("served");
	assert_memory_not_equal(found("served").uuid, old, 16);
	expect("went on", &id, IDENTITY_ATTRIBUTE);
	old_identity("other", old);
	assert_memory_not_equal(found("other").uuid, old, 16);
	/* a takeover shows it, too */
	old_identity("taken", old);
	F.q.was_served = true;
	assert_memory_equal(found("taken").uuid, old, 16);
	end();
	/* without a machine-id two containers had one */
	make("container");
	begin(true);
	name_machine("");
	F.q.was_served = true;
	assert_false(found("container").is_old);
	end();
}

/* ---- the file ---- */

static void test_damaged_file(void **state)
{
	char data[65536], text[PATH_MAX + 16];
	ssize_t len;
	int fd;

	(void)state;
	begin(true);
	end();
	snprintf(text, sizeof(text), "%s/identities", state_dir);
	fd = open(text, O_RDONLY);
	len = read(fd, data, sizeof(data));
	assert_true(len > 100);
	close(fd);
	F.state = state_open(state_dir, NULL, false, geteuid(), getegid());
	assert_non_null(F.state);
	for (ssize_t at = 0; at < len; at += 1 + len / 50) {
		data[at] ^= 1;
		write_file("identities", data, (size_t)len);
		assert_null(identities_new(F.state));
		data[at] ^= 1;
		write_file("identities", data, (size_t)at);
		assert_null(identities_new(F.state));
	}
	write_file("identities", data, (size_t)len);
	F.all = identities_new(F.state);
	assert_non_null(F.all);
	end();
}

static int make_dir(void **state)
{
	char probe[PATH_MAX];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(state_dir, sizeof(state_dir), "%s/state", dir);
	snprintf(probe, sizeof(probe), "%s/probe", dir);
	make("probe");
	if (setxattr(probe, "user.x", "1", 1, 0) && errno == EOPNOTSUPP) {
		fputs("no extended attributes here\n", stderr);
		exit(77);
	}
	return 0;
}

static int remove_dir(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_of_a_copy),
		cmocka_unit_test(test_file_keeps_its_own),
		cmocka_unit_test(test_copy_gets_a_new_one),
		cmocka_unit_test(test_other_attributes),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_place_is_learned),
		cmocka_unit_test(test_attribute_removed),
		cmocka_unit_test(test_without_attributes),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_kept_by_name),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_damaged_file),
	};

	return cmocka_run_group_tests_name("daemon identity", tests, make_dir,
					   remove_dir);
}
