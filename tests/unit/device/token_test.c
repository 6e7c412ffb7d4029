/* SPDX-License-Identifier: BSD-2-Clause */
/* token_test.c: POPULATE TOKEN, WRITE USING TOKEN, RECEIVE ROD TOKEN
 * INFORMATION, by the clauses of SBC-3 and SPC-4. */
#include "dev_case.h"

static uint64_t clock_ms;
static uint64_t seed = 1;

static uint64_t fake_clock(void *arg)
{
	(void)arg;
	return clock_ms;
}

static void fake_random(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	while (n--) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		*p++ = (uint8_t)(seed >> 56);
	}
}

static uint8_t *second; /* 128 blocks of 4096 bytes, LUN 1 */
static uint8_t list[4096], token[512];
static uint64_t lun;

static int open_tokens(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	R->wall_ms = fake_clock;
	R->random = fake_random;
	R->two_initiators = true;
	fx_open(R, fx_ram(R), false);
	fx_take_attentions(R);
	second = calloc(128, 4096);
	fx_add(R, 1,
	       bs_ram_new("ram:second", second, 128 * 4096, 4096, free,
			  second));
	for (size_t i = 0; i < FX_BLOCKS * FX_BLOCK; i++)
		R->medium[i] = (uint8_t)(i * 13 + (i >> 11));
	lun = 0;
	clock_ms = 1000000;
	return 0;
}

/* A command to `lun`. */
static int run_at(const uint8_t cdb[16], const void *data, uint32_t out,
		  uint32_t in)
{
	fx_begin(R, cdb, 16, out, in);
	dev_task_end(&R->task);
	R->task.lun = lun << 48;
	assert_int_equal(dev_task_begin(&R->task), 0);
	assert_int_not_equal(fx_execute(R, data), -1);
	return fx_finish(R);
}

struct range {
	uint64_t lba;
	uint32_t blocks;
};

static uint32_t put_ranges(uint32_t at, const struct range *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		put_be64(list + at + 16 * i, r[i].lba);
		put_be32(list + at + 16 * i + 8, r[i].blocks);
	}
	put_be16(list + at - 2, (uint16_t)(16 * n));
	put_be16(list, (uint16_t)(at + 16 * n - 2));
	return at + 16 * n;
}

static int send_list(uint8_t sa, uint32_t id, uint32_t len)
{
	uint8_t cdb[16] = { 0x83, sa };

	put_be32(cdb + 6, id);
	put_be32(cdb + 10, len);
	return run_at(cdb, list, len, 0);
}

static int populate(uint32_t id, const struct range *r, unsigned n)
{
	memset(list, 0, sizeof(list));
	return send_list(0x10, id, put_ranges(16, r, n));
}

static int ask(uint32_t id)
{
	uint8_t cdb[16] = { 0x84, 0x07 };

	put_be32(cdb + 2, id);
	put_be32(cdb + 10, 1024);
	return run_at(cdb, NULL, 0, 1024);
}

static void take_token(uint32_t id)
{
	assert_int_equal(ask(id), SCSI_GOOD);
	assert_int_equal(get_be32(R->in) + 4, R->in_len);
	assert_int_equal(R->in[4], 0x10);
	assert_int_equal(R->in[5], 0x01);
	assert_int_equal(get_be32(R->in + 8),
			 0xfffffffe); /* no further blocks follow */
	assert_int_equal(get_be32(R->in + 32), 514);
	memcpy(token, R->in + 38, 512);
}

static int write_using(uint32_t id, uint64_t skip, uint8_t flags,
		       const struct range *r, unsigned n)
{
	memset(list, 0, sizeof(list));
	list[2] = flags;
	put_be64(list + 8, skip);
	memcpy(list + 16, token, 512);
	return send_list(0x11, id, put_ranges(536, r, n));
}

#define RANGES(...)                     \
 (const struct range[]){ __VA_ARGS__ }, \
	 sizeof((const struct range[]){ __VA_ARGS__ }) / sizeof(struct range)

