/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_sanity.h: asserts that the tasks of a worker agree with their states,
 * between two turns. A setter can assert that only for its own task, at the
 * moment of the transition.
 */
#ifndef TESTS_DEVICE_TASK_SANITY_H
#define TESTS_DEVICE_TASK_SANITY_H

#include "cmocka_all.h"
#include "device/unit/task_state.h"

static inline void check_nexus_tasks(const struct dev_nexus *n)
{
	uint32_t dormant = 0;

	list_for_each(it, &n->tasks) {
		const struct dev_task *t =
			list_entry(it, struct dev_task, order.in_set);

		assert_true(dev_task_is_sane(t));
		assert_int_not_equal(t->own.state, DEV_TASK_NEW);
		dormant += t->own.state == DEV_TASK_DORMANT ||
			   t->own.state == DEV_TASK_HELD;
	}
	assert_int_equal(n->ndormant, dormant);
}

static inline void check_tasks(const struct dev_server *s, unsigned worker)
{
	list_for_each(it, &s->nexuses[worker])
		check_nexus_tasks(list_entry(it, struct dev_nexus, link));
}

#endif
