/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flush_test.c: a failed flush concerns all initiators with writes before that
 * flush. The backstore behaves like a file of Linux: the failure is reported
 * once, to the caller of that flush, and the next flush succeeds.
 */
#include <stdio.h>

#include "backstore/filter.h"
#include "dev_case.h"

/* A backstore with a volatile cache above memory. */
struct cached {
	struct bs bs;
	struct bs *next;
	unsigned failing; /* the number of next flushes that fail */
	unsigned flushes;
	enum bs_op holds; /* the operation that waits; BS_REKEY: none */
	struct bs_req *held[4];
	unsigned nheld;
};

static struct cached *cache;

static void cached_now(struct cached *c, struct bs_req *req)
{
	if (req->op != BS_FLUSH) {
		bs_forward(c->next, req);
		return;
	}
	c->flushes++;
	if (!c->failing) {
		bs_complete(req, 0);
		return;
	}
	c->failing--;
	bs_flush_failed(&c->bs);
	bs_complete(req, ERR_MEDIUM);
}

static void cached_submit(struct bs *b, struct bs_req *req)
{
	struct cached *c = container_of(b, struct cached, bs);

	if (req->op == c->holds)
		c->held[c->nheld++] = req;
	else
		cached_now(c, req);
}

static void cached_close(struct bs *b)
{
	struct cached *c = container_of(b, struct cached, bs);

	bs_close(c->next);
	free(c);
}

static const struct bs_ops cached_ops = {
	.submit = cached_submit,
	.lend = bs_lend_unsupported,
	.close = cached_close,
};

static struct bs *cached_new(struct bs *next)
{
	struct cached *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	bs_filter_init(&c->bs, &cached_ops, next);
	c->bs.caps = (c->bs.caps | BS_CAP_WRITE_CACHE) & ~BS_CAP_FUA;
	c->bs.failures[0] = &c->bs.own_failures;
	c->next = next;
	c->holds = BS_REKEY;
	cache = c;
	return &c->bs;
}

static uint64_t clock_ms;

static uint64_t wall(void *arg)
{
	(void)arg;
	return clock_ms;
}

static int open_over(struct bs *store)
{
	R->two_initiators = true;
	R->wall_ms = wall;
	clock_ms = 1000000;
	fx_open(R, store, false);
	fx_take_attentions(R);
	return 0;
}

static int open_cached(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	return open_over(cached_new(fx_ram(R)));
}

#define C(name) \
 cmocka_unit_test_setup_teardown(name, open_cached, close_fixture)

static struct dev_lu *unit(void)
{
	return dev_lu_get(R->server, 0);
}

/* ---- commands of the current initiator ---- */

static const uint8_t data[4 * FX_BLOCK] = { 7 };

static int put(void)
{
	return CMD(FX_BLOCK, 0, data, 0x2a, [8] = 1);
}

static int put_fua(void)
{
	return CMD(FX_BLOCK, 0, data, 0x2a, 0x08, [8] = 1);
}

static int flush(void)
{
	return CMD(0, 0, NULL, 0x35);
}

static void is_good(int status)
{
	assert_int_equal(status, SCSI_GOOD);
}

/* WRITE ERROR without an LBA: a failed flush names no block. */
static void is_lost(int status)
{
	assert_int_equal(status, SCSI_CHECK_CONDITION);
	assert_check(SENSE_MEDIUM_ERROR, ASC_WRITE_ERROR);
	assert_false(R->sense.has_info);
	clock_ms += 1000;
}

/* The flush of the other initiator fails. */
static void other_fails(void)
{
	fx_swap(R);
	cache->failing = 1;
	is_lost(flush());
	assert_int_equal(cache->failing, 0);
	fx_swap(R);
}

static void test_all_writers_learn_of_it(void **state)
{
	(void)state;
	is_good(put());
	other_fails();
	is_lost(flush());
	is_good(flush());
}

static void test_a_flush_settles_what_was_before(void **state)
{
	(void)state;
	is_good(put());
	is_good(flush());
	other_fails();
	is_good(flush()); /* no write since the report */
	is_good(put());
	is_good(flush());
}

static void test_a_write_after_the_failure_is_not_lost(void **state)
{
	(void)state;
	other_fails();
	is_good(put());
	is_good(flush());
}

