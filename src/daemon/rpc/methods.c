/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * methods.c: takes a request apart by the rows of api.c and calls its method.
 * Here are the methods of the process; those of LUNs and of target port groups
 * have files of their own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics/numbers.h"
#include "daemon/metrics/snapshot.h"
#include "daemon/rpc/internal.h"
#include "daemon/rpc/schema.h"
#include "daemon/rpc/status.h"
#include "daemon/upgrade/takeover.h"

/* ---- methods of the process ---- */

static void method_version(const struct request *r)
{
	client_result(r->client, r->id,
		      json_pack("{s:s, s:s}", "name", "iserd", "version",
				OPENISER_VERSION));
}

static void method_luns(const struct request *r)
{
	client_result(r->client, r->id, status_luns(request_daemon(r)));
}

static void method_targets(const struct request *r)
{
	client_result(r->client, r->id, status_targets(request_daemon(r)));
}

static void method_reservations(const struct request *r)
{
	client_result(r->client, r->id, status_reservations(request_daemon(r)));
}

/* False: the response is an error. */
static bool set_log(const struct request *r, struct log *l)
{
	enum trace_level level = (enum trace_level)r->args->level;
	const char *peer = r->args->peer;
	int err;

	if (!r->args->given[1]) {
		if (r->args->given[0])
			log_set_level(l, level);
		return true;
	}
	if (!r->args->given[0])
		return client_error(
			r->client, r->id, RPC_BAD_PARAMS,
			"peer: without level; give level=LEVEL, too");
	err = log_set_peer(l, peer, level);
	if (err == -ENOSPC)
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "peer=%.60s: %u peers have a level already; give "
			     "level=LEVEL without a peer first",
			     peer, (unsigned)LOG_PEERS);
	else if (err)
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "peer=%.60s: not an address; give one such as "
			     "10.0.0.9, 10.0.0.0/8 or 2001:db8::9",
			     peer);
	return !err;
}

static void method_log(const struct request *r)
{
	struct daemon *d = request_daemon(r);
	json_t *peers;

	if (!set_log(r, &d->log))
		return;
	peers = json_array();
	for (unsigned i = 0; i < d->log.npeers; i++)
		json_array_append_new(
			peers,
			json_pack("{s:s, s:s}", "peer", d->log.peers[i].name,
				  "level",
				  trace_level_name(d->log.peers[i].level)));
	client_result(r->client, r->id,
		      json_pack("{s:s, s:o}", "level",
				trace_level_name(d->log.level), "peers",
				peers));
}

static void method_shutdown(const struct request *r)
{
	client_result(r->client, r->id, json_true());
	r->client->control->shut_down(request_daemon(r), false,
				      "control socket");
}

static void method_takeover(const struct request *r)
{
	struct daemon *d = request_daemon(r);
	const char *why = takeover_begin(d, r->client->watch.fd);

	if (why)
		client_error(r->client, r->id, RPC_INTERNAL, "%s", why);
	else
		r->client->control->shut_down(d, true,
					      "another iserd takes over");
}

/* What a verb takes, and what it does. */
static json_t *verb_help(const struct rpc_noun *n, const struct rpc_verb *v)
{
	bool may = v->may_have_name, has_name = n->arg && (v->has_name || may);
	char fields[64] = "";

	if (v->has_fields)
		snprintf(fields, sizeof(fields), " fields={%s}",
			 v->key ? v->key : "...");
	return json_sprintf("%s%s%s%s%s%s: %s", has_name && may ? "[" : "",
			    has_name ? "name=" : "", has_name ? n->arg : "",
			    has_name && may ? "]" : "", fields,
			    v->changes ? " [dry-run=yes|no]" : "", v->help);
}

static void add_verbs(json_t *all)
{
	const struct rpc_noun *nouns;
	size_t n;

	nouns = rpc_nouns(&n);
	for (size_t i = 0; i < n; i++)
		for (unsigned v = 0; v < RPC_VERBS && nouns[i].verbs[v]; v++) {
			const struct rpc_verb *verb =
				rpc_verb_of(nouns[i].verbs[v]);
			char name[64];

			snprintf(name, sizeof(name), "%s.%s", nouns[i].name,
				 verb->name);
			json_object_set_new(all, name,
					    verb_help(&nouns[i], verb));
		}
}

