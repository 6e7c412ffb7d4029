/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drop.c: what a gateway does that was fenced. Another gateway may have executed
 * commands since, so nothing that was received before may be executed or answered: the
 * sessions that use the unit end, without a Logout. The store of the record and the
 * backstore are opened anew, since the old ones are shut out; then the unit begins
 * again, as that of a gateway that has just started.
 */
#include <stdio.h>
#include <stdlib.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "daemon/cluster/internal.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/model.h"
#include "daemon/luns/module.h"
#include "daemon/luns/open.h"
#include "daemon/serve/kick.h"

#define RETRY	    (2 * XTIME_S)
#define KICK_RETRY  (20 * XTIME_MS)
#define HEALTH_WAIT (100 * XTIME_MS) /* while the file is checked */

/* A drop. A helper thread has o, spec, gateway, bs, store and why while is_opening. */
struct drop {
	struct member *m;	   /* NULL: the member has ended meanwhile */
	struct cluster_step *step; /* NULL: no drop is in progress */
	struct io_loop *const *loops;
	struct io_timer again;
	const struct dev_lu *lu; /* for kick.c, on any worker */
	struct kick *kick;
	bool is_kicked, is_dropped, is_opening, is_replacing;
	struct io_file_op op;
	struct options o; /* with those of the unit */
	struct lun_spec *spec;
	char gateway[CLUSTER_ID_SIZE];
	struct bs *bs;
	struct cluster_store *store;
	char why[512];
};

static void drop_free(struct drop *x)
{
	free(x->spec);
	free(x);
}

/* Frees x if its member has ended, and nothing refers to x any more. */
static bool is_over(struct drop *x)
{
	if (x->m)
		return false;
	if (!x->is_opening && !x->is_replacing &&
	    (!x->step || (x->is_kicked && x->is_dropped)))
		drop_free(x);
	return true;
}

struct drop *member_drop_new(struct member *m)
{
	const struct lun_spec *s = m->unit->spec;
	struct drop *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->m = m;
	x->loops = m->gateway->daemon->loops;
	snprintf(x->gateway, sizeof(x->gateway), "%s",
		 gateway_section(m->gateway)->gateway);
	x->spec = lun_spec_new(s->store, s->pi, s->key, s->new_key);
	if (x->spec)
		return x;
	free(x);
	return NULL;
}

/* ---- opening the stores ---- */

static void open_anew(struct drop *x);

/* Without memory for a timer, a helper thread waits. */
static void try_later(struct drop *x, xtime wait)
{
	struct io_loop *loop = x->loops[0];

	if (io_timer_set(loop, &x->again, io_now(loop) + wait))
		open_anew(x);
}

static void replaced(void *arg)
{
	struct drop *x = arg;
	struct cluster_step *s = x->step;

	x->is_replacing = false;
	if (is_over(x))
		return;
	x->step = NULL;
	x->m->unit->is_held = false;
	member_say(x->m, "the stores were opened anew after the fence");
	s->result = 0;
	s->done(s);
}

/* Gives the unit in the device, and its decisions, the new stores. */
static void replace(struct drop *x)
{
	struct member *m = x->m;
	int err = dev_lu_replace_backstore(m->unit->lu, x->bs, replaced, x);

	if (!err) {
		x->is_replacing = true;
		m->store = x->store;
		cluster_unit_reopened(m->cu, m->store);
		member_wake(m);
		return;
	}
	member_say(m, "%s: cannot take the place of the store before: %s",
		   x->bs->name, err_str(err));
	x->store->ops->close(x->store);
	bs_close(x->bs);
	try_later(x, RETRY);
}

static int64_t open_backstore(struct io_file_op *op)
{
	struct drop *x = container_of(op, struct drop, op);
	struct lun_memory memory = { .fd = -1 };

	x->store = NULL;
	x->bs = lun_open(&x->o, x->spec, &memory, true, x->loops);
	if (x->bs && lun_is_module(x->spec->kind))
		x->store = member_module_store(x->spec, x->bs, x->gateway,
					       x->why, sizeof(x->why));
	return 0;
}

