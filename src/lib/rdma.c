/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma.c: RDMA connections: how they come, what they tell, how they go. */
#include "lib/rdma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FPDU_MAX 65535u

int lib_rdma_error(int err)
{
	switch (err) {
	case ERR_DENIED:
		return ISER_E_CONNECT;
	case ERR_ABORTED:
		return ISER_E_CLOSED;
	case ERR_WRONG_STATE:
		return ISER_E_CLOSED;
	case ERR_RANGE:
	case ERR_TOO_LONG:
		return ISER_E_INVALID;
	case ERR_BUSY:
		return ISER_E_NOMEM;
	default:
		return lib_error(err);
	}
}

/* ---- telling ---- */

static void wake(struct iser_rdma *c, int err)
{
	if (!c->wait)
		return;
	c->wait->over = true;
	c->wait->err = err;
	c->wait = NULL;
}

/* tell_closed is the last thing that is done with c. */
static void tell_closed(struct iser_rdma *c)
{
	c->state = RDMA_DOWN;
	lib_rdma_asked(c);
	wake(c, c->err ? c->err : ISER_E_CLOSED);
	if (c->freeing)
		return;
	if (c->err)
		lib_fail(c->ctx, c->err, "RDMA connection with %s: %s",
			 c->peer[0] ? c->peer : c->host, c->why);
	if (c->callbacks)
		c->callbacks->closed(c->arg, c, c->err);
	else
		lib_rdma_drop(c);
}

static struct iser_rdma_peer peer_of(const struct iser_rdma *c,
				     const struct rcap_cm *cm)
{
	return (struct iser_rdma_peer){ .private_data = cm->private_data,
					.private_len = cm->private_len,
					.ird = cm->ird,
					.ord = cm->ord,
					.address = c->peer };
}

/* ---- up-calls of the queue pair ---- */

static void on_request(void *arg, const struct rcap_cm *cm)
{
	struct iser_rdma *c = arg;
	struct iser_rdma_listener *l = c->listener;
	struct iser_rdma_peer peer = peer_of(c, cm);

	if (!l) { /* nobody listens any more */
		iser_rdma_disconnect(c);
		return;
	}
	lib_rdma_asked(c);
	l->request(l->arg, c, &peer);
}

static void keep_info(struct iser_rdma *c)
{
	const struct mpa_terms *t;

	c->info.established = true;
	c->info.ird = c->qp->ird;
	c->info.ord = c->qp->ord;
	if (!c->iwarp) {
		lib_rdma_device_info(c);
		return;
	}
	t = iwarp_terms(c->iwarp);
	c->info.crc = t->crc;
	c->info.markers_in = t->markers_in;
	c->info.markers_out = t->markers_out;
	c->info.peer_to_peer = t->peer_to_peer;
}

static void on_established(void *arg, const struct rcap_cm *cm)
{
	struct iser_rdma *c = arg;
	struct iser_rdma_peer peer = peer_of(c, cm);

	c->state = RDMA_UP;
	keep_info(c);
	wake(c, 0);
	if (c->callbacks && !c->freeing)
		c->callbacks->established(c->arg, c, &peer);
}

static void on_closed(void *arg, int err, const char *why)
{
	struct iser_rdma *c = arg;

	c->err = lib_rdma_error(err);
	snprintf(c->why, sizeof(c->why), "%s", why);
}

const struct rcap_user lib_rdma_user = {
	.connect_request = on_request,
	.established = on_established,
	.wr_done = lib_rdma_wr_done,
	.received = lib_rdma_received,
	.closed = on_closed,
};

/* ---- the connection goes ---- */

static void on_stream_closed(void *arg, int err)
{
	struct iser_rdma *c = arg;

	(void)err; /* on_closed knows more */
	iser_rdma_get_stats(c, &c->stats);
	iwarp_free(c->iwarp);
	c->iwarp = NULL;
	c->qp = NULL;
	net_stream_free(c->stream);
	c->stream = NULL;
	tell_closed(c);
}

