/* SPDX-License-Identifier: BSD-2-Clause */
/* command.c: the command line of iserd, by the rows of schema.c. */
#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"
#include "daemon/config/schema.h"
#include "daemon/log/say.h"
#include "datamover/iser/dmiser.h"
#include "net/net.h"

static const char usage_lines[] =
	"usage: iserd serve [OPTION]... LUN...\n"
	"       iserd --config FILE [--check] [--takeover]\n"
	"       iserd schema\n"
	"\n";

static const char usage_head[] =
	"serve serves each LUN (numbered from 0) over iSCSI, in the foreground,\n"
	"until SIGTERM or SIGINT. Once it is ready it prints one URL for each LUN\n"
	"on standard output; messages go to standard error. schema prints all\n"
	"options, kinds and suffixes of LUNs, and the methods of iserctl, as\n"
	"JSON. With --config, iserd serves what the file says (iserd.yaml(5)).\n"
	"\n"
	"LUN is one of\n";

static const char usage_size[] =
	"SIZE is in bytes or has a suffix K, M, G, T (powers of 1024).\n"
	"\n";

static const char usage_tail[] =
	"\n"
	"exit status: 0 orderly end, 1 failure, 2 bad command line,\n"
	"3 a LUN can't be opened, 4 an address can't be used\n"
	"\n"
	"example: iserd serve --listen 0.0.0.0 disk.img ram:1G\n";

#define ROWS_MAX    64
#define HELP_COLUMN 28
#define LUN_COLUMN  20 /* of the texts about LUNs */
#define WIDTH	    80

/* The rows as base/opt.h takes them. A flag may be repeated: it has no value
 * that could be lost. */
static size_t copy_rows(struct opt_row out[ROWS_MAX], bool for_help)
{
	const struct cfg_row *rows;
	size_t n;

	rows = cfg_rows(&n);
	assert(n <= ROWS_MAX);
	for (size_t i = 0; i < n; i++) {
		out[i] = rows[i].opt;
		if (out[i].kind == OPT_KIND_FLAG)
			out[i].repeats = true;
		if (for_help && !out[i].initial)
			out[i].initial = rows[i].otherwise;
	}
	return n;
}

/* Prints "  FORM   help", with the help wrapped at WIDTH. */
static void print_form(FILE *f, const char *form, const char *help)
{
	int column = fprintf(f, "  %-*s", LUN_COLUMN - 2, form);

	while (*help) {
		int len = (int)strcspn(help, " ");

		if (column + 1 + len > WIDTH)
			column = fprintf(f, "\n%*s", LUN_COLUMN, "") - 1;
		column += fprintf(f, "%s%.*s", column > LUN_COLUMN ? " " : "",
				  len, help);
		help += len + (help[len] == ' ');
	}
	fputc('\n', f);
}

/* The kinds of LUNs and their suffixes. */
static void print_luns(FILE *f)
{
	const struct cfg_kind *kinds = cfg_kinds();
	const struct cfg_suffix *rows;
	char form[64];
	size_t n;

	for (unsigned i = 0; i < LUN_KINDS; i++) {
		snprintf(form, sizeof(form), "%s%s", kinds[i].prefix,
			 kinds[i].arg);
		print_form(f, form, kinds[i].help);
	}
	rows = cfg_suffixes(&n);
	for (size_t i = 0; i < n; i++) {
		snprintf(form, sizeof(form), "LUN,%s=%s", rows[i].row.opt.name,
			 rows[i].row.opt.arg);
		print_form(f, form, rows[i].row.opt.help);
	}
}

/* The options of a start with a file. */
static const struct opt_row file_rows[] = {
	{ .name = "config",
	  .arg = "FILE",
	  OPT_TEXT(struct options, start.config),
	  .help = "serve the configuration in this file" },
	{ .name = "check",
	  OPT_FLAG(struct options, start.check),
	  .help = "only validate the file" },
	{ .name = "takeover",
	  OPT_FLAG(struct options, start.takeover),
	  .help = "" },
};

static void print_usage(FILE *f)
{
	struct opt_row rows[ROWS_MAX];
	struct opt_parser p = { .groups = { { file_rows, 2, NULL },
					    { rows, copy_rows(rows, true),
					      NULL } } };
	char text[16384];

	opt_help(&p, HELP_COLUMN, text, sizeof(text));
	fprintf(f, "%s%s", usage_lines, usage_head);
	print_luns(f);
	fprintf(f, "%s%s%s", usage_size, text, usage_tail);
}

static void print_version(void)
{
	fputs("iserd " OPENISER_VERSION "\n", stdout);
}

/* Prints the rules by which --compat linux differs from RFC 7145. */
static void print_rules(void)
{
	for (unsigned i = 0; dmiser_rule_name(i); i++)
		printf("%-15s %s\n", dmiser_rule_name(i), dmiser_rule_text(i));
}

/* ---- what --name and --listen leave out, and what goes together ---- */

/* Sets an IQN with the name of this host. */
static void default_name(struct options *o)
{
	char host[HOST_NAME_MAX + 1];

	net_host_name(host, sizeof(host));
	for (char *p = host; *p; p++) {
		*p = (char)tolower((unsigned char)*p);
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
			*p = '-';
	}
	snprintf(o->name, sizeof(o->name), "iqn.2026-01.org.openiser:%s",
		 host[0] ? host : "disk");
}

