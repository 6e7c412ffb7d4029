/* SPDX-License-Identifier: BSD-2-Clause */
/* private.c: opens, checks and replaces files that only iserd may read. */
#include "daemon/luns/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uid_t user = (uid_t)-1;

void private_user(uid_t uid)
{
	user = uid;
}

/* systemd.exec(5), LoadCredential=: the folder of the secrets that the service
 * manager passes. */
static int open_credentials(void)
{
	const char *path = getenv("CREDENTIALS_DIRECTORY");

	return path && *path == '/'
		       ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		       : -1;
}

static int open_credential(const char *name, int flags)
{
	int dir, fd;

	if (!*name || strchr(name, '/'))
		return -EINVAL;
	dir = open_credentials();
	if (dir < 0)
		return -ENOTDIR;
	fd = private_open(dir, name, flags, 0);
	close(dir);
	return fd;
}

int private_open(int dir, const char *name, int flags, mode_t mode)
{
	static const char credential[] = "credential:";
	int fd;

	if (dir == AT_FDCWD &&
	    !strncmp(name, credential, sizeof(credential) - 1))
		return open_credential(name + sizeof(credential) - 1, flags);
	fd = openat(dir, name,
		    flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		    mode);

	return fd < 0 ? -errno : fd;
}

static int write_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

int private_replace(int dir, const char *temp, const char *name,
		    const void *data, size_t len)
{
	int fd, err;

	/* left by an interrupted call; or a link that another user made */
	if (unlinkat(dir, temp, 0) && errno != ENOENT)
		return -errno;
	fd = private_open(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	err = write_all(fd, data, len);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(dir, temp, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, temp, 0);
	return err;
}

const char *private_refusal(int err)
{
	switch (err) {
	case -ELOOP:
		return "is a symbolic link; give the file itself";
	case -ENOTDIR:
		return "not found; there is no folder of credentials: start "
		       "iserd as a service with LoadCredential=";
	default:
		return strerror(-err);
	}
}

bool private_owner_ok(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == user;
}

/* systemd lets the user of the service read its credentials by an ACL, whose
 * mask appears as permission of the group. */
static bool is_credential(const struct stat *st)
{
	int dir = open_credentials();
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	const struct dirent *e;
	struct stat found;
	bool is = false;

	if (!d && dir >= 0)
		close(dir);
	while (d && !is && (e = readdir(d)))
		is = !fstatat(dir, e->d_name, &found, AT_SYMLINK_NOFOLLOW) &&
		     found.st_dev == st->st_dev && found.st_ino == st->st_ino;
	if (d)
		closedir(d);
	return is;
}

const char *private_complaint(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (!private_owner_ok(st))
		return "belongs to another user; chown it to the user that "
		       "iserd runs as";
	if ((st->st_mode & 077) == 040 && is_credential(st))
		return NULL;
	if (st->st_mode & 077)
		return "others may read or change it; use chmod 600";
	return NULL;
}

/* With a limit of 0 the kernel still starts the program of core_pattern. With 1
 * the kernel does not, and writes no file either, since each core file is
 * larger. */
void private_no_core(void)
{
	struct rlimit r = { 0 };

	(void)getrlimit(RLIMIT_CORE, &r);
	r.rlim_cur = r.rlim_max ? 1 : 0;
	(void)setrlimit(RLIMIT_CORE, &r);
}
