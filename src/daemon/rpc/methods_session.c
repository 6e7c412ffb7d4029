/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_session.c: methods of one session. A session belongs to a worker, which its
 * TSIH names: a message visits that worker. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/rpc/internal.h"

struct kick {
	struct dev_msg msg;
	struct list link; /* of control.kicks */
	struct owed owed;
	unsigned tsih, found;
};

static void kick_free(struct kick *k)
{
	list_del(&k->link);
	json_decref(k->owed.id);
	free(k);
}

/* On worker 0. */
static void kick_respond(struct dev_msg *m)
{
	struct kick *k = container_of(m, struct kick, msg);
	struct client *c = k->owed.client;
	bool is_there = client_settle(&k->owed);
	char why[64];

	snprintf(why, sizeof(why), "tsih=%u: no such session", k->tsih);
	if (is_there && k->found)
		client_result(c, k->owed.id,
			      json_pack("{s:i, s:i}", "tsih", (int)k->tsih,
					"connections", (int)k->found));
	else if (is_there)
		client_error(c, k->owed.id, RPC_BAD_PARAMS, why);
	kick_free(k);
}

/* On the worker of the session. */
static void kick_visit(struct dev_msg *m)
{
	struct kick *k = container_of(m, struct kick, msg);
	struct daemon *d = k->owed.client->control->daemon;
	struct worker *w = &d->workers[k->tsih % d->nworkers];

	k->found = tgt_worker_kick(w->target, (uint16_t)k->tsih);
	m->run = kick_respond;
	worker_post(d, 0, m);
}

void method_kick(const struct request *r)
{
	struct kick *k = calloc(1, sizeof(*k));
	struct daemon *d = request_daemon(r);

	if (!k) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return;
	}
	k->tsih = r->args->id;
	k->owed = client_owe(r);
	k->msg.run = kick_visit;
	list_push_back(&r->client->control->kicks, &k->link);
	worker_post(d, k->tsih % d->nworkers, &k->msg);
}

void method_kick_end(struct control *c)
{
	while (!list_empty(&c->kicks)) {
		struct kick *k = list_entry(c->kicks.next, struct kick, link);

		(void)client_settle(&k->owed);
		kick_free(k);
	}
}
