/* SPDX-License-Identifier: BSD-2-Clause */
/* thin_test.c: thin provisioning with its threshold, and the log pages, by the
 * clauses of SBC-3 and SPC-4. The test sets the reports of the backstore. */
#include "base/record_header.h"
#include "dev_case.h"
#include "device/keep/keep.h"
#include "device/primary/mode.h"

#define BIG (16u << 20)

static uint64_t taken; /* bytes that the backstore has allocated */
static unsigned ops[BS_SIZE + 1], zero_flags;

static int punch(void *arg, uint64_t off, uint64_t len)
{
	memset((uint8_t *)arg + off, 0, len);
	return 0;
}

static void extents(void *arg, uint64_t off, uint64_t len, uint64_t *run,
		    bool *mapped)
{
	(void)arg;
	*run = MIN(len, 8192 - off % 8192);
	*mapped = off / 8192 % 2 == 0;
}

static uint64_t used(void *arg)
{
	(void)arg;
	return taken;
}

static const struct bs_ram_ops thin_ops = {
	.punch = punch,
	.extents = extents,
	.used = used,
};

static void note(void *arg, const struct bs_req *req)
{
	(void)arg;
	ops[req->op]++;
	if (req->op == BS_ZERO)
		zero_flags = req->flags;
}

static int open_thin(void **state)
{
	struct bs *ram;

	(void)state;
	memset(R, 0, sizeof(*R));
	R->medium = calloc(1, BIG);
	ram = bs_ram_new("ram:thin", R->medium, BIG, FX_BLOCK, free, R->medium);
	bs_ram_set_ops(ram, &thin_ops);
	taken = 0;
	memset(ops, 0, sizeof(ops));
	fx_open(R, bs_trace_new(ram, note, NULL), false);
	fx_take_attentions(R);
	return 0;
}

/* ---- UNMAP and WRITE SAME that anchor, SBC-3 §§5.28, 5.49 ---- */

static void test_unmap_anchors(void **state)
{
	uint8_t list[24] = { 0, 22, 0, 16 };

	(void)state;
	put_be32(list + 16, 4);
	memset(R->medium, 0xaa, 4096);
	assert_int_equal(CMD(24, 0, list, 0x42, 1, 0, 0, 0, 0, 0, 0, 24),
			 SCSI_GOOD);
	assert_int_equal(ops[BS_UNMAP], 0);
	assert_int_equal(ops[BS_ZERO], 1);
	assert_false(zero_flags & BS_MAY_UNMAP);
	assert_int_equal(R->medium[2047], 0);
	assert_int_equal(R->medium[2048], 0xaa);
	assert_int_equal(CMD(24, 0, list, 0x42, 0, 0, 0, 0, 0, 0, 0, 24),
			 SCSI_GOOD);
	assert_int_equal(ops[BS_UNMAP], 1);
}

/* As many descriptors as VPD page B0h reports are carried out, one more is not. */
static void test_most_unmap_descriptors_sbc3_5_28(void **state)
{
	enum {
		MOST = 256
	};
	uint8_t list[8 + 16 * (MOST + 1)] = { 0 };

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb0, 0, 64), SCSI_GOOD);
	assert_int_equal(get_be32(R->in + 24), MOST);
	for (unsigned n = MOST; n <= MOST + 1; n++) {
		const uint16_t len = (uint16_t)(8 + 16 * n);

		put_be16(list, (uint16_t)(len - 2));
		put_be16(list + 2, (uint16_t)(16 * n));
		CMD(len, 0, list, 0x42, 0, 0, 0, 0, 0, 0, (uint8_t)(len >> 8),
		    (uint8_t)len);
		if (n == MOST)
			assert_int_equal(R->task.status, SCSI_GOOD);
		else
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_PARAMETERS);
	}
}

