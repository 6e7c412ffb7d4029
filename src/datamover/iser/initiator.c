/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator.c: commands out with the STags of their buffers, responses in. The
 * STags are invalid before the role gets the response (RFC 7145 §7.3.1, §7.3.2,
 * §8.3).
 */
#include <stdlib.h>
#include <string.h>

#include "datamover/iser/internal.h"
#include "iscsi/bhs_codec.h"

/* ---- STags ---- */

/* Also called after the peer invalidated the STag, because the provider may
 * have to free more. */
static void release_stag(struct dmiser_conn *c, struct rcap_mr *mr, bool *valid)
{
	*valid = false;
	rcap_invalidate(c->qp, mr);
}

static void invalidate_stag(struct dmiser_conn *c, struct rcap_mr *mr,
			    bool *valid)
{
	if (!*valid)
		return;
	c->stats.invalidated++;
	release_stag(c, mr, valid);
}

/* [RFC 7145: 7.3.2 #10 #12, 8.3.2 #2-3] */
void dmiser_forget_stags(struct dmiser_conn *c, struct dm_task *t)
{
	struct initiator_task *it = &iser_task(t)->i;

	invalidate_stag(c, &it->in, &it->in_valid);
	invalidate_stag(c, &it->out, &it->out_valid);
	if (it->late)
		dmiser_repost(c, it->late);
	it->late = NULL;
}

/* How much data a command sends unsolicited (RFC 7143 §4.2.5.2), and how much
 * of those data immediately. */
struct plan {
	uint32_t immediate, unsolicited;
};

/* A target that does not support TaggedBufferForSolicitedDataOnly uses the
 * Write Base Offset either as Linux does or by the RFC's default. Without
 * unsolicited data both give the same result. */
static bool base_is_ambiguous(const struct dmiser_conn *c)
{
	return !has_rule(c, DMISER_SOLICITED_VA) &&
	       iscsi_params_refused(&c->params, ISCSI_K_TAGGED_BUFFER);
}

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
	/* §7.3.1: all but the last PDU of unsolicited data are full; if the
	 * buffer has too many pieces for that, no Data-Out follows */
	p.unsolicited = p.immediate;
	if (!k->initial_r2t &&
	    (!k->immediate_data || p.immediate == MIN(burst, k->max_send_dsl)))
		p.unsolicited = burst;
	if (p.unsolicited < len && base_is_ambiguous(c))
		p = (struct plan){ 0 };
	return p;
}

/* §7.3.1: the Write STag names all of the buffer; the base offset is that of
 * the solicited data under TaggedBufferForSolicitedDataOnly. */
/* [RFC 7145: 7.3.1 #6-9, 9.5.1 #3] */
static int advertise_out(struct dmiser_conn *c, struct dm_task *t,
			 const struct plan *p, struct iser_header *h)
{
	struct initiator_task *it = &iser_task(t)->i;
	int err;

	if (p->unsolicited >= MIN(t->out.len, (size_t)t->edtl))
		return 0;
	err = rcap_reg(c->qp, &t->out, 0, RCAP_REMOTE_READ, &it->out);
	if (err)
		return err;
	it->out_valid = true;
	h->wsv = true;
	h->write_stag = it->out.stag;
	h->write_base =
		it->out.base + (dmiser_solicited_only(c) ? p->unsolicited : 0);
	return 0;
}

/* moved: the target has written a part of the data already, which it does not write
 * again if they are acknowledged (§7.3.5). Otherwise all bytes are undefined until the
 * response: the caller reads only those that the response counts. */
/* [RFC 7145: 7.3.1 #10-14, 9.5.2 #3] */
static int advertise_in(struct dmiser_conn *c, struct dm_task *t, bool moved,
			struct iser_header *h)
{
	struct initiator_task *it = &iser_task(t)->i;
	int err;

