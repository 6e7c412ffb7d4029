/* SPDX-License-Identifier: BSD-2-Clause */
/* dir_open.c: opens the files of the directory store. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hex.h"
#include "daemon/cluster/dir_internal.h"
#include "daemon/luns/device_id.h"
#include "daemon/luns/private.h"

#define DATA_TEXT    (DEVICE_TEXT + 32)
#define CHANGE_TRIES 50	       /* 1 s */
#define CHANGE_PAUSE 20000000L /* ns */

/* The store that is being opened, and the buffer for the error message. */
struct opening {
	struct dir_store *s;
	uid_t uid;
	gid_t gid;
	char *why;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int
refuse(const struct opening *o, const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(o->why, o->size, what, format, args);
	va_end(args);
	return -1;
}

/* A user who may write to the directory could replace its files. */
static int check_directory(const struct opening *o, const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return refuse(o, path, "%s", strerror(errno));
	if (!private_owner_ok(&st))
		return refuse(o, path,
			      "belongs to another user; chown it to the user "
			      "that iserd runs as");
	if (st.st_mode & 022)
		return refuse(o, path,
			      "others may write there; use chmod go-w");
	return 0;
}

/* open_directory makes a directory if it does not exist, and opens it. Returns the
 * descriptor, or -1. */
static int open_directory(const struct opening *o, int at, const char *name,
			  const char *path)
{
	bool is_new = !mkdirat(at, name, 0700); /* open reports errors, too */
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return refuse(o, path,
			      "%s; give a directory that iserd may write to",
			      strerror(errno));
	err = check_directory(o, path, fd);
	if (!err && is_new && o->uid != geteuid() && fchown(fd, o->uid, o->gid))
		err = refuse(o, path,
			     "cannot change its owner to the user of --user: "
			     "%s",
			     strerror(errno));
	if (!err)
		return fd;
	close(fd);
	return -1;
}

static int open_file(const struct opening *o, const char *name, int *fd)
{
	struct stat st;

	*fd = private_open(o->s->dir, name, O_RDWR | O_CREAT, 0600);
	if (*fd < 0)
		return refuse(o, o->s->path, "%s: %s", name,
			      private_refusal(*fd));
	if (fstat(*fd, &st) || private_complaint(&st))
		return refuse(o, o->s->path, "%s: %s", name,
			      private_complaint(&st));
	if (st.st_uid != o->uid && geteuid() == 0 &&
	    fchown(*fd, o->uid, o->gid))
		return refuse(o, o->s->path, "%s: %s", name, strerror(errno));
	return 0;
}

/* Two processes with the name of one gateway would receive one's notifications. */
static int claim_name(const struct opening *o)
{
	char name[CLUSTER_ID_SIZE + 8];

	snprintf(name, sizeof(name), "name.%s", o->s->store.id);
	if (open_file(o, name, &o->s->name))
		return -1;
	if (!flock(o->s->name, LOCK_EX | LOCK_NB))
		return 0;
	return refuse(o, o->s->path,
		      errno == EWOULDBLOCK
			      ? "another iserd is gateway %s; give each iserd "
				"a name of its own"
			      : "cannot lock the name of gateway %s",
		      o->s->store.id);
}

/* ---- which data the gateways serve ---- */

/* Writes a text that a path to the same data has, too, and no other data. */
static size_t name_data(int fd, char out[DATA_TEXT])
{
	char device[DEVICE_TEXT];
	struct stat st;
	int n;

	if (fd < 0 || fstat(fd, &st))
		n = snprintf(out, DATA_TEXT, "none\n");
	else if (!S_ISBLK(st.st_mode))
		n = snprintf(out, DATA_TEXT, "file %u:%u %ju\n",
			     major(st.st_dev), minor(st.st_dev),
			     (uintmax_t)st.st_ino);
	else if (device_name(st.st_rdev, device) == DEVICE_UNIQUE)
		n = snprintf(out, DATA_TEXT, "device %s\n", device);
	else
		n = snprintf(out, DATA_TEXT, "device %u:%u\n",
			     major(st.st_rdev), minor(st.st_rdev));
	return (size_t)n;
}

/* Compares with the text that the gateways share, or writes it: no other gateway has the
 * flock. The caller has that of `change`. */
static int share_data(const struct opening *o, int data)
{
	char mine[DATA_TEXT], theirs[DATA_TEXT];
	size_t len = name_data(data, mine);
	const struct dir_store *s = o->s;
	ssize_t n;

	if (!flock(s->shared, LOCK_EX | LOCK_NB)) {
		if (ftruncate(s->shared, 0) ||
		    pwrite(s->shared, mine, len, 0) != (ssize_t)len)
			return refuse(o, s->path, "data: cannot be written: %s",
				      strerror(errno ? errno : EIO));
	} else if (errno != EWOULDBLOCK) {
		return refuse(o, s->path, "data: %s", strerror(errno));
	}
	if (flock(s->shared, LOCK_SH | LOCK_NB))
		return refuse(o, s->path, "data: %s", strerror(errno));
	n = pread(s->shared, theirs, sizeof(theirs), 0);
	if (n == (ssize_t)len && !memcmp(mine, theirs, len))
		return 0;
	return refuse(o, s->path,
		      "another gateway serves other data with this identity, "
		      "one of which may be a copy; serve the same file or "
		      "device at each gateway, or give each its own uuid");
}

static int claim_data(const struct opening *o, int data)
{
	const struct dir_store *s = o->s;
	int err = dir_flock(s->change, CHANGE_TRIES, CHANGE_PAUSE);

	if (err)
		return refuse(o, s->path, "change: %s", strerror(err));
	err = share_data(o, data);
	flock(s->change, LOCK_UN);
	return err;
}

/* ---- all files ---- */

int dir_open_files(struct dir_store *s, const char *directory,
		   const uint8_t uuid[16], int data, uid_t uid, gid_t gid,
		   char *why, size_t size)
{
	const struct opening o = {
		.s = s, .uid = uid, .gid = gid, .why = why, .size = size
	};
	char unit[33];
	int top;

	hex_put(unit, uuid, 16);
	if (snprintf(s->path, sizeof(s->path), "%s/%s", directory, unit) >=
	    (int)sizeof(s->path))
		return refuse(&o, directory, "too long; give a shorter path");
	top = open_directory(&o, AT_FDCWD, directory, directory);
	if (top < 0)
		return -1;
	s->dir = open_directory(&o, top, unit, s->path);
	close(top);
	if (s->dir < 0)
		return -1;
	if (open_file(&o, "change", &s->change) ||
	    open_file(&o, "lock", &s->lock) ||
	    open_file(&o, "data", &s->shared))
		return -1;
	return claim_name(&o) || claim_data(&o, data) ? -1 : 0;
}
