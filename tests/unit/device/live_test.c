/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live_test.c: a nexus gets another map, and units are removed, while commands of three
 * nexuses on three workers are in progress.
 */
#include "maps.h"

#include "device/copy/copy.h"

static void count(void *arg)
{
	++*(unsigned *)arg;
}

/* set_map gives the nexus another map of n entries. */
static void set_map(unsigned who, const struct dev_map_entry *e, unsigned n)
{
	struct dev_map *m = NULL;
	unsigned done = 0;

	assert_int_equal(dev_map_new(three.server, e, n, &m), 0);
	dev_nexus_set_map(three.i[who].nexus, m, count, &done);
	dev_map_put(m); /* the nexus counts itself */
	three_settle();
	assert_int_equal(done, 1);
}

static void expect_ready(unsigned who, uint16_t lun)
{
	at(who, lun);
	assert_int_equal(tur(who), SCSI_GOOD);
}

static void expect_attention_at(unsigned who, uint16_t lun, uint16_t asc)
{
	at(who, lun);
	expect_attention(who, asc);
}

/* ---- another map ---- */

static void test_other_map_spc4_6_33(void **state)
{
	(void)state;
	add_unit(three.server, 9);
	three_settle();
	set_map(A,
		(struct dev_map_entry[]){ { .lun = 0, .lu = unit(0) },
					  { .lun = 6, .lu = unit(7) },
					  { .lun = 2, .lu = unit(9) } },
		3);
	expect_attention_at(A, 0, ASC_REPORTED_LUNS_CHANGED);
	expect_ready(A, 0);
	expect_luns(A, (const uint16_t[]){ 0, 2, 6 }, 3);
	expect_attention_at(A, 2, ASC_POWER_ON);
	expect_ready(A, 2);
	/* no longer read-only, and by another LUN, which LUN 0 has reported */
	expect_attention_at(A, 6, ASC_MODE_PARAMETERS_CHANGED);
	assert_int_equal(write_one(A), SCSI_GOOD);
	expect_no_unit(A, 5);
	expect_no_unit(A, 1000);
	/* other nexuses learn nothing */
	expect_ready(B, 0);
	expect_ready(B, 3);
}

/* REPORT LUNS clears the attention at all units of its nexus, and no other attention;
 * REQUEST SENSE clears it as other commands do. */
static void test_luns_reported_sam5_5_14(void **state)
{
	(void)state;
	add_unit(three.server, 9);
	three_settle();
	at(C, 7);
	expect_luns(C, (const uint16_t[]){ 0, 7, 9, 0x4000 | 300 }, 4);
	expect_ready(C, 0);
	expect_ready(C, 7);
	expect_ready(C, 300);
	expect_attention_at(C, 9, ASC_POWER_ON);
	add_unit(three.server, 10);
	three_settle();
	/* not executed: a reserved SELECT REPORT */
	at(C, 0);
	assert_int_equal(RUN(C, 16, 0xa0, [2] = 3, [9] = 16),
			 SCSI_CHECK_CONDITION);
	assert_int_equal(RUN(C, 18, 0x03, [4] = 18), SCSI_GOOD);
	assert_int_equal(get_be16(three.i[C].in + 12),
			 ASC_REPORTED_LUNS_CHANGED);
	expect_ready(C, 0);
	expect_ready(C, 7);
	expect_attention_at(C, 10, ASC_POWER_ON);
}

static void test_equal_map(void **state)
{
	(void)state;
	set_map(B,
		(struct dev_map_entry[]){ { .lun = 3, .lu = unit(0) },
					  { .lun = 0, .lu = unit(7) } },
		2);
	expect_ready(B, 0);
	expect_ready(B, 3);
}

