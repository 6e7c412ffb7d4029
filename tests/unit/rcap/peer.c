/* SPDX-License-Identifier: BSD-2-Clause */
/* peer.c: a scripted peer of one queue pair. */
#include "unit/rcap/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

/* ---- up-calls ---- */

static void keep_cm(struct peer *p, const struct rcap_cm *cm)
{
	p->cm = *cm;
	if (cm->private_len)
		memcpy(p->private_data, cm->private_data, cm->private_len);
	p->cm.private_data = p->private_data;
}

static void connect_request(void *arg, const struct rcap_cm *cm)
{
	struct peer *p = arg;

	p->requested++;
	keep_cm(p, cm);
	if (!p->answer.private_len) {
		p->answer.ird = cm->ird;
		p->answer.ord = cm->ord;
	}
	if (p->hold)
		return;
	if (p->refuse)
		assert_int_equal(rcap_reject(p->qp, &p->answer), 0);
	else
		assert_int_equal(rcap_accept(p->qp, &p->answer), 0);
}

static void established(void *arg, const struct rcap_cm *cm)
{
	struct peer *p = arg;

	p->established++;
	if (!p->requested)
		keep_cm(p, cm);
	if (p->on_established)
		p->on_established(p);
}

static void wr_done(void *arg, struct rcap_wr *wr, int err)
{
	struct peer *p = arg;

	(void)wr;
	assert_false(p->closed);
	p->done++;
	if (err) {
		assert_int_equal(err, ERR_ABORTED);
		p->aborted++;
	}
	p->done_err = err;
}

static void received(void *arg, struct rcap_recv *r, int err)
{
	struct peer *p = arg;

	assert_false(p->closed);
	if (err) {
		assert_int_equal(err, ERR_ABORTED);
		p->aborted_recvs++;
		return;
	}
	p->received++;
	p->last = *r;
	memcpy(p->last_data, r->buf, r->len);
	if (p->on_received)
		p->on_received(p, r);
	if (!p->keep_recvs && rcap_state(p->qp) != RCAP_CLOSED)
		assert_int_equal(rcap_post_recv(p->qp, r), 0);
}

