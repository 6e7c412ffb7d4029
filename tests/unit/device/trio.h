/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trio.h: three initiators at one unit, each on a worker of its own, whose
 * mail is carried when the test says so.
 */
#ifndef TESTS_DEVICE_TRIO_H
#define TESTS_DEVICE_TRIO_H

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
#include "unit/device/task_sanity.h"

#define TRIO_N	 3
#define TRIO_MAX 65536u
#define A	 0
#define B	 1
#define C	 2

struct trio_ini {
	struct dev_nexus *nexus;
	struct dev_task task;
	bool done, released;
	uint8_t in[TRIO_MAX];
	size_t in_len;
	struct scsi_sense sense;
	/* PREEMPT AND ABORT reached it */
	unsigned aborts;
	const struct dev_task *spared;
	bool abort_later;
	char name[SCSI_PORT_NAME_MAX + 1];
	uint8_t attr; /* of its commands */
};

static struct trio {
	struct dev_env env;
	struct dev_server *server;
	struct dev_msg *mail[TRIO_N], **end[TRIO_N];
	struct trio_ini i[TRIO_N];
	struct bs *store; /* other than null */
	struct bs *hold;  /* what waits there; trio_on_hold */
	void (*set_up)(struct dev_server *s);
	uint16_t port[TRIO_N]; /* relative target port, other than 1 */
	int out;	       /* buffers */
	/* what was asked to be kept */
	struct dev_save *saving;
	bool save_later;
	int save_result;
	unsigned saves;
	uint8_t saved[TRIO_MAX]; /* reservations */
	size_t saved_len;
	uint8_t unit[TRIO_MAX]; /* the rest */
	size_t unit_len;
} trio;

static inline void trio_post(void *arg, unsigned worker, struct dev_msg *m)
{
	(void)arg;
	m->next = NULL;
	*trio.end[worker] = m;
	trio.end[worker] = &m->next;
}

static inline bool trio_one(unsigned worker)
{
	struct dev_msg *m = trio.mail[worker];

	if (!m)
		return false;
	trio.mail[worker] = m->next;
	if (!m->next)
		trio.end[worker] = &trio.mail[worker];
	m->run(m);
	check_tasks(trio.server, worker);
	return true;
}

/* What never leaves a single turn is ended by SIGVTALRM, however busy the
 * machine is. */
#define CPU_SECONDS 20

static inline void cpu_limit(unsigned seconds)
{
	const struct itimerval limit = { .it_value.tv_sec = (time_t)seconds };

	assert_int_equal(setitimer(ITIMER_VIRTUAL, &limit, NULL), 0);
}

#define TRIO_TURNS 100000u /* far more than any command takes */

static inline void trio_settle(void)
{
	unsigned turns = 0;
	bool again;

	cpu_limit(CPU_SECONDS);
	do {
		assert_true(turns++ <
			    TRIO_TURNS); /* else it goes on for ever */
		again = false;
		for (unsigned w = 0; w < TRIO_N; w++)
			again |= trio_one(w);
	} while (again);
}

static inline void *trio_get(void *arg, unsigned worker, size_t len)
{
	void *buf = malloc(len);

	(void)arg;
	(void)worker;
	trio.out += buf != NULL;
	return buf;
}

static inline void trio_put(void *arg, unsigned worker, void *buf, size_t len)
{
	(void)arg;
	(void)worker;
	(void)len;
	trio.out--;
	free(buf);
}

static inline void trio_saved(void)
{
	struct dev_save *s = trio.saving;

	trio.saving = NULL;
	s->result = trio.save_result;
	if (!s->result && s->kind == DEV_KEPT_UNIT) {
		trio.unit_len = s->len;
		if (s->len)
			memcpy(trio.unit, s->data, s->len);
	} else if (!s->result) {
		trio.saved_len = s->len;
		if (s->len)
			memcpy(trio.saved, s->data, s->len);
	}
	s->done(s);
}

