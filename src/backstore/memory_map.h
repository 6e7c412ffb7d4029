/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory_map.h: the written pages of a memory store. A page that was never
 * written must not even be read: reading a hole of shared memory allocates a
 * page, so that reading an empty disk would use up the memory of the machine.
 *
 * Any worker may call all functions. A bit is set before its page is written
 * and cleared before the page is freed: a page whose bit is clear reads as
 * zeros, whatever its memory holds.
 */
#ifndef BACKSTORE_MEMORY_MAP_H
#define BACKSTORE_MEMORY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_PAGE_SHIFT 12
#define MEMORY_PAGE	  ((uint64_t)1 << MEMORY_PAGE_SHIFT)

struct memory_map;

enum memory_state {
	MEMORY_WRITTEN,
	MEMORY_UNWRITTEN,
	MEMORY_MIXED
};

/* memory_map_new: a map of size bytes, none written. NULL: out of memory. */
struct memory_map *memory_map_new(uint64_t size);
void memory_map_free(struct memory_map *m);
/* memory_map_set: before a write to [off, off + len). */
void memory_map_set(struct memory_map *m, uint64_t off, uint64_t len);
/* memory_map_clear: off and len are whole pages. */
void memory_map_clear(struct memory_map *m, uint64_t off, uint64_t len);
/* memory_map_state returns the state of the pages of [off, off + len), len > 0. */
enum memory_state memory_map_state(const struct memory_map *m, uint64_t off,
				   uint64_t len);
/* memory_map_run: *written: the page of the byte at off is written; returns how
 * many bytes from off on, at most len, are in the same state. */
uint64_t memory_map_run(const struct memory_map *m, uint64_t off, uint64_t len,
			bool *written);

#endif
