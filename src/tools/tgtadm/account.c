/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account.c: accounts of CHAP. The auth group "tgt-accounts" has them all; a target
 * that an account is bound to has a copy in its own auth group, and discovery in
 * the auth group "tgt-discovery".
 */
#include <string.h>

#include "tools/tgtadm/tgtadm.h"

/* Returns the index of a user in a list of accounts; -1: it is not in it. */
static int find_user(const json_t *accounts, const char *user)
{
	for (size_t i = 0; i < json_array_size(accounts); i++)
		if (!strcmp(get_text(json_array_get(accounts, i), "user"),
			    user))
			return (int)i;
	return -1;
}

/* Returns the account, of any auth group: "tgt-accounts" first. NULL: there is
 * none. */
static json_t *find_account(const json_t *config, const char *user)
{
	json_t *groups = json_object_get(config, "auth-groups"), *group, *list;
	const char *name;
	int i;

	list = json_object_get(json_object_get(groups, TGTADM_ACCOUNTS),
			       "accounts");
	i = find_user(list, user);
	if (i >= 0)
		return json_array_get(list, (size_t)i);
	json_object_foreach(groups, name, group)
	{
		list = json_object_get(group, "accounts");
		i = find_user(list, user);
		if (i >= 0)
			return json_array_get(list, (size_t)i);
		list = json_object_get(group, "mutual");
		if (list && !strcmp(get_text(list, "user"), user))
			return list;
	}
	return NULL;
}

/* ---- new ---- */

int tgtadm_account_new(struct tgtadm *t)
{
	json_t *group, *account;
	int code;

	if (find_account(t->config, t->r->user))
		return tgtadm_refuse("%s", tgtadm_user_exists);
	code = tgtadm_secret_save(t);
	if (code)
		return code;
	account = json_pack("{s:s, s:s}", "user", t->r->user, "secret-file",
			    t->made);
	if (!account)
		return tgtadm_refuse("%s: the name or the path is not UTF-8",
				     tgtadm_invalid);
	group = tgtadm_member(tgtadm_section(t, "auth-groups"), TGTADM_ACCOUNTS,
			      json_object);
	json_array_insert_new(tgtadm_member(group, "accounts", json_array), 0,
			      account);
	return 0;
}

/* ---- delete ---- */

/* Returns whether iser-tgtadm made the auth group. */
static bool is_own(const char *group)
{
	return !strncmp(group, "tgt-", 4);
}

static bool has_user(const json_t *group, const char *user)
{
	const json_t *mutual = json_object_get(group, "mutual");

	return find_user(json_object_get(group, "accounts"), user) >= 0 ||
	       (mutual && !strcmp(get_text(mutual, "user"), user));
}

/* Removes an account from a group, in one role or, with both, in both. */
static void remove_user(json_t *group, const char *user, bool incoming,
			bool outgoing)
{
	json_t *accounts = json_object_get(group, "accounts");
	const json_t *mutual = json_object_get(group, "mutual");
	int i = find_user(accounts, user);

	if (incoming && i >= 0)
		json_array_remove(accounts, (size_t)i);
	if (incoming && !json_array_size(accounts))
		json_object_del(group, "accounts");
	if (outgoing && mutual && !strcmp(get_text(mutual, "user"), user))
		json_object_del(group, "mutual");
}

/* The initiator authenticates first (RFC 7143 §12.1.3). */
static int check_mutual(const json_t *group)
{
	if (!json_object_get(group, "mutual") ||
	    json_array_size(json_object_get(group, "accounts")))
		return 0;
	return tgtadm_refuse("%s: an outgoing account needs an incoming one: "
			     "bind an incoming account first, or unbind the "
			     "outgoing one first",
			     tgtadm_invalid);
}

/* Makes each target and portal group use what is left of its auth group. */
static void settle_all(struct tgtadm *t)
{
	json_t *groups = json_object_get(t->config, "auth-groups"), *v, *all;
	const char *key;
	char own[TGTADM_NAME_SIZE];

	json_object_foreach(json_object_get(t->config, "targets"), key, v)
	{
		snprintf(own, sizeof(own), "tgt-%d", tgtadm_tid_of(v));
		if (tgtadm_rules(t->config, v) &&
		    tgtadm_rules(t->config, v) == json_object_get(groups, own))
			tgtadm_settle_rules(t, v,
					    tgtadm_is_offline(t->config, v));
		groups = json_object_get(t->config, "auth-groups");
	}
	all = json_object_get(json_object_get(groups, TGTADM_ACCOUNTS),
			      "accounts");
	if (!json_array_size(all))
		json_object_del(groups, TGTADM_ACCOUNTS);
	if (json_object_size(json_object_get(groups, TGTADM_DISCOVERY)))
		return;
	json_object_del(groups, TGTADM_DISCOVERY);
	json_object_foreach(json_object_get(t->config, "portal-groups"), key, v)
	{
		if (!strcmp(get_text(v, "discovery-auth"), TGTADM_DISCOVERY))
			json_object_del(v, "discovery-auth");
	}
}

/* An OCF agent stops what a failed start has left: its account may not be bound, or not
 * be there. */