/* Responds to a method that iserd does not have. */
static void refuse_method(const struct request *r, const char *name)
{
	char why[RPC_UNKNOWN];

	(void)rpc_unknown(name, why);
	client_error(r->client, r->id, RPC_NO_METHOD, "%s", why);
}

static void method_methods(const struct request *r)
{
	const struct rpc_method *m;
	json_t *all = json_object();
	size_t n;

	m = rpc_methods(&n);
	for (size_t i = 0; i < n; i++) {
		char usage[128], text[300];

		rpc_usage(&m[i], usage, sizeof(usage));
		snprintf(text, sizeof(text), "%s%s%s", usage,
			 *usage ? ": " : "", m[i].help);
		json_object_set_new(all, m[i].name, json_string(text));
	}
	add_verbs(all);
	client_result(r->client, r->id, all);
}

static void method_schema(const struct request *r)
{
	client_result(r->client, r->id, schema_json());
}

/* ---- of a snapshot ---- */

static void status_respond(struct client *c, json_t *id,
			   const struct snapshot *s, void *arg)
{
	(void)arg;
	client_result(c, id, status_daemon(s->daemon, s->sessions));
}

static void method_status(const struct request *r)
{
	rpc_collect(r, false, status_respond, NULL);
}

static void tree_respond(struct client *c, json_t *id, const struct snapshot *s,
			 void *arg)
{
	(void)arg;
	client_result(c, id, status_tree(s->daemon, s->sessions));
}

static void method_tree(const struct request *r)
{
	rpc_collect(r, false, tree_respond, NULL);
}

static void stats_respond(struct client *c, json_t *id,
			  const struct snapshot *s, void *arg)
{
	(void)arg;
	client_result(c, id, numbers_json(s));
}

static void method_stats(const struct request *r)
{
	rpc_collect(r, true, stats_respond, NULL);
}

/* ---- parameters ---- */

/* Returns a value as the text that iserctl sends: "3", "yes" and "yes" for 3,
 * true and "yes". NULL: a value of another type. */
static const char *value_text(const json_t *v, char buf[RPC_NUMBER])
{
	if (json_is_string(v))
		return json_string_value(v);
	if (json_is_boolean(v))
		return json_is_true(v) ? "yes" : "no";
	if (!json_is_integer(v))
		return NULL;
	snprintf(buf, RPC_NUMBER, "%lld", (long long)json_integer_value(v));
	return buf;
}

/* Checks the value of parameter i by its row p and stores it in *args. False: why
 * has the reason. */
static bool take_value(const struct rpc_param *p, unsigned i, const json_t *v,
		       struct rpc_args *args, char why[OPT_WHY])
{
	char reason[OPT_WHY];
	const char *text = value_text(v, args->numbers[i]), *name = p->opt.name;

	if (!text) {
		snprintf(why, OPT_WHY,
			 "%s: not a string, number or boolean; give %s=%s",
			 name, name, p->opt.arg);
		return false;
	}
	if (opt_set(&p->opt, args, name, text, reason) == OPT_OK)
		return true;
	snprintf(why, OPT_WHY, "%s=%s", name, reason + strlen(name) + 1);
	return false;
}

/* Returns whether m has all names in params; if not, why has the reason.
 * JSON-RPC 2.0 §4.2 also allows parameters by position, which are refused. */
