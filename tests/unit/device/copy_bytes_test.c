/* SPDX-License-Identifier: BSD-2-Clause */
/* copy_bytes_test.c: segment descriptor 0Ah of EXTENDED COPY (SPC-4 §6.4.6.12):
 * bytes that need not begin or end at a block boundary, compared with a model
 * of the media. */
#include "three.h"

#define SMALL	    (1024u * 512) /* bytes of each medium */
#define TARGETS_AT  16u
#define SEGMENTS_AT (TARGETS_AT + 64)
#define SEGMENT_LEN 32u
#define MOST	    8u

static uint8_t *medium[2], model[2][SMALL];
static struct bs *held[2];
static uint8_t list[1024];
static unsigned nsegments, seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static uint32_t block_of(unsigned lun)
{
	return lun ? 4096 : 512;
}

static struct bs *store_new(unsigned lun)
{
	medium[lun] = calloc(1, SMALL);
	assert_non_null(medium[lun]);
	held[lun] = bs_hold_new(bs_ram_new(lun ? "ram:large" : "ram:small",
					   medium[lun], SMALL, block_of(lun),
					   free, medium[lun]));
	bs_hold_release(held[lun], 0);
	return held[lun];
}

/* put_name writes the NAA name of a unit, from VPD 83h, to the list. */
static void put_name(unsigned lun)
{
	const uint8_t cdb[16] = { 0x12, 1, 0x83, 4, 0 };
	uint8_t *d = list + TARGETS_AT + 32 * lun;
	struct three_ini *i = &three.i[A];
	const uint8_t *p = i->in + 4;

	three_announce(A, cdb, 0, 1024);
	dev_task_end(&i->task);
	i->task.lun = dev_lun_encode((uint16_t)lun);
	assert_int_equal(dev_task_begin(&i->task), 0);
	dev_task_execute(&i->task);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	while ((p[1] & 0xf) != 3)
		p += 4 + p[3];
	d[0] = 0xe4;
	d[4] = p[0] & 0xf;
	d[5] = 3;
	d[7] = p[3];
	memcpy(d + 8, p + 4, p[3]);
}

static void add_second(struct dev_server *s)
{
	const struct dev_lu_config cfg = { .lun = 1 };

	assert_int_equal(dev_lu_add(s, &cfg, store_new(1)), 0);
}

static int open_two(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	memset(list, 0, sizeof(list));
	three.store = store_new(0);
	three.set_up = add_second;
	three_start();
	put_name(0);
	put_name(1);
	for (unsigned lun = 0; lun < 2; lun++)
		for (unsigned i = 0; i < SMALL; i++)
			medium[lun][i] = model[lun][i] =
				(uint8_t)(i * 13 + (i >> 9) + 7 * lun);
	nsegments = 0;
	return 0;
}

static void put_segment(unsigned i, unsigned from, uint64_t from_byte,
			unsigned to, uint64_t to_byte, uint32_t n)
{
	uint8_t *d = list + SEGMENTS_AT + SEGMENT_LEN * i;

	d[0] = 0x0a;
	put_be16(d + 2, SEGMENT_LEN - 4);
	put_be16(d + 4, (uint16_t)from);
	put_be16(d + 6, (uint16_t)to);
	put_be32(d + 8, n);
	put_be64(d + 12, from_byte / block_of(from));
	put_be64(d + 20, to_byte / block_of(to));
	put_be16(d + 28, (uint16_t)(from_byte % block_of(from)));
	put_be16(d + 30, (uint16_t)(to_byte % block_of(to)));
	nsegments = i + 1;
}

static void send_copy(unsigned who)
{
	uint32_t len = SEGMENTS_AT + SEGMENT_LEN * nsegments;
	uint8_t cdb[16] = { 0x83 };

	put_be16(list + 2, 64);
	put_be32(list + 8, SEGMENT_LEN * nsegments);
	put_be32(cdb + 10, len);
	three_send(who, cdb, list, len, 0);
}

/* copy releases all requests of both backstores until the command ends. */
static int copy(void)
{
	send_copy(A);
	three_settle();
	while (!three.i[A].done) {
		bs_hold_release(held[0], 100);
		bs_hold_release(held[1], 100);
		three_settle();
	}
	return three_finish(A);
}

static void expect_model(void)
{
	for (unsigned lun = 0; lun < 2; lun++)
		assert_memory_equal(medium[lun], model[lun], SMALL);
}

static void random_segment(unsigned i)
{
	static const uint32_t most[] = { 16, 600, 5000, 200000 };
	unsigned from = rnd(2), to = rnd(2), n = rnd(most[rnd(4)]);
	unsigned at = rnd(SMALL / 2 - n), other = rnd(SMALL / 2 - n);

	if (from == to) /* the ranges must not overlap */
		other += SMALL / 2;
	put_segment(i, from, at, to, other, n);
	memcpy(model[to] + other, model[from] + at, n);
}

static void test_any_bytes_spc4_6_4_6_12(void **state)
{
	(void)state;
	seed = 20261122;
	for (unsigned round = 0; round < 400; round++) {
		unsigned n = 1 + rnd(MOST);

		for (unsigned i = 0; i < n; i++)
			random_segment(i);
		assert_int_equal(copy(), SCSI_GOOD);
		expect_model();
	}
}

