/* SPDX-License-Identifier: BSD-2-Clause */
/* header.c: the iSER header's codec, RFC 7145 §9. */
#include "datamover/iser/header.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

#define FLAG_WSV    0x08
#define FLAG_RSV    0x04
#define FLAG_REJECT 0x01

/* [RFC 7145: 9.2 #2-3 #9] */
static void decode_control(struct iser_header *h, const uint8_t *p)
{
	h->wsv = p[0] & FLAG_WSV;
	h->rsv = p[0] & FLAG_RSV;
	if (h->wsv) {
		h->write_stag = get_be32(p + 4);
		h->write_base = get_be64(p + 8);
	}
	if (h->rsv) {
		h->read_stag = get_be32(p + 16);
		h->read_base = get_be64(p + 20);
	}
}

/* [RFC 7145: 9.3 #5-6, 9.4 #5-6] */
int iser_header_decode(struct iser_header *h, const uint8_t *p, size_t n)
{
	memset(h, 0, sizeof(*h));
	if (n < ISER_HEADER_LEN)
		return ERR_TRUNCATED;
	h->opcode = p[0] >> 4;
	switch (h->opcode) {
	case ISER_CONTROL:
		decode_control(h, p);
		return 0;
	case ISER_HELLO:
	case ISER_HELLO_REPLY:
		h->reject =
			h->opcode == ISER_HELLO_REPLY && (p[0] & FLAG_REJECT);
		h->max_ver = p[1] >> 4;
		h->min_ver = p[1] & 0x0f;
		h->depth = get_be16(p + 2);
		return 0;
	default:
		return ERR_OPCODE;
	}
}

/* [RFC 7145: 9.2 #1 #4-7] */
static void encode_control(const struct iser_header *h, uint8_t *p)
{
	if (h->wsv) {
		p[0] |= FLAG_WSV;
		put_be32(p + 4, h->write_stag);
		put_be64(p + 8, h->write_base);
	}
	if (h->rsv) {
		p[0] |= FLAG_RSV;
		put_be32(p + 16, h->read_stag);
		put_be64(p + 20, h->read_base);
	}
}

/* [RFC 7145: 9.2 #8, 9.4 #2-4] */
void iser_header_encode(const struct iser_header *h, uint8_t p[ISER_HEADER_LEN])
{
	memset(p, 0, ISER_HEADER_LEN);
	p[0] = (uint8_t)(h->opcode << 4);
	if (h->opcode == ISER_CONTROL) {
		encode_control(h, p);
		return;
	}
	p[0] |= h->reject ? FLAG_REJECT : 0;
	p[1] = (uint8_t)(h->max_ver << 4 | (h->min_ver & 0x0f));
	put_be16(p + 2, h->depth);
}
