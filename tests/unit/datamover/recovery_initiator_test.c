/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recovery_initiator_test.c: the initiator's end of datamover/tcp at
 * ErrorRecoveryLevel 1 (RFC 7143 §7.1.4, §7.8, §7.9, §11.16.2) against a target whose
 * PDUs are damaged, lost, repeated or out of order.
 */
#include "raw_seen.h"

#define LEN (3 * DSL)

static uint8_t data[65536];
static uint32_t statsn; /* the first of the full feature phase */

static void begin(uint32_t max_burst)
{
	struct iscsi_params k = raw_params();

	k.error_recovery_level = 1;
	k.data_digest = true;
	k.immediate_data = false;
	k.initial_r2t = true;
	k.max_burst_length = max_burst;
	raw_init(&r, ISCSI_INITIATOR, &k);
	raw_login(&r);
	statsn = 1;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 13 + i / 256);
}

static struct fake_task *start(bool is_write, uint32_t len)
{
	struct fake_task *t = fake_start(&r.role, is_write, 0, len, 0);

	assert_non_null(t);
	fetch();
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].op, ISCSI_SCSI_COMMAND);
	return t;
}

static void feed(const struct iscsi_pdu *p, const void *bytes, enum raw_bad bad)
{
	raw_pdu(&r, p, bytes, bad);
	fetch();
}

/* Data-In sn of a READ of LEN bytes. */
static struct iscsi_pdu data_in(const struct fake_task *t, uint32_t sn,
				bool with_status)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_IN,
			       .final = with_status,
			       .itt = t->dm.itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .dsl = DSL };

	p.data.datasn = sn;
	p.data.offset = sn * DSL;
	p.data.status_present = with_status;
	p.statsn = with_status ? statsn : 0;
	return p;
}

static void give(const struct fake_task *t, uint32_t sn, bool with_status,
		 enum raw_bad bad)
{
	const struct iscsi_pdu p = data_in(t, sn, with_status);

	feed(&p, data + sn * DSL, bad);
}

static void respond(const struct fake_task *t, uint32_t sn, enum raw_bad bad)
{
	uint8_t sense[20] = { 0, 18, 0x70 };
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
			       .final = true,
			       .itt = t->dm.itt,
			       .statsn = sn,
			       .dsl = sizeof(sense) };

	p.rsp.status = 2;
	feed(&p, sense, bad);
}

/* The initiator sent one SNACK and nothing else. */
static void assert_snack(uint8_t type, uint32_t itt, uint32_t begrun,
			 uint32_t runlen)
{
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].op, ISCSI_SNACK_REQUEST);
	assert_int_equal(seen[0].snack.type, type);
	assert_int_equal(seen[0].itt, itt);
	assert_int_equal(seen[0].snack.begrun, begrun);
	assert_int_equal(seen[0].snack.runlen, runlen);
	assert_int_equal(seen[0].expstatsn, r.role.numbers.expstatsn);
}

static void assert_read(const struct fake_task *t, unsigned finished)
{
	assert_int_equal(r.role.finished, finished);
	assert_int_equal(t->status, 0);
	assert_int_equal(t->dm.in_done, LEN);
	assert_memory_equal(t->buf, data, LEN);
	assert_int_equal(raw_fate(&r), 1);
}

/* ---- Data-In ---- */

/* [RFC 7143: 7.8 #5-6] */
static void test_damaged_data_in_rfc7143_7_8(void **state)
{
	(void)state;
	for (uint32_t bad = 0; bad < 3; bad++) {
		struct fake_task *t;

		begin(262144);
		t = start(false, LEN);
		for (uint32_t sn = 0; sn < 3; sn++) {
			give(t, sn, sn == 2,
			     sn == bad ? RAW_BAD_DATA : RAW_GOOD);
			if (sn == bad)
				assert_snack(0, t->dm.itt, bad, 1);
		}
		assert_int_equal(r.role.finished, 0);
		/* §7.9: the status is not acknowledged before its data */
		assert_int_equal(r.role.numbers.expstatsn, statsn);
		give(t, bad, bad == 2, RAW_GOOD);
		assert_read(t, 1);
		assert_int_equal(r.role.numbers.expstatsn, statsn + 1);
		raw_fini(&r);
	}
}

