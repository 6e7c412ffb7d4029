/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protect.h: a store whose blocks have protection information (SBC-3 §4.22):
 * a store of data and, beside it, one of 8 bytes for each block. It is one
 * store to its users: what makes no difference to them is done here.
 *
 * The information is kept inverted, so that a hole in the second store is
 * information of all FFh, which is checked by nobody.
 *
 * Data and information are two writes, and the power may fail between them.
 * So the second store of a medium that stays has a mark for each region of
 * REGION bytes: it is on the medium before the first write to the region, and
 * goes when all of the unit has come to rest and was flushed. Where marks are
 * found at the start, what was written last may be half there: BS_MEND makes
 * the guards of those regions' blocks anew where they do not fit.
 */
#ifndef BACKSTORE_PROTECT_H
#define BACKSTORE_PROTECT_H

#include "backstore/backstore.h"

#define PROTECT_GRAIN	8u /* block size of the second store */
#define PROTECT_REGION	((uint64_t)16 << 20)
#define PROTECT_REGIONS ((uint64_t)1 << 20) /* so much is the most: 16 TiB */
/* Places in the second store of a medium that stays. */
#define PROTECT_MARKS_AT 4096u
#define PROTECT_PI_AT	 ((uint64_t)16 << 20)

/* What the second store begins with. */
struct protect_head {
	uint8_t type;
	uint32_t block_size;
	uint8_t of[16]; /* whose information it is; zeros: of who is beside */
};

#define PROTECT_HEAD_LEN 64u

void protect_head_put(const struct protect_head *h,
		      uint8_t p[PROTECT_HEAD_LEN]);
/* ERR_FORMAT: it is none; ERR_DATA_DIGEST: it is damaged. */
int protect_head_get(struct protect_head *h, const uint8_t p[PROTECT_HEAD_LEN]);

struct bs_protect_config {
	struct bs *data, *pi; /* taken over; pi: blocks of PROTECT_GRAIN */
	uint8_t type;
	bool lasting;	/* pi has head and marks */
	uint8_t of[16]; /* of the head */
};

/* bs_protect_new: NULL: out of memory; both stores are still open then. */
struct bs *bs_protect_new(const struct bs_protect_config *cfg);

#endif
