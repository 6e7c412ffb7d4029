/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile_sim_test.c: one target and many initiators on virtual wires and one
 * virtual clock. Some of the initiators are hostile: they send large commands
 * and then neither receive nor send, so that the data of their WRITEs never
 * arrive and the data of their READs are never received, or move only fast
 * enough to count as progress. The well-behaved initiators get GOOD for each
 * command, with correct data, in bounded time: at once for commands that fit in
 * the session's own memory, in the session's turn at the latest for larger ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/thin.h"
#include "sim/transport.h"
#include "sim/world.h"

#define KIB	((size_t)1 << 10)
#define MIB	((size_t)1 << 20)
#define COMMON	(4 * MIB)
#define RESERVE (MIB + 64 * KIB)
#define BURST	(256 * KIB)
#define OWN	(64 * KIB)
#define STEP	(20 * XTIME_MS)
#define AT_ONCE (2 * XTIME_S)
#define JOBS	32u
#define HOSTS	12u
#define LARGEST 2048u /* blocks of one command */

struct crowd;
struct host;

struct job {
	struct host *host;
	struct ini_task task;
	struct iovec iov;
	uint8_t *data;
	uint32_t blocks;
	uint8_t byte;
	xtime since;
	bool busy;
};

struct host { /* one initiator */
	struct crowd *crowd;
	struct wire wire;
	struct sim_transport transport[2];
	struct ini_session *ini;
	enum sim_way way;
	bool hostile, drips, logged_in, closed, writes, reads;
	uint32_t least, most; /* blocks of its commands */
	unsigned todo, ended;
	struct job jobs[JOBS];
};

struct crowd {
	struct world world;
	struct host hosts[HOSTS];
	unsigned nhosts;
	uint32_t seed;
	xtime now, slowest;
};

static uint32_t random_below(struct crowd *c, uint32_t n)
{
	c->seed = c->seed * 1664525u + 1013904223u;
	return (c->seed >> 8) % n;
}

/* ---- one initiator ---- */

static void on_logged_in(void *arg, int err)
{
	struct host *h = arg;

	assert_int_equal(err, 0);
	h->logged_in = true;
}

static void on_closed(void *arg, int err)
{
	struct host *h = arg;

	(void)err;
	h->closed = true;
}

/* Selects sizes near those of the first burst and of a data segment. */
static void wish(struct crowd *c, struct iscsi_params *p)
{
	p->initial_r2t = random_below(c, 2);
	p->immediate_data = random_below(c, 2);
	p->max_recv_dsl = 8192u << random_below(c, 4);
	p->first_burst_length = 16384u << random_below(c, 3);
	p->max_burst_length = 65536u << random_below(c, 3);
	p->max_outstanding_r2t = (uint16_t)(1 + random_below(c, 4));
}

