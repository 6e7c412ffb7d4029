/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mr.h: memory regions and their STags (RFC 5040 §7, RFC 5042 §6): what a peer
 * may read or write, and where. An STag is worth something only on the stream
 * it was made for, with the rights it was made with, until it is invalidated.
 *
 * Threads: a table and everything behind it belongs to one worker.
 */
#ifndef RCAP_IWARP_MR_H
#define RCAP_IWARP_MR_H

#include "base/bufv.h"
#include "rcap/iwarp/rdmap.h"

#define MR_REMOTE_READ	 0x1u
#define MR_REMOTE_WRITE	 0x2u
#define MR_REMOTE_ATOMIC 0x4u
#define MR_UNDEFINED	 0x8u /* see RCAP_UNDEFINED */

struct mr_table;

/* mr_table_new: at most max regions at once (2^24 - 1 at the most). seed makes
 * the key bytes hard to guess. NULL: out of memory. */
struct mr_table *mr_table_new(uint32_t max, uint32_t seed);
void mr_table_free(struct mr_table *t);

/*
 * mr_register makes memory (borrowed until mr_invalidate, iovec array too)
 * reachable as [base, base + memory.len) for the stream, with MR_REMOTE_*
 * rights. Returns 0 with *stag, ERR_BUSY (the table is full), or ERR_RANGE
 * (the range wraps, or is empty).
 */
int mr_register(struct mr_table *t, const void *stream,
		const struct bufv *memory, uint64_t base, unsigned rights,
		uint32_t *stag);

/*
 * mr_find checks a peer's access before a byte moves: the STag with its key,
 * the stream, the right, the range. Returns 0 with *memory and *off, the place
 * of `to` in it; else a TERM_RDMAP_... reason, negative. len 0 is always fine
 * (RFC 5041 §7.1: zero-length operations check no STag).
 */
int mr_find(const struct mr_table *t, const void *stream, uint32_t stag,
	    uint64_t to, uint64_t len, unsigned right,
	    const struct bufv **memory, size_t *off);

/* mr_memory: what the stream's region holds; NULL: no such region of it. */
const struct bufv *mr_memory(const struct mr_table *t, const void *stream,
			     uint32_t stag);

/* mr_may_change: the peer itself can change what it may read there. */
bool mr_may_change(const struct mr_table *t, uint32_t stag);

/* mr_is_undefined: the stream's region was registered with MR_UNDEFINED. */
bool mr_is_undefined(const struct mr_table *t, const void *stream,
		     uint32_t stag);

/* mr_invalidate, from our side: the memory is its owner's again. ERR_NOT_FOUND:
 * no such STag. */
int mr_invalidate(struct mr_table *t, uint32_t stag);
/* mr_invalidate_remote: a Send with Invalidate of the stream named it.
 * -TERM_RDMAP_CANT_INVALIDATE: not this stream's, not there, or never meant
 * for the peer (no rights). */
int mr_invalidate_remote(struct mr_table *t, const void *stream, uint32_t stag);
/* mr_invalidate_stream: the stream is gone; returns how many it had. */
unsigned mr_invalidate_stream(struct mr_table *t, const void *stream);

/* mr_term_tagged: the reason of mr_find as DDP names it for a tagged segment
 * (RFC 5041 §7.2), where the segment is a Write or a Read Response. */
uint16_t mr_term_tagged(int reason);

#endif
