/* SPDX-License-Identifier: BSD-2-Clause */
/* tokens.c: writes revoke the tokens of the written blocks (tokens.h). */
#include "device/unit/tokens.h"

void dev_token_revoke(struct dev_token_cover *c)
{
	__atomic_store_n(&c->revoked, true, __ATOMIC_RELAXED);
}

static bool covers(const struct dev_token_cover *c, uint64_t lba,
		   uint64_t blocks)
{
	for (unsigned i = 0; i < c->n; i++) {
		const struct dev_token_range *r = &c->ranges[i];

		if (ranges_overlap(lba, blocks, r->lba, r->blocks))
			return true;
	}
	return false;
}

void dev_tokens_touch(struct dev_lu *lu, unsigned worker, uint64_t lba,
		      uint64_t blocks)
{
	list_for_each(it, &lu->lanes[worker].tokens) {
		struct dev_token_cover *c =
			list_entry(it, struct dev_token_part, link)->cover;

		if (covers(c, lba, blocks))
			dev_token_revoke(c);
	}
}
