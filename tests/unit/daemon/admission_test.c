/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admission_test.c: shares of connections, sessions and logins, on a virtual
 * clock: each limit by itself, then an honest initiator among hostile mixes.
 */
#include "daemon/serve/admission.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "daemon/config/options.h"

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage sa = { 0 };
	void *p = &sa;

	if (strchr(text, ':')) {
		sa.ss_family = AF_INET6;
		inet_pton(AF_INET6, text,
			  &((struct sockaddr_in6 *)p)->sin6_addr);
	} else {
		sa.ss_family = AF_INET;
		inet_pton(AF_INET, text, &((struct sockaddr_in *)p)->sin_addr);
	}
	return sa;
}

/* A small gate; "always" and "never" are random numbers of early drop. */
struct fixture {
	struct admission a;
	xtime now;
	struct admission_entry e[64], *victim;
	unsigned n;
};

#define NEVER  99u
#define ALWAYS 0u

static void default_limits(struct admission_limits *l)
{
	struct options o;

	options_default(&o);
	*l = o.limits;
}

static void setup(struct fixture *f)
{
	struct admission_limits l;

	memset(f, 0, sizeof(*f));
	default_limits(&l);
	l.sessions = 6;
	l.source_sessions = 3;
	l.start = 4;
	l.rate = 50;
	l.full = 8;
	l.source_startups = 3;
	l.discovery = 4;
	l.source_discovery = 2;
	l.per_second = 0;
	l.remembered = 8;
	admission_init(&f->a, &l, 1);
	f->now = XTIME_S;
}

static void teardown(struct fixture *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->e[i].source)
			admission_leave(&f->a, &f->e[i], f->now);
	assert_int_equal(f->a.counts.starting, 0);
	assert_int_equal(f->a.counts.discovery, 0);
	assert_int_equal(f->a.counts.sessions, 0);
	admission_fini(&f->a);
	assert_int_equal(f->a.counts.sources, 0);
	assert_int_equal(f->a.counts.penalized, 0);
}

static enum admission_verdict arrive(struct fixture *f, const char *from,
				     uint32_t random)
{
	const struct sockaddr_storage sa = address(from);

	return admission_arrive(&f->a, &f->e[f->n++], &sa, f->now, random,
				&f->victim);
}

static struct admission_entry *add(struct fixture *f, const char *from,
				   uint32_t random)
{
	assert_int_equal(arrive(f, from, random), ADMISSION_OK);
	return &f->e[f->n - 1];
}

static struct admission_entry *login(struct fixture *f, const char *from)
{
	struct admission_entry *e = add(f, from, NEVER);

	assert_int_equal(admission_login(&f->a, e, false, false, f->now,
					 &f->victim),
			 ADMISSION_OK);
	return e;
}

static struct admission_entry *discover(struct fixture *f, const char *from,
					bool proven)
{
	struct admission_entry *e = add(f, from, NEVER);

	assert_int_equal(admission_login(&f->a, e, true, proven, f->now,
					 &f->victim),
			 ADMISSION_OK);
	return e;
}

static void test_share_of_startups_drops_own_oldest(void **state)
{
	struct fixture f;
	struct admission_entry *other, *first;

	(void)state;
	setup(&f);
	other = add(&f, "192.0.2.9", NEVER);
	first = add(&f, "192.0.2.1", NEVER);
	add(&f, "192.0.2.1", NEVER);
	add(&f, "192.0.2.1", NEVER);
	assert_null(f.victim);
	add(&f, "192.0.2.1", NEVER);
	assert_ptr_equal(f.victim, first);
	assert_int_equal(first->state, ADMISSION_DROPPED);
	assert_int_equal(other->state, ADMISSION_STARTING);
	assert_int_equal(f.a.counts.starting, 4);
	/* it does not count any more, and leaves later */
	assert_true(admission_leave(&f.a, first, f.now));
	assert_int_equal(f.a.counts.starting, 4);
	teardown(&f);
}

