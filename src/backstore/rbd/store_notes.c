/* SPDX-License-Identifier: BSD-2-Clause */
/* store_notes.c: notifications between the gateways of an image, by watch and
 * notify. Each begins with the name of the sender, padded to CLUSTER_ID_SIZE. A name alone
 * asks which gateways there are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rbd/store.h"
#include "base/err.h"
#include "cluster/blob.h"

#define WATCH_TIME \
 5 /* seconds until the cluster drops a watcher that is gone */
/* The notification ends without the cluster this much after its time. */
#define PATIENCE (2 * XTIME_S)

/* ---- receiving ---- */

/* On worker 0. */
static void note_arrived(struct bsrbd_call *c)
{
	struct bsrbd_store *s = c->s;
	const struct cluster_store_events *events = &s->store.events;
	struct bsrbd_noted *e = &s->noted[s->next_noted++ % STORE_NOTED];

	if (!events->noted)
		return;
	*e = (struct bsrbd_noted){ .cookie = ++s->cookie,
				   .id = c->id,
				   .handle = c->handle };
	events->noted(events->arg, c->from, e->cookie, (const uint8_t *)c->data,
		      c->len);
}

static void acknowledge(struct bsrbd_store *s, uint64_t id, uint64_t handle)
{
	rados_notify_ack(s->image->pool, s->gateways, id, handle, s->store.id,
			 (int)strlen(s->store.id));
}

/* On a thread of librados. */
static void on_note(void *arg, uint64_t id, uint64_t handle, uint64_t notifier,
		    void *data, size_t len)
{
	struct bsrbd_store *s = arg;
	struct bsrbd_call *c;
	const char *from = data;

	(void)notifier;
	if (len < CLUSTER_ID_SIZE || len > CLUSTER_ID_SIZE + CLUSTER_NOTE_MAX ||
	    !cluster_id_ok(from, CLUSTER_ID_SIZE))
		return;
	/* the question of a gateway that opens its store (check_name) */
	if (len == CLUSTER_ID_SIZE || strcmp(from, s->store.id) == 0) {
		acknowledge(s, id, handle);
		return;
	}
	c = bsrbd_call_new(s, note_arrived);
	if (!c)
		return;
	c->id = id;
	c->handle = handle;
	c->len = len - CLUSTER_ID_SIZE;
	memcpy(c->from, from, CLUSTER_ID_SIZE);
	c->data = malloc(c->len + 1);
	if (c->data)
		memcpy(c->data, from + CLUSTER_ID_SIZE, c->len);
	else
		c->len = 0;
	bsrbd_call_end(c);
}

void bsrbd_store_ack(struct cluster_store *store, uint64_t cookie)
{
	struct bsrbd_store *s = bsrbd_store_of(store);

	for (unsigned i = 0; i < STORE_NOTED; i++) {
		struct bsrbd_noted *e = &s->noted[i];

		if (!cookie || e->cookie != cookie)
			continue;
		e->cookie = 0;
		acknowledge(s, e->id, e->handle);
		return;
	}
}

/* ---- the watch ---- */

/* On a thread of librados. The thread of the store watches again. */
static void on_lost(void *arg, uint64_t handle, int err)
{
	struct bsrbd_store *s = arg;

	(void)handle;
	(void)err;
	pthread_mutex_lock(&s->mutex);
	s->watch_lost = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->mutex);
}

int bsrbd_store_watch(struct bsrbd_store *s)
{
	int err = rados_watch3(s->image->pool, s->gateways, &s->watch, on_note,
			       on_lost, WATCH_TIME, s);

	s->has_watch = !err;
	return err;
}

/* After the flush no call-back of the watch runs. */
void bsrbd_store_unwatch(struct bsrbd_store *s)
{
	if (!s->has_watch)
		return;
	s->has_watch = false;
	rados_unwatch2(s->image->pool, s->watch);
	rados_watch_flush(bsrbd_cluster_rados(s->image->cluster));
}

