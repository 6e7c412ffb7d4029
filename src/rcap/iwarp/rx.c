/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx.c: octets to FPDUs (RFC 5044 §4). An FPDU may arrive in any number of
 * pieces, with or without markers. Payload that is still in the socket is
 * received directly in its destination; payload that is already in the
 * look-ahead is copied there.
 *
 * The CRC of an FPDU that lies completely in the look-ahead is checked before a
 * byte of it is placed. An FPDU that is received in place is checked when it is
 * complete: until then the bytes of its region are undefined, as RFC 5040 §5.4
 * permits for every Write that no completion has followed yet.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "rcap/iwarp/internal.h"

/* payload from this size on gets a system call of its own */
#define RX_LARGE_MIN (16u << 10)
/* after so many small FPDUs the whole look-ahead is used again, in place of
 * RX_LOOK_SMALL octets */
#define SMALL_AGAIN 2

/* ---- the current FPDU ---- */

static void begin_fpdu(struct iwarp_rx *rx)
{
	rx->stage = RX_HEAD;
	rx->head.have = 0;
	rx->head.need = MPA_LENGTH_LEN + 2; /* with the DDP control field */
	rx->crc = CRC32C_SEED;
	rx->refused = 0;
	rx->marker_wrong = false;
	rx->dest = NULL;
}

static void begin_tail(struct iwarp_rx *rx)
{
	size_t content = MPA_LENGTH_LEN + rx->ulpdu_len;

	rx->stage = RX_TAIL;
	rx->tail.have = 0;
	rx->tail.need = (unsigned)(round_up4(content) - content) + MPA_CRC_LEN;
}

static void begin_payload(struct iwarp *c)
{
	struct iwarp_rx *rx = &c->rx;
	int n = rdmap_decode(&rx->h, rx->head.bytes + MPA_LENGTH_LEN,
			     rx->ulpdu_len, c->cfg.extended);

	rx->stage = RX_PAYLOAD;
	rx->left = rx->ulpdu_len - (rx->head.have - MPA_LENGTH_LEN);
	if (rx->left >= RX_LARGE_MIN)
		rx->large = SMALL_AGAIN;
	else if (rx->large > 0)
		rx->large--;
	rx->refused = n < 0 ? n : iwarp_place(c, rx->left);
	if (rx->refused || rx->marker_wrong)
		rx->dest = NULL;
	if (rx->left == 0)
		begin_tail(rx);
}

/* A part of the header has arrived: computes how much of it is missing. */
static void grow_head(struct iwarp *c)
{
	struct iwarp_rx *rx = &c->rx;
	size_t want;

	rx->ulpdu_len = get_be16(rx->head.bytes);
	want = MIN(rx->ulpdu_len, (size_t)2);
	if (rx->head.have >= MPA_LENGTH_LEN + 2 && rx->ulpdu_len >= 2)
		want = MIN(rx->ulpdu_len,
			   rdmap_peek_len(rx->head.bytes + MPA_LENGTH_LEN));
	rx->head.need = (unsigned)(MPA_LENGTH_LEN + want);
	if (rx->head.have >= rx->head.need)
		begin_payload(c);
}

/* The FPDU is complete. */
static void finish_fpdu(struct iwarp *c)
{
	struct iwarp_rx *rx = &c->rx;
	uint32_t sent = get_le32(rx->tail.bytes + rx->tail.need - MPA_CRC_LEN);
	size_t payload = rx->ulpdu_len - (rx->head.have - MPA_LENGTH_LEN);
	int reason = rx->refused;

	c->stats.rx_fpdus++;
	if (rx->s.crc && sent != crc32c_wire(rx->crc)) {
		c->stats.crc_errors++;
		iwarp_fail(c, TERM_MPA_CRC, ERR_DATA_DIGEST);
		return;
	}
	if (rx->marker_wrong) { /* although the CRC is right (RFC 5044 §8) */
		iwarp_fail(c, TERM_MPA_MARKER, ERR_FORMAT);
		return;
	}
	/* a Terminate does not establish the connection */
	if (reason || rx->h.opcode != RDMAP_TERMINATE)
		iwarp_startup_first(c);
	if (!iwarp_is_full(c))
		return;
	c->stats.rx_payload += payload;
	if (!reason)
		reason = iwarp_placed(c, payload);
	if (reason)
		iwarp_fail(c, (uint16_t)-reason, ERR_PROTOCOL);
	else
		begin_fpdu(rx);
}

