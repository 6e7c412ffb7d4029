/* SPDX-License-Identifier: BSD-2-Clause */
/* cd_test.c: the CD/DVD device by clause of MMC-6: reads, reports about the
 * medium, changes of the medium. */
#include "dev_case.h"
#include "device/cd/cd.h"

#define BLOCKS 256u /* of 2,048 bytes, in the memory of the fixture */

static struct bs *memory(uint64_t blocks, uint8_t fill)
{
	uint8_t *p = malloc(blocks * CD_BLOCK);
	struct bs *b =
		bs_ram_new("ram:cd", p, blocks * CD_BLOCK, CD_BLOCK, free, p);

	memset(p, fill, blocks * CD_BLOCK);
	b->caps = BS_CAP_READ_ONLY | BS_CAP_LEND;
	return b;
}

static int open_with(struct bs *b)
{
	static const struct dev_lu_config lu = { .type = DEV_CD,
						 .removable = true };

	R->lu = &lu;
	fx_open(R, b, true);
	fx_take_attentions(R);
	return 0;
}

static int close_cd(void **state)
{
	close_fixture(state);
	memset(R, 0, sizeof(*R));
	return 0;
}

static int open_cd(void **state)
{
	(void)state;
	return open_with(memory(BLOCKS, 0x5c));
}

static int open_empty(void **state)
{
	(void)state;
	return open_with(NULL);
}

/* A medium without data, for reports about large media. */
static int open_null(uint64_t blocks)
{
	struct bs *b = bs_null_new("null:", blocks * CD_BLOCK, CD_BLOCK);

	b->caps |= BS_CAP_READ_ONLY;
	return open_with(b);
}

static int open_dvd(void **state)
{
	(void)state;
	return open_null(2000000);
}

static int open_dual_layer(void **state)
{
	(void)state;
	return open_null(4000000);
}

static int open_bd(void **state)
{
	(void)state;
	return open_null(DVD_MAX_BLOCKS + 1);
}

static struct dev_lu *lu(void)
{
	return dev_lu_get(R->server, 0);
}

static bool was_changed;

static void changed(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
	was_changed = true;
}

static int change(struct bs *b, bool force)
{
	int err;

	was_changed = false;
	err = dev_lu_change_medium(lu(), b, force, changed, NULL);
	assert_true(err || was_changed);
	return err;
}

/* ---- reads ---- */

/* Any worker asks for the name when a command has failed, while worker 0 may
 * replace the medium and free its name. */
static void test_name_of_a_medium_is_not_lent(void **state)
{
	(void)state;
	assert_non_null(dev_lu_backstore(lu()));
	assert_null(dev_lu_store_name(lu()));
}

