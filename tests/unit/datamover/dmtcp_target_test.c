/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_target_test.c: the target's end of datamover/tcp against an initiator
 * that violates the protocol. */
#include "datamover/impl.h"
#include "datamover/tcp/internal.h"
#include "raw.h"

static struct raw r;
static uint8_t data[65536];

static void begin(const struct iscsi_params *p)
{
	raw_init(&r, ISCSI_TARGET, p);
	raw_login(&r);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 + 3);
}

static struct iscsi_pdu command(uint32_t itt, bool write, uint32_t edtl,
				uint32_t dsl, bool final)
{
	struct iscsi_pdu p = {
		.op = ISCSI_SCSI_COMMAND, .final = final, .itt = itt, .dsl = dsl
	};

	p.cmd.read = !write;
	p.cmd.write = write;
	p.cmd.edtl = edtl;
	return p;
}

static struct iscsi_pdu data_out(uint32_t itt, uint32_t ttt, uint32_t datasn,
				 uint32_t off, uint32_t len, bool final)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT,
			       .final = final,
			       .itt = itt,
			       .ttt = ttt,
			       .dsl = len };

	p.data.datasn = datasn;
	p.data.offset = off;
	return p;
}

static void feed(const struct iscsi_pdu *p)
{
	raw_pdu(&r, p, data, RAW_GOOD);
	raw_fetch(&r);
}

/* The last PDU sent is the response of itt with this status. */
static void assert_status(uint32_t itt, uint8_t status)
{
	assert_int_equal(r.out.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(r.out.itt, itt);
	assert_int_equal(r.out.rsp.status, status);
	assert_int_equal(raw_fate(&r), 1);
}

/* The connection still works. */
static void assert_still_works(void)
{
	struct iscsi_pdu p = command(0x777, true, 512, 512, true);

	feed(&p);
	assert_status(0x777, 0);
}

/* ---- errors that end the connection ---- */

/* [RFC 7143: 7.7 #1] */
static void test_dsl_beyond_declared_rfc7143_13_12(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(1, true, 65536, 8193, true);

	(void)state;
	begin(&k);
	feed(&p);
	assert_int_equal(raw_fate(&r), ERR_TOO_LONG);
	raw_fini(&r);
}

static void test_login_dsl_beyond_8192_rfc7143_13_12(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_REQUEST, .dsl = 8193 };

	(void)state;
	k.max_recv_dsl = 262144;
	raw_init(&r, ISCSI_TARGET, &k);
	raw_pdu(&r, &p, data, RAW_GOOD);
	assert_int_equal(raw_fate(&r), ERR_TOO_LONG);
	raw_fini(&r);
}

/* A header that cannot begin a login: the target does not wait for the data
 * that the header announces. */
