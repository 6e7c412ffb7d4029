/* SPDX-License-Identifier: BSD-2-Clause */
/* link.c: the TCP connections between this process and its iSNS server. */
#include "tools/isns/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tools/isns/view.h"

#define CONNECT_MS 15000

/* ---- addresses ---- */

struct in6_addr isns_address_ip(const struct sockaddr_storage *ss)
{
	struct in6_addr ip;

	if (ss->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)ss)->sin6_addr;
	isns_map_ipv4(&ip, &((const struct sockaddr_in *)ss)->sin_addr);
	return ip;
}

/* Splits "HOST", "HOST:PORT", "IPV6", "[IPV6]" and "[IPV6]:PORT". False: too long. */
static bool split_name(const char *name, char host[256], char port[16])
{
	const char *colon = strrchr(name, ':'), *end;
	bool is_bracketed = name[0] == '[';

	if (colon && is_bracketed && colon[-1] != ']')
		colon = NULL;
	if (colon && !is_bracketed && colon != strchr(name, ':'))
		colon = NULL;
	end = colon ? colon : name + strlen(name);
	if (is_bracketed && end[-1] == ']') {
		name++;
		end--;
	}
	return snprintf(host, 256, "%.*s", (int)(end - name), name) < 256 &&
	       snprintf(port, 16, "%s", colon ? colon + 1 : "3205") < 16;
}

/* Looks the server up; the caller frees the list. NULL: there is no address. */
static struct addrinfo *look_up(struct isns_peer *p, int type)
{
	const struct addrinfo hints = { .ai_socktype = type };
	struct addrinfo *all = NULL;
	char host[256], port[16];
	int err = EAI_NONAME;

	if (split_name(p->name, host, port))
		err = getaddrinfo(host, port, &hints, &all);
	if (err) {
		snprintf(p->why, sizeof(p->why),
			 "no address: %s; give HOST or HOST:PORT of the server",
			 gai_strerror(err));
		return NULL;
	}
	p->nips = 0;
	for (struct addrinfo *a = all; a && p->nips < ARRAY_LEN(p->ips);
	     a = a->ai_next)
		p->ips[p->nips++] = isns_address_ip(
			(const struct sockaddr_storage *)a->ai_addr);
	return all;
}

/* Waits for the socket; false: it took longer. */
static bool wait_for(int fd, short events, int ms)
{
	struct pollfd f = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&f, 1, ms);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* Returns 0, or an errno. */
static int connect_socket(int fd, const struct addrinfo *a)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (!wait_for(fd, POLLOUT, CONNECT_MS))
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) ? errno : err;
}

/* Returns a socket that is connected to one of the addresses; or -1 and errno. */
static int connect_one(const struct addrinfo *all)
{
	int fd = -1, err = 0;

	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family,
			    a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		err = fd < 0 ? errno : connect_socket(fd, a);
		if (fd >= 0 && err) {
			close(fd);
			fd = -1;
		}
	}
	errno = err;
	return fd;
}

static int connect_peer(struct isns_peer *p, int type)
{
	struct addrinfo *all = look_up(p, type);
	int fd;

	if (!all)
		return -1;
	fd = connect_one(all);
	if (fd < 0)
		snprintf(p->why, sizeof(p->why),
			 "no connection: %s; give --server the address of an "
			 "iSNS server",
			 strerror(errno));
	freeaddrinfo(all);
	return fd;
}

int isns_peer_connect(struct isns_peer *p)
{
	return connect_peer(p, SOCK_STREAM);
}

bool isns_peer_route(struct isns_peer *p, struct in6_addr *ip)
{
	int fd = connect_peer(p, SOCK_DGRAM); /* sends nothing */
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	bool ok;

	if (fd < 0)
		return false;
	ok = !getsockname(fd, (struct sockaddr *)&own, &len);
	if (ok)
		*ip = isns_address_ip(&own);
	close(fd);
	return ok;
}

