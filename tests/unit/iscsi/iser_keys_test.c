/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_keys_test.c: the keys of RFC 7145 §6, their effect on other keys, and in
 * which stage and by which role they may be sent. */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "iscsi/keys.h"
#include "iscsi/text.h"

static struct iscsi_negotiation n;
static char text[2048];
static struct iscsi_text_out out;

static void begin(enum iscsi_role role, bool rdma)
{
	struct iscsi_params want;

	iscsi_params_defaults(&want);
	want.rdma_extensions = rdma;
	want.target_recv_dsl = 8192;
	want.initiator_recv_dsl = 4096;
	want.initial_r2t = false;
	iscsi_negotiation_init(&n, role, &want);
	n.header_digests = n.data_digests =
		ISCSI_DIGEST_NONE | ISCSI_DIGEST_CRC;
	n.prefer_digests = true;
	memset(text, 0, sizeof(text));
	out = (struct iscsi_text_out){ .buf = text, .max = sizeof(text) };
}

static int say(const char *key, const char *value)
{
	return iscsi_negotiation_key(&n, ISCSI_KEY_OPERATIONAL, key, value,
				     &out);
}

static bool said(const char *pair)
{
	for (size_t at = 0; at < out.len; at += strlen(text + at) + 1)
		if (strcmp(text + at, pair) == 0)
			return true;
	return false;
}