/* [RFC 7143: 4.2.4 #2 #4, 11.12 #1] */
static void test_first_header_is_no_login_rfc7143_6_3(void **state)
{
	static const struct {
		uint8_t op, ahs_words;
		uint32_t dsl;
		int err; /* 1: the connection continues */
	} rows[] = {
		{ 0x01, 0, 0, ERR_PROTOCOL },
		{ 0x40, 0, 4096, ERR_PROTOCOL },
		{ 0x1f, 0, 100, ERR_PROTOCOL },
		{ 0x23, 0, 100, ERR_PROTOCOL },
		{ 0x43, 1, 0, ERR_FORMAT },
		{ 0x43, 255, 100, ERR_FORMAT },
		{ 0x43, 0, 8193, ERR_TOO_LONG },
		{ 0x43, 0, 100, 1 },
		{ 0x03, 0, 8192, 1 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct iscsi_params k = raw_params();
		uint8_t bhs[ISCSI_BHS_LEN] = { rows[i].op, 0x87 };

		bhs[4] = rows[i].ahs_words;
		put_be16(bhs + 6, (uint16_t)rows[i].dsl);
		raw_init(&r, ISCSI_TARGET, &k);
		raw_feed(&r, bhs, sizeof(bhs));
		assert_int_equal(raw_fate(&r), rows[i].err);
		raw_fini(&r);
	}
}

/* [RFC 7143: 7.8 #1] */
static void test_header_digest_wrong_rfc7143_7_7(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(1, false, 512, 0, true);

	(void)state;
	k.header_digest = true;
	begin(&k);
	raw_pdu(&r, &p, NULL, RAW_BAD_HEADER);
	assert_int_equal(raw_fate(&r), ERR_HEADER_DIGEST);
	raw_fini(&r);
}

/* [RFC 7143: 11.2.1.5 #1] */
static void test_ahs_on_data_out_rfc7143_11_2_2(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = data_out(1, ISCSI_RESERVED_TAG, 0, 0, 0, true);

	(void)state;
	begin(&k);
	p.ahs_len = 8;
	feed(&p);
	assert_int_equal(raw_fate(&r), ERR_FORMAT);
	raw_fini(&r);
}

static void test_peer_that_does_not_read_is_cut(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = { .op = ISCSI_TMF_REQUEST,
			       .immediate = true,
			       .final = true };
	unsigned i;

	(void)state;
	begin(&k);
	p.tmf.function = ISCSI_TMF_ABORT_TASK;
	for (i = 0; i < 1000 && r.role.terminated == 0; i++) {
		p.itt = i;
		raw_pdu(&r, &p, NULL, RAW_GOOD); /* no output is taken */
		if (raw_fate(&r) != 1)
			break;
	}
	assert_true(i < 100);
	assert_int_equal(r.role.terminate_err, ERR_LIMIT);
	raw_fini(&r);
}

/* ---- errors that are reported without ending the connection ---- */

static void assert_reported(int err)
{
	assert_int_equal(r.role.errors, 1);
	assert_int_equal(r.role.last_error, err);
	assert_still_works();
}

static void test_unknown_opcode_is_reported(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = { .op = 0x1c, .itt = 5, .dsl = 100 };

	(void)state;
	begin(&k);
	feed(&p);
	assert_reported(ERR_OPCODE);
	raw_fini(&r);
}

/* [RFC 7143: 11.2.1.2 #1] */
static void test_target_opcode_from_initiator_is_reported(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN, .final = true, .itt = 5 };

	(void)state;
	begin(&k);
	feed(&p);
	assert_reported(ERR_PROTOCOL);
	raw_fini(&r);
}

/* [RFC 7143: 7.1.4 #1, 7.8 #2] */
static void test_data_digest_of_control_rfc7143_7_8(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = { .op = ISCSI_NOP_OUT,
			       .final = true,
			       .immediate = true,
			       .itt = 5,
			       .dsl = 33 };

	(void)state;
	k.data_digest = true;
	raw_init(&r, ISCSI_TARGET, &k);
	raw_login(&r);
	raw_pdu(&r, &p, data, RAW_BAD_DATA);
	assert_int_equal(r.role.errors, 1);
	assert_int_equal(r.role.last_error, ERR_DATA_DIGEST);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

static void test_data_digest_of_immediate_data(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(9, true, 512, 512, true);

	(void)state;
	k.data_digest = true;
	raw_init(&r, ISCSI_TARGET, &k);
	raw_login(&r);
	raw_pdu(&r, &p, data, RAW_BAD_DATA);
	assert_int_equal(r.role.last_error, ERR_DATA_DIGEST);
	assert_int_equal(r.role.task[0].state, FAKE_RESPONDING);
	for (size_t i = 0; i < 512; i++) /* no data were written */
		assert_int_equal(r.role.disk[i], 0);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

/* ---- write data that violate the protocol: only the command fails ---- */

/* [RFC 7143: 13.11 #2-3] */
static void test_immediate_data_not_agreed_rfc7143_13_11(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(9, true, 512, 512, true);

	(void)state;
	k.immediate_data = false;
	begin(&k);
	feed(&p);
	assert_status(9, 2);
	assert_int_equal(r.role.disk[0], 0);
	raw_fini(&r);
}

/* [RFC 7143: 11.8 #1, 13.11 #2] */
static void test_unsolicited_not_agreed_rfc7143_13_10(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(9, true, 512, 0, false);

	(void)state;
	k.initial_r2t = true;
	begin(&k);
	feed(&p);
	assert_status(9, 2);
	p = data_out(9, ISCSI_RESERVED_TAG, 0, 0, 512, true);
	feed(&p); /* the task has ended */
	assert_still_works();
	raw_fini(&r);
}

static void unsolicited_breaks(uint32_t datasn, uint32_t off, uint32_t len)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(9, true, 16384, 4096, false);

	begin(&k);
	feed(&p);
	p = data_out(9, ISCSI_RESERVED_TAG, datasn, off, len, true);
	feed(&p);
	assert_status(9, 2);
	assert_still_works();
	assert_int_equal(r.role.disk[4096], 0);
	raw_fini(&r);
}

static void test_unsolicited_datasn_rfc7143_11_7_5(void **state)
{
	(void)state;
	unsolicited_breaks(1, 4096, 512);
}

static void test_unsolicited_offset_rfc7143_11_7_6(void **state)
{
	(void)state;
	unsolicited_breaks(0, 4608, 512);
	unsolicited_breaks(0, 0, 512);
	unsolicited_breaks(0, 0xffffff00, 512);
}

static void test_unsolicited_beyond_first_burst_rfc7143_13_14(void **state)
{
	(void)state;
	unsolicited_breaks(0, 4096, 4097);
}

/* Discarded data change no task, even if their tags are those of a task. */
static void test_dropped_pdus_end_no_sequence(void **state)
{
	static const uint8_t ops[] = { 0x1c, ISCSI_NOP_IN, ISCSI_DATA_IN };

	(void)state;
	for (size_t i = 0; i < sizeof(ops); i++) {
		struct iscsi_params k = raw_params();
		struct iscsi_pdu p = command(9, true, 8192, 4096, false);

		begin(&k);
		feed(&p);
		p = data_out(9, ISCSI_RESERVED_TAG, 0, 4096, 100, true);
		p.op = ops[i];
		feed(&p);
		assert_int_equal(r.role.errors, 1);
		p = data_out(9, ISCSI_RESERVED_TAG, 0, 4096, 4096, true);
		feed(&p);
		assert_status(9, 0);
		assert_memory_equal(r.role.disk + 4096, data, 4096);
		raw_fini(&r);
	}
}

/* asked: a write command with one R2T for its 8192 bytes. */
static uint32_t asked(void)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu p = command(9, true, 8192, 0, true);

	begin(&k);
	feed(&p);
	assert_int_equal(r.out.op, ISCSI_R2T);
	assert_int_equal(r.out.r2t.offset, 0);
	assert_int_equal(r.out.r2t.ddtl, 8192);
	return r.out.ttt;
}

