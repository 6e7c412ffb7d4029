/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.c: the addresses at which iserd listens, on sockets and RDMA devices,
 * and the limit of open files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/say.h"
#include "net/conn.h"

/* ---- sockets ---- */

static const char *listen_advice(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return "; stop the program that uses it, or choose another port, "
		       "for example --listen 127.0.0.1:0";
	case -EADDRNOTAVAIL:
		return "; this machine has no such address";
	case -EACCES:
		return "; ports below 1024 need root";
	default:
		return "";
	}
}

static bool is_wildcard(const char *address)
{
	return !strncmp(address, "0.0.0.0:", 8) ||
	       !strncmp(address, "[::]:", 5);
}

static int listen_on(struct daemon *d, const char *text)
{
	char name[NET_ADDR_STR];
	struct net_listener *n;
	struct net_addr a;
	int err;

	err = net_addr_parse_listen(&a, text, 3260);
	assert(!err); /* cfg_set_listen has checked it */
	n = net_listen(d->loops[0], &a, conns_accepted, d, &err);
	if (!n) {
		net_addr_str(&a, name);
		say("%s: cannot listen: %s%s", name, strerror(-err),
		    listen_advice(err));
		return EXIT_NETWORK;
	}
	net_listener_on_short(n, conns_short);
	d->listeners[d->nlisteners++] = n;
	net_listener_addr(n, &a);
	net_addr_str(&a, name);
	if (!is_wildcard(name) && tgt_portal_add(d->target, name)) {
		say("out of memory");
		return EXIT_ERROR;
	}
	return 0;
}

/* ---- RDMA devices ---- */

/* Logs events of RDMA devices. */
static void verbs_event(void *arg, const char *text)
{
	struct daemon *d = arg;

	trace_emit(&d->log.trace, TRACE_RDMA, "RDMA device: %s", text);
}

static int verbs_at(struct daemon *d, const struct net_addr *a)
{
	char name[NET_ADDR_STR];
	int err =
		net_verbs_listen(d->workers[0].verbs, a, conns_verbs_asked, d);

	net_addr_str(a, name);
	if (err != -ENODEV)
		trace_emit(&d->log.trace, TRACE_RDMA, "RDMA devices at %s: %s",
			   name, err ? strerror(-err) : "listening");
	return err;
}

/* Opens a channel of the connection manager for each worker, since connections
 * are distributed over them. */
static int open_verbs(struct daemon *d, bool must)
{
	const struct verbs_host host = { .wait = true,
					 .event = verbs_event,
					 .arg = d };
	char why[256];
	int err;

	for (unsigned i = 0; i < d->nworkers; i++) {
		d->workers[i].verbs = net_verbs_open(d->loops[i], &host, &err,
						     why, sizeof(why));
		if (d->workers[i].verbs)
			continue;
		if (must)
			say("RDMA devices: %s", why);
		return EXIT_NETWORK;
	}
	return 0;
}

/* Listens on RDMA devices at the addresses of the sockets, and returns the
 * number of addresses at which that worked. It is not an error that no device
 * has an address, or that an iWARP device of the kernel needs the port that the
 * socket has. */
static unsigned listen_verbs_too(struct daemon *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->nlisteners; i++) {
		struct net_addr a;

		net_listener_addr(d->listeners[i], &a);
		n += !verbs_at(d, &a);
	}
	return n;
}

/* Listens at an address of --verbs-listen, where failure is an error. */
static int listen_verbs_only(struct daemon *d, const char *text)
{
	struct net_addr a;
	int err;

	err = net_addr_parse_listen(&a, text, 3260);
	assert(!err); /* cfg_set_verbs_listen has checked it */
	err = verbs_at(d, &a);
	if (err)
		say("--verbs-listen %s: %s", text, strerror(-err));
	return err ? EXIT_NETWORK : 0;
}

