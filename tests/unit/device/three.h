/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * three.h: a fixture with three initiators at one unit, each on a worker of its
 * own. The test delivers the messages between the workers.
 */
#ifndef TESTS_DEVICE_THREE_H
#define TESTS_DEVICE_THREE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "device/device.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"
#include "scsi/transportid.h"
#include "unit/device/ended.h"
#include "unit/device/task_sanity.h"

#define INITIATORS 3
#define THREE_MAX  65536u
#define A	   0
#define B	   1
#define C	   2

struct three_ini {
	struct dev_nexus *nexus;
	struct dev_task task;
	bool done, released;
	uint8_t in[THREE_MAX];
	size_t in_len;
	struct scsi_sense sense;
	/* set by three_abort, for PREEMPT AND ABORT */
	unsigned aborts;
	const struct dev_task *spared;
	bool abort_later;
	char name[SCSI_PORT_NAME_MAX + 1];
	uint8_t attr;		      /* of its commands */
	uint16_t lun;		      /* of its commands */
	const struct dev_lu *aborted; /* the unit of the last three_abort */
	struct dev_map *map;	      /* set before three_login */
	const char *target;	      /* NULL: "iqn.t" */
};

static struct three {
	struct dev_env env;
	struct dev_server *server;
	struct dev_msg *messages[INITIATORS], **end[INITIATORS];
	struct three_ini i[INITIATORS];
	struct bs *store; /* set before three_start; NULL: a null backstore */
	struct bs *hold;  /* the backstore whose requests wait; three_on_hold */
	void (*set_up)(struct dev_server *s);
	uint16_t port[INITIATORS]; /* relative target port; 0: port 1 */
	int out;		   /* buffers in use */
	/* the save in progress, and the saved records */
	struct dev_save *saving;
	bool save_later;
	int save_result;
	unsigned saves;
	uint8_t saved[THREE_MAX]; /* DEV_KEPT_RESERVATIONS */
	size_t saved_len;
	uint8_t unit[THREE_MAX]; /* DEV_KEPT_UNIT */
	size_t unit_len;
} three;

static inline void three_post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	m->next = NULL;
	*three.end[worker] = m;
	three.end[worker] = &m->next;
}

static inline bool three_deliver_one(unsigned worker)
{
	struct dev_msg *m = three.messages[worker];

	if (!m)
		return false;
	three.messages[worker] = m->next;
	if (!m->next)
		three.end[worker] = &three.messages[worker];
	m->run(m);
	check_tasks(three.server, worker);
	return true;
}

/* SIGVTALRM ends a test that never leaves one turn, however busy the machine
 * is. */
#define CPU_SECONDS 20

static inline void cpu_limit(unsigned seconds)
{
	const struct itimerval limit = { .it_value.tv_sec = (time_t)seconds };

	assert_int_equal(setitimer(ITIMER_VIRTUAL, &limit, NULL), 0);
}

#define THREE_TURNS 100000u /* far more than any command needs */

static inline void three_settle(void)
{
	unsigned turns = 0;
	bool again;

	cpu_limit(CPU_SECONDS);
	do {
		assert_true(
			turns++ <
			THREE_TURNS); /* fails on an endless exchange of messages */
		again = false;
		for (unsigned w = 0; w < INITIATORS; w++)
			again |= three_deliver_one(w);
	} while (again);
}

static inline void *three_get(void *arg, unsigned worker, size_t len)
{
	void *buf = malloc(len);

	(void)arg;
	(void)worker;
	three.out += buf != NULL;
	return buf;
}

static inline void three_put(void *arg, unsigned worker, void *buf, size_t len)
{
	(void)arg;
	(void)worker;
	(void)len;
	three.out--;
	free(buf);
}

static inline void three_saved(void)
{
	struct dev_save *s = three.saving;

	three.saving = NULL;
	s->result = three.save_result;
	if (!s->result && s->kind == DEV_KEPT_UNIT) {
		three.unit_len = s->len;
		if (s->len)
			memcpy(three.unit, s->data, s->len);
	} else if (!s->result) {
		three.saved_len = s->len;
		if (s->len)
			memcpy(three.saved, s->data, s->len);
	}
	s->done(s);
}

