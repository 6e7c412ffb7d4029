/* SPDX-License-Identifier: BSD-2-Clause */
/* loop_test.c: turns, watches, timers, deferred calls, posts from other
 * threads. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "both.h"
#include "io/io.h"

/* ---- watches ---- */

struct watched {
	struct io_watch w;
	struct io_loop *l;
	unsigned n, events;
	struct watched *del; /* a watch that ready removes */
};

static void ready(struct io_watch *w, unsigned events)
{
	struct watched *x = container_of(w, struct watched, w);

	x->n++;
	x->events = events;
	if (x->del)
		io_watch_del(x->l, &x->del->w);
}

static void watch(struct io_loop *l, struct watched *x, int fd, unsigned want)
{
	*x = (struct watched){ .w = { .fd = fd, .want = want, .ready = ready },
			       .l = l };
	assert_int_equal(io_watch_add(l, &x->w), 0);
}

static void pair(int s[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s),
			 0);
}

static void send_byte(int fd)
{
	assert_int_equal(write(fd, "x", 1), 1);
}

static void recv_byte(int fd)
{
	char c;

	assert_int_equal(read(fd, &c, 1), 1);
}

static void close_pair(int s[2])
{
	close(s[0]);
	close(s[1]);
}

static void test_watch_is_level_triggered(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x;
	int s[2];

	pair(s);
	watch(l, &x, s[0], IO_IN);
	assert_int_equal(io_loop_turn(l, 0), 0);
	assert_int_equal(x.n, 0);
	send_byte(s[1]);
	/* unread input is reported in each turn */
	for (unsigned i = 1; i <= 3; i++) {
		both_turns(l, &x.n, i);
		assert_int_equal(x.events, IO_IN);
	}
	recv_byte(s[0]);
	x.n = 0;
	io_loop_turn(l, 0); /* at most one event that was already pending */
	x.n = 0;
	for (int i = 0; i < 3; i++)
		io_loop_turn(l, 0);
	assert_int_equal(x.n, 0);
	io_watch_del(l, &x.w);
	close_pair(s);
}

static void test_watch_want_changes(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x;
	int s[2];

	pair(s);
	send_byte(s[1]);
	watch(l, &x, s[0], 0);
	for (int i = 0; i < 3; i++)
		io_loop_turn(l, 0);
	assert_int_equal(x.n, 0);
	io_watch_want(l, &x.w, IO_OUT);
	both_turns(l, &x.n, 1);
	assert_int_equal(x.events, IO_OUT);
	io_watch_want(l, &x.w, IO_IN | IO_OUT);
	both_turns(l, &x.n, 2);
	assert_int_equal(x.events, IO_IN | IO_OUT);
	io_watch_want(l, &x.w, IO_IN);
	both_turns(l, &x.n, 3);
	assert_int_equal(x.events, IO_IN);
	io_watch_want(l, &x.w, 0);
	for (int i = 0; i < 3; i++)
		io_loop_turn(l, 0);
	assert_int_equal(x.n, 3);
	io_watch_del(l, &x.w);
	close_pair(s);
}

static void test_watch_want_nothing_still_tells_hang_up(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x;
	int s[2];

	pair(s);
	watch(l, &x, s[0], 0);
	io_loop_turn(l, 0);
	close(s[1]);
	both_turns(l, &x.n, 1);
	assert_int_equal(x.events, IO_ERR);
	io_watch_del(l, &x.w);
	close(s[0]);
}

/* Two watches are ready in one turn; the first that is called removes the
 * other. */
static void test_watch_del_of_another_in_the_same_turn(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x, y;
	int s[2], t[2];

	pair(s);
	pair(t);
	send_byte(s[1]);
	send_byte(t[1]);
	watch(l, &x, s[0], IO_IN);
	watch(l, &y, t[0], IO_IN);
	x.del = &y;
	y.del = &x;
	io_loop_turn(l, XTIME_S);
	io_loop_turn(l, 0);
	assert_int_equal(!!x.n + !!y.n, 1);
	io_watch_del(l, &x.w);
	io_watch_del(l, &y.w);
	close_pair(s);
	close_pair(t);
}

/* The next watch takes the slot of a removed one at once; pending events of the
 * removed watch must not reach it. */
