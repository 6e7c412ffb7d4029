/* SPDX-License-Identifier: BSD-2-Clause */
/* server.h: requests to an iSNS server (RFC 4171). */
#ifndef TOOLS_ISNS_SERVER_H
#define TOOLS_ISNS_SERVER_H

#include "tools/isns/answer.h"
#include "tools/isns/link.h"
#include "tools/isns/view.h"

/* Each request below is made in the name of an iSCSI node: source. It blocks until
 * the server has responded, at most some 30 seconds, and returns NULL or what went
 * wrong, valid until the next request. */

/* Where the server reaches this process; port 0: nowhere. */
struct isns_reach {
	struct in6_addr ip; /* :: or 0.0.0.0: every address */
	uint16_t port;
};

/* isns_reach_has returns whether a portal has the address of *r. */
bool isns_reach_has(const struct isns_reach *r, const struct isns_portal *p);

/*
 * isns_server_register makes the server know the view as entity (its Entity
 * Identifier): first the portals, then each target with its portal group tags
 * (DevAttrReg, §5.6.5.1). Objects that the server has already stay.
 * esi: seconds between two Entity Status Inquiries that the server is asked for,
 * which it sends to the portals that have the address of *at (§6.3.4); 0: none.
 */
const char *isns_server_register(struct isns_peer *peer, const char *source,
				 const char *entity, const struct isns_view *v,
				 unsigned esi, const struct isns_reach *at);
/* isns_server_remove removes the targets and portals of old that are not in now
 * (DevDereg, §5.6.5.4). */
const char *isns_server_remove(struct isns_peer *peer, const char *source,
			       const struct isns_view *old,
			       const struct isns_view *now);
/* isns_server_forget removes the entity with all that it has. */
const char *isns_server_forget(struct isns_peer *peer, const char *source,
			       const char *entity);
/* isns_server_query calls found for each target and portal that source, an
 * initiator, may see (DevAttrQry, §5.6.5.2). */
const char *isns_server_query(struct isns_peer *peer, const char *source,
			      isns_found *found, void *arg);
/* isns_server_watch registers source as an initiator at *at, as entity, and
 * asks for the state changes of all targets that it may see (SCNReg, §5.6.5.5). */
const char *isns_server_watch(struct isns_peer *peer, const char *source,
			      const char *entity, const struct isns_reach *at);

#endif
