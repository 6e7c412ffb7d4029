/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc_test.c: the n-th allocation fails, for every n, in a scenario that uses
 * loop, listener, connector, stream and file backstore: each failure is
 * reported, no run crashes, none leaks (the sanitizer build checks that).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backstore/uring/bs_file.h"
#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "fail_alloc.h"
#include "net/net.h"
#include "req.h"

/* ---- a core that says one byte and reads one ---- */

struct scenario {
	struct io_loop *l;
	struct net_listener *listener;
	struct net_connector *connector;
	struct net_stream *stream[2];
	struct bs *b;
	int accepted, connected, closed;
	bool said[2];
};

struct end {
	struct scenario *s;
	unsigned which;
	uint8_t byte;
	bool out, in;
};

static unsigned rx_where(void *core, struct iovec *iov, unsigned max)
{
	struct end *e = core;

	(void)max;
	*iov = (struct iovec){ &e->byte, 1 };
	return 1;
}

static void rx_done(void *core, size_t n, xtime now)
{
	(void)n;
	(void)now;
	((struct end *)core)->in = true;
}

static unsigned tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct end *e = core;

	(void)max;
	*iov = (struct iovec){ (void *)(uintptr_t) "x", 1 };
	return e->out ? 0 : 1;
}

static void tx_done(void *core, size_t n, xtime now)
{
	(void)n;
	(void)now;
	((struct end *)core)->out = true;
}

static void expire(void *core, xtime now)
{
	(void)core;
	(void)now;
}

static void status(const void *core, struct stream_status *st)
{
	const struct end *e = core;

	*st = (struct stream_status){
		.fate = e->in && e->out ? STREAM_CLOSE : STREAM_GO,
		.deadline = io_now_exact() + XTIME_S,
	};
}

static void core_closed(void *core, int err, xtime now)
{
	(void)core;
	(void)err;
	(void)now;
}

static const struct stream_ops ops = {
	.rx_where = rx_where,
	.rx_done = rx_done,
	.tx_what = tx_what,
	.tx_done = tx_done,
	.expire = expire,
	.status = status,
	.closed = core_closed,
};

static void stream_closed(void *arg, int err)
{
	struct end *e = arg;

	(void)err;
	net_stream_free(e->s->stream[e->which]);
	e->s->stream[e->which] = NULL;
	e->s->closed++;
}

static void accepted(void *arg, int fd, const struct net_addr *peer)
{
	(void)peer;
	((struct scenario *)arg)->accepted = fd;
}

static void connected(void *arg, int fd, const char *why)
{
	struct scenario *s = arg;

	assert_true(fd >= 0 || *why);
	s->connector = NULL;
	s->connected = fd;
}

/* Runs turns until *what is set, or no event can set it any more. */
static void turns(struct scenario *s, const int *what, int unset)
{
	for (int i = 0; i < 200 && *what == unset; i++)
		assert_true(io_loop_turn(s->l, 10 * XTIME_MS) >= 0);
}

static bool connect_both(struct scenario *s)
{
	struct net_addr a;
	int err;

	assert_int_equal(net_addr_parse(&a, "127.0.0.1:0", 0), 0);
	s->listener = net_listen(s->l, &a, accepted, s, &err);
	if (!s->listener) {
		assert_int_equal(err, -ENOMEM);
		return false;
	}
	net_listener_addr(s->listener, &a);
	s->connector = net_connect(s->l, "127.0.0.1", net_addr_port(&a),
				   io_now_exact() + 5 * XTIME_S, connected, s);
	if (!s->connector)
		return false;
	turns(s, &s->connected, -1);
	if (s->connected < 0)
		return false;
	turns(s, &s->accepted, -1);
	return s->accepted >= 0;
}

static bool start(struct scenario *s, struct end *e, int *fd)
{
	struct net_stream *st = net_stream_new(s->l, *fd);

	*fd = -1; /* owned by the stream, or closed */
	if (!st)
		return false;
	if (net_stream_start(st, &ops, e, stream_closed, e)) {
		net_stream_free(st);
		return false;
	}
	s->stream[e->which] = st;
	return true;
}

static void talk(struct scenario *s)
{
	struct end e[2] = { { .s = s }, { .s = s, .which = 1 } };
	int one = start(s, &e[0], &s->connected);
	int two = start(s, &e[1], &s->accepted);

	for (int i = 0; i < 300 && s->closed < one + two; i++) {
		if (one + two == 1 && i == 5) /* the other end was never made */
			e[0].in = e[0].out = e[1].in = e[1].out = true;
		for (int k = 0; k < 2; k++)
			if (s->stream[k]) {
				struct stream_host *h =
					net_stream_host(s->stream[k]);

				h->kick(h);
			}
		io_loop_turn(s->l, 10 * XTIME_MS);
	}
	assert_int_equal(s->closed, one + two);
}

/* A read into memory that O_DIRECT does not support, so that it needs a
 * buffer. */
static void use_file(struct scenario *s, const char *path)
{
	struct bs_file_config cfg = { .path = path,
				      .loops = &s->l,
				      .nloops = 1 };
	struct test_req t;
	uint8_t data[513];
	char why[256];
	int err;

	s->b = bs_file_open(&cfg, &err, why, sizeof(why));
	if (!s->b) {
		assert_int_equal(err, -ENOMEM);
		assert_non_null(strstr(why, "out of memory"));
		return;
	}
	test_submit(s->b, &t, BS_READ, 0, 0, 512, data + 1);
	for (int i = 0; i < 200 && !t.done; i++)
		io_loop_turn(s->l, 10 * XTIME_MS);
	assert_int_equal(t.done, 1);
	assert_true(t.req.result == 0 || t.req.result == ERR_NOMEM);
	bs_close(s->b);
}

static bool run_failing(unsigned long nth, enum io_backend backend,
			const char *path)
{
	struct scenario s = { .accepted = -1, .connected = -1 };
	int err;

	failed = false;
	countdown = nth;
	s.l = io_loop_new(backend, &err);
	if (s.l) {
		use_file(&s, path);
		if (connect_both(&s))
			talk(&s);
	} else {
		assert_int_equal(err, -ENOMEM);
	}
	countdown = 0;
	if (s.connector)
		net_connect_cancel(s.connector);
	if (s.connected >= 0)
		close(s.connected);
	if (s.accepted >= 0)
		close(s.accepted);
	net_listener_free(s.listener);
	io_loop_free(s.l);
	return failed;
}

static void every_allocation(enum io_backend backend)
{
	char path[] = "./openiser-alloc-XXXXXX";
	int fd = mkstemp(path);
	unsigned long n = 1;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	close(fd);
	while (run_failing(n, backend, path))
		n++;
	unlink(path);
	assert_true(n > 8); /* there was an allocation to fail */
}

static void test_every_allocation_fails_epoll(void **state)
{
	(void)state;
	every_allocation(IO_EPOLL);
}

static void test_every_allocation_fails_auto(void **state)
{
	(void)state;
	every_allocation(IO_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_allocation_fails_epoll),
		cmocka_unit_test(test_every_allocation_fails_auto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
