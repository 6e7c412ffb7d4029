/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lun_table.h: a table of pointers by a number from 0 to 16,383: the units of a
 * server by their numbers, those of a nexus by LUN. Its pages are allocated when they
 * are needed. One worker changes a table; other workers may read it meanwhile.
 */
#ifndef DEVICE_LUN_TABLE_H
#define DEVICE_LUN_TABLE_H

#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

#define DEV_MAX_LUNS 16384u
#define LUN_PAGE     256u

struct lun_table {
	void **pages[DEV_MAX_LUNS / LUN_PAGE];
};

static inline void **lun_table_page(const struct lun_table *t, unsigned n)
{
	void **const *p = &t->pages[n / LUN_PAGE];

	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* lun_table_get returns the pointer with the number n, which is below DEV_MAX_LUNS,
 * or NULL. */
static inline void *lun_table_get(const struct lun_table *t, unsigned n)
{
	void **p = lun_table_page(t, n);

	if (!p)
		return NULL;
	p += n % LUN_PAGE;
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void lun_table_publish(void ***p, void **page)
{
	__atomic_store_n(p, page, __ATOMIC_RELEASE);
}

/* lun_table_set sets the pointer with the number n; NULL: removes it. ERR_NOMEM: the
 * table is unchanged. */
static inline int lun_table_set(struct lun_table *t, unsigned n, void *what)
{
	void **p = lun_table_page(t, n);

	if (!p) {
		void ***at = &t->pages[n / LUN_PAGE];

		p = calloc(LUN_PAGE, sizeof(*p));
		if (!p)
			return ERR_NOMEM;
		lun_table_publish(at, p);
	}
	p += n % LUN_PAGE;
	__atomic_store_n(p, what, __ATOMIC_RELEASE);
	return 0;
}

/* lun_table_find returns the first number that is not below n and has a pointer;
 * DEV_MAX_LUNS: none. lun_table_from returns that pointer, or NULL. */
static inline unsigned lun_table_find(const struct lun_table *t, unsigned n)
{
	while (n < DEV_MAX_LUNS) {
		if (!lun_table_page(t, n))
			n = (n / LUN_PAGE + 1) * LUN_PAGE;
		else if (!lun_table_get(t, n))
			n++;
		else
			break;
	}
	return n;
}

static inline void *lun_table_from(const struct lun_table *t, unsigned n)
{
	n = lun_table_find(t, n);
	return n < DEV_MAX_LUNS ? lun_table_get(t, n) : NULL;
}

/* lun_table_fini frees the pages, not what the pointers point to. */
static inline void lun_table_fini(struct lun_table *t)
{
	for (unsigned i = 0; i < DEV_MAX_LUNS / LUN_PAGE; i++)
		free(t->pages[i]);
}

#endif
