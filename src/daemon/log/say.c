/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c: lines for the administrator on standard error. */
#include "daemon/log/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void (*through)(void *arg, const char *text);
static void *through_arg;
static _Thread_local struct say_hold *held; /* the innermost */
static _Thread_local struct say_tap *tapped;

void say_through(void (*write)(void *arg, const char *text), void *arg)
{
	through = write;
	through_arg = arg;
}

static void write_text(const char *text)
{
	if (through)
		through(through_arg, text);
	else
		fprintf(stderr, "iserd: %s\n", text);
}

void say(const char *fmt, ...)
{
	char text[1024];
	size_t len = held ? strlen(held->text) : 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (held)
		snprintf(held->text + len, sizeof(held->text) - len, "%s%s",
			 len ? "; " : "", text);
	else
		write_text(text);
}

void say_note(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (tapped)
		tapped->take(tapped->arg, text);
	if (!tapped || !tapped->is_only)
		write_text(text);
}

void say_tap(struct say_tap *t)
{
	t->outer = tapped;
	tapped = t;
}

void say_untap(struct say_tap *t)
{
	tapped = t->outer;
}

void say_hold(struct say_hold *h)
{
	*h = (struct say_hold){ .outer = held };
	held = h;
}

void say_release(struct say_hold *h, bool false_alarm)
{
	held = h->outer;
	if (false_alarm && *h->text)
		say("%s", h->text);
}
