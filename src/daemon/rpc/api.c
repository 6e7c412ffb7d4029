/* SPDX-License-Identifier: BSD-2-Clause */
/* api.c: the methods of the management socket, a row each. */
#include "daemon/rpc/api.h"

#include <stdio.h>

#include "base/bytes.h"

const char *const rpc_no_yes[] = { "no", "yes", NULL };
const char *const rpc_group_states[] = { "optimized",	  "non-optimized",
					 "standby",	  "unavailable",
					 "transitioning", NULL };
const char *const rpc_port_states[] = { "online", "offline", NULL };
const char *const rpc_levels[] = { "error", "warning", "notice",
				   "info",  "debug",   NULL };

/* clang-format off */
#define LUN                                                                  \
 { .opt = { .name = "lun", .arg = "N",                                       \
	    OPT_NUMBER(struct rpc_args, lun, 0, 65535), .help = "the LUN" } }
#define FORCE(what)                                                          \
 { .opt = { .name = "force", .arg = "yes|no", .initial = "no",               \
	    OPT_WORD(struct rpc_args, force, rpc_no_yes), .help = what },    \
   .optional = true }

static const struct rpc_method methods[] = {
	{ "status", "listeners, sessions and their counters" },
	{ "stats", "counters and latencies of LUNs, targets and sessions" },
	{ "luns", "the LUNs that are served" },
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
		  .optional = true },
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
		  .optional = true },
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
	{ "groups", "target port groups (ALUA)" },
	{ "group", "sets the state of a target port group", {
		{ .opt = { .name = "id", .arg = "ID",
			   OPT_NUMBER(struct rpc_args, id, 1, 65535),
			   .help = "the group" } },
		{ .opt = { .name = "state", .arg = "STATE",
			   OPT_WORD(struct rpc_args, state, rpc_group_states),
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
	{ "methods", "all methods with their parameters" },
};
/* clang-format on */

const struct rpc_method *rpc_methods(size_t *n)
{
	*n = ARRAY_LEN(methods);
	return methods;
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
