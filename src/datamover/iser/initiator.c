/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator.c: commands out with the STags of their buffers, responses in and
 * the STags gone before anybody hears of it (RFC 7145 §7.3.1, §7.3.2, §8.3).
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"

/* ---- STags ---- */

/* Also after the peer invalidated it: a provider may have more to let go. */
static void release(struct dmiser_conn *c, struct rcap_mr *mr, bool *valid)
{
	*valid = false;
	rcap_invalidate(c->qp, mr);
}

static void forget(struct dmiser_conn *c, struct rcap_mr *mr, bool *valid)
{
	if (!*valid)
		return;
	c->stats.invalidated++;
	release(c, mr, valid);
}

/* [RFC 7145: 7.3.2 #10 #12, 8.3.2 #2-3] */
void dmiser_forget_stags(struct dmiser_conn *c, struct dm_task *t)
{
	struct initiator_task *it = &priv(t)->i;

	forget(c, &it->in, &it->in_valid);
	forget(c, &it->out, &it->out_valid);
	if (it->late)
		dmiser_repost(c, it->late);
	it->late = NULL;
}

/* How much goes unasked (RFC 7143 §4.2.5.2), and how much of it at once. */
struct plan {
	uint32_t immediate, unsolicited;
};

/* [RFC 7145: 7.3.1 #2-5] */
static struct plan plan_of(const struct dmiser_conn *c, const struct dm_task *t)
{
	const struct iscsi_params *k = &c->params;
	uint32_t len = (uint32_t)MIN(t->out.len, (size_t)t->edtl);
	uint32_t burst = MIN(len, k->first_burst_length);
	struct plan p = { 0 };
	struct iovec piece[MSG_PIECES - 1];
	unsigned n;

	if (k->immediate_data)
		p.immediate = (uint32_t)bufv_slice(&t->out, 0,
						   MIN(burst, k->max_send_dsl),
						   piece, MSG_PIECES - 1, &n);
	/* §7.3.1: all but the last PDU of unsolicited data are full: where
	 * the pieces are too many for that, nothing more goes unasked */
	p.unsolicited = p.immediate;
	if (!k->initial_r2t &&
	    (!k->immediate_data || p.immediate == MIN(burst, k->max_send_dsl)))
		p.unsolicited = burst;
	return p;
}

/* §7.3.1: the Write STag names all of the buffer, or only what is solicited
 * (TaggedBufferForSolicitedDataOnly); real initiators advance the offset in
 * either case. */
/* [RFC 7145: 7.3.1 #6-9, 9.5.1 #3] */
static int advertise_out(struct dmiser_conn *c, struct dm_task *t,
			 const struct plan *p, struct iser_header *h)
{
	struct initiator_task *it = &priv(t)->i;
	bool solicited_only = rule(c, DMISER_SOLICITED_VA) ||
			      c->params.tagged_buffer_for_solicited_data_only;
	int err;

	if (p->unsolicited >= MIN(t->out.len, (size_t)t->edtl))
		return 0;
	err = rcap_reg(c->qp, &t->out, 0, RCAP_REMOTE_READ, &it->out);
	if (err)
		return err;
	it->out_valid = true;
	h->wsv = true;
	h->write_stag = it->out.stag;
	h->write_base = it->out.base + (solicited_only ? p->unsolicited : 0);
	return 0;
}

/* [RFC 7145: 7.3.1 #10-14, 9.5.2 #3] */
static int advertise_in(struct dmiser_conn *c, struct dm_task *t,
			struct iser_header *h)
{
	struct initiator_task *it = &priv(t)->i;
	int err;

	if (t->in.len == 0)
		return 0;
	/* a caller reads no more of it than the response says came */
	err = rcap_reg(c->qp, &t->in, 0, RCAP_REMOTE_WRITE | RCAP_UNDEFINED,
		       &it->in);
	if (err)
		return err;
	it->in_valid = true;
	h->rsv = true;
	h->read_stag = it->in.stag;
	h->read_base = it->in.base;
	return 0;
}

