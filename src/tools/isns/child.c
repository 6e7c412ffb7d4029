/* SPDX-License-Identifier: BSD-2-Clause */
/* child.c: a request to the iSNS server in a process of its own. */
#include "tools/isns/child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exits with 0, or with 1 and the reason written to fd. */
static _Noreturn void act(isns_request *request, void *arg, int fd)
{
	const char *why;

	/* libisns reports each attempt; the caller gets the reason */
	if (!freopen("/dev/null", "w", stderr))
		_exit(1);
	why = request(arg);
	if (why)
		(void)!write(fd, why, strnlen(why, ISNS_WHY - 1));
	_exit(why != NULL);
}

const char *isns_child_run(isns_request *request, void *arg, char why[ISNS_WHY])
{
	int ends[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(ends))
		return "no descriptor for a pipe is left";
	pid = fork();
	if (!pid)
		act(request, arg, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return "no process can be made for the request";
	}
	do
		n = read(ends[0], why, ISNS_WHY - 1);
	while (n < 0 && errno == EINTR);
	why[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	return n > 0 ? why : "the request ended without a response";
}
