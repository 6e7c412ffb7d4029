/* SPDX-License-Identifier: BSD-2-Clause */
/* task.c: SCSI commands: tags, the command window, responses, timeouts. */
#include <string.h>

#include "initiator/internal.h"

/* ---- Initiator Task Tags: slot in the low 16 bits, generation above ---- */

#define ITT_GENERATION 0x10000u

/* [RFC 7143: 11.2.1.8 #1-2] */
uint32_t ini_slot_take(struct ini_session *s, struct ini_task *t,
		       struct ini_request *r)
{
	struct ini_slot *slot;

	if (s->free_slot >= s->nslots)
		return ISCSI_RESERVED_TAG;
	slot = &s->slots[s->free_slot];
	s->free_slot = slot->next_free;
	slot->task = t;
	slot->request = r;
	/* bit 31 is 0, so that no tag is ISCSI_RESERVED_TAG */
	slot->itt = (slot->itt + ITT_GENERATION) & 0x7fffffffu;
	return slot->itt;
}

uint32_t ini_slot_take_again(struct ini_session *s, struct ini_request *r)
{
	uint32_t i = r->itt & 0xffff, *at = &s->free_slot;

	while (*at < s->nslots && *at != i)
		at = &s->slots[*at].next_free;
	if (*at != i || s->slots[i].itt != r->itt)
		return ISCSI_RESERVED_TAG;
	*at = s->slots[i].next_free;
	s->slots[i].request = r;
	return r->itt;
}

struct ini_slot *ini_slot_find(struct ini_session *s, uint32_t itt)
{
	uint32_t i = itt & 0xffff;

	if (i >= s->nslots || s->slots[i].itt != itt ||
	    (!s->slots[i].task && !s->slots[i].request))
		return NULL;
	return &s->slots[i];
}

void ini_slot_free(struct ini_session *s, uint32_t itt)
{
	uint32_t i = itt & 0xffff;

	s->slots[i].task = NULL;
	s->slots[i].request = NULL;
	s->slots[i].next_free = s->free_slot;
	s->free_slot = i;
}

/* ---- sending ---- */

static uint32_t edtl_of(const struct ini_task *t)
{
	return (uint32_t)(t->write ? t->out.len : t->read ? t->in.len : 0);
}

/* [RFC 7143: 11.2.2.3 #1, 11.3.4 #1, 11.3.5 #1] */
/* §11.2.2: the bytes of the CDB after the first 16, and the length of the read data of a
 * bidirectional command. */
static int put_ahs(const struct ini_task *t, uint8_t *p, size_t max)
{
	const struct iscsi_ahs ahs = {
		.ext_cdb = t->cdb + 16,
		.ext_cdb_len = t->cdb_len > 16 ? t->cdb_len - 16u : 0,
		.has_bidi = t->read && t->write,
		.bidi_read_edtl = (uint32_t)t->in.len,
	};

	return iscsi_ahs_encode(&ahs, p, max);
}

/* Sends t on the connection of its allegiance. */
/* [RFC 7143: 4.2.2.1 #1, 11.3.1 #2] */
/* [RFC 7144: 5.1.1 #1] */
static int send_command(struct ini_session *s, struct ini_task *t,
			uint32_t cmdsn)
{
	bool both = t->read && t->write;
	uint8_t ahs[48];
	struct dm_control ctl;
	struct iscsi_pdu *p = &ctl.pdu;
	int n = 0;

	if (t->cdb_len > sizeof(p->cmd.cdb) || both)
		n = put_ahs(t, ahs, sizeof(ahs));
	if (n < 0)
		return n;
	dm_task_init(&t->dm);
	dm_control_clear(&ctl);
	ctl.ahs = ahs;
	t->dm.lun = t->lun;
	t->dm.in = t->in;
	t->dm.out = t->out;
	t->dm.edtl = edtl_of(t);
	t->dm.bidi_edtl = both ? (uint32_t)t->in.len : 0;
	p->op = ISCSI_SCSI_COMMAND;
	p->immediate = t->immediate;
	p->ahs_len = (uint16_t)n;
	p->lun = t->lun;
	p->itt = t->dm.itt;
	p->cmdsn = cmdsn;
	p->cmd.read = t->read;
	p->cmd.write = t->write;
	p->cmd.attr = t->attr;
	/* RFC 7144 §5.1.1: 0 unless that level was negotiated */
	if (s->params.protocol_level >= 2)
		p->cmd.priority = t->priority & 0x0f;
	p->cmd.edtl = t->dm.edtl;
	memcpy(p->cmd.cdb, t->cdb, MIN((size_t)t->cdb_len, sizeof(p->cmd.cdb)));
	t->sent.cmdsn = p->cmdsn;
	return dm_send_control(t->sent.conn->dm, &t->dm, &ctl);
}

