/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma.c: connecting to an RDMA peer, waiting for it, freeing a connection. */
#include "lib/rdma/rdma.h"

#include <stdio.h>
#include <string.h>

static void on_connected(void *arg, int fd, const char *why)
{
	struct iser_rdma *c = arg;

	c->connector = NULL;
	if (fd < 0) {
		c->err = ISER_E_CONNECT;
		snprintf(c->why, sizeof(c->why), "%s", why);
	} else {
		c->err = lib_rdma_make(c, fd, true);
		if (!c->err)
			return;
		snprintf(c->why, sizeof(c->why), "%s", iser_strerror(c->err));
	}
	lib_rdma_flush_early(c);
	lib_rdma_closed(c);
}

/* Returns false, with the reason in iser_message, if an argument is not valid. */
static bool check_arguments(struct iser_context *ctx, const char *host,
			    const struct iser_rdma_options *o,
			    size_t private_len, int *err)
{
	const char *wrong = NULL;

	if (private_len > ISER_RDMA_PRIVATE_MAX)
		wrong = "private data of more than 508 bytes";
	else if (strlen(host) >= sizeof(((struct iser_rdma *)NULL)->host))
		wrong = "a host name of more than 255 bytes";
	else if (o && o->peer_to_peer && o->revision == ISER_RDMA_PLAIN)
		wrong = "the peer-to-peer model needs MPA revision 2 "
			"(RFC 6581 §4.2)";
	else if (o && !LIB_UNUSED(o))
		wrong = "a reserved option is not 0";
	if (wrong)
		*err = lib_fail(ctx, ISER_E_INVALID, "RDMA connection: %s",
				wrong);
	return !wrong;
}

struct iser_rdma *
iser_rdma_connect_start(struct iser_context *ctx, const char *host,
			uint16_t port, const struct iser_rdma_options *options,
			const void *private_data, size_t private_len,
			const struct iser_rdma_callbacks *callbacks, void *arg,
			int *err)
{
	struct iser_rdma *c;
	unsigned seconds = options && options->timeout ? options->timeout : 10;

	if (!check_arguments(ctx, host, options, private_len, err))
		return NULL;
	if (!ctx->free_rdma)
		ctx->free_rdma = lib_rdma_free_all;
	c = lib_rdma_new(ctx, options);
	if (c) {
		iser_rdma_set_callbacks(c, callbacks, arg);
		snprintf(c->host, sizeof(c->host), "%s", host);
		c->private_len = private_len;
		if (private_len)
			memcpy(c->private_data, private_data, private_len);
		if (c->options.device) {
			*err = lib_rdma_device_connect(c, port);
			if (!*err)
				return c;
			lib_rdma_drop(c);
			return NULL;
		}
		c->connector = net_connect(ctx->loop, host, port,
					   io_now_exact() + seconds * XTIME_S,
					   on_connected, c);
		if (c->connector)
			return c;
		lib_rdma_drop(c);
	}
	*err = lib_fail(ctx, ISER_E_NOMEM, "RDMA connection to %s: %s", host,
			iser_strerror(ISER_E_NOMEM));
	return NULL;
}

int iser_rdma_wait(struct iser_rdma *c)
{
	struct rdma_wait w = { 0 };
	int err;

	if (c->state == RDMA_UP)
		return 0;
	if (c->state == RDMA_DOWN)
		return c->err ? c->err : ISER_E_CLOSED;
	/* cleared before this function returns: by end_wait, or below */
	/* cppcheck-suppress autoVariables */
	c->wait = &w;
	err = lib_wait(c->ctx, &w.over);
	if (err) {
		c->wait = NULL;
		return err;
	}
	return w.err;
}

void iser_rdma_free(struct iser_rdma *c)
{
	if (!c)
		return;
	c->freeing = true;
	lib_rdma_asked(c);
	if (c->connector)
		net_connect_cancel(c->connector);
	c->connector = NULL;
	lib_rdma_flush_early(c);
	if (c->qp)
		rcap_disconnect(c->qp);
	/* bounded: by the timeouts of the queue pair and the stream */
	while ((c->stream || c->vconn) && !iser_service(c->ctx, -1))
		;
	lib_rdma_drop(c);
}

void lib_rdma_free_all(struct iser_context *ctx)
{
	while (!list_empty(&ctx->rdma))
		iser_rdma_free(
			list_entry(ctx->rdma.next, struct iser_rdma, link));
}