static void test_solicited_good(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p = data_out(9, ttt, 0, 0, 5000, false);

	(void)state;
	feed(&p);
	p = data_out(9, ttt, 1, 5000, 3192, true);
	feed(&p);
	assert_status(9, 0);
	assert_memory_equal(r.role.disk, data, 5000);
	assert_memory_equal(r.role.disk + 5000, data, 3192);
	raw_fini(&r);
}

/* PDUs without data, in a solicited and in an unsolicited sequence. */
/* [RFC 7143: 11.7.7 #1] */
static void test_empty_data_out_rfc7143_11_7_7(void **state)
{
	struct iscsi_params k = raw_params();
	uint32_t ttt = asked();
	struct iscsi_pdu p = data_out(9, ttt, 0, 0, 0, false);

	(void)state;
	feed(&p);
	p = data_out(9, ttt, 1, 0, 8192, false);
	p.final = true;
	feed(&p);
	assert_status(9, 0);
	raw_fini(&r);
	k.initial_r2t = false;
	begin(&k);
	p = command(9, true, 4096, 0, false);
	feed(&p);
	p = data_out(9, ISCSI_RESERVED_TAG, 0, 0, 0, false);
	feed(&p);
	p = data_out(9, ISCSI_RESERVED_TAG, 1, 0, 4096, true);
	feed(&p);
	assert_status(9, 0);
	assert_memory_equal(r.role.disk, data, 4096);
	raw_fini(&r);
}

static void solicited_breaks(uint32_t datasn, uint32_t off, uint32_t len,
			     bool final)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p = data_out(9, ttt, datasn, off, len, final);

	feed(&p);
	if (!final) { /* the burst runs to its end */
		p = data_out(9, ttt, datasn + 1, off + len, 1, true);
		feed(&p);
	}
	assert_status(9, 2);
	assert_int_equal(r.role.disk[0], 0);
	assert_still_works();
	raw_fini(&r);
}

/* [RFC 7143: 11.8 #4-5] */
static void test_solicited_breaks_rfc7143_11_7(void **state)
{
	(void)state;
	solicited_breaks(1, 0, 8192, true);	     /* DataSN */
	solicited_breaks(0, 1, 8191, true);	     /* offset */
	solicited_breaks(0, 0, 8191, true);	     /* F too early */
	solicited_breaks(0, 8000, 193, true);	     /* beyond the R2T */
	solicited_breaks(0, 0xfffffff0, 0x20, true); /* overflow */
	solicited_breaks(0, 0, 8192, false);	     /* no F at the end */
}

