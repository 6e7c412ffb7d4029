/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings_test.c: settings of a unit that change while three nexuses use it: names,
 * read-only, rotational, write cache, and limits of operations and bytes per second on a
 * virtual clock.
 */
#include "cmds.h"
#include "device/unit/unit.h"

#define BLOCK 512u

static struct dev_lu *lu(void)
{
	return dev_lu_get(three.server, 0);
}

/* ---- the clock ---- */

#define TIMERS 64u

static struct virtual_clock {
	xtime now;
	struct timer {
		xtime at;
		unsigned worker;
		struct dev_msg *msg;
	} timers[TIMERS];
	unsigned n;
} vclock;

static xtime time_now(void *arg, unsigned worker, bool exact)
{
	(void)arg;
	(void)worker;
	(void)exact;
	return vclock.now;
}

static void later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m)
{
	(void)arg;
	assert_true(vclock.n < TIMERS);
	assert_true(ms > 0);
	vclock.timers[vclock.n++] =
		(struct timer){ vclock.now + ms * XTIME_MS, worker, m };
}

/* Returns the index of a timer that is due, or -1. */
static int due(void)
{
	for (unsigned i = 0; i < vclock.n; i++)
		if (vclock.timers[i].at <= vclock.now)
			return (int)i;
	return -1;
}

/* advance lets time go on, a tenth of a millisecond after the other. */
static void advance(xtime by)
{
	const xtime end = vclock.now + by;
	int i;

	while (vclock.now < end) {
		vclock.now += XTIME_MS / 10;
		while ((i = due()) >= 0) {
			struct timer t = vclock.timers[i];

			vclock.timers[i] = vclock.timers[--vclock.n];
			three_post(NULL, t.worker, t.msg);
			three_settle();
		}
	}
}

static int open_settings(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	memset(&vclock, 0, sizeof(vclock));
	memset(cmds, 0, sizeof(cmds));
	nended = 0;
	vclock.now = 1000 * XTIME_S;
	three.env.later = later;
	three.env.time = time_now;
	three.store = bs_null_new("null:1M", 1u << 20, BLOCK);
	three.store->caps |= BS_CAP_WRITE_CACHE;
	three_start();
	return 0;
}

static int close_settings(void **state)
{
	advance(XTIME_S);
	assert_int_equal(vclock.n, 0); /* no timer without waiters */
	return three_close(state);
}

#define TS(name) \
 cmocka_unit_test_setup_teardown(name, open_settings, close_settings)

static void count(void *arg)
{
	++*(unsigned *)arg;
}

static void configure(const struct dev_lu_config *cfg)
{
	unsigned done = 0;

	assert_int_equal(dev_lu_configure(lu(), cfg, count, &done), 0);
	three_settle();
	assert_int_equal(done, 1);
}

/* ---- names ---- */

static void expect_names(const char *vendor, const char *product,
			 const char *revision, const char *serial)
{
	const char *p = (const char *)three.i[B].in;

	assert_int_equal(RUN(B, 96, 0x12, [4] = 96), SCSI_GOOD);
	assert_memory_equal(p + 8, vendor, 8);
	assert_memory_equal(p + 16, product, 16);
	assert_memory_equal(p + 32, revision, 4);
	if (!serial)
		return;
	assert_int_equal(RUN(B, 255, 0x12, 1, 0x80, 0, 255), SCSI_GOOD);
	assert_int_equal(p[3], strlen(serial));
	assert_memory_equal(p + 4, serial, strlen(serial));
}

static void test_names_spc4_6_6_2(void **state)
{
	const struct dev_lu_config cfg = { .vendor = "ACME",
					   .product = "Disk",
					   .revision = "9",
					   .serial = "S-1" };

	(void)state;
	expect_names("OPENISER", "VIRTUAL-DISK    ", "0001", NULL);
	configure(&cfg);
	for (unsigned who = 0; who < INITIATORS; who++) {
		expect_attention(who, ASC_INQUIRY_CHANGED);
		assert_int_equal(tur(who), SCSI_GOOD);
	}
	expect_names("ACME    ", "Disk            ", "9   ", "S-1");
	configure(&cfg); /* the same again */
	assert_int_equal(tur(A), SCSI_GOOD);
}

static void test_rotational_sbc3_6_6_2(void **state)
{
	const uint8_t *p = three.i[A].in;

	(void)state;
	configure(&(struct dev_lu_config){ .rotational = true });
	expect_attention(A, ASC_INQUIRY_CHANGED);
	assert_int_equal(RUN(A, 255, 0x12, 1, 0xb1, 0, 255), SCSI_GOOD);
	assert_int_equal(get_be16(p + 4), 7200);
}

