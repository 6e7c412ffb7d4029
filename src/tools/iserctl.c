/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iserctl.c: sends one request to a running iserd over its management socket
 * (JSON-RPC 2.0, a line each) and prints the answer as text, or as JSON.
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/opt.h"
#include "daemon/rpc/api.h"
#include "tools/standard.h"

#ifndef OPENISER_VERSION
# define OPENISER_VERSION "unknown"
#endif

#define DEFAULT_SOCKET "/run/iserd.sock"
#define ANSWER_MAX     86400 /* seconds */
#define REQUEST_MAX    65536 /* bytes that iserd takes */

enum {
	EXIT_OK = 0,
	EXIT_REFUSED = 1, /* the answer is an error, or not valid */
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3, /* no process listens on the socket, or answers */
	EXIT_PERMISSION = 4,
};

/* What the command line asks for. */
struct command {
	const char *socket;
	unsigned timeout; /* seconds */
	bool json;
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
	{ .name = "json",
	  .letter = 'j',
	  OPT_FLAG(struct command, json),
	  .help = "print the answer as JSON" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
	{ .name = "version", .letter = 'V', OPT_STOP, .help = "the version" },
};

/* ---- the wire ---- */

/* What SIGALRM prints: an iserd that was stopped, or another program, may never
 * answer. */
static char no_answer[256];

static void report_timeout(int signal)
{
	(void)signal;
	(void)!write(STDERR_FILENO, no_answer, strlen(no_answer));
	_exit(EXIT_NO_DAEMON);
}

static void limit_time(const char *path, unsigned seconds)
{
	snprintf(no_answer, sizeof(no_answer),
		 "iserctl: %s: no answer within %u s; the request may still be "
		 "carried out; --timeout waits longer\n",
		 path, seconds);
	signal(SIGALRM, report_timeout);
	alarm(seconds);
}

/* Prints why there is no connection; returns the exit status for that. */
static int report_no_connection(const char *path, int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		fprintf(stderr,
			"iserctl: %s: permission denied; run iserctl as root "
			"or as the user that iserd runs as\n",
			path);
		return EXIT_PERMISSION;
	default:
		fprintf(stderr,
			"iserctl: %s: no iserd: %s; start iserd with --control "
			"%s, or give its socket with --socket\n",
			path, strerror(error), path);
		return EXIT_NO_DAEMON;
	}
}

/* Returns a connected socket. -1: *code is the exit status. */
static int connect_to(const char *path, int *code)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "iserctl: %s: %s\n", path,
			fd < 0 ? strerror(errno) : "path too long");
		*code = EXIT_USAGE;
		goto out_close;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	*code = report_no_connection(path, errno);
out_close:
	if (fd >= 0)
		close(fd);
	return -1;
}

static char *request_text(const char *method, json_t *params)
{
	json_t *request =
		json_pack("{s:s, s:i, s:s, s:O}", "jsonrpc", "2.0", "id", 1,
			  "method", method, "params", params);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;

	json_decref(request);
	if (!text) {
		fputs("iserctl: out of memory\n", stderr);
	} else if (strlen(text) >= REQUEST_MAX) {
		fprintf(stderr,
			"iserctl: the request is longer than the %d "
			"bytes that iserd takes\n",
			REQUEST_MAX);
		free(text);
		text = NULL;
	}
	return text;
}

/* Errors do not matter: an iserd with too many clients sends an error and closes
 * the connection, and that error is there to be read. */
static void send_request(int fd, char *text)
{
	size_t len = strlen(text), sent = 0;
	ssize_t n = 0;

	text[len++] = '\n'; /* replaces the NUL */
	while (sent < len && n >= 0) {
		n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
}

static json_t *read_answer(FILE *f)
{
	char *line = NULL;
	json_t *answer = NULL;
	size_t size = 0;

	if (getline(&line, &size, f) > 0)
		answer = json_loads(line, 0, NULL);
	free(line);
	return answer;
}

/* ---- escaping ---- */

static json_t *plain_string(const char *text)
{
	size_t size = TEXT_ESCAPED_SIZE(strlen(text));
	char *plain = malloc(size);
	json_t *v =
		plain ? json_string(text_escape_str(plain, size, text)) : NULL;

	free(plain);
	return v;
}

/* Escapes every string in v: initiators choose their names. */
static void make_plain(json_t *v)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	json_array_foreach(v, i, item)
	{
		if (json_is_string(item))
			json_array_set_new(
				v, i, plain_string(json_string_value(item)));
		else
			make_plain(item);
	}
	json_object_foreach_safe(v, next, key, item)
	{
		if (json_is_string(item))
			json_object_set_new(
				v, key, plain_string(json_string_value(item)));
		else
			make_plain(item);
	}
}

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

static int print_answer(json_t *answer, bool as_json)
{
	const json_t *error = json_object_get(answer, "error");
	const json_t *result;
	const char *message;

	make_plain(answer);
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
	      "\n"
	      "Sends a request to the iserd that was started with --control "
	      "PATH.\n"
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

static bool take_operands(struct command *c, int n, char **argv)
{
	c->method = argv[0];
	if (!is_utf8(c->method))
		return false;
	for (int i = 1; i < n; i++)
		if (!take_param(c->params, argv[i]))
			return false;
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
	if (p.noperands)
		return take_operands(c, p.noperands, argv + 1);
	print_usage(stderr);
	return false;
}

static int send_command(const struct command *c)
{
	char *text = request_text(c->method, c->params);
	int code = EXIT_REFUSED, fd;
	json_t *answer;
	FILE *f;

	if (!text)
		return code;
	limit_time(c->socket, c->timeout);
	fd = connect_to(c->socket, &code);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		free(text);
		return code;
	}
	send_request(fd, text);
	free(text);
	answer = read_answer(f);
	alarm(0);
	if (answer)
		code = print_answer(answer, c->json);
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
	c.params = json_object();
	if (c.params && parse_command(&c, argc, argv, &code))
		code = send_command(&c);
	json_decref(c.params);
	return standard_end("iserctl", code, EXIT_REFUSED);
}
