/* SPDX-License-Identifier: BSD-2-Clause */
/* protect_test.c: protection information of types 1, 2 and 3 (SBC-3 §4.22). */
#include "base/pi.h"
#include "dev_case.h"
#include "device/primary/mode.h"
#include "device/unit/names.h"

#define WIRE (FX_BLOCK + PI_LEN)

static uint8_t wire[64 * WIRE];

/* kept returns the protection information of a block in the form of the
 * wire. */
static const uint8_t *kept(uint64_t lba)
{
	static uint8_t pi[PI_LEN];

	for (unsigned i = 0; i < PI_LEN; i++)
		pi[i] = (uint8_t)~R->pi[lba * PI_LEN + i];
	return pi;
}

static void assert_kept(uint64_t lba, uint16_t guard, uint16_t app,
			uint32_t ref)
{
	const uint8_t *pi = kept(lba);

	assert_int_equal(get_be16(pi), guard);
	assert_int_equal(get_be16(pi + 2), app);
	assert_int_equal(get_be32(pi + 4), ref);
}

static void assert_none(uint64_t lba)
{
	assert_kept(lba, 0xffff, 0xffff, 0xffffffff);
}

/* fill makes n blocks with protection information for the wire. */
static uint32_t fill(unsigned n, uint16_t app, uint32_t ref)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *p = wire + i * WIRE;

		for (unsigned k = 0; k < FX_BLOCK; k++)
			p[k] = (uint8_t)(k * 7 + i * 13 + ref);
		pi_put(p + FX_BLOCK, pi_guard(p, FX_BLOCK), app, ref + i);
	}
	return n * WIRE;
}

static int rw10(uint8_t op, uint8_t flags, uint8_t lba, uint8_t n, uint32_t out,
		uint32_t in)
{
	return CMD(out, in, wire, op, flags, 0, 0, 0, lba, 0, 0, n);
}

static int write_pi(uint8_t field, uint8_t lba, uint8_t n)
{
	return rw10(SCSI_WRITE_10, (uint8_t)(field << 5), lba, n, n * WIRE, 0);
}

static int read_pi(uint8_t field, uint8_t lba, uint8_t n)
{
	return rw10(SCSI_READ_10, (uint8_t)(field << 5), lba, n, 0, n * WIRE);
}

static int cmd32(uint16_t sa, uint8_t flags, uint8_t lba, uint32_t ref,
		 uint16_t app, uint16_t mask, uint8_t n, uint32_t out,
		 uint32_t in)
{
	uint8_t cdb[32] = {
		SCSI_VARIABLE_LENGTH, [7] = 24, [10] = flags, [19] = lba, [31] = n
	};

	put_be16(cdb + 8, sa);
	put_be32(cdb + 20, ref);
	put_be16(cdb + 24, app);
	put_be16(cdb + 26, mask);
	return fx_run(R, cdb, 32, wire, out, in);
}

static void assert_wrong(uint16_t asc, uint64_t lba)
{
	assert_check(SENSE_ABORTED_COMMAND, asc);
	assert_true(R->sense.has_info);
	assert_int_equal(R->sense.info, lba);
}

static void set_control(bool ato, bool dpicz)
{
	struct dev_lu *lu = dev_lu_get(R->server, 0);
	struct dev_control c = dev_ctl_load(&lu->ctl);

	c.ato = ato;
	c.dpicz = dpicz;
	dev_ctl_store(&lu->ctl, &c);
}

/* ---- the CRC, SBC-3 §4.22.4.3 ---- */

static void test_guard_of_the_standards_examples_sbc3_4_22_4(void **state)
{
	uint8_t data[32];

	(void)state;
	memset(data, 0, sizeof(data));
	assert_int_equal(pi_guard(data, 32), 0x0000);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(pi_guard(data, 32), 0xa293);
	for (unsigned i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	assert_int_equal(pi_guard(data, 32), 0x0224);
	memset(data, 0, sizeof(data));
	data[0] = data[1] = 0xff;
	assert_int_equal(pi_guard(data, 32), 0x21b8);
}

/* ---- without protection information on the wire ---- */

static void test_field_0_makes_and_checks_sbc3_4_22(void **state)
{
	(void)state;
	memset(wire, 0x5a, 2 * FX_BLOCK);
	assert_int_equal(rw10(SCSI_WRITE_10, 0, 5, 2, 2 * FX_BLOCK, 0),
			 SCSI_GOOD);
	assert_kept(5, pi_guard(wire, FX_BLOCK), 0, 5);
	assert_kept(6, pi_guard(wire, FX_BLOCK), 0, 6);
	assert_none(4);
	assert_none(7);
	assert_int_equal(rw10(SCSI_READ_10, 0, 4, 4, 0, 4 * FX_BLOCK),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, 4 * FX_BLOCK);
	assert_memory_equal(R->in + FX_BLOCK, wire, 2 * FX_BLOCK);
	R->medium[6 * FX_BLOCK + 100] ^= 1;
	rw10(SCSI_READ_10, 0, 4, 4, 0, 4 * FX_BLOCK);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 6);
	CMD(0, FX_BLOCK, NULL, SCSI_READ_6, 0, 0, 6, 1);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 6);
	R->medium[6 * FX_BLOCK + 100] ^= 1;
	R->pi[6 * PI_LEN + 7] ^= 1;
	rw10(SCSI_READ_10, 0, 4, 4, 0, 4 * FX_BLOCK);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 6);
	rw10(SCSI_VERIFY_10, 0, 4, 4, 0, 0);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 6);
	/* SPC-4 §7.5.8: DPICZ */
	set_control(false, true);
	assert_int_equal(rw10(SCSI_READ_10, 0, 4, 4, 0, 4 * FX_BLOCK),
			 SCSI_GOOD);
	read_pi(1, 4, 4);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 6);
}

