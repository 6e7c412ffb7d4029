/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pr_state.c: persistent reservations as data (SPC-4 §5.13): snapshots, the
 * accesses that a snapshot denies to each nexus, and the snapshot that follows from
 * each service action of PERSISTENT RESERVE OUT. No thread, no task, no I/O.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/shared.h"

/* ---- snapshots ---- */

const struct rsv_state rsv_none = { .holder = -1 };
const struct rsv_state rsv_lost = { .holder = -1, .lost = true };

struct rsv_state *rsv_copy(const struct rsv_state *s, unsigned more)
{
	size_t room = s->n + (size_t)more;
	struct rsv_state *c = malloc(sizeof(*c) + room * sizeof(c->regs[0]));

	if (!c)
		return NULL;
	*c = *s;
	memcpy(c->regs, s->regs, s->n * sizeof(c->regs[0]));
	return c;
}

void rsv_free(const struct rsv_state *s)
{
	if (s != &rsv_none && s != &rsv_lost)
		free((void *)(uintptr_t)s);
}

int rsv_find(const struct rsv_state *s, const char *name, uint16_t port)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->regs[i].port == port && !strcmp(s->regs[i].name, name))
			return (int)i;
	return -1;
}

int rsv_find_nexus(const struct rsv_state *s, const struct dev_nexus *n)
{
	return rsv_find(s, n->cfg.initiator_port, n->cfg.relative_target_port);
}

bool rsv_is_all_registrants(enum rsv_type type)
{
	return type == RSV_TYPE_WE_AR || type == RSV_TYPE_EA_AR;
}

bool rsv_is_registrants_only(enum rsv_type type)
{
	return type == RSV_TYPE_WE_RO || type == RSV_TYPE_EA_RO;
}

bool rsv_is_exclusive_access(enum rsv_type type)
{
	return type == RSV_TYPE_EA || type == RSV_TYPE_EA_RO ||
	       type == RSV_TYPE_EA_AR;
}

bool rsv_is_holder(const struct rsv_state *s, int reg)
{
	return reg >= 0 && s->type &&
	       (rsv_is_all_registrants(s->type) || s->holder == reg);
}

void rsv_set_spc2(struct rsv_state *s, const struct dev_nexus *n)
{
	s->spc2 = n;
	memset(&s->spc2_of, 0, sizeof(s->spc2_of));
	if (!n)
		return;
	assert(strlen(n->cfg.initiator_port) < sizeof(s->spc2_of.name));
	s->spc2_of.port = n->cfg.relative_target_port;
	memcpy(s->spc2_of.name, n->cfg.initiator_port,
	       strlen(n->cfg.initiator_port));
}

uint16_t rsv_denied(const struct rsv_state *s, const struct dev_nexus *n)
{
	int me;

	if (s->lost)
		return RSV_ALL | RSV_LOST;
	if (rsv_is_spc2(s))
		return s->spc2 == n ? 0 : RSV_SPC2;
	if (!s->type)
		return 0;
	me = rsv_find_nexus(s, n);
	if (rsv_is_holder(s, me) ||
	    (me >= 0 && rsv_is_registrants_only(s->type)))
		return 0;
	return rsv_is_exclusive_access(s->type) ? RSV_EA : RSV_WE;
}

/* ---- changes ---- */

void rsv_conflict(struct rsv_op *op)
{
	op->u.status = SCSI_RESERVATION_CONFLICT;
}

void rsv_check(struct rsv_op *op, uint8_t key, uint16_t asc)
{
	op->u.status = SCSI_CHECK_CONDITION;
	op->u.sense = (struct scsi_sense){ .key = key, .asc = asc };
}

/* A change that is being decided. Until settle, the indices of s are those of the
 * old snapshot. */
struct work {
	struct rsv_op *op;
	struct rsv_state *s; /* op->next after settle */
	int me;		     /* the registration of the requester, or -1 */
	char by[SCSI_DEVICE_NAME_MAX + 1]; /* the initiator of the requester */
	bool gone[2 * RSV_MAX];
	/* the target ports that the change names; nports may be above RSV_MAX */
	unsigned nports;
	uint16_t ports[RSV_MAX];
};

