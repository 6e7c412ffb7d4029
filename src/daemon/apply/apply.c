/* SPDX-License-Identifier: BSD-2-Clause */
/* apply.c: changes of the configuration while iserd serves. */
#include "daemon/apply/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/apply/apply_groups.h"
#include "daemon/apply/directory.h"
#include "daemon/apply/health.h"
#include "daemon/apply/names.h"
#include "daemon/apply/secrets.h"
#include "daemon/apply/units.h"
#include "daemon/cluster/gateway.h"
#include "daemon/daemon.h"
#include "daemon/log/say.h"
#include "daemon/luns/identities.h"
#include "daemon/luns/module.h"
#include "daemon/serve/portals.h"
#include "daemon/upgrade/service.h"

#define RETRY (100 * XTIME_MS) /* while a check of a file is in progress */

/* Units whose removal is in progress: each change of the device looks at all that wait for
 * their turn, so thousands at once would take seconds. */
#define CLOSES 64u

struct change {
	struct daemon *d;
	struct cfg_model *m;
	struct cfg_errors *errors;
	struct unit **units;	  /* by index of the backstore in m */
	bool *changed;		  /* the same: the unit gets other fields */
	unsigned next, nchanging; /* change_units */
	struct apply_groups groups;
	struct portal **portals; /* by index of the portal group in m */
	struct unit **leaving;	 /* that no map has once the change settled */
	unsigned nold;		 /* units from this one on are new */
	/* nclosing: removals in progress; nopen: not closed yet */
	unsigned nleaving, nclosing, nopen;
	bool is_done, is_settled;
	struct io_timer retry, again, regroup;
	void (*done)(void *arg, bool good);
	void *arg;
};

static void complain(struct change *c, const struct cfg_head *h,
		     const char *noun, const char *what)
{
	cfg_error(c->errors, cfg_head_at(h, NULL), "%s %.80s: %s", noun,
		  h->name, what);
}

/* ---- the end of a change ---- */

static void change_free(struct change *c)
{
	free(c->units);
	free(c->changed);
	free(c->portals);
	free(c->leaving);
	free(c);
}

static void finish(struct change *c)
{
	if (!c->is_done || !c->is_settled || c->nopen)
		return;
	c->d->changes.now = NULL;
	change_free(c);
}

/* ---- units that leave ---- */

struct leaver {
	struct change *c;
	struct unit *u;
	bool has_waited; /* for another gateway to take the unit */
};

static void close_units(struct change *c);

static void unit_closed(void *arg, int err)
{
	struct leaver *l = arg;
	struct change *c = l->c;

	if (err)
		trace_emit(&c->d->log.trace, TRACE_MEDIUM,
			   "backstore %s: not everything could be flushed to "
			   "it: %s",
			   l->u->name, err_str(err));
	unit_free(l->u);
	free(l);
	c->nopen--;
	c->nclosing--;
	if (c->nleaving)
		close_units(c);
	else
		finish(c);
}

static void unit_stays(struct change *c, const struct unit *u, int err)
{
	c->nopen--;
	trace_emit(&c->d->log.trace, TRACE_RESOURCE,
		   "backstore %s: stays open: %s", u->name, err_str(err));
}

/* Other gateways have the unit now, or it is of this iserd alone. */
static void remove_unit(void *arg)
{
	struct leaver *l = arg;
	struct change *c = l->c;
	int err = dev_lu_remove(l->u->lu, unit_closed, l);

	if (!err) {
		unit_detach(c->d, l->u);
		return;
	}
	c->nclosing--;
	unit_stays(c, l->u, err);
	if (l->has_waited && c->nleaving)
		close_units(c);
	else if (l->has_waited)
		finish(c);
	free(l);
}

