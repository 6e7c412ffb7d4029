/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conns.c: connections: a socket or queue pair, its datamover and the target's
 * part, on the worker that was chosen when the connection was accepted, or, for a
 * login with a TSIH, on the worker of its session.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "daemon/daemon.h"
#include "daemon/serve/kick.h"
#include "daemon/serve/portals.h"
#include "net/conn.h"

struct conn {
	struct list link;    /* worker's conns */
	struct list leaving; /* worker's leaving; from conns_ended on */
	/* changes under the lock of the gate, and only while fd is set and net
	 * is not (conn_move) */
	struct worker *worker;
	const struct portal *portal;
	struct net_conn *net;	       /* NULL: not open yet, or closed */
	int fd;			       /* until its worker opens it; then -1 */
	struct worker *to;	       /* where it belongs; NULL: here */
	uint8_t begin[NET_CONN_BEGIN]; /* to's net_conn_config.begin */
	unsigned nbegin;
	bool opened;
	bool drop_ran;
	struct admission_entry entry;
	struct dev_msg arrive, drop;
};

static const char drop_text[] =
	"to make room for new connections: the oldest without a session of "
	"the address that has most of them (--max-startups, --max-discovery)";

static struct gate *gate_of(const struct conn *c)
{
	return &c->worker->daemon->gate;
}

/* Logs the end of a connection that the target did not know and so did not
 * log. */
static void log_unopened(const struct conn *c, int err)
{
	const char *why = net_conn_why(c->net);
	char name[NET_ADDR_STR];
	struct net_addr local, a;

	net_conn_addresses(c->net, &local, &a);
	net_addr_str(&a, name);
	trace_emit(&c->worker->daemon->log.trace,
		   err == ERR_TIMEOUT	 ? TRACE_CONN_TIMEOUT
		   : err == ERR_DENIED	 ? TRACE_LOGIN_FAILED
		   : err == ERR_LIMIT	 ? TRACE_CONN_LIMIT
		   : err == ERR_PROTOCOL ? TRACE_PROTOCOL
					 : TRACE_CONN_CLOSE,
		   "%s closed: %s", name, why ? why : err_str(err));
}

/* ---- connections that the initiator has to close after its Logout ---- */

/* No limit of sessions counts them any more: so many of a worker may wait. */
#define LEAVING_MAX 32

static void leaving_remove(struct conn *c)
{
	if (!list_linked(&c->leaving))
		return;
	list_del(&c->leaving);
	c->worker->nleaving--;
}

static void drop_oldest_leaving(struct worker *w)
{
	struct conn *c = list_entry(w->leaving.next, struct conn, leaving);

	leaving_remove(c);
	net_conn_drop(c->net, ERR_LIMIT, "logged out");
}

static void leaving_add(struct conn *c)
{
	struct worker *w = c->worker;

	list_push_back(&w->leaving, &c->leaving);
	if (++w->nleaving > LEAVING_MAX || w->drained)
		drop_oldest_leaving(w);
}

/* ---- the end ---- */

/* Frees c, which has left the gate; a victim only after the message that drops
 * it has run. */
static void conn_free(struct conn *c)
{
	bool chosen = gate_leave(gate_of(c), &c->entry);

	traffic_add(&c->worker->traffic, c->net, false);
	leaving_remove(c);
	net_conn_free(c->net);
	c->net = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (chosen && !c->drop_ran)
		return;
	list_del(&c->link);
	free(c);
}

static void conn_arrive(struct dev_msg *m);

/* Takes the socket to worker c->to. False: it was lost, or c is a victim, and
 * stays. */
static bool conn_move(struct conn *c)
{
	struct worker *from = c->worker;
	int fd = net_conn_held(c->net);

	if (fd < 0)
		return false;
	traffic_add(&from->traffic, c->net, false);
	net_conn_free(c->net);
	c->net = NULL;
	c->fd = fd;
	list_del(&c->link);
	if (!gate_move(gate_of(c), &c->entry, &c->worker, c->to)) {
		list_push_back(&from->conns, &c->link);
		return false;
	}
	c->to = NULL;
	c->arrive.run = conn_arrive;
	worker_post(from->daemon, c->worker->index, &c->arrive);
	return true;
}

