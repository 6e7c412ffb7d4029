/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: a connection's life, the primitives, the up-calls of the queue
 * pair. */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"

/* The data that Linux, libiscsi and FreeBSD initiators accept in a PDU,
 * although they declare more. */
#define SMALL_DATA 128
/* How long an initiator may take to close the connection after its Logout: as LIO. */
#define PARTING_TIME (15 * XTIME_S)

/* ---- primitives ---- */

/* [RFC 7145: 5.1.1 #3, 5.1.2 #5, 10.1.3.1 #3] */
static int allocate(struct dm_conn *dm, const struct dm_resources *r)
{
	struct dmiser_conn *c = dm->impl;

	c->max_recv_dsl = c->params.max_recv_dsl;
	return dmiser_recv_prepare(c, r);
}

/* [RFC 7145: 5.2.2 #5] */
static void deallocate(struct dm_conn *dm)
{
	struct dmiser_conn *c = dm->impl;

	if (dm->state != DM_TERMINATED || c->end.parting)
		return; /* the queue pair uses the receives until `closed` */
	dmiser_recv_free(c);
	dmiser_reads_free(c);
}

static void enter_full_feature(struct dmiser_conn *c)
{
	c->full_feature = true;
	/* RFC 7145 §10.2.1: level 1 has nothing to send again */
	c->dm->retains = c->dm->role == ISCSI_TARGET &&
			 c->params.error_recovery_level == 2;
	/* not in discovery sessions, which have no RDMAExtensions: their text
	 * is longer */
	if (c->dm->role == ISCSI_TARGET && has_rule(c, DMISER_SMALL_PDUS) &&
	    c->params.rdma_extensions && !dmiser_speaks_rfc7145(c))
		c->dm->max_control_data = SMALL_DATA;
}

/* [RFC 7145: 6.10 #1] */
static int enable(struct dm_conn *dm, const struct dm_control *final_login)
{
	struct dmiser_conn *c = dm->impl;
	int err = 0;

	if (final_login)
		err = dmiser_send_control(dm, NULL, final_login);
	if (err)
		return err;
	enter_full_feature(c);
	if (c->params.iser_hello_required) {
		c->hello = HELLO_AWAIT;
		if (dm->role == ISCSI_INITIATOR)
			dmiser_hello_begin(c);
	}
	return 0;
}

/* Linux reports a connection that the target closes first as lost (connection error
 * 1011), even after the Logout Response. RFC 7145 §5.2.2 leaves open when the target
 * requests the end. A connection that has no response to send closes at once. */
static bool may_part(const struct dmiser_conn *c)
{
	return has_rule(c, DMISER_PEER_CLOSES) && c->end.logouts &&
	       !c->reads_out;
}

/* The role no longer needs the connection, and nothing that comes is processed. The queue
 * pair stays until the initiator closes it, or PARTING_TIME has passed. */
static void part(struct dmiser_conn *c)
{
	c->ended = true;
	dm_conn_go(c->dm, DM_TERMINATED);
	c->dm->up->connection_terminate_notify(c->dm, c->end.err);
}

/* [RFC 7145: 5.2.2 #4] */
static void terminate(struct dm_conn *dm, enum dm_terminate how, int err)
{
	struct dmiser_conn *c = dm->impl;

	if (!c->end.err)
		c->end.err = err;
	if (how == DM_TERMINATE_LOGGED_OUT && may_part(c)) {
		c->end.parting = true;
		rcap_disconnect_after(c->qp, PARTING_TIME);
		return;
	}
	if (how != DM_TERMINATE_NOW || !err) {
		rcap_disconnect(c->qp);
		return;
	}
	c->ended = true;
	rcap_terminate(c->qp, err, err_str(err));
}

/* [RFC 5047: 8.8 #1] */
static void notice_keys(struct dm_conn *dm, const struct iscsi_params *p)
{
	struct dmiser_conn *c = dm->impl;

	c->params = *p;
}

/* [RFC 7145: 8.3.2 #1] */
static int dealloc_task(struct dm_conn *dm, struct dm_task *t)
{
	struct dmiser_conn *c = dm->impl;
	struct dmiser_task *p = iser_task(t);

	if (dm->role == ISCSI_TARGET)
		dmiser_get_abort(c, t);
	else
		dmiser_forget_stags(c, t);
	if (p->busy == 0)
		return 0;
	p->releasing = true;
	return ERR_AGAIN;
}

