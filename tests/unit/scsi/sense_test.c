/* SPDX-License-Identifier: BSD-2-Clause */
/* sense_test.c: sense data in both formats, to the byte (SPC-4 §4.5). */
#include "scsi/sense.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

#define BUILT_MAX 60 /* more than SCSI_SENSE_MAX */

struct row {
	struct scsi_sense s;
	const char *fixed, *descriptor; /* in hexadecimal */
};

static const struct row rows[] = {
	{ { .key = SENSE_NO_SENSE },
	  "70 00 00 00 00 00 00 0a 00 00 00 00 00 00 00 00 00 00",
	  "72 00 00 00 00 00 00 00" },
	{ { .key = SENSE_UNIT_ATTENTION, .asc = 0x2a09, .deferred = true },
	  "71 00 06 00 00 00 00 0a 00 00 00 00 2a 09 00 00 00 00",
	  "73 06 2a 09 00 00 00 00" },
	{ { .key = SENSE_MEDIUM_ERROR,
	    .asc = 0x1100,
	    .has_info = true,
	    .info = 0x01020304 },
	  "f0 00 03 01 02 03 04 0a 00 00 00 00 11 00 00 00 00 00",
	  "72 03 11 00 00 00 00 0c 00 0a 80 00 00 00 00 00 01 02 03 04" },
	/* 32 bits are all that the fixed format has room for (§4.5.3) */
	{ { .key = SENSE_MEDIUM_ERROR,
	    .asc = 0x1100,
	    .has_info = true,
	    .info = UINT32_MAX },
	  "f0 00 03 ff ff ff ff 0a 00 00 00 00 11 00 00 00 00 00",
	  "72 03 11 00 00 00 00 0c 00 0a 80 00 00 00 00 00 ff ff ff ff" },
	{ { .key = SENSE_MEDIUM_ERROR,
	    .asc = 0x1100,
	    .has_info = true,
	    .info = 1ull << 32 },
	  "70 00 03 00 00 00 00 0a 00 00 00 00 11 00 00 00 00 00",
	  "72 03 11 00 00 00 00 0c 00 0a 80 00 00 00 00 01 00 00 00 00" },
	{ { .key = SENSE_ILLEGAL_REQUEST,
	    .asc = 0x2400,
	    .has_field = true,
	    .in_cdb = true,
	    .has_bit = true,
	    .bit = 5,
	    .field = 0x0102 },
	  "70 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 cd 01 02",
	  "72 05 24 00 00 00 00 08 02 06 00 00 cd 01 02 00" },
	{ { .key = SENSE_ILLEGAL_REQUEST,
	    .asc = 0x2600,
	    .has_field = true,
	    .field = 7 },
	  "70 00 05 00 00 00 00 0a 00 00 00 00 26 00 00 80 00 07",
	  "72 05 26 00 00 00 00 08 02 06 00 00 80 00 07 00" },
	{ { .key = SENSE_NOT_READY,
	    .asc = 0x0404,
	    .has_progress = true,
	    .progress = 0x8001 },
	  "70 00 02 00 00 00 00 0a 00 00 00 00 04 04 00 80 80 01",
	  "72 02 04 04 00 00 00 08 02 06 00 00 80 80 01 00" },
	{ { .key = SENSE_COPY_ABORTED,
	    .asc = 0x0d02,
	    .has_info = true,
	    .info = 9,
	    .has_segment = true,
	    .segment = 0x0304,
	    .has_field = true,
	    .field = 0x20 },
	  "f0 00 0a 00 00 00 09 0a 00 00 03 04 0d 02 00 80 00 20",
	  "72 0a 0d 02 00 00 00 20 00 0a 80 00 00 00 00 00 00 00 00 09 "
	  "01 0a 00 00 00 00 03 04 00 00 00 00 02 06 00 00 80 00 20 00" },
};

static size_t bytes_of(const char *hex, uint8_t *p)
{
	size_t n = 0;
	unsigned v;

	for (; sscanf(hex, "%2x", &v) == 1; hex += hex[2] ? 3 : 2)
		p[n++] = (uint8_t)v;
	return n;
}

