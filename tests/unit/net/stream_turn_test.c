/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_turn_test.c: how much of a turn a stream takes, and for how much input it waits. */
#include "unit/net/stream_core.h"

/* ---- waiting for much ---- */

/* A few bytes stay in the socket, unless the machine was too busy for that to be
 * seen within the limit of the wait. */
static void say_in_vain(struct test *t, size_t n)
{
	xtime limit = io_now_exact() + 15 * XTIME_MS;
	uint64_t before = t->c->in;

	say_bytes(t, n);
	if (io_now_exact() < limit)
		assert_int_equal(t->c->in, before);
}

/* While the peer has to send much, a few bytes stay in the socket for a moment; enough
 * bytes, or the end, are received. */
static void test_patient_while_much_is_owed(void **state)
{
	static uint8_t back[65536];
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	t.c->sure = 1u << 20;
	say_bytes(&t, 100);
	receive(&t, back, 100);
	say_in_vain(&t, 1000);
	say_bytes(&t, 40000);
	receive(&t, back, 41000);
	t.c->sure = 0;
	say_bytes(&t, 40000);
	receive(&t, back, 40000);
	say_bytes(&t, 10);
	receive(&t, back, 10);
	t.c->sure = 1u << 20;
	say_bytes(&t, 10);
	receive(&t, back, 10);
	say_in_vain(&t, 10);
	shutdown(t.peer, SHUT_WR);
	receive(&t, back, 10);
	close(t.peer);
	t.peer = -1;
	until_closed(&t, 0);
	finish(&t);
}

/* A peer that owes much, but sends a request first and waits for its answer. */
static void test_patience_for_what_is_owed_ends(void **state)
{
	static uint8_t back[100];
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	t.c->sure = 1u << 20;
	for (unsigned i = 0; i < 5; i++) {
		say_bytes(&t, 100);
		receive(&t, back, 100);
	}
	close(t.peer);
	t.peer = -1;
	until_closed(&t, 0);
	finish(&t);
}

/* A loop that polls the socket takes a few bytes at once, however much the peer has to
 * send: nothing wakes, so there is nothing to save. */
static void test_no_patience_while_polled(void **state)
{
	static uint8_t back[1000];
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	io_loop_set_spin(t.l, 100 * XTIME_MS);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t before = t.c->in;

		t.c->sure = i < 5 ? 0 : 1u << 20;
		say_bytes(&t, sizeof(back));
		assert_int_equal(t.c->in, before + sizeof(back));
		receive(&t, back, sizeof(back));
	}
	finish(&t);
}

/* The wait for what is likely is short, also after a wait for what is owed. */
static void test_patience_for_what_is_likely_is_short(void **state)
{
	static uint8_t back[100];
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	t.c->sure = 1u << 20;
	say_bytes(&t, 100);
	receive(&t, back, 100);
	t.c->sure = 0;
	t.c->likely = 1u << 20;
	say_bytes(&t, 40000);
	assert_true(io_loop_next_timer(t.l) <= io_now_exact() + 2 * XTIME_MS);
	finish(&t);
}

/* A loop that polls several sockets takes a few bytes at once, too, where more is only
 * likely. */
static void test_no_patience_for_what_is_likely_while_polling(void **state)
{
	struct test t, u;
	int s[2];

	open_over(&t, state, tcp_pair);
	u = t;
	tcp_pair(s);
	u.peer = s[1];
	u.c = calloc(1, sizeof(*u.c));
	u.c->deadline = XTIME_NEVER;
	u.c->s = net_stream_new(t.l, s[0]);
	io_loop_set_spin(t.l, 100 * XTIME_MS);
	t.c->likely = u.c->likely = 1u << 20;
	start(&t);
	start(&u);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_int_equal(send(t.peer, "0123456789", 10, 0), 10);
		assert_int_equal(send(u.peer, "0123456789", 10, 0), 10);
		while (io_loop_next_timer(t.l) == XTIME_NEVER &&
		       (t.c->in < 10 * i || u.c->in < 10 * i))
			turns(&t, 1);
		assert_int_equal(t.c->in, 10 * i);
		assert_int_equal(u.c->in, 10 * i);
	}
	finish(&t);
	finish(&u);
}

