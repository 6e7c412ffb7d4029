/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: connections: which datamover each gets, and the switch to RDMA
 * mode. */
#include "net/conn.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/err.h"
#include "datamover/iser/dmiser.h"
#include "datamover/tcp/dmtcp.h"
#include "net/verbs.h"
#include "rcap/iwarp/iwarp.h"

/* First byte of "MPA ID Req Frame" (RFC 5044 §7.1.1). No iSCSI login begins
 * with it (0x03 or 0x43: RFC 7143 §11.12). */
#define MPA_FIRST_BYTE 'M'

/* Look-ahead: a batch of small commands or their data is received in one call.
 * Memory is touched only as far as it is used. */
#define LOOKAHEAD (256u << 10)

struct net_conn {
	struct io_loop *l;
	struct net_conn_config cfg;
	struct net_stream *stream; /* NULL: vconn */
	struct net_verbs *verbs;
	struct verbs_conn *vconn;
	const struct net_conn_ops *ops;
	void *arg;
	/* the cores; iwarp and dmiser may be set late, or never */
	struct dmtcp_conn *dmtcp;
	struct iwarp *iwarp;
	struct dmiser_conn *dmiser;
	/* before the kind is known: cfg.begin grows */
	bool refused; /* or belongs elsewhere */
	int err;
	const char *why; /* net_conn_why */
	xtime deadline;
};

void net_conn_config_default(struct net_conn_config *cfg, enum iscsi_role role)
{
	*cfg = (struct net_conn_config){
		.role = role,
		.start =
			role == ISCSI_TARGET ? NET_START_ANY : NET_START_STREAM,
		.allow = NET_ALLOW_ALL,
		.rules_rdma = DMISER_LINUX,
		.rules_stream = DMISER_STRICT,
		.crc = true,
		.mpa_revision = 2,
		.sniff_time = 15 * XTIME_S,
		.mpa_time = 10 * XTIME_S,
		.max_tasks = 1024,
	};
}

/* ---- RDMA ---- */

static int make_rdma(struct net_conn *c, struct dm_conn *stream_dm)
{
	struct dmiser_config d;
	struct iwarp_config w;
	uint8_t cm[DMISER_CM_LEN];

	dmiser_config_default(&d, c->cfg.role);
	d.rules = stream_dm ? c->cfg.rules_stream : c->cfg.rules_rdma;
	d.stream_dm = stream_dm;
	d.host = net_stream_host(c->stream);
	iwarp_config_default(&w, c->cfg.role == ISCSI_INITIATOR);
	w.wish.want_crc = c->cfg.crc;
	w.wish.want_markers = c->cfg.markers;
	w.wish.ird = d.ird;
	w.wish.ord = d.ord;
	w.revision = c->cfg.mpa_revision;
	w.peer_to_peer = true; /* RNICs require it */
	w.emss = net_stream_mss(c->stream);
	w.lookahead = LOOKAHEAD;
	w.max_regions = 2 * c->cfg.max_tasks + 64;
	w.seed = c->cfg.seed;
	w.startup_timeout = c->cfg.mpa_time;
	if (w.active && (d.rules & DMISER_CM_HEADER)) {
		dmiser_cm_request(true, cm);
		w.private_data = cm;
		w.private_len = sizeof(cm);
	}
	c->iwarp = iwarp_new(&w, net_stream_host(c->stream), NULL, 0,
			     io_now(c->l));
	if (!c->iwarp)
		return ERR_NOMEM;
	c->dmiser = dmiser_new(&d, iwarp_qp(c->iwarp));
	if (c->dmiser)
		return 0;
	iwarp_free(c->iwarp);
	c->iwarp = NULL;
	return ERR_NOMEM;
}

/* ---- from stream to RDMA mode ---- */

static int prepare_rdma(void *arg, struct dm_conn *stream_dm,
			const struct iscsi_params *params,
			const struct dm_resources *r)
{
	struct net_conn *c = arg;
	int err = make_rdma(c, stream_dm);

	if (!err)
		err = dmiser_take_over(c->dmiser, params, r);
	if (!err)
		return 0;
	/* undo: the stream still has its core */
	dmiser_free(c->dmiser);
	iwarp_free(c->iwarp);
	c->dmiser = NULL;
	c->iwarp = NULL;
	return err;
}