/* [RFC 7143: 7.9 #1 #4, 11.7.2 #6, 11.16.2 #3, 11.16.4 #2, 11.16.5 #4] */
static void test_lost_data_in_rfc7143_7_9(void **state)
{
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	give(t, 2, true, RAW_GOOD);
	assert_snack(0, t->dm.itt, 0, 2);
	assert_int_equal(t->dm.in_done, 0);
	give(t, 1, false, RAW_GOOD);
	assert_int_equal(nseen, 0);
	give(t, 1, false, RAW_GOOD); /* a copy */
	give(t, 2, true, RAW_GOOD);
	assert_int_equal(r.role.finished, 0);
	give(t, 0, false, RAW_GOOD);
	assert_read(t, 1);
	raw_fini(&r);
}

/* The response counts more Data-Ins than came (§7.9). */
/* [RFC 7143: 11.16.1 #1] */
static void test_lost_last_data_in_rfc7143_7_9(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE, .final = true };
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	give(t, 0, false, RAW_GOOD);
	p.itt = t->dm.itt;
	p.statsn = statsn;
	p.rsp.exp_datasn = 3;
	feed(&p, NULL, RAW_GOOD);
	assert_snack(0, t->dm.itt, 1, 2);
	give(t, 1, false, RAW_GOOD);
	assert_int_equal(r.role.finished, 0);
	give(t, 2, false, RAW_GOOD);
	assert_read(t, 1);
	raw_fini(&r);
}

/* DataSN 1 is lost; the PDU that comes for it begins at `offset` and has `len` bytes. */
static struct fake_task *give_for_gap(uint32_t offset, uint32_t len)
{
	struct fake_task *t;
	struct iscsi_pdu p;

	begin(262144);
	t = start(false, LEN);
	give(t, 0, false, RAW_GOOD);
	give(t, 2, true, RAW_GOOD);
	assert_snack(0, t->dm.itt, 1, 1);
	p = data_in(t, 1, false);
	p.data.offset = offset;
	p.dsl = len;
	feed(&p, data + DSL, RAW_GOOD);
	return t;
}

/* All DataSNs came, and not all bytes: the role must not take the hole for data. */
/* [RFC 7143: 7.9 #4] */
static void test_short_data_for_a_gap(void **state)
{
	struct fake_task *t = give_for_gap(DSL, DSL / 2);

	(void)state;
	assert_int_equal(r.role.finished, 1);
	assert_int_equal(t->dm.in_done, DSL + DSL / 2);
	raw_fini(&r);
}

/* Bytes that came before are not overwritten by a PDU with another DataSN. */
static void test_overlap_after_a_gap_rfc7143_11_7_6(void **state)
{
	struct fake_task *t = give_for_gap(DSL + 4, DSL);
	struct iscsi_pdu p;

	(void)state;
	assert_int_equal(r.role.finished, 0);
	assert_int_equal(raw_fate(&r), ERR_SEQUENCE);
	assert_memory_equal(t->buf + 2 * DSL, data + 2 * DSL, DSL);
	raw_fini(&r);
	t = give_for_gap(DSL - 4, DSL);
	assert_int_equal(raw_fate(&r), ERR_SEQUENCE);
	assert_memory_equal(t->buf, data, DSL);
	raw_fini(&r);
	/* a number after the last one */
	begin(262144);
	t = start(false, LEN);
	give(t, 0, false, RAW_GOOD);
	give(t, 2, true, RAW_GOOD);
	p = data_in(t, 3, false);
	p.data.offset = 0;
	feed(&p, data + DSL, RAW_GOOD);
	assert_int_equal(raw_fate(&r), ERR_SEQUENCE);
	assert_memory_equal(t->buf, data, DSL);
	raw_fini(&r);
}

