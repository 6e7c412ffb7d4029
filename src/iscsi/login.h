/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login.h: the login phase of RFC 7143 §6 for both roles: stages, C bit,
 * authentication, negotiation. One engine per connection answers each Login PDU
 * with at most one Login PDU.
 *
 * Initiator: call iscsi_login_start and iscsi_login_tx; then iscsi_login_rx for
 * each response, and iscsi_login_tx if that returns ISCSI_LOGIN_SEND, until it
 * returns ISCSI_LOGIN_DONE.
 * Target: call iscsi_login_rx for each request and then iscsi_login_tx, until
 * that returns ISCSI_LOGIN_DONE.
 */
#ifndef ISCSI_LOGIN_H
#define ISCSI_LOGIN_H

#include "iscsi/bhs.h"
#include "iscsi/params.h"

/* The most text of one exchange, joined by the C bit, and the most requests of
 * a login. These limits protect a target from initiators that are not
 * authenticated. */
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

/* iscsi_login_status_str returns the standard's text, or "unknown login
 * status". */
const char *iscsi_login_status_str(uint16_t status);

/* Name and secret for one direction of CHAP (RFC 7143 §12.1.3, RFC 1994). */
struct iscsi_chap_secret {
	char name[ISCSI_NAME_MAX + 1];
	uint8_t secret[128];
	size_t secret_len;
};

/* The identity of a login, which the first request contains. */
struct iscsi_login_id {
	char initiator_name[ISCSI_NAME_MAX + 1];
	char initiator_alias[ISCSI_NAME_MAX + 1];
	char target_name[ISCSI_NAME_MAX + 1]; /* empty in discovery */
	bool discovery;
	uint8_t isid[6];
	uint16_t tsih;
	uint16_t cid;
};

#define ISCSI_REDIRECT_STR 280 /* a domain name, a port, a tag and the NUL */

/* What the target role decides about the identity of a login. */
struct iscsi_login_verdict {
	uint16_t status; /* enum iscsi_login_status; SUCCESS: continue */
	const char *why; /* of another status, for the log; or NULL */
	char redirect[ISCSI_REDIRECT_STR];     /* TargetAddress for MOVED_* */
	char target_alias[ISCSI_NAME_MAX + 1]; /* empty: not sent */
	uint16_t tpgt;
	/* refuse the login if its initiator name is not strict (iscsi_name_prepare): not
	 * before status, which may hide the target */
	bool strict_names;
	bool chap; /* the initiator has to prove a secret (find_secret) */
	/* The secret that the target proves if the initiator requires that;
	 * NULL: none. Borrowed until the end of the login. */
	const struct iscsi_chap_secret *chap_out;
	/* the algorithms of CHAP that it accepts, numbers as in CHAP_A; NULL: all.
	 * Borrowed like chap_out. */
	const char *chap_algorithms;
};

/* What a target may choose by the TargetName of a login. */
struct iscsi_login_tuning {
	bool prefer_digests;	  /* as in iscsi_login_config */
	uint16_t max_connections; /* as in its want */
};

struct iscsi_login_config {
	enum iscsi_role role;
	/* The values that we offer (initiator), or the limits of what we
	 * accept (target); max_recv_dsl is declared. */
	struct iscsi_params want;
	/* The values of HeaderDigest and DataDigest that we offer or
	 * accept. */
	bool header_digest_none_ok, data_digest_none_ok;
	bool header_digest_crc_ok, data_digest_crc_ok;
	bool prefer_digests; /* choose CRC32C if both are possible */

	/* The values of the session that this login joins, borrowed: those of
	 * the keys that only the leading login negotiates (§6.3.3). NULL: a
	 * leading login. */
	const struct iscsi_params *session;

	/* initiator */
	struct iscsi_login_id id;
	const struct iscsi_chap_secret *chap_out; /* we prove; or NULL */
	const struct iscsi_chap_secret *chap_in;  /* target proves; or NULL */
	/* begin with the security stage without a secret, too: tgt reinstates a
	 * session (§6.3.5) at the end of that stage only */
	bool reinstates;
	/* the value of CHAP_A: what we offer, the best one first; NULL: all */
	const char *chap_algorithms;

