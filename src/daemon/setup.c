/* SPDX-License-Identifier: BSD-2-Clause */
/* setup.c: from options to stores, target, listeners. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/daemon.h"
#include "daemon/encrypt.h"
#include "daemon/groups.h"
#include "daemon/luns.h"
#include "daemon/protection.h"
#include "daemon/state.h"

#define MAX_TRANSFER (32u << 20) /* of one command */

/* ---- stores ---- */

static void save(void *arg, struct dev_save *s)
{
	struct daemon *d = arg;

	state_save(d->state, s);
}

/* Memory is gone with us: there is nothing to reserve afterwards. A CD is not
 * reserved at all. */
static bool is_lasting(const char *spec)
{
	return lun_type(spec) == DEV_DISK && strncmp(spec, "ram:", 4) != 0 &&
	       strncmp(spec, "null:", 5) != 0;
}

/* Two units on one store would overwrite each other's reservations. */
static bool is_twice(const struct daemon *d, const uint8_t uuid[16])
{
	for (unsigned i = 0; i < d->nlus; i++) {
		const struct bs *other = dev_lu_backstore(d->lus[i]);

		if (other && !memcmp(other->uuid, uuid, 16))
			return true;
	}
	return false;
}

/* A drive stays what it is whatever medium is in it. */
static void name_drive(const struct daemon *d, struct dev_lu_config *cfg)
{
	char key[sizeof(d->options.name) + 16];
	int n = snprintf(key, sizeof(key), "%s cd %u", d->options.name,
			 cfg->lun);

	bs_uuid_derive(cfg->uuid, key, (size_t)n);
}

/* The unit is there; with what was kept of it. */
static int added(struct daemon *d, uint16_t lun, bool keeps)
{
	d->lus[d->nlus] = dev_lu_get(d->server, lun);
	if (keeps && !state_load(d->state, d->lus[d->nlus]))
		return EXIT_STORE;
	d->nlus++;
	return 0;
}

static int add_lu(struct daemon *d, uint16_t lun, enum dev_type type,
		  struct bs *b, bool keeps)
{
	struct dev_lu_config cfg = {
		.lun = lun,
		.type = type,
		.read_only = d->options.read_only,
		.strict = d->options.strict,
		.removable = d->options.removable || type == DEV_CD,
		.erase_rate = d->options.sanitize_rate,
		.keeps = keeps,
	};
	int err;

	if (type == DEV_CD)
		name_drive(d, &cfg);
	err = dev_lu_add(d->server, &cfg, b);
	if (err) {
		say("LUN %u: %s", lun, err_str(err));
		if (b)
			bs_close(b);
		return EXIT_STORE;
	}
	return added(d, lun, keeps);
}

static int add_scsi(struct daemon *d, uint16_t lun, const char *spec)
{
	struct pass *p = lun_open_scsi(&d->options, spec, d->loops);
	struct dev_lu_config cfg = {
		.lun = lun,
		.read_only = d->options.read_only,
	};
	int err;

	if (!p)
		return EXIT_STORE;
	cfg.keeps = d->state && !is_twice(d, p->uuid);
	err = dev_lu_add_pass(d->server, &cfg, p);
	if (!err)
		return added(d, lun, cfg.keeps);
	say("%s: %s", p->name, err_str(err));
	p->ops->close(p);
	return EXIT_STORE;
}

static int add_store(struct daemon *d, uint16_t lun, const char *spec)
{
	struct bs *b = NULL;
	struct lun_key k;

	if (!lun_is_empty_drive(spec)) {
		b = lun_open(&d->options, spec, d->loops);
		if (b && lun_key_split(&k, spec)) /* above what is encrypted */
			b = protection_open(&d->options, &k, b, d->loops);
		if (!b)
			return EXIT_STORE;
	}
	return add_lu(d, lun, lun_type(spec), b,
		      d->state && is_lasting(spec) && !is_twice(d, b->uuid));
}

/* ---- target port groups ---- */

static int add_group(struct daemon *d, const char *text)
{
	struct dev_group g;
	int err;

	if (!group_parse(&g, text)) {
		say("--alua %s: write ID:STATE:PORT[,PORT...], as in "
		    "1:optimized:1 or 2:standby:2:preferred",
		    text);
		return EXIT_USAGE;
	}
	err = dev_group_add(d->server, &g);
	if (!err)
		return 0;
	say("--alua %s: %s", text,
	    err == ERR_BUSY ? "the group or one of its ports was given before"
			    : err_str(err));
	return EXIT_USAGE;
}

