/* SPDX-License-Identifier: BSD-2-Clause */
/* identity_test.c: designators, strong and weak ones, damaged pages, and whether two
 * answers are of one unit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "lib/identity.h"

/* VPD page 83h: NAA and T10 vendor ID of the unit, relative port 2, group 7. */
static const uint8_t
	page[] = {
		0,   0x83, 0,	48, /* header */
		1,   0x03, 0,	8,   0x50, 0x01, 0x40, 0x50, 0,
		0,   0,	   1, /* NAA */
		2,   0x01, 0,	12,  'A',  'C',	 'M',  'E',  ' ',
		' ', ' ',  ' ', 's', 'n',  '1',	 '2',  1,    0x94,
		0,   4,	   0,	0,   0,	   2, /* relative target port */
		1,   0x95, 0,	4,   0,	   0,	 0,    7, /* target port group */
	};

static void test_read(void **state)
{
	struct lib_identity id = { 0 };
	struct lib_port port;
	char text[80];

	(void)state;
	assert_true(lib_identity_read(&id, &port, page, sizeof(page)));
	assert_int_equal(id.len, 12 + 16);
	assert_int_equal(port.port, 2);
	assert_int_equal(port.group, 7);
	lib_identity_text(&id, text, sizeof(text));
	assert_string_equal(text, "naa.5001405000000001");
}

/* Each truncation and each wrong byte: no read beyond the end (the sanitizers
 * look), and never another name. */
static void test_damaged(void **state)
{
	struct lib_identity id = { 0 };
	struct lib_port port;
	char text[80];

	(void)state;
	for (size_t n = 0; n <= sizeof(page); n++) {
		uint8_t *p = malloc(n ? n : 1);

		memcpy(p, page, n);
		assert_int_equal(lib_identity_read(&id, &port, p, n), n >= 16);
		lib_identity_text(&id, text, sizeof(text));
		free(p);
	}
	for (size_t i = 0; i < sizeof(page) * 256; i++) {
		uint8_t *p = malloc(sizeof(page));

		memcpy(p, page, sizeof(page));
		p[i / 256] = (uint8_t)i;
		lib_identity_read(&id, &port, p, sizeof(page));
		assert_true(id.len <= sizeof(id.list));
		lib_identity_text(&id, text, 1 + i % sizeof(text));
		lib_identity_compare(&id, &id);
		free(p);
	}
	assert_false(
		lib_identity_read(&id, &port, (uint8_t[]){ 0, 0x80, 0, 0 }, 4));
}

/* A unit with one designator of n bytes, in hexadecimal digits or as text. */
static struct lib_identity with(uint8_t type, const char *value)
{
	uint8_t p[128] = { 0, 0x83 };
	struct lib_identity id = { 0 };
	struct lib_port port;
	size_t n = strlen(value);

	if (type == 0x1 || type == 0x8) {
		memcpy(p + 8, value, n);
	} else {
		n /= 2;
		for (size_t i = 0; i < n; i++) {
			unsigned v;

			assert_int_equal(sscanf(value + 2 * i, "%2x", &v), 1);
			p[8 + i] = (uint8_t)v;
		}
	}
	p[3] = (uint8_t)(4 + n);
	p[5] = type;
	p[7] = (uint8_t)n;
	assert_true(lib_identity_read(&id, &port, p, 8 + n));
	return id;
}

