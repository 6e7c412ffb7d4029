/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * state.h: the directory with the state files: persistent reservations with
 * APTPL, saved mode pages and the like, one file for each store and kind, named
 * by the UUID of the store.
 */
#ifndef DAEMON_LUNS_STATE_H
#define DAEMON_LUNS_STATE_H

#include <sys/types.h>

#include "device/device.h"
#include "io/io.h"

struct state;

/* state_open: makes path a directory of the user that iserd will run as if it
 * is none, and keeps others from it. loop: worker 0's. may_lose: units whose
 * reservations are damaged start without knowing them. NULL after a message. */
struct state *state_open(const char *path, struct io_loop *loop, bool may_lose,
			 uid_t uid, gid_t gid);
/* state_usable returns whether the user that iserd runs as may write to the
 * directory; false after a message. */
bool state_usable(const struct state *s);
/* state_load restores the persisted state of the unit, if there is any. False
 * after a message. */
bool state_load(struct state *s, struct dev_lu *lu);
/* state_save is dev_env.save: replaces the state file by a new one, synced, on
 * a helper thread. Worker 0 only; save is borrowed until save->done is
 * called. */
void state_save(struct state *s, struct dev_save *save);
/* state_path returns the directory as the option has it. */
const char *state_path(const struct state *s);
/* state_read reads a file of the directory of at most max bytes into *text, from
 * malloc, with a zero byte after them; *text NULL: there is no such file. False
 * after a message. */
bool state_read(const struct state *s, const char *name, size_t max,
		char **text, size_t *len);
/* state_has returns whether the file has these bytes. */
bool state_has(const struct state *s, const char *name, const void *data,
	       size_t len);
/* state_replace replaces a file of the directory by a new one, synced. Blocks.
 * Worker 0, by the user that iserd runs as. False after a message. */
bool state_replace(const struct state *s, const char *name, const void *data,
		   size_t len);
/* state_close: no save is in progress; s may be NULL. */
void state_close(struct state *s);

#endif
