/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bhs_test.c: the header of each PDU as bytes, field by field from the
 * figures of RFC 7143 §11; AHS; the window; text.
 */
#include "iscsi/bhs.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "iscsi/text.h"
#include "iscsi/window.h"

struct vector {
	const char *figure;
	uint8_t bytes[ISCSI_BHS_LEN];
	struct iscsi_pdu pdu;
};

/* clang-format off */
static const struct vector vectors[] = {
	{ "§11.3 SCSI Command",
	  { 0x41, 0xa1, 0x05, 0, 0, 0, 0x02, 0x00, 0, 1, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44,
	    0, 0, 0x10, 0, 0, 0, 0, 7, 0, 0, 0, 9,
	    0x2a, 0, 0, 0, 0, 8, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_SCSI_COMMAND, .immediate = true, .final = true, .dsl = 0x200, .lun = 0x0001000000000000ull,
	    .itt = 0x11223344, .ttt = ISCSI_RESERVED_TAG, .cmdsn = 7, .expstatsn = 9,
	    .cmd = { .write = true, .attr = 1, .priority = 5, .edtl = 4096, .cdb = { 0x2a, 0, 0, 0, 0, 8, 0, 0, 8 } } } },
	{ "§11.4 SCSI Response (status qualifier: RFC 7144 §5.2)",
	  { 0x21, 0x82, 0x00, 0x02, 0, 0, 0, 0x14, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
	    0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12,
	    0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 2, 0 },
	  { .op = ISCSI_SCSI_RESPONSE, .final = true, .dsl = 0x14, .itt = 5, .ttt = ISCSI_RESERVED_TAG,
	    .statsn = 10, .expcmdsn = 11, .maxcmdsn = 12,
	    .rsp = { .resid_flags = ISCSI_RESID_UNDERFLOW, .status = 2, .exp_datasn = 3, .resid = 512, .status_qualifier = 0x1234 } } },
	{ "§11.5 Task Management Function Request",
	  { 0x42, 0x81, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6,
	    0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_TMF_REQUEST, .immediate = true, .final = true, .lun = 0x0002000000000000ull, .itt = 6,
	    .ttt = ISCSI_RESERVED_TAG, .cmdsn = 7, .expstatsn = 9,
	    .tmf = { .function = ISCSI_TMF_ABORT_TASK, .rtt = 5, .ref_cmdsn = 4, .exp_datasn = 1 } } },
	{ "§11.6 Task Management Function Response; RFC 7144 §6.4.1",
	  { 0x22, 0x80, 0x05, 0, 0, 0, 0, 0, 0x16, 0x2a, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 6,
	    0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_TMF_RESPONSE, .final = true, .itt = 6, .ttt = ISCSI_RESERVED_TAG, .statsn = 10, .expcmdsn = 11,
	    .maxcmdsn = 12, .tmf_response = ISCSI_TMF_NOT_SUPPORTED, .tmf_info = { 0x16, 0x2a, 0x03 } } },
	{ "§11.7 SCSI Data-Out",
	  { 0x05, 0x80, 0, 0, 0, 0, 0x04, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
	    0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0,
	    0, 0, 0, 2, 0, 0, 0x20, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_DATA_OUT, .final = true, .dsl = 1024, .lun = 0x0001000000000000ull, .itt = 5, .ttt = 0xdeadbeef,
	    .expstatsn = 9, .data = { .datasn = 2, .offset = 0x2000 } } },
	{ "§11.7 SCSI Data-In",
	  { 0x25, 0xc5, 0, 0x00, 0, 0, 0x08, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
	    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12,
	    0, 0, 0, 1, 0, 0, 0x08, 0, 0, 0, 0, 7 },
	  { .op = ISCSI_DATA_IN, .final = true, .dsl = 2048, .lun = 0x0001000000000000ull, .itt = 5, .ttt = ISCSI_RESERVED_TAG,
	    .statsn = 10, .expcmdsn = 11, .maxcmdsn = 12,
	    .data = { .ack = true, .status_present = true, .resid_flags = ISCSI_RESID_OVERFLOW, .datasn = 1, .offset = 2048, .resid = 7 } } },
	{ "§11.8 Ready To Transfer",
	  { 0x31, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
	    0, 0, 0, 0x77, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12,
	    0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0x40, 0 },
	  { .op = ISCSI_R2T, .final = true, .lun = 0x0001000000000000ull, .itt = 5, .ttt = 0x77, .statsn = 10, .expcmdsn = 11,
	    .maxcmdsn = 12, .r2t = { .r2tsn = 2, .offset = 65536, .ddtl = 16384 } } },
	{ "§11.9 Asynchronous Message",
	  { 0x32, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
	    0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12,
	    1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0 },
	  { .op = ISCSI_ASYNC_MESSAGE, .final = true, .itt = ISCSI_RESERVED_TAG, .ttt = ISCSI_RESERVED_TAG, .statsn = 10,
	    .expcmdsn = 11, .maxcmdsn = 12, .async = { .event = ISCSI_ASYNC_LOGOUT, .param3 = 5 } } },
	{ "§11.10 Text Request",
	  { 0x44, 0x40, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8,
	    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_TEXT_REQUEST, .immediate = true, .cont = true, .dsl = 16, .itt = 8, .ttt = ISCSI_RESERVED_TAG,
	    .cmdsn = 7, .expstatsn = 9 } },
	{ "§11.11 Text Response",
	  { 0x24, 0x80, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8,
	    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_TEXT_RESPONSE, .final = true, .dsl = 16, .itt = 8, .ttt = ISCSI_RESERVED_TAG, .statsn = 10,
	    .expcmdsn = 11, .maxcmdsn = 12 } },
	{ "§11.12 Login Request",
	  { 0x43, 0x87, 0, 0, 0, 0, 0, 0x20, 0x80, 1, 2, 3, 4, 5, 0, 6, 0, 0, 0, 1,
	    0, 9, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_LOGIN_REQUEST, .immediate = true, .final = true, .dsl = 32, .itt = 1, .ttt = ISCSI_RESERVED_TAG,
	    .cmdsn = 7, .expstatsn = 9,
	    .login = { .transit = true, .csg = 1, .nsg = 3, .isid = { 0x80, 1, 2, 3, 4, 5 }, .tsih = 6, .cid = 9 } } },
	{ "§11.13 Login Response",
	  { 0x23, 0x00, 0, 0, 0, 0, 0, 0, 0x80, 1, 2, 3, 4, 5, 0, 6, 0, 0, 0, 1,
	    0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_LOGIN_RESPONSE, .itt = 1, .ttt = ISCSI_RESERVED_TAG, .statsn = 10, .expcmdsn = 11, .maxcmdsn = 12,
	    .login = { .isid = { 0x80, 1, 2, 3, 4, 5 }, .tsih = 6, .status_class = 2, .status_detail = 1 } } },
	{ "§11.14 Logout Request",
	  { 0x46, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	    0, 3, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_LOGOUT_REQUEST, .immediate = true, .final = true, .itt = 2, .ttt = ISCSI_RESERVED_TAG, .cmdsn = 7,
	    .expstatsn = 9, .logout = { .reason = ISCSI_LOGOUT_CONNECTION, .cid = 3 } } },
	{ "§11.15 Logout Response",
	  { 0x26, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	    0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 0, 0, 2, 0, 20, 0, 0, 0, 0 },
	  { .op = ISCSI_LOGOUT_RESPONSE, .final = true, .itt = 2, .ttt = ISCSI_RESERVED_TAG, .statsn = 10, .expcmdsn = 11,
	    .maxcmdsn = 12, .logout = { .time2wait = 2, .time2retain = 20 } } },
	{ "§11.16 SNACK Request",
	  { 0x10, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1 },
	  { .op = ISCSI_SNACK_REQUEST, .final = true, .itt = 2, .ttt = ISCSI_RESERVED_TAG, .expstatsn = 9,
	    .snack = { .type = 1, .begrun = 4, .runlen = 1 } } },
	{ "§11.17 Reject",
	  { 0x3f, 0x80, 0x04, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
	    0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_REJECT, .final = true, .dsl = 48, .itt = ISCSI_RESERVED_TAG, .ttt = ISCSI_RESERVED_TAG, .statsn = 10,
	    .expcmdsn = 11, .maxcmdsn = 12, .reject = { .reason = ISCSI_REJECT_PROTOCOL, .datasn = 6 } } },
	{ "§11.18 NOP-Out",
	  { 0x40, 0x80, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3,
	    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_NOP_OUT, .immediate = true, .final = true, .dsl = 4, .itt = 3, .ttt = ISCSI_RESERVED_TAG, .cmdsn = 7,
	    .expstatsn = 9 } },
	{ "§11.19 NOP-In",
	  { 0x20, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
	    0, 0, 0, 0x55, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	  { .op = ISCSI_NOP_IN, .final = true, .lun = 0x0001000000000000ull, .itt = ISCSI_RESERVED_TAG, .ttt = 0x55,
	    .statsn = 10, .expcmdsn = 11, .maxcmdsn = 12 } },
};
/* clang-format on */

/* [RFC 7143: 11 #1, 11.2.1.6 #1] */
static void test_encode_each_pdu_rfc7143_11(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		uint8_t b[ISCSI_BHS_LEN];

		iscsi_bhs_encode(&vectors[i].pdu, b);
		if (memcmp(b, vectors[i].bytes, sizeof(b)))
			print_error("%s\n", vectors[i].figure);
		assert_memory_equal(b, vectors[i].bytes, sizeof(b));
	}
}

