/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lent_test.c: a READ that executes at once keeps the memory that the backstore lent it
 * when it began. One that has to wait asks for memory again: pages of a ram unit
 * that were never written are lent as zeros, and may have been written meanwhile.
 */
#include "cmds.h"
#include "device/unit/range.h"

#define SIZE   (1u << 20)
#define BLOCKS 8u /* of 512 bytes, one page of the ram unit */
#define LEN    4096u
#define DATA   0x77

static uint8_t memory[SIZE] __attribute__((aligned(4096)));
static xtime now;
static struct dev_msg *timer;

static int punch(void *arg, uint64_t off, uint64_t len)
{
	(void)arg;
	memset(memory + off, 0, len);
	return 0;
}

static uint64_t used(void *arg)
{
	(void)arg;
	return 0;
}

static const struct bs_ram_ops ops = {
	.punch = punch,
	.used = used,
	.is_empty = true,
};

static xtime time_now(void *arg, unsigned worker, bool exact)
{
	(void)arg;
	(void)worker;
	(void)exact;
	return now;
}

static void later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m)
{
	(void)arg;
	(void)worker;
	(void)ms;
	timer = m;
}

static void open_store(void)
{
	memset(&three, 0, sizeof(three));
	memset(cmds, 0, sizeof(cmds));
	memset(memory, 0, sizeof(memory));
	nended = 0;
	now = XTIME_S;
	timer = NULL;
	three.env.time = time_now;
	three.env.later = later;
	three.store = bs_ram_new("ram", memory, SIZE, 512, NULL, NULL);
	assert_int_equal(bs_ram_set_ops(three.store, &ops), 0);
}

static int open_empty(void **state)
{
	(void)state;
	open_store();
	three_start();
	return 0;
}

/* ---- a store with a volatile cache, whose flush takes time ---- */

static const struct bs_ops *ram_ops;
static struct bs_ops slow_ops;
static struct bs_req *flush;

static void submit_slowly(struct bs *b, struct bs_req *req)
{
	if (req->op == BS_FLUSH)
		flush = req;
	else
		ram_ops->submit(b, req);
}

static int open_cached(void **state)
{
	(void)state;
	open_store();
	flush = NULL;
	ram_ops = three.store->ops;
	slow_ops = *ram_ops;
	slow_ops.submit = submit_slowly;
	three.store->ops = &slow_ops;
	three.store->caps |= BS_CAP_WRITE_CACHE;
	three_start();
	return 0;
}

static struct dev_lu *lu(void)
{
	return dev_lu_get(three.server, 0);
}

static struct dev_task *new_command(unsigned i, uint8_t op, enum dev_attr attr)
{
	const uint8_t cdb[16] = { op, [5] = BLOCKS, [8] = BLOCKS };
	struct dev_task *t = cmd_new(i, A, attr, cdb);

	t->edtl.out = op == SCSI_WRITE_10 ? LEN : 0;
	t->edtl.in = op == SCSI_READ_10 ? LEN : 0;
	return t;
}

/* A READ of the blocks from 8 on, as the target begins it if its turn is now. */
static struct dev_task *begin_read(unsigned i)
{
	struct dev_task *t = new_command(i, SCSI_READ_10, S);

	t->order.at_once = true;
	assert_int_equal(dev_task_begin(t), 0);
	assert_true(t->own.mem.lent);
	return t;
}

static void ignore(struct bs_req *req)
{
	assert_int_equal(req->result, 0);
}

/* Another command, maybe of another worker, writes the blocks. */
static void write_blocks(void)
{
	static uint8_t data[LEN];
	struct iovec iov = { data, LEN };
	struct bs_req req = { .op = BS_WRITE,
			      .off = LEN,
			      .len = LEN,
			      .done = ignore,
			      .data = bufv_of(&iov, 1) };

	memset(data, DATA, LEN);
	bs_submit(lu()->bs, &req);
}

static void expect(unsigned i, uint8_t byte)
{
	const struct dev_task *t = &cmds[i].task;
	const uint8_t *p = t->in.iov[0].iov_base;

	assert_true(cmds[i].done);
	assert_int_equal(t->status, SCSI_GOOD);
	assert_int_equal(t->in.len, LEN);
	for (unsigned k = 0; k < LEN; k++)
		assert_int_equal(p[k], byte);
}

static void end(unsigned i)
{
	dev_task_end(&cmds[i].task);
	three_settle();
}