static void test_watch_slot_reused_gets_no_stale_event(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x, y;
	int s[2], t[2];

	pair(s);
	pair(t);
	for (int i = 0; i < 20; i++) {
		watch(l, &x, s[0], IO_IN);
		io_loop_turn(l, 0);
		send_byte(s[1]); /* its event is pending now */
		io_watch_del(l, &x.w);
		watch(l, &y, t[0], IO_IN);
		io_loop_turn(l, 0);
		io_loop_turn(l, 0);
		assert_int_equal(x.n + y.n, 0);
		io_watch_del(l, &y.w);
		recv_byte(s[0]);
	}
	close_pair(s);
	close_pair(t);
}

static void test_watch_del_then_close_reaches_the_peer_at_once(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x;
	char c;
	int s[2];

	pair(s);
	watch(l, &x, s[0], IO_IN);
	io_loop_turn(l, 0); /* the kernel references the socket now */
	io_watch_del(l, &x.w);
	close(s[0]);
	assert_int_equal(read(s[1], &c, 1), 0);
	close(s[1]);
}

static void test_watch_add_bad_fd(void **state)
{
	struct io_loop *l = both_loop(state);
	struct io_watch w = { .fd = 1000000, .want = IO_IN, .ready = ready };

	assert_int_equal(io_watch_add(l, &w), -EBADF);
	io_watch_del(l, &w); /* a second io_watch_del has no effect */
}

#define MANY 700 /* more than the ring has entries */

static void test_watch_more_than_the_ring_holds(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x[MANY];
	unsigned ready_ones;
	int s[2];

	pair(s);
	send_byte(s[1]);
	for (int i = 0; i < MANY; i++)
		watch(l, &x[i], dup(s[0]), IO_IN);
	for (int turns = 0; turns < 10; turns++)
		io_loop_turn(l, 0);
	ready_ones = 0;
	for (int i = 0; i < MANY; i++)
		ready_ones += x[i].n > 0;
	assert_int_equal(ready_ones, MANY);
	for (int i = 0; i < MANY; i++) {
		io_watch_del(l, &x[i].w);
		close(x[i].w.fd);
	}
	close_pair(s);
}

/* ---- timers ---- */

struct timed {
	struct io_timer t;
	struct io_loop *l;
	unsigned n, order;
	xtime again;
};

static unsigned fired;

static void fire(struct io_timer *t)
{
	struct timed *x = container_of(t, struct timed, t);

	x->n++;
	x->order = ++fired;
	if (x->again)
		io_timer_set(x->l, &x->t, io_now(x->l) + x->again - 1);
}

static void test_timer_order_move_clear(void **state)
{
	struct io_loop *l = both_loop(state);
	xtime now = io_now_exact();
	struct timed x[200];

	fired = 0;
	for (unsigned i = 0; i < ARRAY_LEN(x); i++) {
		x[i] = (struct timed){ .t.fire = fire, .l = l };
		/* 7 and 200 are coprime: each place is taken once */
		assert_int_equal(io_timer_set(l, &x[i].t,
					      now + (i * 7 % 200) * XTIME_US),
				 0);
	}
	/* the first becomes the last */
	io_timer_set(l, &x[0].t, now + XTIME_MS);
	io_timer_clear(l, &x[1].t);
	io_timer_clear(l, &x[1].t);
	io_timer_set(l, &x[2].t, XTIME_NEVER);
	both_turns(l, &fired, ARRAY_LEN(x) - 2);
	assert_int_equal(x[0].order, fired);
	assert_int_equal(x[1].n + x[2].n, 0);
	for (unsigned i = 3; i < ARRAY_LEN(x); i++)
		for (unsigned k = 3; k < ARRAY_LEN(x); k++)
			if (i * 7 % 200 < k * 7 % 200)
				assert_true(x[i].order < x[k].order);
	assert_true(io_loop_next_timer(l) == XTIME_NEVER);
}

static void test_timer_does_not_fire_early(void **state)
{
	struct io_loop *l = both_loop(state);
	struct timed x = { .t.fire = fire, .l = l };
	xtime start = io_now_exact();

	io_timer_set(l, &x.t, start + 3 * XTIME_MS);
	assert_true(io_loop_next_timer(l) == start + 3 * XTIME_MS);
	both_turns(l, &x.n, 1);
	assert_true(io_now_exact() - start >= 3 * XTIME_MS);
}

struct slow_reader {
	struct watched x; /* receives one byte in each turn */
	struct timed deadline;
	unsigned seen; /* bytes, when the deadline fired */
};

