/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dm_sim_test.c: datamover/tcp, both roles, over a wire that splits, delays
 * and cuts: every byte of data arrives, every PDU is within the negotiated
 * limits, and each role gets one report of the end of the connection.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/tcp/dmtcp.h"
#include "sim/dm_roles.h"
#include "sim/pdu_checker.h"
#include "sim/wire.h"

struct sim {
	struct wire wire;
	struct pdu_checker checker;
	struct dmtcp_conn *conn[2]; /* initiator, target */
	struct fake_role ini, tgt;
	uint8_t *model; /* the expected contents of the disk */
	uint32_t seed;
	unsigned started;
	bool aborts;
};

static unsigned all_aborted; /* by the targets of a matrix */

static struct iscsi_params plain_params(void)
{
	struct iscsi_params p;

	iscsi_params_defaults(&p);
	p.max_recv_dsl = p.max_send_dsl = 8192;
	p.max_burst_length = 65536;
	p.first_burst_length = 16384;
	return p;
}

static void sim_init(struct sim *s, const struct iscsi_params *params,
		     const struct wire_config *wire)
{
	struct wire_config cfg = *wire;

	memset(s, 0, sizeof(*s));
	checker_init(&s->checker, params);
	cfg.tap = checker_bytes;
	cfg.arg = &s->checker;
	wire_init(&s->wire, &cfg);
	for (unsigned i = 0; i < 2; i++) {
		struct dmtcp_config dc;

		dmtcp_config_default(&dc, i ? ISCSI_TARGET : ISCSI_INITIATOR);
		dc.lookahead = 4096 << (cfg.seed % 6);
		s->conn[i] = dmtcp_new(&dc, wire_host(&s->wire, i));
		assert_non_null(s->conn[i]);
	}
	fake_initiator_init(&s->ini, dmtcp_dm(s->conn[0]), params);
	fake_target_init(&s->tgt, dmtcp_dm(s->conn[1]), params);
	for (unsigned i = 0; i < 2; i++)
		wire_attach(&s->wire, i, &dmtcp_stream_ops, s->conn[i]);
	s->ini.strict = s->tgt.strict = true;
	s->model = calloc(1, FAKE_DISK);
	s->seed = cfg.seed * 31 + 5;
	fake_login(&s->ini);
}

static void sim_fini(struct sim *s)
{
	for (unsigned i = 0; i < 2; i++) {
		if (wire_is_open(&s->wire, i))
			dm_connection_terminate(dmtcp_dm(s->conn[i]),
						DM_TERMINATE_NOW, 0);
	}
	wire_run(&s->wire, s->wire.now + 10 * XTIME_S);
	assert_int_equal(s->ini.terminated, 1);
	assert_int_equal(s->tgt.terminated, 1);
	for (unsigned i = 0; i < 2; i++)
		dmtcp_free(s->conn[i]);
	fake_role_fini(&s->ini);
	fake_role_fini(&s->tgt);
	checker_fini(&s->checker);
	wire_fini(&s->wire);
	free(s->model);
}

static uint32_t random_below(struct sim *s, uint32_t n)
{
	s->seed = s->seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)s->seed * n >> 32);
}

/* ---- commands: each task works on its own stripe of the disk, so that any
 * order of execution gives the same result ---- */

#define STRIPE (FAKE_DISK / FAKE_TASKS)

static void command_done(void *arg, struct fake_task *t)
{
	struct sim *s = arg;

	if (t->status < 0)
		return; /* aborted: the content of the stripe is unknown */
	if (t->answer == FAKE_SENSE) {
		assert_int_equal(t->status, 2);
		assert_int_equal(t->sense_len, 20);
	} else {
		assert_int_equal(t->status, 0);
	}
	if (!t->is_write && t->answer != FAKE_SENSE && !s->aborts) {
		assert_int_equal(t->dm.in_done, t->dm.edtl);
		if (t->dm.edtl)
			assert_memory_equal(t->buf, s->model + t->off,
					    t->dm.edtl);
	}
}

static uint32_t some_length(struct sim *s)
{
	static const uint32_t edges[] = {
		0,    1,    511,   512,	  4096,	 8191,
		8192, 8193, 16384, 16385, 65535, 65536
	};

	return random_below(s, 2) ? edges[random_below(s, ARRAY_LEN(edges))]
				  : random_below(s, STRIPE + 1);
}