static void test_write_same_anchors(void **state)
{
	static const uint8_t zeros[512];

	(void)state;
	assert_int_equal(CMD(512, 0, zeros, 0x93, 0x18, 0, 0, 0, 0, 0, 0, 0, 0,
			     0, 0, 0, 4),
			 SCSI_GOOD);
	assert_false(zero_flags & BS_MAY_UNMAP);
	assert_int_equal(CMD(512, 0, zeros, 0x41, 0x08, 0, 0, 0, 0, 0, 0, 4),
			 SCSI_GOOD);
	assert_true(zero_flags & BS_MAY_UNMAP);
	/* ANCHOR without UNMAP */
	CMD(512, 0, zeros, 0x93, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.bit, 4);
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb2, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[5], 0xe6); /* ANC_SUP and the rest */
	assert_int_equal(R->in[4], 11);	  /* 2048 blocks: 1 MiB */
}

/* With LBPRZ unmapped blocks read as zeros, so only zeros may be unmapped. */
static void test_write_same_unmap_of_other_data_sbc3_5_49(void **state)
{
	/* All bytes have one value, or one byte is not zero. */
	static const struct {
		uint8_t fill, one;
		unsigned at;
	} rows[] = {
		{ 0x3c, 0x3c, 0 }, { 1, 1, 0 },	  { 0xff, 0xff, 0 },
		{ 0, 1, 0 },	   { 0, 1, 511 }, { 0, 0x80, 256 },
	};
	static uint8_t data[512], was[FX_BLOCK];

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		static struct dev_lu_config lu;
		bool strict = i % 2;

		memset(data, rows[i / 2].fill, sizeof(data));
		data[rows[i / 2].at] = rows[i / 2].one;
		lu.strict = strict;
		memset(R, 0, sizeof(*R));
		R->lu = &lu;
		fx_open(R, fx_ram(R), false);
		CMD(0, 0, NULL, 0x00);
		memset(R->medium, 0x11, 4096);
		assert_int_equal(CMD(512, 0, data, 0x41, 0x08, 0, 0, 0, 0, 0, 0,
				     4),
				 SCSI_GOOD);
		memset(was, 0, sizeof(was));
		if (strict)
			memcpy(was, data, sizeof(was));
		assert_memory_equal(R->medium + 3 * FX_BLOCK, was, FX_BLOCK);
		assert_int_equal(R->medium[4 * FX_BLOCK], 0x11);
		fx_close(R);
	}
}

/* ---- GET LBA STATUS, SBC-3 §5.5 ---- */

static void test_lba_status_follows_the_store(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 56, NULL, 0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 9, 0,
			     0, 0, 56),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 56);
	/* The first descriptor begins at the requested LBA. */
	assert_int_equal(get_be64(R->in + 8), 9);
	assert_int_equal(get_be32(R->in + 16), 7);
	assert_int_equal(R->in[20], 0);
	assert_int_equal(get_be64(R->in + 24), 16);
	assert_int_equal(get_be32(R->in + 32), 16);
	assert_int_equal(R->in[36], 1);
	assert_int_equal(R->in[52], 0);
}

/* ---- the soft threshold, SBC-3 §4.7.3.8 ---- */

static void set_threshold(uint32_t sets, bool single)
{
	uint8_t list[8 + 24] = { [8] = 0x5c, [9] = 2, [11] = 20 };

	list[8 + 4] = single;
	list[8 + 16] = 0x80;
	list[8 + 17] = 1;
	put_be32(list + 8 + 20, sets);
	assert_int_equal(CMD(32, 0, list, 0x55, 0x10, 0, 0, 0, 0, 0, 0, 32),
			 SCSI_GOOD);
	fx_take_attentions(R); /* MODE PARAMETERS CHANGED */
}

static uint8_t quarter[FX_MAX];

static void write_mib(void)
{
	for (unsigned i = 0; i < (1u << 20) / FX_MAX; i++)
		assert_int_equal(CMD(FX_MAX, 0, quarter, 0x2a, 0, 0, 0, 0, 0, 0,
				     2, 0),
				 SCSI_GOOD);
}

