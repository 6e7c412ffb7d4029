/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recovery_sim_test.c: ErrorRecoveryLevel 1 (RFC 7143 §7.1.4): the whole stack on a
 * wire that damages data segments in both directions: write data, read data, status
 * with sense data, Rejects. Every command ends exactly once and well, each READ
 * returns what the WRITEs before it wrote, and the connection never ends.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/transport.h"
#include "sim/world.h"

#define SLOT  256u /* blocks that one job may touch */
#define JOBS  (BLOCKS / SLOT)
#define SEEDS 60

/* ---- damage ---- */

/* One direction of the wire: where the PDU is to which the next byte belongs. */
struct way {
	uint8_t head[ISCSI_BHS_LEN];
	size_t at;     /* bytes of the PDU that went by */
	size_t size;   /* of the whole PDU; 0: the header is not complete */
	size_t victim; /* the byte that will be damaged, or SIZE_MAX */
};

struct link {
	struct world world;
	struct wire wire;
	struct sim_transport transport[2];
	struct ini_session *ini;
	bool logged_in, closed, digests;
	int close_err;
	struct way way[2]; /* 0: from the initiator */
	bool header_digest, data_digest;
	uint32_t seed, one_in; /* one PDU with data in so many is damaged */
	unsigned damaged[64];  /* by opcode */
};

/* xorshift: the same choice is not made several times in a row, as a linear generator
 * makes it. */
static uint32_t random_below(struct link *l, uint32_t n)
{
	l->seed ^= l->seed << 13;
	l->seed ^= l->seed >> 17;
	l->seed ^= l->seed << 5;
	return l->seed % n;
}

static bool ends_login(const uint8_t *head)
{
	return (head[0] & 0x3f) == ISCSI_LOGIN_RESPONSE &&
	       (head[1] & 0x83) == 0x83 && head[36] == 0;
}

/* The header is complete: how long the PDU is, and whether it will be damaged. */
static void plan(struct link *l, struct way *w)
{
	struct iscsi_pdu p;
	size_t before, data;

	assert_int_equal(iscsi_bhs_decode(&p, w->head), 0);
	before = ISCSI_BHS_LEN + p.ahs_len +
		 (l->digests && l->header_digest ? ISCSI_DIGEST_LEN : 0);
	data = round_up4(p.dsl) +
	       (p.dsl && l->digests && l->data_digest ? ISCSI_DIGEST_LEN : 0);
	w->size = before + data;
	w->victim = SIZE_MAX;
	if (l->digests && p.dsl && l->one_in && !random_below(l, l->one_in)) {
		w->victim = before + random_below(l, (uint32_t)data);
		l->damaged[p.op]++;
	}
	if (ends_login(w->head))
		l->digests = true;
}

static void damage(void *arg, unsigned from, uint8_t *p, size_t n)
{
	struct link *l = arg;
	struct way *w = &l->way[from];

	for (size_t i = 0; i < n; i++) {
		if (w->at < ISCSI_BHS_LEN)
			w->head[w->at] = p[i];
		if (w->at == w->victim && w->size)
			p[i] ^= (uint8_t)(1u << random_below(l, 8));
		w->at++;
		if (w->at == ISCSI_BHS_LEN)
			plan(l, w);
		if (w->at == w->size)
			*w = (struct way){ .victim = SIZE_MAX };
	}
}

/* ---- a session ---- */

struct wishes {
	bool initial_r2t, immediate_data, header_digest;
	uint32_t dsl, first_burst, max_burst;
	uint16_t r2ts;
};

static void on_logged_in(void *arg, int err)
{
	((struct link *)arg)->logged_in = err == 0;
}

static void on_closed(void *arg, int err)
{
	struct link *l = arg;

	assert_false(l->closed);
	l->closed = true;
	l->close_err = err;
}

static void link_open(struct link *l, const struct wishes *k, uint32_t seed,
		      size_t chunk, uint32_t one_in)
{
	struct wire_config wc = { .seed = seed,
				  .max_chunk = chunk,
				  .max_delay = chunk ? XTIME_MS : 0,
				  .cut = { WIRE_NO_CUT, WIRE_NO_CUT },
				  .damage = damage,
				  .arg = l };
	struct ini_config cfg;
	struct iscsi_params *p = &cfg.login.want;

	memset(l, 0, sizeof(*l));
	l->seed = seed * 2654435761u + 1;
	l->one_in = one_in;
	l->header_digest = k->header_digest;
	l->data_digest = true;
	l->way[0].victim = l->way[1].victim = SIZE_MAX;
	world_open_level(&l->world, 1);
	wire_init(&l->wire, &wc);
	world_host_config(&l->world, &cfg, JOBS);
	p->error_recovery_level = 1;
	p->initial_r2t = k->initial_r2t;
	p->immediate_data = k->immediate_data;
	p->max_recv_dsl = k->dsl;
	p->first_burst_length = k->first_burst;
	p->max_burst_length = k->max_burst;
	p->max_outstanding_r2t = k->r2ts;
	cfg.login.header_digest_none_ok = !k->header_digest;
	cfg.login.header_digest_crc_ok = k->header_digest;
	cfg.login.data_digest_none_ok = false;
	cfg.logged_in = on_logged_in;
	cfg.closed = on_closed;
	cfg.arg = l;
	l->ini =
		world_connect(&l->world, &l->wire, l->transport, SIM_TCP, &cfg);
}