static void test_read_capacity_and_read_mmc6_6_20(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
	assert_int_equal(get_be32(R->in), BLOCKS - 1);
	assert_int_equal(get_be32(R->in + 4), CD_BLOCK);
	assert_int_equal(CMD(0, 4096, NULL, 0x28, 0, 0, 0, 0, 1, 0, 0, 2),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4096);
	assert_int_equal(R->in[4095], 0x5c);
	assert_int_equal(CMD(0, 2048, NULL, 0xa8, 0, 0, 0, 0, BLOCKS - 1, 0, 0,
			     0, 1, 0x80),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 2048);
	CMD(0, 2048, NULL, 0x28, 0, 0, 0, 1, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
}

static void test_what_only_disks_have(void **state)
{
	static const uint8_t ops[] = { 0x08, 0x0a, 0x2a, 0x35, 0x41, 0x5e,
				       0x5f, 0x88, 0x8a, 0x9e, 0x83, 0xaa };

	(void)state;
	for (size_t i = 0; i < sizeof(ops); i++) {
		CMD(4096, 4096, R->medium, ops[i]);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	}
}

static void test_inquiry_type_5_and_names_spc4_6_4_2(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 96, NULL, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(R->in[0], 0x05);
	assert_int_equal(R->in[1], 0x80);
	assert_int_equal(R->in[5] & 0x08, 0); /* 3PC: no third-party copy */
	assert_int_equal(CMD(0, 96, NULL, 0x12, 1, 0xb0, 0, 96),
			 SCSI_CHECK_CONDITION);
	assert_int_equal(CMD(0, 96, NULL, 0x12, 1, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(R->in[0], 0x05);
	assert_int_equal(R->in[3], 6);
}

/* ---- READ TOC ---- */

static void test_toc_of_tracks_mmc6_6_25_3_2(void **state)
{
	static const uint8_t want[] = { 0, 18, 1, 1,	0,    0x14, 1, 0, 0, 0,
					0, 0,  0, 0x14, 0xaa, 0,    0, 0, 1, 0 };

	(void)state;
	assert_int_equal(CMD(0, 255, NULL, 0x43, 0, 0, 0, 0, 0, 0, 0, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(want));
	assert_memory_equal(R->in, want, sizeof(want));
	/* in MSF: 256 blocks and 2 seconds are 00:05:31 */
	assert_int_equal(CMD(0, 255, NULL, 0x43, 2, 0, 0, 0, 0, 1, 0, 255),
			 SCSI_GOOD);
	assert_memory_equal(R->in + 8, ((uint8_t[]){ 0, 0, 2, 0 }), 4);
	assert_memory_equal(R->in + 16, ((uint8_t[]){ 0, 0, 5, 31 }), 4);
	assert_int_equal(CMD(0, 255, NULL, 0x43, 0, 0, 0, 0, 0, 0xaa, 0, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 12);
	CMD(0, 255, NULL, 0x43, 0, 0, 0, 0, 0, 2, 0, 255);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 6);
	/* The answer is truncated, but the length field is complete. */
	assert_int_equal(CMD(0, 255, NULL, 0x43, 0, 0, 0, 0, 0, 0, 0, 4),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4);
	assert_int_equal(get_be16(R->in), 18);
}

static void test_toc_of_sessions_and_lead_in_mmc6_6_25_3(void **state)
{
	uint8_t first[12];

	(void)state;
	assert_int_equal(CMD(0, 255, NULL, 0x43, 0, 1, 0, 0, 0, 0, 0, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 12);
	assert_memory_equal(R->in, ((uint8_t[]){ 0, 10, 1, 1, 0, 0x14, 1 }), 7);
	memcpy(first, R->in, 12);
	/* The format in CONTROL, as SFF-8020i defines. */
	assert_int_equal(CMD(0, 255, NULL, 0x43, 0, 0, 0, 0, 0, 0, 0, 12, 0x40),
			 SCSI_GOOD);
	assert_memory_equal(R->in, first, 12);
	assert_int_equal(CMD(0, 255, NULL, 0x43, 2, 2, 0, 0, 0, 1, 0, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 4 * 11);
	assert_int_equal(R->in[4 + 3], 0xa0);
	assert_int_equal(R->in[15 + 3], 0xa1);
	assert_int_equal(R->in[26 + 3], 0xa2);
	assert_memory_equal(R->in + 26 + 8, ((uint8_t[]){ 0, 5, 31 }), 3);
	assert_memory_equal(R->in + 37 + 8, ((uint8_t[]){ 0, 2, 0 }), 3);
	/* The medium has one session. */
	CMD(0, 255, NULL, 0x43, 2, 2, 0, 0, 0, 2, 0, 255);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 6);
	CMD(0, 255, NULL, 0x43, 2, 4, 0, 0, 0, 0, 0, 255); /* ATIP */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_msf_edges(void **state)
{
	static const struct {
		uint8_t msf[3];
		int err;
		uint64_t lba;
	} cases[] = {
		{ { 0, 2, 0 }, 0, 0 },
		{ { 0, 1, 74 }, ERR_RANGE, 0 },
		{ { 0, 0, 0 }, ERR_RANGE, 0 },
		{ { 99, 59, 74 }, 0, 449849 },
		{ { 0, 60, 0 }, ERR_FORMAT, 0 },
		{ { 0, 2, 75 }, ERR_FORMAT, 0 },
		{ { 100, 0, 0 }, ERR_FORMAT, 0 },
	};
	uint8_t msf[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t lba = 0;

		assert_int_equal(cd_get_msf(cases[i].msf, &lba), cases[i].err);
		assert_int_equal(lba, cases[i].lba);
		if (cases[i].err)
			continue;
		cd_put_msf(msf, lba);
		assert_memory_equal(msf, cases[i].msf, 3);
	}
	for (uint64_t lba = 449850; lba; lba *= 2) { /* up to the limit */
		cd_put_msf(msf, lba);
		assert_memory_equal(msf, cases[3].msf, 3);
	}
}

/* ---- READ CD ---- */

/* GF(2^8) by tables: another method than the code uses. */
static uint8_t power[512];
static unsigned exponent[256];

static void make_field(void)
{
	unsigned a = 1;

	for (unsigned i = 0; i < 255; i++) {
		power[i] = power[i + 255] = (uint8_t)a;
		exponent[a] = i;
		a = a << 1 ^ (a & 0x80 ? 0x11d : 0);
	}
}

/* Annex A of ECMA-130: both syndromes of a code word are zero. Its bytes are at
 * 16-bit words `at`, `at + step`, ... of n, in one half of each. */
static void assert_code_word(const uint8_t *sector, unsigned at, unsigned step,
			     unsigned n, unsigned modulo, unsigned parity,
			     unsigned stride, unsigned half)
{
	uint8_t s0 = 0, s1 = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned word = i < n - 2 ? 6 + (at + i * step) % modulo
					  : parity + (i - (n - 2)) * stride;
		uint8_t c = sector[2 * word + half];

		s0 ^= c;
		if (c)
			s1 ^= power[exponent[c] + (n - 1 - i)];
	}
	assert_int_equal(s0, 0);
	assert_int_equal(s1, 0);
}

static void assert_sector(const uint8_t *s)
{
	uint32_t crc = 0;

	make_field();
	for (unsigned half = 0; half < 2; half++) {
		for (unsigned i = 0; i < 43; i++)
			assert_code_word(s, i, 43, 26, 1032, 1038 + i, 43,
					 half);
		for (unsigned i = 0; i < 26; i++)
			assert_code_word(s, 43 * i, 44, 45, 1118, 1124 + i, 26,
					 half);
	}
	/* The EDC polynomial divides the sector without remainder, bit 0 of
	 * each byte first. */
	for (unsigned i = 0; i < 2068 * 8; i++) {
		uint32_t bit = s[i / 8] >> i % 8 & 1;
		bool carry = crc & 0x80000000u;

		crc = crc << 1 | bit;
		if (carry)
			crc ^= 0x8001801bu;
	}
	assert_int_equal(crc, 0);
}

static void test_read_cd_whole_sectors_ecma130_14(void **state)
{
	static const uint8_t sync[12] = { 0,	0xff, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0xff, 0xff, 0xff, 0xff, 0 };

	(void)state;
	for (unsigned i = 0; i < BLOCKS * CD_BLOCK; i += 7) {
		struct iovec iov;

		assert_int_equal(bs_lend(dev_lu_backstore(lu()), 0,
					 BLOCKS * CD_BLOCK, &iov),
				 0);
		((uint8_t *)iov.iov_base)[i] = (uint8_t)(i * 31 + 1);
	}
	assert_int_equal(CMD(0, 3 * 2352, NULL, 0xbe, 0, 0, 0, 0, 74, 0, 0, 3,
			     0xf8),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 3 * 2352);
	for (unsigned i = 0; i < 3; i++) {
		assert_memory_equal(R->in + i * 2352, sync, 12);
		assert_sector(R->in + i * 2352);
	}
	assert_memory_equal(R->in + 12, ((uint8_t[]){ 0, 0x02, 0x74, 1 }), 4);
	assert_memory_equal(R->in + 2352 + 12, ((uint8_t[]){ 0, 0x03, 0, 1 }),
			    4);
}

/* Table of byte 9: the bytes that a mode 1 sector gives; 0xffff: refused. */
static void test_read_cd_main_channel_mmc6_6_17_2_6(void **state)
{
	static const struct {
		uint8_t byte;
		uint16_t len;
	} cases[] = {
		{ 0x00, 0 },	  { 0x10, 2048 },   { 0x18, 2336 },
		{ 0x20, 4 },	  { 0x30, 2052 },   { 0x38, 2340 },
		{ 0x50, 2048 },	  { 0x60, 4 },	    { 0x78, 2340 },
		{ 0x80, 12 },	  { 0xa0, 16 },	    { 0xb0, 2064 },
		{ 0xb8, 2352 },	  { 0xf8, 2352 },   { 0x90, 0xffff },
		{ 0x08, 0xffff }, { 0x28, 0xffff }, { 0x88, 0xffff },
		{ 0x98, 0xffff }, { 0x12, 0xffff }, { 0x14, 0xffff },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CMD(0, 8192, NULL, 0xbe, 0, 0, 0, 0, 5, 0, 0, 2, cases[i].byte);
		if (cases[i].len == 0xffff) {
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(R->sense.field, 9);
			/* C2 is the lower field (SPC-4 §4.5.2.4.2) */
			assert_int_equal(R->sense.bit,
					 cases[i].byte & 0x06 ? 2 : 7);
			continue;
		}
		assert_int_equal(R->task.status, SCSI_GOOD);
		assert_int_equal(R->in_len, 2 * cases[i].len);
	}
	CMD(0, 4096, NULL, 0xbe, 0x04, 0, 0, 0, 5, 0, 0, 1, 0x10); /* CD-DA */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_ILLEGAL_MODE_FOR_TRACK);
	assert_int_equal(CMD(0, 4096, NULL, 0xbe, 0x08, 0, 0, 0, 5, 0, 0, 1,
			     0x10),
			 SCSI_GOOD);
	for (uint8_t sub = 1; sub < 8; sub++) { /* sub-channel selection */
		CMD(0, 4096, NULL, 0xbe, 0, 0, 0, 0, 5, 0, 0, 1, 0x10, sub);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		assert_int_equal(R->sense.field, 10);
		assert_int_equal(R->sense.bit, 2);
	}
}

static void test_read_cd_at_the_edges(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 4096, NULL, 0xbe, 0, 0, 0, 0, 255, 0, 0, 1,
			     0x10),
			 SCSI_GOOD);
	CMD(0, 4096, NULL, 0xbe, 0, 0, 0, 0, 255, 0, 0, 2, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	/* The pregap begins at LBA -150. */
	CMD(0, 4096, NULL, 0xbe, 0, 0xff, 0xff, 0xff, 0x6a, 0, 0, 1, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	/* more blocks than one command may move; EDTL smaller than a sector */
	CMD(0, 4096, NULL, 0xbe, 0, 0, 0, 0, 0, 0, 0, 200, 0xf8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(CMD(0, 100, NULL, 0xbe, 0, 0, 0, 0, 0, 0, 0, 2, 0xf8),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 100);
	assert_int_equal(R->task.total.in, 2 * 2352);
	/* MSF: the ending address is not part of the range. */
	assert_int_equal(CMD(0, 8192, NULL, 0xb9, 0, 0, 0, 2, 0, 0, 2, 3, 0x10),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 3 * 2048);
	assert_int_equal(CMD(0, 8192, NULL, 0xb9, 0, 0, 0, 2, 5, 0, 2, 5, 0x10),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 0);
	CMD(0, 8192, NULL, 0xb9, 0, 0, 0, 2, 5, 0, 2, 4, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, 8192, NULL, 0xb9, 0, 0, 0, 1, 74, 0, 2, 4, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	CMD(0, 8192, NULL, 0xb9, 0, 0, 0, 5, 30, 0, 5, 32, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
}

static void test_read_cd_of_a_dvd_has_user_data_alone(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 2048, NULL, 0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10),
			 SCSI_GOOD);
	CMD(0, 2352, NULL, 0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0xf8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INCOMPATIBLE_MEDIUM);
}

/* ---- descriptions of drive and medium ---- */

static unsigned count_features(bool current_only)
{
	unsigned n = 0;
	int last = -1;

	assert_int_equal(R->in_len, get_be32(R->in) + 4);
	for (size_t at = 8; at < R->in_len; at += 4u + R->in[at + 3], n++) {
		assert_true(get_be16(R->in + at) > last);
		last = get_be16(R->in + at);
		assert_int_equal(R->in[at + 3] % 4, 0);
		assert_true(!current_only || (R->in[at + 2] & 1));
	}
	return n;
}

static void expect_profile(uint16_t profile, unsigned current)
{
	assert_int_equal(CMD(0, 1024, NULL, 0x46, 0, 0, 0, 0, 0, 0, 4, 0),
			 SCSI_GOOD);
	assert_int_equal(get_be16(R->in + 6), profile);
	assert_int_equal(count_features(false), 12);
	assert_int_equal(CMD(0, 1024, NULL, 0x46, 1, 0, 0, 0, 0, 0, 4, 0),
			 SCSI_GOOD);
	assert_int_equal(count_features(true), current);
}

static void test_configuration_of_a_cd_mmc6_6_5(void **state)
{
	(void)state;
	expect_profile(CD_PROFILE_CD_ROM, 10);
	/* One feature; then none, because the drive does not have it. */
	assert_int_equal(CMD(0, 64, NULL, 0x46, 2, 0, 0x10, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(count_features(true), 1);
	assert_int_equal(get_be32(R->in + 12), CD_BLOCK);
	assert_int_equal(CMD(0, 64, NULL, 0x46, 2, 0, 0x21, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(count_features(true), 0);
	/* All features from one code on. */
	assert_int_equal(CMD(0, 64, NULL, 0x46, 0, 1, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(count_features(false), 3);
	CMD(0, 64, NULL, 0x46, 3, 0, 0, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_configuration_by_size(void **state)
{
	(void)state;
	close_cd(state);
	open_null(CD_MAX_BLOCKS);
	expect_profile(CD_PROFILE_CD_ROM, 10);
	close_cd(state);
	open_null(CD_MAX_BLOCKS + 1);
	expect_profile(CD_PROFILE_DVD_ROM, 9);
	close_cd(state);
	open_null(DVD_MAX_BLOCKS);
	expect_profile(CD_PROFILE_DVD_ROM, 9);
	close_cd(state);
	open_null(DVD_MAX_BLOCKS + 1);
	expect_profile(CD_PROFILE_BD_ROM, 9);
	close_cd(state);
	open_empty(state);
	expect_profile(CD_PROFILE_NONE, 6);
}

static void test_disc_and_track_information_mmc6_6_21_6_26(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x51, 0, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 34);
	assert_int_equal(R->in[2], 0x0e); /* complete, finalized */
	CMD(0, 64, NULL, 0x51, 1, 0, 0, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	for (uint8_t by = 0; by < 3; by++) {
		assert_int_equal(CMD(0, 64, NULL, 0x52, by, 0, 0, 0, 1, 0, 0,
				     64),
				 SCSI_GOOD);
		assert_int_equal(R->in_len, 36);
		assert_int_equal(get_be32(R->in + 24), BLOCKS);
	}
	CMD(0, 64, NULL, 0x52, 0, 0, 0, 1, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	CMD(0, 64, NULL, 0x52, 1, 0, 0, 0, 2, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_disc_structure_mmc6_6_22(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 4096, NULL, 0xad, 0, 0, 0, 0, 0, 0, 0, 16, 0),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 2052);
	assert_int_equal(get_be16(R->in), 2050);
	assert_int_equal(get_be32(R->in + 8), 0x030000);
	assert_int_equal(get_be32(R->in + 12), 0x030000 + 2000000 - 1);
	assert_int_equal(R->in[6], 0x01); /* one layer */
	assert_int_equal(CMD(0, 64, NULL, 0xad, 0, 0, 0, 0, 0, 0, 1, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 8);
	assert_int_equal(CMD(0, 64, NULL, 0xad, 0, 0, 0, 0, 0, 0, 0xff, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 16);
	CMD(0, 64, NULL, 0xad, 0, 0, 0, 0, 0, 0, 3, 0, 64); /* BCA */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, 64, NULL, 0xad, 0, 0, 0, 0, 0, 1, 0, 0, 64); /* no such layer */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_disc_structure_of_two_layers_ecma267(void **state)
{
	uint32_t end0, end1;

	(void)state;
	assert_int_equal(CMD(0, 4096, NULL, 0xad, 0, 0, 0, 0, 0, 1, 0, 16, 0),
			 SCSI_GOOD);
	assert_int_equal(R->in[6], 0x31);
	end1 = get_be32(R->in + 12);
	end0 = get_be32(R->in + 16);
	assert_int_equal((end0 + 1 - 0x030000) % 16, 0);
	/* The second layer begins at the inverted end of the first one. */
	assert_int_equal(end0 + 1 - 0x030000 + end1 + 1 - (~end0 & 0xffffff),
			 4000000);
}

static void test_disc_structure_is_for_dvds(void **state)
{
	(void)state;
	CMD(0, 64, NULL, 0xad, 0, 0, 0, 0, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INCOMPATIBLE_MEDIUM);
}

static void test_mode_pages_mmc6_7(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 255, NULL, 0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 8 + 32);
	assert_int_equal(get_be16(R->in + 6), 0); /* no block descriptor */
	assert_int_equal(R->in[8], 0x2a);
	assert_int_equal(R->in[8 + 6], 0x29);
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 1), SCSI_GOOD);
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 0, 0x2a, 0, 255), SCSI_GOOD);
	assert_int_equal(R->in[4 + 6], 0x2b); /* locked */
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 0, 0x3f, 0, 255), SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 5 * 12 + 32);
	/* The control page (SPC-4 §7.5.8) has no changeable bits. */
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 0, 0x4a, 0, 255), SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 12);
	assert_int_equal(R->in[4], 0x0a);
	for (int i = 6; i < 16; i++)
		assert_int_equal(R->in[i], 0);
	CMD(0, 255, NULL, 0x1a, 0, 0x08, 0, 255); /* a page of disks */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_speeds_are_taken_mmc6_6_37_6_39(void **state)
{
	uint8_t d[28] = { [11] = 255, [15] = 1, [19] = 1 };

	(void)state;
	assert_int_equal(CMD(0, 0, NULL, 0xbb, 0, 0xff, 0xff, 0xff, 0xff),
			 SCSI_GOOD);
	assert_int_equal(CMD(28, 0, d, 0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28),
			 SCSI_GOOD);
	d[7] = 1; /* begins after the end */
	d[11] = 0;
	CMD(28, 0, d, 0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(CMD(0, 64, NULL, 0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1,
			     0),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 24);
	assert_int_equal(get_be32(R->in + 16), BLOCKS - 1);
}

/* ---- events and media ---- */

static uint8_t status_now, event_now;

static void poll(void)
{
	assert_int_equal(CMD(0, 8, NULL, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 8);
	assert_int_equal(get_be16(R->in), 6);
	assert_int_equal(R->in[2], 4);
	event_now = R->in[4];
	status_now = R->in[5];
}

static void expect_event(uint8_t event, uint8_t status)
{
	poll();
	assert_int_equal(event_now, event);
	assert_int_equal(status_now, status);
}

static void test_event_classes_mmc6_6_6(void **state)
{
	(void)state;
	CMD(0, 8, NULL, 0x4a, 0, 0, 0, 0x10, 0, 0, 0, 8); /* asynchronous */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(CMD(0, 8, NULL, 0x4a, 1, 0, 0, 0x28, 0, 0, 0, 8),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4);
	assert_int_equal(R->in[2], 0x80); /* NEA */
	assert_int_equal(R->in[3], 0x56);
	assert_int_equal(CMD(0, 8, NULL, 0x4a, 1, 0, 0, 0x56, 0, 0, 0, 8),
			 SCSI_GOOD);
	assert_int_equal(R->in[2], 1); /* no event: the lowest class */
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 2), SCSI_GOOD);
	/* An event longer than the allocation length stays pending. */
	assert_int_equal(CMD(0, 8, NULL, 0x4a, 1, 0, 0, 0x56, 0, 0, 0, 4),
			 SCSI_GOOD);
	assert_int_equal(CMD(0, 8, NULL, 0x4a, 1, 0, 0, 0x56, 0, 0, 0, 8),
			 SCSI_GOOD);
	assert_int_equal(R->in[2], 4);
	assert_int_equal(R->in[4], CD_EVENT_REMOVAL);
}

static void test_eject_and_load_by_an_initiator_mmc6_6_42(void **state)
{
	(void)state;
	expect_event(CD_EVENT_NONE, 0x02);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 2), SCSI_GOOD);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN);
	CMD(0, 2048, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN);
	CMD(0, 8, NULL, 0x25);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN);
	expect_event(CD_EVENT_REMOVAL, 0x01);
	expect_event(CD_EVENT_NONE, 0x01);
	assert_int_equal(CMD(0, 8, NULL, 0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8),
			 SCSI_GOOD);
	assert_int_equal(R->in[1], 0x10);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 3), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	expect_event(CD_EVENT_NEW_MEDIUM, 0x02);
	fx_swap(R); /* the other nexus gets an attention and the event */
	expect_event(CD_EVENT_NEW_MEDIUM, 0x02); /* after the attention */
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* NO_FLUSH of disks is bit 2 of byte 4; LOEJ and START change a layer. */
static void test_format_layer_mmc6_6_42(void **state)
{
	static const uint8_t mean_nothing[] = { 0x04, 0x05, 0x34, 0x37 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(mean_nothing); i++)
		assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0,
				     mean_nothing[i]),
				 SCSI_GOOD);
	CMD(0, 0, NULL, 0x1b, 0, 0, 0, 0x07);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 4);
	assert_int_equal(R->sense.bit, 2);
	expect_event(CD_EVENT_NONE, 0x02);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 0x06), SCSI_GOOD);
	expect_event(CD_EVENT_REMOVAL, 0x01);
}

