/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gateways.h: a fixture with two gateways that share a unit, each with two workers (or one)
 * and two initiators, and the record that they have in common. The test delivers
 * messages, saves and refreshes. Beside them a gateway that has the unit for itself, with
 * the same initiators: the model of what the two must report.
 */
#ifndef TESTS_DEVICE_GATEWAYS_H
#define TESTS_DEVICE_GATEWAYS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "device/shared.h"
#include "device/unit/unit.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"
#include "unit/device/task_sanity.h"

#define GATEWAYS    2u
#define MODEL	    GATEWAYS /* the gateway that has the unit for itself */
#define WORKERS	    gw_workers
#define WORKERS_MAX 2u
#define INIS	    4u /* initiator i: gateway i / 2, worker i % 2 */
#define IN_MAX	    32768u
#define EVENTS	    64u

struct gw {
	struct dev_env env;
	struct dev_server *server;
	struct dev_lu *lu;
	struct bs *hold; /* the backstore, whose requests wait */
	struct dev_msg *messages[WORKERS_MAX], **end[WORKERS_MAX];
	/* what waits for the record */
	struct dev_save *saving[DEV_KEPT_KINDS];
	struct dev_refresh *refreshing[INIS];
	struct dev_regroup *regrouping;
	uint64_t since; /* the version that is being adopted, or .known */
	uint64_t known; /* the version that was adopted, or written here */
	unsigned adopting, fenced, out;
	bool is_cut; /* saves and refreshes end with this result: */
	int result;
};

struct ini {
	struct gw *gw;
	struct dev_nexus *nexus;
	struct dev_task task;
	char name[64];
	unsigned worker, aborts;
	bool is_busy, done, released;
	uint8_t in[IN_MAX];
	size_t in_len;
	struct scsi_sense sense;
};

struct part {
	uint8_t *data;
	size_t len;
};

static struct gateways {
	struct gw g[GATEWAYS + 1];
	struct ini i[2 * INIS]; /* from INIS on: those of the model */
	/* the record */
	uint64_t version;
	struct part parts[DEV_KEPT_KINDS];
	struct {
		uint64_t version;
		enum dev_kept kind;
		struct part part;
	} events[EVENTS];
	unsigned nevents;
	uint64_t forgotten; /* events up to this version are gone */
	bool is_lazy;	    /* settle does not work on the record */
	void (*saved)(struct gw *g, struct dev_save *s);
} gws;

static unsigned gw_workers = WORKERS_MAX;

/* ---- the services ---- */

static inline void gw_post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct gw *g = arg;

	m->next = NULL;
	*g->end[worker] = m;
	g->end[worker] = &m->next;
}

static inline bool gw_deliver(struct gw *g, unsigned worker)
{
	struct dev_msg *m = g->messages[worker];

	if (!m)
		return false;
	g->messages[worker] = m->next;
	if (!m->next)
		g->end[worker] = &g->messages[worker];
	m->run(m);
	check_tasks(g->server, worker);
	return true;
}

static inline void *gw_get(void *arg, unsigned worker, size_t len)
{
	(void)worker;
	((struct gw *)arg)->out++;
	return malloc(len);
}

static inline void gw_put(void *arg, unsigned worker, void *buf, size_t len)
{
	(void)worker;
	(void)len;
	((struct gw *)arg)->out--;
	free(buf);
}

static inline void gw_save(void *arg, struct dev_save *s)
{
	struct gw *g = arg;

	assert_null(g->saving[s->kind]);
	g->saving[s->kind] = s;
}

static inline void gw_refresh(void *arg, struct dev_refresh *r)
{
	struct gw *g = arg;
	unsigned i = 0;

	while (g->refreshing[i])
		i++;
	assert_true(i < INIS);
	g->refreshing[i] = r;
}

static inline void gw_regroup(void *arg, struct dev_regroup *r)
{
	((struct gw *)arg)->regrouping = r;
}

static inline void gw_fenced(void *arg, struct dev_lu *lu)
{
	struct gw *g = arg;

	assert_ptr_equal(lu, g->lu);
	g->fenced++;
}

/* ---- the record ---- */

static inline struct part part_of(const uint8_t *data, size_t len)
{
	struct part p = { malloc(len + 1), len };

	if (len)
		memcpy(p.data, data, len);
	return p;
}

