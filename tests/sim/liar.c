/* SPDX-License-Identifier: BSD-2-Clause */
/* liar.c: see liar.h. */
#include "sim/liar.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

uint32_t liar_roll(struct liar *l, uint32_t n)
{
	l->seed = l->seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(l->seed >> 4) * n >> 28);
}

static bool often(struct liar *l)
{
	return liar_roll(l, 4) != 0;
}

/* ---- output ---- */

static void stage_bytes(struct liar *l, const void *p, size_t n)
{
	if (l->out_len + n > l->out_room) {
		l->out_room = 2 * (l->out_len + n);
		l->out = realloc(l->out, l->out_room);
		assert_non_null(l->out);
	}
	if (n)
		memcpy(l->out + l->out_len, p, n);
	l->out_len += n;
}

static void send_pdu(struct liar *l, struct iscsi_pdu *p, const void *data,
		     bool numbered)
{
	static const uint8_t pad[4];
	uint8_t bhs[ISCSI_BHS_LEN];

	p->statsn = l->statsn;
	l->statsn += numbered;
	p->expcmdsn = l->expcmdsn;
	p->maxcmdsn = l->expcmdsn + LIAR_TASKS - 1;
	iscsi_bhs_encode(p, bhs);
	stage_bytes(l, bhs, sizeof(bhs));
	stage_bytes(l, data, p->dsl);
	stage_bytes(l, pad, round_up4(p->dsl) - p->dsl);
	wire_host(l->wire, 1)->kick(wire_host(l->wire, 1));
}

/* ---- the answers ---- */

/* Returns a byte that differs for each command and offset. */
static uint8_t content(const struct liar_task *t, uint32_t off, uint32_t again)
{
	return (uint8_t)((t->cmd.itt * 31 + off * 7 + (off >> 8) + again) | 1);
}

static uint32_t any_length(struct liar *l, uint32_t edtl)
{
	static const uint32_t some[] = { 0, 1, 3, 512, 4096 };

	if (often(l))
		return liar_roll(l, edtl + 1);
	return some[liar_roll(l, ARRAY_LEN(some))];
}

static void send_data(struct liar *l, struct liar_task *t, uint32_t off,
		      uint32_t len, const struct iscsi_pdu *more)
{
	struct iscsi_pdu p = *more;
	uint8_t *data = malloc(len + 1);
	uint32_t again = liar_roll(l, 2);
	bool late = t->answered; /* no data of an answered command */

	p.op = ISCSI_DATA_IN;
	p.itt = t->cmd.itt;
	p.ttt = ISCSI_RESERVED_TAG;
	p.dsl = len;
	p.data.offset = off;
	if (!p.data.datasn)
		p.data.datasn = t->datasn;
	t->datasn++;
	for (uint32_t i = 0; i < len; i++) {
		uint32_t at = off + i;
		bool inside = range_ok(at, 1, t->cmd.cmd.edtl);

		/* parameter data exist already */
		data[i] = inside && t->has_sent[at] ? t->sent[at]
						    : content(t, at, again);
		if (!inside)
			continue;
		t->sent[at] = data[i];
		t->has_sent[at] = late ? t->has_sent[at] : LIAR_SENT;
	}
	t->answered |= p.data.status_present;
	send_pdu(l, &p, data, p.data.status_present);
	free(data);
}

static uint32_t any_resid(struct liar *l, const struct liar_task *t)
{
	uint32_t edtl = t->cmd.cmd.edtl;
	const uint32_t some[] = {
		0,    1,	512,	    edtl / 2, edtl - 1,
		edtl, edtl + 1, UINT32_MAX, t->asked, edtl - t->asked
	};

	return often(l) ? some[liar_roll(l, ARRAY_LEN(some))]
			: liar_roll(l, edtl + 1);
}

static void any_residual(struct liar *l, const struct liar_task *t,
			 uint8_t *flags, uint32_t *resid)
{
	static const uint8_t some[] = { 0,
					ISCSI_RESID_UNDERFLOW,
					ISCSI_RESID_UNDERFLOW,
					ISCSI_RESID_OVERFLOW,
					ISCSI_RESID_OVERFLOW |
						ISCSI_RESID_UNDERFLOW,
					0x1e };

	*flags = some[liar_roll(l, ARRAY_LEN(some))];
	*resid = any_resid(l, t);
}

static uint8_t any_status(struct liar *l)
{
	static const uint8_t some[] = { 0,    0,    0,	  0,	0,
					0x02, 0x04, 0x08, 0x28, 0xff };

	return some[liar_roll(l, ARRAY_LEN(some))];
}

