/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_test.c: the end of a session in each of its states: the callback of
 * iser_connect_start, the logout, the commands, and the list of the context. The
 * target is a socket in the thread of the test; a second thread answers where
 * iser_connect or iser_disconnect blocks.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "lib/internal.h"

struct fixture {
	struct iser_context *ctx;
	struct iser_url url;
	int listener;
	pthread_t thread;
	uint8_t last_opcode; /* of the PDU after the login; 0: none came */
	/* of the callback of iser_connect_start */
	unsigned calls;
	int err;
};

static void fixture_init(struct fixture *f, const char *query)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	char text[128], why[128];

	*f = (struct fixture){ .err = 1 };
	sa.sin_addr.s_addr = inet_addr("127.0.0.1");
	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(f->listener, 8), 0);
	getsockname(f->listener, (struct sockaddr *)&sa, &len);
	snprintf(text, sizeof(text), "iscsi://127.0.0.1:%u/iqn.t/0%s",
		 ntohs(sa.sin_port), query);
	assert_int_equal(iser_url_parse(&f->url, text, false, why, sizeof(why)),
			 0);
	f->ctx = iser_context_new("iqn.i");
	assert_non_null(f->ctx);
}

static void fixture_fini(struct fixture *f)
{
	assert_true(list_empty(&f->ctx->sessions));
	iser_context_free(f->ctx);
	close(f->listener);
}

static void on_connected(void *arg, struct iser_session *s, int err)
{
	struct fixture *f = arg;

	assert_int_equal(iser_is_connected(s), err == 0);
	f->calls++;
	f->err = err;
}

static struct iser_session *start(struct fixture *f)
{
	int err = 1;
	struct iser_session *s =
		iser_connect_start(f->ctx, &f->url, on_connected, f, &err);

	assert_non_null(s);
	assert_int_equal(err, 0);
	return s;
}

static void turns_until(struct fixture *f, const struct iser_session *s,
			enum session_state state)
{
	for (int i = 0; i < 200 && s->state != state; i++)
		assert_int_equal(iser_service(f->ctx, 50), 0);
	assert_int_equal(s->state, state);
}

static void read_all(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t got = read(fd, p, n);

		assert_true(got > 0);
		p += got;
		n -= (size_t)got;
	}
}

/* Answers one Login Request as it asks to go on. Returns whether the login ends. */
static bool answer_login_request(int fd, uint32_t statsn)
{
	static const char group[] = "TargetPortalGroupTag=1",
			  none[] = "AuthMethod=None";
	uint8_t bhs[48], data[8192],
		out[48 + (sizeof(group) + 3) / 4 * 4] = { 0 };
	bool secures; /* from stage 0 to 1 */
	size_t n;

	read_all(fd, bhs, sizeof(bhs));
	assert_true(get_be24(bhs + 5) + 3 < sizeof(data));
	read_all(fd, data, (get_be24(bhs + 5) + 3) / 4 * 4);
	secures = (bhs[1] & 0x0c) == 0;
	n = secures ? sizeof(none) : sizeof(group);
	out[0] = 0x23;
	out[1] = secures ? 0x81 : 0x87; /* T, from stage 1 to 3 */
	put_be24(out + 5, (uint32_t)n);
	memcpy(out + 8, bhs + 8, 6); /* ISID */
	if (!secures)
		put_be16(out + 14, 1); /* TSIH */
	memcpy(out + 16, bhs + 16, 4); /* task tag */
	put_be32(out + 24, statsn);
	memcpy(out + 28, bhs + 24, 4); /* ExpCmdSN */
	memcpy(out + 32, bhs + 24, 4); /* MaxCmdSN: one command at a time */
	memcpy(out + 48, secures ? none : group, n);
	n = 48 + (n + 3) / 4 * 4;
	assert_int_equal(write(fd, out, n), n);
	return !secures;
}

/* Answers the login of a new connection with success, and returns the socket. */
static int answer_login(const struct fixture *f)
{
	int fd = accept(f->listener, NULL, NULL);

	assert_true(fd >= 0);
	for (uint32_t statsn = 0; !answer_login_request(fd, statsn);)
		statsn++;
	return fd;
}

static void *serve_one(void *arg)
{
	struct fixture *f = arg;
	uint8_t bhs[48];
	int fd = answer_login(f);

	if (read(fd, bhs, sizeof(bhs)) == sizeof(bhs))
		f->last_opcode = bhs[0] & 0x3f;
	close(fd);
	return NULL;
}

/* ---- tests ---- */

/* A caller that disconnects no longer expects the callback, which may use what
 * the caller has freed. */
static void test_disconnect_while_the_login_is_in_progress(void **state)
{
	struct fixture f;
	struct iser_session *s;
	int fd;

	(void)state;
	fixture_init(&f, "");
	s = start(&f);
	turns_until(&f, s, SESSION_LOGIN);
	fd = accept(f.listener, NULL, NULL);
	iser_disconnect(s);
	assert_int_equal(f.calls, 0);
	close(fd);
	fixture_fini(&f);
}

