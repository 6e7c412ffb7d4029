/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.h: three nexuses at three units. A has units 0, 7 and 300 as LUNs 0, 5
 * (read-only) and 1000; B has units 7 and 0 as LUNs 0 and 3; C has no map, and so all
 * units by their numbers.
 */
#ifndef TESTS_DEVICE_MAPS_H
#define TESTS_DEVICE_MAPS_H

#include "three.h"

#include "device/unit/attention.h"
#include "device/unit/itl.h"
#include "device/unit/names.h"

#define BLOCK 512u
#define STORE (1u << 20)

/* The unit whose requests wait in three.hold; 0: none. */
static uint16_t holding;

static inline struct dev_lu *unit(uint16_t number)
{
	return dev_lu_get(three.server, number);
}

static inline void add_unit(struct dev_server *s, uint16_t number)
{
	struct dev_lu_config cfg = { .lun = number };
	uint8_t *medium = calloc(1, STORE);
	struct bs *b = bs_ram_new("ram:x", medium, STORE, BLOCK, free, medium);

	snprintf(cfg.serial, sizeof(cfg.serial), "unit %u", number);
	put_be16(cfg.uuid + 2, number);
	cfg.uuid[15] = 1;
	if (number && holding == number)
		b = three.hold = bs_hold_new(b);
	assert_int_equal(dev_lu_add(s, &cfg, b), 0);
}

static inline void add_units_and_maps(struct dev_server *s)
{
	struct dev_map_entry a[] = { { .lun = 1000 },
				     { .lun = 5, .read_only = true },
				     { .lun = 0 } };
	struct dev_map_entry b[] = { { .lun = 3 }, { .lun = 0 } };

	add_unit(s, 7);
	add_unit(s, 300);
	a[0].lu = dev_lu_get(s, 300);
	a[1].lu = b[1].lu = dev_lu_get(s, 7);
	a[2].lu = b[0].lu = dev_lu_get(s, 0);
	assert_int_equal(dev_map_new(s, a, 3, &three.i[A].map), 0);
	assert_int_equal(dev_map_new(s, b, 2, &three.i[B].map), 0);
}

/* at selects the LUN of the next commands. */
static inline void at(unsigned who, uint16_t lun)
{
	three.i[who].lun = lun;
}

static inline void ready_everywhere(void)
{
	static const struct {
		uint8_t who;
		uint16_t lun;
	} all[] = { { A, 0 }, { A, 5 }, { A, 1000 }, { B, 0 },
		    { B, 3 }, { C, 0 }, { C, 7 },    { C, 300 } };

	for (size_t i = ARRAY_LEN(all); i-- > 0;) {
		at(all[i].who, all[i].lun);
		no_sense_left(all[i].who);
	}
	for (unsigned i = 0; i < INITIATORS; i++)
		at(i, 0);
}

static inline int open_maps(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three.set_up = add_units_and_maps;
	three.store = bs_null_new("null:1M", STORE, BLOCK);
	three_start();
	ready_everywhere();
	return 0;
}

static inline int close_maps(void **state)
{
	for (unsigned i = 0; i < INITIATORS; i++)
		dev_map_put(three.i[i].map);
	holding = 0;
	return three_close(state);
}

#define TM(name) cmocka_unit_test_setup_teardown(name, open_maps, close_maps)

static inline void expect_luns(unsigned who, const uint16_t *wire, unsigned n)
{
	const uint8_t *p = three.i[who].in;

	assert_int_equal(RUN(who, 4096, 0xa0, [8] = 16), SCSI_GOOD);
	assert_int_equal(get_be32(p), 8 * n);
	assert_int_equal(three.i[who].in_len, 8 + 8 * n);
	for (unsigned i = 0; i < n; i++)
		assert_true(get_be64(p + 8 + 8 * i) == (uint64_t)wire[i] << 48);
}

static inline void expect_no_unit(unsigned who, uint16_t lun)
{
	at(who, lun);
	assert_int_equal(RUN(who, 96, 0x12, [4] = 96), SCSI_GOOD);
	assert_int_equal(three.i[who].in[0], 0x7f);
	assert_int_equal(tur(who), SCSI_CHECK_CONDITION);
	expect_sense(who, SENSE_ILLEGAL_REQUEST, ASC_LUN_NOT_SUPPORTED);
	assert_null(dev_nexus_unit(three.i[who].nexus, dev_lun_encode(lun)));
}

static inline int write_one(unsigned who)
{
	static const uint8_t block[BLOCK] = { 1 };

	return three_run(who, (const uint8_t[16]){ 0x2a, [8] = 1 }, block,
			 BLOCK, 0);
}

static inline int pr_out(unsigned who, uint8_t sa, uint64_t key,
			 uint64_t sa_key)
{
	const uint8_t cdb[16] = { 0x5f, sa, 1, [8] = 24 };
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	return three_run(who, cdb, list, 24, 0);
}

/* copy_list builds the parameter list of an EXTENDED COPY of one block. */
static inline void copy_list(uint8_t list[16 + 64 + 28], uint16_t from,
			     uint16_t to)
{
	uint8_t *seg = list + 16 + 64;

	put_be16(list + 2, 64);
	put_be32(list + 8, 28);
	list[16] = list[48] = 0xe4;
	dev_lu_put_name(unit(from), list + 16 + 4);
	dev_lu_put_name(unit(to), list + 48 + 4);
	list[16 + 28 + 2] = list[48 + 28 + 2] = BLOCK >> 8;
	seg[0] = 0x02;
	put_be16(seg + 2, 24);
	put_be16(seg + 6, 1);
	put_be16(seg + 10, 1);
}

static inline int copy_units(unsigned who, uint16_t from, uint16_t to)
{
	const uint8_t cdb[16] = { 0x83, [13] = 16 + 64 + 28 };
	uint8_t list[16 + 64 + 28] = { [1] = 0x18 /* no list identifier */ };

	copy_list(list, from, to);
	return three_run(who, cdb, list, sizeof(list), 0);
}

#endif
