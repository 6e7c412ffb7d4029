/* SPDX-License-Identifier: BSD-2-Clause */
/* unix_socket.c: listening at a Unix socket of the file system. */
#include "daemon/serve/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/process/address_wait.h"

#define FOLDER_MODE 0750 /* as packaging/systemd/tmpfiles.conf */

/* Removes a socket that refuses connections: an iserd that crashed left it. */
static bool remove_stale(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;
	bool stale;

	if (fd < 0)
		return false;
	stale = !lstat(sa->sun_path, &st) && S_ISSOCK(st.st_mode) &&
		connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	return stale && !unlink(sa->sun_path);
}

/* Makes the directory of a socket, for the user that iserd becomes. */
static bool make_folder(const struct daemon *d, const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)] = "";
	size_t len = (size_t)(strrchr(path, '/') - path);
	int fd = -1;
	bool made;

	memcpy(folder, path, len);
	made = !mkdir(folder, FOLDER_MODE);
	if (made)
		fd = open(folder,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	made = fd >= 0 && !fchmod(fd, FOLDER_MODE) &&
	       (d->user.uid == geteuid() ||
		!fchown(fd, d->user.uid, d->user.gid));
	if (fd >= 0)
		close(fd);
	return made;
}

/* Binds fd, which makes the socket with the permissions of the umask. */
static bool bind_socket(const struct daemon *d, int fd,
			const struct sockaddr_un *sa)
{
	unsigned waits = ADDRESS_WAITS;
	const struct sockaddr *at = (const struct sockaddr *)sa;
	int err = bind(fd, at, sizeof(*sa));

	if (err && errno == ENOENT && strchr(sa->sun_path, '/') &&
	    make_folder(d, sa->sun_path))
		err = bind(fd, at, sizeof(*sa));
	while (err && errno == EADDRINUSE &&
	       (remove_stale(sa) || address_wait(&waits, EADDRINUSE)))
		err = bind(fd, at, sizeof(*sa));
	return !err;
}

static const char *advice(int err)
{
	switch (err) {
	case EADDRINUSE:
		return "; another iserd has it";
	case ENOENT:
	case ENOTDIR:
		return "; make its directory first";
	case EACCES:
	case EPERM:
	case EROFS:
		return "; iserd must be permitted to write in its directory";
	default:
		return "";
	}
}

int unix_socket_listen(const struct daemon *d, const char *option,
		       const char *path, mode_t mode)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0777 & ~mode);
	bool good;

	memcpy(sa.sun_path, path, strlen(path) + 1);
	good = fd >= 0 && bind_socket(d, fd, &sa);
	umask(mask);
	if (good && !listen(fd, 64))
		return fd;
	say("%s %s: %s%s", option, path, strerror(errno), advice(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}
