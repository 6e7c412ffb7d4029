/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_initiator_test.c: the rules of the standard and of the Datamover
 * Interface for the initiator's end of datamover/tcp. */
#include "raw.h"

static struct raw r;
static uint8_t data[65536];

static struct iscsi_params params(void)
{
	struct iscsi_params k = raw_params();

	k.immediate_data = false;
	k.initial_r2t = true;
	k.max_outstanding_r2t = 2;
	return k;
}

static void begin(const struct iscsi_params *k)
{
	raw_init(&r, ISCSI_INITIATOR, k);
	raw_login(&r);
	memset(data, 0x5a, sizeof(data));
}

static struct fake_task *command(bool write, uint32_t len)
{
	struct iscsi_params k = params();
	struct fake_task *t;

	begin(&k);
	t = fake_start(&r.role, write, 0, len, 0);
	raw_fetch(&r);
	return t;
}

static struct iscsi_pdu data_in(uint32_t itt, uint32_t datasn, uint32_t off,
				uint32_t len)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_IN,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .dsl = len };

	p.data.datasn = datasn;
	p.data.offset = off;
	return p;
}

static struct iscsi_pdu with_status(struct iscsi_pdu p)
{
	p.final = true;
	p.data.status_present = true;
	p.statsn = r.role.numbers.expstatsn;
	return p;
}

static struct iscsi_pdu response(uint32_t itt)
{
	return (struct iscsi_pdu){ .op = ISCSI_SCSI_RESPONSE,
				   .final = true,
				   .itt = itt,
				   .statsn = r.role.numbers.expstatsn };
}

static struct iscsi_pdu r2t(uint32_t itt, uint32_t sn, uint32_t off,
			    uint32_t len)
{
	struct iscsi_pdu p = {
		.op = ISCSI_R2T, .final = true, .itt = itt, .ttt = 7
	};

	p.r2t.r2tsn = sn;
	p.r2t.offset = off;
	p.r2t.ddtl = len;
	return p;
}

static void feed(struct iscsi_pdu p)
{
	raw_pdu(&r, &p, data, RAW_GOOD);
}

static void ends_with(int err)
{
	assert_int_equal(raw_fate(&r), err);
	raw_fini(&r);
}

/* ---- Data-In ---- */

static void test_data_in_hole_rfc7143_11_7_6(void **state)
{
	struct fake_task *t = command(false, 8000);

	(void)state;
	feed(data_in(t->dm.itt, 0, 0, 1000));
	feed(data_in(t->dm.itt, 1, 2000, 1000));
	ends_with(ERR_SEQUENCE);
}

static void test_data_in_overlay_rfc7143_11_7_6(void **state)
{
	struct fake_task *t = command(false, 8000);

	(void)state;
	feed(data_in(t->dm.itt, 0, 0, 1000));
	feed(data_in(t->dm.itt, 1, 500, 1000));
	ends_with(ERR_SEQUENCE);
}

static void test_data_in_any_order_where_agreed_rfc7143_13_18(void **state)
{
	struct iscsi_params k = params();
	struct fake_task *t;

	(void)state;
	k.data_pdu_in_order = false;
	begin(&k);
	t = fake_start(&r.role, false, 0, 2000, 0);
	raw_fetch(&r);
	feed(data_in(t->dm.itt, 0, 1000, 1000));
	feed(with_status(data_in(t->dm.itt, 1, 0, 1000)));
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->dm.in_done, 2000);
	raw_fini(&r);
}

static void test_status_without_final_rfc7143_11_7_3(void **state)
{
	struct fake_task *t = command(false, 1000);
	struct iscsi_pdu p = with_status(data_in(t->dm.itt, 0, 0, 1000));

	(void)state;
	p.final = false;
	feed(p);
	ends_with(ERR_FORMAT);
}

/* [RFC 7143: 11.7.7 #1] */
static void test_empty_data_in_rfc7143_11_7_7(void **state)
{
	struct fake_task *t = command(false, 2000);

	(void)state;
	feed(data_in(t->dm.itt, 0, 0, 0)); /* numbered */
	feed(data_in(t->dm.itt, 1, 0, 2000));
	feed(with_status(
		data_in(t->dm.itt, 0, 0, 0))); /* with an arbitrary number */
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->dm.in_done, 2000);
	raw_fini(&r);
}

