/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * itl.h: which units a nexus can access, and what it has at each of them. A nexus
 * without a map can access every unit, by its number.
 */
#ifndef DEVICE_ITL_H
#define DEVICE_ITL_H

#include "device/unit/unit.h"

/* A unit in a map: its number, which stays valid without the unit, and the index of its
 * entry. */
struct map_place {
	uint16_t number, index;
};

/* Immutable. The entries are in the order of their LUNs. */
struct dev_map {
	unsigned refs; /* atomic */
	unsigned n;
	struct map_place *by_unit; /* in the order of the numbers */
	struct dev_map_entry entries[];
};

/* dev_itl_new makes the I_T_L nexus of n and the unit, without adding it; NULL: no
 * memory. dev_itl_free frees it; no task uses it. */
struct dev_itl *dev_itl_new(struct dev_nexus *n, uint16_t lun,
			    struct dev_lu *lu, bool read_only);
void dev_itl_free(struct dev_itl *i);
/* dev_itl_join lets changes of the unit reach i. dev_itl_leave ends that: i leaves the
 * table of its nexus and is freed by dev_nexus_sweep. */
void dev_itl_join(struct dev_itl *i);
void dev_itl_leave(struct dev_itl *i);
/* dev_nexus_sweep frees what n has at the units that it has lost, as far as nothing
 * uses it any more. */
void dev_nexus_sweep(struct dev_nexus *n);

/* dev_itl_find returns what n has at the unit with this LUN in wire form, or NULL. */
static inline struct dev_itl *dev_itl_find(const struct dev_nexus *n,
					   uint64_t wire)
{
	uint16_t lun;

	return dev_lun_decode(wire, &lun) ? NULL : lun_table_get(&n->itls, lun);
}

/* dev_itl_of returns what n has at the unit; NULL: n cannot access the unit. */
struct dev_itl *dev_itl_of(const struct dev_nexus *n, const struct dev_lu *lu);

/* dev_itl_first and dev_itl_next return the units of n in the order of their LUNs;
 * NULL: the end. */
static inline struct dev_itl *dev_itl_first(const struct dev_nexus *n)
{
	return lun_table_from(&n->itls, 0);
}

static inline struct dev_itl *dev_itl_next(const struct dev_itl *i)
{
	return lun_table_from(&i->nexus->itls, i->lun + 1u);
}

/* dev_itl_write_protected returns whether the unit is read-only or has SWP set, or is
 * read-only for this nexus. */
bool dev_itl_write_protected(const struct dev_itl *i);

#endif