static bool has_known_names(const struct rpc_method *m, json_t *params,
			    char why[OPT_WHY])
{
	char usage[128];
	const char *key;
	json_t *value;

	if (params && !json_is_object(params)) {
		snprintf(why, OPT_WHY, "params: must be an object");
		return false;
	}
	rpc_usage(m, usage, sizeof(usage));
	json_object_foreach(params, key, value)
	{
		bool known = false;

		for (unsigned i = 0; i < RPC_PARAMS; i++)
			known |= m->params[i].opt.name &&
				 !strcmp(m->params[i].opt.name, key);
		if (known)
			continue;
		snprintf(why, OPT_WHY, "%.100s: unknown parameter; %s%s%s", key,
			 m->name, *usage ? " takes " : " takes none", usage);
		return false;
	}
	return true;
}

/* Fills *args by the rows of m. False: why has an error text. */
static bool take_params(const struct rpc_method *m, json_t *params,
			struct rpc_args *args, char why[OPT_WHY])
{
	if (!has_known_names(m, params, why))
		return false;
	for (unsigned i = 0; i < RPC_PARAMS; i++) {
		const struct rpc_param *p = &m->params[i];
		const json_t *v = p->opt.name
					  ? json_object_get(params, p->opt.name)
					  : NULL;

		if (!p->opt.name)
			continue;
		args->given[i] = v != NULL;
		if (v && !take_value(p, i, v, args, why))
			return false;
		if (!v && !p->optional) {
			snprintf(why, OPT_WHY, "%s: missing; give %s=%s",
				 p->opt.name, p->opt.name, p->opt.arg);
			return false;
		}
	}
	return true;
}

/* ---- requests ---- */

static void call_method(const struct rpc_method *m, const struct request *r)
{
	static const struct {
		const char *name;
		void (*run)(const struct request *r);
	} all[] = {
		{ "status", method_status },
		{ "stats", method_stats },
		{ "tree", method_tree },
		{ "luns", method_luns },
		{ "log", method_log },
		{ "targets", method_targets },
		{ "reservations", method_reservations },
		{ "eject", method_eject },
		{ "insert", method_insert },
		{ "clear", method_clear },
		{ "resize", method_resize },
		{ "apply", method_apply },
		{ "dump", method_dump },
		{ "save", method_save },
		{ "config", method_config },
		{ "patch", method_patch },
		{ "drain", method_drain },
		{ "groups", method_groups },
		{ "group", method_group },
		{ "port", method_port },
		{ "shutdown", method_shutdown },
		{ "takeover", method_takeover },
		{ "version", method_version },
		{ "events", method_events },
		{ "methods", method_methods },
		{ "schema", method_schema },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(all[i].name, m->name))
			all[i].run(r);
}

static const struct rpc_method *find_method(const char *name)
{
	/* not in api.c: iserctl must not offer it, since iserd ends */
	static const struct rpc_method takeover = {
		"takeover", "hands over to another iserd (takeover.h)"
	};

	return !strcmp(name, takeover.name) ? &takeover : rpc_method_of(name);
}

/* JSON-RPC 2.0 §4: a string, a number or null. Without an id, the request is a
 * notification. */
static bool is_valid_id(const json_t *id)
{
	return !id || json_is_string(id) || json_is_number(id) ||
	       json_is_null(id);
}

void methods_call(struct client *c, json_t *root)
{
	json_t *id = json_object_get(root, "id");
	const char *name = json_string_value(json_object_get(root, "method"));
	const char *version =
		json_string_value(json_object_get(root, "jsonrpc"));
	const struct rpc_method *m = name ? find_method(name) : NULL;
	struct rpc_args args = { 0 };
	struct request r = {
		.client = c,
		.id = id,
		.args = &args,
		.root = root,
	};
	char why[OPT_WHY];

	if (!name || !version || strcmp(version, "2.0") != 0 ||
	    !is_valid_id(id))
		client_error(c, json_null(), RPC_INVALID,
			     "not a JSON-RPC 2.0 request; send an object with "
			     "jsonrpc, method, params and id in one line");
	else if (strchr(name, '.'))
		method_verb(&r, name);
	else if (!m)
		refuse_method(&r, name);
	else if (!take_params(m, json_object_get(root, "params"), &args, why))
		client_error(c, r.id, RPC_BAD_PARAMS, "%s", why);
	else
		call_method(m, &r);
}
