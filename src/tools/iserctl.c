/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iserctl.c: sends one request to a running iserd over its management socket
 * (JSON-RPC 2.0, a line each) and prints the answer as text, or as JSON.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/opt.h"
#include "daemon/apply/check.h"
#include "daemon/rpc/api.h"
#include "tools/ctl.h"
#include "tools/ctl_cluster.h"
#include "tools/ctl_print.h"
#include "tools/ctl_secret.h"
#include "tools/ctl_tree.h"
#include "tools/follow.h"
#include "tools/import/import.h"
#include "tools/json_get.h"
#include "tools/standard.h"
#include "tools/top.h"

#ifndef OPENISER_VERSION
# define OPENISER_VERSION "unknown"
#endif

#define DEFAULT_SOCKET "/run/iserd/control"
#define ANSWER_MAX     86400 /* seconds */

/* What the command line asks for. */
struct command {
	const char *socket;
	unsigned timeout; /* seconds */
	bool json, dry_run;
	bool is_list; /* the answer is a table */
	const char *method;
	char noun_verb[64]; /* "NOUN.VERB", if the method is one */
	json_t *params;
};

static const struct opt_row rows[] = {
	{ .name = "socket",
	  .letter = 's',
	  .arg = "PATH",
	  .initial = DEFAULT_SOCKET,
	  OPT_TEXT(struct command, socket),
	  .help = "the socket of iserd" },
	{ .name = "timeout",
	  .letter = 't',
	  .arg = "SECONDS",
	  .initial = "60",
	  OPT_NUMBER(struct command, timeout, 1, ANSWER_MAX),
	  .help = "how long to wait for the answer" },
	{ .name = "dry-run",
	  .letter = 'n',
	  OPT_FLAG(struct command, dry_run),
	  .help = "only print what would change" },
	{ .name = "json",
	  .letter = 'j',
	  OPT_FLAG(struct command, json),
	  .help = "print the answer as JSON" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
	{ .name = "version", .letter = 'V', OPT_STOP, .help = "the version" },
};

/* ---- the answer ---- */

/* Prints the lines of a text; other control characters are escaped. */
static void print_lines(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *plain = malloc(TEXT_ESCAPED_SIZE(len));

		if (!plain)
			return;
		text_escape(plain, TEXT_ESCAPED_SIZE(len), text, len);
		puts(plain);
		free(plain);
		text += len + (text[len] == '\n');
	}
}

static bool is_dry_run(const struct command *c)
{
	return !strcmp(get_text(c->params, "dry-run"), "yes");
}

/* Prints the units that have a reservation or registrations. */
static void print_reservations(const json_t *units)
{
	json_t *some = json_array(), *u;
	size_t i;

	json_array_foreach((json_t *)units, i, u)
	{
		if (json_is_string(json_object_get(u, "type")) ||
		    json_is_string(json_object_get(u, "reserved")) ||
		    get_flag(u, "lost") ||
		    json_array_size(json_object_get(u, "registrations")))
			json_array_append(some, u);
	}
	ctl_print(some);
	json_decref(some);
}

/* Prints a result as text. */
static void print_result(const struct command *c, const json_t *result)
{
	if (!strcmp(c->method, "cluster.status"))
		ctl_print_cluster(result);
	else if (!strcmp(c->method, "status"))
		ctl_print_status(result);
	else if (!strcmp(c->method, "tree"))
		ctl_print_tree(result);
	else if (!strcmp(c->method, "reservations"))
		print_reservations(result);
	else if (!strcmp(c->method, "shutdown"))
		puts("iserd ends: it asks the initiators to log out, flushes "
		     "the backstores and closes them");
	else if (c->is_list)
		ctl_print_table(result);
	else
		ctl_print(result);
	if (is_dry_run(c))
		puts("valid; nothing was changed");
}

