/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn.h: a connection with an iSCSI datamover: iSCSI over TCP; iSER that logs
 * in over the byte stream and then switches to RDMA mode (RFC 7145 §5.1); iSER
 * in RDMA mode from the first byte, as Linux does it. One port serves all
 * three: the first byte distinguishes them.
 *
 * Threads: every object belongs to the thread of its loop.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "datamover/datamover.h"
#include "net/net.h"

struct net_conn;

enum net_start {
	NET_START_ANY,	  /* target: the first byte decides */
	NET_START_STREAM, /* iSCSI bytes; RDMA mode may follow */
	NET_START_RDMA,	  /* an MPA Request comes first */
};

/* Kinds that NET_START_ANY and RDMAExtensions=Yes may result in. */
#define NET_ALLOW_TCP	 0x1u /* plain iSCSI */
#define NET_ALLOW_SWITCH 0x2u /* from stream to RDMA mode */
#define NET_ALLOW_RDMA	 0x4u /* RDMA mode from the start */
#define NET_ALLOW_ALL	 0x7u

/* The octets by which the caller of a target may choose where a connection
 * belongs: the header of a Login Request up to its TSIH (RFC 7143 §11.12). */
#define NET_CONN_BEGIN 16

struct net_conn_config {
	enum iscsi_role role;
	enum net_start start;
	unsigned allow; /* NET_ALLOW_*, at least one */
	/* rules of datamover/iser/dmiser.h, by start */
	unsigned rules_rdma, rules_stream;
	bool hold;	      /* net_conn_held will be called */
	bool crc;	      /* MPA: request CRC32C (RFC 5044 §4.4) */
	bool markers;	      /* MPA: request markers */
	uint8_t mpa_revision; /* MPA: of our request, 1 or 2 */
	xtime sniff_time;     /* for the first byte */
	xtime mpa_time;	      /* for each step of the MPA start-up */
	uint32_t seed;	      /* of STag keys; random */
	unsigned max_tasks;   /* STags: two a task (initiator) */
	/* NET_START_ANY: octets that were received from fd before; at most
	 * NET_CONN_BEGIN */
	uint8_t begin[NET_CONN_BEGIN];
	unsigned nbegin;
};

/* net_conn_config_default: ANY for a target, STREAM for an initiator, all kinds
 * allowed, CRC, no markers, revision 2, 15 s and 10 s. */
void net_conn_config_default(struct net_conn_config *cfg, enum iscsi_role role);

struct net_conn_ops {
	/* The kind of the connection is known: the role attaches itself to dm.
	 * Called once; from within net_conn_start if the kind was known before.
	 * Nonzero: net closes the connection. */
	int (*opened)(void *arg, struct dm_conn *dm);
	/* NULL, or asked once, before opened, of a socket with NET_START_ANY:
	 * does the connection belong elsewhere? begin has its first octets: one
	 * of an MPA Request, else NET_CONN_BEGIN of a Login Request. True: the
	 * caller takes the socket in closed, by net_conn_held. */
	bool (*elsewhere)(void *arg, const uint8_t *begin, unsigned n);
	/* Last call, after the terminate notice of the role: free the
	 * connection here. */
	void (*closed)(void *arg, int err);
};

/* net_conn_new takes over fd. NULL: out of memory, and fd is closed. */
struct net_conn *net_conn_new(struct io_loop *l, int fd,
			      const struct net_conn_config *cfg);
/* net_conn_new_verbs takes over a connection of an RDMA device; cfg->start is
 * unused. NULL: out of memory. */
struct net_verbs;
struct verbs_conn;
struct net_conn *net_conn_new_verbs(struct io_loop *l, struct net_verbs *v,
				    struct verbs_conn *vc,
				    const struct net_conn_config *cfg);
/* net_conn_refuse_verbs replaces net_conn_free if net_conn_start failed, from
 * within verbs_module.take: it rejects the peer's request and frees c
 * afterwards. NULL has no effect. */
void net_conn_refuse_verbs(struct net_conn *c);
/* net_conn_start: 0, or ERR_... or -Exxx: closed is not called then. */
int net_conn_start(struct net_conn *c, const struct net_conn_ops *ops,
		   void *arg);
/* net_conn_free: from closed on, or if the connection never started. */
void net_conn_free(struct net_conn *c);
/* net_conn_drop ends the connection at the end of the turn; closed of a socket gets err.
 * why: static. */
void net_conn_drop(struct net_conn *c, int err, const char *why);
/* net_conn_held: the socket of a connection that this end gave up and the peer
 * did not; the caller ends it with net_reset. Or that of a connection that belongs
 * elsewhere. -1: none. From closed on. */
int net_conn_held(struct net_conn *c);

/* net_conn_addresses: both addresses as far as they are known. */
void net_conn_addresses(const struct net_conn *c, struct net_addr *local,
			struct net_addr *peer);

struct net_conn_stats {
	struct net_stream_stats net; /* bytes and system calls of the socket */
	/* payload bytes that were copied in user space */
	uint64_t copied;
	uint64_t rx_pdus, tx_pdus;
	uint64_t r2ts;		/* iSCSI over TCP: sent or received */
	uint64_t digest_errors; /* iSCSI; iWARP: wrong CRCs */
	struct {
		uint64_t writes, reads, write_bytes, read_bytes;
		uint64_t acks; /* zero-length RDMA Reads: dmiser.h */
		/* STags that the peer or this end invalidated */
		uint64_t invalidated;
	} rdma;
};
/* net_conn_stats: counters since the start of the connection. */
void net_conn_stats(const struct net_conn *c, struct net_conn_stats *st);
/* net_conn_why: why net closed the connection, as a sentence; NULL: the err of
 * closed says all. */
const char *net_conn_why(const struct net_conn *c);
/* net_conn_kind: the kind of the connection, as text. */
const char *net_conn_kind(const struct net_conn *c);
/* net_conn_is_iser: it is in RDMA mode or switches to it. */
bool net_conn_is_iser(const struct net_conn *c);
/* net_conn_rules: the rules of datamover/iser/dmiser.h in force; 0: no iSER. */
unsigned net_conn_rules(const struct net_conn *c);

#endif
