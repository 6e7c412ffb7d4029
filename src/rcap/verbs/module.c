/* SPDX-License-Identifier: BSD-2-Clause */
/* module.c: the table that rcap-verbs.so exports; the event channel. */
#include <errno.h>
#include <stdlib.h>

#include "rcap/verbs/internal.h"

/* ---- the connection manager's events ---- */

static void dispatch_event(struct rdma_cm_event *ev)
{
	void *context = ev->id->context;

	if (!context)
		return;
	switch (*(enum verbs_kind *)context) {
	case VERBS_CONN:
		verbs_conn_event(context, ev);
		break;
	case VERBS_REQUEST:
		verbs_request_event(context);
		break;
	case VERBS_LISTENER:
		if (ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
			struct verbs_listener *l = context;

			verbs_device_removed(l->v, ev->id->verbs);
			verbs_listener_lost(l);
		}
		break;
	}
}

static void request_came(struct rdma_cm_event *ev)
{
	struct verbs_listener *l = ev->listen_id->context;
	struct rdma_cm_id *id = ev->id;
	struct verbs_request *r = verbs_request_new(l, ev);

	rdma_ack_cm_event(ev);
	if (r) {
		l->asked(l->arg, r); /* this call may free the listener */
	} else {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
	}
}

static void cm_ready(struct io_watch *w, unsigned events)
{
	struct verbs *v = container_of(w, struct verbs, watch);
	struct rdma_cm_event *ev;

	(void)events;
	while (rdma_get_cm_event(v->channel, &ev) == 0) {
		/* rdma_destroy_id waits until all events of the id are
		 * acknowledged: so connections end in deferred calls, and a
		 * request is passed on after its event is acknowledged */
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			request_came(ev);
			continue;
		}
		dispatch_event(ev);
		rdma_ack_cm_event(ev);
	}
}

/* ---- life ---- */

static struct verbs *open_verbs(struct io_loop *l,
				const struct verbs_host *host, int *err)
{
	struct verbs *v;

	*err = -ENODEV;
	if (!host->wait && !verbs_any_device())
		return NULL;
	v = calloc(1, sizeof(*v));
	*err = -ENOMEM;
	if (!v)
		return NULL;
	v->l = l;
	v->host = *host;
	v->look.fire = verbs_look;
	v->tidy.run = verbs_tidy;
	v->watch.ready = cm_ready;
	list_init(&v->tidy.link);
	list_init(&v->conns);
	list_init(&v->listeners);
	*err = host->wait ? 0 : verbs_channel(v);
	if (!*err && v->channel)
		*err = verbs_watch(v);
	if (!*err) {
		verbs_join(v);
		return v;
	}
	if (v->channel)
		rdma_destroy_event_channel(v->channel);
	free(v);
	return NULL;
}

static void close_verbs(struct verbs *v)
{
	verbs_leave(v);
	/* a helper thread may run code of this module, which is unloaded next;
	 * a posted event still refers to v */
	while ((v->is_listing || v->noted) &&
	       io_loop_turn(v->l, v->noted ? 0 : 50 * XTIME_MS) >= 0)
		;
	io_timer_clear(v->l, &v->look);
	io_defer_cancel(&v->tidy);
	if (v->watching)
		io_watch_del(v->l, &v->watch);
	if (v->channel)
		rdma_destroy_event_channel(v->channel);
	free(v);
}

/* ---- the table ---- */

static struct rcap_qp *conn_qp(struct verbs_conn *c)
{
	return &c->qp;
}

static void conn_on_gone(struct verbs_conn *c, void (*gone)(void *arg),
			 void *arg)
{
	c->end.gone = gone;
	c->end.gone_arg = arg;
}

static void copy_address(struct sockaddr_storage *to,
			 const struct sockaddr *from)
{
	*to = (struct sockaddr_storage){ 0 };
	if (from && from->sa_family == AF_INET)
		*(struct sockaddr_in *)to =
			*(const struct sockaddr_in *)(const void *)from;
	else if (from && from->sa_family == AF_INET6)
		*(struct sockaddr_in6 *)to =
			*(const struct sockaddr_in6 *)(const void *)from;
}

static void conn_addresses(const struct verbs_conn *c,
			   struct sockaddr_storage *local,
			   struct sockaddr_storage *peer)
{
	copy_address(local, rdma_get_local_addr(c->id));
	copy_address(peer, rdma_get_peer_addr(c->id));
}

static void request_asker(const struct verbs_request *r,
			  struct sockaddr_storage *peer)
{
	copy_address(peer, rdma_get_peer_addr(r->id));
}

static const char *conn_device(const struct verbs_conn *c)
{
	return c->id && c->id->verbs ? ibv_get_device_name(c->id->verbs->device)
				     : "?";
}

__attribute__((
	visibility("default"))) extern const struct verbs_module openiser_verbs;
const struct verbs_module openiser_verbs = {
	.abi = VERBS_ABI,
	.open = open_verbs,
	.close = close_verbs,
	.listen = verbs_listen,
	.unlisten = verbs_unlisten,
	.hand = verbs_hand,
	.take = verbs_take,
	.refuse = verbs_refuse,
	.asker = request_asker,
	.connect = verbs_connect,
	.qp = conn_qp,
	.on_gone = conn_on_gone,
	.free = verbs_conn_free,
	.addresses = conn_addresses,
	.device = conn_device,
};
