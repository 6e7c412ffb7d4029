/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h: CmdSN, ExpCmdSN, MaxCmdSN (RFC 7143 §4.2.2.1) and StatSN of
 * both roles.
 */
#ifndef ISCSI_WINDOW_H
#define ISCSI_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The numbers that a header carries for its session and connection. The role
 * writes them, the datamover reads them when it encodes a header, so that
 * what is sent is what holds at that moment.
 */
struct iscsi_numbers {
	uint32_t statsn; /* target: the next StatSN, for headers that name it
			  * without taking it (R2T, solicited NOP-In) */
	uint32_t expcmdsn, maxcmdsn; /* target */
	uint32_t expstatsn;	     /* initiator */
};

enum iscsi_window_verdict {
	ISCSI_CMDSN_EXPECTED, /* take it now */
	ISCSI_CMDSN_AHEAD,    /* inside the window, an earlier one misses */
	ISCSI_CMDSN_IGNORE,   /* outside [ExpCmdSN, MaxCmdSN] */
};

/* The target's view of a session's command numbering. */
struct iscsi_target_window {
	uint32_t expcmdsn;
	uint32_t maxcmdsn;
	uint32_t depth; /* most commands in flight; maxcmdsn follows it */
};

void iscsi_target_window_init(struct iscsi_target_window *w, uint32_t cmdsn,
			      uint32_t depth);
/* What to do with a non-immediate request that carries cmdsn. */
enum iscsi_window_verdict
iscsi_target_window_check(const struct iscsi_target_window *w, uint32_t cmdsn);
/* The expected command was taken: ExpCmdSN goes on by one. */
void iscsi_target_window_take(struct iscsi_target_window *w);
/* in_flight commands hold a slot: MaxCmdSN = ExpCmdSN + (depth - in_flight)
 * - 1, and never goes back (§4.2.2.1). */
void iscsi_target_window_update(struct iscsi_target_window *w,
				uint32_t in_flight);

/* The initiator's view. */
struct iscsi_initiator_window {
	uint32_t cmdsn; /* the next to assign */
	uint32_t expcmdsn, maxcmdsn;
};

void iscsi_initiator_window_init(struct iscsi_initiator_window *w,
				 uint32_t cmdsn);
/* May a non-immediate command be sent now? */
bool iscsi_initiator_window_open(const struct iscsi_initiator_window *w);
/* Takes ExpCmdSN and MaxCmdSN of a response, by the rules of §4.2.2.1 (both
 * ignored where MaxCmdSN < ExpCmdSN - 1, neither ever goes back). Returns
 * whether the window grew. */
bool iscsi_initiator_window_update(struct iscsi_initiator_window *w,
				   uint32_t expcmdsn, uint32_t maxcmdsn);

#endif
