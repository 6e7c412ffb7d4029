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
