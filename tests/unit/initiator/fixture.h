/* SPDX-License-Identifier: BSD-2-Clause */
/* fixture.h: an initiator over datamover/iser on a fake queue pair, for one
 * test file of a program. */
#ifndef UNIT_INITIATOR_FIXTURE_H
#define UNIT_INITIATOR_FIXTURE_H

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/fake_rcap.h"

static struct fake_rcap f;
static struct dmiser_conn *conn;
static struct ini_session *s;
static int logged_in_err, closed_err;
static bool is_logged_in, is_closed;
static unsigned answered;
static uint32_t statsn;
static struct trace *log_to; /* of the sessions that begin afterwards */

static void logged_in(void *arg, int err)
{
	(void)arg;
	is_logged_in = err == 0;
	logged_in_err = err;
}

static void closed(void *arg, int err)
{
	(void)arg;
	is_closed = true;
	closed_err = err;
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

/* ---- the target ---- */

static void flush(void)
{
	while (fake_rcap_complete(&f, 1))
		;
}

static void deliver(const struct iscsi_pdu *pdu, const void *data)
{
	const struct iser_header h = { .opcode = ISER_CONTROL };
	uint8_t bytes[ISER_HEADER_LEN + ISCSI_BHS_LEN + 8192];

	iser_header_encode(&h, bytes);
	iscsi_bhs_encode(pdu, bytes + ISER_HEADER_LEN);
	if (pdu->dsl)
		memcpy(bytes + ISER_HEADER_LEN + ISCSI_BHS_LEN, data, pdu->dsl);
	fake_rcap_deliver(&f, bytes, ISER_HEADER_LEN + ISCSI_BHS_LEN + pdu->dsl,
			  0);
}

/* Decodes the i-th request in the queue and copies its data. */
static struct iscsi_pdu sent(unsigned i, char *data, size_t max)
{
	static uint8_t bytes[ISER_HEADER_LEN + ISCSI_BHS_LEN + 8192];
	struct rcap_wr *wr = fake_rcap_wr(&f, i);
	struct iscsi_pdu pdu;

	assert_non_null(wr);
	memset(bytes, 0, sizeof(bytes));
	fake_rcap_bytes(wr, bytes, sizeof(bytes));
	assert_int_equal(iscsi_bhs_decode(&pdu, bytes + ISER_HEADER_LEN), 0);
	if (data)
		memcpy(data, bytes + ISER_HEADER_LEN + ISCSI_BHS_LEN,
		       MIN(max, (size_t)pdu.dsl));
	return pdu;
}

static void login_response(const char *text, size_t n)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE,
			       .final = true,
			       .dsl = (uint32_t)n,
			       .statsn = statsn++,
			       .expcmdsn = 1,
			       .maxcmdsn = 16 };
	const struct iscsi_pdu req = sent(0, NULL, 0);

	p.itt = req.itt;
	memcpy(p.login.isid, req.login.isid, 6);
	p.login.tsih = 1;
	p.login.transit = true;
	p.login.csg = req.login.csg;
	p.login.nsg = 3;
	flush();
	deliver(&p, text);
}

static void begin(void)
{
	struct dmiser_config dc;
	struct ini_config cfg;

	is_logged_in = is_closed = false;
	logged_in_err = closed_err = 0;
	answered = 0;
	statsn = 10;
	fake_rcap_init(&f, 4, 0);
	dmiser_config_default(&dc, ISCSI_INITIATOR);
	conn = dmiser_new(&dc, &f.qp);
	assert_non_null(conn);
	fake_rcap_establish(&f, NULL, 0);
	ini_config_default(&cfg);
	strcpy(cfg.login.id.initiator_name, "iqn.a:i");
	strcpy(cfg.login.id.target_name, "iqn.a:t");
	cfg.login.want.rdma_extensions = true;
	cfg.login.want.initiator_recv_dsl = 4096;
	cfg.login.want.max_recv_dsl = 8192;
	cfg.logged_in = logged_in;
	cfg.closed = closed;
	cfg.async = async;
	cfg.rearm = rearm;
	cfg.trace = log_to;
	s = ini_new(&cfg, dmiser_dm(conn));
	assert_non_null(s);
	ini_start(s, 0);
}

static void end(void)
{
	fake_rcap_close(&f, 0, "the test is over");
	assert_true(is_closed);
	ini_free(s);
	dmiser_free(conn);
}

#define ANSWER(text) login_response(text, sizeof(text))
#define USUAL                                                   \
 "TargetPortalGroupTag=1\0RDMAExtensions=Yes\0InitialR2T=Yes\0" \
 "InitiatorRecvDataSegmentLength=4096\0TargetRecvDataSegmentLength=8192\0"

#endif
