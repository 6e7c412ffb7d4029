/* SPDX-License-Identifier: BSD-2-Clause */
/* http_conns.c: the connections of the HTTP endpoint and their shares. */
#include "daemon/metrics/http_conns.h"

#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"

struct http_peer http_peer_of(int fd, const struct sockaddr *a)
{
	struct http_peer p = { .kind = a ? a->sa_family : AF_UNIX };
	struct ucred user;
	socklen_t len = sizeof(user);

	if (p.kind == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)a;

		p.bits = v4->sin_addr.s_addr;
	} else if (p.kind == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *)a;
		const uint8_t *b = v6->sin6_addr.s6_addr;
		bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);

		p.bits = get_be64(mapped ? b + 8 : b);
		p.kind += (uint64_t)mapped << 32;
	} else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &len)) {
		p.bits = user.uid;
	}
	return p;
}

static bool is_same(const struct http_peer *a, const struct http_peer *b)
{
	return a->kind == b->kind && a->bits == b->bits;
}

/* Counts the connections that have not ended; of one peer, if peer is not NULL. */
static unsigned count(const struct http_conns *h, const struct http_peer *peer)
{
	unsigned n = 0;

	list_for_each(it, &h->all) {
		const struct http_conn *c =
			list_entry(it, struct http_conn, link);

		n += !c->has_ended && (!peer || is_same(&c->peer, peer));
	}
	return n;
}

/* Returns the connection that began its request first; of one peer, if peer is
 * not NULL. */
static struct http_conn *first_of(const struct http_conns *h,
				  const struct http_peer *peer)
{
	struct http_conn *waiting = NULL;

	list_for_each(it, &h->all) {
		struct http_conn *c = list_entry(it, struct http_conn, link);

		if (c->has_ended || (peer && !is_same(&c->peer, peer)))
			continue;
		if (!c->is_waiting)
			return c;
		if (!waiting)
			waiting = c;
	}
	return waiting;
}

static struct http_conn *end(struct http_conn *c)
{
	if (c)
		c->has_ended = true;
	return c;
}

struct http_conn *http_conns_add(struct http_conns *h, struct http_conn *c,
				 xtime now)
{
	struct http_conn *old = NULL;

	if (count(h, &c->peer) >= HTTP_SHARE)
		old = end(first_of(h, &c->peer));
	else if (count(h, NULL) >= HTTP_BUSY)
		old = end(first_of(h, NULL));
	c->since = now;
	list_push_back(&h->all, &c->link);
	h->n++;
	return old;
}

void http_conns_remove(struct http_conns *h, struct http_conn *c)
{
	list_del(&c->link);
	h->n--;
}

void http_conns_renew(struct http_conns *h, struct http_conn *c, xtime now)
{
	c->since = now;
	c->is_waiting = false;
	list_del(&c->link);
	list_push_back(&h->all, &c->link);
}

struct http_conn *http_conns_expired(struct http_conns *h, xtime limit)
{
	list_for_each(it, &h->all) {
		struct http_conn *c = list_entry(it, struct http_conn, link);

		if (c->since > limit)
			break;
		if (!c->has_ended)
			return end(c);
	}
	return NULL;
}
