/* SPDX-License-Identifier: BSD-2-Clause */
/* login_test.c: login verdicts, limits, session reinstatement. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "target/internal.h"

static const uint8_t isid_a[6] = { 0x80, 1, 2, 3, 4, 5 };

#define KEYS(p, text) peer_login(p, text, sizeof(text), isid_a, 0)

/* [RFC 7145: 5.1.2 #1] [RFC 5047: 8.6 #1] */
/* [RFC 7143: 4.2.1 #1, 11.12.8 #1, 11.13.3 #1] */
static void test_login_normal(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_session(r, 0, 1);
	struct sent *s = &p->sent[0];

	(void)state;
	assert_true(s->pdu.login.transit);
	assert_int_equal(s->pdu.login.nsg, 3);
	assert_int_not_equal(s->pdu.login.tsih, 0);
	assert_int_equal(s->pdu.expcmdsn, 100);
	assert_int_equal(s->pdu.maxcmdsn, 100 + r->cfg.depth - 1);
	assert_int_equal(p->params.max_send_dsl, 65536);
	assert_false(p->params.initial_r2t);
	peer_ready(p);
	fixture_free(r);
}

/* The initiator offers the maximum of every key. */
static void test_login_agrees_to_so_much(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(KEYS(p, "InitiatorName=" FIXTURE_INI "\0"
				 "SessionType=Normal\0"
				 "TargetName=" FIXTURE_TARGET "\0"
				 "MaxConnections=8\0InitialR2T=No\0"
				 "ImmediateData=Yes\0MaxBurstLength=16777215\0"
				 "FirstBurstLength=16777215\0"
				 "MaxOutstandingR2T=65535\0"
				 "DefaultTime2Wait=0\0DefaultTime2Retain=60\0"
				 "ErrorRecoveryLevel=2"),
			 ISCSI_LOGIN_SUCCESS);
	assert_int_equal(p->params.max_connections, 1);
	assert_false(p->params.initial_r2t);
	assert_true(p->params.immediate_data);
	assert_int_equal(p->params.max_burst_length, 1048576);
	assert_int_equal(p->params.first_burst_length, 262144);
	assert_int_equal(p->params.max_outstanding_r2t, 8);
	assert_int_equal(p->params.default_time2wait, 0);
	assert_int_equal(p->params.default_time2retain, 0);
	assert_int_equal(p->params.error_recovery_level, 0);
	fixture_free(r);
}

/* [RFC 7143: 7.12 #2, 11.13.5 #3] */
static void test_login_unknown_target_rfc7143_11_13_5(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(KEYS(p, "InitiatorName=" FIXTURE_INI "\0"
				 "SessionType=Normal\0"
				 "TargetName=iqn.2026-01.org.example:none"),
			 ISCSI_LOGIN_NOT_FOUND);
	assert_true(p->gone);
	fixture_free(r);
}

/* [RFC 7143: 4.2.7.1 #4, 6.3 #3, 13.4 #1] */
static void test_login_no_target_name_rfc7143_6_3(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(KEYS(p, "InitiatorName=" FIXTURE_INI "\0"
				 "SessionType=Normal"),
			 ISCSI_LOGIN_MISSING_PARAMETER);
	assert_true(p->gone);
	fixture_free(r);
}

/* MaxConnections=1, ErrorRecoveryLevel=0: no second connection is admitted. */
/* [RFC 7143: 11.12.6 #4] */
static void test_login_tsih_without_session_rfc7143_11_13_5(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	assert_int_equal(peer_login(p, keys, sizeof(keys), isid_a, 77),
			 ISCSI_LOGIN_NO_SESSION);
	fixture_free(r);
}

/* TSIH 0 means a new session: no session has it, also when the numbers begin again. */
static void test_tsih_is_not_zero_rfc7143_11_13_3(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= FIXTURE_WORKERS; workers++) {
		struct fixture *r = fixture_new(workers, NULL);
		struct tgt_worker *w = tgt_worker(r->tgt, 0);
		uint16_t seen[8];

		w->next_tsih = (uint16_t)(65535 / workers - 4);
		for (uint8_t i = 0; i < ARRAY_LEN(seen); i++) {
			seen[i] = peer_session(r, 0, i)->sent[0].pdu.login.tsih;
			assert_int_not_equal(seen[i], 0);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(seen[k], seen[i]);
		}
		fixture_free(r);
	}
}

