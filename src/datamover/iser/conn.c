/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: an iSER connection: its life, the primitives, the Hello exchange. */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"

/* To Linux, libiscsi and FreeBSD initiators, whatever they declare. */
#define SMALL_DATA 128

/* ---- the end ---- */

/* Returns whether the queue pair is still to be told. */
static bool give_up(struct dmiser_conn *c, int err, const char *why)
{
	if (c->dead)
		return false;
	c->dead = true;
	c->err = err;
	if (c->face->trace)
		trace_emit(c->face->trace, TRACE_PROTOCOL, "%s iSER: %s: %s",
			   c->face->peer ? c->face->peer : "peer", why,
			   err_str(err));
	if (c->face->state < DM_TERMINATING)
		dm_conn_go(c->face, DM_TERMINATING);
	return true;
}

/* [RFC 7145: 10.1.3.3 #2-3] */
void dmiser_die(struct dmiser_conn *c, int err, const char *why)
{
	if (give_up(c, err, why))
		rcap_terminate(c->qp, err, why);
}

void dmiser_die_politely(struct dmiser_conn *c, int err, const char *why)
{
	if (give_up(c, err, why))
		rcap_disconnect(c->qp);
}

void dmiser_task_idle(struct dmiser_conn *c, struct dm_task *t)
{
	struct dmiser_task *p = priv(t);

	if (p->busy)
		return;
	if (p->releasing) {
		p->releasing = false;
		c->face->up->data_completion_notify(c->face, t, DM_RELEASED, 0);
	} else if (c->face->role == ISCSI_INITIATOR) {
		dmiser_late(c, t);
	}
}

/* ---- Hello, §5.1.3 ---- */

/* [RFC 7145: 9.3 #1-4, 9.4 #1] */
static int say_hello(struct dmiser_conn *c, uint8_t opcode, uint16_t depth,
		     bool reject)
{
	const struct iser_header h = { .opcode = opcode,
				       .reject = reject,
				       .max_ver = ISER_PROTO_VERSION,
				       .min_ver = ISER_PROTO_VERSION,
				       .depth = depth };
	struct iser_msg *m = dmiser_msg_new(c, ISER_HEADER_LEN);
	struct rcap_wr *wr;

	if (!m)
		return ERR_NOMEM;
	iser_header_encode(&h, m->iov[0].iov_base);
	m->iov[0].iov_len = m->wr.data.len = ISER_HEADER_LEN;
	wr = &m->wr;
	if (rcap_post(c->qp, &wr, 1)) {
		dmiser_msg_free(c, m);
		return ERR_CLOSED;
	}
	return 0;
}

/* Initiator: it, or nothing, is the first message (§5.1.1). */
/* [RFC 7145: 5.1.1 #2, 5.1.3 #1] */
static void begin_hello(struct dmiser_conn *c)
{
	c->ird = MIN(c->qp->ird, c->cfg.ird);
	if (say_hello(c, ISER_HELLO, c->ird, false))
		dmiser_die(c, ERR_NOMEM, "iSER Hello");
}

/* [RFC 7145: 5.1.2 #9, 5.1.3 #5, 10.1.3.2 #1-2] */
static void hello_in(struct dmiser_conn *c, const struct iser_header *h)
{
	bool overlap = h->min_ver <= ISER_PROTO_VERSION &&
		       h->max_ver >= ISER_PROTO_VERSION;
	bool reject = !overlap || (h->depth > 0 && c->ord == 0);

	c->ord = MIN(c->ord, h->depth);
	c->hello = HELLO_DONE;
	if (say_hello(c, ISER_HELLO_REPLY, c->ord, reject)) {
		dmiser_die(c, ERR_NOMEM, "iSER HelloReply");
		return;
	}
	if (reject) /* it still has to go out */
		dmiser_die_politely(c, ERR_NEGOTIATION,
				    "iSER version or iSER-IRD is not ours "
				    "(RFC 7145 §10.1.3.2)");
	dmiser_send_waiting(c);
}