/* Begins to close one unit. */
static void close_unit(struct change *c, struct unit *u)
{
	struct leaver *l = malloc(sizeof(*l));

	if (!l) {
		unit_stays(c, u, ERR_NOMEM);
		return;
	}
	*l = (struct leaver){ c, u, u->member };
	c->nclosing++;
	if (u->member) {
		u->is_held = true; /* no check of the file begins meanwhile */
		member_leave(u->member, remove_unit, l);
	} else {
		remove_unit(l);
	}
}

/* Closes the units that leave, CLOSES at once; one whose file is being checked, later. */
static void close_units(struct change *c)
{
	struct daemon *d = c->d;

	while (c->nleaving && c->nclosing < CLOSES) {
		struct unit *u = c->leaving[c->nleaving - 1];

		if (u->in_check) {
			io_timer_set(d->loops[0], &c->retry,
				     io_now(d->loops[0]) + RETRY);
			return;
		}
		c->nleaving--;
		close_unit(c, u);
	}
	if (c->nleaving) /* unit_closed goes on */
		return;
	io_timer_clear(d->loops[0], &c->retry);
	c->is_settled = true;
	finish(c);
}

static void retry_close(struct io_timer *t)
{
	close_units(container_of(t, struct change, retry));
}

static void settled(void *arg)
{
	close_units(arg);
}

/* ---- units that stay, with other fields ---- */

static void unit_changed(void *arg)
{
	struct change *c = arg;

	if (--c->nchanging)
		return;
	c->is_done = true;
	c->done(c->arg, true);
	finish(c);
}

/* The change is in force already, so without memory this tries again. */
static void change_units(struct change *c)
{
	struct io_loop *loop = c->d->loops[0];

	for (; c->next < c->m->backstores.n; c->next++) {
		const struct cfg_backstore *b = &c->m->backstores.v[c->next];
		const struct dev_lu_config cfg = unit_config(b);
		struct unit *u = c->units[c->next];

		if (!c->changed[c->next])
			continue;
		c->nchanging++;
		if (dev_lu_configure(u->lu, &cfg, unit_changed, c)) {
			c->nchanging--;
			io_timer_set(loop, &c->again, io_now(loop) + RETRY);
			return;
		}
		u->lun = b->lun;
	}
	unit_changed(c);
}

static void change_more(struct io_timer *t)
{
	change_units(container_of(t, struct change, again));
}

/* ---- target port groups ---- */

static void change_groups(struct change *c);

/* Without memory, and if a SANITIZE has begun after the check, this tries again. */
static void groups_changed(void *arg, int err)
{
	struct change *c = arg;
	struct io_loop *loop = c->d->loops[0];

	if (err)
		io_timer_set(loop, &c->regroup, io_now(loop) + RETRY);
	else
		unit_changed(c);
}

static void regroup(struct io_timer *t)
{
	change_groups(container_of(t, struct change, regroup));
}

static void change_groups(struct change *c)
{
	const struct apply_groups *g = &c->groups;
	int err = dev_groups_check(c->d->server, g->wishes, g->n);

	if (!err)
		err = dev_groups_replace(c->d->server, g->wishes, g->n,
					 groups_changed, c);
	if (err)
		groups_changed(c, err);
}

static void in_force(void *arg)
{
	struct change *c = arg;

	setup_save_ports(c->d); /* of targets that are new */
	if (c->d->gateway)
		gateway_update(c->d->gateway);
	c->nchanging = 1; /* until all have begun */
	if (c->groups.differ) {
		c->nchanging++;
		change_groups(c);
	}
	change_units(c);
}

void apply_end(struct daemon *d)
{
	struct change *c = d->changes.now;

	if (!c)
		return;
	io_timer_clear(d->loops[0], &c->retry);
	io_timer_clear(d->loops[0], &c->again);
	io_timer_clear(d->loops[0], &c->regroup);
	if (!c->is_done)
		c->done(c->arg, false);
	d->changes.now = NULL;
	change_free(c);
}

/* ---- units ---- */

