/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_rcap.c: see fake_rcap.h. */
#include "sim/fake_rcap.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/err.h"

static void require(bool ok)
{
	if (!ok)
		abort();
}

static struct fake_rcap *fake_rcap_of(struct rcap_qp *qp)
{
	return container_of(qp, struct fake_rcap, qp);
}

/* ---- regions ---- */

void fake_rcap_remote(struct fake_rcap *f, uint32_t stag, uint64_t base,
		      void *buf, size_t n)
{
	const struct sim_region wanted = { .stag = stag,
					   .base = base,
					   .rights = RCAP_REMOTE_READ |
						     RCAP_REMOTE_WRITE };
	struct sim_region *r;

	require(!region_find(f->remote, FAKE_REGIONS, stag));
	r = region_add(f->remote, FAKE_REGIONS, &wanted);
	require(r);
	f->pieces[r - f->remote] = (struct iovec){ buf, n };
	r->memory = bufv_of(&f->pieces[r - f->remote], 1);
}

int fake_rcap_peer_write(struct fake_rcap *f, uint32_t stag, uint64_t to,
			 const void *bytes, size_t n)
{
	struct sim_region *r = region_reach(f->local, FAKE_REGIONS, stag, to, n,
					    RCAP_REMOTE_WRITE);

	if (!r)
		return ERR_ACCESS;
	bufv_copy_in(&r->memory, to - r->base, bytes, n);
	return 0;
}

int fake_rcap_peer_read(struct fake_rcap *f, uint32_t stag, uint64_t to,
			void *bytes, size_t n)
{
	struct sim_region *r = region_reach(f->local, FAKE_REGIONS, stag, to, n,
					    RCAP_REMOTE_READ);

	if (!r)
		return ERR_ACCESS;
	bufv_copy_out(&r->memory, to - r->base, bytes, n);
	return 0;
}

unsigned fake_rcap_valid(const struct fake_rcap *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		n += f->local[i].valid;
	return n;
}

/* ---- the provider's table ---- */

static int accept_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	struct fake_rcap *f = fake_rcap_of(qp);

	f->accepted = true;
	f->private_len = MIN(cm->private_len, sizeof(f->private_data));
	if (f->private_len)
		memcpy(f->private_data, cm->private_data, f->private_len);
	f->accept_ird = cm->ird;
	f->accept_ord = cm->ord;
	return 0;
}

static int reject_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	(void)cm;
	fake_rcap_of(qp)->rejected = true;
	return 0;
}

static uint32_t sum_of_request(const struct rcap_wr *wr)
{
	if (wr->op == RCAP_READ || (wr->flags & RCAP_UNSTABLE))
		return 0;
	return bufv_crc32c(&wr->data, 0, wr->data.len, CRC32C_SEED);
}

static unsigned reads_out(const struct fake_rcap *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->nposted; i++)
		n += f->posted[i]->op == RCAP_READ;
	return n;
}

static void post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	struct fake_rcap *f = fake_rcap_of(qp);

	f->chains += n > 1;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < f->nposted; k++)
			require(f->posted[k] != wr[i]);
		require(f->nposted < FAKE_POSTED);
		f->sums[f->nposted] = sum_of_request(wr[i]);
		f->posted[f->nposted++] = wr[i];
	}
	f->most_reads = MAX(f->most_reads, reads_out(f));
	require(reads_out(f) <= f->qp.ord);
}

static void post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	struct fake_rcap *f = fake_rcap_of(qp);

	list_for_each(it, &f->recvs)
		require(it != &r->link);
	r->len = 0;
	r->solicited = r->invalidated = false;
	list_push_back(&f->recvs, &r->link);
	f->nrecvs++;
}

static int reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	       unsigned rights, struct rcap_mr *mr)
{
	struct fake_rcap *f = fake_rcap_of(qp);
	const struct sim_region wanted = { .stag = f->next_stag + 0x101,
					   .base = base,
					   .rights = rights,
					   .memory = *memory };

	if (f->fail_regs) {
		f->fail_regs--;
		return ERR_BUSY;
	}
	f->next_stag = wanted.stag;
	return region_register(f->local, FAKE_REGIONS, &wanted, mr);
}

static void invalidate(struct rcap_qp *qp, struct rcap_mr *mr)
{
	struct sim_region *r =
		region_find(fake_rcap_of(qp)->local, FAKE_REGIONS, mr->stag);

	if (r)
		r->valid = false;
}

static void disconnect(struct rcap_qp *qp, xtime grace)
{
	fake_rcap_of(qp)->grace = grace;
	fake_rcap_of(qp)->disconnected = true;
	qp->state = RCAP_CLOSING;
}

