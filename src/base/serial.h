/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serial.h: comparison of 32-bit serial numbers (CmdSN, StatSN, MSN) by the
 * arithmetic of RFC 1982, as RFC 7143 §4.2.2.1 requires. Two numbers exactly
 * 2^31 apart have no defined order; sn_lt returns true for both orders of
 * them.
 */
#ifndef BASE_SERIAL_H
#define BASE_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

static inline bool sn_lt(uint32_t a, uint32_t b)
{
	return ((a - b) & 0x80000000u) != 0;
}

static inline bool sn_le(uint32_t a, uint32_t b)
{
	return a == b || sn_lt(a, b);
}

#endif
