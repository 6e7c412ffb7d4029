/* SPDX-License-Identifier: BSD-2-Clause */
/* path_unit_test.c: target port groups, whole and damaged. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "lib/path/unit.h"

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
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
