/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * abi_test.c: the binary interface of libiser (iser.h). A size or an offset that
 * differs from these tables breaks programs built against an older header: a
 * new member takes the place of a reserved one, or the soname changes.
 */
#include <iser/rdma.h>
#include <iser/unit.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

struct row {
	const char *what;
	size_t is, was;
};

#define SIZE(type, was)           \
 {                                \
#  type, sizeof(struct type), was \
 }
#define AT(type, member, was)                             \
 {                                                        \
#  type "." #  member, offsetof(struct type, member), was \
 }

static void check_rows(const struct row *rows, size_t n)
{
	unsigned differ = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].is != rows[i].was) {
			print_error("%s: %zu, was %zu\n", rows[i].what,
				    rows[i].is, rows[i].was);
			differ++;
		}
	assert_int_equal(differ, 0);
}

/* The structs that a caller allocates, with 8-byte pointers. */
static void test_layout(void **state)
{
	static const struct row rows[] = {
		SIZE(iser_url, 1760),
		AT(iser_url, host, 32),
		AT(iser_url, lun, 516),
		AT(iser_url, initiator, 1224),
		AT(iser_url, timeout, 1480),
		AT(iser_url, priority, 1496),
		AT(iser_url, connections, 1500),
		AT(iser_url, login_timeout, 1508),
		AT(iser_url, paths, 1532),
		AT(iser_url, alua, 1572),
		AT(iser_url, auth, 1588),
		AT(iser_url, max_outstanding_r2t, 1620),
		AT(iser_url, data_pdu_in_any_order, 1624),
		AT(iser_url, initial_r2t, 1626),
		AT(iser_url, first_burst_length, 1628),
		AT(iser_url, no_mpa_crc, 1640),
		AT(iser_url, task_reporting, 1641),
		AT(iser_url, iser_hello, 1642),
		AT(iser_url, reserved, 1648),
		SIZE(iser_params, 184),
		AT(iser_params, tpgt, 52),
		AT(iser_params, connections, 56),
		AT(iser_params, reserved, 64),
		SIZE(iser_counters, 176),
		AT(iser_counters, reserved, 48),
		SIZE(iser_io, 488),
		AT(iser_io, cdb, 4),
		AT(iser_io, iov, 48),
		AT(iser_io, done, 64),
		AT(iser_io, priority, 80),
		AT(iser_io, reserved, 88),
		AT(iser_io, err, 120),
		AT(iser_io, transferred, 136),
		AT(iser_io, sense, 142),
		AT(iser_io, reserved_result, 400),
		SIZE(iser_bidi, 576),
		SIZE(iser_capacity, 96),
		AT(iser_capacity, reserved, 32),
		SIZE(iser_extent, 24),
		SIZE(iser_parameters, 2072),
		SIZE(iser_unmap_range, 16),
		SIZE(iser_path, 840),
		AT(iser_path, group, 524),
		AT(iser_path, commands, 536),
		AT(iser_path, reason, 556),
		AT(iser_path, reserved, 776),
		SIZE(iser_call, 48),
		AT(iser_call, run, 32),
		SIZE(iser_unit_info, 192),
		AT(iser_unit_info, vendor, 32),
		AT(iser_unit_info, reserved, 64),
		SIZE(iser_range, 24),
		SIZE(iser_request, 192),
		AT(iser_request, iov, 24),
		AT(iser_request, reserved, 64),
		AT(iser_request, err, 96),
		AT(iser_request, opcode, 112),
		AT(iser_request, reserved_result, 120),
		SIZE(iser_rdma_options, 96),
		AT(iser_rdma_options, reserved, 32),
		SIZE(iser_rdma_callbacks, 48),
		SIZE(iser_rdma_mr, 56),
		SIZE(iser_rdma_atomic, 56),
		SIZE(iser_rdma_wr, 312),
		AT(iser_rdma_wr, reserved, 64),
		AT(iser_rdma_wr, err, 96),
		SIZE(iser_rdma_recv, 216),
		AT(iser_rdma_recv, reserved, 32),
		AT(iser_rdma_recv, err, 64),
		SIZE(iser_rdma_info, 104),
		AT(iser_rdma_info, reserved, 40),
		SIZE(iser_rdma_stats, 144),
		AT(iser_rdma_stats, reserved, 80),
	};

	(void)state;
	if (sizeof(void *) != 8)
		skip();
	check_rows(rows, ARRAY_LEN(rows));
}

