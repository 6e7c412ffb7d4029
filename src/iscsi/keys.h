/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.h: the text keys of RFC 7143 §13, RFC 7144 §7 and RFC 7145 §6 as one
 * table, and their negotiation for both roles.
 *
 * One struct iscsi_negotiation exists per login. It records which keys were
 * sent and received, so that a repeated key is an error (§6.3).
 */
#ifndef ISCSI_KEYS_H
#define ISCSI_KEYS_H

#include <stddef.h>

#include "iscsi/params.h"
#include "iscsi/text.h"

/* How the value of a key is found (§6.2). */
enum iscsi_key_kind {
	ISCSI_KEY_TEXT,		/* declared text, for example a name */
	ISCSI_KEY_DECLARED_NUM, /* each side declares its own value */
	ISCSI_KEY_DECLARED_BOOL,
	ISCSI_KEY_MIN,	/* number, result function minimum */
	ISCSI_KEY_MAX,	/* number, result function maximum */
	ISCSI_KEY_AND,	/* boolean */
	ISCSI_KEY_OR,	/* boolean */
	ISCSI_KEY_LIST, /* the proposer's first value that is supported */
	ISCSI_KEY_OBSOLETE_BOOL,  /* §13.25: answered No */
	ISCSI_KEY_OBSOLETE_RANGE, /* §13.25: answered Reject */
};

/* In which stage and by which role a key may be sent. */
#define ISCSI_KEY_SECURITY     0x001u /* SecurityNegotiation stage */
#define ISCSI_KEY_OPERATIONAL  0x002u /* LoginOperationalNegotiation stage */
#define ISCSI_KEY_FFP	       0x004u /* Text in full feature phase */
#define ISCSI_KEY_ANY_STAGE    (ISCSI_KEY_SECURITY | ISCSI_KEY_OPERATIONAL)
#define ISCSI_KEY_LEADING      0x008u /* leading connection only */
#define ISCSI_KEY_BY_INITIATOR 0x010u
#define ISCSI_KEY_BY_TARGET    0x020u
#define ISCSI_KEY_BY_BOTH      (ISCSI_KEY_BY_INITIATOR | ISCSI_KEY_BY_TARGET)
#define ISCSI_KEY_NO_DISCOVERY 0x040u /* irrelevant: SessionType=Discovery */
#define ISCSI_KEY_RDMA	       0x080u /* irrelevant: RDMAExtensions=No */
#define ISCSI_KEY_NO_RDMA      0x100u /* irrelevant: RDMAExtensions=Yes */
/* may be answered NotUnderstood (§6.2); so may TaskReporting, which RFC 3720 does not
 * have (§4.2.2.3.4) */
#define ISCSI_KEY_LATER	   0x200u
#define ISCSI_KEY_REPEAT   0x400u /* may be sent again */
#define ISCSI_KEY_ZERO_TOO 0x800u /* 0 is allowed beside [min, max] */
/* Allowed in the first request of the login, or of the operational stage, only
 * (§6.3, RFC 7145 §6.3). */
#define ISCSI_KEY_FIRST		    0x1000u
#define ISCSI_KEY_FIRST_OPERATIONAL 0x2000u
#define ISCSI_KEY_FFP_BY_TARGET	    0x4000u /* FFP, but by the target only */

enum iscsi_key_id {
	ISCSI_K_HEADER_DIGEST,
	ISCSI_K_DATA_DIGEST,
	ISCSI_K_MAX_CONNECTIONS,
	ISCSI_K_SEND_TARGETS,
	ISCSI_K_TARGET_NAME,
	ISCSI_K_INITIATOR_NAME,
	ISCSI_K_TARGET_ALIAS,
	ISCSI_K_INITIATOR_ALIAS,
	ISCSI_K_TARGET_ADDRESS,
	ISCSI_K_TARGET_PORTAL_GROUP_TAG,
	ISCSI_K_RDMA_EXTENSIONS,
	ISCSI_K_INITIAL_R2T,
	ISCSI_K_IMMEDIATE_DATA,
	ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH,
	ISCSI_K_MAX_BURST_LENGTH,
	ISCSI_K_FIRST_BURST_LENGTH,
	ISCSI_K_DEFAULT_TIME2WAIT,
	ISCSI_K_DEFAULT_TIME2RETAIN,
	ISCSI_K_MAX_OUTSTANDING_R2T,
	ISCSI_K_DATA_PDU_IN_ORDER,
	ISCSI_K_DATA_SEQUENCE_IN_ORDER,
	ISCSI_K_ERROR_RECOVERY_LEVEL,
	ISCSI_K_SESSION_TYPE,
	ISCSI_K_TASK_REPORTING,
	ISCSI_K_PROTOCOL_LEVEL,
	ISCSI_K_NODE_ARCHITECTURE,
	ISCSI_K_IFMARKER,
	ISCSI_K_OFMARKER,
	ISCSI_K_IFMARKINT,
	ISCSI_K_OFMARKINT,
	ISCSI_K_TARGET_RECV_DSL,
	ISCSI_K_INITIATOR_RECV_DSL,
	ISCSI_K_MAX_OUTSTANDING_UNEXPECTED_PDUS,
	ISCSI_K_MAX_AHS_LENGTH,
	ISCSI_K_TAGGED_BUFFER,
	ISCSI_K_HELLO_REQUIRED,
	ISCSI_K_AUTH_METHOD,
	ISCSI_K_CHAP_A,
	ISCSI_K_CHAP_I,
	ISCSI_K_CHAP_C,
	ISCSI_K_CHAP_N,
	ISCSI_K_CHAP_R,
	ISCSI_KEY_COUNT,
};

