/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bhs.c: the Basic Header Segment of RFC 7143 §11 <-> struct iscsi_pdu. The
 * only file that knows offsets inside a BHS.
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

/* ---- one opcode each: the bytes that are not common ---- */

static void scsi_command_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->cmd.read = b[1] & FLAG_CONTINUE;
	p->cmd.write = b[1] & FLAG_WRITE;
	p->cmd.attr = b[1] & 0x07;
	p->cmd.priority = b[2] & 0x0f; /* RFC 7144 §4.1 */
	p->cmd.edtl = get_be32(b + 20);
	memcpy(p->cmd.cdb, b + 32, 16);
}

static void scsi_command_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] |= (uint8_t)((p->cmd.read ? FLAG_CONTINUE : 0) |
			  (p->cmd.write ? FLAG_WRITE : 0) |
			  (p->cmd.attr & 0x07));
	b[2] = p->cmd.priority & 0x0f;
	put_be32(b + 20, p->cmd.edtl);
	memcpy(b + 32, p->cmd.cdb, 16);
}

static void scsi_response_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->rsp.resid_flags = b[1] & 0x1e;
	p->rsp.response = b[2];
	p->rsp.status = b[3];
	p->rsp.snack_tag = get_be32(b + 20);
	p->rsp.exp_datasn = get_be32(b + 36);
	p->rsp.bidi_resid = get_be32(b + 40);
	p->rsp.resid = get_be32(b + 44);
	p->rsp.status_qualifier = get_be16(b + 8); /* RFC 7144 §5.2.1 */
}

static void scsi_response_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] |= p->rsp.resid_flags & 0x1e;
	b[2] = p->rsp.response;
	b[3] = p->rsp.status;
	put_be32(b + 20, p->rsp.snack_tag);
	put_be32(b + 36, p->rsp.exp_datasn);
	put_be32(b + 40, p->rsp.bidi_resid);
	put_be32(b + 44, p->rsp.resid);
	put_be16(b + 8, p->rsp.status_qualifier);
}

static void tmf_request_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->tmf.function = b[1] & 0x7f;
	p->tmf.rtt = get_be32(b + 20);
	p->tmf.ref_cmdsn = get_be32(b + 32);
	p->tmf.exp_datasn = get_be32(b + 36);
}

static void tmf_request_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] = FLAG_FINAL | (p->tmf.function & 0x7f);
	put_be32(b + 20, p->tmf.rtt);
	put_be32(b + 32, p->tmf.ref_cmdsn);
	put_be32(b + 36, p->tmf.exp_datasn);
}

static void data_out_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->data.datasn = get_be32(b + 36);
	p->data.offset = get_be32(b + 40);
}

static void data_out_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	put_be32(b + 36, p->data.datasn);
	put_be32(b + 40, p->data.offset);
}

static void data_in_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->data.ack = b[1] & FLAG_CONTINUE;
	p->data.status_present = b[1] & FLAG_STATUS;
	p->data.resid_flags =
		b[1] & (ISCSI_RESID_OVERFLOW | ISCSI_RESID_UNDERFLOW);
	p->data.status = b[3];
	p->data.datasn = get_be32(b + 36);
	p->data.offset = get_be32(b + 40);
	p->data.resid = get_be32(b + 44);
}

static void data_in_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] |= (uint8_t)((p->data.ack ? FLAG_CONTINUE : 0) |
			  (p->data.status_present ? FLAG_STATUS : 0) |
			  (p->data.resid_flags &
			   (ISCSI_RESID_OVERFLOW | ISCSI_RESID_UNDERFLOW)));
	b[3] = p->data.status;
	put_be32(b + 36, p->data.datasn);
	put_be32(b + 40, p->data.offset);
	put_be32(b + 44, p->data.resid);
}

static void r2t_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->r2t.r2tsn = get_be32(b + 36);
	p->r2t.offset = get_be32(b + 40);
	p->r2t.ddtl = get_be32(b + 44);
}

static void r2t_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	put_be32(b + 36, p->r2t.r2tsn);
	put_be32(b + 40, p->r2t.offset);
	put_be32(b + 44, p->r2t.ddtl);
}

static void async_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->async.event = b[36];
	p->async.vcode = b[37];
	p->async.param1 = get_be16(b + 38);
	p->async.param2 = get_be16(b + 40);
	p->async.param3 = get_be16(b + 42);
}

