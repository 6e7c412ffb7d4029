/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sg.h: SCSI devices of this machine through SG_IO of Linux. The event loop waits
 * for the requests of /dev/sgN. For /dev/bsg/H:C:T:L and for disks, CD drives and
 * tapes with names of their own, helper threads wait in ioctl(SG_IO).
 */
#ifndef DEVICE_SG_SG_H
#define DEVICE_SG_SG_H

#include <stddef.h>

#include "device/pass.h"
#include "io/io.h"

struct sg_config {
	const char *path;
	bool read_only;
	bool shared;	  /* open the device although the system uses it */
	unsigned timeout; /* seconds until the kernel aborts a command */
	/* loops[i] is worker i's; borrowed, must outlive the device. */
	struct io_loop *const *loops;
	unsigned nloops;
	/* Called once, on any worker, after a command failed because the device
	 * was removed. */
	void (*gone)(void *arg, const char *path);
	void *arg;
};

/*
 * sg_open opens cfg->path. The caller ends the device with pass_ops.close. On
 * failure sg_open returns NULL and writes the error text, with the path, the cause
 * and the remedy, to why[] (size bytes).
 */
struct pass *sg_open(const struct sg_config *cfg, char *why, size_t size);
/* sg_look returns whether sg_open would open cfg->path, as far as that can be said without
 * the right to; else why[] has the error text. Without loops. */
bool sg_look(const struct sg_config *cfg, char *why, size_t size);

#endif
