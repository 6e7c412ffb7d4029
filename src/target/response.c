/* SPDX-License-Identifier: BSD-2-Clause */
/* response.c: the SCSI Response (RFC 7143 §11.4): status, sense, residuals. */
#include <string.h>

#include "base/cold.h"
#include "base/err.h"
#include "target/task_state.h"

/* Compares what the command would have moved (SPDTL) with what the initiator
 * expected (§11.4.5.2). */
/* [RFC 7143: 11.4.5.1 #1, 11.4.5.2 #1-4] */
static uint32_t residual(uint64_t spdtl, uint32_t edtl, uint8_t over,
			 uint8_t under, uint8_t *flags)
{
	uint64_t diff = spdtl > edtl ? spdtl - edtl : edtl - spdtl;

	if (diff)
		*flags |= spdtl > edtl ? over : under;
	return (uint32_t)MIN(diff, (uint64_t)UINT32_MAX);
}

/* §11.4.5.1: each direction of a bidirectional command has its own residual. */
/* [RFC 7143: 11.4.5.3 #1-3, 11.4.6 #1] */
static void set_residuals(const struct tgt_task *t,
			  struct iscsi_scsi_response *r)
{
	bool begun = tgt_task_is_begun(t);
	uint64_t in = begun ? t->dev.total.in : 0;
	uint64_t out = begun ? t->dev.total.out : 0;

	if (t->dev.edtl.both)
		r->bidi_resid =
			residual(in, t->dm.bidi_edtl, ISCSI_RESID_BIDI_OVERFLOW,
				 ISCSI_RESID_BIDI_UNDERFLOW, &r->resid_flags);
	else
		out += in; /* one of the two is 0 */
	r->resid = residual(out, t->dm.edtl, ISCSI_RESID_OVERFLOW,
			    ISCSI_RESID_UNDERFLOW, &r->resid_flags);
}

/* SAM-5 §5.3.2: retry after 100 ms (RFC 7144 §5.2.1 has the field). */
static uint16_t status_qualifier(uint8_t status)
{
	return status == SCSI_BUSY || status == SCSI_TASK_SET_FULL ? 1 : 0;
}

/* [RFC 7144: 5.2.1 #1] */
static ALWAYS_INLINE void make_response(const struct tgt_task *t,
					uint8_t status, struct iscsi_pdu *pdu)
{
	*pdu = (struct iscsi_pdu){
		.op = ISCSI_SCSI_RESPONSE,
		.final = true,
		.itt = t->dm.itt,
		.ttt = ISCSI_RESERVED_TAG,
	};
	pdu->rsp.status = status;
	if (t->session->params.protocol_level >= 2)
		pdu->rsp.status_qualifier = status_qualifier(status);
	set_residuals(t, &pdu->rsp);
}

static void check_sent(struct tgt_task *t, int err)
{
	if (err)
		tgt_conn_fail(t->conn, err, "response not sent");
}

/* The window is closed, and tasks wait for ExpStatSN: an initiator without anything
 * to send has to answer a NOP-In (RFC 7143 §7.1.4.2). */
static inline void ask_to_acknowledge(struct tgt_conn *c)
{
	if (c->dm->retains && c->session->stalled && !c->ping.pending &&
	    tgt_conn_open(c))
		tgt_ping(c);
}

static uint8_t status_of(const struct tgt_task *t)
{
	return tgt_task_is_begun(t) ? t->dev.status : t->refusal;
}

/* Sense data follow their length in the data segment (§11.4.7). Returns the connection
 * that took it, or NULL. */
static struct tgt_conn *queue_response(struct tgt_task *t)
{
	struct tgt_conn *c = t->conn;
	size_t sense = tgt_task_is_begun(t) ? t->dev.sense.len : 0;
	uint8_t segment[2 + DEV_SENSE_MAX];
	struct dm_control ctl;

