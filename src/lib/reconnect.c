/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reconnect.c: a session whose connection was lost logs in again, and what
 * was under way is issued again. That is session recovery (RFC 7143 §7.1.4):
 * the new login has the ISID of the lost session and TSIH 0, so the target
 * ends that session and its tasks before it lets us in (§6.3.5): nothing that
 * was lost is carried out late, behind what is issued now.
 *
 * A command that is overdue is one way to lose the connection (the role gives
 * it up); its time begins anew each time it is issued.
 */
#include <stdlib.h>
#include <unistd.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

#define BACKOFF_MIN (100 * XTIME_MS)
#define BACKOFF_MAX (5 * XTIME_S)

#define SENSE_NEXUS_LOST 0x29 /* POWER ON, RESET, I_T NEXUS LOSS ... */

/* ---- which commands may be done twice ---- */

/* The lost one may have been carried out, or half. Twice the same READ, WRITE
 * or query ends as once; what compares, reserves or copies does not. */
static const uint8_t twice[] = {
	0x00, 0x08, 0x0a, 0x12, 0x1a, 0x25, 0x28, 0x2a, 0x2e, 0x2f, 0x34,
	0x35, 0x41, 0x42, 0x4d, 0x5a, 0x5e, 0x88, 0x8a, 0x8e, 0x8f, 0x90,
	0x91, 0x93, 0x9c, 0x9e, 0xa0, 0xa3, 0xa8, 0xaa, 0xae, 0xaf,
};

bool lib_back_may_repeat(uint8_t opcode)
{
	for (size_t i = 0; i < sizeof(twice); i++)
		if (opcode == twice[i])
			return true;
	return false;
}

/* ---- tasks ---- */

static void fail_task(struct iser_session *s, struct lib_task *lt, int err)
{
	struct iser_io *io = lt->io;

	lt->next = s->free_tasks;
	s->free_tasks = lt;
	lib_io_fail_later(s, io, err);
}

static struct lib_task *take_first(struct iser_session *s)
{
	struct lib_task *lt = s->back.redo;

	if (!lt)
		return NULL;
	s->back.redo = lt->next;
	if (!s->back.redo)
		s->back.redo_tail = &s->back.redo;
	return lt;
}

static void keep(struct iser_session *s, struct lib_task *lt)
{
	lt->tries++;
	lt->forgave = false;
	lt->next = NULL;
	*s->back.redo_tail = lt;
	s->back.redo_tail = &lt->next;
}

static bool is_loss(int err)
{
	return err > -1000 || err == ERR_DATA_DIGEST ||
	       err_class_of(err) == ERR_CLASS_CONNECTION;
}

static bool kept_after_loss(struct iser_session *s, struct lib_task *lt)
{
	const struct ini_task *t = &lt->task;

	if (!is_loss(t->err))
		return false;
	if (s->state == SESSION_UP)
		s->state = SESSION_AWAY;
	if (s->state != SESSION_AWAY || lt->tries >= s->url.reconnect ||
	    !lib_back_may_repeat(t->cdb[0]))
		return false;
	keep(s, lt);
	return true;
}

/* The target has dropped it, the session is there. */
static bool issued_again(struct iser_session *s, struct lib_task *lt)
{
	xtime now = io_now(s->ctx->loop);

	if (s->state != SESSION_UP || lt->tries >= s->url.reconnect ||
	    !lib_back_may_repeat(lt->task.cdb[0]))
		return false;
	lt->tries++;
	lt->task.deadline = lib_io_deadline(s, now);
	ini_submit(s->ini, &lt->task, now);
	return true;
}

/* The new session begins with a unit attention of each unit: the command that
 * met it was not carried out (SAM-5 §5.14). */
static bool is_welcome(const struct ini_task *t)
{
	struct scsi_sense sense;

	return !scsi_sense_parse(&sense, t->sense, t->sense_len) &&
	       sense.key == SENSE_UNIT_ATTENTION &&
	       sense.asc >> 8 == SENSE_NEXUS_LOST;
}

bool lib_back_keeps(struct iser_session *s, struct lib_task *lt)
{
	if (!s->url.reconnect)
		return false;
	if (lt->task.err == ERR_ABORTED)
		return issued_again(s, lt);
	if (lt->task.err)
		return kept_after_loss(s, lt);
	s->back.attempts = 0; /* the target does its work again */
	if (!s->back.count || lt->forgave || s->state != SESSION_UP ||
	    !lt->task.status || !is_welcome(&lt->task))
		return false;
	lt->forgave = true;
	ini_submit(s->ini, &lt->task, io_now(s->ctx->loop));
	return true;
}

/* ---- attempts ---- */

