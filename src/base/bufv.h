/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bufv.h: a vector of buffers seen as one run of bytes. No other file loops
 * over the entries of an iovec.
 *
 * A bufv borrows the iovec array and the memory that its entries point to.
 * The function that made the bufv keeps both alive while the bufv is in use.
 */
#ifndef BASE_BUFV_H
#define BASE_BUFV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct bufv {
	struct iovec *iov;
	unsigned n; /* entries of iov */
	size_t len; /* bytes in all entries */
};

/* bufv_of makes a bufv of n entries at iov and sums their lengths. Inline, because most
 * callers have one entry. */
static inline struct bufv bufv_of(struct iovec *iov, unsigned n)
{
	struct bufv v = { .iov = iov, .n = n };

	for (unsigned i = 0; i < n; i++)
		v.len += iov[i].iov_len;
	return v;
}

/*
 * bufv_slice writes to out[] the pieces that hold the bytes [off, off + len)
 * of v: at most max pieces, and none beyond v's end. It stores the number of
 * pieces in *n and returns how many bytes the pieces hold, which is less than
 * len if max pieces or v's end came first.
 */
size_t bufv_slice_many(const struct bufv *v, size_t off, size_t len,
		       struct iovec *out, unsigned max, unsigned *n);
/* The piece [off, off + len) of a vector with one entry, as far as it goes. */
static inline struct iovec bufv_only_piece(const struct bufv *v, size_t off,
					   size_t len)
{
	const struct iovec *e = v->iov;
	size_t from = off < e->iov_len ? off : e->iov_len;
	size_t left = e->iov_len - from;

	return (struct iovec){ (uint8_t *)e->iov_base + from,
			       len < left ? len : left };
}

static inline size_t bufv_slice(const struct bufv *v, size_t off, size_t len,
				struct iovec *out, unsigned max, unsigned *n)
{
	if (v->n != 1 || max == 0)
		return bufv_slice_many(v, off, len, out, max, n);
	out[0] = bufv_only_piece(v, off, len);
	*n = out[0].iov_len > 0;
	return out[0].iov_len;
}

/* bufv_copy_in copies len bytes of src to v at off. It stops at v's end and
 * returns the number of bytes copied; so do the next two functions. */
size_t bufv_copy_in_many(const struct bufv *v, size_t off, const void *src,
			 size_t len);
static inline size_t bufv_copy_in(const struct bufv *v, size_t off,
				  const void *src, size_t len)
{
	struct iovec p;

	if (v->n != 1)
		return bufv_copy_in_many(v, off, src, len);
	p = bufv_only_piece(v, off, len);
	if (p.iov_len) /* an empty piece may have no memory */
		memcpy(p.iov_base, src, p.iov_len);
	return p.iov_len;
}

/* bufv_copy_out copies len bytes of v at off to dst; returns bytes copied. */
size_t bufv_copy_out_many(const struct bufv *v, size_t off, void *dst,
			  size_t len);
static inline size_t bufv_copy_out(const struct bufv *v, size_t off, void *dst,
				   size_t len)
{
	struct iovec p;

	if (v->n != 1)
		return bufv_copy_out_many(v, off, dst, len);
	p = bufv_only_piece(v, off, len);
	if (p.iov_len)
		memcpy(dst, p.iov_base, p.iov_len);
	return p.iov_len;
}

/* bufv_fill sets len bytes of v at off to byte; returns bytes set. */
size_t bufv_fill(const struct bufv *v, size_t off, uint8_t byte, size_t len);

/* bufv_crc32c continues crc over len bytes of v at off, or to v's end. */
uint32_t bufv_crc32c(const struct bufv *v, size_t off, size_t len,
		     uint32_t crc);

#endif
