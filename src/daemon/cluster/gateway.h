/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gateway.h: this gateway: the units that other gateways serve, too (members). The
 * decisions are those of cluster/unit.h; here are the stores, timers and
 * configuration, and the ways between the decisions and the device. On worker 0,
 * unless stated otherwise.
 *
 * A member is opened with its unit, joins the other gateways once the targets are
 * known (gateway_update), and leaves before the unit is removed.
 */
#ifndef DAEMON_CLUSTER_GATEWAY_H
#define DAEMON_CLUSTER_GATEWAY_H

#include "cluster/unit.h"
#include "device/shared.h"
#include "target/target.h"

struct bs;
struct gateway;
struct daemon;
struct member;
struct unit;

/* Gives the identity of the unit to a backstore that was opened anew for it. Returns NULL, or why
 * it must not be used. */
typedef const char *gateway_reopened(const struct unit *u, struct bs *b);
/* gateway_new makes the gateway of d->model, which has the section `cluster`. The
 * caller frees it by gateway_free. NULL after a message. */
struct gateway *gateway_new(struct daemon *d, gateway_reopened *reopened);
/* gateway_free closes the stores of all members and frees them and c, which may be
 * NULL; before the device frees their backstores, while worker 0 does not run. */
void gateway_free(struct gateway *c);

/* member_open opens the store of the record of u, whose backstore is b, and adds a
 * member. The unit is in the device, and no nexus has it. NULL after a message. */
struct member *member_open(struct gateway *c, struct unit *u, struct bs *b);
/* member_close closes the store of a member that has not joined, and frees it. */
void member_close(struct member *m);
/* member_leave gives the unit to another gateway, if this one owns it, ends the
 * member and frees it. Calls done, never from within; after a limit even if the
 * store does not answer. */
void member_leave(struct member *m, void (*done)(void *arg), void *arg);
/* gateway_update: the targets, portals or units of d->model have changed. New members
 * join, those that have joined report what is different. */
void gateway_update(struct gateway *c);
/* gateway_is_hanging returns whether a store is being opened anew, so that iserd must
 * not wait for it at its end. */
bool gateway_is_hanging(const struct gateway *c);
/* gateway_leave does as member_leave for all members, at the end of iserd. done may be
 * called from within. */
void gateway_leave(struct gateway *c, void (*done)(void *arg), void *arg);

/* ---- what an administrator sees and does ---- */

/* gateway_each calls fn for each member, in the order in which they were opened. */
void gateway_each(const struct gateway *c,
		  void (*fn)(void *arg, struct member *m), void *arg);
/* member_unit returns the unit. */
const struct unit *member_unit(const struct member *m);
/* member_status fills *st; role is CLUSTER_JOINING and record NULL before the member
 * joins. What it points to is borrowed for the turn. */
void member_status(const struct member *m, struct cluster_status *st);

/* A request of an administrator, borrowed until done; done may be called from within
 * the functions below. result: as of cluster_unit_take and cluster_unit_yield, and
 * ERR_ABORTED: the member has left. */
struct member_call {
	void (*done)(struct member_call *c);
	int result;
	/* private */
	struct list link;
	struct cluster_step step;
};

/* member_take takes the unit, with `fence` at once. */
void member_take(struct member *m, bool fence, struct member_call *c);
/* member_yield gives the unit to another gateway; to NULL: to none. */
void member_yield(struct member *m, const char *to, struct member_call *c);

/* ---- functions of dev_env and tgt_config, for members ---- */

/* These do what dev_env has functions of their names for. The unit is a member's, or
 * was: then they fail with ERR_RESET. */
void gateway_save(struct gateway *c, struct dev_save *s);
void gateway_refresh(struct gateway *c, struct dev_refresh *r);
void gateway_regroup(struct gateway *c, struct dev_regroup *r);
void gateway_fenced(struct gateway *c, struct dev_lu *lu);
/* gateway_portals is tgt_config.portals. Any worker. */
void gateway_portals(struct gateway *c, const char *target,
		     const struct dev_map *map, tgt_put_portal *put, void *to);

#endif
