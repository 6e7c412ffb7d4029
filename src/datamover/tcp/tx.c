/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tx.c: the stage. When the driver asks for bytes, as many queued PDUs as fit
 * are encoded at once: headers into the stage, payload by reference, so that
 * a turn's output is one vectored send. Numbers (ExpCmdSN, ...) are those of
 * that moment.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "datamover/tcp/internal.h"

/* ---- one PDU into the stage ---- */

static void add_iov(struct stage *s, const void *base, size_t len)
{
	s->iov[s->niov].iov_base = (void *)(uintptr_t)base;
	s->iov[s->niov++].iov_len = len;
	s->bytes += len;
}

bool dmtcp_stage_has_room(const struct dmtcp_conn *c, const struct bufv *data,
			  uint32_t unstable)
{
	const struct stage *s = c->stage;
	/* header, AHS, header digest, trailer */
	unsigned iovs = 4 + (data ? data->n : 0);

	return s->npdus < STAGE_PDUS && s->niov + iovs <= STAGE_IOVS &&
	       s->bytes < STAGE_BYTES &&
	       (!c->tx_data_digest ||
		unstable <= DIGEST_COPY_BYTES - s->copied);
}

/* The CRC of read data that another command may change meanwhile: copied,
 * so that what is summed is what is sent. */
static uint32_t copy_data(struct dmtcp_conn *c, const struct bufv *data,
			  size_t off, uint32_t len)
{
	struct stage *s = c->stage;
	uint8_t *to = s->copy + s->copied;
	struct iovec piece[16];
	uint32_t crc = CRC32C_SEED;
	size_t done = 0;
	unsigned n;

	while (done < len) {
		if (!bufv_slice(data, off + done, len - done, piece, 16, &n))
			break;
		for (unsigned i = 0; i < n; i++) {
			crc = crc32c_copy(crc, to + done, piece[i].iov_base,
					  piece[i].iov_len);
			done += piece[i].iov_len;
		}
	}
	add_iov(s, to, len);
	s->copied += len;
	c->stats.copied += len;
	return crc;
}

static uint32_t refer_to_data(struct dmtcp_conn *c, const struct bufv *data,
			      size_t off, uint32_t len)
{
	struct stage *s = c->stage;
	unsigned n;

	bufv_slice(data, off, len, s->iov + s->niov, STAGE_IOVS - s->niov, &n);
	s->niov += n;
	s->bytes += len;
	return c->tx_data_digest ? bufv_crc32c(data, off, len, CRC32C_SEED) : 0;
}

static void stage_data(struct dmtcp_conn *c, struct stage_pdu *p,
		       const struct bufv *data, size_t off, uint32_t len,
		       bool unstable)
{
	size_t pad = round_up4(len) - len, n = pad;
	uint32_t crc;

	if (c->tx_data_digest && unstable)
		crc = copy_data(c, data, off, len);
	else
		crc = refer_to_data(c, data, off, len);
	memset(p->trailer, 0, pad);
	if (c->tx_data_digest) {
		crc = crc32c_update(crc, p->trailer, pad);
		put_le32(p->trailer + pad, crc32c_wire(crc));
		n += ISCSI_DIGEST_LEN;
	}
	if (n)
		add_iov(c->stage, p->trailer, n);
	c->stats.tx_payload += len;
}

struct stage_pdu *dmtcp_stage_pdu(struct dmtcp_conn *c,
				  const uint8_t bhs[ISCSI_BHS_LEN],
				  const uint8_t *ahs, size_t ahs_len,
				  const struct bufv *data, size_t off,
				  uint32_t len, bool unstable)
{
	struct stage *s = c->stage;
	struct stage_pdu *p = &s->pdus[s->npdus++];
	uint32_t crc;

	dm_trace_pdu(&c->dm, true, bhs);
	memcpy(p->header, bhs, ISCSI_BHS_LEN);
	p->task = NULL;
	p->control = NULL;
	p->notify = false;
	add_iov(s, p->header, ISCSI_BHS_LEN);
	if (ahs_len)
		add_iov(s, ahs, ahs_len);
	if (c->tx_header_digest) {
		crc = crc32c_update(CRC32C_SEED, bhs, ISCSI_BHS_LEN);
		crc = crc32c_update(crc, ahs, ahs_len);
		put_le32(p->header + ISCSI_BHS_LEN, crc32c_wire(crc));
		if (ahs_len)
			add_iov(s, p->header + ISCSI_BHS_LEN, ISCSI_DIGEST_LEN);
		else {
			s->iov[s->niov - 1].iov_len += ISCSI_DIGEST_LEN;
			s->bytes += ISCSI_DIGEST_LEN;
		}
	}
	if (len)
		stage_data(c, p, data, off, len, unstable);
	p->iov_end = s->niov;
	c->stats.tx_pdus++;
	return p;
}

