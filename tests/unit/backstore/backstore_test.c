/* SPDX-License-Identifier: BSD-2-Clause */
/* backstore_test.c: backstore.c with ram, null and a store that records
 * requests. */
#include "backstore/backstore.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "req.h"

#define SIZE 16384u

static uint8_t memory[SIZE];
static unsigned released;

static void release(void *arg)
{
	assert_ptr_equal(arg, memory);
	released++;
}

static struct bs *ram(void)
{
	for (size_t i = 0; i < SIZE; i++)
		memory[i] = (uint8_t)(i * 7 + (i >> 8));
	return bs_ram_new("ram:16K", memory, SIZE, 512, release, memory);
}

/* run submits a request that completes at once, and returns its result. */
static int run(struct bs *b, enum bs_op op, unsigned flags, uint64_t off,
	       uint64_t len, void *data)
{
	struct test_req t;

	test_submit(b, &t, op, flags, off, len, data);
	assert_int_equal(t.done, 1);
	return t.req.result;
}

/* ---- a store that writes down what reached it ---- */

struct recorder {
	struct bs bs;
	enum bs_op ops[8];
	unsigned flags[8];
	unsigned n;
	unsigned fail_at; /* the nth fails; 0: none */
};

static void recorder_submit(struct bs *b, struct bs_req *req)
{
	struct recorder *r = container_of(b, struct recorder, bs);

	r->ops[r->n] = req->op;
	r->flags[r->n++] = req->flags;
	bs_complete(req, r->n == r->fail_at ? ERR_MEDIUM : 0);
}

static int recorder_lend(struct bs *b, uint64_t off, size_t len,
			 struct iovec *iov)
{
	(void)b;
	(void)off;
	(void)len;
	(void)iov;
	return 0;
}

static void recorder_close(struct bs *b)
{
	(void)b;
}

static const struct bs_ops recorder_ops = {
	.submit = recorder_submit,
	.lend = recorder_lend,
	.close = recorder_close,
};

static struct recorder recorder(unsigned caps)
{
	return (struct recorder){ .bs = { .ops = &recorder_ops,
					  .size = SIZE,
					  .block_size = 512,
					  .caps = caps } };
}

static void test_submit_range(void **state)
{
	static const struct {
		uint64_t off, len;
		int result;
	} cases[] = {
		{ 0, SIZE, 0 },
		{ SIZE - 512, 512, 0 },
		{ SIZE, 0, 0 },
		{ SIZE - 512, 1024, ERR_RANGE },
		{ SIZE, 512, ERR_RANGE },
		{ SIZE + 512, 0, ERR_RANGE },
		{ UINT64_MAX - 511, 512, ERR_RANGE },
		{ 512, UINT64_MAX - 511, ERR_RANGE },
		{ 1, 512, ERR_RANGE },
		{ 512, 513, ERR_RANGE },
	};
	static const enum bs_op ops[] = { BS_UNMAP, BS_ZERO, BS_EXTENTS };
	struct bs *b = ram();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t k = 0; k < ARRAY_LEN(ops); k++)
			assert_int_equal(run(b, ops[k], 0, cases[i].off,
					     cases[i].len, NULL),
					 cases[i].result);
	bs_close(b);
}

static void test_submit_read_only(void **state)
{
	struct bs *b = ram();
	uint8_t data[512] = { 0 }, before = memory[0];

	(void)state;
	b->caps |= BS_CAP_READ_ONLY;
	assert_int_equal(run(b, BS_WRITE, 0, 0, 512, data), ERR_READ_ONLY);
	assert_int_equal(run(b, BS_ZERO, 0, 0, 512, NULL), ERR_READ_ONLY);
	assert_int_equal(run(b, BS_UNMAP, 0, 0, 512, NULL), ERR_READ_ONLY);
	assert_int_equal(memory[0], before);
	assert_int_equal(run(b, BS_READ, 0, 0, 512, data), 0);
	assert_int_equal(run(b, BS_FLUSH, 0, 0, 0, NULL), 0);
	bs_close(b);
}