/* No page or subpage needs a medium. */
static void test_mode_pages_of_an_empty_drive(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 0, 0x3f, 0xff, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 5 * 12 + 32);
	assert_int_equal(CMD(0, 255, NULL, 0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 8 + 32);
	/* MODE SELECT finds its pages without a medium, too. */
	CMD(20, 0, R->in, 0x55, 0x10, 0, 0, 0, 0, 0, 0, 20);
	assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
}

static void test_a_drive_that_starts_empty(void **state)
{
	(void)state;
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_CLOSED);
	CMD(0, 255, NULL, 0x43, 0, 0, 0, 0, 0, 0, 0, 255);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_CLOSED);
	/* The pages describe the drive; no backstore is needed. */
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 0, 0x3f, 0, 255), SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 5 * 12 + 32);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 2), SCSI_GOOD);
	expect_event(CD_EVENT_NONE, 0x01);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 3), SCSI_GOOD);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_CLOSED);
	assert_int_equal(change(memory(10, 1), false), 0);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
	assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
	assert_int_equal(get_be32(R->in), 9);
	expect_event(CD_EVENT_NEW_MEDIUM, 0x02);
}

static void test_another_medium_is_put_in(void **state)
{
	uint8_t serial[36];

	(void)state;
	CMD(0, 36, NULL, 0x12, 1, 0x80, 0, 36);
	memcpy(serial, R->in, 36);
	assert_int_equal(change(memory(500, 0x77), false), 0);
	for (int i = 0; i < 2; i++, fx_swap(R)) {
		CMD(0, 8, NULL, 0x25);
		assert_check(SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
		assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
		assert_int_equal(get_be32(R->in), 499);
		expect_event(CD_EVENT_NEW_MEDIUM, 0x02);
	}
	assert_int_equal(CMD(0, 2048, NULL, 0x28, 0, 0, 0, 1, 0xf3, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(R->in[0], 0x77);
	CMD(0, 36, NULL, 0x12, 1, 0x80, 0, 36);
	assert_memory_equal(R->in, serial, 36); /* the same drive */
	assert_int_equal(change(NULL, false), 0);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN);
	expect_event(CD_EVENT_REMOVAL, 0x01);
	/* The medium of the open tray is gone. */
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 3), SCSI_GOOD);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_CLOSED);
}