static void test_fua_reports_a_failed_flush(void **state)
{
	(void)state;
	is_good(put());
	other_fails();
	is_lost(put_fua());
	is_good(put_fua());
	is_good(flush());
}

/* A FUA write that flushes the whole backstore fails for all initiators. */
static void test_fua_fails_for_all(void **state)
{
	(void)state;
	is_good(put());
	fx_swap(R);
	cache->failing = 1;
	is_lost(put_fua());
	fx_swap(R);
	is_lost(flush());
	is_good(flush());
}

/* A FUA write makes only its own blocks durable. */
static void test_fua_settles_nothing(void **state)
{
	(void)state;
	is_good(put());
	is_good(put_fua());
	other_fails();
	is_lost(flush());
}

/* SBC-3 §6.4.5: with WCE = 0 each write is durable at its end. */
static void write_through(void)
{
	uint8_t page[24] = { 0 };

	is_good(CMD(0, 24, NULL, 0x1a, 0x08, 0x08, [4] = 24));
	memcpy(page + 4, R->in + 4, 20);
	page[4] &= 0x3f;
	page[6] &= (uint8_t)~0x04;
	is_good(CMD(24, 0, page, 0x15, 0x10, [4] = 24));
	fx_swap(R);
	fx_test(R); /* MODE PARAMETERS CHANGED */
	fx_swap(R);
}

static void test_write_through(void **state)
{
	const uint8_t unmap[24] = { [1] = 22, [3] = 16, [19] = 1 };
	unsigned n;

	(void)state;
	fx_swap(R);
	is_good(put());
	fx_swap(R);
	write_through();
	cache->failing = 1;
	is_lost(put());
	is_good(put());
	fx_swap(R);
	is_lost(put());
	is_good(put());
	n = cache->flushes;
	is_good(CMD(24, 0, unmap, 0x42, [8] = 24));
	assert_int_equal(cache->flushes, n + 1);
	cache->failing = 1;
	is_lost(CMD(24, 0, unmap, 0x42, [8] = 24));
}

static void test_every_command_that_writes(void **state)
{
	static const uint8_t list[24] = { [1] = 22, [3] = 16, [19] = 1 };
	static const uint8_t blank[2 * FX_BLOCK];

	(void)state;
	for (int i = 0; i < 8; i++) {
		switch (i) {
		case 0:
			is_good(CMD(FX_BLOCK, 0, data, 0x0a, [4] = 1));
			break;
		case 1:
			is_good(CMD(FX_BLOCK, 0, data, 0xaa, [9] = 1));
			break;
		case 2:
			is_good(CMD(FX_BLOCK, 0, data, 0x8a, [13] = 1));
			break;
		case 3: /* UNMAP */
			is_good(CMD(24, 0, list, 0x42, [8] = 24));
			break;
		case 4: /* WRITE SAME of data and of zeros */
			is_good(CMD(FX_BLOCK, 0, data, 0x93, [13] = 2));
			break;
		case 5:
			is_good(CMD(FX_BLOCK, 0, blank, 0x93, [13] = 2));
			break;
		case 6: /* COMPARE AND WRITE */
			is_good(CMD(2 * FX_BLOCK, 0, blank, 0x89, [13] = 1));
			break;
		default: /* ORWRITE */
			is_good(CMD(FX_BLOCK, 0, data, 0x8b, [13] = 1));
			break;
		}
		other_fails();
		is_lost(flush());
		is_good(flush());
	}
}

static void test_every_command_that_flushes(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		is_good(put());
		other_fails();
		if (i == 0) /* SYNCHRONIZE CACHE(16) */
			is_lost(CMD(0, 0, NULL, 0x91));
		else if (i == 1) /* START STOP UNIT, stop */
			is_lost(CMD(0, 0, NULL, 0x1b));
		else if (i == 2) /* WRITE AND VERIFY(10) */
			is_lost(CMD(FX_BLOCK, 0, data, 0x2e, [8] = 1));
		else /* READ(10) with FUA */
			is_lost(CMD(0, FX_BLOCK, NULL, 0x28, 0x08, [8] = 1));
		is_good(flush());
	}
}

/* ---- initiators that log in again ---- */

static void end_session(void)
{
	dev_nexus_close(R->nexus);
	R->nexus = NULL;
}

