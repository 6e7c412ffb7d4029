/* SPDX-License-Identifier: BSD-2-Clause */
/* keyfile.c: reads, makes and replaces the key of a store. */
#include "daemon/luns/keyfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "daemon/config/options.h"
#include "daemon/log/say.h"
#include "daemon/luns/private.h"

#define TEMP_SUFFIX ".iserd-new"

struct keyfile {
	struct keyfile_config cfg;
	int dir, fd; /* fd has the lock */
	char name[NAME_MAX + 1], temp[NAME_MAX + sizeof(TEMP_SUFFIX)];
	/* the change in progress */
	struct io_file_op op;
	struct bs_key_change *change;
};

static struct keyfile *refuse_file(struct keyfile *k, const char *why)
{
	say("key file %s: %s", k->cfg.path, why);
	keyfile_close(k);
	return NULL;
}

/* ---- one file of 64 bytes ---- */

static int overwrite_key(int fd, const uint8_t *p)
{
	ssize_t n = pwrite(fd, p, BS_CRYPT_KEY, 0);

	if (n < 0)
		return -errno;
	if (n != BS_CRYPT_KEY)
		return -ENOSPC;
	return fsync(fd) ? -errno : 0;
}

/* Overwrites the key with random bytes (as far as the file system writes in
 * place). */
static int wipe_key(int fd)
{
	uint8_t noise[BS_CRYPT_KEY];

	return RAND_bytes(noise, sizeof(noise)) == 1 ? overwrite_key(fd, noise)
						     : -EIO;
}

/* Makes the temporary file with key, locked and on the medium. Returns its
 * descriptor or -Exxx. */
static int write_temp(const struct keyfile *k, const uint8_t *key)
{
	int fd = private_open(k->dir, k->temp, O_RDWR | O_CREAT | O_EXCL, 0600);
	int err;

	if (fd < 0)
		return fd;
	err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : overwrite_key(fd, key);
	if (!err && fsync(k->dir))
		err = -errno;
	if (!err)
		return fd;
	(void)wipe_key(fd);
	close(fd);
	unlinkat(k->dir, k->temp, 0);
	return err;
}

/* The file can have been left by a change of the key; another program's file
 * must not be overwritten. */
static bool is_leftover(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       st.st_size <= BS_CRYPT_KEY;
}

/* Removes the temporary file that an interrupted change left, with the new key
 * or the old one. False after a message. */
static bool clean_up(const struct keyfile *k)
{
	int fd = private_open(k->dir, k->temp, O_RDWR, 0);
	int err = 0;

	if (fd == -ENOENT)
		return true;
	if (fd < 0)
		err = fd;
	else if (!is_leftover(fd))
		err = -EEXIST;
	else
		err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : wipe_key(fd);
	if (fd >= 0)
		close(fd);
	if (!err && (unlinkat(k->dir, k->temp, 0) || fsync(k->dir)))
		err = -errno;
	if (err)
		say("key file %s: cannot remove %s: %s", k->cfg.path, k->temp,
		    err == -EEXIST ? "not left by a change of the key; move "
				     "that file elsewhere"
				   : strerror(-err));
	return !err;
}

/* ---- opening ---- */

static bool find_folder(struct keyfile *k)
{
	const char *slash = strrchr(k->cfg.path, '/');
	const char *name = slash ? slash + 1 : k->cfg.path;
	char folder[PATH_MAX] = ".";

	if (!*name || strlen(name) + strlen(TEMP_SUFFIX) > NAME_MAX ||
	    strlen(k->cfg.path) >= sizeof(folder)) {
		say("key file %s: not a file name; give a path", k->cfg.path);
		return false;
	}
	snprintf(k->name, sizeof(k->name), "%s", name);
	snprintf(k->temp, sizeof(k->temp), "%s" TEMP_SUFFIX, name);
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s",
			 (int)(slash - k->cfg.path + 1), k->cfg.path);
	k->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (k->dir < 0)
		say("key file %s: %s: %s", k->cfg.path, folder,
		    strerror(errno));
	return k->dir >= 0;
}