static xtime delay(const struct iser_session *s)
{
	xtime d = BACKOFF_MIN << MIN(s->back.attempts, 6u);

	d = MIN(d, BACKOFF_MAX);
	/* Time2Wait is the least before an implicit logout (§13.15) */
	if (s->back.attempts == 0)
		d = MAX(d, s->back.time2wait * XTIME_S);
	return d;
}

static void attempt(struct io_timer *t)
{
	struct iser_session *s =
		container_of(t, struct iser_session, back.timer);

	s->back.attempts++;
	if (lib_session_connect(s))
		lib_back_next(s);
}

static void give_up(struct iser_session *s)
{
	struct lib_task *lt;

	while ((lt = take_first(s)))
		fail_task(s, lt, s->err);
}

/*
 * A connection that we gave up since nothing came any more is still up at the
 * target, and our FIN won't get there before the network does what it should
 * again: its next transmission may be a minute away then. The new login would
 * come first, and the target would have to end the old connection with all that
 * waits on it, which LIO over siw never gets to the end of. So the old socket
 * stays until the path is there again, and its RST goes ahead of the login.
 */
void lib_back_lost(struct iser_session *s)
{
	int fd = net_conn_held(s->net);

	if (fd < 0)
		return;
	if (s->state != SESSION_UP && s->state != SESSION_AWAY) {
		close(fd); /* it was ours to end, and has been */
		return;
	}
	net_reset(s->back.held);
	s->back.held = fd;
}

void lib_back_let_go(struct iser_session *s)
{
	net_reset(s->back.held);
	s->back.held = -1;
}

bool lib_back_next(struct iser_session *s)
{
	bool lost = s->state == SESSION_UP || s->state == SESSION_AWAY;
	xtime d = delay(s);

	if (!s->err)
		s->err = ISER_E_CLOSED;
	if (!lost || s->back.attempts >= s->url.reconnect ||
	    s->err == ISER_E_AUTH ||
	    io_timer_set(s->ctx->loop, &s->back.timer, io_now_exact() + d)) {
		s->state = SESSION_DOWN;
		lib_back_let_go(s); /* nobody will */
		give_up(s);
		lib_io_fail_queue(s, s->err);
		return false;
	}
	s->state = SESSION_AWAY;
	trace_emit(&s->ctx->trace, TRACE_CONN_CLOSE,
		   "the session to %s is lost: %s; attempt %u of %u in %u ms",
		   s->url.target, iser_strerror(s->err), s->back.attempts + 1,
		   s->url.reconnect, (unsigned)(d / XTIME_MS));
	s->err = 0;
	return true;
}

void lib_back_logged_in(struct iser_session *s)
{
	xtime now = io_now(s->ctx->loop);
	struct lib_task *lt, *redo = s->back.redo;

	bool away = s->state == SESSION_AWAY;

	s->back.time2wait = ini_params(s->ini)->default_time2wait;
	s->back.leaving = false;
	s->err = 0;
	s->state = SESSION_UP;
	if (!away)
		return;
	s->back.count++;
	/* what is lost once more meanwhile goes on the new list */
	s->back.redo = NULL;
	s->back.redo_tail = &s->back.redo;
	while ((lt = redo)) {
		redo = lt->next;
		lt->task.deadline = lib_io_deadline(s, now);
		ini_submit(s->ini, &lt->task, now);
	}
	lib_io_pump(s);
}

/* ---- a target that wants us to go (§11.9.1) ---- */

void lib_back_async(struct iser_session *s, const struct iscsi_async *a)
{
	if (!s->url.reconnect)
		return;
	if (a->event == ISCSI_ASYNC_DROP_CONNECTION ||
	    a->event == ISCSI_ASYNC_DROP_SESSION)
		s->back.time2wait = a->param2;
	if (a->event != ISCSI_ASYNC_LOGOUT || s->state != SESSION_UP)
		return;
	s->state = SESSION_AWAY; /* no new commands; the rest comes home */
	s->back.leaving = true;
	lib_back_leave(s);
}

void lib_back_leave(struct iser_session *s)
{
	if (!s->back.leaving || !s->ini || ini_in_flight(s->ini))
		return;
	s->back.leaving = false;
	ini_logout(s->ini, io_now(s->ctx->loop));
}

/* ---- life ---- */

void lib_back_init(struct iser_session *s)
{
	s->back.redo_tail = &s->back.redo;
	s->back.held = -1;
	s->back.timer.fire = attempt;
}

void lib_back_fini(struct iser_session *s)
{
	io_timer_clear(s->ctx->loop, &s->back.timer);
	net_reset(s->back.held);
	if (!s->err)
		s->err = ISER_E_CLOSED;
	give_up(s);
}
