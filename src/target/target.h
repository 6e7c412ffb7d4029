/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h: the target role of RFC 7143: nodes, sessions, the command window,
 * task management. It talks to a Datamover below and to the device server
 * above and knows no transport, clock or thread.
 *
 * Threads: struct tgt is constant, but for what worker 0 alone uses. A struct
 * tgt_worker with its connections, sessions and tasks belongs to one thread. Each
 * worker has a pointer to the directory (directory.h), which is constant. Workers
 * send each other messages by dev_env.post: for a new directory, for resets that
 * reach sessions of other workers, and for session reinstatement.
 *
 * Memory: a session allocates its tasks at login; a command allocates nothing.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include "base/trace.h"
#include "base/xtime.h"
#include "datamover/datamover.h"
#include "device/env.h"
#include "iscsi/login.h"
#include "target/stats.h"

struct tgt;
struct tgt_worker;

/* Adds a portal to the answer `to` of SendTargets. */
typedef void tgt_put_portal(void *to, const char *address, unsigned tag);

#define TGT_DEPTH_MAX 1024

struct tgt_config {
	struct dev_env env;	   /* workers, posting between them */
	struct dev_server *server; /* of all targets; borrowed */
	struct trace *trace; /* may be NULL; emit is called on any worker */
	struct iscsi_params want; /* the limits of the negotiation */
	unsigned depth; /* command window of a session, 1 to TGT_DEPTH_MAX */
	unsigned max_conns; /* per worker */
	/* time */
	xtime login_time;     /* from accept to full feature phase */
	xtime discovery_time; /* from accept to the end of its session */
	xtime idle_time;      /* silence before a ping; XTIME_NEVER: none */
	xtime ping_time;      /* for the answer to a ping */
	xtime logout_time;    /* from the request to log out to the drop */
	xtime abort_time;     /* how long a reset waits for write data */
	/* how long a peer may owe write data, or not read what was sent,
	 * without progress; then its connection is dropped. XTIME_NEVER: no
	 * limit */
	xtime data_time;
	/* of discovery sessions; see tgt_target_config */
	bool prefer_digests, strict_names;
	/*
	 * Events of a connection, called on its worker with the owner of its
	 * tgt_conn_info. logged_in: the login is complete and no older session
	 * of the same nexus is left; a nonzero result refuses it with status
	 * 0302h; proven: the initiator passed CHAP. auth_begin: the initiator
	 * answers the challenge of CHAP for an account; auth_failed: the answer
	 * was wrong. Both return for how long answers are not checked, but refused
	 * with status 0301h; the refusal is late by this time or AUTH_HOLD. ended: the connection has ended, by Logout or not; its
	 * session, if there was one, ends next.
	 */
	int (*logged_in)(void *arg, void *owner, bool discovery, bool proven);
	xtime (*auth_begin)(void *arg, void *owner, const char *account,
			    const char *initiator);
	xtime (*auth_failed)(void *arg, void *owner);
	void (*ended)(void *arg, void *owner, bool logged_out);
	/* Fills n random bytes (CHAP). */
	void (*random)(void *arg, uint8_t *p, size_t n);
	/* A deadline of this worker may have come closer: call
	 * tgt_worker_deadline again. */
	void (*rearm)(void *arg, unsigned worker);
	/* The time on this worker, for latencies: of the beginning of the turn
	 * of its loop, or the exact one. NULL: commands are not counted by
	 * unit. */
	xtime (*clock)(void *arg, unsigned worker, bool exact);
	/* Call tgt_worker_count at the end of this turn. */
	void (*count_later)(void *arg, unsigned worker);
	xtime slow_time; /* log commands that take so long; XTIME_NEVER */
	/*
	 * Portals of other gateways through which an initiator with the LUN map
	 * (dev_nexus_config.map) reaches the target: calls put for each, from
	 * within, with its address ("10.0.0.2:3260", borrowed for the call) and its
	 * target portal group tag. On any worker. NULL: there are none.
	 */
	void (*portals)(void *arg, const char *target,
			const struct dev_map *map, tgt_put_portal *put,
			void *to);
	void *arg;
};

/* tgt_config_default sets the defaults; env, trace and arg are empty
 * afterwards. */
void tgt_config_default(struct tgt_config *cfg);

/* tgt_new copies cfg and makes the workers, with an empty directory; the caller
 * frees the target with tgt_free. NULL: out of memory. */
struct tgt *tgt_new(const struct tgt_config *cfg);
/* tgt_free frees the target with its directory; every worker must be idle. The
 * device server stays the caller's. */
