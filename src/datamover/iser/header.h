/* SPDX-License-Identifier: BSD-2-Clause */
/* header.h: the iSER header (RFC 7145 §9.1 to §9.4), its codec. */
#ifndef DATAMOVER_ISER_HEADER_H
#define DATAMOVER_ISER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

#define ISER_HEADER_LEN	   28
#define ISER_PROTO_VERSION 10 /* §9.3 */

/* §9.1 */
enum iser_opcode {
	ISER_CONTROL = 1,
	ISER_HELLO = 2,
	ISER_HELLO_REPLY = 3,
};

struct iser_header {
	uint8_t opcode; /* enum iser_opcode */
	/* ISER_CONTROL, §9.2 */
	bool wsv, rsv;
	uint32_t write_stag, read_stag;
	uint64_t write_base, read_base;
	/* ISER_HELLO, ISER_HELLO_REPLY: §9.3, §9.4 */
	bool reject;
	uint8_t max_ver, min_ver; /* of a reply: min_ver is CurVer */
	uint16_t depth;		  /* iSER-IRD; of a reply iSER-ORD */
};

/* header.c: iser_hello_decode and iser_hello_encode are the parts of the two
 * functions below for the opcodes that are not ISER_CONTROL. */
int iser_hello_decode(struct iser_header *h, const uint8_t *p);
void iser_hello_encode(const struct iser_header *h, uint8_t *p);

#define ISER_FLAG_WSV 0x08
#define ISER_FLAG_RSV 0x04

/* [RFC 7145: 9.2 #2-3 #9] */
static inline void iser_control_decode(struct iser_header *h, const uint8_t *p)
{
	h->wsv = p[0] & ISER_FLAG_WSV;
	h->rsv = p[0] & ISER_FLAG_RSV;
	if (h->wsv) {
		h->write_stag = get_be32(p + 4);
		h->write_base = get_be64(p + 8);
	}
	if (h->rsv) {
		h->read_stag = get_be32(p + 16);
		h->read_base = get_be64(p + 20);
	}
}

/* iser_header_decode decodes n bytes; ERR_TRUNCATED, ERR_OPCODE. Fields that
 * the header marks as not valid become zero. */
static inline int iser_header_decode(struct iser_header *h, const uint8_t *p,
				     size_t n)
{
	memset(h, 0, sizeof(*h));
	if (n < ISER_HEADER_LEN)
		return ERR_TRUNCATED;
	h->opcode = p[0] >> 4;
	if (h->opcode != ISER_CONTROL)
		return iser_hello_decode(h, p);
	iser_control_decode(h, p);
	return 0;
}

/* [RFC 7145: 9.2 #1 #4-7] */
static inline void iser_control_encode(const struct iser_header *h, uint8_t *p)
{
	if (h->wsv) {
		p[0] |= ISER_FLAG_WSV;
		put_be32(p + 4, h->write_stag);
		put_be64(p + 8, h->write_base);
	}
	if (h->rsv) {
		p[0] |= ISER_FLAG_RSV;
		put_be32(p + 16, h->read_stag);
		put_be64(p + 20, h->read_base);
	}
}

/* iser_header_encode writes all ISER_HEADER_LEN bytes; reserved fields are
 * zero. */
/* [RFC 7145: 9.2 #8] */
static inline void iser_header_encode(const struct iser_header *h,
				      uint8_t p[ISER_HEADER_LEN])
{
	memset(p, 0, ISER_HEADER_LEN);
	p[0] = (uint8_t)(h->opcode << 4);
	if (h->opcode == ISER_CONTROL)
		iser_control_encode(h, p);
	else
		iser_hello_encode(h, p);
}

/* Flags in the private data of the CM exchange: NOT supported are ... */
#define ISER_CM_NO_ZBVA	    0x80
#define ISER_CM_NO_SEND_INV 0x40

#endif
