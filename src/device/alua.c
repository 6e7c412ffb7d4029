/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alua.c: target port groups and their asymmetric access states (SPC-4
 * §5.11). What is known of them is an immutable snapshot that every worker has
 * a pointer to; a change visits each worker, as those of reservations do.
 *
 * Groups may have ports that are not ours: two daemons on one store each tell
 * of both, and whoever commands them sets both. Before a change that takes
 * access away is reported as done, what was admitted before has ended on every
 * unit: the other side may begin.
 */
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"

#define HOME 0u

struct dev_alua {
	unsigned n;
	struct dev_group groups[DEV_MAX_GROUPS];
};

struct alua_op {
	struct dev_round round;
	struct dev_server *server;
	unsigned from;
	const struct dev_nexus *by; /* who asked; compared only */
	struct dev_task *task;	    /* SET TARGET PORT GROUPS */
	unsigned nchanges;
	struct dev_group_change changes[DEV_MAX_GROUPS];
	struct dev_alua *next;
	const struct dev_alua *old;
	/* taking access away */
	bool drains;
	uint16_t lun;
	struct dev_range range;
	/* the end */
	int err;
	void (*done)(struct alua_op *op); /* on worker `from` */
	void (*then)(void *arg, int err);
	void *arg;
};

/* ---- what is known ---- */

static struct dev_group *find(struct dev_alua *a, uint16_t id)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->groups[i].id == id)
			return &a->groups[i];
	return NULL;
}

static bool has_port(const struct dev_group *g, uint16_t port)
{
	for (unsigned i = 0; i < g->nports; i++)
		if (g->ports[i] == port)
			return true;
	return false;
}

static bool is_ours(const struct dev_server *s, const struct dev_group *g)
{
	for (unsigned i = 0; i < s->nports; i++)
		if (has_port(g, (uint16_t)(s->first_port + i)))
			return true;
	return false;
}

static const struct dev_group *group_of(const struct dev_alua *a, uint16_t port)
{
	for (unsigned i = 0; a && i < a->n; i++)
		if (has_port(&a->groups[i], port))
			return &a->groups[i];
	return NULL;
}

bool dev_has_groups(const struct dev_lu *lu)
{
	return lu->server->has_groups;
}

static const struct dev_alua *known(const struct dev_nexus *n)
{
	return n->server->alua[n->cfg.worker];
}

static const struct dev_group *own_group(const struct dev_nexus *n)
{
	return group_of(known(n), n->cfg.relative_target_port);
}

void dev_nexus_access_init(struct dev_nexus *n)
{
	const struct dev_group *g = own_group(n);

	n->access = g ? g->state : DEV_ACCESS_OPTIMIZED;
}

uint16_t dev_nexus_group(const struct dev_nexus *n)
{
	const struct dev_group *g = own_group(n);

	return g ? g->id : 0;
}

/* ---- which commands are refused (§5.11.2.4 to §5.11.2.8) ---- */

uint16_t dev_inaccessible(const struct dev_task *t)
{
	if (t->row->flags & CMD_ANY_LUN)
		return 0;
	switch (t->nexus->access) {
	case DEV_ACCESS_STANDBY:
		return t->row->flags & ACC_STANDBY ? 0 : ASC_PORT_IN_STANDBY;
	case DEV_ACCESS_UNAVAILABLE:
		return t->row->flags & ACC_UNAVAILABLE ? 0
						       : ASC_PORT_UNAVAILABLE;
	default:
		return 0;
	}
}

/* ---- a change ---- */

static struct alua_op *op_of(struct dev_msg *m)
{
	return container_of(container_of(m, struct dev_round, msg),
			    struct alua_op, round);
}

static void come_back(struct dev_msg *m)
{
	struct alua_op *op = op_of(m);

	op->done(op);
}

static void end(struct alua_op *op, int err)
{
	op->err = err;
	dev_round_go(&op->round, HOME, op->from, come_back);
}

static void drain_next(struct alua_op *op);

static void drained_one(struct dev_range *r)
{
	struct alua_op *op = container_of(r, struct alua_op, range);

	dev_range_drop(r);
	op->lun++;
	drain_next(op);
}

/* Each unit's medium for ourselves, once: then nobody is at it who came
 * before. */
