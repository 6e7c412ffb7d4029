/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.c: names and levels of events; formats and escapes their text. */
#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"

static const struct {
	const char *name;
	enum trace_level level;
} events[TRACE_EVENT_COUNT] = {
#define TRACE_ROW(name, level, text) { #name, TRACE_LEVEL_##level },
	TRACE_EVENTS(TRACE_ROW)
#undef TRACE_ROW
};

const char *trace_event_name(enum trace_event e)
{
	return e < TRACE_EVENT_COUNT ? events[e].name : "?";
}

enum trace_level trace_event_level(enum trace_event e)
{
	return e < TRACE_EVENT_COUNT ? events[e].level : TRACE_LEVEL_ERROR;
}

const char *trace_level_name(enum trace_level l)
{
	static const char *const names[] = { "error", "warning", "notice",
					     "info", "debug" };

	return l <= TRACE_LEVEL_DEBUG ? names[l] : "?";
}

static void emit_text(struct trace *t, enum trace_event e,
		      const struct trace_about *about, const char *fmt,
		      va_list ap)
{
	char text[1024], plain[1024];
	size_t len;

	vsnprintf(text, sizeof(text), fmt, ap);
	/* names and reasons in the text may come from a peer */
	len = strlen(text);
	if (!text_is_plain(text, len)) {
		text_escape(plain, sizeof(plain), text, len);
		t->emit(t, e, about, plain);
		return;
	}
	t->emit(t, e, about, text);
}

void trace_emit(struct trace *t, enum trace_event e, const char *fmt, ...)
{
	static const struct trace_about nothing;
	va_list ap;

	if (!trace_wanted(t, trace_event_level(e)))
		return;
	va_start(ap, fmt);
	emit_text(t, e, &nothing, fmt, ap);
	va_end(ap);
}

void trace_emit_about(struct trace *t, enum trace_event e,
		      const struct trace_about *about, const char *fmt, ...)
{
	va_list ap;

	if (!trace_wanted(t, trace_event_level(e)))
		return;
	va_start(ap, fmt);
	emit_text(t, e, about, fmt, ap);
	va_end(ap);
}
