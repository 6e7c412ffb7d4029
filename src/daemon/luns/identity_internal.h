/* SPDX-License-Identifier: BSD-2-Clause */
/* identity_internal.h: what identity.c and identity_file.c share. */
#ifndef DAEMON_LUNS_IDENTITY_INTERNAL_H
#define DAEMON_LUNS_IDENTITY_INTERNAL_H

#include "daemon/luns/identities.h"
#include "daemon/luns/identity.h"

#define IDENTITY_LINE 48 /* bytes */

/* An identity that is being found. */
struct finding {
	struct identities *all;
	const struct identity_query *q;
	struct identity *id;
	int fd; /* of the file or device; of the file of a loop device */
	bool is_backing; /* fd is that of a loop device */
	struct identity_place here;
};

/* identity.c */
/* identity_say prints a warning about the store. */
__attribute__((format(printf, 2, 3))) void
identity_say(const struct finding *f, const char *format, ...);
/* identity_line writes what the administrator gives to get this identity; returns
 * out. */
const char *identity_line(const struct finding *f, const uint8_t uuid[16],
			  char out[IDENTITY_LINE]);
/* identity_changed prints that the unit has another identity than `old`, why, and how it
 * keeps that one. */
void identity_changed(const struct finding *f, const char *why,
		      const uint8_t old[16]);
/* identity_keep adds a record to f->all, unless this is a check. False: nothing is
 * kept. */
bool identity_keep(struct finding *f, enum identity_kind kind, const char *key,
		   const struct identity_record *r);
/* identity_take sets the result. */
void identity_take(struct finding *f, const uint8_t uuid[16],
		   enum identity_source source);
/* identity_random makes a UUID of random bytes. */
void identity_random(uint8_t uuid[16]);
/* identity_for_now sets the result to an identity that nothing keeps, with a message
 * unless why is NULL. */
void identity_for_now(struct finding *f, const char *why);

/* identity_file.c: identity_find_file finds the identity of the regular file f->fd. False
 * after a message. */
bool identity_find_file(struct finding *f);

#endif
