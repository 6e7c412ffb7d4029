/* SPDX-License-Identifier: BSD-2-Clause */
/* step.c: one operation of a request, and the end of the request. */
#include <assert.h>
#include <stdlib.h>

#include "backstore/uring/file.h"

void bsf_finish(struct bsf_step *s, int64_t result)
{
	struct bs_req *req = s->req;

	free(s->bounce);
	s->bounce = NULL;
	bs_complete(req, bs_err_of_errno(result));
}

void bsf_go(struct bsf_step *s,
	    void (*done)(struct io_file_op *op, int64_t result))
{
	assert(s->req->worker < s->file->nloops);
	s->op.fd = s->file->fd;
	s->op.direct = s->file->direct;
	s->op.done = done;
	io_file_submit(s->file->loops[s->req->worker], &s->op);
}
