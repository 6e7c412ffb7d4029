/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access.c: the rules of a target, which tgt calls its ACL and its accounts, as the
 * auth group "tgt-TID". Its addresses are the initiator addresses of tgt, where ALL
 * is two prefixes of no bits; its initiators are the initiator names. A target
 * without an address or a name has the auth group "none"; so has a target that is
 * offline, whose own group has rules nevertheless.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/tgtadm/tgtadm.h"

const char tgtadm_all_v4[] = "0.0.0.0/0";
const char tgtadm_all_v6[] = "::/0";

static void own_name(const json_t *target, char out[TGTADM_NAME_SIZE])
{
	snprintf(out, TGTADM_NAME_SIZE, "tgt-%d", tgtadm_tid_of(target));
}

/* A text with one address counts as a list. */
static bool has_entries(const json_t *group, const char *key)
{
	return json_array_size(json_object_get(group, key)) > 0;
}

bool tgtadm_has_rules(const json_t *group)
{
	return has_entries(group, "addresses") ||
	       has_entries(group, "initiators");
}

const json_t *tgtadm_rules(const json_t *config, const json_t *target)
{
	const char *name = get_text(target, "auth-group");
	char own[TGTADM_NAME_SIZE];

	own_name(target, own);
	if (!strcmp(name, "none"))
		name = own;
	return json_object_get(json_object_get(config, "auth-groups"), name);
}

bool tgtadm_is_offline(const json_t *config, const json_t *target)
{
	return !strcmp(get_text(target, "auth-group"), "none") &&
	       tgtadm_has_rules(tgtadm_rules(config, target));
}

bool tgtadm_is_all(const json_t *rules)
{
	const json_t *list = json_object_get(rules, "addresses");

	return tgtadm_list_find(list, tgtadm_all_v4) >= 0 &&
	       tgtadm_list_find(list, tgtadm_all_v6) >= 0;
}

/* Returns how many targets and portal groups have the auth group. */
static unsigned users_of(const json_t *config, const char *group)
{
	const char *key;
	unsigned n = 0;
	json_t *v;

	json_object_foreach(json_object_get(config, "targets"), key, v)
	{
		n += !strcmp(get_text(v, "auth-group"), group);
	}
	json_object_foreach(json_object_get(config, "portal-groups"), key, v)
	{
		n += !strcmp(get_text(v, "discovery-auth"), group);
	}
	return n;
}

void tgtadm_drop_rules(json_t *config, const char *group)
{
	json_t *groups = json_object_get(config, "auth-groups");

	if (users_of(config, group))
		return;
	json_object_del(groups, group);
	if (groups && !json_object_size(groups))
		json_object_del(config, "auth-groups");
}

void tgtadm_close(struct tgtadm *t, json_t *target)
{
	char own[TGTADM_NAME_SIZE];

	own_name(target, own);
	json_object_set_new(target, "auth-group", json_string("none"));
	tgtadm_drop_rules(t->config, own);
}

static json_t *all_addresses(void)
{
	return json_pack("[s, s]", tgtadm_all_v4, tgtadm_all_v6);
}

/* Returns a copy of what the target has now. An auth group that lists no addresses
 * and no names admits all. */
static json_t *copy_rules(const json_t *groups, const char *name)
{
	json_t *copy = NULL;

	if (strcmp(name, "any") != 0 && strcmp(name, "none") != 0)
		copy = json_deep_copy(json_object_get(groups, name));
	if (!copy)
		copy = json_object();
	if (strcmp(name, "none") != 0 && !tgtadm_has_rules(copy))
		json_object_set_new(copy, "addresses", all_addresses());
	return copy;
}

json_t *tgtadm_own_rules(struct tgtadm *t, json_t *target)
{
	json_t *groups = tgtadm_section(t, "auth-groups"), *group;
	const char *name = get_text(target, "auth-group");
	char own[TGTADM_NAME_SIZE];

	own_name(target, own);
	group = json_object_get(groups, own);
	if (group && (!strcmp(name, own) || !strcmp(name, "none")) &&
	    users_of(t->config, own) == !strcmp(name, own))
		return group;
	if (group && users_of(t->config, own)) {
		tgtadm_say("auth group %s: in use by another target; give it "
			   "another name by iserctl",
			   own);
		return NULL;
	}
	group = copy_rules(groups, name);
	json_object_set_new(groups, own, group);
	return group;
}

bool tgtadm_lacks_account(const struct tgtadm *t, const json_t *group)
{
	return t->r->agent_user && !has_entries(group, "accounts");
}

void tgtadm_settle_rules(struct tgtadm *t, json_t *target, bool offline)
{
	json_t *groups = tgtadm_section(t, "auth-groups"), *group, *v;
	static const char *const lists[] = { "accounts", "initiators",
					     "addresses" };
	const char *key;
	char own[TGTADM_NAME_SIZE];
	bool admits;
	void *next;

	own_name(target, own);
	group = json_object_get(groups, own);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (!has_entries(group, lists[i]))
			json_object_del(group, lists[i]);
	json_object_foreach_safe(group, next, key, v)
	{
		if (json_is_object(v) && !json_object_size(v))
			json_object_del(group, key);
	}
	admits = tgtadm_has_rules(group) && !offline;
	if (!json_object_size(group))
		json_object_del(groups, own);
	json_object_set_new(target, "auth-group",
			    json_string(admits ? own : "none"));
	if (!json_object_size(groups))
		json_object_del(t->config, "auth-groups");
}
