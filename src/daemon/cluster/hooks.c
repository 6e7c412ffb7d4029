/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks.c: what the device and an administrator ask of a member, as requests of its
 * unit (cluster/unit.h). */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/cluster/internal.h"

/* Adds p to those that wait for the unit. False: the member has not joined, or
 * leaves. */
static bool begin(struct member *m, struct pending *p,
		  void (*end)(struct pending *p, int result))
{
	if (!m->cu || m->leave.over)
		return false;
	p->end = end;
	list_push_back(&m->pending, &p->link);
	return true;
}

static void finish(struct pending *p, int result)
{
	list_del(&p->link);
	p->end(p, result);
}

/* ---- saving the common state ---- */

struct save {
	struct pending pending;
	struct cluster_save save;
	struct dev_save *of;
};

static void save_end(struct pending *p, int result)
{
	struct save *x = container_of(p, struct save, pending);
	struct dev_save *s = x->of;

	free(x);
	s->result = result;
	s->done(s);
}

static void saved(struct cluster_save *s)
{
	finish(&container_of(s, struct save, save)->pending, s->result);
}

void gateway_save(struct gateway *c, struct dev_save *s)
{
	static const enum cluster_part parts[DEV_KEPT_KINDS] = {
		[DEV_KEPT_RESERVATIONS] = CLUSTER_RESERVATIONS,
		[DEV_KEPT_UNIT] = CLUSTER_KEPT,
	};
	struct member *m = gateway_member(c, s->lu);
	struct save *x = m ? calloc(1, sizeof(*x)) : NULL;

	if (!x || !begin(m, &x->pending, save_end)) {
		free(x);
		s->result = m && !x ? ERR_NOMEM : ERR_RESET;
		list_push_back(&c->failed, &s->link);
		io_loop_defer(c->daemon->loops[0], &c->later);
		return;
	}
	x->of = s;
	x->save = (struct cluster_save){
		.done = saved,
		.part = parts[s->kind],
		.data = s->data,
		.len = s->len,
		.event = s->event,
		.event_len = s->event_len,
	};
	cluster_unit_save(m->cu, &x->save);
	member_wake(m);
}

/* ---- reading it ---- */

struct refresh {
	struct pending pending;
	struct cluster_step step;
	struct dev_refresh *of;
};

static void refresh_end(struct pending *p, int result)
{
	struct refresh *x = container_of(p, struct refresh, pending);
	struct dev_refresh *r = x->of;

	free(x);
	r->result = result;
	r->done(r);
}

static void refreshed(struct cluster_step *s)
{
	finish(&container_of(s, struct refresh, step)->pending, s->result);
}

void gateway_refresh(struct gateway *c, struct dev_refresh *r)
{
	struct member *m = gateway_member(c, r->lu);
	struct refresh *x = m ? calloc(1, sizeof(*x)) : NULL;

	if (!x || !begin(m, &x->pending, refresh_end)) {
		free(x);
		r->result = m && !x ? ERR_NOMEM : ERR_RESET;
		r->done(r);
		return;
	}
	x->of = r;
	x->step.done = refreshed;
	cluster_unit_refresh(m->cu, &x->step);
	member_wake(m);
}

/* ---- SET TARGET PORT GROUPS ---- */

struct regroup {
	struct pending pending;
	struct cluster_step step;
	struct dev_regroup *of;
};

static void regroup_end(struct pending *p, int result)
{
	struct regroup *x = container_of(p, struct regroup, pending);
	struct dev_regroup *r = x->of;

	free(x);
	r->result = result;
	r->done(r);
}

static void regrouped(struct cluster_step *s)
{
	finish(&container_of(s, struct regroup, step)->pending, s->result);
}

/* What a change of the groups asks for. */
struct wish {
	const struct cluster_gateway
		*owner; /* the new one; NULL: none is named */
	bool yields;	/* the owner's group is to stand by */
};

static const struct cluster_gateway *
gateway_of(const struct cluster_record *record, uint16_t number)
{
	for (unsigned i = 0; i < record->ngateways; i++)
		if (record->gateways[i].number == number)
			return &record->gateways[i];
	return NULL;
}

