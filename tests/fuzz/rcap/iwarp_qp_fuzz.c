/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp_qp_fuzz.c: a queue pair with a peer that sends anything, and a user
 * that makes any permitted call, with a model of memory: bytes change only in a
 * region that the peer may write, in a receive, or in the sink of a Read, and
 * only while these are in use; no byte is sent that the peer must not read (all
 * other memory has a pattern that the input cannot predict). Each posted request
 * completes once, and the queue pair sends complete FPDUs, a Terminate last.
 *
 * Input: settings, settings, then steps: operation, argument, octets.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rcap/iwarp/iwarp.h"
#include "rcap/iwarp/rdmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) \
 do {            \
  if (!(x))      \
   abort();      \
 } while (0)

/* the arena: areas with guards between them */
#define GUARD	256
#define R_LEN	3000
#define W_LEN	52000 /* three long segments */
#define SMALL	200
#define RECVS	3
#define READS	4
#define SENDS	8
#define STEPS	200
#define SENT	(1u << 18)
#define BASE	0x10000
#define R_AT	GUARD
#define W_AT	(R_AT + R_LEN + GUARD)
#define RECV_AT (W_AT + W_LEN + GUARD)
#define READ_AT (RECV_AT + RECVS * (SMALL + GUARD))
#define SEND_AT (READ_AT + READS * (SMALL + GUARD))
#define SEND_LEN \
 1024 /* the source of a Send or Write: of the queue pair while posted */
#define X_AT	(SEND_AT + SENDS * SEND_LEN + GUARD)
#define X_LEN	64 /* for atomic operations */
#define ARENA	(X_AT + X_LEN + GUARD)
#define PENDING (1u << 18)

struct area {
	size_t at, len;
	bool open; /* the bytes of the area may change now */
};

enum area_id {
	A_W,
	A_RECV,
	A_READ = A_RECV + RECVS,
	A_X = A_READ + READS,
	A_COUNT,
};

struct request {
	struct rcap_wr wr;
	struct iovec iov;
	struct rcap_atomic atomic;
	bool out;
};

struct run {
	struct stream_host host;
	struct iwarp *c;
	struct rcap_qp *qp;
	xtime now;
	uint8_t canary[8];
	uint64_t rotations[8];
	_Alignas(8) uint8_t arena[ARENA];
	uint8_t shadow[ARENA];
	struct area areas[A_COUNT];
	struct iovec r_iov, w_iov, x_iov;
	struct rcap_mr r, w, x;
	bool r_valid, w_valid;
	struct rcap_recv recv[RECVS];
	struct request reads[READS], sends[SENDS];
	struct request *order[READS + SENDS]; /* as posted */
	unsigned order_n;
	struct mpa_stream in;
	bool started, established, stalled, closed, answered;
	uint8_t how, emss;
	size_t window; /* octets that arrive per step at most; 0: all */
	uint8_t *pending;
	size_t pending_at, pending_len;
	uint8_t *sent;
	size_t sent_len;
	bool sent_lost;
	uint64_t last8;
};

static uint8_t source[8];

static bool is_extended(const struct run *r)
{
	return r->emss & 0x04;
}

/* ---- the model ---- */

static void sync_area(struct run *r, struct area *a)
{
	memcpy(r->shadow + a->at, r->arena + a->at, a->len);
}

static void close_area(struct run *r, struct area *a)
{
	if (a->open)
		sync_area(r, a);
	a->open = false;
}

/* fills an area of the user with bytes that must never be sent */
static void refill(struct run *r, struct area *a)
{
	for (size_t i = 0; i < a->len; i++)
		r->arena[a->at + i] = r->canary[(a->at + i) % 8];
	sync_area(r, a);
}

static void check_memory(struct run *r)
{
	for (unsigned i = 0; i < A_COUNT; i++)
		if (r->areas[i].open)
			sync_area(r, &r->areas[i]);
	CHECK(memcmp(r->arena, r->shadow, ARENA) == 0);
}

static void take_sent(struct run *r, const struct iovec *iov, size_t n)
{
	const struct bufv v = bufv_of((struct iovec *)(uintptr_t)iov, 1);
	size_t from = r->sent_len;

	if (n > SENT)
		return; /* a piece cannot have more than one FPDU */
	if (r->sent_len + n > SENT) {
		from = r->sent_len = 0;
		r->sent_lost = true; /* the framing cannot be checked */
	}
	bufv_copy_out(&v, 0, r->sent + from, n);
	r->sent_len += n;
	for (size_t i = from; i < r->sent_len; i++) {
		r->last8 = r->last8 << 8 | r->sent[i];
		for (unsigned k = 0; k < 8; k++)
			CHECK(r->last8 != r->rotations[k]);
	}
}

