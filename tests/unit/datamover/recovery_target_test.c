/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recovery_target_test.c: the target's end of datamover/tcp at ErrorRecoveryLevel 1
 * (RFC 7143 §7.1.4, §11.16): what it keeps, and how it answers each SNACK and each
 * damaged or lost Data-Out.
 */
#include "recovery_target.h"

static void ask(uint8_t type, uint32_t itt, uint32_t begrun, uint32_t runlen)
{
	feed(snack(type, itt, begrun, runlen), NULL, RAW_GOOD);
}

/* seen[i] is the Data-In sn of a READ of the disk, at byte off. */
static void assert_data_in(unsigned i, uint32_t sn, uint32_t off, uint32_t len)
{
	assert_true(i < nseen);
	assert_int_equal(seen[i].op, ISCSI_DATA_IN);
	assert_int_equal(seen[i].data.datasn, sn);
	assert_int_equal(seen[i].data.offset, off);
	assert_int_equal(seen[i].dsl, len);
	assert_memory_equal(seen_bytes[i], data + off, len);
}

/* An acknowledgement of everything up to statsn ends n commands. */
static void acknowledge(uint32_t statsn, unsigned n)
{
	unsigned before = r.role.finished;
	struct iscsi_pdu p = snack(1, ISCSI_RESERVED_TAG, 0, 0);

	p.expstatsn = statsn;
	feed(p, NULL, RAW_GOOD);
	assert_int_equal(r.role.finished, before + n);
}

/* ---- status ---- */

static void test_status_is_kept_until_acknowledged_rfc7143_4_2_2_2(void **state)
{
	struct iscsi_params k = params();

	(void)state;
	begin(&k);
	for (uint32_t i = 0; i < 3; i++) {
		feed(command(10 + i, false, i == 1 ? 512 : 0,
			     i ? 0 : FAKE_SENSE),
		     NULL, RAW_GOOD);
		assert_int_equal(nseen, 1);
		assert_int_equal(seen[0].statsn, first + i);
	}
	assert_int_equal(r.role.finished, 0);
	acknowledge(first + 4, 0); /* was not sent: ignored */
	acknowledge(first - 1, 0);
	acknowledge(first + 1, 1);
	acknowledge(first + 1, 0);
	acknowledge(first, 0); /* older than the last */
	acknowledge(first + 3, 2);
	raw_fini(&r);
}

/* [RFC 7143: 4.2.5.1 #5, 11.4.9 #1, 11.16 #1-3] */
static void test_status_snack_rfc7143_11_16(void **state)
{
	static const struct {
		uint32_t begrun, runlen; /* begrun: from `first` */
		unsigned from, n;
	} rows[] = { { 0, 1, 0, 1 }, { 1, 1, 1, 1 }, { 2, 1, 2, 1 },
		     { 0, 3, 0, 3 }, { 1, 0, 1, 2 }, { 1, 2, 1, 2 } };
	struct iscsi_params k = params();

	(void)state;
	begin(&k);
	feed(command(10, false, 0, FAKE_SENSE), NULL, RAW_GOOD);
	feed(command(11, false, 512, FAKE_STATUS_WITH_DATA), NULL, RAW_GOOD);
	feed(command(12, false, 0, FAKE_STATUS_APART), NULL, RAW_GOOD);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		ask(1, ISCSI_RESERVED_TAG, first + rows[i].begrun,
		    rows[i].runlen);
		assert_int_equal(nseen, rows[i].n);
		for (unsigned j = 0; j < nseen; j++) {
			assert_int_equal(seen[j].statsn,
					 first + rows[i].from + j);
			assert_int_equal(seen[j].itt, 10 + rows[i].from + j);
		}
	}
	ask(1, ISCSI_RESERVED_TAG, 0, 0);
	assert_int_equal(nseen, 3);
	assert_int_equal(seen[0].dsl, 20);
	assert_int_equal(seen[0].rsp.status, 2);
	assert_int_equal(seen_bytes[0][0], 0x70);
	assert_data_in(1, 0, 0, 512); /* an exact replica: with its data */
	assert_true(seen[1].data.status_present);
	assert_int_equal(r.role.errors, 0);
	acknowledge(first + 3, 3);
	ask(1, ISCSI_RESERVED_TAG, 0, 0); /* nothing is left */
	assert_int_equal(nseen + r.role.errors, 0);
	raw_fini(&r);
}

