/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_initiator_test.c: the initiator's end of datamover/tcp against a target
 * that violates the protocol. */
#include "raw.h"

static struct raw r;
static uint8_t data[65536];

static struct fake_task *begin(bool write, uint32_t len, bool data_digest)
{
	struct iscsi_params k = raw_params();
	struct fake_task *t;

	k.data_digest = data_digest;
	k.immediate_data = false;
	k.initial_r2t = true;
	k.max_outstanding_r2t = 2;
	raw_init(&r, ISCSI_INITIATOR, &k);
	raw_login(&r);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 5 + 1);
	t = fake_start(&r.role, write, 0, len, 0);
	if (!data_digest)
		raw_fetch(&r);
	return t;
}

static struct iscsi_pdu data_in(const struct fake_task *t, uint32_t datasn,
				uint32_t off, uint32_t len, bool status)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_IN,
			       .final = status,
			       .itt = t->dm.itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .statsn = r.role.numbers.expstatsn,
			       .dsl = len };

	p.data.datasn = datasn;
	p.data.offset = off;
	p.data.status_present = status;
	return p;
}

static struct iscsi_pdu r2t(const struct fake_task *t, uint32_t sn,
			    uint32_t ttt, uint32_t off, uint32_t len)
{
	struct iscsi_pdu p = {
		.op = ISCSI_R2T, .final = true, .itt = t->dm.itt, .ttt = ttt
	};

	p.r2t.r2tsn = sn;
	p.r2t.offset = off;
	p.r2t.ddtl = len;
	return p;
}

static void feed(const struct iscsi_pdu *p)
{
	raw_pdu(&r, p, data, RAW_GOOD);
}

/* [RFC 7143: 11.7 #1] */
static void test_data_in_good(void **state)
{
	struct fake_task *t = begin(false, 8000, false);
	struct iscsi_pdu p = data_in(t, 0, 0, 5000, false);

	(void)state;
	feed(&p);
	p = data_in(t, 1, 5000, 3000, true);
	feed(&p);
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->status, 0);
	assert_int_equal(t->dm.in_done, 8000);
	assert_memory_equal(t->buf, data, 5000);
	assert_memory_equal(t->buf + 5000, data, 3000);
	raw_fini(&r);
}

static void data_in_breaks(uint32_t datasn, uint32_t off, uint32_t len, int err)
{
	struct fake_task *t = begin(false, 8000, false);
	struct iscsi_pdu p = data_in(t, datasn, off, len, true);

	feed(&p);
	assert_int_equal(raw_fate(&r), err);
	raw_fini(&r);
}

/* [RFC 7143: 7.7 #2] */
static void test_data_in_breaks_rfc7143_11_7(void **state)
{
	(void)state;
	data_in_breaks(1, 0, 8000, ERR_SEQUENCE);
	data_in_breaks(0, 1, 8000, ERR_RANGE);
	data_in_breaks(0, 0, 8001, ERR_RANGE);
	data_in_breaks(0, 0xffffffff, 2, ERR_RANGE);
	data_in_breaks(0, 0, 8193, ERR_TOO_LONG);
}

static void test_data_in_for_a_write(void **state)
{
	struct fake_task *t = begin(true, 8000, false);
	struct iscsi_pdu p = data_in(t, 0, 0, 1, false);

	(void)state;
	feed(&p);
	assert_int_equal(raw_fate(&r), ERR_RANGE);
	raw_fini(&r);
}

/* ErrorRecoveryLevel 0 has no recovery: the connection is dropped. */
/* [RFC 7143: 7.8 #5-6] */
static void test_data_in_digest_rfc7143_7_8(void **state)
{
	struct fake_task *t = begin(false, 8000, true);
	struct iscsi_pdu p = data_in(t, 0, 0, 5000, false);

	(void)state;
	raw_pdu(&r, &p, data, RAW_BAD_DATA);
	assert_int_equal(raw_fate(&r), ERR_DATA_DIGEST);
	raw_fini(&r);
}

static void test_data_in_of_no_task_is_dropped(void **state)
{
	struct fake_task *t = begin(false, 8000, false), ghost = *t;
	struct iscsi_pdu p;

	(void)state;
	ghost.dm.itt ^= 0x100;
	p = data_in(&ghost, 0, 0, 8000, true);
	feed(&p);
	assert_int_equal(raw_fate(&r), 1);
	assert_true(dmtcp_stats(r.conn)->dropped > 0);
	assert_int_equal(t->state, FAKE_AT_TARGET);
	raw_fini(&r);
}

