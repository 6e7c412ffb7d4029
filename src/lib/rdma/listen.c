/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.c: listening for RDMA connections, and answering them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/rdma/rdma.h"

/* At RDMA_ASKING_MAX the listener pauses: connections that never send a request
 * must not take all memory. */
static void on_accepted(void *arg, int fd, const struct net_addr *peer)
{
	struct iser_rdma_listener *l = arg;
	struct iser_rdma *c = lib_rdma_new(l->ctx, &l->options);

	(void)peer;
	if (!c) {
		close(fd);
		return;
	}
	if (lib_rdma_make(c, fd, false)) {
		lib_rdma_drop(c);
		return;
	}
	c->listener = l;
	if (++l->asking == RDMA_ASKING_MAX)
		net_listener_pause(l->net, true);
}

static int start_listener(struct iser_rdma_listener *l, const char *address,
			  uint16_t default_port)
{
	struct net_addr a;
	int err;

	if (net_addr_parse(&a, address, default_port))
		return lib_fail(l->ctx, ISER_E_INVALID,
				"%s: not an address; give ADDRESS:PORT, "
				"[V6]:PORT or :PORT",
				address);
	if (l->options.device)
		return lib_rdma_device_listen(l, &a);
	l->net = net_listen(l->ctx->loop, &a, on_accepted, l, &err);
	if (!l->net)
		return lib_fail(l->ctx, ISER_E_SYSTEM, "%s: cannot listen: %s",
				address, strerror(-err));
	net_listener_addr(l->net, &a);
	net_addr_str(&a, l->address);
	return 0;
}

static void free_all(struct iser_context *ctx)
{
	while (!list_empty(&ctx->rdma_listeners))
		iser_rdma_listener_free(list_entry(ctx->rdma_listeners.next,
						   struct iser_rdma_listener,
						   link));
	lib_rdma_free_all(ctx);
}

struct iser_rdma_listener *
iser_rdma_listen(struct iser_context *ctx, const char *address,
		 uint16_t default_port, const struct iser_rdma_options *options,
		 void (*request)(void *arg, struct iser_rdma *c,
				 const struct iser_rdma_peer *peer),
		 void *arg, int *err)
{
	struct iser_rdma_listener *l;

	if (options && !LIB_UNUSED(options)) {
		*err = lib_fail(ctx, ISER_E_INVALID,
				"RDMA listener: a reserved option is not 0");
		return NULL;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		*err = lib_fail(ctx, ISER_E_NOMEM, "out of memory");
		return NULL;
	}
	l->ctx = ctx;
	if (options)
		l->options = *options;
	l->request = request;
	l->arg = arg;
	*err = start_listener(l, address, default_port);
	if (*err) {
		free(l);
		return NULL;
	}
	ctx->free_rdma = free_all;
	list_push_back(&ctx->rdma_listeners, &l->link);
	return l;
}

const char *iser_rdma_listener_address(const struct iser_rdma_listener *l)
{
	return l->address;
}

void iser_rdma_listener_free(struct iser_rdma_listener *l)
{
	if (!l)
		return;
	/* end the connections whose request has not come yet */
	list_for_each(n, &l->ctx->rdma) {
		struct iser_rdma *c = list_entry(n, struct iser_rdma, link);

		if (c->listener != l)
			continue;
		c->listener = NULL;
		iser_rdma_disconnect(c);
	}
	if (l->net)
		net_listener_free(l->net);
	lib_rdma_device_unlisten(l);
	list_del(&l->link);
	free(l);
}

/* ---- answers ---- */

static struct rcap_cm answer_of(const void *private_data, size_t private_len)
{
	/* the queue pair lowers them to what was negotiated */
	return (struct rcap_cm){ .ird = MPA_DEPTH_MAX,
				 .ord = MPA_DEPTH_MAX,
				 .private_data = private_data,
				 .private_len = private_len };
}

static int check_answer(const struct iser_rdma *c, int err)
{
	if (!err)
		return 0;
	return lib_fail(c->ctx, lib_rdma_error(err),
			"answer to RDMA connection from %s: %s", c->peer,
			err_str(err));
}

int iser_rdma_accept(struct iser_rdma *c, const void *private_data,
		     size_t private_len)
{
	struct rcap_cm cm = answer_of(private_data, private_len);

	return check_answer(c,
			    c->qp ? rcap_accept(c->qp, &cm) : ERR_WRONG_STATE);
}

int iser_rdma_reject(struct iser_rdma *c, const void *private_data,
		     size_t private_len)
{
	struct rcap_cm cm = answer_of(private_data, private_len);

	return check_answer(c,
			    c->qp ? rcap_reject(c->qp, &cm) : ERR_WRONG_STATE);
}