static void test_early_drop_takes_from_the_address_with_most(void **state)
{
	struct fixture f;
	struct admission_entry *lone, *greedy;

	(void)state;
	setup(&f);
	lone = add(&f, "192.0.2.9", ALWAYS);
	greedy = add(&f, "192.0.2.1", ALWAYS);
	add(&f, "192.0.2.1", ALWAYS);
	add(&f, "192.0.2.2", ALWAYS);
	assert_null(f.victim); /* below start */
	add(&f, "192.0.2.3", ALWAYS);
	assert_ptr_equal(f.victim, greedy);
	add(&f, "192.0.2.4", ALWAYS);
	/* all have one: of the address that came most often lately */
	assert_ptr_equal(f.victim, &f.e[2]);
	admission_leave(&f.a, greedy, f.now);
	/* which is not taken again in place of others */
	assert_int_equal(arrive(&f, "192.0.2.1", ALWAYS), ADMISSION_CROWDED);
	assert_int_equal(lone->state, ADMISSION_STARTING);
	add(&f, "192.0.2.5", ALWAYS);
	assert_ptr_equal(f.victim, lone); /* all are equal: the oldest */
	teardown(&f);
}

/* An address that logs in again and again is not taken for a greedy one. */
static void test_logins_do_not_count_as_greed(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < 20; i++) {
		struct admission_entry *e = login(&f, "192.0.2.1");

		admission_leave(&f.a, e, f.now);
	}
	for (unsigned i = 0; i < 4; i++)
		add(&f,
		    (const char *[]){ "192.0.2.2", "192.0.2.3", "192.0.2.4",
				      "192.0.2.5" }[i],
		    NEVER);
	add(&f, "192.0.2.1", ALWAYS);
	assert_ptr_equal(f.victim, &f.e[20]); /* the oldest of equals */
	teardown(&f);
}

static void test_early_drop_grows_with_load(void **state)
{
	struct fixture f;
	char from[16];

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(from, sizeof(from), "192.0.2.%u", i);
		add(&f, from, NEVER);
		assert_null(f.victim);
	}
	add(&f, "192.0.2.77", NEVER); /* full: 100 % */
	assert_non_null(f.victim);
	assert_int_equal(f.a.counts.starting, 8);
	/* 50 % at start, 87 % one below full */
	admission_leave(&f.a, &f.e[8], f.now);
	admission_leave(&f.a, &f.e[7], f.now);
	assert_int_equal(f.a.counts.starting, 6);
	add(&f, "192.0.2.78", 74);
	assert_non_null(f.victim);
	add(&f, "192.0.2.79", 75);
	assert_null(f.victim);
	teardown(&f);
}

static void test_sessions_are_never_dropped(void **state)
{
	struct fixture f;
	struct admission_entry *e;

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < 3; i++)
		login(&f, "192.0.2.1");
	e = add(&f, "192.0.2.1", ALWAYS);
	assert_null(f.victim);
	assert_int_equal(admission_login(&f.a, e, false, true, f.now,
					 &f.victim),
			 ADMISSION_SHARE);
	assert_null(f.victim);
	admission_leave(&f.a, e, f.now);
	for (unsigned i = 0; i < 3; i++)
		login(&f, "192.0.2.2");
	e = add(&f, "192.0.2.3", ALWAYS);
	assert_int_equal(admission_login(&f.a, e, false, true, f.now,
					 &f.victim),
			 ADMISSION_FULL);
	admission_leave(&f.a, e, f.now);
	/* a session that ends makes room before its connection has left */
	admission_end(&f.a, &f.e[0]);
	login(&f, "192.0.2.3");
	assert_int_equal(f.a.counts.refused[ADMISSION_FULL], 1);
	assert_int_equal(f.a.counts.refused[ADMISSION_SHARE], 1);
	teardown(&f);
}

static void test_discovery_has_limits_of_its_own(void **state)
{
	struct fixture f;
	struct admission_entry *a, *b;

	(void)state;
	setup(&f);
	a = discover(&f, "192.0.2.1", false);
	discover(&f, "192.0.2.1", false);
	discover(&f, "192.0.2.1", false);
	assert_ptr_equal(f.victim, a); /* own share */
	b = discover(&f, "192.0.2.2", false);
	discover(&f, "192.0.2.3", false);
	assert_null(f.victim);
	discover(&f, "192.0.2.4", false);
	assert_ptr_equal(f.victim, &f.e[1]); /* of the one with two */
	assert_int_equal(b->state, ADMISSION_DISCOVERY);
	login(&f, "192.0.2.1"); /* sessions have theirs */
	teardown(&f);
}

static void test_proven_discovery_is_never_dropped(void **state)
{
	struct fixture f;
	struct admission_entry *e;

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < 4; i++)
		discover(&f, i < 2 ? "192.0.2.1" : "192.0.2.2", true);
	e = add(&f, "192.0.2.3", NEVER);
	assert_int_equal(admission_login(&f.a, e, true, true, f.now, &f.victim),
			 ADMISSION_FULL);
	assert_null(f.victim);
	teardown(&f);
}

