/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_alloc_test.c: the n-th allocation of datamover/iser fails, for every n,
 * during a whole exchange of each role, in RDMA mode from the first byte and
 * after a login over a stream: the role gets a report, no STag stays valid, no
 * memory is lost. The fixture allocates nothing.
 */
#include "fail_alloc.h"
#include "iser_fixture.h"

static struct fixture r;
static uint8_t lent[FIXTURE_BUF];
static unsigned done;

static struct iscsi_params params(void)
{
	struct iscsi_params p = fixture_params();

	p.max_send_dsl = 4096;
	p.immediate_data = false;
	return p;
}

/* What a role does when a primitive fails. */
static bool check(int err)
{
	if (err)
		dm_connection_terminate(r.dm, DM_TERMINATE_NOW, err);
	return !err;
}

static bool is_up(void)
{
	return r.dm->state == DM_FULL_FEATURE && !r.f.terminated &&
	       !r.f.disconnected;
}

/* ---- target ---- */

static void serve_write(void)
{
	struct fixture_task *t;

	fixture_write(&r, 5, 30000, 0, false);
	fixture_data_out(&r, 5, 0, 0, 8192, true);
	t = fixture_find(&r, 5);
	if (!t || !check(dm_get_data(r.dm, &t->dm, 8192, 30000 - 8192)))
		return;
	fixture_flush(&r);
	assert_int_equal(t->seen[DM_GET], 1);
	if (!check(fixture_respond(&r, t, 254))) /* not in a spare */
		return;
	fixture_flush(&r);
	done += t->seen[DM_RESPONSE_SENT];
}

static void serve_read(void)
{
	struct iovec iov = { lent, 4096 };
	const struct bufv data = { &iov, 1, 4096 };
	struct iscsi_pdu rsp;
	struct fixture_task *t;

	fixture_read(&r, 6, 4096);
	t = fixture_find(&r, 6);
	if (!t)
		return;
	rsp = fixture_response(t);
	if (!check(dm_put_data(r.dm, &t->dm, &data, 0, &rsp)))
		return;
	fixture_flush(&r);
	done += t->seen[DM_RESPONSE_SENT];
}

static void target_exchange(void)
{
	fake_rcap_remote(&r.f, FIXTURE_READ_STAG, FIXTURE_READ_BASE, r.peer_in,
			 FIXTURE_BUF);
	fake_rcap_remote(&r.f, FIXTURE_WRITE_STAG, FIXTURE_WRITE_BASE,
			 r.peer_out, FIXTURE_BUF);
	serve_write();
	if (is_up())
		serve_read();
	if (is_up() && check(fixture_send(&r, ISCSI_TEXT_RESPONSE, 7, 4000)))
		done++;
}

/* ---- initiator ---- */

static void respond(uint32_t itt)
{
	const struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
				     .final = true,
				     .itt = itt };

	fixture_plain_pdu(&r, &p, NULL);
}

static void ask(uint32_t itt, bool write, uint32_t len, unsigned pieces)
{
	unsigned ended = r.ended;
	int err;
	struct fixture_task *t =
		fixture_start(&r, itt, write, len, pieces, &err);

	if (err) { /* the role owns its memory again, and changes it */
		assert_int_equal(fake_rcap_valid(&r.f), 0);
		t->used = false;
		memset(t->buf, 0xdd, sizeof(t->buf));
		return;
	}
	fixture_flush(&r);
	if (is_up())
		respond(itt);
	done += r.ended - ended;
}

static void initiator_exchange(void)
{
	ask(5, true, 16384, 40); /* Data-Outs that have to be copied */
	if (is_up())
		ask(6, true, 40000, 2);
	if (is_up())
		ask(7, false, 4096, 2);
	if (is_up() && check(fixture_send(&r, ISCSI_TEXT_REQUEST, 8, 4000)))
		done++;
}

/* ---- both kinds of connection ---- */

