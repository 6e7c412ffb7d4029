/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * portal_text.h: a portal of a gateway as a record has it, "ADDRESS,TAG;HASH": HASH is
 * that of the name of the target, so that other gateways show the portal only with a
 * target that has the unit there, too.
 */
#ifndef DAEMON_CLUSTER_PORTAL_TEXT_H
#define DAEMON_CLUSTER_PORTAL_TEXT_H

#include <stdbool.h>

#include "cluster/unit.h"

struct remote_portal {
	char address[CLUSTER_PORTAL_MAX]; /* "10.0.0.2:3260" */
	unsigned tag;
	uint32_t target; /* portal_hash of its name */
};

/* portal_hash returns the hash of a target's name. */
uint32_t portal_hash(const char *target);
/* portal_write writes the text of a portal. False: it is too long. */
bool portal_write(char out[CLUSTER_PORTAL_MAX], const char *address,
		  unsigned tag, const char *target);
/* portal_read reads a text, which another gateway wrote. False: it has another form. */
bool portal_read(const char *text, struct remote_portal *p);

#endif
