/* SPDX-License-Identifier: BSD-2-Clause */
/* answer.h: what each path of the HTTP endpoint answers: status, headers and
 * body. */
#ifndef DAEMON_METRICS_ANSWER_H
#define DAEMON_METRICS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/metrics/head.h"

struct snapshot;

#define ANSWER_HEADERS 7

struct answer {
	unsigned status;
	void *body; /* owned, unless is_static */
	size_t len;
	bool is_static;
	struct {
		const char *name, *value; /* static */
	} headers[ANSWER_HEADERS];	  /* up to the first without a name */
};

/* answer_refusal makes an answer with an error status. */
void answer_refusal(struct answer *a, unsigned status);
/* answer_static makes an answer that needs no snapshot; false: this kind needs
 * one. ready: iserd accepts connections. */
bool answer_static(struct answer *a, enum answer_kind kind, bool ready);
/* answer_numbers makes an answer of a snapshot; NULL: there is none, and the
 * status is 503. The caller frees it by answer_free. */
void answer_numbers(struct answer *a, enum answer_kind kind, bool open,
		    const struct snapshot *s);
/* answer_free frees the body. */
void answer_free(struct answer *a);

#endif
