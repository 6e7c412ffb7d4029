/* SPDX-License-Identifier: BSD-2-Clause */
/* call.c: commands by ioctl(SG_IO), and resets. Both block until they have ended,
 * so the helper threads of a loop execute them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device/sg/internal.h"

#ifndef SG_SCSI_RESET_NO_ESCALATE
# define SG_SCSI_RESET_NO_ESCALATE 0x100
#endif

void sg_fill_v4(struct sg_step *s)
{
	struct pass_req *r = s->req;
	uintptr_t buf = (uintptr_t)r->buf;

	s->io.v4 = (struct sg_io_v4){
		.guard = 'Q',
		.protocol = BSG_PROTOCOL_SCSI,
		.subprotocol = BSG_SUB_PROTOCOL_SCSI_CMD,
		.request_len = r->cdb_len,
		.request = (uintptr_t)r->cdb,
		.max_response_len = r->sense_max,
		.response = (uintptr_t)r->sense,
		.dout_xfer_len = r->dir == PASS_OUT ? r->len : 0,
		.dout_xferp = r->dir == PASS_OUT ? buf : 0,
		.din_xfer_len = r->dir == PASS_IN ? r->len : 0,
		.din_xferp = r->dir == PASS_IN ? buf : 0,
		.timeout = r->timeout * 1000,
	};
}

static int64_t call(struct io_file_op *op)
{
	struct sg_step *s = container_of(op, struct sg_step, op);
	int n;

	do
		n = ioctl(op->fd, SG_IO, &s->io);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void v3_done(struct io_file_op *op, int64_t result)
{
	struct sg_step *s = container_of(op, struct sg_step, op);
	const struct sg_io_hdr *h = &s->io.v3;

	if (result < 0)
		sg_failed(s, (int)result);
	else
		sg_ended(s, h->status, h->host_status, h->sb_len_wr, h->resid);
}

static void v4_done(struct io_file_op *op, int64_t result)
{
	struct sg_step *s = container_of(op, struct sg_step, op);
	const struct sg_io_v4 *h = &s->io.v4;

	if (result < 0)
		sg_failed(s, (int)result);
	else
		sg_ended(s, h->device_status, h->transport_status,
			 h->response_len,
			 s->req->dir == PASS_OUT ? h->dout_resid
						 : h->din_resid);
}

void sg_call(struct sg_step *s)
{
	struct sg_device *d = s->lane->dev;

	s->op = (struct io_file_op){ .opcode = IO_FILE_CALL,
				     .fd = d->fd,
				     .call = call };
	if (atomic_load(&d->kind) == SG_V4) {
		sg_fill_v4(s);
		s->op.done = v4_done;
	} else {
		sg_fill_v3(s);
		s->op.done = v3_done;
	}
	io_file_submit(s->lane->loop, &s->op);
}

/* ---- resets ---- */

static int64_t reset_call(struct io_file_op *op)
{
	int how = SG_SCSI_RESET_DEVICE | SG_SCSI_RESET_NO_ESCALATE;

	return ioctl(op->fd, SG_SCSI_RESET, &how) < 0 ? -errno : 0;
}

static void reset_end(struct sg_reset *r)
{
	close(r->op.fd);
	r->in_progress = false;
	if (r->orphan)
		free(r);
}

/* The result does not matter: the commands end in either case, at the latest
 * after their timeout. */
static void reset_done(struct io_file_op *op, int64_t result)
{
	(void)result;
	reset_end(container_of(op, struct sg_reset, op));
}

void sg_reset(struct sg_lane *l)
{
	struct sg_reset *r = l->reset;
	int fd;

	if (r->in_progress)
		return;
	fd = fcntl(l->dev->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return;
	r->in_progress = true;
	r->op = (struct io_file_op){ .opcode = IO_FILE_CALL,
				     .fd = fd,
				     .call = reset_call,
				     .done = reset_done };
	io_file_submit(l->loop, &r->op);
}

void sg_reset_free(struct sg_reset *r)
{
	if (r && r->in_progress)
		r->orphan = true;
	else
		free(r);
}
