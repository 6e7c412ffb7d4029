/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_ls.c: iser ls: the targets of a portal and their units; iser info: all
 * about one unit; iser ping: NOP-Outs. */
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "tools/iser.h"

#define MAX_LUNS 16384 /* all that a LUN of 14 bits can name */

/* ---- ls ---- */

/* The size of an array for an INQUIRY string of len bytes, escaped. */
#define TRIMMED(len) [TEXT_ESCAPED_SIZE(len)]

/* Copies an INQUIRY string without the spaces that pad it, escaped. */
static char *trimmed(const uint8_t *p, size_t len, char *out)
{
	size_t n = len;

	while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\0'))
		n--;
	text_escape(out, TEXT_ESCAPED_SIZE(len), p, n);
	return out;
}

/* Prints all portals of a target, the first one beside its name. */
static void print_target(const struct iser_target *t)
{
	print_text(t->name, strlen(t->name));
	fputs("  ", stdout);
	print_text(t->address, strlen(t->address));
	putchar('\n');
	for (struct iser_portal *p = t->portals; p; p = p->next) {
		if (p == t->portals)
			continue;
		fputs("  also at ", stdout);
		print_text(p->address, strlen(p->address));
		putchar('\n');
	}
}

static json_t *portals_of(const struct iser_target *t)
{
	json_t *list = json_array();

	for (struct iser_portal *p = t->portals; p; p = p->next)
		json_array_append_new(list, json_text(p->address));
	return list;
}

/* url_of writes the URL by which the other commands reach this unit: the portal
 * of the login, with the transport of the session. */
static void url_of(const struct iser_session *s, const struct iser_url *url,
		   int lun, char *out, size_t size)
{
	bool v6 = strchr(url->host, ':') != NULL;
	struct iser_params p;
	bool iser;

	iser_get_params(s, &p);
	iser = !strcmp(p.transport, "iser");
	snprintf(out, size, "%s://%s%s%s:%u/%s/%d%s%s%s",
		 iser ? "iser" : "iscsi", v6 ? "[" : "", url->host,
		 v6 ? "]" : "", url->port, url->target, lun,
		 iser && strcmp(url->start, "rdma") ? "?start=" : "",
		 iser && strcmp(url->start, "rdma") ? url->start : "",
		 iser && !strcmp(url->rcap, "verbs") ? "?rcap=verbs" : "");
}

#define TYPE_UNKNOWN 0x1f

/* Reads INQUIRY data and the capacity. A unit without a capacity (a tape, a
 * drive without its medium) is not an error and leaves *c zero. An answer that
 * did not come is one, and is printed. */
static int ask_unit(struct iser_session *s, int lun, uint8_t inq[96],
		    struct iser_capacity *c)
{
	int err = iser_inquiry(s, lun, -1, inq, 96);

	if (err < 0) {
		inq[0] = TYPE_UNKNOWN;
		say("%s", iser_message(iser_session_context(s)));
		return err;
	}
	err = iser_read_capacity(s, lun, c);
	if (!err)
		return 0;
	*c = (struct iser_capacity){ 0 };
	if (err == ISER_E_UNSUPPORTED || err == ISER_E_SCSI)
		return 0;
	say("%s", iser_message(iser_session_context(s)));
	return err;
}

static int list_unit(struct iser_session *s, const struct iser_url *url,
		     int lun, json_t *units)
{
	char text[1024];
	struct iser_capacity c = { 0 };
	uint8_t inq[96] = { 0 };
	char vendor TRIMMED(8), product TRIMMED(16), size[32];
	int err = ask_unit(s, lun, inq, &c);
	uint64_t bytes = c.bytes;

	trimmed(inq + 8, 8, vendor);
	trimmed(inq + 16, 16, product);
	url_of(s, url, lun, text, sizeof(text));
	if (units)
		json_array_append_new(
			units, json_pack("{s:o,s:i,s:s,s:s,s:s,s:I,s:i}", "url",
					 json_text(text), "lun", lun, "type",
					 iser_device_type(inq[0]), "vendor",
					 vendor, "product", product, "bytes",
					 (json_int_t)bytes, "block_size",
					 (int)c.block_size));
	else if (c.block_size)
		printf("  LUN %-3d %10s  %s %s, %s, blocks of %u\n", lun,
		       human(bytes, size), vendor, product,
		       iser_device_type(inq[0]), c.block_size);
	else
		printf("  LUN %-3d %10s  %s %s, %s\n", lun, "-", vendor,
		       product, iser_device_type(inq[0]));
	if (units)
		return err;
	fputs("          ", stdout);
	print_text(text, strlen(text));
	putchar('\n');
	return err;
}