static void receive_one(struct io_watch *w, unsigned events)
{
	struct slow_reader *r = container_of(w, struct slow_reader, x.w);

	(void)events;
	recv_byte(w->fd);
	r->x.n++;
}

static void fire_late(struct io_timer *t)
{
	struct slow_reader *r = container_of(t, struct slow_reader, deadline.t);

	r->seen = r->x.n;
	r->deadline.n++;
}

/* A process that was stopped: what came meanwhile is received before a deadline
 * that is over. One that is over by little fires in its turn. */
static void test_late_timers_wait_for_what_has_come(void **state)
{
	struct io_loop *l = both_loop(state);
	struct slow_reader r = { .deadline.t.fire = fire_late };
	int s[2];

	for (unsigned late = 0; late < 2; late++) {
		pair(s);
		r.x.n = r.deadline.n = r.seen = 0;
		r.x.w = (struct io_watch){ .fd = s[0],
					   .want = IO_IN,
					   .ready = receive_one };
		assert_int_equal(io_watch_add(l, &r.x.w), 0);
		io_loop_turn(l, 0);
		for (int i = 0; i < 5; i++)
			send_byte(s[1]);
		io_timer_set(l, &r.deadline.t,
			     io_now_exact() - (late ? 2 * XTIME_S : 0));
		both_turns(l, &r.deadline.n, 1);
		if (late)
			assert_int_equal(r.seen, 5);
		else
			assert_true(r.seen < 5);
		io_watch_del(l, &r.x.w);
		close_pair(s);
	}
}

/* ... but not for ever. */
static void test_late_timer_beside_endless_events(void **state)
{
	struct io_loop *l = both_loop(state);
	struct timed t = { .t.fire = fire, .l = l };
	struct watched x;
	int s[2];

	pair(s);
	watch(l, &x, s[0], IO_IN);
	send_byte(s[1]);
	io_timer_set(l, &t.t, io_now_exact() - 2 * XTIME_S);
	both_turns(l, &t.n, 1);
	assert_true(x.n > 5);
	io_watch_del(l, &x.w);
	close_pair(s);
}

static void test_timer_set_in_fire_does_not_hold_up_the_turn(void **state)
{
	struct io_loop *l = both_loop(state);
	struct timed x = { .t.fire = fire, .l = l, .again = 1 };

	io_timer_set(l, &x.t, io_now_exact());
	assert_true(io_loop_turn(l, 0) >= 0);
	assert_int_equal(x.n, 1);
	x.again = 0;
	both_turns(l, &x.n, 2);
}

/* A turn may end early (a signal), but the loop must not spin. */
static void test_turn_waits_no_longer_than_told(void **state)
{
	struct io_loop *l = both_loop(state);
	xtime start = io_now_exact();
	int turns = 0;

	for (; io_now_exact() - start < 2 * XTIME_MS; turns++)
		assert_int_equal(io_loop_turn(l, 2 * XTIME_MS), 0);
	assert_true(turns < 10);
}

static void test_spin_sees_events_and_ends(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x;
	int s[2];

	pair(s);
	io_loop_set_spin(l, XTIME_MS);
	watch(l, &x, s[0], IO_IN);
	for (unsigned i = 1; i <= 50; i++) {
		send_byte(s[1]);
		both_turns(l, &x.n, i);
		recv_byte(s[0]);
	}
	x.n = 0;
	for (int i = 0; i < 3; i++)
		assert_true(io_loop_turn(l, 3 * XTIME_MS) >= 0);
	assert_true(x.n <= 1);
	io_watch_del(l, &x.w);
	close_pair(s);
}

/* A watch that receives without an event of the kernel. */
struct attempting {
	struct io_watch w;
	struct io_loop *l;
	unsigned by_ready, received; /* bytes: by ready, by attempt */
	bool leaves;		     /* the next success removes the watch */
};

static void attempting_ready(struct io_watch *w, unsigned events)
{
	(void)events;
	container_of(w, struct attempting, w)->by_ready++;
	recv_byte(w->fd);
}

static bool attempting_attempt(struct io_watch *w)
{
	struct attempting *x = container_of(w, struct attempting, w);
	char c;

	if (read(w->fd, &c, 1) != 1)
		return false;
	x->received++;
	if (x->leaves)
		io_watch_del(x->l, w);
	return true;
}

