/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login_test.c: the result of iser_connect for answers of a target to the login.
 * The target is a thread with a socket that answers every login with the same
 * bytes.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "iscsi/login.h"
#include "iser/iser.h"
#include "login_fixture.h"

#define LOGIN_FINAL 0x87 /* T, from stage 1 to 3 */

struct answer {
	uint16_t status;
	const char *keys; /* NUL ends the last one, too */
	size_t len;
	bool hangs_up; /* closes without an answer */
	bool wants_chap;
};

struct target {
	int listener;
	uint16_t port;
	struct answer answer;
	pthread_t thread;
};

static uint8_t isid[6]; /* of the last login */

static bool read_all(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t got = read(fd, p, n);

		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static void answer_login(int fd, const struct answer *a, const uint8_t *asked)
{
	uint8_t out[512] = { 0x23, LOGIN_FINAL };

	if (a->status)
		out[1] = 0;
	put_be24(out + 5, (uint32_t)a->len);
	memcpy(out + 8, asked + 8, 6); /* ISID */
	memcpy(isid, asked + 8, 6);
	put_be16(out + 14, a->status ? 0 : 1);
	memcpy(out + 16, asked + 16, 4); /* task tag */
	memcpy(out + 28, asked + 24, 4); /* ExpCmdSN */
	put_be32(out + 32, get_be32(asked + 24) + 8);
	put_be16(out + 36, a->status);
	if (a->len)
		memcpy(out + 48, a->keys, a->len);
	assert_true(write(fd, out, 48 + (a->len + 3) / 4 * 4) > 0);
}

/* ---- a target with mutual CHAP ---- */

static const struct iscsi_chap_secret alice = { .name = "alice",
						.secret = "open sesame 42",
						.secret_len = 14 };
static const struct iscsi_chap_secret bob = { .name = "bob",
					      .secret = "another secret",
					      .secret_len = 14 };

static bool answer_step(int fd, struct iscsi_login_engine *e)
{
	static uint8_t data[ISCSI_LOGIN_PDU_MAX], bhs[ISCSI_BHS_LEN];
	struct iscsi_pdu pdu;
	uint32_t cmdsn, statsn;
	int r;

	if (!read_all(fd, bhs, sizeof(bhs)) || iscsi_bhs_decode(&pdu, bhs) ||
	    pdu.dsl > sizeof(data) || !read_all(fd, data, round_up4(pdu.dsl)))
		return false;
	cmdsn = pdu.cmdsn;
	statsn = pdu.expstatsn;
	r = iscsi_login_rx(e, &pdu, data);
	memset(data, 0, sizeof(data));
	iscsi_login_tx(e, &pdu, data);
	pdu.statsn = statsn;
	pdu.expcmdsn = cmdsn;
	pdu.maxcmdsn = cmdsn + 8;
	iscsi_bhs_encode(&pdu, bhs);
	return write(fd, bhs, sizeof(bhs)) > 0 &&
	       (pdu.dsl == 0 || write(fd, data, round_up4(pdu.dsl)) > 0) &&
	       r == ISCSI_LOGIN_SEND;
}

static void serve_chap(int fd)
{
	struct iscsi_login_config cfg;
	struct login_fixture target;
	struct iscsi_login_engine *e;
	uint8_t bhs[48];

	login_fixture_target(&cfg, &target);
	login_fixture_chap(&target, &alice, 1);
	target.verdict.chap_out = &bob;
	e = iscsi_login_new(&cfg);
	assert_non_null(e);
	while (answer_step(fd, e))
		;
	iscsi_login_free(e);
	read_all(fd, bhs, 48); /* a logout, or the end of the connection */
	close(fd);
}

/* ---- a target with the answer of the test ---- */

/* One connection: answers the login, and no other request. */
static void serve_one(int fd, const struct answer *a)
{
	uint8_t bhs[48], data[8192];
	bool is_login = read_all(fd, bhs, 1) && (bhs[0] & 0x3f) == 0x03 &&
			read_all(fd, bhs + 1, 47);
	size_t len = is_login ? (get_be24(bhs + 5) + 3) / 4 * 4 : 0;

	if (is_login && len <= sizeof(data) && read_all(fd, data, len) &&
	    !a->hangs_up) {
		answer_login(fd, a, bhs);
		read_all(fd, bhs,
			 48); /* a logout, or the end of the connection */
	}
	close(fd);
}

static void *serve(void *arg)
{
	struct target *t = arg;
	int fd;

	while ((fd = accept(t->listener, NULL, NULL)) >= 0)
		if (t->answer.wants_chap)
			serve_chap(fd);
		else
			serve_one(fd, &t->answer);
	return NULL;
}

static void target_start(struct target *t, const struct answer *a)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);

	sa.sin_addr.s_addr = inet_addr("127.0.0.1");
	t->answer = *a;
	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(t->listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(t->listener, 8), 0);
	getsockname(t->listener, (struct sockaddr *)&sa, &len);
	memcpy(&t->port, &sa.sin_port, 2);
	t->port = (uint16_t)(t->port >> 8 | t->port << 8);
	assert_int_equal(pthread_create(&t->thread, NULL, serve, t), 0);
}

