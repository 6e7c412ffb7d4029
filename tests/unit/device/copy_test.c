/* SPDX-License-Identifier: BSD-2-Clause */
/* copy_test.c: EXTENDED COPY and the reports about copies, by the clauses of
 * SPC-4. The fixture gets a second unit with another block size. */
#include "dev_case.h"

static uint8_t *second; /* 128 blocks of 4096 bytes, LUN 1 */
static uint8_t list[8192];
static uint32_t targets, segments;

static int open_two(void **state)
{
	open_fixture(state);
	second = calloc(128, 4096);
	fx_add(R, 1,
	       bs_ram_new("ram:second", second, 128 * 4096, 4096, free,
			  second));
	memset(list, 0, sizeof(list));
	targets = segments = 0;
	for (size_t i = 0; i < FX_BLOCKS * FX_BLOCK; i++)
		R->medium[i] = (uint8_t)(i * 13 + (i >> 11));
	return 0;
}

/* put_name writes the NAA name of a unit, from VPD 83h. */
static void put_name(uint8_t *d, uint64_t lun)
{
	const uint8_t *p = R->in + 4;

	fx_begin(R, (const uint8_t[6]){ 0x12, 1, 0x83, 0x04, 0, 0 }, 6, 0,
		 1024);
	dev_task_end(&R->task);
	R->task.lun = lun << 48;
	dev_task_begin(&R->task);
	fx_execute(R, NULL);
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	while ((p[1] & 0xf) != 3)
		p += 4 + p[3];
	d[4] = p[0] & 0xf;
	d[5] = 3;
	d[7] = p[3];
	memcpy(d + 8, p + 4, p[3]);
}

static void add_target(uint64_t lun)
{
	uint8_t *d = list + 16 + 32 * targets++;

	assert_int_equal(segments, 0);
	d[0] = 0xe4;
	put_name(d, lun);
}

static void add_segment(uint16_t from, uint64_t from_lba, uint16_t to,
			uint64_t to_lba, uint16_t blocks)
{
	uint8_t *d = list + 16 + 32 * targets + 28 * segments++;

	d[0] = 0x02;
	put_be16(d + 2, 24);
	put_be16(d + 4, from);
	put_be16(d + 6, to);
	put_be16(d + 10, blocks);
	put_be64(d + 12, from_lba);
	put_be64(d + 20, to_lba);
}

static int copy_len(uint32_t len)
{
	uint8_t cdb[16] = { 0x83 };

	put_be32(cdb + 10, len);
	return fx_run(R, cdb, 16, list, len, 0);
}

static int copy(void)
{
	put_be16(list + 2, (uint16_t)(32 * targets));
	put_be32(list + 8, 28 * segments);
	return copy_len(16 + 32 * targets + 28 * segments);
}

static void test_copies_within_and_between_units_spc4_6_4(void **state)
{
	(void)state;
	add_target(0);
	add_target(1);
	add_segment(0, 0, 0, 512, 400);
	add_segment(0, 8, 1, 3,
		    600); /* 300 KiB: two chunks, different block sizes */
	add_segment(1, 3, 0, 1000, 2); /* in blocks of the source: 8 KiB */
	assert_int_equal(copy(), SCSI_GOOD);
	assert_memory_equal(R->medium, R->medium + 512 * FX_BLOCK,
			    400 * FX_BLOCK);
	assert_memory_equal(R->medium + 8 * FX_BLOCK, second + 3 * 4096,
			    400 * FX_BLOCK);
	assert_memory_equal(R->medium + 1000 * FX_BLOCK, second + 3 * 4096,
			    2 * 4096);
	assert_int_equal(second[3 * 4096 - 1], 0);
	assert_int_equal(second[78 * 4096], 0);
}

/* DC: the count is in blocks of the destination. */
static void test_count_of_destination_blocks_spc4_6_4_6_3(void **state)
{
	(void)state;
	add_target(0);
	add_target(1);
	add_segment(0, 0, 1, 0, 2);
	list[16 + 64 + 1] = 0x02;
	assert_int_equal(copy(), SCSI_GOOD);
	assert_memory_equal(R->medium, second, 8192);
	assert_int_equal(second[8192], 0);
	/* half a block of the destination */
	list[16 + 64 + 1] = 0;
	copy();
	assert_check(SENSE_COPY_ABORTED, ASC_INEXACT_SEGMENT);
}

