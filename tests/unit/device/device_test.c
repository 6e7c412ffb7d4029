/* SPDX-License-Identifier: BSD-2-Clause */
/* device_test.c: commands by the clauses of SPC-4, SBC-3 and SAM-5. */
#include "dev_case.h"
#include "device/unit/unit.h"

/* ---- every command: reserved bits, SPC-4 §4.5.2.4.2 ---- */

static uint8_t all[4096];

static void test_every_reserved_bit_gives_its_field(void **state)
{
	uint32_t len;

	(void)state;
	assert_int_equal(CMD(0, sizeof(all), NULL, 0xa3, 0x0c, 0, 0, 0, 0, 0, 0,
			     0x10, 0),
			 SCSI_GOOD);
	memcpy(all, R->in, R->in_len);
	len = get_be32(all);
	assert_true(len >= 8 * 30);
	for (uint32_t at = 4; at < 4 + len; at += 8) {
		uint8_t op = all[at];
		uint16_t sa = get_be16(all + at + 2), cdb_len;
		uint8_t usage[32];
		bool has_sa = all[at + 5] & 1;

		assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, has_sa ? 2 : 1,
				     op, 0, (uint8_t)sa, 0, 0, 0, 64),
				 SCSI_GOOD);
		cdb_len = get_be16(R->in + 2);
		memcpy(usage, R->in + 4, cdb_len);
		assert_int_equal(usage[0], op);
		for (unsigned bit = 8; bit < 8u * cdb_len; bit++) {
			uint8_t cdb[32], n = cdb_of(op, (uint8_t)sa, cdb);
			bool of_sa =
				n == 32 ? bit / 8 >= 7 && bit / 8 <= 9
					: has_sa && bit / 8 == 1 && bit % 8 < 5;

			/* Bits of a service action are fixed, not reserved. */
			if (usage[bit / 8] & 1u << bit % 8 || of_sa)
				continue;
			cdb[bit / 8] |= (uint8_t)(1u << bit % 8);
			fx_run(R, cdb, n, NULL, 0, 0);
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_true(R->sense.has_field && R->sense.in_cdb);
			assert_int_equal(R->sense.field, bit / 8);
			assert_int_equal(R->sense.bit, bit % 8);
		}
	}
}

static void test_unknown_commands(void **state)
{
	(void)state;
	CMD(0, 0, NULL, 0xff);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	CMD(0, 0, NULL, 0x9e, 0x1f);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 1);
}

/* ---- units and attentions ---- */

static void test_no_such_unit(void **state)
{
	const uint8_t inquiry[6] = { 0x12, 0, 0, 0, 96, 0 };

	(void)state;
	fx_begin(R, inquiry, 6, 0, 96);
	R->task.lun = 0x0005000000000000ull;
	dev_task_end(&R->task);
	dev_task_begin(&R->task);
	fx_execute(R, NULL);
	fx_finish(R);
	assert_int_equal(R->task.status, SCSI_GOOD);
	assert_int_equal(R->in[0], 0x7f); /* SPC-4 §6.4.2 */
	fx_begin(R, (const uint8_t[6]){ 0 }, 6, 0, 0);
	R->task.lun = 0x0005000000000000ull;
	dev_task_end(&R->task);
	dev_task_begin(&R->task);
	fx_execute(R, NULL);
	fx_finish(R);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LUN_NOT_SUPPORTED);
}

static void test_units_beyond_the_last_number(void **state)
{
	const struct dev_lu_config cfg = { .lun = DEV_MAX_LUNS };
	struct bs *b = bs_null_new("null:1M", 1u << 20, 512);

	(void)state;
	assert_int_equal(dev_lu_add(R->server, &cfg, b), ERR_RANGE);
	bs_close(b);
}