struct iscsi_key {
	const char *name;
	const char *clause;
	enum iscsi_key_kind kind;
	unsigned flags;
	uint32_t min, max, def; /* numbers and booleans (0 No, 1 Yes) */
	uint16_t offset, size;	/* member of iscsi_params; size 0: none */
};

/* The table, indexed by enum iscsi_key_id. */
extern const struct iscsi_key iscsi_keys[ISCSI_KEY_COUNT];

/* iscsi_key_find returns the row of the key; NULL for an unknown key. */
const struct iscsi_key *iscsi_key_find(const char *name);

/* Values of digest keys as a set, without an order. */
#define ISCSI_DIGEST_NONE 0x1u
#define ISCSI_DIGEST_CRC  0x2u

struct iscsi_negotiation {
	enum iscsi_role role;
	bool discovery;
	bool leading;
	/* target, set by the login engine: the first request of the login, or
	 * of the operational stage, was answered */
	bool first_over, first_operational_over;
	struct iscsi_params want;	       /* our limits and offers */
	unsigned header_digests, data_digests; /* ISCSI_DIGEST_* we accept */
	bool prefer_digests;
	struct iscsi_params result; /* the values so far */
	/* sets of keys, one bit per enum iscsi_key_id */
	uint64_t offered;  /* sent by us */
	uint64_t answered; /* of these, answered by the peer */
	uint64_t received; /* sent by the peer, not as an answer */
	/* text is called for each value of a text key, in the order of the
	 * text; value is borrowed for the call. An error ends the login. */
	int (*text)(void *arg, enum iscsi_key_id id, const char *value);
	void *arg;
	char why[160]; /* the reason of the last error */
};

/* iscsi_negotiation_init prepares n for a leading login that accepts no
 * digests; the caller changes the other members. want is copied. */
void iscsi_negotiation_init(struct iscsi_negotiation *n, enum iscsi_role role,
			    const struct iscsi_params *want);

/* iscsi_negotiation_join makes n the negotiation of a further connection of a
 * session: the keys that only the leading login negotiates keep the values of
 * *session. */
void iscsi_negotiation_join(struct iscsi_negotiation *n,
			    const struct iscsi_params *session);

/*
 * iscsi_negotiation_key processes one key of the peer in the given stage
 * (ISCSI_KEY_SECURITY, _OPERATIONAL or _FFP) and appends the answer, if there
 * is one, to out. Returns 0, ERR_NEGOTIATION (a value or answer that is not
 * allowed), ERR_PROTOCOL (a repeated key, a wrong stage or role), with the
 * reason in `why`, or an error of `text`.
 */
int iscsi_negotiation_key(struct iscsi_negotiation *n, unsigned stage,
			  const char *key, const char *value,
			  struct iscsi_text_out *out);

/* iscsi_negotiation_offer (initiator) appends all keys that it negotiates. */
void iscsi_negotiation_offer(struct iscsi_negotiation *n,
			     struct iscsi_text_out *out);

/* iscsi_negotiation_declare appends one key with the value that we want. */
void iscsi_negotiation_declare(struct iscsi_negotiation *n,
			       enum iscsi_key_id id,
			       struct iscsi_text_out *out);

/*
 * iscsi_negotiation_finish applies the rules that join several keys:
 * FirstBurstLength is at most MaxBurstLength (§13.14); RDMAExtensions=Yes
 * excludes digests (RFC 7145 §6.1) and takes the lengths of data segments from
 * its own keys (RFC 7145 §6.2).
 */
void iscsi_negotiation_finish(struct iscsi_negotiation *n);

/* iscsi_params_declared returns whether the value of a key was declared or
 * negotiated in this login; if not, it is the default. */
static inline bool iscsi_params_declared(const struct iscsi_params *p,
					 enum iscsi_key_id id)
{
	return p->declared >> id & 1;
}

/* iscsi_params_refused returns whether the peer answered a key of ours with
 * NotUnderstood, Reject or Irrelevant. */
static inline bool iscsi_params_refused(const struct iscsi_params *p,
					enum iscsi_key_id id)
{
	return p->refused >> id & 1;
}

/* iscsi_number_parse parses all of text as a decimal number, or as a
 * hexadecimal number after 0x (§6.1); ERR_FORMAT. */
int iscsi_number_parse(const char *text, uint32_t *value);

#endif