/* ---- commands ---- */

/* The task's own memory behind what the message has already. */
static void append(struct iser_msg *m, const struct dm_task *t, uint32_t off,
		   uint32_t len)
{
	unsigned n;

	if (len == 0)
		return;
	bufv_slice(&t->out, off, len, m->iov + 1, MSG_PIECES - 1, &n);
	m->wr.data.n = 1 + n;
	m->wr.data.len += len;
}

static int send_task_msg(struct dmiser_conn *c, struct dm_task *t,
			 struct iser_msg *m, uint32_t off, uint32_t len)
{
	m->kind = MSG_COMMAND;
	m->task = t;
	append(m, t, off, len);
	return dmiser_send(c, NULL, m);
}

/* [RFC 7145: 7.3.4 #1 #4] */
static int send_data_out(struct dmiser_conn *c, struct dm_task *t,
			 const struct iscsi_pdu *pdu)
{
	static const struct iser_header plain = { .opcode = ISER_CONTROL };
	struct iovec piece[MSG_PIECES - 1];
	uint32_t off = pdu->data.offset, len = pdu->dsl;
	uint8_t *copy = NULL;
	struct iser_msg *m;
	unsigned n;

	/* pieces too many for one message: it has to be full all the same */
	if (bufv_slice(&t->out, off, len, piece, MSG_PIECES - 1, &n) < len) {
		copy = malloc(len);
		if (!copy)
			return ERR_NOMEM;
		bufv_copy_out(&t->out, off, copy, len);
	}
	m = dmiser_msg_pdu(c, &plain, pdu, NULL, copy);
	free(copy);
	if (!m)
		return ERR_NOMEM;
	return send_task_msg(c, t, m, off, copy ? 0 : len);
}

/* Unsolicited Data-Outs (§7.3.4). */
/* [RFC 7145: 6.4 #1, 7.3.1 #15, 7.3.4 #2, 9.5.1 #5] */
static int send_data_outs(struct dmiser_conn *c, struct dm_task *t,
			  const struct plan *p)
{
	uint32_t off = p->immediate, datasn = 0;

	while (off < p->unsolicited) {
		uint32_t len =
			MIN(p->unsolicited - off, c->params.max_send_dsl);
		struct iscsi_pdu pdu = {
			.op = ISCSI_DATA_OUT,
			.final = off + len == p->unsolicited,
			.dsl = len,
			.itt = t->itt,
			.ttt = ISCSI_RESERVED_TAG,
			.expstatsn = c->face->numbers->expstatsn,
		};
		int err;

		pdu.data.datasn = datasn++;
		pdu.data.offset = off;
		err = send_data_out(c, t, &pdu);
		if (err)
			return err;
		off += len;
	}
	return 0;
}

/* [RFC 7145: 7.3.1 #1, 9.5.1 #1-2, 9.5.2 #1-2] */
int dmiser_send_command(struct dmiser_conn *c, struct dm_task *t,
			const struct dm_control *ctl)
{
	struct iser_header h = { .opcode = ISER_CONTROL };
	struct iscsi_pdu pdu = ctl->pdu;
	struct plan p = { 0 };
	struct iser_msg *m;
	int err;

	pdu.expstatsn = c->face->numbers->expstatsn;
	if (pdu.cmd.write) {
		p = plan_of(c, t);
		err = advertise_out(c, t, &p, &h);
		if (err)
			return err;
	}
	pdu.final = p.unsolicited == p.immediate;
	pdu.dsl = p.immediate;
	err = pdu.cmd.read ? advertise_in(c, t, &h) : 0;
	m = err ? NULL : dmiser_msg_pdu(c, &h, &pdu, ctl->ahs, NULL);
	if (!m) {
		dmiser_forget_stags(c, t);
		return err ? err : ERR_NOMEM;
	}
	err = send_task_msg(c, t, m, 0, p.immediate);
	if (err) {
		/* nothing is out: the buffers are the role's from here on */
		dmiser_forget_stags(c, t);
		return err;
	}
	err = send_data_outs(c, t, &p);
	if (err) /* the command is out: it can't be taken back alone */
		dmiser_die(c, err, "no memory for unsolicited data");
	return 0;
}

