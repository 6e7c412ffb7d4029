/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chap_test.c: logins with CHAP (RFC 7143 §12.1.3) to targets and for
 * discovery: the initiator is the login engine of iscsi/login.h.
 */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "login_fixture.h"

#define MUTUAL	FIXTURE_TARGET /* proves itself, too */
#define ONE_WAY FIXTURE_SECOND
#define ACCOUNT                                              \
 {                                                           \
  .name = "joe", .secret = "secret of joe", .secret_len = 13 \
 }
#define OF_OTHER                                             \
 {                                                           \
  .name = "joe", .secret = "secret of ann", .secret_len = 13 \
 }
#define UNKNOWN                                              \
 {                                                           \
  .name = "ann", .secret = "secret of joe", .secret_len = 13 \
 }
#define OWN                                                    \
 {                                                             \
  .name = "disk", .secret = "secret of disk", .secret_len = 14 \
 }

static const struct iscsi_chap_secret joe = ACCOUNT, wrong = OF_OTHER,
				      ann = UNKNOWN, own = OWN;

/* ---- the target ---- */

static unsigned proofs, logins, failures;

static int logged_in(void *arg, void *owner, bool discovery, bool proven)
{
	(void)arg;
	(void)owner;
	(void)discovery;
	logins++;
	proofs += proven;
	return 0;
}

static xtime late, refused_for; /* what the next two functions return */

static xtime auth_begin(void *arg, void *owner, const char *account,
			const char *initiator)
{
	(void)arg;
	(void)owner;
	assert_true(!strcmp(account, "joe") || !strcmp(account, "ann"));
	assert_string_equal(initiator, LOGIN_FIXTURE_INITIATOR);
	return refused_for;
}

static xtime auth_failed(void *arg, void *owner)
{
	(void)arg;
	(void)owner;
	failures++;
	return late;
}

static void change(struct tgt_config *cfg)
{
	cfg->logged_in = logged_in;
	cfg->auth_begin = auth_begin;
	cfg->auth_failed = auth_failed;
	cfg->random = login_fixture_random;
}

static void add_target(struct tgt_directory *d, const char *name,
		       unsigned group, const struct iscsi_chap_secret *mutual)
{
	const struct tgt_target_config cfg = { .name = name,
					       .auth_group = group };
	int index;

	assert_int_equal(tgt_auth_group_add(d), group);
	assert_int_equal(tgt_auth_group_account(d, group, &joe), 0);
	if (mutual)
		assert_int_equal(tgt_auth_group_mutual(d, group, mutual), 0);
	index = tgt_target_add(d, &cfg);
	assert_true(index >= 0);
	if (group == 2)
		assert_int_equal(
			tgt_portal_group_add(d,
					     &(struct tgt_portal_group_config){
						     .tag = FIXTURE_TAG,
						     .discovery_auth = group }),
			0);
	assert_int_equal(tgt_target_portal_group(d, (unsigned)index, 0), 0);
}

static struct fixture *open_target(void)
{
	struct fixture *r = fixture_new(1, change);
	struct tgt_directory *d = tgt_directory_new();

	assert_non_null(d);
	add_target(d, MUTUAL, 2, &own);
	add_target(d, ONE_WAY, 3, NULL);
	fixture_apply(r, d);
	logins = proofs = failures = 0;
	return r;
}

/* ---- the initiator ---- */

/* Sends the next request; returns the result of the response. */
static int exchange(struct peer *p, struct iscsi_login_engine *e)
{
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu pdu;
	struct sent *s;

	iscsi_login_tx(e, &pdu, data);
	pdu.cmdsn = p->cmdsn;
	peer_rx(p, &pdu, data);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	return iscsi_login_rx(e, &s->pdu, s->data);
}

struct attempt {
	const char *target;		     /* NULL: discovery */
	const struct iscsi_chap_secret *out; /* of the initiator; or NULL */
	const struct iscsi_chap_secret *in;  /* required of the target */
	uint16_t status;		     /* that the target sends */
	bool fails;    /* the initiator ends a login that the target grants */
	bool detected; /* the target reports a failed CHAP */
};

static void attempt(const struct attempt *a)
{
	struct fixture *r = open_target();
	struct iscsi_login_engine *e;
	struct iscsi_login_config cfg;
	int result = ISCSI_LOGIN_SEND;

	login_fixture_initiator(&cfg);
	strcpy(cfg.id.target_name, a->target ? a->target : "");
	cfg.id.discovery = !a->target;
	cfg.chap_out = a->out;
	cfg.chap_in = a->in;
	e = iscsi_login_new(&cfg);
	assert_non_null(e);
	assert_int_equal(iscsi_login_start(e), 0);
	for (struct peer *p = peer_new(r, 0); result == ISCSI_LOGIN_SEND;)
		result = exchange(p, e);
	assert_int_equal(result == ISCSI_LOGIN_DONE, !a->status && !a->fails);
	assert_int_equal(iscsi_login_failure(e)->status, a->status);
	assert_int_equal(logins, result == ISCSI_LOGIN_DONE);
	assert_int_equal(proofs, logins);
	if (!a->status)
		assert_int_equal(iscsi_login_tpgt(e), FIXTURE_TAG);
	assert_int_equal(failures, a->detected);
	iscsi_login_free(e);
	fixture_free(r);
}

