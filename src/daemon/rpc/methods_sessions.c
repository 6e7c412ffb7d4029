/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_sessions.c: the verbs of sessions and connections: list, show, kick. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "daemon/metrics/snapshot.h"
#include "daemon/rpc/internal.h"
#include "daemon/serve/kick.h"
#include "iscsi/names.h"

/* Which connections a request is about. */
struct choice {
	bool connections, is_list;
	char name[256];
};

/* Returns whether the peer, an address with a port, is name, or is at it. */
static bool is_peer(const char *peer, const char *name)
{
	size_t len = strlen(name);

	if (!strncmp(peer, name, len) && (!peer[len] || peer[len] == ':'))
		return true;
	/* "[::1]:3260", for "::1" */
	return peer[0] == '[' && !strncmp(peer + 1, name, len) &&
	       peer[1 + len] == ']';
}

static bool is_session(unsigned tsih, const char *initiator, const char *target,
		       const char *name)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", tsih);
	return tsih &&
	       (!strcmp(number, name) || iscsi_name_equal(initiator, name) ||
		iscsi_name_equal(target, name));
}

static struct choice *choice_new(bool connections, const char *verb,
				 const char *name)
{
	struct choice *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->connections = connections;
	c->is_list = !strcmp(verb, "list");
	snprintf(c->name, sizeof(c->name), "%s", name ? name : "");
	return c;
}

static void refuse(struct client *c, json_t *id, const struct choice *what)
{
	const char *noun = what->connections ? "connection" : "session";

	client_error(c, id, RPC_BAD_PARAMS,
		     "%s %s: no such %s; iserctl %s list lists them", noun,
		     what->name, noun, noun);
}

/* ---- list and show ---- */

static const char *text_of(const json_t *s, const char *key)
{
	const char *text = json_string_value(json_object_get(s, key));

	return text ? text : "";
}

static bool is_chosen(const struct choice *c, const json_t *s)
{
	json_int_t tsih = json_integer_value(json_object_get(s, "tsih"));

	if (c->is_list)
		return c->connections || tsih;
	if (c->connections)
		return is_peer(text_of(s, "peer"), c->name);
	return is_session((unsigned)tsih, text_of(s, "initiator"),
			  text_of(s, "target"), c->name);
}

/* Returns the columns of a table. */
static json_t *row_of(const struct choice *c, json_t *s)
{
	static const char *const of_session[] = {
		"tsih",	   "initiator", "target", "peer",      "kind", "state",
		"account", "algorithm", "since",  "in_flight", NULL
	};
	static const char *const of_connection[] = {
		"peer", "local", "kind", "state", "tsih", "initiator", NULL
	};
	const char *const *keys = c->connections ? of_connection : of_session;
	json_t *row = json_object();

	for (; *keys; keys++)
		json_object_set(row, *keys, json_object_get(s, *keys));
	return row;
}

static void respond_list(struct client *c, json_t *id,
			 const struct snapshot *snap, void *arg)
{
	const struct choice *what = arg;
	json_t *out = json_array(), *s;
	size_t i;

	json_array_foreach(snap->sessions, i, s)
	{
		if (!is_chosen(what, s))
			continue;
		if (what->is_list)
			json_array_append_new(out, row_of(what, s));
		else
			json_array_append(out, s);
	}
	if (!what->is_list && !json_array_size(out))
		refuse(c, id, what);
	else
		client_result(c, id, json_incref(out));
	json_decref(out);
}

/* ---- kick ---- */

struct kick_call {
	struct list link; /* of control.endings */
	struct owed owed;
	struct choice *what;
	struct kick *kick;
};

static void kick_call_free(struct kick_call *k)
{
	list_del(&k->link);
	json_decref(k->owed.id);
	free(k->what);
	free(k);
}

/* On any worker. */
static bool is_kicked(void *arg, const struct tgt_conn_status *st)
{
	const struct choice *what = ((const struct kick_call *)arg)->what;

	return what->connections ? is_peer(st->info->peer, what->name)
				 : is_session(st->tsih, st->initiator,
					      st->discovery ? "" : st->target,
					      what->name);
}

static json_t *json_of(const struct kicked *x)
{
	char initiator[1024], target[1024];

	return json_pack(
		"{s:i, s:s, s:s, s:s, s:s}", "tsih", (int)x->tsih, "initiator",
		text_escape_str(initiator, sizeof(initiator), x->initiator),
		"target", text_escape_str(target, sizeof(target), x->target),
		"peer", x->peer, "result",
		x->logged_out ? "logged out" : "dropped");
}

static void kick_done(void *arg, const struct list *all)
{
	struct kick_call *k = arg;
	struct client *c = k->owed.client;
	json_t *out = json_array();

	list_for_each(it, all)
		json_array_append_new(
			out, json_of(list_entry(it, struct kicked, link)));
	if (client_settle(&k->owed)) {
		if (json_array_size(out))
			client_result(c, k->owed.id, json_incref(out));
		else
			refuse(c, k->owed.id, k->what);
	}
	json_decref(out);
	kick_call_free(k);
}

static void kick(const struct request *r, struct choice *what)
{
	static const struct kick_how ask = { .reason = "by the administrator" };
	static const struct kick_how drop = { .reason = "by the administrator",
					      .now = true };
	struct kick_call *k = calloc(1, sizeof(*k));

	if (k) {
		list_init(&k->link);
		k->what = what;
		k->kick = kick_begin(request_daemon(r),
				     what->connections ? &drop : &ask,
				     is_kicked, kick_done, k);
	}
	if (!k || !k->kick) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		free(what);
		free(k);
		return;
	}
	k->owed = client_owe(r);
	list_push_back(&r->client->control->endings, &k->link);
}

void rpc_kick_end(struct control *k)
{
	while (!list_empty(&k->endings)) {
		struct kick_call *left =
			list_entry(k->endings.next, struct kick_call, link);

		(void)client_settle(&left->owed);
		kick_free(left->kick);
		kick_call_free(left);
	}
}

void method_session(const struct request *r, bool connections, const char *verb,
		    const char *name)
{
	struct choice *what = NULL;

	if (name && strlen(name) >= sizeof(what->name)) {
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "name: longer than 255 bytes; give a number of "
			     "list, a name or an address");
		return;
	}
	what = choice_new(connections, verb, name);
	if (!what)
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
	else if (!strcmp(verb, "kick"))
		kick(r, what);
	else
		rpc_collect(r, false, respond_list, what);
}