/* Until nothing is left to do: what repair.c waits for passes, too. */
static void run(struct link *l)
{
	for (unsigned i = 0; i < 5; i++) {
		do {
			world_run_mail(&l->world);
			wire_idle(&l->wire);
		} while (l->world.mail);
		wire_run(&l->wire, l->wire.now + XTIME_S);
	}
}

static void link_close(struct link *l)
{
	ini_logout(l->ini, l->world.now);
	run(l);
	wire_run(&l->wire, l->wire.now + 60 * XTIME_S);
	world_run_mail(&l->world);
	assert_true(l->closed);
	world_disconnect(l->ini, &l->wire, l->transport);
	world_close(&l->world);
}

/* ---- reads, writes and failures with known results ---- */

enum kind {
	READ,
	WRITE,
	FAILS, /* beyond the capacity: sense data */
	KINDS,
};

struct job {
	struct work *work;
	struct ini_task task;
	struct iovec iov[2];
	uint8_t data[SLOT * BLOCK];
	uint32_t lba, blocks;
	enum kind kind;
	bool busy;
};

struct work {
	struct link *link;
	struct job jobs[JOBS];
	uint8_t *model; /* the expected contents of the medium */
	unsigned todo, ended, kinds[KINDS];
};

static void start_job(struct job *j);

static void on_done(struct ini_task *t)
{
	struct job *j = container_of(t, struct job, task);
	struct work *w = j->work;

	assert_true(j->busy); /* once */
	j->busy = false;
	w->ended++;
	w->kinds[j->kind]++;
	assert_int_equal(t->err, 0);
	if (j->kind == FAILS) {
		assert_int_equal(t->status, 2);
		assert_int_equal(t->sense[12], 0x21);
	} else {
		assert_int_equal(t->status, 0);
		assert_int_equal(t->moved, j->blocks * BLOCK);
	}
	if (j->kind == WRITE)
		memcpy(w->model + j->lba * BLOCK, j->data, j->blocks * BLOCK);
	if (j->kind == READ)
		assert_memory_equal(j->data, w->model + j->lba * BLOCK,
				    j->blocks * BLOCK);
	if (w->todo)
		start_job(j);
}

static void start_job(struct job *j)
{
	struct work *w = j->work;
	struct link *l = w->link;
	uint32_t slot = (uint32_t)(j - w->jobs) * SLOT;
	size_t len, cut;

	w->todo--;
	j->busy = true;
	j->kind = random_below(l, 8) ? (enum kind)random_below(l, 2) : FAILS;
	j->blocks = 1 + random_below(l, random_below(l, 4) ? 16 : SLOT - 1);
	j->lba = slot + random_below(l, SLOT - j->blocks + 1);
	if (j->kind == FAILS)
		j->lba += BLOCKS;
	len = j->blocks * BLOCK;
	for (size_t i = 0; i < len; i++)
		j->data[i] =
			j->kind == WRITE ? (uint8_t)random_below(l, 256) : 0xee;
	cut = random_below(l, (uint32_t)len);
	j->iov[0] = (struct iovec){ j->data, cut };
	j->iov[1] = (struct iovec){ j->data + cut, len - cut };
	memset(&j->task, 0, sizeof(j->task));
	j->task.cdb_len = (uint8_t)scsi_cdb_rw(j->task.cdb, j->kind == WRITE,
					       j->lba, j->blocks, 0);
	j->task.read = j->kind != WRITE;
	j->task.write = j->kind == WRITE;
	j->task.attr = ISCSI_ATTR_SIMPLE;
	j->task.deadline = XTIME_NEVER;
	j->task.done = on_done;
	if (j->kind == WRITE)
		j->task.out = bufv_of(j->iov, 2);
	else
		j->task.in = bufv_of(j->iov, 2);
	ini_submit(l->ini, &j->task, l->world.now);
}

static void ignore_done(struct ini_task *t)
{
	assert_int_equal(t->err, 0);
}

static void clear_attention(struct link *l)
{
	struct ini_task t = { .cdb = { SCSI_TEST_UNIT_READY },
			      .cdb_len = 6,
			      .deadline = XTIME_NEVER,
			      .done = ignore_done };

	ini_submit(l->ini, &t, l->world.now);
	run(l);
}

