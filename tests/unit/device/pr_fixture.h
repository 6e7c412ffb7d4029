/* SPDX-License-Identifier: BSD-2-Clause */
/* pr_fixture.h: PERSISTENT RESERVE IN and OUT by initiators on three workers. */
#ifndef TESTS_PR_FIXTURE_H
#define TESTS_PR_FIXTURE_H

#include "three.h"

#define KA 0xa0a0a0a0a0a0a0a0ull
#define KB 0xb0b0b0b0b0b0b0b0ull
#define KC 0xc0c0c0c0c0c0c0c0ull

static const uint64_t key_of[] = { KA, KB, KC };
static const uint8_t types[] = { 1, 3, 5, 6, 7, 8 };

/* A PERSISTENT RESERVE OUT with the parameter list `list`. */
static inline int out_list(unsigned who, uint8_t sa, uint8_t type,
			   const void *list, uint32_t len)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, sa, type };

	put_be32(cdb + 5, len);
	return three_run(who, cdb, list, len, 0);
}

static inline int out(unsigned who, uint8_t sa, uint8_t type, uint64_t key,
		      uint64_t sa_key, uint8_t flags)
{
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	list[20] = flags;
	return out_list(who, sa, type, list, 24);
}

static inline int reg(unsigned who)
{
	return out(who, SCSI_PROUT_REGISTER, 0, 0, key_of[who], 0);
}

static inline int reserve(unsigned who, uint8_t type)
{
	return out(who, SCSI_PROUT_RESERVE, type, key_of[who], 0, 0);
}

static inline int release(unsigned who, uint8_t type)
{
	return out(who, SCSI_PROUT_RELEASE, type, key_of[who], 0, 0);
}

static inline int clear(unsigned who)
{
	return out(who, SCSI_PROUT_CLEAR, 0, key_of[who], 0, 0);
}

static inline int preempt(unsigned who, uint8_t type, uint64_t sa_key)
{
	return out(who, SCSI_PROUT_PREEMPT, type, key_of[who], sa_key, 0);
}

static const uint8_t *in(unsigned who, uint8_t sa)
{
	assert_int_equal(RUN(who, 60000, SCSI_PERSISTENT_RESERVE_IN, sa, 0, 0,
			     0, 0, 0, 0xea, 0x60),
			 SCSI_GOOD);
	return three.i[who].in;
}

static inline uint32_t generation(void)
{
	return get_be32(in(A, SCSI_PRIN_READ_KEYS));
}

static inline void expect_keys(unsigned n, const uint64_t *keys)
{
	const uint8_t *p = in(C, SCSI_PRIN_READ_KEYS);

	assert_int_equal(get_be32(p + 4), 8 * n);
	for (unsigned i = 0; i < n; i++)
		assert_true(get_be64(p + 8 + 8u * i) == keys[i]);
}

#define EXPECT_KEYS(...)                              \
 expect_keys(sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, \
	     (const uint64_t[]){ __VA_ARGS__ })

/* type 0: no reservation */
static inline void expect_reservation(uint8_t type, uint64_t key)
{
	const uint8_t *p = in(C, SCSI_PRIN_READ_RESERVATION);

	assert_int_equal(get_be32(p + 4), type ? 16 : 0);
	if (!type)
		return;
	assert_true(get_be64(p + 8) == key);
	assert_int_equal(p[21], type);
}

static inline int read_block(unsigned who)
{
	return RUN(who, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
}

static inline int write_block(unsigned who)
{
	static const uint8_t block[512];

	return three_run(who, (const uint8_t[16]){ SCSI_WRITE_10, [8] = 1 },
			 block, 512, 0);
}

static inline void expect_bad_list(unsigned who, uint16_t byte)
{
	expect_sense(who, SENSE_ILLEGAL_REQUEST,
		     ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_true(three.i[who].sense.has_field);
	assert_int_equal(three.i[who].sense.field, byte);
}

/* ---- registrations ---- */

#endif
