/* SPDX-License-Identifier: BSD-2-Clause */
/* mcs_fixture.h: a session of several connections over datamover/tcp, whose target is
 * the test, PDU by PDU and connection by connection. */
#ifndef TESTS_INITIATOR_MCS_FIXTURE_H
#define TESTS_INITIATOR_MCS_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/tcp/dmtcp.h"
#include "initiator/initiator.h"

#define WIRES	 3
#define SENT_MAX 16
#define TSIH	 7

struct wire {
	struct stream_host host;
	struct dmtcp_conn *dm; /* NULL: no connection */
	struct iscsi_pdu sent[SENT_MAX];
	char text[2048]; /* data of the last PDU that was sent */
	unsigned nsent;
	uint32_t statsn;
	bool is_over;
};

static struct wire wires[WIRES];
static struct ini_session *s;
static bool is_logged_in, is_closed;
static int joined_err, close_err;
static unsigned joined;
static uint32_t expcmdsn; /* of the target */
static uint32_t window;	  /* of the target, in commands */
static xtime now;

static inline void kick(struct stream_host *h)
{
	(void)h;
}

static inline void on_logged_in(void *arg, int err)
{
	(void)arg;
	is_logged_in = !err;
}

static inline void on_joined(void *arg, struct ini_conn *c, int err)
{
	(void)arg;
	assert_non_null(c);
	joined++;
	joined_err = err;
}

static inline void on_closed(void *arg, int err)
{
	(void)arg;
	assert_false(is_closed);
	is_closed = true;
	close_err = err;
}

static inline void on_async(void *arg, const struct iscsi_async *a)
{
	(void)arg;
	(void)a;
}

static inline void on_rearm(void *arg)
{
	(void)arg;
}

/* ---- the wires ---- */

static inline void parse(struct wire *w, const uint8_t *p, size_t n)
{
	while (n > 0) {
		struct iscsi_pdu *pdu = &w->sent[w->nsent++];
		size_t len;

		assert_true(w->nsent <= SENT_MAX && n >= ISCSI_BHS_LEN);
		assert_int_equal(iscsi_bhs_decode(pdu, p), 0);
		len = ISCSI_BHS_LEN + pdu->ahs_len + ((pdu->dsl + 3u) & ~3u);
		memset(w->text, 0, sizeof(w->text));
		memcpy(w->text, p + ISCSI_BHS_LEN + pdu->ahs_len,
		       MIN((size_t)pdu->dsl, sizeof(w->text) - 1));
		p += len;
		n -= len;
	}
}

/* What the initiator sent on w since the last time is in w->sent. */
static inline void take(struct wire *w)
{
	static uint8_t bytes[65536];
	struct iovec iov[16];
	size_t at = 0;
	unsigned n;
	int err = 0;

	w->nsent = 0;
	if (!w->dm || w->is_over)
		return;
	while ((n = dmtcp_stream_ops.tx_what(w->dm, iov, 16)) > 0) {
		struct bufv v = bufv_of(iov, n);

		assert_true(at + v.len <= sizeof(bytes));
		bufv_copy_out(&v, 0, bytes + at, v.len);
		at += v.len;
		dmtcp_stream_ops.tx_done(w->dm, v.len, now);
	}
	parse(w, bytes, at);
	if (stream_fate_of(&dmtcp_stream_ops, w->dm, &err) == STREAM_GO)
		return;
	w->is_over = true;
	dmtcp_stream_ops.closed(w->dm, err, now);
}

static inline void take_all(void)
{
	for (unsigned i = 0; i < WIRES; i++)
		take(&wires[i]);
}

/* A PDU of the target on w; what it leads to is in the wires' sent. */
static inline void reply(struct wire *w, struct iscsi_pdu *pdu,
			 const void *data)
{
	uint8_t bytes[ISCSI_BHS_LEN + 1024] = { 0 };
	size_t n = ISCSI_BHS_LEN + ((pdu->dsl + 3u) & ~3u), at = 0;

	pdu->final = pdu->final || pdu->op != ISCSI_DATA_IN;
	if (pdu->op != ISCSI_DATA_IN && pdu->op != ISCSI_R2T)
		pdu->statsn = w->statsn++;
	pdu->expcmdsn = expcmdsn;
	pdu->maxcmdsn = expcmdsn + window - 1;
	iscsi_bhs_encode(pdu, bytes);
	if (data)
		memcpy(bytes + ISCSI_BHS_LEN, data, pdu->dsl);
	while (at < n) {
		struct iovec iov[16];
		unsigned k = dmtcp_stream_ops.rx_where(w->dm, iov, 16);
		struct bufv v = bufv_of(iov, k);
		size_t took = bufv_copy_in(&v, 0, bytes + at, n - at);

		assert_true(took > 0);
		dmtcp_stream_ops.rx_done(w->dm, took, now);
		at += took;
	}
	take_all();
}

/* The connection breaks. */
static inline void cut(struct wire *w)
{
	w->is_over = true;
	dmtcp_stream_ops.closed(w->dm, ERR_RESET, now);
	take_all();
}

/* ---- logins ---- */

static inline struct dm_conn *wire_dm(struct wire *w)
{
	struct dmtcp_config dc;

	memset(w, 0, sizeof(*w));
	w->host.kick = kick;
	w->statsn = 100u * (unsigned)(w - wires + 1);
	dmtcp_config_default(&dc, ISCSI_INITIATOR);
	w->dm = dmtcp_new(&dc, &w->host);
	assert_non_null(w->dm);
	return dmtcp_dm(w->dm);
}

