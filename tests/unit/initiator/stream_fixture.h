/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_fixture.h: a session of the initiator over datamover/tcp, whose target
 * is the test, PDU by PDU. */
#ifndef TESTS_INITIATOR_STREAM_FIXTURE_H
#define TESTS_INITIATOR_STREAM_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/tcp/dmtcp.h"
#include "initiator/initiator.h"

#define SENT_MAX 64
#define ROOM	 65536

struct sent {
	struct iscsi_pdu pdu;
	uint8_t ahs[64];
	uint8_t data[512]; /* its first bytes */
};

static struct stream_host host;
static struct dmtcp_conn *dm;
static struct ini_session *s;
static struct sent sent[SENT_MAX];
static unsigned nsent, rearmed, events;
static uint8_t last_event;
static bool is_logged_in, is_closed;
static int login_err, close_err;
static uint32_t statsn;

/* ---- what the initiator calls ---- */

static inline void kick(struct stream_host *h)
{
	(void)h;
}

static inline void logged_in(void *arg, int err)
{
	(void)arg;
	is_logged_in = !err;
	login_err = err;
}

static inline void closed(void *arg, int err)
{
	(void)arg;
	assert_false(is_closed);
	is_closed = true;
	close_err = err;
}

static inline void async(void *arg, const struct iscsi_async *a)
{
	(void)arg;
	events++;
	last_event = a->event;
}

static inline void rearm(void *arg)
{
	(void)arg;
	rearmed++;
}

/* ---- the wire ---- */

/* The PDUs in n bytes. */
static inline void parse(const uint8_t *p, size_t n)
{
	while (n > 0) {
		struct sent *t = &sent[nsent++];
		size_t padded;

		assert_true(nsent <= SENT_MAX && n >= ISCSI_BHS_LEN);
		memset(t, 0, sizeof(*t));
		assert_int_equal(iscsi_bhs_decode(&t->pdu, p), 0);
		padded = (t->pdu.dsl + 3u) & ~3u;
		memcpy(t->ahs, p + ISCSI_BHS_LEN, t->pdu.ahs_len);
		memcpy(t->data, p + ISCSI_BHS_LEN + t->pdu.ahs_len,
		       MIN(t->pdu.dsl, (uint32_t)sizeof(t->data)));
		p += ISCSI_BHS_LEN + t->pdu.ahs_len + padded;
		n -= ISCSI_BHS_LEN + t->pdu.ahs_len + padded;
	}
}

/* take: what the initiator sent since the last time is in sent[]. */
static inline void take(void)
{
	static uint8_t bytes[ROOM];
	struct iovec iov[16];
	size_t at = 0;
	unsigned n;
	int err = 0;

	while ((n = dmtcp_stream_ops.tx_what(dm, iov, 16)) > 0) {
		struct bufv v = bufv_of(iov, n);

		assert_true(at + v.len <= sizeof(bytes));
		bufv_copy_out(&v, 0, bytes + at, v.len);
		at += v.len;
		dmtcp_stream_ops.tx_done(dm, v.len, 0);
	}
	nsent = 0;
	parse(bytes, at);
	if (!is_closed &&
	    stream_fate_of(&dmtcp_stream_ops, dm, &err) != STREAM_GO)
		dmtcp_stream_ops.closed(dm, err, 0);
}

static inline void feed(const uint8_t *p, size_t n)
{
	while (n > 0) {
		struct iovec iov[16];
		unsigned k = dmtcp_stream_ops.rx_where(dm, iov, 16);
		struct bufv v = bufv_of(iov, k);
		size_t took = bufv_copy_in(&v, 0, p, n);

		assert_true(took > 0);
		dmtcp_stream_ops.rx_done(dm, took, 0);
		p += took;
		n -= took;
	}
}

/* A PDU without data. */
static inline void feed_header(const struct iscsi_pdu *pdu)
{
	uint8_t bhs[ISCSI_BHS_LEN];

	iscsi_bhs_encode(pdu, bhs);
	feed(bhs, sizeof(bhs));
}

/* A PDU of the target; what it leads to is in sent[]. */
static inline void reply(const struct iscsi_pdu *pdu, const void *data)
{
	uint8_t bytes[ISCSI_BHS_LEN + 512] = { 0 };

	iscsi_bhs_encode(pdu, bytes);
	if (data)
		memcpy(bytes + ISCSI_BHS_LEN, data, pdu->dsl);
	feed(bytes, ISCSI_BHS_LEN + ((pdu->dsl + 3u) & ~3u));
	take();
}