static void log_in(const char *port)
{
	struct dev_nexus_config n = { .target_port = "iqn.t,t,0x0001",
				      .target_name = "iqn.t",
				      .relative_target_port = 1 };

	snprintf(n.initiator_port, sizeof(n.initiator_port), "%s", port);
	R->nexus = dev_nexus_open(R->server, &n);
	assert_non_null(R->nexus);
	fx_test(R); /* POWER ON */
}

static void log_in_again(void)
{
	end_session();
	log_in("iqn.i,i,0x1");
}

static void test_a_new_session_inherits(void **state)
{
	(void)state;
	is_good(put()); /* the flush fails before the session ends */
	other_fails();
	log_in_again();
	is_lost(flush());
	is_good(flush());
	is_good(put()); /* the flush fails after the end of the session, and many other initiators log in and out */
	log_in_again();
	for (int i = 0; i < 1000; i++)
		log_in_again();
	other_fails();
	log_in_again();
	is_lost(put_fua());
	is_good(flush());
	log_in_again();
	is_good(flush());
}

static void test_flush_fails_between_two_sessions(void **state)
{
	(void)state;
	is_good(put());
	end_session();
	R->nexus = R->other;
	cache->failing = 1;
	is_lost(flush());
	is_good(put()); /* flushes succeed again, but the data of A are lost */
	is_good(flush());
	assert_false(dev_lu_flush_failed(unit()));
	log_in("iqn.third,i,0x1");
	is_good(flush()); /* it has no writes */
	end_session();
	log_in("iqn.i,i,0x1");
	is_lost(flush());
	is_good(flush());
}

/* A flush between the end of the session and the failure made all writes
 * durable. */
static void test_flush_between_two_sessions(void **state)
{
	(void)state;
	is_good(put());
	end_session();
	R->nexus = R->other;
	is_good(flush());
	cache->failing = 1;
	is_lost(flush());
	log_in("iqn.i,i,0x1");
	is_good(flush());
}

#define REMEMBERED 64

/* With more ended sessions than the unit remembers, the unit remembers the
 * latest ones. */
static void test_many_ended_sessions(void **state)
{
	char port[32];

	(void)state;
	for (int i = 0; i < 3 * REMEMBERED; i++) {
		end_session();
		snprintf(port, sizeof(port), "iqn.i%d,i,0x1", i);
		log_in(port);
		is_good(put());
	}
	other_fails();
	for (int i = 2 * REMEMBERED; i < 3 * REMEMBERED; i++) {
		end_session();
		snprintf(port, sizeof(port), "iqn.i%d,i,0x1", i);
		log_in(port);
		is_lost(flush());
	}
}

/* ---- concurrent commands ---- */

struct cmd {
	struct dev_task task;
	bool done;
};

static void cmd_done(struct dev_task *t)
{
	container_of(t, struct cmd, task)->done = true;
}

/* start begins a command of 10 bytes by the current initiator. */
static void start(struct cmd *c, uint8_t op)
{
	memset(c, 0, sizeof(*c));
	c->task.nexus = R->nexus;
	c->task.attr = DEV_ATTR_SIMPLE;
	c->task.cdb_len = 16;
	c->task.cdb[0] = op;
	c->task.cdb[8] = op == 0x2a;
	c->task.edtl.out = op == 0x2a ? FX_BLOCK : 0;
	c->task.done = cmd_done;
	assert_int_equal(dev_task_begin(&c->task), 0);
	dev_task_execute(&c->task);
}

static int end(struct cmd *c)
{
	assert_true(c->done);
	R->task.status = c->task.status;
	memset(&R->sense, 0, sizeof(R->sense));
	if (c->task.sense.len)
		scsi_sense_parse(&R->sense, c->task.sense.data,
				 c->task.sense.len);
	dev_task_end(&c->task);
	return c->task.status;
}

static void release_held(unsigned i)
{
	cached_now(cache, cache->held[i]);
}

/* The kernel may lose the page before the write completes. */
static void test_failure_during_a_write(void **state)
{
	struct cmd w;

	(void)state;
	cache->holds = BS_WRITE;
	start(&w, 0x2a);
	other_fails();
	release_held(0);
	is_good(end(&w));
	is_lost(flush());
}

