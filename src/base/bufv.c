/* SPDX-License-Identifier: BSD-2-Clause */
/* bufv.c: the only file, with bufv.h, that loops over the entries of an iovec. Most
 * vectors have one entry, and need no loop. */
#include "base/bufv.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

/* A position in a vector: byte off of entry i. */
struct cursor {
	const struct bufv *v;
	unsigned i;
	size_t off;
};

static struct cursor seek_to(const struct bufv *v, size_t off)
{
	struct cursor c = { .v = v, .off = off };

	while (c.i < v->n && c.off >= v->iov[c.i].iov_len) {
		c.off -= v->iov[c.i].iov_len;
		c.i++;
	}
	return c;
}

/* next_piece returns the longest contiguous run of at most len bytes at the
 * cursor and moves the cursor to its end. It skips entries of length 0 and
 * returns an empty piece only at the end of the vector. */
static struct iovec next_piece(struct cursor *c, size_t len)
{
	struct iovec piece = { 0 };

	while (c->i < c->v->n && c->off == c->v->iov[c->i].iov_len) {
		c->i++;
		c->off = 0;
	}
	if (c->i == c->v->n)
		return piece;
	piece.iov_base = (uint8_t *)c->v->iov[c->i].iov_base + c->off;
	piece.iov_len = MIN(len, c->v->iov[c->i].iov_len - c->off);
	c->off += piece.iov_len;
	return piece;
}

size_t bufv_slice_many(const struct bufv *v, size_t off, size_t len,
		       struct iovec *out, unsigned max, unsigned *n)
{
	struct cursor c = seek_to(v, off);
	size_t done = 0;

	for (*n = 0; *n < max && done < len; (*n)++) {
		out[*n] = next_piece(&c, len - done);
		if (out[*n].iov_len == 0)
			break;
		done += out[*n].iov_len;
	}
	return done;
}

size_t bufv_copy_in_many(const struct bufv *v, size_t off, const void *src,
			 size_t len)
{
	struct cursor c = seek_to(v, off);
	size_t done = 0;

	while (done < len) {
		struct iovec p = next_piece(&c, len - done);

		if (p.iov_len == 0)
			break;
		memcpy(p.iov_base, (const uint8_t *)src + done, p.iov_len);
		done += p.iov_len;
	}
	return done;
}

size_t bufv_copy_out_many(const struct bufv *v, size_t off, void *dst,
			  size_t len)
{
	struct cursor c = seek_to(v, off);
	size_t done = 0;

	while (done < len) {
		struct iovec p = next_piece(&c, len - done);

		if (p.iov_len == 0)
			break;
		memcpy((uint8_t *)dst + done, p.iov_base, p.iov_len);
		done += p.iov_len;
	}
	return done;
}

size_t bufv_fill(const struct bufv *v, size_t off, uint8_t byte, size_t len)
{
	struct cursor c = seek_to(v, off);
	size_t done = 0;

	while (done < len) {
		struct iovec p = next_piece(&c, len - done);

		if (p.iov_len == 0)
			break;
		memset(p.iov_base, byte, p.iov_len);
		done += p.iov_len;
	}
	return done;
}

uint32_t bufv_crc32c(const struct bufv *v, size_t off, size_t len, uint32_t crc)
{
	struct cursor c = seek_to(v, off);

	while (len > 0) {
		struct iovec p = next_piece(&c, len);

		if (p.iov_len == 0)
			break;
		crc = crc32c_update(crc, p.iov_base, p.iov_len);
		len -= p.iov_len;
	}
	return crc;
}
