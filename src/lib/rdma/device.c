/* SPDX-License-Identifier: BSD-2-Clause */
/* device.c: RDMA connections over devices, by the verbs module. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rdma/rdma.h"
#include "net/verbs.h"

#define PRIVATE_MAX 56	 /* the limit of InfiniBand, the smallest one */
#define DEPTH	    512u /* of each queue */

static const struct verbs_module *module_of(const struct iser_rdma *c)
{
	return net_verbs_module(c->ctx->verbs);
}

static struct verbs_config config_of(const struct iser_rdma_options *o)
{
	struct verbs_config cfg = { .ird = 32,
				    .ord = 32,
				    .sends = DEPTH,
				    .recvs = DEPTH,
				    .connect_time = 10 * XTIME_S };

	if (o->ird)
		cfg.ird = o->ird;
	if (o->ord)
		cfg.ord = o->ord;
	if (o->timeout)
		cfg.connect_time = o->timeout * XTIME_S;
	return cfg;
}

/* The last up-call of a connection. */
static void on_gone(void *arg)
{
	struct iser_rdma *c = arg;

	module_of(c)->free(c->vconn);
	c->vconn = NULL;
	c->qp = NULL;
	lib_rdma_closed(c);
}

static void fill_device_info(struct iser_rdma *c)
{
	struct net_addr local = { .len = 0 }, peer = { .len = 0 };

	module_of(c)->addresses(c->vconn, &local.sa, &peer.sa);
	local.len = peer.len = sizeof(local.sa);
	net_addr_str(&local, c->local);
	net_addr_str(&peer, c->peer);
	snprintf(c->device, sizeof(c->device), "%s",
		 module_of(c)->device(c->vconn));
	c->info.device = c->device;
}

static void adopt_conn(struct iser_rdma *c, struct verbs_conn *vc)
{
	const struct verbs_module *m = module_of(c);

	c->vconn = vc;
	c->state = RDMA_STARTING;
	lib_rdma_set_qp(c, m->qp(vc), fill_device_info);
	m->on_gone(vc, on_gone, c);
}

int lib_rdma_device_connect(struct iser_rdma *c, uint16_t port)
{
	struct verbs_config cfg = config_of(&c->options);
	struct net_addr a = { .len = 0 };
	struct verbs_conn *vc;
	int err = lib_verbs_open(c->ctx);

	if (!err && c->private_len > PRIVATE_MAX)
		err = lib_fail(c->ctx, ISER_E_INVALID,
			       "RDMA device: private data of more than %u "
			       "bytes",
			       PRIVATE_MAX);
	if (!err)
		err = lib_verbs_resolve(c->ctx, c->host, port, &a);
	if (err)
		return err;
	cfg.private_data = c->private_data;
	cfg.private_len = c->private_len;
	vc = module_of(c)->connect(net_verbs_handle(c->ctx->verbs),
				   (const struct sockaddr *)&a.sa, &cfg, &err);
	if (!vc)
		return lib_fail(c->ctx, ISER_E_CONNECT,
				"RDMA connection to %s:%u: %s", c->host, port,
				strerror(-err));
	adopt_conn(c, vc);
	return 0;
}

/* ---- listening ---- */

static void on_accepted(void *arg, struct verbs_conn *vc)
{
	struct iser_rdma_listener *l = arg;
	struct iser_rdma *c = lib_rdma_new(l->ctx, &l->options);

	if (!c)
		return;
	c->listener = l;
	l->asking++;
	adopt_conn(c, vc);
	fill_device_info(c);
}

static void on_asked(void *arg, struct verbs_request *r)
{
	struct iser_rdma_listener *l = arg;

	net_verbs_module(l->ctx->verbs)->take(r, on_accepted, l);
}

int lib_rdma_device_listen(struct iser_rdma_listener *l,
			   const struct net_addr *a)
{
	const struct verbs_config cfg = config_of(&l->options);
	int err = lib_verbs_open(l->ctx);

	if (err)
		return err;
	net_addr_str(a, l->address);
	l->verbs = net_verbs_module(l->ctx->verbs)
			   ->listen(net_verbs_handle(l->ctx->verbs),
				    (const struct sockaddr *)&a->sa, &cfg,
				    on_asked, l, &err);
	return l->verbs ? 0
			: lib_fail(l->ctx, ISER_E_SYSTEM,
				   "RDMA devices at %s: %s", l->address,
				   strerror(-err));
}

void lib_rdma_device_unlisten(struct iser_rdma_listener *l)
{
	if (l->verbs)
		net_verbs_module(l->ctx->verbs)->unlisten(l->verbs);
}
