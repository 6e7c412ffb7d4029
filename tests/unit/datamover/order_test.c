/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order_test.c: data in any order (RFC 7143 §13.18, §13.19), and many R2Ts of one
 * command (§13.17), at both ends of datamover/tcp. The test is the peer.
 */
#include "raw_seen.h"

#define LEN   32768u
#define BURST 16384u
#define PART  4096u

static uint8_t data[LEN];
static uint32_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

static struct iscsi_params params(bool pdu, bool sequence)
{
	struct iscsi_params k = raw_params();

	k.data_pdu_in_order = pdu;
	k.data_sequence_in_order = sequence;
	k.immediate_data = false;
	k.initial_r2t = true;
	k.max_burst_length = BURST;
	return k;
}

static void begin(enum iscsi_role role, const struct iscsi_params *k)
{
	raw_init(&r, role, k);
	raw_login(&r);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
}

/* Feeds p with the bytes of the command that begin at its offset. */
static void feed_at(struct iscsi_pdu p, uint32_t off, enum raw_bad bad)
{
	raw_pdu(&r, &p, data + off, bad);
	fetch();
}

/* ---- the target: Data-Outs ---- */

#define ITT 9u

static struct iscsi_pdu write_command(uint32_t len, uint32_t dsl, bool final)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_COMMAND,
			       .final = final,
			       .immediate = true,
			       .itt = ITT,
			       .dsl = dsl };

	p.cmd.write = true;
	p.cmd.edtl = len;
	return p;
}

static void data_out(uint32_t ttt, uint32_t datasn, uint32_t off, uint32_t len,
		     bool final, enum raw_bad bad)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT,
			       .final = final,
			       .itt = ITT,
			       .ttt = ttt,
			       .dsl = len };

	p.data.datasn = datasn;
	p.data.offset = off;
	feed_at(p, off, bad);
}

static void assert_r2t(unsigned i, uint32_t off, uint32_t len)
{
	assert_true(i < nseen);
	assert_int_equal(seen[i].op, ISCSI_R2T);
	assert_int_equal(seen[i].r2t.offset, off);
	assert_int_equal(seen[i].r2t.ddtl, len);
}

