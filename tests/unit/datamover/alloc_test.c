/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc_test.c: the n-th allocation of datamover/tcp fails, for every n, during
 * a whole exchange of each role: the role gets each report exactly once, and no
 * memory is lost. The roles in this file allocate nothing.
 */
#include "fail_alloc.h"
#include "raw.h"

/* ---- a role with one task ---- */

static struct raw r;
static struct dm_task task;
static uint8_t buf[8192], data[8192];
static struct iovec piece = { buf, sizeof(buf) };
static unsigned terminated, answered;
static bool in_use, allocated_later;

static struct dm_task *find_task(struct dm_conn *c, uint32_t itt)
{
	(void)c;
	return in_use && itt == task.itt ? &task : NULL;
}

static void ack(struct dm_conn *c, struct dm_task *t, uint32_t datasn)
{
	(void)c;
	(void)t;
	(void)datasn;
}

static void error_notify(struct dm_conn *c, const struct iscsi_pdu *pdu,
			 const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	(void)c;
	(void)pdu;
	(void)bhs;
	fail_msg("a PDU was dropped: %s", err_str(err));
}

static void terminate_notify(struct dm_conn *c, int err)
{
	(void)err;
	terminated++;
	dm_deallocate_connection_resources(c);
}

static void check(struct dm_conn *c, int err)
{
	if (err)
		dm_connection_terminate(c, DM_TERMINATE_NOW, err);
}

static void start_task(uint32_t itt, uint32_t edtl)
{
	dm_task_init(&task);
	task.itt = itt;
	task.edtl = edtl;
	task.out = bufv_of(&piece, 1);
	in_use = true;
}

/* An answer with more data than a spare node has room for. */
static void answer(struct dm_conn *c, struct dm_task *t, uint8_t op,
		   uint32_t dsl)
{
	struct dm_control ctl = { .pdu = { .op = op, .final = true, .itt = 5 },
				  .data = data };

	ctl.pdu.dsl = dsl;
	ctl.pdu.statsn = r.role.numbers.statsn++;
	check(c, dm_send_control(c, t, &ctl));
}

static int target_login(struct dm_conn *c)
{
	const struct dm_resources res = { .max_tasks = 4 };
	struct dm_control rsp = { .pdu = { .op = ISCSI_LOGIN_RESPONSE,
					   .final = true } };
	bool earlier = failed;
	int err;

	dm_notice_key_values(c, &r.params);
	err = dm_allocate_connection_resources(c, &res);
	if (failed && !earlier) { /* nothing is allocated: try again */
		assert_int_equal(err, ERR_NOMEM);
		err = dm_allocate_connection_resources(c, &res);
		allocated_later = true;
	}
	if (!err)
		err = dm_enable_datamover(c, &rsp);
	r.role.logged_in = !err;
	return err;
}

static int target_control(struct dm_conn *c, const struct dm_control *ctl,
			  struct dm_task **t)
{
	switch (ctl->pdu.op) {
	case ISCSI_LOGIN_REQUEST:
		return target_login(c);
	case ISCSI_SCSI_COMMAND:
		start_task(ctl->pdu.itt, ctl->pdu.cmd.edtl);
		*t = &task;
		return 0;
	default:
		answer(c, NULL, ISCSI_NOP_IN, ctl->pdu.dsl);
		return 0;
	}
}

static void target_completion(struct dm_conn *c, struct dm_task *t,
			      enum dm_completion what, int err)
{
	assert_int_equal(err, 0);
	if (what == DM_UNSOLICITED)
		check(c, dm_get_data(c, t, t->out_done, t->edtl - t->out_done));
	else if (what == DM_GET)
		answer(c, t, ISCSI_SCSI_RESPONSE, 200);
	else
		in_use = false;
	answered += what == DM_RESPONSE_SENT;
}

static int initiator_control(struct dm_conn *c, const struct dm_control *ctl,
			     struct dm_task **t)
{
	int err;

	if (ctl->pdu.op == ISCSI_LOGIN_RESPONSE) {
		dm_notice_key_values(c, &r.params);
		err = dm_enable_datamover(c, NULL);
		r.role.logged_in = !err;
		return err;
	}
	if (*t) {
		in_use = false;
		answered++;
	}
	return 0;
}

static void initiator_completion(struct dm_conn *c, struct dm_task *t,
				 enum dm_completion what, int err)
{
	(void)c;
	(void)t;
	fail_msg("completion %d (%d)", (int)what, err);
}

static const struct dm_up_ops target_ops = {
	.control_notify = target_control,
	.data_completion_notify = target_completion,
	.data_ack_notify = ack,
	.error_notify = error_notify,
	.connection_terminate_notify = terminate_notify,
	.find_task = find_task,
};

static const struct dm_up_ops initiator_ops = {
	.control_notify = initiator_control,
	.data_completion_notify = initiator_completion,
	.data_ack_notify = ack,
	.error_notify = error_notify,
	.connection_terminate_notify = terminate_notify,
	.find_task = find_task,
};

/* ---- the exchanges ---- */

