/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.h: the listening socket of --metrics. */
#ifndef DAEMON_METRICS_LISTEN_H
#define DAEMON_METRICS_LISTEN_H

#include <stdbool.h>

struct daemon;

struct http_listener {
	int fd;
	bool is_loopback; /* a TCP address that only this machine reaches */
	char name[120];	  /* URL or path, as bound */
	char path[108];	  /* of the Unix socket; "" for TCP */
};

/* http_listen binds *l to where, an address or an absolute path. Warns of an
 * address that other machines reach. Returns 0, or an exit code after a
 * message. The caller closes l->fd. */
int http_listen(const struct daemon *d, struct http_listener *l,
		const char *where);
/* http_unlisten removes the Unix socket. */
void http_unlisten(const struct http_listener *l);

#endif
