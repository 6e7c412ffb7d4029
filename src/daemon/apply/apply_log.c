/* SPDX-License-Identifier: BSD-2-Clause */
/* apply_log.c: the line of the log about a change of the configuration. */
#include <stdio.h>
#include <string.h>

#include "daemon/apply/apply.h"
#include "daemon/daemon.h"

/* The first differences, without values. */
struct summary {
	char text[400];
	size_t len;
	unsigned n, nshown;
};

static void add_difference(void *arg, const struct cfg_change *x)
{
	static const char *const kinds[] = { [CFG_ADDED] = "added",
					     [CFG_REMOVED] = "removed",
					     [CFG_CHANGED] = "changed" };
	struct summary *s = arg;
	size_t room = sizeof(s->text) - s->len;
	int len;

	if (s->n++ != s->nshown)
		return; /* an earlier one did not fit */
	len = snprintf(s->text + s->len, room, "%s%s %s", s->len ? ", " : "",
		       kinds[x->kind], x->path);
	if (len < 0 || (size_t)len >= room) {
		s->text[s->len] = '\0';
		return;
	}
	s->len += (size_t)len;
	s->nshown++;
}

void apply_log(struct daemon *d, const struct cfg_model *m)
{
	struct summary s = { .n = 0 };
	char more[32] = "";

	(void)cfg_diff(d->model, m, add_difference, &s);
	if (!s.n)
		return;
	if (s.n > s.nshown)
		snprintf(more, sizeof(more), "%s%u more",
			 s.nshown ? ", and " : "", s.n - s.nshown);
	trace_emit(&d->log.trace, TRACE_CHANGE,
		   "the configuration changes: %s%s", s.text, more);
}
