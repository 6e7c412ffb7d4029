/* SPDX-License-Identifier: BSD-2-Clause */
/* rpc_link.c: requests to the control socket of iserd. */
#include "tools/rpc_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64u << 20)
#define FIRST_SIZE     65536u

int rpc_link_open(struct rpc_link *l, const char *path, unsigned seconds)
{
	const struct timeval limit = { .tv_sec = (time_t)seconds };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int err = 0;

	if (len >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, len + 1);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return -errno;
	/* for connect() with a full backlog, too */
	if (setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(l->fd, (struct sockaddr *)&sa, sizeof(sa)))
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (err)
		rpc_link_close(l);
	return err;
}

void rpc_link_close(struct rpc_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->in);
	*l = RPC_LINK_NONE;
}

/* An iserd with too many clients sends an error and closes the connection: that error is
 * there to be read, so an error here does not matter. */
static void send_line(struct rpc_link *l, const char *text)
{
	size_t len = strlen(text), sent = 0;
	ssize_t n = 0;

	while (sent < len && n >= 0) {
		n = send(l->fd, text + sent, len - sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			n = 0;
		sent += n > 0 ? (size_t)n : 0;
	}
}

/* ---- answers ---- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * (int64_t)1000 + ts.tv_nsec / 1000000;
}

/* Waits for input until `end`; 0: for ever. */
static int wait_for_input(const struct rpc_link *l, int64_t end)
{
	struct pollfd p = { l->fd, POLLIN, 0 };
	int n;

	do {
		int64_t left = end ? end - now_ms() : 0;

		if (end && left <= 0)
			return -ETIMEDOUT;
		n = poll(&p, 1, end ? (int)left : -1);
	} while (!n || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

static int make_room(struct rpc_link *l)
{
	size_t size = l->size ? 2 * l->size : FIRST_SIZE;
	char *more;

	if (l->len < l->size)
		return 0;
	if (size > LINE_MAX_BYTES)
		return -EMSGSIZE;
	more = realloc(l->in, size);
	if (!more)
		return -ENOMEM;
	l->in = more;
	l->size = size;
	return 0;
}

/* Reads until l->in has a line, whose length becomes *len. */
static int fill_line(struct rpc_link *l, int64_t end, size_t *len)
{
	size_t looked_at = 0;

	for (;;) {
		const char *nl = memchr(l->in ? l->in + looked_at : "", '\n',
					l->len - looked_at);
		ssize_t n;
		int err;

		if (nl) {
			*len = (size_t)(nl - l->in);
			return 0;
		}
		looked_at = l->len;
		err = make_room(l);
		if (!err)
			err = wait_for_input(l, end);
		if (err)
			return err;
		n = recv(l->fd, l->in + l->len, l->size - l->len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ECONNRESET;
		l->len += (size_t)n;
	}
}

int rpc_link_read(struct rpc_link *l, unsigned seconds, json_t **line)
{
	size_t len;
	int err = fill_line(l, seconds ? now_ms() + (int64_t)seconds * 1000 : 0,
			    &len);

	if (err)
		return err;
	*line = json_loadb(l->in, len, 0, NULL);
	l->len -= len + 1;
	memmove(l->in, l->in + len + 1, l->len); /* events that follow */
	return *line ? 0 : -EPROTO;
}

int rpc_link_call(struct rpc_link *l, const char *method, json_t *params,
		  unsigned seconds, json_t **answer)
{
	json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0",
				    "id", 1, "method", method, "params",
				    params ? params : json_object());
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;

	json_decref(request);
	if (!text)
		return -EILSEQ;
	send_line(l, text);
	send_line(l, "\n");
	free(text);
	return rpc_link_read(l, seconds, answer);
}