static void test_every_length_of_the_list(void **state)
{
	uint32_t len;

	(void)state;
	add_target(0);
	add_segment(0, 0, 0, 512, 4);
	memset(R->medium + 512 * FX_BLOCK, 0, 4 * FX_BLOCK);
	copy();
	assert_memory_equal(R->medium, R->medium + 512 * FX_BLOCK,
			    4 * FX_BLOCK);
	memset(R->medium + 512 * FX_BLOCK, 0, 4 * FX_BLOCK);
	len = 16 + 32 + 28;
	assert_int_equal(copy_len(0), SCSI_GOOD);
	for (uint32_t n = 1; n < len; n++) {
		copy_len(n);
		assert_check(SENSE_ILLEGAL_REQUEST,
			     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	assert_int_equal(R->medium[512 * FX_BLOCK + 1], 0);
}

static void test_limits_are_what_is_said(void **state)
{
	uint16_t most_targets, most_segments;

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			     0, 64),
			 SCSI_GOOD);
	assert_int_equal(get_be32(R->in) + 4, R->in_len);
	most_targets = get_be16(R->in + 8);
	most_segments = get_be16(R->in + 10);
	for (unsigned i = 0; i <= most_targets; i++)
		add_target(0);
	add_segment(0, 0, 0, 512, 1);
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOO_MANY_TARGETS);
	targets = segments = 0;
	memset(list, 0, sizeof(list));
	add_target(0);
	for (unsigned i = 0; i < most_segments; i++)
		add_segment(0, i, 0, 512 + i, 1);
	assert_int_equal(copy(), SCSI_GOOD);
	assert_memory_equal(R->medium, R->medium + 512 * FX_BLOCK,
			    most_segments * FX_BLOCK);
	add_segment(0, 0, 0, 512, 1);
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOO_MANY_SEGMENTS);
}

static void test_bad_descriptors(void **state)
{
	(void)state;
	add_target(0);
	add_segment(0, 0, 0, 512, 1);
	list[16] = 0xe0;
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TARGET_DESCRIPTOR_TYPE);
	list[16] = 0xe4;
	list[48] = 0x03;
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_SEGMENT_DESCRIPTOR_TYPE);
	list[48] = 0x02;
	list[48 + 3] = 25;
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 50);
	list[48 + 3] = 24;
	list[16 + 7] = 21; /* a name longer than the descriptor */
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	list[16 + 7] = 8;
	list[1] = 0x18; /* LIST ID USAGE 11b with a list identifier */
	list[0] = 1;
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 0);
	list[0] = 0;
	put_be32(list + 12, 4);
	copy();
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INLINE_DATA_LENGTH);
}

/* expect_segment checks the sense data (SPC-4 §5.17.7.4): the segment, the byte
 * of the list, the residual. */
static void expect_segment(uint16_t segment, uint16_t field, uint64_t residual)
{
	assert_true(R->sense.has_segment);
	assert_int_equal(R->sense.segment, segment);
	assert_true(R->sense.has_field && !R->sense.in_cdb);
	assert_int_equal(R->sense.field, field);
	assert_int_equal(R->sense.has_info, residual != 0);
	assert_int_equal(R->sense.info, residual);
}

