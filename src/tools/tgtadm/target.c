/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c: targets and their access rules. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "tools/tgtadm/tgtadm.h"

#define CONNECTIONS_MAX 16u /* of the field max-connections */

/* ---- new, delete ---- */

static bool is_driver(const char *lld)
{
	return !lld || !strcmp(lld, "iscsi") || !strcmp(lld, "iser");
}

static bool has_target(const json_t *config, const char *name)
{
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(config, "targets"), key, v)
	{
		if (!strcasecmp(key, name))
			return true;
	}
	return false;
}

int tgtadm_target_new(struct tgtadm *t)
{
	json_t *groups = json_object_get(t->config, "portal-groups");
	json_t *targets = tgtadm_section(t, "targets"), *target, *list, *v;
	const char *key;

	if (!is_driver(t->r->lld))
		return tgtadm_refuse("%s", tgtadm_no_driver);
	if (tgtadm_target(t->config, t->r->tid, NULL) ||
	    has_target(t->config, t->r->target))
		return tgtadm_refuse("%s", tgtadm_target_exists);
	if (!json_object_size(groups))
		return tgtadm_refuse("%s: iserd listens nowhere; add a portal "
				     "by --mode portal --op new --param "
				     "portal=ADDRESS:PORT",
				     tgtadm_invalid);
	list = json_array();
	json_object_foreach(groups, key, v)
	{
		json_array_append_new(list, json_string(key));
	}
	target = json_pack("{s:s, s:o, s:o}", "auth-group", "none",
			   "portal-groups", list, "tgt-id",
			   json_sprintf("%d", t->r->tid));
	if (!target || json_object_set_new(targets, t->r->target, target))
		return tgtadm_refuse("%s: %.200s: not a name", tgtadm_invalid,
				     t->r->target);
	/* an earlier target with this number may have left its rules */
	tgtadm_close(t, target);
	return 0;
}

/* Returns the names of the backstores of a target, which the caller releases. */
static json_t *backstores_of(const json_t *target)
{
	json_t *names = json_array(), *lun, *map;
	const char *key;
	size_t i;

	json_object_foreach(json_object_get(target, "luns"), key, lun)
	{
		json_array_append_new(names,
				      json_string(tgtadm_backstore_of(lun)));
	}
	json_array_foreach(json_object_get(target, "maps"), i, map)
	{
		json_object_foreach(json_object_get(map, "luns"), key, lun)
		{
			json_array_append_new(
				names, json_string(tgtadm_backstore_of(lun)));
		}
	}

	return names;
}

int tgtadm_target_delete(struct tgtadm *t)
{
	const char *name;
	json_t *target = tgtadm_target(t->config, t->r->tid, &name);
	json_t *sessions, *stores, *v;
	size_t i, n;

	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	sessions = t->r->force ? json_array() : tgtadm_sessions(t, name);
	if (!sessions)
		return tgtadm_failed(t);
	n = json_array_size(sessions);
	json_decref(sessions);
	if (n)
		return tgtadm_refuse("%s", tgtadm_target_active);
	stores = backstores_of(target);
	tgtadm_close(t, target);
	json_object_del(json_object_get(t->config, "targets"), name);
	json_array_foreach(stores, i, v)
	{
		tgtadm_drop_backstore(t, tgtadm_text_of(v));
	}
	json_decref(stores);
	return 0;
}

/* ---- update ---- */

enum key_kind {
	KEY_NUMBER,
	KEY_BOOL,
	KEY_DIGEST,
	KEY_CONNECTIONS,
	KEY_ANY,
};

