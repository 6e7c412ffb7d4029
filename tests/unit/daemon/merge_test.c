/* SPDX-License-Identifier: BSD-2-Clause */
/* merge_test.c: JSON merge patches (RFC 7396) of a configuration's tree. */
#include "daemon/rpc/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmocka_all.h"

/* Merges a patch with a tree, both as JSON, and compares the result, or the
 * reason of a refusal if why is given. */
static void check(const char *from, const char *patch, const char *to,
		  const char *why)
{
	struct cfg_arena memory = { 0 };
	struct cfg_node *n = cfg_node_new(&memory, CFG_NODE_MAP, NULL);
	json_t *a = json_loads(from, 0, NULL), *p = json_loads(patch, 0, NULL);
	json_t *b = json_loads(to, 0, NULL), *got;
	const char *reason;

	assert_true(n && a && b && p);
	assert_null(rpc_tree_merge(&memory, n, a));
	reason = rpc_tree_merge(&memory, n, p);
	if (why) {
		assert_non_null(reason);
		assert_string_equal(reason, why);
	} else {
		assert_null(reason);
		got = rpc_tree_json(n, true);
		if (!json_equal(got, b))
			fail_msg("%s + %s: %s", from, patch,
				 json_dumps(got, 0));
		json_decref(got);
	}
	json_decref(a);
	json_decref(b);
	json_decref(p);
	cfg_arena_free(&memory);
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
	struct cfg_arena memory = { 0 };
	struct cfg_node *n = cfg_node_new(&memory, CFG_NODE_MAP, NULL);
	json_t *a =
		json_loads("{\"d\":\"1\",\"b\":\"2\",\"c\":\"3\"}", 0, NULL);
	json_t *p = json_loads("{\"a\":\"4\",\"b\":null,\"c\":{\"x\":\"5\"},"
			       "\"q\":null,\"0\":\"6\"}",
			       0, NULL);
	static const char *const keys[] = { "d", "c", "a", "0" };

	(void)state;
	assert_true(n && a && p);
	assert_null(rpc_tree_merge(&memory, n, a));
	assert_null(rpc_tree_merge(&memory, n, p));
	assert_int_equal(n->n, 4);
	for (unsigned i = 0; i < n->n; i++)
		assert_string_equal(n->items[i].key, keys[i]);
	assert_null(cfg_node_get(n, "b"));
	assert_non_null(cfg_node_get(cfg_node_get(n, "c"), "x"));
	json_decref(a);
	json_decref(p);
	cfg_arena_free(&memory);
}

/* A look-up of each name among all others would take minutes, in which worker 0
 * serves no initiator. */
static void test_merge_thousands(void **state)
{
	enum {
		NAMES = 200000
	};
	struct cfg_arena memory = { 0 };
	struct cfg_node *n = cfg_node_new(&memory, CFG_NODE_MAP, NULL);
	json_t *p = json_object();
	clock_t begun;
	char name[32];

	(void)state;
	assert_true(n && p);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.test:%u", i);
		assert_int_equal(json_object_set_new(p, name, json_string("")),
				 0);
	}
	begun = clock();
	assert_null(rpc_tree_merge(&memory, n, p)); /* all are new */
	assert_null(rpc_tree_merge(&memory, n, p)); /* all exist */
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "iqn.2026-01.test:%u", i);
		assert_int_equal(json_object_set_new(p, name, json_null()), 0);
	}
	assert_null(rpc_tree_merge(&memory, n, p)); /* all are removed */
	assert_int_equal(n->n, 0);
	assert_true(clock() - begun < 20 * CLOCKS_PER_SEC);
	json_decref(p);
	cfg_arena_free(&memory);
}

static void version_of(const char *text, char out[RPC_VERSION_SIZE])
{
	struct cfg_arena memory = { 0 };
	struct cfg_node *n = cfg_node_new(&memory, CFG_NODE_MAP, NULL);
	json_t *a = json_loads(text, 0, NULL);

	assert_true(n && a);
	assert_null(rpc_tree_merge(&memory, n, a));
	rpc_tree_version(n, out);
	json_decref(a);
	cfg_arena_free(&memory);
}

/* Trees that have the same texts in the same order differ, too. */
static void test_version(void **state)
{
	static const char *const trees[] = {
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
		N = sizeof(trees) / sizeof(trees[0])
	};
	char all[N][RPC_VERSION_SIZE], again[RPC_VERSION_SIZE];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		version_of(trees[i], all[i]);
		version_of(trees[i], again);
		assert_int_equal(strlen(again), RPC_VERSION_SIZE - 1);
		assert_string_equal(again, all[i]);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(all[j], all[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge_rfc7396_appendix_a),
		cmocka_unit_test(test_merge_scalars),
		cmocka_unit_test(test_merge_order),
		cmocka_unit_test(test_merge_thousands),
		cmocka_unit_test(test_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
