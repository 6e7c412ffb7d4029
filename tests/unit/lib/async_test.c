/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * async_test.c: the calls that do not block: abort, task management, ping,
 * discovery, logout. The target is a thread with a socket, which answers the login
 * and then executes the script of the test.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "lib/internal.h"

#define OP_COMMAND 0x01
#define OP_TMF	   0x02
#define OP_TEXT	   0x04
#define OP_LOGOUT  0x06

struct fixture {
	struct iser_context *ctx;
	struct iser_session *s;
	struct iser_url url;
	int listener, fd;
	pthread_t thread;
	void (*script)(struct fixture *f);
	uint32_t statsn, itt; /* itt: of the last command */
	uint32_t cmdsn;
	unsigned managed; /* functions that were answered */
};

/* ---- the target ---- */

static void read_all(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t got = read(fd, p, n);

		if (got <= 0)
			memset(p, 0, n); /* the initiator has closed */
		if (got <= 0)
			return;
		p += got;
		n -= (size_t)got;
	}
}

/* Receives a PDU; returns its opcode. */
static uint8_t receive(struct fixture *f, uint8_t bhs[48])
{
	uint8_t data[8192];

	read_all(f->fd, bhs, 48);
	read_all(f->fd, data, (get_be24(bhs + 5) + 3) / 4 * 4);
	return bhs[0] & 0x3f;
}

/* Answers a request: its tag, and the sequence numbers. */
static void reply(struct fixture *f, uint8_t bhs[48], const uint8_t req[48],
		  const void *data, size_t len)
{
	uint8_t out[512] = { 0 };

	memcpy(bhs + 16, req + 16, 4);
	put_be24(bhs + 5, (uint32_t)len);
	put_be32(bhs + 24, f->statsn++);
	put_be32(bhs + 28, f->cmdsn);
	put_be32(bhs + 32, f->cmdsn + 8);
	memcpy(out, bhs, 48);
	if (len)
		memcpy(out + 48, data, len);
	len = 48 + (len + 3) / 4 * 4;
	assert_int_equal(write(f->fd, out, len), len);
}

static void answer_login(struct fixture *f)
{
	static const char keys[] = "TargetPortalGroupTag=1";
	uint8_t req[48], rsp[48] = { 0x23, 0x87 };

	f->fd = accept(f->listener, NULL, NULL);
	receive(f, req);
	memcpy(rsp + 8, req + 8, 6);
	put_be16(rsp + 14, 1);
	f->cmdsn = get_be32(req + 24);
	f->statsn = 1;
	reply(f, rsp, req, keys, sizeof(keys));
}

static void expect(struct fixture *f, uint8_t op, uint8_t req[48])
{
	assert_int_equal(receive(f, req), op);
	if (op == OP_COMMAND) {
		f->itt = get_be32(req + 16);
		f->cmdsn = get_be32(req + 24) + 1;
	}
}

static void answer_command(struct fixture *f, uint32_t itt, uint8_t status)
{
	uint8_t rsp[48] = { 0x21, 0x80, 0, status }, req[48];

	put_be32(req + 16, itt);
	reply(f, rsp, req, NULL, 0);
}

static void answer_function(struct fixture *f, const uint8_t req[48],
			    uint8_t response)
{
	uint8_t rsp[48] = { 0x22, 0x80, response };

	reply(f, rsp, req, NULL, 0);
	f->managed++;
}

static void answer_logout(struct fixture *f)
{
	uint8_t rsp[48] = { 0x26, 0x80 }, req[48];

	expect(f, OP_LOGOUT, req);
	reply(f, rsp, req, NULL, 0);
}

static void *serve(void *arg)
{
	struct fixture *f = arg;

	answer_login(f);
	f->script(f);
	close(f->fd);
	return NULL;
}

/* ---- the initiator ---- */

static void open_target(struct fixture *f, void (*script)(struct fixture *f),
			const char *query)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	char text[128], why[128];

	*f = (struct fixture){ .script = script };
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
	if (script)
		assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void open_session(struct fixture *f, void (*script)(struct fixture *f),
			 const char *query)
{
	int err;

	open_target(f, script, query);
	f->s = iser_connect(f->ctx, &f->url, &err);
	assert_non_null(f->s);
}

static void close_target(struct fixture *f)
{
	if (f->script)
		pthread_join(f->thread, NULL);
	assert_true(list_empty(&f->ctx->sessions));
	iser_context_free(f->ctx);
	close(f->listener);
}

static void run_until(struct fixture *f, const unsigned *n, unsigned value)
{
	for (int i = 0; i < 500 && *n < value; i++)
		assert_int_equal(iser_service(f->ctx, 20), 0);
	assert_int_equal(*n, value);
}

