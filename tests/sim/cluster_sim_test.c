/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster_sim_test.c: two to four gateways that share a unit, three initiators that
 * write, read, and change persistent reservations through any of them, and faults: lost
 * answers and notes, gateways that are stopped, cut off, killed and started again, and
 * administrators who move the unit.
 *
 * The oracle (cluster_device.h): only the gateway with the lock reaches the data; no
 * command sees an older state than an initiator has seen before it began; no write takes
 * place against a reservation that an initiator knows of; no write takes place after a
 * newer one was acknowledged; no stale read; each unit attention once; with all gateways
 * well again, the unit serves all initiators within a minute; and the owner changes only
 * for a fault or a wish.
 *
 * A seed determines a run. CLUSTER_SEED=N runs one with a log; CLUSTER_SEEDS=N and
 * CLUSTER_FIRST=N select how many and the first. Runs with CLUSTER_MISTAKE=N, a number of
 * enum sim_mistake, must fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "sim/cluster_device.h"
#include "sim/thin.h"

#define SEEDS	      (2000u / SIM_THIN)
#define MISTAKE_SEEDS 2000u
#define PEACE_SEEDS   100u
#define FAULTS	      (30 * XTIME_S) /* until then */
#define PATIENCE      (60 * XTIME_S)
#define GIVE_UP	      (4 * XTIME_S) /* of an initiator with a command */

struct initiator {
	struct sim *sim;
	unsigned number, gateway;
	struct command *now;
	enum command_kind kind; /* what it wants to do */
	unsigned block, victim, tries, sent;
	uint64_t written, value;
	bool satisfied; /* it wrote after the last fault */
};

struct sim {
	struct store_model model;
	struct oracle oracle;
	struct gateway gw[GATEWAYS];
	struct initiator ini[INITIATORS];
	unsigned ngateways, wishes, faults;
	uint64_t run;
	bool quiet; /* no more faults */
	bool still; /* no more faults and wishes */
	bool peace; /* none at all, but wishes without a fence */
};

static uint32_t number(const char *name, uint32_t otherwise)
{
	const char *s = getenv(name);

	return s ? (uint32_t)strtoul(s, NULL, 10) : otherwise;
}

static void say_event(const struct sim *s, const char *what, unsigned machine)
{
	if (s->oracle.log)
		printf("%10.3f %s gw-%c\n", (double)s->model.now / 1e9, what,
		       (char)('a' + machine));
}

/* ---- initiators ---- */

static void initiator_go(void *arg);

static void next_gateway(struct initiator *i)
{
	i->gateway = (i->gateway + 1) % i->sim->ngateways;
}

static void again(struct initiator *i, xtime in)
{
	struct store_model *m = &i->sim->model;

	i->now = NULL;
	sim_at(m, m->now + in + (xtime)sim_random(m, 100) * XTIME_MS, MACHINES,
	       initiator_go, i);
}

static void finished(struct initiator *i)
{
	i->tries = 0;
	again(i, 20 * XTIME_MS);
}

static void answered(void *arg)
{
	struct command *c = arg;
	struct initiator *i = c->arg;
	enum outcome outcome = (enum outcome)c->data.result;

	if (i->now != c)
		return;
	if (outcome == OUTCOME_NOT_READY) {
		next_gateway(i);
		again(i, 50 * XTIME_MS);
	} else if (outcome == OUTCOME_GOOD && c->kind == COMMAND_WRITE) {
		i->written = MAX(i->written, c->value);
		i->satisfied |= i->sim->quiet;
		finished(i);
	} else {
		i->satisfied |= outcome == OUTCOME_CONFLICT && i->sim->quiet;
		finished(i);
	}
}

static void answer(struct command *c, enum outcome outcome)
{
	struct initiator *i = c->arg;

	c->data.result = (int)outcome;
	sim_at(&i->sim->model, sim_delay(&i->sim->model), MACHINES, answered,
	       c);
}

