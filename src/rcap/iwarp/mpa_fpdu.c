/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpa_fpdu.c: FPDUs (RFC 5044 §4). A marker precedes each octet whose position
 * in the stream is a multiple of 512. The CRC covers markers, the length does
 * not. A marker between two FPDUs belongs to the second.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"
#include "rcap/iwarp/mpa.h"

/* ULPDU length, ULPDU, pad, CRC. */
static size_t content_len(size_t ulpdu_len)
{
	return round_up4(MPA_LENGTH_LEN + ulpdu_len) + MPA_CRC_LEN;
}

static bool marker_at(const struct mpa_stream *s, uint64_t pos)
{
	return s->markers && pos % MPA_MARKER_INTERVAL == 0;
}

/* Octets until the next marker, without the marker at pos itself. */
static size_t until_marker(const struct mpa_stream *s, uint64_t pos)
{
	if (!s->markers)
		return SIZE_MAX;
	return MPA_MARKER_INTERVAL - (size_t)(pos % MPA_MARKER_INTERVAL);
}

size_t mpa_fpdu_size(const struct mpa_stream *s, size_t ulpdu_len)
{
	size_t left = content_len(ulpdu_len);
	uint64_t pos = s->pos;

	while (left > 0) {
		size_t n;

		if (marker_at(s, pos))
			pos += MPA_MARKER_LEN;
		n = MIN(left, until_marker(s, pos));
		pos += n;
		left -= n;
	}
	return (size_t)(pos - s->pos);
}

size_t mpa_max_ulpdu(const struct mpa_stream *s, size_t room)
{
	size_t len = MIN(room, (size_t)65534);

	if (!s->markers && room >= 8)
		return MIN(len & ~(size_t)3,
			   (room - MPA_CRC_LEN) & ~(size_t)3) -
		       MPA_LENGTH_LEN;
	/* a marker takes 4 of each 512 octets: start high, then step down */
	while (len >= 4 && mpa_fpdu_size(s, (len & ~(size_t)3) - 2) > room)
		len -= 4;
	return len >= 4 ? (len & ~(size_t)3) - 2 : 0;
}

size_t mpa_fpdu_scratch(const struct mpa_stream *s, size_t ulpdu_len)
{
	size_t markers = ulpdu_len / (MPA_MARKER_INTERVAL - MPA_MARKER_LEN) + 2;

	return (s->markers ? markers * MPA_MARKER_LEN : 0) + 3 + MPA_CRC_LEN;
}

/* ---- building ---- */

struct builder {
	struct mpa_stream *s;
	struct iovec *iov;
	unsigned n, max;
	uint8_t *scratch; /* advances */
	uint64_t start;	  /* position of the length field */
	bool begun;	  /* the length field has been written */
	bool overflow;
	uint32_t crc;
};

static void emit_piece(struct builder *b, const void *p, size_t n)
{
	struct iovec *last = b->n ? &b->iov[b->n - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
	} else if (b->n < b->max) {
		b->iov[b->n].iov_base = (void *)(uintptr_t)p;
		b->iov[b->n++].iov_len = n;
	} else {
		b->overflow = true;
	}
	b->s->pos += n;
}

static void emit_marker(struct builder *b)
{
	uint16_t back = b->begun ? (uint16_t)(b->s->pos - b->start) : 0;

	put_be16(b->scratch, 0);
	put_be16(b->scratch + 2, back);
	b->crc = crc32c_update(b->crc, b->scratch, MPA_MARKER_LEN);
	emit_piece(b, b->scratch, MPA_MARKER_LEN);
	b->scratch += MPA_MARKER_LEN;
	if (!b->begun)
		b->start = b->s->pos;
}

/* Emits a run of content, split at markers. */
static void emit_run(struct builder *b, const uint8_t *p, size_t len, bool sum)
{
	while (len > 0) {
		size_t n;

		if (marker_at(b->s, b->s->pos))
			emit_marker(b);
		n = MIN(len, until_marker(b->s, b->s->pos));
		b->begun = true;
		if (sum && b->s->crc)
			b->crc = crc32c_update(b->crc, p, n);
		emit_piece(b, p, n);
		p += n;
		len -= n;
	}
}