/* §11.7.2: at ErrorRecoveryLevel 0 the A bit is ignored. */
/* [RFC 7143: 11.7.2 #3] */
static void test_a_bit_at_level_0_rfc7143_11_7_2(void **state)
{
	struct fake_task *t = command(false, 2000);
	struct iscsi_pdu p = data_in(t->dm.itt, 0, 0, 1000);

	(void)state;
	p.data.ack = true;
	p.ttt = 0x1234;
	r.nout = 0;
	feed(p);
	raw_fetch(&r);
	assert_int_equal(r.nout, 0);
	feed(with_status(data_in(t->dm.itt, 1, 1000, 1000)));
	assert_int_equal(t->state, FAKE_FREE);
	raw_fini(&r);
}

/* ---- status ---- */

static void test_status_of_no_task_takes_its_statsn(void **state)
{
	struct fake_task *t = command(false, 1000);
	uint32_t sn = r.role.numbers.expstatsn;

	(void)state;
	feed(with_status(data_in(0x4711, 0, 0, 100)));
	assert_int_equal(r.role.numbers.expstatsn, sn + 1);
	feed(response(0x4711));
	assert_int_equal(r.role.numbers.expstatsn, sn + 2);
	assert_int_equal(dmtcp_stats(r.conn)->dropped, 2);
	assert_int_equal(t->state, FAKE_AT_TARGET);
	raw_fini(&r);
}

static void test_response_counts_lost_data_ins_rfc7143_7_9(void **state)
{
	struct fake_task *t = command(false, 2000);
	struct iscsi_pdu p = response(t->dm.itt);

	(void)state;
	feed(data_in(t->dm.itt, 0, 0, 1000));
	p.rsp.exp_datasn = 2;
	feed(p);
	ends_with(ERR_SEQUENCE);
}

static void test_response_counts_data_ins_rfc7143_11_4_8(void **state)
{
	struct fake_task *t = command(false, 2000);
	struct iscsi_pdu p = response(t->dm.itt);

	(void)state;
	feed(data_in(t->dm.itt, 0, 0, 1000));
	p.rsp.exp_datasn = 1;
	feed(p);
	assert_int_equal(t->state, FAKE_FREE);
	raw_fini(&r);
}

/* The response waits for the transport, and the connection is dropped: no
 * memory is lost. */
static void test_late_response_when_the_connection_goes(void **state)
{
	struct fake_task *t = command(true, 8000);
	struct iscsi_pdu p = response(t->dm.itt);
	struct iovec iov[8];

	(void)state;
	feed(r2t(t->dm.itt, 0, 0, 8000));
	assert_true(dmtcp_stream_ops.tx_what(r.conn, iov, 8) > 0);
	p.dsl = 20;
	feed(p);
	assert_int_equal(t->state, FAKE_AT_TARGET);
	raw_fini(&r);
}

static void test_late_response_when_the_task_is_aborted(void **state)
{
	struct fake_task *t = command(true, 8000);
	struct iovec iov[64];
	unsigned n;

	(void)state;
	feed(r2t(t->dm.itt, 0, 0, 8000));
	n = dmtcp_stream_ops.tx_what(r.conn, iov, 64);
	feed(response(t->dm.itt));
	t->state = FAKE_RELEASING;
	assert_int_equal(dm_deallocate_task_resources(r.role.dm, &t->dm),
			 ERR_AGAIN);
	dmtcp_stream_ops.tx_done(r.conn, bufv_of(iov, n).len, XTIME_S);
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->status, -1);
	raw_fini(&r);
}

/* ---- R2T and Data-Out ---- */

/* [RFC 7143: 4.2.5.3 #1-2] */
static void test_r2t_of_another_lun_rfc7143_4_2_5_3(void **state)
{
	struct fake_task *t = command(true, 8000);
	struct iscsi_pdu p = r2t(t->dm.itt, 0, 0, 8000);

	(void)state;
	p.lun = 1ull << 48;
	feed(p);
	ends_with(ERR_PROTOCOL);
}