static void terminate(struct rcap_qp *qp, int err, const char *why)
{
	struct fake_rcap *f = fake_rcap_of(qp);

	if (!f->terminated) {
		f->term_err = err;
		f->term_why = why;
	}
	f->terminated = true;
	qp->state = RCAP_CLOSING;
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

/* ---- functions for tests ---- */

void fake_rcap_init(struct fake_rcap *f, uint16_t ird, uint16_t ord)
{
	memset(f, 0, sizeof(*f));
	f->qp.ops = &ops;
	f->qp.state = RCAP_STARTING;
	f->qp.ird = ird;
	f->qp.ord = ord;
	f->qp.send_inv = true;
	f->next_stag = 0x80001000;
	list_init(&f->recvs);
}

void fake_rcap_request(struct fake_rcap *f, const void *private_data,
		       size_t private_len)
{
	const struct rcap_cm cm = { .ird = f->qp.ird,
				    .ord = f->qp.ord,
				    .private_data = private_data,
				    .private_len = private_len };

	f->qp.state = RCAP_REQUESTED;
	f->qp.user->connect_request(f->qp.arg, &cm);
}

void fake_rcap_establish(struct fake_rcap *f, const void *private_data,
			 size_t private_len)
{
	const struct rcap_cm cm = { .ird = f->qp.ird,
				    .ord = f->qp.ord,
				    .private_data = private_data,
				    .private_len = private_len };

	f->qp.state = RCAP_ESTABLISHED;
	f->qp.user->established(f->qp.arg, &cm);
}

static int refuse(struct fake_rcap *f, int err, const char *why)
{
	fake_rcap_close(f, err, why);
	return err;
}

int fake_rcap_deliver(struct fake_rcap *f, const void *bytes, size_t n,
		      uint32_t stag)
{
	struct sim_region *region = region_find(f->local, FAKE_REGIONS, stag);
	struct rcap_recv *r;

	if (f->qp.state == RCAP_CLOSED)
		return ERR_CLOSED;
	if (list_empty(&f->recvs))
		return refuse(f, ERR_LIMIT, "no receive stands ready");
	if (stag && !region)
		return refuse(f, ERR_ACCESS, "invalidates what is not valid");
	r = list_entry(list_pop_front(&f->recvs), struct rcap_recv, link);
	f->nrecvs--;
	if (n > r->cap) {
		f->qp.user->received(f->qp.arg, r, ERR_ABORTED);
		return refuse(f, ERR_TOO_LONG, "a message beyond its receive");
	}
	if (region)
		region->valid = false;
	if (n)
		memcpy(r->buf, bytes, n);
	r->len = n;
	r->invalidated = stag != 0;
	r->stag = stag;
	f->qp.user->received(f->qp.arg, r, 0);
	return 0;
}

struct rcap_wr *fake_rcap_wr(const struct fake_rcap *f, unsigned i)
{
	return i < f->nposted ? f->posted[i] : NULL;
}

size_t fake_rcap_bytes(const struct rcap_wr *wr, void *to, size_t max)
{
	return bufv_copy_out(&wr->data, 0, to, max);
}

/* Executes an RDMA Write or Read in the peer's memory. */
static bool at_peer(struct fake_rcap *f, const struct rcap_wr *wr)
{
	struct sim_region *r = region_reach(f->remote, FAKE_REGIONS, wr->stag,
					    wr->to, wr->data.len, 0);

	if (wr->data.len == 0)
		return true; /* without a check */
	if (!r)
		return false;
	region_move(r, wr);
	return true;
}

static struct rcap_wr *take(struct fake_rcap *f)
{
	struct rcap_wr *wr = f->posted[0];

	require(f->sums[0] == sum_of_request(wr));
	f->nposted--;
	memmove(f->posted, f->posted + 1, f->nposted * sizeof(wr));
	memmove(f->sums, f->sums + 1, f->nposted * sizeof(f->sums[0]));
	return wr;
}

unsigned fake_rcap_complete(struct fake_rcap *f, unsigned n)
{
	unsigned done = 0;

	while (done < n && f->nposted && f->qp.state != RCAP_CLOSED) {
		struct rcap_wr *wr = f->posted[0];

		if (wr->op != RCAP_SEND && !at_peer(f, wr)) {
			require(f->lax);
			fake_rcap_close(f, ERR_ACCESS, "the peer refused");
			return done;
		}
		take(f);
		f->qp.user->wr_done(f->qp.arg, wr, 0);
		done++;
	}
	return done;
}

void fake_rcap_close(struct fake_rcap *f, int err, const char *why)
{
	struct list *n;

	if (f->qp.state == RCAP_CLOSED)
		return;
	f->qp.state = RCAP_CLOSED;
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		f->local[i].valid = false;
	while (f->nposted)
		f->qp.user->wr_done(f->qp.arg, take(f), ERR_ABORTED);
	while ((n = list_pop_front(&f->recvs)))
		f->qp.user->received(f->qp.arg,
				     list_entry(n, struct rcap_recv, link),
				     ERR_ABORTED);
	f->nrecvs = 0;
	f->qp.user->closed(f->qp.arg, f->terminated ? f->term_err : err,
			   f->terminated ? f->term_why : why);
}
