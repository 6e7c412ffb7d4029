/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flush.c: failed flushes, per nexus and per unit. A nexus belongs to one worker;
 * any worker may store the two numbers of the unit.
 *
 * Linux repeats a SYNCHRONIZE CACHE that ended with WRITE ERROR up to five times at
 * once, and would take a GOOD for its result. So flushes soon after a report report
 * the error again.
 */
#include "device/unit/flush.h"

#include <string.h>

#include "base/crc32c.h"
#include "device/unit/itl.h"

#define REPEAT_MS  250u
#define REPEAT_MAX 16u

static bool is_write(const struct bs_req *req)
{
	return req->op == BS_WRITE || req->op == BS_ZERO || req->op == BS_UNMAP;
}

/* A flush reports failures of earlier writes of its nexus, and so does a write to the
 * unit of t that is durable at its end. A copy does not, because its sense data could
 * not name the blocks. */
static bool is_judged(const struct dev_task *t, const struct dev_lu *lu)
{
	if (t->own.req.op == BS_FLUSH)
		return true;
	return is_write(&t->own.req) && (t->own.req.flags & BS_FUA) &&
	       lu == t->lu && !t->own.copy;
}

/* The nexus may lose a unit while its copy writes there: then no flush of the nexus
 * will report the writes, and NULL is returned. */
static struct dev_unflushed *unflushed_of(const struct dev_task *t)
{
	struct dev_itl *i = t->own.begun.itl;

	if (i->lu != t->own.io.lu) /* of a copy */
		i = dev_itl_of(t->nexus, t->own.io.lu);
	return i ? &i->unflushed : NULL;
}

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* A flush failed after the nexus wrote, so the writes may be lost. */
static void renew(struct dev_unflushed *u, uint32_t failures)
{
	if (u->failures == failures)
		return;
	if (u->wrote)
		u->lost = u->wrote;
	u->wrote = 0;
	u->failures = failures;
}

static uint64_t wall_ms(const struct dev_nexus *n)
{
	const struct dev_env *env = &n->server->env;

	return env->wall_ms ? env->wall_ms(env->arg) : 0;
}

static bool is_repeated(const struct dev_task *t, struct dev_unflushed *u)
{
	if (u->reports && u->reports < REPEAT_MAX && u->reported_at &&
	    wall_ms(t->nexus) - u->reported_at < REPEAT_MS)
		return true;
	u->reports = 0;
	return false;
}

/* ---- initiators whose session ended ---- */

static uint64_t departed_key(const struct dev_nexus *n)
{
	const char *port = n->cfg.initiator_port;
	uint32_t crc = crc32c_update(CRC32C_SEED, port, strlen(port));

	return (uint64_t)(crc ? crc : 1) << 32;
}

static bool is_of(uint64_t departed, uint64_t key)
{
	return departed >> 32 == key >> 32;
}

/* An existing entry of the port stays, because its failure count is lower: it reports
 * each loss that a new entry would report. */
static void depart_from(struct dev_lu *lu, uint64_t key, uint32_t failures)
{
	uint32_t i = __atomic_fetch_add(&lu->flushes.departures, 1,
					__ATOMIC_ACQ_REL);

	for (unsigned k = 0; k < DEV_DEPARTED; k++)
		if (is_of(__atomic_load_n(&lu->flushes.departed[k],
					  __ATOMIC_ACQUIRE),
			  key))
			return;
	__atomic_store_n(&lu->flushes.departed[i % DEV_DEPARTED],
			 key | failures, __ATOMIC_RELEASE);
}

void dev_flush_depart(const struct dev_itl *i)
{
	const struct dev_unflushed *u = &i->unflushed;

	if (u->wrote || u->lost)
		depart_from(i->lu, departed_key(i->nexus),
			    u->lost ? u->failures - 1 : u->failures);
}

/* A new session takes over the writes of the last session of its initiator port. */
static void inherit(struct dev_task *t, struct dev_lu *lu,
		    struct dev_unflushed *u)
{
	uint64_t key;

