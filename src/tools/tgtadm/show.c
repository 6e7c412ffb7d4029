/* SPDX-License-Identifier: BSD-2-Clause */
/* show.c: what tgtadm --op show prints, in the same form. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/escape.h"
#include "tools/tgtadm/tgtadm.h"

#define IN1 "    "
#define IN2 IN1 IN1
#define IN3 IN2 IN1
#define IN4 IN3 IN1

static const char *yes_no(bool b)
{
	return b ? "Yes" : "No";
}

/* Prints a text that may have come from an initiator or a file. */
static void print_text(const char *before, const char *text, const char *after)
{
	char shown[TEXT_ESCAPED_SIZE(4096)];

	printf("%s%s%s", before, text_escape_str(shown, sizeof(shown), text),
	       after);
}

/* ---- the order ---- */

struct named {
	const char *name;
	const json_t *target;
};

static int compare_tids(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int i = tgtadm_tid_of(x->target), j = tgtadm_tid_of(y->target);

	return (i > j) - (i < j);
}

/* Returns the targets in the order of their numbers, which the caller frees; *n is
 * their number. NULL: no memory. */
static struct named *sort_targets(const json_t *config, size_t *n)
{
	json_t *targets = json_object_get(config, "targets"), *target;
	struct named *all;
	const char *key;

	*n = 0;
	all = calloc(json_object_size(targets) + 1, sizeof(*all));
	if (!all)
		return NULL;
	json_object_foreach(targets, key, target)
	{
		all[(*n)++] = (struct named){ key, target };
	}
	qsort(all, *n, sizeof(*all), compare_tids);
	return all;
}

/* ---- a logical unit ---- */

struct lun {
	const char *type, *bstype, *path, *flags;
	char id[64];
	const char *serial;
	uint64_t size;
	unsigned block_size;
	bool online, removable, locked, read_only, thin;
};

static void print_lun(unsigned number, const struct lun *l)
{
	printf(IN2 "LUN: %u\n" IN3 "Type: %s\n", number, l->type);
	print_text(IN3 "SCSI ID: ", l->id, "\n");
	print_text(IN3 "SCSI SN: ", l->serial, "\n");
	printf(IN3 "Size: %llu MB, Block size: %u\n" IN3 "Online: %s\n" IN3
		   "Removable media: %s\n" IN3 "Prevent removal: %s\n" IN3
		   "Readonly: %s\n" IN3 "SWP: No\n" IN3
		   "Thin-provisioning: %s\n" IN3 "Backing store type: %s\n",
	       (unsigned long long)((l->size + 500000) / 1000000),
	       l->block_size, yes_no(l->online), yes_no(l->removable),
	       yes_no(l->locked), yes_no(l->read_only), yes_no(l->thin),
	       l->bstype);
	print_text(IN3 "Backing store path: ", l->path, "\n");
	printf(IN3 "Backing store flags: %s\n", l->flags);
}

/* LUN 0 of tgt. iserd has no unit there, but an initiator gets the same answers from
 * it as far as REPORT LUNS and INQUIRY are concerned. */
static void print_controller(void)
{
	struct lun l = { .type = "controller",
			 .bstype = "null",
			 .path = "None",
			 .flags = "",
			 .id = "None",
			 .serial = "None",
			 .block_size = 1,
			 .online = true };

	print_lun(0, &l);
}

/* Splits the store of a backstore into its type and path, in the words of tgt. */
static void split_store(const char *store, struct lun *l)
{
	static const struct {
		const char *prefix, *bstype, *type;
	} kinds[] = {
		{ "cd:", "mmc", "cd/dvd" },  { "scsi:", "sg", "passthrough" },
		{ "null:", "null", "disk" }, { "ram:", "ram", "disk" },
		{ "rbd:", "rbd", "disk" },
	};

	l->bstype = "rdwr";
	l->type = "disk";
	l->path = store;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t n = strlen(kinds[i].prefix);

		if (strncmp(store, kinds[i].prefix, n) != 0)
			continue;
		l->bstype = kinds[i].bstype;
		l->type = kinds[i].type;
		/* what makes the same unit again is not only a path */
		l->path = !strcmp(l->bstype, "ram") || *l->bstype == 'n'
				  ? store
				  : store + n;
	}
	if (!*l->path)
		l->path = "None";
}

