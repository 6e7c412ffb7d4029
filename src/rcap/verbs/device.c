/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.c: devices: their asynchronous events and their removal. librdmacm has
 * one context of a device in a process, so that any thread may read an event
 * that concerns another: it posts the event to all, and each looks for the
 * object that it concerns.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rcap/verbs/internal.h"

static struct {
	pthread_mutex_t lock;
	struct list all; /* verbs.process */
} process = { PTHREAD_MUTEX_INITIALIZER, { &process.all, &process.all } };

/* ---- events ---- */

static bool concerns(const struct verbs_conn *c, const struct verbs_note *n)
{
	if (!c->dev || c->dev->ctx != n->ctx)
		return false;
	if (n->cq)
		return c->cq.send == n->cq || c->cq.recv == n->cq;
	return c->id->qp && c->id->qp->qp_num == n->qp_num;
}

static void conn_failed(struct verbs *v, const struct verbs_note *n)
{
	list_for_each(i, &v->conns) {
		struct verbs_conn *c = list_entry(i, struct verbs_conn, link);

		if (concerns(c, n))
			verbs_over(c, ERR_RESET, "the device says: %s",
				   ibv_event_type_str(n->type));
	}
}

static struct verbs_device *find_device(struct verbs *v,
					const struct ibv_context *ctx)
{
	list_for_each(n, &v->devices) {
		struct verbs_device *d =
			list_entry(n, struct verbs_device, link);

		if (d->ctx == ctx)
			return d;
	}
	return NULL;
}

static void device_gone(struct verbs *v, const struct ibv_context *ctx)
{
	struct verbs_device *d = find_device(v, ctx);

	if (!d || d->gone)
		return;
	d->gone = true;
	list_for_each(n, &v->conns) {
		struct verbs_conn *c = list_entry(n, struct verbs_conn, link);

		if (c->dev == d)
			verbs_over(c, ERR_RESET, "the RDMA device was removed");
	}
	list_for_each(n, &v->listeners) {
		struct verbs_listener *l =
			list_entry(n, struct verbs_listener, link);

		if (l->dev == d)
			verbs_listener_lost(l);
	}
}

static void handle_note(struct verbs *v, const struct verbs_note *n)
{
	switch (n->type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		conn_failed(v, n);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		device_gone(v, n->ctx);
		break;
	default:
		break;
	}
}

static void notes_posted(struct io_post *p)
{
	struct verbs *v = container_of(p, struct verbs, told);
	struct verbs_note notes[NOTES_MAX];
	unsigned n;

	pthread_mutex_lock(&process.lock);
	n = v->nnotes;
	for (unsigned i = 0; i < n; i++)
		notes[i] = v->notes[i];
	v->nnotes = 0;
	v->noted = false;
	pthread_mutex_unlock(&process.lock);
	for (unsigned i = 0; i < n; i++)
		handle_note(v, &notes[i]);
}

/* Drops events beyond NOTES_MAX: a device with so many has failed, and further
 * events add nothing. */
static void post_note(const struct verbs *from, const struct verbs_note *note)
{
	pthread_mutex_lock(&process.lock);
	list_for_each(n, &process.all) {
		struct verbs *v = list_entry(n, struct verbs, process);

		if (v == from || v->nnotes == NOTES_MAX)
			continue;
		v->notes[v->nnotes++] = *note;
		if (!v->noted)
			io_loop_post(v->l, &v->told);
		v->noted = true;
	}
	pthread_mutex_unlock(&process.lock);
}

void verbs_device_removed(struct verbs *v, struct ibv_context *ctx)
{
	struct verbs_note n = { .ctx = ctx, .type = IBV_EVENT_DEVICE_FATAL };
	const struct verbs_device *d = find_device(v, ctx);

	if (!d || d->gone)
		/* already reported: each connection on the device causes a
		 * call */
		return;
	verbs_report(v, "%s: the device was removed", d->name);
	post_note(v, &n);
	handle_note(v, &n);
}

static struct verbs_note note_of(const struct verbs_device *d,
				 const struct ibv_async_event *ev)
{
	struct verbs_note n = { .ctx = d->ctx, .type = ev->event_type };

	if (ev->event_type == IBV_EVENT_CQ_ERR)
		n.cq = ev->element.cq;
	else if (ev->event_type == IBV_EVENT_QP_FATAL ||
		 ev->event_type == IBV_EVENT_QP_REQ_ERR ||
		 ev->event_type == IBV_EVENT_QP_ACCESS_ERR)
		n.qp_num = ev->element.qp->qp_num;
	return n;
}

