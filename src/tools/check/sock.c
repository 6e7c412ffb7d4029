/* SPDX-License-Identifier: BSD-2-Clause */
/* sock.c: TCP connections of cases: bytes without a wait. The library in Lua
 * waits, and makes PDUs of the bytes. */
#include <errno.h>
#include <lauxlib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/check/check.h"

#define TYPE  "iser-check.sock"
#define PIECE 65536

struct sock {
	struct list node; /* of job.socks */
	struct job *job;
	int fd; /* -1: closed */
	uint16_t port;
	uint32_t seq[2];
};

struct job *sock_job(lua_State *l)
{
	return *(struct job **)lua_getextraspace(l);
}

static struct sock *check_sock(lua_State *l)
{
	return luaL_checkudata(l, 1, TYPE);
}

static void sock_close(struct sock *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	list_del(&s->node);
}

void sock_close_all(struct job *j)
{
	list_for_each_safe(it, &j->socks)
		sock_close(list_entry(it, struct sock, node));
}

static int close_sock(lua_State *l)
{
	sock_close(check_sock(l));
	return 0;
}

/* s:finish() sends FIN and goes on receiving. */
static int finish_sock(lua_State *l)
{
	shutdown(check_sock(l)->fd, SHUT_WR);
	return 0;
}

/* s:recv() returns bytes; nil if none are there; false at the end of the
 * stream. */
static int recv_sock(lua_State *l)
{
	struct sock *s = check_sock(l);
	static char piece[PIECE];
	ssize_t n = s->fd < 0 ? 0 : recv(s->fd, piece, sizeof(piece), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		lua_pushboolean(l, false);
		return 1;
	}
	capture_add(s->job->capture, s->port, false, s->seq, piece, (size_t)n);
	lua_pushlstring(l, piece, (size_t)n);
	return 1;
}

/* s:send(bytes, first) sends from byte first (1 is the first one) on, and
 * returns how many bytes the kernel took; false: the connection has ended. */
static int send_sock(lua_State *l)
{
	struct sock *s = check_sock(l);
	size_t len;
	const char *bytes = luaL_checklstring(l, 2, &len);
	lua_Integer first = luaL_checkinteger(l, 3);
	ssize_t n;

	luaL_argcheck(l, first >= 1 && (size_t)first <= len, 3, "out of range");
	n = s->fd < 0 ? -1
		      : send(s->fd, bytes + first - 1, len - (size_t)first + 1,
			     MSG_NOSIGNAL);
	if (n < 0 && s->fd >= 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	else if (n < 0) {
		lua_pushboolean(l, false);
		return 1;
	}
	capture_add(s->job->capture, s->port, true, s->seq, bytes + first - 1,
		    (size_t)n);
	lua_pushinteger(l, n);
	return 1;
}

/* s:failure() returns why the connection could not be made; nil: it was made. */
static int failure_of_sock(lua_State *l)
{
	struct sock *s = check_sock(l);
	int err = 0;
	socklen_t len = sizeof(err);

	if (s->fd < 0)
		err = EBADF;
	else
		getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (!err)
		return 0;
	lua_pushstring(l, strerror(err));
	return 1;
}

static int fd_of_sock(lua_State *l)
{
	lua_pushinteger(l, check_sock(l)->fd);
	return 1;
}

/* The local port; 0 if it is not known. */
static uint16_t port_of(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char port[8];

	if (getsockname(fd, (void *)&a, &len) ||
	    getnameinfo((void *)&a, len, NULL, 0, port, sizeof(port),
			NI_NUMERICSERV))
		return 0;
	return (uint16_t)strtoul(port, NULL, 10);
}

/* connect(host, port) begins a connection: when it can be written to, failure()
 * has the result. */
static int connect_sock(lua_State *l)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct sock *s;
	int fd, one = 1,
		err = getaddrinfo(luaL_checkstring(l, 1),
				  luaL_checkstring(l, 2), &hints, &found);

	if (err)
		return luaL_error(l, "%s: %s", lua_tostring(l, 1),
				  gai_strerror(err));
	s = lua_newuserdatauv(l, sizeof(*s), 0);
	memset(s, 0, sizeof(*s));
	s->job = sock_job(l);
	s->fd = -1;
	list_init(&s->node);
	luaL_setmetatable(l, TYPE);
	fd = socket(found->ai_family,
		    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (connect(fd, found->ai_addr, found->ai_addrlen) &&
		    errno != EINPROGRESS) {
			close(fd);
			fd = -1;
		}
	}
	err = errno;
	freeaddrinfo(found);
	if (fd < 0)
		return luaL_error(l, "no connection: %s", strerror(err));
	s->fd = fd;
	s->port = port_of(fd);
	list_push_back(&s->job->socks, &s->node);
	return 1;
}

const char *sock_probe(const char *host, const char *port, unsigned seconds)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct timeval limit = { .tv_sec = seconds };
	int fd, err = getaddrinfo(host, port, &hints, &found);

	if (err)
		return gai_strerror(err);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err = errno;
	else if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit,
			    sizeof(limit)) ||
		 connect(fd, found->ai_addr, found->ai_addrlen))
		err = errno == EINPROGRESS ? ETIMEDOUT : errno;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(found);
	return err ? strerror(err) : NULL;
}

void sock_open(lua_State *l)
{
	static const luaL_Reg methods[] = {
		{ "recv", recv_sock },
		{ "send", send_sock },
		{ "close", close_sock },
		{ "failure", failure_of_sock },
		{ "finish", finish_sock },
		{ "fd", fd_of_sock },
		{ NULL, NULL },
	};

	luaL_newmetatable(l, TYPE);
	luaL_newlib(l, methods);
	lua_setfield(l, -2, "__index");
	lua_pushcfunction(l, close_sock);
	lua_setfield(l, -2, "__gc");
	lua_pop(l, 1);
	lua_pushcfunction(l, connect_sock);
	lua_setfield(l, -2, "connect");
}