/* [RFC 7143: 11.16 #7] */
static void test_status_snack_is_refused_rfc7143_11_16(void **state)
{
	struct iscsi_params k = params();
	struct iscsi_pdu p = snack(1, ISCSI_RESERVED_TAG, 0, 0);

	(void)state;
	begin(&k);
	for (uint32_t i = 0; i < 3; i++)
		feed(command(10 + i, false, 0, 0), NULL, RAW_GOOD);
	acknowledge(first + 1, 1);
	p.snack.begrun = first; /* acknowledged */
	p.snack.runlen = 1;
	expect_refused(p, ERR_RANGE);
	p.snack.begrun = first - 1; /* the login */
	expect_refused(p, ERR_RANGE);
	p.snack.begrun = first + 3; /* not sent */
	expect_refused(p, ERR_RANGE);
	p.snack.begrun = first + 2;
	p.snack.runlen = 2;
	expect_refused(p, ERR_RANGE);
	p.snack.runlen = 0xffffffff;
	expect_refused(p, ERR_RANGE);
	p.snack.runlen = 1;
	p.itt = 12; /* §11.16.4 */
	expect_refused(p, ERR_FORMAT);
	p.itt = ISCSI_RESERVED_TAG;
	p.ttt = 0; /* §11.16.5 */
	expect_refused(p, ERR_FORMAT);
	p.ttt = ISCSI_RESERVED_TAG;
	for (uint8_t type = 4; type < 16; type++) {
		p.snack.type = type; /* §11.16.1: reserved */
		expect_refused(p, ERR_FORMAT);
	}
	raw_fini(&r);
}

/* A control PDU, here a TMF Response, is kept, too. */
static void test_other_responses_are_kept_rfc7143_11_16(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_TMF_REQUEST,
			       .final = true,
			       .immediate = true,
			       .itt = 77 };
	struct iscsi_params k = params();

	(void)state;
	begin(&k);
	p.tmf.function = ISCSI_TMF_ABORT_TASK;
	p.expstatsn = first;
	feed(p, NULL, RAW_GOOD);
	assert_int_equal(seen[0].op, ISCSI_TMF_RESPONSE);
	ask(1, ISCSI_RESERVED_TAG, first, 1);
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].op, ISCSI_TMF_RESPONSE);
	assert_int_equal(seen[0].itt, 77);
	assert_int_equal(seen[0].statsn, first);
	assert_int_equal(seen[0].tmf_response, ISCSI_TMF_NO_TASK);
	acknowledge(first + 1, 0);
	raw_fini(&r);
}

/* ---- read data ---- */

/* [RFC 7143: 7.8 #7, 11.16 #1 #5-6] */
static void test_data_snack_rfc7143_11_16(void **state)
{
	static const struct {
		uint32_t begrun, runlen, from, n;
	} rows[] = { { 0, 1, 0, 1 }, { 2, 1, 2, 1 }, { 4, 1, 4, 1 },
		     { 1, 3, 1, 3 }, { 2, 0, 2, 3 }, { 0, 0, 0, 5 } };
	struct iscsi_params k = params();

	(void)state;
	begin(&k);
	feed(command(10, false, 40000, FAKE_STATUS_WITH_DATA), NULL, RAW_GOOD);
	assert_int_equal(nseen, 5);
	/* what is on the disk now is not what the command read */
	memset(r.role.disk, 0x55, sizeof(data));
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		ask(0, 10, rows[i].begrun, rows[i].runlen);
		assert_int_equal(nseen, rows[i].n);
		for (uint32_t j = 0; j < nseen; j++) {
			uint32_t sn = rows[i].from + j;

			assert_data_in(j, sn, sn * DSL, sn == 4 ? 7232 : DSL);
			assert_int_equal(seen[j].final, sn != 0 && sn != 2);
			assert_int_equal(seen[j].data.status_present, sn == 4);
			assert_int_equal(seen[j].data.ack, sn == 1 || sn == 3);
		}
	}
	expect_refused(snack(0, 10, 5, 1), ERR_RANGE);
	assert_int_equal(r.role.snack_next, 5); /* §11.17.2 */
	expect_refused(snack(0, 10, 4, 2), ERR_RANGE);
	expect_refused(snack(0, 11, 0, 0), ERR_NOT_FOUND);
	acknowledge(first + 1, 1);
	expect_refused(snack(0, 10, 0, 0), ERR_NOT_FOUND);
	raw_fini(&r);
}

