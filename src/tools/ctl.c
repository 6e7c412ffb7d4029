/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl.c: requests to the management socket of iserd. */
#include "tools/ctl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/escape.h"

#define REQUEST_MAX 65536 /* bytes that iserd takes */

/* ---- the wire ---- */

/* What SIGALRM prints: an iserd that was stopped, or another program, may never
 * answer. */
static char no_answer[256];

static void (*on_timeout)(void);

static void report_timeout(int signal)
{
	(void)signal;
	if (on_timeout)
		on_timeout();
	(void)!write(STDERR_FILENO, no_answer, strlen(no_answer));
	_exit(EXIT_NO_DAEMON);
}

void ctl_limit_time(const char *path, unsigned seconds, void (*expired)(void))
{
	on_timeout = expired;
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
int ctl_connect(const char *path, int *code)
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

char *ctl_request(const char *method, json_t *params)
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
void ctl_send(int fd, char *text)
{
	size_t len = strlen(text), sent = 0;
	ssize_t n = 0;

	text[len++] = '\n'; /* replaces the NUL */
	while (sent < len && n >= 0) {
		n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
}

json_t *ctl_read(FILE *f)
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
void ctl_make_plain(json_t *v)
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
			ctl_make_plain(item);
	}
	json_object_foreach_safe(v, next, key, item)
	{
		if (json_is_string(item))
			json_object_set_new(
				v, key, plain_string(json_string_value(item)));
		else
			ctl_make_plain(item);
	}
}