static int list_units(struct iser_session *s, const struct iser_url *url,
		      json_t *units)
{
	int luns[MAX_LUNS], first = 0;
	int n = iser_report_luns(s, luns, MAX_LUNS);

	if (n < 0) {
		say("%s", iser_message(iser_session_context(s)));
		return n;
	}
	for (int i = 0; i < n && i < MAX_LUNS; i++) {
		int err = list_unit(s, url, luns[i], units);

		if (!first)
			first = err;
		if (err == ISER_E_CLOSED || err == ISER_E_TIMEOUT)
			break; /* the next units would not answer either */
	}
	if (n > MAX_LUNS) {
		say("%s: has %d units: only the first %d are listed",
		    url->target, n, MAX_LUNS);
		first = first ? first : ISER_E_UNSUPPORTED;
	}
	return first;
}

/* ---- where a target is (RFC 7143 appendix C) ---- */

#define ADDRESS_TIME \
 5 /* seconds for the login at an address that a target reports */
#define ADDRESSES 3  /* that are tried */
#define DEAD_MAX  64 /* addresses that did not answer are not tried again */

struct where {
	const struct iser_url *asked;
	const char *dead[DEAD_MAX]; /* of the list of targets */
	unsigned ndead;
};

/* Reads HOST:PORT,TPGT from a target. No other character reaches the parser of URLs. */
static bool parse_portal(struct iser_url *to, const char *address)
{
	char why[256];

	return strspn(address, "0123456789abcdefghijklmnopqrstuvwxyz"
			       "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:[]%,") ==
		       strlen(address) &&
	       !iser_url_parse(to, address, true, why, sizeof(why));
}

static bool is_at_asked(const struct where *w, const struct iser_target *t)
{
	struct iser_url at;

	for (struct iser_portal *p = t->portals; p; p = p->next)
		if (parse_portal(&at, p->address) &&
		    at.port == w->asked->port &&
		    !strcasecmp(at.host, w->asked->host))
			return true;
	return !t->portals;
}

static bool is_dead(const struct where *w, const char *address)
{
	for (unsigned i = 0; i < w->ndead; i++)
		if (!strcmp(w->dead[i], address))
			return true;
	return false;
}

/* Logs in at the first of the reported addresses that can be reached, and sets *url. */
static struct iser_session *connect_reported(struct iser_context *ctx,
					     struct where *w,
					     const struct iser_target *t,
					     struct iser_url *url)
{
	struct iser_url at, try = *url;
	struct iser_session *s = NULL;
	unsigned left = ADDRESSES;
	int err;

	if (!try.login_timeout || try.login_timeout > ADDRESS_TIME)
		try.login_timeout = ADDRESS_TIME;
	for (struct iser_portal *p = t->portals; p && left; p = p->next) {
		if (is_dead(w, p->address) || !parse_portal(&at, p->address))
			continue;
		left--;
		strcpy(try.host, at.host);
		try.port = at.port;
		s = iser_connect(ctx, &try, &err);
		if (s)
			break;
		say("%s", iser_message(ctx));
		if (err != ISER_E_LOGIN && err != ISER_E_AUTH &&
		    err != ISER_E_NOT_FOUND && w->ndead < DEAD_MAX)
			w->dead[w->ndead++] = p->address;
	}
	if (s) {
		strcpy(url->host, try.host);
		url->port = try.port;
	}
	return s;
}

/* Logs in where the target reports that it is, else at the portal that was asked: with
 * an address translation the reported address cannot be reached. */
static struct iser_session *connect_target(struct iser_context *ctx,
					   struct where *w,
					   const struct iser_target *t,
					   struct iser_url *url, int *err)
{
	struct iser_session *s = NULL;

