/* SPDX-License-Identifier: BSD-2-Clause */
/* keys.c: the table of text keys, and the negotiation that its rows define. */
#include "iscsi/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hex.h"

#define MEMBER(m) \
 offsetof(struct iscsi_params, m), sizeof(((struct iscsi_params *)0)->m)
#define NONE 0, 0

#define OPER   ISCSI_KEY_OPERATIONAL
#define ANY    ISCSI_KEY_ANY_STAGE
#define SEC    ISCSI_KEY_SECURITY
#define FFP    ISCSI_KEY_FFP
#define LEAD   ISCSI_KEY_LEADING
#define BOTH   ISCSI_KEY_BY_BOTH
#define INI    ISCSI_KEY_BY_INITIATOR
#define TGT    ISCSI_KEY_BY_TARGET
#define NODISC ISCSI_KEY_NO_DISCOVERY
#define RDMA   ISCSI_KEY_RDMA
#define NORDMA ISCSI_KEY_NO_RDMA
#define LATER  ISCSI_KEY_LATER
#define FIRST  ISCSI_KEY_FIRST
#define FOPER  ISCSI_KEY_FIRST_OPERATIONAL

#define DSL_MAX 0xffffffu /* 2**24-1 */

/* clang-format off */
const struct iscsi_key iscsi_keys[ISCSI_KEY_COUNT] = {
	[ISCSI_K_HEADER_DIGEST] = { "HeaderDigest", "RFC 7143 §13.1", ISCSI_KEY_LIST, OPER | BOTH | NORDMA, 0, 1, 0, MEMBER(header_digest) },
	[ISCSI_K_DATA_DIGEST] = { "DataDigest", "RFC 7143 §13.1", ISCSI_KEY_LIST, OPER | BOTH | NORDMA, 0, 1, 0, MEMBER(data_digest) },
	[ISCSI_K_MAX_CONNECTIONS] = { "MaxConnections", "RFC 7143 §13.2", ISCSI_KEY_MIN, OPER | BOTH | LEAD | NODISC, 1, 65535, 1, MEMBER(max_connections) },
	[ISCSI_K_SEND_TARGETS] = { "SendTargets", "RFC 7143 §13.3", ISCSI_KEY_TEXT, FFP | INI | ISCSI_KEY_REPEAT, 0, 0, 0, NONE },
	[ISCSI_K_TARGET_NAME] = { "TargetName", "RFC 7143 §13.4", ISCSI_KEY_TEXT, ANY | BOTH | FIRST | ISCSI_KEY_FFP_BY_TARGET, 0, 0, 0, NONE },
	[ISCSI_K_INITIATOR_NAME] = { "InitiatorName", "RFC 7143 §13.5", ISCSI_KEY_TEXT, ANY | INI | FIRST, 0, 0, 0, NONE },
	[ISCSI_K_TARGET_ALIAS] = { "TargetAlias", "RFC 7143 §13.6", ISCSI_KEY_TEXT, ANY | FFP | TGT | ISCSI_KEY_REPEAT, 0, 0, 0, NONE },
	[ISCSI_K_INITIATOR_ALIAS] = { "InitiatorAlias", "RFC 7143 §13.7", ISCSI_KEY_TEXT, ANY | FFP | INI | ISCSI_KEY_REPEAT, 0, 0, 0, NONE },
	[ISCSI_K_TARGET_ADDRESS] = { "TargetAddress", "RFC 7143 §13.8", ISCSI_KEY_TEXT, ANY | FFP | TGT | ISCSI_KEY_REPEAT, 0, 0, 0, NONE },
	[ISCSI_K_TARGET_PORTAL_GROUP_TAG] = { "TargetPortalGroupTag", "RFC 7143 §13.9", ISCSI_KEY_TEXT, ANY | TGT, 0, 0, 0, NONE },
	/* Before all other negotiated keys, which depend on it (RFC 7145 §6.3). */
	[ISCSI_K_RDMA_EXTENSIONS] = { "RDMAExtensions", "RFC 7145 §6.3", ISCSI_KEY_AND, OPER | BOTH | LEAD | NODISC | LATER | FOPER, 0, 1, 0, MEMBER(rdma_extensions) },
	[ISCSI_K_INITIAL_R2T] = { "InitialR2T", "RFC 7143 §13.10", ISCSI_KEY_OR, OPER | BOTH | LEAD | NODISC, 0, 1, 1, MEMBER(initial_r2t) },
	[ISCSI_K_IMMEDIATE_DATA] = { "ImmediateData", "RFC 7143 §13.11", ISCSI_KEY_AND, OPER | BOTH | LEAD | NODISC, 0, 1, 1, MEMBER(immediate_data) },
	[ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH] = { "MaxRecvDataSegmentLength", "RFC 7143 §13.12", ISCSI_KEY_DECLARED_NUM, OPER | FFP | BOTH, 512, DSL_MAX, 8192, MEMBER(max_send_dsl) },
	[ISCSI_K_MAX_BURST_LENGTH] = { "MaxBurstLength", "RFC 7143 §13.13", ISCSI_KEY_MIN, OPER | BOTH | LEAD | NODISC, 512, DSL_MAX, 262144, MEMBER(max_burst_length) },
	[ISCSI_K_FIRST_BURST_LENGTH] = { "FirstBurstLength", "RFC 7143 §13.14", ISCSI_KEY_MIN, OPER | BOTH | LEAD | NODISC, 512, DSL_MAX, 65536, MEMBER(first_burst_length) },
	[ISCSI_K_DEFAULT_TIME2WAIT] = { "DefaultTime2Wait", "RFC 7143 §13.15", ISCSI_KEY_MAX, OPER | BOTH | LEAD, 0, 3600, 2, MEMBER(default_time2wait) },
	[ISCSI_K_DEFAULT_TIME2RETAIN] = { "DefaultTime2Retain", "RFC 7143 §13.16", ISCSI_KEY_MIN, OPER | BOTH | LEAD, 0, 3600, 20, MEMBER(default_time2retain) },
	[ISCSI_K_MAX_OUTSTANDING_R2T] = { "MaxOutstandingR2T", "RFC 7143 §13.17", ISCSI_KEY_MIN, OPER | BOTH | LEAD | NODISC, 1, 65535, 1, MEMBER(max_outstanding_r2t) },
	[ISCSI_K_DATA_PDU_IN_ORDER] = { "DataPDUInOrder", "RFC 7143 §13.18", ISCSI_KEY_OR, OPER | BOTH | LEAD | NODISC, 0, 1, 1, MEMBER(data_pdu_in_order) },
	[ISCSI_K_DATA_SEQUENCE_IN_ORDER] = { "DataSequenceInOrder", "RFC 7143 §13.19", ISCSI_KEY_OR, OPER | BOTH | LEAD | NODISC, 0, 1, 1, MEMBER(data_sequence_in_order) },
	[ISCSI_K_ERROR_RECOVERY_LEVEL] = { "ErrorRecoveryLevel", "RFC 7143 §13.20", ISCSI_KEY_MIN, OPER | BOTH | LEAD, 0, 2, 0, MEMBER(error_recovery_level) },
	[ISCSI_K_SESSION_TYPE] = { "SessionType", "RFC 7143 §13.21", ISCSI_KEY_TEXT, ANY | INI | LEAD | FIRST, 0, 0, 0, NONE },
	[ISCSI_K_TASK_REPORTING] = { "TaskReporting", "RFC 7143 §13.23", ISCSI_KEY_LIST, OPER | BOTH | LEAD | NODISC | LATER, 0, 2, 0, MEMBER(task_reporting) },
	[ISCSI_K_PROTOCOL_LEVEL] = { "iSCSIProtocolLevel", "RFC 7144 §7.1.1", ISCSI_KEY_MIN, OPER | BOTH | LEAD | NODISC | LATER, 0, 31, 1, MEMBER(protocol_level) },
	[ISCSI_K_NODE_ARCHITECTURE] = { "X#NodeArchitecture", "RFC 7143 §13.26", ISCSI_KEY_TEXT, ANY | BOTH | LEAD | LATER, 0, 0, 0, NONE },
	[ISCSI_K_IFMARKER] = { "IFMarker", "RFC 7143 §13.25", ISCSI_KEY_OBSOLETE_BOOL, OPER | BOTH, 0, 1, 0, NONE },
	[ISCSI_K_OFMARKER] = { "OFMarker", "RFC 7143 §13.25", ISCSI_KEY_OBSOLETE_BOOL, OPER | BOTH, 0, 1, 0, NONE },
	[ISCSI_K_IFMARKINT] = { "IFMarkInt", "RFC 7143 §13.25", ISCSI_KEY_OBSOLETE_RANGE, OPER | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_OFMARKINT] = { "OFMarkInt", "RFC 7143 §13.25", ISCSI_KEY_OBSOLETE_RANGE, OPER | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_TARGET_RECV_DSL] = { "TargetRecvDataSegmentLength", "RFC 7145 §6.4", ISCSI_KEY_MIN, OPER | BOTH | RDMA | LATER, 512, DSL_MAX, 8192, MEMBER(target_recv_dsl) },
	[ISCSI_K_INITIATOR_RECV_DSL] = { "InitiatorRecvDataSegmentLength", "RFC 7145 §6.5", ISCSI_KEY_MIN, OPER | BOTH | RDMA | LATER, 512, DSL_MAX, 8192, MEMBER(initiator_recv_dsl) },
	[ISCSI_K_MAX_OUTSTANDING_UNEXPECTED_PDUS] = { "MaxOutstandingUnexpectedPDUs", "RFC 7145 §6.7", ISCSI_KEY_DECLARED_NUM, OPER | BOTH | LEAD | RDMA | LATER | ISCSI_KEY_ZERO_TOO, 2, UINT32_MAX, 0, MEMBER(max_outstanding_unexpected_pdus) },
	[ISCSI_K_MAX_AHS_LENGTH] = { "MaxAHSLength", "RFC 7145 §6.8", ISCSI_KEY_DECLARED_NUM, OPER | BOTH | LEAD | RDMA | LATER | ISCSI_KEY_ZERO_TOO, 2, UINT32_MAX, 256, MEMBER(max_ahs_length) },
	[ISCSI_K_TAGGED_BUFFER] = { "TaggedBufferForSolicitedDataOnly", "RFC 7145 §6.9", ISCSI_KEY_DECLARED_BOOL, OPER | INI | LEAD | RDMA | LATER, 0, 1, 0, MEMBER(tagged_buffer_for_solicited_data_only) },
	[ISCSI_K_HELLO_REQUIRED] = { "iSERHelloRequired", "RFC 7145 §6.10", ISCSI_KEY_DECLARED_BOOL, OPER | INI | LEAD | RDMA | LATER, 0, 1, 0, MEMBER(iser_hello_required) },
	/* The security keys of §12: login_auth.c parses their values. */
	[ISCSI_K_AUTH_METHOD] = { "AuthMethod", "RFC 7143 §12.1", ISCSI_KEY_TEXT, SEC | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_CHAP_A] = { "CHAP_A", "RFC 7143 §12.1.3", ISCSI_KEY_TEXT, SEC | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_CHAP_I] = { "CHAP_I", "RFC 7143 §12.1.3", ISCSI_KEY_TEXT, SEC | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_CHAP_C] = { "CHAP_C", "RFC 7143 §12.1.3", ISCSI_KEY_TEXT, SEC | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_CHAP_N] = { "CHAP_N", "RFC 7143 §12.1.3", ISCSI_KEY_TEXT, SEC | BOTH, 0, 0, 0, NONE },
	[ISCSI_K_CHAP_R] = { "CHAP_R", "RFC 7143 §12.1.3", ISCSI_KEY_TEXT, SEC | BOTH, 0, 0, 0, NONE },
};
/* clang-format on */