static void target_stop(struct target *t)
{
	shutdown(t->listener, SHUT_RDWR);
	pthread_join(t->thread, NULL);
	close(t->listener);
}

/* The session has the keys of the target's answer. */
static void assert_negotiated(struct iser_session *s)
{
	struct iser_params p;

	assert_true(iser_is_connected(s));
	iser_get_params(s, &p);
	assert_string_equal(p.transport, "tcp");
	assert_false(p.header_digest || p.data_digest);
	assert_true(p.initial_r2t);
	assert_false(p.immediate_data);
	assert_int_equal(p.max_send_data_segment_length, 12345);
	assert_int_equal(p.max_burst_length, 65536);
	assert_int_equal(p.first_burst_length, 4096);
	assert_int_equal(p.max_outstanding_r2t, 1);
	assert_int_equal(p.error_recovery_level, 0);
	assert_int_equal(p.tpgt, 7);
}

static void (*on_success)(struct iser_session *s);
static struct iser_url
	credentials; /* user, password and the same of the target */

/* Checks the code of iser_connect and that its message contains the words. */
static int login(const char *query, const struct answer *a, const char *words)
{
	struct iser_context *ctx = iser_context_new("iqn.2026-01.test:i");
	struct iser_session *s;
	struct iser_url url;
	struct target t;
	char text[256], why[256];
	int err = 0;

	assert_non_null(ctx);
	target_start(&t, a);
	snprintf(text, sizeof(text),
		 "iscsi://127.0.0.1:%u/iqn.2026-01.test:t/0%s", t.port, query);
	assert_int_equal(iser_url_parse(&url, text, false, why, sizeof(why)),
			 0);
	strcpy(url.user, credentials.user);
	strcpy(url.password, credentials.password);
	strcpy(url.target_user, credentials.target_user);
	strcpy(url.target_password, credentials.target_password);
	s = iser_connect(ctx, &url, &err);
	assert_int_equal(s != NULL, err == 0);
	if (words && !strstr(iser_message(ctx), words))
		fail_msg("\"%s\" has no \"%s\"", iser_message(ctx), words);
	if (s && on_success)
		on_success(s);
	iser_disconnect(s);
	iser_context_free(ctx);
	target_stop(&t);
	return err;
}

#define KEYS(text) .keys = text, .len = sizeof(text)

