/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * phase.c: the phases of a software iWARP connection: the allowed transitions,
 * what holds in each phase, and the ways to end a connection. The other files
 * of this room call this one, which calls none of them but rdmap.c.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sane.h"
#include "rcap/iwarp/internal.h"

#define TO(phase) BIT(PHASE_##phase)
#define TO_END	  (TO(OVER) | TO(DEAD))

/* phase_next[from] has a bit for each phase that may follow. */
static const unsigned phase_next[] = {
	[PHASE_NEW] = TO(REQUEST_OUT) | TO(REQUEST_WAIT),
	[PHASE_REQUEST_OUT] = TO(REPLY_WAIT) | TO_END,
	[PHASE_REPLY_WAIT] = TO(FULL) | TO_END,
	[PHASE_REQUEST_WAIT] = TO(ULP) | TO(DEAD),
	[PHASE_ULP] = TO(REPLY_OUT) | TO(DEAD),
	[PHASE_REPLY_OUT] = TO(FIRST_WAIT) | TO_END,
	[PHASE_FIRST_WAIT] = TO(FULL) | TO(DEAD),
	[PHASE_FULL] = TO_END,
	[PHASE_OVER] = TO(DEAD),
	[PHASE_DEAD] = TO(DEAD),
};

/* Start-up: the role of the phase, our frame sent or not, nothing agreed. */
static bool is_starting(const struct iwarp *c, bool active, bool unsent,
			enum rcap_state state)
{
	return c->cfg.active == active && c->qp.state == state &&
	       (c->frame_sent < c->frame_len) == unsent;
}

bool iwarp_is_sane(const struct iwarp *c)
{
	switch (c->phase) {
	case PHASE_NEW:
		return c->frame_len == 0;
	case PHASE_REQUEST_OUT:
		return is_starting(c, true, true, RCAP_STARTING);
	case PHASE_REPLY_WAIT:
		return is_starting(c, true, false, RCAP_STARTING);
	case PHASE_REQUEST_WAIT:
		return is_starting(c, false, false, RCAP_STARTING);
	case PHASE_ULP:
		return is_starting(c, false, false, RCAP_REQUESTED) &&
		       c->deadline == XTIME_NEVER;
	case PHASE_REPLY_OUT:
		return is_starting(c, false, true, RCAP_REQUESTED);
	case PHASE_FIRST_WAIT:
		return is_starting(c, false, false, RCAP_REQUESTED);
	case PHASE_FULL:
		return c->frame_sent == c->frame_len &&
		       (c->qp.state == RCAP_ESTABLISHED ||
			c->qp.state == RCAP_CLOSING);
	case PHASE_OVER:
	case PHASE_DEAD:
		return c->qp.state >= RCAP_CLOSING;
	}
	return false;
}

void iwarp_go(struct iwarp *c, enum iwarp_phase next)
{
	assert(phase_next[c->phase] & BIT(next));
	c->phase = next;
	ASSERT_SANE(iwarp_is_sane(c));
}

/* ---- the end ---- */

static bool is_ending(const struct iwarp *c)
{
	return c->phase == PHASE_OVER || c->phase == PHASE_DEAD;
}

__attribute__((format(printf, 3, 0))) static void
set_end_reason(struct iwarp *c, int err, const char *fmt, va_list ap)
{
	if (c->why[0])
		return; /* the first reason counts */
	c->err = err;
	vsnprintf(c->why, sizeof(c->why), fmt, ap);
}

void iwarp_die(struct iwarp *c, int err, const char *fmt, ...)
{
	bool unsent = c->frame_sent < c->frame_len;
	va_list ap;

	va_start(ap, fmt);
	set_end_reason(c, err, fmt, ap);
	va_end(ap);
	if (is_ending(c))
		return;
	c->qp.state = MAX(c->qp.state, RCAP_CLOSING);
	iwarp_go(c, unsent ? PHASE_OVER : PHASE_DEAD); /* a reject is sent */
	iwarp_kick(c);
}

/* RFC 5040 §4.8 figure 10: stores the headers of the segment at fault for the
 * Terminate: have octets at head, of a segment of len octets. */
static void set_term_headers(struct iwarp *c, uint16_t reason,
			     const uint8_t *head, size_t have, size_t len)
{
	bool tagged = have > 0 && (head[0] & 0x80);
	size_t ddp = tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	bool is_read = !tagged && have == ddp + RDMAP_READ_LEN;

	if (reason >> 12 == 2 || reason >> 8 == 0 || have < ddp)
		return;
	/* the RDMAP header only if an access was refused */
	c->tx.term_head_len = reason >> 8 == 1 && is_read ? have : ddp;
	memcpy(c->tx.term_head, head, c->tx.term_head_len);
	c->tx.term_segment_len = (uint16_t)len;
}

/* The Terminate is the last FPDU of the connection. */
static void send_terminate(struct iwarp *c, uint16_t reason, int err,
			   const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void send_terminate(struct iwarp *c, uint16_t reason, int err,
			   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_end_reason(c, err, fmt, ap);
	va_end(ap);
	c->deadline = c->now + IWARP_CLOSING_MAX;
	c->tx.term_wanted = true;
	c->tx.term = reason;
	c->qp.state = MAX(c->qp.state, RCAP_CLOSING);
	iwarp_go(c, PHASE_OVER);
	iwarp_kick(c);
}

void iwarp_refuse(struct iwarp *c, uint16_t reason, int err)
{
	send_terminate(c, reason, err, "sent a Terminate: %s (0x%04x)",
		       rdmap_term_str(reason), reason);
	trace_emit(c->qp.trace, TRACE_TERMINATE, "%s", c->why);
}

static void fail_with(struct iwarp *c, uint16_t reason, int err,
		      const uint8_t *head, size_t have, size_t len)
{
	if (!iwarp_is_full(c))
		return;
	if (c->phase == PHASE_FULL) {
		iwarp_refuse(c, reason, err);
		set_term_headers(c, reason, head, have, len);
		return;
	}
	iwarp_die(c, err, "%s (0x%04x)", rdmap_term_str(reason), reason);
	trace_emit(c->qp.trace, TRACE_TERMINATE, "%s", c->why);
}

void iwarp_fail(struct iwarp *c, uint16_t reason, int err)
{
	struct iwarp_rx *rx = &c->rx;
	size_t have = rx->head.have > MPA_LENGTH_LEN
			      ? rx->head.have - MPA_LENGTH_LEN
			      : 0;

	fail_with(c, reason, err, rx->head.bytes + MPA_LENGTH_LEN, have,
		  rx->ulpdu_len);
}

void iwarp_fail_answer(struct iwarp *c, uint16_t reason,
		       const struct iwarp_read *a)
{
	/* the part of the request that is still unanswered */
	struct rdmap_header h = a->h;
	uint8_t head[DDP_HEADER_MAX];
	size_t n;

	h.sink_to += a->sent;
	h.read_size -= a->sent;
	h.source_to += a->sent;
	n = rdmap_encode(&h, head);
	fail_with(c, reason, ERR_ACCESS, head, n, n);
}

void iwarp_terminate(struct iwarp *c, int err, const char *why)
{
	/* RFC 5040 §7.2: there is no code for errors of the ULP */
	if (c->phase == PHASE_FULL)
		send_terminate(c, TERM_LOCAL_CATASTROPHIC, err, "%s", why);
	else
		iwarp_die(c, err, "%s", why);
}
