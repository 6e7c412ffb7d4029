/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_line.h: the forms of a log line (--log-format). No clock, no I/O: the
 * time is an argument.
 */
#ifndef DAEMON_LOG_LOG_LINE_H
#define DAEMON_LOG_LOG_LINE_H

#include <stddef.h>
#include <time.h>

#include "base/trace.h"

enum log_format {
	LOG_AUTO, /* LOG_JOURNALD if standard error is the journal, or LOG_TEXT */
	LOG_TEXT,     /* DATE LEVEL EVENT: TEXT */
	LOG_JSON,     /* one object */
	LOG_JOURNALD, /* <N>LEVEL EVENT: TEXT, where N is the priority */
};

struct log_record {
	struct timespec when; /* since 1970 */
	enum trace_level level;
	const char *event; /* a name of trace_event_name, or LOG_PROCESS */
	struct trace_about about; /* not escaped */
	const char *text;	  /* escaped by text_escape */
	unsigned dropped; /* events like this one that were not logged before */
};

/* The event of a message that the process writes by say (say.h). */
#define LOG_PROCESS "PROCESS"
/* Enough for each record whose text has at most 1,023 bytes, with the longest
 * names. */
#define LOG_LINE_MAX 8192

/* log_line_write writes the record with a final newline to out, and returns the
 * length. */
size_t log_line_write(char out[LOG_LINE_MAX], enum log_format format,
		      const struct log_record *r);
/* log_clause finds the clause that the text names last, such as "RFC 7143
 * §6.3". Returns its length, 0 if there is none, and its start in *at. */
size_t log_clause(const char *text, const char **at);

#endif
