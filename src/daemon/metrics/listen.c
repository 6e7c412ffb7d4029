/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.c: binds the socket of --metrics. */
#include "daemon/metrics/listen.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/config/options.h"
#include "daemon/log/say.h"
#include "daemon/process/address_wait.h"
#include "daemon/serve/unix_socket.h"
#include "net/net.h"

static int report(const char *where)
{
	const char *advice = "";

	if (errno == EADDRINUSE)
		advice = "; another program has it: choose another port";
	else if (errno == EACCES)
		advice = "; ports below 1024 need root";
	say("--metrics %s: cannot listen: %s%s", where, strerror(errno),
	    advice);
	return EXIT_NETWORK;
}

/* More than a burst of clients: Linux drops a SYN that finds the queue full, and
 * the client repeats it after a second. */
#define BACKLOG 256

static int listen_tcp(struct http_listener *l, const char *where)
{
	char name[NET_ADDR_STR];
	unsigned waits = ADDRESS_WAITS;
	const int on = 1;
	struct net_addr a;
	int err = net_addr_parse_listen(&a, where, METRICS_PORT);

	assert(!err); /* cfg_set_metrics has checked it */
	l->fd = socket(a.sa.ss_family,
		       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return report(where);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	while (bind(l->fd, (struct sockaddr *)&a.sa, a.len) ||
	       listen(l->fd, BACKLOG))
		if (!address_wait(&waits, errno))
			return report(where);
	a.len = sizeof(a.sa);
	getsockname(l->fd, (struct sockaddr *)&a.sa, &a.len);
	l->is_loopback = net_addr_is_loopback(&a);
	net_addr_str(&a, name);
	snprintf(l->name, sizeof(l->name), "http://%s/", name);
	if (!l->is_loopback)
		say_note(
			"warning: --metrics %s is open to other machines without a "
			"password: each of them can read the names of initiators "
			"and LUNs; listen at 127.0.0.1 or a Unix socket",
			name);
	return 0;
}

/* The group of iserd may read it, too: a proxy for example. */
static int listen_unix(const struct daemon *d, struct http_listener *l,
		       const char *path)
{
	if (strlen(path) >= sizeof(l->path)) {
		say("--metrics %s: path too long", path);
		return EXIT_USAGE;
	}
	l->fd = unix_socket_listen(d, "--metrics", path, 0660);
	if (l->fd < 0)
		return EXIT_NETWORK;
	snprintf(l->path, sizeof(l->path), "%s", path);
	snprintf(l->name, sizeof(l->name), "%s", path);
	return 0;
}

int http_listen(const struct daemon *d, struct http_listener *l,
		const char *where)
{
	*l = (struct http_listener){ .fd = -1 };
	return where[0] == '/' ? listen_unix(d, l, where)
			       : listen_tcp(l, where);
}

void http_unlisten(const struct http_listener *l)
{
	if (l->path[0])
		unlink(l->path);
}