/* Returns the units of the answer to luns by their backstores, which the caller
 * releases. */
static json_t *index_units(const json_t *units)
{
	json_t *index = json_object(), *u;
	size_t i;

	json_array_foreach((json_t *)units, i, u)
	{
		json_object_set(index, get_text(u, "backstore"), u);
	}
	return index;
}

static void print_unit(const json_t *config, const json_t *units,
		       unsigned number, const json_t *lun)
{
	const char *name = tgtadm_backstore_of(lun), *vendor;
	const json_t *stores = json_object_get(config, "backstores");
	const json_t *store = json_object_get(stores, name);
	const json_t *u = json_object_get(units, name);
	struct lun l = { .flags = "" };

	split_store(get_text(store, "store"), &l);
	vendor = get_text(store, "vendor");
	l.serial = get_text(u, "serial");
	snprintf(l.id, sizeof(l.id), "%-8.8s%.40s",
		 *vendor ? vendor : "OPENISER", l.serial);
	l.size = (uint64_t)get_number(u, "size");
	l.block_size = (unsigned)get_number(u, "block_size");
	l.online =
		u && !json_object_get(u, "trouble") &&
		(*l.type != 'c' || json_is_string(json_object_get(u, "store")));
	l.removable = *l.type == 'c' || tgtadm_is_yes(store, "removable");
	l.locked = get_flag(u, "locked");
	l.read_only =
		get_flag(u, "read_only") || tgtadm_is_yes(lun, "read-only");
	l.thin = get_flag(u, "thin");
	if (!strcmp(get_text(store, "cache"), "write-through"))
		l.flags = "sync";
	print_lun(number, &l);
}

static int compare_keys(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_luns(const json_t *config, const json_t *units,
		       const json_t *target)
{
	json_t *luns = json_object_get(target, "luns"), *lun;
	unsigned *all = calloc(json_object_size(luns) + 1, sizeof(*all));
	const char *key;
	char text[16];
	size_t n = 0;

	json_object_foreach(luns, key, lun)
	{
		if (all)
			all[n++] = (unsigned)strtoul(key, NULL, 10);
	}
	if (all)
		qsort(all, n, sizeof(*all), compare_keys);
	if (!json_object_get(luns, "0"))
		print_controller();
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%u", all[i]);
		print_unit(config, units, all[i], json_object_get(luns, text));
	}
	free(all);
}

/* ---- a target ---- */

static void print_nexuses(const json_t *sessions, const char *target)
{
	char address[128];
	json_t *s;
	size_t i;

	json_array_foreach((json_t *)sessions, i, s)
	{
		if (strcasecmp(get_text(s, "target"), target) != 0)
			continue;
		tgtadm_address(s, address, sizeof(address));
		printf(IN2 "I_T nexus: %lld\n", get_number(s, "tsih"));
		print_text(IN3 "Initiator: ", get_text(s, "initiator"),
			   " alias: none\n");
		printf(IN3 "Connection: %lld\n" IN4 "IP Address: %s\n",
		       get_number(s, "cid"), address);
	}
}

static void print_list(const json_t *list)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v)
	{
		print_text(IN2, tgtadm_text_of(v), "\n");
	}
}

static void print_accounts(const json_t *rules)
{
	const json_t *mutual = json_object_get(rules, "mutual");
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(rules, "accounts"), i, v)
	{
		print_text(IN2, get_text(v, "user"), "\n");
	}
	if (mutual)
		print_text(IN2, get_text(mutual, "user"), " (outgoing)\n");
}

static void print_rules(const json_t *target, const json_t *rules)
{
	json_t *v;
	size_t i;
	bool all = tgtadm_is_all(rules);
	const json_t *names = json_object_get(rules, "initiators");
	const json_t *addresses = json_object_get(rules, "addresses");

	if (!strcmp(get_text(target, "auth-group"), "any") || all ||
	    (rules && !json_array_size(names) && !json_array_size(addresses) &&
	     strcmp(get_text(target, "auth-group"), "none") != 0))
		puts(IN2 "ALL");
	json_array_foreach((json_t *)addresses, i, v)
	{
		const char *text = tgtadm_text_of(v);

		if (!all || (strcmp(text, tgtadm_all_v4) != 0 &&
			     strcmp(text, tgtadm_all_v6) != 0))
			print_text(IN2, text, "\n");
	}
	print_list(names);
}

