/* SPDX-License-Identifier: BSD-2-Clause */
/* identity_record_test.c: the text of an identity, and which places agree. */
#include "daemon/luns/identity_record.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

#define UUID "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
#define TEXT                                                          \
 "1 " UUID " inode=12 born=1790000000.000000001 fs=0123456789abcdef " \
 "volume=1123456789abcdef machine=2123456789abcdef"

static enum identity_verdict get(struct identity_record *r, const char *text)
{
	return identity_record_get(r, text, strlen(text));
}

static void test_round_trip(void **state)
{
	struct identity_record r;
	char text[IDENTITY_TEXT_MAX];

	(void)state;
	assert_int_equal(get(&r, TEXT), IDENTITY_GOOD);
	assert_int_equal(r.uuid[0], 0xf8);
	assert_int_equal(r.place.inode, 12);
	assert_string_equal(r.place.born, "1790000000.000000001");
	assert_int_equal(identity_record_put(&r, text), strlen(TEXT));
	assert_string_equal(text, TEXT);
	memset(&r.place, 0, sizeof(r.place));
	identity_record_put(&r, text);
	assert_string_equal(text, "1 " UUID);
	memset(&r.place, 'x', sizeof(r.place)); /* as long as it can be */
	r.place.inode = UINT64_MAX - 1;
	r.place.born[31] = r.place.fs[16] = '\0';
	r.place.volume[16] = r.place.machine[16] = '\0';
	assert_true(identity_record_put(&r, text) < IDENTITY_TEXT_MAX);
	assert_int_equal(get(&r, text), IDENTITY_GOOD);
}

static void test_texts(void **state)
{
	static const struct {
		const char *text;
		enum identity_verdict want;
	} rows[] = {
		{ "1 " UUID, IDENTITY_GOOD },
		{ "1 " UUID "\n", IDENTITY_GOOD },
		{ "1 " UUID " later=7 inode=3", IDENTITY_GOOD },
		{ "2", IDENTITY_NEWER },
		{ "2 anything", IDENTITY_NEWER },
		{ "10 " UUID, IDENTITY_NEWER },
		{ "", IDENTITY_DAMAGED },
		{ "1", IDENTITY_DAMAGED },
		{ "1 ", IDENTITY_DAMAGED },
		{ "01 " UUID, IDENTITY_DAMAGED },
		{ "0 " UUID, IDENTITY_DAMAGED },
		{ "x " UUID, IDENTITY_DAMAGED },
		{ " 1 " UUID, IDENTITY_DAMAGED },
		{ "1  " UUID, IDENTITY_DAMAGED },
		{ "1 f81d4fae7dec41d0a76500a0c91e6bf6", IDENTITY_DAMAGED },
		{ "1 f81d4fae-7dec-41d0-a765-00a0c91e6bfg", IDENTITY_DAMAGED },
		{ "1 00000000-0000-0000-0000-000000000000", IDENTITY_DAMAGED },
		{ "1 " UUID " ", IDENTITY_DAMAGED },
		{ "1 " UUID " inode", IDENTITY_DAMAGED },
		{ "1 " UUID " inode=", IDENTITY_DAMAGED },
		{ "1 " UUID " =3", IDENTITY_DAMAGED },
		{ "1 " UUID " inode=0", IDENTITY_DAMAGED },
		{ "1 " UUID " inode=-3", IDENTITY_DAMAGED },
		{ "1 " UUID " inode=3x", IDENTITY_DAMAGED },
		{ "1 " UUID " inode=99999999999999999999", IDENTITY_DAMAGED },
		{ "1 " UUID " inode=3 inode=3", IDENTITY_DAMAGED },
		{ "1 " UUID " fs=1 fs=1", IDENTITY_DAMAGED },
		{ "1 " UUID " fs=01234567890123456", IDENTITY_DAMAGED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct identity_record r;

		assert_int_equal(get(&r, rows[i].text), rows[i].want);
	}
}

/* Bytes of any length and value; each beginning of a text is of no newer version. */
static void test_other_bytes(void **state)
{
	struct identity_record r;
	char text[65536];

	(void)state;
	memset(text, '7', sizeof(text));
	text[1] = ' ';
	assert_int_equal(identity_record_get(&r, text, sizeof(text)),
			 IDENTITY_NEWER);
	text[0] = '1';
	assert_int_equal(identity_record_get(&r, text, sizeof(text)),
			 IDENTITY_DAMAGED);
	assert_int_equal(identity_record_get(&r, "1 " UUID "\0 x", 41),
			 IDENTITY_DAMAGED);
	assert_int_equal(identity_record_get(&r, "\0\0\0", 3),
			 IDENTITY_DAMAGED);
	for (size_t n = 0; n < strlen(TEXT); n++)
		assert_int_not_equal(identity_record_get(&r, TEXT, n),
				     IDENTITY_NEWER);
}

/* What only one of two knows is not compared: another kernel may know more. */
static void test_places(void **state)
{
	static const char *const parts[] = { " inode=12",
					     " born=1790000000.000000001",
					     " fs=0123456789abcdef",
					     " volume=1123456789abcdef",
					     " machine=2123456789abcdef" };
	struct identity_record all, r;
	char text[IDENTITY_TEXT_MAX];

	(void)state;
	assert_int_equal(get(&all, TEXT), IDENTITY_GOOD);
	assert_int_equal(get(&r, "1 " UUID), IDENTITY_GOOD);
	assert_true(identity_place_agrees(&all.place, &r.place));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(text, sizeof(text), "1 " UUID "%s", parts[i]);
		assert_int_equal(get(&r, text), IDENTITY_GOOD);
		assert_true(identity_place_agrees(&all.place, &r.place));
		assert_true(identity_place_agrees(&r.place, &all.place));
		text[strlen(text) - 1] = '9'; /* another inode, and so on */
		assert_int_equal(get(&r, text), IDENTITY_GOOD);
		assert_false(identity_place_agrees(&all.place, &r.place));
		assert_false(identity_place_agrees(&r.place, &all.place));
	}
}

static void test_learning(void **state)
{
	struct identity_record all, r;
	char text[IDENTITY_TEXT_MAX];

	(void)state;
	assert_int_equal(get(&all, TEXT), IDENTITY_GOOD);
	assert_int_equal(get(&r, "1 " UUID " fs=x"), IDENTITY_GOOD);
	assert_true(identity_place_learn(&r.place, &all.place));
	assert_false(identity_place_learn(&r.place, &all.place));
	assert_string_equal(r.place.fs, "x");
	strcpy(r.place.fs, all.place.fs);
	identity_record_put(&r, text);
	assert_string_equal(text, TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_other_bytes),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_learning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
