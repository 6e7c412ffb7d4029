/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crypt.c: a filter that encrypts (xts.h). A sector of zeros in the store means
 * zeros: holes, BS_UNMAP and BS_ZERO keep their meaning, and no map of them is
 * needed. Data that encrypt to zeros cannot be chosen without the key; data
 * that happen to (probability 2^-4096) read back as zeros.
 *
 * A WRITE is encrypted in memory of this filter, because the memory of the
 * caller must not change: each worker has bounce buffers of two sizes, and
 * requests wait for a free one. A READ is decrypted in place.
 *
 * Threads: a lane belongs to its worker. BS_REKEY accesses all lanes; no other
 * request is in progress then.
 */
#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "backstore/filter.h"
#include "backstore/xts.h"
#include "base/bytes.h"
#include "base/list.h"

/* small enough to stay in the cache between copy and encryption */
#define PIECE ((size_t)32 << 10)
/* some 150 us */
#define CRYPT_PART (256u << 10)

enum {
	SMALL,
	LARGE,
	SIZES
};

static const struct {
	size_t bytes;
	unsigned most; /* per worker */
} sizes[SIZES] = {
	[SMALL] = { 16u << 10, 256 },
	[LARGE] = { 1u << 20, 16 },
};

struct pool {
	struct list unused;  /* of bounce.link */
	struct list waiting; /* bs_wait_push */
	unsigned made;
};

struct lane {
	_Alignas(64) struct xts *xts;
	struct xts *next_xts; /* during a change of the key */
	struct pool pools[SIZES];
};

struct bs_crypt {
	struct bs bs;
	struct bs *next;
	struct bs_crypt_config cfg; /* without the key */
	struct lane *lanes;
	/* BS_REKEY */
	struct bs_key_change change;
	struct bs_req *changing;
	uint8_t key[BS_CRYPT_KEY]; /* the next key */
};

struct bounce {
	struct list link;
	struct bs_crypt *crypt;
	unsigned size;
	uint8_t *data;
	/* the request that uses it */
	struct bs_req *req;
	uint64_t at; /* bytes of req that have been stored */
	struct iovec iov;
	struct bs_req part;
};

static struct bs_crypt *crypt_of(struct bs *b)
{
	return container_of(b, struct bs_crypt, bs);
}

/* ---- bounce buffers ---- */

static void bounce_free(struct bounce *b)
{
	free(b->data);
	free(b);
}

static struct bounce *bounce_new(struct bs_crypt *c, unsigned size)
{
	struct bounce *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->crypt = c;
	b->size = size;
	b->data = aligned_alloc(4096, sizes[size].bytes);
	if (b->data)
		return b;
	free(b);
	return NULL;
}

/* NULL: wait for a free one; if none was ever made: out of memory. */
static struct bounce *bounce_get(struct bs_crypt *c, struct pool *p,
				 unsigned size)
{
	struct bounce *b;

	if (!list_empty(&p->unused))
		return list_entry(list_pop_front(&p->unused), struct bounce,
				  link);
	if (p->made == sizes[size].most)
		return NULL;
	b = bounce_new(c, size);
	p->made += b != NULL;
	return b;
}

static void write_begin(struct bounce *b, struct bs_req *req);

static void bounce_put(struct bounce *b, struct lane *l)
{
	struct pool *p = &l->pools[b->size];
	struct bs_req *next = bs_wait_pop(&p->waiting);

	if (next)
		write_begin(b, next);
	else
		list_push_front(&p->unused, &b->link);
}

/* ---- write ---- */

static void write_part(struct bounce *b);

static void write_end(struct bounce *b, int result)
{
	struct bs_req *req = b->req;

	bounce_put(b, &b->crypt->lanes[req->worker]);
	bs_complete(req, result);
}

static void part_done(struct bs_req *part)
{
	struct bounce *b = container_of(part, struct bounce, part);

	b->at += part->len;
	if (part->result || b->at == b->req->len)
		write_end(b, part->result);
	else
		write_part(b);
}