/* §5.32: with types 2 and 3 the reference tag is all ones, and with ATO the
 * application tag is, too. */
static void test_made_tags_by_type_sbc3_5_32(void **state)
{
	(void)state;
	memset(wire, 0x5a, FX_BLOCK);
	assert_int_equal(rw10(SCSI_WRITE_10, 0, 5, 1, FX_BLOCK, 0), SCSI_GOOD);
	assert_kept(5, pi_guard(wire, FX_BLOCK), 0, 0xffffffff);
	R->medium[5 * FX_BLOCK] ^= 1; /* the guard is checked even so */
	rw10(SCSI_READ_10, 0, 5, 1, 0, FX_BLOCK);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 5);
	set_control(true, false);
	assert_int_equal(rw10(SCSI_WRITE_10, 0, 5, 1, FX_BLOCK, 0), SCSI_GOOD);
	assert_kept(5, pi_guard(wire, FX_BLOCK), 0xffff, 0xffffffff);
}

static void test_fields_without_protection_sbc3_5_11(void **state)
{
	static const uint8_t ops[] = { SCSI_READ_10, SCSI_WRITE_10,
				       SCSI_VERIFY_10, SCSI_WRITE_AND_VERIFY_10,
				       SCSI_WRITE_SAME_10 };

	(void)state;
	for (size_t i = 0; i < sizeof(ops); i++)
		for (uint8_t field = 1; field < 8; field++) {
			rw10(ops[i], (uint8_t)(field << 5), 0, 1, WIRE, WIRE);
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(R->sense.field, 1);
			assert_int_equal(R->sense.bit, 7);
		}
	cmd32(SCSI_VL_READ_32, 0, 0, 0, 0, 0, 1, 0, FX_BLOCK);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
}

/* ---- with protection information on the wire ---- */

