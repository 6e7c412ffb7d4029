/* SPDX-License-Identifier: BSD-2-Clause */
/* share_test.c: the shares of the memory of a worker, and the order of waiting
 * commands. */
#include "device/share.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "cmocka_all.h"

#define KIB	((size_t)1 << 10)
#define MIB	((size_t)1 << 20)
#define COMMON	(64 * MIB)
#define RESERVE (32 * MIB)
#define BURST	(4 * MIB)

#define MANY 256

struct command {
	struct share_charge charge;
	struct share_wait wait;
	bool done;
};

struct user { /* one session */
	struct share_owner o;
	struct command c[MANY];
	unsigned n; /* commands that got memory */
};

static void on_go(struct share_wait *w)
{
	struct command *c = container_of(w, struct command, wait);

	assert_false(c->done);
	c->charge = w->charge;
	c->done = true;
}

/* True: the command got its memory at once. */
static bool ask(struct share *s, struct user *u, size_t len)
{
	struct command *c = &u->c[u->n++];

	list_init(&c->wait.link);
	c->done = share_take(s, &u->o, &c->charge, len);
	c->wait.go = on_go;
	if (!c->done)
		share_wait_for(s, &u->o, &c->wait, len);
	return c->done;
}

static struct user *user_new(void)
{
	struct user *u = calloc(1, sizeof(*u));

	share_owner_init(&u->o);
	return u;
}

static void user_end(struct share *s, struct user *u)
{
	for (unsigned i = 0; i < u->n; i++) {
		share_cancel(s, &u->o, &u->c[i].wait);
		share_put(s, &u->o, &u->c[i].charge);
	}
	assert_int_equal(u->o.used, 0);
	assert_false(list_linked(&u->o.link));
	free(u);
}

static void expect_empty(const struct share *s)
{
	assert_int_equal(s->common_out, 0);
	assert_int_equal(s->reserve_out, 0);
	assert_int_equal(s->burst_out, 0);
	assert_true(list_empty(&s->waiting));
	assert_true(list_empty(&s->held));
	assert_null(s->turn);
}

/* Sessions that take all memory they can get leave room for another session. */
static void test_share_leaves_room_for_newcomers(void **state)
{
	static const size_t sizes[] = { 64 * KIB, 256 * KIB, MIB, 4 * MIB };
	struct user *greedy[20], *good;
	struct share s;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
		share_init(&s, COMMON, RESERVE, BURST);
		for (unsigned i = 0; i < 20; i++) {
			greedy[i] = user_new();
			for (unsigned n = 0; n < 128; n++)
				ask(&s, greedy[i], sizes[k]);
		}
		share_serve(&s);
		assert_true(s.common_out <= COMMON);
		assert_true(s.reserve_out <= RESERVE);
		good = user_new();
		assert_true(ask(&s, good, 64 * KIB));
		user_end(&s, good);
		good = user_new();
		/* The other sessions left as much as the last of them took. */
		assert_true(ask(&s, good, sizes[k] / 2));
		user_end(&s, good);
		for (unsigned i = 0; i < 20; i++)
			user_end(&s, greedy[i]);
		expect_empty(&s);
	}
}

/* The largest command of a session without memory gets its turn. */
static void test_share_turns_at_the_reserve(void **state)
{
	struct user *greedy[4], *good[3];
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	for (unsigned i = 0; i < 4; i++) {
		greedy[i] = user_new();
		for (unsigned n = 0; n < 128; n++)
			ask(&s, greedy[i], MIB);
	}
	for (unsigned i = 0; i < 3; i++) {
		good[i] = user_new();
		assert_false(ask(&s, good[i], RESERVE));
		/* In order: a smaller command does not overtake. */
		assert_false(ask(&s, good[i], 4096));
	}
	for (unsigned i = 0; i < 3; i++) {
		share_serve(&s);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(good[j]->c[0].done, j <= i);
		share_put(&s, &good[i]->o, &good[i]->c[0].charge);
		share_serve(&s);
		assert_true(good[i]->c[1].done);
	}
	for (unsigned i = 0; i < 3; i++)
		user_end(&s, good[i]);
	for (unsigned i = 0; i < 4; i++)
		user_end(&s, greedy[i]);
	expect_empty(&s);
}

