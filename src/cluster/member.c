/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * member.c: a gateway that is not the owner: it joins, stands by and asks the
 * owner whether it is there, leaves, and begins anew after a fence.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

/* How many gateways with lower numbers stand by: they take the unit first. */
static unsigned rank(struct cluster_unit *u)
{
	const struct cluster_record *r = &u->view.rec;
	unsigned n = 0;

	for (unsigned i = 0; i < r->ngateways; i++)
		if (r->gateways[i].number < u->cfg.self.number &&
		    strcmp(r->gateways[i].id, r->owner) != 0)
			n++;
	return n;
}

/* ---- joining ---- */

/* Writes why this gateway cannot join beside g. */
static void refuse(struct cluster_unit *u, const struct cluster_gateway *g)
{
	struct peers *p = &u->peers;
	size_t size = sizeof(p->refused);

	if (p->rivalry == CLUSTER_RIVAL_NUMBER)
		snprintf(
			p->refused, size,
			"gateway %s has the number of this gateway: give each gateway its own",
			g->id);
	else if (p->rivalry == CLUSTER_RIVAL_PORT)
		snprintf(
			p->refused, size,
			"gateway %s has a relative target port identifier of this gateway: give each gateway its own",
			g->id);
	else
		snprintf(
			p->refused, size,
			"gateway %s serves the unit with blocks of %u bytes, this gateway with %u: give all gateways the same block-size",
			g->id, g->block_size, u->cfg.self.block_size);
}

/* Returns whether this gateway cannot join beside another one. */
static bool has_rival(struct cluster_unit *u)
{
	const struct cluster_gateway *g;
	enum cluster_rivalry why;

	g = cluster_record_rival(&u->view.rec, &u->cfg.self, &why);
	if (why != u->peers.rivalry) {
		u->peers.rivalry = why;
		u->peers.refused[0] = '\0';
		if (g) {
			refuse(u, g);
			clu_say(u, u->peers.refused, "", "");
		}
	}
	return g != NULL;
}

bool clu_register_step(struct cluster_unit *u)
{
	int result;

	if (u->change.kind == CHANGE_REGISTER && clu_change_took(u, &result)) {
		if (result == ERR_LIMIT)
			clu_say(u, "this gateway does not join: ",
				"the unit has 16 gateways", "");
		if (result)
			u->peers.register_at = u->now + u->cfg.silence;
		else
			clu_post(u, POST_CHANGED, u->view.rec.version);
	}
	if (!clu_self_differs(u))
		return u->change.kind != CHANGE_REGISTER;
	if (u->change.kind == CHANGE_NONE && clu_due(u, u->peers.register_at) &&
	    !has_rival(u))
		clu_change_begin(u, CHANGE_REGISTER);
	return false;
}

/* Without a record, this is the first gateway, or the record was removed: then its owner
 * answers, and writes it again. A new record would be without the reservations. */
static bool is_first(struct cluster_unit *u)
{
	struct post *p = &u->ask.posts[POST_PROBE];

	if (!u->peers.alone && !u->callers.probing) {
		u->callers.probing = true;
		p->ended = false;
		clu_post(u, POST_PROBE, 0);
	} else if (!u->peers.alone && p->ended) {
		p->ended = u->callers.probing = false;
		u->peers.alone = p->note.result == 0 && p->note.nacks == 0;
		u->view.fresh = u->peers.alone;
		if (!u->peers.alone)
			u->ask.retry_at = u->now + u->cfg.beacon;
		if (p->note.nacks && !u->peers.missing)
			clu_say(u,
				"the record was removed; waiting for gateway ",
				p->note.acks[0], " to write it again");
		u->peers.missing = p->note.nacks > 0;
	}
	return u->peers.alone;
}

void clu_join_step(struct cluster_unit *u)
{
	clu_access_is(u, CLUSTER_UNAVAILABLE);
	clu_step_end(&u->callers.yield, ERR_WRONG_STATE);
	if (u->callers.leaving && u->view.fresh && u->view.rec.version == 0) {
		u->callers.left = true;
		return;
	}
	if (!u->view.fresh) {
		if (clu_can_ask(u))
			clu_ask(u, OP_READ);
		return;
	}
	if (has_rival(u)) {
		if (clu_due(u, u->view.at + u->cfg.silence))
			u->view.fresh = false;
		return;
	}
	if (u->view.rec.version == 0 && !is_first(u))
		return;
	if (!clu_register_step(u))
		return;
	if (u->lu.known >= cluster_record_changed(&u->view.rec))
		clu_stand_by(u);
}

/* ---- standing by ---- */

void clu_beacon_look(struct cluster_unit *u)
{
	struct post *p = &u->ask.posts[POST_BEACON];

	if (!p->ended)
		return;
	p->ended = false;
	if (clu_post_acked(p, u->view.rec.owner)) {
		u->peers.heard = u->now;
		u->peers.unanswered = 0;
	} else if (p->note.result == 0) {
		u->peers.unanswered++;
	}
}

/* Asks the owner whether it is there. Returns whether it is gone. One that was stopped
 * itself finds that much time has passed, so time alone is not enough. */
static bool owner_gone(struct cluster_unit *u)
{
	const struct post *p = &u->ask.posts[POST_BEACON];
	xtime silence = u->cfg.silence + 2 * u->cfg.beacon * (xtime)rank(u);

	if (!p->busy && clu_due(u, p->sent + u->cfg.beacon))
		clu_post(u, POST_BEACON, u->view.rec.version);
	return u->peers.unanswered >= 2 &&
	       clu_due(u, u->peers.heard + silence) &&
	       u->ask.answered >= u->peers.heard;
}