static void test_blocks_and_information_on_the_wire_sbc3_5_11(void **state)
{
	uint32_t n = fill(3, 0x1234, 20);

	(void)state;
	assert_int_equal(write_pi(1, 20, 3), SCSI_GOOD);
	assert_int_equal(R->task.total.out, n);
	assert_memory_equal(R->medium + 21 * FX_BLOCK, wire + WIRE, FX_BLOCK);
	assert_memory_equal(kept(21), wire + WIRE + FX_BLOCK, PI_LEN);
	assert_int_equal(read_pi(1, 20, 3), SCSI_GOOD);
	assert_int_equal(R->in_len, n);
	assert_memory_equal(R->in, wire, n);
	/* EDTL is shorter, ends inside a block, and is longer. */
	assert_int_equal(rw10(SCSI_READ_10, 0x20, 20, 3, 0, WIRE + 10),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, WIRE + 10);
	assert_int_equal(R->task.total.in, n);
	assert_memory_equal(R->in, wire, WIRE + 10);
	assert_int_equal(rw10(SCSI_READ_10, 0x20, 20, 3, 0, n + 10), SCSI_GOOD);
	assert_int_equal(R->in_len, n);
	/* The unit writes the whole blocks that were sent, and no part of a
	 * block. */
	fill(3, 0x4321, 30);
	rw10(SCSI_WRITE_10, 0x20, 30, 3, 2 * WIRE + 515, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	rw10(SCSI_WRITE_10, 0x20, 30, 3, 2 * FX_BLOCK, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	assert_int_equal(rw10(SCSI_WRITE_10, 0x20, 30, 3, 2 * WIRE, 0),
			 SCSI_GOOD);
	assert_kept(31, get_be16(wire + WIRE + FX_BLOCK), 0x4321, 31);
	assert_none(32);
	assert_int_equal(CMD(WIRE, 0, wire, SCSI_WRITE_16, 0x20, 0, 0, 0, 0, 0,
			     0, 0, 30, 0, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(CMD(0, WIRE, NULL, SCSI_READ_12, 0x20, 0, 0, 0, 30, 0,
			     0, 0, 1),
			 SCSI_GOOD);
	assert_memory_equal(R->in, wire, WIRE);
	/* RDPROTECT permits no check: a damaged block is transferred
	 * unchanged. */
	assert_int_equal(read_pi(1, 32, 1), SCSI_GOOD);
	for (unsigned i = 0; i < PI_LEN; i++)
		assert_int_equal(R->in[FX_BLOCK + i], 0xff);
}

/* GUARD, APP and REF: the values of RDPROTECT and WRPROTECT that check the
 * field, as bits. */
#define GUARD 0x33u
#define TAGS  0x27u

static void test_what_each_wrprotect_checks_sbc3_5_32(void **state)
{
	(void)state;
	for (uint8_t field = 1; field < 6; field++) {
		fill(2, 0, 10);
		wire[WIRE + 3] ^= 0x80;
		write_pi(field, 10, 2);
		if (GUARD >> field & 1)
			assert_wrong(ASC_GUARD_CHECK_FAILED, 11);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
		fill(2, 0, 10);
		wire[WIRE + FX_BLOCK + 7] ^= 1;
		write_pi(field, 10, 2);
		if (TAGS >> field & 1)
			assert_wrong(ASC_REF_TAG_CHECK_FAILED, 11);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
	}
	for (uint8_t field = 6; field < 8; field++) {
		write_pi(field, 10, 2);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	}
}

static void test_a_refused_write_changes_nothing_sbc3_5_32(void **state)
{
	(void)state;
	fill(2, 0, 10);
	wire[WIRE + 3] ^= 0x80;
	write_pi(1, 10, 2);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 11);
	assert_none(10);
	assert_int_equal(R->medium[10 * FX_BLOCK + 1], 0);
}

static void test_what_each_rdprotect_checks_sbc3_5_11(void **state)
{
	(void)state;
	fill(2, 0, 10);
	assert_int_equal(write_pi(1, 10, 2), SCSI_GOOD);
	for (uint8_t field = 0; field < 6; field++) {
		R->medium[11 * FX_BLOCK] ^= 1;
		read_pi(field, 10, 2);
		if (GUARD >> field & 1)
			assert_wrong(ASC_GUARD_CHECK_FAILED, 11);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
		rw10(SCSI_VERIFY_10, (uint8_t)(field << 5), 10, 2, 0, 0);
		assert_int_equal(R->task.status, GUARD >> field & 1
							 ? SCSI_CHECK_CONDITION
							 : SCSI_GOOD);
		R->medium[11 * FX_BLOCK] ^= 1;
		R->pi[11 * PI_LEN + 4] ^= 1;
		read_pi(field, 10, 2);
		if (TAGS >> field & 1)
			assert_wrong(ASC_REF_TAG_CHECK_FAILED, 11);
		else
			assert_int_equal(R->task.status, SCSI_GOOD);
		R->pi[11 * PI_LEN + 4] ^= 1;
	}
	read_pi(6, 10, 2);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* §§4.22.2.3 to 4.22.2.5 */
static void test_tags_that_turn_checking_off_sbc3_4_22_2(void **state)
{
	uint8_t type = DEV_PROTECTION(dev_lu_get(R->server, 0));

	(void)state;
	fill(1, 0xffff, 99);
	wire[0] ^= 1;
	if (type == 3) { /* type 3: both tags disable the check together */
		write_pi(1, 10, 1);
		assert_wrong(ASC_GUARD_CHECK_FAILED, 10);
		put_be32(wire + FX_BLOCK + 4, 0xffffffff);
	}
	assert_int_equal(write_pi(1, 10, 1), SCSI_GOOD);
	assert_int_equal(read_pi(1, 10, 1), SCSI_GOOD);
	assert_int_equal(read_pi(0, 10, 1), SCSI_GOOD);
}

static void test_reference_tags_of_type_3_are_free_sbc3_4_22_2_5(void **state)
{
	(void)state;
	fill(2, 7, 0xdeadbeef);
	assert_int_equal(write_pi(1, 10, 2), SCSI_GOOD);
	assert_int_equal(read_pi(1, 10, 2), SCSI_GOOD);
	assert_memory_equal(R->in, wire, 2 * WIRE);
	assert_int_equal(rw10(SCSI_READ_10, 0, 10, 2, 0, 2 * FX_BLOCK),
			 SCSI_GOOD);
	wire[FX_BLOCK] ^= 1;
	write_pi(1, 10, 2);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 10);
}

/* ---- type 2 and the 32-byte commands ---- */

static void test_type_2_is_for_32_bytes_sbc3_4_22_2_4(void **state)
{
	static const uint8_t ops[] = {
		SCSI_READ_10,	     SCSI_WRITE_10,
		SCSI_VERIFY_10,	     SCSI_WRITE_AND_VERIFY_10,
		SCSI_READ_12,	     SCSI_WRITE_12,
		SCSI_READ_16,	     SCSI_WRITE_16,
		SCSI_VERIFY_16,	     SCSI_WRITE_SAME_16,
		SCSI_ORWRITE_16,     SCSI_COMPARE_AND_WRITE,
		SCSI_WRITE_ATOMIC_16
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ops); i++) {
		rw10(ops[i], 0x20, 0, 1, WIRE, WIRE);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	}
	cmd32(0x0010, 0, 0, 0, 0, 0, 1, 0, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 8);
	CMD(0, 0, NULL, SCSI_VARIABLE_LENGTH, [7] = 24, 0, 9);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
}

static void test_expected_reference_tag_sbc3_5_12(void **state)
{
	(void)state;
	fill(3, 0x11, 0x80000000);
	assert_int_equal(cmd32(SCSI_VL_WRITE_32, 0x20, 40, 0x80000000, 0, 0, 3,
			       3 * WIRE, 0),
			 SCSI_GOOD);
	assert_kept(41, get_be16(wire + WIRE + FX_BLOCK), 0x11, 0x80000001);
	assert_int_equal(cmd32(SCSI_VL_READ_32, 0x20, 40, 0x80000000, 0, 0, 3,
			       0, 3 * WIRE),
			 SCSI_GOOD);
	assert_memory_equal(R->in, wire, 3 * WIRE);
	cmd32(SCSI_VL_READ_32, 0x20, 40, 0x80000001, 0, 0, 3, 0, 3 * WIRE);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 40);
	/* The unit checks the tag without protection information on the wire,
	 * too. */
	cmd32(SCSI_VL_READ_32, 0, 41, 0x80000000, 0, 0, 1, 0, FX_BLOCK);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 41);
	assert_int_equal(cmd32(SCSI_VL_READ_32, 0, 41, 0x80000001, 0, 0, 1, 0,
			       FX_BLOCK),
			 SCSI_GOOD);
	assert_int_equal(R->in_len, FX_BLOCK);
	assert_memory_equal(R->in, wire + WIRE, FX_BLOCK);
	cmd32(SCSI_VL_WRITE_32, 0x20, 40, 7, 0, 0, 3, 3 * WIRE, 0);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 40);
	assert_int_equal(cmd32(SCSI_VL_VERIFY_32, 0x20, 40, 0x80000000, 0, 0, 3,
			       0, 0),
			 SCSI_GOOD);
	cmd32(SCSI_VL_VERIFY_32, 0x20, 40, 1, 0, 0, 3, 0, 0);
	assert_wrong(ASC_REF_TAG_CHECK_FAILED, 40);
	/* A WRITE(10) gives no expected tag, so the unit checks none. */
	assert_int_equal(rw10(SCSI_WRITE_10, 0, 40, 1, FX_BLOCK, 0), SCSI_GOOD);
	assert_int_equal(cmd32(SCSI_VL_READ_32, 0x20, 40, 5, 0, 0, 1, 0, WIRE),
			 SCSI_GOOD);
}

