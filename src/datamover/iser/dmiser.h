/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmiser.h: the datamover for iSER (RFC 7145) on any RCaP (rcap/rcap.h), for
 * both roles. A connection is in RDMA mode from its first byte, or was a byte
 * stream during the login.
 */
#ifndef DATAMOVER_ISER_DMISER_H
#define DATAMOVER_ISER_DMISER_H

#include "base/stream.h"
#include "datamover/datamover.h"
#include "rcap/rcap.h"

struct dmiser_conn;

/*
 * Rules for the points in which other implementations (Linux' ib_iser and
 * isert, libiscsi, tgt, FreeBSD) differ from RFC 7145; each one can be switched
 * on or off. A key of RFC 7145 §6 that the peer declares overrides the rule.
 * X(name, bit, text).
 */
#define DMISER_RULES(X)                                                   \
 X(CM_HEADER, 0x01, "four bytes of iSER private data in the CM exchange") \
 X(SOLICITED_VA, 0x02,                                                    \
   "the Write Base Offset is where solicited data begin, unless "         \
   "TaggedBufferForSolicitedDataOnly is declared")                        \
 X(SMALL_PDUS, 0x04,                                                      \
   "at most 128 bytes of data in a PDU to an initiator in full feature "  \
   "phase, unless it declares a key that RFC 7145 added")                 \
 X(QUIET_START, 0x08,                                                     \
   "no unexpected PDU to an initiator before its first request, unless "  \
   "MaxOutstandingUnexpectedPDUs is declared")                            \
 X(PLAIN_SEND, 0x10, "no Solicited Event on any Send")                    \
 X(ASK_INVALIDATE, 0x20,                                                  \
   "Send with Invalidate only where the CM exchange allows it")           \
 X(PEER_CLOSES, 0x40,                                                     \
   "after its Logout an initiator has 15 s to close the connection, "     \
   "before the target does")

enum dmiser_rule {
#define DMISER_RULE_ENUM(name, bit, text) DMISER_##name = bit,
	DMISER_RULES(DMISER_RULE_ENUM)
#undef DMISER_RULE_ENUM
};

#define DMISER_STRICT 0u    /* RFC 7145 without deviation */
#define DMISER_LINUX  0x7fu /* as other implementations do */

/* dmiser_rule_name and dmiser_rule_text return a column of row i; NULL after
 * the last row. */
const char *dmiser_rule_name(unsigned i);
const char *dmiser_rule_text(unsigned i);

struct dmiser_config {
	enum iscsi_role role;
	unsigned rules; /* DMISER_... */
	/* The connection that was a byte stream during the login; its role
	 * stays attached to it. NULL: RDMA mode from the first byte. */
	struct dm_conn *stream_dm;
	/* The most RDMA Reads at once: to answer (initiator, ird), to issue
	 * (target, ord). */
	uint16_t ird, ord;
	/* whose time control PDUs use, borrowed as qp is; NULL: their time is not counted */
	struct stream_host *host;
};

/* dmiser_config_default: DMISER_LINUX, no stream_dm, 32 Reads. */
void dmiser_config_default(struct dmiser_config *cfg, enum iscsi_role role);

/*
 * dmiser_new copies cfg and becomes the user of qp, which is borrowed until its
 * `closed`. Without stream_dm it posts the receive of the login. NULL: out of
 * memory.
 */
struct dmiser_conn *dmiser_new(const struct dmiser_config *cfg,
			       struct rcap_qp *qp);
/* dmiser_take_over makes the primitives of stream_dm those of c, and begins the
 * full feature phase. params: the negotiated values; r: as in
 * Allocate_Connection_Resources. Returns 0, or ERR_NOMEM and changes
 * nothing. */
int dmiser_take_over(struct dmiser_conn *c, const struct iscsi_params *params,
		     const struct dm_resources *r);
/* dmiser_free frees c after the queue pair's `closed`, or before the queue pair
 * begins; c may be NULL. */
void dmiser_free(struct dmiser_conn *c);

/* dmiser_dm returns the part of c that the role uses, if there is no
 * stream_dm. */
struct dm_conn *dmiser_dm(struct dmiser_conn *c);

/* dmiser_cm_request writes the private data that an active side sends in the CM
 * exchange (IBTA Annex A12). recv_inv: the peer may use Send with
 * Invalidate. */
#define DMISER_CM_LEN 4
void dmiser_cm_request(bool recv_inv, uint8_t p[DMISER_CM_LEN]);

struct dmiser_stats {
	uint64_t rx_pdus, tx_pdus;
	uint64_t rdma_writes, rdma_reads;
	uint64_t acks; /* zero-length RDMA Reads for the A bit */
	uint64_t write_bytes, read_bytes;
	uint64_t copied; /* bytes of immediate and unsolicited data that were
			  * not used where they were received */
	uint64_t remote_invalidated, invalidated; /* STags, by whom */
};
/* dmiser_stats returns the counters, which are borrowed from c. */
const struct dmiser_stats *dmiser_stats(const struct dmiser_conn *c);

#endif