void lib_rdma_closed(struct iser_rdma *c)
{
	tell_closed(c);
}

static void flush_early(struct iser_rdma *c)
{
	struct list *n;

	while ((n = list_pop_front(&c->early)))
		lib_rdma_received(c, list_entry(n, struct rcap_recv, link),
				  ERR_ABORTED);
}

static void gave_up(struct io_defer *d)
{
	struct iser_rdma *c = container_of(d, struct iser_rdma, gone);

	c->err = ISER_E_CLOSED;
	snprintf(c->why, sizeof(c->why), "closed before it was connected");
	flush_early(c);
	tell_closed(c);
}

void lib_rdma_drop(struct iser_rdma *c)
{
	io_defer_cancel(&c->gone);
	list_del(&c->link);
	free(c);
}

/* ---- the connection comes ---- */

struct iser_rdma *lib_rdma_new(struct iser_context *ctx,
			       const struct iser_rdma_options *options)
{
	struct iser_rdma *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ctx = ctx;
	if (options)
		c->options = *options;
	c->gone.run = gave_up;
	list_init(&c->gone.link);
	list_init(&c->early);
	list_push_back(&ctx->rdma, &c->link);
	return c;
}

static void fill_config(const struct iser_rdma *c, struct iwarp_config *cfg,
			bool active)
{
	const struct iser_rdma_options *o = &c->options;

	iwarp_config_default(cfg, active);
	cfg->wish.want_crc = !o->no_crc;
	cfg->wish.want_markers = o->markers;
	if (o->ird)
		cfg->wish.ird = MIN(o->ird, (uint16_t)MPA_DEPTH_MAX);
	if (o->ord)
		cfg->wish.ord = MIN(o->ord, (uint16_t)MPA_DEPTH_MAX);
	cfg->revision = o->revision == ISER_RDMA_PLAIN ? 1 : 2;
	cfg->peer_to_peer = o->peer_to_peer;
	cfg->extended = o->extended;
	if (o->timeout)
		cfg->startup_timeout = o->timeout * XTIME_S;
	cfg->private_data = c->private_data;
	cfg->private_len = active ? c->private_len : 0;
	cfg->emss = o->fpdu_max ? MIN(o->fpdu_max, FPDU_MAX)
				: net_stream_mss(c->stream);
	/* keys are only a second fence; the first is the connection */
	io_random(NULL, (uint8_t *)&cfg->seed, sizeof(cfg->seed));
}

static void keep_addresses(struct iser_rdma *c)
{
	struct net_addr a;

	net_stream_peer(c->stream, &a);
	net_addr_str(&a, c->peer);
	net_stream_local(c->stream, &a);
	net_addr_str(&a, c->local);
}

static int make_queue_pair(struct iser_rdma *c, bool active)
{
	struct iwarp_config cfg;
	struct list *n;

	fill_config(c, &cfg, active);
	c->info.fpdu_max = cfg.emss ? (uint32_t)cfg.emss : FPDU_MAX;
	c->iwarp = iwarp_new(&cfg, net_stream_host(c->stream), NULL, 0,
			     io_now_exact());
	if (!c->iwarp)
		return ISER_E_NOMEM;
	c->qp = iwarp_qp(c->iwarp);
	rcap_set_user(c->qp, &lib_rdma_user, c);
	rcap_set_trace(c->qp, &c->ctx->trace);
	if (net_stream_start(c->stream, &iwarp_stream_ops, c->iwarp,
			     on_stream_closed, c)) {
		iwarp_free(c->iwarp);
		c->iwarp = NULL;
		c->qp = NULL;
		return ISER_E_SYSTEM;
	}
	while ((n = list_pop_front(&c->early)))
		rcap_post_recv(c->qp, list_entry(n, struct rcap_recv, link));
	return 0;
}

