/* SPDX-License-Identifier: BSD-2-Clause */
/* setup.c: from options to stores, units, target port groups and the target. */
#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/chap.h"
#include "daemon/config/groups.h"
#include "daemon/daemon.h"
#include "daemon/luns/encrypt.h"
#include "daemon/luns/image.h"
#include "daemon/luns/open.h"
#include "daemon/luns/private.h"
#include "daemon/luns/protection.h"
#include "daemon/luns/state.h"
#include "daemon/say.h"

#define MAX_TRANSFER (32u << 20) /* of one command */
/* Sizes of data buffers (device/share.h): the total of all workers, and the
 * least common part of each. One command, with protection information in its
 * data and again beside them, needs less than the reserve. */
#define POOL_TOTAL   ((size_t)512 << 20)
#define POOL_COMMON  ((size_t)64 << 20)
#define POOL_RESERVE (MAX_TRANSFER + MAX_TRANSFER / 16)
#define POOL_BURST   ((size_t)16 << 20)

/* ---- stores ---- */

static void save_state(void *arg, struct dev_save *s)
{
	struct daemon *d = arg;

	state_save(d->state, s);
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

/* The identity of a drive does not depend on its medium. */
static void name_drive(const struct daemon *d, struct dev_lu_config *cfg)
{
	char key[sizeof(d->options.name) + 16];
	int n = snprintf(key, sizeof(key), "%s cd %u", d->options.name,
			 cfg->lun);

	bs_uuid_derive(cfg->uuid, key, (size_t)n);
}

/* Adds the new unit to d->lus, and restores its persisted state. */
static int take_lu(struct daemon *d, uint16_t lun, bool keeps)
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
		.read_only = d->options.lun.read_only,
		.strict = d->options.strict,
		.removable = d->options.lun.removable || type == DEV_CD,
		.erase_rate = d->options.lun.sanitize_rate,
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
	return take_lu(d, lun, keeps);
}

static int add_scsi(struct daemon *d, uint16_t lun, const struct lun_spec *spec)
{
	struct pass *p = lun_open_scsi(&d->options, spec, d->loops);
	struct dev_lu_config cfg = {
		.lun = lun,
		.read_only = d->options.lun.read_only,
	};
	int err;

	if (!p)
		return EXIT_STORE;
	cfg.keeps = d->state && !is_twice(d, p->uuid);
	err = dev_lu_add_pass(d->server, &cfg, p);
	if (!err)
		return take_lu(d, lun, cfg.keeps);
	say("%s: %s", p->name, err_str(err));
	p->ops->close(p);
	return EXIT_STORE;
}

/* Refuses a file that is another LUN already: initiators would take the LUNs
 * for two disks and overwrite the blocks of each other. False after a
 * message. */
static bool is_alone(const struct daemon *d, uint16_t lun,
		     const struct lun_spec *spec)
{
	const struct options *o = &d->options;
	struct lun_spec other;

	if (o->lun.shared || o->lun.read_only || spec->kind != LUN_FILE)
		return true;
	for (unsigned i = 0; i < lun; i++) {
		if (!lun_spec_parse(&other, o->luns[i]) ||
		    other.kind != LUN_FILE ||
		    !image_is_same(spec->store, other.store))
			continue;
		say("%s: already LUN %u, as %s; give it once, or give "
		    "--shared",
		    spec->store, i, other.store);
		return false;
	}
	return true;
}

static int add_store(struct daemon *d, uint16_t lun,
		     const struct lun_spec *spec)
{
	struct bs *b = NULL;
	bool is_file = spec->kind == LUN_FILE;

	if (!is_alone(d, lun, spec))
		return EXIT_STORE;
	if (!lun_spec_is_empty_drive(spec)) {
		b = lun_open(&d->options, spec, d->loops);
		if (b) /* above what is encrypted */
			b = protection_open(&d->options, spec, b, d->loops);
		if (!b)
			return EXIT_STORE;
	}
	/* the state of memory and of CDs is not persisted */
	return add_lu(d, lun, spec->kind == LUN_CD ? DEV_CD : DEV_DISK, b,
		      d->state && is_file && !is_twice(d, b->uuid));
}

static int add_lun(struct daemon *d, uint16_t lun)
{
	struct lun_spec spec;

	if (!lun_spec_parse(&spec, d->options.luns[lun]))
		return EXIT_STORE;
	return spec.kind == LUN_SCSI ? add_scsi(d, lun, &spec)
				     : add_store(d, lun, &spec);
}

/* ---- target port groups ---- */

