/* SPDX-License-Identifier: BSD-2-Clause */
/* file.h: internals of the file backstore. Private to this room. */
#ifndef BACKSTORE_URING_FILE_H
#define BACKSTORE_URING_FILE_H

#include <assert.h>
#include <pthread.h>

#include "backstore/uring/bs_file.h"
#include "base/bytes.h"

/* Size of the zeros to write from, and of a bounce buffer. */
#define BSF_CHUNK ((size_t)1 << 20)

/* Read-only after open, so that every worker may use it, except the lanes, which
 * belong to one worker each, and the flushes: one fdatasync at a time, which serves all flushes that waited when it began.
 * So a failure that the kernel reports to one flush only is counted before a
 * later flush can succeed. */
struct bs_file {
	struct bs bs;
	char *path;
	bool is_records; /* bs_file_config.grain: has no size of its own */
	int fd;
	bool direct;	    /* fd is O_DIRECT */
	bool asks_cache;    /* a read asks the page cache first */
	uint32_t mem_align; /* alignment of memory if direct */
	void *zeros;	    /* BSF_CHUNK bytes, page aligned, never written */
	struct io_loop **loops;
	unsigned nloops;
	struct bsf_lane *lanes; /* lane.c: one for each loop */
	/* flush.c */
	/* guards the members below; innermost lock */
	pthread_mutex_t flush_lock;
	bool flushing;
	struct list flushes; /* of bsf_step.op.link; wait for the next sync */
	struct list group;   /* the same; served by the sync in progress */
};

/* Progress of a request; in bs_req.priv. */
struct bsf_step {
	struct io_file_op op;
	struct bs_file *file;
	struct bs_req *req;
	uint64_t moved;	  /* bytes of the request that have been moved */
	void *bounce;	  /* NULL: the memory of the request is used */
	struct iovec iov; /* of bounce or zeros */
	unsigned attempt; /* zero.c: index of the method in use */
	/* error of a write with RWF_DSYNC that is repeated without */
	int64_t failure;
	struct io_post post; /* flush.c: returns to the worker of the request */
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

/* step.c: bsf_go submits the step's op to the loop of the request's
 * worker. */
void bsf_go(struct bsf_step *s,
	    void (*done)(struct io_file_op *op, int64_t result));
/* bsf_finish completes the request; result is 0 or -Exxx. */
void bsf_finish(struct bsf_step *s, int64_t result);
/* lane.c: bsf_write submits the step's op, a write to a buffered file. done is
 * called at once if the page cache takes the data without waiting. */
void bsf_write(struct bsf_step *s,
	       void (*done)(struct io_file_op *op, int64_t result));
/* bsf_lanes_init: 0 or -ENOMEM; bsf_lanes_fini frees what there is. */
int bsf_lanes_init(struct bs_file *f);
void bsf_lanes_fini(struct bs_file *f);
/* flush.c: bsf_flush does an fdatasync, then completes the request. */
void bsf_flush(struct bsf_step *s);
void bsf_flush_init(struct bs_file *f);
void bsf_flush_fini(struct bs_file *f);

/* zero.c: bsf_zero carries out BS_ZERO and BS_UNMAP. */
void bsf_zero(struct bsf_step *s);

extern const struct bs_ops bsf_ops;

#endif
