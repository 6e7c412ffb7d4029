/* SPDX-License-Identifier: BSD-2-Clause */
/* store_cases.c: what every store of cluster/store.h must do. */
#include "store_cases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"

#define LIMIT (60 * XTIME_S)

static const struct store_kit *kit;
static char *const *program;

/* ---- a gateway ---- */

static void noted(void *arg, const char *from, uint64_t cookie,
		  const uint8_t *data, size_t len)
{
	struct store_end *e = arg;

	e->noted++;
	e->cookie = cookie;
	snprintf(e->from, sizeof(e->from), "%s", from);
	memcpy(e->text, data, len);
	e->text[len] = '\0';
	if (e->acks)
		e->s->ops->ack(e->s, cookie);
}

static void missed(void *arg)
{
	((struct store_end *)arg)->missed++;
}

static void fenced(void *arg)
{
	((struct store_end *)arg)->fenced++;
}

static void say(void *arg, const char *sentence)
{
	struct store_end *e = arg;

	snprintf(e->said, sizeof(e->said), "%s", sentence);
}

void store_cases_use(const struct store_kit *k)
{
	kit = k;
}

void store_end_open(struct store_end *e, struct io_loop *l, const char *id)
{
	const struct cluster_store_events ev = {
		.noted = noted,
		.missed = missed,
		.fenced = fenced,
		.say = say,
		.arg = e,
	};

	*e = (struct store_end){ .loop = l, .acks = true };
	e->s = kit->open(l, id, &ev);
	assert_non_null(e->s);
}

void store_end_until(struct io_loop *l, const unsigned *flag)
{
	xtime end = io_now_exact() + LIMIT;

	while (!*flag) {
		assert_true(io_loop_turn(l, 100 * XTIME_MS) >= 0);
		assert_true(io_now_exact() < end);
	}
}

static void turn_for(struct io_loop *l, xtime time)
{
	xtime end = io_now_exact() + time;

	while (io_now_exact() < end)
		assert_true(io_loop_turn(l, 10 * XTIME_MS) >= 0);
}

/* A request and whether it has ended. */
struct wait {
	struct cluster_request r;
	unsigned ended;
	uint8_t data[64]; /* of a read: the first bytes */
};

static void request_done(struct cluster_request *r)
{
	struct wait *w = container_of(r, struct wait, r);

	w->ended++;
	if (!r->result && r->data && r->len <= sizeof(w->data))
		memcpy(w->data, r->data, r->len);
}

int store_end_do(struct store_end *e,
		 void (*op)(struct cluster_store *s, struct cluster_request *r),
		 struct cluster_request *r)
{
	struct wait w = { .r = *r };

	w.r.done = request_done;
	op(e->s, &w.r);
	assert_int_equal(w.ended, 0); /* not from within the function */
	store_end_until(e->loop, &w.ended);
	*r = w.r;
	return w.r.result;
}

static int simple(struct store_end *e, void (*op)(struct cluster_store *s,
						  struct cluster_request *r))
{
	struct cluster_request r = { .version = 0 };

	return store_end_do(e, op, &r);
}

static int fence(struct store_end *e, const char *whom)
{
	struct cluster_request r = { .whom = whom };

	return store_end_do(e, e->s->ops->fence, &r);
}

/* Reads the record; len 0: only its version. */
static uint64_t read_text(struct store_end *e, char *text, size_t len)
{
	struct wait w = { .r = { .done = request_done } };

	e->s->ops->read(e->s, &w.r);
	store_end_until(e->loop, &w.ended);
	assert_int_equal(w.r.result, 0);
	if (len) {
		assert_in_range(w.r.len, 0, len - 1);
		memcpy(text, w.data, w.r.len);
		text[w.r.len] = '\0';
	}
	return w.r.version;
}

static int swap(struct store_end *e, uint64_t *version, const void *data,
		size_t len)
{
	struct cluster_request r = {
		.version = *version,
		.data = data,
		.len = len,
	};
	int err = store_end_do(e, e->s->ops->swap, &r);

	if (!err)
		*version = r.version;
	return err;
}

struct note_wait {
	struct cluster_note n;
	unsigned ended;
};

static void note_done(struct cluster_note *n)
{
	container_of(n, struct note_wait, n)->ended++;
}

