/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * io.c: requests to an export. A request becomes pieces of at most n->piece bytes,
 * one for each part of its vector; zeros and the state of blocks are asked for
 * piece by piece.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backstore/nbd/internal.h"
#include "base/err.h"

/* Bytes of a request without data: its length has 32 bits. */
#define BARE_PIECE ((uint64_t)1 << 30)
#define ZEROS	   ((size_t)256 << 10)

static const char zeros[ZEROS];

/* ---- the end ---- */

static void on_worker(struct io_post *p)
{
	struct bsnbd_step *s = container_of(p, struct bsnbd_step, post);
	struct bs_req *req = s->req;

	if (s->bounce && req->op == BS_READ && !s->error)
		bufv_copy_in(&req->data, 0, s->bounce, (size_t)req->len);
	free(s->bounce);
	s->bounce = NULL;
	if (s->error && (req->op == BS_FLUSH || req->flags & BS_FUA))
		bs_flush_failed(&s->store->bs);
	bs_complete(req, bs_err_of_errno(-s->error));
}

void bsnbd_end(struct bsnbd_step *s, int error)
{
	s->error = error;
	s->post.run = on_worker;
	io_loop_post(s->store->loops[s->req->worker], &s->post);
}

/* A piece, or the making of the pieces, has ended. */
static void piece_ended(struct bsnbd_step *s)
{
	if (--s->pending)
		return;
	if (s->req->op == BS_READ && s->got != s->now && !s->error)
		s->error = EPROTO;
	s->at += s->now;
	if (s->error || s->at >= s->req->len)
		bsnbd_end(s, s->error);
	else
		list_push_back(&s->store->more, &s->link);
}

/* libnbd calls this once for each piece; 1: libnbd frees the piece. */
static int on_complete(void *arg, int *error)
{
	struct bsnbd_step *s = arg;

	if (*error && !s->error)
		s->error = *error;
	piece_ended(s);
	return 1;
}

static nbd_completion_callback completion(struct bsnbd_step *s)
{
	s->pending++;
	return (nbd_completion_callback){ .callback = on_complete,
					  .user_data = s };
}

/* libnbd does not call the callback of a piece that it refuses. */
static void check_issued(struct bsnbd_step *s, int64_t cookie)
{
	if (cookie >= 0)
		return;
	s->pending--;
	if (!s->error)
		s->error = nbd_get_errno() ? nbd_get_errno() : EIO;
}

/* ---- data ---- */

static unsigned flags_of(const struct bsnbd_step *s)
{
	bool fua = s->req->flags & BS_FUA && s->store->can_fua;

	return fua ? LIBNBD_CMD_FLAG_FUA : 0;
}

/* A chunk of a reply: libnbd does not check that a read gets all its bytes
 * (nbd_pread_structured(3)). Those that the server leaves out are zeros in the memory. */
static int on_chunk(void *arg, const void *p, size_t n, uint64_t off,
		    unsigned status, int *error)
{
	struct bsnbd_step *s = arg;

	(void)p;
	(void)off;
	(void)status;
	(void)error;
	s->got += n;
	return 0;
}

static void issue_part(struct bsnbd_step *s, char *p, uint64_t off, size_t len)
{
	struct nbd_handle *h = s->store->h;

	while (len && !s->error) {
		size_t n = (size_t)MIN(len, s->store->piece);
		nbd_completion_callback done = completion(s);
		nbd_chunk_callback chunk = { .callback = on_chunk,
					     .user_data = s };

		if (s->req->op == BS_READ)
			check_issued(s, nbd_aio_pread_structured(
						h, p, n, off, chunk, done, 0));
		else
			check_issued(s, nbd_aio_pwrite(h, p, n, off, done,
						       flags_of(s)));
		p += n;
		off += n;
		len -= n;
	}
}

/* is_split_well: each part of the vector is whole blocks of the server. */
static bool is_split_well(const struct bsnbd_step *s)
{
	const struct bufv *v = &s->req->data;

	for (unsigned i = 0; i < v->n; i++)
		if (v->iov[i].iov_len & (s->store->grain - 1))
			return false;
	return true;
}

static void issue_data(struct bsnbd_step *s)
{
	struct bs_req *req = s->req;
	uint64_t off = req->off;

	s->now = req->len;
	if (!s->bounce && !is_split_well(s)) {
		s->bounce = malloc((size_t)req->len);
		if (!s->bounce) {
			s->error = ENOMEM;
			return;
		}
		if (req->op == BS_WRITE)
			bufv_copy_out(&req->data, 0, s->bounce,
				      (size_t)req->len);
	}
	if (s->bounce) {
		issue_part(s, s->bounce, off, (size_t)req->len);
		return;
	}
	for (unsigned i = 0; i < req->data.n; i++) {
		const struct iovec *iov = &req->data.iov[i];

		issue_part(s, iov->iov_base, off, iov->iov_len);
		off += iov->iov_len;
	}
}

/* ---- zeros, flush ---- */