/* [RFC 7143: 4.2.5.2 #3] */
static void test_r2t_good(void **state)
{
	struct fake_task *t = begin(true, 8000, false);
	struct iscsi_pdu p = r2t(t, 0, 0x1234, 0, 8000);

	(void)state;
	feed(&p);
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_DATA_OUT);
	assert_int_equal(r.out.ttt, 0x1234);
	assert_int_equal(r.out.dsl, 8000);
	assert_true(r.out.final);
	assert_memory_equal(r.out_data, t->buf, 8000);
	raw_fini(&r);
}

static void r2t_breaks(uint32_t sn, uint32_t ttt, uint32_t off, uint32_t len,
		       int err)
{
	struct fake_task *t = begin(true, 32000, false);
	struct iscsi_pdu p = r2t(t, sn, ttt, off, len);

	feed(&p);
	assert_int_equal(raw_fate(&r), err);
	raw_fini(&r);
}

/* [RFC 7143: 7.7 #2] */
static void test_r2t_breaks_rfc7143_11_8(void **state)
{
	(void)state;
	r2t_breaks(0, 1, 0, 0, ERR_RANGE);		    /* no length */
	r2t_breaks(0, 1, 31999, 2, ERR_RANGE);		    /* outside */
	r2t_breaks(0, 1, 0xfffffff0, 0x20, ERR_RANGE);	    /* overflow */
	r2t_breaks(0, 1, 0, 16385, ERR_RANGE);		    /* MaxBurst */
	r2t_breaks(0, ISCSI_RESERVED_TAG, 0, 1, ERR_RANGE); /* no tag */
	r2t_breaks(1, 1, 0, 512, ERR_SEQUENCE);		    /* R2TSN */
}

static void test_too_many_r2ts_rfc7143_13_17(void **state)
{
	struct fake_task *t = begin(true, 32000, false);

	(void)state;
	for (uint32_t i = 0; i < 20 && raw_fate(&r) == 1; i++) {
		struct iscsi_pdu p = r2t(t, i, i, i * 512, 512);

		feed(&p); /* no output is taken: all bursts stay open */
	}
	assert_int_equal(r.role.terminate_err, ERR_LIMIT);
	raw_fini(&r);
}

static void test_response_while_data_are_half_way_out(void **state)
{
	struct fake_task *t = begin(true, 8000, false);
	struct iscsi_pdu p = r2t(t, 0, 1, 0, 8000);
	struct iscsi_pdu rsp = { .op = ISCSI_SCSI_RESPONSE,
				 .final = true,
				 .itt = t->dm.itt,
				 .statsn = r.role.numbers.expstatsn };
	struct iovec iov[64];
	unsigned n;

	(void)state;
	feed(&p);
	n = dmtcp_stream_ops.tx_what(r.conn, iov, 64);
	assert_true(n > 1);
	dmtcp_stream_ops.tx_done(r.conn, 100, XTIME_S);
	rsp.rsp.status = 8;
	feed(&rsp);
	/* PDUs in the stage use the buffer: the role does not get it back yet */
	assert_int_equal(t->state, FAKE_AT_TARGET);
	while ((n = dmtcp_stream_ops.tx_what(r.conn, iov, 64)))
		dmtcp_stream_ops.tx_done(r.conn, bufv_of(iov, n).len, XTIME_S);
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->status, 8);
	raw_fini(&r);
}

/* [RFC 7143: 11.2.1.2 #2] */
static void test_initiator_opcode_from_target_is_reported(void **state)
{
	struct fake_task *t = begin(false, 8000, false);
	struct iscsi_pdu p = { .op = ISCSI_NOP_OUT, .final = true, .dsl = 40 };

	(void)state;
	feed(&p);
	assert_int_equal(r.role.errors, 1);
	p = data_in(t, 0, 0, 8000, true);
	feed(&p);
	assert_int_equal(t->status, 0);
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_in_good),
		cmocka_unit_test(test_data_in_breaks_rfc7143_11_7),
		cmocka_unit_test(test_data_in_for_a_write),
		cmocka_unit_test(test_data_in_digest_rfc7143_7_8),
		cmocka_unit_test(test_data_in_of_no_task_is_dropped),
		cmocka_unit_test(test_r2t_good),
		cmocka_unit_test(test_r2t_breaks_rfc7143_11_8),
		cmocka_unit_test(test_too_many_r2ts_rfc7143_13_17),
		cmocka_unit_test(test_response_while_data_are_half_way_out),
		cmocka_unit_test(test_initiator_opcode_from_target_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
