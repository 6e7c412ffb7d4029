/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmap.c: DDP and RDMAP headers, RFC 5041 §4, RFC 5040 §4, RFC 7306 §4. */
#include "rcap/iwarp/rdmap.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rcap/iwarp/rdmap_codec.h"

static bool is_tagged(uint8_t opcode)
{
	return opcode == RDMAP_WRITE || opcode == RDMAP_READ_RESPONSE;
}

static uint32_t queue_of(uint8_t opcode)
{
	switch (opcode) {
	case RDMAP_READ_REQUEST:
	case RDMAP_ATOMIC_REQUEST:
		return DDP_QN_READ;
	case RDMAP_TERMINATE:
		return DDP_QN_TERMINATE;
	case RDMAP_ATOMIC_RESPONSE:
		return DDP_QN_ATOMIC;
	default:
		return DDP_QN_SEND;
	}
}

/* Length of the RDMAP header, after that of DDP. */
static size_t own_len(uint8_t opcode)
{
	switch (opcode) {
	case RDMAP_READ_REQUEST:
		return RDMAP_READ_LEN;
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		return RDMAP_IMMEDIATE_LEN;
	case RDMAP_ATOMIC_REQUEST:
		return RDMAP_ATOMIC_REQUEST_LEN;
	case RDMAP_ATOMIC_RESPONSE:
		return RDMAP_ATOMIC_RESPONSE_LEN;
	default:
		return 0;
	}
}

size_t rdmap_header_len(uint8_t opcode)
{
	if (is_tagged(opcode))
		return DDP_TAGGED_LEN;
	return DDP_UNTAGGED_LEN + own_len(opcode);
}

size_t rdmap_peek_len(const uint8_t *p)
{
	uint16_t ctrl = get_be16(p);

	if (ctrl & CTRL_TAGGED)
		return DDP_TAGGED_LEN;
	return DDP_UNTAGGED_LEN + own_len(ctrl & CTRL_OPCODE);
}

