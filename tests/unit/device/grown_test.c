/* SPDX-License-Identifier: BSD-2-Clause */
/* grown_test.c: changes of a unit with protection information that need
 * exclusive access: a backstore that grew, found by several commands at once
 * (SBC-3 §4.5, §4.22), and a change of the application tags that reads check
 * (SBC-4 §6.5.3). */
#include "backstore/protect_internal.h"
#include "base/pi.h"
#include "device/unit/unit.h"
#include "three.h"

#define BLOCK 512u
#define MOST  (2u << 20) /* bytes */
#define WIRE  (BLOCK + PI_LEN)

/* A memory backstore whose size the test sets. The first write of zeros, reads
 * or flushes may wait. */
struct resizable {
	struct bs bs;
	uint8_t bytes[MOST];
	uint64_t now;
	unsigned zeros;
	struct bs_req *late;
	bool is_slow, reads_slowly, flushes_slowly;
};

static struct resizable data, pi;

static void answer(struct resizable *s, struct bs_req *req)
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

static void resizable_submit(struct bs *b, struct bs_req *req)
{
	struct resizable *s = container_of(b, struct resizable, bs);

	if ((req->op == BS_ZERO && s->is_slow && ++s->zeros == 1) ||
	    (req->op == BS_READ && s->reads_slowly) ||
	    (req->op == BS_FLUSH && s->flushes_slowly))
		s->late = req;
	else
		answer(s, req);
}

static void resizable_close(struct bs *b)
{
	(void)b;
}

static const struct bs_ops resizable_ops = {
	.submit = resizable_submit,
	.lend = bs_lend_unsupported,
	.close = resizable_close,
};

static struct bs *resizable(struct resizable *s, uint64_t size, uint32_t block)
{
	memset(s, 0, sizeof(*s));
	s->now = size;
	s->bs = (struct bs){ .ops = &resizable_ops,
			     .size = size,
			     .block_size = block,
			     .phys_block = block,
			     .caps = BS_CAP_SIZE };
	return &s->bs;
}

static int open_grown(void **state)
{
	struct bs_protect_config cfg = {
		.data = resizable(&data, MOST / 2, BLOCK),
		.pi = resizable(&pi, MOST / BLOCK * PI_LEN, PROTECT_GRAIN),
		.type = 1,
	};

	(void)state;
	memset(&three, 0, sizeof(three));
	three.store = bs_protect_new(&cfg);
	assert_non_null(three.store);
	three_start();
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
	assert_int_equal(three_finish(who), SCSI_GOOD);
	assert_int_equal(get_be32(three.i[who].in), MOST / BLOCK - 1);
}

/* go_on lets all requests of the backstore complete. */
static void release_all(void)
{
	struct bs_req *req = pi.late;

	pi.late = NULL;
	if (req)
		answer(&pi, req);
	three_settle();
}

