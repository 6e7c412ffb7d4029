/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_test.c: a million random commands of three initiators on three workers,
 * each held against a small model of a unit with reservations: written from the
 * clauses, by initiators where the device has lists, snapshots and messages.
 * The seed is printed; MODEL_SEED and MODEL_COMMANDS give others.
 */
#include "device/internal.h"
#include "trio.h"

#define COMMANDS 1000000u
#define KEYS	 4u /* few, so that initiators have the same one */

enum {
	NEWS_POWER_ON,
	NEWS_RESET,
	NEWS_PREEMPTED, /* RESERVATIONS PREEMPTED */
	NEWS_RELEASED,
	NEWS_REGISTRATIONS,
	NEWS_KINDS,
};

static const uint16_t news_asc[] = { 0x2900, 0x2903, 0x2a03, 0x2a04, 0x2a05 };

static struct model {
	bool registered[TRIO_N];
	uint64_t key[TRIO_N];
	unsigned type; /* 0: no reservation */
	int holder;    /* of types 1, 3, 5, 6 */
	int reserved;  /* by RESERVE; -1: nobody */
	uint32_t generation;
	unsigned news[TRIO_N];
} m;

struct result {
	int status;
	uint8_t key;
	uint16_t asc;
};

static const struct result good = { SCSI_GOOD, 0, 0 };
static const struct result conflict = { SCSI_RESERVATION_CONFLICT, 0, 0 };

static struct result check(uint8_t key, uint16_t asc)
{
	return (struct result){ SCSI_CHECK_CONDITION, key, asc };
}

static unsigned seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* ---- the model: SPC-4 §5.13 in words of initiators ---- */

static bool registrants_only(void)
{
	return m.type == 5 || m.type == 6;
}

static bool all_registrants(void)
{
	return m.type == 7 || m.type == 8;
}

static bool exclusive_access(void)
{
	return m.type == 3 || m.type == 6 || m.type == 8;
}

static bool holds(unsigned who)
{
	if (!m.type)
		return false;
	return all_registrants() ? m.registered[who] : m.holder == (int)who;
}

static void news_for_registrants(unsigned but, unsigned what)
{
	for (unsigned i = 0; i < TRIO_N; i++)
		if (i != but && m.registered[i])
			m.news[i] |= 1u << what;
}

static unsigned nregistered(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TRIO_N; i++)
		n += m.registered[i];
	return n;
}

static struct result model_access(unsigned who, bool write)
{
	if (m.reserved >= 0)
		return m.reserved == (int)who ? good : conflict;
	if (!m.type || holds(who) || (registrants_only() && m.registered[who]))
		return good;
	return write || exclusive_access() ? conflict : good;
}

static struct result model_old_kind(unsigned who)
{
	bool part = holds(who) || (registrants_only() && m.registered[who]);

	return m.type && part ? good : conflict;
}

static struct result model_reserve_6(unsigned who)
{
	if (nregistered())
		return model_old_kind(who);
	if (m.reserved >= 0 && m.reserved != (int)who)
		return conflict;
	m.reserved = (int)who;
	return good;
}

static struct result model_release_6(unsigned who)
{
	if (nregistered())
		return model_old_kind(who);
	if (m.reserved == (int)who)
		m.reserved = -1;
	return good;
}

static void unregister(unsigned who)
{
	m.registered[who] = false;
	if (!m.type)
		return;
	if (all_registrants() ? nregistered() == 0 : m.holder == (int)who) {
		if (registrants_only())
			news_for_registrants(who, NEWS_RELEASED);
		m.type = 0;
	}
}

static struct result model_register(unsigned who, uint64_t key, uint64_t to,
				    bool ignore)
{
	if (!ignore && key != (m.registered[who] ? m.key[who] : 0))
		return conflict;
	if (!m.registered[who] && to == 0)
		return good;
	m.generation++;
	if (to == 0) {
		unregister(who);
	} else {
		m.registered[who] = true;
		m.key[who] = to;
	}
	return good;
}

static struct result model_reserve(unsigned who, unsigned type)
{
	if (m.type)
		return holds(who) && m.type == type ? good : conflict;
	m.type = type;
	m.holder = (int)who;
	return good;
}

static struct result model_release(unsigned who, unsigned type)
{
	if (!holds(who))
		return good;
	if (m.type != type)
		return check(SENSE_ILLEGAL_REQUEST, 0x2604);
	if (m.type >= 5)
		news_for_registrants(who, NEWS_RELEASED);
	m.type = 0;
	return good;
}

static struct result model_clear(unsigned who)
{
	news_for_registrants(who, NEWS_PREEMPTED);
	memset(m.registered, 0, sizeof(m.registered));
	m.type = 0;
	m.generation++;
	return good;
}

