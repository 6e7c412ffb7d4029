/* SPDX-License-Identifier: BSD-2-Clause */
/* setup.c: from the configuration to units, target port groups and targets. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/apply/directory.h"
#include "daemon/apply/names.h"
#include "daemon/apply/units.h"
#include "daemon/cluster/gateway.h"
#include "daemon/config/model_cluster.h"
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/luns/identities.h"
#include "daemon/luns/ports.h"
#include "daemon/luns/private.h"
#include "daemon/luns/state.h"
#include "daemon/upgrade/takeover.h"

/* ---- stores ---- */

static void save_state(void *arg, struct dev_save *s)
{
	struct daemon *d = arg;
	const struct unit *u = unit_of(d, s->lu);

	/* also of a member that has left: its save fails */
	if (d->gateway && (!d->state || (u && u->lun.cluster)))
		gateway_save(d->gateway, s);
	else
		state_save(d->state, s);
}

/* ---- units of several gateways ---- */

static void refresh(void *arg, struct dev_refresh *r)
{
	gateway_refresh(((struct daemon *)arg)->gateway, r);
}

static void regroup(void *arg, struct dev_regroup *r)
{
	gateway_regroup(((struct daemon *)arg)->gateway, r);
}

static void fenced(void *arg, struct dev_lu *lu)
{
	gateway_fenced(((struct daemon *)arg)->gateway, lu);
}

static void remote_portals(void *arg, const char *target,
			   const struct dev_map *map, tgt_put_portal *put,
			   void *to)
{
	gateway_portals(((struct daemon *)arg)->gateway, target, map, put, to);
}

/* ---- target port groups ---- */

static int add_group(struct daemon *d, const struct cfg_alua *a)
{
	int err = dev_group_add(d->server, &a->group);

	if (!err)
		return 0;
	say("%s %s: %s", d->model->is_command_line ? "--alua" : "ALUA group",
	    a->head.name,
	    err == ERR_BUSY ? "the group or one of its ports is given twice"
			    : err_str(err));
	return EXIT_USAGE;
}

/* Relative target port identifiers are unique over all gateways. */
static uint16_t first_port(const struct cfg_cluster *c)
{
	return (uint16_t)((c->options.number - 1) * CFG_RTPI_STEP + 1);
}

static int setup_groups(struct daemon *d)
{
	const struct cfg_model *m = d->model;
	int err = 0;

	if (m->cluster.n)
		dev_server_first_port(d->server, first_port(m->cluster.v));
	else if (d->options.port_id)
		dev_server_first_port(d->server, (uint16_t)d->options.port_id);
	for (unsigned i = 0; i < m->aluas.n && !err; i++)
		err = add_group(d, &m->aluas.v[i]);
	return err;
}

/* The functions and limits that device and target get from the program. */
static struct dev_env env_of(struct daemon *d)
{
	return (struct dev_env){
		.buf_common = bufpool_limit(d->nworkers) - BUFPOOL_RESERVE -
			      BUFPOOL_BURST,
		.buf_reserve = BUFPOOL_RESERVE,
		.buf_burst = BUFPOOL_BURST,
		.nworkers = d->nworkers,
		.post = worker_post,
		.buf_get = worker_buf_get,
		.buf_put = worker_buf_put,
		.wall_ms = worker_wall_ms,
		.later = worker_later,
		.give_way = worker_give_way,
		.time = worker_time,
		.random = io_random,
		.save = d->options.state || d->model->cluster.n ? save_state
								: NULL,
		.refresh = refresh,
		.regroup = regroup,
		.fenced = fenced,
		.arg = d,
	};
}

/* Finds the user of --user, whose files iserd accepts as its own. False after a
 * message. */
static bool find_user(struct daemon *d)
{
	const struct passwd *pw;

	d->user.uid = geteuid();
	d->user.gid = getegid();
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
	d->user.uid = pw->pw_uid;
	d->user.gid = pw->pw_gid;
	private_user(d->user.uid);
	return true;
}

/* Opens the backstores of the model. False after a message. */
static bool open_units(struct daemon *d)
{
	struct cfg_errors *e = calloc(1, sizeof(*e));
	bool good = e;

	for (unsigned i = 0; good && i < d->model->backstores.n; i++)
		good = unit_open(d, d->model, i, (uint16_t)i, e);
	units_opened(d);
	if (good)
		unit_names_check(d->model, d->units, e);
	good = good && !e->n;
	if (!e)
		say("out of memory");
	else
		cfg_errors_say(e, d->options.start.config);
	free(e);
	return good;
}

