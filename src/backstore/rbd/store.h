/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h: the record of an image that gateways share (cluster/store.h). Private to
 * this room.
 *
 * Two objects beside the image: openiser.ID has the record with its head
 * (cluster/blob.h), openiser.ID.gateways is watched by all gateways, and its omap names
 * the gateway of each client. ID is the identifier of the image.
 *
 * Threads: worker 0 has the members, except those that the mutex guards. librados calls
 * completions and notifications on threads of its own. Calls that block run on the
 * thread of the store, one after the other; it also closes the store.
 */
#ifndef BACKSTORE_RBD_STORE_H
#define BACKSTORE_RBD_STORE_H

#include "backstore/rbd/internal.h"
#include "cluster/store.h"

#define STORE_NOTED   64u
#define STORE_CLIENT  40u
#define STORE_CLIENTS 256u

/* For what the gateways keep beside the image, which is little: a pool without room does
 * not keep them from a hand-over or from a reservation. */
#define STORE_WRITE LIBRADOS_OPERATION_FULL_FORCE

struct bsrbd_store;

/* What librados or the thread of the store does; posted to worker 0 at its end. */
struct bsrbd_call {
	struct bsrbd_store *s;
	struct list link; /* store->calls, on worker 0 */
	struct list job;  /* store->jobs, with the mutex */
	struct io_post post;
	/* on worker 0, unless the store is closed; the call is freed afterwards */
	void (*done)(struct bsrbd_call *c);
	int (*run)(struct bsrbd_call *c); /* on the thread of the store */
	int result;
	struct cluster_request *r; /* NULL: the request has ended */
	struct cluster_note *note; /* the same */
	bool notifies;
	/* read, swap */
	uint64_t version, next;
	uint8_t *blob;
	size_t len;
	int parts[2]; /* results of the parts of an operation */
	char whom[CLUSTER_ID_SIZE];
	/* notifications */
	struct io_timer timer;
	char *reply;
	size_t reply_len;
	char *data;
	uint64_t id, handle;
	char from[CLUSTER_ID_SIZE];
	char why[512]; /* a sentence for the log */
};

/* A notification that the unit has not acknowledged. */
struct bsrbd_noted {
	uint64_t cookie, id, handle;
};

struct bsrbd_store {
	struct cluster_store store;
	struct bsrbd *image;
	struct io_loop *loop;
	char header[160], record[160], gateways[176]; /* objects */
	char client[STORE_CLIENT];		      /* "client.4123" */
	struct list calls; /* bsrbd_call.link: in progress */
	/* no memory: cluster_request.link, cluster_note.link */
	struct list failed, failed_notes;
	struct io_post fail;
	bool failing;
	bool ended; /* closed, as worker 0 knows */
	uint64_t cookie;
	unsigned next_noted;
	struct bsrbd_noted noted[STORE_NOTED];
	bool told_fenced;
	/* of the thread of the store */
	pthread_t thread;
	uint64_t watch;
	bool has_watch;
	/* guards the members below; the only lock held, and briefly */
	pthread_mutex_t mutex;
	pthread_cond_t work;
	struct list jobs;
	unsigned refs;	   /* the thread, and the calls */
	unsigned busy;	   /* the calls that bsrbd_call_end has not seen */
	unsigned notifies; /* those of them that notify */
	bool closed, watch_lost;
};

/* store.c: bsrbd_call_new makes a call, NULL: out of memory. bsrbd_call_end posts it to
 * worker 0, or frees it if the store is closed. Any thread. */
struct bsrbd_call *bsrbd_call_new(struct bsrbd_store *s,
				  void (*done)(struct bsrbd_call *c));
void bsrbd_call_end(struct bsrbd_call *c);
/* bsrbd_call_fail ends c with a result later, on worker 0. */
void bsrbd_call_fail(struct bsrbd_call *c, int result);
/* bsrbd_store_fail_note ends n with ERR_NOMEM, later. */
void bsrbd_store_fail_note(struct bsrbd_store *s, struct cluster_note *n);
/* bsrbd_call_submit gives c to the thread of the store. */
void bsrbd_call_submit(struct bsrbd_call *c);
/* bsrbd_store_err maps 0 or -Exxx of librados to a result. */
int bsrbd_store_err(int err);
/* bsrbd_store_fenced: a call ended with ERR_TERMINATED; on worker 0. */
void bsrbd_store_fenced(struct bsrbd_store *s);
/* bsrbd_store_main is the thread of the store. */
void *bsrbd_store_main(void *arg);
extern const struct cluster_store_ops bsrbd_store_ops;

/* store_lock.c: on the thread of the store */
int bsrbd_store_take(struct bsrbd_call *c);
int bsrbd_store_give(struct bsrbd_call *c);
int bsrbd_store_fence(struct bsrbd_call *c);
/* bsrbd_store_earlier writes the names of other clients that have or had the name of this
 * gateway, and returns their number. Blocks. */
size_t bsrbd_store_earlier(struct bsrbd_store *s,
			   char names[STORE_CLIENTS][STORE_CLIENT]);

/* store_notes.c: bsrbd_store_watch begins to watch the gateways; on the thread of
 * the store, or before it runs. 0, or -Exxx. */
int bsrbd_store_watch(struct bsrbd_store *s);
void bsrbd_store_unwatch(struct bsrbd_store *s);
void bsrbd_store_notify(struct cluster_store *store, struct cluster_note *n);
void bsrbd_store_ack(struct cluster_store *store, uint64_t cookie);

static inline struct bsrbd_store *bsrbd_store_of(struct cluster_store *store)
{
	return container_of(store, struct bsrbd_store, store);
}

#endif
