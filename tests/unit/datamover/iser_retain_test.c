/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_retain_test.c: ErrorRecoveryLevel 2 over iSER: responses that wait for ExpStatSN,
 * tasks that go on over another connection (RFC 7145 §7.3.3, §10.2.2). */
#include "iscsi/keys.h"
#include "iser_fixture.h"

#define NEW_READ_STAG  0x01010101u
#define NEW_WRITE_STAG 0x02020202u

static struct fixture r;   /* the connection */
static struct fixture old; /* the lost connection */
static uint8_t lent[FIXTURE_BUF];
static struct iovec lent_iov;

static struct bufv data_of(uint32_t len)
{
	for (size_t i = 0; i < sizeof(lent); i++)
		lent[i] = fixture_byte(i + 3);
	lent_iov = (struct iovec){ lent, len };
	return bufv_of(&lent_iov, 1);
}

static struct iscsi_params params(uint8_t level)
{
	struct iscsi_params p = fixture_params();

	p.error_recovery_level = level;
	return p;
}

static void begin(struct fixture *f, uint8_t level)
{
	const struct iscsi_params p = params(level);

	fixture_target(f, DMISER_LINUX, &p);
	f->numbers.statsn = 101; /* the response of each test has 100 */
}

static void acknowledge(uint32_t expstatsn)
{
	const struct iscsi_pdu p = { .op = ISCSI_NOP_OUT,
				     .immediate = true,
				     .final = true,
				     .itt = ISCSI_RESERVED_TAG,
				     .ttt = ISCSI_RESERVED_TAG,
				     .cmdsn = 7,
				     .expstatsn = expstatsn };

	fixture_plain_pdu(&r, &p, NULL);
}

/* ---- responses ---- */

/* [RFC 7143: 4.2.2.2 #3] */
static void
test_a_response_is_kept_until_acknowledged_rfc7143_4_2_2_2(void **state)
{
	struct bufv data = data_of(4096);
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	assert_true(r.dm->retains);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(100);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(102); /* was not sent */
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	acknowledge(101);
	fixture_expect_alive(&r);
	fixture_fini(&r);
}

/* The buffer is in use until the Send is completed, whatever the initiator says. */
static void test_acknowledged_before_the_completion(void **state)
{
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* The ExpStatSN of a Logout is that of the connection to be closed. */
static void test_a_logout_of_another_connection_rfc7143_11_14_4(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGOUT_REQUEST,
			       .immediate = true,
			       .final = true,
			       .itt = 9,
			       .cmdsn = 7,
			       .expstatsn = 101 };
	struct fixture_task *t;

	(void)state;
	begin(&r, 2);
	fixture_read(&r, 5, 4096);
	t = fixture_find(&r, 5);
	assert_int_equal(fixture_respond(&r, t, 0), 0);
	fixture_flush(&r);
	p.logout.reason = ISCSI_LOGOUT_RECOVERY;
	p.logout.cid = 1;
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	p.logout.reason = ISCSI_LOGOUT_SESSION;
	fixture_plain_pdu(&r, &p, NULL);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* §10.2.1: nothing is sent again below level 2. */
static void test_lower_levels_keep_nothing_rfc7145_10_2_1(void **state)
{
	(void)state;
	for (uint8_t level = 0; level < 2; level++) {
		struct fixture_task *t;

		begin(&r, level);
		assert_false(r.dm->retains);
		fixture_read(&r, 5, 4096);
		t = fixture_find(&r, 5);
		assert_int_equal(fixture_respond(&r, t, 0), 0);
		fixture_flush(&r);
		assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
		fixture_fini(&r);
	}
}

/* A connection that was a byte stream during the login. */
static void test_level_2_after_a_login_over_a_stream(void **state)
{
	struct iscsi_params p = params(2);

	(void)state;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	assert_true(r.dm->retains);
	fixture_up(&r);
	fixture_fini(&r);
	p.error_recovery_level = 1;
	fixture_switched(&r, ISCSI_TARGET, DMISER_STRICT, &p);
	assert_false(r.dm->retains);
	fixture_up(&r);
	fixture_fini(&r);
}

/* ---- the task goes on: target ---- */

/* The old connection is lost, and its task becomes one of r. */
static struct fixture_task *move(uint32_t itt)
{
	struct fixture_task *from = fixture_find(&old, itt);
	struct fixture_task *t = &r.task[0];

	fake_rcap_close(&old.f, ERR_RESET, "lost");
	*t = *from;
	t->dm.out = bufv_of(t->iov, from->dm.out.n);
	t->iov[0].iov_base = t->buf;
	memset(t->seen, 0, sizeof(t->seen));
	fixture_fini(&old);
	return t;
}

/* Delivers a TASK REASSIGN with these STags. */
static void reassign(uint32_t itt, bool write, bool read)
{
	struct iscsi_pdu p = { .op = ISCSI_TMF_REQUEST,
			       .immediate = true,
			       .final = true,
			       .itt = 77,
			       .cmdsn = 7,
			       .expstatsn = 100 };
	struct iser_header h = fixture_plain();

	p.tmf.function = ISCSI_TMF_TASK_REASSIGN;
	p.tmf.rtt = itt;
	h.wsv = write;
	h.rsv = read;
	h.write_stag = write ? NEW_WRITE_STAG : 0;
	h.read_stag = read ? NEW_READ_STAG : 0;
	h.write_base = write ? 0x7000 : 0;
	h.read_base = read ? 0x9000 : 0;
	fake_rcap_remote(&r.f, NEW_READ_STAG, 0x9000, r.peer_in, FIXTURE_BUF);
	fake_rcap_remote(&r.f, NEW_WRITE_STAG, 0x7000, r.peer_out, FIXTURE_BUF);
	fixture_deliver(&r, &h, &p, NULL);
	assert_true(r.has_remote);
}

/* [RFC 7145: 7.3.3 #11-13, 10.2.2 #2] */
static void test_a_read_with_new_stags_rfc7145_7_3_3(void **state)
{
	struct bufv data = data_of(4096);
	struct iscsi_pdu rsp;
	struct fixture_task *t;
	struct rcap_wr *wr;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	fixture_read(&old, 5, 4096);
	t = fixture_find(&old, 5);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(old.dm, &t->dm, &data, 0, &rsp), 0);
	fixture_flush(&old);
	t = move(5);
	reassign(5, false, true);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp), 0);
	assert_int_equal(r.f.nposted, 2);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->op, RCAP_WRITE);
	assert_int_equal(wr->stag, NEW_READ_STAG);
	assert_true(wr->to == 0x9000);
	fixture_flush(&r);
	assert_memory_equal(r.peer_in, lent, 4096);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 0);
	acknowledge(101);
	assert_int_equal(t->seen[DM_RESPONSE_SENT], 1);
	fixture_fini(&r);
}

