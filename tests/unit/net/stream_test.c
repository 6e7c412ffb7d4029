/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_test.c: a socket with a core that echoes, or that sends its own
 * pieces. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/err.h"
#include "net/net.h"
#include "unit/io/both.h"
#include "unit/net/stream_core.h"

static void assert_end_of_stream(struct test *t)
{
	xtime end = io_now_exact() + 10 * XTIME_S;
	ssize_t n;
	char c;

	do {
		turns(t, 1);
		n = recv(t->peer, &c, 1, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN && io_now_exact() < end);
	assert_int_equal(n, 0);
}

/* ---- tests ---- */

#define MUCH (2u << 20)

/* Sends and receives MUCH at once, so that both sides fill up at times. */
static void echo_much(void **state, void (*pair)(int s[2]))
{
	struct test t;
	uint8_t *out = malloc(MUCH), *in = malloc(MUCH);
	size_t sent = 0, got = 0;
	xtime end = io_now_exact() + 20 * XTIME_S;

	open_over(&t, state, pair);
	start(&t);
	fill(out, MUCH);
	while (got < MUCH && io_now_exact() < end) {
		ssize_t n = send(t.peer, out + sent, MUCH - sent, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		turns(&t, 1);
		n = recv(t.peer, in + got, MUCH - got, MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(got, MUCH);
	assert_memory_equal(in, out, MUCH);
	assert_int_equal(net_stream_stats(t.c->s)->rx_bytes, MUCH);
	assert_int_equal(net_stream_stats(t.c->s)->tx_bytes, MUCH);
	close(t.peer);
	t.peer = -1;
	until_closed(&t, 0);
	finish(&t);
	free(out);
	free(in);
}

static void test_echo_tcp(void **state)
{
	echo_much(state, tcp_pair);
}

static void test_echo_unix(void **state)
{
	echo_much(state, unix_pair);
}

static void test_echo_byte_by_byte(void **state)
{
	struct test t;
	uint8_t in[200];

	open_over(&t, state, tcp_pair);
	start(&t);
	for (size_t i = 0; i < sizeof(in); i++) {
		uint8_t byte = pattern(i);

		assert_int_equal(send(t.peer, &byte, 1, 0), 1);
		receive(&t, in + i, 1);
		assert_int_equal(in[i], byte);
	}
	assert_int_equal(t.c->rx_done, sizeof(in));
	close(t.peer);
	t.peer = -1;
	until_closed(&t, 0);
	finish(&t);
}

static void test_one_read_one_write_per_turn(void **state)
{
	struct test t;
	uint8_t data[4096];

	open_over(&t, state, tcp_pair);
	start(&t);
	turns(&t, 3);
	fill(data, sizeof(data));
	for (int i = 0; i < 8; i++) /* eight requests, one send */
		assert_int_equal(send(t.peer, data + i * 512, 512, 0), 512);
	receive(&t, data, sizeof(data));
	assert_int_equal(net_stream_stats(t.c->s)->rx_calls, 1);
	assert_int_equal(net_stream_stats(t.c->s)->tx_calls, 1);
	finish(&t);
}

static void test_half_close_gets_its_answer_first(void **state)
{
	struct test t;
	uint8_t data[1000], back[1000];

	open_over(&t, state, tcp_pair);
	start(&t);
	fill(data, sizeof(data));
	assert_int_equal(send(t.peer, data, sizeof(data), 0), sizeof(data));
	shutdown(t.peer, SHUT_WR);
	receive(&t, back, sizeof(back));
	assert_memory_equal(back, data, sizeof(data));
	until_closed(&t, 0);
	finish(&t);
}

static void reset(int fd)
{
	struct linger hard = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

/* The same for likely input, with a time limit: bytes that arrive are received
 * at the limit; if none arrive, the next are received at once. */
static void test_patient_for_a_moment(void **state)
{
	static uint8_t back[6400];
	unsigned before;
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	t.c->likely = 1u << 20;
	say_bytes(&t, 100);
	receive(&t, back, 100);
	before = t.c->rx_done;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(send(t.peer, back, 100, 0), 100);
		turns(&t, 2);
	}
	assert_true(t.c->rx_done < before + 64);
	receive(&t, back, 6400);
	for (xtime end = io_now_exact() + 20 * XTIME_MS; io_now_exact() < end;)
		turns(&t, 1);
	before = t.c->rx_done;
	say_bytes(&t, 10);
	assert_int_equal(t.c->rx_done, before + 1);
	receive(&t, back, 10);
	/* most of it is received without waiting */
	say_bytes(&t, 40000);
	assert_int_equal(t.c->in, 46510);
	for (int i = 0; i < 8; i++)
		receive(&t, back, 5000);
	shutdown(t.peer, SHUT_WR);
	close(t.peer);
	t.peer = -1;
	until_closed(&t, 0);
	finish(&t);
}

/* No wait after a pause that was longer than the limit. */
static void test_patience_does_not_outlast_a_pause(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	t.c->npieces = 1; /* an empty one: nothing is echoed */
	t.c->likely = 1u << 20;
	t.c->pause_at = 50;
	say_bytes(&t, 100);
	for (xtime end = io_now_exact() + 20 * XTIME_MS; io_now_exact() < end;)
		turns(&t, 1);
	assert_int_equal(t.c->in, 50);
	t.c->pause_at = 0;
	kick(&t);
	for (xtime end = io_now_exact() + 10 * XTIME_S;
	     t.c->in < 100 && io_now_exact() < end;)
		turns(&t, 1);
	assert_int_equal(t.c->in, 100);
	finish(&t);
}

static void test_reset_by_the_peer(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	turns(&t, 2);
	reset(t.peer);
	t.peer = -1;
	until_closed(&t, ERR_RESET);
	finish(&t);
}

/* With input paused no read returns the error; the loop must not spin. */
static void test_reset_while_input_is_paused(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	t.c->pause_input = true;
	start(&t);
	assert_int_equal(send(t.peer, "x", 1, 0), 1);
	turns(&t, 3);
	reset(t.peer);
	t.peer = -1;
	until_closed(&t, ERR_RESET);
	finish(&t);
}

static void test_paused_input_resumes_by_kick(void **state)
{
	struct test t;
	uint8_t c;

	open_over(&t, state, tcp_pair);
	t.c->pause_input = true;
	start(&t);
	assert_int_equal(send(t.peer, "x", 1, 0), 1);
	turns(&t, 5);
	assert_int_equal(t.c->rx_done, 0);
	assert_int_equal(net_stream_stats(t.c->s)->rx_calls, 0);
	t.c->pause_input = false;
	kick(&t);
	receive(&t, &c, 1);
	assert_int_equal(c, 'x');
	finish(&t);
}

static void test_kick_sends_output(void **state)
{
	struct test t;
	char c[3] = "abc";
	uint8_t back[3];

	open_over(&t, state, tcp_pair);
	start(&t);
	turns(&t, 3);
	t.c->piece[0] = (struct iovec){ c, 3 };
	t.c->npieces = 1;
	turns(&t, 3);
	assert_int_equal(t.c->sent, 0);
	kick(&t);
	receive(&t, back, 3);
	assert_memory_equal(back, c, 3);
	finish(&t);
}

/* Unread input is pending: a plain close would reset the connection, and the
 * peer could lose the last bytes. */
static void test_flush_last_words_arrive(void **state)
{
	struct test t;
	uint8_t *words = malloc(MUCH), *back = malloc(MUCH);

	open_over(&t, state, tcp_pair);
	fill(words, MUCH);
	t.c->piece[0] = (struct iovec){ words, MUCH };
	t.c->npieces = 1;
	t.c->fate = STREAM_FLUSH;
	t.c->fate_err = ERR_LOGIN;
	start(&t);
	assert_int_equal(send(t.peer, "unread", 6, 0), 6);
	receive(&t, back, MUCH);
	assert_memory_equal(back, words, MUCH);
	assert_end_of_stream(&t);
	assert_int_equal(t.c->rx_done, 0);
	close(t.peer);
	t.peer = -1;
	until_closed(&t, ERR_LOGIN);
	finish(&t);
	free(words);
	free(back);
}

static void test_flush_does_not_wait_for_the_peer_for_ever(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	t.c->fate = STREAM_FLUSH;
	start(&t);
	until_closed(&t, 0); /* the peer stays open */
	finish(&t);
}

static void test_close_now_with_the_cores_reason(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	turns(&t, 2);
	t.c->fate = STREAM_CLOSE;
	t.c->fate_err = ERR_TIMEOUT;
	kick(&t);
	assert_int_equal(t.c->closed, 0); /* not from within */
	until_closed(&t, ERR_TIMEOUT);
	assert_end_of_stream(&t);
	finish(&t);
}

/* A connection that the core gave up stays open for its peer until it is
 * reset. */
static void test_held_until_it_is_reset(void **state)
{
	struct test t;
	char c;

	open_over(&t, state, tcp_pair);
	net_stream_hold(t.c->s);
	start(&t);
	turns(&t, 2);
	t.c->fate = STREAM_CLOSE;
	t.c->fate_err = ERR_TIMEOUT;
	kick(&t);
	until_closed(&t, ERR_TIMEOUT);
	assert_true(t.c->held >= 0);
	assert_int_equal(recv(t.peer, &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	net_reset(t.c->held);
	assert_int_equal(recv(t.peer, &c, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	finish(&t);
}

/* The same after last bytes that the peer does not answer. */
static void test_held_after_last_words(void **state)
{
	struct test t;
	char c;

	open_over(&t, state, tcp_pair);
	net_stream_hold(t.c->s);
	start(&t);
	turns(&t, 2);
	t.c->fate = STREAM_FLUSH;
	t.c->fate_err = ERR_TIMEOUT;
	kick(&t);
	until_closed(&t, ERR_TIMEOUT);
	assert_true(t.c->held >= 0);
	net_reset(t.c->held);
	assert_int_equal(recv(t.peer, &c, 1, 0), 0); /* FIN came first */
	assert_int_equal(send(t.peer, "x", 1, MSG_NOSIGNAL), -1);
	finish(&t);
}

static void test_nothing_to_hold_where_the_peer_closed(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	net_stream_hold(t.c->s);
	start(&t);
	close(t.peer);
	t.peer = -1;
	until_closed(&t, 0);
	assert_int_equal(t.c->held, -1);
	net_reset(t.c->held);
	finish(&t);
}

static void test_deadline_expires_and_moves(void **state)
{
	xtime wait = 5 * XTIME_MS, armed;
	struct test t;

	open_over(&t, state, tcp_pair);
	start(&t);
	do { /* again, if the machine is too busy to move the deadline in time */
		armed = io_now_exact() + wait;
		wait *= 2;
		t.c->expired = 0;
		t.c->deadline = armed;
		kick(&t);
		turns(&t, 1);
		t.c->deadline = armed + 3600 * XTIME_S; /* later */
		kick(&t);
	} while (t.c->expired);
	while (io_now_exact() < armed + XTIME_MS)
		turns(&t, 1); /* the armed timer fires too early */
	turns(&t, 1);
	assert_int_equal(t.c->expired, 0);
	t.c->deadline = io_now_exact() + XTIME_MS; /* earlier */
	kick(&t);
	both_turns(t.l, &t.c->expired, 1);
	finish(&t);
}

static void test_never_started_is_freed(void **state)
{
	struct test t;

	open_over(&t, state, tcp_pair);
	net_stream_free(t.c->s);
	assert_end_of_stream(&t);
	close(t.peer);
	free(t.c);
}

static void test_addresses(void **state)
{
	struct test t;
	struct net_addr a, b, peer;

	open_over(&t, state, tcp_pair);
	net_stream_peer(t.c->s, &a);
	net_stream_local(t.c->s, &b);
	peer.len = sizeof(peer.sa);
	getsockname(t.peer, (struct sockaddr *)&peer.sa, &peer.len);
	assert_int_equal(net_addr_port(&a), net_addr_port(&peer));
	assert_int_not_equal(net_addr_port(&b), net_addr_port(&peer));
	start(&t);
	finish(&t);
}

/* ---- memory that is a mapping of a file ---- */

#define FILE_LEN (1u << 20)

struct mapped {
	int fd;
	uint8_t *at;
};

static struct mapped map_file(void)
{
	struct mapped m = { .fd = memfd_create("stream_test", MFD_CLOEXEC) };

	assert_int_equal(ftruncate(m.fd, FILE_LEN), 0);
	m.at = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd,
		    0);
	assert_ptr_not_equal(m.at, MAP_FAILED);
	fill(m.at, FILE_LEN);
	return m;
}

static void unmap_file(struct mapped *m)
{
	net_file_backed(NULL, 0, m->fd);
	munmap(m->at, FILE_LEN);
	close(m->fd);
}

/* mixed makes pieces: headers elsewhere, data of many sizes in the file, some
 * around the threshold, one across the end of the mapping. */
static void mixed(struct core *c, uint8_t *header, const struct mapped *m)
{
	static const size_t len[] = { 1,     16383, 16384,  16385, 48,
				      65536, 4096,  100001, 262144 };
	size_t off = 5;

	for (size_t i = 0; i < ARRAY_LEN(len); i++) {
		c->piece[c->npieces++] = (struct iovec){ header + i * 48, 48 };
		c->piece[c->npieces++] = (struct iovec){ m->at + off, len[i] };
		off += len[i] + 3;
	}
	c->piece[c->npieces++] =
		(struct iovec){ m->at + FILE_LEN - 20000, 20000 };
}

static void send_mixed(void **state, bool backed, uint64_t *calls)
{
	struct test t;
	struct mapped m = map_file();
	uint8_t header[48 * 16], *want, *got;
	struct bufv all;

	fill(header, sizeof(header));
	if (backed)
		assert_int_equal(net_file_backed(m.at, FILE_LEN, m.fd), 0);
	open_over(&t, state, tcp_pair);
	mixed(t.c, header, &m);
	all = bufv_of(t.c->piece, t.c->npieces);
	want = malloc(all.len);
	got = malloc(all.len);
	bufv_copy_out(&all, 0, want, all.len);
	start(&t);
	receive(&t, got, all.len);
	assert_memory_equal(got, want, all.len);
	*calls = net_stream_stats(t.c->s)->tx_calls;
	assert_int_equal(net_stream_stats(t.c->s)->tx_bytes, all.len);
	finish(&t);
	unmap_file(&m);
	free(want);
	free(got);
}

static void test_sendfile_same_bytes(void **state)
{
	uint64_t plain, by_file;

	send_mixed(state, false, &plain);
	send_mixed(state, true, &by_file);
	assert_true(by_file > plain); /* a call for each large piece */
}

/* The socket fills up at every place inside pieces: small buffers, and a peer
 * that reads a little at a time. */
static void test_sendfile_to_a_slow_peer(void **state)
{
	struct test t;
	struct mapped m = map_file();
	uint8_t header[48 * 16], *got = malloc(FILE_LEN), *want;
	struct bufv all;
	int small = 4096;

	assert_int_equal(net_file_backed(m.at, FILE_LEN, m.fd), 0);
	fill(header, sizeof(header));
	open_over(&t, state, unix_pair);
	setsockopt(t.peer, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	mixed(t.c, header, &m);
	all = bufv_of(t.c->piece, t.c->npieces);
	want = malloc(all.len);
	bufv_copy_out(&all, 0, want, all.len);
	start(&t);
	for (size_t at = 0, step = 1; at < all.len; at += step) {
		step = MIN(all.len - at, step * 2 % 7919 + 1);
		receive(&t, got + at, step);
	}
	assert_memory_equal(got, want, all.len);
	finish(&t);
	unmap_file(&m);
	free(got);
	free(want);
}

/* A file that is shorter than its declared mapping: the bytes of the file are
 * still sent. */
static void test_sendfile_impossible_falls_back(void **state)
{
	struct test t;
	struct mapped m = map_file();
	uint8_t *got = malloc(65536);
	int empty = memfd_create("empty", MFD_CLOEXEC);

	assert_int_equal(net_file_backed(m.at, FILE_LEN, empty), 0);
	open_over(&t, state, tcp_pair);
	t.c->piece[0] = (struct iovec){ m.at, 65536 };
	t.c->npieces = 1;
	start(&t);
	receive(&t, got, 65536);
	assert_memory_equal(got, m.at, 65536);
	finish(&t);
	net_file_backed(NULL, 0, empty);
	close(empty);
	unmap_file(&m);
	free(got);
}

/* Neither sendmsg nor sendfile may end the process by SIGPIPE. */
static void test_peer_gone_while_sending(void **state)
{
	struct test t;
	struct mapped m = map_file();

	assert_int_equal(net_file_backed(m.at, FILE_LEN, m.fd), 0);
	for (unsigned i = 0; i < 2; i++) {
		open_over(&t, state, unix_pair);
		t.c->pause_input = true;
		t.c->piece[0] = (struct iovec){ m.at, i ? 65536 : 100 };
		t.c->npieces = 1;
		close(t.peer);
		t.peer = -1;
		start(&t);
		until_closed(&t, ERR_RESET);
		finish(&t);
	}
	unmap_file(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_echo_tcp),
		BOTH(test_echo_unix),
		BOTH(test_echo_byte_by_byte),
		BOTH(test_one_read_one_write_per_turn),
		BOTH(test_half_close_gets_its_answer_first),
		BOTH(test_patient_for_a_moment),
		BOTH(test_patience_does_not_outlast_a_pause),
		BOTH(test_reset_by_the_peer),
		BOTH(test_reset_while_input_is_paused),
		BOTH(test_paused_input_resumes_by_kick),
		BOTH(test_kick_sends_output),
		BOTH(test_flush_last_words_arrive),
		BOTH(test_flush_does_not_wait_for_the_peer_for_ever),
		BOTH(test_close_now_with_the_cores_reason),
		BOTH(test_held_until_it_is_reset),
		BOTH(test_held_after_last_words),
		BOTH(test_nothing_to_hold_where_the_peer_closed),
		BOTH(test_deadline_expires_and_moves),
		BOTH(test_never_started_is_freed),
		BOTH(test_addresses),
		BOTH(test_sendfile_same_bytes),
		BOTH(test_sendfile_to_a_slow_peer),
		BOTH(test_sendfile_impossible_falls_back),
		BOTH(test_peer_gone_while_sending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
