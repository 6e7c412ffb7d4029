/* SPDX-License-Identifier: BSD-2-Clause */
/* connect_test.c: listeners and connectors, on loopback. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/net.h"
#include "unit/io/both.h"

struct fixture {
	struct io_loop *l;
	struct net_listener *n;
	struct net_addr at;
	unsigned accepted, connected, shorts;
	int in[64]; /* accepted */
	int out;    /* connected, or -Exxx */
	char why[400];
	bool free_in_accept;
};

static void accepted(void *arg, int fd, const struct net_addr *peer)
{
	struct fixture *f = arg;

	assert_int_equal(peer->sa.ss_family, f->at.sa.ss_family);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	f->in[f->accepted++] = fd;
	if (f->free_in_accept) {
		net_listener_free(f->n);
		f->n = NULL;
	}
}

static void connected(void *arg, int fd, const char *why)
{
	struct fixture *f = arg;

	f->connected++;
	f->out = fd;
	snprintf(f->why, sizeof(f->why), "%s", why);
}

static void listen_on(struct fixture *f, void **state, const char *text)
{
	struct net_addr a;
	int err;

	*f = (struct fixture){ .l = both_loop(state) };
	assert_int_equal(net_addr_parse(&a, text, 0), 0);
	f->n = net_listen(f->l, &a, accepted, f, &err);
	assert_non_null(f->n);
	net_listener_addr(f->n, &f->at);
	assert_int_not_equal(net_addr_port(&f->at), 0);
}

static void finish(struct fixture *f)
{
	net_listener_free(f->n);
	for (unsigned i = 0; i < f->accepted; i++)
		close(f->in[i]);
	if (f->connected && f->out >= 0)
		close(f->out);
}

static void connect_to(struct fixture *f, const char *host, uint16_t port)
{
	assert_non_null(net_connect(
		f->l, host, port, io_now_exact() + 8 * XTIME_S, connected, f));
	assert_int_equal(f->connected, 0); /* not from within the call */
}

static void connects(void **state, const char *listen, const char *host)
{
	struct fixture f;

	listen_on(&f, state, listen);
	connect_to(&f, host, net_addr_port(&f.at));
	both_turns(f.l, &f.connected, 1);
	assert_true(f.out >= 0);
	assert_string_equal(f.why, "");
	both_turns(f.l, &f.accepted, 1);
	assert_int_equal(write(f.out, "hello", 5), 5);
	finish(&f);
}

static void test_connect_ipv4(void **state)
{
	connects(state, "127.0.0.1:0", "127.0.0.1");
}

static void test_connect_ipv6(void **state)
{
	if (access("/proc/net/if_inet6", F_OK))
		skip();
	connects(state, "[::1]:0", "::1");
}

/* The name may resolve to ::1 first: then the next address is tried. */
static void test_connect_by_name(void **state)
{
	struct addrinfo *found;

	if (getaddrinfo("localhost", NULL, NULL, &found)) {
		print_message("no localhost in /etc/hosts\n");
		skip();
	}
	freeaddrinfo(found);
	connects(state, "127.0.0.1:0", "localhost");
}

static void test_connect_refused_names_the_address(void **state)
{
	struct fixture f;
	char want[128], at[NET_ADDR_STR];

	listen_on(&f, state, "127.0.0.1:0");
	net_listener_free(f.n);
	f.n = NULL;
	connect_to(&f, "127.0.0.1", net_addr_port(&f.at));
	both_turns(f.l, &f.connected, 1);
	assert_int_equal(f.out, -ECONNREFUSED);
	net_addr_str(&f.at, at);
	snprintf(want, sizeof(want), "cannot connect to %s: Connection refused",
		 at);
	assert_string_equal(f.why, want);
	finish(&f);
}

static void test_connect_unknown_name(void **state)
{
	struct fixture f = { .l = both_loop(state) };

	connect_to(&f, "no..such..name", 1);
	both_turns(f.l, &f.connected, 1);
	assert_int_equal(f.out, -ENOENT);
	assert_non_null(strstr(f.why, "cannot resolve 'no..such..name': "));
}

static void test_connect_name_too_long(void **state)
{
	struct fixture f = { .l = both_loop(state) };
	char name[400];

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	connect_to(&f, name, 1);
	both_turns(f.l, &f.connected, 1);
	assert_int_equal(f.out, -ENOENT);
}

/* A listener whose queue is full does not answer on loopback. */
static void test_connect_until_the_deadline(void **state)
{
	struct io_loop *l = both_loop(state);
	struct fixture f = { .l = l };
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int s = socket(AF_INET, SOCK_STREAM, 0), fill[4];
	xtime start = io_now_exact();

	assert_int_equal(bind(s, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(listen(s, 0), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&sin, &len), 0);
	for (int i = 0; i < 4; i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fill[i], (struct sockaddr *)&sin, len);
	}
	assert_non_null(net_connect(l, "127.0.0.1", ntohs(sin.sin_port),
				    start + 30 * XTIME_MS, connected, &f));
	both_turns(l, &f.connected, 1);
	assert_int_equal(f.out, -ETIMEDOUT);
	assert_non_null(strstr(f.why, "no answer in time"));
	assert_true(io_now_exact() - start >= 30 * XTIME_MS);
	for (int i = 0; i < 4; i++)
		close(fill[i]);
	close(s);
}