static void closed(void *arg, int err, const char *why)
{
	struct peer *p = arg;

	assert_false(p->closed);
	p->closed = true;
	p->err = err;
	snprintf(p->why, sizeof(p->why), "%s", why);
	assert_int_equal(err != 0, p->why[0] != 0);
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

/* ---- the driver's part ---- */

static void take_output(struct peer *p)
{
	struct iovec iov[64];
	unsigned n;

	while (!p->stalled &&
	       (n = iwarp_stream_ops.tx_what(p->c, iov, 64)) > 0) {
		size_t total = 0;

		for (unsigned i = 0; i < n; i++) {
			assert_true(p->sent_len + iov[i].iov_len <= PEER_SENT);
			memcpy(p->sent + p->sent_len, iov[i].iov_base,
			       iov[i].iov_len);
			p->sent_len += iov[i].iov_len;
			total += iov[i].iov_len;
		}
		assert_true(total > 0);
		iwarp_stream_ops.tx_done(p->c, total, p->now);
	}
}

void peer_turn(struct peer *p)
{
	struct iovec iov[1];
	int err = 0;
	enum stream_fate fate;

	if (p->closed)
		return;
	take_output(p);
	fate = stream_fate_of(&iwarp_stream_ops, p->c, &err);
	if (fate == STREAM_GO ||
	    (fate == STREAM_FLUSH && iwarp_stream_ops.tx_what(p->c, iov, 1)))
		return;
	iwarp_stream_ops.closed(p->c, err, p->now);
	assert_true(p->closed);
}

static bool takes_input(struct peer *p)
{
	int err;

	return !p->closed &&
	       stream_fate_of(&iwarp_stream_ops, p->c, &err) == STREAM_GO;
}

void peer_octets(struct peer *p, const void *octets, size_t n)
{
	const uint8_t *at = octets;

	while (n > 0 && takes_input(p)) {
		struct iovec iov[64];
		unsigned k = iwarp_stream_ops.rx_where(p->c, iov, 64);
		struct bufv v = bufv_of(iov, k);
		size_t len = MIN(n, v.len);

		if (p->chunk)
			len = MIN(len, p->chunk);
		if (len == 0) /* the core takes no input at present */
			break;
		bufv_copy_in(&v, 0, at, len);
		iwarp_stream_ops.rx_done(p->c, len, p->now);
		at += len;
		n -= len;
		if (p->chunk)
			peer_turn(p);
	}
	peer_turn(p);
}

void peer_fin(struct peer *p, int err)
{
	if (!p->closed)
		iwarp_stream_ops.closed(p->c, err, p->now);
	assert_true(p->closed);
}

void peer_time(struct peer *p, xtime dt)
{
	p->now += dt;
	if (!p->closed && stream_deadline_of(&iwarp_stream_ops, p->c) <= p->now)
		iwarp_stream_ops.expire(p->c, p->now);
	peer_turn(p);
}

/* ---- the object ---- */

static void make_memory(struct peer *p)
{
	struct bufv r, w;

	p->memory = malloc(5 * PEER_REGION);
	memset(p->memory, PEER_CANARY, 5 * PEER_REGION);
	for (unsigned i = 0; i < PEER_REGION; i++)
		p->memory[PEER_REGION + i] = (uint8_t)(i * 3 % 191);
	p->iov[0] = (struct iovec){ p->memory + PEER_REGION, PEER_REGION };
	p->iov[1] = (struct iovec){ p->memory + 3 * PEER_REGION, PEER_REGION };
	r = bufv_of(&p->iov[0], 1);
	w = bufv_of(&p->iov[1], 1);
	assert_int_equal(rcap_reg(p->qp, &r, PEER_BASE, RCAP_REMOTE_READ,
				  &p->readable),
			 0);
	assert_int_equal(rcap_reg(p->qp, &w, PEER_BASE, RCAP_REMOTE_WRITE,
				  &p->writable),
			 0);
}

struct peer *peer_new(const struct iwarp_config *cfg, const void *first,
		      size_t first_len, unsigned recvs)
{
	struct peer *p = calloc(1, sizeof(*p));

	p->host.kick = kick;
	p->c = iwarp_new(cfg, &p->host, first, first_len, 0);
	assert_non_null(p->c);
	p->qp = iwarp_qp(p->c);
	p->sent = malloc(PEER_SENT);
	rcap_set_user(p->qp, &user, p);
	make_memory(p);
	for (unsigned i = 0; i < recvs; i++) {
		p->recv[i].buf = p->recv_buf[i];
		p->recv[i].cap = sizeof(p->recv_buf[i]);
		assert_int_equal(rcap_post_recv(p->qp, &p->recv[i]), 0);
	}
	return p;
}

static void check_filled(const uint8_t *m, uint8_t byte)
{
	for (unsigned i = 0; i < PEER_REGION; i++)
		assert_int_equal(m[i], byte);
}

static void check_guards(struct peer *p)
{
	for (unsigned k = 0; k < 5; k += 2)
		check_filled(p->memory + k * PEER_REGION, PEER_CANARY);
}

void peer_untouched(struct peer *p)
{
	check_guards(p);
	for (unsigned i = 0; i < PEER_REGION; i++)
		assert_int_equal(p->memory[PEER_REGION + i],
				 (uint8_t)(i * 3 % 191));
	check_filled(p->memory + 3 * PEER_REGION, PEER_CANARY);
}

void peer_free(struct peer *p)
{
	peer_fin(p, 0);
	check_guards(p);
	/* no octet of memory that must not be read */
	for (size_t i = 0; i + 8 <= p->sent_len; i++)
		assert_memory_not_equal(p->sent + i, "\xc7\xc7\xc7\xc7\xc7\xc7",
					6);
	iwarp_free(p->c);
	free(p->memory);
	free(p->sent);
	free(p);
}

/* ---- start-up ---- */

size_t peer_frame(uint8_t *b, bool reply, uint16_t bits, const void *data,
		  size_t n)
{
	memcpy(b, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	put_be16(b + 16, bits);
	put_be16(b + 18, (uint16_t)n);
	if (n)
		memcpy(b + 20, data, n);
	return 20 + n;
}

static void set_streams(struct peer *p, bool crc, bool to_qp, bool from_qp)
{
	p->in = (struct mpa_stream){ .crc = crc, .markers = to_qp };
	p->out = (struct mpa_stream){ .crc = crc, .markers = from_qp };
	p->seen = p->sent_len;
}

static struct peer *up(uint16_t bits, unsigned recvs, bool extended)
{
	struct iwarp_config cfg;
	struct peer *p;
	uint8_t b[32];
	const struct seg hello = { .ctrl = C_WRITE };
	bool crc = bits & MPA_BITS_C, markers = bits & MPA_BITS_M;

	iwarp_config_default(&cfg, false);
	cfg.wish.want_crc = crc;
	cfg.wish.want_markers = markers;
	cfg.wish.ird = cfg.wish.ord = 2;
	cfg.seed = 77;
	cfg.extended = extended;
	p = peer_new(&cfg, NULL, 0, recvs);
	peer_octets(p, b,
		    peer_frame(b, false, bits, "\0\2\0\2",
			       bits & MPA_BITS_S ? 4 : 0));
	assert_int_equal(p->requested, 1);
	assert_int_equal(p->sent_len, bits & MPA_BITS_S ? 24 : 20);
	assert_int_equal(p->established, 0);
	set_streams(p, crc, markers, markers);
	peer_segment(p, &hello);
	assert_int_equal(p->established, 1);
	assert_int_equal(rcap_state(p->qp), RCAP_ESTABLISHED);
	return p;
}

struct peer *peer_up(uint16_t bits, unsigned recvs)
{
	return up(bits, recvs, false);
}

struct peer *peer_up_extended(unsigned recvs)
{
	return up(0x5002, recvs, true);
}

struct peer *peer_up_active(uint16_t bits, unsigned recvs)
{
	return peer_up_path(bits, 0, recvs);
}

struct peer *peer_up_path(uint16_t bits, size_t emss, unsigned recvs)
{
	struct iwarp_config cfg;
	struct peer *p;
	uint8_t b[32];
	bool crc = bits & MPA_BITS_C, markers = bits & MPA_BITS_M;

	iwarp_config_default(&cfg, true);
	cfg.wish.want_crc = crc;
	cfg.wish.want_markers = markers;
	cfg.wish.ird = cfg.wish.ord = 2;
	cfg.revision = (uint8_t)bits;
	cfg.emss = emss;
	cfg.seed = 78;
	p = peer_new(&cfg, NULL, 0, recvs);
	peer_turn(p);
	assert_int_equal(p->sent_len, bits & MPA_BITS_S ? 24 : 20);
	set_streams(p, crc, markers, markers);
	peer_octets(p, b,
		    peer_frame(b, true, bits, "\0\2\0\2",
			       bits & MPA_BITS_S ? 4 : 0));
	assert_int_equal(p->established, 1);
	return p;
}

/* ---- segments ---- */

static uint32_t resolve(struct peer *p, uint32_t stag)
{
	switch (stag) {
	case S_READABLE:
		return p->readable.stag;
	case S_WRITABLE:
		return p->writable.stag;
	case S_WRONGKEY:
		return p->writable.stag ^ 0x55;
	default:
		return stag;
	}
}

size_t peer_lay(struct peer *p, const struct seg *s, uint8_t *b)
{
	size_t n = 6;

	put_be16(b, s->ctrl);
	put_be32(b + 2, resolve(p, s->stag));
	if (s->ctrl & 0x8000) {
		put_be64(b + n, s->to);
		n += 8;
	} else {
		put_be32(b + n, s->qn);
		put_be32(b + n + 4, s->msn);
		put_be32(b + n + 8, s->mo);
		n += 12;
	}
	if (s->read) {
		put_be32(b + n, s->sink);
		put_be64(b + n + 4, s->sink_to);
		put_be32(b + n + 12, s->size);
		put_be32(b + n + 16, resolve(p, s->source));
		put_be64(b + n + 20, s->source_to);
		n += 28;
	}
	for (size_t i = 0; i < s->payload; i++)
		b[n++] = (uint8_t)(i % 0xbf + 1);
	return n;
}

size_t peer_fpdu(struct peer *p, const void *ulpdu, size_t n, uint8_t *b)
{
	static uint8_t head[70000], scratch[4096];
	const struct bufv none = { 0 };
	struct iovec iov[300];
	uint8_t *room = scratch;
	struct bufv v;
	int k;

	memcpy(head + 2, ulpdu, n);
	k = mpa_fpdu_build(&p->in, head, n + 2, &none, 0, 0, NULL, iov, 300,
			   &room);
	assert_true(k > 0);
	v = bufv_of(iov, (unsigned)k);
	bufv_copy_out(&v, 0, b, v.len);
	if (p->corrupt)
		b[v.len - 1] ^= 0x10;
	p->corrupt = false;
	return v.len;
}

void peer_ulpdu(struct peer *p, const void *ulpdu, size_t n)
{
	static uint8_t b[70000];

	peer_octets(p, b, peer_fpdu(p, ulpdu, n, b));
}

void peer_segment(struct peer *p, const struct seg *s)
{
	static uint8_t b[70000];

	peer_ulpdu(p, b, peer_lay(p, s, b));
}

/* ---- what comes back ---- */

size_t peer_next(struct peer *p, uint8_t *ulpdu)
{
	size_t total, n = 0, want;
	struct iovec iov[300];
	struct bufv v;
	int k;

	mpa_fpdu_peek(&p->out, p->sent + p->seen, p->sent_len - p->seen,
		      &total);
	if (total == 0 || p->seen + total > p->sent_len)
		return 0;
	k = mpa_fpdu_open(&p->out, p->sent + p->seen, total, iov, 300, &want);
	assert_true(k > 0);
	v = bufv_of(iov, (unsigned)k);
	n = bufv_copy_out(&v, 0, ulpdu, v.len);
	assert_int_equal(n, want);
	p->seen += total;
	return n;
}

void peer_expect_terminate(struct peer *p, uint16_t reason,
			   const uint8_t *ulpdu, size_t len, size_t ddp,
			   size_t rdmap)
{
	static uint8_t t[70000];
	char code[16];
	size_t n;

	/* responses that were staged before may come first */
	do
		n = peer_next(p, t);
	while (n > 0 && (t[1] & 0x0f) != RDMAP_TERMINATE);
	assert_int_equal(n, 18 + 4 + (ddp ? 2 + ddp + rdmap : 0));
	/* RFC 5040 §4.8, figures 7 and 8: queue 2, MSN 1, MO 0 */
	assert_memory_equal(t, "\x41\x47\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0\0", 18);
	assert_int_equal(get_be16(t + 18), reason);
	assert_int_equal(t[20], (ddp ? 0xc0 : 0) | (rdmap ? 0x20 : 0));
	assert_int_equal(t[21], 0);
	if (ddp) {
		assert_int_equal(get_be16(t + 22), len);
		assert_memory_equal(t + 24, ulpdu, ddp + rdmap);
	}
	assert_int_equal(p->seen, p->sent_len); /* nothing after it */
	assert_true(p->closed);
	assert_int_not_equal(p->err, 0);
	/* the reason names layer and cause */
	snprintf(code, sizeof(code), "0x%04x", reason);
	assert_non_null(strstr(p->why, code));
	assert_non_null(strstr(p->why, rdmap_term_str(reason)));
	assert_string_not_equal(rdmap_term_str(reason), "unknown reason");
}

void peer_expect_closed(struct peer *p, int err, const char *why_has)
{
	assert_true(p->closed);
	assert_int_equal(p->err, err);
	assert_int_equal(p->seen, p->sent_len);
	if (!strstr(p->why, why_has))
		fail_msg("\"%s\" does not say \"%s\"", p->why, why_has);
}
