/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn.h: a socket with an iSCSI datamover on it, whichever it is to be: iSCSI
 * over TCP; iSER that logs in over the stream and goes to RDMA mode then
 * (RFC 7145 §5.1); iSER in RDMA mode from the first byte, as Linux does it.
 * One port serves all three: what comes is told by its first byte.
 *
 * Threads: everything belongs to the thread of its loop.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "datamover/datamover.h"
#include "net/net.h"

struct net_conn;

enum net_start {
	NET_START_ANY,	  /* target: what the first byte says */
	NET_START_STREAM, /* iSCSI bytes; RDMA mode may follow */
	NET_START_RDMA,	  /* an MPA Request comes first */
};

/* What may be, of NET_START_ANY and of RDMAExtensions=Yes. */
#define NET_ALLOW_TCP	 0x1u /* plain iSCSI */
#define NET_ALLOW_SWITCH 0x2u /* from stream to RDMA mode */
#define NET_ALLOW_RDMA	 0x4u /* RDMA mode from the start */
#define NET_ALLOW_ALL	 0x7u

struct net_conn_config {
	enum iscsi_role role;
	enum net_start start;
	unsigned allow; /* NET_ALLOW_*, one at the least */
	/* Rules of datamover/iser/dmiser.h, by start. */
	unsigned rules_rdma, rules_stream;
	bool hold;	      /* net_conn_held will be asked */
	bool crc;	      /* MPA: want CRC32C (RFC 5044 §4.4) */
	bool markers;	      /* MPA: ask for markers */
	uint8_t mpa_revision; /* of our request, 1 or 2 */
	xtime sniff_time;     /* for the first byte */
	xtime mpa_time;	      /* for each step of MPA's start-up */
	uint32_t seed;	      /* of STag keys: random */
	unsigned max_tasks;   /* STags: two a task (initiator) */
};

/* net_conn_config_default: ANY for a target, STREAM for an initiator, all
 * allowed, CRC, no markers, revision 2, 15 s and 10 s. */
void net_conn_config_default(struct net_conn_config *cfg, enum iscsi_role role);

struct net_conn_ops {
	/* What kind it is is known: the role attaches itself to dm. Nonzero:
	 * the connection is closed. Comes once, from within net_conn_start if
	 * it was known before. */
	int (*opened)(void *arg, struct dm_conn *dm);
	/* Last call, after the role's terminate notice: free it here. */
	void (*closed)(void *arg, int err);
};

/* net_conn_new takes over fd. NULL: out of memory, fd is closed. */
struct net_conn *net_conn_new(struct io_loop *l, int fd,
			      const struct net_conn_config *cfg);
/* net_conn_new_verbs: the same for a connection of an RDMA device, which it
 * takes over; cfg's start is not looked at. */
struct net_verbs;
struct verbs_conn;
struct net_conn *net_conn_new_verbs(struct io_loop *l, struct net_verbs *v,
				    struct verbs_conn *vc,
				    const struct net_conn_config *cfg);
/* net_conn_refuse_verbs: in place of net_conn_free where it failed to start,
 * from within verbs_module.take: the peer is refused, and c goes when that is
 * done. NULL is fine. */
void net_conn_refuse_verbs(struct net_conn *c);
/* net_conn_start: 0, or ERR_... / -Exxx, then closed is not called. */
int net_conn_start(struct net_conn *c, const struct net_conn_ops *ops,
		   void *arg);
/* net_conn_free: after closed (also from within), or if it never started. */
void net_conn_free(struct net_conn *c);
/* net_conn_held: the socket of a connection that we gave up and the peer did
 * not, which the caller ends (net_reset); -1: none. From closed on. */
int net_conn_held(struct net_conn *c);

void net_conn_addresses(const struct net_conn *c, struct net_addr *local,
			struct net_addr *peer);

struct net_conn_stats {
	struct net_stream_stats net; /* bytes and system calls of the socket */
	/* Payload that a buffer of ours came between, in user space. */
	uint64_t copied;
};
void net_conn_stats(const struct net_conn *c, struct net_conn_stats *st);
/* Why nothing was opened, for people; NULL: no more than closed's err says. */
const char *net_conn_why(const struct net_conn *c);
/* How it came about, for people: "tcp", "iser (rdma from the start)", ... */
const char *net_conn_kind(const struct net_conn *c);
bool net_conn_is_iser(const struct net_conn *c);
/* Rules of datamover/iser/dmiser.h that are kept; 0 where there is no iSER. */
unsigned net_conn_rules(const struct net_conn *c);

#endif
