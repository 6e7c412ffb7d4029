/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nbd_client.h: one NBD client: its socket on one side, its requests at the
 * unit on the other. Payload is read from the socket into the memory that the
 * SCSI command is given, and sent from it.
 */
#ifndef TOOLS_NBD_CLIENT_H
#define TOOLS_NBD_CLIENT_H

#include "nbd_unit.h"

#define NBD_JOBS      64 /* requests that a client may have under way */
#define NBD_BYTES     (64u << 20) /* and their data, but for the last of them */
#define NBD_ALL_BYTES (256u << 20) /* of all clients; each may have one more */

/* Read at once, so that many small requests come with one call; what of it is
 * payload is copied, so it is short. */
#define NBD_AHEAD (NBD_REQUEST_SIZE * 16)

enum nbd_client_state {
	NBD_NEGOTIATING,
	NBD_SERVING,
	NBD_LEAVING, /* reads no more: what is under way is done and answered */
	NBD_GONE,    /* the socket is dead: what is under way is done */
};

struct nbd_client {
	enum nbd_client_state state;
	unsigned number; /* for people */
	int fd;
	unsigned events; /* epoll's, as they are set */
	bool served;	 /* came past the negotiation */
	struct nbd_client *next;
	struct nbd_unit *unit;
	/* negotiation */
	uint64_t since;
	struct nbd_nego nego;
	size_t nego_sent;
	/* what comes in */
	uint8_t ahead[NBD_AHEAD];
	size_t ahead_at, ahead_len;
	struct nbd_job *filling; /* a WRITE whose data are coming */
	size_t filled;
	bool discard; /* they are for nothing: it is refused */
	/* requests */
	struct nbd_job jobs[NBD_JOBS], *free;
	unsigned in_flight; /* at the unit */
	unsigned taken;	    /* jobs that are not free */
	size_t bytes;	    /* held by jobs */
	/* answers, in the order in which they are ready */
	struct nbd_job *replies, **replies_tail;
	size_t sent; /* of the first */
};

/* nbd_client_new takes fd, also when it fails (NULL: out of memory). */
struct nbd_client *nbd_client_new(int fd, unsigned number, struct nbd_unit *u,
				  const struct nbd_export *e);
/* Only when nbd_client_over. */
void nbd_client_free(struct nbd_client *c);

/* nbd_client_receive reads and begins what it may; returns whether anything
 * was begun. */
bool nbd_client_receive(struct nbd_client *c);
/* nbd_client_send sends what is ready, as far as the socket takes it. */
void nbd_client_send(struct nbd_client *c);
/* The poll events that would bring it on. */
unsigned nbd_client_wants(const struct nbd_client *c);
/* Requests are here already, and there is room for them again. */
bool nbd_client_is_ready(const struct nbd_client *c);
/* A client that has negotiated since before `now` less a limit of ours has no
 * place here any longer. Returns whether it still negotiates. */
bool nbd_client_hurry(struct nbd_client *c, uint64_t now);
/* No more requests; those that are under way are answered. */
void nbd_client_leave(struct nbd_client *c);
/* The connection is dropped. */
void nbd_client_drop(struct nbd_client *c);
/* Nothing is left to be done. */
bool nbd_client_over(const struct nbd_client *c);

#endif
