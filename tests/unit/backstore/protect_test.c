/* SPDX-License-Identifier: BSD-2-Clause */
/* protect_test.c: a store with protection information: the requests to its two
 * stores and their order, and the state after a power failure between any two
 * of them. */
#include "backstore/protect.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/pi.h"
#include "cmocka_all.h"
#include "req.h"

#define BLOCK	512u
#define SIZE	(40u << 20) /* two regions and a half */
#define PI_SIZE (PROTECT_PI_AT + SIZE / BLOCK * PI_LEN)

/* Memory that outlives the stores: the media. */
static uint8_t *data, *pi;

/* ---- what goes to the media, in its order ---- */

struct event {
	bool to_pi;
	enum bs_op op;
	unsigned flags;
	uint64_t off, len;
};

static struct event log_[256];
static unsigned nlog;
static unsigned power; /* changes until the power fails */

static void note(bool to_pi, const struct bs_req *req)
{
	if (nlog < ARRAY_LEN(log_))
		log_[nlog++] = (struct event){ to_pi, req->op, req->flags,
					       req->off, req->len };
}

/* A medium that fails every request, unchanged, after the power failure. */
struct medium {
	struct bs bs;
	struct bs *next;
	bool is_pi;
};

static void medium_submit(struct bs *b, struct bs_req *req)
{
	struct medium *m = container_of(b, struct medium, bs);
	bool changes = req->op == BS_WRITE || req->op == BS_ZERO ||
		       req->op == BS_UNMAP;

	note(m->is_pi, req);
	if (changes && power-- == 0) {
		power = 0;
		bs_complete(req, ERR_MEDIUM);
		return;
	}
	bs_forward(m->next, req);
}

static void medium_close(struct bs *b)
{
	struct medium *m = container_of(b, struct medium, bs);

	bs_close(m->next);
	free(m);
}

static const struct bs_ops medium_ops = {
	.submit = medium_submit,
	.lend = bs_lend_unsupported,
	.close = medium_close,
};

static struct bs *medium(void *memory, uint64_t size, uint32_t block)
{
	struct medium *m = calloc(1, sizeof(*m));

	m->next = bs_ram_new("medium", memory, size, block, NULL, NULL);
	m->bs = *m->next;
	m->bs.ops = &medium_ops;
	m->bs.caps = BS_CAP_FUA | BS_CAP_WRITE_CACHE | BS_CAP_UNMAP;
	m->is_pi = block == PROTECT_GRAIN;
	return &m->bs;
}

static const uint8_t whose[16] = { 1, 2, 3, 0, 0xff, [15] = 16 };

static struct bs *open_again(uint8_t type)
{
	struct bs_protect_config cfg = {
		.data = medium(data, SIZE, BLOCK),
		.pi = medium(pi, PI_SIZE, PROTECT_GRAIN),
		.type = type,
		.lasting = true,
	};

	memcpy(cfg.of, whose, sizeof(whose));
	power = UINT32_MAX;
	nlog = 0;
	return bs_protect_new(&cfg);
}

static int set_up(void **state)
{
	data = calloc(1, SIZE);
	pi = calloc(1, PI_SIZE);
	*state = open_again(1);
	nlog = 0;
	return 0;
}

static int tear_down(void **state)
{
	if (*state)
		bs_close(*state);
	free(data);
	free(pi);
	return 0;
}

static struct test_req last;

static int run(struct bs *b, enum bs_op op, unsigned flags, uint64_t off,
	       uint64_t len, void *buf)
{
	test_submit(b, &last, op, flags, off, len, buf);
	assert_int_equal(last.done, 1);
	return last.req.result;
}

static void assert_event(unsigned i, bool to_pi, enum bs_op op, unsigned flags,
			 uint64_t off, uint64_t len)
{
	assert_true(i < nlog);
	assert_int_equal(log_[i].to_pi, to_pi);
	assert_int_equal(log_[i].op, op);
	assert_int_equal(log_[i].flags & (BS_FUA | BS_MAY_UNMAP), flags);
	assert_true(log_[i].off == off);
	assert_true(log_[i].len == len);
}