static inline void trio_save(void *arg, struct dev_save *s)
{
	(void)arg;
	assert_null(trio.saving);
	assert_true(s->len <= sizeof(trio.saved));
	trio.saves++;
	trio.saving = s;
	if (!trio.save_later)
		trio_saved();
}

static inline void trio_abort(void *arg, uint64_t lun,
			      const struct dev_task *except)
{
	struct trio_ini *i = arg;

	assert_int_equal(lun, 0);
	i->aborts++;
	i->spared = except;
	if (!i->abort_later)
		dev_nexus_tasks_gone(i->nexus);
}

static inline void trio_login(unsigned who)
{
	struct trio_ini *i = &trio.i[who];
	uint16_t port = trio.port[who] ? trio.port[who] : 1;
	struct dev_nexus_config cfg = { .worker = who,
					.target_port = "iqn.t,t,0x0001",
					.target_name = "iqn.t",
					.relative_target_port = port,
					.abort_tasks = trio_abort,
					.arg = i };

	snprintf(i->name, sizeof(i->name), "iqn.i%u,i,0x80000000000%u", who,
		 who);
	strcpy(cfg.initiator_port, i->name);
	i->nexus = dev_nexus_open(trio.server, &cfg);
	assert_non_null(i->nexus);
}

static inline void trio_logout(unsigned who)
{
	dev_nexus_close(trio.i[who].nexus);
	trio.i[who].nexus = NULL;
	trio_settle();
}

static inline void trio_done(struct dev_task *t)
{
	container_of(t, struct trio_ini, task)->done = true;
}

static inline void trio_released(struct dev_task *t)
{
	container_of(t, struct trio_ini, task)->released = true;
}

/* A command whose data are still to come. */
static inline struct dev_task *trio_announce(unsigned who, const uint8_t *cdb,
					     uint32_t out, uint32_t in)
{
	struct trio_ini *i = &trio.i[who];
	struct dev_task *t = &i->task;

	memset(t, 0, sizeof(*t));
	i->done = i->released = false;
	t->nexus = i->nexus;
	t->attr = i->attr;
	memcpy(t->cdb, cdb, 16);
	t->cdb_len = 16;
	t->edtl_out = out;
	t->edtl_in = in;
	t->done = trio_done;
	assert_int_equal(dev_task_begin(t), 0);
	return t;
}

/* A command up to the point where it waits for others. */
static inline void trio_send(unsigned who, const uint8_t *cdb, const void *data,
			     uint32_t out, uint32_t in)
{
	struct dev_task *t = trio_announce(who, cdb, out, in);

	if (t->out_len)
		bufv_copy_in(&t->out, 0, data, t->out_len);
	dev_task_execute(t);
}

static inline int trio_finish(unsigned who)
{
	struct trio_ini *i = &trio.i[who];
	struct dev_task *t = &i->task;

	assert_true(i->done);
	memset(&i->sense, 0, sizeof(i->sense));
	if (t->sense_len)
		scsi_sense_parse(&i->sense, t->sense, t->sense_len);
	i->in_len =
		bufv_copy_out(&t->in, 0, i->in, MIN(t->in.len, sizeof(i->in)));
	dev_task_end(t);
	return t->status;
}

static inline int trio_run(unsigned who, const uint8_t *cdb, const void *data,
			   uint32_t out, uint32_t in)
{
	trio_send(who, cdb, data, out, in);
	trio_settle();
	return trio_finish(who);
}

#define RUN(who, in, ...) \
 trio_run(who, (const uint8_t[16]){ __VA_ARGS__ }, NULL, 0, in)

static inline int tur(unsigned who)
{
	return RUN(who, 0, 0);
}

static inline void no_sense_left(unsigned who)
{
	while (tur(who) == SCSI_CHECK_CONDITION)
		;
}