/* ---- responses ---- */

/* A peer may invalidate one of the two STags of this very command; another
 * one would have failed in the RCaP, or be another command's (§7.3.2). */
/* [RFC 7145: 7.3.2 #11] */
static int heed_invalidated(struct dmiser_conn *c, struct dm_task *t,
			    const struct rcap_recv *r)
{
	struct initiator_task *it = &priv(t)->i;

	if (!r->invalidated)
		return 0;
	c->stats.remote_invalidated++;
	if (it->in_valid && r->stag == it->in.stag)
		release(c, &it->in, &it->in_valid);
	else if (it->out_valid && r->stag == it->out.stag)
		release(c, &it->out, &it->out_valid);
	else
		return ERR_PROTOCOL;
	return 0;
}

/* RDMA Writes are not seen: what came is what was not left out. */
static uint32_t bytes_read(const struct dm_task *t, const struct iscsi_pdu *p)
{
	uint32_t missing = p->rsp.resid_flags & ISCSI_RESID_UNDERFLOW
				   ? MIN(p->rsp.resid, t->edtl)
				   : 0;

	return (uint32_t)MIN(t->in.len, (size_t)(t->edtl - missing));
}

/* [RFC 7145: 7.3.2 #13-14, 9.5.1 #9, 9.5.2 #7] */
static void give_response(struct dmiser_conn *c, struct dm_task *t,
			  const struct iscsi_pdu *pdu, const uint8_t *bhs,
			  const uint8_t *data)
{
	const struct dm_control ctl = { .pdu = *pdu, .bhs = bhs, .data = data };
	int err;

	if (t) {
		t->in_done = bytes_read(t, pdu);
		dmiser_forget_stags(c, t);
	}
	err = c->face->up->control_notify(c->face, &ctl, &t);
	if (err)
		dmiser_die(c, err, "the iSCSI layer gave up");
}

/* What is lent goes with the up-call: it is needed for longer. */
static void keep_message(struct rcap_recv *r)
{
	if (r->lent)
		memcpy(r->buf, r->lent, r->len);
	r->lent = NULL;
}

bool dmiser_initiator_response(struct dmiser_conn *c, struct iser_in *in)
{
	struct dm_task *t = c->face->up->find_task(c->face, in->pdu.itt);

	/* an STag that was valid belongs to a command: if not to this one... */
	if (t ? heed_invalidated(c, t, in->recv) : in->recv->invalidated) {
		dmiser_die(c, ERR_PROTOCOL,
			   "a response invalidated an STag that is not its "
			   "command's (RFC 7145 §7.3.2)");
		return false;
	}
	if (t && priv(t)->busy) {
		/* it came before our own Send was out: nobody may have the
		 * buffers back yet */
		if (priv(t)->i.late)
			return false; /* a second one is ignored */
		keep_message(in->recv);
		priv(t)->i.late = in->recv;
		return true;
	}
	give_response(c, t, &in->pdu, in->bhs, in->data);
	return false;
}

void dmiser_late(struct dmiser_conn *c, struct dm_task *t)
{
	struct initiator_task *it = &priv(t)->i;
	struct rcap_recv *r = it->late;
	const uint8_t *bhs;
	struct iscsi_pdu pdu;

	if (!r || c->dead)
		return;
	it->late = NULL;
	bhs = rcap_recv_bytes(r) + ISER_HEADER_LEN;
	if (iscsi_bhs_decode(&pdu, bhs) == 0) /* it was checked once */
		give_response(c, t, &pdu, bhs,
			      pdu.dsl ? bhs + ISCSI_BHS_LEN + pdu.ahs_len
				      : NULL);
	dmiser_repost(c, r);
}