static void issue_zero(struct bsnbd_step *s)
{
	struct bs_req *req = s->req;
	struct bsnbd *n = s->store;
	uint64_t off = req->off + s->at, left = req->len - s->at;
	bool thick = req->op == BS_ZERO && !(req->flags & BS_MAY_UNMAP);

	if (n->can_zero) {
		s->now = MIN(left, BARE_PIECE);
		check_issued(
			s, nbd_aio_zero(n->h, s->now, off, completion(s),
					flags_of(s) |
						(thick ? LIBNBD_CMD_FLAG_NO_HOLE
						       : 0)));
		return;
	}
	s->now = MIN(left, MIN(n->piece, ZEROS));
	check_issued(s, nbd_aio_pwrite(n->h, zeros, (size_t)s->now, off,
				       completion(s), flags_of(s)));
}

static void issue_flush(struct bsnbd_step *s)
{
	s->now = s->req->len;
	if (s->store->can_flush)
		check_issued(s, nbd_aio_flush(s->store->h, completion(s), 0));
}

/* ---- extents ---- */

static bool is_hole(uint32_t state)
{
	return (state & LIBNBD_STATE_ZERO) != 0;
}

/* entries: pairs of length and state; the server may report more than asked. */
static int on_extents(void *arg, const char *context, uint64_t off,
		      uint32_t *entries, size_t n, int *error)
{
	struct bsnbd_step *s = arg;
	struct bs_req *req = s->req;
	uint64_t len = 0;

	(void)context;
	(void)error;
	if (off != req->off || n < 2)
		return 0;
	req->extent_mapped = !is_hole(entries[1]);
	req->extent_kept =
		!req->extent_mapped && !(entries[1] & LIBNBD_STATE_HOLE);
	for (size_t i = 0; i + 1 < n && entries[i + 1] == entries[1]; i += 2)
		len += entries[i];
	req->extent_len = len;
	return 0;
}

/* The run as whole blocks; a block that is partly a hole counts as mapped. */
static void round_run(struct bs_req *req, uint32_t block)
{
	uint64_t len = MIN(req->extent_len, req->len);

	if (!req->extent_mapped && len >= block) {
		req->extent_len = len / block * block;
		return;
	}
	req->extent_kept &= !req->extent_mapped && len >= block;
	req->extent_mapped = true;
	req->extent_len = (MAX(len, 1) + block - 1) / block * block;
}

static int on_extents_complete(void *arg, int *error)
{
	struct bsnbd_step *s = arg;

	if (!*error)
		round_run(s->req, s->store->bs.block_size);
	s->now = s->req->len;
	return on_complete(arg, error);
}

static void issue_extents(struct bsnbd_step *s)
{
	struct bs_req *req = s->req;
	nbd_completion_callback done = completion(s);
	nbd_extent_callback extent = { .callback = on_extents, .user_data = s };

	done.callback = on_extents_complete;
	check_issued(s, nbd_aio_block_status(s->store->h,
					     MIN(req->len, BARE_PIECE),
					     req->off, extent, done, 0));
}

void bsnbd_issue(struct bsnbd_step *s)
{
	s->pending = 1;
	switch (s->req->op) {
	case BS_READ:
	case BS_WRITE:
		issue_data(s);
		break;
	case BS_UNMAP:
	case BS_ZERO:
		issue_zero(s);
		break;
	case BS_EXTENTS:
		issue_extents(s);
		break;
	default:
		issue_flush(s);
		break;
	}
	piece_ended(s);
}

/* ---- the table ---- */

static uint64_t size_now(struct bsnbd *n)
{
	uint64_t size;

	pthread_mutex_lock(&n->lock);
	size = n->size_now;
	pthread_mutex_unlock(&n->lock);
	return size;
}

static void submit(struct bs *b, struct bs_req *req)
{
	struct bsnbd_step *s = (struct bsnbd_step *)(void *)req->priv;
	struct bsnbd *n = bsnbd_of(b);

	*s = (struct bsnbd_step){ .store = n, .req = req };
	list_init(&s->link);
	assert(req->worker < n->nloops);
	switch (req->op) {
	case BS_READ:
	case BS_WRITE:
	case BS_FLUSH:
	case BS_UNMAP:
	case BS_ZERO:
	case BS_EXTENTS:
		bsnbd_enqueue(s);
		break;
	case BS_SIZE:
		req->size_now = size_now(n);
		bs_complete(req, 0);
		break;
	case BS_CHECK:
		req->trouble = size_now(n) == __atomic_load_n(&b->size,
							      __ATOMIC_RELAXED)
				       ? BS_SOUND
				       : BS_RESIZED;
		bs_complete(req, 0);
		break;
	case BS_SPACE: /* not BS_CAP_SPACE */
	case BS_RESIZE:
	case BS_PROTECT:
	case BS_MEND:
	case BS_REKEY:
		bs_complete(req, ERR_UNSUPPORTED);
		break;
	}
}

static void close_store(struct bs *b)
{
	struct bsnbd *n = bsnbd_of(b);

	bsnbd_stop(n);
	if (n->h)
		nbd_close(n->h);
	free(n->loops);
	free(n->uri);
	free(n);
}

const struct bs_ops bsnbd_ops = {
	.submit = submit,
	.lend = bs_lend_unsupported,
	.close = close_store,
};