/* Returns the lowest number from *next on that no unit has. */
static bool free_number(const struct daemon *d, unsigned *next)
{
	while (*next <= CFG_LUN_MAX && dev_lu_get(d->server, (uint16_t)*next))
		++*next;
	return *next <= CFG_LUN_MAX;
}

static bool open_units(struct change *c)
{
	struct daemon *d = c->d;
	unsigned next = 0, before = c->errors->n;

	c->nold = d->nunits;
	c->units = units_match(d, c->m);
	c->changed = calloc(c->m->backstores.n + 1, sizeof(*c->changed));
	if (!c->units || !c->changed) {
		cfg_error(c->errors, (struct cfg_place){ 0 }, "out of memory");
		return false;
	}
	apply_check_units(d, c->m, c->units, c->changed, c->errors);
	for (unsigned i = 0; i < c->m->backstores.n; i++) {
		if (c->units[i])
			continue;
		if (!free_number(d, &next)) {
			complain(
				c, &c->m->backstores.v[i].head, "backstore",
				"too many units, together with those that this "
				"change removes; remove backstores by one "
				"change and add others by another");
			return false;
		}
		c->units[i] = unit_open(d, c->m, i, (uint16_t)next, c->errors);
		if (!c->units[i])
			return false;
	}
	unit_names_check(c->m, c->units, c->errors);
	identities_save(d->stores.identities); /* before initiators see them */
	return c->errors->n == before;
}

/* Lists the units that m does not have. */
static bool list_leaving(struct change *c)
{
	struct daemon *d = c->d;

	c->leaving = calloc(d->nunits + 1, sizeof(struct unit *));
	for (unsigned i = 0; c->leaving && i < d->nunits; i++)
		d->units[i]->is_leaving = true;
	for (unsigned i = 0; c->leaving && i < c->m->backstores.n; i++)
		c->units[i]->is_leaving = false;
	for (unsigned i = 0; c->leaving && i < d->nunits; i++)
		if (d->units[i]->is_leaving)
			c->leaving[c->nleaving++] = d->units[i];
	c->nopen = c->nleaving;
	if (!c->leaving)
		cfg_error(c->errors, (struct cfg_place){ 0 }, "out of memory");
	return c->leaving;
}

/* ---- portal groups ---- */

static bool is_old(const struct daemon *d, const struct portal *p)
{
	for (unsigned i = 0; i < d->portals.n; i++)
		if (d->portals.all[i] == p)
			return true;
	return false;
}

static bool open_portals(struct change *c)
{
	struct daemon *d = c->d;
	struct say_hold h;

	c->portals = calloc(c->m->portals.n + 1, sizeof(struct portal *));
	for (unsigned i = 0; c->portals && i < c->m->portals.n; i++) {
		say_hold(&h);
		c->portals[i] = portal_change(d, c->m, i);
		say_release(&h, c->portals[i]);
		if (c->portals[i])
			continue;
		complain(c, &c->m->portals.v[i].head, "portal group", h.text);
		return false;
	}
	if (c->portals && portal_reserve(d))
		return true;
	cfg_error(c->errors, (struct cfg_place){ 0 }, "out of memory");
	return false;
}

/* Replaces the portal groups by the new ones. */
static void take_portals(struct change *c)
{
	struct daemon *d = c->d;
	bool changed = d->portals.n != c->m->portals.n;

	for (unsigned i = 0; i < d->portals.n; i++) {
		struct portal *p = d->portals.all[i];
		bool stays = false;

		for (unsigned k = 0; k < c->m->portals.n; k++)
			stays |= c->portals[k] == p;
		if (!stays)
			portal_retire(d, p);
		changed |= !stays;
	}
	free(d->portals.all);
	d->portals.all = c->portals;
	d->portals.n = c->m->portals.n;
	c->portals = NULL;
	for (unsigned i = 0; i < d->portals.n; i++)
		portal_resume(d->portals.all[i]);
	if (changed)
		portal_listen_verbs(d, c->m);
}