/* [RFC 7143: 6.2 #8 #11, 11.12.10 #2, 11.13.8 #2] */
const struct iscsi_key *iscsi_key_find(const char *name)
{
	for (size_t i = 0; i < ISCSI_KEY_COUNT; i++)
		if (iscsi_keys[i].name[0] == name[0] &&
		    strcmp(iscsi_keys[i].name, name) == 0)
			return &iscsi_keys[i];
	return NULL;
}

/* ---- a key's member of struct iscsi_params ---- */

static uint32_t param_get(const struct iscsi_params *p,
			  const struct iscsi_key *k)
{
	const uint8_t *at = (const uint8_t *)p + k->offset;
	uint16_t v16;
	uint32_t v32;

	switch (k->size) {
	case 1:
		return *at;
	case 2:
		memcpy(&v16, at, 2);
		return v16;
	case 4:
		memcpy(&v32, at, 4);
		return v32;
	default:
		return k->def;
	}
}

static void param_set(struct iscsi_params *p, const struct iscsi_key *k,
		      uint32_t v)
{
	uint8_t *at = (uint8_t *)p + k->offset;
	uint16_t v16 = (uint16_t)v;

	if (k->size == 1)
		*at = (uint8_t)v;
	else if (k->size == 2)
		memcpy(at, &v16, 2);
	else if (k->size == 4)
		memcpy(at, &v, 4);
}