/* An event of a port is only reported: its connections end by their own
 * timeouts, if at all. */
static void async_ready(struct io_watch *w, unsigned events)
{
	struct verbs_device *d = container_of(w, struct verbs_device, watch);
	struct ibv_async_event ev;

	(void)events;
	while (ibv_get_async_event(d->ctx, &ev) == 0) {
		struct verbs_note n = note_of(d, &ev);

		if (ev.event_type != IBV_EVENT_COMM_EST &&
		    ev.event_type != IBV_EVENT_SQ_DRAINED &&
		    ev.event_type != IBV_EVENT_QP_LAST_WQE_REACHED)
			verbs_report(d->v, "%s: %s", d->name,
				     ibv_event_type_str(ev.event_type));
		ibv_ack_async_event(&ev);
		post_note(d->v, &n);
		handle_note(d->v, &n);
	}
}

/* ---- uses of a device ---- */

struct verbs_device *verbs_device_get(struct verbs *v, struct ibv_context *ctx)
{
	struct verbs_device *d = find_device(v, ctx);

	if (d) {
		d->users++;
		return d;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->v = v;
	d->ctx = ctx;
	d->users = 1;
	snprintf(d->name, sizeof(d->name), "%s",
		 ibv_get_device_name(ctx->device));
	fcntl(ctx->async_fd, F_SETFL,
	      fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK);
	d->watch = (struct io_watch){ .fd = ctx->async_fd,
				      .want = IO_IN,
				      .ready = async_ready };
	if (io_watch_add(v->l, &d->watch)) {
		free(d);
		return NULL;
	}
	pthread_mutex_lock(&process.lock);
	list_push_back(&v->devices, &d->link);
	pthread_mutex_unlock(&process.lock);
	return d;
}

/*
 * The kernel frees a device only when every process has closed it (true of siw
 * and rxe). librdmacm closes it when another device appears, or never. So
 * redirect its descriptors of a removed device to /dev/null.
 */
static void release_device(struct ibv_context *ctx)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (nowhere < 0)
		return;
	dup3(nowhere, ctx->cmd_fd, O_CLOEXEC);
	dup3(nowhere, ctx->async_fd, O_CLOEXEC);
	close(nowhere);
}

void verbs_device_put(struct verbs_device *d)
{
	bool used = false;

	if (!d || --d->users)
		return;
	io_watch_del(d->v->l, &d->watch);
	pthread_mutex_lock(&process.lock);
	list_del(&d->link);
	list_for_each(n, &process.all)
		used |= find_device(list_entry(n, struct verbs, process),
				    d->ctx) != NULL;
	if (d->gone && !used)
		release_device(d->ctx);
	pthread_mutex_unlock(&process.lock);
	free(d);
}

/* ---- listing ---- */

bool verbs_any_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

static bool is_listed(struct ibv_device *const *list, int n,
		      const struct ibv_device *device)
{
	for (int i = 0; i < n; i++)
		if (list[i] == device)
			return true;
	return false;
}

void verbs_devices_look_for(struct verbs *v)
{
	list_for_each(n, &v->devices)
		list_entry(n, struct verbs_device, link)->looked_for = true;
}

/* A removed device that other processes keep open sends no event (see
 * release_device). */
void verbs_devices_look(struct verbs *v)
{
	struct ibv_context *gone[8];
	unsigned ngone = 0;

	if (!v->listed)
		return;
	list_for_each(i, &v->devices) {
		struct verbs_device *d =
			list_entry(i, struct verbs_device, link);

		if (!d->gone && d->looked_for &&
		    !is_listed(v->listed, v->nlisted, d->ctx->device) &&
		    ngone < ARRAY_LEN(gone))
			gone[ngone++] = d->ctx;
	}
	for (unsigned i = 0; i < ngone; i++)
		verbs_device_removed(v, gone[i]);
}

void verbs_join(struct verbs *v)
{
	list_init(&v->devices);
	v->told.run = notes_posted;
	pthread_mutex_lock(&process.lock);
	list_push_back(&process.all, &v->process);
	pthread_mutex_unlock(&process.lock);
}

void verbs_leave(struct verbs *v)
{
	pthread_mutex_lock(&process.lock);
	list_del(&v->process);
	pthread_mutex_unlock(&process.lock);
}
