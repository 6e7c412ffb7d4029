/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iserctl.c: asks a running iserd over its management socket (JSON-RPC 2.0,
 * one request a line) and prints the answer for people, or as JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef OPENISER_VERSION
# define OPENISER_VERSION "unknown"
#endif

#define DEFAULT_SOCKET "/run/iserd.sock"

enum {
	EXIT_OK = 0,
	EXIT_REFUSED = 1, /* iserd said no, or nonsense */
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3, /* nobody answers on the socket */
};

static const char usage_text[] =
	"usage: iserctl [--socket PATH] [--json] METHOD [KEY=VALUE]...\n"
	"\n"
	"Asks the iserd that was started with --control PATH.\n"
	"\n"
	"  status            listeners, sessions, counters\n"
	"  luns              what is served\n"
	"  log [level=LEVEL] shows or sets the log level\n"
	"  reservations      who has registered and reserved what\n"
	"  eject lun=N [force=yes]  takes the medium out of a CD/DVD drive\n"
	"  insert lun=N path=IMAGE [force=yes]  puts another one in\n"
	"  groups            target port groups (ALUA)\n"
	"  group id=ID state=STATE [preferred=yes|no]  sets one: optimized,\n"
	"                    non-optimized, standby, unavailable, transitioning\n"
	"  port id=PORT state=offline|online  tells of another iserd's port\n"
	"  shutdown          ends iserd in order\n"
	"  version           its version\n"
	"  methods           all that it knows\n"
	"\n"
	"  -s, --socket PATH  where iserd listens (" DEFAULT_SOCKET ")\n"
	"  -j, --json         the answer as JSON\n"
	"  -h, --help         this text\n"
	"  -V, --version      version\n"
	"\n"
	"exit status: 0 done, 1 refused, 2 bad command line, 3 no iserd there\n";

/* ---- the wire ---- */

static int connect_to(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "iserctl: %s: %s\n", path,
			fd < 0 ? strerror(errno) : "path too long");
		goto out_close;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	fprintf(stderr,
		"iserctl: no iserd on %s: %s; start it with --control %s, or "
		"name its socket with --socket\n",
		path, strerror(errno), path);
out_close:
	if (fd >= 0)
		close(fd);
	return -1;
}

/* An iserd that has no place for us says so and goes, and may have gone: what
 * can't be sent does not matter, there is something to read. */
static bool send_request(int fd, const char *method, json_t *params)
{
	json_t *request =
		json_pack("{s:s, s:i, s:s, s:O}", "jsonrpc", "2.0", "id", 1,
			  "method", method, "params", params);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0, sent = 0;
	ssize_t n = 0;

	if (text)
		text[len++] = '\n'; /* in the place of the NUL */
	while (sent < len && n >= 0) {
		n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
	json_decref(request);
	free(text);
	return len > 0;
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

/* ---- for people ---- */

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

static int print_answer(const json_t *answer, bool as_json)
{
	const json_t *error = json_object_get(answer, "error");
	const json_t *result = json_object_get(answer, "result");
	const char *message =
		json_string_value(json_object_get(error, "message"));

	if (error || !result) {
		fprintf(stderr, "iserctl: %s\n",
			message ? message : "iserd gave no usable answer");
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

struct command {
	const char *socket, *method;
	json_t *params;
	bool json;
};

static bool take_param(json_t *params, const char *arg)
{
	const char *eq = strchr(arg, '=');
	char key[64];

	if (!eq || eq == arg || (size_t)(eq - arg) >= sizeof(key)) {
		fprintf(stderr, "iserctl: %s: write KEY=VALUE\n", arg);
		return false;
	}
	memcpy(key, arg, (size_t)(eq - arg));
	key[eq - arg] = '\0';
	return !json_object_set_new(params, key, json_string(eq + 1));
}

/* True to go on; false to end with *code. */
static bool parse(struct command *c, int argc, char **argv, int *code)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	*code = EXIT_USAGE;
	while ((opt = getopt_long(argc, argv, "s:jhV", options, NULL)) != -1) {
		if (opt == 's') {
			c->socket = optarg;
		} else if (opt == 'j') {
			c->json = true;
		} else if (opt == 'h' || opt == 'V') {
			fputs(opt == 'h' ? usage_text
					 : "iserctl " OPENISER_VERSION "\n",
			      stdout);
			*code = EXIT_OK;
			return false;
		} else {
			return false;
		}
	}
	if (optind == argc) {
		fputs(usage_text, stderr);
		return false;
	}
	c->method = argv[optind++];
	while (optind < argc)
		if (!take_param(c->params, argv[optind++]))
			return false;
	return true;
}

static int ask(const struct command *c)
{
	int fd = connect_to(c->socket), code = EXIT_REFUSED;
	json_t *answer;
	FILE *f;

	if (fd < 0)
		return EXIT_NO_DAEMON;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return EXIT_REFUSED;
	}
	answer = send_request(fd, c->method, c->params) ? read_answer(f) : NULL;
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
	struct command c = { .socket = DEFAULT_SOCKET };
	int code = EXIT_REFUSED;

	c.params = json_object();
	if (c.params && parse(&c, argc, argv, &code))
		code = ask(&c);
	json_decref(c.params);
	return code;
}