/* ---- the user ---- */

static void retire_region(struct run *r, bool writable)
{
	if (writable && r->w_valid) {
		close_area(r, &r->areas[A_W]);
		refill(r, &r->areas[A_W]);
		r->w_valid = false;
	} else if (!writable && r->r_valid) {
		struct area a = { R_AT, R_LEN, false };

		refill(r, &a);
		r->r_valid = false;
	}
}

static void connect_request(void *arg, const struct rcap_cm *peer)
{
	struct run *r = arg;
	const struct rcap_cm cm = { .ird = peer->ird,
				    .ord = peer->ord,
				    .private_data = source,
				    .private_len = r->how >> 5 };

	CHECK(!r->answered);
	r->answered = true;
	if (r->how == 0x7f)
		CHECK(rcap_reject(r->qp, &cm) == 0);
	else
		CHECK(rcap_accept(r->qp, &cm) == 0);
}

static void established(void *arg, const struct rcap_cm *peer)
{
	struct run *r = arg;

	(void)peer;
	CHECK(!r->established);
	r->established = true;
}

static void wr_done(void *arg, struct rcap_wr *wr, int err)
{
	struct run *r = arg;
	struct request *q = container_of(wr, struct request, wr);

	CHECK(q->out && !r->closed && (err == 0 || err == ERR_ABORTED));
	CHECK(r->order_n > 0 && r->order[0] == q); /* in the order of posts */
	memmove(r->order, r->order + 1,
		--r->order_n * sizeof(struct request *));
	q->out = false;
	if (wr->op == RCAP_READ)
		close_area(r, &r->areas[A_READ + (q - r->reads)]);
	else /* the user owns the area again, and fills it with secret bytes */
		refill(r, &(struct area){ SEND_AT + SEND_LEN * (q - r->sends),
					  SEND_LEN, false });
}

static void received(void *arg, struct rcap_recv *v, int err)
{
	struct run *r = arg;
	struct area *a = &r->areas[A_RECV + (v - r->recv)];

	CHECK(a->open && !r->closed && (err == 0 || err == ERR_ABORTED));
	close_area(r, a);
	if (err)
		return;
	CHECK(v->len <= v->cap);
	if (v->invalidated && r->w_valid && v->stag == r->w.stag)
		retire_region(r, true);
	else if (v->invalidated && r->r_valid && v->stag == r->r.stag)
		retire_region(r, false);
	else
		CHECK(!v->invalidated || v->stag == r->x.stag);
	CHECK(is_extended(r) || !v->is_immediate);
	refill(r, a);
	a->open = rcap_post_recv(r->qp, v) == 0;
}

static void closed(void *arg, int err, const char *why)
{
	struct run *r = arg;

	CHECK(!r->closed && why && (err == 0) == (why[0] == 0));
	CHECK(r->order_n == 0);
	for (unsigned i = 0; i < RECVS; i++)
		CHECK(!r->areas[A_RECV + i].open);
	r->closed = true;
}

static const struct rcap_user user = {
	.connect_request = connect_request,
	.established = established,
	.wr_done = wr_done,
	.received = received,
	.closed = closed,
};

static void kick(struct stream_host *host)
{
	(void)host;
}

/* ---- the driver ---- */

static void output(struct run *r, size_t limit)
{
	struct iovec iov[16];
	unsigned n;

	while (limit && (n = iwarp_stream_ops.tx_what(r->c, iov, 16)) > 0) {
		size_t total = 0;

		for (unsigned i = 0; i < n && limit; i++) {
			size_t k = MIN(iov[i].iov_len, limit);

			take_sent(r, &iov[i], k);
			total += k;
			limit -= k;
		}
		CHECK(total > 0);
		iwarp_stream_ops.tx_done(r->c, total, r->now);
	}
}

static void turn(struct run *r)
{
	struct iovec iov[1];
	enum stream_fate fate;
	int err = 0;

	check_memory(r);
	if (r->closed)
		return;
	output(r, r->stalled ? 0 : SIZE_MAX);
	fate = stream_fate_of(&iwarp_stream_ops, r->c, &err);
	if (fate == STREAM_CLOSE ||
	    (fate == STREAM_FLUSH && !iwarp_stream_ops.tx_what(r->c, iov, 1)))
		iwarp_stream_ops.closed(r->c, err, r->now);
}

