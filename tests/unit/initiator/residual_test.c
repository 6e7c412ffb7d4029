/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * residual_test.c: the residual of a response decides how a command ends
 * (RFC 7143 §11.4.1, §11.4.5.1). These tests run over iSER, where only the
 * residual shows how much moved; sim/lying_test.c has the same over TCP.
 */
#include "unit/initiator/fixture.h"

#define U ISCSI_RESID_UNDERFLOW
#define O ISCSI_RESID_OVERFLOW

static struct ini_task task;
static uint8_t block[512];
static struct iovec iov = { block, 512 };
static unsigned ended;

static void task_done(struct ini_task *t)
{
	(void)t;
	ended++;
}

struct answer {
	uint8_t flags;
	uint32_t resid;
	uint8_t status;
	bool short_ok;
	int err;
	uint32_t moved;
};

static void run(const struct answer *a, enum scsi_opcode op)
{
	struct iscsi_pdu in = { .op = ISCSI_SCSI_RESPONSE,
				.final = true,
				.expcmdsn = 2,
				.maxcmdsn = 16 };
	bool read = op == SCSI_READ_10, write = op == SCSI_WRITE_10;

	ended = 0;
	begin();
	ANSWER(USUAL);
	task = (struct ini_task){ .cdb = { (uint8_t)op, [8] = 1 },
				  .cdb_len = 10,
				  .read = read,
				  .write = write,
				  .short_ok = a->short_ok,
				  .deadline = XTIME_NEVER,
				  .done = task_done };
	if (read)
		task.in = bufv_of(&iov, 1);
	if (write)
		task.out = bufv_of(&iov, 1);
	ini_submit(s, &task, 0);
	in.itt = sent(0, NULL, 0).itt;
	in.statsn = statsn++;
	in.rsp.status = a->status;
	in.rsp.resid_flags = a->flags;
	in.rsp.resid = a->resid;
	flush();
	deliver(&in, NULL);
	assert_int_equal(ended, 1);
	assert_int_equal(task.err, a->err);
	assert_int_equal(task.status, a->status);
	assert_int_equal(task.moved, a->moved);
	assert_false(is_closed); /* only the command fails */
	end();
}

/* [RFC 7143: 11.4.5.1 #2] */
static void test_residual_rfc7143_11_4_5_1(void **state)
{
	static const struct answer rows[] = {
		{ 0, 0, 0, false, 0, 512 },
		{ 0, 99, 0, false, 0,
		  512 }, /* no flag: the residual is ignored */
		{ U, 0, 0, false, 0, 512 },
		{ O, 0, 0, false, 0, 512 },
		{ U, 1, 0, false, ERR_SHORT, 511 },
		{ U, 1, 0, true, 0, 511 },
		{ U, 512, 0, false, ERR_SHORT, 0 },
		{ U, 512, 0, true, 0, 0 },
		{ U, 1, 4, false, ERR_SHORT, 511 }, /* CONDITION MET */
		/* any other status is an error already */
		{ U, 512, 0x02, false, 0, 0 },
		{ U, 100, 0x08, false, 0, 412 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		run(&rows[i], SCSI_READ_10);
		run(&rows[i], SCSI_WRITE_10);
	}
}

/* All bytes moved, and the target has more: a READ may be shorter than what there is. A
 * WRITE that wanted more data is not complete, whatever its status says. */
/* [RFC 7143: 11.4.5.1 #2] */
static void test_overflow_rfc7143_11_4_5_1(void **state)
{
	static const struct answer read = { O, 512, 0, false, 0, 512 },
				   rows[] = {
					   { O, 1, 0, false, ERR_OVERFLOW,
					     512 },
					   { O, 3584, 0, false, ERR_OVERFLOW,
					     512 },
					   { O, 1, 0, true, 0, 512 },
					   { O, 1, 0x02, false, 0, 512 },
				   };

	(void)state;
	run(&read, SCSI_READ_10);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		run(&rows[i], SCSI_WRITE_10);
}

/* Both flags, and a residual above the expected length, are protocol errors,
 * also for callers with short_ok. */
static void test_residual_that_can_not_be_rfc7143_11_4_1(void **state)
{
	static const struct answer rows[] = {
		{ U | O, 0, 0, true, ERR_RESIDUAL, 0 },
		{ U | O, 1, 0, false, ERR_RESIDUAL, 0 },
		{ U, 513, 0, true, ERR_RESIDUAL, 0 },
		{ U, UINT32_MAX, 0, false, ERR_RESIDUAL, 0 },
		{ ISCSI_RESID_BIDI_UNDERFLOW | ISCSI_RESID_BIDI_OVERFLOW, 0, 0,
		  false, ERR_RESIDUAL, 0 },
		{ U | O, 1, 0x02, false, 0, 0 },
		{ U, 513, 0x28, false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		run(&rows[i], SCSI_READ_10);
		run(&rows[i], SCSI_WRITE_10);
	}
}

/* Random responses against a second version of the rule: a success has a
 * possible residual, and counts no byte that the residual excludes. The seed
 * is printed. */
static void test_any_residual(void **state)
{
	static const uint8_t flags[] = { 0, 0, U, U, O, U | O };
	uint32_t seed = 20261122, good = 0, shorts = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct answer a = { .moved = 512 };

		seed = seed * 1664525u + 1013904223u;
		a.flags = flags[(seed >> 8) % ARRAY_LEN(flags)];
		a.resid = (seed >> 12) % 8 ? (seed >> 15) % 514 : UINT32_MAX;
		a.short_ok = seed >> 31;
		if (a.flags == (U | O) || (a.flags == U && a.resid > 512)) {
			a.err = ERR_RESIDUAL;
			a.moved = 0;
		} else if (a.flags == U) {
			a.moved = 512 - a.resid;
			a.err = a.resid && !a.short_ok ? ERR_SHORT : 0;
		} else if (a.flags == O && a.resid && !a.short_ok && !(i % 2)) {
			a.err = ERR_OVERFLOW;
		}
		good += a.err == 0;
		shorts += a.err == ERR_SHORT;
		run(&a, i % 2 ? SCSI_READ_10 : SCSI_WRITE_10);
	}
	assert_true(good > 500 && shorts > 300);
}

static void test_residual_of_no_data(void **state)
{
	static const struct answer rows[] = {
		{ 0, 0, 0, false, 0, 0 },
		{ O, 36, 0, false, 0, 0 },
		{ U, 1, 0, false, ERR_RESIDUAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		run(&rows[i], SCSI_TEST_UNIT_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_residual_rfc7143_11_4_5_1),
		cmocka_unit_test(test_overflow_rfc7143_11_4_5_1),
		cmocka_unit_test(test_residual_that_can_not_be_rfc7143_11_4_1),
		cmocka_unit_test(test_any_residual),
		cmocka_unit_test(test_residual_of_no_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
