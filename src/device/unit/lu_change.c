/* SPDX-License-Identifier: BSD-2-Clause */
/* lu_change.c: changes of a unit that may abort tasks; see lu_change.h. */
#include "device/unit/lu_change.h"

#include "device/unit/shared.h"

bool dev_lu_change_is_due(const struct dev_lu_change *u,
			  const struct dev_nexus *n)
{
	if (u->scope != ABORT_LISTED)
		return u->scope == ABORT_ALL || n == u->nexus;
	return u->is_listed && u->is_listed(u, n);
}

void dev_lu_change_start(struct dev_lu_change *u, unsigned from,
			 const struct dev_change_ops *ops)
{
	struct dev_server *s = u->lu->server;

	u->change.saving = dev_lu_saving(u->lu, DEV_KEPT_RESERVATIONS);
	dev_change_start(&u->change, s, &s->lu_changes, from, ops);
}

void dev_lu_change_publish(struct dev_lu_change *u)
{
	if (u->aborts)
		dev_changes_bounce(u->change.queue);
	dev_change_visit(&u->change);
}

/*
 * A command of a nexus whose tasks are being aborted cannot wait for the end of
 * that abort, which waits for the command: complete it with BUSY; the initiator
 * rarely sees that status.
 */
bool dev_lu_change_bounces(struct dev_change *c,
			   const struct dev_change *current)
{
	struct dev_lu_change *u = dev_lu_change_of(c);
	const struct dev_lu_change *now =
		container_of(current, const struct dev_lu_change, change);

	if (!now->aborts || !u->task || u->lu != now->lu ||
	    !dev_lu_change_is_due(now, u->nexus))
		return false;
	u->status = SCSI_BUSY;
	return true;
}

/* ---- aborting tasks ---- */

static void one_is_gone(struct dev_lu_change *u)
{
	if (--u->pending)
		return;
	if (u->aborted)
		u->aborted(u, u->change.round.at);
	else
		dev_round_next(&u->change.round);
}

void dev_nexus_tasks_gone(struct dev_nexus *n)
{
	struct dev_lu_change *u = n->aborting;

	n->aborting = NULL;
	if (u)
		one_is_gone(u);
}

static void mark_due(const struct dev_lu_change *u, unsigned worker)
{
	list_for_each(it, &u->lu->lanes[worker].itls) {
		struct dev_nexus *n =
			list_entry(it, struct dev_itl, link)->nexus;

		n->abort_due = u->aborts && dev_lu_change_is_due(u, n);
	}
}

/* next_due returns a nexus of this worker whose tasks u has not aborted; NULL: none. */
static struct dev_nexus *next_due(const struct dev_lu *lu, unsigned worker)
{
	list_for_each(it, &lu->lanes[worker].itls) {
		struct dev_nexus *n =
			list_entry(it, struct dev_itl, link)->nexus;

		if (n->abort_due)
			return n;
	}
	return NULL;
}

/* An abort may end a nexus, so the walk begins again after each abort. */
void dev_lu_change_abort(struct dev_lu_change *u, unsigned worker)
{
	struct dev_nexus *n;

	mark_due(u, worker);
	u->pending = 1;
	while ((n = next_due(u->lu, worker))) {
		n->abort_due = false;
		if (!n->cfg.abort_tasks)
			continue;
		n->aborting = u;
		u->pending++;
		n->cfg.abort_tasks(n->cfg.arg, u->lu,
				   n == u->nexus ? u->task : NULL);
	}
	one_is_gone(u);
}