static void test_r2ts_as_many_as_agreed_rfc7143_13_17(void **state)
{
	struct fake_task *t = command(true, 8000);

	(void)state;
	feed(r2t(t->dm.itt, 0, 0, 1000));
	feed(r2t(t->dm.itt, 1, 1000, 1000));
	assert_int_equal(raw_fate(&r), 1);
	assert_int_equal(dmtcp_stats(r.conn)->r2ts, 2);
	feed(r2t(t->dm.itt, 2, 2000, 1000));
	ends_with(ERR_LIMIT);
}

static unsigned nseen;
static struct iscsi_pdu seen[64];

/* All PDUs that the end sends, in their order. */
static void fetch_all(void)
{
	static uint8_t all[65536];
	struct iovec iov[64];
	size_t len = 0;
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(r.conn, iov, 64))) {
		struct bufv v = bufv_of(iov, n);

		len += bufv_copy_out(&v, 0, all + len, sizeof(all) - len);
		dmtcp_stream_ops.tx_done(r.conn, v.len, XTIME_S);
	}
	for (size_t at = 0; at < len; nseen++) {
		assert_int_equal(iscsi_bhs_decode(&seen[nseen], all + at), 0);
		at += ISCSI_BHS_LEN + round_up4(seen[nseen].dsl);
	}
}

/* Two R2Ts come before the initiator sends: it fulfils one after the other. */
/* [RFC 7143: 4.2.5.2 #3, 11.8 #8] */
static void test_r2ts_in_their_order_rfc7143_11_8(void **state)
{
	struct fake_task *t = command(true, 24000);
	struct iscsi_pdu p = r2t(t->dm.itt, 0, 0, 12000);

	(void)state;
	nseen = 0;
	p.ttt = 8;
	feed(p);
	feed(r2t(t->dm.itt, 1, 12000, 12000));
	fetch_all();
	assert_int_equal(raw_fate(&r), 1);
	assert_int_equal(nseen, 4);
	for (unsigned i = 0; i < nseen; i++) {
		assert_int_equal(seen[i].op, ISCSI_DATA_OUT);
		assert_int_equal(seen[i].ttt, i < 2 ? 8 : 7);
		assert_int_equal(seen[i].data.datasn, i % 2);
		assert_int_equal(seen[i].final, i % 2 == 1);
	}
	raw_fini(&r);
}

/* Two WRITEs at once: the unsolicited data of each follow its command, and those of
 * the first one come first. */
static void
/* [RFC 7143: 4.2.5.2 #4-6] */
test_unsolicited_data_follow_their_commands_rfc7143_4_2_5_2(void **state)
{
	struct iscsi_params k = params();
	struct fake_task *t[2];
	uint32_t sent[2] = { 0, 0 };
	bool commands[2] = { false, false };

	(void)state;
	k.initial_r2t = false;
	k.first_burst_length = 16384;
	begin(&k);
	t[0] = fake_start(&r.role, true, 0, 20000, 0);
	t[1] = fake_start(&r.role, true, 65536, 20000, 0);
	nseen = 0;
	fetch_all();
	assert_int_equal(nseen, 6);
	for (unsigned i = 0; i < nseen; i++) {
		unsigned w = seen[i].itt == t[1]->dm.itt;

		if (seen[i].op == ISCSI_SCSI_COMMAND) {
			assert_true(w == 0 || commands[0]);
			commands[w] = true;
			continue;
		}
		assert_int_equal(seen[i].op, ISCSI_DATA_OUT);
		assert_true(commands[w]);
		assert_int_equal(seen[i].data.offset, sent[w]);
		sent[w] += seen[i].dsl;
		if (w)
			assert_int_equal(sent[0], 16384);
	}
	assert_int_equal(sent[1], 16384);
	raw_fini(&r);
}

static void r2ts(uint32_t first, uint32_t second, int err)
{
	struct fake_task *t = command(true, 8000);

	feed(r2t(t->dm.itt, 0, first, 1000));
	if (raw_fate(&r) == 1)
		feed(r2t(t->dm.itt, 1, second, 1000));
	ends_with(err);
}