static void test_disconnect_while_connecting(void **state)
{
	struct fixture f;
	struct iser_session *s;

	(void)state;
	fixture_init(&f, "");
	s = start(&f);
	assert_int_equal(s->state, SESSION_CONNECTING);
	iser_disconnect(s);
	for (int i = 0; i < 5; i++)
		assert_int_equal(iser_service(f.ctx, 5), 0);
	assert_int_equal(f.calls, 0);
	fixture_fini(&f);
}

static void test_connect_start_calls_done_once(void **state)
{
	struct fixture f;
	struct iser_session *s;

	(void)state;
	fixture_init(&f, "?depth=7");
	s = start(&f);
	assert_int_equal(s->commands.depth, 7);
	assert_ptr_equal(iser_session_context(s), f.ctx);
	assert_int_equal(pthread_create(&f.thread, NULL, serve_one, &f), 0);
	turns_until(&f, s, SESSION_UP);
	assert_int_equal(f.calls, 1);
	assert_int_equal(f.err, 0);
	iser_disconnect(s);
	assert_int_equal(f.calls, 1);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.last_opcode, 0x06); /* Logout Request */
	fixture_fini(&f);
}

/* A session that logs in again after a loss does not do so after
 * iser_disconnect. */
static void test_disconnect_ends_reconnecting(void **state)
{
	struct fixture f;
	struct iser_session *s;
	int err = 1, fd;

	(void)state;
	fixture_init(&f, "?reconnect=5");
	assert_int_equal(pthread_create(&f.thread, NULL, serve_one, &f), 0);
	s = iser_connect(f.ctx, &f.url, &err);
	assert_non_null(s);
	iser_disconnect(s);
	pthread_join(f.thread, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(iser_service(f.ctx, 1), 0);
	assert_int_equal(fcntl(f.listener, F_SETFL, O_NONBLOCK), 0);
	fd = accept(f.listener, NULL, NULL);
	assert_int_equal(fd, -1);
	fixture_fini(&f);
}

static void on_done(struct iser_io *io)
{
	*(unsigned *)io->arg += 1;
}

static void answer_command(int fd, uint32_t statsn, uint8_t status)
{
	uint8_t cmd[48], rsp[48] = { 0x21, 0x80, 0, status };

	read_all(fd, cmd, sizeof(cmd));
	assert_int_equal(cmd[0] & 0x3f, 0x01);
	memcpy(rsp + 16, cmd + 16, 4); /* task tag */
	put_be32(rsp + 24, statsn);
	put_be32(rsp + 28, get_be32(cmd + 24) + 1); /* ExpCmdSN */
	put_be32(rsp + 32, get_be32(cmd + 24) + 1); /* MaxCmdSN */
	assert_int_equal(write(fd, rsp, sizeof(rsp)), sizeof(rsp));
}

/* The command is refused once; then the connection is lost. */
static void *serve_badly(void *arg)
{
	struct fixture *f = arg;
	int fd = answer_login(f);

	answer_command(fd, 1, 0x08); /* BUSY */
	answer_command(fd, 2, 0);
	close(fd);
	return serve_one(arg);
}

static void test_session_goes_on_after_busy_and_after_a_loss(void **state)
{
	unsigned done = 0;
	struct iser_io io = { .cdb_len = 6, .done = on_done, .arg = &done };
	struct fixture f;
	struct iser_session *s;
	int err = 1;

	(void)state;
	fixture_init(&f, "?reconnect=5");
	assert_int_equal(pthread_create(&f.thread, NULL, serve_badly, &f), 0);
	s = iser_connect(f.ctx, &f.url, &err);
	assert_non_null(s);
	iser_submit(s, &io);
	for (int i = 0; i < 200 && !done; i++)
		assert_int_equal(iser_service(f.ctx, 50), 0);
	assert_int_equal(done, 1);
	assert_int_equal(io.err, 0);
	assert_int_equal(io.status, 0);
	turns_until(&f, s, SESSION_AWAY);
	turns_until(&f, s, SESSION_UP);
	iser_disconnect(s);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.last_opcode, 0x06); /* Logout Request */
	fixture_fini(&f);
}

static void *serve_a_login(void *arg)
{
	close(answer_login(arg));
	return NULL;
}

