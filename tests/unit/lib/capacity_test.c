/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_test.c: iser_read_capacity and units of all types: which command it
 * sends, and which parts of the answer it uses. block.c and unit_type.c alone:
 * the test stands in for the session.
 */
#include <string.h>

#include "cmocka_all.h"
#include "fake_message.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"

enum answer {
	REFUSED,
	GOOD,
	NOT_READY,
	LOST
};

/* The unit. */
static struct {
	uint8_t type;
	enum answer ten, sixteen;
	uint32_t last10, block10, block16;
	uint64_t last16;
	uint32_t comes; /* bytes of the answer to READ CAPACITY(16) */
	uint32_t type_comes;
	uint8_t asked[32]; /* operation codes */
	unsigned nasked;
} unit;

/* ---- the functions that block.c calls ---- */

bool lib_may_be_iser(const struct iser_session *s)
{
	(void)s;
	return false;
}

void lib_guard_note(struct iser_session *s, int lun,
		    const struct iser_capacity *c)
{
	(void)s;
	(void)lun;
	(void)c;
}

static int end(struct iser_io *io, enum answer a)
{
	static const struct scsi_sense senses[] = {
		[REFUSED] = { .key = SENSE_ILLEGAL_REQUEST,
			      .asc = ASC_INVALID_OPCODE },
		[NOT_READY] = { .key = SENSE_NOT_READY,
				.asc = ASC_NO_MEDIUM_TRAY_OPEN },
	};

	if (a == GOOD && io->transferred < io->iov->iov_len && !io->short_ok)
		return io->err = ISER_E_SHORT;
	if (a == GOOD)
		return 0;
	if (a == LOST)
		return io->err = ISER_E_CLOSED;
	io->status = 0x02; /* CHECK CONDITION */
	io->sense_len =
		(uint16_t)scsi_sense_build(&senses[a], false, io->sense);
	return io->err = ISER_E_SCSI;
}

int iser_run(struct iser_session *s, struct iser_io *io)
{
	uint8_t *p = io->iov->iov_base;

	(void)s;
	io->err = 0;
	io->transferred = (uint32_t)io->iov->iov_len;
	assert_true(unit.nasked < sizeof(unit.asked));
	unit.asked[unit.nasked++] = io->cdb[0];
	switch (io->cdb[0]) {
	case SCSI_INQUIRY:
		assert_int_equal(io->cdb_len, 6);
		p[0] = unit.type;
		io->transferred = unit.type_comes;
		return 0;
	case SCSI_READ_CAPACITY_10:
		assert_int_equal(io->cdb_len, 10);
		assert_int_equal(io->iov->iov_len, 8);
		put_be32(p, unit.last10);
		put_be32(p + 4, unit.block10);
		return end(io, unit.ten);
	case SCSI_SERVICE_ACTION_IN_16:
		assert_int_equal(io->cdb_len, 16);
		assert_int_equal(get_be32(io->cdb + 10), 32);
		put_be64(p, unit.last16);
		put_be32(p + 8, unit.block16);
		io->transferred = unit.comes;
		p[13] = 3;
		p[14] = 0xc0;
		return end(io, unit.sixteen);
	default:
		fail();
		return 0;
	}
}

/* ---- tests ---- */

static struct iser_session session;

static int ask(struct iser_capacity *c)
{
	message[0] = '\0';
	unit.nasked = 0;
	session.typed.is_known = false;
	return iser_read_capacity(&session, 0, c);
}

/* The unit got an INQUIRY, then these commands. */
static void assert_asked(uint8_t one, uint8_t two)
{
	assert_int_equal(unit.asked[0], SCSI_INQUIRY);
	assert_int_equal(unit.nasked, 1 + (one != 0) + (two != 0));
	if (one)
		assert_int_equal(unit.asked[1], one);
	if (two)
		assert_int_equal(unit.asked[2], two);
}

static int new_unit(void **state)
{
	(void)state;
	memset(&unit, 0, sizeof(unit));
	unit.ten = unit.sixteen = GOOD;
	unit.last10 = 99;
	unit.block10 = 2048;
	unit.last16 = (5ull << 32) - 1;
	unit.block16 = 512;
	unit.comes = 32;
	unit.type_comes = 36;
	return 0;
}

static void test_disk_sbc3_5_16(void **state)
{
	struct iser_capacity c;

	(void)state;
	assert_int_equal(ask(&c), 0);
	assert_asked(0x9e, 0);
	assert_int_equal(c.blocks, 5ull << 32);
	assert_int_equal(c.block_size, 512);
	assert_int_equal(c.physical_block_size, 4096);
	assert_true(c.thin && c.reads_zeros);
}

static void test_disk_of_old_sbc2(void **state)
{
	struct iser_capacity c;

	(void)state;
	unit.sixteen = REFUSED;
	assert_int_equal(ask(&c), 0);
	assert_asked(0x9e, 0x25);
	assert_int_equal(c.blocks, 100);
	assert_int_equal(c.block_size, 2048);
	assert_int_equal(c.physical_block_size, 2048);
	assert_false(c.thin || c.reads_zeros);
	unit.ten = REFUSED;
	assert_int_equal(ask(&c), ISER_E_SCSI);
}