static void test_one_change_at_a_time(void **state)
{
	const struct dev_lu_config cfg = { .rotational = true };
	unsigned done = 0;

	(void)state;
	assert_int_equal(dev_lu_configure(lu(), &cfg, count, &done), 0);
	assert_int_equal(dev_lu_configure(lu(), &cfg, count, &done), ERR_BUSY);
	three_settle();
	assert_int_equal(done, 1);
	all_sense_taken();
}

/* ---- read-only, write cache ---- */

static int mode_byte(unsigned who, uint8_t page, unsigned at)
{
	assert_int_equal(RUN(who, 255, 0x1a, 8, page, 0, 255), SCSI_GOOD);
	return three.i[who].in[at];
}

static void test_read_only_spc4_7_5(void **state)
{
	static const uint8_t cdb[16] = { 0x2a, [8] = 1 };

	(void)state;
	three_announce(A, cdb, BLOCK, 0); /* its data arrive later */
	configure(&(struct dev_lu_config){ .read_only = true });
	dev_task_execute(&three.i[A].task);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	expect_attention(B, ASC_MODE_PARAMETERS_CHANGED);
	assert_int_equal(mode_byte(B, 0x08, 2) & 0x80, 0x80);
	configure(&(struct dev_lu_config){ .read_only = false });
	expect_attention(B, ASC_MODE_PARAMETERS_CHANGED);
	assert_int_equal(mode_byte(B, 0x08, 2) & 0x80, 0);
	assert_int_equal(RUN(B, 0, 0x35), SCSI_GOOD);
}

static unsigned flags_of_write(void)
{
	static const uint8_t block[BLOCK];
	struct dev_task *t = &three.i[A].task;

	three_send(A, (const uint8_t[16]){ 0x2a, [8] = 1 }, block, BLOCK, 0);
	three_settle();
	assert_int_equal(three.i[A].done, true);
	assert_int_equal(t->status, SCSI_GOOD);
	three_finish(A);
	return t->own.req.flags & BS_FUA;
}

/* SBC-3 §6.5.5: WCE is 0, MODE SELECT cannot set it, each write has FUA. */
static void test_write_through_sbc3_6_5_5(void **state)
{
	const uint8_t wce[24] = { [4] = 0x08, 18, 0x04 };

	(void)state;
	assert_int_equal(mode_byte(A, 0x08, 6) & 0x04, 0x04);
	assert_int_equal(flags_of_write(), 0);
	configure(&(struct dev_lu_config){ .write_through = true });
	all_sense_taken();
	assert_int_equal(mode_byte(A, 0x08, 6) & 0x04, 0);
	assert_int_equal(mode_byte(A, 0x48, 6) & 0x04, 0);
	assert_int_equal(flags_of_write(), BS_FUA);
	assert_int_equal(three_run(A,
				   (const uint8_t[16]){ 0x15, 0x10, [4] = 24 },
				   wce, 24, 0),
			 SCSI_CHECK_CONDITION);
	assert_int_equal(RUN(A, 255, 0x12, 1, 0x86, 0, 255), SCSI_GOOD);
	assert_int_equal(three.i[A].in[6] & 0x01, 0); /* V_SUP */
	configure(&(struct dev_lu_config){ .write_through = false });
	all_sense_taken();
	assert_int_equal(flags_of_write(), 0);
}

/* ---- limits ---- */

static void limit(uint64_t ops, uint64_t ops_burst, uint64_t bytes,
		  uint64_t bytes_burst)
{
	configure(&(struct dev_lu_config){
		.limits = { ops, ops_burst, bytes, bytes_burst } });
}

/* Begins the commands [first, first + n) of one block each. */
static void send_reads(unsigned first, unsigned n, uint8_t blocks)
{
	const uint8_t cdb[16] = { 0x28, [8] = blocks };

	for (unsigned i = first; i < first + n; i++) {
		struct dev_task *t =
			cmd_new(i, i % INITIATORS, DEV_ATTR_SIMPLE, cdb);

		t->edtl.out = 0;
		t->edtl.in = blocks * BLOCK;
		assert_int_equal(dev_task_begin(t), 0);
		cmd_run(i);
	}
}

static void end_reads(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		assert_true(cmds[i].done);
		assert_int_equal(cmds[i].task.status, SCSI_GOOD);
		dev_task_end(&cmds[i].task);
	}
	three_settle();
}

static void test_operations_per_second(void **state)
{
	(void)state;
	limit(100, 20, 0, 0);
	send_reads(0, 220, 1);
	assert_int_equal(nended, 20); /* the burst */
	advance(XTIME_S / 10);
	assert_in_range(nended, 28, 32);
	advance(XTIME_S - XTIME_S / 10);
	assert_in_range(nended, 118, 122);
	advance(XTIME_S);
	assert_int_equal(nended, 220);
	end_reads(0, 220);
	/* after a pause the burst again, and no more */
	advance(10 * XTIME_S);
	nended = 0;
	send_reads(0, 30, 1);
	assert_int_equal(nended, 20);
	advance(XTIME_S);
	end_reads(0, 30);
}

