/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpa.h: MPA (RFC 5044): the start-up frames with the enhanced form of RFC
 * 6581, and the framing of FPDUs: length, markers, pad, CRC. A codec only: it
 * moves no bytes and keeps no time.
 */
#ifndef RCAP_IWARP_MPA_H
#define RCAP_IWARP_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/crc32c.h"

/* ---- start-up, RFC 5044 §7.1.1 ---- */

#define MPA_FRAME_LEN	 20
#define MPA_PRIVATE_MAX	 512
#define MPA_ENHANCED_LEN 4	/* RFC 6581 §9, part of private data */
#define MPA_DEPTH_MAX	 0x3fff /* IRD and ORD have 14 bits */
#define MPA_DEPTH_ULP	 0x3fff /* the ULP negotiates it (RFC 6581 §9.1) */

/* Messages that may serve as Ready To Receive (RFC 6581 §9). */
#define MPA_RTR_SEND  0x1u
#define MPA_RTR_WRITE 0x2u
#define MPA_RTR_READ  0x4u

struct mpa_frame {
	bool is_reply;
	bool markers; /* M: the sender wants them in what it receives */
	bool crc;     /* C */
	bool reject;  /* R, reply only */
	uint8_t revision;
	bool enhanced;	   /* S, valid from revision 2 on */
	bool peer_to_peer; /* A */
	unsigned rtr;	   /* MPA_RTR_* */
	uint16_t ird, ord;
	/* data of the ULP, after the enhanced block; borrowed from the input */
	const uint8_t *private_data;
	size_t private_len;
};

/*
 * mpa_frame_decode decodes a complete frame at p. Returns its length in bytes;
 * 0: the frame is longer than the n bytes at p; ERR_FORMAT: not an MPA frame
 * (reported at the first byte that differs); ERR_TOO_LONG: more than 512 bytes
 * of private data; ERR_UNSUPPORTED: a revision above 2; ERR_TRUNCATED: S
 * without room for its block.
 */
int mpa_frame_decode(struct mpa_frame *f, const uint8_t *p, size_t n);

/* mpa_frame_encode encodes the frame; p has room for MPA_FRAME_LEN +
 * MPA_PRIVATE_MAX bytes. Returns its length or ERR_TOO_LONG. */
int mpa_frame_encode(const struct mpa_frame *f, uint8_t *p);

/* What this end supports and requests. */
struct mpa_wish {
	bool want_crc;	   /* use CRC even if the peer does not request it */
	bool want_markers; /* request them in what we receive */
	uint16_t ird, ord; /* most Reads to answer, to issue */
	unsigned rtr;	   /* MPA_RTR_* that this end can receive or send */
};

/* The result of the negotiation. */
struct mpa_terms {
	bool crc; /* both directions (RFC 5044 §7.1: either end requests it) */
	bool markers_in, markers_out;
	uint16_t ird, ord;
	bool peer_to_peer;
	/* one bit: the first message of the active end; 0: none */
	unsigned rtr;
};

/* mpa_answer (responder) computes the terms and the reply to request; the reply
 * has the revision and form of the request. The caller fills private_data of
 * *reply. */
void mpa_answer(const struct mpa_frame *request, const struct mpa_wish *wish,
		struct mpa_frame *reply, struct mpa_terms *terms);

/*
 * mpa_accept (initiator) computes the terms from the reply to our request.
 * ERR_DENIED: R is set; ERR_PROTOCOL: another form than requested;
 * ERR_UNSUPPORTED: no RTR that we offered (RFC 6581 §9.2); ERR_LIMIT: the ORD
 * of the reply exceeds our IRD (§9.1). For the last two the terms are valid,
 * and the caller reports the error in a Terminate.
 */
int mpa_accept(const struct mpa_frame *request, const struct mpa_frame *reply,
	       struct mpa_terms *terms);

/* ---- FPDUs, RFC 5044 §4 ---- */

#define MPA_MARKER_LEN	    4
#define MPA_MARKER_INTERVAL 512
#define MPA_CRC_LEN	    4
#define MPA_LENGTH_LEN	    2
#define MPA_TAIL_MAX	    (3 + MPA_CRC_LEN) /* pad and CRC */

/* One direction of a stream in full operation. */
struct mpa_stream {
	bool markers, crc;
	uint64_t pos; /* octets since the start of full operation */
};

/* mpa_fpdu_size: length of the FPDU of a ULPDU of this length at s->pos,
 * including the markers before it and in it. */