	if (!is_at_asked(w, t))
		s = connect_reported(ctx, w, t, url);
	return s ? s : iser_connect(ctx, url, err);
}

static int list_target(struct iser_context *ctx, struct where *w,
		       const struct iser_target *t, json_t *targets)
{
	struct iser_url url = *w->asked;
	struct iser_session *s;
	json_t *units = targets ? json_array() : NULL;
	int err;

	snprintf(url.target, sizeof(url.target), "%s", t->name);
	if (!targets)
		print_target(t);
	s = connect_target(ctx, w, t, &url, &err);
	if (s) {
		say_transport(s, &url);
		err = list_units(s, &url, units);
	} else {
		say("%s", iser_message(ctx));
	}
	if (targets)
		json_array_append_new(
			targets,
			json_pack("{s:o,s:o,s:o,s:o}", "portals", portals_of(t),
				  "name", json_text(t->name), "address",
				  json_text(t->address), "units", units));
	iser_disconnect(s);
	return err;
}

static int run_ls(const struct call *call)
{
	bool json = call->common->json;
	struct iser_target *list = NULL;
	struct iser_context *ctx;
	struct iser_url url;
	struct where where = { .asked = &url };
	json_t *out = NULL;
	bool found = false;
	char why[256];
	int err;

	if (iser_url_parse(&url, call->operands[0], true, why, sizeof(why))) {
		say("%s", why);
		return EXIT_INVALID;
	}
	ctx = open_context(call->common);
	if (!ctx)
		return EXIT_NOMEM;
	err = iser_discover(ctx, &url, &list);
	if (err) {
		err = say_failed(ctx, err);
		iser_context_free(ctx);
		return err;
	}
	if (json)
		out = json_array();
	for (struct iser_target *t = list; t; t = t->next) {
		int e;

		/* names have no capital letters (RFC 3722 §3) */
		if (url.target[0] && strcasecmp(url.target, t->name) != 0)
			continue;
		found = true;
		e = list_target(ctx, &where, t, out);
		if (!err)
			err = e; /* the first failure is the exit code */
	}
	if (out)
		print_json(out);
	if (!list)
		say("%s:%u: lists no target for this initiator; its access "
		    "rules may name others",
		    url.host, url.port);
	else if (!found)
		say("%s:%u: lists no target %s for this initiator; iser ls "
		    "%s:%u shows those that it lists",
		    url.host, url.port, url.target, url.host, url.port);
	err = found ? exit_of(err) : EXIT_NO_OBJECTS;
	iser_targets_free(list);
	iser_context_free(ctx);
	return err;
}

const struct command command_ls = {
	.name = "ls",
	.synopsis = "HOST[:PORT[,TPGT]] | URL",
	.summary = "list the targets of a portal and their units",
	.min_operands = 1,
	.max_operands = 1,
	.run = run_ls,
};

/* ---- info ---- */

static json_t *params_json(struct iser_session *s)
{
	struct iser_params p;

	iser_get_params(s, &p);
	return json_pack(
		"{s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}",
		"transport", p.transport, "kind", p.kind, "rules", p.rules,
		"HeaderDigest", p.header_digest ? "CRC32C" : "None",
		"DataDigest", p.data_digest ? "CRC32C" : "None", "InitialR2T",
		p.initial_r2t, "ImmediateData", p.immediate_data,
		"MaxRecvDataSegmentLength", (int)p.max_recv_data_segment_length,
		"MaxSendDataSegmentLength", (int)p.max_send_data_segment_length,
		"MaxBurstLength", (int)p.max_burst_length, "FirstBurstLength",
		(int)p.first_burst_length, "MaxOutstandingR2T",
		(int)p.max_outstanding_r2t, "ErrorRecoveryLevel",
		(int)p.error_recovery_level, "TargetPortalGroupTag", p.tpgt,
		"MaxConnections", (int)p.max_connections, "connections",
		(int)p.connections);
}