/* [RFC 7143: 4.2.4 #4] */
static void test_login_other_pdu_first_rfc7143_6_3(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);

	(void)state;
	peer_tur(p);
	fixture_settle(r);
	assert_true(peer_quiet(p));
	assert_true(p->gone);
	fixture_free(r);
}

/* [RFC 7143: 4.2.4 #5] */
static void test_login_other_pdu_in_between_rfc7143_6_3(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .cmdsn = p->cmdsn,
				 .dsl = sizeof(keys) };
	struct sent *s;

	(void)state;
	pdu.login.csg = 1;
	peer_rx(p, &pdu, keys);
	peer_expect(p, ISCSI_LOGIN_RESPONSE);
	peer_tur(p);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(s->pdu.login.status_class, 0x02);
	assert_int_equal(s->pdu.login.status_detail, 0x0b);
	fixture_settle(r);
	assert_true(p->gone);
	fixture_free(r);
}

static void test_login_takes_too_long(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct tgt_worker *w = tgt_worker(r->tgt, 0);
	struct peer *p = peer_new(r, 0);
	xtime limit = XTIME_S + r->cfg.login_time;

	(void)state;
	assert_true(tgt_worker_deadline(w) == limit);
	tgt_worker_expire(w, limit - 1);
	assert_false(p->terminated);
	tgt_worker_expire(w, limit);
	assert_true(p->terminated);
	assert_int_equal(p->how, DM_TERMINATE_NOW);
	fixture_free(r);
}

static void few_conns(struct tgt_config *cfg)
{
	cfg->max_conns = 4;
}

static void test_accept_limit(void **state)
{
	struct fixture *r = fixture_new(1, few_conns);
	int err;

	(void)state;
	for (uint8_t i = 0; i < 4; i++)
		peer_session(r, 0, i);
	assert_null(peer_try(r, 0, "192.0.2.1", &err));
	assert_int_equal(err, ERR_LIMIT);
	fixture_free(r);
}

/* ---- decisions of the caller ---- */

struct gatekeeper {
	unsigned logins, discoveries, failures, ends;
	int verdict;
};

static struct gatekeeper gatekeeper;

static int keeper_logged_in(void *arg, void *owner, bool discovery, bool proven)
{
	(void)arg;
	(void)owner;
	(void)proven;
	gatekeeper.logins += !discovery;
	gatekeeper.discoveries += discovery;
	return gatekeeper.verdict;
}

static xtime keeper_failed(void *arg, void *owner)
{
	(void)arg;
	(void)owner;
	gatekeeper.failures++;
	return 0;
}

static void keeper_ended(void *arg, void *owner, bool logged_out)
{
	(void)arg;
	(void)owner;
	gatekeeper.ends++;
	(void)logged_out;
}

static void keep_gate(struct tgt_config *cfg)
{
	gatekeeper = (struct gatekeeper){ 0 };
	cfg->logged_in = keeper_logged_in;
	cfg->auth_failed = keeper_failed;
	cfg->ended = keeper_ended;
}

static void test_logged_in_and_ended_are_reported(void **state)
{
	struct fixture *r = fixture_new(1, keep_gate);
	struct peer *p = peer_session(r, 0, 1);

	(void)state;
	assert_int_equal(gatekeeper.logins, 1);
	peer_discovery(r);
	assert_int_equal(gatekeeper.discoveries, 1);
	assert_int_equal(gatekeeper.ends, 0);
	tgt_conn_drop(tgt_worker(r->tgt, 0), NULL,
		      "test"); /* the first login */
	fixture_settle(r);
	assert_true(p->gone);
	assert_int_equal(gatekeeper.ends, 1);
	fixture_free(r);
}