/* ---- a window that stays closed ---- */

#define STALL_TIME (10 * XTIME_S)

/* A command waits for the window. */
static void begin_stall(struct ini_session *s)
{
	if (s->stall.deadline != XTIME_NEVER || s->stall.is_reported)
		return;
	s->stall.deadline = s->now + STALL_TIME;
	if (!s->has_deadlines) /* else ini_deadline is earlier anyway */
		ini_rearm(s);
}

static void end_stall(struct ini_session *s)
{
	s->stall.deadline = XTIME_NEVER;
	s->stall.is_reported = false;
}

static unsigned count_waiting(const struct ini_session *s)
{
	unsigned n = 0;

	list_for_each(it, &s->waiting)
		n++;
	return n;
}

void ini_expire_window(struct ini_session *s, xtime now)
{
	if (now < s->stall.deadline)
		return;
	s->stall.deadline = XTIME_NEVER;
	if (list_empty(&s->waiting))
		return;
	s->stall.is_reported = true;
	trace_emit(s->cfg.trace, TRACE_CONN_TIMEOUT,
		   "the target has not opened its command window for %u s: %u "
		   "commands wait, %u are in progress (RFC 7143 §4.2.2.1)",
		   (unsigned)(STALL_TIME / XTIME_S), count_waiting(s),
		   s->in_flight);
}

/* Takes a tag and sends the command; false: it has to wait. */
/* [RFC 7143: 4.2.2.1 #2-3 #12] */
static bool start_task(struct ini_session *s, struct ini_task *t)
{
	int err;

	if (!t->immediate && !iscsi_initiator_window_open(&s->window)) {
		begin_stall(s);
		return false;
	}
	end_stall(s);
	if (s->in_flight >= s->cfg.depth)
		return false;
	t->sent.conn = ini_conn_pick(s);
	if (!t->sent.conn)
		return false;
	t->dm.itt = ini_slot_take(s, t, NULL);
	if (t->dm.itt == ISCSI_RESERVED_TAG)
		return false;
	t->state = INI_TASK_SENT;
	t->check.at = s->now;
	t->check.suspect = false;
	t->check.missing = t->check.refused = t->check.pings = 0;
	t->check.by_ping = false;
	t->check.stopped = false;
	list_push_back(&s->sent, &t->link);
	s->in_flight++;
	t->sent.conn->in_flight++;
	err = send_command(s, t, s->window.cmdsn);
	if (err)
		ini_task_end(t, err);
	else if (!t->immediate)
		s->window.cmdsn++;
	return true;
}

static void change_allegiance(struct ini_task *t, struct ini_conn *c)
{
	t->sent.conn->in_flight--;
	t->sent.conn = c;
	c->in_flight++;
	t->check.at = t->session->now;
	t->check.missing = 0;
	t->check.by_ping = false;
	t->check.stopped = false;
}

/* [RFC 7143: 7.2.1 #3] */
int ini_task_again(struct ini_task *t, struct ini_conn *c)
{
	change_allegiance(t, c);
	return send_command(t->session, t, t->sent.cmdsn);
}

/* TASK REASSIGN acknowledges no Data-In (§11.5.6): the target sends all of them again,
 * but those that DataACKs have acknowledged, whose bytes are there without a gap. The
 * data to write that were sent may have arrived: they still count, and so do the
 * R2Ts that asked for them. */
/* [RFC 7143: 11.5.6 #1] */
void ini_task_move(struct ini_task *t, struct ini_conn *c)
{
	uint32_t in_done = t->dm.in_done, out_done = t->dm.out_done;
	uint32_t r2ts = t->dm.r2ts, acked = t->dm.acked;
	uint32_t immediate = t->dm.immediate;

	change_allegiance(t, c);
	dm_task_init(&t->dm);
	t->dm.in_done = in_done;
	t->dm.out_done = out_done;
	t->dm.r2ts = r2ts;
	t->dm.acked = acked;
	t->dm.immediate = immediate;
	t->dm.moved = true;
}

