/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wake.c: functions that the other files of this room call, and that call none
 * of them: the clock, waking the loop, completing a file operation.
 */
#include <time.h>
#include <unistd.h>

#include "io/loop.h"

xtime io_now_exact(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * XTIME_S + ts.tv_nsec;
}

void io_loop_wake(struct io_loop *l)
{
	uint64_t one = 1;

	/* A full counter wakes the loop as well: ignore the result. */
	if (!atomic_exchange(&l->woken, true) &&
	    write(l->wake.fd, &one, sizeof(one)) < 0)
		return;
}

void io_loop_poke(struct io_loop *l)
{
	if (l->hosted && !l->in_turn)
		io_loop_wake(l);
}

bool io_file_is_threaded(const struct io_file_op *op)
{
	return !op->direct ||
	       (op->opcode != IO_FILE_READ && op->opcode != IO_FILE_WRITE);
}

void io_file_complete(struct io_loop *l, struct io_file_op *op, int64_t result)
{
	l->nfiles--;
	l->nthreaded -= io_file_is_threaded(op);
	op->done(op, result);
}
