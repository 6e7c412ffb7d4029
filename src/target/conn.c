/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: a connection as all other files see it: its state, sending, ending. */
#include "base/err.h"
#include "target/internal.h"

struct tgt_visitor tgt_conn_visitor(const struct tgt_conn *c,
				    const struct iscsi_login_id *id)
{
	return (struct tgt_visitor){
		.initiator = id->initiator_name,
		.account = c->session ? c->session->login.account : "",
		.address = c->info.address,
		.portal_group = c->info.portal_group
	};
}

const char *tgt_conn_who(const struct tgt_conn *c)
{
	return c->session ? c->session->id.initiator_name : "(login)";
}

struct trace_about tgt_conn_about(const struct tgt_conn *c)
{
	const struct iscsi_login_id *id =
		c->session ? &c->session->id : c->login_id;

	return (struct trace_about){
		.peer = c->info.peer,
		.initiator = id ? id->initiator_name : NULL,
		.target = id ? id->target_name : NULL,
	};
}

void tgt_conn_go(struct tgt_conn *c, enum iscsi_conn_state next)
{
	if (trace_wanted(c->worker->tgt->cfg.trace, TRACE_LEVEL_DEBUG))
		conn_trace(c, TRACE_STATE, "%s -> %s (%s)",
			   iscsi_conn_state_str(c->state),
			   iscsi_conn_state_str(next),
			   iscsi_conn_transition(ISCSI_TARGET, c->state, next));
	iscsi_conn_go(ISCSI_TARGET, &c->state, next);
}

void tgt_conn_end(struct tgt_conn *c, enum dm_terminate how, int err)
{
	if (c->closing && how != DM_TERMINATE_NOW)
		return;
	c->closing = true;
	/* clock.c limits how long a peer may take to read what is queued */
	c->deadline = 0;
	tgt_due_changed(c);
	dm_connection_terminate(c->dm, how, err);
}

void tgt_conn_fail(struct tgt_conn *c, int err, const char *why)
{
	if (!tgt_conn_open(c))
		return;
	conn_trace(c, TRACE_PROTOCOL, "%s: %s; connection dropped", why,
		   err_str(err));
	tgt_conn_end(c, DM_TERMINATE_NOW, err);
}

/* [RFC 7145: 8.1.2 #2-3] */
int tgt_conn_send(struct tgt_conn *c, struct dm_control *ctl)
{
	int err;

	if (!tgt_conn_open(c))
		return 0;
	ctl->pdu.statsn = c->numbers.statsn++;
	err = dm_send_control(c->dm, NULL, ctl);
	if (err == ERR_BUSY) {
		/* RFC 7145 §8.1.2: no PDU, not even a Reject, is sent beyond
		 * the number that the initiator has room for */
		c->numbers.statsn--;
		conn_trace(c, TRACE_PROTOCOL,
			   "%s withheld: MaxOutstandingUnexpectedPDUs",
			   iscsi_opcode_name(ctl->pdu.op));
	} else if (err) {
		tgt_conn_fail(c, err, iscsi_opcode_name(ctl->pdu.op));
	}
	return 0;
}

uint32_t tgt_conn_data_max(const struct tgt_conn *c)
{
	uint32_t most = c->params.max_send_dsl;

	return c->dm->max_control_data ? MIN(most, c->dm->max_control_data)
				       : most;
}
