/* SPDX-License-Identifier: BSD-2-Clause */
/* unix_socket.c: listening at a Unix socket of the file system. */
#include "daemon/unix_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/address_wait.h"
#include "daemon/say.h"

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
		return "; iserd must be permitted to write in its directory";
	default:
		return "";
	}
}

int unix_socket_listen(const char *option, const char *path, mode_t mode)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0777 & ~mode); /* bind makes it with this mode */
	unsigned waits = ADDRESS_WAITS;
	int err;

	memcpy(sa.sun_path, path, strlen(path) + 1);
	err = fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	while (err && fd >= 0 && errno == EADDRINUSE &&
	       (remove_stale(&sa) || address_wait(&waits, EADDRINUSE)))
		err = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	umask(mask);
	if (!err && !listen(fd, 64))
		return fd;
	say("%s %s: %s%s", option, path, strerror(errno), advice(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}
