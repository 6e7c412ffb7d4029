/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_engine.h: what the files of the login engine share.
 *   login.c             the public functions
 *   login_target.c      requests in, responses out
 *   login_initiator.c   requests out, responses in
 *   login_text.c        text in and out, names
 *   login_auth.c        the security stage
 *   login_failure.c     how a login fails
 * No two of these files call each other, directly or through others.
 */
#ifndef ISCSI_LOGIN_ENGINE_H
#define ISCSI_LOGIN_ENGINE_H

#include "iscsi/chap.h"
#include "iscsi/keys.h"
#include "iscsi/login.h"
#include "iscsi/text.h"

/* CSG / NSG values, §11.12.3 */
enum login_stage {
	STAGE_SECURITY = 0,
	STAGE_OPERATIONAL = 1,
	STAGE_FULL_FEATURE = 3,
};

enum login_state {
	LOGIN_START,   /* before the first request */
	LOGIN_TALKING, /* between the first request and the last response */
	LOGIN_DONE,
	LOGIN_FAILED,
};

/* The security keys that were received in one exchange. */
#define GOT_AUTH_METHOD 0x01u
#define GOT_CHAP_A	0x02u
#define GOT_CHAP_I	0x04u
#define GOT_CHAP_C	0x08u
#define GOT_CHAP_N	0x10u
#define GOT_CHAP_R	0x20u

struct login_auth {
	/* the values received: a set of GOT_*, and the values */
	unsigned got;
	char method[256], algorithms[64], name[ISCSI_NAME_MAX + 1];
	uint32_t id;
	uint8_t challenge[CHAP_CHALLENGE_MAX];
	int challenge_len;
	uint8_t response[CHAP_DIGEST_MAX];
	int response_len;
	/* negotiated, and sent by us */
	enum chap_algorithm algorithm;
	uint8_t my_id, my_challenge[CHAP_CHALLENGE_LEN];
	bool challenged;      /* we sent CHAP_C, so the peer sends CHAP_R */
	bool chap;	      /* AuthMethod=CHAP was negotiated */
	bool done;	      /* the security stage may end */
	const char *rejected; /* target: the key whose values all were refused */
};

struct iscsi_login_engine {
	const struct iscsi_login_config *cfg;
	enum login_state state;
	struct iscsi_negotiation neg;
	struct iscsi_login_id id;
	struct iscsi_login_failure failure;
	struct iscsi_login_verdict verdict; /* target */
	struct login_auth auth;
	/* this exchange */
	enum login_stage stage;
	bool transit;	       /* our next PDU has the T bit ... */
	enum login_stage next; /* ... and this NSG */
	bool hold_text;	       /* the answer to a C bit is an empty PDU */
	/* text */
	char in[ISCSI_LOGIN_TEXT_MAX];
	size_t in_len;
	char out_text[ISCSI_LOGIN_TEXT_MAX];
	struct iscsi_text_out out;
	size_t out_sent;
	/* the login */
	unsigned requests; /* PDUs received */
	uint32_t itt;
	struct iscsi_pdu first; /* target: header of the first request */
	uint16_t tsih;		/* target: of the last response */
	int tpgt;
	bool identified, declared, bad_session_type;
};

/* login_failure.c */
/* login_fail ends the login: it records status (target) and the formatted
 * text, and returns err. */
int login_fail(struct iscsi_login_engine *e, int err, uint16_t status,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* login_text.c */
/* login_take_text appends the data segment of a PDU to the received text. */
int login_take_text(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		    const uint8_t *data);
/* login_check_name refuses a login whose initiator name is not strict. */
int login_check_name(struct iscsi_login_engine *e);
/* login_read_keys processes the received text, which is complete, and appends
 * the answers to the text to send. */
int login_read_keys(struct iscsi_login_engine *e);
/* login_more_to_send returns whether part of the text to send is left after a
 * PDU with the C bit. */
bool login_more_to_send(const struct iscsi_login_engine *e);
/* login_fill_text fills the data segment and the stage fields of the next
 * PDU. */
void login_fill_text(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		     uint8_t *data);

/* login_auth.c */
/* login_auth_key records the value of a security key. */
int login_auth_key(struct iscsi_login_engine *e, enum iscsi_key_id id,
		   const char *value);
/* login_auth_target and login_auth_initiator answer the security keys that
 * were received in this exchange. */
int login_auth_target(struct iscsi_login_engine *e);
int login_auth_initiator(struct iscsi_login_engine *e);
/* login_auth_offer (initiator) appends AuthMethod. */
void login_auth_offer(struct iscsi_login_engine *e);

/* login_target.c, login_initiator.c */
int login_target_rx(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		    const uint8_t *data);
int login_target_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		    uint8_t *data);
int login_initiator_rx(struct iscsi_login_engine *e,
		       const struct iscsi_pdu *pdu, const uint8_t *data);
int login_initiator_tx(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		       uint8_t *data);

#endif