static void give_up(void *arg)
{
	struct command *c = arg;
	struct initiator *i = c->arg;

	if (i->now != c)
		return;
	next_gateway(i);
	/* a change is not sent again */
	if (c->kind >= COMMAND_REGISTER)
		finished(i);
	else
		again(i, 0);
}

static void arrive(void *arg)
{
	struct command *c = arg;
	struct initiator *i = c->arg;

	gateway_receive(&i->sim->gw[c->nexus % GATEWAYS], c);
}

static void choose(struct initiator *i)
{
	struct store_model *m = &i->sim->model;
	uint32_t n = sim_random(m, 20);

	i->victim = sim_random(m, INITIATORS);
	i->block = i->number + INITIATORS * sim_random(m, 2);
	i->kind = COMMAND_READ;
	if (n < 10)
		i->kind = COMMAND_WRITE;
	else if (n >= 13)
		i->kind = (enum command_kind)(
			COMMAND_REGISTER +
			sim_random(m, COMMANDS - COMMAND_REGISTER));
	if (i->kind == COMMAND_UNREGISTER && sim_chance(m, 500))
		i->kind = COMMAND_REGISTER;
	if (i->kind == COMMAND_WRITE)
		i->value++;
	/* changes through any path */
	if (i->kind >= COMMAND_REGISTER)
		i->gateway = sim_random(m, i->sim->ngateways);
}

static void initiator_go(void *arg)
{
	struct initiator *i = arg;
	struct sim *s = i->sim;
	struct store_model *m = &s->model;
	struct command *c = sim_alloc(m, sizeof(*c));

	if (i->tries++ == 0)
		choose(i);
	*c = (struct command){ .kind = i->kind,
			       .initiator = i->number,
			       .number = ++i->sent,
			       .nexus = i->number * GATEWAYS + i->gateway,
			       .victim = i->victim,
			       .block = i->block,
			       .value = i->value,
			       .floor = s->oracle.seen,
			       .acked = s->oracle.acked[i->block],
			       .answer = answer,
			       .arg = i };
	i->now = c;
	sim_at(m, m->now + GIVE_UP, MACHINES, give_up, c);
	if (!m->machine[i->gateway].down)
		sim_at(m, sim_delay(m), i->gateway, arrive, c);
}

/* ---- faults ---- */

static void continues(void *arg)
{
	struct gateway *g = arg;

	if (g->model->machine[g->machine].stopped)
		sim_continue(g->model, g->machine);
}

static void connects(void *arg)
{
	struct gateway *g = arg;

	g->model->machine[g->machine].cut = false;
}

static struct sim *sim_of(struct gateway *g)
{
	return container_of(g - g->machine, struct sim, gw[0]);
}

static void starts(void *arg)
{
	struct gateway *g = arg;

	if (!g->unit)
		gateway_start(g, ++sim_of(g)->run);
}

static void wish_done(struct cluster_step *s)
{
	container_of(s, struct gateway, step)->step_busy = false;
}

static void left(struct cluster_step *s)
{
	struct gateway *g = container_of(s, struct gateway, step);

	g->leaving = true;
	g->drained = s->result == 0;
}

static void wish(struct sim *s, struct gateway *g, unsigned n)
{
	static const enum cluster_take hows[] = {
		[1] = CLUSTER_TAKE_FENCE,
		[2] = CLUSTER_TAKE,
		[3] = CLUSTER_TAKE_UNLESS_MOVED,
	};
	const struct gateway *to = &s->gw[sim_random(&s->model, s->ngateways)];

	if (!g->unit || g->step_busy || s->model.machine[g->machine].stopped)
		return;
	s->wishes++;
	g->step_busy = true;
	g->step = (struct cluster_step){ .done = wish_done };
	if (n == 0) {
		say_event(s, "leave", g->machine);
		g->step.done = left;
		cluster_unit_leave(g->unit, &g->step);
	} else if (n < 4) {
		say_event(s, "take", g->machine);
		cluster_unit_take(g->unit, hows[n], &g->step);
	} else if (n == 4 && !s->quiet) {
		say_event(s, "yield to none", g->machine);
		cluster_unit_yield(g->unit, NULL, &g->step);
	} else {
		say_event(s, "yield", g->machine);
		cluster_unit_yield(g->unit, to->id, &g->step);
	}
	gateway_turn(g);
}