static void assert_errors(unsigned n, int last)
{
	assert_int_equal(r.role.errors, n);
	if (n)
		assert_int_equal(r.role.last_error, last);
}

/* The role gets one report, for its Reject, for each sequence that belongs to
 * no task. The open task continues. */
static void test_stray_data_out_is_reported_rfc7143_11_17_1(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p;

	(void)state;
	for (unsigned i = 0; i < 3; i++) { /* unknown TTT, ITT, both */
		uint32_t itt = i == 0 ? 9 : 77, tag = i == 1 ? ttt : ttt + 1;

		p = data_out(itt, tag, 0, 0, 512, false);
		feed(&p);
		assert_errors(i + 1, ERR_NOT_FOUND);
		p = data_out(itt, tag, 1, 512, 512, true);
		feed(&p);
		assert_errors(i + 1, ERR_NOT_FOUND);
	}
	p = data_out(78, ISCSI_RESERVED_TAG, 0, 0, 512, true);
	feed(&p);
	assert_errors(4, ERR_NOT_FOUND);
	p = data_out(9, ttt, 0, 0, 8192, true);
	feed(&p);
	assert_status(9, 0);
	/* its sequence and its task have ended */
	p = data_out(9, ttt, 1, 0, 512, true);
	feed(&p);
	assert_errors(5, ERR_NOT_FOUND);
	assert_still_works();
	raw_fini(&r);
}

/* [RFC 7143: 7.3 #1, 11.17.1 #4-5] */
static void test_data_out_out_of_place_is_reported_rfc7143_11_7(void **state)
{
	static const struct {
		uint32_t datasn, off;
		uint64_t lun;
	} rows[] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 8000, 0 }, { 0, 0, 1 } };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t ttt = asked();
		struct iscsi_pdu p = data_out(9, ttt, rows[i].datasn,
					      rows[i].off, 500, false);

		p.lun = rows[i].lun << 48;
		feed(&p);
		assert_errors(1, ERR_RANGE);
		p = data_out(9, ttt, 9, 9, 500, true); /* its end */
		feed(&p);
		assert_errors(1, ERR_RANGE);
		assert_status(9, 2);
		assert_int_equal(r.role.disk[0], 0);
		assert_still_works();
		raw_fini(&r);
	}
}

/* Unsolicited data while an R2T is outstanding: the role gets a report, and the
 * task fails. */
static void test_unexpected_unsolicited_data_rfc7143_11_4_7_2(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p = data_out(9, ISCSI_RESERVED_TAG, 0, 0, 512, true);

	(void)state;
	feed(&p);
	assert_errors(1, ERR_NOT_FOUND);
	p = data_out(9, ttt, 0, 0, 8192, true);
	feed(&p);
	assert_status(9, 2);
	raw_fini(&r);
}

static void abort_task_9(void)
{
	struct fake_task *t = NULL;

	for (unsigned i = 0; i < FAKE_TASKS; i++)
		if (r.role.task[i].state != FAKE_FREE &&
		    r.role.task[i].dm.itt == 9)
			t = &r.role.task[i];
	assert_non_null(t);
	assert_int_equal(dm_deallocate_task_resources(r.role.dm, &t->dm), 0);
	t->state = FAKE_FREE;
}

/* The task is aborted after the driver has asked where its data go, and found no input. */
static void test_abort_within_a_data_segment(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p = data_out(9, ttt, 0, 0, 8192, true);
	static uint8_t bytes[9000];
	size_t n = raw_encode(&r, &p, data, RAW_GOOD, bytes);
	struct iovec iov[16];

	(void)state;
	raw_feed(&r, bytes, ISCSI_BHS_LEN + 1000);
	assert_true(dmtcp_stream_ops.rx_where(r.conn, iov, 16) > 1);
	abort_task_9();
	raw_feed(&r, bytes + ISCSI_BHS_LEN + 1000, n - ISCSI_BHS_LEN - 1000);
	assert_errors(0, 0);
	assert_still_works();
	raw_fini(&r);
}

/* Data that an initiator sent before it received the abort's response are not
 * an error. */
