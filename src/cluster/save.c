/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * save.c: changes of the common state, one at a time: written to the record first, in
 * force at the owner next, reported last. And what the record says at a later time.
 *
 * A version is in force at the owner if the owner said so, or if the owner wrote it
 * itself. It stays so: the next owner reads the record when it has the lock, before it executes a command. Therefore the owner says of a version that it
 * is in force only if the record of that version names it as owner.
 */
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

/* Whether this gateway has the lock, and had the whole state in force after it got it:
 * also just before it is active, when commands from before still need an end. */
static bool owner_here(const struct cluster_unit *u)
{
	return clu_is_self(u, u->view.rec.owner) &&
	       (u->role == CLUSTER_OWNER ||
		(u->role == CLUSTER_TAKING && u->take.phase == TAKE_ACCESS) ||
		(u->role == CLUSTER_YIELDING && !u->yield.deposed &&
		 u->yield.phase == YIELD_DRAIN));
}

/* Whether version v of the common state is in force where commands are executed. */
static bool in_force(const struct cluster_unit *u, uint64_t v)
{
	return owner_here(u) || u->view.rec.owner[0] == '\0' ||
	       u->peers.confirmed >= v;
}

/* Asks the owner to say when version v is in force. */
static void ask_owner(struct cluster_unit *u, uint64_t v)
{
	const struct post *p = &u->ask.posts[POST_CONFIRM];

	if (u->role == CLUSTER_TAKING || clu_is_self(u, u->view.rec.owner))
		return;
	if (p->version < v || clu_due(u, p->sent + NOTE_AGAIN))
		clu_post(u, POST_CONFIRM, v);
}

/* ---- saves ---- */

void cluster_unit_save(struct cluster_unit *u, struct cluster_save *s)
{
	list_init(&s->link);
	list_push_back(&u->saves.queue, &s->link);
	clu_wake(u);
}

static void save_done(struct cluster_save *s, int result)
{
	s->result = result;
	s->done(s);
}

/* Ends the save in progress. */
static void save_end(struct cluster_unit *u, int result)
{
	struct cluster_save *s = u->saves.now;

	if (result == 0)
		u->lu.known = MAX(u->lu.known, u->saves.version);
	u->saves.now = NULL;
	u->saves.kept = false;
	u->again = true;
	save_done(s, result);
}

void clu_save_in_force(struct cluster_unit *u)
{
	if (u->saves.now && u->saves.kept)
		save_end(u, 0);
}

static void queue_end(struct cluster_unit *u, int result)
{
	struct list mine, *l;

	/* a call-back may add to the queue */
	list_init(&mine);
	clu_move_all(&u->saves.queue, &mine);
	while ((l = list_pop_front(&mine)))
		save_done(list_entry(l, struct cluster_save, link), result);
}

void clu_saves_again(struct cluster_unit *u)
{
	u->saves.again_at = u->now + XTIME_MS;
	queue_end(u, ERR_AGAIN);
}

static void refreshes_end(struct cluster_unit *u, struct list *which,
			  int result)
{
	struct list mine, *l;

	list_init(&mine);
	clu_move_all(which, &mine);
	while ((l = list_pop_front(&mine))) {
		struct cluster_step *s =
			list_entry(l, struct cluster_step, link);

		u->again = true;
		clu_step_end(&s, result);
	}
}

void clu_saves_fail(struct cluster_unit *u, int result)
{
	if (u->saves.now)
		save_end(u, result);
	queue_end(u, result);
	refreshes_end(u, &u->saves.unread, result);
	refreshes_end(u, &u->saves.reading, result);
	refreshes_end(u, &u->saves.waiting, result);
}

/* The change is in the record. It is not in force at an owner that does not say so in
 * time: that owner is fenced. */
static void save_confirm(struct cluster_unit *u)
{
	struct saves *s = &u->saves;

	if (in_force(u, s->version)) {
		save_end(u, 0);
		return;
	}
	if (strcmp(s->owner, u->view.rec.owner) != 0) {
		memcpy(s->owner, u->view.rec.owner, sizeof(s->owner));
		s->kept_at = u->now;
	}
	ask_owner(u, s->version);
	if (u->role == CLUSTER_TAKING ||
	    !clu_due(u, s->kept_at + CONFIRM_LIMIT))
		return;
	if (!u->cfg.failover || u->role != CLUSTER_STANDING_BY) {
		save_end(u, ERR_RESET);
	} else if (!clu_is_self(u, u->view.rec.owner) && u->view.fresh) {
		clu_say(u, "gateway ", u->view.rec.owner,
			" does not put a change in force: taking the unit from it");
		clu_take_begin(u, true);
	}
}

