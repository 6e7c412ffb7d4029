/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_target_test.c: the rules of the standard and of the Datamover Interface
 * for the target's end of datamover/tcp. */
#include "raw.h"

static struct raw r;
static uint8_t data[65536];

static void begin(const struct iscsi_params *k)
{
	raw_init(&r, ISCSI_TARGET, k);
	raw_login(&r);
	memset(data, 0x5a, sizeof(data));
}

static void begin_plain(void)
{
	struct iscsi_params k = raw_params();

	begin(&k);
}

static void feed(struct iscsi_pdu p)
{
	raw_pdu(&r, &p, data, RAW_GOOD);
}

static struct iscsi_pdu command(uint32_t itt, bool write, uint32_t edtl)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_COMMAND,
			       .final = true,
			       .itt = itt };

	p.cmd.read = !write;
	p.cmd.write = write;
	p.cmd.edtl = edtl;
	return p;
}

/* ---- a role that answers every command with one put_data ---- */

static struct {
	struct dm_up_ops ops;
	struct dm_task task;
	struct iovec iov;
	struct bufv data;
	struct iscsi_pdu response;
	bool has_response;
	unsigned puts, sents;
	int err;
} put;

static int put_notify(struct dm_conn *c, const struct dm_control *ctl,
		      struct dm_task **task)
{
	dm_task_init(&put.task);
	put.task.itt = ctl->pdu.itt;
	put.task.edtl = ctl->pdu.cmd.edtl;
	*task = &put.task;
	put.response.itt = ctl->pdu.itt;
	put.response.statsn = r.role.numbers.statsn++;
	put.err = dm_put_data(c, &put.task, &put.data, 0,
			      put.has_response ? &put.response : NULL);
	return 0;
}

static void put_completion(struct dm_conn *c, struct dm_task *t,
			   enum dm_completion what, int err)
{
	(void)c;
	assert_ptr_equal(t, &put.task);
	assert_int_equal(err, 0);
	put.puts += what == DM_PUT;
	put.sents += what == DM_RESPONSE_SENT;
}

static void put_begin(uint32_t len, uint8_t status, uint16_t qualifier)
{
	begin_plain();
	put.ops = *r.role.dm->up;
	put.ops.control_notify = put_notify;
	put.ops.data_completion_notify = put_completion;
	r.role.dm->up = &put.ops;
	put.iov = (struct iovec){ data, len };
	put.data = bufv_of(&put.iov, 1);
	put.puts = put.sents = 0;
	put.has_response = true;
	put.response =
		(struct iscsi_pdu){ .op = ISCSI_SCSI_RESPONSE, .final = true };
	put.response.rsp.status = status;
	put.response.rsp.status_qualifier = qualifier;
}

static void test_status_rides_on_last_data_in_rfc7143_11_7_3(void **state)
{
	static const uint8_t good[] = { 0x00, 0x04, 0x10, 0x14 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		put_begin(16384, good[i], 0);
		feed(command(5, false, 16384));
		raw_fetch(&r);
		assert_int_equal(r.nout, 2);
		assert_int_equal(r.out.op, ISCSI_DATA_IN);
		assert_true(r.out.final && r.out.data.status_present);
		assert_int_equal(r.out.data.status, good[i]);
		assert_int_equal(r.out.statsn, put.response.statsn);
		assert_int_equal(put.puts, 0);
		assert_int_equal(put.sents, 1);
		raw_fini(&r);
	}
}

