/* SPDX-License-Identifier: BSD-2-Clause */
/* model_op.h: the commands of model_sim_test.c with their results. */
#ifndef TESTS_SIM_MODEL_OP_H
#define TESTS_SIM_MODEL_OP_H

#include "slow_store.h"
#include "unit/device/rsv_model.h"

#define BLOCK SLOW_BLOCK
#define MOST  8u /* blocks of a command */

enum kind {
	/* on blocks */
	K_READ,
	K_WRITE,
	K_WRITE_VERIFY,
	K_WRITE_ATOMIC,
	K_ORWRITE,
	K_VERIFY,     /* BYTCHK 01b */
	K_VERIFY_ONE, /* 11b */
	K_COMPARE_AND_WRITE,
	K_SAME,
	K_SAME_NO_DATA,
	K_UNMAP,
	K_ON_BLOCKS,
	/* the rest */
	K_FLUSH = K_ON_BLOCKS,
	K_READY,
	K_RESERVE,
	K_RELEASE,
	K_PR_OUT,
	K_KEYS,
	K_RESERVATION,
	K_ALL,
	K_FAULT =
		K_ALL, /* NACA = 1; a nonexistent block, or the transport fails */
};

static const char *const names[] = { "READ",
				     "WRITE",
				     "WRITE AND VERIFY",
				     "WRITE ATOMIC",
				     "ORWRITE",
				     "VERIFY",
				     "VERIFY one block",
				     "COMPARE AND WRITE",
				     "SAME",
				     "SAME NDOB",
				     "UNMAP",
				     "SYNCHRONIZE CACHE",
				     "READY",
				     "RESERVE",
				     "RELEASE",
				     "PR OUT",
				     "KEYS",
				     "RESERVATION",
				     "FAULT" };

struct op {
	enum kind kind;
	uint8_t attr;
	unsigned who, lba, n;
	uint64_t values[2 * MOST]; /* of its data-out, one a block */
	struct pr_out pr;
	uint8_t cdb[16];
	uint8_t out[2 * MOST * BLOCK];
	uint32_t out_len, in_len;
	bool transport;		  /* its data do not come: dev_task_fail */
	enum dev_failure failure; /* of `transport` */
	struct result bad;	  /* how a K_FAULT, or one without data, ends */
	/* how it ended */
	struct dev_task task;
	bool begun, sent, done;
	bool aborted, released; /* it vanished: it did all or nothing */
	struct scsi_sense sense;
	uint8_t in[MOST * BLOCK];
	size_t got;
};

#endif
