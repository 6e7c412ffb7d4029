/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.c: listening sockets of the NBD server. */
#include "tools/nbd/listen.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/iser.h"

#define BACKLOG 64

static int say_listen_failed(const char *where)
{
	say("%s: cannot listen: %s", where, strerror(errno));
	return EXIT_GENERIC;
}

/* ---- Unix sockets ---- */

/* Writes the reserved characters of a URI (RFC 3986 §2.2) as %XX. */
static void escape_uri(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 4 <= size; text++) {
		unsigned char c = (unsigned char)*text;

		if (isalnum(c) || strchr("/-_.~", c))
			out[n++] = (char)c;
		else
			n += (size_t)snprintf(out + n, size - n, "%%%02X", c);
	}
	out[n] = '\0';
}

/* Removes a socket at which no process listens: a killed server left it. */
static void remove_stale(const struct sockaddr_un *a)
{
	struct stat st;
	int fd;

	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) &&
	    errno == ECONNREFUSED)
		unlink(a->sun_path);
	close(fd);
}

int nbd_listen_unix(struct nbd_listener *l, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char text[1000];
	mode_t mask;
	int err;

	if (strlen(path) >= sizeof(a.sun_path)) {
		say("%s: cannot listen: the path of a Unix socket has at most "
		    "%zu characters; give a shorter one",
		    path, sizeof(a.sun_path) - 1);
		return EXIT_INVALID;
	}
	strcpy(a.sun_path, path);
	remove_stale(&a);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return say_listen_failed(path);
	mask = umask(0177); /* only the owner may connect, and so write */
	err = bind(l->fd, (struct sockaddr *)&a, sizeof(a));
	umask(mask);
	if (err)
		return say_listen_failed(path);
	l->path = path;
	if (listen(l->fd, BACKLOG))
		return say_listen_failed(path);
	escape_uri(text, sizeof(text), path);
	snprintf(l->uri, sizeof(l->uri), "nbd+unix:///");
	snprintf(l->tail, sizeof(l->tail), "?socket=%s", text);
	return 0;
}

/* ---- TCP ---- */

static bool is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->sa_family == AF_INET)
		return ((const uint8_t *)&v4->sin_addr)[0] == 127;
	return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Splits HOST:PORT or [HOST]:PORT. */
static bool split_address(const char *where, char host[256], const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;

	if (len > 2 && where[0] == '[' && where[len - 1] == ']') {
		where++;
		len -= 2;
	}
	if (!colon || len == 0 || len > 255 || !colon[1])
		return false;
	memcpy(host, where, len);
	host[len] = '\0';
	*port = colon + 1;
	return true;
}

static int listen_at(struct nbd_listener *l, const struct addrinfo *ai,
		     const char *where)
{
	char host[INET6_ADDRSTRLEN], port[8];
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int one = 1;

	if (!is_loopback(ai->ai_addr)) {
		say("%s: not a loopback address: the NBD server does not "
		    "authenticate its clients; listen at 127.0.0.1 or [::1]",
		    where);
		return EXIT_INVALID;
	}
	l->fd = socket(ai->ai_family,
		       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return say_listen_failed(where);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l->fd, ai->ai_addr, ai->ai_addrlen) ||
	    listen(l->fd, BACKLOG) ||
	    getsockname(l->fd, (struct sockaddr *)&own, &len))
		return say_listen_failed(where);
	if (getnameinfo((struct sockaddr *)&own, len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return say_listen_failed(where);
	snprintf(l->uri, sizeof(l->uri),
		 ai->ai_family == AF_INET6 ? "nbd://[%s]:%s/" : "nbd://%s:%s/",
		 host, port);
	return 0;
}

int nbd_listen_tcp(struct nbd_listener *l, const char *where)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE };
	struct addrinfo *ai = NULL;
	const char *port;
	char host[256];
	int err;

	if (!split_address(where, host, &port)) {
		say("%s: not an address; give HOST:PORT or [HOST]:PORT", where);
		return EXIT_INVALID;
	}
	err = getaddrinfo(host, port, &hints, &ai);
	if (err) {
		say("%s: cannot look it up: %s", where, gai_strerror(err));
		return EXIT_INVALID;
	}
	err = listen_at(l, ai, where);
	freeaddrinfo(ai);
	return err;
}

/* ---- both ---- */

int nbd_accept(struct nbd_listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int one = 1;

	if (fd >= 0) /* fails on a Unix socket, which does no harm */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		say("NBD client: cannot accept it: %s", strerror(errno));
	return fd;
}

void nbd_listener_close(struct nbd_listener *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->path)
		unlink(l->path);
	l->fd = -1;
	l->path = NULL;
}
