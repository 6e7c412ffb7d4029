/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keep.h: the record of a unit that outlives a power loss, besides its reservations:
 * the saved values of its mode pages, its identifying information, and a SANITIZE or
 * FORMAT UNIT that has not finished.
 *
 * The record belongs to the home worker. A change of the record is a dev_change: the
 * home worker saves the new record, replaces the old one, and replies.
 */
#ifndef DEVICE_KEEP_H
#define DEVICE_KEEP_H

#include "device/unit/change.h"

#define KEEP_PATTERN_MAX 4096u
#define KEEP_MODES_MAX	 1024u

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
	uint16_t modes_len;	       /* 0: the default values */
	uint8_t modes[KEEP_MODES_MAX]; /* mode pages, as mode.c encodes them */
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
	/* On the home worker, once the record is on the medium; NULL: nothing
	 * else follows the record. */
	void (*kept)(struct keep_op *op);
	void (*done)(struct keep_op *op); /* on `from`; op is its own again */
	int err; /* 0, ERR_NOMEM, ERR_MEDIUM: nothing has changed */
	struct dev_record next;
	struct dev_change queued; /* keep.c's */
};

int dev_keep_init(struct dev_lu *lu); /* 0, ERR_NOMEM */
/* dev_keep_restored: lu->kept was read from the medium: the unit's condition is
 * as it says. Before the first nexus. */
void dev_keep_restored(struct dev_lu *lu);
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