static void preempted(unsigned who, unsigned victim)
{
	m.registered[victim] = false;
	if (victim != who)
		m.news[victim] |= 1u << NEWS_REGISTRATIONS;
}

static struct result model_preempt(unsigned who, unsigned type, uint64_t key)
{
	bool takes = m.type &&
		     (all_registrants() ? key == 0 : m.key[m.holder] == key);
	unsigned was = m.type, n = 0;

	if (key == 0 && !(m.type && all_registrants()))
		return check(SENSE_ILLEGAL_REQUEST, 0x2600);
	for (unsigned i = 0; i < TRIO_N; i++) {
		bool hit = m.registered[i] &&
			   (key == 0 ? i != who : m.key[i] == key);

		if (!hit || (takes && i == who))
			continue;
		preempted(who, i);
		n++;
	}
	if (!takes && n == 0)
		return conflict;
	m.generation++;
	if (takes) {
		if (was != type)
			news_for_registrants(who, NEWS_RELEASED);
		m.type = type;
		m.holder = (int)who;
	} else if (all_registrants() && nregistered() == 0) {
		m.type = 0;
	}
	return good;
}

static struct result model_move(unsigned who, unsigned to, uint64_t key,
				bool unreg)
{
	if (!m.type)
		return check(SENSE_ILLEGAL_REQUEST, 0x2400);
	if (all_registrants() || m.holder != (int)who)
		return conflict;
	if (key == 0 || to == who)
		return check(SENSE_ILLEGAL_REQUEST, 0x2600);
	m.generation++;
	m.registered[to] = true;
	m.key[to] = key;
	m.holder = (int)to;
	if (unreg)
		m.registered[who] = false;
	return good;
}

struct pr_out {
	uint8_t action, type;
	uint64_t key, sa_key;
	unsigned to;
	bool unreg;
};

static struct result model_out(unsigned who, const struct pr_out *o)
{
	bool anyone = o->action == 0 || o->action == 6;

	if (m.reserved >= 0)
		return conflict;
	if (!anyone && (!m.registered[who] || m.key[who] != o->key))
		return conflict;
	switch (o->action) {
	case 0:
	case 6:
		return model_register(who, o->key, o->sa_key, o->action == 6);
	case 1:
		return model_reserve(who, o->type);
	case 2:
		return model_release(who, o->type);
	case 3:
		return model_clear(who);
	case 7:
		return model_move(who, o->to, o->sa_key, o->unreg);
	default:
		return model_preempt(who, o->type, o->sa_key);
	}
}

/* ---- the device ---- */

static int device_out(unsigned who, const struct pr_out *o)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, o->action, o->type };
	uint8_t list[24 + SCSI_TRANSPORTID_MAX] = { 0 };
	size_t len = 24, id;

	put_be64(list, o->key);
	put_be64(list + 8, o->sa_key);
	if (o->action == 7) {
		list[17] = o->unreg ? 0x02 : 0;
		put_be16(list + 18, 1);
		id = scsi_transportid_put(trio.i[o->to].name, list + 24);
		put_be32(list + 20, (uint32_t)id);
		len += id;
	}
	put_be32(cdb + 5, (uint32_t)len);
	return trio_run(who, cdb, list, (uint32_t)len, 0);
}

static void expect(unsigned who, int status, struct result want)
{
	const struct trio_ini *i = &trio.i[who];

	assert_int_equal(status, want.status);
	if (want.status != SCSI_CHECK_CONDITION)
		return;
	assert_int_equal(i->sense.key, want.key);
	assert_int_equal(i->sense.asc, want.asc);
}

/* An attention comes first, once. True: that was it. */
static bool expect_news(unsigned who, int status)
{
	unsigned what = 0;

	if (!m.news[who])
		return false;
	while (!(m.news[who] & 1u << what))
		what++;
	m.news[who] &= ~(1u << what);
	expect(who, status, check(SENSE_UNIT_ATTENTION, news_asc[what]));
	return true;
}

/* ---- what an initiator does ---- */

static void random_out(unsigned who)
{
	static const uint8_t types[] = { 1, 3, 5, 6, 7, 8 };
	static const uint8_t actions[] = { 0, 0, 0, 1, 1, 2, 2, 3,
					   4, 4, 5, 6, 6, 7, 7 };
	struct pr_out o = { .action = actions[rnd(sizeof(actions))],
			    .type = types[rnd(6)],
			    .key = rnd(KEYS),
			    .sa_key = rnd(KEYS),
			    .to = rnd(TRIO_N),
			    .unreg = rnd(2) };
	int status;

	if (rnd(4) && m.registered[who])
		o.key = m.key[who]; /* mostly the right one */
	if (rnd(2) && m.type)
		o.type = (uint8_t)m.type;
	if (o.action == 0 || o.action == 3 || o.action > 5)
		o.type = 0;
	status = device_out(who, &o);
	if (!expect_news(who, status))
		expect(who, status, model_out(who, &o));
}