/* SPC-4 §7.8.6: which designators are unique worldwide. */
static void test_strong_spc4_7_8_6(void **state)
{
	static const struct {
		uint8_t type;
		const char *value;
		bool strong;
	} rows[] = {
		{ 3, "600140512345678901234567890abcde", true },  /* LIO */
		{ 3, "60000000000000000e00000000010001", false }, /* tgt */
		{ 3, "60014050000000000000000000000000", false },
		{ 3, "5000c50012345678", true },
		{ 3, "5000000000000001", false }, /* no company_id */
		{ 3, "20000024ff123456", true },
		{ 3, "2000000000123456", false },
		{ 3, "3d259ad8aafc807a", true },  /* iserd */
		{ 3, "3000000100000001", false }, /* a number and a LUN */
		{ 3, "6001405123456789", false }, /* too short */
		{ 3, "00", false },
		{ 2, "0050560012345678", true },
		{ 2, "0000000000000001", false },
		{ 0xa, "10000123456789abcdef0123456789abcdef", true },
		{ 0xa, "100000000000000000000000000000000000", false },
		{ 8, "naa.600140512345678901234567890abcde", true },
		{ 8, "iqn.2026-01.org.example:t,L,0x0000", false },
		{ 1, "IET     00010001", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct lib_identity a = with(rows[i].type, rows[i].value);

		assert_int_equal(lib_identity_is_strong(&a), rows[i].strong);
		assert_int_equal(lib_identity_compare(&a, &a),
				 rows[i].strong ? LIB_SAME : LIB_UNSURE);
	}
}

static void test_serial(void **state)
{
	static const char *const strong[] = { "dd259ad8aafc807a", "PX41-0071",
					      "S4EWNX0M700123" };
	static const char *const weak[] = {
		"",	    "beaf11",	"beaf1012", "00000000",	 "00010001",
		"12345678", "ABCDEFGH", "abc",	    "9012345678"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(strong); i++)
		assert_true(lib_serial_is_strong(strong[i]));
	for (size_t i = 0; i < ARRAY_LEN(weak); i++)
		assert_false(lib_serial_is_strong(weak[i]));
}

static void set_serial(struct lib_identity *id, const char *text)
{
	uint8_t p[64] = { 0, 0x80 };

	snprintf((char *)p + 4, sizeof(p) - 4, "  %s  ", text);
	p[3] = (uint8_t)strlen((char *)p + 4);
	lib_identity_serial(id, p, 4u + p[3]);
	assert_string_equal(id->serial, text);
}

static void test_compare(void **state)
{
	struct lib_identity a = with(3, "5000c50012345678");
	struct lib_identity b = with(3, "5000c50012345679");
	struct lib_identity t = with(3, "60000000000000000e00000000010001");
	struct lib_identity u = t;

	(void)state;
	assert_int_equal(lib_identity_compare(&a, &a), LIB_SAME);
	assert_int_equal(lib_identity_compare(&a, &b), LIB_OTHER);
	assert_int_equal(lib_identity_compare(&a, &t), LIB_UNSURE);
	/* two units of tgt with serial numbers of their own */
	set_serial(&t, "PX41-0071");
	set_serial(&u, "PX41-0071");
	assert_int_equal(lib_identity_compare(&t, &u), LIB_SAME);
	memcpy(u.product, "ACME    ", 8);
	assert_int_equal(lib_identity_compare(&t, &u), LIB_OTHER);
	u = t;
	set_serial(&u, "PX41-0072");
	assert_int_equal(lib_identity_compare(&t, &u), LIB_OTHER);
	set_serial(&u, "beaf11");
	assert_int_equal(lib_identity_compare(&t, &u), LIB_UNSURE);
}

static struct lib_who unit(struct lib_identity id, uint64_t blocks,
			   uint32_t block_size)
{
	return (struct lib_who){ .identity = id,
				 .has_capacity = blocks > 0,
				 .capacity = { .blocks = blocks,
					       .block_size = block_size } };
}

static void expect(const struct lib_who *was, struct lib_who now,
		   unsigned accept, int err)
{
	char why[LIB_WHY_MAX] = "";

	assert_int_equal(lib_who_check(was, &now, accept, why, sizeof(why)),
			 err);
	assert_int_equal(why[0] != 0, err != 0);
}

static void test_who(void **state)
{
	const struct lib_identity a = with(3, "5000c50012345678");
	const struct lib_identity b = with(3, "5000c50012345679");
	const struct lib_identity weak = with(1, "IET     00010001");
	const struct lib_identity other = with(1, "IET     00010002");
	const struct lib_who w = unit(a, 100, 512), v = unit(weak, 100, 512);
	const unsigned all = LIB_WEAK | LIB_GROWTH;

	(void)state;
	expect(&w, w, LIB_EQUAL, 0);
	expect(&w, unit(b, 100, 512), all, ISER_E_CHANGED);
	expect(&w, unit(weak, 100, 512), all, ISER_E_CHANGED);
	expect(&w, unit(a, 100, 4096), all, ISER_E_CHANGED);
	expect(&w, unit(a, 100, 4096), all | LIB_SIZE, ISER_E_CHANGED);
	expect(&w, unit(a, 99, 512), all, ISER_E_CHANGED);
	expect(&w, unit(a, 101, 512), all, 0);
	expect(&w, unit(a, 101, 512), LIB_EQUAL, ISER_E_CHANGED);
	expect(&w, unit(a, 99, 512), LIB_SIZE, 0);
	expect(&w, unit(a, 0, 0), LIB_EQUAL, 0); /* not reported */
	/* weak names: equal ones of one path, never of two */
	expect(&v, v, all, 0);
	expect(&v, v, LIB_EQUAL, ISER_E_UNSUPPORTED);
	expect(&v, unit(weak, 101, 512), all, ISER_E_CHANGED);
	expect(&v, unit(other, 100, 512), all, ISER_E_CHANGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_strong_spc4_7_8_6),
		cmocka_unit_test(test_serial),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_who),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
