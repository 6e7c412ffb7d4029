/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xtime.h: time in the protocol rooms: nanoseconds of a monotonic clock. The
 * caller passes the time in; protocol rooms do not read a clock.
 */
#ifndef BASE_XTIME_H
#define BASE_XTIME_H

#include <stdint.h>

typedef int64_t xtime;

#define XTIME_US    ((xtime)1000)
#define XTIME_MS    ((xtime)1000000)
#define XTIME_S	    ((xtime)1000000000)
#define XTIME_NEVER INT64_MAX /* no deadline */

#endif
