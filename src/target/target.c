/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c: the target as a whole: its configuration, workers, deadlines. */
#include "target/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

static void no_random(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	memset(p, 0, n); /* only CHAP needs random bytes */
}

static void no_rearm(void *arg, unsigned worker)
{
	(void)arg;
	(void)worker;
}

static int always_admit(void *arg, void *owner, bool discovery, bool proven)
{
	(void)arg;
	(void)owner;
	(void)discovery;
	(void)proven;
	return 0;
}

static void ignore_end(void *arg, void *owner, bool logged_out)
{
	(void)arg;
	(void)owner;
	(void)logged_out;
}

static xtime never_wait(void *arg, void *owner)
{
	(void)arg;
	(void)owner;
	return 0;
}

static xtime check_at_once(void *arg, void *owner, const char *account,
			   const char *initiator)
{
	(void)account;
	(void)initiator;
	return never_wait(arg, owner);
}

/* The limits of the negotiation: large bursts, immediate data, no recovery
 * level. */
static void default_params(struct iscsi_params *p)
{
	iscsi_params_defaults(p);
	p->max_recv_dsl = 262144;
	p->max_connections = 1;
	p->initial_r2t = false;
	p->immediate_data = true;
	p->max_burst_length = 1048576;
	p->first_burst_length = 262144;
	p->max_outstanding_r2t = 8;
	p->error_recovery_level = 0;
	p->default_time2retain = 0; /* a lost session is not retained */
	p->default_time2wait = 0; /* so there is nothing to wait for (§13.15) */
	p->protocol_level = 2;
	p->task_reporting = ISCSI_FAST_ABORT;
}

void tgt_config_default(struct tgt_config *cfg)
{
	*cfg = (struct tgt_config){
		.depth = 128,
		.max_conns = 1024,
		.login_time = 15 * XTIME_S,
		.discovery_time = 60 * XTIME_S,
		.idle_time = 15 * XTIME_S,
		/* more than a minute in all: a program with the synchronous calls
		 * of libiscsi answers only during a call */
		.ping_time = 60 * XTIME_S,
		.logout_time = 3 * XTIME_S,
		.abort_time = 500 * XTIME_MS,
		.data_time = 30 * XTIME_S,
		.logged_in = always_admit,
		.auth_begin = check_at_once,
		.auth_failed = never_wait,
		.ended = ignore_end,
		.random = no_random,
		.rearm = no_rearm,
		.slow_time = XTIME_NEVER,
	};
	default_params(&cfg->want);
}

static void worker_init(struct tgt_worker *w, struct tgt *t, unsigned index)
{
	w->tgt = t;
	w->index = index;
	w->next_tsih = 1;
	tgt_worker_take(w, t->directory);
	list_init(&w->conns);
	list_init(&w->lost);
	list_init(&w->sessions);
	list_init(&w->aborts);
	list_init(&w->uses);
	list_init(&w->settling);
	tgt_stats_init(&w->stats);
}

struct tgt *tgt_new(const struct tgt_config *cfg)
{
	struct tgt *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cfg = *cfg;
	t->cfg.depth = MIN(MAX(cfg->depth, 1u), (unsigned)TGT_DEPTH_MAX);
	list_init(&t->nodes);
	t->directory = tgt_directory_new();
	t->workers = aligned_alloc(_Alignof(struct tgt_worker),
				   cfg->env.nworkers * sizeof(*t->workers));
	if (!t->workers || !t->directory) {
		tgt_directory_free(t->directory);
		free(t->workers);
		free(t);
		return NULL;
	}
	memset(t->workers, 0, cfg->env.nworkers * sizeof(*t->workers));
	for (unsigned i = 0; i < cfg->env.nworkers; i++)
		worker_init(&t->workers[i], t, i);
	return t;
}

void tgt_free(struct tgt *t)
{
	for (unsigned i = 0; i < t->cfg.env.nworkers; i++)
		tgt_stats_fini(&t->workers[i].stats);
	tgt_nodes_free(t);
	tgt_directory_free(t->directory);
	free(t->workers);
	free(t);
}

struct tgt_worker *tgt_worker(struct tgt *t, unsigned index)
{
	return &t->workers[index];
}

/* A deadline of 0 has passed: clock.c and abort.c use it for one that they set at
 * the next tgt_worker_expire. */
xtime tgt_worker_deadline(const struct tgt_worker *w)
{
	xtime at = tgt_due_next(w);

	list_for_each(it, &w->aborts)
		at = MIN(at, list_entry(it, struct tgt_abort, link)->deadline);
	return MIN(at, tgt_recover_deadline(w));
}

unsigned tgt_worker_conns(const struct tgt_worker *w)
{
	return w->dues.n;
}

static void expire_conn(struct tgt_conn *c, xtime now)
{
	if (c->deadline <= now && !tgt_login_expire(c, now))
		tgt_clock_expire(c, now);
	if (c->stall.at <= now)
		tgt_stall_expire(c, now);
	tgt_due_set(c);
}