void iscsi_params_defaults(struct iscsi_params *p)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < ISCSI_KEY_COUNT; i++)
		param_set(p, &iscsi_keys[i], iscsi_keys[i].def);
	p->max_recv_dsl = iscsi_keys[ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH].def;
}

/* ---- values ---- */

int iscsi_number_parse(const char *text, uint32_t *value)
{
	uint64_t v = 0;
	int base = 10;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return ERR_FORMAT;
	for (; *text; text++) {
		int d = hex_digit(*text);

		if (d < 0 || d >= base)
			return ERR_FORMAT;
		v = v * (unsigned)base + (unsigned)d;
		if (v > UINT32_MAX)
			return ERR_FORMAT;
	}
	*value = (uint32_t)v;
	return 0;
}

static int bool_parse(const char *text, uint32_t *value)
{
	*value = strcmp(text, "Yes") == 0;
	return *value || strcmp(text, "No") == 0 ? 0 : ERR_FORMAT;
}

static bool is_bool(const struct iscsi_key *k)
{
	return k->kind == ISCSI_KEY_AND || k->kind == ISCSI_KEY_OR ||
	       k->kind == ISCSI_KEY_DECLARED_BOOL;
}

static int value_parse(const struct iscsi_key *k, const char *text, uint32_t *v)
{
	if (is_bool(k))
		return bool_parse(text, v);
	if (iscsi_number_parse(text, v))
		return ERR_FORMAT;
	if (*v == 0 && (k->flags & ISCSI_KEY_ZERO_TOO))
		return 0;
	return *v >= k->min && *v <= k->max ? 0 : ERR_RANGE;
}

