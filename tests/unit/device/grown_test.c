/* SPDX-License-Identifier: BSD-2-Clause */
/* grown_test.c: of a unit with protection information, what only one at a time
 * may change: a store that grew, found out by several at once (SBC-3 §4.5,
 * §4.22), and what its blocks are held against (SBC-4 §6.5.3). */
#include "backstore/protect_internal.h"
#include "base/pi.h"
#include "device/unit/unit.h"
#include "trio.h"

#define BLOCK 512u
#define MOST  (2u << 20) /* bytes */
#define WIRE  (BLOCK + PI_LEN)

/* Memory that says how large it is, and is slow to clear its first piece, to
 * read, or to flush. */
struct shelf {
	struct bs bs;
	uint8_t bytes[MOST];
	uint64_t now;
	unsigned zeros;
	struct bs_req *late;
	bool is_slow, reads_slowly, flushes_slowly;
};

static struct shelf data, pi;

static void answer(struct shelf *s, struct bs_req *req)
{
	if (req->op == BS_READ)
		bufv_copy_in(&req->data, 0, s->bytes + req->off, req->len);
	else if (req->op == BS_WRITE)
		bufv_copy_out(&req->data, 0, s->bytes + req->off, req->len);
	else if (req->op == BS_ZERO)
		memset(s->bytes + req->off, 0, req->len);
	else if (req->op == BS_SIZE)
		req->size_now = s->now;
	bs_complete(req, 0);
}

static void shelf_submit(struct bs *b, struct bs_req *req)
{
	struct shelf *s = container_of(b, struct shelf, bs);

	if ((req->op == BS_ZERO && s->is_slow && ++s->zeros == 1) ||
	    (req->op == BS_READ && s->reads_slowly) ||
	    (req->op == BS_FLUSH && s->flushes_slowly))
		s->late = req;
	else
		answer(s, req);
}

static int shelf_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	(void)b;
	(void)off;
	(void)len;
	(void)iov;
	return ERR_UNSUPPORTED;
}

static void shelf_close(struct bs *b)
{
	(void)b;
}

static const struct bs_ops shelf_ops = {
	.submit = shelf_submit,
	.lend = shelf_lend,
	.close = shelf_close,
};

static struct bs *shelf(struct shelf *s, uint64_t size, uint32_t block)
{
	memset(s, 0, sizeof(*s));
	s->now = size;
	s->bs = (struct bs){ .ops = &shelf_ops,
			     .size = size,
			     .block_size = block,
			     .phys_block = block,
			     .caps = BS_CAP_SIZE };
	return &s->bs;
}

static int open_grown(void **state)
{
	struct bs_protect_config cfg = {
		.data = shelf(&data, MOST / 2, BLOCK),
		.pi = shelf(&pi, MOST / BLOCK * PI_LEN, PROTECT_GRAIN),
		.type = 1,
	};

	(void)state;
	memset(&trio, 0, sizeof(trio));
	trio.store = bs_protect_new(&cfg);
	assert_non_null(trio.store);
	trio_start();
	data.now = MOST;
	pi.is_slow = true;
	return 0;
}

#define FIRST_NEW (MOST / 2 / BLOCK)

static const uint8_t capacity[16] = { SCSI_READ_CAPACITY_10 };

/* WRPROTECT, RDPROTECT 001b */
static const uint8_t write_new[16] = {
	SCSI_WRITE_10, 0x20, 0, 0, FIRST_NEW >> 8, FIRST_NEW & 0xff, 0, 0, 1,
};
static const uint8_t read_new[16] = {
	SCSI_READ_10, 0x20, 0, 0, FIRST_NEW >> 8, FIRST_NEW & 0xff, 0, 0, 1,
};

static const uint8_t *a_block(void)
{
	static uint8_t block[WIRE];

	memset(block, 0x5a, BLOCK);
	pi_put(block + BLOCK, pi_guard(block, BLOCK), 0x1234, FIRST_NEW);
	return block;
}

static void assert_grown(unsigned who)
{
	assert_int_equal(trio_finish(who), SCSI_GOOD);
	assert_int_equal(get_be32(trio.i[who].in), MOST / BLOCK - 1);
}

/* The store is no longer slow. */
static void go_on(void)
{
	struct bs_req *req = pi.late;

	pi.late = NULL;
	if (req)
		answer(&pi, req);
	trio_settle();
}

