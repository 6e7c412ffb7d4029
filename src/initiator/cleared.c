/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cleared.c: commands that the target no longer has. Where TAS is 0, as it is
 * by default, a target that clears another initiator's commands (LOGICAL UNIT
 * RESET, CLEAR TASK SET, PREEMPT AND ABORT) ends them without a word; a unit
 * attention tells of it later, with some other command, if there is one
 * (SPC-4 §7.5.8, SAM-5 §5.14). Nothing else would ever end them.
 *
 * Where iSCSIProtocolLevel is 2 the target can be asked (QUERY TASK, RFC 7144
 * §6.3): for commands that an attention makes suspect, and for those that are
 * out for long. It is asked twice, a second apart. Elsewhere the suspects are
 * aborted, which tells the same: behind the answer to ABORT TASK nothing comes
 * of the task any more (RFC 7143 §11.5.1).
 *
 * There, too, a ping finds commands that never came to the target: what it got
 * before the ping it acknowledges in the answer (§4.2.2.1), and a number that
 * misses holds up all behind it. Two answers that do not acknowledge it make a
 * command suspect. To send it again is for ErrorRecoveryLevel 1 (§7.1.4.2), but
 * ABORT TASK fills the gap at every level (§7.11). Of what the target has
 * acknowledged and dropped nothing at that protocol level tells but a command
 * behind it, and that is not ours to send: the attention is its issuer's.
 */
#include "initiator/internal.h"

#define AGAIN	 XTIME_S /* between the two answers */
#define SETTLED	 XTIME_S /* a suspect that is younger may end by itself */
#define MISSINGS 2

/* ---- what makes suspect ---- */

/* POWER ON, RESET...; COMMANDS CLEARED BY ANOTHER INITIATOR */
static bool tells_of_clearing(const struct ini_task *t)
{
	struct scsi_sense sense;

	return !scsi_sense_parse(&sense, t->sense, t->sense_len) &&
	       sense.key == SENSE_UNIT_ATTENTION &&
	       (sense.asc >> 8 == ASC_POWER_ON >> 8 ||
		sense.asc >> 8 == ASC_COMMANDS_CLEARED >> 8);
}

/* Commands reach the unit in their order: the first behind the event meets the
 * attention, those before it were there. */
void ini_cleared_attention(struct ini_session *s, const struct ini_task *t)
{
	if (t->status != 0x02 || !tells_of_clearing(t))
		return;
	list_for_each(it, &s->sent) {
		struct ini_task *o = list_entry(it, struct ini_task, link);

		if (o == t || o->lun != t->lun || !sn_lt(o->cmdsn, t->cmdsn))
			continue;
		o->suspect = true;
		s->has_deadlines = true; /* it is looked at soon */
	}
	if (s->has_deadlines)
		ini_rearm(s);
}

/* ---- one that is gone ---- */

static void end_it(struct ini_session *s, struct ini_task *t)
{
	trace_emit(s->cfg.trace, TRACE_TMF,
		   "command %02x: the target does not have it; it was lost, or "
		   "another initiator reset the unit",
		   t->cdb[0]);
	if (dm_deallocate_task_resources(s->dm, &t->dm) != ERR_AGAIN)
		ini_cleared_released(t);
}

void ini_cleared_released(struct ini_task *t)
{
	struct ini_session *s = t->session;

	ini_task_end(t, ERR_ABORTED);
	ini_pump(s);
}

/* ---- asking ---- */

/* The first that was not: what is behind it waits for it. Data that come of it
 * say that it is there; what it sends itself may go out behind the ping, and a
 * target may take a WRITE for deliverable only then. */
static bool is_unacknowledged(const struct ini_session *s,
			      const struct ini_task *t)
{
	return !t->immediate && !t->write && !t->dm.in_done &&
	       t->cmdsn == s->window.expcmdsn;
}

static void take_response(struct ini_session *s, struct ini_task *t,
			  uint8_t response)
{
	bool gone =
		response == ISCSI_TMF_COMPLETE || response == ISCSI_TMF_NO_TASK;

	if (!gone) {
		t->suspect = false;
		t->missing = 0;
		/* what can't be asked for is not asked for again */
		if (s->query_by == INI_QUERY && response != ISCSI_TMF_SUCCEEDED)
			s->no_query = true;
	} else if (s->query_by == INI_ABORT || ++t->missing == MISSINGS) {
		end_it(s, t);
	}
}

static void take_pong(struct ini_session *s, struct ini_task *t)
{
	if (!is_unacknowledged(s, t))
		t->missing = 0;
	else
		t->missing++;
}

static void answered(struct ini_request *r, int err,
		     const struct dm_control *rsp)
{
	struct ini_session *s = container_of(r, struct ini_session, query);
	struct ini_slot *slot = ini_slot_find(s, s->queried);

	s->querying = false;
	if (err || !slot || !slot->task)
		return; /* it was answered meanwhile, or all is over */
	if (rsp->pdu.op == ISCSI_NOP_IN && s->query_by == INI_PING)
		take_pong(s, slot->task);
	else if (rsp->pdu.op == ISCSI_TMF_RESPONSE && s->query_by != INI_PING)
		take_response(s, slot->task, rsp->pdu.tmf_response);
	slot = ini_slot_find(s, s->queried);
	if (!slot || !slot->task || !slot->task->missing)
		return;
	s->has_deadlines = true; /* it is looked at again soon */
	ini_rearm(s);
}

static bool can_query(const struct ini_session *s)
{
	return s->params.protocol_level >= 2 && !s->no_query;
}

static bool is_due(const struct ini_session *s, const struct ini_task *t,
		   xtime now)
{
	xtime age = now - t->looked_at;

	if (t->missing)
		return age >= AGAIN;
	if (t->suspect)
		return age >= SETTLED;
	return (can_query(s) || is_unacknowledged(s, t)) &&
	       s->cfg.query_time != XTIME_NEVER && age >= s->cfg.query_time;
}

static enum ini_query_by way_of(const struct ini_session *s,
				const struct ini_task *t)
{
	if (can_query(s))
		return INI_QUERY;
	return t->suspect || t->missing == MISSINGS ? INI_ABORT : INI_PING;
}

static void ask(struct ini_session *s, struct ini_task *t, xtime now)
{
	int err;

	s->query_by = way_of(s, t);
	s->queried = t->dm.itt;
	s->query.done = answered;
	t->looked_at = now;
	if (s->query_by == INI_PING)
		err = ini_ping(s, &s->query, NULL, 0, XTIME_NEVER);
	else
		err = ini_task_management(s, &s->query,
					  s->query_by == INI_ABORT
						  ? ISCSI_TMF_ABORT_TASK
						  : ISCSI_TMF_QUERY_TASK,
					  t->lun, t, XTIME_NEVER);
	s->querying = !err;
}

/* What two answers did not acknowledge, but something later did, is there: it
 * is not to be aborted any more. */
static void take_acknowledged(const struct ini_session *s, struct ini_task *t)
{
	if (!can_query(s) && !is_unacknowledged(s, t))
		t->missing = 0;
}

void ini_cleared_look(struct ini_session *s, xtime now)
{
	if (s->querying || s->state != ISCSI_S5_LOGGED_IN)
		return;
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		take_acknowledged(s, t);
		if (!is_due(s, t, now))
			continue;
		ask(s, t, now);
		return;
	}
}