static inline void gw_adopted(void *arg)
{
	struct gw *g = arg;

	if (--g->adopting == 0)
		g->known = g->since;
}

/* gw_catch_up puts the record in force at the gateway. */
static inline void gw_catch_up(struct gw *g)
{
	struct dev_event events[EVENTS];
	struct dev_adoption a = { .events = events,
				  .incomplete = g->since < gws.forgotten };

	if (g->since == gws.version)
		return;
	for (unsigned k = 0; k < DEV_KEPT_KINDS; k++) {
		a.records[k].data = gws.parts[k].data;
		a.records[k].len = gws.parts[k].len;
	}
	for (unsigned i = 0; i < gws.nevents; i++)
		if (gws.events[i].version > g->since)
			events[a.nevents++] =
				(struct dev_event){ gws.events[i].kind,
						    gws.events[i].part.data,
						    gws.events[i].part.len };
	g->since = gws.version;
	g->adopting++;
	assert_int_equal(dev_lu_adopt(g->lu, &a, gw_adopted, g), 0);
}

static inline void forget_event(void)
{
	gws.forgotten = gws.events[0].version;
	free(gws.events[0].part.data);
	gws.nevents--;
	memmove(gws.events, gws.events + 1,
		gws.nevents * sizeof(gws.events[0]));
}

static inline void write_record(struct gw *g, const struct dev_save *s)
{
	g->since = g->known = ++gws.version;
	free(gws.parts[s->kind].data);
	gws.parts[s->kind] = part_of(s->data, s->len);
	if (!s->event_len)
		return;
	if (gws.nevents == EVENTS)
		forget_event();
	gws.events[gws.nevents].version = gws.version;
	gws.events[gws.nevents].kind = s->kind;
	gws.events[gws.nevents++].part = part_of(s->event, s->event_len);
}

/* gw_work does what the gateway has to do with the record. False: nothing. */
static inline bool gw_work_save(struct gw *g)
{
	for (unsigned k = 0; k < DEV_KEPT_KINDS; k++) {
		struct dev_save *s = g->saving[k];

		if (!s)
			continue;
		g->saving[k] = NULL;
		s->result = g->is_cut ? g->result : 0;
		if (!s->result && g->known != gws.version) {
			gw_catch_up(g);
			s->result = ERR_AGAIN;
		} else if (!s->result) {
			write_record(g, s);
			if (gws.saved)
				gws.saved(g, s);
		}
		s->done(s);
		return true;
	}
	return false;
}

static inline bool gw_work_refresh(struct gw *g)
{
	for (unsigned i = 0; i < INIS; i++) {
		struct dev_refresh *r = g->refreshing[i];

		if (!r)
			continue;
		if (!g->is_cut && g->since != gws.version) {
			gw_catch_up(g);
			return true;
		}
		if (g->adopting)
			continue;
		g->refreshing[i] = NULL;
		r->result = g->is_cut ? g->result : 0;
		r->done(r);
		return true;
	}
	return false;
}

/* As the daemon does, in one turn: a change that is decided again at once would never
 * let it hear of the adoption. */
static inline bool gw_work(struct gw *g)
{
	unsigned n = 0;

	while (gw_work_save(g))
		assert_true(n++ < 8);
	return n || gw_work_refresh(g);
}

static inline void settle(void)
{
	unsigned turns = 0;
	bool again;

	do {
		assert_true(turns++ < 100000);
		again = false;
		for (unsigned k = 0; k < GATEWAYS + 1; k++) {
			struct gw *g = &gws.g[k];

			for (unsigned w = 0; g->server && w < WORKERS; w++)
				again |= gw_deliver(g, w);
			if (k != MODEL && !gws.is_lazy)
				again |= gw_work(g);
		}
	} while (again);
}

/* notify brings both gateways up to date. */
static inline void notify(void)
{
	for (unsigned k = 0; k < GATEWAYS; k++)
		gw_catch_up(&gws.g[k]);
	settle();
}

/* ---- commands ---- */

static inline void ini_done(struct dev_task *t)
{
	container_of(t, struct ini, task)->done = true;
}

static inline void ini_released(struct dev_task *t)
{
	container_of(t, struct ini, task)->released = true;
}

