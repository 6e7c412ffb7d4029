/* SPDX-License-Identifier: BSD-2-Clause */
/* answer.h: what an iSNS server says: the result of a query, state changes. Pure; the
 * attributes are valid (isns_attrs_valid), their contents are not trusted. */
#ifndef TOOLS_ISNS_ANSWER_H
#define TOOLS_ISNS_ANSWER_H

#include "tools/isns/message.h"
#include "tools/isns/view.h"

/* A target at a portal. alias: NULL: none. Borrowed for the call. */
typedef void isns_found(void *arg, const char *name, const char *alias,
			const struct isns_portal *p, unsigned tag);
/* isns_answer_found calls found for each portal group in the result of a query of nodes
 * and portal groups (§5.7.5.2). False: out of memory. */
bool isns_answer_found(struct isns_attrs all, isns_found *found, void *arg);

/* A state change (§5.6.5.8): bits are those of the iSCSI Node SCN Bitmap (§6.4.4), name
 * is the node that changed. Borrowed for the call. */
typedef void isns_changed(unsigned bits, const char *name);
/* isns_answer_changed calls changed for each state change in an SCN, and returns the
 * node for which the SCN is, or NULL: it is malformed. */
const char *isns_answer_changed(struct isns_attrs all, isns_changed *changed);

#endif
