/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_drain.c: the method "drain". */
#include <stdlib.h>

#include "daemon/apply/drain.h"
#include "daemon/rpc/internal.h"
#include "daemon/rpc/status.h"

static void drained(void *arg)
{
	struct owed *o = arg;

	if (client_settle(o))
		client_result(o->client, o->id,
			      status_drain(o->client->control->daemon));
	json_decref(o->id);
	free(o);
}

void method_drain(const struct request *r)
{
	struct cfg_errors *e;
	struct owed *o;

	if (rpc_wait(r))
		return;
	e = calloc(1, sizeof(*e));
	o = malloc(sizeof(*o));
	if (o)
		*o = client_owe(r);
	if (o && e &&
	    drain_set(request_daemon(r), r->args->target, !r->args->off, e,
		      drained, o)) {
		free(e);
		return;
	}
	if (o) {
		(void)client_settle(o); /* the caller still holds the client */
		json_decref(o->id);
	}
	free(o);
	if (e && e->n)
		rpc_refuse(r, e, NULL);
	else
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
	free(e);
}
