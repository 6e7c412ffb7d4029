/* SPDX-License-Identifier: BSD-2-Clause */
/* block_test.c: commands of rows_block.c, by the clauses of SBC-3. */
#include "dev_case.h"
#include "device/unit/unit.h"

/* ---- READ DEFECT DATA, SBC-3 §§5.19, 5.20 ---- */

static void test_defect_lists_are_empty_sbc3_5_19(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x37, 0, 0x1d, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4);
	assert_int_equal(R->in[1],
			 0x1d); /* both lists, in the requested format */
	assert_int_equal(get_be16(R->in + 2), 0);
	assert_int_equal(CMD(0, 64, NULL, 0xb7, 0x08, 0, 0, 1, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 8);
	assert_int_equal(R->in[1], 0x08);
	assert_int_equal(get_be32(R->in + 4), 0);
}

/* ---- COMPARE AND WRITE, SBC-3 §5.2 ---- */

static uint8_t caw[4 * FX_BLOCK];

static void fill_caw(uint8_t compare, uint8_t write, unsigned blocks)
{
	memset(caw, compare, blocks * FX_BLOCK);
	memset(caw + blocks * FX_BLOCK, write, blocks * FX_BLOCK);
}

static void test_compare_and_write_equal_writes(void **state)
{
	(void)state;
	memset(R->medium, 'a', 8 * FX_BLOCK);
	fill_caw('a', 'b', 2);
	assert_int_equal(CMD(2048, 0, caw, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0,
			     0, 0, 2),
			 SCSI_GOOD);
	assert_int_equal(R->medium[3 * FX_BLOCK - 1], 'a');
	for (size_t i = 3 * FX_BLOCK; i < 5 * FX_BLOCK; i++)
		assert_int_equal(R->medium[i], 'b');
	assert_int_equal(R->medium[5 * FX_BLOCK], 'a');
}

/* The information field holds the offset of the first byte that differs. */
static void test_compare_and_write_reports_the_offset(void **state)
{
	(void)state;
	memset(R->medium, 'a', 8 * FX_BLOCK);
	R->medium[3 * FX_BLOCK + 777] = 'x';
	fill_caw('a', 'b', 2);
	CMD(2048, 0, caw, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	assert_true(R->sense.has_info);
	assert_int_equal(R->sense.info, 777);
	assert_int_equal(R->medium[3 * FX_BLOCK], 'a');
}

static void test_compare_and_write_edges(void **state)
{
	(void)state;
	/* Zero blocks: no action, and no error. */
	assert_int_equal(CMD(0, 0, NULL, 0x89), SCSI_GOOD);
	CMD(1024, 0, caw, 0x89, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	CMD(1024, 0, caw, 0x89, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* The data-out buffer must contain exactly both halves. */
	CMD(512, 0, caw, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(2048, 0, caw, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* VPD B0h reports the limit, and the unit accepts that length. */
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb0, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[5], 255);
}

/* ---- ORWRITE, SBC-3 §5.9 ---- */

static uint8_t big[600 * FX_BLOCK];

static void test_orwrite_ors_across_chunks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(big); i++) {
		big[i] = (uint8_t)(i * 31);
		R->medium[i + FX_BLOCK] = (uint8_t)(i >> 9);
	}
	/* The longest transfer of one command, more than half of a chunk. */
	assert_int_equal(CMD(512 * FX_BLOCK, 0, big, 0x8b, 0, 0, 0, 0, 0, 0, 0,
			     0, 1, 0, 0, 2, 0),
			 SCSI_GOOD);
	for (size_t i = 0; i < 512 * FX_BLOCK; i++)
		assert_int_equal(R->medium[i + FX_BLOCK],
				 (uint8_t)(i * 31) | (uint8_t)(i >> 9));
	assert_int_equal(R->medium[513 * FX_BLOCK], (uint8_t)512);
}

/* ---- WRITE ATOMIC, SBC-4 §5.48 ---- */

static void test_write_atomic_limits(void **state)
{
	(void)state;
	memset(big, 0x5a, sizeof(big));
	assert_int_equal(CMD(4096, 0, big, 0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0,
			     0, 0, 8),
			 SCSI_GOOD);
	assert_int_equal(R->medium[7 * FX_BLOCK - 1], 0);
	assert_memory_equal(R->medium + 7 * FX_BLOCK, big, 4096);
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb0, 0, 64), SCSI_GOOD);
	assert_int_equal(get_be32(R->in + 44), FX_MAX / FX_BLOCK);
	/* no atomic boundary */
	CMD(4096, 0, big, 0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 8, 0, 8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 10);
	CMD(0, 0, big, 0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 2, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 12);
}