/* Both the response that follows the data and the data can be asked for. */
static void test_data_snack_with_status_apart_rfc7143_11_16(void **state)
{
	struct iscsi_params k = params();

	(void)state;
	begin(&k);
	feed(command(10, false, 20000, FAKE_STATUS_APART), NULL, RAW_GOOD);
	assert_int_equal(nseen, 4);
	assert_int_equal(seen[3].op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(seen[3].rsp.exp_datasn, 3);
	ask(0, 10, 1, 1);
	assert_int_equal(nseen, 1);
	assert_data_in(0, 1, DSL, DSL);
	ask(1, ISCSI_RESERVED_TAG, first, 0);
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(seen[0].rsp.exp_datasn, 3);
	acknowledge(first + 1, 1);
	raw_fini(&r);
}

/* The tag of an A bit leads a DataACK to its task. */
/* [RFC 7143: 11.7.2 #1, 11.7.4 #1, 11.16 #1] */
static void test_data_ack_rfc7143_11_16_2(void **state)
{
	struct iscsi_params k = params();
	struct iscsi_pdu p;

	(void)state;
	begin(&k);
	feed(command(10, false, 40000, FAKE_STATUS_WITH_DATA), NULL, RAW_GOOD);
	assert_true(seen[1].data.ack && seen[3].data.ack);
	assert_false(seen[0].data.ack || seen[2].data.ack || seen[4].data.ack);
	assert_int_equal(seen[1].lun, 5); /* §11.7.4 */
	p = snack(2, ISCSI_RESERVED_TAG, 2, 0);
	p.ttt = seen[1].ttt;
	p.lun = 5;
	p.itt = 10; /* §11.16.4 */
	expect_refused(p, ERR_FORMAT);
	p.itt = ISCSI_RESERVED_TAG;
	p.snack.runlen = 1; /* §11.16.7 */
	expect_refused(p, ERR_FORMAT);
	p.snack.runlen = 0;
	p.lun = 4;
	expect_refused(p, ERR_SEQUENCE);
	p.lun = 5;
	p.ttt++;
	expect_refused(p, ERR_SEQUENCE);
	p.ttt--;
	p.snack.begrun = 6;
	expect_refused(p, ERR_SEQUENCE);
	p.snack.begrun = 2;
	feed(p, NULL, RAW_GOOD);
	assert_int_equal(nseen, 0);
	/* an acknowledged PDU is not sent again; all others are */
	expect_refused(snack(0, 10, 1, 1), ERR_RANGE);
	ask(0, 10, 0, 0);
	assert_int_equal(nseen, 3);
	assert_data_in(0, 2, 2 * DSL, DSL);
	acknowledge(first + 1, 1);
	raw_fini(&r);
}

/* ---- R-Data ---- */

static void shrink(uint32_t dsl)
{
	r.params.max_send_dsl = dsl;
	dm_notice_key_values(r.role.dm, &r.params);
}

static void ask_r_data(uint32_t itt, uint32_t tag)
{
	struct iscsi_pdu p = snack(3, itt, 0, 0);

	p.ttt = tag;
	feed(p, NULL, RAW_GOOD);
}

static void expect_resegmented(uint32_t from, uint32_t off, uint32_t tag)
{
	uint32_t n = 0;

	for (uint32_t at = off; at < 40000; at += 4096, n++) {
		assert_data_in(n, from + n, at, MIN(4096u, 40000 - at));
		assert_false(seen[n].data.status_present);
	}
	assert_int_equal(nseen, n + 1);
	assert_int_equal(seen[n].op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(seen[n].rsp.snack_tag, tag);
	assert_int_equal(seen[n].statsn, first); /* §11.16.3: the same */
	assert_int_equal(seen[n].rsp.exp_datasn, from + n);
}

static void r_data(enum fake_answer answer, bool with_ack)
{
	struct iscsi_params k = params();
	struct iscsi_pdu p = snack(3, 10, 0, 0);
	uint32_t from = with_ack ? 2 : 0;

	begin(&k);
	feed(command(10, false, 40000, answer), NULL, RAW_GOOD);
	if (with_ack) {
		struct iscsi_pdu ack = snack(2, ISCSI_RESERVED_TAG, 2, 0);

		ack.ttt = seen[1].ttt;
		ack.lun = 5;
		feed(ack, NULL, RAW_GOOD);
	}
	shrink(4096);
	/* §11.16.3: not by another type, and with a valid tag */
	expect_refused(snack(0, 10, 2, 1), ERR_RANGE);
	expect_refused(p, ERR_FORMAT);
	p.ttt = 0;
	expect_refused(p, ERR_FORMAT);
	p.ttt = 9;
	p.snack.begrun = 1;
	expect_refused(p, ERR_FORMAT);
	ask_r_data(10, 9);
	expect_resegmented(from, from * DSL, 9);
	p.snack.begrun = 0;
	expect_refused(p, ERR_FORMAT); /* not unique for the task */
	ask_r_data(10, 8);
	expect_resegmented(from, from * DSL, 8);
	/* now the last SNACK Tag comes with the status (§11.16.3) */
	ask(1, ISCSI_RESERVED_TAG, first, 1);
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].rsp.snack_tag, 8);
	ask(0, 10, from + 1, 1);
	assert_int_equal(nseen, 1);
	assert_data_in(0, from + 1, from * DSL + 4096, 4096);
	acknowledge(first + 1, 1);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

/* [RFC 7143: 11.16 #1, 11.16.3 #2, 11.16.5 #1-2, 11.16.6 #1] */
static void test_r_data_rfc7143_11_16_3(void **state)
{
	(void)state;
	for (unsigned ack = 0; ack < 2; ack++) {
		r_data(FAKE_STATUS_WITH_DATA, ack);
		r_data(FAKE_STATUS_APART, ack);
	}
}

/* An R-Data SNACK comes while the transport has taken some of the data. */
static void test_r_data_during_the_transfer_rfc7143_11_16_3(void **state)
{
	struct iscsi_params k = params();
	struct iscsi_pdu p = command(10, false, 384u << 10, 0);
	struct iovec iov[64];
	uint64_t got = 0;

	(void)state;
	k.max_recv_dsl = k.max_send_dsl = 512;
	begin(&k);
	raw_pdu(&r, &p, NULL, RAW_GOOD);
	/* the stage holds 128 PDUs: the rest waits */
	assert_true(dmtcp_stream_ops.tx_what(r.conn, iov, 64) > 0);
	p = snack(3, 10, 0, 0);
	p.ttt = 7;
	raw_pdu(&r, &p, NULL, RAW_GOOD);
	for (unsigned pdus = 0;;) {
		unsigned n = dmtcp_stream_ops.tx_what(r.conn, iov, 64);
		size_t len = bufv_of(iov, n).len;

		if (!n)
			break;
		got += len;
		pdus++;
		dmtcp_stream_ops.tx_done(r.conn, len, XTIME_S);
		assert_true(pdus < 1000);
	}
	/* the PDUs of the stage, all PDUs again, and a response */
	assert_int_equal(got, 128 * 560 + 768 * 560 + 48);
	acknowledge(first + 1, 1);
	raw_fini(&r);
}

/* ---- bounds ---- */

static void test_snack_again_and_again_rfc7143_7_1_4(void **state)
{
	struct iscsi_params k = params();
	unsigned rounds;

	(void)state;
	for (unsigned type = 0; type < 3; type++) {
		uint64_t sent = 0;

		begin(&k);
		feed(command(10, false, 40000, FAKE_STATUS_WITH_DATA), NULL,
		     RAW_GOOD);
		for (rounds = 0; rounds < 10000; rounds++) {
			struct iscsi_pdu p =
				type == 0   ? snack(0, 10, 0, 0)
				: type == 1 ? snack(1, ISCSI_RESERVED_TAG, 0, 0)
					    : snack(3, 10, 0, 0);

			if (type == 2)
				p.ttt = rounds + 1;
			raw_pdu(&r, &p, NULL, RAW_GOOD);
			if (raw_fate(&r) != 1)
				break;
			fetch();
			sent += nseen;
		}
		assert_int_equal(r.role.terminate_err, ERR_LIMIT);
		assert_true(sent > 20 && sent < 250);
		raw_fini(&r);
	}
}

/* SNACKs that come faster than the transport takes PDUs are merged. */
static void test_snacks_are_merged(void **state)
{
	struct iscsi_params k = params();

	(void)state;
	begin(&k);
	feed(command(10, false, 40000, FAKE_STATUS_WITH_DATA), NULL, RAW_GOOD);
	for (uint32_t i = 0; i < 5; i++) {
		struct iscsi_pdu p = snack(0, 10, i, 1);

		raw_pdu(&r, &p, NULL, RAW_GOOD);
		raw_pdu(&r, &p, NULL, RAW_GOOD);
	}
	fetch();
	assert_int_equal(nseen, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_data_in(i, i, i * DSL, i == 4 ? 7232 : DSL);
	raw_fini(&r);
}

/* A peer that takes PDUs and acknowledges none is cut. */
static void test_peer_that_acknowledges_nothing_is_cut(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_TMF_REQUEST,
			       .immediate = true,
			       .final = true };
	struct iscsi_params k = params();
	unsigned i;

	(void)state;
	begin(&k);
	p.tmf.function = ISCSI_TMF_ABORT_TASK;
	p.expstatsn = first;
	for (i = 0; i < 1000 && r.role.terminated == 0; i++) {
		p.itt = i;
		raw_pdu(&r, &p, NULL, RAW_GOOD);
		fetch();
		if (raw_fate(&r) != 1)
			break;
	}
	assert_true(i < 200);
	assert_int_equal(r.role.terminate_err, ERR_LIMIT);
	raw_fini(&r);
}

/* ---- write data ---- */

/* [RFC 7143: 7.3 #4, 7.8 #2-3] */
static void test_recovery_r2t_after_digest_error_rfc7143_7_8(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt;

	(void)state;
	begin_write(&k, BURST);
	ttt = assert_r2t(0, 0, BURST);
	write_out(ttt, 0, 0, 4096, false, RAW_GOOD);
	write_out(ttt, 1, 4096, 4096, false, RAW_BAD_DATA);
	assert_int_equal(r.role.last_error, ERR_DATA_DIGEST);
	assert_int_equal(nseen, 0); /* MaxOutstandingR2T is 1 */
	write_out(ttt, 2, 8192, 4096, false, RAW_GOOD);
	write_out(ttt, 3, 12288, 4096, true, RAW_GOOD);
	ttt = assert_r2t(1, 4096, 4096);
	write_out(ttt, 0, 4096, 2048, false, RAW_GOOD);
	write_out(ttt, 1, 6144, 2048, true, RAW_BAD_DATA);
	ttt = assert_r2t(2, 6144, 2048);
	write_out(ttt, 0, 6144, 2048, true, RAW_GOOD);
	assert_written(BURST, 0);
	assert_int_equal(r.role.errors, 2);
	raw_fini(&r);
}

/* The last PDU of a burst of several: the next burst is asked for as well. */
static void test_recovery_r2t_beside_others_rfc7143_11_8(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t a, b, c;

	(void)state;
	k.max_outstanding_r2t = 2;
	begin_write(&k, 3 * BURST);
	assert_int_equal(nseen, 2);
	a = seen[0].ttt;
	b = seen[1].ttt;
	write_out(a, 0, 0, 8192, false, RAW_BAD_DATA);
	write_out(a, 1, 8192, 8192, true, RAW_GOOD);
	c = assert_r2t(2, 0, 8192);
	write_out(b, 0, BURST, 8192, false, RAW_GOOD);
	write_out(b, 1, BURST + 8192, 8192, true, RAW_GOOD);
	b = assert_r2t(3, 2 * BURST, BURST);
	write_out(c, 0, 0, 8192, true, RAW_GOOD);
	write_out(b, 0, 2 * BURST, 8192, false, RAW_GOOD);
	write_out(b, 1, 2 * BURST + 8192, 8192, true, RAW_GOOD);
	assert_written(3 * BURST, 0);
	raw_fini(&r);
}

/* [RFC 7143: 7.9 #2] */
static void test_recovery_r2t_after_lost_pdus_rfc7143_7_9(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt;

	(void)state;
	begin_write(&k, BURST);
	ttt = assert_r2t(0, 0, BURST);
	write_out(ttt, 1, 4096, 4096, false, RAW_GOOD); /* 0 is lost */
	write_out(ttt, 2, 8192, 4096, true, RAW_GOOD);	/* so is the end */
	ttt = assert_r2t(1, 0, BURST);
	write_out(ttt, 0, 0, 8192, false, RAW_GOOD);
	write_out(ttt, 1, 8192, 8192, true, RAW_GOOD);
	assert_written(BURST, 0);
	assert_int_equal(r.role.errors, 0);
	raw_fini(&r);
}

/* [RFC 7143: 7.8 #3] */
static void test_recovery_of_unsolicited_data_rfc7143_7_8(void **state)
{
	struct iscsi_params k = write_params();
	uint32_t ttt;

	(void)state;
	k.initial_r2t = false;
	k.first_burst_length = 8192;
	begin_write(&k, BURST);
	assert_int_equal(nseen, 0);
	write_out(ISCSI_RESERVED_TAG, 0, 0, 2048, false, RAW_GOOD);
	write_out(ISCSI_RESERVED_TAG, 1, 2048, 2048, false, RAW_BAD_DATA);
	write_out(ISCSI_RESERVED_TAG, 3, 6144, 2048, true, RAW_GOOD);
	ttt = assert_r2t(0, 2048, 4096);
	write_out(ttt, 0, 2048, 4096, true, RAW_GOOD);
	/* only now the role asks for the rest */
	ttt = assert_r2t(1, 8192, 8192);
	write_out(ttt, 0, 8192, 8192, true, RAW_GOOD);
	assert_written(BURST, 0);
	raw_fini(&r);
}

/* [RFC 7143: 7.8 #4] */
static void test_recovery_r2t_has_a_limit_rfc7143_7_8(void **state)
{
	struct iscsi_params k = write_params();
	unsigned rounds = 0;

	(void)state;
	begin_write(&k, 4096);
	while (seen[nseen - 1].op == ISCSI_R2T) {
		assert_true(rounds++ < 20);
		write_out(seen[nseen - 1].ttt, 0, 0, 4096, true, RAW_BAD_DATA);
	}
	assert_int_equal(rounds, 9);
	assert_written(4096, 2); /* CHECK CONDITION: §7.8 b */
	raw_fini(&r);
}

/* [RFC 7143: 11.16 #2 #4] */
static void test_r2t_snack_rfc7143_11_16(void **state)
{
	struct iscsi_params k = write_params();
	struct iscsi_pdu before;
	uint32_t ttt;

	(void)state;
	begin_write(&k, 2 * BURST);
	ttt = assert_r2t(0, 0, BURST);
	before = seen[0];
	write_out(ttt, 0, 0, 4096, false, RAW_GOOD);
	ask(0, 20, 0, 1);
	assert_int_equal(nseen, 1);
	assert_memory_equal(&seen[0], &before, sizeof(before));
	ask(0, 20, 0, 0);
	assert_int_equal(nseen, 1);
	expect_refused(snack(0, 20, 1, 1), ERR_RANGE);
	assert_int_equal(r.role.snack_next, 1);
	write_out(ttt, 1, 4096, BURST - 8192, false, RAW_GOOD);
	write_out(ttt, 2, BURST - 4096, 4096, true, RAW_GOOD);
	ttt = assert_r2t(1, BURST, BURST);
	/* the data of the first acknowledge it */
	expect_refused(snack(0, 20, 0, 1), ERR_RANGE);
	ask(0, 20, 1, 0);
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].ttt, ttt);
	raw_fini(&r);
}

