/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_core.h: a stream whose core echoes, or sends its own pieces. The peer is a plain
 * non-blocking socket in the same thread.
 */
#ifndef TESTS_NET_STREAM_CORE_H
#define TESTS_NET_STREAM_CORE_H

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

#define RING 65536u

/* ---- the core ---- */

struct core {
	struct net_stream *s;
	/* echo: a ring; positions only grow */
	uint8_t ring[RING];
	uint64_t in, out;
	bool pause_input;
	/* of the input that it has received it processes one byte, and then uses up its
	 * time, if is_slow */
	bool is_slow, is_spent;
	uint64_t processed;
	uint64_t pause_at; /* 0: nowhere */
	size_t sure, likely;
	/* or pieces of its own */
	struct iovec piece[64];
	unsigned npieces;
	size_t sent;	/* of the pieces */
	size_t at_once; /* bytes that tx_what returns; 0: all */
	/* its status */
	enum stream_fate fate;
	int fate_err;
	xtime deadline;
	/* calls that it got */
	unsigned expired, closed, owner_told, rx_done;
	int closed_err, owner_err, held;
};

static inline unsigned span(struct core *c, uint64_t from, uint64_t to,
			    struct iovec *iov)
{
	size_t at = from % RING, len = to - from, first = MIN(len, RING - at);

	iov[0] = (struct iovec){ c->ring + at, first };
	iov[1] = (struct iovec){ c->ring, len - first };
	return len == 0 ? 0 : len > first ? 2 : 1;
}

static inline void process(struct core *c)
{
	struct stream_host *h = net_stream_host(c->s);

	while (c->processed < c->in && !c->is_spent) {
		c->processed++;
		while (c->is_slow && !c->is_spent)
			c->is_spent = h->is_spent(h, false);
	}
}

static inline unsigned rx_where(void *core, struct iovec *iov, unsigned max)
{
	struct core *c = core;

	assert_true(max >= 2);
	c->is_spent = false;
	process(c);
	if (c->is_spent)
		return 0;
	if (c->pause_at)
		return span(c, c->in, c->pause_at, iov);
	return c->pause_input ? 0 : span(c, c->in, c->out + RING, iov);
}

static inline void rx_done(void *core, size_t n, xtime now)
{
	struct core *c = core;

	assert_true(n > 0 && now > 0);
	assert_int_equal(c->closed, 0);
	c->rx_done++;
	c->in += n;
	process(c);
}

static inline unsigned tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct core *c = core;
	struct bufv all = bufv_of(c->piece, c->npieces);
	unsigned n;

	if (c->npieces == 0)
		return span(c, c->out, c->in, iov);
	bufv_slice(&all, c->sent, c->at_once ? c->at_once : all.len, iov, max,
		   &n);
	return all.len == c->sent ? 0 : n;
}

static inline void tx_done(void *core, size_t n, xtime now)
{
	struct core *c = core;

	assert_true(n > 0 && now > 0);
	if (c->npieces)
		c->sent += n;
	else
		c->out += n;
}

static inline void expire(void *core, xtime now)
{
	struct core *c = core;

	assert_true(now >= c->deadline);
	c->expired++;
	c->deadline = XTIME_NEVER;
}

static inline void status(const void *core, struct stream_status *st)
{
	const struct core *c = core;

	*st = (struct stream_status){ .fate = c->fate,
				      .err = c->fate_err,
				      .deadline = c->deadline,
				      .sure = c->sure,
				      .likely = c->likely };
}

static inline void closed(void *core, int err, xtime now)
{
	struct core *c = core;

	(void)now;
	c->closed++;
	c->closed_err = err;
}

static const struct stream_ops ops = {
	.rx_where = rx_where,
	.rx_done = rx_done,
	.tx_what = tx_what,
	.tx_done = tx_done,
	.expire = expire,
	.status = status,
	.closed = closed,
};

static inline void owner_told(void *arg, int err)
{
	struct core *c = arg;

	assert_int_equal(c->closed, 1);
	c->owner_told++;
	c->owner_err = err;
	c->held = net_stream_held(c->s);
	net_stream_free(c->s);
	c->s = NULL;
}

/* ---- both ends ---- */

static inline void tcp_pair(int s[2])
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(l, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&sin, &len), 0);
	s[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(s[1], (struct sockaddr *)&sin, len), 0);
	s[0] = accept(l, NULL, NULL);
	assert_true(s[0] >= 0);
	close(l);
}

static inline void unix_pair(int s[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
}

struct test {
	struct io_loop *l;
	struct core *c;
	int peer;
};

static inline void open_over(struct test *t, void **state,
			     void (*pair)(int s[2]))
{
	int s[2];

	t->l = both_loop(state);
	pair(s);
	t->peer = s[1];
	t->c = calloc(1, sizeof(*t->c));
	t->c->deadline = XTIME_NEVER;
	t->c->s = net_stream_new(t->l, s[0]);
	assert_non_null(t->c->s);
}

static inline void start(struct test *t)
{
	assert_int_equal(
		net_stream_start(t->c->s, &ops, t->c, owner_told, t->c), 0);
}

static inline void turns(struct test *t, int n)
{
	while (n-- > 0)
		assert_true(io_loop_turn(t->l, 0) >= 0);
}

static inline void until_closed(struct test *t, int err)
{
	both_turns(t->l, &t->c->owner_told, 1);
	assert_int_equal(t->c->closed, 1);
	assert_int_equal(t->c->closed_err, err);
	assert_int_equal(t->c->owner_err, err);
}

static inline void finish(struct test *t)
{
	if (t->peer >= 0)
		close(t->peer);
	if (!t->c->owner_told)
		both_turns(t->l, &t->c->owner_told, 1);
	free(t->c);
}

static inline void kick(struct test *t)
{
	struct stream_host *h = net_stream_host(t->c->s);

	h->kick(h);
}

/* receive reads exactly len bytes at the peer, turning the loop meanwhile. */
static inline void receive(struct test *t, uint8_t *data, size_t len)
{
	xtime end = io_now_exact() + 10 * XTIME_S;

	for (size_t got = 0; got < len;) {
		ssize_t n = recv(t->peer, data + got, len - got, MSG_DONTWAIT);

		assert_true(io_now_exact() < end);
		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		if (n > 0)
			got += (size_t)n;
		turns(t, 1);
	}
}

static inline uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7);
}

static inline void fill(uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = pattern(i);
}

static inline void say_bytes(struct test *t, size_t n)
{
	static uint8_t bytes[65536];

	assert_int_equal(send(t->peer, bytes, n, 0), (ssize_t)n);
	turns(t, 20);
}

#endif