void tgt_worker_expire(struct tgt_worker *w, xtime now)
{
	w->now = now;
	/* Connection_Terminate_Notify comes later: no connection leaves here */
	for (unsigned i = 0; i < w->dues.n; i++)
		if (w->dues.all[i].at <= now)
			expire_conn(w->dues.all[i].conn, now);
	tgt_abort_expire(w, now);
	tgt_recover_expire(w, now);
}

void tgt_conn_drop(struct tgt_worker *w, const void *owner, const char *why)
{
	list_for_each(it, &w->conns) {
		struct tgt_conn *c = list_entry(it, struct tgt_conn, link);

		if (c->info.owner != owner)
			continue;
		conn_trace(c, TRACE_CONN_LIMIT, "connection dropped: %s", why);
		c->end.final = true;
		tgt_conn_end(c, DM_TERMINATE_NOW, ERR_LIMIT);
		return;
	}
}

void tgt_worker_drain(struct tgt_worker *w, xtime now)
{
	w->draining = true;
	w->now = now;
	tgt_recover_end_worker(w);
	list_for_each(it, &w->conns)
		tgt_clock_ask_logout(list_entry(it, struct tgt_conn, link),
				     now);
}

void tgt_worker_kill(struct tgt_worker *w)
{
	w->draining = true;
	tgt_recover_end_worker(w);
	list_for_each(it, &w->conns)
		tgt_conn_end(list_entry(it, struct tgt_conn, link),
			     DM_TERMINATE_NOW, ERR_TERMINATED);
}

bool tgt_worker_idle(const struct tgt_worker *w)
{
	return list_empty(&w->conns) && list_empty(&w->sessions) &&
	       list_empty(&w->aborts) && w->messages == 0;
}

static uint32_t tasks_of(const struct tgt_conn *c)
{
	uint32_t n = 0;

	list_for_each(it, &c->session->tasks.active)
		n += list_entry(it, struct tgt_task, link)->conn == c;
	return n;
}

static void conn_status(const struct tgt_conn *c, struct tgt_conn_status *st)
{
	const struct tgt_session *s = c->session;

	*st = (struct tgt_conn_status){
		.info = &c->info,
		.transport = c->dm ? c->dm->transport : "tcp",
		.lost = !c->dm,
		.state = iscsi_conn_state_str(c->state),
		.initiator = s ? s->id.initiator_name : "",
		.target = s ? s->id.target_name : "",
		.rejects = c->rejects,
	};
	if (!s)
		return;
	st->discovery = !s->node;
	st->has_units = s->nexus;
	st->map = s->luns.map;
	st->tsih = s->tsih;
	st->cid = c->cid;
	st->isid = s->id.isid;
	st->account = s->login.account;
	st->algorithm = s->login.algorithm;
	st->since = s->login.at;
	st->joined = s->conns.list.next != &c->session_link;
	if (!c->dm && list_empty(&s->conns.list))
		st->joined = s->conns.lost.next != &c->session_link;
	st->params = c->login ? &s->params : &c->params;
	st->in_flight = tasks_of(c);
	st->count = c->dm ? &c->count : NULL; /* tgt_ended has it */
}

void tgt_worker_each(const struct tgt_worker *w,
		     void (*fn)(void *arg, const struct tgt_conn_status *st),
		     void *arg)
{
	list_for_each(it, &w->conns) {
		struct tgt_conn_status st;

		conn_status(list_entry(it, struct tgt_conn, link), &st);
		fn(arg, &st);
	}
	list_for_each(it, &w->lost) {
		struct tgt_conn_status st;

		conn_status(list_entry(it, struct tgt_conn, link), &st);
		fn(arg, &st);
	}
}

static void end_conn(struct tgt_conn *c, bool now, const char *reason)
{
	conn_trace(c, TRACE_LOGOUT, "%s %s",
		   now ? "dropped" : "asked to log out", reason);
	c->end.final = true;
	if (now || c->login || !c->session)
		tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TERMINATED);
	else if (!c->end.leaving && c->state == ISCSI_S5_LOGGED_IN)
		tgt_clock_leave(c);
}

void tgt_worker_end(struct tgt_worker *w, bool now, const char *reason,
		    bool (*fn)(void *arg, const struct tgt_conn_status *st),
		    void *arg)
{
	list_for_each(it, &w->conns) {
		struct tgt_conn *c = list_entry(it, struct tgt_conn, link);
		struct tgt_conn_status st;

		conn_status(c, &st);
		if (!c->closing && fn(arg, &st))
			end_conn(c, now, reason);
	}
	list_for_each(it, &w->lost) {
		struct tgt_conn *c = list_entry(it, struct tgt_conn, link);
		struct tgt_conn_status st;

		conn_status(c, &st);
		if (!c->end.final && fn(arg, &st)) {
			c->session->conns.dropped = true;
			tgt_recover_end(c);
		}
	}
}