/* [RFC 7143: 11.8 #9] */
static void test_r2ts_are_continuous_rfc7143_11_8(void **state)
{
	(void)state;
	r2ts(0, 1000, 1);
	r2ts(0, 0, ERR_SEQUENCE);   /* again: at ErrorRecoveryLevel 1 only */
	r2ts(0, 500, ERR_SEQUENCE); /* overlap */
	r2ts(0, 1001, ERR_SEQUENCE);
	r2ts(1, 0, ERR_SEQUENCE); /* a gap before the first */
}

/* The first R2T may request the immediate data again; each byte counts once. */
static void test_r2t_for_immediate_data(void **state)
{
	struct iscsi_params k = params();
	struct fake_task *t;

	(void)state;
	k.immediate_data = true;
	begin(&k);
	t = fake_start(&r.role, true, 0, 12000, 0);
	raw_fetch(&r);
	assert_true(t->dm.out_done > 0 && t->dm.out_done < 12000);
	feed(r2t(t->dm.itt, 0, 0, 12000));
	raw_fetch(&r);
	assert_int_equal(raw_fate(&r), 1);
	assert_true(t->dm.out_done <= 12000);
	feed(response(t->dm.itt));
	assert_int_equal(t->state, FAKE_FREE);
	raw_fini(&r);
}

static void statsn(uint32_t more, int err)
{
	struct fake_task *t = command(false, 1000);
	struct iscsi_pdu p = response(t->dm.itt);

	p.statsn += more;
	feed(p);
	ends_with(err);
}

/* [RFC 7143: 4.2.2.2 #1 #3] */
static void test_statsn_rfc7143_4_2_2_2(void **state)
{
	struct fake_task *t;
	struct iscsi_pdu p;

	(void)state;
	statsn(0, 1);
	statsn(1, ERR_SEQUENCE);
	statsn(UINT32_MAX, ERR_SEQUENCE);
	statsn(0x80000000, ERR_SEQUENCE);
	/* of Data-In with status; not of those without, nor of R2Ts */
	t = command(false, 2000);
	p = data_in(t->dm.itt, 0, 0, 1000);
	p.statsn = 77;
	feed(p);
	assert_int_equal(raw_fate(&r), 1);
	p = with_status(data_in(t->dm.itt, 1, 1000, 1000));
	p.statsn++;
	feed(p);
	ends_with(ERR_SEQUENCE);
	t = command(true, 2000);
	p = r2t(t->dm.itt, 0, 0, 2000);
	p.statsn = 77;
	feed(p);
	ends_with(1);
}

/* [RFC 7143: 11.7.4 #2] */
static void test_data_out_lun_rfc7143_11_7_4(void **state)
{
	const uint64_t lun = 2ull << 48;
	struct iscsi_params k = params();
	struct iscsi_pdu p;
	struct fake_task *t;

	(void)state;
	k.initial_r2t = false;
	begin(&k);
	t = fake_start(&r.role, true, 0, 12000, 0);
	t->dm.lun = lun;
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_DATA_OUT);
	assert_int_equal(r.out.ttt, ISCSI_RESERVED_TAG);
	assert_int_equal(r.out.lun, 0);
	p = r2t(t->dm.itt, 0, 8192, 3808);
	p.lun = lun;
	feed(p);
	raw_fetch(&r);
	assert_int_equal(r.out.ttt, 7);
	assert_true(r.out.lun == lun);
	raw_fini(&r);
}

/* Immediate data that are longer than any buffer of the datamover. */
static void test_long_immediate_data_with_digest(void **state)
{
	struct iscsi_params k = params();
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND, .itt = 3 };
	const uint32_t len = 3u << 20;
	struct dm_control ctl = { .pdu = pdu };
	struct dm_task t = { .itt = 3, .edtl = len };
	struct iovec big = { calloc(1, len), len }, iov[8];
	size_t sent = 0;
	unsigned n;

	(void)state;
	k.immediate_data = true;
	k.data_digest = true;
	k.max_send_dsl = k.first_burst_length = 4u << 20;
	begin(&k);
	dm_task_init(&t);
	t.out = bufv_of(&big, 1);
	ctl.pdu.cmd.write = true;
	ctl.pdu.cmd.edtl = len;
	assert_int_equal(dm_send_control(r.role.dm, &t, &ctl), 0);
	while ((n = dmtcp_stream_ops.tx_what(r.conn, iov, 8))) {
		sent += bufv_of(iov, n).len;
		dmtcp_stream_ops.tx_done(r.conn, bufv_of(iov, n).len, XTIME_S);
	}
	assert_int_equal(sent, ISCSI_BHS_LEN + len + ISCSI_DIGEST_LEN);
	assert_int_equal(dmtcp_stats(r.conn)->copied, 0);
	raw_fini(&r);
	free(big.iov_base);
}