/* Cancelled while the name is resolved, and while connecting. */
static void test_connect_cancel(void **state)
{
	struct fixture f;
	struct net_connector *c;

	listen_on(&f, state, "127.0.0.1:0");
	c = net_connect(f.l, "localhost", net_addr_port(&f.at), XTIME_NEVER,
			connected, &f);
	net_connect_cancel(c);
	for (int i = 0; i < 5; i++)
		io_loop_turn(f.l, XTIME_MS);
	assert_int_equal(f.connected, 0);
	c = net_connect(f.l, "localhost", net_addr_port(&f.at), XTIME_NEVER,
			connected, &f);
	/* the loop is freed while the request is in progress */
	net_connect_cancel(c);
	finish(&f);
}

static void test_listen_in_use_says_so(void **state)
{
	struct fixture f;
	int err;

	listen_on(&f, state, "127.0.0.1:0");
	assert_null(net_listen(f.l, &f.at, accepted, &f, &err));
	assert_int_equal(err, -EADDRINUSE);
	finish(&f);
}

static void test_listen_again_at_once_after_free(void **state)
{
	struct fixture f;
	int err;

	listen_on(&f, state, "127.0.0.1:0");
	io_loop_turn(f.l, 0);
	net_listener_free(f.n);
	f.n = net_listen(f.l, &f.at, accepted, &f, &err);
	assert_non_null(f.n);
	finish(&f);
}

static void test_listen_foreign_address(void **state)
{
	struct io_loop *l = both_loop(state);
	struct net_addr a;
	int err;

	/* RFC 5737: an address without a host */
	net_addr_parse(&a, "192.0.2.1:3260", 0);
	assert_null(net_listen(l, &a, accepted, NULL, &err));
	assert_int_equal(err, -EADDRNOTAVAIL);
}

static void test_listener_pause(void **state)
{
	struct fixture f;

	listen_on(&f, state, "127.0.0.1:0");
	net_listener_pause(f.n, true);
	connect_to(&f, "127.0.0.1", net_addr_port(&f.at));
	both_turns(f.l, &f.connected, 1);
	for (int i = 0; i < 5; i++)
		io_loop_turn(f.l, 0);
	assert_int_equal(f.accepted, 0);
	net_listener_pause(f.n, false);
	both_turns(f.l, &f.accepted, 1);
	finish(&f);
}

static void test_listener_freed_from_accepted(void **state)
{
	struct fixture f;

	listen_on(&f, state, "127.0.0.1:0");
	f.free_in_accept = true;
	connect_to(&f, "127.0.0.1", net_addr_port(&f.at));
	both_turns(f.l, &f.accepted, 1);
	both_turns(f.l, &f.connected, 1);
	finish(&f);
}

static rlim_t limit_fds(rlim_t n)
{
	struct rlimit r;
	rlim_t before;

	getrlimit(RLIMIT_NOFILE, &r);
	before = r.rlim_cur;
	r.rlim_cur = n;
	setrlimit(RLIMIT_NOFILE, &r);
	return before;
}

static void short_of(void *arg, int err, const struct net_addr *peer)
{
	struct fixture *f = arg;

	assert_true(err == -EMFILE || err == -ENFILE);
	assert_non_null(peer);
	assert_int_equal(peer->sa.ss_family, f->at.sa.ss_family);
	f->shorts++;
}

/* Out of descriptors: the listener closes a connection with the help of the
 * spare descriptor, so that the peer is informed and the loop does not spin;
 * later connections are accepted. */
static void test_listener_out_of_descriptors(void **state)
{
	struct fixture f;
	rlim_t before;
	int turns = 0;
	char byte;
	xtime end;

	listen_on(&f, state, "127.0.0.1:0");
	net_listener_on_short(f.n, short_of);
	connect_to(&f, "127.0.0.1", net_addr_port(&f.at));
	net_listener_pause(f.n, true);
	both_turns(f.l, &f.connected, 1);
	net_listener_pause(f.n, false);
	before = limit_fds((rlim_t)f.out + 1);
	both_turns(f.l, &f.shorts, 1);
	assert_int_equal(f.accepted, 0);
	assert_true(recv(f.out, &byte, 1, 0) <= 0); /* FIN or RST arrived */
	for (end = io_now_exact() + 20 * XTIME_MS; io_now_exact() < end;
	     turns++)
		io_loop_turn(f.l, 20 * XTIME_MS);
	assert_true(turns < 10);
	limit_fds(before);
	close(f.out);
	f.connected = 0;
	connect_to(&f, "127.0.0.1", net_addr_port(&f.at));
	both_turns(f.l, &f.accepted, 1);
	both_turns(f.l, &f.connected, 1);
	assert_int_equal(f.shorts, 1);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_connect_ipv4),
		BOTH(test_connect_ipv6),
		BOTH(test_connect_by_name),
		BOTH(test_connect_refused_names_the_address),
		BOTH(test_connect_unknown_name),
		BOTH(test_connect_name_too_long),
		BOTH(test_connect_until_the_deadline),
		BOTH(test_connect_cancel),
		BOTH(test_listen_in_use_says_so),
		BOTH(test_listen_again_at_once_after_free),
		BOTH(test_listen_foreign_address),
		BOTH(test_listener_pause),
		BOTH(test_listener_freed_from_accepted),
		BOTH(test_listener_out_of_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
