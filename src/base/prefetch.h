/* SPDX-License-Identifier: BSD-2-Clause */
/* prefetch.h: memory that will soon be needed is brought into the cache. */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

/* prefetch_line: gcc 12 removes a function that does nothing but __builtin_prefetch. */
static inline void prefetch_line(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p);
#endif
}

/* prefetch brings the len bytes at p into the cache nearest to this CPU, without waiting
 * for them. */
static inline void prefetch(const void *p, size_t len)
{
	const uint8_t *line = p;

	for (size_t i = 0; i < len; i += CACHE_LINE)
		prefetch_line(line + i);
}

#endif