static void fault(void *arg)
{
	struct sim *s = arg;
	struct store_model *m = &s->model;
	struct gateway *g = &s->gw[sim_random(m, s->ngateways)];
	struct sim_machine *w = &m->machine[g->machine];
	xtime until =
		m->now +
		(xtime)(1 + sim_random(m, sim_chance(m, 300) ? 15000 : 3000)) *
			XTIME_MS;
	uint32_t n = sim_random(m, 10);

	if (m->now > FAULTS || s->still)
		return;
	sim_at(m, m->now + (xtime)sim_random(m, 12000) * XTIME_MS, MACHINES,
	       fault, s);
	if (!g->unit)
		return;
	if (s->peace) {
		wish(s, g, 2 + 3 * sim_random(m, 2));
		return;
	}
	s->faults++;
	if (n < 2 && !w->stopped) {
		say_event(s, "stop", g->machine);
		w->stopped = true;
		sim_at(m, until, MACHINES, continues, g);
	} else if (n < 4 && !w->cut) {
		say_event(s, "cut", g->machine);
		w->cut = true;
		sim_at(m, until, MACHINES, connects, g);
	} else if (n < 6) {
		say_event(s, "crash", g->machine);
		gateway_crash(g);
		sim_at(m, until, MACHINES, starts, g);
	} else {
		wish(s, g, sim_random(m, 7));
	}
}

/* ---- a run ---- */

static void turn(void *arg, unsigned machine)
{
	struct sim *s = arg;
	struct gateway *g = &s->gw[machine];

	gateway_turn(g);
	if (g->leaving) {
		/* a process that has left ends, and is started again */
		g->leaving = false;
		if (g->drained)
			g->store->ops->close(g->store);
		gateway_crash(g);
		sim_at(&s->model, s->model.now + XTIME_S, MACHINES, starts, g);
	}
}

static void changed(void *arg)
{
	struct sim *s = arg;

	oracle_changed(&s->oracle);
}

static void heal(struct sim *s)
{
	s->quiet = true;
	s->model.lose_answer = s->model.lose_note = 0;
	for (unsigned i = 0; i < s->ngateways; i++) {
		connects(&s->gw[i]);
		continues(&s->gw[i]);
		starts(&s->gw[i]);
	}
}

static bool satisfied(const struct sim *s)
{
	for (unsigned i = 0; i < INITIATORS; i++)
		if (!s->ini[i].satisfied)
			return false;
	return true;
}

/* No gateway may take a unit that was given to none: an administrator does. */
static void want_owner(struct sim *s)
{
	struct cluster_status st;

	for (unsigned i = 0; i < s->ngateways; i++) {
		if (!s->gw[i].unit)
			continue;
		cluster_unit_status(s->gw[i].unit, &st);
		if (st.record && st.record->withheld && !s->gw[i].step_busy) {
			wish(s, &s->gw[i], 2);
			return;
		}
	}
}

static void run_until(struct sim *s, xtime until)
{
	while (!s->oracle.wrong && sim_next(&s->model, until))
		;
	s->model.now = MAX(s->model.now, until);
}