/* RDMA Reads that came before the loss are not repeated. */
/* [RFC 7145: 7.3.3 #11-13, 10.2.2 #3-4] */
static void test_a_write_goes_on_where_it_was_rfc7145_10_2_2(void **state)
{
	struct fixture_task *t;
	struct rcap_wr *wr;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	fixture_write(&old, 5, 40000, 0, true);
	t = fixture_find(&old, 5);
	assert_int_equal(dm_get_data(old.dm, &t->dm, 0, 40000), 0);
	assert_true(fake_rcap_complete(&old.f, 1)); /* MaxBurstLength: 16384 */
	assert_int_equal(t->dm.out_done, 16384);
	t = move(5);
	assert_int_equal(t->dm.out_done, 16384);
	reassign(5, true, false);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(r.f.nposted, 0); /* the role asks for the rest */
	assert_int_equal(t->dm.out_done, 16384);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 16384, 40000 - 16384), 0);
	wr = fake_rcap_wr(&r.f, 0);
	assert_int_equal(wr->stag, NEW_WRITE_STAG);
	assert_true(wr->to == 0x7000 + 16384);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	for (uint32_t i = 0; i < 40000; i++)
		assert_int_equal(t->buf[i], fixture_byte(i));
	fixture_fini(&r);
}

/* §9.2: the Write STag of a TASK REASSIGN names the data that the command did not carry;
 * the key says whether its Base Offset counts from those or from the first byte. */
static void
test_immediate_data_are_not_asked_for_again_rfc7145_9_2(void **state)
{
	(void)state;
	for (unsigned yes = 0; yes < 2; yes++) {
		struct iscsi_params p = params(2);
		struct fixture_task *t;

		p.tagged_buffer_for_solicited_data_only = yes;
		p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
		fixture_target(&old, DMISER_LINUX, &p);
		fixture_target(&r, DMISER_LINUX, &p);
		/* 1000 bytes at once and some unsolicited ones, which are late */
		fixture_write(&old, 5, 6000, 1000, false);
		fixture_data_out(&old, 5, 0, 1000, 500, false);
		t = move(5);
		assert_int_equal(t->dm.out_done, 1500);
		reassign(5, true, false);
		dm_adopt(r.dm, &t->dm, 0, &r.remote);
		assert_int_equal(t->dm.out_done, 1500);
		assert_int_equal(dm_get_data(r.dm, &t->dm, 1500, 4500), 0);
		assert_true(fake_rcap_wr(&r.f, 0)->to ==
			    0x7000u + (yes ? 500 : 1500));
		fixture_fini(&r);
	}
}