static bool begin(enum iscsi_role role, const struct dm_up_ops *up)
{
	struct dmtcp_config cfg;

	memset(&r, 0, sizeof(r));
	terminated = answered = 0;
	in_use = allocated_later = false;
	r.params = raw_params();
	r.params.data_digest = true;
	r.params.immediate_data = false;
	r.host.kick = raw_kick;
	dmtcp_config_default(&cfg, role);
	r.conn = dmtcp_new(&cfg, &r.host);
	if (!r.conn)
		return false;
	r.role.dm = dmtcp_dm(r.conn);
	dm_attach(r.role.dm, up, &r, &r.role.numbers);
	return true;
}

static bool is_up(void)
{
	int err;

	return stream_fate_of(&dmtcp_stream_ops, r.conn, &err) == STREAM_GO;
}

/* drain takes all bytes to send; ttt: of an R2T among them. */
static uint32_t drain(size_t most)
{
	uint32_t ttt = ISCSI_RESERVED_TAG;
	struct iovec iov[64];
	struct iscsi_pdu p;
	unsigned n;

	while (most && (n = dmtcp_stream_ops.tx_what(r.conn, iov, 64))) {
		size_t len = MIN(bufv_of(iov, n).len, most);

		if (iov[0].iov_len >= ISCSI_BHS_LEN &&
		    !iscsi_bhs_decode(&p, iov[0].iov_base) && p.op == ISCSI_R2T)
			ttt = p.ttt;
		dmtcp_stream_ops.tx_done(r.conn, len, XTIME_S);
		most -= len;
	}
	return ttt;
}

static void feed(struct iscsi_pdu p)
{
	if (is_up())
		raw_pdu(&r, &p, data, RAW_GOOD);
}

static void target_exchange(void)
{
	struct iscsi_pdu write = { .op = ISCSI_SCSI_COMMAND,
				   .final = true,
				   .itt = 5 };
	struct iscsi_pdu out = { .op = ISCSI_DATA_OUT,
				 .final = true,
				 .itt = 5,
				 .dsl = sizeof(buf) };

	feed((struct iscsi_pdu){ .op = ISCSI_LOGIN_REQUEST, .dsl = 100 });
	drain(SIZE_MAX);
	feed((struct iscsi_pdu){
		.op = ISCSI_NOP_OUT, .final = true, .itt = 5, .dsl = 1000 });
	write.cmd.write = true;
	write.cmd.edtl = sizeof(buf);
	feed(write);
	out.ttt = drain(SIZE_MAX);
	feed(out);
	drain(SIZE_MAX);
}

static void send_write(void)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_SCSI_COMMAND,
					   .itt = 5 } };

	start_task(5, sizeof(buf));
	ctl.pdu.cmd.write = true;
	ctl.pdu.cmd.edtl = sizeof(buf);
	check(r.role.dm, dm_send_control(r.role.dm, &task, &ctl));
}

static void initiator_exchange(void)
{
	struct dm_control login = {
		.pdu = { .op = ISCSI_LOGIN_REQUEST, .dsl = 500 }, .data = data
	};
	struct iscsi_pdu r2t = {
		.op = ISCSI_R2T, .final = true, .itt = 5, .ttt = 1
	};

	check(r.role.dm, dm_send_control(r.role.dm, NULL, &login));
	drain(SIZE_MAX);
	feed((struct iscsi_pdu){ .op = ISCSI_LOGIN_RESPONSE, .dsl = 300 });
	if (!is_up())
		return;
	send_write();
	drain(SIZE_MAX);
	r2t.r2t.ddtl = sizeof(buf);
	feed(r2t);
	drain(100); /* partially sent: the response has to wait */
	feed((struct iscsi_pdu){ .op = ISCSI_SCSI_RESPONSE,
				 .final = true,
				 .itt = 5,
				 .statsn = 1,
				 .dsl = 20 });
	drain(SIZE_MAX);
}

/* run_failing returns whether there was an n-th allocation to fail. */
static bool run_failing(unsigned long nth, enum iscsi_role role)
{
	const struct dm_up_ops *up =
		role == ISCSI_TARGET ? &target_ops : &initiator_ops;

	failed = false;
	countdown = nth;
	if (begin(role, up)) {
		if (role == ISCSI_TARGET)
			target_exchange();
		else
			initiator_exchange();
		countdown = 0;
		assert_true((failed && !allocated_later) || answered == 1);
		raw_close(&r, 0);
		assert_int_equal(terminated, 1);
		dmtcp_free(r.conn);
	}
	countdown = 0;
	return failed;
}

static void run_all(enum iscsi_role role, unsigned least)
{
	unsigned long n = 1;

	while (run_failing(n, role))
		n++;
	assert_true(n > least); /* at least one allocation failed */
}

static void test_target_nth_allocation_fails(void **state)
{
	(void)state;
	run_all(ISCSI_TARGET, 8);
}

static void test_initiator_nth_allocation_fails(void **state)
{
	(void)state;
	run_all(ISCSI_INITIATOR, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_nth_allocation_fails),
		cmocka_unit_test(test_initiator_nth_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
