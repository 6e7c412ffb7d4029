/* SPDX-License-Identifier: BSD-2-Clause */
/* alloc_test.c: failing allocations of a queue pair: no crash, no leak, and
 * memory that its owner took back is not read any more. */
#include <stdlib.h>
#include <string.h>

#include "fail_alloc.h"
#include "rcap/iwarp/mr.h"
#include "unit/rcap/peer.h"

static void kick(struct stream_host *host)
{
	(void)host;
}

static void test_each_allocation_of_new(void **state)
{
	struct stream_host host = { kick };
	struct iwarp_config cfg;
	struct iwarp *c = NULL;
	unsigned long n = 0;

	(void)state;
	iwarp_config_default(&cfg, true);
	while (!c) {
		countdown = ++n;
		c = iwarp_new(&cfg, &host, NULL, 0, 0);
	}
	countdown = 0;
	assert_true(n > 5);
	iwarp_free(c);
}

/* The first region allocates the table; without memory a later one does. */
static void test_no_memory_for_regions(void **state)
{
	struct mr_table *t = mr_table_new(8, 1);
	uint8_t data[64];
	struct iovec iov = { data, sizeof(data) };
	const struct bufv v = bufv_of(&iov, 1);
	uint32_t stag = 0;

	(void)state;
	countdown = 1;
	assert_int_equal(mr_register(t, data, &v, 0, 0, &stag), ERR_NOMEM);
	assert_int_equal(mr_invalidate_stream(t, data), 0);
	assert_int_equal(mr_register(t, data, &v, 0, 0, &stag), 0);
	assert_non_null(mr_memory(t, data, stag));
	mr_table_free(t);
}

static void test_no_memory_for_a_copy(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	uint8_t data[512] = { 0 }; /* too long for the arena */
	struct iovec iov = { data, sizeof(data) };
	struct rcap_wr wr = { .op = RCAP_SEND,
			      .flags = RCAP_UNSTABLE,
			      .data = bufv_of(&iov, 1) },
		       *w = &wr;

	(void)state;
	assert_int_equal(rcap_post(p->qp, &w, 1), 0);
	countdown = 1;
	peer_turn(p);
	peer_expect_closed(p, ERR_NOMEM, "no memory");
	assert_int_equal(p->aborted, 1);
	peer_free(p);
}

static const struct seg read_all = { .ctrl = C_READ,
				     .qn = 1,
				     .msn = 1,
				     .read = true,
				     .source = S_READABLE,
				     .source_to = PEER_BASE,
				     .size = PEER_REGION };

/* The owner takes memory back, and its staged part cannot be copied: it is not
 * sent at all. */
static void test_no_memory_to_take_a_region_back(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	struct iovec iov[4];

	(void)state;
	p->stalled = true;
	peer_segment(p, &read_all);
	assert_true(iwarp_stream_ops.tx_what(p->c, iov, 4) > 0);
	countdown = 1;
	rcap_invalidate(p->qp, &p->readable);
	assert_int_equal(countdown, 0);
	memset(p->memory + PEER_REGION, PEER_CANARY, PEER_REGION);
	p->stalled = false;
	peer_turn(p);
	peer_expect_closed(p, ERR_NOMEM, "take a region back");
	peer_free(p); /* searches for the canary in the sent octets */
}

/* The peer invalidates it: a Terminate for a local error without headers (RFC
 * 5040 §4.8 figure 10). */
static void test_no_memory_for_a_remote_invalidation(void **state)
{
	struct peer *p = peer_up(0x5002, 1);
	const struct seg inv = { .ctrl = C_SEND_INV,
				 .stag = S_READABLE,
				 .msn = 1 };
	struct iovec iov[4];

	(void)state;
	p->stalled = true;
	peer_segment(p, &read_all);
	assert_true(iwarp_stream_ops.tx_what(p->c, iov, 4) > 0);
	countdown = 1;
	peer_segment(p, &inv);
	assert_int_equal(countdown, 0);
	assert_int_equal(p->received, 0);
	p->stalled = false;
	peer_turn(p);
	peer_expect_terminate(p, TERM_LOCAL_CATASTROPHIC, NULL, 0, 0, 0);
	peer_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation_of_new),
		cmocka_unit_test(test_no_memory_for_regions),
		cmocka_unit_test(test_no_memory_for_a_copy),
		cmocka_unit_test(test_no_memory_to_take_a_region_back),
		cmocka_unit_test(test_no_memory_for_a_remote_invalidation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
