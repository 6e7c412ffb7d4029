/* SPDX-License-Identifier: BSD-2-Clause */
/* window.c: command numbers and the command window, RFC 7143 §4.2.2.1. */
#include "iscsi/window.h"

void iscsi_target_window_init(struct iscsi_target_window *w, uint32_t cmdsn,
			      uint32_t depth)
{
	w->expcmdsn = cmdsn;
	w->maxcmdsn = cmdsn + depth - 1;
	w->depth = depth;
}

void iscsi_initiator_window_init(struct iscsi_initiator_window *w,
				 uint32_t cmdsn)
{
	w->cmdsn = w->expcmdsn = w->maxcmdsn = cmdsn;
}
