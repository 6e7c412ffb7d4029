/* SPDX-License-Identifier: BSD-2-Clause */
/* fault.c: a filter that makes chosen requests fail. Single worker. */
#include <stdlib.h>

#include "backstore/backstore.h"
#include "backstore/filter.h"
#include "base/bytes.h"

struct bs_fault {
	struct bs bs;
	struct bs *next;
	unsigned op_mask;
	unsigned countdown; /* 0: no further failure */
	unsigned period;
	int err;
};

static struct bs_fault *fault_of(struct bs *b)
{
	return container_of(b, struct bs_fault, bs);
}

/* fails_now counts req; true: this request fails. */
static bool fails_now(struct bs_fault *f, const struct bs_req *req)
{
	if (!(f->op_mask & BIT(req->op)) || f->countdown == 0)
		return false;
	if (--f->countdown > 0)
		return false;
	f->countdown = f->period;
	return true;
}

static void fault_submit(struct bs *b, struct bs_req *req)
{
	struct bs_fault *f = fault_of(b);

	if (!fails_now(f, req)) {
		bs_forward(f->next, req);
		return;
	}
	if (req->op == BS_FLUSH)
		bs_flush_failed(b);
	bs_complete(req, f->err);
}

static void fault_close(struct bs *b)
{
	struct bs_fault *f = fault_of(b);

	bs_close(f->next);
	free(f);
}

static const struct bs_ops fault_ops = {
	.submit = fault_submit,
	.lend = bs_lend_unsupported,
	.close = fault_close,
};

struct bs *bs_fault_new(struct bs *next, unsigned op_mask, unsigned nth,
			unsigned period, int err)
{
	struct bs_fault *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	bs_filter_init(&f->bs, &fault_ops, next);
	if (!f->bs.failures[0]) /* a store of memory has no counter */
		f->bs.failures[0] = &f->bs.own_failures;
	f->next = next;
	f->op_mask = op_mask;
	f->countdown = nth;
	f->period = period;
	f->err = err;
	return &f->bs;
}
