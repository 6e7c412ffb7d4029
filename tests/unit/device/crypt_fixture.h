/* SPDX-License-Identifier: BSD-2-Clause */
/* crypt_fixture.h: the backstore of the fixture below a filter that encrypts.
 * The test may let the save of the next key fail. */
#ifndef TESTS_DEVICE_CRYPT_FIXTURE_H
#define TESTS_DEVICE_CRYPT_FIXTURE_H

#include "dev_fixture.h"

struct crypt_fixture {
	unsigned changes;
	bool answer_later; /* the test calls crypt_answer(later) */
	bool lost;	   /* the save of the key fails */
	struct bs_key_change *later;
};

static struct crypt_fixture crypt_fixture;

static inline bool crypt_random(void *arg, uint8_t *p, size_t n)
{
	struct crypt_fixture *c = arg;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i + 3 * c->changes);
	return true;
}

static inline void crypt_answer(struct bs_key_change *k)
{
	k->in_force = !crypt_fixture.lost;
	k->result = crypt_fixture.lost ? ERR_MEDIUM : 0;
	k->done(k);
}

static inline void crypt_keep(void *arg, struct bs_key_change *k)
{
	struct crypt_fixture *c = arg;

	c->changes++;
	c->later = k;
	if (!c->answer_later)
		crypt_answer(k);
}

static inline struct bs *fx_encrypted(struct bs *store)
{
	static const uint8_t key[BS_CRYPT_KEY] = { 1, 2, 3 };
	const struct bs_crypt_config cfg = { .key = key,
					     .nworkers = 1,
					     .random = crypt_random,
					     .keep = crypt_keep,
					     .arg = &crypt_fixture };

	crypt_fixture = (struct crypt_fixture){ .changes = 1 };
	return bs_crypt_new(store, &cfg);
}

#endif
