/* SPDX-License-Identifier: BSD-2-Clause */
/* nouns.c: the nouns and fields of a configuration file, a row each. */
#include "daemon/config/nouns.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/groups.h"
#include "daemon/config/setters.h"

static const char *const discoveries[] = { "permitted", "all", "none", NULL };
static const char *const caches[] = { "write-back", "write-through", NULL };

#define FIELDS(rows)  .fields = (rows), .nfields = ARRAY_LEN(rows)
#define OPTIONS(rows) .members = (rows), .nmembers = ARRAY_LEN(rows)
/* Refused by the compiler where the two members are not of one type. */
#define MEMBER(option_, s, m)                                               \
 {                                                                          \
  OPT_AT(struct options, option_, __typeof__(((s *)0)->m)), offsetof(s, m), \
	  sizeof(((s *)0)->m)                                               \
 }
#define OPTION(name) \
 {                   \
  .option = (name)   \
 }
#define CLUSTER(name)                        \
 {                                           \
  .option = ("cluster-" name), .key = (name) \
 }
#define NOUNS(shape_, key, help_, s, member, id)                           \
 {                                                                         \
  .row = { .opt = { .name = (key), .help = (help_) } }, .shape = (shape_), \
  .at = offsetof(s, member), .noun = (id)                                  \
 }

/* clang-format off */

/* ---- the file ---- */

static const struct cfg_field file_fields[] = {
	{ .row = { { .name = "version", .arg = "N",
		     OPT_NUMBER(struct cfg_model, version, 1, CFG_VERSION),
		     .help = "the version of the form of this file" },
		   .type = CFG_NUMBER, .scope = CFG_DAEMON },
	  .must = true },
	NOUNS(CFG_INSIDE, "daemon", "the process", struct cfg_model, options,
	      CFG_NOUN_DAEMON),
	NOUNS(CFG_NAMED, "backstores", "the storage of units, by name",
	      struct cfg_model, backstores, CFG_NOUN_BACKSTORE),
	NOUNS(CFG_NAMED, "auth-groups", "which initiators may log in, by name; "
	      "any (every initiator) and none are built in",
	      struct cfg_model, auths, CFG_NOUN_AUTH),
	NOUNS(CFG_NAMED, "portal-groups", "where iserd listens, by name",
	      struct cfg_model, portals, CFG_NOUN_PORTAL),
	NOUNS(CFG_NAMED, "initiator-groups", "lists of initiators for maps, by "
	      "name", struct cfg_model, initiators, CFG_NOUN_INITIATORS),
	NOUNS(CFG_NAMED, "targets", "the targets, by iSCSI name",
	      struct cfg_model, targets, CFG_NOUN_TARGET),
	NOUNS(CFG_NAMED, "alua-groups", "target port groups, by their ids from "
	      "1 to 65535", struct cfg_model, aluas, CFG_NOUN_ALUA),
	NOUNS(CFG_INSIDE, "cluster", "this gateway, among those that share "
	      "backstores", struct cfg_model, cluster, CFG_NOUN_CLUSTER),
};

/* ---- the process ---- */

static const struct cfg_field daemon_fields[] = {
	OPTION("io"), OPTION("workers"), OPTION("pin"), OPTION("spin"),
	OPTION("control"), OPTION("metrics"), OPTION("slow-command"),
	OPTION("state"), OPTION("allow-lost-reservations"),
	OPTION("user"), OPTION("log"),
	OPTION("log-format"), OPTION("max-sessions"),
	OPTION("max-startups"), OPTION("max-discovery"),
	OPTION("discovery-time"), OPTION("error-recovery-level"),
	OPTION("max-outstanding-r2t"), OPTION("data-pdu-in-order"),
	OPTION("data-sequence-in-order"), OPTION("mpa-crc"),
	OPTION("login-rate"), OPTION("penalty"),
	OPTION("address-block"), OPTION("port-id"),
};

static const struct cfg_member daemon_options[] = {
	{ 0, offsetof(struct cfg_model, options), sizeof(struct options) },
};

