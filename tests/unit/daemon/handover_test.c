/* SPDX-License-Identifier: BSD-2-Clause */
/* handover_test.c: what an iserd hands over arrives as it was sent, over a real
 * socket; other bytes are refused without a lost descriptor. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/upgrade/takeover.h"
#include "io/io.h"

#define MANY 450u /* more than one SCM_RIGHTS message holds */

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int listening(const char *host)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(inet_pton(AF_INET, host, &a.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static struct handover *sample(unsigned nlisteners)
{
	struct handover *h = calloc(1, sizeof(*h));
	struct handed_memory m = {
		.key = "disk \"1\"",
		.memory = { .size = 8192, .uuid = { 1, 2, 0xff } },
	};
	const uint8_t uuid[16] = { 9 };
	uint8_t *bytes = malloc(3);

	assert_true(h && bytes);
	strcpy(h->token, "f00");
	h->watchdog = 30000000;
	for (unsigned i = 0; i < nlisteners; i++)
		assert_true(handover_add_listener(
			h, listening(i ? "127.0.0.1" : "127.0.0.9")));
	m.memory.fd = memfd_create("m", 0);
	assert_int_equal(pwrite(m.memory.fd, "data", 4, 100), 4);
	assert_true(handover_add_memory(h, &m));
	assert_true(handover_add_port(h, "iqn.x:\"y\",t,0x0001", 65535));
	memcpy(bytes, "\x00\xa5\xff", 3);
	assert_true(handover_add_unit(h, uuid, bytes, 3));
	assert_true(handover_add_identity(h, (const uint8_t[16]){ 5 }, uuid));
	return h;
}

static void *send_thread(void *arg)
{
	void **both = arg;
	int *sock = both[1];

	assert_true(handover_send(both[0], *sock));
	return NULL;
}

/* Sends h and returns what arrives. */
static struct handover *pass(struct handover *h)
{
	int s[2];
	void *both[2] = { h, &s[0] };
	struct handover *got;
	pthread_t t;
	char why[256];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(pthread_create(&t, NULL, send_thread, both), 0);
	got = handover_receive(s[1], why, sizeof(why));
	pthread_join(t, NULL);
	close(s[0]);
	close(s[1]);
	assert_non_null(got);
	return got;
}

static void test_all_arrives(void **state)
{
	unsigned before = open_descriptors();
	struct handover *h = sample(MANY), *got = pass(h);
	struct net_addr a;
	const struct handed_unit *u;
	struct lun_memory m;
	uint8_t uuid[16] = { 0 };
	char data[4];
	int fd;

	(void)state;
	assert_int_equal(got->nlisteners, MANY);
	assert_string_equal(got->token, "f00");
	assert_int_equal(got->watchdog, 30000000);
	/* by address; port 0 fits any port, each socket once */
	a = h->listeners[7].address;
	fd = handover_take_listener(got, &a);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(handover_take_listener(got, &a), -1);
	assert_int_equal(net_addr_parse(&a, "127.0.0.9:0", 0), 0);
	fd = handover_take_listener(got, &a);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(handover_take_listener(got, &a), -1);
	assert_int_equal(net_addr_parse(&a, "127.0.0.8:0", 0), 0);
	assert_int_equal(handover_take_listener(got, &a), -1);
	/* by key, once */
	assert_false(handover_take_memory(got, "disk", &m));
	assert_true(handover_take_memory(got, "disk \"1\"", &m));
	assert_int_equal(m.size, 8192);
	assert_int_equal(pread(m.fd, data, 4, 100), 4);
	assert_memory_equal(data, "data", 4);
	assert_memory_equal(m.uuid, "\x01\x02\xff", 3);
	close(m.fd);
	assert_false(handover_take_memory(got, "disk \"1\"", &m));
	assert_true(got->has_identities);
	assert_int_equal(handover_identity(got, (const uint8_t[16]){ 5 })[0],
			 9);
	assert_null(handover_identity(got, uuid));
	assert_int_equal(got->nports, 1);
	assert_string_equal(got->ports[0].name, "iqn.x:\"y\",t,0x0001");
	assert_int_equal(got->ports[0].id, 65535);
	/* by the identity of the store */
	memset(uuid, 0, sizeof(uuid));
	assert_null(handover_unit(got, uuid));
	uuid[0] = 9;
	u = handover_unit(got, uuid);
	assert_int_equal(u->len, 3);
	assert_memory_equal(u->bytes, "\x00\xa5\xff", 3);
	handover_free(h);
	handover_free(got);
	assert_int_equal(open_descriptors(), before);
}

static void test_nothing_is_inherited(void **state)
{
	struct lun_memory m;
	struct net_addr a;
	uint8_t uuid[16] = { 0 };

	(void)state;
	assert_int_equal(net_addr_parse(&a, "127.0.0.1:0", 0), 0);
	assert_int_equal(handover_take_listener(NULL, &a), -1);
	assert_false(handover_take_memory(NULL, "disk", &m));
	assert_null(handover_unit(NULL, uuid));
	handover_free(NULL);
}

/* Receives `text` with two descriptors; *why has the reason of the refusal. */
static void refused(const char *text, char why[256])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} c = { .room = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &c,
			    .msg_controllen = sizeof(c) };
	int s[2], fds[2] = { 0, 0 };
	unsigned before;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	before = open_descriptors();
	c.head.cmsg_level = SOL_SOCKET;
	c.head.cmsg_type = SCM_RIGHTS;
	c.head.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&c.head), fds, sizeof(fds));
	assert_true(sendmsg(s[0], &m, 0) > 0);
	shutdown(s[0], SHUT_WR);
	assert_null(handover_receive(s[1], why, 256));
	assert_int_equal(open_descriptors(), before);
	close(s[0]);
	close(s[1]);
}

