/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h: the target role of RFC 7143: nodes, sessions, the command window,
 * task management. It talks to a Datamover below and to the device server
 * above and knows no transport, clock or thread.
 *
 * Threads: struct tgt is filled before the first connection and constant
 * then. A struct tgt_worker and everything behind it (connections, sessions,
 * tasks) belongs to one thread. What one worker has to tell another goes
 * through dev_env.post: resets that reach other workers' sessions, session
 * reinstatement.
 *
 * Memory: a session's tasks are allocated at login; a command allocates
 * nothing.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include "base/trace.h"
#include "base/xtime.h"
#include "datamover/datamover.h"
#include "device/device.h"
#include "iscsi/login.h"

struct tgt;
struct tgt_worker;

struct tgt_config {
	struct dev_env env;  /* workers, posting between them */
	struct trace *trace; /* may be NULL; emit is called on any worker */
	struct iscsi_params want; /* the most we agree to */
	unsigned depth;		  /* command window of a session, 1 to 1024 */
	/* limits, each per worker */
	unsigned max_conns;
	unsigned max_logins;	      /* not yet in full feature phase */
	unsigned max_logins_per_peer; /* of these, from one address */
	/* time */
	xtime login_time;  /* from accept to full feature phase */
	xtime idle_time;   /* silence before a ping; XTIME_NEVER: none */
	xtime ping_time;   /* for its answer */
	xtime logout_time; /* from the request to log out to the drop */
	xtime abort_time;  /* how long a reset waits for data on the way */
	uint16_t tpgt;
	bool prefer_digests;
	/* CHAP of discovery sessions; empty names: anybody, and no proof */
	struct iscsi_chap_secret discovery_in, discovery_out;
	/* Fills n random bytes (CHAP). */
	void (*random)(void *arg, uint8_t *p, size_t n);
	/* A deadline of this worker may have come closer: ask again. */
	void (*rearm)(void *arg, unsigned worker);
	void *arg;
};

void tgt_config_default(struct tgt_config *cfg);

/* tgt_new copies cfg and makes the workers. NULL: out of memory. */
struct tgt *tgt_new(const struct tgt_config *cfg);
/* tgt_free: every worker is idle. The device servers are not touched. */
void tgt_free(struct tgt *t);

struct tgt_node_config {
	char name[ISCSI_NAME_MAX + 1]; /* iqn., eui. or naa. */
	char alias[ISCSI_NAME_MAX + 1];
	struct dev_server *server;	   /* borrowed */
	struct iscsi_chap_secret chap_in;  /* empty name: anybody */
	struct iscsi_chap_secret chap_out; /* empty name: none */
};

/* tgt_node_add: ERR_FORMAT: no iSCSI name (§4.2.7.2); ERR_BUSY: the name is
 * taken; ERR_NOMEM. */
int tgt_node_add(struct tgt *t, const struct tgt_node_config *cfg);
/* tgt_portal_add: an address ("10.0.0.1:3260") that SendTargets reports
 * besides the one a connection came in on. */
int tgt_portal_add(struct tgt *t, const char *address);

struct tgt_worker *tgt_worker(struct tgt *t, unsigned index);

/* ---- on the worker's thread ---- */

#define TGT_ADDR_STR 64

struct tgt_conn_info {
	char peer[TGT_ADDR_STR];      /* "10.0.0.9:41234" */
	char peer_host[TGT_ADDR_STR]; /* "10.0.0.9": counts logins */
	char local[TGT_ADDR_STR];     /* "10.0.0.1:3260": TargetAddress */
	void *owner; /* the caller's, for its use in tgt_worker_each */
};

/*
 * tgt_conn_accept makes a connection of the worker out of dm, before its
 * first byte; the target lets go of dm in Connection_Terminate_Notify.
 * ERR_LIMIT: too many connections, drop it; ERR_NOMEM.
 */
int tgt_conn_accept(struct tgt_worker *w, struct dm_conn *dm,
		    const struct tgt_conn_info *info, xtime now);

/* tgt_worker_deadline: when tgt_worker_expire wants to be called. */
xtime tgt_worker_deadline(const struct tgt_worker *w);
void tgt_worker_expire(struct tgt_worker *w, xtime now);

/*
 * tgt_worker_drain: orderly end. No login succeeds any more; each session is
 * asked to log out (Async Message, §11.9.1) and dropped after logout_time.
 */
void tgt_worker_drain(struct tgt_worker *w, xtime now);
/* tgt_worker_kill drops every connection now. */
void tgt_worker_kill(struct tgt_worker *w);
/* tgt_worker_idle: no connection, session, task or message is left. */
bool tgt_worker_idle(const struct tgt_worker *w);

/* What a person may want to know of a connection. Borrowed for the call. */
struct tgt_conn_status {
	const struct tgt_conn_info *info;
	const char *transport;
	const char *state;     /* "S5 LOGGED_IN" */
	const char *initiator; /* "" before it is known */
	const char *target;    /* "" in discovery */
	bool discovery;
	uint16_t tsih;
	const uint8_t *isid;		   /* 6 bytes */
	const struct iscsi_params *params; /* NULL before login is over */
	uint32_t in_flight;
	uint64_t commands, bytes_read, bytes_written, rejects;
};

void tgt_worker_each(const struct tgt_worker *w,
		     void (*fn)(void *arg, const struct tgt_conn_status *st),
		     void *arg);

#endif