/* arrive delivers bytes in flight, up to the window. */
static void arrive(struct run *r)
{
	size_t n = r->pending_len - r->pending_at;
	int err;

	if (r->window)
		n = MIN(n, r->window);
	while (n > 0 && !r->closed &&
	       stream_fate_of(&iwarp_stream_ops, r->c, &err) == STREAM_GO) {
		struct iovec iov[6];
		unsigned k = iwarp_stream_ops.rx_where(r->c, iov, 6);
		struct bufv v = bufv_of(iov, k);
		size_t len = MIN(n, v.len);

		CHECK(k <= 6);
		if (len == 0)
			break;
		bufv_copy_in(&v, 0, r->pending + r->pending_at, len);
		iwarp_stream_ops.rx_done(r->c, len, r->now);
		r->pending_at += len;
		n -= len;
	}
	turn(r);
}

static void input(struct run *r, const uint8_t *p, size_t n)
{
	memmove(r->pending, r->pending + r->pending_at,
		r->pending_len - r->pending_at);
	r->pending_len -= r->pending_at;
	r->pending_at = 0;
	n = MIN(n, PENDING - r->pending_len);
	if (n)
		memcpy(r->pending + r->pending_len, p, n);
	r->pending_len += n;
	arrive(r);
}

/* ---- set-up ---- */

static void make_canary(struct run *r, const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3u;
	h ^= h >> 29;
	put_be64(r->canary, h * 0xbf58476d1ce4e5b9u | 0x0100000000000080u);
	for (unsigned k = 0; k < 8; k++) {
		uint8_t b[8];

		for (unsigned i = 0; i < 8; i++)
			b[i] = r->canary[(i + k) % 8];
		r->rotations[k] = get_be64(b);
	}
	for (size_t i = 0; i < ARENA; i++)
		r->arena[i] = r->canary[i % 8];
}

static void make_areas(struct run *r)
{
	r->areas[A_W] = (struct area){ W_AT, W_LEN, false };
	for (unsigned i = 0; i < RECVS; i++)
		r->areas[A_RECV + i] =
			(struct area){ RECV_AT + i * (SMALL + GUARD), SMALL,
				       false };
	for (unsigned i = 0; i < READS; i++)
		r->areas[A_READ + i] =
			(struct area){ READ_AT + i * (SMALL + GUARD), SMALL,
				       false };
	r->areas[A_X] = (struct area){ X_AT, X_LEN, is_extended(r) };
	memset(r->arena + X_AT, 1, X_LEN);
	for (size_t i = 0; i < R_LEN;
	     i++) /* readable memory has no secret bytes */
		r->arena[R_AT + i] = (uint8_t)(i % 7);
	memcpy(r->shadow, r->arena, ARENA);
}

static void register_w(struct run *r)
{
	struct bufv v = bufv_of(&r->w_iov, 1);

	if (r->w_valid)
		return;
	r->w_valid = rcap_reg(r->qp, &v, BASE,
			      RCAP_REMOTE_WRITE |
				      (r->emss & 0x08 ? RCAP_UNDEFINED : 0),
			      &r->w) == 0;
	r->areas[A_W].open = r->w_valid;
}

static void config_of(const struct run *r, struct iwarp_config *cfg)
{
	static const unsigned rtr[4] = { 7, MPA_RTR_WRITE, MPA_RTR_READ,
					 MPA_RTR_SEND };

	iwarp_config_default(cfg, r->how & 1);
	cfg->wish.want_crc = r->how & 2;
	cfg->wish.want_markers = r->how & 4;
	cfg->revision = r->how & 8 ? 2 : 1;
	cfg->peer_to_peer = r->how & 16;
	cfg->wish.rtr = rtr[r->emss & 3];
	cfg->wish.ird = cfg->wish.ord = 3;
	cfg->emss = r->emss & 0x40 ? 0 : 160 + (r->emss & 0x3c) * 8u;
	cfg->lookahead = r->emss & 0x80 ? 65536 : 1024;
	cfg->max_regions = 16;
	cfg->extended = is_extended(r);
	cfg->seed = 7;
}