static void test_expected_application_tag_sbc3_5_12(void **state)
{
	(void)state;
	fill(2, 0x1234, 40);
	assert_int_equal(cmd32(SCSI_VL_WRITE_32, 0x20, 40, 40, 0x9999, 0xffff,
			       2, 2 * WIRE, 0),
			 SCSI_GOOD); /* ATO is 0: the tag is not checked */
	set_control(true, false);
	cmd32(SCSI_VL_READ_32, 0x20, 40, 40, 0x9999, 0xffff, 2, 0, 2 * WIRE);
	assert_wrong(ASC_APP_TAG_CHECK_FAILED, 40);
	cmd32(SCSI_VL_WRITE_32, 0x20, 40, 40, 0x9999, 0xffff, 2, 2 * WIRE, 0);
	assert_wrong(ASC_APP_TAG_CHECK_FAILED, 40);
	assert_int_equal(cmd32(SCSI_VL_READ_32, 0x20, 40, 40, 0x1299, 0xff00, 2,
			       0, 2 * WIRE),
			 SCSI_GOOD);
	assert_int_equal(cmd32(SCSI_VL_READ_32, 0x80, 40, 40, 0x9999, 0xffff, 2,
			       0, 2 * WIRE),
			 SCSI_GOOD);
}

static void test_write_and_verify_32_and_write_same_32(void **state)
{
	(void)state;
	fill(2, 3, 100);
	assert_int_equal(cmd32(SCSI_VL_WRITE_AND_VERIFY_32, 0x20, 10, 100, 0, 0,
			       2, 2 * WIRE, 0),
			 SCSI_GOOD);
	assert_kept(11, get_be16(wire + WIRE + FX_BLOCK), 3, 101);
	assert_int_equal(cmd32(SCSI_VL_WRITE_SAME_32, 0x20, 20, 100, 0, 0, 5,
			       WIRE, 0),
			 SCSI_GOOD);
	for (uint8_t i = 0; i < 5; i++) {
		assert_kept(20 + i, get_be16(wire + FX_BLOCK), 3, 100u + i);
		assert_memory_equal(R->medium + (20 + i) * FX_BLOCK, wire,
				    FX_BLOCK);
	}
	assert_int_equal(cmd32(SCSI_VL_WRITE_SAME_32, 0x08, 21, 0, 0, 0, 1,
			       FX_BLOCK, 0),
			 SCSI_GOOD); /* UNMAP */
	assert_none(21);
	assert_int_equal(cmd32(SCSI_VL_WRITE_SAME_32, 0x01, 22, 0, 0, 0, 1, 0,
			       0),
			 SCSI_GOOD); /* NDOB */
	assert_none(22);
}

