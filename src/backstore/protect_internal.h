/* SPDX-License-Identifier: BSD-2-Clause */
/* protect_internal.h: what protect.c and protect_mend.c share. */
#ifndef BACKSTORE_PROTECT_INTERNAL_H
#define BACKSTORE_PROTECT_INTERNAL_H

#include "backstore/protect.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/pi.h"

#define MARKS_AT_ONCE 512u /* of one write */

struct bs_protect {
	struct bs bs;
	struct bs_protection protection; /* any worker; atomic */
	struct bs *data, *pi;
	bool lasting;
	uint8_t of[16];
	uint8_t *marked; /* [region], any worker: its mark is on the medium */
	uint8_t ones[MARKS_AT_ONCE * 8]; /* marks to write from */
	uint64_t covered; /* bytes of data that pi has room for */
};

static inline struct bs_protect *protect_of(struct bs *b)
{
	return container_of(b, struct bs_protect, bs);
}

static inline uint64_t protect_pi_off(const struct bs_protect *p, uint64_t off)
{
	return (p->lasting ? PROTECT_PI_AT : 0) +
	       off / p->data->block_size * PI_LEN;
}

/* Between what is kept and what is on the wire. */
static inline void protect_invert(uint8_t *pi, size_t len)
{
	for (size_t i = 0; i < len; i++)
		pi[i] = (uint8_t)~pi[i];
}

void protect_mend(struct bs_protect *p, struct bs_req *req);

#endif