static void attempting_watch(struct io_loop *l, struct attempting *x, int fd)
{
	*x = (struct attempting){ .w = { .fd = fd,
					 .want = IO_IN,
					 .ready = attempting_ready,
					 .attempt = attempting_attempt },
				  .l = l };
	assert_int_equal(io_watch_add(l, &x->w), 0);
}

/* The peer of a request and response: answers bytes, some of them late. */
static void *echo(void *arg)
{
	int fd = *(int *)arg;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	while (poll(&p, 1, 10000) == 1 && read(fd, &c, 1) == 1) {
		if (c == 'w')
			usleep(2000);
		if (write(fd, &c, 1) != 1)
			break;
	}
	return NULL;
}

static unsigned seen(const struct attempting *x)
{
	return x->by_ready + x->received;
}

static void round_trip(struct attempting *x, char c)
{
	unsigned want = seen(x) + 1;
	xtime end = io_now_exact() + 10 * XTIME_S;

	assert_int_equal(write(x->w.fd, &c, 1), 1);
	while (seen(x) < want && io_now_exact() < end)
		assert_true(io_loop_turn(x->l, XTIME_S) >= 0);
	assert_int_equal(seen(x), want);
}

static void test_spin_receives_directly(void **state)
{
	struct io_loop *l = both_loop(state);
	struct attempting x;
	struct watched other;
	pthread_t thread;
	int s[2], o[2];

	pair(s);
	pair(o);
	attempting_watch(l, &x, s[0]);
	watch(l, &other, o[0], IO_IN);
	pthread_create(&thread, NULL, echo, &s[1]);
	io_loop_set_spin(l, 100 * XTIME_MS);
	for (int i = 0; i < 300; i++)
		round_trip(&x, 'x');
	assert_true(x.received > 0); /* most of them, on an idle machine */
	/* others have their turn, and the loop leaves the direct way */
	send_byte(o[1]);
	both_turns(l, &other.n, 1);
	recv_byte(o[0]);
	/* what comes after the spinning comes by the kernel's event */
	io_loop_set_spin(l, 10 * XTIME_US);
	for (int i = 0; i < 50; i++)
		round_trip(&x, i % 3 ? 'x' : 'w');
	io_loop_set_spin(l, 0);
	for (int i = 0; i < 50; i++)
		round_trip(&x, 'x');
	/* hang-up */
	shutdown(s[0], SHUT_WR);
	pthread_join(thread, NULL);
	io_watch_del(l, &x.w);
	io_watch_del(l, &other.w);
	close_pair(s);
	close_pair(o);
}

static void test_spin_with_a_watch_that_leaves(void **state)
{
	struct io_loop *l = both_loop(state);
	struct attempting x;
	struct watched other;
	pthread_t thread;
	int s[2], o[2];

	pair(s);
	pair(o);
	attempting_watch(l, &x, s[0]);
	watch(l, &other, o[0], IO_IN);
	pthread_create(&thread, NULL, echo, &s[1]);
	io_loop_set_spin(l, 100 * XTIME_MS);
	round_trip(&x, 'x');
	round_trip(&x, 'x');
	x.leaves = true;
	round_trip(&x, 'w');
	io_watch_del(l, &x.w); /* by attempt already, unless ready was first */
	send_byte(o[1]);
	both_turns(l, &other.n, 1);
	recv_byte(o[0]);
	shutdown(s[0], SHUT_WR);
	pthread_join(thread, NULL);
	io_watch_del(l, &other.w);
	close_pair(s);
	close_pair(o);
}

/* ---- end of turn ---- */

struct deferred {
	struct io_defer d;
	struct io_loop *l;
	unsigned n, again;
};

static void run_deferred(struct io_defer *d)
{
	struct deferred *x = container_of(d, struct deferred, d);

	x->n++;
	if (x->again-- > 0)
		io_loop_defer(x->l, &x->d);
}

static void test_defer_once_and_again_in_the_same_turn(void **state)
{
	struct io_loop *l = both_loop(state);
	struct deferred x = { .d.run = run_deferred, .l = l, .again = 2 };
	struct deferred never = { .d.run = run_deferred, .l = l };

	list_init(&x.d.link);
	list_init(&never.d.link);
	io_loop_defer(l, &x.d);
	io_loop_defer(l, &x.d);
	io_loop_defer(l, &never.d);
	io_defer_cancel(&never.d);
	io_loop_turn(l, 0);
	assert_int_equal(x.n, 3);
	assert_int_equal(never.n, 0);
}

