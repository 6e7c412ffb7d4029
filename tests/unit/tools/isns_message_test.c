/* SPDX-License-Identifier: BSD-2-Clause */
/* isns_message_test.c: messages of iSNS (RFC 4171 §5), and what iser-isns reads in those
 * of a server. */
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "tools/isns/answer.h"

static struct isns_attrs attrs_of(const struct isns_payload *p)
{
	return (struct isns_attrs){ p->bytes, p->len };
}

/* ---- headers and attributes ---- */

static void test_header_rfc4171_5_1(void **state)
{
	static const uint8_t query[ISNS_HEADER_LEN] = { 0, 1,	 0, 2, 0, 100,
							4, 0x8c, 0, 9, 0, 3 };
	static const struct isns_header h = { .function = ISNS_DEV_ATTR_QRY,
					      .len = 100,
					      .flags = 0x048c,
					      .xid = 9,
					      .seq = 3 };
	struct isns_header got;
	uint8_t bytes[ISNS_HEADER_LEN];

	(void)state;
	assert_true(isns_header_decode(&got, query));
	assert_memory_equal(&got, &h, sizeof(h));
	isns_header_encode(&h, bytes);
	assert_memory_equal(bytes, query, sizeof(query));
	bytes[1] = 2; /* §5.1.1: another version */
	assert_false(isns_header_decode(&got, bytes));
	bytes[1] = 1;
	bytes[5] = 101; /* §5.1.3: not a multiple of 4 */
	assert_false(isns_header_decode(&got, bytes));
}

static void test_text_is_padded_rfc4171_5_3_1(void **state)
{
	static const uint8_t want[] = { 0,   0,	  0,   1,   0, 0, 0, 8,
					'f', 'o', 'u', 'r', 0, 0, 0, 0 };
	struct isns_payload p = { 0 };
	struct isns_attrs all;
	struct isns_attr a;

	(void)state;
	isns_put_text(&p, ISNS_ENTITY, "four");
	assert_int_equal(p.len, sizeof(want));
	assert_memory_equal(p.bytes, want, sizeof(want));
	all = attrs_of(&p);
	assert_true(isns_attr_next(&all, &a));
	assert_string_equal(isns_attr_text(&a), "four");
	assert_false(isns_attr_next(&all, &a));
	isns_payload_free(&p);
}

/* The 36 bytes of an alias that is longer than its message. */
static void test_length_beyond_the_message_rfc4171_5_3(void **state)
{
	uint8_t bytes[24] = { 0, 0, 0, 32, 0, 0, 0, 224, 'i', 'q', 'n' };
	struct isns_attrs all = { bytes, sizeof(bytes) };
	struct isns_attr a;

	(void)state;
	assert_false(isns_attrs_valid(all));
	assert_false(isns_attr_next(&all, &a));
	put_be32(bytes + 4, 16);
	assert_true(isns_attrs_valid(all));
	put_be32(bytes + 4, 15); /* not a multiple of 4 */
	assert_false(isns_attrs_valid(all));
	put_be32(bytes + 4, UINT32_MAX - 3);
	assert_false(isns_attrs_valid(all));
}

static void test_values_of_another_length(void **state)
{
	const uint8_t bytes[300] = { 'x' };
	struct isns_attr a = { ISNS_PG_PORT, 8, bytes };
	struct in6_addr ip;
	uint32_t n;

	(void)state;
	assert_false(isns_attr_number(&a, &n));
	assert_false(isns_attr_ip(&a, &ip));
	a.len = 0;
	assert_false(isns_attr_number(&a, &n));
	assert_null(isns_attr_text(&a));
	a.len = 1; /* no NUL */
	assert_null(isns_attr_text(&a));
	a.value = memset((uint8_t[300]){ 0 }, 'x', 299);
	a.len = 300; /* a NUL after the longest text */
	assert_null(isns_attr_text(&a));
}

/* ---- answers ---- */

static char report[512];

static void found(void *arg, const char *name, const char *alias,
		  const struct isns_portal *p, unsigned tag)
{
	size_t n = strlen(report);

	assert_ptr_equal(arg, report);
	assert_true(IN6_IS_ADDR_V4MAPPED(&p->ip));
	snprintf(report + n, sizeof(report) - n, "%s(%s)@%u:%u,%u ", name,
		 alias ? alias : "", p->ip.s6_addr[15], p->port, tag);
}