static void send_response(struct liar *l, struct liar_task *t, uint8_t status,
			  uint8_t flags, uint32_t resid)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
			       .final = true,
			       .itt = t->cmd.itt };

	p.rsp.status = status;
	p.rsp.resid_flags = flags;
	p.rsp.resid = resid;
	t->answered = true;
	send_pdu(l, &p, NULL, true);
}

static void ask(struct liar *l, const struct liar_task *t, uint32_t sn,
		uint32_t off, uint32_t len)
{
	struct iscsi_pdu p = { .op = ISCSI_R2T,
			       .final = true,
			       .lun = t->cmd.lun,
			       .itt = t->cmd.itt,
			       .ttt = 1 + sn };

	p.r2t.r2tsn = sn;
	p.r2t.offset = off;
	p.r2t.ddtl = len;
	send_pdu(l, &p, NULL, false);
}

/* ---- a correct answer ---- */

static void honest_read(struct liar *l, struct liar_task *t, uint32_t len)
{
	struct iscsi_pdu p = { .final = true };
	uint32_t edtl = t->cmd.cmd.edtl, left = edtl - len;

	for (uint32_t off = 0; off < len;) {
		uint32_t n = 1 + liar_roll(l, MIN(len - off, 8192u));

		send_data(l, t, off, n, &p);
		off += n;
	}
	send_response(l, t, 0, left ? ISCSI_RESID_UNDERFLOW : 0, left);
}

static void honest_write(struct liar *l, struct liar_task *t)
{
	uint32_t left = t->cmd.cmd.edtl - t->asked;

	if (left == 0) {
		send_response(l, t, 0, 0, 0);
		return;
	}
	left = MIN(left, 16384u);
	ask(l, t, t->r2tsn++, t->asked, left);
	t->asked += left;
}

/* ---- wrong answers ---- */

static void lie_with_data(struct liar *l, struct liar_task *t)
{
	struct iscsi_pdu p = { .final = often(l) };
	uint32_t edtl = t->cmd.cmd.edtl, off = t->asked, len;

	if (liar_roll(l, 6) == 0)
		off = liar_roll(l, edtl + 2);
	len = any_length(l, edtl - MIN(off, edtl));
	if (liar_roll(l, 12) == 0)
		len += edtl;
	len = MIN(len, 8192u);
	if (liar_roll(l, 12) == 0)
		p.data.datasn = liar_roll(l, 9);
	if (liar_roll(l, 4) == 0) {
		p.data.status_present = true;
		p.data.status = any_status(l);
		any_residual(l, t, &p.data.resid_flags, &p.data.resid);
	}
	send_data(l, t, off, len, &p);
	t->asked = off + len;
}

static void lie_with_r2t(struct liar *l, struct liar_task *t)
{
	uint32_t edtl = t->cmd.cmd.edtl, len = any_length(l, edtl);
	uint32_t sn = liar_roll(l, 8) ? t->r2tsn : liar_roll(l, 9);
	uint32_t off = liar_roll(l, 5) ? t->asked : liar_roll(l, edtl + 2);

	ask(l, t, sn, off, len);
	t->r2tsn++;
	t->asked = off + len;
}

static void lie_with_response(struct liar *l, struct liar_task *t)
{
	uint8_t flags;
	uint32_t resid;

	any_residual(l, t, &flags, &resid);
	send_response(l, t, any_status(l), flags, resid);
}

static void lie_with_something_else(struct liar *l, struct liar_task *t)
{
	struct liar_task other = *t;
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
			       .final = true,
			       .itt = ISCSI_RESERVED_TAG,
			       .ttt = ISCSI_RESERVED_TAG };

	switch (liar_roll(l, 3)) {
	case 0:
		send_pdu(l, &p, NULL, false);
		return;
	case 1: /* an answer with an unknown tag */
		other.cmd.itt ^= 0x00110000;
		send_response(l, &other, 0, 0, 0);
		return;
	default: /* an answer twice */
		if (t->answered)
			send_response(l, t, 0, 0, 0);
	}
}

/* Every PDU is well formed and in sequence: only the amount of data and its
 * residual are wrong. */
