/* SPDX-License-Identifier: BSD-2-Clause */
/* policy.c: the choice of a path, and the rules for commands that a path did
 * not execute. */
#include "lib/path/policy.h"

#include "lib/internal.h"
#include "scsi/cdb.h"

/* ---- paths ---- */

const char *lib_access_str(uint8_t access)
{
	switch ((enum lib_access)access) {
	case LIB_OPTIMIZED:
		return "active/optimized";
	case LIB_NON_OPTIMIZED:
		return "active/non-optimized";
	case LIB_STANDBY:
		return "standby";
	case LIB_UNAVAILABLE:
		return "unavailable";
	case LIB_LBA_DEPENDENT:
		return "LBA dependent";
	case LIB_OFFLINE:
		return "offline";
	case LIB_TRANSITIONING:
		return "transitioning";
	}
	return "unknown";
}

unsigned lib_path_rank(const struct lib_candidate *c)
{
	if (!c->is_ready)
		return 0;
	switch (c->access) {
	case LIB_OPTIMIZED:
		return 3;
	case LIB_NON_OPTIMIZED:
		return 2;
	case LIB_LBA_DEPENDENT:
		return 1;
	default:
		return 0;
	}
}

/* Returns the best rank of the paths that are not parked; 0: there is none. */
static unsigned best_rank(const struct lib_candidate *c, unsigned n)
{
	unsigned best = 0;

	for (unsigned i = 0; i < n; i++)
		if (!c[i].is_parked)
			best = MAX(best, lib_path_rank(&c[i]));
	return best;
}

void lib_policy_fail_back(struct lib_candidate *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		c[i].is_parked = false;
}

/* With failback=manual a path that carried commands and carries none is parked. A
 * parked path that is not better than those in use joins them. */
bool lib_policy_update(const struct lib_policy *p, struct lib_candidate *c,
		       unsigned n)
{
	unsigned best;

	for (unsigned i = 0; i < n; i++)
		if (p->is_manual && c[i].was_used && !lib_path_rank(&c[i]))
			c[i].is_parked = true;
	if (!best_rank(c, n))
		for (unsigned i = 0; i < n; i++)
			c[i].is_parked &= !lib_path_rank(&c[i]);
	best = best_rank(c, n);
	for (unsigned i = 0; i < n; i++) {
		unsigned rank = lib_path_rank(&c[i]);

		c[i].is_parked &= !rank || rank > best;
		c[i].was_used = rank && !c[i].is_parked;
	}
	return best > 0;
}

/* ---- the choice ---- */

/* Returns the path of policy=failover: the last one as long as failback=manual and
 * it is as good as any; else the first preferred one, else the first. */
static int one_path(const struct lib_policy *p, const struct lib_candidate *c,
		    unsigned n, unsigned best)
{
	int found = -1;

	for (unsigned i = 0; i < n; i++) {
		if (c[i].is_parked || lib_path_rank(&c[i]) != best)
			continue;
		if (p->is_manual && i == p->last)
			return (int)i;
		if (found < 0 || (c[i].preferred && !c[found].preferred))
			found = (int)i;
	}
	return found;
}

bool lib_policy_is_used(const struct lib_policy *p,
			const struct lib_candidate *c, unsigned n, unsigned i)
{
	unsigned best = best_rank(c, n);

	if (!best || c[i].is_parked || lib_path_rank(&c[i]) != best)
		return false;
	return p->balance != LIB_FAILOVER || one_path(p, c, n, best) == (int)i;
}

int lib_policy_choose(struct lib_policy *p, const struct lib_candidate *c,
		      unsigned n)
{
	unsigned best = best_rank(c, n);
	int found = -1;

	if (!best)
		return -1;
	if (p->balance == LIB_FAILOVER) {
		found = one_path(p, c, n, best);
		if (c[found].in_progress >= c[found].depth)
			return -1;
		p->last = (unsigned)found;
		return found;
	}
	/* from the one after the last one on, so that equal ones take turns */
	for (unsigned k = 1; k <= n; k++) {
		unsigned i = (p->last + k) % n;

		if (c[i].is_parked || lib_path_rank(&c[i]) != best ||
		    c[i].in_progress >= c[i].depth)
			continue;
		if (found >= 0 && c[i].in_progress >= c[found].in_progress)
			continue;
		found = (int)i;
		if (p->balance == LIB_ROUND_ROBIN)
			break;
	}
	if (found >= 0)
		p->last = (unsigned)found;
	return found;
}

