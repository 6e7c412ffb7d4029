/* SPDX-License-Identifier: BSD-2-Clause */
/* crypt_test.c: the filter that encrypts: published vectors, holes, waiting for
 * bounce buffers, a new key; and each allocation failing once. */
#include <string.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "fail_alloc.h"
#include "req.h"

#define MIB ((size_t)1 << 20)

/* IEEE 1619-2007, annex B: vectors 10 to 14 are XTS-AES-256 over 512 bytes,
 * 00 01 .. ff twice, with these keys. */
static const uint8_t KEY[BS_CRYPT_KEY] = {
	0x27, 0x18, 0x28, 0x18, 0x28, 0x45, 0x90, 0x45, 0x23, 0x53, 0x60,
	0x28, 0x74, 0x71, 0x35, 0x26, 0x62, 0x49, 0x77, 0x57, 0x24, 0x70,
	0x93, 0x69, 0x99, 0x59, 0x57, 0x49, 0x66, 0x96, 0x76, 0x27, 0x31,
	0x41, 0x59, 0x26, 0x53, 0x58, 0x97, 0x93, 0x23, 0x84, 0x62, 0x64,
	0x33, 0x83, 0x27, 0x95, 0x02, 0x88, 0x41, 0x97, 0x16, 0x93, 0x99,
	0x37, 0x51, 0x05, 0x82, 0x09, 0x74, 0x94, 0x45, 0x92,
};

static const struct {
	uint64_t sector;
	const char *begins; /* the first 64 bytes of the ciphertext */
	const char *ends;   /* the last 16 */
} vectors[] = {
	{ 0xff,
	  "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b"
	  "5d31e276f8fe4a8d66b317f9ac683f44680a86ac35adfc3345befecb4bb188fd",
	  "c4f36ffda9fcea70b9c6e693e148c151" },
	{ 0xffff,
	  "77a31251618a15e6b92d1d66dffe7b50b50bad552305ba0217a610688eff7e11"
	  "e1d0225438e093242d6db274fde801d4cae06f2092c728b2478559df58e837c2",
	  "" },
	{ 0xffffff,
	  "e387aaa58ba483afa7e8eb469778317ecf4cf573aa9d4eac23f2cdf914e4e200"
	  "a8b490e42ee646802dc6ee2b471b278195d60918ececb44bf79966f83faba049",
	  "" },
	{ 0xffffffff,
	  "bf53d2dade78e822a4d949a9bc6766b01b06a8ef70d26748c6a7fc36d80ae4c5"
	  "520f7c4ab0ac8544424fa405162fef5a6b7f229498063618d39f0003cb5fb8d1",
	  "" },
	{ 0xffffffffff,
	  "64497e5a831e4a932c09be3e5393376daa599548b816031d224bbf50a818ed23"
	  "50eae7e96087c8a0db51ad290bd00c1ac1620857635bf246c176ab463be30b80",
	  "" },
};

/* ---- a store of 2^60 bytes that has the one sector it was given last ---- */

struct one {
	struct bs bs;
	uint8_t sector[512];
};

static struct one one;

static void one_submit(struct bs *b, struct bs_req *req)
{
	struct one *o = container_of(b, struct one, bs);

	if (req->op == BS_WRITE)
		bufv_copy_out(&req->data, 0, o->sector, 512);
	else
		bufv_copy_in(&req->data, 0, o->sector, 512);
	bs_complete(req, 0);
}

static void one_close(struct bs *b)
{
	(void)b;
}

static const struct bs_ops one_ops = {
	.submit = one_submit,
	.close = one_close,
};

/* ---- what the filter asks for ---- */

struct keeper {
	uint8_t next[BS_CRYPT_KEY], kept[BS_CRYPT_KEY];
	bool no_random, in_force, released;
	int result;
	unsigned asked;
};

static struct keeper keeper;

static bool give_random(void *arg, uint8_t *p, size_t n)
{
	struct keeper *k = arg;

	memcpy(p, k->next, n);
	return !k->no_random;
}

static void keep(void *arg, struct bs_key_change *c)
{
	struct keeper *k = arg;

	memcpy(k->kept, c->key, sizeof(k->kept));
	k->asked++;
	c->in_force = k->in_force;
	c->result = k->result;
	c->done(c);
}

static void release(void *arg)
{
	((struct keeper *)arg)->released = true;
}

static struct bs *encrypted(struct bs *next)
{
	const struct bs_crypt_config cfg = {
		.key = KEY,
		.nworkers = 2,
		.random = give_random,
		.keep = keep,
		.release = release,
		.arg = &keeper,
	};

	keeper = (struct keeper){ .in_force = true };
	for (size_t i = 0; i < sizeof(keeper.next); i++)
		keeper.next[i] = (uint8_t)(i * 7);
	return bs_crypt_new(next, &cfg);
}