/* ---- login ---- */

/* [RFC 7143: 4.2.4 #6, 11.17.1 #3] */
static void test_login_answered_by_something_else_rfc7143_4_2_4(void **state)
{
	static const uint8_t ops[] = { ISCSI_NOP_IN,  ISCSI_SCSI_RESPONSE,
				       ISCSI_DATA_IN, ISCSI_R2T,
				       ISCSI_REJECT,  ISCSI_TEXT_RESPONSE };
	struct iscsi_params k = params();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		raw_init(&r, ISCSI_INITIATOR, &k);
		fake_login(&r.role);
		feed((struct iscsi_pdu){ .op = ops[i], .final = true });
		ends_with(ERR_PROTOCOL);
	}
}

/* ---- look-ahead ---- */

static size_t offered(void)
{
	struct iovec iov[8];
	unsigned n = dmtcp_stream_ops.rx_where(r.conn, iov, 8);

	return bufv_of(iov, n).len;
}

static void test_look_ahead_is_short_behind_large_payload(void **state)
{
	struct iscsi_params k = params();
	struct fake_task *t;

	(void)state;
	k.max_recv_dsl = 65536;
	begin(&k);
	t = fake_start(&r.role, false, 0, 131072, 0);
	assert_true(offered() > 100000);
	feed(data_in(t->dm.itt, 0, 0, 65536));
	assert_true(offered() <= 4096);
	assert_true(offered() >= ISCSI_BHS_LEN + ISCSI_MAX_AHS_LEN + 4);
	feed(with_status(data_in(t->dm.itt, 1, 65536, 65536)));
	for (uint32_t i = 0; i < 8; i++)
		feed(response(0x4711));
	assert_true(offered() > 100000);
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_in_hole_rfc7143_11_7_6),
		cmocka_unit_test(test_data_in_overlay_rfc7143_11_7_6),
		cmocka_unit_test(
			test_data_in_any_order_where_agreed_rfc7143_13_18),
		cmocka_unit_test(test_status_without_final_rfc7143_11_7_3),
		cmocka_unit_test(test_empty_data_in_rfc7143_11_7_7),
		cmocka_unit_test(test_status_of_no_task_takes_its_statsn),
		cmocka_unit_test(
			test_response_counts_lost_data_ins_rfc7143_7_9),
		cmocka_unit_test(test_response_counts_data_ins_rfc7143_11_4_8),
		cmocka_unit_test(test_late_response_when_the_connection_goes),
		cmocka_unit_test(test_late_response_when_the_task_is_aborted),
		cmocka_unit_test(test_r2t_of_another_lun_rfc7143_4_2_5_3),
		cmocka_unit_test(test_r2ts_as_many_as_agreed_rfc7143_13_17),
		cmocka_unit_test(test_a_bit_at_level_0_rfc7143_11_7_2),
		cmocka_unit_test(test_r2ts_in_their_order_rfc7143_11_8),
		cmocka_unit_test(
			test_unsolicited_data_follow_their_commands_rfc7143_4_2_5_2),
		cmocka_unit_test(test_r2ts_are_continuous_rfc7143_11_8),
		cmocka_unit_test(test_r2t_for_immediate_data),
		cmocka_unit_test(test_statsn_rfc7143_4_2_2_2),
		cmocka_unit_test(test_data_out_lun_rfc7143_11_7_4),
		cmocka_unit_test(test_long_immediate_data_with_digest),
		cmocka_unit_test(
			test_login_answered_by_something_else_rfc7143_4_2_4),
		cmocka_unit_test(test_look_ahead_is_short_behind_large_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
