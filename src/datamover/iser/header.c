/* SPDX-License-Identifier: BSD-2-Clause */
/* header.c: the Hello and HelloReply of the iSER header's codec, RFC 7145 §9. */
#include "datamover/iser/header.h"

#include "base/bytes.h"
#include "base/err.h"

#define FLAG_REJECT 0x01

/* [RFC 7145: 9.3 #5-6, 9.4 #5-6] */
int iser_hello_decode(struct iser_header *h, const uint8_t *p)
{
	switch (h->opcode) {
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

/* [RFC 7145: 9.4 #2-4] */
void iser_hello_encode(const struct iser_header *h, uint8_t *p)
{
	p[0] |= h->reject ? FLAG_REJECT : 0;
	p[1] = (uint8_t)(h->max_ver << 4 | (h->min_ver & 0x0f));
	put_be16(p + 2, h->depth);
}
