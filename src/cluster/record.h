/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.h: the record of a shared unit as bytes, and the notes of the gateways.
 *
 * The record begins with a magic number, the version of the format, its length and a
 * CRC32C over all other bytes. A gateway never changes a record whose format it does not
 * know.
 */
#ifndef CLUSTER_RECORD_H
#define CLUSTER_RECORD_H

#include "cluster/unit.h"

/* cluster_record_decode fills r from a record as the store has it; the data of parts and
 * events point into the record. All bytes of r that the record does not determine are 0.
 * ERR_TRUNCATED, ERR_FORMAT (not a record, or with contents that no gateway writes),
 * ERR_UNSUPPORTED (a newer format), ERR_DATA_DIGEST (a wrong CRC), ERR_TOO_LONG. */
int cluster_record_decode(struct cluster_record *r, const uint8_t *data,
			  size_t len);

/* cluster_record_size returns the length of r as bytes, which may be more than
 * CLUSTER_RECORD_MAX. */
size_t cluster_record_size(const struct cluster_record *r);
/* cluster_record_encode writes r to out, which has room for cluster_record_size(r) bytes,
 * and returns that number. r must be one that cluster_record_decode accepts. */
size_t cluster_record_encode(const struct cluster_record *r, uint8_t *out);

/* cluster_record_gateway returns the gateway of that name, or NULL. */
struct cluster_gateway *cluster_record_gateway(struct cluster_record *r,
					       const char *id);
enum cluster_rivalry {
	CLUSTER_RIVAL_NONE,
	CLUSTER_RIVAL_NUMBER, /* has the number of the gateway */
	CLUSTER_RIVAL_PORT, /* ... one of its relative target port identifiers */
	CLUSTER_RIVAL_BLOCKS, /* serves the unit with blocks of another size */
};

/* cluster_record_rival returns another gateway beside which g cannot serve the unit, and
 * why; or NULL. */
const struct cluster_gateway *
cluster_record_rival(const struct cluster_record *r,
		     const struct cluster_gateway *g,
		     enum cluster_rivalry *why);
/* cluster_record_changed returns the version of the last change of a part. */
uint64_t cluster_record_changed(const struct cluster_record *r);
/* cluster_record_remember appends an event to those that r keeps, and removes old ones
 * while there are too many, or r is longer than CLUSTER_RECORD_MAX. false: r is too long
 * even without events. len 0: no event. */
bool cluster_record_remember(struct cluster_record *r, enum cluster_part part,
			     const uint8_t *data, size_t len);

enum cluster_note_kind {
	CLUSTER_NOTE_ALIVE = 1, /* are you there? version: the sender's */
	CLUSTER_NOTE_CHANGED,	/* the record has this version or a newer one */
	CLUSTER_NOTE_CONFIRM, /* ... and the owner is to say when it is in force */
	CLUSTER_NOTE_IN_FORCE, /* at the owner */
	CLUSTER_NOTE_YIELD, /* to the sender: to the owner of this generation */
};

struct cluster_note_body {
	enum cluster_note_kind kind;
	uint64_t version;
	uint64_t generation;
};

#define CLUSTER_NOTE_SIZE 24u

/* cluster_note_encode writes CLUSTER_NOTE_SIZE bytes. */
void cluster_note_encode(const struct cluster_note_body *b, uint8_t *out);
/* cluster_note_decode: ERR_TRUNCATED, ERR_FORMAT, ERR_UNSUPPORTED. Longer notes are
 * accepted, so that later versions can add members. */
int cluster_note_decode(struct cluster_note_body *b, const uint8_t *data,
			size_t len);

#endif
