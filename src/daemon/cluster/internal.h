/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: inside cluster/:
 *
 *   gateway.c    the members of this gateway
 *   member.c     one member: joining, leaving, the operations of its unit
 *   describe.c   what a gateway reports of itself
 *   drop.c       what a gateway does that was fenced
 *   hooks.c      what the device asks for
 *   portals.c    portals of the other gateways, for SendTargets
 *   portal_text.c  a portal as a record has it
 *   dir_*.c      the store in a directory
 */
#ifndef DAEMON_CLUSTER_INTERNAL_H
#define DAEMON_CLUSTER_INTERNAL_H

#include <pthread.h>

#include "daemon/apply/units.h"
#include "daemon/cluster/gateway.h"
#include "daemon/cluster/portal_text.h"
#include "daemon/daemon.h"
#include "io/io.h"

struct cfg_cluster;
struct drop;
struct lun_spec;

struct gateway {
	struct daemon *daemon;
	gateway_reopened *reopened;
	struct list members; /* member.link */
	uint64_t run;	     /* cluster_unit_config.run */
	/* gateway_leave */
	void (*left)(void *arg);
	void *arg;
	/* saves that cannot be begun: they end at the end of the turn */
	struct list failed; /* dev_save.link */
	struct io_defer later;
	/* guards `members` and member.remotes, which every worker reads, against
	 * changes by worker 0 */
	pthread_mutex_t lock;
};

/* What waits for the unit: ended with ERR_ABORTED if the unit ends first. */
struct pending {
	struct list link; /* member.pending */
	void (*end)(struct pending *p, int result);
};

struct member {
	struct list link; /* gateway.members */
	struct gateway *gateway;
	struct unit *unit;
	struct cluster_store *store; /* NULL: closed, during a drop */
	struct cluster_unit *cu;     /* NULL: has not joined */
	struct cluster_unit_ops ops;
	struct cluster_gateway self; /* as the other gateways know this one */
	struct io_timer tick;
	struct io_defer soon;
	bool regroup; /* the device could not take the groups: again */
	struct list pending;
	struct list calls; /* member_call.link */
	struct list steps; /* device_step.link; member.c */
	struct drop *drop;
	struct {
		struct cluster_step step;
		struct io_timer limit;
		bool begun, over;
		void (*done)(void *arg);
		void *arg;
	} leave;
	struct remote_portal *remotes;
	unsigned nremotes;
};

/* gateway_gateway returns the section of the configuration. */
const struct cfg_cluster *gateway_section(const struct gateway *c);
/* gateway_member returns the member of the unit, or NULL. */
struct member *gateway_member(const struct gateway *c, const struct dev_lu *lu);

/* gateway_left ends gateway_leave if no member is left. */
void gateway_left(struct gateway *c);

/* member_begin makes the unit of a member that has not joined. Without memory the
 * member tries again later. */
void member_begin(struct member *m);
/* member_store opens the store of the record; b is the backstore. NULL: why (size
 * bytes) has a sentence. May block. */
struct cluster_store *member_store(const struct member *m, struct bs *b,
				   char *why, size_t size);
/* member_module_store does that for a store that is a module; any thread. */
struct cluster_store *member_module_store(const struct lun_spec *s,
					  struct bs *b, const char *gateway,
					  char *why, size_t size);
/* member_wake makes the loop call cluster_unit_tick at the end of this turn. */
void member_wake(struct member *m);
/* member_say logs a sentence about the unit. */
void member_say(struct member *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* member_left ends the member if it leaves and nothing is in progress any more. */
void member_left(struct member *m);
/* member_free closes the store and frees m. stopped: the workers do not run any
 * more. */
void member_free(struct member *m, bool stopped);

/* member_describe fills m->self. True: it has changed. */
bool member_describe(struct member *m);

/* member_set_portals puts the portals of the other gateways of the record in force; NULL:
 * there are none. */
void member_set_portals(struct member *m, const struct cluster_record *r);

/* member_drop_new returns what a drop of m needs, since a drop must not fail: it belongs to m
 * until member_drop_abandon. NULL: no memory. */
struct drop *member_drop_new(struct member *m);
/* member_drop_begin is cluster_unit_ops.drop. */
void member_drop_begin(struct member *m, struct cluster_step *s);
/* member_drop_is_hanging returns whether a store is being opened, which may take long. */
bool member_drop_is_hanging(const struct member *m);
/* member_drop_abandon frees m->drop, or lets it end by itself. stopped: the workers do not run
 * any more. */
void member_drop_abandon(struct member *m, bool stopped);

#endif