/* Both flushes cover the write: each of them reports the error. */
static void test_two_flushes_at_once(void **state)
{
	struct cmd f[2];

	(void)state;
	is_good(put());
	cache->holds = BS_FLUSH;
	start(&f[0], 0x35);
	start(&f[1], 0x35);
	cache->failing = 1;
	release_held(0);
	release_held(1);
	is_lost(end(&f[0]));
	is_lost(end(&f[1]));
	cache->holds = BS_REKEY;
	is_good(flush());
}

/* The flush of one nexus fails while the flush of another nexus is in
 * progress. */
static void test_a_failure_during_a_flush(void **state)
{
	struct cmd f[2];

	(void)state;
	is_good(put());
	cache->holds = BS_FLUSH;
	start(&f[0], 0x35);
	fx_swap(R);
	start(&f[1], 0x35);
	cache->failing = 1;
	release_held(1);
	release_held(0);
	is_lost(end(&f[0]));
	is_lost(end(&f[1]));
	cache->holds = BS_REKEY;
	is_good(flush());
	fx_swap(R);
	is_good(flush());
}

/* A write that ends during a flush belongs to the next flush. */
static void test_a_write_during_a_flush(void **state)
{
	struct cmd f;

	(void)state;
	cache->holds = BS_FLUSH;
	start(&f, 0x35);
	is_good(put());
	release_held(0);
	is_good(end(&f));
	cache->holds = BS_REKEY;
	other_fails();
	is_lost(flush());
}

static void released(struct dev_task *t)
{
	(void)t;
}

static void test_an_aborted_flush_settles_nothing(void **state)
{
	struct cmd f;

	(void)state;
	is_good(put());
	other_fails();
	cache->holds = BS_FLUSH;
	start(&f, 0x35);
	assert_int_equal(dev_task_abort(&f.task, released), 0);
	release_held(0);
	dev_task_end(&f.task);
	cache->holds = BS_REKEY;
	is_lost(flush());
}

/* ---- Linux repeats a command that ended with WRITE ERROR ---- */

static void test_a_repetition_is_no_new_flush(void **state)
{
	(void)state;
	is_good(put());
	cache->failing = 1;
	for (int i = 0; i < 6; i++) {
		assert_int_equal(flush(), SCSI_CHECK_CONDITION);
		assert_check(SENSE_MEDIUM_ERROR, ASC_WRITE_ERROR);
		is_good(put()); /* other writes of its queue */
		clock_ms += 100;
	}
	clock_ms += 150;
	is_good(put());
	is_good(flush());
}

/* The errors end even for an initiator that repeats without pause. */
static void test_repetitions_end(void **state)
{
	unsigned n = 0;

	(void)state;
	is_good(put());
	cache->failing = 1;
	while (flush() != SCSI_GOOD)
		assert_true(++n < 100);
	is_good(flush());
}

/* ---- the flag of the unit ---- */

static void test_the_unit_says_so(void **state)
{
	(void)state;
	assert_false(dev_lu_flush_failed(unit()));
	is_good(put());
	other_fails();
	assert_true(dev_lu_flush_failed(unit()));
	is_lost(flush());
	is_good(flush());
	assert_true(dev_lu_flush_failed(unit())); /* no new write yet */
	is_good(put());
	assert_true(dev_lu_flush_failed(unit()));
	is_good(flush());
	assert_false(dev_lu_flush_failed(unit()));
}

static void test_forgotten_by_an_administrator(void **state)
{
	(void)state;
	is_good(put());
	other_fails();
	dev_lu_flush_forget(unit());
	assert_false(dev_lu_flush_failed(unit()));
	is_lost(flush()); /* the data are lost even so */
	other_fails();
	assert_true(dev_lu_flush_failed(unit()));
}

static void test_an_ended_session(void **state)
{
	struct dev_nexus_config n = { .initiator_port = "iqn.k,i,0x3",
				      .target_port = "iqn.t,t,0x0001",
				      .target_name = "iqn.t",
				      .relative_target_port = 1 };

	(void)state;
	is_good(put());
	dev_nexus_close(R->nexus);
	R->nexus = dev_nexus_open(R->server, &n);
	assert_non_null(R->nexus);
	fx_test(R);
	other_fails();
	is_good(flush());
	assert_true(dev_lu_flush_failed(unit()));
}