/* ---- commands ---- */

/* Returns whether the command ended because of its connection. A command whose
 * task the role never had has no cause. */
static bool is_lost(const struct iser_io *io)
{
	if (io->cause)
		return lib_is_loss(io->cause);
	return io->err == ISER_E_CLOSED || io->err == ISER_E_TIMEOUT ||
	       io->err == ISER_E_CONNECT || io->err == ISER_E_PROTOCOL ||
	       io->err == ISER_E_LOGIN || io->err == ISER_E_SYSTEM;
}

static struct lib_decision decide_lost(const struct iser_io *io,
				       bool may_repeat)
{
	struct lib_decision d = { .effect = LIB_PATH_LOST };

	if (!may_repeat)
		d.verdict = LIB_DELIVER;
	else if (!io->cause) /* it was not sent */
		d.verdict = LIB_AGAIN;
	else if (!lib_reconnect_may_repeat(io->cdb[0]))
		d.verdict = LIB_DELIVER;
	else
		d.verdict = lib_reconnect_changes_data(io->cdb[0]) ? LIB_HOLD
								   : LIB_AGAIN;
	return d;
}

/* A command that ends with one of these sense codes was not executed (SPC-4
 * §5.16.2.4 and §5.16.2.5). */
static bool access_of_sense(uint16_t asc, uint8_t *access)
{
	switch (asc) {
	case ASC_ACCESS_TRANSITION:
		*access = LIB_TRANSITIONING;
		return true;
	case ASC_PORT_IN_STANDBY:
		*access = LIB_STANDBY;
		return true;
	case ASC_PORT_UNAVAILABLE:
		*access = LIB_UNAVAILABLE;
		return true;
	default:
		return false;
	}
}

/* The target will not execute it. */
static struct lib_decision decide_dropped(const struct iser_io *io,
					  bool may_repeat)
{
	struct lib_decision d = { .verdict = LIB_DELIVER };

	if (may_repeat && lib_reconnect_may_repeat(io->cdb[0]))
		d.verdict = LIB_AGAIN;
	return d;
}

static struct lib_decision decide_status(const struct iser_io *io,
					 bool may_repeat, bool has_other)
{
	struct lib_decision d = { .verdict = LIB_DELIVER };
	struct scsi_sense sense;

	if (io->status == LIB_STATUS_TASK_ABORTED)
		return decide_dropped(io, may_repeat && !io->no_retry);
	if (scsi_sense_parse(&sense, io->sense, io->sense_len) ||
	    sense.deferred)
		return d;
	if (sense.key == SENSE_NOT_READY &&
	    access_of_sense(sense.asc, &d.access)) {
		d.effect = LIB_PATH_REFUSES;
		if (may_repeat && !io->no_retry)
			d.verdict = LIB_AGAIN;
	}
	if (sense.key == SENSE_ILLEGAL_REQUEST &&
	    sense.asc == ASC_LUN_NOT_SUPPORTED) {
		d.effect = LIB_PATH_NO_UNIT;
		if (may_repeat && has_other)
			d.verdict = LIB_AGAIN;
	}
	return d;
}

struct lib_decision lib_path_decide(const struct iser_io *io, bool may_repeat,
				    bool has_other)
{
	struct lib_decision d = { .verdict = LIB_DELIVER };

	if (!io->err)
		return d;
	if (io->err == ISER_E_SCSI)
		return decide_status(io, may_repeat, has_other);
	/* the path leads to another unit; without a cause it was not executed */
	if (io->err == ISER_E_CHANGED) {
		if (may_repeat &&
		    (!io->cause || lib_reconnect_may_repeat(io->cdb[0])))
			d.verdict = LIB_AGAIN;
		return d;
	}
	if (io->err == ISER_E_ABORTED)
		return decide_dropped(io, may_repeat);
	return is_lost(io) ? decide_lost(io, may_repeat) : d;
}
