/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h: the sink of base/trace.h: lines on standard error, at most so many a
 * second of one kind of event. Safe from any thread.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <pthread.h>

#include "base/trace.h"
#include "base/xtime.h"

struct log {
	struct trace trace;
	pthread_mutex_t lock; /* guards what follows */
	struct {
		xtime since;
		unsigned lines, dropped;
	} rate[TRACE_EVENT_COUNT];
};

void log_init(struct log *l, enum trace_level level);

#endif
