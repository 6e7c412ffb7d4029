/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpa.h: MPA (RFC 5044): the start-up frames with RFC 6581's enhanced form,
 * and the framing of FPDUs in the stream: length, markers, pad, CRC. Codec
 * only: it moves no bytes and keeps no time.
 */
#ifndef RCAP_IWARP_MPA_H
#define RCAP_IWARP_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bufv.h"

/* ---- start-up, RFC 5044 §7.1.1 ---- */

#define MPA_FRAME_LEN	 20
#define MPA_PRIVATE_MAX	 512
#define MPA_ENHANCED_LEN 4	/* RFC 6581 §9, part of private data */
#define MPA_DEPTH_MAX	 0x3fff /* IRD and ORD have 14 bits */
#define MPA_DEPTH_ULP	 0x3fff /* "the ULP sees to it" (RFC 6581 §9.1) */

/* Which message may serve as Ready To Receive (RFC 6581 §9). */
#define MPA_RTR_SEND  0x1u
#define MPA_RTR_WRITE 0x2u
#define MPA_RTR_READ  0x4u

struct mpa_frame {
	bool is_reply;
	bool markers; /* M: the sender wants them in what it receives */
	bool crc;     /* C */
	bool reject;  /* R, reply only */
	uint8_t revision;
	bool enhanced;	   /* S, counts from revision 2 on */
	bool peer_to_peer; /* A */
	unsigned rtr;	   /* MPA_RTR_* */
	uint16_t ird, ord;
	/* the ULP's, behind the enhanced block; borrowed from the input */
	const uint8_t *private_data;
	size_t private_len;
};

/*
 * mpa_frame_decode reads a whole frame from p. Returns its length in bytes;
 * 0: more than the n bytes there are is needed; ERR_FORMAT: not an MPA frame
 * (found out at the first byte that differs), ERR_TOO_LONG: more than 512
 * bytes of private data, ERR_UNSUPPORTED: a revision above 2, ERR_TRUNCATED: S
 * without room for its block.
 */
int mpa_frame_decode(struct mpa_frame *f, const uint8_t *p, size_t n);

/* mpa_frame_encode writes the frame; p has room for MPA_FRAME_LEN +
 * MPA_PRIVATE_MAX. Returns its length or ERR_TOO_LONG. */
int mpa_frame_encode(const struct mpa_frame *f, uint8_t *p);

/* What our side is able and willing to do. */
struct mpa_wish {
	bool want_crc;	   /* use CRC although the peer does not ask */
	bool want_markers; /* ask for them in what we receive */
	uint16_t ird, ord; /* most reads to answer, to issue */
	unsigned rtr;	   /* MPA_RTR_* that we can take or send */
};

/* What holds once both frames are known. */
struct mpa_terms {
	bool crc; /* both directions (RFC 5044 §7.1: either asks) */
	bool markers_in, markers_out;
	uint16_t ird, ord;
	bool peer_to_peer;
	unsigned rtr; /* one bit: what the initiator sends first; 0: nothing */
};

/* mpa_answer (responder): the terms, and the reply to request, which echoes
 * its revision and form. private_data of *reply is left to the caller. */
void mpa_answer(const struct mpa_frame *request, const struct mpa_wish *wish,
		struct mpa_frame *reply, struct mpa_terms *terms);

/*
 * mpa_accept (initiator): the terms after the reply to our request. ERR_DENIED:
 * R was set; ERR_PROTOCOL: another form than was asked for; ERR_UNSUPPORTED: no
 * RTR that we offered (RFC 6581 §9.2); ERR_LIMIT: the reply's ORD exceeds our
 * IRD (§9.1). The last two are told to the peer: terms say how.
 */
int mpa_accept(const struct mpa_frame *request, const struct mpa_frame *reply,
	       struct mpa_terms *terms);

/* ---- FPDUs, RFC 5044 §4 ---- */

#define MPA_MARKER_LEN	    4
#define MPA_MARKER_INTERVAL 512
#define MPA_CRC_LEN	    4
#define MPA_LENGTH_LEN	    2

/* One direction of a stream in full operation. */
struct mpa_stream {
	bool markers, crc;
	uint64_t pos; /* octets since the start of full operation */
};

/* mpa_fpdu_size: octets that an FPDU of this ULPDU length takes at s->pos,
 * markers before and in it counted. */
size_t mpa_fpdu_size(const struct mpa_stream *s, size_t ulpdu_len);

/*
 * mpa_max_ulpdu: the largest ULPDU whose FPDU fits in room octets at s->pos,
 * a multiple of 4 less 2 (so that only the last of a message has a pad); 0:
 * none. At most 65535 less what rounds.
 */
size_t mpa_max_ulpdu(const struct mpa_stream *s, size_t room);

/*
 * mpa_fpdu_build frames a ULPDU: head (head_len bytes, behind 2 bytes that are
 * left free for the length: head[0..1] is written), then len bytes of data
 * from off. The pieces go to iov (at most max), small parts (markers, pad,
 * CRC) one behind the other to *scratch (room for mpa_fpdu_scratch bytes),
 * which moves on. copy: NULL, or room for len bytes that data are copied to and
 * sent from, summed in the same pass. s->pos moves on. Returns the number of pieces, or ERR_LIMIT
 * (too few).
 */
int mpa_fpdu_build(struct mpa_stream *s, uint8_t *head, size_t head_len,
		   const struct bufv *data, size_t off, size_t len,
		   uint8_t *copy, struct iovec *iov, unsigned max,
		   uint8_t **scratch);
size_t mpa_fpdu_scratch(const struct mpa_stream *s, size_t ulpdu_len);

/*
 * mpa_fpdu_peek: how many octets the FPDU that begins at p takes: *total; 0
 * when the length is not in the n octets yet.
 */
void mpa_fpdu_peek(const struct mpa_stream *s, const uint8_t *p, size_t n,
		   size_t *total);

/*
 * mpa_fpdu_open checks a whole FPDU (total octets at p) and gives its ULPDU as
 * pieces without markers. s->pos moves on. Returns the number of pieces, or
 * ERR_DATA_DIGEST (CRC), ERR_FORMAT (a marker that lies, RFC 5044 §4.3),
 * ERR_LIMIT (more than max pieces).
 */
int mpa_fpdu_open(struct mpa_stream *s, const uint8_t *p, size_t total,
		  struct iovec *iov, unsigned max, size_t *ulpdu_len);

#endif