static void set_up_run(struct run *r)
{
	struct iwarp_config cfg;
	struct bufv v;

	r->host.kick = kick;
	config_of(r, &cfg);
	make_areas(r);
	r->c = iwarp_new(&cfg, &r->host, NULL, 0, 0);
	CHECK(r->c);
	r->qp = iwarp_qp(r->c);
	rcap_set_user(r->qp, &user, r);
	r->r_iov = (struct iovec){ r->arena + R_AT, R_LEN };
	r->w_iov = (struct iovec){ r->arena + W_AT, W_LEN };
	v = bufv_of(&r->r_iov, 1);
	CHECK(rcap_reg(r->qp, &v, BASE, RCAP_REMOTE_READ, &r->r) == 0);
	r->r_valid = true;
	register_w(r);
	r->x_iov = (struct iovec){ r->arena + X_AT, X_LEN };
	v = bufv_of(&r->x_iov, 1);
	CHECK(rcap_reg(r->qp, &v, BASE, RCAP_REMOTE_ATOMIC, &r->x) == 0);
	for (unsigned i = 0; i < RECVS; i++) {
		r->recv[i].buf = r->arena + r->areas[A_RECV + i].at;
		r->recv[i].cap = SMALL;
		CHECK(rcap_post_recv(r->qp, &r->recv[i]) == 0);
		r->areas[A_RECV + i].open = true;
	}
}

/* ---- steps ---- */

/* Sends an MPA frame that the queue pair accepts, if it waits for one. */
static void start_mpa(struct run *r)
{
	uint8_t b[MPA_FRAME_LEN + MPA_PRIVATE_MAX];
	const struct mpa_frame f = { .is_reply = r->how & 1,
				     .crc = r->how & 2,
				     .markers = r->how & 4,
				     .revision = r->how & 8 ? 2 : 1,
				     .enhanced = r->how & 8,
				     .peer_to_peer = r->how & 16,
				     .rtr = 7,
				     .ird = 3,
				     .ord = 3 };

	r->started = true;
	turn(r);
	if (rcap_state(r->qp) ==
	    RCAP_STARTING) /* not with octets of the input */
		input(r, b, (size_t)mpa_frame_encode(&f, b));
	r->in = (struct mpa_stream){ .markers = iwarp_terms(r->c)->markers_in,
				     .crc = iwarp_terms(r->c)->crc };
}

static void framed(struct run *r, const uint8_t *p, size_t n, size_t fill)
{
	static uint8_t head[70000], scratch[8192], out[80000];
	static const struct bufv none;
	struct iovec iov[400];
	uint8_t *room = scratch;
	struct bufv v;
	int k;

	if (!r->started)
		start_mpa(r);
	if (n)
		memcpy(head + MPA_LENGTH_LEN, p, n);
	memset(head + MPA_LENGTH_LEN + n, 0x11, fill);
	k = mpa_fpdu_build(&r->in, head, MPA_LENGTH_LEN + n + fill, &none, 0, 0,
			   NULL, iov, 400, &room);
	CHECK(k > 0);
	v = bufv_of(iov, (unsigned)k);
	bufv_copy_out(&v, 0, out, v.len);
	input(r, out, v.len);
}

static void post(struct run *r, enum rcap_op op, uint8_t arg)
{
	struct request *q = op == RCAP_READ ? r->reads : r->sends;
	unsigned n = op == RCAP_READ ? READS : SENDS, i = 0;
	struct rcap_wr *w;
	struct area *a;

	while (i < n && q[i].out)
		i++;
	if (i == n)
		return;
	q += i;
	a = &r->areas[A_READ + (op == RCAP_READ ? i : 0)];
	q->iov.iov_base = op == RCAP_READ ? r->arena + a->at
					  : r->arena + SEND_AT + SEND_LEN * i;
	q->iov.iov_len = op == RCAP_READ ? MIN(arg, SMALL) : arg * 4u;
	q->wr = (struct rcap_wr){ .op = op,
				  .flags = arg & 7,
				  .data = bufv_of(&q->iov, 1),
				  .stag = 0x1234,
				  .to = 0x5678 };
	if (op > RCAP_READ)
		q->wr.data.len = 0;
	q->wr.atomic = &q->atomic;
	w = &q->wr;
	if (op == RCAP_READ)
		refill(r, a);
	if (rcap_post(r->qp, &w, 1))
		return;
	if (op != RCAP_READ) {
		memset(q->iov.iov_base, 0x22, q->iov.iov_len);
		memset(r->shadow + SEND_AT + SEND_LEN * i, 0x22,
		       q->iov.iov_len);
	}
	q->out = true;
	r->order[r->order_n++] = q;
	if (op == RCAP_READ)
		a->open = true;
}