static void begin_note(struct store_end *e, struct note_wait *w,
		       const char *text, unsigned ms)
{
	*w = (struct note_wait){
		.n = { .done = note_done,
		       .data = (const uint8_t *)text,
		       .len = strlen(text),
		       .ms = ms },
	};
	e->s->ops->notify(e->s, &w->n);
	assert_int_equal(w->ended, 0);
}

static bool has_ack(const struct note_wait *w, const char *id)
{
	for (unsigned i = 0; i < w->n.nacks; i++)
		if (strcmp(w->n.acks[i], id) == 0)
			return true;
	return false;
}

static struct io_loop *new_loop(void)
{
	int err;
	struct io_loop *l = io_loop_new(IO_AUTO, &err);

	assert_non_null(l);
	return l;
}

/* ---- the record ---- */

static void test_record(void **state)
{
	struct io_loop *l = new_loop();
	uint8_t *large = malloc(CLUSTER_RECORD_MAX + 1);
	struct store_end a, b;
	uint64_t version, stale;
	char text[64];

	(void)state;
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	version = read_text(&a, NULL, 0);
	stale = version;
	assert_int_equal(swap(&a, &version, "first", 5), 0);
	assert_int_equal(version, stale + 1);
	assert_int_equal(swap(&b, &stale, "stale", 5), ERR_AGAIN);
	assert_int_equal(read_text(&b, text, sizeof(text)), version);
	assert_string_equal(text, "first");
	stale = version + 1; /* a version that is not there yet */
	assert_int_equal(swap(&b, &stale, "later", 5), ERR_AGAIN);
	stale = 0;
	assert_int_equal(swap(&b, &stale, "new", 3), ERR_AGAIN);
	/* the longest record, and the next one */
	memset(large, 'x', CLUSTER_RECORD_MAX + 1);
	assert_int_equal(swap(&b, &version, large, CLUSTER_RECORD_MAX), 0);
	assert_int_equal(swap(&b, &version, large, CLUSTER_RECORD_MAX + 1),
			 ERR_LIMIT);
	assert_int_equal(read_text(&a, NULL, 0), version);
	/* an empty one */
	assert_int_equal(swap(&a, &version, NULL, 0), 0);
	assert_int_equal(read_text(&b, text, sizeof(text)), version);
	assert_string_equal(text, "");
	free(large);
	kit->shut(a.s);
	kit->shut(b.s);
	io_loop_free(l);
}

/* Both gateways add to the same number: no addition is lost. */
static void test_swaps_at_once(void **state)
{
	struct io_loop *l = new_loop();
	struct store_end ends[2];
	struct wait w[2] = { { .ended = 0 } };
	unsigned sums[2] = { 0 }, conflicts = 0;
	uint64_t version = 0;
	char text[64];

	(void)state;
	store_end_open(&ends[0], l, "a");
	store_end_open(&ends[1], l, "b");
	version = read_text(&ends[0], NULL, 0);
	assert_int_equal(swap(&ends[0], &version, "0", 1), 0);
	while (sums[0] < 20 || sums[1] < 20) {
		uint64_t now = read_text(&ends[0], text, sizeof(text));

		snprintf(text, sizeof(text), "%u", sums[0] + sums[1] + 1);
		for (unsigned i = 0; i < 2; i++) {
			w[i] = (struct wait){
				.r = { .done = request_done,
				       .version = now,
				       .data = (uint8_t *)text,
				       .len = strlen(text) },
			};
			ends[i].s->ops->swap(ends[i].s, &w[i].r);
		}
		for (unsigned i = 0; i < 2; i++)
			store_end_until(l, &w[i].ended);
		assert_true(!w[0].r.result != !w[1].r.result);
		for (unsigned i = 0; i < 2; i++) {
			sums[i] += !w[i].r.result;
			conflicts += w[i].r.result == ERR_AGAIN;
		}
		assert_int_equal(conflicts, sums[0] + sums[1]);
		if (sums[0] + sums[1] > 60) /* one may always be first */
			break;
	}
	read_text(&ends[1], text, sizeof(text));
	assert_int_equal(atoi(text), sums[0] + sums[1]);
	kit->shut(ends[0].s);
	kit->shut(ends[1].s);
	io_loop_free(l);
}

/* ---- notifications ---- */