/* A copy of zero bytes is not an error; a range after the end is. */
static void test_edges(void **state)
{
	static const struct {
		unsigned field_at, width;
		uint64_t value;
		uint16_t asc, pointer;
	} bad[] = {
		{ 28, 2, 512, ASC_INVALID_FIELD_IN_PARAMETERS, 28 },
		{ 30, 2, 4096, ASC_INVALID_FIELD_IN_PARAMETERS, 30 },
		{ 12, 8, 1024, ASC_COPY_TARGET_NOT_REACHABLE, 12 },
		{ 12, 8, 1023, ASC_COPY_TARGET_NOT_REACHABLE, 12 },
		{ 12, 8, UINT64_MAX, ASC_COPY_TARGET_NOT_REACHABLE, 12 },
		{ 12, 8, 1ull << 55, ASC_COPY_TARGET_NOT_REACHABLE, 12 },
		{ 20, 8, 128, ASC_COPY_TARGET_NOT_REACHABLE, 20 },
		{ 20, 8, 1ull << 52, ASC_COPY_TARGET_NOT_REACHABLE, 20 },
		{ 8, 4, UINT32_MAX, ASC_COPY_TARGET_NOT_REACHABLE, 12 },
	};

	(void)state;
	put_segment(0, 0, 100, 1, 100, 0);
	assert_int_equal(copy(), SCSI_GOOD);
	put_segment(0, 0, SMALL, 1, SMALL, 0);
	assert_int_equal(copy(), SCSI_GOOD);
	put_segment(0, 0, SMALL - 7, 1, SMALL - 7, 7); /* up to the end */
	memcpy(model[1] + SMALL - 7, model[0] + SMALL - 7, 7);
	assert_int_equal(copy(), SCSI_GOOD);
	expect_model();
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		uint8_t *d = list + SEGMENTS_AT;

		put_segment(0, 0, 100, 1, 100, 500);
		for (unsigned k = 0; k < bad[i].width; k++)
			d[bad[i].field_at + k] =
				(uint8_t)(bad[i].value >>
					  8 * (bad[i].width - 1 - k));
		assert_int_equal(copy(), SCSI_CHECK_CONDITION);
		expect_sense(A, SENSE_COPY_ABORTED, bad[i].asc);
		assert_int_equal(three.i[A].sense.field,
				 SEGMENTS_AT + bad[i].pointer);
		expect_model();
	}
	put_segment(0, 0, 100, 1, 100, 500);
	list[SEGMENTS_AT + 3] = 24; /* the length of another descriptor type */
	assert_int_equal(copy(), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
}

/* Another initiator writes to the rest of a partial block during the copy: the
 * data are not lost, because the write ends before the copy reads the block or
 * begins after the copy has written it. */
static void test_exclusive_access_to_partial_blocks(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [5] = 9, [8] = 1 };
	uint8_t data[512];

	(void)state;
	memset(data, 0xee, sizeof(data));
	put_segment(0, 0, 0, 0, 9 * 512 + 100, 50);
	send_copy(A);
	three_settle();
	assert_int_equal(bs_hold_waiting(held[0]),
			 1); /* the source is being read */
	bs_hold_release(held[0], 1);
	three_settle();
	assert_int_equal(bs_hold_waiting(held[0]),
			 1); /* the destination is being read */
	three_send(B, cdb, data, 512, 0);
	three_settle();
	assert_int_equal(bs_hold_waiting(held[0]),
			 1); /* the write of B waits */
	bs_hold_release(held[0], 1);
	three_settle();
	assert_int_equal(bs_hold_waiting(held[0]),
			 1); /* the destination is being written */
	bs_hold_release(held[0], 1);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	memcpy(model[0] + 9 * 512 + 100, model[0], 50);
	expect_model();
	bs_hold_release(held[0], 1);
	three_settle();
	assert_int_equal(three_finish(B), SCSI_GOOD);
	memset(model[0] + 9 * 512, 0xee, 512);
	expect_model();
}

static void test_abort_between_its_steps(void **state)
{
	(void)state;
	for (unsigned steps = 0; steps < 3; steps++) {
		put_segment(0, 0, 0, 1, 100, 50);
		send_copy(A);
		three_settle();
		for (unsigned i = 0; i < steps; i++) {
			bs_hold_release(held[0], 1);
			bs_hold_release(held[1], 1);
			three_settle();
		}
		assert_int_equal(
			dev_task_abort(&three.i[A].task, three_released), 0);
		bs_hold_release(held[0], 1);
		bs_hold_release(held[1], 1);
		three_settle();
		assert_true(three.i[A].released);
		dev_task_end(&three.i[A].task);
	}
	memcpy(model[1] + 100, model[0],
	       50); /* the last write was in the backstore */
	expect_model();
}

/* SPC-4 §6.21, §7.8.17: the unit reports the descriptor type. */
static void test_announced(void **state)
{
	const uint8_t *p = three.i[A].in;

	(void)state;
	assert_int_equal(RUN(A, 512, 0x84, 0x03, [12] = 2), SCSI_GOOD);
	assert_int_equal(p[43], 3);
	assert_memory_equal(p + 44, "\x02\x0a\xe4", 3);
	assert_int_equal(p[37], 0);
}

#define TB(name) cmocka_unit_test_setup_teardown(name, open_two, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TB(test_any_bytes_spc4_6_4_6_12),
		TB(test_edges),
		TB(test_exclusive_access_to_partial_blocks),
		TB(test_abort_between_its_steps),
		TB(test_announced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
