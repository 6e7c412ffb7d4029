/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retry.c: issues commands again that a unit refused and may execute later: after
 * BUSY and TASK SET FULL (SAM-5 §5.3.1), after NOT READY of a unit that is
 * becoming ready, and after unit attentions (SAM-5 §5.14). The unit has not
 * executed these commands, so any command may be issued again, whatever its
 * effect. RESERVATION CONFLICT and ACA ACTIVE go to the caller, TASK ABORTED to
 * reconnect.c.
 * With iser_io.no_retry, every status does.
 *
 * After a unit attention a command is issued again at once, LIB_ATTENTIONS_MAX times
 * at most. Other refused commands wait, longer each time and not less than the
 * status qualifier says, within the URL's `retry` seconds after the first
 * refusal. New commands for a unit wait while commands that the unit refused for
 * lack of room do. Each command that completes leaves room in the task set, and
 * releases the first command that waits.
 */
#include "lib/internal.h"
#include "scsi/cdb.h"

#define FULL_DELAY  (10 * XTIME_MS)
#define READY_DELAY (100 * XTIME_MS)
#define DELAY_MAX   XTIME_S

/* SAM-5 table 33 */
#define STATUS_CHECK_CONDITION 0x02
#define STATUS_BUSY	       0x08
#define STATUS_TASK_SET_FULL   0x28

/* SAM-5 §5.3.2: bits 13 to 0 of the status qualifier */
#define QUALIFIER_MASK	  0x3fff
#define QUALIFIER_WAIT	  0x3fef /* up to here: units of 100 ms */
#define QUALIFIER_STOP	  0x3ffe /* send no more commands to the unit */
#define QUALIFIER_UNIT_MS 100

/* ---- refusals: functions of a result alone ---- */

/* Commands that refer to the data of a medium: with another medium in the drive
 * they would read or change other data. */
static bool depends_on_medium(uint8_t opcode)
{
	switch (opcode) {
	case SCSI_READ_6:
	case SCSI_WRITE_6:
	case SCSI_READ_10:
	case SCSI_WRITE_10:
	case SCSI_WRITE_AND_VERIFY_10:
	case SCSI_VERIFY_10:
	case SCSI_WRITE_SAME_10:
	case SCSI_UNMAP:
	case SCSI_READ_12:
	case SCSI_WRITE_12:
	case SCSI_READ_16:
	case SCSI_WRITE_16:
	case SCSI_COMPARE_AND_WRITE:
	case SCSI_ORWRITE_16:
	case SCSI_WRITE_AND_VERIFY_16:
	case SCSI_VERIFY_16:
	case SCSI_WRITE_SAME_16:
	case SCSI_WRITE_ATOMIC_16:
		return true;
	default:
		return false;
	}
}

/* Additional sense codes of NOT READY that last seconds (SPC-4 annex D): becoming
 * ready, operation in progress, long write in progress, asymmetric access state
 * transition, space allocation in progress, START STOP UNIT in progress. FORMAT
 * UNIT and SANITIZE, which last hours, are not among them. */
static bool passes_soon(uint16_t asc)
{
	switch (asc) {
	case 0x0401:
	case 0x0407:
	case 0x0408:
	case 0x040a:
	case 0x0414:
	case 0x041a:
		return true;
	default:
		return false;
	}
}

static enum lib_refusal refusal_by_sense(const struct ini_task *t)
{
	struct scsi_sense sense;

	/* a deferred error belongs to an earlier command */
	if (scsi_sense_parse(&sense, t->sense, t->sense_len) || sense.deferred)
		return LIB_FINAL;
	if (sense.key == SENSE_NOT_READY)
		return passes_soon(sense.asc) ? LIB_NOT_READY : LIB_FINAL;
	if (sense.key != SENSE_UNIT_ATTENTION)
		return LIB_FINAL;
	/* the medium may be another one */
	if (sense.asc >> 8 == ASC_MEDIUM_MAY_HAVE_CHANGED >> 8 &&
	    depends_on_medium(t->cdb[0]))
		return LIB_FINAL;
	return LIB_ATTENTION;
}

enum lib_refusal lib_retry_refusal(const struct ini_task *t)
{
	if (t->err)
		return LIB_FINAL;
	switch (t->status) {
	case STATUS_CHECK_CONDITION:
		return refusal_by_sense(t);
	case STATUS_BUSY:
	case STATUS_TASK_SET_FULL:
		if ((t->qualifier & QUALIFIER_MASK) == QUALIFIER_STOP)
			return LIB_FINAL;
		return t->status == STATUS_BUSY ? LIB_BUSY : LIB_FULL;
	default:
		return LIB_FINAL;
	}
}

