/* SPDX-License-Identifier: BSD-2-Clause */
/* log.c: what the rooms have to say, on standard error. */
#include "daemon/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "io/io.h"

#define LINES_PER_SECOND 50

/* Whether this line may be written; *dropped: how many before it were not.
 * Debugging is not limited: who asks for it wants all. */
static bool admit(struct log *l, enum trace_event e, unsigned *dropped)
{
	xtime now = io_now_exact();

	*dropped = 0;
	if (l->trace.level == TRACE_LEVEL_DEBUG)
		return true;
	if (now - l->rate[e].since >= XTIME_S) {
		*dropped = l->rate[e].dropped;
		l->rate[e].since = now;
		l->rate[e].lines = 0;
		l->rate[e].dropped = 0;
	}
	if (l->rate[e].lines < LINES_PER_SECOND) {
		l->rate[e].lines++;
		return true;
	}
	l->rate[e].dropped++;
	return false;
}

/* Text from peers (names) must not move the terminal's cursor. */
static void make_printable(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

static void write_line(enum trace_event e, const char *text, unsigned dropped)
{
	char line[1200], stamp[32];
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%H:%M:%S", &tm);
	snprintf(line, sizeof(line), "%s.%03ld %s %s: %s", stamp,
		 ts.tv_nsec / 1000000, trace_level_name(trace_event_level(e)),
		 trace_event_name(e), text);
	make_printable(line);
	if (dropped)
		fprintf(stderr, "%s (%u like it before were dropped)\n", line,
			dropped);
	else
		fprintf(stderr, "%s\n", line);
}

static void emit(struct trace *t, enum trace_event e, const char *text)
{
	struct log *l = container_of(t, struct log, trace);
	unsigned dropped;

	pthread_mutex_lock(&l->lock);
	if (admit(l, e, &dropped))
		write_line(e, text, dropped);
	pthread_mutex_unlock(&l->lock);
}

void log_init(struct log *l, enum trace_level level)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	l->trace.level = level;
	l->trace.emit = emit;
}
