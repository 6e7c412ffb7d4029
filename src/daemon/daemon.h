/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon.h: the one struct of iserd. Worker 0 is the main thread: besides its
 * connections it has the listeners, the signals and the control socket.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <sys/types.h>

#include "daemon/apply/drain.h"
#include "daemon/config/options.h"
#include "daemon/log/log.h"
#include "daemon/metrics/traffic.h"
#include "daemon/process/bufpool.h"
#include "daemon/process/mailbox.h"
#include "daemon/serve/gate.h"
#include "net/net.h"
#include "net/verbs.h"
#include "target/directory.h"
#include "target/target.h"

struct cfg_model;
struct change;
struct gateway;
struct control;
struct handover;
struct health;
struct http;
struct identities;
struct portal;
struct service;
struct state;
struct unit;

/* Ages what is remembered of connections that have ended. Returns whether some of that is left;
 * *shrunk: much memory was freed. On any worker. */
typedef bool worker_age(struct daemon *d, bool *shrunk);

struct worker {
	struct daemon *daemon;
	unsigned index;
	struct io_loop *loop;
	struct mailbox mail;
	pthread_t thread; /* not of worker 0 */
	bool started;
	/* set by workers_open; the thread of the worker only */
	struct bufpool bufs;
	struct tgt_worker *target;
	struct net_verbs *verbs; /* NULL: no RDMA devices; worker 0 listens */
	struct list conns;	 /* conns.c */
	struct list leaving;	 /* conns.c: logged out, but not closed */
	unsigned nleaving;
	bool drained;		/* conns_drain was called */
	struct list kicked;	/* kick.c: connections that shall end */
	struct traffic traffic; /* of connections that have ended */
	struct io_timer clock;	/* the next deadline of the target */
	xtime clock_ran;
	struct io_timer chores;
	bool chores_set;
	worker_age *age;
	struct io_defer count; /* tgt_worker_count, at the end of a turn */
	struct {	       /* messages of worker_give_way */
		struct io_defer run;
		struct dev_msg *first, **last;
	} steps;
	/* shutdown */
	struct dev_msg drain, kill, idle;
	struct io_timer drain_tick;
};

enum daemon_phase {
	DAEMON_STARTING,
	DAEMON_SERVING,
	DAEMON_DRAINING, /* sessions are asked to log out */
	DAEMON_KILLING,	 /* sessions that did not log out are dropped */
};

struct daemon {
	struct cfg_model *model; /* in force */
	struct options options;	 /* those of the model */
	struct log log;
	enum daemon_phase phase;
	struct worker *workers;
	struct io_loop **loops; /* [i] is worker i's */
	unsigned nworkers;
	struct dev_server *server;
	struct unit **units; /* units.h */
	unsigned nunits;
	struct {
		struct units_lookup *lookup; /* units.h; NULL: no unit */
		struct identities *identities;
	} stores;
	struct tgt *target;
	struct gate gate;
	/* portals.h; [i] is that of the model's portal group i. Connections
	 * still refer to those that are retired. */
	struct {
		struct portal **all, **retired;
		unsigned n, nretired;
		unsigned next_worker; /* for the next connection */
	} portals;
	struct io_watch signals;
	struct control *control;
	struct state *state;	 /* NULL: without --state */
	struct gateway *gateway; /* NULL: no section `cluster` */
	struct health *health;
	struct service *service;
	struct http *http;     /* NULL: without --metrics */
	struct list snapshots; /* metrics/snapshot.c: in progress */
	struct {	       /* of the user that iserd becomes (setup_user) */
		uid_t uid;
		gid_t gid;
	} user;
	struct {			 /* apply.c */
		struct change *now;	 /* in progress; NULL: none */
		struct cfg_model *first; /* of the start, if no longer in
					    force: options borrows from it */
		struct drain drain;
	} changes;
	/* what the iserd before this one has handed over, until iserd serves;
	 * NULL: nothing (takeover.h) */
	struct handover *inherited;
	/* what the next iserd gets; NULL: none has asked */
	struct handover *handover;
	/* the connection between two processes: to the one that has handed over,
	 * until this one serves; to the next one, while handover is set; or -1 */
	int handover_sock;
	/* shutdown */
	struct {
		xtime limit; /* until sessions that are left are dropped */
		unsigned nidle;
		/* requests to a store do not end: exit without close_daemon */
		bool is_hung;
	} end;
	struct io_timer limit;
	int exit_code;
};

/* daemon_is_ready returns whether d admits new sessions. */
static inline bool daemon_is_ready(const struct daemon *d)
{
	return d->phase == DAEMON_SERVING && !d->changes.drain.all;
}
/* daemon_block_signals: SIGHUP, SIGUSR1 and SIGUSR2 do not end iserd from now
 * on; they stay pending until the loop reads them. First thing in main. */
void daemon_block_signals(void);
/* daemon_run serves the configuration m, which it takes over, until a signal or
 * "shutdown" ends it; returns the exit code. */
int daemon_run(struct cfg_model *m);

/*
 * worker.c. worker_post, worker_buf_*, worker_wall_ms, worker_later, worker_give_way and
 * worker_rearm are functions of dev_env and tgt_config (device.h, target.h),
 * where arg is the struct daemon.
 */
/* workers_open makes d->options.workers workers with their loops. Returns 0, or
 * an exit code after a message; the caller calls workers_close in both
 * cases. */
int workers_open(struct daemon *d, worker_age *age);
/* workers_close frees the workers; after workers_stop. */
void workers_close(struct daemon *d);
/* workers_start starts the threads of all workers but worker 0. Returns 0, or
 * an exit code after a message. */
