/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keep.h: what a unit keeps over a power loss besides its reservations: the
 * saved values of its mode pages, its identifying information, and a SANITIZE
 * or FORMAT UNIT that is not over.
 *
 * The record of a unit belongs to the home worker. Whoever wants to change it
 * sends an operation there; one at a time each is put to the medium, then into
 * the record, and is answered.
 */
#ifndef DEVICE_KEEP_H
#define DEVICE_KEEP_H

#include "device/internal.h"

#define KEEP_HOME	 0u
#define KEEP_PATTERN_MAX 4096u

enum keep_info { /* SPC-4 table 60 */
	KEEP_IDENTIFYING,
	KEEP_TEXT,
	KEEP_INFOS,
};
#define KEEP_INFO_MAX 512u

struct keep_erase {
	enum keep_erase_state {
		KEEP_NO_ERASE,
		KEEP_ERASING,
		KEEP_ERASE_FAILED,
	} state;
	bool formats; /* FORMAT UNIT; else SANITIZE */
	bool rekey;   /* CRYPTO ERASE */
	bool unrestricted, invert;
	uint8_t passes, pass;
	uint8_t pi_type;      /* FORMAT UNIT: of protection, afterwards */
	uint64_t at, size;    /* bytes of the pass that are done, of the unit */
	uint16_t pattern_len; /* 0: no passes, zeros */
	uint8_t pattern[KEEP_PATTERN_MAX];
};

struct dev_record {
	struct dev_control modes;
	struct {
		uint16_t len;
		uint8_t bytes[KEEP_INFO_MAX];
	} info[KEEP_INFOS];
	struct keep_erase erase;
};

struct keep_op {
	/* by who asks */
	struct dev_lu *lu;
	unsigned from; /* worker */
	/* On the home worker: makes of *r, the newest record, the next. NULL:
	 * op->next is only to be read, in done. */
	void (*change)(struct keep_op *op, struct dev_record *r);
	void (*done)(struct keep_op *op); /* on `from`; op is its own again */
	int err; /* 0, ERR_NOMEM, ERR_MEDIUM: nothing has changed */
	struct dev_record next;
	/* keep.c's */
	struct dev_round round;
	struct list link;
	struct dev_save save;
	uint8_t *bytes;
};

int dev_keep_init(struct dev_lu *lu); /* 0, ERR_NOMEM */
int dev_keep_restore(struct dev_lu *lu, const uint8_t *data, size_t len);
void dev_keep(struct keep_op *op);
/* Ends the command whose op came back with this err. */
void dev_not_kept(struct dev_task *t, int err);

/* ---- keep_save.c: the record as bytes ---- */

#define KEEP_ENCODED_MAX 8192u

/* How many bytes of p it takes; 0: there is nothing to keep. */
size_t keep_encode(const struct dev_lu *lu, const struct dev_record *r,
		   uint8_t p[KEEP_ENCODED_MAX]);
/* ERR_TRUNCATED, ERR_FORMAT; ERR_DATA_DIGEST: its CRC is wrong;
 * ERR_NOT_FOUND: another store's. */
int keep_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		struct dev_record *r);

#endif