/* ---- a session ---- */

static inline struct ini_config config(void)
{
	struct ini_config cfg;

	ini_config_default(&cfg);
	strcpy(cfg.login.id.initiator_name, "iqn.2026-01.x:i");
	strcpy(cfg.login.id.target_name, "iqn.2026-01.x:t");
	cfg.depth = 4;
	cfg.idle_time = XTIME_NEVER;
	cfg.query_time = XTIME_NEVER;
	cfg.logged_in = logged_in;
	cfg.closed = closed;
	cfg.async = async;
	cfg.rearm = rearm;
	return cfg;
}

static inline void start(const struct ini_config *cfg)
{
	struct dmtcp_config dc;

	rearmed = events = 0;
	is_logged_in = is_closed = false;
	login_err = close_err = 0;
	statsn = 100;
	host.kick = kick;
	dmtcp_config_default(&dc, ISCSI_INITIATOR);
	dm = dmtcp_new(&dc, &host);
	assert_non_null(dm);
	s = ini_new(cfg, dmtcp_dm(dm));
	assert_non_null(s);
	ini_start(s, 0);
	take();
}

static inline struct iscsi_pdu of_target(uint8_t op, uint32_t itt,
					 uint32_t maxcmdsn)
{
	return (struct iscsi_pdu){ .op = op,
				   .final = true,
				   .itt = itt,
				   .ttt = ISCSI_RESERVED_TAG,
				   .statsn = statsn++,
				   .expcmdsn = 1,
				   .maxcmdsn = maxcmdsn };
}

/* Each Login Request is granted, with keys for the last one. */
static inline void log_in(uint32_t maxcmdsn, const char *keys, size_t len)
{
	for (unsigned i = 0; i < 4 && !is_logged_in; i++) {
		const struct iscsi_login_fields *q = &sent[0].pdu.login;
		struct iscsi_pdu p = of_target(ISCSI_LOGIN_RESPONSE,
					       sent[0].pdu.itt, maxcmdsn);
		bool last = q->nsg == 3;

		assert_int_equal(nsent, 1);
		p.login = *q;
		p.login.vmin = 0;
		p.login.tsih = last ? 7 : 0;
		p.login.status_class = p.login.status_detail = 0;
		p.final = q->transit;
		p.dsl = last ? (uint32_t)len : 0;
		reply(&p, keys);
	}
	assert_true(is_logged_in);
}

static inline void begin(uint32_t maxcmdsn)
{
	struct ini_config cfg = config();

	start(&cfg);
	log_in(maxcmdsn, NULL, 0);
}

static inline void end(void)
{
	if (!is_closed)
		dmtcp_stream_ops.closed(dm, 0, 0);
	assert_true(is_closed);
	ini_free(s);
	dmtcp_free(dm);
}

/* ---- commands ---- */

static struct ini_task tasks[8];
static unsigned ended;

static inline void task_done(struct ini_task *t)
{
	(void)t;
	ended++;
}

static inline struct ini_task *task(unsigned i)
{
	tasks[i] = (struct ini_task){ .cdb = { 0x00, 1, 2, 3, 4, 5 },
				      .cdb_len = 6,
				      .deadline = XTIME_NEVER,
				      .done = task_done };
	return &tasks[i];
}

static inline void respond(uint32_t itt, uint32_t maxcmdsn)
{
	struct iscsi_pdu p = of_target(ISCSI_SCSI_RESPONSE, itt, maxcmdsn);

	reply(&p, NULL);
}

/* ---- requests ---- */

static struct ini_request requests[24];
static unsigned answers;
static int answer_err;
static struct iscsi_pdu answer;

static inline void request_done(struct ini_request *r, int err,
				const struct dm_control *rsp)
{
	(void)r;
	answers++;
	answer_err = err;
	assert_int_equal(rsp == NULL, err != 0);
	if (rsp)
		answer = rsp->pdu;
}

static inline struct ini_request *request(unsigned i)
{
	requests[i] = (struct ini_request){ .done = request_done };
	answers = 0;
	return &requests[i];
}

#endif