/* A backstore that could write a part only: the unit does not have the command,
 * and both reports say so. */
static void test_write_atomic_not_on_a_cached_medium(void **state)
{
	struct bs *ram;

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	ram = fx_ram(R);
	ram->caps |= BS_CAP_WRITE_CACHE;
	fx_open(R, ram, false);
	CMD(0, 0, NULL, 0x00);
	CMD(512, 0, big, 0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 1, 0x9c, 0, 0, 0, 0, 0,
			     64),
			 SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 1); /* not supported */
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb0, 0, 64), SCSI_GOOD);
	assert_int_equal(get_be32(R->in + 44), 0);
}

static void one_command(struct bs *store, const uint8_t cdb[16], uint32_t out,
			uint8_t key)
{
	close_fixture(NULL);
	memset(R, 0, sizeof(*R));
	fx_open(R, store, false);
	fx_run(R, (const uint8_t[6]){ 0 }, 6, NULL, 0, 0);
	memset(caw, 0, sizeof(caw));
	fx_run(R, cdb, 16, caw, out, 0);
	assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
	assert_int_equal(R->sense.key, key);
	/* The range of the command is released. */
	assert_int_equal(fx_run(R, cdb, 16, caw, out, 0), SCSI_GOOD);
}

static void test_nth_io_of_read_modify_write_fails(void **state)
{
	static const uint8_t cdbs[2][16] = {
		{ 0x89, [13] = 1 },
		{ 0x8b, [13] = 2 },
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned op = BS_READ; op <= BS_WRITE; op++) {
			void *m = calloc(64, FX_BLOCK);
			struct bs *ram = bs_ram_new("ram:f", m, 64 * FX_BLOCK,
						    FX_BLOCK, free, m);

			ram = bs_fault_new(ram, BIT(op), 1, 0, ERR_MEDIUM);
			one_command(ram, cdbs[i], 1024, SENSE_MEDIUM_ERROR);
		}
}

/* ---- TIMESTAMP, IDENTIFYING INFORMATION, echo buffer ---- */

static uint64_t clock_ms;

static uint64_t fake_clock(void *arg)
{
	(void)arg;
	return clock_ms;
}

static uint64_t timestamp(uint8_t *origin)
{
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0f, 0, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 12);
	assert_int_equal(get_be16(R->in), 10);
	*origin = R->in[2];
	return (uint64_t)get_be16(R->in + 4) << 32 | get_be32(R->in + 6);
}

static void test_timestamp_is_set_and_goes_on_spc4_6_45(void **state)
{
	uint8_t list[12] = { [4] = 0x01, [5] = 0x02, [9] = 0x05 }, origin;

	(void)state;
	/* Without a clock the unit has no such service action. */
	CMD(0, 64, NULL, 0xa3, 0x0f, 0, 0, 0, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* SET PRIORITY has the same operation code. */
	CMD(0, 64, NULL, 0xa4, 0x0f);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	close_fixture(state);
	memset(R, 0, sizeof(*R));
	R->wall_ms = fake_clock;
	fx_open(R, fx_ram(R), false);
	fx_take_attentions(R);
	clock_ms = 1000;
	assert_int_equal(timestamp(&origin), 1000);
	assert_int_equal(origin, 3);
	assert_int_equal(CMD(12, 0, list, 0xa4, 0x0f, 0, 0, 0, 0, 0, 0, 0, 12),
			 SCSI_GOOD);
	clock_ms = 1007;
	assert_int_equal(timestamp(&origin), 0x010200000005ull + 7);
	assert_int_equal(origin, 2);
	for (uint8_t len = 1; len < 16; len++) {
		if (len == 12)
			continue;
		CMD(len, 0, list, 0xa4, 0x0f, 0, 0, 0, 0, 0, 0, 0, len);
		assert_check(SENSE_ILLEGAL_REQUEST,
			     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	fx_swap(R);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_TIMESTAMP_CHANGED);
	fx_swap(R);
}

static void test_no_identifying_information_spc4_6_32(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x05, 0, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4);
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x05, 0, 0, 0, 0, 0, 0, 0, 64,
			     0xfe),
			 SCSI_GOOD);
	assert_int_equal(get_be16(R->in + 2), 4);
	CMD(0, 64, NULL, 0xa3, 0x05, 0, 0, 0, 0, 0, 0, 0, 64, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* SPC-4 §§7.8.7, 7.8.14, SBC-3 §6.6.2, ZBC */
static void test_pages_of_a_disk(void **state)
{
	static const uint8_t want[] = { 0,    0x00, 0x00, 12,	0x00, 0x80,
					0x83, 0x86, 0x87, 0x88, 0x8a, 0x8f,
					0xb0, 0xb1, 0xb2, 0xb6 };

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0x00, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(want));
	assert_memory_equal(R->in, want, sizeof(want));
	for (size_t i = 4; i < sizeof(want); i++) {
		assert_int_equal(CMD(0, 255, NULL, 0x12, 1, want[i], 4, 0),
				 SCSI_GOOD);
		assert_int_equal(R->in[1], want[i]);
		assert_int_equal(MIN(255, get_be16(R->in + 2) + 4), R->in_len);
	}
	CMD(0, 64, NULL, 0x12, 1, 0x86, 0, 64);
	assert_int_equal(R->in[5], 0x0f); /* PRIOR_SUP and the attributes */
	CMD(0, 64, NULL, 0x12, 1, 0xb1, 0, 64);
	assert_int_equal(R->in[8], 0x01); /* VBULS; not zoned */
	CMD(0, 64, NULL, 0x12, 1, 0xb6, 0, 64);
	assert_int_equal(R->in_len, 64);
	assert_int_equal(R->in[4], 0); /* URSWRZ */
	for (unsigned i = 8; i < 20; i++)
		assert_int_equal(R->in[i], 0xff);
}

