/* SPDX-License-Identifier: BSD-2-Clause */
/* null.c: a store whose reads return zeros and which drops writes. */
#include <stdlib.h>

#include "backstore/backstore.h"
#include "backstore/memory.h"
#include "base/bytes.h"
#include "base/err.h"

/* Zeros to lend. Never written: the system maps one page for all of them. */
#define LENT_MAX ((size_t)4 << 20)

struct bs_null {
	struct bs bs;
	void *zeros;
};

static struct bs_null *null_of(struct bs *b)
{
	return container_of(b, struct bs_null, bs);
}

static void null_submit(struct bs *b, struct bs_req *req)
{
	if (req->op == BS_READ)
		bufv_fill(&req->data, 0, 0, req->len);
	if (req->op == BS_EXTENTS) {
		req->extent_len = req->len;
		req->extent_mapped = false;
	}
	if (req->op == BS_SPACE) {
		req->space_used = 0;
		req->space_left = b->size;
	}
	bs_complete(req, 0);
}

static int null_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	(void)off;
	if (len > LENT_MAX)
		return ERR_UNSUPPORTED;
	*iov = (struct iovec){ null_of(b)->zeros, len };
	return 0;
}

static void null_close(struct bs *b)
{
	struct bs_null *null = null_of(b);

	free(null->zeros);
	free(null);
}

static const struct bs_ops null_ops = {
	.submit = null_submit,
	.lend = null_lend,
	.close = null_close,
};

struct bs *bs_null_new(const char *name, uint64_t size, uint32_t block_size)
{
	struct bs_null *null = calloc(1, sizeof(*null));

	if (!null)
		return NULL;
	null->zeros = calloc(1, LENT_MAX);
	if (!null->zeros) {
		free(null);
		return NULL;
	}
	bs_memory_init(&null->bs, &null_ops, name, size, block_size);
	null->bs.caps |= BS_CAP_SPACE;
	null->bs.part.data = null->bs.part.discard = 0;
	return &null->bs;
}
