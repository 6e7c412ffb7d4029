/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_cluster.c: the verbs of units that other gateways serve, too: status, yield,
 * take, fence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/escape.h"
#include "daemon/apply/units.h"
#include "daemon/config/model.h"
#include "daemon/rpc/cluster.h"
#include "daemon/rpc/internal.h"

enum cluster_verb {
	VERB_YIELD,
	VERB_TAKE,
	VERB_FENCE,
};

/* A request whose response is owed until all its steps have ended. */
struct cluster_call {
	struct list link; /* of control.handovers */
	struct owed owed;
	enum cluster_verb verb;
	char to[GATEWAY_SIZE];	   /* "": to none */
	unsigned nsteps, npending; /* npending: one more while they begin */
	json_t *units;		   /* names of those that ended well */
	char why[700];		   /* of the first that did not */
	struct step {
		struct member_call call;
		struct cluster_call *of;
		char name[CFG_NAME_MAX + 1]; /* of the backstore */
		char owner[CLUSTER_ID_SIZE];
	} steps[];
};

/* ---- the end of a request ---- */

static void call_free(struct cluster_call *k)
{
	list_del(&k->link);
	json_decref(k->owed.id);
	json_decref(k->units);
	free(k);
}

static void explain(struct cluster_call *k, const struct step *s, int err)
{
	size_t size = sizeof(k->why);

	if (*k->why)
		return;
	switch (err) {
	case ERR_WRONG_STATE:
		snprintf(k->why, size,
			 "backstore %s: another gateway has the unit%s%s; give "
			 "the command there",
			 s->name, *s->owner ? ": " : "", s->owner);
		break;
	case ERR_NOT_FOUND:
		snprintf(k->why, size,
			 "backstore %s: %s: no such gateway, or it does not "
			 "answer; this gateway keeps the unit (iserctl cluster "
			 "status lists the gateways)",
			 s->name, k->to);
		break;
	case ERR_BUSY:
		snprintf(k->why, size,
			 "backstore %s: a hand-over is in progress; try again",
			 s->name);
		break;
	case ERR_TIMEOUT:
		snprintf(k->why, size,
			 "backstore %s: the hand-over has not ended in time; "
			 "iserctl cluster status shows the owner",
			 s->name);
		break;
	case ERR_TERMINATED:
		snprintf(k->why, size,
			 "backstore %s: another gateway has fenced this one; "
			 "try again when its role is standing-by",
			 s->name);
		break;
	case ERR_RESET:
		snprintf(k->why, size,
			 "backstore %s: the store of the record does not "
			 "answer; see the log",
			 s->name);
		break;
	default:
		snprintf(k->why, size, "backstore %s: %s", s->name,
			 err_str(err));
	}
}

static void end_if_complete(struct cluster_call *k)
{
	struct client *c = k->owed.client;

	if (--k->npending)
		return;
	if (client_settle(&k->owed)) {
		if (*k->why)
			client_error(c, k->owed.id, RPC_INTERNAL, "%s", k->why);
		else
			client_result(c, k->owed.id,
				      json_pack("{s:O}", "units", k->units));
	}
	call_free(k);
}

static void step_done(struct member_call *call)
{
	struct step *s = container_of(call, struct step, call);
	struct cluster_call *k = s->of;

	if (call->result)
		explain(k, s, call->result);
	else
		json_array_append_new(k->units, json_string(s->name));
	end_if_complete(k);
}

void rpc_cluster_end(struct control *k)
{
	while (!list_empty(&k->handovers)) {
		struct cluster_call *left = list_entry(
			k->handovers.next, struct cluster_call, link);

		(void)client_settle(&left->owed);
		call_free(left);
	}
}

/* ---- its begin ---- */

/* The members that a request is about. */
struct choice {
	const char *name; /* NULL: all that this gateway owns */
	struct member **all;
	unsigned n, room;
};