/* ---- backstores ---- */

static const struct cfg_field backstore_fields[] = {
	{ .row = { { .name = "store", .arg = "STORE",
		     OPT_TEXT(struct cfg_backstore, store),
		     .help = "the file, block device, drive, SCSI device or "
			     "memory, as a LUN of the command line (iserd(8)), "
			     "without suffixes" },
		   .type = CFG_PATH, .scope = CFG_LUN },
	  .must = true },
	{ .row = { { .name = "key", .arg = "FILE",
		     OPT_TEXT(struct cfg_backstore, key),
		     .help = "the file with the key of an encrypted backstore "
			     "(AES-256-XTS); it is made if the medium is new" },
		   .type = CFG_PATH, .scope = CFG_LUN, .is_secret = true } },
	{ .row = { { .name = "new-key", .arg = "FILE",
		     OPT_TEXT(struct cfg_backstore, new_key),
		     .help = "encrypt with a new key, which this file gets; "
			     "data of the medium become unreadable" },
		   .type = CFG_PATH, .scope = CFG_LUN, .is_secret = true } },
	OPTION("protection"),
	{ .row = { { .name = "pi", .arg = "FILE",
		     OPT_TEXT(struct cfg_backstore, pi),
		     .help = "the file with the protection information of a "
			     "file or block device" },
		   .type = CFG_PATH, .scope = CFG_LUN,
		   .otherwise = "that of the file, with .pi" } },
	{ .option = "read-only", .at_once = true },
	OPTION("block-size"), OPTION("buffered"),
	OPTION("sendfile"), OPTION("removable"), OPTION("shared"), OPTION("cluster"),
	{ .row = { { .name = "uuid", .arg = "UUID", OPT_CALL(cfg_set_uuid),
		     .help = "the identity of the store: the saved state of the "
			     "unit belongs to it, and the names of the unit "
			     "follow from it" },
		   .type = CFG_STRING, .scope = CFG_LUN,
		   .otherwise = "one that iserd finds (guide, Identity)",
		   .get = cfg_get_uuid } },
	{ .row = { { .name = "serial", .arg = "TEXT",
		     OPT_TEXT(struct cfg_backstore, serial),
		     .help = "the unit serial number (VPD page 80h)" },
		   .type = CFG_STRING, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "the digits of naa, else of eui, else of uuid" } },
	{ .row = { { .name = "naa", .arg = "DIGITS", OPT_CALL(cfg_set_naa),
		     .help = "the NAA identifier (VPD page 83h): 16 "
			     "hexadecimal digits, or 32 of which the first is "
			     "6" },
		   .type = CFG_STRING, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "one made of serial or eui, as LIO makes it, "
				"else of uuid",
		   .get = cfg_get_naa } },
	{ .row = { { .name = "eui", .arg = "DIGITS", OPT_CALL(cfg_set_eui),
		     .help = "an EUI-64 (VPD page 83h): 16, 24 or 32 "
			     "hexadecimal digits" },
		   .type = CFG_STRING, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "none", .get = cfg_get_eui } },
	{ .row = { { .name = "vendor", .arg = "TEXT",
		     OPT_TEXT(struct cfg_backstore, vendor),
		     .help = "the T10 vendor identification of INQUIRY" },
		   .type = CFG_STRING, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "OPENISER" } },
	{ .row = { { .name = "product", .arg = "TEXT",
		     OPT_TEXT(struct cfg_backstore, product),
		     .help = "the product identification of INQUIRY" },
		   .type = CFG_STRING, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "one of the type of the unit" } },
	{ .row = { { .name = "revision", .arg = "TEXT",
		     OPT_TEXT(struct cfg_backstore, revision),
		     .help = "the product revision level of INQUIRY" },
		   .type = CFG_STRING, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "that of openiser" } },
	{ .row = { { .name = "rotational",
		     OPT_FLAG(struct cfg_backstore, rotational),
		     .help = "report a medium that rotates (VPD page B1h)" },
		   .type = CFG_BOOL, .scope = CFG_LUN,
		   .apply = CFG_AT_ONCE } },
	{ .row = { { .name = "cache", .arg = "write-back|write-through",
		     .initial = "write-back",
		     OPT_WORD(struct cfg_backstore, cache, caches),
		     .help = "write-through: a write ends when it is durable; "
			     "write-back: SYNCHRONIZE CACHE makes writes "
			     "durable, unless the initiator sets WCE to 0" },
		   .type = CFG_ENUM, .scope = CFG_LUN,
		   .apply = CFG_AT_ONCE } },
	{ .row = { { .name = "max-iops", .arg = "N[:BURST]",
		     OPT_CALL(cfg_set_max_iops),
		     .help = "commands per second that read or write blocks; "
			     "BURST at once after a pause, N if left out" },
		   .type = CFG_NUMBERS, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "no limit", .parts = &cfg_max_iops,
		   .get = cfg_get_max_iops } },
	{ .row = { { .name = "max-bandwidth", .arg = "SIZE[:BURST]",
		     OPT_CALL(cfg_set_max_bandwidth),
		     .help = "bytes per second that these commands read and "
			     "write; BURST at once after a pause, SIZE if left "
			     "out" },
		   .type = CFG_NUMBERS, .scope = CFG_LUN, .apply = CFG_AT_ONCE,
		   .otherwise = "no limit", .get = cfg_get_max_bandwidth } },
	OPTION("sanitize-rate"), OPTION("scsi-timeout"),
};

