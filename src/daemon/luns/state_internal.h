/* SPDX-License-Identifier: BSD-2-Clause */
/* state_internal.h: what state.c and state_dir.c share. */
#ifndef DAEMON_LUNS_STATE_INTERNAL_H
#define DAEMON_LUNS_STATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/luns/state.h"
#include "io/io.h"

struct state {
	const char *path; /* the option's */
	struct io_loop *loop;
	int dir;
	bool may_lose;	     /* reservations: --allow-lost-reservations */
	struct list waiting; /* dev_save */
	/* the save in progress */
	struct io_file_op op;
	struct dev_save *save;
	char name[STATE_NAME], temp[STATE_NAME];
};

/* Saved state of a unit: the suffix of its file, and the words of messages. */
struct state_kind {
	const char *suffix, *what, *without;
};
extern const struct state_kind state_kinds[DEV_KEPT_KINDS];

/* state_name_file writes the name of the file of a store. */
void state_name_file(const uint8_t uuid[16], const char *suffix,
		     char out[STATE_NAME]);
/* state_damage returns the text of an error of record_header_check. */
const char *state_damage(int err);

#endif
