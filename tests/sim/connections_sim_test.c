/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connections_sim_test.c: initiator and target with sessions of 1, 2 and 4
 * connections, each on a wire of its own with its own delays, so that requests
 * arrive in an order that is not that of their CmdSN. Faults at ErrorRecoveryLevel
 * 0: none, or one connection is reset after a random number of bytes. The oracle:
 * each command ends exactly once; without a fault all succeed; an acknowledged
 * write is on the medium; a read never returns older data; after a fault the whole
 * session ends (RFC 7143 §7.14 c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/transport.h"
#include "sim/world.h"

#define CONNS 4u
#define JOBS  12u
#define SLOT  8u /* blocks that one job may touch */
#define STEP  (100 * XTIME_US)

struct wired {
	struct wire wire;
	struct sim_transport transport[2]; /* initiator, target */
};

struct sim;

struct job {
	struct sim *sim;
	struct ini_task task;
	struct iovec iov;
	uint8_t data[SLOT * BLOCK];
	uint32_t lba, blocks;
	bool write, busy;
};

struct sim {
	struct world world;
	struct wired wired[CONNS];
	unsigned n; /* connections */
	struct ini_session *ini;
	bool logged_in, closed;
	unsigned joined;
	struct job jobs[JOBS];
	uint8_t model[JOBS * SLOT * BLOCK];
	bool unsure[JOBS * SLOT];
	uint32_t seed;
	unsigned todo, started, ended, ok;
};

static uint32_t random_below(struct sim *s, uint32_t n)
{
	s->seed = s->seed * 1664525u + 1013904223u;
	return (s->seed >> 8) % n;
}

/* ---- the session ---- */

static void on_logged_in(void *arg, int err)
{
	struct sim *s = arg;

	s->logged_in = err == 0;
}

static void on_joined(void *arg, struct ini_conn *c, int err)
{
	struct sim *s = arg;

	(void)c;
	s->joined += err == 0;
}

static void on_closed(void *arg, int err)
{
	struct sim *s = arg;

	(void)err;
	assert_false(s->closed);
	s->closed = true;
}

/* Lets all wires run side by side for a time. */
static void run_for(struct sim *s, xtime time)
{
	for (xtime end = s->world.now + time; s->world.now < end;) {
		s->world.now += STEP;
		for (unsigned i = 0; i < s->n; i++) {
			wire_run(&s->wired[i].wire, s->world.now);
			world_run_mail(&s->world);
		}
	}
}

static void wire_up(struct sim *s, unsigned i, uint64_t cut)
{
	struct wired *w = &s->wired[i];
	struct wire_config wc = {
		.seed = s->seed + i,
		.max_chunk = random_below(s, 2) ? 0 : 4096,
		.max_delay = (1 + random_below(s, 5)) * XTIME_MS,
		.cut = { cut, WIRE_NO_CUT },
	};

	wire_init(&w->wire, &wc);
	w->wire.now = s->world.now;
	for (unsigned end = 0; end < 2; end++)
		sim_transport_init(&w->transport[end], &w->wire, end, SIM_TCP);
}

static void accept_it(struct sim *s, unsigned i)
{
	const struct tgt_conn_info info = { .peer = "sim:1",
					    .local = "sim:3260",
					    .portal_group = TAG };

	assert_int_equal(
		tgt_conn_accept(tgt_worker(s->world.tgt, 0),
				sim_transport_dm(&s->wired[i].transport[1]),
				&info, s->world.now),
		0);
	sim_transport_go(&s->wired[i].transport[0]);
	sim_transport_go(&s->wired[i].transport[1]);
}

static void open_leading(struct sim *s, uint64_t cut)
{
	struct ini_config cfg;

	wire_up(s, 0, cut);
	world_host_config(&s->world, &cfg, JOBS);
	cfg.login.want.max_connections = CONNS;
	cfg.logged_in = on_logged_in;
	cfg.joined = on_joined;
	cfg.closed = on_closed;
	cfg.arg = s;
	s->n = 1;
	s->ini = ini_new(&cfg, sim_transport_dm(&s->wired[0].transport[0]));
	assert_non_null(s->ini);
	accept_it(s, 0);
	ini_start(s->ini, s->world.now);
	run_for(s, 200 * XTIME_MS);
}

static void open_further(struct sim *s, unsigned i, uint64_t cut)
{
	struct ini_conn *c;

	wire_up(s, i, cut);
	c = ini_conn_new(s->ini, sim_transport_dm(&s->wired[i].transport[0]),
			 (uint16_t)i);
	assert_non_null(c);
	accept_it(s, i);
	s->n = i + 1;
	ini_conn_start(c, s->world.now);
	run_for(s, 200 * XTIME_MS);
}

/* ---- commands ---- */

static void start_job(struct job *j);

/* Each job has blocks of its own and one command at a time, so a read returns what
 * its last acknowledged write has written. */
static void settle_job(struct sim *s, struct job *j)
{
	uint8_t *model = s->model + j->lba * BLOCK;
	bool good = j->task.err == 0 && j->task.status == 0;

	s->ok += good;
	for (uint32_t i = 0; i < j->blocks; i++) {
		if (good && j->write)
			memcpy(model + i * BLOCK, j->data + i * BLOCK, BLOCK);
		else if (good && !s->unsure[j->lba + i])
			assert_memory_equal(j->data + i * BLOCK,
					    model + i * BLOCK, BLOCK);
		if (j->write)
			s->unsure[j->lba + i] = !good;
	}
}

static void on_done(struct ini_task *t)
{
	struct job *j = container_of(t, struct job, task);
	struct sim *s = j->sim;

	assert_true(j->busy);
	j->busy = false;
	s->ended++;
	settle_job(s, j);
	if (s->todo && !s->closed && t->err == 0)
		start_job(j);
}

static void start_job(struct job *j)
{
	struct sim *s = j->sim;
	size_t len;

	s->todo--;
	s->started++;
	j->busy = true;
	j->write = random_below(s, 2);
	j->blocks = 1 + random_below(s, SLOT);
	j->lba = (uint32_t)(j - s->jobs) * SLOT +
		 random_below(s, SLOT - j->blocks + 1);
	len = j->blocks * BLOCK;
	memset(j->data, (int)random_below(s, 256), len);
	j->iov = (struct iovec){ j->data, len };
	j->task = (struct ini_task){
		.read = !j->write,
		.write = j->write,
		.attr = ISCSI_ATTR_SIMPLE,
		.deadline = XTIME_NEVER,
		.done = on_done,
	};
	j->task.cdb_len = (uint8_t)scsi_cdb_rw(j->task.cdb, j->write, j->lba,
					       j->blocks, 0);
	if (j->write)
		j->task.out = bufv_of(&j->iov, 1);
	else
		j->task.in = bufv_of(&j->iov, 1);
	ini_submit(s->ini, &j->task, s->world.now);
}

static void ready_done(struct ini_task *t)
{
	(void)t;
}

static void clear_attention(struct sim *s)
{
	struct ini_task t = { .cdb = { SCSI_TEST_UNIT_READY },
			      .cdb_len = 6,
			      .deadline = XTIME_NEVER,
			      .done = ready_done };

	ini_submit(s->ini, &t, s->world.now);
	run_for(s, 100 * XTIME_MS);
}

/* ---- one run ---- */

static void sim_close(struct sim *s)
{
	if (!s->closed)
		ini_logout(s->ini, s->world.now);
	run_for(s, 500 * XTIME_MS);
	assert_true(s->closed);
	/* every task and session of the target has ended */
	assert_int_equal(s->ended, s->started);
	ini_free(s->ini);
	for (unsigned i = 0; i < s->n; i++) {
		for (unsigned end = 0; end < 2; end++)
			sim_transport_fini(&s->wired[i].transport[end]);
		wire_fini(&s->wired[i].wire);
	}
}

static void check_medium(const struct sim *s)
{
	for (uint32_t i = 0; i < JOBS * SLOT; i++)
		if (!s->unsure[i])
			assert_memory_equal(s->world.medium + i * BLOCK,
					    s->model + i * BLOCK, BLOCK);
}

/* All connections of a session end with the first. */
static bool is_over(const struct sim *s)
{
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned end = 0; end < 2; end++)
			if (wire_is_open(&s->wired[i].wire, end))
				return false;
	return s->closed;
}

