/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dm_roles.h: two small roles over the Datamover Interface for tests of any
 * datamover: a target with a disk in memory, and an initiator that reads and
 * writes the disk. The roles check the rules of the interface.
 *
 * Their CDB: [0] 0 = read, 1 = write; [1] how the target answers a read (enum
 * fake_answer); [4..7] offset on the disk. The length is the EDTL.
 */
#ifndef TESTS_SIM_DM_ROLES_H
#define TESTS_SIM_DM_ROLES_H

#include "datamover/datamover.h"

#define FAKE_DISK  (1u << 20)
#define FAKE_TASKS 16
#define FAKE_MOST  (384u << 10) /* bytes of one command */

enum fake_answer {
	FAKE_STATUS_WITH_DATA, /* put_data carries the response */
	FAKE_STATUS_APART,     /* put_data, DM_PUT, then the response */
	FAKE_SENSE,	       /* a response with data of its own */
	FAKE_ANSWERS,
};

enum fake_state {
	FAKE_FREE,
	FAKE_UNSOLICITED,
	FAKE_GETTING,
	FAKE_PUTTING,
	FAKE_RESPONDING,
	FAKE_RELEASING,
	FAKE_AT_TARGET, /* initiator: in progress */
};

struct fake_task {
	struct dm_task dm;
	enum fake_state state;
	bool is_write;
	uint8_t answer;
	uint32_t off;
	uint8_t *buf; /* at least edtl bytes */
	uint32_t buf_room;
	struct iovec iov[8];
	struct bufv data;
	/* initiator */
	int status;
	unsigned sense_len;
	bool aborting;
	/* target: the TMF that waits for the release */
	uint32_t tmf_itt;
};

struct fake_role {
	struct dm_conn *dm;
	struct iscsi_params params;
	struct iscsi_numbers numbers;
	struct fake_task task[FAKE_TASKS];
	uint8_t *disk; /* the target's */
	/* counts of events */
	unsigned finished, aborted, errors, terminated, logged_in;
	int terminate_err, last_error;
	/* target: SNACK Requests, and the number of the last one refused */
	unsigned snacks;
	uint32_t snack_next;
	/* called at the end of each command of the initiator */
	void (*done)(void *arg, struct fake_task *t);
	void *arg;
	uint32_t next_cmdsn, seed;
	bool strict; /* both roles are correct: no error is allowed */
};

void fake_target_init(struct fake_role *r, struct dm_conn *dm,
		      const struct iscsi_params *params);
void fake_initiator_init(struct fake_role *r, struct dm_conn *dm,
			 const struct iscsi_params *params);
void fake_role_fini(struct fake_role *r);

/* fake_login starts the exchange of Login PDUs that enables both ends. */
void fake_login(struct fake_role *initiator);
/* fake_start sends a command; NULL: no task is free. It makes write data from
 * the role's seed, in t->buf. */
struct fake_task *fake_start(struct fake_role *initiator, bool is_write,
			     uint32_t off, uint32_t len,
			     enum fake_answer answer);
/* fake_abort asks the target to abort t; t ends with status -1, or before. */
void fake_abort(struct fake_role *initiator, struct fake_task *t);

#endif
