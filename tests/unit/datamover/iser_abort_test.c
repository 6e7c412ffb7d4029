/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_abort_test.c: Deallocate_Task_Resources in each stage of a READ and a
 * WRITE, for both roles (RFC 7145 §8.3.2, RFC 5047 §8.9): the role gets its
 * memory back when no work request uses it. */
#include "iser_fixture.h"

static struct fixture r;
static uint8_t lent[16384];
static struct iovec lent_iov = { lent, sizeof(lent) };

static void begin(enum iscsi_role role)
{
	const struct iscsi_params p = fixture_params();

	if (role == ISCSI_TARGET)
		fixture_target(&r, DMISER_LINUX, &p);
	else
		fixture_initiator(&r, DMISER_LINUX, &p);
}

/* The role gets its memory back at once. */
static void assert_let_go(struct fixture_task *t)
{
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), 0);
	t->used = false;
	memset(t->buf, 0xdd, sizeof(t->buf));
}

/* ---- target ---- */

static void test_abort_write_before_its_unsolicited_data(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_write(&r, 5, 30000, 1000, false);
	t = fixture_find(&r, 5);
	assert_let_go(t);
	fixture_data_out(&r, 5, 0, 1000, 8192, false);
	fixture_data_out(&r, 5, 1, 9192, 7192, true);
	assert_int_equal(t->seen[DM_UNSOLICITED], 0);
	assert_int_equal(t->buf[1000], 0xdd); /* not changed */
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

static void test_abort_write_between_its_steps(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_write(&r, 5, 8000, 0, true);
	assert_let_go(fixture_find(&r, 5));
	fixture_write(&r, 6, 8000, 0, true);
	t = fixture_find(&r, 6);
	dm_get_data(r.dm, &t->dm, 0, 8000);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_let_go(t);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* RDMA Reads are in progress: the peer may still write to the buffer. */
/* [RFC 7145: 8.3.2 #5-6] [RFC 5047: 10.2.2.1 #1] */
static void test_abort_write_while_reads_are_out(void **state)
{
	struct fixture_task *a, *b;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_write(&r, 5, 65536, 0, true);
	fixture_write(&r, 6, 16384, 0, true);
	a = fixture_find(&r, 5);
	b = fixture_find(&r, 6);
	dm_get_data(r.dm, &a->dm, 0, 65536);
	dm_get_data(r.dm, &b->dm, 0, 16384); /* waits for a Read to end */
	assert_int_equal(r.f.nposted, 4);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &a->dm), ERR_AGAIN);
	fake_rcap_complete(&r.f, 3);
	assert_int_equal(a->seen[DM_RELEASED], 0);
	fake_rcap_complete(&r.f, 1);
	assert_int_equal(a->seen[DM_RELEASED], 1);
	assert_int_equal(a->seen[DM_GET], 0);
	fixture_flush(&r);
	assert_int_equal(b->seen[DM_GET], 1); /* its RDMA Read was posted */
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* Its Reads wait for those of another command: none is posted. */
static void test_abort_write_that_waits_for_its_turn(void **state)
{
	struct fixture_task *a, *b;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_write(&r, 5, 65536, 0, true);
	fixture_write(&r, 6, 16384, 0, true);
	a = fixture_find(&r, 5);
	b = fixture_find(&r, 6);
	dm_get_data(r.dm, &a->dm, 0, 65536);
	dm_get_data(r.dm, &b->dm, 0, 16384);
	assert_let_go(b);
	fixture_flush(&r);
	assert_int_equal(a->seen[DM_GET], 1);
	assert_int_equal(b->seen[DM_GET], 0);
	assert_int_equal(b->buf[0], 0xdd);
	fixture_fini(&r);
}

/* More than iSER-ORD: some Reads are posted, and no more follow. */
static void test_abort_write_half_asked_for(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_TARGET);
	r.params.max_burst_length = 1024;
	dm_notice_key_values(r.dm, &r.params);
	fixture_write(&r, 5, 65536, 0, true);
	t = fixture_find(&r, 5);
	dm_get_data(r.dm, &t->dm, 0, 65536);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	assert_int_equal(dmiser_stats(r.conn)->rdma_reads, 4);
	fixture_fini(&r);
}

/* ABORT TASK during an RDMA Write. */
static void test_abort_read_while_its_write_is_out(void **state)
{
	struct bufv data = bufv_of(&lent_iov, 1);
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_read(&r, 5, sizeof(lent));
	t = fixture_find(&r, 5);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, NULL), 0);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	assert_int_equal(t->seen[DM_RELEASED], 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	assert_int_equal(t->seen[DM_PUT], 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

static void test_abort_read_between_its_steps(void **state)
{
	struct bufv data = bufv_of(&lent_iov, 1);
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_read(&r, 5, sizeof(lent));
	assert_let_go(fixture_find(&r, 5));
	fixture_read(&r, 6, sizeof(lent));
	t = fixture_find(&r, 6);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, NULL), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_PUT], 1);
	assert_let_go(t);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* The connection ends before DM_RELEASED: only Connection_Terminate_Notify is
 * reported. */