/* Grants the Login Request that w sent last. */
static inline void grant(struct wire *w, uint16_t tsih, const char *keys,
			 size_t len)
{
	const struct iscsi_pdu q = w->sent[0];
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE,
			       .itt = q.itt,
			       .dsl = (uint32_t)len };

	assert_int_equal(w->nsent, 1);
	p.login = q.login;
	p.login.vmin = 0;
	p.login.tsih = tsih;
	p.login.status_class = p.login.status_detail = 0;
	reply(w, &p, keys);
}

#define GRANT(w, tsih, text) grant(w, tsih, text, sizeof(text))

/* Set by a test before begin: changes the configuration; NULL: it stays. */
static void (*change_config)(struct ini_config *cfg);

static inline void start_leading(uint8_t level)
{
	struct ini_config cfg;

	memset(wires, 0, sizeof(wires));
	is_logged_in = is_closed = false;
	joined = 0;
	joined_err = close_err = 0;
	expcmdsn = 1;
	window = 32;
	now = 0;
	ini_config_default(&cfg);
	strcpy(cfg.login.id.initiator_name, "iqn.2026-01.x:i");
	strcpy(cfg.login.id.target_name, "iqn.2026-01.x:t");
	cfg.login.id.isid[0] = 0x80;
	cfg.login.want.max_connections = WIRES;
	cfg.login.want.error_recovery_level = level;
	cfg.depth = 16;
	cfg.idle_time = cfg.query_time = XTIME_NEVER;
	cfg.logged_in = on_logged_in;
	cfg.joined = on_joined;
	cfg.closed = on_closed;
	cfg.async = on_async;
	cfg.rearm = on_rearm;
	if (change_config)
		change_config(&cfg);
	s = ini_new(&cfg, wire_dm(&wires[0]));
	assert_non_null(s);
	ini_start(s, now);
	take(&wires[0]);
	if (level == 1)
		GRANT(&wires[0], TSIH,
		      "MaxConnections=3\0ErrorRecoveryLevel=1\0"
		      "InitialR2T=No\0ImmediateData=No");
	else if (level == 2)
		GRANT(&wires[0], TSIH,
		      "MaxConnections=3\0ErrorRecoveryLevel=2\0"
		      "DefaultTime2Wait=2\0ImmediateData=No");
	else
		GRANT(&wires[0], TSIH, "MaxConnections=3\0ImmediateData=No");
	assert_true(is_logged_in);
}

/* Sends the Login Request of another connection. */
static inline void start_joining(unsigned i)
{
	struct ini_conn *c = ini_conn_new(s, wire_dm(&wires[i]), (uint16_t)i);

	assert_non_null(c);
	ini_conn_start(c, now);
	take(&wires[i]);
}

static inline void begin(unsigned connections, uint8_t level)
{
	start_leading(level);
	for (unsigned i = 1; i < connections; i++) {
		start_joining(i);
		GRANT(&wires[i], TSIH, "MaxRecvDataSegmentLength=8192");
		assert_int_equal(joined, i);
		assert_int_equal(joined_err, 0);
	}
}

static inline void end(void)
{
	for (unsigned i = 0; i < WIRES; i++)
		if (wires[i].dm && !wires[i].is_over)
			dmtcp_stream_ops.closed(wires[i].dm, 0, now);
	if (ini_is_waiting(s))
		ini_kill(s, 0);
	assert_true(is_closed);
	ini_free(s);
	for (unsigned i = 0; i < WIRES; i++)
		dmtcp_free(wires[i].dm);
}

/* ---- commands ---- */

#define TASKS 6
#define LEN   512

static struct ini_task tasks[TASKS];
static uint8_t bytes_of[TASKS][LEN];
static struct iovec iov_of[TASKS];
static unsigned ended;

static inline void task_done(struct ini_task *t)
{
	(void)t;
	ended++;
}

/* Submits a READ or a WRITE of LEN bytes. */
static inline struct ini_task *submit(unsigned i, bool is_write)
{
	struct ini_task *t = &tasks[i];

	*t = (struct ini_task){ .cdb = { is_write ? 0x2a : 0x28 },
				.cdb_len = 10,
				.read = !is_write,
				.write = is_write,
				.deadline = XTIME_NEVER,
				.done = task_done,
				.err = 1 };
	memset(bytes_of[i], is_write ? 0x50 + (int)i : 0, LEN);
	iov_of[i] = (struct iovec){ bytes_of[i], LEN };
	if (is_write)
		t->out = bufv_of(&iov_of[i], 1);
	else
		t->in = bufv_of(&iov_of[i], 1);
	ini_submit(s, t, now);
	take_all();
	return t;
}

static inline void data_in(struct wire *w, uint32_t itt, uint32_t datasn,
			   uint32_t offset, uint32_t len, uint8_t fill)
{
	uint8_t data[LEN];
	struct iscsi_pdu p = { .op = ISCSI_DATA_IN,
			       .final = true,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .dsl = len };

	memset(data, fill, sizeof(data));
	p.data.datasn = datasn;
	p.data.offset = offset;
	reply(w, &p, data);
}

static inline void status(struct wire *w, uint32_t itt)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE, .itt = itt };

	reply(w, &p, NULL);
}

static inline void logout_response(struct wire *w, uint32_t itt,
				   uint8_t response, uint16_t time2wait)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGOUT_RESPONSE, .itt = itt };

	p.logout.response = response;
	p.logout.time2wait = time2wait;
	reply(w, &p, NULL);
}

static inline void tmf_response(struct wire *w, uint32_t itt, uint8_t response)
{
	struct iscsi_pdu p = { .op = ISCSI_TMF_RESPONSE, .itt = itt };

	p.tmf_response = response;
	reply(w, &p, NULL);
}

#endif
