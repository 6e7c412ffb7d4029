/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c: messages, and the clock. */
#include <stdarg.h>
#include <time.h>

#include "base/escape.h"
#include "tools/check/check.h"

xtime check_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * XTIME_S + t.tv_nsec;
}

void check_say(const char *fmt, ...)
{
	char text[2048], escaped[TEXT_ESCAPED_SIZE(sizeof(text))];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "iser-check: %s\n",
		text_escape_str(escaped, sizeof(escaped), text));
}