int lib_rdma_make(struct iser_rdma *c, int fd, bool active)
{
	int err;

	c->stream = net_stream_new(c->ctx->loop, fd);
	if (!c->stream)
		return ISER_E_NOMEM;
	keep_addresses(c);
	err = make_queue_pair(c, active);
	if (err) {
		net_stream_free(c->stream);
		c->stream = NULL;
		return err;
	}
	c->state = RDMA_STARTING;
	return 0;
}

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
	flush_early(c);
	tell_closed(c);
}

static bool is_sensible(struct iser_context *ctx, const char *host,
			const struct iser_rdma_options *o, size_t private_len,
			int *err)
{
	const char *wrong = NULL;

	if (private_len > ISER_RDMA_PRIVATE_MAX)
		wrong = "private data of more than 508 bytes";
	else if (strlen(host) >= sizeof(((struct iser_rdma *)NULL)->host))
		wrong = "a host name of more than 255 bytes";
	else if (o && o->peer_to_peer && o->revision == ISER_RDMA_PLAIN)
		wrong = "the peer-to-peer model needs MPA revision 2 "
			"(RFC 6581 §4.2)";
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

	if (!is_sensible(ctx, host, options, private_len, err))
		return NULL;
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
	/* cleared before this returns: by wake, or below */
	/* cppcheck-suppress autoVariables */
	c->wait = &w;
	err = lib_wait(c->ctx, &w.over);
	if (err) {
		c->wait = NULL;
		return err;
	}
	return w.err;
}

void iser_rdma_set_callbacks(struct iser_rdma *c,
			     const struct iser_rdma_callbacks *callbacks,
			     void *arg)
{
	c->callbacks = callbacks;
	c->arg = arg;
}

/* ---- the end ---- */

void iser_rdma_disconnect(struct iser_rdma *c)
{
	if (c->connector) {
		net_connect_cancel(c->connector);
		c->connector = NULL;
		/* closed must not come from within this call */
		io_loop_defer(c->ctx->loop, &c->gone);
	}
	if (c->qp)
		rcap_disconnect(c->qp);
}

void iser_rdma_terminate(struct iser_rdma *c, const char *why)
{
	if (c->qp)
		rcap_terminate(c->qp, ERR_PROTOCOL, why);
	else
		iser_rdma_disconnect(c);
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
	flush_early(c);
	if (c->qp)
		rcap_disconnect(c->qp);
	/* bounded: the queue pair's and the stream's own times see to it */
	while ((c->stream || c->vconn) && !iser_service(c->ctx, -1))
		;
	lib_rdma_drop(c);
}

void lib_rdma_free_all(struct iser_context *ctx)
{
	while (!list_empty(&ctx->rdma_listeners))
		iser_rdma_listener_free(list_entry(ctx->rdma_listeners.next,
						   struct iser_rdma_listener,
						   link));
	while (!list_empty(&ctx->rdma))
		iser_rdma_free(
			list_entry(ctx->rdma.next, struct iser_rdma, link));
}

/* ---- what holds, what happened ---- */

void iser_rdma_get_info(const struct iser_rdma *c, struct iser_rdma_info *info)
{
	*info = c->info;
	info->peer = c->peer;
	info->local = c->local;
}

void iser_rdma_get_stats(const struct iser_rdma *c,
			 struct iser_rdma_stats *stats)
{
	const struct net_stream_stats *n;
	const struct iwarp_stats *w;

	if (!c->stream || !c->iwarp) {
		*stats = c->stats;
		return;
	}
	n = net_stream_stats(c->stream);
	w = iwarp_stats(c->iwarp);
	*stats = (struct iser_rdma_stats){
		.rx_bytes = w->rx_bytes,
		.tx_bytes = w->tx_bytes,
		.rx_calls = n->rx_calls,
		.tx_calls = n->tx_calls,
		.rx_fpdus = w->rx_fpdus,
		.tx_fpdus = w->tx_fpdus,
		.rx_payload = w->rx_payload,
		.tx_payload = w->tx_payload,
		.copied = w->copied,
		.crc_errors = w->crc_errors,
	};
}
