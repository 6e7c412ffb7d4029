/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * range.c: shared and exclusive access to ranges of blocks. READ, WRITE and similar
 * commands share blocks with each other; COMPARE AND WRITE and similar commands are
 * "an uninterrupted series of actions" (SBC-3 §5.2) and need exclusive access on all
 * workers.
 *
 * Each worker has a lane per unit: the ranges in use and the fences. A shared range
 * costs two list operations on the worker's own memory. A command that needs
 * exclusive access to a range asks the unit's home worker, which grants overlapping
 * fences one after the other, in the order of the requests: it sets the fence in
 * every lane, and each lane reports when no command in the lane uses those blocks
 * any more. New shared ranges that overlap wait until the fence is removed. A shared
 * range waits for fences only before its first I/O, so there is no cycle of waits.
 *
 *   request: owner -> home, home -> each lane, each lane -> home, home -> owner
 *   end:     owner -> home, home -> each lane, each lane -> home, which frees it
 */
#include <stdlib.h>
#include <string.h>

#include "device/unit/lu_life.h"
#include "device/unit/range.h"

/* A fence in one lane. */
struct fence_part {
	struct dev_msg msg;
	struct list link; /* dev_lane.fences */
	struct dev_fence *fence;
	unsigned worker;
	bool clear; /* the lane has reported that no command uses the blocks */
};

struct dev_fence {
	struct dev_msg msg; /* owner <-> home */
	struct list link;   /* dev_lu.fence_queue */
	struct dev_lu *lu;
	struct dev_range *range; /* the owner's; not dereferenced after its end */
	unsigned owner;
	uint64_t lba, blocks;
	/* for the home worker only */
	bool stands;
	unsigned pending;
	struct fence_part parts[];
};

static unsigned nworkers(const struct dev_lu *lu)
{
	return lu->server->env.nworkers;
}

static unsigned home(const struct dev_lu *lu)
{
	return lu->cfg.lun % nworkers(lu);
}

static void post(struct dev_lu *lu, unsigned worker, struct dev_msg *m,
		 void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &lu->server->env;

	m->run = run;
	env->post(env->arg, worker, m);
}

/* ---- lanes ---- */

int dev_lanes_init(struct dev_lu *lu)
{
	unsigned n = nworkers(lu);

	lu->lanes = aligned_alloc(64, n * sizeof(lu->lanes[0]));
	if (!lu->lanes)
		return ERR_NOMEM;
	memset(lu->lanes, 0, n * sizeof(lu->lanes[0]));
	for (unsigned i = 0; i < n; i++) {
		list_init(&lu->lanes[i].touching);
		list_init(&lu->lanes[i].loans.list);
		list_init(&lu->lanes[i].waiting);
		list_init(&lu->lanes[i].fences);
		list_init(&lu->lanes[i].tokens);
		list_init(&lu->lanes[i].priorities);
		list_init(&lu->lanes[i].itls);
		list_init(&lu->lanes[i].pace.waiting);
	}
	list_init(&lu->fence_queue);
	return 0;
}

void dev_lanes_fini(struct dev_lu *lu)
{
	free(lu->lanes);
}

static bool is_fenced(const struct dev_lane *lane, const struct dev_range *r)
{
	list_for_each(it, &lane->fences) {
		const struct dev_fence *f =
			list_entry(it, struct fence_part, link)->fence;

		if (ranges_overlap(f->lba, f->blocks, r->lba, r->blocks))
			return true;
	}
	return false;
}

static bool is_touched(const struct dev_lane *lane, const struct dev_fence *f)
{
	list_for_each(it, &lane->touching) {
		const struct dev_range *r =
			list_entry(it, struct dev_range, link);

		if (ranges_overlap(f->lba, f->blocks, r->lba, r->blocks))
			return true;
	}
	return false;
}

/* ---- home worker: grants fences ---- */

static void part_up(struct dev_msg *m);
static void part_down(struct dev_msg *m);

/* is_next returns whether every earlier overlapping fence has been removed. */
static bool is_next(const struct dev_fence *f)
{
	list_for_each(it, &f->lu->fence_queue) {
		const struct dev_fence *other =
			list_entry(it, struct dev_fence, link);

		if (other == f)
			return true;
		if (ranges_overlap(f->lba, f->blocks, other->lba,
				   other->blocks))
			return false;
	}
	return true;
}

/* The home worker changes its own lane at once only for a new fence. After the
 * removal of a fence a message runs the next step, so that the stack stays flat. */
static void put_up(struct dev_fence *f)
{
	struct dev_lu *lu = f->lu;
	unsigned here = home(lu);

	f->stands = true;
	f->pending = nworkers(lu);
	for (unsigned i = 0; i < nworkers(lu); i++)
		if (i != here)
			post(lu, i, &f->parts[i].msg, part_up);
	part_up(&f->parts[here].msg);
}

static void asked(struct dev_msg *m)
{
	struct dev_fence *f = container_of(m, struct dev_fence, msg);

	list_push_back(&f->lu->fence_queue, &f->link);
	if (is_next(f))
		put_up(f);
}

static struct dev_fence *next_to_stand(struct dev_lu *lu)
{
	list_for_each(it, &lu->fence_queue) {
		struct dev_fence *f = list_entry(it, struct dev_fence, link);

		if (!f->stands && is_next(f))
			return f;
	}
	return NULL;
}

static void ended(struct dev_msg *m)
{
	struct dev_fence *f = container_of(m, struct dev_fence, msg);
	struct dev_lu *lu = f->lu;

	list_del(&f->link);
	f->pending = nworkers(lu);
	for (unsigned i = 0; i < nworkers(lu); i++)
		post(lu, i, &f->parts[i].msg, part_down);
	while ((f = next_to_stand(lu)))
		put_up(f);
}

