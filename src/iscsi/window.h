/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h: CmdSN, ExpCmdSN, MaxCmdSN (RFC 7143 §4.2.2.1) and StatSN of
 * both roles. Inline: each command needs most of these functions.
 */
#ifndef ISCSI_WINDOW_H
#define ISCSI_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/serial.h"

/*
 * The numbers of a session and connection that headers carry. The role writes
 * them; the datamover reads them when it encodes a header, so that a header has
 * the numbers of that moment.
 */
struct iscsi_numbers {
	uint32_t statsn;	     /* target: the next StatSN */
	uint32_t expcmdsn, maxcmdsn; /* target */
	uint32_t expstatsn; /* initiator; target: that of its initiator */
};

enum iscsi_window_verdict {
	ISCSI_CMDSN_EXPECTED, /* the next command */
	ISCSI_CMDSN_AHEAD,    /* inside the window; an earlier one is missing */
	ISCSI_CMDSN_IGNORE,   /* outside [ExpCmdSN, MaxCmdSN] */
};

/* The command numbers of a session at the target. */
struct iscsi_target_window {
	uint32_t expcmdsn;
	uint32_t maxcmdsn;
	uint32_t depth; /* the most commands in progress */
};

/* iscsi_target_window_init: cmdsn is that of the first command. */
void iscsi_target_window_init(struct iscsi_target_window *w, uint32_t cmdsn,
			      uint32_t depth);
/* iscsi_target_window_check returns what to do with a non-immediate request
 * that has this CmdSN. */
static inline enum iscsi_window_verdict
iscsi_target_window_check(const struct iscsi_target_window *w, uint32_t cmdsn)
{
	if (cmdsn == w->expcmdsn)
		return sn_le(cmdsn, w->maxcmdsn) ? ISCSI_CMDSN_EXPECTED
						 : ISCSI_CMDSN_IGNORE;
	if (sn_lt(cmdsn, w->expcmdsn) || sn_lt(w->maxcmdsn, cmdsn))
		return ISCSI_CMDSN_IGNORE;
	return ISCSI_CMDSN_AHEAD;
}
/* iscsi_target_window_take advances ExpCmdSN after the expected command. */
static inline void iscsi_target_window_take(struct iscsi_target_window *w)
{
	w->expcmdsn++;
}

/* iscsi_target_window_update sets MaxCmdSN to ExpCmdSN + (depth - in_flight)
 * - 1, where in_flight commands are in progress. MaxCmdSN never decreases
 * (§4.2.2.1). */
/* [RFC 7143: 4.2.2.1 #9-10] */
static inline void iscsi_target_window_update(struct iscsi_target_window *w,
					      uint32_t in_flight)
{
	uint32_t room = in_flight < w->depth ? w->depth - in_flight : 0;
	uint32_t max = w->expcmdsn + room - 1;

	if (sn_lt(w->maxcmdsn, max))
		w->maxcmdsn = max;
}

/* The command numbers of a session at the initiator. */
struct iscsi_initiator_window {
	uint32_t cmdsn; /* of the next command */
	uint32_t expcmdsn, maxcmdsn;
};

/* iscsi_initiator_window_init: cmdsn is that of the first command. */
void iscsi_initiator_window_init(struct iscsi_initiator_window *w,
				 uint32_t cmdsn);
/* iscsi_initiator_window_open returns whether a non-immediate command may be
 * sent. */
/* [RFC 7143: 4.2.2.1 #14] */
static inline bool
iscsi_initiator_window_open(const struct iscsi_initiator_window *w)
{
	return sn_le(w->cmdsn, w->maxcmdsn);
}

/* iscsi_initiator_window_update takes ExpCmdSN and MaxCmdSN of a response by
 * the rules of §4.2.2.1: it ignores both if MaxCmdSN < ExpCmdSN - 1, and neither
 * decreases. An ExpCmdSN after CmdSN acknowledges a command that was not sent: it
 * is ignored. Returns whether the window grew. */
/* [RFC 7143: 4.2.2.1 #9] */
static inline bool
iscsi_initiator_window_update(struct iscsi_initiator_window *w,
			      uint32_t expcmdsn, uint32_t maxcmdsn)
{
	bool grew = sn_lt(w->maxcmdsn, maxcmdsn);

	if (sn_lt(maxcmdsn, expcmdsn - 1))
		return false;
	if (grew)
		w->maxcmdsn = maxcmdsn;
	if (sn_lt(w->expcmdsn, expcmdsn) && sn_le(expcmdsn, w->cmdsn))
		w->expcmdsn = expcmdsn;
	return grew;
}

#endif