/* The commands that are left at the end of a run with a violation. */
static void print_left(struct sim *s)
{
	for (unsigned i = 0; i < s->ngateways; i++) {
		struct cluster_status st;

		if (!s->gw[i].unit)
			continue;
		cluster_unit_status(s->gw[i].unit, &st);
		printf("%s: role %d, access %d, changing %d, adopts %d\n",
		       s->gw[i].id, (int)st.role, (int)s->gw[i].access,
		       s->gw[i].changing != NULL, s->gw[i].adopt_step != NULL);
		list_for_each(l, &s->gw[i].commands) {
			const struct command *c =
				list_entry(l, struct command, link);

			printf("  %s of initiator %u%s%s%s\n",
			       command_names[c->kind], c->initiator,
			       c->killed ? ", killed" : "",
			       c->sent ? ", sent" : "",
			       c->changing ? ", changes" : "");
		}
	}
	for (unsigned i = 0; i < INITIATORS; i++)
		printf("initiator %u: at gateway %u, %s, try %u\n", i,
		       s->ini[i].gateway, command_names[s->ini[i].kind],
		       s->ini[i].tries);
}

static void check_end(struct sim *s)
{
	struct oracle *o = &s->oracle;

	if (!o->wrong && !satisfied(s))
		oracle_wrong(o, "the unit does not serve all initiators");
	if (!o->wrong && o->hand_overs > 4 * (s->wishes + s->faults) + 3)
		oracle_wrong(o, "the owner changes too often");
	for (unsigned i = 0; !o->wrong && i < s->ngateways; i++) {
		const struct gateway *g = &s->gw[i];

		if (!g->unit || !g->adopted || g->flooded)
			continue;
		for (uint64_t k = 1; k <= o->serial; k++)
			if (o->index[k] > g->first &&
			    o->index[k] <= gateway_index(g) && !g->accounted[k])
				oracle_wrong(o, "a unit attention is missing");
	}
}

static void sim_begin(struct sim *s, uint32_t seed, bool log)
{
	struct store_model *m = &s->model;

	memset(s, 0, sizeof(*s));
	m->seed = seed * 2654435761u + 1;
	for (unsigned i = 0; i < 8; i++)
		sim_random(m, 1);
	s->oracle.log = log;
	s->oracle.model = m;
	s->oracle.history[0].holder = -1;
	m->turn = turn;
	m->changed = changed;
	m->arg = s;
	m->slow = sim_chance(m, 300) ? 3000 : 100;
	m->lose_answer = sim_chance(m, 500) ? sim_random(m, 100) : 0;
	m->lose_note = sim_chance(m, 500) ? sim_random(m, 300) : 0;
	m->watch_lost = 500;
	s->ngateways = 2 + sim_random(m, 3);
	s->run = (uint64_t)seed << 32;
	for (unsigned i = 0; i < s->ngateways; i++) {
		s->gw[i].model = m;
		s->gw[i].oracle = &s->oracle;
		s->gw[i].machine = i;
		sim_at(m, (xtime)sim_random(m, 500) * XTIME_MS, MACHINES,
		       starts, &s->gw[i]);
		m->machine[i].down = true;
	}
	for (unsigned i = 0; i < INITIATORS; i++) {
		s->ini[i].sim = s;
		s->ini[i].number = i;
		again(&s->ini[i], 300 * XTIME_MS);
	}
	sim_at(m, 2 * XTIME_S, MACHINES, fault, s);
}

static struct {
	unsigned long writes, reads, changes, conflicts, rejected, hand_overs,
		fences, faults;
} total;

static void sim_end(struct sim *s)
{
	for (unsigned i = 0; i < s->ngateways; i++) {
		struct cluster_status st;

		if (!s->gw[i].unit)
			continue;
		cluster_unit_status(s->gw[i].unit, &st);
		total.fences += st.fences;
		cluster_unit_free(s->gw[i].unit);
	}
	sim_free(&s->model);
	total.writes += s->oracle.writes;
	total.reads += s->oracle.reads;
	total.changes += s->oracle.changes;
	total.conflicts += s->oracle.conflicts;
	total.rejected += s->oracle.rejected;
	total.hand_overs += s->oracle.hand_overs;
	total.faults += s->faults;
}

