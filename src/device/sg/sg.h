/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sg.h: SCSI devices of this machine, by Linux' SG_IO: /dev/sgN (by requests
 * that the event loop waits for), /dev/bsg/H:C:T:L, SCSI disks, CD drives and
 * tapes by their own names (by calls on helper threads).
 */
#ifndef DEVICE_SG_SG_H
#define DEVICE_SG_SG_H

#include <stddef.h>

#include "device/pass.h"
#include "io/io.h"

struct sg_config {
	const char *path;
	bool read_only;
	bool shared;	  /* although the system uses it, too */
	unsigned timeout; /* seconds until the kernel gives a command up */
	/* loops[i] is worker i's; borrowed, must outlive the device. */
	struct io_loop *const *loops;
	unsigned nloops;
	/* Called once when the device is found to be gone; any worker. */
	void (*gone)(void *arg, const char *path);
	void *arg;
};

/*
 * sg_open opens path. On failure returns NULL, and why[] (size bytes) says in
 * one sentence what is wrong with which file and what to do.
 */
struct pass *sg_open(const struct sg_config *cfg, char *why, size_t size);

#endif
