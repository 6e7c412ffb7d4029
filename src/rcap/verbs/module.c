/* SPDX-License-Identifier: BSD-2-Clause */
/* module.c: the table that rcap-verbs.so exports; listeners, events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "rcap/verbs/internal.h"

#define BACKLOG 64

static void cm_ready(struct io_watch *w, unsigned events)
{
	struct verbs *v = container_of(w, struct verbs, watch);
	struct rdma_cm_event *ev;

	(void)events;
	while (rdma_get_cm_event(v->channel, &ev) == 0) {
		/* an id may be destroyed only when its events are acked: ends
		 * are deferred to the end of the turn */
		verbs_cm_event(v, ev);
		rdma_ack_cm_event(ev);
	}
}

static bool has_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

static struct verbs *open_verbs(struct io_loop *l, int *err)
{
	struct verbs *v;

	*err = -ENODEV;
	if (!has_device())
		return NULL;
	v = calloc(1, sizeof(*v));
	*err = -ENOMEM;
	if (!v)
		return NULL;
	v->l = l;
	v->channel = rdma_create_event_channel();
	if (!v->channel) {
		*err = -errno;
		free(v);
		return NULL;
	}
	fcntl(v->channel->fd, F_SETFL,
	      fcntl(v->channel->fd, F_GETFL) | O_NONBLOCK);
	v->watch = (struct io_watch){ .fd = v->channel->fd,
				      .want = IO_IN,
				      .ready = cm_ready };
	*err = io_watch_add(l, &v->watch);
	if (!*err)
		return v;
	rdma_destroy_event_channel(v->channel);
	free(v);
	return NULL;
}

static void close_verbs(struct verbs *v)
{
	io_watch_del(v->l, &v->watch);
	rdma_destroy_event_channel(v->channel);
	free(v);
}

static struct verbs_listener *
listen_verbs(struct verbs *v, const struct sockaddr *sa,
	     const struct verbs_config *cfg,
	     void (*accepted)(void *arg, struct verbs_conn *c), void *arg,
	     int *err)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));

	*err = -ENOMEM;
	if (!l)
		return NULL;
	l->v = v;
	l->cfg = *cfg;
	l->accepted = accepted;
	l->arg = arg;
	if (rdma_create_id(v->channel, &l->id, l, RDMA_PS_TCP) == 0 &&
	    rdma_bind_addr(l->id, (struct sockaddr *)(uintptr_t)sa) == 0 &&
	    rdma_listen(l->id, BACKLOG) == 0) {
		*err = 0;
		return l;
	}
	*err = -errno;
	if (l->id)
		rdma_destroy_id(l->id);
	free(l);
	return NULL;
}

static void unlisten(struct verbs_listener *l)
{
	rdma_destroy_id(l->id);
	free(l);
}

static struct rcap_qp *qp(struct verbs_conn *c)
{
	return &c->qp;
}

static void on_gone(struct verbs_conn *c, void (*gone)(void *arg), void *arg)
{
	c->gone = gone;
	c->gone_arg = arg;
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

static void addresses(const struct verbs_conn *c,
		      struct sockaddr_storage *local,
		      struct sockaddr_storage *peer)
{
	copy_address(local, rdma_get_local_addr(c->id));
	copy_address(peer, rdma_get_peer_addr(c->id));
}

static const char *device(const struct verbs_conn *c)
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
	.listen = listen_verbs,
	.unlisten = unlisten,
	.connect = verbs_connect,
	.qp = qp,
	.on_gone = on_gone,
	.free = verbs_conn_free,
	.addresses = addresses,
	.device = device,
};
