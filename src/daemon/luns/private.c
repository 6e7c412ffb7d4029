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

#include "base/bytes.h"

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

int private_open(int dir, const char *name, int flags, mode_t mode)
{
	int fd = openat(dir, name,
			flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			mode);

	return fd < 0 ? -errno : fd;
}

/* ---- symbolic links ---- */

#define LINKS_MAX 8

/* Whether no other user can replace the entries of the directory: in one with the sticky
 * bit a user can only add some. */
static bool is_safe_directory(int dir)
{
	struct stat st;

	return !fstat(dir, &st) && private_owner_ok(&st) &&
	       (!(st.st_mode & 022) || st.st_mode & S_ISVTX);
}

static int follow(int dir, const char *path, int *links);

/* Opens the file that the symbolic link leads to. */
static int follow_link(int dir, const char *name, int *links)
{
	char to[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!private_owner_ok(&st))
		return -EPERM;
	n = readlinkat(dir, name, to, sizeof(to));
	if (n < 0)
		return -errno;
	if ((size_t)n == sizeof(to) || (*links)++ == LINKS_MAX)
		return -ELOOP;
	to[n] = '\0';
	return follow(dir, to, links);
}

/* Opens one component of a path: a file for reading, or a directory. */
static int follow_name(int dir, const char *name, bool is_last, int *links)
{
	int fd;

	if (!is_safe_directory(dir))
		return -EPERM;
	fd = private_open(dir, name, is_last ? O_RDONLY : O_PATH | O_DIRECTORY,
			  0);
	/* a link to a directory: the error is that of O_DIRECTORY */
	if (fd == -ELOOP || (fd == -ENOTDIR && !is_last))
		fd = follow_link(dir, name, links);
	return fd;
}

/* Opens a path, component by component. */
static int follow(int dir, const char *path, int *links)
{
	int at = *path == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
			      : fcntl(dir, F_DUPFD_CLOEXEC, 0);

	while (at >= 0) {
		char name[NAME_MAX + 1];
		size_t len;
		int fd;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (!len)
			return at; /* a directory: no secret */
		if (len >= sizeof(name)) {
			close(at);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		fd = follow_name(at, name, !*path, links);
		close(at);
		if (!*path || fd < 0)
			return fd;
		at = fd;
	}
	return -errno;
}

/* Opens the directory of a path. */
static int open_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";
	int dir;

	if (slash && (size_t)(slash - path) + 2 > sizeof(folder))
		return -ENAMETOOLONG;
	if (slash) {
		memcpy(folder, path, (size_t)(slash - path) + 1);
		folder[slash - path + 1] = '\0';
	}
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

int private_open_secret(const char *name)
{
	static const char credential[] = "credential:";
	const size_t len = sizeof(credential) - 1;
	bool is_credential = !strncmp(name, credential, len);
	const char *file = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	int dir, fd, links = 0;

	if (is_credential) {
		file = name + len;
		if (!*file || strchr(file, '/'))
			return -EINVAL;
	}
	dir = is_credential ? open_credentials() : open_folder(name);
	if (dir < 0)
		return is_credential ? -ENOTDIR : dir;
	fd = private_open(dir, file, O_RDONLY, 0);
	if (fd == -ELOOP)
		fd = is_safe_directory(dir) ? follow_link(dir, file, &links)
					    : -EPERM;
	close(dir);
	return fd;
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
	case -EPERM:
		return "is a symbolic link that another user could change: give "
		       "the link, its target and their directories to root or the "
		       "user that iserd runs as, and use chmod go-w";
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

/* Kubernetes lets a user other than root read a secret by the group of the pod
 * (fsGroup). */
static bool is_of_own_group(const struct stat *st)
{
	gid_t all[1024];
	int n = getgroups(ARRAY_LEN(all), all);

	if (st->st_uid != 0 || st->st_gid == 0)
		return false;
	for (int i = 0; i < n; i++)
		if (all[i] == st->st_gid)
			return true;
	return st->st_gid == getegid();
}

const char *private_complaint(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (!private_owner_ok(st))
		return "belongs to another user; chown it to the user that "
		       "iserd runs as";
	if ((st->st_mode & 077) == 040 &&
	    (is_credential(st) || is_of_own_group(st)))
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
