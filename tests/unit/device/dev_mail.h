/* SPDX-License-Identifier: BSD-2-Clause */
/* dev_mail.h: messages to the loop wait until the test lets them run. */
#ifndef TESTS_DEVICE_DEV_MAIL_H
#define TESTS_DEVICE_DEV_MAIL_H

#include "dev_case.h"

static struct dev_msg *mail[64];
static unsigned nmail;

static inline void hold_post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	assert_true(nmail < ARRAY_LEN(mail));
	mail[nmail++] = m;
}

static inline bool turn(void)
{
	struct dev_msg *m = mail[0];

	if (!nmail)
		return false;
	memmove(mail, mail + 1, --nmail * sizeof(mail[0]));
	m->run(m);
	return true;
}

static inline void run_out(void)
{
	while (turn())
		;
}

#endif
