/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cold.h: COLD marks a function that few commands need, such as one that reports an
 * error. The compiler does not make it a part of its callers, which would save
 * registers and guard their stacks for it in each call. ALWAYS_INLINE marks one that
 * each command needs, and which the compiler would make a function of its own.
 */
#ifndef BASE_COLD_H
#define BASE_COLD_H

#define COLD	      __attribute__((cold, noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

#endif
