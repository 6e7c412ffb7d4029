/* SPDX-License-Identifier: BSD-2-Clause */
/* post.c: requests, receives and memory of RDMA connections. */
#include <assert.h>
#include <string.h>

#include "lib/rdma/rdma.h"

/* The contents of the `library` members of the caller's structs. */
struct lib_wr {
	struct rcap_wr wr;
	struct iser_rdma_wr *user;
	struct rcap_atomic atomic;
};

struct lib_recv {
	struct rcap_recv recv;
	struct iser_rdma_recv *user;
};

static_assert(sizeof(struct lib_wr) <=
		      sizeof(((struct iser_rdma_wr *)NULL)->library),
	      "the public struct has room");
static_assert(sizeof(struct lib_recv) <=
		      sizeof(((struct iser_rdma_recv *)NULL)->library),
	      "the public struct has room");
static_assert(sizeof(void *) <= sizeof(((struct iser_rdma_mr *)NULL)->library),
	      "the public struct has room");

/* ---- up-calls ---- */

void lib_rdma_wr_done(void *arg, struct rcap_wr *wr, int err)
{
	struct lib_wr *l = container_of(wr, struct lib_wr, wr);
	struct iser_rdma_wr *user = l->user;

	(void)arg;
	user->err = lib_rdma_error(err);
	if (!err && l->wr.atomic)
		user->atomic->original = l->atomic.original;
	user->done(user);
}

void lib_rdma_received(void *arg, struct rcap_recv *r, int err)
{
	struct iser_rdma_recv *user =
		container_of(r, struct lib_recv, recv)->user;

	(void)arg;
	user->err = lib_rdma_error(err);
	user->len = r->len;
	user->solicited = r->solicited;
	user->invalidated = r->invalidated;
	user->stag = r->stag;
	user->is_immediate = r->is_immediate;
	user->immediate = r->immediate;
	user->done(user);
}

/* ---- posting ---- */

#define CHAIN 32 /* requests per rcap_post */

static void fill_request(struct lib_wr *l, struct iser_rdma_wr *user)
{
	static const enum rcap_op ops[] = {
		[ISER_RDMA_SEND] = RCAP_SEND,
		[ISER_RDMA_WRITE] = RCAP_WRITE,
		[ISER_RDMA_READ] = RCAP_READ,
		[ISER_RDMA_IMMEDIATE] = RCAP_IMMEDIATE,
		[ISER_RDMA_FETCH_ADD] = RCAP_FETCH_ADD,
		[ISER_RDMA_CMP_SWAP] = RCAP_CMP_SWAP,
	};
	unsigned flags = 0;

	if (user->op == ISER_RDMA_SEND && (user->flags & ISER_RDMA_SOLICITED))
		flags |= RCAP_SOLICITED;
	if (user->op == ISER_RDMA_SEND && (user->flags & ISER_RDMA_INVALIDATE))
		flags |= RCAP_INVALIDATE;
	l->user = user;
	l->wr.op = ops[user->op];
	l->wr.flags = flags;
	l->wr.data = bufv_of(user->iov, user->niov);
	l->wr.stag = user->stag;
	l->wr.to = user->to;
	l->wr.immediate = user->immediate;
	l->wr.atomic = NULL;
	if (user->op != ISER_RDMA_FETCH_ADD && user->op != ISER_RDMA_CMP_SWAP)
		return;
	l->atomic = (struct rcap_atomic){ .value = user->atomic->value,
					  .mask = user->atomic->mask,
					  .compare = user->atomic->compare,
					  .compare_mask =
						  user->atomic->compare_mask };
	l->wr.atomic = &l->atomic;
}

static bool is_possible(const struct iser_rdma *c,
			const struct iser_rdma_wr *wr)
{
	bool atomic =
		wr->op == ISER_RDMA_FETCH_ADD || wr->op == ISER_RDMA_CMP_SWAP;

	if ((unsigned)wr->op > ISER_RDMA_CMP_SWAP ||
	    (wr->op >= ISER_RDMA_IMMEDIATE && !c->qp->extended))
		return false;
	return bufv_of(wr->iov, wr->niov).len <= UINT32_MAX && LIB_UNUSED(wr) &&
	       (!atomic || (wr->atomic && LIB_UNUSED(wr->atomic)));
}

