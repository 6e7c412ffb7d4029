/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keep.h: the record of a unit, which survives a power loss: the saved values
 * of its mode pages, its identifying information, and a SANITIZE or FORMAT UNIT
 * in progress. The reservations have a record of their own (reserve/pr_save.c).
 *
 * The record belongs to the home worker. A change of the record is a
 * dev_change: the home worker saves the new record, replaces the old one, and
 * replies.
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
	uint8_t pi_type; /* FORMAT UNIT: the new protection type */
	/* bytes: progress of the pass, size of the unit */
	uint64_t at, size;
	uint16_t pattern_len; /* 0: no passes, zeros */
	uint8_t pattern[KEEP_PATTERN_MAX];
};

struct dev_record {
	uint16_t modes_len;	       /* 0: the default values */
	uint8_t modes[KEEP_MODES_MAX]; /* mode pages, as mode.c encodes them */
	/* of a shared unit: the current values, which all gateways have in common;
	 * 0: the same as the saved ones */
	uint16_t now_len;
	uint8_t now[KEEP_MODES_MAX];
	struct {
		uint16_t len;
		uint8_t bytes[KEEP_INFO_MAX];
	} info[KEEP_INFOS];
	struct keep_erase erase;
};

struct keep_op {
	/* set by the caller */
	struct dev_lu *lu;
	unsigned from; /* worker */
	/* On the home worker: changes *r, a copy of the record. NULL: the
	 * caller only reads op->next, in done. */
	void (*change)(struct keep_op *op, struct dev_record *r);
	/* On the home worker, when the changed record is on the medium; may
	 * be NULL. */
	void (*kept)(struct keep_op *op);
	/* set by `change`, for a shared unit: attentions of the nexuses of other
	 * gateways, BIT(enum dev_ua); the change is based on an older record and ends
	 * with ERR_AGAIN */
	uint32_t tells;
	bool is_stale;
	/* The record comes from another gateway, with these events: `change` makes it,
	 * it is not saved, and it goes before all changes that wait. NULL: it does
	 * not. */
	const struct dev_heard *heard;
	/* on worker `from`; the caller may free op */
	void (*done)(struct keep_op *op);
	/* the server is freed, op will not be done; may be NULL */
	void (*forgotten)(struct keep_op *op);
	/* 0; ERR_NOMEM, ERR_MEDIUM, ERR_AGAIN (is_stale): the record has not changed;
	 * ERR_TERMINATED: the gateway was fenced */
	int err;
	struct dev_record next;
	struct dev_change queued; /* private to keep.c */
};

/* dev_keep_init allocates the record of a unit with cfg.keeps;
 * dev_server_free frees the record. */
int dev_keep_init(struct dev_lu *lu); /* ERR_NOMEM */
/* dev_keep_restored sets the condition of the unit from the record that
 * keep_decode has read; before the first nexus. */
void dev_keep_restored(struct dev_lu *lu);
/* dev_keep changes or reads the record of op->lu, which has one (dev_keeps).
 * op is borrowed until op->done. */
void dev_keep(struct keep_op *op);
/* dev_not_kept ends t with the sense data of err, a failed dev_keep. */
void dev_not_kept(struct dev_task *t, int err);

/* ---- keep_save.c: the record as bytes ---- */

#define KEEP_ENCODED_MAX 8192u

/* keep_encode writes the record to p and returns its length; 0: the record
 * has only default values and needs no bytes. */
size_t keep_encode(const struct dev_lu *lu, const struct dev_record *r,
		   uint8_t p[KEEP_ENCODED_MAX]);
/* keep_decode reads a record. ERR_TRUNCATED, ERR_FORMAT: the record is
 * damaged; ERR_DATA_DIGEST: its CRC is wrong; ERR_NOT_FOUND: it belongs to
 * another backstore. */
int keep_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		struct dev_record *r);

#endif