static void print_target(const json_t *config, const json_t *units,
			 const json_t *sessions, const char *name,
			 const json_t *target)
{
	const json_t *rules = tgtadm_rules(config, target);

	printf("Target %d: ", tgtadm_tid_of(target));
	print_text("", name, "\n");
	printf(IN1 "System information:\n" IN2 "Driver: iscsi\n" IN2
		   "State: %s\n" IN1 "I_T nexus information:\n",
	       tgtadm_is_offline(config, target) ? "offline" : "ready");
	print_nexuses(sessions, name);
	puts(IN1 "LUN information:");
	print_luns(config, units, target);
	puts(IN1 "Account information:");
	print_accounts(rules);
	puts(IN1 "ACL information:");
	print_rules(target, rules);
}

static int show_targets(struct tgtadm *t)
{
	json_t *luns = tgtadm_call(t, "luns", NULL);
	json_t *sessions = luns ? tgtadm_sessions(t, NULL) : NULL;
	json_t *units = index_units(luns);
	struct named *all = NULL;
	size_t n = 0;
	int code = 0;

	if (!sessions)
		code = tgtadm_failed(t);
	else
		all = sort_targets(t->config, &n);
	for (size_t i = 0; all && i < n; i++)
		print_target(t->config, units, sessions, all[i].name,
			     all[i].target);
	free(all);
	json_decref(luns);
	json_decref(units);
	json_decref(sessions);
	return code;
}

/* ---- the parameters of a target ---- */

/* A value that iserd offers in a login, as text. */
static void print_offer(const json_t *offers, const char *name, const char *key)
{
	const json_t *v = json_object_get(offers, key);

	if (json_is_integer(v))
		printf("%s=%lld\n", name, (long long)json_integer_value(v));
	else if (json_is_string(v))
		printf("%s=%s\n", name, json_string_value(v));
}

static void print_offers(const json_t *offers, const char *digest)
{
	static const char *const keys[] = {
		"InitialR2T",	       "MaxOutstandingR2T",  "ImmediateData",
		"FirstBurstLength",    "MaxBurstLength",     "DataPDUInOrder",
		"DataSequenceInOrder", "ErrorRecoveryLevel",
	};
	static const char *const more[] = {
		"DefaultTime2Wait",
		"DefaultTime2Retain",
		"MaxConnections",
		"RDMAExtensions",
		"TargetRecvDataSegmentLength",
		"InitiatorRecvDataSegmentLength",
		"MaxOutstandingUnexpectedPDUs",
	};

	print_offer(offers, "MaxRecvDataSegmentLength",
		    "MaxRecvDataSegmentLength.target");
	printf("HeaderDigest=%s\nDataDigest=%s\n", digest, digest);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		print_offer(offers, keys[i], keys[i]);
	/* obsolete, with these answers (RFC 7143 §13.25) */
	puts("IFMarker=No\nOFMarker=No\nOFMarkInt=Reject\nIFMarkInt=Reject");
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		print_offer(offers, more[i], more[i]);
}

static int show_params(struct tgtadm *t)
{
	const json_t *target = tgtadm_target(t->config, t->r->tid, NULL);
	json_t *status;

	if (!target)
		return tgtadm_refuse("%s", tgtadm_no_target);
	status = tgtadm_call(t, "status", NULL);
	if (!status)
		return tgtadm_failed(t);
	print_offers(json_object_get(status, "offers"),
		     strcmp(get_text(target, "digests"), "prefer") ? "None"
								   : "CRC32C");
	json_decref(status);
	return 0;
}

/* ---- other modes ---- */

static int show_target(struct tgtadm *t)
{
	return t->r->tid < 0 ? show_targets(t) : show_params(t);
}

