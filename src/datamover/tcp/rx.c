/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx.c: framing. Many PDUs come with one read into the look-ahead buffer;
 * payload that is not there yet is read straight to its final place, with the
 * look-ahead behind it for the headers that follow.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "datamover/tcp/internal.h"

static size_t unread(const struct rx *r)
{
	return r->tail - r->head;
}

static const uint8_t *look_at(const struct rx *r)
{
	return r->look + r->head;
}

/* ---- where bytes go ---- */

static const struct bufv *window(const struct dmtcp_conn *c)
{
	const struct dm_task *t = c->rx.task;

	return c->dm.role == ISCSI_TARGET ? &t->out : &t->in;
}

/* Grows the look-ahead once the login is over. On failure the small one
 * goes on: slower, not wrong. */
static void grow_look(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	uint8_t *big;

	if (!c->full_feature || r->look_size >= c->cfg.lookahead)
		return;
	big = malloc(c->cfg.lookahead);
	if (!big)
		return;
	memcpy(big, look_at(r), unread(r));
	free(r->look);
	r->look = big;
	r->look_size = c->cfg.lookahead;
	r->tail -= r->head;
	r->head = 0;
}

/*
 * Where payload is large the look-ahead is short: one that took the next
 * payload along with its header would have to be copied out again.
 */
#define LARGE_PAYLOAD (32u << 10)
#define SHORT_LOOK    1024u
/* So many PDUs without a large payload until all of it is offered again. */
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

unsigned dmtcp_rx_where(void *core, struct iovec *iov, unsigned max)
{
	struct dmtcp_conn *c = core;
	struct rx *r = &c->rx;
	unsigned n = 0;

	if (c->fate != STREAM_GO || c->leaving || max < 2)
		return 0;
	/* at most a header, or a trailer, is left over: cheap to move */
	memmove(r->look, look_at(r), unread(r));
	r->tail -= r->head;
	r->head = 0;
	grow_look(c);
	r->direct = 0;
	if (r->state == RX_PAYLOAD && r->task)
		r->direct =
			bufv_slice(window(c), r->at, r->left, iov, max - 1, &n);
	else if (r->state == RX_PAYLOAD && r->collect) {
		iov[n++] = (struct iovec){ r->collect + r->collected, r->left };
		r->direct = r->left;
	}
	/* what has no place is read into the look-ahead and dropped there;
	 * it may only follow when the direct part is the whole rest */
	if (r->direct == 0 || r->direct == r->left) {
		iov[n].iov_base = r->look + r->tail;
		iov[n++].iov_len = look_room(r);
	}
	return n;
}

/* ---- payload ---- */

/* n payload bytes lie where rx_where put them. */
static void payload_placed(struct dmtcp_conn *c, size_t n)
{
	struct rx *r = &c->rx;

	if (r->task) {
		if (c->rx_data_digest)
			r->crc = bufv_crc32c(window(c), r->at, n, r->crc);
		r->at += (uint32_t)n;
	} else {
		if (c->rx_data_digest)
			r->crc = crc32c_update(r->crc,
					       r->collect + r->collected, n);
		r->collected += (uint32_t)n;
	}
	r->left -= (uint32_t)n;
}

/* n payload bytes lie in the look-ahead: to their place. */
static void payload_from_look(struct dmtcp_conn *c, size_t n)
{
	struct rx *r = &c->rx;

	if (c->rx_data_digest)
		r->crc = crc32c_update(r->crc, look_at(r), n);
	if (r->task) {
		bufv_copy_in(window(c), r->at, look_at(r), n);
		r->at += (uint32_t)n;
	} else if (r->collect) {
		memcpy(r->collect + r->collected, look_at(r), n);
		r->collected += (uint32_t)n;
	}
	c->stats.copied += n;
	r->left -= (uint32_t)n;
	r->head += n;
}

void dmtcp_rx_forget(struct dmtcp_conn *c, const struct dm_task *t)
{
	if (c->rx.task != t)
		return;
	assert(!c->rx.direct); /* the driver is not reading into it now */
	c->rx.task = NULL;
	c->rx.burst = NULL;
}

/* ---- a PDU that is in ---- */

static void drop(struct dmtcp_conn *c, int err)
{
	c->stats.dropped++;
	c->stats.digest_errors += err == ERR_DATA_DIGEST;
	if (c->dm.role == ISCSI_INITIATOR && err == ERR_DATA_DIGEST)
		dmtcp_die(c, err); /* ERL 0: §7.8: nothing to ask again with */
	else
		c->dm.up->error_notify(&c->dm, &c->rx.pdu, c->rx.bhs, err);
}

static void control_complete(struct dmtcp_conn *c, const uint8_t *data)
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
		dmtcp_die(c, err);
}