static void run_mix(struct link *l, unsigned commands)
{
	struct work *w = calloc(1, sizeof(*w));

	w->link = l;
	w->model = calloc(BLOCKS, BLOCK);
	w->todo = commands;
	clear_attention(l);
	for (unsigned i = 0; i < JOBS; i++)
		w->jobs[i].work = w;
	for (unsigned i = 0; i < JOBS && w->todo; i++)
		start_job(&w->jobs[i]);
	for (unsigned i = 0; i < 20 && w->ended < commands; i++)
		run(l);
	assert_int_equal(w->ended, commands);
	assert_false(l->closed);
	assert_memory_equal(l->world.medium, w->model, BLOCKS * BLOCK);
	free(w->model);
	free(w);
}

/* ---- the tests ---- */

static const struct wishes every_wish[] = {
	{ false, true, false, 262144, 65536, 262144, 1 },
	{ true, true, true, 8192, 65536, 262144, 4 },
	{ true, false, false, 8192, 4096, 8192, 2 },
	{ false, false, true, 4096, 16384, 16384, 1 },
	{ false, true, true, 8192, 8192, 65536, 4 },
	{ true, true, false, 512, 512, 512, 1 },
};

static unsigned damaged[64]; /* by opcode, in all runs */

static void run_seed(const struct wishes *k, uint32_t seed, size_t chunk,
		     uint32_t one_in)
{
	struct link l;

	link_open(&l, k, seed, chunk, one_in);
	run(&l);
	assert_true(l.logged_in);
	assert_int_equal(ini_params(l.ini)->error_recovery_level, 1);
	run_mix(&l, 60);
	for (unsigned op = 0; op < ARRAY_LEN(damaged); op++)
		damaged[op] += l.damaged[op];
	l.one_in = 0;
	link_close(&l);
}

/* [RFC 7143: 7.1.5 #1-2] */
static void test_damaged_data_are_recovered_rfc7143_7_1_4(void **state)
{
	static const size_t chunks[] = { 0, 1000, 65536 };

	(void)state;
	for (uint32_t seed = 0; seed < SEEDS; seed++)
		run_seed(&every_wish[seed % ARRAY_LEN(every_wish)], seed,
			 chunks[seed % ARRAY_LEN(chunks)], 4 + seed % 30);
	/* each kind of PDU with data was damaged */
	assert_true(damaged[ISCSI_SCSI_COMMAND] > 10);
	assert_true(damaged[ISCSI_DATA_OUT] > 10);
	assert_true(damaged[ISCSI_DATA_IN] > 10);
	assert_true(damaged[ISCSI_SCSI_RESPONSE] > 10);
	assert_true(damaged[ISCSI_REJECT] > 10);
}

/* Without damage, level 1 gives the same results. */
static void test_level_1_without_damage(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(every_wish); i++)
		run_seed(&every_wish[i], i, i % 2 ? 3000 : 0, 0);
}

static void note_err(struct ini_task *t)
{
	t->resid = 1 + (uint32_t)-t->err; /* read by the test */
}

/* If every PDU is damaged, the session ends: it does not repeat for ever. */
static void test_hopeless_connection_is_dropped_rfc7143_7_1_4(void **state)
{
	static const uint8_t cdb[][10] = {
		{ SCSI_TEST_UNIT_READY }, /* the attention has sense data */
		{ SCSI_READ_10, [8] = 8 },
		{ SCSI_WRITE_10, [8] = 8 },
	};
	uint8_t data[8 * BLOCK] = { 1 };
	struct iovec iov = { data, sizeof(data) };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cdb); i++) {
		struct ini_task t = { .cdb_len = 10,
				      .deadline = XTIME_NEVER,
				      .done = note_err };
		struct link l;

		link_open(&l, &every_wish[0], 1, 0, 0);
		run(&l);
		if (i)
			clear_attention(&l);
		l.one_in = 1;
		memcpy(t.cdb, cdb[i], 10);
		t.read = i == 1;
		t.write = i == 2;
		if (t.read)
			t.in = bufv_of(&iov, 1);
		if (t.write)
			t.out = bufv_of(&iov, 1);
		ini_submit(l.ini, &t, l.world.now);
		for (unsigned k = 0; k < 10; k++)
			run(&l);
		assert_true(l.closed);
		assert_true(t.resid > 1);
		assert_true(t.err < 0);
		world_disconnect(l.ini, &l.wire, l.transport);
		world_close(&l.world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_data_are_recovered_rfc7143_7_1_4),
		cmocka_unit_test(test_level_1_without_damage),
		cmocka_unit_test(
			test_hopeless_connection_is_dropped_rfc7143_7_1_4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
