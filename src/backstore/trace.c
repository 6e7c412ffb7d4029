/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.c: a filter that reports every request at its completion. */
#include <stdlib.h>

#include "backstore/backstore.h"
#include "backstore/filter.h"
#include "base/bytes.h"

struct bs_trace {
	struct bs bs;
	struct bs *next;
	void (*fn)(void *arg, const struct bs_req *req);
	void *arg;
};

static struct bs_trace *trace_of(struct bs *b)
{
	return container_of(b, struct bs_trace, bs);
}

static void trace_back(void *arg, struct bs_req *req)
{
	struct bs_trace *t = arg;

	t->fn(t->arg, req);
	bs_complete(req, req->result);
}

static void trace_submit(struct bs *b, struct bs_req *req)
{
	struct bs_trace *t = trace_of(b);

	bs_req_push(req, trace_back, t);
	bs_forward(t->next, req);
}

static void trace_close(struct bs *b)
{
	struct bs_trace *t = trace_of(b);

	bs_close(t->next);
	free(t);
}

static const struct bs_ops trace_ops = {
	.submit = trace_submit,
	.lend = bs_lend_unsupported,
	.close = trace_close,
};

struct bs *bs_trace_new(struct bs *next,
			void (*fn)(void *arg, const struct bs_req *req),
			void *arg)
{
	struct bs_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	bs_filter_init(&t->bs, &trace_ops, next);
	t->next = next;
	t->fn = fn;
	t->arg = arg;
	return &t->bs;
}
