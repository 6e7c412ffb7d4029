/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put.c: Put_Data at the target, by RDMA Write (RFC 7145 §7.3.5). At
 * ErrorRecoveryLevel 2 the initiator's RDMA layer acknowledges read data, which are
 * not sent again when the task goes on over another connection.
 */
#include "datamover/iser/internal.h"

static void report_put(struct dmiser_conn *c, struct dm_task *t)
{
	if (iser_task(t)->t.notify_put && !iser_task(t)->releasing)
		c->dm->up->data_completion_notify(c->dm, t, DM_PUT, 0);
	else
		dmiser_report_released(c, t);
}

/* ---- data that are acknowledged ---- */

/* RFC 7143 §11.7.2: the A bit is set once every MaxBurstLength bytes, as datamover/tcp
 * does. Each RDMA Write is one Data-In; the status acknowledges the last one. */
static bool is_acknowledged_in_parts(const struct dmiser_conn *c,
				     const struct target_task *tt,
				     const struct bufv *data, uint32_t offset)
{
	return c->dm->retains && (data->len > c->params.max_burst_length ||
				  offset < tt->acked_to);
}

/* Posts the RDMA Write of the bytes from off on, up to the end of the burst, and
 * stores how many these are in *len. */
static int write_some(struct dmiser_conn *c, struct dm_task *t,
		      const struct bufv *data, uint32_t offset, size_t off,
		      size_t *len)
{
	struct target_task *tt = &iser_task(t)->t;
	uint32_t burst = c->params.max_burst_length;
	struct iser_msg *m = dmiser_msg_new(c, 0);
	struct rcap_wr *wr;
	unsigned n;

	if (!m)
		return ERR_NOMEM;
	*len = bufv_slice(data, off,
			  MIN(data->len - off, burst - (offset + off) % burst),
			  m->iov, MSG_PIECES, &n);
	m->kind = off + *len < data->len ? MSG_DATA : MSG_LAST_DATA;
	m->task = t;
	m->wr = (struct rcap_wr){ .op = RCAP_WRITE,
				  .flags = RCAP_UNSTABLE,
				  .data = { m->iov, n, *len },
				  .stag = tt->remote.read_stag,
				  .to = tt->remote.read_base + offset + off,
				  .tag = WR_MSG };
	iser_task(t)->busy++;
	tt->datasn++;
	c->stats.rdma_writes++;
	c->stats.write_bytes += *len;
	wr = &m->wr;
	if (rcap_post(c->qp, &wr, 1)) {
		dmiser_msg_free(c, m);
		return ERR_CLOSED;
	}
	return 0;
}

/* The A bit: a zero-length RDMA Read, which the initiator's RDMA layer answers after it
 * has placed the data of the RDMA Writes before it. It counts against iSER-ORD; if no
 * RDMA Read is possible at present, or there is no memory for it, these bytes have no A bit. */
/* [RFC 7145: 7.3.5 #13] */
static void ask_to_acknowledge(struct dmiser_conn *c, struct dm_task *t,
			       uint32_t to)
{
	struct target_task *tt = &iser_task(t)->t;
	struct iser_read *r;
	struct rcap_wr *wr;

	if (c->reads_out >= c->ord || dmiser_need_reads(c))
		return;
	r = dmiser_read_new(c, t);
	r->acked_to = to;
	r->datasn = tt->datasn;
	r->wr = (struct rcap_wr){ .op = RCAP_READ,
				  .data = { r->iov, 0, 0 },
				  .stag = tt->remote.read_stag,
				  .to = tt->remote.read_base + to,
				  .tag = WR_ACK };
	c->stats.acks++;
	wr = &r->wr;
	if (rcap_post(c->qp, &wr, 1)) /* the connection ends */
		dmiser_read_free(c, r);
}

/* Writes what the initiator has not acknowledged. */
/* [RFC 7145: 10.2.2 #2] */
static int put_parts(struct dmiser_conn *c, struct dm_task *t,
		     const struct bufv *data, uint32_t offset)
{
	struct target_task *tt = &iser_task(t)->t;
	size_t off = tt->acked_to > offset ? tt->acked_to - offset : 0, len;

	for (; off < data->len; off += len) {
		int err = write_some(c, t, data, offset, off, &len);

		if (err)
			return err;
		if (off + len < data->len &&
		    (offset + off + len) % c->params.max_burst_length == 0)
			ask_to_acknowledge(c, t,
					   (uint32_t)(offset + off + len));
	}
	return 0;
}

