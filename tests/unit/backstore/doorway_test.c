/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doorway_test.c: what becomes of each request by what a store can do
 * (tests/vectors/backstore/doorway.txt): what reaches the store, in which
 * order, with which flags, and how the request ends. Names and texts.
 */
#include "backstore/backstore.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "req.h"
#include "unit/transcript.h"

#define SIZE 8192u

static struct transcript script;
static struct bs store;
static struct bs_protection protection;
static unsigned left; /* requests until one fails; 0: none does */

static void submit(struct bs *b, struct bs_req *req)
{
	fprintf(script.out, " %d(%x)", req->op, req->flags);
	req->extent_len = req->op == BS_EXTENTS ? 77 : req->extent_len;
	req->size_now = 2 * SIZE;
	bs_complete(req, left && --left == 0 ? ERR_MEDIUM : 0);
	(void)b;
}

static int lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	(void)b;
	(void)off;
	*iov = (struct iovec){ NULL, len };
	return 0;
}

static void close_store(struct bs *b)
{
	(void)b;
}

static const struct bs_ops ops = {
	.submit = submit,
	.lend = lend,
	.close = close_store,
};

static void make(unsigned caps, bool protects)
{
	store = (struct bs){ .ops = &ops,
			     .size = SIZE,
			     .block_size = 512,
			     .caps = caps,
			     .protection = protects ? &protection : NULL };
}

/* One request; what it shows that the usual one does not. */
static void one(enum bs_op op, unsigned flags, uint64_t off, uint64_t len)
{
	static uint8_t data[SIZE];
	bool moves = op == BS_READ || op == BS_WRITE;
	struct test_req t;

	test_submit(&store, &t, op, flags, off, len, moves ? data : NULL);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.req.op, op);
	assert_int_equal(t.req.flags, flags);
	assert_int_equal(t.req.nhooks, 0);
	assert_int_equal(store.size,
			 op == BS_SIZE && !t.req.result ? 2 * SIZE : SIZE);
	store.size = SIZE;
	if (t.req.result)
		fprintf(script.out, " error %d", -t.req.result);
	if (t.req.extent_len)
		fprintf(script.out, " extent %d", (int)t.req.extent_len);
}

/* Each request with and without FUA; the first and the second step fail. */
static void all_requests(unsigned caps, bool protects)
{
	fprintf(script.out, "caps %03x%s\n", caps,
		protects ? ", protection" : "");
	for (unsigned op = BS_READ; op <= BS_CHECK; op++) {
		fprintf(script.out, "  op %u:", op);
		for (unsigned i = 0; i < 6; i++) {
			unsigned flags =
				i % 2 ? BS_FUA | BS_MAY_UNMAP : BS_MAY_UNMAP;

			make(caps, protects);
			left = i / 2;
			one((enum bs_op)op, flags, 512, 1024);
			fprintf(script.out, i < 5 ? "," : "\n");
		}
	}
}

static void test_requests_by_capabilities(void **state)
{
	const unsigned all = 0x7ff;

	(void)state;
	transcript_begin(&script);
	all_requests(0, false);
	all_requests(0, true);
	all_requests(all, false);
	all_requests(all, true);
	all_requests(all & ~BS_CAP_READ_ONLY, true);
	for (unsigned cap = 1; cap < all; cap <<= 1) {
		all_requests(cap, true);
		all_requests(cap | BS_CAP_WRITE_CACHE, true);
		all_requests((all & ~BS_CAP_READ_ONLY) & ~cap, true);
	}
	transcript_compare(&script, "doorway");
}

static void test_ranges(void **state)
{
	static const struct {
		uint64_t off, len;
	} ranges[] = {
		{ 0, SIZE },	   { SIZE - 512, 512 },
		{ SIZE, 0 },	   { SIZE, 512 },
		{ SIZE + 512, 0 }, { 1, 512 },
		{ 512, 511 },	   { 256, 256 },
		{ 512, 0 },	   { UINT64_MAX - 511, 512 },
	};

	(void)state;
	transcript_begin(&script);
	for (unsigned op = BS_READ; op <= BS_CHECK; op++) {
		fprintf(script.out, "op %u:", op);
		for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
			make(0x7df, true);
			left = 0;
			one((enum bs_op)op, 0, ranges[i].off, ranges[i].len);
			fputc(i + 1 < ARRAY_LEN(ranges) ? ',' : '\n',
			      script.out);
		}
	}
	transcript_compare(&script, "ranges");
}

