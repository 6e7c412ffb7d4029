/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * medium.c: changes the medium of a CD/DVD device while the unit is served. A
 * change sets the condition LU_CHANGING and then takes exclusive access to all
 * blocks, so that no command reads the old backstore when the change closes
 * it. A command that began before the change and executes afterwards finds that
 * lu->medium differs (task.c).
 */
#include <stdlib.h>

#include "device/cd/cd.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"
#include "device/unit/lu_life.h"
#include "device/unit/range.h"

/* ---- events for the nexuses ---- */

static void post_event(struct dev_itl *i, unsigned event, bool is_own)
{
	i->media_event = (uint8_t)event;
	if (event == CD_EVENT_NEW_MEDIUM && !is_own)
		dev_attention_set(i, UA_MEDIUM_CHANGED);
}

void cd_post_event(struct dev_task *t, enum cd_event event,
		   void (*then)(struct dev_task *t))
{
	if (!dev_visit_nexuses(t->lu, t->nexus->cfg.worker, t->nexus,
			       post_event, event, t, then))
		then(t);
}

bool cd_tray_is_open(const struct dev_lu *lu)
{
	enum dev_condition c = dev_condition(lu);

	return c == LU_EJECTED || c == LU_EMPTY_OPEN;
}

/* ---- a change of the medium ---- */

struct change {
	struct dev_range range;
	struct dev_round round;
	struct dev_lu *lu;
	unsigned here;
	struct bs *bs; /* the new backstore until swap, then the old one */
	enum dev_condition before, after;
	void (*done)(void *arg, int err);
	void *arg;
};

static void over(struct change *c, enum dev_condition to, int err)
{
	(void)dev_condition_go(c->lu, LU_CHANGING, to);
	if (c->bs)
		bs_close(c->bs);
	c->done(c->arg, err);
	dev_background_end(c->lu);
	free(c);
}

static void visit_change(struct dev_round *r, unsigned worker)
{
	const struct change *c = container_of(r, struct change, round);

	list_for_each(it, &c->lu->lanes[worker].itls)
		post_event(list_entry(it, struct dev_itl, link),
			   c->after == LU_READY ? CD_EVENT_NEW_MEDIUM
						: CD_EVENT_REMOVAL,
			   false);
	dev_round_next(r);
}

/* Every nexus has its event before the first nexus can use the new medium. */
static void changed(struct dev_round *r)
{
	struct change *c = container_of(r, struct change, round);

	over(c, c->after, 0);
}

static void swap(struct dev_range *r)
{
	struct change *c = container_of(r, struct change, range);
	struct dev_lu *lu = c->lu;
	struct bs *old = lu->bs;

	lu->bs = c->bs;
	c->bs = old;
	__atomic_store_n(&lu->blocks,
			 lu->bs ? lu->bs->size >> lu->block_shift : 0,
			 __ATOMIC_RELAXED);
	__atomic_add_fetch(&lu->medium, 1, __ATOMIC_RELAXED);
	dev_lu_changed(lu);
	dev_range_drop(&c->range);
	dev_round_start(&c->round, c->here);
}

/* begin sets the condition to LU_CHANGING; false: another change is in
 * progress, or the condition does not permit a change. */
static bool begin(struct change *c)
{
	static const enum dev_condition from[] = { LU_READY, LU_EJECTED,
						   LU_EMPTY, LU_EMPTY_OPEN };

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		c->before = from[i];
		if (dev_condition_go(c->lu, from[i], LU_CHANGING))
			return true;
	}
	return false;
}

static int check(struct dev_lu *lu, const struct bs *b, bool force)
{
	if (lu->cfg.type != DEV_CD)
		return ERR_UNSUPPORTED;
	if (dev_lu_is_leaving(lu))
		return ERR_AGAIN;
	if (b &&
	    (b->block_size != lu->block_size || !(b->caps & BS_CAP_READ_ONLY)))
		return ERR_FORMAT;
	if (force || dev_condition(lu) != LU_READY || !dev_is_locked(lu))
		return 0;
	/* Act as if the eject button was pressed (MMC-6 §6.6): an initiator that
	 * prevents removal may then allow it. */
	(void)dev_visit_nexuses(lu, 0, NULL, post_event, CD_EVENT_EJECT_REQUEST,
				NULL, NULL);
	return ERR_BUSY;
}

int dev_lu_change_medium(struct dev_lu *lu, struct bs *b, bool force,
			 void (*done)(void *arg, int err), void *arg)
{
	int err = check(lu, b, force);
	struct change *c;

	if (err)
		return err;
	c = malloc(sizeof(*c));
	if (!c)
		return ERR_NOMEM;
	*c = (struct change){ .lu = lu,
			      .bs = b,
			      .after = b ? LU_READY : LU_EMPTY_OPEN,
			      .round = { .server = lu->server,
					 .visit = visit_change,
					 .done = changed },
			      .done = done,
			      .arg = arg };
	if (!begin(c)) {
		free(c);
		return ERR_AGAIN;
	}
	dev_background_begin(lu);
	if (dev_range_take(&c->range, lu, c->here, 0, DEV_STATE_LBA,
			   DEV_HOLD_ALONE, swap)) {
		(void)dev_condition_go(lu, LU_CHANGING, c->before);
		dev_background_end(lu);
		free(c);
		return ERR_NOMEM;
	}
	return 0;
}
