/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c: the target as a whole: nodes, portals, workers, deadlines. */
#include "target/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

#define DEPTH_MAX 1024

static void no_random(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	memset(p, 0, n); /* without CHAP nobody asks */
}

static void no_rearm(void *arg, unsigned worker)
{
	(void)arg;
	(void)worker;
}

/* The most we agree to: large bursts, immediate data, no recovery level. */
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
	p->default_time2retain = 0; /* nothing is kept for a lost session */
	p->default_time2wait = 0;   /* nor to be waited for (§13.15) */
	p->protocol_level = 2;
	p->task_reporting_fence = true;
}

void tgt_config_default(struct tgt_config *cfg)
{
	*cfg = (struct tgt_config){
		.depth = 128,
		.max_conns = 1024,
		.max_logins = 64,
		.max_logins_per_peer = 32,
		.login_time = 15 * XTIME_S,
		.idle_time = 15 * XTIME_S,
		.ping_time = 15 * XTIME_S,
		.logout_time = 3 * XTIME_S,
		.abort_time = 500 * XTIME_MS,
		.tpgt = 1,
		.random = no_random,
		.rearm = no_rearm,
	};
	default_params(&cfg->want);
}

static void worker_init(struct tgt_worker *w, struct tgt *t, unsigned index)
{
	w->tgt = t;
	w->index = index;
	w->next_tsih = 1;
	list_init(&w->conns);
	list_init(&w->sessions);
	list_init(&w->aborts);
}

struct tgt *tgt_new(const struct tgt_config *cfg)
{
	struct tgt *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cfg = *cfg;
	t->cfg.depth = MIN(MAX(cfg->depth, 1u), (unsigned)DEPTH_MAX);
	list_init(&t->nodes);
	list_init(&t->portals);
	t->workers = calloc(cfg->env.nworkers, sizeof(*t->workers));
	if (!t->workers) {
		free(t);
		return NULL;
	}
	for (unsigned i = 0; i < cfg->env.nworkers; i++)
		worker_init(&t->workers[i], t, i);
	return t;
}

void tgt_free(struct tgt *t)
{
	struct list *n;

	while ((n = list_pop_front(&t->nodes)))
		free(list_entry(n, struct tgt_node, link));
	while ((n = list_pop_front(&t->portals)))
		free(list_entry(n, struct tgt_portal, link));
	free(t->workers);
	free(t);
}

/* RFC 7143 §4.2.7.2: type designator, then bytes that need no folding. */
static bool name_ok(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-.:";
	size_t len = strlen(name);

	if (len <= 4 || len > ISCSI_NAME_MAX)
		return false;
	if (strncmp(name, "iqn.", 4) != 0 && strncmp(name, "eui.", 4) != 0 &&
	    strncmp(name, "naa.", 4) != 0)
		return false;
	/* bytes beyond ASCII are UTF-8 that the initiator normalized */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < 0x80 && !strchr(allowed, name[i]))
			return false;
	return true;
}

void tgt_port_name(const struct tgt *t, const struct tgt_node *n,
		   char name[256])
{
	snprintf(name, 256, "%s,t,0x%04x", n->cfg.name, t->cfg.tpgt);
}

/* The node's one port is a port of its SCSI device. */
static int add_port(const struct tgt *t, struct tgt_node *n)
{
	char name[256];

	tgt_port_name(t, n, name);
	return dev_port_add(n->cfg.server, name, &n->rtpi);
}

int tgt_node_add(struct tgt *t, const struct tgt_node_config *cfg)
{
	struct tgt_node *n;
	int err;

	if (!name_ok(cfg->name))
		return ERR_FORMAT;
	list_for_each(it, &t->nodes)
		if (!strcmp(list_entry(it, struct tgt_node, link)->cfg.name,
			    cfg->name))
			return ERR_BUSY;
	n = malloc(sizeof(*n));
	if (!n)
		return ERR_NOMEM;
	n->cfg = *cfg;
	err = add_port(t, n);
	if (err) {
		free(n);
		return err;
	}
	list_push_back(&t->nodes, &n->link);
	return 0;
}

int tgt_portal_add(struct tgt *t, const char *address)
{
	struct tgt_portal *p;

	if (strlen(address) >= sizeof(p->address))
		return ERR_TOO_LONG;
	p = malloc(sizeof(*p));
	if (!p)
		return ERR_NOMEM;
	memcpy(p->address, address, strlen(address) + 1);
	list_push_back(&t->portals, &p->link);
	return 0;
}

struct dev_lu *tgt_find_lu(const struct tgt_node *n, uint64_t wire)
{
	uint16_t lun;

	return dev_lun_decode(wire, &lun) ? NULL
					  : dev_lu_get(n->cfg.server, lun);
}

struct tgt_worker *tgt_worker(struct tgt *t, unsigned index)
{
	return &t->workers[index];
}

void tgt_rearm(struct tgt_worker *w)
{
	w->tgt->cfg.rearm(w->tgt->cfg.arg, w->index);
}

/* A deadline of 0 has not been set against a clock yet: now. */
xtime tgt_worker_deadline(const struct tgt_worker *w)
{
	xtime at = XTIME_NEVER;

	list_for_each(it, &w->conns)
		at = MIN(at, list_entry(it, struct tgt_conn, link)->deadline);
	list_for_each(it, &w->aborts)
		at = MIN(at, list_entry(it, struct tgt_abort, link)->deadline);
	return at;
}

void tgt_worker_expire(struct tgt_worker *w, xtime now)
{
	w->now = now;
	/* no connection is freed from within: the notice comes later */
	list_for_each(it, &w->conns) {
		struct tgt_conn *c = list_entry(it, struct tgt_conn, link);

		if (c->deadline <= now)
			tgt_conn_expire(c, now);
	}
	tgt_abort_expire(w, now);
}

void tgt_worker_drain(struct tgt_worker *w, xtime now)
{
	w->draining = true;
	w->now = now;
	list_for_each(it, &w->conns)
		tgt_conn_ask_logout(list_entry(it, struct tgt_conn, link), now);
}

void tgt_worker_kill(struct tgt_worker *w)
{
	w->draining = true;
	list_for_each(it, &w->conns)
		tgt_conn_end(list_entry(it, struct tgt_conn, link),
			     DM_TERMINATE_NOW, ERR_TERMINATED);
}

bool tgt_worker_idle(const struct tgt_worker *w)
{
	return list_empty(&w->conns) && list_empty(&w->sessions) &&
	       list_empty(&w->aborts) && w->messages == 0;
}

static void conn_status(const struct tgt_conn *c, struct tgt_conn_status *st)
{
	const struct tgt_session *s = c->session;

	*st = (struct tgt_conn_status){
		.info = &c->info,
		.transport = c->dm->transport,
		.state = iscsi_conn_state_str(c->state),
		.initiator = s ? s->id.initiator_name : "",
		.target = s ? s->id.target_name : "",
		.rejects = c->rejects,
	};
	if (!s)
		return;
	st->discovery = !s->node;
	st->tsih = s->tsih;
	st->isid = s->id.isid;
	st->params = &s->params;
	st->in_flight = s->used;
	st->commands = s->commands;
	st->bytes_read = s->bytes_read;
	st->bytes_written = s->bytes_written;
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
}