static void test_login_refused_for_want_of_room_rfc7143_11_13_5(void **state)
{
	struct fixture *r = fixture_new(1, keep_gate);
	struct peer *p = peer_new(r, 0);

	(void)state;
	gatekeeper.verdict = ERR_LIMIT;
	assert_int_equal(KEYS(p, "InitiatorName=" FIXTURE_INI "\0"
				 "SessionType=Normal\0"
				 "TargetName=" FIXTURE_TARGET),
			 ISCSI_LOGIN_NO_RESOURCES);
	fixture_settle(r);
	assert_true(p->gone);
	fixture_free(r);
}

static void test_discovery_session_has_a_lifetime(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct tgt_worker *w = tgt_worker(r->tgt, 0);
	struct peer *p = peer_discovery(r);
	xtime end = XTIME_S + r->cfg.discovery_time;

	(void)state;
	for (xtime now = XTIME_S; now < end; now += XTIME_S) {
		tgt_worker_expire(w, now);
		assert_false(p->terminated);
	}
	assert_true(tgt_worker_deadline(w) == end);
	tgt_worker_expire(w, end);
	assert_true(p->terminated);
	fixture_free(r);
}

static void test_login_while_draining(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p;

	(void)state;
	tgt_worker_drain(tgt_worker(r->tgt, 0), XTIME_S);
	p = peer_new(r, 0);
	assert_int_equal(KEYS(p, "InitiatorName=" FIXTURE_INI "\0"
				 "SessionType=Normal\0"
				 "TargetName=" FIXTURE_TARGET),
			 ISCSI_LOGIN_UNAVAILABLE);
	fixture_free(r);
}

/* ---- a login with a TSIH, §6.3.4 ---- */

static uint16_t login_with(struct peer *p, uint8_t last, uint16_t tsih,
			   uint16_t cid, uint32_t cmdsn)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET "\0"
				   "InitialR2T=Yes\0" /* leading login only */
				   "MaxRecvDataSegmentLength=8192";
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = cmdsn,
				 .dsl = sizeof(keys) };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, last };
	struct sent *s;

	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = tsih;
	pdu.login.cid = cid;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(p, &pdu, keys);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	return (uint16_t)(s->pdu.login.status_class << 8 |
			  s->pdu.login.status_detail);
}

static void join(unsigned workers, unsigned first, unsigned second)
{
	struct fixture *r = fixture_new(workers, NULL);
	struct peer *a = peer_session(r, first, 1), *b, *c;
	uint16_t tsih = a->sent[0].pdu.login.tsih;

	peer_ready(a);
	/* another CID, another TSIH: this session stays */
	b = peer_new(r, second);
	assert_int_equal(login_with(b, 1, tsih, 9, a->cmdsn),
			 ISCSI_LOGIN_TOO_MANY_CONNECTIONS);
	b = peer_new(r, second);
	assert_int_equal(login_with(b, 1, (uint16_t)(tsih + 7), 0, a->cmdsn),
			 ISCSI_LOGIN_NO_SESSION);
	b = peer_new(r, second);
	assert_int_equal(login_with(b, 2, tsih, 0, a->cmdsn),
			 ISCSI_LOGIN_NO_SESSION);
	assert_false(a->gone);
	peer_tur(a);
	peer_expect_status(a, SCSI_GOOD);
	/* the same TSIH and CID: its tasks end, its TSIH and keys stay */
	r->holding = true;
	peer_read(a, 0, 1);
	r->holding = false;
	b = peer_new(r, second);
	b->cmdsn = a->cmdsn;
	assert_int_equal(login_with(b, 1, tsih, 0, a->cmdsn), 0);
	assert_true(a->gone);
	assert_int_equal(b->sent[0].pdu.login.tsih, tsih);
	assert_int_equal(b->sent[0].pdu.expcmdsn, a->cmdsn);
	assert_false(b->params.initial_r2t);
	assert_int_equal(b->params.protocol_level, 2);
	assert_int_equal(b->params.max_send_dsl, 8192);
	peer_ready(b);
	/* and once more */
	c = peer_new(r, first);
	c->cmdsn = b->cmdsn;
	assert_int_equal(login_with(c, 1, tsih, 0, b->cmdsn), 0);
	assert_true(b->gone);
	peer_ready(c);
	fixture_free(r);
}

