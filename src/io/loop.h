/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.h: the inside of the event loop. Private to this room. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <liburing.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "io/io.h"

struct io_pool;

/* What a back end has to do. One table each, every entry filled. */
struct io_backend_ops {
	enum io_backend which;
	int (*init)(struct io_loop *l);
	void (*fini)(struct io_loop *l);
	/* begin: l's watches and files are put before the kernel. */
	int (*begin)(struct io_loop *l);
	/* has_events, without blocking and as cheaply as can be; after begin */
	bool (*has_events)(struct io_loop *l);
	/* wait: begin, wait, dispatch. Returns the number dispatched. */
	int (*wait)(struct io_loop *l, xtime timeout);
	int (*watch_add)(struct io_loop *l, struct io_watch *w);
	void (*watch_del)(struct io_loop *l, struct io_watch *w);
	void (*file)(struct io_loop *l, struct io_file_op *op);
	int (*fd)(const struct io_loop *l);
};

extern const struct io_backend_ops io_epoll_ops;
extern const struct io_backend_ops io_uring_ops;

/* A watch is known to the kernel by slot and generation, never by address, so
 * that an event which comes after io_watch_del hits nothing. */
struct io_slot {
	struct io_watch *w; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

#define IO_NO_SLOT   UINT32_MAX
#define IO_EPOLL_MAX 256
#define IO_RING_SIZE 512
#define IO_RING_CQ   4096
#define IO_POOL_MAX  16
#define IO_ARMED     0x80u /* io_watch.armed: with what, and that it is */

struct io_loop {
	const struct io_backend_ops *ops;
	xtime now;
	/* state of the turn */
	bool in_turn;
	bool hosted; /* io_loop_fd was asked for */
	/* spinning */
	xtime spin, last_event;
	/* timers, a binary heap from index 1 */
	struct io_timer **heap;
	size_t nheap, heap_room;
	struct list deferred;
	/* watches */
	struct io_slot *slot;
	uint32_t nslots, free_slot;
	struct list rearm; /* of io_watch.link */
	/* files */
	struct list files; /* of io_file_op.link: not yet submitted */
	unsigned nfiles;   /* in flight */
	struct io_pool *pool;
	/* other threads: written by any */
	_Atomic(struct io_post *) posts; /* newest first */
	atomic_bool woken;		 /* wake.fd was written */
	atomic_bool stopping;
	struct io_watch wake;
	/* back ends */
	struct {
		int fd;
		int nevents; /* fetched, not dispatched */
		struct epoll_event event[IO_EPOLL_MAX];
	} ep;
	struct {
		struct io_uring ring;
		bool enabled;
		bool deferred; /* IORING_SETUP_DEFER_TASKRUN */
	} ur;
};

/* loop.c: wakes the loop's thread; from any thread. */
void io_loop_wake(struct io_loop *l);
/* loop.c: something was begun outside of a turn; a host must be told. */
void io_loop_poke(struct io_loop *l);

/* watch.c */
uint64_t io_watch_key(const struct io_loop *l, const struct io_watch *w);
/* The key of w up to now hits nothing any more. */
void io_watch_new_key(struct io_loop *l, struct io_watch *w);
struct io_watch *io_watch_of_key(const struct io_loop *l, uint64_t key);
/* poll(2) bits, which are epoll's too. */
uint32_t io_watch_poll_mask(unsigned want);
unsigned io_watch_events(const struct io_watch *w, uint32_t poll_bits);

/* timer.c: fires what is due; returns how many. */
int io_timers_fire(struct io_loop *l);

/* pool.c: threads for calls that block. */
struct io_pool *io_pool_new(struct io_loop *l);
void io_pool_submit(struct io_loop *l, struct io_file_op *op);
/* Completes what the threads have done. */
void io_pool_reap(struct io_loop *l);
void io_pool_free(struct io_pool *p);
/* Ends op on the loop's thread. */
void io_file_complete(struct io_loop *l, struct io_file_op *op, int64_t result);

#endif
