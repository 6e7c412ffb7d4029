/* SPDX-License-Identifier: BSD-2-Clause */
/* numbers.h: a snapshot as JSON, for the web page and iserctl. */
#ifndef DAEMON_METRICS_NUMBERS_H
#define DAEMON_METRICS_NUMBERS_H

#include <jansson.h>

#include "daemon/metrics/snapshot.h"

/* numbers_json returns a new value, which the caller releases. Worker 0. */
json_t *numbers_json(const struct snapshot *s);

#endif
