/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen.c: listeners, which wait for a device if none has their address; and
 * connection requests until a worker takes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcap/verbs/internal.h"

#define BACKLOG 64

/* ---- listeners ---- */

static int start_listening(struct verbs_listener *l, bool any_device)
{
	struct verbs *v = l->v;
	int err = any_device ? verbs_channel(v) : -ENODEV;

	if (!err)
		err = verbs_watch(v);
	if (err)
		return err;
	if (rdma_create_id(v->channel, &l->id, l, RDMA_PS_TCP) ||
	    rdma_bind_addr(l->id, (struct sockaddr *)&l->sa) ||
	    rdma_listen(l->id, BACKLOG))
		err = -errno;
	if (!err && l->id->verbs) {
		l->dev = verbs_device_get(v, l->id->verbs);
		err = l->dev ? 0 : -ENOMEM;
	}
	if (err && l->id) {
		rdma_destroy_id(l->id);
		l->id = NULL;
	}
	return err;
}

static void stop_listening(struct verbs_listener *l)
{
	if (l->id)
		rdma_destroy_id(l->id);
	verbs_device_put(l->dev);
	l->id = NULL;
	l->dev = NULL;
	l->lost = false;
}

void verbs_tidy(struct io_defer *d)
{
	struct verbs *v = container_of(d, struct verbs, tidy);

	list_for_each(n, &v->listeners) {
		struct verbs_listener *l =
			list_entry(n, struct verbs_listener, link);

		if (l->lost)
			stop_listening(l);
	}
}

static bool needs_no_listing(const struct verbs *v)
{
	list_for_each(n, &v->listeners)
		if (!list_entry(n, struct verbs_listener, link)->id)
			return false;
	return list_empty(&v->devices);
}

static void set_look_timer(struct verbs *v)
{
	if (!list_empty(&v->listeners))
		io_timer_set(v->l, &v->look, io_now(v->l) + LOOK_EVERY);
}

static int64_t list_devices(struct io_file_op *op)
{
	struct verbs *v = container_of(op, struct verbs, listing);

	v->nlisted = 0;
	v->listed = ibv_get_device_list(&v->nlisted);
	return 0;
}

static void devices_listed(struct io_file_op *op, int64_t result)
{
	struct verbs *v = container_of(op, struct verbs, listing);

	(void)result;
	v->is_listing = false;
	verbs_devices_look(v);
	list_for_each(n, &v->listeners) {
		struct verbs_listener *l =
			list_entry(n, struct verbs_listener, link);

		if (!l->id && !start_listening(l, v->nlisted > 0))
			verbs_report(v, "listening, device %s",
				     l->dev ? l->dev->name : "any");
	}
	if (v->listed)
		ibv_free_device_list(v->listed);
	v->listed = NULL;
	set_look_timer(v);
}

/* No event reports a new device, so list the devices periodically. On a helper
 * thread: a listing was seen to take a third of a second. */
void verbs_look(struct io_timer *t)
{
	struct verbs *v = container_of(t, struct verbs, look);

	if (!verbs_class_exists() || needs_no_listing(v)) {
		set_look_timer(v);
		return;
	}
	verbs_devices_look_for(v);
	v->is_listing = true;
	v->listing = (struct io_file_op){ .opcode = IO_FILE_CALL,
					  .call = list_devices,
					  .done = devices_listed };
	io_file_submit(v->l, &v->listing);
}

static size_t length_of(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					 : sizeof(struct sockaddr_in);
}

struct verbs_listener *verbs_listen(struct verbs *v, const struct sockaddr *sa,
				    const struct verbs_config *cfg,
				    void (*asked)(void *arg,
						  struct verbs_request *r),
				    void *arg, int *err)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));

	*err = -ENOMEM;
	if (!l)
		return NULL;
	l->kind = VERBS_LISTENER;
	l->v = v;
	memcpy(&l->sa, sa, length_of(sa));
	l->cfg = *cfg;
	l->asked = asked;
	l->arg = arg;
	*err = start_listening(l, verbs_any_device());
	if (*err && !v->host.wait) {
		free(l);
		return NULL;
	}
	list_push_back(&v->listeners, &l->link);
	if (v->host.wait && !v->look.heap_index && !v->is_listing)
		io_timer_set(v->l, &v->look, io_now_exact() + LOOK_EVERY);
	return l;
}

void verbs_unlisten(struct verbs_listener *l)
{
	struct verbs *v = l->v;

	stop_listening(l);
	list_del(&l->link);
	if (list_empty(&v->listeners))
		io_timer_clear(v->l, &v->look);
	free(l);
}

/* ---- connection requests ---- */

struct verbs_request *verbs_request_new(struct verbs_listener *l,
					const struct rdma_cm_event *ev)
{
	const struct rdma_conn_param *p = &ev->param.conn;
	struct verbs_request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->kind = VERBS_REQUEST;
	r->v = l->v;
	r->id = ev->id;
	r->id->context = r;
	r->cfg = l->cfg;
	r->cm.ird = p->responder_resources;
	r->cm.ord = p->initiator_depth;
	if (p->private_data && p->private_data_len) {
		memcpy(r->private_data, p->private_data, p->private_data_len);
		r->cm.private_data = r->private_data;
		r->cm.private_len = p->private_data_len;
	}
	return r;
}

/* Every event after the request means that the peer has given up. */
void verbs_request_event(struct verbs_request *r)
{
	r->dead = true;
}

int verbs_hand(struct verbs_request *r, struct verbs *to)
{
	struct verbs *from = r->v;
	int err = verbs_channel(to);

	if (err || to == from)
		return err;
	/* before rdma_migrate_id: the other thread may get an event at once */
	r->v = to;
	if (rdma_migrate_id(r->id, to->channel) == 0)
		return 0;
	r->v = from;
	return -errno;
}

void verbs_refuse(struct verbs_request *r)
{
	if (!r->dead)
		rdma_reject(r->id, NULL, 0);
	rdma_destroy_id(r->id);
	free(r);
}

static int make_conn(struct verbs_conn *c, struct verbs_request *r)
{
	int err;

	c->id = r->id;
	c->id->context = c;
	err = verbs_work_new(c);
	c->qp.ird = MIN(c->cfg.ird, r->cm.ird);
	c->qp.ord = MIN(c->cfg.ord, r->cm.ord);
	r->cm.ird = c->qp.ird;
	r->cm.ord = c->qp.ord;
	c->qp.state = RCAP_REQUESTED;
	return err;
}

void verbs_take(struct verbs_request *r,
		void (*accepted)(void *arg, struct verbs_conn *c), void *arg)
{
	struct verbs_conn *c = NULL;
	int err;

	if (!r->dead && !verbs_watch(r->v))
		c = verbs_conn_new(r->v, &r->cfg);
	if (!c) {
		verbs_refuse(r);
		return;
	}
	err = make_conn(c, r);
	if (!err)
		accepted(arg, c);
	else
		verbs_report(r->v, "connection rejected: queue pair: %s%s",
			     strerror(-err),
			     err == -ENOMEM ? " (ulimit -l?)" : "");
	if (c->qp.user) {
		c->qp.user->connect_request(c->qp.arg, &r->cm);
	} else { /* the caller did not take it, or it failed */
		rdma_reject(c->id, NULL, 0);
		verbs_conn_free(c);
	}
	free(r);
}