static void apart(uint8_t status, uint16_t qualifier)
{
	put_begin(16384, status, qualifier);
	feed(command(5, false, 16384));
	raw_fetch(&r);
	assert_int_equal(r.nout, 3);
	assert_int_equal(r.out.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(r.out.itt, 5);
	assert_int_equal(r.out.rsp.status, status);
	assert_int_equal(r.out.rsp.status_qualifier, qualifier);
	assert_int_equal(r.out.rsp.exp_datasn, 2); /* §11.4.8 */
	assert_int_equal(put.puts, 0);
	assert_int_equal(put.sents, 1);
	raw_fini(&r);
}

/* [RFC 7143: 11.7.3 #1-2] */
static void test_status_goes_apart_rfc7143_11_7_3(void **state)
{
	(void)state;
	apart(0x28, 0); /* an error */
	apart(0x02, 0);
	apart(0x00, 0x1234); /* a Data-In has no field for it */
}

static void test_put_data_empty_is_a_response(void **state)
{
	(void)state;
	put_begin(0, 0, 0);
	feed(command(5, false, 16384));
	raw_fetch(&r);
	assert_int_equal(r.nout, 1);
	assert_int_equal(r.out.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(r.out.rsp.exp_datasn, 0);
	assert_int_equal(put.sents, 1);
	raw_fini(&r);
}

static void test_put_data_one_at_a_time(void **state)
{
	(void)state;
	put_begin(512, 0, 0);
	put.has_response = false;
	feed(command(5, false, 1024));
	assert_int_equal(put.err, 0);
	assert_int_equal(dm_put_data(r.role.dm, &put.task, &put.data, 512,
				     NULL),
			 ERR_BUSY);
	raw_fetch(&r);
	assert_int_equal(put.puts, 1);
	assert_int_equal(dm_put_data(r.role.dm, &put.task, &put.data, 512,
				     &put.response),
			 0);
	raw_fetch(&r);
	assert_int_equal(put.sents, 1);
	assert_int_equal(r.out.data.datasn, 1);
	assert_int_equal(r.out.data.offset, 512);
	raw_fini(&r);
}

/* ---- ExpDataSN ---- */

/* [RFC 7143: 11.4.8 #1] */
static void test_response_counts_data_ins_not_r2ts_rfc7143_11_4_8(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin_plain();
	p = command(5, false, 16384);
	p.cmd.cdb[1] = FAKE_STATUS_APART;
	feed(p);
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(r.out.rsp.exp_datasn, 2);
	feed(command(6, true, 512));
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_R2T);
	p = (struct iscsi_pdu){ .op = ISCSI_DATA_OUT,
				.final = true,
				.itt = 6,
				.ttt = r.out.ttt,
				.dsl = 512 };
	feed(p);
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(r.out.rsp.status, 0);
	assert_int_equal(r.out.rsp.exp_datasn, 0);
	assert_int_equal(dmtcp_stats(r.conn)->r2ts, 1);
	raw_fini(&r);
}

/* ---- Data-Out ---- */

/* [RFC 7143: 4.2.5.3 #1] */
static void test_data_out_of_another_lun_rfc7143_4_2_5_3(void **state)
{
	struct iscsi_pdu p;

	(void)state;
	begin_plain();
	feed(command(6, true, 512));
	raw_fetch(&r);
	p = (struct iscsi_pdu){ .op = ISCSI_DATA_OUT,
				.final = true,
				.itt = 6,
				.ttt = r.out.ttt,
				.lun = 1ull << 48,
				.dsl = 512 };
	feed(p);
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(r.out.rsp.status, 2);
	assert_int_equal(r.role.disk[0], 0);
	raw_fini(&r);
}

/* Fewer unsolicited data than allowed: the target requests the rest. */
static void test_short_unsolicited_data_rfc7143_4_2_5_2(void **state)
{
	struct iscsi_pdu p = command(6, true, 8192);

	(void)state;
	begin_plain();
	p.final = false;
	feed(p);
	p = (struct iscsi_pdu){ .op = ISCSI_DATA_OUT,
				.final = true,
				.itt = 6,
				.ttt = ISCSI_RESERVED_TAG,
				.dsl = 1000 };
	feed(p);
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_R2T);
	assert_int_equal(r.out.r2t.offset, 1000);
	assert_int_equal(r.out.r2t.ddtl, 7192);
	raw_fini(&r);
}

/* An R2T has the StatSN of the next response sent, although later ones are
 * queued. */
