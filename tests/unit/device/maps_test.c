/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps_test.c: LUN maps: which units a nexus sees, and that everything else works by
 * unit.
 */
#include "maps.h"

/* ---- which units a nexus sees ---- */

/* SAM-5 §4.7.7: peripheral addressing below 256, flat space addressing above. */
static void test_reported_luns_sam5_4_7(void **state)
{
	(void)state;
	expect_luns(A, (const uint16_t[]){ 0, 5, 0x4000 | 1000 }, 3);
	expect_luns(B, (const uint16_t[]){ 0, 3 }, 2);
	expect_luns(C, (const uint16_t[]){ 0, 7, 0x4000 | 300 }, 3);
	/* also at a LUN without a unit */
	at(B, 77);
	expect_luns(B, (const uint16_t[]){ 0, 3 }, 2);
}

static void expect_unit(unsigned who, uint16_t lun, uint16_t number)
{
	char serial[16];

	snprintf(serial, sizeof(serial), "unit %u", number);
	at(who, lun);
	assert_int_equal(RUN(who, 255, 0x12, 1, 0x80, 0, 255), SCSI_GOOD);
	assert_int_equal(three.i[who].in[3], strlen(serial));
	assert_memory_equal(three.i[who].in + 4, serial, strlen(serial));
	assert_ptr_equal(dev_nexus_unit(three.i[who].nexus,
					dev_lun_encode(lun)),
			 unit(number));
	/* the same LUN in the form of flat space addressing */
	assert_ptr_equal(dev_nexus_unit(three.i[who].nexus,
					(uint64_t)(0x4000 | lun) << 48),
			 unit(number));
}

static void test_units_by_lun(void **state)
{
	(void)state;
	expect_unit(A, 5, 7);
	expect_unit(A, 1000, 300);
	expect_unit(B, 0, 7);
	expect_unit(C, 7, 7);
	expect_unit(C, 300, 300);
	expect_no_unit(A, 7);
	expect_no_unit(A, 300);
	expect_no_unit(A, 16383);
	expect_no_unit(B, 1000);
	expect_no_unit(C, 5);
}

/* ---- read-only for one nexus ---- */

static bool says_protected(unsigned who)
{
	assert_int_equal(RUN(who, 255, 0x1a, 0, 0x3f, 0, 255), SCSI_GOOD);
	return three.i[who].in[2] & 0x80; /* WP */
}