static void assert_written(uint8_t status)
{
	assert_int_equal(nseen, 1);
	assert_int_equal(seen[0].op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(seen[0].rsp.status, status);
	if (!status)
		assert_memory_equal(r.role.disk, data, LEN);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

/* The order number n of 0, 1, 2, 3. */
static void permute(unsigned n, unsigned to[4])
{
	unsigned left[4] = { 0, 1, 2, 3 };

	for (unsigned i = 0; i < 4; i++) {
		unsigned k = n % (4 - i);

		n /= 4 - i;
		to[i] = left[k];
		memmove(&left[k], &left[k + 1], (3 - k) * sizeof(left[0]));
	}
}

static void test_pdus_of_a_sequence_in_any_order_rfc7143_13_18(void **state)
{
	struct iscsi_params k = params(false, true);

	(void)state;
	for (unsigned n = 0; n < 24; n++) {
		unsigned order[4];

		permute(n, order);
		begin(ISCSI_TARGET, &k);
		feed_at(write_command(LEN, 0, true), 0, RAW_GOOD);
		for (uint32_t at = 0; at < LEN; at += BURST) {
			uint32_t ttt = seen[0].ttt;

			assert_int_equal(nseen, 1);
			assert_r2t(0, at, BURST);
			for (unsigned i = 0; i < 4; i++)
				data_out(ttt, i, at + order[i] * PART, PART,
					 i == 3, RAW_GOOD);
		}
		assert_written(0);
	}
}

/* Sequences whose R2Ts are outstanding together, in any order, their PDUs mixed. */
static void test_sequences_in_any_order_rfc7143_13_19(void **state)
{
	struct iscsi_params k = params(false, false);
	static const uint8_t mix[8] = { 5, 0, 7, 2, 1, 6, 3, 4 };
	uint32_t ttt[2], datasn[2] = { 0, 0 };

	(void)state;
	k.max_outstanding_r2t = 2;
	begin(ISCSI_TARGET, &k);
	feed_at(write_command(LEN, 0, true), 0, RAW_GOOD);
	assert_int_equal(nseen, 2);
	assert_r2t(0, 0, BURST);
	assert_r2t(1, BURST, BURST);
	ttt[0] = seen[0].ttt;
	ttt[1] = seen[1].ttt;
	for (unsigned i = 0; i < 8; i++) {
		unsigned b = mix[i] / 4, sn = datasn[b]++;

		data_out(ttt[b], sn, mix[i] * PART, PART, sn == 3, RAW_GOOD);
	}
	assert_written(0);
}

/* Cuts a sequence at random, and sends the parts in a random order. */
static unsigned cut(uint32_t from[], uint32_t to[], unsigned max)
{
	unsigned n = 0;
	uint32_t at = 0;

	while (at < BURST) {
		uint32_t left = BURST - at;
		uint32_t len = n == max - 1 ? left : 1 + below(MIN(left, 700u));

		from[n] = at;
		to[n++] = at += MIN(len, left);
	}
	for (unsigned i = n - 1; i > 0; i--) {
		unsigned j = below(i + 1);
		uint32_t f = from[i], t = to[i];

		from[i] = from[j];
		to[i] = to[j];
		from[j] = f;
		to[j] = t;
	}
	return n;
}

static void test_random_cuts_rfc7143_13_18(void **state)
{
	struct iscsi_params k = params(false, true);
	static uint32_t from[BURST], to[BURST];

	(void)state;
	for (seed = 1; seed <= 40 * 7919; seed = 7919 * (1 + seed / 7919)) {
		uint32_t s = seed;

		begin(ISCSI_TARGET, &k);
		feed_at(write_command(LEN, 0, true), 0, RAW_GOOD);
		for (uint32_t at = 0; at < LEN; at += BURST) {
			unsigned n = cut(from, to, BURST);
			uint32_t ttt = seen[0].ttt;

			for (unsigned i = 0; i < n; i++)
				data_out(ttt, i, at + from[i], to[i] - from[i],
					 i == n - 1, RAW_GOOD);
		}
		seed = s;
		assert_written(0);
	}
}

/* The second PDU of a sequence whose first one has [4096, 8192). */
static void second_breaks(uint32_t sn, uint32_t off, uint32_t len, bool final)
{
	struct iscsi_params k = params(false, true);
	uint32_t ttt;

	begin(ISCSI_TARGET, &k);
	feed_at(write_command(BURST, 0, true), 0, RAW_GOOD);
	ttt = seen[0].ttt;
	data_out(ttt, 0, PART, PART, false, RAW_GOOD);
	data_out(ttt, sn, off, len, final, RAW_GOOD);
	if (!final) {
		assert_int_equal(r.role.errors, 1);
		assert_int_equal(r.role.last_error, ERR_RANGE);
		data_out(ttt, sn + 1, 0, 1, true, RAW_GOOD);
	}
	assert_written(2);
}

static void test_each_byte_comes_once_rfc7143_13_18(void **state)
{
	(void)state;
	second_breaks(1, PART, PART, false);	     /* the same again */
	second_breaks(1, 0, PART + 1, false);	     /* over its begin */
	second_breaks(1, 2 * PART - 1, 8, false);    /* over its end */
	second_breaks(1, PART + 100, 8, false);	     /* inside */
	second_breaks(1, 0, 3 * PART - 4096, false); /* around */
	second_breaks(1, BURST - 8, 9, false);	     /* outside of the burst */
	second_breaks(2, 0, PART, false);	     /* a gap of DataSN */
	second_breaks(0, 0, PART, false);	     /* DataSN again */
	second_breaks(1, 0, PART, true);	     /* a hole at the end */
}

static void test_unsolicited_in_any_order_rfc7143_13_18(void **state)
{
	struct iscsi_params k = params(false, true);
	static const uint32_t off[3] = { 6144, 2048, 4096 };

	(void)state;
	k.immediate_data = true;
	k.initial_r2t = false;
	for (unsigned bad = 0; bad < 3; bad++) {
		begin(ISCSI_TARGET, &k);
		feed_at(write_command(BURST, 2048, false), 0, RAW_GOOD);
		for (unsigned i = 0; i < 3; i++)
			data_out(ISCSI_RESERVED_TAG, i,
				 bad == 1 && i == 2 ? 2048 : off[i],
				 bad == 2 && i == 2 ? 2047 : 2048, i == 2,
				 RAW_GOOD);
		if (bad) { /* bytes twice; a hole */
			assert_written(2);
			continue;
		}
		assert_r2t(0, 8192, 8192);
		data_out(seen[0].ttt, 0, 8192, 8192, true, RAW_GOOD);
		assert_int_equal(seen[0].rsp.status, 0);
		assert_memory_equal(r.role.disk, data, BURST);
		raw_fini(&r);
	}
}

/* ErrorRecoveryLevel 1, §7.8, §7.9: a damaged PDU, and PDUs that did not come, are
 * asked for by a Recovery R2T when the sequence has ended. */
static void test_recovery_in_any_order_rfc7143_11_8(void **state)
{
	struct iscsi_params k = params(false, false);
	uint32_t ttt;

	(void)state;
	k.error_recovery_level = 1;
	k.data_digest = true;
	begin(ISCSI_TARGET, &k);
	feed_at(write_command(LEN, 0, true), 0, RAW_GOOD);
	ttt = seen[0].ttt;
	data_out(ttt, 0, 3 * PART, PART, false, RAW_GOOD);
	data_out(ttt, 1, PART, PART, false, RAW_BAD_DATA);
	data_out(ttt, 2, 0, PART, false, RAW_GOOD);
	data_out(ttt, 3, 2 * PART, PART, true, RAW_GOOD);
	assert_r2t(0, PART, PART);
	assert_int_equal(seen[0].r2t.r2tsn, 1);
	data_out(seen[0].ttt, 0, PART, PART, true, RAW_GOOD);
	assert_r2t(0, BURST, BURST);
	ttt = seen[0].ttt;
	data_out(ttt, 0, BURST + 2 * PART, PART, false, RAW_GOOD);
	data_out(ttt, 3, BURST, PART / 2, true,
		 RAW_GOOD); /* 1 and 2 are lost */
	assert_r2t(0, BURST + PART / 2, BURST - PART / 2);
	ttt = seen[0].ttt;
	data_out(ttt, 0, BURST + 2 * PART, 2 * PART, false, RAW_GOOD);
	data_out(ttt, 1, BURST + PART / 2, PART + PART / 2, true, RAW_GOOD);
	assert_written(0);
}

static void test_many_r2ts_of_a_target_rfc7143_13_17(void **state)
{
	static const struct {
		uint16_t agreed;
		uint32_t burst;
		unsigned sent;
	} rows[] = {
		{ 1, 512, 1 },	    { 4, 512, 4 },   { 5, 512, 5 },
		{ 65535, 512, 64 }, { 63, 512, 63 }, { 65535, 4096, 8 },
		{ 65535, LEN, 1 },
	};
	struct iscsi_params k = params(true, true);

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t at = 0, burst = rows[i].burst, ttt[64];
		unsigned got = 0, next = 0;

		k.max_outstanding_r2t = rows[i].agreed;
		k.max_burst_length = burst;
		begin(ISCSI_TARGET, &k);
		feed_at(write_command(LEN, 0, true), 0, RAW_GOOD);
		assert_int_equal(nseen, rows[i].sent);
		for (unsigned n = 0; n < nseen; n++)
			assert_r2t(n, n * burst, burst);
		while (at < LEN) {
			for (unsigned n = 0; n < nseen; n++)
				ttt[got++ % 64] = seen[n].ttt;
			for (uint32_t sn = 0, end = at + burst; at < end;
			     sn++) {
				uint32_t len = MIN(end - at, DSL);

				data_out(ttt[next % 64], sn, at, len,
					 at + len == end, RAW_GOOD);
				at += len;
			}
			next++;
		}
		assert_written(0);
	}
}

/* ---- the initiator: Data-Ins ---- */

static struct fake_task *start(bool write, const struct iscsi_params *k)
{
	struct fake_task *t;

	begin(ISCSI_INITIATOR, k);
	t = fake_start(&r.role, write, 0, LEN, 0);
	fetch();
	return t;
}

static void data_in(const struct fake_task *t, uint32_t sn, uint32_t off,
		    uint32_t len, bool final, bool status)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_IN,
			       .final = final,
			       .itt = t->dm.itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .statsn = r.role.numbers.expstatsn,
			       .dsl = len };

	p.data.datasn = sn;
	p.data.offset = off;
	p.data.status_present = status;
	feed_at(p, off, RAW_GOOD);
}

