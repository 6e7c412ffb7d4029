/* SPDX-License-Identifier: BSD-2-Clause */
/* retry_test.c: which refused commands are issued again, and after how long. The
 * same by the tools: interop/test_lying_target.py. */
#include <string.h>

#include "cmocka_all.h"
#include "lib/internal.h"
#include "scsi/cdb.h"

static struct ini_task with_status(uint8_t status, uint16_t qualifier)
{
	return (struct ini_task){ .cdb = { SCSI_WRITE_10 },
				  .status = status,
				  .qualifier = qualifier };
}

static struct ini_task with_sense(uint8_t op, uint8_t key, uint16_t asc,
				  bool deferred)
{
	const struct scsi_sense s = { .key = key,
				      .asc = asc,
				      .deferred = deferred };
	struct ini_task t = { .cdb = { op }, .status = 0x02 };

	t.sense_len = (uint16_t)scsi_sense_build(&s, false, t.sense);
	if (deferred)
		t.sense[0] = 0x71;
	return t;
}

static void test_status(void **state)
{
	static const struct {
		uint8_t status;
		uint16_t qualifier;
		enum lib_refusal why;
	} rows[] = {
		{ 0x00, 0, LIB_FINAL },	    { 0x02, 0, LIB_FINAL },
		{ 0x04, 0, LIB_FINAL },	    { 0x08, 0, LIB_BUSY },
		{ 0x08, 5, LIB_BUSY },	    { 0x08, 0x3ffe, LIB_FINAL },
		{ 0x08, 0x3fff, LIB_BUSY }, { 0x28, 0, LIB_FULL },
		{ 0x28, 0x4001, LIB_FULL }, { 0x28, 0x7ffe, LIB_FINAL },
		{ 0x18, 0, LIB_FINAL },	    { 0x30, 0, LIB_FINAL },
		{ 0x40, 0, LIB_FINAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ini_task t =
			with_status(rows[i].status, rows[i].qualifier);

		assert_int_equal(lib_retry_refusal(&t), rows[i].why);
		t.err = ERR_CLOSED;
		assert_int_equal(lib_retry_refusal(&t), LIB_FINAL);
	}
}

static void test_sense(void **state)
{
	static const struct {
		uint8_t op, key;
		uint16_t asc;
		enum lib_refusal why;
	} rows[] = {
		{ SCSI_READ_10, SENSE_UNIT_ATTENTION, 0x2900, LIB_ATTENTION },
		{ SCSI_COMPARE_AND_WRITE, SENSE_UNIT_ATTENTION, 0x2a09,
		  LIB_ATTENTION },
		/* the medium may be another one */
		{ SCSI_READ_10, SENSE_UNIT_ATTENTION, 0x2800, LIB_FINAL },
		{ SCSI_WRITE_16, SENSE_UNIT_ATTENTION, 0x2800, LIB_FINAL },
		{ SCSI_TEST_UNIT_READY, SENSE_UNIT_ATTENTION, 0x2800,
		  LIB_ATTENTION },
		{ SCSI_READ_CAPACITY_10, SENSE_UNIT_ATTENTION, 0x2800,
		  LIB_ATTENTION },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x0401, LIB_NOT_READY },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x0407, LIB_NOT_READY },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x040a, LIB_NOT_READY },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x0400, LIB_FINAL },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x0402, LIB_FINAL },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x0404, LIB_FINAL },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x041b, LIB_FINAL },
		{ SCSI_READ_10, SENSE_NOT_READY, 0x3a00, LIB_FINAL },
		{ SCSI_READ_10, SENSE_MEDIUM_ERROR, 0x1100, LIB_FINAL },
		{ SCSI_READ_10, SENSE_ILLEGAL_REQUEST, 0x2100, LIB_FINAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ini_task t =
			with_sense(rows[i].op, rows[i].key, rows[i].asc, false);

		assert_int_equal(lib_retry_refusal(&t), rows[i].why);
		/* a deferred error belongs to an earlier command */
		t = with_sense(rows[i].op, rows[i].key, rows[i].asc, true);
		assert_int_equal(lib_retry_refusal(&t), LIB_FINAL);
	}
}