static void write_it(unsigned who)
{
	if (three_run(who, write_new, a_block(), WIRE, 0) == SCSI_GOOD)
		return;
	expect_sense(who, SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
	assert_int_equal(three_run(who, write_new, a_block(), WIRE, 0),
			 SCSI_GOOD);
}

/* Commands on two workers find the new size at the same time: the blocks that
 * each of them writes keep their protection information. */
static void two_at_once(uint8_t a, uint8_t b)
{
	bool early;

	three.i[A].attr = a;
	three.i[B].attr = b;
	three_send(A, capacity, NULL, 0, 8);
	three_send(B, capacity, NULL, 0, 8);
	three_settle();
	early = three.i[B].done;
	if (!early)
		release_all();
	assert_grown(B);
	write_it(B);
	if (early)
		release_all();
	assert_grown(A);
	assert_int_equal(RUN(C, 8, SCSI_READ_CAPACITY_10),
			 SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
	assert_int_equal(three_run(C, read_new, NULL, 0, WIRE), SCSI_GOOD);
	assert_memory_equal(three.i[C].in, a_block(), WIRE);
	assert_int_equal(pi.zeros, 1);
}

static void test_two_find_the_new_size_at_once(void **state)
{
	(void)state;
	two_at_once(DEV_ATTR_SIMPLE, DEV_ATTR_SIMPLE);
}

/* An ORDERED command has exclusive access to the unit, also during the
 * change. */
static void test_first_command_is_ordered(void **state)
{
	(void)state;
	two_at_once(DEV_ATTR_ORDERED, DEV_ATTR_SIMPLE);
}

static void test_second_command_is_ordered(void **state)
{
	(void)state;
	two_at_once(DEV_ATTR_SIMPLE, DEV_ATTR_ORDERED);
}

/* A command that waits for the change by another command may be aborted, and so
 * may the other one. */
static void test_abort_of_waiting_commands(void **state)
{
	(void)state;
	for (unsigned i = A; i <= B; i++) {
		three_send(i, capacity, NULL, 0, 8);
		three_settle();
		assert_int_equal(
			dev_task_abort(&three.i[i].task, three_released), 0);
	}
	release_all();
	for (unsigned i = A; i <= B; i++) {
		assert_true(three.i[i].released);
		dev_task_end(&three.i[i].task);
	}
	assert_int_equal(RUN(C, 8, SCSI_READ_CAPACITY_10), SCSI_GOOD);
	assert_int_equal(get_be32(three.i[C].in), MOST / BLOCK - 1);
	write_it(C);
}

/* MODE SELECT of the application tags waits for a READ that checks them, and
 * later READs wait for MODE SELECT: no command sees half of the change. */
static void test_mode_select_waits_for_reads(void **state)
{
	static const uint8_t read_first[16] = { SCSI_READ_10, [8] = 1 };
	static const uint8_t select[16] = { SCSI_MODE_SELECT_6,
					    0x10, [4] = 16 };
	static const uint8_t ato[16] = { [4] = 0x0a, 10, 0x02, 0x10, 0,
					 0x80,	     0,	 0,    0xff, 0xff };

	(void)state;
	data.reads_slowly = true;
	three_send(A, read_first, NULL, 0, BLOCK);
	three_send(B, select, ato, 16, 0);
	three_settle();
	assert_false(three.i[B].done);
	three_send(C, read_first, NULL, 0, BLOCK);
	three_settle();
	data.reads_slowly = false;
	answer(&data, data.late);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_int_equal(three_finish(B), SCSI_GOOD);
	assert_int_equal(three_finish(C), SCSI_GOOD);
}

/* A SYNCHRONIZE CACHE that clears marks (backstore.h, BS_ALONE) has exclusive
 * access. No command finds new blocks and writes meanwhile. */
static void test_no_growth_during_a_flush_alone(void **state)
{
	static const uint8_t flush[16] = { SCSI_SYNCHRONIZE_CACHE_10 };
	const struct dev_lu *lu = dev_lu_get(three.server, 0);

	(void)state;
	pi.is_slow = false;
	protect_of(lu->bs)->protection.unsettled = 1000;
	data.flushes_slowly = true;
	three_send(A, flush, NULL, 0, 0);
	three_settle();
	assert_non_null(data.late);
	three_send(B, capacity, NULL, 0, 8);
	three_settle();
	assert_false(three.i[B].done);
	assert_int_equal(three_run(C, write_new, a_block(), WIRE, 0),
			 SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	answer(&data, data.late);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_grown(B);
	write_it(C);
}

#define G(name) cmocka_unit_test_setup_teardown(name, open_grown, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		G(test_two_find_the_new_size_at_once),
		G(test_first_command_is_ordered),
		G(test_second_command_is_ordered),
		G(test_abort_of_waiting_commands),
		G(test_mode_select_waits_for_reads),
		G(test_no_growth_during_a_flush_alone),
	};

	return cmocka_run_group_tests_name("device grown", tests, NULL, NULL);
}
