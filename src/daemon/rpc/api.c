/* SPDX-License-Identifier: BSD-2-Clause */
/* api.c: the methods of the management socket, a row each. */
#include "daemon/rpc/api.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/config/groups.h"

const char *const rpc_no_yes[] = { "no", "yes", NULL };
const char *const rpc_on_off[] = { "on", "off", NULL };
const char *const rpc_port_states[] = { "online", "offline", NULL };
const char *const rpc_levels[] = { "error", "warning", "notice",
				   "info",  "debug",   NULL };

/* clang-format off */
#define LUN                                                                  \
 { .opt = { .name = "lun", .arg = "BACKSTORE|TARGET/LUN",                    \
	    OPT_TEXT(struct rpc_args, lun),                                  \
	    .help = "the unit, by its backstore or a LUN of a target" },     \
   .bare = true }
#define FORCE(what)                                                          \
 { .opt = { .name = "force", .arg = "yes|no", .initial = "no",               \
	    OPT_WORD(struct rpc_args, force, rpc_no_yes), .help = what },    \
   .optional = true }

static const struct rpc_method methods[] = {
	{ "status", "listeners, sessions and their counters" },
	{ "stats", "counters and latencies of LUNs, targets and sessions" },
	{ "tree", "targets with their LUNs and sessions, portal groups and "
	  "backstores" },
	{ "luns", "the units that are served" },
	{ "targets", "the targets, and the addresses that discovery shows of them" },
	{ "log", "shows or sets the log level", {
		{ .opt = { .name = "level", .arg = "LEVEL",
			   OPT_WORD(struct rpc_args, level, rpc_levels),
			   .help = "the new level" },
		  .optional = true },
		{ .opt = { .name = "peer", .arg = "ADDR",
			   OPT_TEXT(struct rpc_args, peer),
			   .help = "only of lines about this address or "
				   "ADDR/BITS" },
		  .optional = true },
	} },
	{ "reservations", "persistent reservations and registrations of each LUN" },
	{ "eject", "takes the medium out of a CD/DVD drive", {
		LUN,
		FORCE("although an initiator has locked the drive"),
	} },
	{ "insert", "puts an image into a CD/DVD drive", {
		LUN,
		{ .opt = { .name = "path", .arg = "IMAGE",
			   OPT_TEXT(struct rpc_args, path),
			   .help = "the image, as iserd sees it" } },
		FORCE("although an initiator has locked the drive"),
	} },
	{ "clear", "ends the state that a failed flush left", { LUN } },
	{ "resize", "changes the capacity of a disk", {
		LUN,
		{ .opt = { .name = "size", .arg = "SIZE",
			   OPT_SIZE(struct rpc_args, size, 1, OPT_SIZE_MAX),
			   .help = "the new size; left out: that of the file "
				   "or block device" },
		  .optional = true },
		FORCE("although the LUN loses its last blocks"),
	} },
	{ "apply", "brings a configuration file into force", {
		{ .opt = { .name = "path", .arg = "FILE",
			   OPT_TEXT(struct rpc_args, path),
			   .help = "the file, as iserd sees it; left out: that "
				   "of --config" },
		  .optional = true, .bare = true },
		{ .opt = { .name = "dry-run", .arg = "yes|no", .initial = "no",
			   OPT_WORD(struct rpc_args, dry_run, rpc_no_yes),
			   .help = "only says what would change" },
		  .optional = true },
	} },
	{ "dump", "the configuration in force, as YAML" },
	{ "save", "writes the configuration in force to a file", {
		{ .opt = { .name = "path", .arg = "FILE",
			   OPT_TEXT(struct rpc_args, path),
			   .help = "the file, which is replaced; left out: that "
				   "of --config" },
		  .optional = true, .bare = true },
	} },
	{ "config", "the configuration in force as JSON, and its version" },
	{ "patch", "changes the configuration in force", {
		{ .opt = { .name = "patch", .arg = "JSON",
			   OPT_TEXT(struct rpc_args, patch),
			   .help = "what changes, as a JSON merge patch "
				   "(RFC 7396); null removes" } },
		{ .opt = { .name = "version", .arg = "VERSION",
			   OPT_TEXT(struct rpc_args, version),
			   .help = "only if config has this version" },
		  .optional = true },
		{ .opt = { .name = "dry-run", .arg = "yes|no", .initial = "no",
			   OPT_WORD(struct rpc_args, dry_run, rpc_no_yes),
			   .help = "only says what would change" },
		  .optional = true },
	} },
	{ "drain", "admits no new session, while the sessions go on", {
		{ .opt = { .name = "target", .arg = "TARGET",
			   OPT_TEXT(struct rpc_args, target),
			   .help = "at this target; left out: at all" },
		  .optional = true, .bare = true },
		{ .opt = { .name = "state", .arg = "on|off", .initial = "on",
			   OPT_WORD(struct rpc_args, off, rpc_on_off),
			   .help = "off: admits new sessions again" },
		  .optional = true },
	} },
	{ "groups", "target port groups (ALUA)" },
	{ "group", "sets the state of a target port group", {
		{ .opt = { .name = "id", .arg = "ID",
			   OPT_NUMBER(struct rpc_args, id, 1, 65535),
			   .help = "the group" } },
		{ .opt = { .name = "state", .arg = "STATE",
			   OPT_WORD(struct rpc_args, state, group_states),
			   .help = "the new state" } },
		{ .opt = { .name = "preferred", .arg = "yes|no",
			   OPT_WORD(struct rpc_args, preferred, rpc_no_yes),
			   .help = "sets or clears PREF" },
		  .optional = true },
	} },
	{ "port", "reports that a port of another iserd is offline or online", {
		{ .opt = { .name = "id", .arg = "PORT",
			   OPT_NUMBER(struct rpc_args, id, 1, 65535),
			   .help = "the relative target port identifier" } },
		{ .opt = { .name = "state", .arg = "offline|online",
			   OPT_WORD(struct rpc_args, state, rpc_port_states),
			   .help = "its state" } },
	} },
	{ "shutdown", "ends iserd in an orderly way, as SIGTERM does" },
	{ "version", "the name and version of iserd" },
	{ "events", "prints what happens, until it is interrupted" },
	{ "methods", "all methods with their parameters" },
	{ "schema", "all options, fields, methods and verbs, as iserd schema" },
};

