/* SPDX-License-Identifier: BSD-2-Clause */
/* portals.h: the portal groups of iserd with their listeners. */
#ifndef DAEMON_SERVE_PORTALS_H
#define DAEMON_SERVE_PORTALS_H

#include "daemon/config/model.h"
#include "net/net.h"

struct daemon;
struct portal;
struct worker;

/* What a connection of an RDMA device finds its portal group by. */
struct portal_worker {
	struct portal *portal;
	struct worker *worker;
};

/* A portal group. All but the listeners is constant, and connections refer to
 * it until iserd ends. */
struct portal {
	struct daemon *daemon;
	char *name;
	uint16_t tag;
	unsigned transports; /* NET_ALLOW_* */
	bool strict;	     /* all its targets are */
	bool is_open; /* a target admits initiators without CHAP and by any name */
	bool joins; /* a connection may belong to a session that exists */
	struct portal_worker *at; /* by worker */
	/* worker 0 */
	struct net_listener **listeners;
	char **texts; /* of the listeners, as the configuration has them */
	unsigned nlisteners;
};

/* portal_new makes the portal group with this index in m, without listeners; the
 * caller gives it to portal_add. NULL: no memory. */
struct portal *portal_new(struct daemon *d, const struct cfg_model *m,
			  unsigned index);
/* portal_add adds p to d->portals.all, which own it then. False: no memory. */
bool portal_add(struct daemon *d, struct portal *p);
/* portal_find returns the portal group of this name, or NULL. */
struct portal *portal_find(const struct daemon *d, const char *name);
/* portal_listen opens a listener at an address of the configuration. Returns 0, or
 * an exit code after a message. waits: how often it waits for an address in use
 * (daemon/process/address_wait.h), 0 while iserd serves. */
int portal_listen(struct portal *p, const char *text, unsigned waits);
/* portal_unlisten closes listener i of p. */
void portal_unlisten(struct portal *p, unsigned i);
/* portal_free closes the listeners and frees p, to which no connection refers; NULL
 * has no effect. */
void portal_free(struct portal *p);

/* portal_change returns the portal group with this index in m: that of d if it can
 * stay, else a new one with paused listeners, which the caller owns. NULL after a
 * message. */
struct portal *portal_change(struct daemon *d, const struct cfg_model *m,
			     unsigned index);
/* portal_reserve makes room for all portal groups in d->portals.retired. False: no
 * memory. */
bool portal_reserve(struct daemon *d);
/* portal_retire closes the listeners of p and keeps p for its connections; after
 * portal_reserve. */
void portal_retire(struct daemon *d, struct portal *p);
/* portal_resume lets all listeners accept. */
void portal_resume(struct portal *p);
/* portal_listen_verbs listens on RDMA devices again, for d->portals.all, which are
 * those of m; errors go to the log. */
void portal_listen_verbs(struct daemon *d, const struct cfg_model *m);
/* portal_address writes address i that initiators get of a portal group, in the form of
 * net_addr_str: one of c->announce, or else one where p listens. False: there are no
 * more. */
bool portal_address(const struct cfg_portal *c, const struct portal *p,
		    unsigned i, char out[NET_ADDR_STR]);
/* portal_is_wildcard returns whether the address, in the form of net_addr_str, is
 * that of all addresses of the machine. */
bool portal_is_wildcard(const char *address);

#endif
