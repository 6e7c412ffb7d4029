/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.c: the functions of unit.h, and the order of the decisions in a tick. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

/* ---- the tick ---- */

/* Puts the record in force here if it is newer than what is. */
static void adopt_step(struct cluster_unit *u)
{
	struct work *w = &u->lu;

	if (w->failed) {
		w->failed = false;
		w->retry_at = u->now + u->cfg.beacon;
		clu_say(u, "the state of the unit in the record: ",
			err_str(w->adopt_step.result), "");
	}
	/* The parts of a save in progress are not in force yet, and its event is not
	 * for the nexuses of this gateway. */
	if (w->adopt_busy || u->saves.now || u->role == CLUSTER_FENCED)
		return;
	if ((w->known < cluster_record_changed(&u->view.rec) ||
	     w->settled < w->barrier) &&
	    clu_due(u, w->retry_at))
		clu_adopt_now(u);
}

static void role_step(struct cluster_unit *u)
{
	switch (u->role) {
	case CLUSTER_JOINING:
		clu_join_step(u);
		break;
	case CLUSTER_STANDING_BY:
		clu_stand_by_step(u);
		break;
	case CLUSTER_TAKING:
		clu_take_step(u);
		break;
	case CLUSTER_OWNER:
		clu_owner_step(u);
		break;
	case CLUSTER_YIELDING:
		clu_yield_step(u);
		break;
	case CLUSTER_LEAVING:
		clu_leave_step(u);
		break;
	case CLUSTER_FENCED:
		clu_fenced_step(u);
		break;
	}
}

/* Passes the end of a request on to the file that decides what follows. */
static void ask_step(struct cluster_unit *u)
{
	int result;
	enum op op = clu_ask_look(u, &result);

	if (op == OP_SWAP)
		clu_change_swapped(u, result);
	else if (op != OP_NONE && op != OP_READ)
		clu_take_asked(u, op, result);
}

/* Reads the record if a newer one may exist, and now and then anyway: notes can be
 * lost. */
static void read_step(struct cluster_unit *u)
{
	if (u->role == CLUSTER_FENCED)
		return;
	if (clu_due(u, u->view.at + u->cfg.silence))
		u->view.wanted = true;
	if (u->view.wanted && clu_can_ask(u))
		clu_ask(u, OP_READ);
}

static void callers_step(struct cluster_unit *u)
{
	struct callers *c = &u->callers;
	struct list *l;

	while ((l = list_pop_front(&c->refused))) {
		struct cluster_step *s =
			list_entry(l, struct cluster_step, link);

		s->done(s);
	}
	if (c->take && c->take_since == 0)
		c->take_since = u->now;
	if (!c->take)
		c->take_since = 0;
	else if (clu_due(u, c->take_since + 3 * u->cfg.patience))
		clu_step_end(&c->take, ERR_TIMEOUT);
	if (c->leave && c->leave_since == 0)
		c->leave_since = u->now;
}

static void turn(struct cluster_unit *u)
{
	callers_step(u);
	ask_step(u);
	clu_beacon_look(u);
	clu_posts_look(u);
	if (u->fence_seen && u->role != CLUSTER_FENCED)
		clu_fenced_begin(u);
	clu_cut_off_step(u);
	if (u->role != CLUSTER_FENCED) {
		clu_save_step(u);
		if (u->role == CLUSTER_STANDING_BY ||
		    u->role == CLUSTER_OWNER ||
		    u->change.kind == CHANGE_REGISTER)
			clu_register_step(u);
	}
	role_step(u);
	adopt_step(u);
	clu_confirm_step(u);
	clu_refresh_step(u);
	clu_change_step(u);
	read_step(u);
}

xtime cluster_unit_tick(struct cluster_unit *u, xtime now)
{
	struct callers *c = &u->callers;

	if (u->ticking) {
		u->again = true;
		return now;
	}
	u->ticking = true;
	u->now = now;
	do {
		u->again = false;
		u->next = XTIME_NEVER;
		turn(u);
	} while (u->again);
	u->ticking = false;
	if (c->leave &&
	    (c->left || clu_due(u, c->leave_since + u->cfg.patience))) {
		xtime next = c->left ? XTIME_NEVER : u->next;

		/* the caller may free u */
		clu_step_end(&c->leave, c->left ? 0 : ERR_TIMEOUT);
		return next;
	}
	return u->next;
}

