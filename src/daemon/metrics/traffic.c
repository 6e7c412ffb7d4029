/* SPDX-License-Identifier: BSD-2-Clause */
/* traffic.c: adds up what connections moved. */
#include "daemon/metrics/traffic.h"

#include <string.h>

static struct traffic_kind *kind_of(struct traffic *t, const char *kind)
{
	struct traffic_kind *k = t->kinds;

	while (k < t->kinds + TRAFFIC_KINDS - 1 && k->kind &&
	       strcmp(k->kind, kind) != 0)
		k++;
	k->kind = kind;
	return k;
}

static void stats_add(struct net_conn_stats *to,
		      const struct net_conn_stats *from)
{
	to->net.rx_bytes += from->net.rx_bytes;
	to->net.tx_bytes += from->net.tx_bytes;
	to->net.rx_calls += from->net.rx_calls;
	to->net.tx_calls += from->net.tx_calls;
	to->copied += from->copied;
	to->rx_pdus += from->rx_pdus;
	to->tx_pdus += from->tx_pdus;
	to->r2ts += from->r2ts;
	to->digest_errors += from->digest_errors;
	to->rdma.writes += from->rdma.writes;
	to->rdma.reads += from->rdma.reads;
	to->rdma.acks += from->rdma.acks;
	to->rdma.write_bytes += from->rdma.write_bytes;
	to->rdma.read_bytes += from->rdma.read_bytes;
	to->rdma.invalidated += from->rdma.invalidated;
}

void traffic_add(struct traffic *t, const struct net_conn *c, bool open)
{
	struct net_conn_stats st;
	struct traffic_kind *k;

	if (!c)
		return;
	k = kind_of(t, net_conn_kind(c));
	net_conn_stats(c, &st);
	stats_add(&k->moved, &st);
	k->open += open;
}

void traffic_sum(struct traffic *to, const struct traffic *from)
{
	for (unsigned i = 0; i < TRAFFIC_KINDS; i++) {
		struct traffic_kind *k;

		if (!from->kinds[i].kind)
			continue;
		k = kind_of(to, from->kinds[i].kind);
		stats_add(&k->moved, &from->kinds[i].moved);
		k->open += from->kinds[i].open;
	}
}
