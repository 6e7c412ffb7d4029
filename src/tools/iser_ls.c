/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_ls.c: iser ls: targets of a portal and their units; iser info: one
 * unit in full; iser ping. */
#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "iser.h"

#define MAX_LUNS 256

static const struct option options[] = {
	COMMON_OPTIONS,
	{ "count", required_argument, NULL, 'c' },
	{ "size", required_argument, NULL, 's' },
	{ 0 },
};

struct args {
	struct common common;
	unsigned count;
	uint64_t size;
	const char *what; /* the one operand */
};

static bool parse(int argc, char **argv, struct args *a)
{
	int o;

	*a = (struct args){ .count = 5 };
	optind = 1;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'c':
			a->count = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			if (!parse_size(optarg, &a->size) || a->size > 8192)
				say("--size is 0 to 8192");
			break;
		default:
			if (!common_option(&a->common, o, optarg))
				return false;
		}
	}
	if (optind + 1 != argc) {
		say("%s takes one operand; iser %s --help", argv[0], argv[0]);
		return false;
	}
	a->what = argv[optind];
	return true;
}

/* ---- ls ---- */

/* INQUIRY strings are padded with spaces. */
static char *trimmed(const uint8_t *p, size_t len, char *out)
{
	size_t n = len;

	while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\0'))
		n--;
	for (size_t i = 0; i < n; i++)
		out[i] = isprint(p[i]) ? (char)p[i] : '?';
	out[n] = '\0';
	return out;
}

static void list_unit(struct iser_session *s, int lun, json_t *units)
{
	struct iser_capacity c = { 0 };
	uint8_t inq[96] = { 0 };
	char vendor[9], product[17], size[32];
	uint64_t bytes;

	iser_inquiry(s, lun, -1, inq, sizeof(inq));
	if (iser_read_capacity(s, lun, &c))
		c = (struct iser_capacity){ 0 };
	bytes = c.blocks * c.block_size;
	trimmed(inq + 8, 8, vendor);
	trimmed(inq + 16, 16, product);
	if (units)
		json_array_append_new(
			units, json_pack("{s:i,s:s,s:s,s:s,s:I,s:i}", "lun",
					 lun, "type", iser_device_type(inq[0]),
					 "vendor", vendor, "product", product,
					 "bytes", (json_int_t)bytes,
					 "block_size", (int)c.block_size));
	else if (c.block_size)
		printf("  LUN %-3d %10s  %s %s, %s, blocks of %u\n", lun,
		       human(bytes, size), vendor, product,
		       iser_device_type(inq[0]), c.block_size);
	else
		printf("  LUN %-3d %10s  %s %s, %s\n", lun, "-", vendor,
		       product, iser_device_type(inq[0]));
}

static int list_target(struct iser_context *ctx, const struct iser_url *portal,
		       const struct iser_target *t, json_t *targets)
{
	struct iser_url url = *portal;
	struct iser_session *s;
	json_t *units = targets ? json_array() : NULL;
	int luns[MAX_LUNS], n = 0, err;

	snprintf(url.target, sizeof(url.target), "%s", t->name);
	if (!targets)
		printf("%s  %s\n", t->name, t->address);
	s = iser_connect(ctx, &url, &err);
	if (s) {
		tell_transport(s, &url);
		n = iser_report_luns(s, luns, MAX_LUNS);
	} else {
		say("%s", iser_message(ctx));
	}
	for (int i = 0; i < n && i < MAX_LUNS; i++)
		list_unit(s, luns[i], units);
	if (targets)
		json_array_append_new(targets,
				      json_pack("{s:s,s:s,s:o}", "name",
						t->name, "address", t->address,
						"units", units));
	iser_disconnect(s);
	return n < 0 ? n : err;
}

static int run_ls(int argc, char **argv)
{
	struct iser_target *list = NULL;
	struct iser_context *ctx;
	struct iser_url url;
	json_t *out = NULL;
	struct args a;
	char why[256];
	int err;

	if (!parse(argc, argv, &a))
		return EXIT_INVALID;
	if (iser_url_parse(&url, a.what, true, why, sizeof(why))) {
		say("%s", why);
		return EXIT_INVALID;
	}
	ctx = open_context(&a.common);
	if (!ctx)
		return EXIT_NOMEM;
	err = iser_discover(ctx, &url, &list);
	if (err) {
		err = failed(ctx, err);
		iser_context_free(ctx);
		return err;
	}
	if (a.common.json)
		out = json_array();
	for (struct iser_target *t = list; t; t = t->next)
		if (!url.target[0] || !strcmp(url.target, t->name))
			err = list_target(ctx, &url, t, out);
	if (out)
		print_json(out);
	if (!list)
		say("%s:%u has no targets for us", url.host, url.port);
	err = list ? exit_of(err) : EXIT_NO_OBJECTS;
	iser_targets_free(list);
	iser_context_free(ctx);
	return err;
}

const struct command command_ls = {
	.name = "ls",
	.synopsis = "HOST[:PORT] | URL",
	.summary = "list the targets of a portal and their units",
	.help = "",
	.run = run_ls,
};

/* ---- info ---- */

static json_t *info_params(struct iser_session *s)
{
	struct iser_params p;

	iser_get_params(s, &p);
	return json_pack(
		"{s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:i,s:i}",
		"transport", p.transport, "kind", p.kind, "rules", p.rules,
		"HeaderDigest", p.header_digest ? "CRC32C" : "None",
		"DataDigest", p.data_digest ? "CRC32C" : "None", "InitialR2T",
		p.initial_r2t, "ImmediateData", p.immediate_data,
		"MaxRecvDataSegmentLength", (int)p.max_recv_data_segment_length,
		"MaxSendDataSegmentLength", (int)p.max_send_data_segment_length,
		"MaxBurstLength", (int)p.max_burst_length, "FirstBurstLength",
		(int)p.first_burst_length, "MaxOutstandingR2T",
		(int)p.max_outstanding_r2t, "ErrorRecoveryLevel",
		(int)p.error_recovery_level, "TargetPortalGroupTag", p.tpgt);
}

