/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pace.h: work for administrators and monitors on a worker that also serves initiators: each kind
 * of it may use a part of the worker's time, so that requests in a row, however many, leave
 * the rest to the initiators. On the thread of the loop only.
 */
#ifndef DAEMON_PROCESS_PACE_H
#define DAEMON_PROCESS_PACE_H

#include "io/io.h"

/* Time that may be used: 1/part of what passes, at most burst at once. It may become negative,
 * since a piece of work is not interrupted, but not by more than PACE_DEBT bursts: after one
 * piece that took seconds, as the change of thousands of units does, the next one waits for less
 * than a second, or the client would take the daemon for one that hangs. */
#define PACE_DEBT 5

struct credit {
	xtime burst, left, at;
	unsigned part;
};

/* pace_may returns whether there is time to use. The first call gives the burst. */
bool pace_may(struct credit *c, xtime now);
/* pace_due returns when there will be time to use, after pace_may has returned false. */
xtime pace_due(const struct credit *c, xtime now);
/* pace_use notes that this time was used. */
void pace_use(struct credit *c, xtime took);

struct pace {
	struct io_loop *loop;
	struct credit credit;
	void (*run)(struct pace *p);
	struct io_defer later;
	struct io_timer wait;
	bool is_running, is_asked;
};

/* pace_init: run carries out a piece of the work, and asks again if there is more. */
void pace_init(struct pace *p, struct io_loop *loop, const struct credit *c,
	       void (*run)(struct pace *p));
/* pace_ask: run is called when the worker has served what else there is, as soon as there is
 * time to use. */
void pace_ask(struct pace *p);
/* pace_end: run is not called any more. */
void pace_end(struct pace *p);

#endif
