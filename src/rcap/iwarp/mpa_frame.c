/* SPDX-License-Identifier: BSD-2-Clause */
/* mpa_frame.c: MPA Request and Reply Frames (RFC 5044 §7.1.1, RFC 6581 §§6, 9)
 * and the negotiation. */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rcap/iwarp/mpa.h"

#define KEY_LEN 16

#define FLAG_MARKERS  0x8000
#define FLAG_CRC      0x4000
#define FLAG_REJECT   0x2000
#define FLAG_ENHANCED 0x1000

#define WORD_HIGH 0x8000 /* A in the IRD word, C in the ORD word */
#define WORD_LOW  0x4000 /* B, D */

static const char key_request[KEY_LEN + 1] = "MPA ID Req Frame";
static const char key_reply[KEY_LEN + 1] = "MPA ID Rep Frame";

static bool starts_like(const char *key, const uint8_t *p, size_t n)
{
	return memcmp(key, p, MIN(n, (size_t)KEY_LEN)) == 0;
}

static void decode_enhanced(struct mpa_frame *f, const uint8_t *p)
{
	uint16_t ird = get_be16(p), ord = get_be16(p + 2);

	f->peer_to_peer = ird & WORD_HIGH;
	f->rtr = (ird & WORD_LOW ? MPA_RTR_SEND : 0) |
		 (ord & WORD_HIGH ? MPA_RTR_WRITE : 0) |
		 (ord & WORD_LOW ? MPA_RTR_READ : 0);
	f->ird = ird & MPA_DEPTH_MAX;
	f->ord = ord & MPA_DEPTH_MAX;
}

int mpa_frame_decode(struct mpa_frame *f, const uint8_t *p, size_t n)
{
	uint16_t flags;
	size_t len;

	memset(f, 0, sizeof(*f));
	f->is_reply = !starts_like(key_request, p, n);
	if (f->is_reply && !starts_like(key_reply, p, n))
		return ERR_FORMAT;
	if (n < MPA_FRAME_LEN)
		return 0;
	flags = get_be16(p + 16);
	len = get_be16(p + 18);
	f->revision = (uint8_t)flags;
	if (f->revision > 2)
		return ERR_UNSUPPORTED;
	if (len > MPA_PRIVATE_MAX)
		return ERR_TOO_LONG;
	f->markers = flags & FLAG_MARKERS;
	f->crc = flags & FLAG_CRC;
	f->reject = f->is_reply && (flags & FLAG_REJECT);
	f->enhanced = f->revision == 2 && (flags & FLAG_ENHANCED);
	if (f->enhanced && len < MPA_ENHANCED_LEN)
		return ERR_TRUNCATED;
	if (n < MPA_FRAME_LEN + len)
		return 0;
	f->private_data = p + MPA_FRAME_LEN;
	f->private_len = len;
	if (f->enhanced) {
		decode_enhanced(f, f->private_data);
		f->private_data += MPA_ENHANCED_LEN;
		f->private_len -= MPA_ENHANCED_LEN;
	}
	return (int)(MPA_FRAME_LEN + len);
}

static void encode_enhanced(const struct mpa_frame *f, uint8_t *p)
{
	put_be16(p, (uint16_t)((f->peer_to_peer ? WORD_HIGH : 0) |
			       (f->rtr & MPA_RTR_SEND ? WORD_LOW : 0) |
			       (f->ird & MPA_DEPTH_MAX)));
	put_be16(p + 2, (uint16_t)((f->rtr & MPA_RTR_WRITE ? WORD_HIGH : 0) |
				   (f->rtr & MPA_RTR_READ ? WORD_LOW : 0) |
				   (f->ord & MPA_DEPTH_MAX)));
}

