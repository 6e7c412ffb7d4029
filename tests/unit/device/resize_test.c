/* SPDX-License-Identifier: BSD-2-Clause */
/* resize_test.c: a unit whose backstore gets another size while it is
 * served. */
#include "backstore/filter.h"
#include "dev_messages.h"

/* Memory of which the test shows a part; a READ waits until the test releases
 * the READ. */
struct resizable {
	struct bs bs;
	struct bs *next;
	uint64_t size;
	unsigned resizes;
	int fails;
	bool holds;
	struct bs_req *held;
};

static struct resizable *resizable;

static void resizable_submit(struct bs *b, struct bs_req *req)
{
	struct resizable *s = container_of(b, struct resizable, bs);

	if (req->op == BS_RESIZE) {
		s->resizes++;
		if (!s->fails)
			s->size = req->size_now;
		bs_complete(req, s->fails);
	} else if (req->op == BS_SIZE) {
		req->size_now = s->size;
		bs_complete(req, 0);
	} else if (req->op == BS_READ && s->holds) {
		s->held = req;
	} else {
		bs_forward(s->next, req);
	}
}

static void resizable_close(struct bs *b)
{
	struct resizable *s = container_of(b, struct resizable, bs);

	bs_close(s->next);
	free(s);
}

static const struct bs_ops resizable_ops = {
	.submit = resizable_submit,
	.lend = bs_lend_unsupported,
	.close = resizable_close,
};

#define HALF (FX_BLOCKS / 2)

static int open_resizable(void **state)
{
	struct resizable *s = calloc(1, sizeof(*s));

	(void)state;
	memset(R, 0, sizeof(*R));
	assert_non_null(s);
	s->next = fx_ram(R);
	bs_filter_init(&s->bs, &resizable_ops, s->next);
	s->bs.caps |= BS_CAP_SIZE | BS_CAP_RESIZE;
	s->bs.size = s->size = HALF * FX_BLOCK;
	resizable = s;
	nmessages = 0;
	R->post = hold_post;
	fx_open(R, &s->bs, false);
	fx_take_attentions(R);
	return 0;
}

static int close_resizable(void **state)
{
	run_out();
	assert_false(dev_server_is_busy(R->server));
	return close_fixture(state);
}

#define S(name) \
 cmocka_unit_test_setup_teardown(name, open_resizable, close_resizable)

static int ended; /* 1: the resize has not ended */

static void done(void *arg, int err)
{
	(void)arg;
	ended = err;
}

static int resize(uint64_t blocks, bool force)
{
	int err;

	ended = 1;
	err = dev_lu_resize(dev_lu_get(R->server, 0), blocks * FX_BLOCK, force,
			    done, NULL);
	run_out();
	return err;
}

/* SBC-3 §4.5: every initiator gets an attention, because no command caused the
 * change. */
static void expect_attentions(void)
{
	for (int i = 0; i < 2; i++) {
		fx_test(R);
		assert_check(SENSE_UNIT_ATTENTION, ASC_CAPACITY_CHANGED);
		assert_int_equal(fx_test(R), SCSI_GOOD);
		fx_swap(R);
	}
}

static uint64_t capacity(void)
{
	if (CMD(0, 32, NULL, 0x9e, 0x10, [13] = 32) < 0) {
		run_out();
		assert_true(R->done);
		fx_finish(R);
	}
	assert_int_equal(R->task.status, SCSI_GOOD);
	return get_be64(R->in) + 1;
}

static int read_last(uint64_t blocks)
{
	uint8_t cdb[10] = { 0x28, [8] = 1 };

	put_be32(cdb + 2, (uint32_t)blocks - 1);
	return fx_run(R, cdb, 10, NULL, 0, FX_BLOCK);
}

static void test_grows(void **state)
{
	(void)state;
	assert_int_equal(read_last(FX_BLOCKS), SCSI_CHECK_CONDITION);
	assert_int_equal(resize(FX_BLOCKS, false), 0);
	assert_int_equal(ended, 0);
	expect_attentions();
	assert_int_equal(capacity(), FX_BLOCKS);
	assert_int_equal(read_last(FX_BLOCKS), SCSI_GOOD);
}

static void test_shrinks_by_force_only(void **state)
{
	(void)state;
	assert_int_equal(resize(HALF / 2, false), ERR_DENIED);
	assert_int_equal(resizable->resizes, 0);
	assert_int_equal(resize(HALF / 2, true), 0);
	assert_int_equal(ended, 0);
	expect_attentions();
	assert_int_equal(read_last(HALF), SCSI_CHECK_CONDITION);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	assert_int_equal(capacity(), HALF / 2);
}

/* Another program changed the size: the unit takes the new size. */
static void test_size_changed_by_another_program(void **state)
{
	(void)state;
	resizable->size = FX_BLOCKS * FX_BLOCK;
	assert_int_equal(resize(0, false), 0);
	assert_int_equal(ended, 0);
	assert_int_equal(resizable->resizes, 0);
	expect_attentions();
	assert_int_equal(resize(0, false), 0); /* no change, no attention */
	assert_int_equal(fx_test(R), SCSI_GOOD);
}

static void test_waits_for_commands(void **state)
{
	(void)state;
	resizable->holds = true;
	assert_int_equal(read_last(HALF), -1);
	assert_int_equal(resize(1, true), 0);
	assert_int_equal(resizable->resizes, 0);
	assert_int_equal(ended, 1);
	bs_forward(resizable->next, resizable->held);
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	run_out();
	assert_int_equal(ended, 0);
	resizable->holds = false;
	expect_attentions();
}

/* SBC-3 §4.5: blocks that a resize removes between the check of a command and
 * its data. */
static void test_blocks_go_before_the_data(void **state)
{
	uint8_t write[10] = { 0x2a, [8] = 1 };
	uint8_t status[16] = { 0x9e, 0x12, [13] = 24 };
	static const uint8_t data[FX_BLOCK];

	(void)state;
	put_be32(write + 2, HALF - 1);
	fx_begin(R, write, 10, FX_BLOCK, 0);
	assert_int_equal(resize(HALF / 2, true), 0);
	fx_execute(R, data);
	run_out();
	assert_int_equal(fx_finish(R), SCSI_CHECK_CONDITION);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	expect_attentions();
	put_be64(status + 2, HALF / 2 - 1);
	fx_begin(R, status, 16, 0, 24);
	assert_int_equal(resize(1, true), 0);
	fx_execute(R, NULL);
	run_out();
	assert_int_equal(fx_finish(R), SCSI_CHECK_CONDITION);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	expect_attentions();
}

static void test_that_fails(void **state)
{
	struct dev_lu *lu = dev_lu_get(R->server, 0);

	(void)state;
	resizable->fails = ERR_NO_SPACE;
	assert_int_equal(resize(FX_BLOCKS, false), 0);
	assert_int_equal(ended, ERR_NO_SPACE);
	assert_int_equal(fx_test(R), SCSI_GOOD);
	assert_int_equal(dev_lu_resize(lu, 1000, true, done, NULL), ERR_RANGE);
	resizable->bs.caps &= ~BS_CAP_RESIZE;
	assert_int_equal(resize(FX_BLOCKS, false), ERR_UNSUPPORTED);
	assert_int_equal(capacity(), HALF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		S(test_grows),
		S(test_shrinks_by_force_only),
		S(test_size_changed_by_another_program),
		S(test_waits_for_commands),
		S(test_that_fails),
		S(test_blocks_go_before_the_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