/* ---- content, in any pieces ---- */

static size_t take_head(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct iwarp_rx *rx = &c->rx;

	/* the length decides whether a control field follows */
	if (rx->head.have < MPA_LENGTH_LEN)
		n = MIN(n, MPA_LENGTH_LEN - rx->head.have);
	n = MIN(n, rx->head.need - rx->head.have);
	if (rx->head.have == 0)
		rx->start = rx->s.pos;
	memcpy(rx->head.bytes + rx->head.have, p, n);
	rx->crc = crc32c_update(rx->crc, p, n);
	rx->head.have += (unsigned)n;
	if (rx->head.have >= MPA_LENGTH_LEN)
		grow_head(c);
	return n;
}

/* n octets of payload have been placed or dropped. */
static void payload_moved(struct iwarp_rx *rx, size_t n)
{
	rx->dest_off += n;
	rx->left -= n;
	if (rx->left == 0)
		begin_tail(rx);
}

static size_t take_payload(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct iwarp_rx *rx = &c->rx;

	n = MIN(n, rx->left);
	if (rx->s.crc)
		rx->crc = crc32c_update(rx->crc, p, n);
	iwarp_replace(c);
	if (rx->dest) {
		bufv_copy_in(rx->dest, rx->dest_off, p, n);
		c->stats.copied += n;
	}
	payload_moved(rx, n);
	return n;
}

static size_t take_tail(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct iwarp_rx *rx = &c->rx;
	unsigned pad = rx->tail.need - MPA_CRC_LEN;

	/* the pad first, then the CRC: the CRC covers the pad only */
	if (rx->tail.have < pad)
		n = MIN(n, pad - rx->tail.have);
	n = MIN(n, rx->tail.need - rx->tail.have);
	memcpy(rx->tail.bytes + rx->tail.have, p, n);
	if (rx->tail.have < pad)
		rx->crc = crc32c_update(rx->crc, p, n);
	rx->tail.have += (unsigned)n;
	return n;
}

static size_t take_content(struct iwarp *c, const uint8_t *p, size_t n)
{
	switch (c->rx.stage) {
	case RX_HEAD:
		return take_head(c, p, n);
	case RX_PAYLOAD:
		return take_payload(c, p, n);
	default:
		return take_tail(c, p, n);
	}
}

/* ---- markers ---- */

static bool in_marker(const struct iwarp_rx *rx)
{
	return rx->s.markers &&
	       rx->s.pos % MPA_MARKER_INTERVAL < MPA_MARKER_LEN;
}

static size_t until_marker(const struct iwarp_rx *rx)
{
	if (!rx->s.markers)
		return SIZE_MAX;
	return MPA_MARKER_INTERVAL - (size_t)(rx->s.pos % MPA_MARKER_INTERVAL);
}

/* A marker holds the distance to the length field, 0 right before it (RFC 5044
 * §4.3, erratum 1427). */
static size_t take_marker(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct iwarp_rx *rx = &c->rx;
	bool begun = rx->stage != RX_HEAD || rx->head.have > 0;
	uint64_t at = rx->s.pos - rx->marker.have;
	uint16_t want = begun ? (uint16_t)(at - rx->start) : 0;

	n = MIN(n, MPA_MARKER_LEN - rx->marker.have);
	memcpy(rx->marker.bytes + rx->marker.have, p, n);
	rx->crc = crc32c_update(rx->crc, p, n);
	rx->marker.have += (unsigned)n;
	if (rx->marker.have < MPA_MARKER_LEN)
		return n;
	rx->marker.have = 0;
	if ((get_be16(rx->marker.bytes + 2) & 0xfffc) != want) {
		/* the CRC then distinguishes corruption from a wrong marker */
		rx->marker_wrong = true;
		rx->dest = NULL;
	}
	return n;
}