static void count_io(struct iser_io *io)
{
	*(unsigned *)io->arg += 1;
}

static void submit(struct fixture *f, struct iser_io *io, unsigned n,
		   unsigned *done)
{
	for (unsigned i = 0; i < n; i++) {
		io[i] = (struct iser_io){ .cdb_len = 6,
					  .done = count_io,
					  .arg = done };
		iser_submit(f->s, &io[i]);
	}
}

static void disconnect(struct fixture *f)
{
	iser_disconnect(f->s);
	close_target(f);
}

/* ---- abort ---- */

static void abort_script(struct fixture *f)
{
	uint8_t req[48];

	expect(f, OP_COMMAND, req);
	expect(f, OP_TMF, req);
	assert_int_equal(req[1], 0x81);		      /* ABORT TASK */
	assert_int_equal(get_be32(req + 20), f->itt); /* Referenced Task */
	assert_int_equal(get_be32(req + 32), f->cmdsn - 1); /* RefCmdSN */
	answer_function(f, req, 0);
	answer_logout(f);
}

static void test_abort_rfc7143_11_5_1(void **state)
{
	struct fixture f;
	struct iser_io io;
	unsigned done = 0;

	(void)state;
	open_session(&f, abort_script, "?reconnect=3");
	submit(&f, &io, 1, &done);
	assert_int_equal(iser_abort(&io), 0);
	assert_int_equal(iser_abort(&io), 0); /* in progress already */
	assert_int_equal(done, 0);
	run_until(&f, &done, 1);
	assert_int_equal(io.err, ISER_E_ABORTED);
	assert_int_equal(iser_abort(&io), 0); /* it has ended */
	disconnect(&f);
}

/* The response to the command comes first, then that to the ABORT TASK. */
static void late_abort_script(struct fixture *f)
{
	uint8_t req[48], tmf[48];

	expect(f, OP_COMMAND, req);
	expect(f, OP_TMF, tmf);
	answer_command(f, f->itt, 0);
	expect(f, OP_COMMAND, req);
	answer_function(f, tmf, 1); /* task does not exist */
	answer_command(f, f->itt, 0);
	answer_logout(f);
}

static void test_command_ends_before_its_abort(void **state)
{
	struct fixture f;
	struct iser_io io;
	unsigned done = 0;

	(void)state;
	open_session(&f, late_abort_script, "");
	submit(&f, &io, 1, &done);
	iser_abort(&io);
	run_until(&f, &done, 1);
	assert_int_equal(io.err, 0);
	/* the same struct again: the late response does not end it */
	submit(&f, &io, 1, &done);
	run_until(&f, &done, 2);
	assert_int_equal(io.err, 0);
	disconnect(&f);
}

static void refused_abort_script(struct fixture *f)
{
	uint8_t req[48];

	expect(f, OP_COMMAND, req);
	expect(f, OP_TMF, req);
	answer_function(f, req, 5); /* not supported */
	answer_command(f, f->itt, 0);
	answer_logout(f);
}

static void test_abort_that_the_target_refuses(void **state)
{
	struct fixture f;
	struct iser_io io;
	unsigned done = 0;

	(void)state;
	open_session(&f, refused_abort_script, "");
	submit(&f, &io, 1, &done);
	iser_abort(&io);
	run_until(&f, &done, 1);
	assert_int_equal(io.err, 0);
	disconnect(&f);
}

static void queued_abort_script(struct fixture *f)
{
	uint8_t req[48];

	expect(f, OP_COMMAND, req);
	answer_command(f, f->itt, 0);
	answer_logout(f);
}

/* Commands that were not sent end without the target. */
static void test_abort_of_queued_commands(void **state)
{
	struct fixture f;
	struct iser_io io[4];
	unsigned done = 0;

	(void)state;
	open_session(&f, queued_abort_script, "?depth=1");
	submit(&f, io, 4, &done);
	for (int i = 3; i > 0; i--)
		assert_int_equal(iser_abort(&io[i]), 0);
	assert_int_equal(done, 0);
	run_until(&f, &done, 4);
	assert_int_equal(io[0].err, 0);
	for (int i = 1; i < 4; i++)
		assert_int_equal(io[i].err, ISER_E_ABORTED);
	disconnect(&f);
}

static void busy_script(struct fixture *f)
{
	uint8_t req[48];

	expect(f, OP_COMMAND, req);
	answer_command(f, f->itt, 0x08);
	answer_logout(f);
}

