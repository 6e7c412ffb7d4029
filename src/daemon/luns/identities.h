/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identities.h: what iserd knows of this machine, and the file `identities` of the state
 * directory: identities of stores that cannot keep their own. On worker 0.
 */
#ifndef DAEMON_LUNS_IDENTITIES_H
#define DAEMON_LUNS_IDENTITIES_H

#include "daemon/luns/identity_record.h"
#include "daemon/luns/place.h"

struct state;
struct identities;

enum identity_kind {
	IDENTITY_OF_FILE,   /* by its place */
	IDENTITY_OF_DEVICE, /* by a serial number, which is not unique */
	IDENTITY_OF_EXPORT, /* by the URI of an NBD export */
	IDENTITY_OF_DRIVE,  /* by the name of the backstore */
	IDENTITY_AT_PATH,   /* the file that was last at this path */
};

/* identities_new reads the file. s, borrowed, may be NULL: then nothing is kept. NULL
 * after a message. */
struct identities *identities_new(const struct state *s);
void identities_free(struct identities *all);
/* identities_state returns s. */
const struct state *identities_state(const struct identities *all);
/* identities_machine returns what is known of this machine. */
const struct machine *identities_machine(const struct identities *all);

/*
 * identities_find returns the record of this kind and key, which is made for the same
 * place, borrowed until the next call; NULL: there is none. key NULL: of
 * IDENTITY_OF_FILE, by the place alone. *other, unless NULL: one of the same key and
 * another place, or NULL.
 */
const struct identity_record *
identities_find(const struct identities *all, enum identity_kind kind,
		const char *key, const struct identity_place *here,
		const struct identity_record **other);
/* identities_has returns whether there is a record with this UUID. */
bool identities_has(const struct identities *all, const uint8_t uuid[16]);
/* identities_put adds a record, in the place of one with the same kind and key. False:
 * nothing is kept: no state directory, or no memory. */
bool identities_put(struct identities *all, enum identity_kind kind,
		    const char *key, const struct identity_record *r);
/* identities_take_lines adds the records of the lines of the file, which it changes. False:
 * a line is not valid. (For identities_new.) */
bool identities_take_lines(struct identities *all, char *text);
/* identities_save writes the file if there are changes. Blocks; by the user that iserd
 * runs as. */
void identities_save(struct identities *all);

#endif
