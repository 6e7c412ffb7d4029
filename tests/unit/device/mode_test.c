/* SPDX-License-Identifier: BSD-2-Clause */
/* mode_test.c: MODE SENSE and MODE SELECT, by the clauses of SPC-4 and SBC-3.
 * The unit itself reports the changeable bits. */
#include "dev_case.h"

static uint8_t now[1024], mask[1024];
static uint32_t pages_len;

/* sense_all copies all pages and subpages without block descriptors, as MODE
 * SENSE(10) returns them after the header of 8 bytes. */
static uint32_t sense_all(uint8_t pc, uint8_t *to)
{
	assert_int_equal(CMD(0, 1024, NULL, 0x5a, 0x08,
			     (uint8_t)(pc << 6 | 0x3f), 0xff, 0, 0, 0, 4, 0),
			 SCSI_GOOD);
	assert_int_equal(get_be16(R->in) + 2u, R->in_len);
	memcpy(to, R->in, R->in_len);
	return (uint32_t)R->in_len;
}

static void learn(void)
{
	pages_len = sense_all(0, now);
	assert_int_equal(sense_all(1, mask), pages_len);
	memset(now, 0, 8);
}

static uint32_t page_len(const uint8_t *p)
{
	return p[0] & 0x40 ? 4u + get_be16(p + 2) : 2u + p[1];
}

static int select_all(const uint8_t *list, uint32_t len)
{
	uint8_t cdb[16] = { 0x55, 0x10 };

	put_be16(cdb + 7, (uint16_t)len);
	return fx_run(R, cdb, 16, list, len, 0);
}

static void test_every_page_of_the_standard_is_there(void **state)
{
	static const uint16_t want[] = { 0x0100, 0x0200, 0x0700, 0x0800, 0x0a00,
					 0x0a01, 0x1a00, 0x1c00, 0x1c02 };
	size_t n = 0;

	(void)state;
	learn();
	for (uint32_t at = 8; at < pages_len; at += page_len(now + at), n++) {
		assert_true(n < ARRAY_LEN(want));
		assert_int_equal(now[at] & 0x3f, want[n] >> 8);
		if (now[at] & 0x40)
			assert_int_equal(now[at + 1], want[n] & 0xff);
	}
	assert_int_equal(n, ARRAY_LEN(want));
	/* With subpage 00h the unit leaves out the subpages. */
	CMD(0, 255, NULL, 0x1a, 8, 0x3f, 0, 255);
	assert_true(R->in_len < pages_len);
	/* one subpage */
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 8, 0x1c, 2, 255), SCSI_GOOD);
	assert_int_equal(R->in_len, 4 + 24);
	/* Page 3Fh permits subpages 00h and FFh only (SPC-4 §6.11.1). */
	for (uint8_t sub = 1; sub < 4; sub++) {
		CMD(0, 255, NULL, 0x1a, 8, 0x3f, sub, 255);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		assert_int_equal(R->sense.field, 3);
	}
}

/* SPC-4 §6.9.1: a bit that differs and cannot change gives its byte, and the
 * unit ignores the whole list; the unit takes all other bits. */
static void test_select_every_bit_of_every_page(void **state)
{
	unsigned changed = 0;

	(void)state;
	learn();
	for (uint32_t at = 8; at < pages_len; at += page_len(now + at)) {
		uint32_t len = page_len(now + at);
		uint32_t header = now[at] & 0x40 ? 4 : 2;
		uint8_t list[128] = { 0 };

		for (uint32_t bit = header * 8; bit < len * 8; bit++) {
			bool may = mask[at + bit / 8] & 1u << bit % 8;

			memcpy(list + 8, now + at, len);
			list[8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
			if ((now[at] & 0x3f) == 0x0a && bit / 8 == 3 &&
			    (list[8 + 3] & 6) == 4)
				may = false; /* QERR 10b */
			select_all(list, 8 + len);
			if (may) {
				assert_int_equal(R->task.status, SCSI_GOOD);
				changed++;
				memcpy(list + 8, now + at, len);
				assert_int_equal(select_all(list, 8 + len),
						 SCSI_GOOD);
				continue;
			}
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_PARAMETERS);
			assert_int_equal(R->sense.field, 8 + bit / 8);
		}
	}
	assert_true(changed >= 6 + 32);
	sense_all(0, mask);
	assert_memory_equal(mask + 8, now + 8, pages_len - 8);
}