static void test_a_locked_drive_asks_to_be_unlocked_mmc6_6_14(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 1), SCSI_GOOD);
	CMD(0, 0, NULL, 0x1b, 0, 0, 0, 2);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
	assert_int_equal(change(NULL, false), ERR_BUSY);
	expect_event(CD_EVENT_EJECT_REQUEST, 0x02);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD); /* no change */
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 0), SCSI_GOOD);
	assert_int_equal(change(NULL, false), 0);
	assert_int_equal(change(memory(3, 0), false), 0);
	fx_take_attentions(R);
	/* by force */
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 1), SCSI_GOOD);
	assert_int_equal(change(NULL, true), 0);
}

static void test_persistent_prevention_leaves_initiators_alone(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 3), SCSI_GOOD);
	assert_int_equal(change(NULL, false), ERR_BUSY);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 2), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 3), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 0), SCSI_GOOD);
	assert_int_equal(change(NULL, false),
			 ERR_BUSY); /* the prevention of the other nexus */
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 2), SCSI_GOOD);
	assert_int_equal(change(NULL, false), 0);
}

static void test_prevention_ends_with_nexus_and_reset(void **state)
{
	struct dev_nexus_config n = { .initiator_port = "iqn.k,i,0x3",
				      .target_port = "iqn.t,t,0x0001" };
	struct dev_nexus *third;

	(void)state;
	third = dev_nexus_open(R->server, &n);
	fx_swap(R);
	{
		struct dev_nexus *mine = R->nexus;

		R->nexus = third;
		CMD(0, 0, NULL, 0x00);
		assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 3), SCSI_GOOD);
		R->nexus = mine;
	}
	assert_true(dev_is_locked(lu()));
	dev_nexus_close(third);
	assert_false(dev_is_locked(lu()));
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 3), SCSI_GOOD);
	fx_reset(lu());
	assert_false(dev_is_locked(lu()));
}

