/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_sim_test.c: the whole stack, initiator with target and device over
 * each datamover (iSCSI over TCP, iSER from the first byte, iSER after a login
 * over TCP), on a virtual wire and clock: every split, delays, a reset after
 * every single byte. Acknowledged data are on the medium; every command ends
 * exactly once; no memory leaks (checked by the sanitizer build).
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/pi.h"
#include "cmocka_all.h"
#include "device/unit/unit.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/thin.h"
#include "sim/transport.h"
#include "sim/world.h"

#define SLOT 256u /* blocks that one job may touch */
#define JOBS (BLOCKS / SLOT)

/* ---- one connection ---- */

struct link {
	struct world *world;
	struct wire wire;
	struct sim_transport transport[2]; /* initiator, target */
	struct ini_session *ini;
	bool logged_in, closed;
	int login_err, close_err;
	uint64_t sent[2];
};

static void on_logged_in(void *arg, int err)
{
	struct link *l = arg;

	l->logged_in = err == 0;
	l->login_err = err;
}

static void on_closed(void *arg, int err)
{
	struct link *l = arg;

	assert_false(l->closed);
	l->closed = true;
	l->close_err = err;
}

static void count(void *arg, unsigned from, const uint8_t *p, size_t n)
{
	struct link *l = arg;

	(void)p;
	l->sent[from] += n;
}

struct wishes {
	bool initial_r2t, immediate_data, header_digest, data_digest;
	uint32_t dsl, first_burst, max_burst;
	uint16_t r2ts;
};

static void apply(struct ini_config *cfg, const struct wishes *k)
{
	struct iscsi_params *p = &cfg->login.want;

	p->initial_r2t = k->initial_r2t;
	p->immediate_data = k->immediate_data;
	p->max_recv_dsl = k->dsl;
	p->first_burst_length = k->first_burst;
	p->max_burst_length = k->max_burst;
	p->max_outstanding_r2t = k->r2ts;
	cfg->login.header_digest_none_ok = !k->header_digest;
	cfg->login.data_digest_none_ok = !k->data_digest;
	cfg->login.header_digest_crc_ok = k->header_digest;
	cfg->login.data_digest_crc_ok = k->data_digest;
}

static uint32_t level = 2; /* the iSCSIProtocolLevel to offer */

static void link_open(struct link *l, struct world *world,
		      const struct wire_config *wire, const struct wishes *k,
		      enum sim_way way)
{
	struct wire_config wc = *wire;
	struct ini_config cfg;

	memset(l, 0, sizeof(*l));
	l->world = world;
	wc.tap = count;
	wc.arg = l;
	wire_init(&l->wire, &wc);
	world_host_config(world, &cfg, JOBS);
	if (k)
		apply(&cfg, k);
	cfg.login.want.protocol_level = level;
	cfg.logged_in = on_logged_in;
	cfg.closed = on_closed;
	cfg.arg = l;
	l->ini = world_connect(world, &l->wire, l->transport, way, &cfg);
}

/* Runs all events that need no deadline. */
static void run_without_deadlines(struct link *l)
{
	do {
		world_run_mail(l->world);
		wire_idle(&l->wire);
	} while (l->world->mail);
}

static void link_close(struct link *l)
{
	if (!l->closed) {
		ini_logout(l->ini, l->world->now);
		run_without_deadlines(l);
	}
	/* a close that waits for the peer has its own timeout */
	wire_run(&l->wire, l->wire.now + 60 * XTIME_S);
	world_run_mail(l->world);
	assert_true(l->closed);
	world_disconnect(l->ini, &l->wire, l->transport);
}

/* ---- reads and writes with known results ---- */

struct job {
	struct work *work;
	struct ini_task task;
	struct iovec iov[3];
	uint8_t data[SLOT * BLOCK], expect[SLOT * BLOCK];
	uint32_t lba, blocks;
	bool write, busy;
};

struct work {
	struct link *link;
	struct job jobs[JOBS];
	uint8_t *model; /* the expected contents of the medium */
	bool *unsure;	/* for each block: a write of it was not answered */
	uint32_t seed;
	unsigned todo, ended, ok;
};

static uint32_t random_below(struct work *w, uint32_t n)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return (w->seed >> 8) % n;
}

static void start_job(struct job *j);

static void check_read(struct work *w, const struct job *j)
{
	for (uint32_t i = 0; i < j->blocks; i++) {
		if (w->unsure[j->lba + i])
			continue;
		assert_memory_equal(j->data + i * BLOCK,
				    w->model + (j->lba + i) * BLOCK, BLOCK);
	}
}

