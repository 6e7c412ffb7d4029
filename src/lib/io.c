/* SPDX-License-Identifier: BSD-2-Clause */
/* io.c: SCSI commands of the caller on tasks of the session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"

/* ---- endings ---- */

static void take_result(struct iser_io *io, const struct ini_task *t)
{
	io->status = t->status;
	io->overflow = t->overflow;
	io->resid = t->resid;
	io->sense_len = (uint16_t)MIN((size_t)t->sense_len, sizeof(io->sense));
	memcpy(io->sense, t->sense, io->sense_len);
	io->err = t->err ? lib_error(t->err) : t->status ? ISER_E_SCSI : 0;
	if (io->err)
		lib_type_news(io->session, io);
}

static void task_done(struct ini_task *task)
{
	struct lib_task *lt = container_of(task, struct lib_task, task);
	struct iser_io *io = lt->io;
	struct iser_session *s = io->session;

	if (lib_back_keeps(s, lt)) {
		lib_back_leave(s);
		return;
	}
	take_result(io, task);
	lt->next = s->free_tasks;
	s->free_tasks = lt;
	io->done(io);
	lib_io_pump(s);
	lib_back_leave(s);
}

/* Told from the loop, not from within iser_submit. */
static void tell_failed(struct io_defer *d)
{
	struct iser_session *s =
		container_of(d, struct iser_session, tell_failed);

	while (s->failed) {
		struct iser_io *io = s->failed;

		s->failed = io->next;
		if (!s->failed)
			s->failed_tail = &s->failed;
		io->done(io);
	}
}

/* Of a command that is issued now, for the first time or again. */
xtime lib_io_deadline(const struct iser_session *s, xtime now)
{
	return s->url.timeout ? now + s->url.timeout * XTIME_S : XTIME_NEVER;
}

void lib_io_fail_later(struct iser_session *s, struct iser_io *io, int err)
{
	io->err = err;
	io->next = NULL;
	*s->failed_tail = io;
	s->failed_tail = &io->next;
	io_loop_defer(s->ctx->loop, &s->tell_failed);
}

void lib_io_fail_queue(struct iser_session *s, int err)
{
	while (s->queue) {
		struct iser_io *io = s->queue;

		s->queue = io->next;
		lib_io_fail_later(s, io, err);
	}
	s->queue_tail = &s->queue;
}

/* ---- submission ---- */

static void start(struct iser_session *s, struct lib_task *lt,
		  struct iser_io *io)
{
	struct ini_task *t = &lt->task;
	xtime now = io_now(s->ctx->loop);
	const struct bufv data = bufv_of(io->iov, io->niov);

	lt->io = io;
	lt->tries = 0;
	lt->forgave = false;
	t->lun = (uint64_t)(unsigned)io->lun << 48;
	if (io->lun > 255) /* flat space addressing, SAM-5 §4.7 */
		t->lun |= 0x4000000000000000ull;
	memcpy(t->cdb, io->cdb, sizeof(io->cdb));
	t->cdb_len = io->cdb_len;
	t->read = io->direction == ISER_READ;
	t->write = io->direction == ISER_WRITE;
	t->attr = ISCSI_ATTR_SIMPLE;
	t->immediate = false;
	t->in = t->read ? data : (struct bufv){ 0 };
	t->out = t->write ? data : (struct bufv){ 0 };
	t->priority = io->priority ? io->priority : (uint8_t)s->url.priority;
	t->deadline = lib_io_deadline(s, now);
	t->done = task_done;
	ini_submit(s->ini, t, now);
}

void lib_io_pump(struct iser_session *s)
{
	while (s->queue && s->free_tasks && s->ini && s->state == SESSION_UP) {
		struct lib_task *lt = s->free_tasks;
		struct iser_io *io = s->queue;

		s->free_tasks = lt->next;
		s->queue = io->next;
		if (!s->queue)
			s->queue_tail = &s->queue;
		start(s, lt, io);
	}
}

void iser_submit(struct iser_session *s, struct iser_io *io)
{
	io->session = s;
	io->err = 0;
	io->status = 0;
	io->resid = 0;
	io->overflow = false;
	io->sense_len = 0;
	io->next = NULL;
	if (s->state != SESSION_AWAY && (s->state != SESSION_UP || !s->ini)) {
		lib_io_fail_later(s, io, s->err ? s->err : ISER_E_CLOSED);
		return;
	}
	if (io->niov > 1024 || io->cdb_len == 0 ||
	    io->cdb_len > sizeof(io->cdb) || io->lun < 0 || io->lun > 16383) {
		lib_io_fail_later(s, io, ISER_E_INVALID);
		return;
	}
	*s->queue_tail = io;
	s->queue_tail = &io->next;
	lib_io_pump(s);
}

static void run_done(struct iser_io *io)
{
	*(bool *)io->arg = true;
}

int iser_run(struct iser_session *s, struct iser_io *io)
{
	bool over = false;
	int err;

	io->done = run_done;
	io->arg = &over;
	iser_submit(s, io);
	err = lib_wait(s->ctx, &over);
	if (!err)
		err = io->err;
	if (err) {
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

	if (io->err != ISER_E_SCSI) {
		snprintf(out, size, "command %02xh: %s", io->cdb[0],
			 iser_strerror(io->err));
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

/* ---- life ---- */

int lib_io_init(struct iser_session *s)
{
	s->tasks = calloc(s->depth, sizeof(*s->tasks));
	if (!s->tasks)
		return ISER_E_NOMEM;
	for (unsigned i = 0; i < s->depth; i++) {
		s->tasks[i].next = s->free_tasks;
		s->free_tasks = &s->tasks[i];
	}
	s->queue_tail = &s->queue;
	s->failed_tail = &s->failed;
	s->tell_failed.run = tell_failed;
	list_init(&s->tell_failed.link);
	return 0;
}

void lib_io_fini(struct iser_session *s)
{
	lib_io_fail_queue(s, ISER_E_CLOSED);
	tell_failed(&s->tell_failed);
	io_defer_cancel(&s->tell_failed);
	free(s->tasks);
}
