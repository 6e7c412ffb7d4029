/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.h: what the iSNS server sends of its own accord: status inquiries and state
 * changes. One process has one port. */
#ifndef TOOLS_ISNS_LISTEN_H
#define TOOLS_ISNS_LISTEN_H

#include "tools/isns/answer.h"
#include "tools/isns/link.h"
#include "tools/isns/server.h"

/* isns_listen_open opens a TCP port at at->ip and sets at->port. Connections of another
 * peer are closed before anything is read. changed, or NULL, gets state changes. False: the
 * port cannot be opened; errno has the reason. */
bool isns_listen_open(struct isns_reach *at, const struct isns_peer *peer,
		      isns_changed *changed);
/* isns_listen_wait responds to the server for up to ms milliseconds, or until a signal
 * arrives. */
void isns_listen_wait(int ms);

#endif
