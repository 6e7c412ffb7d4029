/* SPDX-License-Identifier: BSD-2-Clause */
/* itl.c: LUN maps, and the units of a nexus (itl.h). */
#include "device/unit/itl.h"
#include "device/unit/lu_life.h"
#include "device/unit/shared.h"

#include <stdlib.h>
#include <string.h>

/* ---- maps ---- */

static int compare_luns(const void *a, const void *b)
{
	const struct dev_map_entry *x = a, *y = b;

	return (int)x->lun - (int)y->lun;
}

static int compare_units(const void *a, const void *b)
{
	const struct map_place *x = a, *y = b;

	return (int)x->number - (int)y->number;
}

static int sort_luns(struct dev_map *m)
{
	qsort(m->entries, m->n, sizeof(m->entries[0]), compare_luns);
	for (unsigned i = 0; i < m->n; i++) {
		if (m->entries[i].lun >= DEV_MAX_LUNS)
			return ERR_RANGE;
		if (i && m->entries[i].lun == m->entries[i - 1].lun)
			return ERR_BUSY;
	}
	return 0;
}

static int sort_units(struct dev_map *m)
{
	struct map_place *p = m->by_unit;

	for (unsigned i = 0; i < m->n; i++)
		p[i] = (struct map_place){ m->entries[i].lu->cfg.lun,
					   (uint16_t)i };
	qsort(p, m->n, sizeof(*p), compare_units);
	for (unsigned i = 1; i < m->n; i++)
		if (p[i].number == p[i - 1].number)
			return ERR_BUSY;
	return 0;
}

int dev_map_new(struct dev_server *s, const struct dev_map_entry *e, unsigned n,
		struct dev_map **map)
{
	size_t entries = n * sizeof(*e);
	struct dev_map *m;
	int err;

	(void)s;
	if (n > DEV_MAX_LUNS)
		return ERR_RANGE;
	m = malloc(sizeof(*m) + entries + n * sizeof(m->by_unit[0]));
	if (!m)
		return ERR_NOMEM;
	m->refs = 1;
	m->n = n;
	m->by_unit = (struct map_place *)(m->entries + n);
	if (n)
		memcpy(m->entries, e, entries);
	err = sort_luns(m);
	if (!err)
		err = sort_units(m);
	if (err)
		free(m);
	else
		*map = m;
	return err;
}

struct dev_map *dev_map_get(struct dev_map *m)
{
	if (m)
		__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	return m;
}

void dev_map_put(struct dev_map *m)
{
	if (m && __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(m);
}

/* Returns the entry of the unit, or NULL. The units of other entries may be gone. */
static const struct dev_map_entry *entry_of(const struct dev_map *m,
					    const struct dev_lu *lu)
{
	unsigned from = 0, to = m->n;

	while (from < to) {
		unsigned at = (from + to) / 2;
		const struct map_place *p = &m->by_unit[at];

		if (p->number == lu->cfg.lun)
			return &m->entries[p->index];
		if (p->number < lu->cfg.lun)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}

bool dev_map_has(const struct dev_map *m, const struct dev_lu *lu)
{
	return !m || entry_of(m, lu);
}

bool dev_map_equal(const struct dev_map *a, const struct dev_map *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		const struct dev_map_entry *x = &a->entries[i];
		const struct dev_map_entry *y = &b->entries[i];

		if (x->lun != y->lun || x->lu != y->lu ||
		    x->read_only != y->read_only)
			return false;
	}
	return true;
}

/* ---- the units of a nexus ---- */

struct dev_itl *dev_itl_new(struct dev_nexus *n, uint16_t lun,
			    struct dev_lu *lu, bool read_only)
{
	struct dev_itl *i = aligned_alloc(_Alignof(struct dev_itl), sizeof(*i));

	if (!i)
		return NULL;
	memset(i, 0, sizeof(*i));
	list_init(&i->link);
	i->nexus = n;
	i->lun = lun;
	i->lu = lu;
	i->read_only = read_only;
	dev_lu_hold(lu);
	return i;
}

void dev_itl_free(struct dev_itl *i)
{
	list_del(&i->link);
	dev_itl_forget(i);
	dev_lu_release(i->lu);
	free(i);
}

void dev_itl_join(struct dev_itl *i)
{
	list_push_back(&i->lu->lanes[i->nexus->cfg.worker].itls, &i->link);
}

void dev_itl_leave(struct dev_itl *i)
{
	struct dev_nexus *n = i->nexus;

	if (lun_table_get(&n->itls, i->lun) == i)
		(void)lun_table_set(&n->itls, i->lun, NULL);
	i->left_age = n->copies_begun;
	list_del(&i->link);
	list_push_back(&n->left, &i->link);
}

/* A copy that began before the nexus lost the unit may be from or to it. */
static bool is_copying(const struct dev_itl *i)
{
	for (unsigned k = 0; k < DEV_COPIES; k++) {
		const struct dev_copy *c = &i->nexus->copies[k];

		if (c->state == COPY_RUNS && c->age < i->left_age)
			return true;
	}
	return false;
}

void dev_nexus_sweep(struct dev_nexus *n)
{
	list_for_each_safe(it, &n->left) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		if (!i->users && i->is_released && !is_copying(i))
			dev_itl_free(i);
	}
}

struct dev_itl *dev_itl_of(const struct dev_nexus *n, const struct dev_lu *lu)
{
	const struct dev_map_entry *e = n->map ? entry_of(n->map, lu) : NULL;
	struct dev_itl *i = NULL;

	if (!n->map)
		i = lun_table_get(&n->itls, lu->cfg.lun);
	else if (e)
		i = lun_table_get(&n->itls, e->lun);
	return i && i->lu == lu ? i : NULL;
}

struct dev_lu *dev_nexus_unit(const struct dev_nexus *n, uint64_t wire)
{
	const struct dev_itl *i = dev_itl_find(n, wire);

	return i ? i->lu : NULL;
}

enum dev_access dev_access_at(const struct dev_nexus *n,
			      const struct dev_lu *lu)
{
	const struct dev_itl *i = lu->shared ? dev_itl_of(n, lu) : NULL;

	if (!lu->shared)
		return n->access;
	return i ? (enum dev_access)i->access : DEV_ACCESS_UNAVAILABLE;
}

bool dev_itl_write_protected(const struct dev_itl *i)
{
	return i->read_only || dev_is_read_only(i->lu) || DEV_CTL(i->lu, swp);
}
