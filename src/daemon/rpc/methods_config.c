/* SPDX-License-Identifier: BSD-2-Clause */
/* methods_config.c: the configuration: apply, dump and save. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "daemon/apply/apply.h"
#include "daemon/log/say.h"
#include "daemon/rpc/internal.h"

/* A change of the configuration whose response is owed. */
struct config_change {
	struct owed owed;
	json_t *changes;
};

static void change_done(void *arg, bool good)
{
	struct config_change *g = arg;
	bool is_there = client_settle(&g->owed);

	if (is_there && good)
		client_result(g->owed.client, g->owed.id, g->changes);
	else if (is_there)
		client_error(g->owed.client, g->owed.id, RPC_INTERNAL,
			     "iserd is ending");
	if (!is_there || !good)
		json_decref(g->changes);
	json_decref(g->owed.id);
	free(g);
}

void rpc_refuse(const struct request *r, const struct cfg_errors *e,
		const char *path)
{
	const char *line = e->all[0].text;
	char placed[4 * CFG_ERROR_TEXT], more[32] = "";

	if (path)
		cfg_error_line(e, 0, path, "", placed, sizeof(placed));
	if (e->n > 1)
		snprintf(more, sizeof(more), " (and %u more)", e->n - 1);
	client_error(r->client, r->id, RPC_BAD_PARAMS, "%s%s",
		     path ? placed : line, more);
}

static void add_change(void *arg, const struct cfg_change *c)
{
	static const char *const kinds[] = { [CFG_ADDED] = "added",
					     [CFG_REMOVED] = "removed",
					     [CFG_CHANGED] = "changed" };

	json_array_append_new(arg, json_pack("{s:s, s:s, s:s?, s:s?}", "change",
					     kinds[c->kind], "path", c->path,
					     "from", c->from, "to", c->to));
}

static void add_warning(void *arg, const char *text)
{
	char shown[TEXT_ESCAPED_SIZE(1024)];

	json_array_append_new(
		arg, json_pack("{s:s, s:s}", "change", "warning", "text",
			       text_escape_str(shown, sizeof(shown), text)));
}

/* Brings m into force, which is consumed. The response is owed, unless m is
 * refused: then e has the reasons. */
static void begin(const struct request *r, struct cfg_model *m, json_t *changes,
		  struct cfg_errors *e)
{
	struct config_change *g = calloc(1, sizeof(*g));
	struct say_tap tap = { .take = add_warning, .arg = changes };
	bool good;

	if (!g) {
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
		cfg_model_free(m);
		json_decref(changes);
		return;
	}
	g->owed = client_owe(r);
	g->changes = changes;
	say_tap(&tap);
	good = apply_model(request_daemon(r), m, e, change_done, g);
	say_untap(&tap);
	if (good)
		return;
	(void)client_settle(&g->owed); /* the caller still holds the client */
	json_decref(g->owed.id);
	json_decref(changes);
	free(g);
}

void rpc_apply(const struct request *r, struct cfg_model *m, bool dry_run,
	       struct cfg_errors *e)
{
	struct daemon *d = request_daemon(r);
	json_t *changes = json_array();
	struct cfg_errors *warnings = calloc(1, sizeof(*warnings));

	if (!warnings || !cfg_diff(d->model, m, add_change, changes))
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	else if (!dry_run) {
		begin(r, m, changes, e);
		free(warnings);
		return;
	} else if (apply_check(d, m, e, warnings)) {
		for (unsigned i = 0; i < cfg_errors_kept(warnings); i++)
			add_warning(changes, warnings->all[i].text);
		client_result(r->client, r->id, json_incref(changes));
	}
	free(warnings);
	json_decref(changes);
	cfg_model_free(m);
}

/* Returns the file of the request, or that of the start; NULL after a
 * response. */
static const char *path_of(const struct request *r)
{
	const char *start = request_daemon(r)->model->options.start.config;

	if (r->args->path)
		return r->args->path;
	if (!start)
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "path: missing, and iserd was started without "
			     "--config; give path=FILE");
	return start;
}

