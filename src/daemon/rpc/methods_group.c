/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_group.c: methods of target port groups (ALUA). */
#include <stdlib.h>

#include "base/err.h"
#include "daemon/config/groups.h"
#include "daemon/rpc/internal.h"
#include "daemon/rpc/status.h"

/* A change that is in progress. */
struct group_change {
	struct owed owed;
	const char *what; /* "group" or "port" */
	unsigned id;
};

void method_groups(const struct request *r)
{
	client_result(r->client, r->id, status_groups(request_daemon(r)));
}

static void respond_group(const struct group_change *g, int err)
{
	struct client *c = g->owed.client;

	if (!err)
		client_result(c, g->owed.id, status_groups(c->control->daemon));
	else
		client_error(c, g->owed.id, RPC_BAD_PARAMS, "%s %u: %s",
			     g->what, g->id,
			     err == ERR_NOT_FOUND
				     ? "not found; iserctl groups lists them"
			     : err == ERR_BUSY
				     ? "a SANITIZE is in progress, which "
				       "writes to its LUN; wait for its end"
				     : err_str(err));
}

static void group_changed(void *arg, int err)
{
	struct group_change *g = arg;
	struct daemon *d = g->owed.client->control->daemon;

	if (!err)
		trace_emit(&d->log.trace, TRACE_CHANGE, "ALUA %s %u: state set",
			   g->what, g->id);
	if (client_settle(&g->owed))
		respond_group(g, err);
	json_decref(g->owed.id);
	free(g);
}

/* Makes a change whose response is owed from then on. NULL after a response. */
static struct group_change *group_change_new(const struct request *r,
					     const char *what)
{
	struct group_change *g = malloc(sizeof(*g));

	if (!g) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return NULL;
	}
	g->owed = client_owe(r);
	g->what = what;
	g->id = r->args->id;
	return g;
}

void method_group(const struct request *r)
{
	const struct rpc_args *a = r->args;
	struct dev_group_change change = {
		.id = (uint16_t)a->id,
		.state = group_state_at(a->state),
		.set_preferred = a->given[2],
		.preferred = a->preferred,
	};
	struct group_change *g = group_change_new(r, "group");
	int err;

	if (!g)
		return;
	err = dev_group_set(request_daemon(r)->server, &change, group_changed,
			    g);
	if (err)
		group_changed(g, err);
}

void method_port(const struct request *r)
{
	const struct rpc_args *a = r->args;
	struct group_change *g = group_change_new(r, "port");
	int err;

	if (!g)
		return;
	err = dev_port_set(request_daemon(r)->server, (uint16_t)a->id,
			   a->state != 0, group_changed, g);
	if (err)
		group_changed(g, err);
}
