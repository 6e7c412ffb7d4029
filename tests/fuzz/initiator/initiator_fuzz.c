/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator_fuzz.c: the whole initiator (datamover/tcp and role) against any
 * bytes of a target: login and what follows. The first byte says in which
 * pieces they arrive. With a plain login in front, commands are under way.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "datamover/tcp/dmtcp.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TASKS 4
#define LEN   3000

struct bench {
	struct stream_host host;
	struct dmtcp_conn *dm;
	struct ini_session *s;
	struct ini_task task[TASKS];
	struct iovec iov[TASKS];
	uint8_t *buf[TASKS];
	struct ini_request ping;
	unsigned submitted, ended;
	bool pinged, ponged, closed;
};

static struct bench b;

static void kick(struct stream_host *host)
{
	(void)host;
}

static void task_done(struct ini_task *t)
{
	if (t->in_done > LEN)
		abort();
	b.ended++;
}

static void pong(struct ini_request *r, int err, const struct dm_control *rsp)
{
	(void)r;
	(void)err;
	(void)rsp;
	b.ponged = true;
}

static void logged_in(void *arg, int err)
{
	(void)arg;
	for (unsigned i = 0; !err && i < TASKS; i++) {
		struct ini_task *t = &b.task[i];

		b.iov[i] = (struct iovec){ b.buf[i], LEN };
		t->cdb_len = (uint8_t)scsi_cdb_rw(t->cdb, i & 1, 0, 6, 0);
		t->write = i & 1;
		t->read = !t->write;
		t->in = t->out = bufv_of(&b.iov[i], 1);
		if (t->write)
			t->in = (struct bufv){ 0 };
		else
			t->out = (struct bufv){ 0 };
		t->deadline = XTIME_NEVER;
		t->done = task_done;
		b.submitted++;
		ini_submit(b.s, t, 0);
	}
	b.ping.done = pong;
	b.pinged = !err && !ini_ping(b.s, &b.ping, "x", 1, XTIME_NEVER);
}

static void closed(void *arg, int err)
{
	(void)arg;
	(void)err;
	b.closed = true;
}

static void async(void *arg, const struct iscsi_async *a)
{
	(void)arg;
	(void)a;
}

static void rearm(void *arg)
{
	(void)arg;
}

static void send_all(void)
{
	struct iovec iov[64];
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(b.dm, iov, 64))) {
		size_t len = 0;

		for (unsigned i = 0; i < n; i++)
			len += iov[i].iov_len;
		dmtcp_stream_ops.tx_done(b.dm, len, 0);
	}
}

static bool feed(const uint8_t *p, size_t n)
{
	int err;

	while (n > 0 && dmtcp_stream_ops.fate(b.dm, &err) == STREAM_GO) {
		struct iovec iov[16];
		unsigned k = dmtcp_stream_ops.rx_where(b.dm, iov, 16);
		struct bufv v = bufv_of(iov, k);
		size_t took = bufv_copy_in(&v, 0, p, n);

		if (took == 0)
			return false;
		dmtcp_stream_ops.rx_done(b.dm, took, 0);
		send_all();
		p += took;
		n -= took;
	}
	return n == 0;
}

static void open_all(void)
{
	struct dmtcp_config dc;
	struct ini_config cfg;

	memset(&b, 0, sizeof(b));
	b.host.kick = kick;
	for (unsigned i = 0; i < TASKS; i++)
		b.buf[i] = malloc(LEN); /* exact, for the sanitizer */
	dmtcp_config_default(&dc, ISCSI_INITIATOR);
	dc.lookahead = 16384;
	b.dm = dmtcp_new(&dc, &b.host);
	ini_config_default(&cfg);
	strcpy(cfg.login.id.initiator_name, "iqn.a:i");
	strcpy(cfg.login.id.target_name, "iqn.a:t");
	cfg.logged_in = logged_in;
	cfg.closed = closed;
	cfg.async = async;
	cfg.rearm = rearm;
	b.s = ini_new(&cfg, dmtcp_dm(b.dm));
	ini_start(b.s, 0);
	send_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece;

	if (size < 1)
		return 0;
	piece = data[0] ? data[0] : size;
	data++;
	size--;
	open_all();
	while (size > 0) {
		size_t n = MIN(piece, size);

		if (!feed(data, n))
			break;
		data += n;
		size -= n;
	}
	dmtcp_stream_ops.closed(b.dm, 0, 0);
	/* each ended exactly once */
	if (!b.closed || b.ended != b.submitted || b.pinged != b.ponged)
		abort();
	ini_free(b.s);
	dmtcp_free(b.dm);
	for (unsigned i = 0; i < TASKS; i++)
		free(b.buf[i]);
	return 0;
}