static void test_submit_unsupported(void **state)
{
	struct recorder r = recorder(0);
	struct iovec iov;

	(void)state;
	assert_int_equal(run(&r.bs, BS_UNMAP, 0, 0, 512, NULL),
			 ERR_UNSUPPORTED);
	assert_int_equal(run(&r.bs, BS_EXTENTS, 0, 0, 512, NULL),
			 ERR_UNSUPPORTED);
	assert_int_equal(bs_lend(&r.bs, 0, 512, &iov), ERR_UNSUPPORTED);
	assert_int_equal(r.n, 0);
}

static void test_submit_fua_becomes_write_then_flush(void **state)
{
	static const enum bs_op ops[] = { BS_WRITE, BS_ZERO };
	uint8_t data[512] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct recorder r = recorder(BS_CAP_WRITE_CACHE);
		struct test_req t;

		test_submit(&r.bs, &t, ops[i], BS_FUA, 0, 512,
			    ops[i] == BS_WRITE ? data : NULL);
		assert_int_equal(t.done, 1);
		assert_int_equal(t.req.result, 0);
		assert_int_equal(t.req.op, ops[i]);
		assert_int_equal(t.req.flags, BS_FUA);
		assert_int_equal(r.n, 2);
		assert_int_equal(r.ops[0], ops[i]);
		assert_int_equal(r.flags[0], 0);
		assert_int_equal(r.ops[1], BS_FLUSH);
	}
}

static void test_submit_fua_first_or_second_step_fails(void **state)
{
	uint8_t data[512] = { 0 };

	(void)state;
	for (unsigned nth = 1; nth <= 2; nth++) {
		struct recorder r = recorder(BS_CAP_WRITE_CACHE);
		struct test_req t;

		r.fail_at = nth;
		test_submit(&r.bs, &t, BS_WRITE, BS_FUA, 0, 512, data);
		assert_int_equal(t.done, 1);
		assert_int_equal(t.req.result, ERR_MEDIUM);
		assert_int_equal(t.req.op, BS_WRITE);
		assert_int_equal(t.req.flags, BS_FUA);
		assert_int_equal(r.n, nth);
	}
}

static void test_submit_fua_passes_where_native_or_no_cache(void **state)
{
	static const unsigned caps[] = { BS_CAP_WRITE_CACHE | BS_CAP_FUA, 0 };
	uint8_t data[512] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
		struct recorder r = recorder(caps[i]);

		assert_int_equal(run(&r.bs, BS_WRITE, BS_FUA, 0, 512, data), 0);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.flags[0], BS_FUA);
	}
}

