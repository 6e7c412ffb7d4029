/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zero.c: BS_ZERO and BS_UNMAP. The methods are tried in turn, cheapest first;
 * the last one, writing zeros, always works. On a block device fallocate does
 * the same as BLKZEROOUT.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/uio.h>

#include "backstore/uring/file.h"

#define PUNCH	    (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO	    (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)
#define WRITE_ZEROS (-1)

static const int unmap_methods[] = { PUNCH, WRITE_ZEROS };
static const int zero_methods[] = { ZERO, WRITE_ZEROS };
static const int zero_or_unmap_methods[] = { PUNCH, ZERO, WRITE_ZEROS };

static const int *methods_of(const struct bs_req *req)
{
	if (req->op == BS_UNMAP)
		return unmap_methods;
	return req->flags & BS_MAY_UNMAP ? zero_or_unmap_methods : zero_methods;
}

static void zeroed(struct bsf_step *s)
{
	if (s->req->flags & BS_FUA)
		bsf_flush(s);
	else
		bsf_finish(s, 0);
}

static void write_zeros(struct bsf_step *s);

static void zeros_written(struct io_file_op *op, int64_t result)
{
	struct bsf_step *s = bsf_step_of_op(op);

	if (result <= 0) {
		bsf_finish(s, result ? result : -EIO);
		return;
	}
	s->moved += (uint64_t)result;
	if (s->moved == s->req->len)
		zeroed(s);
	else
		write_zeros(s);
}

static void write_zeros(struct bsf_step *s)
{
	uint64_t left = s->req->len - s->moved;

	s->iov = (struct iovec){ s->file->zeros, MIN(left, BSF_CHUNK) };
	s->op.opcode = IO_FILE_WRITE;
	s->op.flags = 0;
	s->op.off = s->req->off + s->moved;
	s->op.iov = &s->iov;
	s->op.niov = 1;
	bsf_go(s, zeros_written);
}

static bool is_unsupported(int64_t err)
{
	return err == -EOPNOTSUPP || err == -ENOSYS || err == -EINVAL ||
	       err == -ENODEV;
}

static void try_method(struct bsf_step *s);

static void method_tried(struct io_file_op *op, int64_t result)
{
	struct bsf_step *s = bsf_step_of_op(op);

	if (result == 0) {
		zeroed(s);
	} else if (is_unsupported(result)) {
		s->attempt++;
		try_method(s);
	} else {
		bsf_finish(s, result);
	}
}

static void try_method(struct bsf_step *s)
{
	int method = methods_of(s->req)[s->attempt];

	if (method == WRITE_ZEROS) {
		write_zeros(s);
		return;
	}
	s->op.opcode = IO_FILE_FALLOCATE;
	s->op.flags = method;
	s->op.off = s->req->off;
	s->op.len = s->req->len;
	bsf_go(s, method_tried);
}

void bsf_zero(struct bsf_step *s)
{
	s->attempt = 0;
	try_method(s);
}