/* is_above_share returns whether the initiator would make more registrations than
 * its share. So an initiator with many ports, or with many names in SPEC_I_PT, leaves
 * room for other initiators. */
static bool is_above_share(const struct work *w, unsigned more)
{
	const struct rsv_state *old = w->op->old;
	unsigned n = 0;

	for (unsigned i = 0; i < old->n; i++)
		n += !strcmp(old->regs[i].by, w->by);
	return more && n + more > RSV_SHARE;
}

static bool begin(struct work *w, unsigned more)
{
	struct rsv_op *op = w->op;

	if (more > RSV_MAX || op->old->n + more > RSV_MAX ||
	    is_above_share(w, more)) {
		rsv_check(op, SENSE_ILLEGAL_REQUEST,
			  ASC_INSUFFICIENT_REGISTRATIONS);
		return false;
	}
	w->s = rsv_copy(op->old, more);
	if (!w->s)
		rsv_check(op, SENSE_ABORTED_COMMAND,
			  ASC_INSUFFICIENT_RESOURCES);
	return w->s != NULL;
}

/* settle makes the new snapshot, without the registrations marked as gone. */
static void settle(struct work *w, bool counts)
{
	struct rsv_state *s = w->s;
	unsigned n = 0;
	int holder = -1;

	for (unsigned i = 0; i < s->n; i++) {
		if (w->gone[i])
			continue;
		if (s->holder == (int)i)
			holder = (int)n;
		if (n != i)
			s->regs[n] = s->regs[i];
		n++;
	}
	s->n = n;
	s->holder = holder;
	s->generation += counts;
	w->op->next = s;
}

static void set_attention(struct work *w, unsigned reg, enum dev_ua ua)
{
	if ((int)reg != w->me)
		w->op->attention[reg] = (uint8_t)(ua + 1);
}

/* notify_rest sets an attention for each remaining registrant except the requester. */
static void notify_rest(struct work *w, enum dev_ua ua)
{
	for (unsigned i = 0; i < w->op->old->n; i++)
		if (!w->gone[i])
			set_attention(w, i, ua);
}

static void drop_reservation(struct rsv_state *s)
{
	s->type = RSV_TYPE_NONE;
	s->holder = -1;
}

static void add(const struct work *w, uint64_t key, const char *name,
		uint16_t port)
{
	struct rsv_state *s = w->s;
	struct rsv_reg *r = &s->regs[s->n++];

	assert(strlen(name) < sizeof(r->name)); /* iSCSI names are shorter */
	r->key = key;
	r->port = port;
	memcpy(r->name, name, strlen(name) + 1);
	memcpy(r->by, w->by, sizeof(r->by));
}

/* ---- REGISTER, REGISTER AND IGNORE EXISTING KEY (§5.13.7) ---- */

/* §5.13.11.2: the reservation ends with the registration of its holder. The
 * remaining registrants of a registrants-only type get a unit attention. */
static void unregister(struct work *w)
{
	struct rsv_state *s = w->s;

	w->gone[w->me] = true;
	if (rsv_is_all_registrants(s->type)) {
		if (s->n == 1)
			drop_reservation(s);
	} else if (s->type && s->holder == w->me) {
		if (rsv_is_registrants_only(s->type))
			notify_rest(w, UA_RESERVATIONS_RELEASED);
		drop_reservation(s);
	}
}

/* ALL_TG_PT: all ports of the SCSI target device, also those of other gateways. */
static void find_ports(struct work *w, bool all)
{
	const struct rsv_op *op = w->op;

	if (all)
		w->nports =
			dev_lu_ports(op->u.lu, op->u.nexus, w->ports, RSV_MAX);
	if (w->nports)
		return;
	w->nports = 1;
	w->ports[0] = op->u.nexus->cfg.relative_target_port;
}