static inline void send_cdb(struct ini *i, const uint8_t *cdb, const void *data,
			    uint32_t out, uint32_t in)
{
	struct dev_task *t = &i->task;

	memset(t, 0, sizeof(*t));
	i->done = i->released = false;
	i->is_busy = true;
	t->nexus = i->nexus;
	t->attr = DEV_ATTR_SIMPLE;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl.out = out;
	t->edtl.in = in;
	t->done = ini_done;
	assert_int_equal(dev_task_begin(t), 0);
	if (t->out_len && data)
		bufv_copy_in(&t->out, 0, data, t->out_len);
	dev_task_execute(t);
}

static inline int finish(struct ini *i)
{
	struct dev_task *t = &i->task;

	assert_true(i->done);
	i->is_busy = false;
	memset(&i->sense, 0, sizeof(i->sense));
	if (t->sense.len)
		scsi_sense_parse(&i->sense, t->sense.data, t->sense.len);
	i->in_len = bufv_copy_out(&t->in, 0, i->in, MIN(t->in.len, IN_MAX));
	dev_task_end(t);
	return t->status;
}

static inline int run(struct ini *i, const uint8_t *cdb, const void *data,
		      uint32_t out, uint32_t in)
{
	send_cdb(i, cdb, data, out, in);
	settle();
	return finish(i);
}

#define RUN(who, in, ...) \
 run(&gws.i[who], (const uint8_t[16]){ __VA_ARGS__ }, NULL, 0, in)

/* take_attention returns the additional sense code of the next attention; 0: none. */
static inline uint16_t take_attention(unsigned who)
{
	struct scsi_sense s = { 0 };

	assert_int_equal(RUN(who, 96, SCSI_REQUEST_SENSE, 0, 0, 0, 96),
			 SCSI_GOOD);
	scsi_sense_parse(&s, gws.i[who].in, gws.i[who].in_len);
	return s.key == SENSE_UNIT_ATTENTION ? s.asc : 0;
}

static inline void take_attentions(void)
{
	for (unsigned i = 0; i < 2 * INIS; i++)
		while (gws.i[i].nexus && take_attention(i))
			;
}

static inline void expect_sense(unsigned who, uint8_t key, uint16_t asc)
{
	assert_int_equal(gws.i[who].sense.key, key);
	assert_int_equal(gws.i[who].sense.asc, asc);
}

/* ---- begin and end ---- */

static inline void ini_abort(void *arg, const struct dev_lu *lu,
			     const struct dev_task *except)
{
	struct ini *i = arg;

	(void)lu;
	(void)except;
	i->aborts++;
	dev_nexus_tasks_gone(i->nexus);
}

static inline void login(unsigned who)
{
	struct ini *i = &gws.i[who];
	unsigned n = who % INIS;
	struct dev_nexus_config cfg = {
		.worker = i->worker,
		.relative_target_port = (uint16_t)(1 + n / 2),
		.abort_tasks = ini_abort,
		.arg = i,
	};

	snprintf(i->name, sizeof(i->name), "iqn.i%u,i,0x80000000000%u", n, n);
	strcpy(cfg.initiator_port, i->name);
	strcpy(cfg.target_name, "iqn.t");
	snprintf(cfg.target_port, sizeof(cfg.target_port), "iqn.t,t,0x000%u",
		 1 + n / 2);
	i->nexus = dev_nexus_open(i->gw->server, &cfg);
	assert_non_null(i->nexus);
}

static inline void logout(unsigned who)
{
	if (!gws.i[who].nexus)
		return;
	dev_nexus_close(gws.i[who].nexus);
	gws.i[who].nexus = NULL;
	settle();
}

/* The group of gateway k has the port k + 1. */
static inline void set_groups(unsigned k, unsigned owner)
{
	struct dev_lu_group g[GATEWAYS] = { 0 };

	for (unsigned i = 0; i < GATEWAYS; i++) {
		g[i].id = (uint16_t)(i + 1);
		g[i].own = i == k;
		g[i].state =
			i == owner ? DEV_ACCESS_OPTIMIZED : DEV_ACCESS_STANDBY;
		g[i].nports = 1;
		g[i].ports[0] = (uint16_t)(i + 1);
	}
	assert_int_equal(dev_lu_groups_replace(gws.g[k].lu, g, GATEWAYS), 0);
}