/* What tgt can set, with the ranges of RFC 7143 §13 and RFC 7145 §6. */
static const struct key {
	const char *name;
	enum key_kind kind;
	uint64_t min, max;
} keys[] = {
	{ "HeaderDigest", KEY_DIGEST, 0, 0 },
	{ "DataDigest", KEY_DIGEST, 0, 0 },
	{ "MaxRecvDataSegmentLength", KEY_NUMBER, 512, 16777215 },
	{ "MaxXmitDataSegmentLength", KEY_NUMBER, 512, 16777215 },
	{ "InitialR2T", KEY_BOOL, 0, 0 },
	{ "MaxOutstandingR2T", KEY_NUMBER, 1, 65535 },
	{ "ImmediateData", KEY_BOOL, 0, 0 },
	{ "FirstBurstLength", KEY_NUMBER, 512, 16777215 },
	{ "MaxBurstLength", KEY_NUMBER, 512, 16777215 },
	{ "DataPDUInOrder", KEY_BOOL, 0, 0 },
	{ "DataSequenceInOrder", KEY_BOOL, 0, 0 },
	{ "ErrorRecoveryLevel", KEY_NUMBER, 0, 2 },
	{ "IFMarker", KEY_BOOL, 0, 0 },
	{ "OFMarker", KEY_BOOL, 0, 0 },
	{ "DefaultTime2Wait", KEY_NUMBER, 0, 3600 },
	{ "DefaultTime2Retain", KEY_NUMBER, 0, 3600 },
	{ "OFMarkInt", KEY_NUMBER, 1, 65535 },
	{ "IFMarkInt", KEY_NUMBER, 1, 65535 },
	{ "MaxConnections", KEY_CONNECTIONS, 1, 65535 },
	{ "RDMAExtensions", KEY_BOOL, 0, 0 },
	{ "TargetRecvDataSegmentLength", KEY_NUMBER, 512, 16777215 },
	{ "InitiatorRecvDataSegmentLength", KEY_NUMBER, 512, 16777215 },
	{ "MaxOutstandingUnexpectedPDUs", KEY_NUMBER, 0, UINT32_MAX },
	{ "MaxQueueCmd", KEY_NUMBER, 1, 512 },
	{ "nop_interval", KEY_ANY, 0, 0 },
	{ "nop_count", KEY_ANY, 0, 0 },
};

static bool is_value(const struct key *k, const char *value)
{
	uint64_t v;

	switch (k->kind) {
	case KEY_BOOL:
		return !strcmp(value, "Yes") || !strcmp(value, "No");
	case KEY_DIGEST:
		return !strncmp(value, "None", 4) ||
		       !strncmp(value, "CRC32C", 6);
	case KEY_NUMBER:
	case KEY_CONNECTIONS:
		return !tgtadm_number(value, k->max, &v) && v >= k->min;
	default:
		return true;
	}
}

static int set_state(struct tgtadm *t, json_t *target, const char *state)
{
	bool is_offline = tgtadm_is_offline(t->config, target);
	bool offline = !strcmp(state, "offline");
	const json_t *group;

	if (!offline && strcmp(state, "ready") != 0)
		return tgtadm_refuse("%s", tgtadm_invalid);
	if (offline == is_offline)
		return 0;
	group = tgtadm_own_rules(t, target);
	if (!group)
		return TGTADM_REFUSED;
	/* the first rule would open it again */
	if (offline && !tgtadm_has_rules(group))
		return tgtadm_refuse("%s: target %d admits no initiator yet; "
				     "bind addresses or names before state "
				     "offline",
				     tgtadm_invalid, t->r->tid);
	tgtadm_settle_rules(t, target, offline);
	return 0;
}

/* MaxConnections is the field max-connections, which has a smaller range. */
static void set_connections(struct tgtadm *t, json_t *target)
{
	uint64_t v = 1;

	(void)tgtadm_number(t->r->value, CONNECTIONS_MAX, &v);
	if (v > CONNECTIONS_MAX)
		tgtadm_note(
			t,
			"target %d: MaxConnections: %u, the most that iserd has",
			t->r->tid, CONNECTIONS_MAX);
	v = v > CONNECTIONS_MAX ? CONNECTIONS_MAX : v;
	json_object_set_new(target, "max-connections",
			    json_sprintf("%u", (unsigned)v));
}

