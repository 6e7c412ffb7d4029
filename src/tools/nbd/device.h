/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h: the NBD devices of the Linux kernel, /dev/nbdN, by generic netlink
 * (linux/nbd-netlink.h). All functions need the module nbd, and CAP_SYS_ADMIN.
 * The kernel may send requests from within these calls and wait for the receiver:
 * a process that serves the device calls them in a child process.
 */
#ifndef TOOLS_NBD_DEVICE_H
#define TOOLS_NBD_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define NBD_DEVICE_SOCKETS 16

/* NBD_FLAG_ of linux/nbd.h, whose struct nbd_request is not that of proto.h. */
enum nbd_device_flag {
	NBD_DEVICE_HAS_FLAGS = 1 << 0,
	NBD_DEVICE_READ_ONLY = 1 << 1,
	NBD_DEVICE_FLUSH = 1 << 2,
	NBD_DEVICE_FUA = 1 << 3,
	NBD_DEVICE_TRIM = 1 << 5,
	NBD_DEVICE_MULTI_CONN = 1 << 8,
};

struct nbd_device {
	int index;     /* N; -1 for nbd_device_connect: the first unused one */
	uint64_t size; /* bytes */
	uint32_t block_size;
	/* seconds: until a request without a reply is sent again, and for which
	 * requests wait while all sockets are dead; 0: none */
	uint64_t timeout, dead_timeout;
	uint16_t flags;		/* enum nbd_device_flag */
	const char *identifier; /* of the unit; borrowed */
	int sockets[NBD_DEVICE_SOCKETS];
	unsigned nsockets;
};

/* nbd_device_check returns 0 if this kernel has NBD devices, else an exit code with
 * the reason printed. */
int nbd_device_check(void);
/* nbd_device_connect makes a device that sends its requests to the sockets, of which
 * the kernel takes references, and sets d->index. Returns 0 or an errno value: EBUSY,
 * the device is attached already. */
int nbd_device_connect(struct nbd_device *d);
/* nbd_device_revive replaces dead sockets of an attached device by d->sockets. Returns
 * 0 or an errno value: ENOSPC, fewer sockets are dead; EINVAL, the device is not
 * attached, or belongs to a unit of another identifier. */
int nbd_device_revive(const struct nbd_device *d);
/* nbd_device_resize gives the device the size d->size. Returns 0 or an errno value. */
int nbd_device_resize(const struct nbd_device *d);
/* nbd_device_disconnect detaches a device: its sockets get DISC, and requests in
 * progress fail. Returns 0 or an errno value. */
int nbd_device_disconnect(int index);
/* nbd_device_index returns N of "/dev/nbdN", or -1. */
int nbd_device_index(const char *path);
/* nbd_device_server returns the process that attached the device, 0: unknown because
 * of a PID namespace, -1: the device is not attached. */
long nbd_device_server(int index);

#endif