/* Returns why the options of CHAP contradict each other, and what to do; or
 * NULL. */
static const char *chap_conflict(const struct options *o)
{
	if (!o->chap.user != !o->chap.secret_file)
		return "--chap-user and --chap-secret-file: one is missing; "
		       "give both";
	if (!o->chap.mutual_user != !o->chap.mutual_secret_file)
		return "--chap-mutual-user and --chap-mutual-secret-file: one "
		       "is missing; give both";
	if (o->chap.user)
		return NULL;
	if (o->chap.mutual_user)
		return "--chap-mutual-user: needs --chap-user, since the "
		       "initiator authenticates first; give both";
	if (o->chap.discovery)
		return "--discovery-auth: needs --chap-user; give both";
	return NULL;
}

static bool check_options(const struct options *o)
{
	const struct cluster_options *c = &o->cluster;
	const char *conflict = chap_conflict(o);

	if (conflict)
		say("%s", conflict);
	else if (!c->number && (c->gateway || c->directory))
		say("--cluster-number: missing; give the number of this "
		    "gateway, different at each");
	else if (o->start.takeover && !o->control)
		say("--takeover: needs --control, the socket of the iserd that "
		    "runs; give both");
	else if (o->nluns == 0)
		say("serve: no LUN given; give one, for example iserd serve "
		    "disk.img or iserd serve ram:1G");
	else
		return true;
	return false;
}

static bool take_luns(struct options *o, int n, char **argv)
{
	if (n > LUNS_MAX) {
		say("serve: more than %d LUNs; give fewer", LUNS_MAX);
		return false;
	}
	for (int i = 0; i < n; i++)
		o->luns[o->nluns++] = argv[i];
	return true;
}

/* ---- parsing ---- */

void options_default(struct options *o)
{
	struct opt_row rows[ROWS_MAX];
	struct opt_parser p = { .groups = {
					{ rows, copy_rows(rows, false), o } } };

	memset(o, 0, sizeof(*o));
	o->limits.remembered = ADMISSION_REMEMBERED;
	(void)opt_parse(&p, 0, NULL);
}

static const struct opt_hint serve_hints[] = {
	{ "port", "give --listen ADDR:PORT, or --listen PORT for 127.0.0.1" },
	{ "address", "give --listen ADDR" },
	{ "config", "a file is served without \"serve\": iserd --config FILE" },
	{ "check", "iserd --config FILE --check validates a file" },
	{ "daemon", "iserd stays in the foreground; a service manager or a "
		    "shell puts it in the background" },
	{ NULL, NULL },
};

static bool parse_serve(struct options *o, int argc, char **argv, int *code)
{
	struct opt_row rows[ROWS_MAX];
	struct opt_parser p = { .command = "iserd serve",
				.hints = serve_hints,
				.groups = {
					{ rows, copy_rows(rows, false), o } } };
	char shown[TEXT_ESCAPED_SIZE(OPT_WHY)];
	enum opt_end end = opt_parse(&p, argc, argv);

	*code = end == OPT_STOPPED ? EXIT_OK : EXIT_USAGE;
	if (end == OPT_BAD) {
		say("%s", text_escape_str(shown, sizeof(shown), p.why));
		return false;
	}
	if (end == OPT_OK) {
		if (!take_luns(o, p.noperands, argv))
			return false;
		o->listen_default = !o->nlisten;
		if (!o->nlisten)
			o->listen[o->nlisten++] = "127.0.0.1:3260";
		if (!o->name[0])
			default_name(o);
		return check_options(o);
	}
	if (!strcmp(p.stopped->name, "help"))
		print_usage(stdout);
	else if (!strcmp(p.stopped->name, "version"))
		print_version();
	else
		print_rules();
	return false;
}

static bool parse_file(struct options *o, int argc, char **argv, int *code)
{
	struct opt_parser p = { .command = "iserd",
				.groups = { { file_rows, ARRAY_LEN(file_rows),
					      o } } };
	char shown[TEXT_ESCAPED_SIZE(OPT_WHY)];

	*code = EXIT_USAGE;
	if (opt_parse(&p, argc, argv) == OPT_BAD)
		say("%s%s", text_escape_str(shown, sizeof(shown), p.why),
		    o->start.config ? ""
				    : "; options of LUNs follow serve: "
				      "iserd serve [OPTION]... LUN...");
	else if (p.noperands)
		say("%s: LUNs and --config are given; give one of them",
		    argv[0]);
	else if (!o->start.config)
		say("--config: missing; give --config FILE");
	else
		return true;
	return false;
}

bool options_parse(struct options *o, int argc, char **argv, int *code)
{
	const char *command = argc > 1 ? argv[1] : "";

	options_default(o);
	*code = EXIT_OK;
	if (!strcmp(command, "--help") || !strcmp(command, "-h")) {
		print_usage(stdout);
		return false;
	}
	if (!strcmp(command, "--version") || !strcmp(command, "-V")) {
		print_version();
		return false;
	}
	if (!strcmp(command, "serve"))
		return parse_serve(o, argc - 2, argv + 2, code);
	if (!strncmp(command, "--", 2))
		return parse_file(o, argc - 1, argv + 1, code);
	*code = EXIT_USAGE;
	if (!*command)
		fprintf(stderr, "%siserd --help lists all options\n",
			usage_lines);
	else
		say("%s: no such command; iserd --help lists them", command);
	return false;
}
