/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp.c: RDMA connections by software iWARP on a socket. */
#include "lib/rdma/rdma.h"

#define FPDU_MAX 65535u

static void fill_iwarp_info(struct iser_rdma *c)
{
	const struct mpa_terms *t = iwarp_terms(c->iwarp);

	c->info.crc = t->crc;
	c->info.markers_in = t->markers_in;
	c->info.markers_out = t->markers_out;
	c->info.peer_to_peer = t->peer_to_peer;
}

static void on_stream_closed(void *arg, int err)
{
	struct iser_rdma *c = arg;

	(void)err; /* on_closed of conn.c has it */
	iser_rdma_get_stats(c, &c->stats);
	iwarp_free(c->iwarp);
	c->iwarp = NULL;
	c->qp = NULL;
	net_stream_free(c->stream);
	c->stream = NULL;
	lib_rdma_closed(c);
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
	/* random keys are a second protection: the first is that a region is
	 * valid on one connection only */
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
	lib_rdma_set_qp(c, iwarp_qp(c->iwarp), fill_iwarp_info);
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