static int listen_verbs(struct daemon *d)
{
	bool must = d->options.verbs == VERBS_ON || d->options.nverbs_listen;
	int err;

	if (d->options.verbs == VERBS_OFF ||
	    !(d->options.transports & NET_ALLOW_RDMA))
		return 0;
	err = open_verbs(d, must);
	if (err)
		return must ? err : 0;
	for (unsigned i = 0; i < d->options.nverbs_listen && !err; i++)
		err = listen_verbs_only(d, d->options.verbs_listen[i]);
	if (d->options.nverbs_listen || listen_verbs_too(d) || !must)
		return err;
	say("--verbs on: no RDMA device has any of these addresses; give one "
	    "with --listen or --verbs-listen");
	return EXIT_NETWORK;
}

/* ---- all of them ---- */

/* Warns of an address that other machines can use without CHAP. */
static void warn_open(const struct daemon *d)
{
	for (unsigned i = 0; i < d->nlisteners; i++) {
		char name[NET_ADDR_STR];
		struct net_addr a;

		net_listener_addr(d->listeners[i], &a);
		if (d->options.chap.user || net_addr_is_loopback(&a))
			continue;
		net_addr_str(&a, name);
		say("warning: %s is open to other machines without CHAP: each "
		    "of them can read%s the LUNs; give --chap-user and "
		    "--chap-secret-file, or listen at 127.0.0.1 only",
		    name, d->options.lun.read_only ? "" : " and write");
		return;
	}
}

/* Descriptors that connections do not get: for files opened later, clients of
 * the control socket, and sockets that are being closed. */
#define DESCRIPTORS_KEPT 64u

/* Returns how many of `most` descriptors connections can have. The number of
 * the next descriptor stands for the number of open ones. */
static unsigned descriptors_left(rlim_t most)
{
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned used = next < 0 ? 0 : (unsigned)next, kept;

	if (next >= 0)
		close(next);
	if (most > 1000000)
		most = 1000000;
	if (most <= used)
		return 0;
	most -= used;
	kept = MIN(DESCRIPTORS_KEPT, (unsigned)most / 2);
	return (unsigned)most - kept;
}

void listen_limits(struct daemon *d)
{
	struct admission_limits *l = &d->options.limits;
	struct rlimit files = { 0 };

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	if (files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files))
			getrlimit(RLIMIT_NOFILE, &files);
	}
	if (admission_limits_fit(l, descriptors_left(files.rlim_cur)))
		say("the limit of %llu open files is enough for %u sessions, "
		    "%u logins and %u discovery sessions at once; raise the "
		    "limit (ulimit -Hn, LimitNOFILE=) for more",
		    (unsigned long long)files.rlim_cur, l->sessions, l->full,
		    l->discovery);
	d->gate.admission.limits = *l; /* there is no connection yet */
}

int listen_open(struct daemon *d)
{
	for (unsigned i = 0; i < d->options.nlisten; i++) {
		int err = listen_on(d, d->options.listen[i]);

		if (err)
			return err;
	}
	warn_open(d);
	return listen_verbs(d);
}

/* Writes an address for a URL: the loopback address in place of a wildcard. */
static void url_address(const struct net_listener *n, char out[NET_ADDR_STR])
{
	char name[NET_ADDR_STR];
	struct net_addr a;

	net_listener_addr(n, &a);
	net_addr_str(&a, name);
	if (!strncmp(name, "0.0.0.0:", 8))
		snprintf(out, NET_ADDR_STR, "127.0.0.1:%u", net_addr_port(&a));
	else if (!strncmp(name, "[::]:", 5))
		snprintf(out, NET_ADDR_STR, "[::1]:%u", net_addr_port(&a));
	else
		snprintf(out, NET_ADDR_STR, "%s", name);
}

void listen_print_urls(const struct daemon *d)
{
	for (unsigned i = 0; i < d->nlisteners; i++) {
		char address[NET_ADDR_STR];

		url_address(d->listeners[i], address);
		for (unsigned j = 0; j < d->nlus; j++)
			printf("iscsi://%s/%s/%u\n", address, d->options.name,
			       dev_lu_lun(d->lus[j]));
	}
	fflush(stdout);
}

void listen_close(struct daemon *d)
{
	while (d->nlisteners)
		net_listener_free(d->listeners[--d->nlisteners]);
	if (d->workers)
		net_verbs_unlisten(d->workers[0].verbs);
}
