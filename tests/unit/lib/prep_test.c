/* SPDX-License-Identifier: BSD-2-Clause */
/* prep_test.c: the CDBs of prepared commands, byte for byte, and the parsers of
 * answers at every truncation. */
#include <iser/iser.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

static struct iser_io io;
static struct iser_parameters p;

static int reset(void **state)
{
	(void)state;
	memset(&io, 0, sizeof(io));
	memset(&p, 0, sizeof(p));
	return 0;
}

/* Compares the CDB with hexadecimal text, and the direction. */
static void assert_cdb(const char *hex, enum iser_direction direction)
{
	char text[65] = "";

	for (unsigned i = 0; i < io.cdb_len; i++)
		snprintf(text + 2 * i, 3, "%02x", io.cdb[i]);
	assert_string_equal(text, hex);
	assert_int_equal(io.direction, direction);
	assert_int_equal(io.lun, 5);
}

static void test_cdbs_sbc3_5(void **state)
{
	const struct iser_unmap_range r[2] = {
		{ .lba = 0x123456789a, .blocks = 7 }, { .lba = 1, .blocks = 2 }
	};
	static const uint8_t list[40] = {
		0, 38,	 0,    32,   0,	   0,	 0,	   0,	     0,	      0,
		0, 0x12, 0x34, 0x56, 0x78, 0x9a, [19] = 7, [31] = 1, [35] = 2
	};

	(void)state;
	iser_prep_rw(&io, 5, true, 0x12345678, 9);
	iser_set_fua(&io);
	assert_cdb("2a081234567800000900", ISER_WRITE);
	reset(NULL);
	iser_prep_rw(&io, 5, false, 0x123456789a, 9);
	assert_cdb("8800000000123456789a000000090000", ISER_READ);
	iser_prep_compare_and_write(&io, 5, 0x123456789a, 3);
	iser_set_fua(&io);
	assert_cdb("8908000000123456789a000000030000", ISER_WRITE);
	iser_prep_write_same(&io, 5, 0x123456789a, 0xabcdef01, true);
	assert_cdb("9308000000123456789aabcdef010000", ISER_WRITE);
	iser_prep_flush(&io, 5, 0, 0);
	assert_cdb("35000000000000000000", ISER_NO_DATA);
	iser_prep_flush(&io, 5, 0xfffffffe, 0xffff);
	assert_cdb("3500fffffffe00ffff00", ISER_NO_DATA);
	iser_prep_flush(&io, 5, 0x100000000, 1);
	assert_cdb("91000000000100000000000000010000", ISER_NO_DATA);
	iser_prep_flush(&io, 5, 1, 0x10000);
	assert_cdb("91000000000000000001000100000000", ISER_NO_DATA);
	assert_int_equal(iser_prep_unmap(&io, 5, &p, r, 2), 0);
	assert_cdb("42000000000000002800", ISER_WRITE);
	assert_int_equal(io.iov->iov_len, sizeof(list));
	assert_memory_equal(io.iov->iov_base, list, sizeof(list));
	assert_int_equal(iser_prep_unmap(&io, 5, &p, r, 0), ISER_E_INVALID);
	assert_int_equal(iser_prep_unmap(&io, 5, &p, r, 129), ISER_E_INVALID);
}

static void test_cdbs_of_queries(void **state)
{
	(void)state;
	iser_prep_test_unit_ready(&io, 5);
	assert_cdb("000000000000", ISER_NO_DATA);
	iser_prep_inquiry(&io, 5, -1, &p);
	assert_cdb("12000000ff00", ISER_READ);
	assert_true(io.short_ok && io.iov == &p.iov && io.niov == 1);
	iser_prep_inquiry(&io, 5, 0xb0, &p);
	assert_cdb("1201b000ff00", ISER_READ);
	iser_prep_read_capacity(&io, 5, &p);
	assert_cdb("9e100000000000000000000000200000", ISER_READ);
	iser_prep_lba_status(&io, 5, 0x1122334455, 2, &p);
	assert_cdb("9e120000001122334455000000280000", ISER_READ);
	iser_prep_lba_status(&io, 5, 0, 1000, &p);
	assert_int_equal(p.iov.iov_len, 8 + 64 * 16);
	iser_prep_report_luns(&io, &p);
	io.lun = 5;
	assert_cdb("a00000000000000008080000", ISER_READ);
}

