/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmap.c: DDP and RDMAP headers, RFC 5041 §4, RFC 5040 §4. */
#include "rcap/iwarp/rdmap.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

/* The first 16 bits: T, L, reserved, DV; RV, reserved, opcode. */
#define CTRL_TAGGED	   0x8000
#define CTRL_LAST	   0x4000
#define CTRL_DDP_VERSION   0x0300
#define CTRL_RDMAP_VERSION 0x00c0
#define DDP_VERSION_1	   0x0100
#define RDMAP_VERSION_1	   0x0040

static bool is_tagged(uint8_t opcode)
{
	return opcode == RDMAP_WRITE || opcode == RDMAP_READ_RESPONSE;
}

static uint32_t queue_of(uint8_t opcode)
{
	if (opcode == RDMAP_READ_REQUEST)
		return DDP_QN_READ;
	return opcode == RDMAP_TERMINATE ? DDP_QN_TERMINATE : DDP_QN_SEND;
}

size_t rdmap_header_len(uint8_t opcode)
{
	if (is_tagged(opcode))
		return DDP_TAGGED_LEN;
	return DDP_UNTAGGED_LEN +
	       (opcode == RDMAP_READ_REQUEST ? RDMAP_READ_LEN : 0);
}

/* What can be said of the first 16 bits alone. */
static int check_control(struct rdmap_header *h, uint16_t ctrl)
{
	h->tagged = ctrl & CTRL_TAGGED;
	h->last = ctrl & CTRL_LAST;
	h->opcode = ctrl & 0x0f;
	if ((ctrl & CTRL_DDP_VERSION) != DDP_VERSION_1)
		return h->tagged ? -TERM_DDP_TAGGED_VERSION
				 : -TERM_DDP_UNTAGGED_VERSION;
	if ((ctrl & CTRL_RDMAP_VERSION) != RDMAP_VERSION_1)
		return -TERM_RDMAP_VERSION;
	/* an opcode on the wrong kind of buffer is unexpected there */
	if (h->opcode > RDMAP_TERMINATE || is_tagged(h->opcode) != h->tagged)
		return -TERM_RDMAP_OPCODE;
	return 0;
}

static void decode_read(struct rdmap_header *h, const uint8_t *p)
{
	h->sink_stag = get_be32(p);
	h->sink_to = get_be64(p + 4);
	h->read_size = get_be32(p + 12);
	h->source_stag = get_be32(p + 16);
	h->source_to = get_be64(p + 20);
}

int rdmap_decode(struct rdmap_header *h, const uint8_t *p, size_t n)
{
	int err;

	memset(h, 0, sizeof(*h));
	if (n < 2)
		return -TERM_RDMAP_STREAM_CATASTROPHIC;
	err = check_control(h, get_be16(p));
	if (err)
		return err;
	if (n < rdmap_header_len(h->opcode))
		return -TERM_RDMAP_STREAM_CATASTROPHIC;
	h->stag = get_be32(p + 2);
	if (h->tagged) {
		h->to = get_be64(p + 6);
		return DDP_TAGGED_LEN;
	}
	h->qn = get_be32(p + 6);
	h->msn = get_be32(p + 10);
	h->mo = get_be32(p + 14);
	if (h->qn >= DDP_QN_COUNT)
		return -TERM_DDP_UNTAGGED_QN;
	if (h->qn != queue_of(h->opcode)) /* RFC 5040 §5.1 */
		return -TERM_RDMAP_OPCODE;
	if (h->opcode == RDMAP_READ_REQUEST)
		decode_read(h, p + DDP_UNTAGGED_LEN);
	return (int)rdmap_header_len(h->opcode);
}

size_t rdmap_encode(const struct rdmap_header *h, uint8_t *p)
{
	bool tagged = is_tagged(h->opcode);
	bool names_stag = tagged || h->opcode == RDMAP_SEND_INV ||
			  h->opcode == RDMAP_SEND_SE_INV;

	put_be16(p, (uint16_t)((tagged ? CTRL_TAGGED : 0) |
			       (h->last ? CTRL_LAST : 0) | DDP_VERSION_1 |
			       RDMAP_VERSION_1 | h->opcode));
	put_be32(p + 2, names_stag ? h->stag : 0);
	if (tagged) {
		put_be64(p + 6, h->to);
		return DDP_TAGGED_LEN;
	}
	put_be32(p + 6, queue_of(h->opcode));
	put_be32(p + 10, h->msn);
	put_be32(p + 14, h->mo);
	if (h->opcode != RDMAP_READ_REQUEST)
		return DDP_UNTAGGED_LEN;
	p += DDP_UNTAGGED_LEN;
	put_be32(p, h->sink_stag);
	put_be64(p + 4, h->sink_to);
	put_be32(p + 12, h->read_size);
	put_be32(p + 16, h->source_stag);
	put_be64(p + 20, h->source_to);
	return DDP_UNTAGGED_LEN + RDMAP_READ_LEN;
}

