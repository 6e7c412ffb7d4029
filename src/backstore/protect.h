/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protect.h: a store whose blocks have protection information (SBC-3 §4.22),
 * made of a store of data and a store of 8 bytes for each block. Its users see
 * one store.
 *
 * The information is stored inverted: a hole in the second store reads as
 * information of all FFh, which is not checked.
 *
 * Data and information are two writes, and the power may fail between them. So
 * the second store of a persistent medium has a mark for each region of
 * PROTECT_REGION bytes. The mark is on the medium before the first write to the
 * region, and is cleared when no request of the unit is in progress and all
 * data are flushed. A mark found at the start means that the last writes to its
 * region may be partial: BS_MEND replaces guards in that region that do not
 * match their blocks.
 */
#ifndef BACKSTORE_PROTECT_H
#define BACKSTORE_PROTECT_H

#include "backstore/backstore.h"

#define PROTECT_GRAIN	8u /* block size of the second store */
#define PROTECT_REGION	((uint64_t)16 << 20)
#define PROTECT_REGIONS ((uint64_t)1 << 20) /* maximum: 16 TiB of data */
/* Offsets in the second store of a persistent medium. */
#define PROTECT_MARKS_AT 4096u
#define PROTECT_PI_AT	 ((uint64_t)16 << 20)

/* The start of the second store. */
struct protect_head {
	uint8_t type;
	uint32_t block_size;
	uint8_t of[16]; /* identity of the data; zeros: the file beside it */
};

#define PROTECT_HEAD_LEN 64u

/* protect_head_put encodes a head. */
void protect_head_put(const struct protect_head *h,
		      uint8_t p[PROTECT_HEAD_LEN]);
/* protect_head_get: 0, or ERR_FORMAT: no head; ERR_DATA_DIGEST: damaged. */
int protect_head_get(struct protect_head *h, const uint8_t p[PROTECT_HEAD_LEN]);

struct bs_protect_config {
	struct bs *data, *pi; /* taken over; pi: blocks of PROTECT_GRAIN */
	uint8_t type;
	bool lasting;	/* persistent: pi has a head and marks */
	uint8_t of[16]; /* protect_head.of */
};

/* bs_protect_new: NULL: out of memory, and both stores are still open. */
struct bs *bs_protect_new(const struct bs_protect_config *cfg);

#endif
