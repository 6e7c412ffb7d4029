/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings.c: what the administrator can change of a unit in use (settings.h). Worker 0
 * replaces the settings; a visit to every worker establishes the unit attentions. After
 * the visit no worker uses the old names, so they are freed.
 */
#include "device/unit/settings.h"

#include <stdlib.h>
#include <string.h>

#include "device/unit/attention.h"
#include "device/unit/lu_life.h"
#include "device/unit/rate.h"

struct settings_change {
	struct dev_round round;
	struct dev_lu *lu;
	const struct dev_names *old;
	bool names_differ, modes_differ;
	void (*done)(void *arg);
	void *arg;
};

static struct dev_names *new_names(const struct dev_lu *lu,
				   const struct dev_lu_config *cfg)
{
	struct dev_names *n = malloc(sizeof(*n));

	if (n)
		dev_names_make(n, cfg, lu->uuid);
	return n;
}

const struct dev_names *dev_names_of(const struct dev_lu *lu)
{
	const struct dev_names *const *p = &lu->settings.names;

	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void publish(const struct dev_names **p, const struct dev_names *names)
{
	__atomic_store_n(p, names, __ATOMIC_RELEASE);
}

/* Returns whether the setting changes. */
static bool set(bool *p, bool on)
{
	return __atomic_exchange_n(p, on, __ATOMIC_RELAXED) != on;
}

static bool must_be_read_only(const struct dev_lu *lu,
			      const struct dev_lu_config *cfg)
{
	return cfg->read_only || !lu->bs || (lu->bs->caps & BS_CAP_READ_ONLY);
}

int dev_settings_init(struct dev_lu *lu)
{
	lu->settings.names = new_names(lu, &lu->cfg);
	lu->settings.read_only = must_be_read_only(lu, &lu->cfg);
	lu->settings.rotational = lu->cfg.rotational;
	lu->settings.write_through = lu->cfg.write_through;
	dev_rate_set(lu, &lu->cfg.limits);
	dev_rate_init(lu);
	return lu->settings.names ? 0 : ERR_NOMEM;
}

static void free_names(const struct dev_names *names)
{
	free((void *)(uintptr_t)names);
}

void dev_settings_fini(struct dev_lu *lu)
{
	if (lu->settings.change)
		free_names(lu->settings.change->old);
	free(lu->settings.change);
	free_names(lu->settings.names);
}

/* ---- a change ---- */

static void visit(struct dev_round *r, unsigned worker)
{
	const struct settings_change *c =
		container_of(r, struct settings_change, round);

	list_for_each(it, &c->lu->lanes[worker].itls) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		if (c->names_differ)
			dev_attention_set(i, UA_INQUIRY_CHANGED);
		if (c->modes_differ)
			dev_attention_set(i, UA_MODE_CHANGED);
	}
	dev_round_next(r);
}

static void visited(struct dev_round *r)
{
	struct settings_change *c =
		container_of(r, struct settings_change, round);
	void (*done)(void *arg) = c->done;
	struct dev_lu *lu = c->lu;
	void *arg = c->arg;

	free_names(c->old);
	free(c);
	lu->settings.change = NULL;
	dev_lu_release(lu);
	done(arg);
}

/* Commands that have begun are checked again: the unit may be read-only now. */
static void put_in_force(struct settings_change *c,
			 const struct dev_lu_config *cfg,
			 const struct dev_names *names)
{
	struct dev_lu *lu = c->lu;

	c->old = dev_names_of(lu);
	c->names_differ = memcmp(names, c->old, sizeof(*names)) != 0;
	publish(&lu->settings.names, names);
	c->names_differ |= set(&lu->settings.rotational, cfg->rotational);
	c->modes_differ =
		set(&lu->settings.read_only, must_be_read_only(lu, cfg));
	c->modes_differ |= set(&lu->settings.write_through, cfg->write_through);
	dev_rate_set(lu, &cfg->limits);
	dev_lu_changed(lu);
}

int dev_lu_configure(struct dev_lu *lu, const struct dev_lu_config *cfg,
		     void (*done)(void *arg), void *arg)
{
	struct settings_change *c;
	struct dev_names *names;

	if (lu->settings.change || dev_lu_is_leaving(lu))
		return ERR_BUSY;
	c = calloc(1, sizeof(*c));
	names = c ? new_names(lu, cfg) : NULL;
	if (!names) {
		free(c);
		return ERR_NOMEM;
	}
	c->round.server = lu->server;
	c->round.visit = visit;
	c->round.done = visited;
	c->lu = lu;
	c->done = done;
	c->arg = arg;
	lu->settings.change = c;
	dev_lu_hold(lu);
	put_in_force(c, cfg, names);
	dev_round_start(&c->round, 0);
	return 0;
}