static void test_lun_forms_sam5_4_7(void **state)
{
	uint16_t lun = 99;

	(void)state;
	assert_int_equal(dev_lun_decode(0x0007000000000000ull, &lun), 0);
	assert_int_equal(lun, 7);
	assert_int_equal(dev_lun_decode(0x4123000000000000ull, &lun), 0);
	assert_int_equal(lun, 0x123);
	/* libiscsi and QEMU send LUN 300 so */
	assert_int_equal(dev_lun_decode(0x012c000000000000ull, &lun), 0);
	assert_int_equal(lun, 300);
	assert_int_equal(dev_lun_decode(0x3fff000000000000ull, &lun), 0);
	assert_int_equal(lun, 16383);
	assert_int_equal(dev_lun_decode(0xc101000000000000ull, &lun),
			 ERR_NOT_FOUND);
	assert_int_equal(dev_lun_decode(0x0007000000000001ull, &lun),
			 ERR_NOT_FOUND);
	for (uint16_t i = 0; i < 512; i++) {
		assert_int_equal(dev_lun_decode(dev_lun_encode(i), &lun), 0);
		assert_int_equal(lun, i);
	}
}

static void test_attention_rules_sam5_5_14(void **state)
{
	struct dev_lu *lu = dev_lu_get(R->server, 0);

	(void)state;
	fx_reset(lu);
	/* INQUIRY and REPORT LUNS leave the attention pending ... */
	assert_int_equal(CMD(0, 96, NULL, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(CMD(0, 16, NULL, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16),
			 SCSI_GOOD);
	/* ... any other command reports the attention once. */
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_BUS_DEVICE_RESET);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	/* REQUEST SENSE returns the attention as data and clears it. */
	fx_reset(lu);
	assert_int_equal(CMD(0, 18, NULL, 0x03, 0, 0, 0, 18), SCSI_GOOD);
	assert_int_equal(R->in[2], SENSE_UNIT_ATTENTION);
	assert_int_equal(get_be16(R->in + 12), ASC_BUS_DEVICE_RESET);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* ---- reads and writes ---- */

static uint8_t pattern[8 * FX_BLOCK];

static void fill_pattern(uint8_t seed)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + (i >> 9) + seed);
}

static void test_write_and_read_back_every_form(void **state)
{
	static const uint8_t w[4][16] = {
		{ 0x0a, 0, 0, 5, 3 },
		{ 0x2a, 0x08, 0, 0, 0, 5, 0, 0, 3 },
		{ 0xaa, 0, 0, 0, 0, 5, 0, 0, 0, 3 },
		{ 0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 3 },
	};
	static const uint8_t r[4] = { 0x08, 0x28, 0xa8, 0x88 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint8_t cdb[16];

		fill_pattern((uint8_t)i);
		assert_int_equal(fx_run(R, w[i], 16, pattern, 1536, 0),
				 SCSI_GOOD);
		assert_memory_equal(R->medium + 5 * FX_BLOCK, pattern, 1536);
		memcpy(cdb, w[i], 16);
		cdb[0] = r[i];
		cdb[1] = 0;
		assert_int_equal(fx_run(R, cdb, 16, NULL, 0, 1536), SCSI_GOOD);
		assert_int_equal(R->in_len, 1536);
		assert_memory_equal(R->in, pattern, 1536);
	}
}

static void test_read_6_of_zero_is_256_blocks_sbc3_5_9(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 256 * FX_BLOCK, NULL, 0x08, 0, 0, 0, 0),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 256 * FX_BLOCK);
}

/* The information field holds the first LBA that does not exist (SBC-3
 * §4.18.1). */