/* All pages in one list, cut at every byte: whole pages or an error. An error
 * in the last page leaves the first page unchanged. */
static void test_select_list_at_every_length(void **state)
{
	uint8_t list[1024];
	uint32_t whole = 8;

	(void)state;
	learn();
	memcpy(list, now, pages_len);
	assert_int_equal(select_all(list, 0), SCSI_GOOD);
	for (uint32_t len = 1; len <= pages_len; len++) {
		while (whole < len && whole + page_len(now + whole) <= len)
			whole += page_len(now + whole);
		select_all(list, len);
		if (len == whole)
			assert_int_equal(R->task.status, SCSI_GOOD);
		else
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	for (uint32_t at = 8; at < pages_len; at += page_len(now + at))
		if (list[at] == 0x0a)
			list[at + 2] ^= 0x04; /* D_SENSE, and then: */
	list[pages_len - 9] ^= 1; /* a reserved byte before the threshold */
	select_all(list, pages_len);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(sense_all(0, mask), pages_len);
	assert_memory_equal(mask + 8, now + 8, pages_len - 8);
}

static void test_block_descriptor_says_only_what_is_so(void **state)
{
	uint8_t list[4 + 8] = { 0, 0, 0, 8 };
	static const uint8_t cdb[16] = { 0x15, 0x10, 0, 0, 12 };

	(void)state;
	put_be24(list + 9, 512);
	assert_int_equal(fx_run(R, cdb, 16, list, 12, 0), SCSI_GOOD);
	put_be32(list + 4, FX_BLOCKS);
	assert_int_equal(fx_run(R, cdb, 16, list, 12, 0), SCSI_GOOD);
	put_be32(list + 4, FX_BLOCKS - 1);
	fx_run(R, cdb, 16, list, 12, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 4);
	put_be32(list + 4, 0);
	put_be24(list + 9, 4096);
	fx_run(R, cdb, 16, list, 12, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 9);
	/* The unit has neither vendor specific pages nor saving. */
	CMD(0, 0, NULL, 0x15);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, 0, NULL, 0x15, 0x11);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.bit, 0);
}

/* control sends the control page with some bits of bytes 2 to 5 inverted; TAS is 1. */
static int control(uint8_t b2, uint8_t b3, uint8_t b4, uint8_t b5)
{
	const uint8_t list[4 + 12] = {
		0,
		0,
		0,
		0,
		0x0a,
		10,
		(uint8_t)(0x02 | b2),
		(uint8_t)(0x10 | b3),
		b4,
		(uint8_t)(0x40 ^ b5),
		0,
		0,
		0xff,
		0xff,
	};

	return CMD(sizeof(list), 0, list, 0x15, 0x10, 0, 0, sizeof(list));
}

static void test_others_learn_of_a_change_spc4_6_9(void **state)
{
	(void)state;
	assert_int_equal(control(0, 0, 0, 0), SCSI_GOOD); /* no change */
	fx_swap(R);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	fx_swap(R);
	assert_int_equal(control(0, 0, 0, 0x40), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	fx_swap(R);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_MODE_PARAMETERS_CHANGED);
	fx_swap(R);
}

static void test_d_sense_spc4_7_5_8(void **state)
{
	(void)state;
	assert_int_equal(control(0x04, 0, 0, 0), SCSI_GOOD);
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 4, 0, 0, 0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_int_equal(R->task.sense.data[0] & 0x7f, 0x72);
	assert_true(R->sense.has_info);
	assert_int_equal(R->sense.info, 1024);
	assert_int_equal(control(0, 0, 0, 0), SCSI_GOOD);
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 4, 0, 0, 0, 1);
	assert_int_equal(R->task.sense.data[0] & 0x7f, 0x70);
}

static void test_software_write_protect_spc4_7_5_8(void **state)
{
	static const uint8_t block[512];

	(void)state;
	assert_int_equal(control(0, 0, 0x08, 0), SCSI_GOOD);
	CMD(512, 0, block, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_DATA_PROTECT, ASC_SOFTWARE_WRITE_PROTECTED);
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_GOOD);
	CMD(0, 255, NULL, 0x1a, 8, 0x0a, 0, 255);
	assert_int_equal(R->in[2] & 0x80, 0x80); /* WP */
	assert_int_equal(R->in[4 + 4], 0x08);
	/* A reset restores the default (SPC-4 §5.9). */
	fx_reset(dev_lu_get(R->server, 0));
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(CMD(512, 0, block, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_GOOD);
}