static void test_login_of_a_dropped_one_is_refused(void **state)
{
	struct fixture f;
	struct admission_entry *e;

	(void)state;
	setup(&f);
	e = add(&f, "192.0.2.1", NEVER);
	assert_ptr_equal(admission_oldest(&f.a, f.now), e);
	assert_null(admission_oldest(&f.a, f.now));
	assert_int_equal(admission_login(&f.a, e, false, true, f.now,
					 &f.victim),
			 ADMISSION_FULL);
	assert_true(admission_leave(&f.a, e, f.now));
	teardown(&f);
}

static void test_rate_of_one_address(void **state)
{
	struct fixture f;
	unsigned n = 0;

	(void)state;
	setup(&f);
	f.a.limits.per_second = 2;
	while (arrive(&f, "192.0.2.1", NEVER) == ADMISSION_OK)
		n++;
	assert_int_equal(n, 2 * ADMISSION_BURST);
	assert_int_equal(arrive(&f, "192.0.2.2", NEVER), ADMISSION_OK);
	f.now += XTIME_S;
	assert_int_equal(arrive(&f, "192.0.2.1", NEVER), ADMISSION_OK);
	assert_int_equal(arrive(&f, "192.0.2.1", NEVER), ADMISSION_OK);
	assert_int_equal(arrive(&f, "192.0.2.1", NEVER), ADMISSION_TOO_FAST);
	teardown(&f);
}

/* An attempt at CHAP, of which the answer is right or wrong. Returns for how long it is
 * not checked or, if it is wrong, for how long the next ones are not. */
static xtime try_chap(struct fixture *f, const char *from, const char *account,
		      const char *initiator, bool right)
{
	const struct sockaddr_storage sa = address(from);
	struct admission_entry e = { .who = 0 };
	xtime wait;

	assert_int_equal(admission_arrive(&f->a, &e, &sa, f->now, NEVER,
					  &f->victim),
			 ADMISSION_OK);
	wait = admission_auth_begin(&f->a, &e, account, initiator, f->now);
	if (!wait && right)
		assert_int_equal(admission_login(&f->a, &e, false, true, f->now,
						 &f->victim),
				 ADMISSION_OK);
	else if (!wait)
		wait = admission_auth_failed(&f->a, &e, f->now);
	admission_leave(&f->a, &e, f->now);
	return wait;
}

static xtime fail_chap(struct fixture *f, const char *from)
{
	return try_chap(f, from, "joe", "iqn.a", false);
}

static void test_penalty_grows_and_ends(void **state)
{
	static const xtime wanted[] = { 0, 0, 1, 2, 4, 8, 16, 32, 60, 60 };
	struct fixture f;

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		xtime delay = fail_chap(&f, "192.0.2.1");

		assert_true(delay == wanted[i] * XTIME_S);
		if (delay) {
			/* not checked, right or wrong, and not counted */
			f.now += delay - 1;
			assert_true(fail_chap(&f, "192.0.2.1") == 1);
			assert_true(try_chap(&f, "192.0.2.1", "joe", "iqn.a",
					     true) == 1);
			f.now += 1;
		}
		assert_true(fail_chap(&f, "192.0.2.2") == (i < 2 ? 0 : delay));
		f.now += delay;
	}
	assert_int_equal(f.a.counts.penalized, 2);
	assert_int_equal(f.a.counts.refused[ADMISSION_PENALTY], 16);
	/* a success is a new start */
	assert_true(try_chap(&f, "192.0.2.1", "joe", "iqn.a", true) == 0);
	assert_int_equal(f.a.counts.penalized, 1);
	assert_true(fail_chap(&f, "192.0.2.1") == 0);
	teardown(&f);
}

/* Neither the address nor the account is refused, only the pair at the address. */
static void test_a_wrong_secret_keeps_no_other_out(void **state)
{
	static const struct {
		const char *from, *account, *initiator;
		bool waits;
	} rows[] = {
		{ "192.0.2.1", "joe", "iqn.a", true },
		{ "192.0.2.1", "joe", "iqn.b", false },
		{ "192.0.2.1", "ann", "iqn.a", false },
		{ "192.0.2.1", "joeiqn.a", "", false },
		{ "192.0.2.2", "joe", "iqn.a", false },
	};
	struct fixture f;

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < 10; i++)
		f.now += fail_chap(&f, "192.0.2.1");
	f.now -= 30 * XTIME_S;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(try_chap(&f, rows[i].from, rows[i].account,
					  rows[i].initiator, true),
				 rows[i].waits ? 30 * XTIME_S : 0);
	/* the successes of others are none of the pair */
	assert_int_equal(fail_chap(&f, "192.0.2.1"), 30 * XTIME_S);
	f.now += 600 * XTIME_S;
	assert_int_equal(fail_chap(&f, "192.0.2.1"), 0); /* forgotten */
	teardown(&f);
}