static inline void three_save(void *arg, struct dev_save *s)
{
	(void)arg;
	assert_null(three.saving);
	assert_true(s->len <= sizeof(three.saved));
	three.saves++;
	three.saving = s;
	if (!three.save_later)
		three_saved();
}

static inline void three_abort(void *arg, const struct dev_lu *lu,
			       const struct dev_task *except)
{
	struct three_ini *i = arg;

	i->aborted = lu;
	i->aborts++;
	i->spared = except;
	if (!i->abort_later)
		dev_nexus_tasks_gone(i->nexus);
}

static inline void three_login(unsigned who)
{
	struct three_ini *i = &three.i[who];
	uint16_t port = three.port[who] ? three.port[who] : 1;
	struct dev_nexus_config cfg = { .worker = who,
					.relative_target_port = port,
					.map = i->map,
					.abort_tasks = three_abort,
					.arg = i };

	snprintf(i->name, sizeof(i->name), "iqn.i%u,i,0x80000000000%u", who,
		 who);
	strcpy(cfg.initiator_port, i->name);
	strcpy(cfg.target_name, i->target ? i->target : "iqn.t");
	snprintf(cfg.target_port, sizeof(cfg.target_port), "%s,t,0x0001",
		 i->target ? i->target : "iqn.t");
	i->nexus = dev_nexus_open(three.server, &cfg);
	assert_non_null(i->nexus);
}

static inline void three_logout(unsigned who)
{
	dev_nexus_close(three.i[who].nexus);
	three.i[who].nexus = NULL;
	three_settle();
}

static inline void three_done(struct dev_task *t)
{
	no_more_steps(t);
	container_of(t, struct three_ini, task)->done = true;
}

static inline void three_released(struct dev_task *t)
{
	container_of(t, struct three_ini, task)->released = true;
}

/* A command whose data have not arrived. */
static inline struct dev_task *three_announce(unsigned who, const uint8_t *cdb,
					      uint32_t out, uint32_t in)
{
	struct three_ini *i = &three.i[who];
	struct dev_task *t = &i->task;

	memset(t, 0, sizeof(*t));
	i->done = i->released = false;
	t->nexus = i->nexus;
	t->lun = dev_lun_encode(i->lun);
	t->attr = i->attr;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl.out = out;
	t->edtl.in = in;
	t->done = three_done;
	assert_int_equal(dev_task_begin(t), 0);
	return t;
}

/* A command with its data, executed until it ends or waits for other
 * commands. */
static inline void three_send(unsigned who, const uint8_t *cdb,
			      const void *data, uint32_t out, uint32_t in)
{
	struct dev_task *t = three_announce(who, cdb, out, in);

	if (t->out_len && data)
		bufv_copy_in(&t->out, 0, data, t->out_len);
	dev_task_execute(t);
}

static inline int three_finish(unsigned who)
{
	struct three_ini *i = &three.i[who];
	struct dev_task *t = &i->task;

	assert_true(i->done);
	memset(&i->sense, 0, sizeof(i->sense));
	if (t->sense.len)
		scsi_sense_parse(&i->sense, t->sense.data, t->sense.len);
	i->in_len =
		bufv_copy_out(&t->in, 0, i->in, MIN(t->in.len, sizeof(i->in)));
	dev_task_end(t);
	return t->status;
}

static inline int three_run(unsigned who, const uint8_t *cdb, const void *data,
			    uint32_t out, uint32_t in)
{
	three_send(who, cdb, data, out, in);
	three_settle();
	return three_finish(who);
}

#define RUN(who, in, ...) \
 three_run(who, (const uint8_t[16]){ __VA_ARGS__ }, NULL, 0, in)

static inline int tur(unsigned who)
{
	return RUN(who, 0, 0);
}

static inline void no_sense_left(unsigned who)
{
	while (tur(who) == SCSI_CHECK_CONDITION)
		;
}

/* three_begin sets up server, unit and nexuses. ready: takes all attentions;
 * otherwise only POWER ON, because the unit may never become ready. */