static void test_ram_write_read_zero_unmap(void **state)
{
	struct bs *b = ram();
	uint8_t in[1024], out[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(255 - i);
	assert_int_equal(run(b, BS_WRITE, BS_FUA, 512, 1024, in), 0);
	assert_int_equal(run(b, BS_READ, 0, 512, 1024, out), 0);
	assert_memory_equal(in, out, 1024);
	assert_memory_equal(memory + 512, in, 1024);
	assert_int_equal(memory[511], (uint8_t)(511 * 7 + 1));
	assert_int_equal(run(b, BS_ZERO, 0, 512, 512, NULL), 0);
	assert_int_equal(run(b, BS_ZERO, BS_MAY_UNMAP, 1024, 512, NULL), 0);
	for (size_t i = 512; i < 1536; i++)
		assert_int_equal(memory[i], 0);
	assert_int_equal(run(b, BS_UNMAP, 0, 1536, 512, NULL), 0);
	assert_int_equal(memory[1536] | memory[2047], 0);
	assert_int_equal(memory[2048], (uint8_t)(2048 * 7 + 8));
	bs_close(b);
}

static void test_ram_lends_its_memory(void **state)
{
	struct bs *b = ram();
	struct iovec iov;

	(void)state;
	assert_int_equal(bs_lend(b, 4096, 512, &iov), 0);
	assert_ptr_equal(iov.iov_base, memory + 4096);
	assert_int_equal(iov.iov_len, 512);
	assert_int_equal(bs_lend(b, SIZE, 1, &iov), ERR_RANGE);
	bs_close(b);
}

static void test_ram_close_releases_once(void **state)
{
	(void)state;
	released = 0;
	bs_close(ram());
	assert_int_equal(released, 1);
}

static uint64_t punched_off, punched_len;
static int punch_result;

static int punch(void *arg, uint64_t off, uint64_t len)
{
	assert_ptr_equal(arg, memory);
	punched_off = off;
	punched_len = len;
	return punch_result;
}

static void extents(void *arg, uint64_t off, uint64_t len, uint64_t *run_len,
		    bool *mapped)
{
	(void)arg;
	*run_len = MIN(len, 1024);
	*mapped = off == 0;
}

static uint64_t used(void *arg)
{
	assert_ptr_equal(arg, memory);
	return 1536;
}

static const struct bs_ram_ops fake_ram_ops = {
	.punch = punch,
	.extents = extents,
	.used = used,
};

static void test_ram_ops_punch_or_zeros(void **state)
{
	struct bs *b = ram();
	uint8_t before = memory[512];

	(void)state;
	bs_ram_set_ops(b, &fake_ram_ops);
	punch_result = 0;
	assert_int_equal(run(b, BS_UNMAP, 0, 512, 512, NULL), 0);
	assert_int_equal(punched_off, 512);
	assert_int_equal(punched_len, 512);
	assert_int_equal(memory[512], before); /* pages still to punch */
	punch_result = ERR_UNSUPPORTED;
	assert_int_equal(run(b, BS_UNMAP, 0, 512, 512, NULL), 0);
	assert_int_equal(memory[512], 0);
	bs_close(b);
}

static void test_ram_extents(void **state)
{
	struct bs *b = ram();
	struct test_req t;

	(void)state;
	test_submit(b, &t, BS_EXTENTS, 0, 512, 4096, NULL);
	assert_int_equal(t.req.result, 0);
	assert_int_equal(t.req.extent_len, 4096);
	assert_true(t.req.extent_mapped);
	bs_ram_set_ops(b, &fake_ram_ops);
	test_submit(b, &t, BS_EXTENTS, 0, 512, 4096, NULL);
	assert_int_equal(t.req.extent_len, 1024);
	assert_false(t.req.extent_mapped);
	bs_close(b);
}

static void test_space_of_those_who_know(void **state)
{
	struct bs *b = ram();
	struct test_req t;

	(void)state;
	test_submit(b, &t, BS_SPACE, 0, 0, 0, NULL);
	assert_int_equal(t.req.result, ERR_UNSUPPORTED);
	bs_ram_set_ops(b, &fake_ram_ops);
	test_submit(b, &t, BS_SPACE, 0, 0, 0, NULL);
	assert_int_equal(t.req.result, 0);
	assert_int_equal(t.req.space_used, 1536);
	assert_int_equal(t.req.space_left, b->size - 1536);
	bs_close(b);
	b = bs_null_new("null:1M", 1 << 20, 512);
	test_submit(b, &t, BS_SPACE, 0, 0, 0, NULL);
	assert_int_equal(t.req.result, 0);
	assert_int_equal(t.req.space_used, 0);
	assert_int_equal(t.req.space_left, 1 << 20);
	bs_close(b);
}

/* ---- memory that is empty at first ---- */

#define WIDE (1u << 20) /* 256 pages: several words of the map */

static int no_punch(void *arg, uint64_t off, uint64_t len)
{
	(void)arg;
	(void)off;
	(void)len;
	return ERR_UNSUPPORTED; /* zeros, as after a punch */
}

static const struct bs_ram_ops empty_ops = {
	.punch = no_punch,
	.extents = extents,
	.used = used,
	.is_empty = true,
};

/* Written blocks are lent in place; unwritten ones as zeros, up to the size of
 * the zeros that ram.c has; never a mix of both. */
static void test_empty_ram_lends_one_or_the_other(void **state)
{
	const size_t most = 1 << 20, size = 4 * most;
	uint8_t *mem = malloc(size), *data = malloc(2 * most);
	struct bs *b = bs_ram_new("ram:w", mem, size, 512, NULL, NULL);
	struct iovec iov;

	(void)state;
	memset(mem, 0xee, size); /* must not be seen */
	memset(data, 0x11, 2 * most);
	assert_int_equal(bs_ram_set_ops(b, &empty_ops), 0);
	assert_int_equal(bs_lend(b, 512, most, &iov), 0);
	assert_int_equal(iov.iov_len, most);
	for (size_t i = 0; i < most; i++)
		assert_int_equal(((const uint8_t *)iov.iov_base)[i], 0);
	assert_int_equal(bs_lend(b, 512, most + 512, &iov), ERR_UNSUPPORTED);
	assert_int_equal(run(b, BS_WRITE, 0, 0, 2 * most, data), 0);
	assert_int_equal(bs_lend(b, 0, 2 * most, &iov), 0);
	assert_ptr_equal(iov.iov_base, mem);
	assert_int_equal(iov.iov_len, 2 * most);
	assert_int_equal(bs_lend(b, 2 * most - 512, 1024, &iov),
			 ERR_UNSUPPORTED);
	assert_int_equal(bs_lend(b, 2 * most, 512, &iov), 0);
	assert_int_equal(*(const uint8_t *)iov.iov_base, 0);
	bs_close(b);
	free(mem);
	free(data);
}

/* Random writes, zeros and unmaps against a plain copy. */
static void test_empty_ram_against_a_model(void **state)
{
	static uint8_t mem[WIDE], model[WIDE], data[WIDE], back[WIDE];
	uint64_t seed = 7;
	struct bs *b = bs_ram_new("ram:w", mem, WIDE, 512, NULL, NULL);
	struct test_req t;

	(void)state;
	assert_int_equal(bs_ram_set_ops(b, &empty_ops), 0);
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t off, len;
		struct iovec iov;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		off = (seed >> 20) % (WIDE / 512) * 512;
		len = (1 + (seed >> 40) % (i % 8 ? 40 : 700)) * 512;
		len = MIN(len, WIDE - off);
		switch (seed >> 60) {
		case 0:
		case 1:
			memset(data, (int)(i | 1), len);
			assert_int_equal(run(b, BS_WRITE, 0, off, len, data),
					 0);
			memset(model + off, (int)(i | 1), len);
			break;
		case 2:
			assert_int_equal(run(b, BS_ZERO, 0, off, len, NULL), 0);
			memset(model + off, 0, len);
			break;
		case 3:
		case 4:
			assert_int_equal(run(b, BS_UNMAP, 0, off, len, NULL),
					 0);
			memset(model + off, 0, len);
			break;
		default:
			assert_int_equal(run(b, BS_READ, 0, off, len, back), 0);
			assert_memory_equal(back, model + off, len);
			if (!bs_lend(b, off, len, &iov))
				assert_memory_equal(iov.iov_base, model + off,
						    len);
		}
	}
	/* the extents cover all pages, and match the writes */
	for (uint64_t at = 0; at < WIDE; at += t.req.extent_len) {
		test_submit(b, &t, BS_EXTENTS, 0, at, WIDE - at, NULL);
		assert_true(t.req.extent_len > 0);
		assert_int_equal(t.req.extent_len % 4096, 0);
		for (uint64_t i = 0; i < t.req.extent_len; i++)
			if (!t.req.extent_mapped)
				assert_int_equal(model[at + i], 0);
	}
	assert_int_equal(run(b, BS_UNMAP, 0, 0, WIDE, NULL), 0);
	test_submit(b, &t, BS_EXTENTS, 0, 0, WIDE, NULL);
	assert_false(t.req.extent_mapped);
	assert_int_equal(t.req.extent_len, WIDE);
	/* a hole is lent as zeros outside the memory */
	memset(mem, 0xee, WIDE); /* must not be seen */
	assert_int_equal(run(b, BS_READ, 0, 0, 512, back), 0);
	assert_int_equal(back[0], 0);
	bs_close(b);
}