/* Gives the temporary file its name, unless that exists by now. */
static int give_name(const struct keyfile *k)
{
	if (!renameat2(k->dir, k->temp, k->dir, k->name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(k->dir, k->temp, k->dir, k->name) ? -errno : 0;
}

static struct keyfile *make_key(struct keyfile *k, uint8_t *key)
{
	int err;

	if (!clean_up(k)) {
		keyfile_close(k);
		return NULL;
	}
	if (!keyfile_random(k, key, BS_CRYPT_KEY))
		return refuse_file(k, "cannot get random bytes for a new key");
	k->fd = write_temp(k, key);
	if (k->fd < 0)
		return refuse_file(k, strerror(-k->fd));
	err = give_name(k);
	if (err) {
		(void)wipe_key(k->fd);
		unlinkat(k->dir, k->temp, 0);
	} else if (fsync(k->dir)) {
		err = -errno;
	}
	return err ? refuse_file(k, strerror(-err)) : k;
}

static const char *key_complaint(const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_size != BS_CRYPT_KEY)
		return "not a key; give a regular file of 64 bytes";
	if (st->st_nlink != 1)
		return "has a second name, under which the key would outlive "
		       "CRYPTO ERASE; remove that name";
	return private_complaint(st);
}

static struct keyfile *read_key(struct keyfile *k, uint8_t *key)
{
	const char *why;
	struct stat st;

	if (flock(k->fd, (k->cfg.read_only ? LOCK_SH : LOCK_EX) | LOCK_NB))
		return refuse_file(
			k, errno == EWOULDBLOCK
				   ? "another LUN or iserd uses it; give each "
				     "LUN a key of its own"
				   : strerror(errno));
	if (fstat(k->fd, &st))
		return refuse_file(k, strerror(errno));
	why = key_complaint(&st);
	if (why)
		return refuse_file(k, why);
	if (pread(k->fd, key, BS_CRYPT_KEY, 0) != BS_CRYPT_KEY)
		return refuse_file(k, "cannot be read");
	if (!CRYPTO_memcmp(key, key + BS_CRYPT_KEY / 2, BS_CRYPT_KEY / 2))
		return refuse_file(k,
				   "not a key for XTS: its halves are equal");
	if (k->cfg.read_only || clean_up(k))
		return k;
	keyfile_close(k);
	return NULL;
}

const char keyfile_not_new[] = "already exists; new-key= never replaces a "
			       "file: give key= to use this key";

static struct keyfile *open_or_make(struct keyfile *k, uint8_t *key)
{
	private_no_core();
	k->fd = private_open(k->dir, k->name,
			     k->cfg.read_only ? O_RDONLY : O_RDWR, 0);
	if (k->fd == -ENOENT && k->cfg.wish != KEY_MUST_EXIST)
		return make_key(k, key);
	if (k->fd < 0)
		return refuse_file(k, private_refusal(k->fd));
	if (k->cfg.wish == KEY_NEW)
		return refuse_file(k, keyfile_not_new);
	return read_key(k, key);
}

struct keyfile *keyfile_open(const struct keyfile_config *cfg,
			     uint8_t key[BS_CRYPT_KEY])
{
	struct keyfile *k = calloc(1, sizeof(*k));

	if (!k) {
		say("out of memory");
		return NULL;
	}
	k->cfg = *cfg;
	k->dir = k->fd = -1;
	if (find_folder(k))
		return open_or_make(k, key);
	keyfile_close(k);
	return NULL;
}

bool keyfile_exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st) || errno != ENOENT;
}

bool keyfile_usable(const char *path)
{
	struct keyfile k = { .cfg = { .path = path } };
	bool good;

	if (!find_folder(&k))
		return false;
	good = !faccessat(k.dir, ".", W_OK | X_OK, AT_EACCESS);
	if (!good)
		say("key file %s: %s; CRYPTO ERASE replaces the file: let the "
		    "user that iserd runs as write in its folder",
		    path, strerror(errno));
	close(k.dir);
	return good;
}

void keyfile_close(void *arg)
{
	struct keyfile *k = arg;

	assert(!k->change);
	if (k->fd >= 0)
		close(k->fd);
	if (k->dir >= 0)
		close(k->dir);
	free(k);
}

/* ---- replacing the key: on a helper thread ---- */

bool keyfile_random(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	return RAND_priv_bytes(p, (int)n) == 1;
}

/* Gives the name to the new file. Where the file system can exchange names, the
 * old file gets the temporary name, so that the next start can wipe the file if
 * this process ends before. */
static int exchange_names(const struct keyfile *k, bool *old_is_there)
{
	*old_is_there =
		!renameat2(k->dir, k->temp, k->dir, k->name, RENAME_EXCHANGE);
	if (*old_is_there)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(k->dir, k->temp, k->dir, k->name) ? -errno : 0;
}

static int64_t change_now(struct io_file_op *op)
{
	struct keyfile *k = container_of(op, struct keyfile, op);
	int fd = write_temp(k, k->change->key), old = k->fd, err;
	bool old_is_there;

	if (fd < 0)
		return fd;
	err = exchange_names(k, &old_is_there);
	if (err) {
		(void)wipe_key(fd);
		close(fd);
		unlinkat(k->dir, k->temp, 0);
		return err;
	}
	k->change->in_force = true;
	k->fd = fd;
	/* only after the new name is on the medium */
	err = fsync(k->dir) ? -errno : wipe_key(old);
	close(old);
	if (!err && old_is_there &&
	    (unlinkat(k->dir, k->temp, 0) || fsync(k->dir)))
		err = -errno;
	return err;
}

static void change_done(struct io_file_op *op, int64_t result)
{
	struct keyfile *k = container_of(op, struct keyfile, op);
	struct bs_key_change *c = k->change;

	k->change = NULL;
	if (result)
		say("key file %s: %s: %s", k->cfg.path,
		    c->in_force ? "the old key may remain on the medium"
				: "cannot replace the key",
		    strerror((int)-result));
	c->result = result ? ERR_MEDIUM : 0;
	c->done(c);
}

void keyfile_keep(void *arg, struct bs_key_change *c)
{
	struct keyfile *k = arg;

	assert(!k->change);
	k->change = c;
	k->op = (struct io_file_op){
		.opcode = IO_FILE_CALL,
		.fd = -1,
		.call = change_now,
		.done = change_done,
	};
	io_file_submit(k->cfg.loops[c->worker], &k->op);
}
