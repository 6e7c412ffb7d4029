/* SPDX-License-Identifier: BSD-2-Clause */
/* cluster_device.c: a gateway of the simulation, and the oracle. */
#include "sim/cluster_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cluster/record.h"

const char *const command_names[COMMANDS] = {
	"write",   "read",    "register", "unregister",
	"reserve", "preempt", "pr in",	  "keep",
};

/* ---- the oracle ---- */

void oracle_wrong(struct oracle *o, const char *what)
{
	if (o->log)
		printf("%10.3f WRONG: %s\n", (double)o->model->now / 1e9, what);
	if (!o->wrong)
		o->wrong = what;
}

static unsigned later(const struct oracle *o, uint64_t a, uint64_t b)
{
	return MAX(o->index[a], o->index[b]);
}

static void new_state(struct oracle *o, const struct pr *pr, uint64_t serial)
{
	if (o->index[serial])
		oracle_wrong(o, "a change took place twice");
	if (o->states + 1 >= CHANGES)
		abort();
	o->history[++o->states] = *pr;
	if (o->log)
		printf("%10.3f state %u: holder %d\n",
		       (double)o->model->now / 1e9, o->states, pr->holder);
	o->index[serial] = o->states;
}

void oracle_changed(struct oracle *o)
{
	static struct cluster_record r;
	struct pr pr = o->history[o->states];
	uint64_t kept = o->kept;

	if (cluster_record_decode(&r, o->model->blob, o->model->len)) {
		oracle_wrong(o, "a gateway wrote a damaged record");
		return;
	}
	if (r.generation < o->generation)
		oracle_wrong(o, "the generation went back");
	if (r.generation > o->generation) {
		o->hand_overs++;
		if (o->log)
			printf("%10.3f owner %s, generation %u\n",
			       (double)o->model->now / 1e9, r.owner,
			       (unsigned)r.generation);
	}
	o->generation = r.generation;
	if (r.parts[CLUSTER_RESERVATIONS].len == sizeof(pr))
		memcpy(&pr, r.parts[CLUSTER_RESERVATIONS].data, sizeof(pr));
	if (r.parts[CLUSTER_KEPT].len == sizeof(kept))
		memcpy(&kept, r.parts[CLUSTER_KEPT].data, sizeof(kept));
	if (pr.serial != o->history[o->states].serial)
		new_state(o, &pr, pr.serial);
	if (kept != o->kept)
		new_state(o, &pr, kept);
	o->kept = kept;
}

static bool permits(const struct pr *pr, unsigned nexus)
{
	return pr->holder < 0 || pr->key[nexus];
}

/* A caller learns that the unit has, or had, the state of that index. */
static void oracle_seen(struct oracle *o, const struct command *c,
			unsigned index)
{
	if (o->log && index > o->seen)
		printf("%10.3f %s: %s of initiator %u shows state %u\n",
		       (double)o->model->now / 1e9, c->gw->id,
		       command_names[c->kind], c->initiator, index);
	if (index < c->floor)
		oracle_wrong(o, "a command saw an older state than one before");
	o->seen = MAX(o->seen, index);
}

/* A request reaches the data. */
static void oracle_data(struct data_request *d)
{
	struct command *c = d->arg;
	struct oracle *o = d->oracle;
	bool allowed = false;

	if (d->session->model->holder != d->session)
		oracle_wrong(o, "a gateway without the lock reached the data");
	if (o->log)
		printf("%10.3f gw-%c: %s of nexus %u\n",
		       (double)o->model->now / 1e9,
		       (char)('a' + d->session->machine),
		       command_names[c->kind], c->nexus);
	for (unsigned i = o->seen; i <= o->states; i++)
		allowed |= permits(&o->history[i], c->nexus);
	if (c->kind == COMMAND_READ)
		return;
	if (!allowed)
		oracle_wrong(o, "a write against a reservation");
	if (c->value < o->acked[c->block])
		oracle_wrong(o, "an old write after an acknowledged one");
}

/* ---- commands in the logical unit ---- */

