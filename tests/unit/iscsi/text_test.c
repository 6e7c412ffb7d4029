/* SPDX-License-Identifier: BSD-2-Clause */
/* text_test.c: key=value lists, byte by byte (RFC 7143 §6.1). */
#include "iscsi/text.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

static int next(const char *text, size_t len, char *key, const char **value)
{
	struct iscsi_text_iter it = iscsi_text_iter(text, len);

	return iscsi_text_next(&it, key, value);
}

/* §6.1: the bytes with which a key may begin, and continue. */
/* [RFC 7143: 13.22 #1] */
static void test_bytes_of_a_name_rfc7143_6_1(void **state)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz";
	static const char more[] = "0123456789.-+@_#";
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;

	(void)state;
	for (int c = 1; c < 256; c++) {
		const char first[] = { (char)c, 'a', '=', 'v', 0 };
		const char second[] = { 'a', (char)c, '=', 'v', 0 };
		bool letter = strchr(letters, c), other = strchr(more, c);

		assert_int_equal(next(first, 5, key, &value),
				 letter ? 1 : ERR_FORMAT);
		/* "a==v": the value begins with '=' */
		assert_int_equal(next(second, 5, key, &value),
				 letter || other || c == '=' ? 1 : ERR_FORMAT);
	}
}

static void test_lengths_of_names_and_values(void **state)
{
	static char text[ISCSI_KEY_VALUE_MAX + 128];
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;

	(void)state;
	for (size_t n = 1; n < 2 * ISCSI_KEY_NAME_MAX; n++) {
		memset(text, 'k', n);
		memcpy(text + n, "=v", 3);
		assert_int_equal(next(text, n + 3, key, &value),
				 n <= ISCSI_KEY_NAME_MAX ? 1 : ERR_FORMAT);
		if (n > ISCSI_KEY_NAME_MAX)
			continue;
		assert_int_equal(strlen(key), n);
		assert_string_equal(value, "v");
	}
	for (size_t n = ISCSI_KEY_VALUE_MAX - 2; n < ISCSI_KEY_VALUE_MAX + 3;
	     n++) {
		memcpy(text, "k=", 2);
		memset(text + 2, 'v', n);
		text[2 + n] = 0;
		assert_int_equal(next(text, n + 3, key, &value),
				 n <= ISCSI_KEY_VALUE_MAX ? 1 : ERR_FORMAT);
	}
}

static void test_what_is_no_pair(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int result;
	} rows[] = {
		{ "", 0, 0 },
		{ "k=v", 4, 1 },
		{ "k=", 3, 1 },
		{ "=v", 3, ERR_FORMAT },
		{ "k", 2, ERR_FORMAT },
		{ "k=v", 3, ERR_FORMAT },
		{ "=", 2, ERR_FORMAT },
		{ "k", 1, ERR_FORMAT },
		{ "k\0=v", 5, ERR_FORMAT },
	};
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(next(rows[i].text, rows[i].len, key, &value),
				 rows[i].result);
}

static void test_several_pairs(void **state)
{
	static const char text[] = "a=1\0b=\0c=3";
	static const char *const pairs[][2] = { { "a", "1" },
						{ "b", "" },
						{ "c", "3" } };
	struct iscsi_text_iter it = iscsi_text_iter(text, sizeof(text));
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		assert_int_equal(iscsi_text_next(&it, key, &value), 1);
		assert_string_equal(key, pairs[i][0]);
		assert_string_equal(value, pairs[i][1]);
	}
	assert_int_equal(iscsi_text_next(&it, key, &value), 0);
}

/* iscsi_text_put appends a pair that fits to the last byte, and no part of a
 * longer one. */
/* [RFC 7143: 6.1 #1] */
static void test_put_to_the_last_byte(void **state)
{
	char buf[16];

	(void)state;
	for (size_t max = 0; max < sizeof(buf); max++) {
		struct iscsi_text_out out = { .buf = buf, .max = max };
		bool fits = max >= 8;

		memset(buf, 0x7f, sizeof(buf));
		iscsi_text_put(&out, "key", "val");
		assert_int_equal(out.overflow, !fits);
		assert_int_equal(out.len, fits ? 8 : 0);
		if (fits)
			assert_memory_equal(buf, "key=val", 8);
		assert_int_equal(buf[fits ? 8 : 0], 0x7f);
	}
}

static void test_items_of_a_list(void **state)
{
	static const struct {
		const char *list, *item;
		bool has;
	} rows[] = {
		{ "None", "None", true },
		{ "CRC32C,None", "None", true },
		{ "None,CRC32C", "None", true },
		{ "A,None,B", "None", true },
		{ "", "None", false },
		{ "Non", "None", false },
		{ "Nonee", "None", false },
		{ "xNone,A", "None", false },
		{ "A,xNone", "None", false },
		{ "A,Nonex,B", "None", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(iscsi_list_has(rows[i].list, rows[i].item),
				 rows[i].has);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_of_a_name_rfc7143_6_1),
		cmocka_unit_test(test_lengths_of_names_and_values),
		cmocka_unit_test(test_what_is_no_pair),
		cmocka_unit_test(test_several_pairs),
		cmocka_unit_test(test_put_to_the_last_byte),
		cmocka_unit_test(test_items_of_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