/* ---- a whole FPDU at once ---- */

/* take_whole handles the FPDU at p if it is complete. Returns its length; 0:
 * take it in pieces. */
static size_t take_whole(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct iwarp_rx *rx = &c->rx;
	size_t content, payload;

	if (rx->s.markers || rx->stage != RX_HEAD || rx->head.have || n < 8)
		return 0;
	rx->ulpdu_len = get_be16(p);
	content = round_up4(MPA_LENGTH_LEN + rx->ulpdu_len);
	if (rx->ulpdu_len < 2 || content + MPA_CRC_LEN > n)
		return 0;
	rx->head.have = rx->head.need =
		(unsigned)(MPA_LENGTH_LEN +
			   MIN(rx->ulpdu_len,
			       rdmap_peek_len(p + MPA_LENGTH_LEN)));
	memcpy(rx->head.bytes, p, rx->head.have);
	rx->tail.need = MPA_CRC_LEN;
	memcpy(rx->tail.bytes, p + content, MPA_CRC_LEN);
	if (rx->s.crc) {
		rx->crc = crc32c_update(CRC32C_SEED, p, content);
		if (get_le32(rx->tail.bytes) != crc32c_wire(rx->crc)) {
			finish_fpdu(c);
			return content + MPA_CRC_LEN;
		}
	}
	begin_payload(c);
	payload = rx->left;
	if (rx->dest && payload && !iwarp_lend(c, p + rx->head.have, payload)) {
		bufv_copy_in(rx->dest, rx->dest_off, p + rx->head.have,
			     payload);
		c->stats.copied += payload;
	}
	rx->tail.need = MPA_CRC_LEN;
	finish_fpdu(c);
	return content + MPA_CRC_LEN;
}

/* ---- the look-ahead ---- */

static size_t take_octets(struct iwarp *c, const uint8_t *p, size_t n)
{
	struct iwarp_rx *rx = &c->rx;
	size_t k = iwarp_take_usual(c, p, n);

	if (k > 0) {
		rx->s.pos += k;
		return k;
	}
	k = take_whole(c, p, n);
	if (k == 0 && in_marker(rx))
		k = take_marker(c, p, n);
	else if (k == 0)
		k = take_content(c, p, MIN(n, until_marker(rx)));
	rx->s.pos += k;
	if (rx->stage == RX_TAIL && rx->tail.have == rx->tail.need &&
	    iwarp_is_full(c)) {
		finish_fpdu(c);
		iwarp_rx_count_time(c);
	}
	return k;
}

void iwarp_rx_consume(struct iwarp *c)
{
	struct iwarp_rx *rx = &c->rx;

	if (rx->head.need == 0)
		begin_fpdu(rx); /* the first FPDU */
	while (rx->ahead.at < rx->ahead.end && iwarp_is_full(c) &&
	       !rx->is_spent)
		rx->ahead.at += take_octets(c, rx->ahead.buf + rx->ahead.at,
					    rx->ahead.end - rx->ahead.at);
	if (rx->ahead.at == rx->ahead.end)
		rx->ahead.at = rx->ahead.end = 0;
}

static bool reads_in_place(const struct iwarp *c)
{
	const struct iwarp_rx *rx = &c->rx;

	return rx->stage == RX_PAYLOAD && rx->dest && !rx->s.markers &&
	       rx->ahead.at == rx->ahead.end && iwarp_is_full(c);
}

/* Length of the tail of this FPDU and of the length and header of a tagged one
 * after it. */
static size_t between_len(const struct iwarp_rx *rx)
{
	size_t content = MPA_LENGTH_LEN + rx->ulpdu_len;

	return round_up4(content) - content + MPA_CRC_LEN + MPA_LENGTH_LEN +
	       DDP_TAGGED_LEN;
}

/* How much to read after the payload that goes to its destination. Inside a
 * message: only the tail and the next header, because the payload after them
 * would be copied, and the rest of it would be badly aligned. */