/* Bytes that malloc has given to the program. */
static size_t allocated(void)
{
	const struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void test_empty_ram_close_frees_all(void **state)
{
	const unsigned rounds = 1000;
	size_t before = allocated();

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct bs *b =
			bs_ram_new("ram:16K", memory, SIZE, 512, NULL, NULL);

		assert_int_equal(bs_ram_set_ops(b, &empty_ops), 0);
		bs_close(b);
	}
	/* malloc caches a few chunks, fewer than one for each round */
	assert_true(allocated() < before + rounds * 16);
}

static void test_null_reads_zeros_drops_writes(void **state)
{
	struct bs *b = bs_null_new("null:1T", (uint64_t)1 << 40, 4096);
	uint8_t data[4096];
	struct iovec iov;

	(void)state;
	memset(data, 0xaa, sizeof(data));
	assert_int_equal(run(b, BS_WRITE, BS_FUA, 0, 4096, data), 0);
	assert_int_equal(data[0], 0xaa);
	assert_int_equal(run(b, BS_READ, 0, 0, 4096, data), 0);
	for (size_t i = 0; i < sizeof(data); i++)
		assert_int_equal(data[i], 0);
	assert_int_equal(bs_lend(b, 1 << 30, 1 << 20, &iov), 0);
	assert_int_equal(((uint8_t *)iov.iov_base)[(1 << 20) - 1], 0);
	assert_int_equal(bs_lend(b, 0, 1 << 30, &iov), ERR_UNSUPPORTED);
	bs_close(b);
}