/* ---- tests ---- */

static void test_the_initiator_proves_itself(void **state)
{
	static const char *const targets[] = { MUTUAL, ONE_WAY, NULL };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		const struct attempt rows[] = {
			{ targets[i], &joe, NULL, 0, false, false },
			{ targets[i], &wrong, NULL, ISCSI_LOGIN_AUTH_FAILURE,
			  false, true },
			{ targets[i], &ann, NULL, ISCSI_LOGIN_AUTH_FAILURE,
			  false, true },
			{ targets[i], NULL, NULL, ISCSI_LOGIN_AUTH_FAILURE,
			  false, false },
		};

		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			attempt(&rows[k]);
	}
}

static void test_the_target_proves_itself(void **state)
{
	static const struct attempt rows[] = {
		{ MUTUAL, &joe, &own, 0, false, false },
		{ NULL, &joe, &own, 0, false, false },
		{ MUTUAL, &joe, &joe, 0, true, false },
		{ ONE_WAY, &joe, &own, ISCSI_LOGIN_AUTH_FAILURE, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		attempt(&rows[i]);
}

/* ---- refusals that are late ---- */

#define HOLD (5 * XTIME_S) /* the longest */

/* Sends the last request of a CHAP by out to a new target; the response is held back. */
static struct peer *held_login(const struct iscsi_chap_secret *out,
			       struct iscsi_login_engine **e)
{
	struct fixture *r = open_target();
	struct peer *p = peer_new(r, 0);
	static struct iscsi_login_config cfg;
	uint8_t data[ISCSI_LOGIN_PDU_MAX];
	struct iscsi_pdu pdu;

	login_fixture_initiator(&cfg);
	strcpy(cfg.id.target_name, ONE_WAY);
	cfg.chap_out = out;
	*e = iscsi_login_new(&cfg);
	assert_int_equal(iscsi_login_start(*e), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(exchange(p, *e), ISCSI_LOGIN_SEND);
	iscsi_login_tx(*e, &pdu, data);
	peer_rx(p, &pdu, data);
	fixture_settle(r);
	assert_true(peer_quiet(p));
	return p;
}

static void at(struct peer *p, xtime now)
{
	tgt_worker_expire(tgt_worker(p->fixture->tgt, 0), now);
	fixture_settle(p->fixture);
}

static void close_held(struct peer *p, struct iscsi_login_engine *e)
{
	iscsi_login_free(e);
	fixture_free(p->fixture);
	late = refused_for = 0;
}

/* The refusal comes after the penalty, or after HOLD; nothing else is checked meanwhile. A
 * right secret during the penalty is not checked, and not counted as a failure. */
static void test_refusals_are_late(void **state)
{
	static const struct {
		const struct iscsi_chap_secret *out;
		xtime late, refused_for, wait;
		uint16_t status;
		unsigned failures;
	} rows[] = {
		{ &wrong, 1 * XTIME_S, 0, 1 * XTIME_S, ISCSI_LOGIN_AUTH_FAILURE,
		  1 },
		{ &ann, 60 * XTIME_S, 0, HOLD, ISCSI_LOGIN_AUTH_FAILURE, 1 },
		{ &wrong, 0, 1, 1, ISCSI_LOGIN_UNAVAILABLE, 0 },
		{ &joe, 0, 60 * XTIME_S, HOLD, ISCSI_LOGIN_UNAVAILABLE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const xtime now = 1000 * XTIME_S;
		struct iscsi_login_engine *e;
		struct peer *p;
		struct sent *s;

		late = rows[i].late;
		refused_for = rows[i].refused_for;
		p = held_login(rows[i].out, &e);
		assert_int_equal(
			tgt_worker_deadline(tgt_worker(p->fixture->tgt, 0)), 0);
		at(p, now);
		at(p, now + rows[i].wait - 1);
		assert_true(peer_quiet(p));
		assert_false(p->terminated);
		at(p, now + rows[i].wait);
		s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
		assert_int_equal(s->pdu.login.status_class << 8 |
					 s->pdu.login.status_detail,
				 rows[i].status);
		assert_true(p->terminated);
		assert_int_equal(failures, rows[i].failures);
		assert_int_equal(logins, 0);
		close_held(p, e);
	}
}

/* A request in place of patience ends the connection, without the answer. */
static void test_a_request_meanwhile(void **state)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST, .immediate = true };
	struct iscsi_login_engine *e;
	struct peer *p;

	(void)state;
	late = XTIME_S;
	p = held_login(&wrong, &e);
	peer_rx(p, &pdu, NULL);
	fixture_settle(p->fixture);
	assert_true(peer_quiet(p));
	assert_true(p->terminated);
	close_held(p, e);

	late = XTIME_S;
	p = held_login(&wrong, &e);
	peer_cut(p, ERR_RESET);
	fixture_settle(p->fixture);
	assert_true(p->gone);
	close_held(p, e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_initiator_proves_itself),
		cmocka_unit_test(test_the_target_proves_itself),
		cmocka_unit_test(test_refusals_are_late),
		cmocka_unit_test(test_a_request_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
