/* SPDX-License-Identifier: BSD-2-Clause */
/* control_internal.h: the control socket's clients (control.c) and what they
 * can ask for (methods.c). All of it is worker 0's. */
#ifndef DAEMON_CONTROL_INTERNAL_H
#define DAEMON_CONTROL_INTERNAL_H

#include <jansson.h>

#include "daemon/daemon.h"

/* JSON-RPC 2.0 §5.1 */
enum rpc_error {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_INTERNAL = -32603,
};

struct control {
	struct daemon *daemon;
	struct io_loop *loop;
	struct io_watch watch; /* the listening socket */
	struct list clients;
	struct list collects; /* on their way */
	unsigned nclients;
	char path[108];
};

struct client {
	struct control *control;
	struct list link;
	struct io_watch watch;
	struct io_timer unread; /* set while it is asked for no more */
	struct io_defer more;	/* requests that waited */
	char *in, *out;
	size_t in_len, out_len;
	unsigned pending; /* who still needs it: answers that are owed, a call */
	unsigned owed;
	bool is_timed, gone;
};

struct request {
	struct client *client;
	json_t *id, *params; /* params may be NULL; both borrowed */
};

/* An answer that comes later, behind client_settle. The id is the owner's. */
struct owed {
	struct client *client;
	json_t *id;
};

/* An answer to c, sent at once as far as it takes it. client_result takes over
 * result. */
void client_result(struct client *c, json_t *id, json_t *result);
void client_error(struct client *c, json_t *id, enum rpc_error code,
		  const char *message);

/* client_owe: r is answered later; the id is the caller's to let go. */
struct owed client_owe(const struct request *r);
/* client_settle: it is answered now. False: there is nobody to answer. */
bool client_settle(const struct owed *o);

/* methods_call answers root, or owes the answer. */
void methods_call(struct client *c, json_t *root);
/* methods_end: what is on its way is not answered any more. Behind
 * workers_stop: nobody visits any more, nor will. */
void methods_end(struct control *k);

#endif