/* [RFC 7143: 4.4.3 #1] */
static void test_connection_reinstatement_rfc7143_6_3_4(void **state)
{
	(void)state;
	join(1, 0, 0);
	join(2, 1, 1);
	join(3, 2, 2);
}

/* A session in RDMA mode cannot be joined without it, nor the reverse (RFC
 * 7145 §5.1). */
/* [RFC 7145: 5.1 #7] */
static void test_connection_of_another_transport(void **state)
{
	struct fixture *r = fixture_new(1, NULL);
	struct peer *a = peer_session(r, 0, 1), *b = peer_new(r, 0);

	(void)state;
	b->dm.rdma = DM_RDMA_ALREADY;
	assert_int_equal(login_with(b, 1, a->sent[0].pdu.login.tsih, 0,
				    a->cmdsn),
			 ISCSI_LOGIN_CANT_INCLUDE);
	assert_false(a->gone);
	fixture_free(r);
}

/* ---- session reinstatement, §6.3.5 ---- */

static void reinstate(unsigned workers, unsigned first, unsigned second)
{
	struct fixture *r = fixture_new(workers, NULL);
	struct peer *a = peer_session(r, first, 1);
	struct peer *other = peer_session(r, first, 2);
	struct peer *b;

	peer_ready(a);
	r->holding = true;
	peer_read(a, 0, 1);
	fixture_messages(r);
	r->holding = false;
	b = peer_session(r, second, 1);
	assert_true(a->gone);
	assert_false(other->gone);
	assert_false(b->gone);
	peer_ready(b);
	fixture_free(r);
}

/* [RFC 7143: 6.3.5 #1, 7.15 #2] */
static void test_reinstate_same_worker_rfc7143_6_3_5(void **state)
{
	(void)state;
	reinstate(1, 0, 0);
	reinstate(2, 1, 1);
}

/* [RFC 7143: 7.15 #2] */
static void test_reinstate_other_worker_rfc7143_6_3_5(void **state)
{
	(void)state;
	reinstate(2, 0, 1);
	reinstate(3, 2, 0);
}

/* The new session's login waits until no I/O of the old one is left. */
static void test_reinstate_waits_for_io_rfc7143_6_3_5(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };
	struct fixture *r = fixture_new(2, NULL);
	struct peer *a = peer_session(r, 0, 1);
	struct peer *b = peer_new(r, 1);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = 5,
				 .dsl = sizeof(keys) };

	(void)state;
	peer_ready(a);
	r->holding = true;
	peer_read(a, 0, 1);
	assert_int_equal(bs_hold_waiting(r->hold), 1);
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(b, &pdu, keys);
	fixture_settle(r);
	assert_true(a->gone);
	assert_true(peer_quiet(b));
	r->holding = false;
	fixture_settle(r);
	peer_expect(b, ISCSI_LOGIN_RESPONSE);
	assert_true(b->enabled);
	fixture_free(r);
}

static struct peer *discovery(struct fixture *r, unsigned worker,
			      const char *local, const char *target)
{
	const uint8_t isid[6] = { 0x80, 7 };
	struct peer *p = peer_new(r, worker);
	char keys[512];
	int n = snprintf(keys, sizeof(keys),
			 "InitiatorName=" FIXTURE_INI
			 "%cSessionType=Discovery%c%s%s",
			 0, 0, target ? "TargetName=" : "",
			 target ? target : "");

	if (local) {
		struct tgt_conn *c = p->dm.user;

		snprintf(c->info.local, sizeof(c->info.local), "%s", local);
	}
	assert_int_equal(
		peer_login(p, keys, (size_t)n + (target != NULL), isid, 0), 0);
	return p;
}