/* feed_core passes octets to a core that have already been read. */
static void feed_core(const struct stream_ops *ops, void *core,
		      const uint8_t *p, size_t n, xtime now)
{
	while (n > 0) {
		struct iovec iov[8];
		unsigned k = ops->rx_where(core, iov, 8);
		struct bufv v = bufv_of(iov, k);
		size_t got = bufv_copy_in(&v, 0, p, n);

		if (got == 0)
			return; /* the core takes none: it closes */
		ops->rx_done(core, got, now);
		p += got;
		n -= got;
	}
}

/* [RFC 7145: 5.1 #1] */
static void stream_drained(void *arg)
{
	struct net_conn *c = arg;
	size_t n;
	const uint8_t *p = dmtcp_left(c->dmtcp, &n);

	net_stream_switch(c->stream, &iwarp_stream_ops, c->iwarp);
	feed_core(&iwarp_stream_ops, c->iwarp, p, n, io_now(c->l));
}

static void closed_early(void *arg, int err, xtime now)
{
	struct net_conn *c = arg;

	iwarp_stream_ops.closed(c->iwarp, err, now);
}

/* ---- the kind of the connection ---- */

static int make_tcp(struct net_conn *c)
{
	struct dmtcp_config cfg;

	dmtcp_config_default(&cfg, c->cfg.role);
	if (c->cfg.allow & NET_ALLOW_SWITCH)
		cfg.rdma = (struct dmtcp_rdma){ .prepare = prepare_rdma,
						.drained = stream_drained,
						.closed = closed_early,
						.arg = c,
						.required = !(c->cfg.allow &
							      NET_ALLOW_TCP) };
	c->dmtcp = dmtcp_new(&cfg, net_stream_host(c->stream));
	return c->dmtcp ? 0 : ERR_NOMEM;
}

static int make_core(struct net_conn *c, bool rdma)
{
	unsigned need =
		rdma ? NET_ALLOW_RDMA : NET_ALLOW_TCP | NET_ALLOW_SWITCH;
	int err;

	if (!(c->cfg.allow & need)) {
		c->why = rdma ? "iSER from the start is not allowed here"
			      : "iSCSI over TCP is not allowed here";
		return ERR_DENIED;
	}
	err = rdma ? make_rdma(c, NULL) : make_tcp(c);
	if (err)
		return err;
	return c->ops->opened(c->arg,
			      rdma ? dmiser_dm(c->dmiser) : dmtcp_dm(c->dmtcp));
}

static const struct stream_ops *ops_of(const struct net_conn *c)
{
	return c->dmtcp ? &dmtcp_stream_ops : &iwarp_stream_ops;
}

static void *core_of(const struct net_conn *c)
{
	return c->dmtcp ? (void *)c->dmtcp : (void *)c->iwarp;
}

/* ---- the first bytes ---- */

/* RFC 7143 §6.3: a connection begins with a Login Request. The I bit and the
 * reserved bit beside the opcode do not matter here. */
static bool could_begin(uint8_t first)
{
	return first == MPA_FIRST_BYTE || (first & 0x3f) == ISCSI_LOGIN_REQUEST;
}

/* One octet shows the kind; to choose where a login belongs takes more. */
static unsigned sniff_need(const struct net_conn *c)
{
	bool login = c->cfg.nbegin && c->cfg.begin[0] != MPA_FIRST_BYTE &&
		     could_begin(c->cfg.begin[0]);

	return login && c->ops->elsewhere ? NET_CONN_BEGIN : 1;
}

static unsigned sniff_where(void *core, struct iovec *iov, unsigned max)
{
	struct net_conn *c = core;

	(void)max;
	iov[0] = (struct iovec){ c->cfg.begin + c->cfg.nbegin,
				 sniff_need(c) - c->cfg.nbegin };
	return 1;
}