/* A session that sends more and more commands does not keep its turn. */
static void test_share_turns_go_round(void **state)
{
	struct user *greedy[4], *endless = user_new(), *good = user_new();
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	for (unsigned i = 0; i < 4; i++) {
		greedy[i] = user_new();
		for (unsigned n = 0; n < 128; n++)
			ask(&s, greedy[i], 128 * KIB);
	}
	for (unsigned n = 0; n < MANY; n++)
		assert_false(ask(&s, endless, 16 * MIB));
	assert_false(ask(&s, good, 16 * MIB));
	share_serve(&s);
	assert_ptr_equal(s.turn, &endless->o);
	assert_false(good->c[0].done);
	/* One session gets as much as the reserve holds, then the next
	 * session. */
	for (unsigned n = 0; n < RESERVE / (16 * MIB); n++) {
		assert_true(endless->c[n].done);
		share_put(&s, &endless->o, &endless->c[n].charge);
		share_serve(&s);
	}
	assert_ptr_equal(s.turn, &good->o);
	assert_true(good->c[0].done);
	assert_true(share_in_the_way(&s, &good->o));
	assert_true(share_in_the_way(&s, &greedy[0]->o));
	assert_false(share_in_the_way(&s, &endless->o));
	user_end(&s, good);
	share_serve(&s);
	assert_ptr_equal(s.turn, &endless->o);
	assert_true(endless->c[RESERVE / (16 * MIB)].done);
	assert_false(endless->c[2 * RESERVE / (16 * MIB)].done);
	user_end(&s, endless);
	for (unsigned i = 0; i < 4; i++)
		user_end(&s, greedy[i]);
	expect_empty(&s);
}

static void on_hold(struct share_wait *w)
{
	assert_int_not_equal(w->charge.part, SHARE_NOTHING);
}

/* A waiting command can end at any time, also after it was granted. */
static struct share *shared;
static struct user *victim;

static void go_and_cancel(struct share_wait *w)
{
	on_go(w);
	share_cancel(shared, &victim->o, &victim->c[2].wait);
	share_cancel(shared, &victim->o, &victim->c[3].wait);
}

static void test_share_cancels_what_was_granted(void **state)
{
	struct user *u = user_new();
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	shared = &s;
	victim = u;
	assert_true(ask(&s, u, 20 * MIB));
	assert_false(ask(&s, u, 20 * MIB));
	assert_false(ask(&s, u, 128 * KIB));
	assert_false(ask(&s, u, 30 * MIB));
	u->c[1].wait.go = go_and_cancel;
	share_serve(&s);
	assert_false(u->c[1].done);
	assert_true(share_put(&s, &u->o, &u->c[0].charge));
	share_serve(&s);
	assert_true(u->c[1].done);
	assert_false(u->c[2].done);
	assert_false(u->c[3].done);
	assert_int_equal(u->o.used, 20 * MIB);
	user_end(&s, u);
	expect_empty(&s);
}

/* Bursts: one limit for all sessions; only the session whose turn it is may
 * exceed it. */
static void test_share_bursts_one_session_beyond(void **state)
{
	struct share_charge a[16] = { 0 }, more[8] = { 0 }, none = { 0 };
	struct user *one = user_new(), *two = user_new();
	struct share_wait hold[2];
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	for (unsigned i = 0; i < 16; i++) /* all memory */
		assert_true(share_burst(&s, &one->o, &a[i], 256 * KIB));
	assert_false(share_burst(&s, &one->o, &none, 4096));
	assert_false(share_burst(&s, &two->o, &none, 4096));
	for (unsigned i = 0; i < 2; i++) {
		struct user *u = i ? two : one;

		assert_false(share_take(&s, &u->o, &none, RESERVE + 1));
		ask(&s, u, 31 * MIB);
		ask(&s, u, 31 * MIB);
		list_init(&hold[i].link);
		hold[i].go = on_hold;
		share_hold(&s, &u->o, &hold[i], 256 * KIB);
	}
	share_serve(&s);
	assert_ptr_equal(s.turn, &one->o); /* in order */
	assert_false(list_linked(&hold[0].link));
	assert_true(list_linked(&hold[1].link));
	for (unsigned i = 0; i < 8; i++)
		assert_true(share_burst(&s, &one->o, &more[i], 256 * KIB));
	assert_false(share_burst(&s, &two->o, &none, 4096));
	assert_int_equal(s.burst_out, BURST);
	assert_int_equal(one->o.beyond, 9 * 256 * KIB);
	for (unsigned i = 0; i < 8; i++)
		share_put(&s, &one->o, &more[i]);
	share_put(&s, &one->o, &hold[0].charge);
	for (unsigned i = 0; i < 2; i++)
		share_put(&s, &one->o, &one->c[i].charge);
	share_serve(&s);
	assert_ptr_equal(s.turn, &two->o);
	assert_false(list_linked(&hold[1].link));
	share_put(&s, &two->o, &hold[1].charge);
	for (unsigned i = 0; i < 16; i++)
		share_put(&s, &one->o, &a[i]);
	user_end(&s, one);
	user_end(&s, two);
	expect_empty(&s);
}

/* The release of a small command does not examine the waiting sessions. */
static void test_share_own_memory_wakes_no_other(void **state)
{
	struct user *small = user_new(), *large = user_new();
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	while (ask(&s, large, 8 * MIB))
		;
	assert_true(ask(&s, small, 4096));
	assert_false(share_put(&s, &small->o, &small->c[0].charge));
	assert_true(share_put(&s, &large->o, &large->c[0].charge));
	user_end(&s, small);
	user_end(&s, large);
	expect_empty(&s);
}

