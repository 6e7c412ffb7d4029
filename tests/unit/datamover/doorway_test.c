/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doorway_test.c: which calls the functions dm_* and rcap_* pass on, in each
 * state (RFC 5047 §5.4, §8).
 */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/datamover.h"
#include "rcap/rcap.h"

/* ---- a datamover that counts its calls ---- */

static unsigned reached;

static int count_control(struct dm_conn *c, struct dm_task *t,
			 const struct dm_control *ctl)
{
	(void)c;
	(void)t;
	(void)ctl;
	reached++;
	return 0;
}

static int count_put(struct dm_conn *c, struct dm_task *t,
		     const struct bufv *data, uint32_t offset,
		     const struct iscsi_pdu *response)
{
	(void)c;
	(void)t;
	(void)data;
	(void)offset;
	(void)response;
	reached++;
	return 0;
}

static int count_get(struct dm_conn *c, struct dm_task *t, uint32_t offset,
		     uint32_t len)
{
	(void)c;
	(void)t;
	(void)offset;
	(void)len;
	reached++;
	return 0;
}

static int count_allocate(struct dm_conn *c, const struct dm_resources *r)
{
	(void)c;
	(void)r;
	reached++;
	return 0;
}

static int count_enable(struct dm_conn *c, const struct dm_control *ctl)
{
	(void)c;
	(void)ctl;
	reached++;
	return 0;
}

static const struct dm_ops dm_ops = {
	.send_control = count_control,
	.put_data = count_put,
	.get_data = count_get,
	.allocate_connection_resources = count_allocate,
	.enable_datamover = count_enable,
};

static void test_datamover_after_the_end_rfc5047_5_4(void **state)
{
	static const struct dm_up_ops up;
	const struct dm_control ctl = { .pdu = { .op = ISCSI_NOP_IN } };
	const struct dm_control login = {
		.pdu = { .op = ISCSI_LOGIN_RESPONSE }
	};
	const struct dm_resources res = { 0 };
	uint8_t byte = 0;
	struct iovec iov = { &byte, 1 };
	const struct bufv data = { &iov, 1, 1 };
	struct dm_task task = { .edtl = 1 };

	(void)state;
	for (int s = DM_FULL_FEATURE; s <= DM_TERMINATED; s++) {
		struct dm_conn c = { .role = ISCSI_TARGET,
				     .state = (enum dm_state)s,
				     .ops = &dm_ops,
				     .up = &up };
		int err = s == DM_FULL_FEATURE ? 0 : ERR_CLOSED;

		reached = 0;
		assert_int_equal(dm_send_control(&c, NULL, &ctl), err);
		assert_int_equal(dm_put_data(&c, &task, &data, 0, NULL), err);
		assert_int_equal(dm_get_data(&c, &task, 0, 1), err);
		assert_int_equal(reached, err ? 0 : 3);
		if (!err)
			continue;
		assert_int_equal(dm_allocate_connection_resources(&c, &res),
				 err);
		assert_int_equal(dm_enable_datamover(&c, &login), err);
		assert_int_equal(reached, 0);
		assert_int_equal(c.state, s);
	}
}

/* ---- a queue pair that counts its calls ---- */

static int count_cm(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	(void)qp;
	(void)cm;
	reached++;
	return 0;
}

static void count_post(struct rcap_qp *qp, struct rcap_wr *const *wr,
		       unsigned n)
{
	(void)qp;
	(void)wr;
	(void)n;
	reached++;
}

static void count_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	(void)qp;
	(void)r;
	reached++;
}

static int count_reg(struct rcap_qp *qp, const struct bufv *memory,
		     uint64_t base, unsigned rights, struct rcap_mr *mr)
{
	(void)qp;
	(void)memory;
	(void)base;
	(void)rights;
	(void)mr;
	reached++;
	return 0;
}

static void count_mr(struct rcap_qp *qp, struct rcap_mr *mr)
{
	(void)qp;
	(void)mr;
	reached++;
}

static void count_disconnect(struct rcap_qp *qp, xtime grace)
{
	(void)qp;
	(void)grace;
	reached++;
}

static void count_terminate(struct rcap_qp *qp, int err, const char *why)
{
	(void)qp;
	(void)err;
	(void)why;
	reached++;
}

static const struct rcap_ops rcap_ops = {
	.accept = count_cm,
	.reject = count_cm,
	.post = count_post,
	.post_recv = count_recv,
	.reg = count_reg,
	.invalidate = count_mr,
	.disconnect = count_disconnect,
	.terminate = count_terminate,
};