/* The paths of a session with several ones, by their numbers; NULL: it has one. */
static json_t *paths_json(const struct iser_session *s)
{
	static const char *const states[] = { "down", "login", "check",
					      "ready" };
	static const char *const access[16] = {
		"active/optimized",    "active/non-optimized", "standby",
		"unavailable",	       "LBA dependent",	       [14] = "offline",
		[15] = "transitioning"
	};
	struct iser_path p;
	json_t *all = NULL;

	for (unsigned i = 0; !iser_get_path(s, i, &p); i++) {
		const char *a = access[p.access & 15];
		char name[12];

		if (!all)
			all = json_object();
		snprintf(name, sizeof(name), "%u", i);
		json_object_set_new(
			all, name,
			json_pack("{s:s,s:s,s:i,s:s,s:s,s:b,s:b,s:i,s:i,s:s}",
				  "portal", p.portal, "target", p.target, "lun",
				  p.lun, "state", states[p.state & 3], "access",
				  a ? a : "reserved", "preferred", p.preferred,
				  "used", p.is_used, "group", p.group, "port",
				  p.port, "reason", p.reason));
	}
	return all;
}

#define VPD_PAGES 0x00

/* Prints that a VPD page is missing from the output, and why. */
static void say_no_page(struct iser_session *s, int page)
{
	say("VPD page %02Xh: cannot read it: %s; it is left out", page,
	    iser_message(iser_session_context(s)));
}

/* All VPD pages in hexadecimal. A page that the unit lists and does not give is
 * left out, which is printed. */
static json_t *pages_json(struct iser_session *s, int lun)
{
	json_t *pages = json_object();
	uint8_t list[260], page[512];
	int n = iser_inquiry(s, lun, VPD_PAGES, list, sizeof(list));

	if (n < 0)
		say_no_page(s, VPD_PAGES);
	for (int i = 4; i < n && i < 4 + list[3]; i++) {
		int len = iser_inquiry(s, lun, list[i], page, sizeof(page));
		char name[8], hex[2 * sizeof(page) + 1] = "";

		if (len < 0) {
			say_no_page(s, list[i]);
			continue;
		}
		for (int k = 0; k < len; k++)
			snprintf(hex + 2 * k, 3, "%02x", page[k]);
		snprintf(name, sizeof(name), "%02x", list[i]);
		json_object_set_new(pages, name, json_string(hex));
	}
	return pages;
}

static json_t *serial_json(struct iser_session *s, int lun)
{
	uint8_t b[260];
	char text TRIMMED(256);
	int n = iser_inquiry(s, lun, 0x80, b, sizeof(b));

	if (n < 5)
		return json_string("");
	return json_string(trimmed(b + 4, (size_t)n - 4, text));
}

#define REMOVABLE 0x80

/* Returns the capacity, or the reason why the unit has none. *err: the unit
 * should have a capacity and did not report it. */
static json_t *capacity_json(struct iser_session *s, const struct iser_url *url,
			     const uint8_t *inq, int *err)
{
	struct iser_capacity c;

	*err = iser_read_capacity(s, url->lun, &c);
	if (*err) {
		json_t *why = json_pack("{s:s}", "no_capacity",
					iser_message(iser_session_context(s)));

		/* a type without capacity, or a drive without its medium */
		if (*err == ISER_E_UNSUPPORTED ||
		    (*err == ISER_E_SCSI && (inq[1] & REMOVABLE)))
			*err = 0;
		return why;
	}
	return json_pack("{s:I,s:i,s:I,s:b}", "bytes", (json_int_t)c.bytes,
			 "block_size", (int)c.block_size, "physical_block_size",
			 (json_int_t)c.physical_block_size, "thin", c.thin);
}

/* Returns all that is known about a unit. NULL: *err is the error. */
static json_t *unit_json(struct iser_session *s, const struct iser_url *url,
			 int *err)
{
	char vendor TRIMMED(8), product TRIMMED(16), revision TRIMMED(4);
	json_t *all, *capacity;
	uint8_t inq[96] = { 0 };

	iser_inquiry(s, url->lun, -1, inq, sizeof(inq));
	capacity = capacity_json(s, url, inq, err);
	if (*err) {
		json_decref(capacity);
		return NULL;
	}
	all = json_pack("{s:o,s:i,s:s,s:s,s:s,s:s,s:o}", "target",
			json_text(url->target), "lun", url->lun, "type",
			iser_device_type(inq[0]), "vendor",
			trimmed(inq + 8, 8, vendor), "product",
			trimmed(inq + 16, 16, product), "revision",
			trimmed(inq + 32, 4, revision), "serial",
			serial_json(s, url->lun));
	json_object_update(all, capacity);
	json_decref(capacity);
	json_object_set_new(all, "session", params_json(s));
	if (!iser_get_path(s, 0, &(struct iser_path){ 0 }))
		json_object_set_new(all, "paths", paths_json(s));
	json_object_set_new(all, "vpd", pages_json(s, url->lun));
	return all;
}