static void drop_region(struct run *r, bool writable)
{
	rcap_invalidate(r->qp, writable ? &r->w : &r->r);
	retire_region(r, writable);
}

static void advance(struct run *r, uint8_t arg)
{
	r->now += arg * (XTIME_S / 8);
	if (stream_deadline_of(&iwarp_stream_ops, r->c) <= r->now)
		iwarp_stream_ops.expire(r->c, r->now);
}

static void act(struct run *r, uint8_t op, uint8_t arg)
{
	switch (op) {
	case 3:
		post(r, RCAP_SEND, arg);
		break;
	case 4:
		post(r, RCAP_WRITE, arg);
		break;
	case 5:
		post(r, RCAP_READ, arg);
		break;
	case 6:
		drop_region(r, false);
		break;
	case 7:
		drop_region(r, true);
		break;
	case 8:
		rcap_disconnect(r->qp);
		break;
	case 9:
		rcap_terminate(r->qp, ERR_PROTOCOL, "the user's own");
		break;
	case 10:
		r->stalled = arg & 1;
		break;
	case 11:
		output(r, arg);
		break;
	case 12:
		advance(r, arg);
		break;
	case 13:
		register_w(r);
		if (arg)
			post(r, RCAP_IMMEDIATE + arg % 3, arg);
		break;
	case 14:
		r->window = arg * 16u;
		break;
	default:
		iwarp_stream_ops.closed(r->c, arg ? ERR_RESET : 0, r->now);
		break;
	}
	turn(r);
	arrive(r);
}

static const uint8_t *execute_step(struct run *r, const uint8_t *p,
				   size_t *left)
{
	uint8_t op = p[0] & 0x0f, arg = p[1];
	size_t n = 0;

	p += 2;
	*left -= 2;
	if (op == 0) {
		n = MIN(arg, *left);
		r->in.pos += n;
		input(r, p, n);
	} else if (op == 1) {
		n = MIN(arg, *left);
		framed(r, p, n, 0);
	} else if (op == 2) {
		n = MIN((size_t)DDP_TAGGED_LEN, *left);
		framed(r, p, n, arg * 80u);
	} else {
		act(r, op, arg);
	}
	*left -= n;
	return p + n;
}

/* ---- check of the sent octets ---- */

static void check_sent(const struct run *r)
{
	struct mpa_stream s = { .markers = iwarp_terms(r->c)->markers_out,
				.crc = iwarp_terms(r->c)->crc };
	const uint8_t *p = r->sent;
	size_t n = r->sent_len, total, ulpdu;
	struct mpa_frame f;
	int k = mpa_frame_decode(&f, p, n);
	bool over = false;

	CHECK(k >= 0 || n == 0);
	if (k <= 0)
		return;
	for (p += k, n -= (size_t)k;; p += total, n -= total) {
		struct iovec iov[400];
		struct rdmap_header h;
		uint8_t head[DDP_HEADER_MAX];
		struct bufv v;

		mpa_fpdu_peek(&s, p, n, &total);
		if (total == 0 || total > n)
			break;
		CHECK(!over && (r->established || !f.is_reply));
		k = mpa_fpdu_open(&s, p, total, iov, 400, &ulpdu);
		CHECK(k > 0);
		v = bufv_of(iov, (unsigned)k);
		bufv_copy_out(&v, 0, head, sizeof(head));
		CHECK(rdmap_decode(&h, head, ulpdu, is_extended(r)) > 0);
		over = h.opcode == RDMAP_TERMINATE;
	}
	CHECK(!over || n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t sent[SENT], pending[PENDING];
	static struct run r;
	size_t left = size;

	if (size < 2)
		return 0;
	memset(&r, 0, sizeof(r));
	memset(source, 0x22, sizeof(source));
	r.sent = sent;
	r.pending = pending;
	r.how = data[0];
	r.emss = data[1];
	make_canary(&r, data, size);
	set_up_run(&r);
	data += 2;
	left -= 2;
	for (unsigned i = 0; i < STEPS && left >= 2 && !r.closed; i++)
		data = execute_step(&r, data, &left);
	if (!r.closed)
		iwarp_stream_ops.closed(r.c, 0, r.now);
	check_memory(&r);
	CHECK(r.closed);
	if (!r.sent_lost)
		check_sent(&r);
	iwarp_free(r.c);
	return 0;
}