static bool encrypt_part(struct bounce *b, size_t len)
{
	const struct bs_req *req = b->req;
	struct xts *xts = b->crypt->lanes[req->worker].xts;

	for (size_t at = 0, n; at < len; at += n) {
		n = MIN(len - at, PIECE);
		bufv_copy_out(&req->data, b->at + at, b->data + at, n);
		if (!xts_encrypt(xts, req->off + b->at + at, b->data + at, n))
			return false;
	}
	return true;
}

static void write_part(struct bounce *b)
{
	const struct bs_req *req = b->req;
	size_t len = (size_t)MIN(req->len - b->at, sizes[b->size].bytes);

	if (!encrypt_part(b, len)) {
		write_end(b, ERR_MEDIUM);
		return;
	}
	b->iov = (struct iovec){ b->data, len };
	b->part.op = BS_WRITE;
	b->part.flags = req->flags;
	b->part.worker = req->worker;
	b->part.off = req->off + b->at;
	b->part.len = len;
	b->part.data = bufv_of(&b->iov, 1);
	b->part.done = part_done;
	bs_submit(b->crypt->next, &b->part);
}

static void write_begin(struct bounce *b, struct bs_req *req)
{
	b->req = req;
	b->at = 0;
	write_part(b);
}

static void crypt_write(struct bs_crypt *c, struct bs_req *req)
{
	unsigned size = req->len > sizes[SMALL].bytes ? LARGE : SMALL;
	struct pool *p = &c->lanes[req->worker].pools[size];
	struct bounce *b = bounce_get(c, p, size);

	if (b)
		write_begin(b, req);
	else if (p->made == 0)
		bs_complete(req, ERR_NOMEM);
	else
		bs_wait_push(&p->waiting, req);
}

/* ---- read ---- */

/* Decrypts the next sectors of v, from `at` on, that are in one piece of
 * memory; a sector in two pieces is decrypted in a copy. Returns the number of
 * bytes; 0: libcrypto failed. */
static size_t decrypt_some(struct xts *xts, const struct bufv *v, size_t at,
			   uint64_t off)
{
	uint8_t copy[XTS_SECTOR];
	struct iovec piece;
	unsigned n;
	size_t len = bufv_slice(v, at, v->len - at, &piece, 1, &n);

	if (len >= XTS_SECTOR) {
		len -= len % XTS_SECTOR;
		return xts_decrypt(xts, off, piece.iov_base, len) ? len : 0;
	}
	bufv_copy_out(v, at, copy, XTS_SECTOR);
	if (!xts_decrypt(xts, off, copy, XTS_SECTOR))
		return 0;
	bufv_copy_in(v, at, copy, XTS_SECTOR);
	return XTS_SECTOR;
}

static void read_done(void *arg, struct bs_req *req)
{
	struct bs_crypt *c = arg;
	struct xts *xts = c->lanes[req->worker].xts;
	int result = req->result;

	for (size_t at = 0, n; !result && at < req->len; at += n) {
		n = decrypt_some(xts, &req->data, at, req->off + at);
		if (!n)
			result = ERR_MEDIUM;
	}
	bs_complete(req, result);
}

/* ---- a new key ---- */

static void drop_next_key(struct bs_crypt *c)
{
	for (unsigned i = 0; i < c->cfg.nworkers; i++) {
		xts_free(c->lanes[i].next_xts);
		c->lanes[i].next_xts = NULL;
	}
	OPENSSL_cleanse(c->key, sizeof(c->key));
}

/* Allocates everything before any change. */
static bool take_next_key(struct bs_crypt *c, const uint8_t *key)
{
	for (unsigned i = 0; i < c->cfg.nworkers; i++) {
		c->lanes[i].next_xts = xts_new(key);
		if (!c->lanes[i].next_xts)
			return false;
	}
	return true;
}

