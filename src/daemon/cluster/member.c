/* SPDX-License-Identifier: BSD-2-Clause */
/* member.c: one unit that other gateways serve, too: its store, its decisions
 * (cluster/unit.h), and what these do to the unit in the device. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "daemon/cluster/dir_store.h"
#include "daemon/cluster/internal.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/model.h"
#include "daemon/log/say.h"
#include "daemon/luns/module.h"

#define RETRY	    (200 * XTIME_MS)
#define LEAVE_EXTRA (2 * XTIME_S) /* beyond the patience for a hand-over */

static struct io_loop *loop_of(const struct member *m)
{
	return m->gateway->daemon->loops[0];
}

void member_say(struct member *m, const char *format, ...)
{
	char text[700];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	trace_emit(&m->gateway->daemon->log.trace, TRACE_CLUSTER,
		   "backstore %s: %s", m->unit->name, text);
}

/* ---- operations of the unit ---- */

static void step_end(struct cluster_step *s, int result)
{
	s->result = result;
	s->done(s);
}

/* A step that the device carries out, on all workers. It may end after the member: then
 * nothing of the member is left to hear of it. */
struct device_step {
	struct list link;	 /* member.steps */
	struct cluster_step *of; /* NULL: the member has ended */
};

/* NULL: no memory; s has ended then. */
static struct device_step *device_step_new(struct member *m,
					   struct cluster_step *s)
{
	struct device_step *x = calloc(1, sizeof(*x));

	if (!x) {
		step_end(s, ERR_NOMEM);
		return NULL;
	}
	x->of = s;
	list_push_back(&m->steps, &x->link);
	return x;
}

static void device_step_end(struct device_step *x, int result)
{
	struct cluster_step *s = x->of;

	if (s)
		list_del(&x->link);
	free(x);
	if (s)
		step_end(s, result);
}

static void forget_device_steps(struct member *m)
{
	struct list *n;

	while ((n = list_pop_front(&m->steps)))
		list_entry(n, struct device_step, link)->of = NULL;
}

static void access_set(void *arg, int err)
{
	device_step_end(arg, err);
}

static void op_access(void *arg, enum cluster_access a, struct cluster_step *s)
{
	static const enum dev_access states[] = {
		[CLUSTER_OPTIMIZED] = DEV_ACCESS_OPTIMIZED,
		[CLUSTER_STANDBY] = DEV_ACCESS_STANDBY,
		[CLUSTER_UNAVAILABLE] = DEV_ACCESS_UNAVAILABLE,
		[CLUSTER_TRANSITIONING] = DEV_ACCESS_TRANSITIONING,
	};
	struct member *m = arg;
	struct device_step *x = device_step_new(m, s);
	int err = x ? dev_lu_access_set(m->unit->lu, states[a], access_set, x)
		    : 0;

	if (err)
		device_step_end(x, err);
}

/* Groups and ports of the device are different (shared.h). */
static bool is_new_port(const struct dev_lu_group *g, unsigned n, uint16_t port)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < g[i].nports; k++)
			if (g[i].ports[k] == port)
				return false;
	return true;
}

static bool is_new_group(const struct dev_lu_group *g, unsigned n, uint16_t id)
{
	for (unsigned i = 0; i < n; i++)
		if (g[i].id == id)
			return false;
	return id != 0;
}

/* Fills all groups of the record. Returns their number. */
static unsigned fill_groups(const struct member *m,
			    const struct cluster_record *r,
			    struct dev_lu_group all[CLUSTER_GATEWAYS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->ngateways; i++) {
		const struct cluster_gateway *g = &r->gateways[i];
		struct dev_lu_group *to = &all[n];
		bool owns = !strcmp(g->id, r->owner);

		if (!is_new_group(all, n, g->number))
			continue;
		memset(to, 0, sizeof(*to));
		to->id = g->number;
		to->own = !strcmp(g->id, m->self.id);
		to->state = owns ? DEV_ACCESS_OPTIMIZED : DEV_ACCESS_STANDBY;
		for (unsigned k = 0; k < g->nports; k++)
			if (is_new_port(all, n + 1, g->ports[k]))
				to->ports[to->nports++] = g->ports[k];
		n++;
	}
	return n;
}

static void set_groups(struct member *m, const struct cluster_record *r)
{
	struct dev_lu_group *all = calloc(CLUSTER_GATEWAYS, sizeof(*all));
	int err = ERR_NOMEM;

	if (all)
		err = dev_lu_groups_replace(m->unit->lu, all,
					    fill_groups(m, r, all));
	free(all);
	m->regroup = err != 0;
}

