/* SPDX-License-Identifier: BSD-2-Clause */
/* header.h: the iSER header (RFC 7145 §9.1 to §9.4), its codec. */
#ifndef DATAMOVER_ISER_HEADER_H
#define DATAMOVER_ISER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* iser_header_decode decodes n bytes; ERR_TRUNCATED, ERR_OPCODE. Fields that
 * the header marks as not valid become zero. */
int iser_header_decode(struct iser_header *h, const uint8_t *p, size_t n);
/* iser_header_encode writes all ISER_HEADER_LEN bytes; reserved fields are
 * zero. */
void iser_header_encode(const struct iser_header *h,
			uint8_t p[ISER_HEADER_LEN]);

/* Flags in the private data of the CM exchange: NOT supported are ... */
#define ISER_CM_NO_ZBVA	    0x80
#define ISER_CM_NO_SEND_INV 0x40

#endif