/* A command that waits after BUSY is not issued again. */
static void test_abort_of_a_command_that_waits(void **state)
{
	struct fixture f;
	struct iser_io io;
	unsigned done = 0;

	(void)state;
	open_session(&f, busy_script, "?retry=60");
	submit(&f, &io, 1, &done);
	for (int i = 0; i < 500 && !f.s->retry.first; i++)
		iser_service(f.ctx, 20);
	assert_non_null(f.s->retry.first);
	assert_int_equal(iser_abort(&io), 0);
	run_until(&f, &done, 1);
	assert_int_equal(io.err, ISER_E_ABORTED);
	assert_null(f.s->retry.first);
	disconnect(&f);
}

/* ---- task management ---- */

static void reset_script(struct fixture *f)
{
	uint8_t req[48];

	for (int i = 0; i < 3; i++)
		expect(f, OP_COMMAND, req);
	expect(f, OP_TMF, req);
	assert_int_equal(req[1], 0x85); /* LOGICAL UNIT RESET */
	assert_int_equal(get_be64(req + 8), 0x412c000000000000ull);
	answer_function(f, req, 0);
	expect(f, OP_TMF, req);
	assert_int_equal(req[1], 0x86); /* TARGET WARM RESET */
	answer_function(f, req, 0);
	expect(f, OP_TMF, req);
	answer_function(f, req, 255);
	answer_logout(f);
}

/* The target does not answer commands that a reset ended (RFC 7143 §4.2.3.3). */
static void test_reset_ends_commands_rfc7143_4_2_3_3(void **state)
{
	struct fixture f;
	struct iser_io io[3];
	unsigned done = 0;

	(void)state;
	open_session(&f, reset_script, "");
	for (unsigned i = 0; i < 3; i++) {
		io[i] = (struct iser_io){ .cdb_len = 6,
					  .lun = i == 1 ? 0 : 300,
					  .done = count_io,
					  .arg = &done };
		iser_submit(f.s, &io[i]);
	}
	assert_int_equal(iser_lun_reset(f.s, 300), 0);
	assert_int_equal(done, 2);
	assert_int_equal(io[0].err, ISER_E_ABORTED);
	assert_int_equal(io[2].err, ISER_E_ABORTED);
	assert_int_equal(iser_target_reset(f.s), 0);
	assert_int_equal(done, 3);
	assert_int_equal(io[1].err, ISER_E_ABORTED);
	assert_int_equal(iser_manage_tasks(f.s, ISER_CLEAR_TASK_SET, 0),
			 ISER_E_SCSI);
	assert_non_null(strstr(iser_message(f.ctx), "CLEAR TASK SET"));
	assert_int_equal(iser_manage_tasks(f.s, (enum iser_function)1, 0),
			 ISER_E_INVALID);
	assert_int_equal(iser_manage_tasks(f.s, ISER_LUN_RESET, -1),
			 ISER_E_INVALID);
	disconnect(&f);
}

static void on_managed(void *arg, int err)
{
	assert_int_equal(err, ISER_E_CLOSED);
	*(unsigned *)arg += 1;
}

static void on_pong(void *arg, int err, uint64_t ns)
{
	(void)ns;
	on_managed(arg, err);
}

static void hang_up_script(struct fixture *f)
{
	uint8_t req[48];

	receive(f, req);
	receive(f, req);
}

/* Requests end with the connection. */
static void test_requests_of_a_lost_connection(void **state)
{
	struct fixture f;
	unsigned done = 0;

	(void)state;
	open_session(&f, hang_up_script, "");
	assert_int_equal(iser_ping_start(f.s, 100, on_pong, &done), 0);
	assert_int_equal(iser_manage_tasks_start(f.s, ISER_LUN_RESET, 0,
						 on_managed, &done),
			 0);
	assert_int_equal(done, 0);
	run_until(&f, &done, 2);
	assert_int_equal(iser_ping_start(f.s, 100, on_pong, &done),
			 ISER_E_CLOSED);
	disconnect(&f);
}

/* ---- logout ---- */

static void logout_script(struct fixture *f)
{
	uint8_t req[48];

	expect(f, OP_COMMAND, req);
	answer_logout(f);
}

static void on_disconnected(void *arg)
{
	*(unsigned *)arg += 1;
}

static void test_disconnect_start(void **state)
{
	struct fixture f;
	struct iser_io io;
	unsigned done = 0, gone = 0;

	(void)state;
	open_session(&f, logout_script, "");
	submit(&f, &io, 1, &done);
	iser_disconnect_start(f.s, on_disconnected, &gone);
	assert_int_equal(gone, 0);
	run_until(&f, &gone, 1);
	assert_int_equal(done, 1);
	assert_int_equal(io.err, ISER_E_CLOSED);
	close_target(&f);
}

