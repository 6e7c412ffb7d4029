/* SPDX-License-Identifier: BSD-2-Clause */
/* attention.c: unit attention conditions (SAM-5 §5.14), per nexus and unit. A
 * nexus and what waits for it belong to one worker. */
#include <stdlib.h>

#include "device/internal.h"

void dev_attention_set(struct dev_nexus *n, uint16_t lun, enum dev_ua ua)
{
	/* a power-on says all that a lesser one could (SAM-5 §6.2) */
	if (ua == UA_POWER_ON)
		n->attention[lun] = 0;
	n->attention[lun] |= BIT(ua);
}

bool dev_attention_take(struct dev_nexus *n, uint16_t lun, struct scsi_sense *s)
{
	static const uint16_t asc[UA_COUNT] = {
		[UA_POWER_ON] = ASC_POWER_ON,
		[UA_BUS_DEVICE_RESET] = ASC_BUS_DEVICE_RESET,
		[UA_COMMANDS_CLEARED] = ASC_COMMANDS_CLEARED,
		[UA_CAPACITY_CHANGED] = ASC_CAPACITY_CHANGED,
		[UA_MODE_CHANGED] = ASC_MODE_PARAMETERS_CHANGED,
		[UA_LUNS_CHANGED] = ASC_REPORTED_LUNS_CHANGED,
		[UA_RESERVATIONS_PREEMPTED] = ASC_RESERVATIONS_PREEMPTED,
		[UA_RESERVATIONS_RELEASED] = ASC_RESERVATIONS_RELEASED,
		[UA_REGISTRATIONS_PREEMPTED] = ASC_REGISTRATIONS_PREEMPTED,
		[UA_ACCESS_CHANGED] = ASC_ACCESS_STATE_CHANGED,
		[UA_SOFT_THRESHOLD] = ASC_SOFT_THRESHOLD,
		[UA_TIMESTAMP_CHANGED] = ASC_TIMESTAMP_CHANGED,
		[UA_MEDIUM_CHANGED] = ASC_MEDIUM_MAY_HAVE_CHANGED,
	};

	for (unsigned ua = 0; ua < UA_COUNT; ua++) {
		if (!(n->attention[lun] & BIT(ua)))
			continue;
		n->attention[lun] &= ~BIT(ua);
		*s = (struct scsi_sense){ .key = SENSE_UNIT_ATTENTION,
					  .asc = asc[ua] };
		return true;
	}
	return false;
}

void dev_nexus_commands_cleared(struct dev_nexus *n, uint64_t lun)
{
	uint16_t l;

	if (!dev_lun_decode(lun, &l) && dev_lu_get(n->server, l))
		dev_attention_set(n, l, UA_COMMANDS_CLEARED);
}

bool dev_nexus_has_attention(const struct dev_nexus *n, uint64_t lun)
{
	uint16_t l;

	return !dev_lun_decode(lun, &l) && dev_lu_get(n->server, l) &&
	       n->attention[l];
}

/* ---- to every nexus of every worker ---- */

struct broadcast {
	struct dev_msg msg;
	struct dev_server *server;
	const struct dev_nexus *except; /* compared only, never followed */
	unsigned worker;
	uint16_t lun;
	enum dev_ua ua;
};

static void set_all(struct dev_server *s, unsigned worker,
		    const struct dev_nexus *except, uint16_t lun,
		    enum dev_ua ua)
{
	list_for_each(it, &s->nexuses[worker]) {
		struct dev_nexus *n = list_entry(it, struct dev_nexus, link);

		if (n != except)
			dev_attention_set(n, lun, ua);
	}
}

static void arrived(struct dev_msg *m)
{
	struct broadcast *b = container_of(m, struct broadcast, msg);

	set_all(b->server, b->worker, b->except, b->lun, b->ua);
	free(b);
}

static void send_to(struct dev_server *s, unsigned worker,
		    const struct dev_nexus *except, uint16_t lun,
		    enum dev_ua ua)
{
	struct broadcast *b = malloc(sizeof(*b));

	if (!b)
		return; /* an attention less; nothing else depends on it */
	*b = (struct broadcast){ .msg = { .run = arrived },
				 .server = s,
				 .except = except,
				 .worker = worker,
				 .lun = lun,
				 .ua = ua };
	s->env.post(s->env.arg, worker, &b->msg);
}

void dev_attention_all(struct dev_lu *lu, const struct dev_nexus *by,
		       const struct dev_nexus *except, enum dev_ua ua)
{
	struct dev_server *s = lu->server;

	for (unsigned w = 0; w < s->env.nworkers; w++) {
		if (s->env.nworkers == 1 || (by && by->cfg.worker == w))
			set_all(s, w, except, lu->cfg.lun, ua);
		else
			send_to(s, w, except, lu->cfg.lun, ua);
	}
}