static void test_read_only_changes_spc4_7_5(void **state)
{
	(void)state;
	set_map(B,
		(struct dev_map_entry[]){
			{ .lun = 3, .lu = unit(0) },
			{ .lun = 0, .lu = unit(7), .read_only = true } },
		2);
	expect_ready(B, 3);
	expect_attention_at(B, 0, ASC_MODE_PARAMETERS_CHANGED);
	assert_int_equal(write_one(B), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
}

/* A write whose data arrive after the unit became read-only. */
static void test_read_only_before_the_data(void **state)
{
	static const uint8_t cdb[16] = { 0x2a, [8] = 1 };

	(void)state;
	at(B, 0);
	three_announce(B, cdb, BLOCK, 0);
	set_map(B,
		(struct dev_map_entry[]){
			{ .lun = 0, .lu = unit(7), .read_only = true } },
		1);
	dev_task_execute(&three.i[B].task);
	three_settle();
	assert_int_equal(three_finish(B), SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
}

/* From no map to a map and back. */
static void test_no_map(void **state)
{
	unsigned done = 0;

	(void)state;
	set_map(C,
		(struct dev_map_entry[]){ { .lun = 0, .lu = unit(300) },
					  { .lun = 7, .lu = unit(7) } },
		2);
	expect_attention_at(C, 7, ASC_REPORTED_LUNS_CHANGED);
	/* LUN 0 has another unit, whose mode pages are others */
	expect_attention_at(C, 0, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention_at(C, 0, ASC_INQUIRY_CHANGED);
	expect_ready(C, 0);
	expect_no_unit(C, 300);
	dev_nexus_set_map(three.i[C].nexus, NULL, count, &done);
	three_settle();
	assert_int_equal(done, 1);
	expect_attention_at(C, 0, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention_at(C, 300, ASC_REPORTED_LUNS_CHANGED);
	expect_attention_at(C, 0, ASC_INQUIRY_CHANGED);
	expect_ready(C, 7);
	expect_luns(C, (const uint16_t[]){ 0, 7, 0x4000 | 300 }, 3);
	expect_ready(C, 7);
}

/* ---- another unit at the same LUN ---- */

static void replace_units_of_b(struct dev_lu *at0, struct dev_lu *at3)
{
	set_map(B,
		(struct dev_map_entry[]){ { .lun = 0, .lu = at0 },
					  { .lun = 3, .lu = at3 } },
		2);
}

/* The list of LUNs stays, so only the LUN itself reports a change (SPC-4 §6.6.1), once,
 * and no POWER ON; other nexuses learn nothing. */
static void test_replaced_unit_spc4_6_6_1(void **state)
{
	(void)state;
	replace_units_of_b(unit(300), unit(0));
	expect_attention_at(B, 0, ASC_INQUIRY_CHANGED);
	expect_ready(B, 0);
	expect_ready(B, 3);
	expect_luns(B, (const uint16_t[]){ 0, 3 }, 2);
	expect_ready(A, 5);
	expect_ready(C, 7);
	/* exchanged: both units stay, and have other mode pages */
	replace_units_of_b(unit(0), unit(300));
	for (uint16_t lun = 0; lun <= 3; lun += 3) {
		expect_attention_at(B, lun, ASC_MODE_PARAMETERS_CHANGED);
		expect_attention_at(B, lun, ASC_INQUIRY_CHANGED);
		expect_ready(B, lun);
	}
}

/* SBC-3 §4.5: another number of blocks, or blocks of another size. */
static void test_replaced_unit_of_another_capacity_sbc3_4_5(void **state)
{
	static const struct {
		uint64_t size;
		uint32_t block;
	} rows[] = { { 2 * STORE, BLOCK }, { 8 * STORE, 4096 } };

	(void)state;
	for (uint16_t k = 0; k < ARRAY_LEN(rows); k++) {
		struct dev_lu_config cfg = { .lun = (uint16_t)(20 + k) };

		put_be16(cfg.uuid, cfg.lun);
		assert_int_equal(dev_lu_add(three.server, &cfg,
					    bs_null_new("null:x", rows[k].size,
							rows[k].block)),
				 0);
		three_settle();
		replace_units_of_b(unit(cfg.lun), unit(0));
		expect_attention_at(B, 0, ASC_CAPACITY_CHANGED);
		if (k == 0) /* ram: to null: another CACHING page */
			expect_attention_at(B, 0, ASC_MODE_PARAMETERS_CHANGED);
		expect_attention_at(B, 0, ASC_INQUIRY_CHANGED);
		expect_ready(B, 0);
		expect_ready(B, 3);
	}
}

/* SPC-4 §7.5: other mode parameters, of the pages or the bit WP. */
static void test_replaced_unit_with_other_modes_spc4_7_5(void **state)
{
	static const uint8_t swp[8 + 12] = { [8] = 0x0a,     10,  0x02, 0x10,
					     0x08 /* SWP */, 0,	  0,	0,
					     0xff,	     0xff };

	(void)state;
	at(C, 300);
	assert_int_equal(
		three_run(C,
			  (const uint8_t[16]){ 0x55, 0x10, [8] = sizeof(swp) },
			  swp, sizeof(swp), 0),
		SCSI_GOOD);
	expect_attention_at(A, 1000, ASC_MODE_PARAMETERS_CHANGED);
	replace_units_of_b(unit(300), unit(0));
	expect_attention_at(B, 0, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention_at(B, 0, ASC_INQUIRY_CHANGED);
	expect_ready(B, 0);
	set_map(A,
		(struct dev_map_entry[]){
			{ .lun = 0, .lu = unit(7), .read_only = true },
			{ .lun = 5, .lu = unit(0), .read_only = true },
			{ .lun = 1000, .lu = unit(300) } },
		3);
	expect_attention_at(A, 0, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention_at(A, 0, ASC_INQUIRY_CHANGED);
	/* read-only before and after */
	expect_attention_at(A, 5, ASC_MODE_PARAMETERS_CHANGED);
	expect_attention_at(A, 5, ASC_INQUIRY_CHANGED);
	expect_ready(A, 5);
	expect_ready(A, 1000);
}

/* What the initiator has not learned of a LUN yet stays pending (SAM-5 §5.14). */
static void test_replaced_unit_with_pending_attentions_sam5_5_14(void **state)
{
	(void)state;
	add_unit(three.server, 9);
	three_settle();
	set_map(B,
		(struct dev_map_entry[]){ { .lun = 0, .lu = unit(7) },
					  { .lun = 1, .lu = unit(9) },
					  { .lun = 3, .lu = unit(0) } },
		3);
	/* LUN 1 is new, LUN 0 has not reported that */
	set_map(B,
		(struct dev_map_entry[]){ { .lun = 0, .lu = unit(9) },
					  { .lun = 1, .lu = unit(300) },
					  { .lun = 3, .lu = unit(0) } },
		3);
	expect_attention_at(B, 1, ASC_POWER_ON);
	expect_ready(B, 1);
	expect_attention_at(B, 0, ASC_POWER_ON); /* of unit 9, not reported */
}

static void lose_all(unsigned who)
{
	set_map(who, NULL, 0);
	expect_luns(who, NULL, 0);
}

/* SPC-2 §5.5.1: what RESERVE reserved at a lost unit is released, at others not. */
static void test_reservation_of_a_lost_unit_is_released(void **state)
{
	(void)state;
	at(B, 0);
	assert_int_equal(RUN(B, 0, 0x16), SCSI_GOOD);
	at(B, 3);
	assert_int_equal(RUN(B, 0, 0x16), SCSI_GOOD);
	at(C, 7);
	assert_int_equal(tur(C), SCSI_RESERVATION_CONFLICT);
	set_map(B, (struct dev_map_entry[]){ { .lun = 8, .lu = unit(0) } }, 1);
	expect_ready(C, 7);
	at(C, 0);
	assert_int_equal(tur(C), SCSI_RESERVATION_CONFLICT);
	lose_all(B);
	expect_ready(C, 0);
}

/* A registration belongs to the names of the ports, so it outlives the access. */
static void test_registration_outlives_the_access_spc4_5_13_5(void **state)
{
	(void)state;
	at(B, 0);
	assert_int_equal(pr_out(B, SCSI_PROUT_REGISTER, 0, 2), SCSI_GOOD);
	assert_int_equal(pr_out(B, SCSI_PROUT_RESERVE, 2, 0), SCSI_GOOD);
	lose_all(B);
	at(C, 7);
	assert_int_equal(write_one(C), SCSI_RESERVATION_CONFLICT);
	set_map(B, (struct dev_map_entry[]){ { .lun = 1, .lu = unit(7) } }, 1);
	expect_attention_at(B, 1, ASC_POWER_ON);
	assert_int_equal(write_one(B), SCSI_GOOD);
}

/* SAM-5 §5.10.5: the ACA of a nexus that loses the unit ends for all nexuses. */
static void test_aca_of_a_lost_unit(void **state)
{
	(void)state;
	at(B, 0);
	assert_int_equal(RUN(B, BLOCK, 0x28, [2] = 0xff, [8] = 1, [9] = 4),
			 SCSI_CHECK_CONDITION);
	at(C, 7);
	assert_int_equal(tur(C), SCSI_BUSY);
	lose_all(B);
	expect_ready(C, 7);
}

/* ---- commands in progress ---- */

static int open_holding(void **state)
{
	holding = 7;
	return open_maps(state);
}

#define TH(name) cmocka_unit_test_setup_teardown(name, open_holding, close_maps)

static void send_read(unsigned who, uint16_t lun)
{
	static const uint8_t cdb[16] = { 0x28, [8] = 1 };

	at(who, lun);
	three_send(who, cdb, NULL, 0, BLOCK);
	three_settle();
}

/* The device itself does not abort the command: it ends as if the map were the same. */
static void test_command_in_progress_at_a_lost_unit(void **state)
{
	(void)state;
	send_read(A, 5);
	assert_int_equal(bs_hold_waiting(three.hold), 1);
	set_map(A, NULL, 0);
	release_held(1);
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_true(list_empty(&three.i[A].nexus->left));
}

static void test_logout_before_the_reservation_is_released(void **state)
{
	struct dev_map *m;
	unsigned done = 0;

	(void)state;
	at(B, 0);
	assert_int_equal(RUN(B, 0, 0x16), SCSI_GOOD);
	assert_int_equal(dev_map_new(three.server, NULL, 0, &m), 0);
	dev_nexus_set_map(three.i[B].nexus, m, count, &done);
	dev_map_put(m);
	assert_int_equal(done, 0);
	three_logout(B);
	assert_int_equal(done, 1);
	expect_ready(C, 7);
}

/* The copy holds its source until it ends. */
static void test_copy_from_a_lost_unit(void **state)
{
	struct dev_task *t = &three.i[C].task;
	uint8_t list[16 + 64 + 28] = { [1] = 0x18 };

	(void)state;
	copy_list(list, 7, 300);
	at(C, 0);
	three_send(C, (const uint8_t[16]){ 0x83, [13] = sizeof(list) }, list,
		   sizeof(list), 0);
	three_settle();
	assert_int_equal(bs_hold_waiting(three.hold), 1);
	set_map(C,
		(struct dev_map_entry[]){ { .lun = 0, .lu = unit(0) },
					  { .lun = 300, .lu = unit(300) } },
		2);
	assert_false(list_empty(&t->nexus->left));
	release_held(1);
	assert_true(three.i[C].done);
	/* the source was read already */
	assert_int_equal(three_finish(C), SCSI_GOOD);
	assert_true(list_empty(&t->nexus->left));
}

static void test_copy_to_a_lost_unit_spc4_5_17_7_4(void **state)
{
	uint8_t list[16 + 64 + 28] = { [1] = 0x18 };

	(void)state;
	copy_list(list, 7, 300);
	at(C, 0);
	three_send(C, (const uint8_t[16]){ 0x83, [13] = sizeof(list) }, list,
		   sizeof(list), 0);
	three_settle();
	set_map(C,
		(struct dev_map_entry[]){ { .lun = 0, .lu = unit(0) },
					  { .lun = 7, .lu = unit(7) } },
		2);
	release_held(1);
	assert_int_equal(three_finish(C), SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_COPY_ABORTED, ASC_COPY_TARGET_NOT_REACHABLE);
}

/* ---- removal ---- */

static struct removed {
	unsigned times;
	int err;
} removed;

static void note_removal(void *arg, int err)
{
	struct removed *r = arg;

	r->times++;
	r->err = err;
}

static void begin_removal(uint16_t number)
{
	memset(&removed, 0, sizeof(removed));
	assert_int_equal(dev_lu_remove(unit(number), note_removal, &removed),
			 0);
	assert_null(unit(number));
	three_settle();
}

static void expect_removed(void)
{
	assert_int_equal(removed.times, 1);
	assert_int_equal(removed.err, 0);
	assert_true(list_empty(&three.server->leaving));
	assert_false(dev_server_is_busy(three.server));
}

static void test_removal_spc4_6_33(void **state)
{
	(void)state;
	lose_all(A);
	begin_removal(300);
	expect_removed();
	expect_attention_at(C, 0, ASC_REPORTED_LUNS_CHANGED);
	expect_ready(C, 7);
	expect_luns(C, (const uint16_t[]){ 0, 7 }, 2);
	expect_no_unit(C, 300);
	expect_ready(B, 0);
	/* the number is free again */
	add_unit(three.server, 300);
	three_settle();
	expect_attention_at(C, 300, ASC_POWER_ON);
	expect_ready(C, 300);
	assert_int_equal(write_one(C), SCSI_GOOD);
}

static void test_removal_twice(void **state)
{
	struct dev_lu *lu = unit(0);

	(void)state;
	three.i[C].abort_later = true;
	begin_removal(0);
	assert_int_equal(dev_lu_remove(lu, note_removal, &removed), ERR_BUSY);
	dev_nexus_tasks_gone(three.i[C].nexus);
	three_settle();
	expect_removed();
}

/* Maps should not have the unit any more; if one does, its nexus loses the unit. */
static void test_removal_of_a_mapped_unit(void **state)
{
	(void)state;
	begin_removal(7);
	expect_removed();
	expect_attention_at(A, 0, ASC_REPORTED_LUNS_CHANGED);
	expect_luns(A, (const uint16_t[]){ 0, 0x4000 | 1000 }, 2);
	expect_attention_at(B, 3, ASC_REPORTED_LUNS_CHANGED);
	expect_luns(B, (const uint16_t[]){ 3 }, 1);
	expect_no_unit(B, 0);
	at(B, 3);
	assert_int_equal(copy_units(B, 0, 0), SCSI_GOOD);
	set_map(B, (struct dev_map_entry[]){ { .lun = 1, .lu = unit(0) } }, 1);
	expect_attention_at(B, 1, ASC_REPORTED_LUNS_CHANGED);
}

static void test_removal_with_commands_in_progress(void **state)
{
	(void)state;
	send_read(A, 5);
	send_read(B, 0);
	three.i[A].abort_later = true;
	begin_removal(7);
	assert_int_equal(three.i[A].aborts, 1);
	assert_int_equal(removed.times, 0);
	dev_nexus_tasks_gone(three.i[A].nexus);
	three_settle();
	/* B's target did not abort its command; it holds the unit */
	assert_int_equal(removed.times, 0);
	assert_int_equal(dev_task_abort(&three.i[A].task, three_released), 0);
	release_held(2);
	assert_true(three.i[A].released);
	dev_task_end(&three.i[A].task);
	three_settle();
	assert_int_equal(removed.times, 0);
	assert_true(three.i[B].done); /* its data are in transfer */
	assert_int_equal(three_finish(B), SCSI_GOOD);
	three_settle();
	expect_removed();
}

/* A command of another unit goes on meanwhile; new ones find no unit. */
static void test_other_commands_during_a_removal(void **state)
{
	(void)state;
	send_read(A, 5);
	begin_removal(7);
	assert_int_equal(removed.times, 0);
	expect_attention_at(B, 3, ASC_REPORTED_LUNS_CHANGED);
	assert_int_equal(write_one(B), SCSI_GOOD);
	assert_int_equal(pr_out(B, SCSI_PROUT_REGISTER, 0, 2), SCSI_GOOD);
	expect_no_unit(B, 0);
	expect_no_unit(C, 7);
	release_held(1);
	three_finish(A);
	three_settle();
	expect_removed();
}

/* An ORDERED command waits for exclusive access, a fence; then it is aborted. */
static void test_removal_with_a_fence(void **state)
{
	(void)state;
	send_read(A, 5);
	three.i[B].attr = DEV_ATTR_ORDERED;
	send_read(B, 0);
	three.i[B].attr = 0;
	begin_removal(7);
	assert_int_equal(dev_task_abort(&three.i[B].task, three_released), 0);
	release_held(1);
	three_finish(A);
	three_settle();
	assert_true(three.i[B].released);
	assert_int_equal(removed.times, 0);
	dev_task_end(&three.i[B].task);
	three_settle();
	expect_removed();
}

static void test_removal_during_logout(void **state)
{
	(void)state;
	at(C, 7);
	assert_int_equal(RUN(C, 0, 0x16), SCSI_GOOD);
	dev_nexus_close(three.i[C].nexus);
	three.i[C].nexus = NULL;
	begin_removal(7);
	expect_removed();
}

static void test_removal_before_arrival(void **state)
{
	(void)state;
	add_unit(three.server, 9);
	begin_removal(9);
	expect_removed();
	expect_luns(C, (const uint16_t[]){ 0, 7, 0x4000 | 300 }, 3);
	add_unit(three.server, 9);
	assert_true(three_deliver_one(0)); /* its arrival has begun */
	begin_removal(9);
	expect_removed();
	expect_luns(C, (const uint16_t[]){ 0, 7, 0x4000 | 300 }, 3);
}

/* A clock for SANITIZE and tokens. */
static uint64_t clock_ms(void *arg)
{
	(void)arg;
	return 1000000;
}

static void count_up(void *arg, uint8_t *p, size_t n)
{
	static uint8_t next;

	(void)arg;
	while (n--)
		*p++ = next++;
}

static int open_with_tokens(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three.env.wall_ms = clock_ms;
	three.env.random = count_up;
	three.set_up = add_units_and_maps;
	three.store = bs_null_new("null:1M", STORE, BLOCK);
	three_start();
	ready_everywhere();
	return 0;
}

#define TT(name) \
 cmocka_unit_test_setup_teardown(name, open_with_tokens, close_maps)

static int populate(unsigned who)
{
	static const uint8_t cdb[16] = { 0x83, 0x10, [9] = 1, [13] = 32 };
	uint8_t list[32] = { [1] = 30, [15] = 16, [27] = 8 };

	return three_run(who, cdb, list, sizeof(list), 0);
}

static void test_removal_revokes_tokens(void **state)
{
	uint8_t cdb[16] = { 0x83, 0x11, [9] = 2, [12] = 2, [13] = 0x28 };
	uint8_t list[552] = { 2, 0x26, [535] = 16, [547] = 8 };
	const uint8_t *p = three.i[C].in;

	(void)state;
	at(C, 300);
	assert_int_equal(populate(C), SCSI_GOOD);
	assert_int_equal(RUN(C, 600, 0x84, 0x07, [5] = 1, [12] = 4), SCSI_GOOD);
	memcpy(list + 16, p + 38, 512);
	/* B does not have the unit of the token */
	at(B, 3);
	assert_int_equal(three_run(B, cdb, list, sizeof(list), 0),
			 SCSI_CHECK_CONDITION);
	expect_sense(B, SENSE_ILLEGAL_REQUEST, ASC_TOKEN_UNKNOWN);
	at(C, 7);
	assert_int_equal(three_run(C, cdb, list, sizeof(list), 0), SCSI_GOOD);
	lose_all(A);
	begin_removal(300);
	expect_removed();
	no_sense_left(C);
	assert_int_equal(three_run(C, cdb, list, sizeof(list), 0),
			 SCSI_CHECK_CONDITION);
	expect_sense(C, SENSE_ILLEGAL_REQUEST, ASC_TOKEN_UNKNOWN);
}

/* SANITIZE in the background ends early. */
static void test_removal_ends_an_erasure(void **state)
{
	(void)state;
	at(C, 7);
	assert_int_equal(RUN(C, 0, 0x48, 0x82), SCSI_GOOD);
	begin_removal(7);
	release_held(bs_hold_waiting(three.hold));
	expect_removed();
}

static void test_server_ends_during_a_removal(void **state)
{
	(void)state;
	three.i[C].abort_later = true;
	begin_removal(7);
	assert_int_equal(removed.times, 0);
}

/* ---- random changes ---- */

#define UNITS  6u
#define ROUNDS 20000u

static uint64_t seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static struct {
	unsigned pending[INITIATORS]; /* maps that are not in force */
	bool sent[INITIATORS];
	unsigned removals;
} chaos;

static void one_less(void *arg)
{
	--*(unsigned *)arg;
}

static void removal_done(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
	chaos.removals--;
}

static void random_map(unsigned who)
{
	struct dev_map_entry e[UNITS];
	struct dev_map *m = NULL;
	unsigned n = 0, base = rnd(20);

	if (chaos.pending[who])
		return;
	for (uint16_t i = 0; i < UNITS; i++)
		if (unit(i) && rnd(2)) {
			e[n] = (struct dev_map_entry){
				.lun = (uint16_t)((base + n * 7) % 300),
				.lu = unit(i),
				.read_only = rnd(2)
			};
			n++;
		}
	if (who != C || rnd(2))
		assert_int_equal(dev_map_new(three.server, e, n, &m), 0);
	chaos.pending[who]++;
	dev_nexus_set_map(three.i[who].nexus, m, one_less, &chaos.pending[who]);
	dev_map_put(m);
}

static void random_command(unsigned who)
{
	static const uint8_t cdbs[][16] = {
		{ 0 },
		{ 0x28, [8] = 8 },
		{ 0x2a, [8] = 8 },
		{ 0x16 },
		{ 0x17 },
		{ 0x89, [13] = 1 },
		{ 0x35 },
		{ 0xa0, [8] = 16 },
		{ 0x28, [8] = 1, [2] = 0xff, [9] = 4 },
	};
	static const uint8_t zeros[8 * BLOCK];
	const uint8_t *cdb = cdbs[rnd(ARRAY_LEN(cdbs))];
	struct three_ini *i = &three.i[who];

	if (chaos.sent[who] || !i->nexus)
		return;
	i->lun = (uint16_t)(rnd(4) ? rnd(UNITS) : rnd(60));
	i->attr = (uint8_t)(rnd(4) ? 0 : DEV_ATTR_ORDERED);
	chaos.sent[who] = true;
	three_send(who, cdb, zeros,
		   cdb[0] == 0x2a   ? 8 * BLOCK
		   : cdb[0] == 0x89 ? 2 * BLOCK
				    : 0,
		   cdb[0] == 0x28 ? 8 * BLOCK : 0);
}

static void random_end(unsigned who)
{
	if (!chaos.sent[who] || !three.i[who].done)
		return;
	three_finish(who);
	chaos.sent[who] = false;
}

static void random_unit(void)
{
	uint16_t i = (uint16_t)rnd(UNITS);

	if (!unit(i)) {
		add_unit(three.server, i);
		return;
	}
	/* the contract: no map has the unit */
	if (rnd(3))
		return;
	for (unsigned who = 0; who < INITIATORS; who++)
		if (chaos.pending[who])
			return;
	chaos.removals++;
	assert_int_equal(dev_lu_remove(unit(i), removal_done, NULL), 0);
}

static void configured(void *arg)
{
	(void)arg;
}

static void random_settings(void)
{
	const struct dev_lu_config cfg = { .read_only = rnd(4) == 0,
					   .serial = { (char)('a' + rnd(3)) } };
	struct dev_lu *lu = unit((uint16_t)rnd(UNITS));

	if (lu) /* ERR_BUSY: a change is in progress */
		(void)dev_lu_configure(lu, &cfg, configured, NULL);
}

static void step(void)
{
	unsigned who = rnd(INITIATORS);

	switch (rnd(9)) {
	case 0:
		random_map(who);
		break;
	case 1:
		random_unit();
		break;
	case 8:
		random_settings();
		break;
	case 2:
	case 3:
		random_command(who);
		break;
	case 4:
		random_end(who);
		break;
	default:
		(void)three_deliver_one(who);
	}
}

static void end_chaos(void)
{
	three_settle();
	for (unsigned who = 0; who < INITIATORS; who++)
		random_end(who);
	three_settle();
}

/* All tasks end, all changes come into force, and no memory is used after its end
 * (found by a build with sanitizers). */
static void test_random_changes(void **state)
{
	const char *from = getenv("LIVE_SEED");

	(void)state;
	if (from)
		seed = strtoull(from, NULL, 10);
	memset(&chaos, 0, sizeof(chaos));
	for (unsigned round = 0; round < ROUNDS; round++) {
		step();
		if (round % 200)
			continue;
		for (unsigned who = 0; who < INITIATORS; who++) {
			dev_map_put(three.i[who].map);
			three.i[who].map = NULL;
		}
		for (unsigned k = 0; k < 3; k++)
			end_chaos();
		for (unsigned who = 0; who < INITIATORS; who++) {
			assert_int_equal(chaos.pending[who], 0);
			assert_false(chaos.sent[who]);
		}
		assert_int_equal(chaos.removals, 0);
		three_logout(rnd(INITIATORS));
		for (unsigned who = 0; who < INITIATORS; who++)
			if (!three.i[who].nexus)
				three_login(who);
	}
	for (unsigned k = 0; k < 3; k++)
		end_chaos();
	assert_int_equal(chaos.removals, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TM(test_other_map_spc4_6_33),
		TM(test_luns_reported_sam5_5_14),
		TM(test_equal_map),
		TM(test_read_only_changes_spc4_7_5),
		TM(test_read_only_before_the_data),
		TM(test_no_map),
		TM(test_replaced_unit_spc4_6_6_1),
		TM(test_replaced_unit_of_another_capacity_sbc3_4_5),
		TM(test_replaced_unit_with_other_modes_spc4_7_5),
		TM(test_replaced_unit_with_pending_attentions_sam5_5_14),
		TM(test_reservation_of_a_lost_unit_is_released),
		TM(test_registration_outlives_the_access_spc4_5_13_5),
		TM(test_aca_of_a_lost_unit),
		TH(test_command_in_progress_at_a_lost_unit),
		TM(test_logout_before_the_reservation_is_released),
		TH(test_copy_from_a_lost_unit),
		TH(test_copy_to_a_lost_unit_spc4_5_17_7_4),
		TM(test_removal_spc4_6_33),
		TM(test_removal_twice),
		TM(test_removal_of_a_mapped_unit),
		TH(test_removal_with_commands_in_progress),
		TH(test_other_commands_during_a_removal),
		TH(test_removal_with_a_fence),
		TM(test_removal_during_logout),
		TM(test_removal_before_arrival),
		TT(test_removal_revokes_tokens),
		TH(test_removal_ends_an_erasure),
		TM(test_server_ends_during_a_removal),
		TM(test_random_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