/* If one segment is not possible, the unit copies no segment. */
static void test_unreachable_is_found_before_copying(void **state)
{
	(void)state;
	memset(R->medium + 512 * FX_BLOCK, 0, FX_BLOCK);
	add_target(0);
	add_target(0);
	list[16 + 32 + 8] ^= 0x01; /* an unknown name */
	add_segment(0, 0, 0, 512, 1);
	add_segment(0, 0, 1, 513, 1);
	copy();
	assert_check(SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
	expect_segment(1, 16 + 32, 0);
	put_be16(list + 16 + 64 + 28 + 6, 2); /* no such descriptor */
	copy();
	assert_check(SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
	expect_segment(1, 16 + 64 + 28 + 6, 0);
	put_be16(list + 16 + 64 + 28 + 6, 0);
	put_be64(list + 16 + 64 + 28 + 20, FX_BLOCKS); /* after the end */
	copy();
	assert_check(SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
	expect_segment(1, 16 + 64 + 28 + 20, 0);
	put_be64(list + 16 + 64 + 28 + 12, FX_BLOCKS);
	copy();
	expect_segment(1, 16 + 64 + 28 + 12, 0);
	assert_int_equal(R->medium[512 * FX_BLOCK + 1], 0);
}

static int ask(uint8_t id)
{
	return CMD(0, 64, NULL, 0x84, 0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64);
}

static void test_status_is_held_by_list_identifier_spc4_6_23(void **state)
{
	(void)state;
	add_target(0);
	add_segment(0, 0, 0, 512, 3);
	add_segment(0, 0, 0, 512, 4);
	ask(7);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	list[0] = 7;
	assert_int_equal(copy(), SCSI_GOOD);
	assert_int_equal(ask(7), SCSI_GOOD);
	assert_int_equal(R->in_len, 12);
	assert_int_equal(R->in[4], 1); /* completed */
	assert_int_equal(get_be16(R->in + 5), 2);
	assert_int_equal(R->in[7], 0); /* bytes */
	assert_int_equal(get_be32(R->in + 8), 7 * FX_BLOCK);
	ask(7); /* a report is given once */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(copy(), SCSI_GOOD);
	/* Another nexus has no report of the copy. */
	fx_swap(R);
	ask(7);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	fx_swap(R);
	/* usage 10b: no report is held */
	list[0] = 8;
	list[1] = 0x10;
	assert_int_equal(copy(), SCSI_GOOD);
	ask(8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* usage 11b: several copies at once are permitted */
	list[0] = 0;
	list[1] = 0x18;
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(copy(), SCSI_GOOD);
}

static void test_third_party_page_spc4_7_8_17(void **state)
{
	const uint8_t *p, *end;
	unsigned seen = 0;

	(void)state;
	assert_int_equal(CMD(0, 1024, NULL, 0x12, 1, 0x8f, 4, 0), SCSI_GOOD);
	assert_int_equal(get_be16(R->in + 2) + 4u, R->in_len);
	end = R->in + R->in_len;
	for (p = R->in + 4; p < end; p += 4 + get_be16(p + 2), seen++)
		assert_int_equal(get_be16(p + 2) % 4, 0);
	assert_ptr_equal(p, end);
	assert_true(seen >= 4);
	assert_int_equal(CMD(0, 96, NULL, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(R->in[5] & 0x08, 0x08); /* 3PC */
}

/* ---- with a backstore that fails or waits ---- */

static void reopen(struct bs *store)
{
	close_fixture(NULL);
	memset(R, 0, sizeof(*R));
	fx_open(R, store, false);
	fx_run(R, (const uint8_t[6]){ 0 }, 6, NULL, 0, 0);
	memset(list, 0, sizeof(list));
	targets = segments = 0;
	add_target(0);
	add_segment(0, 0, 0, 512, 4);
	list[0] = 9;
}

static struct bs *plain_ram(void)
{
	void *m = calloc(FX_BLOCKS, FX_BLOCK);

	return bs_ram_new("ram:f", m, FX_BLOCKS * FX_BLOCK, FX_BLOCK, free, m);
}

static void test_nth_io_of_a_copy_fails(void **state)
{
	(void)state;
	for (unsigned op = BS_READ; op <= BS_WRITE; op++) {
		reopen(bs_fault_new(plain_ram(), BIT(op), 1, 0, ERR_MEDIUM));
		copy();
		assert_check(SENSE_COPY_ABORTED,
			     ASC_THIRD_PARTY_DEVICE_FAILURE);
		assert_int_equal(ask(9), SCSI_GOOD);
		assert_int_equal(R->in[4], 2); /* with errors */
		assert_int_equal(copy(), SCSI_GOOD);
	}
}

/* A failure in the second chunk of the second segment: the sense data name the
 * unit and the residual, in both formats. */
static void test_failure_in_the_middle_spc4_5_17_7_4(void **state)
{
	uint8_t d_sense[4 + 12] = { [4] = 0x0a, 10,	     0x06,
				    0x10,	[12] = 0xff, 0xff };

	(void)state;
	for (unsigned op = BS_READ; op <= BS_WRITE; op++)
		for (unsigned format = 0; format < 2; format++) {
			reopen(bs_fault_new(plain_ram(), BIT(op), 3, 0,
					    ERR_MEDIUM));
			if (format)
				assert_int_equal(CMD(sizeof(d_sense), 0,
						     d_sense, 0x15, 0x10, 0, 0,
						     sizeof(d_sense)),
						 SCSI_GOOD);
			memset(list, 0, sizeof(list));
			targets = segments = 0;
			add_target(0);
			add_target(0);
			add_segment(0, 0, 0, 512, 4);
			add_segment(0, 0, 1, 0, 600);
			copy();
			assert_check(SENSE_COPY_ABORTED,
				     ASC_THIRD_PARTY_DEVICE_FAILURE);
			assert_int_equal(R->task.sense.data[0],
					 format ? 0x72 : 0xf0);
			expect_segment(1, op == BS_READ ? 16 : 16 + 32,
				       600 - 512);
			assert_int_equal(get_be16(R->task.sense.data +
						  (format ? 26 : 10)),
					 1);
		}
}

#define ONE_LEN (16 + 32 + 28)

/* put_one makes the headers of a list with one segment. */
static void put_one(void)
{
	put_be16(list + 2, 32);
	put_be32(list + 8, 28);
}

/* begin_one begins a copy of one segment. */
static void begin_one(void)
{
	uint8_t cdb[16] = { 0x83 };

	put_one();
	put_be32(cdb + 10, ONE_LEN);
	fx_begin(R, cdb, 16, ONE_LEN, 0);
	assert_int_equal(fx_execute(R, list), -1);
}

static void test_copy_is_aborted_between_its_steps(void **state)
{
	struct bs *hold;

	(void)state;
	hold = bs_hold_new(plain_ram());
	reopen(hold);
	for (unsigned ios = 0; ios < 2; ios++) {
		begin_one();
		bs_hold_release(hold, ios);
		assert_int_equal(bs_hold_waiting(hold), 1);
		assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
		bs_hold_release(hold, 1);
		assert_true(R->released);
		dev_task_end(&R->task);
		assert_int_equal(ask(9), SCSI_GOOD);
		assert_int_equal(R->in[4], 2);
	}
}

static void format_done(struct dev_task *t)
{
	(void)t;
}

/* Data read before a FORMAT UNIT are not written after it. */
static void test_copy_does_not_outlive_a_format_sbc3_4_11(void **state)
{
	static struct dev_task format;
	struct bs *hold;

	(void)state;
	hold = bs_hold_new(plain_ram());
	reopen(hold);
	begin_one();
	memset(&format, 0, sizeof(format));
	format.nexus = R->nexus;
	format.attr = DEV_ATTR_SIMPLE;
	format.cdb[0] = 0x04;
	format.cdb_len = 16;
	format.done = format_done;
	assert_int_equal(dev_task_begin(&format), 0);
	dev_task_execute(&format);
	assert_int_equal(bs_hold_waiting(hold),
			 2); /* the read, and the zeros of the format */
	bs_hold_release(hold, 1);
	assert_true(R->done);
	fx_finish(R);
	assert_check(SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
	while (bs_hold_waiting(hold))
		bs_hold_release(hold, 1);
	assert_int_equal(format.status, SCSI_GOOD);
	dev_task_end(&format);
	assert_int_equal(ask(9), SCSI_GOOD);
	assert_int_equal(R->in[4], 2);
	begin_one(); /* another copy is possible */
	bs_hold_release(hold, 1);
	bs_hold_release(hold, 1);
	assert_int_equal(fx_finish(R), SCSI_GOOD);
}

/* begin_copy begins a copy of the current list with a task of the test. */
static void begin_copy(struct dev_task *t)
{
	memset(t, 0, sizeof(*t));
	t->nexus = R->nexus;
	t->attr = DEV_ATTR_SIMPLE;
	t->cdb[0] = 0x83;
	put_be32(t->cdb + 10, ONE_LEN);
	t->cdb_len = 16;
	t->edtl.out = ONE_LEN;
	t->done = format_done;
	assert_int_equal(dev_task_begin(t), 0);
	bufv_copy_in(&t->out, 0, list, t->out_len);
	dev_task_execute(t);
}

static void reserve_by_other(void)
{
	fx_swap(R);
	assert_int_equal(fx_run(R, (const uint8_t[6]){ 0x16 }, 6, NULL, 0, 0),
			 SCSI_GOOD);
	fx_swap(R);
}

static void protect_by_other(void)
{
	static const uint8_t cdb[6] = { 0x15, 0x10, 0, 0, 16 };
	uint8_t control[16] = { [4] = 0x0a, 10, 0x02, 0x10, 0x08 /* SWP */ };

	control[12] = control[13] = 0xff;
	fx_swap(R);
	assert_int_equal(fx_run(R, cdb, 6, control, 16, 0), SCSI_GOOD);
	fx_swap(R);
}

/* From the response to another nexus that reserves or protects the unit, or that
 * takes access away, a copy in progress writes no more (SPC-4 §5.13.1, §7.5.8). */
static void test_copy_does_not_outlive_its_permission(void **state)
{
	static void (*const take_away[])(void) = { reserve_by_other,
						   protect_by_other };
	struct dev_task copy;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(take_away); i++) {
		struct bs *hold = bs_hold_new(plain_ram());

		reopen(hold);
		fx_take_attentions(R);
		put_one();
		begin_copy(&copy);
		assert_int_equal(bs_hold_waiting(hold), 1); /* the read */
		take_away[i]();
		bs_hold_release(hold, 1);
		assert_int_equal(bs_hold_waiting(hold), 0);
		assert_int_equal(copy.status, SCSI_CHECK_CONDITION);
		dev_task_end(&copy);
	}
}

/* While the response to a copy is being sent, the next copy may take the place
 * of the ended one. */
static void test_next_copy_before_the_last_is_forgotten(void **state)
{
	static struct dev_task first, next;
	struct bs *hold;

	(void)state;
	for (unsigned usage = 0; usage <= 0x10; usage += 0x10) {
		hold = bs_hold_new(plain_ram());
		reopen(hold);
		put_one();
		list[1] = (uint8_t)
			usage; /* usage 10b: no report of the first copy is held */
		begin_copy(&first);
		bs_hold_release(hold, 1);
		bs_hold_release(hold, 1);
		assert_int_equal(first.own.state, DEV_TASK_DONE);
		list[1] = 0;
		begin_copy(&next);
		dev_task_end(&first);
		assert_int_equal(ask(9), SCSI_GOOD);
		assert_int_equal(R->in[4], 0); /* in progress */
		bs_hold_release(hold, 1);
		bs_hold_release(hold, 1);
		assert_int_equal(next.own.state, DEV_TASK_DONE);
		dev_task_end(&next);
		assert_int_equal(ask(9), SCSI_GOOD);
		assert_int_equal(R->in[4], 1);
	}
}

#define C(name) cmocka_unit_test_setup_teardown(name, open_two, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(test_copies_within_and_between_units_spc4_6_4),
		C(test_count_of_destination_blocks_spc4_6_4_6_3),
		C(test_every_length_of_the_list),
		C(test_limits_are_what_is_said),
		C(test_bad_descriptors),
		C(test_unreachable_is_found_before_copying),
		C(test_status_is_held_by_list_identifier_spc4_6_23),
		C(test_third_party_page_spc4_7_8_17),
		C(test_nth_io_of_a_copy_fails),
		C(test_failure_in_the_middle_spc4_5_17_7_4),
		C(test_copy_is_aborted_between_its_steps),
		C(test_copy_does_not_outlive_a_format_sbc3_4_11),
		C(test_copy_does_not_outlive_its_permission),
		C(test_next_copy_before_the_last_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