/* [RFC 7145: 3.3 #2, 5.1 #2-3, 6.3 #1-2 #6] */
static void test_rdma_extensions_is_and_rfc7145_6_3(void **state)
{
	static const struct {
		bool want;
		const char *offer, *answer;
	} rows[] = {
		{ true, "Yes", "RDMAExtensions=Yes" },
		{ true, "No", "RDMAExtensions=No" },
		{ false, "Yes", "RDMAExtensions=No" },
		{ false, "No", "RDMAExtensions=No" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(ISCSI_TARGET, rows[i].want);
		assert_int_equal(say("RDMAExtensions", rows[i].offer), 0);
		assert_true(said(rows[i].answer));
		iscsi_negotiation_finish(&n);
		assert_int_equal(n.result.rdma_extensions, i == 0);
	}
}

/* [RFC 7145: 5.1 #9] */
static void test_digests_are_off_rfc7145_6_1(void **state)
{
	(void)state;
	begin(ISCSI_TARGET, true);
	assert_int_equal(say("RDMAExtensions", "Yes"), 0);
	assert_int_equal(say("HeaderDigest", "CRC32C,None"), 0);
	assert_int_equal(say("DataDigest", "CRC32C,None"), 0);
	assert_true(said("HeaderDigest=None"));
	assert_true(said("DataDigest=None"));
	iscsi_negotiation_finish(&n);
	assert_false(n.result.header_digest || n.result.data_digest);
	/* sent before RDMAExtensions: digests are off, whatever the answer was */
	begin(ISCSI_TARGET, true);
	assert_int_equal(say("DataDigest", "CRC32C,None"), 0);
	assert_int_equal(say("RDMAExtensions", "Yes"), 0);
	iscsi_negotiation_finish(&n);
	assert_false(n.result.data_digest);
	/* and with RDMAExtensions=No digests work as in plain iSCSI */
	begin(ISCSI_TARGET, true);
	assert_int_equal(say("RDMAExtensions", "No"), 0);
	assert_int_equal(say("DataDigest", "CRC32C,None"), 0);
	iscsi_negotiation_finish(&n);
	assert_true(n.result.data_digest);
}

/* [RFC 7145: 3.3 #10, 6.2 #2-3] */
static void test_recv_dsl_of_both_sides_rfc7145_6_2(void **state)
{
	(void)state;
	begin(ISCSI_TARGET, true);
	say("RDMAExtensions", "Yes");
	say("MaxRecvDataSegmentLength", "65536"); /* has no effect */
	say("TargetRecvDataSegmentLength", "16384");
	say("InitiatorRecvDataSegmentLength", "1024");
	assert_true(said("TargetRecvDataSegmentLength=8192"));
	assert_true(said("InitiatorRecvDataSegmentLength=1024"));
	iscsi_negotiation_finish(&n);
	assert_int_equal(n.result.max_recv_dsl, 8192);
	assert_int_equal(n.result.max_send_dsl, 1024);
	begin(ISCSI_INITIATOR, true);
	iscsi_negotiation_offer(&n, &out);
	assert_true(said("RDMAExtensions=Yes"));
	assert_int_equal(say("RDMAExtensions", "Yes"), 0);
	assert_int_equal(say("TargetRecvDataSegmentLength", "512"), 0);
	assert_int_equal(say("InitiatorRecvDataSegmentLength", "4096"), 0);
	iscsi_negotiation_finish(&n);
	assert_int_equal(n.result.max_recv_dsl, 4096);
	assert_int_equal(n.result.max_send_dsl, 512);
}

/* Declared again in full feature phase (RFC 7143 §13.12): no effect under iSER. */
/* [RFC 7145: 6.2 #1] */
static void test_max_recv_dsl_in_full_feature_rfc7145_6_2(void **state)
{
	(void)state;
	for (int rdma = 0; rdma < 2; rdma++) {
		begin(ISCSI_TARGET, rdma);
		n.result.rdma_extensions = rdma;
		n.result.max_send_dsl = 1024;
		assert_int_equal(
			iscsi_negotiation_key(&n, ISCSI_KEY_FFP,
					      "MaxRecvDataSegmentLength",
					      "65536", &out),
			0);
		assert_int_equal(n.result.max_send_dsl, rdma ? 1024 : 65536);
	}
}

/* An answer above the offer is invalid. */
/* [RFC 7145: 5.1 #4] */
static void test_answers_keep_to_the_rule(void **state)
{
	(void)state;
	begin(ISCSI_INITIATOR, true);
	iscsi_negotiation_offer(&n, &out);
	assert_int_equal(say("TargetRecvDataSegmentLength", "16384"),
			 ERR_NEGOTIATION);
	begin(ISCSI_INITIATOR, true);
	iscsi_negotiation_offer(&n, &out);
	/* a target that does not know RDMAExtensions: the login goes on as
	 * iSCSI */
	assert_int_equal(say("RDMAExtensions", "NotUnderstood"), 0);
	assert_int_equal(say("TargetRecvDataSegmentLength", "Irrelevant"), 0);
	iscsi_negotiation_finish(&n);
	assert_false(n.result.rdma_extensions);
}

/* [RFC 7145: 5.1 #5] */
static void test_no_rdma_in_discovery_rfc7145_5_1(void **state)
{
	(void)state;
	begin(ISCSI_TARGET, true);
	n.discovery = true;
	assert_int_equal(say("RDMAExtensions", "Yes"), 0);
	assert_true(said("RDMAExtensions=Irrelevant"));
	iscsi_negotiation_finish(&n);
	assert_false(n.result.rdma_extensions);
	begin(ISCSI_INITIATOR, true);
	n.discovery = true;
	iscsi_negotiation_offer(&n, &out);
	assert_false(said("RDMAExtensions=Yes"));
	assert_false(said("RDMAExtensions=No"));
}

/* [RFC 7145: 5.1 #8] */
static void test_only_on_the_leading_connection_rfc7145_5_1(void **state)
{
	(void)state;
	begin(ISCSI_INITIATOR, true);
	n.leading = false;
	iscsi_negotiation_offer(&n, &out);
	assert_false(said("RDMAExtensions=Yes"));
}

/* RFC 7143 §6.3: each key is allowed in certain stages only. */
static void test_keys_in_the_wrong_stage(void **state)
{
	static const char *const keys[][2] = {
		{ "RDMAExtensions", "Yes" },
		{ "TargetRecvDataSegmentLength", "8192" },
		{ "InitiatorRecvDataSegmentLength", "8192" },
		{ "MaxOutstandingUnexpectedPDUs", "4" },
		{ "MaxAHSLength", "256" },
		{ "TaggedBufferForSolicitedDataOnly", "Yes" },
		{ "iSERHelloRequired", "Yes" },
	};
	static const unsigned stages[] = { ISCSI_KEY_SECURITY, ISCSI_KEY_FFP };

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		for (size_t k = 0; k < 2; k++) {
			begin(ISCSI_TARGET, true);
			assert_int_equal(
				iscsi_negotiation_key(&n, stages[k], keys[i][0],
						      keys[i][1], &out),
				ERR_PROTOCOL);
			assert_non_null(strstr(n.why, "RFC 7143 §6.3"));
			assert_non_null(strstr(n.why, keys[i][0]));
		}
	begin(ISCSI_TARGET, true);
	assert_int_equal(say("RDMAExtensions", "Yes"), 0);
	assert_int_equal(say("RDMAExtensions", "Yes"), ERR_PROTOCOL);
}

/* [RFC 7145: 3.3 #8] */
static void test_declared_keys_rfc7145_6_7_to_6_10(void **state)
{
	(void)state;
	begin(ISCSI_TARGET, true);
	assert_int_equal(n.result.max_ahs_length, 256);
	assert_int_equal(n.result.max_outstanding_unexpected_pdus, 0);
	say("RDMAExtensions", "Yes");
	out.len = 0;
	assert_int_equal(say("MaxOutstandingUnexpectedPDUs", "2"), 0);
	assert_int_equal(say("MaxAHSLength", "0"), 0);
	assert_int_equal(say("TaggedBufferForSolicitedDataOnly", "Yes"), 0);
	assert_int_equal(say("iSERHelloRequired", "Yes"), 0);
	assert_int_equal(out.len, 0); /* these keys have no answer */
	assert_int_equal(n.result.max_outstanding_unexpected_pdus, 2);
	assert_int_equal(n.result.max_ahs_length, 0);
	assert_true(n.result.tagged_buffer_for_solicited_data_only);
	assert_true(n.result.iser_hello_required);
	/* 1 is not a valid value; only the initiator sends the last two keys */
	begin(ISCSI_TARGET, true);
	assert_int_equal(say("MaxOutstandingUnexpectedPDUs", "1"),
			 ERR_NEGOTIATION);
	begin(ISCSI_INITIATOR, true);
	assert_int_equal(say("iSERHelloRequired", "Yes"), ERR_PROTOCOL);
	assert_int_equal(say("TaggedBufferForSolicitedDataOnly", "No"),
			 ERR_PROTOCOL);
}

/* An initiator always declares which reading of §6.9 it follows. */
static void test_tagged_buffer_is_always_declared_rfc7145_6_9(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin(ISCSI_INITIATOR, true);
		n.want.tagged_buffer_for_solicited_data_only = i;
		iscsi_negotiation_offer(&n, &out);
		assert_true(said(i ? "TaggedBufferForSolicitedDataOnly=Yes"
				   : "TaggedBufferForSolicitedDataOnly=No"));
		assert_int_equal(say("RDMAExtensions", "Yes"), 0);
		iscsi_negotiation_finish(&n);
		assert_int_equal(n.result.tagged_buffer_for_solicited_data_only,
				 i);
		assert_true(iscsi_params_declared(&n.result,
						  ISCSI_K_TAGGED_BUFFER));
		assert_false(
			iscsi_params_refused(&n.result, ISCSI_K_TAGGED_BUFFER));
	}
	/* not if RDMA mode is not possible */
	begin(ISCSI_INITIATOR, false);
	iscsi_negotiation_offer(&n, &out);
	assert_false(said("TaggedBufferForSolicitedDataOnly=No"));
}

