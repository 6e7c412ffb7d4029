/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * methods.c: what the control socket can be asked for, a row each. What other
 * workers know is fetched by a message that goes from one to the next.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/control_internal.h"
#include "daemon/groups.h"
#include "daemon/luns.h"
#include "daemon/status.h"

static void do_version(const struct request *r)
{
	client_result(r->client, r->id,
		      json_pack("{s:s, s:s}", "name", "iserd", "version",
				OPENISER_VERSION));
}

static void do_luns(const struct request *r)
{
	client_result(r->client, r->id,
		      status_luns(r->client->control->daemon));
}

static void do_reservations(const struct request *r)
{
	client_result(r->client, r->id,
		      status_reservations(r->client->control->daemon));
}

static void do_log(const struct request *r)
{
	struct daemon *d = r->client->control->daemon;
	const char *level =
		json_string_value(json_object_get(r->params, "level"));

	for (int i = TRACE_LEVEL_ERROR; level && i <= TRACE_LEVEL_DEBUG; i++)
		if (!strcmp(level, trace_level_name((enum trace_level)i))) {
			d->log.trace.level = (enum trace_level)i;
			break;
		}
	level = trace_level_name(d->log.trace.level);
	client_result(r->client, r->id, json_pack("{s:s}", "level", level));
}

static void do_shutdown(const struct request *r)
{
	client_result(r->client, r->id, json_true());
	daemon_shutdown(r->client->control->daemon, "control socket");
}

/* A status on its way from worker to worker. */
struct collect {
	struct dev_msg msg;
	struct list link;
	struct owed owed;
	json_t *sessions;
	unsigned worker;
};

/* It is over; there: its client is, and was answered. */
static void collect_end(struct collect *k, bool there)
{
	if (!there)
		json_decref(k->sessions);
	json_decref(k->owed.id);
	list_del(&k->link);
	free(k);
}

static void collected(struct dev_msg *m)
{
	struct collect *k = container_of(m, struct collect, msg);
	struct client *c = k->owed.client;
	bool there = client_settle(&k->owed);

	if (there)
		client_result(c, k->owed.id,
			      status_daemon(c->control->daemon, k->sessions));
	collect_end(k, there);
}

static void visit(struct dev_msg *m)
{
	struct collect *k = container_of(m, struct collect, msg);
	struct daemon *d = k->owed.client->control->daemon;
	unsigned next = k->worker + 1;

	status_sessions(&d->workers[k->worker], k->sessions);
	k->worker = next;
	if (next == d->nworkers)
		m->run = collected;
	worker_post(d, next == d->nworkers ? 0 : next, m);
}

static void do_status(const struct request *r)
{
	struct collect *k = calloc(1, sizeof(*k));

	if (!k) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return;
	}
	k->owed = client_owe(r);
	k->sessions = json_array();
	k->msg.run = visit;
	list_push_back(&r->client->control->collects, &k->link);
	worker_post(r->client->control->daemon, 0, &k->msg);
}

void methods_end(struct control *k)
{
	while (!list_empty(&k->collects)) {
		struct collect *left =
			list_entry(k->collects.next, struct collect, link);

		collect_end(left, client_settle(&left->owed));
	}
}

/* ---- target port groups ---- */

static void do_groups(const struct request *r)
{
	client_result(r->client, r->id,
		      groups_json(r->client->control->daemon->server));
}

static void regrouped(void *arg, int err)
{
	struct owed *g = arg;
	struct client *c = g->client;
	bool there = client_settle(g);

	if (there && err)
		client_error(c, g->id, RPC_BAD_PARAMS,
			     err == ERR_NOT_FOUND
				     ? "no such group; \"groups\" lists them"
				     : err_str(err));
	else if (there)
		client_result(c, g->id,
			      groups_json(c->control->daemon->server));
	json_decref(g->id);
	free(g);
}

/* For a change of a group that is on its way; NULL after an answer. */
static struct owed *regroup_new(const struct request *r)
{
	struct owed *g = malloc(sizeof(*g));

	if (!g) {
		client_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return NULL;
	}
	*g = client_owe(r);
	return g;
}

/* A number, or its digits, as iserctl sends all it is given. */
static uint16_t id_param(const struct request *r)
{
	const json_t *v = json_object_get(r->params, "id");
	json_int_t n = json_integer_value(v);

	if (json_is_string(v))
		n = strtol(json_string_value(v), NULL, 10);
	return n > 0 && n <= UINT16_MAX ? (uint16_t)n : 0;
}

/* preferred may be left out; nothing may be wrong. */
static bool change_param(const struct request *r, struct dev_group_change *c)
{
	const char *state =
		json_string_value(json_object_get(r->params, "state"));
	const json_t *v = json_object_get(r->params, "preferred");
	const char *preferred = json_string_value(v);

	c->id = id_param(r);
	c->set_preferred = v != NULL;
	c->preferred =
		json_is_true(v) || (preferred && !strcmp(preferred, "yes"));
	return c->id && state && group_state_parse(&c->state, state) &&
	       (!v || c->preferred || json_is_false(v) ||
		(preferred && !strcmp(preferred, "no")));
}

static void do_group(const struct request *r)
{
	struct daemon *d = r->client->control->daemon;
	struct dev_group_change change = { 0 };
	struct owed *g;
	int err;

	if (!change_param(r, &change)) {
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "give id=ID, state=optimized, non-optimized, "
			     "standby, unavailable or transitioning, and "
			     "preferred=yes or no if you like");
		return;
	}
	g = regroup_new(r);
	if (!g)
		return;
	err = dev_group_set(d->server, &change, regrouped, g);
	if (err)
		regrouped(g, err);
}

