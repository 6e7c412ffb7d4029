/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_time_test.c: datamover/tcp leaves input where it is once the driver says that the time of
 * the turn is used up, and goes on in the next call of rx_where. */
#include "raw.h"

static struct raw r;
static unsigned asked, asked_control; /* calls of is_spent */
static unsigned permits;	      /* so many more of them return false */

static bool is_spent(struct stream_host *host, bool control)
{
	(void)host;
	asked++;
	asked_control += control;
	if (permits > 0)
		permits--;
	else
		return true;
	return false;
}

static void begin(void)
{
	struct iscsi_params k = raw_params();

	raw_init(&r, ISCSI_TARGET, &k);
	raw_login(&r);
	r.host.is_spent = is_spent;
	asked = asked_control = 0;
}

/* Feeds n PDUs in one read. */
static void feed_all(const struct iscsi_pdu *p, const void *data, unsigned n)
{
	static uint8_t bytes[65536];
	size_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += raw_encode(&r, p, data, RAW_GOOD, bytes + len);
	raw_feed(&r, bytes, len);
}

/* The next turn; returns whether the connection takes more input. */
static bool turn(unsigned more)
{
	struct iovec iov[16];

	permits = more;
	return dmtcp_stream_ops.rx_where(r.conn, iov, 16) > 0;
}

/* The fake target reports each PDU that no task expects. */
static void test_spent_after_each_control_pdu(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN, .final = true, .itt = 5 };

	(void)state;
	begin();
	permits = 2;
	feed_all(&p, NULL, 9);
	assert_int_equal(r.role.errors, 3);
	assert_int_equal(asked_control, 3);
	raw_fetch(&r); /* output does not go on with the input */
	assert_int_equal(r.role.errors, 3);
	assert_false(turn(0));
	assert_int_equal(r.role.errors, 4);
	assert_false(turn(3));
	assert_int_equal(r.role.errors, 8);
	assert_true(turn(9));
	assert_int_equal(r.role.errors, 9);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

/* A Data-Out with less than a block counts as a control PDU. */
static void test_data_outs_of_a_few_bytes_are_control(void **state)
{
	static const uint8_t data[512];
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT, .itt = 7, .dsl = 4 };

	(void)state;
	begin();
	permits = 99;
	feed_all(&p, data, 3);
	assert_int_equal(asked_control, 3);
	p.dsl = 512;
	feed_all(&p, data, 3);
	assert_int_equal(asked, 3);
	raw_fini(&r);
}

/* Commands and their data are asked for rarely, and before a control PDU, which is not
 * charged for them. */
static void test_commands_ask_rarely(void **state)
{
	static const uint8_t data[512];
	struct iscsi_pdu p = {
		.op = ISCSI_SCSI_COMMAND, .final = true, .itt = 9, .dsl = 512
	};
	struct iscsi_pdu bad = { .op = ISCSI_NOP_IN, .final = true, .itt = 5 };

	(void)state;
	begin();
	p.cmd.write = true;
	p.cmd.edtl = 512;
	permits = 99;
	for (unsigned i = 0; i < 80; i++) {
		p.itt = 100 + i;
		feed_all(&p, data, 1);
		raw_fetch(&r);
	}
	assert_int_equal(r.nout, 80);
	assert_in_range(asked, 1, 4);
	assert_int_equal(asked_control, 0);
	feed_all(&p, data, 1);
	asked = 0;
	feed_all(&bad, NULL, 1);
	assert_int_equal(asked, 2);
	assert_int_equal(asked_control, 1);
	raw_fini(&r);
}

/* The end of the connection frees what waits. */
static void test_spent_then_closed(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN, .final = true, .itt = 5 };

	(void)state;
	begin();
	permits = 0;
	feed_all(&p, NULL, 9);
	raw_close(&r, ERR_RESET);
	assert_false(turn(9));
	assert_int_equal(r.role.errors, 1);
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spent_after_each_control_pdu),
		cmocka_unit_test(test_data_outs_of_a_few_bytes_are_control),
		cmocka_unit_test(test_commands_ask_rarely),
		cmocka_unit_test(test_spent_then_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
