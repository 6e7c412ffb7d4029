/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmap_encode.h: the first octets of a DDP header, and the headers of Sends,
 * Writes and Read Responses, inline: each small command needs one or two.
 */
#ifndef RCAP_IWARP_RDMAP_ENCODE_H
#define RCAP_IWARP_RDMAP_ENCODE_H

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

#endif