static void test_lba_out_of_range_names_the_lba(void **state)
{
	(void)state;
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0x04, 0x00, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_true(R->sense.has_info);
	assert_int_equal(R->sense.info, 1024);
	/* The last block is valid; a range beyond it is not, nor is LBA
	 * 2^63. */
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 3, 0xff, 0, 0, 1),
			 SCSI_GOOD);
	CMD(0, 1024, NULL, 0x28, 0, 0, 0, 3, 0xff, 0, 0, 2);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_int_equal(R->sense.info, 1024);
	CMD(0, 512, NULL, 0x88, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xff, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	/* A length of 0 is refused after the end, not at the end. */
	assert_int_equal(CMD(0, 0, NULL, 0x28, 0, 0, 0, 4, 0, 0, 0, 0),
			 SCSI_GOOD);
	CMD(0, 0, NULL, 0x28, 0, 0, 0, 4, 1, 0, 0, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
}

/* RFC 7143 §11.4.5: the shorter of the two lengths is transferred, and the
 * residual reports the difference. */
static void test_expected_length_differs(void **state)
{
	(void)state;
	fill_pattern(1);
	memset(R->medium, 0xee, 4 * FX_BLOCK);
	/* The CDB says two blocks and one arrives: the unit writes one
	 * block. */
	assert_int_equal(CMD(512, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 2),
			 SCSI_GOOD);
	assert_int_equal(R->task.total.out, 1024);
	assert_int_equal(R->task.out_len, 512);
	assert_memory_equal(R->medium, pattern, 512);
	assert_int_equal(R->medium[512], 0xee);
	/* Data that end inside a block are refused, and the unit writes
	 * nothing. */
	memset(R->medium, 0xee, 4 * FX_BLOCK);
	CMD(768, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 2);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	assert_int_equal(R->task.total.out, 1024);
	assert_int_equal(R->task.out_len, 0);
	assert_int_equal(R->medium[0], 0xee);
	/* The initiator offers more data than the CDB needs. */
	assert_int_equal(CMD(2048, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 2),
			 SCSI_GOOD);
	assert_int_equal(R->task.out_len, 1024);
	/* reads */
	assert_int_equal(CMD(0, 200, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 200);
	assert_int_equal(R->task.total.in, 512);
	assert_int_equal(CMD(0, 10000, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 512);
}

static void test_protection_bits_are_refused_sbc3(void **state)
{
	(void)state;
	CMD(0, 512, NULL, 0x28, 0x20, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 1);
	CMD(512, 0, pattern, 0x2a, 0xe0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_verify_compares(void **state)
{
	(void)state;
	fill_pattern(3);
	memcpy(R->medium, pattern, sizeof(pattern));
	assert_int_equal(CMD(2048, 0, pattern, 0x2f, 2, 0, 0, 0, 0, 0, 0, 4),
			 SCSI_GOOD);
	R->medium[1000] ^= 1;
	CMD(2048, 0, pattern, 0x2f, 2, 0, 0, 0, 0, 0, 0, 4);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	assert_int_equal(R->sense.info, 1000);
	/* BYTCHK 11b: one block is compared with each block. */
	memset(R->medium, 0x77, 8 * FX_BLOCK);
	memset(pattern, 0x77, FX_BLOCK);
	assert_int_equal(CMD(512, 0, pattern, 0x2f, 6, 0, 0, 0, 0, 0, 0, 8),
			 SCSI_GOOD);
	R->medium[4000] = 0;
	CMD(512, 0, pattern, 0x2f, 6, 0, 0, 0, 0, 0, 0, 8);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
}

static void test_write_same(void **state)
{
	(void)state;
	memset(pattern, 0x3c, FX_BLOCK);
	assert_int_equal(CMD(512, 0, pattern, 0x41, 0, 0, 0, 0, 2, 0, 0, 6),
			 SCSI_GOOD);
	assert_int_equal(R->medium[2 * FX_BLOCK - 1], 0);
	for (size_t i = 2 * FX_BLOCK; i < 8 * FX_BLOCK; i++)
		assert_int_equal(R->medium[i], 0x3c);
	assert_int_equal(R->medium[8 * FX_BLOCK], 0);
	/* NDOB: zeros, and no data-out */
	assert_int_equal(CMD(0, 0, NULL, 0x93, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0,
			     0, 2),
			 SCSI_GOOD);
	assert_int_equal(R->medium[3 * FX_BLOCK], 0);
	assert_int_equal(R->medium[5 * FX_BLOCK], 0x3c);
	/* NUMBER OF LOGICAL BLOCKS 0: up to the last block (WSNZ is 0). */
	assert_int_equal(CMD(512, 0, pattern, 0x41, 0, 0, 0, 3, 0xf0, 0, 0, 0),
			 SCSI_GOOD);
	assert_int_equal(R->medium[FX_BLOCKS * FX_BLOCK - 1], 0x3c);
}

static void put_unmap(uint8_t *p, unsigned n)
{
	put_be16(p, (uint16_t)(6 + 16 * n));
	put_be16(p + 2, (uint16_t)(16 * n));
}

static void test_unmap_list_at_every_length_sbc3_5_28(void **state)
{
	uint8_t list[8 + 2 * 16] = { 0 };

	(void)state;
	put_unmap(list, 2);
	put_be64(list + 8, 1);
	put_be32(list + 16, 2);
	put_be64(list + 24, 10);
	put_be32(list + 32, 1);
	for (uint8_t len = 0; len <= sizeof(list); len++) {
		memset(R->medium, 0xaa, 16 * FX_BLOCK);
		CMD(len, 0, list, 0x42, 0, 0, 0, 0, 0, 0, 0, len);
		if (len > 0 && len < 8) {
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_PARAMETER_LIST_LENGTH_ERROR);
			continue;
		}
		assert_int_equal(R->task.status, SCSI_GOOD);
		assert_int_equal(R->medium[0], 0xaa);
		assert_int_equal(R->medium[FX_BLOCK], len >= 24 ? 0 : 0xaa);
		assert_int_equal(R->medium[10 * FX_BLOCK],
				 len >= 40 ? 0 : 0xaa);
	}
	/* One descriptor is out of range: the unit unmaps nothing. */
	put_be64(list + 24, FX_BLOCKS);
	memset(R->medium, 0xaa, 16 * FX_BLOCK);
	CMD(40, 0, list, 0x42, 0, 0, 0, 0, 0, 0, 0, 40);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_int_equal(R->medium[FX_BLOCK], 0xaa);
}

/* ---- parameter data ---- */

/* SPC-4 table 300 has no TARGET RESET and WAKEUP; both are obsolete. */
static void test_supported_tmfs_spc4_6_36(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 16, NULL, 0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0,
			     16),
			 SCSI_GOOD);
	/* ATS ATSS CACAS CTSS LURS QTS; QAES QTSS ITNRS; 12 bytes more */
	assert_int_equal(get_be32(R->in), 0xfc07000c);
	assert_int_equal(R->in_len, 16);
	assert_int_equal(CMD(0, 16, NULL, 0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4),
			 SCSI_GOOD);
	assert_int_equal(get_be32(R->in), 0xfc070000);
	assert_int_equal(R->in_len, 4);
}

/* Each reporting option, for commands with service actions and without. */
static void test_report_of_one_command_spc4_6_35(void **state)
{
	enum {
		BAD = 2,
		ABSENT = 1,
		THERE = 3
	};
	static const struct {
		uint8_t options, op, sa, says;
	} rows[] = {
		{ 1, 0x28, 0, THERE },	   { 1, 0x9e, 0x10, BAD },
		{ 1, 0x02, 0, ABSENT },	   { 2, 0x28, 0, BAD },
		{ 2, 0x9e, 0x10, THERE },  { 2, 0x9e, 0x1f, ABSENT },
		{ 2, 0x02, 0, ABSENT },	   { 3, 0x28, 0, THERE },
		{ 3, 0x28, 1, ABSENT },	   { 3, 0x9e, 0x10, THERE },
		{ 3, 0x9e, 0x1f, ABSENT }, { 3, 0x02, 0, ABSENT },
		{ 4, 0x28, 0, BAD },	   { 7, 0x28, 0, BAD },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		uint8_t says = rows[i / 2].says, rctd = (uint8_t)(i % 2 << 7);
		uint8_t ctdp = says == THERE ? rctd : 0;

		CMD(0, 64, NULL, 0xa3, 0x0c, rows[i / 2].options | rctd,
		    rows[i / 2].op, 0, rows[i / 2].sa, 0, 0, 0, 64);
		if (says == BAD) {
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(R->sense.field, 2);
			assert_int_equal(R->sense.bit, 2);
			continue;
		}
		assert_int_equal(R->task.status, SCSI_GOOD);
		assert_int_equal(R->in[1], says | ctdp);
	}
}

static void test_allocation_length_0_and_1(void **state)
{
	static const uint8_t cdbs[][16] = {
		{ 0x12 },	   { 0x12, 1, 0x83 }, { 0x1a, 0, 0x3f },
		{ 0x5a, 0, 0x3f }, { 0x9e, 0x10 },    { 0x03 },
		{ 0xa0 },
	};
	static const uint8_t at[] = { 4, 4, 4, 8, 13, 4, 9 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cdbs); i++)
		for (uint8_t len = 0; len < 2; len++) {
			uint8_t cdb[16];

			memcpy(cdb, cdbs[i], 16);
			cdb[at[i]] = len;
			assert_int_equal(fx_run(R, cdb, 16, NULL, 0, 255),
					 SCSI_GOOD);
			assert_int_equal(R->in_len, len);
		}
}

static void test_mode_sense(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 0, 0x08, 0, 255), SCSI_GOOD);
	assert_int_equal(R->in[3], 8); /* a block descriptor */
	assert_int_equal(get_be32(R->in + 4), FX_BLOCKS);
	assert_int_equal(R->in[12], 0x08);
	assert_int_equal(R->in[0], R->in_len - 1);
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 8, 0x48, 0, 255), SCSI_GOOD);
	assert_int_equal(R->in[3], 0);	   /* DBD */
	assert_int_equal(R->in[4 + 2], 0); /* no changeable bits */
	CMD(0, 255, NULL, 0x1a, 0, 0xc8, 0, 255);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_SAVING_NOT_SUPPORTED);
	CMD(0, 255, NULL, 0x1a, 0, 0x2e, 0, 255);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(CMD(0, 255, NULL, 0x5a, 0x10, 0x3f, 0xff, 0, 0, 0, 0,
			     255),
			 SCSI_GOOD);
	assert_int_equal(R->in[4], 1); /* LONGLBA */
	assert_int_equal(get_be64(R->in + 8), FX_BLOCKS);
}

