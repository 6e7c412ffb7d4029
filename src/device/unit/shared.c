/* SPDX-License-Identifier: BSD-2-Clause */
/* unit/shared.c: see unit/shared.h. */
#include "device/unit/shared.h"

#include <stdlib.h>

#include "device/unit/ports.h"

/* ---- begin and end ---- */

int dev_shared_new(struct dev_lu *lu)
{
	lu->shared = calloc(1, sizeof(*lu->shared));
	if (!lu->shared)
		return ERR_NOMEM;
	lu->shared->lu = lu;
	dev_changes_init(&lu->shared->groups.changes);
	lu->shared->groups.wanted = DEV_ACCESS_TRANSITIONING;
	return 0;
}

void dev_shared_fini(struct dev_lu *lu)
{
	if (!lu->shared)
		return;
	dev_changes_forget(&lu->shared->groups.changes);
	free((void *)(uintptr_t)lu->shared->groups.now[DEV_HOME]);
	free(lu->shared);
	lu->shared = NULL;
}

/* ---- ports ---- */

static bool has_port(const struct dev_lu_group *g, uint16_t port)
{
	for (unsigned i = 0; i < g->nports; i++)
		if (g->ports[i] == port)
			return true;
	return false;
}

const struct dev_lu_group *dev_lu_group_of(const struct dev_lu *lu,
					   unsigned worker, uint16_t port)
{
	const struct dev_lu_groups *all = lu->shared->groups.now[worker];

	for (unsigned i = 0; all && i < all->n; i++)
		if (has_port(&all->of[i], port))
			return &all->of[i];
	return NULL;
}

bool dev_lu_is_shown(const struct dev_nexus *n, uint16_t port)
{
	return !dev_port_is_own(n->server, port) ||
	       dev_ports_have(dev_ports_of(n), port);
}

struct port_list {
	uint16_t *out;
	unsigned n, max;
};

static void add_port(struct port_list *f, uint16_t port)
{
	if (f->n < f->max)
		f->out[f->n] = port;
	f->n++;
}

static void add_foreign(const struct dev_lu *lu, struct port_list *f)
{
	const struct dev_lu_groups *all =
		lu->shared ? lu->shared->groups.now[DEV_HOME] : NULL;

	for (unsigned i = 0; all && i < all->n; i++)
		for (unsigned k = 0; k < all->of[i].nports; k++)
			if (!dev_port_is_own(lu->server, all->of[i].ports[k]))
				add_port(f, all->of[i].ports[k]);
}

unsigned dev_lu_ports(const struct dev_lu *lu, const struct dev_nexus *n,
		      uint16_t *out, unsigned max)
{
	const struct dev_ports *own = dev_ports_of(n);
	struct port_list f = { .out = out, .max = max };

	if (!own)
		add_port(&f, n->cfg.relative_target_port);
	for (const struct dev_port *p = own ? own->first : NULL; p;
	     p = dev_port_next(p))
		add_port(&f, p->rtpi);
	add_foreign(lu, &f);
	return f.n;
}

/* ---- a fenced gateway ---- */

static void tell_daemon(struct dev_msg *m)
{
	struct dev_shared *s = container_of(m, struct dev_shared, fenced);
	const struct dev_env *env = &s->lu->server->env;

	env->fenced(env->arg, s->lu);
}

void dev_store_fenced(struct dev_lu *lu)
{
	const struct dev_env *env = &lu->server->env;
	struct dev_shared *s = lu->shared;

	if (__atomic_exchange_n(&s->is_fenced, true, __ATOMIC_ACQ_REL))
		return;
	s->fenced.run = tell_daemon;
	env->post(env->arg, DEV_HOME, &s->fenced);
}

void dev_itl_forget(struct dev_itl *i)
{
	if (i->is_dropped)
		dev_drop_left(i->lu);
}

void dev_drop_left(struct dev_lu *lu)
{
	const struct dev_env *env = &lu->server->env;
	struct dev_shared *s = lu->shared;

	if (__atomic_sub_fetch(&s->drop.left, 1, __ATOMIC_ACQ_REL) == 0)
		env->post(env->arg, DEV_HOME, &s->drop.msg);
}

/* ---- the newest common state ---- */

struct refresh {
	struct dev_refresh r;
	struct dev_round round; /* to the home worker and back */
	unsigned from;
	struct dev_task *task; /* NULL: was aborted; on its worker */
	void (*run)(struct dev_task *t);
};

static void drop_refresh(struct dev_task *t)
{
	struct refresh *f = t->own.abort.waits_for;

	f->task = NULL;
}

static void refresh_end(struct refresh *f)
{
	void (*run)(struct dev_task * t) = f->run;
	struct dev_task *t = f->task;
	int err = f->r.result;

	free(f);
	if (!t)
		return;
	t->own.abort.let_go = NULL;
	if (!err)
		run(t);
	else if (err == ERR_TERMINATED)
		(void)dev_hold(t);
	else if (err == ERR_NOMEM)
		dev_no_resources(t);
	else
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
}

static void refresh_back(struct dev_msg *m)
{
	refresh_end(container_of(container_of(m, struct dev_round, msg),
				 struct refresh, round));
}

static void refreshed(struct dev_refresh *r)
{
	struct refresh *f = container_of(r, struct refresh, r);

	dev_round_go(&f->round, DEV_HOME, f->from, refresh_back);
}

static void ask_refresh(struct dev_msg *m)
{
	struct refresh *f = container_of(container_of(m, struct dev_round, msg),
					 struct refresh, round);
	const struct dev_env *env = &f->round.server->env;

	env->refresh(env->arg, &f->r);
}

void dev_refreshed(struct dev_task *t, void (*run)(struct dev_task *t))
{
	struct refresh *f;

	if (!t->lu->shared) {
		run(t);
		return;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		dev_no_resources(t);
		return;
	}
	f->r.lu = t->lu;
	f->r.done = refreshed;
	f->round.server = t->nexus->server;
	f->from = t->nexus->cfg.worker;
	f->task = t;
	f->run = run;
	t->own.abort.let_go = drop_refresh;
	t->own.abort.waits_for = f;
	dev_round_go(&f->round, f->from, DEV_HOME, ask_refresh);
}