static void login(void)
{
	const struct iscsi_pdu req = { .op = ISCSI_LOGIN_REQUEST,
				       .final = true,
				       .immediate = true };
	const struct iscsi_pdu rsp = { .op = ISCSI_LOGIN_RESPONSE,
				       .final = true };

	if (r.dm->role == ISCSI_INITIATOR) {
		const struct dm_control ctl = { .pdu = req };

		if (!check(dm_send_control(r.dm, NULL, &ctl)))
			return;
	}
	fixture_flush(&r);
	fixture_plain_pdu(&r, r.dm->role == ISCSI_TARGET ? &req : &rsp, NULL);
	fixture_flush(&r);
}

/* Returns whether there was an n-th allocation to fail. */
static bool run_first(unsigned long nth, enum iscsi_role role)
{
	const struct iscsi_params p = params();

	failed = false;
	done = 0;
	fixture_raw(&r, role, DMISER_STRICT, &p);
	countdown = nth;
	fixture_up(&r);
	login();
	if (is_up() && role == ISCSI_TARGET)
		target_exchange();
	else if (is_up())
		initiator_exchange();
	countdown = 0;
	assert_true(failed || done == (role == ISCSI_TARGET ? 3 : 4));
	fixture_fini(&r);
	return failed;
}

static bool run_switched(unsigned long nth, enum iscsi_role role)
{
	struct iscsi_params p = params();

	p.iser_hello_required = true;
	failed = false;
	fixture_unswitched(&r, role, DMISER_STRICT, &p);
	countdown = nth;
	if (!fixture_switch(&r)) {
		/* the datamover of the stream continues */
		countdown = 0;
		assert_true(failed);
		assert_null(r.stream_dm.ops);
		dmiser_free(r.conn);
		return true;
	}
	fixture_up(&r);
	if (role == ISCSI_TARGET) {
		uint8_t b[ISER_HEADER_LEN];
		const struct iser_header h = { .opcode = ISER_HELLO,
					       .max_ver = 10,
					       .min_ver = 10 };

		iser_header_encode(&h, b);
		fake_rcap_deliver(&r.f, b, sizeof(b), 0);
	}
	countdown = 0;
	assert_true(failed || is_up());
	assert_true(!failed || r.f.terminated);
	fixture_fini(&r);
	return failed;
}

static void run_all(bool (*run)(unsigned long, enum iscsi_role),
		    enum iscsi_role role, unsigned least)
{
	unsigned long n = 1;

	while (run(n, role))
		n++;
	assert_true(n > least); /* at least one allocation failed */
}

/* [RFC 7145: 5.1.2 #5, 10.1.3.1 #3] [RFC 5047: 8.4 #1] */
static void test_target_nth_allocation_fails(void **state)
{
	(void)state;
	run_all(run_first, ISCSI_TARGET, 5);
}

/* [RFC 7145: 5.1.1 #3, 10.1.3.1 #1-2] */
static void test_initiator_nth_allocation_fails(void **state)
{
	(void)state;
	run_all(run_first, ISCSI_INITIATOR, 6);
}

/* [RFC 7145: 3.3 #3] */
static void test_switch_nth_allocation_fails(void **state)
{
	(void)state;
	run_all(run_switched, ISCSI_TARGET, 1);
	run_all(run_switched, ISCSI_INITIATOR, 2);
}

static void test_new_nth_allocation_fails(void **state)
{
	struct dmiser_config cfg;
	struct dmiser_conn *c;
	struct fake_rcap f;
	unsigned long n;

	(void)state;
	dmiser_config_default(&cfg, ISCSI_TARGET);
	for (n = 1;; n++) {
		fake_rcap_init(&f, 1, 1);
		countdown = n;
		c = dmiser_new(&cfg, &f.qp);
		countdown = 0;
		if (c)
			break;
		assert_int_equal(f.nrecvs, 0);
	}
	assert_int_equal(n, 3);
	dmiser_free(c);
	dmiser_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_nth_allocation_fails),
		cmocka_unit_test(test_initiator_nth_allocation_fails),
		cmocka_unit_test(test_switch_nth_allocation_fails),
		cmocka_unit_test(test_new_nth_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