static void choose(void *arg, struct member *m)
{
	struct choice *x = arg;
	struct cluster_status st;

	member_status(m, &st);
	if (x->name ? strcmp(x->name, member_unit(m)->name) != 0
		    : st.role != CLUSTER_OWNER)
		return;
	if (x->n < x->room)
		x->all[x->n] = m;
	x->n++;
}

static void begin_step(struct cluster_call *k, struct member *m)
{
	struct step *s = &k->steps[k->nsteps++];
	struct cluster_status st;

	member_status(m, &st);
	s->of = k;
	s->call.done = step_done;
	snprintf(s->name, sizeof(s->name), "%s", member_unit(m)->name);
	snprintf(s->owner, sizeof(s->owner), "%s",
		 st.record ? st.record->owner : "");
	k->npending++;
	if (k->verb == VERB_YIELD)
		member_yield(m, *k->to ? k->to : NULL, &s->call);
	else
		member_take(m, k->verb == VERB_FENCE, &s->call);
}

/* Begins a step for each member of the choice; frees nothing of it. */
static void begin(const struct request *r, enum cluster_verb verb,
		  const struct choice *x, const char *to)
{
	struct cluster_call *k =
		calloc(1, sizeof(*k) + x->n * sizeof(struct step));

	if (k)
		k->units = json_array();
	if (!k || !k->units) {
		free(k);
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return;
	}
	k->owed = client_owe(r);
	k->verb = verb;
	snprintf(k->to, sizeof(k->to), "%s", to ? to : "");
	list_push_back(&r->client->control->handovers, &k->link);
	k->npending = 1;
	for (unsigned i = 0; i < x->n; i++)
		begin_step(k, x->all[i]);
	end_if_complete(k);
}

static void hand_over(const struct request *r, enum cluster_verb verb,
		      const char *name, const char *to)
{
	struct gateway *c = request_daemon(r)->gateway;
	struct choice x = { .name = name };

	gateway_each(c, choose, &x);
	x.all = calloc(x.n + 1, sizeof(struct member *));
	x.room = x.all ? x.n : 0;
	x.n = 0;
	gateway_each(c, choose, &x);
	if (!x.all)
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
	else if (!x.n && name)
		client_error(
			r->client, r->id, RPC_BAD_PARAMS,
			"cluster: %.80s: no backstore of this name that other "
			"gateways serve, too; iserctl cluster status lists them",
			name);
	else
		begin(r, verb, &x, to);
	free(x.all);
}

/* Reads the field `to`, or sets *to to NULL. False after a response. */
static bool take_to(const struct request *r, const json_t *fields,
		    const char **to)
{
	const char *key;
	json_t *v;

	*to = NULL;
	json_object_foreach((json_t *)fields, key, v)
	{
		if (strcmp(key, "to") != 0)
			return client_error(
				r->client, r->id, RPC_BAD_PARAMS,
				"cluster yield: %.64s: unknown parameter; "
				"give to=GATEWAY",
				key);
		*to = json_string_value(v);
		if (!*to || !**to || strlen(*to) >= GATEWAY_SIZE)
			return client_error(
				r->client, r->id, RPC_BAD_PARAMS,
				"cluster yield: to: not the name of a "
				"gateway of 1 to %u bytes",
				GATEWAY_SIZE - 1);
	}
	return true;
}

void method_cluster(const struct request *r, const char *verb, const char *name,
		    const json_t *fields)
{
	const struct daemon *d = request_daemon(r);
	const char *to;

	if (!d->gateway)
		client_error(
			r->client, r->id, RPC_BAD_PARAMS,
			"cluster: this iserd is not a gateway of a cluster; "
			"give it the section cluster, or --cluster-number");
	else if (!strcmp(verb, "status"))
		client_result(r->client, r->id, gateway_json(d, name));
	else if (!take_to(r, fields, &to))
		return;
	else if (!strcmp(verb, "yield"))
		hand_over(r, VERB_YIELD, name, to);
	else
		hand_over(r, !strcmp(verb, "take") ? VERB_TAKE : VERB_FENCE,
			  name, NULL);
}
