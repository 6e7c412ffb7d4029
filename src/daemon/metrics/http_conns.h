/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_conns.h: the connections of the HTTP endpoint, and which of them ends for
 * a new one: each peer has a share of HTTP_SHARE, all together HTTP_BUSY.
 */
#ifndef DAEMON_METRICS_HTTP_CONNS_H
#define DAEMON_METRICS_HTTP_CONNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/xtime.h"

#define HTTP_BUSY  24u
#define HTTP_SHARE 16u

/* A peer: an address without its port, of IPv6 its /64 (one host can use each
 * address of it), or the user at the other end of a Unix socket. */
struct http_peer {
	uint64_t kind, bits;
};

struct http_conn {
	struct list link; /* of struct http_conns */
	struct http_peer peer;
	int fd;
	bool has_ended; /* was returned by one of the functions below */
	bool is_waiting; /* the request is complete, the answer is not; set by the
			  * owner */
	xtime since;	 /* the beginning of this request */
};

struct http_conns {
	struct list all; /* http_conn.link, by since */
	unsigned n;
};

/* http_peer_of returns the peer at address a of the connected socket fd. */
struct http_peer http_peer_of(int fd, const struct sockaddr *a);
/* http_conns_add adds c, whose owner removes it, with its peer and fd set. Returns
 * the connection that has to end for c, or NULL: of c's peer if that has its
 * share, else of any peer if HTTP_BUSY exist; the one that began its request first,
 * preferably one that does not wait for its answer. */
struct http_conn *http_conns_add(struct http_conns *h, struct http_conn *c,
				 xtime now);
/* http_conns_remove removes c. */
void http_conns_remove(struct http_conns *h, struct http_conn *c);
/* http_conns_renew: c may begin another request now. */
void http_conns_renew(struct http_conns *h, struct http_conn *c, xtime now);
/* http_conns_expired returns a connection that began its request before `limit`
 * and has to end; NULL: there is none any more. */
struct http_conn *http_conns_expired(struct http_conns *h, xtime limit);

#endif