/* [RFC 7143: 6.1 #3] */
static void value_put(const struct iscsi_key *k, uint32_t v,
		      struct iscsi_text_out *out)
{
	if (is_bool(k))
		iscsi_text_put(out, k->name, v ? "Yes" : "No");
	else
		iscsi_text_putf(out, k->name, "%u", (unsigned)v);
}

/* The result function of §13. */
static uint32_t combine(enum iscsi_key_kind kind, uint32_t a, uint32_t b)
{
	switch (kind) {
	case ISCSI_KEY_MIN:
	case ISCSI_KEY_AND:
		return MIN(a, b);
	default: /* MAX, OR */
		return MAX(a, b);
	}
}

/* ---- negotiation ---- */

/* [RFC 7143: 6.2 #5, 7.1.5 #3] */
void iscsi_negotiation_init(struct iscsi_negotiation *n, enum iscsi_role role,
			    const struct iscsi_params *want)
{
	memset(n, 0, sizeof(*n));
	n->role = role;
	n->want = *want;
	n->leading = true;
	n->header_digests = n->data_digests = ISCSI_DIGEST_NONE;
	iscsi_params_defaults(&n->result);
}

static enum iscsi_key_id key_id(const struct iscsi_key *k)
{
	return (enum iscsi_key_id)(k - iscsi_keys);
}

static uint64_t key_bit(const struct iscsi_key *k)
{
	return 1ull << key_id(k);
}

void iscsi_negotiation_join(struct iscsi_negotiation *n,
			    const struct iscsi_params *session)
{
	n->leading = false;
	for (size_t i = 0; i < ISCSI_KEY_COUNT; i++) {
		const struct iscsi_key *k = &iscsi_keys[i];

		if (!(k->flags & ISCSI_KEY_LEADING))
			continue;
		param_set(&n->result, k, param_get(session, k));
		n->result.declared |= session->declared & key_bit(k);
		n->result.refused |= session->refused & key_bit(k);
	}
	/* whether the keys of RFC 7145 are relevant to this login */
	n->want.rdma_extensions = session->rdma_extensions;
}

/* Records the reason and returns err. */
static int fail_key(struct iscsi_negotiation *n, int err, const char *key,
		    const char *value, const char *what, const char *clause)
{
	snprintf(n->why, sizeof(n->why), "%.40s=%.60s: %s (%s)", key, value,
		 what, clause);
	return err;
}

/* [RFC 7145: 5.1 #5] */
/* [RFC 7143: 13 #1] */
static bool is_irrelevant(const struct iscsi_negotiation *n,
			  const struct iscsi_key *k)
{
	if (n->role == ISCSI_TARGET && !n->leading &&
	    (k->flags & ISCSI_KEY_LEADING))
		return true; /* negotiated by the leading login (§6.3.3) */
	return (n->discovery && (k->flags & ISCSI_KEY_NO_DISCOVERY)) ||
	       ((k->flags & ISCSI_KEY_RDMA) && !n->want.rdma_extensions);
}

