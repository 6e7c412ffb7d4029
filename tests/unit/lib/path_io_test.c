/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path_io_test.c: the commands of a set of paths. The test takes the place of
 * lib_io_submit (the sessions of the paths) and of path/check.c and path/link.c
 * (struct lib_path_ups); it ends each command as a target or a loss would.
 */
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "lib/path/path.h"
#include "scsi/cdb.h"

#define N   2
#define IOS 12

struct fixture {
	struct iser_context *ctx;
	struct iser_session facade, sessions[N];
	struct lib_paths set;
	struct lib_path paths[N];
	struct iser_io io[IOS];
	unsigned done; /* commands that were the caller's again */
	unsigned lost[N], rechecked[N];
};

static struct fixture f;

/* ---- what the set calls ---- */

void __wrap_lib_io_submit(struct iser_session *s, struct iser_io *io);

/* The command is at the session until the test ends it. */
void __wrap_lib_io_submit(struct iser_session *s, struct iser_io *io)
{
	io->session = s;
	lib_io_reset(io);
}

static void on_recheck(struct lib_path *p, bool whole)
{
	(void)whole;
	f.rechecked[p->number]++;
}

static void on_lost(struct lib_path *p, int err, const char *what)
{
	(void)err;
	(void)what;
	f.lost[p->number]++;
	p->state = PATH_LOST;
	f.set.seen[p->number].is_ready = false;
}

static void on_refused(struct lib_path *p, int err)
{
	on_lost(p, err, "");
}

static const struct lib_path_ups ups = { .recheck = on_recheck,
					 .lost = on_lost,
					 .refused = on_refused };

static const struct lib_set_ops set_ops = { .abort = lib_paths_abort };

static void on_done(struct iser_io *io)
{
	assert_ptr_equal(io->session, &f.facade);
	assert_int_equal(io->lun, 3);
	assert_true(io->done == on_done);
	f.done++;
}

/* ---- set-up ---- */

static void set_ready(unsigned i, bool is_ready)
{
	f.paths[i].state = is_ready ? PATH_READY : PATH_DOWN;
	f.set.seen[i].is_ready = is_ready;
	lib_paths_changed(&f.set);
}

static int begin(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	f.ctx = iser_context_new("iqn.2026-01.org.a:b");
	f.facade.ctx = f.ctx;
	lib_default_url(&f.facade.url);
	f.facade.set = &f.set.set;
	assert_int_equal(lib_io_init(&f.facade, lib_io_completed), 0);
	f.set.set.ops = &set_ops;
	f.set.session = &f.facade;
	f.set.ctx = f.ctx;
	f.set.up = &ups;
	f.set.lun = 3;
	f.set.n = N;
	f.set.paths = f.paths;
	f.set.any_ready = true;
	f.set.policy.last = N - 1;
	lib_list_init(&f.set.queue);
	for (unsigned i = 0; i < N; i++) {
		f.paths[i] = (struct lib_path){ .set = &f.set,
						.number = i,
						.session = &f.sessions[i] };
		f.paths[i].url.lun = 10 + (int)i;
		strcpy(f.paths[i].url.host, i ? "two" : "one");
		lib_list_init(&f.paths[i].waiting);
		f.set.seen[i].depth = 4;
		set_ready(i, true);
	}
	lib_paths_timers(&f.set);
	return 0;
}

static int end(void **state)
{
	(void)state;
	f.set.is_ending = true;
	io_timer_clear(f.ctx->loop, &f.set.dark);
	lib_paths_fail(&f.set, ISER_E_CLOSED);
	lib_io_fini(&f.facade);
	iser_context_free(f.ctx);
	return 0;
}

static struct iser_io *submit(unsigned i, uint8_t opcode)
{
	struct iser_io *io = &f.io[i];

	*io = (struct iser_io){
		.lun = 3, .cdb = { opcode }, .cdb_len = 10, .done = on_done
	};
	lib_paths_submit(&f.facade, io);
	return io;
}

/* The path at which a command is; -1: at none. */
static int at(const struct iser_io *io)
{
	for (int i = 0; i < N; i++)
		if (io->session == &f.sessions[i]) {
			assert_int_equal(io->lun, 10 + i);
			return i;
		}
	return -1;
}

