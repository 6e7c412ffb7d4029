/* SPDX-License-Identifier: BSD-2-Clause */
/* confirm.c: the end of a handover, in lines of the control socket:
 *
 *   new  TOKEN    all that was handed over has arrived
 *   new  ready    all units, listeners and threads are open; nothing is served yet
 *   old  go       the new process is the main process of the service
 *   new  serving  from here on the new process serves; the old one ends
 *
 * Until "serving" the old process keeps what it has handed over, and serves again
 * if the connection ends. Exactly one of them serves: after its limit the old
 * process shuts down the socket for reading, so that "serving" has either arrived
 * before or cannot be sent any more. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/upgrade/takeover.h"
#include "io/io.h"

static const char ready[] = "ready", go[] = "go", serving[] = "serving",
		  stop[] = "stop";

/* Waits until the socket has bytes or an end. False: not by the limit, which may
 * have passed. */
static bool wait_for_bytes(int sock, xtime limit)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int n;

	do {
		xtime left = limit - io_now_exact();

		n = poll(&p, 1, left > 0 ? (int)(left / XTIME_MS) + 1 : 0);
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

bool handover_confirm(const struct handover *h, int sock)
{
	return send_line(sock, h->token);
}

bool handover_serve(int sock, xtime limit)
{
	return send_line(sock, ready) && expect_line(sock, go, limit) &&
	       send_line(sock, serving);
}

bool handover_await(const struct handover *h, int sock, xtime limit)
{
	return expect_line(sock, h->token, limit);
}

bool handover_await_ready(int sock, xtime limit)
{
	return expect_line(sock, ready, limit);
}

bool handover_go(int sock, xtime limit)
{
	if (!send_line(sock, go))
		return false;
	if (expect_line(sock, serving, limit))
		return true;
	if (errno != ETIMEDOUT)
		return false;
	if (!shutdown(sock, SHUT_RD) && expect_line(sock, serving, 0))
		return true;
	errno = ETIMEDOUT;
	return false;
}

void handover_refuse(int sock, xtime limit)
{
	struct pollfd p = { .fd = sock }; /* POLLHUP is always reported */
	xtime left;
	int n;

	(void)send_line(sock, stop);
	do {
		left = limit - io_now_exact();
		n = left > 0 ? poll(&p, 1, (int)(left / XTIME_MS) + 1) : 0;
	} while ((n < 0 && errno == EINTR) ||
		 (n > 0 && !(p.revents & (POLLHUP | POLLERR | POLLNVAL))));
}