static unsigned ops[BS_SIZE + 1], last_flags;

static void note(void *arg, const struct bs_req *req)
{
	(void)arg;
	ops[req->op]++;
	last_flags = req->flags;
}

/* WCE off: each write is durable before GOOD; earlier writes are flushed. */
static void test_write_cache_off_sbc3_6_5_5(void **state)
{
	uint8_t list[4 + 20] = { [4] = 0x08, [5] = 18 };
	static const uint8_t block[512] = { 1 };
	struct bs *ram;

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	ram = fx_ram(R);
	ram->caps |= BS_CAP_WRITE_CACHE;
	ram = bs_trace_new(ram, note, NULL);
	fx_open(R, ram, false);
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(CMD(512, 0, block, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_GOOD);
	assert_false(last_flags & BS_FUA);
	memset(ops, 0, sizeof(ops));
	assert_int_equal(CMD(sizeof(list), 0, list, 0x15, 0x10, 0, 0,
			     sizeof(list)),
			 SCSI_GOOD);
	assert_int_equal(ops[BS_FLUSH], 1);
	CMD(512, 0, block, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_true(last_flags & BS_FUA);
	CMD(512, 0, block, 0x41, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_true(last_flags & BS_FUA);
}

/* SBC-3 §4.15: the unit flushes before a read with FUA. */
static void test_read_with_fua_empties_the_cache_first(void **state)
{
	uint8_t off[4 + 20] = { [4] = 0x08, [5] = 18 };
	struct bs *ram;

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	ram = fx_ram(R);
	ram->caps |= BS_CAP_WRITE_CACHE;
	fx_open(R, bs_trace_new(ram, note, NULL), false);
	fx_take_attentions(R);
	memset(ops, 0, sizeof(ops));
	for (unsigned fua = 0; fua < 2; fua++) {
		uint8_t flags = fua ? 0x08 : 0;

		R->medium[0] = 0x17;
		assert_int_equal(CMD(0, 512, NULL, 0x28, flags, 0, 0, 0, 0, 0,
				     0, 1),
				 SCSI_GOOD);
		assert_int_equal(R->in_len, 512);
		assert_int_equal(R->in[0], 0x17);
		assert_int_equal(CMD(0, 512, NULL, 0xa8, flags, 0, 0, 0, 0, 0,
				     0, 0, 1),
				 SCSI_GOOD);
		assert_int_equal(CMD(0, 512, NULL, 0x88, flags, 0, 0, 0, 0, 0,
				     0, 0, 0, 0, 0, 0, 1),
				 SCSI_GOOD);
		assert_int_equal(ops[BS_FLUSH], 3 * fua);
	}
	/* With WCE 0 there is nothing to flush. */
	assert_int_equal(CMD(sizeof(off), 0, off, 0x15, 0x10, 0, 0,
			     sizeof(off)),
			 SCSI_GOOD);
	memset(ops, 0, sizeof(ops));
	CMD(0, 512, NULL, 0x28, 0x08, 0, 0, 0, 0, 0, 0, 1);
	assert_int_equal(ops[BS_FLUSH], 0);
}

static void test_policy_page_is_as_others_learn_of_changes(void **state)
{
	static const uint8_t want[8] = { 0, 0x87, 0, 4, 0x3f, 0xff, 0, 0 };

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0x87, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in_len, 8);
	assert_memory_equal(R->in, want, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_every_page_of_the_standard_is_there),
		T(test_select_every_bit_of_every_page),
		T(test_select_list_at_every_length),
		T(test_block_descriptor_says_only_what_is_so),
		T(test_others_learn_of_a_change_spc4_6_9),
		T(test_read_with_fua_empties_the_cache_first),
		T(test_policy_page_is_as_others_learn_of_changes),
		T(test_d_sense_spc4_7_5_8),
		T(test_software_write_protect_spc4_7_5_8),
		T(test_write_cache_off_sbc3_6_5_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