/* [RFC 7143: 10.7 #1] */
static void test_data_of_an_aborted_task_is_dropped(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p;

	(void)state;
	abort_task_9();
	p = data_out(9, ttt, 0, 0, 4096, false);
	feed(&p);
	p = data_out(9, ttt, 1, 4096, 4096, true);
	feed(&p);
	assert_errors(0, 0);
	p = data_out(9, ttt, 2, 0, 512, true); /* after the F bit */
	feed(&p);
	assert_errors(1, ERR_NOT_FOUND);
	assert_still_works();
	raw_fini(&r);
}

/* More aborted sequences than are remembered: none of them is rejected. */
/* [RFC 7143: 4.2.3.4 #8] */
static void test_many_aborted_tags_stay_valid_rfc7143_4_2_3_4(void **state)
{
	struct dm_strays s = { .naborted = 0 };
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT };

	(void)state;
	for (uint32_t i = 0; i < 3 * DM_ABORTED_MAX; i++)
		dm_stray_aborted(&s, i, 1000 + i);
	for (uint32_t i = 0; i < 3 * DM_ABORTED_MAX; i++) {
		p.itt = i;
		p.ttt = 1000 + i;
		assert_int_equal(dm_stray_check(&s, &p), 0);
	}
}

static void test_data_out_with_invented_tag(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p;

	(void)state;
	for (unsigned bit = 0; bit < 32; bit++) {
		if ((ttt ^ BIT(bit)) == ISCSI_RESERVED_TAG)
			continue;
		p = data_out(9, ttt ^ BIT(bit), 0, 0, 8192, true);
		feed(&p);
	}
	p = data_out(8, ttt, 0, 0, 8192, true); /* another task's ITT */
	feed(&p);
	assert_int_equal(raw_fate(&r), 1);
	assert_int_equal(r.role.disk[0], 0);
	p = data_out(9, ttt, 0, 0, 8192, true);
	feed(&p);
	assert_status(9, 0);
	assert_memory_equal(r.role.disk, data, 8192);
	raw_fini(&r);
}

/* ---- number of calls and copies ---- */

static void test_many_commands_one_read_one_send(void **state)
{
	struct iscsi_params k = raw_params();
	static uint8_t bytes[16 * 48];
	size_t n = 0;

	(void)state;
	begin(&k);
	for (uint32_t i = 0; i < FAKE_TASKS; i++) {
		struct iscsi_pdu p = command(100 + i, false, 4096, 0, true);

		n += raw_encode(&r, &p, NULL, RAW_GOOD, bytes + n);
	}
	raw_feed(&r, bytes, n);
	raw_fetch(&r);
	assert_int_equal(r.nout, FAKE_TASKS);
	assert_int_equal(r.out.op, ISCSI_DATA_IN);
	assert_true(r.out.data.status_present);
	/* the test takes at most 64 pieces per send */
	assert_true(r.sends <= FAKE_TASKS * (8 + 1) / 64 + 1);
	raw_fini(&r);
}

/* What the peer surely has to send: the rest of the data segment. */
static size_t sure(void)
{
	struct stream_status st;

	dmtcp_stream_ops.status(r.conn, &st);
	return st.sure;
}

static void test_large_payload_goes_straight_to_its_place(void **state)
{
	uint32_t ttt = asked();
	struct iscsi_pdu p = data_out(9, ttt, 0, 0, 8192, true);
	uint64_t before = dmtcp_stats(r.conn)->copied;
	static uint8_t bytes[9000];
	size_t n = raw_encode(&r, &p, data, RAW_GOOD, bytes);
	struct iovec iov[16];
	unsigned k;

	(void)state;
	assert_int_equal(sure(), 0);
	raw_feed(&r, bytes, ISCSI_BHS_LEN);
	assert_int_equal(sure(), 8192);
	k = dmtcp_stream_ops.rx_where(r.conn, iov, 16);
	assert_true(k > 1);
	assert_ptr_equal(iov[0].iov_base,
			 r.role.task[0].dm.out.iov[0].iov_base);
	raw_feed(&r, bytes + ISCSI_BHS_LEN, 100);
	assert_int_equal(sure(), 8092);
	raw_feed(&r, bytes + ISCSI_BHS_LEN + 100, n - ISCSI_BHS_LEN - 100);
	assert_int_equal(sure(), 0);
	raw_fetch(&r);
	assert_status(9, 0);
	assert_int_equal(dmtcp_stats(r.conn)->copied, before);
	raw_fini(&r);
}

/* ---- every truncation ---- */