/* The context ends before the logout: done is not called. */
static void test_context_ends_during_the_logout(void **state)
{
	struct fixture f;
	struct iser_io io;
	unsigned done = 0, gone = 0;

	(void)state;
	open_session(&f, logout_script, "");
	submit(&f, &io, 1, &done);
	iser_disconnect_start(f.s, on_disconnected, &gone);
	iser_context_free(f.ctx);
	assert_int_equal(gone, 0);
	assert_int_equal(done, 1);
	pthread_join(f.thread, NULL);
	close(f.listener);
}

static void on_connected_leave(void *arg, struct iser_session *s, int err)
{
	assert_int_equal(err, 0);
	iser_disconnect_start(s, on_disconnected, arg);
}

static void only_logout_script(struct fixture *f)
{
	answer_logout(f);
}

static void test_disconnect_start_within_a_callback(void **state)
{
	struct fixture f;
	unsigned gone = 0;
	int err;

	(void)state;
	open_target(&f, only_logout_script, "");
	assert_non_null(iser_connect_start(f.ctx, &f.url, on_connected_leave,
					   &gone, &err));
	run_until(&f, &gone, 1);
	close_target(&f);
}

/* ---- discovery ---- */

static void targets_script(struct fixture *f)
{
	static const char one[] = "TargetName=iqn.a\0TargetAddress=h:1,1",
			  two[] = "TargetName=iqn.b";
	uint8_t req[48], rsp[48] = { 0x24, 0x00 };

	expect(f, OP_TEXT, req);
	put_be32(rsp + 20, 77); /* not final: a tag to continue with */
	reply(f, rsp, req, one, sizeof(one));
	expect(f, OP_TEXT, req);
	assert_int_equal(get_be32(req + 20), 77);
	assert_int_equal(get_be24(req + 5), 0);
	rsp[1] = 0x80;
	put_be32(rsp + 20, UINT32_MAX);
	reply(f, rsp, req, two, sizeof(two));
	answer_logout(f);
}

struct found {
	unsigned calls;
	int err;
	struct iser_target *list;
};

static void on_found(void *arg, int err, struct iser_target *list)
{
	struct found *r = arg;

	r->calls++;
	r->err = err;
	r->list = list;
}

static void test_discover_start(void **state)
{
	struct fixture f;
	struct found r = { .err = 1 };
	int err;

	(void)state;
	open_target(&f, targets_script, "");
	assert_non_null(iser_discover_start(f.ctx, &f.url, on_found, &r, &err));
	assert_int_equal(r.calls, 0);
	run_until(&f, &r.calls, 1);
	assert_int_equal(r.err, 0);
	assert_string_equal(r.list->name, "iqn.a");
	assert_string_equal(r.list->address, "h:1,1");
	assert_string_equal(r.list->next->name, "iqn.b");
	assert_null(r.list->next->next);
	iser_targets_free(r.list);
	close_target(&f);
}

static void unanswered_script(struct fixture *f)
{
	uint8_t req[48];

	expect(f, OP_TEXT, req);
	answer_logout(f);
}

static void test_discover_cancel(void **state)
{
	struct fixture f;
	struct found r = { 0 };
	struct iser_discovery *d;
	int err;

	(void)state;
	/* before the login */
	open_target(&f, NULL, "");
	d = iser_discover_start(f.ctx, &f.url, on_found, &r, &err);
	iser_discover_cancel(d);
	close_target(&f);
	/* with the request in progress */
	open_target(&f, unanswered_script, "");
	d = iser_discover_start(f.ctx, &f.url, on_found, &r, &err);
	while (list_empty(&f.ctx->sessions) ||
	       list_entry(f.ctx->sessions.next, struct iser_session, link)
			       ->state != SESSION_UP)
		iser_service(f.ctx, 20);
	iser_discover_cancel(d);
	close_target(&f);
	assert_int_equal(r.calls, 0);
	iser_discover_cancel(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abort_rfc7143_11_5_1),
		cmocka_unit_test(test_command_ends_before_its_abort),
		cmocka_unit_test(test_abort_that_the_target_refuses),
		cmocka_unit_test(test_abort_of_queued_commands),
		cmocka_unit_test(test_abort_of_a_command_that_waits),
		cmocka_unit_test(test_reset_ends_commands_rfc7143_4_2_3_3),
		cmocka_unit_test(test_requests_of_a_lost_connection),
		cmocka_unit_test(test_disconnect_start),
		cmocka_unit_test(test_context_ends_during_the_logout),
		cmocka_unit_test(test_disconnect_start_within_a_callback),
		cmocka_unit_test(test_discover_start),
		cmocka_unit_test(test_discover_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