/* More gaps than are noted one by one. */
/* [RFC 7143: 7.9 #5] */
static void test_many_gaps(void **state)
{
	struct fake_task *t;
	uint32_t asked = 0;

	(void)state;
	begin(262144);
	t = start(false, 16 * 2048);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t sn = 0; sn < 16; sn++) {
			struct iscsi_pdu p = data_in(t, sn, sn == 15);

			p.dsl = 2048;
			p.data.offset = sn * 2048;
			if (round == 1 || sn % 2)
				feed(&p, data + p.data.offset, RAW_GOOD);
			asked += nseen;
		}
	assert_true(asked >= 8);
	assert_int_equal(r.role.finished, 1);
	assert_memory_equal(t->buf, data, 16 * 2048);
	raw_fini(&r);
}

/* ---- DataACK ---- */

static struct iscsi_pdu with_a_bit(const struct fake_task *t, uint32_t sn)
{
	struct iscsi_pdu p = data_in(t, sn, false);

	p.final = true;
	p.data.ack = true;
	p.ttt = 77;
	p.lun = 5;
	return p;
}

static void assert_data_ack(uint32_t begrun)
{
	assert_snack(2, ISCSI_RESERVED_TAG, begrun, 0);
	assert_int_equal(seen[0].ttt, 77);
	assert_int_equal(seen[0].lun, 5);
}

/* [RFC 7143: 11.7.2 #4, 11.16.2 #1, 11.16.4 #1, 11.16.5 #3, 11.16.7 #1] */
static void test_data_ack_rfc7143_11_16_2(void **state)
{
	struct fake_task *t;
	struct iscsi_pdu p;

	(void)state;
	begin(DSL);
	t = start(false, LEN);
	p = with_a_bit(t, 0);
	feed(&p, data, RAW_GOOD);
	assert_data_ack(1);
	/* §11.7.2: postponed until the hole is filled */
	p = with_a_bit(t, 1);
	feed(&p, data + DSL, RAW_BAD_DATA);
	assert_snack(0, t->dm.itt, 1, 1);
	feed(&p, data + DSL, RAW_GOOD);
	assert_data_ack(2);
	give(t, 2, true, RAW_GOOD);
	assert_int_equal(nseen, 0);
	assert_read(t, 1);
	raw_fini(&r);
}

/* The PDU with the A bit comes while one before it is missing. */
/* [RFC 7143: 11.7.2 #5, 11.16.2 #2] */
static void test_data_ack_waits_for_a_hole_rfc7143_11_7_2(void **state)
{
	struct fake_task *t;
	struct iscsi_pdu p;

	(void)state;
	begin(DSL);
	t = start(false, LEN);
	give(t, 0, false, RAW_BAD_DATA);
	assert_snack(0, t->dm.itt, 0, 1);
	p = with_a_bit(t, 1);
	feed(&p, data + DSL, RAW_GOOD);
	assert_int_equal(nseen, 0);
	give(t, 0, false, RAW_GOOD);
	assert_data_ack(2);
	give(t, 2, true, RAW_GOOD);
	assert_read(t, 1);
	raw_fini(&r);
}

/* §11.7.2: none after the acknowledgement of the status, and none for a PDU that is
 * being received. */
static void test_no_data_ack_too_late_or_early_rfc7143_11_7_2(void **state)
{
	static uint8_t bytes[2 * (DSL + 100)];
	struct fake_task *t;
	struct iscsi_pdu p;
	size_t n;

	(void)state;
	begin(DSL);
	t = start(false, LEN);
	p = with_a_bit(t, 0);
	n = raw_encode(&r, &p, data, RAW_GOOD, bytes);
	p = with_a_bit(t, 1);
	raw_encode(&r, &p, data + DSL, RAW_BAD_DATA, bytes + n);
	raw_feed(&r, bytes, n + 100);
	fetch();
	assert_data_ack(1);
	raw_feed(&r, bytes + n + 100, n - 100);
	fetch();
	assert_snack(0, t->dm.itt, 1, 1);
	p = with_a_bit(t, 1);
	raw_pdu(&r, &p, data + DSL, RAW_GOOD);
	p = data_in(t, 2, true);
	feed(&p, data + 2 * DSL, RAW_GOOD); /* before a DataACK was sent */
	assert_int_equal(nseen, 0);
	assert_read(t, 1);
	raw_fini(&r);
}

/* ---- StatSN ---- */