static const struct cfg_member backstore_options[] = {
	MEMBER(lun, struct cfg_backstore, lun),
};

/* ---- who may log in ---- */

static const struct cfg_field account_fields[] = {
	{ .row = { { .name = "user", .arg = "NAME",
		     OPT_TEXT(struct cfg_account, user),
		     .help = "the name of CHAP" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .must = true },
	{ .row = { { .name = "secret-file", .arg = "FILE",
		     OPT_TEXT(struct cfg_account, secret_file),
		     .help = "a file with the secret, 12 to 128 bytes, that "
			     "only iserd can read" },
		   .type = CFG_PATH, .scope = CFG_TARGET, .apply = CFG_AT_ONCE,
		   .is_secret = true },
	  .must = true },
	{ .row = { { .name = "initiators", .arg = "NAME",
		     OPT_CALL(cfg_check_initiator),
		     .help = "iSCSI names that may use the account, with the "
			     "wildcards * and ?; not of mutual" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE, .otherwise = "every name" },
	  .shape = CFG_MANY, .guards = true,
	  .at = offsetof(struct cfg_account, initiators) },
};

static const struct cfg_field auth_fields[] = {
	{ .row = { { .name = "accounts",
		     .help = "an initiator must log in by CHAP with one of "
			     "these; none: without CHAP" } },
	  .shape = CFG_LISTED, .guards = true,
	  .at = offsetof(struct cfg_auth, accounts), .noun = CFG_NOUN_ACCOUNT },
	NOUNS(CFG_INSIDE, "mutual", "authenticate the target with this account "
	      "to initiators that ask for it; no initiator may have its secret",
	      struct cfg_auth, mutual, CFG_NOUN_ACCOUNT),
	{ .row = { { .name = "initiators", .arg = "NAME",
		     OPT_CALL(cfg_check_initiator),
		     .help = "iSCSI names that may log in, with the wildcards "
			     "* and ?" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE, .otherwise = "every name" },
	  .shape = CFG_MANY, .guards = true,
	  .at = offsetof(struct cfg_auth, initiators) },
	{ .row = { { .name = "addresses", .arg = "ADDR[/BITS]",
		     OPT_CALL(cfg_check_prefix),
		     .help = "addresses from which an initiator may log in" },
		   .type = CFG_ADDRESS, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE, .otherwise = "every address" },
	  .shape = CFG_MANY, .guards = true,
	  .at = offsetof(struct cfg_auth, addresses) },
	{ .row = { { .name = "algorithms", .arg = "ALGORITHM",
		     OPT_CALL(cfg_check_algorithm),
		     .help = "the algorithms of CHAP that both sides may use: "
			     "md5, sha1, sha256, sha3-256; the initiator's order "
			     "counts" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE, .otherwise = "all of them" },
	  .shape = CFG_MANY, .guards = true,
	  .at = offsetof(struct cfg_auth, algorithms) },
};

static const struct cfg_field initiators_fields[] = {
	{ .row = { { .name = "names", .arg = "NAME",
		     OPT_CALL(cfg_check_initiator),
		     .help = "iSCSI names, with the wildcards * and ?" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .shape = CFG_MANY, .must = true,
	  .at = offsetof(struct cfg_initiators, names) },
};

/* ---- where iserd listens ---- */

static const struct cfg_field portal_fields[] = {
	{ .row = { { .name = "tag", .arg = "N", .initial = "1",
		     OPT_NUMBER(struct cfg_portal, tag, 1, 65535),
		     .help = "the target portal group tag, different in each "
			     "portal group" },
		   .type = CFG_NUMBER, .scope = CFG_PORTAL } },
	{ .option = "listen", .shape = CFG_MANY,
	  .at = offsetof(struct cfg_portal, listen) },
	{ .option = "announce", .shape = CFG_MANY,
	  .at = offsetof(struct cfg_portal, announce) },
	OPTION("transport"), OPTION("verbs"),
	{ .option = "verbs-listen", .shape = CFG_MANY,
	  .at = offsetof(struct cfg_portal, verbs_listen) },
	{ .row = { { .name = "discovery", .arg = "permitted|all|none",
		     .initial = "permitted",
		     OPT_WORD(struct cfg_portal, discovery, discoveries),
		     .help = "the targets that SendTargets reports: those that "
			     "the initiator may log in to, all of the portal "
			     "group, or none; unless all are reported, a "
			     "target that refuses an initiator answers as one "
			     "that does not exist" },
		   .type = CFG_ENUM, .scope = CFG_PORTAL,
		   .apply = CFG_AT_ONCE } },
	{ .row = { { .name = "discovery-auth", .arg = "GROUP",
		     .initial = "any",
		     OPT_TEXT(struct cfg_portal, discovery_auth),
		     .help = "the auth group of discovery sessions" },
		   .type = CFG_STRING, .scope = CFG_PORTAL,
		   .apply = CFG_AT_ONCE } },
};

static const struct cfg_member portal_options[] = {
	MEMBER(transports, struct cfg_portal, transports),
	MEMBER(verbs, struct cfg_portal, verbs),
};

/* ---- targets ---- */

static const struct cfg_field lun_fields[] = {
	{ .row = { { .name = "backstore", .arg = "NAME",
		     OPT_TEXT(struct cfg_lun, backstore),
		     .help = "the backstore of this LUN" },
		   .type = CFG_STRING, .scope = CFG_LUN,
		   .apply = CFG_AT_ONCE },
	  .must = true },
	{ .row = { { .name = "read-only",
		     OPT_FLAG(struct cfg_lun, read_only),
		     .help = "refuse writes by this LUN, and what changes the "
			     "unit for other initiators" },
		   .type = CFG_BOOL, .scope = CFG_LUN,
		   .apply = CFG_AT_ONCE } },
};

static const struct cfg_field map_fields[] = {
	{ .row = { { .name = "initiators", .arg = "NAME",
		     OPT_CALL(cfg_check_initiator_or_group),
		     .help = "the initiators of this map: iSCSI names with the "
			     "wildcards * and ?, or initiator groups" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .shape = CFG_MANY, .must = true,
	  .at = offsetof(struct cfg_map, initiators) },
	{ .row = { { .name = "account", .arg = "NAME",
		     OPT_TEXT(struct cfg_map, account),
		     .help = "the account of CHAP with which they must log in; "
			     "with another one the map does not apply" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE, .otherwise = "any, or without CHAP" } },
	NOUNS(CFG_NAMED, "luns", "what these initiators see, by LUN from 0 to "
	      "16383", struct cfg_map, luns, CFG_NOUN_LUN),
};

static const struct cfg_field redirect_fields[] = {
	{ .row = { { .name = "to", .arg = "HOST[:PORT]",
		     OPT_CALL(cfg_check_address),
		     .help = "the addresses; an initiator always gets the same "
			     "one of them" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .shape = CFG_MANY, .must = true,
	  .at = offsetof(struct cfg_redirect, addresses) },
	{ .row = { { .name = "initiators", .arg = "NAME",
		     OPT_CALL(cfg_check_initiator_or_group),
		     .help = "whom it concerns: iSCSI names with the wildcards * "
			     "and ?, or initiator groups" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE, .otherwise = "every initiator" },
	  .shape = CFG_MANY, .guards = true,
	  .at = offsetof(struct cfg_redirect, initiators) },
	{ .row = { { .name = "permanent",
		     OPT_FLAG(struct cfg_redirect, permanent),
		     .help = "say that the target has moved for good: "
			     "initiators may remember the address" },
		   .type = CFG_BOOL, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE } },
};

static const struct cfg_field target_fields[] = {
	{ .row = { { .name = "alias", .arg = "TEXT",
		     OPT_TEXT(struct cfg_target, alias),
		     .help = "the TargetAlias of a login" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE } },
	{ .row = { { .name = "auth-group", .arg = "GROUP",
		     OPT_TEXT(struct cfg_target, auth_group),
		     .help = "which initiators may log in: an auth group, any "
			     "or none" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .must = true },
	{ .row = { { .name = "portal-groups", .arg = "GROUP",
		     OPT_CALL(cfg_check_name),
		     .help = "where the target can be reached" },
		   .type = CFG_STRING, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .shape = CFG_MANY, .must = true,
	  .at = offsetof(struct cfg_target, portal_groups) },
	NOUNS(CFG_NAMED, "luns", "what every initiator sees that is in no map, "
	      "by LUN from 0 to 16383", struct cfg_target, luns, CFG_NOUN_LUN),
	NOUNS(CFG_LISTED, "maps", "what certain initiators see instead of "
	      "luns: the first map with the initiator counts",
	      struct cfg_target, maps, CFG_NOUN_MAP),
	NOUNS(CFG_LISTED, "redirects", "where certain initiators have to log in "
	      "instead: the first one with the initiator counts",
	      struct cfg_target, redirects, CFG_NOUN_REDIRECT),
	OPTION("digests"), OPTION("data-timeout"), OPTION("max-connections"),
	OPTION("compat"),
	{ .row = { { .name = "tgt-id", .arg = "N",
		     OPT_NUMBER(struct cfg_target, tgt_id, 1, CFG_TGT_ID_MAX),
		     .help = "the number of the target for iser-tgtadm(8), "
			     "different for each target" },
		   .type = CFG_NUMBER, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE,
		   .otherwise = "one that iser-tgtadm chooses" } },
};

static const struct cfg_member target_options[] = {
	MEMBER(digests, struct cfg_target, digests),
	MEMBER(session.data_timeout, struct cfg_target, data_timeout),
	MEMBER(session.max_connections, struct cfg_target, max_connections),
	MEMBER(strict, struct cfg_target, strict),
};

/* ---- target port groups ---- */

static const struct cfg_field alua_fields[] = {
	{ .row = { { .name = "state", .arg = "STATE",
		     OPT_WORD(struct cfg_alua, state, group_states),
		     .initial = "optimized",
		     .help = "the state at the start, and after a "
			     "change of this field" },
		   .type = CFG_ENUM, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE } },
	{ .row = { { .name = "ports", .arg = "PORT", OPT_CALL(cfg_check_port),
		     .help = "relative target port identifiers, of this iserd "
			     "and of others on the same LUNs" },
		   .type = CFG_NUMBER, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE },
	  .shape = CFG_MANY, .must = true,
	  .at = offsetof(struct cfg_alua, ports) },
	{ .row = { { .name = "preferred",
		     OPT_FLAG(struct cfg_alua, preferred),
		     .help = "ask initiators to prefer the group (PREF)" },
		   .type = CFG_BOOL, .scope = CFG_TARGET,
		   .apply = CFG_AT_ONCE } },
};

/* ---- the cluster ---- */

static const struct cfg_field cluster_fields[] = {
	{ .option = "cluster-number", .key = "number", .must = true },
	CLUSTER("gateway"), CLUSTER("directory"),
	CLUSTER("failover"), CLUSTER("beacon"), CLUSTER("silence"),
	CLUSTER("patience"),
};

static const struct cfg_member cluster_options[] = {
	MEMBER(cluster, struct cfg_cluster, options),
};

/* ---- all of them ---- */

static const struct cfg_noun nouns[CFG_NOUNS] = {
	[CFG_NOUN_FILE] = { .name = "file", .place = "",
		.help = "the whole file", .size = sizeof(struct cfg_model),
		FIELDS(file_fields) },
	[CFG_NOUN_DAEMON] = { .name = "daemon", .place = "daemon",
		.help = "the process", OPTIONS(daemon_options),
		FIELDS(daemon_fields) },
	[CFG_NOUN_BACKSTORE] = { .name = "backstore",
		.place = "backstores.NAME",
		.help = "the storage of a unit, and the unit",
		.size = sizeof(struct cfg_backstore), OPTIONS(backstore_options),
		FIELDS(backstore_fields) },
	[CFG_NOUN_AUTH] = { .name = "auth group", .place = "auth-groups.NAME",
		.help = "which initiators may log in",
		.size = sizeof(struct cfg_auth), FIELDS(auth_fields) },
	[CFG_NOUN_ACCOUNT] = { .name = "account",
		.place = "auth-groups.NAME.accounts[]",
		.help = "a name and a secret of CHAP, also of mutual",
		.size = sizeof(struct cfg_account), FIELDS(account_fields) },
	[CFG_NOUN_PORTAL] = { .name = "portal group",
		.place = "portal-groups.NAME", .help = "where iserd listens",
		.size = sizeof(struct cfg_portal), OPTIONS(portal_options),
		FIELDS(portal_fields) },
	[CFG_NOUN_INITIATORS] = { .name = "initiator group",
		.place = "initiator-groups.NAME",
		.help = "a list of initiators for maps",
		.size = sizeof(struct cfg_initiators), .brief = "names",
		FIELDS(initiators_fields) },
	[CFG_NOUN_TARGET] = { .name = "target", .place = "targets.NAME",
		.help = "a target", .size = sizeof(struct cfg_target),
		OPTIONS(target_options),
		FIELDS(target_fields) },
	[CFG_NOUN_LUN] = { .name = "LUN", .place = "targets.NAME.luns.N",
		.help = "a LUN of a target or map; the name of a backstore "
			"alone is enough",
		.size = sizeof(struct cfg_lun), .brief = "backstore",
		FIELDS(lun_fields) },
	[CFG_NOUN_MAP] = { .name = "map", .place = "targets.NAME.maps[]",
		.help = "what certain initiators see",
		.size = sizeof(struct cfg_map), FIELDS(map_fields) },
	[CFG_NOUN_REDIRECT] = { .name = "redirection",
		.place = "targets.NAME.redirects[]",
		.help = "sends new logins to another address (RFC 7143 "
			"§11.13.5)",
		.size = sizeof(struct cfg_redirect), FIELDS(redirect_fields) },
	[CFG_NOUN_ALUA] = { .name = "ALUA group", .place = "alua-groups.ID",
		.help = "a target port group",
		.size = sizeof(struct cfg_alua), FIELDS(alua_fields) },
	[CFG_NOUN_CLUSTER] = { .name = "cluster", .place = "cluster",
		.help = "this gateway, among those that share backstores",
		.size = sizeof(struct cfg_cluster), OPTIONS(cluster_options),
		FIELDS(cluster_fields) },
};
/* clang-format on */

const struct cfg_noun *cfg_noun_of(enum cfg_noun_id id)
{
	return &nouns[id];
}

void cfg_noun_load(const struct cfg_noun *row, struct options *o,
		   const void *noun)
{
	for (unsigned i = 0; i < row->nmembers; i++)
		memcpy((char *)o + row->members[i].option,
		       (const char *)noun + row->members[i].noun,
		       row->members[i].size);
}

void cfg_noun_store(const struct cfg_noun *row, void *noun,
		    const struct options *o)
{
	for (unsigned i = 0; i < row->nmembers; i++)
		memcpy((char *)noun + row->members[i].noun,
		       (const char *)o + row->members[i].option,
		       row->members[i].size);
}

const struct cfg_row *cfg_field_row(const struct cfg_field *f)
{
	const struct cfg_row *rows;
	size_t n;

	if (!f->option)
		return &f->row;
	rows = cfg_rows(&n);
	while (strcmp(rows->opt.name, f->option) != 0)
		rows++; /* each option has a row: nouns_test.c */
	return rows;
}

const char *cfg_field_name(const struct cfg_field *f)
{
	return f->key ? f->key : cfg_field_row(f)->opt.name;
}

const struct cfg_field *cfg_noun_field(const struct cfg_noun *noun,
				       const char *name, size_t len)
{
	for (unsigned i = 0; i < noun->nfields; i++) {
		const char *have = cfg_field_name(&noun->fields[i]);

		if (strlen(have) == len && !memcmp(have, name, len))
			return &noun->fields[i];
	}
	return NULL;
}

static void parts_text(const struct cfg_parts *parts, const char *from,
		       char *out, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0; i < CFG_PARTS && parts->part[i].name && len < size;
	     i++)
		len += (size_t)snprintf(
			out + len, size - len, "%s%u", i ? ":" : "",
			*(const unsigned *)(from + parts->part[i].at));
}

/* Which default is a number that stands for "not given". */
static bool is_unset(const struct cfg_row *row, uint64_t v)
{
	return !row->opt.initial && v == 0;
}

void cfg_value_text(const struct cfg_row *row, const void *from, char *out,
		    size_t size)
{
	const char *member = (const char *)from + row->opt.at;
	enum opt_kind kind = row->kept ? row->kept : row->opt.kind;

	out[0] = '\0';
	if (row->get) {
		row->get(from, out, size);
	} else if (row->parts) {
		parts_text(row->parts, from, out, size);
	} else if (kind == OPT_KIND_FLAG) {
		snprintf(out, size, "%s", *(const bool *)member ? "yes" : "no");
	} else if (kind == OPT_KIND_TEXT) {
		const char *text = *(const char *const *)member;

		snprintf(out, size, "%s", text ? text : "");
	} else if (kind == OPT_KIND_NUMBER) {
		unsigned v = *(const unsigned *)member;

		if (!is_unset(row, v))
			snprintf(out, size, "%u", v);
	} else if (kind == OPT_KIND_SIZE) {
		uint64_t v = *(const uint64_t *)member;

		if (!is_unset(row, v))
			cfg_size_text(v, out, size);
	} else if (kind == OPT_KIND_WORD) {
		snprintf(out, size, "%s",
			 row->opt.words[*(const unsigned *)member]);
	}
}

void cfg_default_text(const struct cfg_field *f, const struct options *defaults,
		      char *out, size_t size)
{
	const struct opt_row *o = &f->row.opt;

	if (f->option)
		cfg_value_text(cfg_field_row(f), defaults, out, size);
	else
		snprintf(out, size, "%s",
			 o->initial		    ? o->initial
			 : o->kind == OPT_KIND_FLAG ? "no"
						    : "");
}

const char *cfg_shape_name(enum cfg_shape shape)
{
	static const char *const names[] = {
		[CFG_ONE] = "value",
		[CFG_MANY] = "list",
		[CFG_INSIDE] = "mapping",
		[CFG_NAMED] = "mapping by name",
		[CFG_LISTED] = "list of mappings",
	};

	return names[shape];
}
