/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reconnect.c: the commands of a session whose connection was lost, and when it
 * logs in again. This is session recovery (RFC 7143 §7.1.4): the new login has
 * the ISID of the lost session and TSIH 0, so the target ends that session and
 * its tasks before the login succeeds (§6.3.5). A command of the lost connection
 * is therefore never executed after one that is issued now.
 *
 * A command that exceeds its timeout is one reason for a loss: the role gives the
 * connection up, or the command was never sent, because the target keeps its command
 * window closed: then this side gives the connection up. Its timeout begins again
 * each time it is issued.
 *
 * At ErrorRecoveryLevel 2 the role keeps the commands of a session whose last connection was
 * lost, until an attempt continues the session (RFC 7143 §6.3.6). Only if the target does
 * not have that session any more, a new one is made as above.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cold.h"
#include "lib/internal.h"
#include "scsi/cdb.h"

#define BACKOFF_MIN (100 * XTIME_MS)
#define BACKOFF_MAX (5 * XTIME_S)

#define TARGET_ERROR 3 /* Status-Class (§11.13.5) */

#define SENSE_NEXUS_LOST 0x29 /* POWER ON, RESET, I_T NEXUS LOSS ... */

/* ---- commands that may be executed twice ---- */

/* The target may have executed a lost command, also in part. A READ, WRITE or
 * query has the same effect once and twice; a command that compares, reserves or
 * copies does not. */
static const uint8_t repeatable[] = {
	0x00, 0x08, 0x0a, 0x12, 0x1a, 0x25, 0x28, 0x2a, 0x2e, 0x2f, 0x34,
	0x35, 0x41, 0x42, 0x4d, 0x5a, 0x5e, 0x88, 0x8a, 0x8e, 0x8f, 0x90,
	0x91, 0x93, 0x9c, 0x9e, 0xa0, 0xa3, 0xa8, 0xaa, 0xae, 0xaf,
};

bool lib_reconnect_may_repeat(uint8_t opcode)
{
	for (size_t i = 0; i < sizeof(repeatable); i++)
		if (opcode == repeatable[i])
			return true;
	return false;
}

bool lib_reconnect_changes_data(uint8_t opcode)
{
	switch (opcode) {
	case SCSI_WRITE_6:
	case SCSI_WRITE_10:
	case SCSI_WRITE_AND_VERIFY_10:
	case SCSI_WRITE_SAME_10:
	case SCSI_UNMAP:
	case SCSI_WRITE_16:
	case SCSI_WRITE_AND_VERIFY_16:
	case SCSI_WRITE_SAME_16:
	case SCSI_WRITE_ATOMIC_16:
	case SCSI_WRITE_12:
	case SCSI_WRITE_AND_VERIFY_12:
		return true;
	default:
		return false;
	}
}

/* ---- tasks ---- */

static struct lib_task *take_redo(struct iser_session *s)
{
	struct lib_task *lt = s->reconnect.redo;

	if (!lt)
		return NULL;
	s->reconnect.redo = lt->next;
	if (!s->reconnect.redo)
		s->reconnect.redo_tail = &s->reconnect.redo;
	return lt;
}

static void append_redo(struct iser_session *s, struct lib_task *lt)
{
	lt->tries++;
	lt->saw_attention = false;
	lt->next = NULL;
	*s->reconnect.redo_tail = lt;
	s->reconnect.redo_tail = &lt->next;
}

/* Keeps a task of a lost connection for the next one, if it may be repeated. */
static bool keep_after_loss(struct iser_session *s, struct lib_task *lt)
{
	const struct ini_task *t = &lt->task;

	if (!lib_is_loss(t->err) || s->reconnect.is_late)
		return false;
	if (s->state == SESSION_UP)
		lib_session_go(s, SESSION_AWAY);
	if (s->state != SESSION_AWAY || lt->tries >= s->url.reconnect ||
	    !lib_reconnect_may_repeat(t->cdb[0]))
		return false;
	append_redo(s, lt);
	if (ini_is_up(s->ini)) /* it waited for the command window */
		ini_kill(s->ini, t->err);
	return true;
}

