/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.h: sockets under protocol cores: addresses, listeners, connecting, and
 * the driver that moves a core's bytes (base/stream.h).
 *
 * Threads: everything belongs to the thread of its loop.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <sys/socket.h>

#include "base/stream.h"
#include "io/io.h"

struct net_addr {
	struct sockaddr_storage sa;
	socklen_t len;
};

#define NET_ADDR_STR 64 /* "[v6]:port", terminated */

/*
 * net_addr_parse reads "HOST", "HOST:PORT", "[V6]:PORT", ":PORT" where HOST is
 * numeric; default_port fills in. Returns 0 or -EINVAL. An IPv6 address
 * without brackets is taken as an address without a port; ":PORT" is every
 * IPv4 address of the machine.
 */
int net_addr_parse(struct net_addr *a, const char *text, uint16_t default_port);
void net_addr_str(const struct net_addr *a, char out[NET_ADDR_STR]);
uint16_t net_addr_port(const struct net_addr *a);

/* ---- a socket under a core ---- */

struct net_stream;

struct net_stream_stats {
	uint64_t rx_bytes, tx_bytes, rx_calls, tx_calls;
};

/* net_stream_new takes over fd (made non-blocking, TCP_NODELAY). NULL: out of
 * memory; fd is closed then. Create the core with net_stream_host, then start.
 */
struct net_stream *net_stream_new(struct io_loop *l, int fd);
struct stream_host *net_stream_host(struct net_stream *s);

/*
 * net_stream_start begins to move bytes. closed(arg, err) is called once, from
 * the loop's top, after ops->closed(core) and after the fd was closed: the
 * owner frees the core there, and then the stream with net_stream_free. err is
 * 0 (orderly) or ERR_…, the same that the core got. Returns 0 or -Exxx; closed
 * is not called then.
 */
int net_stream_start(struct net_stream *s, const struct stream_ops *ops,
		     void *core, void (*closed)(void *arg, int err), void *arg);
/* net_stream_free: after closed (also from within), or before start or after
 * it failed. */
void net_stream_free(struct net_stream *s);

/*
 * net_stream_hold: a socket whose peer has neither closed nor failed when the
 * core gives up is not closed; net_stream_held takes it over then, from closed
 * on (-1: there is none). net_reset ends a socket by RST, and what was still to
 * be sent on it is dropped; -1 is fine.
 */
void net_stream_hold(struct net_stream *s);
int net_stream_held(struct net_stream *s);
void net_reset(int fd);

void net_stream_peer(const struct net_stream *s, struct net_addr *a);
void net_stream_local(const struct net_stream *s, struct net_addr *a);
const struct net_stream_stats *net_stream_stats(struct net_stream *s);

/*
 * net_file_backed tells that [base, base + len) is a shared mapping of fd from
 * offset 0: large pieces that a core sends from there may go by sendfile.
 * Process-wide (SIGPIPE is ignored from then on, unless it has a handler);
 * call it before the first stream starts. NULL base forgets fd. Returns 0 or
 * -ENOMEM.
 */
int net_file_backed(const void *base, size_t len, int fd);

/* net_stream_switch: from the next byte on another core has the stream; the
 * old one hears nothing more. Allowed from within the old one's ops. */
void net_stream_switch(struct net_stream *s, const struct stream_ops *ops,
		       void *core);
/* net_stream_mss: octets of a TCP segment (RFC 5044 §4.5 EMSS); 0: it does not
 * matter, since nothing on the path cuts at segments (the loopback device,
 * where what the kernel says is half the window so far). */
size_t net_stream_mss(const struct net_stream *s);

/* ---- listening ---- */

struct net_listener;

/* accepted gets each new socket (non-blocking) and owns it; it may free the
 * listener. An IPv6 wildcard does not take IPv4. Returns NULL with *err -Exxx
 * (-EADDRINUSE, -EADDRNOTAVAIL, -EACCES … as bind said). */
struct net_listener *net_listen(struct io_loop *l, const struct net_addr *a,
				void (*accepted)(void *arg, int fd,
						 const struct net_addr *peer),
				void *arg, int *err);
/* The address really bound (port 0 filled in). */
void net_listener_addr(const struct net_listener *n, struct net_addr *a);
/* net_listener_pause(true) stops accepting (out of connections or fds). */
void net_listener_pause(struct net_listener *n, bool pause);
void net_listener_free(struct net_listener *n);

/* ---- connecting ---- */

struct net_connector;

/*
 * net_connect resolves host (names too, on a helper thread) and connects,
 * trying each address in turn, until deadline. done gets the connected fd and
 * owns it, or -Exxx (in fd; -ENOENT: no such name) and a sentence that is
 * borrowed for the call. Never called from within; c is gone by then. NULL: out
 * of memory.
 */
struct net_connector *
net_connect(struct io_loop *l, const char *host, uint16_t port, xtime deadline,
	    void (*done)(void *arg, int fd, const char *why), void *arg);
/* net_connect_cancel: done is not called. Only before done. */
void net_connect_cancel(struct net_connector *c);

#endif
