/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory_map.h: which pages of a memory store hold anything. A page that was
 * never written must not even be read: a read of a hole of shared memory
 * takes a page for it, and an empty disk would fill the machine by being
 * looked at.
 *
 * Any worker may call any of it: a bit is set before its page is written and
 * cleared before it is given back, so a page whose bit is clear reads as
 * zeros whatever it holds.
 */
#ifndef BACKSTORE_MEMORY_MAP_H
#define BACKSTORE_MEMORY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_PAGE_SHIFT 12
#define MEMORY_PAGE	  ((uint64_t)1 << MEMORY_PAGE_SHIFT)

struct memory_map;

/* memory_map_new: for size bytes, nothing written yet. NULL: no memory. */
struct memory_map *memory_map_new(uint64_t size);
void memory_map_free(struct memory_map *m);
/* memory_map_set: [off, off + len) is about to be written. */
void memory_map_set(struct memory_map *m, uint64_t off, uint64_t len);
/* memory_map_clear: off and len are whole pages. */
void memory_map_clear(struct memory_map *m, uint64_t off, uint64_t len);
/* memory_map_run: is the byte at off in a written page, and how many bytes
 * from off on, at most len, are alike? */
uint64_t memory_map_run(const struct memory_map *m, uint64_t off, uint64_t len,
			bool *written);

#endif