/* The digests that we accept for this key. */
/* [RFC 7143: 13.1 #1] */
static unsigned digests_of(const struct iscsi_negotiation *n,
			   const struct iscsi_key *k)
{
	if (n->want.rdma_extensions && n->result.rdma_extensions)
		return ISCSI_DIGEST_NONE; /* RFC 7145 §6.1 */
	return key_id(k) == ISCSI_K_HEADER_DIGEST ? n->header_digests
						  : n->data_digests;
}

#define LIST_MAX 3

/* The values of TaskReporting, by enum iscsi_task_reporting. */
static const char *const task_reporting[LIST_MAX] = { "RFC3720",
						      "ResponseFence",
						      "FastAbort" };

/* Stores the supported values of a list key and returns their number. */
/* [RFC 7143: 13.23 #1 #3-4] */
static unsigned list_values(const struct iscsi_negotiation *n,
			    const struct iscsi_key *k,
			    const char *values[LIST_MAX])
{
	unsigned count = 0;

	if (key_id(k) == ISCSI_K_TASK_REPORTING) {
		for (; count <= n->want.task_reporting; count++)
			values[count] = task_reporting[count];
		return count;
	}
	if (digests_of(n, k) & ISCSI_DIGEST_NONE)
		values[count++] = "None";
	if (digests_of(n, k) & ISCSI_DIGEST_CRC)
		values[count++] = "CRC32C";
	return count;
}

/* Returns the first of the proposer's values that is supported (§6.2.1), or
 * NULL. A target that prefers digests chooses CRC32C at any position. */
/* [RFC 7143: 6.2.1 #1-3] */
static const char *choose_value(const struct iscsi_negotiation *n,
				const struct iscsi_key *k, const char *list)
{
	const char *values[LIST_MAX], *best = NULL;
	unsigned count = list_values(n, k, values);
	int at = -1;

	for (unsigned i = 0; i < count; i++) {
		int where = iscsi_list_find(list, values[i]);
		bool digest = strcmp(values[i], "CRC32C") == 0;

		if (where < 0 ||
		    (at >= 0 && where > at && !(digest && n->prefer_digests)))
			continue;
		best = values[i];
		at = where;
	}
	return best;
}

/* Stores a value that was declared or negotiated. */
static void set_result(struct iscsi_negotiation *n, const struct iscsi_key *k,
		       uint32_t v)
{
	param_set(&n->result, k, v);
	n->result.declared |= key_bit(k);
}

static void set_list_result(struct iscsi_negotiation *n,
			    const struct iscsi_key *k, const char *value)
{
	uint32_t v = strcmp(value, "CRC32C") == 0;

	for (uint32_t i = 0; i < LIST_MAX; i++)
		if (strcmp(value, task_reporting[i]) == 0)
			v = i;
	set_result(n, k, v);
}

/* §7.4.1: the ErrorRecoveryLevel of a discovery session is 0. §13.19: an initiator
 * that wants error recovery and sequences in order offers one R2T. */
/* [RFC 7143: 7.4.1 #1-2, 13.21 #1] */
static uint32_t want_of(const struct iscsi_negotiation *n,
			const struct iscsi_key *k)
{
	const struct iscsi_params *w = &n->want;

	if (n->discovery && key_id(k) == ISCSI_K_ERROR_RECOVERY_LEVEL)
		return 0;
	if (n->role == ISCSI_INITIATOR &&
	    key_id(k) == ISCSI_K_MAX_OUTSTANDING_R2T &&
	    w->error_recovery_level && w->data_sequence_in_order)
		return 1;
	return param_get(w, k);
}

/* The value that we want for a key. Under iSER it is InitialR2T=Yes, because an
 * RDMA Read costs less than the receives that unsolicited data would need (RFC
 * 7145 §8.1.1.2). FirstBurstLength is at most the MaxBurstLength that was
 * agreed to before. */