static int check_requests(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
			  unsigned n)
{
	if (!c->qp || rcap_state(c->qp) != RCAP_ESTABLISHED)
		return lib_fail(c->ctx, ISER_E_CLOSED,
				"RDMA connection with %s: not established",
				c->peer[0] ? c->peer : c->host);
	for (unsigned i = 0; i < n; i++)
		if (!is_possible(c, wr[i]))
			return lib_fail(c->ctx, ISER_E_INVALID,
					"RDMA request %u of %u: an operation "
					"that is not possible here, more than "
					"4 GiB, or a reserved member that is "
					"not 0",
					i + 1, n);
	return 0;
}

int iser_rdma_post(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
		   unsigned n)
{
	int err = check_requests(c, wr, n);

	while (n > 0 && !err) {
		struct rcap_wr *chain[CHAIN];
		unsigned k = MIN(n, (unsigned)CHAIN);

		for (unsigned i = 0; i < k; i++) {
			struct lib_wr *l = (void *)wr[i]->library;

			fill_request(l, wr[i]);
			chain[i] = &l->wr;
		}
		/* rcap_post calls no callback, so the checks stay valid */
		err = lib_rdma_error(rcap_post(c->qp, chain, k));
		wr += k;
		n -= k;
	}
	return err;
}

int iser_rdma_post_recv(struct iser_rdma *c, struct iser_rdma_recv *r)
{
	struct lib_recv *l = (void *)r->library;

	if (!LIB_UNUSED(r))
		return lib_fail(c->ctx, ISER_E_INVALID,
				"RDMA receive: a reserved member is not 0");
	l->user = r;
	l->recv.buf = r->buf;
	l->recv.cap = r->size;
	l->recv.len = 0;
	if (c->state == RDMA_CONNECTING) { /* lib_rdma_make posts it */
		list_push_back(&c->early, &l->recv.link);
		return 0;
	}
	if (c->qp && !rcap_post_recv(c->qp, &l->recv))
		return 0;
	return lib_fail(c->ctx, ISER_E_CLOSED,
			"RDMA connection with %s: closed", c->peer);
}

/* ---- memory ---- */

int iser_rdma_register(struct iser_rdma *c, struct iovec *iov, unsigned niov,
		       uint64_t base, unsigned rights, struct iser_rdma_mr *mr)
{
	struct bufv v = bufv_of(iov, niov);
	struct rcap_mr r = { 0 };
	unsigned wanted = 0;
	int err = ERR_WRONG_STATE;

	if (rights & ISER_RDMA_REMOTE_READ)
		wanted |= RCAP_REMOTE_READ;
	if (rights & ISER_RDMA_REMOTE_WRITE)
		wanted |= RCAP_REMOTE_WRITE;
	if (rights & ISER_RDMA_UNDEFINED)
		wanted |= RCAP_UNDEFINED;
	if (rights & ISER_RDMA_REMOTE_ATOMIC)
		wanted |= RCAP_REMOTE_ATOMIC;
	*mr = (struct iser_rdma_mr){ .base = base, .len = v.len };
	if (c->qp)
		err = rcap_reg(c->qp, &v, base, wanted, &r);
	if (err)
		return lib_fail(c->ctx, lib_rdma_error(err),
				"registering %zu bytes of memory: %s", v.len,
				err_str(err));
	mr->stag = r.stag;
	mr->base = r.base;
	memcpy(mr->library, &r.provider, sizeof(r.provider));
	return 0;
}

void iser_rdma_invalidate(struct iser_rdma *c, struct iser_rdma_mr *mr)
{
	struct rcap_mr r = { .stag = mr->stag,
			     .base = mr->base,
			     .len = mr->len };

	memcpy(&r.provider, mr->library, sizeof(r.provider));
	if (c->qp && mr->stag)
		rcap_invalidate(c->qp, &r);
	mr->stag = 0;
}
