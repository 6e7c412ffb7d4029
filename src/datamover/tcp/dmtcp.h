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
 * What a connection asks of whoever can take it to RDMA mode when its login
 * ended with RDMAExtensions=Yes (RFC 7145 §5.1).
 */
struct dmtcp_rdma {
	/* Everything that the other datamover needs is made, and it takes face
	 * over; an error leaves all as it was, and the login fails. */
	int (*prepare)(void *arg, struct dm_conn *face,
		       const struct iscsi_params *params,
		       const struct dm_resources *r);
	/* The last octet of the stream mode is out, and none more is read:
	 * dmtcp_left gives what was read too far. */
	void (*drained)(void *arg);
	/* The transport went before that. */
	void (*closed)(void *arg, int err, xtime now);
	void *arg;
	bool required; /* no session stays on the stream */
};

struct dmtcp_config {
	enum iscsi_role role;
	struct dmtcp_rdma rdma; /* prepare NULL: RDMA mode is not possible */
	/* Bytes of the look-ahead buffer in full feature phase; during login
	 * it is just large enough for a Login PDU. */
	size_t lookahead;
	/* Most bytes of control-type PDUs queued for a peer that does not
	 * read them; beyond it the connection is terminated. */
	size_t max_queued_control;
};

/* dmtcp_config_default: 256 KiB look-ahead, 1 MiB of queued control. */
void dmtcp_config_default(struct dmtcp_config *cfg, enum iscsi_role role);

/* dmtcp_new: NULL = out of memory. host is borrowed until closed. */
struct dmtcp_conn *dmtcp_new(const struct dmtcp_config *cfg,
			     struct stream_host *host);
/* dmtcp_free: after stream_ops.closed only. */
void dmtcp_free(struct dmtcp_conn *c);

struct dm_conn *dmtcp_dm(struct dmtcp_conn *c);

/* dmtcp_left: after rdma.drained, octets of the peer's that belong to what
 * comes behind the stream mode; borrowed. */
const uint8_t *dmtcp_left(const struct dmtcp_conn *c, size_t *n);

struct dmtcp_stats {
	uint64_t rx_pdus, tx_pdus;
	uint64_t rx_bytes, tx_bytes;	 /* all that the transport moved */
	uint64_t rx_payload, tx_payload; /* bytes of data segments */
	uint64_t copied;  /* payload bytes that went through a buffer of ours */
	uint64_t r2ts;	  /* sent by the target, taken by the initiator */
	uint64_t dropped; /* PDUs without a task, or reported to the role */
	uint64_t digest_errors; /* of headers and of data */
};
const struct dmtcp_stats *dmtcp_stats(const struct dmtcp_conn *c);

/* The driver's side; core is the struct dmtcp_conn. */
extern const struct stream_ops dmtcp_stream_ops;

#endif