static void random_access(unsigned who)
{
	static const uint8_t block[512];
	bool write = rnd(2);
	int status;

	if (write)
		status = trio_run(who,
				  (const uint8_t[16]){ SCSI_WRITE_10, [8] = 1 },
				  block, 512, 0);
	else
		status = RUN(who, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
	if (!expect_news(who, status))
		expect(who, status, model_access(who, write));
}

static void random_old_kind(unsigned who)
{
	static const uint8_t ops[] = { 0x16, 0x56, 0x17, 0x57, 0x17, 0x57 };
	unsigned which = rnd(6);
	int status = RUN(who, 0, ops[which]);

	if (!expect_news(who, status))
		expect(who, status,
		       which < 2 ? model_reserve_6(who) : model_release_6(who));
}

static void random_tur(unsigned who)
{
	int status = tur(who);

	if (!expect_news(who, status))
		expect(who, status,
		       m.reserved >= 0 && m.reserved != (int)who ? conflict
								 : good);
}

static void compare_keys(unsigned who)
{
	const uint8_t *p = trio.i[who].in;
	unsigned count[KEYS] = { 0 };

	assert_int_equal(get_be32(p), m.generation);
	assert_int_equal(get_be32(p + 4), 8 * nregistered());
	for (unsigned i = 0; i < nregistered(); i++)
		count[get_be64(p + 8 + 8u * i) % KEYS]++;
	for (unsigned i = 0; i < TRIO_N; i++)
		if (m.registered[i])
			assert_true(count[m.key[i]]-- > 0);
}

static void compare_reservation(unsigned who)
{
	const uint8_t *p = trio.i[who].in;

	assert_int_equal(get_be32(p), m.generation);
	assert_int_equal(get_be32(p + 4), m.type ? 16 : 0);
	if (!m.type)
		return;
	assert_int_equal(p[21], m.type);
	assert_true(get_be64(p + 8) ==
		    (all_registrants() ? 0 : m.key[m.holder]));
}

static void random_in(unsigned who)
{
	unsigned sa = rnd(2);
	int status = RUN(who, 256, SCSI_PERSISTENT_RESERVE_IN, (uint8_t)sa, 0,
			 0, 0, 0, 0, 1, 0);

	if (expect_news(who, status))
		return;
	expect(who, status, m.reserved >= 0 ? conflict : good);
	if (status != SCSI_GOOD)
		return;
	if (sa == 0)
		compare_keys(who);
	else
		compare_reservation(who);
}

static void relogin(unsigned who)
{
	trio_logout(who);
	if (m.reserved == (int)who)
		m.reserved = -1;
	trio_login(who);
	m.news[who] = 1u << NEWS_POWER_ON;
}

static void reset_done(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
}

static void reset_unit(unsigned who)
{
	assert_int_equal(dev_lu_reset_state(dev_lu_get(trio.server, 0), who,
					    reset_done, NULL),
			 0);
	trio_settle();
	m.reserved = -1;
	for (unsigned i = 0; i < TRIO_N; i++)
		m.news[i] |= 1u << NEWS_RESET;
}

/* The power fails: what was registered without APTPL is gone. */
static void power_off(void)
{
	trio_restart();
	memset(&m, 0, sizeof(m));
	m.reserved = -1;
}

static void random_step(void)
{
	unsigned who = rnd(TRIO_N), what = rnd(1000);

	if (what < 400)
		random_out(who);
	else if (what < 700)
		random_access(who);
	else if (what < 780)
		random_tur(who);
	else if (what < 860)
		random_old_kind(who);
	else if (what < 990)
		random_in(who);
	else if (what < 996)
		relogin(who);
	else if (what < 999)
		reset_unit(who);
	else
		power_off();
}

static unsigned from_environment(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : otherwise;
}

static void test_a_million_commands(void **state)
{
	unsigned n = from_environment("MODEL_COMMANDS", COMMANDS);

	(void)state;
	seed = from_environment("MODEL_SEED", 20261121);
	print_message("%u commands, seed %u\n", n, seed);
	memset(&m, 0, sizeof(m));
	m.reserved = -1;
	for (unsigned i = 0; i < n; i++)
		random_step();
}

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_a_million_commands) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