static void test_decode_each_pdu_rfc7143_11(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		const struct iscsi_pdu *want = &vectors[i].pdu;
		struct iscsi_pdu got;
		uint8_t b[ISCSI_BHS_LEN];

		assert_int_equal(iscsi_bhs_decode(&got, vectors[i].bytes), 0);
		assert_int_equal(got.op, want->op);
		assert_int_equal(got.itt, want->itt);
		assert_int_equal(got.ttt, want->ttt);
		assert_int_equal(got.dsl, want->dsl);
		assert_int_equal(got.lun, want->lun);
		assert_int_equal(got.immediate, want->immediate);
		/* the other fields: by the encoder, which is tested above */
		iscsi_bhs_encode(&got, b);
		assert_memory_equal(b, vectors[i].bytes, sizeof(b));
	}
}

static void test_decode_one_bit_disturbs_no_other_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
		for (unsigned bit = 0; bit < 8 * ISCSI_BHS_LEN; bit++) {
			uint8_t in[ISCSI_BHS_LEN], out[ISCSI_BHS_LEN];
			struct iscsi_pdu pdu;

			memcpy(in, vectors[i].bytes, sizeof(in));
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (iscsi_bhs_decode(&pdu, in))
				continue; /* an undefined opcode */
			iscsi_bhs_encode(&pdu, out);
			/* the decoder keeps the bits of fields and clears
			 * reserved ones */
			for (unsigned k = 1; k < ISCSI_BHS_LEN; k++) {
				uint8_t lost = in[k] & (uint8_t)~out[k];

				if (bit >= 8 && k != bit / 8 && bit / 8 != 0)
					assert_int_equal(lost, 0);
			}
		}
}

