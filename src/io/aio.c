/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aio.c: transfers with O_DIRECT for the epoll back end, by the asynchronous
 * I/O of Linux (io_submit), which machines that forbid io_uring usually permit.
 * An operation that would block goes to a helper thread.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "io/loop.h"

#define AIO_MAX	  512 /* operations in progress */
#define AIO_BATCH 64  /* operations of one system call */

struct io_aio {
	struct io_loop *loop;
	aio_context_t ctx;
	struct io_watch watch; /* an eventfd, written for each completion */
	unsigned in_progress;
};

static void complete(struct io_loop *l, const struct io_event *e)
{
	struct io_file_op *op = (struct io_file_op *)(uintptr_t)e->data;

	if (e->res == -EAGAIN)
		io_pool_submit(l, op);
	else
		io_file_complete(l, op, e->res);
}

static void events_ready(struct io_watch *w, unsigned events)
{
	struct io_aio *a = container_of(w, struct io_aio, watch);
	struct io_loop *l = a->loop;
	struct io_event e[AIO_BATCH];
	struct timespec none = { 0 };
	uint64_t count;
	long n;

	(void)events;
	if (read(w->fd, &count, sizeof(count)) < 0)
		return;
	do {
		n = syscall(SYS_io_getevents, a->ctx, 0, AIO_BATCH, e, &none);
		a->in_progress -= n > 0 ? (unsigned)n : 0;
		for (long i = 0; i < n; i++)
			complete(l, &e[i]);
	} while (n == AIO_BATCH);
}

static void prepare(const struct io_aio *a, struct iocb *c,
		    struct io_file_op *op)
{
	*c = (struct iocb){
		.aio_data = (uintptr_t)op,
		.aio_lio_opcode = op->opcode == IO_FILE_READ ? IOCB_CMD_PREADV
							     : IOCB_CMD_PWRITEV,
		.aio_rw_flags = op->flags | RWF_NOWAIT,
		.aio_fildes = (uint32_t)op->fd,
		.aio_buf = (uintptr_t)op->iov,
		.aio_nbytes = op->niov,
		.aio_offset = (int64_t)op->off,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)a->watch.fd,
	};
}

/* submit_batch takes up to AIO_BATCH operations off the list l->files; returns
 * false if Linux takes no more of them at present. */
static bool submit_batch(struct io_loop *l)
{
	struct iocb iocb[AIO_BATCH], *pointer[AIO_BATCH];
	struct list *at = l->files.next;
	unsigned n;
	long taken;

	for (n = 0; n < AIO_BATCH && at != &l->files; n++, at = at->next) {
		prepare(l->ep.aio, &iocb[n],
			list_entry(at, struct io_file_op, link));
		pointer[n] = &iocb[n];
	}
	taken = syscall(SYS_io_submit, l->ep.aio->ctx, (long)n, pointer);
	for (long i = 0; i < taken; i++)
		list_pop_front(&l->files);
	if (taken > 0) {
		l->ep.aio->in_progress += (unsigned)taken;
		return true;
	}
	if (errno == EAGAIN && l->ep.aio->in_progress)
		return false; /* the next completion makes room */
	/* A file system that does not know RWF_NOWAIT, or an error that a
	 * helper thread finds, too. */
	io_pool_submit(l, list_entry(list_pop_front(&l->files),
				     struct io_file_op, link));
	return true;
}

void io_aio_begin(struct io_loop *l)
{
	while (!list_empty(&l->files) && submit_batch(l))
		;
}

static struct io_aio *aio_new(struct io_loop *l)
{
	struct io_aio *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->loop = l;
	a->watch = (struct io_watch){
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.want = IO_IN,
		.ready = events_ready,
	};
	if (a->watch.fd < 0)
		goto out_free;
	if (syscall(SYS_io_setup, AIO_MAX, &a->ctx) < 0)
		goto out_close;
	if (io_watch_add(l, &a->watch))
		goto out_destroy;
	return a;

out_destroy:
	syscall(SYS_io_destroy, a->ctx);
out_close:
	close(a->watch.fd);
out_free:
	free(a);
	return NULL;
}

static bool has_aio(struct io_loop *l)
{
	if (!l->ep.aio && !l->ep.no_aio) {
		l->ep.aio = aio_new(l);
		l->ep.no_aio = !l->ep.aio;
	}
	return l->ep.aio != NULL;
}

bool io_aio_takes(struct io_loop *l, struct io_file_op *op)
{
	if (!op->direct || op->opcode > IO_FILE_WRITE || !has_aio(l))
		return false;
	list_push_back(&l->files, &op->link);
	return true;
}

void io_aio_fini(struct io_loop *l)
{
	struct io_aio *a = l->ep.aio;

	if (!a)
		return;
	io_watch_del(l, &a->watch);
	syscall(SYS_io_destroy, a->ctx);
	close(a->watch.fd);
	free(a);
}