/* Ends a command at its path. */
static void finish(struct iser_io *io, int err, int cause)
{
	io->err = err;
	io->cause = cause;
	io->done(io);
}

static void lose(struct iser_io *io)
{
	finish(io, ISER_E_CLOSED, ERR_CLOSED);
}

static void run_loop(void)
{
	iser_service(f.ctx, 0);
	iser_service(f.ctx, 0);
}

/* ---- tests ---- */

static void test_paths_take_turns(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(at(submit(i, SCSI_READ_10)), (int)i % 2);
	for (unsigned i = 0; i < 4; i++)
		finish(&f.io[i], 0, 0);
	assert_int_equal(f.done, 4);
	assert_int_equal(f.set.seen[0].in_progress, 0);
	assert_int_equal(f.set.in_progress, 0);
}

/* More commands than the paths take wait, in their order. */
static void test_queue(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++)
		submit(i, SCSI_READ_10);
	assert_int_equal(at(&f.io[7]), 1);
	assert_int_equal(at(&f.io[8]), -1);
	finish(&f.io[1], 0, 0);
	assert_int_equal(at(&f.io[8]), 1);
	finish(&f.io[0], 0, 0);
	assert_int_equal(at(&f.io[9]), 0);
	assert_int_equal(f.done, 2);
	for (unsigned i = 2; i < 10; i++)
		finish(&f.io[i], 0, 0);
	assert_int_equal(f.done, 10);
}

/* RFC 7143 §6.3.5: until the old session has ended, its WRITE may still be
 * executed, and must not come after a later one. */
static void test_writes_wait_for_the_end_of_the_session(void **state)
{
	struct iser_io *w = submit(0, SCSI_WRITE_10);
	struct iser_io *other = submit(1, SCSI_WRITE_10);
	struct iser_io *r = submit(2, SCSI_READ_10);

	(void)state;
	lose(w);
	assert_int_equal(f.lost[0], 1);
	assert_int_equal(at(w), -1);
	lose(r);
	assert_int_equal(at(r), 1); /* at once */
	assert_int_equal(at(submit(3, SCSI_WRITE_10)), 1);
	assert_int_equal(f.done, 0);
	lib_paths_release(&f.paths[0]);
	assert_int_equal(at(w), 1);
	finish(w, 0, 0);
	finish(r, 0, 0);
	finish(other, 0, 0);
	finish(&f.io[3], 0, 0);
	assert_int_equal(f.done, 4);
}

static void test_commands_that_must_not_be_repeated_fail(void **state)
{
	struct iser_io *c = submit(0, SCSI_COMPARE_AND_WRITE);
	struct iser_io *read = submit(1, SCSI_READ_10);
	struct iser_io *unsent = submit(2, SCSI_COMPARE_AND_WRITE);

	(void)state;
	lose(c);
	assert_int_equal(f.done, 1);
	assert_int_equal(c->err, ISER_E_CLOSED);
	/* it waited in the queue of the session */
	finish(unsent, ISER_E_CLOSED, 0);
	assert_int_equal(at(unsent), 1);
	finish(unsent, 0, 0);
	finish(read, 0, 0);
}

/* A command that ends each session is not issued for ever. */
static void test_number_of_tries(void **state)
{
	struct iser_io *r = submit(0, SCSI_READ_10);
	unsigned tries = 0;

	(void)state;
	while (!f.done) {
		int i = at(r);

		assert_true(i >= 0 && ++tries < 100);
		set_ready((unsigned)!i, true);
		lose(r);
		set_ready((unsigned)i, true);
	}
	assert_int_equal(tries, LIB_PATH_TRIES + 1);
	assert_int_equal(r->err, ISER_E_CLOSED);
}

static void refuse(struct iser_io *io, uint16_t asc)
{
	const struct scsi_sense sense = { .key = SENSE_NOT_READY, .asc = asc };

	io->status = 2;
	io->sense_len = (uint16_t)scsi_sense_build(&sense, false, io->sense);
	finish(io, ISER_E_SCSI, 0);
}