/* Data that were not permitted stay an error of the command. */
static void test_an_error_of_the_data_stays(void **state)
{
	struct iscsi_params p = params(2);
	struct fixture_task *t;

	(void)state;
	p.immediate_data = false;
	p.tagged_buffer_for_solicited_data_only = true;
	p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
	fixture_target(&old, DMISER_LINUX, &p);
	fixture_target(&r, DMISER_LINUX, &p);
	fixture_write(&old, 5, 6000, 1000, false);
	t = move(5);
	reassign(5, true, false);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(t->dm.out_done, 1000);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 1000, 5000), 0);
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	assert_int_equal(t->err, ERR_PROTOCOL);
	fixture_fini(&r);
}

/* ABORT TASK, and a TASK REASSIGN that names no buffer: no data can be transferred. */
static void test_without_stags(void **state)
{
	struct bufv data = data_of(512);
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	(void)state;
	begin(&old, 2);
	begin(&r, 2);
	fixture_read(&old, 5, 512);
	t = move(5);
	dm_adopt(r.dm, &t->dm, 0, NULL);
	rsp = fixture_response(t);
	assert_int_equal(dm_put_data(r.dm, &t->dm, &data, 0, &rsp),
			 ERR_PROTOCOL);
	assert_int_equal(fixture_respond(&r, t, 20), 0);
	assert_int_equal(r.f.nposted, 1);
	fixture_fini(&r);
	begin(&old, 2);
	begin(&r, 2);
	fixture_write(&old, 5, 512, 0, true);
	t = move(5);
	reassign(5, false, false);
	dm_adopt(r.dm, &t->dm, 0, &r.remote);
	assert_int_equal(dm_get_data(r.dm, &t->dm, 0, 512), 0);
	fixture_expect_ended(&r, ERR_FORMAT, "9.2");
	fixture_fini(&r);
}

/* Only task management functions bring such a mapping. */
static void test_other_pdus_bring_no_mapping(void **state)
{
	(void)state;
	begin(&r, 2);
	acknowledge(100);
	assert_false(r.has_remote);
	fixture_fini(&r);
}

/* ---- the task goes on: initiator ---- */

/* A command of the old connection, which is lost, goes on over r. */
static struct fixture_task *move_command(bool write, uint32_t len, bool yes)
{
	struct iscsi_params p = params(2);
	struct fixture_task *t;
	uint32_t immediate;
	int err;

	p.initial_r2t = true;
	p.tagged_buffer_for_solicited_data_only = yes;
	p.declared = 1ull << ISCSI_K_TAGGED_BUFFER;
	fixture_initiator(&old, DMISER_LINUX, &p);
	fixture_initiator(&r, DMISER_LINUX, &p);
	t = fixture_start(&old, 5, write, len, 1, &err);
	assert_int_equal(err, 0);
	fixture_flush(&old);
	immediate = t->dm.immediate;
	t = &r.task[0];
	*t = *fixture_find(&old, 5);
	t->iov[0].iov_base = t->buf;
	if (write)
		t->dm.out = bufv_of(t->iov, 1);
	else
		t->dm.in = bufv_of(t->iov, 1);
	fake_rcap_close(&old.f, ERR_RESET, "lost");
	fixture_fini(&old); /* checks that no STag is valid any more */
	dm_task_init(&t->dm);
	t->dm.immediate = immediate;
	t->dm.moved = true;
	return t;
}

static int ask(struct fixture_task *t)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TMF_REQUEST,
					   .immediate = true,
					   .final = true,
					   .itt = 99 },
				  .reassigned = &t->dm };

	ctl.pdu.tmf.function = ISCSI_TMF_TASK_REASSIGN;
	ctl.pdu.tmf.rtt = t->dm.itt;
	return dm_send_control(r.dm, NULL, &ctl);
}

