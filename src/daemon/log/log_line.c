/* SPDX-License-Identifier: BSD-2-Clause */
/* log_line.c: log records as lines of text or JSON. */
#include "daemon/log/log_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"

#define NAME_MAX_LEN 256 /* bytes of a name in a line, before it is escaped */

struct line {
	char *out;
	size_t len;
};

/* Drops what does not fit; LOG_LINE_MAX is enough for each record. */
static void put(struct line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct line *l, const char *fmt, ...)
{
	size_t left = LOG_LINE_MAX - l->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->out + l->len, left, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len += MIN((size_t)n, left - 1);
}

/* ---- JSON ---- */

/* Text that text_escape has passed needs only these two escapes. */
static void put_quoted(struct line *l, const char *text)
{
	put(l, "\"");
	while (*text) {
		size_t n = strcspn(text, "\"\\");

		put(l, "%.*s", (int)n, text);
		text += n;
		if (*text)
			put(l, "\\%c", *text++);
	}
	put(l, "\"");
}

static void put_name(struct line *l, const char *key, const char *name)
{
	char plain[TEXT_ESCAPED_SIZE(NAME_MAX_LEN)];

	if (!name || !*name)
		return;
	text_escape(plain, sizeof(plain), name, strnlen(name, NAME_MAX_LEN));
	put(l, ",\"%s\":", key);
	put_quoted(l, plain);
}

size_t log_clause(const char *text, const char **at)
{
	size_t len = 0;

	for (const char *p = text; (p = strstr(p, "RFC ")); p++) {
		size_t number = strspn(p + 4, "0123456789"), clause;
		const char *q = p + 4 + number;

		if (!number || strncmp(q, " §", 3) != 0)
			continue;
		q += 3;
		clause = strspn(q, "0123456789.");
		if (!clause)
			continue;
		while (clause > 1 && q[clause - 1] == '.')
			clause--;
		*at = p;
		len = (size_t)(q - p) + clause;
	}
	return len;
}

/* RFC 3339 in UTC. */
static void put_time(struct line *l, const struct timespec *when)
{
	char stamp[32];
	struct tm tm;

	gmtime_r(&when->tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	put(l, "\"time\":\"%s.%03ldZ\"", stamp, when->tv_nsec / 1000000);
}

static void put_json(struct line *l, const struct log_record *r)
{
	const char *clause;
	size_t len = log_clause(r->text, &clause);

	put(l, "{");
	put_time(l, &r->when);
	put(l, ",\"level\":\"%s\",\"event\":\"%s\"", trace_level_name(r->level),
	    r->event);
	put_name(l, "peer", r->about.peer);
	put_name(l, "initiator", r->about.initiator);
	put_name(l, "target", r->about.target);
	put_name(l, "backstore", r->about.backstore);
	for (unsigned i = 0; i < r->about.nfields; i++) {
		const struct trace_field *f = &r->about.fields[i];

		if (f->text)
			put_name(l, f->name, f->text);
		else
			put(l, ",\"%s\":%llu", f->name,
			    (unsigned long long)f->value);
	}
	if (len)
		put(l, ",\"clause\":\"%.*s\"", (int)len, clause);
	if (r->dropped)
		put(l, ",\"dropped\":%u", r->dropped);
	put(l, ",\"text\":");
	put_quoted(l, r->text);
	put(l, "}\n");
}

/* ---- text ---- */

/* The date of RFC 3339 with the offset of the zone. */
static void put_date(struct line *l, const struct timespec *when)
{
	char stamp[32], zone[8];
	struct tm tm;

	localtime_r(&when->tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm); /* +hhmm */
	put(l, "%s.%03ld%.3s:%.2s ", stamp, when->tv_nsec / 1000000, zone,
	    zone + 3);
}

/* A line of say has neither a date nor a level: it is for a reader at a
 * terminal. */
static void put_text(struct line *l, const struct log_record *r,
		     enum log_format format)
{
	static const int priorities[] = { 3, 4, 5, 6, 7 }; /* sd-daemon(3) */
	bool is_said = !strcmp(r->event, LOG_PROCESS);

	if (format == LOG_JOURNALD)
		put(l, "<%d>", priorities[r->level]);
	else if (!is_said)
		put_date(l, &r->when);
	if (is_said)
		put(l, "iserd: %s", r->text);
	else
		put(l, "%s %s: %s", trace_level_name(r->level), r->event,
		    r->text);
	if (r->dropped)
		put(l, " (%u like it before were dropped)", r->dropped);
	put(l, "\n");
}

size_t log_line_write(char out[LOG_LINE_MAX], enum log_format format,
		      const struct log_record *r)
{
	struct line l = { .out = out };

	if (format == LOG_JSON)
		put_json(&l, r);
	else
		put_text(&l, r, format);
	return l.len;
}