static void test_read_only_for_one_nexus_sbc3_4_12(void **state)
{
	(void)state;
	at(A, 5);
	assert_int_equal(write_one(A), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	assert_true(says_protected(A));
	assert_int_equal(RUN(A, BLOCK, 0x28, [8] = 1), SCSI_GOOD);
	at(B, 0);
	assert_int_equal(write_one(B), SCSI_GOOD);
	assert_false(says_protected(B));
	at(A, 1000);
	assert_int_equal(write_one(A), SCSI_GOOD);
	assert_false(says_protected(A));
}

/* What changes the unit for other initiators is refused where the map has it
 * read-only; reading, and what has an effect on the own nexus only, is not. */
static void test_read_only_nexus_changes_nothing(void **state)
{
	static const struct {
		const char *name;
		uint8_t cdb[16];
		bool refused;
	} rows[] = {
		{ "MODE SELECT(6)", { 0x15, 0x10 }, true },
		{ "MODE SELECT(10)", { 0x55, 0x10 }, true },
		{ "LOG SELECT", { 0x4c, 0x02, 0x40 }, true },
		{ "START STOP UNIT: stop", { 0x1b }, true },
		{ "START STOP UNIT: eject", { 0x1b, [4] = 0x02 }, true },
		{ "START STOP UNIT: load", { 0x1b, [4] = 0x03 }, true },
		{ "START STOP UNIT: standby", { 0x1b, [4] = 0x30 }, true },
		{ "START STOP UNIT: start", { 0x1b, [4] = 0x01 }, false },
		{ "RESERVE(6)", { 0x16 }, true },
		{ "RELEASE(6)", { 0x17 }, false },
		{ "RESERVE(10)", { 0x56 }, true },
		{ "RELEASE(10)", { 0x57 }, false },
		{ "REGISTER", { 0x5f, 0, [8] = 24 }, true },
		{ "PREEMPT AND ABORT", { 0x5f, 5, 3, [8] = 24 }, true },
		{ "CLEAR", { 0x5f, 3, [8] = 24 }, true },
		{ "SANITIZE", { 0x48, 0x02 }, true },
		{ "FORMAT UNIT", { 0x04 }, true },
		{ "SET PRIORITY", { 0xa4, 0x0e, [9] = 24 }, true },
		{ "WRITE BUFFER", { 0x3b, 0x0a, [8] = 4 }, true },
		{ "SEND DIAGNOSTIC", { 0x1d, 0x04 }, true },
		{ "SYNCHRONIZE CACHE(10)", { 0x35 }, false },
		{ "TEST UNIT READY", { 0 }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("%s\n", rows[i].name);
		at(A, 5);
		three_run(A, rows[i].cdb, NULL, 0, 0);
		if (rows[i].refused)
			expect_sense(A, SENSE_DATA_PROTECT,
				     ASC_WRITE_PROTECTED);
		else
			assert_int_equal(three.i[A].task.status, SCSI_GOOD);
		at(B, 0);
		assert_int_equal(write_one(B), SCSI_GOOD);
	}
	/* the same nexus, at a unit that it may write to */
	at(A, 1000);
	assert_int_equal(RUN(A, 0, 0x16), SCSI_GOOD);
	assert_int_equal(RUN(A, 0, 0x1b, [4] = 0x30), SCSI_GOOD);
}

/* ---- the same unit by two LUNs ---- */

static void expect_reset_at(unsigned who, uint16_t lun)
{
	at(who, lun);
	expect_attention(who, ASC_BUS_DEVICE_RESET);
}

static void reset_done(void *arg, int err)
{
	*(bool *)arg = !err;
}

static void test_reset_reaches_the_unit_by_each_lun(void **state)
{
	bool done = false;

	(void)state;
	assert_int_equal(dev_lu_reset_state(unit(7), B, reset_done, &done), 0);
	three_settle();
	assert_true(done);
	expect_reset_at(A, 5);
	expect_reset_at(B, 0);
	expect_reset_at(C, 7);
	for (unsigned who = 0; who < INITIATORS; who++)
		assert_int_equal(tur(who), SCSI_GOOD);
	at(A, 0);
	assert_int_equal(tur(A), SCSI_GOOD);
	at(B, 3);
	assert_int_equal(tur(B), SCSI_GOOD);
}

static void test_reservation_and_preemption_by_unit(void **state)
{
	(void)state;
	at(A, 5);
	at(B, 0);
	at(C, 7);
	assert_int_equal(pr_out(C, SCSI_PROUT_REGISTER, 0, 1), SCSI_GOOD);
	assert_int_equal(pr_out(B, SCSI_PROUT_REGISTER, 0, 2), SCSI_GOOD);
	assert_int_equal(pr_out(B, SCSI_PROUT_RESERVE, 2, 0), SCSI_GOOD);
	assert_int_equal(write_one(A), SCSI_RESERVATION_CONFLICT);
	at(A, 0); /* another unit */
	assert_int_equal(write_one(A), SCSI_GOOD);
	at(B, 3);
	assert_int_equal(write_one(B), SCSI_GOOD);
	assert_int_equal(pr_out(C, SCSI_PROUT_PREEMPT_AND_ABORT, 1, 2),
			 SCSI_GOOD);
	assert_int_equal(three.i[B].aborts, 1);
	assert_ptr_equal(three.i[B].aborted, unit(7));
	assert_int_equal(tur(B), SCSI_GOOD);
	at(B, 0);
	expect_attention(B, ASC_REGISTRATIONS_PREEMPTED);
}

/* A nexus that does not have the unit gets no attention, and its tasks stay. */
static void test_nexus_without_the_unit(void **state)
{
	(void)state;
	at(A, 1000);
	at(C, 300);
	assert_int_equal(pr_out(A, SCSI_PROUT_REGISTER, 0, 1), SCSI_GOOD);
	assert_int_equal(pr_out(C, SCSI_PROUT_REGISTER, 0, 2), SCSI_GOOD);
	assert_int_equal(pr_out(A, SCSI_PROUT_PREEMPT_AND_ABORT, 1, 2),
			 SCSI_GOOD);
	assert_int_equal(three.i[C].aborts, 1);
	assert_int_equal(three.i[B].aborts, 0);
	for (uint16_t lun = 0; lun <= 3; lun += 3) {
		at(B, lun);
		assert_int_equal(tur(B), SCSI_GOOD);
	}
}

/* ---- EXTENDED COPY reaches the units of the nexus only ---- */

static void test_copies_spc4_6_4(void **state)
{
	(void)state;
	assert_int_equal(copy_units(C, 7, 300), SCSI_GOOD);
	assert_int_equal(copy_units(A, 7, 300), SCSI_GOOD);
	assert_int_equal(copy_units(A, 300, 7), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_COPY_ABORTED, ASC_WRITE_PROTECTED);
	assert_int_equal(copy_units(B, 300, 7), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
	assert_int_equal(copy_units(B, 7, 300), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
}

/* ---- bad maps ---- */

static void test_bad_maps(void **state)
{
	struct dev_map_entry e[2] = { { .lun = 1, .lu = unit(0) },
				      { .lun = 1, .lu = unit(7) } };
	struct dev_map *m = NULL;

	(void)state;
	assert_int_equal(dev_map_new(three.server, e, 2, &m), ERR_BUSY);
	e[1] = (struct dev_map_entry){ .lun = 2, .lu = unit(0) };
	assert_int_equal(dev_map_new(three.server, e, 2, &m), ERR_BUSY);
	e[1] = (struct dev_map_entry){ .lun = 16384, .lu = unit(7) };
	assert_int_equal(dev_map_new(three.server, e, 2, &m), ERR_RANGE);
	assert_null(m);
	e[1].lun = 16383;
	assert_int_equal(dev_map_new(three.server, e, 2, &m), 0);
	dev_map_put(m);
	assert_int_equal(dev_map_new(three.server, NULL, 0, &m), 0);
	three_logout(B);
	dev_map_put(three.i[B].map);
	three.i[B].map = m;
	three_login(B);
	expect_luns(B, NULL, 0);
	expect_no_unit(B, 0);
}

/* ---- a new unit while nexuses exist ---- */

static void test_new_unit_spc4_6_33(void **state)
{
	(void)state;
	add_unit(three.server, 9);
	assert_non_null(unit(9));
	three_settle();
	at(C, 9);
	expect_attention(C, ASC_POWER_ON);
	assert_int_equal(tur(C), SCSI_GOOD);
	at(C, 0);
	expect_attention(C, ASC_REPORTED_LUNS_CHANGED);
	assert_int_equal(tur(C), SCSI_GOOD);
	expect_luns(C, (const uint16_t[]){ 0, 7, 9, 0x4000 | 300 }, 4);
	/* a map does not change */
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(tur(B), SCSI_GOOD);
	expect_no_unit(A, 9);
}

/* A session that begins between dev_lu_add and its effect gets the unit once. */
static void test_login_while_a_unit_appears(void **state)
{
	(void)state;
	add_unit(three.server, 9);
	three_logout(C);
	add_unit(three.server, 10);
	three.i[C].lun = 0;
	three_login(C);
	expect_luns(C, (const uint16_t[]){ 0, 7, 9, 0x4000 | 300 }, 4);
	three_settle();
	expect_luns(C, (const uint16_t[]){ 0, 7, 9, 10, 0x4000 | 300 }, 5);
	at(C, 9);
	expect_attention(C, ASC_POWER_ON);
	at(C, 10);
	expect_attention(C, ASC_POWER_ON);
	assert_int_equal(tur(C), SCSI_GOOD);
}

/* ---- many units ---- */

static void test_many_units(void **state)
{
	static const uint16_t last = 16383;
	const uint8_t cdb[16] = { 0xa0, [7] = 1 };
	uint8_t *p = three.i[C].in;

	(void)state;
	for (uint16_t n = 1000; n < 2100; n++)
		add_unit(three.server, n);
	add_unit(three.server, last);
	assert_int_equal(dev_lu_add(three.server,
				    &(struct dev_lu_config){ .lun = 16384 },
				    NULL),
			 ERR_RANGE);
	assert_int_equal(dev_lu_add(three.server,
				    &(struct dev_lu_config){ .lun = last },
				    NULL),
			 ERR_BUSY);
	three_settle();
	assert_int_equal(three_run(C, cdb, NULL, 0, 65536), SCSI_GOOD);
	assert_int_equal(get_be32(p), 8 * 1104);
	assert_int_equal(three.i[C].in_len, 8 + 8 * 1104);
	assert_int_equal(get_be16(p + 8 + 8 * 3), 0x4000 | 1000);
	assert_int_equal(get_be16(p + 8 * 1104), 0x4000 | last);
	/* cut inside a LUN: the length is that of the whole list */
	assert_int_equal(RUN(C, 4096, 0xa0, [9] = 27), SCSI_GOOD);
	assert_int_equal(three.i[C].in_len, 27);
	assert_int_equal(get_be32(p), 8 * 1104);
	assert_int_equal(get_be16(p + 16), 7);
	expect_unit(C, last, last);
}

/* ---- the ports of one target ---- */

static void expect_ports(unsigned who, const uint16_t *ports, unsigned n)
{
	const uint8_t *p = three.i[who].in;
	size_t off = 4;

	assert_int_equal(RUN(who, 255, 0x12, 1, 0x88, 0, 255), SCSI_GOOD);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(get_be16(p + off + 2), ports[i]);
		off += 12u + get_be16(p + off + 10);
	}
	assert_int_equal(three.i[who].in_len, off);
	assert_int_equal(RUN(who, 96, 0x12, [4] = 96), SCSI_GOOD);
	assert_int_equal(p[6], n > 1 ? 0x10 : 0); /* MULTIP */
}

static void test_ports_of_each_target_spc4_7_8_14(void **state)
{
	static const char *const names[] = { "iqn.t,t,0x0001",
					     "iqn.other,t,0x0001",
					     "iqn.t,t,0x0002",
					     "iqn.othe,t,0x0001" };
	uint16_t rtpi;

	(void)state;
	three_logout(B);
	three.i[B].target = "iqn.other";
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(dev_port_add(three.server, names[i], &rtpi),
				 0);
		assert_int_equal(rtpi, i + 1);
	}
	three.port[B] = 2;
	three_login(B);
	expect_ports(A, (const uint16_t[]){ 1, 3 }, 2);
	expect_ports(B, (const uint16_t[]){ 2 }, 1);
	assert_int_equal(
		dev_port_add(three.server, "iqn.other,t,0x0007", &rtpi), 0);
	expect_ports(B, (const uint16_t[]){ 2, 5 }, 2);
}

struct seen_ports {
	unsigned n;
	char text[512];
};

static void see_port(void *arg, const char *name, uint16_t rtpi)
{
	struct seen_ports *s = arg;
	size_t at = strlen(s->text);

	s->n++;
	snprintf(s->text + at, sizeof(s->text) - at, "%u=%s ", rtpi, name);
}

/* SPC-4 §4.6.5: registrations name ports by identifiers, which must not change. */
static void test_identifiers_of_an_earlier_process(void **state)
{
	struct dev_env env = { .nworkers = 1, .post = three_post };
	struct dev_server *s = dev_server_new(&env, 1u << 20);
	struct seen_ports seen = { 0 };
	char too_long[300];
	uint16_t rtpi;

	(void)state;
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(dev_port_remember(s, "b,t,0x0001", 1), 0);
	assert_int_equal(dev_port_remember(s, "c,t,0x0001", 7), 0);
	assert_int_equal(dev_port_remember(s, "b,t,0x0001", 1), 0); /* again */
	assert_int_equal(dev_port_remember(s, "b,t,0x0001", 9), ERR_BUSY);
	assert_int_equal(dev_port_remember(s, "d,t,0x0001", 7), ERR_BUSY);
	assert_int_equal(dev_port_remember(s, "d,t,0x0001", 0), ERR_RANGE);
	assert_int_equal(dev_port_remember(s, too_long, 8), ERR_TOO_LONG);
	assert_int_equal(dev_port_add(s, "a,t,0x0001", &rtpi), 0);
	assert_int_equal(rtpi, 8);
	assert_int_equal(dev_port_add(s, "c,t,0x0001", &rtpi), 0);
	assert_int_equal(rtpi, 7);
	assert_int_equal(dev_port_add(s, "a,t,0x0001", &rtpi), 0);
	assert_int_equal(rtpi, 8);
	/* also those that were not added again */
	dev_ports_each(s, see_port, &seen);
	assert_int_equal(seen.n, 3);
	assert_non_null(strstr(seen.text, "1=b,t,0x0001 "));
	assert_non_null(strstr(seen.text, "7=c,t,0x0001 "));
	assert_non_null(strstr(seen.text, "8=a,t,0x0001 "));
	assert_int_equal(dev_port_remember(s, "z,t,0x0001", 65535), 0);
	assert_int_equal(dev_port_add(s, "y,t,0x0001", &rtpi), ERR_LIMIT);
	dev_server_free(s);
}

/* SPC-4 §6.37: the groups of the target, and the ports of other gateways. */
static void add_groups(struct dev_server *s)
{
	struct dev_group g = { .id = 1, .nports = 3, .ports = { 1, 2, 99 } };
	uint16_t rtpi;

	add_units_and_maps(s);
	three.i[B].target = "iqn.other";
	three.port[B] = 2;
	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &rtpi), 0);
	assert_int_equal(dev_port_add(s, "iqn.other,t,0x0001", &rtpi), 0);
	assert_int_equal(dev_port_add(s, "iqn.other,t,0x0002", &rtpi), 0);
	assert_int_equal(dev_group_add(s, &g), 0);
	g = (struct dev_group){ .id = 2, .nports = 1, .ports = { 3 } };
	assert_int_equal(dev_group_add(s, &g), 0);
}

