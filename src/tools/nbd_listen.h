/* SPDX-License-Identifier: BSD-2-Clause */
/* nbd_listen.h: where NBD clients connect: a Unix socket or a loopback port. */
#ifndef TOOLS_NBD_LISTEN_H
#define TOOLS_NBD_LISTEN_H

struct nbd_listener {
	int fd;
	const char *path; /* of a Unix socket that is ours to remove */
	char uri[1024];	  /* nbd://... or nbd+unix://..., without the export */
	char tail[1024];  /* what comes behind the export in it */
};

/* Each: 0 or an exit code, said already. path and where are borrowed. */
int nbd_listen_unix(struct nbd_listener *l, const char *path);
/* where: HOST:PORT; NBD knows no passwords, so the host is this one. */
int nbd_listen_tcp(struct nbd_listener *l, const char *where);
/* Accepts one client: a descriptor, or -1: there is none now. */
int nbd_accept(struct nbd_listener *l);
void nbd_listener_close(struct nbd_listener *l);

#endif
