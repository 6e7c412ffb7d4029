/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bufpool.h: data buffers of one worker: page-aligned, in powers of two from 4
 * KiB. Returned buffers are cached, as long as they and those in use are within one
 * limit for all sizes together; the least recently used one is unmapped first,
 * whatever its size. So a load that changes between sizes, or that returns all its
 * buffers at once, maps no memory again and again. device/share.h decides which
 * session may have how much. Belongs to one thread.
 */
#ifndef DAEMON_PROCESS_BUFPOOL_H
#define DAEMON_PROCESS_BUFPOOL_H

#include <stdint.h>

#include "base/list.h"

#define BUFPOOL_MIN	4096u
#define BUFPOOL_CLASSES 15 /* 4 KiB .. 64 MiB */

/* Parts of the limit of a worker (device/share.h). One command, with protection
 * information in its data and again beside them, needs less than the reserve. */
#define BUFPOOL_TRANSFER (32u << 20) /* of one command, at most */
#define BUFPOOL_RESERVE	 (BUFPOOL_TRANSFER + BUFPOOL_TRANSFER / 16)
#define BUFPOOL_BURST	 ((size_t)16 << 20)

struct bufpool {
	/* struct spare, which lies in the buffer itself; newest first */
	struct list spare[BUFPOOL_CLASSES], all;
	size_t out, kept; /* bytes in use, bytes that are cached */
	size_t most;
	unsigned period; /* counts bufpool_trim */
	uint64_t maps;	 /* calls of mmap, for tests */
};

/* bufpool_limit returns the bytes of buffers that each of nworkers may have. */
size_t bufpool_limit(unsigned nworkers);
/* bufpool_init: no buffer is cached beyond `most` bytes in use and cached. */
void bufpool_init(struct bufpool *p, size_t most);
/* bufpool_get returns a buffer of at least len bytes (len > 0), to be given
 * back by bufpool_put. NULL: larger than the largest class, or no memory. */
void *bufpool_get(struct bufpool *p, size_t len);
/* bufpool_put takes back buf; len is that of bufpool_get. */
void bufpool_put(struct bufpool *p, void *buf, size_t len);
/* bufpool_trim unmaps the cached buffers that were not used since the call
 * before the last one. */
void bufpool_trim(struct bufpool *p);
/* bufpool_fini unmaps all cached buffers. */
void bufpool_fini(struct bufpool *p);

#endif