static void test_capacity(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
	assert_int_equal(get_be32(R->in), FX_BLOCKS - 1);
	assert_int_equal(get_be32(R->in + 4), FX_BLOCK);
	assert_int_equal(CMD(0, 32, NULL, 0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			     0, 0, 32),
			 SCSI_GOOD);
	assert_int_equal(get_be64(R->in), FX_BLOCKS - 1);
	CMD(0, 8, NULL, 0x25, 0, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_read_only_unit(void **state)
{
	struct dev_fixture *saved = malloc(sizeof(*saved));

	(void)state;
	memcpy(saved, R, sizeof(*saved));
	memset(R, 0, sizeof(*R));
	fx_open(R, fx_ram(R), true);
	CMD(0, 0, NULL, 0x00);
	CMD(512, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	CMD(0, 0, NULL, 0x93, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	CMD(0, 255, NULL, 0x1a, 8, 0x3f, 0, 255);
	assert_int_equal(R->in[2] & 0x80, 0x80); /* WP */
	fx_close(R);
	memcpy(R, saved, sizeof(*saved));
	free(saved);
}

/* ---- faults ---- */

/* Each I/O of each command fails once: the sense data report the failure, and
 * no memory leaks. */
static void test_nth_io_fails(void **state)
{
	static const struct {
		uint8_t cdb[16];
		uint32_t out, in;
		unsigned op;
	} c[] = {
		{ { 0x28, 0, 0, 0, 0, 0, 0, 0, 8 }, 0, 4096, BS_READ },
		{ { 0x2a, 0, 0, 0, 0, 0, 0, 0, 8 }, 4096, 0, BS_WRITE },
		{ { 0x2f, 2, 0, 0, 0, 0, 0, 0, 8 }, 4096, 0, BS_READ },
		{ { 0x35 }, 0, 0, BS_FLUSH },
		{ { 0x93, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 },
		  0,
		  0,
		  BS_ZERO },
	};
	static const struct {
		int err;
		uint8_t key;
	} errs[] = {
		{ ERR_MEDIUM, SENSE_MEDIUM_ERROR },
		{ ERR_NO_SPACE, SENSE_DATA_PROTECT },
		{ ERR_NOMEM, SENSE_ABORTED_COMMAND },
	};

	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		for (size_t e = 0; e < ARRAY_LEN(errs); e++) {
			struct bs *ram;

			close_fixture(state);
			memset(R, 0, sizeof(*R));
			ram = fx_ram(R);
			fx_open(R,
				bs_fault_new(ram, BIT(c[i].op), 1, 0,
					     errs[e].err),
				false);
			CMD(0, 0, NULL, 0x00);
			fx_run(R, c[i].cdb, 16, pattern, c[i].out, c[i].in);
			assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
			assert_int_equal(R->sense.key, errs[e].key);
			/* The I/O fails once only: the next command
			 * succeeds. */
			assert_int_not_equal(fx_run(R, c[i].cdb, 16, R->medium,
						    c[i].out, c[i].in),
					     -1);
			assert_int_equal(R->task.status, SCSI_GOOD);
		}
}

static void test_nth_buffer_is_missing(void **state)
{
	static const uint8_t cdbs[][16] = {
		{ 0x12, 0, 0, 0, 96 },
		{ 0x2a, 0, 0, 0, 0, 0, 0, 0, 8 },
		{ 0x2f, 2, 0, 0, 0, 0, 0, 0, 8 },
		{ 0x41, 0, 0, 0, 0, 0, 0, 0, 8 },
		{ 0x1a, 0, 0x3f, 0, 255 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cdbs); i++)
		for (unsigned n = 1; n < 3; n++) {
			uint32_t out = cdbs[i][0] == 0x41 ? 512 : 4096;
			int status;

			R->fail_buf_after = n;
			pattern[0] = 1; /* not an all-zero block */
			status = fx_run(R, cdbs[i], 16, pattern, out, 4096);
			R->fail_buf_after = 0;
			assert_int_equal(R->out, 0);
			if (n == 1)
				assert_int_not_equal(status, SCSI_GOOD);
		}
}

/* ---- aborts ---- */

static void test_abort_in_each_phase(void **state)
{
	const uint8_t write[16] = { 0x2a, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct bs *hold;

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	hold = bs_hold_new(fx_ram(R));
	fx_open(R, hold, false);
	CMD(0, 0, NULL, 0x00);
	/* The data of the WRITE have not arrived. */
	fx_begin(R, write, 16, 512, 0);
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	assert_true(R->released);
	assert_false(R->done);
	dev_task_end(&R->task);
	/* The I/O of the WRITE is in progress: the task is released at its
	 * end. */
	fx_begin(R, write, 16, 512, 0);
	assert_int_equal(fx_execute(R, pattern), -1);
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	assert_false(R->released);
	bs_hold_release(hold, 1);
	assert_true(R->released);
	assert_false(R->done);
	dev_task_end(&R->task);
	/* The WRITE has ended: the abort is too late. */
	fx_begin(R, write, 16, 512, 0);
	fx_execute(R, pattern);
	bs_hold_release(hold, 1);
	assert_true(R->done);
	assert_int_equal(dev_task_abort(&R->task, fx_released), ERR_NOT_FOUND);
	fx_finish(R);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_every_reserved_bit_gives_its_field),
		T(test_unknown_commands),
		T(test_no_such_unit),
		T(test_units_beyond_the_last_number),
		T(test_lun_forms_sam5_4_7),
		T(test_attention_rules_sam5_5_14),
		T(test_write_and_read_back_every_form),
		T(test_read_6_of_zero_is_256_blocks_sbc3_5_9),
		T(test_lba_out_of_range_names_the_lba),
		T(test_expected_length_differs),
		T(test_protection_bits_are_refused_sbc3),
		T(test_verify_compares),
		T(test_write_same),
		T(test_unmap_list_at_every_length_sbc3_5_28),
		T(test_supported_tmfs_spc4_6_36),
		T(test_report_of_one_command_spc4_6_35),
		T(test_allocation_length_0_and_1),
		T(test_mode_sense),
		T(test_capacity),
		T(test_read_only_unit),
		T(test_nth_io_fails),
		T(test_nth_buffer_is_missing),
		T(test_abort_in_each_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
