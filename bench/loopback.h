/* SPDX-License-Identifier: BSD-2-Clause */
/* loopback.h: functions for the programs that measure plain sockets. */
#ifndef BENCH_LOOPBACK_H
#define BENCH_LOOPBACK_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror(errno));
	exit(1);
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* pin binds this thread to a CPU, unless cpu is negative. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("pinning a thread");
}

/* must_alloc returns whole pages that the kernel has already mapped. */
static inline uint8_t *must_alloc(size_t size)
{
	uint8_t *p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

	if (!p)
		fail("memory");
	memset(p, 1, size);
	return p;
}

/* make_pair makes a TCP connection of this process with itself; fd[0] is the
 * accepting end. */
static inline void make_pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || fd[1] < 0 || bind(l, (struct sockaddr *)&a, len) ||
	    listen(l, 1) || getsockname(l, (struct sockaddr *)&a, &len) ||
	    connect(fd[1], (struct sockaddr *)&a, len))
		fail("loopback");
	fd[0] = accept(l, NULL, NULL);
	if (fd[0] < 0)
		fail("accept");
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(l);
}

#endif
