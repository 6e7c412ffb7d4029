/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uring.c: the back end on io_uring. A watch is a one-shot poll request; the
 * io_uring_enter of the next turn arms it again, which makes it
 * level-triggered. A file operation is one request.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/loop.h"

/* Low bits of user_data: the kind of a request. A file operation is known by
 * its address (which is aligned), a watch by its key. */
#define UD_FILE	  0u
#define UD_WATCH  1u
#define UD_IGNORE 2u
#define UD_MASK	  3u

static int open_ring(struct io_loop *l, unsigned flags)
{
	struct io_uring_params p = {
		.flags = flags | IORING_SETUP_CQSIZE,
		.cq_entries = IO_RING_CQ,
	};
	int err = io_uring_queue_init_params(IO_RING_SIZE, &l->ur.ring, &p);

	if (err)
		return err;
	if (!(p.features & IORING_FEAT_EXT_ARG)) { /* Linux < 5.11 */
		io_uring_queue_exit(&l->ur.ring);
		return -ENOSYS;
	}
	return 0;
}

/* The ring belongs to the thread that enters it first, which need not be the
 * thread that made it: the ring stays disabled until then. */
static int ur_init(struct io_loop *l)
{
	int err = open_ring(
		l, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			   IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED);

	l->ur.deferred = err == 0;
	l->ur.enabled = err != 0;
	if (err == -EINVAL) /* Linux < 6.1 */
		err = open_ring(l, 0);
	return err;
}

static void ur_fini(struct io_loop *l)
{
	io_uring_queue_exit(&l->ur.ring);
}

/* The threads of the kernel would have the CPUs of this thread (Linux < 5.14: they have). */
static void let_threads_run(struct io_loop *l)
{
	if (CPU_COUNT(&l->cpus))
		(void)syscall(SYS_io_uring_register, l->ur.ring.ring_fd,
			      IORING_REGISTER_IOWQ_AFF, &l->cpus,
			      sizeof(l->cpus));
}

static int enable_ring(struct io_loop *l)
{
	if (l->ur.enabled)
		return 0;
	/* liburing 2.3 declares a function for this but does not export it. */
	if (syscall(SYS_io_uring_register, l->ur.ring.ring_fd,
		    IORING_REGISTER_ENABLE_RINGS, NULL, 0) < 0)
		return -errno;
	l->ur.enabled = true;
	let_threads_run(l);
	return 0;
}

/* is_harmless: the next turn recovers from this result of io_uring_enter. */
static bool is_harmless(int err)
{
	return err >= 0 || err == -EINTR || err == -ETIME || err == -EAGAIN ||
	       err == -EBUSY;
}

static int submit_ring(struct io_loop *l)
{
	int err = enable_ring(l);

	if (!err)
		err = io_uring_submit_and_get_events(&l->ur.ring);
	return is_harmless(err) ? 0 : err;
}

/* room_for makes n entries free; false: not possible in this turn. */
static bool room_for(struct io_loop *l, unsigned n)
{
	if (io_uring_sq_space_left(&l->ur.ring) >= n)
		return true;
	submit_ring(l);
	return io_uring_sq_space_left(&l->ur.ring) >= n;
}

static void add_cancel(struct io_loop *l, struct io_watch *w)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ur.ring);

	io_uring_prep_poll_remove(sqe, io_watch_key(l, w) | UD_WATCH);
	io_uring_sqe_set_data64(sqe, UD_IGNORE);
	io_watch_new_key(l, w); /* its pending events are stale now */
	w->armed = 0;
}

static void add_poll(struct io_loop *l, struct io_watch *w)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ur.ring);

	io_uring_prep_poll_add(sqe, w->fd, io_watch_poll_mask(w->want));
	io_uring_sqe_set_data64(sqe, io_watch_key(l, w) | UD_WATCH);
	w->armed = w->want | IO_ARMED;
}

/* A poll request that waits for more events than w wants stays in place: at
 * worst it wakes the loop once in vain. */
static void arm_watch(struct io_loop *l, struct io_watch *w)
{
	if (w->armed && (w->armed & w->want) == w->want)
		return;
	if (w->armed)
		add_cancel(l, w);
	add_poll(l, w);
}

static void add_file(struct io_loop *l, struct io_file_op *op)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ur.ring);

	switch (op->opcode) {
	case IO_FILE_READ:
		io_uring_prep_readv2(sqe, op->fd, op->iov, op->niov, op->off,
				     op->flags);
		break;
	case IO_FILE_WRITE:
		io_uring_prep_writev2(sqe, op->fd, op->iov, op->niov, op->off,
				      op->flags);
		break;
	case IO_FILE_SYNC:
		io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC);
		break;
	case IO_FILE_FALLOCATE:
		io_uring_prep_fallocate(sqe, op->fd, op->flags, (off_t)op->off,
					(off_t)op->len);
		break;
	case IO_FILE_CALL: /* goes to the pool: ur_file */
		break;
	}
	io_uring_sqe_set_data64(sqe, (uintptr_t)op | UD_FILE);
}

