/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate.h: the one admission object of the process (admission.h) under a lock:
 * all workers and transports use it. The caller drops a victim, which is NULL
 * if there is none. Safe from any thread.
 */
#ifndef DAEMON_SERVE_GATE_H
#define DAEMON_SERVE_GATE_H

#include <pthread.h>

#include "base/trace.h"
#include "daemon/serve/admission.h"
#include "net/net.h"

struct gate {
	pthread_mutex_t lock; /* guards what follows; a leaf lock */
	struct admission admission;
	uint64_t random;
	unsigned peak;	      /* of connections, since gate_shrunk was true */
	unsigned descriptors; /* that connections may have (listen_limits) */
	struct trace *trace;
};

/* gate_init prepares the gate with a copy of the limits; trace is borrowed until
 * gate_fini. */
void gate_init(struct gate *g, const struct admission_limits *l,
	       struct trace *trace);
/* gate_fini frees the addresses, when all entries have left. */
void gate_fini(struct gate *g);

/* gate_set_limits replaces the limits, for connections and logins from then on. The bits of
 * an address stay. */
void gate_set_limits(struct gate *g, const struct admission_limits *l);

/* gate_arrive counts e as half-open. False, after a log line: the caller closes
 * the connection, and e has not been counted. */
bool gate_arrive(struct gate *g, struct admission_entry *e,
		 const struct net_addr *peer, struct admission_entry **victim);
/* gate_login counts e as a session. Returns 0, or ERR_LIMIT after a log
 * line. */
int gate_login(struct gate *g, struct admission_entry *e, const char *peer,
	       bool discovery, bool proven, struct admission_entry **victim);
/* gate_auth_begin returns for how long the answer to a challenge of CHAP is not checked. */
xtime gate_auth_begin(struct gate *g, struct admission_entry *e,
		      const char *account, const char *initiator);
/* gate_auth_failed notes a failed CHAP. Returns for how long further answers are not
 * checked, and logs that. */
xtime gate_auth_failed(struct gate *g, struct admission_entry *e,
		       const char *peer);
/* gate_move moves the owner of e to another worker: *worker becomes to. False: e is
 * a victim, whose message is on its way to *worker, or has been there. */
struct worker;
bool gate_move(struct gate *g, const struct admission_entry *e,
	       struct worker **worker, struct worker *to);
/* gate_end stops counting e, before gate_leave. */
void gate_end(struct gate *g, struct admission_entry *e);
/* gate_leave ends e. Returns whether e was a victim. */
bool gate_leave(struct gate *g, struct admission_entry *e);
/* gate_oldest chooses a victim where descriptors run out; NULL: none. */
struct admission_entry *gate_oldest(struct gate *g);
/* gate_age frees addresses that are no longer relevant. Returns how many
 * without a connection are left. */
unsigned gate_age(struct gate *g);
/* gate_shrunk returns true once when most connections of a flood have ended. */
bool gate_shrunk(struct gate *g);
/* gate_counts copies the counters to *c. */
void gate_counts(struct gate *g, struct admission_counts *c);

#endif
