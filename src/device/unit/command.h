/* SPDX-License-Identifier: BSD-2-Clause */
/* command.h: the rows of the command table and the search for rows (command.c). */
#ifndef DEVICE_COMMAND_H
#define DEVICE_COMMAND_H

#include <string.h>

#include "device/unit/unit.h"

enum dev_dir {
	DIR_NONE,
	DIR_IN,
	DIR_OUT,  /* blocks */
	DIR_LIST, /* a parameter list; a partial one is refused */
	DIR_BOTH, /* blocks in both directions, as many in each */
};

#define CMD_ANY_LUN 0x1u /* served without a unit, and before attentions */
#define CMD_WRITES  0x2u /* refused on a write-protected unit */
#define CMD_SA	    0x4u /* has a service action: sa */
/* The command takes the range task.lba, task.blocks from its first to its last I/O
 * (range.c): shared, as READ and WRITE do; exclusively. */
#define CMD_TOUCHES 0x8u
#define CMD_ALONE   0x10u
#define CMD_MEDIUM  0x20u /* refused unless the unit is ready */
#define CMD_ALWAYS  0x40u /* served even during SANITIZE and FORMAT UNIT */
/* DIR_OUT: if fewer blocks of data-out come than the CDB says, the command writes
 * those (or run refuses them); without the flag the command is refused. */
#define CMD_BY_BLOCK 0x10000u
/* Works in steps, with a buffer of DEV_CHUNK at most (dev_aux_blocks), which
 * memory.c charges to the session. */
#define CMD_CHUNK 0x20000u
/* CMD_MEDIUM: served in any power condition, which stays (power.c): the medium
 * need not turn for it. */
#define CMD_AT_REST 0x40000u
/* Changes what other initiators have of the unit (mode pages, reservations, power
 * condition and so on): refused for a nexus that has the unit read-only. */
#define CMD_CHANGES 0x80000u
/* run takes its data from task.mem.peek if they are there. */
#define CMD_PEEKS	 0x100000u
#define CMD_TAGS	 0x8000u /* the CDB has the expected tags */
#define CMD_NO_ATTENTION 0x80u	 /* served before attentions, which stay */

/*
 * The conflict column (SPC-4 §5.13, SBC-3 §4.17, SPC-2 §5.5.1): the reservations
 * of other nexuses with which the command conflicts. Every row has one of
 * RSV_NEVER, RSV_UNIT, RSV_READ, RSV_WRITE.
 */
#define RSV_KNOWN 0x100u /* the row states its column; a test checks this bit */
#define RSV_SPC2  0x200u /* of RESERVE(6), RESERVE(10) */
#define RSV_EA	  0x400u /* persistent, Exclusive Access types */
#define RSV_WE	  0x800u /* persistent, Write Exclusive types */
/* Served while the reservations are lost (SPC-4 §5.13.5.2). */
#define RSV_LOST_TOO 0x4000u

#define RSV_ALL	  (RSV_SPC2 | RSV_EA | RSV_WE)
#define RSV_NEVER RSV_KNOWN
#define RSV_UNIT  (RSV_KNOWN | RSV_SPC2)
#define RSV_READ  (RSV_UNIT | RSV_EA)
#define RSV_WRITE (RSV_READ | RSV_WE)

/*
 * Served by a port in these access states, too (SPC-4 §5.11.2). In standby, SPC-4 permits more
 * commands than it requires: an initiator that cannot read capacity and supported commands
 * takes the disk of that path for one of no size, and keeps that when the path is the one to use.
 */
#define ACC_STANDBY	0x1000u
#define ACC_UNAVAILABLE 0x2000u
#define ACC_ALWAYS	(ACC_STANDBY | ACC_UNAVAILABLE)

/* The types of units that have the command; none of them: disks only. */
#define FOR(type)    (0x1000000u << (type))
#define FOR_DISK     FOR(DEV_DISK)
#define FOR_CD	     FOR(DEV_CD)
#define FOR_ANY_TYPE 0xff000000u

struct dev_command {
	const char *name;
	uint8_t op;
	uint16_t sa;
	uint8_t len;
	enum dev_dir dir;
	unsigned flags;
	/* Checks the fields of the CDB and sets the bytes of data-out that the
	 * command needs; NULL: none. 1: refused (dev_check, dev_bad_field, ...). */
	int (*prepare)(struct dev_task *t, uint64_t *out_len);
	void (*run)(struct dev_task *t);
	/* The usage mask of the CDB; [0] = op. The row leaves out NACA in CONTROL
	 * (SAM-5 §5.2), which every command has. */
	uint8_t usage[32];
	/* whether a unit has the command; NULL: every unit of its types */
	bool (*has)(const struct dev_lu *lu);
};

/* The rows of one file. */
struct dev_rows {
	const struct dev_command *rows;
	size_t n;
};

/* ---- command.c ---- */

/* dev_command_index gives the server its rows (NULL at the end, borrowed). */
void dev_command_index(struct dev_server *s,
		       const struct dev_rows *const *rows);

/* A walk over all rows of the server: row is NULL at the end. */
struct dev_row_at {
	const struct dev_rows *const *rows;
	size_t i;
	const struct dev_command *row;
};
struct dev_row_at dev_row_first(const struct dev_server *s);
void dev_row_next(struct dev_row_at *at);

/* dev_command_find returns the row for a CDB to a unit of this type, or NULL; then
 * *known says whether rows with this operation code and other service actions
 * exist. */
const struct dev_command *dev_command_search(const struct dev_server *s,
					     enum dev_type type,
					     const uint8_t *cdb, bool *known);
static inline const struct dev_command *
dev_command_find(const struct dev_server *s, enum dev_type type,
		 const uint8_t *cdb, bool *known)
{
	const struct dev_command *c = s->row_of[type][cdb[0]];

	*known = false;
	return c ? c : dev_command_search(s, type, cdb, known);
}
/* dev_command_is_for returns whether units of this type have the row;
 * dev_command_has, whether this unit has the row. */
bool dev_command_is_for(const struct dev_command *c, enum dev_type type);
bool dev_command_has(const struct dev_lu *lu, const struct dev_command *c);
/* dev_command_any returns whether the unit has any command of this operation code. */
bool dev_command_any(const struct dev_server *s, const struct dev_lu *lu,
		     uint8_t op);
/* dev_control_at returns the offset of CONTROL by the group of the operation code; -1:
 * the group does not define CONTROL. */
int dev_control_at(const uint8_t *cdb);
#define CONTROL_NACA 0x04
/* dev_task_naca returns whether the CDB has NACA set. */
bool dev_task_naca(const struct dev_task *t);
/* dev_command_usage returns the usage mask of a byte of the CDB, with NACA. */
uint8_t dev_command_usage(const struct dev_command *row, unsigned byte);
/* dev_command_check returns byte << 3 | bit of the highest reserved bit that the CDB
 * sets; -1: none. */
int dev_command_reserved(const struct dev_command *row, const uint8_t *cdb);
static inline int dev_command_check(const struct dev_command *row,
				    const uint8_t *cdb)
{
	uint64_t c[2], usage[2];

	/* The first 16 bytes set no bit that the usage mask, without NACA, leaves
	 * out. The bytes after the end of a shorter CDB may have any value: then
	 * the longer way decides. */
	memcpy(c, cdb, sizeof(c));
	memcpy(usage, row->usage, sizeof(usage));
	if (row->len <= 16 && ((c[0] & ~usage[0]) | (c[1] & ~usage[1])) == 0)
		return -1;
	return dev_command_reserved(row, cdb);
}

#endif
