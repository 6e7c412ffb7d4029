/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc_test.c: the n-th allocation fails, for every n, while three initiators
 * reserve, preempt each other, change access states and log out. Each command
 * ends; all workers agree on the reservation holder; no memory leaks.
 */
#include "device/reserve/reserve.h"
#include "fail_alloc.h"
#include "three.h"

static void groups(struct dev_server *s)
{
	static const struct dev_group g = { .id = 1,
					    .nports = 1,
					    .ports = { 1 } };
	uint16_t rtpi;

	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &rtpi), 0);
	assert_int_equal(dev_group_add(s, &g), 0);
}

static int alloc_open(void **state)
{
	memset(&three, 0, sizeof(three));
	three.env.save = three_save;
	three.set_up = groups;
	three_start();
	(void)state;
	return 0;
}

/* A command that may get no memory for its data or for its execution. */
static void try(unsigned who, const uint8_t *cdb, const void *data,
		uint32_t out, uint32_t in)
{
	struct three_ini *i = &three.i[who];
	struct dev_task *t = &i->task;

	memset(t, 0, sizeof(*t));
	i->done = false;
	t->nexus = i->nexus;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl.out = out;
	t->edtl.in = in;
	t->done = three_done;
	if (dev_task_begin(t))
		return;
	if (t->out_len && data)
		bufv_copy_in(&t->out, 0, data, t->out_len);
	dev_task_execute(t);
	three_settle();
	three_finish(who);
}

static void out(unsigned who, uint8_t sa, uint64_t key, uint64_t sa_key)
{
	const uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, sa,
				  sa == 1 || sa > 3 ? 5 : 0, [8] = 24 };
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	list[20] = sa == 6; /* APTPL */
	try(who, sa == 6 ? (const uint8_t[16]){ 0x5f, 6, [8] = 24 } : cdb, list,
	    24, 0);
}

static void set_state(unsigned who, uint8_t to)
{
	static const uint8_t cdb[16] = { SCSI_MAINTENANCE_OUT, 0x0a, [9] = 8 };
	const uint8_t list[8] = { [4] = to, [7] = 1 };

	try(who, cdb, list, 8, 0);
}

/* All workers use the same snapshot, and the saved record equals that
 * snapshot. */
static void expect_same_snapshot(void)
{
	const struct dev_lu *lu = dev_lu_get(three.server, 0);
	struct rsv_state *kept = NULL;

	for (unsigned w = 1; w < INITIATORS; w++)
		assert_ptr_equal(lu->rsv[w], lu->rsv[0]);
	if (!lu->rsv[0]->n)
		return;
	assert_int_equal(rsv_decode(three.saved, three.saved_len, lu->bs->uuid,
				    &kept),
			 0);
	assert_int_equal(kept->n, lu->rsv[0]->n);
	assert_int_equal(kept->type, lu->rsv[0]->type);
	rsv_free(kept);
}

static void reset_done(void *arg, int err)
{
	(void)err;
	++*(int *)arg;
}

static void scenario(void)
{
	static const uint8_t reserve6[16] = { SCSI_RESERVE_6 };
	static const uint8_t keys[16] = { 0x5e, 3, [8] = 200 };
	int done = 0;

	try(A, reserve6, NULL, 0, 0);
	dev_nexus_close(three.i[A].nexus);
	three_settle();
	out(B, 6, 0, 2);
	out(C, 6, 0, 3);
	out(C, 1, 3, 0);
	try(B, keys, NULL, 0, 200);
	out(B, 5, 2, 3);
	set_state(B, DEV_ACCESS_STANDBY);
	set_state(C, DEV_ACCESS_OPTIMIZED);
	if (!dev_lu_reset_state(dev_lu_get(three.server, 0), C, reset_done,
				&done)) {
		three_settle();
		assert_int_equal(done, 1);
	}
	out(B, 3, 2, 0);
}

static void set_done(void *arg, int err)
{
	*(int *)arg = err;
}

/* SPC-4 §5.16.2.5: a change that fails leaves the states unchanged. Every nexus
 * gets a unit attention if no command requested the change. */
