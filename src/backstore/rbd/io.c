/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * io.c: requests to an image. With rbd_cache=false, what librbd acknowledges is
 * durable, so the store has no write cache.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rbd/internal.h"
#include "base/err.h"

/* Progress of a request; in bs_req.priv. */
struct step {
	struct bsrbd *image;
	struct bs_req *req;
	int64_t result;
	xtime began, ended;   /* as librbd sees the request */
	void *bounce;	      /* a vector that is too long for librbd */
	struct io_post post;  /* returns to the worker of the request */
	struct io_file_op op; /* a call on a helper thread */
};

static_assert(sizeof(struct step) <= BS_REQ_PRIVATE, "fits a request");

/* The cluster refuses the requests of a client that was fenced. Without the lock,
 * librbd refuses to write. */
static int result_of(const struct step *s)
{
	if (s->result == -ESHUTDOWN)
		bsrbd_cluster_fenced(s->image->cluster);
	if (s->image->clustered &&
	    (s->result == -ESHUTDOWN || s->result == -EROFS))
		return ERR_TERMINATED;
	return bs_err_of_errno(MIN(s->result, 0));
}

static void finish(struct step *s)
{
	struct bs_req *req = s->req;

	if (s->ended)
		bs_latency_add(&s->image->bs, req, s->ended - s->began);
	if (s->bounce && req->op == BS_READ && s->result >= 0)
		bufv_copy_in(&req->data, 0, s->bounce, (size_t)req->len);
	free(s->bounce);
	s->bounce = NULL;
	bs_complete(req, result_of(s));
}

static void on_worker(struct io_post *p)
{
	finish(container_of(p, struct step, post));
}

/* Runs on a thread of librbd. */
static void on_complete(rbd_completion_t done, void *arg)
{
	struct step *s = arg;

	s->result = rbd_aio_get_return_value(done);
	s->ended = io_now_exact();
	rbd_aio_release(done);
	io_loop_post(s->image->loops[s->req->worker], &s->post);
}

/* Memory of one piece for a vector that librbd does not take. */
static bool make_bounce(struct step *s, struct iovec *iov)
{
	struct bs_req *req = s->req;

	s->bounce = malloc((size_t)req->len);
	if (!s->bounce)
		return false;
	if (req->op == BS_WRITE)
		bufv_copy_out(&req->data, 0, s->bounce, (size_t)req->len);
	*iov = (struct iovec){ s->bounce, (size_t)req->len };
	return true;
}

static int transfer(struct step *s, rbd_completion_t done)
{
	struct bs_req *req = s->req;
	struct iovec *iov = req->data.iov, one;
	int n = (int)req->data.n;

	if (req->data.n > IOV_MAX) {
		if (!make_bounce(s, &one))
			return -ENOMEM;
		iov = &one;
		n = 1;
	}
	return req->op == BS_READ
		       ? rbd_aio_readv(s->image->image, iov, n, req->off, done)
		       : rbd_aio_writev(s->image->image, iov, n, req->off,
					done);
}

/* rbd_aio_discard may leave parts of objects as they are; write_zeroes frees
 * what is whole and writes zeros to the rest. */
static int zero(struct step *s, rbd_completion_t done)
{
	const struct bs_req *req = s->req;
	bool thick = req->op == BS_ZERO && !(req->flags & BS_MAY_UNMAP);

	return rbd_aio_write_zeroes(
		s->image->image, req->off, req->len, done,
		thick ? RBD_WRITE_ZEROES_FLAG_THICK_PROVISION : 0, 0);
}

/* Requests that librbd carries out without blocking the caller. */
static void start(struct step *s)
{
	struct bs_req *req = s->req;
	rbd_completion_t done;
	int err = rbd_aio_create_completion(s, on_complete, &done);

	s->began = io_now_exact();
	if (!err) {
		if (req->op == BS_FLUSH)
			err = rbd_aio_flush(s->image->image, done);
		else if (req->op == BS_READ || req->op == BS_WRITE)
			err = transfer(s, done);
		else
			err = zero(s, done);
		if (err)
			rbd_aio_release(done);
	}
	if (err < 0) {
		s->result = err;
		finish(s);
	}
}

/* ---- calls that may block, on a helper thread ---- */

static struct step *step_of(struct io_file_op *op)
{
	return container_of(op, struct step, op);
}

/* The run that begins at from. */
struct run {
	uint64_t from, end;
	bool mapped, known;
};

#define RUN_ENDS 1 /* ends the iteration */