/* ---- sending ---- */

static void end_note(struct bsrbd_call *c, int result)
{
	struct cluster_note *n = c->note;

	c->note = NULL;
	io_timer_clear(c->s->loop, &c->timer);
	if (!n)
		return;
	n->result = result;
	n->done(n);
}

static void take_acks(struct bsrbd_call *c, struct cluster_note *n)
{
	struct notify_ack_t *acks = NULL;
	struct notify_timeout_t *timeouts = NULL;
	size_t nacks = 0, ntimeouts = 0;

	if (!c->reply ||
	    rados_decode_notify_response(c->reply, c->reply_len, &acks, &nacks,
					 &timeouts, &ntimeouts))
		return;
	for (size_t i = 0; i < nacks && n->nacks < CLUSTER_GATEWAYS; i++) {
		char *id = n->acks[n->nacks];
		size_t len = acks[i].payload_len;

		if (len >= CLUSTER_ID_SIZE)
			continue;
		memset(id, 0, CLUSTER_ID_SIZE);
		if (len)
			memcpy(id, acks[i].payload, len);
		if (cluster_id_ok(id, CLUSTER_ID_SIZE) &&
		    strcmp(id, c->s->store.id) != 0)
			n->nacks++;
	}
	rados_free_notify_response(acks, nacks, timeouts);
}

static void note_sent(struct bsrbd_call *c)
{
	int result = c->result == -ETIMEDOUT ? 0 : bsrbd_store_err(c->result);

	if (c->note && !result)
		take_acks(c, c->note);
	if (result == ERR_TERMINATED)
		bsrbd_store_fenced(c->s);
	if (!c->s->ended)
		end_note(c, result);
}

static void note_late(struct io_timer *t)
{
	end_note(container_of(t, struct bsrbd_call, timer), ERR_RESET);
}

/* On a thread of librados. */
static void notify_done(rados_completion_t done, void *arg)
{
	struct bsrbd_call *c = arg;

	c->result = rados_aio_get_return_value(done);
	rados_aio_release(done);
	bsrbd_call_end(c);
}

/* The cluster counts in seconds. */
static int start_note(struct bsrbd_call *c, const struct cluster_note *n)
{
	uint64_t seconds = MAX((n->ms + 999) / 1000, 1u);
	rados_completion_t done;
	int err;

	if (n->len > CLUSTER_NOTE_MAX)
		return -EFBIG;
	c->data = calloc(1, CLUSTER_ID_SIZE + n->len);
	if (!c->data)
		return -ENOMEM;
	memcpy(c->data, c->s->store.id, strlen(c->s->store.id));
	if (n->len)
		memcpy(c->data + CLUSTER_ID_SIZE, n->data, n->len);
	err = rados_aio_create_completion2(c, notify_done, &done);
	if (err)
		return err;
	c->timer.fire = note_late;
	io_timer_set(c->s->loop, &c->timer,
		     io_now_exact() + (xtime)seconds * XTIME_S + PATIENCE);
	err = rados_aio_notify(c->s->image->pool, c->s->gateways, done, c->data,
			       (int)(CLUSTER_ID_SIZE + n->len), seconds * 1000,
			       &c->reply, &c->reply_len);
	if (err)
		rados_aio_release(done);
	return err;
}

void bsrbd_store_notify(struct cluster_store *store, struct cluster_note *n)
{
	struct bsrbd_store *s = bsrbd_store_of(store);
	struct bsrbd_call *c = bsrbd_call_new(s, note_sent);
	int err;

	n->nacks = 0;
	if (!c) {
		bsrbd_store_fail_note(s, n);
		return;
	}
	c->note = n;
	pthread_mutex_lock(&s->mutex);
	c->notifies = true;
	s->notifies++;
	pthread_mutex_unlock(&s->mutex);
	list_push_back(&s->calls, &c->link);
	err = start_note(c, n);
	if (err)
		bsrbd_call_fail(c, err);
}