static void drain_next(struct alua_op *op)
{
	struct dev_lu *lu = NULL;

	while (op->lun < DEV_MAX_LUNS &&
	       (!(lu = dev_lu_get(op->server, op->lun)) || !lu->blocks))
		op->lun++;
	if (op->lun == DEV_MAX_LUNS)
		end(op, 0);
	else if (dev_range_take(&op->range, lu, HOME, 0, lu->blocks,
				DEV_HOLD_ALONE, drained_one))
		end(op, ERR_NOMEM);
}

static void visited_all(struct dev_round *r)
{
	struct alua_op *op = container_of(r, struct alua_op, round);

	free((void *)(uintptr_t)op->old);
	if (op->drains)
		drain_next(op);
	else
		end(op, 0);
}

static void tell(struct dev_nexus *n)
{
	for (uint16_t lun = 0; lun < DEV_MAX_LUNS; lun++)
		if (dev_lu_get(n->server, lun))
			dev_attention_set(n, lun, UA_ACCESS_CHANGED);
}

static void visit(struct dev_round *r, unsigned worker)
{
	struct alua_op *op = container_of(r, struct alua_op, round);
	struct dev_server *s = op->server;

	s->alua[worker] = op->next;
	list_for_each(it, &s->nexuses[worker]) {
		struct dev_nexus *n = list_entry(it, struct dev_nexus, link);

		dev_nexus_access_init(n);
		if (n != op->by)
			tell(n);
	}
	dev_round_next(r);
}

static bool is_active(enum dev_access state)
{
	return state <= DEV_ACCESS_NON_OPTIMIZED;
}

/* By command only groups of ours change; others would not know. */
static int apply(struct alua_op *op, const struct dev_group_change *c)
{
	struct dev_group *g = find(op->next, c->id);

	if (!g)
		return ERR_NOT_FOUND;
	if (op->task && g->state != c->state && !is_ours(op->server, g))
		return ERR_UNSUPPORTED;
	if (is_active(g->state) && !is_active(c->state) &&
	    is_ours(op->server, g))
		op->drains = true;
	if (g->state != c->state)
		g->status = op->task ? 1 : 2; /* SPC-4 table 265 */
	g->state = c->state;
	if (c->set_preferred)
		g->preferred = c->preferred;
	return 0;
}

static int decide(struct alua_op *op)
{
	int err = 0;

	op->old = op->server->alua[HOME];
	op->next = malloc(sizeof(*op->next));
	if (!op->next)
		return ERR_NOMEM;
	*op->next = *op->old;
	for (unsigned i = 0; i < op->nchanges && !err; i++)
		err = apply(op, &op->changes[i]);
	if (!err && memcmp(op->next, op->old, sizeof(*op->next)) != 0)
		return 0;
	free(op->next);
	op->next = NULL;
	return err;
}

static void arrive(struct dev_msg *m)
{
	struct alua_op *op = op_of(m);
	int err = decide(op);

	if (!op->next) {
		end(op, err);
		return;
	}
	op->round.visit = visit;
	op->round.done = visited_all;
	dev_round_start(&op->round, HOME);
}

static void start(struct alua_op *op)
{
	op->round.server = op->server;
	dev_round_go(&op->round, op->from, HOME, arrive);
}

/* ---- from the daemon ---- */

static void told(struct alua_op *op)
{
	void (*then)(void *arg, int err) = op->then;
	void *arg = op->arg;
	int err = op->err;

	free(op);
	then(arg, err);
}

int dev_group_set(struct dev_server *s, const struct dev_group_change *c,
		  void (*done)(void *arg, int err), void *arg)
{
	struct alua_op *op = s->has_groups ? calloc(1, sizeof(*op)) : NULL;

	if (!op)
		return s->has_groups ? ERR_NOMEM : ERR_NOT_FOUND;
	op->server = s;
	op->from = HOME;
	op->changes[op->nchanges++] = *c;
	op->done = told;
	op->then = done;
	op->arg = arg;
	start(op);
	return 0;
}

int dev_group_add(struct dev_server *s, const struct dev_group *g)
{
	struct dev_alua *a = s->alua_first;

	if (!a)
		a = s->alua_first = calloc(1, sizeof(*a));
	if (!a)
		return ERR_NOMEM;
	if (find(a, g->id))
		return ERR_BUSY;
	for (unsigned i = 0; i < g->nports; i++)
		if (group_of(a, g->ports[i]))
			return ERR_BUSY;
	if (a->n == DEV_MAX_GROUPS)
		return ERR_LIMIT;
	a->groups[a->n++] = *g;
	s->has_groups = true;
	for (unsigned w = 0; w < DEV_MAX_WORKERS; w++)
		s->alua[w] = a;
	return 0;
}

