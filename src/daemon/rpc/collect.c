/* SPDX-License-Identifier: BSD-2-Clause */
/* collect.c: responses that are made of a snapshot of all workers. */
#include <stdlib.h>

#include "daemon/metrics/snapshot.h"
#include "daemon/rpc/internal.h"

struct collect {
	struct owed owed;
	rpc_respond *respond;
	void *arg;
};

static void collected(void *arg, const struct snapshot *s)
{
	struct collect *k = arg;
	struct client *c = k->owed.client;
	struct control *control = c->control;
	xtime began = io_now_exact();
	bool is_there = client_settle(&k->owed);

	if (is_there && s)
		k->respond(c, k->owed.id, s, k->arg);
	else if (is_there)
		client_error(c, k->owed.id, RPC_INTERNAL, "out of memory");
	if (s)
		pace_use(&control->pace.credit,
			 s->took + io_now_exact() - began);
	json_decref(k->owed.id);
	free(k->arg);
	free(k);
}

void rpc_collect(const struct request *r, bool counters, rpc_respond *respond,
		 void *arg)
{
	struct collect *k = calloc(1, sizeof(*k));

	if (!k) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		free(arg);
		return;
	}
	k->owed = client_owe(r);
	k->respond = respond;
	k->arg = arg;
	snapshot_collect(request_daemon(r), counters, collected, k);
}
