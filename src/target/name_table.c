/* SPDX-License-Identifier: BSD-2-Clause */
/* name_table.c: a hash table of the names of targets. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/entries.h"

#define CHAINS_MIN 16u

static uint32_t hash_of(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static struct tgt_named **chain_of(const struct tgt_names *t, const char *name)
{
	return &t->chains[hash_of(name) & (t->nchains - 1)];
}

struct tgt_named *tgt_names_find(const struct tgt_names *t, const char *name)
{
	struct tgt_named *e = t->nchains ? *chain_of(t, name) : NULL;

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

static void chain(struct tgt_names *t, struct tgt_named *e)
{
	struct tgt_named **c = chain_of(t, e->name);

	e->next = *c;
	*c = e;
}

/* Doubles the number of chains. */
static int grow(struct tgt_names *t)
{
	const struct tgt_names old = *t;

	t->nchains = old.nchains ? 2 * old.nchains : CHAINS_MIN;
	t->chains = calloc(t->nchains, sizeof(struct tgt_named *));
	if (!t->chains) {
		*t = old;
		return ERR_NOMEM;
	}
	for (unsigned i = 0; i < old.nchains; i++) {
		struct tgt_named *e, *next;

		for (e = old.chains[i]; e; e = next) {
			next = e->next;
			chain(t, e);
		}
	}
	free(old.chains);
	return 0;
}

int tgt_names_add(struct tgt_names *t, struct tgt_named *e)
{
	int err = t->n == t->nchains ? grow(t) : 0;

	if (err)
		return err;
	chain(t, e);
	t->n++;
	return 0;
}

void tgt_names_fini(struct tgt_names *t)
{
	free(t->chains);
	*t = (struct tgt_names){ .chains = NULL };
}
