/* SPDX-License-Identifier: BSD-2-Clause */
/* await_test.c: Data-Outs that do not come: the sequence reception timeout of a target
 * (RFC 7143 §7.1.4.1, §11.8). */
#include "recovery_target.h"

/* So many seconds pass, in which nothing comes. */
static void wait(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		xtime at = stream_deadline_of(&dmtcp_stream_ops, r.conn);

		nseen = 0;
		if (at != XTIME_NEVER)
			dmtcp_stream_ops.expire(r.conn, at);
		fetch();
		if (nseen)
			return;
	}
}

/* The R2T is lost, or all its data. Data that come later are discarded, and not
 * rejected. */
/* [RFC 7143: 7.9 #2] */
static void test_lost_r2t_rfc7143_7_1_4_1(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt, late;

	(void)state;
	begin_write(&k, BURST);
	late = assert_r2t(0, 0, BURST);
	wait(2);
	assert_int_equal(nseen, 0);
	wait(1);
	assert_int_equal(nseen, 1);
	ttt = assert_r2t(1, 0, BURST);
	assert_int_not_equal(ttt, late);
	expect_refused(snack(0, 20, 0, 1), ERR_RANGE); /* it was replaced */
	r.role.errors = 0;
	write_out(late, 0, 0, 8192, false, RAW_GOOD);
	write_out(ttt, 0, 0, 8192, false, RAW_GOOD);
	write_out(ttt, 1, 8192, 8192, true, RAW_GOOD);
	assert_written(BURST, 0);
	write_out(late, 1, 8192, 8192, true, RAW_GOOD);
	assert_int_equal(r.role.errors, 0);
	assert_int_equal(dmtcp_stats(r.conn)->timeouts, 1);
	wait(1); /* nothing is due any more */
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) ==
		    XTIME_NEVER);
	raw_fini(&r);
}

/* The last Data-Out of a sequence, with the F bit, is lost: only its data are asked
 * for. */
static void test_lost_end_of_a_sequence_rfc7143_7_1_4_1(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt;

	(void)state;
	k.max_outstanding_r2t = 2;
	begin_write(&k, 2 * BURST);
	write_out(seen[0].ttt, 0, 0, 8192, false, RAW_GOOD);
	wait(1);
	write_out(seen[1].ttt, 0, BURST, 8192, false, RAW_GOOD);
	wait(3); /* since the last data */
	assert_int_equal(nseen, 0);
	wait(1);
	assert_int_equal(nseen, 2);
	ttt = seen[0].ttt;
	assert_int_equal(seen[0].r2t.offset, 8192);
	assert_int_equal(seen[0].r2t.ddtl, 8192);
	write_out(assert_r2t(3, BURST + 8192, 8192), 0, BURST + 8192, 8192,
		  true, RAW_GOOD);
	write_out(ttt, 0, 8192, 8192, true, RAW_GOOD);
	assert_written(2 * BURST, 0);
	raw_fini(&r);
}

/* So is the end of the unsolicited data, or all of them. */
static void test_lost_unsolicited_data_rfc7143_7_1_4_1(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt;

	(void)state;
	k.initial_r2t = false;
	k.first_burst_length = 8192;
	for (uint32_t came = 0; came <= 4096; came += 4096) {
		begin_write(&k, BURST);
		if (came)
			write_out(ISCSI_RESERVED_TAG, 0, 0, came, false,
				  RAW_GOOD);
		wait(came ? 4 : 3);
		ttt = assert_r2t(0, came, 8192 - came);
		/* late */
		write_out(ISCSI_RESERVED_TAG, came / 4096, came, 4096, false,
			  RAW_GOOD);
		write_out(ttt, 0, came, 8192 - came, true, RAW_GOOD);
		ttt = assert_r2t(1, 8192, 8192);
		write_out(ttt, 0, 8192, 8192, true, RAW_GOOD);
		assert_written(BURST, 0);
		assert_int_equal(r.role.errors, 0);
		raw_fini(&r);
	}
}

/* With DataPDUInOrder=No the hole is asked for, too. */
static void test_lost_data_in_any_order_rfc7143_13_18(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt;

	(void)state;
	k.data_pdu_in_order = false;
	begin_write(&k, BURST);
	ttt = assert_r2t(0, 0, BURST);
	write_out(ttt, 0, 8192, 4096, false, RAW_GOOD);
	wait(4);
	ttt = assert_r2t(1, 0, BURST);
	write_out(ttt, 0, 8192, 8192, false, RAW_GOOD);
	write_out(ttt, 1, 0, 8192, true, RAW_GOOD);
	assert_written(BURST, 0);
	raw_fini(&r);
}

