/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c: lines for the administrator on standard error. */
#include "daemon/say.h"

#include <stdarg.h>
#include <stdio.h>

static void (*through)(void *arg, const char *text);
static void *through_arg;

void say_through(void (*write)(void *arg, const char *text), void *arg)
{
	through = write;
	through_arg = arg;
}

void say(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (through)
		through(through_arg, text);
	else
		fprintf(stderr, "iserd: %s\n", text);
}