/* The sessions of one initiator at two portals and two workers. */
/* [RFC 7143: 7.4.2.1 #1-4] */
static void test_discovery_is_reinstated_rfc7143_7_4_2(void **state)
{
	struct fixture *r = fixture_new(2, NULL);
	struct peer *a = discovery(r, 0, NULL, NULL);
	struct peer *b = discovery(r, 1, "192.0.2.2:3260", NULL);
	struct peer *named = discovery(r, 1, NULL, FIXTURE_TARGET);
	struct peer *normal = peer_session(r, 0, 1);

	(void)state;
	assert_false(a->gone || b->gone);
	discovery(r, 1, NULL, NULL);
	fixture_settle(r);
	assert_true(a->gone);
	assert_false(b->gone || named->gone || normal->gone);
	fixture_free(r);
}

/* §7.4.2.2: those of one target, whatever their address. */
/* [RFC 7143: 7.4.2.2 #1] */
static void test_named_discovery_is_reinstated_rfc7143_7_4_2_2(void **state)
{
	struct fixture *r = fixture_new(2, NULL);
	struct peer *a = discovery(r, 0, NULL, FIXTURE_TARGET);
	struct peer *open = discovery(r, 0, NULL, NULL);
	struct peer *b = discovery(r, 1, "192.0.2.2:3260", FIXTURE_TARGET);

	(void)state;
	fixture_settle(r);
	assert_true(a->gone);
	assert_false(open->gone || b->gone);
	fixture_free(r);
}

/* Two logins at once on different workers: exactly one succeeds. */
static void test_reinstate_race(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	struct fixture *r = fixture_new(2, NULL);
	struct peer *a = peer_new(r, 0), *b = peer_new(r, 1);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = 5,
				 .dsl = sizeof(keys) };

	(void)state;
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid_a, 6);
	peer_rx(a, &pdu, keys);
	peer_rx(b, &pdu, keys);
	fixture_settle(r);
	assert_true(a->gone);
	assert_false(b->gone);
	assert_true(b->enabled);
	fixture_free(r);
}

static void test_reinstate_connection_lost_meanwhile(void **state)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET;
	struct fixture *r = fixture_new(2, NULL);
	struct peer *b = peer_new(r, 1);
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .dsl = sizeof(keys) };

	(void)state;
	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	memcpy(pdu.login.isid, isid_a, 6);
	peer_rx(b, &pdu, keys);
	peer_cut(b, ERR_RESET);
	fixture_settle(r);
	assert_true(tgt_worker_idle(tgt_worker(r->tgt, 1)));
	fixture_free(r);
}

/* ---- the directory decides ---- */

#define NORMAL                     \
 "InitiatorName=" FIXTURE_INI "\0" \
 "SessionType=Normal\0"            \
 "TargetName=" FIXTURE_TARGET "\0"

static void test_login_other_portal_group_rfc7143_11_13_5(void **state)
{
	const struct tgt_portal_group_config other = { .tag = FIXTURE_TAG + 1 };
	const struct tgt_target_config target = { .name = FIXTURE_SECOND };
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct fixture *r = fixture_new(1, NULL);

	(void)state;
	assert_int_equal(tgt_portal_group_add(d, &other), 1);
	assert_int_equal(tgt_target_add(d, &target), 1);
	assert_int_equal(tgt_target_portal_group(d, 1, 1), 0);
	fixture_apply(r, d);
	assert_int_equal(KEYS(peer_new(r, 0), "InitiatorName=" FIXTURE_INI "\0"
					      "SessionType=Normal\0"
					      "TargetName=" FIXTURE_SECOND),
			 ISCSI_LOGIN_NOT_FOUND);
	fixture_free(r);
}

static void test_login_forbidden_rfc7143_11_13_5(void **state)
{
	const struct tgt_portal_group_config portals = {
		.tag = FIXTURE_TAG, .discovery_auth = TGT_AUTH_NONE
	};
	const struct tgt_target_config target = { .name = FIXTURE_TARGET,
						  .auth_group = TGT_AUTH_NONE };
	struct tgt_directory *d = tgt_directory_new();
	struct fixture *r = fixture_new(1, NULL);

	(void)state;
	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	assert_int_equal(tgt_target_add(d, &target), 0);
	assert_int_equal(tgt_target_portal_group(d, 0, 0), 0);
	fixture_apply(r, d);
	assert_int_equal(KEYS(peer_new(r, 0), NORMAL), ISCSI_LOGIN_NOT_FOUND);
	assert_int_equal(KEYS(peer_new(r, 0), "InitiatorName=" FIXTURE_INI "\0"
					      "SessionType=Discovery"),
			 ISCSI_LOGIN_FORBIDDEN);
	fixture_free(r);
}