/* SPC-4 §6.35 */
static void test_reported_with_their_service_actions_spc4_6_35(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 2, 0x7f, 0, 9, 0, 0, 0,
			     64),
			 SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 3);
	assert_int_equal(get_be16(R->in + 2), 32);
	assert_int_equal(R->in[4], 0x7f);
	assert_int_equal(R->in[4 + 7], 24);
	assert_int_equal(get_be16(R->in + 4 + 8), 9);
	assert_int_equal(R->in[4 + 10], 0xf8);
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 2, 0x7f, 1, 9, 0, 0, 0,
			     64),
			 SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 1);
	CMD(0, 64, NULL, 0xa3, 0x0c, 1, 0x7f, 0, 0, 0, 0, 0, 64);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* ---- other commands ---- */

static void test_verify_compares_the_information_sbc3_5_31(void **state)
{
	uint32_t n = fill(3, 5, 10);

	(void)state;
	assert_int_equal(write_pi(1, 10, 3), SCSI_GOOD);
	assert_int_equal(rw10(SCSI_VERIFY_10, 0x22, 10, 3, n, 0), SCSI_GOOD);
	wire[WIRE] ^= 1; /* the data differ, and so does the guard */
	put_be16(wire + WIRE + FX_BLOCK, pi_guard(wire + WIRE, FX_BLOCK));
	rw10(SCSI_VERIFY_10, 0x22, 10, 3, n, 0);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	assert_int_equal(R->sense.info, FX_BLOCK);
	/* Application tags are compared if the application client owns them. */
	fill(3, 6, 10);
	assert_int_equal(rw10(SCSI_VERIFY_10, 0x22, 10, 3, n, 0), SCSI_GOOD);
	set_control(true, false);
	rw10(SCSI_VERIFY_10, 0x22, 10, 3, n, 0);
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	assert_int_equal(rw10(SCSI_VERIFY_10, 0x82, 10, 3, n, 0), SCSI_GOOD);
	/* BYTCHK 11b: one block, whose reference tag increases for each
	 * block. */
	fill(1, 5, 50);
	assert_int_equal(rw10(SCSI_WRITE_SAME_10, 0x20, 50, 4, WIRE, 0),
			 SCSI_GOOD);
	assert_int_equal(rw10(SCSI_VERIFY_10, 0x26, 50, 4, WIRE, 0), SCSI_GOOD);
	wire[9] ^= 1;
	rw10(SCSI_VERIFY_10, 0x26, 50, 4, WIRE, 0);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 50);
}

static void test_write_same_sbc3_5_49(void **state)
{
	uint8_t type = DEV_PROTECTION(dev_lu_get(R->server, 0));
	uint32_t ref = type == 1 ? 30 : 0xabc;

	(void)state;
	fill(1, 0x77, ref);
	assert_int_equal(rw10(SCSI_WRITE_SAME_10, 0x20, 30, 20, WIRE, 0),
			 SCSI_GOOD);
	for (uint8_t i = 0; i < 20; i++)
		assert_kept(30 + i, get_be16(wire + FX_BLOCK), 0x77,
			    type == 3 ? ref : ref + i);
	wire[0] ^= 1;
	rw10(SCSI_WRITE_SAME_10, 0x20, 30, 20, WIRE, 0);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 30);
	/* Without protection information the unit computes it, also for
	 * zeros. */
	memset(wire, 0, FX_BLOCK);
	assert_int_equal(rw10(SCSI_WRITE_SAME_10, 0, 30, 2, FX_BLOCK, 0),
			 SCSI_GOOD);
	assert_kept(31, 0, 0, type == 1 ? 31 : 0xffffffff);
	rw10(SCSI_WRITE_SAME_10, 0x20, 30, 20, FX_BLOCK, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
}