/* ---- time and bytes of a turn ---- */

/* A core that has used up its time goes on in later turns, without another event of its
 * socket; a second stream is served in each turn; the end of the stream comes after all input. */
static void test_spent_time_gives_way(void **state)
{
	struct test t, u;
	int s[2];
	uint8_t byte;

	open_over(&t, state, tcp_pair);
	u = t;
	tcp_pair(s);
	u.peer = s[1];
	u.c = calloc(1, sizeof(*u.c));
	u.c->deadline = XTIME_NEVER;
	u.c->s = net_stream_new(t.l, s[0]);
	t.c->is_slow = true;
	start(&t);
	start(&u);
	turns(&t, 2);
	assert_int_equal(send(t.peer, "0123456789", 10, 0), 10);
	while (t.c->in == 0)
		turns(&t, 1);
	assert_int_equal(t.c->in, 10);
	shutdown(t.peer, SHUT_WR);
	for (uint64_t before = t.c->processed; before < 10;
	     before = t.c->processed) {
		assert_int_equal(t.c->closed, 0);
		assert_int_equal(send(u.peer, "x", 1, 0), 1);
		receive(&u, &byte, 1);
		while (t.c->processed == before)
			turns(&t, 1);
		assert_in_range(t.c->processed - before, 1, 9);
	}
	until_closed(&t, 0);
	finish(&t);
	finish(&u);
}

/* The stream may end while its input waits. */
static void test_spent_time_and_dropped(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	t.c->is_slow = true;
	start(&t);
	assert_int_equal(send(t.peer, "0123456789", 10, 0), 10);
	while (t.c->in == 0)
		turns(&t, 1);
	net_stream_drop(t.c->s, ERR_LIMIT);
	until_closed(&t, ERR_LIMIT);
	assert_true(t.c->processed < 10);
	finish(&t);
}

static void test_one_stream_does_not_hold_up_the_turn(void **state)
{
	struct test t;
	size_t sent = 0;
	uint8_t *data = calloc(1, (2u << 20));
	ssize_t n;

	open_over(&t, state, tcp_pair);
	while ((n = send(t.peer, data, (2u << 20), MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	start(&t);
	turns(&t, 1);
	while (t.c->in == 0)
		turns(&t, 1);
	assert_true(t.c->in <= (1u << 20) + RING);
	assert_true(t.c->in <= sent);
	t.c->fate = STREAM_CLOSE;
	kick(&t);
	finish(&t);
	free(data);
}

/* A peer that takes all that there is does not get all in one turn. */
static void test_output_of_a_turn_is_limited(void **state)
{
	static uint8_t much[64][256u << 10];
	static uint8_t got[256u << 10];
	const size_t all = sizeof(much);
	struct test t;
	size_t before = 0;
	unsigned n = 0;

	open_over(&t, state, tcp_pair);
	for (unsigned i = 0; i < 64; i++)
		t.c->piece[i] = (struct iovec){ much[i], sizeof(much[i]) };
	t.c->npieces = 64;
	t.c->at_once = 256u << 10;
	start(&t);
	for (; t.c->sent < all; n++) {
		while (recv(t.peer, got, sizeof(got), MSG_DONTWAIT) > 0)
			;
		turns(&t, 1);
		assert_true(t.c->sent - before <= (5u << 18));
		before = t.c->sent;
	}
	assert_true(n > 20);
	t.c->fate = STREAM_CLOSE;
	kick(&t);
	finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_patient_while_much_is_owed),
		BOTH(test_patience_for_what_is_owed_ends),
		BOTH(test_no_patience_while_polled),
		BOTH(test_patience_for_what_is_likely_is_short),
		BOTH(test_no_patience_for_what_is_likely_while_polling),
		BOTH(test_spent_time_gives_way),
		BOTH(test_spent_time_and_dropped),
		BOTH(test_one_stream_does_not_hold_up_the_turn),
		BOTH(test_output_of_a_turn_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
