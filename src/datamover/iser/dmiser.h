/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmiser.h: the datamover for iSCSI by RDMA: iSER (RFC 7145) on any RCaP
 * (rcap/rcap.h). Both roles, and both ways in: a connection that is in RDMA
 * mode from its first byte, and one that was a byte stream during login.
 */
#ifndef DATAMOVER_ISER_DMISER_H
#define DATAMOVER_ISER_DMISER_H

#include "datamover/datamover.h"
#include "rcap/rcap.h"

struct dmiser_conn;

/*
 * Where RFC 7145 and those who speak it differ (Linux' ib_iser and isert,
 * libiscsi, tgt, FreeBSD): each rule may be kept or not. X(name, bit, text).
 */
#define DMISER_RULES(X)                                                   \
 X(CM_HEADER, 0x01, "four bytes of iSER private data in the CM exchange") \
 X(SOLICITED_VA, 0x02,                                                    \
   "the Write Base Offset is where solicited data begin, "                \
   "whatever TaggedBufferForSolicitedDataOnly says")                      \
 X(SMALL_PDUS, 0x04,                                                      \
   "at most 128 bytes of data in a PDU to an initiator in full feature "  \
   "phase")                                                               \
 X(QUIET_START, 0x08,                                                     \
   "no unexpected PDU to an initiator before its first request")          \
 X(PLAIN_SEND, 0x10, "no Solicited Event on any Send")                    \
 X(ASK_INVALIDATE, 0x20,                                                  \
   "Send with Invalidate only where the CM exchange allows it")

enum dmiser_rule {
#define DMISER_RULE_ENUM(name, bit, text) DMISER_##name = bit,
	DMISER_RULES(DMISER_RULE_ENUM)
#undef DMISER_RULE_ENUM
};

#define DMISER_STRICT 0u    /* RFC 7145 to the letter */
#define DMISER_LINUX  0x3fu /* what the world does */

/* dmiser_rule_name / _text: row i of the table; NULL behind the last. */
const char *dmiser_rule_name(unsigned i);
const char *dmiser_rule_text(unsigned i);

struct dmiser_config {
	enum iscsi_role role;
	unsigned rules; /* DMISER_... */
	/* The connection whose login went over a byte stream and that goes on
	 * here: its role stays attached to it. NULL: RDMA from the start. */
	struct dm_conn *face;
	/* Reads to answer (initiator), to have out (target), at the most. */
	uint16_t ird, ord;
};

/* dmiser_config_default: DMISER_LINUX, no face, 32 Reads. */
void dmiser_config_default(struct dmiser_config *cfg, enum iscsi_role role);

/*
 * dmiser_new takes the queue pair's up-calls; qp is borrowed until its
 * `closed`. Receives for the login are posted at once. A face is taken over
 * by dmiser_take_over. NULL: out of memory.
 */
struct dmiser_conn *dmiser_new(const struct dmiser_config *cfg,
			       struct rcap_qp *qp);
/* dmiser_take_over: from here on the face's primitives lead here. params are
 * what was negotiated, r what Allocate_Connection_Resources said. Returns 0 or
 * ERR_NOMEM, then nothing changed. */
int dmiser_take_over(struct dmiser_conn *c, const struct iscsi_params *params,
		     const struct dm_resources *r);
/* dmiser_free: after the queue pair's closed, or before it ever began. */
void dmiser_free(struct dmiser_conn *c);

struct dm_conn *dmiser_dm(struct dmiser_conn *c);

/* The private data of the CM exchange (IBTA Annex A12): what an active side
 * sends along. */
#define DMISER_CM_LEN 4
void dmiser_cm_request(bool recv_inv, uint8_t p[DMISER_CM_LEN]);

struct dmiser_stats {
	uint64_t rx_pdus, tx_pdus;
	uint64_t rdma_writes, rdma_reads;
	uint64_t write_bytes, read_bytes;
	uint64_t copied; /* bytes of immediate and unsolicited data */
	uint64_t remote_invalidated, invalidated;
};
const struct dmiser_stats *dmiser_stats(const struct dmiser_conn *c);

#endif