static void test_errors(void **state)
{
	static const struct row rows[] = {
		{ "ISER_E_NOMEM", -ISER_E_NOMEM, 1 },
		{ "ISER_E_SCSI", -ISER_E_SCSI, 9 },
		{ "ISER_E_ABORTED", -ISER_E_ABORTED, 13 },
		{ "ISER_E_SHORT", -ISER_E_SHORT, 14 },
		{ "ISER_E_MISCOMPARE", -ISER_E_MISCOMPARE, 15 },
		{ "ISER_E_NO_PATH", -ISER_E_NO_PATH, 16 },
		{ "ISER_E_CHANGED", -ISER_E_CHANGED, 17 },
	};

	(void)state;
	check_rows(rows, ARRAY_LEN(rows));
}

/* The library must not ignore a member that only a later version has. */
static void test_reserved_url(void **state)
{
	struct iser_context *ctx = iser_context_new("iqn.2026-01.org.a:b");
	struct iser_url u = { 0 };
	char why[200];
	int err;

	(void)state;
	assert_int_equal(iser_url_parse(&u,
					"iscsi://127.0.0.1:1/iqn.2026-01.a/0",
					false, why, sizeof(why)),
			 0);
	u.reserved[13] = 1;
	assert_null(iser_connect(ctx, &u, &err));
	assert_int_equal(err, ISER_E_INVALID);
	assert_non_null(strstr(iser_message(ctx), "reserved"));
	u.reserved[13] = 0;
	u.reserved_bytes[4] = 1;
	assert_null(iser_connect(ctx, &u, &err));
	assert_int_equal(err, ISER_E_INVALID);
	assert_null(iser_connect_paths(ctx, &u, 1, &err));
	assert_int_equal(err, ISER_E_INVALID);
	iser_context_free(ctx);
}

static void test_reserved_unmap(void **state)
{
	struct iser_unmap_range r[2] = { { .blocks = 1 }, { .blocks = 1 } };
	struct iser_parameters p;
	struct iser_io io = { 0 };

	(void)state;
	assert_int_equal(iser_prep_unmap(&io, 0, &p, r, 2), 0);
	r[1].reserved = 1;
	assert_int_equal(iser_prep_unmap(&io, 0, &p, r, 2), ISER_E_INVALID);
}

/* The version of the header is that of the library. */
static void test_version(void **state)
{
	char begin[32];

	(void)state;
	snprintf(begin, sizeof(begin), "%d.%d.", ISER_VERSION_MAJOR,
		 ISER_VERSION_MINOR);
	assert_int_equal(strncmp(iser_version(), begin, strlen(begin)), 0);
}

static void test_reserved_rdma(void **state)
{
	struct iser_context *ctx = iser_context_new("iqn.2026-01.org.a:b");
	static const struct iser_rdma_callbacks none;
	struct iser_rdma_options o = { .reserved = { [7] = 1 } };
	int err;

	(void)state;
	assert_null(iser_rdma_connect_start(ctx, "127.0.0.1", 1, &o, NULL, 0,
					    &none, NULL, &err));
	assert_int_equal(err, ISER_E_INVALID);
	assert_null(
		iser_rdma_listen(ctx, "127.0.0.1:0", 0, &o, NULL, NULL, &err));
	assert_int_equal(err, ISER_E_INVALID);
	iser_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_reserved_url),
		cmocka_unit_test(test_reserved_unmap),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_reserved_rdma),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