int setup_stores(struct daemon *d)
{
	const struct dev_env env = env_of(d);

	if (!find_user(d))
		return EXIT_USAGE;
	if (d->options.state) {
		d->state = state_open(d->options.state, d->loops[0],
				      d->options.allow_lost, d->user.uid,
				      d->user.gid);
		if (!d->state)
			return EXIT_STORE;
	}
	d->stores.identities = identities_new(d->state);
	if (!d->stores.identities)
		return EXIT_STORE;
	d->server = dev_server_new(&env, BUFPOOL_TRANSFER);
	if (!d->server) {
		say("out of memory");
		return EXIT_ERROR;
	}
	if (d->model->cluster.n) {
		d->gateway = gateway_new(d, unit_reopened);
		if (!d->gateway)
			return EXIT_ERROR;
	}
	return open_units(d) ? setup_groups(d) : EXIT_STORE;
}

/* ---- target ---- */

/* Discovery sessions follow the first target. */
static bool prefers_digests(const struct cfg_model *m)
{
	return m->targets.n && m->targets.v[0].digests == DIGESTS_PREFER;
}

int setup_target(struct daemon *d)
{
	struct tgt_config cfg;

	tgt_config_default(&cfg);
	cfg.env = env_of(d);
	cfg.server = d->server;
	cfg.trace = &d->log.trace;
	cfg.prefer_digests = prefers_digests(d->model);
	cfg.strict_names = d->options.strict;
	cfg.max_conns = UINT_MAX; /* admission.c limits them */
	cfg.data_time = d->options.session.data_timeout * XTIME_S;
	cfg.logged_in = conns_logged_in;
	cfg.auth_begin = conns_auth_begin;
	cfg.auth_failed = conns_auth_failed;
	cfg.ended = conns_ended;
	cfg.random = io_random;
	cfg.rearm = worker_rearm;
	cfg.clock = worker_time;
	cfg.count_later = worker_count_later;
	if (d->gateway)
		cfg.portals = remote_portals;
	cfg.arg = d;
	d->target = tgt_new(&cfg);
	if (!d->target) {
		say("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 0; i < d->nworkers; i++)
		d->workers[i].target = tgt_worker(d->target, i);
	return 0;
}

void setup_save_ports(const struct daemon *d)
{
	if (d->state && !d->model->is_command_line)
		ports_save(d->state, d->server);
}

struct range {
	const struct state *state;
	unsigned first;
	bool good;
};

/* The identifiers that an iserd had which was no gateway, or another one. */
static void check_port(void *arg, const char *name, uint16_t rtpi)
{
	struct range *r = arg;

	if (rtpi >= r->first && rtpi - r->first < CFG_RTPI_STEP)
		return;
	if (r->good)
		say("--state %s: the port %s has the identifier %u there, of "
		    "an iserd with another number in the cluster; give each "
		    "gateway a directory of its own, or remove the file ports",
		    state_path(r->state), name, rtpi);
	r->good = false;
}

/* A command line has one port, whose identifier is --port-id. */
static bool load_ports(const struct daemon *d)
{
	struct range r = { .state = d->state, .good = true };

	if (d->model->is_command_line)
		return true;
	/* it has no port yet: fails only without memory, or if the file has
	 * other identifiers than the process before had */
	for (size_t i = 0; d->inherited && i < d->inherited->nports; i++)
		(void)dev_port_remember(d->server, d->inherited->ports[i].name,
					d->inherited->ports[i].id);
	if (d->state && !ports_load(d->state, d->server))
		return false;
	if (d->state && d->gateway) {
		r.first = first_port(d->model->cluster.v);
		dev_ports_each(d->server, check_port, &r);
	}
	return r.good;
}

int setup_directory(struct daemon *d)
{
	struct cfg_errors *e = calloc(1, sizeof(*e));
	struct tgt_directory *dir =
		e ? directory_new(d, d->model, d->units, d->portals.all, e)
		  : NULL;
	int err;

	if (dir && !load_ports(d)) {
		tgt_directory_free(dir);
		free(e);
		return EXIT_STORE;
	}
	err = dir ? tgt_begin(d->target, dir) : 0;
	if (e && !dir)
		cfg_errors_say(e, d->options.start.config);
	free(e);
	if (!dir)
		return EXIT_USAGE;
	if (!err)
		return 0;
	tgt_directory_free(dir);
	say("%s", err_str(err));
	return EXIT_ERROR;
}

/* ---- privileges ---- */

/* Returns whether the user that iserd runs as can write the state files and the
 * key files; if not, all reasons are printed. */
static bool can_be_written(const struct daemon *d)
{
	bool good = !d->state || state_usable(d->state);

	return units_usable(d) && good;
}

int setup_user(struct daemon *d)
{
	const char *name = d->options.user;

	if (!name || (d->inherited &&
		      d->inherited->is_own)) /* it has that user already */
		return can_be_written(d) ? 0 : EXIT_STORE;
	if (initgroups(name, d->user.gid) || setgid(d->user.gid) ||
	    setuid(d->user.uid)) {
		say("--user %s: %s; start iserd as root", name,
		    strerror(errno));
		return EXIT_ERROR;
	}
	return can_be_written(d) ? 0 : EXIT_STORE;
}