static void host_open(struct crowd *c, struct host *h, enum sim_way way)
{
	struct wire_config wc = { .seed = random_below(c, 1u << 16),
				  .max_chunk = 64 * KIB,
				  .max_delay = XTIME_MS,
				  .window = 128 * KIB,
				  .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct ini_config cfg;

	h->crowd = c;
	h->way = way;
	wire_init(&h->wire, &wc);
	h->wire.now = c->now;
	world_host_config(&c->world, &cfg, JOBS);
	wish(c, &cfg.login.want);
	cfg.logged_in = on_logged_in;
	cfg.closed = on_closed;
	cfg.arg = h;
	c->world.now = c->now;
	h->ini = world_connect(&c->world, &h->wire, h->transport, way, &cfg);
	for (unsigned i = 0; i < JOBS; i++) {
		h->jobs[i].host = h;
		h->jobs[i].data = malloc(LARGEST * BLOCK);
	}
}

static void host_close(struct host *h)
{
	world_disconnect(h->ini, &h->wire, h->transport);
	for (unsigned i = 0; i < JOBS; i++)
		free(h->jobs[i].data);
}

/* ---- the clock ---- */

/* Passes some bytes at intervals: more than ENOUGH of stall.c. */
static void drip(struct crowd *c, struct host *h)
{
	xtime time = c->world.cfg.data_time / 2;

	if (h->drips)
		h->wire.end[0].deaf = c->now / time == (c->now - STEP) / time;
}

static void advance_clock(struct crowd *c)
{
	c->now += STEP;
	c->world.now = c->now;
	for (unsigned i = 0; i < c->nhosts; i++) {
		struct host *h = &c->hosts[i];

		drip(c, h);
		wire_run(&h->wire, c->now);
		if (!h->closed && ini_deadline(h->ini) <= c->now)
			ini_expire(h->ini, c->now);
	}
	world_run_mail(&c->world);
	world_run_clock(&c->world, c->now);
}

/* ---- commands ---- */

static void start_job(struct job *j);

static void check_data(const struct job *j)
{
	/* each job has its own blocks, so the data are known */
	for (size_t i = 0; i < (size_t)j->blocks * BLOCK; i++)
		if (j->data[i] != j->byte)
			fail_msg("byte %zu is %02x, not %02x", i, j->data[i],
				 j->byte);
}

static void on_done(struct ini_task *t)
{
	struct job *j = container_of(t, struct job, task);
	struct host *h = j->host;
	xtime took = h->crowd->now - j->since;

	j->busy = false;
	h->ended++;
	if (h->hostile)
		return;
	assert_int_equal(t->err, 0);
	assert_int_equal(t->status, 0);
	if (t->read)
		check_data(j);
	if (h->most * BLOCK <= OWN && took > AT_ONCE)
		fail_msg("%u blocks took %llu ms", j->blocks,
			 (unsigned long long)(took / XTIME_MS));
	h->crowd->slowest = MAX(h->crowd->slowest, took);
	if (h->todo)
		start_job(j);
}

static void start_job(struct job *j)
{
	struct host *h = j->host;
	struct crowd *c = h->crowd;
	bool write = !h->reads || (h->writes && random_below(c, 2));

	h->todo--;
	j->busy = true;
	j->since = c->now;
	j->blocks = h->least + random_below(c, h->most - h->least + 1);
	/* all WRITEs write this byte, which READs expect */
	j->byte = 0x5a;
	memset(j->data, write ? j->byte : 0xee, j->blocks * BLOCK);
	j->iov = (struct iovec){ j->data, j->blocks * BLOCK };
	memset(&j->task, 0, sizeof(j->task));
	j->task.cdb_len =
		(uint8_t)scsi_cdb_rw(j->task.cdb, write,
				     random_below(c, BLOCKS - j->blocks + 1),
				     j->blocks, 0);
	j->task.read = !write;
	j->task.write = write;
	j->task.attr = ISCSI_ATTR_SIMPLE;
	j->task.deadline = XTIME_NEVER;
	j->task.done = on_done;
	if (write)
		j->task.out = bufv_of(&j->iov, 1);
	else
		j->task.in = bufv_of(&j->iov, 1);
	ini_submit(h->ini, &j->task, c->now);
}

static void start_jobs(struct host *h, unsigned depth, unsigned todo)
{
	h->todo = todo;
	h->ended = 0;
	for (unsigned i = 0; i < depth && h->todo; i++)
		start_job(&h->jobs[i]);
}

static void on_ready(struct ini_task *t)
{
	(void)t;
}

static void log_all_in(struct crowd *c)
{
	struct ini_task attention[HOSTS];

	for (unsigned n = 0; n < 10; n++)
		advance_clock(c);
	for (unsigned i = 0; i < c->nhosts; i++) {
		assert_true(c->hosts[i].logged_in);
		attention[i] =
			(struct ini_task){ .cdb = { SCSI_TEST_UNIT_READY },
					   .cdb_len = 6,
					   .deadline = XTIME_NEVER,
					   .done = on_ready };
		ini_submit(c->hosts[i].ini, &attention[i], c->now);
	}
	for (unsigned n = 0; n < 10; n++)
		advance_clock(c);
}

static struct crowd *crowd_new(uint32_t seed, unsigned nhosts)
{
	struct crowd *c = calloc(1, sizeof(*c));

	c->seed = seed;
	c->now = XTIME_S;
	world_open_limited(&c->world, COMMON, RESERVE, BURST);
	memset(c->world.medium, 0x5a, BLOCKS * BLOCK);
	/* share.h: a session's own part, and one window of first bursts beyond
	 * BURST; the memory that commands need during their execution */
	c->world.limit =
		COMMON + RESERVE + BURST + HOSTS * OWN + JOBS * 64 * KIB + MIB;
	c->nhosts = nhosts;
	for (unsigned i = 0; i < nhosts; i++)
		host_open(c, &c->hosts[i],
			  (enum sim_way)random_below(c, SIM_WAYS));
	log_all_in(c);
	return c;
}

static unsigned still_open(const struct crowd *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->nhosts; i++)
		n += !c->hosts[i].closed;
	return n;
}

