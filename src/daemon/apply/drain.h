/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain.h: targets that admit no new session, while their sessions go on. This is a
 * state of the process, not of its configuration: it ends by the same command, when the
 * target is removed, and with the process, also by a live upgrade. On worker 0.
 */
#ifndef DAEMON_APPLY_DRAIN_H
#define DAEMON_APPLY_DRAIN_H

#include <stdbool.h>

#include "daemon/config/errors.h"

struct cfg_model;
struct daemon;

struct drain {
	bool all;	/* every target, also those that are added later */
	char **targets; /* names in the form of RFC 3722 */
	unsigned n;
};

/* drain_has returns whether the target drains. */
bool drain_has(const struct daemon *d, const char *target);
/*
 * drain_set makes a target drain, or ends that; target NULL: all targets, and off then
 * ends that of each. done is called when the state is in force on each worker. False: e
 * has the reason, and nothing has changed.
 */
bool drain_set(struct daemon *d, const char *target, bool on,
	       struct cfg_errors *e, void (*done)(void *arg), void *arg);
/* drain_forget ends the state of targets that m does not have. */
void drain_forget(struct daemon *d, const struct cfg_model *m);
/* drain_free frees the names. */
void drain_free(struct daemon *d);

#endif
