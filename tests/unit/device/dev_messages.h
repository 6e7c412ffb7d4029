/* SPDX-License-Identifier: BSD-2-Clause */
/* dev_messages.h: messages to the loop wait until the test runs them. */
#ifndef TESTS_DEVICE_DEV_MESSAGES_H
#define TESTS_DEVICE_DEV_MESSAGES_H

#include "dev_case.h"

static struct dev_msg *messages[64];
static unsigned nmessages;

static inline void hold_post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	assert_true(nmessages < ARRAY_LEN(messages));
	messages[nmessages++] = m;
}

static inline bool turn(void)
{
	struct dev_msg *m = messages[0];

	if (!nmessages)
		return false;
	memmove(messages, messages + 1, --nmessages * sizeof(messages[0]));
	m->run(m);
	return true;
}

static inline void run_out(void)
{
	while (turn())
		;
}

#endif
