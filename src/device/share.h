/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share.h: how much of a worker's buffer memory each session may hold, and which
 * session has the turn. share.h only counts; dev_env allocates the memory.
 *
 * A worker's memory has four parts:
 *   own      SHARE_OWN bytes for each session, that no other session can take
 *   common   one budget for all sessions. A session may take len more bytes if
 *            the bytes that it holds plus twice len are at most the free bytes: so
 *            at least as many bytes stay free as the latest session took
 *   burst    for unsolicited data of a command that has to wait. When this part
 *            is used up, the target stops reading connections
 *   reserve  room for the largest command, for the session that has the turn
 *
 * Sessions that make no progress (a session that holds nothing while its next
 * command waits, or whose connection is not read) get the turn one after the
 * other. The session with the turn may use the reserve, and exceed the burst part
 * by the unsolicited data that its command window permits: so the target reads the
 * data of its older commands, which come later on the same connection, and executes
 * all its commands in the end. Its window does not move during the turn, so that
 * the turn ends. If the session did not exceed the burst part and its connection is
 * read, the turn ends when the session has used as many bytes as the reserve holds;
 * then the session goes after all other sessions.
 *
 * The commands of one session get memory in their order, the sessions in turn.
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

/* The memory that one command has. All zero: none. */
struct share_charge {
	size_t len;
	enum share_part part;
	bool beyond; /* SHARE_OF_BURST: exceeds the part */
};

/* A command that waits. */
struct share_wait {
	struct list link; /* share_owner.waiting or .held, share.granted */
	struct share_charge charge;
	bool granted; /* share_serve will call go */
	/* Called when the command has its charge. May cancel other waits. */
	void (*go)(struct share_wait *w);
};

struct share_owner {
	size_t used;	       /* own, common and reserve */
	size_t beyond;	       /* of bursts that exceed the part */
	struct list waiting;   /* share_wait.link, in order */
	struct list held;      /* share_wait.link of bursts, in order */
	struct list link;      /* share.waiting, while `waiting` is not empty */
	struct list held_link; /* share.held, while `held` is not empty */
};

struct share {
	/* constant; common 0: no limits, no command waits */
	size_t common, reserve, burst;
	/* in use */
	size_t common_out, reserve_out, burst_out;
	struct list waiting, held; /* owners whose commands wait */
	struct list granted;
	struct share_owner *turn; /* NULL: no session needs the turn */
	size_t turn_len;	  /* of the reserve, in this turn */
	/* for the caller: a call of share_serve is pending */
	bool serve_due;
};

/* share_init and share_owner_init initialise *s and *o, which own no memory. */
void share_init(struct share *s, size_t common, size_t reserve, size_t burst);
void share_owner_init(struct share_owner *o);

/* share_take charges len bytes (at most the reserve) to o in *c. False:
 * earlier commands of o wait, or there is no room; *c is unchanged. */
bool share_take(struct share *s, struct share_owner *o, struct share_charge *c,
		size_t len);
/* share_wait_for queues w for len bytes, which share_take refused; a later
 * share_serve calls w->go. */
void share_wait_for(struct share *s, struct share_owner *o,
		    struct share_wait *w, size_t len);
/* share_burst charges len bytes of the burst part to o in *c. False: no room
 * for o. */
bool share_burst(struct share *s, struct share_owner *o, struct share_charge *c,
		 size_t len);
/* share_force_burst charges len bytes to o in *c, even beyond the burst
 * part: for data that the target cannot refuse. */
void share_force_burst(struct share *s, struct share_owner *o,
		       struct share_charge *c, size_t len);
/* share_hold queues w for len bytes, which share_burst refused. */
void share_hold(struct share *s, struct share_owner *o, struct share_wait *w,
		size_t len);
/* share_cancel removes w from its queue, or returns the bytes that w was
 * granted. No effect on a w that is not waiting. */
void share_cancel(struct share *s, struct share_owner *o, struct share_wait *w);
/* share_put returns the bytes of *c. True: share_serve may have bytes for a
 * waiting command. */
bool share_put(struct share *s, struct share_owner *o, struct share_charge *c);
/* share_in_the_way returns whether other sessions wait for memory while o
 * holds more than its own part, or has the turn. */
bool share_in_the_way(const struct share *s, const struct share_owner *o);
/* share_serve charges free bytes to waiting commands and calls their go. */
void share_serve(struct share *s);

#endif