/* [RFC 7143: 4.2.2.1 #7] */
void ini_pump_waiting(struct ini_session *s)
{
	while (!list_empty(&s->waiting)) {
		struct ini_task *t =
			list_entry(s->waiting.next, struct ini_task, link);

		list_del(&t->link);
		if (start_task(s, t))
			continue;
		list_push_front(&s->waiting, &t->link);
		return;
	}
}

void ini_submit(struct ini_session *s, struct ini_task *t, xtime now)
{
	s->now = now;
	t->session = s;
	t->err = 0;
	t->status = 0;
	t->qualifier = 0;
	t->sense_len = 0;
	t->underflow = t->overflow = false;
	t->resid = t->moved = 0;
	t->bidi = (struct ini_bidi){ 0 };
	t->check.clearing = t->abort.in_progress = t->abort.is_due = false;
	t->state = INI_TASK_WAITING;
	list_init(&t->link);
	if (!ini_is_full_feature(s)) {
		ini_task_end(t, ERR_CLOSED);
		return;
	}
	if (t->deadline != XTIME_NEVER && !s->has_deadlines) {
		s->has_deadlines = true;
		ini_rearm(s);
	}
	/* commands that wait already are sent first */
	if (!list_empty(&s->waiting) || !start_task(s, t))
		list_push_back(&s->waiting, &t->link);
}

/* ---- ending ---- */

void ini_task_end(struct ini_task *t, int err)
{
	struct ini_session *s = t->session;

	list_del(&t->link);
	if (t->abort.is_due || t->abort.in_progress)
		ini_forget_abort(t);
	if (t->state == INI_TASK_SENT) {
		ini_slot_free(s, t->dm.itt);
		s->in_flight--;
		t->sent.conn->in_flight--;
		t->bidi.arrived = t->dm.in_done;
	}
	t->state = INI_TASK_IDLE;
	t->err = err;
	t->done(t);
}

/* §11.4.7.2: 2 bytes of length, then the sense data. */
/* [RFC 7143: 10.2 #1] */
static void take_sense(struct ini_task *t, const struct dm_control *ctl)
{
	size_t n;

	if (ctl->pdu.dsl < 2 || !ctl->data)
		return;
	n = MIN((size_t)get_be16(ctl->data), (size_t)ctl->pdu.dsl - 2);
	n = MIN(n, sizeof(t->sense));
	memcpy(t->sense, ctl->data + 2, n);
	t->sense_len = (uint16_t)n;
}

#define STATUS_GOOD	     0x00
#define STATUS_CONDITION_MET 0x04

/*
 * Decides how much of the Expected Data Transfer Length moved (RFC 7143
 * §11.4.5.1): the smaller of what the target's residual leaves and of what the
 * datamover counted (dm.in_done, dm.out_done). Sets t->moved; returns 0,
 * ERR_RESIDUAL, ERR_SHORT or ERR_OVERFLOW.
 */
/* [RFC 7143: 11.4.5.1 #2] */
static int set_moved(struct ini_task *t, const struct iscsi_scsi_response *r)
{
	uint32_t edtl = t->dm.edtl;
	uint32_t counted = t->write ? t->dm.out_done : t->dm.in_done;
	bool good =
		t->status == STATUS_GOOD || t->status == STATUS_CONDITION_MET;
	/* §11.4.1: O and U, o and u exclude each other */
	bool both = (t->underflow && t->overflow) ||
		    ((r->resid_flags & ISCSI_RESID_BIDI_UNDERFLOW) &&
		     (r->resid_flags & ISCSI_RESID_BIDI_OVERFLOW));

	if (both || (t->underflow && t->resid > edtl)) {
		t->moved = 0;
		return good ? ERR_RESIDUAL : 0;
	}
	t->moved = MIN(counted, edtl - (t->underflow ? t->resid : 0));
	if (t->moved < edtl)
		return good && !t->short_ok ? ERR_SHORT : 0;
	/* data that the target asked for and did not get */
	return t->overflow && t->resid && t->write && good && !t->short_ok
		       ? ERR_OVERFLOW
		       : 0;
}