int tgtadm_target_update(struct tgtadm *t)
{
	const struct tgtadm_request *r = t->r;
	json_t *target = tgtadm_target(t->config, r->tid, NULL);
	const struct key *k = NULL;

	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	if (!strcmp(r->name, "state"))
		return set_state(t, target, r->value);
	for (size_t i = 0; i < ARRAY_LEN(keys) && !k; i++)
		k = strcmp(keys[i].name, r->name) ? NULL : &keys[i];
	if (!k || !is_value(k, r->value))
		return tgtadm_refuse("%s", tgtadm_invalid);
	if (k->kind == KEY_DIGEST)
		json_object_set_new(target, "digests",
				    json_string(*r->value == 'C' ? "prefer"
								 : "none"));
	else if (k->kind == KEY_CONNECTIONS)
		set_connections(t, target);
	else if (k->kind == KEY_ANY)
		tgtadm_note(t,
			    "target %d: %s: ignored: iserd pings idle "
			    "initiators by its own times",
			    r->tid, k->name);
	else
		tgtadm_note(t,
			    "target %d: %s: ignored: iserd negotiates it with "
			    "each initiator",
			    r->tid, k->name);
	return 0;
}

/* ---- bind, unbind ---- */

/* An IPv6 address has brackets in tgt. */
static const char *plain_address(const char *address, char *buf, size_t size)
{
	const char *end = strchr(address, ']');

	if (*address != '[' || !end)
		return address;
	snprintf(buf, size, "%.*s%s", (int)(end - address - 1), address + 1,
		 end + 1);
	return buf;
}

/* Returns the exit status after a message. */
static int add_rule(json_t *list, const char *text)
{
	if (tgtadm_list_find(list, text) >= 0)
		return tgtadm_refuse("%s", tgtadm_rule_exists);
	if (!json_array_append_new(list, json_string(text)))
		return 0;
	return tgtadm_refuse("%s: %.200s: not UTF-8", tgtadm_invalid, text);
}

static int remove_rule(json_t *list, const char *text)
{
	int i = tgtadm_list_find(list, text);

	if (i < 0)
		return tgtadm_refuse("%s", tgtadm_no_rule);
	json_array_remove(list, (size_t)i);
	return 0;
}

static int change_rules(const struct tgtadm_request *r, json_t *group)
{
	int (*change)(json_t * list, const char *text) =
		r->op == TGTADM_BIND ? add_rule : remove_rule;
	json_t *addresses = tgtadm_member(group, "addresses", json_array);
	char buf[256];
	int code = 0;

	if (r->address && !strcmp(r->address, "ALL")) {
		code = change(addresses, tgtadm_all_v4);
		if (!code)
			code = change(addresses, tgtadm_all_v6);
	} else if (r->address) {
		code = change(addresses,
			      plain_address(r->address, buf, sizeof(buf)));
	}
	if (!code && r->initiator)
		code = change(tgtadm_member(group, "initiators", json_array),
			      r->initiator);
	return code;
}

/* tgt before 1.0.86 admits an initiator by one of the two lists. */
static void warn_of_both(struct tgtadm *t, const json_t *group)
{
	if (t->r->op == TGTADM_BIND &&
	    json_array_size(json_object_get(group, "addresses")) &&
	    json_array_size(json_object_get(group, "initiators")))
		tgtadm_note(t,
			    "target %d: from now on iserd admits an initiator "
			    "only if its address and its name are bound; "
			    "unbind the addresses or the names to admit it by "
			    "one of the two",
			    t->r->tid);
}

static int change_access(struct tgtadm *t)
{
	json_t *target = tgtadm_target(t->config, t->r->tid, NULL), *group;
	bool offline;
	int code;

	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	if (t->r->has_host)
		return tgtadm_refuse("%s: -H, --host: iserd has no SCSI hosts",
				     tgtadm_invalid);
	offline = tgtadm_is_offline(t->config, target);
	group = tgtadm_own_rules(t, target);
	if (!group)
		return TGTADM_REFUSED;
	code = change_rules(t->r, group);
	if (code)
		return code;
	warn_of_both(t, group);
	tgtadm_settle_rules(t, target,
			    offline || tgtadm_lacks_account(t, group));
	return 0;
}

int tgtadm_target_bind(struct tgtadm *t)
{
	return change_access(t);
}

int tgtadm_target_unbind(struct tgtadm *t)
{
	return change_access(t);
}
