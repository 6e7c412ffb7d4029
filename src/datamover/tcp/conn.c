/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: a connection's life, the primitives, the calls of the driver. */
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/rx_state.h"

/* During the login: one header and the data of one Login PDU. */
#define LOGIN_LOOKAHEAD (ISCSI_BHS_LEN + ISCSI_MAX_AHS_LEN + 16 + 8192)
#define LOGIN_DSL	8192 /* §13.12 */

/* ---- primitives ---- */

static int send_control(struct dm_conn *dm, struct dm_task *t,
			const struct dm_control *ctl)
{
	struct dmtcp_conn *c = dm->impl;

	if (t && ctl->pdu.op == ISCSI_SCSI_COMMAND)
		return dmtcp_send_command(c, t, ctl);
	return dmtcp_queue_control(c, t, ctl, false);
}

static void free_gets(struct dmtcp_conn *c)
{
	free(c->gets.task);
	free(c->gets.next_free);
	c->gets.task = NULL;
	c->gets.next_free = NULL;
	c->gets.n = c->gets.first_free = 0;
}

static void dealloc_resources(struct dm_conn *dm)
{
	free_gets(dm->impl);
}

static int alloc_resources(struct dm_conn *dm, const struct dm_resources *r)
{
	struct dmtcp_conn *c = dm->impl;

	c->resources = *r;
	if (c->gets.task || dm->role == ISCSI_INITIATOR ||
	    c->params.rdma_extensions)
		return 0;
	if (r->max_tasks == 0 || r->max_tasks > 0xffff)
		return ERR_RANGE;
	c->gets.task = calloc(r->max_tasks, sizeof(*c->gets.task));
	c->gets.next_free = calloc(r->max_tasks, sizeof(*c->gets.next_free));
	if (!c->gets.task || !c->gets.next_free) {
		free_gets(c);
		return ERR_NOMEM;
	}
	c->gets.n = r->max_tasks;
	for (uint32_t i = 0; i < c->gets.n; i++)
		c->gets.next_free[i] = (uint16_t)(i + 1);
	return 0;
}

/* A backstore may lend the memory of read data and change it meanwhile, so a
 * data digest is computed over a copy. */
static int prepare_digests(struct dmtcp_conn *c)
{
	if (!c->params.data_digest || c->dm.role == ISCSI_INITIATOR)
		return 0;
	c->digest_copy = malloc(DIGEST_COPY_BYTES);
	return c->digest_copy ? 0 : ERR_NOMEM;
}

/* RFC 7145 §5.1.2: the final response is the last PDU in stream mode. */
/* [RFC 7145: 3.3 #3, 5.1.2 #7-8 #11] [RFC 5047: 8.6 #2] */
/* [RFC 7143: 7.1.4 #1] */
static int leave_stream_mode(struct dmtcp_conn *c,
			     const struct dm_control *final_login)
{
	const struct dmtcp_rdma *rdma = &c->cfg.rdma;
	int err = 0;

	if (!rdma->prepare)
		return ERR_NEGOTIATION; /* the role should not have agreed */
	if (final_login)
		err = dmtcp_queue_control(c, NULL, final_login, false);
	if (!err)
		err = rdma->prepare(rdma->arg, &c->dm, &c->params,
				    &c->resources);
	if (err)
		return err;
	dmtcp_leave_stream(c);
	return 0;
}

/* [RFC 7145: 3.3 #2, 5.1 #2] */
static int enable(struct dm_conn *dm, const struct dm_control *final_login)
{
	struct dmtcp_conn *c = dm->impl;
	int err = prepare_digests(c);

	if (!err && c->params.rdma_extensions)
		return leave_stream_mode(c, final_login);
	if (!err && final_login)
		err = dmtcp_queue_control(c, NULL, final_login, true);
	if (err)
		return err;
	if (!final_login) {
		c->tx_digest.header = c->params.header_digest;
		c->tx_digest.data = c->params.data_digest;
	}
	c->rx_digest.header = c->params.header_digest;
	c->rx_digest.data = c->params.data_digest;
	c->full_feature = true;
	c->recovery.on = c->params.error_recovery_level > 0;
	c->recovery.asked = c->rx_statsn;
	dm->retains = c->recovery.on && dm->role == ISCSI_TARGET;
	c->max_recv_dsl = c->params.max_recv_dsl;
	c->max_send_dsl = c->params.max_send_dsl;
	return 0;
}