static size_t look_ahead(const struct iwarp *c)
{
	const struct iwarp_rx *rx = &c->rx;
	size_t room = rx->ahead.cap - rx->ahead.end;

	if (rx->large == 0 || rx->s.markers)
		return room;
	if (rx->stage != RX_PAYLOAD || rx->h.last || !rx->h.tagged)
		return MIN(room, (size_t)RX_LOOK_SMALL);
	return MIN(room, between_len(rx));
}

static unsigned set_piece(struct iovec *iov, void *p, size_t n)
{
	*iov = (struct iovec){ p, n };
	return 1;
}

/* Whether the place of the next segment can be guessed. */
static bool is_guessable(const struct iwarp *c)
{
	const struct iwarp_rx *rx = &c->rx;

	return c->phase == PHASE_FULL && !rx->h.last && rx->large > 0 &&
	       rx->h.tagged && iwarp_may_guess(c);
}

/*
 * Inside a message the next segments are probably as long as this one and
 * follow it in memory. If the destination is undefined anyway, receive them
 * there in the same call; take_guessed checks each header before it counts, and
 * moves what belongs elsewhere.
 */
static unsigned guess_next(struct iwarp *c, struct iovec *iov, unsigned max)
{
	struct iwarp_rx *rx = &c->rx;
	size_t off = rx->dest_off + rx->left, behind;
	unsigned n = 0, k;

	rx->guess.n = 0;
	if (!is_guessable(c))
		return 0;
	rx->guess.dest = rx->dest;
	rx->guess.off = off;
	rx->guess.before_len = between_len(rx);
	while (rx->guess.n < MAX(rx->guess.most, 1u) && n + 3 <= max) {
		size_t len = MIN(rx->ulpdu_len - DDP_TAGGED_LEN,
				 rx->dest->len - off);
		unsigned i = rx->guess.n;

		if (len < RX_LARGE_MIN ||
		    bufv_slice(rx->dest, off, len, iov + n + 1, max - n - 2,
			       &k) < len)
			break;
		n += set_piece(iov + n, rx->guess.before[i],
			       rx->guess.before_len);
		n += k;
		rx->guess.len[i] = len;
		rx->guess.n++;
		off += len;
	}
	if (rx->guess.n == 0)
		return 0;
	behind = off == rx->dest->len ? RX_LOOK_SMALL : rx->guess.before_len;
	return n + set_piece(iov + n, rx->guess.behind, behind);
}

unsigned iwarp_rx_where(struct iwarp *c, struct iovec *iov, unsigned max)
{
	struct iwarp_rx *rx = &c->rx;
	unsigned n = 0;

	rx->guess.n = 0;
	if (reads_in_place(c))
		iwarp_replace(c);
	if (reads_in_place(c)) {
		size_t got = bufv_slice(rx->dest, rx->dest_off, rx->left, iov,
					max - 1, &n);

		if (got < rx->left)
			return n; /* too many pieces: without the look-ahead */
		n += guess_next(c, iov + n, max - n);
		if (rx->guess.n)
			return n;
	} else if (rx->ahead.at > 0 && rx->ahead.end == rx->ahead.cap) {
		memmove(rx->ahead.buf, rx->ahead.buf + rx->ahead.at,
			rx->ahead.end - rx->ahead.at);
		rx->ahead.end -= rx->ahead.at;
		rx->ahead.at = 0;
	}
	if (rx->ahead.end == rx->ahead.cap)
		return 0;
	iov[n].iov_base = rx->ahead.buf + rx->ahead.end;
	iov[n++].iov_len = look_ahead(c);
	return n;
}

/* A region that the peer writes as a whole, in one message or several: the part
 * that is missing after the last segment. */
size_t iwarp_rx_likely(const struct iwarp *c)
{
	const struct iwarp_rx *rx = &c->rx;
	const struct rdmap_header *h = &rx->h;
	size_t have = rx->ahead.end - rx->ahead.at, off, rest;
	const struct bufv *memory;

	if (!h->tagged || h->opcode != RDMAP_WRITE ||
	    rx->ulpdu_len <= DDP_TAGGED_LEN)
		return 0;
	rest = rx->ulpdu_len - DDP_TAGGED_LEN;
	if (mr_find(c->mrs, c, h->stag, h->to, rest, MR_UNDEFINED, &memory,
		    &off))
		return 0;
	rest = memory->len - off - rest;
	return rest > have ? rest - have : 0;
}