static void test_echo_buffer_of_each_nexus_spc4_6_49(void **state)
{
	static const uint8_t text[] = "said by one";

	(void)state;
	assert_int_equal(CMD(0, 4, NULL, 0x3c, 0x0b, 0, 0, 0, 0, 0, 0, 4),
			 SCSI_GOOD);
	assert_int_equal(get_be32(R->in), 0x01001000); /* EBOS, capacity */
	CMD(0, 4, NULL, 0x3c, 0x0a, 0, 0, 0, 0, 0, 0, 4);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_COMMAND_SEQUENCE);
	assert_int_equal(CMD(sizeof(text), 0, text, 0x3b, 0x0a, 0, 0, 0, 0, 0,
			     0, sizeof(text)),
			 SCSI_GOOD);
	fx_swap(R);
	CMD(0, 4, NULL, 0x3c, 0x0a, 0, 0, 0, 0, 0, 0, 4);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_COMMAND_SEQUENCE);
	fx_swap(R);
	assert_int_equal(CMD(0, 64, NULL, 0x3c, 0x0a, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(text));
	assert_memory_equal(R->in, text, sizeof(text));
	CMD(0, 0, NULL, 0x3b, 0x0a, 0, 0, 0, 0, 0, 0x10, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 6);
	CMD(0, 0, NULL, 0x3b, 0x05);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* ---- every operation code, every service action ---- */

/* A code that REPORT SUPPORTED OPERATION CODES does not list is refused: an
 * operation code as such, a service action by its field. A listed code is not
 * refused so. */
static void test_every_code_and_service_action_spc4_6_35(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		bool any = false, with_sa;

		CMD(0, 64, NULL, 0xa3, 0x0c, 1, (uint8_t)op, 0, 0, 0, 0, 0, 64);
		with_sa = R->task.status == SCSI_CHECK_CONDITION;
		if (!with_sa)
			any = (R->in[1] & 7) == 3;
		for (uint8_t sa = 0; sa < 32; sa++) {
			uint8_t cdb[32], len = cdb_of((uint8_t)op, sa, cdb);
			bool of_type_2 = op == SCSI_VARIABLE_LENGTH &&
					 sa >= SCSI_VL_READ_32 &&
					 sa <= SCSI_VL_WRITE_SAME_32;
			bool has = any;

			if (with_sa) {
				CMD(0, 64, NULL, 0xa3, 0x0c, 2, (uint8_t)op, 0,
				    sa, 0, 0, 0, 64);
				has = (R->in[1] & 7) == 3;
			}
			if (has || (!with_sa && sa))
				continue;
			fx_run(R, cdb, len, NULL, 0, 0);
			/* SBC-4 §4.21.2.2: the unit does not have these
			 * commands */
			if (!with_sa || of_type_2) {
				assert_check(SENSE_ILLEGAL_REQUEST,
					     ASC_INVALID_OPCODE);
				continue;
			}
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(R->sense.field,
					 op == SCSI_VARIABLE_LENGTH ? 8 : 1);
		}
	}
}

