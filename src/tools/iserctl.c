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
#include "daemon/check.h"
#include "daemon/rpc/api.h"
#include "tools/ctl.h"
#include "tools/import/import.h"
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
	const char *method;
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
	  .help = "apply: only print what would change" },
	{ .name = "json",
	  .letter = 'j',
	  OPT_FLAG(struct command, json),
	  .help = "print the answer as JSON" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
	{ .name = "version", .letter = 'V', OPT_STOP, .help = "the version" },
};

/* ---- the answer as text ---- */

static void print_value(const json_t *v, int depth);

static bool is_plain(const json_t *v)
{
	return !json_is_object(v) && !json_is_array(v);
}

static void print_plain(const json_t *v)
{
	if (json_is_string(v))
		puts(json_string_value(v));
	else if (json_is_integer(v))
		printf("%lld\n", (long long)json_integer_value(v));
	else if (json_is_real(v))
		printf("%g\n", json_real_value(v));
	else
		puts(json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-");
}

static void print_object(const json_t *v, int depth)
{
	const char *key;
	json_t *item;
	int width = 0;

	json_object_foreach((json_t *)v, key,
			    item) if ((int)strlen(key) > width) width =
		(int)strlen(key);
	json_object_foreach((json_t *)v, key, item)
	{
		printf("%*s%-*s  ", 2 * depth, "", is_plain(item) ? width : 0,
		       key);
		if (!is_plain(item))
			putchar('\n');
		print_value(item, depth + 1);
	}
}

static void print_array(const json_t *v, int depth)
{
	json_t *item;
	size_t i;

	if (json_array_size(v) == 0)
		printf("%*s(none)\n", 2 * depth, "");
	json_array_foreach((json_t *)v, i, item)
	{
		if (is_plain(item))
			printf("%*s", 2 * depth, "");
		else if (i)
			putchar('\n');
		print_value(item, depth);
	}
}

static void print_value(const json_t *v, int depth)
{
	if (json_is_object(v))
		print_object(v, depth);
	else if (json_is_array(v))
		print_array(v, depth);
	else
		print_plain(v);
}

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

static int print_answer(json_t *answer, bool as_json, bool is_text)
{
	const json_t *error = json_object_get(answer, "error");
	const json_t *result;
	const char *message;

	result = json_object_get(answer, "result");
	if (is_text && !as_json && json_is_string(result)) {
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
	if (as_json) {
		json_dumpf(result, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	} else {
		print_value(result, 0);
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

static bool take_param(json_t *params, const char *arg)
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
	return !json_object_set_new(params, key, json_string(eq + 1));
}

static void print_usage(FILE *f)
{
	static const struct opt_parser p = {
		.groups = { { rows, sizeof(rows) / sizeof(rows[0]), NULL } },
	};
	const struct rpc_method *m;
	char usage[128], options[2048];
	size_t n;

	fputs("usage: iserctl [OPTION]... METHOD [KEY=VALUE]...\n"
	      "       iserctl [OPTION]... top [of=luns|sessions] "
	      "[sort=COLUMN]\n"
	      "                              [interval=SECONDS] [count=N]\n"
	      "       iserctl import [OPTION]... FILE\n"
	      "       iserctl check FILE\n"
	      "       iserctl diff FILE FILE\n"
	      "\n"
	      "Sends a request to the iserd that was started with --control "
	      "PATH.\n"
	      "top shows the rates of LUNs or sessions until q is typed.\n"
	      "Without iserd, check validates a configuration file, and diff "
	      "prints how\n"
	      "the second file differs from the first.\n"
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
	opt_help(&p, 24, options, sizeof(options));
	fprintf(f,
		"\n%s\n"
		"exit status: 0 done, 1 refused, 2 bad command line, 3 no "
		"iserd there,\n"
		"or no answer, 4 permission denied\n",
		options);
}

/* Returns whether operand i is the file of apply or save. */
static bool is_file(const struct command *c, int i, const char *arg)
{
	return i == 1 && !strchr(arg, '=') &&
	       (!strcmp(c->method, "apply") || !strcmp(c->method, "save"));
}

/* iserd may have another working directory. */
static bool take_file(struct command *c, const char *arg)
{
	char *folder = *arg == '/' ? NULL : getcwd(NULL, 0);
	json_t *path = *arg == '/' ? json_string(arg)
				   : json_sprintf("%s/%s", folder, arg);

	free(folder);
	if (!path)
		fprintf(stderr, "iserctl: %s: not UTF-8, which JSON needs\n",
			arg);
	return path && !json_object_set_new(c->params, "path", path);
}

static bool take_operands(struct command *c, int n, char **argv)
{
	c->method = argv[0];
	if (!is_utf8(c->method))
		return false;
	for (int i = 1; i < n; i++)
		if (!(is_file(c, i, argv[i]) ? take_file(c, argv[i])
					     : take_param(c->params, argv[i])))
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
	if (p.noperands)
		return take_operands(c, p.noperands, argv + 1);
	print_usage(stderr);
	return false;
}

static int send_command(const struct command *c)
{
	char *text = ctl_request(c->method, c->params);
	int code = EXIT_REFUSED, fd;
	json_t *answer;
	FILE *f;

	if (!text)
		return code;
	ctl_limit_time(c->socket, c->timeout, NULL);
	fd = ctl_connect(c->socket, &code);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		free(text);
		return code;
	}
	ctl_send(fd, text);
	free(text);
	answer = ctl_read(f);
	alarm(0);
	if (answer)
		code = print_answer(answer, c->json,
				    !strcmp(c->method, "dump"));
	else
		fprintf(stderr, "iserctl: %s: iserd closed the connection\n",
			c->socket);
	json_decref(answer);
	fclose(f);
	return code;
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
		code = !strcmp(c.method, "top")
			       ? top_run(c.socket, c.timeout, c.params)
			       : send_command(&c);
	json_decref(c.params);
	return standard_end("iserctl", code, EXIT_REFUSED);
}
