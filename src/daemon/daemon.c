/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon.c: start and signals of iserd. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/chap.h"
#include "daemon/daemon.h"
#include "daemon/health.h"
#include "daemon/luns/state.h"
#include "daemon/rpc/control.h"
#include "daemon/say.h"
#include "daemon/shutdown.h"

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

/* Signals by which other daemons reload or reopen their logs do not end this
 * one. True: signo is one of them. */
static bool handle_other(struct daemon *d, int signo)
{
	switch (signo) {
	case SIGHUP:
		chap_reload(d);
		return true;
	case SIGUSR1:
		log_status(d);
		return true;
	case SIGUSR2:
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
		shutdown_begin(d, strsignal((int)si.ssi_signo));
		return;
	}
	if (d->phase == DAEMON_STARTING)
		say("%s during the start: ending at once",
		    strsignal((int)si.ssi_signo));
	else
		say("%s again: ending at once", strsignal((int)si.ssi_signo));
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

/* Opens all files and ports before setup_user gives up root, and starts the
 * threads after it. */
static int open_daemon(struct daemon *d)
{
	int err = workers_open(d);

	if (!err)
		shutdown_init(d);
	if (!err)
		err = open_signals(d);
	if (!err)
		err = setup_stores(d);
	if (!err)
		err = setup_target(d);
	if (!err)
		err = listen_open(d);
	if (!err && d->options.control) {
		d->control = control_open(d, d->options.control);
		if (!d->control)
			err = EXIT_ERROR;
	}
	if (!err)
		listen_limits(d);
	if (!err)
		err = setup_user(d);
	if (!err)
		err = workers_start(d);
	if (!err && !health_open(d))
		err = EXIT_ERROR;
	return err;
}

/* Closes what open_daemon has opened, also if it has failed. */
static void close_daemon(struct daemon *d)
{
	if (d->control)
		control_close(d->control);
	listen_close(d);
	workers_stop(d);
	health_close(d);
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
	gate_fini(&d->gate);
	state_close(d->state);
}

static void serve_until_stopped(struct daemon *d)
{
	int err;

	d->phase = DAEMON_SERVING;
	trace_emit(&d->log.trace, TRACE_START, "serving %u LUN%s as %s (%s)",
		   d->nlus, d->nlus == 1 ? "" : "s", d->options.name,
		   io_backend_name(io_loop_backend(d->loops[0])));
	dev_server_resume(d->server);
	listen_print_urls(d);
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
	log_init(&d->log, o->log);
	gate_init(&d->gate, &o->limits, &d->log.trace);
	code = open_daemon(d);
	if (!code) {
		serve_until_stopped(d);
		workers_stop(d);
		d->hung = !health_close(d);
		shutdown_flush(d);
		code = d->exit_code;
		/* Tasks or requests in progress still use their memory, and
		 * helper threads that hang cannot be joined. */
		if (d->nidle < d->nworkers || d->hung)
			_exit(code);
		trace_emit(&d->log.trace, TRACE_STOP, "ended");
	}
	close_daemon(d);
	free(d);
	return code;
}
