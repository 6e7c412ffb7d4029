/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h: the READs and WRITEs of a run in the order of their submission, which is
 * that of their CmdSN, and the oracle of their results. A WRITE fills each block with
 * its number, so that each block of a READ shows which WRITE it returns.
 *
 * The blocks are in slots. In the first one any number of commands is in progress, all
 * of them ORDERED; in each other slot one command at a time. So the order of submission
 * determines what each READ returns, but for WRITEs that failed: those may have been
 * carried out, or not, but only once and in their turn.
 */
#ifndef TESTS_SIM_LEDGER_H
#define TESTS_SIM_LEDGER_H

#include "initiator/initiator.h"

#define LEDGER_BLOCK  512u
#define LEDGER_SLOT   8u  /* blocks */
#define LEDGER_BLOCKS 56u /* the first slot, and six others */

struct entry {
	struct ini_task task;
	struct iovec iov;
	void *arg;  /* the caller's */
	xtime time; /* of submission; the caller's */
	unsigned number;
	uint32_t lba, blocks;
	bool write, ordered, ended, good;
	uint8_t data[LEDGER_SLOT * LEDGER_BLOCK];
};

struct ledger;

/* ledger_new: with room for n commands. */
struct ledger *ledger_new(unsigned n);
void ledger_free(struct ledger *l);
/* ledger_begin adds a command; its task and arg are empty. */
struct entry *ledger_begin(struct ledger *l, bool write, uint32_t lba,
			   uint32_t blocks, bool ordered);
/* ledger_begin_any does so by *seed; of the slots but the first only those without a
 * command in progress are chosen. */
struct entry *ledger_begin_any(struct ledger *l, uint32_t *seed);
/* ledger_end: the task has ended; it may end only once. */
void ledger_end(struct entry *e);
/* ledger_check checks what all READs returned; ledger_check_medium checks what is on
 * the medium. */
void ledger_check(const struct ledger *l);
void ledger_check_medium(const struct ledger *l, const uint8_t *medium);

#endif