int mpa_frame_encode(const struct mpa_frame *f, uint8_t *p)
{
	size_t extra = f->enhanced ? MPA_ENHANCED_LEN : 0;
	size_t len = extra + f->private_len;

	if (len > MPA_PRIVATE_MAX)
		return ERR_TOO_LONG;
	memcpy(p, f->is_reply ? key_reply : key_request, KEY_LEN);
	put_be16(p + 16,
		 (uint16_t)((f->markers ? FLAG_MARKERS : 0) |
			    (f->crc ? FLAG_CRC : 0) |
			    (f->reject ? FLAG_REJECT : 0) |
			    (f->enhanced ? FLAG_ENHANCED : 0) | f->revision));
	put_be16(p + 18, (uint16_t)len);
	if (f->enhanced)
		encode_enhanced(f, p + MPA_FRAME_LEN);
	if (f->private_len)
		memcpy(p + MPA_FRAME_LEN + extra, f->private_data,
		       f->private_len);
	return (int)(MPA_FRAME_LEN + len);
}

/* ---- negotiation ---- */

/* Picks one that both ends support: Write costs the least, then Send, then Read
 * (RFC 6581 §9.2). */
static unsigned pick_rtr(unsigned both)
{
	if (both & MPA_RTR_WRITE)
		return MPA_RTR_WRITE;
	if (both & MPA_RTR_SEND)
		return MPA_RTR_SEND;
	return both & MPA_RTR_READ;
}

void mpa_answer(const struct mpa_frame *request, const struct mpa_wish *wish,
		struct mpa_frame *reply, struct mpa_terms *terms)
{
	memset(terms, 0, sizeof(*terms));
	terms->crc = request->crc || wish->want_crc;
	terms->markers_out = request->markers;
	terms->markers_in = wish->want_markers;
	terms->ird = wish->ird;
	terms->ord = wish->ord;
	if (request->enhanced) {
		/* §9.1: our ORD must not exceed its IRD; our IRD need not
		 * exceed its ORD */
		terms->ord = MIN(wish->ord, request->ird);
		terms->ird = MIN(wish->ird, request->ord);
		terms->peer_to_peer = request->peer_to_peer;
		if (request->peer_to_peer)
			terms->rtr = pick_rtr(request->rtr & wish->rtr);
		/* §9.1: the Ready To Receive itself is a Read */
		if (terms->rtr == MPA_RTR_READ && terms->ird == 0)
			terms->ird = 1;
	}
	*reply = (struct mpa_frame){
		.is_reply = true,
		.markers = terms->markers_in,
		.crc = terms->crc,
		.revision = request->revision,
		.enhanced = request->enhanced,
		.peer_to_peer = terms->peer_to_peer,
		.rtr = terms->rtr,
		.ird = request->ord == MPA_DEPTH_ULP ? MPA_DEPTH_ULP
						     : terms->ird,
		.ord = request->ird == MPA_DEPTH_ULP ? MPA_DEPTH_ULP
						     : terms->ord,
	};
	if (!terms->peer_to_peer || terms->rtr)
		return;
	/* §9.2: no common one: the reply names ours, and the initiator ends the
	 * connection */
	reply->rtr = wish->rtr;
	reply->reject = !wish->rtr;
}

int mpa_accept(const struct mpa_frame *request, const struct mpa_frame *reply,
	       struct mpa_terms *terms)
{
	memset(terms, 0, sizeof(*terms));
	if (!reply->is_reply)
		return ERR_PROTOCOL;
	if (reply->reject)
		return ERR_DENIED;
	if (reply->enhanced != request->enhanced)
		return ERR_PROTOCOL;
	terms->crc = request->crc || reply->crc;
	terms->markers_in = request->markers;
	terms->markers_out = reply->markers;
	terms->ird = request->ird;
	terms->ord = request->ord;
	if (!request->enhanced)
		return 0;
	/* §9.1: 3FFFh keeps our own values */
	terms->ord = MIN(request->ord, reply->ird);
	if (reply->ord != MPA_DEPTH_ULP) {
		if (reply->ord > request->ird)
			return ERR_LIMIT;
		terms->ird = reply->ord;
	}
	if (!request->peer_to_peer)
		return 0;
	terms->peer_to_peer = true;
	terms->rtr = pick_rtr(request->rtr & reply->rtr);
	return reply->peer_to_peer && terms->rtr ? 0 : ERR_UNSUPPORTED;
}