/* Unsolicited data are in a receive already: dm_conn.may_hold is not set. */
static void resume(struct dm_conn *dm, struct dm_task *t)
{
	(void)dm;
	(void)t;
}

static void progress(const struct dm_conn *dm, struct dm_progress *p)
{
	const struct dmiser_conn *c = dm->impl;

	p->in = c->bytes_in;
	p->out = c->bytes_out + c->qp->sent;
}

static void rest(struct dm_conn *dm)
{
	struct dmiser_conn *c = dm->impl;

	dmiser_spares_free(c);
	if (c->reads_out == 0)
		dmiser_reads_free(c);
	rcap_rest(c->qp);
	if (!list_linked(&c->recv.login.link)) { /* not posted any more */
		free(c->recv.login_mem);
		c->recv.login_mem = NULL;
	}
}

/* RFC 7145 §7.3.11: the role rejects a SNACK. */
static int snack(struct dm_conn *dm, const struct iscsi_pdu *p, uint32_t *next)
{
	(void)dm;
	(void)p;
	(void)next;
	return ERR_UNSUPPORTED;
}

/* RFC 7145 §10.2.1: no PDU is lost, and none is sent again. */
static int retry(struct dm_conn *dm, struct dm_task *t)
{
	(void)dm;
	(void)t;
	return ERR_UNSUPPORTED;
}

/* The target reads the data when it needs them. */
static bool is_sending(const struct dm_conn *dm, struct dm_task *t)
{
	(void)dm;
	(void)t;
	return true;
}

static const struct dm_ops ops = {
	.send_control = dmiser_send_control,
	.put_data = dmiser_put_data,
	.get_data = dmiser_get_data,
	.allocate_connection_resources = allocate,
	.deallocate_connection_resources = deallocate,
	.enable_datamover = enable,
	.connection_terminate = terminate,
	.notice_key_values = notice_keys,
	.deallocate_task_resources = dealloc_task,
	.resume = resume,
	.progress = progress,
	.rest = rest,
	.snack = snack,
	.retry = retry,
	.is_sending = is_sending,
	.adopt = dmiser_adopt,
};

/* ---- the queue pair's up-calls ---- */

static void take_cm_flags(struct dmiser_conn *c, const struct rcap_cm *peer)
{
	/* missing private data: no support for Send with Invalidate */
	uint8_t flags =
		peer->private_len ? peer->private_data[0] : ISER_CM_NO_SEND_INV;

	c->send_inv = c->qp->send_inv && !(flags & ISER_CM_NO_SEND_INV);
}

static void connect_request(void *arg, const struct rcap_cm *peer)
{
	struct dmiser_conn *c = arg;
	uint8_t cm[DMISER_CM_LEN] = { ISER_CM_NO_ZBVA };
	struct rcap_cm answer = { .ird = c->cfg.ird, .ord = c->cfg.ord };

	if (has_rule(c, DMISER_CM_HEADER)) {
		take_cm_flags(c, peer);
		if (!c->send_inv)
			cm[0] |= ISER_CM_NO_SEND_INV;
		answer.private_data = cm;
		answer.private_len = sizeof(cm);
	}
	rcap_accept(c->qp, &answer);
}

/* [RFC 7145: 5.1.1 #5, 5.1.3 #2, 6.10 #2] */
static void established(void *arg, const struct rcap_cm *peer)
{
	struct dmiser_conn *c = arg;

	(void)peer;
	c->established = true;
	c->ord = MIN(c->qp->ord, c->cfg.ord);
	if (!has_rule(c, DMISER_ASK_INVALIDATE))
		c->send_inv = c->qp->send_inv;
	if (c->hello == HELLO_AWAIT && c->dm->role == ISCSI_INITIATOR)
		dmiser_hello_begin(c);
	else
		dmiser_send_waiting(c);
	dmiser_take_early(c);
}

static void msg_done(struct dmiser_conn *c, struct iser_msg *m, int err)
{
	struct dm_task *t = m->task;
	enum msg_kind kind = m->kind;
	size_t len = m->wr.data.len;

	dmiser_msg_free(c, m);
	if (kind == MSG_LOGOUT && --c->end.logouts == 0 && c->end.parting &&
	    !err)
		part(c);
	if (!t)
		return;
	iser_task(t)->busy--;
	if (err)
		return; /* Connection_Terminate_Notify follows */
	if (kind == MSG_RESPONSE)
		dmiser_response_sent(c, t);
	else if (kind == MSG_DATA || kind == MSG_LAST_DATA)
		dmiser_put_part_done(c, t, len, kind == MSG_LAST_DATA);
	else if (iser_task(t)->releasing)
		dmiser_report_released(c, t);
	else if (!iser_task(t)->busy)
		dmiser_late(c, t);
}