/* The read data of a bidirectional command, which have a residual of their own. */
static int set_in_moved(struct ini_task *t, const struct iscsi_scsi_response *r)
{
	struct ini_bidi *b = &t->bidi;
	bool good =
		t->status == STATUS_GOOD || t->status == STATUS_CONDITION_MET;

	b->underflow = r->resid_flags & ISCSI_RESID_BIDI_UNDERFLOW;
	b->overflow = r->resid_flags & ISCSI_RESID_BIDI_OVERFLOW;
	b->resid = b->underflow || b->overflow ? r->bidi_resid : 0;
	if (b->underflow && b->resid > t->dm.bidi_edtl)
		return good ? ERR_RESIDUAL : 0;
	b->moved = MIN(t->dm.in_done,
		       t->dm.bidi_edtl - (b->underflow ? b->resid : 0));
	return good && b->moved < t->dm.bidi_edtl && !t->short_ok ? ERR_SHORT
								  : 0;
}

/* [RFC 7143: 11.4.3 #1] */
/* [RFC 7144: 5.2.1 #2] */
void ini_task_response(struct ini_session *s, struct ini_task *t,
		       const struct dm_control *ctl)
{
	const struct iscsi_scsi_response *r = &ctl->pdu.rsp;
	int err;

	t->status = r->status;
	/* RFC 7144 §5.2.1: ignored unless that level was negotiated */
	t->qualifier = s->params.protocol_level >= 2 ? r->status_qualifier : 0;
	t->underflow = r->resid_flags & ISCSI_RESID_UNDERFLOW;
	t->overflow = r->resid_flags & ISCSI_RESID_OVERFLOW;
	t->resid = t->underflow || t->overflow ? r->resid : 0;
	take_sense(t, ctl);
	if (t->sense_len)
		ini_cleared_attention(s, t);
	/* §11.4.3: Target Failure and vendor codes have no SCSI status */
	err = r->response ? ERR_ABORTED : set_moved(t, r);
	if (!err && t->read && t->write)
		err = set_in_moved(t, r);
	ini_task_end(t, err);
	ini_pump(s);
}

struct ini_task *ini_first_task(const struct ini_conn *c)
{
	list_for_each(it, &c->session->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (t->sent.conn == c)
			return t;
	}
	return NULL;
}

static struct ini_request *first_request(const struct ini_conn *c)
{
	list_for_each(it, &c->session->requests) {
		struct ini_request *r =
			list_entry(it, struct ini_request, link);

		if (r->conn == c)
			return r;
	}
	return NULL;
}

/* A done may end other tasks and requests, so each search begins anew. */
void ini_fail_requests(struct ini_conn *c, int err)
{
	struct ini_request *r;

	while ((r = first_request(c)))
		ini_request_end(c->session, r, err, NULL);
}

void ini_fail_conn(struct ini_conn *c, int err)
{
	struct ini_task *t;

	while ((t = ini_first_task(c)))
		ini_task_end(t, err);
	ini_fail_requests(c, err);
}

void ini_fail_waiting(struct ini_session *s, int err)
{
	while (!list_empty(&s->waiting))
		ini_task_end(list_entry(s->waiting.next, struct ini_task, link),
			     err);
}

/*
 * An overdue command gives its memory back to the caller, so that the target must
 * not write to that memory any more. At ErrorRecoveryLevel 0 only the end of the
 * connection ensures that (RFC 7143 §7.5 leaves the choice to the initiator).
 */
/* [RFC 7143: 7.11 #1] */
void ini_expire_tasks(struct ini_session *s, xtime now)
{
	list_for_each_safe(it, &s->waiting) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (now >= t->deadline)
			ini_task_end(t, ERR_TIMEOUT);
	}
	list_for_each(it, &s->sent) {
		struct ini_task *t = list_entry(it, struct ini_task, link);

		if (now < t->deadline)
			continue;
		trace_emit(s->cfg.trace, TRACE_CONN_TIMEOUT,
			   "command %02x got no answer in time", t->cdb[0]);
		ini_kill(s, ERR_TIMEOUT);
		return;
	}
}