static void hello_reply_in(struct dmiser_conn *c, const struct iser_header *h)
{
	if (h->reject || h->min_ver != ISER_PROTO_VERSION) {
		dmiser_die(c, ERR_NEGOTIATION,
			   "HelloReply refuses us (RFC 7145 §10.1.3.2)");
		return;
	}
	if (h->depth > c->ird) {
		dmiser_die(c, ERR_FORMAT,
			   "iSER-ORD beyond our iSER-IRD (RFC 7145 §5.1.3)");
		return;
	}
	c->hello = HELLO_DONE;
	dmiser_send_waiting(c);
}

/* Once, first, and at the target where it was not agreed on too (§5.1.3's last
 * paragraph), but never in the middle. */
/* [RFC 7145: 5.1.3 #6] */
static bool hello_now(const struct dmiser_conn *c, uint8_t opcode)
{
	if (c->face->role == ISCSI_INITIATOR)
		return opcode == ISER_HELLO_REPLY && c->hello == HELLO_AWAIT;
	return opcode == ISER_HELLO && c->hello != HELLO_DONE && !c->heard &&
	       c->full_feature;
}

/* [RFC 7145: 10.1.3.4 #1-2] */
void dmiser_hello(struct dmiser_conn *c, const struct iser_header *h,
		  size_t len)
{
	if (!hello_now(c, h->opcode))
		dmiser_die(c, ERR_PROTOCOL,
			   h->opcode == ISER_CONTROL
				   ? "no iSER Hello (RFC 7145 §10.1.3.4)"
				   : "iSER Hello at the wrong time "
				     "(RFC 7145 §10.1.3.4)");
	else if (len != ISER_HEADER_LEN)
		dmiser_die(c, ERR_FORMAT,
			   "a Hello is only a header (RFC 7145 §10.1.3.3)");
	else if (h->opcode == ISER_HELLO)
		hello_in(c, h);
	else
		hello_reply_in(c, h);
}

/* ---- primitives ---- */

/* [RFC 7145: 5.1.1 #3, 5.1.2 #5, 10.1.3.1 #3] */
static int allocate(struct dm_conn *dm, const struct dm_resources *r)
{
	struct dmiser_conn *c = conn_of(dm);

	c->max_recv_dsl = c->params.max_recv_dsl;
	if (dm->role == ISCSI_TARGET) {
		int err = dmiser_target_new(c);

		if (err)
			return err;
	}
	return dmiser_rx_prepare(c, r);
}

/* [RFC 7145: 5.2.2 #5] */
static void deallocate(struct dm_conn *dm)
{
	struct dmiser_conn *c = conn_of(dm);

	if (dm->state != DM_TERMINATED)
		return; /* the receives are posted: closed gives them back */
	dmiser_rx_free(c);
	dmiser_target_free(c);
}

static void enter_full_feature(struct dmiser_conn *c)
{
	c->full_feature = true;
	/* discovery sessions have no RDMAExtensions; their text is whole */
	if (c->face->role == ISCSI_TARGET && rule(c, DMISER_SMALL_PDUS) &&
	    c->params.rdma_extensions)
		c->face->max_control_data = SMALL_DATA;
}

/* [RFC 7145: 6.10 #1] */
static int enable(struct dm_conn *dm, const struct dm_control *final_login)
{
	struct dmiser_conn *c = conn_of(dm);
	int err = 0;

	if (final_login)
		err = dmiser_send_control(dm, NULL, final_login);
	if (err)
		return err;
	enter_full_feature(c);
	if (c->params.iser_hello_required) {
		c->hello = HELLO_AWAIT;
		if (dm->role == ISCSI_INITIATOR)
			begin_hello(c);
	}
	return 0;
}

/* [RFC 7145: 5.2.2 #4] */
static void terminate(struct dm_conn *dm, enum dm_terminate how, int err)
{
	struct dmiser_conn *c = conn_of(dm);

	if (!c->err)
		c->err = err;
	if (how == DM_TERMINATE_AFTER_SENT || !err) {
		rcap_disconnect(c->qp);
		return;
	}
	c->dead = true;
	rcap_terminate(c->qp, err, err_str(err));
}

/* [RFC 5047: 8.8 #1] */
static void notice_keys(struct dm_conn *dm, const struct iscsi_params *p)
{
	struct dmiser_conn *c = conn_of(dm);

	c->params = *p;
}