unsigned gateway_index(const struct gateway *g)
{
	return later(g->oracle, g->pr.serial, g->kept);
}

static void step_done(struct cluster_step **s)
{
	struct cluster_step *step = *s;

	*s = NULL;
	if (step) {
		step->result = 0;
		step->done(step);
	}
}

static bool in_progress(const struct gateway *g, bool forbidden)
{
	list_for_each(l, (struct list *)&g->commands) {
		const struct command *c = list_entry(l, struct command, link);

		if (!forbidden ||
		    (c->kind == COMMAND_WRITE && !permits(&g->pr, c->nexus)))
			return true;
	}
	return false;
}

static void change_begin(struct gateway *g, struct command *c);
static void command_end(struct command *c, enum outcome outcome);

static void adopt_end(void *arg)
{
	struct gateway *g = arg;

	step_done(&g->posted);
}

/* Commands that report the state, once it is in force. */
static void show(struct gateway *g)
{
	list_for_each(l, &g->commands) {
		struct command *c = list_entry(l, struct command, link);

		if (c->showing) {
			c->showing = false;
			command_end(c, OUTCOME_GOOD);
			return;
		}
	}
}

/* Something has ended: what waited for it? */
static void device_step(struct gateway *g)
{
	if (!g->changing && !g->answering && g->adopt_step && !g->applied) {
		g->pr = g->next;
		g->kept = g->next_kept;
		g->applied = true;
	}
	if (g->applied &&
	    (!in_progress(g, true) || g->model->mistake == MISTAKE_ADOPT)) {
		g->applied = false;
		if (g->oracle->log)
			printf("%10.3f %s: state %u is in force\n",
			       (double)g->model->now / 1e9, g->id,
			       gateway_index(g));
		g->posted = g->adopt_step;
		g->adopt_step = NULL;
		if (sim_chance(g->model, 500))
			adopt_end(g);
		else
			sim_at(g->model,
			       g->model->now +
				       sim_random(g->model, 2000) * XTIME_US,
			       g->machine, adopt_end, g);
	}
	if (g->answering && !in_progress(g, true)) {
		struct command *c = g->answering;

		g->answering = NULL;
		command_end(c, OUTCOME_GOOD);
	}
	if (!g->applied && !g->answering)
		show(g);
	if (!g->changing && !g->answering && !g->adopt_step)
		list_for_each(l, &g->commands) {
			struct command *c = list_entry(l, struct command, link);

			if (c->changing) {
				change_begin(g, c);
				break;
			}
		}
	if (g->access_step && !in_progress(g, false))
		step_done(&g->access_step);
}

static void command_gone(struct command *c)
{
	struct gateway *g = c->gw;

	list_del(&c->link);
	c->gw = NULL;
	if (g->changing == c)
		g->changing = NULL;
	if (g->answering == c)
		g->answering = NULL;
}

static void command_end(struct command *c, enum outcome outcome)
{
	struct gateway *g = c->gw;
	struct oracle *o = g->oracle;

	if (c->kind >= COMMAND_REGISTER && outcome == OUTCOME_GOOD)
		oracle_seen(o, c, gateway_index(g));
	/* a fenced owner may still refuse a write, which does no harm */
	if (outcome == OUTCOME_CONFLICT && c->kind != COMMAND_WRITE &&
	    gateway_index(g) < c->floor)
		oracle_wrong(o, "a conflict with an older state");
	if (outcome == OUTCOME_CONFLICT)
		o->conflicts++;
	command_gone(c);
	if (!c->killed)
		c->answer(c, outcome);
	device_step(g);
}

/* ---- writes and reads ---- */

static void data_done(void *arg)
{
	struct data_request *d = arg;
	struct command *c = d->arg;
	struct gateway *g = c->gw;

	if (!g)
		return;
	if (d->result == ERR_TERMINATED) {
		g->oracle->rejected++;
		cluster_unit_fenced(g->unit);
		return;
	}
	if (c->kind == COMMAND_READ) {
		g->oracle->reads++;
		if (d->value < c->acked)
			oracle_wrong(g->oracle, "a stale read");
	} else {
		g->oracle->writes++;
		if (!c->killed)
			g->oracle->acked[c->block] =
				MAX(g->oracle->acked[c->block], c->value);
	}
	command_end(c, OUTCOME_GOOD);
}

