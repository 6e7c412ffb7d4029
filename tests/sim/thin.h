/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thin.h: sanitizers make a simulation ten times slower and see the same code in cases
 * that differ in a number only. There every fourth case runs; in the plain build all do.
 */
#ifndef SIM_THIN_H
#define SIM_THIN_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __has_feature /* clang */
# if __has_feature(address_sanitizer)
#  define SIM_THIN 4u
# endif
#endif
#ifdef __SANITIZE_ADDRESS__ /* gcc */
# define SIM_THIN 4u
#endif
#ifndef SIM_THIN
# define SIM_THIN 1u
#endif

/* sim_leaves_out returns whether case i of a series does not run in this build. */
static inline bool sim_leaves_out(uint64_t i)
{
	return i % SIM_THIN != 0;
}

#endif