static void test_media_of_other_types_are_refused(void **state)
{
	struct bs *b = memory(8, 0);

	(void)state;
	b->caps &= ~BS_CAP_READ_ONLY;
	assert_int_equal(change(b, false), ERR_FORMAT);
	bs_close(b);
	b = bs_ram_new("ram:cd", NULL, 0, 512, NULL, NULL);
	b->caps |= BS_CAP_READ_ONLY;
	assert_int_equal(change(b, false), ERR_FORMAT);
	bs_close(b);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

static void test_disks_have_no_other_medium(void **state)
{
	(void)state;
	fx_open(R, fx_ram(R), true);
	assert_int_equal(change(NULL, false), ERR_UNSUPPORTED);
	assert_int_equal(change(NULL, true), ERR_UNSUPPORTED);
}

/* A command checked with the old medium does not read the new medium. */
static void test_begun_before_the_change(void **state)
{
	static const uint8_t read[16] = { 0x28, [5] = 200, [8] = 1 };

	(void)state;
	assert_int_equal(fx_begin(R, read, 16, 0, 2048), 0);
	assert_int_equal(change(memory(8, 0), false), 0);
	assert_true(fx_execute(R, NULL) >= 0);
	fx_finish(R);
	assert_check(SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
}

/* ---- changes during reads ---- */

static struct bs *hold;
static struct dev_msg *posted, **posted_end = &posted;

/* As in the daemon, a completion does not close its own backstore. */
static void post_later(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	m->next = NULL;
	*posted_end = m;
	posted_end = &m->next;
}

static void turn(void)
{
	while (posted) {
		struct dev_msg *m = posted;

		posted = m->next;
		if (!posted)
			posted_end = &posted;
		m->run(m);
	}
}

static int close_held(void **state)
{
	turn();
	return close_cd(state);
}

static int open_held(void **state)
{
	struct bs *b = memory(BLOCKS, 0x5c);

	(void)state;
	hold = bs_hold_new(b);
	hold->caps |= BS_CAP_READ_ONLY;
	R->post = post_later;
	return open_with(hold);
}

static void test_the_medium_stays_while_it_is_read(void **state)
{
	static const uint8_t read[16] = { 0x28, [8] = 1 };
	struct dev_task *t = &R->task;

	(void)state;
	assert_int_equal(fx_begin(R, read, 16, 0, 2048), 0);
	assert_true(fx_execute(R, NULL) < 0);
	was_changed = false;
	assert_int_equal(dev_lu_change_medium(lu(), NULL, false, changed, NULL),
			 0);
	assert_false(was_changed);
	assert_int_equal(dev_lu_change_medium(lu(), NULL, false, changed, NULL),
			 ERR_AGAIN);
	assert_true(dev_server_is_busy(R->server));
	bs_hold_release(hold, 1);
	turn();
	assert_true(R->done && was_changed);
	assert_int_equal(t->status, SCSI_GOOD);
	fx_finish(R);
	assert_int_equal(R->in[0], 0x5c);
	assert_false(dev_server_is_busy(R->server));
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_NO_MEDIUM_TRAY_OPEN);
}

static void test_aborted_while_the_medium_changes(void **state)
{
	static const uint8_t read[16] = { 0xbe, [8] = 1, [9] = 0xf8 };

	(void)state;
	assert_int_equal(fx_begin(R, read, 16, 0, 2352), 0);
	assert_true(fx_execute(R, NULL) < 0);
	was_changed = false;
	assert_int_equal(dev_lu_change_medium(lu(), memory(4, 9), false,
					      changed, NULL),
			 0);
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	assert_false(R->released || was_changed);
	bs_hold_release(hold, 1);
	turn();
	assert_true(R->released && was_changed);
	dev_task_end(&R->task);
	fx_take_attentions(R);
	assert_int_equal(CMD(0, 2048, NULL, 0x28, 0, 0, 0, 0, 3, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(R->in[0], 9);
}

#define WITH(name, open) cmocka_unit_test_setup_teardown(name, open, close_cd)
#define HELD(name)	 cmocka_unit_test_setup_teardown(name, open_held, close_held)
#define C(name)		 WITH(name, open_cd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(test_name_of_a_medium_is_not_lent),
		C(test_read_capacity_and_read_mmc6_6_20),
		C(test_what_only_disks_have),
		C(test_inquiry_type_5_and_names_spc4_6_4_2),
		C(test_toc_of_tracks_mmc6_6_25_3_2),
		C(test_toc_of_sessions_and_lead_in_mmc6_6_25_3),
		C(test_msf_edges),
		C(test_read_cd_whole_sectors_ecma130_14),
		C(test_read_cd_main_channel_mmc6_6_17_2_6),
		C(test_read_cd_at_the_edges),
		WITH(test_read_cd_of_a_dvd_has_user_data_alone, open_dvd),
		C(test_configuration_of_a_cd_mmc6_6_5),
		C(test_configuration_by_size),
		C(test_disc_and_track_information_mmc6_6_21_6_26),
		WITH(test_disc_structure_mmc6_6_22, open_dvd),
		WITH(test_disc_structure_of_two_layers_ecma267,
		     open_dual_layer),
		C(test_disc_structure_is_for_dvds),
		WITH(test_disc_structure_is_for_dvds, open_bd),
		C(test_mode_pages_mmc6_7),
		C(test_speeds_are_taken_mmc6_6_37_6_39),
		C(test_event_classes_mmc6_6_6),
		C(test_eject_and_load_by_an_initiator_mmc6_6_42),
		C(test_format_layer_mmc6_6_42),
		WITH(test_mode_pages_of_an_empty_drive, open_empty),
		WITH(test_a_drive_that_starts_empty, open_empty),
		C(test_another_medium_is_put_in),
		C(test_a_locked_drive_asks_to_be_unlocked_mmc6_6_14),
		C(test_persistent_prevention_leaves_initiators_alone),
		C(test_prevention_ends_with_nexus_and_reset),
		C(test_media_of_other_types_are_refused),
		cmocka_unit_test_teardown(test_disks_have_no_other_medium,
					  close_cd),
		C(test_begun_before_the_change),
		HELD(test_the_medium_stays_while_it_is_read),
		HELD(test_aborted_while_the_medium_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