/* A key that the target does not support counts as not declared. */
static void test_tagged_buffer_is_not_understood_rfc7145_6_9(void **state)
{
	static const char *const answers[] = { "NotUnderstood", "Reject",
					       "Irrelevant" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(ISCSI_INITIATOR, true);
		n.want.tagged_buffer_for_solicited_data_only = true;
		iscsi_negotiation_offer(&n, &out);
		assert_int_equal(
			say("TaggedBufferForSolicitedDataOnly", answers[i]), 0);
		iscsi_negotiation_finish(&n);
		assert_false(n.result.tagged_buffer_for_solicited_data_only);
		assert_false(iscsi_params_declared(&n.result,
						   ISCSI_K_TAGGED_BUFFER));
		assert_true(
			iscsi_params_refused(&n.result, ISCSI_K_TAGGED_BUFFER));
	}
}

/* At the target no key, Yes and No differ, for each key of §6. */
static void test_silence_is_not_a_declaration_rfc7145_6(void **state)
{
	static const struct {
		enum iscsi_key_id id;
		const char *value;
	} rows[] = {
		{ ISCSI_K_RDMA_EXTENSIONS, "Yes" },
		{ ISCSI_K_RDMA_EXTENSIONS, "No" },
		{ ISCSI_K_TARGET_RECV_DSL, "8192" },
		{ ISCSI_K_INITIATOR_RECV_DSL, "512" },
		{ ISCSI_K_MAX_OUTSTANDING_UNEXPECTED_PDUS, "0" },
		{ ISCSI_K_MAX_AHS_LENGTH, "256" },
		{ ISCSI_K_TAGGED_BUFFER, "No" },
		{ ISCSI_K_TAGGED_BUFFER, "Yes" },
		{ ISCSI_K_HELLO_REQUIRED, "No" },
		{ ISCSI_K_HELLO_REQUIRED, "Yes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(ISCSI_TARGET, true);
		assert_false(iscsi_params_declared(&n.result, rows[i].id));
		assert_int_equal(
			say(iscsi_keys[rows[i].id].name, rows[i].value), 0);
		assert_true(iscsi_params_declared(&n.result, rows[i].id));
		/* without RDMA mode the key has no effect (§6.7 ff.) */
		if (rows[i].id == ISCSI_K_RDMA_EXTENSIONS)
			continue;
		begin(ISCSI_TARGET, false);
		assert_int_equal(
			say(iscsi_keys[rows[i].id].name, rows[i].value), 0);
		assert_false(iscsi_params_declared(&n.result, rows[i].id));
	}
	/* MaxRecvDataSegmentLength is ignored (§6.2) */
	begin(ISCSI_TARGET, true);
	say("RDMAExtensions", "Yes");
	say("MaxRecvDataSegmentLength", "65536");
	assert_false(iscsi_params_declared(
		&n.result, ISCSI_K_MAX_RECV_DATA_SEGMENT_LENGTH));
}

/* [RFC 7143: 13.25 #1] */
static void test_markers_are_off_rfc7145_6_6(void **state)
{
	(void)state;
	begin(ISCSI_TARGET, true);
	say("RDMAExtensions", "Yes");
	assert_int_equal(say("OFMarker", "Yes"), 0);
	assert_int_equal(say("IFMarker", "Yes"), 0);
	assert_true(said("OFMarker=No"));
	assert_true(said("IFMarker=No"));
}

/* Without RDMA mode the keys are understood, and irrelevant. */
/* [RFC 7145: 3.3 #9] */
static void test_keys_are_understood_rfc7145_3_3(void **state)
{
	(void)state;
	begin(ISCSI_TARGET, false);
	assert_int_equal(say("RDMAExtensions", "Yes"), 0);
	assert_int_equal(say("TargetRecvDataSegmentLength", "8192"), 0);
	assert_int_equal(say("InitiatorRecvDataSegmentLength", "8192"), 0);
	assert_int_equal(say("MaxOutstandingUnexpectedPDUs", "4"), 0);
	assert_int_equal(say("MaxAHSLength", "256"), 0);
	assert_true(said("RDMAExtensions=No"));
	assert_true(said("TargetRecvDataSegmentLength=Irrelevant"));
	for (size_t at = 0; at < out.len; at += strlen(text + at) + 1)
		assert_null(strstr(text + at, "NotUnderstood"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rdma_extensions_is_and_rfc7145_6_3),
		cmocka_unit_test(test_digests_are_off_rfc7145_6_1),
		cmocka_unit_test(test_recv_dsl_of_both_sides_rfc7145_6_2),
		cmocka_unit_test(test_max_recv_dsl_in_full_feature_rfc7145_6_2),
		cmocka_unit_test(test_answers_keep_to_the_rule),
		cmocka_unit_test(test_no_rdma_in_discovery_rfc7145_5_1),
		cmocka_unit_test(
			test_only_on_the_leading_connection_rfc7145_5_1),
		cmocka_unit_test(test_keys_in_the_wrong_stage),
		cmocka_unit_test(test_declared_keys_rfc7145_6_7_to_6_10),
		cmocka_unit_test(
			test_tagged_buffer_is_always_declared_rfc7145_6_9),
		cmocka_unit_test(
			test_tagged_buffer_is_not_understood_rfc7145_6_9),
		cmocka_unit_test(test_silence_is_not_a_declaration_rfc7145_6),
		cmocka_unit_test(test_markers_are_off_rfc7145_6_6),
		cmocka_unit_test(test_keys_are_understood_rfc7145_3_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
