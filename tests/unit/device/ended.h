/* SPDX-License-Identifier: BSD-2-Clause */
/* ended.h: a task that ended and takes another step crashes the test, since the
 * owner of the task may free it. */
#ifndef TESTS_DEVICE_ENDED_H
#define TESTS_DEVICE_ENDED_H

#include "device/task.h"

static inline void no_more_steps(struct dev_task *t)
{
	t->own.steps.next = NULL;
	t->own.steps.again = true;
}

#endif
