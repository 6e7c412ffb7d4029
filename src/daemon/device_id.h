/* SPDX-License-Identifier: BSD-2-Clause */
/* device_id.h: which block device it is, whatever its name is today. */
#ifndef DAEMON_DEVICE_ID_H
#define DAEMON_DEVICE_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* device_id: 16 bytes of what the kernel knows of the device's own identity
 * (and where in it the partition begins); false: it knows nothing. */
bool device_id(dev_t rdev, uint8_t id[16]);

/* device_id_at: the same of a folder like /sys/dev/block/8:1. */
bool device_id_at(const char *folder, uint8_t id[16]);

#endif
