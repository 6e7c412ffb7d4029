/* SPDX-License-Identifier: BSD-2-Clause */
/* process.h: what the kernel knows about this process, from /proc. */
#ifndef DAEMON_METRICS_PROCESS_H
#define DAEMON_METRICS_PROCESS_H

#include <stdint.h>

struct process {
	double cpu;		 /* seconds of all threads, user and system */
	uint64_t resident, size; /* bytes of memory */
	unsigned fds, max_fds;	 /* descriptors; 0: not known */
	double start;		 /* seconds since 1970 */
};

/* process_read fills *p; members that /proc does not have are 0. */
void process_read(struct process *p);

#endif
