/* SPDX-License-Identifier: BSD-2-Clause */
/* shared_test.c: a unit that several gateways share (device/shared.h): access, mode
 * values, resets, fences. Its reservations: shared_pr_test.c. */
#include "gateways.h"

#define KEY 0xa0a0a0a0a0a0a0a0ull

static int write_block(unsigned who)
{
	static const uint8_t block[512];

	send_cdb(&gws.i[who], (const uint8_t[16]){ SCSI_WRITE_10, [8] = 1 },
		 block, 512, 0);
	settle();
	return gws.i[who].done ? finish(&gws.i[who]) : -1;
}

static void release_io(unsigned k)
{
	bs_hold_release(gws.g[k].hold, 1000);
	settle();
}

static int read_block(unsigned who)
{
	send_cdb(&gws.i[who], (const uint8_t[16]){ SCSI_READ_10, [8] = 1 },
		 NULL, 0, 512);
	settle();
	release_io(who / 2);
	return finish(&gws.i[who]);
}

/* Aborts the command that the initiator waits for. */
static void abort_command(unsigned who)
{
	struct ini *i = &gws.i[who];

	assert_false(i->done);
	assert_int_equal(dev_task_abort(&i->task, ini_released), 0);
	settle();
	assert_true(i->released);
	assert_false(i->done);
	dev_task_end(&i->task);
	i->is_busy = false;
}

/* ---- which units can be shared ---- */

static void test_what_cannot_be_shared(void **state)
{
	struct dev_lu_config cfg = { .lun = 1,
				     .clustered = true,
				     .type = DEV_CD };
	struct bs *b = bs_null_new("null", 1u << 20, 512);

	(void)state;
	assert_int_equal(dev_lu_add(gws.g[0].server, &cfg, b), ERR_UNSUPPORTED);
	cfg.type = DEV_DISK;
	assert_int_equal(dev_lu_add(gws.g[MODEL].server, &cfg, b),
			 ERR_UNSUPPORTED); /* it saves nothing */
	bs_close(b);
}