/* A caller wants the unit here. */
static void ask_for_unit(struct cluster_unit *u)
{
	struct callers *c = &u->callers;
	const struct post *p = &u->ask.posts[POST_YIELD];

	if (c->how == CLUSTER_TAKE_UNLESS_MOVED &&
	    u->view.rec.owner[0] != '\0' &&
	    u->view.rec.generation != c->generation)
		clu_step_end(&c->take, ERR_BUSY);
	else if (c->how == CLUSTER_TAKE_FENCE || u->view.rec.owner[0] == '\0' ||
		 clu_due(u, c->take_since + u->cfg.patience))
		clu_take_begin(u, u->view.rec.owner[0] != '\0');
	else if (clu_due(u, p->sent + NOTE_AGAIN))
		clu_post(u, POST_YIELD, u->view.rec.version);
}

static void stand_by_decide(struct cluster_unit *u)
{
	const char *owner = u->view.rec.owner;

	if (clu_is_self(u, owner)) {
		clu_take_begin(u, false);
	} else if (u->callers.take) {
		ask_for_unit(u);
	} else if (owner[0] == '\0') {
		if (!u->view.rec.withheld &&
		    clu_due(u, u->peers.heard + u->cfg.beacon * (xtime)rank(u)))
			clu_take_begin(u, false);
	} else if (owner_gone(u) && u->cfg.failover) {
		clu_say(u, "gateway ", owner,
			" does not answer: taking the unit from it");
		clu_take_begin(u, true);
	}
}

void clu_stand_by_step(struct cluster_unit *u)
{
	/* the record is read every `silence` */
	bool reached = !clu_due(u, u->ask.answered + 3 * u->cfg.silence);

	clu_access_is(u, reached ? CLUSTER_STANDBY : CLUSTER_UNAVAILABLE);
	clu_step_end(&u->callers.yield, ERR_WRONG_STATE);
	if (u->callers.leaving) {
		if (u->change.kind == CHANGE_NONE && !u->saves.now) {
			u->role = CLUSTER_LEAVING;
			u->again = true;
		}
		return;
	}
	if (u->change.kind != CHANGE_NONE || !u->view.fresh || u->view.wanted)
		return;
	stand_by_decide(u);
}

/* ---- leaving ---- */

void clu_leave_step(struct cluster_unit *u)
{
	int result;

	clu_access_is(u, CLUSTER_UNAVAILABLE);
	if (u->change.kind == CHANGE_NONE) {
		clu_change_begin(u, CHANGE_REMOVE);
	} else if (u->change.kind == CHANGE_REMOVE &&
		   clu_change_took(u, &result)) {
		clu_post(u, POST_CHANGED, u->view.rec.version);
		u->callers.left = true;
	}
}

/* ---- fenced ---- */

static void drop_done(struct cluster_step *s)
{
	struct cluster_unit *u =
		container_of(s, struct cluster_unit, lu.drop_step);

	u->lu.drop_ended = true;
	clu_wake(u);
}

static void drop_begin(struct cluster_unit *u)
{
	u->role = CLUSTER_FENCED;
	u->store = NULL; /* `drop` closes it: cluster_unit_reopened follows */
	u->count.fenced++;
	u->change.kind = CHANGE_NONE;
	u->change.ended = false;
	u->callers.probing = false;
	clu_saves_fail(u, ERR_TERMINATED);
	clu_step_end(&u->callers.take, ERR_TERMINATED);
	clu_step_end(&u->callers.yield, ERR_TERMINATED);
	u->lu.drop_busy = true;
	u->lu.drop_ended = false;
	u->lu.drop_step.done = drop_done;
	u->ops->drop(u->ops->arg, &u->lu.drop_step);
}

void clu_fenced_begin(struct cluster_unit *u)
{
	clu_say(u, "this gateway was fenced: ",
		"it ends its sessions with the unit", "");
	drop_begin(u);
}

/* After a pause of the process, answers may be there that were not looked at yet: so it takes
 * two looks. */
static bool is_cut_off(struct cluster_unit *u)
{
	if (!clu_due(u, u->ask.heard + 2 * u->cfg.silence))
		return false;
	if (u->ask.silent == 0)
		u->ask.silent = u->now;
	return clu_due(u, u->ask.silent + u->cfg.beacon);
}

/* Its initiators would wait for the end of their commands while another gateway, which may
 * have fenced this one, serves the unit. */
void clu_cut_off_step(struct cluster_unit *u)
{
	if ((u->role != CLUSTER_OWNER && u->role != CLUSTER_YIELDING) ||
	    u->view.rec.ngateways < 2 || !u->store || !is_cut_off(u))
		return;
	clu_say(u, "the store does not answer, and another gateway may have ",
		"taken the unit: this one ends its sessions with the unit", "");
	u->store->lost = true;
	drop_begin(u);
}

void clu_fenced_step(struct cluster_unit *u)
{
	clu_saves_fail(u, ERR_TERMINATED);
	clu_step_end(&u->callers.take, ERR_TERMINATED);
	clu_step_end(&u->callers.yield, ERR_TERMINATED);
	if (!clu_access_is(u, CLUSTER_UNAVAILABLE) || !u->lu.drop_ended)
		return;
	u->lu.drop_busy = u->fence_seen = false;
	u->role = CLUSTER_JOINING;
	u->view.fresh = false;
	u->peers.asked = 0;
	u->again = true;
}