/* add_everywhere registers one initiator port at the requested target ports. An
 * existing registration stays unchanged, except that of the requester. */
static void add_everywhere(struct work *w, const char *name, bool self)
{
	const struct rsv_out *o = &w->op->out;

	for (unsigned i = 0; i < w->nports; i++) {
		uint16_t port = w->ports[i];
		int at = rsv_find(w->s, name, port);

		if (at < 0)
			add(w, o->sa_key, name, port);
		else if (self)
			w->s->regs[at].key = o->sa_key;
	}
}

/* count_new returns the number of requested target ports at which the initiator port
 * is not registered. */
static unsigned count_new(const struct work *w, const char *name)
{
	unsigned n = 0;

	if (w->nports > RSV_MAX)
		return RSV_MAX + 1;
	for (unsigned i = 0; i < w->nports; i++)
		n += rsv_find(w->op->old, name, w->ports[i]) < 0;
	return n;
}

/* SPEC_I_PT (§5.13.7.3): register_new registers all named ports or none. */
static void register_new(struct work *w)
{
	struct rsv_op *op = w->op;
	const struct rsv_out *o = &op->out;
	unsigned more;

	if (o->sa_key == 0)
		return; /* table 35: nothing to do, GOOD */
	more = count_new(w, op->u.nexus->cfg.initiator_port);
	for (unsigned i = 0; i < o->nnames && more <= RSV_MAX; i++)
		more += count_new(w, o->names[i]);
	if (!begin(w, more))
		return;
	add_everywhere(w, op->u.nexus->cfg.initiator_port, true);
	for (unsigned i = 0; i < o->nnames; i++)
		add_everywhere(w, o->names[i], false);
	w->s->aptpl = o->aptpl;
	settle(w, true);
}

static void register_again(struct work *w)
{
	const struct rsv_out *o = &w->op->out;

	if (o->spec_i_pt) { /* table 35: only of a new registration */
		rsv_check(w->op, SENSE_ILLEGAL_REQUEST,
			  ASC_INVALID_FIELD_IN_PARAMETERS);
		w->op->u.sense.has_field = true;
		w->op->u.sense.field = 20;
		w->op->u.sense.has_bit = true;
		w->op->u.sense.bit = 3;
		return;
	}
	if (!begin(w, o->sa_key
			      ? count_new(w, w->op->u.nexus->cfg.initiator_port)
			      : 0))
		return;
	if (o->sa_key)
		add_everywhere(w, w->op->u.nexus->cfg.initiator_port, true);
	else
		unregister(w);
	w->s->aptpl = o->aptpl;
	settle(w, true);
}

static void decide_register(struct work *w)
{
	const struct rsv_op *op = w->op;
	uint64_t key = w->me < 0 ? 0 : op->old->regs[w->me].key;

	find_ports(w, op->out.all_tg_pt);
	if (op->out.key != key)
		rsv_conflict(w->op);
	else if (w->me < 0)
		register_new(w);
	else
		register_again(w);
}

static void decide_register_ignore(struct work *w)
{
	find_ports(w, w->op->out.all_tg_pt);
	if (w->me < 0)
		register_new(w);
	else
		register_again(w);
}

/* ---- RESERVE, RELEASE, CLEAR (§5.13.9, §5.13.11.2) ---- */

static void decide_reserve(struct work *w)
{
	const struct rsv_state *old = w->op->old;
	enum rsv_type type = w->op->out.type;

	if (old->type) {
		if (!rsv_is_holder(old, w->me) || old->type != type)
			rsv_conflict(w->op);
		return; /* The nexus holds this reservation already. */
	}
	if (!begin(w, 0))
		return;
	w->s->type = type;
	w->s->holder = rsv_is_all_registrants(type) ? -1 : w->me;
	settle(w, false);
}