/* Returns the first violation, or NULL. */
static const char *run(uint32_t seed, bool log, enum sim_mistake mistake)
{
	static struct sim s;
	xtime end = FAULTS + 17 * XTIME_S;

	sim_begin(&s, seed, log);
	s.model.mistake = mistake;
	run_until(&s, end);
	heal(&s);
	end += PATIENCE;
	while (!s.oracle.wrong && !satisfied(&s) && s.model.now < end) {
		want_owner(&s);
		run_until(&s, s.model.now + XTIME_S);
	}
	check_end(&s);
	if (log && s.oracle.wrong)
		print_left(&s);
	sim_end(&s);
	return s.oracle.wrong;
}

static void test_seeds(void **state)
{
	uint32_t first = number("CLUSTER_FIRST", 1),
		 n = number("CLUSTER_SEEDS", SEEDS), bad = 0;

	(void)state;
	if (getenv("CLUSTER_SEED")) {
		const char *wrong =
			run(number("CLUSTER_SEED", 1), true,
			    (enum sim_mistake)number("CLUSTER_MISTAKE", 0));

		assert_null(wrong);
		return;
	}
	for (uint32_t i = first; i < first + n; i++) {
		const char *wrong = run(i, false, MISTAKE_NONE);

		if (wrong && bad++ < 20)
			printf("CLUSTER_SEED=%u: %s\n", i, wrong);
	}
	printf("%u seeds, %u bad: %lu writes, %lu reads, %lu changes, %lu conflicts, %lu faults and wishes, %lu hand-overs, %lu fences, %lu late requests rejected\n",
	       n, bad, total.writes, total.reads, total.changes,
	       total.conflicts, total.faults, total.hand_overs, total.fences,
	       total.rejected);
	assert_int_equal(bad, 0);
}

/* Orderly hand-overs alone: no gateway is fenced, and each takes less than a second. */
static void test_peace(void **state)
{
	static struct sim s;

	(void)state;
	for (uint32_t seed = 1; seed <= PEACE_SEEDS; seed++) {
		struct cluster_status st;
		uint64_t takes = 0;

		sim_begin(&s, seed, false);
		s.peace = true;
		s.model.slow = 100;
		s.model.lose_answer = s.model.lose_note = 0;
		run_until(&s, FAULTS);
		heal(&s);
		run_until(&s, FAULTS + 10 * XTIME_S);
		check_end(&s);
		for (unsigned i = 0; i < s.ngateways; i++) {
			cluster_unit_status(s.gw[i].unit, &st);
			assert_int_equal(st.fences, 0);
			assert_int_equal(st.fenced, 0);
			assert_true(st.last_hand_over < XTIME_S);
			takes += st.takes;
		}
		assert_in_range(takes, 1, s.wishes + 1);
		sim_end(&s);
		assert_null(s.oracle.wrong);
	}
}

static struct gateway *owner_of(struct sim *s)
{
	for (unsigned i = 0; i < s->ngateways; i++)
		if (s->gw[i].unit && s->gw[i].access == CLUSTER_OPTIMIZED)
			return &s->gw[i];
	return NULL;
}

static void begin_calm(struct sim *s, uint32_t seed)
{
	sim_begin(s, seed, false);
	s->model.slow = 100;
	s->model.lose_answer = s->model.lose_note = 0;
	s->quiet = s->still = true;
	while (sim_next(&s->model, 3500 * XTIME_MS))
		;
}

/* An owner that is killed, and stays so: another gateway serves within ten seconds. */
static void test_killed(void **state)
{
	static struct sim s;

	(void)state;
	for (uint32_t seed = 1; seed <= PEACE_SEEDS; seed++) {
		begin_calm(&s, seed);
		assert_non_null(owner_of(&s));
		s.still = true;
		gateway_crash(owner_of(&s));
		run_until(&s, s.model.now + 10 * XTIME_S);
		assert_non_null(owner_of(&s));
		sim_end(&s);
		assert_null(s.oracle.wrong);
	}
}

