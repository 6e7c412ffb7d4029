/* SPDX-License-Identifier: BSD-2-Clause */
/* task.c: SCSI commands: slots and tags, the window, responses, time-outs. */
#include <string.h>

#include "initiator/internal.h"

/* ---- Initiator Task Tags: slot in the low 16 bits, generation above ---- */

#define ITT_GENERATION 0x10000u

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
	/* bit 31 stays clear, so that no tag is the reserved one */
	slot->itt = (slot->itt + ITT_GENERATION) & 0x7fffffffu;
	return slot->itt;
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

static int put_ext_cdb(const struct ini_task *t, uint8_t *p, size_t max)
{
	const struct iscsi_ahs ahs = { .ext_cdb = t->cdb + 16,
				       .ext_cdb_len = t->cdb_len > 16
							      ? t->cdb_len - 16u
							      : 0 };

	return iscsi_ahs_encode(&ahs, p, max);
}

static int send(struct ini_session *s, struct ini_task *t)
{
	uint8_t ahs[48];
	struct dm_control ctl = { .ahs = ahs };
	struct iscsi_pdu *p = &ctl.pdu;
	int n = put_ext_cdb(t, ahs, sizeof(ahs));

	if (n < 0)
		return n;
	dm_task_init(&t->dm);
	t->dm.lun = t->lun;
	t->dm.in = t->in;
	t->dm.out = t->out;
	t->dm.edtl = edtl_of(t);
	p->op = ISCSI_SCSI_COMMAND;
	p->immediate = t->immediate;
	p->ahs_len = (uint16_t)n;
	p->lun = t->lun;
	p->itt = t->dm.itt;
	p->cmdsn = s->window.cmdsn;
	p->cmd.read = t->read;
	p->cmd.write = t->write;
	p->cmd.attr = t->attr;
	/* RFC 7144 §5.1.1: no other value unless that was negotiated */
	if (s->params.protocol_level >= 2)
		p->cmd.priority = t->priority & 0x0f;
	p->cmd.edtl = t->dm.edtl;
	memcpy(p->cmd.cdb, t->cdb, MIN((size_t)t->cdb_len, sizeof(p->cmd.cdb)));
	t->cmdsn = p->cmdsn;
	return dm_send_control(s->dm, &t->dm, &ctl);
}

/* Takes a slot and sends; false when it has to wait. */
static bool start(struct ini_session *s, struct ini_task *t)
{
	int err;

	if (!t->immediate && !iscsi_initiator_window_open(&s->window))
		return false;
	if (s->in_flight >= s->cfg.depth)
		return false;
	t->dm.itt = ini_slot_take(s, t, NULL);
	if (t->dm.itt == ISCSI_RESERVED_TAG)
		return false;
	t->state = INI_TASK_SENT;
	t->looked_at = s->now;
	t->suspect = false;
	t->missing = 0;
	list_push_back(&s->sent, &t->link);
	s->in_flight++;
	err = send(s, t);
	if (err)
		ini_task_end(t, err);
	else if (!t->immediate)
		s->window.cmdsn++;
	return true;
}

void ini_pump(struct ini_session *s)
{
	while (!list_empty(&s->waiting)) {
		struct ini_task *t =
			list_entry(s->waiting.next, struct ini_task, link);

		list_del(&t->link);
		if (start(s, t))
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
	t->sense_len = 0;
	t->underflow = t->overflow = false;
	t->resid = t->in_done = 0;
	t->state = INI_TASK_WAITING;
	list_init(&t->link);
	if (s->state != ISCSI_S5_LOGGED_IN &&
	    s->state != ISCSI_S7_LOGOUT_REQUESTED) {
		ini_task_end(t, ERR_CLOSED);
		return;
	}
	if (t->deadline != XTIME_NEVER && !s->has_deadlines) {
		s->has_deadlines = true;
		ini_rearm(s);
	}
	/* those who wait already come first */
	if (!list_empty(&s->waiting) || !start(s, t))
		list_push_back(&s->waiting, &t->link);
}

/* ---- ending ---- */

void ini_task_end(struct ini_task *t, int err)
{
	struct ini_session *s = t->session;

	list_del(&t->link);
	if (t->state == INI_TASK_SENT) {
		ini_slot_free(s, t->dm.itt);
		s->in_flight--;
		t->in_done = t->dm.in_done;
	}
	t->state = INI_TASK_IDLE;
	t->err = err;
	t->done(t);
}

/* §11.4.7.2: 2 bytes of length, then the sense data. */
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

void ini_task_response(struct ini_session *s, struct ini_task *t,
		       const struct dm_control *ctl)
{
	const struct iscsi_scsi_response *r = &ctl->pdu.rsp;

	t->status = r->status;
	t->underflow = r->resid_flags & ISCSI_RESID_UNDERFLOW;
	t->overflow = r->resid_flags & ISCSI_RESID_OVERFLOW;
	t->resid = t->underflow || t->overflow ? r->resid : 0;
	take_sense(t, ctl);
	if (t->sense_len)
		ini_cleared_attention(s, t);
	/* §11.4.3: Target Failure and vendor codes: no SCSI status */
	ini_task_end(t, r->response ? ERR_ABORTED : 0);
	ini_pump(s);
}

static void fail_list(struct list *l, int err)
{
	while (!list_empty(l))
		ini_task_end(list_entry(l->next, struct ini_task, link), err);
}

void ini_fail_all(struct ini_session *s, int err)
{
	fail_list(&s->sent, err);
	fail_list(&s->waiting, err);
	while (!list_empty(&s->requests))
		ini_request_end(s,
				list_entry(s->requests.next, struct ini_request,
					   link),
				err, NULL);
}

/*
 * A command that is overdue: its memory is the caller's again, so the target
 * must not write to it any more. At ERL 0 the sure way is a new connection
 * (RFC 7143 §7.5 leaves that to us).
 */
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