static void write_it(unsigned who)
{
	if (trio_run(who, write_new, a_block(), WIRE, 0) == SCSI_GOOD)
		return;
	expect_sense(who, SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
	assert_int_equal(trio_run(who, write_new, a_block(), WIRE, 0),
			 SCSI_GOOD);
}

/* Two find it out on two workers: what either then writes keeps its
 * information, whatever the other is still about. */
static void two_at_once(uint8_t a, uint8_t b)
{
	bool early;

	trio.i[A].attr = a;
	trio.i[B].attr = b;
	trio_send(A, capacity, NULL, 0, 8);
	trio_send(B, capacity, NULL, 0, 8);
	trio_settle();
	early = trio.i[B].done;
	if (!early)
		go_on();
	assert_grown(B);
	write_it(B);
	if (early)
		go_on();
	assert_grown(A);
	assert_int_equal(RUN(C, 8, SCSI_READ_CAPACITY_10),
			 SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
	assert_int_equal(trio_run(C, read_new, NULL, 0, WIRE), SCSI_GOOD);
	assert_memory_equal(trio.i[C].in, a_block(), WIRE);
	assert_int_equal(pi.zeros, 1);
}

static void test_two_find_it_at_once(void **state)
{
	(void)state;
	two_at_once(DEV_ATTR_SIMPLE, DEV_ATTR_SIMPLE);
}

/* ORDERED commands have all of the unit to themselves, and so this, too. */
static void test_the_first_is_ordered(void **state)
{
	(void)state;
	two_at_once(DEV_ATTR_ORDERED, DEV_ATTR_SIMPLE);
}

static void test_the_second_is_ordered(void **state)
{
	(void)state;
	two_at_once(DEV_ATTR_SIMPLE, DEV_ATTR_ORDERED);
}

/* Who waits for another's look may be aborted, and so may that one. */
static void test_they_are_aborted(void **state)
{
	(void)state;
	for (unsigned i = A; i <= B; i++) {
		trio_send(i, capacity, NULL, 0, 8);
		trio_settle();
		assert_int_equal(dev_task_abort(&trio.i[i].task, trio_released),
				 0);
	}
	go_on();
	for (unsigned i = A; i <= B; i++) {
		assert_true(trio.i[i].released);
		dev_task_end(&trio.i[i].task);
	}
	assert_int_equal(RUN(C, 8, SCSI_READ_CAPACITY_10), SCSI_GOOD);
	assert_int_equal(get_be32(trio.i[C].in), MOST / BLOCK - 1);
	write_it(C);
}

/* MODE SELECT of what a READ's blocks are held against waits for it, and those
 * that come wait for MODE SELECT: no command sees half of a change. */
static void test_modes_change_at_rest(void **state)
{
	static const uint8_t read_first[16] = { SCSI_READ_10, [8] = 1 };
	static const uint8_t select[16] = { SCSI_MODE_SELECT_6,
					    0x10, [4] = 16 };
	static const uint8_t ato[16] = { [4] = 0x0a, 10, 0x02, 0x10, 0,
					 0x80,	     0,	 0,    0xff, 0xff };

	(void)state;
	data.reads_slowly = true;
	trio_send(A, read_first, NULL, 0, BLOCK);
	trio_send(B, select, ato, 16, 0);
	trio_settle();
	assert_false(trio.i[B].done);
	trio_send(C, read_first, NULL, 0, BLOCK);
	trio_settle();
	data.reads_slowly = false;
	answer(&data, data.late);
	trio_settle();
	assert_int_equal(trio_finish(A), SCSI_GOOD);
	assert_int_equal(trio_finish(B), SCSI_GOOD);
	assert_int_equal(trio_finish(C), SCSI_GOOD);
}

/* A SYNCHRONIZE CACHE that forgets what was being written (backstore.h,
 * BS_ALONE) wants the unit at rest: nobody finds new blocks meanwhile, to write
 * to what it does not hold. */
static void test_nothing_grows_while_it_is_at_rest(void **state)
{
	static const uint8_t flush[16] = { SCSI_SYNCHRONIZE_CACHE_10 };
	const struct dev_lu *lu = dev_lu_get(trio.server, 0);

	(void)state;
	pi.is_slow = false;
	protect_of(lu->bs)->protection.unsettled = 1000;
	data.flushes_slowly = true;
	trio_send(A, flush, NULL, 0, 0);
	trio_settle();
	assert_non_null(data.late);
	trio_send(B, capacity, NULL, 0, 8);
	trio_settle();
	assert_false(trio.i[B].done);
	assert_int_equal(trio_run(C, write_new, a_block(), WIRE, 0),
			 SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	answer(&data, data.late);
	trio_settle();
	assert_int_equal(trio_finish(A), SCSI_GOOD);
	assert_grown(B);
	write_it(C);
}

#define G(name) cmocka_unit_test_setup_teardown(name, open_grown, trio_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		G(test_two_find_it_at_once),
		G(test_the_first_is_ordered),
		G(test_the_second_is_ordered),
		G(test_they_are_aborted),
		G(test_modes_change_at_rest),
		G(test_nothing_grows_while_it_is_at_rest),
	};

	return cmocka_run_group_tests_name("device grown", tests, NULL, NULL);
}