/* One gateway at most is active/optimized, all other gateways stand by: no other states can be
 * set. Returns 0, ERR_NOT_FOUND or ERR_UNSUPPORTED. */
static int read_wish(const struct dev_regroup *r,
		     const struct cluster_record *record, struct wish *w)
{
	*w = (struct wish){ 0 };
	for (unsigned i = 0; i < r->n; i++) {
		const struct dev_group_change *x = &r->changes[i];
		const struct cluster_gateway *g = gateway_of(record, x->id);

		if (!g)
			return ERR_NOT_FOUND;
		if (x->state == DEV_ACCESS_STANDBY) {
			w->yields |= !strcmp(g->id, record->owner);
			continue;
		}
		if (x->state != DEV_ACCESS_OPTIMIZED || w->owner)
			return ERR_UNSUPPORTED;
		w->owner = g;
	}
	return 0;
}

/* Returns 0 and sets *begun if step ends later. */
static int carry_out(struct member *m, const struct wish *w,
		     const struct cluster_record *record,
		     struct cluster_step *step, bool *begun)
{
	bool owns = !strcmp(record->owner, m->self.id);
	const char *to = w->owner ? w->owner->id : NULL;

	*begun = false;
	if (!to && !w->yields) /* others stand by already */
		return 0;
	if (to && !strcmp(to, record->owner))
		return w->yields ? ERR_UNSUPPORTED : 0;
	if (to && !strcmp(to, m->self.id))
		cluster_unit_take(m->cu, CLUSTER_TAKE_UNLESS_MOVED, step);
	else if (owns)
		cluster_unit_yield(m->cu, to, step);
	else /* a matter of two other gateways */
		return ERR_UNSUPPORTED;
	*begun = true;
	return 0;
}

void gateway_regroup(struct gateway *c, struct dev_regroup *r)
{
	struct member *m = gateway_member(c, r->lu);
	struct regroup *x = m ? calloc(1, sizeof(*x)) : NULL;
	struct cluster_status st = { 0 };
	int err = m && !x ? ERR_NOMEM : ERR_RESET;
	struct wish wish;
	bool begun = false;

	if (m && m->cu)
		cluster_unit_status(m->cu, &st);
	if (x && st.record && begin(m, &x->pending, regroup_end)) {
		x->of = r;
		x->step.done = regrouped;
		err = read_wish(r, st.record, &wish);
		if (!err)
			err = carry_out(m, &wish, st.record, &x->step, &begun);
		if (begun) {
			member_wake(m);
			return;
		}
		list_del(&x->pending.link);
	}
	free(x);
	r->result = err;
	r->done(r);
}

/* ---- a fence ---- */

void gateway_fenced(struct gateway *c, struct dev_lu *lu)
{
	struct member *m = gateway_member(c, lu);

	if (!m || !m->cu || m->leave.over)
		return;
	cluster_unit_fenced(m->cu);
	member_wake(m);
}

/* ---- an administrator ---- */

static void call_done(struct cluster_step *s)
{
	struct member_call *c = container_of(s, struct member_call, step);

	list_del(&c->link);
	c->result = s->result;
	c->done(c);
}

/* False: c has ended. */
static bool call_begin(struct member *m, struct member_call *c)
{
	c->step = (struct cluster_step){ .done = call_done };
	if (m->cu && !m->leave.begun) {
		list_push_back(&m->calls, &c->link);
		return true;
	}
	c->result = ERR_ABORTED;
	c->done(c);
	return false;
}

void member_take(struct member *m, bool fence, struct member_call *c)
{
	if (!call_begin(m, c))
		return;
	cluster_unit_take(m->cu, fence ? CLUSTER_TAKE_FENCE : CLUSTER_TAKE,
			  &c->step);
	member_wake(m);
}

void member_yield(struct member *m, const char *to, struct member_call *c)
{
	if (!call_begin(m, c))
		return;
	cluster_unit_yield(m->cu, to, &c->step);
	member_wake(m);
}