static void test_soft_threshold_is_reported_once_per_crossing(void **state)
{
	(void)state;
	write_mib();
	assert_int_equal(ops[BS_SPACE], 0); /* disabled: no request */
	set_threshold(4, false);
	taken = 11u << 20; /* 5 MiB left */
	write_mib();
	assert_int_equal(ops[BS_SPACE], 1);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	taken = 12u << 20; /* 4 left */
	write_mib();
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_SOFT_THRESHOLD);
	/* The sense data name the threshold descriptor in its mode page (SBC-3
	 * §4.7.3.7.6). */
	assert_true(R->sense.has_info);
	assert_int_equal(R->sense.info, 16);
	fx_swap(R);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_SOFT_THRESHOLD);
	fx_swap(R);
	write_mib();
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	/* The space is free again, and in use again. */
	taken = 0;
	write_mib();
	taken = 15u << 20;
	write_mib();
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_SOFT_THRESHOLD);
}

/* SBC-3 §4.7.3.7.6: LBPERE of the read-write error recovery page. */
static void test_soft_threshold_unreported(void **state)
{
	uint8_t list[4 + 12] = { [4] = 0x01, [5] = 10, [6] = 0xc0 };

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x1a, 8, 0x41, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[4 + 7], 0x80); /* can be changed */
	assert_int_equal(CMD(0, 64, NULL, 0x1a, 8, 0x01, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[4 + 7], 0x80); /* and is set by default */
	set_threshold(4, false);
	for (uint8_t on = 0; on < 2; on++) {
		list[4 + 7] = on ? 0x80 : 0;
		assert_int_equal(CMD(sizeof(list), 0, list, 0x15, 0x10, 0, 0,
				     sizeof(list)),
				 SCSI_GOOD);
		fx_take_attentions(R);
		taken = 15u << 20;
		write_mib();
		CMD(0, 0, NULL, 0x00);
		if (on)
			assert_check(SENSE_UNIT_ATTENTION, ASC_SOFT_THRESHOLD);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
	}
}

/* A record of a version that could not change the page has no value of
 * LBPERE. */
static void test_soft_threshold_of_older_saved_pages(void **state)
{
	static struct dev_record r;
	const struct dev_lu *lu = dev_lu_get(R->server, 0);
	uint8_t p[KEEP_ENCODED_MAX] = { 0 };
	size_t at = RECORD_HEADER_LEN;
	struct dev_control c = { .soft_enabled = true, .soft_count = 4 }, got;

	(void)state;
	put_be16(p + at, 1);
	put_be16(p + at + 2, 12 + 24);
	at += 4;
	memcpy(p + at, (const uint8_t[12]){ 0x01, 10, 0xc0 }, 12);
	at += 12;
	memcpy(p + at, (const uint8_t[4]){ 0x5c, 2, 0, 20 }, 4);
	p[at + DEV_THRESHOLD_AT] = 0x80;
	p[at + DEV_THRESHOLD_AT + 1] = 1;
	put_be32(p + at + DEV_THRESHOLD_AT + 4, 4);
	at += 24;
	record_header_put(p, at, "ISERUNT1", lu->bs->uuid);
	assert_int_equal(keep_decode(lu, p, at, &r), 0);
	assert_int_equal(dev_mode_from_record(lu, &r, &got), 0);
	assert_true(got.soft_enabled);
	assert_int_equal(got.soft_count, 4);
	assert_false(got.unreported);
	/* A new record has a value of LBPERE. */
	for (unsigned i = 0; i < 2; i++) {
		c.unreported = i;
		memset(&r, 0, sizeof(r));
		dev_mode_to_record(lu, &c, &r);
		at = keep_encode(lu, &r, p);
		assert_int_equal(keep_decode(lu, p, at, &r), 0);
		assert_int_equal(dev_mode_from_record(lu, &r, &got), 0);
		assert_true(dev_mode_same(lu, &got, &c));
		assert_int_equal(got.unreported, i);
	}
}

static void test_soft_threshold_single_attention(void **state)
{
	(void)state;
	set_threshold(8, true);
	taken = 15u << 20;
	write_mib();
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_SOFT_THRESHOLD);
	fx_swap(R);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	fx_swap(R);
}

/* ---- LOG SENSE, SPC-4 §6.8 ---- */

