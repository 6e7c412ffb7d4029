/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traffic.h: what the connections of one worker moved, by kind of connection.
 * Belongs to the thread of the worker.
 */
#ifndef DAEMON_METRICS_TRAFFIC_H
#define DAEMON_METRICS_TRAFFIC_H

#include "net/conn.h"

#define TRAFFIC_KINDS 8 /* more than net_conn_kind knows */

struct traffic_kind {
	const char *kind; /* net_conn_kind; NULL: this entry is free */
	unsigned open;	  /* connections now */
	struct net_conn_stats moved;
};

struct traffic {
	struct traffic_kind kinds[TRAFFIC_KINDS];
};

/* traffic_add adds the counters of a connection; open: the connection still
 * exists. c NULL has no effect. */
void traffic_add(struct traffic *t, const struct net_conn *c, bool open);
/* traffic_sum adds the counters of all kinds in *from to *to. */
void traffic_sum(struct traffic *to, const struct traffic *from);

#endif
