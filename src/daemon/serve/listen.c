/* SPDX-License-Identifier: BSD-2-Clause */
/* listen.c: the portal groups: the addresses at which iserd listens, on sockets
 * and RDMA devices; and the limit of open files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/process/address_wait.h"
#include "daemon/serve/portals.h"
#include "daemon/upgrade/service.h"
#include "daemon/upgrade/takeover.h"
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

bool portal_address(const struct cfg_portal *c, const struct portal *p,
		    unsigned i, char out[NET_ADDR_STR])
{
	struct net_addr a;

	if (i >= (c->announce.n ? c->announce.n : p->nlisteners))
		return false;
	if (!c->announce.n)
		net_listener_addr(p->listeners[i], &a);
	else if (net_addr_parse_listen(&a, c->announce.v[i], 3260))
		return false; /* cfg_set_announce has checked it */
	net_addr_str(&a, out);
	return true;
}

bool portal_is_wildcard(const char *address)
{
	return !strncmp(address, "0.0.0.0:", 8) ||
	       !strncmp(address, "[::]:", 5);
}

/* Opens a listener at a, on the socket of the iserd before this one or of the
 * service manager if there is one. */
static struct net_listener *open_listener(struct portal *p,
					  const struct net_addr *a, int *err)
{
	struct daemon *d = p->daemon;
	int fd = handover_take_listener(d->inherited, a);

	if (fd < 0)
		fd = service_take_socket(d->service, a);
	return fd >= 0 ? net_listen_fd(d->loops[0], fd, conns_accepted, p, err)
		       : net_listen(d->loops[0], a, conns_accepted, p, err);
}

/* Adds a listener to the portal group; text: the address that it has there, which the
 * portal group owns from then on. */
static void keep_listener(struct portal *p, struct net_listener *n, char *text)
{
	net_listener_on_short(n, conns_short);
	p->texts[p->nlisteners] = text;
	p->listeners[p->nlisteners++] = n;
}

int portal_listen(struct portal *p, const char *text, unsigned waits)
{
	char name[NET_ADDR_STR], *copy = strdup(text);
	struct net_listener *n;
	struct net_addr a;
	int err;

	err = net_addr_parse_listen(&a, text, 3260);
	assert(!err); /* cfg_set_listen has checked it */
	do
		n = copy ? open_listener(p, &a, &err) : NULL;
	while (copy && !n && address_wait(&waits, err));
	if (!n) {
		net_addr_str(&a, name);
		say("%s: cannot listen: %s%s", name,
		    copy ? strerror(-err) : "out of memory",
		    copy ? listen_advice(err) : "");
		free(copy);
		return EXIT_NETWORK;
	}
	keep_listener(p, n, copy);
	return 0;
}

/* Listens on the sockets of the service manager that no portal group names. */
static int listen_passed(struct portal *p)
{
	struct daemon *d = p->daemon;
	int fd, err;

	while ((fd = service_take_socket(d->service, NULL)) >= 0) {
		struct net_listener *n = NULL;
		char name[NET_ADDR_STR];
		struct net_addr a;

		if (p->nlisteners == LISTEN_MAX) {
			close(fd);
			err = -ENOSPC;
		} else {
			n = net_listen_fd(d->loops[0], fd, conns_accepted, p,
					  &err);
		}
		if (!n) {
			say("sockets of the service manager: %s",
			    strerror(-err));
			return EXIT_NETWORK;
		}
		net_listener_addr(n, &a);
		net_addr_str(&a, name);
		keep_listener(p, n, strdup(name));
	}
	return 0;
}

void portal_unlisten(struct portal *p, unsigned i)
{
	net_listener_free(p->listeners[i]);
	free(p->texts[i]);
	p->nlisteners--;
	memmove(&p->listeners[i], &p->listeners[i + 1],
		(p->nlisteners - i) * sizeof(struct net_listener *));
	memmove(&p->texts[i], &p->texts[i + 1],
		(p->nlisteners - i) * sizeof(char *));
}

/* ---- portal groups ---- */

/* Returns whether all targets of a portal group follow the standards where they
 * differ from Linux. */
static bool is_strict(const struct cfg_model *m, unsigned portal)
{
	bool strict = false;

	for (unsigned i = 0; i < m->targets.n; i++) {
		const struct cfg_target *t = &m->targets.v[i];

		for (unsigned k = 0; k < t->portal_groups.n; k++) {
			if (t->portals[k] == portal && !t->strict)
				return false;
			strict |= t->portals[k] == portal;
		}
	}
	return strict;
}

