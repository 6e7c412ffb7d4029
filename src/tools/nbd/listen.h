/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.h: where NBD clients connect: a Unix socket or a loopback port. */
#ifndef TOOLS_NBD_LISTEN_H
#define TOOLS_NBD_LISTEN_H

struct nbd_listener {
	int fd;		  /* -1: not open */
	const char *path; /* of the Unix socket that close removes; borrowed */
	char uri[1024];	  /* nbd://... or nbd+unix://..., without the export */
	char tail[1024];  /* the part of the URI after the export */
};

/* nbd_listen_unix listens at a Unix socket that only its owner may use. path is
 * borrowed until the listener is closed. Returns 0 or an exit code, with the
 * reason printed; the caller closes the listener in either case. */
int nbd_listen_unix(struct nbd_listener *l, const char *path);
/* nbd_listen_tcp listens at HOST:PORT, which must be a loopback address: the
 * server does not authenticate its clients. Returns as nbd_listen_unix. */
int nbd_listen_tcp(struct nbd_listener *l, const char *where);
/* nbd_accept accepts one client. Returns its socket, or -1 with errno set. */
int nbd_accept(struct nbd_listener *l);
/* nbd_listener_close stops listening and removes the Unix socket. */
void nbd_listener_close(struct nbd_listener *l);

#endif