/* A PDU with any bit after byte 0 inverted is decoded, and a bit that is in no field
 * of the PDU changes nothing. */
/* [RFC 7143: 11 #2] */
static void test_reserved_bits_are_ignored_rfc7143_11(void **state)
{
	unsigned ignored = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
		for (unsigned bit = 8; bit < 8 * ISCSI_BHS_LEN; bit++) {
			uint8_t in[ISCSI_BHS_LEN], out[ISCSI_BHS_LEN];
			struct iscsi_pdu pdu;

			memcpy(in, vectors[i].bytes, sizeof(in));
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(iscsi_bhs_decode(&pdu, in), 0);
			iscsi_bhs_encode(&pdu, out);
			if (memcmp(out, in, sizeof(in)) == 0)
				continue; /* a field */
			/* byte 1, bit 0 of a PDU other than a Login: F */
			if (bit == 15)
				continue;
			assert_memory_equal(out, vectors[i].bytes, sizeof(out));
			ignored++;
		}
	assert_int_equal(ignored, 2055); /* that the figures leave out */
}

static void test_decode_unknown_opcode(void **state)
{
	uint8_t b[ISCSI_BHS_LEN] = { 0x5c, 0x80, 0, 0, 2, 0, 0, 8 };
	struct iscsi_pdu pdu;

	(void)state;
	put_be32(b + 16, 77);
	assert_int_equal(iscsi_bhs_decode(&pdu, b), ERR_OPCODE);
	assert_int_equal(pdu.op, 0x1c);
	assert_int_equal(pdu.itt, 77);
	assert_int_equal(pdu.dsl, 8);
	assert_int_equal(pdu.ahs_len, 8);
	assert_string_equal(iscsi_opcode_name(0x1c), "unknown opcode");
	assert_string_equal(iscsi_reject_text(0x09), "invalid PDU field");
	assert_string_equal(iscsi_reject_text(0x0c), "waiting for a Logout");
	for (unsigned reason = 0; reason < 256; reason++)
		assert_int_equal(!strcmp(iscsi_reject_text((uint8_t)reason),
					 "unassigned reason"),
				 reason < 2 || reason > 0x0c);
	assert_string_equal(iscsi_tmf_text(1), "no such task");
	assert_string_equal(iscsi_tmf_text(255), "function rejected");
	for (unsigned response = 0; response < 255; response++)
		assert_int_equal(!strcmp(iscsi_tmf_text((uint8_t)response),
					 "unassigned response"),
				 response > 7);
}