unsigned dev_groups(const struct dev_server *s,
		    struct dev_group out[DEV_MAX_GROUPS])
{
	const struct dev_alua *a = s->alua[HOME];

	for (unsigned i = 0; a && i < a->n; i++)
		out[i] = a->groups[i];
	return a ? a->n : 0;
}

void dev_server_groups_fini(struct dev_server *s)
{
	free((void *)(uintptr_t)s->alua[HOME]);
}

/* ---- REPORT TARGET PORT GROUPS (SPC-4 §6.37) ---- */

#define FORMAT_EXTENDED 0x20 /* PARAMETER DATA FORMAT 001b */
#define SUPPORTED	0x0f /* U_SUP S_SUP AN_SUP AO_SUP */

static size_t put_group(const struct dev_group *g, uint8_t *p)
{
	size_t at = 8;

	p[0] = (uint8_t)((g->preferred ? 0x80 : 0) | g->state);
	p[1] = SUPPORTED;
	put_be16(p + 2, g->id);
	p[5] = g->status;
	p[7] = (uint8_t)g->nports;
	for (unsigned i = 0; i < g->nports; i++, at += 4)
		put_be16(p + at + 2, g->ports[i]);
	return at;
}

void dev_report_groups(struct dev_task *t)
{
	const struct dev_alua *a = known(t->nexus);
	unsigned format = t->cdb[1] & 0xe0;
	size_t at = format ? 8 : 4;
	uint8_t *p;

	if (format && format != FORMAT_EXTENDED) {
		dev_bad_field(t, 1, 7);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	if (format)
		p[4] = 0x10; /* and no transition takes any time */
	for (unsigned i = 0; i < a->n; i++)
		at += put_group(&a->groups[i], p + at);
	put_be32(p, (uint32_t)(at - 4));
	dev_return(t, at, get_be32(t->cdb + 6));
}

/* ---- SET TARGET PORT GROUPS (SPC-4 §6.45) ---- */

#define LIST_HEAD 4
#define LIST_MAX  (LIST_HEAD + 4 * DEV_MAX_GROUPS)

int dev_prepare_set_groups(struct dev_task *t, uint64_t *out_len)
{
	uint32_t len = get_be32(t->cdb + 6);

	if (len && (len < LIST_HEAD || len > LIST_MAX || len % 4))
		return dev_refuse_length(t);
	*out_len = len;
	return 0;
}

static void set_done(struct alua_op *op)
{
	struct dev_task *t = op->task;
	int err = op->err;

	free(op);
	if (!err)
		dev_good(t);
	else if (err == ERR_NOT_FOUND) /* no such group */
		dev_bad_parameter(t, LIST_HEAD + 2);
	else if (err == ERR_NOMEM)
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_INSUFFICIENT_RESOURCES);
	else
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_SET_GROUPS_FAILED);
}

/* False: the task was ended. */
static bool take_list(struct dev_task *t, struct alua_op *op)
{
	const uint8_t *p = t->buf;

	for (uint32_t at = LIST_HEAD; at < t->out_len; at += 4) {
		unsigned state = p[at] & 0x0f;

		if (state > DEV_ACCESS_UNAVAILABLE || (p[at] & 0xf0)) {
			dev_bad_parameter(t, at);
			return false;
		}
		op->changes[op->nchanges++] = (struct dev_group_change){
			.id = get_be16(p + at + 2),
			.state = (enum dev_access)state,
		};
	}
	return true;
}

void dev_set_groups(struct dev_task *t)
{
	struct alua_op *op;

	if (t->out_len != get_be32(t->cdb + 6)) {
		dev_bad_length(t);
		return;
	}
	op = calloc(1, sizeof(*op));
	if (!op) {
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_INSUFFICIENT_RESOURCES);
		return;
	}
	op->server = t->nexus->server;
	op->from = t->nexus->cfg.worker;
	op->by = t->nexus;
	op->task = t;
	op->done = set_done;
	if (take_list(t, op))
		start(op);
	else
		free(op);
}