static void put_group(struct isns_payload *p, const char *name, uint8_t host)
{
	struct in6_addr ip;

	isns_map_ipv4(&ip, &(struct in_addr){ 0 });
	ip.s6_addr[15] = host;
	isns_put_text(p, ISNS_PG_NAME, name);
	isns_put_ip(p, ISNS_PG_IP, &ip);
	isns_put_number(p, ISNS_PG_PORT, 3260);
}

/* Nodes and portal groups of a query may be in any order; a portal group without a tag has
 * no relationship (§5.6.5.2). */
static void test_portal_groups_rfc4171_5_7_5_2(void **state)
{
	struct isns_payload p = { 0 };
	struct isns_attrs all;

	(void)state;
	put_group(&p, "b", 1);
	isns_put_number(&p, ISNS_PG_TAG, 7);
	isns_put_text(&p, ISNS_NODE_NAME, "b");
	isns_put_number(&p, ISNS_NODE_TYPE, 1);
	isns_put_text(&p, ISNS_NODE_ALIAS, "disk");
	isns_put_text(&p, ISNS_NODE_NAME, "a");
	put_group(&p, "a", 2);
	isns_put_none(&p, ISNS_PG_TAG);
	put_group(&p, "a", 3);
	isns_put_number(&p, ISNS_PG_TAG, 1);
	put_group(&p, "lost", 4);
	isns_put_number(&p, ISNS_PG_TAG, 2);
	isns_put_text(&p, ISNS_PG_NAME, "no address");
	isns_put_number(&p, ISNS_PG_TAG, 3);
	report[0] = '\0';
	assert_true(isns_answer_found(attrs_of(&p), found, report));
	assert_string_equal(report, "b(disk)@1:3260,7 a()@3:3260,1 "
				    "lost()@4:3260,2 ");
	/* every truncation is refused, or has fewer whole attributes */
	all = attrs_of(&p);
	for (size_t n = 0; n < p.len; n++) {
		all.len = n;
		if (!isns_attrs_valid(all))
			continue;
		report[0] = '\0';
		assert_true(isns_answer_found(all, found, report));
	}
	isns_payload_free(&p);
}

static void changed(unsigned bits, const char *name)
{
	size_t n = strlen(report);

	snprintf(report + n, sizeof(report) - n, "%x %s, ", bits, name);
}

static void test_state_changes_rfc4171_5_6_5_8(void **state)
{
	struct isns_payload p = { 0 };

	(void)state;
	isns_put_text(&p, ISNS_NODE_NAME, "me");
	isns_put_number(&p, ISNS_SCN_BITMAP, 8);
	isns_put_text(&p, ISNS_NODE_NAME, "a");
	isns_put_text(&p, ISNS_NODE_NAME, "b");
	isns_put_number(&p, ISNS_SCN_BITMAP, 0x10);
	isns_put_text(&p, ISNS_NODE_NAME, "c");
	report[0] = '\0';
	assert_string_equal(isns_answer_changed(attrs_of(&p), changed), "me");
	assert_string_equal(report, "8 a, 8 b, 10 c, ");
	isns_put_none(&p, ISNS_SCN_BITMAP);
	assert_null(isns_answer_changed(attrs_of(&p), changed));
	isns_payload_free(&p);
	/* no destination */
	isns_put_number(&p, ISNS_SCN_BITMAP, 8);
	assert_null(isns_answer_changed(attrs_of(&p), changed));
	isns_payload_free(&p);
}

static void test_status_rfc4171_5_4(void **state)
{
	(void)state;
	assert_string_equal(isns_status_str(9), "no such entry");
	assert_string_equal(isns_status_str(23),
			    "registration feature not supported");
	assert_non_null(isns_status_str(24));
	assert_non_null(isns_status_str(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_rfc4171_5_1),
		cmocka_unit_test(test_text_is_padded_rfc4171_5_3_1),
		cmocka_unit_test(test_length_beyond_the_message_rfc4171_5_3),
		cmocka_unit_test(test_values_of_another_length),
		cmocka_unit_test(test_portal_groups_rfc4171_5_7_5_2),
		cmocka_unit_test(test_state_changes_rfc4171_5_6_5_8),
		cmocka_unit_test(test_status_rfc4171_5_4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