/* The kind of the connection is known: makes its core. */
static void end_sniff(struct net_conn *c, xtime now)
{
	const uint8_t *begin = c->cfg.begin;

	if (!could_begin(begin[0])) {
		c->err = ERR_PROTOCOL;
		c->why = "the first byte begins neither a Login Request nor an "
			 "MPA Request";
	} else if (c->ops->elsewhere &&
		   c->ops->elsewhere(c->arg, begin, c->cfg.nbegin)) {
		net_stream_hold(c->stream);
		c->refused = true;
	} else {
		c->err = make_core(c, begin[0] == MPA_FIRST_BYTE);
	}
	c->refused |= c->err != 0;
	if (c->refused)
		return;
	net_stream_switch(c->stream, ops_of(c), core_of(c));
	feed_core(ops_of(c), core_of(c), begin, c->cfg.nbegin, now);
}

static void sniff_done(void *core, size_t n, xtime now)
{
	struct net_conn *c = core;

	c->cfg.nbegin += (unsigned)n;
	if (c->cfg.nbegin >= sniff_need(c))
		end_sniff(c, now);
}

static unsigned sniff_what(void *core, struct iovec *iov, unsigned max)
{
	(void)core;
	(void)iov;
	(void)max;
	return 0;
}

static void sniff_expire(void *core, xtime now)
{
	struct net_conn *c = core;

	if (now < c->deadline)
		return;
	c->err = ERR_TIMEOUT;
	c->why = c->cfg.nbegin ? "the peer sent less than a header"
			       : "the peer sent nothing";
	c->refused = true;
}

static void sniff_status(const void *core, struct stream_status *st)
{
	const struct net_conn *c = core;

	*st = (struct stream_status){ .fate = c->refused ? STREAM_CLOSE
							 : STREAM_GO,
				      .err = c->err,
				      .deadline = c->deadline };
}

static const struct stream_ops sniff_ops = {
	.rx_where = sniff_where,
	.rx_done = sniff_done,
	.tx_what = sniff_what,
	.expire = sniff_expire,
	.status = sniff_status,
};

/* ---- life ---- */

struct net_conn *net_conn_new(struct io_loop *l, int fd,
			      const struct net_conn_config *cfg)
{
	struct net_stream *stream = net_stream_new(l, fd);
	struct net_conn *c;

	if (!stream)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c) {
		net_stream_free(stream);
		return NULL;
	}
	c->l = l;
	c->cfg = *cfg;
	c->stream = stream;
	if (cfg->hold)
		net_stream_hold(stream);
	return c;
}

static void stream_closed(void *arg, int err)
{
	struct net_conn *c = arg;

	c->ops->closed(c->arg, err);
}

struct net_conn *net_conn_new_verbs(struct io_loop *l, struct net_verbs *v,
				    struct verbs_conn *vc,
				    const struct net_conn_config *cfg)
{
	struct net_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->l = l;
	c->cfg = *cfg;
	c->verbs = v;
	c->vconn = vc;
	return c;
}

/* ---- rejecting a connection of a device ---- */

static void conn_refused(void *arg)
{
	net_conn_free(arg);
}

/* The queue pair refers to receives of dmiser: free dmiser last. */
void net_conn_refuse_verbs(struct net_conn *c)
{
	const struct verbs_module *m;

	if (!c)
		return;
	m = net_verbs_module(c->verbs);
	rcap_refuse(m->qp(c->vconn));
	m->on_gone(c->vconn, conn_refused, c);
}

static void vconn_gone(void *arg)
{
	struct net_conn *c = arg;

	c->ops->closed(c->arg, 0);
}

static int start_verbs(struct net_conn *c)
{
	const struct verbs_module *m = net_verbs_module(c->verbs);
	struct dmiser_config d;

	if (!(c->cfg.allow & NET_ALLOW_RDMA))
		return ERR_DENIED;
	dmiser_config_default(&d, c->cfg.role);
	d.rules = c->cfg.rules_rdma;
	m->on_gone(c->vconn, vconn_gone, c);
	c->dmiser = dmiser_new(&d, m->qp(c->vconn));
	return c->dmiser ? c->ops->opened(c->arg, dmiser_dm(c->dmiser))
			 : ERR_NOMEM;
}