/* All fields are zero: the command transfers nothing; a refusal has a reason.
 * The cases name the few commands that always return data. */
static void test_every_command_with_zeros_for_fields(void **state)
{
	static uint8_t all[8192];
	uint32_t len;

	(void)state;
	assert_int_equal(CMD(0, sizeof(all), NULL, 0xa3, 0x0c, 0, 0, 0, 0, 0, 0,
			     0x20, 0),
			 SCSI_GOOD);
	memcpy(all, R->in, R->in_len);
	len = get_be32(all);
	for (uint32_t at = 4; at < 4 + len; at += 8) {
		uint8_t op = all[at], sa = all[at + 3];
		uint8_t cdb[32];
		uint8_t n = cdb_of(op, all[at + 5] & 1 ? sa : 0, cdb);

		fx_run(R, cdb, n, NULL, 0, sizeof(R->in));
		if (R->task.status == SCSI_CHECK_CONDITION)
			assert_int_not_equal(R->sense.key, SENSE_NO_SENSE);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
		if (op != SCSI_READ_6 && op != SCSI_READ_CAPACITY_10)
			assert_int_equal(R->in_len, 0);
		/* START STOP UNIT may have stopped the unit: load the medium. A
		 * sanitize has ended. */
		assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	}
}

/* 65 blocks of 4,096 bytes: more than the chunk that one read fills. */
static void test_compare_and_write_of_many_large_blocks(void **state)
{
	enum {
		LEN = 65 * 4096,
		ALL = 128 * 4096
	};
	uint8_t *memory = calloc(1, ALL), *data = malloc(2 * LEN);

	close_fixture(state);
	assert_true(memory && data);
	memset(R, 0, sizeof(*R));
	fx_open(R, bs_ram_new("ram:4k", memory, ALL, 4096, free, memory),
		false);
	R->server->max_transfer = 1u << 20;
	CMD(0, 0, NULL, 0);
	memset(data, 0, LEN);
	memset(data + LEN, 0x5a, LEN);
	assert_int_equal(CMD(2 * LEN, 0, data, 0x89, [13] = 65), SCSI_GOOD);
	assert_memory_equal(memory, data + LEN, LEN);
	assert_int_equal(memory[LEN], 0);
	data[LEN - 1] = 1; /* the blocks hold 5Ah now; the first byte differs */
	CMD(2 * LEN, 0, data, 0x89, [13] = 65);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	assert_int_equal(R->sense.info, 0);
	memset(data, 0x5a, LEN - 1); /* the last byte differs */
	CMD(2 * LEN, 0, data, 0x89, [13] = 65);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	assert_int_equal(R->sense.info, LEN - 1);
	free(data);
}

/* ---- memory of commands that work in steps (memory.c) ---- */

static void test_chunk_counts_as_memory_of_its_command(void **state)
{
	static const struct {
		uint8_t cdb[16];
		uint32_t out;
		size_t counted;
	} rows[] = {
		/* VERIFY(10) of 1, 512 and 1,024 blocks, BYTCHK = 00b and 01b */
		{ { 0x2f, [8] = 1 }, 0, 4096 },
		{ { 0x2f, [7] = 2 }, 0, DEV_CHUNK },
		{ { 0x2f, [7] = 4 }, 0, DEV_CHUNK },
		{ { 0x2f, 0x02, [8] = 8 }, 4096, 4096 + 4096 },
		/* WRITE SAME(10), ORWRITE(16), WRITE AND VERIFY(10) */
		{ { 0x41, [7] = 4 }, FX_BLOCK, DEV_CHUNK + 4096 },
		{ { 0x8b, [13] = 8 }, 4096, 4096 + 4096 },
		{ { 0x2e, [8] = 8 }, 4096, 4096 + 4096 },
		/* COMPARE AND WRITE of 8 blocks: both halves and a buffer */
		{ { 0x89, [13] = 8 }, 8192, 8192 + 4096 },
	};
	static uint8_t zeros[8192];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(fx_begin(R, rows[i].cdb, 16, rows[i].out, 0),
				 0);
		assert_int_equal(R->task.own.share.charge.len, rows[i].counted);
		fx_execute(R, zeros);
		fx_finish(R);
		assert_int_equal(R->task.own.share.charge.len, 0);
	}
}

/* ---- write data that are not in the buffer of the command ---- */

static const uint8_t write_10[16] = { 0x2a, [8] = 1 };
static const uint8_t compare_and_write[16] = { 0x89, [13] = 1 };

