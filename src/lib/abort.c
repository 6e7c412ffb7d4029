/* SPDX-License-Identifier: BSD-2-Clause */
/* abort.c: ends a command of the caller, wherever it is: in the queue, waiting for a
 * retry or a login, or at the target (ABORT TASK, RFC 7143 §11.5.1). */
#include "lib/internal.h"

int iser_abort(struct iser_io *io)
{
	struct iser_session *s = io->session;
	struct lib_task *lt;

	if (s->set) {
		s->set->ops->abort(s, io);
		return 0;
	}
	if (s->member.ops)
		io->library[LIB_IO_HISTORY] |= LIB_IO_ABORTING;
	if (lib_io_unqueue(s, io)) {
		lib_io_fail_later(s, io, ISER_E_ABORTED);
		return 0;
	}
	lt = lib_io_find(s, io);
	if (!lt)
		return 0; /* its done is due */
	if (lib_retry_remove(s, lt) || lib_reconnect_remove(s, lt) ||
	    lib_hold_remove(s, lt)) {
		lib_io_fail_task(s, lt, ISER_E_ABORTED);
		lib_io_pump(s);
		return 0;
	}
	lt->is_aborting = true;
	return lib_request_failed(
		s, ini_abort(&lt->task, lib_request_deadline(s)), "ABORT TASK");
}
