/* SPDX-License-Identifier: BSD-2-Clause */
/* filters_test.c: fault, hold and trace, alone and stacked. */
#include "backstore/backstore.h"

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "req.h"

static uint8_t memory[4096];
static uint8_t data[512];

static struct bs *ram(void)
{
	return bs_ram_new("ram", memory, sizeof(memory), 512, NULL, NULL);
}

static int run(struct bs *b, enum bs_op op)
{
	struct test_req t;

	test_submit(b, &t, op, 0, 0, 512,
		    op == BS_READ || op == BS_WRITE ? data : NULL);
	assert_int_equal(t.done, 1);
	return t.req.result;
}

static void test_fault_nth_and_every_period(void **state)
{
	struct bs *b = bs_fault_new(ram(), BIT(BS_READ), 3, 2, ERR_MEDIUM);
	static const int want[] = { 0,		0, ERR_MEDIUM, 0,
				    ERR_MEDIUM, 0, ERR_MEDIUM };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(run(b, BS_WRITE), 0); /* not counted */
		assert_int_equal(run(b, BS_READ), want[i]);
	}
	bs_close(b);
}

static void test_fault_once(void **state)
{
	struct bs *b = bs_fault_new(ram(), BIT(BS_FLUSH) | BIT(BS_WRITE), 1, 0,
				    ERR_NO_SPACE);

	(void)state;
	assert_int_equal(run(b, BS_FLUSH), ERR_NO_SPACE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(run(b, BS_WRITE), 0);
	bs_close(b);
}

static void test_filter_looks_like_next_but_does_not_lend(void **state)
{
	struct bs *next = ram(), *b;
	struct iovec iov;

	(void)state;
	b = bs_hold_new(next);
	assert_int_equal(b->size, next->size);
	assert_int_equal(b->block_size, next->block_size);
	assert_memory_equal(b->uuid, next->uuid, 16);
	assert_string_equal(b->name, next->name);
	assert_int_equal(bs_lend(b, 0, 512, &iov), ERR_UNSUPPORTED);
	assert_int_equal(bs_lend(next, 0, 512, &iov), 0);
	bs_close(b);
}

static void test_hold_releases_oldest_first(void **state)
{
	struct bs *b = bs_hold_new(ram());
	struct test_req t[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		test_submit(b, &t[i], BS_READ, 0, i * 512, 512, data);
		assert_int_equal(bs_hold_waiting(b), i + 1);
	}
	bs_hold_release(b, 1);
	assert_int_equal(t[0].done, 1);
	assert_int_equal(t[1].done, 0);
	assert_int_equal(bs_hold_waiting(b), 2);
	bs_hold_release(b, 100);
	assert_int_equal(t[1].done + t[2].done, 2);
	assert_int_equal(bs_hold_waiting(b), 0);
	bs_close(b);
}

struct seen {
	enum bs_op op;
	int result;
	unsigned flags;
	unsigned n;
};

static void see(void *arg, const struct bs_req *req)
{
	struct seen *s = arg;

	s->op = req->op;
	s->result = req->result;
	s->flags = req->flags;
	s->n++;
}

static void test_trace_sees_result_before_done(void **state)
{
	struct seen seen = { 0 };
	struct bs *b = bs_trace_new(bs_fault_new(ram(), BIT(BS_WRITE), 1, 0,
						 ERR_MEDIUM),
				    see, &seen);

	(void)state;
	assert_int_equal(run(b, BS_WRITE), ERR_MEDIUM);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.op, BS_WRITE);
	assert_int_equal(seen.result, ERR_MEDIUM);
	assert_int_equal(run(b, BS_READ), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.op, BS_READ);
	bs_close(b);
}

/* trace, hold, trace, and a store with a cache and no FUA of its own: the
 * outermost bs_submit splits the request, so that both traces see two. */
static void test_filters_stacked_with_fua(void **state)
{
	struct bs *medium = ram(), *hold, *b;
	struct seen outer = { 0 }, inner = { 0 };
	struct test_req t;

	(void)state;
	medium->caps |= BS_CAP_WRITE_CACHE;
	medium->caps &= ~BS_CAP_FUA;
	hold = bs_hold_new(bs_trace_new(medium, see, &inner));
	b = bs_trace_new(hold, see, &outer);
	test_submit(b, &t, BS_WRITE, BS_FUA, 0, 512, data);
	assert_int_equal(bs_hold_waiting(hold), 1);
	bs_hold_release(hold, 1);
	assert_int_equal(inner.op, BS_WRITE);
	assert_int_equal(t.done, 0);
	assert_int_equal(bs_hold_waiting(hold), 1);
	bs_hold_release(hold, 1);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.req.op, BS_WRITE);
	assert_int_equal(t.req.flags, BS_FUA);
	assert_int_equal(inner.op, BS_FLUSH);
	assert_int_equal(inner.n, 2);
	assert_int_equal(outer.n, 2);
	bs_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fault_nth_and_every_period),
		cmocka_unit_test(test_fault_once),
		cmocka_unit_test(test_filter_looks_like_next_but_does_not_lend),
		cmocka_unit_test(test_hold_releases_oldest_first),
		cmocka_unit_test(test_trace_sees_result_before_done),
		cmocka_unit_test(test_filters_stacked_with_fua),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
