/* SPDX-License-Identifier: BSD-2-Clause */
/* dir_open.c: opens the files of the directory store. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hex.h"
#include "daemon/cluster/dir_internal.h"
#include "daemon/luns/private.h"

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

int dir_open_files(struct dir_store *s, const char *directory,
		   const uint8_t uuid[16], uid_t uid, gid_t gid, char *why,
		   size_t size)
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
	    open_file(&o, "lock", &s->lock))
		return -1;
	return claim_name(&o);
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void dir_release_name(struct dir_store *s)
{
	close_file(&s->name);
}

void dir_close_files(struct dir_store *s)
{
	/* the text of a lock that is not held must name no process */
	if (s->has_lock && ftruncate(s->lock, 0))
		s->has_lock = false;
	close_file(&s->lock);
	close_file(&s->change);
	close_file(&s->name);
	/* I/O in progress keeps the flock */
	close_file(&s->data);
	close_file(&s->dir);
}
