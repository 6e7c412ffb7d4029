/* SPDX-License-Identifier: BSD-2-Clause */
/* secret.c: the secrets of CHAP in the environment and in files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "iscsi/chap.h"
#include "lib/internal.h"

#define LINE_END_MAX 2 /* "\r\n" */

static const char *complaint_of(const char *text, size_t n, size_t size)
{
	const char *why = chap_secret_complaint(text, n);

	if (!why && !n)
		why = "is empty; write the secret to it";
	if (!why && n >= size)
		why = "is longer than 127 bytes; give a shorter secret";
	return why;
}

const char *lib_secret_take(char *out, size_t size, const char *text, size_t n)
{
	const char *why = complaint_of(text, n, size);

	if (!why) {
		memcpy(out, text, n);
		out[n] = '\0';
	}
	return why;
}

/* The file belongs to the user or to root, and no other user may read it. */
static const char *check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	if (st.st_uid && st.st_uid != geteuid())
		return "belongs to another user; use chown";
	if (st.st_mode & 077)
		return "others may read or change it; use chmod 600";
	return NULL;
}

const char *lib_secret_read(char *out, size_t size, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char buf[128 + LINE_END_MAX];
	const char *why = fd < 0 ? strerror(errno) : check_file(fd);
	ssize_t n = why ? 0 : read(fd, buf, sizeof(buf));

	if (n < 0)
		why = strerror(errno);
	if (fd >= 0)
		close(fd);
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
		n--;
	if (!why)
		why = lib_secret_take(out, size, buf, (size_t)n);
	explicit_bzero(buf, sizeof(buf));
	return why;
}
