/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share.h: how much of a worker's buffer memory each session may hold, and which
 * session has the turn. Numbers only: the memory itself comes from dev_env.
 *
 * A worker's memory has four parts:
 *   own      SHARE_OWN bytes for each session, that no other session can take
 *   common   one budget for all. A session may take len more bytes while what
 *            it holds plus twice len are at most the free bytes: so at least as
 *            much stays free as the latest session took
 *   burst    for unsolicited data of a command that has to wait. When it is used
 *            up, connections are not read any further
 *   reserve  room for the largest command, for the session that has the turn
 *
 * Sessions that make no progress (a session that holds nothing while its next
 * command waits, or whose connection is not read) get the turn one after the other.
 * The session with the turn may use the reserve, and exceed the burst part by what
 * its command window permits: so the data of its older commands, which come later on
 * the same connection, are read, and all its commands are executed in the end. Its
 * window does not move during the turn, so that the turn ends. If the session did
 * not exceed the burst part and its connection is read, the turn ends when the
 * session has used as many bytes as the reserve holds; then the session goes after
 * all other sessions.
 *
 * A session's commands are served in their order, sessions in turn.
 */
#ifndef DEVICE_SHARE_H
#define DEVICE_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

#define SHARE_OWN 65536u

enum share_part {
	SHARE_NOTHING,
	SHARE_OF_OWN,
	SHARE_OF_COMMON,
	SHARE_OF_RESERVE,
	SHARE_OF_BURST,
};

/* What one command has. All zero: nothing. */
struct share_charge {
	size_t len;
	enum share_part part;
	bool beyond; /* SHARE_OF_BURST: more than the part has */
};

/* A command that waits. */
struct share_wait {
	struct list link; /* share_owner.waiting or .held, share.granted */
	struct share_charge charge;
	bool granted; /* go will be called */
	/* The charge is the command's: it may cancel other waits. */
	void (*go)(struct share_wait *w);
};

struct share_owner {
	size_t used;	       /* own, common and reserve */
	size_t beyond;	       /* of bursts, more than the part has */
	struct list waiting;   /* share_wait.link, in order */
	struct list held;      /* the same, for bursts */
	struct list link;      /* share.waiting, while `waiting` is not empty */
	struct list held_link; /* share.held, while `held` is not empty */
};

struct share {
	/* constant; common 0: no limits, nothing waits */
	size_t common, reserve, burst;
	/* in use */
	size_t common_out, reserve_out, burst_out;
	struct list waiting, held; /* owners whose commands wait */
	struct list granted;
	struct share_owner *turn; /* NULL: no session needs it */
	size_t turn_len;	  /* of the reserve, in this turn */
	bool serve_due;		  /* the user's: share_serve will be called */
};

void share_init(struct share *s, size_t common, size_t reserve, size_t burst);
void share_owner_init(struct share_owner *o);

/* share_take gives o len bytes (at most the reserve) as *c, at once or not at
 * all: others of its commands wait, or there is no room. */
bool share_take(struct share *s, struct share_owner *o, struct share_charge *c,
		size_t len);
/* share_wait_for puts w in the queue for len bytes, which share_take refused;
 * w->go is called from a later share_serve. */
void share_wait_for(struct share *s, struct share_owner *o,
		    struct share_wait *w, size_t len);
/* share_burst: len bytes of the burst part; false: none are left for o. */
bool share_burst(struct share *s, struct share_owner *o, struct share_charge *c,
		 size_t len);
/* share_force_burst: in any case, where they can't be refused. */
void share_force_burst(struct share *s, struct share_owner *o,
		       struct share_charge *c, size_t len);
/* share_hold waits for what share_burst refused. */
void share_hold(struct share *s, struct share_owner *o, struct share_wait *w,
		size_t len);
/* share_cancel takes w off its queue, or gives back what it was granted. Of a
 * w that waits for nothing it does nothing. */
void share_cancel(struct share *s, struct share_owner *o, struct share_wait *w);
/* share_put gives *c back. True: share_serve may have something to give. */
bool share_put(struct share *s, struct share_owner *o, struct share_charge *c);
/* share_in_the_way: other sessions wait for memory, and o has more than its
 * own, or the turn. */
bool share_in_the_way(const struct share *s, const struct share_owner *o);
/* share_serve gives what there is to those who wait. */
void share_serve(struct share *s);

#endif