static void op_gateways(void *arg, const struct cluster_record *r)
{
	struct member *m = arg;

	set_groups(m, r);
	member_set_portals(m, r);
}

static const enum dev_kept kinds[CLUSTER_PARTS] = {
	[CLUSTER_RESERVATIONS] = DEV_KEPT_RESERVATIONS,
	[CLUSTER_KEPT] = DEV_KEPT_UNIT,
};

static void adopted(void *arg)
{
	device_step_end(arg, 0);
}

static void op_adopt(void *arg, const struct cluster_record *r, uint64_t since,
		     struct cluster_step *s)
{
	struct member *m = arg;
	struct dev_event events[CLUSTER_EVENTS];
	struct dev_adoption a = { .events = events,
				  .incomplete = since < r->forgotten };
	struct device_step *x = device_step_new(m, s);
	int err;

	if (!x)
		return;

	for (unsigned i = 0; i < CLUSTER_PARTS; i++) {
		a.records[kinds[i]].data = r->parts[i].data;
		a.records[kinds[i]].len = r->parts[i].len;
	}
	for (unsigned i = 0; i < r->nevents; i++)
		if (r->events[i].at > since)
			events[a.nevents++] = (struct dev_event){
				.kind = kinds[r->events[i].part],
				.data = r->events[i].data,
				.len = r->events[i].len,
			};
	err = dev_lu_adopt(m->unit->lu, &a, adopted, x);
	if (err)
		device_step_end(x, err);
}

static void op_drop(void *arg, struct cluster_step *s)
{
	member_drop_begin(arg, s);
}

static void op_say(void *arg, const char *sentence)
{
	member_say(arg, "%s", sentence);
}

static void op_wake(void *arg)
{
	member_wake(arg);
}

/* ---- time ---- */

void member_wake(struct member *m)
{
	io_loop_defer(loop_of(m), &m->soon);
}

static void run_tick(struct member *m)
{
	struct io_loop *loop = loop_of(m);
	xtime next = cluster_unit_tick(m->cu, io_now(loop));
	struct cluster_status st;

	if (m->regroup) {
		cluster_unit_status(m->cu, &st);
		if (st.record)
			set_groups(m, st.record);
	}
	if (m->regroup)
		next = MIN(next, io_now(loop) + RETRY);
	/* without memory the timer keeps its time, and later turns try again */
	if (io_timer_set(loop, &m->tick, next))
		member_wake(m);
}

static void tick(struct io_timer *t)
{
	struct member *m = container_of(t, struct member, tick);

	if (!m->cu)
		member_begin(m);
	else
		run_tick(m);
}

/* A member ends here, at the end of a turn, when no function of its unit is
 * running. */
static void soon(struct io_defer *d)
{
	struct member *m = container_of(d, struct member, soon);

	if (m->leave.over)
		member_left(m);
	else if (m->cu)
		run_tick(m);
}

/* ---- the store ---- */

static void ignore_note(void *arg, const char *from, uint64_t cookie,
			const uint8_t *data, size_t len)
{
	(void)arg;
	(void)from;
	(void)cookie;
	(void)data;
	(void)len;
}

static void ignore_event(void *arg)
{
	(void)arg;
}

static void ignore_sentence(void *arg, const char *sentence)
{
	(void)arg;
	(void)sentence;
}

/* Until the unit sets its own: cluster_unit_new. */
static const struct cluster_store_events no_events = {
	.noted = ignore_note,
	.missed = ignore_event,
	.fenced = ignore_event,
	.say = ignore_sentence,
};

struct cluster_store *member_module_store(const struct lun_spec *s,
					  struct bs *b, const char *gateway,
					  char *why, size_t size)
{
	return lun_module_cluster(s, b, gateway, &no_events, why, size);
}

struct cluster_store *member_store(const struct member *m, struct bs *b,
				   char *why, size_t size)
{
	const struct daemon *d = m->gateway->daemon;
	const struct cfg_cluster *c = gateway_section(m->gateway);

	if (lun_is_module(m->unit->spec->kind))
		return member_module_store(m->unit->spec, b, c->gateway, why,
					   size);
	return dir_store_open(d->loops[0], c->options.directory, b->uuid,
			      b->fd ? *b->fd : -1, c->gateway, &no_events,
			      d->user.uid, d->user.gid, why, size);
}

/* ---- a member ---- */

struct member *member_open(struct gateway *c, struct unit *u, struct bs *b)
{
	struct member *m = calloc(1, sizeof(*m));
	char why[512];

