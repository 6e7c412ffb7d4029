/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.c: a loop's helper threads, for calls that block. A thread starts when
 * an operation finds no idle one, and runs until the loop is freed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/loop.h"

struct io_pool {
	struct io_loop *loop;
	/* guards the members below; the only lock held, and briefly */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list queue, done; /* of io_file_op.link */
	unsigned nqueued, idle, nthreads;
	bool stop;
	pthread_t thread[IO_POOL_MAX];
};

static int64_t transfer_data(const struct io_file_op *op)
{
	int niov = (int)op->niov;
	off_t off = (off_t)op->off;

	if (op->opcode == IO_FILE_READ)
		return preadv2(op->fd, op->iov, niov, off, op->flags);
	return pwritev2(op->fd, op->iov, niov, off, op->flags);
}

static int64_t attempt_op(struct io_file_op *op)
{
	switch (op->opcode) {
	case IO_FILE_READ:
	case IO_FILE_WRITE:
		return transfer_data(op);
	case IO_FILE_SYNC:
		return fdatasync(op->fd);
	case IO_FILE_FALLOCATE:
		return fallocate(op->fd, op->flags, (off_t)op->off,
				 (off_t)op->len);
	case IO_FILE_CALL:
		break;
	}
	errno = EINVAL;
	return -1;
}

static int64_t perform_op(struct io_file_op *op)
{
	int64_t result;

	if (op->opcode == IO_FILE_CALL)
		return op->call(op);
	do
		result = attempt_op(op);
	while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : result;
}

/* next_op waits for an operation; NULL: the pool stops. The caller holds the
 * lock. */
static struct io_file_op *next_op(struct io_pool *p)
{
	struct list *n;

	while (!(n = list_pop_front(&p->queue)) && !p->stop) {
		p->idle++;
		pthread_cond_wait(&p->work, &p->lock);
		p->idle--;
	}
	if (!n)
		return NULL;
	p->nqueued--;
	return list_entry(n, struct io_file_op, link);
}

static void *helper_main(void *arg)
{
	struct io_pool *p = arg;
	const cpu_set_t *cpus = &p->loop->cpus;
	struct io_file_op *op;

	/* else, and after an error: those of the thread of the loop */
	if (CPU_COUNT(cpus))
		(void)sched_setaffinity(0, sizeof(*cpus), cpus);
	pthread_mutex_lock(&p->lock);
	while ((op = next_op(p))) {
		pthread_mutex_unlock(&p->lock);
		op->result = perform_op(op);
		pthread_mutex_lock(&p->lock);
		list_push_back(&p->done, &op->link);
		io_loop_wake(p->loop);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Helper threads block all signals: the program's own threads handle them. */
static int start_thread(struct io_pool *p)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&p->thread[p->nthreads], NULL, helper_main, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		p->nthreads++;
	return -err;
}

struct io_pool *io_pool_new(struct io_loop *l)
{
	struct io_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->loop = l;
	list_init(&p->queue);
	list_init(&p->done);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	return p;
}

/* enqueue_op returns 0, or -Exxx if no helper thread could be started. */
static int enqueue_op(struct io_pool *p, struct io_file_op *op)
{
	int err = 0;

	pthread_mutex_lock(&p->lock);
	if (p->nqueued >= p->idle && p->nthreads < IO_POOL_MAX)
		err = start_thread(p);
	if (p->nthreads > 0) {
		list_push_back(&p->queue, &op->link);
		p->nqueued++;
		pthread_cond_signal(&p->work);
		err = 0;
	}
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* No helper thread could be started: done is still called from the loop. */
static void fail_later(struct io_pool *p, struct io_file_op *op, int err)
{
	op->result = err;
	pthread_mutex_lock(&p->lock);
	list_push_back(&p->done, &op->link);
	pthread_mutex_unlock(&p->lock);
	io_loop_wake(p->loop);
}

void io_pool_submit(struct io_loop *l, struct io_file_op *op)
{
	int err = enqueue_op(l->pool, op);

	if (err)
		fail_later(l->pool, op, err);
}

static void move_list(struct list *from, struct list *to)
{
	struct list *n;

	while ((n = list_pop_front(from)))
		list_push_back(to, n);
}

void io_pool_reap(struct io_loop *l)
{
	struct io_pool *p = l->pool;
	struct list done, *n;

	list_init(&done);
	pthread_mutex_lock(&p->lock);
	move_list(&p->done, &done);
	pthread_mutex_unlock(&p->lock);
	while ((n = list_pop_front(&done))) {
		struct io_file_op *op = list_entry(n, struct io_file_op, link);

		io_file_complete(l, op, op->result);
	}
}

void io_pool_free(struct io_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->nthreads; i++)
		pthread_join(p->thread[i], NULL);
	io_pool_reap(p->loop); /* results of calls that no turn has collected */
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