/* [RFC 7145: 7.3.3 #3-8, 8.3.1 #1] */
static void test_a_read_is_advertised_again_rfc7145_7_3_3(void **state)
{
	struct fixture_task *t;
	struct fixture_sent *s;
	struct iscsi_pdu rsp;
	uint32_t first;
	uint8_t b[4] = { 1, 2, 3, 4 };

	(void)state;
	t = move_command(false, 5000, true);
	assert_int_equal(ask(t), 0);
	s = fixture_sent_at(&r, 0);
	assert_int_equal(s->pdu.op, ISCSI_TMF_REQUEST);
	assert_int_equal(s->pdu.tmf.rtt, 5);
	assert_int_equal(s->pdu.expstatsn, 55);
	assert_true(s->h.rsv && !s->h.wsv);
	first = s->h.read_stag;
	fixture_flush(&r);
	/* a second one replaces its STag */
	assert_int_equal(ask(t), 0);
	s = fixture_sent_at(&r, 0);
	assert_true(s->h.rsv);
	assert_int_equal(fake_rcap_valid(&r.f), 1);
	assert_int_equal(fake_rcap_peer_write(&r.f, first, s->h.read_base, b,
					      4),
			 ERR_ACCESS);
	assert_int_equal(fake_rcap_peer_write(&r.f, s->h.read_stag,
					      s->h.read_base, b, 4),
			 0);
	assert_memory_equal(t->buf, b, 4);
	fixture_flush(&r);
	rsp = fixture_response(t);
	fixture_plain_pdu(&r, &rsp, NULL);
	assert_int_equal(r.ended, 1);
	assert_int_equal(t->stags_left, 0);
	assert_int_equal(t->dm.in_done, 5000);
	fixture_fini(&r);
}

/* [RFC 7145: 7.3.3 #3-8, 10.2.2 #1] */
static void test_a_write_is_advertised_again_rfc7145_10_2_2(void **state)
{
	(void)state;
	for (unsigned yes = 0; yes < 2; yes++) {
		struct fixture_task *t = move_command(true, 20000, yes);
		struct fixture_sent *s;
		uint8_t b[16];

		assert_int_equal(t->dm.immediate, 8192);
		assert_int_equal(ask(t), 0);
		s = fixture_sent_at(&r, 0);
		assert_int_equal(s->pdu.dsl, 0);
		assert_true(s->h.wsv && !s->h.rsv);
		assert_int_equal(fake_rcap_peer_read(&r.f, s->h.write_stag,
						     s->h.write_base, b, 16),
				 0);
		for (uint32_t k = 0; k < 16; k++)
			assert_int_equal(b[k],
					 fixture_byte((yes ? 8192 : 0) + k));
		/* the role gives the task up: the STags go with it */
		fixture_flush(&r);
		assert_int_equal(dm_deallocate_task_resources(r.dm, &t->dm), 0);
		assert_int_equal(fake_rcap_valid(&r.f), 0);
		fixture_fini(&r);
	}
}

/* All data went with the command: there is nothing to advertise. */
static void test_a_write_of_immediate_data_needs_no_stag(void **state)
{
	struct fixture_task *t = move_command(true, 4096, true);
	struct fixture_sent *s;

	(void)state;
	assert_int_equal(ask(t), 0);
	s = fixture_sent_at(&r, 0);
	assert_false(s->h.wsv || s->h.rsv);
	fixture_fini(&r);
}

static void test_no_region_for_a_reassignment(void **state)
{
	struct fixture_task *t = move_command(false, 4096, true);

	(void)state;
	r.f.fail_regs = 1;
	assert_int_equal(ask(t), ERR_BUSY);
	assert_int_equal(r.f.nposted, 0);
	assert_int_equal(fake_rcap_valid(&r.f), 0);
	fixture_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_response_is_kept_until_acknowledged_rfc7143_4_2_2_2),
		cmocka_unit_test(test_acknowledged_before_the_completion),
		cmocka_unit_test(
			test_a_logout_of_another_connection_rfc7143_11_14_4),
		cmocka_unit_test(test_lower_levels_keep_nothing_rfc7145_10_2_1),
		cmocka_unit_test(test_level_2_after_a_login_over_a_stream),
		cmocka_unit_test(test_a_read_with_new_stags_rfc7145_7_3_3),
		cmocka_unit_test(
			test_a_write_goes_on_where_it_was_rfc7145_10_2_2),
		cmocka_unit_test(
			test_immediate_data_are_not_asked_for_again_rfc7145_9_2),
		cmocka_unit_test(test_an_error_of_the_data_stays),
		cmocka_unit_test(test_without_stags),
		cmocka_unit_test(test_other_pdus_bring_no_mapping),
		cmocka_unit_test(test_a_read_is_advertised_again_rfc7145_7_3_3),
		cmocka_unit_test(
			test_a_write_is_advertised_again_rfc7145_10_2_2),
		cmocka_unit_test(test_a_write_of_immediate_data_needs_no_stag),
		cmocka_unit_test(test_no_region_for_a_reassignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