static void async_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[36] = p->async.event;
	b[37] = p->async.vcode;
	put_be16(b + 38, p->async.param1);
	put_be16(b + 40, p->async.param2);
	put_be16(b + 42, p->async.param3);
}

/* The 8 bytes where other PDUs have the LUN hold ISID and TSIH (§11.12). */
static void login_common_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->login.transit = b[1] & FLAG_FINAL;
	p->login.cont = b[1] & FLAG_CONTINUE;
	p->login.csg = (b[1] >> 2) & 3;
	p->login.nsg = b[1] & 3;
	p->login.vmax = b[2];
	p->login.vmin = b[3];
	memcpy(p->login.isid, b + 8, 6);
	p->login.tsih = get_be16(b + 14);
	p->cont = p->login.cont;
	p->lun = 0;
}

static void login_common_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] = (uint8_t)((p->login.transit ? FLAG_FINAL : 0) |
			 (p->login.cont ? FLAG_CONTINUE : 0) |
			 (p->login.csg & 3) << 2 | (p->login.nsg & 3));
	b[2] = p->login.vmax;
	b[3] = p->login.vmin;
	memcpy(b + 8, p->login.isid, 6);
	put_be16(b + 14, p->login.tsih);
}

static void login_request_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	login_common_decode(p, b);
	p->login.cid = get_be16(b + 20);
}

static void login_request_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	login_common_encode(p, b);
	put_be16(b + 20, p->login.cid);
}

static void login_response_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	login_common_decode(p, b);
	p->login.status_class = b[36];
	p->login.status_detail = b[37];
}

static void login_response_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	login_common_encode(p, b);
	b[36] = p->login.status_class;
	b[37] = p->login.status_detail;
}

static void logout_request_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->logout.reason = b[1] & 0x7f;
	p->logout.cid = get_be16(b + 20);
}

static void logout_request_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] = FLAG_FINAL | (p->logout.reason & 0x7f);
	put_be16(b + 20, p->logout.cid);
}

static void logout_response_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->logout.response = b[2];
	p->logout.time2wait = get_be16(b + 40);
	p->logout.time2retain = get_be16(b + 42);
}

static void logout_response_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[2] = p->logout.response;
	put_be16(b + 40, p->logout.time2wait);
	put_be16(b + 42, p->logout.time2retain);
}

static void snack_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->snack.type = b[1] & 0x0f;
	p->snack.begrun = get_be32(b + 40);
	p->snack.runlen = get_be32(b + 44);
}

static void snack_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] = FLAG_FINAL | (p->snack.type & 0x0f);
	put_be32(b + 40, p->snack.begrun);
	put_be32(b + 44, p->snack.runlen);
}

static void reject_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->reject.reason = b[2];
	p->reject.datasn = get_be32(b + 36);
}

static void reject_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[2] = p->reject.reason;
	put_be32(b + 36, p->reject.datasn);
}

static void text_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->cont = b[1] & FLAG_CONTINUE;
}

static void text_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[1] |= p->cont ? FLAG_CONTINUE : 0;
}

static void tmf_response_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	p->tmf_response = b[2];
	memcpy(p->tmf_info, b + 8, sizeof(p->tmf_info));
}

static void tmf_response_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	b[2] = p->tmf_response;
	memcpy(b + 8, p->tmf_info, sizeof(p->tmf_info));
}

static void nothing_decode(struct iscsi_pdu *p, const uint8_t *b)
{
	(void)p;
	(void)b;
}

static void nothing_encode(const struct iscsi_pdu *p, uint8_t *b)
{
	(void)p;
	(void)b;
}

/* ---- the table ---- */

/* What the words at 20, 24, 28, 32 hold in a PDU of this opcode. */
enum words {
	REQUEST,	/* 24 CmdSN, 28 ExpStatSN */
	REQUEST_TTT,	/* the same, and 20 is the Target Transfer Tag */
	REQUEST_NO_CMD, /* Data-Out, SNACK: 20 TTT, 28 ExpStatSN, no CmdSN */
	RESPONSE,	/* 24 StatSN, 28 ExpCmdSN, 32 MaxCmdSN */
	RESPONSE_TTT,	/* the same, and 20 is the Target Transfer Tag */
};