	/* target: tune may change *t, which has the values of this config,
	 * before the first request is processed, which has this TargetName (as
	 * it was received; "": none). NULL: not needed. */
	void (*tune)(void *arg, const char *target_name,
		     struct iscsi_login_tuning *t);
	/* target: identify fills *v; called once, when the names are known */
	void (*identify)(void *arg, const struct iscsi_login_id *id,
			 struct iscsi_login_verdict *v);
	/* target: find_secret stores the secret of the account with this
	 * CHAP_N, borrowed until the call of the engine returns; NULL: no
	 * account has that name. It returns enum iscsi_login_status: another one
	 * than ISCSI_LOGIN_SUCCESS refuses the login, and the response to the
	 * challenge is not checked. Needed if a verdict requires CHAP. It should
	 * take the same time for all names. */
	uint16_t (*find_secret)(void *arg, const char *name,
				const struct iscsi_chap_secret **secret);
	/* target: admit is called before the last response is built. It returns
	 * enum iscsi_login_status and stores the TSIH of the session, which is
	 * new if id->tsih is 0. */
	uint16_t (*admit)(void *arg, const struct iscsi_login_id *id,
			  const struct iscsi_params *params, uint16_t *tsih);
	void *arg;
	/* random fills p with n random bytes for a CHAP challenge. */
	void (*random)(void *arg, uint8_t *p, size_t n);
};

enum iscsi_login_result {
	ISCSI_LOGIN_SEND = 1, /* call tx */
	ISCSI_LOGIN_DONE = 2, /* full feature phase; params and id are final */
	ISCSI_LOGIN_WAIT = 3, /* wait for the peer's next PDU */
};

struct iscsi_login_engine;

/* iscsi_login_new allocates an engine of about 40 KiB, which the caller frees
 * by iscsi_login_free when the login has ended. cfg is borrowed until then.
 * NULL: out of memory. */
struct iscsi_login_engine *
iscsi_login_new(const struct iscsi_login_config *cfg);
void iscsi_login_free(struct iscsi_login_engine *e);

/* iscsi_login_start (initiator) prepares the first request for
 * iscsi_login_tx. */
int iscsi_login_start(struct iscsi_login_engine *e);

/*
 * iscsi_login_rx processes one Login PDU of the peer with its data segment
 * (pdu->dsl bytes, borrowed for the call). Returns enum iscsi_login_result, or
 * an error with the reason in iscsi_login_failure. After an error with a status
 * other than 0 a target calls iscsi_login_tx once more.
 */
int iscsi_login_rx(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		   const uint8_t *data);

/*
 * iscsi_login_tx fills the next PDU to send. The role sets StatSN, ExpCmdSN and
 * MaxCmdSN (target) or CmdSN and ExpStatSN (initiator). The data segment
 * (pdu->dsl bytes) goes to data, which has ISCSI_LOGIN_PDU_MAX bytes. Returns
 * ISCSI_LOGIN_WAIT, ISCSI_LOGIN_DONE (target: this is the last response), or an
 * error (target: the PDU has the status of the failure; send it, then close).
 */
int iscsi_login_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		   uint8_t *data);

/* These return the results of the login, borrowed from the engine. */
const struct iscsi_params *
iscsi_login_params(const struct iscsi_login_engine *e);
const struct iscsi_login_id *iscsi_login_id(const struct iscsi_login_engine *e);
/* iscsi_login_algorithm returns the name of the algorithm of CHAP (constant); "": the
 * login was without CHAP. */
const char *iscsi_login_algorithm(const struct iscsi_login_engine *e);
/* iscsi_login_tpgt (initiator) returns the target portal group tag that the
 * target sent, or -1. */
int iscsi_login_tpgt(const struct iscsi_login_engine *e);

struct iscsi_login_failure {
	/* sent (target) or received (initiator); 0: found by the initiator */
	uint16_t status; /* enum iscsi_login_status */
	bool chap;	 /* a wrong response to our CHAP challenge */
	/* the initiator had answered a challenge by SHA-256, which the target
	 * found malformed: status INITIATOR_ERROR */
	bool after_sha256;
	bool at_algorithms; /* the answer to the initiator's CHAP_A */
	char text[160];	    /* the reason, with its clause */
	char redirect[ISCSI_REDIRECT_STR]; /* TargetAddress of MOVED_* */
};
/* iscsi_login_failure returns why the login failed, borrowed from the
 * engine. */
const struct iscsi_login_failure *
iscsi_login_failure(const struct iscsi_login_engine *e);

#endif