static void peek(uint8_t *data, const uint8_t cdb[16], uint32_t len)
{
	assert_int_equal(fx_begin(R, cdb, 16, len, 0), 0);
	memset(R->task.own.mem.buf, 'x', len);
	dev_task_peek(&R->task, data, len);
	dev_task_execute(&R->task);
	dev_task_keep(&R->task);
	memset(data, 'z',
	       len); /* the owner of the data uses the memory again */
}

static void test_write_takes_data_where_they_are(void **state)
{
	uint8_t data[FX_BLOCK], expected[FX_BLOCK];

	(void)state;
	memset(data, 'a', sizeof(data));
	memset(expected, 'a', sizeof(expected));
	peek(data, write_10, sizeof(data));
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	assert_memory_equal(R->medium, expected, sizeof(expected));
}

/* The backstore takes the data later than dev_task_keep. */
static void test_data_are_kept_for_a_slow_store(void **state)
{
	uint8_t data[FX_BLOCK], expected[FX_BLOCK];
	struct bs *hold;

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	hold = bs_hold_new(fx_ram(R));
	fx_open(R, hold, false);
	CMD(0, 0, NULL, 0x00);
	memset(data, 'a', sizeof(data));
	memset(expected, 'a', sizeof(expected));
	peek(data, write_10, sizeof(data));
	assert_false(R->done);
	bs_hold_release(hold, 1);
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	assert_memory_equal(R->medium, expected, sizeof(expected));
}

/* The command uses its buffer, which gets the data before. */
static void test_data_are_kept_for_other_commands(void **state)
{
	uint8_t data[2 * FX_BLOCK], expected[FX_BLOCK];

	(void)state;
	memset(R->medium, 'a', FX_BLOCK);
	memset(data, 'a', FX_BLOCK);
	memset(data + FX_BLOCK, 'b', FX_BLOCK);
	memset(expected, 'b', sizeof(expected));
	peek(data, compare_and_write, sizeof(data));
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	assert_memory_equal(R->medium, expected, sizeof(expected));
}

/* dev_task_execute follows dev_task_keep: the command was not in turn. */
static void test_data_are_kept_until_the_turn(void **state)
{
	uint8_t data[FX_BLOCK], expected[FX_BLOCK];

	(void)state;
	memset(data, 'a', sizeof(data));
	memset(expected, 'a', sizeof(expected));
	assert_int_equal(fx_begin(R, write_10, 16, sizeof(data), 0), 0);
	dev_task_peek(&R->task, data, sizeof(data));
	dev_task_keep(&R->task);
	memset(data, 'z', sizeof(data));
	dev_task_execute(&R->task);
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	assert_memory_equal(R->medium, expected, sizeof(expected));
}

/* A failure of the transfer ends the command before it uses the data. */
static void test_data_of_a_failed_transfer(void **state)
{
	uint8_t data[FX_BLOCK], before[FX_BLOCK];

	(void)state;
	memcpy(before, R->medium, sizeof(before));
	assert_int_equal(fx_begin(R, write_10, 16, sizeof(data), 0), 0);
	dev_task_peek(&R->task, data, sizeof(data));
	dev_task_fail(&R->task, DEV_FAILURE_DATA_CRC);
	dev_task_keep(&R->task);
	assert_int_equal(fx_finish(R), SCSI_CHECK_CONDITION);
	assert_memory_equal(R->medium, before, sizeof(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_write_takes_data_where_they_are),
		T(test_data_are_kept_for_a_slow_store),
		T(test_data_are_kept_for_other_commands),
		T(test_data_are_kept_until_the_turn),
		T(test_data_of_a_failed_transfer),
		T(test_compare_and_write_of_many_large_blocks),
		T(test_defect_lists_are_empty_sbc3_5_19),
		T(test_compare_and_write_equal_writes),
		T(test_compare_and_write_reports_the_offset),
		T(test_compare_and_write_edges),
		T(test_orwrite_ors_across_chunks),
		T(test_write_atomic_limits),
		T(test_write_atomic_not_on_a_cached_medium),
		T(test_timestamp_is_set_and_goes_on_spc4_6_45),
		T(test_no_identifying_information_spc4_6_32),
		T(test_pages_of_a_disk),
		T(test_echo_buffer_of_each_nexus_spc4_6_49),
		T(test_every_code_and_service_action_spc4_6_35),
		T(test_every_command_with_zeros_for_fields),
		T(test_nth_io_of_read_modify_write_fails),
		T(test_chunk_counts_as_memory_of_its_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
