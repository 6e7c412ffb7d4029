/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.h: sockets for protocol cores: addresses, listeners, connecting, and the
 * driver that moves the bytes of a core (base/stream.h).
 *
 * Threads: every object belongs to the thread of its loop.
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
 * net_addr_parse parses "HOST", "HOST:PORT", "[V6]:PORT" and ":PORT", where
 * HOST is numeric; default_port if there is no PORT. Returns 0, -ERANGE (the port is
 * above 65535) or -EINVAL. An IPv6 address without brackets has no port; ":PORT" means
 * every IPv4 address of the machine.
 */
int net_addr_parse(struct net_addr *a, const char *text, uint16_t default_port);
/* net_addr_parse_listen parses an address to listen at: "PORT" and ":PORT" mean
 * 127.0.0.1, which only this machine reaches; else as net_addr_parse. -EDOM: an IPv6
 * address without brackets that may be another one with a port, as "::1:3260". */
int net_addr_parse_listen(struct net_addr *a, const char *text,
			  uint16_t default_port);
/* net_addr_is_loopback: also IPv4 in IPv6. */
bool net_addr_is_loopback(const struct net_addr *a);
/* net_addr_str: "local" for an address without a numeric form. */
void net_addr_str(const struct net_addr *a, char out[NET_ADDR_STR]);
/* net_addr_port: 0: the address has none. */
uint16_t net_addr_port(const struct net_addr *a);
/* net_host_name writes the name of this machine to out, always ended; "": unknown. */
void net_host_name(char *out, size_t size);

/* ---- a socket with a core ---- */

struct net_stream;

struct net_stream_stats {
	uint64_t rx_bytes, tx_bytes, rx_calls, tx_calls;
};

/* net_stream_new takes over fd, and makes it non-blocking, with TCP_NODELAY.
 * NULL: out of memory, and fd is closed. The caller then makes the core with
 * net_stream_host and starts the stream. */
struct net_stream *net_stream_new(struct io_loop *l, int fd);
/* net_stream_host: what the core calls; valid until net_stream_free. */
struct stream_host *net_stream_host(struct net_stream *s);

/*
 * net_stream_start starts to move bytes. closed(arg, err) is called once, from
 * the top of the loop, after ops->closed(core) and after the stream has closed
 * fd: the owner frees the core there, and then the stream with net_stream_free.
 * err is 0 (orderly) or ERR_…, as the core got it. Returns 0 or -Exxx; after an
 * error closed is not called.
 */
int net_stream_start(struct net_stream *s, const struct stream_ops *ops,
		     void *core, void (*closed)(void *arg, int err), void *arg);
/* net_stream_free: from closed on, or before start, or after start failed. */
void net_stream_free(struct net_stream *s);

/* net_stream_drop closes the socket at the end of the turn and drops unsent
 * data. closed gets err unless the core has a reason of its own. No effect
 * before start and after closed. */
void net_stream_drop(struct net_stream *s, int err);

/*
 * net_stream_hold: if the core ends the connection and the peer has neither
 * closed it nor failed, the stream leaves the socket open. net_stream_held then
 * passes it to the caller, from closed on (-1: none). net_reset ends a socket
 * by RST and drops unsent data; -1 is ignored.
 */
void net_stream_hold(struct net_stream *s);
int net_stream_held(struct net_stream *s);
void net_reset(int fd);

/* net_stream_peer, net_stream_local: addresses at the time of net_stream_new;
 * length 0: unknown. */
void net_stream_peer(const struct net_stream *s, struct net_addr *a);
void net_stream_local(const struct net_stream *s, struct net_addr *a);
/* net_stream_stats: valid until net_stream_free. */
const struct net_stream_stats *net_stream_stats(struct net_stream *s);

/*
 * net_file_backed declares that [base, base + len) is a shared mapping of fd
 * from offset 0: a stream may send large pieces of it with sendfile.
 * Process-wide; SIGPIPE is ignored from then on, unless it has a handler. Call
 * it before the first stream starts. base NULL removes fd. Returns 0 or
 * -ENOMEM.
 */
int net_file_backed(const void *base, size_t len, int fd);

/* net_stream_switch replaces the core from the next byte on; the stream does
 * not call the old core any more. Allowed from within the old core's ops. */
void net_stream_switch(struct net_stream *s, const struct stream_ops *ops,
		       void *core);
/* net_stream_mss: octets of a TCP segment (RFC 5044 §4.5 EMSS). 0: unlimited,
 * because no device on the path splits at segments (the loopback device, for
 * which the kernel reports half of the current window). */
size_t net_stream_mss(const struct net_stream *s);

/* ---- listening ---- */

struct net_listener;

/* net_listen: accepted gets each new socket (non-blocking), owns it, and may
 * free the listener. An IPv6 wildcard address does not accept IPv4. Returns
 * NULL with *err -Exxx (-EADDRINUSE, -EADDRNOTAVAIL, -EACCES ... of bind). */
struct net_listener *net_listen(struct io_loop *l, const struct net_addr *a,
				void (*accepted)(void *arg, int fd,
						 const struct net_addr *peer),
				void *arg, int *err);
/* net_listen_fd is net_listen for a socket that listens already, which it takes
 * over, also after an error. */
struct net_listener *
net_listen_fd(struct io_loop *l, int fd,
	      void (*accepted)(void *arg, int fd, const struct net_addr *peer),
	      void *arg, int *err);
/* net_listener_on_short: the listener calls short_of, with the arg of
 * net_listen, when accept fails with err -EMFILE or -ENFILE (no descriptor is
 * free), -ENOBUFS or -ENOMEM. peer: the connection that it closed with the help
 * of a spare descriptor; NULL: none. short_of must not free the listener. */
void net_listener_on_short(struct net_listener *n,
			   void (*short_of)(void *arg, int err,
					    const struct net_addr *peer));
/* net_listener_addr: the bound address, with its port. */
void net_listener_addr(const struct net_listener *n, struct net_addr *a);
/* net_listener_dup returns another descriptor of the listening socket, which the
 * caller closes; or -Exxx. The socket listens until all of them are closed. */
int net_listener_dup(const struct net_listener *n);
/* net_listener_pause(true) stops accepting, false resumes. */
void net_listener_pause(struct net_listener *n, bool pause);
/* net_listener_free: NULL has no effect. */
void net_listener_free(struct net_listener *n);

/* ---- connecting ---- */

struct net_connector;

/*
 * net_connect resolves host (names on a helper thread) and tries its addresses
 * in turn until deadline. done gets and owns the connected fd, or -Exxx in fd
 * (-ENOENT: unknown name) and a sentence, borrowed for the call. done is never
 * called from within net_connect, and c is freed before it. NULL: out of
 * memory.
 */
struct net_connector *
net_connect(struct io_loop *l, const char *host, uint16_t port, xtime deadline,
	    void (*done)(void *arg, int fd, const char *why), void *arg);
/* net_connect_cancel: done is not called. Only before done. */
void net_connect_cancel(struct net_connector *c);

#endif