static void data_send(void *arg)
{
	struct command *c = arg;
	struct gateway *g = c->gw;

	if (!g)
		return;
	c->sent = true;
	c->data = (struct data_request){
		.session = container_of(g->store, struct store_session, store),
		.write = c->kind == COMMAND_WRITE,
		.block = c->block,
		.value = c->value,
		.check = oracle_data,
		.done = data_done,
		.arg = c,
		.oracle = g->oracle,
	};
	store_data(&c->data);
}

static void data_command(struct gateway *g, struct command *c)
{
	if (g->access != CLUSTER_OPTIMIZED) {
		command_end(c, OUTCOME_NOT_READY);
	} else if (c->kind == COMMAND_WRITE && !permits(&g->pr, c->nexus)) {
		command_end(c, OUTCOME_CONFLICT);
	} else if (sim_chance(g->model, 500)) {
		data_send(c);
	} else {
		sim_at(g->model, sim_delay(g->model), g->machine, data_send, c);
	}
}

/* ---- changes of the common state ---- */

/* What the command does; false: a reservation conflict. */
static bool decide(const struct command *c, struct pr *pr)
{
	switch (c->kind) {
	case COMMAND_REGISTER:
		pr->key[c->nexus] = (uint8_t)(c->initiator + 1);
		return true;
	case COMMAND_UNREGISTER:
		if (!pr->key[c->nexus])
			return false;
		pr->key[c->nexus] = 0;
		if (pr->holder == (int8_t)c->nexus)
			pr->holder = -1;
		return true;
	case COMMAND_RESERVE:
		if (!pr->key[c->nexus] ||
		    (pr->holder >= 0 && pr->holder != (int8_t)c->nexus))
			return false;
		pr->holder = (int8_t)c->nexus;
		return true;
	case COMMAND_PREEMPT:
		if (!pr->key[c->nexus])
			return false;
		for (unsigned i = 0; i < NEXUSES; i++)
			if (i != c->nexus && pr->key[i] == c->victim + 1)
				pr->key[i] = 0;
		pr->holder = (int8_t)c->nexus;
		return true;
	default:
		return true;
	}
}

static void save_done(struct cluster_save *s)
{
	struct command *c = container_of(s, struct command, save);
	struct gateway *g = c->gw;

	if (!g || s->result == ERR_TERMINATED)
		return;
	if (s->result == ERR_AGAIN) {
		g->changing = NULL;
		device_step(g);
	} else if (s->result) {
		command_end(c, OUTCOME_UNKNOWN);
	} else {
		g->oracle->changes++;
		g->changing = NULL;
		c->changing = false;
		if (c->kind == COMMAND_KEEP)
			g->kept = c->draft.serial;
		else
			g->pr = c->draft;
		if (!g->oracle->index[c->draft.serial])
			oracle_wrong(g->oracle,
				     "a change is not in the record");
		g->accounted[c->draft.serial] = 1;
		g->answering = c;
		device_step(g);
	}
}

static void change_begin(struct gateway *g, struct command *c)
{
	struct cluster_save *s = &c->save;

	if (c->draft.serial && g->oracle->index[c->draft.serial])
		oracle_wrong(g->oracle,
			     "a change that took place is decided anew");
	c->draft = g->pr;
	if (!decide(c, &c->draft)) {
		c->changing = false;
		command_end(c, OUTCOME_CONFLICT);
		return;
	}
	if (g->oracle->serial + 1 >= CHANGES)
		abort();
	c->draft.serial = ++g->oracle->serial;
	g->changing = c;
	memset(s, 0, sizeof(*s));
	s->done = save_done;
	s->part = CLUSTER_RESERVATIONS;
	s->data = (const uint8_t *)&c->draft;
	s->len = sizeof(c->draft);
	if (c->kind == COMMAND_KEEP) {
		s->part = CLUSTER_KEPT;
		s->data = (const uint8_t *)&c->draft.serial;
		s->len = sizeof(c->draft.serial);
	}
	s->event = (const uint8_t *)&c->draft.serial;
	s->event_len = sizeof(c->draft.serial);
	cluster_unit_save(g->unit, s);
}

