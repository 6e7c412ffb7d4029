/* SPDX-License-Identifier: BSD-2-Clause */
/* keyfile.c: reading, making and replacing the key of a store. */
#include "daemon/keyfile.h"

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
#include "daemon/options.h"

#define TEMP_SUFFIX ".iserd-new"
/* A name may lead to anything: a pipe would be waited for. */
#define NO_TRICKS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct keyfile {
	struct keyfile_config cfg;
	int dir, fd; /* fd has the lock */
	char name[NAME_MAX + 1], temp[NAME_MAX + sizeof(TEMP_SUFFIX)];
	/* the change under way */
	struct io_file_op op;
	struct bs_key_change *change;
};

static struct keyfile *refuse(struct keyfile *k, const char *why)
{
	say("key file %s: %s", k->cfg.path, why);
	keyfile_close(k);
	return NULL;
}

/* ---- one file of 64 bytes ---- */

static int overwrite(int fd, const uint8_t *p)
{
	ssize_t n = pwrite(fd, p, BS_CRYPT_KEY, 0);

	if (n < 0)
		return -errno;
	if (n != BS_CRYPT_KEY)
		return -ENOSPC;
	return fsync(fd) ? -errno : 0;
}

/* What the file held is not to be found any more (as far as the file system
 * writes where it wrote before). */
static int wipe(int fd)
{
	uint8_t noise[BS_CRYPT_KEY];

	return RAND_bytes(noise, sizeof(noise)) == 1 ? overwrite(fd, noise)
						     : -EIO;
}

/* The temporary file with a key in it, locked and on the medium. Its
 * descriptor, or -Exxx. */
static int write_temp(const struct keyfile *k, const uint8_t *key)
{
	int fd = openat(k->dir, k->temp, O_RDWR | O_CREAT | O_EXCL | NO_TRICKS,
			0600);
	int err;

	if (fd < 0)
		return -errno;
	err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : overwrite(fd, key);
	if (!err && fsync(k->dir))
		err = -errno;
	if (!err)
		return fd;
	(void)wipe(fd);
	close(fd);
	unlinkat(k->dir, k->temp, 0);
	return err;
}

/* Nobody else's file may be overwritten, by whatever name it got there. */
static bool is_leftover(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       st.st_size <= BS_CRYPT_KEY;
}

/* A change that was cut off left a file: the key that was to come, or the one
 * that has gone. False after a message. */
static bool clean_up(const struct keyfile *k)
{
	int fd = openat(k->dir, k->temp, O_RDWR | NO_TRICKS);
	int err = 0;

	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0)
		err = -errno;
	else if (!is_leftover(fd))
		err = -EEXIST;
	else
		err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : wipe(fd);
	if (fd >= 0)
		close(fd);
	if (!err && (unlinkat(k->dir, k->temp, 0) || fsync(k->dir)))
		err = -errno;
	if (err)
		say("key file %s: %s is in the way: %s", k->cfg.path, k->temp,
		    err == -EEXIST ? "no change of the key left it; move it "
				     "elsewhere"
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
		say("key file %s: no file name", k->cfg.path);
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

/* The name, unless somebody else was first. */
static int give_name(const struct keyfile *k)
{
	if (!renameat2(k->dir, k->temp, k->dir, k->name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(k->dir, k->temp, k->dir, k->name) ? -errno : 0;
}

static struct keyfile *make(struct keyfile *k, uint8_t *key)
{
	int err;

	if (!clean_up(k)) {
		keyfile_close(k);
		return NULL;
	}
	if (!keyfile_random(k, key, BS_CRYPT_KEY))
		return refuse(k, "there is no chance to make a key from");
	k->fd = write_temp(k, key);
	if (k->fd < 0)
		return refuse(k, strerror(-k->fd));
	err = give_name(k);
	if (err) {
		(void)wipe(k->fd);
		unlinkat(k->dir, k->temp, 0);
	} else if (fsync(k->dir)) {
		err = -errno;
	}
	return err ? refuse(k, strerror(-err)) : k;
}

static const char *complaint(const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || st->st_size != BS_CRYPT_KEY)
		return "is no key: a key is a file of 64 bytes";
	if (st->st_mode & 077)
		return "others may read or change it; chmod 600";
	if (st->st_nlink != 1)
		return "has a second name, under which the key would outlive "
		       "CRYPTO ERASE; remove that";
	return NULL;
}

static struct keyfile *read_key(struct keyfile *k, uint8_t *key)
{
	const char *why;
	struct stat st;

	if (flock(k->fd, (k->cfg.read_only ? LOCK_SH : LOCK_EX) | LOCK_NB))
		return refuse(k,
			      errno == EWOULDBLOCK
				      ? "another unit or iserd uses it; each "
					"needs a key of its own"
				      : strerror(errno));
	if (fstat(k->fd, &st))
		return refuse(k, strerror(errno));
	why = complaint(&st);
	if (why)
		return refuse(k, why);
	if (pread(k->fd, key, BS_CRYPT_KEY, 0) != BS_CRYPT_KEY)
		return refuse(k, "cannot be read");
	if (!CRYPTO_memcmp(key, key + BS_CRYPT_KEY / 2, BS_CRYPT_KEY / 2))
		return refuse(k, "is no key for XTS: its halves are alike");
	if (k->cfg.read_only || clean_up(k))
		return k;
	keyfile_close(k);
	return NULL;
}

static struct keyfile *open_or_make(struct keyfile *k, uint8_t *key)
{
	k->fd = openat(k->dir, k->name,
		       (k->cfg.read_only ? O_RDONLY : O_RDWR) | NO_TRICKS);
	if (k->fd < 0 && errno == ENOENT && k->cfg.wish != KEY_MUST_EXIST)
		return make(k, key);
	if (k->fd < 0)
		return refuse(k, errno == ELOOP ? "is a symbolic link; name "
						  "the file itself"
						: strerror(errno));
	if (k->cfg.wish == KEY_NEW)
		return refuse(k, "is there already; new-key= makes one and "
				 "replaces none: use key= to go on with it");
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
		say("key file %s: %s; CRYPTO ERASE puts a new file in its "
		    "place: let the user that iserd runs as write in that "
		    "folder",
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

/* ---- another key: on a helper thread ---- */

bool keyfile_random(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	return RAND_priv_bytes(p, (int)n) == 1;
}

/* The new file gets the name. Where the file system can, the old one has the
 * temporary name afterwards: if nobody gets to wipe it now, the next start
 * does. */
static int exchange(const struct keyfile *k, bool *old_is_there)
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
	err = exchange(k, &old_is_there);
	if (err) {
		(void)wipe(fd);
		close(fd);
		unlinkat(k->dir, k->temp, 0);
		return err;
	}
	k->change->in_force = true;
	k->fd = fd;
	/* not before the new one is sure to be found */
	err = fsync(k->dir) ? -errno : wipe(old);
	close(old);
	if (!err && old_is_there &&
	    (unlinkat(k->dir, k->temp, 0) || fsync(k->dir)))
		err = -errno;
	return err;
}

static void changed(struct io_file_op *op, int64_t result)
{
	struct keyfile *k = container_of(op, struct keyfile, op);
	struct bs_key_change *c = k->change;

	k->change = NULL;
	if (result)
		say("key file %s: %s: %s", k->cfg.path,
		    c->in_force ? "the old key may not be gone from the medium"
				: "the key can't be changed",
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
		.done = changed,
	};
	io_file_submit(k->cfg.loops[c->worker], &k->op);
}
