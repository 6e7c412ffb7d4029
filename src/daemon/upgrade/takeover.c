/* SPDX-License-Identifier: BSD-2-Clause */
/* takeover.c: both ends of a live upgrade (takeover.h). */
#include "daemon/upgrade/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "daemon/apply/units.h"
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/serve/portals.h"
#include "daemon/shutdown.h"
#include "daemon/upgrade/service.h"

/* How long the new process waits: longer than the limits of shutdown.c. The old
 * process waits as long for each part that the new one has not read. */
#define WAIT_SECONDS 30
/* How long the old process waits: for the confirmation, until the new one can
 * serve, until it does, and until it has ended. */
#define CONFIRM_TIME (10 * XTIME_S)
#define OPEN_TIME    (60 * XTIME_S)
#define GO_TIME	     (10 * XTIME_S)
#define LEAVE_TIME   (5 * XTIME_S)
/* Between two signs of life for the service manager meanwhile. */
#define ALIVE_TIME (200 * XTIME_MS)

/* ---- the new process ---- */

static int connect_control(const char *path)
{
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,"
				  "\"method\":\"takeover\"}\n";
	const struct timeval wait = { .tv_sec = WAIT_SECONDS };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) &&
	    !connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) &&
	    send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) == sizeof(ask) - 1)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool takeover_ask(struct daemon *d, const char *path)
{
	int fd = connect_control(path);
	char why[256];

	if (fd < 0) {
		say("--takeover: %s: %s; start without --takeover if no iserd "
		    "is running there",
		    path, strerror(errno));
		return false;
	}
	d->inherited = handover_receive(fd, why, sizeof(why));
	if (d->inherited && handover_confirm(d->inherited, fd)) {
		d->handover_sock = fd;
		return true;
	}
	say("--takeover: %s: %s", path,
	    d->inherited ? "that iserd has ended" : why);
	close(fd);
	return false;
}

bool takeover_serve(struct daemon *d)
{
	if (d->handover_sock < 0)
		return true;
	if (!handover_serve(d->handover_sock, io_now_exact() + 2 * GO_TIME)) {
		say("--takeover: %s: that iserd did not wait for this one, and "
		    "goes on serving; try again",
		    d->options.control);
		return false;
	}
	close(d->handover_sock);
	d->handover_sock = -1;
	return true;
}

/* ---- the old process ---- */

/* Copies the listening sockets: listen_close closes only its own descriptors. */
static bool copy_listeners(const struct portal *p, struct handover *h)
{
	for (unsigned i = 0; i < p->nlisteners; i++) {
		int fd = net_listener_dup(p->listeners[i]);

		if (fd < 0 || !handover_add_listener(h, fd))
			return false;
	}
	return true;
}

static bool copy_portals(const struct daemon *d, struct handover *h)
{
	for (unsigned i = 0; i < d->portals.n; i++)
		if (!copy_listeners(d->portals.all[i], h))
			return false;
	return true;
}

/* Copies the descriptors of the memory of ram: LUNs, so that the memory outlives
 * this process. */
static bool copy_memory(const struct daemon *d, struct handover *h)
{
	for (unsigned i = 0; i < d->nunits; i++) {
		const struct unit *u = d->units[i];
		struct handed_memory m = { .memory = u->memory };

		if (u->memory.fd < 0)
			continue;
		snprintf(m.key, sizeof(m.key), "%s", u->name);
		m.memory.fd = fcntl(u->memory.fd, F_DUPFD_CLOEXEC, 0);
		if (m.memory.fd < 0 || !handover_add_memory(h, &m))
			return false;
	}
	return true;
}

/* The protection information of a ram: LUN is in other memory. */
static bool has_protected_memory(const struct daemon *d)
{
	for (unsigned i = 0; i < d->nunits; i++)
		if (d->units[i]->memory.fd >= 0 && d->units[i]->lun.protection)
			return true;
	return false;
}