/* [RFC 7145: 8.3.2 #1] */
static int dealloc_task(struct dm_conn *dm, struct dm_task *t)
{
	struct dmiser_conn *c = conn_of(dm);
	struct dmiser_task *p = priv(t);

	if (dm->role == ISCSI_TARGET)
		dmiser_get_forget(c, t);
	else
		dmiser_forget_stags(c, t);
	if (p->busy == 0)
		return 0;
	p->releasing = true;
	return ERR_AGAIN;
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
};

/* ---- the queue pair's up-calls ---- */

static void heed_cm(struct dmiser_conn *c, const struct rcap_cm *peer)
{
	/* absent bytes stand for 0 on every fabric where they can be read */
	uint8_t flags =
		peer->private_len ? peer->private_data[0] : ISER_CM_NO_SEND_INV;

	c->send_inv = c->qp->send_inv && !(flags & ISER_CM_NO_SEND_INV);
}

static void connect_request(void *arg, const struct rcap_cm *peer)
{
	struct dmiser_conn *c = arg;
	uint8_t cm[DMISER_CM_LEN] = { ISER_CM_NO_ZBVA };
	struct rcap_cm answer = { .ird = c->cfg.ird, .ord = c->cfg.ord };

	if (rule(c, DMISER_CM_HEADER)) {
		heed_cm(c, peer);
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
	if (!rule(c, DMISER_ASK_INVALIDATE))
		c->send_inv = c->qp->send_inv;
	if (c->hello == HELLO_AWAIT && c->face->role == ISCSI_INITIATOR)
		begin_hello(c);
	else
		dmiser_send_waiting(c);
	dmiser_take_early(c);
}

static void wr_done(void *arg, struct rcap_wr *wr, int err)
{
	struct dmiser_conn *c = arg;

	switch ((enum wr_kind)wr->tag) {
	case WR_MSG:
		dmiser_msg_done(c, container_of(wr, struct iser_msg, wr), err);
		break;
	case WR_PUT:
		dmiser_put_done(
			c, task_of(container_of(wr, struct dmiser_task, t.put)),
			err);
		break;
	case WR_READ:
		dmiser_read_done(c, container_of(wr, struct iser_read, wr),
				 err);
		break;
	}
}

/* A line that was lost is news; what a peer did to RDMAP or below, or said in
 * its Terminate, is a warning with its reason. */
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
	struct dm_conn *face = c->face;

	c->dead = true;
	if (err && face->trace && !c->err)
		trace_emit(face->trace, event_of(err), "%s RDMA connection: %s",
			   face->peer ? face->peer : "peer", why);
	dm_conn_go(face, DM_TERMINATED);
	if (face->up)
		face->up->connection_terminate_notify(face,
						      c->err ? c->err : err);
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
	c->face = cfg->face ? cfg->face : &c->dm;
	c->dm.role = cfg->role;
	c->dm.rdma = DM_RDMA_ALREADY;
	dm_conn_take_over(&c->dm, &ops, c, "iser");
	iscsi_params_defaults(&c->params);
	c->max_recv_dsl = LOGIN_DSL;
	list_init(&c->spares);
	list_init(&c->waiting);
	list_init(&c->getq);
	list_init(&c->free_reads);
	list_init(&c->early);
	rcap_set_user(qp, &user, c);
	if (!cfg->face && dmiser_rx_login(c)) {
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
	err = c->face->role == ISCSI_TARGET ? dmiser_target_new(c) : 0;
	if (!err)
		err = dmiser_rx_prepare(c, r);
	if (err)
		return err;
	if (params->iser_hello_required)
		c->hello = HELLO_AWAIT;
	dm_conn_take_over(c->face, &ops, c, "iser");
	enter_full_feature(c);
	return 0;
}

void dmiser_free(struct dmiser_conn *c)
{
	if (!c)
		return;
	dmiser_rx_free(c);
	dmiser_target_free(c);
	dmiser_msgs_drop(c);
	free(c->login_mem);
	free(c);
}

struct dm_conn *dmiser_dm(struct dmiser_conn *c)
{
	return &c->dm;
}

const struct dmiser_stats *dmiser_stats(const struct dmiser_conn *c)
{
	return &c->stats;
}
