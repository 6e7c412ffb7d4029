/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_test.c: a command that works for long gives way after each 256 KiB, so that the worker
 * serves other connections in between. */
#include "cmocka_all.h"
#include "unit/device/dev_fixture.h"

#define MIB  (1u << 20)
#define UNIT (4 * MIB)
#define PART (256u << 10)

static struct dev_fixture r;
static struct dev_msg *waiting; /* gave way */
static uint8_t *memory;
static uint8_t data[UNIT];

static void give_way(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	assert_int_equal(worker, 0);
	assert_null(waiting);
	waiting = m;
}

static int set_up(void **state)
{
	struct bs *b;

	(void)state;
	memset(&r, 0, sizeof(r));
	waiting = NULL;
	r.give_way = give_way;
	r.most = UNIT;
	memory = malloc(UNIT);
	for (size_t i = 0; i < UNIT; i++)
		data[i] = (uint8_t)(i * 7 + i / 509 + 1);
	memcpy(memory, data, UNIT);
	b = bs_ram_new("ram:test", memory, UNIT, FX_BLOCK, free, memory);
	assert_non_null(b);
	fx_open(&r, b, false);
	fx_take_attentions(&r);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fx_close(&r);
	return 0;
}

/* Ends the command; returns in how many turns after the first one. */
static unsigned turns(void)
{
	unsigned n = 0;

	for (; waiting; n++) {
		struct dev_msg *m = waiting;

		assert_false(r.done);
		waiting = NULL;
		m->run(m);
	}
	assert_true(r.done);
	return n;
}

static unsigned run(const uint8_t cdb[16], uint32_t out, uint32_t in)
{
	unsigned n;

	assert_int_equal(fx_begin(&r, cdb, 16, out, in), 0);
	(void)fx_execute(&r, out ? data : NULL);
	n = turns();
	assert_int_equal(r.task.status, SCSI_GOOD);
	return n;
}

static bool is_zero(size_t at, size_t len)
{
	for (size_t i = at; i < at + len; i++)
		if (memory[i])
			return false;
	return true;
}

static void test_verify_gives_way(void **state)
{
	uint8_t cdb[16] = { 0x8f };

	(void)state;
	put_be32(cdb + 10, UNIT / FX_BLOCK);
	assert_int_equal(run(cdb, 0, 0), UNIT / PART);
	fx_finish(&r);
	put_be32(cdb + 10, 8);
	assert_int_equal(run(cdb, 0, 0), 0);
	fx_finish(&r);
}

/* The abort of a command that gave way takes place when its turn comes. */
static void test_abort_of_what_gave_way(void **state)
{
	uint8_t cdb[16] = { 0x8f };
	struct dev_msg *m;

	(void)state;
	put_be32(cdb + 10, UNIT / FX_BLOCK);
	assert_int_equal(fx_begin(&r, cdb, 16, 0, 0), 0);
	assert_int_equal(fx_execute(&r, NULL), -1);
	assert_non_null(m = waiting);
	dev_task_abort(&r.task, fx_released);
	assert_false(r.released);
	waiting = NULL;
	m->run(m);
	assert_true(r.released);
	dev_task_end(&r.task);
	assert_null(waiting);
	assert_int_equal(fx_test(&r), SCSI_GOOD);
}

/* SBC-3 §5.49: NDOB writes zeros, here to the whole unit. */
static void test_write_same_of_the_whole_unit_gives_way(void **state)
{
	uint8_t cdb[16] = { 0x93, 0x01 };

	(void)state;
	assert_int_equal(run(cdb, 0, 0), UNIT / PART);
	fx_finish(&r);
	assert_true(is_zero(0, UNIT));
}

/* SBC-3 §5.28: each block of each descriptor, and no other. */
static void test_unmap_gives_way(void **state)
{
	uint8_t cdb[16] = { 0x42, 0, 0, 0, 0, 0, 0, 0, 40 };

	(void)state;
	memset(data, 0, 40);
	data[1] = 38;
	data[3] = 32;
	put_be64(data + 8, 3);
	put_be32(data + 16, 2 * MIB / FX_BLOCK);
	put_be64(data + 24, 3 * MIB / FX_BLOCK);
	put_be32(data + 32, 1);
	assert_in_range(run(cdb, 40, 0), 7, 9);
	fx_finish(&r);
	assert_true(is_zero(3 * FX_BLOCK, 2 * MIB));
	assert_true(memory[3 * FX_BLOCK - 1] != 0);
	assert_memory_equal(memory + 3 * FX_BLOCK + 2 * MIB,
			    data + 3 * FX_BLOCK + 2 * MIB, MIB - 3 * FX_BLOCK);
	assert_true(is_zero(3 * MIB, FX_BLOCK));
	assert_memory_equal(memory + 3 * MIB + FX_BLOCK,
			    data + 3 * MIB + FX_BLOCK, MIB - FX_BLOCK);
}

static void test_large_write_gives_way(void **state)
{
	uint8_t cdb[16] = { 0x8a };

	(void)state;
	memset(memory, 0xff, UNIT);
	put_be64(cdb + 2, 1);
	put_be32(cdb + 10, (3 * MIB + FX_BLOCK) / FX_BLOCK);
	assert_in_range(run(cdb, 3 * MIB + FX_BLOCK, 0), 12, 13);
	fx_finish(&r);
	assert_memory_equal(memory + FX_BLOCK, data, 3 * MIB + FX_BLOCK);
	assert_int_equal(memory[FX_BLOCK - 1], 0xff);
	assert_int_equal(memory[2 * FX_BLOCK + 3 * MIB], 0xff);
	put_be32(cdb + 10, MIB / FX_BLOCK);
	assert_int_equal(run(cdb, MIB, 0), 0);
	fx_finish(&r);
}

/* Memory that the backstore does not lend, since its blocks may be written before the data are
 * sent. */
static void test_large_read_gives_way(void **state)
{
	uint8_t cdb[16] = { 0x88 };

	(void)state;
	put_be64(cdb + 2, 1);
	put_be32(cdb + 10, 2 * MIB / FX_BLOCK);
	assert_int_equal(run(cdb, 0, 2 * MIB), 0); /* lent */
	fx_finish(&r);
	assert_int_equal(fx_begin(&r, cdb, 16, 0, 2 * MIB), 0);
	r.task.edtl.keeps = true;
	r.task.own.mem.lent = false;
	(void)fx_execute(&r, NULL);
	assert_int_equal(turns(), 2 * MIB / PART);
	assert_int_equal(r.task.in.len, 2 * MIB);
	assert_memory_equal(r.task.in.iov[0].iov_base, memory + FX_BLOCK,
			    2 * MIB);
	fx_finish(&r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_verify_gives_way),
		T(test_abort_of_what_gave_way),
		T(test_write_same_of_the_whole_unit_gives_way),
		T(test_unmap_gives_way),
		T(test_large_write_gives_way),
		T(test_large_read_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