void dmtcp_stage_task(struct stage_pdu *p, struct dm_task *t)
{
	p->task = t;
	priv(t)->staged++;
}

/* ---- control PDUs ---- */

static struct dmtcp_control *new_control(struct dmtcp_conn *c, size_t bytes)
{
	struct dmtcp_control *q = c->spares;
	size_t room = MAX(bytes, (size_t)CONTROL_BYTES);

	if (q && bytes <= CONTROL_BYTES) {
		c->spares = q->next_spare;
		c->nspares--;
		return q;
	}
	q = malloc(sizeof(*q) + room);
	if (q)
		q->size = sizeof(*q) + room;
	return q;
}

static void free_control(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	c->queued_control -= q->size;
	if (q->size > sizeof(*q) + CONTROL_BYTES ||
	    c->nspares == CONTROL_SPARES_MAX) {
		free(q);
		return;
	}
	q->next_spare = c->spares;
	c->spares = q;
	c->nspares++;
}

void dmtcp_spares_free(struct dmtcp_conn *c)
{
	while (c->spares) {
		struct dmtcp_control *q = c->spares;

		c->spares = q->next_spare;
		free(q);
	}
	c->nspares = 0;
}

int dmtcp_queue_control(struct dmtcp_conn *c, struct dm_task *t,
			const struct dm_control *ctl, bool final_login)
{
	size_t bytes = (size_t)ctl->pdu.ahs_len + ctl->pdu.dsl;
	struct dmtcp_control *q;

	if (ctl->pdu.dsl > c->max_send_dsl)
		return ERR_TOO_LONG;
	if (sizeof(*q) + MAX(bytes, (size_t)CONTROL_BYTES) >
	    c->cfg.max_queued_control - c->queued_control) {
		dmtcp_die(c, ERR_LIMIT); /* a peer that does not read */
		return ERR_LIMIT;
	}
	q = new_control(c, bytes);
	if (!q)
		return ERR_NOMEM;
	q->node.kind = TX_CONTROL;
	q->task = t;
	q->is_final_login = final_login;
	q->pdu = ctl->pdu;
	q->ahs_len = ctl->pdu.ahs_len;
	if (ctl->pdu.ahs_len)
		memcpy(q->bytes, ctl->ahs, ctl->pdu.ahs_len);
	if (ctl->pdu.dsl)
		memcpy(q->bytes + q->ahs_len, ctl->data, ctl->pdu.dsl);
	if (t)
		priv(t)->response = q;
	c->queued_control += q->size;
	list_push_back(&c->txq, &q->node.link);
	dmtcp_kick(c);
	return 0;
}

static void digests_begin(struct dmtcp_conn *c)
{
	c->tx_header_digest = c->params.header_digest;
	c->tx_data_digest = c->params.data_digest;
}

/* Whether this response takes a StatSN: all but R2T (§11.8.3) and the NOP-In
 * that no NOP-Out asked for (§11.19.2). */
static bool takes_statsn(const struct iscsi_pdu *p)
{
	return p->op != ISCSI_NOP_IN || p->itt != ISCSI_RESERVED_TAG;
}

static void stamp(struct dmtcp_conn *c, struct iscsi_pdu *p)
{
	const struct iscsi_numbers *n = c->dm.numbers;

	if (c->dm.role == ISCSI_INITIATOR) {
		p->expstatsn = n->expstatsn;
		return;
	}
	p->expcmdsn = n->expcmdsn;
	p->maxcmdsn = n->maxcmdsn;
	if (takes_statsn(p))
		c->tx_statsn = p->statsn + 1;
}

/* §11.4.8: the Data-Ins that went before; no R2T is counted. */
static void stamp_response(struct dmtcp_control *q)
{
	q->pdu.rsp.exp_datasn =
		q->pdu.rsp.response ? 0 : priv(q->task)->t.datasn;
	priv(q->task)->response = NULL;
}

static bool stage_control(struct dmtcp_conn *c, struct dmtcp_control *q)
{
	struct iovec iov = { q->bytes + q->ahs_len, q->pdu.dsl };
	struct bufv data = bufv_of(&iov, 1);
	uint8_t bhs[ISCSI_BHS_LEN];
	struct stage_pdu *p;

	if (!dmtcp_stage_has_room(c, &data, 0))
		return false;
	stamp(c, &q->pdu);
	if (q->task)
		stamp_response(q);
	iscsi_bhs_encode(&q->pdu, bhs);
	p = dmtcp_stage_pdu(c, bhs, q->bytes, q->ahs_len, &data, 0, q->pdu.dsl,
			    false);
	p->control = q;
	if (q->task) {
		dmtcp_stage_task(p, q->task);
		p->notify = true;
		p->what = DM_RESPONSE_SENT;
	}
	list_del(&q->node.link);
	if (q->is_final_login)
		digests_begin(c);
	return true;
}

