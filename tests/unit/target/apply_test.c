/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply_test.c: a new directory while sessions exist, on two workers: which
 * sessions it ends and which it does not touch.
 */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "target/internal.h"

#define SECOND_KEYS                \
 "InitiatorName=" FIXTURE_INI "\0" \
 "SessionType=Normal\0"            \
 "TargetName=" FIXTURE_SECOND

struct progress {
	unsigned done, settled;
};

struct env {
	struct fixture *r;
	struct peer *p, *q; /* to FIXTURE_TARGET, to FIXTURE_SECOND */
	struct progress progress;
};

/* ---- directories ---- */

static void count_done(void *arg)
{
	((struct progress *)arg)->done++;
}

static void count_settled(void *arg)
{
	const struct progress *p = arg;

	assert_true(p->done > p->settled); /* never the other way round */
	((struct progress *)arg)->settled++;
}

static int start(struct env *e, struct tgt_directory *d)
{
	const struct tgt_apply_events events = { .done = count_done,
						 .settled = count_settled,
						 .arg = &e->progress };

	return tgt_apply(e->r->tgt, d, &events);
}

static void apply(struct env *e, struct tgt_directory *d)
{
	const unsigned before = e->progress.done;

	assert_int_equal(start(e, d), 0);
	assert_int_equal(e->progress.done, before);
	fixture_messages(e->r);
	assert_int_equal(e->progress.done, before + 1);
}

static struct tgt_directory *both(void)
{
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);

	fixture_target(d, FIXTURE_SECOND);
	return d;
}

/* FIXTURE_TARGET as before, and FIXTURE_SECOND with this auth group. */
static void add_second(struct tgt_directory *d, unsigned auth, unsigned portals)
{
	const struct tgt_target_config second = { .name = FIXTURE_SECOND,
						  .auth_group = auth };

	assert_int_equal(tgt_target_add(d, &second), 1);
	assert_int_equal(tgt_target_portal_group(d, 1, portals), 0);
}

/* ---- sessions ---- */

static uint16_t login_second(struct env *e, unsigned worker, uint8_t isid,
			     struct peer **p)
{
	const uint8_t id[6] = { 0x80, 1, 2, 3, 4, isid };

	*p = peer_new(e->r, worker);
	return peer_login(*p, SECOND_KEYS, sizeof(SECOND_KEYS), id, 0);
}

static int setup(void **state)
{
	static struct env e;

	e = (struct env){ .r = fixture_new(2, NULL) };
	apply(&e, both());
	e.progress = (struct progress){ 0 };
	e.p = peer_session(e.r, 0, 1);
	assert_int_equal(login_second(&e, 1, 2, &e.q), 0);
	peer_ready(e.p);
	peer_ready(e.q);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	fixture_free(e->r);
	return 0;
}

static void expire(struct env *e, unsigned worker, xtime now)
{
	tgt_worker_expire(tgt_worker(e->r->tgt, worker), now);
	fixture_settle(e->r);
}

static void expect_asked(struct env *e, struct peer *p, unsigned worker,
			 xtime now)
{
	const struct sent *s;

	assert_true(peer_quiet(p));
	assert_int_equal(tgt_worker_deadline(tgt_worker(e->r->tgt, worker)), 0);
	expire(e, worker, now);
	s = peer_expect(p, ISCSI_ASYNC_MESSAGE);
	assert_int_equal(s->pdu.async.event, ISCSI_ASYNC_LOGOUT);
	assert_int_equal(s->pdu.async.param3, e->r->cfg.logout_time / XTIME_S);
	assert_false(p->terminated);
}

static void expect_untouched(struct env *e, struct peer *p)
{
	for (unsigned i = 0; i < 2; i++)
		expire(e, i, XTIME_S);
	assert_true(peer_quiet(p));
	assert_false(p->terminated);
	peer_tur(p);
	fixture_settle(e->r);
	peer_expect_status(p, SCSI_GOOD);
}

static void log_out(struct env *e, struct peer *p)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGOUT_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = p->cmdsn,
				 .itt = 99 };

	peer_rx(p, &pdu, NULL);
	fixture_settle(e->r);
	peer_expect(p, ISCSI_LOGOUT_RESPONSE);
	assert_true(p->gone);
}

/* ---- tests ---- */

static void test_nothing_changes(void **state)
{
	struct env *e = *state;

	apply(e, both());
	assert_int_equal(e->progress.settled, 1);
	expect_untouched(e, e->p);
	expect_untouched(e, e->q);
}

/* The session of a removed target is asked to log out, and dropped if it does not.
 * I/O of the other session goes on meanwhile. */