static int print_answer(json_t *answer, const struct command *c)
{
	bool is_text = !strcmp(c->method, "dump");
	const json_t *error = json_object_get(answer, "error");
	const json_t *result;
	const char *message;

	result = json_object_get(answer, "result");
	if (is_text && !c->json && json_is_string(result)) {
		print_lines(json_string_value(result));
		return EXIT_OK;
	}
	ctl_make_plain(answer);
	result = json_object_get(answer, "result");
	message = json_string_value(json_object_get(error, "message"));
	if (error || !result) {
		fprintf(stderr, "iserctl: %s\n",
			message ? message
				: "the answer of iserd is not valid JSON-RPC "
				  "2.0");
		return EXIT_REFUSED;
	}
	if (c->json) {
		json_dumpf(result, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	} else {
		print_result(c, result);
	}
	return EXIT_OK;
}

/* ---- commands that need no iserd ---- */

/* Returns whether the command is executed here, with the exit status in
 * *code. */
static bool run_here(int n, char **argv, int *code)
{
	bool is_check = !strcmp(argv[0], "check");
	bool good;

	if (!strcmp(argv[0], "secret")) {
		*code = ctl_secret(n - 1, argv + 1);
		return true;
	}
	if (!is_check && strcmp(argv[0], "diff") != 0)
		return false;
	*code = EXIT_USAGE;
	if (is_check ? n != 2 : n != 3) {
		fprintf(stderr, "iserctl: %s: give %s\n", argv[0],
			is_check ? "one file" : "two files");
		return true;
	}
	good = is_check ? cfg_file_check(argv[1])
			: cfg_file_diff(argv[1], argv[2]);
	*code = good ? EXIT_OK : EXIT_REFUSED;
	return true;
}

/* ---- command line ---- */

static bool is_utf8(const char *text)
{
	json_t *v = json_string(text);

	json_decref(v);
	if (!v)
		fputs("iserctl: the command line is not UTF-8, which JSON "
		      "needs\n",
		      stderr);
	return v != NULL;
}

/* Returns a value of the request. A path of a field, or the parameter path of a method, is
 * made absolute, since iserd may have another working directory. NULL: not UTF-8. */
static json_t *value_of(const char *key, const char *text, bool is_field)
{
	bool is_file =
		!is_field && !strcmp(key, "path") && *text && *text != '/';
	char *folder = is_file || is_field ? getcwd(NULL, 0) : NULL;
	char *absolute = folder && is_field
				 ? cfg_field_absolute(key, text, folder)
				 : NULL;
	json_t *value = folder && is_file
				? json_sprintf("%s/%s", folder, text)
				: json_string(absolute ? absolute : text);

	free(absolute);
	free(folder);
	return value;
}

static bool take_param(json_t *params, const char *arg, bool is_field)
{
	const char *eq = strchr(arg, '=');
	char key[64];

	if (!is_utf8(arg))
		return false;
	if (!eq || eq == arg || (size_t)(eq - arg) >= sizeof(key)) {
		fprintf(stderr,
			"iserctl: %s: not a parameter; give KEY=VALUE\n", arg);
		return false;
	}
	memcpy(key, arg, (size_t)(eq - arg));
	key[eq - arg] = '\0';
	if (json_object_get(params, key)) {
		fprintf(stderr, "iserctl: %s: given twice; give it once\n",
			key);
		return false;
	}
	return !json_object_set_new(params, key,
				    value_of(key, eq + 1, is_field));
}

static void print_nouns(FILE *f)
{
	const struct rpc_noun *all;
	size_t n;

	fputs("\nNouns with their verbs; iserd.yaml(5) describes the "
	      "fields.\n",
	      f);
	all = rpc_nouns(&n);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "    %s ", all[i].name);
		for (unsigned v = 0; v < RPC_VERBS && all[i].verbs[v]; v++)
			fprintf(f, "%s%s", v ? "|" : "", all[i].verbs[v]);
		fprintf(f, "%s%s\n%20s%s\n", all[i].arg ? " " : "",
			all[i].arg ? all[i].arg : "", "", all[i].help);
	}
}

