/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cleared.c: commands that the target does not have any more. Where TAS is 0, as in
 * tgt, a target that clears commands of another initiator (LOGICAL UNIT RESET, CLEAR
 * TASK SET, PREEMPT AND ABORT) sends no response to them. A later command, if there
 * is one, ends with a unit attention that reports it (SPC-4 §7.5.8, SAM-5 §5.14).
 * Without this file the cleared commands would wait for ever.
 *
 * Where iSCSIProtocolLevel is 2, QUERY TASK (RFC 7144 §6.3) asks the target for
 * commands that a unit attention makes suspect, and for commands older than
 * query_time; two answers a second apart decide. Elsewhere ABORT TASK ends the
 * suspects: after its response the target sends nothing more of the task (RFC 7143
 * §11.5.1).
 *
 * Elsewhere a ping also finds commands that never reached the target. The answer
 * to the ping acknowledges every command that arrived before it (§4.2.2.1), and a
 * missing CmdSN holds up all later ones. Two answers that do not acknowledge a
 * command make it suspect. ErrorRecoveryLevel 1 sends the command again after the
 * first one (§7.1.4.2), and ABORT TASK fills the gap at every level (§7.11). A command that
 * the target acknowledged and then dropped, or answered wrongly, cannot be asked for at
 * that protocol level: a READ or WRITE of ABORT_AGE is aborted, and a target that does not
 * carry that out loses the session.
 */
#include "initiator/internal.h"
#include "scsi/cdb.h"

#define QUERY_AGAIN XTIME_S /* between the two answers */
#define SUSPECT_AGE XTIME_S /* a younger suspect may still be answered */
#define MISSING_MAX 2	    /* answers that make a command cleared or suspect */
#define ABORT_AGE   (120 * XTIME_S) /* of a READ or WRITE */
#define REFUSED_MAX 3		    /* ABORT TASK of that age without effect */

/* ---- suspects ---- */

/* POWER ON, RESET...; COMMANDS CLEARED BY ANOTHER INITIATOR */
static bool reports_clearing(const struct ini_task *t)
{
	struct scsi_sense sense;

	return !scsi_sense_parse(&sense, t->sense, t->sense_len) &&
	       sense.key == SENSE_UNIT_ATTENTION &&
	       (sense.asc >> 8 == ASC_POWER_ON >> 8 ||
		sense.asc >> 8 == ASC_COMMANDS_CLEARED >> 8);
}

/* Commands reach the unit in their order: the first command after the event meets
 * the unit attention, so that earlier ones were there when the event happened. */
void ini_cleared_attention(struct ini_session *s, const struct ini_task *t)
{
	if (t->status != 0x02 || !reports_clearing(t))
		return;
	list_for_each(it, &s->sent) {
		struct ini_task *o = list_entry(it, struct ini_task, link);

		if (o == t || o->lun != t->lun ||
		    !sn_lt(o->sent.cmdsn, t->sent.cmdsn))
			continue;
		o->check.suspect = true;
		s->has_deadlines = true; /* ini_cleared_check runs soon */
	}
	if (s->has_deadlines)
		ini_rearm(s);
}

/* ---- the end of a cleared command ---- */

static void end_cleared(struct ini_session *s, struct ini_task *t)
{
	trace_emit(s->cfg.trace, TRACE_TMF,
		   "command %02x: the target does not have it; it was lost, or "
		   "another initiator reset the unit",
		   t->cdb[0]);
	t->check.clearing = true;
	/* the datamover of a lost connection has released it already */
	if (!t->sent.conn->dm ||
	    dm_deallocate_task_resources(t->sent.conn->dm, &t->dm) != ERR_AGAIN)
		ini_cleared_released(t);
}

void ini_cleared_released(struct ini_task *t)
{
	struct ini_session *s = t->session;

	t->sent.conn->abandoned++;
	ini_task_end(t, ERR_ABORTED);
	ini_pump(s);
}

/* ---- commands that this initiator ends ---- */

static bool is_cleared_by(const struct ini_task *t, const struct ini_request *r)
{
	if (t->check.clearing || !sn_lt(t->sent.cmdsn, r->cmdsn))
		return false;
	switch ((enum iscsi_tmf)r->function) {
	case ISCSI_TMF_ABORT_TASK_SET:
	case ISCSI_TMF_CLEAR_TASK_SET:
	case ISCSI_TMF_LU_RESET:
		return t->lun == r->lun;
	case ISCSI_TMF_TARGET_WARM_RESET:
	case ISCSI_TMF_TARGET_COLD_RESET:
	case ISCSI_TMF_I_T_NEXUS_RESET:
		return true;
	default:
		return false;
	}
}