static void test_unmapped_blocks_have_none_sbc3_4_7(void **state)
{
	static const uint8_t list[24] = { 0, 22, 0, 16, [15] = 11, [19] = 2 };

	(void)state;
	fill(4, 0, 10);
	assert_int_equal(write_pi(1, 10, 4), SCSI_GOOD);
	assert_int_equal(CMD(24, 0, list, SCSI_UNMAP, 0, 0, 0, 0, 0, 0, 0, 24),
			 SCSI_GOOD);
	assert_none(11);
	assert_none(12);
	assert_kept(13, get_be16(wire + 3 * WIRE + FX_BLOCK), 0, 13);
	assert_int_equal(read_pi(1, 10, 4), SCSI_GOOD);
	assert_int_equal(R->in[WIRE], 0);
	assert_int_equal(R->in[WIRE + FX_BLOCK], 0xff);
}

static void test_compare_and_write_sbc3_5_2(void **state)
{
	uint8_t first[WIRE];

	(void)state;
	fill(1, 0, 10);
	memcpy(first, wire, WIRE);
	assert_int_equal(write_pi(1, 10, 1), SCSI_GOOD);
	wire[0] ^= 0xff;
	put_be16(wire + FX_BLOCK, pi_guard(wire, FX_BLOCK));
	memcpy(wire + WIRE, wire, WIRE);
	memcpy(wire, first, WIRE);
#define CAW(field) \
 CMD(2 * WIRE, 0, wire, SCSI_COMPARE_AND_WRITE, field, [9] = 10, [13] = 1)
	assert_int_equal(CAW(0x20), SCSI_GOOD);
	assert_memory_equal(kept(10), wire + WIRE + FX_BLOCK, PI_LEN);
	CAW(0x20); /* The block has changed. */
	assert_check(SENSE_MISCOMPARE, ASC_MISCOMPARE_DURING_VERIFY);
	memcpy(wire, wire + WIRE, WIRE);
	wire[WIRE + 5] ^= 1; /* the block to be written is damaged */
	CAW(0x20);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 10);
	assert_int_equal(CMD(2 * FX_BLOCK, 0, wire, SCSI_COMPARE_AND_WRITE,
			     0, [9] = 11, [13] = 1),
			 SCSI_CHECK_CONDITION); /* the blocks differ */
	memset(wire, 0, FX_BLOCK);
	assert_int_equal(CMD(2 * FX_BLOCK, 0, wire, SCSI_COMPARE_AND_WRITE,
			     0, [9] = 11, [13] = 1),
			 SCSI_GOOD);
	assert_kept(11, pi_guard(wire + FX_BLOCK, FX_BLOCK), 0, 11);
}

static void test_orwrite_sbc3_4_28(void **state)
{
	uint32_t n;

	(void)state;
	memset(wire, 0x0f, FX_BLOCK);
	assert_int_equal(rw10(SCSI_WRITE_10, 0, 10, 1, FX_BLOCK, 0), SCSI_GOOD);
	memset(wire, 0x70, FX_BLOCK);
	assert_int_equal(CMD(FX_BLOCK, 0, wire, SCSI_ORWRITE_16,
			     0, [9] = 10, [13] = 1),
			 SCSI_GOOD);
	memset(wire, 0x7f, FX_BLOCK);
	assert_kept(10, pi_guard(wire, FX_BLOCK), 0, 10);
	assert_int_equal(rw10(SCSI_READ_10, 0, 10, 1, 0, FX_BLOCK), SCSI_GOOD);
	assert_memory_equal(R->in, wire, FX_BLOCK);
	n = fill(2, 0x99, 10);
	assert_int_equal(CMD(n, 0, wire, SCSI_ORWRITE_16,
			     0x20, [9] = 10, [13] = 2),
			 SCSI_GOOD);
	assert_kept(10, pi_guard(R->medium + 10 * FX_BLOCK, FX_BLOCK), 0x99,
		    10);
	assert_int_equal(read_pi(1, 10, 2), SCSI_GOOD);
	R->medium[11 * FX_BLOCK] ^= 1; /* the old blocks are checked, too */
	CMD(n, 0, wire, SCSI_ORWRITE_16, 0x20, [9] = 10, [13] = 2);
	assert_wrong(ASC_GUARD_CHECK_FAILED, 11);
}