static void decide_release(struct work *w)
{
	const struct rsv_state *old = w->op->old;

	if (!rsv_is_holder(old, w->me))
		return;
	if (old->type != w->op->out.type) {
		rsv_check(w->op, SENSE_ILLEGAL_REQUEST, ASC_INVALID_RELEASE);
		return;
	}
	if (!begin(w, 0))
		return;
	if (rsv_is_all_registrants(old->type) ||
	    rsv_is_registrants_only(old->type))
		notify_rest(w, UA_RESERVATIONS_RELEASED);
	drop_reservation(w->s);
	settle(w, false);
}

static void decide_clear(struct work *w)
{
	if (!begin(w, 0))
		return;
	notify_rest(w, UA_RESERVATIONS_PREEMPTED);
	drop_reservation(w->s);
	w->s->n = 0;
	settle(w, true);
}

/* ---- PREEMPT, PREEMPT AND ABORT (§5.13.11.2.4) ---- */

static void preempt_one(struct work *w, unsigned reg)
{
	w->gone[reg] = true;
	set_attention(w, reg, UA_REGISTRATIONS_PREEMPTED);
	w->op->abort[reg] = w->op->u.aborts;
}

/* preempt_keys removes the registrations with the key and returns their number. */
static unsigned preempt_keys(struct work *w, uint64_t key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->s->n; i++)
		if (w->s->regs[i].key == key) {
			preempt_one(w, i);
			n++;
		}
	return n;
}

/* take_over makes the requester the holder of the reservation. */
static void take_over(struct work *w)
{
	struct rsv_state *s = w->s;
	enum rsv_type type = w->op->out.type;

	w->gone[w->me] = false;
	if (s->type != type)
		notify_rest(w, UA_RESERVATIONS_RELEASED);
	s->type = type;
	s->holder = rsv_is_all_registrants(type) ? -1 : w->me;
	settle(w, true);
}

static void preempt_all_registrants(struct work *w)
{
	for (unsigned i = 0; i < w->s->n; i++)
		if ((int)i != w->me)
			preempt_one(w, i);
	take_over(w);
}

static void preempt_others(struct work *w, uint64_t key)
{
	struct rsv_state *s = w->s;
	unsigned n = preempt_keys(w, key);

	if (n == 0) {
		rsv_conflict(w->op);
		free(s);
		return;
	}
	if (n == s->n) /* No registration remains that could be a holder. */
		drop_reservation(s);
	settle(w, true);
}

static void decide_preempt(struct work *w)
{
	const struct rsv_state *old = w->op->old;
	uint64_t key = w->op->out.sa_key;
	bool all = rsv_is_all_registrants(old->type);
	bool is_taking =
		all ? key == 0 : old->type && old->regs[old->holder].key == key;

	w->op->u.aborts = w->op->out.action == SCSI_PROUT_PREEMPT_AND_ABORT;
	if (key == 0 && !all) {
		rsv_check(w->op, SENSE_ILLEGAL_REQUEST,
			  ASC_INVALID_FIELD_IN_PARAMETERS);
		w->op->u.sense.has_field = true;
		w->op->u.sense.field = 8;
		return;
	}
	if (!begin(w, 0))
		return;
	if (is_taking && all) {
		preempt_all_registrants(w);
	} else if (is_taking) {
		preempt_keys(w, key);
		take_over(w);
	} else {
		preempt_others(w, key);
	}
}

/* ---- REGISTER AND MOVE (§5.13.8) ---- */

static bool bad_list(struct work *w, unsigned byte)
{
	rsv_check(w->op, SENSE_ILLEGAL_REQUEST,
		  ASC_INVALID_FIELD_IN_PARAMETERS);
	w->op->u.sense.has_field = true;
	w->op->u.sense.field = (uint16_t)byte;
	return false;
}

static bool has_port(const struct work *w, uint16_t port)
{
	for (unsigned i = 0; i < MIN(w->nports, RSV_MAX); i++)
		if (w->ports[i] == port)
			return true;
	return false;
}