/* small enough to be in the L1 cache when the CRC is computed */
#define COPY_PIECE 4096
/* up to this length a copy is still in the L1 cache when its CRC begins */
#define COPY_WHOLE 8192

static uint8_t *emit_copy(struct builder *b, uint8_t *to, const uint8_t *p,
			  size_t len)
{
	while (len > 0) {
		size_t n = MIN(len, (size_t)COPY_PIECE);

		memcpy(to, p, n);
		emit_run(b, to, n, true);
		to += n;
		p += n;
		len -= n;
	}
	return to;
}

static void emit_data(struct builder *b, const struct bufv *data, size_t off,
		      size_t len, uint8_t *copy)
{
	struct iovec piece[8];
	unsigned n;

	while (len > 0) {
		size_t got = bufv_slice(data, off, len, piece, 8, &n);

		if (got == 0) {
			b->overflow = true; /* data is shorter than len */
			return;
		}
		for (unsigned i = 0; i < n && copy; i++)
			copy = emit_copy(b, copy, piece[i].iov_base,
					 piece[i].iov_len);
		for (unsigned i = 0; i < n && !copy; i++)
			emit_run(b, piece[i].iov_base, piece[i].iov_len, true);
		off += got;
		len -= got;
	}
}

static int build_marked(struct mpa_stream *s, uint8_t *head, size_t head_len,
			const struct bufv *data, size_t off, size_t len,
			uint8_t *copy, struct iovec *iov, unsigned max,
			uint8_t **scratch)
{
	size_t ulpdu = head_len - MPA_LENGTH_LEN + len;
	size_t pad =
		round_up4(MPA_LENGTH_LEN + ulpdu) - (MPA_LENGTH_LEN + ulpdu);
	struct builder b = { .s = s,
			     .iov = iov,
			     .max = max,
			     .scratch = *scratch,
			     .start = s->pos,
			     .crc = CRC32C_SEED };

	put_be16(head, (uint16_t)ulpdu);
	emit_run(&b, head, head_len, true);
	emit_data(&b, data, off, len, copy);
	/* a marker never precedes or splits a pad: both end at multiples of
	 * 4 */
	memset(b.scratch, 0, pad);
	b.scratch += pad;
	emit_run(&b, b.scratch - pad, pad, true);
	/* the CRC covers a marker right before it */
	if (marker_at(s, s->pos))
		emit_marker(&b);
	put_le32(b.scratch, s->crc ? crc32c_wire(b.crc) : 0);
	b.scratch += MPA_CRC_LEN;
	emit_run(&b, b.scratch - MPA_CRC_LEN, MPA_CRC_LEN, false);
	*scratch = b.scratch;
	return b.overflow ? ERR_LIMIT : (int)b.n;
}

/* ---- without markers ---- */

/* mpa_fpdu_build for a stream without markers. */
static int build_plain(struct mpa_stream *s, uint8_t *head, size_t head_len,
		       const struct bufv *data, size_t off, size_t len,
		       struct iovec *iov, unsigned max, uint8_t **scratch)
{
	uint32_t crc = CRC32C_SEED;
	unsigned n = 0;

	if (max < 2 ||
	    (len > 0 && bufv_slice(data, off, len, iov + 1, max - 2, &n) < len))
		return ERR_LIMIT;
	put_be16(head, (uint16_t)(head_len - MPA_LENGTH_LEN + len));
	iov[0] = (struct iovec){ head, head_len };
	for (unsigned i = 0; s->crc && i <= n; i++)
		crc = crc32c_update(crc, iov[i].iov_base, iov[i].iov_len);
	iov[n + 1].iov_base = *scratch;
	iov[n + 1].iov_len = mpa_fpdu_tail(s, *scratch, head_len + len, crc);
	*scratch += iov[n + 1].iov_len;
	return (int)n + 2;
}

/* Copies data and continues crc over the copy. */
static uint32_t copy_data(uint8_t *to, const struct bufv *data, size_t off,
			  size_t len, uint32_t crc)
{
	struct iovec piece[8];
	unsigned n;

	while (len > 0) {
		size_t got = bufv_slice(data, off, len, piece, 8, &n);

		if (got == 0)
			break;
		for (unsigned i = 0; i < n; i++) {
			crc = crc32c_copy(crc, to, piece[i].iov_base,
					  piece[i].iov_len);
			to += piece[i].iov_len;
		}
		off += got;
		len -= got;
	}
	return crc;
}