static void terminate(struct dm_conn *dm, enum dm_terminate how, int err)
{
	struct dmtcp_conn *c = dm->impl;

	if (!c->err)
		c->err = err;
	if (how == DM_TERMINATE_NOW)
		dmtcp_fail_conn(c, err);
	else
		dmtcp_close_after_sent(c);
}

static void notice_keys(struct dm_conn *dm, const struct iscsi_params *p)
{
	struct dmtcp_conn *c = dm->impl;

	c->params = *p;
	if (c->full_feature) /* §13.12: declared again */
		c->max_send_dsl = p->max_send_dsl;
}

static void forget_task(struct dmtcp_conn *c, struct dm_task *t)
{
	dmtcp_late_free(t);
	dmtcp_repair_forget(c, t);
	dmtcp_order_forget(c, t);
}

static int dealloc_task(struct dm_conn *dm, struct dm_task *t)
{
	struct dmtcp_conn *c = dm->impl;
	struct dmtcp_task *p = tcp_task(t);

	dmtcp_rx_forget(c, t);
	dmtcp_resend_forget(c, t, NULL);
	if (dm->role == ISCSI_TARGET)
		dmtcp_get_abort(c, t);
	else
		forget_task(c, t);
	if (p->node.link.next) /* NULL: t was never queued */
		list_del(&p->node.link);
	if (p->response) { /* it is sent, but not reported */
		p->response->task = NULL;
		p->response = NULL;
	}
	if (p->staged == 0)
		return 0;
	p->releasing = true;
	return ERR_AGAIN;
}

static void resume(struct dm_conn *dm, struct dm_task *t)
{
	struct dmtcp_conn *c = dm->impl;

	if (c->rx.state == RX_HELD && c->rx.task == t)
		dmtcp_rx_resume(c);
}

static void progress(const struct dm_conn *dm, struct dm_progress *p)
{
	const struct dmtcp_conn *c = dm->impl;

	p->in = c->rx.out_bytes;
	p->out = c->stats.tx_bytes;
}

static void rest(struct dm_conn *dm)
{
	struct dmtcp_conn *c = dm->impl;

	c->resting = true;
	dmtcp_spares_free(c);
	dmtcp_rx_rest(c);
	if (c->stage && c->stage->first == c->stage->niov)
		dmtcp_stage_free(c);
}

static const struct dm_ops ops = {
	.send_control = send_control,
	.put_data = dmtcp_put_data,
	.get_data = dmtcp_get_data,
	.allocate_connection_resources = alloc_resources,
	.deallocate_connection_resources = dealloc_resources,
	.enable_datamover = enable,
	.connection_terminate = terminate,
	.notice_key_values = notice_keys,
	.deallocate_task_resources = dealloc_task,
	.resume = resume,
	.progress = progress,
	.rest = rest,
	.snack = dmtcp_snack,
	.retry = dmtcp_retry,
	.is_sending = dmtcp_is_sending,
	.stop_data = dmtcp_stop_data,
	.adopt = dmtcp_adopt,
};

/* ---- calls of the driver ---- */

static xtime deadline_of(const struct dmtcp_conn *c)
{
	if (c->fate == STREAM_FLUSH || c->leaving)
		return c->flush_deadline;
	return c->recovery.deadline;
}

static void expire(void *core, xtime now)
{
	struct dmtcp_conn *c = core;

	c->now = now;
	if (now < deadline_of(c))
		return;
	if (c->fate == STREAM_GO && !c->leaving) {
		if (c->dm.role == ISCSI_TARGET)
			dmtcp_target_expire(c);
		else
			dmtcp_repair_expire(c, dmtcp_answers_missing(c));
		return;
	}
	if (!c->leaving) {
		dmtcp_fail_conn(c, ERR_TIMEOUT);
		return;
	}
	c->fate = STREAM_CLOSE;
	c->err = ERR_TIMEOUT;
}