/* [RFC 7143: 7.1.4 #1, 7.8 #10, 7.9 #3, 11.16.4 #1] */
static void test_lost_status_rfc7143_7_1_4_2(void **state)
{
	struct fake_task *a, *b, *c;

	(void)state;
	begin(262144);
	a = start(false, 512);
	b = start(false, 512);
	c = start(false, 512);
	respond(b, statsn + 1, RAW_GOOD);
	assert_snack(1, ISCSI_RESERVED_TAG, statsn, 1);
	respond(c, statsn + 2, RAW_GOOD);
	assert_int_equal(nseen, 0); /* it was asked for */
	respond(c, statsn + 2, RAW_GOOD);
	assert_int_equal(r.role.finished, 0);
	respond(a, statsn, RAW_GOOD);
	assert_int_equal(r.role.finished, 3);
	assert_int_equal(r.role.numbers.expstatsn, statsn + 3);
	respond(a, statsn, RAW_GOOD); /* a copy */
	assert_int_equal(r.role.finished, 3);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

/* [RFC 7143: 7.8 #10-12] */
static void test_damaged_status_rfc7143_7_8(void **state)
{
	struct fake_task *a;

	(void)state;
	begin(262144);
	a = start(false, 512);
	respond(a, statsn, RAW_BAD_DATA);
	assert_snack(1, ISCSI_RESERVED_TAG, statsn, 1);
	respond(a, statsn, RAW_BAD_DATA);
	assert_snack(1, ISCSI_RESERVED_TAG, statsn, 1);
	assert_int_equal(r.role.finished, 0);
	respond(a, statsn, RAW_GOOD);
	assert_int_equal(r.role.finished, 1);
	assert_int_equal(a->status, 2);
	raw_fini(&r);
}

/* A NOP-In without StatSN of its own names the next one (§7.1.4.2). */
static void test_nop_in_shows_a_lost_status_rfc7143_7_1_4_2(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_NOP_IN,
			       .final = true,
			       .itt = ISCSI_RESERVED_TAG,
			       .ttt = ISCSI_RESERVED_TAG };
	struct fake_task *a;

	(void)state;
	begin(262144);
	a = start(false, 512);
	r.role.strict = false;
	p.statsn = statsn + 1;
	feed(&p, NULL, RAW_GOOD);
	assert_snack(1, ISCSI_RESERVED_TAG, statsn, 1);
	respond(a, statsn, RAW_GOOD);
	assert_int_equal(r.role.finished, 1);
	raw_fini(&r);
}

/* ---- attempts ---- */

static void test_asks_again_and_gives_up_rfc7143_7_8(void **state)
{
	struct fake_task *t;
	unsigned asked = 0;
	xtime at;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	give(t, 1, false, RAW_GOOD);
	assert_snack(0, t->dm.itt, 0, 1);
	while ((at = stream_deadline_of(&dmtcp_stream_ops, r.conn)) !=
		       XTIME_NEVER &&
	       asked < 100) {
		dmtcp_stream_ops.expire(r.conn, at);
		fetch();
		if (nseen)
			assert_snack(0, t->dm.itt, 0, 1);
		asked += nseen;
	}
	assert_int_equal(asked, 8);
	assert_int_equal(raw_fate(&r), ERR_DATA_DIGEST);
	raw_fini(&r);
}

static void test_no_deadline_when_all_came(void **state)
{
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) ==
		    XTIME_NEVER);
	give(t, 1, false, RAW_GOOD);
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) !=
		    XTIME_NEVER);
	give(t, 0, false, RAW_GOOD);
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) ==
		    XTIME_NEVER);
	raw_fini(&r);
}

/* [RFC 7143: 7.8 #9] */
static void test_damaged_again_and_again_rfc7143_7_8(void **state)
{
	struct fake_task *t;
	unsigned n = 0;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	while (raw_fate(&r) == 1 && n++ < 100)
		give(t, 0, false, RAW_BAD_DATA);
	assert_int_equal(n, 10);
	assert_int_equal(r.role.terminate_err, ERR_DATA_DIGEST);
	raw_fini(&r);
}

