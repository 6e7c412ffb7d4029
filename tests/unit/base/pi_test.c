/* SPDX-License-Identifier: BSD-2-Clause */
/* pi_test.c: protection information by type (SBC-3 §4.22). */
#include "base/pi.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

static const uint8_t block[512];

static void test_bytes_and_guard_sbc3_4_22_4(void **state)
{
	static const uint8_t want[] = { 0x12, 0x34, 0x56, 0x78,
					0x9a, 0xbc, 0xde, 0xf0 };
	uint8_t pi[3 * PI_LEN] = { 0 };
	uint8_t ones[32];

	(void)state;
	pi_put(pi, 0x1234, 0x5678, 0x9abcdef0);
	assert_memory_equal(pi, want, PI_LEN);
	pi_none(pi, 2);
	for (unsigned i = 0; i < sizeof(pi); i++)
		assert_int_equal(pi[i], i < 2 * PI_LEN ? 0xff : 0);
	/* the values of SBC-3 table 24 */
	assert_int_equal(pi_guard(block, 32), 0);
	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(pi_guard(ones, 32), 0xa293);
	for (uint8_t i = 0; i < 32; i++)
		ones[i] = i;
	assert_int_equal(pi_guard(ones, 32), 0x0224);
}

static void test_tags_that_turn_it_off_sbc3_4_22_2(void **state)
{
	static const struct {
		uint16_t app;
		uint32_t ref;
		bool off[4]; /* by type */
	} rows[] = {
		{ 0xffff, 0xffffffff, { 0, true, true, true } },
		{ 0xffff, 0xfffffffe, { 0, true, true, false } },
		{ 0xffff, 0, { 0, true, true, false } },
		{ 0xfffe, 0xffffffff, { 0, false, false, false } },
		{ 0, 0, { 0, false, false, false } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (uint8_t type = 1; type < 4; type++) {
			uint8_t pi[PI_LEN];

			pi_put(pi, 7, rows[i].app, rows[i].ref);
			assert_int_equal(pi_is_off(type, pi),
					 rows[i].off[type]);
		}
}

#define ALL true, true, true
#define CHECK(...) \
 pi_check(&(const struct pi_rule){ __VA_ARGS__ }, block, 512, pi, 3)

static void test_check_by_rule(void **state)
{
	uint8_t pi[PI_LEN];

	(void)state;
	pi_put(pi, 0, 0x0a50, 103);
	assert_int_equal(CHECK(1, ALL, 0x0a50, 0xffff, 100), 0);
	assert_int_equal(CHECK(1, ALL, 0x0a51, 0xffff, 100), ERR_PI_APP_TAG);
	assert_int_equal(CHECK(1, ALL, 0x0a51, 0xfffe, 100), 0);
	assert_int_equal(CHECK(1, ALL, 0xffff, 0, 100), 0);
	assert_int_equal(CHECK(1, true, false, true, 0, 0xffff, 100), 0);
	assert_int_equal(CHECK(1, ALL, 0x0a50, 0xffff, 101), ERR_PI_REF_TAG);
	assert_int_equal(CHECK(2, ALL, 0x0a50, 0xffff, 101), ERR_PI_REF_TAG);
	/* the reference tag of type 3 is the application's (§4.22.2.5) */
	assert_int_equal(CHECK(3, ALL, 0x0a50, 0xffff, 101), 0);
	assert_int_equal(CHECK(1, true, true, false, 0x0a50, 0xffff, 9), 0);
	pi_put(pi, 1, 0x0a50, 103);
	assert_int_equal(CHECK(1, ALL, 0, 0xffff, 9), ERR_PI_GUARD);
	assert_int_equal(CHECK(1, false, true, true, 0x0a50, 0xffff, 100), 0);
	assert_int_equal(CHECK(1, false, true, true, 0, 0xffff, 9),
			 ERR_PI_APP_TAG);
	/* of type 2, all ones is a tag that the WRITE did not name */
	pi_put(pi, 0, 0x0a50, 0xffffffff);
	assert_int_equal(CHECK(1, ALL, 0x0a50, 0xffff, 100), ERR_PI_REF_TAG);
	assert_int_equal(CHECK(2, ALL, 0x0a50, 0xffff, 100), 0);
	/* nothing is checked where the tags turn it off */
	pi_put(pi, 1, 0xffff, 0);
	assert_int_equal(CHECK(1, ALL, 0, 0xffff, 100), 0);
	assert_int_equal(CHECK(3, ALL, 0, 0xffff, 100), ERR_PI_GUARD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_and_guard_sbc3_4_22_4),
		cmocka_unit_test(test_tags_that_turn_it_off_sbc3_4_22_2),
		cmocka_unit_test(test_check_by_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