static void save_begin(struct cluster_unit *u)
{
	struct list *l = list_pop_front(&u->saves.queue);

	u->saves.now = list_entry(l, struct cluster_save, link);
	u->saves.kept = false;
	clu_change_begin(u, CHANGE_SAVE);
}

/* The record has a newer state than the one that the change was decided on. The caller
 * may decide anew at once, although the end of `adopt` is not known here yet: the next
 * save waits for that, but not for ever. */
static int save_again(struct cluster_unit *u)
{
	if (u->lu.failing)
		return ERR_RESET;
	clu_adopt_now(u);
	if (u->lu.adopt_busy)
		u->saves.again_at = u->now + XTIME_MS;
	return ERR_AGAIN;
}

static bool may_save(const struct cluster_unit *u)
{
	return u->role == CLUSTER_STANDING_BY || owner_here(u) ||
	       u->role == CLUSTER_OWNER ||
	       (u->role == CLUSTER_YIELDING && u->yield.phase == YIELD_DRAIN);
}

void clu_save_step(struct cluster_unit *u)
{
	struct saves *s = &u->saves;
	int result;

	if (s->now && !s->kept && u->change.kind == CHANGE_SAVE &&
	    clu_change_took(u, &result)) {
		if (result == 0) {
			s->kept = true;
			s->kept_at = u->now;
			s->version = u->change.version;
			memcpy(s->owner, u->view.rec.owner, sizeof(s->owner));
			clu_post(u, POST_CHANGED, u->view.rec.version);
		} else {
			if (result == ERR_AGAIN)
				result = save_again(u);
			save_end(u, result);
		}
	}
	if (s->now && s->kept) {
		save_confirm(u);
	} else if (s->now && u->change.kind == CHANGE_SAVE &&
		   clu_due(u, u->change.since + 3 * u->cfg.silence)) {
		/* the record cannot be read or written; a swap may still arrive */
		u->change.kind = CHANGE_NONE;
		save_end(u, ERR_RESET);
	}
	if (list_empty(&s->queue) || s->now)
		return;
	if (u->role == CLUSTER_JOINING || u->role == CLUSTER_LEAVING)
		clu_saves_fail(u, ERR_RESET);
	else if (u->role == CLUSTER_TAKING && u->lu.adopt_busy &&
		 clu_due(u, s->again_at))
		clu_saves_again(u);
	else if (may_save(u) && u->change.kind == CHANGE_NONE &&
		 clu_due(u, s->again_at))
		save_begin(u);
}

/* ---- refreshes ---- */

void cluster_unit_refresh(struct cluster_unit *u, struct cluster_step *s)
{
	list_init(&s->link);
	list_push_back(&u->saves.unread, &s->link);
	clu_wake(u);
}

/* Refreshes do not wait longer for a record that cannot be read, or for the owner. */
static void refresh_limit(struct cluster_unit *u)
{
	struct saves *s = &u->saves;

	if (list_empty(&s->unread) && list_empty(&s->reading) &&
	    list_empty(&s->waiting)) {
		s->refresh_since = 0;
	} else if (s->refresh_since == 0) {
		s->refresh_since = u->now;
	} else if (clu_due(u, s->refresh_since + 3 * u->cfg.silence)) {
		s->refresh_since = 0;
		refreshes_end(u, &s->unread, ERR_RESET);
		refreshes_end(u, &s->reading, ERR_RESET);
		refreshes_end(u, &s->waiting, ERR_RESET);
	}
}

void clu_refresh_step(struct cluster_unit *u)
{
	struct saves *s = &u->saves;
	uint64_t need;

	if (u->role == CLUSTER_JOINING || u->role == CLUSTER_LEAVING) {
		refreshes_end(u, &s->unread, ERR_RESET);
		refreshes_end(u, &s->reading, ERR_RESET);
		refreshes_end(u, &s->waiting, ERR_RESET);
		return;
	}
	if (!list_empty(&s->unread))
		u->view.wanted = true;
	refresh_limit(u);
	if (list_empty(&s->waiting))
		return;
	/* nor does a caller see a state that the owner may not have yet */
	need = MAX(s->need, u->lu.shown);
	if (!in_force(u, need))
		ask_owner(u, need);
	else if (u->lu.known >= s->need)
		refreshes_end(u, &s->waiting, 0);
}

/* ---- at the owner ---- */

void clu_confirm_step(struct cluster_unit *u)
{
	uint64_t v = u->peers.asked;

	if (v == 0 || v > u->view.rec.version || u->role != CLUSTER_OWNER ||
	    !clu_is_self(u, u->view.rec.owner))
		return;
	if (u->lu.settled < v) {
		u->lu.barrier = v;
		return;
	}
	clu_post(u, POST_IN_FORCE, u->lu.settled);
	u->peers.asked = 0;
}