static int show_accounts(struct tgtadm *t)
{
	json_t *groups = json_object_get(t->config, "auth-groups"), *group, *v;
	json_t *names = json_object();
	const char *key;
	size_t i;

	group = json_object_get(groups, TGTADM_ACCOUNTS);
	json_array_foreach(json_object_get(group, "accounts"), i, v)
	{
		json_object_set_new(names, get_text(v, "user"), json_true());
	}
	json_object_foreach(groups, key, group)
	{
		json_array_foreach(json_object_get(group, "accounts"), i, v)
		{
			json_object_set_new(names, get_text(v, "user"),
					    json_true());
		}
		v = json_object_get(group, "mutual");
		if (v)
			json_object_set_new(names, get_text(v, "user"),
					    json_true());
	}
	if (json_object_size(names))
		puts("Account list:");
	json_object_foreach(names, key, v)
	{
		print_text(IN1, key, "\n");
	}
	json_decref(names);
	return 0;
}

static int show_connections(struct tgtadm *t)
{
	char address[128];
	json_t *all, *s;
	const char *name;
	size_t i;

	if (!tgtadm_target(t->config, t->r->tid, &name))
		return tgtadm_refuse("%s", tgtadm_no_target);
	all = tgtadm_sessions(t, name);
	if (!all)
		return tgtadm_failed(t);
	json_array_foreach(all, i, s)
	{
		tgtadm_address(s, address, sizeof(address));
		printf("Session: %lld\n" IN1 "Connection: %lld\n",
		       get_number(s, "tsih"),
		       (long long)json_integer_value(
			       json_object_get(s, "cid")));
		print_text(IN2 "Initiator: ", get_text(s, "initiator"), "\n");
		printf(IN2 "IP Address: %s\n", address);
	}
	json_decref(all);
	return 0;
}

static int show_portals(struct tgtadm *t)
{
	json_t *groups = json_object_get(t->config, "portal-groups"), *group;
	char name[TGTADM_PORTAL_SIZE];
	const char *key, *tag;
	json_t *list, *v;
	size_t i;

	json_object_foreach(groups, key, group)
	{
		tag = get_text(group, "tag");
		list = json_object_get(group, "listen");
		json_array_foreach(list, i, v)
		{
			tgtadm_portal_name(tgtadm_text_of(v), name);
			printf("Portal: %s,%s\n", name, *tag ? tag : "1");
		}
		if (!json_array_size(list))
			printf("Portal: 127.0.0.1:3260,%s\n", *tag ? tag : "1");
	}
	return 0;
}

static int show_drivers(struct tgtadm *t)
{
	struct named *all;
	size_t n;

	all = sort_targets(t->config, &n);
	puts("LLDs:\n" IN1 "iscsi: ready");
	for (size_t i = 0; all && i < n; i++) {
		printf(IN2 "Target %d: ", tgtadm_tid_of(all[i].target));
		print_text("", all[i].name, "\n");
	}
	puts(IN1 "iser: ready");
	free(all);
	return 0;
}

static int show_system(struct tgtadm *t)
{
	json_t *log = tgtadm_call(t, "log", NULL);
	bool debug = !strcmp(get_text(log, "level"), "debug");

	if (!log)
		return tgtadm_failed(t);
	json_decref(log);
	printf("System:\n" IN1 "State: ready\n" IN1 "debug: %s\n",
	       debug ? "on" : "off");
	puts("LLDs:\n" IN1 "iscsi: ready\n" IN1 "iser: ready");
	puts("Backing stores:\n" IN1 "sg\n" IN1 "null\n" IN1
	     "mmc (bsoflags sync:direct)\n" IN1
	     "rdwr (bsoflags sync:direct)\n" IN1 "aio");
	puts("Device types:\n" IN1 "disk\n" IN1 "cd/dvd\n" IN1 "passthrough");
	puts("iSNS:\n" IN1 "iSNS=Off\n" IN1 "iSNSServerIP=\n" IN1
	     "iSNSServerPort=3205\n" IN1 "iSNSAccessControl=Off");
	return 0;
}

int tgtadm_show(struct tgtadm *t)
{
	static int (*const all[TGTADM_MODES])(struct tgtadm * t) = {
		[TGTADM_TARGET] = show_target,
		[TGTADM_ACCOUNT] = show_accounts,
		[TGTADM_CONN] = show_connections,
		[TGTADM_PORTAL] = show_portals,
		[TGTADM_LLD] = show_drivers,
	};

	if (t->r->mode == TGTADM_SYS)
		return show_system(t);
	return tgtadm_change(t, all[t->r->mode]);
}