/* ---- the whole ---- */

/* Closes what was opened for a change that is refused. */
static void undo(struct change *c)
{
	struct daemon *d = c->d;

	for (unsigned i = 0; c->portals && i < c->m->portals.n; i++)
		if (c->portals[i] && !is_old(d, c->portals[i]))
			portal_free(c->portals[i]);
	cfg_model_free(c->m);
	c->is_done = true;
	c->nleaving = 0;
	free(c->leaving);
	c->leaving = calloc(d->nunits - c->nold + 1, sizeof(struct unit *));
	for (unsigned i = c->nold; c->leaving && i < d->nunits; i++)
		c->leaving[c->nleaving++] = d->units[i];
	c->nopen = c->nleaving;
	close_units(c);
}

/* Makes the model that the directory is of that of the daemon. */
static void take_model(struct change *c)
{
	struct daemon *d = c->d;
	const struct options *from = &d->model->options, *to = &c->m->options;

	if (to->log.level != from->log.level)
		log_set_level(&d->log, to->log.level);
	if (to->log.format != from->log.format)
		log_set_format(&d->log, to->log.format);
	if (memcmp(&to->limits, &from->limits, sizeof(to->limits)) != 0)
		listen_set_limits(d, &to->limits);
	c->m->options.start = d->model->options.start;
	take_portals(c);
	drain_forget(d, c->m);
	if (d->changes.first)
		cfg_model_free(d->model);
	else
		d->changes.first = d->model;
	d->model = c->m;
}

static struct change *change_new(struct daemon *d, struct cfg_model *m,
				 struct cfg_errors *e)
{
	struct change *c = NULL;

	if (d->changes.now)
		cfg_error(e, (struct cfg_place){ 0 },
			  "an earlier change is not complete: its sessions or "
			  "backstores are being closed; try again in some "
			  "seconds");
	else if (d->phase != DAEMON_SERVING)
		cfg_error(e, (struct cfg_place){ 0 }, "iserd is ending");
	else if (!apply_check(d, m, e, NULL))
		return NULL;
	else if (!(c = calloc(1, sizeof(*c))))
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
	if (!c)
		return NULL;
	c->d = d;
	c->m = m;
	c->errors = e;
	c->retry.fire = retry_close;
	c->again.fire = change_more;
	c->regroup.fire = regroup;
	apply_groups_plan(&c->groups, d->model, m);
	return c;
}

bool apply_model(struct daemon *d, struct cfg_model *m, struct cfg_errors *e,
		 void (*done)(void *arg, bool good), void *arg)
{
	struct tgt_apply_events events = { .done = in_force,
					   .settled = settled };
	struct change *c = change_new(d, m, e);
	struct tgt_directory *dir = NULL;
	int err = 0;

	if (!c) {
		cfg_model_free(m);
		return false;
	}
	d->changes.now = c;
	c->done = done;
	c->arg = arg;
	events.arg = c;
	c->nold = d->nunits;
	if (open_units(c) && open_portals(c) && list_leaving(c))
		dir = directory_new(d, m, c->units, c->portals, e);
	units_opened(d);
	if (dir)
		err = tgt_apply(d->target, dir, &events);
	if (err) {
		cfg_error(e, (struct cfg_place){ 0 }, "%s", err_str(err));
		tgt_directory_free(dir);
	}
	if (!dir || err) {
		undo(c);
		return false;
	}
	c->errors = NULL; /* the caller's */
	apply_log(d, m);
	take_model(c);
	return true;
}

/* ---- saving ---- */

/* Writes text to the new file at path. Returns 0 or -Exxx. */
static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t len = strlen(text);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len || fsync(fd))
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
}

