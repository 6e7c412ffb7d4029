/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backstore.c: the entry points of all backstores: the checks and emulations
 * that every backstore needs, once.
 */
#include "backstore/backstore.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"

void bs_complete(struct bs_req *req, int result)
{
	struct bs_hook h;

	req->result = result;
	if (req->nhooks == 0) {
		req->done(req);
		return;
	}
	h = req->hook[--req->nhooks];
	h.back(h.arg, req);
}

void bs_req_push(struct bs_req *req,
		 void (*back)(void *arg, struct bs_req *req), void *arg)
{
	assert(req->nhooks < BS_REQ_HOOKS);
	req->hook[req->nhooks++] = (struct bs_hook){ back, arg };
}

/* ---- FUA by a separate flush ---- */

/* While the request is a flush, the argument of the hook remembers its op. */
static void flush_done(void *op, struct bs_req *req)
{
	req->op = (enum bs_op)(uintptr_t)op;
	req->flags |= BS_FUA;
	bs_complete(req, req->result);
}

static void fua_written(void *arg, struct bs_req *req)
{
	struct bs *b = arg;

	if (req->result) {
		req->flags |= BS_FUA;
		bs_complete(req, req->result);
		return;
	}
	bs_req_push(req, flush_done, (void *)(uintptr_t)req->op);
	req->op = BS_FLUSH;
	b->ops->submit(b, req);
}

static void write_then_flush(struct bs *b, struct bs_req *req)
{
	req->flags &= ~BS_FUA;
	bs_req_push(req, fua_written, b);
	b->ops->submit(b, req);
}

/* ---- checks ---- */

static bool changes_medium(enum bs_op op)
{
	return op == BS_WRITE || op == BS_UNMAP || op == BS_ZERO ||
	       op == BS_PROTECT || op == BS_MEND;
}

static bool whole_blocks_inside(const struct bs *b, uint64_t off, uint64_t len)
{
	return range_ok(off, len, b->size) &&
	       ((off | len) & (b->block_size - 1)) == 0;
}

static bool has_range(enum bs_op op)
{
	return op < BS_PROTECT && op != BS_FLUSH;
}

/* The capability that an operation needs; 0: none. */
static const unsigned cap_of[] = {
	[BS_UNMAP] = BS_CAP_UNMAP, [BS_EXTENTS] = BS_CAP_EXTENTS,
	[BS_SPACE] = BS_CAP_SPACE, [BS_SIZE] = BS_CAP_SIZE,
	[BS_REKEY] = BS_CAP_REKEY, [BS_RESIZE] = BS_CAP_RESIZE,
	[BS_CHECK] = BS_CAP_CHECK,
};

/* check_request returns the error of a request that b does not support, or
 * 0. */
static int check_request(const struct bs *b, const struct bs_req *req)
{
	if (has_range(req->op) && !whole_blocks_inside(b, req->off, req->len))
		return ERR_RANGE;
	if ((req->op == BS_PROTECT || req->op == BS_MEND) && !b->protection)
		return ERR_UNSUPPORTED;
	if (changes_medium(req->op) && (b->caps & BS_CAP_READ_ONLY))
		return ERR_READ_ONLY;
	return cap_of[req->op] & ~b->caps ? ERR_UNSUPPORTED : 0;
}

/* Each store on the way sets its size. A worker that still uses an old, larger
 * size gets ERR_RANGE. */
static void size_known(void *arg, struct bs_req *req)
{
	struct bs *b = arg;

	if (!req->result)
		__atomic_store_n(&b->size, req->size_now, __ATOMIC_RELAXED);
	bs_complete(req, req->result);
}

/* needs_flush: FUA is set, b has a write cache and no cheaper way. */
static bool needs_flush(const struct bs *b, const struct bs_req *req)
{
	return (req->flags & BS_FUA) && (b->caps & BS_CAP_WRITE_CACHE) &&
	       !(b->caps & BS_CAP_FUA) &&
	       (req->op == BS_WRITE || req->op == BS_ZERO ||
		req->op == BS_UNMAP);
}