static void lie_about_the_amount(struct liar *l, struct liar_task *t)
{
	uint32_t edtl = t->cmd.cmd.edtl, end = any_length(l, edtl);

	if (t->cmd.cmd.write && t->asked < edtl && liar_roll(l, 2)) {
		end = MIN(edtl - t->asked, 16384u);
		ask(l, t, t->r2tsn++, t->asked, 1 + liar_roll(l, end));
	}
	while (t->cmd.cmd.read && t->asked < MIN(end, edtl)) {
		struct iscsi_pdu p = { .final = true };
		uint32_t n = 1 + liar_roll(l, MIN(end - t->asked, 8192u));

		p.data.status_present = t->asked + n == end && often(l);
		if (p.data.status_present)
			any_residual(l, t, &p.data.resid_flags, &p.data.resid);
		send_data(l, t, t->asked, n, &p);
		t->asked += n;
	}
	if (!t->answered)
		lie_with_response(l, t);
}

static void lie(struct liar *l, struct liar_task *t)
{
	unsigned steps = 1 + liar_roll(l, 7);

	l->lies++;
	t->asked = MIN(t->cmd.dsl, t->cmd.cmd.edtl);
	if (t->cmd.cmd.read)
		t->asked = 0;
	if (liar_roll(l, 10)) {
		lie_about_the_amount(l, t);
		return;
	}
	for (unsigned i = 0; i < steps; i++) {
		unsigned what = liar_roll(l, 16);

		if (what == 0)
			lie_with_something_else(l, t);
		else if (what == 1)
			lie_with_response(l, t);
		else if (t->cmd.cmd.read != (what == 2))
			lie_with_data(l, t);
		else
			lie_with_r2t(l, t);
	}
	if (!t->answered && liar_roll(l, 16))
		lie_with_response(l, t);
	if (liar_roll(l, 8) == 0)
		lie_with_something_else(l, t);
}

/* ---- input ---- */

static void keep_data_out(struct liar_task *t, uint32_t off, const uint8_t *p,
			  uint32_t n)
{
	/* the initiator never sends data beyond the expected length */
	assert_true(range_ok(off, n, t->cmd.cmd.edtl));
	memcpy(t->taken + off, p, n);
	memset(t->has_taken + off, 1, n);
}

static void take_command(struct liar *l, const struct iscsi_pdu *p,
			 const uint8_t *data)
{
	struct liar_task *t = &l->tasks[p->itt % LIAR_TASKS];
	uint32_t edtl = p->cmd.edtl;
	size_t n;

	assert_true(edtl <= LIAR_MOST);
	memset(t->has_sent, 0, LIAR_MOST);
	memset(t->has_taken, 0, LIAR_MOST);
	t->used = true;
	t->cmd = *p;
	t->datasn = t->r2tsn = 0;
	t->answered = false;
	l->expcmdsn = p->cmdsn + !p->immediate;
	keep_data_out(t, 0, data, p->dsl);
	n = l->parameters(l, p, t->sent, edtl);
	memset(t->has_sent, LIAR_READY, n);
	t->asked = p->dsl;
	t->honest = liar_roll(l, 100) < l->honesty;
	if (!t->honest)
		lie(l, t);
	else if (p->cmd.write)
		honest_write(l, t);
	else
		honest_read(l, t, n ? (uint32_t)n : edtl);
}

static void take_data_out(struct liar *l, const struct iscsi_pdu *p,
			  const uint8_t *data)
{
	struct liar_task *t = &l->tasks[p->itt % LIAR_TASKS];

	assert_true(t->used && t->cmd.itt == p->itt);
	keep_data_out(t, p->data.offset, data, p->dsl);
	if (p->final && t->honest)
		honest_write(l, t);
}

static void login(struct liar *l, const struct iscsi_pdu *in)
{
	static const char keys[] =
		"TargetPortalGroupTag=1\0HeaderDigest=None\0DataDigest=None\0"
		"InitialR2T=Yes\0ImmediateData=Yes\0MaxOutstandingR2T=2\0"
		"MaxBurstLength=16384\0FirstBurstLength=4096\0"
		"MaxRecvDataSegmentLength=8192\0iSCSIProtocolLevel=2";
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE,
			       .final = true,
			       .itt = in->itt };

	memcpy(p.login.isid, in->login.isid, sizeof(p.login.isid));
	p.login.tsih = 1;
	p.login.transit = in->login.transit;
	p.login.csg = in->login.csg;
	p.login.nsg = in->login.nsg;
	l->expcmdsn = in->cmdsn;
	l->full_feature = in->login.transit && in->login.nsg == 3;
	p.dsl = l->full_feature ? (uint32_t)sizeof(keys) : 0;
	send_pdu(l, &p, keys, true);
}

