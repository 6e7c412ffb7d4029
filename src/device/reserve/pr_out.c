/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pr_out.c: PERSISTENT RESERVE OUT (SPC-4 §6.16): checks the CDB and the parameter
 * list. pr_state.c applies the command to the reservations.
 */
#include <stdlib.h>
#include <string.h>

#include "device/reserve/reserve.h"
#include "device/unit/command.h"

#define LIST_MIN    24
#define LIST_MAX    65536u
#define IDS_AT	    28 /* after the length of the TransportIDs */
#define BYTE_FLAGS  20
#define FLAG_SPEC_I 0x08
#define FLAG_ALL_TG 0x04
#define FLAG_APTPL  0x01
#define MOVE_UNREG  0x02
#define MOVE_ID_AT  24
#define TYPE_MASK   0x0f
#define SCOPE_SHIFT 4

static bool moves(const struct dev_task *t)
{
	return t->own.row->sa == SCSI_PROUT_REGISTER_AND_MOVE;
}

static bool registers(const struct dev_task *t)
{
	return t->own.row->sa == SCSI_PROUT_REGISTER ||
	       t->own.row->sa == SCSI_PROUT_REGISTER_IGNORE;
}

static bool type_ok(unsigned type)
{
	return type == RSV_TYPE_WE || type == RSV_TYPE_EA ||
	       (type >= RSV_TYPE_WE_RO && type <= RSV_TYPE_EA_AR);
}

/* RESERVE, RELEASE, PREEMPT and PREEMPT AND ABORT use scope and type. */
static int check_type(struct dev_task *t)
{
	switch (t->own.row->sa) {
	case SCSI_PROUT_RESERVE:
	case SCSI_PROUT_RELEASE:
	case SCSI_PROUT_PREEMPT:
	case SCSI_PROUT_PREEMPT_AND_ABORT:
	case SCSI_PROUT_REPLACE_LOST:
		if (t->cdb[2] >> SCOPE_SHIFT) /* only LU_SCOPE (table 77) */
			return dev_bad_field(t, 2, 7);
		if (!type_ok(t->cdb[2] & TYPE_MASK))
			return dev_bad_field(t, 2, 3);
		return 0;
	default:
		return 0;
	}
}

int dev_prepare_pr_out(struct dev_task *t, uint64_t *out_len)
{
	uint32_t len = get_be32(t->cdb + 5);

	if (check_type(t))
		return 1;
	/* §6.16.1: 24 bytes, except for actions with TransportIDs */
	if (len < LIST_MIN || len > LIST_MAX ||
	    (len != LIST_MIN && !moves(t) && !registers(t)))
		return dev_bad_length(t);
	*out_len = len;
	return 0;
}

/* ---- the parameter list ---- */

/* §7.6.4.6: REGISTER permits the name of a device, which stands for all of its
 * ports. REGISTER AND MOVE needs the name of one port. */
static bool take_id(const struct dev_task *t, struct rsv_out *o,
		    const uint8_t *p, size_t len, size_t *used)
{
	char *name = o->names[o->nnames];
	int err = scsi_transportid_get(p, len, name, used);

	if (err == ERR_UNSUPPORTED && !moves(t))
		err = scsi_transportid_get_device(p, len, name, used);
	return !err;
}

/* take_ids decodes the TransportIDs of p[at .. end); false: take_ids ended t. */
static bool take_ids(struct dev_task *t, struct rsv_out *o, const uint8_t *p,
		     size_t at, size_t end)
{
	size_t most = (end - at) / LIST_MIN, used;

	if (most > RSV_MAX)
		most = RSV_MAX;
	if (at == end)
		return true;
	if (most)
		o->names = malloc(most * sizeof(o->names[0]));
	if (most && !o->names) {
		dev_no_resources(t);
		return false;
	}
	while (at < end) {
		if (o->nnames == most ||
		    !take_id(t, o, p + at, end - at, &used))
			return !dev_bad_parameter(t, (unsigned)at);
		o->nnames++;
		at += used;
	}
	return true;
}

/* REGISTER, REGISTER AND IGNORE EXISTING KEY: §6.16.3, table 175 */
static bool take_register(struct dev_task *t, struct rsv_out *o,
			  const uint8_t *p, size_t len)
{
	o->spec_i_pt = p[BYTE_FLAGS] & FLAG_SPEC_I;
	o->all_tg_pt = p[BYTE_FLAGS] & FLAG_ALL_TG;
	o->aptpl = p[BYTE_FLAGS] & FLAG_APTPL;
	if (o->aptpl && !rsv_keeps(t->lu))
		return !dev_bad_parameter(t, BYTE_FLAGS);
	if (!o->spec_i_pt)
		return len == LIST_MIN || !dev_bad_length(t);
	if (o->action == SCSI_PROUT_REGISTER_IGNORE) /* §5.13.7.3 */
		return !dev_bad_parameter(t, BYTE_FLAGS);
	if (len < IDS_AT || get_be32(p + LIST_MIN) != len - IDS_AT)
		return !dev_bad_length(t);
	return take_ids(t, o, p, IDS_AT, len);
}

