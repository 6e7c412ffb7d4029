/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dir_store.h: a store of the record of a unit (cluster/store.h) in a directory that
 * several iserd of one machine share.
 */
#ifndef DAEMON_CLUSTER_DIR_STORE_H
#define DAEMON_CLUSTER_DIR_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cluster/store.h"

struct io_loop;

/*
 * dir_store_open opens the store of the unit with this UUID for the gateway `id`, in the
 * folder UUID of `directory`, which it makes if it does not exist. loop: that of
 * worker 0, borrowed until the store is closed. data: the open file that the I/O of the
 * unit uses, borrowed for the call; -1: none, so that a fence does not wait for I/O in
 * progress. uid, gid: the user that iserd runs as.
 * May block; on the thread of the loop, or before the loop runs. NULL: why (size bytes) has
 * a sentence.
 */
struct cluster_store *
dir_store_open(struct io_loop *loop, const char *directory,
	       const uint8_t uuid[16], int data, const char *id,
	       const struct cluster_store_events *events, uid_t uid, gid_t gid,
	       char *why, size_t size);

#endif
