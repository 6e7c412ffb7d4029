/* SPDX-License-Identifier: BSD-2-Clause */
/* doc_test.c: the document of a configuration: JSON merge patches (RFC 7396), versions. */
#include "daemon/config/doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/escape.h"
#include "cmocka_all.h"
#include "daemon/config/yaml.h"

static json_t *doc_of(const char *text)
{
	json_t *doc = json_loads(text, 0, NULL);

	assert_non_null(doc);
	return doc;
}

/* Merges a patch with a document and compares the result, or the reason of a refusal if
 * why is given. */
static void check(const char *from, const char *patch, const char *to,
		  const char *why)
{
	json_t *doc = doc_of(from), *p = doc_of(patch), *want = doc_of(to);
	const char *reason = cfg_doc_merge(doc, p);

	if (why) {
		assert_non_null(reason);
		assert_string_equal(reason, why);
	} else {
		assert_null(reason);
		if (!json_equal(doc, want))
			fail_msg("%s + %s: %s", from, patch,
				 json_dumps(doc, 0));
	}
	json_decref(doc);
	json_decref(p);
	json_decref(want);
}

/* The examples of appendix A that a mapping of texts can have. */
static void test_merge_rfc7396_appendix_a(void **state)
{
	(void)state;
	check("{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}", NULL);
	check("{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}",
	      NULL);
	check("{\"a\":\"b\"}", "{\"a\":null}", "{}", NULL);
	check("{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}",
	      NULL);
	check("{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}", NULL);
	check("{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}", NULL);
	check("{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
	      "{\"a\":{\"b\":\"d\"}}", NULL);
	check("{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[\"1\"]}", "{\"a\":[\"1\"]}",
	      NULL);
	check("{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}",
	      NULL);
	check("{\"a\":\"x\"}", "{\"a\":{\"b\":\"c\",\"d\":null}}",
	      "{\"a\":{\"b\":\"c\"}}", NULL);
}

/* Numbers and booleans become the texts that a file would have. */
static void test_merge_scalars(void **state)
{
	static const char why[] =
		"a value is neither a string, a boolean nor an integer";

	(void)state;
	check("{}", "{\"a\":3,\"b\":true,\"c\":[false,-1]}",
	      "{\"a\":\"3\",\"b\":\"yes\",\"c\":[\"no\",\"-1\"]}", NULL);
	check("{}", "{\"a\":1.5}", "{}", why);
	check("{}", "{\"a\":[null]}", "{}", why);
	check("{}", "{\"a\":{\"b\":[{\"c\":0.5}]}}", "{}", why);
}

/* Removed, changed and new members in one patch; the order stays. */
static void test_merge_order(void **state)
{
	json_t *doc = doc_of("{\"d\":\"1\",\"b\":\"2\",\"c\":\"3\"}"), *v;
	json_t *p = doc_of("{\"a\":\"4\",\"b\":null,\"c\":{\"x\":\"5\"},"
			   "\"q\":null,\"0\":\"6\"}");
	static const char *const keys[] = { "d", "c", "a", "0" };
	const char *key;
	unsigned i = 0;

	(void)state;
	assert_null(cfg_doc_merge(doc, p));
	assert_int_equal(json_object_size(doc), 4);
	json_object_foreach(doc, key, v) assert_string_equal(key, keys[i++]);
	assert_non_null(json_object_get(json_object_get(doc, "c"), "x"));
	json_decref(doc);
	json_decref(p);
}

/* A look-up of each name among all others would take minutes, in which worker 0
 * serves no initiator. */
static void test_merge_thousands(void **state)
{
	enum {
		NAMES = 200000
	};
	json_t *doc = json_object(), *p = json_object();
	clock_t begun;
	char name[32];

	(void)state;
	assert_true(doc && p);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.test:%u", i);
		assert_int_equal(json_object_set_new(p, name, json_string("")),
				 0);
	}
	begun = clock();
	assert_null(cfg_doc_merge(doc, p)); /* all are new */
	assert_null(cfg_doc_merge(doc, p)); /* all exist */
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.test:%u", i);
		assert_int_equal(json_object_set_new(p, name, json_null()), 0);
	}
	assert_null(cfg_doc_merge(doc, p)); /* all are removed */
	assert_int_equal(json_object_size(doc), 0);
	assert_true(clock() - begun < 20 * CLOCKS_PER_SEC);
	json_decref(p);
	json_decref(doc);
}

static void version_of(const char *text, char out[CFG_VERSION_SIZE])
{
	json_t *doc = doc_of(text);

	cfg_doc_version(doc, out);
	json_decref(doc);
}

/* Documents that have the same texts in the same order differ, too. */
static void test_version(void **state)
{
	static const char *const docs[] = {
		"{}",
		"{\"a\":\"b\"}",
		"{\"a\":\"\",\"b\":\"\"}",
		"{\"ab\":\"\"}",
		"{\"a\":[\"b\"]}",
		"{\"a\":[[\"b\"]]}",
		"{\"a\":[[],\"b\"]}",
		"{\"a\":[[]],\"b\":\"\"}",
		"{\"a\":{\"b\":\"\"}}",
		"{\"a\":{},\"b\":\"\"}",
	};
	enum {
		N = sizeof(docs) / sizeof(docs[0])
	};
	char all[N][CFG_VERSION_SIZE], again[CFG_VERSION_SIZE];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		version_of(docs[i], all[i]);
		version_of(docs[i], again);
		assert_int_equal(strlen(again), CFG_VERSION_SIZE - 1);
		assert_string_equal(again, all[i]);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(all[j], all[i]);
	}
}

/* A command line can name a file that is not UTF-8, which JSON cannot. */
static void test_not_utf8(void **state)
{
	json_t *doc = json_object(), *list = json_array(), *copy;

	(void)state;
	json_array_append_new(list, json_string_nocheck("\xff"));
	json_array_append_new(list, json_string("a"));
	json_object_set_new(doc, "l", list);
	assert_null(cfg_doc_utf8(doc, true));
	copy = cfg_doc_utf8(doc, false);
	list = json_object_get(copy, "l");
	assert_true(json_is_null(json_array_get(list, 0)));
	assert_string_equal(json_string_value(json_array_get(list, 1)), "a");
	json_decref(copy);
	json_decref(doc);
}

/* Writes a character that is not a surrogate (RFC 3629 §3) with its NUL. */
static void put_utf8(char out[5], uint32_t c)
{
	unsigned n = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	memset(out, 0, 5);
	for (unsigned i = n; i; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(n ? (0xf0 << (3 - n)) | c : c);
}

/* A text that a configuration may have is read from its YAML as it was. */
static void test_each_plain_character_comes_back(void **state)
{
	static struct cfg_errors errors;
	json_t *doc = json_array(), *again;
	struct cfg_places places = { 0 };
	char one[5], *text;

	(void)state;
	for (uint32_t c = 1; c < 0x20000; c++) {
		put_utf8(one, c);
		if (text_is_plain(one, strlen(one)))
			json_array_append_new(doc, json_string(one));
	}
	assert_true(json_array_size(doc) > 100000);
	text = cfg_yaml_write(doc);
	again = cfg_yaml_read(&places, text, strlen(text), &errors);
	if (!again)
		fail_msg("%s", errors.all[0].text);
	assert_true(json_equal(again, doc));
	json_decref(again);
	json_decref(doc);
	free(places.v);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge_rfc7396_appendix_a),
		cmocka_unit_test(test_merge_scalars),
		cmocka_unit_test(test_merge_order),
		cmocka_unit_test(test_merge_thousands),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_not_utf8),
		cmocka_unit_test(test_each_plain_character_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
