/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * churn_test.c: random directories come into force on three workers while sessions
 * of four initiators to three targets send commands. A model says what each
 * session may see. A session that no change concerns notices nothing; other
 * sessions have what the last directory says when it has settled. CHURN_SEED and
 * CHURN_ROUNDS change the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "target/internal.h"

#define OURS	   "iqn.2026-01.org.example:"
#define INITIATORS 4u
#define TARGETS	   3u
#define UNITS	   4u
#define LUNS	   6u
#define WORKERS	   3u

/* What an initiator may see of a target. */
struct view {
	bool permitted;
	int units[LUNS]; /* by LUN; -1: none */
};

struct model {
	struct view views[TARGETS][INITIATORS];
};

struct client {
	struct peer *p; /* NULL: not logged in */
	unsigned worker;
	bool refused; /* a directory did not permit it since its login */
	bool touched; /* its view changed since the last check */
};

struct churn {
	struct fixture *r;
	struct dev_lu *units[UNITS];
	struct model model; /* of the newest directory */
	struct client clients[TARGETS][INITIATORS];
	uint64_t seed;
	xtime now;
	unsigned applied, done, settled, kept, changed, ended;
};

static unsigned roll(struct churn *c, unsigned n)
{
	c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(c->seed >> 33) % n;
}

/* ---- random directories ---- */

static struct dev_map *random_map(struct churn *c, int luns[LUNS])
{
	struct dev_map_entry entries[UNITS] = { 0 };
	struct dev_map *m;
	unsigned n = 0;

	for (unsigned i = 0; i < LUNS; i++)
		luns[i] = -1;
	if (roll(c, 6) == 0) { /* every unit, by its number */
		for (int i = 0; i < (int)UNITS; i++)
			luns[i] = i;
		return NULL;
	}
	for (unsigned u = 0; u < UNITS; u++) {
		unsigned lun = roll(c, 8) ? u : roll(c, LUNS);

		if (luns[lun] >= 0 || roll(c, 5) == 0)
			continue;
		luns[lun] = (int)u;
		entries[n++] = (struct dev_map_entry){ .lun = (uint16_t)lun,
						       .lu = c->units[u] };
	}
	assert_int_equal(dev_map_new(c->r->server, entries, n, &m), 0);
	return m;
}

static void name_initiator(char name[64], unsigned i)
{
	snprintf(name, 64, OURS "host%u", i);
}

static void name_target(char name[64], unsigned t)
{
	snprintf(name, 64, OURS "disk%u", t);
}

/* An auth group that admits some initiators. */
static unsigned add_auth(struct churn *c, struct tgt_directory *d,
			 struct view views[INITIATORS])
{
	const int g = tgt_auth_group_add(d);
	char name[64];

	if (roll(c, 3))
		return TGT_AUTH_ANY;
	/* without a pattern the group would admit all */
	assert_int_equal(tgt_auth_group_initiator(d, (unsigned)g, "eui.*"), 0);
	for (unsigned i = 0; i < INITIATORS; i++) {
		name_initiator(name, i);
		views[i].permitted = roll(c, 3);
		if (views[i].permitted)
			assert_int_equal(
				tgt_auth_group_initiator(d, (unsigned)g, name),
				0);
	}
	return (unsigned)g;
}

static void add_target(struct churn *c, struct tgt_directory *d,
		       struct model *m, unsigned t)
{
	struct tgt_target_config cfg = { .prefer_digests = roll(c, 2) };
	int luns[LUNS], index;
	char name[64];

	for (unsigned i = 0; i < INITIATORS; i++)
		m->views[t][i].permitted = true;
	cfg.auth_group = add_auth(c, d, m->views[t]);
	cfg.map = random_map(c, luns);
	for (unsigned i = 0; i < INITIATORS; i++)
		memcpy(m->views[t][i].units, luns, sizeof(luns));
	name_target(name, t);
	cfg.name = name;
	index = tgt_target_add(d, &cfg);
	assert_true(index >= 0);
	dev_map_put(cfg.map);
	assert_int_equal(tgt_target_portal_group(d, (unsigned)index, 0), 0);
	for (unsigned i = 0; i < INITIATORS; i++) {
		const char *const one[] = { name };
		struct dev_map *map;

		if (roll(c, 3))
			continue;
		name_initiator(name, i);
		map = random_map(c, m->views[t][i].units);
		assert_int_equal(tgt_target_map(d, (unsigned)index,
						&(struct tgt_map_config){
							.initiators = one,
							.ninitiators = 1,
							.map = map }),
				 0);
		dev_map_put(map);
	}
}

