/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx.c: framing. One read into the look-ahead buffer may bring many PDUs. The
 * rest of a payload is read directly to its final place; the look-ahead buffer
 * follows in the same iovecs and takes the next headers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cold.h"
#include "base/crc32c.h"
#include "datamover/tcp/rx_state.h"

static size_t unread(const struct rx *r)
{
	return r->tail - r->head;
}

static const uint8_t *look_at(const struct rx *r)
{
	return r->look + r->head;
}

/* ---- destinations of received bytes ---- */

/* The buffer of the task that receives the payload. */
static const struct bufv *task_buffer(const struct dmtcp_conn *c)
{
	const struct dm_task *t = c->rx.task;

	return c->dm.role == ISCSI_TARGET ? &t->out : &t->in;
}

/* Of a resting connection: a header with AHS and digest, and some more. */
#define RESTING_LOOK 2048u

/* After the login the look-ahead buffer is small, until there are SCSI Commands. Without
 * memory the buffer that there is stays in use, which is slower. */
static void resize_look(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	size_t size = c->resting ? MIN(c->cfg.lookahead, RESTING_LOOK)
				 : c->cfg.lookahead;
	uint8_t *look;

	if (!c->full_feature || r->look_size == size || unread(r) > size / 2)
		return;
	look = malloc(size);
	if (!look)
		return;
	memcpy(look, look_at(r), unread(r));
	free(r->look);
	r->look = look;
	r->look_size = size;
	r->tail -= r->head;
	r->head = 0;
}

/* In a payload the buffer is in use. */
void dmtcp_rx_rest(struct dmtcp_conn *c)
{
	if (c->rx.state == RX_HEADER)
		resize_look(c);
}

/*
 * While payloads are large only part of the look-ahead buffer is offered to
 * the driver: payload that is received together with its header has to be
 * copied.
 */
#define LARGE_PAYLOAD (32u << 10)
#define SHORT_LOOK    1024u
/* After so many PDUs without a large payload the whole buffer is offered. */
#define LARGE_MEMORY 8

static size_t look_room(const struct rx *r)
{
	size_t room = r->look_size - r->tail;

	return r->large ? MIN(room, (size_t)SHORT_LOOK + ISCSI_MAX_AHS_LEN)
			: room;
}

static void remember_size(struct rx *r)
{
	if (r->pdu.dsl >= LARGE_PAYLOAD)
		r->large = LARGE_MEMORY;
	else if (r->large)
		r->large--;
}

/* ---- payload ---- */

/* The driver placed n payload bytes directly. */
static void payload_placed(struct dmtcp_conn *c, size_t n)
{
	struct rx *r = &c->rx;

	if (r->task) {
		if (c->rx_digest.data)
			r->crc = bufv_crc32c(task_buffer(c), r->at, n, r->crc);
		r->at += (uint32_t)n;
		r->out_bytes += n;
	} else {
		if (c->rx_digest.data)
			r->crc = crc32c_update(r->crc,
					       r->collect + r->collected, n);
		r->collected += (uint32_t)n;
	}
	r->left -= (uint32_t)n;
}

/* The n payload bytes at the head of the look-ahead buffer are all write data of a SCSI
 * Command, and the rest of the PDU follows them there: so they stay where they are until
 * the role has executed the command. */
static bool can_peek(const struct dmtcp_conn *c, size_t n)
{
	const struct rx *r = &c->rx;
	const struct dm_task *t = r->task;

	return t->may_peek && r->pdu.op == ISCSI_SCSI_COMMAND &&
	       (r->pdu.final || c->params.initial_r2t) && r->at == 0 &&
	       n == r->pdu.dsl && n == t->out.len &&
	       unread(r) >= round_up4(n) +
				    (c->rx_digest.data ? ISCSI_DIGEST_LEN : 0);
}

static void copy_to_task(struct dmtcp_conn *c, size_t n)
{
	bufv_copy_in(task_buffer(c), c->rx.at, look_at(&c->rx), n);
	c->stats.copied += n;
}

/* Brings n payload bytes from the look-ahead buffer to their place. */
static void payload_from_look(struct dmtcp_conn *c, size_t n)
{
	struct rx *r = &c->rx;

	if (c->rx_digest.data)
		r->crc = crc32c_update(r->crc, look_at(r), n);
	if (r->task) {
		if (can_peek(c, n))
			r->task->peek = look_at(r);
		else
			copy_to_task(c, n);
		r->at += (uint32_t)n;
		r->out_bytes += n;
	} else if (r->collect) {
		memcpy(r->collect + r->collected, look_at(r), n);
		r->collected += (uint32_t)n;
		c->stats.copied += n;
	}
	r->left -= (uint32_t)n;
	r->head += n;
}