static void assert_same(const struct scsi_sense *a, const struct scsi_sense *b)
{
	assert_int_equal(a->key, b->key);
	assert_int_equal(a->asc, b->asc);
	assert_int_equal(a->deferred, b->deferred);
	assert_int_equal(a->has_info, b->has_info);
	assert_true(!a->has_info || a->info == b->info);
	assert_int_equal(a->has_segment, b->has_segment);
	assert_int_equal(a->segment, b->segment);
	assert_int_equal(a->has_field, b->has_field);
	assert_int_equal(a->in_cdb, b->in_cdb);
	assert_int_equal(a->has_bit, b->has_bit);
	assert_int_equal(a->bit, b->bit);
	assert_int_equal(a->field, b->field);
	assert_int_equal(a->has_progress, b->has_progress);
	assert_int_equal(a->progress, b->progress);
}

static void check_row(const struct row *r, bool descriptor)
{
	uint8_t p[BUILT_MAX], want[BUILT_MAX];
	size_t n = bytes_of(descriptor ? r->descriptor : r->fixed, want);
	struct scsi_sense s = r->s, read;

	memset(p, 0xee, sizeof(p));
	assert_int_equal(scsi_sense_build(&s, descriptor, p), n);
	assert_memory_equal(p, want, n);
	assert_int_equal(p[SCSI_SENSE_MAX], 0xee);
	assert_int_equal(scsi_sense_parse(&read, p, n), 0);
	if (!descriptor) {
		s.has_info = s.has_info && s.info <= UINT32_MAX;
		/* it has the field, whatever is in it */
		s.has_segment = s.key == SENSE_COPY_ABORTED;
	}
	assert_same(&read, &s);
}

static void test_build_and_parse_spc4_4_5(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		check_row(&rows[i], false);
		check_row(&rows[i], true);
	}
}

static void test_key_has_four_bits(void **state)
{
	const struct scsi_sense s = { .key = 0x1f };
	uint8_t p[SCSI_SENSE_MAX];

	(void)state;
	scsi_sense_build(&s, false, p);
	assert_int_equal(p[2], 0x0f);
	scsi_sense_build(&s, true, p);
	assert_int_equal(p[1], 0x0f);
}

static void test_response_codes_spc4_4_5_1(void **state)
{
	(void)state;
	for (unsigned code = 0; code < 256; code++) {
		uint8_t p[18] = { (uint8_t)code, 0x03, 0x05 };
		unsigned format = code & 0x7f;
		bool known = format >= 0x70 && format <= 0x73;
		struct scsi_sense s;

		assert_int_equal(scsi_sense_parse(&s, p, 18),
				 known ? 0 : ERR_FORMAT);
		if (!known)
			continue;
		assert_int_equal(s.deferred, format & 1);
		assert_int_equal(s.key, format < 0x72 ? 5 : 3);
		assert_int_equal(s.has_info, format < 0x72 && code >= 0x80);
	}
}

/* What the data are long enough for is read, no more. */
static void test_fixed_format_cut(void **state)
{
	uint8_t p[18];

	(void)state;
	bytes_of("f0 00 0a 01 02 03 04 0a 00 00 03 04 0d 02 00 c8 01 02", p);
	for (size_t n = 0; n <= 18; n++) {
		struct scsi_sense s;

		assert_int_equal(scsi_sense_parse(&s, p, n),
				 n < 8 ? ERR_TRUNCATED : 0);
		if (n < 8)
			continue;
		assert_int_equal(s.key, SENSE_COPY_ABORTED);
		assert_int_equal(s.info, 0x01020304);
		assert_int_equal(s.has_segment, n >= 12);
		assert_int_equal(s.segment, n >= 12 ? 0x0304 : 0);
		assert_int_equal(s.asc, n >= 14 ? 0x0d02 : 0);
		assert_int_equal(s.has_field, n >= 18);
		assert_int_equal(s.field, n >= 18 ? 0x0102 : 0);
	}
}

/* A descriptor counts if it is there whole, by both lengths. */
static void test_descriptor_format_cut(void **state)
{
	uint8_t p[BUILT_MAX];
	size_t len = bytes_of(rows[ARRAY_LEN(rows) - 1].descriptor, p);

	(void)state;
	for (size_t n = 0; n <= len; n++)
		for (unsigned told = 0; told <= len; told++) {
			size_t end = MIN(n, (size_t)8 + told);
			struct scsi_sense s;

			p[7] = (uint8_t)told;
			assert_int_equal(scsi_sense_parse(&s, p, n),
					 n < 8 ? ERR_TRUNCATED : 0);
			if (n < 8)
				continue;
			assert_int_equal(s.has_info, end >= 20);
			assert_int_equal(s.info, end >= 20 ? 9 : 0);
			assert_int_equal(s.has_segment, end >= 32);
			assert_int_equal(s.has_field, end >= 40);
		}
}