static void pdu_complete(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;

	r->state = RX_HEADER;
	c->stats.rx_pdus++;
	c->stats.rx_payload += r->pdu.dsl;
	remember_size(r);
	if (r->is_control) {
		if (r->drop_err)
			drop(c, r->drop_err);
		else if (c->dm.role == ISCSI_INITIATOR)
			dmtcp_initiator_complete(c);
		else
			control_complete(c, r->collect);
		free(r->collect);
		r->collect = NULL;
		return;
	}
	if (r->drop_err)
		drop(c, r->drop_err);
	if (c->dm.role == ISCSI_TARGET)
		dmtcp_target_complete(c);
	else
		dmtcp_initiator_complete(c);
}

/* ---- headers ---- */

/* A control-type PDU's data are kept until they are whole. */
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

/* RFC 7143 §13.12: no more than we declared; before that, no more than the
 * default. AHS belong to SCSI Commands only (§11.2.2). */
static int check_lengths(const struct dmtcp_conn *c, const struct iscsi_pdu *p)
{
	if (p->dsl > c->max_recv_dsl)
		return ERR_TOO_LONG;
	if (p->ahs_len && (!c->full_feature || p->op != ISCSI_SCSI_COMMAND))
		return ERR_FORMAT;
	return 0;
}

/* Whom a PDU may come from, and what is wrong with this one. */
static int judge(const struct dmtcp_conn *c, int decode_err)
{
	if (decode_err)
		return decode_err;
	if (iscsi_opcode_from_initiator(c->rx.pdu.op) !=
	    (c->dm.role == ISCSI_TARGET))
		return ERR_PROTOCOL;
	return 0;
}

/* §4.2.4: an initiator in login that receives anything but a Login Response
 * ends the connection. (A target has an answer to give: its role does.) */
static bool breaks_login(const struct dmtcp_conn *c)
{
	return !c->full_feature && c->dm.role == ISCSI_INITIATOR &&
	       c->rx.pdu.op != ISCSI_LOGIN_RESPONSE;
}

static void header_complete(struct dmtcp_conn *c, int decode_err)
{
	struct rx *r = &c->rx;
	int err;

	r->task = NULL;
	r->burst = NULL;
	r->is_control = false;
	r->collected = 0;
	r->left = r->pdu.dsl;
	r->crc = CRC32C_SEED;
	r->drop_err = judge(c, decode_err);
	if (r->drop_err) {
		r->is_control = true; /* thrown away, then reported */
	} else if (has_own_place(c, r->pdu.op)) {
		if (c->dm.role == ISCSI_TARGET)
			dmtcp_target_header(c);
		else
			dmtcp_initiator_header(c);
	} else {
		err = collect_control(c);
		if (err)
			dmtcp_die(c, err);
	}
	if (r->state == RX_HEADER)
		r->state = RX_PAYLOAD;
}

/* Returns whether a whole header was there. */
static bool read_header(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	const uint8_t *b = look_at(r);
	size_t need = ISCSI_BHS_LEN;
	int decode_err, err;

	if (unread(r) < need)
		return false;
	/* lengths first: an AHS and a digest may belong to the header */
	need += b[4] * 4u + (c->rx_header_digest ? ISCSI_DIGEST_LEN : 0);
	if (unread(r) < need)
		return false;
	if (c->rx_header_digest) {
		size_t n = need - ISCSI_DIGEST_LEN;
		uint32_t crc = crc32c_update(CRC32C_SEED, b, n);

		if (crc32c_wire(crc) != get_le32(b + n)) {
			c->stats.digest_errors++;
			dmtcp_die(c, ERR_HEADER_DIGEST); /* §7.8 at ERL 0 */
			return false;
		}
	}
	decode_err = iscsi_bhs_decode(&r->pdu, b);
	err = check_lengths(c, &r->pdu);
	if (!err && breaks_login(c))
		err = ERR_PROTOCOL;
	if (err) {
		dmtcp_die(c, err);
		return false;
	}
	dm_trace_pdu(&c->dm, false, b);
	memcpy(r->bhs, b, ISCSI_BHS_LEN);
	memcpy(r->ahs, b + ISCSI_BHS_LEN, r->pdu.ahs_len);
	r->head += need;
	header_complete(c, decode_err);
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
	r->state = RX_TRAILER;
	return true;
}

static bool read_trailer(struct dmtcp_conn *c)
{
	struct rx *r = &c->rx;
	size_t pad = round_up4(r->pdu.dsl) - r->pdu.dsl;
	bool digest = c->rx_data_digest && r->pdu.dsl;
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

static void run(struct dmtcp_conn *c)
{
	bool more = true;

	while (more && c->fate == STREAM_GO && !c->leaving) {
		switch (c->rx.state) {
		case RX_HEADER:
			more = read_header(c);
			break;
		case RX_PAYLOAD:
			more = read_payload(c);
			break;
		case RX_TRAILER:
			more = read_trailer(c);
			break;
		case RX_DEAD:
			more = false;
			break;
		}
	}
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
	run(c);
}
