/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bufpool.h: data buffers of one worker: page-aligned, in powers of two from
 * 4 KiB, kept for reuse up to a limit. Belongs to one thread.
 */
#ifndef DAEMON_BUFPOOL_H
#define DAEMON_BUFPOOL_H

#include <stdbool.h>
#include <stddef.h>

#define BUFPOOL_MIN	4096u
#define BUFPOOL_CLASSES 15 /* 4 KiB .. 64 MiB */
#define BUFPOOL_SMALL	65536u

struct bufpool {
	void *spare[BUFPOOL_CLASSES]; /* linked through their first bytes */
	size_t out, kept;	      /* bytes handed out, bytes in spare */
	size_t max_out, max_kept;
	bool used; /* since the last bufpool_trim */
};

void bufpool_init(struct bufpool *p, size_t max_out, size_t max_kept);
/* bufpool_get: at least len bytes (len > 0). NULL: beyond max_out, larger than
 * the largest class, or no memory. The last quarter of max_out is kept for
 * small buffers, so that one peer's large writes without data can't starve
 * everybody's commands. */
void *bufpool_get(struct bufpool *p, size_t len);
/* bufpool_put: len as in the get. */
void bufpool_put(struct bufpool *p, void *buf, size_t len);
/* bufpool_trim gives spare buffers back to the system unless the pool was
 * used since the last call. */
void bufpool_trim(struct bufpool *p);
void bufpool_fini(struct bufpool *p);

#endif