static void granted(struct dev_msg *m)
{
	struct dev_range *r = container_of(m, struct dev_fence, msg)->range;

	r->state = DEV_HOLD_ALONE;
	r->go(r);
}

static void part_is_clear(struct dev_msg *m)
{
	struct dev_fence *f = container_of(m, struct fence_part, msg)->fence;

	if (--f->pending)
		return;
	if (f->owner == home(f->lu))
		granted(&f->msg);
	else
		post(f->lu, f->owner, &f->msg, granted);
}

static void part_is_gone(struct dev_msg *m)
{
	struct dev_fence *f = container_of(m, struct fence_part, msg)->fence;

	if (--f->pending)
		return;
	dev_lu_release(f->lu);
	free(f);
}

/* ---- lanes: fences are set and removed ---- */

static void report_clear(struct fence_part *p, bool from_loop)
{
	struct dev_lu *lu = p->fence->lu;

	p->clear = true;
	if (from_loop && p->worker == home(lu))
		part_is_clear(&p->msg);
	else
		post(lu, home(lu), &p->msg, part_is_clear);
}

static void part_up(struct dev_msg *m)
{
	struct fence_part *p = container_of(m, struct fence_part, msg);
	struct dev_lane *lane = &p->fence->lu->lanes[p->worker];

	list_push_back(&lane->fences, &p->link);
	p->clear = false;
	if (!is_touched(lane, p->fence))
		report_clear(p, true);
}

static void touch(struct dev_lane *lane, struct dev_range *r)
{
	r->state = DEV_HOLD_SHARED;
	list_push_back(&lane->touching, &r->link);
}

/* let_in grants the waiting ranges that no fence blocks. All are granted before the
 * first go runs, because go may change the lists. */
static void let_in(struct dev_lane *lane)
{
	struct list ready;

	list_init(&ready);
	list_for_each_safe(it, &lane->waiting) {
		struct dev_range *r = list_entry(it, struct dev_range, link);

		if (is_fenced(lane, r))
			continue;
		list_del(it);
		list_push_back(&ready, it);
	}
	while (!list_empty(&ready)) {
		struct dev_range *r = list_entry(list_pop_front(&ready),
						 struct dev_range, link);

		if (is_fenced(lane, r)) {
			list_push_back(&lane->waiting, &r->link);
			continue;
		}
		touch(lane, r);
		r->go(r);
	}
}

static void part_down(struct dev_msg *m)
{
	struct fence_part *p = container_of(m, struct fence_part, msg);
	struct dev_lu *lu = p->fence->lu;
	struct dev_lane *lane = &lu->lanes[p->worker];

	list_del(&p->link);
	post(lu, home(lu), &p->msg, part_is_gone);
	let_in(lane);
}

/* ---- commands that use ranges ---- */

static int ask(struct dev_range *r)
{
	unsigned n = nworkers(r->lu);
	struct dev_fence *f = malloc(sizeof(*f) + n * sizeof(f->parts[0]));

	if (!f)
		return ERR_NOMEM;
	*f = (struct dev_fence){ .lu = r->lu,
				 .range = r,
				 .owner = r->worker,
				 .lba = r->lba,
				 .blocks = r->blocks };
	for (unsigned i = 0; i < n; i++) {
		f->parts[i] = (struct fence_part){ .fence = f, .worker = i };
		list_init(&f->parts[i].link);
	}
	r->fence = f;
	dev_lu_hold(r->lu);
	if (home(r->lu) == r->worker)
		asked(&f->msg);
	else
		post(r->lu, home(r->lu), &f->msg, asked);
	return 0;
}

int dev_range_take(struct dev_range *r, struct dev_lu *lu, unsigned worker,
		   uint64_t lba, uint64_t blocks, enum dev_hold how,
		   void (*go)(struct dev_range *r))
{
	struct dev_lane *lane = &lu->lanes[worker];
	int err;

	r->state = DEV_HOLD_WAITS;
	r->lu = lu;
	r->worker = worker;
	r->lba = lba;
	r->blocks = blocks;
	r->go = go;
	r->fence = NULL;
	list_init(&r->link);
	if (how == DEV_HOLD_ALONE) {
		err = ask(r);
		if (err)
			r->state = DEV_HOLD_NONE;
		return err;
	}
	if (!list_empty(&lane->fences) && is_fenced(lane, r)) {
		list_push_back(&lane->waiting, &r->link);
		return 0;
	}
	touch(lane, r);
	go(r);
	return 0;
}

static void stop_touching(struct dev_range *r)
{
	struct dev_lane *lane = &r->lu->lanes[r->worker];

	list_del(&r->link);
	list_for_each(it, &lane->fences) {
		struct fence_part *p = list_entry(it, struct fence_part, link);

		if (!p->clear && !is_touched(lane, p->fence))
			report_clear(p, false);
	}
}

void dev_range_release(struct dev_range *r)
{
	enum dev_hold had = r->state;

	r->state = DEV_HOLD_NONE;
	if (had == DEV_HOLD_SHARED)
		stop_touching(r);
	else if (had == DEV_HOLD_ALONE)
		post(r->lu, home(r->lu), &r->fence->msg, ended);
}

bool dev_range_give_up(struct dev_range *r)
{
	if (r->state != DEV_HOLD_WAITS || r->fence)
		return false;
	list_del(&r->link);
	r->state = DEV_HOLD_NONE;
	return true;
}