/* ---- AHS, §11.2.2 ---- */

static void test_ahs_round_trip_and_every_truncation(void **state)
{
	const uint8_t cdb[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	const struct iscsi_ahs in = { .ext_cdb = cdb,
				      .ext_cdb_len = 16,
				      .has_bidi = true,
				      .bidi_read_edtl = 0x01020304 };
	struct iscsi_ahs out;
	uint8_t b[64];
	int n = iscsi_ahs_encode(&in, b, sizeof(b));

	(void)state;
	assert_int_equal(n, 20 + 8);
	assert_int_equal(get_be16(b), 17); /* reserved byte and the CDB */
	assert_int_equal(iscsi_ahs_decode(&out, b, (size_t)n), 0);
	assert_int_equal(out.ext_cdb_len, 16);
	assert_memory_equal(out.ext_cdb, cdb, 16);
	assert_true(out.has_bidi);
	assert_int_equal(out.bidi_read_edtl, 0x01020304);
	for (int cut = 1; cut < n; cut++) {
		int err = iscsi_ahs_decode(&out, b, (size_t)cut);

		assert_int_equal(err, cut == 20 ? 0 : ERR_FORMAT);
	}
	for (size_t max = 0; max < 28; max++)
		assert_int_equal(iscsi_ahs_encode(&in, b, max), ERR_TOO_LONG);
}

static void test_ahs_bad_lengths(void **state)
{
	static const uint8_t twice[] = { 0, 5, 2, 0, 0, 0, 0, 1,
					 0, 5, 2, 0, 0, 0, 0, 1 };
	static const uint8_t wrong[] = { 0, 4, 2, 0, 0, 0, 0, 0 };
	static const uint8_t empty[] = { 0, 1, 1, 0 };
	static const uint8_t other[] = { 0, 1, 0x3f, 0 };
	struct iscsi_ahs a;

	(void)state;
	assert_int_equal(iscsi_ahs_decode(&a, twice, 16), ERR_FORMAT);
	assert_int_equal(iscsi_ahs_decode(&a, wrong, 8), ERR_FORMAT);
	assert_int_equal(iscsi_ahs_decode(&a, empty, 4), ERR_FORMAT);
	assert_int_equal(iscsi_ahs_decode(&a, other, 4), ERR_PROTOCOL);
	assert_int_equal(iscsi_ahs_decode(&a, NULL, 0), 0);
}

/* ---- §4.2.2.1 ---- */

/* [RFC 7143: 4.2.2.1 #9-10] */
static void test_target_window_over_the_wrap_rfc7143_4_2_2_1(void **state)
{
	struct iscsi_target_window w;

	(void)state;
	iscsi_target_window_init(&w, 0xfffffffe, 4);
	assert_int_equal(w.maxcmdsn, 1);
	assert_int_equal(iscsi_target_window_check(&w, 0xfffffffd),
			 ISCSI_CMDSN_IGNORE);
	assert_int_equal(iscsi_target_window_check(&w, 0xfffffffe),
			 ISCSI_CMDSN_EXPECTED);
	assert_int_equal(iscsi_target_window_check(&w, 1), ISCSI_CMDSN_AHEAD);
	assert_int_equal(iscsi_target_window_check(&w, 2), ISCSI_CMDSN_IGNORE);
	for (int i = 0; i < 4; i++)
		iscsi_target_window_take(&w);
	iscsi_target_window_update(&w, 4);
	/* closed: MaxCmdSN = ExpCmdSN - 1 */
	assert_int_equal(w.maxcmdsn, w.expcmdsn - 1);
	assert_int_equal(iscsi_target_window_check(&w, w.expcmdsn),
			 ISCSI_CMDSN_IGNORE);
	iscsi_target_window_update(&w, 3);
	assert_int_equal(w.maxcmdsn, w.expcmdsn);
	iscsi_target_window_update(&w, 4); /* never decreases */
	assert_int_equal(w.maxcmdsn, w.expcmdsn);
}

static void test_initiator_window_rfc7143_4_2_2_1(void **state)
{
	struct iscsi_initiator_window w;

	(void)state;
	iscsi_initiator_window_init(&w, 5);
	assert_true(iscsi_initiator_window_open(&w));
	w.cmdsn = 6;
	assert_false(iscsi_initiator_window_open(&w));
	assert_true(iscsi_initiator_window_update(&w, 6, 9));
	assert_true(iscsi_initiator_window_open(&w));
	/* MaxCmdSN below ExpCmdSN - 1: both ignored */
	assert_false(iscsi_initiator_window_update(&w, 100, 50));
	assert_int_equal(w.maxcmdsn, 9);
	assert_int_equal(w.expcmdsn, 6);
	assert_false(iscsi_initiator_window_update(&w, 5,
						   8)); /* an older response */
	assert_int_equal(w.maxcmdsn, 9);
	assert_int_equal(w.expcmdsn, 6);
}

/* ---- text ---- */

static void test_text_every_truncation(void **state)
{
	static const char text[] = "A=1\0Bc-d=\0\0\0X#y=a=b";
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;

	(void)state;
	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		struct iscsi_text_iter it = iscsi_text_iter(text, cut);
		int r, n = 0;

		while ((r = iscsi_text_next(&it, key, &value)) > 0)
			n++;
		assert_true(r == 0 || r == ERR_FORMAT);
		if (cut == sizeof(text)) {
			assert_int_equal(n, 3);
			assert_string_equal(key, "X#y");
			assert_string_equal(value, "a=b");
		}
	}
}