static void test_r2t_overtakes_and_takes_no_statsn_rfc7143_11_8_3(void **state)
{
	struct iovec iov[64];
	struct iscsi_pdu first;
	uint8_t bhs[ISCSI_BHS_LEN];
	struct bufv v;
	unsigned n;
	uint32_t next;

	(void)state;
	begin_plain();
	next = r.role.numbers.statsn;
	feed(command(5, false, 512));
	feed(command(6, true, 512));
	n = dmtcp_stream_ops.tx_what(r.conn, iov, 64);
	v = bufv_of(iov, n);
	assert_int_equal(bufv_copy_out(&v, 0, bhs, sizeof(bhs)), sizeof(bhs));
	assert_int_equal(iscsi_bhs_decode(&first, bhs), 0);
	assert_int_equal(first.op, ISCSI_R2T);
	assert_int_equal(first.statsn, next);
	raw_fetch(&r);
	assert_int_equal(r.out.op, ISCSI_DATA_IN);
	assert_int_equal(r.out.statsn, next);
	raw_fini(&r);
}

/* ---- the end ---- */

/* The queued PDUs are sent, then the driver closes: a close by the core could
 * lose the last bytes. */
static void test_terminate_after_sent_stays_flush(void **state)
{
	int err;

	(void)state;
	begin_plain();
	feed(command(5, false, 512));
	dm_connection_terminate(r.role.dm, DM_TERMINATE_AFTER_SENT, 0);
	raw_fetch(&r);
	assert_int_equal(r.nout, 1);
	assert_int_equal(stream_fate_of(&dmtcp_stream_ops, r.conn, &err),
			 STREAM_FLUSH);
	assert_int_equal(err, 0);
	raw_fini(&r);
}

/* Deallocation of a task whose response is queued: the response is sent, but
 * not reported. */
static void test_response_of_a_task_that_is_gone(void **state)
{
	struct fake_task *t = &r.role.task[0];
	struct iscsi_pdu p = command(5, false, 0);

	(void)state;
	begin_plain();
	feed(p);
	assert_int_equal(t->state, FAKE_RESPONDING);
	assert_int_equal(dm_deallocate_task_resources(r.role.dm, &t->dm), 0);
	memset(&t->dm, 0xff, sizeof(t->dm));
	raw_fetch(&r);
	assert_int_equal(r.nout, 1);
	assert_int_equal(r.out.itt, 5);
	assert_int_equal(t->state, FAKE_RESPONDING); /* no report */
	raw_fini(&r);
}

/* Any number of responses costs no more than a few nodes. */
static void test_response_nodes_are_used_again(void **state)
{
	(void)state;
	begin_plain();
	for (uint32_t i = 0; i < 1000; i++) {
		feed(command(i, false, 0));
		raw_fetch(&r);
	}
	assert_int_equal(r.nout, 1000);
	assert_int_equal(raw_fate(&r), 1);
	raw_fini(&r);
}

/* A Target Transfer Tag names a task by 16 bits. */
static void test_number_of_tasks(void **state)
{
	static const struct {
		uint32_t max_tasks;
		int err;
	} rows[] = {
		{ 0, ERR_RANGE },
		{ 0x10000, ERR_RANGE },
		{ 0xffff, 0 },
	};
	struct iscsi_params k = raw_params();

	(void)state;
	raw_init(&r, ISCSI_TARGET, &k);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct dm_resources res = {
			.max_tasks = rows[i].max_tasks,
		};

		assert_int_equal(dm_allocate_connection_resources(r.role.dm,
								  &res),
				 rows[i].err);
	}
	raw_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_status_rides_on_last_data_in_rfc7143_11_7_3),
		cmocka_unit_test(test_status_goes_apart_rfc7143_11_7_3),
		cmocka_unit_test(test_put_data_empty_is_a_response),
		cmocka_unit_test(test_put_data_one_at_a_time),
		cmocka_unit_test(
			test_response_counts_data_ins_not_r2ts_rfc7143_11_4_8),
		cmocka_unit_test(test_data_out_of_another_lun_rfc7143_4_2_5_3),
		cmocka_unit_test(test_short_unsolicited_data_rfc7143_4_2_5_2),
		cmocka_unit_test(
			test_r2t_overtakes_and_takes_no_statsn_rfc7143_11_8_3),
		cmocka_unit_test(test_terminate_after_sent_stays_flush),
		cmocka_unit_test(test_number_of_tasks),
		cmocka_unit_test(test_response_of_a_task_that_is_gone),
		cmocka_unit_test(test_response_nodes_are_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