/* A target that repeats status far ahead does not fill the memory. */
/* [RFC 7143: 4.2.2.2 #1-2] */
static void test_early_status_is_bounded(void **state)
{
	struct fake_task *a;
	uint32_t n = 0;

	(void)state;
	begin(262144);
	a = start(false, 512);
	while (raw_fate(&r) == 1 && n < 100000)
		respond(a, statsn + 1 + n++, RAW_GOOD);
	assert_true(n > 1000 && n < 20000);
	assert_int_equal(r.role.terminate_err, ERR_LIMIT);
	raw_fini(&r);
}

/* ---- R2T and commands ---- */

static void give_r2t(const struct fake_task *t, uint32_t sn, uint32_t off,
		     uint32_t len)
{
	struct iscsi_pdu p = { .op = ISCSI_R2T,
			       .final = true,
			       .itt = t->dm.itt,
			       .ttt = 1000 + sn,
			       .statsn = statsn };

	p.r2t.r2tsn = sn;
	p.r2t.offset = off;
	p.r2t.ddtl = len;
	feed(&p, NULL, RAW_GOOD);
}

static void assert_data_out(unsigned i, const struct fake_task *t, uint32_t ttt,
			    uint32_t off, uint32_t len)
{
	assert_int_equal(seen[i].op, ISCSI_DATA_OUT);
	assert_int_equal(seen[i].ttt, ttt);
	assert_int_equal(seen[i].data.offset, off);
	assert_int_equal(seen[i].dsl, len);
	assert_memory_equal(seen_bytes[i], t->buf + off, len);
}

static void test_recovery_r2t_rfc7143_11_8(void **state)
{
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(true, LEN);
	give_r2t(t, 0, 0, 2 * DSL);
	assert_int_equal(nseen, 2);
	give_r2t(t, 1, 100, 1000); /* Recovery R2T */
	assert_int_equal(nseen, 1);
	assert_data_out(0, t, 1001, 100, 1000);
	give_r2t(t, 1, 100, 1000); /* a copy (§7.9) */
	assert_int_equal(nseen, 0);
	give_r2t(t, 2, 2 * DSL, DSL);
	assert_data_out(0, t, 1002, 2 * DSL, DSL);
	assert_int_equal(t->dm.out_done, LEN);
	respond(t, statsn, RAW_GOOD);
	assert_int_equal(r.role.finished, 1);
	raw_fini(&r);
}

/* [RFC 7143: 7.9 #5] */
static void test_lost_r2t_rfc7143_7_9(void **state)
{
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(true, LEN);
	give_r2t(t, 1, DSL, DSL);
	assert_int_equal(nseen, 2);
	assert_int_equal(seen[0].op, ISCSI_SNACK_REQUEST);
	assert_int_equal(seen[0].snack.begrun, 0);
	assert_int_equal(seen[0].snack.runlen, 1);
	assert_data_out(1, t, 1001, DSL, DSL);
	give_r2t(t, 0, 0, DSL);
	assert_data_out(0, t, 1000, 0, DSL);
	raw_fini(&r);
}

static void reject_snack_of(const struct fake_task *t, uint32_t begrun,
			    uint32_t runlen, uint32_t sn)
{
	struct iscsi_pdu bad = { .op = ISCSI_SNACK_REQUEST,
				 .final = true,
				 .itt = t->dm.itt,
				 .ttt = ISCSI_RESERVED_TAG };
	struct iscsi_pdu p = { .op = ISCSI_REJECT,
			       .final = true,
			       .itt = ISCSI_RESERVED_TAG,
			       .dsl = ISCSI_BHS_LEN,
			       .statsn = sn };
	uint8_t bhs[ISCSI_BHS_LEN];

	bad.snack.begrun = begrun;
	bad.snack.runlen = runlen;
	p.reject.reason = ISCSI_REJECT_PROTOCOL;
	iscsi_bhs_encode(&bad, bhs);
	feed(&p, bhs, RAW_GOOD);
}

/* The target had waited for the data of the lost R2T, and has replaced it: nothing is
 * missing any more. */