/* A target that refuses an initiator answers every form of its name alike: a target with
 * strict names does not differ from one that does not exist. */
static void test_refused_names_do_not_show_a_target(void **state)
{
	static const char *const targets[] = { FIXTURE_TARGET, FIXTURE_SECOND,
					       "iqn.2026-01.org.example:none" };
	static const char *const initiators[] = { FIXTURE_INI,
						  FIXTURE_INI "_x" };
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct fixture *r = fixture_new(1, NULL);

	(void)state;
	d->targets[0]->cfg.auth_group = TGT_AUTH_NONE;
	assert_int_equal(tgt_target_add(d,
					&(struct tgt_target_config){
						.name = FIXTURE_SECOND,
						.auth_group = TGT_AUTH_NONE,
						.strict_names = true,
					}),
			 1);
	assert_int_equal(tgt_target_portal_group(d, 1, 0), 0);
	fixture_apply(r, d);
	for (unsigned i = 0; i < ARRAY_LEN(targets); i++)
		for (unsigned k = 0; k < ARRAY_LEN(initiators); k++) {
			char keys[512];
			int n = snprintf(keys, sizeof(keys),
					 "InitiatorName=%s%cTargetName=%s",
					 initiators[k], 0, targets[i]);

			assert_int_equal(peer_login(peer_new(r, 0), keys,
						    (size_t)n + 1, isid_a, 0),
					 ISCSI_LOGIN_NOT_FOUND);
		}
	fixture_free(r);
}

/* The wishes of a target apply to its logins, wherever TargetName is among the
 * keys. */
static void test_digests_and_names_of_a_target(void **state)
{
	const struct tgt_target_config strict = {
		.name = FIXTURE_SECOND,
		.prefer_digests = true,
		.strict_names = true,
	};
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0), *q = peer_new(r, 0);

	(void)state;
	assert_int_equal(tgt_target_add(d, &strict), 1);
	assert_int_equal(tgt_target_portal_group(d, 1, 0), 0);
	fixture_apply(r, d);
	assert_int_equal(KEYS(p, "InitiatorName=iqn.2026-01.org.example:a_b\0"
				 "HeaderDigest=None,CRC32C\0"
				 "TargetName=" FIXTURE_TARGET),
			 0);
	assert_false(p->params.header_digest);
	assert_int_equal(KEYS(q, "InitiatorName=" FIXTURE_INI "\0"
				 "HeaderDigest=None,CRC32C\0"
				 "TargetName=" FIXTURE_SECOND),
			 0);
	assert_true(q->params.header_digest);
	assert_int_equal(KEYS(peer_new(r, 0),
			      "InitiatorName=iqn.2026-01.org.example:a_b\0"
			      "TargetName=" FIXTURE_SECOND),
			 ISCSI_LOGIN_INITIATOR_ERROR);
	fixture_free(r);
}

/* A target that requires CHAP refuses a login that skips it, and one that began
 * before the directory required it. */
