/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_post.c: requests, receives and memory of RDMA connections. */
#include <assert.h>
#include <string.h>

#include "lib/rdma.h"

/* What lies in the `library` part of the caller's structs. */
struct lib_wr {
	struct rcap_wr wr;
	struct iser_rdma_wr *user;
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
	struct iser_rdma_wr *user = container_of(wr, struct lib_wr, wr)->user;

	(void)arg;
	user->err = lib_rdma_error(err);
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
	user->done(user);
}

/* ---- posting ---- */

#define CHAIN 32

static void fill(struct lib_wr *l, struct iser_rdma_wr *user)
{
	static const enum rcap_op ops[] = {
		[ISER_RDMA_SEND] = RCAP_SEND,
		[ISER_RDMA_WRITE] = RCAP_WRITE,
		[ISER_RDMA_READ] = RCAP_READ,
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
}

static int check(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
		 unsigned n)
{
	if (!c->iwarp || rcap_state(iwarp_qp(c->iwarp)) != RCAP_ESTABLISHED)
		return lib_fail(c->ctx, ISER_E_CLOSED,
				"RDMA connection with %s: not established",
				c->peer[0] ? c->peer : c->host);
	for (unsigned i = 0; i < n; i++)
		if ((unsigned)wr[i]->op > ISER_RDMA_READ ||
		    bufv_of(wr[i]->iov, wr[i]->niov).len > UINT32_MAX)
			return lib_fail(c->ctx, ISER_E_INVALID,
					"RDMA request %u of %u: not an "
					"operation, or longer than 4 GiB",
					i + 1, n);
	return 0;
}

int iser_rdma_post(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
		   unsigned n)
{
	int err = check(c, wr, n);

	while (n > 0 && !err) {
		struct rcap_wr *chain[CHAIN];
		unsigned k = MIN(n, (unsigned)CHAIN);

		for (unsigned i = 0; i < k; i++) {
			struct lib_wr *l = (void *)wr[i]->library;

			fill(l, wr[i]);
			chain[i] = &l->wr;
		}
		/* posting calls nobody back: what was checked still holds */
		err = lib_rdma_error(rcap_post(iwarp_qp(c->iwarp), chain, k));
		wr += k;
		n -= k;
	}
	return err;
}

int iser_rdma_post_recv(struct iser_rdma *c, struct iser_rdma_recv *r)
{
	struct lib_recv *l = (void *)r->library;

	l->user = r;
	l->recv.buf = r->buf;
	l->recv.cap = r->size;
	l->recv.len = 0;
	if (c->state == RDMA_CONNECTING) {
		list_push_back(&c->early, &l->recv.link);
		return 0;
	}
	if (c->iwarp && !rcap_post_recv(iwarp_qp(c->iwarp), &l->recv))
		return 0;
	return lib_fail(c->ctx, ISER_E_CLOSED,
			"RDMA connection with %s: it has ended", c->peer);
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
	*mr = (struct iser_rdma_mr){ .base = base, .len = v.len };
	if (c->iwarp)
		err = rcap_reg(iwarp_qp(c->iwarp), &v, base, wanted, &r);
	if (err)
		return lib_fail(c->ctx, lib_rdma_error(err),
				"registering %zu bytes of memory: %s", v.len,
				err_str(err));
	mr->stag = r.stag;
	memcpy(mr->library, &r.provider, sizeof(r.provider));
	return 0;
}

void iser_rdma_invalidate(struct iser_rdma *c, struct iser_rdma_mr *mr)
{
	struct rcap_mr r = { .stag = mr->stag,
			     .base = mr->base,
			     .len = mr->len };

	memcpy(&r.provider, mr->library, sizeof(r.provider));
	if (c->iwarp && mr->stag)
		rcap_invalidate(iwarp_qp(c->iwarp), &r);
	mr->stag = 0;
}
