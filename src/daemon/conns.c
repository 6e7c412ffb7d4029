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
#include "datamover/tcp/dmtcp.h"

struct conn {
	struct list link; /* worker's conns */
	struct worker *worker;
	struct net_stream *stream;
	struct dmtcp_conn *dm;
};

static void conn_closed(void *arg, int err)
{
	struct conn *c = arg;

	(void)err; /* the target has said why */
	list_del(&c->link);
	dmtcp_free(c->dm);
	net_stream_free(c->stream);
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
	struct net_addr a;

	static_assert(NET_ADDR_STR <= TGT_ADDR_STR, "addresses fit");
	net_stream_peer(c->stream, &a);
	net_addr_str(&a, info->peer);
	host_of(info->peer_host, info->peer);
	net_stream_local(c->stream, &a);
	net_addr_str(&a, info->local);
}

/* Makes the layers over fd, which is owned from here on. */
static int conn_build(struct conn *c, int fd)
{
	struct tgt_conn_info info;
	struct dmtcp_config cfg;
	int err;

	c->stream = net_stream_new(c->worker->loop, fd);
	if (!c->stream)
		return ERR_NOMEM;
	dmtcp_config_default(&cfg, ISCSI_TARGET);
	c->dm = dmtcp_new(&cfg, net_stream_host(c->stream));
	if (!c->dm) {
		net_stream_free(c->stream);
		return ERR_NOMEM;
	}
	fill_info(&info, c);
	err = tgt_conn_accept(c->worker->target, dmtcp_dm(c->dm), &info,
			      io_now(c->worker->loop));
	if (err) {
		dmtcp_free(c->dm);
		net_stream_free(c->stream);
	}
	return err;
}

static void conn_open(struct worker *w, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		close(fd);
		return;
	}
	c->worker = w;
	list_push_back(&w->conns, &c->link);
	err = conn_build(c, fd);
	if (!err)
		err = net_stream_start(c->stream, &dmtcp_stream_ops, c->dm,
				       conn_closed, c);
	if (err) {
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