static void refresh_done(struct cluster_step *s)
{
	struct command *c = container_of(s, struct command, refresh);
	struct gateway *g = c->gw;

	if (!g || s->result == ERR_TERMINATED)
		return;
	if (s->result) {
		command_end(c, OUTCOME_NOT_READY);
	} else if (gateway_index(g) < c->floor) {
		oracle_wrong(g->oracle, "refresh gave an old state");
	} else if (c->kind == COMMAND_PR_IN) {
		c->showing = true;
		device_step(g);
	} else {
		c->changing = true;
		device_step(g);
	}
}

void gateway_receive(struct gateway *g, struct command *c)
{
	bool old = false;

	/* a connection that a newer one has replaced */
	if (!g->unit || c->number < g->received[c->initiator])
		return;
	g->received[c->initiator] = c->number;
	if (g->oracle->log)
		printf("%10.3f %s: receives %s of initiator %u\n",
		       (double)g->model->now / 1e9, g->id,
		       command_names[c->kind], c->initiator);
	/* a new session of the initiator ends its commands of the old one */
	list_for_each_safe(l, &g->commands) {
		struct command *other = list_entry(l, struct command, link);

		if (other->initiator != c->initiator)
			continue;
		old = true;
		other->killed = true;
		if (other->kind <= COMMAND_READ && !other->sent)
			command_gone(other);
	}
	c->gw = g;
	list_push_back(&g->commands, &c->link);
	if (old || g->access == CLUSTER_UNAVAILABLE || g->drop_step) {
		command_end(c, OUTCOME_NOT_READY);
	} else if (c->kind <= COMMAND_READ) {
		data_command(g, c);
	} else if (g->access == CLUSTER_TRANSITIONING) {
		command_end(c, OUTCOME_NOT_READY);
	} else {
		c->refresh.done = refresh_done;
		cluster_unit_refresh(g->unit, &c->refresh);
	}
}

/* ---- what the unit asks of the gateway ---- */

static void do_access(void *arg, enum cluster_access a, struct cluster_step *s)
{
	struct gateway *g = arg;

	if (g->oracle->log)
		printf("%10.3f %s: access %d\n", (double)g->model->now / 1e9,
		       g->id, (int)a);
	g->access = a;
	g->access_step = s;
	if (a == CLUSTER_OPTIMIZED || a == CLUSTER_STANDBY ||
	    g->model->mistake == MISTAKE_DRAIN)
		step_done(&g->access_step);
	else
		device_step(g);
}

static void do_gateways(void *arg, const struct cluster_record *r)
{
	(void)arg;
	(void)r;
}

static void account(struct gateway *g, const struct cluster_record *r,
		    uint64_t since)
{
	if (since < r->forgotten)
		g->flooded = true;
	for (unsigned i = 0; i < r->nevents; i++) {
		uint64_t serial;

		if (r->events[i].at <= since ||
		    g->model->mistake == MISTAKE_EVENT)
			continue;
		memcpy(&serial, r->events[i].data, sizeof(serial));
		if (g->accounted[serial])
			oracle_wrong(g->oracle, "a unit attention twice");
		g->accounted[serial] = 1;
	}
}

static void do_adopt(void *arg, const struct cluster_record *r, uint64_t since,
		     struct cluster_step *s)
{
	struct gateway *g = arg;