static int open_groups(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three.set_up = add_groups;
	three_start();
	return 0;
}

static int set_group(unsigned who, uint16_t id)
{
	uint8_t list[8] = { [4] = DEV_ACCESS_NON_OPTIMIZED };

	put_be16(list + 6, id);
	return three_run(who, (const uint8_t[16]){ 0xa4, 0x0a, [9] = 8 }, list,
			 8, 0);
}

static void test_groups_of_each_target_spc4_6_37(void **state)
{
	const uint8_t *a = three.i[A].in, *b = three.i[B].in;

	(void)state;
	assert_int_equal(RUN(A, 512, 0xa3, 0x0a, [8] = 2), SCSI_GOOD);
	assert_int_equal(get_be32(a), 8 + 2 * 4);
	assert_int_equal(get_be16(a + 4 + 2), 1);
	assert_int_equal(get_be16(a + 4 + 10), 1);
	assert_int_equal(get_be16(a + 4 + 14), 99);
	assert_int_equal(RUN(B, 512, 0xa3, 0x0a, [8] = 2), SCSI_GOOD);
	assert_int_equal(get_be32(b), 8 + 2 * 4 + 8 + 4);
	assert_int_equal(get_be16(b + 4 + 10), 2);
	assert_int_equal(get_be16(b + 20 + 2), 2);
	assert_int_equal(get_be16(b + 20 + 10), 3);
	/* a group of another target is unknown */
	assert_int_equal(set_group(A, 2), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(set_group(B, 2), SCSI_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TM(test_reported_luns_sam5_4_7),
		TM(test_units_by_lun),
		TM(test_read_only_for_one_nexus_sbc3_4_12),
		TM(test_read_only_nexus_changes_nothing),
		TM(test_reset_reaches_the_unit_by_each_lun),
		TM(test_reservation_and_preemption_by_unit),
		TM(test_nexus_without_the_unit),
		TM(test_copies_spc4_6_4),
		TM(test_bad_maps),
		TM(test_new_unit_spc4_6_33),
		TM(test_login_while_a_unit_appears),
		TM(test_many_units),
		TM(test_ports_of_each_target_spc4_7_8_14),
		T(test_identifiers_of_an_earlier_process),
		cmocka_unit_test_setup_teardown(
			test_groups_of_each_target_spc4_6_37, open_groups,
			close_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
