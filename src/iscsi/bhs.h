/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bhs.h: the Basic Header Segment of iSCSI PDUs (RFC 7143 §11) as a struct in
 * host byte order, and its codec.
 */
#ifndef ISCSI_BHS_H
#define ISCSI_BHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISCSI_BHS_LEN	   48
#define ISCSI_MAX_AHS_LEN  1020 /* TotalAHSLength counts 4-byte words */
#define ISCSI_DIGEST_LEN   4
#define ISCSI_RESERVED_TAG 0xffffffffu

/* RFC 7143 §11.2.1.2 */
enum iscsi_opcode {
	ISCSI_NOP_OUT = 0x00,
	ISCSI_SCSI_COMMAND = 0x01,
	ISCSI_TMF_REQUEST = 0x02,
	ISCSI_LOGIN_REQUEST = 0x03,
	ISCSI_TEXT_REQUEST = 0x04,
	ISCSI_DATA_OUT = 0x05,
	ISCSI_LOGOUT_REQUEST = 0x06,
	ISCSI_SNACK_REQUEST = 0x10,
	ISCSI_NOP_IN = 0x20,
	ISCSI_SCSI_RESPONSE = 0x21,
	ISCSI_TMF_RESPONSE = 0x22,
	ISCSI_LOGIN_RESPONSE = 0x23,
	ISCSI_TEXT_RESPONSE = 0x24,
	ISCSI_DATA_IN = 0x25,
	ISCSI_LOGOUT_RESPONSE = 0x26,
	ISCSI_R2T = 0x31,
	ISCSI_ASYNC_MESSAGE = 0x32,
	ISCSI_REJECT = 0x3f,
};

/* RFC 7143 §11.3.1 */
enum iscsi_attr {
	ISCSI_ATTR_UNTAGGED = 0,
	ISCSI_ATTR_SIMPLE = 1,
	ISCSI_ATTR_ORDERED = 2,
	ISCSI_ATTR_HEAD_OF_QUEUE = 3,
	ISCSI_ATTR_ACA = 4,
};

/* RFC 7143 §11.5.1; QUERY TASK and later from RFC 7144 §5.1 */
enum iscsi_tmf {
	ISCSI_TMF_ABORT_TASK = 1,
	ISCSI_TMF_ABORT_TASK_SET = 2,
	ISCSI_TMF_CLEAR_ACA = 3,
	ISCSI_TMF_CLEAR_TASK_SET = 4,
	ISCSI_TMF_LU_RESET = 5,
	ISCSI_TMF_TARGET_WARM_RESET = 6,
	ISCSI_TMF_TARGET_COLD_RESET = 7,
	ISCSI_TMF_TASK_REASSIGN = 8,
	ISCSI_TMF_QUERY_TASK = 9,
	ISCSI_TMF_QUERY_TASK_SET = 10,
	ISCSI_TMF_I_T_NEXUS_RESET = 11,
	ISCSI_TMF_QUERY_ASYNC_EVENT = 12,
};

/* RFC 7143 §11.6.1; FUNCTION_SUCCEEDED from RFC 7144 §5.2 */
enum iscsi_tmf_response {
	ISCSI_TMF_COMPLETE = 0,
	ISCSI_TMF_NO_TASK = 1,
	ISCSI_TMF_NO_LUN = 2,
	ISCSI_TMF_TASK_ALLEGIANT = 3,
	ISCSI_TMF_NO_REASSIGN = 4,
	ISCSI_TMF_NOT_SUPPORTED = 5,
	ISCSI_TMF_AUTH_FAILED = 6,
	ISCSI_TMF_SUCCEEDED = 7,
	ISCSI_TMF_REJECTED = 255,
};