static void on_done(struct ini_task *t)
{
	struct job *j = container_of(t, struct job, task);
	struct work *w = j->work;

	assert_true(j->busy);
	j->busy = false;
	w->ended++;
	if (t->err == 0 && t->status == 0) {
		w->ok++;
		if (j->write)
			memcpy(w->model + j->lba * BLOCK, j->data,
			       j->blocks * BLOCK);
		else
			check_read(w, j);
		for (uint32_t i = 0; j->write && i < j->blocks; i++)
			w->unsure[j->lba + i] = false;
	} else if (j->write) {
		for (uint32_t i = 0; i < j->blocks; i++)
			w->unsure[j->lba + i] = true;
	}
	if (w->todo && !w->link->closed && t->err == 0)
		start_job(j);
}

static void start_job(struct job *j)
{
	struct work *w = j->work;
	size_t len, a, b;
	uint32_t slot = (uint32_t)(j - w->jobs) * SLOT;

	w->todo--;
	j->busy = true;
	j->write = random_below(w, 2);
	j->blocks = 1 + random_below(w, random_below(w, 4) ? 16 : SLOT - 1);
	j->lba = slot + random_below(w, SLOT - j->blocks + 1);
	len = j->blocks * BLOCK;
	if (j->write)
		for (size_t i = 0; i < len; i++)
			j->data[i] = (uint8_t)random_below(w, 256);
	else
		memset(j->data, 0xee, len);
	a = random_below(w, (uint32_t)len);
	b = a + random_below(w, (uint32_t)(len - a));
	j->iov[0] = (struct iovec){ j->data, a };
	j->iov[1] = (struct iovec){ j->data + a, b - a };
	j->iov[2] = (struct iovec){ j->data + b, len - b };
	memset(&j->task, 0, sizeof(j->task));
	j->task.cdb_len = (uint8_t)scsi_cdb_rw(j->task.cdb, j->write, j->lba,
					       j->blocks, 0);
	j->task.read = !j->write;
	j->task.write = j->write;
	j->task.attr = ISCSI_ATTR_SIMPLE;
	j->task.deadline = XTIME_NEVER;
	j->task.done = on_done;
	if (j->write)
		j->task.out = bufv_of(j->iov, 3);
	else
		j->task.in = bufv_of(j->iov, 3);
	ini_submit(w->link->ini, &j->task, w->link->world->now);
}

static struct work *work_new(struct link *l, uint8_t *model, bool *unsure,
			     uint32_t seed, unsigned todo)
{
	struct work *w = calloc(1, sizeof(*w));

	w->link = l;
	w->model = model;
	w->unsure = unsure;
	w->seed = seed;
	w->todo = todo;
	for (unsigned i = 0; i < JOBS; i++)
		w->jobs[i].work = w;
	return w;
}

static void test_ready_done(struct ini_task *t)
{
	(void)t;
}

/* Consumes the power-on attention. */
static void clear_attention(struct link *l)
{
	struct ini_task t = { .cdb = { SCSI_TEST_UNIT_READY },
			      .cdb_len = 6,
			      .deadline = XTIME_NEVER,
			      .done = test_ready_done };

	ini_submit(l->ini, &t, l->world->now);
	run_without_deadlines(l);
}

static void start_jobs(struct work *w, unsigned jobs)
{
	for (unsigned i = 0; i < jobs && w->todo; i++)
		start_job(&w->jobs[i]);
}

/* Checks that the medium has all blocks that are not unsure. */
static void check_medium(const struct world *world, const uint8_t *model,
			 const bool *unsure)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (!unsure[i])
			assert_memory_equal(world->medium + i * BLOCK,
					    model + i * BLOCK, BLOCK);
}

/* ---- the tests ---- */

static void run_mix(enum sim_way way, const struct wishes *k,
		    const struct wire_config *wc, uint32_t seed,
		    unsigned commands)
{
	uint8_t *model = calloc(BLOCKS, BLOCK);
	bool *unsure = calloc(BLOCKS, sizeof(bool));
	struct world world;
	struct link l;
	struct work *w;

	world_open(&world);
	link_open(&l, &world, wc, k, way);
	run_without_deadlines(&l);
	assert_true(l.logged_in);
	assert_string_equal(ini_transport(l.ini),
			    way == SIM_TCP ? "tcp" : "iser");
	clear_attention(&l);
	w = work_new(&l, model, unsure, seed, commands);
	start_jobs(w, JOBS);
	run_without_deadlines(&l);
	assert_int_equal(w->ended, commands);
	assert_int_equal(w->ok, commands);
	check_medium(&world, model, unsure);
	link_close(&l);
	free(w);
	world_close(&world);
	free(model);
	free(unsure);
}

