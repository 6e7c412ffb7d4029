/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_engine.h: what the files of the login engine share: login.c (text in
 * and out, C bit), login_target.c, login_initiator.c, login_auth.c.
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
	LOGIN_START,   /* nothing was said yet */
	LOGIN_TALKING, /* between the first request and the last response */
	LOGIN_DONE,
	LOGIN_FAILED,
};

/* The values of security keys heard in one exchange. */
#define HEARD_AUTH_METHOD 0x01u
#define HEARD_CHAP_A	  0x02u
#define HEARD_CHAP_I	  0x04u
#define HEARD_CHAP_C	  0x08u
#define HEARD_CHAP_N	  0x10u
#define HEARD_CHAP_R	  0x20u

struct login_auth {
	unsigned heard;
	char method[256], algorithms[64], name[ISCSI_NAME_MAX + 1];
	uint32_t id;
	uint8_t challenge[CHAP_CHALLENGE_MAX];
	int challenge_len;
	uint8_t response[CHAP_DIGEST_MAX];
	int response_len;
	/* what was agreed */
	enum chap_algorithm algorithm;
	uint8_t my_id, my_challenge[CHAP_CHALLENGE_LEN];
	bool challenged; /* we sent CHAP_C and wait for CHAP_R */
	bool chap;	 /* AuthMethod=CHAP was picked */
	bool done;	 /* nothing more is owed to either side */
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
	bool transit;	       /* our next PDU carries T ... */
	enum login_stage next; /* ... and this NSG */
	bool hold_text;	       /* answer a C bit: an empty PDU is due */
	/* text */
	char in[ISCSI_LOGIN_TEXT_MAX];
	size_t in_len;
	char out_text[ISCSI_LOGIN_TEXT_MAX];
	struct iscsi_text_out out;
	size_t out_sent;
	/* the rest */
	unsigned requests;
	uint32_t itt;
	uint16_t tsih; /* to hand out, or handed out */
	int tpgt;
	bool identified, declared, bad_session_type;
};

/* login.c */
int login_fail(struct iscsi_login_engine *e, int err, uint16_t status,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int login_take_text(struct iscsi_login_engine *e, const struct iscsi_pdu *pdu,
		    const uint8_t *data);
int login_read_keys(struct iscsi_login_engine *e);
bool login_more_to_send(const struct iscsi_login_engine *e);
void login_fill_text(struct iscsi_login_engine *e, struct iscsi_pdu *pdu,
		     uint8_t *data);

/* login_auth.c */
int login_auth_key(struct iscsi_login_engine *e, enum iscsi_key_id id,
		   const char *value);
int login_auth_target(struct iscsi_login_engine *e);
int login_auth_initiator(struct iscsi_login_engine *e);
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
