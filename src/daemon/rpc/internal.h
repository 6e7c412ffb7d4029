/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: inside rpc/: control.c listens and accepts clients, client.c
 * reads their requests and writes the responses, methods*.c execute the
 * requests by the rows of api.c. All of it belongs to worker 0.
 */
#ifndef DAEMON_RPC_INTERNAL_H
#define DAEMON_RPC_INTERNAL_H

#include <jansson.h>

#include "daemon/daemon.h"
#include "daemon/process/pace.h"
#include "daemon/rpc/api.h"
#include "daemon/rpc/control.h"

/* JSON-RPC 2.0 §5.1 */
enum rpc_error {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	/* of iserd: the same request may be accepted later */
	RPC_CHANGED = -32001, /* the configuration has another version */
	RPC_BUSY = -32002,    /* an earlier change is in progress */
};

struct cfg_errors;
struct cfg_model;
struct client;
struct events;
struct snapshot;

struct control {
	struct daemon *daemon;
	struct io_loop *loop;
	/* methods_call: executes one request of a client */
	void (*call)(struct client *c, json_t *root);
	control_shut_down *shut_down;
	struct io_watch watch; /* the listening socket */
	struct io_timer rest;  /* pauses accept after it failed */
	int spare;	     /* a descriptor for when no other is left; or -1 */
	struct list clients; /* the client with the oldest request first */
	struct events *events; /* NULL: none was asked for */
	struct list endings;   /* struct kick_call of methods_sessions.c */
	struct list handovers; /* struct cluster_call of methods_cluster.c */
	/* clients that have input, one request in turn: a client that sends many in a row
	 * leaves time for others and for initiators */
	struct list turns; /* client.turn */
	struct pace pace;
	struct { /* wait.c: requests that wait for the end of a change */
		struct list all;
		struct io_timer timer;
		bool is_over; /* the request that runs has waited */
	} wait;
	unsigned nclients;
	char path[108];
};

struct client {
	struct control *control;
	struct list link; /* of control.clients */
	struct io_watch watch;
	struct io_timer unread; /* until the client is dropped for not reading */
	struct list turn;	/* of control.turns */
	/* bytes [in_at, in_len) are not taken yet; has_input: they may have a whole line */
	char *in, *out;
	size_t in_at, in_len, in_size, out_len;
	bool has_input;
	unsigned pending; /* references: responses that are owed, callers */
	unsigned owed;	  /* responses that are owed */
	bool is_timed, gone;
	bool follows; /* events.c */
};

struct request {
	struct client *client;
	json_t *id; /* borrowed; NULL: a notification, without a response */
	const struct rpc_args *args; /* checked by the rows of api.h */
	json_t *root;		     /* the whole request, borrowed */
};

/* A response that is given later: its client, and the id of the request (NULL: a
 * notification), which the owner of this struct releases. */
struct owed {
	struct client *client;
	json_t *id;
};

/* client_new makes a client of the connected socket fd, which it takes over.
 * NULL: no memory, and fd is still the caller's. */
struct client *client_new(struct control *k, int fd);
/* client_close drops the client. The struct is freed once no response is owed
 * to it and no caller holds it. */
void client_close(struct client *c);

/* client_take_turn takes a request of the client whose turn it is; control.pace. */
void client_take_turn(struct pace *p);

/* client_result sends a response with result, which it takes over. The client of
 * a notification, which has no id, gets no response; of client_error, too. */
void client_result(struct client *c, json_t *id, json_t *result);
/* client_error sends a response with an error, in the form of printf, whose control
 * characters and bytes that are not UTF-8 are escaped. Returns false. */
