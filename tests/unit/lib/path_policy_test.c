/* SPDX-License-Identifier: BSD-2-Clause */
/* path_policy_test.c: which path gets a command, and which commands another path
 * gets. */
#include "cmocka_all.h"
#include "lib/internal.h"
#include "lib/path/policy.h"
#include "scsi/cdb.h"

#define N 3

struct paths {
	struct lib_policy policy;
	struct lib_candidate c[N];
};

/* All paths are ready, with these access states. */
static struct paths make(enum lib_balance balance, bool is_manual, uint8_t a,
			 uint8_t b, uint8_t c)
{
	const uint8_t access[N] = { a, b, c };
	struct paths p = { .policy = { .balance = balance,
				       .is_manual = is_manual,
				       .last = N - 1 } };

	for (unsigned i = 0; i < N; i++)
		p.c[i] = (struct lib_candidate){ .is_ready = true,
						 .access = access[i],
						 .depth = 4 };
	lib_policy_update(&p.policy, p.c, N);
	return p;
}

static int choose(struct paths *p)
{
	return lib_policy_choose(&p->policy, p->c, N);
}

static bool update(struct paths *p)
{
	return lib_policy_update(&p->policy, p->c, N);
}

/* SPC-4 §5.16: optimized first, then non-optimized, then LBA dependent; the other
 * states carry no commands. */