static void test_log_pages_are_what_page_0_says(void **state)
{
	uint8_t codes[16];
	uint16_t n;

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x4d, 0, 0x40, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	n = get_be16(R->in + 2);
	assert_int_equal(n + 4u, R->in_len);
	memcpy(codes, R->in + 4, n);
	assert_int_equal(n, 4);
	for (uint8_t code = 0; code < 0x40; code++) {
		CMD(0, 255, NULL, 0x4d, 0, 0x40 | code, 0, 0, 0, 0, 0, 255);
		if (memchr(codes, code, n)) {
			assert_int_equal(R->task.status, SCSI_GOOD);
			/* DS: pages cannot be saved; page 00h is an exception */
			assert_int_equal(R->in[0], code ? 0x80 | code : code);
			assert_int_equal(get_be16(R->in + 2) + 4u, R->in_len);
		} else {
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(R->sense.field, 2);
		}
	}
	/* The log has no threshold and default values; list parameters ignore
	 * PC. */
	for (unsigned pc = 0; pc < 4; pc++) {
		CMD(0, 64, NULL, 0x4d, 0, (uint8_t)(pc << 6 | 0x19), 0, 0, 0, 0,
		    0, 64);
		if (pc != 1) {
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(R->sense.field, 2);
		}
		assert_int_equal(CMD(0, 64, NULL, 0x4d, 0,
				     (uint8_t)(pc << 6 | 0x0c), 0, 0, 0, 0, 0,
				     64),
				 SCSI_GOOD);
		assert_int_equal(CMD(0, 64, NULL, 0x4d, 0, (uint8_t)(pc << 6),
				     0, 0, 0, 0, 0, 64),
				 SCSI_GOOD);
	}
}

/* SPC-4 §§7.3.19, 7.3.20: the subpages of all pages, then of one page. */
static void test_log_subpages_are_what_subpage_ff_says(void **state)
{
	static const uint8_t want[] = { 0x40, 0xff, 0,	  22,	0,    0,
					0,    0xff, 0x0c, 0,	0x0c, 0xff,
					0x19, 0,    0x19, 0x20, 0x19, 0xff,
					0x2f, 0,    0x2f, 0xff };
	static const uint8_t of_19[] = { 0x59, 0xff, 0,	   6,	 0x19,
					 0,    0x19, 0x20, 0x19, 0xff };

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x4d, 0, 0x40, 0xff, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(want));
	assert_int_equal(get_be16(R->in + 2), sizeof(want) - 4);
	assert_memory_equal(R->in, want, 2);
	assert_memory_equal(R->in + 4, want + 4, sizeof(want) - 4);
	assert_int_equal(CMD(0, 64, NULL, 0x4d, 0, 0x59, 0xff, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(of_19));
	assert_memory_equal(R->in, of_19, sizeof(of_19));
	CMD(0, 64, NULL, 0x4d, 0, 0x42, 0xff, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 2);
	CMD(0, 64, NULL, 0x4d, 0, 0x59, 0x21, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 3);
}