static void assert_read(const struct fake_task *t)
{
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->status, 0);
	assert_int_equal(t->dm.in_done, LEN);
	assert_memory_equal(t->buf, data, LEN);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

static void test_data_ins_in_any_order_rfc7143_13_18(void **state)
{
	struct iscsi_params k = params(false, true);

	(void)state;
	for (unsigned n = 0; n < 24 * 24; n++) {
		struct fake_task *t = start(false, &k);
		unsigned order[4];
		uint32_t sn = 0;

		for (unsigned half = 0; half < 2; half++) {
			permute(half ? n / 24 : n % 24, order);
			for (unsigned i = 0; i < 4; i++, sn++)
				data_in(t, sn, half * BURST + order[i] * PART,
					PART, i == 3, sn == 7);
		}
		assert_read(t);
	}
}

static void test_read_sequences_in_any_order_rfc7143_13_19(void **state)
{
	struct iscsi_params k = params(true, false);
	static const uint8_t order[4] = { 2, 0, 3, 1 };
	struct fake_task *t = start(false, &k);

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		data_in(t, i, order[i / 2] * 2 * PART + i % 2 * PART, PART,
			i % 2, i == 7);
	assert_read(t);
}

/* The Data-In after one of [4096, 8192) ends the connection. */
static void data_in_breaks(const struct iscsi_params *k, bool first_final,
			   uint32_t off, bool final)
{
	struct fake_task *t = start(false, k);

	data_in(t, 0, PART, PART, first_final, false);
	assert_int_equal(raw_fate(&r), 1);
	data_in(t, 1, off, PART, final, false);
	assert_int_equal(raw_fate(&r), ERR_SEQUENCE);
	raw_fini(&r);
}

