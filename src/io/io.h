/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * io.h: one event loop per worker: sockets by readiness, files by completion,
 * timers, messages from other threads. Two back ends implement the same
 * interface: io_uring, and epoll with asynchronous I/O and a small pool of
 * helper threads for files where io_uring is forbidden (in many containers). Both serve sockets with
 * plain recvmsg and sendmsg: once requests are batched, io_uring gains nothing
 * on sockets.
 *
 * Threads: only the thread that runs the loop may call these functions;
 * io_loop_post and io_loop_stop may be called from any thread.
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

/* io_loop_new makes a loop. NULL on failure, with -Exxx in *err. The function
 * does not read the environment. */
struct io_loop *io_loop_new(enum io_backend backend, int *err);
/* io_loop_free: the caller has removed every watch, and every file operation
 * has completed, except IO_FILE_CALLs: io_loop_free waits for those and calls
 * their done. */
void io_loop_free(struct io_loop *l);
enum io_backend io_loop_backend(const struct io_loop *l);
const char *io_backend_name(enum io_backend b);

/* io_loop_run runs turns until io_loop_stop is called. Returns 0 or -Exxx. */
int io_loop_run(struct io_loop *l);
/* io_loop_turn runs one turn and waits for max_wait at most (0: not at all).
 * Returns the number of events that it handled, or -Exxx. */
int io_loop_turn(struct io_loop *l, xtime max_wait);
/* io_loop_stop ends io_loop_run. Any thread or signal handler may call it. */
void io_loop_stop(struct io_loop *l);
/*
 * io_loop_fd: for a host with an event loop of its own. The descriptor polls
 * readable when io_loop_turn has events to handle; the host also calls
 * io_loop_turn when io_loop_next_timer is due (XTIME_NEVER: no timer is set; work that
 * gave way is due at once).
 * After the first call of io_loop_fd, an operation that starts outside of a
 * turn makes the descriptor readable as well.
 */
int io_loop_fd(struct io_loop *l);
xtime io_loop_next_timer(const struct io_loop *l);

/* io_now is the time at the start of this turn; io_now_exact reads the
 * clock. */
xtime io_now(const struct io_loop *l);
xtime io_now_exact(void);

/*
 * The threads that carry out file operations of the loop, also those of the kernel, use the CPUs
 * of the thread that made it, also if the thread that runs the loop uses fewer of them later.
 *
 * io_loop_set_spin: before the loop blocks, it polls until spin has passed
 * since the last event, except while threads carry out file operations. 0, the default: it
 * blocks at once.
 */
void io_loop_set_spin(struct io_loop *l, xtime spin);
/* io_loop_spins: whether the loop polls before it blocks. */
bool io_loop_spins(const struct io_loop *l);

/* ---- sockets and other pollable fds, level-triggered ---- */

#define IO_IN  1u
#define IO_OUT 2u
#define IO_ERR 4u /* reported whether wanted or not */

struct io_watch {
	int fd;
	unsigned want; /* IO_IN | IO_OUT */
	void (*ready)(struct io_watch *w, unsigned events);
	/* NULL, or: receives if there is input, and returns whether there was.
	 * A loop that spins calls it instead of asking the kernel first. */
	bool (*attempt)(struct io_watch *w);
	/* private to the loop */
	struct list link; /* io_loop.rearm: watches to arm again */
	unsigned armed;
	unsigned slot;
	bool in_loop;
};

int io_watch_add(struct io_loop *l, struct io_watch *w);
/* io_watch_want sets the events to wait for. 0: errors only. */
void io_watch_want(struct io_loop *l, struct io_watch *w, unsigned want);
/* io_watch_del: the loop does not call ready any more, and the caller may free
 * w. Close the descriptor after this call. */
void io_watch_del(struct io_loop *l, struct io_watch *w);
/* io_watch_is_polled: the loop spins, and polls this watch alone by its attempt. */
bool io_watch_is_polled(const struct io_loop *l, const struct io_watch *w);

/* ---- timers ---- */

struct io_timer {
	xtime at;
	void (*fire)(struct io_timer *t);
	/* private to the loop */
	size_t heap_index; /* 0 = not set */
};

/* io_timer_set sets or moves t; XTIME_NEVER clears it. Returns 0 or -ENOMEM. */
int io_timer_set(struct io_loop *l, struct io_timer *t, xtime at);
void io_timer_clear(struct io_loop *l, struct io_timer *t);

/* ---- end of turn: output of a turn is collected and sent once ---- */

struct io_defer {
	void (*run)(struct io_defer *d);
	struct list link; /* list_init it before first use */
};

/* io_loop_defer: the loop calls d->run once at the end of this turn, after all
 * input. A second call before that has no effect. A run may defer again, for
 * the same turn. */
void io_loop_defer(struct io_loop *l, struct io_defer *d);
void io_defer_cancel(struct io_defer *d);
/* io_loop_give_way: the loop calls d->run later, after all input and output of a turn, to go
 * on with work that takes long. All that gave way shares a short time of each turn, first
 * come, first served, so that the loop serves all others in between, however much it is. A
 * run takes a part of that time at most, and may give way again. io_defer_cancel ends it. */
void io_loop_give_way(struct io_loop *l, struct io_defer *d);

/* ---- calls from other threads ---- */

struct io_post {
	void (*run)(struct io_post *p);
	struct io_post *next; /* private to the loop */
};

/* io_loop_post: the loop's thread calls p->run; the loop borrows p until then.
 * Posts of one thread keep their order. */
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
	bool direct;	   /* READ, WRITE: fd has O_DIRECT */
	struct iovec *iov; /* READ, WRITE; borrowed until done */
	unsigned niov;
	int64_t (*call)(struct io_file_op *op);
	/* done: result is the number of bytes moved, 0, or -Exxx. Never called
	 * from within io_file_submit. The loop reports a short transfer and
	 * does not retry it. */
	void (*done)(struct io_file_op *op, int64_t result);
	/* private to the loop */
	struct list link;
	int64_t result;
	struct io_loop *loop;
};

/* io_file_submit queues op. All operations of a turn go to the kernel together,
 * at its end. */
void io_file_submit(struct io_loop *l, struct io_file_op *op);

/* ---- random bytes ---- */

/* io_random fills p with n unpredictable bytes from the kernel. Any thread. arg
 * is unused: it makes the function fit the callbacks of pure rooms. */
void io_random(void *arg, uint8_t *p, size_t n);

/* ---- small files of /sys and /etc ---- */

/* io_read_text reads the first size bytes of a file and returns how many there
 * are; 0: none, or the file cannot be read. It adds no NUL. Any thread. */
size_t io_read_text(const char *path, void *text, size_t size);
/* io_read_number reads the decimal number that a file begins with; false: there is
 * none, or the file cannot be read. Any thread. */
bool io_read_number(const char *path, unsigned long *n);

#endif