static void test_removed_target_rfc7143_11_9_1(void **state)
{
	const xtime asked = 5 * XTIME_S;
	struct env *e = *state;
	struct peer *late;

	e->r->holding = true;
	peer_read(e->p, 0, 1);
	apply(e, fixture_directory(FIXTURE_TARGET));
	assert_int_equal(e->progress.settled, 0);
	expect_asked(e, e->q, 1, asked);
	assert_int_equal(login_second(e, 0, 3, &late), ISCSI_LOGIN_NOT_FOUND);
	expire(e, 1, asked + e->r->cfg.logout_time - 1);
	assert_false(e->q->gone);
	assert_int_equal(e->progress.settled, 0);
	expire(e, 1, asked + e->r->cfg.logout_time);
	assert_int_equal(
		peer_expect(e->q, ISCSI_ASYNC_MESSAGE)->pdu.async.event,
		ISCSI_ASYNC_DROP_CONNECTION);
	assert_true(e->q->gone);
	assert_int_equal(e->progress.settled, 1);
	e->r->holding = false;
	fixture_settle(e->r);
	assert_int_equal(peer_next(e->p)->pdu.op, ISCSI_SCSI_RESPONSE);
	expect_untouched(e, e->p);
}

static void test_asked_session_logs_out_rfc7143_11_14(void **state)
{
	struct env *e = *state;

	apply(e, fixture_directory(FIXTURE_TARGET));
	expect_asked(e, e->q, 1, XTIME_S);
	log_out(e, e->q);
	assert_int_equal(e->progress.settled, 1);
	expect_untouched(e, e->p);
}

/* Each way to lose the permission, one after the other. */
static void test_no_longer_permitted(void **state)
{
	static const uint8_t other[16] = { 0x20, 0x01, 0x0d, 0xb8 };
	const struct tgt_portal_group_config far = { .tag = 2 };

	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		struct tgt_directory *d;
		struct env *e;
		int g;

		setup((void **)&e);
		d = fixture_directory(FIXTURE_TARGET);
		g = tgt_auth_group_add(d);
		assert_int_equal(tgt_portal_group_add(d, &far), 1);
		if (way == 0)
			tgt_auth_group_initiator(d, (unsigned)g,
						 "iqn.2026-01.org.example:x*");
		if (way == 1)
			tgt_auth_group_address(d, (unsigned)g, other, 32);
		if (way == 2)
			g = TGT_AUTH_NONE;
		add_second(d, (unsigned)g, way == 3);
		apply(e, d);
		expect_asked(e, e->q, 1, XTIME_S);
		expect_untouched(e, e->p);
		log_out(e, e->q);
		assert_int_equal(e->progress.settled, 1);
		teardown((void **)&e);
	}
}

/* FIXTURE_SECOND, which admits new sessions or drains. */
static struct tgt_directory *draining(bool drains)
{
	const struct tgt_target_config second = { .name = FIXTURE_SECOND,
						  .drains = drains };
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);

	assert_int_equal(tgt_target_add(d, &second), 1);
	assert_int_equal(tgt_target_portal_group(d, 1, 0), 0);
	return d;
}

/* A target that drains refuses new sessions (RFC 7143 §11.13.5, 0301h); its sessions
 * go on, also by another connection in place of a lost one (§6.3.4). */
static void test_drain(void **state)
{
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 2 };
	struct env *e = *state;
	uint16_t tsih = ((struct tgt_conn *)e->q->dm.user)->session->tsih;
	struct peer *late, *again = peer_new(e->r, 1);

	apply(e, draining(true));
	assert_int_equal(e->progress.settled, 1);
	expect_untouched(e, e->p);
	expect_untouched(e, e->q);
	assert_int_equal(login_second(e, 0, 3, &late), ISCSI_LOGIN_UNAVAILABLE);
	assert_int_equal(login_second(e, 1, 2, &late), ISCSI_LOGIN_UNAVAILABLE);
	expect_untouched(e, e->q);
	assert_int_equal(peer_login(again, SECOND_KEYS, sizeof(SECOND_KEYS),
				    isid, tsih),
			 0);
	apply(e, draining(false));
	assert_int_equal(login_second(e, 0, 3, &late), 0);
}

/* FIXTURE_SECOND requires CHAP by this account. */
static struct tgt_directory *with_account(const char *name, const char *secret)
{
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	const int g = tgt_auth_group_add(d);
	struct iscsi_chap_secret account = { .secret_len = strlen(secret) };

	strcpy(account.name, name);
	memcpy(account.secret, secret, account.secret_len);
	assert_int_equal(tgt_auth_group_account(d, (unsigned)g, &account), 0);
	add_second(d, (unsigned)g, 0);
	return d;
}

/* A changed secret concerns new logins; a session whose account is gone has to
 * end. */
static void test_changed_secret_concerns_new_logins(void **state)
{
	struct env *e = *state;
	struct tgt_session *s = ((struct tgt_conn *)e->q->dm.user)->session;
	struct peer *late;

	strcpy(s->login.account, "carol");
	apply(e, with_account("carol", "secret of carol"));
	assert_int_equal(e->progress.settled, 1);
	expect_untouched(e, e->q);
	assert_int_equal(login_second(e, 0, 3, &late),
			 ISCSI_LOGIN_AUTH_FAILURE);
	apply(e, with_account("carol", "another secret of carol"));
	expect_untouched(e, e->q);
	apply(e, with_account("caroline", "secret of carol"));
	expect_asked(e, e->q, 1, XTIME_S);
	expect_untouched(e, e->p);
}