static void test_rank(void **state)
{
	static const struct {
		uint8_t access;
		unsigned rank;
	} rows[] = {
		{ LIB_OPTIMIZED, 3 },	  { LIB_NON_OPTIMIZED, 2 },
		{ LIB_LBA_DEPENDENT, 1 }, { LIB_STANDBY, 0 },
		{ LIB_UNAVAILABLE, 0 },	  { LIB_OFFLINE, 0 },
		{ LIB_TRANSITIONING, 0 }, { 7, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lib_candidate c = { .is_ready = true,
					   .access = rows[i].access };

		assert_int_equal(lib_path_rank(&c), rows[i].rank);
		c.is_ready = false;
		assert_int_equal(lib_path_rank(&c), 0);
	}
}

static void test_round_robin_takes_turns_among_the_best(void **state)
{
	struct paths p = make(LIB_ROUND_ROBIN, false, LIB_OPTIMIZED,
			      LIB_NON_OPTIMIZED, LIB_OPTIMIZED);

	(void)state;
	assert_int_equal(choose(&p), 0);
	assert_int_equal(choose(&p), 2);
	assert_int_equal(choose(&p), 0);
	p.c[0].is_ready = false;
	assert_true(update(&p));
	assert_int_equal(choose(&p), 2);
	assert_int_equal(choose(&p), 2);
	p.c[2].access = LIB_STANDBY;
	assert_true(update(&p));
	assert_int_equal(choose(&p), 1);
	p.c[1].access = LIB_TRANSITIONING;
	assert_false(update(&p));
	assert_int_equal(choose(&p), -1);
}

/* A worse path does not get commands because the better ones are full. */
static void test_full_paths_make_commands_wait(void **state)
{
	struct paths p = make(LIB_ROUND_ROBIN, false, LIB_OPTIMIZED,
			      LIB_NON_OPTIMIZED, LIB_OPTIMIZED);

	(void)state;
	p.c[0].in_progress = 4;
	assert_int_equal(choose(&p), 2);
	assert_int_equal(choose(&p), 2);
	p.c[2].in_progress = 4;
	assert_int_equal(choose(&p), -1);
	p.c[0].in_progress = 3;
	assert_int_equal(choose(&p), 0);
}

static void test_queue_length(void **state)
{
	struct paths p = make(LIB_QUEUE_LENGTH, false, LIB_OPTIMIZED,
			      LIB_OPTIMIZED, LIB_OPTIMIZED);

	(void)state;
	p.c[0].in_progress = 3;
	p.c[1].in_progress = 1;
	p.c[2].in_progress = 2;
	assert_int_equal(choose(&p), 1);
	p.c[1].in_progress = 2;
	assert_int_equal(choose(&p), 2);
	assert_int_equal(choose(&p), 1);
}

static void test_failover_uses_one_path(void **state)
{
	struct paths p = make(LIB_FAILOVER, false, LIB_OPTIMIZED, LIB_OPTIMIZED,
			      LIB_NON_OPTIMIZED);

	(void)state;
	assert_int_equal(choose(&p), 0);
	assert_int_equal(choose(&p), 0);
	assert_true(lib_policy_is_used(&p.policy, p.c, N, 0));
	assert_false(lib_policy_is_used(&p.policy, p.c, N, 1));
	p.c[1].preferred = true;
	assert_int_equal(choose(&p), 1);
	p.c[1].is_ready = false;
	update(&p);
	assert_int_equal(choose(&p), 0);
	p.c[0].in_progress = 4;
	assert_int_equal(choose(&p), -1);
}

/* failback=manual: the path that took over keeps the commands. */
static void test_manual_failback(void **state)
{
	struct paths p = make(LIB_ROUND_ROBIN, true, LIB_OPTIMIZED,
			      LIB_NON_OPTIMIZED, LIB_STANDBY);

	(void)state;
	assert_int_equal(choose(&p), 0);
	p.c[0].is_ready = false;
	update(&p);
	assert_int_equal(choose(&p), 1);
	p.c[0].is_ready = true;
	update(&p);
	assert_int_equal(choose(&p), 1);
	assert_false(lib_policy_is_used(&p.policy, p.c, N, 0));
	lib_policy_fail_back(p.c, N);
	update(&p);
	assert_int_equal(choose(&p), 0);
	/* when the one in use is lost, too, the parked path is better than
	 * none */
	p.c[0].is_ready = false;
	update(&p);
	p.c[0].is_ready = true;
	p.c[1].is_ready = false;
	assert_true(update(&p));
	assert_int_equal(choose(&p), 0);
}

/* A path that is not better than those in use joins them. */
static void test_manual_failback_among_equals(void **state)
{
	struct paths p = make(LIB_ROUND_ROBIN, true, LIB_OPTIMIZED,
			      LIB_OPTIMIZED, LIB_STANDBY);

	(void)state;
	p.c[0].is_ready = false;
	update(&p);
	p.c[0].is_ready = true;
	update(&p);
	assert_int_equal(choose(&p), 0);
	assert_int_equal(choose(&p), 1);

	p = make(LIB_FAILOVER, true, LIB_OPTIMIZED, LIB_OPTIMIZED, LIB_STANDBY);
	assert_int_equal(choose(&p), 0);
	p.c[0].is_ready = false;
	update(&p);
	assert_int_equal(choose(&p), 1);
	p.c[0].is_ready = true;
	update(&p);
	assert_int_equal(choose(&p), 1);
}

/* Random events: a chosen path carries commands and has room; with
 * failback=immediate it is one of the best; commands wait only where they must. */
static void test_random_events(void **state)
{
	static const uint8_t access[] = { LIB_OPTIMIZED, LIB_NON_OPTIMIZED,
					  LIB_STANDBY, LIB_TRANSITIONING };
	uint32_t x = 1;

	(void)state;
	for (unsigned run = 0; run < 20000; run++) {
		struct paths p =
			make((enum lib_balance)(run % 3), run & 4, 0, 1, 2);

		for (unsigned step = 0; step < 8; step++) {
			unsigned i, best = 0;
			bool has_room = false;
			int at;

			x = x * 1664525u + 1013904223u;
			i = (x >> 8) % N;
			if (x & 0x10000)
				p.c[i].is_ready = x & 0x20000;
			if (x & 0x40000)
				p.c[i].access = access[x >> 20 & 3];
			p.c[i].in_progress = x >> 24 & 7;
			assert_int_equal(update(&p),
					 lib_path_rank(&p.c[0]) ||
						 lib_path_rank(&p.c[1]) ||
						 lib_path_rank(&p.c[2]));
			at = choose(&p);
			for (unsigned k = 0; k < N; k++) {
				unsigned r = lib_path_rank(&p.c[k]);

				best = MAX(best, r);
				has_room |= lib_policy_is_used(&p.policy, p.c,
							       N, k) &&
					    p.c[k].in_progress < 4;
				assert_false(lib_policy_is_used(&p.policy, p.c,
								N, k) &&
					     !r);
			}
			assert_int_equal(at >= 0, has_room);
			if (at < 0)
				continue;
			assert_true(lib_path_rank(&p.c[at]) > 0);
			assert_true(p.c[at].in_progress < 4);
			assert_true(lib_policy_is_used(&p.policy, p.c, N,
						       (unsigned)at));
			if (!p.policy.is_manual)
				assert_int_equal(lib_path_rank(&p.c[at]), best);
		}
	}
}

/* ---- commands ---- */

static struct iser_io ended(uint8_t opcode, int err, int cause)
{
	return (struct iser_io){
		.cdb = { opcode }, .cdb_len = 10, .err = err, .cause = cause
	};
}

static struct iser_io condition(uint8_t key, uint16_t asc)
{
	struct iser_io io = ended(SCSI_WRITE_10, ISER_E_SCSI, 0);
	const struct scsi_sense sense = { .key = key, .asc = asc };

	io.status = 2;
	io.sense_len = (uint16_t)scsi_sense_build(&sense, false, io.sense);
	return io;
}

static void check(struct iser_io io, bool may_repeat, bool has_other,
		  enum lib_verdict verdict, enum lib_effect effect)
{
	struct lib_decision d = lib_path_decide(&io, may_repeat, has_other);

	assert_int_equal(d.verdict, verdict);
	assert_int_equal(d.effect, effect);
}

static void test_loss(void **state)
{
	const int closed = ISER_E_CLOSED, late = ISER_E_TIMEOUT;

	(void)state;
	/* executed twice or late, a READ changes nothing */
	check(ended(SCSI_READ_10, closed, ERR_CLOSED), true, true, LIB_AGAIN,
	      LIB_PATH_LOST);
	check(ended(SCSI_SYNCHRONIZE_CACHE_10, late, ERR_TIMEOUT), true, true,
	      LIB_AGAIN, LIB_PATH_LOST);
	/* executed late, a WRITE undoes a later one */
	check(ended(SCSI_WRITE_10, closed, ERR_RESET), true, true, LIB_HOLD,
	      LIB_PATH_LOST);
	check(ended(SCSI_WRITE_16, late, ERR_TIMEOUT), true, true, LIB_HOLD,
	      LIB_PATH_LOST);
	check(ended(SCSI_UNMAP, closed, ERR_CLOSED), true, true, LIB_HOLD,
	      LIB_PATH_LOST);
	check(ended(SCSI_WRITE_SAME_16, closed, ERR_CLOSED), true, true,
	      LIB_HOLD, LIB_PATH_LOST);
	/* must not be executed twice */
	check(ended(SCSI_COMPARE_AND_WRITE, closed, ERR_CLOSED), true, true,
	      LIB_DELIVER, LIB_PATH_LOST);
	check(ended(SCSI_PERSISTENT_RESERVE_OUT, closed, ERR_CLOSED), true,
	      true, LIB_DELIVER, LIB_PATH_LOST);
	/* ... except one that was never sent */
	check(ended(SCSI_COMPARE_AND_WRITE, closed, 0), true, true, LIB_AGAIN,
	      LIB_PATH_LOST);
	/* too often */
	check(ended(SCSI_READ_10, closed, ERR_CLOSED), false, true, LIB_DELIVER,
	      LIB_PATH_LOST);
	check(ended(SCSI_WRITE_10, closed, 0), false, true, LIB_DELIVER,
	      LIB_PATH_LOST);
}

/* SPC-4 §5.16.2.4: a command that the unit refuses for its access state was not
 * executed. */
static void test_access_states(void **state)
{
	static const struct {
		uint16_t asc;
		uint8_t access;
	} rows[] = {
		{ ASC_PORT_IN_STANDBY, LIB_STANDBY },
		{ ASC_PORT_UNAVAILABLE, LIB_UNAVAILABLE },
		{ ASC_ACCESS_TRANSITION, LIB_TRANSITIONING },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iser_io io = condition(SENSE_NOT_READY, rows[i].asc);
		struct lib_decision d = lib_path_decide(&io, true, false);

		assert_int_equal(d.verdict, LIB_AGAIN);
		assert_int_equal(d.effect, LIB_PATH_REFUSES);
		assert_int_equal(d.access, rows[i].access);
		check(io, false, true, LIB_DELIVER, LIB_PATH_REFUSES);
		io.no_retry = true;
		check(io, true, true, LIB_DELIVER, LIB_PATH_REFUSES);
	}
	check(condition(SENSE_NOT_READY, ASC_MEDIUM_NOT_PRESENT), true, true,
	      LIB_DELIVER, LIB_PATH_FINE);
	check(condition(SENSE_ILLEGAL_REQUEST, ASC_LUN_NOT_SUPPORTED), true,
	      true, LIB_AGAIN, LIB_PATH_NO_UNIT);
	check(condition(SENSE_ILLEGAL_REQUEST, ASC_LUN_NOT_SUPPORTED), true,
	      false, LIB_DELIVER, LIB_PATH_NO_UNIT);
	check(condition(SENSE_MEDIUM_ERROR, ASC_WRITE_ERROR), true, true,
	      LIB_DELIVER, LIB_PATH_FINE);
}

/* Another path might accept the command: that would mask the reservation. */
static void test_reservation_conflict_is_the_callers(void **state)
{
	struct iser_io io = ended(SCSI_WRITE_10, ISER_E_SCSI, 0);

	(void)state;
	io.status = 0x18;
	check(io, true, true, LIB_DELIVER, LIB_PATH_FINE);
}

static void test_dropped_by_the_target(void **state)
{
	(void)state;
	check(ended(SCSI_WRITE_10, ISER_E_ABORTED, ERR_ABORTED), true, true,
	      LIB_AGAIN, LIB_PATH_FINE);
	check(ended(SCSI_COMPARE_AND_WRITE, ISER_E_ABORTED, ERR_ABORTED), true,
	      true, LIB_DELIVER, LIB_PATH_FINE);
	check(ended(SCSI_READ_10, ISER_E_ABORTED, ERR_ABORTED), false, true,
	      LIB_DELIVER, LIB_PATH_FINE);
	check(ended(SCSI_READ_10, ISER_E_SHORT, ERR_SHORT), true, true,
	      LIB_DELIVER, LIB_PATH_FINE);
	check(ended(SCSI_READ_10, 0, 0), true, true, LIB_DELIVER,
	      LIB_PATH_FINE);
}

/* The same with a status, where TAS is 1 (SAM-5 §5.3.1). */
static void test_task_aborted(void **state)
{
	struct iser_io io = ended(SCSI_WRITE_10, ISER_E_SCSI, 0);

	(void)state;
	io.status = 0x40;
	check(io, true, true, LIB_AGAIN, LIB_PATH_FINE);
	check(io, false, true, LIB_DELIVER, LIB_PATH_FINE);
	io.no_retry = true;
	check(io, true, true, LIB_DELIVER, LIB_PATH_FINE);
	io = ended(SCSI_COMPARE_AND_WRITE, ISER_E_SCSI, 0);
	io.status = 0x40;
	check(io, true, true, LIB_DELIVER, LIB_PATH_FINE);
}

/* The path leads to another unit: the right one gets the command, unless that unit may
 * have executed it before and must not do so twice. */
static void test_other_unit(void **state)
{
	(void)state;
	check(ended(SCSI_WRITE_10, ISER_E_CHANGED, 0), true, true, LIB_AGAIN,
	      LIB_PATH_FINE);
	check(ended(SCSI_COMPARE_AND_WRITE, ISER_E_CHANGED, 0), true, true,
	      LIB_AGAIN, LIB_PATH_FINE);
	check(ended(SCSI_WRITE_10, ISER_E_CHANGED, ERR_ABORTED), true, true,
	      LIB_AGAIN, LIB_PATH_FINE);
	check(ended(SCSI_COMPARE_AND_WRITE, ISER_E_CHANGED, ERR_ABORTED), true,
	      true, LIB_DELIVER, LIB_PATH_FINE);
	check(ended(SCSI_WRITE_10, ISER_E_CHANGED, 0), false, true, LIB_DELIVER,
	      LIB_PATH_FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank),
		cmocka_unit_test(test_round_robin_takes_turns_among_the_best),
		cmocka_unit_test(test_full_paths_make_commands_wait),
		cmocka_unit_test(test_queue_length),
		cmocka_unit_test(test_failover_uses_one_path),
		cmocka_unit_test(test_manual_failback),
		cmocka_unit_test(test_manual_failback_among_equals),
		cmocka_unit_test(test_random_events),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_access_states),
		cmocka_unit_test(test_reservation_conflict_is_the_callers),
		cmocka_unit_test(test_dropped_by_the_target),
		cmocka_unit_test(test_task_aborted),
		cmocka_unit_test(test_other_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
