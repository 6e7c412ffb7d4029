/* SPDX-License-Identifier: BSD-2-Clause */
/* reserve_test.c: RESERVE and RELEASE of SPC-2 by initiators on three workers,
 * and the conflicts of each command of the table. */
#include "device/unit/command.h"
#include "three.h"

static const uint8_t reserve_op[] = { SCSI_RESERVE_6, SCSI_RESERVE_10 };
static const uint8_t release_op[] = { SCSI_RELEASE_6, SCSI_RELEASE_10 };

static int reserve(unsigned who)
{
	return RUN(who, 0, SCSI_RESERVE_6);
}

static int release(unsigned who)
{
	return RUN(who, 0, SCSI_RELEASE_6);
}

static int read_block(unsigned who)
{
	return RUN(who, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
}

static void test_reserve_and_release_spc2_5_5_1(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t on = reserve_op[i], off = release_op[1 - i];

		assert_int_equal(RUN(A, 0, on), SCSI_GOOD);
		assert_int_equal(RUN(A, 0, on), SCSI_GOOD);
		assert_int_equal(RUN(B, 0, on), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(tur(B), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(read_block(C), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(read_block(A), SCSI_GOOD);
		/* commands without a conflict */
		assert_int_equal(RUN(B, 96, 0x12, 0, 0, 0, 96), SCSI_GOOD);
		assert_int_equal(RUN(B, 18, 0x03, 0, 0, 0, 18), SCSI_GOOD);
		assert_int_equal(RUN(B, 8, 0x25), SCSI_GOOD);
		/* A RELEASE of another nexus is GOOD and changes nothing. */
		assert_int_equal(RUN(B, 0, off), SCSI_GOOD);
		assert_int_equal(tur(B), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(RUN(A, 0, off), SCSI_GOOD);
		assert_int_equal(tur(B), SCSI_GOOD);
		assert_int_equal(read_block(C), SCSI_GOOD);
	}
}

/* The reservation is in force on all workers before GOOD. */
static void test_reserve_is_everywhere_before_good(void **state)
{
	const uint8_t cdb[16] = { SCSI_RESERVE_6 };

	(void)state;
	three_send(C, cdb, NULL, 0, 0);
	assert_false(three.i[C].done);
	assert_true(three_deliver_one(0)); /* decided, in force on worker 0 */
	assert_int_equal(three.i[C].done, false);
	assert_true(three_deliver_one(1));
	assert_true(three_deliver_one(2));
	assert_false(three.i[C].done);
	three_settle();
	assert_int_equal(three_finish(C), SCSI_GOOD);
	assert_int_equal(tur(A), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(tur(B), SCSI_RESERVATION_CONFLICT);
}

/* Of two concurrent RESERVE commands one succeeds. */
static void test_reserve_race(void **state)
{
	const uint8_t cdb[16] = { SCSI_RESERVE_10 };
	int b, c;

	(void)state;
	three_send(B, cdb, NULL, 0, 0);
	three_send(C, cdb, NULL, 0, 0);
	three_settle();
	b = three_finish(B);
	c = three_finish(C);
	assert_int_equal(b, SCSI_GOOD);
	assert_int_equal(c, SCSI_RESERVATION_CONFLICT);
}

static void test_lu_reset_releases_and_sets_attentions(void **state)
{
	(void)state;
	assert_int_equal(reserve(A), SCSI_GOOD);
	three_reset(B);
	/* The requester gets the attention, too (SAM-5 §6.3.3). */
	for (unsigned who = A; who <= C; who++)
		expect_attention(who, ASC_BUS_DEVICE_RESET);
	assert_int_equal(read_block(C), SCSI_GOOD);
}

static void test_nexus_loss_releases_spc2_5_5_1(void **state)
{
	(void)state;
	for (unsigned who = 0; who < INITIATORS; who++) {
		unsigned other = (who + 1) % INITIATORS;

		assert_int_equal(reserve(who), SCSI_GOOD);
		assert_int_equal(tur(other), SCSI_RESERVATION_CONFLICT);
		three_logout(who);
		assert_int_equal(tur(other), SCSI_GOOD);
		three_login(who);
		no_sense_left(who);
	}
	/* The end of a nexus without a reservation releases nothing. */
	assert_int_equal(reserve(A), SCSI_GOOD);
	three_logout(B);
	assert_int_equal(tur(C), SCSI_RESERVATION_CONFLICT);
	three_login(B);
	expect_attention(B, ASC_POWER_ON);
	assert_int_equal(tur(B), SCSI_RESERVATION_CONFLICT);
}

static void parted(void *arg)
{
	++*(int *)arg;
}

static void test_part_then_close(void **state)
{
	int done = 0;

	(void)state;
	assert_int_equal(reserve(C), SCSI_GOOD);
	dev_nexus_part(three.i[C].nexus, parted, &done);
	assert_int_equal(done, 0);
	three_settle();
	assert_int_equal(done, 1);
	assert_int_equal(tur(A), SCSI_GOOD);
	/* The requester is closed while its reservation is being released. */
	assert_int_equal(reserve(B), SCSI_GOOD);
	dev_nexus_part(three.i[B].nexus, parted, &done);
	three_logout(B);
	assert_int_equal(done, 1);
	assert_int_equal(tur(A), SCSI_GOOD);
}

/* Another nexus reserves while the data of a WRITE arrive. */
static void test_reserved_while_data_came_in(void **state)
{
	const uint8_t cdb[16] = { SCSI_WRITE_10, [8] = 1 };
	struct dev_task *t = three_announce(B, cdb, 512, 0);

	(void)state;
	assert_int_equal(t->out_len, 512);
	assert_int_equal(reserve(A), SCSI_GOOD);
	memset(t->own.mem.buf, 0, 512);
	dev_task_execute(t);
	assert_int_equal(three_finish(B), SCSI_RESERVATION_CONFLICT);
}

static void test_aborted_while_it_waits(void **state)
{
	const uint8_t cdb[16] = { SCSI_RESERVE_6 };

	(void)state;
	three_send(B, cdb, NULL, 0, 0);
	assert_int_equal(dev_task_abort(&three.i[B].task, three_released), 0);
	assert_false(three.i[B].released);
	three_settle();
	assert_true(three.i[B].released);
	assert_false(three.i[B].done);
	dev_task_end(&three.i[B].task);
	three_logout(B); /* the reservation ends with B, if B got it */
	assert_int_equal(tur(A), SCSI_GOOD);
}

/* SBC-3 table 13: commands whose conflict depends on a field. */
static void test_rows_that_a_field_divides(void **state)
{
	(void)state;
	assert_int_equal(reserve(A), SCSI_GOOD);
	assert_int_equal(RUN(B, 0, 0x1b, 0, 0, 0, 1), SCSI_GOOD);
	assert_int_equal(RUN(B, 0, 0x1b, 0, 0, 0, 0),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(RUN(B, 0, 0x1e, 0, 0, 0, 0), SCSI_GOOD);
	assert_int_equal(RUN(B, 0, 0x1e, 0, 0, 0, 1),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(release(A), SCSI_GOOD);
}

/* The tables of the standards, independent of the command table: the commands
 * that a nexus without a registration may send while another nexus holds a
 * persistent reservation. */
enum {
	ALLOWED,
	READS,
	CONFLICTS
};
static const struct {
	uint8_t op, sa, byte, value; /* of the CDB; value != 0: at `byte` */
	uint8_t what; /* ALLOWED: always; READS: with the Write Exclusive types */
} by_t10[] = {
	/* SPC-4 table 65 */
	{ 0x83, 0x00, 0, 0, CONFLICTS },  /* EXTENDED COPY(LID1) */
	{ 0x12, 0x00, 0, 0, ALLOWED },	  /* INQUIRY */
	{ 0x4c, 0x00, 0, 0, CONFLICTS },  /* LOG SELECT */
	{ 0x4d, 0x00, 2, 0x40, ALLOWED }, /* LOG SENSE */
	{ 0x15, 0x10, 0, 0, CONFLICTS },  /* MODE SELECT */
	{ 0x55, 0x10, 0, 0, CONFLICTS },
	{ 0x1a, 0x00, 2, 0x3f, READS }, /* MODE SENSE */
	{ 0x5a, 0x00, 2, 0x3f, READS },
	{ 0x5e, 0x00, 0, 0, ALLOWED },	 /* PERSISTENT RESERVE IN */
	{ 0x3c, 0x0b, 0, 0, READS },	 /* READ BUFFER */
	{ 0x84, 0x00, 0, 0, ALLOWED },	 /* RECEIVE COPY STATUS(LID1) */
	{ 0x84, 0x03, 0, 0, ALLOWED },	 /* ... OPERATING PARAMETERS */
	{ 0x84, 0x07, 0, 0, ALLOWED },	 /* RECEIVE ROD TOKEN INFORMATION */
	{ 0xa3, 0x05, 0, 0, ALLOWED },	 /* REPORT IDENTIFYING INFORMATION */
	{ 0xa0, 0x00, 9, 16, ALLOWED },	 /* REPORT LUNS */
	{ 0xa3, 0x0e, 0, 0, ALLOWED },	 /* REPORT PRIORITY */
	{ 0xa3, 0x0c, 0, 0, READS },	 /* ... SUPPORTED OPERATION CODES */
	{ 0xa3, 0x0d, 9, 4, READS },	 /* ... TASK MANAGEMENT FUNCTIONS */
	{ 0xa3, 0x0f, 0, 0, ALLOWED },	 /* REPORT TIMESTAMP */
	{ 0x03, 0x00, 0, 0, ALLOWED },	 /* REQUEST SENSE */
	{ 0x1d, 0x00, 0, 0, CONFLICTS }, /* SEND DIAGNOSTIC */
	{ 0xa4, 0x0e, 0, 0, CONFLICTS }, /* SET PRIORITY */
	{ 0xa4, 0x0f, 0, 0, CONFLICTS }, /* SET TIMESTAMP */
	{ 0x00, 0x00, 0, 0, ALLOWED },	 /* TEST UNIT READY */
	{ 0x3b, 0x0a, 0, 0, CONFLICTS }, /* WRITE BUFFER */
	/* SBC-3 table 13 */
	{ 0x89, 0x00, 0, 0, CONFLICTS }, /* COMPARE AND WRITE */
	{ 0x04, 0x00, 0, 0, CONFLICTS }, /* FORMAT UNIT */
	{ 0x9e, 0x12, 0, 0, READS },	 /* GET LBA STATUS */
	{ 0x8b, 0x00, 0, 0, CONFLICTS }, /* ORWRITE */
	{ 0x83, 0x10, 0, 0, READS },	 /* POPULATE TOKEN */
	{ 0x34, 0x00, 0, 0, READS },	 /* PRE-FETCH */
	{ 0x90, 0x00, 0, 0, READS },
	{ 0x1e, 0x00, 0, 0, ALLOWED }, /* PREVENT ALLOW MEDIUM REMOVAL */
	{ 0x1e, 0x00, 4, 1, CONFLICTS },
	{ 0x08, 0x00, 4, 1, READS }, /* READ */
	{ 0x28, 0x00, 0, 0, READS },
	{ 0xa8, 0x00, 0, 0, READS },
	{ 0x88, 0x00, 0, 0, READS },
	{ 0x25, 0x00, 0, 0, ALLOWED }, /* READ CAPACITY */
	{ 0x9e, 0x10, 0, 0, ALLOWED },
	{ 0x37, 0x00, 0, 0, READS }, /* READ DEFECT DATA */
	{ 0xb7, 0x00, 0, 0, READS },
	{ 0x48, 0x1f, 0, 0, CONFLICTS }, /* SANITIZE */
	{ 0x1b, 0x00, 4, 1, ALLOWED },	 /* START STOP UNIT */
	{ 0x1b, 0x00, 0, 0, CONFLICTS },
	{ 0x1b, 0x00, 4, 0x11, CONFLICTS },
	{ 0x35, 0x00, 0, 0, CONFLICTS }, /* SYNCHRONIZE CACHE */
	{ 0x91, 0x00, 0, 0, CONFLICTS },
	{ 0x42, 0x00, 0, 0, CONFLICTS }, /* UNMAP */
	{ 0x2f, 0x00, 0, 0, READS },	 /* VERIFY */
	{ 0xaf, 0x00, 0, 0, READS },
	{ 0x8f, 0x00, 0, 0, READS },
	{ 0x0a, 0x00, 4, 1, CONFLICTS }, /* WRITE */
	{ 0x2a, 0x00, 0, 0, CONFLICTS },
	{ 0xaa, 0x00, 0, 0, CONFLICTS },
	{ 0x8a, 0x00, 0, 0, CONFLICTS },
	{ 0x2e, 0x00, 0, 0, CONFLICTS }, /* WRITE AND VERIFY */
	{ 0xae, 0x00, 0, 0, CONFLICTS },
	{ 0x8e, 0x00, 0, 0, CONFLICTS },
	{ 0x9c, 0x00, 0, 0, CONFLICTS }, /* WRITE ATOMIC */
	{ 0x41, 0x00, 0, 0, CONFLICTS }, /* WRITE SAME */
	{ 0x93, 0x00, 0, 0, CONFLICTS },
	{ 0x83, 0x11, 0, 0, CONFLICTS }, /* WRITE USING TOKEN */
};

static uint64_t some_time(void *arg)
{
	(void)arg;
	return 1;
}

static void no_secret(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	memset(p, 0, n);
}

/* A unit with all commands, also those that need a clock or tokens. */
static int open_with_clock(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three.env.wall_ms = some_time;
	three.env.random = no_secret;
	three_start();
	return 0;
}

static void persist(uint8_t sa, uint8_t type, uint64_t key, uint64_t sa_key)
{
	const uint8_t cdb[16] = { 0x5f, sa, type, [8] = 24 };
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	assert_int_equal(three_run(A, cdb, list, 24, 0), SCSI_GOOD);
}

static void expect_table(bool ea)
{
	for (size_t i = 0; i < ARRAY_LEN(by_t10); i++) {
		uint8_t cdb[16] = { by_t10[i].op, by_t10[i].sa };
		bool conflict = by_t10[i].what == CONFLICTS ||
				(ea && by_t10[i].what == READS);
		int status;

		if (by_t10[i].value)
			cdb[by_t10[i].byte] = by_t10[i].value;
		status = three_run(B, cdb, NULL, 0, 0);
		if ((status == SCSI_RESERVATION_CONFLICT) != conflict)
			fail_msg("%02x/%02x: status %02x", by_t10[i].op,
				 by_t10[i].sa, status);
	}
}

static void test_tables_spc4_65_sbc3_13(void **state)
{
	(void)state;
	persist(0x00, 0, 0, 5); /* REGISTER */
	for (uint8_t type = 1; type < 9; type++) {
		if (type == 2 || type == 4)
			continue;
		persist(0x01, type, 5, 0); /* RESERVE */
		expect_table(type == 3 || type == 6 || type == 8);
		persist(0x02, type, 5, 0); /* RELEASE */
	}
}

/* Each row states its conflict column; a command that writes conflicts with all
 * types. */
static void test_every_row_has_its_column(void **state)
{
	uint8_t probe[16] = { 0 };

	(void)state;
	for (unsigned i = 0; i < DEV_NTYPES * 256 * 32; i++) {
		const struct dev_command *c;
		bool known;

		probe[0] = (uint8_t)(i / 32);
		probe[1] = (uint8_t)(i % 32);
		c = dev_command_find(three.server,
				     (enum dev_type)(i / (256 * 32)), probe,
				     &known);
		if (!c)
			continue;
		if (!(c->flags & RSV_KNOWN))
			fail_msg("%s: no RSV_ flag", c->name);
		if (c->flags & CMD_WRITES)
			assert_int_equal(c->flags & RSV_ALL, RSV_ALL);
		if (c->flags & CMD_ANY_LUN)
			assert_int_equal(c->flags & RSV_ALL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_reserve_and_release_spc2_5_5_1),
		T(test_reserve_is_everywhere_before_good),
		T(test_reserve_race),
		T(test_lu_reset_releases_and_sets_attentions),
		T(test_nexus_loss_releases_spc2_5_5_1),
		T(test_part_then_close),
		T(test_reserved_while_data_came_in),
		T(test_aborted_while_it_waits),
		T(test_rows_that_a_field_divides),
		T(test_every_row_has_its_column),
		cmocka_unit_test_setup_teardown(test_tables_spc4_65_sbc3_13,
						open_with_clock, three_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
