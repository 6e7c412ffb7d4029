/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mailbox.h: messages to a worker (struct dev_msg, of target and device) from
 * any thread; they run in their order on the worker's loop.
 */
#ifndef DAEMON_PROCESS_MAILBOX_H
#define DAEMON_PROCESS_MAILBOX_H

#include <pthread.h>

#include "device/env.h"
#include "io/io.h"

struct mailbox {
	struct io_loop *loop;
	struct io_post post;
	pthread_mutex_t lock; /* guards what follows; a leaf lock */
	struct dev_msg *first, **last;
	bool posted;
};

/* mailbox_init prepares an empty mailbox. loop is the worker's, borrowed until
 * mailbox_fini. */
void mailbox_init(struct mailbox *m, struct io_loop *loop);
/* mailbox_fini frees the mailbox; no thread may use it any more. Messages that
 * did not run are left to their owners. */
void mailbox_fini(struct mailbox *m);
/* mailbox_put sends msg, which is borrowed until it runs. From any thread. */
void mailbox_put(struct mailbox *m, struct dev_msg *msg);

#endif