static struct ini_task *first_cleared_by(const struct ini_session *s,
					 const struct ini_request *r)
{
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (is_cleared_by(t, r))
			return t;
	}
	return NULL;
}

/* [RFC 7143: 4.2.3.3 #3, 4.2.3.4 #4, 11.5.1 #2] */
void ini_cleared_by(struct ini_session *s, const struct ini_request *r)
{
	const struct ini_request copy = *r; /* a done may end the request */
	struct ini_task *t;

	while ((t = first_cleared_by(s, &copy)))
		end_cleared(s, t);
}

/* ---- FastAbort (§4.2.3.4): the data of commands that are being ended ---- */

static void stop_data(struct ini_task *t, bool stop)
{
	if (!t->write || t->check.clearing || t->check.stopped == stop ||
	    !t->sent.conn->dm)
		return;
	t->check.stopped = stop;
	dm_stop_data(t->sent.conn->dm, &t->dm, stop);
}

static bool is_fast(const struct ini_session *s)
{
	return s->params.task_reporting == ISCSI_FAST_ABORT;
}

/* [RFC 7143: 4.2.3.4 #2] */
void ini_cleared_stop(struct ini_session *s, const struct ini_request *r)
{
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (is_fast(s) && t->sent.conn == r->conn &&
		    is_cleared_by(t, r))
			stop_data(t, true);
	}
}

void ini_cleared_go_on(struct ini_session *s, const struct ini_request *r)
{
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (is_cleared_by(t, r))
			stop_data(t, false);
	}
}

/* A function of this session that is in progress ends commands of this LUN; or
 * NULL. */
static const struct ini_request *own_function(const struct ini_session *s,
					      uint64_t lun)
{
	list_for_each(it, &s->requests) {
		const struct ini_request *r =
			list_entry(it, struct ini_request, link);

		if (r->op != ISCSI_TMF_REQUEST)
			continue;
		if (r->function == ISCSI_TMF_TARGET_WARM_RESET ||
		    r->function == ISCSI_TMF_TARGET_COLD_RESET ||
		    (r->lun == lun &&
		     (r->function == ISCSI_TMF_ABORT_TASK_SET ||
		      r->function == ISCSI_TMF_CLEAR_TASK_SET ||
		      r->function == ISCSI_TMF_LU_RESET)))
			return r;
	}
	return NULL;
}

/*
 * The message is about commands whose R2Ts came before it. A function of this session
 * does not end commands after it, which go on; its response ends the earlier ones. Where
 * another initiator has ended them, no response comes, and they are suspect.
 */
/* [RFC 7143: 4.2.3.5 #3, 11.9.1 #5] */
void ini_cleared_told(struct ini_conn *c, uint64_t lun)
{
	struct ini_session *s = c->session;
	const struct ini_request *r = own_function(s, lun);

	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (t->sent.conn != c || t->lun != lun ||
		    (r && !is_cleared_by(t, r)))
			continue;
		if (t->dm.r2ts)
			stop_data(t, true);
		if (r)
			continue;
		t->check.suspect = true;
		s->has_deadlines = true; /* ini_cleared_check runs soon */
	}
	ini_rearm(s);
}

/* The time for the answer goes on when the request is sent. */
static void send_later(struct ini_task *t, xtime deadline)
{
	t->abort.is_due = true;
	t->abort.time = deadline == XTIME_NEVER ? XTIME_NEVER
						: deadline - t->session->now;
}

static void abort_answered(struct ini_request *r, int err,
			   const struct dm_control *rsp)
{
	struct ini_task *t = container_of(r, struct ini_task, abort.request);

	t->abort.in_progress = false;
	/* the request is lost with the connection */
	if (err && t->sent.conn->state == ISCSI_S8_CLEANUP_WAIT)
		send_later(t, r->deadline);
	if (!err && (rsp->pdu.tmf_response == ISCSI_TMF_COMPLETE ||
		     rsp->pdu.tmf_response == ISCSI_TMF_NO_TASK))
		end_cleared(t->session, t);
}

int ini_abort(struct ini_task *t, xtime deadline)
{
	struct ini_session *s = t->session;
	int err;

	if (t->state == INI_TASK_WAITING) {
		ini_task_end(t, ERR_ABORTED);
		return 0;
	}
	if (t->state != INI_TASK_SENT || t->abort.in_progress ||
	    t->check.clearing)
		return 0;
	if (!t->sent.conn->dm) { /* lost: recover.c calls ini_abort_due */
		send_later(t, deadline);
		return 0;
	}
	t->abort.request.done = abort_answered;
	err = ini_task_management(s, &t->abort.request, ISCSI_TMF_ABORT_TASK,
				  t->lun, t, deadline);
	t->abort.in_progress = !err;
	return err;
}