/* Returns whether the machines that reach a target can use it without CHAP. */
static bool is_open(const struct cfg_model *m, const struct cfg_target *t)
{
	const struct cfg_auth *g;

	if (t->auth < 0)
		return t->auth == CFG_AUTH_ANY;
	g = &m->auths.v[t->auth];
	return !g->accounts.n && !g->addresses.n;
}

/* Returns whether a connection may belong to a session that exists: sessions of a target
 * of a portal group may have several connections, or one that replaces a lost one. */
static bool has_joins(const struct cfg_model *m, unsigned portal)
{
	if (m->options.session.recovery_level == 2)
		return true;
	for (unsigned i = 0; i < m->targets.n; i++) {
		const struct cfg_target *t = &m->targets.v[i];

		for (unsigned k = 0; k < t->portal_groups.n; k++)
			if (t->portals[k] == portal && t->max_connections > 1)
				return true;
	}
	return false;
}

static bool has_open_target(const struct cfg_model *m, unsigned portal)
{
	for (unsigned i = 0; i < m->targets.n; i++) {
		const struct cfg_target *t = &m->targets.v[i];

		for (unsigned k = 0; k < t->portal_groups.n; k++)
			if (t->portals[k] == portal && is_open(m, t))
				return true;
	}
	return false;
}

void portal_free(struct portal *p)
{
	if (!p)
		return;
	while (p->nlisteners)
		portal_unlisten(p, p->nlisteners - 1);
	free(p->listeners);
	free(p->texts);
	free(p->at);
	free(p->name);
	free(p);
}

struct portal *portal_new(struct daemon *d, const struct cfg_model *m,
			  unsigned index)
{
	const struct cfg_portal *c = &m->portals.v[index];
	struct portal *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->daemon = d;
	p->tag = (uint16_t)c->wire_tag;
	p->transports = c->transports;
	p->strict = is_strict(m, index);
	p->is_open = has_open_target(m, index);
	p->joins = has_joins(m, index);
	p->name = strdup(c->head.name);
	p->listeners = calloc(LISTEN_MAX, sizeof(struct net_listener *));
	p->texts = calloc(LISTEN_MAX, sizeof(char *));
	p->at = calloc(d->nworkers, sizeof(*p->at));
	if (!p->name || !p->listeners || !p->texts || !p->at) {
		portal_free(p);
		return NULL;
	}
	for (unsigned i = 0; i < d->nworkers; i++)
		p->at[i] = (struct portal_worker){ p, &d->workers[i] };
	return p;
}

bool portal_add(struct daemon *d, struct portal *p)
{
	struct portal **more = reallocarray(d->portals.all, d->portals.n + 1,
					    sizeof(struct portal *));

	if (!more)
		return false;
	d->portals.all = more;
	more[d->portals.n++] = p;
	return true;
}

struct portal *portal_find(const struct daemon *d, const char *name)
{
	for (unsigned i = 0; i < d->portals.n; i++)
		if (!strcmp(d->portals.all[i]->name, name))
			return d->portals.all[i];
	return NULL;
}

/* ---- RDMA devices ---- */

/* Logs events of RDMA devices. */
static void verbs_event(void *arg, const char *text)
{
	struct daemon *d = arg;

	trace_emit(&d->log.trace, TRACE_RDMA, "RDMA device: %s", text);
}

static int verbs_at(struct portal *p, const struct net_addr *a)
{
	struct daemon *d = p->daemon;
	char name[NET_ADDR_STR];
	int err =
		net_verbs_listen(d->workers[0].verbs, a, conns_verbs_asked, p);

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
		if (d->workers[i].verbs)
			continue;
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
static unsigned listen_verbs_too(struct portal *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->nlisteners; i++) {
		struct net_addr a;

		net_listener_addr(p->listeners[i], &a);
		n += !verbs_at(p, &a);
	}
	return n;
}

/* Listens at an address of --verbs-listen, where failure is an error. */
static int listen_verbs_only(struct portal *p, const char *text)
{
	struct net_addr a;
	int err;

	err = net_addr_parse_listen(&a, text, 3260);
	assert(!err); /* cfg_set_verbs_listen has checked it */
	err = verbs_at(p, &a);
	if (err)
		say("--verbs-listen %s: %s", text, strerror(-err));
	return err ? EXIT_NETWORK : 0;
}

static int listen_verbs(struct portal *p, const struct cfg_portal *c)
{
	bool must = c->verbs == VERBS_ON || c->verbs_listen.n;
	int err;

	if (c->verbs == VERBS_OFF || !(c->transports & NET_ALLOW_RDMA))
		return 0;
	err = open_verbs(p->daemon, must);
	if (err)
		return must ? err : 0;
	for (unsigned i = 0; i < c->verbs_listen.n && !err; i++)
		err = listen_verbs_only(p, c->verbs_listen.v[i]);
	if (c->verbs_listen.n || listen_verbs_too(p) || !must)
		return err;
	say("--verbs on: no RDMA device has any of these addresses; give one "
	    "with --listen or --verbs-listen");
	return EXIT_NETWORK;
}

