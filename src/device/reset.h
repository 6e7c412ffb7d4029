/* SPDX-License-Identifier: BSD-2-Clause */
/* reset.h: the reset of a unit on one worker. */
#ifndef DEVICE_RESET_H
#define DEVICE_RESET_H

#include "device/unit/unit.h"

/* dev_reset_on resets what the worker has of the unit, except for reservations and ACAs,
 * and establishes BUS DEVICE RESET for its nexuses. */
void dev_reset_on(struct dev_lu *lu, unsigned worker);

#endif
