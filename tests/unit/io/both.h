/* SPDX-License-Identifier: BSD-2-Clause */
/* both.h: every test body runs with both back ends. Where the machine forbids
 * io_uring, those tests are skipped with a message. */
#ifndef TESTS_IO_BOTH_H
#define TESTS_IO_BOTH_H

#include <stdio.h>

#include "cmocka_all.h"
#include "io/io.h"

static enum io_backend both_backends[] = { IO_EPOLL, IO_URING };

static inline int both_setup(void **state)
{
	int err;

	*state = io_loop_new(*(enum io_backend *)*state, &err);
	if (!*state)
		printf("no loop: %d (io_uring may be forbidden here)\n", err);
	return 0;
}

static inline int both_teardown(void **state)
{
	io_loop_free(*state);
	return 0;
}

#define BOTH_ONE(f, which, label)                            \
 {                                                           \
  label, f, both_setup, both_teardown, &both_backends[which] \
 }
#define BOTH(f) BOTH_ONE(f, 0, #f "(epoll)"), BOTH_ONE(f, 1, #f "(io_uring)")

/* both_loop makes the loop of this test, or skips the test. */
static inline struct io_loop *both_loop(void **state)
{
	if (!*state)
		skip();
	return *state;
}

/* both_turns runs turns until *flag is set, for ten seconds at most. */
static inline void both_turns(struct io_loop *l, const unsigned *flag,
			      unsigned value)
{
	xtime end = io_now_exact() + 10 * XTIME_S;

	while (*flag < value && io_now_exact() < end)
		assert_true(io_loop_turn(l, XTIME_S) >= 0);
	assert_int_equal(*flag, value);
}

#endif
