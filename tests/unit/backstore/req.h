/* SPDX-License-Identifier: BSD-2-Clause */
/* req.h: a request that is submitted and counted. */
#ifndef TESTS_BACKSTORE_REQ_H
#define TESTS_BACKSTORE_REQ_H

#include "backstore/backstore.h"

struct test_req {
	struct bs_req req; /* first: done casts back */
	struct iovec iov;
	unsigned done;
};

static inline void test_req_done(struct bs_req *req)
{
	((struct test_req *)(void *)req)->done++;
}

/* test_submit submits a request; data may be NULL. */
static inline void test_submit(struct bs *b, struct test_req *t, enum bs_op op,
			       unsigned flags, uint64_t off, uint64_t len,
			       void *data)
{
	*t = (struct test_req){
		.iov = { data, len },
		.req = { .op = op,
			 .flags = flags,
			 .off = off,
			 .len = len,
			 .done = test_req_done },
	};
	t->req.data = bufv_of(&t->iov, data ? 1 : 0);
	bs_submit(b, &t->req);
}

#endif
