/* SPDX-License-Identifier: BSD-2-Clause */
/* initiator_fixture.h: an initiator role on a connection of the fuzzer: after the login the
 * role reads, writes and pings, and counts the ends. */
#ifndef TESTS_FUZZ_INITIATOR_FIXTURE_H
#define TESTS_FUZZ_INITIATOR_FIXTURE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"

#define TASKS 4
#define LEN   3000

struct initiator_fixture {
	struct ini_session *s;
	struct ini_task task[TASKS];
	struct iovec iov[TASKS];
	uint8_t *buf[TASKS];
	struct ini_request ping;
	unsigned submitted, ended;
	bool pinged, ponged, closed;
};

static struct initiator_fixture fixture;

static inline void task_done(struct ini_task *t)
{
	if (t->bidi.arrived > LEN)
		abort();
	fixture.ended++;
}

static inline void pong(struct ini_request *r, int err,
			const struct dm_control *rsp)
{
	(void)r;
	(void)err;
	(void)rsp;
	fixture.ponged = true;
}

static inline void logged_in(void *arg, int err)
{
	(void)arg;
	for (unsigned i = 0; !err && i < TASKS; i++) {
		struct ini_task *t = &fixture.task[i];

		fixture.iov[i] = (struct iovec){ fixture.buf[i], LEN };
		t->cdb_len = (uint8_t)scsi_cdb_rw(t->cdb, i & 1, 0, 6, 0);
		t->write = i & 1;
		t->read = !t->write;
		t->in = t->out = bufv_of(&fixture.iov[i], 1);
		if (t->write)
			t->in = (struct bufv){ 0 };
		else
			t->out = (struct bufv){ 0 };
		t->deadline = XTIME_NEVER;
		t->done = task_done;
		fixture.submitted++;
		ini_submit(fixture.s, t, 0);
	}
	fixture.ping.done = pong;
	fixture.pinged = !err && !ini_ping(fixture.s, &fixture.ping, "x", 1,
					   XTIME_NEVER);
}

static inline void closed(void *arg, int err)
{
	(void)arg;
	(void)err;
	fixture.closed = true;
}

static inline void async(void *arg, const struct iscsi_async *a)
{
	(void)arg;
	(void)a;
}

static inline void rearm(void *arg)
{
	(void)arg;
}

static inline void fixture_open(struct dm_conn *dm, bool rdma)
{
	struct ini_config cfg;

	memset(&fixture, 0, sizeof(fixture));
	for (unsigned i = 0; i < TASKS; i++)
		fixture.buf[i] =
			malloc(LEN); /* the exact size, for the sanitizer */
	ini_config_default(&cfg);
	strcpy(cfg.login.id.initiator_name, "iqn.a:i");
	strcpy(cfg.login.id.target_name, "iqn.a:t");
	cfg.login.want.rdma_extensions = rdma;
	cfg.logged_in = logged_in;
	cfg.closed = closed;
	cfg.async = async;
	cfg.rearm = rearm;
	fixture.s = ini_new(&cfg, dm);
	if (!fixture.s)
		abort();
	ini_start(fixture.s, 0);
}

/* Closes the connection and checks that each command ended exactly once. */
static inline void fixture_close(void)
{
	if (!fixture.closed || fixture.ended != fixture.submitted ||
	    fixture.pinged != fixture.ponged)
		abort();
	ini_free(fixture.s);
	for (unsigned i = 0; i < TASKS; i++)
		free(fixture.buf[i]);
}

#endif