int workers_start(struct daemon *d);
/* workers_stop stops these threads and waits for their end. May be called
 * twice. */
void workers_stop(struct daemon *d);
/* worker_post sends msg to a worker, from any thread. */
void worker_post(void *arg, unsigned worker, struct dev_msg *msg);
/* A message that visits all workers, worker 0 first. */
struct tour {
	struct dev_msg msg;
	struct daemon *daemon;
	unsigned worker; /* that has the message */
	void (*visit)(struct tour *t, struct worker *w);
	void (*done)(struct tour *t);
};
/* workers_visit calls visit on the thread of each worker in turn, then done on worker 0. The
 * caller keeps t until then. */
void workers_visit(struct daemon *d, struct tour *t,
		   void (*visit)(struct tour *t, struct worker *w),
		   void (*done)(struct tour *t));
/* worker_buf_get returns a buffer of the worker's pool (bufpool_get), which the
 * caller gives back by worker_buf_put. NULL: no memory. On the worker's
 * thread. */
void *worker_buf_get(void *arg, unsigned worker, size_t len);
/* worker_buf_put takes back a buffer of worker_buf_get with the same len. On the
 * worker's thread. */
void worker_buf_put(void *arg, unsigned worker, void *buf, size_t len);
/* worker_wall_ms returns the time of day in milliseconds since 1970. */
uint64_t worker_wall_ms(void *arg);
/* worker_later runs m on the worker, whose thread calls it, in ms milliseconds:
 * at once if there is no memory for a timer. */
void worker_later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m);
/* worker_give_way runs m on the calling worker in a later turn (io_loop_give_way), where all
 * messages of a worker are one piece of work: the first of them runs. */
void worker_give_way(void *arg, unsigned worker, struct dev_msg *m);
/* worker_rearm makes the worker set its timer to the target's next deadline at
 * the end of the turn; on the worker's thread. */
void worker_rearm(void *arg, unsigned worker);
/* worker_time is tgt_config.clock. */
xtime worker_time(void *arg, unsigned worker, bool exact);
/* worker_count_later is tgt_config.count_later. */
void worker_count_later(void *arg, unsigned worker);
/* worker_set_clock sets the worker's timer to the target's next deadline. */
void worker_set_clock(struct worker *w);
/* worker_busy starts the timers of a worker that gets a connection. */
void worker_busy(struct worker *w);

/* conns.c */
/* conns_accepted takes over the socket fd (net_listen); arg is the struct portal.
 * Worker 0. */
void conns_accepted(void *arg, int fd, const struct net_addr *peer);
/* conns_verbs_asked takes over a connection request of an RDMA device
 * (net_verbs_listen); arg is the struct portal. Worker 0. */
void conns_verbs_asked(void *arg, struct verbs_request *r);
/* conns_drain drops the connections that the target does not know yet. On the
 * worker's thread. */
void conns_drain(struct worker *w);
/* conns_short drops a half-open connection where accept has no descriptor or
 * memory left (net_listener_on_short); arg is the struct portal. Worker 0. */
void conns_short(void *arg, int err, const struct net_addr *peer);
/*
 * conns_logged_in is tgt_config.logged_in: counts the connection as a session.
 * proven: by CHAP. Returns 0, or ERR_LIMIT after a log line: the login is
 * refused. For this function and the next two owner is the connection, on its
 * worker's thread.
 */
int conns_logged_in(void *arg, void *owner, bool discovery, bool proven);
/* conns_auth_begin and conns_auth_failed are those of tgt_config. */
xtime conns_auth_begin(void *arg, void *owner, const char *account,
		       const char *initiator);
xtime conns_auth_failed(void *arg, void *owner);
/* conns_ended is tgt_config.ended: the connection does not count any more. */
void conns_ended(void *arg, void *owner, bool logged_out);
/* conns_net returns the socket or queue pair of a connection, of which owner is
 * tgt_conn_info.owner. On its worker's thread. */
const struct net_conn *conns_net(const void *owner);
/* conns_traffic fills *t with what the connections of the worker have moved,
 * those that have ended included. On its worker's thread. */
void conns_traffic(const struct worker *w, struct traffic *t);

/* setup.c: each returns 0, or an exit code after a message. */
/* setup_stores makes the device server, with the units and the target port groups
 * of the model. */
int setup_stores(struct daemon *d);
/* setup_target makes the target role. */
int setup_target(struct daemon *d);
/* setup_directory brings the targets of the model into force, with the addresses
 * of the listeners and the secrets that it reads. */
int setup_directory(struct daemon *d);
/* setup_save_ports saves the identifiers of target ports that a configuration file
 * has, after setup_user, and after each change of the targets. */
void setup_save_ports(const struct daemon *d);
/* setup_user becomes the user of --user, once everything is open. */
int setup_user(struct daemon *d);

/* listen.c */
/* listen_open opens the portal groups of the model. Returns 0, or an exit code after a message;
 * the caller calls listen_close in both cases. */
int listen_open(struct daemon *d);
/* listen_close closes all listeners, so that no connection arrives any more. A
 * second call does nothing. */
void listen_close(struct daemon *d);
/* listen_limits raises the limit of open files and reduces the limits of
 * d->gate to what it allows; after all files are open. */
void listen_limits(struct daemon *d);
/* listen_set_limits puts other limits in force, reduced in the same way. */
void listen_set_limits(struct daemon *d, const struct admission_limits *wanted);
/* listen_free frees the portal groups; after the last connection. */
void listen_free(struct daemon *d);
/* listen_print_urls prints the URL of each LUN at each address on standard
 * output. */
void listen_print_urls(const struct daemon *d);

#endif