/* The session waits two seconds (DefaultTime2Wait) before it logs in again. */
static void test_disconnect_while_waiting_to_log_in_again(void **state)
{
	struct fixture f;
	struct iser_session *s;
	int err = 1;

	(void)state;
	fixture_init(&f, "?reconnect=5");
	assert_int_equal(pthread_create(&f.thread, NULL, serve_a_login, &f), 0);
	s = iser_connect(f.ctx, &f.url, &err);
	assert_non_null(s);
	turns_until(&f, s, SESSION_AWAY);
	iser_disconnect(s);
	pthread_join(f.thread, NULL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(iser_service(f.ctx, 500), 0);
	fixture_fini(&f);
}

/* Of two commands the target admits one; neither is answered. */
static void test_disconnect_ends_all_commands(void **state)
{
	struct iser_io io[2];
	unsigned done = 0;
	struct fixture f;
	struct iser_session *s;
	int err = 1;

	(void)state;
	fixture_init(&f, "?depth=1");
	assert_int_equal(pthread_create(&f.thread, NULL, serve_one, &f), 0);
	s = iser_connect(f.ctx, &f.url, &err);
	assert_non_null(s);
	assert_int_equal(err, 0);
	for (unsigned i = 0; i < 2; i++) {
		io[i] = (struct iser_io){ .cdb_len = 6,
					  .done = on_done,
					  .arg = &done };
		iser_submit(s, &io[i]);
	}
	iser_disconnect(s);
	assert_int_equal(done, 2);
	assert_int_equal(io[0].err, ISER_E_CLOSED);
	assert_int_equal(io[1].err, ISER_E_CLOSED);
	pthread_join(f.thread, NULL);
	fixture_fini(&f);
}

/* A command whose done submits another one. */
struct chain {
	struct iser_io first, next;
	bool is_within; /* iser_submit */
	bool is_over;
};

static void on_next(struct iser_io *io)
{
	struct chain *c = io->arg;

	assert_false(c->is_within);
	assert_false(c->is_over);
	c->is_over = true;
}

static void on_first(struct iser_io *io)
{
	struct chain *c = io->arg;

	c->next = (struct iser_io){ .cdb_len = 6, .done = on_next, .arg = c };
	c->is_within = true;
	iser_submit(io->session, &c->next);
	c->is_within = false;
}

/* The session cannot send any more when the first command ends. */
static void test_submit_at_the_loss(void **state)
{
	struct chain c = { .first = { .cdb_len = 6, .done = on_first } };
	struct fixture f;
	struct iser_session *s;
	int err = 1;

	(void)state;
	fixture_init(&f, "");
	assert_int_equal(pthread_create(&f.thread, NULL, serve_one, &f), 0);
	s = iser_connect(f.ctx, &f.url, &err);
	assert_non_null(s);
	c.first.arg = &c;
	iser_submit(s, &c.first);
	for (int i = 0; i < 200 && !c.is_over; i++)
		assert_int_equal(iser_service(f.ctx, 50), 0);
	assert_true(c.is_over);
	assert_int_equal(c.next.err, ISER_E_CLOSED);
	iser_disconnect(s);
	pthread_join(f.thread, NULL);
	fixture_fini(&f);
}

static void test_connect_refused_leaves_no_session(void **state)
{
	struct fixture f;
	int err = 0;

	(void)state;
	fixture_init(&f, "");
	/* a socket that no longer listens keeps its port */
	assert_int_equal(shutdown(f.listener, SHUT_RDWR), 0);
	assert_null(iser_connect(f.ctx, &f.url, &err));
	assert_int_equal(err, ISER_E_CONNECT);
	assert_true(list_empty(&f.ctx->sessions));
	assert_non_null(strstr(iser_message(f.ctx), "127.0.0.1"));
	fixture_fini(&f);
}

/* Bytes that malloc has given to the program. */
static size_t allocated(void)
{
	const struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void test_session_frees_all_its_memory(void **state)
{
	const unsigned rounds = 200;
	struct fixture f;
	size_t before;

	(void)state;
	fixture_init(&f, "");
	iser_disconnect(start(&f));
	before = allocated();
	for (unsigned i = 0; i < rounds; i++)
		iser_disconnect(start(&f));
	/* malloc and the loop cache a few chunks, fewer than one for each
	 * session */
	assert_true(allocated() < before + rounds * sizeof(struct iser_url));
	fixture_fini(&f);
}

static void test_connect_start_refuses_reserved_members(void **state)
{
	struct fixture f;
	int err = 0;

	(void)state;
	fixture_init(&f, "");
	f.url.reserved[ARRAY_LEN(f.url.reserved) - 1] = 1;
	assert_null(iser_connect_start(f.ctx, &f.url, on_connected, &f, &err));
	assert_int_equal(err, ISER_E_INVALID);
	assert_int_equal(f.calls, 0);
	fixture_fini(&f);
}

static void test_disconnect_allows_null(void **state)
{
	(void)state;
	iser_disconnect(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_disconnect_while_the_login_is_in_progress),
		cmocka_unit_test(test_disconnect_while_connecting),
		cmocka_unit_test(test_connect_start_calls_done_once),
		cmocka_unit_test(test_disconnect_ends_all_commands),
		cmocka_unit_test(test_submit_at_the_loss),
		cmocka_unit_test(test_disconnect_ends_reconnecting),
		cmocka_unit_test(
			test_session_goes_on_after_busy_and_after_a_loss),
		cmocka_unit_test(test_disconnect_while_waiting_to_log_in_again),
		cmocka_unit_test(test_connect_refused_leaves_no_session),
		cmocka_unit_test(test_session_frees_all_its_memory),
		cmocka_unit_test(test_connect_start_refuses_reserved_members),
		cmocka_unit_test(test_disconnect_allows_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