struct opcode_row {
	const char *name; /* NULL: RFC 7143 does not define this opcode */
	enum words words;
	bool has_lun;
	void (*decode)(struct iscsi_pdu *p, const uint8_t *b);
	void (*encode)(const struct iscsi_pdu *p, uint8_t *b);
};

/* clang-format off */
static const struct opcode_row opcodes[64] = {
	[ISCSI_NOP_OUT] = { "NOP-Out", REQUEST_TTT, true, nothing_decode, nothing_encode },
	[ISCSI_SCSI_COMMAND] = { "SCSI Command", REQUEST, true, scsi_command_decode, scsi_command_encode },
	[ISCSI_TMF_REQUEST] = { "Task Management Function Request", REQUEST, true, tmf_request_decode, tmf_request_encode },
	[ISCSI_LOGIN_REQUEST] = { "Login Request", REQUEST, false, login_request_decode, login_request_encode },
	[ISCSI_TEXT_REQUEST] = { "Text Request", REQUEST_TTT, true, text_decode, text_encode },
	[ISCSI_DATA_OUT] = { "SCSI Data-Out", REQUEST_NO_CMD, true, data_out_decode, data_out_encode },
	[ISCSI_LOGOUT_REQUEST] = { "Logout Request", REQUEST, false, logout_request_decode, logout_request_encode },
	[ISCSI_SNACK_REQUEST] = { "SNACK Request", REQUEST_NO_CMD, true, snack_decode, snack_encode },
	[ISCSI_NOP_IN] = { "NOP-In", RESPONSE_TTT, true, nothing_decode, nothing_encode },
	[ISCSI_SCSI_RESPONSE] = { "SCSI Response", RESPONSE, false, scsi_response_decode, scsi_response_encode },
	[ISCSI_TMF_RESPONSE] = { "Task Management Function Response", RESPONSE, false, tmf_response_decode, tmf_response_encode },
	[ISCSI_LOGIN_RESPONSE] = { "Login Response", RESPONSE, false, login_response_decode, login_response_encode },
	[ISCSI_TEXT_RESPONSE] = { "Text Response", RESPONSE_TTT, true, text_decode, text_encode },
	[ISCSI_DATA_IN] = { "SCSI Data-In", RESPONSE_TTT, true, data_in_decode, data_in_encode },
	[ISCSI_LOGOUT_RESPONSE] = { "Logout Response", RESPONSE, false, logout_response_decode, logout_response_encode },
	[ISCSI_R2T] = { "Ready To Transfer", RESPONSE_TTT, true, r2t_decode, r2t_encode },
	[ISCSI_ASYNC_MESSAGE] = { "Asynchronous Message", RESPONSE, true, async_decode, async_encode },
	[ISCSI_REJECT] = { "Reject", RESPONSE, false, reject_decode, reject_encode },
};
/* clang-format on */

static void words_decode(struct iscsi_pdu *p, enum words w, const uint8_t *b)
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

static void words_encode(const struct iscsi_pdu *p, enum words w, uint8_t *b)
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

int iscsi_bhs_decode(struct iscsi_pdu *p, const uint8_t b[ISCSI_BHS_LEN])
{
	const struct opcode_row *row = &opcodes[b[0] & OPCODE_MASK];

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

void iscsi_bhs_encode(const struct iscsi_pdu *p, uint8_t b[ISCSI_BHS_LEN])
{
	const struct opcode_row *row = &opcodes[p->op & OPCODE_MASK];

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

const char *iscsi_opcode_name(uint8_t op)
{
	const char *name = opcodes[op & OPCODE_MASK].name;

	return name ? name : "unknown opcode";
}

bool iscsi_opcode_from_initiator(uint8_t op)
{
	return (op & OPCODE_MASK) < 0x20;
}

/* ---- AHS ---- */

#define AHS_EXT_CDB	1 /* §11.2.2.3 */
#define AHS_BIDI_LEN	2 /* §11.2.2.4 */
#define AHS_HEADER	3 /* AHSLength and AHSType, outside AHSLength */
#define EXT_CDB_MAX_LEN 244

/* One segment: len is AHSLength, the bytes after the type, without pad. */
static int ahs_segment(struct iscsi_ahs *ahs, uint8_t type, const uint8_t *p,
		       size_t len)
{
	switch (type & 0x3f) {
	case AHS_EXT_CDB:
		/* the first byte is reserved, the CDB's byte 16 follows */
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
		return 0;
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
