/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shutdown.c: the orderly end. Each worker asks its sessions to log out
 * (drain), drops what is left after DRAIN_LIMIT (kill), and reports that it is
 * idle; worker 0 then stops its loop, and the stores are flushed.
 */
#include "daemon/shutdown.h"

#include <stdlib.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "daemon/apply/units.h"
#include "daemon/cluster/gateway.h"
#include "daemon/log/say.h"
#include "daemon/upgrade/service.h"

/* Limits of the end: until sessions that have not logged out are dropped, then
 * until iserd no longer waits for them. */
#define DRAIN_LIMIT (6 * XTIME_S)
#define KILL_LIMIT  (2 * XTIME_S)
#define FLUSH_LIMIT (10 * XTIME_S)
#define HUNG_LIMIT  (2 * XTIME_S) /* of the flushes, where a check hung */
#define DRAIN_TICK  (20 * XTIME_MS)

/* ---- draining: on each worker ---- */

static void report_idle(struct dev_msg *m)
{
	struct worker *w = container_of(m, struct worker, idle);
	struct daemon *d = w->daemon;

	if (++d->end.nidle == d->nworkers)
		io_loop_stop(d->workers[0].loop);
}

static void check_idle(struct io_timer *t)
{
	struct worker *w = container_of(t, struct worker, drain_tick);

	if (list_empty(&w->conns) && tgt_worker_idle(w->target) &&
	    !dev_server_is_busy(w->daemon->server))
		worker_post(w->daemon, 0, &w->idle);
	else
		io_timer_set(w->loop, t, io_now(w->loop) + DRAIN_TICK);
}

static void drain_worker(struct dev_msg *m)
{
	struct worker *w = container_of(m, struct worker, drain);

	dev_server_stop(w->daemon->server);
	if (w->daemon->phase == DAEMON_KILLING)
		tgt_worker_kill(w->target);
	else
		tgt_worker_drain(w->target, io_now(w->loop));
	conns_drain(w);
	worker_set_clock(w);
	check_idle(&w->drain_tick);
}

static void kill_conns(struct dev_msg *m)
{
	struct worker *w = container_of(m, struct worker, kill);

	tgt_worker_kill(w->target);
}

/* ---- the whole process: on worker 0 ---- */

/* The time limit has expired and sessions are left: the first time they are
 * dropped, the second time iserd ends without waiting for them. */
static void limit_reached(struct io_timer *t)
{
	struct daemon *d = container_of(t, struct daemon, limit);

	if (d->phase == DAEMON_KILLING) {
		say("connections did not end in time; ending without them");
		d->exit_code = EXIT_ERROR;
		io_loop_stop(d->loops[0]);
		return;
	}
	d->phase = DAEMON_KILLING;
	for (unsigned i = 0; i < d->nworkers; i++)
		worker_post(d, i, &d->workers[i].kill);
	io_timer_set(d->loops[0], t, io_now(d->loops[0]) + KILL_LIMIT);
}

void shutdown_init(struct daemon *d)
{
	d->limit.fire = limit_reached;
	for (unsigned i = 0; i < d->nworkers; i++) {
		struct worker *w = &d->workers[i];

		w->drain_tick.fire = check_idle;
		w->drain.run = drain_worker;
		w->kill.run = kill_conns;
		w->idle.run = report_idle;
	}
}

static void begin_drain(void *arg)
{
	struct daemon *d = arg;

	for (unsigned i = 0; i < d->nworkers; i++)
		worker_post(d, i, &d->workers[i].drain);
	io_timer_set(d->loops[0], &d->limit,
		     io_now(d->loops[0]) + d->end.limit);
}

/* Units of several gateways go to another gateway first, so that their initiators have
 * a path to log out to. */
void shutdown_begin(struct daemon *d, bool at_once, const char *why)
{
	if (d->phase != DAEMON_SERVING)
		return;
	d->phase = at_once ? DAEMON_KILLING : DAEMON_DRAINING;
	trace_emit(&d->log.trace, TRACE_STOP, "%s: shutting down", why);
	if (!d->handover) /* else the service goes on, as another process */
		service_stopping(d, why);
	listen_close(d);
	d->end.limit = at_once ? KILL_LIMIT : DRAIN_LIMIT;
	if (d->gateway)
		gateway_leave(d->gateway, begin_drain, d);
	else
		begin_drain(d);
}

struct flush {
	struct bs_req req;
	bool done;
};

static void flush_done(struct bs_req *req)
{
	container_of(req, struct flush, req)->done = true;
}

/* Submits the flush of LUN i's store; one without a cache needs none. */
static void submit_flush(struct daemon *d, unsigned i, struct flush *f)
{
	struct bs *b = dev_lu_backstore(d->units[i]->lu);

	f->req = (struct bs_req){ .op = BS_FLUSH, .done = flush_done };
	if (d->end.nidle == d->nworkers && !d->end.is_hung)
		f->req.flags = BS_ALONE;
	f->done = !b || !(b->caps & BS_CAP_WRITE_CACHE);
	if (!f->done)
		bs_submit(b, &f->req);
}

static bool is_flush_in_progress(const struct daemon *d, const struct flush *f)
{
	for (unsigned i = 0; i < d->nunits; i++)
		if (!f[i].done)
			return true;
	return false;
}

/* Also reports a flush that failed earlier: the last one succeeded, but the
 * data of the earlier one are lost. */
static void report_flush(struct daemon *d, unsigned i, const struct flush *f)
{
	const struct bs *b = dev_lu_backstore(d->units[i]->lu);

	if (f->done && !f->req.result && !dev_lu_flush_failed(d->units[i]->lu))
		return;
	d->exit_code = EXIT_ERROR;
	if (!f->done || f->req.result)
		say("backstore %s, %s: not everything could be flushed to it: "
		    "%s",
		    d->units[i]->name, b->name,
		    f->done ? err_str(f->req.result) : "no answer in time");
	else
		say("backstore %s, %s: a flush failed: data that were written "
		    "before it may be lost",
		    d->units[i]->name, b->name);
}

/* Flushes all stores at once, so that a flush that hangs does not use up the
 * limit of all. */
void shutdown_flush(struct daemon *d)
{
	xtime limit =
		io_now_exact() + (d->end.is_hung ? HUNG_LIMIT : FLUSH_LIMIT);
	struct flush *f = calloc(d->nunits + 1, sizeof(*f));

	if (!f) {
		say("out of memory: the stores were not flushed");
		d->exit_code = EXIT_ERROR;
		return;
	}
	for (unsigned i = 0; i < d->nunits; i++)
		submit_flush(d, i, &f[i]);
	while (is_flush_in_progress(d, f) && io_now_exact() < limit)
		io_loop_turn(d->loops[0], 50 * XTIME_MS);
	for (unsigned i = 0; i < d->nunits; i++)
		report_flush(d, i, &f[i]);
	/* Requests in progress still write to f: it is never freed then. */
	if (is_flush_in_progress(d, f))
		d->end.is_hung = true;
	else
		free(f);
}