/* An address that changes its names, and has an account of its own, gets no more answers
 * than ADMISSION_PAIRS + 1 pairs do. */
static void test_brute_force_of_an_address_is_bounded(void **state)
{
	const unsigned each = ADMISSION_FREE + 6 + 600 / 60;
	unsigned checked = 0;
	struct fixture f;
	char name[32];

	(void)state;
	setup(&f);
	for (unsigned i = 0; i < 60000; i++) {
		uint64_t before = f.a.counts.auth_failures;

		snprintf(name, sizeof(name), "iqn.%u", i % 3 ? i : i % 20);
		(void)try_chap(&f, "192.0.2.1", "joe", name, false);
		checked += f.a.counts.auth_failures != before;
		(void)try_chap(&f, "192.0.2.1", "own", "iqn.own", true);
		f.now += 10 * XTIME_MS;
	}
	assert_in_range(checked, 1, (ADMISSION_PAIRS + 1) * each);
	assert_int_equal(f.a.counts.sources, 1);
	/* other addresses do not notice */
	assert_int_equal(try_chap(&f, "192.0.2.2", "joe", "iqn.1", true), 0);
	teardown(&f);
}

/* A neighbour who fails with ever new names keeps no pair out that has succeeded; its own
 * failures count as before, and successes of others do not end its penalty. */
static void test_a_flood_of_names_keeps_no_proven_pair_out(void **state)
{
	struct fixture f;
	char name[32];

	(void)state;
	setup(&f);
	assert_int_equal(try_chap(&f, "192.0.2.1", "ann", "iqn.a", true), 0);
	for (unsigned i = 0; i < 6000; i++) {
		snprintf(name, sizeof(name), "iqn.%u", i);
		(void)try_chap(&f, "192.0.2.1", "joe", name, false);
		f.now += 100 * XTIME_MS;
		if (i % 100 == 0)
			assert_int_equal(try_chap(&f, "192.0.2.1", "ann",
						  "iqn.a", true),
					 0);
	}
	for (unsigned i = 0; i < 10; i++)
		f.now += try_chap(&f, "192.0.2.1", "ann", "iqn.a", false);
	f.now -= 30 * XTIME_S;
	for (unsigned i = 0; i < 2 * ADMISSION_PROVEN; i++) {
		snprintf(name, sizeof(name), "iqn.own%u", i);
		(void)try_chap(&f, "192.0.2.1", "own", name, true);
	}
	assert_int_equal(try_chap(&f, "192.0.2.1", "ann", "iqn.a", true),
			 30 * XTIME_S);
	teardown(&f);
}

static void test_a_login_without_proof_forgives_nothing(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f);
	fail_chap(&f, "192.0.2.1");
	fail_chap(&f, "192.0.2.1");
	discover(&f, "192.0.2.1", false);
	assert_true(fail_chap(&f, "192.0.2.1") == XTIME_S);
	teardown(&f);
}

static void test_blocks_of_addresses(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned v4, v6;
		bool same;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", 32, 64, true },
		{ "192.0.2.1", "192.0.2.2", 32, 64, false },
		{ "192.0.2.1", "192.0.2.200", 24, 64, true },
		{ "192.0.2.1", "192.0.3.1", 24, 64, false },
		{ "192.0.2.127", "192.0.2.128", 25, 64, false },
		{ "192.0.2.1", "10.0.0.1", 0, 64, true },
		{ "2001:db8::1", "2001:db8::ffff:1", 32, 64, true },
		{ "2001:db8::1", "2001:db8:0:1::1", 32, 64, false },
		{ "2001:db8::1", "2001:db8:0:1::1", 32, 48, true },
		{ "2001:db8::1", "2001:db8::2", 32, 128, false },
		{ "::ffff:192.0.2.1", "192.0.2.1", 32, 64, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture f;

		setup(&f);
		f.a.limits.v4_bits = rows[i].v4;
		f.a.limits.v6_bits = rows[i].v6;
		assert_int_equal(add(&f, rows[i].a, NEVER)->source ==
					 add(&f, rows[i].b, NEVER)->source,
				 rows[i].same);
		teardown(&f);
	}
}