static const struct wishes every_wish[] = {
	{ false, true, false, false, 262144, 65536, 262144, 1 },
	{ true, true, false, false, 8192, 65536, 262144, 4 },
	{ true, false, false, false, 8192, 4096, 8192, 2 },
	{ false, false, false, false, 4096, 16384, 16384, 1 },
	{ false, true, true, false, 8192, 8192, 65536, 4 },
	{ false, true, false, true, 8192, 8192, 65536, 4 },
	{ true, true, true, true, 512, 512, 512, 1 },
	{ false, true, true, true, 65536, 1024, 4096, 3 },
};

static void mix_whole_and_split(enum sim_way way)
{
	static const size_t chunks[] = { 0, 1, 7, 48, 1000, 65536 };

	for (size_t i = 0; i < ARRAY_LEN(every_wish); i++)
		for (size_t c = 0; c < ARRAY_LEN(chunks); c++) {
			struct wire_config wc = {
				.seed = (uint32_t)(100 * i + c),
				.max_chunk = chunks[c],
				.max_delay = chunks[c] ? XTIME_MS : 0,
				.cut = { WIRE_NO_CUT, WIRE_NO_CUT },
			};

			if (sim_leaves_out(i + c + way))
				continue;
			run_mix(way, &every_wish[i], &wc, (uint32_t)(i + 7 * c),
				chunks[c] == 1 ? 24 : 200);
		}
}

static void test_mix_tcp(void **state)
{
	(void)state;
	mix_whole_and_split(SIM_TCP);
}

/* [RFC 7145: 5.2.1 #2, 7.3.6 #3 #9-11, 9.5.1 #7-8, 9.5.2 #5] */
static void test_mix_iser_first(void **state)
{
	(void)state;
	mix_whole_and_split(SIM_ISER_FIRST);
}

/* [RFC 7145: 5.1 #1, 5.1.2 #6-8] [RFC 5047: 8.6 #2] */
static void test_mix_iser_switch(void **state)
{
	(void)state;
	mix_whole_and_split(SIM_ISER_SWITCH);
}

/* ---- protection information, CDBs of variable length ---- */

#define PI_BLOCKS 40u
#define PI_WIRE	  (PI_BLOCKS * (BLOCK + PI_LEN))

struct one {
	struct ini_task task;
	struct iovec iov;
	bool done;
};

static void one_done(struct ini_task *t)
{
	container_of(t, struct one, task)->done = true;
}

static void run_one(struct link *l, struct one *o, bool write, void *data,
		    size_t len)
{
	o->iov = (struct iovec){ data, len };
	if (write)
		o->task.out = bufv_of(&o->iov, 1);
	else
		o->task.in = bufv_of(&o->iov, 1);
	o->task.write = write;
	o->task.read = !write;
	o->task.deadline = XTIME_NEVER;
	o->task.done = one_done;
	ini_submit(l->ini, &o->task, l->world->now);
	run_without_deadlines(l);
	assert_true(o->done);
}

/* READ(32), WRITE(32), SBC-3 §§5.12, 5.34 */
static struct one cdb32(uint16_t sa, uint32_t lba, uint32_t ref)
{
	struct one o = {
		.task = { .cdb = { SCSI_VARIABLE_LENGTH, [7] = 24, [10] = 0x20 },
			  .cdb_len = 32 }
	};

	put_be16(o.task.cdb + 8, sa);
	put_be64(o.task.cdb + 12, lba);
	put_be32(o.task.cdb + 20, ref);
	put_be32(o.task.cdb + 28, PI_BLOCKS);
	return o;
}

