/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_test.c: the initiator over datamover/iser on a fake queue pair: what RFC
 * 7145 asks of the iSCSI layer. */
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

static void done(struct ini_request *r, int err, const struct dm_control *rsp)
{
	(void)r;
	(void)rsp;
	answered += err == 0;
}

/* ---- the peer ---- */

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

/* The i-th request that is out, decoded; its data. */
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
	cfg.logged_in = logged_in;
	cfg.closed = closed;
	cfg.async = async;
	cfg.rearm = rearm;
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

static bool says(const char *text, size_t n, const char *pair)
{
	for (size_t at = 0; at < n; at += strlen(text + at) + 1)
		if (strcmp(text + at, pair) == 0)
			return true;
	return false;
}

/* Offered at once, in the first Login Request; no digest, no marker, no
 * MaxRecvDataSegmentLength with it. */
/* [RFC 7145: 3.3 #1, 5.1 #6, 6.3 #3] */
static void test_first_request_offers_rdma_extensions_rfc7145_6_3(void **state)
{
	static char text[8192];
	struct iscsi_pdu p;

	(void)state;
	begin();
	p = sent(0, text, sizeof(text));
	assert_int_equal(p.op, ISCSI_LOGIN_REQUEST);
	assert_true(says(text, p.dsl, "RDMAExtensions=Yes"));
	assert_true(says(text, p.dsl, "InitiatorRecvDataSegmentLength=4096"));
	assert_true(says(text, p.dsl, "TargetRecvDataSegmentLength=8192"));
	for (size_t at = 0; at < p.dsl; at += strlen(text + at) + 1) {
		assert_null(strstr(text + at, "Digest"));
		assert_null(strstr(text + at, "Marker"));
		assert_int_not_equal(strncmp(text + at, "MaxRecvData", 11), 0);
	}
	end();
}

/* The limits are those of the two new keys. */
/* [RFC 7145: 5.1.1 #4] */
static void test_params_of_the_session_rfc7145_6_2(void **state)
{
	const struct iscsi_params *p;

	(void)state;
	begin();
	ANSWER(USUAL "MaxRecvDataSegmentLength=65536\0");
	assert_true(is_logged_in);
	p = ini_params(s);
	assert_true(p->rdma_extensions);
	assert_false(p->header_digest || p->data_digest);
	assert_int_equal(p->max_recv_dsl, 4096);
	assert_int_equal(p->max_send_dsl, 8192); /* not 65536: §6.2 */
	end();
}

/* The answer has to fit, too. */
/* [RFC 7145: 6.2 #4] */
static void test_ping_no_longer_than_its_answer_rfc7145_6_2(void **state)
{
	static uint8_t data[8192];
	struct ini_request r = { .done = done };

	(void)state;
	begin();
	ANSWER(USUAL);
	assert_true(is_logged_in);
	assert_int_equal(ini_ping(s, &r, data, 4097, XTIME_NEVER),
			 ERR_TOO_LONG);
	assert_int_equal(ini_ping(s, &r, data, 4096, XTIME_NEVER), 0);
	end();
}

/* Where the target takes no more immediate requests they wait for their
 * turn like others. */
/* [RFC 7145: 8.1.1.3 #3] */
static void test_requests_in_turn_rfc7145_8_1_1_3(void **state)
{
	struct ini_request r[4] = { { .done = done },
				    { .done = done },
				    { .done = done },
				    { .done = done } };
	struct iscsi_pdu in = { .op = ISCSI_NOP_IN,
				.final = true,
				.ttt = ISCSI_RESERVED_TAG,
				.expcmdsn = 2,
				.maxcmdsn = 16 };

	(void)state;
	begin();
	ANSWER(USUAL "MaxOutstandingUnexpectedPDUs=2\0");
	assert_true(is_logged_in);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ini_ping(s, &r[i], NULL, 0, XTIME_NEVER), 0);
	assert_true(sent(0, NULL, 0).immediate);
	assert_true(sent(1, NULL, 0).immediate);
	assert_false(sent(2, NULL, 0).immediate);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sent(i, NULL, 0).cmdsn, 1);
	/* it was taken: the immediate ones are retired, CmdSN went on */
	in.itt = sent(2, NULL, 0).itt;
	in.statsn = statsn++;
	flush();
	deliver(&in, NULL);
	assert_int_equal(answered, 1);
	assert_int_equal(ini_ping(s, &r[3], NULL, 0, XTIME_NEVER), 0);
	assert_true(sent(0, NULL, 0).immediate);
	assert_int_equal(sent(0, NULL, 0).cmdsn, 2);
	end();
}

/* A logout goes out, too, and a closed window lets nothing by. */
static void test_logout_in_turn(void **state)
{
	struct ini_request r[3] = { { .done = done },
				    { .done = done },
				    { .done = done } };

	(void)state;
	begin();
	ANSWER(USUAL "MaxOutstandingUnexpectedPDUs=2\0");
	ini_ping(s, &r[0], NULL, 0, XTIME_NEVER);
	ini_ping(s, &r[1], NULL, 0, XTIME_NEVER);
	ini_logout(s, 0);
	assert_int_equal(sent(2, NULL, 0).op, ISCSI_LOGOUT_REQUEST);
	assert_false(sent(2, NULL, 0).immediate);
	end();
}

/* The target refuses the login. */
/* [RFC 7145: 10.1.4.6 #1-2 #5-6] */
static void test_login_refused_rfc7145_10_1_4_6(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_RESPONSE, .statsn = 10 };

	(void)state;
	begin();
	p.itt = sent(0, NULL, 0).itt;
	p.login.status_class = 3;
	p.login.status_detail = 2;
	flush();
	deliver(&p, NULL);
	assert_false(is_logged_in);
	assert_int_equal(logged_in_err, ERR_LOGIN);
	assert_true(f.terminated || f.disconnected);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_first_request_offers_rdma_extensions_rfc7145_6_3),
		cmocka_unit_test(test_params_of_the_session_rfc7145_6_2),
		cmocka_unit_test(
			test_ping_no_longer_than_its_answer_rfc7145_6_2),
		cmocka_unit_test(test_requests_in_turn_rfc7145_8_1_1_3),
		cmocka_unit_test(test_logout_in_turn),
		cmocka_unit_test(test_login_refused_rfc7145_10_1_4_6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