static void conn_closed(void *arg, int err)
{
	struct conn *c = arg;

	if (c->to && conn_move(c))
		return;
	if (!c->opened && !c->to)
		log_unopened(c, err);
	conn_free(c);
}

/* ---- dropping, on the victim's worker ---- */

static void conn_drop(struct dev_msg *m)
{
	struct conn *c = container_of(m, struct conn, drop);

	c->drop_ran = true;
	if (c->fd >= 0)
		return; /* conn_arrive closes it */
	if (!c->net) {
		list_del(&c->link);
		free(c);
		return;
	}
	if (c->opened)
		tgt_conn_drop(c->worker->target, c, drop_text);
	net_conn_drop(c->net, ERR_LIMIT, drop_text);
}

void conns_drain(struct worker *w)
{
	w->drained = true;
	while (w->nleaving)
		drop_oldest_leaving(w);
	list_for_each(it, &w->conns) {
		struct conn *c = list_entry(it, struct conn, link);

		if (c->net && !c->opened)
			net_conn_drop(c->net, ERR_TERMINATED,
				      "iserd is shutting down");
	}
}

/* Sends the message that drops e, unless e is NULL. From any worker. */
static void drop_victim(struct admission_entry *e)
{
	struct conn *c = e ? container_of(e, struct conn, entry) : NULL;

	if (!c)
		return;
	c->drop.run = conn_drop;
	worker_post(c->worker->daemon, c->worker->index, &c->drop);
}

/* ---- functions of tgt_config ---- */

int conns_logged_in(void *arg, void *owner, bool discovery, bool proven)
{
	struct conn *c = owner;
	struct daemon *d = arg;
	struct admission_entry *victim;
	struct net_addr local, a;
	char name[NET_ADDR_STR];
	int err;

	net_conn_addresses(c->net, &local, &a);
	net_addr_str(&a, name);
	err = gate_login(&d->gate, &c->entry, name, discovery, proven, &victim);
	drop_victim(victim);
	return err;
}

xtime conns_auth_begin(void *arg, void *owner, const char *account,
		       const char *initiator)
{
	struct conn *c = owner;
	struct daemon *d = arg;

	return gate_auth_begin(&d->gate, &c->entry, account, initiator);
}

xtime conns_auth_failed(void *arg, void *owner)
{
	struct conn *c = owner;
	struct daemon *d = arg;
	struct net_addr local, a;
	char name[NET_ADDR_STR];

	net_conn_addresses(c->net, &local, &a);
	net_addr_str(&a, name);
	return gate_auth_failed(&d->gate, &c->entry, name);
}

void conns_ended(void *arg, void *owner, bool logged_out)
{
	struct conn *c = owner;
	struct daemon *d = arg;

	gate_end(&d->gate, &c->entry);
	kick_ended(c->worker, c, logged_out);
	leaving_add(c); /* until conn_free, which may follow at once */
}

void conns_traffic(const struct worker *w, struct traffic *t)
{
	*t = w->traffic;
	list_for_each(it, &w->conns)
		traffic_add(t, list_entry(it, struct conn, link)->net, true);
}

const struct net_conn *conns_net(const void *owner)
{
	const struct conn *c = owner;

	return c->net;
}

/* ---- opening ---- */

/* Writes the address as tgt_conn_info has it: IPv4 as ::ffff:a.b.c.d. */
static void fill_address(uint8_t out[16], const struct net_addr *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->sa;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->sa;

	memset(out, 0, 16);
	if (a->sa.ss_family == AF_INET6) {
		memcpy(out, &v6->sin6_addr, 16);
	} else if (a->sa.ss_family == AF_INET) {
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &v4->sin_addr, 4);
	}
}

static void fill_info(struct tgt_conn_info *info, struct conn *c)
{
	struct net_addr local, a;

	static_assert(NET_ADDR_STR <= TGT_ADDR_STR, "addresses fit");
	net_conn_addresses(c->net, &local, &a);
	net_addr_str(&a, info->peer);
	info->owner = c;
	net_addr_str(&local, info->local);
	fill_address(info->address, &a);
	info->portal_group = c->portal->tag;
}

