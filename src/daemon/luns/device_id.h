/* SPDX-License-Identifier: BSD-2-Clause */
/* device_id.h: the identity of a block device, which does not depend on its
 * name. */
#ifndef DAEMON_LUNS_DEVICE_ID_H
#define DAEMON_LUNS_DEVICE_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* device_id writes 16 bytes that are derived from the serial number or the like
 * of the device, and from where its partition begins. False: the kernel knows
 * no such identity. */
bool device_id(dev_t rdev, uint8_t id[16]);

/* device_id_at does the same for a folder like /sys/dev/block/8:1. */
bool device_id_at(const char *folder, uint8_t id[16]);

#endif