/* [RFC 7143: 13.14 #1, 13.19 #2, 13.24 #1] */
/* [RFC 7144: 4.1 #1] */
static uint32_t own_value(const struct iscsi_negotiation *n,
			  const struct iscsi_key *k)
{
	if (key_id(k) == ISCSI_K_INITIAL_R2T && n->result.rdma_extensions)
		return 1;
	if (key_id(k) == ISCSI_K_FIRST_BURST_LENGTH)
		return MIN(want_of(n, k), n->result.max_burst_length);
	return want_of(n, k);
}

/* Answers a value that the peer proposed. */
/* [RFC 7145: 5.1 #3, 6.3 #1-2 #5-6] */
/* [RFC 7143: 6.2.2 #1-2 #4-5, 7.1.5 #2] */
static int accept_key(struct iscsi_negotiation *n, const struct iscsi_key *k,
		      const char *value, struct iscsi_text_out *out)
{
	const char *choice;
	uint32_t v;

	if (k->kind == ISCSI_KEY_LIST) {
		choice = choose_value(n, k, value); /* NULL: Reject, §6.2.1 */
		iscsi_text_put(out, k->name, choice ? choice : "Reject");
		if (choice)
			set_list_result(n, k, choice);
		return 0;
	}
	if (value_parse(k, value, &v)) {
		iscsi_text_put(out, k->name, "Reject"); /* §6.2.2 */
		return 0;
	}
	v = combine(k->kind, v, own_value(n, k));
	set_result(n, k, v);
	value_put(k, v, out);
	return 0;
}

/* Takes a value that the peer declares. */
/* [RFC 7145: 6.2 #1] */
static int take_declaration(struct iscsi_negotiation *n,
			    const struct iscsi_key *k, const char *value,
			    struct iscsi_text_out *out)
{
	uint32_t v;

	if (value_parse(k, value, &v)) {
		iscsi_text_put(out, k->name, "Reject");
		return fail_key(n, ERR_NEGOTIATION, k->name, value,
				"value not allowed", k->clause);
	}
	if (key_id(k) == ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH &&
	    n->result.rdma_extensions)
		return 0; /* RFC 7145 §6.2: no effect in RDMA mode */
	set_result(n, k, v);
	return 0;
}

/* Whether the result function allows v as an answer to our proposal. */
static bool is_answer_ok(const struct iscsi_negotiation *n,
			 const struct iscsi_key *k, uint32_t v)
{
	return combine(k->kind, v, want_of(n, k)) == v;
}

static bool is_constant_answer(const char *value)
{
	return strcmp(value, "NotUnderstood") == 0 ||
	       strcmp(value, "Irrelevant") == 0 || strcmp(value, "Reject") == 0;
}

/* The peer does not support a key of ours: the default holds. */
/* [RFC 7144: 7.1.1 #1] */
static int refuse_key(struct iscsi_negotiation *n, const struct iscsi_key *k)
{
	if (k->kind == ISCSI_KEY_DECLARED_BOOL)
		param_set(&n->result, k, k->def);
	n->result.declared &= ~key_bit(k);
	n->result.refused |= key_bit(k);
	return 0;
}

/* Takes the peer's answer to our proposal. */
/* [RFC 7145: 5.1 #4] */
/* [RFC 7143: 6.2 #7 #9, 6.2.1 #4] */
static int take_answer(struct iscsi_negotiation *n, const struct iscsi_key *k,
		       const char *value)
{
	uint32_t v;

	if (is_constant_answer(value)) {
		if (strcmp(value, "NotUnderstood") == 0 &&
		    !(k->flags & ISCSI_KEY_LATER))
			return fail_key(n, ERR_NEGOTIATION, k->name, value,
					"must be understood", "RFC 7143 §6.2");
		return refuse_key(n, k);
	}
	if (k->kind == ISCSI_KEY_LIST) {
		if (!choose_value(n, k, value) || strchr(value, ','))
			return fail_key(n, ERR_NEGOTIATION, k->name, value,
					"was not proposed", "RFC 7143 §6.2.1");
		set_list_result(n, k, value);
		return 0;
	}
	if (value_parse(k, value, &v) || !is_answer_ok(n, k, v))
		return fail_key(n, ERR_NEGOTIATION, k->name, value,
				"answer violates the result function",
				k->clause);
	set_result(n, k, v);
	return 0;
}

static bool is_declarative(const struct iscsi_key *k)
{
	return k->kind == ISCSI_KEY_DECLARED_NUM ||
	       k->kind == ISCSI_KEY_DECLARED_BOOL || k->kind == ISCSI_KEY_TEXT;
}

/* Some keys are allowed in the first request only, because they decide how all
 * other keys are read. */