static void test_extended_copy_of_protected_blocks(void **state)
{
	uint8_t list[76] = { [3] = 32, [11] = 28 };

	(void)state;
	fill(3, 9, 10);
	assert_int_equal(write_pi(1, 10, 3), SCSI_GOOD);
	list[16] = 0xe4;
	dev_lu_put_name(dev_lu_get(R->server, 0), list + 16 + 4);
	list[48] = 0x02;
	put_be16(list + 50, 24);
	put_be16(list + 58, 3);
	put_be64(list + 60, 10);
	put_be64(list + 68, 100);
	assert_int_equal(CMD(76, 0, list, SCSI_EXTENDED_COPY, 0, [13] = 76),
			 SCSI_GOOD);
	assert_memory_equal(R->medium + 101 * FX_BLOCK, wire + WIRE, FX_BLOCK);
	assert_kept(101, get_be16(wire + WIRE + FX_BLOCK), 0, 101);
	R->medium[11 * FX_BLOCK] ^= 1;
	CMD(76, 0, list, SCSI_EXTENDED_COPY, 0, [13] = 76);
	assert_check(SENSE_COPY_ABORTED, ASC_THIRD_PARTY_DEVICE_FAILURE);
}

/* ---- reports about protection; FORMAT UNIT, SANITIZE ---- */