void ini_abort_due(struct ini_task *t)
{
	xtime time = t->abort.time;
	int err;

	if (!t->abort.is_due)
		return;
	t->abort.is_due = false;
	err = ini_abort(t, time == XTIME_NEVER ? XTIME_NEVER
					       : t->session->now + time);
	if (err)
		trace_emit(t->session->cfg.trace, TRACE_TMF,
			   "command %02x is not aborted: ABORT TASK cannot be "
			   "sent: %s",
			   t->cdb[0], err_str(err));
}

void ini_forget_abort(struct ini_task *t)
{
	t->abort.is_due = false;
	if (!t->abort.in_progress)
		return;
	t->abort.in_progress = false;
	list_del(&t->abort.request.link);
	ini_slot_free(t->session, t->abort.request.itt);
	t->abort.request.conn->abandoned++;
}

/* ---- queries ---- */

/* t is the first command that the target has not acknowledged. Read data and R2Ts of
 * t prove that the target has it. While its unsolicited data are being sent, t does
 * not count: a target may acknowledge a WRITE only with its data. */
static bool is_unacknowledged(const struct ini_session *s, struct ini_task *t)
{
	const struct dm_conn *dm = t->sent.conn->dm; /* NULL: lost */

	return t->sent.cmdsn == s->window.expcmdsn && !t->immediate &&
	       !t->dm.in_done && !t->dm.r2ts && dm &&
	       !(t->write && dm_is_sending(dm, &t->dm));
}

/* It is too early to ask for t: commands before it did not arrive, or t may have to be
 * sent again and its data are still being sent. */
static bool is_early(const struct ini_session *s, struct ini_task *t)
{
	if (t->immediate || sn_lt(t->sent.cmdsn, s->window.expcmdsn))
		return false;
	return t->sent.cmdsn != s->window.expcmdsn ||
	       (ini_loses_pdus(s) && !is_unacknowledged(s, t));
}

void ini_cleared_soon(struct ini_task *t)
{
	struct ini_session *s = t->session;

	if (s->cfg.query_time == XTIME_NEVER)
		return;
	t->check.at = s->now - MIN(s->now, s->cfg.query_time);
	s->has_deadlines = true; /* ini_cleared_check runs soon */
	ini_rearm(s);
}

/* Other commands may last for hours. */
static bool is_short(const struct ini_task *t)
{
	switch (t->cdb[0]) {
	case SCSI_READ_10:
	case SCSI_READ_12:
	case SCSI_READ_16:
	case SCSI_WRITE_10:
	case SCSI_WRITE_12:
	case SCSI_WRITE_16:
		return true;
	default:
		return false;
	}
}

/* An ABORT TASK had no effect. */
static void note_refusal(struct ini_session *s, struct ini_task *t)
{
	if (is_short(t) && ++t->check.refused == REFUSED_MAX)
		ini_kill(s, ERR_TIMEOUT);
}

static void take_response(struct ini_session *s, struct ini_task *t,
			  uint8_t response)
{
	bool gone =
		response == ISCSI_TMF_COMPLETE || response == ISCSI_TMF_NO_TASK;

	if (!gone && s->query.by == INI_ABORT)
		note_refusal(s, t);
	if (!gone) {
		t->check.suspect = false;
		t->check.missing = 0;
		if (!own_function(s, t->lun))
			stop_data(t, false);
		/* a target that does not support QUERY TASK is not asked again */
		if (s->query.by == INI_QUERY && response != ISCSI_TMF_SUCCEEDED)
			s->query.unsupported = true;
	} else if (s->query.by == INI_ABORT ||
		   ++t->check.missing == MISSING_MAX) {
		end_cleared(s, t);
	}
}

static void take_pong(struct ini_session *s, struct ini_task *t)
{
	if (!is_unacknowledged(s, t))
		t->check.missing = 0;
	else
		t->check.missing++;
	t->check.by_ping = t->check.missing;
}

/* [RFC 7144: 6.3 #2, 6.4.2 #1] */
static void query_answered(struct ini_request *r, int err,
			   const struct dm_control *rsp)
{
	struct ini_session *s =
		container_of(r, struct ini_session, query.request);
	struct ini_slot *slot = ini_slot_find(s, s->query.itt);

	s->query.in_progress = false;
	if (!slot || !slot->task)
		return; /* the command has ended meanwhile */
	if (err == ERR_TIMEOUT && s->query.by == INI_ABORT)
		note_refusal(s, slot->task);
	if (err)
		return;
	if (rsp->pdu.op == ISCSI_NOP_IN && s->query.by == INI_PING)
		take_pong(s, slot->task);
	else if (rsp->pdu.op == ISCSI_TMF_RESPONSE && s->query.by != INI_PING)
		take_response(s, slot->task, rsp->pdu.tmf_response);
	slot = ini_slot_find(s, s->query.itt);
	if (!slot || !slot->task || !slot->task->check.missing)
		return;
	s->has_deadlines = true; /* ini_cleared_check runs soon */
	ini_rearm(s);
}

