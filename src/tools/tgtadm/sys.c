/* SPDX-License-Identifier: BSD-2-Clause */
/* sys.c: the modes system and connection, and which function an operation is. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/bytes.h"
#include "tools/tgtadm/tgtadm.h"

#define END_TRIES 200 /* of looking for a session that is to end */
#define END_WAIT  50  /* milliseconds */

/* ---- system ---- */

static int set_debug(struct tgtadm *t, const char *value)
{
	json_t *result;

	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return tgtadm_refuse("%s", tgtadm_invalid);
	result = tgtadm_call(t, "log",
			     json_pack("{s:s}", "level",
				       value[1] == 'n' ? "debug" : "notice"));
	if (!result)
		return tgtadm_failed(t);
	json_decref(result);
	return 0;
}

int tgtadm_sys_update(struct tgtadm *t)
{
	const char *name = t->r->name, *value = t->r->value;

	if (!strcmp(name, "debug"))
		return set_debug(t, value);
	if (!strcasecmp(name, "state"))
		return !strcmp(value, "ready")
			       ? 0
			       : tgtadm_refuse("%s: iserd cannot go offline as "
					       "a whole; set the state of each "
					       "target",
					       tgtadm_invalid);
	if (!strcmp(name, "iSNS") && !strcasecmp(value, "Off"))
		return 0;
	if (!strncmp(name, "iSNS", 4))
		return tgtadm_refuse("%s: %.60s: use iser-isns(8)",
				     tgtadm_invalid, name);
	return tgtadm_refuse("%s", tgtadm_invalid);
}

/* As in tgt, only without targets. */
int tgtadm_sys_delete(struct tgtadm *t)
{
	json_t *result = tgtadm_call(t, "config", NULL);
	const json_t *config = json_object_get(result, "config");
	size_t n = json_object_size(json_object_get(config, "targets"));

	if (!result)
		return tgtadm_failed(t);
	json_decref(result);
	if (n)
		return tgtadm_refuse("%s: iserd has targets; delete them first",
				     tgtadm_invalid);
	result = tgtadm_call(t, "shutdown", NULL);
	if (!result)
		return tgtadm_failed(t);
	json_decref(result);
	return 0;
}

/* ---- connection ---- */

/* Returns whether the target has the session, and in *peer the address of the connection, which
 * the caller releases; NULL: the session does not have it. -1: the error of tgtadm_call. */
static int find_session(struct tgtadm *t, const char *target, json_t **peer)
{
	json_t *all = tgtadm_sessions(t, target), *s;
	int found = all ? 0 : -1;
	size_t i;

	*peer = NULL;
	json_array_foreach(all, i, s)
	{
		if ((uint64_t)get_number(s, "tsih") != t->r->sid)
			continue;
		found = 1;
		if (!*peer && get_number(s, "cid") == t->r->cid)
			*peer = json_incref(json_object_get(s, "peer"));
	}
	json_decref(all);
	return found;
}

/* As in tgt, the initiator is not asked: an agent of a cluster ends one connection after the other
 * while it stops a target, and has little time. iserd answers once the connection has ended, or
 * at once if it is about to end, as after the end of the last rule of its target. */
static int kick_connection(struct tgtadm *t, const char *target, json_t *peer)
{
	const struct timespec rest = { 0, END_WAIT * 1000000L };
	bool has_conn = true;
	int found = 1;

	json_decref(tgtadm_call(t, "connection.kick",
				json_pack("{s:O}", "name", peer)));
	for (unsigned i = 0; i < END_TRIES && found > 0 && has_conn; i++) {
		json_t *left;

		if (i)
			nanosleep(&rest, NULL);
		found = find_session(t, target, &left);
		has_conn = left != NULL;
		json_decref(left);
	}
	if (found < 0)
		return tgtadm_failed(t);
	return found && has_conn ? tgtadm_refuse("%s: the connection has not "
						 "ended",
						 tgtadm_invalid)
				 : 0;
}

/* Returns whether a session may have had this number: they are multiples of the
 * number of workers, plus the worker, in the order of the logins. -1: the error of
 * tgtadm_call. */
static int was_session(struct tgtadm *t)
{
	json_t *status = tgtadm_call(t, "status", NULL);
	const json_t *a = json_object_get(status, "admission");
	uint64_t logins = (uint64_t)get_number(a, "logins");
	uint64_t workers = (uint64_t)get_number(status, "workers");
	int was = status ? workers && t->r->sid / workers &&
				   t->r->sid / workers <= logins
			 : -1;

	json_decref(status);
	return was;
}