static inline void three_begin(bool ready)
{
	const struct dev_lu_config lu = { .keeps = three.env.save != NULL };

	for (unsigned w = 0; w < INITIATORS; w++)
		three.end[w] = &three.messages[w];
	three.env.nworkers = INITIATORS;
	three.env.post = three_post;
	three.env.give_way = three_post;
	three.env.buf_get = three_get;
	three.env.buf_put = three_put;
	three.server = dev_server_new(&three.env, 1u << 20);
	assert_non_null(three.server);
	if (!three.store)
		three.store = bs_null_new("null:1M", 1u << 20, 512);
	assert_int_equal(dev_lu_add(three.server, &lu, three.store), 0);
	three.store = NULL; /* the unit owns the backstore */
	if (three.saved_len)
		assert_int_equal(dev_lu_restore(dev_lu_get(three.server, 0),
						DEV_KEPT_RESERVATIONS,
						three.saved, three.saved_len),
				 0);
	if (three.unit_len)
		assert_int_equal(dev_lu_restore(dev_lu_get(three.server, 0),
						DEV_KEPT_UNIT, three.unit,
						three.unit_len),
				 0);
	if (three.set_up)
		three.set_up(three.server);
	for (unsigned i = 0; i < INITIATORS; i++) {
		three_login(i);
		if (ready)
			no_sense_left(i);
		else
			tur(i); /* POWER ON */
	}
}

static inline void three_start(void)
{
	three_begin(true);
}

static inline int three_open(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three_start();
	return 0;
}

/* A backstore whose requests wait until the test releases them. Call before
 * three_start. */
static inline void three_on_hold(void)
{
	memset(&three, 0, sizeof(three));
	three.hold = bs_hold_new(bs_null_new("null:1M", 1u << 20, 512));
	three.store = three.hold;
}

static inline int three_open_on_hold(void **state)
{
	(void)state;
	three_on_hold();
	three_start();
	return 0;
}

/* expect_held expects that n requests wait in the backstore. */
static inline void expect_held(unsigned n)
{
	three_settle();
	assert_int_equal(bs_hold_waiting(three.hold), n);
}

static inline void release_held(unsigned n)
{
	bs_hold_release(three.hold, n);
	three_settle();
}

static inline int three_open_keeping(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	three.env.save = three_save;
	three_start();
	return 0;
}

static inline int three_close(void **state)
{
	(void)state;
	for (unsigned i = 0; i < INITIATORS; i++)
		if (three.i[i].nexus)
			three_logout(i);
	dev_server_free(three.server);
	assert_int_equal(three.out, 0);
	return 0;
}

static inline void three_reset_done(void *arg, int err)
{
	assert_int_equal(err, 0);
	++*(unsigned *)arg;
}

/* A LOGICAL UNIT RESET that begins on this worker. */
static inline void three_reset(unsigned worker)
{
	unsigned times = 0;

	assert_int_equal(dev_lu_reset_state(dev_lu_get(three.server, 0), worker,
					    three_reset_done, &times),
			 0);
	three_settle();
	assert_int_equal(times, 1);
}

static inline void all_sense_taken(void)
{
	for (unsigned who = 0; who < INITIATORS; who++)
		no_sense_left(who);
}

/* A power loss and a restart: only the saved records remain. */
static inline void three_restart(void)
{
	three_close(NULL);
	three_start();
}

/* expect_sense expects that the last task of `who` ended with CHECK
 * CONDITION. */
static inline void expect_sense(unsigned who, uint8_t key, uint16_t asc)
{
	assert_int_equal(three.i[who].task.status, SCSI_CHECK_CONDITION);
	assert_int_equal(three.i[who].sense.key, key);
	assert_int_equal(three.i[who].sense.asc, asc);
}

static inline void expect_attention(unsigned who, uint16_t asc)
{
	assert_int_equal(tur(who), SCSI_CHECK_CONDITION);
	expect_sense(who, SENSE_UNIT_ATTENTION, asc);
}

#define T(name) cmocka_unit_test_setup_teardown(name, three_open, three_close)
#define TK(name) \
 cmocka_unit_test_setup_teardown(name, three_open_keeping, three_close)

#endif
