/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * io.h: one event loop per worker: sockets by readiness, files by completion,
 * timers, calls from other threads. Two back ends behind one face: io_uring,
 * and epoll with a small pool of threads for files where io_uring is
 * forbidden (containers often do). Sockets use plain recvmsg/sendmsg in both:
 * once requests are batched io_uring gains nothing there.
 *
 * Threads: everything here belongs to the thread that runs the loop, except
 * io_loop_post and io_loop_stop.
 */
#ifndef IO_IO_H
#define IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/xtime.h"

enum io_backend {
	IO_AUTO, /* io_uring if this machine permits it, else epoll */
	IO_URING,
	IO_EPOLL,
};

struct io_loop;

/* io_loop_new: *err is -Exxx on failure (NULL). The environment is not
 * read here. */
struct io_loop *io_loop_new(enum io_backend backend, int *err);
/* io_loop_free: nothing may be watched or in flight any more, but for
 * IO_FILE_CALLs: it waits for them and calls their done. */
void io_loop_free(struct io_loop *l);
enum io_backend io_loop_backend(const struct io_loop *l);
const char *io_backend_name(enum io_backend b);

/* io_loop_run turns until io_loop_stop. Returns 0 or -Exxx. */
int io_loop_run(struct io_loop *l);
/* io_loop_turn: one turn; waits at most max_wait (0: not at all). Returns how
 * many things happened or -Exxx. */
int io_loop_turn(struct io_loop *l, xtime max_wait);
/* io_loop_stop: from any thread or a signal handler. */
void io_loop_stop(struct io_loop *l);
/*
 * For hosts with a loop of their own: an fd that polls readable when
 * io_loop_turn has something to do, and when the nearest timer is due
 * (XTIME_NEVER: none set). Once the fd was asked for, whatever is begun outside of a
 * turn makes it readable too.
 */
int io_loop_fd(struct io_loop *l);
xtime io_loop_next_timer(const struct io_loop *l);

/* The time at the start of this turn; io_now_exact asks the clock. */
xtime io_now(const struct io_loop *l);
xtime io_now_exact(void);

/*
 * io_loop_set_spin: before it blocks, the loop polls for up to this long after
 * the last event (0, the default: blocks at once).
 */
void io_loop_set_spin(struct io_loop *l, xtime spin);

/* ---- sockets and other pollable fds, level-triggered ---- */

#define IO_IN  1u
#define IO_OUT 2u
#define IO_ERR 4u /* always reported */

struct io_watch {
	int fd;
	unsigned want; /* IO_IN | IO_OUT */
	void (*ready)(struct io_watch *w, unsigned events);
	/* the loop's own */
	struct list link; /* on the list of those to arm anew */
	unsigned armed;
	unsigned slot;
	bool in_loop;
};

int io_watch_add(struct io_loop *l, struct io_watch *w);
/* io_watch_want changes what is waited for; 0 = nothing (but errors). */
void io_watch_want(struct io_loop *l, struct io_watch *w, unsigned want);
/* io_watch_del: ready is not called again; w may be freed at once. Close the
 * fd after it. */
void io_watch_del(struct io_loop *l, struct io_watch *w);

/* ---- timers ---- */

struct io_timer {
	xtime at;
	void (*fire)(struct io_timer *t);
	/* the loop's own */
	size_t heap_index; /* 0 = not set */
};

/* io_timer_set sets or moves t; XTIME_NEVER clears it. ERR: -ENOMEM. */
int io_timer_set(struct io_loop *l, struct io_timer *t, xtime at);
void io_timer_clear(struct io_loop *l, struct io_timer *t);

/* ---- end of turn: output of a turn is collected and sent once ---- */

struct io_defer {
	void (*run)(struct io_defer *d);
	struct list link; /* list_init it before first use */
};

/* io_loop_defer: run once at the end of this turn, after all input. A second
 * call before that changes nothing. A run may defer again: same turn. */
void io_loop_defer(struct io_loop *l, struct io_defer *d);
void io_defer_cancel(struct io_defer *d);

/* ---- calls from other threads ---- */

struct io_post {
	void (*run)(struct io_post *p);
	struct io_post *next; /* the loop's own */
};

/* io_loop_post: p->run is called on the loop's thread; p is borrowed until
 * then. Calls from one thread keep their order. */
void io_loop_post(struct io_loop *l, struct io_post *p);

/* ---- files: completion ---- */

enum io_file_opcode {
	IO_FILE_READ,
	IO_FILE_WRITE,
	IO_FILE_SYNC,	   /* fdatasync */
	IO_FILE_FALLOCATE, /* mode in flags */
	IO_FILE_CALL,	   /* call(op): any blocking call, on a helper thread */
};

struct io_file_op {
	enum io_file_opcode opcode;
	int fd;
	int flags; /* READ/WRITE: RWF_*; FALLOCATE: FALLOC_FL_* */
	uint64_t off, len;
	struct iovec *iov; /* READ, WRITE; borrowed until done */
	unsigned niov;
	int64_t (*call)(struct io_file_op *op);
	/* done: result is bytes moved, 0, or -Exxx. Never called from within
	 * io_file_submit. Short transfers are reported, not retried. */
	void (*done)(struct io_file_op *op, int64_t result);
	/* the loop's own */
	struct list link;
	int64_t result;
	struct io_loop *loop;
};

/* io_file_submit queues op; it goes to the kernel at the end of the turn with
 * all others. */
void io_file_submit(struct io_loop *l, struct io_file_op *op);

/* ---- chance ---- */

/* io_random: bytes that nobody can guess; any thread. arg is not looked at: it
 * fits where a pure room asks for chance. */
void io_random(void *arg, uint8_t *p, size_t n);

#endif