int net_conn_start(struct net_conn *c, const struct net_conn_ops *ops,
		   void *arg)
{
	int err;

	c->ops = ops;
	c->arg = arg;
	if (c->vconn)
		return start_verbs(c);
	if (c->cfg.start == NET_START_ANY) {
		c->deadline = io_now(c->l) + c->cfg.sniff_time;
		err = net_stream_start(c->stream, &sniff_ops, c, stream_closed,
				       c);
		if (!err && c->cfg.nbegin)
			end_sniff(c, io_now(c->l));
		return err;
	}
	err = make_core(c, c->cfg.start == NET_START_RDMA);
	if (err)
		return err;
	return net_stream_start(c->stream, ops_of(c), core_of(c), stream_closed,
				c);
}

void net_conn_free(struct net_conn *c)
{
	if (!c)
		return;
	dmiser_free(c->dmiser);
	iwarp_free(c->iwarp);
	dmtcp_free(c->dmtcp);
	net_stream_free(c->stream);
	if (c->vconn)
		net_verbs_module(c->verbs)->free(c->vconn);
	free(c);
}

void net_conn_drop(struct net_conn *c, int err, const char *why)
{
	if (!c->why)
		c->why = why;
	if (c->stream)
		net_stream_drop(c->stream, err);
	else
		rcap_terminate(net_verbs_module(c->verbs)->qp(c->vconn), err,
			       why);
}

int net_conn_held(struct net_conn *c)
{
	return c->stream ? net_stream_held(c->stream) : -1;
}

void net_conn_addresses(const struct net_conn *c, struct net_addr *local,
			struct net_addr *peer)
{
	if (c->stream) {
		net_stream_local(c->stream, local);
		net_stream_peer(c->stream, peer);
		return;
	}
	net_verbs_module(c->verbs)->addresses(c->vconn, &local->sa, &peer->sa);
	local->len = peer->len = sizeof(local->sa);
}

static void add_tcp(struct net_conn_stats *st, const struct dmtcp_stats *s)
{
	st->copied += s->copied;
	st->rx_pdus += s->rx_pdus;
	st->tx_pdus += s->tx_pdus;
	st->r2ts += s->r2ts;
	st->digest_errors += s->digest_errors;
}

static void add_iser(struct net_conn_stats *st, const struct dmiser_stats *s)
{
	st->copied += s->copied;
	st->rx_pdus += s->rx_pdus;
	st->tx_pdus += s->tx_pdus;
	st->rdma.writes += s->rdma_writes;
	st->rdma.reads += s->rdma_reads;
	st->rdma.acks += s->acks;
	st->rdma.write_bytes += s->write_bytes;
	st->rdma.read_bytes += s->read_bytes;
	st->rdma.invalidated += s->remote_invalidated + s->invalidated;
}

void net_conn_stats(const struct net_conn *c, struct net_conn_stats *st)
{
	*st = (struct net_conn_stats){ .copied = 0 };
	if (c->stream)
		st->net = *net_stream_stats(c->stream);
	/* a connection that switched has both */
	if (c->dmtcp)
		add_tcp(st, dmtcp_stats(c->dmtcp));
	if (c->iwarp) {
		st->copied += iwarp_stats(c->iwarp)->copied;
		st->digest_errors += iwarp_stats(c->iwarp)->crc_errors;
	}
	if (c->dmiser)
		add_iser(st, dmiser_stats(c->dmiser));
}

const char *net_conn_why(const struct net_conn *c)
{
	return c->why;
}

const char *net_conn_kind(const struct net_conn *c)
{
	if (c->vconn)
		return "iser, RDMA device";
	if (c->dmiser && c->dmtcp)
		return "iser, login over the stream";
	if (c->dmiser)
		return "iser, RDMA from the start";
	return c->dmtcp ? "iscsi" : "not known yet";
}

bool net_conn_is_iser(const struct net_conn *c)
{
	return c->dmiser != NULL;
}

unsigned net_conn_rules(const struct net_conn *c)
{
	if (!c->dmiser)
		return 0;
	return c->dmtcp ? c->cfg.rules_stream : c->cfg.rules_rdma;
}