/* n octets were received in place. */
static size_t count_placed(struct iwarp *c, size_t n)
{
	struct iwarp_rx *rx = &c->rx;

	n = MIN(n, rx->left);
	if (rx->s.crc)
		rx->crc = bufv_crc32c(rx->dest, rx->dest_off, n, rx->crc);
	rx->s.pos += n;
	payload_moved(rx, n);
	return n;
}

/* Copies the n octets from octet `at` of guessed segment i on, with what was
 * received after it. */
static void copy_guessed(const struct iwarp_rx *rx, uint8_t *to, size_t n,
			 unsigned i, size_t off, size_t at)
{
	while (n > 0 && i < rx->guess.n) {
		size_t k = MIN(n, rx->guess.len[i] - at);

		bufv_copy_out(rx->guess.dest, off + at, to, k);
		to += k;
		n -= k;
		off += rx->guess.len[i];
		at = 0;
		if (++i == rx->guess.n)
			break;
		k = MIN(n, rx->guess.before_len);
		memcpy(to, rx->guess.before[i], k);
		to += k;
		n -= k;
	}
	memcpy(to, rx->guess.behind, n);
}

/* Takes n octets that were guessed wrong. They leave the guessed places before
 * one of them is processed: the memory may change its owner then. */
static void take_missed(struct iwarp *c, size_t n, unsigned i, size_t off,
			size_t at)
{
	struct iwarp_rx *rx = &c->rx;
	uint8_t *copy;

	rx->guess.most = 1;
	c->stats.copied += n;
	if (n <= rx->ahead.cap) {
		copy_guessed(rx, rx->ahead.buf, n, i, off, at);
		rx->ahead.at = 0;
		rx->ahead.end = n;
		return;
	}
	copy = malloc(n);
	if (!copy) {
		iwarp_die(c, ERR_NOMEM, "no memory for %zu received octets", n);
		return;
	}
	copy_guessed(rx, copy, n, i, off, at);
	for (size_t k = 0; k < n && iwarp_is_full(c);)
		k += take_octets(c, copy + k, n - k);
	free(copy);
}

/* n octets after the current payload were received in the guessed places. No
 * up-call happens before the octets after the last one are processed: inside a
 * message no request completes, and no Send fits between two segments. */
static void take_guessed(struct iwarp *c, size_t n)
{
	struct iwarp_rx *rx = &c->rx;
	const struct bufv *dest = rx->guess.dest;
	size_t off = rx->guess.off;

	for (unsigned i = 0; i < rx->guess.n && n > 0; i++) {
		size_t before = MIN(n, rx->guess.before_len), len, hit = 0;

		for (size_t at = 0; at < before && iwarp_is_full(c);)
			at += take_octets(c, rx->guess.before[i] + at,
					  before - at);
		n -= before;
		len = MIN(n, rx->guess.len[i]);
		if (!iwarp_is_full(c))
			return;
		if (reads_in_place(c) && rx->dest == dest &&
		    rx->dest_off == off)
			hit = count_placed(c, len);
		n -= hit;
		/* the segment is elsewhere, shorter, or longer */
		if (hit < len || (n > 0 && rx->stage == RX_PAYLOAD)) {
			take_missed(c, n, i, off, hit);
			return;
		}
		off += len;
	}
	if (n == 0)
		return;
	rx->guess.most = MIN(2 * rx->guess.n, (unsigned)RX_GUESS_MAX);
	memcpy(rx->ahead.buf, rx->guess.behind, n);
	rx->ahead.at = 0;
	rx->ahead.end = n;
}

void iwarp_rx_done(struct iwarp *c, size_t n)
{
	struct iwarp_rx *rx = &c->rx;
	bool by_guess = rx->guess.n > 0;

	c->stats.rx_bytes += n;
	if (reads_in_place(c))
		n -= count_placed(c, n);
	if (n > 0 && by_guess)
		take_guessed(c, n);
	else
		rx->ahead.end += n;
}