static bool is_too_late(const struct iscsi_negotiation *n,
			const struct iscsi_key *k)
{
	return (n->first_over && (k->flags & ISCSI_KEY_FIRST)) ||
	       (n->first_operational_over &&
		(k->flags & ISCSI_KEY_FIRST_OPERATIONAL));
}

/* Checks that the peer may send this key in this stage (§6.3, §13). */
/* [RFC 7143: 6.3 #6 #10, 6.4 #4, 12 #1, 13.4 #2, 13.5 #2, 13.26.1 #2] */
static int check_key(struct iscsi_negotiation *n, unsigned stage,
		     const struct iscsi_key *k, const char *value)
{
	unsigned by = n->role == ISCSI_TARGET ? ISCSI_KEY_BY_INITIATOR
					      : ISCSI_KEY_BY_TARGET;

	if (!(k->flags & stage))
		return fail_key(n, ERR_PROTOCOL, k->name, value,
				"not allowed in this stage", "RFC 7143 §6.3");
	if (!(k->flags & by))
		return fail_key(n, ERR_PROTOCOL, k->name, value,
				"not allowed from this role", k->clause);
	if ((n->received & key_bit(k)) && !(k->flags & ISCSI_KEY_REPEAT))
		return fail_key(n, ERR_PROTOCOL, k->name, value, "sent twice",
				"RFC 7143 §6.3");
	if (is_too_late(n, k))
		return fail_key(n, ERR_PROTOCOL, k->name, value,
				"allowed in the first request only",
				k->flags & ISCSI_KEY_FIRST ? "RFC 7143 §6.3"
							   : k->clause);
	return 0;
}

/* Takes a key that is not an answer to a proposal of ours. */
/* [RFC 7145: 3.3 #9] */
/* [RFC 7143: 6.2 #12, 6.2.2 #3, 13.25 #1-3] */
static int take_proposal(struct iscsi_negotiation *n, const struct iscsi_key *k,
			 const char *value, struct iscsi_text_out *out)
{
	if (k->kind == ISCSI_KEY_TEXT)
		return n->text ? n->text(n->arg, key_id(k), value) : 0;
	if (is_irrelevant(n, k)) {
		if (!is_declarative(k))
			iscsi_text_put(out, k->name, "Irrelevant");
		return 0;
	}
	switch (k->kind) {
	case ISCSI_KEY_OBSOLETE_BOOL:
		iscsi_text_put(out, k->name, "No");
		return 0;
	case ISCSI_KEY_OBSOLETE_RANGE:
		iscsi_text_put(out, k->name, "Reject");
		return 0;
	case ISCSI_KEY_DECLARED_NUM:
	case ISCSI_KEY_DECLARED_BOOL:
		return take_declaration(n, k, value, out);
	default:
		return accept_key(n, k, value, out);
	}
}

/* [RFC 7145: 3.3 #8] */
/* [RFC 7143: 6.2 #6 #10, 6.3 #10] */
int iscsi_negotiation_key(struct iscsi_negotiation *n, unsigned stage,
			  const char *key, const char *value,
			  struct iscsi_text_out *out)
{
	const struct iscsi_key *k = iscsi_key_find(key);
	int err;

	if (!k) {
		/* §6.2: these answers are not answered */
		if (!is_constant_answer(value))
			iscsi_text_put(out, key, "NotUnderstood");
		return 0;
	}
	if ((n->offered & ~n->answered & key_bit(k)) &&
	    k->kind != ISCSI_KEY_TEXT &&
	    (!is_declarative(k) || is_constant_answer(value))) {
		n->answered |= key_bit(k);
		return take_answer(n, k, value);
	}
	/* a second answer would change the result */
	if ((n->answered & key_bit(k)) && !is_declarative(k))
		return fail_key(n, ERR_PROTOCOL, key, value, "answered twice",
				"RFC 7143 §6.3");
	err = check_key(n, stage, k, value);
	if (err)
		return err;
	if (is_constant_answer(value) && k->kind != ISCSI_KEY_TEXT)
		return fail_key(n, ERR_PROTOCOL, key, value,
				"reserved constant as a proposal",
				"RFC 7143 §6.2");
	n->received |= key_bit(k);
	return take_proposal(n, k, value, out);
}

