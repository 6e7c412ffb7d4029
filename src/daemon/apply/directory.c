/* SPDX-License-Identifier: BSD-2-Clause */
/* directory.c: from a configuration to the directory of the target role. */
#include "daemon/apply/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/apply/secrets.h"
#include "daemon/apply/units.h"
#include "daemon/daemon.h"
#include "daemon/serve/portals.h"
#include "iscsi/chap.h"
#include "iscsi/login.h"
#include "net/net.h"

struct builder {
	const struct daemon *d;
	const struct cfg_model *m;
	struct cfg_errors *errors;
	struct tgt_directory *dir;
	struct unit *const *units;  /* by index of the backstore in m */
	struct portal *const *open; /* by index of the portal group in m */
	unsigned *auths, *portals;  /* indexes in dir, by index in m */
};

/* Reports an error of directory.h. */
static bool fail(struct builder *b, const struct cfg_head *h, const char *noun)
{
	cfg_error(b->errors, cfg_head_at(h, NULL), "%s %.230s: %s", noun,
		  h->name, tgt_directory_why(b->dir));
	return false;
}

/* ---- auth groups ---- */

static unsigned auth_index(const struct builder *b, int auth)
{
	return auth == CFG_AUTH_ANY    ? TGT_AUTH_ANY
	       : auth == CFG_AUTH_NONE ? TGT_AUTH_NONE
				       : b->auths[auth];
}

/* Reads the secret of an account and adds it. */
static int add_account(struct builder *b, unsigned group,
		       const struct cfg_account *a, bool mutual)
{
	struct iscsi_chap_secret s = { 0 };
	char why[256];
	int err = ERR_FORMAT;

	if (chap_secret_read(&s, a->user, a->secret_file, why, sizeof(why)))
		err = mutual ? tgt_auth_group_mutual(b->dir, group, &s)
			     : tgt_auth_group_account(b->dir, group, &s);
	explicit_bzero(&s, sizeof(s));
	return err;
}

static int add_algorithms(struct builder *b, const struct cfg_auth *g,
			  unsigned group)
{
	char names[128] = "", list[CHAP_LIST_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < g->algorithms.n && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
				      i ? "," : "", g->algorithms.v[i]);
	if (!n)
		return 0;
	return chap_list(names, list)
		       ? tgt_auth_group_algorithms(b->dir, group, list)
		       : ERR_FORMAT;
}

static int fill_auth(struct builder *b, const struct cfg_auth *g,
		     unsigned group)
{
	int err = 0;

	for (unsigned i = 0; i < g->accounts.n && !err; i++) {
		const struct cfg_texts *names = &g->accounts.v[i].names;

		err = add_account(b, group, &g->accounts.v[i], false);
		for (unsigned k = 0; k < names->n && !err; k++)
			err = tgt_auth_group_account_initiator(b->dir, group,
							       names->v[k]);
	}
	if (!err && g->mutual.n)
		err = add_account(b, group, g->mutual.v, true);
	for (unsigned i = 0; i < g->names.n && !err; i++)
		err = tgt_auth_group_initiator(b->dir, group, g->names.v[i]);
	for (unsigned i = 0; i < g->addresses.n && !err; i++)
		err = tgt_auth_group_address(b->dir, group,
					     g->prefixes[i].address,
					     g->prefixes[i].bits);
	return err ? err : add_algorithms(b, g, group);
}

static bool add_auths(struct builder *b)
{
	for (unsigned i = 0; i < b->m->auths.n; i++) {
		const struct cfg_auth *g = &b->m->auths.v[i];
		int group = tgt_auth_group_add(b->dir);

		if (group < 0 || fill_auth(b, g, (unsigned)group))
			return fail(b, &g->head, "auth group");
		b->auths[i] = (unsigned)group;
	}
	return true;
}

/* ---- portal groups ---- */

/* Adds the addresses of the portal group that an initiator can reach. */
static int add_addresses(struct builder *b, const struct cfg_portal *p,
			 const struct portal *open, unsigned group)
{
	char name[NET_ADDR_STR];
	int err = 0;

	for (unsigned i = 0; !err && portal_address(p, open, i, name); i++)
		if (!portal_is_wildcard(name))
			err = tgt_portal_group_address(b->dir, group, name);
	return err;
}

static bool add_portals(struct builder *b)
{
	static const enum tgt_discovery rules[] = {
		[CFG_DISCOVERY_PERMITTED] = TGT_DISCOVERY_PERMITTED,
		[CFG_DISCOVERY_ALL] = TGT_DISCOVERY_ALL,
		[CFG_DISCOVERY_NONE] = TGT_DISCOVERY_NONE,
	};

	for (unsigned i = 0; i < b->m->portals.n; i++) {
		const struct cfg_portal *p = &b->m->portals.v[i];
		const struct tgt_portal_group_config cfg = {
			.tag = (uint16_t)p->wire_tag,
			.discovery = rules[p->discovery],
			.discovery_auth = auth_index(b, p->auth),
			.announces = p->announce.n > 0,
		};
		int group = tgt_portal_group_add(b->dir, &cfg);

		if (group < 0 ||
		    add_addresses(b, p, b->open[i], (unsigned)group))
			return fail(b, &p->head, "portal group");
		b->portals[i] = (unsigned)group;
	}
	return true;
}

/* ---- targets ---- */

