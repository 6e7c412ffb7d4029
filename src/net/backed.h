/* SPDX-License-Identifier: BSD-2-Clause */
/* backed.h: memory that is a mapping of a file, and how a socket is fed.
 * Private to this room. */
#ifndef NET_BACKED_H
#define NET_BACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* From this size on a page of the file given away may beat a copy: on
 * loopback with a hot 256 KiB it does (6.5 against 8.1 GB/s at 16 KiB), with a
 * whole disk behind it the receiver's copy from scattered pages is the slower
 * one (4.5 against 5.5 GB/s), so nobody has to register his memory. */
#define NET_SENDFILE_MIN 16384u

/* net_backed_find: whether piece lies in a registered mapping, and where. */
bool net_backed_find(const struct iovec *piece, int *fd, int64_t *off);

struct net_send {
	int fd;
	bool no_sendfile; /* this socket can't; set by net_send_pieces */
	uint64_t calls;
};

/*
 * net_send_pieces sends as much of iov as the socket takes. Returns the bytes
 * taken (fewer than all: it is full), or -Exxx when none was and not only for
 * want of room.
 */
int64_t net_send_pieces(struct net_send *s, struct iovec *iov, unsigned n);

#endif
