/* SPDX-License-Identifier: BSD-2-Clause */
/* units.h: the units of iserd: a backstore of the configuration, opened, and its
 * unit in the device server. On worker 0. */
#ifndef DAEMON_APPLY_UNITS_H
#define DAEMON_APPLY_UNITS_H

#include <sys/stat.h>

#include "backstore/request.h"
#include "base/list.h"
#include "daemon/config/model.h"
#include "device/device.h"

struct daemon;
struct identity_owners;
struct member;

#define UNITS_BUCKETS 1024u

/* The units by the hash of their files and of the identities of their backstores. */
struct units_lookup {
	struct list files[UNITS_BUCKETS], uuids[UNITS_BUCKETS];
	/* look_identity.h: while the backstores of a configuration are opened */
	struct identity_owners *owners;
};

struct unit {
	struct dev_lu *lu;
	char *name; /* of the backstore */
	/* what the unit was made of; the key file borrows its texts */
	struct lun_spec *spec;
	struct lun_options lun;
	bool lacks_write; /* the file was opened for reading only */
	/* the file or block device; both 0: another kind of backstore */
	dev_t dev;
	ino_t ino;
	uint8_t uuid[16]; /* of the backstore as it was opened */
	unsigned source;  /* of uuid: enum identity_source */
	struct list same_file, same_uuid; /* of daemon.lookup */
	/* of a ram: LUN; fd, which the backstore owns, is -1 for others */
	struct lun_memory memory;
	/* health.c */
	enum bs_trouble trouble;
	bool flush_failed;
	bool in_check; /* the file is being checked: the unit must not be removed */
	struct {       /* of a file, if the numbers are served */
		bool is_known;
		uint64_t used, left; /* bytes, as of BS_SPACE */
	} space;
	bool is_leaving;       /* apply.c */
	struct member *member; /* cluster.h; NULL: of this iserd alone */
	bool is_held; /* its backstore is being replaced: health.c waits */
};

/* unit_open opens a backstore and adds its unit with this number to d->units. The
 * daemon owns the unit. NULL: e has the reason, at the place of the backstore. */
struct unit *unit_open(struct daemon *d, const struct cfg_model *m,
		       unsigned backstore, uint16_t number,
		       struct cfg_errors *e);
/* units_opened is called after the last unit_open of a configuration. */
void units_opened(struct daemon *d);
/* unit_key makes the key of the identity of the unit in a handover, of the name of the
 * backstore, the text of the store and the file. */
void unit_key(const struct unit *u, uint8_t key[16]);
/* unit_reopened is the function of gateway_new. */
const char *unit_reopened(const struct unit *u, struct bs *b);
/* unit_detach removes the unit from d->units; the caller owns it. */
void unit_detach(struct daemon *d, struct unit *u);
/* unit_free frees the unit, whose dev_lu the device has freed; NULL has no
 * effect. */
void unit_free(struct unit *u);
/* units_match returns the unit of each backstore of m by its name; NULL: there is
 * none. The caller frees the array. NULL: no memory. */
struct unit **units_match(const struct daemon *d, const struct cfg_model *m);
/* unit_of returns the unit that lu is of. */
struct unit *unit_of(const struct daemon *d, const struct dev_lu *lu);
/* unit_named returns the unit of the backstore with this name, or NULL. */
struct unit *unit_named(const struct daemon *d, const char *name);
/* unit_options returns the options of the process with those of the unit, in *o,
 * for the functions of luns/. */
void unit_options(const struct daemon *d, const struct lun_options *lun,
		  struct options *o);
/* units_usable returns whether the user that iserd runs as can write the key files
 * of all units; if not, all reasons are printed. */
bool units_usable(const struct daemon *d);

#endif
