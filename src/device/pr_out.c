/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pr_out.c: PERSISTENT RESERVE OUT (SPC-4 §6.16): its CDB and its parameter
 * list; what becomes of them is pr_state.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "device/reserve.h"

#define LIST_MIN    24
#define LIST_MAX    65536u
#define IDS_AT	    28 /* behind the length of the TransportIDs */
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
	return t->row->sa == SCSI_PROUT_REGISTER_AND_MOVE;
}

static bool registers(const struct dev_task *t)
{
	return t->row->sa == SCSI_PROUT_REGISTER ||
	       t->row->sa == SCSI_PROUT_REGISTER_IGNORE;
}

static bool type_ok(unsigned type)
{
	return type == RSV_TYPE_WE || type == RSV_TYPE_EA ||
	       (type >= RSV_TYPE_WE_RO && type <= RSV_TYPE_EA_AR);
}

/* Scope and type count for RESERVE, RELEASE and the PREEMPTs. */
static int check_type(struct dev_task *t)
{
	switch (t->row->sa) {
	case SCSI_PROUT_RESERVE:
	case SCSI_PROUT_RELEASE:
	case SCSI_PROUT_PREEMPT:
	case SCSI_PROUT_PREEMPT_AND_ABORT:
		if (t->cdb[2] >> SCOPE_SHIFT) /* only LU_SCOPE (table 77) */
			return dev_refuse_field(t, 2, 7);
		if (!type_ok(t->cdb[2] & TYPE_MASK))
			return dev_refuse_field(t, 2, 3);
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
	/* §6.16.1: 24 bytes, but for what can have TransportIDs */
	if (len < LIST_MIN || len > LIST_MAX ||
	    (len != LIST_MIN && !moves(t) && !registers(t)))
		return dev_refuse_length(t);
	*out_len = len;
	return 0;
}

/* ---- the parameter list ---- */

static bool bad_length(struct dev_task *t)
{
	dev_bad_length(t);
	return false;
}

static bool bad_byte(struct dev_task *t, size_t byte)
{
	dev_bad_parameter(t, (unsigned)byte);
	return false;
}

/* The TransportIDs of p[at .. end); false: the task was ended. */
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
		dev_check(t, SENSE_ABORTED_COMMAND, ASC_INSUFFICIENT_RESOURCES);
		return false;
	}
	while (at < end) {
		if (o->nnames == most ||
		    scsi_transportid_get(p + at, end - at, o->names[o->nnames],
					 &used))
			return bad_byte(t, at);
		o->nnames++;
		at += used;
	}
	return true;
}

/* §6.16.3, table 175 */
static bool take_register(struct dev_task *t, struct rsv_out *o,
			  const uint8_t *p, size_t len)
{
	o->spec_i_pt = p[BYTE_FLAGS] & FLAG_SPEC_I;
	o->all_tg_pt = p[BYTE_FLAGS] & FLAG_ALL_TG;
	o->aptpl = p[BYTE_FLAGS] & FLAG_APTPL;
	if (o->aptpl && !rsv_keeps(t->lu))
		return bad_byte(t, BYTE_FLAGS);
	if (!o->spec_i_pt)
		return len == LIST_MIN || bad_length(t);
	if (o->action == SCSI_PROUT_REGISTER_IGNORE) /* §5.13.7.3 */
		return bad_byte(t, BYTE_FLAGS);
	if (len < IDS_AT || get_be32(p + LIST_MIN) != len - IDS_AT)
		return bad_length(t);
	return take_ids(t, o, p, IDS_AT, len);
}

/* §6.16.4, table 176 */
static bool take_move(struct dev_task *t, struct rsv_out *o, const uint8_t *p,
		      size_t len)
{
	o->unregister = p[17] & MOVE_UNREG;
	o->aptpl = p[17] & FLAG_APTPL;
	o->port = get_be16(p + 18);
	if (o->aptpl && !rsv_keeps(t->lu))
		return bad_byte(t, 17);
	if (get_be32(p + 20) != len - MOVE_ID_AT || len == MOVE_ID_AT)
		return bad_length(t);
	if (!take_ids(t, o, p, MOVE_ID_AT, len))
		return false;
	return o->nnames == 1 || bad_byte(t, MOVE_ID_AT);
}

static bool take_list(struct dev_task *t, struct rsv_out *o)
{
	const uint8_t *p = t->buf;
	size_t len = t->out_len;

	if (len != get_be32(t->cdb + 5)) /* the initiator sends less */
		return bad_length(t);
	o->action = t->row->sa;
	o->type = (enum rsv_type)(t->cdb[2] & TYPE_MASK);
	o->key = get_be64(p);
	o->sa_key = get_be64(p + 8);
	if (moves(t))
		return take_move(t, o, p, len);
	if (registers(t))
		return take_register(t, o, p, len);
	return true;
}

void dev_pr_out(struct dev_task *t)
{
	struct rsv_op *op;
	struct rsv_out o = { 0 };

	if (!take_list(t, &o)) {
		free(o.names); /* the task was ended */
		return;
	}
	op = rsv_op_new(t, rsv_decide_out);
	if (!op) {
		free(o.names);
		return;
	}
	op->out = o;
	rsv_op_start(op);
}
