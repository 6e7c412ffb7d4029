/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lane.c: writes to a buffered file. Where the file system writes to the page
 * cache without waiting (xfs, btrfs), the worker does it. Elsewhere a helper
 * thread carries out all writes of a turn one after another: Linux lets one
 * thread at a time write to a file, so a thread for each write only adds
 * switches.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "backstore/uring/file.h"

/* One helper has at most this much, then the responses go out. */
#define BATCH_BYTES (512u << 10)
#define BATCH_MAX   64

/* The lane of one worker. Only the helper accesses batch while busy is set. */
struct bsf_lane {
	struct bs_file *file;
	struct io_loop *loop;
	struct io_defer start;
	/* of bsf_step.op.link: wait for a helper; a helper has them */
	struct list queue, batch;
	struct io_file_op call;
	bool busy;
	bool may_wait; /* a write must not be tried without waiting */
};

static struct io_file_op *op_of(struct list *link)
{
	return list_entry(link, struct io_file_op, link);
}

/* is_written_now: the page cache has taken the whole write without waiting. A
 * write that it took in part is repeated whole. While a helper writes, it has
 * the lock of the file. */
static bool is_written_now(struct bsf_lane *lane, const struct io_file_op *op)
{
	ssize_t n, whole = (ssize_t)bufv_of(op->iov, op->niov).len;

	if (lane->may_wait || lane->busy || !list_empty(&lane->queue))
		return false;
	n = pwritev2(lane->file->fd, op->iov, (int)op->niov, (off_t)op->off,
		     RWF_NOWAIT);
	if (n < 0 && errno != EAGAIN)
		lane->may_wait = true;
	return n == whole;
}

/* write_batch runs on a helper thread. */
static int64_t write_batch(struct io_file_op *call)
{
	struct bsf_lane *lane = container_of(call, struct bsf_lane, call);
	struct list *n;

	for (n = lane->batch.next; n != &lane->batch; n = n->next) {
		struct io_file_op *op = op_of(n);

		do
			op->result = pwritev2(lane->file->fd, op->iov,
					      (int)op->niov, (off_t)op->off, 0);
		while (op->result < 0 && errno == EINTR);
		if (op->result < 0)
			op->result = -errno;
	}
	return 0;
}

static void begin_batch(struct bsf_lane *lane);

static void batch_written(struct io_file_op *call, int64_t result)
{
	struct bsf_lane *lane = container_of(call, struct bsf_lane, call);
	struct list ended, *n;

	list_init(&ended);
	while ((n = list_pop_front(&lane->batch)))
		list_push_back(&ended, n);
	lane->busy = false;
	begin_batch(lane);
	while ((n = list_pop_front(&ended))) {
		struct io_file_op *op = op_of(n);

		/* result: no helper could be started */
		op->done(op, result ? result : op->result);
	}
}

static void begin_batch(struct bsf_lane *lane)
{
	size_t bytes = 0;
	struct list *n;

	if (lane->busy)
		return;
	for (int i = 0; i < BATCH_MAX && bytes < BATCH_BYTES &&
			(n = list_pop_front(&lane->queue));
	     i++) {
		bytes += bufv_of(op_of(n)->iov, op_of(n)->niov).len;
		list_push_back(&lane->batch, n);
	}
	if (list_empty(&lane->batch))
		return;
	lane->busy = true;
	io_file_submit(lane->loop, &lane->call);
}

/* The end of a turn: all its writes are in the queue. */
static void start_lane(struct io_defer *d)
{
	begin_batch(container_of(d, struct bsf_lane, start));
}

void bsf_write(struct bsf_step *s,
	       void (*done)(struct io_file_op *op, int64_t result))
{
	struct bsf_lane *lane;

	assert(s->req->worker < s->file->nloops);
	lane = &s->file->lanes[s->req->worker];
	if (is_written_now(lane, &s->op)) {
		done(&s->op, (int64_t)bufv_of(s->op.iov, s->op.niov).len);
		return;
	}
	s->op.done = done;
	list_push_back(&lane->queue, &s->op.link);
	io_loop_defer(lane->loop, &lane->start);
}

int bsf_lanes_init(struct bs_file *f)
{
	f->lanes = calloc(f->nloops, sizeof(*f->lanes));
	if (!f->lanes)
		return -ENOMEM;
	for (unsigned i = 0; i < f->nloops; i++) {
		struct bsf_lane *lane = &f->lanes[i];

		lane->file = f;
		lane->loop = f->loops[i];
		lane->start.run = start_lane;
		list_init(&lane->start.link);
		list_init(&lane->queue);
		list_init(&lane->batch);
		lane->call.opcode = IO_FILE_CALL;
		lane->call.call = write_batch;
		lane->call.done = batch_written;
	}
	return 0;
}

void bsf_lanes_fini(struct bs_file *f)
{
	for (unsigned i = 0; f->lanes && i < f->nloops; i++)
		assert(!f->lanes[i].busy && list_empty(&f->lanes[i].queue));
	free(f->lanes);
}
