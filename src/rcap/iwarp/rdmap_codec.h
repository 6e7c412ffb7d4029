/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmap_codec.h: the headers of Sends, Writes and Read Responses, inline: each
 * small command needs one or two.
 */
#ifndef RCAP_IWARP_RDMAP_CODEC_H
#define RCAP_IWARP_RDMAP_CODEC_H

#include "base/bytes.h"
#include "rcap/iwarp/rdmap.h"

/* The first 16 bits: T, L, reserved, DV; RV, reserved, opcode. */
#define CTRL_TAGGED	   0x8000
#define CTRL_LAST	   0x4000
#define CTRL_DDP_VERSION   0x0300
#define CTRL_RDMAP_VERSION 0x00c0
#define CTRL_OPCODE	   0x000f
#define DDP_VERSION_1	   0x0100
#define RDMAP_VERSION_1	   0x0040

static inline void rdmap_put_control(uint8_t *p, uint8_t opcode, bool tagged,
				     bool last)
{
	put_be16(p, (uint16_t)((tagged ? CTRL_TAGGED : 0) |
			       (last ? CTRL_LAST : 0) | DDP_VERSION_1 |
			       RDMAP_VERSION_1 | opcode));
}

static inline void rdmap_put_untagged(uint8_t *p, uint32_t qn, uint32_t msn,
				      uint32_t mo)
{
	put_be32(p + 6, qn);
	put_be32(p + 10, msn);
	put_be32(p + 14, mo);
}

/* rdmap_encode_tagged and rdmap_encode_send encode the header of a Write or Read
 * Response, and of the Sends, as rdmap_encode does; stag counts only in the
 * Sends that name one. */
static inline size_t rdmap_encode_tagged(uint8_t *p, uint8_t opcode, bool last,
					 uint32_t stag, uint64_t to)
{
	rdmap_put_control(p, opcode, true, last);
	put_be32(p + 2, stag);
	put_be64(p + 6, to);
	return DDP_TAGGED_LEN;
}

static inline size_t rdmap_encode_send(uint8_t *p, uint8_t opcode, bool last,
				       uint32_t stag, uint32_t msn, uint32_t mo)
{
	bool names_stag =
		opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV;

	rdmap_put_control(p, opcode, false, last);
	put_be32(p + 2, names_stag ? stag : 0);
	rdmap_put_untagged(p, DDP_QN_SEND, msn, mo);
	return DDP_UNTAGGED_LEN;
}

/* The header of a segment of a Write or a Send at offset 0. */
struct rdmap_usual {
	bool tagged, last;
	uint8_t opcode;
	uint32_t stag, msn; /* as in struct rdmap_header */
	uint64_t to;
};

/* rdmap_decode_usual decodes such a header at p, in a ULPDU of n octets, without
 * an error. Returns its length, 0: it is another one, or has an error. */
static inline size_t rdmap_decode_usual(struct rdmap_usual *h, const uint8_t *p,
					size_t n)
{
	uint16_t ctrl, rest;

	if (n < DDP_TAGGED_LEN)
		return 0;
	ctrl = get_be16(p);
	rest = ctrl & (CTRL_TAGGED | CTRL_DDP_VERSION | CTRL_RDMAP_VERSION);
	h->last = ctrl & CTRL_LAST;
	h->opcode = ctrl & CTRL_OPCODE;
	h->stag = get_be32(p + 2);
	h->tagged = ctrl & CTRL_TAGGED;
	if (rest == (CTRL_TAGGED | DDP_VERSION_1 | RDMAP_VERSION_1)) {
		h->to = get_be64(p + 6);
		h->msn = 0;
		return h->opcode == RDMAP_WRITE ? DDP_TAGGED_LEN : 0;
	}
	if (rest != (DDP_VERSION_1 | RDMAP_VERSION_1) || n < DDP_UNTAGGED_LEN ||
	    h->opcode < RDMAP_SEND || h->opcode > RDMAP_SEND_SE_INV ||
	    get_be32(p + 6) != DDP_QN_SEND || get_be32(p + 14) != 0)
		return 0;
	h->msn = get_be32(p + 10);
	h->to = 0;
	return DDP_UNTAGGED_LEN;
}

#endif
