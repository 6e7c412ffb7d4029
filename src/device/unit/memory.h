/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h: the memory of a command: its session's share, and its buffers. */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#include "device/unit/unit.h"

/* dev_memory_begin: the command is prepared. It has its share, and a buffer as
 * t->out if it has data-out, or waits (t->waits). ERR_BUSY: no memory. */
int dev_memory_begin(struct dev_task *t);
/* dev_memory_give_up: the command will not run: it waits no longer. */
void dev_memory_give_up(struct dev_task *t);
/* dev_memory_end gives all of it back. It may be called twice. */
void dev_memory_end(struct dev_task *t);
/* dev_memory_get: one more buffer of a command that runs. NULL: no memory. */
void *dev_memory_get(struct dev_task *t, size_t len);

#endif
