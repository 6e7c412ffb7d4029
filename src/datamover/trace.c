/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.c: one line of the log per PDU. */
#include "datamover/impl.h"

/* The peer, the direction, opcode and ITT, then the fields of the opcode. */
#define LINE(c, way, p, fmt, ...)                                            \
 trace_emit((c)->trace, TRACE_PDU, "%s %s %s itt %08x " fmt "%s", (c)->peer, \
	    way, iscsi_opcode_name((p)->op), (p)->itt, __VA_ARGS__,          \
	    (p)->final ? " F" : "")

static void trace_command(const struct dm_conn *c, const char *way,
			  const struct iscsi_pdu *p)
{
	LINE(c, way, p, "cmdsn %u lun %016llx cdb %02x %s%sedtl %u data %u",
	     p->cmdsn, (unsigned long long)p->lun, p->cmd.cdb[0],
	     p->cmd.read ? "read " : "", p->cmd.write ? "write " : "",
	     p->cmd.edtl, p->dsl);
}

static void trace_data(const struct dm_conn *c, const char *way,
		       const struct iscsi_pdu *p)
{
	LINE(c, way, p, "ttt %08x datasn %u offset %u data %u%s", p->ttt,
	     p->data.datasn, p->data.offset, p->dsl,
	     p->data.status_present ? " S" : "");
}

static void trace_r2t(const struct dm_conn *c, const char *way,
		      const struct iscsi_pdu *p)
{
	LINE(c, way, p, "ttt %08x r2tsn %u offset %u wants %u", p->ttt,
	     p->r2t.r2tsn, p->r2t.offset, p->r2t.ddtl);
}

static void trace_response(const struct dm_conn *c, const char *way,
			   const struct iscsi_pdu *p)
{
	LINE(c, way, p,
	     "statsn %u response %02x status %02x resid %u flags %02x data %u",
	     p->statsn, p->rsp.response, p->rsp.status, p->rsp.resid,
	     p->rsp.resid_flags, p->dsl);
}

static void trace_other(const struct dm_conn *c, const char *way,
			const struct iscsi_pdu *p)
{
	if (iscsi_opcode_from_initiator(p->op))
		LINE(c, way, p, "ttt %08x cmdsn %u expstatsn %u data %u%s",
		     p->ttt, p->cmdsn, p->expstatsn, p->dsl,
		     p->immediate ? " I" : "");
	else
		LINE(c, way, p, "ttt %08x statsn %u window %u..%u data %u",
		     p->ttt, p->statsn, p->expcmdsn, p->maxcmdsn, p->dsl);
}

void dm_trace_header(const struct dm_conn *c, bool out,
		     const uint8_t bhs[ISCSI_BHS_LEN])
{
	const char *way = out ? "out" : "in";
	struct iscsi_pdu p;

	(void)iscsi_bhs_decode(&p, bhs); /* an unknown opcode is traced, too */
	switch (p.op) {
	case ISCSI_SCSI_COMMAND:
		trace_command(c, way, &p);
		break;
	case ISCSI_DATA_IN:
	case ISCSI_DATA_OUT:
		trace_data(c, way, &p);
		break;
	case ISCSI_R2T:
		trace_r2t(c, way, &p);
		break;
	case ISCSI_SCSI_RESPONSE:
		trace_response(c, way, &p);
		break;
	default:
		trace_other(c, way, &p);
		break;
	}
}