static void crowd_free(struct crowd *c)
{
	for (unsigned i = 0; i < c->nhosts; i++) {
		struct host *h = &c->hosts[i];

		h->drips = h->wire.end[0].deaf = false;
		if (!h->closed)
			ini_logout(h->ini, c->now);
	}
	for (unsigned n = 0; still_open(c) && n < 6000; n++)
		advance_clock(c);
	assert_int_equal(still_open(c), 0);
	for (unsigned i = 0; i < c->nhosts; i++)
		host_close(&c->hosts[i]);
	world_close(&c->world);
	free(c);
}

/* Runs until the host's commands have ended, or for the given time. */
static void wait_for_host(struct crowd *c, const struct host *h,
			  unsigned commands, xtime most)
{
	xtime until = c->now + most;

	while (h->ended < commands && c->now < until && !h->closed)
		advance_clock(c);
	assert_false(h->closed);
	if (h->ended < commands)
		fail_msg("only %u of %u commands ended", h->ended, commands);
}

/* ---- hostile initiators and a well-behaved one ---- */

static void turn_hostile(struct crowd *c, struct host *h)
{
	static const uint32_t sizes[] = { 1, 64, 128, 256, 512, 2048 };

	h->hostile = true;
	h->writes = random_below(c, 3) > 0;
	h->reads = !h->writes || random_below(c, 2);
	h->least = h->most = sizes[random_below(c, ARRAY_LEN(sizes))];
	h->wire.end[0].deaf = true;
	start_jobs(h, JOBS, JOBS);
}

static void test_good(struct crowd *c, struct host *good, xtime turns)
{
	good->reads = good->writes = true;
	good->least = 1;
	good->most = OWN / BLOCK / 8; /* eight at once fit in its own part */
	start_jobs(good, 8, 200);
	wait_for_host(c, good, 200, 60 * XTIME_S);
	good->most = 256;
	start_jobs(good, 8, 50);
	wait_for_host(c, good, 50, turns);
	good->most = LARGEST;
	start_jobs(good, 4, 12);
	wait_for_host(c, good, 12, turns);
}

static void run_hostile(uint32_t seed)
{
	unsigned hostile = HOSTS - 1;
	struct crowd *c = crowd_new(seed, HOSTS);

	for (unsigned i = 0; i < hostile; i++)
		turn_hostile(c, &c->hosts[1 + i]);
	for (unsigned n = 0; n < 20; n++)
		advance_clock(c);
	/* the time in which each hostile session can have its turn */
	test_good(c, &c->hosts[0],
		  (hostile + 1) * c->world.cfg.data_time * 3 / 2);
	crowd_free(c);
}

static void test_hostile_sessions_do_not_stop_a_good_one(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 30; seed++)
		if (!sim_leaves_out(seed))
			run_hostile(seed);
}

