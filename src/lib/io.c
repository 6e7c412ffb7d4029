/* SPDX-License-Identifier: BSD-2-Clause */
/* io.c: SCSI commands of the caller: submission, results, descriptions. */
#include <stdio.h>
#include <string.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

/* ---- results ---- */

/* The data that the unit returned. */
static void take_bidi_result(struct iser_io *io, const struct ini_task *t)
{
	struct iser_bidi *b = container_of(io, struct iser_bidi, io);
	uint32_t missing =
		(uint32_t)(t->in.len - MIN((size_t)t->bidi.moved, t->in.len));

	b->in_transferred = t->bidi.moved;
	b->in_overflow = t->bidi.overflow && !missing;
	b->in_resid = b->in_overflow ? t->bidi.resid : missing;
}

static void take_result(struct iser_io *io, const struct ini_task *t)
{
	size_t whole = t->write ? t->out.len : t->in.len;
	uint32_t missing = (uint32_t)(whole - MIN(t->moved, whole));

	io->status = t->status;
	io->transferred = t->moved;
	io->overflow = t->overflow && !missing;
	io->resid = io->overflow ? t->resid : missing;
	io->cause = t->err;
	io->sense_len = (uint16_t)MIN((size_t)t->sense_len, sizeof(io->sense));
	if (io->sense_len)
		memcpy(io->sense, t->sense, io->sense_len);
	io->err = t->err ? lib_error(t->err) : t->status ? ISER_E_SCSI : 0;
	if (io->overflow && !io->err && !io->short_ok && lib_guard_covers(io)) {
		io->err = ISER_E_PROTOCOL; /* a part of the blocks is missing */
		io->cause = ERR_OVERFLOW;
	}
	if (io->direction == LIB_BOTH)
		take_bidi_result(io, t);
	if (io->err)
		lib_type_news(io->session, io);
}

void lib_io_completed(struct ini_task *task)
{
	struct lib_task *lt = container_of(task, struct lib_task, task);
	struct iser_io *io = lt->io;
	struct iser_session *s = io->session;
	bool is_starting = s->commands.starting;

	if (lib_reconnect_takes(s, lt)) {
		lib_reconnect_leave(s);
		return;
	}
	take_result(io, task);
	if (lt->is_aborting && io->err == ISER_E_ABORTED) {
		/* iser_abort must not call done */
		lib_io_fail_task(s, lt, ISER_E_ABORTED);
		lib_retry_completed(s, io->lun);
		lib_io_pump(s);
		lib_reconnect_leave(s);
		return;
	}
	if (io->err && (io->cause == ERR_OVERFLOW || lib_was_dropped(task)))
		lib_hold_doubt(s, lt);
	if (io->err && (lib_hold_heard(s, lt) || lib_retry_takes(s, lt))) {
		lib_reconnect_leave(s);
		return;
	}
	if (lt->is_doubtful && lib_hold_takes(s, lt))
		return;
	lib_io_free_task(s, lt);
	lib_retry_completed(s, io->lun);
	if (is_starting) { /* iser_submit must not call done */
		lib_io_fail_later(s, io, io->err);
	} else {
		io->done(io);
		lib_io_pump(s);
	}
	lib_reconnect_leave(s);
}

/* ---- submission ---- */

static bool is_valid_bidi(const struct iser_io *io)
{
	const struct iser_bidi *b = container_of(io, struct iser_bidi, io);

	return b->in_niov <= 1024 && LIB_UNUSED(b) &&
	       lib_bidi_in(io).len <= UINT32_MAX;
}

/* Returns whether an initiator can send this command; an Expected Data Transfer
 * Length has 32 bits (RFC 7143 §11.3.4). */
bool lib_io_is_valid(const struct iser_io *io)
{
	return (io->direction != LIB_BOTH || is_valid_bidi(io)) &&
	       io->niov <= 1024 && io->cdb_len > 0 &&
	       io->cdb_len <= sizeof(io->cdb) && io->lun >= 0 &&
	       io->lun <= 16383 && LIB_UNUSED(io) &&
	       bufv_of(io->iov, io->niov).len <= UINT32_MAX;
}

void lib_io_reset(struct iser_io *io)
{
	io->err = 0;
	io->status = 0;
	io->resid = 0;
	io->overflow = false;
	io->transferred = 0;
	io->cause = 0;
	io->sense_len = 0;
	io->next = NULL;
}

void lib_io_submit(struct iser_session *s, struct iser_io *io)
{
	io->session = s;
	lib_io_reset(io);
	if (s->state != SESSION_AWAY && (s->state != SESSION_UP || !s->ini)) {
		lib_io_fail_later(s, io, s->err ? s->err : ISER_E_CLOSED);
		return;
	}
	if (s->state == SESSION_AWAY && s->reconnect.is_late) {
		lib_io_fail_later(s, io, ISER_E_NO_PATH);
		return;
	}
	if (!lib_io_is_valid(io)) {
		lib_io_fail_later(s, io, ISER_E_INVALID);
		return;
	}
	lib_io_add(s, io);
	lib_io_pump(s);
}

static void submit(struct iser_session *s, struct iser_io *io)
{
	if (s->set)
		s->set->ops->submit(s, io);
	else
		lib_io_submit(s, io);
}

void iser_submit(struct iser_session *s, struct iser_io *io)
{
	if (io->direction == LIB_BOTH) /* not an enum iser_direction */
		io->direction = ISER_NO_DATA;
	submit(s, io);
}

void iser_submit_bidi(struct iser_session *s, struct iser_bidi *b)
{
	b->io.direction = LIB_BOTH;
	b->in_overflow = false;
	b->in_resid = b->in_transferred = 0;
	submit(s, &b->io);
}

static void run_completed(struct iser_io *io)
{
	*(bool *)io->arg = true;
}

int iser_run(struct iser_session *s, struct iser_io *io)
{
	bool over = false;
	int err;

	io->done = run_completed;
	io->arg = &over;
	iser_submit(s, io);
	err = lib_wait(s->ctx, &over);
	if (!err)
		err = io->err;
	if (err && !lib_has_reason(err)) {
		char text[200];

		iser_io_describe(io, text, sizeof(text));
		lib_fail(s->ctx, err, "LUN %d of %s: %s", io->lun,
			 s->url.target, text);
	}
	return err;
}

void iser_io_describe(const struct iser_io *io, char *out, size_t size)
{
	struct scsi_sense sense;
	const char *asc;

	if (io->err == ISER_E_SHORT) {
		snprintf(out, size,
			 "command %02xh: short transfer: the target reported "
			 "success for %u of %u bytes",
			 io->cdb[0], io->transferred,
			 io->transferred + io->resid);
		return;
	}
	if (io->err != ISER_E_SCSI) {
		bool more = io->err == ISER_E_PROTOCOL && io->cause;

		snprintf(out, size, "command %02xh: %s%s%s", io->cdb[0],
			 iser_strerror(io->err), more ? ": " : "",
			 more ? err_str(io->cause) : "");
		return;
	}
	if (scsi_sense_parse(&sense, io->sense, io->sense_len)) {
		snprintf(out, size, "command %02xh ended with %s", io->cdb[0],
			 scsi_status_str(io->status));
		return;
	}
	asc = scsi_asc_str(sense.asc);
	snprintf(out, size, "command %02xh ended with %s: %s, %s (%02xh/%02xh)",
		 io->cdb[0], scsi_status_str(io->status),
		 scsi_sense_key_str(sense.key), asc ? asc : "no text",
		 sense.asc >> 8, sense.asc & 0xff);
}