static uint8_t block[BLOCK], blocks[4 * BLOCK];

/* ---- */

static void test_a_mark_is_durable_before_the_first_write(void **state)
{
	struct bs *b = *state;

	memset(blocks, 7, sizeof(blocks));
	assert_int_equal(run(b, BS_WRITE, 0, PROTECT_REGION - 2 * BLOCK,
			     sizeof(blocks), blocks),
			 0);
	assert_event(0, true, BS_WRITE, BS_FUA, PROTECT_MARKS_AT, 16);
	assert_event(1, true, BS_WRITE, 0,
		     PROTECT_PI_AT + (PROTECT_REGION / BLOCK - 2) * 8, 32);
	assert_event(2, false, BS_WRITE, 0, PROTECT_REGION - 2 * BLOCK,
		     sizeof(blocks));
	assert_int_equal(nlog, 3);
	assert_int_equal(b->protection->unsettled, 2);
	nlog = 0; /* one write of the mark is enough */
	assert_int_equal(run(b, BS_WRITE, BS_FUA, 0, BLOCK, block), 0);
	assert_event(0, true, BS_WRITE, BS_FUA, PROTECT_PI_AT, 8);
	assert_event(1, false, BS_WRITE, BS_FUA, 0, BLOCK);
	assert_int_equal(nlog, 2);
}

static void test_flush_covers_both_and_marks_go_at_rest(void **state)
{
	struct bs *b = *state;

	assert_int_equal(run(b, BS_WRITE, 0, 0, BLOCK, block), 0);
	nlog = 0;
	assert_int_equal(run(b, BS_FLUSH, 0, 0, 0, NULL), 0);
	assert_event(0, true, BS_FLUSH, 0, 0, 0);
	assert_event(1, false, BS_FLUSH, 0, 0, 0);
	assert_int_equal(nlog, 2);
	assert_int_equal(pi[PROTECT_MARKS_AT], 1);
	nlog = 0;
	assert_int_equal(run(b, BS_FLUSH, BS_ALONE, 0, 0, NULL), 0);
	assert_event(2, true, BS_ZERO, BS_MAY_UNMAP, PROTECT_MARKS_AT,
		     PROTECT_REGIONS * 8);
	assert_int_equal(pi[PROTECT_MARKS_AT], 0);
	assert_int_equal(b->protection->unsettled, 0);
	nlog = 0; /* the mark is written again before the next write */
	assert_int_equal(run(b, BS_WRITE, 0, 0, BLOCK, block), 0);
	assert_event(0, true, BS_WRITE, BS_FUA, PROTECT_MARKS_AT, 8);
}

static void test_information_of_the_submitter(void **state)
{
	struct bs *b = *state;
	uint8_t mine[2 * PI_LEN], back[2 * PI_LEN];

	for (unsigned i = 0; i < sizeof(mine); i++)
		mine[i] = (uint8_t)(i + 1);
	last = (struct test_req){ .iov = { blocks, 2 * BLOCK },
				  .req = { .op = BS_WRITE,
					   .off = BLOCK,
					   .len = 2 * BLOCK,
					   .pi = mine,
					   .done = test_req_done } };
	last.req.data = bufv_of(&last.iov, 1);
	bs_submit(b, &last.req);
	assert_int_equal(last.req.result, 0);
	last.req.op = BS_READ;
	last.req.pi = back;
	bs_submit(b, &last.req);
	assert_int_equal(last.req.result, 0);
	assert_memory_equal(mine, back, sizeof(mine));
	/* a request without information is checked by the store */
	last.req.pi = NULL;
	bs_submit(b, &last.req);
	assert_int_equal(last.req.result, ERR_PI_GUARD);
	assert_int_equal(last.req.bad_at, BLOCK);
	last.req.flags = BS_PI_UNCHECKED;
	bs_submit(b, &last.req);
	assert_int_equal(last.req.result, 0);
	assert_int_equal(run(b, BS_UNMAP, 0, BLOCK, BLOCK, NULL), 0);
	assert_int_equal(run(b, BS_READ, 0, BLOCK, BLOCK, block), 0);
}