/* FFFFFFFFh means that the unit has more blocks (SBC-3 §5.15.2): without READ
 * CAPACITY(16) their number is not known, and a copy of 2^32 blocks would lose the
 * rest. */
static void test_more_blocks_than_ten_can_tell(void **state)
{
	struct iser_capacity c;

	(void)state;
	unit.sixteen = REFUSED;
	unit.last10 = UINT32_MAX;
	assert_int_equal(ask(&c), ISER_E_PROTOCOL);
	assert_asked(0x9e, 0x25);
	assert_non_null(strstr(message, "FFFFFFFFh"));
	assert_int_equal(c.blocks, 0);
	unit.type = 0x05;
	assert_int_equal(ask(&c), ISER_E_PROTOCOL);
	assert_asked(0x25, 0x9e);
	unit.last10 = UINT32_MAX - 1;
	assert_int_equal(ask(&c), 0);
	assert_int_equal(c.blocks, UINT32_MAX);
	assert_int_equal(c.bytes, UINT32_MAX * 2048ull);
}

/* SBC-3 §5.16.2 allows any number of blocks; an offset in bytes does not: 2^64 - 1
 * as the last block would wrap to 0 blocks, 2^55 blocks of 512 to 0 bytes. */
static void test_capacities_that_do_not_fit(void **state)
{
	static const struct {
		uint64_t last;
		uint32_t block;
		int err;
	} cases[] = {
		{ UINT64_MAX, 512, ISER_E_PROTOCOL },
		{ UINT64_MAX - 1, 512, ISER_E_PROTOCOL },
		{ (1ull << 55) - 1, 512, ISER_E_PROTOCOL },
		{ 1ull << 55, 512, ISER_E_PROTOCOL },
		{ (1ull << 54) - 1, 512, ISER_E_PROTOCOL },
		{ (1ull << 54) - 2, 512, 0 },
		{ (1ull << 47) - 1, 65536, ISER_E_PROTOCOL },
		{ (1ull << 47) - 2, 65536, 0 },
		{ 0, 512, 0 },
		{ 7, 0, ISER_E_PROTOCOL },
		{ 7, 256, ISER_E_PROTOCOL },
		{ 7, 513, ISER_E_PROTOCOL },
		{ 7, 131072, ISER_E_PROTOCOL },
	};
	struct iser_capacity c;
	char said[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unit.last16 = cases[i].last;
		unit.block16 = cases[i].block;
		assert_int_equal(ask(&c), cases[i].err);
		if (!cases[i].err) {
			assert_int_equal(c.blocks, cases[i].last + 1);
			assert_int_equal(c.bytes, c.blocks * cases[i].block);
			assert_true(c.bytes <= INT64_MAX);
			continue;
		}
		assert_int_equal(c.bytes, 0);
		snprintf(said, sizeof(said), "blocks of %u bytes",
			 cases[i].block);
		if (cases[i].last > 7)
			snprintf(said, sizeof(said), "%llu as its last block",
				 (unsigned long long)cases[i].last);
		assert_non_null(strstr(message, said));
	}
}

/* Only bytes that came are used: 12 bytes have the size, the rest is optional.
 * Fewer are an error, and so are INQUIRY data without a byte. */
static void test_short_answers(void **state)
{
	struct iser_capacity c;
	uint8_t inq[36];

	(void)state;
	unit.comes = 12;
	assert_int_equal(ask(&c), 0);
	assert_int_equal(c.blocks, 5ull << 32);
	assert_int_equal(c.physical_block_size, 512);
	assert_false(c.thin || c.reads_zeros);
	for (unit.comes = 0; unit.comes < 12; unit.comes++) {
		assert_int_equal(ask(&c), ISER_E_SHORT);
		assert_int_equal(c.blocks, 0);
	}
	unit.type_comes = 0;
	unit.type = 0x05;
	assert_int_equal(ask(&c), ISER_E_SHORT);
	assert_int_equal(iser_inquiry(&session, 0, -1, inq, 36), ISER_E_SHORT);
	assert_int_equal(inq[0], 0);
	unit.type_comes = 1;
	assert_int_equal(iser_inquiry(&session, 0, -1, inq, 36), 1);
}

static void test_other_failures_are_not_asked_again(void **state)
{
	static const struct {
		enum answer answer;
		int err;
	} cases[] = { { NOT_READY, ISER_E_SCSI }, { LOST, ISER_E_CLOSED } };
	struct iser_capacity c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unit.sixteen = cases[i].answer;
		assert_int_equal(ask(&c), cases[i].err);
		assert_asked(0x9e, 0);
	}
}