/* Makes the new name of a file survive a power loss. */
static int sync_folder(const char *path)
{
	char folder[PATH_MAX];
	char *slash;
	int fd, err;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

int apply_save(const struct daemon *d, const char *path)
{
	char *text = cfg_dump(d->model), temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.new", path);
	struct stat st;
	int err;

	if (!lstat(path, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		free(text); /* rename would remove a device or a socket */
		return S_ISDIR(st.st_mode) ? -EISDIR : -EMEDIUMTYPE;
	}
	if (!text || (size_t)n >= sizeof(temp)) {
		free(text);
		return text ? -ENAMETOOLONG : -ENOMEM;
	}
	unlink(temp); /* of an iserd that was killed */
	err = write_file(temp, text);
	free(text);
	if (!err && rename(temp, path))
		err = -errno;
	if (err)
		unlink(temp);
	return err ? err : sync_folder(path);
}

/* ---- SIGHUP ---- */

static void secrets_applied(void *arg)
{
	struct daemon *d = arg;

	trace_emit(&d->log.trace, TRACE_START,
		   "SIGHUP: new logins use the CHAP secrets that were read "
		   "again");
	service_reloaded(d);
}

bool apply_directory(struct daemon *d, struct cfg_errors *e,
		     const struct tgt_apply_events *events)
{
	struct unit **units = units_match(d, d->model);
	struct tgt_directory *dir =
		units ? directory_new(d, d->model, units, d->portals.all, e)
		      : NULL;
	int err = dir ? tgt_apply(d->target, dir, events) : 0;

	free(units);
	if (err)
		tgt_directory_free(dir);
	if (err || (!dir && !e->n))
		cfg_error(e, (struct cfg_place){ 0 }, "%s; repeat it",
			  err_str(err ? err : ERR_NOMEM));
	return dir && !err;
}

/* False: secrets_applied is not called. */
static bool reload_secrets(struct daemon *d, struct cfg_errors *e)
{
	const struct tgt_apply_events events = { .done = secrets_applied,
						 .arg = d };

	if (apply_directory(d, e, &events))
		return true;
	trace_emit(&d->log.trace, TRACE_CONFIG,
		   "SIGHUP: the CHAP secrets are unchanged");
	return false;
}

static bool has_secrets(const struct cfg_model *m)
{
	for (unsigned i = 0; i < m->auths.n; i++)
		if (m->auths.v[i].accounts.n)
			return true;
	return false;
}

static void file_applied(void *arg, bool good)
{
	struct daemon *d = arg;

	if (good)
		trace_emit(&d->log.trace, TRACE_START,
			   "SIGHUP: the configuration file is in force");
	service_reloaded(d);
}

/* False: file_applied is not called. */
static bool reload_file(struct daemon *d, struct cfg_errors *e)
{
	struct cfg_model *m = cfg_model_load(d->model->options.start.config, e);

	if (m && apply_model(d, m, e, file_applied, d))
		return true;
	trace_emit(&d->log.trace, TRACE_CONFIG,
		   "SIGHUP: the configuration is unchanged");
	return false;
}

/* Begins the reload. False: it has ended already. */
static bool reload(struct daemon *d, struct cfg_errors *e)
{
	if (d->model->options.start.config)
		return reload_file(d, e);
	if (has_secrets(d->model))
		return reload_secrets(d, e);
	trace_emit(&d->log.trace, TRACE_START,
		   "SIGHUP: there are no CHAP secrets to read again; changed "
		   "options need a restart");
	return false;
}

void apply_reload(struct daemon *d)
{
	struct cfg_errors *e;
	bool pending = false;

	if (d->phase != DAEMON_SERVING)
		return; /* the files are read next, or iserd ends */
	service_reloading(d);
	e = calloc(1, sizeof(*e));
	if (!e)
		say("SIGHUP: out of memory");
	else
		pending = reload(d, e);
	if (e)
		cfg_errors_say(e, d->model->options.start.config);
	free(e);
	if (!pending)
		service_reloaded(d);
}