/* Most targets stay as they are: keep has their bits, and the seed of each. */
static struct tgt_directory *make_directory(struct churn *c, struct model *m,
					    uint64_t seeds[TARGETS])
{
	const struct tgt_portal_group_config portals = { .tag = FIXTURE_TAG };
	struct tgt_directory *d = tgt_directory_new();
	const uint64_t own = c->seed;

	assert_non_null(d);
	memset(m, 0, sizeof(*m));
	assert_int_equal(tgt_portal_group_add(d, &portals), 0);
	for (unsigned t = 0; t < TARGETS; t++) {
		c->seed = seeds[t];
		if (roll(c, 5))
			add_target(c, d, m, t);
	}
	c->seed = own;
	return d;
}

/* ---- applying ---- */

static void count_done(void *arg)
{
	((struct churn *)arg)->done++;
}

static void count_settled(void *arg)
{
	((struct churn *)arg)->settled++;
}

static void note_change(struct churn *c, const struct model *m)
{
	for (unsigned t = 0; t < TARGETS; t++) {
		for (unsigned i = 0; i < INITIATORS; i++) {
			struct client *k = &c->clients[t][i];

			k->refused |= !m->views[t][i].permitted;
			k->touched |=
				memcmp(&m->views[t][i], &c->model.views[t][i],
				       sizeof(struct view)) != 0;
		}
	}
	c->model = *m;
}

static void apply(struct churn *c, uint64_t seeds[TARGETS])
{
	const struct tgt_apply_events events = { count_done, count_settled, c };
	struct tgt_directory *d;
	struct model m;
	int err;

	seeds[roll(c, TARGETS)] = roll(c, 1000000);
	d = make_directory(c, &m, seeds);
	err = tgt_apply(c->r->tgt, d, &events);
	if (err) {
		assert_int_equal(err, ERR_BUSY);
		assert_int_not_equal(c->applied, c->done);
		fixture_messages(c->r);
		assert_int_equal(tgt_apply(c->r->tgt, d, &events), 0);
	}
	c->applied++;
	note_change(c, &m);
}

/* ---- sessions ---- */

static void login(struct churn *c, unsigned t, unsigned i)
{
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 5 };
	struct client *k = &c->clients[t][i];
	char ini[64], tgt[64], keys[300];
	uint16_t status;
	int n;

	name_initiator(ini, i);
	name_target(tgt, t);
	n = snprintf(keys, sizeof(keys),
		     "InitiatorName=%s%cSessionType=Normal%cTargetName=%s", ini,
		     0, 0, tgt);
	k->worker = roll(c, WORKERS);
	k->p = peer_new(c->r, k->worker);
	status = peer_login(k->p, keys, (size_t)n + 1, isid, 0);
	k->refused = k->touched = false;
	assert_int_equal(!status, c->model.views[t][i].permitted);
	if (status)
		k->p = NULL;
	/* it has unit attentions */
	k->touched = true;
}

static void send(struct churn *c, struct peer *p, unsigned lun, bool read)
{
	struct iscsi_pdu pdu = { .op = ISCSI_SCSI_COMMAND,
				 .final = true,
				 .itt = p->itt++,
				 .lun = dev_lun_encode((uint16_t)lun),
				 .cmdsn = p->cmdsn++ };

	pdu.cmd.attr = ISCSI_ATTR_SIMPLE;
	if (read) {
		pdu.cmd.cdb[0] = 0x28;
		pdu.cmd.cdb[8] = 1;
		pdu.cmd.read = true;
		pdu.cmd.edtl = 512;
	}
	assert_int_equal(peer_rx(p, &pdu, NULL), 0);
	(void)c;
}

/* Takes what came. Statuses that only a session that a change concerns may see
 * fail the test for others. */
static void take_all(struct client *k, const struct view *v)
{
	struct peer *p = k->p;

	while (!peer_quiet(p)) {
		const struct sent *s = peer_next(p);

		if (k->touched || k->refused)
			continue;
		assert_int_equal(s->pdu.op, ISCSI_SCSI_RESPONSE);
		if (s->pdu.rsp.status != SCSI_GOOD) { /* an absent LUN */
			assert_int_equal(s->len, 20);
			assert_int_equal(s->data[2 + 12], 0x25);
		}
	}
	(void)v;
	if (p->gone || p->nsent < FIXTURE_SENT / 2)
		return;
	for (unsigned i = 0; i < p->nsent; i++)
		assert_true(!p->sent[i].task || p->sent[i].acknowledged);
	for (unsigned i = 0; i < p->nsent; i++)
		free(p->sent[i].data);
	p->nsent = p->next = 0;
}