	if (!tgt_conn_open(c))
		return NULL; /* tgt_abort_orphans frees the task, or reassign.c
				goes on */
	dm_control_clear(&ctl);
	ctl.data = segment;
	make_response(t, status_of(t), &ctl.pdu);
	if (sense) {
		segment[0] = (uint8_t)(sense >> 8);
		segment[1] = (uint8_t)sense;
		memcpy(segment + 2, t->dev.sense.data, sense);
		ctl.pdu.dsl = (uint32_t)sense + 2;
	}
	ctl.pdu.statsn = c->numbers.statsn++;
	check_sent(t, dm_send_control(c->dm, &t->dm, &ctl));
	ask_to_acknowledge(c);
	return c;
}

/* ---- the Response Fence ---- */

static struct tgt_conn *send_held(struct tgt_held *h)
{
	return queue_response(container_of(h, struct tgt_task, held));
}

/* [RFC 7143: 4.2.2.3.4 #2, 4.2.3.3 #9, 4.2.3.4 #13] */
static bool is_fenced(const struct tgt_task *t)
{
	return tgt_task_is_begun(t) && dev_task_orders(&t->dev);
}

/* The status may have to wait: the read data go without it. */
static bool may_wait(const struct tgt_task *t)
{
	const struct tgt_session *s = t->session;

	return s->fences.on && (is_fenced(t) || tgt_fence_would_hold(s, t->lu));
}

static void respond(struct tgt_task *t)
{
	struct tgt_session *s = t->session;

	if (s->fences.on) {
		t->held.lu = t->lu;
		t->held.send = send_held;
		if (tgt_fence_holds(s, &t->held, is_fenced(t)))
			return;
	}
	queue_response(t);
}

/* [RFC 7145: 9.5.1 #8] */
/* [RFC 7143: 4.2.2.2 #3, 4.6.1.2 #1, 10.2 #1, 11.4.7 #1-2] */
/* [RFC 7144: 5.2.2 #1-2] */
void tgt_response_send(struct tgt_task *t)
{
	tgt_stats_end(t, status_of(t));
	tgt_task_go(t, TGT_TASK_RESPONSE);
	respond(t);
}

static void put_data(struct tgt_task *t, bool with_status)
{
	struct tgt_conn *c = t->conn;
	struct dev_task *d = &t->dev;
	struct iscsi_pdu pdu;

	if (!tgt_conn_open(c)) {
		(void)dev_task_fix(d); /* for another connection */
		return;
	}
	if (with_status) {
		make_response(t, d->status, &pdu);
		pdu.statsn = c->numbers.statsn++;
	}
	check_sent(t, dm_put_data(c->dm, &t->dm, &d->in, 0,
				  with_status ? &pdu : NULL));
	ask_to_acknowledge(c);
}

/* [RFC 7145: 7.3.5 #1, 9.5.2 #5] */
/* [RFC 7143: 4.2.5.1 #2] */
void tgt_response_put(struct tgt_task *t)
{
	struct dev_task *d = &t->dev;
	bool with_status = d->sense.len == 0 && !may_wait(t);

	tgt_task_go(t, with_status ? TGT_TASK_RESPONSE : TGT_TASK_PUT);
	t->conn->count.bytes_read += d->in.len;
	if (with_status)
		tgt_stats_end(t, d->status);
	put_data(t, with_status);
}

void tgt_response_again(struct tgt_task *t)
{
	bool has_data = tgt_task_is_begun(t) && t->dev.in.len;
	bool waits = tgt_is_held(&t->held) || t->state == TGT_TASK_PUT;
	bool with_status = t->dev.sense.len == 0 && !waits;

	tgt_fence_forget(t->session, &t->held);
	if (!has_data && waits) {
		respond(t);
		return;
	}
	if (!has_data) {
		queue_response(t);
	} else {
		if (t->state == TGT_TASK_RESPONSE && !with_status)
			tgt_task_go(t, TGT_TASK_PUT); /* the status follows */
		put_data(t, with_status);
	}
	tgt_fence_resent(t->session, t->conn);
}

void tgt_response_aborted(struct tgt_task *t)
{
	struct tgt_conn *c = t->conn;
	struct dm_control ctl = { .data = NULL };

	if (!c || !tgt_conn_open(c))
		return;
	make_response(t, SCSI_TASK_ABORTED, &ctl.pdu);
	tgt_conn_send(c, &ctl);
}
