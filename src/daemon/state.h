/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * state.h: the directory with what outlives iserd: persistent reservations
 * with APTPL, saved mode pages and the like, one file a store and kind, named
 * by the store's UUID.
 */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

#include "device/device.h"
#include "io/io.h"

struct state;

/* state_open: makes path a directory if it is none, and keeps others from it.
 * loop: worker 0's. may_lose: units whose reservations are damaged start
 * without knowing them. NULL after a message. */
struct state *state_open(const char *path, struct io_loop *loop, bool may_lose);
/* state_usable: the user that iserd runs as may write there; else false after
 * a message. */
bool state_usable(const struct state *s);
/* state_load gives the unit what was kept of it; false after a message. */
bool state_load(struct state *s, struct dev_lu *lu);
/* state_save is dev_env.save: a new file in the place of the old one, synced,
 * on a helper thread. On worker 0. */
void state_save(struct state *s, struct dev_save *save);
void state_close(struct state *s);

#endif
