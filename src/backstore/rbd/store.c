/* SPDX-License-Identifier: BSD-2-Clause */
/* store.c: the record of an image that gateways share: requests, the thread, the
 * end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backstore/rbd/store.h"
#include "base/err.h"
#include "cluster/blob.h"

#define WATCH_PAUSE 1 /* seconds between attempts to watch again */

/* librados adds the offset of the first byte that differs. */
#define MISMATCH (-4095)

int bsrbd_store_err(int err)
{
	if (err <= MISMATCH)
		return ERR_AGAIN;
	switch (err) {
	case 0:
		return 0;
	case -ESHUTDOWN:
		return ERR_TERMINATED;
	case -EPERM:
	case -EACCES:
		return ERR_DENIED;
	case -ENOMEM:
		return ERR_NOMEM;
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return ERR_LIMIT;
	default:
		return ERR_RESET;
	}
}

/* ---- calls ---- */

static void put_store(struct bsrbd_store *s)
{
	bool last;

	pthread_mutex_lock(&s->mutex);
	last = --s->refs == 0;
	pthread_mutex_unlock(&s->mutex);
	if (!last)
		return;
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

static void free_call(struct bsrbd_call *c)
{
	struct bsrbd_store *s = c->s;

	if (c->reply)
		rados_buffer_free(c->reply);
	free(c->data);
	free(c->blob);
	free(c);
	put_store(s);
}

struct bsrbd_call *bsrbd_call_new(struct bsrbd_store *s,
				  void (*done)(struct bsrbd_call *c))
{
	struct bsrbd_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->s = s;
	c->done = done;
	list_init(&c->link);
	list_init(&c->job);
	pthread_mutex_lock(&s->mutex);
	s->refs++;
	s->busy++;
	pthread_mutex_unlock(&s->mutex);
	return c;
}

/* On worker 0. */
static void call_ended(struct io_post *p)
{
	struct bsrbd_call *c = container_of(p, struct bsrbd_call, post);
	struct bsrbd_store *s = c->s;

	list_del(&c->link);
	if (!s->ended) {
		if (c->why[0] && s->store.events.say)
			s->store.events.say(s->store.events.arg, c->why);
		if (c->result == ERR_TERMINATED)
			bsrbd_store_fenced(s);
		if (!s->ended)
			c->done(c);
	}
	free_call(c);
}

void bsrbd_call_end(struct bsrbd_call *c)
{
	struct bsrbd_store *s = c->s;
	bool closed;

	c->post.run = call_ended;
	pthread_mutex_lock(&s->mutex);
	closed = s->closed;
	s->busy--;
	s->notifies -= c->notifies;
	pthread_cond_signal(&s->work);
	if (!closed)
		io_loop_post(s->loop, &c->post);
	pthread_mutex_unlock(&s->mutex);
	if (closed)
		free_call(c);
}

void bsrbd_call_submit(struct bsrbd_call *c)
{
	struct bsrbd_store *s = c->s;

	pthread_mutex_lock(&s->mutex);
	list_push_back(&s->jobs, &c->job);
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->mutex);
}

void bsrbd_call_fail(struct bsrbd_call *c, int result)
{
	c->result = result;
	bsrbd_call_end(c);
}

void bsrbd_store_fenced(struct bsrbd_store *s)
{
	bsrbd_cluster_fenced(s->image->cluster);
	if (s->told_fenced || !s->store.events.fenced)
		return;
	s->told_fenced = true;
	s->store.events.fenced(s->store.events.arg);
}

/* ---- requests ---- */

static void end_request_with(struct cluster_request *r, int result)
{
	r->result = result;
	r->done(r);
}

static void end_note_with(struct cluster_note *n, int result)
{
	n->nacks = 0;
	n->result = result;
	n->done(n);
}

static void report_failed(struct io_post *p)
{
	struct bsrbd_store *s = container_of(p, struct bsrbd_store, fail);
	struct list *n;

	s->failing = false;
	while (!s->ended && (n = list_pop_front(&s->failed)))
		end_request_with(list_entry(n, struct cluster_request, link),
				 ERR_NOMEM);
	while (!s->ended && (n = list_pop_front(&s->failed_notes)))
		end_note_with(list_entry(n, struct cluster_note, link),
			      ERR_NOMEM);
	put_store(s);
}

static void report_soon(struct bsrbd_store *s)
{
	if (s->failing)
		return;
	s->failing = true;
	pthread_mutex_lock(&s->mutex);
	s->refs++;
	pthread_mutex_unlock(&s->mutex);
	s->fail.run = report_failed;
	io_loop_post(s->loop, &s->fail);
}

static void fail_request(struct bsrbd_store *s, struct cluster_request *r)
{
	list_push_back(&s->failed, &r->link);
	report_soon(s);
}

void bsrbd_store_fail_note(struct bsrbd_store *s, struct cluster_note *n)
{
	list_push_back(&s->failed_notes, &n->link);
	report_soon(s);
}