size_t mpa_fpdu_size(const struct mpa_stream *s, size_t ulpdu_len);

/*
 * mpa_max_ulpdu: the largest ULPDU whose FPDU fits in room octets at s->pos, a
 * multiple of 4 minus 2 (so that only the last FPDU of a message has a pad); 0:
 * none. At most 65534, rounded down.
 */
size_t mpa_max_ulpdu(const struct mpa_stream *s, size_t room);

/*
 * mpa_fpdu_build frames a ULPDU: head (head_len bytes, including 2 bytes at
 * head[0..1] that the function overwrites with the length), then len bytes of
 * data from off. It stores the pieces in iov (at most max), and markers, pad
 * and CRC at *scratch (room for mpa_fpdu_scratch bytes), which it advances.
 * copy: NULL, or room for len bytes to which the function copies the data,
 * computing the CRC in the same pass; the pieces then point there. s->pos
 * advances. Returns the number of pieces, or ERR_LIMIT (more than max, or data
 * shorter than len).
 */
int mpa_fpdu_build(struct mpa_stream *s, uint8_t *head, size_t head_len,
		   const struct bufv *data, size_t off, size_t len,
		   uint8_t *copy, struct iovec *iov, unsigned max,
		   uint8_t **scratch);
/*
 * mpa_fpdu_copy frames a ULPDU as one run of octets at p, on a stream without
 * markers: p begins with a head as above, and has room for len octets and
 * MPA_TAIL_MAX more after it. The function copies len bytes of data from off,
 * which must exist, and computes the CRC of the copy. s->pos advances. Returns
 * the length of the FPDU.
 */
size_t mpa_fpdu_copy(struct mpa_stream *s, uint8_t *p, size_t head_len,
		     const struct bufv *data, size_t off, size_t len);

/* The parts of the functions above. mpa_fpdu_begin stores the length field at p;
 * content: octets up to the pad, without markers. */
static inline void mpa_fpdu_begin(uint8_t *p, size_t content)
{
	put_be16(p, (uint16_t)(content - MPA_LENGTH_LEN));
}

/* mpa_fpdu_tail stores pad and CRC at p, where the content ends; returns their
 * length. crc covers the content. s->pos advances. */
static inline size_t mpa_fpdu_tail(struct mpa_stream *s, uint8_t *p,
				   size_t content, uint32_t crc)
{
	size_t pad = round_up4(content) - content;

	if (pad) {
		memset(p, 0, pad);
		if (s->crc)
			crc = crc32c_update(crc, p, pad);
	}
	put_le32(p + pad, s->crc ? crc32c_wire(crc) : 0);
	s->pos += content + pad + MPA_CRC_LEN;
	return pad + MPA_CRC_LEN;
}

/* mpa_fpdu_close adds the length field, pad and CRC to an FPDU that is one run
 * of octets at p, with room for MPA_TAIL_MAX more after its content. s->pos
 * advances. Returns the length of the FPDU. */
static inline size_t mpa_fpdu_close(struct mpa_stream *s, uint8_t *p,
				    size_t content)
{
	size_t covered = round_up4(content);
	uint32_t crc;

	mpa_fpdu_begin(p, content);
	put_le32(p + content, 0); /* the pad */
	crc = s->crc ? crc32c_wire(crc32c_update(CRC32C_SEED, p, covered)) : 0;
	put_le32(p + covered, crc);
	s->pos += covered + MPA_CRC_LEN;
	return covered + MPA_CRC_LEN;
}

/* mpa_fpdu_scratch: the room that mpa_fpdu_build needs at *scratch. */
size_t mpa_fpdu_scratch(const struct mpa_stream *s, size_t ulpdu_len);

/*
 * mpa_fpdu_peek sets *total to the length of the FPDU at p; to 0 if the n
 * octets do not include its length field yet.
 */
void mpa_fpdu_peek(const struct mpa_stream *s, const uint8_t *p, size_t n,
		   size_t *total);

/*
 * mpa_fpdu_open checks a complete FPDU (total octets at p) and returns its
 * ULPDU as pieces without markers. s->pos advances. Returns the number of
 * pieces, or ERR_DATA_DIGEST (CRC), ERR_FORMAT (a wrong marker, RFC 5044 §4.3),
 * ERR_LIMIT (more than max pieces).
 */
int mpa_fpdu_open(struct mpa_stream *s, const uint8_t *p, size_t total,
		  struct iovec *iov, unsigned max, size_t *ulpdu_len);

#endif