void method_apply(const struct request *r)
{
	const char *path = path_of(r);
	struct cfg_errors *e;
	struct cfg_model *m;

	if (!path || (!r->args->dry_run && rpc_wait(r)))
		return;
	e = calloc(1, sizeof(*e));
	m = e ? cfg_model_load(path, e) : NULL;
	if (m)
		rpc_apply(r, m, r->args->dry_run, e);
	if (e && e->n)
		rpc_refuse(r, e, path);
	else if (!e)
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
	free(e);
}

void method_dump(const struct request *r)
{
	char *text = cfg_dump(request_daemon(r)->model);
	json_t *result = text ? json_string(text) : NULL;

	free(text);
	if (result)
		client_result(r->client, r->id, result);
	else
		client_error(r->client, r->id, RPC_INTERNAL,
			     "out of memory, or a name is not UTF-8");
}

void method_save(const struct request *r)
{
	const char *path = path_of(r);
	int err;

	if (!path)
		return;
	err = apply_save(request_daemon(r), path);
	if (err == -EMEDIUMTYPE)
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "%.300s: not a regular file; give another path",
			     path);
	else if (err)
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "%.300s: cannot be written: %s%s", path,
			     strerror(-err),
			     err == -EACCES || err == -EROFS
				     ? "; write there what iserctl dump prints"
				     : "");
	else
		client_result(r->client, r->id,
			      json_pack("{s:s}", "file", path));
}

/* ---- the configuration as JSON, and its changes ---- */

void method_config(const struct request *r)
{
	json_t *doc = request_daemon(r)->model->head.document;
	json_t *config = cfg_doc_utf8(doc, true);
	char version[CFG_VERSION_SIZE];

	if (config) {
		cfg_doc_version(doc, version);
		client_result(r->client, r->id,
			      json_pack("{s:s, s:o}", "version", version,
					"config", config));
	} else {
		client_error(r->client, r->id, RPC_INTERNAL,
			     "out of memory, or a name is not UTF-8");
	}
}

/* Returns the text of the request as a patch, or NULL after a response. */
static json_t *read_patch(const struct request *r)
{
	json_error_t at;
	json_t *patch = json_loads(r->args->patch, JSON_REJECT_DUPLICATES, &at);

	if (json_is_object(patch))
		return patch;
	client_error(r->client, r->id, RPC_BAD_PARAMS,
		     "patch: not a JSON object: %.160s",
		     patch ? "another value" : at.text);
	json_decref(patch);
	return NULL;
}

/* Returns whether the configuration in force has the version of the request, and
 * can be changed; if not, after a response. */
static bool is_current(const struct request *r)
{
	char version[CFG_VERSION_SIZE];

	cfg_doc_version(request_daemon(r)->model->head.document, version);
	if (r->args->version && strcmp(version, r->args->version) != 0)
		return client_error(
			r->client, r->id, RPC_CHANGED,
			"version: the configuration has changed since it was "
			"read; read it again");
	return !request_daemon(r)->changes.now ||
	       client_error(r->client, r->id, RPC_BUSY,
			    "an earlier change is not complete: its sessions "
			    "or backstores are being closed; try again in some "
			    "seconds");
}

/* Applies the patch to a copy of the configuration in force. */
static void apply_patch(const struct request *r, json_t *patch,
			struct cfg_errors *e)
{
	json_t *doc = json_deep_copy(request_daemon(r)->model->head.document);
	const char *why = cfg_doc_merge(doc, patch);
	struct cfg_model *m = why ? NULL : cfg_model_of_document(doc, e);

	json_decref(doc);
	if (why)
		cfg_error(e, (struct cfg_place){ 0 }, "%s", why);
	if (m)
		rpc_apply(r, m, r->args->dry_run, e);
	if (e->n)
		rpc_refuse(r, e, "patch");
}

void method_patch(const struct request *r)
{
	struct cfg_errors *e;
	json_t *patch;

	if (!r->args->dry_run && rpc_wait(r))
		return;
	e = calloc(1, sizeof(*e));
	patch = e ? read_patch(r) : NULL;
	if (!e)
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
	else if (patch && is_current(r))
		apply_patch(r, patch, e);
	json_decref(patch);
	free(e);
}
