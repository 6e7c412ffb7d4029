/* SPDX-License-Identifier: BSD-2-Clause */
/* window.c: command numbers and the command window, RFC 7143 §4.2.2.1. */
#include "iscsi/window.h"

#include "base/serial.h"

void iscsi_target_window_init(struct iscsi_target_window *w, uint32_t cmdsn,
			      uint32_t depth)
{
	w->expcmdsn = cmdsn;
	w->maxcmdsn = cmdsn + depth - 1;
	w->depth = depth;
}

enum iscsi_window_verdict
iscsi_target_window_check(const struct iscsi_target_window *w, uint32_t cmdsn)
{
	if (cmdsn == w->expcmdsn)
		return sn_le(cmdsn, w->maxcmdsn) ? ISCSI_CMDSN_EXPECTED
						 : ISCSI_CMDSN_IGNORE;
	if (sn_lt(cmdsn, w->expcmdsn) || sn_lt(w->maxcmdsn, cmdsn))
		return ISCSI_CMDSN_IGNORE;
	return ISCSI_CMDSN_AHEAD;
}

void iscsi_target_window_take(struct iscsi_target_window *w)
{
	w->expcmdsn++;
}

/* [RFC 7143: 4.2.2.1 #9-10] */
void iscsi_target_window_update(struct iscsi_target_window *w,
				uint32_t in_flight)
{
	uint32_t room = in_flight < w->depth ? w->depth - in_flight : 0;
	uint32_t max = w->expcmdsn + room - 1;

	if (sn_lt(w->maxcmdsn, max))
		w->maxcmdsn = max;
}

void iscsi_initiator_window_init(struct iscsi_initiator_window *w,
				 uint32_t cmdsn)
{
	w->cmdsn = w->expcmdsn = w->maxcmdsn = cmdsn;
}

/* [RFC 7143: 4.2.2.1 #14] */
bool iscsi_initiator_window_open(const struct iscsi_initiator_window *w)
{
	return sn_le(w->cmdsn, w->maxcmdsn);
}

/* [RFC 7143: 4.2.2.1 #9] */
bool iscsi_initiator_window_update(struct iscsi_initiator_window *w,
				   uint32_t expcmdsn, uint32_t maxcmdsn)
{
	bool grew = sn_lt(w->maxcmdsn, maxcmdsn);

	if (sn_lt(maxcmdsn, expcmdsn - 1))
		return false;
	if (grew)
		w->maxcmdsn = maxcmdsn;
	if (sn_lt(w->expcmdsn, expcmdsn))
		w->expcmdsn = expcmdsn;
	return grew;
}
