/* SPDX-License-Identifier: BSD-2-Clause */
/* collect.c: the connections of all workers as JSON: a message visits each
 * worker. */
#include <stdlib.h>

#include "daemon/rpc/internal.h"
#include "daemon/rpc/status.h"

struct collect {
	struct dev_msg msg;
	struct list link; /* of control.collects */
	struct owed owed;
	json_t *sessions;
	unsigned worker; /* the worker that gets the message next */
	xtime took;	 /* on all workers */
	void (*respond)(struct client *c, json_t *id, json_t *sessions,
			void *arg);
	void *arg;
};

/* was_sent: the response took over the sessions. */
static void collect_free(struct collect *k, bool was_sent)
{
	if (!was_sent)
		json_decref(k->sessions);
	json_decref(k->owed.id);
	list_del(&k->link);
	free(k->arg);
	free(k);
}

static void collect_respond(struct dev_msg *m)
{
	struct collect *k = container_of(m, struct collect, msg);
	struct client *c = k->owed.client;
	struct control *control = c->control;
	xtime began = io_now_exact();
	bool is_there = client_settle(&k->owed);

	if (is_there)
		k->respond(c, k->owed.id, k->sessions, k->arg);
	pace_use(&control->pace.credit, k->took + io_now_exact() - began);
	collect_free(k, is_there);
}

static void collect_visit(struct dev_msg *m)
{
	struct collect *k = container_of(m, struct collect, msg);
	struct daemon *d = k->owed.client->control->daemon;
	unsigned next = k->worker + 1;
	xtime began = io_now_exact();

	status_sessions(&d->workers[k->worker], k->sessions, SIZE_MAX);
	k->took += io_now_exact() - began;
	k->worker = next;
	if (next == d->nworkers)
		m->run = collect_respond;
	worker_post(d, next == d->nworkers ? 0 : next, m);
}

void rpc_collect(const struct request *r,
		 void (*respond)(struct client *c, json_t *id, json_t *sessions,
				 void *arg),
		 void *arg)
{
	struct collect *k = calloc(1, sizeof(*k));

	if (!k) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		free(arg);
		return;
	}
	k->owed = client_owe(r);
	k->sessions = json_array();
	k->respond = respond;
	k->arg = arg;
	k->msg.run = collect_visit;
	list_push_back(&r->client->control->collects, &k->link);
	worker_post(request_daemon(r), 0, &k->msg);
}

void rpc_collect_end(struct control *k)
{
	while (!list_empty(&k->collects)) {
		struct collect *left =
			list_entry(k->collects.next, struct collect, link);

		collect_free(left, client_settle(&left->owed));
	}
}
