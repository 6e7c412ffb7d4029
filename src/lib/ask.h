/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask.h: asks a unit who it is: INQUIRY, READ CAPACITY(16) or (10), VPD page 83h, and
 * page 80h if no designator is strong (identity.h). Where the LUN seems to have no unit,
 * REPORT LUNS may give another form of it (wire.c). A unit attention that says that the
 * unit may have changed begins the queries anew.
 */
#ifndef LIB_ASK_H
#define LIB_ASK_H

#include "lib/identity.h"

enum lib_ask_step {
	ASK_LUNS, /* only if the LUN has no unit: it may have another form */
	ASK_INQUIRY,
	ASK_CAPACITY_16,
	ASK_CAPACITY_10,
	ASK_IDENTITY,
	ASK_SERIAL,
	ASK_OVER,
};

struct lib_ask {
	/* set by the caller */
	struct iser_session *session;
	int lun;
	void (*submit)(struct iser_session *s, struct iser_io *io);
	/* err: 0: `who` has what the unit reports; ISER_E_NOT_FOUND: the LUN has no
	 * unit; ISER_E_SCSI, ISER_E_SHORT: it does not answer INQUIRY; else the connection
	 * does not work (lib_ask_is_lost) */
	void (*done)(struct lib_ask *a, int err);
	/* the result */
	struct lib_who who;
	/* why who.has_capacity is false; 0: units of this type have none */
	int capacity_err;
	/* the unit reports these, which are not possible */
	bool is_impossible;
	uint64_t last;
	uint32_t block_size;
	struct iser_io failed; /* the command of err or capacity_err */
	/* ask.c's own */
	enum lib_ask_step step;
	bool knows_luns;       /* ASK_LUNS is over */
	const unsigned *round; /* lib_guard.round */
	unsigned begun_at, rounds;
	struct iser_io io;
	struct iser_parameters params;
};

/* lib_ask_begin begins the queries; done follows, not from within this call. The first
 * part of *a is set, and *a is borrowed until then. */
void lib_ask_begin(struct lib_ask *a);

/* lib_ask_is_lost returns whether an error of done is not one of the unit. */
static inline bool lib_ask_is_lost(int err)
{
	return err && err != ISER_E_SCSI && err != ISER_E_SHORT &&
	       err != ISER_E_NOT_FOUND;
}

#endif
