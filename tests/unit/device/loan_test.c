/* SPDX-License-Identifier: BSD-2-Clause */
/* loan_test.c: read data that may be sent again, in memory that the backstore lends. */
#include "dev_case.h"
#include "device/unit/unit.h"

#define BLOCKS 8u
#define LEN    (BLOCKS * FX_BLOCK)

static struct dev_task reader;
static bool read_done;

static void done(struct dev_task *t)
{
	(void)t;
	read_done = true;
}

/* READ of the blocks from 8 on; its data may be sent again. */
static void begin_read(bool keeps)
{
	reader = (struct dev_task){
		.nexus = R->nexus,
		.attr = DEV_ATTR_SIMPLE,
		.cdb = { SCSI_READ_10, [5] = BLOCKS, [8] = BLOCKS },
		.cdb_len = 16,
		.done = done
	};
	reader.edtl.in = LEN;
	reader.edtl.again = true;
	reader.edtl.keeps = keeps;
	read_done = false;
	assert_int_equal(dev_task_begin(&reader), 0);
	dev_task_execute(&reader);
	assert_true(read_done);
	assert_int_equal(reader.status, SCSI_GOOD);
	assert_int_equal(reader.in.len, LEN);
}

static const uint8_t *medium(void)
{
	return R->medium + LEN;
}

static const uint8_t *data(void)
{
	return reader.in.iov[0].iov_base;
}

static void write_at(uint8_t lba, uint8_t byte)
{
	uint8_t block[FX_BLOCK];

	memset(block, byte, sizeof(block));
	assert_int_equal(CMD(FX_BLOCK, 0, block, SCSI_WRITE_10, 0, 0, 0, 0, lba,
			     0, 0, 1),
			 SCSI_GOOD);
}

static void expect_all(uint8_t byte)
{
	for (unsigned i = 0; i < LEN; i++)
		assert_int_equal(data()[i], byte);
}

static void test_is_lent_until_it_is_fixed(void **state)
{
	const struct bufv *v = &reader.in;

	(void)state;
	memset(R->medium, 0x11, (size_t)FX_BLOCKS * FX_BLOCK);
	begin_read(false);
	assert_ptr_equal(data(), medium());
	assert_int_equal(R->out, 0);
	assert_true(dev_task_fix(&reader));
	assert_ptr_not_equal(data(), medium());
	assert_ptr_equal(v->iov,
			 reader.own.mem.iov); /* the owner's bufv is valid */
	expect_all(0x11);
	assert_true(dev_task_fix(&reader));
	write_at(9, 0x22);
	expect_all(0x11);
	dev_task_end(&reader);
	assert_int_equal(R->out, 0);
}

/* Blocks of other regions of the store, 64 KiB each, change nothing. */
static void test_is_copied_before_a_write(void **state)
{
	(void)state;
	memset(R->medium, 0x11, (size_t)FX_BLOCKS * FX_BLOCK);
	begin_read(false);
	write_at(128, 0x22);
	write_at(255, 0x22);
	assert_ptr_equal(data(), medium());
	write_at(15, 0x22);
	assert_ptr_not_equal(data(), medium());
	expect_all(0x11);
	assert_int_equal(medium()[LEN - 1], 0x22);
	assert_true(dev_task_fix(&reader));
	dev_task_end(&reader);
}

/* WRITE SAME, which works in steps, with UNMAP and without. */
static void test_is_copied_before_other_changes(void **state)
{
	const uint8_t zeros[FX_BLOCK] = { 0 };

	(void)state;
	for (uint8_t flags = 0; flags <= 0x08; flags += 0x08) {
		memset(R->medium, 0x11, (size_t)FX_BLOCKS * FX_BLOCK);
		begin_read(false);
		assert_int_equal(CMD(FX_BLOCK, 0, zeros, SCSI_WRITE_SAME_16,
				     flags, [9] = 0, [13] = 64),
				 SCSI_GOOD);
		expect_all(0x11);
		assert_int_equal(medium()[0], 0);
		dev_task_end(&reader);
	}
}

/* A change that this worker did not make. */
static void ignore(struct bs_req *req)
{
	(void)req;
}

static void test_change_by_another_worker_is_seen(void **state)
{
	uint8_t byte[FX_BLOCK] = { 0x33 };
	struct iovec iov = { byte, sizeof(byte) };
	struct bs_req req = { .op = BS_WRITE,
			      .off = LEN,
			      .len = sizeof(byte),
			      .done = ignore,
			      .data = bufv_of(&iov, 1) };

	(void)state;
	begin_read(false);
	bs_submit(dev_lu_get(R->server, 0)->bs, &req);
	assert_false(dev_task_fix(&reader));
	assert_int_equal(R->out, 0);
	assert_false(dev_task_fix(&reader));
	dev_task_lose(&reader);
	assert_int_equal(reader.status, SCSI_CHECK_CONDITION);
	assert_int_equal(reader.in.len, 0);
	assert_int_equal(reader.sense.data[2] & 0x0f, SENSE_ABORTED_COMMAND);
	assert_int_equal(get_be16(reader.sense.data + 12), 0x1113);
	dev_task_end(&reader);
	assert_int_equal(R->out, 0);
}

static void test_no_memory_for_the_copy(void **state)
{
	(void)state;
	memset(R->medium, 0x11, (size_t)FX_BLOCKS * FX_BLOCK);
	begin_read(false);
	R->fail_buf_after = 1;
	assert_false(dev_task_fix(&reader));
	assert_true(dev_task_fix(&reader)); /* now there is */
	expect_all(0x11);
	dev_task_end(&reader);
	begin_read(false);
	R->fail_buf_after = 2; /* the first one is that of the WRITE */
	write_at(8, 0x22);
	R->fail_buf_after = 0;
	assert_false(dev_task_fix(&reader));
	dev_task_end(&reader);
}

static void test_keeps_has_a_buffer_at_once(void **state)
{
	(void)state;
	begin_read(true);
	assert_ptr_not_equal(data(), medium());
	assert_true(dev_task_fix(&reader));
	dev_task_end(&reader);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_is_lent_until_it_is_fixed),
		CASE(test_is_copied_before_a_write),
		CASE(test_is_copied_before_other_changes),
		CASE(test_change_by_another_worker_is_seen),
		CASE(test_no_memory_for_the_copy),
		CASE(test_keeps_has_a_buffer_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
