/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conns.c: connections: a socket, its datamover, and the target's part, on
 * the worker that was picked for it when it was accepted.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/daemon.h"
#include "net/conn.h"

struct conn {
	struct list link; /* worker's conns */
	struct worker *worker;
	struct net_conn *net;
	bool opened;
};

/* Connections that have not yet said a byte, per worker. */
#define MAX_SILENT 64

/* Of what was opened, the target has said why it ended. */
static void conn_never_opened(const struct conn *c, int err)
{
	const char *why = net_conn_why(c->net);
	char name[NET_ADDR_STR];
	struct net_addr local, a;

	net_conn_addresses(c->net, &local, &a);
	net_addr_str(&a, name);
	trace_emit(&c->worker->daemon->log.trace,
		   err == ERR_TIMEOUT  ? TRACE_CONN_TIMEOUT
		   : err == ERR_DENIED ? TRACE_LOGIN_FAILED
				       : TRACE_CONN_CLOSE,
		   "%s closed: %s", name, why ? why : err_str(err));
}

static void conn_closed(void *arg, int err)
{
	struct conn *c = arg;

	if (!c->opened) {
		c->worker->nsilent--;
		conn_never_opened(c, err);
	}
	list_del(&c->link);
	net_conn_free(c->net);
	free(c);
}

static void host_of(char *host, const char *address)
{
	const char *port = strrchr(address, ':');
	size_t n = port ? (size_t)(port - address) : strlen(address);

	memcpy(host, address, n);
	host[n] = '\0';
}

static void fill_info(struct tgt_conn_info *info, const struct conn *c)
{
	struct net_addr local, a;

	static_assert(NET_ADDR_STR <= TGT_ADDR_STR, "addresses fit");
	net_conn_addresses(c->net, &local, &a);
	net_addr_str(&a, info->peer);
	host_of(info->peer_host, info->peer);
	info->owner = c->net;
	net_addr_str(&local, info->local);
}

static int conn_opened(void *arg, struct dm_conn *dm)
{
	struct conn *c = arg;
	struct tgt_conn_info info;

	c->opened = true;
	c->worker->nsilent--;
	fill_info(&info, c);
	return tgt_conn_accept(c->worker->target, dm, &info,
			       io_now(c->worker->loop));
}

static const struct net_conn_ops conn_ops = {
	.opened = conn_opened,
	.closed = conn_closed,
};

static void fill_config(const struct daemon *d, struct net_conn_config *cfg)
{
	net_conn_config_default(cfg, ISCSI_TARGET);
	cfg->allow = d->options.transports;
	if (d->options.strict)
		cfg->rules_rdma = cfg->rules_stream;
	io_random(NULL, (uint8_t *)&cfg->seed, sizeof(cfg->seed));
}

/* Makes what listens to fd, which is owned from here on. */
static int conn_build(struct conn *c, int fd)
{
	struct net_conn_config cfg;
	int err;

	fill_config(c->worker->daemon, &cfg);
	c->net = net_conn_new(c->worker->loop, fd, &cfg);
	if (!c->net)
		return ERR_NOMEM;
	err = net_conn_start(c->net, &conn_ops, c);
	if (err)
		net_conn_free(c->net);
	return err;
}

/* A connection of an RDMA device, on the worker that has it. */
static void verbs_accepted(void *arg, struct verbs_conn *vc)
{
	struct worker *w = arg;
	struct net_conn_config cfg;
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->worker = w;
	w->nsilent++;
	list_push_back(&w->conns, &c->link);
	fill_config(w->daemon, &cfg);
	c->net = net_conn_new_verbs(w->loop, w->verbs, vc, &cfg);
	if (c->net && !net_conn_start(c->net, &conn_ops, c)) {
		worker_busy(w);
		return;
	}
	net_conn_refuse_verbs(c->net);
	if (!c->opened)
		w->nsilent--;
	list_del(&c->link);
	free(c);
}

static void conn_open(struct worker *w, int fd)
{
	struct conn *c;

	if (w->nsilent >= MAX_SILENT) {
		trace_emit(&w->daemon->log.trace, TRACE_CONN_LIMIT,
			   "refused: too many connections that say nothing");
		close(fd); /* the oldest of them leave after 15 s */
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->worker = w;
	w->nsilent++;
	list_push_back(&w->conns, &c->link);
	if (conn_build(c, fd)) {
		w->nsilent--;
		list_del(&c->link);
		free(c);
		return;
	}
	worker_busy(w);
}

/* A socket on its way to another worker. */
struct arrival {
	struct dev_msg msg;
	struct worker *worker;
	int fd;
};

static void arrive(struct dev_msg *m)
{
	struct arrival *a = container_of(m, struct arrival, msg);

	/* never behind the drain message: listeners close before it is sent */
	conn_open(a->worker, a->fd);
	free(a);
}

void conns_accepted(void *arg, int fd, const struct net_addr *peer)
{
	struct daemon *d = arg;
	struct worker *w = &d->workers[d->next_worker++ % d->nworkers];
	struct arrival *a;

	(void)peer; /* asked of the socket on its worker */
	if (w->index == 0) {
		conn_open(w, fd);
		return;
	}
	a = malloc(sizeof(*a));
	if (!a) {
		close(fd);
		return;
	}
	*a = (struct arrival){ .msg.run = arrive, .worker = w, .fd = fd };
	worker_post(d, w->index, &a->msg);
}

/* The same of an RDMA device. */
struct verbs_arrival {
	struct dev_msg msg;
	struct worker *worker;
	struct verbs_request *request;
};

static void verbs_arrive(struct dev_msg *m)
{
	struct verbs_arrival *a = container_of(m, struct verbs_arrival, msg);
	struct worker *w = a->worker;

	net_verbs_module(w->verbs)->take(a->request, verbs_accepted, w);
	free(a);
}

void conns_verbs_asked(void *arg, struct verbs_request *r)
{
	struct daemon *d = arg;
	struct worker *w = &d->workers[d->next_worker++ % d->nworkers];
	const struct verbs_module *m = net_verbs_module(d->workers[0].verbs);
	struct verbs_arrival *a;

	if (w->index == 0) {
		m->take(r, verbs_accepted, w);
		return;
	}
	a = malloc(sizeof(*a));
	if (!a || net_verbs_hand(d->workers[0].verbs, r, w->verbs)) {
		free(a);
		m->refuse(r);
		return;
	}
	*a = (struct verbs_arrival){ .msg.run = verbs_arrive,
				     .worker = w,
				     .request = r };
	worker_post(d, w->index, &a->msg);
}
