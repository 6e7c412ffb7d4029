/* SPDX-License-Identifier: BSD-2-Clause */
/* link.c: requests to the control socket of iserd (JSON-RPC 2.0, a line each). */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tools/tgtadm/tgtadm.h"

#define ANSWER_TIME 60		/* seconds */
#define ANSWER_MAX  (64u << 20) /* bytes */

static bool fail(struct tgtadm *t, const char *what, const char *why)
{
	t->code = 0;
	snprintf(t->why, sizeof(t->why), "%.120s: %s%s%.200s", t->socket, what,
		 why ? ": " : "", why ? why : "");
	return false;
}

static bool connect_socket(struct tgtadm *t)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t len = strlen(t->socket);

	if (t->fd >= 0)
		return true;
	if (len >= sizeof(sa.sun_path))
		return fail(t, "the path is too long for a socket", NULL);
	memcpy(sa.sun_path, t->socket, len + 1);
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->fd < 0)
		return fail(t, "cannot make a socket", strerror(errno));
	if (!connect(t->fd, (struct sockaddr *)&sa, sizeof(sa)))
		return true;
	fail(t,
	     "no iserd there; start iserd with --control and this path, or "
	     "set ISER_TGTADM_SOCKET",
	     strerror(errno));
	tgtadm_hang_up(t);
	return false;
}

void tgtadm_hang_up(struct tgtadm *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	free(t->in);
	t->in = NULL;
	t->in_len = t->in_size = 0;
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static bool send_line(struct tgtadm *t, const char *text)
{
	size_t len = strlen(text), sent = 0;
	ssize_t n;

	while (sent < len) {
		n = send(t->fd, text + sent, len - sent, MSG_NOSIGNAL);
		if (n < 0)
			return fail(t, "cannot send to iserd", strerror(errno));
		sent += (size_t)n;
	}
	return true;
}

/* Makes room for more of the answer. */
static bool grow(struct tgtadm *t)
{
	size_t size = t->in_size ? 2 * t->in_size : 65536;
	char *more;

	if (t->in_size - t->in_len > 1)
		return true;
	more = size <= ANSWER_MAX ? realloc(t->in, size) : NULL;
	if (!more)
		return fail(t, "the answer of iserd is too long", NULL);
	t->in = more;
	t->in_size = size;
	return true;
}

/* Reads a line, without its end, into t->in. */
static bool read_line(struct tgtadm *t)
{
	time_t end = now() + ANSWER_TIME;
	ssize_t n;

	t->in_len = 0;
	for (;;) {
		struct pollfd p = { t->fd, POLLIN, 0 };
		time_t left = end - now();

		if (left <= 0 || poll(&p, 1, (int)left * 1000) == 0)
			return fail(t,
				    "no answer from iserd; the request may "
				    "still be carried out",
				    NULL);
		if (!grow(t))
			return false;
		n = recv(t->fd, t->in + t->in_len, t->in_size - t->in_len - 1,
			 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(t, "iserd closed the connection", NULL);
		t->in_len += (size_t)n;
		if (t->in[t->in_len - 1] == '\n')
			break;
	}
	t->in[t->in_len] = '\0';
	return true;
}

/* Returns the result of an answer, or NULL with the error in t. */
static json_t *result_of(struct tgtadm *t, const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(json_object_get(error, "message"));
	json_t *result = json_object_get(answer, "result");

	if (result)
		return json_incref(result);
	if (!text) {
		fail(t, "the answer is not one of iserd", NULL);
		return NULL;
	}
	t->code = (int)json_integer_value(json_object_get(error, "code"));
	t->code = t->code ? t->code : -1;
	if (!strncmp(text, "patch: ", 7)) /* not a word of this program */
		text += 7;
	snprintf(t->why, sizeof(t->why), "%.500s", text);
	return NULL;
}

json_t *tgtadm_call(struct tgtadm *t, const char *method, json_t *params)
{
	json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0",
				    "id", 1, "method", method, "params",
				    params ? params : json_object());
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_t *answer = NULL, *result = NULL;

	json_decref(request);
	if (!text)
		fail(t, "the request is not UTF-8", NULL);
	else if (connect_socket(t) && send_line(t, text) &&
		 send_line(t, "\n") && read_line(t)) {
		answer = json_loads(t->in, 0, NULL);
		result = result_of(t, answer);
	}
	json_decref(answer);
	free(text);
	return result;
}

int tgtadm_failed(const struct tgtadm *t)
{
	if (t->code)
		return tgtadm_refuse("%s: %s", tgtadm_invalid, t->why);
	tgtadm_say("%s", t->why);
	return TGTADM_NO_DAEMON;
}
