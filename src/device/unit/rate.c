/* SPDX-License-Identifier: BSD-2-Clause */
/* rate.c: limits of the operations and bytes per second of a unit (rate.h). */
#include "device/unit/rate.h"

#include "device/unit/command.h"
#include "device/unit/lu_life.h"

/* A timer has a resolution of a millisecond: with a smaller burst a worker could not
 * reach the rate. */
#define BURST_MIN (2 * XTIME_MS)
/* how long new limits may take to reach commands that wait */
#define WAIT_MAX 100u /* ms */
/* how far copies may run ahead */
#define DEBT_MAX XTIME_S

/* Functions that end the commands of all initiators of a unit: after these in a row, one
 * in a quarter of a second, so that other commands get on in between. */
#define RESETS		 4u
#define RESET_PER_SECOND 4u
/* how long one may have to wait */
#define RESET_WAIT_MAX XTIME_S

#define COST_MAX 1e15 /* ns, of one command: no overflow */

static int64_t load(const int64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void store(int64_t *p, int64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

bool dev_rate_is_limited(const struct dev_lu *lu)
{
	return load(&lu->settings.rates[DEV_OPS].per_second) ||
	       load(&lu->settings.rates[DEV_BYTES].per_second);
}

static void set_one(struct dev_rate *r, uint64_t per_second, uint64_t burst)
{
	const int64_t rate = (int64_t)MIN(per_second, (uint64_t)INT64_MAX);
	double ns = burst && rate ? (double)burst * 1e9 / (double)rate
				  : (double)XTIME_S / 10;

	store(&r->burst, (int64_t)MIN(MAX(ns, (double)BURST_MIN), 1e12));
	store(&r->due, 0);
	store(&r->per_second, rate);
}

void dev_rate_set(struct dev_lu *lu, const struct dev_limits *limits)
{
	set_one(&lu->settings.rates[DEV_OPS], limits->ops, limits->ops_burst);
	set_one(&lu->settings.rates[DEV_BYTES], limits->bytes,
		limits->bytes_burst);
}

void dev_rate_init(struct dev_lu *lu)
{
	set_one(&lu->settings.rates[DEV_RESETS], RESET_PER_SECOND, RESETS);
}

static xtime now_of(const struct dev_lu *lu, unsigned worker)
{
	const struct dev_env *env = &lu->server->env;

	return env->time(env->arg, worker, false);
}

/* ---- one limit ---- */

/* Returns how long the next operation has to wait; 0 or less: not at all. */
static xtime delay(const struct dev_rate *r, xtime now)
{
	if (!load(&r->per_second))
		return 0;
	return load(&r->due) - load(&r->burst) - now + 1;
}

static void charge(struct dev_rate *r, xtime now, uint64_t amount, xtime most)
{
	const int64_t rate = load(&r->per_second);
	int64_t *p = &r->due, was = load(p), next;

	if (!rate || !amount)
		return;
	do {
		next = MAX(was, now) +
		       (int64_t)MIN((double)amount * 1e9 / (double)rate,
				    COST_MAX);
		next = MIN(next, MAX(was, most));
	} while (!__atomic_compare_exchange_n(
		p, &was, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* ---- commands ---- */

/* Commands that use blocks; a copy counts one operation at its unit. */
static bool is_counted(const struct dev_task *t)
{
	if (t->own.passing.used)
		return t->own.passing.of_blocks;
	return (t->own.row->flags & (CMD_TOUCHES | CMD_ALONE)) ||
	       t->own.row->op == SCSI_EXTENDED_COPY;
}

/* The data that the initiator transfers. */
static uint64_t bytes_of(const struct dev_task *t)
{
	if (t->own.passing.used)
		return MAX(t->edtl.in, t->edtl.out);
	if (t->out_len || t->own.row->dir != DIR_IN)
		return t->out_len;
	return MIN(t->own.blocks << t->lu->block_shift, (uint64_t)t->edtl.in);
}

/* Returns 0: t was admitted and charged; else how long it has to wait. */
static xtime admit(struct dev_task *t, xtime now)
{
	struct dev_lu *lu = t->lu;
	xtime wait = MAX(delay(&lu->settings.rates[DEV_OPS], now),
			 delay(&lu->settings.rates[DEV_BYTES], now));

	if (wait > 0)
		return wait;
	charge(&lu->settings.rates[DEV_OPS], now, 1, XTIME_NEVER);
	charge(&lu->settings.rates[DEV_BYTES], now, bytes_of(t), XTIME_NEVER);
	return 0;
}

static void serve(struct dev_msg *m);

static void serve_later(struct dev_lane *lane, struct dev_lu *lu,
			unsigned worker, xtime wait)
{
	const struct dev_env *env = &lu->server->env;
	uint64_t ms = (uint64_t)(wait + XTIME_MS - 1) / (uint64_t)XTIME_MS;

	lane->pace.msg.run = serve;
	env->later(env->arg, worker, (unsigned)MIN(ms, (uint64_t)WAIT_MAX),
		   &lane->pace.msg);
}

/* The lane of the message. A lane does not know its unit. */
static void serve(struct dev_msg *m)
{
	struct dev_lane *lane = container_of(m, struct dev_lane, pace.msg);
	struct dev_lu *lu = lane->pace.lu;
	const unsigned worker = (unsigned)(lane - lu->lanes);
	xtime wait = 0;

	while (!list_empty(&lane->pace.waiting)) {
		struct dev_task *t = list_entry(lane->pace.waiting.next,
						struct dev_task, order.paced);

		wait = admit(t, now_of(lu, worker));
		if (wait)
			break;
		list_del(&t->order.paced);
		t->own.abort.let_go = NULL;
		t->own.flow->paced(t);
	}
	if (wait) {
		serve_later(lane, lu, worker, wait);
		return;
	}
	lane->pace.lu = NULL;
	dev_lu_release(lu);
}

static void let_go(struct dev_task *t)
{
	list_del(&t->order.paced);
	t->own.abort.let_go = NULL;
}

bool dev_rate_delays(struct dev_task *t)
{
	const unsigned worker = t->nexus->cfg.worker;
	struct dev_lu *lu = t->lu;
	struct dev_lane *lane;
	xtime wait = 1;

	if (!lu || !dev_rate_is_limited(lu) || !lu->server->env.time ||
	    !is_counted(t))
		return false;
	lane = &lu->lanes[worker];
	if (list_empty(&lane->pace.waiting))
		wait = admit(t, now_of(lu, worker));
	if (!wait)
		return false;
	list_push_back(&lane->pace.waiting, &t->order.paced);
	t->own.abort.let_go = let_go;
	if (!lane->pace.lu) { /* the timer holds the unit */
		lane->pace.lu = lu;
		dev_lu_hold(lu);
		serve_later(lane, lu, worker, wait);
	}
	return true;
}

void dev_rate_charge(struct dev_lu *lu, unsigned worker, uint64_t bytes)
{
	xtime now;

	if (!dev_rate_is_limited(lu) || !lu->server->env.time)
		return;
	now = now_of(lu, worker);
	charge(&lu->settings.rates[DEV_BYTES], now, bytes, now + DEBT_MAX);
}

unsigned dev_lu_reset_turn(struct dev_lu *lu, unsigned worker)
{
	struct dev_rate *r = &lu->settings.rates[DEV_RESETS];
	xtime now, wait;

	if (!lu->server->env.time || !lu->server->env.later)
		return 0;
	now = now_of(lu, worker);
	wait = MIN(delay(r, now), RESET_WAIT_MAX);
	charge(r, now, 1, now + load(&r->burst) + RESET_WAIT_MAX);
	return wait > 0 ? (unsigned)((wait + XTIME_MS - 1) / XTIME_MS) : 0;
}