static void test_session_without_chap_ends_with_the_first_account(void **state)
{
	struct env *e = *state;

	apply(e, with_account("carol", "secret of carol"));
	expect_asked(e, e->q, 1, XTIME_S);
	expect_untouched(e, e->p);
}

/* A discovery session cannot be asked (§13.21); it ends at once. */
static void test_discovery_session_ends(void **state)
{
	const struct tgt_portal_group_config portals = { .tag = 2 };
	struct tgt_directory *d = tgt_directory_new();
	struct env *e = *state;
	struct peer *p = peer_discovery(e->r);

	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	apply(e, d);
	expire(e, 0, XTIME_S);
	assert_true(p->gone);
	assert_int_equal(
		peer_expect(e->p, ISCSI_ASYNC_MESSAGE)->pdu.async.event,
		ISCSI_ASYNC_LOGOUT);
}

/* Of two directories the first one settles first; the second may come into force
 * before that, but not before the first one is in force. */
static void test_two_directories(void **state)
{
	struct tgt_directory *d = both();
	struct env *e = *state;

	apply(e, fixture_directory(FIXTURE_TARGET));
	assert_int_equal(start(e, d), 0);
	assert_int_equal(start(e, d), ERR_BUSY);
	fixture_messages(e->r);
	assert_int_equal(e->progress.done, 2);
	assert_int_equal(e->progress.settled, 0);
	/* too late for a session that has to leave, although it is permitted
	 * again */
	expect_asked(e, e->q, 1, XTIME_S);
	log_out(e, e->q);
	assert_int_equal(e->progress.settled, 2);
	assert_int_equal(login_second(e, 1, 2, &e->q), 0);
}

/* A login that waits for the end of an older session is refused if its target is
 * removed meanwhile. */
static void test_login_in_progress(void **state)
{
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 2 };
	struct env *e = *state;
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .dsl = sizeof(SECOND_KEYS) };
	struct peer *late = peer_new(e->r, 0);
	const struct sent *s;

	e->r->holding = true;
	peer_read(e->q, 0, 1);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(late, &pdu, SECOND_KEYS);
	fixture_settle(e->r);
	assert_true(e->q->gone); /* its session waits for the read */
	assert_true(peer_quiet(late));
	apply(e, fixture_directory(FIXTURE_TARGET));
	assert_int_equal(e->progress.settled, 0);
	e->r->holding = false;
	fixture_settle(e->r);
	fixture_settle(e->r); /* ends the connection */
	s = peer_expect(late, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(s->pdu.login.status_class, 2);
	assert_int_equal(s->pdu.login.status_detail, 3);
	assert_true(late->gone);
	assert_int_equal(e->progress.settled, 1);
}

static void test_data_time_of_sessions(void **state)
{
	const struct tgt_target_config second = { .name = FIXTURE_SECOND,
						  .data_time = 7 * XTIME_S };
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	const struct tgt_conn *p, *q;
	struct env *e = *state;

	p = e->p->dm.user;
	q = e->q->dm.user;
	assert_true(q->session->data_time == e->r->cfg.data_time);
	assert_int_equal(tgt_target_add(d, &second), 1);
	assert_int_equal(tgt_target_portal_group(d, 1, 0), 0);
	apply(e, d);
	assert_true(q->session->data_time == 7 * XTIME_S);
	assert_true(p->session->data_time == e->r->cfg.data_time);
	apply(e, both());
	assert_true(q->session->data_time == e->r->cfg.data_time);
}

/* The ports of a target stay the same while directories come and go. */
static void test_ports_stay(void **state)
{
	const struct tgt_portal_group_config far = { .tag = 2 };
	struct env *e = *state;
	uint16_t first = 0;

	for (unsigned round = 0; round < 3; round++) {
		struct tgt_directory *d = both();

		assert_int_equal(tgt_portal_group_add(d, &far), 1);
		assert_int_equal(tgt_target_portal_group(d, 1, 1), 0);
		apply(e, d);
		if (!round)
			first = d->targets[1]->ports[1].rtpi;
		assert_int_equal(d->targets[1]->ports[1].rtpi, first);
		assert_int_not_equal(d->targets[1]->ports[0].rtpi, first);
		assert_int_not_equal(d->targets[0]->ports[0].rtpi, first);
		apply(e, fixture_directory(FIXTURE_TARGET));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_nothing_changes),
		CASE(test_removed_target_rfc7143_11_9_1),
		CASE(test_asked_session_logs_out_rfc7143_11_14),
		cmocka_unit_test(test_no_longer_permitted),
		CASE(test_drain),
		CASE(test_changed_secret_concerns_new_logins),
		CASE(test_session_without_chap_ends_with_the_first_account),
		CASE(test_discovery_session_ends),
		CASE(test_two_directories),
		CASE(test_login_in_progress),
		CASE(test_data_time_of_sessions),
		CASE(test_ports_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