static uint8_t medium[8 << 20], sent[8 << 20], got[8 << 20];

static struct bs *ram(void)
{
	memset(medium, 0, sizeof(medium));
	return bs_ram_new("ram", medium, sizeof(medium), 512, NULL, NULL);
}

static void pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + i / 509 + seed);
}

static int run(struct bs *b, enum bs_op op, uint64_t off, uint64_t len,
	       void *data)
{
	struct test_req t;

	test_submit(b, &t, op, 0, off, len, data);
	assert_int_equal(t.done, 1);
	return t.req.result;
}

/* ---- tests ---- */

static unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void assert_hex(const uint8_t *p, const char *hex)
{
	for (; *hex; hex += 2, p++)
		assert_int_equal(*p, nibble(hex[0]) << 4 | nibble(hex[1]));
}

static void test_vectors_ieee_1619_annex_b(void **state)
{
	struct bs *b;

	(void)state;
	one.bs = (struct bs){ .ops = &one_ops,
			      .size = (uint64_t)1 << 60,
			      .block_size = 512 };
	b = encrypted(&one.bs);
	for (size_t i = 0; i < 512; i++)
		sent[i] = (uint8_t)i;
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		uint64_t off = vectors[i].sector * 512;

		assert_int_equal(run(b, BS_WRITE, off, 512, sent), 0);
		assert_hex(one.sector, vectors[i].begins);
		assert_hex(one.sector + 496, vectors[i].ends);
		assert_int_equal(run(b, BS_READ, off, 512, got), 0);
		assert_memory_equal(got, sent, 512);
	}
	bs_close(b);
	assert_true(keeper.released);
}

static bool has_in_common(const uint8_t *a, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i + 16 <= n; i += 16)
		if (!memcmp(a + i, b + i, 16))
			return true;
	return false;
}

/* Sizes below, at and above those of the bounce buffers. */
static void test_reads_what_was_written(void **state)
{
	static const size_t lens[] = { 512, 4096,      16 << 10,     16896,
				       MIB, MIB + 512, 5 * MIB - 512 };
	struct bs *b = encrypted(ram());

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		uint64_t off = 512 * (i + 1);

		pattern(sent, lens[i], (unsigned)i);
		assert_int_equal(run(b, BS_WRITE, off, lens[i], sent), 0);
		/* the memory of the caller is unchanged, the store is
		 * encrypted */
		pattern(got, lens[i], (unsigned)i);
		assert_memory_equal(got, sent, lens[i]);
		assert_false(has_in_common(medium + off, sent, lens[i]));
		assert_int_equal(run(b, BS_READ, off, lens[i], got), 0);
		assert_memory_equal(got, sent, lens[i]);
	}
	bs_close(b);
}

/* Sectors that begin in one piece of memory and end in another. */
static void test_scattered_memory(void **state)
{
	struct bs *b = encrypted(ram());
	static const size_t cuts[] = { 0,    1,	   511,	 1000, 1024,
				       1040, 2047, 4000, 4096 };
	struct iovec iov[ARRAY_LEN(cuts) - 1];
	struct test_req t = { .req = { .op = BS_WRITE,
				       .off = 1024,
				       .len = 4096,
				       .done = test_req_done } };

	(void)state;
	pattern(sent, 4096, 3);
	for (size_t i = 0; i < ARRAY_LEN(iov); i++)
		iov[i] =
			(struct iovec){ sent + cuts[i], cuts[i + 1] - cuts[i] };
	t.req.data = bufv_of(iov, ARRAY_LEN(iov));
	bs_submit(b, &t.req);
	assert_int_equal(run(b, BS_READ, 1024, 4096, got), 0);
	assert_memory_equal(got, sent, 4096);
	memset(sent, 0, 4096);
	t.req.op = BS_READ;
	bs_submit(b, &t.req);
	assert_int_equal(t.done, 2);
	assert_memory_equal(got, sent, 4096);
	bs_close(b);
}

/* The ciphertext of a sector does not depend on the request that wrote it, and
 * equal sectors differ. */
static void test_sectors_stand_alone(void **state)
{
	struct bs *b = encrypted(ram());
	uint8_t was[1024];

	(void)state;
	memset(sent, 0x55, 2048);
	assert_int_equal(run(b, BS_WRITE, 512, 1024, sent), 0);
	assert_memory_not_equal(medium + 512, medium + 1024, 512);
	memcpy(was, medium + 512, 1024);
	assert_int_equal(run(b, BS_WRITE, 512, 512, sent), 0);
	assert_int_equal(run(b, BS_WRITE, 1024, 512, sent), 0);
	assert_memory_equal(medium + 512, was, 1024);
	bs_close(b);
}