/* Issues a task again that the target dropped: at once, or when a session that is being
 * continued has its connections. */
static bool issue_dropped(struct iser_session *s, struct lib_task *lt)
{
	if ((s->state != SESSION_UP && s->state != SESSION_AWAY) ||
	    lt->tries >= s->url.reconnect ||
	    !lib_reconnect_may_repeat(lt->task.cdb[0]))
		return false;
	if (s->state == SESSION_AWAY) {
		append_redo(s, lt);
		return true;
	}
	lt->tries++;
	lib_hold_doubt(s, lt);
	lib_hold_issue(s, lt);
	return true;
}

/* Returns whether a command got the unit attention with which a new I_T nexus
 * begins; the unit has not executed that command (SAM-5 §5.14). */
static COLD bool is_nexus_attention(const struct ini_task *t)
{
	struct scsi_sense sense;

	return !scsi_sense_parse(&sense, t->sense, t->sense_len) &&
	       sense.key == SENSE_UNIT_ATTENTION &&
	       sense.asc >> 8 == SENSE_NEXUS_LOST;
}

bool lib_reconnect_takes(struct iser_session *s, struct lib_task *lt)
{
	if (!s->url.reconnect || lt->is_aborting)
		return false;
	if (lib_was_dropped(&lt->task))
		return issue_dropped(s, lt);
	if (lt->task.err)
		return keep_after_loss(s, lt);
	/* the target executes commands again */
	s->reconnect.attempts = 0;
	s->reconnect.lacks_progress = false;
	if (!s->reconnect.count || lt->saw_attention ||
	    s->state != SESSION_UP || !lt->task.status ||
	    !is_nexus_attention(&lt->task))
		return false;
	lt->saw_attention = true;
	if (!lib_hold_heard(s, lt))
		lib_hold_issue(s, lt);
	return true;
}

bool lib_reconnect_remove(struct iser_session *s, const struct lib_task *lt)
{
	for (struct lib_task **link = &s->reconnect.redo; *link;
	     link = &(*link)->next) {
		if (*link != lt)
			continue;
		*link = lt->next;
		if (!*link)
			s->reconnect.redo_tail = link;
		return true;
	}
	return false;
}

/* ---- attempts ---- */

/* Before Time2Wait is over the target may not have ended the old session
 * (DefaultTime2Wait, §13.15, or that of an Asynchronous Message, §11.9.1). */
static bool waits_for_target(const struct iser_session *s)
{
	return s->reconnect.attempts == 0 &&
	       s->reconnect.time2wait * XTIME_S > BACKOFF_MIN;
}

/* How many attempts follow each other. A target that has asked for the logout gets one in any
 * case: nothing was lost. */
static unsigned most_attempts(const struct iser_session *s)
{
	return MAX(s->url.reconnect, s->reconnect.was_asked ? 1u : 0u);
}

static xtime attempt_delay(const struct iser_session *s)
{
	xtime d = BACKOFF_MIN << MIN(s->reconnect.attempts, 6u);

	if (waits_for_target(s))
		return lib_time2wait(&s->url, s->reconnect.time2wait);
	return MIN(d, BACKOFF_MAX);
}

void lib_reconnect_begin(struct iser_session *s)
{
	s->reconnect.attempts++;
	lib_redirect_begin(s);
}

static void fail_waiting(struct iser_session *s)
{
	struct lib_task *lt;

	while ((lt = take_redo(s)))
		lib_io_fail_task(s, lt, s->err);
	lib_retry_fail(s, s->err);
	lib_hold_end(s, s->err);
}

/* ---- replacement_timeout ---- */

