/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.h: the counters of all workers, added up by a message that visits
 * each worker in turn: no counter is read by a thread that does not own it.
 */
#ifndef DAEMON_METRICS_SNAPSHOT_H
#define DAEMON_METRICS_SNAPSHOT_H

#include <jansson.h>

#include "daemon/daemon.h"
#include "target/stats.h"

/* Units and sessions that a snapshot has at most: the answers stay bounded
 * however many initiators log in. */
#define SNAPSHOT_UNITS	  1024
#define SNAPSHOT_SESSIONS 256
/* LUNs of all targets whose backstore the metrics name. */
#define SNAPSHOT_LUNS 4096

/* The sessions of one target over one transport. */
struct snapshot_target {
	struct list link;
	const char *transport;
	unsigned sessions; /* now */
	struct tgt_counters count;
	char name[224]; /* "" for discovery */
};

struct snapshot {
	struct daemon *daemon;
	/* the units that are served, by number; stats[i] is NULL if no worker
	 * has had a command to units[i] */
	struct dev_lu **units;
	struct tgt_unit_stats **stats;
	unsigned nunits, left_out; /* units that do not fit */
	struct list targets;	   /* snapshot_target.link */
	json_t *sessions;	   /* as status_sessions makes them */
	unsigned nsessions;	   /* all, those without a place included */
	struct tgt_worker_stats workers;
	struct traffic traffic;
	size_t buffers_used, buffers_cached; /* bytes */
	xtime took;			     /* on all workers */
};

/* snapshot_collect calls done with a snapshot, which done borrows for the call,
 * or with NULL: no memory, or the process ends; from within only without
 * memory. counters false: the snapshot has the sessions only, but all of them. On worker 0. */
void snapshot_collect(struct daemon *d, bool counters,
		      void (*done)(void *arg, const struct snapshot *s),
		      void *arg);
/* snapshot_abandon calls done with NULL for the snapshots in progress; after
 * workers_stop. */
void snapshot_abandon(struct daemon *d);

#endif