static void test_delay_sam5_5_3_2(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2000; n++) {
		xtime busy = lib_retry_delay(LIB_BUSY, n, 0);
		xtime ready = lib_retry_delay(LIB_NOT_READY, n, 0xffff);

		assert_true(busy >= 10 * XTIME_MS && busy <= XTIME_S);
		assert_true(busy <= lib_retry_delay(LIB_FULL, n + 1, 0));
		assert_true(ready >= 100 * XTIME_MS && ready <= XTIME_S);
	}
	/* units of 100 ms, whatever the scope in bits 15 and 14 */
	assert_int_equal(lib_retry_delay(LIB_BUSY, 0, 7), 700 * XTIME_MS);
	assert_int_equal(lib_retry_delay(LIB_FULL, 0, 0xc007), 700 * XTIME_MS);
	assert_int_equal(lib_retry_delay(LIB_FULL, 0, 0x3fef),
			 0x3fef * 100 * XTIME_MS);
	assert_int_equal(lib_retry_delay(LIB_FULL, 0, 0x3ff0), 10 * XTIME_MS);
	assert_int_equal(lib_retry_delay(LIB_BUSY, 0, 0x3fff), 10 * XTIME_MS);
}

/* ---- commands that wait; none is issued here ---- */

static struct iser_session s;
static struct lib_task lt[3];
static struct iser_io io[3];
static unsigned ended;

static void io_done(struct iser_io *i)
{
	assert_int_equal(i->err, ISER_E_CLOSED);
	ended++;
}

static void open_session(unsigned seconds)
{
	memset(&s, 0, sizeof(s));
	s.ctx = iser_context_new("iqn.2026-01.org.example:i");
	assert_non_null(s.ctx);
	s.url.retry = seconds;
	s.state = SESSION_UP;
	s.ini = (struct ini_session *)(void *)&s; /* not used */
	assert_int_equal(lib_io_init(&s, NULL), 0);
	lib_retry_init(&s);
	ended = 0;
	for (unsigned i = 0; i < 3; i++) {
		io[i] = (struct iser_io){ .lun = (int)i, .done = io_done };
		lt[i] = (struct lib_task){ .io = &io[i] };
	}
}

static void close_session(void)
{
	lib_retry_fail(&s, ISER_E_CLOSED);
	lib_io_fini(&s);
	iser_context_free(s.ctx);
}

static void test_refused_commands_hold_their_unit(void **state)
{
	(void)state;
	open_session(30);
	lt[0].task = with_status(0x08, 0);
	lt[1].task = with_status(0x28, 0);
	lt[2].task = with_sense(SCSI_READ_10, SENSE_NOT_READY, 0x0401, false);
	for (unsigned i = 0; i < 3; i++) {
		assert_false(lib_retry_holds(&s, (int)i));
		assert_true(lib_retry_takes(&s, &lt[i]));
		/* a unit that becomes ready refuses each command itself */
		assert_int_equal(lib_retry_holds(&s, (int)i), i != 2);
	}
	close_session();
	assert_int_equal(ended, 3); /* each command has ended */
	assert_false(lib_retry_holds(&s, 0));
}

static void test_status_that_is_the_callers(void **state)
{
	(void)state;
	open_session(30);
	for (unsigned i = 0; i < 2; i++) {
		io[i].no_retry = true;
		lt[i].task = with_status(i ? 0x28 : 0x08, 0);
		assert_false(lib_retry_takes(&s, &lt[i]));
	}
	io[2].no_retry = true;
	lt[2].task =
		with_sense(SCSI_READ_10, SENSE_UNIT_ATTENTION, 0x2900, false);
	assert_false(lib_retry_takes(&s, &lt[2]));
	/* reconnect.c handles a lost session */
	s.state = SESSION_AWAY;
	io[0].no_retry = false;
	assert_false(lib_retry_takes(&s, &lt[0]));
	close_session();
	open_session(0);
	lt[0].task = with_status(0x08, 0);
	assert_false(lib_retry_takes(&s, &lt[0]));
	close_session();
	assert_int_equal(ended, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_sense),
		cmocka_unit_test(test_delay_sam5_5_3_2),
		cmocka_unit_test(test_refused_commands_hold_their_unit),
		cmocka_unit_test(test_status_that_is_the_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