#define REACHES(yes, call)                    \
 do {                                         \
  reached = 0;                                \
  call;                                       \
  assert_int_equal(reached, (yes) ? 1u : 0u); \
 } while (0)
#define ANSWERS(err_, call) REACHES((err_) == 0, assert_int_equal(call, err_))

static void test_queue_pair_in_each_state(void **state)
{
	uint8_t byte = 0;
	struct iovec iov = { &byte, 1 };
	const struct bufv memory = { &iov, 1, 1 };
	const struct rcap_cm cm = { .private_len = RCAP_PRIVATE_MAX };
	struct rcap_wr send = { .op = RCAP_SEND }, *one = &send;
	struct rcap_recv recv = { .buf = &byte };
	struct rcap_mr mr;

	(void)state;
	for (int s = 0; s <= RCAP_CLOSED; s++) {
		struct rcap_qp qp = { .ops = &rcap_ops,
				      .state = (enum rcap_state)s,
				      .ord = 1 };
		int asked = s == RCAP_REQUESTED ? 0 : ERR_WRONG_STATE;
		int up = s == RCAP_ESTABLISHED ? 0 : ERR_WRONG_STATE;
		int open = s < RCAP_CLOSING ? 0 : ERR_WRONG_STATE;
		int alive = s < RCAP_CLOSED ? 0 : ERR_WRONG_STATE;

		ANSWERS(asked, rcap_accept(&qp, &cm));
		ANSWERS(asked, rcap_reject(&qp, &cm));
		ANSWERS(up, rcap_post(&qp, &one, 1));
		ANSWERS(alive, rcap_post_recv(&qp, &recv));
		ANSWERS(open, rcap_reg(&qp, &memory, 0, 0, &mr));
		REACHES(!alive, rcap_invalidate(&qp, &mr));
		REACHES(!open, rcap_disconnect(&qp));
		REACHES(!open, rcap_disconnect_after(&qp, XTIME_S));
		REACHES(!alive, rcap_terminate(&qp, 0, ""));
	}
}

static void test_queue_pair_refuses_what_cannot_be(void **state)
{
	struct rcap_qp qp = { .ops = &rcap_ops,
			      .state = RCAP_REQUESTED,
			      .ord = 1 };
	struct rcap_cm cm = { .private_len = RCAP_PRIVATE_MAX + 1 };
	struct rcap_wr wr = { .op = RCAP_SEND }, *one = &wr;
	struct bufv memory = { .len = 0 };
	struct rcap_mr mr;

	(void)state;
	ANSWERS(ERR_TOO_LONG, rcap_accept(&qp, &cm));
	ANSWERS(ERR_TOO_LONG, rcap_reject(&qp, &cm));
	qp.state = RCAP_ESTABLISHED;
	wr.data.len = UINT32_MAX;
	ANSWERS(0, rcap_post(&qp, &one, 1));
	wr.data.len = (size_t)UINT32_MAX + 1;
	ANSWERS(ERR_RANGE, rcap_post(&qp, &one, 1));
	wr.data.len = 0;
	/* RFC 7306's operations if both sides negotiated them, and ORD if the
	 * operation needs it */
	for (int op = 0; op <= RCAP_CMP_SWAP; op++)
		for (unsigned k = 0; k < 4; k++) {
			bool asks = op == RCAP_READ || op == RCAP_FETCH_ADD ||
				    op == RCAP_CMP_SWAP;

			wr.op = (enum rcap_op)op;
			qp.extended = k & 1;
			qp.ord = (uint16_t)(k / 2);
			ANSWERS(op >= RCAP_IMMEDIATE && !qp.extended
					? ERR_UNSUPPORTED
				: asks && qp.ord == 0 ? ERR_LIMIT
						      : 0,
				rcap_post(&qp, &one, 1));
		}
	ANSWERS(ERR_RANGE, rcap_reg(&qp, &memory, 0, 0, &mr));
	memory.len = 16;
	ANSWERS(0, rcap_reg(&qp, &memory, UINT64_MAX - 16, 0, &mr));
	ANSWERS(ERR_RANGE, rcap_reg(&qp, &memory, UINT64_MAX - 15, 0, &mr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_datamover_after_the_end_rfc5047_5_4),
		cmocka_unit_test(test_queue_pair_in_each_state),
		cmocka_unit_test(test_queue_pair_refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
