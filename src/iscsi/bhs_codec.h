/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bhs_codec.h: how the fields of a header are decoded and encoded: for bhs.c, and inline
 * for the headers of which commands consist. No other file has offsets inside of a
 * BHS.
 */
#ifndef ISCSI_BHS_CODEC_H
#define ISCSI_BHS_CODEC_H

#include <string.h>

#include "base/bytes.h"
#include "base/cold.h"
#include "iscsi/bhs.h"

/* Byte 1 */
#define FLAG_FINAL    0x80 /* F, T of Login */
#define FLAG_CONTINUE 0x40 /* C of Text and Login, A of Data-In, R of cmd */
#define FLAG_WRITE    0x20
#define FLAG_STATUS   0x01 /* S of Data-In */
/* Byte 0 */
#define FLAG_IMMEDIATE 0x40
#define OPCODE_MASK    0x3f

/*
 * ---- fields of one opcode ----
 *
 * Each list has one row per field: X(kind, offset, argument, member). CODEC
 * makes the decoder and the encoder of the list. The kinds:
 *   NUM    a number of `argument` bits
 *   BITS   the bits of mask `argument` in one byte, not shifted
 *   BITS2  the same, shifted right by 2
 *   FLAG   true if the bit `argument` is set
 *   READ   the same, but decoded only
 *   BYTES  `argument` bytes
 *   SET    the encoder sets the bit `argument`; CLEAR: it clears the bit
 */
#define GET_NUM(at, bits, member)   p->member = get_be##bits(b + (at));
#define GET_BITS(at, mask, member)  p->member = b[at] & (mask);
#define GET_BITS2(at, mask, member) p->member = b[at] >> 2 & (mask);
#define GET_FLAG(at, bit, member)   p->member = b[at] & (bit);
#define GET_READ(at, bit, member)   GET_FLAG(at, bit, member)
#define GET_BYTES(at, n, member)    memcpy(p->member, b + (at), n);
#define GET_SET(at, bit, member)
#define GET_CLEAR(at, bit, member)
#define GET(kind, at, arg, member) GET_##kind(at, arg, member)

#define PUT_NUM(at, bits, member)  put_be##bits(b + (at), p->member);
#define PUT_BITS(at, mask, member) b[at] |= p->member & (mask);
#define PUT_BITS2(at, mask, member) \
 b[at] |= (uint8_t)((p->member & (mask)) << 2);
#define PUT_FLAG(at, bit, member) b[at] |= p->member ? (bit) : 0;
#define PUT_READ(at, bit, member)
#define PUT_BYTES(at, n, member)   memcpy(b + (at), p->member, n);
#define PUT_SET(at, bit, member)   b[at] |= (bit);
#define PUT_CLEAR(at, bit, member) b[at] &= (uint8_t) ~(bit);
#define PUT(kind, at, arg, member) PUT_##kind(at, arg, member)

#define CODEC(name, FIELDS)                                         \
 static ALWAYS_INLINE void name##_decode(struct iscsi_pdu *p,       \
					 const uint8_t *b)          \
 {                                                                  \
  (void)p;                                                          \
  (void)b;                                                          \
  FIELDS(GET)                                                       \
 }                                                                  \
 static ALWAYS_INLINE void name##_encode(const struct iscsi_pdu *p, \
					 uint8_t *b)                \
 {                                                                  \
  (void)p;                                                          \
  (void)b;                                                          \
  FIELDS(PUT)                                                       \
 }

/* clang-format off */
#define SCSI_COMMAND(X)                                                      \
 X(FLAG, 1, FLAG_CONTINUE, cmd.read)                                         \
 X(FLAG, 1, FLAG_WRITE, cmd.write)                                           \
 X(BITS, 1, 0x07, cmd.attr)                                                  \
 X(BITS, 2, 0x0f, cmd.priority) /* RFC 7144 §4.1 */                          \
 X(NUM, 20, 32, cmd.edtl)                                                    \
 X(BYTES, 32, 16, cmd.cdb)

#define SCSI_RESPONSE(X)                                                     \
 X(BITS, 1, 0x1e, rsp.resid_flags)                                           \
 X(BITS, 2, 0xff, rsp.response)                                              \
 X(BITS, 3, 0xff, rsp.status)                                                \
 X(NUM, 8, 16, rsp.status_qualifier) /* RFC 7144 §5.2.1 */                   \
 X(NUM, 20, 32, rsp.snack_tag)                                               \
 X(NUM, 36, 32, rsp.exp_datasn)                                              \
 X(NUM, 40, 32, rsp.bidi_resid)                                              \
 X(NUM, 44, 32, rsp.resid)

#define DATA_IN(X)                                                           \
 X(FLAG, 1, FLAG_CONTINUE, data.ack)                                         \
 X(FLAG, 1, FLAG_STATUS, data.status_present)                                \
 X(BITS, 1, ISCSI_RESID_OVERFLOW | ISCSI_RESID_UNDERFLOW, data.resid_flags)  \
 X(BITS, 3, 0xff, data.status)                                               \
 X(NUM, 36, 32, data.datasn)                                                 \
 X(NUM, 40, 32, data.offset)                                                 \
 X(NUM, 44, 32, data.resid)

CODEC(scsi_command, SCSI_COMMAND)
CODEC(scsi_response, SCSI_RESPONSE)
CODEC(data_in, DATA_IN)
/* clang-format on */

