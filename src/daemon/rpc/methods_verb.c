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

static bool fail(const struct request *r, enum rpc_error code, const char *fmt,
		 ...) __attribute__((format(printf, 3, 4)));

static bool fail(const struct request *r, enum rpc_error code, const char *fmt,
		 ...)
{
	char text[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	client_error(r->client, r->id, code, text);
	return false;
}

/* Finds noun and verb in "NOUN.VERB". False after a response. */
static bool take_method(struct call *k, const char *method)
{
	const char *dot = strchr(method, '.');
	char noun[32], why[RPC_UNKNOWN];

	if (rpc_unknown(method, why))
		return fail(k->r, RPC_NO_METHOD, "%s", why);
	snprintf(noun, sizeof(noun), "%.*s", (int)(dot - method), method);
	k->noun = rpc_noun_of(noun);
	k->verb = rpc_verb_of(dot + 1);
	return true;
}

static bool take_dry_run(struct call *k, const json_t *v)
{
	const char *text = json_string_value(v);

	if (!k->verb->changes)
		return fail(k->r, RPC_BAD_PARAMS,
			    "dry-run: %s %s changes nothing; leave it out",
			    k->noun->name, k->verb->name);
	k->dry_run = json_is_true(v) || (text && !strcmp(text, "yes"));
	if (k->dry_run || json_is_false(v) || (text && !strcmp(text, "no")))
		return true;
	return fail(k->r, RPC_BAD_PARAMS, "dry-run: must be yes or no");
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
	return fail(k->r, RPC_BAD_PARAMS, "%s %s: %.64s%s%s", k->noun->name,
		    k->verb->name,
		    strcmp(key, "name") && strcmp(key, "fields") ? key : "",
		    strcmp(key, "name") && strcmp(key, "fields") ? ": " : "",
		    what);
}

static bool take_params(struct call *k)
{
	json_t *params = json_object_get(k->r->root, "params"), *v;
	const char *key;

	if (params && !json_is_object(params))
		return fail(k->r, RPC_BAD_PARAMS, "params: must be an object");
	json_object_foreach(params, key, v)
	{
		if (!take_param(k, key, v))
			return false;
	}
	if (k->noun->arg && k->verb->has_name && !k->name)
		return fail(k->r, RPC_BAD_PARAMS,
			    "%s %s: no name; give %s %s %s", k->noun->name,
			    k->verb->name, k->noun->name, k->verb->name,
			    k->noun->arg);
	return true;
}

/* ---- between JSON and nodes ---- */

/* Returns a scalar as a file has it: "yes" for true. NULL: no memory. */
static struct cfg_node *node_of_plain(struct cfg_arena *a, const json_t *v)
{
	char number[32];
	const char *text = json_is_string(v)  ? json_string_value(v)
			   : json_is_true(v)  ? "yes"
			   : json_is_false(v) ? "no"
					      : "";

	if (json_is_integer(v)) {
		snprintf(number, sizeof(number), "%lld",
			 (long long)json_integer_value(v));
		text = number;
	} else if (json_is_real(v)) {
		snprintf(number, sizeof(number), "%.17g", json_real_value(v));
		text = number;
	}
	return cfg_node_new(a, CFG_NODE_SCALAR, text);
}

static struct cfg_node *node_of(struct cfg_arena *a, json_t *v)
{
	struct cfg_node *n;
	const char *key;
	json_t *item;
	size_t i;

	if (!json_is_object(v) && !json_is_array(v))
		return node_of_plain(a, v);
	n = cfg_node_new(a, json_is_object(v) ? CFG_NODE_MAP : CFG_NODE_SEQ,
			 NULL);
	json_object_foreach(v, key, item)
	{
		if (n && !cfg_node_add(a, n, key, node_of(a, item)))
			n = NULL;
	}
	json_array_foreach(v, i, item) if (n && !cfg_node_add(a, n, NULL,
							      node_of(a, item)))
		n = NULL;
	return n;
}

static json_t *json_of(const struct cfg_node *n)
{
	json_t *v;

	if (n->type == CFG_NODE_SCALAR)
		return *n->text ? json_string(n->text) : json_null();
	v = n->type == CFG_NODE_MAP ? json_object() : json_array();
	for (unsigned i = 0; i < n->n; i++)
		if (n->type == CFG_NODE_MAP)
			json_object_set_new(v, n->items[i].key,
					    json_of(n->items[i].value));
		else
			json_array_append_new(v, json_of(n->items[i].value));
	return v;
}

/* ---- verbs ---- */

static void no_memory(const struct request *r)
{
	client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
}

static void change(const struct call *k, struct cfg_errors *e)
{
	static const enum cfg_verb verbs[] = { CFG_ADD, CFG_SET, CFG_REMOVE,
					       CFG_REPLACE };
	static const char *const words[] = { "add", "set", "remove",
					     "replace" };
	struct cfg_arena a = { 0 };
	struct cfg_edit x = {
		.noun = k->noun->name,
		.name = k->name,
		.fields = k->fields ? node_of(&a, (json_t *)k->fields) : NULL,
	};
	struct cfg_model *m = NULL;

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(words[i], k->verb->name))
			x.verb = verbs[i];
	if (k->fields && !x.fields)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	else
		m = cfg_edit(request_daemon(k->r)->model, &x, e);
	cfg_arena_free(&a);
	if (m)
		rpc_apply(k->r, m, k->dry_run, e);
}

static void list(const struct call *k)
{
	struct cfg_arena a = { 0 };
	const struct cfg_node *n =
		cfg_edit_list(request_daemon(k->r)->model, k->noun->name, &a);

	if (n)
		client_result(k->r->client, k->r->id, json_of(n));
	else
		no_memory(k->r);
	cfg_arena_free(&a);
}

static void show(const struct call *k, struct cfg_errors *e)
{
	struct cfg_arena a = { 0 };
	const struct cfg_node *n = cfg_edit_show(request_daemon(k->r)->model,
						 k->noun->name, k->name, &a, e);

	if (n)
		client_result(k->r->client, k->r->id, json_of(n));
	cfg_arena_free(&a);
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
		list(&k);
	if (e && e->n)
		rpc_refuse(r, e, NULL);
	free(e);
}
