/* SPDX-License-Identifier: BSD-2-Clause */
/* file.h: the inside of the file backstore. Private to this room. */
#ifndef BACKSTORE_URING_FILE_H
#define BACKSTORE_URING_FILE_H

#include <assert.h>

#include "backstore/uring/bs_file.h"
#include "base/bytes.h"

/* Zeros to write from; also the most that goes through one bounce buffer. */
#define BSF_CHUNK ((size_t)1 << 20)

/* Read-only after open, so that every worker may use it. */
struct bs_file {
	struct bs bs;
	int fd;
	bool direct;	    /* fd is O_DIRECT */
	uint32_t mem_align; /* what memory must be aligned to then */
	void *zeros;	    /* BSF_CHUNK bytes, page aligned, never written */
	struct io_loop **loops;
	unsigned nloops;
};

/* How far a request is; in bs_req.priv. */
struct bsf_step {
	struct io_file_op op;
	struct bs_file *file;
	struct bs_req *req;
	uint64_t moved;	  /* bytes of the request that are done */
	void *bounce;	  /* NULL: the request's own memory is used */
	struct iovec iov; /* of bounce or zeros */
	unsigned attempt; /* zero.c: which way is being tried */
};

static_assert(sizeof(struct bsf_step) <= BS_REQ_PRIVATE, "fits a request");

static inline struct bs_file *bsf_of(struct bs *b)
{
	return container_of(b, struct bs_file, bs);
}

static inline struct bsf_step *bsf_step_of_op(struct io_file_op *op)
{
	return container_of(op, struct bsf_step, op);
}

/* bs_file.c: hands the step's op to the loop of the request's worker. */
void bsf_go(struct bsf_step *s,
	    void (*done)(struct io_file_op *op, int64_t result));
/* Ends the request; result is 0 or -Exxx. */
void bsf_finish(struct bsf_step *s, int64_t result);
/* fdatasync, then finish. */
void bsf_flush(struct bsf_step *s);

/* zero.c: BS_ZERO and BS_UNMAP. */
void bsf_zero(struct bsf_step *s);

extern const struct bs_ops bsf_ops;

#endif
