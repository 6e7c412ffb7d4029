/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prevent.c: which nexuses prevent medium removal (SPC-4 §6.14, MMC-6 §6.14). A
 * nexus's prevention counts while its generation is the unit's: a reset begins a
 * new generation, which ends all preventions.
 */
#include "device/unit/condition.h"
#include "device/unit/itl.h"

static uint32_t generation(uint64_t preventions)
{
	return (uint32_t)(preventions >> 32);
}

/* The state of one nexus, and the number of nexuses that prevent removal. MMC-6
 * §6.14 has two kinds: a persistent prevention permits initiators to eject. */
struct prevention {
	uint32_t *mine;
	uint64_t *all;
};

static struct prevention plain(struct dev_itl *i, struct dev_lu *lu)
{
	return (struct prevention){ i ? &i->prevents : NULL,
				    &lu->prevented.ordinary };
}

static struct prevention persistent(struct dev_itl *i, struct dev_lu *lu)
{
	return (struct prevention){ i ? &i->persists : NULL,
				    &lu->prevented.persistent };
}

/* count adds `by` to the number of this generation. If a concurrent reset has begun a
 * new generation, the number stays. */
static void count(uint64_t *all, uint32_t gen, int by)
{
	uint64_t was = __atomic_load_n(all, __ATOMIC_RELAXED);

	while (generation(was) == gen &&
	       !__atomic_compare_exchange_n(all, &was,
					    was + (uint64_t)(int64_t)by, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void set_prevention(struct prevention p, bool on)
{
	uint32_t gen = generation(__atomic_load_n(p.all, __ATOMIC_RELAXED));
	bool was = *p.mine == gen + 1;

	if (was != on)
		count(p.all, gen, on ? 1 : -1);
	*p.mine = on ? gen + 1 : 0;
}

bool dev_is_prevented(const struct dev_lu *lu)
{
	return (uint32_t)__atomic_load_n(&lu->prevented.ordinary,
					 __ATOMIC_RELAXED);
}

bool dev_is_locked(const struct dev_lu *lu)
{
	return dev_is_prevented(lu) ||
	       (uint32_t)__atomic_load_n(&lu->prevented.persistent,
					 __ATOMIC_RELAXED);
}

static void reset_prevention(struct prevention p)
{
	uint64_t was = __atomic_load_n(p.all, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(
		p.all, &was, (uint64_t)(generation(was) + 1) << 32, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void dev_prevent(struct dev_itl *i, bool persists, bool on)
{
	set_prevention(persists ? persistent(i, i->lu) : plain(i, i->lu), on);
}

void dev_removal_reset(struct dev_lu *lu)
{
	reset_prevention(plain(NULL, lu));
	reset_prevention(persistent(NULL, lu));
}

void dev_removal_nexus_gone(struct dev_itl *i)
{
	if (i->prevents)
		set_prevention(plain(i, i->lu), false);
	if (i->persists)
		set_prevention(persistent(i, i->lu), false);
}