static void take_pdu(struct liar *l, const struct iscsi_pdu *p,
		     const uint8_t *data)
{
	struct iscsi_pdu a = { .final = true, .itt = p->itt };

	switch (p->op) {
	case ISCSI_LOGIN_REQUEST:
		login(l, p);
		return;
	case ISCSI_SCSI_COMMAND:
		take_command(l, p, data);
		return;
	case ISCSI_DATA_OUT:
		take_data_out(l, p, data);
		return;
	case ISCSI_NOP_OUT:
		a.op = ISCSI_NOP_IN;
		a.ttt = ISCSI_RESERVED_TAG;
		break;
	case ISCSI_TMF_REQUEST:
		a.op = ISCSI_TMF_RESPONSE;
		break;
	case ISCSI_LOGOUT_REQUEST:
		a.op = ISCSI_LOGOUT_RESPONSE;
		break;
	default:
		fail();
	}
	if (p->itt != ISCSI_RESERVED_TAG)
		send_pdu(l, &a, NULL, true);
}

static void parse(struct liar *l)
{
	size_t at = 0;

	while (l->in_len - at >= ISCSI_BHS_LEN) {
		const uint8_t *b = l->in + at;
		struct iscsi_pdu p;
		size_t n;

		assert_int_equal(iscsi_bhs_decode(&p, b), 0);
		n = ISCSI_BHS_LEN + p.ahs_len + round_up4(p.dsl);
		assert_true(n <= sizeof(l->in));
		if (l->in_len - at < n)
			break;
		take_pdu(l, &p, b + ISCSI_BHS_LEN + p.ahs_len);
		at += n;
	}
	memmove(l->in, l->in + at, l->in_len - at);
	l->in_len -= at;
}

/* ---- functions for the driver ---- */

static unsigned rx_where(void *core, struct iovec *iov, unsigned max)
{
	struct liar *l = core;

	(void)max;
	iov[0] = (struct iovec){ l->in + l->in_len, sizeof(l->in) - l->in_len };
	return 1;
}

static void rx_done(void *core, size_t n, xtime now)
{
	struct liar *l = core;

	(void)now;
	l->in_len += n;
	parse(l);
}

static unsigned tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct liar *l = core;

	(void)max;
	iov[0] = (struct iovec){ l->out, l->out_len };
	return l->out_len ? 1 : 0;
}

static void tx_done(void *core, size_t n, xtime now)
{
	struct liar *l = core;

	(void)now;
	memmove(l->out, l->out + n, l->out_len - n);
	l->out_len -= n;
}

static void expire(void *core, xtime now)
{
	(void)core;
	(void)now;
}

static void status(const void *core, struct stream_status *st)
{
	(void)core;
	*st = (struct stream_status){ .fate = STREAM_GO,
				      .deadline = XTIME_NEVER };
}

static void connection_closed(void *core, int err, xtime now)
{
	struct liar *l = core;

	(void)err;
	(void)now;
	l->closed = true;
}

static const struct stream_ops ops = {
	.rx_where = rx_where,
	.rx_done = rx_done,
	.tx_what = tx_what,
	.tx_done = tx_done,
	.expire = expire,
	.status = status,
	.closed = connection_closed,
};

/* ---- set-up ---- */

static size_t no_parameters(struct liar *l, const struct iscsi_pdu *cmd,
			    uint8_t *p, size_t n)
{
	(void)l;
	(void)cmd;
	(void)p;
	(void)n;
	return 0;
}

void liar_init(struct liar *l, struct wire *wire, uint32_t seed)
{
	memset(l, 0, sizeof(*l));
	l->wire = wire;
	l->seed = seed;
	l->statsn = 1;
	l->parameters = no_parameters;
	for (unsigned i = 0; i < LIAR_TASKS; i++) {
		struct liar_task *t = &l->tasks[i];

		t->sent = calloc(4, LIAR_MOST);
		assert_non_null(t->sent);
		t->has_sent = t->sent + LIAR_MOST;
		t->taken = t->sent + 2u * LIAR_MOST;
		t->has_taken = t->sent + 3u * LIAR_MOST;
	}
	wire_attach(wire, 1, &ops, l);
}

void liar_fini(struct liar *l)
{
	for (unsigned i = 0; i < LIAR_TASKS; i++)
		free(l->tasks[i].sent);
	free(l->out);
}

const struct liar_task *liar_find(const struct liar *l, uint32_t itt)
{
	const struct liar_task *t = &l->tasks[itt % LIAR_TASKS];

	return t->used && t->cmd.itt == itt ? t : NULL;
}