static struct iscsi_pdu data_out_of(uint32_t itt, uint32_t ttt, uint32_t sn,
				    uint32_t off, uint32_t len, bool final)
{
	struct iscsi_pdu p = data_out(ttt, sn, off, len, final);

	p.itt = itt;
	return p;
}

/* An initiator on a slow link has data of other commands to send first: each
 * second some of them come. */
static void test_data_that_are_on_their_way(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt, other;

	(void)state;
	begin_write(&k, 4096);
	ttt = assert_r2t(0, 0, 4096);
	feed(command(21, true, BURST, 0), NULL, RAW_GOOD);
	other = seen[0].ttt;
	for (uint32_t i = 0; i < 8; i++) {
		wait(1);
		assert_int_equal(nseen, 0);
		feed(data_out_of(21, other, i, i * 2048, 2048, i == 7),
		     data + i * 2048, RAW_GOOD);
	}
	wait(1);
	assert_int_equal(nseen, 0);
	write_out(ttt, 0, 0, 4096, true, RAW_GOOD);
	assert_int_equal(seen[nseen - 1].op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(dmtcp_stats(r.conn)->timeouts, 0);
	raw_fini(&r);
}

/* Data never pause, but those of later commands overtake the ones that are due. */
static void test_later_commands_show_the_loss(void **state)
{
	struct iscsi_params k = write_params();

	(void)state;
	begin_write(&k, 4096);
	for (uint32_t i = 0; i < 2; i++) {
		wait(1);
		assert_int_equal(nseen, 0);
		feed(command(30 + i, true, 4096, 0), NULL, RAW_GOOD);
		feed(data_out_of(30 + i, seen[0].ttt, 0, 0, 4096, true), data,
		     RAW_GOOD);
	}
	wait(1);
	assert_r2t(1, 0, 4096);
	raw_fini(&r);
}

/* Each wait is twice as long as the one before; the last one ends the command. */
/* [RFC 7143: 7.8 #4] */
static void test_nothing_comes(void **state)
{
	static const unsigned waits[] = { 3, 5, 9, 17, 33, 33, 33, 33, 33 };
	struct iscsi_params k = write_params();

	(void)state;
	begin_write(&k, 4096);
	for (unsigned i = 0; i < 9; i++) {
		wait(waits[i] - 1);
		assert_int_equal(nseen, 0);
		wait(1);
		if (i < 8)
			assert_r2t(i + 1, 0, 4096);
	}
	assert_written(4096, 2);
	raw_fini(&r);
}

static void test_level_0_has_no_timeout(void **state)
{
	struct iscsi_params k = write_params();

	(void)state;
	k.error_recovery_level = 0;
	begin_write(&k, 4096);
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) ==
		    XTIME_NEVER);
	raw_fini(&r);
}

/* An abort ends the wait. */
static void test_abort_of_a_task_that_waits(void **state)
{
	struct iscsi_pdu abort = { .op = ISCSI_TMF_REQUEST,
				   .immediate = true,
				   .final = true,
				   .itt = 99 };
	struct iscsi_params k = write_params();

	(void)state;
	begin_write(&k, 4096);
	abort.tmf.function = ISCSI_TMF_ABORT_TASK;
	abort.tmf.rtt = 20;
	abort.expstatsn = first;
	feed(abort, NULL, RAW_GOOD);
	assert_int_equal(r.role.aborted, 1);
	for (unsigned i = 0; i < 5; i++) {
		wait(1);
		assert_int_equal(nseen, 0);
	}
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_r2t_rfc7143_7_1_4_1),
		cmocka_unit_test(test_lost_end_of_a_sequence_rfc7143_7_1_4_1),
		cmocka_unit_test(test_lost_unsolicited_data_rfc7143_7_1_4_1),
		cmocka_unit_test(test_lost_data_in_any_order_rfc7143_13_18),
		cmocka_unit_test(test_data_that_are_on_their_way),
		cmocka_unit_test(test_later_commands_show_the_loss),
		cmocka_unit_test(test_nothing_comes),
		cmocka_unit_test(test_level_0_has_no_timeout),
		cmocka_unit_test(test_abort_of_a_task_that_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
