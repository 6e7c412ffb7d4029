/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.c: the command window of a session (RFC 7143 §4.2.2.1): MaxCmdSN, and
 * a ring with one slot for each CmdSN of the window. A slot keeps a request that
 * came before its turn: on another connection than those before it, or because a
 * request before it was lost to a data digest error or was rejected.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

#define PARKED_BYTES_MAX (1u << 20) /* of one session */

static struct tgt_slot *find_slot(const struct tgt_session *s, uint32_t cmdsn)
{
	return &s->ring.slots[cmdsn & s->ring.mask];
}

static void occupy_slot(struct tgt_session *s, struct tgt_slot *slot)
{
	slot->taken = true;
	s->ring.ahead++;
}

static void publish(struct tgt_session *s)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		c->numbers.expcmdsn = s->window.expcmdsn;
		c->numbers.maxcmdsn = s->window.maxcmdsn;
	}
}

/* The window never exceeds the number of free slots for tasks. */
void tgt_session_window(struct tgt_session *s)
{
	uint32_t depth = s->window.depth;
	uint32_t numbered = s->tasks.n - TGT_IMMEDIATES;
	uint32_t held = s->tasks.used - s->tasks.immediates;
	uint32_t room = numbered > held ? numbered - held : 0;

	if (s->nexus && dev_nexus_has_turn(s->nexus)) {
		s->stalled = true; /* MaxCmdSN does not advance */
	} else {
		s->stalled |= room == 0;
		iscsi_target_window_update(&s->window,
					   depth - MIN(depth, room));
	}
	publish(s);
}

/* [RFC 7143: 4.2.2.1 #8] */
void tgt_window_take(struct tgt_session *s)
{
	iscsi_target_window_take(&s->window);
	tgt_session_window(s);
}

/* [RFC 7143: 7.3 #2] */
void tgt_window_reject(struct tgt_session *s)
{
	if (!s->undo)
		return;
	s->window = *s->undo;
	s->undo = NULL;
	s->rejected = true;
	tgt_session_window(s);
}

/* [RFC 7143: 4.2.2.1 #11] */
bool tgt_window_duplicate(const struct tgt_session *s, uint32_t cmdsn)
{
	return s->ring.ahead && find_slot(s, cmdsn)->taken;
}

void tgt_window_hold(struct tgt_session *s, uint32_t cmdsn, struct tgt_task *t)
{
	struct tgt_slot *slot = find_slot(s, cmdsn);

	slot->task = t;
	occupy_slot(s, slot);
}

int tgt_window_park(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_session *s = c->session;
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_slot *slot = find_slot(s, pdu->cmdsn);
	struct tgt_parked *p;

	if (pdu->dsl > PARKED_BYTES_MAX - s->ring.parked_bytes)
		return ERR_LIMIT;
	p = malloc(sizeof(*p) + pdu->dsl);
	if (!p)
		return ERR_NOMEM;
	p->conn = c;
	p->ctl = *ctl;
	if (ctl->bhs)
		memcpy(p->bhs, ctl->bhs, ISCSI_BHS_LEN);
	if (pdu->dsl)
		memcpy(p->data, ctl->data, pdu->dsl);
	p->ctl.bhs = p->bhs;
	p->ctl.ahs = NULL;
	p->ctl.pdu.ahs_len = 0;
	p->ctl.data = p->data;
	p->ctl.remote = NULL; /* a TASK REASSIGN is immediate (§11.5.1) */
	s->ring.parked_bytes += pdu->dsl;
	slot->parked = p;
	occupy_slot(s, slot);
	return 0;
}

void tgt_window_unpark(struct tgt_session *s, struct tgt_parked *p)
{
	s->ring.parked_bytes -= p->ctl.pdu.dsl;
	free(p);
}

static void drop_parked(struct tgt_session *s, struct tgt_slot *slot)
{
	if (slot->parked)
		tgt_window_unpark(s, slot->parked);
	slot->parked = NULL;
}

void tgt_window_skip(struct tgt_session *s, uint32_t cmdsn)
{
	struct tgt_slot *slot = find_slot(s, cmdsn);

	if (!slot->taken)
		occupy_slot(s, slot);
	drop_parked(s, slot);
}

bool tgt_window_next(struct tgt_session *s, struct tgt_slot *slot)
{
	struct tgt_slot *next = find_slot(s, s->window.expcmdsn);

	if (!s->ring.ahead || !next->taken)
		return false;
	*slot = *next;
	*next = (struct tgt_slot){ .taken = false };
	s->ring.ahead--;
	return true;
}

void tgt_window_forget(struct tgt_session *s, const struct tgt_task *t)
{
	if (s->ring.ahead && find_slot(s, t->cmdsn)->task == t)
		find_slot(s, t->cmdsn)->task = NULL;
}

void tgt_window_forget_conn(struct tgt_session *s, const struct tgt_conn *c)
{
	for (uint32_t i = 0; i <= s->ring.mask && s->ring.ahead; i++)
		if (s->ring.slots[i].parked &&
		    s->ring.slots[i].parked->conn == c)
			drop_parked(s, &s->ring.slots[i]);
}

void tgt_window_discard_conn(struct tgt_session *s, const struct tgt_conn *c)
{
	for (uint32_t i = 0; i <= s->ring.mask && s->ring.ahead; i++) {
		struct tgt_slot *slot = &s->ring.slots[i];

		if (!(slot->parked && slot->parked->conn == c) &&
		    !(slot->task && slot->task->conn == c))
			continue;
		drop_parked(s, slot);
		*slot = (struct tgt_slot){ .taken = false };
		s->ring.ahead--;
	}
}

void tgt_window_empty(struct tgt_session *s)
{
	for (uint32_t i = 0; i <= s->ring.mask && s->ring.ahead; i++) {
		drop_parked(s, &s->ring.slots[i]);
		s->ring.ahead -= s->ring.slots[i].taken;
		s->ring.slots[i] = (struct tgt_slot){ .taken = false };
	}
}