static void start_one(struct sim *s, unsigned stripe)
{
	uint32_t len = some_length(s);
	uint32_t off = stripe * STRIPE + random_below(s, STRIPE - len + 1);
	bool is_write = len && random_below(s, 2);
	enum fake_answer answer =
		random_below(s, 6) ? random_below(s, 2) : FAKE_SENSE;
	struct fake_task *t;

	if (is_write)
		answer = FAKE_STATUS_WITH_DATA;
	t = fake_start(&s->ini, is_write, off, len, answer);
	assert_non_null(t);
	s->started++;
	if (is_write) /* len > 0 */
		memcpy(s->model + off, t->buf, len);
	if (s->aborts && random_below(s, 3) == 0) {
		if (random_below(s, 2))
			wire_run(&s->wire,
				 s->wire.now +
					 (xtime)random_below(s, 40) * XTIME_US);
		fake_abort(&s->ini, t);
	}
}

/* rounds of one command per stripe, all in progress at once */
static void run_rounds(struct sim *s, unsigned rounds)
{
	s->ini.done = command_done;
	s->ini.arg = s;
	wire_idle(&s->wire);
	assert_true(s->ini.logged_in && s->tgt.logged_in);
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < FAKE_TASKS; k++)
			start_one(s, k);
		wire_idle(&s->wire);
		assert_int_equal(s->ini.finished + s->ini.aborted, s->started);
	}
	assert_int_equal(s->ini.errors + s->tgt.errors, 0);
	assert_int_equal(s->ini.terminated + s->tgt.terminated, 0);
	for (unsigned i = 0; i < FAKE_TASKS; i++) {
		assert_int_equal(s->ini.task[i].state, FAKE_FREE);
		assert_int_equal(s->tgt.task[i].state, FAKE_FREE);
	}
	if (!s->aborts)
		assert_memory_equal(s->tgt.disk, s->model, FAKE_DISK);
}

/* ---- the matrix of negotiated values ---- */

static const struct {
	bool initial_r2t, immediate_data;
	uint32_t dsl, first_burst, max_burst;
	uint16_t r2ts;
} agreed[] = {
	{ true, true, 8192, 65536, 262144, 1 },
	{ true, false, 8192, 65536, 262144, 1 },
	{ false, true, 8192, 16384, 65536, 1 },
	{ false, false, 8192, 16384, 65536, 2 },
	{ false, true, 512, 512, 512, 1 },
	{ true, false, 512, 512, 1024, 4 },
	{ false, true, 262144, 262144, 262144, 4 },
	{ false, true, 4099, 5000, 7001, 3 },
};

static void run_matrix(const struct wire_config *cfg, unsigned rounds,
		       bool aborts)
{
	for (unsigned i = 0; i < ARRAY_LEN(agreed) * 4; i++) {
		struct wire_config c = *cfg;
		struct iscsi_params p = plain_params();
		struct sim s;

		p.initial_r2t = agreed[i / 4].initial_r2t;
		p.immediate_data = agreed[i / 4].immediate_data;
		p.max_recv_dsl = p.max_send_dsl = agreed[i / 4].dsl;
		p.first_burst_length = agreed[i / 4].first_burst;
		p.max_burst_length = agreed[i / 4].max_burst;
		p.max_outstanding_r2t = agreed[i / 4].r2ts;
		p.header_digest = i & 1;
		p.data_digest = i & 2;
		c.seed += i;
		sim_init(&s, &p, &c);
		s.aborts = aborts;
		run_rounds(&s, rounds);
		all_aborted += s.tgt.aborted;
		sim_fini(&s);
	}
}

/* [RFC 7143: 4.2.2.4 #1, 4.2.5.2 #1-2, 11.2.1.2 #1-2, 11.2.1.5 #1,
 * 11.2.1.6 #1, 11.3.1 #1-2, 11.3.4 #2-3, 11.7.1 #1-2, 11.7.2 #2, 11.7.3
 * #4, 11.8 #1-7 #9, 11.8.1 #1, 11.8.4 #1-2, 11.8.5 #1, 13.1 #2, 13.11 #1
 * #3, 13.12 #1, 13.19 #1] */
static void test_all_at_once(void **state)
{
	const struct wire_config cfg = { .seed = 1,
					 .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };

	(void)state;
	run_matrix(&cfg, 3, false);
}

static void test_random_splits_and_delays(void **state)
{
	const struct wire_config cfg = { .seed = 100,
					 .max_chunk = 5000,
					 .max_delay = 50 * XTIME_US,
					 .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };

	(void)state;
	run_matrix(&cfg, 2, false);
}

static void test_small_splits(void **state)
{
	const struct wire_config cfg = { .seed = 200,
					 .max_chunk = 60,
					 .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };

	(void)state;
	run_matrix(&cfg, 1, false);
}

