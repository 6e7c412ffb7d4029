/* SPDX-License-Identifier: BSD-2-Clause */
/* seen_role.h: records the up-calls of a datamover to its role (sim/dm_roles.h)
 * for flips.h, in place of the function that ends the role. */
#ifndef TESTS_DATAMOVER_SEEN_ROLE_H
#define TESTS_DATAMOVER_SEEN_ROLE_H

#include "sim/dm_roles.h"
#include "unit/flips.h"

#define SEEN_DISK 16384u

static void see_role_fini(struct fake_role *r)
{
	see_number(r->finished);
	see_number(r->aborted);
	see_number(r->errors);
	see_number((uint64_t)(int64_t)r->terminate_err);
	see_number((uint64_t)(int64_t)r->last_error);
	for (unsigned i = 0; i < FAKE_TASKS; i++) {
		see_number((uint64_t)(int64_t)r->task[i].status);
		see_number(r->task[i].sense_len);
	}
	if (r->disk)
		see(r->disk, SEEN_DISK);
	fake_role_fini(r);
}

#define fake_role_fini see_role_fini

#endif
