/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * send.c: PDUs that the target sends other than answers to requests: Reject,
 * NOP-In, Async Message.
 */
#include "base/err.h"
#include "target/internal.h"

int tgt_reject(struct tgt_conn *c, enum iscsi_reject_reason reason,
	       const uint8_t bhs[ISCSI_BHS_LEN], const char *why)
{
	return tgt_reject_data(c, reason, bhs, why, 0);
}

int tgt_reject_data(struct tgt_conn *c, enum iscsi_reject_reason reason,
		    const uint8_t bhs[ISCSI_BHS_LEN], const char *why,
		    uint32_t datasn)
{
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_REJECT,
			.final = true,
			.itt = ISCSI_RESERVED_TAG,
			.ttt = ISCSI_RESERVED_TAG,
			.dsl = ISCSI_BHS_LEN,
		},
		.data = bhs,
	};

	if (c->session)
		tgt_window_reject(c->session);
	c->rejects++;
	c->worker->stats.total.rejects++;
	conn_trace(c, TRACE_REJECT, "PDU rejected, reason %02x: %s", reason,
		   why);
	ctl.pdu.reject.reason = (uint8_t)reason;
	ctl.pdu.reject.datasn = datasn;
	return tgt_conn_send(c, &ctl);
}

/* Sends a NOP-In, which has no StatSN of its own (§11.19.2). ERR_BUSY: the
 * datamover withheld it. */
/* [RFC 7143: 11.19 #4-6, 11.19.3 #1] */
static int send_nop_in(struct tgt_conn *c, uint32_t ttt)
{
	const struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_NOP_IN,
			.final = true,
			.itt = ISCSI_RESERVED_TAG,
			.ttt = ttt,
			.statsn = c->numbers.statsn,
		},
	};
	int err = dm_send_control(c->dm, NULL, &ctl);

	if (err && err != ERR_BUSY)
		tgt_conn_fail(c, err, "NOP-In");
	return err;
}

int tgt_ping(struct tgt_conn *c)
{
	if (!c->ping.pending) { /* else the one before, or its answer, was lost */
		if (++c->next_ttt == ISCSI_RESERVED_TAG)
			c->next_ttt = 1;
		c->ping.ttt = c->next_ttt;
	}
	/* no answer comes to a NOP-In that was withheld (RFC 7145 §8.1.2) */
	c->ping.pending = send_nop_in(c, c->ping.ttt) != ERR_BUSY;
	return 0;
}

/* [RFC 7143: 11.4.11 #1, 11.19.1 #1] */
int tgt_announce_window(struct tgt_conn *c)
{
	c->session->stalled = false;
	if (tgt_conn_open(c) && send_nop_in(c, ISCSI_RESERVED_TAG) == ERR_BUSY)
		c->session->stalled = true; /* the next response retries */
	return 0;
}

static int send_async(struct tgt_conn *c, const struct iscsi_async *a,
		      uint64_t lun)
{
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_ASYNC_MESSAGE,
			.final = true,
			.itt = ISCSI_RESERVED_TAG,
			.ttt = ISCSI_RESERVED_TAG,
		},
	};

	ctl.pdu.async = *a;
	ctl.pdu.lun = lun;
	return tgt_conn_send(c, &ctl);
}

int tgt_async(struct tgt_conn *c, const struct iscsi_async *a)
{
	return send_async(c, a, 0);
}

/* [RFC 7143: 4.2.3.4 #11] */
int tgt_async_termination(struct tgt_conn *c, uint64_t lun)
{
	const struct iscsi_async a = { .event = ISCSI_ASYNC_TASK_TERMINATION };

	return send_async(c, &a, lun);
}
