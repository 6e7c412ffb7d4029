/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of device/sg share.
 *   open.c   opening; what the device is; sentences for people
 *   send.c   requests in, their turn, their end
 *   async.c  /dev/sgN: write() sends one, read() brings one back
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

#define SG_FD_QUEUE \
 16u		    /* commands of one descriptor of /dev/sgN: the kernel's */
#define SG_FDS	 2u /* of one worker */
#define SG_CALLS 8u /* helper threads of a worker that one device may keep */

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
	bool hung_up; /* the device went; what is in flight is asked for */
	struct io_timer ask;
};

/* What is one worker's. */
struct sg_lane {
	struct sg_device *dev;
	struct io_loop *loop;
	struct list waiting; /* sg_step.link */
	unsigned inflight;
	bool pumping;
	struct sg_port ports[SG_FDS];
	struct sg_reset *reset;
};

/* A reset, on a helper thread. It may last longer than the device. */
struct sg_reset {
	struct io_file_op op;
	bool under_way, orphan;
};

/* Read-only after open, so that every worker may use it, but for atomics. */
struct sg_device {
	struct pass pass;
	int fd;	   /* for calls */
	int guard; /* keeps the system from using its disk; or -1 */
	_Atomic enum sg_kind kind;
	_Atomic bool gone;
	unsigned room; /* commands of one lane at once */
	void (*say_gone)(void *arg, const char *path);
	void *arg;
	unsigned nlanes;
	struct sg_lane *lanes;
};

/* How far a request is; in pass_req.priv. */
struct sg_step {
	struct list link; /* sg_lane.waiting */
	struct pass_req *req;
	struct sg_lane *lane;
	struct sg_port *port; /* that has it */
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

/* Sends what waits, as far as there is room. */
void sg_pump(struct sg_lane *l);
/* The step is over, in the host's words / with -Exxx. */
void sg_ended(struct sg_step *s, unsigned status, unsigned host,
	      unsigned sense_len, int64_t resid);
void sg_failed(struct sg_step *s, int err);
void sg_fill_v3(struct sg_step *s);

/* ---- async.c ---- */

/* A descriptor with room, or NULL. */
struct sg_port *sg_port_free(struct sg_lane *l);
/* 0, or -Exxx: it was not sent. */
int sg_port_send(struct sg_port *port, struct sg_step *s);
void sg_ports_close(struct sg_lane *l);

/* ---- call.c ---- */

void sg_call(struct sg_step *s);
void sg_fill_v4(struct sg_step *s);
void sg_reset(struct sg_lane *l);
void sg_reset_free(struct sg_reset *r); /* NULL is fine */

#endif
