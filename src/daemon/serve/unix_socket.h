/* SPDX-License-Identifier: BSD-2-Clause */
/* unix_socket.h: listening at a Unix socket of the file system. */
#ifndef DAEMON_SERVE_UNIX_SOCKET_H
#define DAEMON_SERVE_UNIX_SOCKET_H

#include <sys/types.h>

struct daemon;

/* unix_socket_listen makes a listening, non-blocking socket at path with these
 * permissions, and replaces a socket that refuses connections. A directory that
 * does not exist is made, for the user that iserd becomes, who can remove the socket
 * then. option names the path in messages. Returns the descriptor, which the caller
 * closes, or -1 after a message. path must fit into sockaddr_un. */
int unix_socket_listen(const struct daemon *d, const char *option,
		       const char *path, mode_t mode);

#endif