/* The end of a session that is not there: a target that admits no initiator has ended
 * its sessions when its last rule went, which tgt does not; tgt-admin --delete --force
 * ends them after that. */
static int end_missing(struct tgtadm *t, const json_t *target)
{
	int was = strcmp(get_text(target, "auth-group"), "none")
			  ? 0
			  : was_session(t);

	if (was < 0)
		return tgtadm_failed(t);
	return was ? 0 : tgtadm_refuse("%s", tgtadm_no_session);
}

/* The configuration stays as it is. */
static int end_connection(struct tgtadm *t)
{
	const char *name;
	json_t *target = tgtadm_target(t->config, t->r->tid, &name);
	json_t *peer;
	int found;

	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	found = find_session(t, name, &peer);
	if (found < 0)
		return tgtadm_failed(t);
	if (!found)
		return end_missing(t, target);
	if (!peer)
		return tgtadm_refuse("%s", tgtadm_no_connection);
	found = kick_connection(t, name, peer);
	json_decref(peer);
	return found;
}

int tgtadm_conn_delete(struct tgtadm *t)
{
	return tgtadm_change(t, end_connection);
}

/* ---- which function ---- */

static int nothing(struct tgtadm *t)
{
	(void)t;
	return 0;
}

/* By mode and operation: a change of the configuration, or a function that needs
 * no change. */
static const struct operation {
	int (*change)(struct tgtadm *t), (*run)(struct tgtadm *t);
} operations[TGTADM_MODES][TGTADM_OPS] = {
	[TGTADM_SYS] = { [TGTADM_SHOW] = { .run = tgtadm_show },
			 [TGTADM_STAT] = { .run = tgtadm_stat },
			 [TGTADM_UPDATE] = { .run = tgtadm_sys_update },
			 [TGTADM_DELETE] = { .run = tgtadm_sys_delete } },
	[TGTADM_TARGET] = { [TGTADM_SHOW] = { .run = tgtadm_show },
			    [TGTADM_STAT] = { .run = tgtadm_stat },
			    [TGTADM_NEW] = { tgtadm_target_new },
			    [TGTADM_DELETE] = { tgtadm_target_delete },
			    [TGTADM_UPDATE] = { tgtadm_target_update },
			    [TGTADM_BIND] = { tgtadm_target_bind },
			    [TGTADM_UNBIND] = { tgtadm_target_unbind } },
	[TGTADM_LUN] = { [TGTADM_NEW] = { tgtadm_lun_new },
			 [TGTADM_DELETE] = { tgtadm_lun_delete },
			 [TGTADM_STAT] = { .run = tgtadm_stat },
			 [TGTADM_UPDATE] = { tgtadm_lun_update } },
	[TGTADM_PORTAL] = { [TGTADM_SHOW] = { .run = tgtadm_show },
			    [TGTADM_NEW] = { tgtadm_portal_new },
			    [TGTADM_DELETE] = { tgtadm_portal_delete } },
	[TGTADM_SESSION] = { [TGTADM_STAT] = { .run = tgtadm_stat } },
	[TGTADM_CONN] = { [TGTADM_SHOW] = { .run = tgtadm_show },
			  [TGTADM_STAT] = { .run = tgtadm_stat },
			  [TGTADM_DELETE] = { .run = tgtadm_conn_delete } },
	[TGTADM_ACCOUNT] = { [TGTADM_SHOW] = { .run = tgtadm_show },
			     [TGTADM_NEW] = { tgtadm_account_new },
			     [TGTADM_DELETE] = { tgtadm_account_delete },
			     [TGTADM_BIND] = { tgtadm_account_change },
			     [TGTADM_UNBIND] = { tgtadm_account_change } },
	[TGTADM_LLD] = { [TGTADM_SHOW] = { .run = tgtadm_show },
			 [TGTADM_START] = { .run = nothing } },
};

/* The file of a secret goes with its account. */
static void tidy_secrets(const struct tgtadm *t, int code)
{
	bool is_new = t->r->op == TGTADM_NEW,
	     is_delete = t->r->op == TGTADM_DELETE;

	if (t->r->mode == TGTADM_ACCOUNT && *t->made &&
	    ((is_new && code) || (is_delete && !code)))
		tgtadm_secret_remove(t, t->made);
}

int tgtadm_run(struct tgtadm *t)
{
	const struct operation *o = &operations[t->r->mode][t->r->op];
	int code;

	if (o->run)
		return o->run(t);
	if (!o->change)
		return tgtadm_refuse("%s", tgtadm_invalid);
	code = tgtadm_change(t, o->change);
	tidy_secrets(t, code);
	return code;
}