static void test_replaced_r2t_rfc7143_7_1_4_1(void **state)
{
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(true, DSL);
	r.role.strict = false;
	give_r2t(t, 1, 0, DSL); /* 0 is lost */
	assert_int_equal(seen[0].op, ISCSI_SNACK_REQUEST);
	assert_data_out(1, t, 1001, 0, DSL);
	reject_snack_of(t, 0, 1, statsn);
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) ==
		    XTIME_NEVER);
	/* that of read data says nothing */
	t = fake_start(&r.role, false, 0, LEN, 0);
	give(t, 1, false, RAW_GOOD);
	reject_snack_of(t, 0, 1, statsn + 1);
	assert_true(stream_deadline_of(&dmtcp_stream_ops, r.conn) !=
		    XTIME_NEVER);
	raw_fini(&r);
}

/* A Recovery R2T comes before the data of the first one are sent, which the target
 * would discard. MaxOutstandingR2T is 1. */
static void test_superseded_r2t_rfc7143_13_17(void **state)
{
	const struct iscsi_pdu none = { 0 };
	struct iscsi_pdu p = none;
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(true, LEN);
	for (uint32_t sn = 0; sn < 2; sn++) {
		p = (struct iscsi_pdu){ .op = ISCSI_R2T,
					.final = true,
					.itt = t->dm.itt,
					.ttt = 1000 + sn,
					.statsn = statsn };
		p.r2t.r2tsn = sn;
		p.r2t.ddtl = LEN;
		raw_pdu(&r, &p, NULL, RAW_GOOD);
	}
	fetch();
	assert_int_equal(raw_fate(&r), 1);
	assert_int_equal(nseen, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_data_out(i, t, 1001, i * DSL, DSL);
	assert_int_equal(t->dm.out_done, LEN);
	assert_false(dm_is_sending(r.role.dm, &t->dm));
	raw_fini(&r);
}

/* TASK REASSIGN brought a READ here, and the first PDUs that the target sent are lost. */
/* [RFC 7143: 7.9 #1] */
static void test_lost_data_of_a_moved_task_rfc7143_7_2_2(void **state)
{
	struct fake_task *t;

	(void)state;
	for (unsigned came = 0; came < 2; came++) {
		begin(262144);
		t = start(false, LEN);
		t->dm.moved = true;
		if (came) {
			give(t, 1, false, RAW_GOOD);
			assert_snack(0, t->dm.itt, 0, 1);
			give(t, 2, true, RAW_GOOD);
			assert_int_equal(r.role.finished, 0);
			give(t, 0, false, RAW_GOOD);
		} else {
			struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
					       .final = true,
					       .itt = t->dm.itt,
					       .statsn = statsn };

			p.rsp.exp_datasn = 3;
			feed(&p, NULL, RAW_GOOD);
			assert_snack(0, t->dm.itt, 0, 3);
			assert_int_equal(r.role.finished, 0);
			for (uint32_t sn = 0; sn < 3; sn++)
				give(t, sn, false, RAW_GOOD);
		}
		assert_read(t, 1);
		raw_fini(&r);
	}
}

/* All its data came before it moved, and the first PDU that comes again is lost. */
static void test_lost_data_of_a_complete_moved_task(void **state)
{
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	t->dm.moved = true;
	t->dm.in_done = LEN;
	memcpy(t->buf, data, LEN);
	give(t, 1, false, RAW_GOOD);
	assert_snack(0, t->dm.itt, 0, 1);
	give(t, 0, false, RAW_GOOD);
	give(t, 2, true, RAW_GOOD);
	assert_read(t, 1);
	raw_fini(&r);
}

/* Its data came before it moved: the response alone ends it. */
static void test_moved_task_needs_no_data(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE, .final = true };
	struct fake_task *t;

	(void)state;
	begin(262144);
	t = start(false, LEN);
	t->dm.moved = true;
	t->dm.in_done = LEN;
	p.itt = t->dm.itt;
	p.statsn = statsn;
	p.rsp.exp_datasn = 3;
	feed(&p, NULL, RAW_GOOD);
	assert_int_equal(nseen, 0);
	assert_int_equal(r.role.finished, 1);
	raw_fini(&r);
}

