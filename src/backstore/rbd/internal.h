/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: images of Ceph RBD as backstores, by librbd. Private to this room.
 *
 *   spec.c      the text of an image
 *   cluster.c   connections to clusters, which images share; the fence of others
 *   lock.c      the exclusive lock of an image
 *   open.c      opens an image; the table that the module exports
 *   io.c        requests
 *   space.c     the space that an image takes; df.c reads what a monitor says
 *   store.c     the record of an image that gateways share: requests, the end
 *   store_open.c  opens such a record
 *   store_lock.c  its lock and the fence
 *   store_notes.c  its notifications
 *
 * Threads: librbd calls completions on threads of its own; io.c posts each to
 * the loop of the request's worker. Calls of librbd that may block run on
 * helper threads of that loop.
 */
#ifndef BACKSTORE_RBD_INTERNAL_H
#define BACKSTORE_RBD_INTERNAL_H

#include <pthread.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include <stdarg.h>
#include <stdbool.h>

#include "backstore/module.h"
#include "backstore/rbd/spec.h"
#include "base/bytes.h"
#include "base/list.h"
#include "io/io.h"

struct bsrbd_cluster;

/* The record of an image that gateways share. */
enum bsrbd_phase {
	BSRBD_NO_STORE,
	BSRBD_STORE,
	/* closed; the cluster may call back for notifications that the other gateways
	 * have not answered */
	BSRBD_NOTIFIES,
};

/* A number of bytes, and when it was found; 0: never. */
struct bsrbd_figure {
	uint64_t value;
	xtime at;
};

/* Read-only after open, so that every worker may use it. */
struct bsrbd {
	struct bs bs;
	struct bsrbd_cluster *cluster;
	rados_ioctx_t pool;
	rbd_image_t image;
	uint64_t features; /* RBD_FEATURE_* */
	/* The image's exclusive lock is ours. Changed by one thread at a time; with
	 * `clustered` any worker reads it, atomic. */
	bool locked;
	bool clustered;
	void (*say)(const char *sentence);
	struct io_loop **loops;
	unsigned nloops;
	/* guards the members below; the end of the image waits for phase */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum bsrbd_phase phase;
	/* the space of its objects; what the pool can take */
	struct bsrbd_figure used, room;
};

/* The store that is being opened, and the buffer for the error message. */
struct bsrbd_opening {
	const struct bs_module_config *cfg;
	struct bsrbd_spec spec;
	struct bsrbd *r;
	char *why;
	size_t why_size;
};

/* open.c: bsrbd_refuse writes the message, and returns err. */
__attribute__((format(printf, 3, 4))) int
bsrbd_refuse(struct bsrbd_opening *o, int err, const char *format, ...);

/*
 * cluster.c: bsrbd_cluster_get connects to the cluster that the spec names, or
 * takes a reference on such a connection. Images that gateways share have other
 * connections than the rest, because a fence ends the whole connection. 0, or -Exxx
 * after bsrbd_refuse.
 */
int bsrbd_cluster_get(struct bsrbd_opening *o);
/* bsrbd_cluster_put: the last reference ends the connection. */
void bsrbd_cluster_put(struct bsrbd_cluster *c);
/* bsrbd_cluster_fenced: a request ended with -ESHUTDOWN, or none ends any more. Images that are opened from now
 * on get another connection. Any thread. */
void bsrbd_cluster_fenced(struct bsrbd_cluster *c);
/* bsrbd_cluster_fence has the cluster refuse all further requests of the client at
 * `address`. The first fence of a client is one for all images. Blocks. 0, or -Exxx. */
int bsrbd_cluster_fence(struct bsrbd_cluster *c, const char *address);
/* bsrbd_cluster_gone returns whether that client is known as one that does not answer; with
 * `note` it is from now on. */
bool bsrbd_cluster_gone(struct bsrbd_cluster *c, const char *client, bool note);
rados_t bsrbd_cluster_rados(const struct bsrbd_cluster *c);
/* bsrbd_cluster_fsid returns the cluster's UUID as text. */
const char *bsrbd_cluster_fsid(const struct bsrbd_cluster *c);

/*
 * lock.c: bsrbd_lock takes the exclusive lock, so that no other client can write
 * to the image; with cfg->may_wait it waits for a client that is gone. 0, or -Exxx
 * after bsrbd_refuse.
 */
int bsrbd_lock(struct bsrbd_opening *o);

/* space.c: bsrbd_space measures as BS_SPACE does. Blocks. 0, or -Exxx. */
int bsrbd_space(struct bsrbd *r, uint64_t *used, uint64_t *left);

/* open.c: bsrbd_close is bs_ops.close. */
void bsrbd_close(struct bs *b);

/* store_open.c: bsrbd_store_open is bs_module.cluster. */
struct cluster_store *bsrbd_store_open(struct bs *b, const char *id,
				       const struct cluster_store_events *ev,
				       int *err, char *why, size_t size);

extern const struct bs_ops bsrbd_ops;

static inline struct bsrbd *bsrbd_of(struct bs *b)
{
	return container_of(b, struct bsrbd, bs);
}

#endif
