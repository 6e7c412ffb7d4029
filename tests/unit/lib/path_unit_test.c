/* SPDX-License-Identifier: BSD-2-Clause */
/* path_unit_test.c: designators and target port groups, whole and damaged. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "lib/path_unit.h"

/* VPD page 83h: NAA and T10 vendor ID of the unit, relative port 2, group 7. */
static const uint8_t
	page[] = {
		0,   0x83, 0,	48, /* header */
		1,   0x03, 0,	8,   0x60, 0,	0,   0,	  0,
		0,   0,	   1, /* NAA */
		2,   0x01, 0,	12,  'A',  'C', 'M', 'E', ' ',
		' ', ' ',  ' ', 's', 'n',  '1', '2', 1,	  0x94,
		0,   4,	   0,	0,   0,	   2, /* relative target port */
		1,   0x95, 0,	4,   0,	   0,	0,   7, /* target port group */
	};

static void test_read(void **state)
{
	struct lib_identity id;
	struct lib_port port;
	char text[80];

	(void)state;
	assert_true(lib_identity_read(&id, &port, page, sizeof(page)));
	assert_int_equal(id.len, 12 + 16);
	assert_int_equal(port.port, 2);
	assert_int_equal(port.group, 7);
	lib_identity_text(&id, text, sizeof(text));
	assert_string_equal(text, "naa.6000000000000001");
}

static void test_same(void **state)
{
	uint8_t other[sizeof(page)];
	struct lib_identity a, b;
	struct lib_port port;

	(void)state;
	memcpy(other, page, sizeof(page));
	lib_identity_read(&a, &port, page, sizeof(page));
	lib_identity_read(&b, &port, other, sizeof(other));
	assert_true(lib_identity_same(&a, &b));
	other[15] = 2; /* another NAA, and the same T10 vendor ID */
	lib_identity_read(&b, &port, other, sizeof(other));
	assert_false(lib_identity_same(&a, &b));
	other[5] = 0; /* no NAA: the T10 vendor ID counts */
	lib_identity_read(&b, &port, other, sizeof(other));
	assert_true(lib_identity_same(&a, &b));
	other[31] = '3';
	lib_identity_read(&b, &port, other, sizeof(other));
	assert_false(lib_identity_same(&a, &b));
	/* of the port or the device, not of the unit */
	other[5] = 0x13;
	other[17] = 0x21;
	assert_false(lib_identity_read(&b, &port, other, sizeof(other)));
	assert_false(lib_identity_same(&a, &b));
	assert_false(lib_identity_same(&b, &b));
}

/* Each truncation and each wrong byte: no read beyond the end (the sanitizers
 * look), and never another name. */
static void test_damaged(void **state)
{
	struct lib_identity id;
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
		free(p);
	}
	assert_false(
		lib_identity_read(&id, &port, (uint8_t[]){ 0, 0x80, 0, 0 }, 4));
}

/* REPORT TARGET PORT GROUPS: group 1 with two ports, preferred, and group 2. */
static const uint8_t groups[] = {
	0, 0, 0, 28, 0x80, 0x8f, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1,
	0, 0, 0, 2,  0x02, 0x8f, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3,
};

static void test_groups(void **state)
{
	uint8_t access = 9;
	bool preferred;

	(void)state;
	assert_true(lib_groups_find(groups, sizeof(groups), 1, &access,
				    &preferred));
	assert_int_equal(access, 0);
	assert_true(preferred);
	assert_true(lib_groups_find(groups, sizeof(groups), 2, &access,
				    &preferred));
	assert_int_equal(access, 2);
	assert_false(preferred);
	assert_false(lib_groups_find(groups, sizeof(groups), 3, &access,
				     &preferred));
	for (size_t n = 0; n < sizeof(groups); n++) {
		uint8_t *p = malloc(n ? n : 1);

		memcpy(p, groups, n);
		assert_int_equal(lib_groups_find(p, n, 2, &access, &preferred),
				 n >= 28);
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
