/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client.h: one NBD client: its socket, and its requests at the unit. Payload
 * is received into the memory that the SCSI command is given, and sent from it.
 */
#ifndef TOOLS_NBD_CLIENT_H
#define TOOLS_NBD_CLIENT_H

#include "tools/nbd/unit.h"

#define NBD_JOBS      64	   /* requests of one client in progress */
#define NBD_BYTES     (64u << 20)  /* and their data, without the last one's */
#define NBD_ALL_BYTES (256u << 20) /* of all clients; each may have one more */

/* Bytes that are received ahead: one call brings many small requests. Payload
 * among them is copied, so the buffer is short. */
#define NBD_AHEAD (NBD_REQUEST_SIZE * 16)

enum nbd_client_state {
	NBD_NEGOTIATING,
	NBD_SERVING,
	NBD_LEAVING, /* no new requests; those in progress are answered */
	NBD_GONE,    /* the socket is dead; requests in progress end unanswered
		      */
};

struct nbd_client {
	enum nbd_client_state state;
	unsigned number; /* names the client in messages */
	int fd;
	unsigned events;	 /* of epoll, as they are set; the server's */
	bool served;		 /* finished the negotiation */
	bool asked_to_end;	 /* sent DISC */
	struct nbd_client *next; /* the server's */
	struct nbd_unit *unit;
	/* negotiation */
	uint64_t since;	 /* ns: when it connected */
	bool knows_size; /* the capacity was read since then: it may begin */
	struct nbd_nego nego;
	size_t nego_sent;
	/* received */
	uint8_t ahead[NBD_AHEAD];
	size_t ahead_at, ahead_len;
	struct nbd_job *filling; /* a WRITE whose data are being received */
	size_t filled;
	bool discard; /* the WRITE was refused: its data are dropped */
	/* requests */
	struct nbd_job jobs[NBD_JOBS], *free;
	unsigned in_flight; /* jobs at the unit */
	unsigned taken;	    /* jobs that are not free */
	size_t bytes;	    /* of data in all jobs that are taken */
	/* replies to send, in the order in which the requests completed */
	struct nbd_job *replies, **replies_tail;
	size_t sent; /* bytes of the first one */
};

/* nbd_client_new makes a client of a connected socket, which it owns from then
 * on, also when it fails. u and e are borrowed. NULL: out of memory. */
struct nbd_client *nbd_client_new(int fd, unsigned number, struct nbd_unit *u,
				  const struct nbd_export *e);
/* nbd_client_new_serving makes a client that does not negotiate, such as the NBD
 * device of Linux: simple replies, no metadata context. Otherwise as
 * nbd_client_new. */
struct nbd_client *nbd_client_new_serving(int fd, unsigned number,
					  struct nbd_unit *u,
					  const struct nbd_export *e);
/* nbd_client_free closes the socket and frees a client that is done
 * (nbd_client_is_done). */
void nbd_client_free(struct nbd_client *c);

/* nbd_client_receive receives requests and begins those for which there is
 * room. Returns whether it began one. */
bool nbd_client_receive(struct nbd_client *c);
/* nbd_client_send sends replies until the socket takes no more. */
void nbd_client_send(struct nbd_client *c);
/* nbd_client_wants returns the poll events that the client waits for. */
unsigned nbd_client_wants(const struct nbd_client *c);
/* nbd_client_is_ready returns whether a request was received ahead and there is
 * room to begin it. */
bool nbd_client_is_ready(const struct nbd_client *c);
/* nbd_client_check_nego drops a client that has not finished its negotiation
 * within 10 seconds; now is now_ns. Returns whether it still negotiates. It begins
 * to when the unit has answered READ CAPACITY, or after 3 seconds. */
bool nbd_client_check_nego(struct nbd_client *c, uint64_t now);
/* nbd_client_leave takes no more requests; those in progress are answered. */
void nbd_client_leave(struct nbd_client *c);
/* nbd_client_drop gives the connection up. */
void nbd_client_drop(struct nbd_client *c);
/* nbd_client_is_done returns whether nothing is in progress or to be sent, and
 * the client may be freed. */
bool nbd_client_is_done(const struct nbd_client *c);

#endif
