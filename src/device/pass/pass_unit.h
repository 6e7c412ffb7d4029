/* SPDX-License-Identifier: BSD-2-Clause */
/* pass_unit.h: the interface between the files of a passthrough unit: pass.c,
 * pass_cdb.c, pass_report.c. */
#ifndef DEVICE_PASS_UNIT_H
#define DEVICE_PASS_UNIT_H

#include "device/unit/unit.h"

/* SPC-4 table 142 */
#define TYPE_DISK    0x00
#define TYPE_MMC     0x05
#define TYPE_OPTICAL 0x07
#define TYPE_RBC     0x0e
#define TYPE_ZONED   0x14

#define PASS_SLOW 7200u /* seconds */

/* ---- pass_cdb.c ---- */

struct pass_data {
	enum pass_dir dir;
	uint64_t len;  /* bytes that the CDB transfers, or allocates */
	uint32_t unit; /* bytes per block if the CDB counts blocks; else 0 */
	bool whole;    /* pass_cdb_cut can reduce the number of blocks */
};

/* pass_has_blocks returns whether the peripheral device type uses the block
 * commands (SBC-3). */
bool pass_has_blocks(uint8_t type);
/* pass_cdb_data sets *d to direction and length of the data; false: the CDB does
 * not determine them. */
bool pass_cdb_data(const struct pass *p, const uint8_t *cdb,
		   struct pass_data *d);
/* pass_cdb_cut reduces the number of blocks in the CDB to `blocks`. */
void pass_cdb_cut(uint8_t *cdb, uint32_t blocks);
/* pass_cdb_len returns the length of the CDB, of which `have` octets were
 * received; 0: the length is not valid. */
size_t pass_cdb_len(const uint8_t *cdb, size_t have);
/* pass_timeout returns the seconds after which the host aborts the command. */
unsigned pass_timeout(const struct pass *p, const uint8_t *cdb);

/* ---- pass.c ---- */

enum pass_owner {
	PASS_DEVICE,  /* the SCSI device executes the command */
	PASS_SERVER,  /* this device server executes the command */
	PASS_REFUSES, /* the command could affect other units */
};

/* pass_owner returns where the command goes; sa is its service action. */
enum pass_owner pass_owner(const struct pass *p, uint8_t op, unsigned sa);
/* pass_send sends t->pass to the SCSI device, then calls `then`. The caller has
 * set t->pass.buf if the command has data. */
void pass_send(struct dev_task *t, void (*then)(struct dev_task *t, int err));
/* pass_ended ends t with the data, status and sense of t->pass; a `then` of
 * pass_send. */
void pass_ended(struct dev_task *t, int err);

/* ---- pass_report.c ---- */

/* pass_report executes a command that reports about the unit: takes the answer of
 * the SCSI device and replaces the parts about ports. False: the command is not
 * such a command. */
bool pass_report(struct dev_task *t);

/* ---- pass.c: for begin, execute and abort ---- */

/* dev_pass_takes returns whether the unit of t is a passthrough unit and this
 * device server does not execute the command itself. */
static inline bool dev_pass_takes(const struct dev_task *t)
{
	return t->lu && t->lu->pass.device &&
	       pass_owner(t->lu->pass.device, t->cdb[0], t->cdb[1] & 0x1f) !=
		       PASS_SERVER;
}
/* dev_pass_find_row sets t->row to the row of a known command, or to a row for
 * unknown commands. 1: t was refused. */
int dev_pass_find_row(struct dev_task *t);
/* dev_pass_prepare checks the CDB and fills t->pass; sets *out_len to the bytes
 * of write data. 1: t was refused. */
int dev_pass_prepare(struct dev_task *t, uint64_t *out_len);
/* dev_pass_run executes t. */
void dev_pass_run(struct dev_task *t);
/* dev_pass_withdraw returns whether it removed the command of t before the driver
 * sent the command to the SCSI device. */
bool dev_pass_withdraw(struct dev_task *t);
/* dev_pass_owns returns whether this device server executes the command of a
 * passthrough unit itself. */
bool dev_pass_owns(const struct dev_lu *lu, const struct dev_command *c);

#endif