static void test_bad_answers(void **state)
{
#define M \
 "{\"key\":\"a\",\"size\":1,\"uuid\":\"00112233445566778899aabbccddeeff\"}"
#define OK "{\"result\":{\"handover\":4,\"token\":\"x\","
	static const char *const other[] = {
		"\n",
		"garbage\n",
		"[]\n",
		"{\"result\":{\"handover\":2,\"listeners\":0,\"memory\":[]}}\n",
		OK "\"listeners\":-1,\"memory\":[]}}\n",
		OK "\"listeners\":3,\"memory\":[]}}\n",
		OK "\"listeners\":1,\"memory\":[]}}\n",
		OK "\"listeners\":0,\"memory\":[" M "]}}\n",
		OK "\"listeners\":0,\"memory\":[" M ",{}]}}\n",
		OK "\"listeners\":0,\"memory\":[" M
		   ",{\"key\":\"a\",\"size\":-1,\"uuid\":"
		   "\"00112233445566778899aabbccddeeff\"}]}}\n",
		OK "\"listeners\":0,\"memory\":[" M
		   ",{\"key\":\"a\",\"size\":1,\"uuid\":\"0011\"}]}}\n",
		OK "\"listeners\":0,\"memory\":[" M "," M
		   "],\"units\":[{\"uuid\":7}]}}\n",
		OK
		"\"listeners\":0,\"memory\":[" M "," M
		"],\"units\":[{\"uuid\":\"00112233445566778899aabbccddeeff\","
		"\"reservations\":\"0x\"}]}}\n",
		OK "\"listeners\":0,\"memory\":[" M "," M
		   "],\"identities\":[{\"key\":\"00\"}]}}\n",
	};
	char why[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		refused(other[i], why);
		assert_non_null(strstr(why, "another version"));
	}
	refused("{\"error\":{\"message\":\"not now\"}}\n", why);
	assert_string_equal(why, "not now");
	refused("{\"result\":", why);
	assert_non_null(strstr(why, "without handing over"));
}

/* Without identities: those of its files were made of their paths. */
static void test_earlier_release(void **state)
{
	static const char text[] =
		"{\"result\":{\"handover\":3,\"token\":\"x\","
		"\"listeners\":0,\"memory\":[]}}\n";
	struct handover *h;
	char why[256];
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(write(s[0], text, strlen(text)), strlen(text));
	h = handover_receive(s[1], why, sizeof(why));
	assert_non_null(h);
	assert_false(h->has_identities);
	handover_free(h);
	close(s[0]);
	close(s[1]);
}

/* ---- the confirmation ---- */

#define SOON (io_now_exact() + 50 * XTIME_MS)
#define LATE (io_now_exact() + 60 * XTIME_S)

static const struct handover with_token = { .token = "0123456789abcdef" };

/* Returns errno of handover_await for what the peer sends before it leaves. */
static int await(const char *sent, bool leaves)
{
	int s[2], err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(write(s[1], sent, strlen(sent)), strlen(sent));
	if (leaves)
		shutdown(s[1], SHUT_WR);
	errno = 0;
	err = handover_await(&with_token, s[0], leaves ? LATE : SOON) ? 0
								      : errno;
	close(s[0]);
	close(s[1]);
	return err;
}

