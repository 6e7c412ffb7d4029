/* SPDX-License-Identifier: BSD-2-Clause */
/* expo.c: writes the text formats of Prometheus. */
#include "daemon/metrics/expo.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"

static void write_text(struct expo *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void write_text(struct expo *t, const char *fmt, ...)
{
	for (;;) {
		size_t left = t->room - t->len, room;
		va_list ap;
		char *p;
		int n;

		va_start(ap, fmt);
		n = vsnprintf(t->out ? t->out + t->len : NULL, left, fmt, ap);
		va_end(ap);
		if (n < 0 || t->failed)
			return;
		if ((size_t)n < left) {
			t->len += (size_t)n;
			return;
		}
		room = MAX(2 * t->room, t->len + (size_t)n + 16384);
		p = realloc(t->out, room);
		if (!p) {
			t->failed = true;
			return;
		}
		t->out = p;
		t->room = room;
	}
}

void expo_family(struct expo *t, const char *name, enum expo_type type,
		 const char *help)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	/* OpenMetrics names the family without "_total" */
	const char *end = type == EXPO_COUNTER && !t->open ? "_total" : "";

	t->name = name;
	t->type = type;
	t->labels[0] = '\0';
	write_text(t, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name,
		   end, types[type]);
}

/* Escapes the value of a label: backslash, double quote and line feed. */
static void escape_value(char *out, size_t size, const char *value)
{
	char plain[1024];
	size_t n = 0;

	text_escape_str(plain, sizeof(plain), value);
	for (const char *p = plain; *p && n + 2 < size; p++) {
		if (*p == '\\' || *p == '"')
			out[n++] = '\\';
		out[n++] = *p;
	}
	out[n] = '\0';
}

void expo_labels(struct expo *t, ...)
{
	size_t n = 0;
	va_list ap;

	va_start(ap, t);
	for (;;) {
		const char *name = va_arg(ap, const char *);
		const char *value = name ? va_arg(ap, const char *) : NULL;
		char safe[1024];
		int len;

		if (!name)
			break;
		escape_value(safe, sizeof(safe), value ? value : "");
		len = snprintf(t->labels + n, sizeof(t->labels) - n,
			       "%s%s=\"%s\"", n ? "," : "", name, safe);
		if ((size_t)len >= sizeof(t->labels) - n) {
			t->labels[n] = '\0';
			break;
		}
		n += (size_t)len;
	}
	va_end(ap);
}

static void write_name(struct expo *t, const char *end)
{
	if (t->labels[0])
		write_text(t, "%s%s{%s} ", t->name, end, t->labels);
	else
		write_text(t, "%s%s ", t->name, end);
}

void expo_count(struct expo *t, uint64_t value)
{
	write_name(t, t->type == EXPO_COUNTER ? "_total" : "");
	write_text(t, "%llu\n", (unsigned long long)value);
}

void expo_number(struct expo *t, double value)
{
	write_name(t, t->type == EXPO_COUNTER ? "_total" : "");
	write_text(t, "%.15g\n", value);
}

void expo_bucket(struct expo *t, double le, uint64_t count)
{
	char limit[32] = "+Inf";

	if (le < HUGE_VAL)
		snprintf(limit, sizeof(limit), "%.12g", le);
	write_text(t, "%s_bucket{%s%sle=\"%s\"} %llu\n", t->name, t->labels,
		   t->labels[0] ? "," : "", limit, (unsigned long long)count);
}

void expo_histogram(struct expo *t, double sum, uint64_t count)
{
	write_name(t, "_sum");
	write_text(t, "%.15g\n", sum);
	write_name(t, "_count");
	write_text(t, "%llu\n", (unsigned long long)count);
}

bool expo_end(struct expo *t)
{
	if (t->open)
		write_text(t, "# EOF\n");
	return !t->failed;
}