/* REGISTER AND MOVE: §6.16.4, table 176 */
static bool take_move(struct dev_task *t, struct rsv_out *o, const uint8_t *p,
		      size_t len)
{
	o->unregister = p[17] & MOVE_UNREG;
	o->aptpl = p[17] & FLAG_APTPL;
	o->port = get_be16(p + 18);
	if (o->aptpl && !rsv_keeps(t->lu))
		return !dev_bad_parameter(t, 17);
	if (get_be32(p + 20) != len - MOVE_ID_AT || len == MOVE_ID_AT)
		return !dev_bad_length(t);
	if (!take_ids(t, o, p, MOVE_ID_AT, len))
		return false;
	return o->nnames == 1 || !dev_bad_parameter(t, MOVE_ID_AT);
}

/* REPLACE LOST RESERVATION uses no flag except APTPL (§6.16.3). */
static bool take_replace(struct dev_task *t, struct rsv_out *o,
			 const uint8_t *p)
{
	o->aptpl = p[BYTE_FLAGS] & FLAG_APTPL;
	return !o->aptpl || rsv_keeps(t->lu) ||
	       !dev_bad_parameter(t, BYTE_FLAGS);
}

static bool take_list(struct dev_task *t, struct rsv_out *o)
{
	const uint8_t *p = t->own.mem.buf;
	size_t len = t->out_len;

	if (len != get_be32(t->cdb + 5)) /* The initiator sent less. */
		return !dev_bad_length(t);
	o->action = (uint8_t)t->own.row->sa;
	o->type = (enum rsv_type)(t->cdb[2] & TYPE_MASK);
	o->key = get_be64(p);
	o->sa_key = get_be64(p + 8);
	if (moves(t))
		return take_move(t, o, p, len);
	if (registers(t))
		return take_register(t, o, p, len);
	if (o->action == SCSI_PROUT_REPLACE_LOST)
		return take_replace(t, o, p);
	return true;
}

static void decide(struct dev_task *t, const struct rsv_out *o)
{
	struct rsv_op *op = rsv_op_new(t, rsv_decide_out);

	if (!op) {
		free(o->names);
		return;
	}
	op->out = *o;
	rsv_op_start(op);
}

/* ---- names of devices: a visit to all workers finds their ports ---- */

struct search {
	struct dev_round round;
	struct dev_task *task;
	struct rsv_out out;
	unsigned n;
	bool too_many;
	char found[RSV_MAX][SCSI_PORT_NAME_MAX + 1];
};

static void found(struct search *s, const char *port)
{
	for (unsigned i = 0; i < s->n; i++)
		if (!strcmp(s->found[i], port))
			return;
	if (s->n == RSV_MAX)
		s->too_many = true;
	else
		memcpy(s->found[s->n++], port, strlen(port) + 1);
}

static bool is_wanted(const struct search *s, const char *port)
{
	for (unsigned i = 0; i < s->out.nnames; i++)
		if (!strcmp(s->out.names[i], port) ||
		    scsi_port_is_of(port, s->out.names[i]))
			return true;
	return false;
}

static void search_worker(struct dev_round *r, unsigned worker)
{
	struct search *s = container_of(r, struct search, round);

	list_for_each(it, &s->task->lu->lanes[worker].itls) {
		const struct dev_nexus *n =
			list_entry(it, struct dev_itl, link)->nexus;

		if (is_wanted(s, n->cfg.initiator_port))
			found(s, n->cfg.initiator_port);
	}
	dev_round_next(r);
}

/* add_others adds the registered ports of the device, and the ports that the list
 * names. */
static void add_others(struct search *s)
{
	const struct rsv_state *now = rsv_now(s->task);

	for (unsigned i = 0; i < now->n; i++)
		if (is_wanted(s, now->regs[i].name))
			found(s, now->regs[i].name);
	for (unsigned i = 0; i < s->out.nnames; i++)
		if (!scsi_name_is_device(s->out.names[i]))
			found(s, s->out.names[i]);
}

static void searched(struct dev_round *r)
{
	struct search *s = container_of(r, struct search, round);
	struct rsv_out o = s->out;
	struct dev_task *t = s->task;

	add_others(s);
	free(o.names);
	o.nnames = s->n;
	o.names = malloc(MAX(s->n, 1u) * sizeof(o.names[0]));
	if (o.names)
		memcpy(o.names, s->found, s->n * sizeof(o.names[0]));
	if (s->too_many)
		dev_check(t, SENSE_ILLEGAL_REQUEST,
			  ASC_INSUFFICIENT_REGISTRATIONS);
	else if (!o.names)
		dev_no_resources(t);
	else
		decide(t, &o);
	if (s->too_many)
		free(o.names);
	free(s);
}

static void search_then_decide(struct dev_task *t, const struct rsv_out *o)
{
	struct search *s = calloc(1, sizeof(*s));

	if (!s) {
		free(o->names);
		dev_no_resources(t);
		return;
	}
	s->task = t;
	s->out = *o;
	s->round.server = t->nexus->server;
	s->round.visit = search_worker;
	s->round.done = searched;
	dev_round_start(&s->round, t->nexus->cfg.worker);
}

void dev_pr_out(struct dev_task *t)
{
	struct rsv_out o = { 0 };
	unsigned i = 0;

	if (!take_list(t, &o)) {
		free(o.names); /* take_list has ended t. */
		return;
	}
	while (i < o.nnames && !scsi_name_is_device(o.names[i]))
		i++;
	if (i < o.nnames)
		search_then_decide(t, &o);
	else
		decide(t, &o);
}