/* Another flush may report the failure of a sanitize's writes. */
static void test_sanitize(void **state)
{
	uint8_t pattern[4 + FX_BLOCK] = { 1, 0, FX_BLOCK >> 8, 0 };
	struct cmd *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	cache->holds = BS_FLUSH;
	c->task.nexus = R->nexus;
	c->task.attr = DEV_ATTR_SIMPLE;
	c->task.cdb_len = 16;
	c->task.cdb[0] = 0x48;
	c->task.cdb[1] = 0x01;
	put_be16(c->task.cdb + 7, sizeof(pattern));
	c->task.edtl.out = sizeof(pattern);
	c->task.done = cmd_done;
	assert_int_equal(dev_task_begin(&c->task), 0);
	bufv_copy_in(&c->task.out, 0, pattern, sizeof(pattern));
	dev_task_execute(&c->task);
	assert_int_equal(cache->nheld, 1);
	bs_flush_failed(&cache->bs);
	release_held(0);
	cache->holds = BS_REKEY;
	assert_int_equal(end(c), SCSI_CHECK_CONDITION);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	free(c);
}

/* ---- filters: data and protection information ---- */

static int open_stack(bool pi_fails)
{
	struct bs_protect_config cfg = { .type = 1 };
	struct bs *b, *pi;

	memset(R, 0, sizeof(*R));
	R->pi = calloc(FX_BLOCKS, 8);
	pi = bs_ram_new("ram:pi", R->pi, FX_BLOCKS * 8, 8, free, R->pi);
	cfg.data = fx_ram(R);
	if (pi_fails)
		cfg.pi = cached_new(pi);
	else
		cfg.data = cached_new(cfg.data);
	if (!pi_fails)
		cfg.pi = pi;
	b = bs_protect_new(&cfg);
	assert_non_null(b);
	return open_over(b);
}

static void test_stacked_stores(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		open_stack(i);
		is_good(put());
		other_fails();
		is_lost(flush());
		is_good(flush());
		fx_close(R);
	}
}

/* ---- random commands, compared with a model of the writes that are not
 * durable ---- */

struct known {
	bool written, lost;
};

static void step(struct known k[2], unsigned what)
{
	bool lost = k[0].lost;

	switch (what) {
	case 0:
		is_good(put());
		k[0].written = true;
		break;
	case 1:
		lost ? is_lost(flush()) : is_good(flush());
		k[0] = (struct known){ 0 };
		break;
	case 2:
		lost ? is_lost(put_fua()) : is_good(put_fua());
		if (lost) /* earlier writes were reported */
			k[0] = (struct known){ 0 };
		break;
	default:
		cache->failing = 1;
		is_lost(what == 3 ? flush() : put_fua());
		k[1].lost |= k[1].written;
		k[1].written = false;
		k[0] = (struct known){ 0 };
		break;
	}
}

static void test_at_random(void **state)
{
	struct known k[2] = { 0 };
	uint32_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct known other = k[1];

		seed = seed * 1664525u + 1013904223u;
		step(k, (seed >> 16) % 5);
		clock_ms += 1000;
		if (seed >> 31)
			continue;
		fx_swap(R);
		other = k[1];
		k[1] = k[0];
		k[0] = other;
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		C(test_all_writers_learn_of_it),
		C(test_a_flush_settles_what_was_before),
		C(test_a_write_after_the_failure_is_not_lost),
		C(test_fua_reports_a_failed_flush),
		C(test_fua_fails_for_all),
		C(test_fua_settles_nothing),
		C(test_write_through),
		C(test_every_command_that_writes),
		C(test_every_command_that_flushes),
		C(test_a_new_session_inherits),
		C(test_flush_fails_between_two_sessions),
		C(test_flush_between_two_sessions),
		C(test_many_ended_sessions),
		C(test_failure_during_a_write),
		C(test_two_flushes_at_once),
		C(test_a_failure_during_a_flush),
		C(test_a_write_during_a_flush),
		C(test_an_aborted_flush_settles_nothing),
		C(test_a_repetition_is_no_new_flush),
		C(test_repetitions_end),
		C(test_the_unit_says_so),
		C(test_forgotten_by_an_administrator),
		C(test_an_ended_session),
		C(test_sanitize),
		cmocka_unit_test(test_stacked_stores),
		C(test_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
