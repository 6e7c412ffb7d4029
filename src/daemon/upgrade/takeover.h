/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * takeover.h: the live upgrade. An iserd that starts with --takeover asks the
 * iserd at its control socket to hand over. That iserd drops its connections,
 * flushes and closes its stores, and then sends its listening sockets, the memory
 * of its ram: LUNs and its persistent reservations. The new iserd confirms that it
 * has them all, opens its units and listeners, and serves when the old one has
 * answered "go" (confirm.c). Until the new one serves, the old one keeps what it
 * has sent: if the new one fails or ends, the old one starts again with that.
 * Meanwhile the listening sockets stay open: initiators that connect again wait in
 * their queue.
 *
 * All of it happens on the main thread: before the loops of the new process
 * start, and after those of the old process have stopped.
 */
#ifndef DAEMON_UPGRADE_TAKEOVER_H
#define DAEMON_UPGRADE_TAKEOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/lun_spec.h"
#include "net/net.h"

#define HANDED_KEY   128
#define HANDED_TOKEN 33

/* A listening socket; fd -1: it was taken. */
struct handed_listener {
	struct net_addr address;
	int fd;
};

/* The memory of a ram: LUN. */
struct handed_memory {
	char key[HANDED_KEY];	  /* the name of the backstore */
	struct lun_memory memory; /* fd -1: it was taken */
};

/* The persistent reservations of a unit (dev_lu_hand_over). */
struct handed_unit {
	uint8_t uuid[16]; /* of its store */
	uint8_t *bytes;	  /* from malloc */
	size_t len;
};

/* The identity of a store. */
struct handed_identity {
	uint8_t key[16]; /* unit_key */
	uint8_t uuid[16];
};

/* The identifier of a target port (dev_port_remember). */
struct handed_port {
	char *name; /* from malloc */
	uint16_t id;
};

struct handover {
	struct handed_listener *listeners;
	struct handed_memory *memory;
	struct handed_unit *units;
	struct handed_port *ports;
	struct handed_identity *identities;
	size_t nlisteners, nmemory, nunits, nports, nidentities;
	bool has_identities; /* earlier releases have none */
	/* what the confirmation repeats: only a peer that has read all knows it */
	char token[HANDED_TOKEN];
	bool is_own;	  /* of this process, which begins anew */
	int64_t watchdog; /* the period of WatchdogSec= in microseconds; or 0 */
};

/* handover_free closes the descriptors that were not taken, and frees h. NULL has
 * no effect. */
void handover_free(struct handover *h);

/* These append to h, which then owns the descriptor and the bytes, and closes or
 * frees them after an error. False: out of memory. */
bool handover_add_listener(struct handover *h, int fd);
bool handover_add_memory(struct handover *h, const struct handed_memory *m);
bool handover_add_unit(struct handover *h, const uint8_t uuid[16],
		       uint8_t *bytes, size_t len);

bool handover_add_port(struct handover *h, const char *name, uint16_t id);
bool handover_add_identity(struct handover *h, const uint8_t key[16],
			   const uint8_t uuid[16]);

/* handover_take_listener returns a listening socket for the address, which the
 * caller then owns; -1: there is none. Port 0 fits any port. */
int handover_take_listener(struct handover *h, const struct net_addr *a);
/* handover_take_memory sets *m to the memory of the ram: LUN with this key, whose
 * descriptor the caller then owns; false: there is none, and *m is unchanged. */
bool handover_take_memory(struct handover *h, const char *key,
			  struct lun_memory *m);
/* handover_unit returns the reservations of the unit on this store, borrowed; or
 * NULL. */
const struct handed_unit *handover_unit(const struct handover *h,
					const uint8_t uuid[16]);

/* handover_identity returns the identity that the store had, borrowed; or NULL. h may be
 * NULL. */
const uint8_t *handover_identity(const struct handover *h,
				 const uint8_t key[16]);

/* handover_send writes h to the socket, as the response to the method takeover.
 * Blocks. False: the peer has gone; errno has the reason. */
bool handover_send(const struct handover *h, int sock);
/* handover_receive reads that response. NULL: why has the reason. */
struct handover *handover_receive(int sock, char *why, size_t size);

/* handover_confirm reports to the iserd at the other end of the socket that h has
 * arrived. False: that iserd has gone. */
bool handover_confirm(const struct handover *h, int sock);
/* handover_serve reports that this process can serve, and waits until it may. False:
 * the other iserd goes on serving, or has gone; this process must not serve. */
bool handover_serve(int sock, xtime limit);
/* handover_await waits until the peer has confirmed h. False: it has gone, does not
 * answer by the limit (io_now_exact), or sent something else; errno has the
 * reason. */
bool handover_await(const struct handover *h, int sock, xtime limit);
/* handover_await_ready waits until the peer can serve. False as handover_await. */
bool handover_await_ready(int sock, xtime limit);
/* handover_go asks the peer to serve, and waits until it does. False: it has gone or
 * does not answer by the limit, and will not serve; errno has the reason. */
bool handover_go(int sock, xtime limit);
/* handover_refuse makes the peer end, and waits for that until the limit. The peer
 * closes the socket when it has closed its stores. */
void handover_refuse(int sock, xtime limit);

struct daemon;
struct unit;

/* takeover_ask asks the iserd at the control socket to hand over, and sets
 * d->inherited and d->handover_sock. False after a message. */
bool takeover_ask(struct daemon *d, const char *path);
/* takeover_serve waits until the iserd that has handed over to d lets d serve. False
 * after a message: d must end, and close d->handover_sock after its stores. No
 * effect if none has handed over. */
bool takeover_serve(struct daemon *d);

/* takeover_begin: a client at the socket sock asked for a handover. Worker 0. Returns NULL, and
 * sock is taken over: the caller ends iserd at once (shutdown_begin); or why it was refused. */
const char *takeover_begin(struct daemon *d, int sock);
/* Makes the key of the identity of the unit (unit_key). */
typedef void takeover_key(const struct unit *u, uint8_t key[16]);
/* takeover_collect copies the reservations and identities of all units and the identifiers of
 * the target ports, after the last flush. No effect unless takeover_begin was called. */
void takeover_collect(struct daemon *d, takeover_key *key_of);
/* takeover_finish sends all of it, after the stores are closed, and waits until the
 * next iserd serves. False after a message: another iserd had asked, and did not
 * take over; the caller takes over d->handover to serve again. */
bool takeover_finish(struct daemon *d);

#endif
