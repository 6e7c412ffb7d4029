/* SPDX-License-Identifier: BSD-2-Clause */
/* pace_test.c: the time that requests of administrators and monitors may use. */
#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/process/pace.h"

static void test_credit_grows_with_time(void **state)
{
	struct credit c = { .burst = 1000, .part = 5 };

	(void)state;
	assert_true(pace_may(&c, 100));
	pace_use(&c, 1000);
	assert_false(pace_may(&c, 100));
	assert_int_equal(pace_due(&c, 100), 105);
	assert_true(pace_may(&c, 105));
	pace_use(&c, 1001); /* a piece of work is not interrupted */
	assert_false(pace_may(&c, 105));
	assert_int_equal(pace_due(&c, 105), 105 + 5 * 1001);
	assert_false(pace_may(&c, 5105));
	assert_true(pace_may(&c, 5110));
	pace_use(&c,
		 1000000); /* a long piece delays others for a limited time */
	assert_false(pace_may(&c, 5110));
	assert_int_equal(pace_due(&c, 5110), 5110 + 5 * (PACE_DEBT * 1000 + 1));
	/* at most the burst */
	assert_true(pace_may(&c, 1000000));
	pace_use(&c, 1000);
	assert_false(pace_may(&c, 1000000));
}

struct work {
	struct pace p;
	unsigned n, of;
	xtime takes;
};

static void piece(struct pace *p)
{
	struct work *w = container_of(p, struct work, p);
	xtime end = io_now_exact() + w->takes;

	while (io_now_exact() < end)
		;
	if (++w->n < w->of)
		pace_ask(p);
}

/* The burst is used at once, one piece after the other; then the work waits for a timer. */
static void test_pace_waits_when_the_burst_is_used(void **state)
{
	static const struct credit share = { .burst = 10 * XTIME_MS,
					     .part = 1000000 };
	struct work w = { .of = 9, .takes = 4 * XTIME_MS };
	int err;
	struct io_loop *l = io_loop_new(IO_EPOLL, &err);

	(void)state;
	pace_init(&w.p, l, &share, piece);
	pace_ask(&w.p);
	pace_ask(&w.p);
	assert_int_equal(w.n, 0);
	for (unsigned i = 0; i < 20; i++)
		io_loop_turn(l, 0);
	assert_in_range(w.n, 1, 3);
	assert_true(io_loop_next_timer(l) > io_now_exact() + XTIME_S);
	pace_ask(&w.p); /* no effect */
	io_loop_turn(l, 0);
	assert_in_range(w.n, 1, 3);
	pace_end(&w.p);
	assert_int_equal(io_loop_next_timer(l), XTIME_NEVER);
	io_loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_credit_grows_with_time),
		cmocka_unit_test(test_pace_waits_when_the_burst_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