void dmiser_put_part_done(struct dmiser_conn *c, struct dm_task *t, size_t len,
			  bool last)
{
	c->bytes_out += len;
	if (!last) {
		dmiser_report_released(c, t);
		return;
	}
	iser_task(t)->t.putting = false;
	report_put(c, t);
}

/* [RFC 7145: 7.3.5 #12 #14] [RFC 5047: 10.2.3 #1] */
void dmiser_ack_done(struct dmiser_conn *c, struct iser_read *r, int err)
{
	struct dm_task *t = r->task;
	struct target_task *tt = &iser_task(t)->t;

	dmiser_read_free(c, r);
	if (err)
		return;
	tt->acked_to = r->acked_to;
	tt->acked_sn = r->datasn;
	if (!iser_task(t)->releasing)
		c->dm->up->data_ack_notify(c->dm, t, tt->acked_sn);
	dmiser_report_released(c, t);
	dmiser_read_more(c);
}

/* ---- the primitive ---- */

/* Also counts the data; NULL: there are none. */
static struct rcap_wr *whole_write(struct dmiser_conn *c,
				   struct target_task *tt,
				   const struct bufv *data, uint32_t offset)
{
	if (data->len == 0)
		return NULL;
	tt->put.op = RCAP_WRITE;
	/* a backstore may lend its memory, which other commands change */
	tt->put.flags = RCAP_UNSTABLE;
	tt->put.data = *data;
	tt->put.stag = tt->remote.read_stag;
	tt->put.to = tt->remote.read_base + offset;
	tt->put.tag = WR_PUT;
	c->stats.rdma_writes++;
	c->stats.write_bytes += data->len;
	return &tt->put;
}

/* Posts the data; *first: an RDMA Write that is still to be posted, or NULL. */
static int put(struct dmiser_conn *c, struct dm_task *t,
	       const struct bufv *data, uint32_t offset, struct rcap_wr **first)
{
	struct target_task *tt = &iser_task(t)->t;

	*first = NULL;
	if (is_acknowledged_in_parts(c, tt, data, offset))
		return put_parts(c, t, data, offset);
	*first = whole_write(c, tt, data, offset);
	return 0;
}

/* [RFC 7145: 3.3 #6-7, 7.3.2 #2-3, 7.3.5 #3-7 #18-20, 9.5.2 #6] */
int dmiser_put_data(struct dm_conn *dm, struct dm_task *t,
		    const struct bufv *data, uint32_t offset,
		    const struct iscsi_pdu *response)
{
	struct dmiser_conn *c = dm->impl;
	struct target_task *tt = &iser_task(t)->t;
	struct rcap_wr *first;
	struct iscsi_pdu pdu;
	int err;

	dmiser_bind_task(c, t);
	if (tt->putting)
		return ERR_BUSY;
	if (data->len && !tt->remote.rsv)
		return ERR_PROTOCOL;
	tt->putting = data->len > 0;
	tt->notify_put = !response;
	err = put(c, t, data, offset, &first);
	if (err)
		return err;
	if (!response && first) {
		iser_task(t)->busy++;
		err = rcap_post(c->qp, &first, 1) ? ERR_CLOSED : 0;
	}
	if (!response)
		return err;
	pdu = *response;
	pdu.itt = t->itt;
	pdu.expcmdsn = dm->numbers->expcmdsn;
	pdu.maxcmdsn = dm->numbers->maxcmdsn;
	err = dmiser_send_response(c, t, &pdu, NULL, first);
	if (err)
		tt->putting = false;
	return err;
}

/* [RFC 7145: 7.1 #1-3, 7.3.5 #8-11] [RFC 5047: 9.3 #1-2] */
void dmiser_put_done(struct dmiser_conn *c, struct dm_task *t, int err)
{
	struct target_task *tt = &iser_task(t)->t;

	tt->putting = false;
	iser_task(t)->busy--;
	if (err)
		return;
	c->bytes_out += tt->put.data.len;
	report_put(c, t);
}