/* All commands fail, and further ones do until the next login. */
static void on_late(struct io_timer *t)
{
	struct iser_session *s =
		container_of(t, struct iser_session, reconnect.late);
	int was = s->err;
	char why[256];

	snprintf(why, sizeof(why), "%s", iser_message(s->ctx));
	s->reconnect.is_late = true;
	s->err = lib_fail(s->ctx, ISER_E_NO_PATH,
			  "%s at %s:%u: no session within "
			  "replacement_timeout%s%s",
			  s->url.target, s->url.host, s->url.port,
			  why[0] ? ": " : "", why);
	trace_emit(&s->ctx->trace, TRACE_CONN_TIMEOUT, "%s",
		   iser_message(s->ctx));
	fail_waiting(s);
	lib_io_fail_queue(s, s->err);
	s->err = was;
	if (s->ini && ini_is_waiting(s->ini))
		ini_kill(s->ini, ERR_TIMEOUT);
}

/* The session is lost, or was already. */
static void begin_late(struct iser_session *s)
{
	struct lib_reconnect *r = &s->reconnect;
	unsigned seconds = s->url.replacement_timeout;

	if (!seconds || r->is_late || r->late.heap_index || s->member.ops)
		return;
	if (seconds == ISER_NO_TIME)
		seconds = 0;
	io_timer_set(s->ctx->loop, &r->late,
		     io_now_exact() + seconds * XTIME_S);
}

/*
 * The target still has a connection that this side gave up because no more bytes
 * came, and a FIN does not arrive before the network works again, perhaps a minute
 * later. The new login would come first, and the target would have to end the old
 * connection with all requests that wait on it, which LIO over siw never
 * completes. So the old socket stays open until the new connection is
 * established, and is then reset before the login.
 * The login that continues a session at ErrorRecoveryLevel 2 is refused by LIO while it
 * still has the old connection. That gets a FIN at once.
 */
void lib_reconnect_lost(struct iser_session *s, struct lib_conn *c)
{
	int fd = net_conn_held(c->net);
	int *held = &s->reconnect.held[c - s->conns];

	if (fd < 0)
		return;
	if (ini_is_up(s->ini)) { /* the session goes on without it (§7.1.4.3) */
		net_reset(fd);
		return;
	}
	if ((c != s->conns && !c->is_up) ||
	    (s->state != SESSION_UP && s->state != SESSION_AWAY)) {
		close(fd); /* not lost: this side ended the connection */
		return;
	}
	net_reset(*held);
	*held = fd;
	if (ini_is_waiting(s->ini))
		shutdown(fd, SHUT_WR);
}

void lib_reconnect_reset_held(struct iser_session *s)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		net_reset(s->reconnect.held[i]);
		s->reconnect.held[i] = -1;
	}
}

/* ---- continuation of a session at ErrorRecoveryLevel 2 (§6.3.6) ---- */

bool lib_reconnect_may_continue(const struct iser_session *s)
{
	return s->ini && ini_is_waiting(s->ini) && !s->reconnect.is_refused &&
	       io_now_exact() < s->reconnect.until;
}

/* The target ends the commands Time2Wait + Time2Retain after the loss (§13.16): from then
 * on a new session has to take over. */
static void begin_waiting(struct iser_session *s)
{
	struct lib_reconnect *r = &s->reconnect;

	r->leaving = false;
	if (r->until)
		return;
	r->until = io_now_exact() +
		   (xtime)(r->time2wait + r->time2retain) * XTIME_S;
	r->is_refused = r->was_full = false;
}

bool lib_reconnect_waits(struct iser_session *s)
{
	xtime now = io_now_exact(), d = attempt_delay(s);
	bool lost = s->state == SESSION_UP || s->state == SESSION_AWAY;

	if (!s->ini || !ini_is_waiting(s->ini))
		return false;
	begin_waiting(s);
	begin_late(s);
	/* Else it would go on like that. Connections that break often let no
	 * command end, either: so only the last attempt gives the session up. */
	if (s->reconnect.lacks_progress &&
	    s->reconnect.attempts + 1 >= most_attempts(s))
		s->reconnect.is_refused = true;
	if (s->state == SESSION_UP) /* also for commands that ini_kill ends */
		lib_session_go(s, SESSION_AWAY);
	if (!lost || !lib_reconnect_may_continue(s) ||
	    s->reconnect.attempts >= most_attempts(s) ||
	    io_timer_set(s->ctx->loop, &s->reconnect.timer,
			 MIN(now + d, s->reconnect.until))) {
		ini_kill(s->ini, ERR_CLOSED);
		return false;
	}
	trace_emit(&s->ctx->trace, TRACE_CONN_TIMEOUT,
		   "the session to %s has no connection; attempt %u of %u to "
		   "continue it in %u ms (RFC 7143 §6.3.6)",
		   s->url.target, s->reconnect.attempts + 1, most_attempts(s),
		   (unsigned)(d / XTIME_MS));
	s->err = 0;
	return true;
}

