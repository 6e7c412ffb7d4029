/* SPDX-License-Identifier: BSD-2-Clause */
/* attention.c: unit attention conditions (SAM-5 §5.14), per nexus and unit. A
 * nexus and what waits for it belong to one worker. */
#include <stdlib.h>

#include "device/unit/attention.h"
#include "device/unit/itl.h"
#include "device/unit/lu_life.h"

void dev_attention_set(struct dev_itl *i, enum dev_ua ua)
{
	/* POWER ON replaces all other attentions (SAM-5 §6.2). */
	if (ua == UA_POWER_ON)
		i->attention = 0;
	i->attention |= BIT(ua);
}

static const uint16_t asc[UA_COUNT] = {
	[UA_POWER_ON] = ASC_POWER_ON,
	[UA_BUS_DEVICE_RESET] = ASC_BUS_DEVICE_RESET,
	[UA_COMMANDS_CLEARED] = ASC_COMMANDS_CLEARED,
	[UA_ISCSI_EVENT] = ASC_ISCSI_EVENT,
	[UA_CAPACITY_CHANGED] = ASC_CAPACITY_CHANGED,
	[UA_MODE_CHANGED] = ASC_MODE_PARAMETERS_CHANGED,
	[UA_LUNS_CHANGED] = ASC_REPORTED_LUNS_CHANGED,
	[UA_RESERVATIONS_PREEMPTED] = ASC_RESERVATIONS_PREEMPTED,
	[UA_RESERVATIONS_RELEASED] = ASC_RESERVATIONS_RELEASED,
	[UA_REGISTRATIONS_PREEMPTED] = ASC_REGISTRATIONS_PREEMPTED,
	[UA_ACCESS_CHANGED] = ASC_ACCESS_STATE_CHANGED,
	[UA_ACCESS_CHANGE_FAILED] = ASC_ACCESS_TRANSITION_FAILED,
	[UA_SOFT_THRESHOLD] = ASC_SOFT_THRESHOLD,
	[UA_TIMESTAMP_CHANGED] = ASC_TIMESTAMP_CHANGED,
	[UA_PRIORITY_CHANGED] = ASC_PRIORITY_CHANGED,
	[UA_DEVICE_IDENTIFIER] = ASC_DEVICE_IDENTIFIER_CHANGED,
	[UA_MEDIUM_CHANGED] = ASC_MEDIUM_MAY_HAVE_CHANGED,
	[UA_INQUIRY_CHANGED] = ASC_INQUIRY_CHANGED,
	[UA_LOG_CHANGED] = ASC_LOG_PARAMETERS_CHANGED,
};

uint16_t dev_attention_asc(enum dev_ua ua)
{
	return asc[ua];
}

/* The unit attention that is reported first; attention is not 0. */
static unsigned first(uint32_t attention)
{
	return (unsigned)__builtin_ctz(attention);
}

static uint16_t asc_of(const struct dev_itl *i)
{
	unsigned ua = first(i->attention);

	if (ua == UA_OF_DEVICE)
		return __atomic_load_n(&i->lu->pass.attention,
				       __ATOMIC_RELAXED);
	return asc[ua];
}

void dev_attention_luns_reported(struct dev_nexus *n)
{
	for (struct dev_itl *i = dev_itl_first(n); i; i = dev_itl_next(i))
		i->attention &= ~BIT(UA_LUNS_CHANGED);
}

unsigned dev_attention_take(struct dev_itl *i, struct scsi_sense *s)
{
	uint32_t attention = i->attention;

	if (!attention)
		return 0;
	*s = (struct scsi_sense){ .key = SENSE_UNIT_ATTENTION,
				  .asc = asc_of(i) };
	if (first(attention) == UA_SOFT_THRESHOLD) {
		s->has_info = true; /* which one: SBC-3 §4.7.3.7.6 */
		s->info = DEV_THRESHOLD_AT;
	}
	i->attention &= ~BIT(first(attention));
	if (first(attention) == UA_LUNS_CHANGED)
		dev_attention_luns_reported(i->nexus);
	return 1 + first(attention);
}

