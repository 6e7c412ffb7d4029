/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.c: what the iSNS server sends of its own accord. */
#include "tools/isns/listen.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"

#define CONNS 4 /* a new connection replaces the oldest one */

static struct {
	int fd; /* 0: none */
	const struct isns_peer *peer;
	isns_changed *changed;
	struct isns_inbox conns[CONNS]; /* fd 0: free; the oldest is the first */
} port;

bool isns_listen_open(struct isns_reach *at, const struct isns_peer *peer,
		      isns_changed *changed)
{
	struct sockaddr_storage ss = { .ss_family = AF_INET6 };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	socklen_t len = sizeof(ss);
	int fd;

	if (IN6_IS_ADDR_V4MAPPED(&at->ip)) {
		ss.ss_family = AF_INET;
		memcpy(&in->sin_addr, &at->ip.s6_addr[12], 4);
	} else {
		in6->sin6_addr = at->ip;
	}
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&ss, sizeof(ss)) ||
	    listen(fd, CONNS) ||
	    getsockname(fd, (struct sockaddr *)&ss, &len)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	/* the port of IPv4 is at the same place */
	at->port = get_be16((const uint8_t *)&in6->sin6_port);
	port.fd = fd;
	port.peer = peer;
	port.changed = changed;
	return true;
}

static void drop_conn(unsigned i)
{
	isns_inbox_next(&port.conns[i]);
	close(port.conns[i].fd);
	memmove(&port.conns[i], &port.conns[i + 1],
		(CONNS - 1 - i) * sizeof(port.conns[0]));
	port.conns[CONNS - 1] = (struct isns_inbox){ 0 };
}

static void accept_conn(void)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd = accept4(port.fd, (struct sockaddr *)&ss, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct in6_addr ip;
	unsigned i = 0;

	if (fd < 0)
		return;
	ip = isns_address_ip(&ss);
	if (!isns_peer_has(port.peer, &ip)) {
		close(fd);
		return;
	}
	while (i < CONNS && port.conns[i].fd)
		i++;
	if (i == CONNS) {
		drop_conn(0);
		i--;
	}
	port.conns[i] = (struct isns_inbox){ .fd = fd, .limit = ISNS_PDU_MAX };
}

/* Responds to a message. False: the connection ends. */
static bool respond(const struct isns_inbox *in)
{
	const struct isns_payload *p = &in->payload;
	struct isns_attrs all = { p->bytes, p->len };
	struct isns_payload r = { 0 };
	const char *to;
	bool ok;

	if (in->header.function & ISNS_RESPONSE)
		return false;
	if (!isns_attrs_valid(all)) {
		isns_put_word(&r, ISNS_FORMAT_ERROR);
	} else if (in->header.function == ISNS_ESI) {
		isns_put_word(&r, ISNS_SUCCESS); /* §5.7.5.13 */
		isns_put_bytes(&r, p->bytes, p->len);
	} else if (in->header.function == ISNS_SCN) {
		to = isns_answer_changed(all, port.changed);
		isns_put_word(&r, to ? ISNS_SUCCESS : ISNS_FORMAT_ERROR);
		if (to) /* §5.7.5.8 */
			isns_put_text(&r, ISNS_NODE_NAME, to);
	} else {
		isns_put_word(&r, ISNS_NOT_SUPPORTED);
	}
	ok = isns_link_send(in->fd, in->header.function | ISNS_RESPONSE,
			    in->header.xid, &r, 0);
	isns_payload_free(&r);
	return ok;
}

/* Returns whether the connection stays. */
static bool read_conn(struct isns_inbox *in)
{
	enum isns_arrival a = isns_inbox_read(in);

	if (a == ISNS_COMPLETE && !respond(in))
		return false;
	if (a == ISNS_COMPLETE)
		isns_inbox_next(in);
	return a != ISNS_BROKEN;
}

void isns_listen_wait(int ms)
{
	struct pollfd f[CONNS + 1];
	unsigned n = 0;

	while (n < CONNS && port.conns[n].fd) {
		f[n] = (struct pollfd){ .fd = port.conns[n].fd,
					.events = POLLIN };
		n++;
	}
	f[n] = (struct pollfd){ .fd = port.fd ? port.fd : -1,
				.events = POLLIN };
	if (poll(f, n + 1, ms) <= 0)
		return;
	for (unsigned i = n; i-- > 0;)
		if (f[i].revents && !read_conn(&port.conns[i]))
			drop_conn(i);
	if (f[n].revents)
		accept_conn();
}