static const char usage_lines[] =
	"usage: iserctl [OPTION]... METHOD [KEY=VALUE]...\n"
	"       iserctl [OPTION]... NOUN VERB [NAME] [FIELD=VALUE]...\n"
	"       iserctl [OPTION]... top [of=luns|sessions] [sort=COLUMN]\n"
	"                              [interval=SECONDS] [count=N]\n"
	"       iserctl [OPTION]... events [count=N]\n"
	"       iserctl import [OPTION]... FILE\n"
	"       iserctl check FILE\n"
	"       iserctl diff FILE FILE\n"
	"       iserctl secret [bits=N]\n"
	"\n";

static void print_usage(FILE *f)
{
	static const struct opt_parser p = {
		.groups = { { rows, sizeof(rows) / sizeof(rows[0]), NULL } },
	};
	const struct rpc_method *m;
	char usage[128], options[2048];
	size_t n;

	fputs(usage_lines, f);
	fputs("Sends a request to the iserd that was started with --control "
	      "PATH.\n"
	      "top shows the rates of LUNs or sessions until q is typed.\n"
	      "Without iserd, check validates a configuration file, diff "
	      "prints how\n"
	      "the second file differs from the first, and secret prints a "
	      "random CHAP\n"
	      "secret (bits=96 for Windows, which takes 16 characters).\n"
	      "\n",
	      f);
	m = rpc_methods(&n);
	for (size_t i = 0; i < n; i++) {
		int width;

		rpc_usage(&m[i], usage, sizeof(usage));
		width = fprintf(f, "  %s%s%s", m[i].name, *usage ? " " : "",
				usage);
		if (width > 18) {
			fputc('\n', f);
			width = 0;
		}
		fprintf(f, "%*s%s\n", 20 - width, "", m[i].help);
	}
	print_nouns(f);
	opt_help(&p, 24, options, sizeof(options));
	fprintf(f,
		"\n%s\n"
		"exit status: 0 done, 1 refused, 2 bad command line, 3 no "
		"iserd there,\n"
		"or no answer, 4 permission denied\n",
		options);
}

/* Takes an operand without a key: the first parameter of its method. */
static bool take_bare(struct command *c, const char *key, const char *arg)
{
	json_t *value = value_of(key, arg, false);

	if (!value)
		fprintf(stderr, "iserctl: %s: not UTF-8, which JSON needs\n",
			arg);
	return value && !json_object_set_new(c->params, key, value);
}

/* Prints a method that is the noun alone. */
static bool refuse_noun(const struct rpc_noun *noun)
{
	fprintf(stderr, "iserctl: %s: no verb; give one of", noun->name);
	for (unsigned i = 0; i < RPC_VERBS && noun->verbs[i]; i++)
		fprintf(stderr, "%s %s", i ? "," : "", noun->verbs[i]);
	fputc('\n', stderr);
	return false;
}

/* Reads "NOUN VERB [NAME] [FIELD=VALUE]...". iserd has the errors. */
static bool take_noun(struct command *c, int n, char **argv)
{
	json_t *fields = json_object();
	int i = 2;

	snprintf(c->noun_verb, sizeof(c->noun_verb), "%.30s.%.30s", argv[0],
		 argv[1]);
	c->method = c->noun_verb;
	c->is_list = !strcmp(argv[1], "list");
	if (i < n && !strchr(argv[i], '=')) {
		if (!is_utf8(argv[i]))
			goto out;
		json_object_set_new(c->params, "name", json_string(argv[i++]));
	}
	for (; i < n; i++)
		if (!take_param(fields, argv[i], true))
			goto out;
	if (json_object_size(fields))
		json_object_set(c->params, "fields", fields);
	json_decref(fields);
	return true;
out:
	json_decref(fields);
	return false;
}