size_t mpa_fpdu_copy(struct mpa_stream *s, uint8_t *p, size_t head_len,
		     const struct bufv *data, size_t off, size_t len)
{
	size_t content = head_len + len;
	uint32_t crc = CRC32C_SEED;

	if (len > COPY_WHOLE && s->crc) {
		mpa_fpdu_begin(p, content);
		crc = crc32c_update(crc, p, head_len);
		crc = copy_data(p + head_len, data, off, len, crc);
		return content + mpa_fpdu_tail(s, p + content, content, crc);
	}
	if (len > 0 && data->n == 1)
		memcpy(p + head_len, (uint8_t *)data->iov[0].iov_base + off,
		       len);
	else if (len > 0)
		bufv_copy_out(data, off, p + head_len, len);
	return mpa_fpdu_close(s, p, content);
}

int mpa_fpdu_build(struct mpa_stream *s, uint8_t *head, size_t head_len,
		   const struct bufv *data, size_t off, size_t len,
		   uint8_t *copy, struct iovec *iov, unsigned max,
		   uint8_t **scratch)
{
	if (!s->markers && !copy)
		return build_plain(s, head, head_len, data, off, len, iov, max,
				   scratch);
	return build_marked(s, head, head_len, data, off, len, copy, iov, max,
			    scratch);
}

/* ---- opening ---- */

void mpa_fpdu_peek(const struct mpa_stream *s, const uint8_t *p, size_t n,
		   size_t *total)
{
	size_t skip = marker_at(s, s->pos) ? MPA_MARKER_LEN : 0;

	*total = 0;
	if (n >= skip + MPA_LENGTH_LEN)
		*total = mpa_fpdu_size(s, get_be16(p + skip));
}

/* A marker holds the distance to the length field, 0 right before it. */
static bool marker_ok(const uint8_t *p, uint64_t pos, uint64_t start,
		      bool begun)
{
	uint16_t back = get_be16(p + 2) & 0xfffc;

	return back == (begun ? (uint16_t)(pos - start) : 0);
}

struct opener {
	struct iovec *iov;
	unsigned n, max;
	size_t skip; /* of the length field, still to skip */
	size_t left; /* octets of the ULPDU still to find */
};

static bool add_piece(struct opener *o, const uint8_t *p, size_t n)
{
	size_t skip = MIN(o->skip, n);

	o->skip -= skip;
	p += skip;
	n = MIN(n - skip, o->left);
	if (n == 0)
		return true;
	if (o->n == o->max)
		return false;
	o->iov[o->n].iov_base = (void *)(uintptr_t)p;
	o->iov[o->n++].iov_len = n;
	o->left -= n;
	return true;
}

int mpa_fpdu_open(struct mpa_stream *s, const uint8_t *p, size_t total,
		  struct iovec *iov, unsigned max, size_t *ulpdu_len)
{
	size_t lead = marker_at(s, s->pos) ? MPA_MARKER_LEN : 0, at = 0;
	uint64_t pos = s->pos, start = s->pos + lead;
	struct opener o = { .iov = iov, .max = max, .skip = MPA_LENGTH_LEN };
	/* a marker never splits the CRC */
	size_t covered = total - MPA_CRC_LEN;

	*ulpdu_len = o.left = get_be16(p + lead);
	while (at < covered) {
		size_t n;

		if (marker_at(s, pos)) {
			if (!marker_ok(p + at, pos, start, pos >= start))
				return ERR_FORMAT;
			at += MPA_MARKER_LEN;
			pos += MPA_MARKER_LEN;
			continue;
		}
		n = MIN(covered - at, until_marker(s, pos));
		if (!add_piece(&o, p + at, n))
			return ERR_LIMIT;
		at += n;
		pos += n;
	}
	if (s->crc &&
	    get_le32(p + covered) !=
		    crc32c_wire(crc32c_update(CRC32C_SEED, p, covered)))
		return ERR_DATA_DIGEST;
	s->pos += total;
	return (int)o.n;
}