static void test_lending(void **state)
{
	struct iovec iov;

	(void)state;
	make(0x7ff & ~BS_CAP_LEND, false);
	assert_int_equal(bs_lend(&store, 0, 512, &iov), ERR_UNSUPPORTED);
	make(BS_CAP_LEND, false);
	assert_int_equal(bs_lend(&store, 0, SIZE, &iov), 0);
	assert_int_equal(iov.iov_len, SIZE);
	assert_int_equal(bs_lend(&store, 0, SIZE + 1, &iov), ERR_RANGE);
	assert_int_equal(bs_lend(&store, SIZE, 1, &iov), ERR_RANGE);
	bs_close(&store);
	assert_int_equal(store.state, BS_CLOSED);
}

static void test_troubles_have_texts(void **state)
{
	const char *texts[BS_SHRUNK + 1];

	(void)state;
	assert_null(bs_trouble_str(BS_SOUND));
	for (unsigned i = BS_DELETED; i <= BS_SHRUNK; i++) {
		texts[i] = bs_trouble_str((enum bs_trouble)i);
		assert_non_null(texts[i]);
		for (unsigned k = BS_DELETED; k < i; k++)
			assert_string_not_equal(texts[i], texts[k]);
	}
}

/* UUIDs are in the configuration of initiators: they stay as they are. */
static void test_uuids_of_keys(void **state)
{
	static const struct {
		const char *key;
		uint8_t uuid[16];
	} rows[] = {
		{ "",
		  { 0xfd, 0xbd, 0xf6, 0xac, 0x4f, 0xc5, 0x8e, 0x7f, 0x8b, 0x4f,
		    0x4a, 0xff, 0xf9, 0x37, 0x92, 0x2c } },
		{ "a",
		  { 0x2e, 0xf7, 0xd1, 0x31, 0x6e, 0xb8, 0x8f, 0x71, 0xa4, 0x4a,
		    0xc9, 0xc9, 0x0a, 0x6a, 0x79, 0x7b } },
		{ "ram:64M",
		  { 0xad, 0xab, 0xf9, 0x55, 0x77, 0xc8, 0x87, 0x14, 0xad, 0x26,
		    0x9f, 0x95, 0x3f, 0x4d, 0xa8, 0xc0 } },
		{ "/srv/disk.img",
		  { 0xd2, 0xe3, 0xd8, 0x72, 0x11, 0xf8, 0x8e, 0x88, 0x8c, 0x13,
		    0x8c, 0x61, 0x40, 0xc5, 0xc2, 0x1e } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t uuid[16];

		bs_uuid_derive(uuid, rows[i].key, strlen(rows[i].key));
		assert_memory_equal(uuid, rows[i].uuid, 16);
		assert_int_equal(uuid[6] >> 4, 8); /* RFC 9562 §5.8 */
		assert_int_equal(uuid[8] >> 6, 2);
	}
}

static void test_failed_flushes_are_counted(void **state)
{
	uint32_t others = 5;

	(void)state;
	make(0, false);
	assert_int_equal(bs_flush_failures(&store), 0);
	store.failures[0] = &store.own_failures;
	bs_flush_failed(&store);
	assert_int_equal(bs_flush_failures(&store), 1);
	store.failures[1] = &others;
	assert_int_equal(bs_flush_failures(&store), 6);
	bs_flush_failed(&store);
	assert_int_equal(bs_flush_failures(&store), 7);
	assert_int_equal(others, 5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_by_capabilities),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_lending),
		cmocka_unit_test(test_troubles_have_texts),
		cmocka_unit_test(test_uuids_of_keys),
		cmocka_unit_test(test_failed_flushes_are_counted),
	};

	if (!transcript_args(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