static void test_token_moves_blocks_in_pieces_sbc3_5_46(void **state)
{
	(void)state;
	assert_int_equal(populate(5, RANGES({ 0, 96 }, { 200, 48 })),
			 SCSI_GOOD);
	take_token(5);
	/* The copy manager of another unit has no such copy, and the identifier
	 * is free there. */
	lun = 1;
	ask(5);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(populate(5, RANGES({ 3, 1 })), SCSI_GOOD);
	lun = 0;
	take_token(5);
	assert_int_equal(get_be64(R->in + 16), 144); /* blocks */
	assert_int_equal(get_be32(token), 0x00800001);
	assert_int_equal(get_be64(token + 56), 144 * 512);
	/* other ranges, the whole token */
	assert_int_equal(write_using(6, 0, 0,
				     RANGES({ 500, 30 }, { 600, 114 })),
			 SCSI_GOOD);
	assert_memory_equal(R->medium, R->medium + 500 * 512, 30 * 512);
	assert_memory_equal(R->medium + 30 * 512, R->medium + 600 * 512,
			    66 * 512);
	assert_memory_equal(R->medium + 200 * 512, R->medium + 666 * 512,
			    48 * 512);
	assert_int_equal(ask(6), SCSI_GOOD);
	assert_int_equal(R->in[4], 0x11);
	assert_int_equal(R->in[5], 0x01);
	assert_int_equal(get_be64(R->in + 16), 144);
	assert_int_equal(get_be32(R->in + 32),
			 0); /* no token for that identifier */
	assert_int_equal(
		R->medium[500 * 512 - 1],
		(uint8_t)((500 * 512 - 1) * 13 + ((500 * 512 - 1) >> 11)));
	/* a reset of another unit, then of this unit (SPC-4 §6.26) */
	fx_reset(dev_lu_get(R->server, 1));
	assert_int_equal(ask(6), SCSI_GOOD);
	fx_reset(dev_lu_get(R->server, 0));
	fx_take_attentions(R);
	ask(6);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* From an offset of the token, to a unit with another block size, more blocks
 * than the token has. */
static void test_token_to_a_unit_of_other_blocks(void **state)
{
	(void)state;
	assert_int_equal(populate(5, RANGES({ 0, 96 }, { 200, 51 })),
			 SCSI_GOOD);
	take_token(5);
	lun = 1;
	assert_int_equal(write_using(7, 10, 0, RANGES({ 3, 100 })), SCSI_GOOD);
	assert_memory_equal(R->medium + 80 * 512, second + 3 * 4096, 16 * 512);
	assert_memory_equal(R->medium + 200 * 512, second + 5 * 4096, 48 * 512);
	assert_int_equal(second[11 * 4096],
			 0); /* not a whole block of the destination */
	assert_int_equal(ask(7), SCSI_GOOD);
	assert_int_equal(R->in[5], 0x04); /* a residual */
	assert_int_equal(get_be64(R->in + 16), 8);
	/* A range boundary inside a block of the destination. */
	lun = 0;
	assert_int_equal(populate(5, RANGES({ 0, 4 }, { 200, 4 })), SCSI_GOOD);
	take_token(5);
	lun = 1;
	write_using(7, 0, 0, RANGES({ 3, 1 }));
	assert_check(SENSE_COPY_ABORTED, ASC_INEXACT_SEGMENT);
}

/* SPC-4 §5.17.6.3: the first write to any block of the token revokes the
 * token. */
static void test_write_revokes_the_token(void **state)
{
	static const uint8_t block[1024] = { 1 };
	static const struct {
		uint8_t cdb[16];
		uint32_t out;
		bool revokes;
	} c[] = {
		{ { 0x2a, 0, 0, 0, 0, 9, 0, 0, 1 }, 512, false },
		{ { 0x2a, 0, 0, 0, 0, 20, 0, 0, 1 }, 512, false },
		{ { 0x28, 0, 0, 0, 0, 10, 0, 0, 1 }, 0, false },
		{ { 0x2a, 0, 0, 0, 0, 19, 0, 0, 1 }, 512, true },
		{ { 0x2a, 0, 0, 0, 0, 9, 0, 0, 2 }, 1024, true },
		{ { 0x41, 0, 0, 0, 0, 12, 0, 0, 1 }, 512, true },
		{ { 0x89, [9] = 10, [13] = 0 }, 0, false },
		{ { 0x93, 1, [9] = 15, [13] = 1 }, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		assert_int_equal(populate(1, RANGES({ 10, 10 })), SCSI_GOOD);
		take_token(1);
		assert_int_equal(fx_run(R, c[i].cdb, 16, block, c[i].out, 512),
				 SCSI_GOOD);
		write_using(2, 0, 0, RANGES({ 900, 10 }));
		if (c[i].revokes)
			assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOKEN_REVOKED);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
	}
}

static void test_unmap_revokes_only_what_it_names(void **state)
{
	uint8_t unmap[24] = { 0, 22, 0, 16 };

	(void)state;
	assert_int_equal(populate(1, RANGES({ 10, 10 })), SCSI_GOOD);
	take_token(1);
	put_be64(unmap + 8, 20);
	put_be32(unmap + 16, 4);
	assert_int_equal(CMD(24, 0, unmap, 0x42, 0, 0, 0, 0, 0, 0, 0, 24),
			 SCSI_GOOD);
	assert_int_equal(write_using(2, 0, 0, RANGES({ 900, 10 })), SCSI_GOOD);
	put_be64(unmap + 8, 19);
	assert_int_equal(CMD(24, 0, unmap, 0x42, 0, 0, 0, 0, 0, 0, 0, 24),
			 SCSI_GOOD);
	write_using(2, 0, 0, RANGES({ 900, 10 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOKEN_REVOKED);
}

static void test_token_expires_is_used_up_or_unknown(void **state)
{
	(void)state;
	assert_int_equal(populate(1, RANGES({ 10, 10 })), SCSI_GOOD);
	take_token(1);
	/* Each use starts the inactivity timeout again. */
	clock_ms += 299000;
	assert_int_equal(write_using(2, 0, 0, RANGES({ 900, 10 })), SCSI_GOOD);
	clock_ms += 299000;
	assert_int_equal(write_using(2, 0, 0, RANGES({ 900, 10 })), SCSI_GOOD);
	clock_ms += 301000;
	write_using(2, 0, 0, RANGES({ 900, 10 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOKEN_EXPIRED);
	/* DEL_TKN */
	assert_int_equal(populate(1, RANGES({ 10, 10 })), SCSI_GOOD);
	take_token(1);
	assert_int_equal(write_using(2, 0, 2, RANGES({ 900, 10 })), SCSI_GOOD);
	write_using(2, 0, 0, RANGES({ 900, 10 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOKEN_REVOKED);
	/* Each bit of the token is inverted. */
	assert_int_equal(populate(1, RANGES({ 10, 10 })), SCSI_GOOD);
	take_token(1);
	for (unsigned byte = 0; byte < 512; byte += 5) {
		token[byte] ^= 0x10;
		write_using(2, 0, 0, RANGES({ 900, 10 }));
		assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
		token[byte] ^= 0x10;
	}
	assert_int_equal(write_using(2, 0, 0, RANGES({ 900, 10 })), SCSI_GOOD);
}

static void test_token_of_zeros_spc4_5_17_6_4(void **state)
{
	(void)state;
	memset(token, 0, sizeof(token));
	put_be32(token, 0xffff0001);
	put_be16(token + 6, 0x1f8);
	assert_int_equal(write_using(3, 0, 0, RANGES({ 4, 3 }, { 1000, 24 })),
			 SCSI_GOOD);
	assert_int_not_equal(R->medium[4 * 512 - 1], 0);
	for (size_t i = 4 * 512; i < 7 * 512; i++)
		assert_int_equal(R->medium[i], 0);
	assert_int_equal(R->medium[1024 * 512 - 1], 0);
	assert_int_equal(ask(3), SCSI_GOOD);
	assert_int_equal(get_be64(R->in + 16), 27);
}

/* A unit whose backstore fails, or waits, during a WRITE USING TOKEN of
 * zeros. */
static void open_store(struct bs *store)
{
	fx_close(R);
	memset(R, 0, sizeof(*R));
	R->wall_ms = fake_clock;
	R->random = fake_random;
	fx_open(R, store, false);
	fx_take_attentions(R);
	lun = 0;
	memset(token, 0, sizeof(token));
	put_be32(token, 0xffff0001);
	token[6] = 0x01;
	token[7] = 0xf8;
}

static struct bs *plain_ram(void)
{
	void *m = calloc(FX_BLOCKS, FX_BLOCK);

	return bs_ram_new("ram:f", m, FX_BLOCKS * FX_BLOCK, FX_BLOCK, free, m);
}

/* SPC-4 §6.24: the status of the copy with its sense data, padded. */
static void test_sense_of_one_that_failed_spc4_6_26(void **state)
{
	(void)state;
	open_store(bs_fault_new(plain_ram(), BIT(BS_ZERO), 1, 0, ERR_MEDIUM));
	write_using(3, 0, 0, RANGES({ 0, 4 }));
	assert_check(SENSE_COPY_ABORTED, ASC_THIRD_PARTY_DEVICE_FAILURE);
	assert_int_equal(ask(3), SCSI_GOOD);
	assert_int_equal(R->in_len, 32 + 20 + 4);
	assert_int_equal(get_be32(R->in), 32 + 20);
	assert_int_equal(R->in[4], 0x11);
	assert_int_equal(R->in[5], 0x02);
	assert_int_equal(get_be32(R->in + 8), 0xfffffffe);
	assert_int_equal(R->in[12], SCSI_CHECK_CONDITION);
	assert_int_equal(R->in[13], 20);
	assert_int_equal(R->in[14], 18);
	assert_int_equal(get_be64(R->in + 16), 0);
	assert_int_equal(R->in[32], 0x70);
	assert_int_equal(R->in[32 + 2], SENSE_COPY_ABORTED);
	assert_int_equal(get_be16(R->in + 32 + 12),
			 ASC_THIRD_PARTY_DEVICE_FAILURE);
	assert_int_equal(get_be32(R->in + 32 + 20), 0);
}

/* Each value of 32 bits is a list identifier: the second command replaces the
 * result of the first one. */
static void test_largest_list_identifier(void **state)
{
	uint8_t first[512];

	(void)state;
	assert_int_equal(populate(UINT32_MAX, RANGES({ 0, 4 })), SCSI_GOOD);
	take_token(UINT32_MAX);
	memcpy(first, token, sizeof(first));
	assert_int_equal(populate(UINT32_MAX, RANGES({ 0, 8 })), SCSI_GOOD);
	take_token(UINT32_MAX);
	assert_memory_not_equal(first, token, sizeof(first));
}

static void test_status_of_an_aborted_copy_spc4_6_24(void **state)
{
	struct bs *hold = bs_hold_new(plain_ram());
	uint8_t cdb[16] = { 0x83, 0x11, [9] = 4 };
	uint32_t len;

	(void)state;
	open_store(hold);
	memset(list, 0, sizeof(list));
	memcpy(list + 16, token, 512);
	len = put_ranges(536, RANGES({ 0, 4 }));
	put_be32(cdb + 10, len);
	fx_begin(R, cdb, 16, len, 0);
	assert_int_equal(fx_execute(R, list), -1);
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	bs_hold_release(hold, 1);
	assert_true(R->released);
	dev_task_end(&R->task);
	assert_int_equal(ask(4), SCSI_GOOD);
	assert_int_equal(R->in_len, 36);
	assert_int_equal(R->in[5], 0x60);
	assert_int_equal(R->in[12], SCSI_TASK_ABORTED);
	assert_int_equal(R->in[14], 0);
}

static void test_bad_lists(void **state)
{
	uint32_t len;

	(void)state;
	memset(list, 0, sizeof(list));
	len = put_ranges(16, RANGES({ 0, 1 }, { 5, 1 }));
	for (uint32_t n = 1; n < len; n++) {
		send_list(0x10, 1, n);
		assert_check(SENSE_ILLEGAL_REQUEST,
			     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	assert_int_equal(send_list(0x10, 1, 0), SCSI_GOOD);
	populate(1, RANGES({ 0, 4 }, { 3, 2 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 32);
	populate(1, RANGES({ 0, 4 }, { 1023, 2 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_int_equal(R->sense.info, 1024);
	put_be32(list + 4, 3601);
	send_list(0x10, 1, 48);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 4);
	/* a token type that would survive a restart */
	populate(1, RANGES({ 0, 4 }));
	list[2] = 0x02;
	put_be32(list + 8, 0x00800002);
	send_list(0x10, 1, 32);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 8);
	/* after the end of the token */
	assert_int_equal(populate(1, RANGES({ 0, 4 })), SCSI_GOOD);
	take_token(1);
	write_using(2, 5, 0, RANGES({ 900, 1 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	memset(list, 0, 536);
	len = put_ranges(536, RANGES({ 0, 1 }));
	for (uint32_t n = 1; n < len; n += 11) {
		send_list(0x11, 1, n);
		assert_check(SENSE_ILLEGAL_REQUEST,
			     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	ask(99);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* The longest list is accepted; one byte more is refused. */
static void test_longest_lists(void **state)
{
	struct range r[33];

	(void)state;
	for (unsigned i = 0; i < 33; i++)
		r[i] = (struct range){ 2 * i, 1 };
	assert_int_equal(populate(1, r, 32), SCSI_GOOD);
	take_token(1);
	for (unsigned i = 0; i < 33; i++)
		r[i].lba += 512;
	assert_int_equal(write_using(2, 0, 0, r, 32), SCSI_GOOD);
	for (unsigned i = 0; i < 32; i++)
		assert_memory_equal(R->medium + (512 + 2 * i) * FX_BLOCK,
				    R->medium + 2 * i * FX_BLOCK, FX_BLOCK);
	assert_int_equal(send_list(0x11, 2, 536 + 32 * 16), SCSI_GOOD);
	send_list(0x11, 2, 536 + 32 * 16 + 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
	populate(1, r, 33);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 14);
}

/* A unit holds its share of tokens; new tokens replace the oldest. */
static void test_many_tokens(void **state)
{
	uint8_t first[512];

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(populate(i, RANGES({ i, 1 })), SCSI_GOOD);
		take_token(i);
		if (i == 0)
			memcpy(first, token, 512);
	}
	assert_int_equal(write_using(500, 0, 0, RANGES({ 900, 1 })), SCSI_GOOD);
	memcpy(token, first, 512);
	write_using(501, 0, 0, RANGES({ 900, 1 }));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_TOKEN_UNKNOWN);
}

/* An initiator that makes many tokens replaces only its own tokens. */
static void test_many_tokens_of_one_initiator(void **state)
{
	(void)state;
	assert_int_equal(populate(1, &(struct range){ 0, 8 }, 1), SCSI_GOOD);
	take_token(1);
	fx_swap(R);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(populate(i, &(struct range){ 8, 8 }, 1),
				 SCSI_GOOD);
	fx_swap(R);
	assert_int_equal(write_using(2, 0, 0, &(struct range){ 100, 8 }, 1),
			 SCSI_GOOD);
}

/* VPD 8Fh lists the supported tokens and limits. */
static void test_limits_are_in_the_page_spc4_7_8_17(void **state)
{
	const uint8_t *p, *end;
	bool limits = false, commands = false;

	(void)state;
	assert_int_equal(CMD(0, 1024, NULL, 0x12, 1, 0x8f, 4, 0), SCSI_GOOD);
	end = R->in + R->in_len;
	for (p = R->in + 4; p < end; p += 4 + get_be16(p + 2)) {
		if (get_be16(p) == 0) {
			limits = true;
			assert_int_equal(get_be16(p + 2), 32);
			assert_int_equal(get_be16(p + 10), 32);
			assert_int_equal(get_be64(p + 20), (256u << 20) / 512);
		}
		if (get_be16(p) == 1)
			commands = memchr(p + 5, 0x11, p[4]) != NULL;
	}
	assert_true(limits && commands);
	assert_ptr_equal(p, end);
}

#define C(name) \
 cmocka_unit_test_setup_teardown(name, open_tokens, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(test_token_moves_blocks_in_pieces_sbc3_5_46),
		C(test_token_to_a_unit_of_other_blocks),
		C(test_largest_list_identifier),
		C(test_write_revokes_the_token),
		C(test_unmap_revokes_only_what_it_names),
		C(test_token_expires_is_used_up_or_unknown),
		C(test_token_of_zeros_spc4_5_17_6_4),
		C(test_sense_of_one_that_failed_spc4_6_26),
		C(test_status_of_an_aborted_copy_spc4_6_24),
		C(test_bad_lists),
		C(test_longest_lists),
		C(test_many_tokens),
		C(test_many_tokens_of_one_initiator),
		C(test_limits_are_in_the_page_spc4_7_8_17),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