/* Makes the map of these LUNs, which the caller puts. NULL after a message. */
static struct dev_map *new_map(struct builder *b, const struct cfg_head *h,
			       const struct cfg_luns *luns)
{
	struct dev_map_entry *all = calloc(luns->n + 1, sizeof(*all));
	struct dev_map *map = NULL;
	int err = ERR_NOMEM;

	for (unsigned i = 0; all && i < luns->n; i++) {
		const struct cfg_lun *l = &luns->v[i];

		all[i] = (struct dev_map_entry){
			.lun = (uint16_t)l->lun,
			.lu = b->units[l->index]->lu,
			.read_only = l->read_only,
		};
	}
	if (all)
		err = dev_map_new(b->d->server, all, luns->n, &map);
	free(all);
	if (!err)
		return map;
	cfg_error(b->errors, cfg_head_at(h, NULL), "luns: %s", err_str(err));
	return NULL;
}

/* Adds what certain initiators see. */
static bool add_maps(struct builder *b, const struct cfg_target *t,
		     unsigned target)
{
	for (unsigned i = 0; i < t->maps.n; i++) {
		const struct cfg_map *c = &t->maps.v[i];
		struct dev_map *map = new_map(b, &c->head, &c->luns);
		const struct tgt_map_config cfg = {
			.initiators = c->names.v,
			.ninitiators = c->names.n,
			.account = c->account,
			.map = map,
		};
		int err = map ? tgt_target_map(b->dir, target, &cfg) : 0;

		dev_map_put(map);
		if (!map)
			return false;
		if (err)
			return fail(b, &t->head, "target");
	}
	return true;
}

static int add_redirects(struct builder *b, const struct cfg_target *t,
			 unsigned target)
{
	int err = 0;

	for (unsigned i = 0; i < t->redirects.n && !err; i++) {
		const struct cfg_redirect *r = &t->redirects.v[i];
		const struct tgt_redirect_config cfg = {
			.initiators = r->names.v,
			.ninitiators = r->names.n,
			.addresses = r->addresses.v,
			.naddresses = r->addresses.n,
			.permanent = r->permanent,
		};

		err = tgt_target_redirect(b->dir, target, &cfg);
	}
	return err;
}

static bool add_target(struct builder *b, const struct cfg_target *t)
{
	struct dev_map *map = new_map(b, &t->head, &t->luns);
	const struct tgt_target_config cfg = {
		.name = t->name,
		.alias = t->alias,
		.auth_group = auth_index(b, t->auth),
		.prefer_digests = t->digests == DIGESTS_PREFER,
		.strict_names = t->strict,
		.data_time = t->data_timeout * XTIME_S,
		.max_connections = (uint16_t)t->max_connections,
		.map = map,
		.drains = drain_has(b->d, t->name),
	};
	int target = map ? tgt_target_add(b->dir, &cfg) : 0, err = target < 0;

	dev_map_put(map);
	if (!map)
		return false;

	for (unsigned i = 0; i < t->portal_groups.n && !err; i++)
		err = tgt_target_portal_group(b->dir, (unsigned)target,
					      b->portals[t->portals[i]]);
	if (!err)
		err = add_redirects(b, t, (unsigned)target);
	return err ? fail(b, &t->head, "target")
		   : add_maps(b, t, (unsigned)target);
}

/* What the target proposes for R2Ts and the order of data. RFC 7143 §13.19: with an
 * ErrorRecoveryLevel and sequences in order, one R2T at a time. */
static void set_order(const struct options *o, struct iscsi_params *want)
{
	want->error_recovery_level = (uint8_t)o->session.recovery_level;
	if (want->error_recovery_level == 2) /* the standard's default */
		want->default_time2retain = 20;
	want->data_pdu_in_order = o->session.pdu_in_order == IN_ORDER;
	want->data_sequence_in_order = o->session.sequence_in_order == IN_ORDER;
	want->max_outstanding_r2t = (uint16_t)o->session.max_r2t;
	if (want->error_recovery_level && want->data_sequence_in_order)
		want->max_outstanding_r2t = 1;
}

static void add_settings(struct builder *b)
{
	const struct options *o = &b->m->options;
	struct tgt_config defaults;
	struct tgt_settings s;

	tgt_config_default(&defaults);
	s.want = defaults.want;
	s.slow_time = defaults.slow_time;
	s.discovery_time = o->session.discovery_time * XTIME_S;
	if (o->numbers.slow_command)
		s.slow_time = o->numbers.slow_command * XTIME_MS;
	set_order(o, &s.want);
	tgt_directory_set(b->dir, &s);
}

static bool fill(struct builder *b)
{
	add_settings(b);
	if (!add_auths(b) || !add_portals(b))
		return false;
	for (unsigned i = 0; i < b->m->targets.n; i++)
		if (!add_target(b, &b->m->targets.v[i]))
			return false;
	return true;
}

struct tgt_directory *directory_new(const struct daemon *d,
				    const struct cfg_model *m,
				    struct unit *const *units,
				    struct portal *const *portals,
				    struct cfg_errors *e)
{
	struct builder b = {
		.d = d, .m = m, .errors = e, .units = units, .open = portals
	};
	bool good;

	if (!chap_secrets_check(m, e, true))
		return NULL;
	b.auths = calloc(m->auths.n + 1, sizeof(*b.auths));
	b.portals = calloc(m->portals.n + 1, sizeof(*b.portals));
	b.dir = tgt_directory_new();
	good = b.auths && b.portals && b.dir;
	if (!good)
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	good = good && fill(&b);
	if (!good)
		tgt_directory_free(b.dir);
	free(b.auths);
	free(b.portals);
	return good ? b.dir : NULL;
}