void bs_forward(struct bs *next, struct bs_req *req)
{
	int err = check_request(next, req);

	assert(next->state == BS_OPEN);
	if (req->op == BS_EXTENTS) {
		req->extent_len = 0;
		req->extent_kept = false;
	}
	if (!err && req->op == BS_SIZE)
		bs_req_push(req, size_known, next);
	if (err || (req->len == 0 && has_range(req->op)))
		bs_complete(req, err);
	else if (needs_flush(next, req))
		write_then_flush(next, req);
	else
		next->ops->submit(next, req);
}

void bs_submit(struct bs *b, struct bs_req *req)
{
	assert(req->done);
	assert((req->op != BS_READ && req->op != BS_WRITE) ||
	       req->data.len == req->len);
	req->nhooks = 0;
	bs_forward(b, req);
}

int bs_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	assert(b->state == BS_OPEN);
	if (!(b->caps & BS_CAP_LEND))
		return ERR_UNSUPPORTED;
	if (!range_ok(off, len, b->size))
		return ERR_RANGE;
	return b->ops->lend(b, off, len, iov);
}

uint64_t bs_stamp(struct bs *b, uint64_t off, size_t len)
{
	return b->ops->stamp ? b->ops->stamp(b, off, len) : 0;
}

bool bs_stamp_sees(const struct bs *b, uint64_t off, size_t len, uint64_t at,
		   uint64_t n)
{
	return b->ops->stamp_sees && b->ops->stamp_sees(off, len, at, n);
}

int bs_lend_unsupported(struct bs *b, uint64_t off, size_t len,
			struct iovec *iov)
{
	(void)b;
	(void)off;
	(void)len;
	(void)iov;
	return ERR_UNSUPPORTED;
}

void bs_close(struct bs *b)
{
	assert(b->state == BS_OPEN);
	b->state = BS_CLOSED;
	b->ops->close(b);
}

const char *bs_trouble_str(enum bs_trouble t)
{
	switch (t) {
	case BS_DELETED:
		return "the file was deleted: its blocks are lost when iserd "
		       "ends; copy the LUN to a new file first";
	case BS_MOVED:
		return "the file was renamed: iserd still serves it; give it "
		       "its old name back before the next start";
	case BS_REPLACED:
		return "another file has its name: iserd serves the old one, "
		       "whose blocks may be lost when iserd ends; copy the "
		       "LUN to a new file first";
	case BS_SHRUNK:
		return "the file is shorter than the LUN: blocks at its end "
		       "are lost; make it as long as it was";
	case BS_SOUND:
	case BS_RESIZED:
		break;
	}
	return NULL;
}

void bs_flush_failed(struct bs *b)
{
	assert(b->failures[0]);
	__atomic_fetch_add(b->failures[0], 1, __ATOMIC_RELEASE);
}

int bs_err_of_errno(int64_t err)
{
	switch (-err) {
	case 0:
		return 0;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return ERR_NO_SPACE;
	case EROFS:
	case EPERM:
		return ERR_READ_ONLY;
	case ENOMEM:
		return ERR_NOMEM;
	default:
		return ERR_MEDIUM;
	}
}

/* ---- names ---- */

void bs_set_name(struct bs *b, const char *name)
{
	size_t len = strnlen(name, sizeof(b->name) - 1);

	memcpy(b->name, name, len);
	b->name[len] = '\0';
}

/* FNV-1a, and a final mix so that similar keys give different values. */
static uint64_t hash64(uint64_t h, const uint8_t *p, size_t len)
{
	h = hash_add(h, p, len);
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

void bs_uuid_derive(uint8_t uuid[16], const void *key, size_t len)
{
	put_be64(uuid, hash64(HASH_BEGIN, key, len));
	put_be64(uuid + 8, hash64(0x84222325cbf29ce4u, key, len));
	uuid[6] = (uint8_t)(0x80 | (uuid[6] & 0x0f)); /* RFC 9562 §5.8 */
	uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f)); /* RFC 9562 §4.1 */
}