static void test_no_erasure(void **state)
{
	(void)state;
	assert_int_equal(RUN(0, 0, SCSI_FORMAT_UNIT), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	assert_int_equal(RUN(0, 0, SCSI_SANITIZE, SCSI_SANITIZE_BLOCK_ERASE),
			 SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
}

/* ---- target port groups ---- */

static const uint8_t *report_groups(unsigned who)
{
	while (take_attention(who))
		;
	assert_int_equal(RUN(who, 4096, SCSI_MAINTENANCE_IN,
			     SCSI_MI_REPORT_TARGET_PORT_GROUPS, 0, 0, 0, 0, 0,
			     0, 16),
			 SCSI_GOOD);
	return gws.i[who].in;
}

static void expect_states(unsigned who, uint8_t first, uint8_t second)
{
	const uint8_t *p = report_groups(who);

	assert_int_equal(get_be32(p), 24);
	assert_int_equal(p[4] & 0x0f, first);
	assert_int_equal(get_be16(p + 6), 1);
	assert_int_equal(p[11], 1);
	assert_int_equal(get_be16(p + 14), 1);
	assert_int_equal(p[16] & 0x0f, second);
	assert_int_equal(get_be16(p + 18), 2);
	assert_int_equal(get_be16(p + 26), 2);
}

static void test_each_gateway_reports_all_groups(void **state)
{
	(void)state;
	for (unsigned i = 0; i < INIS; i++)
		expect_states(i, DEV_ACCESS_OPTIMIZED, DEV_ACCESS_STANDBY);
	/* TPGS: implicit and explicit; MULTIP */
	assert_int_equal(RUN(2, 96, SCSI_INQUIRY, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(gws.i[2].in[5] & 0x30, 0x30);
	assert_int_equal(gws.i[2].in[6] & 0x10, 0x10);
	/* VPD 83h has the group of the port */
	assert_int_equal(RUN(2, 255, SCSI_INQUIRY, 1, 0x83, 0, 255), SCSI_GOOD);
	for (size_t at = 4; at < gws.i[2].in_len;
	     at += 4u + gws.i[2].in[at + 3])
		if ((gws.i[2].in[at + 1] & 0x0f) == 0x5)
			assert_int_equal(get_be16(gws.i[2].in + at + 6), 2);
	assert_int_equal(RUN(4, 96, SCSI_INQUIRY, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(gws.i[4].in[5] & 0x30, 0); /* not of other units */
}

static void test_only_the_owner_moves_data(void **state)
{
	(void)state;
	assert_int_equal(read_block(0), SCSI_GOOD);
	assert_int_equal(write_block(2), SCSI_CHECK_CONDITION);
	expect_sense(2, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
	make_owner(1);
	assert_int_equal(read_block(3), SCSI_GOOD);
	assert_int_equal(write_block(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
	for (unsigned i = 0; i < INIS; i++)
		expect_states(i, DEV_ACCESS_STANDBY, DEV_ACCESS_OPTIMIZED);
}

static void test_a_port_without_group_is_transitioning(void **state)
{
	(void)state;
	assert_int_equal(dev_lu_groups_replace(gws.g[0].lu, NULL, 0), 0);
	settle();
	take_attentions();
	assert_int_equal(write_block(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	set_groups(0, 0); /* the own state is still there */
	settle();
	take_attentions();
	assert_int_equal(read_block(0), SCSI_GOOD);
}

/* A command that the owner has admitted ends before the gateway gives the unit away. */
static void test_the_drain_waits_for_admitted_commands(void **state)
{
	bool done = false;

	(void)state;
	assert_int_equal(write_block(0), -1); /* in the backstore */
	assert_int_equal(dev_lu_access_set(gws.g[0].lu, DEV_ACCESS_STANDBY,
					   access_done, &done),
			 0);
	settle();
	assert_false(done);
	expect_states(1, DEV_ACCESS_TRANSITIONING, DEV_ACCESS_STANDBY);
	assert_int_equal(write_block(1), SCSI_CHECK_CONDITION);
	expect_sense(1, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	release_io(0);
	assert_int_equal(finish(&gws.i[0]), SCSI_GOOD);
	assert_true(done);
	assert_int_equal(take_attention(0), ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(take_attention(1), ASC_ACCESS_STATE_CHANGED);
	assert_int_equal(take_attention(1), 0);
	expect_states(1, DEV_ACCESS_STANDBY, DEV_ACCESS_STANDBY);
}

static void test_the_drain_waits_for_a_flush(void **state)
{
	bool done = false;

	(void)state;
	send_cdb(&gws.i[0], (const uint8_t[16]){ SCSI_SYNCHRONIZE_CACHE_10 },
		 NULL, 0, 0);
	settle();
	assert_int_equal(bs_hold_waiting(gws.g[0].hold), 1);
	assert_int_equal(dev_lu_access_set(gws.g[0].lu, DEV_ACCESS_STANDBY,
					   access_done, &done),
			 0);
	settle();
	assert_false(done);
	release_io(0);
	assert_true(done);
	assert_int_equal(finish(&gws.i[0]), SCSI_GOOD);
}

/* A store that does not answer holds the drain up, not the caller. */
static void test_the_drain_can_be_given_up(void **state)
{
	bool first = false, second = false;

	(void)state;
	assert_int_equal(write_block(0), -1);
	assert_int_equal(dev_lu_access_set(gws.g[0].lu, DEV_ACCESS_STANDBY,
					   access_done, &first),
			 0);
	settle();
	assert_int_equal(dev_lu_access_set(gws.g[0].lu, DEV_ACCESS_OPTIMIZED,
					   access_done, &second),
			 0);
	assert_false(first);
	settle();
	assert_true(first && second);
	expect_states(1, DEV_ACCESS_OPTIMIZED, DEV_ACCESS_STANDBY);
	/* twice: the commands of the first access are still in progress */
	for (unsigned i = 0; i < 2; i++) {
		first = false;
		assert_int_equal(dev_lu_access_set(gws.g[0].lu,
						   DEV_ACCESS_STANDBY,
						   access_done, &first),
				 0);
		settle();
		assert_false(first);
		expect_states(1, DEV_ACCESS_TRANSITIONING, DEV_ACCESS_STANDBY);
		if (i == 0) {
			second = false;
			assert_int_equal(
				dev_lu_access_set(gws.g[0].lu,
						  DEV_ACCESS_UNAVAILABLE,
						  access_done, &second),
				0);
			settle();
			assert_true(first);
			assert_int_equal(access_result, ERR_ABORTED);
			assert_false(second);
		}
	}
	assert_true(second);
	release_io(0);
	assert_int_equal(finish(&gws.i[0]), SCSI_GOOD);
	assert_true(first);
	expect_states(1, DEV_ACCESS_STANDBY, DEV_ACCESS_STANDBY);
}

static void test_set_target_port_groups_asks_the_daemon(void **state)
{
	const uint8_t cdb[16] = { SCSI_MAINTENANCE_OUT,
				  SCSI_MO_SET_TARGET_PORT_GROUPS, [9] = 8 };
	const uint8_t list[8] = { [4] = DEV_ACCESS_OPTIMIZED, [7] = 2 };
	struct dev_regroup *r;

	(void)state;
	send_cdb(&gws.i[2], cdb, list, 8, 0);
	settle();
	r = gws.g[1].regrouping;
	assert_non_null(r);
	assert_int_equal(r->n, 1);
	assert_int_equal(r->changes[0].id, 2);
	assert_int_equal(r->changes[0].state, DEV_ACCESS_OPTIMIZED);
	set_access(0, DEV_ACCESS_STANDBY);
	set_access(1, DEV_ACCESS_OPTIMIZED);
	r->result = 0;
	r->done(r);
	settle();
	assert_int_equal(finish(&gws.i[2]), SCSI_GOOD);
	/* not to the nexus that has asked */
	assert_int_equal(take_attention(2), 0);
	assert_int_equal(take_attention(3), ASC_ACCESS_STATE_CHANGED);
	/* an error, an abort, a fence */
	take_attentions();
	send_cdb(&gws.i[0], cdb, list, 8, 0);
	settle();
	gws.g[0].regrouping->result = ERR_BUSY;
	gws.g[0].regrouping->done(gws.g[0].regrouping);
	settle();
	/* no fault for the log: the backstore is sound */
	assert_int_equal(dev_task_store_fault(&gws.i[0].task), DEV_STORE_SOUND);
	assert_int_equal(finish(&gws.i[0]), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_HARDWARE_ERROR, ASC_SET_GROUPS_FAILED);
	send_cdb(&gws.i[0], cdb, list, 8, 0);
	settle();
	abort_command(0);
	gws.g[0].regrouping->result = 0;
	gws.g[0].regrouping->done(gws.g[0].regrouping);
	settle();
	send_cdb(&gws.i[0], cdb, list, 8, 0);
	settle();
	gws.g[0].regrouping->result = ERR_TERMINATED;
	gws.g[0].regrouping->done(gws.g[0].regrouping);
	settle();
	abort_command(0);
}

/* ---- mode values and identifying information ---- */

#define D_SENSE 0x04

static int select_d_sense(unsigned who, bool on, bool saves)
{
	uint8_t list[16] = { [4] = 0x0a, [5] = 0x0a };

	/* the values of the control mode page that cannot be changed */
	assert_int_equal(RUN(who, 64, SCSI_MODE_SENSE_6, 0x08, 0x0a, 0, 64),
			 SCSI_GOOD);
	memcpy(list + 6, gws.i[who].in + 6, 10);
	list[6] = (uint8_t)((list[6] & ~D_SENSE) | (on ? D_SENSE : 0));
	return run(&gws.i[who],
		   (const uint8_t[16]){ SCSI_MODE_SELECT_6,
					0x10 | saves, [4] = 16 },
		   list, 16, 0);
}

static bool has_d_sense(unsigned who, bool saved)
{
	assert_int_equal(RUN(who, 64, SCSI_MODE_SENSE_6, 0x08,
			     0x0a | (saved ? 0xc0 : 0), 0, 64),
			 SCSI_GOOD);
	return gws.i[who].in[6] & D_SENSE;
}

static void test_mode_values_are_common(void **state)
{
	(void)state;
	assert_int_equal(select_d_sense(2, true, false), SCSI_GOOD);
	assert_true(
		has_d_sense(0, false)); /* the command asks for the newest */
	for (unsigned i = 0; i < INIS; i++) {
		assert_int_equal(take_attention(i),
				 i == 2 ? 0 : ASC_MODE_PARAMETERS_CHANGED);
		assert_int_equal(take_attention(i), 0);
	}
	assert_false(has_d_sense(0, true));
	assert_int_equal(select_d_sense(1, true, true), SCSI_GOOD);
	assert_true(has_d_sense(3, true));
	assert_int_equal(take_attention(3), 0); /* no value has changed */
	assert_int_equal(select_d_sense(0, false, false), SCSI_GOOD);
	assert_false(has_d_sense(3, false));
	take_attentions();
	assert_true(has_d_sense(3, true));
}

/* Two gateways change the same record: the second one has read older values. */
static void test_mode_select_after_that_of_another_gateway(void **state)
{
	(void)state;
	assert_int_equal(select_d_sense(0, true, false), SCSI_GOOD);
	gws.is_lazy = true;
	/* gateway 1 does not know of that yet */
	send_cdb(&gws.i[2],
		 (const uint8_t[16]){ SCSI_MODE_SELECT_6, 0x10, [4] = 0 }, NULL,
		 0, 0);
	settle();
	gws.is_lazy = false;
	settle();
	assert_int_equal(finish(&gws.i[2]), SCSI_BUSY);
	take_attentions();
	assert_true(has_d_sense(2, false));
}

static void test_a_reset_reaches_all_gateways(void **state)
{
	bool done = false;

	(void)state;
	assert_int_equal(select_d_sense(0, true, false), SCSI_GOOD);
	notify();
	take_attentions();
	gws.i[2].aborts = 0;
	assert_int_equal(dev_lu_reset_state(gws.g[0].lu, 0, access_done, &done),
			 0);
	settle();
	assert_true(done);
	notify();
	for (unsigned i = 0; i < INIS; i++)
		assert_int_equal(take_attention(i), ASC_BUS_DEVICE_RESET);
	assert_int_equal(gws.i[2].aborts, 1);
	for (unsigned i = 0; i < INIS; i++)
		assert_false(has_d_sense(i, false));
}

static void test_identifying_information_is_common(void **state)
{
	const uint8_t cdb[16] = { SCSI_MAINTENANCE_OUT,
				  SCSI_MO_SET_IDENTIFYING, [9] = 5 };

	(void)state;
	make_owner(1);
	assert_int_equal(run(&gws.i[2], cdb, "disk1", 5, 0), SCSI_GOOD);
	make_owner(0);
	assert_int_equal(RUN(0, 64, SCSI_MAINTENANCE_IN,
			     SCSI_MI_REPORT_IDENTIFYING, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(get_be16(gws.i[0].in + 2), 5);
	assert_memory_equal(gws.i[0].in + 4, "disk1", 5);
}

/* ---- a fence ---- */

static bool dropped, replaced;

static void on_drop(void *arg)
{
	(void)arg;
	dropped = true;
}

static void on_replaced(void *arg)
{
	(void)arg;
	replaced = true;
}

static void new_store(unsigned k, uint64_t size)
{
	struct bs *b = bs_hold_new(bs_null_new("null:1M", size, 512));

	replaced = false;
	assert_int_equal(
		dev_lu_replace_backstore(gws.g[k].lu, b, on_replaced, NULL), 0);
	settle();
	assert_true(replaced);
	gws.g[k].hold = b;
}

/* The requests that wait in the store end, because the gateway was fenced. */
static void fence_store(unsigned k)
{
	struct bs *b = bs_fault_new(gws.g[k].hold, BIT(BS_WRITE), 1, 1,
				    ERR_TERMINATED);

	gws.g[k].lu->bs = b;
}

static void test_a_fenced_gateway_answers_nothing(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };

	(void)state;
	dropped = false;
	fence_store(0);
	assert_int_equal(write_block(0), -1);
	assert_int_equal(gws.g[0].fenced, 1);
	assert_int_equal(write_block(1), -1);
	assert_int_equal(gws.g[0].fenced, 1); /* once */
	assert_int_equal(dev_lu_drop(gws.g[0].lu, on_drop, NULL), 0);
	assert_int_equal(dev_lu_drop(gws.g[0].lu, on_drop, NULL), ERR_BUSY);
	settle();
	assert_false(dropped); /* the nexuses are there */
	abort_command(1);
	/* received later by an old nexus: not executed, not answered */
	send_cdb(&gws.i[1], cdb, NULL, 512, 0);
	settle();
	abort_command(1);
	assert_int_equal(dev_lu_replace_backstore(gws.g[0].lu, gws.g[0].hold,
						  on_replaced, NULL),
			 ERR_WRONG_STATE);
	abort_command(0);
	logout(0);
	assert_false(dropped);
	logout(1);
	assert_true(dropped);
	login(0);
	take_attentions();
	assert_int_equal(write_block(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	new_store(0, 1u << 20);
	expect_states(0, DEV_ACCESS_TRANSITIONING, DEV_ACCESS_STANDBY);
	set_groups(0, 1); /* do not bring the old state back */
	settle();
	expect_states(0, DEV_ACCESS_TRANSITIONING, DEV_ACCESS_OPTIMIZED);
	set_access(0, DEV_ACCESS_STANDBY);
	take_attentions();
	assert_int_equal(write_block(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_NOT_READY, ASC_PORT_IN_STANDBY);
	make_owner(0);
	assert_int_equal(read_block(0), SCSI_GOOD);
	assert_int_equal(gws.g[0].fenced, 1);
}

/* The gateway becomes the owner again and executes no command from before the fence, even
 * if its session has not ended. */
static void test_nothing_received_before_is_executed_after(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	struct dev_task *t = &gws.i[0].task;
	static const uint8_t block[512];
	struct ini *i = &gws.i[0];

	(void)state;
	dropped = false;
	/* a write whose data have not arrived */
	memset(t, 0, sizeof(*t));
	i->done = i->released = false;
	t->nexus = i->nexus;
	t->attr = DEV_ATTR_SIMPLE;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl.out = 512;
	t->done = ini_done;
	assert_int_equal(dev_task_begin(t), 0);
	/* a write in the store, and one that waits for the blocks */
	assert_int_equal(write_block(1), -1);
	assert_int_equal(dev_lu_drop(gws.g[0].lu, on_drop, NULL), 0);
	settle();
	set_access(0, DEV_ACCESS_OPTIMIZED);
	bufv_copy_in(&t->out, 0, block, 512);
	dev_task_execute(t);
	settle();
	assert_int_equal(bs_hold_waiting(gws.g[0].hold), 1);
	abort_command(0);
	release_io(0);
	assert_int_equal(finish(&gws.i[1]), SCSI_GOOD); /* from before */
	logout(0);
	logout(1);
	assert_true(dropped);
	new_store(0, 1u << 21);
	login(0);
	set_access(0, DEV_ACCESS_OPTIMIZED);
	take_attentions();
	assert_int_equal(read_block(0), SCSI_GOOD);
}

static void test_a_fence_ends_the_drain(void **state)
{
	bool done = false;

	(void)state;
	dropped = false;
	assert_int_equal(write_block(0), -1);
	assert_int_equal(dev_lu_access_set(gws.g[0].lu, DEV_ACCESS_STANDBY,
					   access_done, &done),
			 0);
	settle();
	assert_false(done);
	assert_int_equal(dev_lu_drop(gws.g[0].lu, on_drop, NULL), 0);
	settle();
	assert_true(done);
	assert_int_equal(access_result, ERR_ABORTED);
	release_io(0);
	finish(&gws.i[0]);
	logout(0);
	logout(1);
	assert_true(dropped);
	new_store(0, 1u << 20);
	set_access(0, DEV_ACCESS_STANDBY);
}

/* ---- random commands, hand-overs and fences ---- */

static unsigned seed(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)atoi(s) : otherwise;
}

static unsigned rnd(unsigned n)
{
	return (unsigned)rand() % n;
}

/* A gateway in the random test. */
static struct mover {
	bool changing; /* an access_set is in progress */
	bool dropping, replacing;
	unsigned drops, drains;
} movers[GATEWAYS];

struct move {
	unsigned k;
	enum dev_access wanted;
};

static void moved(void *arg, int err)
{
	struct move *move = arg;
	struct mover *m = &movers[move->k];

	m->changing = false;
	/* what was admitted before has ended */
	if (!err && !dev_access_is_active(move->wanted)) {
		assert_int_equal(bs_hold_waiting(gws.g[move->k].hold), 0);
		m->drains++;
	}
	free(move);
}

static void move_dropped(void *arg)
{
	struct mover *m = arg;
	unsigned k = (unsigned)(m - movers);

	assert_int_equal(bs_hold_waiting(gws.g[k].hold), 0);
	m->dropping = false;
	m->replacing = true;
	m->drops++;
}

static void move_replaced(void *arg)
{
	((struct mover *)arg)->replacing = false;
}

static void change_access(unsigned k)
{
	static const enum dev_access states[] = { DEV_ACCESS_OPTIMIZED,
						  DEV_ACCESS_STANDBY,
						  DEV_ACCESS_UNAVAILABLE,
						  DEV_ACCESS_TRANSITIONING };
	struct mover *m = &movers[k];
	struct move *move;

	if (m->changing || m->dropping || m->replacing)
		return;
	m->changing = true;
	move = malloc(sizeof(*move));
	move->k = k;
	move->wanted = rnd(2) ? DEV_ACCESS_OPTIMIZED : states[rnd(4)];
	assert_int_equal(
		dev_lu_access_set(gws.g[k].lu, move->wanted, moved, move), 0);
}

/* Ends the session of an initiator as a target does: first its command. */
static void end_session(unsigned who)
{
	struct ini *i = &gws.i[who];

	if (i->is_busy && !i->done && !dev_task_abort(&i->task, ini_released) &&
	    !i->released)
		return; /* its I/O has to end first */
	if (i->is_busy)
		dev_task_end(&i->task);
	i->is_busy = false;
	dev_nexus_close(i->nexus);
	i->nexus = NULL;
}

static void drop_or_go_on(unsigned k)
{
	struct mover *m = &movers[k];

	if (m->replacing) {
		struct bs *b = new_hold();

		if (dev_lu_replace_backstore(gws.g[k].lu, b, move_replaced, m))
			bs_close(b); /* is being replaced */
		else
			gws.g[k].hold = b;
	} else if (!m->dropping && !rnd(10)) {
		m->dropping = true;
		assert_int_equal(dev_lu_drop(gws.g[k].lu, move_dropped, m), 0);
	}
}

static void use_initiator(unsigned who)
{
	struct ini *i = &gws.i[who];
	struct mover *m = &movers[who / 2];
	static const uint8_t block[512];

	if (!i->nexus) {
		if (!m->dropping && !m->replacing)
			login(who);
	} else if (m->dropping) {
		end_session(who);
	} else if (i->is_busy && i->done) {
		(void)finish(i);
	} else if (!i->is_busy && rnd(3)) {
		send_cdb(
			i,
			(const uint8_t[16]){
				SCSI_WRITE_10, [5] = (uint8_t)rnd(4), [8] = 1 },
			block, 512, 0);
	} else if (!i->is_busy) {
		send_cdb(i, (const uint8_t[16]){ SCSI_SYNCHRONIZE_CACHE_10 },
			 NULL, 0, 0);
	}
}

static void test_random_moves(void **state)
{
	unsigned n = seed("MOVES", 20000);

	(void)state;
	memset(movers, 0, sizeof(movers));
	srand(seed("MOVES_SEED", 1));
	for (unsigned k = 0; k < n; k++) {
		unsigned g = rnd(GATEWAYS);

		switch (rnd(10)) {
		case 0:
			change_access(g);
			break;
		case 1:
			drop_or_go_on(g);
			break;
		case 2:
			set_groups(g, rnd(GATEWAYS));
			break;
		case 3:
		case 4:
			use_initiator(rnd(INIS));
			break;
		case 5:
			bs_hold_release(gws.g[g].hold, 1);
			break;
		default:
			gw_deliver(&gws.g[g], rnd(WORKERS));
			break;
		}
	}
	end_commands();
	for (unsigned g = 0; g < GATEWAYS; g++)
		assert_true(movers[g].drops && movers[g].drains);
}

/* An access that was asked for before a fence does not begin after it. */
static void test_a_fence_before_the_access(void **state)
{
	bool done = false;

	(void)state;
	dropped = false;
	set_access(0, DEV_ACCESS_STANDBY);
	set_groups(0, 1); /* visits the workers, so the next change waits */
	assert_int_equal(dev_lu_access_set(gws.g[0].lu, DEV_ACCESS_OPTIMIZED,
					   access_done, &done),
			 0);
	assert_int_equal(dev_lu_drop(gws.g[0].lu, on_drop, NULL), 0);
	settle();
	assert_true(done);
	logout(0);
	logout(1);
	assert_true(dropped);
	login(0);
	take_attentions();
	assert_int_equal(write_block(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
	new_store(0, 1u << 20);
	set_groups(0, 0);
	settle();
	take_attentions();
	assert_int_equal(write_block(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_NOT_READY, ASC_ACCESS_TRANSITION);
}

/* The daemon does not know the newest state: the command is not answered after a fence,
 * and fails for other reasons. */
static void test_no_newest_state(void **state)
{
	(void)state;
	gws.g[1].is_cut = true;
	gws.g[1].result = ERR_RESET;
	assert_int_equal(RUN(2, 64, SCSI_MODE_SENSE_6, 0x08, 0x0a, 0, 64),
			 SCSI_CHECK_CONDITION);
	expect_sense(2, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	gws.g[1].result = ERR_TERMINATED;
	send_cdb(&gws.i[2],
		 (const uint8_t[16]){ SCSI_MODE_SENSE_6, 0x08, 0x0a, [4] = 64 },
		 NULL, 0, 64);
	settle();
	abort_command(2);
	/* aborted while the daemon asks */
	gws.is_lazy = true;
	send_cdb(&gws.i[2],
		 (const uint8_t[16]){ SCSI_MODE_SENSE_6, 0x08, 0x0a, [4] = 64 },
		 NULL, 0, 64);
	settle();
	abort_command(2);
	gws.is_lazy = false;
	settle();
}

#define T(name) \
 cmocka_unit_test_setup_teardown(name, gateways_open, gateways_close)

#define T1(name) \
 cmocka_unit_test_setup_teardown(name, gateways_open_alone, gateways_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_what_cannot_be_shared),
		T(test_no_erasure),
		T(test_each_gateway_reports_all_groups),
		T(test_only_the_owner_moves_data),
		T(test_a_port_without_group_is_transitioning),
		T(test_the_drain_waits_for_admitted_commands),
		T(test_the_drain_waits_for_a_flush),
		T(test_the_drain_can_be_given_up),
		T(test_set_target_port_groups_asks_the_daemon),
		T(test_mode_values_are_common),
		T(test_mode_select_after_that_of_another_gateway),
		T(test_a_reset_reaches_all_gateways),
		T(test_identifying_information_is_common),
		T(test_a_fenced_gateway_answers_nothing),
		T(test_nothing_received_before_is_executed_after),
		T(test_a_fence_ends_the_drain),
		T(test_a_fence_before_the_access),
		T(test_no_newest_state),
		T(test_random_moves),
		T1(test_what_cannot_be_shared),
		T1(test_no_erasure),
		T1(test_each_gateway_reports_all_groups),
		T1(test_only_the_owner_moves_data),
		T1(test_a_port_without_group_is_transitioning),
		T1(test_the_drain_waits_for_admitted_commands),
		T1(test_the_drain_waits_for_a_flush),
		T1(test_the_drain_can_be_given_up),
		T1(test_set_target_port_groups_asks_the_daemon),
		T1(test_mode_values_are_common),
		T1(test_mode_select_after_that_of_another_gateway),
		T1(test_a_reset_reaches_all_gateways),
		T1(test_identifying_information_is_common),
		T1(test_a_fenced_gateway_answers_nothing),
		T1(test_nothing_received_before_is_executed_after),
		T1(test_a_fence_ends_the_drain),
		T1(test_no_newest_state),
		T1(test_random_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
