/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * methods_verb.c: the methods "NOUN.VERB" of the nouns of a configuration. A verb
 * that changes something changes a copy of the configuration in force, which then
 * comes into force as a file does: all of it, or nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/edit.h"
#include "daemon/rpc/internal.h"

/* A request, taken apart. */
struct call {
	const struct request *r;
	const struct rpc_noun *noun;
	const struct rpc_verb *verb;
	const char *name;
	const json_t *fields;
	bool dry_run;
};

/* ---- the parameters ---- */

/* Finds noun and verb in "NOUN.VERB". False after a response. */
static bool take_method(struct call *k, const char *method)
{
	const char *dot = strchr(method, '.');
	char noun[32], why[RPC_UNKNOWN];

	if (rpc_unknown(method, why))
		return client_error(k->r->client, k->r->id, RPC_NO_METHOD, "%s",
				    why);
	snprintf(noun, sizeof(noun), "%.*s", (int)(dot - method), method);
	k->noun = rpc_noun_of(noun);
	k->verb = rpc_verb_of(dot + 1);
	return true;
}

static bool take_dry_run(struct call *k, const json_t *v)
{
	const char *text = json_string_value(v);

	if (!k->verb->changes)
		return client_error(
			k->r->client, k->r->id, RPC_BAD_PARAMS,
			"dry-run: %s %s changes nothing; leave it out",
			k->noun->name, k->verb->name);
	k->dry_run = json_is_true(v) || (text && !strcmp(text, "yes"));
	if (k->dry_run || json_is_false(v) || (text && !strcmp(text, "no")))
		return true;
	return client_error(k->r->client, k->r->id, RPC_BAD_PARAMS,
			    "dry-run: must be yes or no");
}

static bool take_param(struct call *k, const char *key, const json_t *v)
{
	bool has_name =
		k->noun->arg && (k->verb->has_name || k->verb->may_have_name);
	const char *what = NULL;

	if (!strcmp(key, "dry-run"))
		return take_dry_run(k, v);
	if (!strcmp(key, "name")) {
		k->name = json_string_value(v);
		what = !has_name  ? "takes no name; leave it out"
		       : !k->name ? "name: not a string; give the name"
				  : NULL;
	} else if (!strcmp(key, "fields")) {
		k->fields = v;
		what = !json_is_object(v) ? "fields: must be an object"
		       : json_object_size(v) && !k->verb->has_fields
			       ? "takes no fields; leave them out"
			       : NULL;
	} else {
		what = "unknown parameter; give name, fields or dry-run";
	}
	if (!what)
		return true;
	return client_error(
		k->r->client, k->r->id, RPC_BAD_PARAMS, "%s %s: %.64s%s%s",
		k->noun->name, k->verb->name,
		strcmp(key, "name") && strcmp(key, "fields") ? key : "",
		strcmp(key, "name") && strcmp(key, "fields") ? ": " : "", what);
}

static bool take_params(struct call *k)
{
	json_t *params = json_object_get(k->r->root, "params"), *v;
	const char *key;

	if (params && !json_is_object(params))
		return client_error(k->r->client, k->r->id, RPC_BAD_PARAMS,
				    "params: must be an object");
	json_object_foreach(params, key, v)
	{
		if (!take_param(k, key, v))
			return false;
	}
	if (k->noun->arg && k->verb->has_name && !k->name)
		return client_error(k->r->client, k->r->id, RPC_BAD_PARAMS,
				    "%s %s: no name; give %s %s %s",
				    k->noun->name, k->verb->name, k->noun->name,
				    k->verb->name, k->noun->arg);
	return true;
}

/* ---- verbs ---- */

static void no_memory(const struct request *r)
{
	client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
}

/* Returns the fields as texts, which the caller releases; null removes a field, as an empty
 * text does. NULL: there are none, or e has an error. */
static json_t *texts_of_fields(const struct call *k, struct cfg_errors *e)
{
	json_t *fields = (json_t *)k->fields, *v, *out;
	const char *key, *why;
	void *next;

	if (!fields)
		return NULL;
	json_object_foreach_safe(fields, next, key, v)
	{
		if (json_is_null(v))
			json_object_set_new(fields, key, json_string(""));
	}
	out = json_object();
	why = cfg_doc_merge(out, fields);
	if (why)
		cfg_error(e, (struct cfg_place){ 0 }, "fields: %s", why);
	return out;
}

static void change(const struct call *k, struct cfg_errors *e)
{
	static const enum cfg_verb verbs[] = { CFG_ADD, CFG_SET, CFG_REMOVE,
					       CFG_REPLACE };
	static const char *const words[] = { "add", "set", "remove",
					     "replace" };
	struct cfg_edit x = {
		.noun = k->noun->name,
		.name = k->name,
		.fields = texts_of_fields(k, e),
	};
	struct cfg_model *m = NULL;

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(words[i], k->verb->name))
			x.verb = verbs[i];
	if (!e->n)
		m = cfg_edit(request_daemon(k->r)->model, &x, e);
	json_decref(x.fields);
	if (m)
		rpc_apply(k->r, m, k->dry_run, e);
}

/* Responds with a document, which it consumes; NULL: no memory. */
static void respond(const struct request *r, json_t *doc)
{
	json_t *result = doc ? cfg_doc_utf8(doc, false) : NULL;

	json_decref(doc);
	if (result)
		client_result(r->client, r->id, result);
	else
		no_memory(r);
}

static void show(const struct call *k, struct cfg_errors *e)
{
	json_t *fields = cfg_edit_show(request_daemon(k->r)->model,
				       k->noun->name, k->name, e);

	if (!e->n)
		respond(k->r, fields);
}

void method_verb(const struct request *r, const char *method)
{
	struct call k = { .r = r };
	struct cfg_errors *e;

	if (!take_method(&k, method) || !take_params(&k))
		return;
	if (!strcmp(k.noun->name, "cluster")) {
		method_cluster(r, k.verb->name, k.name, k.fields);
		return;
	}
	if (!cfg_edit_noun(k.noun->name)) {
		method_session(r, !strcmp(k.noun->name, "connection"),
			       k.verb->name, k.name);
		return;
	}
	if (k.verb->changes && !k.dry_run && rpc_wait(r))
		return;
	e = calloc(1, sizeof(*e));
	if (!e)
		no_memory(r);
	else if (k.verb->changes)
		change(&k, e);
	else if (k.verb->has_name)
		show(&k, e);
	else
		respond(r,
			cfg_edit_list(request_daemon(r)->model, k.noun->name));
	if (e && e->n)
		rpc_refuse(r, e, NULL);
	free(e);
}
