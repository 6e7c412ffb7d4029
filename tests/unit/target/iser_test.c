/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_test.c: the whole target over datamover/iser on a fake queue pair:
 * requirements of RFC 7145 on the iSCSI layer of a target. */
#include <string.h>

#include "cmocka_all.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"
#include "fuzz/target/target_fixture.h"
#include "sim/fake_rcap.h"

#define HEADERS (ISER_HEADER_LEN + ISCSI_BHS_LEN)
#define NAMES                                \
 "InitiatorName=iqn.2026-01.org.example:i\0" \
 "TargetName=iqn.2026-01.org.example:disk\0"
#define RDMA                                              \
 "RDMAExtensions=Yes\0TargetRecvDataSegmentLength=8192\0" \
 "InitiatorRecvDataSegmentLength=262144\0"

static struct target_fixture fixture;
static struct fake_rcap f;
static struct dmiser_conn *conn;
static size_t too_big; /* malloc of more bytes fails; 0: none fails */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n)
{
	return too_big && n > too_big ? NULL : __real_malloc(n);
}

static void begin_as(enum dm_rdma rdma)
{
	static const uint8_t cm[4] = { 0x80 };
	struct dmiser_config cfg;

	fixture_open(&fixture);
	fake_rcap_init(&f, 0, 4);
	dmiser_config_default(&cfg, ISCSI_TARGET);
	conn = dmiser_new(&cfg, &f.qp);
	assert_non_null(conn);
	dmiser_dm(conn)->rdma = rdma;
	fixture_accept(&fixture, dmiser_dm(conn));
	fake_rcap_request(&f, cm, sizeof(cm));
	fake_rcap_establish(&f, cm, sizeof(cm));
}

static void begin(void)
{
	begin_as(DM_RDMA_ALREADY);
}

static void end(void)
{
	fake_rcap_close(&f, 0, "the test is over");
	fixture_close(&fixture);
	dmiser_free(conn);
}

static void deliver(const struct iscsi_pdu *pdu, const void *data)
{
	const struct iser_header h = { .opcode = ISER_CONTROL };
	uint8_t bytes[HEADERS + 1024];

	iser_header_encode(&h, bytes);
	iscsi_bhs_encode(pdu, bytes + ISER_HEADER_LEN);
	if (pdu->dsl)
		memcpy(bytes + HEADERS, data, pdu->dsl);
	fake_rcap_deliver(&f, bytes, HEADERS + pdu->dsl, 0);
	fixture_deliver_messages(&fixture);
}

/* Takes the oldest answer from the queue and copies its data. */
static struct iscsi_pdu answer(char *data, size_t max)
{
	static uint8_t bytes[HEADERS + 8192];
	struct rcap_wr *wr = fake_rcap_wr(&f, 0);
	struct iscsi_pdu pdu;

	assert_non_null(wr);
	memset(bytes, 0, sizeof(bytes));
	fake_rcap_bytes(wr, bytes, sizeof(bytes));
	assert_int_equal(iscsi_bhs_decode(&pdu, bytes + ISER_HEADER_LEN), 0);
	if (data)
		memcpy(data, bytes + HEADERS, max);
	fake_rcap_complete(&f, 1);
	return pdu;
}

static void login(const char *text, size_t n)
{
	struct iscsi_pdu p = { .op = ISCSI_LOGIN_REQUEST,
			       .immediate = true,
			       .final = true,
			       .dsl = (uint32_t)n };

	p.login.transit = true;
	p.login.csg = 1;
	p.login.nsg = 3;
	p.login.isid[0] = 0x40;
	deliver(&p, text);
}

#define LOGIN(text) login(text, sizeof(text) - 1)

static bool says(const char *text, size_t n, const char *pair)
{
	for (size_t at = 0; at < n; at += strlen(text + at) + 1)
		if (strcmp(text + at, pair) == 0)
			return true;
	return false;
}