/* Prints the tree as indented lines. */
static void print_tree(json_t *tree, int indent)
{
	const char *key;
	json_t *v;

	json_object_foreach(tree, key, v)
	{
		printf("%*s%-*s ", indent, "", 28 - indent, key);
		if (json_is_object(v)) {
			putchar('\n');
			print_tree(v, indent + 2);
		} else if (json_is_string(v)) {
			printf("%s\n", json_string_value(v));
		} else if (json_is_boolean(v)) {
			printf("%s\n", json_is_true(v) ? "Yes" : "No");
		} else {
			printf("%lld\n", (long long)json_integer_value(v));
		}
	}
}

/* Logs in to the unit that the operand names and calls use with the session. */
static int with_unit(const struct call *call,
		     int (*use)(struct iser_session *s, const struct call *call,
				const struct iser_url *url))
{
	struct iser_context *ctx = open_context(call->common);
	struct iser_session *s;
	struct iser_url url;
	int code = 0;

	if (!ctx)
		return EXIT_NOMEM;
	s = open_url(ctx, call->operands[0], &url, &code);
	if (s)
		code = use(s, call, &url);
	iser_disconnect(s);
	iser_context_free(ctx);
	return code;
}

static int print_unit(struct iser_session *s, const struct call *call,
		      const struct iser_url *url)
{
	int err, code = check_unit_exists(s, url);
	json_t *tree;

	if (code)
		return code;
	tree = unit_json(s, url, &err);
	if (!tree)
		return say_failed(iser_session_context(s), err);
	if (call->common->json) {
		print_json(tree);
	} else {
		print_tree(tree, 0);
		json_decref(tree);
	}
	return 0;
}

static int run_info(const struct call *call)
{
	return with_unit(call, print_unit);
}

const struct command command_info = {
	.name = "info",
	.synopsis = "URL",
	.summary = "print identity, size, VPD pages and negotiated keys of a "
		   "unit",
	.min_operands = 1,
	.max_operands = 1,
	.run = run_info,
};

/* ---- ping ---- */

#define PING_MAX 8192 /* what iser_ping sends at most */

struct ping_args {
	unsigned count;
	uint64_t size;
};

static int ping(struct iser_session *s, const struct call *call,
		const struct iser_url *url)
{
	const struct ping_args *a = call->args;
	uint64_t ns;

	for (unsigned i = 0; i < a->count; i++) {
		int err = iser_ping(s, a->size, &ns);

		if (err)
			return say_failed(iser_session_context(s), err);
		if (call->common->json)
			print_json(json_pack("{s:i,s:f}", "seq", (int)i, "us",
					     (double)ns / 1000));
		else
			printf("NOP-In from %s:%u: %u bytes, %.1f us\n",
			       url->host, url->port, (unsigned)a->size,
			       (double)ns / 1000);
	}
	return 0;
}

static int run_ping(const struct call *call)
{
	return with_unit(call, ping);
}

static const struct opt_row ping_rows[] = {
	{ .name = "count",
	  .arg = "N",
	  .initial = "5",
	  OPT_NUMBER(struct ping_args, count, 0, UINT32_MAX),
	  .help = "how many NOP-Outs to send" },
	{ .name = "size",
	  .arg = "BYTES",
	  .initial = "0",
	  OPT_SIZE(struct ping_args, size, 0, PING_MAX),
	  .help = "bytes of ping data, at most 8192" },
};

const struct command command_ping = {
	.name = "ping",
	.synopsis = "[--count N] [--size BYTES] URL",
	.summary = "send NOP-Outs and print the time until each NOP-In",
	.rows = ping_rows,
	.nrows = ARRAY_LEN(ping_rows),
	.args_size = sizeof(struct ping_args),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_ping,
};