/* ---- nouns and verbs ---- */

#define CHANGES "add", "set", "remove", "list", "show"

static const struct rpc_noun nouns[] = {
	{ "target", "TARGET", "a target", { CHANGES } },
	{ "lun", "TARGET/N", "a LUN of a target; of a map: TARGET/MAP/N",
	  { CHANGES, "replace" } },
	{ "map", "TARGET/MAP", "what certain initiators see; MAP counts from 1",
	  { CHANGES } },
	{ "backstore", "NAME", "the storage of a LUN", { CHANGES } },
	{ "portal", "NAME", "a portal group: where iserd listens", { CHANGES } },
	{ "auth", "NAME", "an auth group: which initiators may log in",
	  { CHANGES } },
	{ "initiators", "NAME", "a list of initiators for maps", { CHANGES } },
	{ "group", "ID", "a target port group (ALUA)", { CHANGES } },
	{ "daemon", NULL, "the process", { "set", "show" } },
	{ "session", "NAME", "sessions: by TSIH, initiator or target",
	  { "list", "show", "kick" } },
	{ "cluster", "BACKSTORE", "units that other gateways serve, too",
	  { "status", "yield", "take", "fence" } },
	{ "connection", "PEER", "connections: by the address of the initiator, "
	  "with or without port", { "list", "show", "kick" } },
};

static const struct rpc_verb verbs[] = {
	{ "add", "adds it with these fields", .has_name = true,
	  .has_fields = true, .changes = true },
	{ "set", "changes these fields", .has_name = true, .has_fields = true,
	  .changes = true },
	{ "remove", "removes it", .has_name = true, .changes = true },
	{ "replace", "gives a LUN another backstore", .has_name = true,
	  .has_fields = true, .changes = true },
	{ "list", "lists all, with the fields that are set" },
	{ "show", "shows all fields", .has_name = true },
	{ "status", "the owner of a unit and the gateways that serve it; without "
	  "name of all units", .may_have_name = true },
	{ "yield", "gives a unit to the gateway of to=GATEWAY, or to none; "
	  "without name all units", .may_have_name = true, .has_fields = true,
	  .key = "to" },
	{ "take", "takes a unit from its owner, which is fenced if it does not "
	  "give the unit away in time", .has_name = true },
	{ "fence", "takes a unit at once: its owner executes nothing any more",
	  .has_name = true },
	{ "kick", "ends them, and says how each ended", .has_name = true },
};
/* clang-format on */

const struct rpc_noun *rpc_nouns(size_t *n)
{
	*n = ARRAY_LEN(nouns);
	return nouns;
}

const struct rpc_noun *rpc_noun_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(nouns); i++)
		if (!strcmp(nouns[i].name, name))
			return &nouns[i];
	return NULL;
}

const struct rpc_verb *rpc_verb_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

bool rpc_noun_has(const struct rpc_noun *n, const char *verb)
{
	for (unsigned i = 0; i < RPC_VERBS && n->verbs[i]; i++)
		if (!strcmp(n->verbs[i], verb))
			return true;
	return false;
}

const struct rpc_method *rpc_methods(size_t *n)
{
	*n = ARRAY_LEN(methods);
	return methods;
}

const struct rpc_method *rpc_method_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

void rpc_usage(const struct rpc_method *m, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < RPC_PARAMS && len < size; i++) {
		const struct rpc_param *p = &m->params[i];

		if (p->opt.name)
			len += (size_t)snprintf(out + len, size - len,
						"%s%s%s=%s%s", i ? " " : "",
						p->optional ? "[" : "",
						p->opt.name, p->opt.arg,
						p->optional ? "]" : "");
	}
}