static int setup_groups(struct daemon *d)
{
	const struct options *o = &d->options;
	int err = 0;

	if (o->port_id)
		dev_server_first_port(d->server, (uint16_t)o->port_id);
	for (unsigned i = 0; i < o->ngroups && !err; i++)
		err = add_group(d, o->groups[i]);
	return err;
}

/* What device and target ask of the program. */
static struct dev_env env_of(struct daemon *d)
{
	return (struct dev_env){
		.nworkers = d->nworkers,
		.post = worker_post,
		.buf_get = worker_buf_get,
		.buf_put = worker_buf_put,
		.wall_ms = worker_wall_ms,
		.later = worker_later,
		.random = io_random,
		.save = d->options.state ? save : NULL,
		.arg = d,
	};
}

int setup_stores(struct daemon *d)
{
	const struct options *o = &d->options;
	const struct dev_env env = env_of(d);

	if (d->options.state) {
		d->state = state_open(d->options.state, d->loops[0],
				      d->options.allow_lost);
		if (!d->state)
			return EXIT_STORE;
	}
	d->server = dev_server_new(&env, MAX_TRANSFER);
	if (!d->server) {
		say("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 0; i < o->nluns; i++) {
		int err = lun_is_scsi(o->luns[i])
				  ? add_scsi(d, (uint16_t)i, o->luns[i])
				  : add_store(d, (uint16_t)i, o->luns[i]);

		if (err)
			return err;
	}
	return setup_groups(d);
}

/* ---- target ---- */

#define CHAP_SECRET_MIN 12 /* bytes; RFC 7143 §9.2.1: 96 bits */

/* One line; the newline at its end is not part of it. */
static int read_secret(struct iscsi_chap_secret *s, const char *option,
		       const char *path)
{
	char buf[sizeof(s->secret) + 2];
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f) {
		say("--%s-secret-file %s: %s", option, path, strerror(errno));
		return EXIT_USAGE;
	}
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	while (n && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
		n--;
	if (n < CHAP_SECRET_MIN || n > sizeof(s->secret)) {
		say("--%s-secret-file %s: a secret has %d to %zu bytes "
		    "(RFC 7143 §9.2.1), this one %zu",
		    option, path, CHAP_SECRET_MIN, sizeof(s->secret), n);
		return EXIT_USAGE;
	}
	memcpy(s->secret, buf, n);
	s->secret_len = n;
	explicit_bzero(buf, sizeof(buf));
	return 0;
}

static int read_user(struct iscsi_chap_secret *s, const char *option,
		     const char *user, const char *path)
{
	if (!user)
		return 0;
	if (strlen(user) >= sizeof(s->name)) {
		say("--%s-user: at most %zu bytes", option,
		    sizeof(s->name) - 1);
		return EXIT_USAGE;
	}
	memcpy(s->name, user, strlen(user) + 1);
	return read_secret(s, option, path);
}

struct chap {
	struct iscsi_chap_secret in, out;
};

static int read_chap(const struct options *o, struct chap *c)
{
	int err = read_user(&c->in, "chap", o->chap_user, o->chap_secret_file);

	if (!err)
		err = read_user(&c->out, "chap-mutual", o->chap_mutual_user,
				o->chap_mutual_secret_file);
	if (!err && c->out.name[0] && c->in.secret_len == c->out.secret_len &&
	    !memcmp(c->in.secret, c->out.secret, c->in.secret_len)) {
		say("the two CHAP secrets must differ (RFC 7143 §9.2.1)");
		return EXIT_USAGE;
	}
	return err;
}

static int add_node(struct daemon *d, const struct chap *chap)
{
	struct tgt_node_config node = { .server = d->server,
					.chap_in = chap->in,
					.chap_out = chap->out };
	int err;

	snprintf(node.name, sizeof(node.name), "%s", d->options.name);
	snprintf(node.alias, sizeof(node.alias), "openiser");
	err = tgt_node_add(d->target, &node);
	explicit_bzero(&node, sizeof(node));
	if (err == ERR_FORMAT) {
		say("--name %s: no iSCSI name; write it like "
		    "iqn.2026-01.com.example:disk (RFC 7143 §4.2.7.2)",
		    d->options.name);
		return EXIT_USAGE;
	}
	if (err) {
		say("%s", err_str(err));
		return EXIT_ERROR;
	}
	return 0;
}

static int make_target(struct daemon *d, const struct chap *chap)
{
	struct tgt_config cfg;

	tgt_config_default(&cfg);
	cfg.env = env_of(d);
	cfg.trace = &d->log.trace;
	cfg.prefer_digests = d->options.prefer_digests;
	if (d->options.discovery_auth) {
		cfg.discovery_in = chap->in;
		cfg.discovery_out = chap->out;
	}
	cfg.random = io_random;
	cfg.rearm = worker_rearm;
	cfg.arg = d;
	d->target = tgt_new(&cfg);
	explicit_bzero(&cfg, sizeof(cfg));
	if (!d->target) {
		say("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 0; i < d->nworkers; i++)
		d->workers[i].target = tgt_worker(d->target, i);
	return add_node(d, chap);
}

int setup_target(struct daemon *d)
{
	struct chap chap = { 0 };
	int err = read_chap(&d->options, &chap);

	if (!err)
		err = make_target(d, &chap);
	explicit_bzero(&chap, sizeof(chap));
	return err;
}

/* ---- listeners ---- */

static const char *listen_advice(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return "; stop the program that has it or choose another port, "
		       "as in --listen 127.0.0.1:0";
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

	if (net_addr_parse(&a, text, 3260)) {
		say("--listen %s: no numeric address; write ADDR, ADDR:PORT or "
		    "[V6]:PORT",
		    text);
		return EXIT_USAGE;
	}
	n = net_listen(d->loops[0], &a, conns_accepted, d, &err);
	if (!n) {
		net_addr_str(&a, name);
		say("can't listen on %s: %s%s", name, strerror(-err),
		    listen_advice(err));
		return EXIT_NETWORK;
	}
	d->listeners[d->nlisteners++] = n;
	net_listener_addr(n, &a);
	net_addr_str(&a, name);
	if (!is_wildcard(name) && tgt_portal_add(d->target, name)) {
		say("out of memory");
		return EXIT_ERROR;
	}
	return 0;
}

/* What RDMA devices say, and that there are some again. */
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

/* Each worker has a channel of its own: connections are spread. */
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

/* The same addresses as those of the sockets. One that no device has, or a
 * port that software iWARP took from an iWARP device of the kernel's, is
 * nothing to complain of: it is served all the same. */
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

/* Asked for by name: it has to be there. */
static int listen_verbs_only(struct daemon *d, const char *text)
{
	struct net_addr a;
	int err;

	if (net_addr_parse(&a, text, 3260)) {
		say("--verbs-listen %s: no numeric address", text);
		return EXIT_USAGE;
	}
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
	say("RDMA devices: none is there with any of these addresses");
	return EXIT_NETWORK;
}

int setup_listeners(struct daemon *d)
{
	for (unsigned i = 0; i < d->options.nlisten; i++) {
		int err = listen_on(d, d->options.listen[i]);

		if (err)
			return err;
	}
	return listen_verbs(d);
}

/* An address to paste: the wildcard stands for this machine. */
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

void setup_print_urls(const struct daemon *d)
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

/* ---- privileges ---- */

/* By the user that iserd runs as. */
static bool can_be_written(const struct daemon *d)
{
	bool good = !d->state || state_usable(d->state);

	for (unsigned i = 0; i < d->options.nluns; i++)
		good &= lun_key_usable(d->options.luns[i], &d->options);
	return good;
}

int setup_user(const struct daemon *d)
{
	const char *name = d->options.user;
	const struct passwd *pw;

	if (!name)
		return can_be_written(d) ? 0 : EXIT_STORE;
	errno = 0;
	pw = getpwnam(name);
	if (!pw) {
		say("--user %s: %s", name,
		    errno ? strerror(errno) : "no such user");
		return EXIT_USAGE;
	}
	if (initgroups(name, pw->pw_gid) || setgid(pw->pw_gid) ||
	    setuid(pw->pw_uid)) {
		say("--user %s: %s; start iserd as root", name,
		    strerror(errno));
		return EXIT_ERROR;
	}
	return can_be_written(d) ? 0 : EXIT_STORE;
}