/* [RFC 7144: 6.3 #1, 7.1.1 #1] */
static bool can_query(const struct ini_session *s)
{
	return s->params.protocol_level >= 2 && !s->query.unsupported;
}

/* At ErrorRecoveryLevel 1 the StatSN of the answer to a ping shows that a response was
 * lost (§7.1.4.2). */
static bool can_ping(const struct ini_session *s, struct ini_task *t)
{
	return ini_loses_pdus(s) || is_unacknowledged(s, t);
}

static bool is_overdue(const struct ini_session *s, const struct ini_task *t,
		       xtime now)
{
	xtime each = s->cfg.query_time;

	return !can_query(s) && each != XTIME_NEVER && is_short(t) &&
	       (now - t->check.at >= ABORT_AGE ||
		t->check.pings * each >= ABORT_AGE);
}

static bool is_due(const struct ini_session *s, struct ini_task *t, xtime now)
{
	xtime age = now - t->check.at;

	if (t->check.clearing || is_early(s, t))
		return false;
	if (is_overdue(s, t, now)) {
		t->check.suspect = true; /* ABORT TASK asks for it */
		return true;
	}
	if (t->check.missing)
		return age >= QUERY_AGAIN;
	if (t->check.suspect)
		return age >= SUSPECT_AGE;
	return s->cfg.query_time != XTIME_NEVER && age >= s->cfg.query_time &&
	       (can_query(s) || can_ping(s, t));
}

/* ABORT TASK also fills the place of a command that did not arrive (§7.11). */
static enum ini_query_by choose_query(const struct ini_session *s,
				      struct ini_task *t)
{
	bool is_lost = is_unacknowledged(s, t);

	if (is_lost)
		return t->check.missing < MISSING_MAX ? INI_PING : INI_ABORT;
	if (can_query(s))
		return INI_QUERY;
	return t->check.suspect ? INI_ABORT : INI_PING;
}

/* At ErrorRecoveryLevel 1 a command that did not arrive is sent again (§7.1.4.2,
 * §7.2.1). */
/* [RFC 7143: 7.2.1 #1] */
static bool sends_again(const struct ini_session *s, struct ini_task *t)
{
	if (!ini_loses_pdus(s) || !t->check.missing ||
	    !is_unacknowledged(s, t) || dm_retry(t->sent.conn->dm, &t->dm))
		return false;
	t->check.missing = 0;
	return true;
}

/* A lost request, or answer, is not waited for without end. */
static xtime query_deadline(const struct ini_session *s, xtime now)
{
	return s->cfg.ping_time == XTIME_NEVER ? XTIME_NEVER
					       : now + s->cfg.ping_time;
}

static void send_query(struct ini_session *s, struct ini_task *t, xtime now)
{
	xtime deadline = query_deadline(s, now);
	int err;

	if (sends_again(s, t)) {
		t->check.at = now;
		return;
	}
	s->query.by = choose_query(s, t);
	t->check.pings = s->query.by == INI_PING ? t->check.pings + 1u : 0;
	s->query.itt = t->dm.itt;
	s->query.request.done = query_answered;
	t->check.at = now;
	if (s->query.by == INI_PING)
		err = ini_conn_ping(t->sent.conn, &s->query.request, NULL, 0,
				    deadline);
	else
		err = ini_task_management(s, &s->query.request,
					  s->query.by == INI_ABORT
						  ? ISCSI_TMF_ABORT_TASK
						  : ISCSI_TMF_QUERY_TASK,
					  t->lun, t, deadline);
	s->query.in_progress = !err;
}

/* A command that was acknowledged after all is at the target: it must not be
 * aborted. */
static void clear_if_acknowledged(const struct ini_session *s,
				  struct ini_task *t)
{
	if (t->check.by_ping && !is_unacknowledged(s, t))
		t->check.missing = 0;
}

void ini_cleared_check(struct ini_session *s, xtime now)
{
	if (s->query.in_progress || !ini_is_full_feature(s))
		return;
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		clear_if_acknowledged(s, t);
		if (!is_due(s, t, now))
			continue;
		send_query(s, t, now);
		return;
	}
}