void tgt_free(struct tgt *t);

/* tgt_tsih_worker returns the index of the worker that has the session with this
 * TSIH, which is not 0, if there is one. */
unsigned tgt_tsih_worker(const struct tgt *t, uint16_t tsih);
/* tgt_worker returns a worker by its index; it lives as long as the target. */
struct tgt_worker *tgt_worker(struct tgt *t, unsigned index);

/* ---- on the worker's thread ---- */

#define TGT_ADDR_STR 64

struct tgt_conn_status;

struct tgt_conn_info {
	char peer[TGT_ADDR_STR];  /* "10.0.0.9:41234" */
	char local[TGT_ADDR_STR]; /* "10.0.0.1:3260": TargetAddress */
	void *owner; /* the caller's, for tgt_worker_each and tgt_config */
	/* of the peer; IPv4: ::ffff:a.b.c.d; zeros: not known */
	uint8_t address[16];
	/* tag of the portal group through which the connection came */
	uint16_t portal_group;
};

/*
 * tgt_conn_accept attaches a new connection to dm, before the first byte of dm.
 * The target uses dm until Connection_Terminate_Notify; info is copied.
 * ERR_LIMIT: the worker has too many connections; ERR_NOMEM: in both cases dm
 * is still the caller's.
 */
int tgt_conn_accept(struct tgt_worker *w, struct dm_conn *dm,
		    const struct tgt_conn_info *info, xtime now);

/* tgt_conn_drop drops the connection with this owner, if there is one, and logs
 * why. */
void tgt_conn_drop(struct tgt_worker *w, const void *owner, const char *why);

/*
 * tgt_worker_end ends each connection of the worker for which fn returns true, and
 * logs that with the reason ("by the administrator"). Those with a session are asked
 * to log out (Async Message, RFC 7143 §11.9.1) and dropped after logout_time, or with
 * `now` dropped at once. `ended` follows later, never from within.
 */
void tgt_worker_end(struct tgt_worker *w, bool now, const char *reason,
		    bool (*fn)(void *arg, const struct tgt_conn_status *st),
		    void *arg);

/* tgt_worker_deadline returns when the caller has to call tgt_worker_expire;
 * XTIME_NEVER: not at all. */
xtime tgt_worker_deadline(const struct tgt_worker *w);
/* tgt_worker_conns returns how many connections the worker has; the time of the
 * two functions around it grows with that number. */
unsigned tgt_worker_conns(const struct tgt_worker *w);
/* tgt_worker_expire handles every deadline up to now. */
void tgt_worker_expire(struct tgt_worker *w, xtime now);

/*
 * tgt_worker_drain begins an orderly end. No login succeeds any more; each
 * initiator is asked to log out (Async Message, §11.9.1) and dropped after
 * logout_time.
 */
void tgt_worker_drain(struct tgt_worker *w, xtime now);
/* tgt_worker_kill drops every connection now. */
void tgt_worker_kill(struct tgt_worker *w);
/* tgt_worker_idle: no connection, session, task or message is left. */
bool tgt_worker_idle(const struct tgt_worker *w);

/* A connection as `iserctl status` shows it. Pointers are borrowed for the
 * call. */
struct tgt_conn_status {
	const struct tgt_conn_info *info;
	const char *transport;
	const char *state;     /* "S5 LOGGED_IN" */
	const char *initiator; /* "" before the login names it */
	const char *target;    /* "" in discovery */
	/* of CHAP; account "": the session began without CHAP. NULL: there is no
	 * session */
	const char *account, *algorithm;
	xtime since; /* when the session began */
	bool discovery;
	uint16_t tsih, cid;
	bool joined; /* not the oldest connection of its session */
	/* It waits for recovery (ErrorRecoveryLevel 2): it has no owner, and no
	 * count of its own */
	bool lost;
	const uint8_t *isid;		   /* 6 bytes */
	const struct iscsi_params *params; /* NULL before admission */
	uint32_t in_flight;		   /* tasks of the connection */
	/* the LUN map of its session, which can access units; NULL with
	 * has_units: every unit */
	const struct dev_map *map;
	bool has_units;
	const struct tgt_counters *count; /* NULL before admission */
	uint64_t rejects;
};

/* tgt_worker_each calls fn for each connection of the worker, and for each that is lost
 * and waits for recovery. */
void tgt_worker_each(const struct tgt_worker *w,
		     void (*fn)(void *arg, const struct tgt_conn_status *st),
		     void *arg);

#endif
