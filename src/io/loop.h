/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.h: internals of the event loop. Private to this room. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <liburing.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "io/io.h"

struct io_pool;
struct io_aio;

/* The interface of a back end. Every entry is filled. */
struct io_backend_ops {
	enum io_backend which;
	bool polls_freely; /* has_events makes no system call */
	int (*init)(struct io_loop *l);
	void (*fini)(struct io_loop *l);
	/* begin passes changed watches and new file operations to the
	 * kernel. */
	int (*begin)(struct io_loop *l);
	/* has_events polls without blocking, as cheaply as possible; only after
	 * begin. */
	bool (*has_events)(struct io_loop *l);
	/* wait: begin, then wait, then dispatch. Returns the number of events
	 * that it dispatched, or -Exxx. */
	int (*wait)(struct io_loop *l, xtime timeout);
	int (*watch_add)(struct io_loop *l, struct io_watch *w);
	void (*watch_del)(struct io_loop *l, struct io_watch *w);
	void (*file)(struct io_loop *l, struct io_file_op *op);
	int (*fd)(const struct io_loop *l);
};

extern const struct io_backend_ops io_epoll_ops;
extern const struct io_backend_ops io_uring_ops;

/* The kernel knows a watch by slot and generation, never by address: an event
 * that arrives after io_watch_del finds no watch. */
struct io_slot {
	struct io_watch *w; /* NULL: the slot is free */
	uint32_t generation;
	uint32_t next_free;
};

#define IO_NO_SLOT   UINT32_MAX
#define IO_EPOLL_MAX 256
#define IO_RING_SIZE 512
#define IO_RING_CQ   4096
#define IO_POOL_MAX  16
/* io_watch.armed: the watch is armed, for the other bits */
#define IO_ARMED 0x80u

struct io_loop {
	const struct io_backend_ops *ops;
	xtime now;
	/* the turn */
	bool in_turn;
	bool hosted; /* io_loop_fd was called: the host polls */
	struct {
		xtime time, last_event;
		/* the watch that alone had events in the last wait; NULL */
		struct io_watch *hot;
		bool received; /* hot has received in this turn */
		unsigned attempts;
	} spin;
	/* timers, a binary heap from index 1 */
	struct io_timer **heap;
	size_t nheap, heap_room;
	struct { /* late timers wait until then; 0: none is late */
		xtime until, quiet_until, last_turn;
	} drain;
	struct list deferred;
	struct list given_way; /* of io_defer.link, first come first */
	/* watches */
	struct io_slot *slot;
	uint32_t nslots, free_slot;
	struct list rearm; /* of io_watch.link */
	/* files */
	/* of io_file_op.link: the kernel does not have them yet */
	struct list files;
	unsigned nfiles;    /* in progress */
	unsigned nthreaded; /* of these, those that threads may carry out */
	struct io_pool *pool;
	cpu_set_t cpus; /* of the thread that made the loop: for those threads */
	/* written by any thread */
	_Atomic(struct io_post *) posts; /* newest first */
	atomic_bool woken;		 /* wake.fd has been written */
	atomic_bool stopping;
	struct io_watch wake;
	/* back ends */
	struct {
		int fd;
		int nevents; /* fetched, not yet dispatched */
		struct epoll_event event[IO_EPOLL_MAX];
		struct io_aio *aio; /* NULL: not needed so far */
		bool no_aio;	    /* this machine has none */
	} ep;
	struct {
		struct io_uring ring;
		bool enabled;
		bool deferred; /* IORING_SETUP_DEFER_TASKRUN */
	} ur;
};

/* wake.c: io_loop_wake makes the loop's current or next wait return. Any thread. */
void io_loop_wake(struct io_loop *l);
/* io_loop_poke: an operation started outside of a turn; wakes a host that polls
 * io_loop_fd. */
void io_loop_poke(struct io_loop *l);

/* io_watch_key gives the value by which the kernel knows w. The two low bits
 * are 0: the back end uses them. */
uint64_t io_watch_key(const struct io_loop *l, const struct io_watch *w);
/* io_watch_new_key: the previous key of w no longer finds w. */
void io_watch_new_key(struct io_loop *l, struct io_watch *w);
/* io_watch_of_key finds a watch; NULL: the key is stale. */
struct io_watch *io_watch_of_key(const struct io_loop *l, uint64_t key);
/* io_watch_poll_mask gives the poll(2) bits of IO_* bits; epoll uses the
 * same. */
uint32_t io_watch_poll_mask(unsigned want);
/* io_watch_events gives the IO_* bits that w wants of poll(2) bits. */
unsigned io_watch_events(const struct io_watch *w, uint32_t poll_bits);

/* io_spin polls, and lets the hot watch receive, for as long as events are
 * likely. Returns the rest of timeout; 0: there are events, or timeout has
 * passed. It sets spin.received if the hot watch received. */
xtime io_spin(struct io_loop *l, xtime timeout);
/* io_spin_saw: w has these events; alone: no other watch has. */
void io_spin_saw(struct io_loop *l, struct io_watch *w, unsigned events,
		 bool alone);
/* io_spin_forget: w is removed. */
void io_spin_forget(struct io_loop *l, const struct io_watch *w);

/* io_timers_fire calls the timers that are due; returns how many. */
int io_timers_fire(struct io_loop *l);

/* io_pool_new: no thread starts before the first io_pool_submit. NULL: out of
 * memory. */
struct io_pool *io_pool_new(struct io_loop *l);
/* io_pool_submit: a helper thread carries op out; io_pool_reap completes it. */
void io_pool_submit(struct io_loop *l, struct io_file_op *op);
/* io_pool_reap completes the operations that the helper threads have
 * finished. */
void io_pool_reap(struct io_loop *l);
/* io_pool_free waits for all operations, completes them, and ends the
 * threads. */
void io_pool_free(struct io_pool *p);
/* io_aio_takes: the asynchronous I/O of Linux carries op out; false: a helper
 * thread must. io_aio_begin passes the new operations to the kernel. */
bool io_aio_takes(struct io_loop *l, struct io_file_op *op);
void io_aio_begin(struct io_loop *l);
void io_aio_fini(struct io_loop *l);
/* io_file_is_threaded: a thread of this process or of the kernel carries op out, which needs a
 * CPU: all but transfers with O_DIRECT. */
bool io_file_is_threaded(const struct io_file_op *op);
/* io_file_complete calls op->done. Only on the loop's thread. */
void io_file_complete(struct io_loop *l, struct io_file_op *op, int64_t result);

#endif