static void test_uuid_same_store_same_uuid(void **state)
{
	struct bs *a = bs_null_new("null:1M", 1 << 20, 512);
	struct bs *b = bs_null_new("null:1M", 1 << 20, 512);
	struct bs *other_name = bs_null_new("null:2M", 1 << 20, 512);
	struct bs *other_size = bs_null_new("null:1M", 1 << 21, 512);

	(void)state;
	assert_memory_equal(a->uuid, b->uuid, 16);
	assert_memory_not_equal(a->uuid, other_name->uuid, 16);
	assert_memory_not_equal(a->uuid, other_size->uuid, 16);
	assert_int_equal(a->uuid[6] >> 4, 8); /* version, RFC 9562 §5.8 */
	assert_int_equal(a->uuid[8] >> 6, 2); /* variant, RFC 9562 §4.1 */
	bs_close(a);
	bs_close(b);
	bs_close(other_name);
	bs_close(other_size);
}

static void test_set_name_is_cut_to_fit(void **state)
{
	char longer[400];
	struct bs *b;

	(void)state;
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	b = bs_null_new(longer, 4096, 512);
	assert_int_equal(strlen(b->name), sizeof(b->name) - 1);
	bs_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_submit_range),
		cmocka_unit_test(test_submit_read_only),
		cmocka_unit_test(test_submit_unsupported),
		cmocka_unit_test(test_submit_fua_becomes_write_then_flush),
		cmocka_unit_test(test_submit_fua_first_or_second_step_fails),
		cmocka_unit_test(
			test_submit_fua_passes_where_native_or_no_cache),
		cmocka_unit_test(test_ram_write_read_zero_unmap),
		cmocka_unit_test(test_ram_lends_its_memory),
		cmocka_unit_test(test_ram_close_releases_once),
		cmocka_unit_test(test_ram_ops_punch_or_zeros),
		cmocka_unit_test(test_ram_extents),
		cmocka_unit_test(test_space_of_those_who_know),
		cmocka_unit_test(test_empty_ram_lends_one_or_the_other),
		cmocka_unit_test(test_empty_ram_against_a_model),
		cmocka_unit_test(test_empty_ram_close_frees_all),
		cmocka_unit_test(test_null_reads_zeros_drops_writes),
		cmocka_unit_test(test_uuid_same_store_same_uuid),
		cmocka_unit_test(test_set_name_is_cut_to_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
