/* SPDX-License-Identifier: BSD-2-Clause */
/* confirm.c: the end of a handover: the new iserd sends the token that was handed
 * over to it, the old one answers with "go". A line each. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/takeover.h"
#include "io/io.h"

static const char go[] = "go";

/* Waits until the socket has bytes or an end. False: not by the limit. */
static bool wait_for_bytes(int sock, xtime limit)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int n;

	do {
		xtime left = limit - io_now_exact();

		n = left > 0 ? poll(&p, 1, (int)(left / XTIME_MS) + 1) : 0;
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ETIMEDOUT;
	return n > 0;
}

/* Reads a line, byte by byte, since what follows is not for this function. Returns
 * whether it is `text`; if not, errno has the reason. */
static bool expect_line(int sock, const char *text, xtime limit)
{
	char line[HANDED_TOKEN + 1];
	size_t n = 0;

	while (wait_for_bytes(sock, limit)) {
		ssize_t got = recv(sock, line + n, 1, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got < 0)
			return false;
		if (got == 0 || (line[n] != '\n' && n + 1 == sizeof(line))) {
			errno = got ? EPROTO : ECONNRESET;
			return false;
		}
		if (line[n++] != '\n')
			continue;
		errno = EPROTO;
		return n - 1 == strlen(text) && !memcmp(line, text, n - 1);
	}
	return false;
}

static bool send_line(int sock, const char *text)
{
	char line[HANDED_TOKEN + 1];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	return send(sock, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n;
}

bool handover_confirm(const struct handover *h, int sock, xtime limit)
{
	return send_line(sock, h->token) && expect_line(sock, go, limit);
}

bool handover_await(const struct handover *h, int sock, xtime limit)
{
	return expect_line(sock, h->token, limit);
}

bool handover_go(int sock)
{
	return send_line(sock, go);
}
