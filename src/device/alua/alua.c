/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alua.c: target port groups and their asymmetric access states (SPC-4 §5.16).
 * Every worker has a pointer to an immutable snapshot of the groups; a change
 * visits each worker, as a change of reservations does.
 *
 * A group may have ports of another gateway: two daemons that share a backstore
 * each report the groups of both, and the administrator sets the states in both.
 * A change that removes access from a group is complete only after every command
 * that the old state admitted has ended on every unit: then the administrator may
 * let the other gateway write.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "device/alua/alua.h"
#include "device/unit/attention.h"
#include "device/unit/change.h"
#include "device/unit/command.h"
#include "device/unit/condition.h"
#include "device/unit/itl.h"
#include "device/unit/ports.h"
#include "device/unit/range.h"
#include "device/unit/shared.h"

struct dev_alua {
	unsigned n;
	struct dev_group groups[DEV_MAX_GROUPS];
	unsigned noffline;
	uint16_t offline[DEV_MAX_OFFLINE];
};

struct alua_op {
	struct dev_change change;
	struct dev_server *server;
	unsigned from;
	const struct dev_nexus *by;    /* the requester; compared only */
	struct dev_task *task;	       /* SET TARGET PORT GROUPS, or NULL */
	const struct dev_ports *ports; /* of the requester */
	unsigned nchanges;
	struct dev_group_change changes[DEV_MAX_GROUPS];
	uint16_t port; /* of dev_port_set; 0: not a change of a port */
	bool offline;
	/* of dev_groups_replace: all groups */
	bool replaces;
	unsigned nwishes;
	struct dev_group_wish wishes[DEV_MAX_GROUPS];
	/* the snapshots during the drain (NULL: no drain) and afterwards */
	struct dev_alua *during, *next;
	const struct dev_alua *old;
	/* the visit in progress */
	const struct dev_alua *now;
	int ua; /* enum dev_ua for the nexuses, or NO_ATTENTION */
	void (*visited)(struct alua_op *op); /* called after the visit */
	/* the drain: the units below this number are drained */
	unsigned lun;
	struct dev_range range;
	int drain_err; /* why the drain failed */
	/* the end of the change */
	int err;
	void (*done)(struct alua_op *op); /* on worker `from` */
	void (*then)(void *arg, int err);
	void *arg;
};

#define NO_ATTENTION (-1)

/* ---- the snapshot ---- */

static const struct dev_alua no_groups;

static const struct dev_group *group_of_id(const struct dev_alua *a,
					   uint16_t id)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->groups[i].id == id)
			return &a->groups[i];
	return NULL;
}

static struct dev_group *find_group(struct dev_alua *a, uint16_t id)
{
	const struct dev_group *g = group_of_id(a, id);

	return g ? &a->groups[g - a->groups] : NULL;
}

static bool has_port(const struct dev_group *g, uint16_t port)
{
	for (unsigned i = 0; i < g->nports; i++)
		if (g->ports[i] == port)
			return true;
	return false;
}

/* is_shown returns whether the target with these ports reports the port: one of its
 * own, or a port of another gateway. */
static bool is_shown(const struct dev_server *s, const struct dev_ports *ports,
		     uint16_t port)
{
	return !dev_port_is_own(s, port) || dev_ports_have(ports, port);
}

/* shown_part copies g with the ports that the target reports. False: it reports none of
 * them, so the group belongs to other targets. */
static bool shown_part(const struct dev_server *s,
		       const struct dev_ports *ports, const struct dev_group *g,
		       struct dev_group *part)
{
	*part = *g;
	part->nports = 0;
	for (unsigned i = 0; i < g->nports; i++)
		if (is_shown(s, ports, g->ports[i]))
			part->ports[part->nports++] = g->ports[i];
	return part->nports || !g->nports;
}