/* The fields at the offsets 20, 24, 28 and 32 of a PDU. */
enum words {
	REQUEST,	/* 24 CmdSN, 28 ExpStatSN */
	REQUEST_TTT,	/* also 20 Target Transfer Tag */
	REQUEST_NO_CMD, /* Data-Out, SNACK: 20 TTT, 28 ExpStatSN, no CmdSN */
	RESPONSE,	/* 24 StatSN, 28 ExpCmdSN, 32 MaxCmdSN */
	RESPONSE_TTT,	/* also 20 Target Transfer Tag */
};

static ALWAYS_INLINE void words_decode(struct iscsi_pdu *p, enum words w,
				       const uint8_t *b)
{
	if (w == REQUEST_TTT || w == REQUEST_NO_CMD || w == RESPONSE_TTT)
		p->ttt = get_be32(b + 20);
	if (w >= RESPONSE) {
		p->statsn = get_be32(b + 24);
		p->expcmdsn = get_be32(b + 28);
		p->maxcmdsn = get_be32(b + 32);
		return;
	}
	if (w != REQUEST_NO_CMD)
		p->cmdsn = get_be32(b + 24);
	p->expstatsn = get_be32(b + 28);
}

static ALWAYS_INLINE void words_encode(const struct iscsi_pdu *p, enum words w,
				       uint8_t *b)
{
	if (w == REQUEST_TTT || w == REQUEST_NO_CMD || w == RESPONSE_TTT)
		put_be32(b + 20, p->ttt);
	if (w >= RESPONSE) {
		put_be32(b + 24, p->statsn);
		put_be32(b + 28, p->expcmdsn);
		put_be32(b + 32, p->maxcmdsn);
		return;
	}
	if (w != REQUEST_NO_CMD)
		put_be32(b + 24, p->cmdsn);
	put_be32(b + 28, p->expstatsn);
}

/* The functions below are compiled once for any opcode, and once for each that is
 * constant: that costs no look-up and no call. */

/* The fields that every opcode has, also one that RFC 7143 does not define. */
static ALWAYS_INLINE void bhs_decode_common(struct iscsi_pdu *p,
					    const uint8_t *b)
{
	memset(p, 0, sizeof(*p));
	p->op = b[0] & OPCODE_MASK;
	p->final = b[1] & FLAG_FINAL;
	p->ahs_len = (uint16_t)(b[4] * 4u); /* TotalAHSLength, §11.2.1.5 */
	p->dsl = get_be24(b + 5);	    /* DataSegmentLength, §11.2.1.6 */
	p->itt = get_be32(b + 16);
	p->ttt = ISCSI_RESERVED_TAG;
}

static ALWAYS_INLINE void
bhs_decode(struct iscsi_pdu *p, const uint8_t *b, enum words words,
	   bool has_lun, void (*fields)(struct iscsi_pdu *p, const uint8_t *b))
{
	bhs_decode_common(p, b);
	p->immediate = words < RESPONSE && (b[0] & FLAG_IMMEDIATE);
	if (has_lun)
		p->lun = get_be64(b + 8);
	words_decode(p, words, b);
	fields(p, b);
}

static ALWAYS_INLINE void bhs_encode_common(const struct iscsi_pdu *p,
					    uint8_t *b)
{
	memset(b, 0, ISCSI_BHS_LEN);
	b[0] = p->op & OPCODE_MASK;
	b[1] = p->final ? FLAG_FINAL : 0;
	b[4] = (uint8_t)(p->ahs_len / 4);
	put_be24(b + 5, p->dsl);
	put_be32(b + 16, p->itt);
}

static ALWAYS_INLINE void
bhs_encode(const struct iscsi_pdu *p, uint8_t *b, enum words words,
	   bool has_lun, void (*fields)(const struct iscsi_pdu *p, uint8_t *b))
{
	bhs_encode_common(p, b);
	if (p->immediate && words < RESPONSE)
		b[0] |= FLAG_IMMEDIATE;
	if (has_lun)
		put_be64(b + 8, p->lun);
	words_encode(p, words, b);
	fields(p, b);
}

/* These are iscsi_bhs_decode and iscsi_bhs_encode of one opcode. */
static ALWAYS_INLINE void
iscsi_scsi_command_decode(struct iscsi_pdu *p, const uint8_t b[ISCSI_BHS_LEN])
{
	bhs_decode(p, b, REQUEST, true, scsi_command_decode);
}

static ALWAYS_INLINE void iscsi_scsi_command_encode(const struct iscsi_pdu *p,
						    uint8_t b[ISCSI_BHS_LEN])
{
	bhs_encode(p, b, REQUEST, true, scsi_command_encode);
}

static ALWAYS_INLINE void
iscsi_scsi_response_decode(struct iscsi_pdu *p, const uint8_t b[ISCSI_BHS_LEN])
{
	bhs_decode(p, b, RESPONSE, false, scsi_response_decode);
}

static ALWAYS_INLINE void iscsi_scsi_response_encode(const struct iscsi_pdu *p,
						     uint8_t b[ISCSI_BHS_LEN])
{
	bhs_encode(p, b, RESPONSE, false, scsi_response_encode);
}

static ALWAYS_INLINE void iscsi_data_in_encode(const struct iscsi_pdu *p,
					       uint8_t b[ISCSI_BHS_LEN])
{
	bhs_encode(p, b, RESPONSE_TTT, true, data_in_encode);
}

#endif