/* Checks the first 16 bits. */
static int check_control(struct rdmap_header *h, uint16_t ctrl, bool extended)
{
	uint8_t last = extended ? RDMAP_ATOMIC_RESPONSE : RDMAP_TERMINATE;

	h->tagged = ctrl & CTRL_TAGGED;
	h->last = ctrl & CTRL_LAST;
	h->opcode = ctrl & CTRL_OPCODE;
	if ((ctrl & CTRL_DDP_VERSION) != DDP_VERSION_1)
		return h->tagged ? -TERM_DDP_TAGGED_VERSION
				 : -TERM_DDP_UNTAGGED_VERSION;
	if ((ctrl & CTRL_RDMAP_VERSION) != RDMAP_VERSION_1)
		return -TERM_RDMAP_VERSION;
	/* an opcode of the other kind of buffer is unexpected here */
	if (h->opcode > last || is_tagged(h->opcode) != h->tagged)
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

static void decode_atomic(struct rdmap_header *h, const uint8_t *p)
{
	h->atomic = p[3] & 0x0f;
	h->request_id = get_be32(p + 4);
	h->source_stag = get_be32(p + 8);
	h->source_to = get_be64(p + 12);
	h->value = get_be64(p + 20);
	h->mask = get_be64(p + 28);
	h->compare = get_be64(p + 36);
	h->compare_mask = get_be64(p + 44);
}

/* Decodes the RDMAP header, after that of DDP. */
static void decode_own(struct rdmap_header *h, const uint8_t *p)
{
	switch (h->opcode) {
	case RDMAP_READ_REQUEST:
		decode_read(h, p);
		break;
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		h->value = get_be64(p);
		break;
	case RDMAP_ATOMIC_REQUEST:
		decode_atomic(h, p);
		break;
	case RDMAP_ATOMIC_RESPONSE:
		h->request_id = get_be32(p);
		h->value = get_be64(p + 4);
		break;
	default:
		break;
	}
}

int rdmap_decode(struct rdmap_header *h, const uint8_t *p, size_t n,
		 bool extended)
{
	int err;

	memset(h, 0, sizeof(*h));
	if (n < 2)
		return -TERM_RDMAP_STREAM_CATASTROPHIC;
	err = check_control(h, get_be16(p), extended);
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
	if (h->qn > (extended ? DDP_QN_ATOMIC : DDP_QN_TERMINATE))
		return -TERM_DDP_UNTAGGED_QN;
	if (h->qn != queue_of(h->opcode)) /* RFC 5040 §5.1 */
		return -TERM_RDMAP_OPCODE;
	decode_own(h, p + DDP_UNTAGGED_LEN);
	return (int)rdmap_header_len(h->opcode);
}

static void encode_read(const struct rdmap_header *h, uint8_t *p)
{
	put_be32(p, h->sink_stag);
	put_be64(p + 4, h->sink_to);
	put_be32(p + 12, h->read_size);
	put_be32(p + 16, h->source_stag);
	put_be64(p + 20, h->source_to);
}

static void encode_atomic(const struct rdmap_header *h, uint8_t *p)
{
	put_be32(p, h->atomic);
	put_be32(p + 4, h->request_id);
	put_be32(p + 8, h->source_stag);
	put_be64(p + 12, h->source_to);
	put_be64(p + 20, h->value);
	put_be64(p + 28, h->mask);
	put_be64(p + 36, h->compare);
	put_be64(p + 44, h->compare_mask);
}

static void encode_own(const struct rdmap_header *h, uint8_t *p)
{
	switch (h->opcode) {
	case RDMAP_READ_REQUEST:
		encode_read(h, p);
		break;
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		put_be64(p, h->value);
		break;
	case RDMAP_ATOMIC_REQUEST:
		encode_atomic(h, p);
		break;
	case RDMAP_ATOMIC_RESPONSE:
		put_be32(p, h->request_id);
		put_be64(p + 4, h->value);
		break;
	default:
		break;
	}
}

size_t rdmap_encode(const struct rdmap_header *h, uint8_t *p)
{
	if (is_tagged(h->opcode))
		return rdmap_encode_tagged(p, h->opcode, h->last, h->stag,
					   h->to);
	if (h->opcode >= RDMAP_SEND && h->opcode <= RDMAP_SEND_SE_INV)
		return rdmap_encode_send(p, h->opcode, h->last, h->stag, h->msn,
					 h->mo);
	rdmap_put_control(p, h->opcode, false, h->last);
	put_be32(p + 2, 0);
	rdmap_put_untagged(p, queue_of(h->opcode), h->msn, h->mo);
	encode_own(h, p + DDP_UNTAGGED_LEN);
	return rdmap_header_len(h->opcode);
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
	/* the length is present whenever a header is (§4.8) */
	put_be16(p + 4, t->segment_len);
	n += 2;
	if (t->has_ddp) {
		size_t len =
			MIN(t->headers_len, (size_t)RDMAP_TERMINATE_HEADERS);

		memcpy(p + n, t->headers, len);
		n += len;
	}
	return n;
}

/* clang-format off */
static const struct {
	uint16_t reason;
	const char *text;
} term_names[] = {
	{ TERM_LOCAL_CATASTROPHIC, "RDMAP: local catastrophic error" },
	{ TERM_RDMAP_INVALID_STAG, "RDMAP: invalid STag" },
	{ TERM_RDMAP_BOUNDS, "RDMAP: base or bounds violation" },
	{ TERM_RDMAP_ACCESS, "RDMAP: access rights violation" },
	{ TERM_RDMAP_STREAM, "RDMAP: STag not associated with this stream" },
	{ TERM_RDMAP_TO_WRAP, "RDMAP: tagged offset wraps" },
	{ TERM_RDMAP_PROTECTION_UNSPECIFIED, "RDMAP: unspecified protection error" },
	{ TERM_RDMAP_CANT_INVALIDATE, "RDMAP: STag can't be invalidated" },
	{ TERM_RDMAP_CANT_INVALIDATE_OP, "RDMAP: STag can't be invalidated" },
	{ TERM_RDMAP_VERSION, "RDMAP: invalid version" },
	{ TERM_RDMAP_OPCODE, "RDMAP: unexpected opcode" },
	{ TERM_RDMAP_STREAM_CATASTROPHIC, "RDMAP: catastrophic error of the stream" },
	{ TERM_RDMAP_GLOBAL_CATASTROPHIC, "RDMAP: catastrophic error, global" },
	{ TERM_RDMAP_UNSPECIFIED, "RDMAP: unspecified error" },
	{ TERM_DDP_LOCAL_CATASTROPHIC, "DDP: local catastrophic error" },
	{ TERM_DDP_TAGGED_INVALID_STAG, "DDP: tagged, invalid STag" },
	{ TERM_DDP_TAGGED_BOUNDS, "DDP: tagged, base or bounds violation" },
	{ TERM_DDP_TAGGED_STREAM, "DDP: tagged, STag not associated with this stream" },
	{ TERM_DDP_TAGGED_TO_WRAP, "DDP: tagged, offset wraps" },
	{ TERM_DDP_TAGGED_VERSION, "DDP: tagged, invalid version" },
	{ TERM_DDP_UNTAGGED_QN, "DDP: untagged, invalid queue number" },
	{ TERM_DDP_UNTAGGED_NO_BUFFER, "DDP: untagged, no buffer" },
	{ TERM_DDP_UNTAGGED_MSN, "DDP: untagged, MSN out of range" },
	{ TERM_DDP_UNTAGGED_MO, "DDP: untagged, invalid message offset" },
	{ TERM_DDP_UNTAGGED_TOO_LONG, "DDP: untagged, message too long" },
	{ TERM_DDP_UNTAGGED_VERSION, "DDP: untagged, invalid version" },
	{ TERM_MPA_CLOSED, "MPA: connection closed" },
	{ TERM_MPA_CRC, "MPA: CRC error" },
	{ TERM_MPA_MARKER, "MPA: marker and length disagree" },
	{ TERM_MPA_FRAME, "MPA: invalid request or reply frame" },
	{ TERM_MPA_LOCAL_CATASTROPHIC, "MPA: local catastrophic error" },
	{ TERM_MPA_IRD, "MPA: insufficient IRD resources" },
	{ TERM_MPA_RTR, "MPA: no matching Ready To Receive" },
};
/* clang-format on */

static const char *term_name(uint16_t reason)
{
	if (reason >> 8 == 0) /* every code is permitted (figure 9) */
		reason = TERM_LOCAL_CATASTROPHIC;
	for (size_t i = 0; i < ARRAY_LEN(term_names); i++)
		if (term_names[i].reason == reason)
			return term_names[i].text;
	return NULL;
}

const char *rdmap_term_str(uint16_t reason)
{
	const char *name = term_name(reason);

	return name ? name : "unknown reason";
}

/* siw of Linux swaps the two nibbles of the first octet on little-endian
 * machines. */
static void set_term_reason(struct rdmap_terminate *t, uint16_t reason)
{
	uint16_t other = (uint16_t)((reason & 0xff) | (reason & 0xf000) >> 4 |
				    (reason & 0x0f00) << 4);

	t->reason = reason;
	t->swapped = !term_name(reason) && term_name(other);
	if (t->swapped)
		t->reason = other;
}

int rdmap_terminate_decode(struct rdmap_terminate *t, const uint8_t *p,
			   size_t n)
{
	memset(t, 0, sizeof(*t));
	if (n < 4)
		return ERR_TRUNCATED;
	set_term_reason(t, get_be16(p));
	if (n >= 6 && (p[2] & (TERM_M | TERM_D))) {
		t->has_segment_len = p[2] & TERM_M;
		t->segment_len = get_be16(p + 4);
		t->headers = p + 6;
		t->headers_len = MIN(n - 6, (size_t)RDMAP_TERMINATE_HEADERS);
	}
	t->has_ddp = (p[2] & TERM_D) && t->headers_len >= DDP_TAGGED_LEN;
	t->has_rdmap = t->has_ddp && (p[2] & TERM_R) &&
		       t->headers_len >= DDP_UNTAGGED_LEN + RDMAP_READ_LEN;
	return 0;
}
