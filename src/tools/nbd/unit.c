/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.c: NBD requests as requests of libiser. */
#include "tools/nbd/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEEP	(128u << 20) /* bytes that jobs keep for reuse */
#define EXTENTS 128

/* ---- results ---- */

static enum nbd_error error_of(const struct iser_request *r)
{
	switch (iser_request_errno(r)) {
	case 0:
		return NBD_OK;
	case ENOMEM:
		return NBD_ENOMEM;
	case ENOSPC:
		return NBD_ENOSPC;
	case EROFS:
		return NBD_EPERM;
	case EINVAL:
	case EOPNOTSUPP:
		return NBD_EINVAL;
	case ESHUTDOWN: /* a path may return */
		return r->err == ISER_E_NO_PATH ? NBD_EIO : NBD_ESHUTDOWN;
	default:
		return NBD_EIO;
	}
}

static void put_extents(struct nbd_job *j)
{
	const struct iser_request *r = &j->request;

	for (unsigned i = 0; i < r->nranges; i++) {
		const struct iser_range *x = &r->ranges[i];
		uint32_t flags =
			(x->mapped ? 0 : NBD_HOLE) | (x->zeros ? NBD_ZERO : 0);

		nbd_extent_put(j->data + j->data_len, (uint32_t)x->length,
			       flags);
		j->data_len += NBD_EXTENT_SIZE;
	}
	j->extents = r->nranges;
}

static void request_completed(struct iser_request *r)
{
	struct nbd_job *j = r->arg;

	j->err = error_of(r);
	if (j->err) {
		say_request(j->unit->unit, r, "NBD");
		j->data_len = 0;
	} else if (r->op == ISER_OP_EXTENTS) {
		put_extents(j);
	}
	j->done(j);
}

/* ---- jobs ---- */

static size_t room_for(const struct nbd_job *j)
{
	switch ((enum nbd_command)j->req.command) {
	case NBD_READ:
	case NBD_WRITE:
		return j->req.length;
	case NBD_BLOCK_STATUS:
		return (sizeof(struct iser_range) + NBD_EXTENT_SIZE) * EXTENTS;
	default:
		return 0;
	}
}

void nbd_job_release(struct nbd_job *j, bool keep)
{
	if (keep && j->unit->buffers <= KEEP)
		return;
	free(j->buf);
	j->unit->buffers -= j->buf_size;
	j->buf = NULL;
	j->buf_size = 0;
}

bool nbd_job_room(struct nbd_job *j)
{
	size_t need = (room_for(j) + 4095) & ~(size_t)4095;

	if (need <= j->buf_size)
		return true;
	nbd_job_release(j, false);
	j->buf = alloc_pages(need);
	j->buf_size = j->buf ? need : 0;
	j->unit->buffers += j->buf_size;
	return j->buf != NULL;
}

static unsigned flags_of(const struct nbd_request *q)
{
	unsigned flags = q->flags & NBD_FUA ? ISER_OP_FUA : 0;

	if (q->command == NBD_WRITE_ZEROES && !(q->flags & NBD_NO_HOLE))
		flags |= ISER_OP_MAY_UNMAP;
	return flags;
}

void nbd_job_start(struct nbd_job *j)
{
	static const enum iser_op ops[] = {
		[NBD_READ] = ISER_OP_READ,
		[NBD_WRITE] = ISER_OP_WRITE,
		[NBD_FLUSH] = ISER_OP_FLUSH,
		[NBD_TRIM] = ISER_OP_TRIM,
		[NBD_WRITE_ZEROES] = ISER_OP_ZERO,
		[NBD_BLOCK_STATUS] = ISER_OP_EXTENTS,
	};
	struct iser_request *r = &j->request;
	const struct nbd_request *q = &j->req;

	*r = (struct iser_request){
		.op = ops[q->command],
		.flags = flags_of(q),
		.offset = q->offset,
		.length = q->length,
		.done = request_completed,
		.arg = j,
	};
	j->extents = 0;
	j->data = j->buf;
	j->data_len = q->command == NBD_READ ? q->length : 0;
	if (q->command == NBD_READ || q->command == NBD_WRITE) {
		j->iov = (struct iovec){ j->buf, q->length };
		r->iov = &j->iov;
		r->niov = 1;
	} else if (q->command == NBD_BLOCK_STATUS) {
		r->ranges = (void *)j->buf;
		r->max_ranges = q->flags & NBD_REQ_ONE ? 1 : EXTENTS;
		j->data = j->buf + sizeof(*r->ranges) * EXTENTS;
	}
	iser_unit_submit(j->unit->unit, r);
}

/* ---- the unit ---- */

static void on_refreshed(void *arg, struct iser_unit *unit, int err)
{
	struct nbd_unit *u = arg;

	u->is_refreshing = false;
	if (!err) /* else the unit is away, or another one */
		iser_unit_get_info(unit, &u->info);
}

void nbd_unit_read_capacity(struct nbd_unit *u)
{
	if (!u->is_refreshing)
		u->is_refreshing =
			!iser_unit_refresh_start(u->unit, on_refreshed, u);
}

int nbd_unit_open(struct nbd_unit *u, struct iser_context *ctx, const char *url,
		  unsigned reconnect)
{
	int code;

	memset(u, 0, sizeof(*u));
	code = open_unit(ctx, url, reconnect, &u->url, &u->session, &u->unit);
	if (code)
		return code;
	iser_unit_get_info(u->unit, &u->info);
	snprintf(u->description, sizeof(u->description), "%s %s, LUN %d",
		 u->info.vendor, u->info.product, u->url.lun);
	return 0;
}

void nbd_unit_close(struct nbd_unit *u)
{
	if (u->session)
		iser_disconnect_start(u->session, NULL, NULL);
	iser_unit_close(u->unit); /* waits for the requests, which end now */
	u->session = NULL;
	u->unit = NULL;
}