/* A target that answers with a status of its own may answer otherwise later; an error of
 * this initiator stays one: the session does not exist (§11.13.5), or it is elsewhere. But
 * LIO counts the connection that the login reinstates, and ends it only with that login. */
static bool may_accept_later(struct lib_reconnect *r, uint16_t status)
{
	if (status == ISCSI_LOGIN_TOO_MANY_CONNECTIONS && !r->was_full) {
		r->was_full = true;
		return true;
	}
	return status >> 8 == TARGET_ERROR;
}

static unsigned seconds_of(unsigned seconds, unsigned initial)
{
	return seconds && seconds != ISER_NO_TIME ? seconds : initial;
}

/* Until lib_reconnect_stuck: as long as a connection is given for the answer to a ping. */
static xtime stuck_time(const struct iser_url *u)
{
	return (seconds_of(u->noop_out_interval, 5) +
		seconds_of(u->noop_out_timeout, 10)) *
	       XTIME_S;
}

void lib_reconnect_continued(struct iser_session *s, int err,
			     const struct iscsi_login_failure *f)
{
	s->reconnect.is_continuing = false;
	if (!err) {
		s->reconnect.until = 0;
		s->reconnect.lacks_progress = true;
		io_timer_set(s->ctx->loop, &s->reconnect.timer,
			     io_now_exact() + stuck_time(&s->url));
	} else if (f && f->status) {
		s->reconnect.is_refused =
			!may_accept_later(&s->reconnect, f->status);
	}
}

/* What the target has taken over (TASK REASSIGN) may last. */
void lib_reconnect_stuck(struct iser_session *s)
{
	if (!s->reconnect.lacks_progress || !ini_in_flight(s->ini) ||
	    ini_has_moved(s->ini))
		return;
	trace_emit(&s->ctx->trace, TRACE_CONN_TIMEOUT,
		   "the session to %s was continued, and the target answers no "
		   "command: a new session follows",
		   s->url.target);
	ini_kill(s->ini, ERR_TIMEOUT);
}

static void fail_asked(struct iser_session *s)
{
	char why[256];

	snprintf(why, sizeof(why), "%s", iser_message(s->ctx));
	lib_fail(s->ctx, s->err,
		 "%s at %s:%u: the target asked for a logout, and the next "
		 "login failed: %s",
		 s->url.target, s->url.host, s->url.port, why);
}

bool lib_reconnect_next(struct iser_session *s)
{
	bool lost = s->state == SESSION_UP || s->state == SESSION_AWAY;
	xtime d = attempt_delay(s);

	if (!s->err)
		s->err = ISER_E_CLOSED;
	if (!lost || s->reconnect.attempts >= most_attempts(s) ||
	    s->err == ISER_E_AUTH ||
	    io_timer_set(s->ctx->loop, &s->reconnect.timer,
			 io_now_exact() + d)) {
		io_timer_clear(s->ctx->loop, &s->reconnect.late);
		if (s->reconnect.was_asked)
			fail_asked(s);
		lib_session_go(s, SESSION_DOWN);
		if (!s->member.ops) /* else the next session of the path gets
				       them */
			lib_reconnect_reset_held(s);
		fail_waiting(s);
		lib_io_fail_queue(s, s->err);
		return false;
	}
	lib_session_go(s, SESSION_AWAY);
	begin_late(s);
	trace_emit(&s->ctx->trace, TRACE_CONN_TIMEOUT,
		   "the session to %s is lost: %s; attempt %u of %u in %u "
		   "ms%s",
		   s->url.target, iser_strerror(s->err),
		   s->reconnect.attempts + 1, most_attempts(s),
		   (unsigned)(d / XTIME_MS),
		   waits_for_target(s) ? " (Time2Wait, RFC 7143 §13.15)" : "");
	s->err = 0;
	return true;
}