/* A target that asks for the same data without end is dropped. */
static void test_recovery_r2ts_have_a_limit(void **state)
{
	struct fake_task *t;
	uint32_t n = 0;

	(void)state;
	begin(262144);
	t = start(true, DSL);
	while (raw_fate(&r) == 1 && n < 10000)
		give_r2t(t, n++, 0, DSL);
	assert_true(n > 20 && n < 200);
	assert_int_equal(r.role.terminate_err, ERR_LIMIT);
	raw_fini(&r);
}

/* [RFC 7143: 7.2.1 #1-3, 7.3 #3] */
static void test_retry_of_a_command_rfc7143_7_2_1(void **state)
{
	struct iscsi_params k = raw_params();
	struct iscsi_pdu before;
	struct fake_task *t;

	(void)state;
	k.error_recovery_level = 1;
	k.first_burst_length = 2 * DSL;
	raw_init(&r, ISCSI_INITIATOR, &k);
	raw_login(&r);
	t = fake_start(&r.role, true, 0, LEN, 0);
	fetch();
	assert_int_equal(nseen, 2); /* immediate, unsolicited */
	before = seen[0];
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(dm_retry(r.role.dm, &t->dm), 0);
		assert_int_equal(dm_retry(r.role.dm, &t->dm), 0); /* waits */
		fetch();
		assert_int_equal(nseen, 2);
		assert_memory_equal(&seen[0], &before, sizeof(before));
		assert_data_out(1, t, ISCSI_RESERVED_TAG, DSL, DSL);
		assert_int_equal(seen[1].data.datasn, 0);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(dm_retry(r.role.dm, &t->dm), ERR_LIMIT);
	raw_fini(&r);
}

/* [RFC 7143: 7.2.1 #1] */
static void test_no_retry_at_level_0_rfc7143_7_2_1(void **state)
{
	struct iscsi_params k = raw_params();
	struct fake_task *t;

	(void)state;
	raw_init(&r, ISCSI_INITIATOR, &k);
	raw_login(&r);
	t = start(false, 512);
	assert_int_equal(dm_retry(r.role.dm, &t->dm), ERR_UNSUPPORTED);
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_data_in_rfc7143_7_8),
		cmocka_unit_test(test_lost_data_in_rfc7143_7_9),
		cmocka_unit_test(test_lost_last_data_in_rfc7143_7_9),
		cmocka_unit_test(test_short_data_for_a_gap),
		cmocka_unit_test(test_overlap_after_a_gap_rfc7143_11_7_6),
		cmocka_unit_test(test_many_gaps),
		cmocka_unit_test(test_data_ack_rfc7143_11_16_2),
		cmocka_unit_test(test_data_ack_waits_for_a_hole_rfc7143_11_7_2),
		cmocka_unit_test(
			test_no_data_ack_too_late_or_early_rfc7143_11_7_2),
		cmocka_unit_test(test_lost_status_rfc7143_7_1_4_2),
		cmocka_unit_test(test_damaged_status_rfc7143_7_8),
		cmocka_unit_test(
			test_nop_in_shows_a_lost_status_rfc7143_7_1_4_2),
		cmocka_unit_test(test_asks_again_and_gives_up_rfc7143_7_8),
		cmocka_unit_test(test_no_deadline_when_all_came),
		cmocka_unit_test(test_damaged_again_and_again_rfc7143_7_8),
		cmocka_unit_test(test_early_status_is_bounded),
		cmocka_unit_test(test_recovery_r2t_rfc7143_11_8),
		cmocka_unit_test(test_lost_r2t_rfc7143_7_9),
		cmocka_unit_test(test_replaced_r2t_rfc7143_7_1_4_1),
		cmocka_unit_test(test_superseded_r2t_rfc7143_13_17),
		cmocka_unit_test(test_lost_data_of_a_moved_task_rfc7143_7_2_2),
		cmocka_unit_test(test_lost_data_of_a_complete_moved_task),
		cmocka_unit_test(test_moved_task_needs_no_data),
		cmocka_unit_test(test_recovery_r2ts_have_a_limit),
		cmocka_unit_test(test_retry_of_a_command_rfc7143_7_2_1),
		cmocka_unit_test(test_no_retry_at_level_0_rfc7143_7_2_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