static int add_group(struct daemon *d, const char *text)
{
	struct dev_group g;
	bool is_group = group_parse(&g, text);
	int err;

	assert(is_group); /* cfg_set_alua has checked it */
	err = dev_group_add(d->server, &g);
	if (!err)
		return 0;
	say("--alua %s: %s", text,
	    err == ERR_BUSY ? "the group or one of its ports is given twice"
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

/* The functions and limits that device and target get from the program. */
static struct dev_env env_of(struct daemon *d)
{
	size_t each = POOL_TOTAL / d->nworkers;

	return (struct dev_env){
		.buf_common =
			MAX(each, POOL_COMMON + POOL_RESERVE + POOL_BURST) -
			POOL_RESERVE - POOL_BURST,
		.buf_reserve = POOL_RESERVE,
		.buf_burst = POOL_BURST,
		.nworkers = d->nworkers,
		.post = worker_post,
		.buf_get = worker_buf_get,
		.buf_put = worker_buf_put,
		.wall_ms = worker_wall_ms,
		.later = worker_later,
		.random = io_random,
		.save = d->options.state ? save_state : NULL,
		.arg = d,
	};
}

/* Finds the user of --user, whose files iserd accepts as its own. False after a
 * message. */
static bool find_user(struct daemon *d)
{
	const struct passwd *pw;

	d->uid = geteuid();
	d->gid = getegid();
	if (!d->options.user)
		return true;
	errno = 0;
	pw = getpwnam(d->options.user);
	if (!pw) {
		say("--user %s: %s", d->options.user,
		    errno ? strerror(errno)
			  : "not found; give a user of this machine");
		return false;
	}
	d->uid = pw->pw_uid;
	d->gid = pw->pw_gid;
	private_user(d->uid);
	return true;
}

int setup_stores(struct daemon *d)
{
	const struct options *o = &d->options;
	const struct dev_env env = env_of(d);

	if (!find_user(d))
		return EXIT_USAGE;
	if (d->options.state) {
		d->state = state_open(d->options.state, d->loops[0],
				      d->options.allow_lost, d->uid, d->gid);
		if (!d->state)
			return EXIT_STORE;
	}
	d->server = dev_server_new(&env, MAX_TRANSFER);
	if (!d->server) {
		say("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 0; i < o->nluns; i++) {
		int err = add_lun(d, (uint16_t)i);

		if (err)
			return err;
	}
	return setup_groups(d);
}

/* ---- target ---- */

static int add_node(struct daemon *d, const struct tgt_chap *chap)
{
	struct tgt_node_config node = { .server = d->server, .chap = *chap };
	int err;

	snprintf(node.name, sizeof(node.name), "%s", d->options.name);
	snprintf(node.alias, sizeof(node.alias), "openiser");
	err = tgt_node_add(d->target, &node);
	explicit_bzero(&node, sizeof(node));
	if (err == ERR_FORMAT) {
		say("--name %s: not an iSCSI name (RFC 7143 §4.2.7.2); give "
		    "a name like iqn.2026-01.com.example:disk",
		    d->options.name);
		return EXIT_USAGE;
	}
	if (err) {
		say("%s", err_str(err));
		return EXIT_ERROR;
	}
	return 0;
}

static int make_target(struct daemon *d, const struct tgt_chap *chap)
{
	struct tgt_config cfg;

	tgt_config_default(&cfg);
	cfg.env = env_of(d);
	cfg.trace = &d->log.trace;
	cfg.prefer_digests = d->options.digests == DIGESTS_PREFER;
	cfg.strict_names = d->options.strict;
	if (d->options.chap.discovery)
		cfg.discovery_chap = *chap;
	cfg.max_conns = UINT_MAX; /* admission.c limits them */
	cfg.data_time = d->options.data_timeout * XTIME_S;
	cfg.discovery_time = d->options.discovery_time * XTIME_S;
	cfg.logged_in = conns_logged_in;
	cfg.auth_failed = conns_auth_failed;
	cfg.ended = conns_ended;
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
	struct tgt_chap chap = { 0 };
	int err = chap_read(&d->options, &chap);

	if (!err)
		err = make_target(d, &chap);
	explicit_bzero(&chap, sizeof(chap));
	return err;
}

/* ---- privileges ---- */

/* Returns whether the user that iserd runs as can write the state files and the
 * key files; if not, all reasons are printed. */
static bool can_be_written(const struct daemon *d)
{
	bool good = !d->state || state_usable(d->state);

	for (unsigned i = 0; i < d->options.nluns; i++) {
		struct lun_spec spec;

		good &= lun_spec_parse(&spec, d->options.luns[i]) &&
			lun_key_usable(&spec, &d->options);
	}
	return good;
}

int setup_user(const struct daemon *d)
{
	const char *name = d->options.user;

	if (!name)
		return can_be_written(d) ? 0 : EXIT_STORE;
	if (initgroups(name, d->gid) || setgid(d->gid) || setuid(d->uid)) {
		say("--user %s: %s; start iserd as root", name,
		    strerror(errno));
		return EXIT_ERROR;
	}
	return can_be_written(d) ? 0 : EXIT_STORE;
}
