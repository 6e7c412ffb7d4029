/* SPDX-License-Identifier: BSD-2-Clause */
/* map.c: gives a nexus another LUN map. */
#include <assert.h>
#include <stdlib.h>

#include "device/nexus.h"
#include "device/order/taskset.h"
#include "device/primary/mode.h"
#include "device/unit/attention.h"
#include "device/unit/lu_life.h"

/* Puts the unit in the table `next`: what the nexus has at the unit already, or a new
 * entry. False: no memory. */
static bool place(struct dev_nexus *n, struct lun_table *next, uint16_t lun,
		  struct dev_lu *lu, bool read_only)
{
	struct dev_itl *i = dev_itl_of(n, lu);
	bool is_new = !i;

	if (is_new)
		i = dev_itl_new(n, lun, lu, read_only);
	if (!i || lun_table_set(next, lun, i)) {
		if (is_new && i)
			dev_itl_free(i);
		return false;
	}
	i->stays = !is_new;
	i->stays_read_only = read_only;
	return true;
}

static bool place_all(struct dev_nexus *n, struct lun_table *next)
{
	const struct dev_map *m = n->mapping.next;
	bool ok = true;

	for (unsigned i = 0; m && ok && i < m->n; i++)
		ok = place(n, next, m->entries[i].lun, m->entries[i].lu,
			   m->entries[i].read_only);
	if (m)
		return ok;
	for (struct dev_lu *lu = dev_lu_from(n->server, 0); lu && ok;
	     lu = dev_lu_after(lu))
		ok = !dev_lu_is_there(lu) ||
		     place(n, next, lu->cfg.lun, lu, false);
	return ok;
}

static void undo(struct lun_table *next)
{
	unsigned lun = 0;

	while ((lun = lun_table_find(next, lun)) < DEV_MAX_LUNS) {
		struct dev_itl *i = lun_table_get(next, lun++);

		if (!i->stays)
			dev_itl_free(i);
		i->stays = false;
	}
	lun_table_fini(next);
}

static void lose_others(struct dev_nexus *n)
{
	for (struct dev_itl *next, *i = dev_itl_first(n); i; i = next) {
		next = dev_itl_next(i);
		if (!i->stays)
			dev_nexus_lose(i);
	}
}

/* What the initiator has not learned yet of a LUN, whichever unit is there. */
#define OF_THE_LUN                                                         \
 (BIT(UA_POWER_ON) | BIT(UA_BUS_DEVICE_RESET) | BIT(UA_COMMANDS_CLEARED) | \
  BIT(UA_ISCSI_EVENT) | BIT(UA_LUNS_CHANGED) | BIT(UA_CAPACITY_CHANGED) |  \
  BIT(UA_MODE_CHANGED) | BIT(UA_INQUIRY_CHANGED))

/* Returns whether READ CAPACITY may return other data. The capacity of a passthrough
 * unit is known to its device only. */
static bool capacity_differs(const struct dev_lu *a, const struct dev_lu *b)
{
	return a->pass.device || b->pass.device ||
	       a->block_size != b->block_size ||
	       DEV_PROTECTION(a) != DEV_PROTECTION(b) ||
	       __atomic_load_n(&a->blocks, __ATOMIC_RELAXED) !=
		       __atomic_load_n(&b->blocks, __ATOMIC_RELAXED);
}

static bool modes_differ(const struct dev_itl *old, const struct dev_itl *i)
{
	bool was_protected = dev_itl_write_protected(old);
	bool is_protected = i->stays_read_only || dev_is_read_only(i->lu) ||
			    DEV_CTL(i->lu, swp);

	return was_protected != is_protected ||
	       !dev_mode_pages_same(old->lu, i->lu);
}

/* Returns the attentions of a LUN that has the unit of i in place of another one: the
 * list of LUNs is the same, what the LUN reports about itself is not (SPC-4 §6.6.1 and
 * §7.5, SBC-3 §4.5). */
static uint32_t replacement_of(const struct dev_itl *old,
			       const struct dev_itl *i)
{
	uint32_t attention = old->attention & OF_THE_LUN;

	if (attention & BIT(UA_POWER_ON)) /* stands for all others */
		return attention;
	attention |= BIT(UA_INQUIRY_CHANGED);
	if (capacity_differs(old->lu, i->lu))
		attention |= BIT(UA_CAPACITY_CHANGED);
	if (modes_differ(old, i))
		attention |= BIT(UA_MODE_CHANGED);
	return attention;
}

