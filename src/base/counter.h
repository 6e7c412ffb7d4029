/* SPDX-License-Identifier: BSD-2-Clause */
/* counter.h: a number that one thread counts up, and any thread reads. */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdint.h>

/* counter_add adds n; on the thread that counts. */
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* counter_read returns the count; any thread. */
static inline uint64_t counter_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
