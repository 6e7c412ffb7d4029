/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h: the memory of a command: its session's share, and its buffers. */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#include "device/unit/unit.h"

/* dev_memory_begin gives the prepared command its share of memory, with t->out if the
 * command has data-out; otherwise the command waits (t->waits). ERR_BUSY: no memory. */
int dev_memory_begin(struct dev_task *t);
/* dev_memory_give_up ends the wait of a command that will not execute. */
void dev_memory_give_up(struct dev_task *t);
/* dev_memory_end returns all memory of the command. A second call does nothing. A command
 * whose data the backstore lends has none, and needs no call. */
void dev_memory_return(struct dev_task *t);
static inline void dev_memory_end(struct dev_task *t)
{
	if (t->waits || t->own.mem.loan.is || t->own.mem.buf ||
	    t->own.mem.aux || t->own.mem.pi ||
	    t->own.share.charge.part != SHARE_NOTHING ||
	    t->own.share.burst.part != SHARE_NOTHING)
		dev_memory_return(t);
}

/* dev_memory_get returns one more buffer for a command in execution; NULL: no
 * memory. */
void *dev_memory_get(struct dev_task *t, size_t len);
/* dev_memory_get_late returns a buffer for a command that has none, and charges it to
 * its session now. NULL: the session may not have it now, or no memory.
 * dev_memory_put_late takes it back; otherwise dev_memory_end does, as mem.buf. */
void *dev_memory_get_late(struct dev_task *t, size_t len);
void dev_memory_put_late(struct dev_task *t, void *buf, size_t len);

#endif
