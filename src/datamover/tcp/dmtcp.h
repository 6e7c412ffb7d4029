/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmtcp.h: the datamover for iSCSI over a byte stream (RFC 7143): framing,
 * digests, R2T / Data-Out / Data-In, look-ahead receive. Both roles.
 */
#ifndef DATAMOVER_TCP_DMTCP_H
#define DATAMOVER_TCP_DMTCP_H

#include "base/stream.h"
#include "datamover/datamover.h"

struct dmtcp_conn;

/*
 * The functions that move a connection to RDMA mode when its login ends with
 * RDMAExtensions=Yes (RFC 7145 §5.1).
 */
struct dmtcp_rdma {
	/* prepare allocates all that the iSER datamover needs and lets it take
	 * stream_dm over. An error changes nothing, and the login fails. */
	int (*prepare)(void *arg, struct dm_conn *stream_dm,
		       const struct iscsi_params *params,
		       const struct dm_resources *r);
	/* drained: the last octet of the stream mode is sent, and no more are
	 * received. dmtcp_left returns the octets that were received after the
	 * stream mode's last PDU. */
	void (*drained)(void *arg);
	/* closed: the transport was closed before that. */
	void (*closed)(void *arg, int err, xtime now);
	void *arg;
	bool required; /* refuse sessions that stay in stream mode */
};

struct dmtcp_config {
	enum iscsi_role role;
	struct dmtcp_rdma rdma; /* prepare NULL: RDMA mode is not possible */
	/* Bytes of the look-ahead buffer in full feature phase; during the
	 * login it has room for one Login PDU. */
	size_t lookahead;
	/* The most bytes of control-type PDUs in the queue; the connection of
	 * a peer that reads too slowly is dropped. */
	size_t max_queued_control;
};

/* dmtcp_config_default: 256 KiB look-ahead, 1 MiB of queued control. */
void dmtcp_config_default(struct dmtcp_config *cfg, enum iscsi_role role);

/* dmtcp_new copies cfg; host is borrowed until stream_ops.closed. NULL: out of
 * memory. */
struct dmtcp_conn *dmtcp_new(const struct dmtcp_config *cfg,
			     struct stream_host *host);
/* dmtcp_free frees c, after stream_ops.closed only; c may be NULL. */
void dmtcp_free(struct dmtcp_conn *c);

/* dmtcp_dm returns the part of c that the role uses. */
struct dm_conn *dmtcp_dm(struct dmtcp_conn *c);

/* dmtcp_left returns, after rdma.drained, the received octets that belong to
 * RDMA mode, and stores their number in *n. They are borrowed from c. */
const uint8_t *dmtcp_left(const struct dmtcp_conn *c, size_t *n);

struct dmtcp_stats {
	uint64_t rx_pdus, tx_pdus;
	uint64_t rx_bytes, tx_bytes;	 /* all bytes of the transport */
	uint64_t rx_payload, tx_payload; /* bytes of data segments */
	uint64_t copied;		 /* payload bytes that were copied */
	uint64_t r2ts;			 /* target: sent; initiator: received */
	uint64_t dropped;	/* PDUs without a task, or with an error */
	uint64_t digest_errors; /* of headers and of data */
	uint64_t snacks;	/* initiator: sent; target: received */
	uint64_t timeouts;	/* target: tasks whose data did not come */
};
/* dmtcp_stats returns the counters, which are borrowed from c. */
const struct dmtcp_stats *dmtcp_stats(const struct dmtcp_conn *c);

/* The functions for the driver; core is the struct dmtcp_conn. */
extern const struct stream_ops dmtcp_stream_ops;

#endif