static void talk(struct churn *c)
{
	for (unsigned n = 0; n < 6; n++) {
		struct client *k =
			&c->clients[roll(c, TARGETS)][roll(c, INITIATORS)];

		if (k->p && !k->p->terminated)
			send(c, k->p, roll(c, LUNS), roll(c, 2));
	}
	for (unsigned n = roll(c, 8); n; n--)
		fixture_message_one(c->r);
}

/* ---- checks ---- */

/* Time passes, so that sessions that were asked to log out are dropped. */
static void settle(struct churn *c)
{
	c->r->holding = false;
	for (unsigned n = 0; n < 3; n++) {
		fixture_settle(c->r);
		c->now += c->r->cfg.logout_time;
		for (unsigned w = 0; w < WORKERS; w++)
			tgt_worker_expire(tgt_worker(c->r->tgt, w), c->now);
	}
	fixture_settle(c->r);
	assert_int_equal(c->done, c->applied);
	assert_int_equal(c->settled, c->applied);
}

static void check_units(struct churn *c, const struct client *k,
			const struct view *v)
{
	const struct tgt_conn *conn = k->p->dm.user;

	for (unsigned lun = 0; lun < LUNS; lun++)
		assert_ptr_equal(dev_nexus_unit(conn->session->nexus,
						dev_lun_encode((uint16_t)lun)),
				 v->units[lun] < 0 ? NULL
						   : c->units[v->units[lun]]);
}

static void clear_attentions(struct churn *c, struct client *k)
{
	for (unsigned round = 0; round < 4; round++)
		for (unsigned lun = 0; lun < LUNS; lun++)
			send(c, k->p, lun, false);
	fixture_settle(c->r);
}

static void check_client(struct churn *c, struct client *k,
			 const struct view *v)
{
	if (!k->p)
		return;
	take_all(k, v);
	if (k->p->gone) {
		assert_true(k->refused);
		c->ended++;
		k->p = NULL;
		return;
	}
	assert_false(k->refused);
	assert_true(v->permitted);
	check_units(c, k, v);
	c->kept += !k->touched;
	c->changed += k->touched;
	k->touched = true;
	clear_attentions(c, k);
	take_all(k, v);
	k->touched = false;
}

static void check(struct churn *c)
{
	settle(c);
	for (unsigned t = 0; t < TARGETS; t++)
		for (unsigned i = 0; i < INITIATORS; i++)
			check_client(c, &c->clients[t][i],
				     &c->model.views[t][i]);
	for (unsigned t = 0; t < TARGETS; t++)
		for (unsigned i = 0; i < INITIATORS; i++)
			if (!c->clients[t][i].p)
				login(c, t, i);
}

static void open_units(struct churn *c)
{
	for (uint16_t u = 0; u < UNITS; u++) {
		const struct dev_lu_config cfg = { .lun = u };
		void *memory = calloc(64, 512);

		assert_non_null(memory);
		if (u) /* the fixture has unit 0 */
			assert_int_equal(dev_lu_add(c->r->server, &cfg,
						    bs_ram_new("ram", memory,
							       64 * 512, 512,
							       free, memory)),
					 0);
		else
			free(memory);
		c->units[u] = dev_lu_get(c->r->server, u);
	}
}

static unsigned from_environment(const char *name, unsigned value)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : value;
}

static void no_clocks(struct tgt_config *cfg)
{
	cfg->idle_time = XTIME_NEVER;
	cfg->login_time = 1000000 * XTIME_S;
	cfg->data_time = XTIME_NEVER;
}

static void test_random_directories(void **state)
{
	unsigned rounds = from_environment("CHURN_ROUNDS", 300);
	struct churn c = { .seed = from_environment("CHURN_SEED", 20261123),
			   .now = XTIME_S };
	uint64_t seeds[TARGETS] = { 1, 2, 3 };

	(void)state;
	c.r = fixture_new(WORKERS, no_clocks);
	open_units(&c);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned n = 1 + roll(&c, 3); n; n--) {
			c.r->holding = roll(&c, 2);
			talk(&c);
			apply(&c, seeds);
			talk(&c);
			if (roll(&c, 2))
				fixture_settle(c.r);
		}
		check(&c);
	}
	assert_true(c.kept > rounds && c.changed > rounds && c.ended > rounds);
	fixture_free(c.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
