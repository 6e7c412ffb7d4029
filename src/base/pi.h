/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pi.h: protection information of a logical block (SBC-3 §4.22). It has 8
 * bytes in wire order: the CRC of the block (logical block guard), the
 * application tag and the reference tag.
 */
#ifndef BASE_PI_H
#define BASE_PI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PI_LEN 8u

/* What the protection information of a run of blocks is checked against. */
struct pi_rule {
	uint8_t type;		     /* of protection: 1, 2, 3 */
	bool guard, app, ref;	     /* which of the three fields to check */
	uint16_t app_want, app_mask; /* compare the bits of app_mask only */
	uint32_t ref_want; /* of the first block; increases by 1 per block */
};

/* pi_guard returns the CRC of SBC-3 §4.22.4 over a block of len bytes. */
uint16_t pi_guard(const void *block, size_t len);

/* pi_put writes the three fields to pi. */
void pi_put(uint8_t pi[PI_LEN], uint16_t guard, uint16_t app, uint32_t ref);

/* pi_none sets the protection information of n blocks to FFh bytes, which
 * disables every check of the blocks. */
void pi_none(uint8_t *pi, size_t n);

/* pi_is_off returns whether the tags disable the checks of the block
 * (§§4.22.2.3 to 4.22.2.5). */
bool pi_is_off(uint8_t type, const uint8_t pi[PI_LEN]);

/* pi_check checks the protection information of block i of the run, len bytes
 * long, against r. Returns 0, ERR_PI_GUARD, ERR_PI_APP_TAG or
 * ERR_PI_REF_TAG. */
int pi_check(const struct pi_rule *r, const void *block, size_t len,
	     const uint8_t pi[PI_LEN], uint64_t i);

#endif