static void offer_digests(struct iscsi_negotiation *n,
			  const struct iscsi_key *k, struct iscsi_text_out *out)
{
	unsigned ours = digests_of(n, k);
	const char *both = n->prefer_digests ? "CRC32C,None" : "None,CRC32C";

	iscsi_text_put(out, k->name,
		       ours == ISCSI_DIGEST_CRC	   ? "CRC32C"
		       : ours == ISCSI_DIGEST_NONE ? "None"
						   : both);
}

/* Whether the initiator offers this key. It offers keys that other
 * implementations may not know only for a value that is not the default. */
/* [RFC 7145: 3.3 #1, 5.1 #8] */
/* [RFC 7143: 7.1.5 #1, 13 #1] */
static bool should_offer(const struct iscsi_negotiation *n,
			 const struct iscsi_key *k)
{
	if (!(k->flags & ISCSI_KEY_OPERATIONAL) || is_irrelevant(n, k) ||
	    !(k->flags & ISCSI_KEY_BY_INITIATOR) ||
	    (!n->leading && (k->flags & ISCSI_KEY_LEADING)))
		return false;
	if (n->want.rdma_extensions && !n->discovery &&
	    ((k->flags & ISCSI_KEY_NO_RDMA) ||
	     key_id(k) == ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH))
		return false; /* RFC 7145 §§6.1, 6.2 */
	if (k->flags & ISCSI_KEY_LATER)
		/* §6.9: Linux' default is the opposite of the RFC's, so our
		 * initiator always declares the tagged buffer */
		return key_id(k) == ISCSI_K_TARGET_RECV_DSL ||
		       key_id(k) == ISCSI_K_INITIATOR_RECV_DSL ||
		       key_id(k) == ISCSI_K_TAGGED_BUFFER ||
		       param_get(&n->want, k) != k->def;
	return true;
}

/* [RFC 7143: 13.23 #2] */
static void offer_key(struct iscsi_negotiation *n, const struct iscsi_key *k,
		      struct iscsi_text_out *out)
{
	switch (k->kind) {
	case ISCSI_KEY_LIST:
		if (key_id(k) == ISCSI_K_TASK_REPORTING)
			iscsi_text_put(
				out, k->name,
				n->want.task_reporting == ISCSI_FAST_ABORT
					? "FastAbort,ResponseFence,RFC3720"
					: "ResponseFence,RFC3720");
		else
			offer_digests(n, k, out);
		break;
	case ISCSI_KEY_TEXT:
	case ISCSI_KEY_OBSOLETE_BOOL:
	case ISCSI_KEY_OBSOLETE_RANGE:
		return;
	default:
		iscsi_negotiation_declare(n, key_id(k), out);
		return;
	}
	n->offered |= key_bit(k);
}

/* [RFC 7145: 5.1 #6, 6.3 #3] */
void iscsi_negotiation_offer(struct iscsi_negotiation *n,
			     struct iscsi_text_out *out)
{
	for (size_t i = 0; i < ISCSI_KEY_COUNT; i++)
		if (should_offer(n, &iscsi_keys[i]))
			offer_key(n, &iscsi_keys[i], out);
}

void iscsi_negotiation_declare(struct iscsi_negotiation *n,
			       enum iscsi_key_id id, struct iscsi_text_out *out)
{
	const struct iscsi_key *k = &iscsi_keys[id];
	uint32_t v = want_of(n, k);

	if (id == ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH) {
		v = n->want.max_recv_dsl;
		n->result.max_recv_dsl = v;
	}
	if (k->kind == ISCSI_KEY_DECLARED_BOOL) /* our own property */
		set_result(n, k, v);
	value_put(k, v, out);
	n->offered |= key_bit(k);
}

/* [RFC 7145: 3.3 #10, 5.1 #9, 6.2 #2-3] */
/* [RFC 7143: 6.2 #15-16, 13.14 #1, 13.19 #2] */
void iscsi_negotiation_finish(struct iscsi_negotiation *n)
{
	struct iscsi_params *p = &n->result;

	p->first_burst_length = MIN(p->first_burst_length, p->max_burst_length);
	if (p->error_recovery_level && p->data_sequence_in_order)
		p->max_outstanding_r2t = 1; /* §13.19 */
	if (!p->rdma_extensions)
		return;
	p->header_digest = p->data_digest = false;
	p->max_recv_dsl = n->role == ISCSI_TARGET ? p->target_recv_dsl
						  : p->initiator_recv_dsl;
	p->max_send_dsl = n->role == ISCSI_TARGET ? p->initiator_recv_dsl
						  : p->target_recv_dsl;
}