static void logged_in(void)
{
	struct iscsi_pdu p;

	LOGIN(NAMES RDMA);
	p = answer(NULL, 0);
	assert_int_equal(p.op, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(p.login.status_class, 0);
	assert_int_equal(dmiser_dm(conn)->state, DM_FULL_FEATURE);
}

static void assert_rejected(uint8_t op, uint8_t reason)
{
	const struct iscsi_pdu p = { .op = op, .final = true, .itt = 7 };
	char data[ISCSI_BHS_LEN];
	struct iscsi_pdu a;

	begin();
	logged_in();
	deliver(&p, NULL);
	a = answer(data, sizeof(data));
	assert_int_equal(a.op, ISCSI_REJECT);
	assert_int_equal(a.reject.reason, reason);
	assert_int_equal(data[0] & 0x3f, op);
	end();
}

/* [RFC 7145: 7.3.11 #2-3] */
static void test_snack_over_iser_rfc7145_7_3_11(void **state)
{
	(void)state;
	assert_rejected(ISCSI_SNACK_REQUEST, ISCSI_REJECT_PROTOCOL);
}

/* [RFC 7145: 7.3.9 #2-3] */
static void
test_login_in_full_feature_phase_over_iser_rfc7145_7_3_9(void **state)
{
	(void)state;
	assert_rejected(ISCSI_LOGIN_REQUEST, ISCSI_REJECT_PROTOCOL);
}

/* No memory for receives. */
/* [RFC 7145: 10.1.3.1 #4-5, 10.1.4.6 #3-4] */
static void test_no_resources_rfc7145_10_1_3_1(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin();
	too_big = 100000;
	LOGIN(NAMES RDMA);
	too_big = 0;
	p = answer(NULL, 0);
	assert_int_equal(p.op, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(p.login.status_class, 3);
	assert_int_equal(p.login.status_detail, 2);
	assert_false(p.login.transit);
	assert_null(fake_rcap_wr(&f, 0));
	assert_true(f.disconnected);
	end();
}

/* RDMA from the first byte: RDMAExtensions is irrelevant in a discovery
 * session and may be omitted; no digest is agreed on. */
static void test_login_over_rdma_from_the_start(void **state)
{
	static char text[1024];
	struct iscsi_pdu p;

	(void)state;
	begin();
	LOGIN("InitiatorName=iqn.2026-01.org.example:i\0"
	      "SessionType=Discovery\0RDMAExtensions=Yes\0");
	p = answer(text, sizeof(text));
	assert_int_equal(p.login.status_class, 0);
	assert_true(says(text, p.dsl, "RDMAExtensions=Irrelevant"));
	end();
	begin();
	LOGIN(NAMES "HeaderDigest=CRC32C,None\0DataDigest=CRC32C,None\0" RDMA);
	p = answer(text, sizeof(text));
	assert_true(says(text, p.dsl, "HeaderDigest=None"));
	assert_true(says(text, p.dsl, "DataDigest=None"));
	assert_true(says(text, p.dsl, "RDMAExtensions=Yes"));
	/* no key that was not offered: open-iscsi refuses unknown keys */
	assert_null(memmem(text, p.dsl, "iSERHello", 9));
	assert_null(memmem(text, p.dsl, "MaxOutstandingUn", 16));
	assert_null(memmem(text, p.dsl, "MaxAHS", 6));
	assert_null(memmem(text, p.dsl, "TaggedBuffer", 12));
	end();
}

/* An answer to a ping has as much data as real initiators have room for. */
static void test_ping_is_cut_to_what_initiators_take(void **state)
{
	static char data[512];
	const struct iscsi_pdu p = { .op = ISCSI_NOP_OUT,
				     .final = true,
				     .itt = 7,
				     .ttt = ISCSI_RESERVED_TAG,
				     .dsl = sizeof(data) };
	struct iscsi_pdu a;

	(void)state;
	begin();
	logged_in();
	deliver(&p, data);
	a = answer(NULL, 0);
	assert_int_equal(a.op, ISCSI_NOP_IN);
	assert_int_equal(a.dsl, 128);
	end();
}

/* ---- unsolicited Data-Outs ---- */

/* The target agrees on InitialR2T=No with initiators that use RDMA after a
 * login only. */
static void logged_in_without_r2t(void)
{
	struct iscsi_pdu p;

	begin_as(DM_RDMA_POSSIBLE);
	LOGIN(NAMES "InitialR2T=No\0FirstBurstLength=1024\0" RDMA);
	p = answer(NULL, 0);
	assert_int_equal(p.login.status_class, 0);
	/* the unit attentions of a new nexus */
	for (uint32_t cmdsn = 0; cmdsn < 2; cmdsn++) {
		p = (struct iscsi_pdu){ .op = ISCSI_SCSI_COMMAND,
					.final = true,
					.itt = 1,
					.cmdsn = cmdsn };
		deliver(&p, NULL);
		assert_int_equal(answer(NULL, 0).op, ISCSI_SCSI_RESPONSE);
	}
}

/* A WRITE of 3 blocks at LBA 0, whose unsolicited data follow. */
static void begin_write(uint32_t itt, uint32_t cmdsn)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_COMMAND,
			       .itt = itt,
			       .cmdsn = cmdsn };

	p.cmd.write = true;
	p.cmd.attr = ISCSI_ATTR_SIMPLE;
	p.cmd.edtl = 3 * 512;
	p.cmd.cdb[0] = 0x2a;
	p.cmd.cdb[8] = 3;
	deliver(&p, NULL);
}