static void test_notes(void **state)
{
	struct io_loop *l = new_loop();
	struct note_wait w;
	struct store_end a, b, c;
	char longest[CLUSTER_NOTE_MAX + 1];

	(void)state;
	store_end_open(&a, l, "a");
	begin_note(&a, &w, "alone", 5000);
	store_end_until(l, &w.ended);
	assert_int_equal(w.n.result, 0);
	assert_int_equal(w.n.nacks, 0);
	store_end_open(&b, l, "b");
	store_end_open(&c, l, "c");
	memset(longest, 'y', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	begin_note(&a, &w, longest, 20000);
	store_end_until(l, &w.ended);
	assert_int_equal(w.n.result, 0);
	assert_int_equal(w.n.nacks, 2);
	assert_true(has_ack(&w, "b") && has_ack(&w, "c"));
	assert_string_equal(b.text, longest);
	assert_string_equal(b.from, "a");
	assert_int_equal(a.noted, 0);
	/* an answer that comes later, and one that does not */
	b.acks = c.acks = false;
	b.noted = c.noted = 0;
	begin_note(&a, &w, "wait", 1000);
	store_end_until(l, &b.noted);
	turn_for(l, 50 * XTIME_MS);
	assert_int_equal(w.ended, 0);
	b.s->ops->ack(b.s, b.cookie);
	b.s->ops->ack(b.s, b.cookie); /* no effect */
	store_end_until(l, &w.ended);
	assert_int_equal(w.n.result, 0);
	assert_int_equal(w.n.nacks, 1);
	assert_true(has_ack(&w, "b"));
	/* a gateway that is gone */
	c.acks = true;
	kit->shut(b.s);
	begin_note(&a, &w, "two", 20000);
	store_end_until(l, &w.ended);
	assert_int_equal(w.n.nacks, 1);
	assert_true(has_ack(&w, "c"));
	kit->shut(a.s);
	kit->shut(c.s);
	io_loop_free(l);
}

/* Many notifications at once, in both directions: each arrives. */
static void test_many_notes(void **state)
{
	struct io_loop *l = new_loop();
	struct note_wait w[2][40];
	struct store_end a, b;

	(void)state;
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	for (unsigned i = 0; i < 40; i++) {
		begin_note(&a, &w[0][i], "to b", 20000);
		begin_note(&b, &w[1][i], "to a", 20000);
	}
	for (unsigned i = 0; i < 40; i++)
		for (unsigned k = 0; k < 2; k++) {
			store_end_until(l, &w[k][i].ended);
			assert_int_equal(w[k][i].n.nacks, 1);
		}
	assert_int_equal(a.noted, 40);
	assert_int_equal(b.noted, 40);
	kit->shut(a.s);
	kit->shut(b.s);
	io_loop_free(l);
}

/* ---- the lock ---- */

static void test_lock(void **state)
{
	struct io_loop *l = new_loop();
	struct store_end a, b;

	(void)state;
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	assert_int_equal(fence(&b, "a"), ERR_NOT_FOUND);
	assert_int_equal(simple(&a, a.s->ops->unlock), 0);
	assert_int_equal(simple(&a, a.s->ops->lock), 0);
	assert_int_equal(simple(&a, a.s->ops->lock), 0);
	assert_int_equal(fence(&a, "b"), 0);
	assert_int_equal(kit->write(l, a.s, 'a'), 0);
	assert_int_equal(simple(&b, b.s->ops->lock), ERR_AGAIN);
	assert_int_equal(fence(&b, "c"), ERR_AGAIN);
	assert_int_equal(simple(&a, a.s->ops->unlock), 0);
	assert_int_equal(simple(&b, b.s->ops->lock), 0);
	assert_int_equal(kit->write(l, b.s, 'b'), 0);
	assert_int_equal(kit->read(l, a.s), 'b');
	/* the end of a store gives the lock back */
	kit->shut(b.s);
	assert_int_equal(simple(&a, a.s->ops->lock), 0);
	kit->shut(a.s);
	io_loop_free(l);
}

/* ---- the end ---- */

static void test_close(void **state)
{
	struct io_loop *l = new_loop();
	struct wait w[6] = { { .ended = 0 } };
	struct note_wait n;
	struct store_end a, b;

	(void)state;
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	b.acks = false;
	for (unsigned i = 0; i < 6; i++)
		w[i].r = (struct cluster_request){
			.done = request_done,
			.version = 77777,
			.data = (const uint8_t *)"x",
			.len = 1,
		};
	begin_note(&a, &n, "never answered", 20000);
	a.s->ops->read(a.s, &w[0].r);
	a.s->ops->swap(a.s, &w[1].r);
	a.s->ops->lock(a.s, &w[2].r);
	a.s->ops->unlock(a.s, &w[3].r);
	a.s->ops->read(a.s, &w[4].r);
	a.s->ops->fence(a.s, &w[5].r);
	kit->shut(a.s);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(w[i].ended, 1);
		assert_int_equal(w[i].r.result, ERR_ABORTED);
	}
	assert_int_equal(n.ended, 1);
	assert_int_equal(n.n.result, ERR_ABORTED);
	turn_for(l, 100 * XTIME_MS);
	/* the gateway comes back */
	store_end_open(&a, l, "a");
	assert_int_equal(simple(&a, a.s->ops->lock), 0);
	kit->shut(a.s);
	kit->shut(b.s);
	io_loop_free(l);
}

