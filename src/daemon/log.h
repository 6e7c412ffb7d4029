/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h: the sink of base/trace.h: lines on standard error, within the limits
 * of loglimit.h. Safe from any thread.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <pthread.h>

#include "base/trace.h"
#include "daemon/loglimit.h"

struct log {
	struct trace trace;
	pthread_mutex_t lock; /* guards what follows */
	struct loglimit limit;
	bool is_journal; /* constant: standard error is systemd's journal */
};

/* log_init: the level can be changed later (trace.level). */
void log_init(struct log *l, enum trace_level level);
/* log_flush writes the summaries of suppressed lines that are due. */
void log_flush(struct log *l);

#endif
