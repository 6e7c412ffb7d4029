/* SPDX-License-Identifier: BSD-2-Clause */
/* api_test.c: the rows of the methods of the management socket. */
#include "daemon/rpc/api.h"

#include <string.h>

#include "base/trace.h"
#include "cmocka_all.h"
#include "daemon/config/groups.h"

static void test_rows_are_complete(void **state)
{
	const struct rpc_method *m;
	size_t n;

	(void)state;
	m = rpc_methods(&n);
	for (size_t i = 0; i < n; i++) {
		bool ended = false;

		assert_true(m[i].name && m[i].help);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(m[j].name, m[i].name);
		for (unsigned p = 0; p < RPC_PARAMS; p++) {
			const struct rpc_param *param = &m[i].params[p];

			ended |= !param->opt.name;
			assert_true(!param->bare || p == 0);
			assert_true(!param->opt.name == ended);
			assert_true(ended ||
				    (param->opt.arg && param->opt.help));
			/* a default is for parameters that can be left out */
			assert_true(!param->opt.initial || param->optional);
		}
	}
}

static void test_usage(void **state)
{
	const struct rpc_method *m;
	char text[128], cut[8];
	size_t n;

	(void)state;
	m = rpc_methods(&n);
	for (size_t i = 0; i < n; i++) {
		rpc_usage(&m[i], text, sizeof(text));
		if (!strcmp(m[i].name, "resize"))
			assert_string_equal(
				text, "lun=BACKSTORE|TARGET/LUN [size=SIZE] "
				      "[force=yes|no]");
		if (!strcmp(m[i].name, "status"))
			assert_string_equal(text, "");
		rpc_usage(&m[i], cut, sizeof(cut));
		assert_true(strlen(cut) < sizeof(cut));
		assert_memory_equal(cut, text, strlen(cut));
	}
}

/* Values as iserctl sends them: what is allowed is stored, everything else is
 * refused with the reason. */
static void test_values(void **state)
{
	static const struct {
		const char *method, *param, *value;
		bool good;
	} rows[] = {
		{ "eject", "lun", "disk", true },
		{ "eject", "force", "yes", true },
		{ "eject", "force", "maybe", false },
		{ "resize", "size", "1G", true },
		{ "resize", "size", "0", false },
		{ "resize", "size", "large", false },
		{ "group", "id", "0", false },
		{ "group", "state", "standby", true },
		{ "group", "state", "offline", false },
		{ "port", "state", "offline", true },
		{ "log", "level", "loud", false },
	};
	const struct rpc_method *m;
	unsigned tried = 0;
	size_t n;

	(void)state;
	m = rpc_methods(&n);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (size_t i = 0; i < n * RPC_PARAMS; i++) {
			const struct rpc_method *method = &m[i / RPC_PARAMS];
			const struct opt_row *row =
				&method->params[i % RPC_PARAMS].opt;
			struct rpc_args args = { 0 };
			char why[OPT_WHY];

			if (strcmp(method->name, rows[r].method) ||
			    !row->name || strcmp(row->name, rows[r].param))
				continue;
			tried++;
			assert_int_equal(opt_set(row, &args, row->name,
						 rows[r].value, why),
					 rows[r].good ? OPT_OK : OPT_BAD);
		}
	assert_int_equal(tried, sizeof(rows) / sizeof(rows[0]));
}

/* The words of api.c are those of the enums that the methods store them in. */
static void test_words_are_those_of_the_enums(void **state)
{
	(void)state;
	for (unsigned i = 0; group_states[i]; i++)
		assert_string_equal(group_state_name(group_state_at(i)),
				    group_states[i]);
	for (unsigned i = 0; rpc_levels[i]; i++)
		assert_string_equal(trace_level_name((enum trace_level)i),
				    rpc_levels[i]);
	assert_string_equal(rpc_no_yes[false], "no");
	assert_string_equal(rpc_no_yes[true], "yes");
	assert_string_equal(rpc_port_states[1], "offline");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_complete),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_words_are_those_of_the_enums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