static void make_token(struct handover *h)
{
	uint8_t bytes[(HANDED_TOKEN - 1) / 2];

	io_random(NULL, bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(h->token + 2 * i, 3, "%02x", bytes[i]);
}

const char *takeover_begin(struct daemon *d, int sock)
{
	struct handover *h;

	if (d->phase != DAEMON_SERVING)
		return "iserd is ending";
	if (!d->options.state && dev_server_is_busy(d->server))
		return "SANITIZE or FORMAT UNIT is in progress, which only an "
		       "iserd with --state continues; try again later";
	if (has_protected_memory(d))
		return "a ram: LUN has protection information, which cannot be "
		       "handed over; stop that iserd in its place";
	h = calloc(1, sizeof(*h));
	if (h)
		make_token(h);
	if (!h || !copy_portals(d, h) || !copy_memory(d, h)) {
		handover_free(h);
		return "out of memory or descriptors";
	}
	d->handover = h;
	d->handover_sock = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (d->handover_sock < 0) {
		handover_free(h);
		d->handover = NULL;
		return "out of descriptors";
	}
	h->watchdog = service_watchdog(d);
	return NULL;
}

static bool collect_reservations(const struct daemon *d, struct handover *h)
{
	bool complete = true;

	for (unsigned i = 0; i < d->nunits; i++) {
		const struct bs *b = dev_lu_backstore(d->units[i]->lu);
		uint8_t *bytes;
		size_t len;

		if (dev_lu_hand_over(d->units[i]->lu, &bytes, &len))
			complete = false;
		else if (bytes && !handover_add_unit(h, b->uuid, bytes, len))
			complete = false;
	}
	return complete;
}

static bool collect_identities(const struct daemon *d, struct handover *h,
			       takeover_key *key_of)
{
	h->has_identities = true;
	for (unsigned i = 0; i < d->nunits; i++) {
		const struct unit *u = d->units[i];
		uint8_t key[16];

		key_of(u, key);
		if (!handover_add_identity(h, key, u->uuid))
			return false;
	}
	return true;
}

static void collect_port(void *arg, const char *name, uint16_t id)
{
	struct daemon *d = arg;

	if (!handover_add_port(d->handover, name, id))
		say("out of memory: the next iserd does not get the identifier "
		    "of the target port %s",
		    name);
}

void takeover_collect(struct daemon *d, takeover_key *key_of)
{
	if (d->handover && !d->model->is_command_line)
		dev_ports_each(d->server, collect_port, d);
	if (d->handover && !collect_reservations(d, d->handover))
		say("out of memory: the next iserd does not get all persistent "
		    "reservations");
	if (d->handover && !collect_identities(d, d->handover, key_of))
		say("out of memory: the next iserd does not get all "
		    "identities");
}

/* Sends the handover and waits for its confirmation. False: errno has the reason. */
static bool hand_over(const struct daemon *d)
{
	const struct timeval wait = { .tv_sec = WAIT_SECONDS };
	int sock = d->handover_sock;
	int flags = fcntl(sock, F_GETFL);

	/* the socket was that of a client, which does not block */
	return flags >= 0 && !fcntl(sock, F_SETFL, flags & ~O_NONBLOCK) &&
	       !setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &wait,
			   sizeof(wait)) &&
	       handover_send(d->handover, sock) &&
	       handover_await(d->handover, sock, io_now_exact() + CONFIRM_TIME);
}

/* Waits until the next iserd can serve, with signs of life for the service manager.
 * False: errno has the reason. */
static bool await_ready(const struct daemon *d)
{
	xtime limit = io_now_exact() + OPEN_TIME;
	int err;

	do {
		xtime next = MIN(limit, io_now_exact() + ALIVE_TIME);

		if (handover_await_ready(d->handover_sock, next))
			return true;
		err = errno;
		service_alive(d);
	} while (err == ETIMEDOUT && io_now_exact() < limit);
	errno = err;
	return false;
}

static bool let_serve(const struct daemon *d)
{
	service_hand_over(d, d->handover_sock);
	return handover_go(d->handover_sock, io_now_exact() + GO_TIME);
}

static const char *reason_of(int err)
{
	switch (err) {
	case EAGAIN:
		return "it does not read";
	case ETIMEDOUT:
		return "it did not answer in time";
	case ECONNRESET:
		return "it has ended";
	default:
		return strerror(err);
	}
}

bool takeover_finish(struct daemon *d)
{
	bool taken;

	if (!d->handover)
		return true;
	taken = hand_over(d) && await_ready(d) && let_serve(d);
	if (!taken) {
		say("the next iserd did not take over: %s; serving again",
		    reason_of(errno));
		handover_refuse(d->handover_sock, io_now_exact() + LEAVE_TIME);
	}
	close(d->handover_sock);
	d->handover_sock = -1;
	if (!taken)
		return false;
	handover_free(d->handover);
	d->handover = NULL;
	return true;
}
