/* SPDX-License-Identifier: BSD-2-Clause */
/* seen_end.h: records the end of each command of a fuzz target of the device
 * for flips.h; the functions replace those that check the end. */
#ifndef TESTS_DEVICE_SEEN_END_H
#define TESTS_DEVICE_SEEN_END_H

#include "fuzz/device/fixture_fuzz.h"
#include "unit/flips.h"

static inline void see_end(const struct dev_fixture *r, int status)
{
	const struct dev_task *t = &r->task;

	see_number((uint64_t)(int64_t)status);
	see(t->sense.data, t->sense.len);
	see_number(t->total.in);
	see_number(t->total.out);
	see(r->in, r->in_len);
}

static inline void seen_end(const struct dev_fixture *r, int status,
			    uint32_t in, uint32_t out)
{
	see_end(r, status);
	check_end(r, status, in, out);
}

static inline void seen_our_end(const struct dev_fixture *r, int status,
				uint32_t in, uint32_t out)
{
	see_end(r, status);
	check_our_end(r, status, in, out);
}

#define check_end     seen_end
#define check_our_end seen_our_end

#endif