	t->own.io.departures = load(&lu->flushes.departures);
	if (!t->own.io.departures)
		return;
	key = departed_key(t->nexus);
	for (unsigned k = 0; k < DEV_DEPARTED; k++) {
		uint64_t d = __atomic_load_n(&lu->flushes.departed[k],
					     __ATOMIC_ACQUIRE);

		if (!is_of(d, key) ||
		    !__atomic_compare_exchange_n(&lu->flushes.departed[k], &d,
						 0, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		if ((uint32_t)d == u->failures)
			u->wrote = u->flushes + 1;
		else
			u->lost = u->flushes + 1;
	}
}

/* After a successful flush the writes of sessions that ended before the flush are
 * durable, unless an earlier flush lost them. */
static void settle_departed(const struct dev_task *t, struct dev_lu *lu,
			    uint32_t failures)
{
	if (!t->own.io.departures ||
	    t->own.io.departures != load(&lu->flushes.departures))
		return;
	for (unsigned k = 0; k < DEV_DEPARTED; k++) {
		uint64_t d = __atomic_load_n(&lu->flushes.departed[k],
					     __ATOMIC_ACQUIRE);

		if (d && (uint32_t)d == failures)
			(void)__atomic_compare_exchange_n(
				&lu->flushes.departed[k], &d, 0, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

/* ---- flushes ---- */

/* Flushes are numbered from 1. A write that ended before a flush has at most the
 * number of that flush. */
static void flush_begin(struct dev_task *t, struct dev_lu *lu)
{
	struct dev_unflushed *u = unflushed_of(t);

	renew(u, t->own.io.failures);
	inherit(t, lu, u);
	t->own.io.flush = ++u->flushes;
	t->own.io.covers = u->wrote != 0;
	t->own.io.reports = u->lost || (u->reports && is_repeated(t, u));
	t->own.io.rewritten = load(&lu->flushes.rewritten);
}

void dev_flush_begin(struct dev_task *t, struct dev_lu *lu)
{
	t->own.io.lu = lu;
	t->own.io.failures = bs_flush_failures(lu->bs);
	if (is_judged(t, lu))
		flush_begin(t, lu);
}

/* A write that is not durable yet. */
static void note_write(struct dev_task *t)
{
	struct dev_unflushed *u = unflushed_of(t);
	struct dev_lu *lu = t->own.io.lu;

	if (!u)
		return;
	renew(u, bs_flush_failures(lu->bs));
	if (t->own.io.failures == u->failures)
		u->wrote = u->flushes + 1;
	else
		u->lost = u->flushes + 1;
	if (t->own.io.failures != load(&lu->flushes.settled) &&
	    t->own.io.failures != load(&lu->flushes.rewritten))
		__atomic_store_n(&lu->flushes.rewritten, t->own.io.failures,
				 __ATOMIC_RELEASE);
}

/* Every write before the flush is durable, or its loss was reported. */
static void settle(const struct dev_task *t, struct dev_unflushed *u,
		   uint32_t failures)
{
	renew(u, failures);
	if (u->wrote <= t->own.io.flush)
		u->wrote = 0;
	if (u->lost <= t->own.io.flush)
		u->lost = 0;
}

static int flush_end(struct dev_task *t)
{
	struct dev_unflushed *u = unflushed_of(t);
	uint32_t failures = bs_flush_failures(t->own.io.lu->bs);
	bool failed = failures != t->own.io.failures;
	int result = t->own.req.result;

	if (t->own.io.reports || (failed && (result || t->own.io.covers))) {
		settle(t, u, failures);
		u->reports++;
		u->reported_at = wall_ms(t->nexus);
		return result && result != ERR_MEDIUM ? result : ERR_UNFLUSHED;
	}
	if (result || t->own.req.op != BS_FLUSH)
		return result;
	settle(t, u, failures);
	if (!failed)
		settle_departed(t, t->own.io.lu, failures);
	if (!failed && t->own.io.rewritten == failures)
		__atomic_store_n(&t->own.io.lu->flushes.settled, failures,
				 __ATOMIC_RELEASE);
	return 0;
}

int dev_flush_end(struct dev_task *t)
{
	bool judged = is_judged(t, t->own.io.lu);

	if (is_write(&t->own.req) && !t->own.req.result &&
	    !(t->own.req.flags & BS_FUA))
		note_write(t);
	return judged ? flush_end(t) : t->own.req.result;
}

bool dev_lu_flush_failed(const struct dev_lu *lu)
{
	return lu->bs &&
	       bs_flush_failures(lu->bs) != load(&lu->flushes.settled);
}

void dev_lu_flush_forget(struct dev_lu *lu)
{
	if (lu->bs)
		__atomic_store_n(&lu->flushes.settled,
				 bs_flush_failures(lu->bs), __ATOMIC_RELEASE);
}
