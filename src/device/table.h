/* SPDX-License-Identifier: BSD-2-Clause */
/* table.h: commands as rows, and what a row says of its command. */
#ifndef DEVICE_TABLE_H
#define DEVICE_TABLE_H

#include "device/internal.h"

enum dev_dir {
	DIR_NONE,
	DIR_IN,
	DIR_OUT,
};

#define CMD_ANY_LUN 0x1u /* served without a unit, and past attentions */
#define CMD_WRITES  0x2u /* refused on a write-protected unit */
#define CMD_SA	    0x4u /* sa counts: service action, scsi_cdb_sa */
/* task.lba, task.blocks are touched as by READ and WRITE / are the command's
 * alone from its first to its last I/O (range.c) */
#define CMD_TOUCHES	 0x8u
#define CMD_ALONE	 0x10u
#define CMD_MEDIUM	 0x20u /* refused while there is none, or a broken one */
#define CMD_ALWAYS	 0x40u /* served even while the unit is being erased */
#define CMD_TAGS	 0x8000u /* its CDB has the tags that are expected */
#define CMD_NO_ATTENTION 0x80u	 /* served past attentions, which stay */

/*
 * The conflict column (SPC-4 §5.13, SBC-3 §4.17, SPC-2 §5.5.1): which
 * reservations of others a command conflicts with. Every row has one of
 * RSV_NEVER, RSV_UNIT, RSV_READ, RSV_WRITE.
 */
#define RSV_KNOWN 0x100u /* the row's author thought of it */
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

/* Served by a port in these access states, too (SPC-4 §5.11.2). */
#define ACC_STANDBY	0x1000u
#define ACC_UNAVAILABLE 0x2000u
#define ACC_ALWAYS	(ACC_STANDBY | ACC_UNAVAILABLE)

/* Which types of units have the command; without any of them, disks do. */
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
	/* How many bytes of data-out this CDB asks for; NULL: none. Checks
	 * what is in the CDB: non-zero = it was refused (dev_refuse_*). */
	int (*prepare)(struct dev_task *t, uint64_t *out_len);
	void (*run)(struct dev_task *t);
	/* Bits that count, of each byte; [0] = op. In CONTROL it is NACA
	 * (SAM-5 §5.2), for every command: it need not be said here. */
	uint8_t usage[32];
	/* NULL: every unit has this command */
	bool (*has)(const struct dev_lu *lu);
};

/* The rows of one file. */
struct dev_rows {
	const struct dev_command *rows;
	size_t n;
};
extern const struct dev_rows dev_rows_block;   /* rows_block.c */
extern const struct dev_rows dev_rows_alua;    /* rows_alua.c */
extern const struct dev_rows dev_rows_cd;      /* rows_cd.c */
extern const struct dev_rows dev_rows_reserve; /* rows_reserve.c */
extern const struct dev_rows dev_rows_protect; /* rows_protect.c */

void dev_command_index(struct dev_server *s);
/* The row for a CDB to a unit of this type; *known tells that its operation
 * code is ours although its service action is not. */
const struct dev_command *dev_command_find(const struct dev_server *s,
					   enum dev_type type,
					   const uint8_t *cdb, bool *known);
/* Whether units of this type have the row; whether this one does. */
bool dev_command_is_for(const struct dev_command *c, enum dev_type type);
bool dev_command_has(const struct dev_lu *lu, const struct dev_command *c);
/* Whether the unit has any command of this operation code. */
bool dev_command_any(const struct dev_lu *lu, uint8_t op);
/* Where CONTROL is, by the operation code's group; -1: nobody knows. */
int dev_control_at(const uint8_t *cdb);
#define CONTROL_NACA 0x04
/* -1: fine; else byte << 3 | bit of the highest reserved bit set. */
int dev_command_check(const struct dev_command *row, const uint8_t *cdb);
/* The descriptors of all commands the unit has; returns their length. */
size_t dev_put_opcodes(const struct dev_lu *lu, uint8_t *p, bool timeouts);
#define DEV_OUR_OPCODES_MAX 1024u /* of a passthrough unit */

#endif