/* Compares the tables by LUN, and sets `replaces` where both have units. Returns whether
 * the lists of LUNs differ. */
static bool compare(struct dev_nexus *n, const struct lun_table *next)
{
	bool differs = false;

	for (unsigned lun = 0; (lun = lun_table_find(next, lun)) < DEV_MAX_LUNS;
	     lun++) {
		struct dev_itl *i = lun_table_get(next, lun);
		const struct dev_itl *old = lun_table_get(&n->itls, lun);

		i->replaces = old && old != i ? replacement_of(old, i) : 0;
		differs |= !old;
	}
	for (const struct dev_itl *i = dev_itl_first(n); i; i = dev_itl_next(i))
		differs |= !lun_table_get(next, i->lun);
	return differs;
}

/* The initiator learns of WP by the attention (SPC-4 §7.5). Commands that have begun
 * are checked again. */
static void set_read_only(struct dev_itl *i)
{
	if (i->read_only == i->stays_read_only)
		return;
	i->read_only = i->stays_read_only;
	dev_attention_set(i, UA_MODE_CHANGED);
	dev_lu_changed(i->lu);
}

static void take_units(struct dev_nexus *n)
{
	unsigned lun = 0;

	while ((lun = lun_table_find(&n->itls, lun)) < DEV_MAX_LUNS) {
		struct dev_itl *i = lun_table_get(&n->itls, lun);

		if (i->stays) {
			set_read_only(i);
			i->lun = (uint16_t)lun;
		} else {
			dev_nexus_enter(i);
			if (i->replaces) /* not a new LUN */
				i->attention &= ~BIT(UA_POWER_ON);
		}
		i->attention |= i->replaces;
		i->replaces = 0;
		lun++;
	}
}

static void put_in_force(struct dev_nexus *n, const struct lun_table *next)
{
	bool differs = compare(n, next);
	struct lun_table old;

	lose_others(n);
	old = n->itls;
	n->itls = *next;
	lun_table_fini(&old);
	dev_map_put(n->map);
	n->map = n->mapping.next;
	n->mapping.next = NULL;
	take_units(n);
	for (struct dev_itl *i = dev_itl_first(n); i; i = dev_itl_next(i)) {
		if (differs && i->stays)
			dev_attention_set(i, UA_LUNS_CHANGED);
		i->stays = false;
	}
}

static void try_again(struct dev_msg *m);

static void change_map(struct dev_nexus *n)
{
	const struct dev_env *env = &n->server->env;
	struct lun_table next = { { NULL } };

	n->mapping.is_retrying = !place_all(n, &next);
	if (n->mapping.is_retrying) {
		undo(&next);
		n->mapping.retry.run = try_again;
		env->post(env->arg, n->cfg.worker, &n->mapping.retry);
		return;
	}
	put_in_force(n, &next);
	dev_nexus_let_go(n);
}

/* The nexus has no units any more, and gets none. */
static void give_up(struct dev_nexus *n)
{
	void (*done)(void *arg) = n->mapping.done;

	dev_map_put(n->mapping.next);
	n->mapping.next = NULL;
	n->mapping.done = NULL;
	done(n->mapping.arg);
}

static void try_again(struct dev_msg *m)
{
	struct dev_nexus *n = container_of(m, struct dev_nexus, mapping.retry);

	if (!n->has_parted) {
		change_map(n);
		return;
	}
	give_up(n); /* may close n, which is_retrying keeps */
	n->mapping.is_retrying = false;
	if (n->is_closed && dev_nexus_is_idle(n))
		dev_nexus_free(n);
}

void dev_nexus_set_map(struct dev_nexus *n, struct dev_map *map,
		       void (*done)(void *arg), void *arg)
{
	assert(!n->mapping.done);
	n->mapping.next = dev_map_get(map);
	n->mapping.done = done;
	n->mapping.arg = arg;
	if (n->has_parted)
		give_up(n);
	else
		change_map(n);
}
