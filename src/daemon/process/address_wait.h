/* SPDX-License-Identifier: BSD-2-Clause */
/* address_wait.h: waiting at the start for an address that a killed process still
 * has. */
#ifndef DAEMON_PROCESS_ADDRESS_WAIT_H
#define DAEMON_PROCESS_ADDRESS_WAIT_H

#include <stdbool.h>

/* ADDRESS_WAITS is how often the start waits for one address: 1 second in all. */
enum {
	ADDRESS_WAITS = 40
};

/* address_wait sleeps 25 ms, takes one from *waits, and returns true; with err
 * other than EADDRINUSE or -EADDRINUSE, or *waits of 0, it returns false at once.
 *
 * Linux closes the sockets of a killed process some milliseconds after its end if
 * io_uring had requests for them in progress. An iserd that replaces a killed one
 * must not fail because of that. Do not wait in a thread that serves. */
bool address_wait(unsigned *waits, int err);

#endif
