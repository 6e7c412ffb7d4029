/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: the interface between the files of device/sg.
 *   open.c   open and identify a device; error texts
 *   send.c   queue, send and end requests
 *   async.c  /dev/sgN: write() sends a command, read() returns its result
 *   call.c   ioctl(SG_IO) on helper threads; resets
 */
#ifndef DEVICE_SG_INTERNAL_H
#define DEVICE_SG_INTERNAL_H

#include <assert.h>
#include <linux/bsg.h>
#include <scsi/sg.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "device/sg/sg.h"

/* SG_MAX_QUEUE of the kernel: commands of one descriptor of /dev/sgN. */
#define SG_FD_QUEUE 16u
#define SG_FDS	    2u /* descriptors of one worker */
#define SG_CALLS    8u /* helper threads that one device may use per worker */

enum sg_kind {
	SG_ASYNC, /* /dev/sgN */
	SG_V3,	  /* ioctl(SG_IO) with struct sg_io_hdr */
	SG_V4,	  /* the same with struct sg_io_v4: /dev/bsg */
};

struct sg_device;
struct sg_lane;

struct sg_port {
	struct io_watch watch; /* fd < 0: none */
	struct sg_lane *lane;
	unsigned inflight;
	bool hung_up; /* the device was removed; `ask` reads pending results */
	struct io_timer ask;
};

/* The part of a device that belongs to one worker. */
struct sg_lane {
	struct sg_device *dev;
	struct io_loop *loop;
	struct list waiting; /* sg_step.link */
	unsigned inflight;
	bool pumping;
	struct sg_port ports[SG_FDS];
	struct sg_reset *reset;
};

/* A reset on a helper thread. The reset may end after the device was closed: an
 * orphan then frees itself. */
struct sg_reset {
	struct io_file_op op;
	bool in_progress, orphan;
};

/* Every worker reads a device. After open only the atomic members change. */
struct sg_device {
	struct pass pass;
	int fd;	   /* for ioctl(SG_IO) */
	int guard; /* an exclusive descriptor of the disk: blocks mounts; or -1 */
	_Atomic enum sg_kind kind;
	_Atomic bool gone;
	unsigned room; /* commands in flight that one lane may have */
	void (*say_gone)(void *arg, const char *path);
	void *arg;
	unsigned nlanes;
	struct sg_lane *lanes;
};

/* The state of a request in this room; in pass_req.priv. */
struct sg_step {
	struct list link; /* sg_lane.waiting */
	struct pass_req *req;
	struct sg_lane *lane;
	struct sg_port *port; /* that sent the command; NULL: a helper thread */
	struct io_file_op op;
	union {
		struct sg_io_hdr v3;
		struct sg_io_v4 v4;
	} io;
};

static_assert(sizeof(struct sg_step) <= PASS_REQ_PRIVATE, "fits a request");

static inline struct sg_step *sg_step_of(struct pass_req *r)
{
	return (struct sg_step *)(void *)r->priv;
}

/* ---- send.c ---- */

extern const struct pass_ops sg_pass_ops;

/* sg_pump sends the waiting requests in order until l->dev->room are in flight. */
void sg_pump(struct sg_lane *l);
/* sg_ended completes the request of s with the SCSI status, the host status of the
 * kernel and the octets that were not moved. */
void sg_ended(struct sg_step *s, unsigned status, unsigned host,
	      unsigned sense_len, int64_t resid);
/* sg_failed completes the request of s, which the kernel refused with -Exxx. */
void sg_failed(struct sg_step *s, int err);
/* sg_fill_v3 fills s->io.v3 from the request of s. */
void sg_fill_v3(struct sg_step *s);

/* ---- async.c ---- */

/* sg_port_free returns the descriptor with the fewest commands in flight; NULL:
 * every descriptor is full. */
struct sg_port *sg_port_free(struct sg_lane *l);
/* sg_port_send sends the command of s; -Exxx: the command was not sent. */
int sg_port_send(struct sg_port *port, struct sg_step *s);
/* sg_ports_close closes the descriptors of l. No request is in flight. */
void sg_ports_close(struct sg_lane *l);

/* ---- call.c ---- */

/* sg_call executes the command of s on a helper thread. */
void sg_call(struct sg_step *s);
/* sg_fill_v4 fills s->io.v4 from the request of s. */
void sg_fill_v4(struct sg_step *s);
/* sg_reset begins a reset of the device unless a reset of l is in progress. */
void sg_reset(struct sg_lane *l);
/* sg_reset_free frees r, or lets a reset in progress free r at its end. r may be
 * NULL. */
void sg_reset_free(struct sg_reset *r);

#endif
