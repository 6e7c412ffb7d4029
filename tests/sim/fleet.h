/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.h: many gateways, many units, many initiators on one virtual clock. The units at
 * the gateways are the real ones (src/cluster), and initiators choose paths by the real
 * policy (lib/path/policy.c). All else is a model with the costs below.
 *
 * fleet_store.c	the records on the servers of objects, and the monitor that fences
 * fleet_gateway.c	gateways: a process with its units, which is stopped in order,
 *			started, or lost with its machine
 * fleet_initiator.c	initiators: sessions, checks of paths, commands
 * fleet_sim_test.c	what happens to a fleet, and what has to hold
 */
#ifndef TESTS_SIM_FLEET_H
#define TESTS_SIM_FLEET_H

#include "cluster/unit.h"
#include "lib/path/policy.h"
#include "sim/cluster_store.h"

#define FLEET_PATHS 3u /* gateways of a unit */

/* ---- costs ---- */

/* Measured (docs/scale.md): how long it takes until the answer, and how long a server of
 * objects is busy, which is the time of a 4 KiB write or read at depth 32. */
#define SWAP_TIME   (1360 * XTIME_US)
#define READ_TIME   (293 * XTIME_US)
#define LOCK_TIME   (5300 * XTIME_US)
#define UNLOCK_TIME (2400 * XTIME_US)
#define NOTE_TIME   (510 * XTIME_US)
#define BUSY_WRITE  (200 * XTIME_US)
#define BUSY_READ   (111 * XTIME_US)
/* The CPU time of a login without CHAP: 6,472 logins per second of a core. */
#define LOGIN_BUSY (155 * XTIME_US)
/* Assumed: one way over the network, and a command of an initiator; each eighth is a long
 * one. */
#define NET_TIME     (50 * XTIME_US)
#define COMMAND_TIME XTIME_MS
#define LONG_COMMAND (50 * XTIME_MS)
/* A monitor of Ceph commits PAXOS_WAIT after the first command, but not sooner than
 * PAXOS_INTERVAL after the last commit (paxos_min_wait, paxos_propose_interval). The
 * commands that came until then take part. */
#define PAXOS_WAIT     (66 * XTIME_MS)
#define PAXOS_INTERVAL XTIME_S
/* How long a watch of a client that is gone holds up notes. */
#define WATCH_TIME (30 * XTIME_S)
#define RESTART	   (2 * XTIME_S) /* of a gateway */
#define REOPEN	   (50 * XTIME_MS)

/* Mistakes of a gateway, each of which must be found. */
enum fleet_mistake {
	FLEET_NO_MISTAKE,
	FLEET_DRAIN, /* it yields while commands are in progress */
	FLEET_ADOPT, /* it becomes owner with the reservations that it had before */
	FLEET_MISTAKES,
};

struct fleet_size {
	unsigned gateways, units, initiators, servers;
};

/* Events per second: the most of any second. */
struct fleet_rate {
	xtime second;
	uint64_t now, most, all;
};
void fleet_count(struct fleet_rate *r, xtime now, uint64_t n);

struct fleet;
struct fleet_unit;
struct fleet_member;
struct fleet_gateway;
struct fleet_initiator;

/* ---- the store ---- */

struct fleet_call;

/* One unit at one gateway, from open to close. */
struct fleet_session {
	struct cluster_store store;
	struct fleet_member *member;
	unsigned client; /* of the gateway: what a fence hits */
	bool open, watches;
	xtime gone; /* since then without a process; XTIME_NEVER */
	struct fleet_call *call;
	struct fleet_note *notes;
};

struct fleet_server {
	xtime free;
	struct fleet_rate requests, busy;
};

struct fleet_monitor {
	struct fleet_call *waiting;
	xtime committed;
	bool scheduled;
	struct fleet_rate commands;
	unsigned commits, most_waiting;
};

struct fleet_session *fleet_open(struct fleet_member *m);
/* fleet_lost: the machine of the session is gone. */
void fleet_lost(struct fleet_session *s);
bool fleet_is_fenced(const struct fleet_session *s);

/* ---- units and gateways ---- */

/* A unit: the record, the lock, and what the oracle knows. */
struct fleet_unit {
	struct fleet *f;
	unsigned number;
	struct fleet_server *server;
	uint8_t *blob;
	size_t len;
	uint64_t version;
	struct fleet_session *holder;
	struct fleet_member *members[FLEET_PATHS];
	uint64_t acked; /* the last change of the reservations with an answer */
	bool was_lost;	/* no gateway was left */
};