/* [RFC 7145: 5.2.2 #5] */
static void test_connection_ends_before_the_release(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_TARGET);
	fixture_write(&r, 5, 16384, 0, true);
	t = fixture_find(&r, 5);
	dm_get_data(r.dm, &t->dm, 0, 16384);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	fake_rcap_close(&r.f, ERR_RESET, "cut");
	assert_int_equal(t->seen[DM_RELEASED], 0);
	assert_int_equal(r.terminate_err, ERR_RESET);
	fixture_fini(&r);
}

/* ---- initiator ---- */

static struct fixture_task *start(uint32_t itt, bool write, uint32_t len)
{
	int err;
	struct fixture_task *t = fixture_start(&r, itt, write, len, 2, &err);

	assert_int_equal(err, 0);
	return t;
}

static void respond(uint32_t itt)
{
	const struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
				     .final = true,
				     .itt = itt };

	fixture_plain_pdu(&r, &p, NULL);
}

/* The target's RDMA does not change a buffer that was released. */
/* [RFC 7145: 7.3.1 #8 #13, 8.3.2 #1-3] */
static void test_abort_command_that_is_out(void **state)
{
	struct fixture_task *t;
	struct fixture_sent *s;
	uint64_t base;
	uint32_t stag;

	(void)state;
	begin(ISCSI_INITIATOR);
	for (int write = 0; write < 2; write++) {
		t = start(5, write, 40000);
		s = fixture_sent_at(&r, 0);
		stag = write ? s->h.write_stag : s->h.read_stag;
		base = write ? s->h.write_base : s->h.read_base;
		fixture_flush(&r);
		assert_int_equal(fake_rcap_valid(&r.f), 1);
		assert_let_go(t);
		assert_int_equal(fake_rcap_valid(&r.f), 0);
		assert_int_equal(fake_rcap_peer_write(&r.f, stag, base, "late",
						      4),
				 ERR_ACCESS);
	}
	/* its response belongs to no task */
	respond(5);
	assert_int_equal(r.ended, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* The Send is in progress and still reads the immediate data. */
static void test_abort_command_before_its_send_is_out(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_INITIATOR);
	t = start(5, true, 40000);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	assert_int_equal(fake_rcap_valid(&r.f), 0); /* at once */
	fake_rcap_complete(&r.f, 1);
	assert_int_equal(t->seen[DM_RELEASED], 0); /* a Data-Out */
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* A response waits for our Send, and then the task is aborted. */
static void test_abort_command_whose_response_is_in(void **state)
{
	unsigned before;
	struct fixture_task *t;

	(void)state;
	begin(ISCSI_INITIATOR);
	before = r.f.nrecvs;
	t = start(5, true, 8192);
	respond(5);
	assert_int_equal(r.f.nrecvs, before - 1);
	assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), ERR_AGAIN);
	assert_int_equal(r.f.nrecvs, before);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RELEASED], 1);
	assert_int_equal(r.ended, 0);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* [RFC 7145: 3.2.4 #1, 5.2.1 #3, 5.2.3.2 #1-3] [RFC 5047: 9.2 #2] */
static void test_connection_ends_with_commands_out(void **state)
{
	(void)state;
	begin(ISCSI_INITIATOR);
	start(5, true, 40000);
	start(6, false, 40000);
	fixture_flush(&r);
	start(7, true, 8192);
	respond(7); /* waits for our Send */
	fake_rcap_close(&r.f, ERR_RESET, "cut");
	assert_int_equal(r.terminated, 1);
	assert_int_equal(r.ended, 0);
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abort_write_before_its_unsolicited_data),
		cmocka_unit_test(test_abort_write_between_its_steps),
		cmocka_unit_test(test_abort_write_while_reads_are_out),
		cmocka_unit_test(test_abort_write_that_waits_for_its_turn),
		cmocka_unit_test(test_abort_write_half_asked_for),
		cmocka_unit_test(test_abort_read_while_its_write_is_out),
		cmocka_unit_test(test_abort_read_between_its_steps),
		cmocka_unit_test(test_connection_ends_before_the_release),
		cmocka_unit_test(test_abort_command_that_is_out),
		cmocka_unit_test(test_abort_command_before_its_send_is_out),
		cmocka_unit_test(test_abort_command_whose_response_is_in),
		cmocka_unit_test(test_connection_ends_with_commands_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
