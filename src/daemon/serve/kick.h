/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kick.h: ends sessions and connections, at the request of an administrator or
 * because of a fence, and reports how each ended. A message visits each worker, and each connection that
 * has ended sends one back.
 */
#ifndef DAEMON_SERVE_KICK_H
#define DAEMON_SERVE_KICK_H

#include "base/list.h"
#include "device/env.h"
#include "target/target.h"

struct daemon;
struct kick;
struct worker;

/* A connection that was chosen. */
struct kicked {
	struct list link;  /* of its kick, in the order of the workers */
	struct list place; /* worker's kicked, until it has ended */
	struct dev_msg msg;
	struct kick *kick;
	const void *owner; /* compared only */
	char peer[TGT_ADDR_STR];
	char *initiator, *target;
	uint16_t tsih;
	bool logged_out;
};

struct kick_how {
	const char *reason; /* for the log: "by the administrator" */
	bool now;	    /* dropped; else sessions are asked to log out */
	bool must; /* also those that do not fit into the list, without memory */
};

/*
 * kick_begin ends the connections for which is_chosen returns true (on their
 * workers). how is borrowed until done. Later, on worker
 * 0, done gets them as a list of struct kicked, which is freed afterwards; it may
 * be empty. NULL: no memory. k is valid until done has returned. is_chosen and arg
 * must live as long.
 */
struct kick *
kick_begin(struct daemon *d, const struct kick_how *how,
	   bool (*is_chosen)(void *arg, const struct tgt_conn_status *st),
	   void (*done)(void *arg, const struct list *all), void *arg);
/* kick_free frees a kick without a call of done; after workers_stop. */
void kick_free(struct kick *k);
/* kick_ended notes that a connection has ended; on its worker's thread. */
void kick_ended(struct worker *w, const void *owner, bool logged_out);

#endif
