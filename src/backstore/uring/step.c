/* SPDX-License-Identifier: BSD-2-Clause */
/* step.c: one operation of a request, and the end of the request. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "backstore/uring/file.h"
#include "base/err.h"

/* err_of_errno is the only place that maps an error of a call to an error of
 * the store. */
static int err_of_errno(int64_t err)
{
	switch (-err) {
	case 0:
		return 0;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return ERR_NO_SPACE;
	case EROFS:
	case EPERM:
		return ERR_READ_ONLY;
	case ENOMEM:
		return ERR_NOMEM;
	default:
		return ERR_MEDIUM;
	}
}

void bsf_finish(struct bsf_step *s, int64_t result)
{
	struct bs_req *req = s->req;

	free(s->bounce);
	s->bounce = NULL;
	bs_complete(req, err_of_errno(result));
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
