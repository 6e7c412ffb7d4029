/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mr.h: memory regions and their STags (RFC 5040 §7, RFC 5042 §6): the memory
 * that a peer may read or write. An STag is valid on the stream for which it
 * was registered, with the rights of its registration, until it is invalidated.
 *
 * Threads: a table and its regions belong to one worker.
 */
#ifndef RCAP_IWARP_MR_H
#define RCAP_IWARP_MR_H

#include "base/bufv.h"
#include "rcap/iwarp/rdmap.h"

#define MR_REMOTE_READ	 0x1u
#define MR_REMOTE_WRITE	 0x2u
#define MR_REMOTE_ATOMIC 0x4u
#define MR_UNDEFINED	 0x8u /* as RCAP_UNDEFINED */

struct mr_table;

/* mr_table_new makes a table of max regions (2^24 - 1 at most). seed: of the
 * key bytes; random. NULL: out of memory, or max out of range. */
struct mr_table *mr_table_new(uint32_t max, uint32_t seed);
void mr_table_free(struct mr_table *t);

/*
 * mr_register makes memory accessible as [base, base + memory.len) on the
 * stream, with MR_* rights. The table borrows memory, including its iovec
 * array, until mr_invalidate. Returns 0 with *stag, ERR_BUSY (the table is
 * full), ERR_RANGE (the range wraps, or is empty), or ERR_NOMEM.
 */
int mr_register(struct mr_table *t, const void *stream,
		const struct bufv *memory, uint64_t base, unsigned rights,
		uint32_t *stag);

/*
 * mr_find checks an access of the peer before a byte moves: the STag with its
 * key, the stream, the right, the range. Returns 0 with *memory and *off, the
 * place of `to` in it; else a TERM_RDMAP_... reason, negative. len 0 always
 * succeeds (RFC 5041 §7.1: zero-length operations check no STag).
 */
int mr_find(const struct mr_table *t, const void *stream, uint32_t stag,
	    uint64_t to, uint64_t len, unsigned right,
	    const struct bufv **memory, size_t *off);

/* mr_memory: the memory of the stream's region; NULL: no such region. */
const struct bufv *mr_memory(const struct mr_table *t, const void *stream,
			     uint32_t stag);

/* mr_may_change: the peer may also write this region. */
bool mr_may_change(const struct mr_table *t, uint32_t stag);

/* mr_is_undefined: the stream's region has MR_UNDEFINED. */
bool mr_is_undefined(const struct mr_table *t, const void *stream,
		     uint32_t stag);

/* mr_invalidate ends a region for this end: the table no longer uses its
 * memory. ERR_NOT_FOUND: no such STag. */
int mr_invalidate(struct mr_table *t, uint32_t stag);
/* mr_invalidate_remote ends a region for a Send with Invalidate.
 * -TERM_RDMAP_CANT_INVALIDATE: no such region, another stream's, or one without
 * rights of the peer. */
int mr_invalidate_remote(struct mr_table *t, const void *stream, uint32_t stag);
/* mr_invalidate_stream ends all regions of a stream; returns how many. */
unsigned mr_invalidate_stream(struct mr_table *t, const void *stream);

/* mr_term_tagged maps a reason of mr_find to the reason of DDP for a tagged
 * segment, a Write or Read Response (RFC 5041 §7.2). */
uint16_t mr_term_tagged(int reason);

#endif