static void assert_says(uint8_t type)
{
	assert_int_equal(CMD(0, 32, NULL, 0x9e, 0x10, [13] = 32), SCSI_GOOD);
	assert_int_equal(R->in[12], type ? (type - 1) << 1 | 1 : 0);
	assert_int_equal(R->in[13] >> 4, 0); /* P_I_EXPONENT */
	assert_int_equal(CMD(0, 96, NULL, SCSI_INQUIRY, 0, 0, 0, 96),
			 SCSI_GOOD);
	assert_int_equal(R->in[5] & 1, 1); /* PROTECT */
	assert_int_equal(CMD(0, 64, NULL, SCSI_INQUIRY, 1, 0x86, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in[4], 0x3f); /* SPT, GRD_, APP_, REF_CHK */
}

static void test_what_the_unit_says_sbc3_5_16(void **state)
{
	(void)state;
	assert_says(DEV_PROTECTION(dev_lu_get(R->server, 0)));
}

static int format(uint8_t info, uint8_t usage)
{
	const uint8_t list[4] = { usage };

	return CMD(4, 0, list, SCSI_FORMAT_UNIT, (uint8_t)(info << 6 | 0x10));
}

/* Both headers, each byte: only the bits about defects may be set. */
static void test_format_unit_lists_sbc3_5_3_2(void **state)
{
	static const uint8_t defects[2] = { 2, 4 }, lengths[2] = { 4, 8 };

	(void)state;
	for (unsigned i = 0; i < 2 * 8 * 8; i++) {
		uint8_t list[8] = { 0 };
		unsigned is_long = i & 1, byte = i / 2 % 8, bit = i / 16;
		unsigned field = byte;
		bool good;

		if (byte >= lengths[is_long])
			continue;
		list[byte] = (uint8_t)(1 << bit);
		good = byte == 0   ? bit > 2
		       : byte == 1 ? bit == 1 || bit > 3
				   : is_long && byte == 2;
		if (byte >= defects[is_long])
			field = defects[is_long];
		CMD(lengths[is_long], 0, list, SCSI_FORMAT_UNIT,
		    is_long ? 0x30 : 0x10);
		if (good) {
			assert_int_equal(R->task.status, SCSI_GOOD);
			continue;
		}
		assert_check(SENSE_ILLEGAL_REQUEST,
			     ASC_INVALID_FIELD_IN_PARAMETERS);
		assert_int_equal(R->sense.field, field);
	}
}

static void test_format_unit_changes_the_type_sbc3_5_3(void **state)
{
	static const struct {
		uint8_t info, usage, type;
	} good[] = { { 3, 0, 2 }, { 3, 1, 3 }, { 0, 0, 0 }, { 2, 0, 1 } };

	(void)state;
	fill(1, 0, 10);
	assert_int_equal(write_pi(1, 10, 1), SCSI_GOOD);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(format(good[i].info, good[i].usage),
				 SCSI_GOOD);
		assert_says(good[i].type);
		assert_none(10);
		fx_swap(R); /* the other nexus gets one attention */
		CMD(0, 0, NULL, SCSI_TEST_UNIT_READY);
		assert_check(SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
		assert_int_equal(CMD(0, 0, NULL, SCSI_TEST_UNIT_READY),
				 SCSI_GOOD);
		assert_int_equal(rw10(SCSI_WRITE_10, 0, 10, 1, FX_BLOCK, 0),
				 SCSI_GOOD);
		assert_int_equal(rw10(SCSI_READ_10, 0, 10, 1, 0, FX_BLOCK),
				 SCSI_GOOD);
		assert_memory_equal(R->in, wire, FX_BLOCK);
	}
	format(1, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	format(0, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	format(2, 1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	format(3, 2);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_says(1);
}

static void test_format_unit_without_protection_sbc3_5_3(void **state)
{
	(void)state;
	format(2, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 1);
	assert_int_equal(format(0, 0), SCSI_GOOD);
}

/* A WRITE whose data arrive after the format has changed. */
static void test_write_across_a_format(void **state)
{
	uint32_t n = fill(1, 0, 10);
	struct dev_lu *lu = dev_lu_get(R->server, 0);

	(void)state;
	assert_int_equal(
		fx_begin(R,
			 (const uint8_t[16]){ SCSI_WRITE_10,
					      0x20, [5] = 10, [8] = 1 },
			 16, n, 0),
		0);
	lu->protection = 3;
	assert_int_equal(fx_execute(R, wire), SCSI_CHECK_CONDITION);
	fx_finish(R);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_none(10);
}

/* SBC-3 §4.11.1: after the overwrite all protection information is FFh. */
static void test_sanitize_overwrite_sbc3_4_11(void **state)
{
	static const uint8_t list[8] = { 1, 0, 0, 4, 1, 2, 3, 4 };

	(void)state;
	fill(1, 0, 10);
	assert_int_equal(write_pi(1, 10, 1), SCSI_GOOD);
	assert_int_equal(CMD(8, 0, list, SCSI_SANITIZE, 1, [8] = 8), SCSI_GOOD);
	assert_none(10);
	assert_int_equal(R->medium[10 * FX_BLOCK + 1], 2);
	assert_int_equal(read_pi(1, 10, 1), SCSI_GOOD);
}

static void test_mode_bits_where_there_is_protection_spc4_7_5_8(void **state)
{
	bool pi = dev_lu_get(R->server, 0)->bs->protection;

	(void)state;
	assert_int_equal(CMD(0, 64, NULL, SCSI_MODE_SENSE_6, 8, 0x4a, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(R->in[4 + 2] & 0x08, pi ? 0x08 : 0); /* DPICZ */
	assert_int_equal(R->in[4 + 5] & 0x80, pi ? 0x80 : 0); /* ATO */
}

#define P(n, name) \
 cmocka_unit_test_setup_teardown(name, open_type_##n, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_guard_of_the_standards_examples_sbc3_4_22_4),
		P(1, test_field_0_makes_and_checks_sbc3_4_22),
		P(2, test_made_tags_by_type_sbc3_5_32),
		P(3, test_made_tags_by_type_sbc3_5_32),
		T(test_fields_without_protection_sbc3_5_11),
		P(1, test_blocks_and_information_on_the_wire_sbc3_5_11),
		P(3, test_blocks_and_information_on_the_wire_sbc3_5_11),
		P(1, test_what_each_wrprotect_checks_sbc3_5_32),
		P(1, test_a_refused_write_changes_nothing_sbc3_5_32),
		P(1, test_what_each_rdprotect_checks_sbc3_5_11),
		P(1, test_tags_that_turn_checking_off_sbc3_4_22_2),
		P(3, test_tags_that_turn_checking_off_sbc3_4_22_2),
		P(3, test_reference_tags_of_type_3_are_free_sbc3_4_22_2_5),
		P(2, test_type_2_is_for_32_bytes_sbc3_4_22_2_4),
		P(2, test_expected_reference_tag_sbc3_5_12),
		P(2, test_expected_application_tag_sbc3_5_12),
		P(2, test_write_and_verify_32_and_write_same_32),
		P(2, test_reported_with_their_service_actions_spc4_6_35),
		P(1, test_verify_compares_the_information_sbc3_5_31),
		P(1, test_write_same_sbc3_5_49),
		P(3, test_write_same_sbc3_5_49),
		P(1, test_unmapped_blocks_have_none_sbc3_4_7),
		P(1, test_compare_and_write_sbc3_5_2),
		P(1, test_orwrite_sbc3_4_28),
		P(1, test_extended_copy_of_protected_blocks),
		P(1, test_what_the_unit_says_sbc3_5_16),
		P(3, test_what_the_unit_says_sbc3_5_16),
		P(1, test_format_unit_lists_sbc3_5_3_2),
		P(1, test_format_unit_changes_the_type_sbc3_5_3),
		T(test_format_unit_without_protection_sbc3_5_3),
		P(1, test_write_across_a_format),
		P(1, test_sanitize_overwrite_sbc3_4_11),
		P(1, test_mode_bits_where_there_is_protection_spc4_7_5_8),
		T(test_mode_bits_where_there_is_protection_spc4_7_5_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