static void use_next_key(struct bs_crypt *c)
{
	for (unsigned i = 0; i < c->cfg.nworkers; i++) {
		struct lane *l = &c->lanes[i];
		struct xts *old = l->xts;

		l->xts = l->next_xts;
		l->next_xts = old;
	}
}

static void key_changed(struct bs_key_change *change)
{
	struct bs_crypt *c = container_of(change, struct bs_crypt, change);
	struct bs_req *req = c->changing;

	if (change->in_force)
		use_next_key(c);
	drop_next_key(c);
	c->changing = NULL;
	bs_complete(req, change->result);
}

static void crypt_rekey(struct bs_crypt *c, struct bs_req *req)
{
	assert(!c->changing);
	if (!c->cfg.random(c->cfg.arg, c->key, sizeof(c->key)) ||
	    !take_next_key(c, c->key)) {
		drop_next_key(c);
		bs_complete(req, ERR_NOMEM);
		return;
	}
	c->changing = req;
	c->change = (struct bs_key_change){ .key = c->key,
					    .worker = req->worker,
					    .done = key_changed };
	c->cfg.keep(c->cfg.arg, &c->change);
}

/* ---- the table ---- */

static void crypt_submit(struct bs *b, struct bs_req *req)
{
	struct bs_crypt *c = crypt_of(b);

	assert(req->worker < c->cfg.nworkers);
	switch (req->op) {
	case BS_WRITE:
		crypt_write(c, req);
		break;
	case BS_REKEY:
		crypt_rekey(c, req);
		break;
	case BS_READ:
		bs_req_push(req, read_done, c);
		bs_forward(c->next, req);
		break;
	default:
		bs_forward(c->next, req);
		break;
	}
}

static void lane_fini(struct lane *l)
{
	xts_free(l->xts);
	for (unsigned i = 0; i < SIZES; i++) {
		struct pool *p = &l->pools[i];

		assert(list_empty(&p->waiting));
		while (!list_empty(&p->unused))
			bounce_free(list_entry(list_pop_front(&p->unused),
					       struct bounce, link));
	}
}

static void crypt_free(struct bs_crypt *c)
{
	for (unsigned i = 0; i < c->cfg.nworkers; i++)
		lane_fini(&c->lanes[i]);
	free(c->lanes);
	free(c);
}

static void crypt_close(struct bs *b)
{
	struct bs_crypt *c = crypt_of(b);

	bs_close(c->next);
	if (c->cfg.release)
		c->cfg.release(c->cfg.arg);
	crypt_free(c);
}

static const struct bs_ops crypt_ops = {
	.submit = crypt_submit,
	.lend = bs_lend_unsupported,
	.close = crypt_close,
};

static bool lanes_init(struct bs_crypt *c, const uint8_t *key)
{
	size_t bytes = c->cfg.nworkers * sizeof(c->lanes[0]);

	c->lanes = aligned_alloc(_Alignof(struct lane), bytes);
	if (!c->lanes) {
		c->cfg.nworkers = 0;
		return false;
	}
	memset(c->lanes, 0, bytes);
	for (unsigned i = 0; i < c->cfg.nworkers; i++)
		for (unsigned j = 0; j < SIZES; j++) {
			list_init(&c->lanes[i].pools[j].unused);
			list_init(&c->lanes[i].pools[j].waiting);
		}
	for (unsigned i = 0; i < c->cfg.nworkers; i++) {
		c->lanes[i].xts = xts_new(key);
		if (!c->lanes[i].xts)
			return false;
	}
	return true;
}

struct bs *bs_crypt_new(struct bs *next, const struct bs_crypt_config *cfg)
{
	struct bs_crypt *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	bs_filter_init(&c->bs, &crypt_ops, next);
	c->bs.part.data = CRYPT_PART;
	if (cfg->keep && !(next->caps & BS_CAP_READ_ONLY))
		c->bs.caps |= BS_CAP_REKEY;
	c->next = next;
	c->cfg = *cfg;
	c->cfg.key = NULL;
	if (lanes_init(c, cfg->key))
		return &c->bs;
	crypt_free(c);
	return NULL;
}
