/* SPDX-License-Identifier: BSD-2-Clause */
/* prometheus.h: a snapshot as Prometheus metrics. */
#ifndef DAEMON_METRICS_PROMETHEUS_H
#define DAEMON_METRICS_PROMETHEUS_H

#include "daemon/metrics/expo.h"
#include "daemon/metrics/snapshot.h"

/* prometheus_write appends all metrics to *t, without the end. Worker 0. */
void prometheus_write(struct expo *t, const struct snapshot *s);

#endif