static bool take_method(struct command *c, int n, char **argv)
{
	const struct rpc_noun *noun = rpc_noun_of(argv[0]);
	const struct rpc_method *m = rpc_method_of(argv[0]);
	bool is_alone = n < 2 || strchr(argv[1], '=');
	bool is_bare = m && m->params[0].bare && !is_alone;

	c->method = argv[0];
	if (!is_utf8(c->method) || (n > 1 && !is_utf8(argv[1])))
		return false;
	if (noun && is_alone && !m)
		return refuse_noun(noun);
	if (!is_alone && strcmp(argv[0], "top") != 0 && (noun || !m))
		return take_noun(c, n, argv);
	if (is_bare && !take_bare(c, m->params[0].opt.name, argv[1]))
		return false;
	for (int i = is_bare ? 2 : 1; i < n; i++)
		if (!take_param(c->params, argv[i], false))
			return false;
	return true;
}

static bool take_operands(struct command *c, int n, char **argv)
{
	if (!take_method(c, n, argv))
		return false;
	if (c->dry_run)
		json_object_set_new(c->params, "dry-run", json_string("yes"));
	return true;
}

/* Reads the command line. False: the program ends with *code. */
static bool parse_command(struct command *c, int argc, char **argv, int *code)
{
	struct opt_parser p = {
		.command = "iserctl",
		.groups = { { rows, sizeof(rows) / sizeof(rows[0]), c } },
	};
	char shown[TEXT_ESCAPED_SIZE(OPT_WHY)];

	*code = EXIT_USAGE;
	switch (opt_parse(&p, argc - 1, argv + 1)) {
	case OPT_BAD:
		fprintf(stderr, "iserctl: %s\n",
			text_escape_str(shown, sizeof(shown), p.why));
		return false;
	case OPT_STOPPED:
		*code = EXIT_OK;
		if (!strcmp(p.stopped->name, "help"))
			print_usage(stdout);
		else
			puts("iserctl " OPENISER_VERSION);
		return false;
	default:
		break;
	}
	if (p.noperands && run_here(p.noperands, argv + 1, code))
		return false;
	if (p.noperands == 1 && !strcmp(argv[1], "help")) {
		*code = EXIT_OK;
		print_usage(stdout);
		return false;
	}
	if (p.noperands)
		return take_operands(c, p.noperands, argv + 1);
	fprintf(stderr,
		"%siserctl --help lists methods, nouns and options; iserctl tree "
		"shows what is served\n",
		usage_lines);
	return false;
}

static int send_command(const struct command *c)
{
	const struct ctl_call call = { .path = c->socket,
				       .method = c->method,
				       .params = c->params,
				       .seconds = c->timeout };
	struct rpc_link l = RPC_LINK_NONE;
	json_t *answer = NULL;
	int code = ctl_open(&l, c->socket, c->timeout);
	char why[RPC_UNKNOWN];

	/* with iserd there, which may be of a later version, it answers */
	if (code != EXIT_OK && rpc_unknown(c->method, why)) {
		fprintf(stderr, "iserctl: %s\n", why);
		code = EXIT_USAGE;
	}
	if (code == EXIT_OK)
		code = ctl_call(&l, &call, &answer);
	if (code == EXIT_OK)
		code = print_answer(answer, c);
	json_decref(answer);
	rpc_link_close(&l);
	return code;
}

static int run_command(const struct command *c)
{
	if (!strcmp(c->method, "top"))
		return top_run(c->socket, c->timeout, c->params);
	if (!strcmp(c->method, "events"))
		return follow_run(c->socket, c->timeout, c->json, c->params);
	return send_command(c);
}

int main(int argc, char **argv)
{
	struct command c = { 0 };
	int code = EXIT_REFUSED;

	standard_open();
	if (argc > 1 && !strcmp(argv[1], "import"))
		return standard_end("iserctl", import_main(argc - 1, argv + 1),
				    EXIT_REFUSED);
	c.params = json_object();
	if (c.params && parse_command(&c, argc, argv, &code))
		code = run_command(&c);
	json_decref(c.params);
	return standard_end("iserctl", code, EXIT_REFUSED);
}
