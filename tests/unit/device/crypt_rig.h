/* SPDX-License-Identifier: BSD-2-Clause */
/* crypt_rig.h: the rig's store behind a filter that encrypts, whose next key
 * the test may have lost. */
#ifndef TESTS_DEVICE_CRYPT_RIG_H
#define TESTS_DEVICE_CRYPT_RIG_H

#include "dev_rig.h"

struct crypt_rig {
	unsigned changes;
	bool answer_later; /* the test calls crypt_answer(later) */
	bool lost;	   /* the key can't be kept */
	struct bs_key_change *later;
};

static struct crypt_rig crypt_rig;

static inline bool crypt_random(void *arg, uint8_t *p, size_t n)
{
	struct crypt_rig *c = arg;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i + 3 * c->changes);
	return true;
}

static inline void crypt_answer(struct bs_key_change *k)
{
	k->in_force = !crypt_rig.lost;
	k->result = crypt_rig.lost ? ERR_MEDIUM : 0;
	k->done(k);
}

static inline void crypt_keep(void *arg, struct bs_key_change *k)
{
	struct crypt_rig *c = arg;

	c->changes++;
	c->later = k;
	if (!c->answer_later)
		crypt_answer(k);
}

static inline struct bs *rig_encrypted(struct bs *store)
{
	static const uint8_t key[BS_CRYPT_KEY] = { 1, 2, 3 };
	const struct bs_crypt_config cfg = { .key = key,
					     .nworkers = 1,
					     .random = crypt_random,
					     .keep = crypt_keep,
					     .arg = &crypt_rig };

	crypt_rig = (struct crypt_rig){ .changes = 1 };
	return bs_crypt_new(store, &cfg);
}

#endif