void dmtcp_rx_forget(struct dmtcp_conn *c, const struct dm_task *t)
{
	if (c->rx.task != t)
		return;
	/* the driver found no input for the place that it asked for */
	c->rx.direct = 0;
	c->rx.task = NULL;
	c->rx.burst = NULL;
	if (c->rx.state == RX_HELD)
		dmtcp_rx_resume(c);
}

/* The next call of the driver, for input or output, reads the look-ahead. */
void dmtcp_rx_resume(struct dmtcp_conn *c)
{
	dmtcp_rx_go(c, RX_RESUMED);
	dmtcp_kick(c);
}

/* ---- complete PDUs ---- */

/* After so many PDUs with commands and data the driver is asked for the time. */
#define PDUS_UNASKED 32
#define DATA_MIN     512

/* Data-Outs with less than a block count as control PDUs; responses are part of I/O. */
static bool counts_as_control(const struct rx *r)
{
	return r->is_control
		       ? r->pdu.op != ISCSI_SCSI_RESPONSE
		       : r->pdu.op == ISCSI_DATA_OUT && r->pdu.dsl < DATA_MIN;
}

static void ask_time(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	bool control = counts_as_control(r);

	if (!control && r->unasked++ < PDUS_UNASKED)
		return;
	r->unasked = 0;
	r->is_spent = stream_is_spent(c->host, control);
}

/* The commands before a control PDU are not charged as one. */
static void ask_time_before(struct dmtcp_conn *c)
{
	if (c->rx.pdu.op == ISCSI_SCSI_RESPONSE)
		return;
	if (c->rx.unasked && stream_is_spent(c->host, false))
		c->rx.is_spent = true; /* after this PDU */
	c->rx.unasked = 0;
}

/* §7.8: recovery needs ErrorRecoveryLevel 1. */
/* [RFC 7143: 7.1.4 #1] */
static void damaged(struct dmtcp_conn *c, int err)
{
	if (c->recovery.on)
		dmtcp_initiator_damaged(c);
	else
		dmtcp_fail_conn(c, err);
}

static COLD void drop_pdu(struct dmtcp_conn *c, int err)
{
	c->stats.dropped++;
	c->stats.digest_errors += err == ERR_DATA_DIGEST;
	if (c->dm.role == ISCSI_INITIATOR && err == ERR_DATA_DIGEST)
		damaged(c, err);
	else
		c->dm.up->error_notify(&c->dm, &c->rx.pdu, c->rx.bhs, err);
}

static COLD void deliver_control(struct dmtcp_conn *c, const uint8_t *data)
{
	struct rx *r = &c->rx;
	struct dm_task *none = NULL;
	const struct dm_control ctl = {
		.pdu = r->pdu,
		.bhs = r->bhs,
		.ahs = r->pdu.ahs_len ? r->ahs : NULL,
		.data = r->pdu.dsl ? data : NULL,
	};
	int err = c->dm.up->control_notify(&c->dm, &ctl, &none);

	if (err)
		dmtcp_fail_conn(c, err);
}

/* [RFC 7143: 7.8 #2] */
static void control_pdu_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	ask_time_before(c);
	if (r->drop_err)
		drop_pdu(c, r->drop_err);
	else if (c->dm.role == ISCSI_INITIATOR)
		dmtcp_initiator_complete(c);
	else
		deliver_control(c, r->collect);
	free(r->collect);
	r->collect = NULL;
}

static void data_pdu_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	if (r->drop_err)
		drop_pdu(c, r->drop_err);
	if (c->dm.role == ISCSI_TARGET)
		dmtcp_target_complete(c);
	else if (!r->drop_err) /* data and status of a dropped PDU are void */
		dmtcp_initiator_complete(c);
}

static void pdu_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	c->stats.rx_pdus++;
	c->stats.rx_payload += r->pdu.dsl;
	remember_size(r);
	if (r->is_control)
		control_pdu_complete(c);
	else
		data_pdu_complete(c);
	ask_time(c);
	r->task = NULL;
	r->burst = NULL;
	if (r->state == RX_TRAILER) /* else an up-call ended the connection */
		dmtcp_rx_go(c, RX_HEADER);
}

/* ---- headers ---- */

/* The data of a control-type PDU are collected until they are complete. */
static int collect_control(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	r->is_control = true;
	if (r->pdu.dsl == 0)
		return 0;
	r->collect = malloc(r->pdu.dsl); /* dsl was checked */
	return r->collect ? 0 : ERR_NOMEM;
}

static bool has_own_place(const struct dmtcp_conn *c, uint8_t op)
{
	if (!c->full_feature)
		return false;
	if (c->dm.role == ISCSI_TARGET)
		return op == ISCSI_SCSI_COMMAND || op == ISCSI_DATA_OUT;
	return op == ISCSI_DATA_IN || op == ISCSI_R2T;
}