static bool is_ours(const struct dev_server *s, const struct dev_group *g)
{
	for (unsigned i = 0; i < g->nports; i++)
		if (dev_port_is_own(s, g->ports[i]))
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

static const struct dev_alua *known_alua(const struct dev_nexus *n)
{
	const struct dev_alua *a = n->server->alua[n->cfg.worker];

	return a ? a : &no_groups;
}

static bool has_groups(const struct dev_server *s)
{
	return dev_setting(&s->has_groups);
}

static const struct dev_group *own_group(const struct dev_nexus *n)
{
	return group_of(known_alua(n), n->cfg.relative_target_port);
}

void dev_nexus_access_init(struct dev_nexus *n)
{
	const struct dev_group *g = own_group(n);

	n->access = g ? g->state : DEV_ACCESS_OPTIMIZED;
}

uint16_t dev_group_at(const struct dev_nexus *n, const struct dev_lu *lu)
{
	const struct dev_group *g = own_group(n);
	const struct dev_lu_group *of;

	if (!lu->shared)
		return g ? g->id : 0;
	of = dev_lu_group_of(lu, n->cfg.worker, n->cfg.relative_target_port);
	return of ? of->id : 0;
}

/* SPC-4 §5.16.2.4.5: an unavailable port reports PERIPHERAL QUALIFIER 001b. */
uint8_t dev_peripheral_qualifier(const struct dev_nexus *n,
				 const struct dev_lu *lu)
{
	return dev_access_at(n, lu) == DEV_ACCESS_UNAVAILABLE ? 0x20 : 0;
}

/* ---- which commands are refused (§5.16.2.4 and §5.16.2.5) ---- */

uint16_t dev_inaccessible(const struct dev_task *t)
{
	if (t->own.row->flags & CMD_ANY_LUN)
		return 0;
	switch (t->lu->shared ? t->own.begun.itl->access : t->nexus->access) {
	case DEV_ACCESS_STANDBY:
		return t->own.row->flags & ACC_STANDBY ? 0
						       : ASC_PORT_IN_STANDBY;
	case DEV_ACCESS_UNAVAILABLE:
		return t->own.row->flags & ACC_UNAVAILABLE
			       ? 0
			       : ASC_PORT_UNAVAILABLE;
	case DEV_ACCESS_TRANSITIONING: /* permits the same commands */
		return t->own.row->flags & ACC_UNAVAILABLE
			       ? 0
			       : ASC_ACCESS_TRANSITION;
	default:
		return 0;
	}
}

/* ---- a change of the groups ---- */

static struct alua_op *op_of(struct dev_change *c)
{
	return container_of(c, struct alua_op, change);
}

static void end_change(struct alua_op *op, int err)
{
	op->err = err;
	dev_change_end(&op->change);
}

/* ---- a visit: every worker takes a new snapshot ---- */

static void set_attentions(struct dev_nexus *n, enum dev_ua ua)
{
	for (struct dev_itl *i = dev_itl_first(n); i; i = dev_itl_next(i))
		if (!i->lu->shared) /* those have groups of their own */
			dev_attention_set(i, ua);
}

/* Replaces the snapshot of a nexus's worker by `now`. TPGS, the designator of the group
 * (VPD page 83h) and IALUAE (mode page 1Ch) depend on the groups. */
static void visit_nexus(struct alua_op *op, struct dev_nexus *n,
			const struct dev_alua *was)
{
	uint16_t port = n->cfg.relative_target_port;
	const struct dev_group *old = group_of(was, port);
	const struct dev_group *now = group_of(op->now, port);
	bool has_alua = op->now->n, had_alua = was && was->n;

	dev_nexus_access_init(n);
	if (op->ua != NO_ATTENTION && n != op->by)
		set_attentions(n, (enum dev_ua)op->ua);
	if ((old ? old->id : 0) != (now ? now->id : 0) || had_alua != has_alua)
		set_attentions(n, UA_INQUIRY_CHANGED);
	if (had_alua != has_alua)
		set_attentions(n, UA_MODE_CHANGED);
}

static void visit_alua(struct dev_change *c, unsigned worker)
{
	struct alua_op *op = op_of(c);
	struct dev_server *s = op->server;
	const struct dev_alua *was = s->alua[worker];

	s->alua[worker] = op->now == &no_groups ? NULL : op->now;
	list_for_each(it, &s->nexuses[worker])
		visit_nexus(op, list_entry(it, struct dev_nexus, link), was);
	for (struct dev_lu *lu = dev_lu_from(s, 0); lu; lu = dev_lu_after(lu))
		dev_lu_changed(lu);
	dev_round_next(&c->round);
}

static void alua_visited(struct dev_change *c)
{
	struct alua_op *op = op_of(c);

	op->visited(op);
}

static void publish(struct alua_op *op, const struct dev_alua *now, int ua,
		    void (*then)(struct alua_op *op))
{
	struct dev_server *s = op->server;

	/* before the attentions, so that INQUIRY data are the new ones after them */
	__atomic_store_n(&s->has_groups, now->n != 0, __ATOMIC_RELAXED);
	op->now = now;
	op->ua = ua;
	op->visited = then;
	dev_change_visit(&op->change);
}

/* ---- the drain: groups that lose access are transitioning until it ends ---- */

static void drain_next(struct alua_op *op);

static void drained_one(struct dev_range *r)
{
	struct alua_op *op = container_of(r, struct alua_op, range);

	op->lun = r->lu->cfg.lun + 1u;
	dev_range_drop(r);
	drain_next(op);
}

static void change_done(struct alua_op *op)
{
	if (op->old != &no_groups)
		free((void *)(uintptr_t)op->old);
	free(op->during);
	end_change(op, 0);
}

static void change_undone(struct alua_op *op)
{
	free(op->during);
	free(op->next);
	end_change(op, op->drain_err);
}

static void change_back(struct alua_op *op, int err)
{
	op->drain_err = err;
	publish(op, op->old, op->task ? NO_ATTENTION : UA_ACCESS_CHANGE_FAILED,
		change_undone);
}

/* SANITIZE writes to the whole medium, in the background and without a fence. */
static bool is_sanitizing(struct dev_server *s)
{
	for (struct dev_lu *lu = dev_lu_from(s, 0); lu; lu = dev_lu_after(lu))
		if (dev_condition(lu) == LU_SANITIZING)
			return true;
	return false;
}

/* drain_next takes and drops exclusive access to the blocks of each unit, one
 * unit after the other; so every command admitted earlier has ended afterwards. If
 * drain_next cannot take the range, the change fails (§5.16.2.5). */
static void drain_next(struct alua_op *op)
{
	struct dev_lu *lu = dev_lu_from(op->server, op->lun);

	while (lu && (!lu->blocks || lu->shared))
		lu = dev_lu_after(lu);
	if (!lu && is_sanitizing(op->server))
		change_back(op, ERR_BUSY);
	else if (!lu)
		publish(op, op->next, UA_ACCESS_CHANGED, change_done);
	else if (dev_range_take(&op->range, lu, DEV_HOME, 0, lu->blocks,
				DEV_HOLD_ALONE, drained_one))
		change_back(op, ERR_NOMEM);
}

/* ---- decisions, one at a time ---- */

/* Returns whether a port of this gateway in the new group i serves the medium before the
 * change, and not after it. A port without a group serves it. */
static bool loses_access(const struct alua_op *op, unsigned i)
{
	const struct dev_group *g = &op->next->groups[i];

	for (unsigned k = 0; k < g->nports; k++) {
		const struct dev_group *was = group_of(op->old, g->ports[k]);

		if (dev_port_is_own(op->server, g->ports[k]) &&
		    !dev_access_is_active(g->state) &&
		    (!was || dev_access_is_active(was->state)))
			return true;
	}
	return false;
}

/* A command changes groups with a port of this gateway only. Other gateways would
 * not learn of the change. */
static int apply_state(struct alua_op *op, const struct dev_group_change *c)
{
	struct dev_group *g = find_group(op->next, c->id), part;

	if (!g || (op->task && !shown_part(op->server, op->ports, g, &part)))
		return ERR_NOT_FOUND;
	if (op->task && g->state != c->state && !is_ours(op->server, g))
		return ERR_UNSUPPORTED;
	if (g->state != c->state)
		g->status = op->task ? 1 : 2; /* SPC-4 table 308 */
	g->state = c->state;
	if (c->set_preferred)
		g->preferred = c->preferred;
	return 0;
}

static int apply_port(struct alua_op *op)
{
	struct dev_alua *a = op->next;
	unsigned i = 0;

	if (!group_of(a, op->port))
		return ERR_NOT_FOUND;
	if (dev_port_is_own(op->server, op->port))
		return ERR_UNSUPPORTED;
	while (i < a->noffline && a->offline[i] != op->port)
		i++;
	if (op->offline && i == DEV_MAX_OFFLINE)
		return ERR_LIMIT;
	if (op->offline && i == a->noffline)
		a->offline[a->noffline++] = op->port;
	if (!op->offline && i < a->noffline) {
		a->offline[i] = a->offline[--a->noffline];
		a->offline[a->noffline] = 0;
	}
	return 0;
}

/* The ports that are offline stay so, as far as they are in a group. */
static void replace_groups(struct alua_op *op)
{
	struct dev_alua *a = op->next;
	unsigned noffline = a->noffline;

	memset(a->groups, 0, sizeof(a->groups));
	a->n = op->nwishes;
	for (unsigned i = 0; i < op->nwishes; i++) {
		const struct dev_group_wish *w = &op->wishes[i];
		const struct dev_group *was = group_of_id(op->old, w->group.id);
		struct dev_group *g = &a->groups[i];

		*g = w->group;
		if (was && !w->set_state)
			g->state = was->state;
		if (was && !w->set_preferred)
			g->preferred = was->preferred;
		g->status = !was ? 0 : was->state != g->state ? 2 : was->status;
	}
	a->noffline = 0;
	for (unsigned i = 0; i < noffline; i++)
		if (group_of(a, a->offline[i]))
			a->offline[a->noffline++] = a->offline[i];
	for (unsigned i = a->noffline; i < noffline; i++)
		a->offline[i] = 0;
}

/* make_during sets op->during to the snapshot for the drain, in which each group
 * that loses access is transitioning; NULL: no group loses access. ERR_NOMEM. */
static int make_during(struct alua_op *op)
{
	for (unsigned i = 0; i < op->next->n; i++) {
		if (!loses_access(op, i))
			continue;
		if (!op->during)
			op->during = malloc(sizeof(*op->during));
		if (!op->during)
			return ERR_NOMEM;
	}
	if (!op->during)
		return 0;
	*op->during = *op->next;
	for (unsigned i = 0; i < op->next->n; i++)
		if (loses_access(op, i))
			op->during->groups[i].state = DEV_ACCESS_TRANSITIONING;
	return 0;
}

static int make_next(struct alua_op *op)
{
	int err = 0;

	op->old = op->server->alua[DEV_HOME];
	if (!op->old)
		op->old = &no_groups;
	op->next = malloc(sizeof(*op->next));
	if (!op->next)
		return ERR_NOMEM;
	*op->next = *op->old;
	if (op->replaces)
		replace_groups(op);
	if (op->port)
		err = apply_port(op);
	for (unsigned i = 0; i < op->nchanges && !err; i++)
		err = apply_state(op, &op->changes[i]);
	if (!err)
		err = make_during(op);
	if (!err && memcmp(op->next, op->old, sizeof(*op->next)) != 0)
		return 0;
	free(op->next);
	op->next = NULL;
	return err;
}

static void decide_alua(struct dev_change *c)
{
	struct alua_op *op = op_of(c);
	int err = make_next(op);

	if (!op->next)
		end_change(op, err);
	else if (op->during)
		publish(op, op->during, NO_ATTENTION, drain_next);
	else
		publish(op, op->next, UA_ACCESS_CHANGED, change_done);
}

static void alua_done(struct dev_change *c)
{
	struct alua_op *op = op_of(c);

	op->done(op);
}

static const struct dev_change_ops alua_ops = {
	.decide = decide_alua,
	.visit = visit_alua,
	.visited = alua_visited,
	.done = alua_done,
};

static void start_change(struct alua_op *op)
{
	dev_change_start(&op->change, op->server, &op->server->alua_changes,
			 op->from, &alua_ops);
}

/* ---- changes by the daemon ---- */

static void implicit_done(struct alua_op *op)
{
	void (*then)(void *arg, int err) = op->then;
	void *arg = op->arg;
	int err = op->err;

	free(op);
	then(arg, err);
}

static struct alua_op *implicit_op(struct dev_server *s,
				   void (*done)(void *arg, int err), void *arg)
{
	struct alua_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->server = s;
	op->from = DEV_HOME;
	op->done = implicit_done;
	op->then = done;
	op->arg = arg;
	return op;
}

int dev_group_set(struct dev_server *s, const struct dev_group_change *c,
		  void (*done)(void *arg, int err), void *arg)
{
	struct alua_op *op = has_groups(s) ? implicit_op(s, done, arg) : NULL;

	if (!op)
		return has_groups(s) ? ERR_NOMEM : ERR_NOT_FOUND;
	op->changes[op->nchanges++] = *c;
	start_change(op);
	return 0;
}

int dev_port_set(struct dev_server *s, uint16_t port, bool offline,
		 void (*done)(void *arg, int err), void *arg)
{
	struct alua_op *op = has_groups(s) ? implicit_op(s, done, arg) : NULL;

	if (!op)
		return has_groups(s) ? ERR_NOMEM : ERR_NOT_FOUND;
	op->port = port;
	op->offline = offline;
	start_change(op);
	return 0;
}

static void take_wishes(struct alua_op *op, const struct dev_group_wish *wishes,
			unsigned n)
{
	op->replaces = true;
	op->nwishes = n;
	if (n)
		memcpy(op->wishes, wishes, n * sizeof(*wishes));
}

int dev_groups_replace(struct dev_server *s,
		       const struct dev_group_wish *wishes, unsigned n,
		       void (*done)(void *arg, int err), void *arg)
{
	struct alua_op *op = implicit_op(s, done, arg);

	if (!op)
		return ERR_NOMEM;
	take_wishes(op, wishes, n);
	start_change(op);
	return 0;
}

int dev_groups_check(struct dev_server *s, const struct dev_group_wish *wishes,
		     unsigned n)
{
	struct alua_op *op = implicit_op(s, NULL, NULL);
	int err = ERR_NOMEM;

	if (!op)
		return err;
	take_wishes(op, wishes, n);
	err = make_next(op);
	if (op->during && is_sanitizing(s))
		err = ERR_BUSY;
	free(op->during);
	free(op->next);
	free(op);
	return err;
}

/* The first i ports of g have the port of index i. */
static bool is_repeated(const struct dev_group *g, unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (g->ports[j] == g->ports[i])
			return true;
	return false;
}

int dev_group_add(struct dev_server *s, const struct dev_group *g)
{
	struct dev_alua *a = s->alua_first;

	if (!a)
		a = s->alua_first = calloc(1, sizeof(*a));
	if (!a)
		return ERR_NOMEM;
	if (find_group(a, g->id))
		return ERR_BUSY;
	for (unsigned i = 0; i < g->nports; i++)
		if (group_of(a, g->ports[i]) || is_repeated(g, i))
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
	const struct dev_alua *a = s->alua[DEV_HOME];

	for (unsigned i = 0; a && i < a->n; i++)
		out[i] = a->groups[i];
	return a ? a->n : 0;
}

unsigned dev_offline_ports(const struct dev_server *s,
			   uint16_t out[DEV_MAX_OFFLINE])
{
	const struct dev_alua *a = s->alua[DEV_HOME];

	for (unsigned i = 0; a && i < a->noffline; i++)
		out[i] = a->offline[i];
	return a ? a->noffline : 0;
}

void dev_server_groups_fini(struct dev_server *s)
{
	free((void *)(uintptr_t)s->alua[DEV_HOME]);
}

/* ---- REPORT TARGET PORT GROUPS (SPC-4 §6.37) ---- */

#define FORMAT_EXTENDED 0x20 /* PARAMETER DATA FORMAT 001b */
/* A change waits for the commands in progress. With this value initiators wait
 * that long before they regard the path as failed. */
#define TRANSITION_SECONDS 60

static size_t put_group(const struct dev_group *g, uint8_t *p)
{
	const struct dev_group_head head = { .id = g->id,
					     .state = g->state,
					     .preferred = g->preferred,
					     .status = g->status };

	return dev_put_group(p, &head, g->ports, g->nports);
}

/* A secondary target port group has the ports that are offline (§5.16.2.1); its
 * identifier differs from those of all primary groups. */
static size_t put_offline(const struct dev_alua *a, uint8_t *p)
{
	struct dev_group g = { .id = UINT16_MAX,
			       .state = DEV_ACCESS_OFFLINE,
			       .status = 2,
			       .nports = a->noffline };

	if (!a->noffline)
		return 0;
	for (unsigned i = 0; i < a->n; i++)
		if (a->groups[i].id == g.id) {
			g.id--;
			i = UINT_MAX; /* compares with all groups again */
		}
	memcpy(g.ports, a->offline, sizeof(g.ports));
	return put_group(&g, p);
}

void dev_report_groups(struct dev_task *t)
{
	const struct dev_ports *ports = dev_ports_of(t->nexus);
	const struct dev_alua *a = known_alua(t->nexus);
	struct dev_group part;
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
	if (format) {
		p[4] = 0x10;
		p[5] = TRANSITION_SECONDS;
	}
	for (unsigned i = 0; i < a->n && !t->lu->shared; i++)
		if (shown_part(t->nexus->server, ports, &a->groups[i], &part))
			at += put_group(&part, p + at);
	at += t->lu->shared ? dev_put_lu_groups(t, p + at)
			    : put_offline(a, p + at);
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
		return dev_bad_length(t);
	*out_len = len;
	return 0;
}

static void set_done(struct alua_op *op)
{
	struct dev_task *t = op->task;
	int err = op->err;

	free(op);
	dev_groups_set(t, err);
}

/* take_list copies the parameter list to op; false: take_list ended t. */
static bool take_list(struct dev_task *t, struct alua_op *op)
{
	const uint8_t *p = t->own.mem.buf;

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
		dev_no_resources(t);
		return;
	}
	op->server = t->nexus->server;
	op->from = t->nexus->cfg.worker;
	op->by = t->nexus;
	op->ports = dev_ports_of(t->nexus);
	op->task = t;
	op->done = set_done;
	if (!take_list(t, op)) {
		free(op);
	} else if (t->lu->shared) {
		dev_regroup(t, op->changes, op->nchanges);
		free(op);
	} else {
		start_change(op);
	}
}
