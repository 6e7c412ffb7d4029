/* SPDX-License-Identifier: BSD-2-Clause */
/* proto.c: NBD requests and replies, checked and encoded. */
#include "tools/nbd/proto.h"

#define REQUEST_MAGIC	 0x25609513u
#define SIMPLE_MAGIC	 0x67446698u
#define STRUCTURED_MAGIC 0x668e33efu

enum chunk_type {
	CHUNK_NONE = 0,
	CHUNK_OFFSET_DATA = 1,
	CHUNK_BLOCK_STATUS = 5,
	CHUNK_ERROR = 0x8001,
};
#define CHUNK_DONE 1

/* ---- bytes ---- */

uint16_t nbd_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

uint32_t nbd_get32(const uint8_t *p)
{
	return (uint32_t)nbd_get16(p) << 16 | nbd_get16(p + 2);
}

uint64_t nbd_get64(const uint8_t *p)
{
	return (uint64_t)nbd_get32(p) << 32 | nbd_get32(p + 4);
}

void nbd_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

void nbd_put32(uint8_t *p, uint32_t v)
{
	nbd_put16(p, (uint16_t)(v >> 16));
	nbd_put16(p + 2, (uint16_t)v);
}

void nbd_put64(uint8_t *p, uint64_t v)
{
	nbd_put32(p, (uint32_t)(v >> 32));
	nbd_put32(p + 4, (uint32_t)v);
}

/* ---- requests ---- */

bool nbd_request_get(struct nbd_request *r, const uint8_t b[NBD_REQUEST_SIZE])
{
	if (nbd_get32(b) != REQUEST_MAGIC)
		return false;
	r->flags = nbd_get16(b + 4);
	r->command = nbd_get16(b + 6);
	r->cookie = nbd_get64(b + 8);
	r->offset = nbd_get64(b + 16);
	r->length = nbd_get32(b + 24);
	return true;
}

/* One row per command. */
struct row {
	bool known;	/* supported */
	bool changes;	/* the unit: not allowed on a read-only export */
	bool has_range; /* offset and length count */
	uint16_t flags; /* that the request may have */
};

static const struct row rows[] = {
	[NBD_READ] = { .known = true, .has_range = true, .flags = NBD_FUA },
	[NBD_WRITE] = { true, true, true, NBD_FUA },
	[NBD_FLUSH] = { .known = true, .flags = NBD_FUA },
	[NBD_TRIM] = { true, true, true, NBD_FUA },
	[NBD_WRITE_ZEROES] = { true, true, true, NBD_FUA | NBD_NO_HOLE },
	[NBD_BLOCK_STATUS] = { .known = true,
			       .has_range = true,
			       .flags = NBD_FUA | NBD_REQ_ONE },
};

static bool is_offered(const struct nbd_nego *n, const struct nbd_request *r)
{
	switch (r->command) {
	case NBD_TRIM:
		return n->export->can_trim;
	case NBD_BLOCK_STATUS:
		return n->extents;
	default:
		return r->command < sizeof(rows) / sizeof(rows[0]) &&
		       rows[r->command].known;
	}
}

static enum nbd_error check_range(const struct nbd_export *e,
				  const struct nbd_request *r)
{
	bool data = r->command == NBD_READ || r->command == NBD_WRITE;
	bool grows = r->command == NBD_WRITE || r->command == NBD_WRITE_ZEROES;

	if (r->offset > e->size || r->length > e->size - r->offset)
		return grows ? NBD_ENOSPC : NBD_EINVAL;
	if (data && r->length > NBD_PAYLOAD_MAX)
		return NBD_EOVERFLOW;
	/* "Size constraints": changes must be whole blocks; nbd_job_start
	 * rounds the range of other requests */
	if (rows[r->command].changes &&
	    (r->offset % e->min_block || r->length % e->min_block))
		return NBD_EINVAL;
	if (r->command == NBD_BLOCK_STATUS && r->length == 0)
		return NBD_EINVAL;
	return NBD_OK;
}

enum nbd_error nbd_request_check(const struct nbd_nego *n,
				 const struct nbd_request *r)
{
	const struct row *row;
	uint16_t flags;

	if (!is_offered(n, r))
		return NBD_EINVAL;
	row = &rows[r->command];
	flags = row->flags;
	if (r->command == NBD_READ && n->structured)
		flags |= NBD_DF; /* a reply is always one chunk */
	if (r->flags & ~flags)
		return NBD_EINVAL;
	if (row->changes && n->export->read_only)
		return NBD_EPERM;
	return row->has_range ? check_range(n->export, r) : NBD_OK;
}

/* ---- replies ---- */

static void put_chunk(uint8_t *out, enum chunk_type type,
		      const struct nbd_request *r, uint32_t length)
{
	nbd_put32(out, STRUCTURED_MAGIC);
	nbd_put16(out + 4, CHUNK_DONE);
	nbd_put16(out + 6, (uint16_t)type);
	nbd_put64(out + 8, r->cookie);
	nbd_put32(out + 16, length);
}

static size_t put_error(const struct nbd_request *r, enum nbd_error err,
			uint8_t *out)
{
	put_chunk(out, CHUNK_ERROR, r, 6);
	nbd_put32(out + 20, (uint32_t)err);
	nbd_put16(out + 24, 0); /* no text */
	return 26;
}

static size_t put_structured(const struct nbd_request *r, enum nbd_error err,
			     uint8_t *out)
{
	if (err)
		return put_error(r, err, out);
	if (r->command != NBD_READ || r->length == 0) {
		put_chunk(out, CHUNK_NONE, r, 0);
		return 20;
	}
	put_chunk(out, CHUNK_OFFSET_DATA, r, 8 + r->length);
	nbd_put64(out + 20, r->offset);
	return 28;
}

size_t nbd_reply_put(const struct nbd_nego *n, const struct nbd_request *r,
		     enum nbd_error err, uint8_t out[NBD_REPLY_MAX])
{
	if (n->structured)
		return put_structured(r, err, out);
	nbd_put32(out, SIMPLE_MAGIC);
	nbd_put32(out + 4, (uint32_t)err);
	nbd_put64(out + 8, r->cookie);
	return 16;
}

size_t nbd_status_put(const struct nbd_request *r, uint32_t extents,
		      uint8_t out[NBD_REPLY_MAX])
{
	put_chunk(out, CHUNK_BLOCK_STATUS, r, 4 + NBD_EXTENT_SIZE * extents);
	nbd_put32(out + 20, NBD_CONTEXT_ID);
	return 24;
}

void nbd_extent_put(uint8_t out[NBD_EXTENT_SIZE], uint32_t length,
		    uint32_t flags)
{
	nbd_put32(out, length);
	nbd_put32(out + 4, flags);
}
