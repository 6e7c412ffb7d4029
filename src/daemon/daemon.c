/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon.c: start and signals of iserd. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/apply/apply.h"
#include "daemon/apply/health.h"
#include "daemon/apply/units.h"
#include "daemon/cluster/gateway.h"
#include "daemon/config/model.h"
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/luns/identities.h"
#include "daemon/luns/state.h"
#include "daemon/metrics/http.h"
#include "daemon/metrics/snapshot.h"
#include "daemon/rpc/control.h"
#include "daemon/shutdown.h"
#include "daemon/upgrade/service.h"
#include "daemon/upgrade/successor.h"
#include "daemon/upgrade/takeover.h"

/* ---- signals ---- */

/* SIGUSR1: the counters of iserctl status in one line. */
static void log_status(struct daemon *d)
{
	struct admission_counts c;
	uint64_t refused = 0;

	gate_counts(&d->gate, &c);
	for (unsigned i = 0; i < ADMISSION_VERDICTS; i++)
		refused += c.refused[i];
	trace_emit(
		&d->log.trace, TRACE_START,
		"status: %u sessions, %u discovery sessions, %u half-open "
		"connections; since the start %llu connections, %llu logins, "
		"%llu failed CHAP, %llu connections refused, %llu dropped",
		c.sessions, c.discovery, c.starting,
		(unsigned long long)c.arrived, (unsigned long long)c.logins,
		(unsigned long long)c.auth_failures,
		(unsigned long long)refused,
		(unsigned long long)(c.dropped_starting + c.dropped_discovery));
}

static unsigned count_sessions(struct daemon *d)
{
	struct admission_counts c;

	gate_counts(&d->gate, &c);
	return c.sessions;
}

/* Signals by which other daemons reload or reopen their logs do not end this
 * one. True: signo is one of them. */
static bool handle_other(struct daemon *d, int signo)
{
	switch (signo) {
	case SIGHUP:
		apply_reload(d);
		return true;
	case SIGUSR1:
		log_status(d);
		return true;
	case SIGUSR2:
		successor_start(d);
		return true;
	default:
		return false;
	}
}

/* The second signal ends iserd at once: an orderly end takes seconds if initiators
 * do not log out. */
