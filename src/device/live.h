/* SPDX-License-Identifier: BSD-2-Clause */
/* live.h: units that appear and go while nexuses exist. */
#ifndef DEVICE_LIVE_H
#define DEVICE_LIVE_H

#include "device/unit/unit.h"

/* dev_lu_arrive gives the nexuses without a map access to the new unit: at once before
 * the first nexus, else soon, so that the caller can still restore its records. On
 * worker 0. */
void dev_lu_arrive(struct dev_lu *lu);
/* dev_lu_free closes the backstore of the unit and frees the unit, which nothing
 * holds. */
void dev_lu_free(struct dev_lu *lu);

#endif