static void data_out(uint32_t itt, uint32_t datasn, uint32_t offset, bool final)
{
	static const uint8_t bytes[512] = { 0x77 };
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT,
			       .final = final,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .dsl = sizeof(bytes) };

	p.data.datasn = datasn;
	p.data.offset = offset;
	deliver(&p, bytes);
}

static void assert_reject_of_data_out(void)
{
	char data[ISCSI_BHS_LEN];
	const struct iscsi_pdu a = answer(data, sizeof(data));

	assert_int_equal(a.op, ISCSI_REJECT);
	assert_int_equal(a.reject.reason, ISCSI_REJECT_INVALID_PDU_FIELD);
	assert_int_equal(data[0] & 0x3f, ISCSI_DATA_OUT);
}

static void assert_quiet(void)
{
	assert_null(fake_rcap_wr(&f, 0));
	assert_false(f.terminated || f.disconnected);
}

/* A Data-Out of a task that never existed is rejected, once per sequence. */
static void test_stray_data_out_is_rejected_rfc7143_11_17_1(void **state)
{
	(void)state;
	logged_in_without_r2t();
	data_out(77, 0, 0, false);
	assert_reject_of_data_out();
	data_out(77, 1, 512, true);
	assert_quiet();
	data_out(78, 0, 0, true);
	assert_reject_of_data_out();
	assert_quiet();
	end();
}

/* The data of a task that was aborted may be on their way: no Reject. */
/* [RFC 7143: 10.7 #1] */
static void test_late_data_out_is_discarded_rfc7143_11_17_1(void **state)
{
	struct iscsi_pdu p = { .op = ISCSI_TMF_REQUEST,
			       .immediate = true,
			       .final = true,
			       .itt = 6,
			       .cmdsn = 3 };

	(void)state;
	logged_in_without_r2t();
	begin_write(5, 2);
	assert_true(fixture.buffers > 0);
	data_out(5, 0, 0, false);
	p.tmf.function = ISCSI_TMF_ABORT_TASK;
	p.tmf.rtt = 5;
	p.tmf.ref_cmdsn = 2;
	deliver(&p, NULL);
	fixture_wait(&fixture);
	fixture_wait(&fixture);
	p = answer(NULL, 0);
	assert_int_equal(p.op, ISCSI_TMF_RESPONSE);
	assert_int_equal(p.tmf_response, ISCSI_TMF_COMPLETE);
	assert_int_equal(fixture.buffers, 0);
	while (fake_rcap_wr(&f, 0)) /* pings of the target */
		answer(NULL, 0);
	data_out(5, 1, 512, true);
	assert_quiet();
	data_out(5, 2, 1024, true); /* after the end of the sequence */
	assert_reject_of_data_out();
	end();
}

/* Data beyond FirstBurstLength are rejected, and the command ends with CHECK
 * CONDITION at the end of its sequence; nothing is written. */
/* [RFC 7143: 7.3 #1, 11.17.1 #4] */
static void test_data_out_beyond_first_burst_rfc7143_13_14(void **state)
{
	struct iscsi_pdu a;

	(void)state;
	logged_in_without_r2t();
	begin_write(5, 2);
	data_out(5, 0, 0, false);
	data_out(5, 1, 512, false);
	assert_quiet();
	data_out(5, 2, 1024, false);
	assert_reject_of_data_out();
	data_out(5, 3, 1536, true);
	a = answer(NULL, 0);
	assert_int_equal(a.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(a.itt, 5);
	assert_int_equal(a.rsp.status, 2);
	assert_int_equal(bs_hold_waiting(fixture.hold), 0);
	assert_int_equal(fixture.buffers, 0);
	assert_quiet();
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snack_over_iser_rfc7145_7_3_11),
		cmocka_unit_test(
			test_login_in_full_feature_phase_over_iser_rfc7145_7_3_9),
		cmocka_unit_test(test_no_resources_rfc7145_10_1_3_1),
		cmocka_unit_test(test_login_over_rdma_from_the_start),
		cmocka_unit_test(test_ping_is_cut_to_what_initiators_take),
		cmocka_unit_test(
			test_stray_data_out_is_rejected_rfc7143_11_17_1),
		cmocka_unit_test(
			test_late_data_out_is_discarded_rfc7143_11_17_1),
		cmocka_unit_test(
			test_data_out_beyond_first_burst_rfc7143_13_14),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
