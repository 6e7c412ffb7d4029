/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx_state_test.c: the state machine that receives PDUs over TCP: which
 * transitions exist, and what its sanity function accepts in each state.
 */
#include "datamover/tcp/rx_state.h"

#include <string.h>

#include "cmocka_all.h"

#define RX_STATES (RX_STOPPED + 1)

/* A PDU passes header, payload and trailer; a PDU without data has no payload
 * state; a payload that has no place waits before it is read. */
static void test_transitions(void **state)
{
	static const char *const rows[RX_STATES] = {
		[RX_HEADER] = "-PTH-S",	 [RX_PAYLOAD] = "--T--S",
		[RX_TRAILER] = "H----S", [RX_HELD] = "----RS",
		[RX_RESUMED] = "-PT--S", [RX_STOPPED] = "-----S",
	};

	(void)state;
	for (unsigned from = 0; from < RX_STATES; from++)
		for (unsigned to = 0; to < RX_STATES; to++)
			assert_int_equal(!!(dmtcp_rx_may_go[from] & BIT(to)),
					 rows[from][to] != '-');
}

static struct dmtcp_conn conn;
static struct dm_task task;
static uint8_t byte;

/* A connection in the given state, with nothing that contradicts it. */
static struct rx *rx_in(enum rx_state s)
{
	struct rx *r = &conn.rx;

	memset(&conn, 0, sizeof(conn));
	memset(&task, 0, sizeof(task));
	r->state = s;
	r->left = s == RX_PAYLOAD;
	r->task = s == RX_HELD ? &task : NULL;
	task.held = s == RX_HELD;
	conn.fate = s == RX_STOPPED ? STREAM_CLOSE : STREAM_GO;
	assert_true(dmtcp_rx_is_sane(&conn));
	return r;
}

static void test_between_pdus_nothing_is_open(void **state)
{
	struct burst b = { 0 };

	(void)state;
	rx_in(RX_HEADER)->task = &task;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_HEADER)->burst = &b;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_HEADER)->collect = &byte;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_HEADER)->left = 1;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_HEADER)->direct = 1;
	assert_false(dmtcp_rx_is_sane(&conn));
}

static void test_payload_and_trailer(void **state)
{
	struct rx *r = rx_in(RX_PAYLOAD);

	(void)state;
	r->task = &task;
	assert_true(dmtcp_rx_is_sane(&conn));
	r->collect = &byte; /* two places */
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_PAYLOAD)->left = 0;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_TRAILER)->left = 1;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_TRAILER)->direct = 1;
	assert_false(dmtcp_rx_is_sane(&conn));
}

static void test_held_and_resumed(void **state)
{
	(void)state;
	rx_in(RX_HELD)->task = NULL;
	assert_false(dmtcp_rx_is_sane(&conn));
	rx_in(RX_HELD);
	task.held = false;
	assert_false(dmtcp_rx_is_sane(&conn));
	conn.rx.state = RX_RESUMED;
	assert_true(dmtcp_rx_is_sane(&conn));
	task.held = true;
	assert_false(dmtcp_rx_is_sane(&conn));
	conn.rx.task = NULL; /* aborted */
	assert_true(dmtcp_rx_is_sane(&conn));
}

static void test_stopped_has_a_reason(void **state)
{
	(void)state;
	rx_in(RX_STOPPED);
	conn.fate = STREAM_FLUSH;
	assert_true(dmtcp_rx_is_sane(&conn));
	conn.fate = STREAM_GO;
	assert_false(dmtcp_rx_is_sane(&conn));
	conn.leaving = true;
	assert_true(dmtcp_rx_is_sane(&conn));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_between_pdus_nothing_is_open),
		cmocka_unit_test(test_payload_and_trailer),
		cmocka_unit_test(test_held_and_resumed),
		cmocka_unit_test(test_stopped_has_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
