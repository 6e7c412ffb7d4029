/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bhs.c: converts between the Basic Header Segment of RFC 7143 §11 and struct
 * iscsi_pdu. No other file has offsets inside of a BHS.
 */
#include "iscsi/bhs.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

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

#define CODEC(name, FIELDS)                                       \
 static void name##_decode(struct iscsi_pdu *p, const uint8_t *b) \
 {                                                                \
  (void)p;                                                        \
  (void)b;                                                        \
  FIELDS(GET)                                                     \
 }                                                                \
 static void name##_encode(const struct iscsi_pdu *p, uint8_t *b) \
 {                                                                \
  (void)p;                                                        \
  (void)b;                                                        \
  FIELDS(PUT)                                                     \
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

#define TMF_REQUEST(X)                                                       \
 X(SET, 1, FLAG_FINAL, final)                                                \
 X(BITS, 1, 0x7f, tmf.function)                                              \
 X(NUM, 20, 32, tmf.rtt)                                                     \
 X(NUM, 32, 32, tmf.ref_cmdsn)                                               \
 X(NUM, 36, 32, tmf.exp_datasn)

#define TMF_RESPONSE(X)                                                      \
 X(BITS, 2, 0xff, tmf_response)                                              \
 X(BYTES, 8, sizeof(p->tmf_info), tmf_info)

#define DATA_OUT(X)                                                          \
 X(NUM, 36, 32, data.datasn)                                                 \
 X(NUM, 40, 32, data.offset)

#define DATA_IN(X)                                                           \
 X(FLAG, 1, FLAG_CONTINUE, data.ack)                                         \
 X(FLAG, 1, FLAG_STATUS, data.status_present)                                \
 X(BITS, 1, ISCSI_RESID_OVERFLOW | ISCSI_RESID_UNDERFLOW, data.resid_flags)  \
 X(BITS, 3, 0xff, data.status)                                               \
 X(NUM, 36, 32, data.datasn)                                                 \
 X(NUM, 40, 32, data.offset)                                                 \
 X(NUM, 44, 32, data.resid)

#define R2T(X)                                                               \
 X(NUM, 36, 32, r2t.r2tsn)                                                   \
 X(NUM, 40, 32, r2t.offset)                                                  \
 X(NUM, 44, 32, r2t.ddtl)

#define ASYNC(X)                                                             \
 X(BITS, 36, 0xff, async.event)                                              \
 X(BITS, 37, 0xff, async.vcode)                                              \
 X(NUM, 38, 16, async.param1)                                                \
 X(NUM, 40, 16, async.param2)                                                \
 X(NUM, 42, 16, async.param3)

/* T takes the place of F. ISID and TSIH take the place of the LUN (§11.12). */
#define LOGIN_COMMON(X)                                                      \
 X(CLEAR, 1, FLAG_FINAL, final)                                              \
 X(FLAG, 1, FLAG_FINAL, login.transit)                                       \
 X(FLAG, 1, FLAG_CONTINUE, login.cont)                                       \
 X(READ, 1, FLAG_CONTINUE, cont)                                             \
 X(BITS2, 1, 3, login.csg)                                                   \
 X(BITS, 1, 3, login.nsg)                                                    \
 X(BITS, 2, 0xff, login.vmax)                                                \
 X(BITS, 3, 0xff, login.vmin)                                                \
 X(BYTES, 8, 6, login.isid)                                                  \
 X(NUM, 14, 16, login.tsih)

#define LOGIN_REQUEST(X)                                                     \
 LOGIN_COMMON(X)                                                             \
 X(NUM, 20, 16, login.cid)

#define LOGIN_RESPONSE(X)                                                    \
 LOGIN_COMMON(X)                                                             \
 X(BITS, 36, 0xff, login.status_class)                                       \
 X(BITS, 37, 0xff, login.status_detail)

#define LOGOUT_REQUEST(X)                                                    \
 X(SET, 1, FLAG_FINAL, final)                                                \
 X(BITS, 1, 0x7f, logout.reason)                                             \
 X(NUM, 20, 16, logout.cid)

#define LOGOUT_RESPONSE(X)                                                   \
 X(BITS, 2, 0xff, logout.response)                                           \
 X(NUM, 40, 16, logout.time2wait)                                            \
 X(NUM, 42, 16, logout.time2retain)

#define SNACK(X)                                                             \
 X(SET, 1, FLAG_FINAL, final)                                                \
 X(BITS, 1, 0x0f, snack.type)                                                \
 X(NUM, 40, 32, snack.begrun)                                                \
 X(NUM, 44, 32, snack.runlen)

#define REJECT(X)                                                            \
 X(BITS, 2, 0xff, reject.reason)                                             \
 X(NUM, 36, 32, reject.datasn)

#define TEXT(X) X(FLAG, 1, FLAG_CONTINUE, cont)

#define NOP(X)

CODEC(scsi_command, SCSI_COMMAND)
CODEC(scsi_response, SCSI_RESPONSE)
CODEC(tmf_request, TMF_REQUEST)
CODEC(tmf_response, TMF_RESPONSE)
CODEC(data_out, DATA_OUT)
CODEC(data_in, DATA_IN)
CODEC(r2t, R2T)
CODEC(async, ASYNC)
CODEC(login_request, LOGIN_REQUEST)
CODEC(login_response, LOGIN_RESPONSE)
CODEC(logout_request, LOGOUT_REQUEST)
CODEC(logout_response, LOGOUT_RESPONSE)
CODEC(snack, SNACK)
CODEC(reject, REJECT)
CODEC(text, TEXT)
CODEC(nop, NOP)
/* clang-format on */

/* ---- the table ---- */

/* The fields at the offsets 20, 24, 28 and 32 of a PDU. */
enum words {
	REQUEST,	/* 24 CmdSN, 28 ExpStatSN */
	REQUEST_TTT,	/* also 20 Target Transfer Tag */
	REQUEST_NO_CMD, /* Data-Out, SNACK: 20 TTT, 28 ExpStatSN, no CmdSN */
	RESPONSE,	/* 24 StatSN, 28 ExpCmdSN, 32 MaxCmdSN */
	RESPONSE_TTT,	/* also 20 Target Transfer Tag */
};

struct opcode_row {
	const char *name; /* NULL: RFC 7143 does not define this opcode */
	enum words words;
	bool has_lun;
	void (*decode)(struct iscsi_pdu *p, const uint8_t *b);
	void (*encode)(const struct iscsi_pdu *p, uint8_t *b);
};

/* clang-format off */
#define ROW(name) name##_decode, name##_encode
static const struct opcode_row opcodes[64] = {
	[ISCSI_NOP_OUT] = { "NOP-Out", REQUEST_TTT, true, ROW(nop) },
	[ISCSI_SCSI_COMMAND] = { "SCSI Command", REQUEST, true, ROW(scsi_command) },
	[ISCSI_TMF_REQUEST] = { "Task Management Function Request", REQUEST, true, ROW(tmf_request) },
	[ISCSI_LOGIN_REQUEST] = { "Login Request", REQUEST, false, ROW(login_request) },
	[ISCSI_TEXT_REQUEST] = { "Text Request", REQUEST_TTT, true, ROW(text) },
	[ISCSI_DATA_OUT] = { "SCSI Data-Out", REQUEST_NO_CMD, true, ROW(data_out) },
	[ISCSI_LOGOUT_REQUEST] = { "Logout Request", REQUEST, false, ROW(logout_request) },
	[ISCSI_SNACK_REQUEST] = { "SNACK Request", REQUEST_NO_CMD, true, ROW(snack) },
	[ISCSI_NOP_IN] = { "NOP-In", RESPONSE_TTT, true, ROW(nop) },
	[ISCSI_SCSI_RESPONSE] = { "SCSI Response", RESPONSE, false, ROW(scsi_response) },
	[ISCSI_TMF_RESPONSE] = { "Task Management Function Response", RESPONSE, false, ROW(tmf_response) },
	[ISCSI_LOGIN_RESPONSE] = { "Login Response", RESPONSE, false, ROW(login_response) },
	[ISCSI_TEXT_RESPONSE] = { "Text Response", RESPONSE_TTT, true, ROW(text) },
	[ISCSI_DATA_IN] = { "SCSI Data-In", RESPONSE_TTT, true, ROW(data_in) },
	[ISCSI_LOGOUT_RESPONSE] = { "Logout Response", RESPONSE, false, ROW(logout_response) },
	[ISCSI_R2T] = { "Ready To Transfer", RESPONSE_TTT, true, ROW(r2t) },
	[ISCSI_ASYNC_MESSAGE] = { "Asynchronous Message", RESPONSE, true, ROW(async) },
	[ISCSI_REJECT] = { "Reject", RESPONSE, false, ROW(reject) },
};
#undef ROW
/* clang-format on */

static inline void words_decode(struct iscsi_pdu *p, enum words w,
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

static inline void words_encode(const struct iscsi_pdu *p, enum words w,
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

/*
 * The two functions below are compiled once for any row, and once for the row of each
 * PDU that commands consist of: a constant row costs no look-up and no call.
 */
#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE int decode_row(const struct opcode_row *row,
				    struct iscsi_pdu *p, const uint8_t *b)
{
	memset(p, 0, sizeof(*p));
	p->op = b[0] & OPCODE_MASK;
	p->final = b[1] & FLAG_FINAL;
	p->ahs_len = (uint16_t)(b[4] * 4u); /* TotalAHSLength, §11.2.1.5 */
	p->dsl = get_be24(b + 5);	    /* DataSegmentLength, §11.2.1.6 */
	p->itt = get_be32(b + 16);
	p->ttt = ISCSI_RESERVED_TAG;
	if (!row->name)
		return ERR_OPCODE;
	p->immediate = row->words < RESPONSE && (b[0] & FLAG_IMMEDIATE);
	if (row->has_lun)
		p->lun = get_be64(b + 8);
	words_decode(p, row->words, b);
	row->decode(p, b);
	return 0;
}

static ALWAYS_INLINE void encode_row(const struct opcode_row *row,
				     const struct iscsi_pdu *p, uint8_t *b)
{
	memset(b, 0, ISCSI_BHS_LEN);
	b[0] = (uint8_t)((p->op & OPCODE_MASK) |
			 (p->immediate && row->words < RESPONSE ? FLAG_IMMEDIATE
								: 0));
	b[1] = p->final ? FLAG_FINAL : 0;
	b[4] = (uint8_t)(p->ahs_len / 4);
	put_be24(b + 5, p->dsl);
	if (row->has_lun)
		put_be64(b + 8, p->lun);
	put_be32(b + 16, p->itt);
	if (!row->name)
		return;
	words_encode(p, row->words, b);
	row->encode(p, b);
}

/* [RFC 7143: 11 #2] */
int iscsi_bhs_decode(struct iscsi_pdu *p, const uint8_t b[ISCSI_BHS_LEN])
{
	unsigned op = b[0] & OPCODE_MASK;

	switch (op) {
	case ISCSI_SCSI_COMMAND:
		return decode_row(&opcodes[ISCSI_SCSI_COMMAND], p, b);
	case ISCSI_SCSI_RESPONSE:
		return decode_row(&opcodes[ISCSI_SCSI_RESPONSE], p, b);
	case ISCSI_DATA_IN:
		return decode_row(&opcodes[ISCSI_DATA_IN], p, b);
	default:
		return decode_row(&opcodes[op], p, b);
	}
}

/* [RFC 7143: 11 #1, 11.2.1.6 #1] */
void iscsi_bhs_encode(const struct iscsi_pdu *p, uint8_t b[ISCSI_BHS_LEN])
{
	unsigned op = p->op & OPCODE_MASK;

	switch (op) {
	case ISCSI_SCSI_COMMAND:
		encode_row(&opcodes[ISCSI_SCSI_COMMAND], p, b);
		break;
	case ISCSI_SCSI_RESPONSE:
		encode_row(&opcodes[ISCSI_SCSI_RESPONSE], p, b);
		break;
	case ISCSI_DATA_IN:
		encode_row(&opcodes[ISCSI_DATA_IN], p, b);
		break;
	default:
		encode_row(&opcodes[op], p, b);
	}
}

const char *iscsi_opcode_name(uint8_t op)
{
	const char *name = opcodes[op & OPCODE_MASK].name;

	return name ? name : "unknown opcode";
}

/* ---- AHS ---- */

#define AHS_EXT_CDB	1 /* §11.2.2.3 */
#define AHS_BIDI_LEN	2 /* §11.2.2.4 */
#define AHS_HEADER	3 /* AHSLength and AHSType, outside AHSLength */
#define EXT_CDB_MAX_LEN 244

/* Decodes one segment; len is AHSLength: the bytes after the type, without
 * padding. */
static int ahs_segment(struct iscsi_ahs *ahs, uint8_t type, const uint8_t *p,
		       size_t len)
{
	switch (type & 0x3f) {
	case AHS_EXT_CDB:
		/* byte 16 of the CDB follows a reserved byte */
		if (ahs->ext_cdb || len < 2 || len - 1 > EXT_CDB_MAX_LEN)
			return ERR_FORMAT;
		ahs->ext_cdb = p + 1;
		ahs->ext_cdb_len = len - 1;
		return 0;
	case AHS_BIDI_LEN:
		if (ahs->has_bidi || len != 5)
			return ERR_FORMAT;
		ahs->has_bidi = true;
		ahs->bidi_read_edtl = get_be32(p + 1);
		return 0;
	default:
		/* §11: a reserved code is a protocol error */
		return ERR_PROTOCOL;
	}
}

int iscsi_ahs_decode(struct iscsi_ahs *ahs, const uint8_t *p, size_t len)
{
	memset(ahs, 0, sizeof(*ahs));
	while (len > 0) {
		size_t body, whole;
		int err;

		if (len < AHS_HEADER)
			return ERR_FORMAT;
		body = get_be16(p);
		whole = round_up4(AHS_HEADER + body);
		if (whole > len)
			return ERR_FORMAT;
		err = ahs_segment(ahs, p[2], p + AHS_HEADER, body);
		if (err)
			return err;
		p += whole;
		len -= whole;
	}
	return 0;
}

static size_t ahs_put(uint8_t *p, uint8_t type, size_t body)
{
	size_t whole = round_up4(AHS_HEADER + body);

	memset(p, 0, whole);
	put_be16(p, (uint16_t)body);
	p[2] = type;
	return whole;
}

int iscsi_ahs_encode(const struct iscsi_ahs *ahs, uint8_t *p, size_t max)
{
	size_t need = 0, at = 0;

	if (ahs->ext_cdb_len > EXT_CDB_MAX_LEN)
		return ERR_TOO_LONG;
	if (ahs->ext_cdb_len)
		need += round_up4(AHS_HEADER + 1 + ahs->ext_cdb_len);
	if (ahs->has_bidi)
		need += round_up4(AHS_HEADER + 5);
	if (need > max)
		return ERR_TOO_LONG;
	if (ahs->ext_cdb_len) {
		at = ahs_put(p, AHS_EXT_CDB, 1 + ahs->ext_cdb_len);
		memcpy(p + AHS_HEADER + 1, ahs->ext_cdb, ahs->ext_cdb_len);
	}
	if (ahs->has_bidi) {
		put_be32(p + at + AHS_HEADER + 1, 0);
		ahs_put(p + at, AHS_BIDI_LEN, 5);
		put_be32(p + at + AHS_HEADER + 1, ahs->bidi_read_edtl);
	}
	return (int)need;
}