static void test_byte_by_byte(void **state)
{
	const struct wire_config cfg = { .seed = 300,
					 .max_chunk = 1,
					 .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct iscsi_params p = plain_params();
	struct sim s;

	(void)state;
	p.initial_r2t = false;
	p.header_digest = p.data_digest = true;
	sim_init(&s, &p, &cfg);
	run_rounds(&s, 1);
	assert_true(s.checker.r2ts && s.checker.data_ins &&
		    s.checker.data_outs && s.checker.immediates);
	sim_fini(&s);
}

static void test_aborts_at_any_time(void **state)
{
	const struct wire_config cfg = { .seed = 400,
					 .max_chunk = 3000,
					 .max_delay = 20 * XTIME_US,
					 .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };

	(void)state;
	all_aborted = 0;
	run_matrix(&cfg, 3, true);
	assert_true(all_aborted > 100);
}

/* ---- the connection ends ---- */

/* script executes one fixed run, up to its end or to the cut. */
static void script(struct sim *s, const struct wire_config *cfg)
{
	struct iscsi_params p = plain_params();

	p.initial_r2t = false;
	p.max_recv_dsl = p.max_send_dsl = 4096;
	p.header_digest = true;
	sim_init(s, &p, cfg);
	wire_idle(&s->wire);
	if (s->ini.logged_in && s->ini.dm->state == DM_FULL_FEATURE) {
		fake_start(&s->ini, true, 0, 60000, 0);
		fake_start(&s->ini, false, 0, 10000, FAKE_STATUS_WITH_DATA);
		fake_start(&s->ini, false, 0, 5000, FAKE_STATUS_APART);
		fake_start(&s->ini, false, 0, 0, FAKE_SENSE);
		wire_idle(&s->wire);
	}
}

static void assert_all_told(struct sim *s, int err)
{
	assert_int_equal(s->ini.terminated, 1);
	assert_int_equal(s->tgt.terminated, 1);
	assert_int_equal(s->ini.terminate_err, err);
	assert_int_equal(s->tgt.terminate_err, err);
}

/* Reset before, at and after every PDU boundary of either direction. */
static void test_reset_at_every_pdu_boundary(void **state)
{
	struct wire_config cfg = { .seed = 500,
				   .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct sim *whole = malloc(sizeof(*whole));

	(void)state;
	script(whole, &cfg);
	assert_int_equal(whole->ini.finished, 4);
	for (unsigned way = 0; way < 2; way++)
		for (unsigned i = 0; i < whole->checker.way[way].npdus; i++)
			for (int by = -1; by <= 1; by++) {
				struct sim *s = malloc(sizeof(*s));
				uint64_t at =
					whole->checker.way[way].boundary[i];

				cfg.cut[way] = at + (uint64_t)by;
				cfg.cut[!way] = WIRE_NO_CUT;
				script(s, &cfg);
				if (s->wire.end[way].sent >= cfg.cut[way])
					assert_all_told(s, ERR_RESET);
				sim_fini(s);
				free(s);
			}
	sim_fini(whole);
	free(whole);
}

static void test_terminate_after_sent_flushes(void **state)
{
	const struct wire_config cfg = { .seed = 600,
					 .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct iscsi_params p = plain_params();
	struct sim s;

	(void)state;
	sim_init(&s, &p, &cfg);
	wire_idle(&s.wire);
	s.ini.done = NULL;
	fake_start(&s.ini, true, 0, 4096,
		   0); /* immediate data: sent completely */
	dm_connection_terminate(s.ini.dm, DM_TERMINATE_AFTER_SENT, 0);
	wire_idle(&s.wire);
	assert_memory_not_equal(s.tgt.disk, s.model, 4096);
	assert_int_equal(s.ini.terminated, 1);
	assert_int_equal(s.tgt.terminated, 1);
	sim_fini(&s);
}

/* The peer receives nothing: flushing must end with a timeout. */
static void test_terminate_after_sent_times_out(void **state)
{
	struct wire_config cfg = { .seed = 700,
				   .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct iscsi_params p = plain_params();
	struct sim s;
	xtime due;
	int err;

	(void)state;
	sim_init(&s, &p, &cfg);
	wire_idle(&s.wire);
	fake_start(&s.ini, true, 0, 4096, 0);
	dm_connection_terminate(s.ini.dm, DM_TERMINATE_AFTER_SENT, 0);
	due = stream_deadline_of(&dmtcp_stream_ops, s.conn[0]);
	assert_true(due != XTIME_NEVER);
	dmtcp_stream_ops.expire(s.conn[0], due - 1);
	assert_int_equal(stream_fate_of(&dmtcp_stream_ops, s.conn[0], &err),
			 STREAM_FLUSH);
	dmtcp_stream_ops.expire(s.conn[0], due);
	assert_int_equal(stream_fate_of(&dmtcp_stream_ops, s.conn[0], &err),
			 STREAM_CLOSE);
	sim_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_random_splits_and_delays),
		cmocka_unit_test(test_small_splits),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_aborts_at_any_time),
		cmocka_unit_test(test_reset_at_every_pdu_boundary),
		cmocka_unit_test(test_terminate_after_sent_flushes),
		cmocka_unit_test(test_terminate_after_sent_times_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
