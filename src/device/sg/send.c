/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * send.c: requests to a SCSI device of this machine. Each worker may have its part
 * of the queue depth of the device in flight; further requests wait in order. With
 * more commands the kernel could block in write() until a request of its queue is
 * free, and with it the event loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/sg/internal.h"

/* The host status of the kernel (DID_*, include/scsi/scsi_status.h). */
enum did {
	DID_OK = 0x00,
	DID_NO_CONNECT = 0x01,
	DID_BUS_BUSY = 0x02,
	DID_TIME_OUT = 0x03,
	DID_BAD_TARGET = 0x04,
	DID_ABORT = 0x05,
	DID_PARITY = 0x06,
	DID_RESET = 0x08,
	DID_SOFT_ERROR = 0x0b,
	DID_IMM_RETRY = 0x0c,
	DID_REQUEUE = 0x0d,
};

static enum pass_end end_of_host(unsigned host)
{
	switch (host) {
	case DID_OK:
		return PASS_ENDED;
	case DID_NO_CONNECT:
	case DID_BAD_TARGET:
		return PASS_GONE;
	case DID_TIME_OUT:
		return PASS_TIMEOUT;
	case DID_BUS_BUSY:
	case DID_SOFT_ERROR:
	case DID_IMM_RETRY:
	case DID_REQUEUE:
		return PASS_BUSY;
	case DID_ABORT:
	case DID_RESET:
		return PASS_RESET;
	case DID_PARITY:
		return PASS_PARITY;
	default:
		return PASS_FAILED;
	}
}

static enum pass_end end_of_errno(int err)
{
	switch (-err) {
	case ENODEV:
	case ENXIO:
	case ENOENT:
		return PASS_GONE;
	case EAGAIN:
	case EBUSY:
	case EDOM: /* more commands in flight than a descriptor permits */
		return PASS_BUSY;
	case EPERM:
	case EACCES:
		return PASS_FORBIDDEN;
	case EINVAL:
	case EMSGSIZE:
	case EIO: /* more bytes than the queue of the device permits */
		return PASS_REFUSED;
	case ENOMEM:
	case ENOBUFS:
		return PASS_NO_MEMORY;
	case ETIMEDOUT:
		return PASS_TIMEOUT;
	default:
		return PASS_FAILED;
	}
}

/* ---- the end of a request ---- */

static void end_step(struct sg_step *s, enum pass_end end)
{
	struct sg_device *d = s->lane->dev;
	struct sg_lane *l = s->lane;

	l->inflight--;
	if (s->port)
		s->port->inflight--;
	s->req->end = end;
	if (end == PASS_GONE && !atomic_exchange(&d->gone, true) && d->say_gone)
		d->say_gone(d->arg, d->pass.name);
	s->req->done(s->req);
	sg_pump(l);
}

void sg_failed(struct sg_step *s, int err)
{
	s->req->sense_len = 0;
	s->req->resid = s->req->len;
	end_step(s, end_of_errno(err));
}

void sg_ended(struct sg_step *s, unsigned status, unsigned host,
	      unsigned sense_len, int64_t resid)
{
	struct pass_req *r = s->req;

	r->status = (uint8_t)status;
	r->sense_len = (uint8_t)MIN(sense_len, (unsigned)r->sense_max);
	r->resid = resid < 0		     ? 0
		   : resid > (int64_t)r->len ? r->len
					     : (uint32_t)resid;
	/* With a SCSI status the command has ended in the device, whatever the
	 * host status is. */
	end_step(s, status ? PASS_ENDED : end_of_host(host));
}

/* ---- sending ---- */

void sg_fill_v3(struct sg_step *s)
{
	struct pass_req *r = s->req;

	s->io.v3 = (struct sg_io_hdr){
		.interface_id = 'S',
		.dxfer_direction = r->dir == PASS_NONE	? SG_DXFER_NONE
				   : r->dir == PASS_OUT ? SG_DXFER_TO_DEV
							: SG_DXFER_FROM_DEV,
		.cmd_len = r->cdb_len,
		.mx_sb_len = r->sense_max,
		.dxfer_len = r->len,
		.dxferp = r->buf,
		.cmdp = r->cdb,
		.sbp = r->sense,
		.timeout = r->timeout * 1000,
		.usr_ptr = s,
	};
}

/* write() fails with EPERM if the process changed its credentials (--user) since it
 * opened the descriptor. ioctl(SG_IO) has no such check, so the device uses
 * ioctl(SG_IO) from then on. */
static void send_one(struct sg_step *s, struct sg_port *port)
{
	struct sg_device *d = s->lane->dev;
	int err = 0;

	s->lane->inflight++;
	s->port = port;
	if (port) {
		port->inflight++;
		err = sg_port_send(port, s);
		if (err == -EPERM) {
			atomic_store(&d->kind, SG_V3);
			port->inflight--;
			s->port = port = NULL;
		}
	}
	if (!port)
		sg_call(s);
	else if (err)
		sg_failed(s, err);
}

static bool has_room(const struct sg_lane *l, struct sg_port **port)
{
	struct sg_device *d = l->dev;

	*port = NULL;
	if (atomic_load(&d->kind) != SG_ASYNC)
		return l->inflight < MIN(d->room, SG_CALLS);
	*port = sg_port_free((struct sg_lane *)(uintptr_t)l);
	return *port && l->inflight < d->room;
}

void sg_pump(struct sg_lane *l)
{
	struct sg_port *port;

	if (l->pumping) /* The loop below, in a caller, sends the requests. */
		return;
	l->pumping = true;
	while (!list_empty(&l->waiting) && has_room(l, &port)) {
		struct list *n = list_pop_front(&l->waiting);

		send_one(list_entry(n, struct sg_step, link), port);
	}
	l->pumping = false;
}

/* ---- the operations ---- */

static struct sg_device *device_of(struct pass *p)
{
	return container_of(p, struct sg_device, pass);
}

static void submit(struct pass *p, struct pass_req *r)
{
	struct sg_device *d = device_of(p);
	struct sg_step *s = sg_step_of(r);

	assert(r->worker < d->nlanes);
	s->req = r;
	s->lane = &d->lanes[r->worker];
	s->port = NULL;
	r->status = r->sense_len = 0;
	r->resid = 0;
	list_push_back(&s->lane->waiting, &s->link);
	sg_pump(s->lane);
}

static bool withdraw(struct pass *p, struct pass_req *r)
{
	struct sg_step *s = sg_step_of(r);

	(void)p;
	if (!list_linked(&s->link))
		return false;
	list_del(&s->link);
	return true;
}

static void reset(struct pass *p, unsigned worker)
{
	sg_reset(&device_of(p)->lanes[worker]);
}

static void device_close(struct pass *p)
{
	struct sg_device *d = device_of(p);

	for (unsigned i = 0; i < d->nlanes; i++) {
		sg_ports_close(&d->lanes[i]);
		sg_reset_free(d->lanes[i].reset);
	}
	if (d->fd >= 0)
		close(d->fd);
	if (d->guard >= 0)
		close(d->guard);
	free(d->lanes);
	free(d);
}

const struct pass_ops sg_pass_ops = {
	.submit = submit,
	.withdraw = withdraw,
	.reset = reset,
	.close = device_close,
};