static void test_holes_and_zeros(void **state)
{
	struct bs *b = encrypted(ram());

	(void)state;
	assert_int_equal(run(b, BS_READ, 0, 4096, got), 0);
	memset(sent, 0, 4096);
	assert_memory_equal(got, sent, 4096); /* never written */
	assert_int_equal(run(b, BS_WRITE, 0, 4096, sent), 0);
	assert_memory_not_equal(medium, sent, 512); /* zeros are data, too */
	assert_int_equal(run(b, BS_READ, 0, 4096, got), 0);
	assert_memory_equal(got, sent, 4096);
	pattern(sent, 4096, 1);
	assert_int_equal(run(b, BS_WRITE, 0, 4096, sent), 0);
	assert_int_equal(run(b, BS_UNMAP, 512, 512, NULL), 0);
	assert_int_equal(run(b, BS_ZERO, 2048, 1024, NULL), 0);
	memset(sent + 512, 0, 512);
	memset(sent + 2048, 0, 1024);
	assert_int_equal(run(b, BS_READ, 0, 4096, got), 0);
	assert_memory_equal(got, sent, 4096);
	bs_close(b);
}

static void test_does_not_lend(void **state)
{
	struct bs *b = encrypted(ram());
	struct iovec iov;

	(void)state;
	assert_int_equal(bs_lend(b, 0, 512, &iov), ERR_UNSUPPORTED);
	bs_close(b);
}

/* There are 256 small bounce buffers; later requests wait in order. */
static void test_waits_for_a_bounce_buffer(void **state)
{
	static struct test_req t[300];
	struct bs *hold = bs_hold_new(ram()), *b = encrypted(hold);

	(void)state;
	pattern(sent, 300 * 512, 9);
	for (unsigned i = 0; i < 300; i++)
		test_submit(b, &t[i], BS_WRITE, 0, i * 512, 512,
			    sent + i * 512);
	assert_int_equal(bs_hold_waiting(hold), 256);
	bs_hold_release(hold, 1);
	assert_int_equal(t[0].done, 1);
	assert_int_equal(bs_hold_waiting(hold), 256);
	bs_hold_release(hold, 255);
	assert_int_equal(bs_hold_waiting(hold), 44);
	bs_hold_release(hold, 44);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(t[i].done, 1);
		assert_int_equal(t[i].req.result, 0);
	}
	test_submit(b, &t[0], BS_READ, 0, 0, 300 * 512, got);
	bs_hold_release(hold, 1);
	assert_memory_equal(got, sent, 300 * 512);
	bs_close(b);
}

static void test_failures_come_up(void **state)
{
	struct bs *b = encrypted(
		bs_fault_new(ram(), BIT(BS_WRITE), 2, 0, ERR_NO_SPACE));

	(void)state;
	/* its second part */
	assert_int_equal(run(b, BS_WRITE, 0, 3 * MIB, sent), ERR_NO_SPACE);
	assert_int_equal(run(b, BS_WRITE, 0, 3 * MIB, sent), 0);
	bs_close(b);
	b = encrypted(bs_fault_new(ram(), BIT(BS_READ), 1, 0, ERR_MEDIUM));
	assert_int_equal(run(b, BS_READ, 0, 512, got), ERR_MEDIUM);
	bs_close(b);
}

static void see_flags(void *arg, const struct bs_req *req)
{
	if (req->op == BS_WRITE)
		*(unsigned *)arg = *(unsigned *)arg << 4 | req->flags;
}

/* Each part of a write with FUA has FUA. */
static void test_flags_reach_the_store(void **state)
{
	unsigned seen = 0;
	struct bs *b = encrypted(bs_trace_new(ram(), see_flags, &seen));
	struct test_req t;

	(void)state;
	test_submit(b, &t, BS_WRITE, BS_FUA, 0, 2 * MIB, sent);
	assert_int_equal(t.req.result, 0);
	assert_int_equal(seen, BS_FUA << 4 | BS_FUA);
	assert_int_equal(run(b, BS_WRITE, 0, 512, sent), 0);
	assert_int_equal(seen & 15, 0);
	bs_close(b);
}

/* Reads the first block into got. */
static int read_on_other_worker(struct bs *b)
{
	struct test_req t = { .iov = { got, 512 },
			      .req = { .op = BS_READ,
				       .worker = 1,
				       .len = 512,
				       .done = test_req_done } };

	t.req.data = bufv_of(&t.iov, 1);
	bs_submit(b, &t.req);
	return t.req.result;
}

static void test_each_worker_has_the_key(void **state)
{
	struct bs *b = encrypted(ram());

	(void)state;
	pattern(sent, 512, 4);
	assert_int_equal(run(b, BS_WRITE, 0, 512, sent), 0);
	assert_int_equal(read_on_other_worker(b), 0);
	assert_memory_equal(got, sent, 512);
	bs_close(b);
}