/* ---- Terminate ---- */

#define TERM_M 0x80
#define TERM_D 0x40
#define TERM_R 0x20

size_t rdmap_terminate_encode(const struct rdmap_terminate *t, uint8_t *p)
{
	size_t n = 4;

	put_be16(p, t->reason);
	p[2] = (uint8_t)((t->has_segment_len ? TERM_M : 0) |
			 (t->has_ddp ? TERM_D : 0) |
			 (t->has_rdmap ? TERM_R : 0));
	p[3] = 0;
	if (!t->has_segment_len && !t->has_ddp)
		return n;
	/* the length stands there whenever a header does (§4.8) */
	put_be16(p + 4, t->segment_len);
	n += 2;
	if (t->has_ddp) {
		size_t len = MIN(t->headers_len, (size_t)DDP_HEADER_MAX);

		memcpy(p + n, t->headers, len);
		n += len;
	}
	return n;
}

int rdmap_terminate_decode(struct rdmap_terminate *t, const uint8_t *p,
			   size_t n)
{
	memset(t, 0, sizeof(*t));
	if (n < 4)
		return ERR_TRUNCATED;
	t->reason = get_be16(p);
	if (n >= 6 && (p[2] & (TERM_M | TERM_D))) {
		t->has_segment_len = p[2] & TERM_M;
		t->segment_len = get_be16(p + 4);
		t->headers = p + 6;
		t->headers_len = MIN(n - 6, (size_t)DDP_HEADER_MAX);
	}
	t->has_ddp = (p[2] & TERM_D) && t->headers_len >= DDP_TAGGED_LEN;
	t->has_rdmap = t->has_ddp && (p[2] & TERM_R) &&
		       t->headers_len >= DDP_UNTAGGED_LEN + RDMAP_READ_LEN;
	return 0;
}

const char *rdmap_term_str(uint16_t reason)
{
	switch ((enum rdmap_term)reason) {
	case TERM_LOCAL_CATASTROPHIC:
		return "RDMAP: local catastrophic error";
	case TERM_RDMAP_INVALID_STAG:
		return "RDMAP: invalid STag";
	case TERM_RDMAP_BOUNDS:
		return "RDMAP: base or bounds violation";
	case TERM_RDMAP_ACCESS:
		return "RDMAP: access rights violation";
	case TERM_RDMAP_STREAM:
		return "RDMAP: STag not associated with this stream";
	case TERM_RDMAP_TO_WRAP:
		return "RDMAP: tagged offset wraps";
	case TERM_RDMAP_CANT_INVALIDATE:
		return "RDMAP: STag can't be invalidated";
	case TERM_RDMAP_VERSION:
		return "RDMAP: invalid version";
	case TERM_RDMAP_OPCODE:
		return "RDMAP: unexpected opcode";
	case TERM_RDMAP_STREAM_CATASTROPHIC:
		return "RDMAP: catastrophic error of the stream";
	case TERM_RDMAP_UNSPECIFIED:
		return "RDMAP: unspecified error";
	case TERM_DDP_LOCAL_CATASTROPHIC:
		return "DDP: local catastrophic error";
	case TERM_DDP_TAGGED_INVALID_STAG:
		return "DDP: tagged, invalid STag";
	case TERM_DDP_TAGGED_BOUNDS:
		return "DDP: tagged, base or bounds violation";
	case TERM_DDP_TAGGED_STREAM:
		return "DDP: tagged, STag not associated with this stream";
	case TERM_DDP_TAGGED_TO_WRAP:
		return "DDP: tagged, offset wraps";
	case TERM_DDP_TAGGED_VERSION:
		return "DDP: tagged, invalid version";
	case TERM_DDP_UNTAGGED_QN:
		return "DDP: untagged, invalid queue number";
	case TERM_DDP_UNTAGGED_NO_BUFFER:
		return "DDP: untagged, no buffer";
	case TERM_DDP_UNTAGGED_MSN:
		return "DDP: untagged, MSN out of range";
	case TERM_DDP_UNTAGGED_MO:
		return "DDP: untagged, invalid message offset";
	case TERM_DDP_UNTAGGED_TOO_LONG:
		return "DDP: untagged, message too long";
	case TERM_DDP_UNTAGGED_VERSION:
		return "DDP: untagged, invalid version";
	case TERM_MPA_CLOSED:
		return "MPA: connection closed";
	case TERM_MPA_CRC:
		return "MPA: CRC error";
	case TERM_MPA_MARKER:
		return "MPA: marker and length disagree";
	case TERM_MPA_FRAME:
		return "MPA: invalid request or reply frame";
	}
	return "unknown reason";
}