/* RFC 7143 §11.17.1 */
enum iscsi_reject_reason {
	ISCSI_REJECT_DATA_DIGEST = 0x02,
	ISCSI_REJECT_SNACK = 0x03,
	ISCSI_REJECT_PROTOCOL = 0x04,
	ISCSI_REJECT_NOT_SUPPORTED = 0x05,
	ISCSI_REJECT_TOO_MANY_IMMEDIATE = 0x06,
	ISCSI_REJECT_TASK_IN_PROGRESS = 0x07,
	ISCSI_REJECT_INVALID_DATA_ACK = 0x08,
	ISCSI_REJECT_INVALID_PDU_FIELD = 0x09,
	ISCSI_REJECT_LONG_OP = 0x0a,
	ISCSI_REJECT_NEGOTIATION_RESET = 0x0b,
	ISCSI_REJECT_WAITING_LOGOUT = 0x0c,
};

/* RFC 7143 §11.9.1 */
enum iscsi_async_event {
	ISCSI_ASYNC_SCSI = 0,
	ISCSI_ASYNC_LOGOUT = 1,
	ISCSI_ASYNC_DROP_CONNECTION = 2,
	ISCSI_ASYNC_DROP_SESSION = 3,
	ISCSI_ASYNC_NEGOTIATE = 4,
	ISCSI_ASYNC_TASK_TERMINATION = 5,
};

enum iscsi_logout_reason {
	ISCSI_LOGOUT_SESSION = 0,
	ISCSI_LOGOUT_CONNECTION = 1,
	ISCSI_LOGOUT_RECOVERY = 2,
};

/* The residual bits of a SCSI Response or Data-In (§11.4.5.1, §11.7.2). */
#define ISCSI_RESID_BIDI_OVERFLOW  0x10
#define ISCSI_RESID_BIDI_UNDERFLOW 0x08
#define ISCSI_RESID_OVERFLOW	   0x04
#define ISCSI_RESID_UNDERFLOW	   0x02

struct iscsi_scsi_command {
	bool read, write;
	uint8_t attr;	  /* enum iscsi_attr */
	uint8_t priority; /* RFC 7144 §4.1, 0 to 15 */
	uint32_t edtl;	  /* Expected Data Transfer Length */
	uint8_t cdb[16];
};

struct iscsi_scsi_response {
	uint8_t resid_flags;
	uint8_t response; /* 0 = command completed at target */
	uint8_t status;	  /* SCSI status */
	uint32_t snack_tag;
	uint32_t exp_datasn;
	uint32_t resid, bidi_resid;
	uint16_t status_qualifier; /* RFC 7144 §4.2 */
};

struct iscsi_tmf_request_fields {
	uint8_t function; /* enum iscsi_tmf */
	uint32_t rtt;	  /* Referenced Task Tag */
	uint32_t ref_cmdsn;
	uint32_t exp_datasn;
};

struct iscsi_data {
	uint32_t datasn;
	uint32_t offset; /* Buffer Offset */
	/* Data-In only */
	bool ack;	     /* A bit */
	bool status_present; /* S bit: status, resid and StatSN are valid */
	uint8_t resid_flags;
	uint8_t status;
	uint32_t resid;
};

struct iscsi_r2t {
	uint32_t r2tsn;
	uint32_t offset;
	uint32_t ddtl; /* Desired Data Transfer Length */
};

struct iscsi_async {
	uint8_t event; /* enum iscsi_async_event */
	uint8_t vcode;
	uint16_t param1, param2, param3;
};

struct iscsi_login_fields {
	bool transit; /* T; also in pdu.final */
	bool cont;    /* C */
	uint8_t csg, nsg;
	uint8_t vmax, vmin; /* response: vmin is Version-active */
	uint8_t isid[6];
	uint16_t tsih;
	uint16_t cid;			     /* request */
	uint8_t status_class, status_detail; /* response */
};

struct iscsi_logout_fields {
	uint8_t reason;	  /* request: enum iscsi_logout_reason */
	uint16_t cid;	  /* request */
	uint8_t response; /* response: 0 closed, 1 no CID, 2 no recovery, 3 */
	uint16_t time2wait, time2retain; /* response, seconds */
};

struct iscsi_snack {
	uint8_t type; /* 0 Data/R2T, 1 Status, 2 DataACK, 3 R-Data */
	uint32_t begrun, runlen;
};