/* ---- the fence ---- */

/* The gateway "old", in a process of its own: writes until that fails. It reports
 * the results of the last write, of a lock and of a swap. */
int store_cases_fenced(const struct store_kit *k)
{
	struct io_loop *l = new_loop();
	uint64_t version;
	struct store_end e;
	int err, swapped;

	kit = k;
	store_end_open(&e, l, "old");
	err = simple(&e, e.s->ops->lock);
	printf("locked %d\n", err);
	fflush(stdout);
	version = read_text(&e, NULL, 0);
	do
		err = kit->write(l, e.s, 'A');
	while (!err);
	swapped = swap(&e, &version, "from old", 8);
	if (!swapped)
		return 3;
	store_end_until(l, &e.fenced);
	printf("write %d swap %d fenced %u\n", err, swapped, e.fenced);
	fflush(stdout);
	/* it comes back as any gateway */
	kit->shut(e.s);
	store_end_open(&e, l, "old");
	err = simple(&e, e.s->ops->lock);
	version = read_text(&e, NULL, 0);
	printf("again %d swap %d\n", err, swap(&e, &version, "again", 5));
	fflush(stdout);
	kit->shut(e.s);
	return 0;
}

static pid_t start_old(FILE **out)
{
	char *args[16] = { NULL };
	unsigned n = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		for (; program[n]; n++)
			args[n] = program[n];
		args[n] = (char *)"fenced";
		execv("/proc/self/exe", args);
		_exit(9);
	}
	close(fds[1]);
	*out = fdopen(fds[0], "r");
	return pid;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static void expect_line(FILE *f, const char *expected)
{
	char line[256] = "";

	assert_non_null(fgets(line, sizeof(line), f));
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line, expected);
}

/* A gateway that was stopped while it wrote, and goes on after the fence. */
static void test_fence(void **state)
{
	struct io_loop *l = new_loop();
	struct store_end b;
	char line[256];
	xtime begin;
	FILE *out;
	pid_t pid;
	int status;

	(void)state;
	store_end_open(&b, l, "b");
	pid = start_old(&out);
	expect_line(out, "locked 0");
	pause_ms(100);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(simple(&b, b.s->ops->lock), ERR_AGAIN);
	assert_int_equal(fence(&b, "another"), ERR_AGAIN);
	begin = io_now_exact();
	assert_int_equal(fence(&b, "old"), 0);
	assert_int_equal(simple(&b, b.s->ops->lock), 0);
	assert_int_equal(kit->write(l, b.s, 'B'), 0);
	print_message("fence, lock and first write: %.1f ms\n",
		      (double)(io_now_exact() - begin) / 1e6);
	assert_non_null(strstr(b.said, "old"));
	kill(pid, SIGCONT);
	if (!kit->ends_process) {
		snprintf(line, sizeof(line), "write %d swap %d fenced 1",
			 ERR_TERMINATED, ERR_TERMINATED);
		expect_line(out, line);
		snprintf(line, sizeof(line), "again %d swap 0", ERR_AGAIN);
		expect_line(out, line);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (kit->ends_process)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	else
		assert_int_equal(status, 0);
	turn_for(l, 100 * XTIME_MS);
	assert_int_equal(kit->read(l, b.s), 'B');
	assert_int_equal(b.fenced, 0);
	fclose(out);
	kit->shut(b.s);
	io_loop_free(l);
}

int store_cases_run(const struct store_kit *k, char *const *args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_swaps_at_once),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_many_notes),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_fence),
	};

	kit = k;
	program = args;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