static void test_peer_vanishes_after_every_byte(void **state)
{
	struct iscsi_params k = raw_params();
	static uint8_t bytes[4096];

	(void)state;
	k.header_digest = k.data_digest = true;
	for (size_t cut = 0;; cut++) {
		struct iscsi_pdu p = command(1, true, 8192, 301, false);
		size_t n;

		raw_init(&r, ISCSI_TARGET, &k);
		raw_login(&r);
		n = raw_encode(&r, &p, data, RAW_GOOD, bytes);
		p = data_out(1, ISCSI_RESERVED_TAG, 0, 301, 99, true);
		n += raw_encode(&r, &p, data, RAW_GOOD, bytes + n);
		raw_feed(&r, bytes, MIN(cut, n));
		raw_close(&r, ERR_RESET);
		assert_int_equal(r.role.terminated, 1);
		assert_int_equal(r.role.terminate_err, ERR_RESET);
		raw_fini(&r);
		if (cut == n)
			break;
	}
}

/* A connection without SCSI Commands has no stage and a small look-ahead buffer, before the
 * first one as well as after a rest; other requests, and a command, come through. */
static void test_resting_connection_keeps_little(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu tmf = { .op = ISCSI_TMF_REQUEST,
				 .immediate = true,
				 .final = true,
				 .itt = 9 };

	(void)state;
	begin(&k);
	for (unsigned i = 0; i < 2; i++) {
		feed(&tmf);
		assert_int_equal(r.out.op, ISCSI_TMF_RESPONSE);
		feed(&tmf);
		assert_int_equal(r.nout, 2);
		assert_null(r.conn->stage);
		assert_int_equal(r.conn->rx.look_size, 2048);
		assert_still_works();
		assert_still_works();
		assert_non_null(r.conn->stage);
		assert_int_equal(r.conn->rx.look_size, r.conn->cfg.lookahead);
		dm_rest(dmtcp_dm(r.conn));
		assert_null(r.conn->stage);
		r.nout = 0;
	}
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dsl_beyond_declared_rfc7143_13_12),
		cmocka_unit_test(test_login_dsl_beyond_8192_rfc7143_13_12),
		cmocka_unit_test(test_first_header_is_no_login_rfc7143_6_3),
		cmocka_unit_test(test_header_digest_wrong_rfc7143_7_7),
		cmocka_unit_test(test_ahs_on_data_out_rfc7143_11_2_2),
		cmocka_unit_test(test_peer_that_does_not_read_is_cut),
		cmocka_unit_test(test_unknown_opcode_is_reported),
		cmocka_unit_test(test_target_opcode_from_initiator_is_reported),
		cmocka_unit_test(test_data_digest_of_control_rfc7143_7_8),
		cmocka_unit_test(test_data_digest_of_immediate_data),
		cmocka_unit_test(test_immediate_data_not_agreed_rfc7143_13_11),
		cmocka_unit_test(test_unsolicited_not_agreed_rfc7143_13_10),
		cmocka_unit_test(test_unsolicited_datasn_rfc7143_11_7_5),
		cmocka_unit_test(test_unsolicited_offset_rfc7143_11_7_6),
		cmocka_unit_test(
			test_unsolicited_beyond_first_burst_rfc7143_13_14),
		cmocka_unit_test(test_dropped_pdus_end_no_sequence),
		cmocka_unit_test(test_solicited_good),
		cmocka_unit_test(test_empty_data_out_rfc7143_11_7_7),
		cmocka_unit_test(test_solicited_breaks_rfc7143_11_7),
		cmocka_unit_test(
			test_stray_data_out_is_reported_rfc7143_11_17_1),
		cmocka_unit_test(
			test_data_out_out_of_place_is_reported_rfc7143_11_7),
		cmocka_unit_test(
			test_unexpected_unsolicited_data_rfc7143_11_4_7_2),
		cmocka_unit_test(test_abort_within_a_data_segment),
		cmocka_unit_test(test_data_of_an_aborted_task_is_dropped),
		cmocka_unit_test(
			test_many_aborted_tags_stay_valid_rfc7143_4_2_3_4),
		cmocka_unit_test(test_data_out_with_invented_tag),
		cmocka_unit_test(test_many_commands_one_read_one_send),
		cmocka_unit_test(test_large_payload_goes_straight_to_its_place),
		cmocka_unit_test(test_peer_vanishes_after_every_byte),
		cmocka_unit_test(test_resting_connection_keeps_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