static void test_addresses_are_forgotten(void **state)
{
	struct fixture f;
	char from[16];

	(void)state;
	setup(&f);
	f.a.limits.per_second = 1;
	for (unsigned i = 0; i < 40; i++) {
		snprintf(from, sizeof(from), "192.0.2.%u", i);
		admission_leave(&f.a, add(&f, from, NEVER), f.now);
		if (i == 3)
			fail_chap(&f, from);
	}
	assert_int_equal(f.a.counts.sources, 8); /* remembered */
	assert_int_equal(f.a.counts.penalized,
			 1); /* the last to be forgotten */
	f.now += 10 * XTIME_S;
	admission_age(&f.a, f.now);
	assert_int_equal(f.a.counts.sources, 1);
	f.now += 3600 * XTIME_S;
	admission_age(&f.a, f.now);
	assert_int_equal(f.a.counts.sources, 0);
	assert_int_equal(f.a.counts.penalized, 0);
	teardown(&f);
}

static void test_limits_fit_descriptors(void **state)
{
	struct admission_limits l;

	(void)state;
	default_limits(&l);
	assert_false(admission_limits_fit(&l, 4096));
	for (unsigned n = 0; n < 2000; n++) {
		default_limits(&l);
		admission_limits_fit(&l, n);
		assert_true(l.sessions >= 1 && l.full >= 1 && l.discovery >= 1);
		assert_true(l.start >= 1 && l.start <= l.full);
		assert_true(l.source_startups >= 1 && l.source_discovery >= 1);
		if (n >= 8)
			assert_true(l.sessions + l.full + l.discovery <= n);
	}
}

/* ---- hostile mixes ---- */

/*
 * A tick is 10 ms. Connections end by themselves after 15 s without login (or
 * never: slow bytes), discovery sessions after 60 s. The honest initiator
 * needs LOGIN_TICKS from arrival to the end of its login, and tries again when
 * it is refused or dropped; it must be in by BOUND.
 */
#define TICK	    (10 * XTIME_MS)
#define LOGIN_TICKS 10
#define BOUND	    200 /* two seconds */
#define WORLD	    8192

struct world {
	struct admission a;
	xtime now;
	uint64_t random;
	struct admission_entry e[WORLD];
	xtime born[WORLD];
	unsigned next, most;
};

struct hostile {
	const char *name;
	unsigned addresses, per_tick; /* new connections each tick */
	enum {
		SILENT,
		DISCOVER,
		CHAP_FAILS,
		CLOSES,
		LOGS_IN
	} what;
};

static const struct hostile hostiles[] = {
	{ "one address, silent", 1, 50, SILENT },
	{ "two addresses, half-open", 2, 20, SILENT },
	{ "many addresses, silent", 200, 50, SILENT },
	{ "one address, discovery", 1, 20, DISCOVER },
	{ "many addresses, discovery", 250, 20, DISCOVER },
	{ "failed CHAP", 20, 20, CHAP_FAILS },
	{ "connect and close", 250, 100, CLOSES },
	{ "sessions of two addresses", 2, 20, LOGS_IN },
};

static uint32_t draw(struct world *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->random >> 33);
}

static void leave(struct world *w, struct admission_entry *e)
{
	if (e && e->source)
		admission_leave(&w->a, e, w->now);
}

static void hostile_one(struct world *w, const struct hostile *h)
{
	struct admission_entry *e = &w->e[1 + w->next % (WORLD - 1)], *victim;
	struct sockaddr_storage sa;
	char from[20];

	snprintf(from, sizeof(from), "127.0.1.%u", draw(w) % h->addresses);
	sa = address(from);
	leave(w, e); /* the place of one that is long gone */
	memset(e, 0, sizeof(*e));
	w->born[1 + w->next++ % (WORLD - 1)] = w->now;
	if (admission_arrive(&w->a, e, &sa, w->now, draw(w), &victim))
		return;
	leave(w, victim);
	victim = NULL;
	if (h->what == CHAP_FAILS &&
	    !admission_auth_begin(&w->a, e, "joe", "iqn.a", w->now))
		admission_auth_failed(&w->a, e, w->now);
	if (h->what == CHAP_FAILS || h->what == CLOSES ||
	    ((h->what == DISCOVER || h->what == LOGS_IN) &&
	     admission_login(&w->a, e, h->what == DISCOVER, false, w->now,
			     &victim)))
		leave(w, e);
	leave(w, victim);
}

