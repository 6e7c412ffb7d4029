/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impl.h: what the implementations of the Datamover Interface (datamover/tcp,
 * datamover/iser) share. Roles include datamover.h only.
 */
#ifndef DATAMOVER_IMPL_H
#define DATAMOVER_IMPL_H

#include "base/bytes.h"
#include "datamover/datamover.h"

/* dm_conn_go is the only function that changes a connection's state. It
 * asserts that the transition exists. */
void dm_conn_go(struct dm_conn *c, enum dm_state next);

/* dm_conn_take_over makes another implementation serve c: the role keeps its
 * struct dm_conn when a byte stream goes on in RDMA mode. */
void dm_conn_take_over(struct dm_conn *c, const struct dm_ops *ops, void *impl,
		       const char *transport);

/* dm_task_share returns the memory in t that belongs to the implementation,
 * DM_TASK_PRIVATE bytes; dm_task_of_share returns the task that has it. */
static inline void *dm_task_share(struct dm_task *t)
{
	return t->priv;
}

static inline struct dm_task *dm_task_of_share(void *share)
{
	return container_of((unsigned char *)share, struct dm_task, priv);
}

/*
 * dm_check_unsolicited (target) checks what a SCSI Command brings along (RFC
 * 7143 §11.3.4, §13.10, §13.11). Returns 0, ERR_PROTOCOL (data that were not
 * negotiated) or ERR_SEQUENCE (more data than allowed).
 */
int dm_check_unsolicited(const struct iscsi_params *k,
			 const struct iscsi_pdu *p);

/* dm_acknowledges (target) returns whether the ExpStatSN of p is that of the connection on
 * which p came. The ExpStatSN of a Logout of one connection is that of the connection to
 * be closed, which may be another one (RFC 7143 §11.14.4). */
static inline bool dm_acknowledges(const struct iscsi_pdu *p)
{
	return p->op != ISCSI_LOGOUT_REQUEST ||
	       p->logout.reason == ISCSI_LOGOUT_SESSION;
}

/* dm_set_numbers sets the numbers of a control-type PDU that hold at this moment,
 * except StatSN and CmdSN, which the role has set. */
static inline void dm_set_numbers(const struct dm_conn *c, struct iscsi_pdu *p)
{
	const struct iscsi_numbers *n = c->numbers;

	if (c->role == ISCSI_INITIATOR) {
		p->expstatsn = n->expstatsn;
		return;
	}
	p->expcmdsn = n->expcmdsn;
	p->maxcmdsn = n->maxcmdsn;
}

/* The tags of a sequence of Data-Outs; ttt 0xffffffff: unsolicited. */
struct dm_data_tags {
	uint32_t itt, ttt;
	bool valid;
};

#define DM_ABORTED_MAX 64

/* Data-Outs without a task: sequences that an abort left open, and the last
 * sequence that was rejected. */
struct dm_strays {
	struct dm_data_tags aborted[DM_ABORTED_MAX], rejected;
	unsigned naborted; /* since the connection began */
	/* More sequences were open than `aborted` has room for. From then on no
	 * Data-Out is rejected, since it may belong to one of them (RFC 7143
	 * §4.2.3.4 c). */
	bool forgot;
};

/* dm_stray_aborted (target) notes that an abort left the sequence with these
 * tags open: the initiator may have sent its data before it received the
 * response to the abort. */
void dm_stray_aborted(struct dm_strays *s, uint32_t itt, uint32_t ttt);

/* dm_stray_check (target) returns the error to report for p, a Data-Out that
 * belongs to no open sequence: ERR_NOT_FOUND, or 0 if p belongs to a sequence
 * that was aborted, or that was reported already. */
int dm_stray_check(struct dm_strays *s, const struct iscsi_pdu *p);

/* dm_trace_pdu traces a header that was received, or that is sent (out), if
 * the trace has the debug level. */
void dm_trace_header(const struct dm_conn *c, bool out,
		     const uint8_t bhs[ISCSI_BHS_LEN]);
static inline void dm_trace_pdu(const struct dm_conn *c, bool out,
				const uint8_t bhs[ISCSI_BHS_LEN])
{
	if (trace_wanted(c->trace, TRACE_LEVEL_DEBUG))
		dm_trace_header(c, out, bhs);
}

#endif