/* Blocks in pieces that do not match blocks. */
static void test_scattered_memory(void **state)
{
	uint8_t mem[4 * BLOCK];
	struct iovec iov[5] = { { mem, 100 },
				{ mem + 100, 700 },
				{ mem + 800, 224 },
				{ mem + 1024, 512 },
				{ mem + 1536, 512 } };

	for (unsigned i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 11 >> 2);
	last = (struct test_req){ .req = { .op = BS_WRITE,
					   .len = sizeof(mem),
					   .data = bufv_of(iov, 5),
					   .done = test_req_done } };
	bs_submit(*state, &last.req);
	assert_int_equal(last.req.result, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(
			(uint16_t)~get_be16(pi + PROTECT_PI_AT + 8 * i),
			pi_guard(mem + i * BLOCK, BLOCK));
	last.req.op = BS_READ;
	bs_submit(*state, &last.req);
	assert_int_equal(last.req.result, 0);
	data[600] ^= 1;
	bs_submit(*state, &last.req);
	assert_int_equal(last.req.result, ERR_PI_GUARD);
	assert_int_equal(last.req.bad_at, BLOCK);
}

/* The power fails before each change of either medium in turn: after the next
 * start every block can be read, and has its old or its new data. */
static void test_power_fails_anywhere(void **state)
{
	bool all = false;

	for (unsigned cut = 0; !all; cut++) {
		struct bs *b = *state;

		assert_true(cut < 20);
		memset(blocks, 1, sizeof(blocks));
		assert_int_equal(run(b, BS_WRITE, 0, PROTECT_REGION - BLOCK,
				     2 * BLOCK, blocks),
				 0);
		assert_int_equal(run(b, BS_FLUSH, BS_ALONE, 0, 0, NULL), 0);
		power = cut;
		memset(blocks, 2, sizeof(blocks));
		all = run(b, BS_WRITE, 0, PROTECT_REGION - BLOCK, 2 * BLOCK,
			  blocks) == 0 &&
		      run(b, BS_UNMAP, 0, PROTECT_REGION, BLOCK, NULL) == 0;
		bs_close(b);
		*state = b = open_again(1);
		assert_int_equal(run(b, BS_MEND, 0, 0, 0, NULL), 0);
		assert_int_equal(pi[PROTECT_MARKS_AT], 0);
		assert_int_equal(run(b, BS_READ, 0, PROTECT_REGION - BLOCK,
				     2 * BLOCK, blocks),
				 0);
		assert_true(blocks[0] == 1 || blocks[0] == 2);
		assert_true(blocks[BLOCK] <= 2);
	}
}

/* Only marked regions are repaired; errors elsewhere stay. */
static void test_mending_keeps_to_marked_regions(void **state)
{
	struct bs *b = *state;

	memset(block, 9, sizeof(block));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(run(b, BS_WRITE, 0, i * PROTECT_REGION, BLOCK,
				     block),
				 0);
	assert_int_equal(run(b, BS_FLUSH, BS_ALONE, 0, 0, NULL), 0);
	assert_int_equal(run(b, BS_WRITE, 0, 2 * PROTECT_REGION + BLOCK, BLOCK,
			     block),
			 0);
	bs_close(b);
	data[0] ^= 1;			       /* rot */
	data[2 * PROTECT_REGION + BLOCK] ^= 1; /* half a write */
	data[SIZE - 1] = 1;		       /* has no information */
	*state = b = open_again(1);
	assert_int_equal(run(b, BS_MEND, 0, 0, 0, NULL), 0);
	assert_int_equal(last.req.mended, 1);
	assert_int_equal(
		run(b, BS_READ, 0, 2 * PROTECT_REGION, 4 * BLOCK, blocks), 0);
	assert_int_equal(run(b, BS_READ, 0, SIZE - BLOCK, BLOCK, block), 0);
	assert_int_equal(run(b, BS_READ, 0, 0, BLOCK, block), ERR_PI_GUARD);
	assert_int_equal(run(b, BS_MEND, 0, 0, 0, NULL), 0);
	assert_int_equal(last.req.mended, 0);
}

/* Killed, without a power failure: repaired data may be in a cache when the
 * power fails after the repair. */
static void test_marks_go_when_both_are_on_the_medium(void **state)
{
	struct bs *b = *state;
	bool flushed[2] = { false };
	unsigned i = 0;

	assert_int_equal(run(b, BS_WRITE, 0, 0, BLOCK, block), 0);
	bs_close(b);
	*state = b = open_again(1);
	assert_int_equal(run(b, BS_MEND, 0, 0, 0, NULL), 0);
	for (; i < nlog && log_[i].op != BS_ZERO; i++)
		flushed[log_[i].to_pi] |= log_[i].op == BS_FLUSH;
	assert_event(i, true, BS_ZERO, BS_MAY_UNMAP, PROTECT_MARKS_AT,
		     PROTECT_REGIONS * 8);
	assert_true(flushed[true]);
	assert_true(flushed[false]);
}

static void test_type_comes_last_when_it_changes(void **state)
{
	struct bs *b = *state;
	struct protect_head h;

	assert_int_equal(run(b, BS_WRITE, 0, 0, BLOCK, block), 0);
	nlog = 0;
	last = (struct test_req){
		.req = { .op = BS_PROTECT, .pi_type = 3, .done = test_req_done }
	};
	bs_submit(b, &last.req);
	assert_int_equal(last.req.result, 0);
	assert_event(0, true, BS_ZERO, BS_MAY_UNMAP, PROTECT_PI_AT,
		     SIZE / BLOCK * 8);
	assert_event(1, true, BS_FLUSH, 0, 0, 0);
	assert_event(2, true, BS_WRITE, BS_FUA, 0, PROTECT_HEAD_LEN);
	assert_int_equal(b->protection->type, 3);
	assert_int_equal(protect_head_get(&h, pi), 0);
	assert_int_equal(h.type, 3);
	assert_int_equal(h.block_size, BLOCK);
	assert_memory_equal(h.of, whose, sizeof(whose)); /* that stays */
	last.req.pi_type = 0; /* a damaged head counts as none */
	bs_submit(b, &last.req);
	nlog = 0;
	assert_int_equal(run(b, BS_WRITE, 0, 0, BLOCK, block), 0);
	assert_event(0, false, BS_WRITE, 0, 0, BLOCK);
	assert_int_equal(nlog, 1);
}

static void test_heads_that_are_none(void **state)
{
	struct protect_head h = { .type = 2, .block_size = 4096 };
	uint8_t p[PROTECT_HEAD_LEN], bad[PROTECT_HEAD_LEN];

	(void)state;
	protect_head_put(&h, p);
	for (unsigned bit = 0; bit < 8 * sizeof(p); bit++) {
		memcpy(bad, p, sizeof(p));
		bad[bit / 8] ^= (uint8_t)BIT(bit % 8);
		assert_int_not_equal(protect_head_get(&h, bad), 0);
	}
	h.type = 4; /* a valid CRC, but an invalid type */
	protect_head_put(&h, p);
	assert_int_equal(protect_head_get(&h, p), ERR_FORMAT);
}

static void test_others_have_none(void **state)
{
	struct bs *b = bs_ram_new("ram", data, SIZE, BLOCK, NULL, NULL);

	(void)state;
	assert_int_equal(run(b, BS_PROTECT, 0, 0, 0, NULL), ERR_UNSUPPORTED);
	assert_int_equal(run(b, BS_MEND, 0, 0, 0, NULL), ERR_UNSUPPORTED);
	bs_close(b);
}

#define P(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(test_a_mark_is_durable_before_the_first_write),
		P(test_flush_covers_both_and_marks_go_at_rest),
		P(test_information_of_the_submitter),
		P(test_scattered_memory),
		P(test_power_fails_anywhere),
		P(test_mending_keeps_to_marked_regions),
		P(test_marks_go_when_both_are_on_the_medium),
		P(test_type_comes_last_when_it_changes),
		P(test_heads_that_are_none),
		P(test_others_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
