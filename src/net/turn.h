/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.h: the time that the input of one connection uses in a turn of the loop. A connection that
 * has used up its time goes on in later turns (io_loop_give_way), so that the connections of a
 * worker share time rather than bytes. Private to this room.
 */
#ifndef NET_TURN_H
#define NET_TURN_H

#include "io/io.h"

struct net_turn {
	struct io_loop *l;
	void (*go_on)(struct net_turn *t);
	struct io_defer later;
	struct io_timer debt; /* set: input waits until then */
	bool is_spent;
	xtime asked; /* when the time was counted last; 0: not yet in this turn */
	xtime used;	  /* in this turn ... */
	xtime by_control; /* ... by control PDUs */
};

/* net_turn_init: go_on is called when the input may go on. */
void net_turn_init(struct net_turn *t, struct io_loop *l,
		   void (*go_on)(struct net_turn *t));
/* net_turn_begin: the input of a turn begins. */
void net_turn_begin(struct net_turn *t);
/* net_turn_count counts the time since the last call, and returns whether the time of the turn is
 * used up. The first call of a turn starts the clock. control: see struct stream_host. */
bool net_turn_count(struct net_turn *t, bool control);
/* net_turn_end: if the time is used up, the input waits until go_on. */
void net_turn_end(struct net_turn *t);
/* net_turn_waits returns whether go_on will be called. */
bool net_turn_waits(const struct net_turn *t);
/* net_turn_cancel: go_on is not called any more. */
void net_turn_cancel(struct net_turn *t);

#endif
