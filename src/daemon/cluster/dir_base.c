/* SPDX-License-Identifier: BSD-2-Clause */
/* dir_base.c: what the other files of the directory store need. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/cluster/dir_internal.h"

void dir_say(struct dir_lane *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(l->why, sizeof(l->why), l->s->path, format, args);
	va_end(args);
}

int dir_err(int err)
{
	switch (err) {
	case 0:
		return 0;
	case ENOMEM:
		return ERR_NOMEM;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EMFILE:
	case ENFILE:
		return ERR_LIMIT;
	case EACCES:
	case EPERM:
	case EROFS:
	case ELOOP:
	case ENOENT:
		return ERR_DENIED;
	default:
		return ERR_RESET;
	}
}

int dir_flock(int fd, unsigned tries, long pause)
{
	const struct timespec wait = { .tv_nsec = pause };

	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return errno;
		if (i == tries)
			return EWOULDBLOCK;
		nanosleep(&wait, NULL);
	}
	return 0;
}

bool dir_is_file(const struct dir_store *s, int fd, const char *name)
{
	struct stat ours, there;

	return !fstat(fd, &ours) &&
	       !fstatat(s->dir, name, &there, AT_SYMLINK_NOFOLLOW) &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* ---- the life of the store ---- */

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

void dir_free(struct dir_store *s)
{
	/* the text of a lock that is not held must name no process */
	if (s->has_lock && ftruncate(s->lock, 0))
		s->has_lock = false;
	close_file(&s->lock);
	close_file(&s->change);
	close_file(&s->name);
	close_file(&s->shared);
	/* I/O in progress keeps the flock */
	close_file(&s->data);
	close_file(&s->dir);
	free(s);
}

void dir_enter(struct dir_store *s)
{
	s->frames++;
}

void dir_leave(struct dir_store *s)
{
	if (--s->frames == 0 && s->closed)
		dir_free(s);
}
