/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chap_reload.c: reads the files of CHAP secrets again at SIGHUP. Each worker gets
 * a message with a copy of its own, so that no secret is shared between
 * threads.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/chap.h"
#include "daemon/daemon.h"

struct new_chap {
	struct dev_msg msg;
	struct worker *worker;
	struct tgt_chap chap;
};

static void take_chap(struct dev_msg *m)
{
	struct new_chap *n = container_of(m, struct new_chap, msg);
	const struct options *o = &n->worker->daemon->options;
	struct tgt_worker *w = n->worker->target;
	int err;

	err = tgt_worker_set_chap(w, o->name, &n->chap);
	assert(!err); /* setup_target has added this node */
	(void)err;
	if (o->chap.discovery)
		tgt_worker_set_chap(w, NULL, &n->chap);
	explicit_bzero(n, sizeof(*n));
	free(n);
}

/* Sends the worker a copy of the secrets. False: out of memory. */
static bool send_chap(struct worker *w, const struct tgt_chap *chap)
{
	struct new_chap *n = malloc(sizeof(*n));

	if (!n)
		return false;
	*n = (struct new_chap){ .msg.run = take_chap,
				.worker = w,
				.chap = *chap };
	worker_post(w->daemon, w->index, &n->msg);
	return true;
}

void chap_reload(struct daemon *d)
{
	struct tgt_chap chap = { 0 };
	bool sent = true;

	if (d->phase != DAEMON_SERVING)
		return; /* the files are read next, or iserd ends */
	if (!d->options.chap.user) {
		trace_emit(&d->log.trace, TRACE_START,
			   "SIGHUP: there are no CHAP secrets to read again; "
			   "changed options need a restart");
		return;
	}
	if (chap_read(&d->options, &chap)) {
		trace_emit(&d->log.trace, TRACE_CONFIG,
			   "SIGHUP: the CHAP secrets are unchanged");
	} else {
		for (unsigned i = 0; i < d->nworkers; i++)
			sent &= send_chap(&d->workers[i], &chap);
		trace_emit(&d->log.trace, sent ? TRACE_START : TRACE_RESOURCE,
			   sent ? "SIGHUP: new logins use the CHAP secrets "
				  "that were read again"
				: "SIGHUP: out of memory: some workers have "
				  "the CHAP secrets from before; repeat it");
	}
	explicit_bzero(&chap, sizeof(chap));
}
