/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admission.h: which connections the process takes, and which it drops to make
 * room: shares for each address, after the limits of OpenSSH (MaxStartups,
 * PerSourceMaxStartups, PerSourceNetBlockSize, PerSourcePenalties) and nginx
 * (limit_conn, limit_req).
 *
 * A connection is half-open from accept to the end of its login; then it is a
 * discovery session or a session. A session is never dropped to make room.
 * Where too many are half-open, the address that has the most of them, and
 * among equals the one that came most often lately, loses its oldest one; a new
 * connection is refused only where its own address has the most and has no
 * half-open connection to lose.
 *
 * No system call, clock or lock: time and random numbers are arguments, and the
 * caller (gate.c) serializes.
 */
#ifndef DAEMON_SERVE_ADMISSION_H
#define DAEMON_SERVE_ADMISSION_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/xtime.h"

struct admission_limits {
	unsigned sessions, source_sessions;
	/* Half-open connections: from start on, one is dropped for a new one
	 * with a probability of rate %, which grows to 100 % at full. */
	unsigned start, rate, full;
	unsigned source_startups;
	unsigned discovery, source_discovery;
	/* Connections of one address per second; ADMISSION_BURST times as
	 * many at once. 0: no limit. */
	unsigned per_second;
	/* Seconds that CHAP of an account by an initiator name is refused at an
	 * address after failures: first after ADMISSION_FREE of them, doubled by
	 * each further one up to max. 0: never. */
	unsigned penalty_first, penalty_max;
	/* Bits of an address that count as one address. */
	unsigned v4_bits, v6_bits;
	/* Addresses without a connection that are remembered at most. */
	unsigned remembered;
};

#define ADMISSION_BURST 5
#define ADMISSION_FREE	3
/* So many pairs of account and initiator name that have failed at an address are counted
 * apart, all others together: names are free to choose. */
#define ADMISSION_PAIRS	     8
#define ADMISSION_PROVEN     8	  /* so many that have succeeded, too */
#define ADMISSION_REMEMBERED 4096 /* the default of remembered */

/* admission_limits_fit reduces l to limits for which so many descriptors are
 * enough. Returns whether l had to be reduced. */
bool admission_limits_fit(struct admission_limits *l, unsigned descriptors);

enum admission_state {
	ADMISSION_NONE,	     /* not counted: not admitted yet, or ended */
	ADMISSION_STARTING,  /* half-open */
	ADMISSION_DISCOVERY, /* a discovery session */
	ADMISSION_SESSION,   /* a session of a target */
	ADMISSION_DROPPED,   /* a victim; not counted any more */
};

struct admission_source;

/* One connection; zero it before admission_arrive. */
struct admission_entry {
	struct list link; /* of its state, oldest first */
	struct admission_source *source;
	enum admission_state state;
	bool proven;  /* a discovery session that passed CHAP */
	uint64_t who; /* the account and the name of its CHAP; 0: none yet */
};

enum admission_verdict {
	ADMISSION_OK,
	ADMISSION_TOO_FAST, /* the address is above per_second */
	ADMISSION_PENALTY,  /* the account has to wait after failed CHAP */
	ADMISSION_CROWDED,  /* many are half-open, most of this address */
	ADMISSION_FULL,	    /* a limit of the process; no connection to drop */
	ADMISSION_SHARE,    /* the limit of one address */
	ADMISSION_NO_MEMORY,
	ADMISSION_VERDICTS,
};

struct admission_counts {
	unsigned starting, discovery, sessions;
	unsigned sources;   /* addresses that are known now */
	unsigned penalized; /* addresses that have failed CHAP lately */
	/* since the start */
	uint64_t arrived, logins, auth_failures;
	uint64_t refused[ADMISSION_VERDICTS];
	uint64_t dropped_starting, dropped_discovery;
};

#define ADMISSION_BUCKETS 1024

struct admission {
	struct admission_limits limits;
	struct admission_counts counts;
	uint64_t seed; /* of the hash */
	struct list starting, discovery;
	struct list idle; /* sources without a connection, oldest first */
	unsigned nidle;
	struct list buckets[ADMISSION_BUCKETS];
};

/* admission_init prepares *a with a copy of the limits. seed: random bits, so
 * that peers cannot choose addresses with one hash. */
void admission_init(struct admission *a, const struct admission_limits *l,
		    uint64_t seed);
/* admission_fini frees the addresses, when all entries have left. */
void admission_fini(struct admission *a);

/*
 * admission_arrive counts the connection e from peer as half-open. ADMISSION_OK
 * with *victim not NULL: drop that connection, which is not counted any more
 * but has yet to leave. random: 32 random bits.
 */
enum admission_verdict admission_arrive(struct admission *a,
					struct admission_entry *e,
					const struct sockaddr_storage *peer,
					xtime now, uint32_t random,
					struct admission_entry **victim);
/* admission_login: the login of e is complete. Other than ADMISSION_OK: it must
 * be refused, and e leaves soon. proven: by CHAP. *victim as above. */
enum admission_verdict admission_login(struct admission *a,
				       struct admission_entry *e,
				       bool discovery, bool proven, xtime now,
				       struct admission_entry **victim);
/* admission_auth_begin: the initiator with this name answers the challenge of CHAP for an
 * account. Returns for how long such an answer is not checked; 0: now. */
xtime admission_auth_begin(struct admission *a, struct admission_entry *e,
			   const char *account, const char *initiator,
			   xtime now);
/* admission_auth_failed: the answer was wrong. Returns for how long further ones of this
 * account and name are not checked at the address of e. */
xtime admission_auth_failed(struct admission *a, struct admission_entry *e,
			    xtime now);
/* admission_end: e does not count any more, but admission_auth_failed may still
 * be called for it. */
void admission_end(struct admission *a, struct admission_entry *e);
/* admission_leave: e is gone, after admission_arrive was ADMISSION_OK. Returns
 * whether e was a victim. */
bool admission_leave(struct admission *a, struct admission_entry *e, xtime now);
/* admission_oldest chooses a victim without a new connection, where
 * descriptors run out; NULL: none is half-open. */
struct admission_entry *admission_oldest(struct admission *a, xtime now);
/* admission_age frees the addresses without a connection whose rate and
 * failures are no longer relevant. */
void admission_age(struct admission *a, xtime now);

/* admission_verdict_str returns the reason in words, for the log. */
const char *admission_verdict_str(enum admission_verdict v);

#endif