xtime lib_retry_delay(enum lib_refusal why, unsigned refusals,
		      uint16_t qualifier)
{
	unsigned asked = qualifier & QUALIFIER_MASK;
	xtime d = why == LIB_NOT_READY ? READY_DELAY : FULL_DELAY;

	d = MIN(d << MIN(refusals, 10u), DELAY_MAX);
	if (why != LIB_NOT_READY && asked <= QUALIFIER_WAIT)
		d = MAX(d, asked * QUALIFIER_UNIT_MS * XTIME_MS);
	return d;
}

/* ---- commands that wait ---- */

/* Sets the timer for all commands that wait and one that is due at `at`. */
static int set_retry_timer(struct iser_session *s, xtime at)
{
	for (struct lib_task *lt = s->retry.first; lt; lt = lt->next)
		at = MIN(at, lt->due);
	return io_timer_set(s->ctx->loop, &s->retry.timer, at);
}

static void append_task(struct iser_session *s, struct lib_task *lt)
{
	lt->next = NULL;
	*s->retry.tail = lt;
	s->retry.tail = &lt->next;
}

/* Removes the task at *link from the list and returns it. */
static struct lib_task *remove_task(struct iser_session *s,
				    struct lib_task **link)
{
	struct lib_task *lt = *link;

	*link = lt->next;
	if (!*link)
		s->retry.tail = link;
	return lt;
}

static bool can_issue(const struct iser_session *s)
{
	return s->state == SESSION_UP && s->ini;
}

static void on_retry_timer(struct io_timer *t)
{
	struct iser_session *s =
		container_of(t, struct iser_session, retry.timer);
	xtime now = io_now(s->ctx->loop);
	struct lib_task *lt = s->retry.first;

	if (!can_issue(s))
		return; /* lib_retry_resume or lib_retry_fail follows */
	/* commands that are refused again from within go to a new list */
	s->retry.first = NULL;
	s->retry.tail = &s->retry.first;
	while (lt) {
		struct lib_task *next = lt->next;

		if (lt->due <= now && can_issue(s))
			lib_hold_issue(s, lt);
		else
			append_task(s, lt);
		lt = next;
	}
	set_retry_timer(s, XTIME_NEVER);
	lib_io_pump(s);
}

/* A set of paths hears of unit attentions, and may have another path for a command
 * that waits for a transition of the access state. Returns true if the set decides
 * on the command. */
static bool tell_set(struct iser_session *s, const struct lib_task *lt)
{
	const struct ini_task *t = &lt->task;
	struct scsi_sense sense;

	if (!s->member.ops || scsi_sense_parse(&sense, t->sense, t->sense_len))
		return false;
	if (sense.key == SENSE_UNIT_ATTENTION)
		s->member.ops->attention(s->member.arg, sense.asc);
	return sense.key == SENSE_NOT_READY &&
	       sense.asc == ASC_ACCESS_TRANSITION;
}

bool lib_retry_takes(struct iser_session *s, struct lib_task *lt)
{
	enum lib_refusal why = lib_retry_refusal(&lt->task);
	xtime now = io_now(s->ctx->loop), limit;

	if (why == LIB_FINAL || lt->io->no_retry || lt->is_aborting ||
	    !can_issue(s) || tell_set(s, lt))
		return false;
	if (why == LIB_ATTENTION) {
		if (lt->attentions++ >= LIB_ATTENTIONS_MAX)
			return false;
		lib_hold_issue(s, lt);
		return true;
	}
	if (!lt->refusals)
		lt->refused_at = now;
	limit = lt->refused_at + s->url.retry * XTIME_S;
	if (now >= limit)
		return false;
	lt->why = why;
	lt->due =
		now + lib_retry_delay(why, lt->refusals++, lt->task.qualifier);
	lt->due = MIN(lt->due, limit);
	if (set_retry_timer(s, lt->due))
		return false; /* out of memory: the status is the caller's */
	append_task(s, lt);
	return true;
}

void lib_retry_first(struct iser_session *s, int lun)
{
	for (struct lib_task **link = &s->retry.first; *link;
	     link = &(*link)->next) {
		if ((*link)->io->lun != lun || (*link)->why != LIB_FULL)
			continue;
		if (can_issue(s))
			lib_hold_issue(s, remove_task(s, link));
		return;
	}
}

void lib_retry_resume(struct iser_session *s)
{
	if (s->retry.first)
		set_retry_timer(s, XTIME_NEVER);
}

bool lib_retry_remove(struct iser_session *s, const struct lib_task *lt)
{
	for (struct lib_task **link = &s->retry.first; *link;
	     link = &(*link)->next)
		if (*link == lt) {
			remove_task(s, link);
			return true;
		}
	return false;
}

void lib_retry_fail(struct iser_session *s, int err)
{
	while (s->retry.first)
		lib_io_fail_task(s, remove_task(s, &s->retry.first), err);
	io_timer_clear(s->ctx->loop, &s->retry.timer);
}

void lib_retry_init(struct iser_session *s)
{
	s->retry.tail = &s->retry.first;
	s->retry.timer.fire = on_retry_timer;
}