static void closed(void *core, int err, xtime now)
{
	struct dmtcp_conn *c = core;

	c->now = now;
	c->fate = STREAM_CLOSE;
	dmtcp_rx_go(c, RX_STOPPED);
	dmtcp_tx_drop_all(c);
	dmtcp_late_drop_all(c);
	dmtcp_repair_free_all(c);
	dmtcp_order_free_all(c);
	free(c->rx.collect);
	c->rx.collect = NULL;
	if (c->leaving) { /* the role belongs to the iSER datamover now */
		c->cfg.rdma.closed(c->cfg.rdma.arg, c->err ? c->err : err, now);
		return;
	}
	dm_conn_go(&c->dm, DM_TERMINATED);
	if (c->dm.up)
		c->dm.up->connection_terminate_notify(&c->dm,
						      c->err ? c->err : err);
}

/* The rest of a data segment is on its way, and nothing comes before it. */
static void conn_status(const void *core, struct stream_status *st)
{
	const struct dmtcp_conn *c = core;

	*st = (struct stream_status){ .fate = c->fate,
				      .err = c->err,
				      .sure = c->rx.state == RX_PAYLOAD
						      ? c->rx.left
						      : 0,
				      .deadline = deadline_of(c) };
}

const struct stream_ops dmtcp_stream_ops = {
	.rx_where = dmtcp_rx_where,
	.rx_done = dmtcp_rx_done,
	.tx_what = dmtcp_tx_what,
	.tx_done = dmtcp_tx_done,
	.expire = expire,
	.status = conn_status,
	.closed = closed,
};

/* ---- life ---- */

void dmtcp_config_default(struct dmtcp_config *cfg, enum iscsi_role role)
{
	*cfg = (struct dmtcp_config){ .role = role,
				      .lookahead = 256u << 10,
				      .max_queued_control = 1u << 20 };
}

struct dmtcp_conn *dmtcp_new(const struct dmtcp_config *cfg,
			     struct stream_host *host)
{
	struct dmtcp_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->resting = true;
	c->rx.look_size = LOGIN_LOOKAHEAD;
	c->rx.look = malloc(c->rx.look_size);
	if (!c->rx.look) {
		free(c);
		return NULL;
	}
	c->cfg = *cfg;
	c->host = host;
	c->dm.ops = &ops;
	c->dm.impl = c;
	c->dm.rdma = !cfg->rdma.prepare	  ? DM_RDMA_NO
		     : cfg->rdma.required ? DM_RDMA_REQUIRED
					  : DM_RDMA_POSSIBLE;
	c->dm.role = cfg->role;
	c->dm.transport = "tcp";
	c->dm.may_hold = true;
	iscsi_params_defaults(&c->params);
	c->max_recv_dsl = c->max_send_dsl = LOGIN_DSL;
	list_init(&c->txq);
	list_init(&c->dataq);
	list_init(&c->r2tq);
	list_init(&c->lates);
	list_init(&c->rx.order.sets);
	list_init(&c->recovery.unacked);
	list_init(&c->recovery.awaited);
	list_init(&c->recovery.resends);
	list_init(&c->recovery.early);
	list_init(&c->recovery.repairs);
	c->recovery.deadline = XTIME_NEVER;
	return c;
}

void dmtcp_free(struct dmtcp_conn *c)
{
	if (!c)
		return;
	free_gets(c); /* c->dm may belong to the iSER datamover */
	dmtcp_spares_free(c);
	dmtcp_stage_free(c);
	free(c->digest_copy);
	free(c->rx.look);
	free(c);
}

struct dm_conn *dmtcp_dm(struct dmtcp_conn *c)
{
	return &c->dm;
}

const uint8_t *dmtcp_left(const struct dmtcp_conn *c, size_t *n)
{
	*n = c->rx.tail - c->rx.head;
	return c->rx.look + c->rx.head;
}

const struct dmtcp_stats *dmtcp_stats(const struct dmtcp_conn *c)
{
	return &c->stats;
}