static void do_port(const struct request *r)
{
	struct daemon *d = r->client->control->daemon;
	const char *state =
		json_string_value(json_object_get(r->params, "state"));
	bool offline = state && !strcmp(state, "offline");
	struct owed *g;
	int err;

	if (!id_param(r) || !state || (!offline && strcmp(state, "online"))) {
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "give id=PORT and state=offline or online");
		return;
	}
	g = regroup_new(r);
	if (!g)
		return;
	err = dev_port_set(d->server, id_param(r), offline, regrouped, g);
	if (err)
		regrouped(g, err);
}

/* ---- media of CD/DVD drives ---- */

/* A change of medium that is on its way. */
struct remedium {
	struct owed owed;
	const struct dev_lu *lu;
};

static void medium_changed(void *arg, int err)
{
	struct remedium *g = arg;
	struct client *c = g->owed.client;
	bool there = client_settle(&g->owed);

	if (there && err)
		client_error(c, g->owed.id, RPC_INTERNAL, err_str(err));
	else if (there)
		client_result(c, g->owed.id,
			      status_lun(c->control->daemon, g->lu));
	json_decref(g->owed.id);
	free(g);
}

static const char *medium_refusal(int err)
{
	switch (err) {
	case ERR_UNSUPPORTED:
		return "the LUN is no CD/DVD drive";
	case ERR_BUSY:
		return "an initiator has locked the drive, and was asked to let "
		       "go; try again, or give force=yes";
	case ERR_AGAIN:
		return "the medium is just being changed";
	default:
		return err_str(err);
	}
}

/* Takes over b, NULL to eject. */
static void change_medium(const struct request *r, struct dev_lu *lu,
			  struct bs *b)
{
	const char *force =
		json_string_value(json_object_get(r->params, "force"));
	struct remedium *g = calloc(1, sizeof(*g));
	int err = ERR_NOMEM;

	if (g) {
		g->owed = client_owe(r);
		g->lu = lu;
		err = dev_lu_change_medium(lu, b,
					   force && !strcmp(force, "yes"),
					   medium_changed, g);
		if (!err)
			return;
		(void)client_settle(&g->owed); /* its call needs it yet */
		json_decref(g->owed.id);
		free(g);
	}
	if (b)
		bs_close(b);
	client_error(r->client, r->id, RPC_BAD_PARAMS, medium_refusal(err));
}

/* The unit that lun=N names; NULL: it was answered. */
static struct dev_lu *lun_param(const struct request *r)
{
	const json_t *v = json_object_get(r->params, "lun");
	const char *text = json_string_value(v);
	json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
	struct dev_lu *lu = NULL;
	char *end;

	if (text && *text) {
		n = strtol(text, &end, 10);
		if (*end)
			n = -1;
	}
	if (n >= 0 && n <= UINT16_MAX)
		lu = dev_lu_get(r->client->control->daemon->server,
				(uint16_t)n);
	if (!lu)
		client_error(r->client, r->id, RPC_BAD_PARAMS,
			     "give lun=N; \"luns\" lists them");
	return lu;
}

static void do_eject(const struct request *r)
{
	struct dev_lu *lu = lun_param(r);

	if (lu)
		change_medium(r, lu, NULL);
}

static void do_insert(const struct request *r)
{
	const struct daemon *d = r->client->control->daemon;
	const char *path =
		json_string_value(json_object_get(r->params, "path"));
	struct dev_lu *lu = lun_param(r);
	char why[512] = "give path=IMAGE";
	struct bs *b = NULL;

	if (!lu)
		return;
	if (dev_lu_type(lu) != DEV_CD)
		snprintf(why, sizeof(why), "%s",
			 medium_refusal(ERR_UNSUPPORTED));
	else if (path)
		b = lun_open_cd(&d->options, path, d->loops, why, sizeof(why));
	if (b)
		change_medium(r, lu, b);
	else
		client_error(r->client, r->id, RPC_BAD_PARAMS, why);
}

static void do_methods(const struct request *r);

static const struct {
	const char *name, *help;
	void (*run)(const struct request *r);
} methods[] = {
	{ "luns", "what is served", do_luns },
	{ "eject", "lun=N [force=yes] takes the medium out of a drive",
	  do_eject },
	{ "insert", "lun=N path=IMAGE [force=yes] puts one in", do_insert },
	{ "groups", "target port groups (ALUA)", do_groups },
	{ "group", "id=ID state=STATE [preferred=yes|no] sets one", do_group },
	{ "port", "id=PORT state=offline|online tells of another iserd's",
	  do_port },
	{ "log", "the log level; level=LEVEL sets it", do_log },
	{ "methods", "this list", do_methods },
	{ "reservations", "who has registered and reserved what",
	  do_reservations },
	{ "shutdown", "end in order, as SIGTERM", do_shutdown },
	{ "status", "listeners, sessions and their counters", do_status },
	{ "version", "name and version", do_version },
};

static void do_methods(const struct request *r)
{
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		json_object_set_new(all, methods[i].name,
				    json_string(methods[i].help));
	client_result(r->client, r->id, all);
}

void methods_call(struct client *c, json_t *root)
{
	json_t *id = json_object_get(root, "id");
	const char *name = json_string_value(json_object_get(root, "method"));
	const char *version =
		json_string_value(json_object_get(root, "jsonrpc"));
	struct request r = {
		.client = c,
		.id = id ? id : json_null(),
		.params = json_object_get(root, "params"),
	};

	if (!name || !version || strcmp(version, "2.0") != 0) {
		client_error(c, r.id, RPC_INVALID, "no JSON-RPC 2.0 request");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (!strcmp(name, methods[i].name)) {
			methods[i].run(&r);
			return;
		}
	client_error(c, r.id, RPC_NO_METHOD,
		     "unknown method; \"methods\" lists them");
}