static json_t *info_pages(struct iser_session *s, int lun)
{
	json_t *pages = json_object();
	uint8_t list[260], page[512];
	int n = iser_inquiry(s, lun, 0x00, list, sizeof(list));

	for (int i = 4; i < n && i < 4 + list[3]; i++) {
		int len = iser_inquiry(s, lun, list[i], page, sizeof(page));
		char name[8], hex[2 * sizeof(page) + 1] = "";

		for (int k = 0; k < len; k++)
			snprintf(hex + 2 * k, 3, "%02x", page[k]);
		snprintf(name, sizeof(name), "%02x", list[i]);
		json_object_set_new(pages, name, json_string(hex));
	}
	return pages;
}

static json_t *info_serial(struct iser_session *s, int lun)
{
	uint8_t b[260];
	char text[257];
	int n = iser_inquiry(s, lun, 0x80, b, sizeof(b));

	if (n < 5)
		return json_string("");
	return json_string(trimmed(b + 4, (size_t)n - 4, text));
}

#define REMOVABLE 0x80

/* What there is of it: size, or why it has none. err: there should be one. */
static json_t *info_capacity(struct iser_session *s, const struct iser_url *url,
			     const uint8_t *inq, int *err)
{
	struct iser_capacity c;

	*err = iser_read_capacity(s, url->lun, &c);
	if (*err) {
		json_t *why = json_pack("{s:s}", "no_capacity",
					iser_message(iser_session_context(s)));

		/* not by its type, or its medium is away */
		if (*err == ISER_E_UNSUPPORTED ||
		    (*err == ISER_E_SCSI && (inq[1] & REMOVABLE)))
			*err = 0;
		return why;
	}
	return json_pack("{s:I,s:i,s:i,s:b}", "bytes",
			 (json_int_t)(c.blocks * c.block_size), "block_size",
			 (int)c.block_size, "physical_block_size",
			 (int)c.physical_block_size, "thin", c.thin);
}

/* NULL: *err says why not. */
static json_t *info_all(struct iser_session *s, const struct iser_url *url,
			int *err)
{
	char vendor[9], product[17], revision[5];
	json_t *all, *capacity;
	uint8_t inq[96] = { 0 };

	iser_inquiry(s, url->lun, -1, inq, sizeof(inq));
	capacity = info_capacity(s, url, inq, err);
	if (*err) {
		json_decref(capacity);
		return NULL;
	}
	all = json_pack("{s:s,s:i,s:s,s:s,s:s,s:s,s:o}", "target", url->target,
			"lun", url->lun, "type", iser_device_type(inq[0]),
			"vendor", trimmed(inq + 8, 8, vendor), "product",
			trimmed(inq + 16, 16, product), "revision",
			trimmed(inq + 32, 4, revision), "serial",
			info_serial(s, url->lun));
	json_object_update(all, capacity);
	json_decref(capacity);
	json_object_set_new(all, "session", info_params(s));
	json_object_set_new(all, "vpd", info_pages(s, url->lun));
	return all;
}

/* The same tree, for people. */
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

/* A command whose arguments name one unit. */
static int with_unit(int argc, char **argv,
		     int (*go)(struct iser_session *s, const struct args *a,
			       const struct iser_url *url))
{
	struct iser_context *ctx;
	struct iser_session *s;
	struct iser_url url;
	struct args a;
	int code = 0;

	if (!parse(argc, argv, &a))
		return EXIT_INVALID;
	ctx = open_context(&a.common);
	if (!ctx)
		return EXIT_NOMEM;
	s = open_url(ctx, a.what, &url, &code);
	if (s)
		code = go(s, &a, &url);
	iser_disconnect(s);
	iser_context_free(ctx);
	return code;
}

static int info(struct iser_session *s, const struct args *a,
		const struct iser_url *url)
{
	int err;
	json_t *tree = info_all(s, url, &err);

	if (!tree)
		return failed(iser_session_context(s), err);
	if (a->common.json) {
		print_json(tree);
	} else {
		print_tree(tree, 0);
		json_decref(tree);
	}
	return 0;
}

static int run_info(int argc, char **argv)
{
	return with_unit(argc, argv, info);
}

const struct command command_info = {
	.name = "info",
	.synopsis = "URL",
	.summary = "identity, size, VPD pages and negotiated keys of a unit",
	.help = "",
	.run = run_info,
};

/* ---- ping ---- */

static int ping(struct iser_session *s, const struct args *a,
		const struct iser_url *url)
{
	uint64_t ns;

	for (unsigned i = 0; i < a->count; i++) {
		int err = iser_ping(s, a->size, &ns);

		if (err)
			return failed(iser_session_context(s), err);
		if (a->common.json)
			print_json(json_pack("{s:i,s:f}", "seq", (int)i, "us",
					     (double)ns / 1000));
		else
			printf("NOP-In from %s:%u: %u bytes, %.1f us\n",
			       url->host, url->port, (unsigned)a->size,
			       (double)ns / 1000);
	}
	return 0;
}

static int run_ping(int argc, char **argv)
{
	return with_unit(argc, argv, ping);
}

const struct command command_ping = {
	.name = "ping",
	.synopsis = "[--count N] [--size BYTES] URL",
	.summary = "NOP-Out and the time until its NOP-In",
	.help = "  --count N            so many times (5)\n"
		"  --size BYTES         of ping data (0)\n",
	.run = run_ping,
};
