/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flush.h: reports of failed flushes to the nexuses whose writes they may have lost.
 *
 * Linux reports a failed write-back to one caller and drops the data. The store
 * therefore counts failed flushes (bs_flush_failures), each write remembers the
 * number with which it began, and a nexus that has writes of an older number
 * gets MEDIUM ERROR, WRITE ERROR from its next flush or write with FUA.
 */
#ifndef DEVICE_FLUSH_H
#define DEVICE_FLUSH_H

#include "device/unit/unit.h"

/* dev_flush_begin notes the begin of t->req, which the caller then submits to the
 * backstore of lu. */
void dev_flush_begin(struct dev_task *t, struct dev_lu *lu);
/* dev_flush_end notes the end of t->req and returns the result for t: the result of
 * the backstore, or ERR_UNFLUSHED. */
int dev_flush_end(struct dev_task *t);
/* dev_flush_depart stores the writes of a nexus to one unit that may not be durable,
 * because the initiator may log in again and flush. No task of both is left. */
void dev_flush_depart(const struct dev_itl *i);

#endif
