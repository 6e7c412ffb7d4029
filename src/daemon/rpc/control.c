/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: the management socket: listens at a Unix socket, accepts clients
 * (client.c) and drops idle ones where there are too many.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/log/say.h"
#include "daemon/metrics/snapshot.h"
#include "daemon/rpc/internal.h"
#include "daemon/serve/unix_socket.h"

#define CLIENTS_MAX 16

/* The pause of accept after it failed. */
#define REST_TIME (100 * XTIME_MS)

/* The time of worker 0 for requests in a row: an administrator's script may change much at
 * once. */
static const struct credit share = { .burst = 20 * XTIME_MS, .part = 5 };

/* ---- more clients than there is room for ---- */

/* Returns the client with the oldest request, of those to which no response is
 * owed; or NULL. */
static struct client *idle_client(const struct control *k)
{
	list_for_each(it, &k->clients) {
		struct client *c = list_entry(it, struct client, link);

		if (!c->pending && !c->out_len && !c->follows)
			return c;
	}
	return NULL;
}

/* Returns whether the peer of fd is root or the user that iserd runs as. */
static bool is_administrator(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) &&
	       (who.uid == 0 || who.uid == geteuid());
}

/* Drops an idle client to make room for the connection fd, or for any
 * connection if fd is -1. If no client is idle, an administrator at fd takes
 * the place of the client with the oldest request. False: no client was
 * dropped. */
static bool displace_client(struct control *k, int fd)
{
	struct client *c = idle_client(k);

	if (!c && fd >= 0 && is_administrator(fd))
		c = list_entry(k->clients.next, struct client, link);
	if (!c)
		return false;
	trace_emit(&k->daemon->log.trace, TRACE_CONN_LIMIT,
		   "control socket: dropped the client that asked longest ago, "
		   "for a new one");
	client_close(c);
	return true;
}

static void add_client(struct control *k, int fd)
{
	static const char no[] =
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
		"\"message\":\"too many clients of the control socket\"}}\n";
	struct client *c = NULL;

	if (k->nclients < CLIENTS_MAX || displace_client(k, fd))
		c = client_new(k, fd);
	else
		(void)send(fd, no, sizeof(no) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!c)
		close(fd);
}

static int accept_client(const struct control *k)
{
	int fd = accept4(k->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return fd >= 0 ? fd : -errno;
}

/* Accepts a connection when no descriptor is left: first closes that of an idle
 * client, or the spare one. */
static int accept_short(struct control *k)
{
	if (!displace_client(k, -1) && k->spare >= 0) {
		close(k->spare);
		k->spare = -1;
	}
	return accept_client(k);
}

static void rest_over(struct io_timer *t)
{
	struct control *k = container_of(t, struct control, rest);

	io_watch_want(k->loop, &k->watch, IO_IN);
}

static void control_ready(struct io_watch *w, unsigned events)
{
	struct control *k = container_of(w, struct control, watch);
	int fd = accept_client(k);

	(void)events;
	if (fd == -EMFILE || fd == -ENFILE)
		fd = accept_short(k);
	if (fd >= 0)
		add_client(k, fd);
	if (k->spare < 0 && k->nclients == 0)
		k->spare = rpc_spare_open();
	if (fd >= 0 || fd == -EAGAIN || fd == -ECONNABORTED)
		return;
	/* the connection stays in the queue: without a pause each turn of the
	 * loop would fail again */
	if (!io_timer_set(k->loop, &k->rest, io_now(k->loop) + REST_TIME))
		io_watch_want(k->loop, &k->watch, 0);
}

/* ---- open, close ---- */

struct control *control_open(struct daemon *d, const char *path,
			     control_shut_down *shut_down)
{
	struct control *k = calloc(1, sizeof(*k));

	if (!k || strlen(path) >= sizeof(k->path)) {
		say("--control %s: %s", path,
		    k ? "path too long" : "out of memory");
		free(k);
		return NULL;
	}
	k->daemon = d;
	k->loop = d->loops[0];
	k->call = methods_call;
	list_init(&k->clients);
	list_init(&k->turns);
	pace_init(&k->pace, k->loop, &share, client_take_turn);
	list_init(&k->endings);
	list_init(&k->handovers);
	rpc_wait_open(k);
	memcpy(k->path, path, strlen(path) + 1);
	k->rest.fire = rest_over;
	k->shut_down = shut_down;
	k->watch.fd = unix_socket_listen(d, "--control", path, 0600);
	k->watch.want = IO_IN;
	k->watch.ready = control_ready;
	if (k->watch.fd < 0 || io_watch_add(k->loop, &k->watch)) {
		if (k->watch.fd >= 0)
			close(k->watch.fd);
		free(k);
		return NULL;
	}
	k->spare = rpc_spare_open();
	return k;
}

void control_close(struct control *k)
{
	while (!list_empty(&k->clients))
		client_close(list_entry(k->clients.next, struct client, link));
	rpc_events_end(k);
	snapshot_abandon(k->daemon);
	rpc_kick_end(k);
	rpc_cluster_end(k);
	rpc_wait_close(k);
	pace_end(&k->pace);
	io_timer_clear(k->loop, &k->rest);
	io_watch_del(k->loop, &k->watch);
	close(k->watch.fd);
	if (k->spare >= 0)
		close(k->spare);
	unlink(k->path);
	free(k);
}
