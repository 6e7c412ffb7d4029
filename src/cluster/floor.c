/* SPDX-License-Identifier: BSD-2-Clause */
/* floor.c: what all decisions about a unit need, and the roles that more than one of them begins. */
#include <assert.h>
#include <string.h>

#include "cluster/internal.h"

bool clu_due(struct cluster_unit *u, xtime t)
{
	if (t <= u->now)
		return true;
	u->next = MIN(u->next, t);
	return false;
}

void clu_wake(struct cluster_unit *u)
{
	if (u->ticking)
		u->again = true;
	else
		u->ops->wake(u->ops->arg);
}

void clu_say(const struct cluster_unit *u, const char *a, const char *b,
	     const char *c)
{
	const char *parts[] = { a, b, c };
	char text[256];
	size_t n = 0;

	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		size_t len = strlen(parts[i]);

		len = MIN(len, sizeof(text) - 1 - n);
		memcpy(text + n, parts[i], len);
		n += len;
	}
	text[n] = '\0';
	u->ops->say(u->ops->arg, text);
}

bool clu_is_self(const struct cluster_unit *u, const char *id)
{
	return strcmp(u->cfg.self.id, id) == 0;
}

void clu_step_end(struct cluster_step **s, int result)
{
	struct cluster_step *step = *s;

	if (!step)
		return;
	*s = NULL;
	step->result = result;
	step->done(step);
}

void clu_move_all(struct list *from, struct list *to)
{
	struct list *l;

	while ((l = list_pop_front(from)))
		list_push_back(to, l);
}

/* ---- what the logical unit does ---- */

static void access_done(struct cluster_step *s)
{
	struct cluster_unit *u =
		container_of(s, struct cluster_unit, lu.access_step);

	u->lu.access_busy = false;
	clu_wake(u);
}

bool clu_access_is(struct cluster_unit *u, enum cluster_access a)
{
	struct work *w = &u->lu;

	if (!w->access_busy && w->access != a) {
		w->access_busy = true;
		w->access = a;
		w->access_step.done = access_done;
		u->ops->access(u->ops->arg, a, &w->access_step);
	}
	return !w->access_busy && w->access == a;
}

static void adopt_done(struct cluster_step *s)
{
	struct cluster_unit *u =
		container_of(s, struct cluster_unit, lu.adopt_step);
	struct work *w = &u->lu;

	w->adopt_busy = false;
	w->failing = s->result != 0;
	u->saves.again_at = 0;
	if (s->result == 0) {
		w->known = MAX(w->known, w->adopting);
		w->settled = MAX(w->settled, w->adopting);
	} else {
		w->failed = true;
	}
	clu_wake(u);
}

void clu_adopt_now(struct cluster_unit *u)
{
	struct work *w = &u->lu;
	const struct cluster_record *r = &u->view.rec;

	if (w->adopt_busy)
		return;
	w->adopt_busy = true;
	w->failed = false;
	w->adopting = r->version;
	w->shown = cluster_record_changed(r);
	w->adopt_step.done = adopt_done;
	w->adopt_step.result = 0;
	u->ops->adopt(u->ops->arg, r, w->known ? w->known : r->version,
		      &w->adopt_step);
}

/* ---- roles ---- */

void clu_stand_by(struct cluster_unit *u)
{
	u->role = CLUSTER_STANDING_BY;
	u->peers.heard = u->now;
	u->peers.unanswered = 0;
	u->again = true;
}

void clu_take_begin(struct cluster_unit *u, bool fence)
{
	assert(u->role == CLUSTER_STANDING_BY);
	u->role = CLUSTER_TAKING;
	u->take = (struct take){
		.phase = clu_is_self(u, u->view.rec.owner) ? TAKE_LOCK
							   : TAKE_CLAIM,
		.fence = fence,
		.since = u->now,
	};
	if (u->take.phase == TAKE_CLAIM)
		memcpy(u->take.victim, u->view.rec.owner,
		       sizeof(u->take.victim));
	u->again = true;
}
