/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * portals.c: the portals of the other gateways, which SendTargets reports besides
 * those of this gateway. They change with the records, while all workers read them;
 * SendTargets is rare, so one lock is enough.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/internal.h"

#define TOLD_MAX 256u /* portals in one answer for a target */

/* Returns how many there are; all[] has room for every portal of r. */
static unsigned fill(const struct member *m, const struct cluster_record *r,
		     struct remote_portal *all)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->ngateways; i++) {
		const struct cluster_gateway *g = &r->gateways[i];

		if (!strcmp(g->id, m->self.id))
			continue;
		for (unsigned k = 0; k < g->nportals; k++)
			n += portal_read(g->portals[k], &all[n]);
	}
	return n;
}

void member_set_portals(struct member *m, const struct cluster_record *r)
{
	size_t most = CLUSTER_GATEWAYS * CLUSTER_PORTALS;
	struct remote_portal *all = r ? calloc(most, sizeof(*all)) : NULL;
	unsigned n = all ? fill(m, r, all) : 0;
	struct remote_portal *old;

	if (r && !all) /* the earlier ones stay, until the next change */
		return;
	pthread_mutex_lock(&m->gateway->lock);
	old = m->remotes;
	m->remotes = all;
	m->nremotes = n;
	pthread_mutex_unlock(&m->gateway->lock);
	free(old);
}

/* What an answer has already, since gateways share several units. */
struct told {
	const struct remote_portal *all[TOLD_MAX];
	unsigned n;
};

static bool is_told(const struct told *t, const struct remote_portal *p)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->all[i]->tag == p->tag &&
		    !strcmp(t->all[i]->address, p->address))
			return true;
	return false;
}

void gateway_portals(struct gateway *c, const char *target,
		     const struct dev_map *map, tgt_put_portal *put, void *to)
{
	uint32_t hash = portal_hash(target);
	struct told told = { .n = 0 };

	pthread_mutex_lock(&c->lock);
	list_for_each(it, &c->members) {
		const struct member *m = list_entry(it, struct member, link);

		if (!m->nremotes || !dev_map_has(map, m->unit->lu))
			continue;
		for (unsigned i = 0; i < m->nremotes && told.n < TOLD_MAX; i++)
			if (m->remotes[i].target == hash &&
			    !is_told(&told, &m->remotes[i]))
				told.all[told.n++] = &m->remotes[i];
	}
	for (unsigned i = 0; i < told.n; i++)
		put(to, told.all[i]->address, told.all[i]->tag);
	pthread_mutex_unlock(&c->lock);
}
