/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.c: the commands that wait until their unit is identified (guard.h). New ones stay
 * in the queue of the session. Those that are issued again, and those whose results may be
 * of another unit, are on the lists of their LUN.
 */
#include <string.h>

#include "lib/internal.h"

/* ---- lists ---- */

static void append(struct lib_tasks *l, struct lib_task *lt)
{
	lt->next = NULL;
	*l->tail = lt;
	l->tail = &lt->next;
}

static struct lib_task *take_first(struct lib_tasks *l)
{
	struct lib_task *lt = l->first;

	if (!lt)
		return NULL;
	l->first = lt->next;
	if (!l->first)
		l->tail = &l->first;
	return lt;
}

static bool take_one(struct lib_tasks *l, const struct lib_task *lt)
{
	for (struct lib_task **link = &l->first; *link; link = &(*link)->next) {
		if (*link != lt)
			continue;
		*link = lt->next;
		if (!*link)
			l->tail = link;
		return true;
	}
	return false;
}

bool lib_hold_remove(struct iser_session *s, const struct lib_task *lt)
{
	struct lib_guarded *g = lib_guard_find(s, lt->io->lun);

	return g && (take_one(&g->held, lt) || take_one(&g->ended, lt));
}

/* ---- issued again ---- */

void lib_hold_issue(struct iser_session *s, struct lib_task *lt)
{
	xtime now = io_now(s->ctx->loop);
	struct lib_guarded *g = lib_guard_covers(lt->io)
					? lib_guard_find(s, lt->io->lun)
					: NULL;

	if (g && (s->state != SESSION_UP || lib_guard_waits(s, lt->io))) {
		append(&g->held, lt);
		return;
	}
	lt->is_doubtful = false;
	lt->task.deadline = lib_io_deadline(s, now);
	ini_submit(s->ini, &lt->task, now);
}

/* ---- unit attentions ---- */

static void doubt(struct iser_session *s, struct lib_guarded *g)
{
	if (g->state == GUARD_NEW)
		return;
	for (unsigned i = 0; i <= s->commands.depth; i++) {
		struct lib_task *lt = &s->commands.tasks[i];

		lt->is_doubtful |= lt->io && lt->io->lun == g->lun &&
				   lib_guard_covers(lt->io);
	}
	lib_guard_ask(s, g);
}

/* A command that was in progress when the unit became unsure says nothing new: the end of one
 * such command after the other would keep a unit from being identified. If the unit changes once
 * more, an attention says so before the next command is executed (SAM-5 §5.14). */
void lib_hold_doubt(struct iser_session *s, const struct lib_task *lt)
{
	struct lib_guarded *g = lib_guard_find(s, lt->io->lun);

	if (g && g->state == GUARD_UNSURE && lt->is_doubtful)
		return;
	s->guard.round++;
	if (g)
		doubt(s, g);
}

/* Notes a unit attention of a LUN. That of the list of LUNs is of all LUNs, and reported
 * by one of them (SPC-4 §6.33). */
static void note_attention(struct iser_session *s, int lun, uint16_t asc)
{
	s->guard.round++;
	for (struct lib_guarded *g = s->guard.luns; g; g = g->next)
		if (g->lun == lun || asc == ASC_REPORTED_LUNS_CHANGED)
			doubt(s, g);
}

static void note_medium(struct iser_session *s, int lun)
{
	struct lib_guarded *g = lib_guard_find(s, lun);

	if (g)
		g->is_new_medium = true;
}

bool lib_hold_heard(struct iser_session *s, struct lib_task *lt)
{
	const struct ini_task *t = &lt->task;
	struct scsi_sense sense;

	if (t->err || !t->sense_len ||
	    scsi_sense_parse(&sense, t->sense, t->sense_len) ||
	    sense.deferred || sense.key != SENSE_UNIT_ATTENTION)
		return false;
	if (sense.asc >> 8 == ASC_MEDIUM_MAY_HAVE_CHANGED >> 8)
		note_medium(s, lt->io->lun);
	if (!lib_guard_is_doubt(sense.asc))
		return false;
	note_attention(s, lt->io->lun, sense.asc);
	if (!lib_guard_covers(lt->io) || lt->is_aborting ||
	    s->state != SESSION_UP || lt->attentions++ >= LIB_ATTENTIONS_MAX)
		return false;
	lib_hold_issue(s, lt);
	return true;
}

/* ---- results ---- */

static void end_task(struct iser_session *s, struct lib_task *lt)
{
	struct iser_io *io = lt->io;

	lib_io_free_task(s, lt);
	io->done(io);
}