static int conn_opened(void *arg, struct dm_conn *dm)
{
	struct conn *c = arg;
	struct tgt_conn_info info;

	c->opened = true;
	fill_info(&info, c);
	return tgt_conn_accept(c->worker->target, dm, &info,
			       io_now(c->worker->loop));
}

/* FNV-1a of the peer's address. */
static unsigned hash_address(const struct net_addr *peer)
{
	unsigned h = 2166136261u;
	uint8_t a[16];

	fill_address(a, peer);
	for (unsigned i = 0; i < sizeof(a); i++)
		h = (h ^ a[i]) * 16777619u;
	return h;
}

static unsigned hash_peer(const struct net_conn *net)
{
	struct net_addr local, peer;

	net_conn_addresses(net, &local, &peer);
	return hash_address(&peer);
}

/*
 * A login with a TSIH belongs to the worker of its session (tgt_tsih_worker). The
 * TSIH of a login in RDMA mode comes too late: where sessions may have several
 * connections, all of one address are on one worker.
 */
static bool conn_elsewhere(void *arg, const uint8_t *begin, unsigned n)
{
	struct conn *c = arg;
	struct daemon *d = c->worker->daemon;
	unsigned tsih = n == NET_CONN_BEGIN ? get_be16(begin + 14) : 0;
	unsigned index = c->worker->index;

	if (tsih)
		index = tgt_tsih_worker(d->target, (uint16_t)tsih);
	else if (n == 1 && c->portal->joins)
		index = hash_peer(c->net) % d->nworkers;
	if (index == c->worker->index)
		return false;
	c->to = &d->workers[index];
	memcpy(c->begin, begin, n);
	c->nbegin = n;
	return true;
}

static const struct net_conn_ops conn_ops = {
	.opened = conn_opened,
	.elsewhere = conn_elsewhere,
	.closed = conn_closed,
};

/* Of a connection that stays where it is. */
static const struct net_conn_ops stay_ops = {
	.opened = conn_opened,
	.closed = conn_closed,
};

static void fill_conn_config(const struct portal *p,
			     struct net_conn_config *cfg)
{
	net_conn_config_default(cfg, ISCSI_TARGET);
	cfg->allow = p->transports;
	cfg->crc = p->daemon->options.session.mpa_crc == CRC_ALWAYS;
	if (p->strict)
		cfg->rules_rdma = cfg->rules_stream;
	io_random(NULL, (uint8_t *)&cfg->seed, sizeof(cfg->seed));
}

static struct conn *conn_new(const struct portal *p, struct worker *w, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->portal = p;
	c->worker = w;
	c->fd = fd;
	list_init(&c->link);
	list_init(&c->leaving);
	return c;
}

/* On the worker of c. net_conn_new takes over the socket. */
static void conn_open(struct conn *c)
{
	struct worker *w = c->worker;
	struct net_conn_config cfg;
	int fd = c->fd;
	bool stays;

	list_push_back(&w->conns, &c->link);
	if (c->drop_ran || w->drained) {
		conn_free(c);
		return;
	}
	c->fd = -1;
	fill_conn_config(c->portal, &cfg);
	memcpy(cfg.begin, c->begin, c->nbegin);
	cfg.nbegin = c->nbegin;
	c->net = net_conn_new(w->loop, fd, &cfg);
	stays = c->nbegin || w->daemon->nworkers == 1;
	if (!c->net || net_conn_start(c->net, stays ? &stay_ops : &conn_ops, c))
		conn_free(c);
	else
		worker_busy(w);
}

static void conn_arrive(struct dev_msg *m)
{
	/* after the drain message only if it was moved, since listeners close
	 * before */
	conn_open(container_of(m, struct conn, arrive));
}