/* A unit at a gateway. */
struct fleet_member {
	struct fleet_unit *u;
	struct fleet_gateway *g;
	struct cluster_unit_ops ops;
	struct cluster_unit *cu; /* NULL: the process is not there */
	struct fleet_session *session;
	enum cluster_access access;
	struct cluster_step *access_step, *drop_step;
	struct cluster_step leave, move;
	bool woken, left, moves;
	xtime tick_at;
	unsigned in_progress, drops;
	uint64_t serial; /* of the reservations in force */
};

enum fleet_power {
	FLEET_UP,
	FLEET_STOPPED, /* the machine refuses connections */
	FLEET_LOST,    /* the machine does not answer */
};

struct fleet_gateway {
	struct fleet *f;
	unsigned number, life;
	enum fleet_power power;
	unsigned client, fenced; /* clients up to this one are fenced */
	unsigned *known; /* by gateway: clients that this one has fenced */
	struct fleet_member **members;
	unsigned nmembers;
	xtime free;  /* the CPU */
	xtime worst; /* of a login: how long it waited */
	struct fleet_rate logins;
};

/* fleet_start starts the process of a gateway. */
void fleet_start(struct fleet_gateway *g);
/* fleet_stop gives all units away and ends the process. */
void fleet_stop(struct fleet_gateway *g);
/* fleet_lose: the machine is gone. */
void fleet_lose(struct fleet_gateway *g);
bool fleet_stands_by(const struct fleet_gateway *g);
unsigned fleet_owned(const struct fleet_gateway *g);
enum cluster_role fleet_role(const struct fleet_member *m);
/* fleet_turn has the unit look at what happened. */
void fleet_turn(struct fleet_member *m);

/* ---- initiators ---- */

enum fleet_path_state {
	FLEET_DOWN,
	FLEET_LOGIN,
	FLEET_READY,
	FLEET_SILENT
};

struct fleet_path {
	struct fleet_initiator *i;
	struct fleet_member *m;
	enum fleet_path_state state;
	unsigned life; /* of the gateway at the login */
	unsigned drops;
	unsigned attempts;
	xtime silent; /* since then */
};

/* A command that an initiator issues. */
struct fleet_command {
	struct fleet_initiator *i;
	struct fleet_path *path;
	struct fleet_session *session;
	unsigned life, drops;
	uint64_t floor; /* the newest reservations with an answer */
};

struct fleet_initiator {
	struct fleet *f;
	struct fleet_unit *u;
	unsigned number;
	struct fleet_path paths[FLEET_PATHS];
	struct lib_candidate seen[FLEET_PATHS];
	struct lib_policy policy;
	bool wants, busy; /* a command waits; it is at a gateway */
	bool writes;
	struct fleet_path *stuck; /* has the command of a lost session */
	xtime stuck_since;
	xtime since;	 /* the command is wanted */
	bool dark;	 /* no path carries commands */
	unsigned checks; /* since then */
	xtime check_at, worst_read, worst_write;
	unsigned done;
	/* a change of the reservations */
	struct cluster_step refresh;
	struct cluster_save save;
	uint64_t draft;
	struct fleet_member *through; /* NULL: none */
};

void fleet_initiator_start(struct fleet_initiator *i, xtime at);
/* fleet_reserve has the initiator change the reservations through any path. */
void fleet_reserve(struct fleet_initiator *i);
/* fleet_reserve_gone: the gateway has lost the changes in progress. */
void fleet_reserve_gone(struct fleet_member *m);

/* ---- the fleet ---- */

struct fleet {
	struct store_model clock; /* only the clock and chance */
	struct fleet_size size;
	enum fleet_mistake mistake;
	struct fleet_gateway *gw;
	struct fleet_unit *units;
	struct fleet_initiator *ini;
	struct fleet_server *servers;
	struct fleet_monitor monitor;
	struct fleet_rate requests, notes, changes, logins, checks;
	uint64_t executed, reserved, refused, rejected, hand_overs, breaks;
	xtime handed_over;   /* the last time */
	const char *wrong;   /* the first violation */
	struct list objects; /* of fleet_object */
};

/* fleet_object allocates zeroed memory for what events of the clock carry; it aborts if there is
 * none. fleet_object_free frees it, fleet_objects_free all of it: events that have not
 * happened when a run ends still own theirs. */
void *fleet_object(struct fleet *f, size_t n);
void fleet_object_free(void *data);
void fleet_objects_free(struct fleet *f);
void fleet_wrong(struct fleet *f, const char *what);
void fleet_at(struct fleet *f, xtime at, void (*happens)(void *arg), void *arg);

#endif
