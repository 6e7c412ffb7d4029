/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_state_test.c: the state machine of a task: which transitions exist, and
 * what its sanity function accepts in each state.
 */
#include "device/unit/task_state.h"

#include <string.h>

#include "cmocka_all.h"

#define TASK_STATES (DEV_TASK_DONE + 1)

/* A task has its data before it runs; the task set may delay its run and its
 * end; an abort is possible from begin to end. */
static void test_transitions(void **state)
{
	static const char *const rows[TASK_STATES] = {
		[DEV_TASK_NEW] = "-W----",     [DEV_TASK_WANTS_DATA] = "N-DR-E",
		[DEV_TASK_DORMANT] = "---R-E", [DEV_TASK_RUNNING] = "----HE",
		[DEV_TASK_HELD] = "---R-E",    [DEV_TASK_DONE] = "N-----",
	};

	(void)state;
	for (unsigned from = 0; from < TASK_STATES; from++)
		for (unsigned to = 0; to < TASK_STATES; to++)
			assert_int_equal(!!(dev_task_may_go[from] & BIT(to)),
					 rows[from][to] != '-');
}

static struct dev_task task;
static struct list set;
static uint8_t byte;

/* A task in the given state, with nothing that contradicts it. */
static struct dev_task *task_in(enum dev_task_state s)
{
	struct dev_task *t = &task;

	memset(t, 0, sizeof(*t));
	list_init(&set);
	list_init(&t->order.in_set);
	if (s != DEV_TASK_NEW && s != DEV_TASK_DONE)
		list_push_back(&set, &t->order.in_set);
	t->own.state = s;
	assert_true(dev_task_is_sane(t));
	return t;
}

static void test_only_a_running_task_holds_blocks(void **state)
{
	(void)state;
	for (unsigned s = 0; s < TASK_STATES; s++) {
		struct dev_task *t = task_in((enum dev_task_state)s);

		t->own.range.state = DEV_HOLD_SHARED;
		assert_int_equal(dev_task_is_sane(t), s == DEV_TASK_RUNNING);
		t->own.range.state = DEV_HOLD_WAITS;
		assert_int_equal(dev_task_is_sane(t), s == DEV_TASK_RUNNING);
	}
}

static void test_only_a_task_without_data_waits_for_memory(void **state)
{
	(void)state;
	for (unsigned s = DEV_TASK_WANTS_DATA; s < TASK_STATES; s++) {
		struct dev_task *t = task_in((enum dev_task_state)s);

		if (s == DEV_TASK_HELD) /* comes from RUNNING */
			continue;
		t->waits = true;
		assert_int_equal(dev_task_is_sane(t), s == DEV_TASK_WANTS_DATA);
	}
	task_in(DEV_TASK_WANTS_DATA)->held_back = true;
	assert_false(dev_task_is_sane(&task));
}

/* An aborted task that does no I/O ends at once. */
static void test_only_a_running_task_ends_after_its_abort(void **state)
{
	(void)state;
	for (unsigned s = DEV_TASK_WANTS_DATA; s < DEV_TASK_DONE; s++) {
		task_in((enum dev_task_state)s)->own.abort.due = true;
		assert_int_equal(dev_task_is_sane(&task),
				 s == DEV_TASK_RUNNING);
	}
}

/* A waiter outside of the task set would wait forever. */
static void test_waiters_are_in_the_task_set(void **state)
{
	(void)state;
	list_del(&task_in(DEV_TASK_DORMANT)->order.in_set);
	assert_false(dev_task_is_sane(&task));
	list_del(&task_in(DEV_TASK_HELD)->order.in_set);
	assert_false(dev_task_is_sane(&task));
	list_push_back(&set, &task_in(DEV_TASK_DONE)->order.in_set);
	assert_false(dev_task_is_sane(&task));
}

static void test_an_ended_task_has_no_memory(void **state)
{
	struct dev_copy copy = { .state = COPY_NONE };

	(void)state;
	task_in(DEV_TASK_NEW)->own.mem.buf = &byte;
	assert_false(dev_task_is_sane(&task));
	task_in(DEV_TASK_NEW)->own.copy = &copy;
	assert_false(dev_task_is_sane(&task));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_only_a_running_task_holds_blocks),
		cmocka_unit_test(
			test_only_a_task_without_data_waits_for_memory),
		cmocka_unit_test(test_only_a_running_task_ends_after_its_abort),
		cmocka_unit_test(test_waiters_are_in_the_task_set),
		cmocka_unit_test(test_an_ended_task_has_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