static void read_signal(struct io_watch *w, unsigned events)
{
	struct daemon *d = container_of(w, struct daemon, signals);
	struct signalfd_siginfo si;

	(void)events;
	if (read(w->fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (handle_other(d, (int)si.ssi_signo))
		return;
	if (d->phase == DAEMON_SERVING) {
		shutdown_begin(d, false, strsignal((int)si.ssi_signo));
		return;
	}
	if (d->phase == DAEMON_STARTING)
		say_note("%s during the start: ending at once",
			 strsignal((int)si.ssi_signo));
	else
		say_note("%s again: ending at once",
			 strsignal((int)si.ssi_signo));
	_exit(EXIT_ERROR);
}

void daemon_block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* writing to a closed socket gives EPIPE */
}

/* Every thread blocks these signals; worker 0 reads them as events. */
static int open_signals(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	d->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->signals.fd < 0) {
		say("signalfd: %s", strerror(errno));
		return EXIT_ERROR;
	}
	d->signals.want = IO_IN;
	d->signals.ready = read_signal;
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

/* Prints why a step of the start has failed. Rooms name the options of the command
 * line: a file has them as fields of "daemon". */
static void report(const struct daemon *d, const char *why)
{
	const json_t *fields = json_object_get(d->model->head.given, "daemon");
	const json_t *field = NULL;
	const char *file = d->options.start.config;
	struct cfg_place at;
	char name[64];

	if (file && fields && !strncmp(why, "--", 2)) {
		snprintf(name, sizeof(name), "%.*s",
			 (int)strcspn(why + 2, " :"), why + 2);
		field = json_object_get(fields, name);
	}
	at = cfg_spot_of(&d->model->places, field)->key;
	if (field)
		say("%s:%u:%u: daemon: %s", file, at.line, at.column, why + 2);
	else
		say("%s", why);
}

/* Executes a step of the start. Returns 0, or an exit code after a message. */
static int step(struct daemon *d, int (*open)(struct daemon *d))
{
	struct say_hold h;
	int err;

	say_hold(&h);
	err = open(d);
	say_release(&h, !err);
	if (err && *h.text)
		report(d, h.text);
	return err;
}

static int open_control(struct daemon *d)
{
	if (d->options.control)
		d->control =
			control_open(d, d->options.control, shutdown_begin);
	return d->options.control && !d->control ? EXIT_ERROR : 0;
}

static bool age_addresses(struct daemon *d, bool *shrunk)
{
	unsigned left = gate_age(&d->gate);

	*shrunk = gate_shrunk(&d->gate);
	return left > 0;
}

static int open_workers(struct daemon *d)
{
	return workers_open(d, age_addresses);
}

/* Opens all files and ports before setup_user gives up root, and starts the
 * threads after it. */
static int open_daemon(struct daemon *d)
{
	int err = step(d, open_workers);

	if (!err)
		shutdown_init(d);
	if (!err)
		err = open_signals(d);
	if (!err)
		err = step(d, setup_stores);
	if (!err)
		err = setup_target(d);
	if (!err)
		err = listen_open(d);
	if (!err)
		err = setup_directory(d);
	if (!err)
		err = step(d, open_control);
	if (!err)
		err = step(d, http_open);
	if (!err)
		listen_limits(d);
	if (!err)
		err = step(d, setup_user);
	if (!err)
		err = workers_start(d);
	if (!err && !health_open(d))
		err = EXIT_ERROR;
	return err;
}

/* Closes what open_daemon has opened, also if it has failed. */
static void close_daemon(struct daemon *d)
{
	apply_end(d);
	if (d->control)
		control_close(d->control);
	snapshot_abandon(d);
	http_close(d);
	listen_close(d);
	workers_stop(d);
	health_close(d);
	service_stop(d);
	gateway_free(d->gateway);
	if (d->target)
		tgt_free(d->target);
	for (unsigned i = 0; d->workers && i < d->nworkers; i++)
		net_verbs_close(d->workers[i].verbs);
	if (d->server)
		dev_server_free(d->server);
	for (unsigned i = 0; i < d->nunits; i++)
		unit_free(d->units[i]); /* after the key files are closed */
	free(d->units);
	free(d->stores.lookup);
	listen_free(d);
	if (d->workers && d->loops[0]) {
		io_timer_clear(d->loops[0], &d->limit);
		close_signals(d);
	}
	workers_close(d);
	gate_fini(&d->gate);
	identities_free(d->stores.identities);
	state_close(d->state);
}

static void log_start(struct daemon *d)
{
	const struct cfg_model *m = d->model;
	const char *io = io_backend_name(io_loop_backend(d->loops[0]));

	if (m->targets.n == 1)
		trace_emit(&d->log.trace, TRACE_START,
			   "serving %u LUN%s as %s (%s)", d->nunits,
			   d->nunits == 1 ? "" : "s", m->targets.v[0].name, io);
	else
		trace_emit(&d->log.trace, TRACE_START,
			   "serving %u units as %u targets (%s)", d->nunits,
			   m->targets.n, io);
}

static void serve_until_stopped(struct daemon *d)
{
	bool is_known; /* the URLs are those of the same process before */
	int err;

	d->phase = DAEMON_SERVING;
	log_start(d);
	dev_server_resume(d->server);
	identities_save(d->stores.identities);
	setup_save_ports(d);
	if (d->gateway)
		gateway_update(d->gateway);
	is_known = d->inherited && d->inherited->is_own;
	handover_free(d->inherited); /* what the configuration does not have */
	d->inherited = NULL;
	if (!is_known)
		listen_print_urls(d);
	service_ready(d);
	err = io_loop_run(d->loops[0]);
	if (err) {
		say("event loop: %s", strerror(-err));
		d->exit_code = EXIT_ERROR;
	}
}

/* Waits until the iserd at the control socket has closed its stores. */
static int inherit(struct daemon *d)
{
	if (!takeover_ask(d, d->options.control))
		return EXIT_ERROR;
	service_take_over(d);
	return 0;
}

/* Takes over m. NULL after a message. */
static struct daemon *daemon_new(struct cfg_model *m)
{
	const struct options *o = &m->options;
	struct daemon *d = calloc(1, sizeof(*d));

	if (!d) {
		say("out of memory");
		cfg_model_free(m);
		return NULL;
	}
	d->model = m;
	d->options = *o;
	d->signals.fd = -1;
	d->handover_sock = -1;
	list_init(&d->snapshots);
	log_init(&d->log, o->log.level, o->log.format);
	gate_init(&d->gate, &o->limits, &d->log.trace);
	return d;
}

/* Frees what close_daemon leaves. */
static void daemon_free(struct daemon *d)
{
	service_close(d);
	if (d->handover_sock >= 0)
		close(d->handover_sock);
	handover_free(d->handover);
	handover_free(d->inherited);
	log_fini(&d->log);
	drain_free(d);
	cfg_model_free(d->changes.first);
	cfg_model_free(d->model);
	free(d);
}

/* Serves until the end. Returns the exit code. */
static int serve(struct daemon *d)
{
	int code = open_daemon(d);

	if (!code && !takeover_serve(d))
		code = EXIT_ERROR;
	if (!code) {
		serve_until_stopped(d);
		workers_stop(d);
		d->end.is_hung =
			!health_close(d) || gateway_is_hanging(d->gateway);
		shutdown_flush(d);
		takeover_collect(d, unit_key);
		code = d->exit_code;
		/* Tasks or requests in progress still use their memory, and
		 * helper threads that hang cannot be joined. */
		if (d->end.nidle < d->nworkers || d->end.is_hung)
			_exit(code);
		trace_emit(&d->log.trace, TRACE_STOP, "ended");
	}
	close_daemon(d);
	return code;
}

/* The next iserd did not take over: begins anew with what it was sent. Frees old;
 * NULL after a message. */
static struct daemon *resume(struct daemon *old)
{
	struct cfg_model *m = old->model;
	struct daemon *d;

	old->model = NULL;
	m->options.start.takeover = false;
	d = daemon_new(m);
	if (d) {
		d->inherited = old->handover;
		d->inherited->is_own = true;
		service_resume(old->service, d);
		old->handover = NULL;
		old->service = NULL;
	}
	daemon_free(old);
	return d;
}

int daemon_run(struct cfg_model *m)
{
	struct daemon *d = daemon_new(m);
	int code = EXIT_ERROR;

	if (!d)
		return code;
	code = service_open(d, count_sessions);
	if (!code && d->options.start.takeover)
		code = inherit(d);
	if (!code)
		code = serve(d);
	while (!takeover_finish(d)) {
		d = resume(d);
		if (!d)
			return EXIT_ERROR;
		code = serve(d);
	}
	daemon_free(d);
	return code;
}
