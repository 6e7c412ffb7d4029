/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: exports of NBD servers as backstores, by libnbd: what nbdkit,
 * qemu-nbd and others serve. Private to this room.
 *
 *   open.c   opens an export; the table that the module exports
 *   link.c   the thread that has the connection; connecting again
 *   io.c     requests
 *
 * Threads: the connection of a store belongs to the thread of link.c. A worker
 * puts its requests on a queue; the thread posts the ends to the loops of the
 * workers.
 */
#ifndef BACKSTORE_NBD_INTERNAL_H
#define BACKSTORE_NBD_INTERNAL_H

#include <assert.h>
#include <libnbd.h>
#include <pthread.h>
#include <stdbool.h>

#include "backstore/module.h"
#include "base/bytes.h"
#include "base/list.h"
#include "io/io.h"

struct bsnbd {
	struct bs bs;
	/* read-only after open */
	char *uri;
	bool can_flush, can_fua, can_zero, can_extents;
	uint64_t piece; /* bytes of data in one request of NBD at most */
	uint32_t grain; /* bytes; offsets and lengths are multiples */
	void (*say)(const char *sentence);
	struct io_loop **loops;
	unsigned nloops;
	pthread_t thread;
	int wake; /* eventfd: the queue has a step, or stop is set */
	/* any thread, under the lock */
	pthread_mutex_t lock;
	struct list queue; /* of bsnbd_step.link */
	bool stop;
	uint64_t size_now; /* of the export as last connected */
	/* the thread's own */
	struct nbd_handle *h;
	struct list waiting; /* steps that wait for a connection */
	struct list more;    /* steps with pieces left to issue */
	xtime lost;	     /* when the connection was lost; 0: it is there */
	/* the server came back with another export: nothing waits */
	bool is_other;
	xtime again; /* when to connect again */
};

/* Progress of a request; in bs_req.priv. */
struct bsnbd_step {
	struct bsnbd *store;
	struct bs_req *req;
	struct list link;
	uint64_t at;	  /* bytes of the request that are done */
	uint64_t now;	  /* bytes of the pieces that are in progress */
	uint64_t got;	  /* bytes of a read that the server has sent */
	unsigned pending; /* pieces in progress, and 1 while they are made */
	int error;	  /* the first one; Exxx */
	void *bounce;	  /* NULL: the memory of the request is used */
	struct io_post post;
};

static_assert(sizeof(struct bsnbd_step) <= BS_REQ_PRIVATE, "fits a request");

/* link.c: bsnbd_configure makes a handle that asks for all that this room uses;
 * NULL: no memory. */
struct nbd_handle *bsnbd_configure(void);
/* bsnbd_start starts the thread; bsnbd_stop ends it and the connection. No request
 * is in progress. */
int bsnbd_start(struct bsnbd *n);
void bsnbd_stop(struct bsnbd *n);
/* bsnbd_enqueue gives a step to the thread. Any worker. */
void bsnbd_enqueue(struct bsnbd_step *s);

/* io.c, on the thread: bsnbd_issue makes the next pieces of a step and gives them
 * to the handle. Not from a callback of libnbd, which holds the handle's lock. */
void bsnbd_issue(struct bsnbd_step *s);
/* bsnbd_end ends a step with an error (Exxx) or 0. */
void bsnbd_end(struct bsnbd_step *s, int error);

extern const struct bs_ops bsnbd_ops;

static inline struct bsnbd *bsnbd_of(struct bs *b)
{
	return container_of(b, struct bsnbd, bs);
}

#endif