/* RFC 7143 §11.2.2.3: the second half of the CDB is in an AHS. */
static void run_32(enum sim_way way, const struct wishes *k, size_t chunk)
{
	struct wire_config wc = { .max_chunk = chunk,
				  .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	uint8_t *out = malloc(PI_WIRE), *in = calloc(1, PI_WIRE);
	struct world world;
	struct link l;
	struct one o;

	for (unsigned i = 0; i < PI_BLOCKS; i++) {
		uint8_t *p = out + i * (BLOCK + PI_LEN);

		memset(p, (int)i, BLOCK);
		pi_put(p + BLOCK, pi_guard(p, BLOCK), 0x1234, 7000 + i);
	}
	world_open_protected(&world, 2);
	link_open(&l, &world, &wc, k, way);
	run_without_deadlines(&l);
	clear_attention(&l);
	o = cdb32(SCSI_VL_WRITE_32, 100, 7000);
	run_one(&l, &o, true, out, PI_WIRE);
	assert_int_equal(o.task.status, 0);
	assert_int_equal(world.medium[139 * BLOCK], 39);
	o = cdb32(SCSI_VL_READ_32, 100, 7000);
	run_one(&l, &o, false, in, PI_WIRE);
	assert_int_equal(o.task.status, 0);
	assert_int_equal(o.task.resid, 0);
	assert_memory_equal(in, out, PI_WIRE);
	/* the bytes of the AHS count: the tag differs from the tag on the medium */
	o = cdb32(SCSI_VL_READ_32, 100, 7001);
	run_one(&l, &o, false, in, PI_WIRE);
	assert_int_equal(o.task.status, 2);
	assert_int_equal(o.task.sense[2] & 0xf, 0xb);
	assert_int_equal(get_be16(o.task.sense + 12), 0x1003);
	link_close(&l);
	world_close(&world);
	free(out);
	free(in);
}

static void test_32_byte_cdbs_over_each_transport_rfc7143_11_2_2_3(void **state)
{
	static const enum sim_way ways[] = { SIM_TCP, SIM_ISER_FIRST,
					     SIM_ISER_SWITCH };
	static const size_t chunks[] = { 0, 1, 1000 };

	(void)state;
	for (size_t w = 0; w < ARRAY_LEN(ways); w++)
		for (size_t i = 0; i < ARRAY_LEN(every_wish); i++)
			for (size_t c = 0; c < ARRAY_LEN(chunks); c++)
				run_32(ways[w], &every_wish[i], chunks[c]);
}

/* One short exchange whose bytes are counted, or cut after `cut` of `end`. */
static void run_short(enum sim_way way, uint64_t cut, unsigned end,
		      uint64_t sent[2])
{
	static const struct wishes k = { true, true, false, false,
					 1024, 1024, 2048,  2 };
	struct wire_config wc = { .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	static uint8_t model[BLOCKS * BLOCK];
	static bool unsure[BLOCKS];
	struct world world;
	struct link l, second;
	struct work *w;

	memset(model, 0, sizeof(model));
	memset(unsure, 0, sizeof(unsure));
	wc.cut[end] = cut;
	world_open(&world);
	link_open(&l, &world, &wc, &k, way);
	run_without_deadlines(&l);
	w = work_new(&l, model, unsure, 3, 4);
	if (l.logged_in && !l.closed) {
		clear_attention(&l);
		start_jobs(w, 4);
		run_without_deadlines(&l);
	}
	for (unsigned i = 0; i < JOBS; i++)
		assert_false(w->jobs[i].busy);
	if (cut == WIRE_NO_CUT)
		assert_int_equal(w->ok, 4);
	check_medium(&world, model, unsure);
	memcpy(sent, l.sent, sizeof(l.sent));
	link_close(&l);
	/* the target still works */
	wc.cut[end] = WIRE_NO_CUT;
	link_open(&second, &world, &wc, &k, way);
	run_without_deadlines(&second);
	assert_true(second.logged_in);
	link_close(&second);
	free(w);
	world_close(&world);
}

static void reset_after_every_byte(enum sim_way way)
{
	uint64_t whole[2], sent[2];

	run_short(way, WIRE_NO_CUT, 0, whole);
	for (unsigned end = 0; end < 2; end++)
		for (uint64_t cut = 0; cut < whole[end]; cut++) {
			/* inside payload all places are equivalent */
			if (cut > 1500 && cut % 61)
				continue;
			if (sim_leaves_out(cut + way))
				continue;
			run_short(way, cut, end, sent);
		}
}

static void test_reset_after_every_byte_tcp(void **state)
{
	(void)state;
	reset_after_every_byte(SIM_TCP);
}

/* [RFC 7145: 5.2.3.2 #4] [RFC 5047: 10.2.1 #1] */
static void test_reset_after_every_byte_iser_first(void **state)
{
	(void)state;
	reset_after_every_byte(SIM_ISER_FIRST);
}

/* [RFC 7145: 5.1.2 #11, 10.1.1.2 #1-2] */
static void test_reset_after_every_byte_iser_switch(void **state)
{
	(void)state;
	reset_after_every_byte(SIM_ISER_SWITCH);
}

/* The initiator drops a silent target in time (login and ping). */
static void silence_is_noticed(enum sim_way way)
{
	struct wire_config wc = { .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct world world;
	struct link l;

	world_open(&world);
	link_open(&l, &world, &wc, NULL, way);
	/* without settle no byte is delivered */
	assert_true(ini_deadline(l.ini) < XTIME_NEVER);
	ini_expire(l.ini, ini_deadline(l.ini));
	assert_int_equal(l.login_err, ERR_TIMEOUT);
	run_without_deadlines(&l);
	link_close(&l);
	world_close(&world);
}

static void test_silence_is_noticed(void **state)
{
	(void)state;
	for (unsigned way = 0; way < SIM_WAYS; way++)
		silence_is_noticed((enum sim_way)way);
}

struct answer {
	struct ini_request r;
	bool over;
	int err, response;
};

static void on_answer(struct ini_request *r, int err,
		      const struct dm_control *rsp)
{
	struct answer *a = container_of(r, struct answer, r);

	a->over = true;
	a->err = err;
	a->response = rsp ? rsp->pdu.tmf_response : -1;
}

struct sensed {
	struct ini_task t;
	struct scsi_sense sense;
};

static void on_sensed(struct ini_task *t)
{
	struct sensed *s = container_of(t, struct sensed, t);

	if (t->err || scsi_sense_parse(&s->sense, t->sense, t->sense_len))
		s->sense.asc = 0;
}

/* LOGICAL UNIT RESET by one initiator is reported to the other (SAM-5 §6.3.3). */
static void lu_reset_is_reported(enum sim_way way)
{
	struct wire_config wc = { .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct answer a = { .r = { .done = on_answer } };
	struct sensed s = { .t = { .cdb = { SCSI_TEST_UNIT_READY },
				   .cdb_len = 6,
				   .deadline = XTIME_NEVER,
				   .done = on_sensed } };
	struct world world;
	struct link one, two;

	world_open(&world);
	link_open(&one, &world, &wc, NULL, way);
	run_without_deadlines(&one);
	link_open(&two, &world, &wc, NULL, way);
	run_without_deadlines(&two);
	assert_true(one.logged_in && two.logged_in);
	clear_attention(&two);
	assert_int_equal(ini_task_management(one.ini, &a.r, ISCSI_TMF_LU_RESET,
					     0, NULL, XTIME_NEVER),
			 0);
	run_without_deadlines(&one);
	assert_true(a.over);
	assert_int_equal(a.err, 0);
	assert_int_equal(a.response, ISCSI_TMF_COMPLETE);
	ini_submit(two.ini, &s.t, world.now);
	run_without_deadlines(&two);
	assert_int_equal(s.t.status, 0x02);
	assert_int_equal(s.sense.key, SENSE_UNIT_ATTENTION);
	assert_int_equal(s.sense.asc, ASC_BUS_DEVICE_RESET);
	link_close(&one);
	link_close(&two);
	world_close(&world);
}

static void test_lu_reset_is_reported(void **state)
{
	(void)state;
	for (unsigned way = 0; way < SIM_WAYS; way++)
		lu_reset_is_reported((enum sim_way)way);
}

/* ---- a command that the target dropped without a response (TAS = 0) ---- */

struct dropped {
	struct world world;
	struct link one, two;
	struct ini_task read;
	struct iovec iov;
	uint8_t data[BLOCK];
	bool ended;
};

static void on_dropped(struct ini_task *t)
{
	struct dropped *d = container_of(t, struct dropped, read);

	assert_false(d->ended);
	d->ended = true;
}

/* A READ of initiator two stays in the backstore, of a unit with TAS = 0. */
static void dropped_open(struct dropped *d, enum sim_way way)
{
	struct wire_config wc = { .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };

	memset(d, 0, sizeof(*d));
	world_open_held(&d->world);
	dev_lu_get(d->world.server, 0)->ctl.tas = false;
	link_open(&d->one, &d->world, &wc, NULL, way);
	run_without_deadlines(&d->one);
	link_open(&d->two, &d->world, &wc, NULL, way);
	run_without_deadlines(&d->two);
	assert_true(d->one.logged_in && d->two.logged_in);
	clear_attention(&d->two);
	d->iov = (struct iovec){ d->data, BLOCK };
	d->read = (struct ini_task){ .cdb = { SCSI_READ_10, [8] = 1 },
				     .cdb_len = 10,
				     .read = true,
				     .in = bufv_of(&d->iov, 1),
				     .deadline = XTIME_NEVER,
				     .done = on_dropped };
	ini_submit(d->two.ini, &d->read, d->world.now);
	run_without_deadlines(&d->two);
}

static void dropped_close(struct dropped *d)
{
	link_close(&d->one);
	link_close(&d->two);
	world_close(&d->world);
}

static void reset_by_one(struct dropped *d)
{
	struct answer a = { .r = { .done = on_answer } };

	assert_int_equal(ini_task_management(d->one.ini, &a.r,
					     ISCSI_TMF_LU_RESET, 0, NULL,
					     XTIME_NEVER),
			 0);
	run_without_deadlines(&d->one);
	bs_hold_release(d->world.hold, 1);
	run_without_deadlines(&d->two);
	run_without_deadlines(&d->one);
	assert_true(a.over);
	assert_int_equal(a.response, ISCSI_TMF_COMPLETE);
	assert_false(d->ended);
}

/* Advances the clock of initiator two. */
static void later(struct dropped *d, xtime by)
{
	d->world.now += by;
	ini_expire(d->two.ini, d->world.now);
	run_without_deadlines(&d->two);
}

static void expect_dropped(struct dropped *d)
{
	assert_true(d->ended);
	assert_int_equal(d->read.err, ERR_ABORTED);
	assert_false(d->two.closed); /* the session continues */
	clear_attention(&d->two);
	clear_attention(&d->two);
}

/* Without other commands, QUERY TASK detects the loss (RFC 7144 §6.3). */
static void found_by_query(enum sim_way way)
{
	struct dropped d;

	dropped_open(&d, way);
	later(&d,
	      6 * XTIME_S); /* the target still has the command: no change */
	later(&d, 6 * XTIME_S);
	assert_false(d.ended);
	reset_by_one(&d);
	later(&d, 6 * XTIME_S);
	assert_false(d.ended); /* after a second QUERY TASK */
	later(&d, 2 * XTIME_S);
	expect_dropped(&d);
	dropped_close(&d);
}

/* A later command gets the unit attention, which makes earlier commands suspect. */
static void found_by_attention(enum sim_way way, uint32_t protocol_level)
{
	struct dropped d;

	level = protocol_level;
	dropped_open(&d, way);
	level = 2;
	reset_by_one(&d);
	clear_attention(&d.two); /* BUS DEVICE RESET */
	assert_true(ini_deadline(d.two.ini) < XTIME_NEVER);
	later(&d, XTIME_S);
	later(&d, XTIME_S);
	expect_dropped(&d);
	dropped_close(&d);
}

/* A command that exists, and ends during QUERY TASK. */
static void not_dropped(enum sim_way way)
{
	struct dropped d;

	dropped_open(&d, way);
	d.world.now += 6 * XTIME_S;
	ini_expire(d.two.ini, d.world.now);
	bs_hold_release(d.world.hold, 1);
	run_without_deadlines(&d.two);
	assert_true(d.ended);
	assert_int_equal(d.read.err, 0);
	assert_int_equal(d.read.status, 0);
	later(&d, 6 * XTIME_S);
	dropped_close(&d);
}

static void test_dropped_commands_are_found(void **state)
{
	(void)state;
	for (unsigned way = 0; way < SIM_WAYS; way++) {
		found_by_query((enum sim_way)way);
		found_by_attention((enum sim_way)way, 2);
		found_by_attention((enum sim_way)way, 1);
		not_dropped((enum sim_way)way);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix_tcp),
		cmocka_unit_test(test_mix_iser_first),
		cmocka_unit_test(test_mix_iser_switch),
		cmocka_unit_test(
			test_32_byte_cdbs_over_each_transport_rfc7143_11_2_2_3),
		cmocka_unit_test(test_reset_after_every_byte_tcp),
		cmocka_unit_test(test_reset_after_every_byte_iser_first),
		cmocka_unit_test(test_reset_after_every_byte_iser_switch),
		cmocka_unit_test(test_silence_is_noticed),
		cmocka_unit_test(test_lu_reset_is_reported),
		cmocka_unit_test(test_dropped_commands_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