static void test_data_ins_that_break_the_order_rfc7143_13_18(void **state)
{
	struct iscsi_params any = params(false, false);
	struct iscsi_params pdu = params(false, true);
	struct iscsi_params sequence = params(true, false);

	(void)state;
	data_in_breaks(&any, false, PART, false);
	data_in_breaks(&any, false, 2 * PART - 1, false);
	data_in_breaks(&any, true, 1, false);
	/* a sequence with a hole, whose successors have higher offsets */
	data_in_breaks(&pdu, false, 3 * PART, true);
	/* a PDU that does not follow the one before it in its sequence */
	data_in_breaks(&sequence, false, 0, true);
}

/* A command with GOOD and a hole: only the bytes before the hole count. */
static void test_hole_in_read_data_is_not_counted(void **state)
{
	struct iscsi_params k = params(false, false);
	struct fake_task *t = start(false, &k);

	(void)state;
	data_in(t, 0, BURST, BURST / 2, true, false);
	data_in(t, 1, 0, PART, true, true);
	assert_int_equal(t->state, FAKE_FREE);
	assert_int_equal(t->dm.in_done, PART);
	raw_fini(&r);
}

/* ---- the initiator: R2Ts ---- */

static void r2t(const struct fake_task *t, uint32_t sn, uint32_t off,
		uint32_t len)
{
	struct iscsi_pdu p = { .op = ISCSI_R2T,
			       .final = true,
			       .itt = t->dm.itt,
			       .ttt = 100 + sn };

	p.r2t.r2tsn = sn;
	p.r2t.offset = off;
	p.r2t.ddtl = len;
	raw_pdu(&r, &p, NULL, RAW_GOOD);
}

/* seen[i] answers the R2T sn, with all of its data. */
static void assert_data_out(const struct fake_task *t, unsigned i, uint32_t sn,
			    uint32_t off, uint32_t len)
{
	assert_true(i < nseen);
	assert_int_equal(seen[i].op, ISCSI_DATA_OUT);
	assert_int_equal(seen[i].ttt, 100 + sn);
	assert_int_equal(seen[i].data.offset, off);
	assert_int_equal(seen[i].dsl, len);
	assert_memory_equal(seen_bytes[i], t->buf + off, len);
}

