/* SPDX-License-Identifier: BSD-2-Clause */
/* hash.h: FNV-1a with 64 bits. Collisions can be planned, unless the first value of h is a secret. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN 0xcbf29ce484222325u

/* hash_add returns the hash of what h is the hash of (HASH_BEGIN: of nothing), and n
 * more bytes. */
static inline uint64_t hash_add(uint64_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

#endif