static void test_confirmation(void **state)
{
	(void)state;
	assert_int_equal(await("0123456789abcdef\nmore", true), 0);
	assert_int_equal(await("0123456789abcdef\n", false), 0);
	assert_int_equal(await("", true), ECONNRESET);
	assert_int_equal(await("0123456789abcdef", true), ECONNRESET);
	assert_int_equal(await("0123456789abcdef", false), ETIMEDOUT);
	assert_int_equal(await("0123456789abcde\n", true), EPROTO);
	assert_int_equal(await("0123456789abcdeg\n", true), EPROTO);
	assert_int_equal(await("\n0123456789abcdef\n", true), EPROTO);
	assert_int_equal(await("0123456789abcdef0123456789abcdef0123456789",
			       true),
			 EPROTO);
}

static void expect_text(int sock, const char *text)
{
	char got[64] = "";
	ssize_t n = recv(sock, got, sizeof(got) - 1, MSG_DONTWAIT);

	assert_int_equal(n, strlen(text));
	assert_string_equal(got, text);
}

/* Without "go" the new iserd does not serve. */
static void test_serve(void **state)
{
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_true(handover_confirm(&with_token, s[1]));
	assert_true(handover_await(&with_token, s[0], LATE));
	assert_int_equal(write(s[0], "go\n", 3), 3);
	assert_true(handover_serve(s[1], LATE));
	assert_true(handover_await_ready(s[0], LATE));
	expect_text(s[0], "serving\n");
	assert_false(handover_serve(s[1], SOON));
	expect_text(s[0], "ready\n");
	assert_int_equal(write(s[0], "stop\n", 5), 5);
	assert_false(handover_serve(s[1], LATE));
	close(s[0]);
	assert_false(handover_serve(s[1], LATE));
	assert_false(handover_confirm(&with_token, s[1]));
	close(s[1]);
}

/* Returns errno of handover_go for what the peer sends before it leaves, or stays. */
static int let_go(const char *sent, bool leaves, int s[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(write(s[1], sent, strlen(sent)), strlen(sent));
	if (leaves)
		shutdown(s[1], SHUT_WR);
	errno = 0;
	return handover_go(s[0], leaves ? LATE : SOON) ? 0 : errno;
}

static void close_both(const int s[2])
{
	close(s[0]);
	close(s[1]);
}

/* The old process ends for "serving" only. */
static void test_go(void **state)
{
	int s[2];

	(void)state;
	assert_int_equal(let_go("serving\n", true, s), 0);
	close_both(s);
	assert_int_equal(let_go("", true, s), ECONNRESET);
	close_both(s);
	assert_int_equal(let_go("ready\n", true, s), EPROTO);
	close_both(s);
	assert_int_equal(let_go("serv", false, s), ETIMEDOUT);
	close_both(s);
}

/* Exactly one process serves: "serving" arrives, or cannot be sent after the old one
 * gave up. */
static void test_too_late(void **state)
{
	int s[2];

	(void)state;
	assert_int_equal(let_go("", false, s), ETIMEDOUT);
	expect_text(s[1], "go\n");
	assert_int_equal(send(s[1], "serving\n", 8, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(handover_serve(s[1], LATE));
	close_both(s);
	/* it arrived, but after the limit */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(write(s[1], "serving\n", 8), 8);
	assert_true(handover_go(s[0], 0));
	close_both(s);
}

static void *leave_later(void *arg)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	const int *sock = arg;

	nanosleep(&pause, NULL);
	close(*sock);
	return NULL;
}

/* handover_refuse waits until the peer has closed the socket, which it does after
 * its stores. */
static void test_refuse(void **state)
{
	xtime began;
	pthread_t t;
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	began = io_now_exact();
	handover_refuse(s[0], SOON);
	assert_true(io_now_exact() - began >= 50 * XTIME_MS);
	expect_text(s[1], "stop\n");
	began = io_now_exact();
	assert_int_equal(pthread_create(&t, NULL, leave_later, &s[1]), 0);
	/* longer than the test may take */
	handover_refuse(s[0], io_now_exact() + 3600 * XTIME_S);
	assert_true(io_now_exact() - began >= 50 * XTIME_MS);
	pthread_join(t, NULL);
	close(s[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_arrives),
		cmocka_unit_test(test_confirmation),
		cmocka_unit_test(test_serve),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_nothing_is_inherited),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_earlier_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