/* An owner that is cut off from the store, but not from its initiators: it ends its
 * sessions with the unit, which another gateway has, and stands by when it is back. */
static void test_cut_off(void **state)
{
	static struct sim s;

	(void)state;
	for (uint32_t seed = 1; seed <= PEACE_SEEDS; seed++) {
		struct cluster_status st;
		struct gateway *g;

		begin_calm(&s, seed);
		g = owner_of(&s);
		assert_non_null(g);
		s.still = s.model.machine[g->machine].cut = true;
		run_until(&s, s.model.now + 20 * XTIME_S);
		assert_int_equal(g->access, CLUSTER_UNAVAILABLE);
		assert_non_null(owner_of(&s));
		connects(g);
		run_until(&s, s.model.now + 10 * XTIME_S);
		cluster_unit_status(g->unit, &st);
		assert_int_equal(st.role, CLUSTER_STANDING_BY);
		assert_int_equal(st.fenced, 1);
		check_end(&s);
		sim_end(&s);
		assert_null(s.oracle.wrong);
	}
}

/* An administrator removes the record, while a gateway that has none starts: the owner writes it
 * again, with the reservations, and the new gateway waits for it. */
static void test_removed(void **state)
{
	static struct sim s;

	(void)state;
	for (uint32_t seed = 1; seed <= PEACE_SEEDS; seed++) {
		struct gateway *g, *other;
		struct cluster_status st;

		begin_calm(&s, seed);
		g = owner_of(&s);
		assert_non_null(g);
		s.still = true;
		other = &s.gw[(g->machine + 1) % s.ngateways];
		run_until(&s, s.model.now + (xtime)seed * XTIME_S / 10);
		gateway_crash(other);
		s.model.len = 0;
		s.model.version = 0;
		run_until(&s, s.model.now + (xtime)(seed % 3) * XTIME_S);
		gateway_start(other, ++s.run);
		run_until(&s, s.model.now + 20 * XTIME_S);
		assert_ptr_equal(owner_of(&s), g);
		cluster_unit_status(other->unit, &st);
		assert_int_equal(st.role, CLUSTER_STANDING_BY);
		assert_int_equal(st.fences, 0);
		check_end(&s);
		sim_end(&s);
		assert_null(s.oracle.wrong);
	}
}

/* A record that cannot be read: the owner stays, and commands end. */
static void test_damaged(void **state)
{
	static struct sim s;

	(void)state;
	for (uint32_t seed = 1; seed <= PEACE_SEEDS; seed++) {
		struct gateway *g;

		begin_calm(&s, seed);
		g = owner_of(&s);
		assert_non_null(g);
		s.still = s.model.damaged = true;
		run_until(&s, s.model.now + 6 * XTIME_S);
		wish(&s, g, 6);
		run_until(&s, s.model.now + 30 * XTIME_S);
		assert_ptr_equal(owner_of(&s), g);
		assert_false(g->step_busy);
		s.model.damaged = false;
		run_until(&s, s.model.now + 20 * XTIME_S);
		check_end(&s);
		sim_end(&s);
		assert_null(s.oracle.wrong);
	}
}

/* The oracle finds each mistake of enum sim_mistake. */
static void test_mistakes(void **state)
{
	(void)state;
	for (unsigned i = 1; i < MISTAKES; i++) {
		const char *wrong = NULL;
		uint32_t seed = 0;

		while (!wrong && ++seed < MISTAKE_SEEDS)
			wrong = run(seed, false, (enum sim_mistake)i);
		printf("mistake %u, seed %u: %s\n", i, seed,
		       wrong ? wrong : "not found");
		assert_non_null(wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),	 cmocka_unit_test(test_peace),
		cmocka_unit_test(test_killed),	 cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_damaged),	 cmocka_unit_test(test_removed),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