/* Returns whether the session was lost. */
static bool run(uint32_t seed, unsigned conns, bool fault)
{
	struct sim *s = calloc(1, sizeof(*s));
	unsigned victim;
	bool lost;

	s->seed = seed;
	s->todo = 40;
	for (unsigned i = 0; i < JOBS; i++)
		s->jobs[i].sim = s;
	victim = fault ? random_below(s, conns) : CONNS;
	world_open_wide(&s->world, CONNS);
	/* the login of this initiator has less than 2,000 bytes */
	for (unsigned i = 0; i < conns; i++) {
		uint64_t cut = 2000 + random_below(s, 20000);

		cut = i == victim ? cut : WIRE_NO_CUT;
		if (i == 0)
			open_leading(s, cut);
		else
			open_further(s, i, cut);
	}
	assert_true(s->logged_in);
	assert_int_equal(s->joined, conns - 1);
	clear_attention(s);
	for (unsigned i = 0; i < JOBS; i++)
		start_job(&s->jobs[i]);
	run_for(s, 3 * XTIME_S);
	assert_int_equal(s->ended, s->started);
	lost = s->closed;
	if (lost)
		assert_true(fault && is_over(s));
	else
		assert_int_equal(s->ok, 40);
	check_medium(s);
	sim_close(s);
	world_close(&s->world);
	free(s);
	return lost;
}

#define SEEDS 25u

static void run_seeds(unsigned conns, bool fault)
{
	unsigned lost = 0;

	for (uint32_t seed = 1; seed <= SEEDS; seed++)
		lost += run(seed * 7919u + conns, conns, fault);
	/* otherwise the faults come too late to show anything */
	if (fault)
		assert_true(lost > SEEDS / 4);
}

static void test_one_connection(void **state)
{
	(void)state;
	run_seeds(1, false);
	run_seeds(1, true);
}

static void test_two_connections_rfc7143_4_2_2_1(void **state)
{
	(void)state;
	run_seeds(2, false);
}

static void test_four_connections_rfc7143_4_2_2_1(void **state)
{
	(void)state;
	run_seeds(4, false);
}

static void test_one_of_two_is_lost_rfc7143_7_14(void **state)
{
	(void)state;
	run_seeds(2, true);
}

static void test_one_of_four_is_lost_rfc7143_7_14(void **state)
{
	(void)state;
	run_seeds(4, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_connection),
		cmocka_unit_test(test_two_connections_rfc7143_4_2_2_1),
		cmocka_unit_test(test_four_connections_rfc7143_4_2_2_1),
		cmocka_unit_test(test_one_of_two_is_lost_rfc7143_7_14),
		cmocka_unit_test(test_one_of_four_is_lost_rfc7143_7_14),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