/* RFC 7143 §13.12: at most the declared MaxRecvDataSegmentLength, during the
 * login its default. Only SCSI Commands have an AHS (§11.2.2). */
/* [RFC 7143: 11.2.1.5 #1] */
static int check_lengths(const struct dmtcp_conn *c, const struct iscsi_pdu *p)
{
	if (p->dsl > c->max_recv_dsl)
		return ERR_TOO_LONG;
	if (p->ahs_len && (!c->full_feature || p->op != ISCSI_SCSI_COMMAND))
		return ERR_FORMAT;
	return 0;
}

/* ERR_PROTOCOL: an opcode of the wrong side. */
/* [RFC 7143: 11.2.1.2 #1-2] */
static int check_opcode(const struct dmtcp_conn *c)
{
	if (iscsi_opcode_from_initiator(c->rx.pdu.op) !=
	    (c->dm.role == ISCSI_TARGET))
		return ERR_PROTOCOL;
	return 0;
}

/* §4.2.4: an initiator that receives another PDU than a Login Response during
 * the login drops the connection. (The target role answers such PDUs.) */
/* [RFC 7143: 4.2.4 #6, 11.17.1 #3] */
static bool breaks_login(const struct dmtcp_conn *c)
{
	return !c->full_feature && c->dm.role == ISCSI_INITIATOR &&
	       c->rx.pdu.op != ISCSI_LOGIN_RESPONSE;
}

/* What follows the header; a PDU without data has no payload. */
static void enter_payload(struct dmtcp_conn *c)
{
	dmtcp_rx_go(c, c->rx.left ? RX_PAYLOAD : RX_TRAILER);
}

static void header_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	int err;

	r->is_control = false;
	r->collected = 0;
	r->left = r->pdu.dsl;
	r->crc = CRC32C_SEED;
	if (!r->drop_err)
		r->drop_err = check_opcode(c);
	if (!r->drop_err && c->dm.retains && dm_acknowledges(&r->pdu))
		dmtcp_acknowledge(c, r->pdu.expstatsn);
	if (r->state != RX_HEADER)
		return; /* an up-call ended the connection */
	if (r->drop_err) {
		r->is_control = true; /* discarded, then reported */
	} else if (has_own_place(c, r->pdu.op)) {
		c->resting = false;
		if (c->dm.role == ISCSI_TARGET)
			dmtcp_target_header(c);
		else
			dmtcp_initiator_header(c);
	} else {
		err = collect_control(c);
		if (err)
			dmtcp_fail_conn(c, err);
	}
	if (r->state != RX_HEADER)
		return; /* an up-call ended the connection */
	if (r->task && r->task->held)
		dmtcp_rx_go(c, RX_HELD);
	else
		enter_payload(c);
}

/* A target drops a connection whose first PDU is not a Login Request, or that
 * sends an unknown opcode during the login: there is no answer to either, and
 * no reason to wait for the data that such a header announces. */
/* [RFC 7143: 4.2.4 #2 #4, 11.12 #1] */
static bool begins_wrong(const struct dmtcp_conn *c)
{
	return c->dm.role == ISCSI_TARGET && !c->full_feature &&
	       (c->rx.drop_err ||
		(c->stats.rx_pdus == 0 && c->rx.pdu.op != ISCSI_LOGIN_REQUEST));
}

static COLD void refuse_header(struct dmtcp_conn *c, int err)
{
	const struct rx *r = &c->rx;

	if (c->dm.role == ISCSI_TARGET && !c->full_feature)
		trace_emit(c->dm.trace, TRACE_PROTOCOL,
			   "%s: not a valid Login Request (RFC 7143 §6.3, "
			   "§11.12): %s, %u bytes of data, %u bytes of AHS; "
			   "connection dropped",
			   c->dm.peer ? c->dm.peer : "peer",
			   iscsi_opcode_name(r->pdu.op), (unsigned)r->pdu.dsl,
			   (unsigned)r->pdu.ahs_len);
	dmtcp_fail_conn(c, err);
}

/* Decodes and checks the header at b; on an error drops the connection. drop_err is the
 * decoder's. */
/* [RFC 7143: 7.7 #1, 7.8 #1] */
static ALWAYS_INLINE bool header_ok(struct dmtcp_conn *c, const uint8_t *b)
{
	struct rx *r = &c->rx;
	int err;

	r->drop_err = iscsi_bhs_decode(&r->pdu, b);
	err = check_lengths(c, &r->pdu);
	if (!err && (breaks_login(c) || begins_wrong(c)))
		err = ERR_PROTOCOL;
	if (err)
		refuse_header(c, err);
	return !err;
}

