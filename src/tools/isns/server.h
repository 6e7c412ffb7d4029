/* SPDX-License-Identifier: BSD-2-Clause */
/* server.h: requests to an iSNS server (RFC 4171), by libisns. One process has one
 * server: libisns keeps its state in global variables. */
#ifndef TOOLS_ISNS_SERVER_H
#define TOOLS_ISNS_SERVER_H

#include <stdbool.h>

#include "tools/isns/view.h"

/* isns_server_set sets the server, "HOST" or "HOST:PORT" (3205), which libisns
 * connects to for each of the requests below. False: no memory. */
bool isns_server_set(const char *address);

/* Each request below is made in the name of an iSCSI node: source. It blocks until
 * the server has responded, at most some 30 seconds, and returns NULL or the name
 * of what went wrong, a constant. */

/*
 * isns_server_register makes the server know the view as entity (its Entity
 * Identifier): first the portals, then each target with its portal group tags
 * (DevAttrReg, §5.6.5.1). Objects that the server has already stay.
 * esi: seconds between two Entity Status Inquiries that the server is asked for,
 * which it sends to esi_port of each portal's address (§6.3.4); 0: none.
 */
const char *isns_server_register(const char *source, const char *entity,
				 const struct isns_view *v, unsigned esi,
				 uint16_t esi_port);
/* isns_server_remove removes the targets and portals of old that are not in now
 * (DevDereg, §5.6.5.4). */
const char *isns_server_remove(const char *source, const struct isns_view *old,
			       const struct isns_view *now);
/* isns_server_forget removes the entity with all that it has. */
const char *isns_server_forget(const char *source, const char *entity);

/* What a query finds: a target at a portal. Borrowed for the call. */
typedef void isns_found(void *arg, const char *name, const char *alias,
			const struct isns_portal *p, unsigned tag);

/* isns_server_query calls found for each target and portal that source, an
 * initiator, may see (DevAttrQry, §5.6.5.2). */
const char *isns_server_query(const char *source, isns_found *found, void *arg);

/* ---- what the server sends (state changes, inquiries) ---- */

/* A state change (§5.6.5.8): bits are those of ISCSI SCN (§6.4.4), name is the
 * node it is about. Borrowed for the call. */
typedef void isns_changed(unsigned bits, const char *name);

/* isns_server_listen opens the TCP port at which this process responds to the
 * server, at address (an IP; NULL: all), in the name of source. changed, or NULL,
 * gets state changes. Returns the port, or 0 on failure (libisns has
 * printed the cause). */
uint16_t isns_server_listen(const char *source, const char *address,
			    isns_changed *changed);
/* isns_server_watch registers source as an initiator at the port, as entity, and
 * asks for the state changes of all targets that it may see (SCNReg, §5.6.5.5). */
const char *isns_server_watch(const char *source, const char *entity,
			      const struct isns_portal *at);
/* isns_server_wait responds to the server for up to ms milliseconds, or until a
 * signal arrives. */
void isns_server_wait(unsigned ms);

#endif