/* ---- all of them ---- */

/* Warns of an address that other machines can use without CHAP. */
static void warn_open(const struct portal *p)
{
	const struct daemon *d = p->daemon;

	for (unsigned i = 0; p->is_open && i < p->nlisteners; i++) {
		char name[NET_ADDR_STR];
		struct net_addr a;

		net_listener_addr(p->listeners[i], &a);
		if (net_addr_is_loopback(&a))
			continue;
		net_addr_str(&a, name);
		if (d->model->is_command_line)
			say("warning: %s is open to other machines without "
			    "CHAP: each of them can read%s the LUNs; give "
			    "--chap-user and --chap-secret-file, or listen at "
			    "127.0.0.1 only",
			    name, d->options.lun.read_only ? "" : " and write");
		else
			say("warning: portal group %s: %s is open to other "
			    "machines without CHAP; give the targets an auth "
			    "group with accounts or addresses",
			    p->name, name);
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

void listen_set_limits(struct daemon *d, const struct admission_limits *wanted)
{
	struct admission_limits l = *wanted;

	if (admission_limits_fit(&l, d->gate.descriptors))
		say("the limit of open files is enough for %u sessions, %u "
		    "logins and %u discovery sessions at once; raise the limit "
		    "(ulimit -Hn, LimitNOFILE=) for more",
		    l.sessions, l.full, l.discovery);
	gate_set_limits(&d->gate, &l);
}

void listen_limits(struct daemon *d)
{
	struct rlimit files = { 0 };

	d->gate.descriptors = UINT_MAX;
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		if (files.rlim_cur < files.rlim_max) {
			files.rlim_cur = files.rlim_max;
			if (setrlimit(RLIMIT_NOFILE, &files))
				getrlimit(RLIMIT_NOFILE, &files);
		}
		d->gate.descriptors = descriptors_left(files.rlim_cur);
	}
	listen_set_limits(d, &d->options.limits);
}

static int open_portal(struct daemon *d, unsigned index)
{
	const struct cfg_portal *c = &d->model->portals.v[index];
	struct portal *p = portal_new(d, d->model, index);
	/* sockets that are passed replace the default of the command line */
	bool passed =
		d->options.listen_default && service_has_sockets(d->service);
	const char *file = d->options.start.config;
	struct cfg_place at = cfg_head_at(&c->head, NULL);
	struct say_hold h;
	int err = 0;

	if (!p || !portal_add(d, p)) {
		portal_free(p);
		say("out of memory");
		return EXIT_ERROR;
	}
	say_hold(&h);
	for (unsigned i = 0; !passed && i < c->listen.n && !err; i++)
		err = portal_listen(p, c->listen.v[i], ADDRESS_WAITS);
	say_release(&h, !err);
	if (err && file && at.line)
		say("%s:%u:%u: portal group %s: %s", file, at.line, at.column,
		    c->head.name, h.text);
	else if (err)
		say("%s", h.text);
	return err;
}

int listen_open(struct daemon *d)
{
	const struct cfg_model *m = d->model;
	int err = 0;

	for (unsigned i = 0; i < m->portals.n && !err; i++)
		err = open_portal(d, i);
	if (!err && d->portals.n)
		err = listen_passed(d->portals.all[0]);
	for (unsigned i = 0; i < m->portals.n && !err; i++) {
		warn_open(d->portals.all[i]);
		err = listen_verbs(d->portals.all[i], &m->portals.v[i]);
	}
	return err;
}

/* ---- changes while iserd serves ---- */

/* Returns whether p listens at this address of the configuration, and where. */
static bool has_text(const struct portal *p, const char *text, unsigned *at)
{
	for (unsigned i = 0; i < p->nlisteners; i++)
		if (!strcmp(p->texts[i], text)) {
			*at = i;
			return true;
		}
	return false;
}

/* Opens another listener on the socket of listener i of `from`, so that a change
 * of the portal group loses no connection. */
static int listen_again(struct portal *p, const struct portal *from, unsigned i)
{
	int fd = net_listener_dup(from->listeners[i]), err = fd;
	char *copy = strdup(from->texts[i]);
	struct net_listener *n = NULL;

	if (fd >= 0)
		n = net_listen_fd(p->daemon->loops[0], fd, conns_accepted, p,
				  &err);
	if (!n || !copy) {
		say("%s: cannot listen: %s", from->texts[i],
		    n ? "out of memory" : strerror(-err));
		net_listener_free(n);
		free(copy);
		return EXIT_NETWORK;
	}
	keep_listener(p, n, copy);
	return 0;
}

/* Listens at text, on the socket of a portal group that has it. */
static int listen_new(struct portal *p, const char *text)
{
	const struct daemon *d = p->daemon;
	unsigned at;

	for (unsigned i = 0; i < d->portals.n; i++)
		if (has_text(d->portals.all[i], text, &at))
			return listen_again(p, d->portals.all[i], at);
	return portal_listen(p, text, 0);
}

/* Returns whether the old portal group p can stay for the new one. */
static bool can_stay(const struct portal *p, const struct portal *next,
		     const struct cfg_portal *c)
{
	if (p->tag != next->tag || p->transports != next->transports ||
	    p->strict != next->strict || p->joins != next->joins ||
	    p->nlisteners != c->listen.n)
		return false;
	for (unsigned i = 0; i < c->listen.n; i++)
		if (strcmp(p->texts[i], c->listen.v[i]) != 0)
			return false;
	return true;
}

struct portal *portal_change(struct daemon *d, const struct cfg_model *m,
			     unsigned index)
{
	const struct cfg_portal *c = &m->portals.v[index];
	struct portal *old = portal_find(d, c->head.name);
	struct portal *p = portal_new(d, m, index);
	int err = p ? 0 : EXIT_ERROR;

	if (p && old && can_stay(old, p, c)) {
		portal_free(p);
		return old;
	}
	for (unsigned i = 0; i < c->listen.n && !err; i++)
		err = listen_new(p, c->listen.v[i]);
	for (unsigned i = 0; p && i < p->nlisteners; i++)
		net_listener_pause(p->listeners[i], true);
	if (!err)
		return p;
	portal_free(p);
	return NULL;
}

bool portal_reserve(struct daemon *d)
{
	struct portal **more =
		reallocarray(d->portals.retired,
			     d->portals.nretired + d->portals.n + 1,
			     sizeof(struct portal *));

	if (more)
		d->portals.retired = more;
	return more;
}

void portal_retire(struct daemon *d, struct portal *p)
{
	while (p->nlisteners)
		portal_unlisten(p, p->nlisteners - 1);
	d->portals.retired[d->portals.nretired++] = p;
}

void portal_resume(struct portal *p)
{
	for (unsigned i = 0; i < p->nlisteners; i++)
		net_listener_pause(p->listeners[i], false);
}

void portal_listen_verbs(struct daemon *d, const struct cfg_model *m)
{
	if (!d->workers[0].verbs)
		return;
	net_verbs_unlisten(d->workers[0].verbs);
	for (unsigned i = 0; i < m->portals.n; i++)
		(void)listen_verbs(d->portals.all[i], &m->portals.v[i]);
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

/* Prints the URLs of one target at one address. */
static void print_target(const struct cfg_target *t, const char *address)
{
	for (unsigned i = 0; i < t->luns.n; i++)
		printf("iscsi://%s/%s/%u\n", address, t->name,
		       t->luns.v[i].lun);
}

static void print_portal(const struct cfg_model *m, const struct portal *p,
			 unsigned index)
{
	for (unsigned i = 0; i < p->nlisteners; i++) {
		char address[NET_ADDR_STR];

		url_address(p->listeners[i], address);
		for (unsigned t = 0; t < m->targets.n; t++) {
			const struct cfg_target *x = &m->targets.v[t];

			for (unsigned k = 0; k < x->portal_groups.n; k++)
				if (x->portals[k] == index)
					print_target(x, address);
		}
	}
}

void listen_print_urls(const struct daemon *d)
{
	for (unsigned i = 0; i < d->portals.n; i++)
		print_portal(d->model, d->portals.all[i], i);
	fflush(stdout);
}

void listen_close(struct daemon *d)
{
	for (unsigned i = 0; i < d->portals.n; i++)
		while (d->portals.all[i]->nlisteners)
			portal_unlisten(d->portals.all[i],
					d->portals.all[i]->nlisteners - 1);
	if (d->workers)
		net_verbs_unlisten(d->workers[0].verbs);
}

void listen_free(struct daemon *d)
{
	for (unsigned i = 0; i < d->portals.n; i++)
		portal_free(d->portals.all[i]);
	for (unsigned i = 0; i < d->portals.nretired; i++)
		portal_free(d->portals.retired[i]);
	free(d->portals.all);
	free(d->portals.retired);
}