static void test_r2ts_in_any_order_rfc7143_13_19(void **state)
{
	struct iscsi_params k = params(true, false);
	static const uint8_t order[8] = { 6, 0, 7, 3, 2, 5, 1, 4 };
	struct fake_task *t;

	(void)state;
	k.max_outstanding_r2t = 8;
	t = start(true, &k);
	for (uint32_t i = 0; i < 8; i++)
		r2t(t, i, order[i] * PART, PART);
	fetch();
	assert_int_equal(nseen, 8);
	for (uint32_t i = 0; i < 8; i++) /* §11.8: as they were received */
		assert_data_out(t, i, i, order[i] * PART, PART);
	assert_int_equal(t->dm.out_done, LEN);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

static void r2t_breaks(bool sequence, uint32_t off, uint32_t len)
{
	struct iscsi_params k = params(true, sequence);
	struct fake_task *t;

	k.max_outstanding_r2t = 8;
	t = start(true, &k);
	if (!sequence)
		r2t(t, 0, PART, PART);
	r2t(t, !sequence, off, len);
	assert_int_equal(raw_fate(&r), ERR_SEQUENCE);
	raw_fini(&r);
}

static void test_r2ts_that_overlap_rfc7143_11_8(void **state)
{
	(void)state;
	r2t_breaks(true, PART, PART);
	r2t_breaks(false, PART, 1);
	r2t_breaks(false, 0, PART + 1);
	r2t_breaks(false, 2 * PART - 1, 1);
}

static void test_many_r2ts_of_an_initiator_rfc7143_13_17(void **state)
{
	struct iscsi_params k = params(true, true);
	uint32_t at = 0, sn = 0;
	struct fake_task *t;

	(void)state;
	k.max_outstanding_r2t = 65535;
	t = start(true, &k);
	while (at < LEN) { /* a few are answered now and then */
		for (unsigned i = 0; i < 61 && at < LEN; i++)
			r2t(t, sn++, at++, 1);
		if (sn % 7 == 0 || at == LEN)
			raw_fetch(&r);
	}
	assert_int_equal(r.nout, LEN);
	assert_int_equal(r.out.ttt, 100 + LEN - 1);
	assert_int_equal(raw_fate(&r), 1);
	assert_int_equal(t->dm.out_done, LEN);
	raw_fini(&r);

	k.max_outstanding_r2t = 100;
	t = start(true, &k);
	for (sn = 0; sn < 100; sn++)
		r2t(t, sn, sn, 1);
	assert_int_equal(raw_fate(&r), 1);
	r2t(t, sn, sn, 1);
	assert_int_equal(raw_fate(&r), ERR_LIMIT);
	raw_fini(&r);
}

/* The memory for R2Ts that wait is one share of the connection. */
static void test_share_of_a_greedy_target(void **state)
{
	struct iscsi_params k = params(true, true);
	struct fake_task *t[FAKE_TASKS];

	(void)state;
	k.max_outstanding_r2t = 65535;
	begin(ISCSI_INITIATOR, &k);
	for (unsigned i = 0; i < FAKE_TASKS; i++)
		t[i] = fake_start(&r.role, true, 0, 65535, 0);
	fetch();
	for (uint32_t sn = 0; sn < 65535 && raw_fate(&r) == 1; sn++)
		for (unsigned i = 0; i < FAKE_TASKS; i++)
			r2t(t[i], sn, sn, 1);
	assert_int_equal(r.role.terminate_err, ERR_LIMIT);
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_pdus_of_a_sequence_in_any_order_rfc7143_13_18),
		cmocka_unit_test(test_sequences_in_any_order_rfc7143_13_19),
		cmocka_unit_test(test_random_cuts_rfc7143_13_18),
		cmocka_unit_test(test_each_byte_comes_once_rfc7143_13_18),
		cmocka_unit_test(test_unsolicited_in_any_order_rfc7143_13_18),
		cmocka_unit_test(test_recovery_in_any_order_rfc7143_11_8),
		cmocka_unit_test(test_many_r2ts_of_a_target_rfc7143_13_17),
		cmocka_unit_test(test_data_ins_in_any_order_rfc7143_13_18),
		cmocka_unit_test(
			test_read_sequences_in_any_order_rfc7143_13_19),
		cmocka_unit_test(
			test_data_ins_that_break_the_order_rfc7143_13_18),
		cmocka_unit_test(test_hole_in_read_data_is_not_counted),
		cmocka_unit_test(test_r2ts_in_any_order_rfc7143_13_19),
		cmocka_unit_test(test_r2ts_that_overlap_rfc7143_11_8),
		cmocka_unit_test(test_many_r2ts_of_an_initiator_rfc7143_13_17),
		cmocka_unit_test(test_share_of_a_greedy_target),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
