/* SPDX-License-Identifier: BSD-2-Clause */
/* command.c: looks up the rows of commands (table.h) that the server was given. */
#include "device/unit/command.h"

/* at->i may be the number of rows of the file: then the next file follows. */
static void find_row(struct dev_row_at *at)
{
	while (*at->rows && at->i == (*at->rows)->n) {
		at->rows++;
		at->i = 0;
	}
	at->row = *at->rows ? &(*at->rows)->rows[at->i] : NULL;
}

struct dev_row_at dev_row_first(const struct dev_server *s)
{
	struct dev_row_at at = { .rows = s->rows };

	find_row(&at);
	return at;
}

void dev_row_next(struct dev_row_at *at)
{
	at->i++;
	find_row(at);
}

static void index_type(struct dev_server *s, enum dev_type type)
{
	for (struct dev_row_at at = dev_row_first(s); at.row; dev_row_next(&at))
		if (!(at.row->flags & CMD_SA) &&
		    dev_command_is_for(at.row, type))
			s->row_of[type][at.row->op] = at.row;
}

void dev_command_index(struct dev_server *s, const struct dev_rows *const *rows)
{
	s->rows = rows;
	for (unsigned type = 0; type < DEV_NTYPES; type++)
		index_type(s, (enum dev_type)type);
}

bool dev_command_is_for(const struct dev_command *c, enum dev_type type)
{
	unsigned types = c->flags & FOR_ANY_TYPE;

	return (types ? types : FOR_DISK) & FOR(type);
}

bool dev_command_has(const struct dev_lu *lu, const struct dev_command *c)
{
	return dev_command_is_for(c, dev_lu_type(lu)) &&
	       (!c->has || c->has(lu)) &&
	       (!lu || !lu->pass.owns || lu->pass.owns(lu, c));
}

/* The rows with a service action: the rest of dev_command_find. */
const struct dev_command *dev_command_search(const struct dev_server *s,
					     enum dev_type type,
					     const uint8_t *cdb, bool *known)
{
	for (struct dev_row_at at = dev_row_first(s); at.row;
	     dev_row_next(&at)) {
		const struct dev_command *c = at.row;

		if (!(c->flags & CMD_SA) || c->op != cdb[0] ||
		    !dev_command_is_for(c, type))
			continue;
		if (c->sa == scsi_cdb_sa(cdb))
			return c;
		*known = true;
	}
	return NULL;
}

bool dev_command_any(const struct dev_server *s, const struct dev_lu *lu,
		     uint8_t op)
{
	for (struct dev_row_at at = dev_row_first(s); at.row; dev_row_next(&at))
		if (at.row->op == op && dev_command_has(lu, at.row))
			return true;
	return false;
}

/* SPC-4 §4.2.5: the group code determines the length; CONTROL is the last byte. */
int dev_control_at(const uint8_t *cdb)
{
	static const int8_t at[8] = { 5, 9, 9, -1, 15, 11, -1, -1 };

	if (cdb[0] == 0x7f) /* variable length: CONTROL is byte 1 */
		return 1;
	return at[cdb[0] >> 5];
}

bool dev_task_naca(const struct dev_task *t)
{
	int at = dev_control_at(t->cdb);

	return at >= 0 && at < t->cdb_len && (t->cdb[at] & CONTROL_NACA);
}

static bool reports_attention(const struct dev_task *t)
{
	struct scsi_sense sense;

	return !scsi_sense_parse(&sense, t->sense.data, t->sense.len) &&
	       sense.key == SENSE_UNIT_ATTENTION;
}

bool dev_task_orders(const struct dev_task *t)
{
	if (t->status == SCSI_CHECK_CONDITION)
		return dev_task_naca(t) || reports_attention(t);
	return t->status == SCSI_ACA_ACTIVE ||
	       (t->cdb[0] == SCSI_PERSISTENT_RESERVE_OUT &&
		(t->cdb[1] & 0x1f) == SCSI_PROUT_PREEMPT_AND_ABORT);
}

uint8_t dev_command_usage(const struct dev_command *row, unsigned byte)
{
	uint8_t naca = (int)byte == dev_control_at(&row->op) ? CONTROL_NACA : 0;

	return row->usage[byte] | naca;
}

int dev_command_reserved(const struct dev_command *row, const uint8_t *cdb)
{
	for (unsigned i = 1; i < row->len; i++) {
		unsigned bad = cdb[i] & ~row->usage[i] & 0xffu;

		if (bad)
			bad = cdb[i] & ~dev_command_usage(row, i) & 0xffu;

		if (bad)
			return (int)(i << 3 |
				     (31u - (unsigned)__builtin_clz(bad)));
	}
	return -1;
}