/* fill_ring submits pending watches and file operations; those that find no
 * free entry wait for the next turn. */
static void fill_ring(struct io_loop *l)
{
	while (!list_empty(&l->rearm) && room_for(l, 2))
		arm_watch(l, list_entry(list_pop_front(&l->rearm),
					struct io_watch, link));
	while (!list_empty(&l->files) && room_for(l, 1))
		add_file(l, list_entry(list_pop_front(&l->files),
				       struct io_file_op, link));
}

static int ur_begin(struct io_loop *l)
{
	fill_ring(l);
	return io_uring_sq_ready(&l->ur.ring) ? submit_ring(l) : 0;
}

static bool ur_has_events(struct io_loop *l)
{
	/* With deferred task work the kernel posts no completion by itself. */
	return io_uring_cq_ready(&l->ur.ring) > 0 ||
	       (IO_URING_READ_ONCE(*l->ur.ring.sq.kflags) &
		(IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

static void watch_event(struct io_loop *l, uint64_t key, int res, bool alone)
{
	struct io_watch *w = io_watch_of_key(l, key);
	unsigned events;

	if (!w)
		return;
	w->armed = 0;
	if (!list_linked(&w->link))
		list_push_back(&l->rearm, &w->link);
	events = io_watch_events(w, res < 0 ? EPOLLERR : (uint32_t)res);
	if (!events)
		return;
	io_spin_saw(l, w, events, alone);
	w->ready(w, events);
}

static void dispatch_event(struct io_loop *l, uint64_t data, int res,
			   bool alone)
{
	switch (data & UD_MASK) {
	case UD_WATCH:
		watch_event(l, data & ~(uint64_t)UD_MASK, res, alone);
		break;
	case UD_FILE:
		io_file_complete(l, (struct io_file_op *)(uintptr_t)data, res);
		break;
	default:
		break;
	}
}

static int dispatch_events(struct io_loop *l)
{
	unsigned n = io_uring_cq_ready(&l->ur.ring);

	for (unsigned i = 0; i < n; i++) {
		struct io_uring_cqe *cqe;
		uint64_t data;
		int res;

		if (io_uring_peek_cqe(&l->ur.ring, &cqe))
			break;
		data = cqe->user_data;
		res = cqe->res;
		io_uring_cqe_seen(&l->ur.ring, cqe);
		dispatch_event(l, data, res, n == 1);
	}
	return (int)n;
}

static int enter_ring(struct io_loop *l, xtime timeout)
{
	struct __kernel_timespec ts = { .tv_sec = timeout / XTIME_S,
					.tv_nsec = timeout % XTIME_S };
	struct io_uring_cqe *cqe;
	int err = enable_ring(l);

	if (err)
		return err;
	fill_ring(l);
	if (timeout == 0)
		err = io_uring_submit_and_get_events(&l->ur.ring);
	else
		err = io_uring_submit_and_wait_timeout(
			&l->ur.ring, &cqe, 1,
			timeout == XTIME_NEVER ? NULL : &ts, NULL);
	return is_harmless(err) ? 0 : err;
}

static int ur_wait(struct io_loop *l, xtime timeout)
{
	int err = enter_ring(l, timeout);

	l->now = io_now_exact();
	return err ? err : dispatch_events(l);
}

static int ur_watch_add(struct io_loop *l, struct io_watch *w)
{
	if (fcntl(w->fd, F_GETFD) < 0)
		return -errno;
	list_push_back(&l->rearm, &w->link);
	return 0;
}

/* A poll request references the open file. It must end before the descriptor is
 * closed, or the peer gets no FIN and the port stays in use. */
static void ur_watch_del(struct io_loop *l, struct io_watch *w)
{
	if (!w->armed)
		return;
	if (room_for(l, 1))
		add_cancel(l, w);
	submit_ring(l);
}

static void ur_file(struct io_loop *l, struct io_file_op *op)
{
	if (op->opcode == IO_FILE_CALL)
		io_pool_submit(l, op);
	else
		list_push_back(&l->files, &op->link);
}

static int ur_fd(const struct io_loop *l)
{
	return l->ur.ring.ring_fd;
}

const struct io_backend_ops io_uring_ops = {
	.which = IO_URING,
	.polls_freely = true,
	.init = ur_init,
	.fini = ur_fini,
	.begin = ur_begin,
	.has_events = ur_has_events,
	.wait = ur_wait,
	.watch_add = ur_watch_add,
	.watch_del = ur_watch_del,
	.file = ur_file,
	.fd = ur_fd,
};