static void test_rekey_makes_old_data_unreadable(void **state)
{
	struct bs *b = encrypted(ram());
	uint8_t next[BS_CRYPT_KEY];

	(void)state;
	pattern(sent, 8192, 4);
	assert_int_equal(run(b, BS_WRITE, 0, 8192, sent), 0);
	assert_true(b->caps & BS_CAP_REKEY);
	memcpy(next, keeper.next, sizeof(next));
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), 0);
	assert_memory_equal(keeper.kept, next, sizeof(next));
	assert_int_equal(run(b, BS_READ, 0, 8192, got), 0);
	assert_false(has_in_common(got, sent, 8192));
	assert_int_equal(run(b, BS_WRITE, 0, 512, sent), 0);
	assert_int_equal(read_on_other_worker(b), 0);
	assert_memory_equal(got, sent, 512);
	bs_close(b);
}

/* The persisted key is in force, whichever step failed. */
static void test_rekey_fails(void **state)
{
	struct bs *b = encrypted(ram());

	(void)state;
	pattern(sent, 512, 4);
	assert_int_equal(run(b, BS_WRITE, 0, 512, sent), 0);
	keeper.no_random = true;
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), ERR_NOMEM);
	assert_int_equal(keeper.asked, 0);
	keeper.no_random = false;
	keeper.in_force = false;
	keeper.result = ERR_MEDIUM;
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), ERR_MEDIUM);
	assert_int_equal(run(b, BS_READ, 0, 512, got), 0);
	assert_memory_equal(got, sent, 512);
	keeper.in_force = true;
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), ERR_MEDIUM);
	assert_int_equal(run(b, BS_READ, 0, 512, got), 0);
	assert_memory_not_equal(got, sent, 512);
	bs_close(b);
}

static void test_rekey_is_refused(void **state)
{
	const struct bs_crypt_config cfg = { .key = KEY, .nworkers = 1 };
	struct bs *b = bs_crypt_new(ram(), &cfg);

	(void)state;
	assert_false(b->caps & BS_CAP_REKEY);
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), ERR_UNSUPPORTED);
	bs_close(b);
	b = ram();
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), ERR_UNSUPPORTED);
	b->caps |= BS_CAP_READ_ONLY;
	b = encrypted(b);
	assert_int_equal(run(b, BS_REKEY, 0, 0, NULL), ERR_UNSUPPORTED);
	bs_close(b);
}

/* IEEE 1619, NIST SP 800-38E: the two keys must differ. */
static void test_key_of_equal_halves(void **state)
{
	uint8_t bad[BS_CRYPT_KEY];
	struct bs *next = ram();
	const struct bs_crypt_config cfg = { .key = bad, .nworkers = 1 };

	(void)state;
	memset(bad, 7, sizeof(bad));
	assert_null(bs_crypt_new(next, &cfg));
	bs_close(next);
}

/* ---- each allocation fails once ---- */

/* Writes of both sizes, a new key, a read. True: all of them succeeded. */
static bool scenario(struct bs *next)
{
	struct bs *b = encrypted(next);
	bool good = true;

	if (!b) {
		bs_close(next);
		return false;
	}
	good &= !run(b, BS_WRITE, 0, 512, sent);
	good &= !run(b, BS_WRITE, 512, MIB, sent);
	good &= !run(b, BS_REKEY, 0, 0, NULL);
	good &= !run(b, BS_WRITE, 0, 512, sent);
	good &= !run(b, BS_READ, 0, 512, got);
	if (good)
		assert_memory_equal(got, sent, 512);
	bs_close(b);
	return good;
}

static void test_each_allocation_fails_once(void **state)
{
	unsigned long n = 0;

	(void)state;
	pattern(sent, MIB, 5);
	do {
		struct bs *next = ram();
		bool good;

		failed = false;
		countdown = ++n;
		good = scenario(next);
		countdown = 0;
		assert_int_equal(good, !failed);
	} while (failed);
	assert_true(n > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_ieee_1619_annex_b),
		cmocka_unit_test(test_reads_what_was_written),
		cmocka_unit_test(test_scattered_memory),
		cmocka_unit_test(test_sectors_stand_alone),
		cmocka_unit_test(test_holes_and_zeros),
		cmocka_unit_test(test_does_not_lend),
		cmocka_unit_test(test_waits_for_a_bounce_buffer),
		cmocka_unit_test(test_failures_come_up),
		cmocka_unit_test(test_flags_reach_the_store),
		cmocka_unit_test(test_each_worker_has_the_key),
		cmocka_unit_test(test_rekey_makes_old_data_unreadable),
		cmocka_unit_test(test_rekey_fails),
		cmocka_unit_test(test_rekey_is_refused),
		cmocka_unit_test(test_key_of_equal_halves),
		cmocka_unit_test(test_each_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
