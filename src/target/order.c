/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.c: requests are delivered in the order of their CmdSN (RFC 7143
 * §4.2.2.1). On one connection they come in that order, unless one was lost to
 * a data digest error: then those behind it wait in a ring, one slot for each
 * number of the window.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

#define PARKED_BYTES_MAX (1u << 20)

static struct tgt_slot *slot(const struct tgt_session *s, uint32_t cmdsn)
{
	return &s->ring[cmdsn & s->ring_mask];
}

static void occupy(struct tgt_session *s, struct tgt_slot *sl)
{
	sl->taken = true;
	s->ahead++;
}

static void take(struct tgt_session *s)
{
	iscsi_target_window_take(&s->window);
	tgt_session_window(s);
}

static void drop_parked(struct tgt_session *s, struct tgt_slot *sl)
{
	if (!sl->parked)
		return;
	s->parked_bytes -= sl->parked->ctl.pdu.dsl;
	free(sl->parked);
	sl->parked = NULL;
}

static int deliver_parked(struct tgt_session *s, struct tgt_parked *p)
{
	int err = s->conn ? tgt_control(s->conn, &p->ctl) : 0;

	s->parked_bytes -= p->ctl.pdu.dsl;
	free(p);
	return err;
}

/* ExpCmdSN reached numbers that came early: their turn. */
static int advance(struct tgt_session *s)
{
	int err = 0;

	while (s->ahead && !err) {
		struct tgt_slot *sl = slot(s, s->window.expcmdsn);
		struct tgt_slot was = *sl;

		if (!was.taken)
			break;
		*sl = (struct tgt_slot){ .taken = false };
		s->ahead--;
		take(s);
		if (was.task)
			tgt_command_turn(was.task);
		if (was.parked)
			err = deliver_parked(s, was.parked);
	}
	if (!list_empty(&s->tmfs))
		tgt_tmf_check(s);
	return err;
}

static int park(struct tgt_session *s, const struct dm_control *ctl)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_slot *sl = slot(s, pdu->cmdsn);
	struct tgt_parked *p;

	if (pdu->dsl > PARKED_BYTES_MAX - s->parked_bytes)
		return ERR_LIMIT;
	p = malloc(sizeof(*p) + pdu->dsl);
	if (!p)
		return ERR_NOMEM;
	p->ctl = *ctl;
	if (ctl->bhs)
		memcpy(p->bhs, ctl->bhs, ISCSI_BHS_LEN);
	if (pdu->dsl)
		memcpy(p->data, ctl->data, pdu->dsl);
	p->ctl.bhs = p->bhs;
	p->ctl.ahs = NULL;
	p->ctl.pdu.ahs_len = 0;
	p->ctl.data = p->data;
	s->parked_bytes += pdu->dsl;
	sl->parked = p;
	occupy(s, sl);
	return 0;
}

bool tgt_order_duplicate(const struct tgt_session *s, uint32_t cmdsn)
{
	return s->ahead && slot(s, cmdsn)->taken;
}

/* A request that is no SCSI Command: delivered now, later, or never. */
int tgt_order_request(struct tgt_conn *c, const struct dm_control *ctl)
{
	struct tgt_session *s = c->session;
	uint32_t cmdsn = ctl->pdu.cmdsn;
	int err;

	if (ctl->pdu.immediate)
		return tgt_control(c, ctl);
	switch (iscsi_target_window_check(&s->window, cmdsn)) {
	case ISCSI_CMDSN_EXPECTED:
		take(s);
		err = tgt_control(c, ctl);
		return err ? err : advance(s);
	case ISCSI_CMDSN_AHEAD:
		if (tgt_order_duplicate(s, cmdsn))
			return 0;
		return park(s, ctl);
	case ISCSI_CMDSN_IGNORE:
	default:
		return 0; /* §4.2.2.1: silently */
	}
}

/* A SCSI Command that was given its task. */
int tgt_order_command(struct tgt_session *s, struct tgt_task *t,
		      enum iscsi_window_verdict v)
{
	if (v == ISCSI_CMDSN_AHEAD) {
		struct tgt_slot *sl = slot(s, t->cmdsn);

		sl->task = t;
		occupy(s, sl);
		return 0;
	}
	take(s);
	tgt_command_turn(t);
	return s->ahead || !list_empty(&s->tmfs) ? advance(s) : 0;
}

void tgt_order_plug(struct tgt_session *s, uint32_t cmdsn)
{
	struct tgt_slot *sl = slot(s, cmdsn);

	if (iscsi_target_window_check(&s->window, cmdsn) == ISCSI_CMDSN_IGNORE)
		return;
	if (!sl->taken)
		occupy(s, sl);
	drop_parked(s, sl);
	advance(s);
}

void tgt_order_plug_to(struct tgt_session *s, uint32_t cmdsn)
{
	for (uint32_t n = s->window.expcmdsn; sn_lt(n, cmdsn); n++)
		if (!slot(s, n)->taken)
			occupy(s, slot(s, n));
	advance(s);
}

/* The task vanishes; its number stays written off. */
void tgt_order_forget(struct tgt_session *s, const struct tgt_task *t)
{
	if (s->ahead && slot(s, t->cmdsn)->task == t)
		slot(s, t->cmdsn)->task = NULL;
}

void tgt_order_free(struct tgt_session *s)
{
	for (uint32_t i = 0; i <= s->ring_mask && s->ahead; i++) {
		drop_parked(s, &s->ring[i]);
		s->ahead -= s->ring[i].taken;
		s->ring[i] = (struct tgt_slot){ .taken = false };
	}
}
