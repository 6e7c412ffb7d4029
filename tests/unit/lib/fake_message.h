/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_message.h: the last error message of libiser, for programs that link block.c
 * without a context. */
#ifndef TESTS_UNIT_LIB_FAKE_MESSAGE_H
#define TESTS_UNIT_LIB_FAKE_MESSAGE_H

#include <stdarg.h>
#include <stdio.h>

#include "lib/internal.h"

static char message[200];

int lib_fail(struct iser_context *ctx, int err, const char *fmt, ...)
{
	va_list ap;

	(void)ctx;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	return err;
}

const char *iser_message(const struct iser_context *ctx)
{
	(void)ctx;
	return message;
}

#endif