void dev_attention_put_back(struct dev_task *t)
{
	if (t->own.begun.attention)
		t->own.begun.itl->attention |= BIT(t->own.begun.attention - 1u);
	t->own.begun.attention = 0;
}

void dev_nexus_commands_cleared(struct dev_nexus *n, const struct dev_lu *lu)
{
	struct dev_itl *i = dev_itl_of(n, lu);

	if (i)
		dev_attention_set(i, UA_COMMANDS_CLEARED);
}

void dev_nexus_iscsi_event(struct dev_nexus *n, const struct dev_lu *lu)
{
	struct dev_itl *i = dev_itl_of(n, lu);

	if (i)
		dev_attention_set(i, UA_ISCSI_EVENT);
}

bool dev_nexus_attention(const struct dev_nexus *n, uint64_t lun,
			 uint8_t info[3])
{
	const struct dev_itl *i = dev_itl_find(n, lun);
	uint32_t attention = i ? i->attention : 0;

	if (!attention)
		return false;
	/* UADE DEPTH: one, or more; then the sense key */
	info[0] = attention & (attention - 1) ? 0x20 : 0x10;
	info[0] |= SENSE_UNIT_ATTENTION;
	put_be16(info + 1, asc_of(i));
	return true;
}

/* ---- to every nexus of a unit, on every worker ---- */

struct nexus_visit {
	struct dev_round round;
	struct dev_lu *lu;
	const struct dev_nexus *except; /* compared only, never dereferenced */
	dev_visit *visit;
	unsigned what;
	struct dev_task *task; /* a waiter for the visit, or NULL */
	void (*then)(struct dev_task *t);
};

static void visit_worker(struct dev_round *r, unsigned worker)
{
	const struct nexus_visit *k =
		container_of(r, struct nexus_visit, round);

	list_for_each(it, &k->lu->lanes[worker].itls) {
		struct dev_itl *i = list_entry(it, struct dev_itl, link);

		k->visit(i, k->what, i->nexus == k->except);
	}
	dev_round_next(r);
}

static void visited_all(struct dev_round *r)
{
	struct nexus_visit *k = container_of(r, struct nexus_visit, round);
	struct dev_task *t = k->task;
	void (*then)(struct dev_task * task) = k->then;

	dev_lu_release(k->lu);
	free(k);
	if (t)
		then(t);
}

bool dev_visit_nexuses(struct dev_lu *lu, unsigned here,
		       const struct dev_nexus *except, dev_visit *visit,
		       unsigned what, struct dev_task *t,
		       void (*then)(struct dev_task *t))
{
	struct nexus_visit *k = malloc(sizeof(*k));

	if (!k)
		return false;
	*k = (struct nexus_visit){ .round = { .server = lu->server,
					      .visit = visit_worker,
					      .done = visited_all },
				   .lu = lu,
				   .except = except,
				   .visit = visit,
				   .what = what,
				   .task = t,
				   .then = then };
	dev_lu_hold(lu);
	dev_round_start(&k->round, here);
	return true;
}

static void set_one(struct dev_itl *i, unsigned ua, bool is_except)
{
	if (!is_except)
		dev_attention_set(i, (enum dev_ua)ua);
}

/* False: no memory: the unit attention is lost. */
static bool establish(struct dev_lu *lu, unsigned here,
		      const struct dev_nexus *except, enum dev_ua ua,
		      struct dev_task *t, void (*then)(struct dev_task *t))
{
	return dev_visit_nexuses(lu, here, except, set_one, ua, t, then);
}

void dev_attention_all(struct dev_task *t, enum dev_ua ua)
{
	establish(t->lu, t->nexus->cfg.worker, NULL, ua, NULL, NULL);
}

void dev_attention_unit(struct dev_lu *lu, unsigned worker,
			const struct dev_nexus *except, enum dev_ua ua)
{
	establish(lu, worker, except, ua, NULL, NULL);
}

void dev_attention_others(struct dev_task *t, enum dev_ua ua,
			  void (*then)(struct dev_task *t))
{
	if (!establish(t->lu, t->nexus->cfg.worker, t->nexus, ua, t, then))
		then(t);
}
