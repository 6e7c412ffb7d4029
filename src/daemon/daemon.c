/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon.c: start, signals, orderly end. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/state.h"

/* From the wish to end: until sessions are dropped, until all is dropped. */
#define DRAIN_LIMIT (6 * XTIME_S)
#define KILL_LIMIT  (2 * XTIME_S)
#define FLUSH_LIMIT (10 * XTIME_S)

/* ---- the end ---- */

static void close_listeners(struct daemon *d)
{
	while (d->nlisteners)
		net_listener_free(d->listeners[--d->nlisteners]);
	if (d->workers)
		net_verbs_unlisten(d->workers[0].verbs);
}

/* Sessions did not end by themselves. */
static void limit_reached(struct io_timer *t)
{
	struct daemon *d = container_of(t, struct daemon, limit);

	if (d->phase == DAEMON_KILLING) {
		say("connections did not end in time; gave up on them");
		d->exit_code = EXIT_ERROR;
		io_loop_stop(d->loops[0]);
		return;
	}
	d->phase = DAEMON_KILLING;
	for (unsigned i = 0; i < d->nworkers; i++)
		worker_post(d, i, &d->workers[i].kill);
	io_timer_set(d->loops[0], t, io_now(d->loops[0]) + KILL_LIMIT);
}

void daemon_shutdown(struct daemon *d, const char *why)
{
	if (d->phase != DAEMON_SERVING)
		return;
	d->phase = DAEMON_DRAINING;
	trace_emit(&d->log.trace, TRACE_STOP, "%s: shutting down", why);
	close_listeners(d);
	for (unsigned i = 0; i < d->nworkers; i++)
		worker_post(d, i, &d->workers[i].drain);
	io_timer_set(d->loops[0], &d->limit, io_now(d->loops[0]) + DRAIN_LIMIT);
}

struct flush {
	struct bs_req req;
	bool done;
};

static void flushed(struct bs_req *req)
{
	container_of(req, struct flush, req)->done = true;
}

/* What clients were told is stored is brought to the medium. */
static void flush_store(struct daemon *d, struct bs *b)
{
	xtime limit = io_now_exact() + FLUSH_LIMIT;
	struct flush f = { .req = { .op = BS_FLUSH, .done = flushed } };

	if (d->nidle == d->nworkers)
		f.req.flags = BS_ALONE;

	if (!b || !(b->caps & BS_CAP_WRITE_CACHE))
		return;
	bs_submit(b, &f.req);
	while (!f.done && io_now_exact() < limit)
		io_loop_turn(d->loops[0], 50 * XTIME_MS);
	if (f.done && f.req.result == 0)
		return;
	say("%s: not everything could be flushed to it: %s", b->name,
	    f.done ? err_str(f.req.result) : "no answer in time");
	if (!f.done)
		_exit(EXIT_ERROR); /* the request is still in flight */
	d->exit_code = EXIT_ERROR;
}

static void flush_stores(struct daemon *d)
{
	for (unsigned i = 0; i < d->nlus; i++)
		flush_store(d, dev_lu_backstore(d->lus[i]));
}

/* ---- signals ---- */

static void signal_came(struct io_watch *w, unsigned events)
{
	struct daemon *d = container_of(w, struct daemon, signals);
	struct signalfd_siginfo si;

	(void)events;
	if (read(w->fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (d->phase == DAEMON_SERVING) {
		daemon_shutdown(d, strsignal((int)si.ssi_signo));
		return;
	}
	say("%s again: ending at once", strsignal((int)si.ssi_signo));
	_exit(EXIT_ERROR);
}

/* Blocked in every thread; worker 0 reads them as events. */
static int open_signals(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	d->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->signals.fd < 0) {
		say("signalfd: %s", strerror(errno));
		return EXIT_ERROR;
	}
	d->signals.want = IO_IN;
	d->signals.ready = signal_came;
	if (io_watch_add(d->loops[0], &d->signals)) {
		say("out of memory");
		return EXIT_ERROR;
	}
	return 0;
}

static void close_signals(struct daemon *d)
{
	if (d->signals.fd < 0)
		return;
	io_watch_del(d->loops[0], &d->signals);
	close(d->signals.fd);
}

/* ---- the whole ---- */

static int open_all(struct daemon *d)
{
	int err = workers_open(d);

	if (!err)
		err = open_signals(d);
	if (!err)
		err = setup_stores(d);
	if (!err)
		err = setup_target(d);
	if (!err)
		err = setup_listeners(d);
	if (!err && d->options.control) {
		d->control = control_open(d, d->options.control);
		if (!d->control)
			err = EXIT_ERROR;
	}
	if (!err)
		err = setup_user(d);
	if (!err)
		err = workers_start(d);
	return err;
}

static void close_all(struct daemon *d)
{
	if (d->control)
		control_close(d->control);
	close_listeners(d);
	workers_stop(d);
	if (d->target)
		tgt_free(d->target);
	for (unsigned i = 0; d->workers && i < d->nworkers; i++)
		net_verbs_close(d->workers[i].verbs);
	if (d->server)
		dev_server_free(d->server);
	if (d->workers && d->loops[0]) {
		io_timer_clear(d->loops[0], &d->limit);
		close_signals(d);
	}
	workers_close(d);
	state_close(d->state);
}

static void serve(struct daemon *d)
{
	int err;

	d->phase = DAEMON_SERVING;
	trace_emit(&d->log.trace, TRACE_START, "serving %u LUN%s as %s (%s)",
		   d->nlus, d->nlus == 1 ? "" : "s", d->options.name,
		   io_backend_name(io_loop_backend(d->loops[0])));
	dev_server_resume(d->server);
	setup_print_urls(d);
	err = io_loop_run(d->loops[0]);
	if (err) {
		say("event loop: %s", strerror(-err));
		d->exit_code = EXIT_ERROR;
	}
}

int daemon_run(const struct options *o)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int code;

	if (!d) {
		say("out of memory");
		return EXIT_ERROR;
	}
	d->options = *o;
	d->signals.fd = -1;
	d->limit.fire = limit_reached;
	log_init(&d->log, o->log);
	code = open_all(d);
	if (!code) {
		serve(d);
		workers_stop(d);
		flush_stores(d);
		code = d->exit_code;
		if (d->nidle < d->nworkers)
			_exit(code); /* something still holds on to memory */
		trace_emit(&d->log.trace, TRACE_STOP, "ended");
	}
	close_all(d);
	free(d);
	return code;
}
