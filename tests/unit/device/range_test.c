/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * range_test.c: a range with exclusive access overlaps no other range in use,
 * on all workers, and each request is granted in the end. Messages between
 * workers arrive in random order; messages to one worker arrive in the order of
 * posting.
 */
#include <string.h>

#include "cmocka_all.h"
#include "device/unit/range.h"

#define WORKERS 3u
#define RANGES	12u
#define MAIL	1024u

struct mailbox {
	struct dev_msg *messages[MAIL];
	unsigned first, last;
};

static struct {
	struct mailbox boxes[WORKERS];
	struct dev_server *server;
	struct dev_lu *lu;
	struct one {
		struct dev_range range;
		bool busy, holds, alone;
	} all[RANGES];
	unsigned turns;
	uint64_t seed;
} w;

static uint32_t chance(uint32_t n)
{
	w.seed = w.seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w.seed >> 33) % n;
}

static void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct mailbox *b = &w.boxes[worker];

	(void)arg;
	assert_true(b->last - b->first < MAIL);
	b->messages[b->last++ % MAIL] = m;
}

static bool deliver(unsigned worker)
{
	struct mailbox *b = &w.boxes[worker];
	struct dev_msg *m;

	if (b->first == b->last)
		return false;
	m = b->messages[b->first++ % MAIL];
	m->run(m);
	return true;
}

static void deliver_all(void)
{
	bool any = true;

	while (any) {
		any = false;
		for (unsigned i = 0; i < WORKERS; i++)
			any |= deliver(i);
	}
}

static void open_unit(unsigned nworkers, uint16_t lun)
{
	const struct dev_env env = { .nworkers = nworkers, .post = post };
	const struct dev_lu_config cfg = { .lun = lun };

	memset(&w, 0, sizeof(w));
	w.server = dev_server_new(&env, 65536);
	assert_non_null(w.server);
	assert_int_equal(dev_lu_add(w.server, &cfg,
				    bs_null_new("null:", 1 << 20, 512)),
			 0);
	w.lu = dev_lu_get(w.server, lun);
}

static bool overlap(const struct dev_range *a, const struct dev_range *b)
{
	return a->lba < b->lba + b->blocks && b->lba < a->lba + a->blocks;
}

static void got(struct dev_range *r)
{
	struct one *o = container_of(r, struct one, range);

	assert_true(o->busy && !o->holds);
	assert_int_equal(r->state, o->alone ? DEV_HOLD_ALONE : DEV_HOLD_SHARED);
	for (unsigned i = 0; i < RANGES; i++) {
		const struct one *p = &w.all[i];

		if (p != o && p->holds && (p->alone || o->alone))
			assert_false(overlap(&p->range, r));
	}
	o->holds = true;
	w.turns++;
}

static void take(struct one *o, unsigned worker, uint64_t lba, uint64_t blocks,
		 bool alone)
{
	o->busy = true;
	o->holds = false;
	o->alone = alone;
	if (!alone && chance(2) &&
	    dev_range_share(&o->range, w.lu, worker, lba, blocks)) {
		got(&o->range);
		return;
	}
	assert_int_equal(
		dev_range_take(&o->range, w.lu, worker, lba, blocks,
			       alone ? DEV_HOLD_ALONE : DEV_HOLD_SHARED, got),
		0);
}

static void drop(struct one *o)
{
	assert_true(o->holds);
	o->busy = o->holds = false;
	dev_range_drop(&o->range);
}

static void some_step(unsigned nworkers)
{
	struct one *o = &w.all[chance(RANGES)];

	if (!o->busy)
		take(o, chance(nworkers), chance(12), 1 + chance(6),
		     chance(3) == 0);
	else if (o->holds && chance(2))
		drop(o);
	else if (!o->holds && chance(8) == 0 && dev_range_give_up(&o->range))
		o->busy = false;
	else
		deliver(chance(nworkers));
}

static void test_random_ranges_never_clash(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= WORKERS; n++) {
		open_unit(n, (uint16_t)(n + 3));
		w.seed = n;
		for (unsigned i = 0; i < 100000; i++)
			some_step(n);
		assert_true(w.turns > 5000);
		/* Each owner drops its range: every waiting request is
		 * granted. */
		for (unsigned left = RANGES; left; left--) {
			deliver_all();
			for (unsigned i = 0; i < RANGES; i++)
				if (w.all[i].holds)
					drop(&w.all[i]);
		}
		deliver_all();
		for (unsigned i = 0; i < RANGES; i++)
			assert_false(w.all[i].busy);
		assert_true(list_empty(&w.lu->fence_queue));
		for (unsigned i = 0; i < n; i++) {
			assert_true(list_empty(&w.lu->lanes[i].touching));
			assert_true(list_empty(&w.lu->lanes[i].waiting));
			assert_true(list_empty(&w.lu->lanes[i].fences));
		}
		dev_server_free(w.server);
	}
}

/* A request for exclusive access waits for the ranges in use. Later overlapping
 * requests wait for that request, others do not. */
static void test_alone_waits_for_ranges_in_use(void **state)
{
	(void)state;
	open_unit(2, 0);
	take(&w.all[0], 1, 5, 2, false);
	take(&w.all[1], 0, 6, 1, true);
	deliver_all();
	assert_false(w.all[1].holds);
	take(&w.all[2], 1, 6, 1, false);
	assert_false(w.all[2].holds);
	take(&w.all[3], 1, 7, 1, false);
	assert_true(w.all[3].holds);
	drop(&w.all[0]);
	deliver_all();
	assert_true(w.all[1].holds);
	assert_false(w.all[2].holds);
	drop(&w.all[1]);
	deliver_all();
	assert_true(w.all[2].holds);
	drop(&w.all[2]);
	drop(&w.all[3]);
	dev_server_free(w.server);
}

/* One worker and no conflict: the request is granted without a message. */
static void test_alone_at_once_on_one_worker(void **state)
{
	(void)state;
	open_unit(1, 0);
	take(&w.all[0], 0, 0, 8, true);
	assert_true(w.all[0].holds);
	take(&w.all[1], 0, 7, 1, false);
	assert_true(dev_range_give_up(&w.all[1].range));
	drop(&w.all[0]);
	deliver_all();
	assert_false(w.all[1].holds);
	dev_server_free(w.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_ranges_never_clash),
		cmocka_unit_test(test_alone_waits_for_ranges_in_use),
		cmocka_unit_test(test_alone_at_once_on_one_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