static struct bsrbd_call *call_of_request(struct bsrbd_store *s,
					  struct cluster_request *r,
					  void (*done)(struct bsrbd_call *c))
{
	struct bsrbd_call *c = bsrbd_call_new(s, done);

	if (!c) {
		fail_request(s, r);
		return NULL;
	}
	c->r = r;
	c->version = r->version;
	c->next = r->version || !r->first ? r->version + 1 : r->first;
	if (r->whom)
		snprintf(c->whom, sizeof(c->whom), "%s", r->whom);
	list_push_back(&s->calls, &c->link);
	return c;
}

static void end_request(struct bsrbd_call *c)
{
	c->r->result = c->result;
	c->r->version = c->version;
	c->r->done(c->r);
}

/* On a thread of librados. */
static void operation_done(rados_completion_t done, void *arg)
{
	struct bsrbd_call *c = arg;

	c->result = rados_aio_get_return_value(done);
	rados_aio_release(done);
	bsrbd_call_end(c);
}

static void read_ended(struct bsrbd_call *c)
{
	c->r->data = NULL;
	c->r->len = 0;
	if (c->result == -ENOENT) {
		c->result = 0;
		c->version = 0;
	} else if (c->result >= 0) {
		c->result = cluster_blob_check(c->blob, c->len, &c->version);
		c->r->data = c->blob + CLUSTER_BLOB_HEAD;
		c->r->len = c->len - CLUSTER_BLOB_HEAD;
	} else {
		c->result = bsrbd_store_err(c->result);
	}
	if (c->result == ERR_TERMINATED)
		bsrbd_store_fenced(c->s);
	if (!c->s->ended)
		end_request(c);
}

static int start_read(struct bsrbd_call *c)
{
	rados_completion_t done;
	rados_read_op_t op;
	int err;

	c->blob = malloc(CLUSTER_BLOB_MAX + 1);
	op = rados_create_read_op();
	err = c->blob && op
		      ? rados_aio_create_completion2(c, operation_done, &done)
		      : -ENOMEM;
	if (!err) {
		rados_read_op_read(op, 0, CLUSTER_BLOB_MAX + 1, (char *)c->blob,
				   &c->len, &c->parts[0]);
		err = rados_aio_read_op_operate(op, c->s->image->pool, done,
						c->s->record, 0);
		if (err)
			rados_aio_release(done);
	}
	if (op)
		rados_release_read_op(op);
	return err;
}

static void do_read(struct cluster_store *store, struct cluster_request *r)
{
	struct bsrbd_call *c =
		call_of_request(bsrbd_store_of(store), r, read_ended);
	int err = c ? start_read(c) : 0;

	if (err)
		bsrbd_call_fail(c, err);
}

static void swap_ended(struct bsrbd_call *c)
{
	/* of an object that exists, or does not any more */
	c->result = c->result == -EEXIST || c->result == -ENOENT
			    ? ERR_AGAIN
			    : bsrbd_store_err(c->result);
	if (!c->result)
		c->version = c->next;
	if (c->result == ERR_TERMINATED)
		bsrbd_store_fenced(c->s);
	if (!c->s->ended)
		end_request(c);
}

static int start_swap(struct bsrbd_call *c, const uint8_t *data, size_t len)
{
	uint8_t before[CLUSTER_BLOB_SAME];
	rados_completion_t done;
	rados_write_op_t op;
	int err;

	c->len = CLUSTER_BLOB_HEAD + len;
	c->blob = malloc(c->len);
	op = rados_create_write_op();
	err = c->blob && op
		      ? rados_aio_create_completion2(c, operation_done, &done)
		      : -ENOMEM;
	if (!err) {
		cluster_blob_write(c->blob, c->next, data, len);
		cluster_blob_begin(before, c->version);
		if (c->version)
			rados_write_op_cmpext(op, (const char *)before,
					      sizeof(before), 0, &c->parts[0]);
		else
			rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE,
					      NULL);
		rados_write_op_write_full(op, (const char *)c->blob, c->len);
		err = rados_aio_write_op_operate(op, c->s->image->pool, done,
						 c->s->record, NULL,
						 STORE_WRITE);
		if (err)
			rados_aio_release(done);
	}
	if (op)
		rados_release_write_op(op);
	return err;
}

static void do_swap(struct cluster_store *store, struct cluster_request *r)
{
	struct bsrbd_call *c =
		call_of_request(bsrbd_store_of(store), r, swap_ended);
	int err = 0;

	if (c)
		err = r->len > CLUSTER_RECORD_MAX
			      ? -EFBIG
			      : start_swap(c, r->data, r->len);
	if (err)
		bsrbd_call_fail(c, err);
}

static void submit_job(struct cluster_store *store, struct cluster_request *r,
		       int (*run)(struct bsrbd_call *c))
{
	struct bsrbd_call *c =
		call_of_request(bsrbd_store_of(store), r, end_request);

	if (!c)
		return;
	c->run = run;
	bsrbd_call_submit(c);
}

