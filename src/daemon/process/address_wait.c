/* SPDX-License-Identifier: BSD-2-Clause */
/* address_wait.c: waiting at the start for an address that a killed process still
 * has. */
#include "daemon/process/address_wait.h"

#include <errno.h>
#include <time.h>

bool address_wait(unsigned *waits, int err)
{
	static const struct timespec pause = { .tv_nsec = 25000000 };

	if ((err != EADDRINUSE && err != -EADDRINUSE) || !*waits)
		return false;
	--*waits;
	nanosleep(&pause, NULL);
	return true;
}
