/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c: lines for the administrator on standard error. */
#include "daemon/say.h"

#include <stdarg.h>
#include <stdio.h>

void say(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "iserd: %s\n", text);
}
