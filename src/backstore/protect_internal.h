/* SPDX-License-Identifier: BSD-2-Clause */
/* protect_internal.h: the common part of protect.c and protect_mend.c. */
#ifndef BACKSTORE_PROTECT_INTERNAL_H
#define BACKSTORE_PROTECT_INTERNAL_H

#include "backstore/protect.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/pi.h"

#define MARKS_AT_ONCE 512u /* per write */

struct bs_protect {
	struct bs bs;
	struct bs_protection protection; /* any worker, atomic */
	struct bs *data, *pi;
	bool lasting;
	uint8_t of[16];
	/* [region]: its mark is on the medium; any worker, atomic */
	uint8_t *marked;
	uint8_t ones[MARKS_AT_ONCE * 8]; /* the value of set marks */
	uint64_t covered; /* bytes of data whose information pi has room for */
};

static inline struct bs_protect *protect_of(struct bs *b)
{
	return container_of(b, struct bs_protect, bs);
}

/* protect_pi_off: the offset in pi of the information of the block at off. */
static inline uint64_t protect_pi_off(const struct bs_protect *p, uint64_t off)
{
	return (p->lasting ? PROTECT_PI_AT : 0) +
	       off / p->data->block_size * PI_LEN;
}

/* protect_invert converts between the stored form and the wire form. */
static inline void protect_invert(uint8_t *pi, size_t len)
{
	for (size_t i = 0; i < len; i++)
		pi[i] = (uint8_t)~pi[i];
}

/* protect_mend carries out BS_MEND. */
void protect_mend(struct bs_protect *p, struct bs_req *req);

#endif