void conns_accepted(void *arg, int fd, const struct net_addr *peer)
{
	const struct portal *p = arg;
	struct daemon *d = p->daemon;
	struct worker *w = &d->workers[d->portals.next_worker % d->nworkers];
	struct conn *c = conn_new(p, w, fd);
	struct admission_entry *victim;

	if (!c || !gate_arrive(&d->gate, &c->entry, peer, &victim)) {
		free(c);
		close(fd);
		return;
	}
	d->portals.next_worker++;
	drop_victim(victim);
	if (w->index == 0) {
		conn_open(c);
		return;
	}
	c->arrive.run = conn_arrive;
	worker_post(d, w->index, &c->arrive);
}

void conns_short(void *arg, int err, const struct net_addr *peer)
{
	struct daemon *d = ((const struct portal *)arg)->daemon;
	char name[NET_ADDR_STR] = "a connection";

	if (peer)
		net_addr_str(peer, name);
	trace_emit(&d->log.trace, TRACE_RESOURCE, "accept: %s; %s %s%s",
		   strerror(-err), name, peer ? "was closed" : "must wait",
		   err == -EMFILE ? "; raise the limit of open files (ulimit "
				    "-n, LimitNOFILE=)"
				  : "");
	drop_victim(gate_oldest(&d->gate));
}

/* Starts the connection of an RDMA device, on its worker. False: it has to be
 * refused. */
static bool verbs_start(struct conn *c, struct verbs_conn *vc)
{
	struct worker *w = c->worker;
	struct admission_entry *victim;
	struct net_conn_config cfg;
	struct net_addr local, peer;

	fill_conn_config(c->portal, &cfg);
	c->net = net_conn_new_verbs(w->loop, w->verbs, vc, &cfg);
	if (!c->net)
		return false;
	net_conn_addresses(c->net, &local, &peer);
	if (!gate_arrive(&w->daemon->gate, &c->entry, &peer, &victim))
		return false;
	drop_victim(victim);
	return !net_conn_start(c->net, &conn_ops, c);
}

static void verbs_accepted(void *arg, struct verbs_conn *vc)
{
	const struct portal_worker *at = arg;
	struct worker *w = at->worker;
	struct conn *c = conn_new(at->portal, w, -1);

	if (!c)
		return;
	list_push_back(&w->conns, &c->link);
	if (verbs_start(c, vc)) {
		worker_busy(w);
		return;
	}
	net_conn_refuse_verbs(c->net);
	c->net = NULL;
	if (c->entry.source) {
		conn_free(c);
		return;
	}
	list_del(&c->link);
	free(c);
}

/* A connection request of an RDMA device on its way to a worker. */
struct verbs_arrival {
	struct dev_msg msg;
	struct portal_worker *at;
	struct verbs_request *request;
};

static void verbs_arrive(struct dev_msg *m)
{
	struct verbs_arrival *a = container_of(m, struct verbs_arrival, msg);
	struct worker *w = a->at->worker;

	net_verbs_module(w->verbs)->take(a->request, verbs_accepted, a->at);
	free(a);
}

/* As conn_elsewhere: where sessions may have several connections, all of one address are
 * on one worker, since a connection of a device cannot change its worker later. */
static struct worker *verbs_worker(const struct portal *p,
				   const struct verbs_module *m,
				   const struct verbs_request *r)
{
	struct daemon *d = p->daemon;
	struct net_addr peer = { .len = 0 };

	if (!p->joins)
		return &d->workers[d->portals.next_worker++ % d->nworkers];
	m->asker(r, &peer.sa);
	return &d->workers[hash_address(&peer) % d->nworkers];
}

void conns_verbs_asked(void *arg, struct verbs_request *r)
{
	const struct portal *p = arg;
	struct daemon *d = p->daemon;
	const struct verbs_module *m = net_verbs_module(d->workers[0].verbs);
	struct worker *w = verbs_worker(p, m, r);
	struct verbs_arrival *a;

	if (w->index == 0) {
		m->take(r, verbs_accepted, &p->at[0]);
		return;
	}
	a = malloc(sizeof(*a));
	if (!a || net_verbs_hand(d->workers[0].verbs, r, w->verbs)) {
		free(a);
		m->refuse(r);
		return;
	}
	*a = (struct verbs_arrival){ .msg.run = verbs_arrive,
				     .at = &p->at[w->index],
				     .request = r };
	worker_post(d, w->index, &a->msg);
}