/* cause: 0 for a command that the unit has not executed. */
static void set_changed(struct iser_io *io, int cause)
{
	io->err = ISER_E_CHANGED;
	io->cause = cause;
	io->transferred = 0;
	io->sense_len = 0;
}

bool lib_hold_takes(struct iser_session *s, struct lib_task *lt)
{
	struct lib_guarded *g = lib_guard_find(s, lt->io->lun);
	int err = lt->task.err;

	if (!g || lt->is_aborting ||
	    (err && (lib_is_loss(err) || err == ERR_ABORTED)))
		return false;
	if (g->state == GUARD_REFUSED)
		set_changed(lt->io, ERR_ABORTED);
	if (g->state == GUARD_REFUSED || g->state == GUARD_OPEN)
		return false;
	append(&g->ended, lt);
	if (g->state == GUARD_NEW)
		lib_guard_ask(s, g);
	return true;
}

/* ---- the end of the doubt ---- */

void lib_hold_open(struct iser_session *s, struct lib_guarded *g)
{
	struct lib_tasks held = g->held, ended = g->ended;
	struct lib_task *lt;

	lib_guard_go(s, g, GUARD_OPEN);
	g->is_new_medium = false;
	/* done may close the LUN again */
	g->held.first = g->ended.first = NULL;
	g->held.tail = &g->held.first;
	g->ended.tail = &g->ended.first;
	while ((lt = take_first(&ended)))
		end_task(s, lt);
	while ((lt = take_first(&held)))
		lib_hold_issue(s, lt);
	lib_io_pump(s);
}

/* Ends all commands of a LUN by `end`, which sets their results. */
static void end_all(struct iser_session *s, struct lib_guarded *g,
		    void (*end)(struct iser_io *io, bool was_executed,
				const struct iser_io *by),
		    const struct iser_io *by)
{
	struct iser_io *io, *queued = lib_io_take_guarded(s, g->lun);
	struct lib_task *lt;

	while ((lt = take_first(&g->ended))) {
		end(lt->io, true, by);
		end_task(s, lt);
	}
	while ((lt = take_first(&g->held))) {
		end(lt->io, false, by);
		end_task(s, lt);
	}
	while ((io = queued)) {
		queued = io->next;
		end(io, false, by);
		io->done(io);
	}
	lib_io_pump(s);
}

static void end_changed(struct iser_io *io, bool was_executed,
			const struct iser_io *by)
{
	(void)by;
	set_changed(io, was_executed ? ERR_ABORTED : 0);
}

void lib_hold_refuse(struct iser_session *s, struct lib_guarded *g)
{
	lib_guard_go(s, g, GUARD_REFUSED);
	end_all(s, g, end_changed, NULL);
}

static void end_status(struct iser_io *io, bool was_executed,
		       const struct iser_io *by)
{
	(void)was_executed;
	io->err = by->err;
	io->cause = by->cause;
	io->status = by->status;
	io->transferred = 0;
	io->sense_len = by->sense_len;
	memcpy(io->sense, by->sense, by->sense_len);
}

void lib_hold_fail(struct iser_session *s, struct lib_guarded *g,
		   const struct iser_io *by)
{
	lib_guard_go(s, g, GUARD_NEW);
	end_all(s, g, end_status, by);
}

/* ---- the end of a connection ---- */

void lib_hold_lost(struct iser_session *s,
		   bool (*takes)(struct iser_session *s, struct lib_task *lt))
{
	s->guard.round++;
	for (struct lib_guarded *g = s->guard.luns; g; g = g->next) {
		struct lib_task *lt;

		lib_guard_go(s, g, GUARD_NEW);
		while ((lt = take_first(&g->ended))) {
			lt->task.err = lt->io->cause = ERR_CLOSED;
			if (!takes(s, lt))
				lib_io_fail_task(s, lt, ISER_E_CLOSED);
		}
	}
}

void lib_hold_resume(struct iser_session *s)
{
	for (struct lib_guarded *g = s->guard.luns; g; g = g->next)
		if (g->held.first && g->state == GUARD_NEW)
			lib_guard_ask(s, g);
}

void lib_hold_end(struct iser_session *s, int err)
{
	for (struct lib_guarded *g = s->guard.luns; g; g = g->next) {
		struct lib_task *lt;

		while ((lt = take_first(&g->ended)) ||
		       (lt = take_first(&g->held)))
			lib_io_fail_task(s, lt, err);
	}
}
