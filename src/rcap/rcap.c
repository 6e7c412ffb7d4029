/* SPDX-License-Identifier: BSD-2-Clause */
/* rcap.c: the entry points of a provider. They reject every call that the state
 * of the connection does not allow. */
#include "rcap/rcap.h"

#include <assert.h>

void rcap_set_user(struct rcap_qp *qp, const struct rcap_user *user, void *arg)
{
	assert(user->connect_request && user->established && user->wr_done &&
	       user->received && user->closed);
	qp->user = user;
	qp->arg = arg;
}

void rcap_set_trace(struct rcap_qp *qp, struct trace *trace)
{
	qp->trace = trace;
}

/* ---- a queue pair without a user ---- */

static void refuse_request(void *arg, const struct rcap_cm *peer)
{
	const struct rcap_cm nothing = { .private_len = 0 };

	(void)peer;
	rcap_reject(arg, &nothing);
}

static void ignore_established(void *arg, const struct rcap_cm *peer)
{
	(void)arg;
	(void)peer;
}

static void ignore_wr(void *arg, struct rcap_wr *wr, int err)
{
	(void)arg;
	(void)wr;
	(void)err;
}

static void ignore_recv(void *arg, struct rcap_recv *r, int err)
{
	(void)arg;
	(void)r;
	(void)err;
}

static void ignore_closed(void *arg, int err, const char *why)
{
	(void)arg;
	(void)err;
	(void)why;
}

static const struct rcap_user refusal = {
	.connect_request = refuse_request,
	.established = ignore_established,
	.wr_done = ignore_wr,
	.received = ignore_recv,
	.closed = ignore_closed,
};

void rcap_refuse(struct rcap_qp *qp)
{
	rcap_set_user(qp, &refusal, qp);
}

/* ---- calls ---- */

int rcap_accept(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	if (qp->state != RCAP_REQUESTED)
		return ERR_WRONG_STATE;
	if (cm->private_len > RCAP_PRIVATE_MAX)
		return ERR_TOO_LONG;
	return qp->ops->accept(qp, cm);
}

int rcap_reject(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	if (qp->state != RCAP_REQUESTED)
		return ERR_WRONG_STATE;
	if (cm->private_len > RCAP_PRIVATE_MAX)
		return ERR_TOO_LONG;
	return qp->ops->reject(qp, cm);
}

/* Why no request that is neither a Send nor a Write may be posted; 0: it may. */
static int check_op(const struct rcap_qp *qp, const struct rcap_wr *wr)
{
	if (wr->op >= RCAP_IMMEDIATE && !qp->extended)
		return ERR_UNSUPPORTED;
	if (rcap_wr_has_response(wr) && qp->ord == 0)
		return ERR_LIMIT; /* the Read would wait forever */
	return 0;
}

int rcap_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	if (qp->state != RCAP_ESTABLISHED)
		return ERR_WRONG_STATE;
	for (unsigned i = 0; i < n; i++) {
		int err = 0;

		if (wr[i]->data.len > UINT32_MAX)
			return ERR_RANGE;
		if (wr[i]->op > RCAP_WRITE)
			err = check_op(qp, wr[i]);
		if (err)
			return err;
	}
	qp->ops->post(qp, wr, n);
	return 0;
}

int rcap_post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	if (qp->state == RCAP_CLOSED)
		return ERR_WRONG_STATE;
	qp->ops->post_recv(qp, r);
	return 0;
}

void rcap_rest(struct rcap_qp *qp)
{
	if (qp->ops->rest && qp->state == RCAP_ESTABLISHED)
		qp->ops->rest(qp);
}

int rcap_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	     unsigned rights, struct rcap_mr *mr)
{
	if (qp->state >= RCAP_CLOSING)
		return ERR_WRONG_STATE;
	if (memory->len == 0 || base > UINT64_MAX - memory->len)
		return ERR_RANGE;
	return qp->ops->reg(qp, memory, base, rights, mr);
}

void rcap_invalidate(struct rcap_qp *qp, struct rcap_mr *mr)
{
	if (qp->state != RCAP_CLOSED)
		qp->ops->invalidate(qp, mr);
}

void rcap_disconnect(struct rcap_qp *qp)
{
	rcap_disconnect_after(qp, 0);
}

void rcap_disconnect_after(struct rcap_qp *qp, xtime grace)
{
	if (qp->state < RCAP_CLOSING)
		qp->ops->disconnect(qp, grace);
}

void rcap_terminate(struct rcap_qp *qp, int err, const char *why)
{
	if (qp->state <= RCAP_CLOSING)
		qp->ops->terminate(qp, err, why);
}
