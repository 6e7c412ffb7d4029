/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login.h: the login phase of RFC 7143 §6 for both roles: stages, C bit,
 * authentication, negotiation. One engine per connection; it is pure and
 * answers a Login PDU with at most one Login PDU.
 *
 * Initiator: iscsi_login_start, then tx; then rx of each response, tx again
 * when it returns ISCSI_LOGIN_SEND, until DONE.
 * Target: rx of each request, then tx (there is always an answer while rx
 * does not return an error), until DONE after the last tx.
 */
#ifndef ISCSI_LOGIN_H
#define ISCSI_LOGIN_H

#include "iscsi/bhs.h"
#include "iscsi/params.h"

/* The most that one side may say in one login exchange, all PDUs of a C-bit
 * chain together, and the most requests that a login may take: the limits
 * that hold before anybody is authenticated. */
#define ISCSI_LOGIN_TEXT_MAX	 16384
#define ISCSI_LOGIN_MAX_REQUESTS 64
#define ISCSI_LOGIN_PDU_MAX	 8192 /* §13.12: MaxRecvDSL before FFP */

/* §11.13.5: status class << 8 | detail */
enum iscsi_login_status {
	ISCSI_LOGIN_SUCCESS = 0x0000,
	ISCSI_LOGIN_MOVED_TEMPORARILY = 0x0101,
	ISCSI_LOGIN_MOVED_PERMANENTLY = 0x0102,
	ISCSI_LOGIN_INITIATOR_ERROR = 0x0200,
	ISCSI_LOGIN_AUTH_FAILURE = 0x0201,
	ISCSI_LOGIN_FORBIDDEN = 0x0202,
	ISCSI_LOGIN_NOT_FOUND = 0x0203,
	ISCSI_LOGIN_REMOVED = 0x0204,
	ISCSI_LOGIN_BAD_VERSION = 0x0205,
	ISCSI_LOGIN_TOO_MANY_CONNECTIONS = 0x0206,
	ISCSI_LOGIN_MISSING_PARAMETER = 0x0207,
	ISCSI_LOGIN_CANT_INCLUDE = 0x0208,
	ISCSI_LOGIN_BAD_SESSION_TYPE = 0x0209,
	ISCSI_LOGIN_NO_SESSION = 0x020a,
	ISCSI_LOGIN_INVALID_DURING_LOGIN = 0x020b,
	ISCSI_LOGIN_TARGET_ERROR = 0x0300,
	ISCSI_LOGIN_UNAVAILABLE = 0x0301,
	ISCSI_LOGIN_NO_RESOURCES = 0x0302,
};

/* iscsi_login_status_str: the standard's words; never NULL. */
const char *iscsi_login_status_str(uint16_t status);

/* One direction of CHAP (RFC 7143 §12.1.3, RFC 1994). Empty = none. */
struct iscsi_chap_secret {
	char name[ISCSI_NAME_MAX + 1];
	uint8_t secret[128];
	size_t secret_len;
};

/* Who is logging in: known once the first request has been read. */
struct iscsi_login_id {
	char initiator_name[ISCSI_NAME_MAX + 1];
	char initiator_alias[ISCSI_NAME_MAX + 1];
	char target_name[ISCSI_NAME_MAX + 1]; /* empty in discovery */
	bool discovery;
	uint8_t isid[6];
	uint16_t tsih;
	uint16_t cid;
};

/* What the target role answers to "may this one log in?". */
struct iscsi_login_verdict {
	uint16_t status; /* enum iscsi_login_status; not SUCCESS ends login */
	char redirect[280];		       /* TargetAddress for MOVED_* */
	char target_alias[ISCSI_NAME_MAX + 1]; /* empty: not sent */
	uint16_t tpgt;
	/* The initiator must prove it knows this secret; NULL: it need not.
	 * Borrowed, must stay until the login has ended. */
	const struct iscsi_chap_secret *chap_in;
	/* What we prove to it when it asks. NULL: it can't ask. */
	const struct iscsi_chap_secret *chap_out;
};

