/* SPDX-License-Identifier: BSD-2-Clause */
/* backed.h: memory that is a mapping of a file, and sending to a socket.
 * Private to this room. */
#ifndef NET_BACKED_H
#define NET_BACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* From this size on sendfile may be faster than a copy. On loopback it is with
 * a hot 256 KiB (6.5 against 8.1 GB/s at 16 KiB); with a whole disk the
 * receiver's copy from scattered pages is slower (4.5 against 5.5 GB/s):
 * registering memory is optional. */
#define NET_SENDFILE_MIN 16384u

/* net_backed_find: true: piece lies in a registered mapping: *fd, at *off. */
bool net_backed_find(const struct iovec *piece, int *fd, int64_t *off);

struct net_send {
	int fd;
	/* sendfile is not possible here; set by net_send_pieces */
	bool no_sendfile;
	uint64_t calls;
};

/*
 * net_send_pieces sends as much of iov as the socket takes. Returns the bytes
 * taken (fewer than all: the socket is full), or -Exxx if it took none for
 * another reason.
 */
int64_t net_send_pieces(struct net_send *s, struct iovec *iov, unsigned n);

#endif
