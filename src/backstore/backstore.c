/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backstore.c: the doorway: what every backstore would otherwise have to check
 * or emulate itself is done here, once.
 */
#include "backstore/backstore.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

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

/* ---- force unit access by a flush of our own ---- */

/* A request that is being emulated keeps its op here while it is a flush. */
static void flush_after_write_done(void *arg, struct bs_req *req)
{
	(void)arg;
	req->op = BS_WRITE;
	req->flags |= BS_FUA;
	bs_complete(req, req->result);
}

static void flush_after_zero_done(void *arg, struct bs_req *req)
{
	(void)arg;
	req->op = BS_ZERO;
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
	bs_req_push(req,
		    req->op == BS_ZERO ? flush_after_zero_done
				       : flush_after_write_done,
		    b);
	req->op = BS_FLUSH;
	b->ops->submit(b, req);
}

static void write_then_flush(struct bs *b, struct bs_req *req)
{
	req->flags &= ~BS_FUA;
	bs_req_push(req, fua_written, b);
	b->ops->submit(b, req);
}

/* ---- what is refused ---- */

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
	return op < BS_PROTECT && op != BS_FLUSH && op != BS_REKEY;
}

/* refusal gives the code of a request that b cannot do, or 0. */
static int refusal(const struct bs *b, const struct bs_req *req)
{
	if (req->op == BS_FLUSH)
		return 0;
	if (req->op == BS_SPACE)
		return b->caps & BS_CAP_SPACE ? 0 : ERR_UNSUPPORTED;
	if (req->op == BS_SIZE)
		return b->caps & BS_CAP_SIZE ? 0 : ERR_UNSUPPORTED;
	if (req->op == BS_REKEY)
		return b->caps & BS_CAP_REKEY ? 0 : ERR_UNSUPPORTED;
	if (has_range(req->op) && !whole_blocks_inside(b, req->off, req->len))
		return ERR_RANGE;
	if (!has_range(req->op) && !b->protection) /* PROTECT, MEND */
		return ERR_UNSUPPORTED;
	if (changes_medium(req->op) && (b->caps & BS_CAP_READ_ONLY))
		return ERR_READ_ONLY;
	if (req->op == BS_UNMAP && !(b->caps & BS_CAP_UNMAP))
		return ERR_UNSUPPORTED;
	if (req->op == BS_EXTENTS && !(b->caps & BS_CAP_EXTENTS))
		return ERR_UNSUPPORTED;
	return 0;
}

/* Every store on the way learns it; any worker may be reading the old size,
 * and what it then asks for is told it is not there. */
static void size_known(void *arg, struct bs_req *req)
{
	struct bs *b = arg;

	if (!req->result)
		__atomic_store_n(&b->size, req->size_now, __ATOMIC_RELAXED);
	bs_complete(req, req->result);
}

/* needs_flush: FUA was asked for, b has a cache and no cheaper way. */
static bool needs_flush(const struct bs *b, const struct bs_req *req)
{
	return (req->flags & BS_FUA) && (b->caps & BS_CAP_WRITE_CACHE) &&
	       !(b->caps & BS_CAP_FUA) &&
	       (req->op == BS_WRITE || req->op == BS_ZERO);
}

void bs_forward(struct bs *next, struct bs_req *req)
{
	int err = refusal(next, req);

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

void bs_close(struct bs *b)
{
	assert(b->state == BS_OPEN);
	b->state = BS_CLOSED;
	b->ops->close(b);
}

/* ---- names ---- */

void bs_set_name(struct bs *b, const char *name)
{
	size_t len = strnlen(name, sizeof(b->name) - 1);

	memcpy(b->name, name, len);
	b->name[len] = '\0';
}

/* FNV-1a, and a final mix so that near keys give far values. */
static uint64_t hash64(uint64_t h, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

void bs_uuid_derive(uint8_t uuid[16], const void *key, size_t len)
{
	put_be64(uuid, hash64(0xcbf29ce484222325u, key, len));
	put_be64(uuid + 8, hash64(0x84222325cbf29ce4u, key, len));
	uuid[6] = (uint8_t)(0x80 | (uuid[6] & 0x0f)); /* RFC 9562 §5.8 */
	uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f)); /* RFC 9562 §4.1 */
}