/* The unit may refuse what it is asked. */
static inline void trio_begin(bool ready)
{
	const struct dev_lu_config lu = { .keeps = trio.env.save != NULL };

	for (unsigned w = 0; w < TRIO_N; w++)
		trio.end[w] = &trio.mail[w];
	trio.env.nworkers = TRIO_N;
	trio.env.post = trio_post;
	trio.env.buf_get = trio_get;
	trio.env.buf_put = trio_put;
	trio.server = dev_server_new(&trio.env, 1u << 20);
	assert_non_null(trio.server);
	if (!trio.store)
		trio.store = bs_null_new("null:1M", 1u << 20, 512);
	assert_int_equal(dev_lu_add(trio.server, &lu, trio.store), 0);
	trio.store = NULL; /* the unit's now */
	if (trio.saved_len)
		assert_int_equal(dev_lu_restore(dev_lu_get(trio.server, 0),
						DEV_KEPT_RESERVATIONS,
						trio.saved, trio.saved_len),
				 0);
	if (trio.unit_len)
		assert_int_equal(dev_lu_restore(dev_lu_get(trio.server, 0),
						DEV_KEPT_UNIT, trio.unit,
						trio.unit_len),
				 0);
	if (trio.set_up)
		trio.set_up(trio.server);
	for (unsigned i = 0; i < TRIO_N; i++) {
		trio_login(i);
		if (ready)
			no_sense_left(i);
		else
			tur(i); /* POWER ON */
	}
}

static inline void trio_start(void)
{
	trio_begin(true);
}

static inline int trio_open(void **state)
{
	(void)state;
	memset(&trio, 0, sizeof(trio));
	trio_start();
	return 0;
}

/* For a store that answers when the test says so: before trio_start. */
static inline void trio_on_hold(void)
{
	memset(&trio, 0, sizeof(trio));
	trio.hold = bs_hold_new(bs_null_new("null:1M", 1u << 20, 512));
	trio.store = trio.hold;
}

static inline int trio_open_on_hold(void **state)
{
	(void)state;
	trio_on_hold();
	trio_start();
	return 0;
}

/* n requests are with the store. */
static inline void expect_held(unsigned n)
{
	trio_settle();
	assert_int_equal(bs_hold_waiting(trio.hold), n);
}

static inline void let_go(unsigned n)
{
	bs_hold_release(trio.hold, n);
	trio_settle();
}

static inline int trio_open_keeping(void **state)
{
	(void)state;
	memset(&trio, 0, sizeof(trio));
	trio.env.save = trio_save;
	trio_start();
	return 0;
}

static inline int trio_close(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TRIO_N; i++)
		if (trio.i[i].nexus)
			trio_logout(i);
	dev_server_free(trio.server);
	assert_int_equal(trio.out, 0);
	return 0;
}

static inline void trio_reset_done(void *arg, int err)
{
	assert_int_equal(err, 0);
	++*(unsigned *)arg;
}

/* A LOGICAL UNIT RESET, by way of this worker. */
static inline void trio_reset(unsigned worker)
{
	unsigned times = 0;

	assert_int_equal(dev_lu_reset_state(dev_lu_get(trio.server, 0), worker,
					    trio_reset_done, &times),
			 0);
	trio_settle();
	assert_int_equal(times, 1);
}

static inline void all_sense_taken(void)
{
	for (unsigned who = 0; who < TRIO_N; who++)
		no_sense_left(who);
}

/* The power fails and comes back. */
static inline void trio_restart(void)
{
	trio_close(NULL);
	trio_start();
}

/* A check condition; *who's* task has ended. */
static inline void expect_sense(unsigned who, uint8_t key, uint16_t asc)
{
	assert_int_equal(trio.i[who].task.status, SCSI_CHECK_CONDITION);
	assert_int_equal(trio.i[who].sense.key, key);
	assert_int_equal(trio.i[who].sense.asc, asc);
}

static inline void expect_attention(unsigned who, uint16_t asc)
{
	assert_int_equal(tur(who), SCSI_CHECK_CONDITION);
	expect_sense(who, SENSE_UNIT_ATTENTION, asc);
}

#define T(name) cmocka_unit_test_setup_teardown(name, trio_open, trio_close)
#define TK(name) \
 cmocka_unit_test_setup_teardown(name, trio_open_keeping, trio_close)

#endif