static void test_cd_mmc6_6_24(void **state)
{
	struct iser_capacity c;

	(void)state;
	unit.type = 0x05;
	unit.sixteen = REFUSED;
	assert_int_equal(ask(&c), 0);
	assert_asked(0x25, 0);
	assert_int_equal(c.blocks, 100);
	assert_int_equal(c.block_size, 2048);
	unit.ten = NOT_READY;
	assert_int_equal(ask(&c), ISER_E_SCSI);
	assert_asked(0x25, 0);
	/* more blocks than READ CAPACITY(10) can express: (16), if supported */
	unit.ten = GOOD;
	unit.last10 = UINT32_MAX;
	unit.sixteen = GOOD;
	assert_int_equal(ask(&c), 0);
	assert_asked(0x25, 0x9e);
	assert_int_equal(c.blocks, 5ull << 32);
}

/* SPC-4 table 144 */
static void test_types_without_capacity(void **state)
{
	static const uint8_t with[] = { 0x00, 0x04, 0x05, 0x07, 0x0e, 0x14 };
	struct iser_capacity c;

	(void)state;
	for (uint8_t type = 0; type < 0x1f; type++) {
		unit.type = type;
		if (memchr(with, type, sizeof(with))) {
			assert_int_equal(ask(&c), 0);
			continue;
		}
		assert_int_equal(ask(&c), ISER_E_UNSUPPORTED);
		assert_asked(0, 0);
		assert_non_null(strstr(message, iser_device_type(type)));
	}
	/* no unit at this LUN: the error of the command is reported */
	unit.type = 0x7f;
	unit.ten = unit.sixteen = REFUSED;
	assert_int_equal(ask(&c), ISER_E_SCSI);
}

/* The session asks for INQUIRY data once, until the target reports that they have
 * changed (SPC-4 §5.14: 3Fh/03h, INQUIRY DATA HAS CHANGED). */
static void test_type_is_asked_once(void **state)
{
	static const struct scsi_sense news[] = {
		{ .key = SENSE_UNIT_ATTENTION, .asc = ASC_POWER_ON },
		{ .key = SENSE_ILLEGAL_REQUEST, .asc = 0x3f03 },
		{ .key = SENSE_UNIT_ATTENTION, .asc = 0x3f03 },
	};
	struct iser_io io = { .err = ISER_E_SCSI };
	struct iser_capacity c;
	uint8_t inq[36];

	(void)state;
	assert_int_equal(ask(&c), 0);
	unit.nasked = 0;
	assert_int_equal(iser_read_capacity(&session, 0, &c), 0);
	assert_int_equal(unit.nasked, 1);
	assert_int_equal(unit.asked[0], 0x9e);
	assert_int_equal(c.blocks, 5ull << 32);
	for (size_t i = 0; i < ARRAY_LEN(news); i++) {
		unit.nasked = 0;
		io.sense_len =
			(uint16_t)scsi_sense_build(&news[i], false, io.sense);
		lib_type_news(&session, &io);
		assert_int_equal(iser_read_capacity(&session, 0, &c), 0);
		assert_int_equal(unit.nasked, i == 2 ? 2 : 1);
	}
	/* another unit; and an INQUIRY of the caller */
	unit.nasked = 0;
	assert_int_equal(iser_read_capacity(&session, 1, &c), 0);
	assert_asked(0x9e, 0);
	unit.type = 0x05;
	assert_int_equal(iser_inquiry(&session, 0, -1, inq, 36), 36);
	unit.nasked = 0;
	assert_int_equal(iser_read_capacity(&session, 0, &c), 0);
	assert_int_equal(unit.nasked, 1);
	assert_int_equal(unit.asked[0], 0x25);
}

/* The answer for a LUN without a unit is not kept: a unit may be added later. */
static void test_no_unit_is_not_remembered(void **state)
{
	struct iser_capacity c;

	(void)state;
	unit.type = 0x7f;
	unit.ten = unit.sixteen = REFUSED;
	assert_int_equal(ask(&c), ISER_E_SCSI);
	unit.type = 0x05;
	unit.ten = GOOD;
	unit.nasked = 0;
	assert_int_equal(iser_read_capacity(&session, 0, &c), 0);
	assert_asked(0x25, 0);
}

static void test_blocks_that_make_no_sense(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 256, 2352, 131072, UINT32_MAX };
	struct iser_capacity c;

	(void)state;
	unit.type = 0x05;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		unit.block10 = sizes[i];
		assert_int_equal(ask(&c), ISER_E_PROTOCOL);
	}
}

#define T(name) cmocka_unit_test_setup(name, new_unit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_disk_sbc3_5_16),
		T(test_disk_of_old_sbc2),
		T(test_other_failures_are_not_asked_again),
		T(test_cd_mmc6_6_24),
		T(test_types_without_capacity),
		T(test_type_is_asked_once),
		T(test_no_unit_is_not_remembered),
		T(test_blocks_that_make_no_sense),
		T(test_more_blocks_than_ten_can_tell),
		T(test_capacities_that_do_not_fit),
		T(test_short_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