	if (!m) {
		say("out of memory");
		return NULL;
	}
	m->gateway = c;
	m->unit = u;
	list_init(&m->link);
	list_init(&m->soon.link);
	list_init(&m->pending);
	list_init(&m->calls);
	list_init(&m->steps);
	m->tick.fire = tick;
	m->soon.run = soon;
	m->drop = member_drop_new(m);
	snprintf(why, sizeof(why), "out of memory");
	if (m->drop)
		m->store = member_store(m, b, why, sizeof(why));
	if (!m->store) {
		say("%s", why);
		if (m->drop)
			member_drop_abandon(m, true);
		free(m);
		return NULL;
	}
	pthread_mutex_lock(&c->lock);
	list_push_back(&c->members, &m->link);
	pthread_mutex_unlock(&c->lock);
	return m;
}

void member_begin(struct member *m)
{
	const struct cluster_options *o = &gateway_section(m->gateway)->options;
	struct cluster_unit_config cfg = {
		.failover = o->failover == FAILOVER_AUTOMATIC,
		.beacon = o->beacon * XTIME_MS,
		.silence = o->silence * XTIME_MS,
		.patience = o->patience * XTIME_MS,
		.run = m->gateway->run,
	};
	struct io_loop *loop = loop_of(m);

	m->ops = (struct cluster_unit_ops){
		.access = op_access,
		.gateways = op_gateways,
		.adopt = op_adopt,
		.drop = op_drop,
		.say = op_say,
		.wake = op_wake,
		.arg = m,
	};
	member_describe(m);
	cfg.self = m->self;
	m->cu = cluster_unit_new(&cfg, &m->ops, m->store, io_now(loop));
	if (m->cu)
		member_wake(m);
	else /* if there is no memory for the timer: with the next change */
		(void)io_timer_set(loop, &m->tick, io_now(loop) + RETRY);
}

const struct unit *member_unit(const struct member *m)
{
	return m->unit;
}

void member_status(const struct member *m, struct cluster_status *st)
{
	*st = (struct cluster_status){ .role = CLUSTER_JOINING };
	if (m->cu)
		cluster_unit_status(m->cu, st);
}

/* ---- leaving ---- */

static void end_pending(struct member *m)
{
	while (!list_empty(&m->pending)) {
		struct pending *p =
			list_entry(m->pending.next, struct pending, link);

		list_del(&p->link);
		p->end(p, ERR_ABORTED);
	}
	while (!list_empty(&m->calls)) {
		struct member_call *c =
			list_entry(m->calls.next, struct member_call, link);

		list_del(&c->link);
		c->result = ERR_ABORTED;
		c->done(c);
	}
}

/* The store ends its requests first, which then wake the unit. */
void member_free(struct member *m, bool stopped)
{
	struct io_loop *loop = loop_of(m);

	m->leave.over = true; /* nothing begins any more */
	m->unit->member = NULL;
	pthread_mutex_lock(&m->gateway->lock);
	list_del(&m->link);
	pthread_mutex_unlock(&m->gateway->lock);
	io_timer_clear(loop, &m->tick);
	io_timer_clear(loop, &m->leave.limit);
	member_drop_abandon(m, stopped);
	if (m->store)
		m->store->ops->close(m->store);
	forget_device_steps(m);
	end_pending(m);
	io_defer_cancel(&m->soon);
	if (m->cu)
		cluster_unit_free(m->cu);
	free(m->remotes);
	free(m);
}

void member_close(struct member *m)
{
	member_free(m, false);
}

void member_left(struct member *m)
{
	void (*done)(void *arg) = m->leave.done;
	struct gateway *c = m->gateway;
	void *arg = m->leave.arg;

	member_free(m, false);
	done(arg);
	gateway_left(c);
}

static void end_leave(struct member *m)
{
	m->leave.over = true;
	member_wake(m);
}

static void unit_left(struct cluster_step *s)
{
	end_leave(container_of(s, struct member, leave.step));
}

static void leave_late(struct io_timer *t)
{
	struct member *m = container_of(t, struct member, leave.limit);

	member_say(m, "the unit could not be given to another gateway in time; "
		      "the other gateways notice that this one is gone");
	end_leave(m);
}

void member_leave(struct member *m, void (*done)(void *arg), void *arg)
{
	const struct cluster_options *o = &gateway_section(m->gateway)->options;
	struct io_loop *loop = loop_of(m);
	xtime limit = o->patience * XTIME_MS + LEAVE_EXTRA;

	m->leave.begun = true;
	m->leave.done = done;
	m->leave.arg = arg;
	m->leave.step.done = unit_left;
	m->leave.limit.fire = leave_late;
	if (!m->cu || io_timer_set(loop, &m->leave.limit, io_now(loop) + limit))
		end_leave(m);
	else
		cluster_unit_leave(m->cu, &m->leave.step);
	member_wake(m);
}