static bool is_of_agent(const struct tgtadm *t)
{
	return t->r->agent_user && !strcmp(t->r->agent_user, t->r->user);
}

/* Returns whether an auth group other than the list of accounts has the account. */
static bool is_bound(const struct tgtadm *t)
{
	const char *name;
	json_t *group;

	json_object_foreach(json_object_get(t->config, "auth-groups"), name,
			    group)
	{
		if (strcmp(name, TGTADM_ACCOUNTS) != 0 &&
		    has_user(group, t->r->user))
			return true;
	}
	return false;
}

int tgtadm_account_delete(struct tgtadm *t)
{
	json_t *groups = json_object_get(t->config, "auth-groups"), *group;
	const json_t *account = find_account(t->config, t->r->user);
	const char *name;

	if (is_of_agent(t) && (!account || is_bound(t))) {
		if (account)
			tgtadm_note(
				t,
				"account %.200s: stays, since another target "
				"has it; give each resource a user of its "
				"own",
				t->r->user);
		return 0;
	}
	if (!account)
		return tgtadm_refuse("%s", tgtadm_no_user);
	snprintf(t->made, sizeof(t->made), "%s",
		 get_text(account, "secret-file"));
	json_object_foreach(groups, name, group)
	{
		if (!has_user(group, t->r->user))
			continue;
		if (!is_own(name))
			return tgtadm_refuse("%s: the account is in auth group "
					     "%s, which tgtadm did not make; "
					     "change it by iserctl",
					     tgtadm_invalid, name);
		remove_user(group, t->r->user, true, true);
		if (check_mutual(group))
			return TGTADM_REFUSED;
	}
	settle_all(t);
	return 0;
}

/* ---- bind, unbind ---- */

/* Returns the auth group of discovery for changes: all portal groups without
 * another one get it. */
static json_t *discovery_group(struct tgtadm *t)
{
	const char *key, *auth;
	json_t *v;

	json_object_foreach(json_object_get(t->config, "portal-groups"), key, v)
	{
		auth = get_text(v, "discovery-auth");
		if (!*auth || !strcmp(auth, "any"))
			json_object_set_new(v, "discovery-auth",
					    json_string(TGTADM_DISCOVERY));
		else if (strcmp(auth, TGTADM_DISCOVERY) != 0)
			tgtadm_note(t,
				    "portal group %s: keeps auth group %s for "
				    "discovery",
				    key, auth);
	}
	return tgtadm_member(tgtadm_section(t, "auth-groups"), TGTADM_DISCOVERY,
			     json_object);
}

/* Returns the auth group of the request for changes. NULL after a message. */
static json_t *group_of(struct tgtadm *t, json_t **target)
{
	*target = NULL;
	if (t->r->tid < 0)
		return discovery_group(t);
	*target = tgtadm_target(t->config, t->r->tid, NULL);
	if (*target)
		return tgtadm_own_rules(t, *target);
	tgtadm_say("%s", tgtadm_no_target);
	return NULL;
}

static int bind_account(const struct tgtadm *t, json_t *group,
			const json_t *account)
{
	json_t *accounts, *copy;

	if (t->r->outgoing && json_object_get(group, "mutual"))
		return tgtadm_refuse("%s", tgtadm_has_outgoing);
	if (!t->r->outgoing &&
	    find_user(json_object_get(group, "accounts"), t->r->user) >= 0)
		return tgtadm_refuse("%s", tgtadm_user_exists);
	copy = json_deep_copy(account);
	if (t->r->outgoing) {
		json_object_set_new(group, "mutual", copy);
		return check_mutual(group);
	}
	accounts = tgtadm_member(group, "accounts", json_array);
	json_array_append_new(accounts, copy);
	return 0;
}

static int unbind_account(const struct tgtadm *t, json_t *group)
{
	const json_t *mutual = json_object_get(group, "mutual");
	bool is_here = t->r->outgoing
			       ? mutual && !strcmp(get_text(mutual, "user"),
						   t->r->user)
			       : find_user(json_object_get(group, "accounts"),
					   t->r->user) >= 0;

	if (!is_here)
		return is_of_agent(t) ? 0 : tgtadm_refuse("%s", tgtadm_no_user);
	remove_user(group, t->r->user, !t->r->outgoing, t->r->outgoing);
	return check_mutual(group);
}

int tgtadm_account_change(struct tgtadm *t)
{
	const json_t *account = find_account(t->config, t->r->user);
	json_t *target = tgtadm_target(t->config, t->r->tid, NULL), *group;
	bool offline = target && tgtadm_is_offline(t->config, target);
	int code;

	if (!account && (t->r->op == TGTADM_BIND || !is_of_agent(t)))
		return tgtadm_refuse("%s", tgtadm_no_user);
	group = group_of(t, &target);
	if (!group)
		return TGTADM_REFUSED;
	code = t->r->op == TGTADM_BIND ? bind_account(t, group, account)
				       : unbind_account(t, group);
	if (code)
		return code;
	if (target)
		tgtadm_settle_rules(t, target,
				    t->r->agent_user
					    ? tgtadm_lacks_account(t, group)
					    : offline);
	else
		settle_all(t);
	return 0;
}
