/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expo.h: the text formats of Prometheus: version 0.0.4, and OpenMetrics 1.0. A
 * family is a metric with its type and help text; its samples follow it.
 */
#ifndef DAEMON_METRICS_EXPO_H
#define DAEMON_METRICS_EXPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum expo_type {
	EXPO_COUNTER, /* "_total" is added to the name of its samples */
	EXPO_GAUGE,
	EXPO_HISTOGRAM,
};

struct expo {
	char *out; /* not ended; the owner frees it */
	size_t len, room;
	bool open;   /* OpenMetrics */
	bool failed; /* no memory: out is not complete */
	const char *name;
	enum expo_type type;
	char labels[1400]; /* of the next samples */
};

/* expo_family begins a family. name is borrowed until the next one. */
void expo_family(struct expo *t, const char *name, enum expo_type type,
		 const char *help);
/* EXPO_LABELS sets the labels of the samples that follow: pairs of a name and a
 * value. Values are escaped and may be of peers; a label that does not fit is left
 * out. expo_labels does the same for pairs that end with a null pointer. */
#define EXPO_LABELS(t, ...) expo_labels(t, __VA_ARGS__, (const char *)NULL)
void expo_labels(struct expo *t, ...) __attribute__((sentinel));
/* expo_count adds a sample of a counter or a whole number. */
void expo_count(struct expo *t, uint64_t value);
/* expo_number adds a sample of a gauge. */
void expo_number(struct expo *t, double value);
/* expo_bucket adds a bucket of a histogram: count values up to le; le is
 * HUGE_VAL for the last one. */
void expo_bucket(struct expo *t, double le, uint64_t count);
/* expo_histogram ends a histogram with the sum and the number of its values. */
void expo_histogram(struct expo *t, double sum, uint64_t count);
/* expo_end ends the text. False: it is not complete. */
bool expo_end(struct expo *t);

#endif