static void test_text_bad_names_rfc7143_6_1(void **state)
{
	static const char *const bad[] = { "=1",       "1a=2",	 "a b=1",
					   "noequals", "\x80=1", "a/b=1" };
	char key[ISCSI_KEY_NAME_MAX + 1], lengthy[80];
	struct iscsi_text_iter it;
	const char *value;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		it = iscsi_text_iter(bad[i], strlen(bad[i]) + 1);
		assert_int_equal(iscsi_text_next(&it, key, &value), ERR_FORMAT);
	}
	memset(lengthy, 'a', sizeof(lengthy));
	memcpy(lengthy + 63, "=1", 3);
	it = iscsi_text_iter(lengthy, 66);
	assert_int_equal(iscsi_text_next(&it, key, &value), 1);
	memcpy(lengthy + 63, "a=1", 4);
	it = iscsi_text_iter(lengthy, 67);
	assert_int_equal(iscsi_text_next(&it, key, &value), ERR_FORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encode_each_pdu_rfc7143_11),
		cmocka_unit_test(test_decode_each_pdu_rfc7143_11),
		cmocka_unit_test(test_decode_one_bit_disturbs_no_other_byte),
		cmocka_unit_test(test_reserved_bits_are_ignored_rfc7143_11),
		cmocka_unit_test(test_decode_unknown_opcode),
		cmocka_unit_test(test_ahs_round_trip_and_every_truncation),
		cmocka_unit_test(test_ahs_bad_lengths),
		cmocka_unit_test(
			test_target_window_over_the_wrap_rfc7143_4_2_2_1),
		cmocka_unit_test(test_initiator_window_rfc7143_4_2_2_1),
		cmocka_unit_test(test_text_every_truncation),
		cmocka_unit_test(test_text_bad_names_rfc7143_6_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
