/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity_record.h: the identity of a store with the place that it was made for, as
 * text: "1 UUID inode=12 born=1790000000.000000001 fs=... volume=... machine=...". The
 * text is the extended attribute of a file, and a part of the file `identities`.
 */
#ifndef DAEMON_LUNS_IDENTITY_RECORD_H
#define DAEMON_LUNS_IDENTITY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDENTITY_TEXT_MAX 256 /* bytes, with the NUL */
#define PLACE_DIGITS	  17  /* with the NUL */

/*
 * A place: what a copy of a file does not share with the file. A part may be unknown: its
 * number is 0, its text empty. Nothing that a reboot or another kernel changes is a part
 * (st_dev, for example).
 */
struct identity_place {
	uint64_t inode;
	char born[32]; /* the birth time: seconds, nanoseconds */
	/* digests of the UUID of the file system, of that of its logical volume, and of
	 * that of the machine */
	char fs[PLACE_DIGITS], volume[PLACE_DIGITS], machine[PLACE_DIGITS];
};

struct identity_record {
	uint8_t uuid[16];
	struct identity_place place;
};

enum identity_verdict {
	IDENTITY_GOOD,
	IDENTITY_DAMAGED,
	IDENTITY_NEWER, /* of a later version of iserd */
};

/* identity_record_put writes the text and a NUL; returns its length. */
size_t identity_record_put(const struct identity_record *r,
			   char out[IDENTITY_TEXT_MAX]);
/* identity_record_get reads len bytes of such a text, which ends with a NUL or a
 * newline or without; parts with other names are skipped. r is undefined unless the
 * result is IDENTITY_GOOD. */
enum identity_verdict identity_record_get(struct identity_record *r,
					  const char *text, size_t len);
/* identity_place_agrees returns whether the places agree in each part that both know. */
bool identity_place_agrees(const struct identity_place *a,
			   const struct identity_place *b);
/* identity_place_learn adds the parts to p that only more knows. Returns whether there were
 * any. */
bool identity_place_learn(struct identity_place *p,
			  const struct identity_place *more);
/* identity_place_is_certain returns whether no other file can have this place; the inode
 * alone does not show that. */
bool identity_place_is_certain(const struct identity_place *p);
/* identity_digest writes 16 digits that stand for len bytes. */
void identity_digest(char out[PLACE_DIGITS], const void *p, size_t len);

#endif
