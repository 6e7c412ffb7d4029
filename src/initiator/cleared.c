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
		   "command %02x: the target no longer has it; another "
		   "initiator may have reset the unit",
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

static void take_answer(struct ini_session *s, struct ini_task *t,
			uint8_t response)
{
	bool gone =
		response == ISCSI_TMF_COMPLETE || response == ISCSI_TMF_NO_TASK;

	if (!gone) {
		t->suspect = false;
		t->missing = 0;
		/* what can't be asked for is not asked for again */
		if (!s->query_aborts && response != ISCSI_TMF_SUCCEEDED)
			s->no_query = true;
	} else if (s->query_aborts || ++t->missing == MISSINGS) {
		end_it(s, t);
	}
}

static void answered(struct ini_request *r, int err,
		     const struct dm_control *rsp)
{
	struct ini_session *s = container_of(r, struct ini_session, query);
	struct ini_slot *slot = ini_slot_find(s, s->queried);

	s->querying = false;
	if (err || rsp->pdu.op != ISCSI_TMF_RESPONSE || !slot || !slot->task)
		return; /* it was answered meanwhile, or all is over */
	take_answer(s, slot->task, rsp->pdu.tmf_response);
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
	return can_query(s) && s->cfg.query_time != XTIME_NEVER &&
	       age >= s->cfg.query_time;
}

static void ask(struct ini_session *s, struct ini_task *t, xtime now)
{
	s->query_aborts = !can_query(s);
	s->queried = t->dm.itt;
	s->query.done = answered;
	t->looked_at = now;
	s->querying = !ini_task_management(
		s, &s->query,
		s->query_aborts ? ISCSI_TMF_ABORT_TASK : ISCSI_TMF_QUERY_TASK,
		t->lun, t, XTIME_NEVER);
}

void ini_cleared_look(struct ini_session *s, xtime now)
{
	if (s->querying || s->state != ISCSI_S5_LOGGED_IN)
		return;
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (!is_due(s, t, now))
			continue;
		ask(s, t, now);
		return;
	}
}