static void expire(struct world *w)
{
	for (unsigned i = 1; i < WORLD; i++) {
		const struct admission_entry *e = &w->e[i];
		xtime age = w->now - w->born[i];

		if ((e->state == ADMISSION_STARTING && age > 15 * XTIME_S) ||
		    (e->state == ADMISSION_DISCOVERY && age > 60 * XTIME_S))
			leave(w, &w->e[i]);
	}
	w->most = MAX(w->most, w->a.counts.starting + w->a.counts.discovery +
				       w->a.counts.sessions);
}

static void hostile_tick(struct world *w, const struct hostile *h, unsigned n)
{
	w->now += TICK;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < h[i].per_tick; k++)
			hostile_one(w, &h[i]);
	expire(w);
}

/* Ticks until the honest initiator is in. */
static unsigned honest_login(struct world *w, const struct hostile *h,
			     unsigned n)
{
	const struct sockaddr_storage sa = address("127.0.0.9");
	struct admission_entry *e = &w->e[0], *victim;
	unsigned since = 0;

	memset(e, 0, sizeof(*e));
	for (unsigned tick = 0; tick < 10 * BOUND; tick++) {
		if (e->state == ADMISSION_DROPPED)
			leave(w, e);
		if (!e->source && !admission_arrive(&w->a, e, &sa, w->now,
						    draw(w), &victim)) {
			since = tick;
			leave(w, victim);
		}
		if (e->source && tick - since == LOGIN_TICKS) {
			if (!admission_login(&w->a, e, false, true, w->now,
					     &victim))
				return tick;
			leave(w, e);
		}
		hostile_tick(w, h, n);
	}
	return 10 * BOUND;
}

static void siege(const struct hostile *h, unsigned n, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	struct admission_limits l;
	unsigned ticks;

	assert_non_null(w);
	default_limits(&l);
	admission_init(&w->a, &l, seed);
	w->random = seed;
	w->now = XTIME_S;
	for (unsigned i = 0; i < 1500; i++) /* all is taken when it comes */
		hostile_tick(w, h, n);
	ticks = honest_login(w, h, n);
	if (ticks > BOUND)
		print_message("%s: %u ticks\n", h->name, ticks);
	assert_true(ticks <= BOUND);
	assert_true(w->most <= l.sessions + l.full + l.discovery);
	assert_true(w->a.counts.sources <= l.remembered + w->most);
	for (unsigned i = 0; i < WORLD; i++)
		leave(w, &w->e[i]);
	admission_age(&w->a, w->now + 3600 * XTIME_S);
	assert_int_equal(w->a.counts.sources, 0); /* all is given back */
	admission_fini(&w->a);
	free(w);
}

static void test_honest_among_hostile(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hostiles); i++)
		siege(&hostiles[i], 1, 1 + i);
	for (uint64_t seed = 1; seed <= 3; seed++)
		siege(hostiles, ARRAY_LEN(hostiles), seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_of_startups_drops_own_oldest),
		cmocka_unit_test(
			test_early_drop_takes_from_the_address_with_most),
		cmocka_unit_test(test_logins_do_not_count_as_greed),
		cmocka_unit_test(test_early_drop_grows_with_load),
		cmocka_unit_test(test_sessions_are_never_dropped),
		cmocka_unit_test(test_discovery_has_limits_of_its_own),
		cmocka_unit_test(test_proven_discovery_is_never_dropped),
		cmocka_unit_test(test_login_of_a_dropped_one_is_refused),
		cmocka_unit_test(test_rate_of_one_address),
		cmocka_unit_test(test_penalty_grows_and_ends),
		cmocka_unit_test(test_a_wrong_secret_keeps_no_other_out),
		cmocka_unit_test(test_brute_force_of_an_address_is_bounded),
		cmocka_unit_test(
			test_a_flood_of_names_keeps_no_proven_pair_out),
		cmocka_unit_test(test_a_login_without_proof_forgives_nothing),
		cmocka_unit_test(test_blocks_of_addresses),
		cmocka_unit_test(test_addresses_are_forgotten),
		cmocka_unit_test(test_limits_fit_descriptors),
		cmocka_unit_test(test_honest_among_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