/* Of other lengths, types and sense keys they say something else. */
static void test_descriptors_of_another_kind(void **state)
{
	static const struct {
		const char *hex;
		bool info, segment, field;
	} cases[] = {
		{ "72 0a 0d 02 00 00 00 0b 00 09 80 00 00 00 00 00 00 00 09",
		  false, false, false },
		{ "72 0a 0d 02 00 00 00 0c 00 0a 7f 00 00 00 00 00 00 00 00 09",
		  false, false, false },
		{ "72 0a 0d 02 00 00 00 0c 03 0a 80 00 00 00 00 00 00 00 00 09",
		  false, false, false },
		{ "72 0a 0d 02 00 00 00 0c 01 0a 80 00 00 00 00 00 00 00 00 09",
		  false, true, false },
		{ "72 05 0d 02 00 00 00 0c 01 0a 80 00 00 00 00 00 00 00 00 09",
		  false, false, false },
		{ "72 0a 0d 02 00 00 00 0b 01 09 80 00 00 00 00 00 00 00 09",
		  false, false, false },
		{ "72 05 24 00 00 00 00 08 02 06 00 00 c8 00 01 00", false,
		  false, true },
		{ "72 05 24 00 00 00 00 07 02 05 00 00 c8 00 01", false, false,
		  false },
		{ "72 05 24 00 00 00 00 08 04 06 00 00 c8 00 01 00", false,
		  false, false },
		{ "72 05 24 00 00 00 00 08 02 06 00 00 7f 00 01 00", false,
		  false, false },
		{ "72 06 24 00 00 00 00 08 02 06 00 00 c8 00 01 00", false,
		  false, false },
		/* after one that says nothing to us */
		{ "72 05 24 00 00 00 00 0b 09 01 00 02 06 00 00 c8 00 01 00",
		  false, false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t p[BUILT_MAX];
		struct scsi_sense s;

		assert_int_equal(
			scsi_sense_parse(&s, p, bytes_of(cases[i].hex, p)), 0);
		assert_int_equal(s.has_info, cases[i].info);
		assert_int_equal(s.has_segment, cases[i].segment);
		assert_int_equal(s.has_field, cases[i].field);
		assert_false(s.has_progress);
	}
}

static void test_texts(void **state)
{
	static const struct {
		uint8_t status;
		const char *text;
	} statuses[] = {
		{ 0x00, "GOOD" },
		{ 0x02, "CHECK CONDITION" },
		{ 0x04, "CONDITION MET" },
		{ 0x08, "BUSY" },
		{ 0x18, "RESERVATION CONFLICT" },
		{ 0x28, "TASK SET FULL" },
		{ 0x30, "ACA ACTIVE" },
		{ 0x40, "TASK ABORTED" },
	};
	unsigned known = 0;

	(void)state;
	for (unsigned s = 0; s < 256; s++) {
		const char *want = "unknown status";

		for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
			if (statuses[i].status == s)
				want = statuses[i].text;
		assert_string_equal(scsi_status_str((uint8_t)s), want);
	}
	assert_string_equal(scsi_sense_key_str(0x05), "illegal request");
	assert_string_equal(scsi_sense_key_str(0x0f), "completed");
	assert_string_equal(scsi_sense_key_str(0x15), "illegal request");
	for (unsigned asc = 0; asc < 65536; asc++)
		known += scsi_asc_str((uint16_t)asc) != NULL;
	assert_true(known > 50 && known < 200);
	assert_string_equal(scsi_asc_str(0x2400), "invalid field in CDB");
	assert_null(scsi_asc_str(0xffff));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_and_parse_spc4_4_5),
		cmocka_unit_test(test_key_has_four_bits),
		cmocka_unit_test(test_response_codes_spc4_4_5_1),
		cmocka_unit_test(test_fixed_format_cut),
		cmocka_unit_test(test_descriptor_format_cut),
		cmocka_unit_test(test_descriptors_of_another_kind),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