/* One call of share_serve serves every command that the freed memory has room
 * for: nothing else would serve the second session. */
static void test_share_serves_two_sessions_in_one_call(void **state)
{
	struct user *large = user_new(), *one = user_new(), *two = user_new();
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	assert_true(ask(&s, large, 30 * MIB));
	assert_true(ask(&s, one, 2 * MIB));
	assert_true(ask(&s, two, 2 * MIB));
	assert_false(ask(&s, one, 16 * MIB));
	assert_false(ask(&s, two, 16 * MIB));
	assert_true(share_put(&s, &large->o, &large->c[0].charge));
	share_serve(&s);
	assert_true(one->c[1].done);
	assert_true(two->c[1].done);
	assert_null(s.turn);
	user_end(&s, large);
	user_end(&s, one);
	user_end(&s, two);
	expect_empty(&s);
}

/* One call also serves all received data that wait for a burst. */
static void test_share_serves_two_held_in_one_call(void **state)
{
	struct user *full = user_new(), *held[2] = { user_new(), user_new() };
	struct share_wait hold[2];
	struct share_charge all;
	struct share s;

	(void)state;
	share_init(&s, COMMON, RESERVE, BURST);
	assert_true(share_burst(&s, &full->o, &all, BURST));
	for (unsigned i = 0; i < 2; i++) {
		list_init(&hold[i].link);
		hold[i].go = on_hold;
		share_hold(&s, &held[i]->o, &hold[i], 256 * KIB);
	}
	share_serve(&s);
	assert_true(list_linked(&hold[0].link));
	share_put(&s, &full->o, &all);
	share_serve(&s);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(list_linked(&hold[i].link));
		share_put(&s, &held[i]->o, &hold[i].charge);
		user_end(&s, held[i]);
	}
	user_end(&s, full);
	expect_empty(&s);
}

/* Without limits no command waits. */
static void test_share_without_limits(void **state)
{
	struct user *u = user_new();
	struct share s;

	(void)state;
	share_init(&s, 0, 0, 0);
	for (unsigned i = 0; i < 128; i++)
		assert_true(ask(&s, u, (size_t)1 << 30));
	user_end(&s, u);
	expect_empty(&s);
}

/* ---- random commands: no memory is lost, and each command is served ---- */

#define USERS 6

static uint32_t roll(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

static unsigned waiting_of(const struct user *u)
{
	unsigned n = 0;

	for (unsigned i = 0; i < u->n; i++)
		n += !u->c[i].done;
	return n;
}

static void expect_order(const struct user *u)
{
	for (unsigned i = 1; i < u->n; i++)
		assert_true(u->c[i - 1].done || !u->c[i].done);
}

static void run_random(uint32_t seed)
{
	struct user *u[USERS];
	struct share s;
	unsigned left = 0;

	share_init(&s, COMMON, RESERVE, BURST);
	for (unsigned i = 0; i < USERS; i++)
		u[i] = user_new();
	for (unsigned step = 0; step < 2000; step++) {
		struct user *x = u[roll(&seed, USERS)];
		size_t len = (size_t)4096 << roll(&seed, 14);

		if (roll(&seed, 2) && x->n < MANY)
			ask(&s, x, len);
		else if (x->n)
			share_put(&s, &x->o, &x->c[roll(&seed, x->n)].charge);
		share_serve(&s);
		expect_order(x);
		assert_true(s.common_out <= COMMON);
		assert_true(s.reserve_out <= RESERVE);
	}
	/* Granted commands end in any order: every waiting command is
	 * served. */
	do {
		left = 0;
		for (unsigned i = 0; i < USERS; i++)
			for (unsigned j = 0; j < u[i]->n; j++)
				share_put(&s, &u[i]->o, &u[i]->c[j].charge);
		share_serve(&s);
		for (unsigned i = 0; i < USERS; i++)
			left += waiting_of(u[i]);
	} while (left && !list_empty(&s.waiting));
	assert_int_equal(left, 0);
	for (unsigned i = 0; i < USERS; i++)
		user_end(&s, u[i]);
	expect_empty(&s);
}

static void test_share_serves_all_at_random(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 50; seed++)
		run_random(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_leaves_room_for_newcomers),
		cmocka_unit_test(test_share_turns_at_the_reserve),
		cmocka_unit_test(test_share_turns_go_round),
		cmocka_unit_test(test_share_cancels_what_was_granted),
		cmocka_unit_test(test_share_bursts_one_session_beyond),
		cmocka_unit_test(test_share_own_memory_wakes_no_other),
		cmocka_unit_test(test_share_serves_two_sessions_in_one_call),
		cmocka_unit_test(test_share_serves_two_held_in_one_call),
		cmocka_unit_test(test_share_without_limits),
		cmocka_unit_test(test_share_serves_all_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
