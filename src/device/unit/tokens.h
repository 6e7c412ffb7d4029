/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tokens.h: the blocks of a ROD token (copy.h). Each write compares its blocks with
 * those of the tokens: a write to a block of a token revokes the token.
 */
#ifndef DEVICE_TOKENS_H
#define DEVICE_TOKENS_H

#include "device/unit/unit.h"

#define TOKEN_RANGES 32u

struct dev_token_range {
	uint64_t lba, blocks;
};

/* Embedded in struct dev_token. The ranges do not change while it is listed. */
struct dev_token_cover {
	bool revoked; /* atomic: the blocks were written, or the token is used up */
	unsigned n;
	struct dev_token_range ranges[TOKEN_RANGES];
};

/* A token in the lane of one worker. */
struct dev_token_part {
	struct list link; /* dev_lane.tokens */
	struct dev_token_cover *cover;
};

/* dev_token_revoke marks the token as revoked. On any worker. */
void dev_token_revoke(struct dev_token_cover *c);
/* dev_tokens_touch revokes the tokens in the lane of the calling worker that have a
 * block of [lba, lba + blocks), which the caller then writes. */
void dev_tokens_touch(struct dev_lu *lu, unsigned worker, uint64_t lba,
		      uint64_t blocks);

#endif
