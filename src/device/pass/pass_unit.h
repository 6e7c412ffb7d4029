/* SPDX-License-Identifier: BSD-2-Clause */
/* pass_unit.h: what the files of a passthrough unit share: pass.c, pass_cdb.c,
 * pass_tell.c. */
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
	uint64_t len;  /* bytes that the CDB asks for, or is ready to take */
	uint32_t unit; /* of len, where that is a number of blocks; else 0 */
	bool whole;    /* pass_cdb_cut knows how to make it less */
};

/* Direct access devices by the command set of blocks. */
bool pass_has_blocks(uint8_t type);
/* False: the CDB does not tell. */
bool pass_cdb_data(const struct pass *p, const uint8_t *cdb,
		   struct pass_data *d);
/* The command is to have that many blocks; at most what it had. */
void pass_cdb_cut(uint8_t *cdb, uint32_t blocks);
/* How long the CDB is, of the octets that came; 0: that can't be. */
size_t pass_cdb_len(const uint8_t *cdb, size_t have);
/* After how many seconds the host gives the command up. */
unsigned pass_timeout(const struct pass *p, const uint8_t *cdb);

/* ---- pass.c ---- */

enum pass_owner {
	PASS_DEVICE, /* the real one answers */
	PASS_OURS,
	PASS_NOBODY, /* what would reach beyond the unit */
};

enum pass_owner pass_owner(const struct pass *p, uint8_t op, unsigned sa);
/* Sends t->pass, whose buf is set, or not if it has no data. */
void pass_send(struct dev_task *t, void (*then)(struct dev_task *t, int err));
/* pass_send's usual then: data, status and sense as they came. */
void pass_ended(struct dev_task *t, int err);

/* ---- pass_tell.c: what a unit tells of itself is the device's word, put
 * right where it is about us. False: the command is none of these. ---- */

bool pass_tell(struct dev_task *t);

/* ---- pass.c: for begin, execute and abort ---- */

/* Whether the unit is a real device's, which this command is for. */
bool dev_pass_takes(const struct dev_task *t);
/* What find_row, prepare and run are for other commands. */
int dev_pass_find_row(struct dev_task *t);
int dev_pass_prepare(struct dev_task *t, uint64_t *out_len);
void dev_pass_run(struct dev_task *t);
/* Whether the task's command was kept from being sent. */
bool dev_pass_withdraw(struct dev_task *t);
/* Of a passthrough unit: is the command one of those that we carry out? */
bool dev_pass_owns(const struct dev_lu *lu, const struct dev_command *c);

#endif
