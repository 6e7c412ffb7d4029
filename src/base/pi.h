/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pi.h: protection information of a logical block (SBC-3 §4.22): 8 bytes, as
 * they are on the wire: a CRC of the block (logical block guard), an
 * application tag, a reference tag.
 */
#ifndef BASE_PI_H
#define BASE_PI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PI_LEN 8u

/* What the information of a run of blocks is held against. */
struct pi_rule {
	uint8_t type; /* of protection: 1, 2, 3 */
	bool guard, app, ref;
	uint16_t app_want, app_mask; /* bits of the mask are compared */
	uint32_t ref_want; /* of the first block; then one more each */
};

/* pi_guard: the CRC of SBC-3 §4.22.4 over a block of len bytes. */
uint16_t pi_guard(const void *block, size_t len);

void pi_put(uint8_t pi[PI_LEN], uint16_t guard, uint16_t app, uint32_t ref);

/* pi_none makes n blocks' information all FFh: nothing is checked. */
void pi_none(uint8_t *pi, size_t n);

/* pi_is_off: the tags say that the block is not to be checked (§§4.22.2.3 to
 * 4.22.2.5). */
bool pi_is_off(uint8_t type, const uint8_t pi[PI_LEN]);

/* pi_check holds the information of block i of the run, which has len bytes,
 * against r: 0, ERR_PI_GUARD, ERR_PI_APP_TAG, ERR_PI_REF_TAG. */
int pi_check(const struct pi_rule *r, const void *block, size_t len,
	     const uint8_t pi[PI_LEN], uint64_t i);

#endif
