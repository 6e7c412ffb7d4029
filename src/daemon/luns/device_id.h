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
 * no such identity. (For files of protection information.) */
bool device_id(dev_t rdev, uint8_t id[16]);

/* device_id_at does the same for a folder like /sys/dev/block/8:1. */
bool device_id_at(const char *folder, uint8_t id[16]);

enum device_names {
	DEVICE_NAMELESS,
	DEVICE_UNIQUE,	  /* no other device has the text */
	DEVICE_OF_SERIES, /* another machine may have a device with this text */
	DEVICE_LOOP,	  /* a loop device: its file has the identity */
};

#define DEVICE_TEXT 600

/*
 * device_name writes to text by what the kernel knows the device, the begin of its
 * partition first: "2048 naa.5000c500a1b2c3d4"; of a loop device only that begin, or
 * nothing. Which names are unique, kind by kind, is in device_id.c. device_name_at does it
 * for a folder like /sys/dev/block/8:1.
 */
enum device_names device_name(dev_t rdev, char text[DEVICE_TEXT]);
enum device_names device_name_at(const char *folder, char text[DEVICE_TEXT]);

#endif