/* An abort ends a task whose PDUs are to be sent again. */
static void test_abort_while_data_are_sent_again(void **state)
{
	struct iscsi_pdu abort = { .op = ISCSI_TMF_REQUEST,
				   .immediate = true,
				   .final = true,
				   .itt = 99 };
	struct iscsi_params k = params();
	struct iscsi_pdu p = command(10, false, 384u << 10, FAKE_STATUS_APART);
	struct iovec iov[64];

	(void)state;
	k.max_recv_dsl = k.max_send_dsl = 512;
	begin(&k);
	raw_pdu(&r, &p, NULL, RAW_GOOD);
	assert_true(dmtcp_stream_ops.tx_what(r.conn, iov, 64) > 0);
	p = snack(0, 10, 3, 5);
	raw_pdu(&r, &p, NULL, RAW_GOOD);
	abort.tmf.function = ISCSI_TMF_ABORT_TASK;
	abort.tmf.rtt = 10;
	abort.expstatsn = first;
	raw_pdu(&r, &abort, NULL, RAW_GOOD);
	while (dmtcp_stream_ops.tx_what(r.conn, iov, 1))
		dmtcp_stream_ops.tx_done(r.conn, iov[0].iov_len, XTIME_S);
	assert_int_equal(r.role.aborted, 1);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_status_is_kept_until_acknowledged_rfc7143_4_2_2_2),
		cmocka_unit_test(test_status_snack_rfc7143_11_16),
		cmocka_unit_test(test_status_snack_is_refused_rfc7143_11_16),
		cmocka_unit_test(test_other_responses_are_kept_rfc7143_11_16),
		cmocka_unit_test(test_data_snack_rfc7143_11_16),
		cmocka_unit_test(
			test_data_snack_with_status_apart_rfc7143_11_16),
		cmocka_unit_test(test_data_ack_rfc7143_11_16_2),
		cmocka_unit_test(test_r_data_rfc7143_11_16_3),
		cmocka_unit_test(
			test_r_data_during_the_transfer_rfc7143_11_16_3),
		cmocka_unit_test(test_snack_again_and_again_rfc7143_7_1_4),
		cmocka_unit_test(test_snacks_are_merged),
		cmocka_unit_test(test_peer_that_acknowledges_nothing_is_cut),
		cmocka_unit_test(
			test_recovery_r2t_after_digest_error_rfc7143_7_8),
		cmocka_unit_test(test_recovery_r2t_beside_others_rfc7143_11_8),
		cmocka_unit_test(test_recovery_r2t_after_lost_pdus_rfc7143_7_9),
		cmocka_unit_test(test_recovery_of_unsolicited_data_rfc7143_7_8),
		cmocka_unit_test(test_recovery_r2t_has_a_limit_rfc7143_7_8),
		cmocka_unit_test(test_r2t_snack_rfc7143_11_16),
		cmocka_unit_test(test_abort_while_data_are_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