struct iscsi_reject {
	uint8_t reason;	 /* enum iscsi_reject_reason */
	uint32_t datasn; /* DataSN / R2TSN */
};

/*
 * A decoded header. The decoder sets members that the opcode does not have to
 * 0, but ttt to ISCSI_RESERVED_TAG; the encoder ignores such members.
 */
struct iscsi_pdu {
	uint8_t op;	  /* enum iscsi_opcode, without the I bit */
	bool immediate;	  /* I bit: requests only */
	bool final;	  /* F bit; T bit of Login */
	bool cont;	  /* C bit of Text */
	uint16_t ahs_len; /* bytes, a multiple of 4 */
	uint32_t dsl;	  /* DataSegmentLength, bytes without padding */
	uint64_t lun;
	uint32_t itt; /* Initiator Task Tag */
	uint32_t ttt; /* Target Transfer Tag */
	/* requests */
	uint32_t cmdsn;
	uint32_t expstatsn;
	/* responses */
	uint32_t statsn;
	uint32_t expcmdsn;
	uint32_t maxcmdsn;
	union {
		struct iscsi_scsi_command cmd;
		struct iscsi_scsi_response rsp;
		struct iscsi_tmf_request_fields tmf;
		struct {
			uint8_t tmf_response; /* enum iscsi_tmf_response */
			/* Additional Response Information, RFC 7144 §6.4.1 */
			uint8_t tmf_info[3];
		};
		struct iscsi_data data;
		struct iscsi_r2t r2t;
		struct iscsi_async async;
		struct iscsi_login_fields login;
		struct iscsi_logout_fields logout;
		struct iscsi_snack snack;
		struct iscsi_reject reject;
	};
};

/*
 * iscsi_bhs_decode fills *pdu from 48 bytes. It does not check lengths: the
 * caller compares dsl and ahs_len with its limits before it waits for so many
 * bytes. Returns ERR_OPCODE for an opcode that RFC 7143 does not define; op,
 * itt, dsl and ahs_len are filled even then, so that the PDU can be rejected.
 */
int iscsi_bhs_decode(struct iscsi_pdu *pdu, const uint8_t b[ISCSI_BHS_LEN]);

/* iscsi_bhs_encode writes all 48 bytes; reserved fields are zero. */
void iscsi_bhs_encode(const struct iscsi_pdu *pdu, uint8_t b[ISCSI_BHS_LEN]);

/* iscsi_opcode_name returns the standard's name, for example "SCSI Command", or
 * "unknown opcode". */
const char *iscsi_opcode_name(uint8_t op);
/* iscsi_reject_text: what a reason of a Reject means (§11.17.1). */
const char *iscsi_reject_text(uint8_t reason);
/* iscsi_tmf_text: what a response to a task management function means (§11.6.1). */
const char *iscsi_tmf_text(uint8_t response);

/* iscsi_opcode_from_initiator returns whether initiators send op; if not,
 * targets do. */
static inline bool iscsi_opcode_from_initiator(uint8_t op)
{
	return (op & 0x3f) < 0x20;
}

/* Additional Header Segments (RFC 7143 §11.2.2). */
struct iscsi_ahs {
	const uint8_t *ext_cdb; /* borrowed from the input; NULL if absent */
	size_t ext_cdb_len;	/* bytes beyond the first 16 of the CDB */
	bool has_bidi;
	uint32_t bidi_read_edtl;
};

/*
 * iscsi_ahs_decode decodes the segments in p[0..len) and skips unknown types.
 * ERR_FORMAT: a segment is longer than the rest of the list, has a length that
 * its type does not allow, or occurs twice.
 */
int iscsi_ahs_decode(struct iscsi_ahs *ahs, const uint8_t *p, size_t len);

/*
 * iscsi_ahs_encode writes the segments to p, at most max bytes, and returns
 * their length, a multiple of 4, or ERR_TOO_LONG.
 */
int iscsi_ahs_encode(const struct iscsi_ahs *ahs, uint8_t *p, size_t max);

#endif