/* librbd calls this for each run that exists, in order. */
static int add_run(uint64_t off, size_t len, int exists, void *arg)
{
	struct run *r = arg;

	if (!exists)
		return 0;
	if (!r->known) {
		r->known = true;
		r->mapped = off <= r->from;
		r->end = r->mapped ? off + len : off;
		return r->mapped ? 0 : -RUN_ENDS;
	}
	if (off > r->end)
		return -RUN_ENDS;
	r->end = off + len;
	return 0;
}

static int64_t find_extent(struct io_file_op *op)
{
	struct step *s = step_of(op);
	struct bs_req *req = s->req;
	uint64_t limit = req->off + req->len;
	uint32_t block = s->image->bs.block_size;
	struct run r = { .from = req->off };
	int err = rbd_diff_iterate2(s->image->image, NULL, req->off, req->len,
				    1, 0, add_run, &r);

	if (err < 0 && err != -RUN_ENDS)
		return err;
	if (!r.known)
		r.end = limit;
	r.end = MIN(r.end, limit);
	if (!r.mapped && r.end - req->off < block) {
		r.mapped = true;
		r.end = req->off + block;
	}
	req->extent_len =
		r.mapped ? (r.end - req->off + block - 1) / block * block
			 : (r.end - req->off) / block * block;
	req->extent_mapped = r.mapped;
	return 0;
}

static int64_t measure_size(struct io_file_op *op)
{
	struct step *s = step_of(op);
	uint64_t size;
	int err = rbd_get_size(s->image->image, &size);

	if (!err)
		s->req->size_now =
			size & ~((uint64_t)s->image->bs.block_size - 1);
	return err;
}

static int64_t measure_space(struct io_file_op *op)
{
	struct step *s = step_of(op);

	return bsrbd_space(s->image, &s->req->space_used, &s->req->space_left);
}

static int64_t resize_image(struct io_file_op *op)
{
	struct step *s = step_of(op);

	return rbd_resize(s->image->image, s->req->size_now);
}

/* librbd watches the image, so the size is up to date. */
static int64_t check_image(struct io_file_op *op)
{
	struct step *s = step_of(op);
	uint64_t served = __atomic_load_n(&s->image->bs.size, __ATOMIC_RELAXED);
	uint64_t size;
	int err = rbd_get_size(s->image->image, &size);

	if (err)
		return err;
	size &= ~((uint64_t)s->image->bs.block_size - 1);
	s->req->trouble = size == served ? BS_SOUND : BS_RESIZED;
	return 0;
}

static void call_done(struct io_file_op *op, int64_t result)
{
	struct step *s = step_of(op);

	s->result = result;
	finish(s);
}

static void submit_call(struct step *s, int64_t (*call)(struct io_file_op *op))
{
	s->op.opcode = IO_FILE_CALL;
	s->op.call = call;
	s->op.done = call_done;
	io_file_submit(s->image->loops[s->req->worker], &s->op);
}

/* ---- the table ---- */

/* librbd would take the lock for a write while no client has it. */
static bool lacks_lock(struct bsrbd *r, enum bs_op op)
{
	return r->clustered &&
	       (op == BS_WRITE || op == BS_UNMAP || op == BS_ZERO ||
		op == BS_RESIZE) &&
	       !__atomic_load_n(&r->locked, __ATOMIC_ACQUIRE);
}

static void submit(struct bs *b, struct bs_req *req)
{
	struct step *s = (struct step *)(void *)req->priv;

	*s = (struct step){ .image = bsrbd_of(b), .req = req };
	s->post.run = on_worker;
	assert(req->worker < s->image->nloops);
	if (lacks_lock(s->image, req->op)) {
		bs_complete(req, ERR_TERMINATED);
		return;
	}
	switch (req->op) {
	case BS_READ:
	case BS_WRITE:
	case BS_FLUSH:
	case BS_UNMAP:
	case BS_ZERO:
		start(s);
		break;
	case BS_EXTENTS:
		submit_call(s, find_extent);
		break;
	case BS_SIZE:
		submit_call(s, measure_size);
		break;
	case BS_SPACE:
		submit_call(s, measure_space);
		break;
	case BS_RESIZE:
		submit_call(s, resize_image);
		break;
	case BS_CHECK:
		submit_call(s, check_image);
		break;
	case BS_PROTECT:
	case BS_MEND:
	case BS_REKEY:
		bs_complete(req, ERR_UNSUPPORTED);
		break;
	}
}

const struct bs_ops bsrbd_ops = {
	.submit = submit,
	.lend = bs_lend_unsupported,
	.close = bsrbd_close,
};