static void test_failed_transition(void **state)
{
	const struct dev_group_change change = { .id = 1,
						 .state = DEV_ACCESS_STANDBY };
	unsigned begun = 0;
	int err = 1;

	(void)state;
	for (unsigned long nth = 1; err; nth++) {
		failed = false;
		countdown = nth;
		if (!dev_group_set(three.server, &change, set_done, &err))
			three_settle();
		countdown = 0;
		if (!err)
			break;
		assert_true(failed);
		if (tur(A) == SCSI_GOOD)
			continue; /* the change had not begun */
		begun++;
		expect_sense(A, SENSE_UNIT_ATTENTION,
			     ASC_ACCESS_TRANSITION_FAILED);
		expect_attention(B, ASC_ACCESS_TRANSITION_FAILED);
		expect_attention(C, ASC_ACCESS_TRANSITION_FAILED);
		assert_int_equal(tur(A), SCSI_GOOD);
	}
	assert_true(begun > 0);
	expect_attention(A, ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(tur(A), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
}

static void test_nth_allocation_fails(void **state)
{
	unsigned long nth = 0;

	do {
		if (nth)
			alloc_open(state);
		failed = false;
		countdown = ++nth;
		scenario();
		countdown = 0;
		three.i[A].nexus = NULL;
		expect_same_snapshot();
		/* The reservation of A has ended, even without memory. */
		assert_null(dev_lu_get(three.server, 0)->rsv[0]->spc2);
		three_close(state);
	} while (failed);
	print_message("%lu allocations\n", nth - 1);
	assert_true(nth > 15);
	alloc_open(state);
}

/* ---- units and maps ---- */

static void map_done(void *arg)
{
	++*(int *)arg;
}

/* Returns whether C has its new map. */
static bool change_map(struct dev_lu *lu)
{
	const struct dev_map_entry e[] = {
		{ .lun = 3, .lu = dev_lu_get(three.server, 0) },
		{ .lun = 300, .lu = lu },
	};
	struct dev_map *m;
	int done = 0;

	if (dev_map_new(three.server, e, lu ? 2 : 1, &m))
		return false;
	dev_nexus_set_map(three.i[C].nexus, m, map_done, &done);
	dev_map_put(m);
	three_settle();
	assert_int_equal(done, 1);
	return true;
}

static bool remove_unit(struct dev_lu *lu)
{
	int err = 1;

	if (lu && dev_lu_remove(lu, set_done, &err))
		return false;
	three_settle();
	assert_int_equal(lu ? err : 0, 0);
	return true;
}

static void live_changes(void)
{
	const struct dev_lu_config cfg = { .lun = 5 };
	struct bs *b = bs_null_new("null:1M", 1u << 20, 512);
	struct dev_lu *lu = NULL;
	bool mapped;

	if (b && !dev_lu_add(three.server, &cfg, b))
		lu = dev_lu_get(three.server, 5);
	else if (b)
		bs_close(b);
	three_settle();
	for (unsigned who = A; who <= B; who++)
		assert_ptr_equal(dev_nexus_unit(three.i[who].nexus,
						dev_lun_encode(5)),
				 lu);
	mapped = change_map(lu);
	assert_ptr_equal(dev_nexus_unit(three.i[C].nexus, dev_lun_encode(300)),
			 mapped ? lu : NULL);
	if (!remove_unit(lu))
		assert_true(remove_unit(lu));
	for (unsigned who = 0; who < INITIATORS; who++) {
		assert_null(
			dev_nexus_unit(three.i[who].nexus, dev_lun_encode(5)));
		assert_null(dev_nexus_unit(three.i[who].nexus,
					   dev_lun_encode(300)));
	}
}

/* A change without memory is repeated until it is in force everywhere. */
static void test_live_changes(void **state)
{
	unsigned long nth = 0;

	do {
		if (nth)
			alloc_open(state);
		failed = false;
		countdown = ++nth;
		live_changes();
		countdown = 0;
		three_close(state);
	} while (failed);
	assert_true(nth > 10);
	alloc_open(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nth_allocation_fails,
						alloc_open, three_close),
		cmocka_unit_test_setup_teardown(test_live_changes, alloc_open,
						three_close),
		cmocka_unit_test_setup_teardown(test_failed_transition,
						alloc_open, three_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