/* Returns whether a complete header was processed. */
static bool read_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	const uint8_t *b = look_at(r);
	size_t need = ISCSI_BHS_LEN;

	if (unread(r) < need)
		return false;
	/* without a digest check now, before waiting for an AHS */
	if (!c->rx_digest.header && !header_ok(c, b))
		return false;
	/* an AHS and a digest belong to the header */
	need += b[4] * 4u + (c->rx_digest.header ? ISCSI_DIGEST_LEN : 0);
	if (unread(r) < need)
		return false;
	if (c->rx_digest.header) {
		size_t n = need - ISCSI_DIGEST_LEN;
		uint32_t crc = crc32c_update(CRC32C_SEED, b, n);

		if (crc32c_wire(crc) != get_le32(b + n)) {
			c->stats.digest_errors++;
			dmtcp_fail_conn(c, ERR_HEADER_DIGEST); /* §7.8, ERL 0 */
			return false;
		}
		if (!header_ok(c, b))
			return false;
	}
	dm_trace_pdu(&c->dm, false, b);
	memcpy(r->bhs, b, ISCSI_BHS_LEN);
	if (r->pdu.ahs_len)
		memcpy(r->ahs, b + ISCSI_BHS_LEN, r->pdu.ahs_len);
	r->head += need;
	header_complete(c);
	return true;
}

/* ---- the loop ---- */

static bool read_payload(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	size_t n = MIN(unread(r), (size_t)r->left);

	if (n)
		payload_from_look(c, n);
	if (r->left)
		return false;
	dmtcp_rx_go(c, RX_TRAILER);
	return true;
}

/* [RFC 7143: 7.8 #1] */
static bool read_trailer(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	size_t pad = round_up4(r->pdu.dsl) - r->pdu.dsl;
	bool digest = c->rx_digest.data && r->pdu.dsl;
	size_t need = pad + (digest ? ISCSI_DIGEST_LEN : 0);

	if (unread(r) < need)
		return false;
	if (digest) {
		r->crc = crc32c_update(r->crc, look_at(r), pad);
		if (crc32c_wire(r->crc) != get_le32(look_at(r) + pad) &&
		    !r->drop_err)
			r->drop_err = ERR_DATA_DIGEST;
	}
	r->head += need;
	pdu_complete(c);
	return true;
}

/* Processes the look-ahead buffer as far as it goes, and as long as the driver gives time. */
static void read_pdus(struct dmtcp_conn *c)
{
	bool more = true;

	while (more) {
		switch (c->rx.state) {
		case RX_HEADER:
			more = !c->rx.is_spent && read_header(c);
			break;
		case RX_PAYLOAD:
			more = read_payload(c);
			break;
		case RX_TRAILER:
			more = read_trailer(c);
			break;
		case RX_RESUMED:
			enter_payload(c);
			break;
		case RX_HELD:
		case RX_STOPPED:
			more = false;
			break;
		}
	}
}

void dmtcp_rx_catch_up(struct dmtcp_conn *c)
{
	if (c->rx.state == RX_RESUMED)
		read_pdus(c);
}

unsigned dmtcp_rx_where(void *core, struct iovec *iov, unsigned max)
{
	struct dmtcp_conn *c = core;
	struct rx *r = &c->rx;
	unsigned n = 0;

	if (r->is_spent) { /* in an earlier turn */
		r->is_spent = false;
		read_pdus(c);
	}
	dmtcp_rx_catch_up(c);
	if (r->state == RX_STOPPED || r->state == RX_HELD || r->is_spent ||
	    max < 2)
		return 0;
	/* less than a header or trailer is left: moving it is cheap */
	memmove(r->look, look_at(r), unread(r));
	r->tail -= r->head;
	r->head = 0;
	resize_look(c);
	r->direct = 0;
	if (r->state == RX_PAYLOAD && r->task)
		r->direct = bufv_slice(task_buffer(c), r->at, r->left, iov,
				       max - 1, &n);
	else if (r->state == RX_PAYLOAD && r->collect) {
		iov[n++] = (struct iovec){ r->collect + r->collected, r->left };
		r->direct = r->left;
	}
	/* payload without a place is received here and discarded; the
	 * look-ahead buffer may follow only the end of a payload */
	if (r->direct == 0 || r->direct == r->left) {
		iov[n].iov_base = r->look + r->tail;
		iov[n++].iov_len = look_room(r);
	}
	return n;
}

void dmtcp_rx_done(void *core, size_t n, xtime now)
{
	struct dmtcp_conn *c = core;
	struct rx *r = &c->rx;
	size_t direct = MIN(n, r->direct);

	c->now = now;
	c->stats.rx_bytes += n;
	r->direct = 0;
	if (direct)
		payload_placed(c, direct);
	r->tail += n - direct;
	read_pdus(c);
}
