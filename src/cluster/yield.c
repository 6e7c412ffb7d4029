/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * yield.c: the owner, and giving the unit away: no new commands, the end of those in
 * progress, no lock, and only then the other gateway's name in the record.
 */
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

static void yield_begin(struct cluster_unit *u, const char *to, bool withheld)
{
	struct yield *y = &u->yield;

	memset(y, 0, sizeof(*y));
	y->phase = YIELD_DRAIN;
	y->withheld = withheld;
	strcpy(y->to, to);
	u->role = CLUSTER_YIELDING;
	u->peers.asker[0] = '\0';
	u->again = true;
}

/* Is the gateway there that is to take the unit? to: "": any. */
static bool probe(struct cluster_unit *u, const char *to, const char **found)
{
	struct post *p = &u->ask.posts[POST_PROBE];

	*found = NULL;
	if (!u->callers.probing) {
		u->callers.probing = true;
		clu_post(u, POST_PROBE, u->view.rec.version);
		return false;
	}
	if (!p->ended)
		return false;
	p->ended = u->callers.probing = false;
	for (unsigned i = 0; i < u->view.rec.ngateways; i++) {
		const char *id = u->view.rec.gateways[i].id;

		if (!clu_is_self(u, id) && clu_post_acked(p, id) &&
		    (to[0] == '\0' || strcmp(to, id) == 0))
			*found = id;
	}
	return true;
}

static void yield_asked(struct cluster_unit *u)
{
	const char *to = u->callers.to, *found;

	if (to[0] == '\0')
		yield_begin(u, "", true);
	else if (clu_is_self(u, to))
		clu_step_end(&u->callers.yield, 0);
	else if (!cluster_record_gateway(&u->view.rec, to))
		clu_step_end(&u->callers.yield, ERR_NOT_FOUND);
	else if (probe(u, to, &found) && !found)
		clu_step_end(&u->callers.yield, ERR_NOT_FOUND);
	else if (found)
		yield_begin(u, found, false);
}

static void yield_leaving(struct cluster_unit *u)
{
	const char *found;

	if (u->view.rec.ngateways < 2)
		yield_begin(u, "", false);
	else if (probe(u, "", &found))
		yield_begin(u, found ? found : "", false);
}

/* Whether the store does not give the record at present: a gateway that gave the unit away could
 * not say to which. */
static bool record_lost(const struct cluster_unit *u)
{
	return u->view.error && (u->view.error != ERR_RESET ||
				 u->now - u->view.at > 2 * u->cfg.silence);
}

void clu_owner_step(struct cluster_unit *u)
{
	const char *asker = u->peers.asker;

	clu_access_is(u, CLUSTER_OPTIMIZED);
	clu_step_end(&u->callers.take, 0);
	if (!clu_is_self(u, u->view.rec.owner)) {
		yield_begin(u, "", false);
		u->yield.deposed = true;
	} else if (record_lost(u) && !u->callers.leaving) {
		u->peers.asker[0] = '\0';
		clu_step_end(&u->callers.yield, ERR_RESET);
	} else if (asker[0] != '\0') {
		char to[CLUSTER_ID_SIZE];

		memcpy(to, asker, sizeof(to));
		u->peers.asker[0] = '\0';
		if (!clu_is_self(u, to) &&
		    cluster_record_gateway(&u->view.rec, to))
			yield_begin(u, to, false);
	} else if (u->callers.leaving) {
		yield_leaving(u);
	} else if (u->callers.yield) {
		yield_asked(u);
	}
}

static void yield_done(struct cluster_unit *u)
{
	u->count.yields++;
	clu_post(u, POST_CHANGED, u->view.rec.version);
	clu_stand_by(u);
	clu_step_end(&u->callers.yield, 0);
}

static void grant(struct cluster_unit *u)
{
	int result;

	if (u->change.kind == CHANGE_NONE) {
		if (u->yield.deposed || !clu_is_self(u, u->view.rec.owner)) {
			yield_done(u);
			return;
		}
		clu_change_begin(u, CHANGE_GRANT);
		memcpy(u->change.to, u->yield.to, sizeof(u->change.to));
		u->change.withheld = u->yield.withheld;
	} else if (u->change.kind == CHANGE_GRANT &&
		   clu_change_took(u, &result)) {
		/* the gateway is not in the record any more: none */
		if (result == ERR_NOT_FOUND) {
			u->yield.to[0] = '\0';
			u->again = true;
		} else {
			yield_done(u);
		}
	}
}

void clu_yield_step(struct cluster_unit *u)
{
	struct yield *y = &u->yield;

	if (!clu_is_self(u, u->view.rec.owner))
		y->deposed = true;
	switch (y->phase) {
	case YIELD_DRAIN:
		if (!clu_access_is(u, CLUSTER_TRANSITIONING) || u->saves.now ||
		    !list_empty(&u->saves.queue) ||
		    u->change.kind != CHANGE_NONE)
			return;
		y->phase = YIELD_UNLOCK;
		u->again = true;
		break;
	case YIELD_UNLOCK:
		if (y->unlocked) {
			y->phase = YIELD_GRANT;
			u->again = true;
		} else if (clu_can_ask(u)) {
			clu_ask(u, OP_UNLOCK);
		}
		break;
	case YIELD_GRANT:
		grant(u);
		break;
	}
}