/* A redirection has led to another portal group. So the login has not ended the lost
 * session (§6.3.5), which may still execute commands that change data. */
static void fail_changes(struct iser_session *s)
{
	struct lib_task **link = &s->reconnect.redo, *lt;

	while ((lt = *link)) {
		if (!lib_reconnect_changes_data(lt->task.cdb[0])) {
			link = &lt->next;
			continue;
		}
		*link = lt->next;
		lib_io_fail_task(s, lt, ISER_E_CLOSED);
	}
	s->reconnect.redo_tail = link;
}

void lib_reconnect_logged_in(struct iser_session *s)
{
	struct lib_task *lt, *redo = s->reconnect.redo;
	bool away = s->state == SESSION_AWAY;

	s->reconnect.time2wait = ini_params(s->ini)->default_time2wait;
	s->reconnect.time2retain = ini_params(s->ini)->default_time2retain;
	s->reconnect.until = 0;
	if (away && s->reconnect.group != ini_tpgt(s->ini))
		fail_changes(s);
	s->reconnect.group = ini_tpgt(s->ini);
	s->reconnect.leaving = s->reconnect.was_asked = false;
	s->reconnect.is_late = false;
	io_timer_clear(s->ctx->loop, &s->reconnect.late);
	s->err = 0;
	lib_session_go(s, SESSION_UP);
	if (!away)
		return;
	s->reconnect.count++;
	/* tasks that are lost again from within go to a new list */
	s->reconnect.redo = NULL;
	s->reconnect.redo_tail = &s->reconnect.redo;
	while ((lt = redo)) {
		redo = lt->next;
		lib_hold_issue(s, lt);
	}
	lib_hold_resume(s);
	lib_retry_resume(s);
	lib_io_pump(s);
}

/* ---- a target that asks for a logout (§11.9.1) ---- */

/* A session logs in again also without the key `reconnect`. A discovery session ends
 * soon. */
/* [RFC 7143: 11.9.1 #2] */
void lib_reconnect_async(struct iser_session *s, const struct iscsi_async *a)
{
	if (lib_login_recovers(s) && (a->event == ISCSI_ASYNC_DROP_CONNECTION ||
				      a->event == ISCSI_ASYNC_DROP_SESSION)) {
		s->reconnect.time2wait = a->param2;
		s->reconnect.time2retain = a->param3;
	}
	if (a->event != ISCSI_ASYNC_LOGOUT || s->state != SESSION_UP ||
	    !s->url.target[0])
		return;
	lib_session_go(s, SESSION_AWAY); /* stops new commands */
	s->reconnect.leaving = true;
	s->reconnect.was_asked = !s->member.ops;
	lib_reconnect_leave(s);
}

void lib_reconnect_leave(struct iser_session *s)
{
	if (!s->reconnect.leaving || !s->ini || ini_in_flight(s->ini))
		return;
	s->reconnect.leaving = false;
	ini_logout(s->ini, io_now(s->ctx->loop));
}

/* ---- life ---- */

void lib_reconnect_init(struct iser_session *s,
			void (*fire)(struct io_timer *t))
{
	s->reconnect.redo_tail = &s->reconnect.redo;
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++)
		s->reconnect.held[i] = -1;
	s->reconnect.timer.fire = fire;
	s->reconnect.late.fire = on_late;
}

void lib_reconnect_fini(struct iser_session *s)
{
	io_timer_clear(s->ctx->loop, &s->reconnect.timer);
	io_timer_clear(s->ctx->loop, &s->reconnect.late);
	lib_reconnect_reset_held(s);
	if (!s->err)
		s->err = ISER_E_CLOSED;
	fail_waiting(s);
}