/* The record is that of the store before. */
static bool is_same_store(struct drop *x)
{
	const char *wrong = x->m->gateway->reopened(x->m->unit, x->bs);

	if (!wrong)
		return true;
	snprintf(x->why, sizeof(x->why),
		 "%s: %s; give this gateway the one that it had", x->bs->name,
		 wrong);
	if (x->store)
		x->store->ops->close(x->store);
	x->store = NULL;
	return false;
}

/* If iserd ends meanwhile, what was opened ends with it. */
static void opened(struct io_file_op *op, int64_t result)
{
	struct drop *x = container_of(op, struct drop, op);

	(void)result;
	x->is_opening = false;
	if (is_over(x))
		return;
	if (x->bs && is_same_store(x) && !lun_is_module(x->spec->kind))
		x->store = member_store(x->m, x->bs, x->why, sizeof(x->why));
	if (x->store) {
		replace(x);
		return;
	}
	if (x->bs) {
		member_say(x->m, "%s", x->why);
		bs_close(x->bs);
	}
	try_later(x, RETRY);
}

static void open_anew(struct drop *x)
{
	x->bs = NULL;
	x->is_opening = true;
	x->op = (struct io_file_op){
		.opcode = IO_FILE_CALL,
		.fd = -1,
		.call = open_backstore,
		.done = opened,
	};
	io_file_submit(x->loops[0], &x->op);
}

/* ---- ending what was received before ---- */

/* The old backstore closes once the new one has taken its place: no check of its file
 * may be in progress then. */
static void begin_opening(struct drop *x)
{
	if (x->m->unit->in_check)
		try_later(x, HEALTH_WAIT);
	else
		open_anew(x);
}

static void go_on(struct drop *x)
{
	struct cluster_store *old;

	if (is_over(x) || !x->is_kicked || !x->is_dropped)
		return;
	old = x->m->store;
	x->m->store = NULL;
	old->ops->close(old);
	begin_opening(x);
}

static void kicked(void *arg, const struct list *all)
{
	struct drop *x = arg;
	unsigned n = 0;

	list_for_each(it, all)
		n++;
	if (x->m && n)
		member_say(x->m, "%u connection%s ended because of the fence",
			   n, n == 1 ? "" : "s");
	x->is_kicked = true;
	x->kick = NULL;
	go_on(x);
}

static void dropped(void *arg)
{
	struct drop *x = arg;

	x->is_dropped = true;
	go_on(x);
}

/* On any worker. */
static bool uses_unit(void *arg, const struct tgt_conn_status *st)
{
	const struct drop *x = arg;

	return st->has_units && dev_map_has(st->map, x->lu);
}

static void kick_all(struct drop *x)
{
	static const struct kick_how how = {
		.reason = "because another gateway has fenced this one",
		.now = true,
		.must = true,
	};

	x->kick = kick_begin(x->m->gateway->daemon, &how, uses_unit, kicked, x);
	if (!x->kick)
		try_later(x, KICK_RETRY);
}

/* The next step: of those that wait. */
static void next_step(struct io_timer *t)
{
	struct drop *x = container_of(t, struct drop, again);

	if (!x->is_kicked)
		kick_all(x);
	else
		begin_opening(x);
}

void member_drop_begin(struct member *m, struct cluster_step *s)
{
	struct drop *x = m->drop;

	x->step = s;
	x->lu = m->unit->lu;
	x->is_kicked = x->is_dropped = false;
	x->again.fire = next_step;
	x->o = m->gateway->daemon->options;
	x->o.lun = m->unit->lun;
	m->unit->is_held = true;
	if (dev_lu_drop(m->unit->lu, dropped, x)) /* in progress already */
		x->is_dropped = true;
	kick_all(x);
}

bool member_drop_is_hanging(const struct member *m)
{
	return m->drop->is_opening;
}

/* Of a drop in progress, only the helper thread is left then. */
static void stop(struct drop *x)
{
	if (x->kick)
		kick_free(x->kick);
	x->kick = NULL;
	x->is_kicked = x->is_dropped = true;
	x->is_replacing = false;
}

void member_drop_abandon(struct member *m, bool stopped)
{
	struct drop *x = m->drop;

	if (stopped)
		stop(x);
	io_timer_clear(x->loops[0], &x->again);
	m->drop = NULL;
	x->m = NULL;
	(void)is_over(x);
}
