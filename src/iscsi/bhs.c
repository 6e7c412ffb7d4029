/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bhs.c: converts between the Basic Header Segment of RFC 7143 §11 and struct
 * iscsi_pdu. No other file, except bhs_codec.h, has offsets inside of a BHS.
 */
#include "iscsi/bhs.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "iscsi/bhs_codec.h"

/* clang-format off */
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

CODEC(tmf_request, TMF_REQUEST)
CODEC(tmf_response, TMF_RESPONSE)
CODEC(data_out, DATA_OUT)
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

/* [RFC 7143: 11 #2] */
int iscsi_bhs_decode(struct iscsi_pdu *p, const uint8_t b[ISCSI_BHS_LEN])
{
	const struct opcode_row *row = &opcodes[b[0] & OPCODE_MASK];

	switch (b[0] & OPCODE_MASK) {
	case ISCSI_SCSI_COMMAND:
		iscsi_scsi_command_decode(p, b);
		return 0;
	case ISCSI_SCSI_RESPONSE:
		iscsi_scsi_response_decode(p, b);
		return 0;
	case ISCSI_DATA_IN:
		bhs_decode(p, b, RESPONSE_TTT, true, data_in_decode);
		return 0;
	default:
		if (row->name)
			bhs_decode(p, b, row->words, row->has_lun, row->decode);
		else
			bhs_decode_common(p, b);
		return row->name ? 0 : ERR_OPCODE;
	}
}

/* [RFC 7143: 11 #1, 11.2.1.6 #1] */
void iscsi_bhs_encode(const struct iscsi_pdu *p, uint8_t b[ISCSI_BHS_LEN])
{
	const struct opcode_row *row = &opcodes[p->op & OPCODE_MASK];

	switch (p->op & OPCODE_MASK) {
	case ISCSI_SCSI_COMMAND:
		iscsi_scsi_command_encode(p, b);
		break;
	case ISCSI_SCSI_RESPONSE:
		iscsi_scsi_response_encode(p, b);
		break;
	case ISCSI_DATA_IN:
		iscsi_data_in_encode(p, b);
		break;
	default:
		if (row->name)
			bhs_encode(p, b, row->words, row->has_lun, row->encode);
		else
			bhs_encode_common(p, b);
	}
}

const char *iscsi_opcode_name(uint8_t op)
{
	const char *name = opcodes[op & OPCODE_MASK].name;

	return name ? name : "unknown opcode";
}

/* The texts of §11.17.1, shorter. */
const char *iscsi_reject_text(uint8_t reason)
{
	static const char *const texts[] = {
		[ISCSI_REJECT_DATA_DIGEST] = "data digest error",
		[ISCSI_REJECT_SNACK] = "SNACK rejected",
		[ISCSI_REJECT_PROTOCOL] = "protocol error",
		[ISCSI_REJECT_NOT_SUPPORTED] = "command not supported",
		[ISCSI_REJECT_TOO_MANY_IMMEDIATE] =
			"too many immediate commands",
		[ISCSI_REJECT_TASK_IN_PROGRESS] = "task in progress",
		[ISCSI_REJECT_INVALID_DATA_ACK] = "invalid DataACK",
		[ISCSI_REJECT_INVALID_PDU_FIELD] = "invalid PDU field",
		[ISCSI_REJECT_LONG_OP] = "out of resources",
		[ISCSI_REJECT_NEGOTIATION_RESET] = "negotiation reset",
		[ISCSI_REJECT_WAITING_LOGOUT] = "waiting for a Logout",
	};
	bool is_known = reason < ARRAY_LEN(texts) && texts[reason];

	return is_known ? texts[reason] : "unassigned reason";
}

/* The texts of §11.6.1 and RFC 7144 §5.2, shorter. */
const char *iscsi_tmf_text(uint8_t response)
{
	static const char *const texts[] = {
		[ISCSI_TMF_COMPLETE] = "function complete",
		[ISCSI_TMF_NO_TASK] = "no such task",
		[ISCSI_TMF_NO_LUN] = "no such LUN",
		[ISCSI_TMF_TASK_ALLEGIANT] =
			"the task is still on its connection",
		[ISCSI_TMF_NO_REASSIGN] = "reassignment not supported",
		[ISCSI_TMF_NOT_SUPPORTED] = "function not supported",
		[ISCSI_TMF_AUTH_FAILED] = "authorization failed",
		[ISCSI_TMF_SUCCEEDED] = "function succeeded",
	};

	if (response == ISCSI_TMF_REJECTED)
		return "function rejected";
	return response < ARRAY_LEN(texts) ? texts[response]
					   : "unassigned response";
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
