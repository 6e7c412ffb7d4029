/* SPDX-License-Identifier: BSD-2-Clause */
/* standard.c: descriptors 0 to 2 at the start and at the end of a tool. */
#include "tools/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void standard_open(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int standard_end(const char *program, int code, int on_failure)
{
	bool lost = ferror(stdout);

	errno = 0;
	lost |= fflush(stdout) != 0;
	if (!lost)
		return code;
	if (!errno) { /* an earlier write failed: its reason is that of another */
		clearerr(stdout);
		(void)(putchar('\n') == EOF || fflush(stdout));
	}
	fprintf(stderr, "%s: standard output: cannot write%s%s\n", program,
		errno ? ": " : "", errno ? strerror(errno) : "");
	return code ? code : on_failure;
}