static void test_log_space_sbc3_6_4_5(void **state)
{
	(void)state;
	taken = 5u << 20;
	assert_int_equal(CMD(0, 64, NULL, 0x4d, 0, 0x4c, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 12 + 12);
	assert_int_equal(get_be16(R->in + 4), 1);
	assert_int_equal(get_be32(R->in + 8), 11);
	assert_int_equal(get_be16(R->in + 16), 2);
	assert_int_equal(get_be32(R->in + 20), 5);
	/* from the second parameter on; then after the last one */
	assert_int_equal(CMD(0, 64, NULL, 0x4d, 0, 0x4c, 0, 0, 0, 2, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 12);
	CMD(0, 64, NULL, 0x4d, 0, 0x4c, 0, 0, 0, 3, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 5);
}

static uint64_t statistic(unsigned i)
{
	assert_int_equal(CMD(0, 128, NULL, 0x4d, 0, 0x59, 0, 0, 0, 0, 0, 128),
			 SCSI_GOOD);
	return get_be64(R->in + 8 + 8 * i);
}

static void test_log_statistics_and_their_reset_spc4_7_3_9(void **state)
{
	(void)state;
	CMD(4096, 0, quarter, 0x2a, 0, 0, 0, 0, 0, 0, 0, 8);
	CMD(0, 1024, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 2);
	CMD(0, 512, NULL, 0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_int_equal(statistic(0), 2);
	assert_int_equal(statistic(1), 1);
	assert_int_equal(statistic(2), 8);
	assert_int_equal(statistic(3), 3);
	/* idle time; an interval is 1 ms */
	assert_int_equal(get_be16(R->in + 2), 92);
	assert_int_equal(get_be32(R->in + 4), 0x00012240);
	assert_int_equal(get_be32(R->in + 72), 0x00022208);
	assert_int_equal(get_be32(R->in + 84), 0x00032308);
	assert_int_equal(get_be32(R->in + 88), 3);
	assert_int_equal(get_be32(R->in + 92), 1);
	/* Without PCR nothing changes; with PCR the counters begin at 0. */
	assert_int_equal(CMD(0, 0, NULL, 0x4c, 0, 0x40), SCSI_GOOD);
	assert_int_equal(statistic(3), 3);
	assert_int_equal(CMD(0, 0, NULL, 0x4c, 2, 0x40), SCSI_GOOD);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(statistic(i), 0);
	/* The other nexuses get an attention (§7.3.2.1); a second reset changes
	 * nothing. */
	fx_swap(R);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_LOG_PARAMETERS_CHANGED);
	fx_swap(R);
	assert_int_equal(CMD(0, 0, NULL, 0x4c, 2, 0x40), SCSI_GOOD);
	fx_swap(R);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	CMD(0, 0, NULL, 0x4c, 2, 0x40, 0, 0, 0, 0, 0, 4);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, 0, NULL, 0x4c, 2, 0x41);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* Table 186: PCR with any PC, and the default values without PCR;
	 * default threshold values do not concern counters. */
	for (uint8_t pc = 0; pc < 4; pc++)
		for (uint8_t pcr = 0; pcr < 4; pcr += 2) {
			CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
			assert_int_equal(CMD(0, 0, NULL, 0x4c, pcr,
					     (uint8_t)(pc << 6 | 0x19)),
					 SCSI_GOOD);
			assert_int_equal(statistic(0) == 0, pcr || pc == 3);
		}
	/* the counters of another subpage */
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_int_equal(CMD(0, 0, NULL, 0x4c, 2, 0x59, 0x20), SCSI_GOOD);
	assert_int_equal(statistic(0), 1);
	assert_int_equal(CMD(0, 0, NULL, 0x4c, 2, 0x59, 0xff), SCSI_GOOD);
	assert_int_equal(statistic(0), 0);
}

/* Table 375: UNMAP, POPULATE TOKEN and WRITE USING TOKEN count as well. */
static void test_log_statistics_of_unmap_spc4_7_3_6(void **state)
{
	uint8_t list[24] = { [1] = 22, [3] = 16, [19] = 8 };

	(void)state;
	assert_int_equal(CMD(24, 0, list, 0x42, 0, 0, 0, 0, 0, 0, 0, 24),
			 SCSI_GOOD);
	assert_int_equal(statistic(1), 1);
	assert_int_equal(statistic(2), 0);
}

static void expect_cache(uint64_t hits, uint64_t flushes)
{
	assert_int_equal(CMD(0, 128, NULL, 0x4d, 0, 0x59, 0x20, 0, 0, 0, 0,
			     128),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 2 * 12);
	assert_int_equal(get_be32(R->in), 0xd9200018);
	assert_int_equal(get_be32(R->in + 4), 0x00032208);
	assert_int_equal(get_be64(R->in + 8), hits);
	assert_int_equal(get_be32(R->in + 16), 0x00042208);
	assert_int_equal(get_be64(R->in + 20), flushes);
}

static void test_log_cache_spc4_7_3_5(void **state)
{
	uint8_t no_cache[24] = { [4] = 0x08, 0x12 };

	(void)state;
	/* Without a cache these counters do not exist. */
	CMD(4096, 0, quarter, 0x2a, 0, 0, 0, 0, 0, 0, 0, 8);
	CMD(0, 0, NULL, 0x35);
	expect_cache(0, 0);
	dev_lu_backstore(dev_lu_get(R->server, 0))->caps |= BS_CAP_WRITE_CACHE;
	CMD(4096, 0, quarter, 0x2a, 0, 0, 0, 0, 0, 0, 0, 8);
	CMD(4096, 0, quarter, 0x2a, 0x08, 0, 0, 0, 0, 0, 0, 8); /* FUA */
	CMD(4096, 0, quarter, 0x2e, 0, 0, 0, 0, 0, 0, 0,
	    8); /* WRITE AND VERIFY */
	CMD(0, 0, NULL, 0x35);
	CMD(0, 0, NULL, 0x91);
	expect_cache(1, 2);
	/* from the second parameter on; then after the last one */
	CMD(0, 128, NULL, 0x4d, 0, 0x59, 0x20, 0, 0, 4, 0, 128);
	assert_int_equal(R->in_len, 4 + 12);
	CMD(0, 128, NULL, 0x4d, 0, 0x59, 0x20, 0, 0, 5, 0, 128);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* WCE is 0: no write stays in the cache. */
	assert_int_equal(CMD(24, 0, no_cache, 0x15, 0x10, 0, 0, 24), SCSI_GOOD);
	CMD(4096, 0, quarter, 0x2a, 0, 0, 0, 0, 0, 0, 0, 8);
	expect_cache(1, 2);
	assert_int_equal(CMD(0, 0, NULL, 0x4c, 2, 0x59, 0x20), SCSI_GOOD);
	expect_cache(0, 0);
}

/* ---- a backstore that changes its size, SBC-3 §4.5 ---- */

struct growing {
	struct bs bs;
	uint64_t now;
};

static void growing_submit(struct bs *b, struct bs_req *req)
{
	if (req->op == BS_SIZE)
		req->size_now = container_of(b, struct growing, bs)->now;
	bs_complete(req, 0);
}

static void growing_close(struct bs *b)
{
	(void)b;
}

static const struct bs_ops growing_ops = {
	.submit = growing_submit,
	.lend = bs_lend_unsupported,
	.close = growing_close,
};

static void test_capacity_changes_online(void **state)
{
	struct growing g = { .bs = { .ops = &growing_ops,
				     .size = 1 << 20,
				     .block_size = 512,
				     .phys_block = 512,
				     .caps = BS_CAP_SIZE },
			     .now = 1 << 20 };

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	fx_open(R, bs_trace_new(&g.bs, note, NULL), false);
	fx_take_attentions(R);
	assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
	assert_int_equal(get_be32(R->in), 2047);
	g.now = 2 << 20;
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0x08, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_int_equal(CMD(0, 32, NULL, 0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			     0, 0, 32),
			 SCSI_GOOD);
	assert_int_equal(get_be64(R->in), 4095);
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0x08, 0, 0, 0, 1),
			 SCSI_GOOD);
	fx_swap(R);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
	/* One attention only, and none without a change. */
	assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
	fx_swap(R);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	fx_close(R);
	open_thin(state);
}

#define C(name) cmocka_unit_test_setup_teardown(name, open_thin, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(test_unmap_anchors),
		C(test_most_unmap_descriptors_sbc3_5_28),
		C(test_write_same_anchors),
		cmocka_unit_test(test_write_same_unmap_of_other_data_sbc3_5_49),
		C(test_lba_status_follows_the_store),
		C(test_soft_threshold_is_reported_once_per_crossing),
		C(test_soft_threshold_unreported),
		C(test_soft_threshold_of_older_saved_pages),
		C(test_soft_threshold_single_attention),
		C(test_log_pages_are_what_page_0_says),
		C(test_log_subpages_are_what_subpage_ff_says),
		C(test_log_statistics_of_unmap_spc4_7_3_6),
		C(test_log_cache_spc4_7_3_5),
		C(test_log_space_sbc3_6_4_5),
		C(test_capacity_changes_online),
		C(test_log_statistics_and_their_reset_spc4_7_3_9),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