/* ---- what callers want ---- */

static void refuse(struct cluster_unit *u, struct cluster_step *s, int result)
{
	s->result = result;
	list_init(&s->link);
	list_push_back(&u->callers.refused, &s->link);
	clu_wake(u);
}

void cluster_unit_take(struct cluster_unit *u, enum cluster_take how,
		       struct cluster_step *s)
{
	if (u->callers.take || u->callers.yield || u->callers.leaving ||
	    u->role == CLUSTER_YIELDING) {
		refuse(u, s, ERR_BUSY);
		return;
	}
	u->callers.take = s;
	u->callers.how = how;
	u->callers.generation = u->view.rec.generation;
	u->callers.take_since = 0;
	clu_wake(u);
}

void cluster_unit_yield(struct cluster_unit *u, const char *to,
			struct cluster_step *s)
{
	if (u->callers.yield || u->callers.take || u->callers.leaving) {
		refuse(u, s, ERR_BUSY);
		return;
	}
	if (to && strlen(to) >= CLUSTER_ID_SIZE) {
		refuse(u, s, ERR_NOT_FOUND);
		return;
	}
	strcpy(u->callers.to, to ? to : "");
	u->callers.yield = s;
	clu_wake(u);
}

void cluster_unit_leave(struct cluster_unit *u, struct cluster_step *s)
{
	assert(!u->callers.leaving);
	u->callers.leave = s;
	u->callers.leaving = true;
	clu_wake(u);
}

void cluster_unit_describe(struct cluster_unit *u,
			   const struct cluster_gateway *self)
{
	assert(clu_is_self(u, self->id));
	u->cfg.self = *self;
	clu_wake(u);
}

void cluster_unit_fenced(struct cluster_unit *u)
{
	u->fence_seen = true;
	clu_wake(u);
}

void cluster_unit_reopened(struct cluster_unit *u, struct cluster_store *store)
{
	clu_store_use(u, store);
	clu_wake(u);
}

void cluster_unit_status(const struct cluster_unit *u,
			 struct cluster_status *st)
{
	*st = u->count;
	st->role = u->role;
	st->record = u->view.rec.version ? &u->view.rec : NULL;
	st->refused = u->peers.refused[0] ? u->peers.refused : NULL;
}

/* ---- begin and end ---- */

static bool valid(const struct cluster_unit_config *cfg)
{
	return cfg->self.id[0] != '\0' && cfg->self.number >= 1 &&
	       cfg->self.number <= CLUSTER_GATEWAYS &&
	       cfg->self.nports <= CLUSTER_PORTS &&
	       cfg->self.nportals <= CLUSTER_PORTALS && cfg->beacon > 0 &&
	       cfg->silence >= 3 * cfg->beacon;
}

struct cluster_unit *cluster_unit_new(const struct cluster_unit_config *cfg,
				      const struct cluster_unit_ops *ops,
				      struct cluster_store *store, xtime now)
{
	struct cluster_unit *u = calloc(1, sizeof(*u));

	assert(valid(cfg));
	if (!u)
		return NULL;
	u->cfg = *cfg;
	u->ops = ops;
	u->now = now;
	u->role = CLUSTER_JOINING;
	u->lu.access = CLUSTER_UNAVAILABLE;
	list_init(&u->saves.queue);
	list_init(&u->saves.unread);
	list_init(&u->saves.reading);
	list_init(&u->saves.waiting);
	list_init(&u->callers.refused);
	u->ask.answered = u->ask.heard = u->view.at = now;
	clu_store_use(u, store);
	return u;
}

void cluster_unit_free(struct cluster_unit *u)
{
	if (!u)
		return;
	free(u->view.blob);
	free(u->ask.in);
	free(u->ask.out);
	free(u);
}