/* WRITEs with slowly moving data take the whole common part, and the turn. */
static void run_slow(uint32_t seed)
{
	static const uint32_t sizes[] = { 2048, 2048, 1024, 512, 256 };
	unsigned hostile = HOSTS - 1;
	struct crowd *c = crowd_new(seed, HOSTS);

	for (unsigned i = 0; i < hostile; i++) {
		struct host *h = &c->hosts[1 + i];

		h->hostile = h->writes = h->drips = true;
		h->least = h->most = i < ARRAY_LEN(sizes) ? sizes[i] : LARGEST;
		h->wire.end[0].deaf = true;
		start_jobs(h, JOBS, JOBS);
		for (unsigned n = 0; n < 5; n++)
			advance_clock(c);
	}
	/* each turn has one of their commands, as slow as stall.c permits */
	test_good(c, &c->hosts[0], (hostile + 1) * c->world.cfg.data_time * 9);
	crowd_free(c);
}

static void test_slow_sessions_do_not_stop_a_good_one(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 6; seed++)
		run_slow(seed);
}

/* ---- well-behaved initiators that need more memory than exists ---- */

static void run_greedy(uint32_t seed)
{
	struct crowd *c = crowd_new(seed, HOSTS);

	for (unsigned i = 0; i < c->nhosts; i++) {
		struct host *h = &c->hosts[i];

		h->writes = true;
		h->reads = random_below(c, 2);
		h->least = h->most = random_below(c, 2) ? LARGEST : 256;
		start_jobs(h, JOBS, 2 * JOBS);
	}
	for (unsigned i = 0; i < c->nhosts; i++)
		wait_for_host(c, &c->hosts[i], 2 * JOBS, 20 * XTIME_S);
	crowd_free(c);
}

static void test_greedy_sessions_all_finish(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 10; seed++)
		if (!sim_leaves_out(seed))
			run_greedy(seed);
}

/* ---- waiting commands are aborted, reset and lost ---- */

struct function {
	struct ini_request r;
	bool over;
};

static void on_function(struct ini_request *r, int err,
			const struct dm_control *rsp)
{
	(void)err;
	(void)rsp;
	container_of(r, struct function, r)->over = true;
}

static void abort_something(struct crowd *c, struct host *h, struct function *f)
{
	struct job *j = &h->jobs[random_below(c, JOBS)];

	if (h->closed || (f->r.done && !f->over))
		return;
	*f = (struct function){ .r = { .done = on_function } };
	if (j->busy && random_below(c, 2))
		f->over =
			ini_task_management(h->ini, &f->r, ISCSI_TMF_ABORT_TASK,
					    0, &j->task, XTIME_NEVER) != 0;
	else
		f->over = ini_task_management(h->ini, &f->r,
					      random_below(c, 4)
						      ? ISCSI_TMF_ABORT_TASK_SET
						      : ISCSI_TMF_LU_RESET,
					      0, NULL, XTIME_NEVER) != 0;
}

static void run_chaos(uint32_t seed)
{
	struct crowd *c = crowd_new(seed, HOSTS);
	struct function f[HOSTS] = { { .over = false } };

	for (unsigned i = 0; i < c->nhosts; i++) {
		struct host *h = &c->hosts[i];

		turn_hostile(c, h);
		h->wire.end[0].deaf = random_below(c, 4) == 0;
		h->writes = true;
		h->todo = 1000;
	}
	for (unsigned n = 0; n < 300; n++) {
		struct host *h = &c->hosts[random_below(c, c->nhosts)];

		if (random_below(c, 3) == 0)
			abort_something(c, h, &f[h - c->hosts]);
		if (random_below(c, 100) == 0) /* cut at the next byte */
			h->wire.cfg.cut[0] = h->wire.end[0].sent + 1;
		advance_clock(c);
	}
	crowd_free(c); /* no object remains of the commands in progress */
}

static void test_waiting_commands_can_go_at_any_time(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++)
		if (!sim_leaves_out(seed))
			run_chaos(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_sessions_do_not_stop_a_good_one),
		cmocka_unit_test(test_slow_sessions_do_not_stop_a_good_one),
		cmocka_unit_test(test_greedy_sessions_all_finish),
		cmocka_unit_test(test_waiting_commands_can_go_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
