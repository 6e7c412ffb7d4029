/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * change.c: a change of the record. Each swap carries the identification of the change
 * in the entry of this gateway: if the store does not answer, the next reading
 * shows whether the change took place. A change is tried again with the same identification,
 * so that a swap that reaches the store late cannot make the change twice.
 */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

void clu_change_begin(struct cluster_unit *u, enum change_kind kind)
{
	assert(u->change.kind == CHANGE_NONE);
	memset(&u->change, 0, sizeof(u->change));
	u->change.kind = kind;
	u->change.number = ++u->changes;
	u->change.since = u->now;
	u->change.generation = u->view.rec.generation;
}

static void change_end(struct cluster_unit *u, int result)
{
	u->change.ended = true;
	u->change.result = result;
	u->again = true;
}

bool clu_change_took(struct cluster_unit *u, int *result)
{
	if (!u->change.ended)
		return false;
	*result = u->change.result;
	u->change.kind = CHANGE_NONE;
	u->change.ended = false;
	return true;
}

/* Whether the record contains the change in progress, of which a swap had no answer. */
static bool took_place(struct cluster_unit *u)
{
	const struct cluster_gateway *g =
		cluster_record_gateway(&u->view.rec, u->cfg.self.id);

	if (u->change.kind == CHANGE_REMOVE)
		return !g;
	return g && g->last.run == u->cfg.run &&
	       g->last.number == u->change.number;
}

/* ---- what a change does to the draft ---- */

static struct cluster_gateway *register_self(struct cluster_unit *u)
{
	struct cluster_record *r = &u->ask.draft;
	const struct cluster_gateway *self = &u->cfg.self;
	struct cluster_gateway *g = cluster_record_gateway(r, self->id);
	struct cluster_change_id last = { 0, 0 };

	if (!g && r->ngateways == CLUSTER_GATEWAYS)
		return NULL;
	if (g)
		last = g->last;
	else
		g = &r->gateways[r->ngateways++];
	memset(g, 0, sizeof(*g));
	strcpy(g->id, self->id);
	g->number = self->number;
	g->block_size = self->block_size;
	g->nports = self->nports;
	memcpy(g->ports, self->ports, self->nports * sizeof(g->ports[0]));
	g->nportals = self->nportals;
	for (unsigned i = 0; i < self->nportals; i++)
		strcpy(g->portals[i], self->portals[i]);
	g->last = last;
	return g;
}

bool clu_self_differs(struct cluster_unit *u)
{
	const struct cluster_gateway *g =
		cluster_record_gateway(&u->view.rec, u->cfg.self.id);
	const struct cluster_gateway *self = &u->cfg.self;

	if (u->view.again || !g || g->number != self->number ||
	    g->block_size != self->block_size || g->nports != self->nports ||
	    g->nportals != self->nportals ||
	    memcmp(g->ports, self->ports, g->nports * sizeof(g->ports[0])) != 0)
		return true;
	for (unsigned i = 0; i < g->nportals; i++)
		if (strcmp(g->portals[i], self->portals[i]) != 0)
			return true;
	return false;
}

static int make_register(struct cluster_unit *u)
{
	enum cluster_rivalry why;

	if (cluster_record_rival(&u->ask.draft, &u->cfg.self, &why))
		return ERR_BUSY;
	return register_self(u) ? 0 : ERR_LIMIT;
}

static int make_owner(struct cluster_unit *u, const char *id, bool withheld)
{
	struct cluster_record *r = &u->ask.draft;

	if (r->generation != u->change.generation)
		return ERR_AGAIN;
	if (id[0] != '\0' && !cluster_record_gateway(r, id))
		return ERR_NOT_FOUND;
	memset(r->owner, 0, sizeof(r->owner));
	strcpy(r->owner, id);
	r->withheld = withheld;
	r->generation++;
	return 0;
}

static int make_remove(struct cluster_unit *u)
{
	struct cluster_record *r = &u->ask.draft;
	struct cluster_gateway *g = cluster_record_gateway(r, u->cfg.self.id);

	if (clu_is_self(u, r->owner)) {
		memset(r->owner, 0, sizeof(r->owner));
		r->generation++;
	}
	r->ngateways--;
	memmove(g, g + 1,
		(size_t)(&r->gateways[r->ngateways] - g) * sizeof(*g));
	memset(&r->gateways[r->ngateways], 0, sizeof(*g));
	return 0;
}

/* A change of the common state was decided on the state that is in force here. */
static int make_save(struct cluster_unit *u)
{
	struct cluster_record *r = &u->ask.draft;
	const struct cluster_save *s = u->saves.now;

	if (cluster_record_changed(r) > u->lu.known)
		return ERR_AGAIN;
	if (s->event_len > CLUSTER_EVENT_MAX)
		return ERR_LIMIT;
	r->parts[s->part].data = s->data;
	r->parts[s->part].len = s->len;
	r->parts[s->part].changed = r->version;
	return cluster_record_remember(r, s->part, s->event, s->event_len)
		       ? 0
		       : ERR_LIMIT;
}

/* Makes the draft of the new record. */
static int change_make(struct cluster_unit *u)
{
	struct cluster_record *r = &u->ask.draft;
	struct change *c = &u->change;
	struct cluster_gateway *g;
	int err = 0;

	*r = u->view.rec;
	r->version++;
	g = cluster_record_gateway(r, u->cfg.self.id);
	if (!g && c->kind != CHANGE_REGISTER)
		return ERR_NOT_FOUND;
	if (c->kind == CHANGE_REGISTER)
		err = make_register(u);
	else if (c->kind == CHANGE_OWN)
		err = make_owner(u, u->cfg.self.id, false);
	else if (c->kind == CHANGE_GRANT)
		err = make_owner(u, c->to, c->withheld);
	else if (c->kind == CHANGE_REMOVE)
		err = make_remove(u);
	else
		err = make_save(u);
	g = cluster_record_gateway(r, u->cfg.self.id);
	if (!err && g)
		g->last = (struct cluster_change_id){ u->cfg.run, c->number };
	if (!err && cluster_record_size(r) > CLUSTER_RECORD_MAX)
		err = ERR_LIMIT;
	c->version = r->version;
	return err;
}

void clu_change_step(struct cluster_unit *u)
{
	struct change *c = &u->change;
	int err;

	if (c->kind == CHANGE_NONE || c->ended || !clu_can_ask(u))
		return;
	if (!u->view.fresh) {
		clu_ask(u, OP_READ);
		return;
	}
	if (c->unsure && took_place(u)) {
		change_end(u, 0);
		return;
	}
	err = change_make(u);
	if (!err)
		err = clu_ask_swap(u);
	if (err)
		change_end(u, err);
}

void clu_change_swapped(struct cluster_unit *u, int result)
{
	/* a change that was given up */
	if (u->change.kind == CHANGE_NONE || u->ask.number != u->change.number)
		return;
	if (result == 0)
		change_end(u, 0);
	else if (result != ERR_AGAIN)
		u->change.unsure = true;
}
