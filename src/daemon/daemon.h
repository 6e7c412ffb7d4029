/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon.h: the one struct of iserd. Worker 0 is the main thread: besides its
 * connections it has the listeners, the signals and the control socket.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "daemon/bufpool.h"
#include "daemon/log.h"
#include "daemon/mailbox.h"
#include "daemon/options.h"
#include "net/net.h"
#include "net/verbs.h"
#include "target/target.h"

struct control;
struct state;

struct worker {
	struct daemon *daemon;
	unsigned index;
	struct io_loop *loop;
	struct mailbox mail;
	pthread_t thread; /* not of worker 0 */
	bool started;
	/* its thread's own */
	struct bufpool bufs;
	struct tgt_worker *target;
	struct net_verbs *verbs; /* NULL: none; worker 0's has the listeners */
	struct list conns;	 /* conns.c */
	unsigned nsilent;	 /* of them, those that said nothing yet */
	struct io_timer clock;	 /* the target's deadlines */
	struct io_timer chores;
	bool chores_set;
	/* shutdown */
	struct dev_msg drain, kill, idle;
	struct io_timer drain_tick;
};

enum daemon_phase {
	DAEMON_STARTING,
	DAEMON_SERVING,
	DAEMON_DRAINING, /* sessions are asked to log out */
	DAEMON_KILLING,	 /* and are dropped now */
};

struct daemon {
	struct options options;
	struct log log;
	enum daemon_phase phase;
	struct worker *workers;
	struct io_loop **loops; /* [i] is worker i's */
	unsigned nworkers;
	struct dev_server *server;
	struct dev_lu *lus[LUNS_MAX];
	unsigned nlus;
	struct tgt *target;
	struct net_listener *listeners[LISTEN_MAX];
	unsigned nlisteners;
	unsigned next_worker; /* for the next connection */
	struct io_watch signals;
	struct control *control;
	struct state *state; /* NULL: nothing outlives us */
	/* shutdown */
	unsigned nidle;
	struct io_timer limit;
	int exit_code;
};

/* daemon_run serves until it is told to end; returns the exit code. */
int daemon_run(const struct options *o);
/* daemon_shutdown begins the orderly end. Worker 0 only. */
void daemon_shutdown(struct daemon *d, const char *why);

/* worker.c */
int workers_open(struct daemon *d);
void workers_close(struct daemon *d);
int workers_start(struct daemon *d); /* threads of all but worker 0 */
void workers_stop(struct daemon *d);
void worker_post(void *arg, unsigned worker, struct dev_msg *msg);
void *worker_buf_get(void *arg, unsigned worker, size_t len);
void worker_buf_put(void *arg, unsigned worker, void *buf, size_t len);
uint64_t worker_wall_ms(void *arg);
void worker_later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m);
void worker_rearm(void *arg, unsigned worker);
void worker_busy(struct worker *w);

/* conns.c */
void conns_accepted(void *arg, int fd, const struct net_addr *peer);
void conns_verbs_asked(void *arg, struct verbs_request *r);

/* setup.c: opens what the options name; each returns an exit_code after a
 * message. */
int setup_stores(struct daemon *d);
int setup_target(struct daemon *d);
int setup_listeners(struct daemon *d);
int setup_user(const struct daemon *d);
void setup_print_urls(const struct daemon *d);

/* control.c: the management socket. */
struct control *control_open(struct daemon *d, const char *path);
void control_close(struct control *c);

#endif