/* The caller may wait only for a call that was deferred between two turns. */
static void test_turn_does_not_wait_after_deferred_calls(void **state)
{
	struct io_loop *l = both_loop(state);
	struct deferred x = { .d.run = run_deferred, .l = l };

	list_init(&x.d.link);
	io_loop_defer(l, &x.d);
	io_loop_turn(l, 3600 * XTIME_S); /* longer than the test may take */
	assert_int_equal(x.n, 1);
}

/* ---- work that gives way ---- */

struct long_work {
	struct io_defer d;
	struct io_loop *l;
	unsigned n, of,
		behind; /* behind: what a watch had seen at the last run */
	const struct watched *other;
	xtime takes;
};

static void run_part(struct io_defer *d)
{
	struct long_work *x = container_of(d, struct long_work, d);
	xtime end = io_now_exact() + x->takes;

	while (io_now_exact() < end)
		;
	x->n++;
	x->behind = x->other ? x->other->n : 0;
	if (x->n < x->of)
		io_loop_give_way(x->l, &x->d);
}

static void start_work(struct io_loop *l, struct long_work *x)
{
	x->d.run = run_part;
	x->l = l;
	list_init(&x->d.link);
	io_loop_give_way(l, &x->d);
}

/* Each turn serves what else there is, and runs a part of the work, without waiting. */
static void test_give_way_serves_others_in_between(void **state)
{
	struct io_loop *l = both_loop(state);
	struct long_work x = { .of = 5, .takes = XTIME_MS };
	struct watched other;
	int s[2];

	pair(s);
	watch(l, &other, s[0], IO_IN);
	send_byte(s[1]);
	both_turns(l, &other.n, 1);
	x.other = &other;
	start_work(l, &x);
	assert_true(io_loop_next_timer(l) <= io_now_exact());
	for (unsigned i = 1; i <= x.of; i++) {
		assert_int_equal(x.n, i - 1);
		io_loop_turn(l, XTIME_NEVER);
		assert_int_equal(x.n, i);
		assert_true(x.behind >= i);
	}
	assert_int_equal(io_loop_next_timer(l), XTIME_NEVER);
	io_watch_del(l, &other.w);
	close_pair(s);
}

static void test_give_way_in_turns_and_cancelled(void **state)
{
	struct io_loop *l = both_loop(state);
	struct long_work a = { .of = 2, .takes = XTIME_MS }, b = a, never = a;

	start_work(l, &a);
	start_work(l, &b);
	start_work(l, &never);
	io_loop_give_way(l, &a.d); /* no effect */
	io_defer_cancel(&never.d);
	io_loop_turn(l, XTIME_NEVER);
	assert_int_equal(a.n, 1);
	assert_int_equal(b.n, 0);
	io_loop_turn(l, XTIME_NEVER);
	io_loop_turn(l, XTIME_NEVER);
	assert_int_equal(a.n, 2);
	assert_int_equal(b.n, 1);
	io_loop_turn(l, XTIME_NEVER);
	assert_int_equal(b.n, 2);
	assert_int_equal(never.n, 0);
}

/* ---- other threads ---- */

#define POSTS 1000

struct posted {
	struct io_post p;
	unsigned number;
};

static struct posted posted[POSTS];
static unsigned posts_seen;

static void run_post(struct io_post *p)
{
	assert_int_equal(container_of(p, struct posted, p)->number, posts_seen);
	posts_seen++;
}

static void *poster(void *arg)
{
	for (unsigned i = 0; i < POSTS; i++) {
		posted[i].p.run = run_post;
		posted[i].number = i;
		io_loop_post(arg, &posted[i].p);
	}
	return NULL;
}

static void test_post_from_a_thread_in_order(void **state)
{
	struct io_loop *l = both_loop(state);
	pthread_t t;

	posts_seen = 0;
	assert_int_equal(pthread_create(&t, NULL, poster, l), 0);
	both_turns(l, &posts_seen, POSTS);
	pthread_join(t, NULL);
}

static void test_post_before_the_first_turn(void **state)
{
	struct io_loop *l = both_loop(state);

	posts_seen = 0;
	poster(l);
	both_turns(l, &posts_seen, POSTS);
}

static struct io_loop *signalled;