static void test_bytes_per_second(void **state)
{
	(void)state;
	limit(0, 0, 100 * 128 * BLOCK, 10 * 128 * BLOCK);
	send_reads(0, 100, 128);
	assert_int_equal(nended, 10);
	advance(XTIME_S / 2);
	assert_in_range(nended, 58, 62);
	advance(XTIME_S / 2);
	assert_int_equal(nended, 100);
	end_reads(0, 100);
}

/* Commands without blocks are not delayed. */
static void test_other_commands_pass(void **state)
{
	(void)state;
	limit(1, 1, 0, 0);
	send_reads(0, 3, 1);
	assert_int_equal(tur(A), SCSI_GOOD);
	assert_int_equal(RUN(A, 96, 0x12, [4] = 96), SCSI_GOOD);
	advance(5 * XTIME_S);
	end_reads(0, 3);
}

/* A limit that admits nothing for hours delays no abort. */
static void test_abort_while_waiting(void **state)
{
	(void)state;
	limit(0, 0, 1, 1);
	send_reads(0, 4, 128);
	assert_int_equal(nended, 1);
	advance(60 * XTIME_S);
	assert_int_equal(nended, 1);
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(dev_task_abort(&cmds[i].task, cmd_released),
				 0);
		assert_true(cmds[i].released);
		dev_task_end(&cmds[i].task);
	}
	dev_task_end(&cmds[0].task);
	advance(XTIME_S); /* the timers end, too */
}

/* Waiting commands follow new limits within a tenth of a second. */
static void test_new_limits(void **state)
{
	(void)state;
	limit(0, 0, 1, 1);
	send_reads(0, 9, 128);
	assert_int_equal(nended, 1);
	limit(0, 0, 0, 0);
	advance(XTIME_S / 10 + XTIME_MS);
	end_reads(0, 9);
}

/* A limit holds for nexuses whose commands were admitted without one before, and for a
 * command that began before the limit. */
static void test_limit_between_commands(void **state)
{
	const uint8_t cdb[16] = { 0x28, [8] = 1 };
	struct dev_task *t;

	(void)state;
	send_reads(0, 6, 1);
	assert_int_equal(nended, 6);
	end_reads(0, 6);
	t = cmd_new(6, A, DEV_ATTR_SIMPLE, cdb);
	t->edtl.out = 0;
	t->edtl.in = BLOCK;
	assert_int_equal(dev_task_begin(t), 0);
	limit(1, 1, 0, 0);
	send_reads(0, 6, 1);
	assert_int_equal(nended, 7);
	cmd_run(6);
	assert_false(cmds[6].done);
	limit(0, 0, 0, 0);
	advance(XTIME_S / 10 + XTIME_MS);
	end_reads(0, 7);
	send_reads(0, 6, 1);
	end_reads(0, 6);
}

/* A reservation that another nexus gets meanwhile denies the waiting commands. */
static void test_conflict_while_waiting(void **state)
{
	(void)state;
	limit(10, 1, 0, 0);
	send_reads(0, 3, 1);
	assert_int_equal(nended, 1);
	assert_int_equal(RUN(A, 0, 0x16), SCSI_GOOD);
	advance(XTIME_S);
	assert_int_equal(nended, 3);
	assert_int_equal(cmds[0].task.status, SCSI_GOOD);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(cmds[i].task.status,
				 SCSI_RESERVATION_CONFLICT);
	for (unsigned i = 0; i < 3; i++)
		dev_task_end(&cmds[i].task);
	assert_int_equal(RUN(A, 0, 0x17), SCSI_GOOD);
}

static void removed(void *arg, int err)
{
	*(bool *)arg = !err;
}

/* The timer holds the unit. */
static void test_removal_while_waiting(void **state)
{
	bool done = false;

	(void)state;
	limit(1, 1, 0, 0);
	send_reads(0, 3, 1);
	assert_int_equal(dev_lu_remove(lu(), removed, &done), 0);
	three_settle();
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(dev_task_abort(&cmds[i].task, cmd_released),
				 0);
	for (unsigned i = 0; i < 3; i++)
		dev_task_end(&cmds[i].task);
	three_settle();
	assert_false(done);
	advance(XTIME_S);
	assert_true(done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TS(test_names_spc4_6_6_2),
		TS(test_rotational_sbc3_6_6_2),
		TS(test_one_change_at_a_time),
		TS(test_read_only_spc4_7_5),
		TS(test_write_through_sbc3_6_5_5),
		TS(test_operations_per_second),
		TS(test_bytes_per_second),
		TS(test_other_commands_pass),
		TS(test_abort_while_waiting),
		TS(test_new_limits),
		TS(test_limit_between_commands),
		TS(test_conflict_while_waiting),
		TS(test_removal_while_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