/* SPC-4 §5.16.2.4: not executed, so that any command may go to another path. */
static void test_standby(void **state)
{
	struct iser_io *c = submit(0, SCSI_PERSISTENT_RESERVE_OUT);

	(void)state;
	refuse(c, ASC_PORT_IN_STANDBY);
	assert_int_equal(f.rechecked[0], 1);
	assert_int_equal(f.set.seen[0].access, LIB_STANDBY);
	assert_int_equal(at(c), 1);
	assert_int_equal(f.lost[0] + f.lost[1], 0);
	refuse(c, ASC_ACCESS_TRANSITION);
	assert_int_equal(at(c), -1); /* waits: no path carries commands */
	assert_int_equal(f.done, 0);
	f.set.seen[1].access = LIB_OPTIMIZED;
	lib_paths_changed(&f.set);
	assert_int_equal(at(c), 1);
	finish(c, 0, 0);
	assert_int_equal(f.done, 1);
}

static void test_no_path(void **state)
{
	struct iser_io *r, *w = submit(0, SCSI_WRITE_10);

	(void)state;
	f.facade.url.replacement_timeout = 1;
	set_ready(1, false);
	lose(w);
	r = submit(1, SCSI_READ_10);
	assert_true(f.set.is_dark);
	run_loop();
	assert_int_equal(f.done, 0);
	f.set.dark.fire(&f.set.dark);
	run_loop();
	assert_int_equal(f.done, 2);
	assert_int_equal(r->err, ISER_E_NO_PATH);
	assert_int_equal(w->err, ISER_E_NO_PATH);
	assert_non_null(strstr(iser_message(f.ctx), "one:0"));
	assert_non_null(strstr(iser_message(f.ctx), "two:0"));
	submit(2, SCSI_READ_10);
	run_loop();
	assert_int_equal(f.io[2].err, ISER_E_NO_PATH);
	set_ready(1, true);
	assert_int_equal(at(submit(3, SCSI_READ_10)), 1);
	finish(&f.io[3], 0, 0);
	assert_int_equal(f.io[3].err, 0);
}

/* Each place where a command can be. */
static void test_abort(void **state)
{
	struct iser_io *held = submit(0, SCSI_WRITE_10);
	struct iser_io *moving = submit(1, SCSI_READ_10);
	struct iser_io *queued;

	(void)state;
	lose(held);
	assert_int_equal(iser_abort(held), 0);
	run_loop();
	assert_int_equal(held->err, ISER_E_ABORTED);
	/* at a path: the loss ends it, and no other path gets it */
	moving->library[LIB_IO_HISTORY] |= LIB_IO_ABORTING;
	lose(moving);
	assert_int_equal(moving->err, ISER_E_CLOSED);
	assert_int_equal(f.done, 2);
	queued = submit(2, SCSI_READ_10);
	assert_int_equal(at(queued), -1);
	assert_int_equal(iser_abort(queued), 0);
	run_loop();
	assert_int_equal(queued->err, ISER_E_ABORTED);
	assert_int_equal(f.done, 3);
	assert_int_equal(f.set.in_progress, 0);
}

/* A session that logs out ends its commands late: the next session of the path is
 * not lost, and has ended their tasks. */
static void test_old_session(void **state)
{
	struct iser_session next = { 0 };
	struct iser_io *w = submit(0, SCSI_WRITE_10);

	(void)state;
	f.paths[0].session = &next;
	lose(w);
	assert_int_equal(f.lost[0], 0);
	assert_true(w->session == &next || w->session == &f.sessions[1]);
	finish(w, 0, 0);
	assert_int_equal(f.done, 1);
}

static void test_another_lun(void **state)
{
	(void)state;
	f.io[0] = (struct iser_io){ .lun = 4, .cdb_len = 6, .done = on_done };
	lib_paths_submit(&f.facade, &f.io[0]);
	assert_int_equal(f.io[0].err, ISER_E_INVALID);
	f.io[0].lun = 3; /* for on_done */
	run_loop();
	assert_int_equal(f.done, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_paths_take_turns),
		TEST(test_queue),
		TEST(test_writes_wait_for_the_end_of_the_session),
		TEST(test_commands_that_must_not_be_repeated_fail),
		TEST(test_number_of_tries),
		TEST(test_standby),
		TEST(test_no_path),
		TEST(test_abort),
		TEST(test_old_session),
		TEST(test_another_lun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
