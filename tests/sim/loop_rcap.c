/* SPDX-License-Identifier: BSD-2-Clause */
/* loop_rcap.c: see loop_rcap.h. */
#include "sim/loop_rcap.h"

#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"

static struct loop_end *loop_end_of(struct rcap_qp *qp)
{
	return container_of(qp, struct loop_end, qp);
}

static int accept_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	struct loop_end *e = loop_end_of(qp);

	(void)cm;
	qp->state = RCAP_ESTABLISHED;
	e->peer->qp.state = RCAP_ESTABLISHED;
	e->peer->qp.user->established(e->peer->qp.arg, cm);
	qp->user->established(qp->arg, cm);
	return 0;
}

static int reject_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	(void)cm;
	loop_end_of(qp)->ending = true;
	return 0;
}

static void post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		list_push_back(&loop_end_of(qp)->sq, &wr[i]->link);
}

static void post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	list_push_back(&loop_end_of(qp)->recvs, &r->link);
}

static int reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	       unsigned rights, struct rcap_mr *mr)
{
	struct loop_end *e = loop_end_of(qp);

	const struct sim_region wanted = { .stag = ++e->next_stag,
					   .base = base,
					   .rights = rights,
					   .memory = *memory };

	return region_register(e->regions, LOOP_REGIONS, &wanted, mr);
}

static void drop(struct loop_end *e, uint32_t stag)
{
	struct sim_region *r = region_find(e->regions, LOOP_REGIONS, stag);

	if (r)
		r->valid = false;
}

static void invalidate(struct rcap_qp *qp, struct rcap_mr *mr)
{
	drop(loop_end_of(qp), mr->stag);
}

static void disconnect(struct rcap_qp *qp, xtime grace)
{
	(void)grace;
	qp->state = RCAP_CLOSING;
	loop_end_of(qp)->ending = true;
}

static void terminate(struct rcap_qp *qp, int err, const char *why)
{
	(void)why;
	loop_end_of(qp)->err = err;
	disconnect(qp, 0);
}

static const struct rcap_ops ops = {
	.accept = accept_qp,
	.reject = reject_qp,
	.post = post,
	.post_recv = post_recv,
	.reg = reg,
	.invalidate = invalidate,
	.disconnect = disconnect,
	.terminate = terminate,
};

void loop_rcap_init(struct loop_rcap *l)
{
	memset(l, 0, sizeof(*l));
	for (unsigned i = 0; i < 2; i++) {
		struct loop_end *e = &l->end[i];

		e->peer = &l->end[1 - i];
		e->qp.ops = &ops;
		e->qp.ird = e->qp.ord = 4;
		e->qp.send_inv = e->qp.recv_inv = true;
		list_init(&e->sq);
		list_init(&e->recvs);
	}
}

/* ---- execution ---- */

static void send(struct loop_end *e, const struct rcap_wr *wr)
{
	struct loop_end *p = e->peer;
	struct list *n = list_pop_front(&p->recvs);
	struct rcap_recv *r;

	assert_non_null(n); /* the flow control of RFC 7145 §8.1 failed */
	r = list_entry(n, struct rcap_recv, link);
	assert_true(wr->data.len <= r->cap);
	r->len = bufv_copy_out(&wr->data, 0, r->buf, wr->data.len);
	r->invalidated = wr->flags & RCAP_INVALIDATE;
	r->stag = r->invalidated ? wr->stag : 0;
	if (r->invalidated)
		drop(p, wr->stag);
	p->qp.user->received(p->qp.arg, r, 0);
}

static void reach(struct loop_end *e, const struct rcap_wr *wr)
{
	struct sim_region *r = region_reach(
		e->peer->regions, LOOP_REGIONS, wr->stag, wr->to, wr->data.len,
		wr->op == RCAP_WRITE ? RCAP_REMOTE_WRITE : RCAP_REMOTE_READ);

	assert_non_null(r);
	region_move(r, wr);
}

static bool execute_first_request(struct loop_end *e)
{
	struct list *n = list_pop_front(&e->sq);
	struct rcap_wr *wr;

	if (!n)
		return false;
	wr = list_entry(n, struct rcap_wr, link);
	if (wr->op == RCAP_SEND)
		send(e, wr);
	else
		reach(e, wr);
	e->qp.user->wr_done(e->qp.arg, wr, 0);
	return true;
}

static void close_end(struct loop_end *e)
{
	struct list *n;

	if (e->qp.state == RCAP_CLOSED)
		return;
	e->qp.state = RCAP_CLOSED;
	while ((n = list_pop_front(&e->sq)))
		e->qp.user->wr_done(e->qp.arg,
				    list_entry(n, struct rcap_wr, link),
				    ERR_ABORTED);
	while ((n = list_pop_front(&e->recvs)))
		e->qp.user->received(e->qp.arg,
				     list_entry(n, struct rcap_recv, link),
				     ERR_ABORTED);
	e->qp.user->closed(e->qp.arg, e->err, e->err ? err_str(e->err) : "");
}

bool loop_rcap_run(struct loop_rcap *l, const uint8_t *private_data, size_t len)
{
	struct loop_end *p = &l->end[1];
	const struct rcap_cm cm = { .ird = 4,
				    .ord = 4,
				    .private_data = private_data,
				    .private_len = len };
	bool any = false;

	if (!l->started) {
		l->started = any = true;
		p->qp.state = RCAP_REQUESTED;
		p->qp.user->connect_request(p->qp.arg, &cm);
	}
	while (execute_first_request(&l->end[0]) ||
	       execute_first_request(&l->end[1]))
		any = true;
	if (l->end[0].ending || l->end[1].ending) {
		any |= l->end[0].qp.state != RCAP_CLOSED;
		close_end(&l->end[0]);
		close_end(&l->end[1]);
	}
	return any;
}