static void do_lock(struct cluster_store *store, struct cluster_request *r)
{
	submit_job(store, r, bsrbd_store_take);
}

static void do_unlock(struct cluster_store *store, struct cluster_request *r)
{
	submit_job(store, r, bsrbd_store_give);
}

static void do_fence(struct cluster_store *store, struct cluster_request *r)
{
	submit_job(store, r, bsrbd_store_fence);
}

/* ---- the thread ---- */

static void watch_ended(struct bsrbd_call *c)
{
	if (c->s->store.events.missed)
		c->s->store.events.missed(c->s->store.events.arg);
}

/* Watches again after the watch was lost, until that succeeds or the gateway turns
 * out to be fenced. */
static void watch_again(struct bsrbd_store *s)
{
	struct timespec until;
	struct bsrbd_call *c;
	int err;

	bsrbd_store_unwatch(s);
	err = bsrbd_store_watch(s);
	if (!err || err == -ESHUTDOWN) {
		c = bsrbd_call_new(s, watch_ended);
		if (c)
			bsrbd_call_fail(c, bsrbd_store_err(err));
	}
	pthread_mutex_lock(&s->mutex);
	s->watch_lost = err && err != -ESHUTDOWN;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WATCH_PAUSE;
	if (s->watch_lost && !s->closed && list_empty(&s->jobs))
		pthread_cond_timedwait(&s->work, &s->mutex, &until);
	pthread_mutex_unlock(&s->mutex);
}

static void run_job(struct bsrbd_call *c)
{
	c->result = c->run(c);
	bsrbd_call_end(c);
}

/* Works until the store is closed. */
static void serve(struct bsrbd_store *s)
{
	struct list *n;

	pthread_mutex_lock(&s->mutex);
	while (!s->closed) {
		n = list_pop_front(&s->jobs);
		if (!n && !s->watch_lost) {
			pthread_cond_wait(&s->work, &s->mutex);
			continue;
		}
		pthread_mutex_unlock(&s->mutex);
		if (n)
			run_job(list_entry(n, struct bsrbd_call, job));
		else
			watch_again(s);
		pthread_mutex_lock(&s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
}

/* The store is closed: no new calls come. */
static void drop_jobs(struct bsrbd_store *s)
{
	struct list *n;

	while ((n = list_pop_front(&s->jobs)))
		bsrbd_call_end(list_entry(n, struct bsrbd_call, job));
}

static void wait_for_calls(struct bsrbd_store *s, bool also_notifies)
{
	pthread_mutex_lock(&s->mutex);
	while (s->busy > (also_notifies ? 0 : s->notifies))
		pthread_cond_wait(&s->work, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

static void set_phase(struct bsrbd *image, enum bsrbd_phase phase)
{
	pthread_mutex_lock(&image->mutex);
	image->phase = phase;
	pthread_cond_broadcast(&image->changed);
	pthread_mutex_unlock(&image->mutex);
}

void *bsrbd_store_main(void *arg)
{
	struct bsrbd_store *s = arg;
	struct bsrbd *image = s->image;

	serve(s);
	drop_jobs(s);
	if (image->locked && !rbd_lock_release(image->image))
		__atomic_store_n(&image->locked, false, __ATOMIC_RELEASE);
	bsrbd_store_unwatch(s);
	wait_for_calls(s, false);
	set_phase(image, BSRBD_NOTIFIES);
	wait_for_calls(s, true);
	set_phase(image, BSRBD_NO_STORE);
	put_store(s);
	return NULL;
}

/* ---- the end ---- */

static void abort_call(struct bsrbd_call *c)
{
	struct cluster_request *r = c->r;
	struct cluster_note *n = c->note;

	c->r = NULL;
	c->note = NULL;
	io_timer_clear(c->s->loop, &c->timer);
	if (r)
		end_request_with(r, ERR_ABORTED);
	if (n)
		end_note_with(n, ERR_ABORTED);
}

/* No thread frees a call before `closed` is set; afterwards this function touches no
 * call. */
static void do_close(struct cluster_store *store)
{
	struct bsrbd_store *s = bsrbd_store_of(store);
	struct list *n;

	s->ended = true;
	if (store->lost)
		bsrbd_cluster_fenced(s->image->cluster);
	while ((n = list_pop_front(&s->calls)))
		abort_call(list_entry(n, struct bsrbd_call, link));
	while ((n = list_pop_front(&s->failed)))
		end_request_with(list_entry(n, struct cluster_request, link),
				 ERR_ABORTED);
	while ((n = list_pop_front(&s->failed_notes)))
		end_note_with(list_entry(n, struct cluster_note, link),
			      ERR_ABORTED);
	pthread_mutex_lock(&s->mutex);
	s->closed = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->mutex);
}

const struct cluster_store_ops bsrbd_store_ops = {
	.read = do_read,
	.swap = do_swap,
	.notify = bsrbd_store_notify,
	.ack = bsrbd_store_ack,
	.lock = do_lock,
	.unlock = do_unlock,
	.fence = do_fence,
	.close = do_close,
};