static void on_signal(int sig)
{
	(void)sig;
	io_loop_stop(signalled);
}

static void raise_it(struct io_timer *t)
{
	(void)t;
	raise(SIGUSR1);
}

static void test_stop_from_a_signal_handler(void **state)
{
	struct io_loop *l = both_loop(state);
	struct io_timer t = { .fire = raise_it };

	signalled = l;
	signal(SIGUSR1, on_signal);
	io_timer_set(l, &t, io_now_exact() + XTIME_MS);
	assert_int_equal(io_loop_run(l), 0);
	signal(SIGUSR1, SIG_DFL);
}

static void test_stop_before_run(void **state)
{
	struct io_loop *l = both_loop(state);

	io_loop_stop(l);
	assert_int_equal(io_loop_run(l), 0);
}

static void *run_loop(void *arg)
{
	return (void *)(intptr_t)io_loop_run(arg);
}

/* One thread makes the loop, another runs it, the first stops and frees it: as
 * the daemon does. */
static void test_run_on_another_thread_than_made(void **state)
{
	struct io_loop *l = both_loop(state);
	struct watched x;
	void *result;
	pthread_t t;
	int s[2];

	pair(s);
	watch(l, &x, s[0], IO_IN);
	posts_seen = 0;
	assert_int_equal(pthread_create(&t, NULL, run_loop, l), 0);
	poster(l);
	io_loop_stop(l);
	pthread_join(t, &result);
	assert_int_equal((intptr_t)result, 0);
	io_watch_del(l, &x.w);
	close_pair(s);
}

/* ---- in another loop ---- */

static bool polls_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

static void settle(struct io_loop *l)
{
	for (int i = 0; i < 4; i++)
		assert_true(io_loop_turn(l, 0) >= 0);
}

static void test_fd_tells_of_watch_post_and_defer(void **state)
{
	struct io_loop *l = both_loop(state);
	int fd = io_loop_fd(l), s[2];
	struct deferred d = { .d.run = run_deferred, .l = l };
	struct watched x;

	pair(s);
	watch(l, &x, s[0], IO_IN);
	assert_true(polls_readable(fd, 1000)); /* a new watch */
	settle(l);
	assert_false(polls_readable(fd, 0));
	send_byte(s[1]);
	assert_true(polls_readable(fd, 1000));
	both_turns(l, &x.n, 1);
	recv_byte(s[0]);
	settle(l);
	list_init(&d.d.link);
	io_loop_defer(l, &d.d);
	assert_true(polls_readable(fd, 1000));
	both_turns(l, &d.n, 1);
	settle(l);
	posts_seen = 0;
	poster(l);
	assert_true(polls_readable(fd, 1000));
	both_turns(l, &posts_seen, POSTS);
	io_watch_del(l, &x.w);
	close_pair(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_watch_is_level_triggered),
		BOTH(test_watch_want_changes),
		BOTH(test_watch_want_nothing_still_tells_hang_up),
		BOTH(test_watch_del_of_another_in_the_same_turn),
		BOTH(test_watch_slot_reused_gets_no_stale_event),
		BOTH(test_watch_del_then_close_reaches_the_peer_at_once),
		BOTH(test_watch_add_bad_fd),
		BOTH(test_watch_more_than_the_ring_holds),
		BOTH(test_timer_order_move_clear),
		BOTH(test_timer_does_not_fire_early),
		BOTH(test_late_timers_wait_for_what_has_come),
		BOTH(test_late_timer_beside_endless_events),
		BOTH(test_timer_set_in_fire_does_not_hold_up_the_turn),
		BOTH(test_turn_waits_no_longer_than_told),
		BOTH(test_spin_sees_events_and_ends),
		BOTH(test_spin_receives_directly),
		BOTH(test_spin_with_a_watch_that_leaves),
		BOTH(test_defer_once_and_again_in_the_same_turn),
		BOTH(test_turn_does_not_wait_after_deferred_calls),
		BOTH(test_give_way_serves_others_in_between),
		BOTH(test_give_way_in_turns_and_cancelled),
		BOTH(test_post_from_a_thread_in_order),
		BOTH(test_post_before_the_first_turn),
		BOTH(test_stop_from_a_signal_handler),
		BOTH(test_stop_before_run),
		BOTH(test_run_on_another_thread_than_made),
		BOTH(test_fd_tells_of_watch_post_and_defer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