static void test_capacity_at_each_length_sbc3_5_16(void **state)
{
	struct iser_capacity c;

	(void)state;
	iser_prep_read_capacity(&io, 5, &p);
	put_be64(p.data, 99);
	put_be32(p.data + 8, 4096);
	p.data[13] = 1;
	p.data[14] = 0xc0;
	for (unsigned len = 0; len <= 32; len++) {
		io.transferred = len;
		assert_int_equal(iser_parse_capacity(&io, &c),
				 len < 12 ? ISER_E_SHORT : 0);
		if (len < 12)
			continue;
		assert_int_equal(c.bytes, 409600);
		assert_int_equal(c.physical_block_size, len > 13 ? 8192 : 4096);
		assert_int_equal(c.thin && c.reads_zeros, len > 14);
	}
	put_be32(p.data + 8, 520);
	assert_int_equal(iser_parse_capacity(&io, &c), ISER_E_PROTOCOL);
	put_be32(p.data + 8, 512);
	put_be64(p.data, UINT64_MAX);
	assert_int_equal(iser_parse_capacity(&io, &c), ISER_E_PROTOCOL);
}

static void test_luns_at_each_length(void **state)
{
	int luns[4];

	(void)state;
	iser_prep_report_luns(&io, &p);
	put_be32(p.data, 3 * 8);
	put_be16(p.data + 16, 7);
	put_be16(p.data + 24, 0x412c);
	for (unsigned len = 0; len <= 40; len++) {
		int want = len < 8 ? ISER_E_SHORT : MIN((int)(len - 8) / 8, 3);

		io.transferred = len;
		assert_int_equal(iser_parse_luns(&io, luns, 4), want);
	}
	assert_int_equal(luns[1], 7);
	assert_int_equal(luns[2], 300);
	assert_int_equal(iser_parse_luns(&io, luns, 0), 3);
	/* more units than the buffer holds */
	put_be32(p.data, 1000 * 8);
	io.transferred = sizeof(p.data);
	assert_int_equal(iser_parse_luns(&io, luns, 4), 1000);
	/* two levels; a well known unit (SAM-5 §4.7.6.1, §4.7.7.5.1): no number */
	put_be32(p.data, 3 * 8);
	put_be64(p.data + 8, 0x0001000200000000ull);
	put_be64(p.data + 16, 0xc101ull << 48);
	put_be64(p.data + 24, 0x012cull << 48);
	assert_int_equal(iser_parse_luns(&io, luns, 4), 1);
	assert_int_equal(luns[0], 300);
}

static void put_extent(unsigned i, uint64_t lba, uint32_t blocks,
		       uint8_t status)
{
	put_be64(p.data + 8 + 16 * i, lba);
	put_be32(p.data + 16 + 16 * i, blocks);
	p.data[20 + 16 * i] = status;
}

static void test_extents_at_each_length_sbc3_5_4(void **state)
{
	struct iser_extent e[8];

	(void)state;
	iser_prep_lba_status(&io, 5, 100, 8, &p);
	put_be32(p.data, 4 + 3 * 16);
	put_extent(0, 100, 10, 0);
	put_extent(1, 110, 5, 1);
	put_extent(2, 115, 1, 2);
	for (unsigned len = 0; len <= 100; len++) {
		int want = len < 8 ? ISER_E_SHORT : MIN((int)(len - 8) / 16, 3);

		io.transferred = len;
		assert_int_equal(iser_parse_lba_status(&io, e, 8), want);
	}
	assert_true(e[0].mapped && !e[1].mapped && !e[2].mapped);
	assert_int_equal(e[2].lba, 115);
	assert_int_equal(iser_parse_lba_status(&io, e, 2), 2);
	/* a gap, an empty extent, and the end of all addresses end the list */
	put_extent(1, 111, 5, 1);
	assert_int_equal(iser_parse_lba_status(&io, e, 8), 1);
	put_extent(1, 110, 0, 1);
	assert_int_equal(iser_parse_lba_status(&io, e, 8), 1);
	put_be64(io.cdb + 2, UINT64_MAX);
	put_extent(0, UINT64_MAX, 10, 0);
	assert_int_equal(iser_parse_lba_status(&io, e, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_cdbs_sbc3_5, reset),
		cmocka_unit_test_setup(test_cdbs_of_queries, reset),
		cmocka_unit_test_setup(test_capacity_at_each_length_sbc3_5_16,
				       reset),
		cmocka_unit_test_setup(test_luns_at_each_length, reset),
		cmocka_unit_test_setup(test_extents_at_each_length_sbc3_5_4,
				       reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
