/* SPDX-License-Identifier: BSD-2-Clause */
/* private.c: opens and checks files that only iserd may read. */
#include "daemon/luns/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uid_t user = (uid_t)-1;

void private_user(uid_t uid)
{
	user = uid;
}

int private_open(int dir, const char *name, int flags, mode_t mode)
{
	int fd = openat(dir, name,
			flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			mode);

	return fd < 0 ? -errno : fd;
}

const char *private_refusal(int err)
{
	return err == -ELOOP ? "is a symbolic link; give the file itself"
			     : strerror(-err);
}

bool private_owner_ok(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == user;
}

const char *private_complaint(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (!private_owner_ok(st))
		return "belongs to another user; chown it to the user that "
		       "iserd runs as";
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