static int access_result;

static inline void access_done(void *arg, int err)
{
	access_result = err;
	*(bool *)arg = true;
}

static inline void set_access(unsigned k, enum dev_access state)
{
	bool done = false;

	assert_int_equal(
		dev_lu_access_set(gws.g[k].lu, state, access_done, &done), 0);
	assert_false(done); /* never from within */
	settle();
	assert_true(done);
	assert_int_equal(access_result, 0);
}

/* make_owner moves the unit to gateway k. */
static inline void make_owner(unsigned k)
{
	set_access(1 - k, DEV_ACCESS_STANDBY);
	set_access(k, DEV_ACCESS_OPTIMIZED);
	for (unsigned i = 0; i < GATEWAYS; i++)
		set_groups(i, k);
	settle();
	take_attentions();
}

/* A store whose requests wait, also flushes. */
static inline struct bs *new_hold(void)
{
	struct bs *b = bs_hold_new(bs_null_new("null:1M", 1u << 20, 512));

	b->caps |= BS_CAP_WRITE_CACHE;
	return b;
}

static inline void start_gateway(unsigned k)
{
	const struct dev_lu_config cfg = { .clustered = k != MODEL,
					   .keeps = k == MODEL };
	struct gw *g = &gws.g[k];
	uint16_t port;
	char name[32];

	for (unsigned w = 0; w < WORKERS; w++)
		g->end[w] = &g->messages[w];
	g->env = (struct dev_env){ .nworkers = WORKERS,
				   .post = gw_post,
				   .save = k == MODEL ? NULL : gw_save,
				   .refresh = gw_refresh,
				   .regroup = gw_regroup,
				   .fenced = gw_fenced,
				   .buf_get = gw_get,
				   .buf_put = gw_put,
				   .arg = g };
	g->server = dev_server_new(&g->env, 1u << 20);
	g->hold = new_hold();
	assert_int_equal(dev_lu_add(g->server, &cfg, g->hold), 0);
	g->lu = dev_lu_get(g->server, 0);
	for (unsigned p = k == MODEL ? 0 : k;
	     p < (k == MODEL ? GATEWAYS : k + 1); p++) {
		snprintf(name, sizeof(name), "iqn.t,t,0x000%u", p + 1);
		dev_server_first_port(g->server, (uint16_t)(p + 1));
		assert_int_equal(dev_port_add(g->server, name, &port), 0);
		assert_int_equal(port, p + 1);
	}
}

static inline int gateways_open(void **state)
{
	(void)state;
	memset(&gws, 0, sizeof(gws));
	for (unsigned k = 0; k < GATEWAYS + 1; k++)
		start_gateway(k);
	for (unsigned i = 0; i < 2 * INIS; i++) {
		gws.i[i].gw = &gws.g[i < INIS ? i / 2 : MODEL];
		gws.i[i].worker = i % 2 % WORKERS;
		login(i);
	}
	make_owner(0);
	return 0;
}

/* Ends the commands that a failed test has left. */
static inline void end_commands(void)
{
	gws.is_lazy = false;
	for (unsigned k = 0; k < GATEWAYS + 1; k++)
		bs_hold_release(gws.g[k].hold, 1000);
	settle();
	for (unsigned i = 0; i < 2 * INIS; i++) {
		struct ini *n = &gws.i[i];

		if (!n->is_busy)
			continue;
		if (!n->done)
			(void)dev_task_abort(&n->task, ini_released);
		settle();
		dev_task_end(&n->task);
		n->is_busy = false;
	}
}

/* The same with one worker: most steps follow each other within one call. */
static inline int gateways_open_alone(void **state)
{
	gw_workers = 1;
	return gateways_open(state);
}

static inline int gateways_close(void **state)
{
	(void)state;
	end_commands();
	for (unsigned i = 0; i < 2 * INIS; i++)
		logout(i);
	for (unsigned k = 0; k < GATEWAYS + 1; k++) {
		dev_server_free(gws.g[k].server);
		assert_int_equal(gws.g[k].out, 0);
	}
	for (unsigned k = 0; k < DEV_KEPT_KINDS; k++)
		free(gws.parts[k].data);
	while (gws.nevents)
		forget_event();
	gw_workers = WORKERS_MAX;
	return 0;
}

#endif