static bool may_move(struct work *w)
{
	const struct rsv_op *op = w->op;
	const struct rsv_out *o = &op->out;
	const struct dev_nexus_config *asks = &op->u.nexus->cfg;

	if (!op->old->type) {
		rsv_check(w->op, SENSE_ILLEGAL_REQUEST,
			  ASC_INVALID_FIELD_IN_CDB);
		return false;
	}
	if (op->old->holder != w->me) { /* or all registrants hold it */
		rsv_conflict(w->op);
		return false;
	}
	if (o->sa_key == 0)
		return bad_list(w, 8);
	find_ports(w, true);
	if (!has_port(w, o->port))
		return bad_list(w, 18);
	if (o->port == asks->relative_target_port &&
	    !strcmp(o->names[0], asks->initiator_port))
		return bad_list(w, 24);
	return true;
}

static void decide_move(struct work *w)
{
	const struct rsv_out *o = &w->op->out;
	int to;

	if (!may_move(w) ||
	    !begin(w, rsv_find(w->op->old, o->names[0], o->port) < 0))
		return;
	to = rsv_find(w->s, o->names[0], o->port);
	if (to < 0) {
		to = (int)w->s->n;
		add(w, o->sa_key, o->names[0], o->port);
	}
	w->s->regs[to].key = o->sa_key;
	w->s->holder = to;
	w->s->aptpl = o->aptpl;
	w->gone[w->me] = o->unregister;
	settle(w, true);
}

/* ---- REPLACE LOST RESERVATION (§5.13.11.3) ---- */

/* The lost registrations are unknown, so no nexus gets a unit attention. */
static void decide_replace(struct work *w)
{
	const struct rsv_out *o = &w->op->out;

	if (!w->op->old->lost) {
		rsv_check(w->op, SENSE_ILLEGAL_REQUEST, ASC_INVALID_RELEASE);
		return;
	}
	if (o->key || !o->sa_key) {
		bad_list(w, o->key ? 0 : 8);
		return;
	}
	if (!begin(w, 1))
		return;
	w->s->lost = false;
	w->s->n = 0;
	add(w, o->sa_key, w->op->u.nexus->cfg.initiator_port,
	    w->op->u.nexus->cfg.relative_target_port);
	w->s->type = o->type;
	w->s->holder = rsv_is_all_registrants(o->type) ? -1 : 0;
	w->s->aptpl = o->aptpl;
	w->s->generation = 0;
	settle(w, false);
}

/* ---- the table ---- */

struct action {
	bool anyone; /* false: only registrants, with their key */
	void (*decide)(struct work *w);
};

static const struct action actions[] = {
	[SCSI_PROUT_REGISTER] = { true, decide_register },
	[SCSI_PROUT_RESERVE] = { false, decide_reserve },
	[SCSI_PROUT_RELEASE] = { false, decide_release },
	[SCSI_PROUT_CLEAR] = { false, decide_clear },
	[SCSI_PROUT_PREEMPT] = { false, decide_preempt },
	[SCSI_PROUT_PREEMPT_AND_ABORT] = { false, decide_preempt },
	[SCSI_PROUT_REGISTER_IGNORE] = { true, decide_register_ignore },
	[SCSI_PROUT_REGISTER_AND_MOVE] = { false, decide_move },
	[SCSI_PROUT_REPLACE_LOST] = { true, decide_replace },
};

void rsv_decide_out(struct rsv_op *op)
{
	const struct action *a = &actions[op->out.action];
	struct work w = { .op = op,
			  .me = rsv_find_nexus(op->old, op->u.nexus) };

	scsi_port_device(op->u.nexus->cfg.initiator_port, w.by);
	if (rsv_is_spc2(op->old)) { /* SPC-2 §5.5.1: also for its holder */
		rsv_conflict(op);
		return;
	}
	if (!a->anyone &&
	    (w.me < 0 || op->old->regs[w.me].key != op->out.key)) {
		rsv_conflict(op);
		return;
	}
	a->decide(&w);
}
