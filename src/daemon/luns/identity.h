/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity.h: finds or makes the identity of a store, to which the saved state of a unit
 * belongs and from which its names follow. Two stores never get one identity, and a store
 * keeps the one it has where something keeps it: the file itself, the device, the cluster
 * of Ceph, or the state directory. docs/guide.md, Identity, has the table.
 */
#ifndef DAEMON_LUNS_IDENTITY_H
#define DAEMON_LUNS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/lun_spec.h"

struct identities;

enum identity_source {
	IDENTITY_FIELD,	    /* uuid of the configuration */
	IDENTITY_ATTRIBUTE, /* the extended attribute of a file */
	IDENTITY_DEVICE,    /* what the kernel knows of a device */
	IDENTITY_IMAGE,	    /* the cluster of an image of Ceph */
	IDENTITY_STATE,	    /* the state directory */
	IDENTITY_MACHINE,   /* a name of a device, with that of the machine */
	IDENTITY_PROCESS,   /* made at this start */
};

/* A store without an identity yet. Texts are borrowed for the call. */
struct identity_query {
	const struct lun_spec *spec;
	const char *backstore; /* its name */
	bool is_command_line;  /* which has no names */
	int fd;		       /* the open file or device; -1: another kind */
	bool read_only;
	bool is_shared; /* other iserd serve it, too */
	/* the field uuid; NULL: not given */
	const uint8_t *given;
	/* as the module or the device has it; zeros: none */
	const uint8_t *own;
	/* by which the iserd that has handed over knew the store; NULL: unknown */
	const uint8_t *inherited;
	/* the iserd that has handed over made identities of paths */
	bool was_served;
	bool is_check; /* nothing is written; a new identity is of no use */
	/* returns the name of another backstore that has this identity, or NULL; NULL: none
	 * has. */
	const char *(*owner)(void *arg, const uint8_t uuid[16]);
	void *arg; /* of owner */
};

struct identity {
	uint8_t uuid[16];
	enum identity_source source;
	bool is_old; /* of a path, as earlier releases made it, now kept */
};

/* identity_find sets *id, and writes what is new to the attribute of the file, and to
 * `all` (identities_save), unless it only checks. A unit that loses the identity it had is
 * reported by say_note. May block. On worker 0. False after a message: the store must not be
 * served. */
bool identity_find(struct identities *all, const struct identity_query *q,
		   struct identity *id);
/* identity_of_name makes the identity that earlier releases had for a file, a device or an
 * NBD export: of the machine-id and the path, or of the URI. False: the machine has no
 * machine-id, so that it was not unique; or another kind. */
bool identity_of_name(const struct identities *all, const struct lun_spec *spec,
		      uint8_t uuid[16]);
/* identity_source_name returns the word for status. */
const char *identity_source_name(enum identity_source source);

#endif
