/* SPDX-License-Identifier: BSD-2-Clause */
/* log.c: trace events as lines on standard error. */
#include "daemon/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "io/io.h"

/* Replaces control characters: names come from peers, and the line may be shown
 * by a terminal. */
static void make_printable(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

/* Writes the date of RFC 3339 with the offset of the zone; for the journal,
 * which adds a date itself, the number of the level (sd-daemon(3)). */
static void make_head(const struct log *l, enum trace_level level,
		      char head[64])
{
	static const int syslog_levels[] = { 3, 4, 5, 6, 7 };
	char stamp[32], zone[8];
	struct timespec ts;
	struct tm tm;

	if (l->is_journal) {
		snprintf(head, 64, "<%d>", syslog_levels[level]);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm); /* +hhmm */
	snprintf(head, 64, "%s.%03ld%.3s:%.2s ", stamp, ts.tv_nsec / 1000000,
		 zone, zone + 3);
}

static void write_line(const struct log *l, enum trace_event e,
		       const char *text, unsigned dropped)
{
	enum trace_level level = trace_event_level(e);
	char line[1200], head[64];

	make_head(l, level, head);
	snprintf(line, sizeof(line), "%s%s %s: %s", head,
		 trace_level_name(level), trace_event_name(e), text);
	make_printable(line);
	if (dropped)
		fprintf(stderr, "%s (%u like it before were dropped)\n", line,
			dropped);
	else
		fprintf(stderr, "%s\n", line);
}

static void write_summary(const struct log *l, const struct loglimit_summary *s)
{
	char text[128];

	if (!s->n)
		return;
	snprintf(text, sizeof(text), "%u more lines suppressed from %s", s->n,
		 s->name);
	write_line(l, TRACE_CONN_LIMIT, text, 0);
}

static void write_due(struct log *l, xtime now)
{
	struct loglimit_summary s;

	while (loglimit_due(&l->limit, now, &s))
		write_summary(l, &s);
}

/* At level debug no line is suppressed. */
static void emit_line(struct trace *t, enum trace_event e, const char *text)
{
	struct log *l = container_of(t, struct log, trace);
	xtime now = io_now_exact();
	struct loglimit_summary s = { .n = 0 };
	unsigned dropped = 0;
	bool may;

	pthread_mutex_lock(&l->lock);
	may = l->trace.level == TRACE_LEVEL_DEBUG ||
	      loglimit_admit(&l->limit, e, text, now, &dropped, &s);
	write_summary(l, &s);
	write_due(l, now);
	if (may)
		write_line(l, e, text, dropped);
	pthread_mutex_unlock(&l->lock);
}

void log_flush(struct log *l)
{
	pthread_mutex_lock(&l->lock);
	write_due(l, io_now_exact());
	pthread_mutex_unlock(&l->lock);
}

/* systemd.exec(5): JOURNAL_STREAM is the device and inode of the journal's
 * socket, which stderr may have been redirected away from. */
static bool is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(fd, &st) && st.st_dev == dev && st.st_ino == ino;
}

void log_init(struct log *l, enum trace_level level)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	l->is_journal = is_journal(STDERR_FILENO);
	l->trace.level = level;
	l->trace.emit = emit_line;
}