static void test_connect_by_status_rfc7143_11_13_5(void **state)
{
	static const struct {
		uint16_t status;
		int err;
	} rows[] = {
		{ ISCSI_LOGIN_SUCCESS, 0 },
		{ ISCSI_LOGIN_AUTH_FAILURE, ISER_E_AUTH },
		{ ISCSI_LOGIN_FORBIDDEN, ISER_E_LOGIN },
		{ ISCSI_LOGIN_NOT_FOUND, ISER_E_NOT_FOUND },
		{ ISCSI_LOGIN_REMOVED, ISER_E_LOGIN },
		{ ISCSI_LOGIN_TOO_MANY_CONNECTIONS, ISER_E_LOGIN },
		{ ISCSI_LOGIN_TARGET_ERROR, ISER_E_LOGIN },
		{ ISCSI_LOGIN_NO_RESOURCES, ISER_E_LOGIN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct answer a = { .status = rows[i].status,
					  KEYS("TargetPortalGroupTag=1") };

		assert_int_equal(login("", &a, NULL), rows[i].err);
	}
}

/* RFC 7145 §6.3: the transport by the URL and by the target's answer. */
static void test_connect_by_transport_rfc7145_6_3(void **state)
{
	static const struct answer no = { KEYS("TargetPortalGroupTag=1\0"
					       "RDMAExtensions=No") };
	static const struct answer silent = { KEYS("TargetPortalGroupTag=1") };
	static const struct {
		const char *query;
		const struct answer *answer;
		int err;
		const char *words;
	} rows[] = {
		{ "?transport=tcp", &silent, 0, NULL },
		{ "?transport=auto&start=stream", &no, 0, NULL },
		{ "?transport=auto&start=stream", &silent, 0, NULL },
		{ "?transport=iser&start=stream", &no, ISER_E_LOGIN,
		  "answers RDMAExtensions=No" },
		{ "?transport=iser&start=stream", &silent, ISER_E_LOGIN,
		  "answers RDMAExtensions=No" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(login(rows[i].query, rows[i].answer,
				       rows[i].words),
				 rows[i].err);
}

static void test_params_are_what_was_negotiated(void **state)
{
	static const struct answer a = { KEYS(
		"TargetPortalGroupTag=7\0InitialR2T=Yes\0"
		"ImmediateData=No\0MaxRecvDataSegmentLength=12345\0"
		"MaxBurstLength=65536\0FirstBurstLength=4096\0"
		"MaxOutstandingR2T=1\0ErrorRecoveryLevel=0") };

	(void)state;
	on_success = assert_negotiated;
	assert_int_equal(login("?transport=tcp", &a, NULL), 0);
	on_success = NULL;
}

static void test_connect_to_a_target_that_hangs_up(void **state)
{
	static const struct answer gone = { KEYS(""), .hangs_up = true };

	(void)state;
	assert_int_equal(login("", &gone, NULL), ISER_E_CLOSED);
	assert_int_equal(login("?transport=auto", &gone, NULL), ISER_E_CLOSED);
	assert_int_equal(login("?transport=iser&start=stream", &gone,
			       "try start=rdma"),
			 ISER_E_CLOSED);
}

/* CHAP uses the names and secrets of the URL, each in its direction. */
static void test_connect_with_chap_rfc7143_12_1_3(void **state)
{
	static const struct answer chap = { .wants_chap = true };
	static const struct {
		const char *user, *password, *target_user, *target_password;
		int err;
	} rows[] = {
		{ "alice", "open sesame 42", "bob", "another secret", 0 },
		{ "alice", "open sesame 42", "", "", 0 },
		{ "alice", "open sesame 43", "", "", ISER_E_AUTH },
		{ "alicf", "open sesame 42", "", "", ISER_E_AUTH },
		{ "alice", "open sesame 4", "", "", ISER_E_AUTH },
		{ "alice", "open sesame 42", "bob", "another secreu",
		  ISER_E_AUTH },
		{ "alice", "open sesame 42", "boc", "another secret",
		  ISER_E_AUTH },
		{ "", "", "", "", ISER_E_AUTH },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		memset(&credentials, 0, sizeof(credentials));
		strcpy(credentials.user, rows[i].user);
		strcpy(credentials.password, rows[i].password);
		strcpy(credentials.target_user, rows[i].target_user);
		strcpy(credentials.target_password, rows[i].target_password);
		assert_int_equal(login("?transport=tcp", &chap, NULL),
				 rows[i].err);
	}
	memset(&credentials, 0, sizeof(credentials));
}

/* Each session has an ISID of its own: an ISID in use would end the other session
 * (RFC 7143 §6.3.5). */
static void test_isids_differ_rfc7143_11_12_5(void **state)
{
	static const struct answer refused = { .status = 0x0201 };
	uint8_t seen[16][6];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(seen); i++) {
		assert_int_equal(login("?transport=tcp", &refused, NULL),
				 ISER_E_AUTH);
		memcpy(seen[i], isid, 6);
		assert_int_equal(isid[0] >> 6, 2); /* a random one */
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(seen[k], seen[i], 6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect_by_status_rfc7143_11_13_5),
		cmocka_unit_test(test_connect_by_transport_rfc7145_6_3),
		cmocka_unit_test(test_params_are_what_was_negotiated),
		cmocka_unit_test(test_connect_to_a_target_that_hangs_up),
		cmocka_unit_test(test_connect_with_chap_rfc7143_12_1_3),
		cmocka_unit_test(test_isids_differ_rfc7143_11_12_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
