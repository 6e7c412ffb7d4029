/* SPDX-License-Identifier: BSD-2-Clause */
/* rpc_link.h: a connection to the control socket of iserd (JSON-RPC 2.0, a line each), for
 * all programs that send requests to it. No function prints a message. */
#ifndef TOOLS_RPC_LINK_H
#define TOOLS_RPC_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* All zero but fd = -1 (RPC_LINK_NONE): not connected. */
struct rpc_link {
	int fd;
	char *in; /* of an answer; len of size bytes are read */
	size_t len, size;
};

#define RPC_LINK_NONE ((struct rpc_link){ .fd = -1 })

/* rpc_link_open connects l, which is not connected, to the socket at path within so many
 * seconds. Returns 0 or -Exxx: -ETIMEDOUT, -ENAMETOOLONG, or the error of connect(). */
int rpc_link_open(struct rpc_link *l, const char *path, unsigned seconds);
/* rpc_link_close ends the connection, if there is one, and frees what l has. */
void rpc_link_close(struct rpc_link *l);
/*
 * rpc_link_read waits so many seconds for the next line (0: for ever) and returns it as
 * *line, which the caller releases. Returns 0 or -Exxx: -ETIMEDOUT; -ECONNRESET: iserd
 * closed the connection; -EMSGSIZE: the line is too long; -EPROTO: it is not JSON.
 */
int rpc_link_read(struct rpc_link *l, unsigned seconds, json_t **line);
/*
 * rpc_link_call sends a request and reads the answer to it as rpc_link_read does. It takes
 * over params; NULL: no parameters. -EILSEQ: the request is not UTF-8, and was not sent.
 */
int rpc_link_call(struct rpc_link *l, const char *method, json_t *params,
		  unsigned seconds, json_t **answer);

#endif