static void test_login_without_chap_rfc7143_6_3_2(void **state)
{
	const struct iscsi_chap_secret secret = { .name = "carol",
						  .secret = "secret of carol",
						  .secret_len = 15 };
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .cmdsn = 100,
				 .dsl = sizeof(NORMAL) };
	const struct tgt_portal_group_config portals = { .tag = FIXTURE_TAG };
	const struct tgt_target_config target = { .name = FIXTURE_TARGET,
						  .auth_group = 2 };
	struct tgt_directory *d = tgt_directory_new();
	struct fixture *r = fixture_new(1, NULL);
	struct peer *p = peer_new(r, 0);
	struct sent *s;

	(void)state;
	pdu.login.csg = 1;
	peer_rx(p, &pdu, NORMAL);
	assert_int_equal(
		peer_expect(p, ISCSI_LOGIN_RESPONSE)->pdu.login.status_class,
		0);
	assert_int_equal(tgt_auth_group_add(d), 2);
	assert_int_equal(tgt_auth_group_account(d, 2, &secret), 0);
	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	assert_int_equal(tgt_target_add(d, &target), 0);
	assert_int_equal(tgt_target_portal_group(d, 0, 0), 0);
	fixture_apply(r, d);
	pdu.dsl = 0;
	pdu.final = pdu.login.transit = true;
	pdu.login.nsg = 3;
	peer_rx(p, &pdu, NULL);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	assert_int_equal(s->pdu.login.status_class, 2);
	assert_int_equal(s->pdu.login.status_detail, 1);
	assert_int_equal(KEYS(peer_new(r, 0), NORMAL),
			 ISCSI_LOGIN_AUTH_FAILURE);
	fixture_free(r);
}

/* ---- names ---- */

static void test_target_add_names_rfc7143_4_2_7_2(void **state)
{
	static const char *const bad[] = { "", "iqn.", "disk", "iqn.2026 x",
					   "iqn.a\tb" };
	struct tgt_directory *d = fixture_directory(FIXTURE_TARGET);
	struct tgt_target_config target = { .auth_group = TGT_AUTH_ANY };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		target.name = bad[i];
		assert_int_equal(tgt_target_add(d, &target), ERR_FORMAT);
	}
	target.name = FIXTURE_TARGET;
	assert_int_equal(tgt_target_add(d, &target), ERR_BUSY);
	target.name = "eui.02004567A425678D";
	assert_int_equal(tgt_target_add(d, &target), 1);
	tgt_directory_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_login_normal),
		cmocka_unit_test(test_login_agrees_to_so_much),
		cmocka_unit_test(test_login_unknown_target_rfc7143_11_13_5),
		cmocka_unit_test(test_login_no_target_name_rfc7143_6_3),
		cmocka_unit_test(test_tsih_is_not_zero_rfc7143_11_13_3),
		cmocka_unit_test(
			test_login_tsih_without_session_rfc7143_11_13_5),
		cmocka_unit_test(test_login_other_pdu_first_rfc7143_6_3),
		cmocka_unit_test(test_login_other_pdu_in_between_rfc7143_6_3),
		cmocka_unit_test(test_login_takes_too_long),
		cmocka_unit_test(test_accept_limit),
		cmocka_unit_test(test_logged_in_and_ended_are_reported),
		cmocka_unit_test(
			test_login_refused_for_want_of_room_rfc7143_11_13_5),
		cmocka_unit_test(test_discovery_session_has_a_lifetime),
		cmocka_unit_test(test_login_while_draining),
		cmocka_unit_test(test_connection_reinstatement_rfc7143_6_3_4),
		cmocka_unit_test(test_connection_of_another_transport),
		cmocka_unit_test(test_reinstate_same_worker_rfc7143_6_3_5),
		cmocka_unit_test(test_reinstate_other_worker_rfc7143_6_3_5),
		cmocka_unit_test(test_reinstate_waits_for_io_rfc7143_6_3_5),
		cmocka_unit_test(test_discovery_is_reinstated_rfc7143_7_4_2),
		cmocka_unit_test(
			test_named_discovery_is_reinstated_rfc7143_7_4_2_2),
		cmocka_unit_test(test_reinstate_race),
		cmocka_unit_test(test_reinstate_connection_lost_meanwhile),
		cmocka_unit_test(test_login_other_portal_group_rfc7143_11_13_5),
		cmocka_unit_test(test_login_forbidden_rfc7143_11_13_5),
		cmocka_unit_test(test_refused_names_do_not_show_a_target),
		cmocka_unit_test(test_digests_and_names_of_a_target),
		cmocka_unit_test(test_login_without_chap_rfc7143_6_3_2),
		cmocka_unit_test(test_target_add_names_rfc7143_4_2_7_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
