/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h: a unit and its NBD clients in one thread. Each turn of the loop reads
 * requests of all clients, submits them to libiser, and sends the replies that
 * are ready. Clients connect to a listener, or the owner adds them.
 */
#ifndef TOOLS_NBD_SERVER_H
#define TOOLS_NBD_SERVER_H

#include "tools/nbd/client.h"
#include "tools/nbd/listen.h"

struct nbd_server;

/* What the owner of a server decides. */
struct nbd_server_ops {
	/* SIGTERM or SIGINT came */
	void (*stop)(struct nbd_server *s);
	/* the session has ended, and logs in no more */
	void (*lost)(struct nbd_server *s);
	/* c is about to be freed, with no request in progress; NULL: ignored */
	void (*left)(struct nbd_server *s, struct nbd_client *c);
	/* called in each turn; returns the milliseconds until the next turn at
	 * the latest, -1: any time. NULL: -1 */
	int (*turn)(struct nbd_server *s);
};

struct nbd_server {
	/* set by the owner before nbd_server_open */
	const struct nbd_server_ops *ops;
	const char *name;     /* of the export */
	const char *command;  /* for messages: "nbd-serve" */
	unsigned reconnect;   /* iser_url.reconnect of a URL without it */
	bool once, read_only; /* once: ends when the last client has left */
	struct iser_context *ctx;
	/* state */
	struct nbd_unit unit;
	struct nbd_export export;
	struct nbd_listener listener;
	struct nbd_client *clients;
	unsigned nclients, last_number;
	bool negotiating;     /* at least one client is */
	int epoll, signals;   /* signals: a signalfd; also of SIGCHLD */
	bool listening;	      /* the listener is polled */
	bool paused;	      /* accept failed; polled again after a pause */
	bool leaving;	      /* ends when the clients have left */
	bool any_served;      /* a client finished its negotiation, for once */
	uint64_t drain_until; /* ns; with leaving */
	int code;
};

/* nbd_server_init makes a server that nbd_server_close accepts. */
void nbd_server_init(struct nbd_server *s);
/* nbd_server_open logs in, reads the properties of the unit and begins to watch
 * signals. Returns 0 or an exit code, with the reason printed. */
int nbd_server_open(struct nbd_server *s, const char *url);
/* nbd_server_add serves a client without a negotiation at a connected socket,
 * which the server owns from then on. Returns false without memory, printed. */
bool nbd_server_add(struct nbd_server *s, int fd);
/* nbd_server_leave ends the service in order: requests in progress are answered.
 * The exit code is code unless it is set already. */
void nbd_server_leave(struct nbd_server *s, int code);
/* nbd_server_run serves until the service has ended, and returns the exit code. */
int nbd_server_run(struct nbd_server *s);
/* nbd_server_close logs out and frees all that the server holds. */
void nbd_server_close(struct nbd_server *s);

#endif