bool client_error(struct client *c, json_t *id, enum rpc_error code,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* client_send sends len bytes at text, which end with a newline; it may close the
 * client. */
void client_send(struct client *c, const char *text, size_t len);
/* client_owe: the response to r is given later. The client stays until
 * client_settle; the caller releases the id. */
struct owed client_owe(const struct request *r);
/* client_settle ends what client_owe began, before or after the response is
 * sent. False: the client has gone, and may be freed now. */
bool client_settle(const struct owed *o);

/* method_events, of events.c, makes the client follow the events. */
void method_events(const struct request *r);
/* rpc_events_leave: the client does not follow any more; rpc_events_end frees k->events,
 * after workers_stop. */
void rpc_events_leave(struct client *c);
void rpc_events_end(struct control *k);

/* methods_call executes root, a JSON value that a client sent: it responds, or
 * owes the response. */
void methods_call(struct client *c, json_t *root);
/* request_daemon returns the daemon that r is sent to. */
static inline struct daemon *request_daemon(const struct request *r)
{
	return r->client->control->daemon;
}

/* methods of methods_unit.c: of one LUN. Each responds, or owes the
 * response. */
/* method_eject takes the medium out of a drive. */
void method_eject(const struct request *r);
/* method_insert opens an image and makes it the medium of a drive. */
void method_insert(const struct request *r);
/* method_clear ends the state that a failed flush left. */
void method_clear(const struct request *r);
/* method_resize gives a disk the capacity `size`, or that of its file or block
 * device. */
void method_resize(const struct request *r);
/* methods of methods_config.c: the configuration. */
/* method_apply brings a configuration file into force. */
void method_apply(const struct request *r);
/* method_dump returns the configuration in force as YAML. */
void method_dump(const struct request *r);
/* method_save writes the configuration in force to a file. */
void method_save(const struct request *r);
/* method_config returns the configuration in force as JSON, with its version. */
void method_config(const struct request *r);
/* method_patch brings the configuration in force, changed by a JSON merge patch,
 * into force. */
void method_patch(const struct request *r);
/* rpc_apply brings m, which it takes over, into force, or with dry_run only
 * checks that. It responds or owes the response with the differences, unless m is
 * refused: then e has the reasons. */
void rpc_apply(const struct request *r, struct cfg_model *m, bool dry_run,
	       struct cfg_errors *e);
/* rpc_refuse responds with the first error, and how many more there are. path:
 * of the file; NULL: there is none. */
void rpc_refuse(const struct request *r, const struct cfg_errors *e,
		const char *path);
/* method_verb, of methods_verb.c, executes the method "NOUN.VERB" by the nouns of
 * api.h. */
void method_verb(const struct request *r, const char *method);

/* rpc_wait, of wait.c: if a change of the configuration is in progress, keeps
 * the request to execute it again after the change, and returns true. */
bool rpc_wait(const struct request *r);
/* rpc_wait_open prepares waiting; rpc_wait_close forgets all requests that wait. */
void rpc_wait_open(struct control *k);
void rpc_wait_close(struct control *k);

/* method_drain, of methods_drain.c, lets targets admit no new session, or ends that. */
void method_drain(const struct request *r);

/* methods of methods_group.c: target port groups (ALUA). */
/* method_groups lists the groups. */
void method_groups(const struct request *r);
/* method_group changes the state of a group. */
void method_group(const struct request *r);
/* method_port notes that a port of another iserd is online or offline. */
void method_port(const struct request *r);

/* Makes a response of a snapshot, which is borrowed for the call. */
typedef void rpc_respond(struct client *c, json_t *id, const struct snapshot *s,
			 void *arg);
/* rpc_collect, of collect.c, calls respond later with a snapshot (snapshot_collect); arg is
 * freed afterwards. respond is not called if the client has gone. */
void rpc_collect(const struct request *r, bool counters, rpc_respond *respond,
		 void *arg);
/* rpc_kick_end, of methods_sessions.c, frees what is collected for responses that are still
 * owed; after workers_stop, when no other worker has a message with it. */
void rpc_kick_end(struct control *k);
/* method_session, of methods_sessions.c, executes a verb of sessions, or with
 * connections of connections. name NULL: the verb has none. */
void method_session(const struct request *r, bool connections, const char *verb,
		    const char *name);

/* method_cluster, of methods_cluster.c, executes a verb of units that other gateways
 * serve, too. name and fields NULL: not given. rpc_cluster_end forgets all requests in
 * progress; the members of the cluster have ended. */
void method_cluster(const struct request *r, const char *verb, const char *name,
		    const json_t *fields);
void rpc_cluster_end(struct control *k);

/* rpc_spare_open opens the descriptor that control.spare keeps in reserve; -1:
 * none is left. */
int rpc_spare_open(void);

#endif
