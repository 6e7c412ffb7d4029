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

#define STATE_NAME 48 /* bytes of the name of a file */

/* state_open: makes path a directory of the user that iserd will run as if it
 * is none, and keeps others from it. loop: worker 0's. may_lose: units whose
 * reservations are damaged start without knowing them. NULL after a message. */
struct state *state_open(const char *path, struct io_loop *loop, bool may_lose,
			 uid_t uid, gid_t gid);
/* state_look opens the directory for reading only, which another iserd may use. NULL: there is
 * none, or this user may not read it. */
struct state *state_look(const char *path);
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
/* state_has_unit returns whether there is a file of the store with this UUID; name gets the
 * name of one. */
bool state_has_unit(const struct state *s, const uint8_t uuid[16],
		    char name[STATE_NAME]);

/* A state file that is not of one unit: a header (base/record_header.h), then a text. */
struct state_record {
	const char *name; /* of the file */
	const char *type; /* 8 bytes */
	/* how a file without a header begins, which an older iserd wrote; or NULL */
	const char *older;
	size_t max; /* bytes of the file */
	/* what an administrator loses who removes the file: "then ..." */
	const char *without;
};

/* state_record_read reads a record: *text, from malloc, ends with a zero byte, and has no
 * other one; NULL: there is no such file. False after a message. */
bool state_record_read(const struct state *s, const struct state_record *r,
		       char **text);
/* state_record_damaged reports that the text of a record is not valid. */
void state_record_damaged(const struct state *s, const struct state_record *r);
/* state_record_save replaces the file, synced, unless it has this text. Blocks. Worker
 * 0, by the user that iserd runs as. False after a message. */
bool state_record_save(const struct state *s, const struct state_record *r,
		       const char *text);
/* state_close: no save is in progress; s may be NULL. */
void state_close(struct state *s);

#endif