static void test_at_once(void **state)
{
	(void)state;
	dev_task_execute(begin_read(0));
	expect(0, 0);
	end(0);
	write_blocks();
	dev_task_execute(begin_read(0));
	expect(0, DATA);
	end(0);
	/* the same task, for a command to which nothing is lent */
	cmds[0].task.edtl.keeps = true;
	assert_int_equal(dev_task_begin(&cmds[0].task), 0);
	assert_false(cmds[0].task.own.mem.lent);
	end(0);
}

/* A WRITE that precedes the READ, whose data come later. */
static void after(enum dev_attr attr)
{
	struct dev_task *w = new_command(0, SCSI_WRITE_10, attr);

	assert_int_equal(dev_task_begin(w), 0);
	dev_task_execute(begin_read(1));
	assert_false(cmds[1].done);
	memset(w->own.mem.buf, DATA, LEN);
	dev_task_execute(w);
	three_settle();
	assert_true(cmds[0].done);
	expect(1, DATA);
	end(0);
	end(1);
}

static void test_after_an_ordered_command(void **state)
{
	(void)state;
	after(O);
}

/* Which takes no exclusive access. */
static void test_after_a_head_of_queue_command(void **state)
{
	(void)state;
	after(H);
}

static void got(struct dev_range *r)
{
	(void)r;
}

static void test_after_exclusive_access(void **state)
{
	struct dev_range r = { .state = DEV_HOLD_NONE };

	(void)state;
	assert_int_equal(dev_range_take(&r, lu(), three.i[B].nexus->cfg.worker,
					BLOCKS, BLOCKS, DEV_HOLD_ALONE, got),
			 0);
	three_settle();
	assert_int_equal(r.state, DEV_HOLD_ALONE);
	dev_task_execute(begin_read(0));
	assert_false(cmds[0].done);
	write_blocks();
	dev_range_drop(&r);
	three_settle();
	expect(0, DATA);
	end(0);
}

static void ignore_done(void *arg)
{
	(void)arg;
}

static void test_after_a_limit(void **state)
{
	const struct dev_lu_config cfg = { .limits = { .ops = 1,
						       .ops_burst = 1 } };

	(void)state;
	assert_int_equal(dev_lu_configure(lu(), &cfg, ignore_done, NULL), 0);
	three_settle();
	(void)tur(A); /* takes the unit attention */
	dev_task_execute(begin_read(0));
	expect(0, 0);
	dev_task_execute(begin_read(1));
	assert_false(cmds[1].done);
	write_blocks();
	now += 10 * XTIME_S;
	assert_non_null(timer);
	three_post(NULL, three.i[A].nexus->cfg.worker, timer);
	three_settle();
	expect(1, DATA);
	end(0);
	end(1);
}

/* The unit changes between the begin and the execution: another worker may do so. */
static void test_after_a_change_of_the_unit(void **state)
{
	struct dev_task *t = begin_read(0);

	(void)state;
	write_blocks();
	dev_lu_changed(lu());
	dev_task_execute(t);
	expect(0, DATA);
	end(0);
}

/* With FUA the flush comes first, and the blocks may be written meanwhile. */
static void test_after_a_flush(void **state)
{
	const uint8_t cdb[16] = { SCSI_READ_10,
				  0x08, [5] = BLOCKS, [8] = BLOCKS };
	struct dev_task *t = cmd_new(0, A, S, cdb);

	(void)state;
	t->edtl.in = LEN;
	t->order.at_once = true;
	assert_int_equal(dev_task_begin(t), 0);
	dev_task_execute(t);
	assert_non_null(flush);
	assert_false(cmds[0].done);
	write_blocks();
	bs_complete(flush, 0);
	three_settle();
	expect(0, DATA);
	end(0);
}

/* Data that may be sent again have a loan of their own, which later changes see. */
static void test_data_that_may_be_sent_again(void **state)
{
	struct dev_task *t = new_command(0, SCSI_READ_10, S);

	(void)state;
	t->order.at_once = t->edtl.again = true;
	assert_int_equal(dev_task_begin(t), 0);
	assert_false(t->own.mem.lent);
	dev_task_execute(t);
	expect(0, 0);
	assert_true(t->own.mem.loan.is);
	end(0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_empty, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_at_once),
		CASE(test_after_an_ordered_command),
		CASE(test_after_a_head_of_queue_command),
		CASE(test_after_exclusive_access),
		CASE(test_after_a_limit),
		CASE(test_after_a_change_of_the_unit),
		CASE(test_data_that_may_be_sent_again),
		cmocka_unit_test_setup_teardown(test_after_a_flush, open_cached,
						three_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
