/* SPDX-License-Identifier: BSD-2-Clause */
/* describe.c: what a gateway reports of itself to the other gateways, for each
 * unit: its target ports, and the portals through which initiators reach the unit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "daemon/cluster/internal.h"
#include "daemon/config/model.h"
#include "daemon/config/model_cluster.h"
#include "daemon/serve/portals.h"

/* ---- target ports ---- */

static bool has_backstore(const struct cfg_luns *luns, unsigned backstore)
{
	for (unsigned i = 0; i < luns->n; i++)
		if (luns->v[i].index == backstore)
			return true;
	return false;
}

static bool has_unit(const struct cfg_target *t, unsigned backstore)
{
	bool has = has_backstore(&t->luns, backstore);

	for (unsigned i = 0; i < t->maps.n; i++)
		has |= has_backstore(&t->maps.v[i].luns, backstore);
	return has;
}

/* A gateway as it is being described. */
struct description {
	const struct daemon *d;
	struct cluster_gateway *self;
	unsigned missed;  /* ports and portals without a place */
	const char *port; /* that is looked for */
};

static void take_port(void *arg, const char *name, uint16_t rtpi)
{
	struct description *x = arg;
	struct cluster_gateway *g = x->self;

	if (strcmp(name, x->port) != 0)
		return;
	if (g->nports < CLUSTER_PORTS)
		g->ports[g->nports++] = rtpi;
	else
		x->missed++;
}

static void add_port(struct description *x, const struct cfg_target *t,
		     const struct portal *p)
{
	char name[256];

	snprintf(name, sizeof(name), "%s,t,0x%04x", t->name, p->tag);
	x->port = name;
	dev_ports_each(x->d->server, take_port, x);
}

/* ---- portals ---- */

static void add_portal(struct description *x, const struct cfg_target *t,
		       const struct portal *p, const char *address)
{
	struct cluster_gateway *g = x->self;

	if (g->nportals < CLUSTER_PORTALS &&
	    portal_write(g->portals[g->nportals], address, p->tag, t->name))
		g->nportals++;
	else
		x->missed++;
}

static bool is_loopback(const char *name)
{
	struct net_addr a;

	return !net_addr_parse(&a, name, 0) && net_addr_is_loopback(&a);
}

/* Adds the addresses of a portal group, but those that are of no use elsewhere:
 * loopback, if there is another one. */
static void add_addresses(struct description *x, const struct cfg_target *t,
			  bool loopback)
{
	for (unsigned i = 0; i < t->portal_groups.n; i++) {
		const struct cfg_portal *c =
			&x->d->model->portals.v[t->portals[i]];
		const struct portal *p = x->d->portals.all[t->portals[i]];
		char name[NET_ADDR_STR];

		for (unsigned k = 0; portal_address(c, p, k, name); k++)
			if (!portal_is_wildcard(name) && !strchr(name, '%') &&
			    (!c->announce.n && is_loopback(name)) == loopback)
				add_portal(x, t, p, name);
	}
}

static void add_target(struct description *x, const struct cfg_target *t)
{
	unsigned before = x->self->nportals;

	for (unsigned i = 0; i < t->portal_groups.n; i++)
		add_port(x, t, x->d->portals.all[t->portals[i]]);
	add_addresses(x, t, false);
	if (x->self->nportals == before)
		add_addresses(x, t, true);
}

/* ---- the whole ---- */

/* A drop closes the backstore, and opens it with the same blocks. */
static uint16_t block_size(const struct member *m)
{
	const struct bs *b = dev_lu_backstore(m->unit->lu);

	return b ? (uint16_t)b->block_size : m->self.block_size;
}

bool member_describe(struct member *m)
{
	const struct cfg_cluster *c = gateway_section(m->gateway);
	const struct cfg_model *model = m->gateway->daemon->model;
	struct cluster_gateway *g = calloc(1, sizeof(*g));
	struct description x = { .d = m->gateway->daemon, .self = g };
	const struct cfg_backstore *b =
		cfg_backstore_find(model, m->unit->name);
	bool differs;

	if (!g)
		return false;
	snprintf(g->id, sizeof(g->id), "%s", c->gateway);
	g->number = (uint16_t)c->options.number;
	g->block_size = block_size(m);
	for (unsigned i = 0; b && i < model->targets.n; i++)
		if (has_unit(&model->targets.v[i],
			     (unsigned)(b - model->backstores.v)))
			add_target(&x, &model->targets.v[i]);
	differs = memcmp(g, &m->self, sizeof(*g)) != 0;
	m->self = *g;
	free(g);
	if (differs && x.missed)
		member_say(m,
			   "%u of its target ports or portals are unknown to "
			   "the other gateways, whose record has places for %u "
			   "ports and %u portals",
			   x.missed, CLUSTER_PORTS, CLUSTER_PORTALS);
	else if (differs && m->self.nports && !m->self.nportals)
		member_say(
			m,
			"iserd listens at all addresses, so that the "
			"other gateways have none to report to initiators; give "
			"the portal group announce, or --announce");
	return differs;
}