bool isns_peer_has(const struct isns_peer *p, const struct in6_addr *ip)
{
	for (unsigned i = 0; i < p->nips; i++)
		if (IN6_ARE_ADDR_EQUAL(&p->ips[i], ip))
			return true;
	return false;
}

/* ---- messages in ---- */

/* Receives up to n bytes; 0: none is there; -1: closed. */
static ssize_t take(int fd, void *to, size_t n)
{
	ssize_t got = recv(fd, to, n, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return got > 0 ? got : -1;
}

/* The header of a PDU is complete. False: it cannot be the next one of the message. */
static bool begin_pdu(struct isns_inbox *in)
{
	struct isns_header h;
	bool is_first = in->seq == 0;

	if (!isns_header_decode(&h, in->head) || h.seq != in->seq ||
	    is_first != !!(h.flags & ISNS_FIRST) ||
	    h.len > in->limit - in->payload.len)
		return false;
	if (!is_first &&
	    (h.function != in->header.function || h.xid != in->header.xid))
		return false;
	in->header = h;
	in->left = h.len;
	in->seq++;
	return true;
}

/* Reads the header, then the payload of a PDU. */
static ssize_t read_some(struct isns_inbox *in)
{
	uint8_t bytes[4096];
	ssize_t n;

	if (in->nhead < ISNS_HEADER_LEN) {
		n = take(in->fd, in->head + in->nhead,
			 ISNS_HEADER_LEN - in->nhead);
		if (n > 0)
			in->nhead += (size_t)n;
		return n > 0 && in->nhead == ISNS_HEADER_LEN && !begin_pdu(in)
			       ? -1
			       : n;
	}
	n = take(in->fd, bytes, MIN(in->left, sizeof(bytes)));
	if (n > 0) {
		isns_put_bytes(&in->payload, bytes, (size_t)n);
		in->left -= (size_t)n;
	}
	return in->payload.no_memory ? -1 : n;
}

enum isns_arrival isns_inbox_read(struct isns_inbox *in)
{
	for (;;) {
		ssize_t n = 1;

		if (in->nhead < ISNS_HEADER_LEN || in->left)
			n = read_some(in);
		if (n < 0)
			return ISNS_BROKEN;
		if (n == 0)
			return ISNS_WAIT;
		if (in->nhead < ISNS_HEADER_LEN || in->left)
			continue;
		if (in->header.flags & ISNS_LAST)
			return ISNS_COMPLETE;
		if (in->seq == 0)
			return ISNS_BROKEN; /* 65536 PDUs */
		in->nhead = 0;
	}
}

void isns_inbox_next(struct isns_inbox *in)
{
	isns_payload_free(&in->payload);
	in->nhead = in->left = 0;
	in->seq = 0;
}

/* ---- messages out ---- */

static bool send_bytes(int fd, const uint8_t *bytes, size_t n, int ms)
{
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0) {
			bytes += sent;
			n -= (size_t)sent;
		} else if (errno != EINTR &&
			   (errno != EAGAIN || !wait_for(fd, POLLOUT, ms))) {
			return false;
		}
	}
	return true;
}

bool isns_link_send(int fd, uint16_t function, uint16_t xid,
		    const struct isns_payload *p, int ms)
{
	struct isns_header h = {
		.function = function,
		.flags = ISNS_FROM_CLIENT | ISNS_FIRST,
		.xid = xid,
	};
	uint8_t head[ISNS_HEADER_LEN];
	size_t at = 0;

	if (p->no_memory)
		return false;
	do {
		h.len = (uint16_t)MIN(p->len - at, (size_t)ISNS_PDU_MAX);
		h.flags |= at + h.len == p->len ? ISNS_LAST : 0;
		isns_header_encode(&h, head);
		if (!send_bytes(fd, head, sizeof(head), ms) ||
		    !send_bytes(fd, p->bytes + at, h.len, ms))
			return false;
		at += h.len;
		h.flags &= (uint16_t)~ISNS_FIRST;
		h.seq++;
	} while (at < p->len);
	return true;
}