/* ---- filling and emptying ---- */

static struct dm_task *task_at(struct list *link)
{
	struct tx_node *n = list_entry(link, struct tx_node, link);

	return task_of(container_of(n, struct dmtcp_task, node));
}

static bool stage_next(struct dmtcp_conn *c, struct list *link)
{
	struct tx_node *n = list_entry(link, struct tx_node, link);

	if (n->kind == TX_CONTROL)
		return stage_control(c, container_of(n, struct dmtcp_control,
						     node));
	if (c->dm.role == ISCSI_TARGET)
		return dmtcp_stage_data_in(c, task_at(link));
	return dmtcp_stage_command(c, task_at(link));
}

static struct dm_task *r2t_task(struct list *link)
{
	struct target_task *tt = list_entry(link, struct target_task, r2t_link);

	return task_of(container_of(tt, struct dmtcp_task, t));
}

/* R2Ts first: a peer waits for them with data ready. Then everything in
 * order; Data-Outs last, since commands are short. */
static void fill_stage(struct dmtcp_conn *c)
{
	bool more = true;

	while (more && !list_empty(&c->r2tq))
		more = dmtcp_stage_r2ts(c, r2t_task(c->r2tq.next));
	while (more && !list_empty(&c->txq))
		more = stage_next(c, c->txq.next);
	while (more && !list_empty(&c->dataq))
		more = dmtcp_stage_data_out(c, task_at(c->dataq.next));
}

unsigned dmtcp_tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct dmtcp_conn *c = core;
	struct stage *s = c->stage;
	unsigned n;

	if (c->fate == STREAM_CLOSE)
		return 0;
	if (s->first == s->niov) {
		s->npdus = s->pdu = s->niov = s->first = 0;
		s->bytes = s->copied = 0;
		fill_stage(c);
	}
	n = MIN(s->niov - s->first, max);
	memcpy(iov, s->iov + s->first, n * sizeof(*iov));
	if (n == 0 && c->leaving && !c->left) {
		c->left = true;
		c->cfg.rdma.drained(c->cfg.rdma.arg);
	}
	return n;
}

static void notify(struct dmtcp_conn *c, struct dm_task *t,
		   enum dm_completion what)
{
	if (what == DM_RESPONSE_SENT) { /* whatever still comes for it */
		dmtcp_rx_forget(c, t);
		dmtcp_get_forget(c, t);
	}
	c->dm.up->data_completion_notify(&c->dm, t, what, 0);
}

/* A PDU is out: whoever waits for that is told. */
static void pdu_out(struct dmtcp_conn *c, struct stage_pdu *p)
{
	struct dm_task *t = p->task;

	if (p->control)
		free_control(c, p->control);
	p->control = NULL;
	if (!t)
		return;
	p->task = NULL;
	priv(t)->staged--;
	if (priv(t)->releasing) {
		if (priv(t)->staged == 0)
			c->dm.up->data_completion_notify(&c->dm, t, DM_RELEASED,
							 0);
		return;
	}
	if (p->notify)
		notify(c, t, p->what);
	else if (c->dm.role == ISCSI_INITIATOR && priv(t)->staged == 0 &&
		 priv(t)->i.late)
		dmtcp_late_deliver(c, t);
}

void dmtcp_tx_done(void *core, size_t n, xtime now)
{
	struct dmtcp_conn *c = core;
	struct stage *s = c->stage;

	c->now = now;
	c->stats.tx_bytes += n;
	while (n > 0) {
		struct iovec *v = &s->iov[s->first];

		if (n < v->iov_len) {
			v->iov_base = (uint8_t *)v->iov_base + n;
			v->iov_len -= n;
			break;
		}
		n -= v->iov_len;
		s->first++;
	}
	while (s->pdu < s->npdus && s->pdus[s->pdu].iov_end <= s->first)
		pdu_out(c, &s->pdus[s->pdu++]);
}

/* The connection is gone: nobody waits any more. */
void dmtcp_tx_drop_all(struct dmtcp_conn *c)
{
	struct stage *s = c->stage;

	for (; s->pdu < s->npdus; s->pdu++)
		if (s->pdus[s->pdu].control)
			free_control(c, s->pdus[s->pdu].control);
	s->npdus = s->pdu = s->niov = s->first = 0;
	list_for_each_safe(it, &c->txq) {
		struct tx_node *n = list_entry(it, struct tx_node, link);

		list_del(it);
		if (n->kind == TX_CONTROL)
			free_control(c, container_of(n, struct dmtcp_control,
						     node));
	}
	list_for_each_safe(it, &c->dataq)
		list_del(it);
	list_for_each_safe(it, &c->r2tq)
		list_del(it);
}
