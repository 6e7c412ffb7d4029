/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * take.c: becoming the owner. The order makes it safe: this gateway writes itself into
 * the record, takes the lock of the data (from then on no other gateway can write), and
 * then reads the record anew. What it read is in force here before the first command.
 * Until then it does not say of any version that it is in force.
 */
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

static void take_phase(struct cluster_unit *u, enum take_phase phase)
{
	u->take.phase = phase;
	u->again = true;
}

static void claim(struct cluster_unit *u)
{
	int result;

	if (u->change.kind == CHANGE_NONE) {
		clu_change_begin(u, CHANGE_OWN);
	} else if (u->change.kind == CHANGE_OWN &&
		   clu_change_took(u, &result)) {
		/* another gateway was faster, or this one is not in the record */
		if (result)
			clu_stand_by(u);
		else
			take_phase(u, TAKE_LOCK);
	}
}

/* A gateway that the record does not name has no right to a fence: look once more. */
static void take_lock(struct cluster_unit *u)
{
	struct take *t = &u->take;

	if (!clu_is_self(u, u->view.rec.owner)) {
		take_phase(u, TAKE_RELEASE);
		return;
	}
	if (!clu_can_ask(u))
		return;
	if (t->fence &&
	    (!u->view.fresh || u->now - u->view.at > u->cfg.beacon)) {
		clu_ask(u, OP_READ);
	} else {
		t->locked = true;
		clu_ask(u, t->fence ? OP_FENCE : OP_LOCK);
	}
}

void clu_take_asked(struct cluster_unit *u, enum op op, int result)
{
	struct take *t = &u->take;

	u->again = true;
	if (op == OP_UNLOCK) {
		u->take.unlocked = u->yield.unlocked = result == 0;
		return;
	}
	if (u->role != CLUSTER_TAKING || t->phase != TAKE_LOCK)
		return;
	if (result == 0) {
		u->view.fresh = false;
		take_phase(u, TAKE_READ);
	} else if (op == OP_FENCE && result == ERR_NOT_FOUND) {
		t->fence = false;
	} else if (result == ERR_AGAIN) {
		/* the lock of a gateway that lost the unit or is gone, unless the
		 * record names another owner by now */
		u->view.fresh = false;
		t->fence = true;
		t->victim[0] = '\0';
	}
}

/* The record, read since this gateway has the lock. */
static void take_read(struct cluster_unit *u)
{
	if (!u->view.fresh) {
		if (clu_can_ask(u))
			clu_ask(u, OP_READ);
		return;
	}
	if (!clu_is_self(u, u->view.rec.owner)) {
		take_phase(u, TAKE_RELEASE);
		return;
	}
	clu_save_in_force(u);
	u->lu.barrier = u->view.rec.version;
	clu_adopt_now(u);
	clu_saves_again(u);
	take_phase(u, TAKE_ADOPT);
}

static void take_adopt(struct cluster_unit *u)
{
	if (!clu_is_self(u, u->view.rec.owner)) {
		take_phase(u, TAKE_RELEASE);
		return;
	}
	if (u->lu.settled < u->lu.barrier ||
	    u->lu.known < cluster_record_changed(&u->view.rec))
		return;
	take_phase(u, TAKE_ACCESS);
}

static void take_done(struct cluster_unit *u)
{
	u->role = CLUSTER_OWNER;
	u->count.takes++;
	u->count.last_hand_over =
		u->now -
		(u->callers.take_since ? u->callers.take_since : u->take.since);
	u->peers.asker[0] = '\0';
	clu_post(u, POST_CHANGED, u->view.rec.version);
	clu_say(u, "this gateway is the owner", "", "");
	clu_step_end(&u->callers.take, 0);
	u->again = true;
}

static void take_release(struct cluster_unit *u)
{
	if (u->take.locked && !u->take.unlocked) {
		if (clu_can_ask(u))
			clu_ask(u, OP_UNLOCK);
		return;
	}
	clu_stand_by(u);
}

void clu_take_step(struct cluster_unit *u)
{
	enum cluster_access a = u->take.phase == TAKE_ACCESS
					? CLUSTER_OPTIMIZED
					: CLUSTER_TRANSITIONING;
	bool there = clu_access_is(u, a);

	switch (u->take.phase) {
	case TAKE_CLAIM:
		claim(u);
		break;
	case TAKE_LOCK:
		take_lock(u);
		break;
	case TAKE_READ:
		take_read(u);
		break;
	case TAKE_ADOPT:
		take_adopt(u);
		break;
	case TAKE_ACCESS:
		if (there)
			take_done(u);
		break;
	case TAKE_RELEASE:
		take_release(u);
		break;
	}
}