struct iscsi_login_config {
	enum iscsi_role role;
	/* What we offer (initiator) or the most we accept (target);
	 * max_recv_dsl is declared as it stands. */
	struct iscsi_params want;
	/* HeaderDigest/DataDigest: what we offer or accept, best first. */
	bool header_digest_none_ok, data_digest_none_ok;
	bool header_digest_crc_ok, data_digest_crc_ok;
	bool prefer_digests; /* target: pick CRC32C when both are offered */

	/* initiator: who we are and where we want to go */
	struct iscsi_login_id id;
	const struct iscsi_chap_secret *chap_out; /* to prove who we are */
	const struct iscsi_chap_secret *chap_in;  /* what target must prove */

	/* target: called once, when the names are known. Must fill *v. */
	void (*identify)(void *arg, const struct iscsi_login_id *id,
			 struct iscsi_login_verdict *v);
	/* target: called when the login is about to succeed, before the last
	 * response is built. Returns enum iscsi_login_status and the TSIH to
	 * hand out (new session or the one of id->tsih). */
	uint16_t (*admit)(void *arg, const struct iscsi_login_id *id,
			  const struct iscsi_params *params, uint16_t *tsih);
	void *arg;
	/* Fills n random bytes for CHAP challenges. */
	void (*random)(void *arg, uint8_t *p, size_t n);
};

enum iscsi_login_result {
	ISCSI_LOGIN_SEND = 1, /* call tx */
	ISCSI_LOGIN_DONE = 2, /* full feature phase; params and id are final */
	ISCSI_LOGIN_WAIT = 3, /* nothing to send, wait for the peer */
};

struct iscsi_login_engine; /* heap, about 40 KiB; free when login is over */

/* The config is borrowed and must outlive the engine. NULL: out of memory. */
struct iscsi_login_engine *
iscsi_login_new(const struct iscsi_login_config *cfg);
void iscsi_login_free(struct iscsi_login_engine *e);

/* iscsi_login_start (initiator): makes the first request ready for tx. */
int iscsi_login_start(struct iscsi_login_engine *e);

/*
 * iscsi_login_rx takes one Login PDU of the peer with its data segment
 * (pdu->dsl bytes, borrowed for the call). Returns enum iscsi_login_result or
 * a negative error; iscsi_login_failure then tells the status. A target still
 * has one tx to make after an error unless the status is 0.
 */
int iscsi_login_rx(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		   const uint8_t *data);

/*
 * iscsi_login_tx fills the next PDU to send: everything but the StatSN,
 * ExpCmdSN and MaxCmdSN (target) or CmdSN and ExpStatSN (initiator) that the
 * role owns. The data segment (pdu->dsl bytes) is written to data, which has
 * room for ISCSI_LOGIN_PDU_MAX. Returns ISCSI_LOGIN_WAIT, ISCSI_LOGIN_SEND
 * (more to send at once) or ISCSI_LOGIN_DONE (target: this was the last
 * response), or a negative error (target: the PDU is the refusal; send it,
 * then close).
 */
int iscsi_login_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		   uint8_t *data);

const struct iscsi_params *
iscsi_login_params(const struct iscsi_login_engine *e);
const struct iscsi_login_id *iscsi_login_id(const struct iscsi_login_engine *e);
/* Target portal group tag that the target named; -1 if none. */
int iscsi_login_tpgt(const struct iscsi_login_engine *e);

struct iscsi_login_failure {
	uint16_t status;    /* sent or received; enum iscsi_login_status */
	char text[160];	    /* what was wrong, for a person, with the clause */
	char redirect[280]; /* TargetAddress when status is MOVED_* */
};
const struct iscsi_login_failure *
iscsi_login_failure(const struct iscsi_login_engine *e);

#endif