	if (t->in.len == 0)
		return 0;
	err = rcap_reg(c->qp, &t->in, 0,
		       RCAP_REMOTE_WRITE | (moved ? 0 : RCAP_UNDEFINED),
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

/* Adds [off, off + len) of the task's buffer to the message. */
static void append_data(struct iser_msg *m, const struct dm_task *t,
			uint32_t off, uint32_t len)
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
	append_data(m, t, off, len);
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

	/* too many pieces for one message, which has to be full: copy them */
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
			.expstatsn = c->dm->numbers->expstatsn,
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

static struct iser_msg *command_msg(struct dmiser_conn *c,
				    const struct iser_header *h,
				    const struct iscsi_pdu *pdu)
{
	struct iser_msg *m = dmiser_msg_short(c, h);

	if (!m)
		return NULL;
	iscsi_scsi_command_encode(pdu, dmiser_msg_bhs(m));
	dm_trace_pdu(c->dm, true, dmiser_msg_bhs(m));
	return m;
}

/* [RFC 7145: 7.3.1 #1, 9.5.1 #1-2, 9.5.2 #1-2] */
int dmiser_send_command(struct dmiser_conn *c, struct dm_task *t,
			const struct dm_control *ctl)
{
	struct iser_header h = { .opcode = ISER_CONTROL };
	struct iscsi_pdu pdu = ctl->pdu;
	struct plan p = { 0 };
	struct iser_msg *m = NULL;
	int err;

	pdu.expstatsn = c->dm->numbers->expstatsn;
	if (pdu.cmd.write) {
		p = plan_of(c, t);
		err = advertise_out(c, t, &p, &h);
		if (err)
			return err;
	}
	pdu.final = p.unsolicited == p.immediate;
	pdu.dsl = p.immediate;
	err = pdu.cmd.read ? advertise_in(c, t, false, &h) : 0;
	if (!err)
		m = pdu.ahs_len ? dmiser_msg_pdu(c, &h, &pdu, ctl->ahs, NULL)
				: command_msg(c, &h, &pdu);
	if (!m) {
		dmiser_forget_stags(c, t);
		return err ? err : ERR_NOMEM;
	}
	err = send_task_msg(c, t, m, 0, p.immediate);
	if (err) {
		/* nothing was sent: the role owns the buffers again */
		dmiser_forget_stags(c, t);
		return err;
	}
	t->immediate = p.immediate;
	err = send_data_outs(c, t, &p);
	if (err) /* the command was sent and cannot be withdrawn */
		dmiser_fail_conn(c, err, "no memory for unsolicited data");
	return 0;
}

/* The STags of the task's old connection ended with it; those of a TASK REASSIGN that got
 * no answer are replaced. The Write STag names what the command did not carry itself
 * (§9.2, §10.2.2). */
/* [RFC 7145: 7.3.3 #3-8, 8.3.1 #1, 10.2.2 #1] */
int dmiser_send_reassign(struct dmiser_conn *c, const struct dm_control *ctl)
{
	struct iser_header h = { .opcode = ISER_CONTROL };
	struct dm_task *t = ctl->reassigned;
	const struct plan p = { .immediate = t->immediate,
				.unsolicited = t->immediate };
	struct iscsi_pdu pdu = ctl->pdu;
	struct iser_msg *m;
	int err;

	dmiser_forget_stags(c, t);
	dm_set_numbers(c->dm, &pdu);
	err = advertise_out(c, t, &p, &h);
	if (!err)
		err = advertise_in(c, t, true, &h);
	m = err ? NULL : dmiser_msg_pdu(c, &h, &pdu, NULL, NULL);
	if (!err)
		err = m ? dmiser_send(c, NULL, m) : ERR_NOMEM;
	if (err)
		dmiser_forget_stags(c, t);
	return err;
}

/* ---- responses ---- */

/* A target may invalidate one of the two STags of this command. An unknown STag
 * fails in the RCaP, so any other STag belongs to another command (§7.3.2). */
/* [RFC 7145: 7.3.2 #11] */
static int take_invalidated(struct dmiser_conn *c, struct dm_task *t,
			    const struct rcap_recv *r)
{
	struct initiator_task *it = &iser_task(t)->i;

	if (!r->invalidated)
		return 0;
	c->stats.remote_invalidated++;
	if (it->in_valid && r->stag == it->in.stag)
		release_stag(c, &it->in, &it->in_valid);
	else if (it->out_valid && r->stag == it->out.stag)
		release_stag(c, &it->out, &it->out_valid);
	else
		return ERR_PROTOCOL;
	return 0;
}

/* The read data of a bidirectional command, which have a residual of their own
 * (RFC 7143 §11.4.5.1). */
static uint32_t bidi_in_moved(const struct dm_task *t,
			      const struct iscsi_scsi_response *r)
{
	uint32_t missing = r->resid_flags & ISCSI_RESID_BIDI_UNDERFLOW
				   ? MIN(r->bidi_resid, t->bidi_edtl)
				   : 0;

	return t->bidi_edtl - missing;
}

/* The initiator does not see the target's RDMA Writes and RDMA Reads; the
 * residual gives the number of bytes that they transferred. */
static uint32_t bytes_moved(const struct dm_task *t, const struct bufv *data,
			    const struct iscsi_pdu *p)
{
	uint32_t missing = p->rsp.resid_flags & ISCSI_RESID_UNDERFLOW
				   ? MIN(p->rsp.resid, t->edtl)
				   : 0;

	return (uint32_t)MIN(data->len, (size_t)(t->edtl - missing));
}

/* [RFC 7145: 7.3.2 #13-14, 9.5.1 #9, 9.5.2 #7] */
static void deliver_response(struct dmiser_conn *c, struct dm_task *t,
			     const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	int err;

	if (t) {
		t->in_done = t->bidi_edtl ? bidi_in_moved(t, &pdu->rsp)
					  : bytes_moved(t, &t->in, pdu);
		t->out_done = bytes_moved(t, &t->out, pdu);
		dmiser_forget_stags(c, t);
	}
	err = c->dm->up->control_notify(c->dm, ctl, &t);
	if (err)
		dmiser_fail_conn(c, err, "PDU refused by the iSCSI layer");
}

/* The queue pair lends the message for the up-call only; a response that waits
 * needs a copy. */
static void copy_message(struct rcap_recv *r)
{
	if (r->lent)
		memcpy(r->buf, r->lent, r->len);
	r->lent = NULL;
}

bool dmiser_initiator_response(struct dmiser_conn *c, struct iser_in *in)
{
	struct dm_task *t = c->dm->up->find_task(c->dm, in->ctl.pdu.itt);

	/* without a task the STag belongs to another command */
	if (t ? take_invalidated(c, t, in->recv) : in->recv->invalidated) {
		dmiser_fail_conn(
			c, ERR_PROTOCOL,
			"STag of another command invalidated by a response "
			"(RFC 7145 §7.3.2)");
		return false;
	}
	if (t && iser_task(t)->busy) {
		/* our Sends are still in progress and use the buffers */
		if (iser_task(t)->i.late) {
			dmiser_fail_conn(
				c, ERR_PROTOCOL,
				"second response to one command (RFC 7143 "
				"§11.4)");
			return false;
		}
		copy_message(in->recv);
		iser_task(t)->i.late = in->recv;
		return true;
	}
	in->ctl.data = in->data;
	deliver_response(c, t, &in->ctl);
	return false;
}

void dmiser_late(struct dmiser_conn *c, struct dm_task *t)
{
	struct initiator_task *it = &iser_task(t)->i;
	struct rcap_recv *r = it->late;
	struct dm_control ctl;

	if (!r || c->ended)
		return;
	it->late = NULL;
	dm_control_clear(&ctl);
	ctl.bhs = rcap_recv_bytes(r) + ISER_HEADER_LEN;
	if (iscsi_bhs_decode(&ctl.pdu, ctl.bhs) == 0) { /* rx.c checked it */
		if (ctl.pdu.dsl)
			ctl.data = ctl.bhs + ISCSI_BHS_LEN + ctl.pdu.ahs_len;
		deliver_response(c, t, &ctl);
	}
	dmiser_repost(c, r);
}