static void wr_done(void *arg, struct rcap_wr *wr, int err)
{
	struct dmiser_conn *c = arg;

	switch ((enum wr_kind)wr->tag) {
	case WR_MSG:
		msg_done(c, container_of(wr, struct iser_msg, wr), err);
		break;
	case WR_PUT:
		dmiser_put_done(c,
				dm_task_of_share(container_of(
					wr, struct dmiser_task, t.put)),
				err);
		break;
	case WR_READ:
		dmiser_read_done(c, container_of(wr, struct iser_read, wr),
				 err);
		break;
	case WR_ACK:
		dmiser_ack_done(c, container_of(wr, struct iser_read, wr), err);
		break;
	}
}

/* A lost connection is information; a violation of RDMAP or a lower protocol,
 * or a Terminate of the peer, is a warning. */
static enum trace_event event_of(int err)
{
	bool lost = err == ERR_RESET || err == ERR_CLOSED || err == ERR_TIMEOUT;

	return lost ? TRACE_RDMA : TRACE_TERMINATE;
}

/* [RFC 7145: 3.2.4 #1, 5.2.1 #3, 5.2.3.1 #1-3, 5.2.3.2 #1-4, 10.1.1.2
 * #1-2, 10.1.2.1 #1-2, 10.1.2.2 #1-2, 10.1.3.3 #4-5] [RFC 5047: 9.2 #2] */
static void closed(void *arg, int err, const char *why)
{
	struct dmiser_conn *c = arg;
	struct dm_conn *dm = c->dm;

	c->ended = true;
	c->end.parting = false;
	if (dm->state == DM_TERMINATED) /* reported by part() */
		return;
	if (err && dm->trace && !c->end.err)
		trace_emit(dm->trace, event_of(err), "%s RDMA connection: %s",
			   dm->peer ? dm->peer : "peer", why);
	dm_conn_go(dm, DM_TERMINATED);
	if (dm->up)
		dm->up->connection_terminate_notify(dm, c->end.err ? c->end.err
								   : err);
}

static const struct rcap_user user = {
	.connect_request = connect_request,
	.established = established,
	.wr_done = wr_done,
	.received = dmiser_received,
	.closed = closed,
};

/* ---- life ---- */

/* [RFC 7145: 3.1 #1] [RFC 5047: 8 #1] */
struct dmiser_conn *dmiser_new(const struct dmiser_config *cfg,
			       struct rcap_qp *qp)
{
	struct dmiser_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->cfg = *cfg;
	c->qp = qp;
	c->dm = cfg->stream_dm ? cfg->stream_dm : &c->own_dm;
	c->own_dm.role = cfg->role;
	c->own_dm.rdma = DM_RDMA_ALREADY;
	dm_conn_take_over(&c->own_dm, &ops, c, "iser");
	iscsi_params_defaults(&c->params);
	c->max_recv_dsl = LOGIN_DSL;
	list_init(&c->spares);
	list_init(&c->waiting);
	list_init(&c->getq);
	list_init(&c->unacked);
	list_init(&c->free_reads.list);
	list_init(&c->early);
	rcap_set_user(qp, &user, c);
	if (!cfg->stream_dm && dmiser_recv_login(c)) {
		free(c);
		return NULL;
	}
	return c;
}

int dmiser_take_over(struct dmiser_conn *c, const struct iscsi_params *params,
		     const struct dm_resources *r)
{
	int err;

	c->params = *params;
	c->max_recv_dsl = params->max_recv_dsl;
	err = dmiser_recv_prepare(c, r);
	if (err)
		return err;
	if (params->iser_hello_required)
		c->hello = HELLO_AWAIT;
	dm_conn_take_over(c->dm, &ops, c, "iser");
	enter_full_feature(c);
	return 0;
}

void dmiser_free(struct dmiser_conn *c)
{
	if (!c)
		return;
	dmiser_recv_free(c);
	dmiser_reads_free(c);
	dmiser_msgs_free(c);
	free(c->recv.login_mem);
	free(c);
}

struct dm_conn *dmiser_dm(struct dmiser_conn *c)
{
	return &c->own_dm;
}

const struct dmiser_stats *dmiser_stats(const struct dmiser_conn *c)
{
	return &c->stats;
}
