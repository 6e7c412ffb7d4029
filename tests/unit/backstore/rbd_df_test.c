/* SPDX-License-Identifier: BSD-2-Clause */
/* What a monitor says about the space of a pool (backstore/rbd/df.h). */
#include <string.h>

#include "backstore/rbd/df.h"
#include "base/bytes.h"
#include "cmocka_all.h"

#define POOLS                                                                     \
 "\"pools\":[{\"name\":\"a\",\"id\":1,\"stats\":{\"stored\":9,\"max_avail\":7}}," \
 "{\"name\":\"b\",\"id\":3,\"stats\":{\"stored\":9,\"max_avail\":0}}]"

static bool find(const char *text, int64_t pool, uint64_t *room)
{
	return bsrbd_df_room(text, strlen(text), pool, room);
}

static void test_room_of_a_pool(void **state)
{
	static const char df[] = "{\"stats\":{\"total_bytes\":100}," POOLS "}";
	uint64_t room = 5;

	(void)state;
	assert_true(find(df, 1, &room));
	assert_int_equal(room, 7);
	assert_false(find(df, 2, &room));
	assert_int_equal(room, 7);
	assert_true(find(df, 3, &room));
	assert_int_equal(room, 0);
}

static void test_nothing_said(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{}",
		"null",
		/* no manager has counted */
		"{\"stats\":{\"total_bytes\":0}," POOLS "}",
		"{\"stats\":{\"total_bytes\":100},\"pools\":[]}",
		"{\"stats\":{\"total_bytes\":100},\"pools\":[1,{\"id\":1}]}",
		("{\"stats\":{\"total_bytes\":100},\"pools\":[{\"id\":1,\"stats\":"
		 "{\"max_avail\":-1}}]}"),
		"{\"stats\":3,\"pools\":{\"id\":1}}",
	};
	uint64_t room = 5;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		assert_false(find(texts[i], 1, &room));
	assert_int_equal(room, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_of_a_pool),
		cmocka_unit_test(test_nothing_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
