/* SPDX-License-Identifier: BSD-2-Clause */
/* head.h: what the head of an HTTP request asks for. */
#ifndef DAEMON_METRICS_HEAD_H
#define DAEMON_METRICS_HEAD_H

#include <stdbool.h>

enum answer_kind {
	ANSWER_NOTHING, /* no such path */
	ANSWER_METRICS,
	ANSWER_HEALTH,
	ANSWER_READY,
	ANSWER_STATUS,
	ANSWER_PAGE,
	ANSWER_KINDS,
};

/* head_kind returns what is at the path of a URL. */
enum answer_kind head_kind(const char *path);
/* head_wants_open returns whether an Accept header, or NULL, names
 * OpenMetrics. */
bool head_wants_open(const char *accept);
/* head_is_local returns whether a Host header is a numeric address or
 * localhost, with or without a port. NULL: there is none, which is local,
 * too. */
bool head_is_local(const char *host);

#endif