	if (g->adopt_step)
		oracle_wrong(g->oracle, "adopt while adopting");
	g->next = (struct pr){ .holder = -1 };
	g->next_kept = 0;
	if (r->parts[CLUSTER_RESERVATIONS].len)
		memcpy(&g->next, r->parts[CLUSTER_RESERVATIONS].data,
		       sizeof(g->next));
	if (r->parts[CLUSTER_KEPT].len)
		memcpy(&g->next_kept, r->parts[CLUSTER_KEPT].data,
		       sizeof(g->next_kept));
	if (!g->adopted)
		g->first = later(g->oracle, g->next.serial, g->next_kept);
	g->adopted = true;
	account(g, r, since);
	g->adopt_step = s;
	g->applied = false;
	device_step(g);
}

static void drop_end(void *arg)
{
	struct gateway *g = arg;

	g->store->ops->close(g->store);
	g->store = store_open(g->model, g->machine, g->id);
	cluster_unit_reopened(g->unit, g->store);
	step_done(&g->drop_step);
}

static void do_drop(void *arg, struct cluster_step *s)
{
	struct gateway *g = arg;

	g->drop_step = s;
	list_for_each_safe(l, &g->commands) {
		struct command *c = list_entry(l, struct command, link);

		if (g->model->mistake != MISTAKE_DROP || c->sent ||
		    c->kind > COMMAND_READ)
			command_gone(c);
	}
	device_step(g);
	sim_at(g->model, sim_delay(g->model), g->machine, drop_end, g);
}

static void do_say(void *arg, const char *sentence)
{
	const struct gateway *g = arg;

	if (g->oracle->log)
		printf("%10.3f %s: %s\n", (double)g->model->now / 1e9, g->id,
		       sentence);
}

static void do_wake(void *arg)
{
	struct gateway *g = arg;

	g->woken = true;
}

/* ---- the gateway ---- */

static void tick(void *arg)
{
	struct gateway *g = arg;

	g->woken = true;
	g->tick_at = XTIME_NEVER;
}

void gateway_turn(struct gateway *g)
{
	while (g->unit && g->woken) {
		xtime next;

		g->woken = false;
		next = cluster_unit_tick(g->unit, g->model->now);
		if (next < g->tick_at) {
			g->tick_at = next;
			sim_at(g->model, next, g->machine, tick, g);
		}
	}
}

void gateway_start(struct gateway *g, uint64_t run)
{
	static const struct cluster_unit_ops ops_of = {
		.access = do_access,
		.gateways = do_gateways,
		.adopt = do_adopt,
		.drop = do_drop,
		.say = do_say,
		.wake = do_wake,
	};
	struct cluster_unit_ops *ops = sim_alloc(g->model, sizeof(*ops));
	struct cluster_unit_config cfg = { .run = run,
					   .failover = true,
					   .beacon = XTIME_S,
					   .silence = 4 * XTIME_S,
					   .patience = 3 * XTIME_S };
	struct gateway keep = *g;

	memset(g, 0, sizeof(*g));
	g->model = keep.model;
	g->oracle = keep.oracle;
	g->machine = keep.machine;
	g->model->machine[g->machine].down = false;
	memcpy(g->id, "gw-", 3);
	g->id[3] = (char)('a' + g->machine);
	strcpy(cfg.self.id, g->id);
	cfg.self.number = (uint16_t)(g->machine + 1);
	cfg.self.nports = 1;
	cfg.self.ports[0] = (uint16_t)(g->machine + 1);
	list_init(&g->commands);
	g->pr.holder = -1;
	g->access = CLUSTER_UNAVAILABLE;
	g->tick_at = XTIME_NEVER;
	*ops = ops_of;
	ops->arg = g;
	g->store = store_open(g->model, g->machine, g->id);
	g->unit = cluster_unit_new(&cfg, ops, g->store, g->model->now);
	if (!g->unit)
		abort();
	g->woken = true;
	gateway_turn(g);
}

void gateway_crash(struct gateway *g)
{
	struct sim_machine *w = &g->model->machine[g->machine];

	cluster_unit_free(g->unit);
	g->unit = NULL;
	list_for_each_safe(l, &g->commands)
		command_gone(list_entry(l, struct command, link));
	w->down = true;
	w->stopped = false;
	w->nheld = 0;
	w->life++;
	container_of(g->store, struct store_session, store)->open = false;
}
